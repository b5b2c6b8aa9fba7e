/* history_engine.c - a server that keeps its promises is never accused, and a
 * single lie is noticed.
 *
 * The server is the engine itself with a network around it, all by one seed:
 * a call takes effect when it arrives and is answered later or never. Clients
 * lose their connections, repeat what was not answered, wait, and die; the
 * server crashes, the date is set. Half of the seeds tell the checker what the
 * network knows.
 *
 * HISTORY_SEEDS sets how many seeds, HISTORY_FILE where a history goes that is
 * accused.
 *
 * A lie changes one reply: a token, a number, a status. Not every lie can be
 * seen by anybody; each kind must be seen in many seeds.
 */
#include <inttypes.h>

#include "base/random.h"
#include "history/history.h"
#include "hold/engine.h"
#include "server/server.h"
#include "support/test.h"

#define CLIENTS 6
#define CALLS   400
#define LOCKS   3
#define SKUS    2
#define IDS     6
#define FAR_US  1000000000000u /* the engine's date when all begins */
#define TEXT    200

enum state { IDLE, SENT, WAITING, ANSWERED };

struct client {
    uint32_t number; /* of its connection */
    enum state state;
    bool cut;         /* the server has not heard of it */
    uint64_t due_us;  /* when the next step happens */
    uint64_t gone_us; /* when the server hears; 0: the client is there */
    uint64_t id;
    uint64_t ticket;
    uint64_t tokens[LOCKS];
    int lock;
    char text[TEXT];
    char again[TEXT]; /* with a REQ, not answered */
    struct hf_buf reply;
};

enum lie {
    LIE_NONE,
    LIE_TOKEN,
    LIE_SAFE,
    LIE_COUNT,
    LIE_FREE,
    LIE_GRANT,
    LIE_RESERVED,
    LIE_SOLD,
    LIE_TOTAL,
    LIE_STATUS,
    LIE_LOST,
    LIES,
};

struct world {
    struct hf_random random;
    struct history *history;
    struct hold_engine *engine;
    struct client clients[CLIENTS];
    uint64_t now_us;
    int64_t shift_us; /* of the engine's date */
    uint64_t id;
    uint32_t connection;
    uint64_t name;
    bool marks;
    enum lie lie; /* LIE_NONE again once it is told */
    uint64_t lie_after;
    uint64_t keep_ms; /* of requests and ended reservations; 0: default */
    char record[HOLD_RECORD_MAX];
};

static uint64_t below(struct world *w, uint64_t bound)
{
    return hf_random_below(&w->random, bound);
}

static uint64_t delay(struct world *w)
{
    return below(w, 8) == 0 ? below(w, 60000) : 1 + below(w, 900);
}

static void mark(struct world *w, uint32_t client, uint64_t id,
                 enum history_event event)
{
    bool network = event == HISTORY_ARRIVED || event == HISTORY_SENT ||
                   event == HISTORY_GONE;

    if (!network || w->marks)
        CHECK_EQ(history_mark(w->history, w->now_us, client, id, event), HF_OK);
}

/* The engine. */

static void told_waiters(struct world *w, const struct hold_out *out);

static const struct hold_out *apply(struct world *w, struct hold_command *c)
{
    c->now_us = (uint64_t)((int64_t)w->now_us + w->shift_us);
    CHECK_EQ(hold_prepare(w->engine, c), HF_OK);
    size_t len = hold_encode(c, w->record);
    const struct hold_out *out =
        hold_apply(w->engine, hf_bytes(w->record, len));
    CHECK(out != NULL);
    return out;
}

/* Everything that is due happens before anything else does. */
static void tick(struct world *w)
{
    static struct hold_command c;
    uint64_t now_us = (uint64_t)((int64_t)w->now_us + w->shift_us);

    while (hold_next_due_us(w->engine) <= now_us) {
        c = (struct hold_command){.kind = HOLD_TICK};
        told_waiters(w, apply(w, &c));
    }
}

/* Lies. */

