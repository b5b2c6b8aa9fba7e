/* zookeeper_lock.c - how fast ZooKeeper locks and unlocks.
 *
 * Speaks ZooKeeper's client protocol itself: frames of four bytes length, a
 * request number and an operation; one session per connection. The packaged C
 * client runs two threads per session; with 50 of them its thread switches
 * would be counted against the server.
 *
 *   recipe     the documented lock: create an ephemeral sequential node, list
 *              the siblings, hold if ours is the lowest, else watch the one
 *              before it and list again when it is gone; delete to release
 *   ephemeral  create and delete of an ephemeral node: fewer trips, but who
 *              finds it taken has to be told by a herd of watches
 */
#include "load.h"

#define PERM_ALL       31u
#define FLAG_EPHEMERAL 1u
#define FLAG_SEQUENCE  2u
#define SESSION_MS     30000u
#define XID_EVENT      UINT32_MAX
#define DIGITS         10 /* of a sequence number, at the end of a name */

#define ERROR_EXISTS  ((uint32_t)-110)
#define ERROR_NO_NODE ((uint32_t)-101)

enum operation {
    OP_CREATE = 1,
    OP_DELETE = 2,
    OP_EXISTS = 3,
    OP_CHILDREN = 8,
    OP_CLOSE = -11,
};

enum step {
    STEP_SESSION,
    STEP_ROOT,
    STEP_PARENT,
    STEP_CREATE,
    STEP_LIST,
    STEP_WATCH,
    STEP_EVENT,
    STEP_DELETE,
};

struct zk {
    enum step step;
    uint32_t xid;
    bool gone; /* the watched node went before the watch was answered */
    char parent[64];
    char path[96];
    size_t path_len;
};

/* A frame's length is written when the frame is whole. */
static size_t open_frame(struct hf_buf *out)
{
    load_put_be32(out, 0);
    return out->len;
}

static void close_frame(struct hf_buf *out, size_t start)
{
    uint32_t len = (uint32_t)(out->len - start);
    unsigned char *head = (unsigned char *)out->data + start - 4;
    head[0] = (unsigned char)(len >> 24);
    head[1] = (unsigned char)(len >> 16);
    head[2] = (unsigned char)(len >> 8);
    head[3] = (unsigned char)len;
}

static void put_text(struct hf_buf *out, const char *text, size_t len)
{
    load_put_be32(out, (uint32_t)len);
    load_put(out, text, len);
}

static size_t open_request(struct load_client *client, enum step step,
                           enum operation operation)
{
    struct zk *zk = client->state;
    size_t start = open_frame(&client->out);
    zk->step = step;
    load_put_be32(&client->out, ++zk->xid);
    load_put_be32(&client->out, (uint32_t)operation);
    return start;
}

static void ask_create(struct load_client *client, enum step step,
                       const char *path, uint32_t flags)
{
    struct hf_buf *out = &client->out;
    size_t start = open_request(client, step, OP_CREATE);
    put_text(out, path, strlen(path));
    load_put_be32(out, 0); /* no data */
    load_put_be32(out, 1); /* one access rule: the world may do all */
    load_put_be32(out, PERM_ALL);
    put_text(out, "world", 5);
    put_text(out, "anyone", 6);
    load_put_be32(out, flags);
    close_frame(out, start);
}

static void ask_delete(struct load_client *client)
{
    struct zk *zk = client->state;
    size_t start = open_request(client, STEP_DELETE, OP_DELETE);
    put_text(&client->out, zk->path, zk->path_len);
    load_put_be32(&client->out, UINT32_MAX); /* any version */
    close_frame(&client->out, start);
    load_released(client);
}

static void ask_children(struct load_client *client)
{
    struct zk *zk = client->state;
    size_t start = open_request(client, STEP_LIST, OP_CHILDREN);
    put_text(&client->out, zk->parent, strlen(zk->parent));
    load_put_u8(&client->out, 0);
    close_frame(&client->out, start);
}

static void ask_watch(struct load_client *client, struct hf_bytes name)
{
    struct zk *zk = client->state;
    char path[128];
    int len = snprintf(path, sizeof path, "%s/%.*s", zk->parent, (int)name.len,
                       name.data);
    zk->gone = false;
    size_t start = open_request(client, STEP_WATCH, OP_EXISTS);
    put_text(&client->out, path, (size_t)len);
    load_put_u8(&client->out, 1);
    close_frame(&client->out, start);
}

static bool by_recipe(void)
{
    return !strcmp(load_opts()->recipe, "recipe");
}

static void greet(struct load_client *client)
{
    struct hf_buf *out = &client->out;
    struct zk *zk = client->state;
    static const char password[16];
    size_t start = open_frame(out);
    load_put_be32(out, 0); /* protocol */
    load_put_be64(out, 0); /* last change seen */
    load_put_be32(out, SESSION_MS);
    load_put_be64(out, 0); /* a new session */
    put_text(out, password, sizeof password);
    load_put_u8(out, 0); /* not read-only */
    close_frame(out, start);
    zk->step = STEP_SESSION;
    if (load_opts()->handoff)
        snprintf(zk->parent, sizeof zk->parent, "/bench/hot");
    else
        snprintf(zk->parent, sizeof zk->parent, "/bench/%u", client->number);
}

