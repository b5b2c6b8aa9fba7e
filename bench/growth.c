/* growth.c - does an operation cost more when there is more?
 *
 *   growth MAX
 *   growth --count KEYS
 *
 * Fills an engine with 1 thousand, 10 thousand, ... MAX locks (products, limit
 * keys, products with a pending reservation each), then times operations on
 * random ones of them: unlock and lock again, reserve, confirm, limit. Prints
 * "work keys nanoseconds" per line; the best of several tries, since everything
 * that disturbs only adds.
 *
 * With --count, the works on one engine of so many are run for callgrind, which
 * sees only the operations themselves (--instr-atstart=no --collect-atstart=no)
 * and dumps its count after each work. Prints "work operations" per line.
 *
 * A flat engine still gets slower where the keys outgrow the caches: a name,
 * its record and its place in the heap are then each a trip to memory.
 */
#include <valgrind/callgrind.h>

#include "base/memory.h"
#include "base/random.h"
#include "drive.h"
#include "holdfast/limiter.h"

#define TRIES      5u
#define TRY_OPS    65536u
#define BATCH      64u
#define RATE       100u
#define PER_MS     1000u
#define RESERVE_MS 600000u
#define COUNT_OPS  4096u
#define PASS_US    2000u /* after which an ended reservation is forgotten */

struct growth {
    struct hold_engine *engine;
    struct hf_limiter *limiter;
    struct hold_command command;
    struct hf_random random;
    uint64_t keys;
    uint64_t *tokens; /* of the locks; or the numbers of the reservations */
    uint64_t last;    /* number of a reservation */
    uint64_t picked[BATCH];
    uint64_t token[BATCH];
};

static bool counting;

/* What is between these two is timed, and counted. */
static uint64_t begin(void)
{
    uint64_t now_ns = hf_clock_now_ns(hf_clock_system());
    if (counting)
        CALLGRIND_TOGGLE_COLLECT;
    return now_ns;
}

static uint64_t took_since(uint64_t begun_ns)
{
    if (counting)
        CALLGRIND_TOGGLE_COLLECT;
    return hf_clock_now_ns(hf_clock_system()) - begun_ns;
}

static void pick(struct growth *g)
{
    for (size_t i = 0; i < BATCH; i++)
        g->picked[i] = hf_random_below(&g->random, g->keys);
}

static bool picked_before(const struct growth *g, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (g->picked[j] == g->picked[i])
            return true;
    }
    return false;
}

static void pick_each_once(struct growth *g)
{
    for (size_t i = 0; i < BATCH;) {
        g->picked[i] = hf_random_below(&g->random, g->keys);
        i += !picked_before(g, i);
    }
}

static uint64_t lock(struct growth *g, uint64_t number)
{
    char name[DRIVE_NAME_BYTES], owner[DRIVE_NAME_BYTES];
    drive_lock(&g->command, drive_name(name, 'l', number),
               drive_name(owner, 'o', number));
    const struct hold_out *out = drive_write(g->engine, &g->command);
    return (uint64_t)reply_get_number(out->body, FIELD_TOKEN);
}

static void unlock(struct growth *g, uint64_t number, uint64_t token)
{
    char name[DRIVE_NAME_BYTES];
    drive_unlock(&g->command, drive_name(name, 'l', number), token);
    drive_write(g->engine, &g->command);
}

static void fill_locks(struct growth *g)
{
    g->tokens = hf_alloc(g->keys * sizeof *g->tokens);
    if (g->tokens == NULL)
        drive_fail("growth", "out of memory");
    for (uint64_t i = 0; i < g->keys; i++)
        g->tokens[i] = lock(g, i);
}

/* Tokens are looked up and kept outside of the time taken: the client's
 * memory, not the engine's. */
static uint64_t run_locks(struct growth *g)
{
    pick_each_once(g);
    for (size_t i = 0; i < BATCH; i++)
        g->token[i] = g->tokens[g->picked[i]];
    uint64_t start = begin();
    for (size_t i = 0; i < BATCH; i++) {
        unlock(g, g->picked[i], g->token[i]);
        g->token[i] = lock(g, g->picked[i]);
    }
    uint64_t took = took_since(start);
    for (size_t i = 0; i < BATCH; i++)
        g->tokens[g->picked[i]] = g->token[i];
    return took;
}

static void fill_products(struct growth *g)
{
    char sku[DRIVE_NAME_BYTES];
    for (uint64_t i = 0; i < g->keys; i++) {
        drive_stock(&g->command, drive_name(sku, 'p', i));
        drive_write(g->engine, &g->command);
    }
    g->command.name = hf_bytes(NULL, 0);
    g->command.amount = 0;
    g->command.kind = HOLD_RESERVE;
    g->command.ttl_ms = RESERVE_MS;
}

static uint64_t run_reserve(struct growth *g)
{
    char sku[DRIVE_NAME_BYTES];
    pick(g);
    uint64_t start = begin();
    for (size_t i = 0; i < BATCH; i++) {
        g->command.item_count = 0;
        hold_add_item(&g->command, drive_name(sku, 'p', g->picked[i]), 1);
        drive_write(g->engine, &g->command);
    }
    return took_since(start);
}

static void set_bound(struct growth *g, const char *name, uint64_t value)
{
    struct hold_command command = {.kind = HOLD_BOUNDS,
                                   .now_us = g->command.now_us};
    (void)hold_add_item(&command, hf_bytes_text(name), value);
    drive_write(g->engine, &command);
}

/* Of the product with the number of its place. */
static void reserve_at(struct growth *g, uint64_t place)
{
    char id[DRIVE_NAME_BYTES], sku[DRIVE_NAME_BYTES];
    g->command.kind = HOLD_RESERVE;
    g->command.name = drive_name(id, 'v', g->tokens[place]);
    g->command.ttl_ms = RESERVE_MS;
    g->command.item_count = 0;
    hold_add_item(&g->command, drive_name(sku, 'p', place), 1);
    drive_write(g->engine, &g->command);
}

