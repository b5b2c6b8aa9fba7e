/* crash.c - kill -9 under load, restart, compare with what clients were told.
 * tests: also under sanitizers
 *
 * Every round on the same folder: several connections ask for locks, stock and
 * reservations, the server is killed at a random moment and started again.
 * Then, for each connection:
 *
 *   answered    is there, exactly
 *   unanswered  is wholly there or wholly not; and as one connection's
 *               commands are carried out in order, none that is there was sent
 *               after one that is not
 *
 * and over all of them: products equal the sums of their reservations, and
 * fence tokens grow for ever. A request that is repeated gets its first answer.
 *
 * CRASH_ROUNDS sets the number of rounds, TEST_SEED what is asked in them.
 */
#include <glob.h>
#include <inttypes.h>
#include <signal.h>

#include "base/memory.h"
#include "holdfast/clock.h"
#include "support/load.h"
#include "support/server.h"
#include "support/test.h"

#define SEGMENT_BYTES  1048576
#define SNAPSHOT_BYTES 4194304
#define ENOUGH         20000 /* answers, to have met what is rare */
#define LONG_LIMIT_MS  ((LOAD_SHORT_MS + LOAD_LONG_MS) / 2)

enum evidence { UNKNOWN, DONE, NOT_DONE };

struct crash {
    struct load load;
    struct test_server server;
    struct test_server_opts opts;
    struct test_wire wire;
    struct hf_random random;
    uint64_t newest;          /* no later token may be as small */
    int64_t total[LOAD_SKUS]; /* when the round began */
    int64_t sold[LOAD_SKUS];  /* by reservations that ended before */
    enum evidence found[LOAD_WORKERS][LOAD_FLIGHT];
    int round;
    uint64_t told;
    uint64_t unanswered;
};

/* One line that says where in the run it happened. */
#define BAD(crash, format, ...)                                        \
    test_fail(__FILE__, __LINE__, "round %d: " format, (crash)->round, \
              __VA_ARGS__)

static bool bytes_are(struct hf_bytes bytes, const char *text)
{
    return hf_bytes_equal(bytes, hf_bytes_text(text));
}

/* The command under way on a lock or a slot, and its place; NULL if none. */
static const struct load_op *under_way(const struct load_worker *worker,
                                       bool lock, int object, int *place)
{
    for (int i = 0; i < worker->flight_count; i++) {
        const struct load_op *op = &worker->flight[i];
        bool fits = lock ? op->kind <= LOAD_RENEW : op->kind >= LOAD_RESERVE;
        if (fits && op->object == object) {
            *place = i;
            return op;
        }
    }
    return NULL;
}

/* Locks. */

struct holder {
    struct hf_bytes owner;
    uint64_t token;
    int64_t count;
    int64_t left_ms;
};

static struct holder ask_holder(struct crash *crash, int lock)
{
    struct hf_bytes reply = test_ask(&crash->wire, "LOCKINFO lock-%d", lock);
    struct holder holder = {.owner = test_text(reply, "owner")};

    if (holder.owner.len == 0)
        return holder;
    holder.token = (uint64_t)test_number(reply, "token");
    holder.count = test_number(reply, "count");
    holder.left_ms = test_number(reply, "expires_ms");
    return holder;
}

/* The worker has the lock: what it was told, or that and one step more. */
static enum evidence judge_hold(struct crash *crash,
                                const struct load_worker *worker, int lock,
                                const struct load_op *op,
                                const struct holder *holder)
{
    const struct load_hold *hold = &worker->holds[lock];
    int64_t step = op == NULL                ? 0
                   : op->kind == LOAD_LOCK   ? 1
                   : op->kind == LOAD_UNLOCK ? -1
                                             : 0;
    char owner[32];

    snprintf(owner, sizeof owner, "worker-%d", worker->index);
    bool same = bytes_are(holder->owner, owner) && holder->token == hold->token;
    if (!same && step == -1 && hold->count == 1)
        return DONE; /* given back; free, or another's by now */
    if (!same || (holder->count != hold->count &&
                  (step == 0 || holder->count != hold->count + step)))
        BAD(crash,
            "lock-%d: %s was told token %" PRIu64 " count %" PRId64
            ", found %.*s token %" PRIu64 " count %" PRId64 " (under way: %s)",
            lock, owner, hold->token, hold->count, (int)holder->owner.len,
            holder->owner.data, holder->token, holder->count,
            op == NULL ? "nothing" : op->text);
    bool is_long = holder->left_ms > LONG_LIMIT_MS;
    if (hold->renewed && !is_long)
        BAD(crash, "lock-%d: the renewal of %s is lost", lock, owner);
    if (op == NULL)
        return UNKNOWN;
    if (step == 0)
        return hold->renewed ? UNKNOWN : is_long ? DONE : NOT_DONE;
    return holder->count == hold->count ? NOT_DONE : DONE;
}

