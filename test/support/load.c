/* load.c - workers that load a server and remember what they were told. */
#include "support/load.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>

#include "holdfast/clock.h"
#include "support/test.h"
#include "support/threads.h"

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

void test_load_init(struct load *load, uint64_t seed)
{
    for (int i = 0; i < LOAD_WORKERS; i++) {
        struct load_worker *worker = &load->workers[i];
        worker->index = i;
        worker->fence_next = 1;
        worker->own_next = 1;
        hf_random_init(&worker->random, seed + (uint64_t)i);
    }
}

void test_load_release(struct load *load)
{
    for (int i = 0; i < LOAD_WORKERS; i++) {
        struct load_worker *worker = &load->workers[i];
        test_wire_close(&worker->wire);
        for (int j = 0; j < LOAD_REPEATS; j++)
            hf_buf_release(&worker->repeats[j].answer);
    }
}

void test_load_prepare(struct load *load, struct test_wire *wire)
{
    for (int i = 0; i < LOAD_SKUS; i++)
        CHECK_DONE(test_ask(wire, "STOCK SET sku-%d %d", i, LOAD_STOCK));
    for (int i = 0; i < LOAD_WORKERS; i++) {
        CHECK_DONE(test_ask(wire, "STOCK SET own-%d 1", i));
        load->workers[i].own_total = 1;
        load->workers[i].own_next = 2;
    }
}

static uint64_t below(struct load_worker *worker, uint64_t bound)
{
    return hf_random_below(&worker->random, bound);
}

/* Choosing what to ask. */

static bool in_flight(const struct load_worker *worker, bool lock, int object)
{
    for (int i = 0; i < worker->flight_count; i++) {
        const struct load_op *op = &worker->flight[i];
        bool of_lock = op->kind <= LOAD_RENEW;
        bool of_slot = op->kind >= LOAD_RESERVE;
        if ((lock ? of_lock : of_slot) && op->object == object)
            return true;
    }
    return false;
}

/* A lock that nothing under way touches, held by the worker or not; -1. */
static int pick_lock(struct load_worker *worker, bool held)
{
    int first = (int)below(worker, LOAD_LOCKS);

    for (int i = 0; i < LOAD_LOCKS; i++) {
        int lock = (first + i) % LOAD_LOCKS;
        if (in_flight(worker, true, lock) || worker->holds[lock].doubtful)
            continue;
        if (!held || worker->holds[lock].count > 0)
            return lock;
    }
    return -1;
}

