/* etcd_lock.c - how fast etcd locks and unlocks, over gRPC.
 *
 * The requests go over HTTP/2 frames written here, one stream after another on
 * each connection: that is what etcd's own client sends, without the JSON
 * gateway (which is a second gRPC hop inside the server) and without a client
 * library's threads.
 *
 *   recipe  the lock service, v3lockpb.Lock: Lock with a lease, Unlock
 *   txn     two transactions: put if absent with a lease, delete if the value
 *           is ours. Less than a lock (nobody can wait), shown beside it
 *
 * Of an answer only the message is read; a call that failed has none.
 */
#include "load.h"

#define FRAME_HEAD  9u
#define GRPC_HEAD   5u
#define LEASE_TTL_S 600u

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW = 8,
};

#define FLAG_END     0x1u /* of the stream; on settings and ping: an answer */
#define FLAG_HEADERS 0x4u
#define FLAG_PADDED  0x8u

enum step { STEP_LEASE, STEP_LOCK, STEP_UNLOCK };

struct etcd {
    enum step step;
    uint32_t stream;
    uint64_t lease;
    char key[128];
    size_t key_len;
    struct hf_buf body; /* the answer's message, with its five bytes head */
    struct hf_buf message;
    struct hf_buf headers;
};

static void put_frame(struct hf_buf *out, enum frame_type type, uint8_t flags,
                      uint32_t stream, const void *data, size_t len)
{
    load_put_u8(out, (uint8_t)(len >> 16));
    load_put_u8(out, (uint8_t)(len >> 8));
    load_put_u8(out, (uint8_t)len);
    load_put_u8(out, (uint8_t)type);
    load_put_u8(out, flags);
    load_put_be32(out, stream);
    if (len > 0)
        load_put(out, data, len);
}

/* A header field as a literal that is not indexed; names of `index` 0 follow
 * as text. */
static void put_header(struct hf_buf *out, uint8_t index, const char *name,
                       const char *value)
{
    if (index < 15) {
        load_put_u8(out, index);
    } else {
        load_put_u8(out, 15);
        load_put_u8(out, (uint8_t)(index - 15));
    }
    if (index == 0) {
        load_put_u8(out, (uint8_t)strlen(name));
        load_put(out, name, strlen(name));
    }
    load_put_u8(out, (uint8_t)strlen(value));
    load_put(out, value, strlen(value));
}

/* Protocol buffers: only what the requests need. */
static void put_varint(struct hf_buf *out, uint64_t number)
{
    while (number >= 0x80) {
        load_put_u8(out, (uint8_t)(number | 0x80));
        number >>= 7;
    }
    load_put_u8(out, (uint8_t)number);
}

static void put_number(struct hf_buf *out, unsigned field, uint64_t number)
{
    put_varint(out, field << 3);
    put_varint(out, number);
}

static void put_bytes(struct hf_buf *out, unsigned field, const void *data,
                      size_t len)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, len);
    load_put(out, data, len);
}

static bool get_varint(const unsigned char *data, size_t len, size_t *at,
                       uint64_t *out)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && *at < len; shift += 7) {
        unsigned char byte = data[(*at)++];
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = number;
            return true;
        }
    }
    return false;
}

/* The number (or, for bytes, the place and length) of a field; false if the
 * message has none. */
static bool get_field(struct hf_bytes message, unsigned field, uint64_t *number,
                      struct hf_bytes *bytes)
{
    const unsigned char *data = (const unsigned char *)message.data;
    size_t at = 0;
    uint64_t tag, value;
    while (get_varint(data, message.len, &at, &tag) &&
           get_varint(data, message.len, &at, &value)) {
        bool is_bytes = (tag & 7) == 2;
        if (is_bytes && value > message.len - at)
            return false;
        if (tag >> 3 == field) {
            *number = value;
            *bytes = hf_bytes(message.data + at, is_bytes ? value : 0);
            return true;
        }
        if (is_bytes)
            at += value;
    }
    return false;
}