/* From here on the model is what was found. A lock with a request is left to
 * its repetition, which must tell the same token. */
static void believe(struct load_worker *worker, int place,
                    const struct holder *holder)
{
    struct load_op *op = &worker->flight[place];
    struct load_hold *hold = &worker->holds[op->object];

    if (op->kind == LOAD_UNLOCK)
        hold->count--;
    if (op->kind == LOAD_RENEW)
        hold->renewed = true;
    if (op->kind != LOAD_LOCK)
        return;
    op->amount = holder->token;
    if (op->repeatable)
        return;
    if (hold->count++ == 0) {
        test_load_granted(worker, op, holder->token);
        hold->renewed = false;
    }
    hold->token = holder->token;
}

/* A lock that the worker may or may not have: it has what was found. */
static void settle_doubt(struct load_worker *worker, int lock, bool is_holder,
                         const struct holder *holder)
{
    struct load_hold *hold = &worker->holds[lock];
    struct load_op op = {.object = lock};

    if (is_holder && hold->count == 0)
        test_load_granted(worker, &op, holder->token);
    hold->doubtful = false;
    hold->renewed = false;
    hold->count = is_holder ? holder->count : 0;
    hold->token = holder->token;
}

static void check_lock(struct crash *crash, int lock)
{
    struct holder holder = ask_holder(crash, lock);

    for (int i = 0; i < LOAD_WORKERS; i++) {
        struct load_worker *worker = &crash->load.workers[i];
        struct load_hold *hold = &worker->holds[lock];
        int place = 0;
        const struct load_op *op = under_way(worker, true, lock, &place);
        enum evidence found = UNKNOWN;
        char owner[32];
        snprintf(owner, sizeof owner, "worker-%d", i);
        if (hold->doubtful) {
            settle_doubt(worker, lock, bytes_are(holder.owner, owner), &holder);
        } else if (hold->count > 0) {
            found = judge_hold(crash, worker, lock, op, &holder);
        } else if (bytes_are(holder.owner, owner)) {
            if (op == NULL || op->kind != LOAD_LOCK || holder.count != 1)
                BAD(crash, "lock-%d: %s holds what it was not given", lock,
                    owner);
            found = DONE;
        }
        if (op != NULL)
            crash->found[i][place] = found;
        if (op != NULL && found == DONE)
            believe(worker, place, &holder);
    }
}

/* Reservations. */

static enum load_status status_of(struct hf_bytes reply)
{
    struct hf_bytes status = test_text(reply, "status");

    return bytes_are(status, "PENDING")     ? LOAD_PENDING
           : bytes_are(status, "CONFIRMED") ? LOAD_CONFIRMED
           : bytes_are(status, "CANCELLED") ? LOAD_CANCELLED
                                            : LOAD_FREE;
}

/* What the slot would be if its command under way had been carried out. */
static enum load_status status_after(const struct load_slot *slot,
                                     const struct load_op *op)
{
    switch (op->kind) {
    case LOAD_RESERVE:
        return LOAD_PENDING;
    case LOAD_CONFIRM:
        return LOAD_CONFIRMED;
    case LOAD_CANCEL:
        return LOAD_CANCELLED;
    default:
        return slot->status;
    }
}