static bool change_number(struct hf_buf *reply, const char *field, int64_t by)
{
    struct resp_value value;
    char text[64];

    if (resp_field(hf_buf_bytes(reply), field, &value) != HF_OK ||
        value.kind != RESP_NUMBER || value.number + by < 0)
        return false;
    int old_len = snprintf(text, sizeof text, "%s\r\n:%" PRId64 "\r\n", field,
                           value.number);
    char *at = memmem(reply->data, reply->len, text, (size_t)old_len);
    CHECK(at != NULL);
    size_t start = (size_t)(at - reply->data);
    size_t rest = reply->len - start - (size_t)old_len;
    int len = snprintf(text, sizeof text, "%s\r\n:%" PRId64 "\r\n", field,
                       value.number + by);
    CHECK_EQ(hf_buf_reserve(reply, 32), HF_OK);
    memmove(reply->data + start + len, reply->data + start + old_len, rest);
    memcpy(reply->data + start, text, (size_t)len);
    reply->len = start + (size_t)len + rest;
    return true;
}

static bool say_instead(struct hf_buf *reply, const char *text)
{
    reply->len = 0;
    CHECK_EQ(hf_buf_format(reply, "%s\r\n", text), HF_OK);
    return true;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool tell_lie(struct world *w, const char *asked, struct hf_buf *reply)
{
    bool fine = reply->data[0] != '-';
    char *status;

    switch (w->lie) {
    case LIE_TOKEN:
        return starts(asked, "LOCK ") && fine &&
               change_number(reply, "token", below(w, 2) == 0 ? -1 : 1);
    case LIE_SAFE:
        return (starts(asked, "LOCK ") || starts(asked, "RENEW ")) && fine &&
               change_number(reply, "safe_ms", 100000);
    case LIE_COUNT:
        return starts(asked, "LOCK ") && fine &&
               change_number(reply, "count", 1);
    case LIE_FREE:
        return starts(asked, "LOCKINFO") && fine &&
               say_instead(reply, "-NOTFOUND nobody holds the lock");
    case LIE_GRANT:
        return starts(asked, "LOCK ") && reply->data[1] == 'B' &&
               say_instead(reply, "*8\r\n$5\r\ntoken\r\n:99999\r\n$7\r\n"
                                  "safe_ms\r\n:500\r\n$5\r\ncount\r\n:1\r\n"
                                  "$9\r\nwaited_ms\r\n:0");
    case LIE_RESERVED:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "reserved", 1) &&
               change_number(reply, "available", -1);
    case LIE_SOLD:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "sold", 1) &&
               change_number(reply, "available", -1);
    case LIE_TOTAL:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "total", 1) &&
               change_number(reply, "available", 1);
    case LIE_STATUS:
        status = memmem(reply->data, reply->len, "$9\r\nCONFIRMED", 13);
        if (!starts(asked, "RESERVATION ") || status == NULL)
            return false;
        memcpy(status + 4, "CANCELLED", 9);
        return true;
    case LIE_LOST:
        return starts(asked, "RENEW ") && fine &&
               say_instead(reply, "-LOST lock is no longer held");
    default:
        return false;
    }
}

static void on_its_way(struct world *w, struct client *client)
{
    mark(w, client->number, client->id, HISTORY_SENT);
    client->state = ANSWERED;
    client->ticket = 0;
    client->due_us = w->now_us + delay(w);
}

static void answer(struct world *w, struct client *client, enum hold_code code,
                   struct hf_bytes body)
{
    client->reply.len = 0;
    CHECK_EQ(reply_write(&client->reply, 2, code, body), HF_OK);
    if (w->lie != LIE_NONE && w->id > w->lie_after &&
        tell_lie(w, client->text, &client->reply))
        w->lie = LIE_NONE;
    on_its_way(w, client);
}

static void told_waiters(struct world *w, const struct hold_out *out)
{
    for (size_t i = 0; i < out->answer_count; i++) {
        const struct hold_answer *given = &out->answers[i];
        for (int j = 0; j < CLIENTS; j++) {
            if (w->clients[j].ticket == given->ticket && given->ticket != 0)
                answer(w, &w->clients[j], given->code, given->body);
        }
    }
}