static void begin(struct load_client *client)
{
    struct zk *zk = client->state;
    char path[96];
    snprintf(path, sizeof path, "%s/lock-", zk->parent);
    ask_create(client, STEP_CREATE, path,
               by_recipe() ? FLAG_EPHEMERAL | FLAG_SEQUENCE : FLAG_EPHEMERAL);
}

static void leave(struct load_client *client)
{
    struct zk *zk = client->state;
    close_frame(&client->out, open_request(client, zk->step, OP_CLOSE));
}

/* Nodes of a session that ended come and go; the sequence orders them all. */
static bool is_before(struct hf_bytes a, struct hf_bytes b)
{
    return memcmp(a.data + a.len - DIGITS, b.data + b.len - DIGITS, DIGITS) < 0;
}

/* The siblings: ours is the lowest and we hold, or the next lower is watched.
 */
static void listed(struct load_client *client, const unsigned char *data,
                   size_t len)
{
    struct zk *zk = client->state;
    struct hf_bytes ours = hf_bytes(zk->path, zk->path_len), before = {0};
    size_t at = 4;
    for (uint32_t left = load_get_be32(data); left > 0; left--) {
        uint32_t size = load_get_be32(data + at);
        struct hf_bytes name = hf_bytes((const char *)data + at + 4, size);
        at += 4 + size;
        if (at > len || size < DIGITS)
            load_fail("a list of nodes cannot be read");
        if (is_before(name, ours) &&
            (before.len == 0 || is_before(before, name)))
            before = name;
    }
    if (before.len > 0) {
        ask_watch(client, before);
        return;
    }
    load_granted(client);
}

static void created(struct load_client *client, const unsigned char *data)
{
    struct zk *zk = client->state;
    uint32_t len = load_get_be32(data);
    if (len > sizeof zk->path)
        load_fail("a path is too long");
    memcpy(zk->path, data + 4, len);
    zk->path_len = len;
    if (by_recipe()) {
        ask_children(client);
        return;
    }
    load_granted(client);
}

static void answered(struct load_client *client, uint32_t error,
                     const unsigned char *data, size_t len)
{
    struct zk *zk = client->state;
    bool made = zk->step == STEP_ROOT || zk->step == STEP_PARENT;
    bool missing = zk->step == STEP_WATCH && error == ERROR_NO_NODE;
    if (error != 0 && !missing && !(made && error == ERROR_EXISTS))
        load_fail("error %d in step %d", (int)error, (int)zk->step);
    switch (zk->step) {
    case STEP_ROOT:
        ask_create(client, STEP_PARENT, zk->parent, 0);
        return;
    case STEP_PARENT:
        load_ready(client);
        return;
    case STEP_CREATE:
        created(client, data);
        return;
    case STEP_LIST:
        listed(client, data, len);
        return;
    case STEP_WATCH:
        zk->step = STEP_EVENT;
        if (missing || zk->gone)
            ask_children(client);
        return;
    case STEP_DELETE:
        load_done(client);
        return;
    case STEP_SESSION:
    case STEP_EVENT:
        load_fail("an answer to nothing");
    }
}

static void take_frame(struct load_client *client, const unsigned char *data,
                       size_t len)
{
    struct zk *zk = client->state;
    if (zk->step == STEP_SESSION) {
        if (len < 16 || load_get_be64(data + 8) == 0)
            load_fail("no session");
        ask_create(client, STEP_ROOT, "/bench", 0);
        return;
    }
    if (len < 16)
        load_fail("a short answer");
    uint32_t xid = load_get_be32(data);
    if (xid == XID_EVENT) {
        zk->gone = true;
        if (zk->step == STEP_EVENT)
            ask_children(client);
        return;
    }
    if (xid != zk->xid)
        load_fail("answers out of order");
    answered(client, load_get_be32(data + 12), data + 16, len - 16);
}

static size_t take(struct load_client *client, const unsigned char *data,
                   size_t len)
{
    size_t at = 0;
    while (len - at >= 4) {
        size_t size = load_get_be32(data + at);
        if (len - at < 4 + size)
            break;
        take_frame(client, data + at + 4, size);
        at += 4 + size;
    }
    return at;
}

int main(int argc, char **argv)
{
    static const struct load_protocol protocol = {
        .name = "zookeeper",
        .recipes = " recipe ephemeral ",
        .state_bytes = sizeof(struct zk),
        .greet = greet,
        .begin = begin,
        .release = ask_delete,
        .leave = leave,
        .take = take,
    };
    return load_main(argc, argv, &protocol);
}
