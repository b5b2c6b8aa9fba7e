/* load.c - workers that load a server; all that they are told is written down.
 */
#include "support/load.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "holdfast/clock.h"
#include "support/test.h"
#include "support/threads.h"

#define WORDS_MAX 24
#define LONG_MS   3600000
#define LONGER_MS 7200000
#define LIMITS    4

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

void test_load_init(struct load *load, uint64_t seed)
{
    pthread_mutex_init(&load->mutex, NULL);
    load->history = history_new();
    CHECK(load->history != NULL);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        load->workers[i].index = i;
        hf_random_init(&load->workers[i].random, seed + (uint64_t)i);
    }
}

void test_load_destroy(struct load *load)
{
    for (int i = 0; i < LOAD_WORKERS; i++)
        test_wire_close(&load->workers[i].wire);
    history_free(load->history);
    load->history = NULL;
}

/* Writing down. Nothing of it fails but for memory, and then all is lost. */

static uint64_t write_call(struct load *load, uint32_t client, const char *text)
{
    struct hf_bytes words[WORDS_MAX];
    size_t count = 0;

    for (const char *at = text; *at != '\0'; count++) {
        size_t len = strcspn(at, " ");
        if (count == WORDS_MAX)
            abort();
        words[count] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    pthread_mutex_lock(&load->mutex);
    uint64_t id = ++load->id;
    if (history_call(load->history, now_ns() / 1000, client, id, words,
                     count) != HF_OK)
        abort();
    pthread_mutex_unlock(&load->mutex);
    return id;
}

static void write_answer(struct load *load, uint32_t client, uint64_t id,
                         struct hf_bytes reply)
{
    pthread_mutex_lock(&load->mutex);
    if (history_answer(load->history, now_ns() / 1000, client, id, reply) !=
        HF_OK)
        abort();
    pthread_mutex_unlock(&load->mutex);
}

void test_load_mark(struct load *load, uint32_t client,
                    enum history_event event)
{
    pthread_mutex_lock(&load->mutex);
    if (history_mark(load->history, now_ns() / 1000, client, 0, event) != HF_OK)
        abort();
    pthread_mutex_unlock(&load->mutex);
}

struct hf_bytes test_load_ask(struct load *load, struct test_wire *wire,
                              const char *format, ...)
{
    char text[LOAD_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint64_t id = write_call(load, load->client, text);
    struct hf_bytes reply = test_ask(wire, "%s", text);
    write_answer(load, load->client, id, reply);
    return reply;
}

/* Choosing what to ask. */

static uint64_t below(struct load_worker *worker, uint64_t bound)
{
    return hf_random_below(&worker->random, bound);
}

/* A reservation that the worker knows, or a place for a new one. */
static int pick_id(struct load_worker *worker, bool used)
{
    int first = (int)below(worker, LOAD_IDS);

    for (int i = 0; i < LOAD_IDS; i++) {
        int place = (first + i) % LOAD_IDS;
        if ((worker->ids[place][0] != '\0') == used)
            return place;
    }
    return first; /* then it is asked for, or forgotten, anyway */
}

static void say(struct load_op *op, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct load_op *op, const char *format, ...)
{
    size_t used = strlen(op->text);
    va_list args;

    va_start(args, format);
    vsnprintf(op->text + used, sizeof op->text - used, format, args);
    va_end(args);
}

static void say_reserve(struct load_worker *worker, struct load_op *op)
{
    int first = (int)below(worker, LOAD_SKUS);
    int count = 1 + (int)below(worker, 3);

    if (below(worker, 4) == 0)
        say(op, "RESERVE *");
    else
        say(op, "RESERVE r-%d-%" PRIu64, worker->index, worker->next++);
    for (int i = 0; i < count; i++)
        say(op, " ITEM sku-%d %d", (first + i) % LOAD_SKUS,
            1 + (int)below(worker, 3));
    say(op, " TTL %d OWNER worker-%d", LONG_MS, worker->index);
}

static void say_lock(struct load_worker *worker, struct load_op *op)
{
    bool brief = below(worker, 8) == 0;
    bool in_session = worker->session != 0 && below(worker, 3) == 0;

    if (op->object == LOAD_SET_LOCK && below(worker, 2) == 0)
        say(op, "LOCKSET NAME lock-%d NAME lock-%d", op->object,
            op->object + 1);
    else
        say(op, "LOCK lock-%d", op->object);
    say(op, " OWNER worker-%d", worker->index);
    if (op->object == LOAD_SHARED_LOCK && below(worker, 3) > 0)
        say(op, " SHARED");
    if (op->object == LOAD_PERMITS_LOCK)
        say(op, " PERMITS %d OF 3", 1 + worker->index % 2);
    if (in_session)
        say(op, " SESSION %" PRIu64, worker->session);
    if (!in_session || brief)
        say(op, " TTL %d", brief ? 20 + (int)below(worker, 200) : LONG_MS);
    if (below(worker, 3) == 0)
        say(op, " WAIT %d", (int)below(worker, 15));
}

/* A trace: a reservation or a lock that only this call can make. */
static void say_trace(struct load_worker *worker, struct load_op *op)
{
    uint64_t number = worker->next++;

    op->object = (int)below(worker, 2);
    if (op->object == 0)
        say(op, "RESERVE t-%d-%" PRIu64 " ITEM trace 1 TTL %d", worker->index,
            number, LONG_MS);
    else
        say(op, "LOCK t-%d-%" PRIu64 " OWNER worker-%d TTL %d", worker->index,
            number, worker->index, LONG_MS);
}

static void say_stock(struct load_worker *worker, struct load_op *op)
{
    int sku = (int)below(worker, LOAD_SKUS);

    if (op->kind == LOAD_SET)
        say(op, "STOCK SET own-%d %d", worker->index,
            1 + (int)below(worker, 1000));
    else if (op->kind == LOAD_ADD)
        say(op, "STOCK ADD sku-%d %d REASON load", sku,
            1 + (int)below(worker, 5));
    else
        say(op, "STOCK GET sku-%d own-%d", sku, worker->index);
}

/* Commands about a token or a reservation that was told. */
static void say_known(struct load_worker *worker, struct load_op *op)
{
    uint64_t token = worker->tokens[op->object % LOAD_LOCKS];
    const char *id = worker->ids[op->object];

    bool is_set = op->object == LOAD_SET_LOCK && token == worker->set;

    switch (op->kind) {
    case LOAD_UNLOCK:
        if (is_set)
            say(op, "UNLOCKSET %" PRIu64, token);
        else
            say(op, "UNLOCK lock-%d %" PRIu64, op->object, token);
        break;
    case LOAD_RENEW:
        if (is_set)
            say(op, "RENEWSET %" PRIu64 " TTL %d", token, LONGER_MS);
        else
            say(op, "RENEW lock-%d %" PRIu64 " TTL %d", op->object, token,
                LONGER_MS);
        break;
    case LOAD_FENCE:
        say(op, "FENCE fence-%d %" PRIu64, (int)below(worker, 3), token);
        break;
    case LOAD_CONFIRM:
        say(op, "CONFIRM %s", id);
        break;
    case LOAD_CANCEL:
        say(op, "CANCEL %s REASON changed", id);
        break;
    case LOAD_EXTEND:
        say(op, "EXTEND %s TTL %d", id, LONGER_MS);
        break;
    default:
        say(op, "RESERVATION %s", id);
        break;
    }
}

static void say_session(struct load_worker *worker, struct load_op *op)
{
    if (worker->session == 0)
        say(op, "SESSION OPEN TTL %d", LONG_MS);
    else if (below(worker, 4) > 0)
        say(op, "SESSION KEEP %" PRIu64, worker->session);
    else
        say(op, "SESSION CLOSE %" PRIu64, worker->session);
}

static enum load_kind pick_kind(struct load_worker *worker)
{
    static const int shares[LOAD_KINDS] = {15, 15, 5, 5, 4, 4, 6, 4, 10,
                                           5,  4,  3, 3, 3, 4, 4, 4, 2};
    int roll = (int)below(worker, 100);
    int kind = 0;

    while (roll >= shares[kind])
        roll -= shares[kind++];
    return (enum load_kind)kind;
}

/* Chooses an object; false: there is none for this kind. */
static bool pick_object(struct load_worker *worker, struct load_op *op)
{
    op->object = (int)below(worker, LOAD_LOCKS);
    switch (op->kind) {
    case LOAD_UNLOCK:
    case LOAD_RENEW:
    case LOAD_FENCE:
        return worker->tokens[op->object] != 0;
    case LOAD_RESERVE:
        op->object = pick_id(worker, false);
        return true;
    case LOAD_CONFIRM:
    case LOAD_CANCEL:
    case LOAD_EXTEND:
    case LOAD_RESERVATION:
        op->object = pick_id(worker, true);
        return worker->ids[op->object][0] != '\0';
    case LOAD_REPEAT:
        op->object = (int)below(worker, LOAD_REPEATS);
        return worker->repeats[op->object][0] != '\0';
    default:
        return true;
    }
}

static bool takes_request(enum load_kind kind)
{
    return kind != LOAD_LOCKINFO && kind != LOAD_GET &&
           kind != LOAD_RESERVATION && kind != LOAD_LIMIT &&
           kind != LOAD_REPEAT && kind != LOAD_TRACE && kind != LOAD_SESSION;
}

static void send(struct load *load, struct load_worker *worker,
                 struct load_op *op)
{
    op->id = write_call(load, worker->client, op->text);
    test_wire_add(&worker->wire, "%s", op->text);
    worker->flight[worker->flight_count++] = *op;
}

/* A lock and a reservation that only this group can make; or a unit goes from
 * one product to the next. */
static void plan_group(struct load *load, struct load_worker *worker)
{
    struct load_op ops[LOAD_GROUPED] = {0};
    uint64_t number = worker->next++;
    int sku = (int)below(worker, LOAD_SKUS);

    for (int i = 0; i < LOAD_GROUPED; i++)
        ops[i].kind = LOAD_GROUP;
    say(&ops[0], "MULTI");
    if (below(worker, 2) == 0) {
        ops[1].kind = ops[2].kind = LOAD_TRACE;
        ops[1].object = 1;
        say(&ops[1], "LOCK g-%d-%" PRIu64 " OWNER worker-%d TTL %d",
            worker->index, number, worker->index, LONG_MS);
        say(&ops[2], "RESERVE g-%d-%" PRIu64 " ITEM trace 1 TTL %d",
            worker->index, number, LONG_MS);
    } else {
        say(&ops[1], "STOCK ADD sku-%d -1", sku);
        say(&ops[2], "STOCK ADD sku-%d 1", (sku + 1) % LOAD_SKUS);
    }
    say(&ops[3], "EXEC");
    bool kept = below(worker, 3) == 0;
    if (kept)
        say(&ops[3], " REQ q-%d-%" PRIu64, worker->index, number);
    for (int i = 0; i < LOAD_GROUPED; i++) {
        send(load, worker, &ops[i]);
        if (kept)
            memcpy(worker->group[i], ops[i].text, sizeof ops[i].text);
    }
}

static void plan(struct load *load, struct load_worker *worker)
{
    struct load_op op = {.kind = pick_kind(worker)};

    if (op.kind == LOAD_GROUP) {
        plan_group(load, worker);
        return;
    }
    if (!pick_object(worker, &op))
        op.kind = LOAD_LOCK;
    if (op.kind == LOAD_LOCK)
        say_lock(worker, &op);
    else if (op.kind == LOAD_LOCKINFO)
        say(&op, "LOCKINFO lock-%d", op.object);
    else if (op.kind == LOAD_SET || op.kind == LOAD_ADD || op.kind == LOAD_GET)
        say_stock(worker, &op);
    else if (op.kind == LOAD_RESERVE)
        say_reserve(worker, &op);
    else if (op.kind == LOAD_TRACE)
        say_trace(worker, &op);
    else if (op.kind == LOAD_SESSION)
        say_session(worker, &op);
    else if (op.kind == LOAD_REPEAT)
        say(&op, "%s", worker->repeats[op.object]);
    else if (op.kind == LOAD_LIMIT)
        say(&op, "LIMIT key-%d RATE 5 PER 1000", (int)below(worker, LIMITS));
    else
        say_known(worker, &op);
    if (takes_request(op.kind) && below(worker, 3) == 0) {
        say(&op, " REQ q-%d-%" PRIu64, worker->index, worker->next++);
        memcpy(worker->repeats[below(worker, LOAD_REPEATS)], op.text,
               sizeof op.text);
    }
    send(load, worker, &op);
}

/* Remembers what can be used later. */
static void learn(struct load_worker *worker, const struct load_op *op,
                  struct hf_bytes reply)
{
    struct hf_bytes id = test_text(reply, "id");

    worker->answers[op->kind]++;
    worker->refusals += reply.data[0] == '-';
    if (op->kind == LOAD_LOCK && op->object < LOAD_LOCKS &&
        reply.data[0] != '-') {
        worker->tokens[op->object] = (uint64_t)test_number(reply, "token");
        if (strncmp(op->text, "LOCKSET", 7) == 0)
            worker->set = worker->tokens[op->object];
    }
    /* closed, lost, or a new one */
    if (op->kind == LOAD_SESSION)
        worker->session =
            reply.data[0] == '*' ? (uint64_t)test_number(reply, "session") : 0;
    if (op->kind == LOAD_UNLOCK && op->object < LOAD_LOCKS &&
        test_number(reply, "remaining") <= 0)
        worker->tokens[op->object] = 0;
    if (op->kind == LOAD_RESERVE && id.len < sizeof worker->ids[0]) {
        memcpy(worker->ids[op->object], id.data, id.len);
        worker->ids[op->object][id.len] = '\0';
    }
    /* an ended one is asked about for a while */
    if (op->kind == LOAD_RESERVATION && below(worker, 4) == 0)
        worker->ids[op->object][0] = '\0';
}

/* Running. */

static void count_one(struct load *load)
{
    unsigned long told = atomic_fetch_add(&load->told, 1) + 1;

    if (told != load->target)
        return;
    /* a moment that has nothing to do with this answer */
    for (uint64_t end = now_ns() + load->linger_ns; now_ns() < end;)
        ;
    kill(load->pid, SIGKILL);
}

/* Takes the answers in order; false once no more come. */
static bool collect(struct load *load, struct load_worker *worker)
{
    int count = worker->flight_count;
    int next = 0;

    for (; next < count; next++) {
        struct hf_bytes reply;
        const struct load_op *op = &worker->flight[next];
        if (test_wire_read(&worker->wire, &reply) != HF_OK)
            break;
        write_answer(load, worker->client, op->id, reply);
        learn(worker, op, reply);
        count_one(load);
    }
    memmove(worker->flight, worker->flight + next,
            (size_t)(count - next) * sizeof *worker->flight);
    worker->flight_count = count - next;
    return worker->flight_count == 0;
}

static void work(void *context, int index)
{
    struct load *load = context;
    struct load_worker *worker = &load->workers[index];
    bool more = test_wire_open(&worker->wire, load->port) == HF_OK;

    test_load_mark(load, worker->client, HISTORY_OPEN);
    if (index == 0 && load->target == 0)
        kill(load->pid, SIGKILL);
    while (more) {
        int count = 1;
        if (below(worker, 4) == 0)
            count += (int)below(worker, LOAD_FLIGHT);
        for (int i = 0; i < count; i++)
            plan(load, worker);
        more = test_wire_send(&worker->wire) == HF_OK;
        more = collect(load, worker) && more;
    }
    test_wire_close(&worker->wire);
    test_load_mark(load, worker->client, HISTORY_CLOSED);
}

void test_load_run(struct load *load)
{
    atomic_store(&load->told, 0);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        load->workers[i].client = ++load->client;
        load->workers[i].flight_count = 0;
    }
    test_threads(LOAD_WORKERS, work, load);
}
