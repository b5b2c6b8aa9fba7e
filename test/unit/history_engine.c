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
 * seen by anybody, nor is each told in every seed.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "base/random.h"
#include "history/history.h"
#include "hold/engine.h"
#include "server/reply.h"
#include "server/server.h"
#include "support/history.h"
#include "support/lies.h"
#include "support/test.h"

#define CLIENTS   6
#define CALLS     400
#define LIE_SEEDS 40
#define LOCKS     3
#define SKUS      2
#define IDS       6
#define FAR_US    1000000000000u /* the engine's date when all begins */
#define TEXT      200

enum state { IDLE, SENT, WAITING, ANSWERED };

struct client {
    uint32_t number; /* of its connection */
    enum state state;
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

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
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
    struct reply reply = {.out = &client->reply, .codec = &resp2_codec};

    client->reply.len = 0;
    reply_write(&reply, code, body, 0);
    CHECK(!reply.failed);
    if (w->lie != LIE_NONE && w->id > w->lie_after &&
        test_lie(w->lie, client->text, &client->reply))
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

static size_t split(const char *text, struct hf_bytes *words)
{
    size_t count = 0;

    for (; *text != '\0'; count++) {
        size_t len = strcspn(text, " ");
        words[count] = hf_bytes(text, len);
        text += len + (text[len] == ' ');
    }
    return count;
}

/* The request has arrived. */
static void run(struct world *w, struct client *client)
{
    static struct hold_command c;
    struct hf_bytes words[32];
    size_t count = split(client->text, words);
    size_t named;
    char error[PARSE_ERROR_MAX];

    mark(w, client->number, client->id, HISTORY_ARRIVED);
    const struct command *command = table_find(words, count, &named);
    CHECK(command != NULL);
    if (starts(client->text, "FLUSHALL")) {
        c = (struct hold_command){.kind = HOLD_FLUSH};
    } else if (parse_command(command, words + named, count - named, &c,
                             error) != HF_OK) {
        client->reply.len = 0;
        CHECK_EQ(hf_buf_format(&client->reply, "-BADARG malformed\r\n"), HF_OK);
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
        hf_buf_destroy(&body);
        return;
    }
    told_waiters(w, out);
}

/* Clients. */

static void say(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct client *client, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(client->text, TEXT, format, args);
    va_end(args);
}

static void choose_lock(struct world *w, struct client *client)
{
    int n = (int)(client - w->clients);
    int lock = client->lock;
    int ttl = 5 + (int)below(w, 300);
    uint64_t token = client->tokens[lock];

    switch (below(w, 8)) {
    case 0:
    case 1:
    case 2:
        say(client, "LOCK l%d OWNER o%d TTL %d WAIT %d", lock, n, ttl,
            below(w, 2) == 0 ? 0 : (int)below(w, 200));
        break;
    case 3:
    case 4:
        say(client, "UNLOCK l%d %" PRIu64, lock, token > 0 ? token : 1);
        break;
    case 5:
        say(client, "RENEW l%d %" PRIu64 " TTL %d", lock, token > 0 ? token : 1,
            ttl);
        break;
    case 6:
        say(client, "LOCKINFO l%d", lock);
        break;
    default:
        if (below(w, 2) == 0)
            say(client, "LOCKS");
        else
            say(client, "FENCE f %" PRIu64, token);
        break;
    }
}

static void choose_stock(struct world *w, struct client *client)
{
    uint64_t id =
        below(w, 2) == 0 ? below(w, IDS) : 100 + w->name - below(w, 4);
    int sku = (int)below(w, SKUS);
    int ttl = 10 + (int)below(w, 600);

    switch (below(w, 9)) {
    case 0:
        say(client, "STOCK SET s%d %d", sku, 5 + (int)below(w, 30));
        break;
    case 1:
        say(client, "STOCK ADD s%d %d", sku, (int)below(w, 9) - 3);
        break;
    case 2:
        say(client, "STOCK GET s%d", sku);
        break;
    case 3:
    case 4:
        say(client, "RESERVE r%" PRIu64 " ITEM s0 %d ITEM s%d 1 TTL %d",
            below(w, 3) == 0 ? below(w, IDS) : 100 + w->name,
            1 + (int)below(w, 3), sku, ttl);
        break;
    case 5:
        say(client, "%s r%" PRIu64, below(w, 2) == 0 ? "CONFIRM" : "CANCEL",
            id);
        break;
    case 6:
        say(client, "RESERVATION r%" PRIu64, id);
        break;
    case 7:
        say(client, "EXTEND r%" PRIu64 " TTL %d", id, ttl / 2);
        break;
    default:
        if (below(w, 40) == 0)
            say(client, "FLUSHALL");
        else if (below(w, 10) == 0)
            say(client, "STOCK DEL s%d", sku);
        else
            say(client, "STOCK LIST");
        break;
    }
}

static void choose(struct world *w, struct client *client)
{
    static const char *const questions[] = {"LOCKINFO",    "LOCKS",
                                            "STOCK GET",   "STOCK LIST",
                                            "RESERVATION", "FLUSHALL"};
    bool request = below(w, 3) == 0;
    size_t len;

    client->lock = (int)below(w, LOCKS);
    if (below(w, 2) == 0)
        choose_lock(w, client);
    else
        choose_stock(w, client);
    w->name++;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        request = request && !starts(client->text, questions[i]);
    len = strlen(client->text);
    if (request)
        snprintf(client->text + len, TEXT - len, " REQ q%" PRIu64, w->name);
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
    count = split(client->text, words);
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
    c = (struct hold_command){.kind = HOLD_RESTART,
                              .flags = HOLD_GRAPH | HOLD_SETTLED};
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
            CHECK_EQ(test_save_history(w.history, path, error), HF_OK);
    }
    for (int i = 0; i < CLIENTS; i++)
        hf_buf_destroy(&w.clients[i].reply);
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
        for (uint64_t seed = 0; seed < LIE_SEEDS; seed++)
            noticed += live(test_seed() + seed, (enum lie)lie, false) > 0;
        printf("%s: noticed in %d of %d seeds\n", names[lie], noticed,
               LIE_SEEDS);
        CHECK(noticed > 0);
    }
}