static enum evidence judge_slot(struct crash *crash,
                                const struct load_slot *slot,
                                const struct load_op *op, struct hf_bytes reply)
{
    enum load_status status = status_of(reply);
    bool is_long = test_number(reply, "expires_ms") > LONG_LIMIT_MS;

    if (status == LOAD_FREE && slot->status == LOAD_ASKED)
        return UNKNOWN; /* refused, or never arrived */
    if (status == LOAD_FREE || !test_load_same_items(slot, reply))
        BAD(crash, "reservation %s is lost or half there: %.*s", slot->id,
            (int)reply.len, reply.data);
    if (slot->extended && status == LOAD_PENDING && !is_long)
        BAD(crash, "the extension of %s is lost", slot->id);
    if (op == NULL) {
        if (status != slot->status)
            BAD(crash, "reservation %s: told state %d, found %d", slot->id,
                slot->status, status);
        return UNKNOWN;
    }
    if (op->kind == LOAD_EXTEND && status == slot->status)
        return slot->extended ? UNKNOWN : is_long ? DONE : NOT_DONE;
    if (status == status_after(slot, op))
        return DONE;
    if (status != slot->status)
        BAD(crash, "reservation %s: told state %d, found %d after \"%s\"",
            slot->id, slot->status, status, op->text);
    return NOT_DONE;
}

static void check_slots(struct crash *crash, int index)
{
    struct load_worker *worker = &crash->load.workers[index];

    for (int i = 0; i < LOAD_SLOTS; i++) {
        struct load_slot *slot = &worker->slots[i];
        int place = 0;
        const struct load_op *op = under_way(worker, false, i, &place);
        if (slot->status == LOAD_FREE || slot->id[0] == '\0')
            continue;
        struct hf_bytes reply =
            test_ask(&crash->wire, "RESERVATION %s", slot->id);
        enum evidence found = judge_slot(crash, slot, op, reply);
        if (op == NULL)
            continue;
        crash->found[index][place] = found;
        if (found == DONE && op->kind == LOAD_EXTEND)
            slot->extended = true;
        else if (found == DONE)
            slot->status = status_after(slot, op);
    }
}

/* The rest of what is a worker's own. */

static void check_own_product(struct crash *crash, int index)
{
    struct load_worker *worker = &crash->load.workers[index];
    struct hf_bytes reply = test_ask(&crash->wire, "STOCK GET own-%d", index);
    uint64_t total = (uint64_t)test_number(reply, "total");
    bool known = total == worker->own_total;

    for (int i = 0; i < worker->flight_count; i++) {
        const struct load_op *op = &worker->flight[i];
        if (op->kind != LOAD_SET)
            continue;
        known = known || total == op->amount;
        crash->found[index][i] = total >= op->amount ? DONE : NOT_DONE;
    }
    if (!known)
        BAD(crash, "own-%d: told %" PRIu64 ", found %" PRIu64, index,
            worker->own_total, total);
    worker->own_total = total;
}

/* What was told is remembered; then a new token makes sure what is newest. */
static void check_fence(struct crash *crash, int index)
{
    struct load_worker *worker = &crash->load.workers[index];

    if (worker->fence > 1)
        CHECK_ERROR(test_ask(&crash->wire, "FENCE fence-%d %" PRIu64, index,
                             worker->fence - 1),
                    "STALE");
    worker->fence = worker->fence_next++;
    CHECK_REPLY(
        test_ask(&crash->wire, "FENCE fence-%d %" PRIu64, index, worker->fence),
        "+OK");
}

static void check_order_of_flight(struct crash *crash, int index)
{
    struct load_worker *worker = &crash->load.workers[index];
    int missing = -1;

    for (int i = 0; i < worker->flight_count; i++) {
        if (crash->found[index][i] == NOT_DONE && missing < 0)
            missing = i;
        if (crash->found[index][i] == DONE && missing >= 0)
            BAD(crash, "worker %d: \"%s\" is there, but not \"%s\" before it",
                index, worker->flight[i].text, worker->flight[missing].text);
    }
}

/* Asking again. */

static void repeat_answered(struct crash *crash, struct load_worker *worker)
{
    for (int i = 0; i < LOAD_REPEATS; i++) {
        struct load_repeat *repeat = &worker->repeats[i];
        if (repeat->answer.len == 0)
            continue;
        struct hf_bytes reply = test_ask(&crash->wire, "%s", repeat->text);
        if (!test_is_repeat(hf_buf_bytes(&repeat->answer), reply))
            BAD(crash, "\"%s\" was answered %.*s, and again %.*s", repeat->text,
                (int)repeat->answer.len, repeat->answer.data, (int)reply.len,
                reply.data);
        repeat->answer.len = 0;
    }
}