/* The request has arrived. */
static void run(struct world *w, struct client *client)
{
    static struct hold_command c;
    struct hf_bytes words[32];
    size_t count = 0;
    size_t named;
    char error[PARSE_ERROR_MAX];

    for (const char *at = client->text; *at != '\0'; count++) {
        size_t len = strcspn(at, " ");
        words[count] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    mark(w, client->number, client->id, HISTORY_ARRIVED);
    const struct command *command = table_find(words, count, &named);
    CHECK(command != NULL);
    if (starts(client->text, "FLUSHALL")) {
        c = (struct hold_command){.kind = HOLD_FLUSH};
    } else if (parse_command(command, words + named, count - named, &c,
                             error) != HF_OK) {
        say_instead(&client->reply, "-BADARG malformed");
        on_its_way(w, client);
        return;
    }
    tick(w);
    if (!hold_kind_is_write(c.kind)) {
        c.now_us = (uint64_t)((int64_t)w->now_us + w->shift_us);
        const struct hold_out *out = hold_ask(w->engine, &c);
        CHECK(out != NULL);
        answer(w, client, out->code, out->body);
        return;
    }
    const struct hold_out *out = apply(w, &c);
    if (out->code == HOLD_WAITING) {
        client->state = WAITING;
        client->ticket = out->ticket;
        client->due_us = UINT64_MAX;
    } else {
        struct hf_buf body = {0};
        enum hold_code code = out->code;
        CHECK_EQ(hf_buf_append(&body, out->body.data, out->body.len), HF_OK);
        told_waiters(w, out);
        answer(w, client, code, hf_buf_bytes(&body));
        hf_buf_release(&body);
        return;
    }
    told_waiters(w, out);
}

/* Clients. */

static void choose(struct world *w, struct client *client)
{
    int n = (int)(client - w->clients);
    int lock = (int)below(w, LOCKS);
    int ttl = 5 + (int)below(w, 300);
    uint64_t id = below(w, IDS);
    char *text = client->text;
    bool request = below(w, 3) == 0;

    client->lock = lock;
    switch (below(w, 16)) {
    case 0:
    case 1:
    case 2:
        snprintf(text, TEXT, "LOCK l%d OWNER o%d TTL %d WAIT %d", lock, n, ttl,
                 below(w, 2) == 0 ? 0 : (int)below(w, 200));
        break;
    case 3:
    case 4:
        snprintf(text, TEXT, "UNLOCK l%d %" PRIu64, lock,
                 client->tokens[lock] + 1 - (client->tokens[lock] > 0));
        break;
    case 5:
        snprintf(text, TEXT, "RENEW l%d %" PRIu64 " TTL %d", lock,
                 client->tokens[lock] + 1 - (client->tokens[lock] > 0), ttl);
        break;
    case 6:
        snprintf(text, TEXT, "LOCKINFO l%d", lock);
        request = false;
        break;
    case 7:
        snprintf(text, TEXT, below(w, 2) == 0 ? "LOCKS" : "STOCK LIST");
        request = false;
        break;
    case 8:
        snprintf(text, TEXT, "STOCK SET s%d %d", (int)below(w, SKUS),
                 5 + (int)below(w, 30));
        break;
    case 9:
        snprintf(text, TEXT, "STOCK ADD s%d %d", (int)below(w, SKUS),
                 (int)below(w, 9) - 3);
        break;
    case 10:
        snprintf(text, TEXT, "STOCK GET s%d", (int)below(w, SKUS));
        request = false;
        break;
    case 11:
    case 12:
        snprintf(text, TEXT,
                 "RESERVE r%" PRIu64 " ITEM s0 %d ITEM s%d 1 TTL %d",
                 below(w, 3) == 0 ? id : 100 + w->name, 1 + (int)below(w, 3),
                 (int)below(w, SKUS), ttl * 2);
        break;
    case 13:
        id = below(w, 2) == 0 ? id : 100 + w->name - below(w, 4);
        snprintf(text, TEXT, "%s r%" PRIu64,
                 below(w, 2) == 0 ? "CONFIRM" : "CANCEL", id);
        break;
    case 14:
        id = below(w, 2) == 0 ? id : 100 + w->name - below(w, 4);
        snprintf(text, TEXT, "RESERVATION r%" PRIu64, id);
        request = false;
        break;
    default:
        if (below(w, 60) == 0) {
            snprintf(text, TEXT, "FLUSHALL");
            request = false;
        } else if (below(w, 20) == 0) {
            snprintf(text, TEXT, "STOCK DEL s%d", (int)below(w, SKUS));
        } else if (below(w, 3) == 0) {
            snprintf(text, TEXT, "FENCE f %" PRIu64, client->tokens[lock]);
        } else {
            snprintf(text, TEXT, "EXTEND r%" PRIu64 " TTL %d", id, ttl);
        }
        break;
    }
    w->name++;
    if (request)
        snprintf(text + strlen(text), TEXT - strlen(text), " REQ q%" PRIu64,
                 w->name);
}

static void ask(struct world *w, struct client *client)
{
    struct hf_bytes words[32];
    size_t count = 0;

    if (client->again[0] != '\0' && below(w, 2) == 0)
        memcpy(client->text, client->again, TEXT);
    else
        choose(w, client);
    client->again[0] = '\0';
    for (const char *at = client->text; *at != '\0'; count++) {
        size_t len = strcspn(at, " ");
        words[count] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    client->id = ++w->id;
    CHECK_EQ(history_call(w->history, w->now_us, client->number, client->id,
                          words, count),
             HF_OK);
    client->state = SENT;
    client->due_us = w->now_us + delay(w);
}

static void receive(struct world *w, struct client *client)
{
    struct resp_value value;
    struct hf_bytes reply = hf_buf_bytes(&client->reply);

    CHECK_EQ(history_answer(w->history, w->now_us, client->number, client->id,
                            reply),
             HF_OK);
    if (starts(client->text, "LOCK ") &&
        resp_field(reply, "token", &value) == HF_OK)
        client->tokens[client->lock] = (uint64_t)value.number;
    client->state = IDLE;
    client->due_us = w->now_us + delay(w);
}

static void reconnect(struct world *w, struct client *client)
{
    client->number = ++w->connection;
    client->state = IDLE;
    client->ticket = 0;
    client->gone_us = 0;
    client->due_us = w->now_us + delay(w);
    mark(w, client->number, 0, HISTORY_OPEN);
}

/* The client leaves: what it sent may still arrive, what it was to be told is
 * lost. The server hears of it a little later. */
static void leave(struct world *w, struct client *client)
{
    mark(w, client->number, 0, HISTORY_CLOSED);
    if (client->state != IDLE && strstr(client->text, " REQ ") != NULL)
        memcpy(client->again, client->text, TEXT);
    client->gone_us = w->now_us + delay(w);
}

static void hear_of_end(struct world *w, struct client *client)
{
    static struct hold_command c;

    mark(w, client->number, 0, HISTORY_GONE);
    if (client->state == WAITING) {
        tick(w);
        if (client->state == WAITING) {
            c = (struct hold_command){.kind = HOLD_ABANDON,
                                      .token = client->ticket};
            told_waiters(w, apply(w, &c));
        }
    }
    reconnect(w, client);
}

static void step(struct world *w, struct client *client)
{
    if (client->gone_us != 0 && client->gone_us <= client->due_us) {
        hear_of_end(w, client);
        return;
    }
    if (client->gone_us == 0 && below(w, 25) == 0) {
        leave(w, client);
        return;
    }
    if (client->state == SENT)
        run(w, client);
    else if (client->gone_us != 0)
        client->due_us = UINT64_MAX; /* nobody is there to take it */
    else if (client->state == ANSWERED)
        receive(w, client);
    else if (client->state == IDLE)
        ask(w, client);
}

static void restart(struct world *w)
{
    static struct hold_command c;
    bool crash = below(w, 2) == 0;

    tick(w);
    mark(w, 0, 0, crash ? HISTORY_CRASH : HISTORY_STOP);
    w->now_us += below(w, 4) * 100000;
    if (below(w, 4) == 0) {
        mark(w, 0, 0, HISTORY_DATE);
        w->shift_us += (int64_t)below(w, 2000000) - 500000;
    }
    /* its time never goes back */
    int64_t least_us = (int64_t)hold_now_us(w->engine) - (int64_t)w->now_us;
    w->shift_us = w->shift_us < least_us ? least_us : w->shift_us;
    mark(w, 0, 0, HISTORY_START);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &w->clients[i];
        if (client->gone_us == 0)
            leave(w, client);
        client->ticket = 0;
    }
    c = (struct hold_command){.kind = HOLD_RESTART};
    (void)apply(w, &c);
    for (int i = 0; i < CLIENTS; i++)
        reconnect(w, &w->clients[i]);
}

/* The client that is next, after the instant of now. */
static struct client *next(struct world *w, uint64_t *at_us)
{
    struct client *first = NULL;

    *at_us = UINT64_MAX;
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &w->clients[i];
        uint64_t us = client->due_us;
        if (client->gone_us != 0 && client->gone_us < us)
            us = client->gone_us;
        if (us < *at_us) {
            first = client;
            *at_us = us;
        }
    }
    return first;
}