/* Sends `etcd->message` to `path` on a stream of its own. */
static void call(struct load_client *client, const char *path)
{
    struct etcd *etcd = client->state;
    struct hf_buf *headers = &etcd->headers;
    headers->len = 0;
    load_put_u8(headers, 0x83); /* :method POST */
    load_put_u8(headers, 0x86); /* :scheme http */
    put_header(headers, 4, NULL, path);
    put_header(headers, 1, NULL, "localhost");
    put_header(headers, 31, NULL, "application/grpc");
    put_header(headers, 0, "te", "trailers");
    put_frame(&client->out, FRAME_HEADERS, FLAG_HEADERS, etcd->stream,
              headers->data, headers->len);

    size_t len = etcd->message.len;
    struct hf_buf *out = &client->out;
    put_frame(out, FRAME_DATA, FLAG_END, etcd->stream, NULL, 0);
    size_t payload = GRPC_HEAD + len;
    unsigned char *head = (unsigned char *)out->data + out->len - FRAME_HEAD;
    head[0] = (unsigned char)(payload >> 16);
    head[1] = (unsigned char)(payload >> 8);
    head[2] = (unsigned char)payload;
    load_put_u8(out, 0); /* not compressed */
    load_put_be32(out, (uint32_t)len);
    load_put(out, etcd->message.data, len);
    etcd->body.len = 0;
}

static bool by_transaction(void)
{
    return !strcmp(load_opts()->recipe, "txn");
}

static void greet(struct load_client *client)
{
    struct etcd *etcd = client->state;
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    load_put(&client->out, preface, sizeof preface - 1);
    /* Initial window of streams, then of the connection: as large as can be,
     * so that no answer of a run ever waits for an update. */
    static const unsigned char settings[] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    put_frame(&client->out, FRAME_SETTINGS, 0, 0, settings, sizeof settings);
    static const unsigned char window[] = {0x7f, 0xff, 0x00, 0x00};
    put_frame(&client->out, FRAME_WINDOW, 0, 0, window, sizeof window);
    etcd->step = STEP_LEASE;
    etcd->stream = 1;
    etcd->message.len = 0;
    put_number(&etcd->message, 1, LEASE_TTL_S);
    call(client, "/etcdserverpb.Lease/LeaseGrant");
}

static size_t lock_name(const struct load_client *client, char *out,
                        size_t size)
{
    int len = load_opts()->handoff
                  ? snprintf(out, size, "bench:hot")
                  : snprintf(out, size, "bench:%u:1", client->number);
    return (size_t)len;
}

/* The lease runs out by itself; a client of etcd may just hang up. */
static void leave(struct load_client *client)
{
    static const unsigned char nothing[8];
    put_frame(&client->out, FRAME_GOAWAY, 0, 0, nothing, sizeof nothing);
}

enum compare_target { COMPARE_CREATED = 1, COMPARE_VALUE = 3 };

/* A transaction: `operation` if the key compares equal. */
static void put_transaction(struct etcd *etcd, enum compare_target target,
                            unsigned operation, const struct hf_buf *request)
{
    struct hf_buf part = {0};
    put_number(&part, 2, target);
    put_bytes(&part, 3, etcd->key, etcd->key_len);
    if (target == COMPARE_CREATED)
        put_number(&part, 5, 0);
    else
        put_bytes(&part, 7, "owner", 5);
    etcd->message.len = 0;
    put_bytes(&etcd->message, 1, part.data, part.len);
    part.len = 0;
    put_bytes(&part, operation, request->data, request->len);
    put_bytes(&etcd->message, 2, part.data, part.len);
    hf_buf_destroy(&part);
}

static void begin(struct load_client *client)
{
    struct etcd *etcd = client->state;
    char name[64];
    size_t len = lock_name(client, name, sizeof name);
    etcd->step = STEP_LOCK;
    if (!by_transaction()) {
        etcd->message.len = 0;
        put_bytes(&etcd->message, 1, name, len);
        put_number(&etcd->message, 2, etcd->lease);
        call(client, "/v3lockpb.Lock/Lock");
        return;
    }
    struct hf_buf put = {0};
    memcpy(etcd->key, name, len);
    etcd->key_len = len;
    put_bytes(&put, 1, name, len);
    put_bytes(&put, 2, "owner", 5);
    put_number(&put, 3, etcd->lease);
    put_transaction(etcd, COMPARE_CREATED, 2, &put);
    hf_buf_destroy(&put);
    call(client, "/etcdserverpb.KV/Txn");
}