static void confirm(struct growth *g, uint64_t number)
{
    char id[DRIVE_NAME_BYTES];
    g->command.kind = HOLD_CONFIRM;
    g->command.name = drive_name(id, 'v', number);
    g->command.ttl_ms = 0;
    g->command.item_count = 0;
    drive_write(g->engine, &g->command);
}

static void fill_pending(struct growth *g)
{
    g->tokens = hf_alloc(g->keys * sizeof *g->tokens);
    if (g->tokens == NULL)
        drive_fail("growth", "out of memory");
    fill_products(g);
    set_bound(g, "ended_keep_ms", 1);
    set_bound(g, "reservations_max", 2 * DRIVE_KEYS_MAX);
    for (uint64_t i = 0; i < g->keys; i++) {
        g->tokens[i] = ++g->last;
        reserve_at(g, i);
    }
}

/* Time passes, and what has ended is forgotten: the number stays the same. */
static void forget(struct growth *g)
{
    struct hold_command tick = {.kind = HOLD_TICK};
    g->command.now_us += PASS_US;
    tick.now_us = g->command.now_us;
    drive_write(g->engine, &tick);
}

/* Reservations are confirmed and their places reserved again. One half of that
 * is timed. */
static uint64_t turn_over(struct growth *g, bool reserving)
{
    uint64_t took = 0;
    pick_each_once(g);
    uint64_t start = reserving ? 0 : begin();
    for (size_t i = 0; i < BATCH; i++)
        confirm(g, g->tokens[g->picked[i]]);
    if (!reserving)
        took = took_since(start);
    forget(g);
    for (size_t i = 0; i < BATCH; i++)
        g->tokens[g->picked[i]] = ++g->last;
    if (reserving)
        start = begin();
    for (size_t i = 0; i < BATCH; i++)
        reserve_at(g, g->picked[i]);
    return reserving ? took_since(start) : took;
}

static uint64_t run_reserve_pending(struct growth *g)
{
    return turn_over(g, true);
}

static uint64_t run_confirm(struct growth *g)
{
    return turn_over(g, false);
}

static void limit(struct growth *g, uint64_t number)
{
    char name[DRIVE_NAME_BYTES];
    struct hf_bytes key = drive_name(name, 'r', number);
    struct hf_limiter_rule rule = {
        .rate = {.permits = RATE, .span_ns = PER_MS * UINT64_C(1000000)}};
    struct hf_limiter_ask ask = {
        .own = &rule, .key = key.data, .key_len = key.len, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 1};
    struct hf_limiter_answer answer;
    if (hf_limiter_take(g->limiter, &call, &answer) != HF_OK)
        drive_fail("limit", "no answer");
}

static void fill_limits(struct growth *g)
{
    hf_limiter_close(g->limiter);
    if (hf_limiter_open(&g->limiter, NULL) != HF_OK)
        drive_fail("limit", "cannot be opened");
    for (uint64_t i = 0; i < g->keys; i++)
        limit(g, i);
}

static uint64_t run_limits(struct growth *g)
{
    pick(g);
    uint64_t start = begin();
    for (size_t i = 0; i < BATCH; i++)
        limit(g, g->picked[i]);
    return took_since(start);
}

struct work {
    const char *name;
    void (*fill)(struct growth *g);
    uint64_t (*run)(struct growth *g);
};

static double measure(struct growth *g, const struct work *work)
{
    double best = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t took = 0, count = 0;
        while (count < TRY_OPS) {
            took += work->run(g);
            count += BATCH;
        }
        double each = (double)took / (double)count;
        if (i == 0 || each < best)
            best = each;
    }
    return best;
}

static const struct work works[] = {
    {"lock+unlock", fill_locks, run_locks},
    {"reserve", fill_products, run_reserve},
    {"reserve-pending", fill_pending, run_reserve_pending},
    {"confirm", fill_pending, run_confirm},
    {"limit", fill_limits, run_limits},
};

static void count_work(struct growth *g, const struct work *work)
{
    for (unsigned i = 0; i < COUNT_OPS; i += BATCH)
        (void)work->run(g); /* once, without: caches of ours are filled */
    CALLGRIND_START_INSTRUMENTATION;
    counting = true;
    for (unsigned i = 0; i < COUNT_OPS; i += BATCH)
        (void)work->run(g);
    counting = false;
    CALLGRIND_DUMP_STATS_AT(work->name);
    CALLGRIND_STOP_INSTRUMENTATION;
    printf("%s %u\n", work->name, COUNT_OPS);
}

static void run(const struct work *work, uint64_t keys, bool count)
{
    static struct growth g;
    memset(&g, 0, sizeof g);
    g.keys = keys;
    hf_random_init(&g.random, keys);
    g.engine = drive_new(&g.command);
    work->fill(&g);
    if (count)
        count_work(&g, work);
    else
        printf("%s %llu %.1f\n", work->name, (unsigned long long)keys,
               measure(&g, work));
    fflush(stdout);
    hold_free(g.engine);
    hf_free(g.tokens);
}

int main(int argc, char **argv)
{
    bool count = argc == 3 && strcmp(argv[1], "--count") == 0;
    if (argc != 2 && !count)
        drive_fail("usage", "growth MAX, or growth --count KEYS");
    uint64_t max = drive_number(argv[argc - 1]);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        for (uint64_t keys = 1000; keys <= max && !count; keys *= 10)
            run(&works[i], keys, false);
        if (count)
            run(&works[i], max, true);
    }
    return 0;
}