static void keep_briefly(struct world *w)
{
    static struct hold_command c;

    w->keep_ms = 1 + below(w, 200);
    c = (struct hold_command){.kind = HOLD_BOUNDS};
    CHECK_EQ(hold_add_item(&c, hf_bytes_text("ended_keep_ms"), w->keep_ms),
             HF_OK);
    CHECK_EQ(hold_add_item(&c, hf_bytes_text("request_keep_ms"), w->keep_ms),
             HF_OK);
    CHECK_EQ(apply(w, &c)->code, HOLD_OK);
}

static void begin(struct world *w, uint64_t seed, enum lie lie)
{
    *w = (struct world){.lie = lie};
    hf_random_init(&w->random, seed);
    w->marks = below(w, 2) == 0;
    w->shift_us = (int64_t)FAR_US;
    w->lie_after = below(w, CALLS / 2);
    w->history = history_new();
    w->engine = hold_new((struct hf_hash_seed){{1, seed}});
    CHECK(w->history != NULL && w->engine != NULL);
    mark(w, 0, 0, HISTORY_START);
    if (below(w, 3) == 0)
        keep_briefly(w);
    for (int i = 0; i < CLIENTS; i++)
        reconnect(w, &w->clients[i]);
}

/* Lives until so many calls were made; the violations. */
static uint64_t live(uint64_t seed, enum lie lie, bool must_be_good)
{
    static struct world w;
    static struct history_report report;
    uint64_t at_us;
    bool restarts = seed % 2 == 0;

    begin(&w, seed, lie);
    while (w.id < CALLS) {
        struct client *client = next(&w, &at_us);
        uint64_t due_us = hold_next_due_us(w.engine);
        uint64_t time_us = due_us == UINT64_MAX
                               ? UINT64_MAX
                               : (uint64_t)((int64_t)due_us - w.shift_us);
        if (due_us != UINT64_MAX && time_us < at_us) {
            w.now_us = time_us > w.now_us ? time_us : w.now_us;
            tick(&w);
            continue;
        }
        CHECK(client != NULL);
        w.now_us = at_us > w.now_us ? at_us : w.now_us;
        step(&w, client);
        if (restarts && below(&w, 400) == 0)
            restart(&w);
    }
    CHECK_EQ(history_check(
                 w.history,
                 &(struct history_opts){.request_keep_us = w.keep_ms * 1000,
                                        .ended_keep_us = w.keep_ms * 1000,
                                        .answer_within_us = 1000000,
                                        .start_slack_us = 1},
                 &report),
             HF_OK);
    if (report.violations > 0 && must_be_good) {
        const char *path = getenv("HISTORY_FILE");
        char error[HISTORY_ERROR_MAX];
        history_story(w.history, &report, 0, stderr);
        if (path != NULL)
            CHECK_EQ(history_save(w.history, path, error), HF_OK);
    }
    for (int i = 0; i < CLIENTS; i++)
        hf_buf_release(&w.clients[i].reply);
    history_free(w.history);
    hold_free(w.engine);
    if (report.violations > 0 && must_be_good)
        test_fail(__FILE__, __LINE__, "seed %" PRIu64 ": %s: %s", seed,
                  report.found[0].rule, report.found[0].text);
    return report.violations;
}

static uint64_t seeds(void)
{
    const char *text = getenv("HISTORY_SEEDS");
    uint64_t count = 300;

    if (text != NULL)
        (void)hf_parse_u64(hf_bytes_text(text), &count);
    return count;
}

TEST(a_server_that_keeps_its_promises_is_never_accused)
{
    table_init();
    reply_init();
    for (uint64_t seed = 0; seed < seeds(); seed++)
        (void)live(test_seed() + seed, LIE_NONE, true);
}

TEST(every_kind_of_lie_is_noticed)
{
    static const char *const names[LIES] = {
        "none",     "token", "safe_ms", "count",  "free", "grant",
        "reserved", "sold",  "total",   "status", "lost"};

    table_init();
    reply_init();
    for (int lie = LIE_TOKEN; lie < LIES; lie++) {
        int noticed = 0;
        for (uint64_t seed = 0; seed < 20; seed++)
            noticed += live(test_seed() + seed, (enum lie)lie, false) > 0;
        printf("%s: noticed in %d of 20 seeds\n", names[lie], noticed);
        CHECK(noticed >= 4);
    }
}