static int pick_slot(struct load_worker *worker, enum load_status status)
{
    int first = (int)below(worker, LOAD_SLOTS);

    for (int i = 0; i < LOAD_SLOTS; i++) {
        int slot = (first + i) % LOAD_SLOTS;
        if (worker->slots[slot].status == status &&
            !in_flight(worker, false, slot))
            return slot;
    }
    return -1;
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

static void say_request(struct load_worker *worker, struct load_op *op)
{
    op->repeatable = true;
    say(op, " REQ q-%d-%" PRIu64, worker->index, worker->id_next++);
}

static void plan_lock(struct load_worker *worker, struct load_op *op)
{
    say(op, "LOCK lock-%d OWNER worker-%d TTL %d", op->object, worker->index,
        LOAD_SHORT_MS);
    if (below(worker, 3) == 0)
        say(op, " WAIT %d", (int)below(worker, 15));
    if (below(worker, 2) == 0)
        say_request(worker, op);
}

static void plan_reserve(struct load_worker *worker, struct load_op *op)
{
    struct load_slot *slot = &worker->slots[op->object];

    *slot = (struct load_slot){.status = LOAD_ASKED};
    slot->item_count = 1 + (int)below(worker, LOAD_ITEMS);
    if (below(worker, 4) != 0)
        snprintf(slot->id, sizeof slot->id, "r-%d-%" PRIu64, worker->index,
                 worker->id_next++);
    say(op, "RESERVE %s", slot->id[0] != '\0' ? slot->id : "*");
    int first = (int)below(worker, LOAD_SKUS);
    for (int i = 0; i < slot->item_count; i++) {
        slot->sku[i] = (first + i) % LOAD_SKUS;
        slot->quantity[i] = 1 + (int64_t)below(worker, 3);
        say(op, " ITEM sku-%d %d", slot->sku[i], (int)slot->quantity[i]);
    }
    say(op, " TTL %d OWNER worker-%d", LOAD_SHORT_MS, worker->index);
    /* an id that the server makes is found again by its request only */
    if (slot->id[0] == '\0' || below(worker, 2) == 0)
        say_request(worker, op);
}

/* Fills in the command for a kind whose object is chosen. */
static void plan_text(struct load_worker *worker, struct load_op *op)
{
    const struct load_hold *hold = &worker->holds[op->object % LOAD_LOCKS];
    const char *id = worker->slots[op->object].id;

    switch (op->kind) {
    case LOAD_LOCK:
        plan_lock(worker, op);
        break;
    case LOAD_UNLOCK:
        say(op, "UNLOCK lock-%d %" PRIu64, op->object, hold->token);
        break;
    case LOAD_RENEW:
        say(op, "RENEW lock-%d %" PRIu64 " TTL %d", op->object, hold->token,
            LOAD_LONG_MS);
        break;
    case LOAD_FENCE:
        op->amount = worker->fence_next++;
        say(op, "FENCE fence-%d %" PRIu64, worker->index, op->amount);
        break;
    case LOAD_SET:
        op->amount = worker->own_next++;
        say(op, "STOCK SET own-%d %" PRIu64, worker->index, op->amount);
        break;
    case LOAD_ADD:
        op->amount = 1 + below(worker, LOAD_ADD_MAX);
        say(op, "STOCK ADD sku-%d %" PRIu64 " REASON load", op->object,
            op->amount);
        break;
    case LOAD_RESERVE:
        plan_reserve(worker, op);
        break;
    case LOAD_CONFIRM:
        say(op, "CONFIRM %s", id);
        break;
    case LOAD_CANCEL:
        say(op, "CANCEL %s REASON changed", id);
        break;
    case LOAD_EXTEND:
        say(op, "EXTEND %s TTL %d", id, LOAD_LONG_MS);
        break;
    }
}

static enum load_kind pick_kind(struct load_worker *worker)
{
    static const int shares[] = {20, 20, 6, 6, 6, 10, 16, 7, 6, 3};
    int roll = (int)below(worker, 100);
    int kind = 0;

    while (roll >= shares[kind])
        roll -= shares[kind++];
    return (enum load_kind)kind;
}

/* Adds one command to the flight; its object is free for it. */
static void plan(struct load_worker *worker)
{
    struct load_op op = {.kind = pick_kind(worker), .sent_ns = now_ns()};

    if (op.kind <= LOAD_RENEW) {
        op.object = pick_lock(worker, op.kind != LOAD_LOCK);
    } else if (op.kind == LOAD_RESERVE) {
        op.object = pick_slot(worker, LOAD_FREE);
    } else if (op.kind > LOAD_RESERVE) {
        op.object = pick_slot(worker, LOAD_PENDING);
    } else if (op.kind == LOAD_ADD) {
        op.object = (int)below(worker, LOAD_SKUS);
    }
    if (op.object < 0) { /* nothing that fits: stock is always there */
        op.kind = LOAD_ADD;
        op.object = (int)below(worker, LOAD_SKUS);
    }
    plan_text(worker, &op);
    /* kinds that the model can be told twice, or whose effect adds up */
    bool may_repeat = op.kind == LOAD_ADD || op.kind == LOAD_CONFIRM ||
                      op.kind == LOAD_CANCEL;
    if (may_repeat && below(worker, 2) == 0)
        say_request(worker, &op);
    if (op.kind == LOAD_UNLOCK) {
        struct load_hold *hold = &worker->holds[op.object];
        if (hold->grant >= 0 && hold->count == 1)
            worker->grants[hold->grant].left_ns = op.sent_ns;
    }
    worker->flight[worker->flight_count++] = op;
    test_wire_add(&worker->wire, "%s", op.text);
}

/* Believing what was answered. */

static bool surprise(struct load_worker *worker, const struct load_op *op,
                     struct hf_bytes reply, const char *why)
{
    size_t len = reply.len < 200 ? reply.len : 200;
    struct load_op copy = *op;

    snprintf(worker->failure, sizeof worker->failure,
             "worker %d: %s: \"%s\" was answered %.*s", worker->index, why,
             copy.text, (int)len, reply.data);
    return false;
}

void test_load_granted(struct load_worker *worker, const struct load_op *op,
                       uint64_t token)
{
    worker->holds[op->object].grant = worker->grant_count;
    worker->grants[worker->grant_count++] = (struct load_grant){
        token, op->object, op->sent_ns, now_ns(), UINT64_MAX};
}

bool test_load_doubtful(struct hf_bytes reply)
{
    return test_is_error(reply, "TIMEOUT") &&
           memmem(reply.data, reply.len, "disk", 4) != NULL;
}

static bool told_lock(struct load_worker *worker, const struct load_op *op,
                      struct hf_bytes reply)
{
    struct load_hold *hold = &worker->holds[op->object];
    int64_t token = test_number(reply, "token");
    int64_t count = test_number(reply, "count");

    if (test_is_error(reply, "BUSY") || test_is_error(reply, "TIMEOUT")) {
        worker->refused++;
        hold->doubtful = test_load_doubtful(reply);
        if (hold->count > 0 && !hold->doubtful)
            return surprise(worker, op, reply, "the owner was refused");
        return true;
    }
    if (token <= 0 || count != hold->count + 1)
        return surprise(worker, op, reply, "not the hold that was expected");
    if (hold->count > 0 && (uint64_t)token != hold->token)
        return surprise(worker, op, reply, "re-entry changed the token");
    if (hold->count == 0) {
        test_load_granted(worker, op, (uint64_t)token);
        hold->renewed = false; /* re-entry never makes it shorter */
    }
    hold->token = (uint64_t)token;
    hold->count = count;
    return true;
}

bool test_load_same_items(const struct load_slot *slot, struct hf_bytes reply)
{
    struct hf_bytes items = test_part(reply, "items");

    if (test_length(items) != (size_t)slot->item_count)
        return false;
    for (size_t i = 0; i < (size_t)slot->item_count; i++) {
        struct hf_bytes item = test_element(items, i);
        char sku[32];
        int j = 0;
        for (; j < slot->item_count; j++) {
            snprintf(sku, sizeof sku, "sku-%d", slot->sku[j]);
            if (hf_bytes_equal(test_text(item, "sku"), hf_bytes_text(sku)))
                break;
        }
        if (j == slot->item_count ||
            test_number(item, "quantity") != slot->quantity[j])
            return false;
    }
    return true;
}

static bool told_reserve(struct load_worker *worker, const struct load_op *op,
                         struct hf_bytes reply)
{
    struct load_slot *slot = &worker->slots[op->object];
    struct hf_bytes id = test_text(reply, "id");

    if (test_is_error(reply, "SHORT")) {
        worker->refused++;
        slot->status = LOAD_FREE;
        return true;
    }
    if (id.len == 0 || id.len >= sizeof slot->id ||
        !hf_bytes_equal(test_text(reply, "status"), hf_bytes_text("PENDING")))
        return surprise(worker, op, reply, "no reservation");
    if (slot->id[0] != '\0' && !hf_bytes_equal(id, hf_bytes_text(slot->id)))
        return surprise(worker, op, reply, "another id");
    if (!test_load_same_items(slot, reply))
        return surprise(worker, op, reply, "other items");
    snprintf(slot->id, sizeof slot->id, "%.*s", (int)id.len, id.data);
    slot->status = LOAD_PENDING;
    return true;
}

/* The kinds that cannot be refused, as they only touch the worker's own. */
static bool told_own(struct load_worker *worker, const struct load_op *op,
                     struct hf_bytes reply)
{
    struct load_hold *hold = &worker->holds[op->object % LOAD_LOCKS];
    struct load_slot *slot = &worker->slots[op->object];

    if (reply.data[0] == '-')
        return surprise(worker, op, reply, "refused without a reason");
    switch (op->kind) {
    case LOAD_UNLOCK:
        hold->count--;
        break;
    case LOAD_RENEW:
        hold->renewed = true;
        break;
    case LOAD_FENCE:
        worker->fence = op->amount;
        break;
    case LOAD_SET:
        worker->own_total = op->amount;
        break;
    case LOAD_ADD:
        worker->added[op->object] += (int64_t)op->amount;
        break;
    case LOAD_CONFIRM:
        slot->status = LOAD_CONFIRMED;
        break;
    case LOAD_CANCEL:
        slot->status = LOAD_CANCELLED;
        break;
    case LOAD_EXTEND:
        slot->extended = true;
        break;
    case LOAD_LOCK:
    case LOAD_RESERVE:
        break;
    }
    return true;
}

bool test_load_told(struct load_worker *worker, const struct load_op *op,
                    struct hf_bytes reply)
{
    worker->kinds[op->kind]++;
    if (op->kind == LOAD_LOCK)
        return told_lock(worker, op, reply);
    if (op->kind == LOAD_RESERVE)
        return told_reserve(worker, op, reply);
    return told_own(worker, op, reply);
}

static void keep_for_repeat(struct load_worker *worker,
                            const struct load_op *op, struct hf_bytes reply)
{
    struct load_repeat *repeat =
        &worker->repeats[worker->repeat_count++ % LOAD_REPEATS];

    snprintf(repeat->text, sizeof repeat->text, "%s", op->text);
    repeat->answer.len = 0;
    if (hf_buf_append(&repeat->answer, reply.data, reply.len) != HF_OK)
        abort();
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
        struct load_op *op = &worker->flight[next];
        enum hf_status status = test_wire_read(&worker->wire, &reply);
        if (status != HF_OK && status != HF_CLOSED)
            surprise(worker, op, hf_bytes("", 0), hf_status_text(status));
        if (status != HF_OK)
            break;
        if (op->repeatable && !test_load_doubtful(reply))
            keep_for_repeat(worker, op, reply);
        if (!test_load_told(worker, op, reply)) {
            next++;
            break;
        }
        count_one(load);
    }
    memmove(worker->flight, worker->flight + next,
            (size_t)(count - next) * sizeof *worker->flight);
    worker->flight_count = count - next;
    return worker->flight_count == 0 && worker->failure[0] == '\0';
}