static void repeat_unanswered(struct crash *crash, int index)
{
    struct load_worker *worker = &crash->load.workers[index];

    for (int i = 0; i < worker->flight_count; i++) {
        const struct load_op *op = &worker->flight[i];
        bool done = crash->found[index][i] == DONE;
        if (op->kind == LOAD_RESERVE) {
            struct load_slot *slot = &worker->slots[op->object];
            if (!op->repeatable) {
                slot->status = done ? LOAD_PENDING : LOAD_FREE;
                continue;
            }
            slot->status = LOAD_ASKED;
        }
        if (!op->repeatable)
            continue;
        struct hf_bytes reply = test_ask(&crash->wire, "%s", op->text);
        if (done && reply.data[0] == '-')
            BAD(crash, "\"%s\" was done, but is answered %.*s", op->text,
                (int)reply.len, reply.data);
        if (done && op->kind == LOAD_LOCK &&
            (uint64_t)test_number(reply, "token") != op->amount)
            BAD(crash, "\"%s\" has two tokens: %" PRIu64 " and %.*s", op->text,
                op->amount, (int)reply.len, reply.data);
        if (!test_load_told(worker, op, reply))
            BAD(crash, "%s", worker->failure);
    }
}

/* Products. */

static void check_total(struct crash *crash, int sku)
{
    bool possible[LOAD_TOTALS];
    struct hf_bytes reply = test_ask(&crash->wire, "STOCK GET sku-%d", sku);
    int64_t total = test_number(reply, "total");
    int64_t known = crash->total[sku];

    for (int i = 0; i < LOAD_WORKERS; i++)
        known += crash->load.workers[i].added[sku];
    test_load_totals(&crash->load, sku, possible);
    if (total < known || total - known >= (int64_t)sizeof possible ||
        !possible[total - known])
        BAD(crash, "sku-%d: told a total of %" PRId64 ", found %" PRId64, sku,
            known, total);
    crash->total[sku] = total;
    for (int i = 0; i < LOAD_WORKERS; i++)
        crash->load.workers[i].added[sku] = 0;
}

/* Sums the reservations; ended ones are counted once and then forgotten. */
static void sum_reservations(struct crash *crash, int64_t *reserved)
{
    for (int i = 0; i < LOAD_WORKERS * LOAD_SLOTS; i++) {
        struct load_slot *slot =
            &crash->load.workers[i / LOAD_SLOTS].slots[i % LOAD_SLOTS];
        for (int j = 0; j < slot->item_count; j++) {
            if (slot->status == LOAD_PENDING)
                reserved[slot->sku[j]] += slot->quantity[j];
            if (slot->status == LOAD_CONFIRMED)
                crash->sold[slot->sku[j]] += slot->quantity[j];
        }
        if (slot->status == LOAD_CONFIRMED || slot->status == LOAD_CANCELLED)
            *slot = (struct load_slot){.status = LOAD_FREE};
    }
}

static void check_sums(struct crash *crash)
{
    int64_t reserved[LOAD_SKUS] = {0};

    sum_reservations(crash, reserved);
    for (int i = 0; i < LOAD_SKUS; i++) {
        struct hf_bytes reply = test_ask(&crash->wire, "STOCK GET sku-%d", i);
        int64_t available = test_number(reply, "available");
        if (available < 0 || test_number(reply, "reserved") != reserved[i] ||
            test_number(reply, "sold") != crash->sold[i] ||
            test_number(reply, "total") != crash->total[i] ||
            available + reserved[i] + crash->sold[i] != crash->total[i])
            BAD(crash,
                "sku-%d: reservations give reserved %" PRId64 " sold %" PRId64
                ", found %.*s",
                i, reserved[i], crash->sold[i], (int)reply.len, reply.data);
    }
}

/* Tokens. */

static void check_tokens(struct crash *crash)
{
    struct load_grant wrong;

    if (!test_load_grants_ok(&crash->load, &crash->newest, &wrong))
        BAD(crash, "lock-%d: token %" PRIu64 " was used or held before",
            wrong.lock, wrong.token);
}

/* Rounds. */

static void compare(struct crash *crash)
{
    test_server_connect(&crash->server, &crash->wire);
    memset(crash->found, 0, sizeof crash->found);
    for (int i = 0; i < LOAD_LOCKS; i++)
        check_lock(crash, i);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        crash->unanswered += (uint64_t)crash->load.workers[i].flight_count;
        check_slots(crash, i);
        check_own_product(crash, i);
        check_fence(crash, i);
        check_order_of_flight(crash, i);
        repeat_answered(crash, &crash->load.workers[i]);
    }
    for (int i = 0; i < LOAD_WORKERS; i++)
        repeat_unanswered(crash, i);
    check_tokens(crash);
    for (int i = 0; i < LOAD_SKUS; i++)
        check_total(crash, i);
    check_sums(crash);
    for (int i = 0; i < LOAD_WORKERS; i++)
        crash->load.workers[i].flight_count = 0;
    test_wire_close(&crash->wire);
}