static void unlock(struct load_client *client)
{
    struct etcd *etcd = client->state;
    etcd->step = STEP_UNLOCK;
    if (!by_transaction()) {
        etcd->message.len = 0;
        put_bytes(&etcd->message, 1, etcd->key, etcd->key_len);
        call(client, "/v3lockpb.Lock/Unlock");
    } else {
        struct hf_buf erase = {0};
        put_bytes(&erase, 1, etcd->key, etcd->key_len);
        put_transaction(etcd, COMPARE_VALUE, 3, &erase);
        hf_buf_destroy(&erase);
        call(client, "/etcdserverpb.KV/Txn");
    }
    load_released(client);
}

static void check_transaction(struct hf_bytes message)
{
    uint64_t succeeded = 0;
    struct hf_bytes bytes;
    if (!get_field(message, 2, &succeeded, &bytes) || succeeded == 0)
        load_fail("a transaction did not succeed");
}

static void answered(struct load_client *client, struct hf_bytes message)
{
    struct etcd *etcd = client->state;
    uint64_t number;
    struct hf_bytes bytes;
    switch (etcd->step) {
    case STEP_LEASE:
        if (!get_field(message, 2, &etcd->lease, &bytes))
            load_fail("no lease granted");
        load_ready(client);
        return;
    case STEP_LOCK:
        if (by_transaction()) {
            check_transaction(message);
        } else {
            if (!get_field(message, 2, &number, &bytes) ||
                bytes.len > sizeof etcd->key)
                load_fail("no key in the lock's answer");
            memcpy(etcd->key, bytes.data, bytes.len);
            etcd->key_len = bytes.len;
        }
        load_granted(client);
        return;
    case STEP_UNLOCK:
        if (by_transaction())
            check_transaction(message);
        load_done(client);
        return;
    }
}

/* The stream is over: its message is whole, or the call failed. */
static void finish(struct load_client *client)
{
    struct etcd *etcd = client->state;
    if (etcd->body.len < GRPC_HEAD)
        load_fail("a call failed (client %u, step %d)", client->number,
                  (int)etcd->step);
    etcd->stream += 2;
    answered(client,
             hf_bytes(etcd->body.data + GRPC_HEAD, etcd->body.len - GRPC_HEAD));
}

static void take_frame(struct load_client *client, enum frame_type type,
                       uint8_t flags, const unsigned char *data, size_t len)
{
    struct etcd *etcd = client->state;
    switch (type) {
    case FRAME_DATA:
        if (flags & FLAG_PADDED)
            load_fail("padded data");
        load_put(&etcd->body, data, len);
        break;
    case FRAME_SETTINGS:
        if (!(flags & FLAG_END))
            put_frame(&client->out, FRAME_SETTINGS, FLAG_END, 0, NULL, 0);
        return;
    case FRAME_PING:
        if (!(flags & FLAG_END))
            put_frame(&client->out, FRAME_PING, FLAG_END, 0, data, len);
        return;
    case FRAME_RESET:
    case FRAME_GOAWAY:
        load_fail("the server gave up the connection (frame %d)", (int)type);
    case FRAME_HEADERS:
        break;
    case FRAME_WINDOW:
        return;
    }
    if (flags & FLAG_END)
        finish(client);
}

static size_t take(struct load_client *client, const unsigned char *data,
                   size_t len)
{
    size_t at = 0;
    while (len - at >= FRAME_HEAD) {
        const unsigned char *head = data + at;
        size_t size =
            (size_t)head[0] << 16 | (size_t)head[1] << 8 | (size_t)head[2];
        if (len - at < FRAME_HEAD + size)
            break;
        at += FRAME_HEAD + size;
        take_frame(client, (enum frame_type)head[3], head[4], head + FRAME_HEAD,
                   size);
    }
    return at;
}

int main(int argc, char **argv)
{
    static const struct load_protocol protocol = {
        .name = "etcd",
        .recipes = " recipe txn ",
        .state_bytes = sizeof(struct etcd),
        .greet = greet,
        .begin = begin,
        .release = unlock,
        .leave = leave,
        .take = take,
    };
    return load_main(argc, argv, &protocol);
}