static void work(void *context, int index)
{
    struct load *load = context;
    struct load_worker *worker = &load->workers[index];
    bool more = test_wire_open(&worker->wire, load->port) == HF_OK;

    if (index == 0 && load->target == 0)
        kill(load->pid, SIGKILL);
    while (more && worker->grant_count + LOAD_FLIGHT < LOAD_GRANTS) {
        int count = 1;
        if (below(worker, 4) == 0)
            count += (int)below(worker, LOAD_FLIGHT);
        for (int i = 0; i < count; i++)
            plan(worker);
        more = test_wire_send(&worker->wire) == HF_OK;
        more = collect(load, worker) && more;
    }
    test_wire_close(&worker->wire);
}

void test_load_run(struct load *load)
{
    atomic_store(&load->told, 0);
    test_threads(LOAD_WORKERS, work, load);
}

/* Judging the grants. */

static int by_token(const void *a, const void *b)
{
    const struct load_grant *left = a;
    const struct load_grant *right = b;

    return (left->token > right->token) - (left->token < right->token);
}

/* In the order of tokens: each is new, and no grant of a lock was told before
 * the one before it was left. */
static const struct load_grant *misgiven(const struct load_grant *all,
                                         size_t count, uint64_t newest)
{
    uint64_t left_ns[LOAD_LOCKS] = {0};

    for (size_t i = 0; i < count; i++) {
        if (all[i].token <= (i == 0 ? newest : all[i - 1].token) ||
            all[i].told_ns < left_ns[all[i].lock])
            return &all[i];
        left_ns[all[i].lock] = all[i].left_ns;
    }
    /* and none was asked for after a later one was told */
    uint64_t told_ns = UINT64_MAX;
    for (size_t i = count; i-- > 0;) {
        if (all[i].sent_ns > told_ns)
            return &all[i];
        if (all[i].told_ns < told_ns)
            told_ns = all[i].told_ns;
    }
    return NULL;
}