/* Starts it; now and then after a start that was killed before it was ready. */
static void start(struct crash *crash)
{
    if (hf_random_below(&crash->random, 8) == 0) {
        uint64_t wait_ns = hf_random_below(&crash->random, 20000000);
        test_server_launch(&crash->server, &crash->opts);
        uint64_t end = hf_clock_now_ns(hf_clock_system()) + wait_ns;
        while (hf_clock_now_ns(hf_clock_system()) < end)
            ;
        test_server_kill(&crash->server);
    }
    test_server_start(&crash->server, &crash->opts);
}

static void burst(struct crash *crash)
{
    struct load *load = &crash->load;

    load->port = crash->server.port;
    load->pid = crash->server.pid;
    load->target = hf_random_below(&crash->random, 1200);
    load->linger_ns = hf_random_below(&crash->random, 300000);
    test_load_run(load);
    test_server_signal(&crash->server, SIGKILL);
    CHECK_EQ(test_server_end(&crash->server), 128 + SIGKILL);
    crash->told += atomic_load(&load->told);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        if (load->workers[i].failure[0] != '\0')
            BAD(crash, "%s", load->workers[i].failure);
    }
}

static int rounds(int usual)
{
    const char *text = getenv("CRASH_ROUNDS");
    uint64_t count = test_is_sanitized() ? 30 : 200;

    if (text != NULL)
        (void)hf_parse_u64(hf_bytes_text(text), &count);
    int part = (int)(count * (uint64_t)usual / 200);
    return part > 0 ? part : 1;
}

/* Kept across tests: a failed one jumps out of everything. */
static struct crash *crash;

/* What is left must be sound, and the rounds must have met snapshots and all
 * kinds of commands. */
static void check_folder(const char *dir)
{
    const char *verify[] = {"verify", dir, NULL};
    char pattern[512];
    glob_t found;
    struct hf_buf said = {0};
    int status = test_holdfast(&said, verify);

    if (status != 0)
        test_fail(__FILE__, __LINE__, "verify ended with %d: %s", status,
                  said.data);
    hf_buf_release(&said);
    if (crash->told < ENOUGH)
        return;
    CHECK(test_load_met_all(&crash->load));
    snprintf(pattern, sizeof pattern, "%s/snapshot-*", dir);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    globfree(&found);
}

static void run(const char *durability, int count)
{
    if (crash != NULL)
        test_load_release(&crash->load);
    hf_free(crash);
    crash = hf_alloc_zeroed(sizeof *crash);
    CHECK(crash != NULL);
    crash->opts = (struct test_server_opts){.dir = test_folder(),
                                            .durability = durability,
                                            .segment_bytes = SEGMENT_BYTES,
                                            .snapshot_bytes = SNAPSHOT_BYTES};
    hf_random_init(&crash->random, test_seed());
    test_load_init(&crash->load, test_seed() * 1000);
    for (int i = 0; i < LOAD_SKUS; i++)
        crash->total[i] = LOAD_STOCK;
    test_server_start(&crash->server, &crash->opts);
    test_server_connect(&crash->server, &crash->wire);
    test_load_prepare(&crash->load, &crash->wire);
    test_wire_close(&crash->wire);
    for (crash->round = 0; crash->round < count; crash->round++) {
        burst(crash);
        start(crash);
        compare(crash);
    }
    CHECK_EQ(test_server_stop(&crash->server), 0);
    check_folder(crash->opts.dir);
    printf("%s: %d rounds, %" PRIu64 " answered, %" PRIu64 " unanswered\n",
           durability, count, crash->told, crash->unanswered);
    test_load_release(&crash->load);
    hf_free(crash);
    crash = NULL;
}

TEST(nothing_acknowledged_is_lost_with_durability_always)
{
    run("always", rounds(200));
}

TEST(nothing_handed_to_the_system_is_lost_with_durability_interval)
{
    run("interval", rounds(20));
}

TEST(nothing_handed_to_the_system_is_lost_with_durability_none)
{
    run("none", rounds(20));
}
