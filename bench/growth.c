/* growth.c - does an operation cost more when there is more?
 *
 *   growth MAX
 *
 * Fills an engine with 1 thousand, 10 thousand, ... MAX locks (products, limit
 * keys), then times operations on random ones of them: unlock and lock again,
 * reserve, limit. Prints "work keys nanoseconds" per line; the best of several
 * tries, since everything that disturbs only adds.
 *
 * A flat engine still gets slower where the keys outgrow the caches: a name,
 * its record and its place in the heap are then each a trip to memory.
 */
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

struct growth {
    struct hold_engine *engine;
    struct hf_limiter *limiter;
    struct hold_command command;
    struct hf_random random;
    uint64_t keys;
    uint64_t *tokens; /* of the locks */
    uint64_t picked[BATCH];
    uint64_t token[BATCH];
};

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

static void pick(struct growth *g)
{
    for (size_t i = 0; i < BATCH; i++)
        g->picked[i] = hf_random_below(&g->random, g->keys);
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
 * memory, not the engine's. A number may be picked twice in a batch; then its
 * second unlock needs the first one's token. */
static uint64_t run_locks(struct growth *g)
{
    pick(g);
    for (size_t i = 0; i < BATCH; i++) {
        g->token[i] = g->tokens[g->picked[i]];
        for (size_t j = 0; j < i; j++)
            if (g->picked[j] == g->picked[i])
                return 0;
    }
    uint64_t start = now_ns();
    for (size_t i = 0; i < BATCH; i++) {
        unlock(g, g->picked[i], g->token[i]);
        g->token[i] = lock(g, g->picked[i]);
    }
    uint64_t took = now_ns() - start;
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
    uint64_t start = now_ns();
    for (size_t i = 0; i < BATCH; i++) {
        g->command.item_count = 0;
        hold_add_item(&g->command, drive_name(sku, 'p', g->picked[i]), 1);
        drive_write(g->engine, &g->command);
    }
    return now_ns() - start;
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
    uint64_t start = now_ns();
    for (size_t i = 0; i < BATCH; i++)
        limit(g, g->picked[i]);
    return now_ns() - start;
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
            uint64_t batch = work->run(g);
            took += batch;
            count += batch == 0 ? 0 : BATCH;
        }
        double each = (double)took / (double)count;
        if (i == 0 || each < best)
            best = each;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const struct work works[] = {
        {"lock+unlock", fill_locks, run_locks},
        {"reserve", fill_products, run_reserve},
        {"limit", fill_limits, run_limits},
    };
    static struct growth g;
    if (argc != 2)
        drive_fail("usage", "growth MAX");
    uint64_t max = drive_number(argv[1]);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        for (uint64_t keys = 1000; keys <= max; keys *= 10) {
            memset(&g, 0, sizeof g);
            g.keys = keys;
            hf_random_init(&g.random, keys);
            g.engine = drive_new(&g.command);
            works[i].fill(&g);
            printf("%s %llu %.1f\n", works[i].name, (unsigned long long)keys,
                   measure(&g, &works[i]));
            fflush(stdout);
            hold_free(g.engine);
            hf_free(g.tokens);
        }
    }
    return 0;
}