bool test_load_grants_ok(struct load *load, uint64_t *newest,
                         struct load_grant *wrong)
{
    static struct load_grant all[LOAD_WORKERS * LOAD_GRANTS];
    size_t count = 0;

    for (int i = 0; i < LOAD_WORKERS; i++) {
        struct load_worker *worker = &load->workers[i];
        memcpy(all + count, worker->grants,
               (size_t)worker->grant_count * sizeof *all);
        count += (size_t)worker->grant_count;
        worker->grant_count = 0;
        for (int j = 0; j < LOAD_LOCKS; j++)
            worker->holds[j].grant = -1;
    }
    if (count == 0)
        return true;
    qsort(all, count, sizeof *all, by_token);
    const struct load_grant *found = misgiven(all, count, *newest);
    if (found != NULL)
        *wrong = *found;
    *newest = all[count - 1].token;
    return found == NULL;
}

void test_load_totals(const struct load *load, int sku, bool *possible)
{
    bool before[LOAD_TOTALS];

    memset(possible, 0, sizeof before);
    possible[0] = true;
    for (int i = 0; i < LOAD_WORKERS; i++) {
        const struct load_worker *worker = &load->workers[i];
        size_t sum = 0;
        memcpy(before, possible, sizeof before);
        for (int j = 0; j < worker->flight_count; j++) {
            const struct load_op *op = &worker->flight[j];
            if (op->kind != LOAD_ADD || op->object != sku || op->repeatable)
                continue;
            sum += op->amount;
            for (size_t k = 0; k + sum < LOAD_TOTALS; k++)
                possible[k + sum] = possible[k + sum] || before[k];
        }
    }
}

bool test_load_met_all(const struct load *load)
{
    uint64_t refused = 0;

    for (int kind = LOAD_LOCK; kind <= LOAD_EXTEND; kind++) {
        uint64_t told = 0;
        for (int i = 0; i < LOAD_WORKERS; i++)
            told += load->workers[i].kinds[kind];
        if (told == 0)
            return false;
    }
    for (int i = 0; i < LOAD_WORKERS; i++)
        refused += load->workers[i].refused;
    return refused > 0;
}
