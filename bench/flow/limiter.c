/* limiter.c - hf_limiter beside a table behind a lock, behind many locks, and
 * libcuckoo. */
#include "holdfast/limiter.h"

#include <math.h>
#include <pthread.h>

#include "base/index.h"
#include "flow/rate_state.h"
#include "limits.h"

extern const struct contest_side limiter_cuckoo;

#define MANY 1000000

#define WORKS(text, kind, keys)                                      \
    {.name = text "-1", .threads = 1, .shape = kind, .size = keys},  \
    {                                                                \
        .name = text "-2", .threads = 2, .shape = kind, .size = keys \
    }

static const struct contest_work works[] = {
    WORKS("uniform-1m", LIMITS_UNIFORM, MANY),
    WORKS("zipf-1m", LIMITS_ZIPF, MANY),
    WORKS("hot", LIMITS_HOT, 1),
    {.name = "hot-8", .threads = 8, .shape = LIMITS_HOT, .size = 1},
    WORKS("denied", LIMITS_DENIED, 1),
    {.name = NULL},
};

/* So many permits that every call is allowed; or one in 11 days. */
static const struct hf_rate_rule plenty = {
    .permits = 1000000000, .span_ns = 1000000000, .burst = 4000000000};
static const struct hf_rate_rule nothing = {
    .permits = 1, .span_ns = 1000000000000000, .burst = 1};

static struct hf_rate_plan plans[2];
const uint32_t *limits_zipf;

bool limits_decide(int shape, uint64_t *word, uint64_t now_ns,
                   struct limits_told *told)
{
    const struct hf_rate_plan *plan = &plans[shape == LIMITS_DENIED];
    struct hf_rate_answer answer;
    struct rate_state state = {{0, 0}};
    uint64_t next = 0;

    told->wait_ns = rate_line_take(plan, *word, 1, 0, now_ns, &next);
    if (told->wait_ns == 0)
        *word = next;
    state.word[0] = *word;
    hf_rate_state_tell(plan, &state, now_ns, &answer);
    told->limit = answer.limit;
    told->remaining = answer.remaining;
    told->reset_ns = answer.reset_ns;
    return told->wait_ns == 0;
}

/* ---- Ours. ---- */

static void *ours_open(const struct contest_work *work)
{
    struct hf_limiter_rule rule = {
        .rate = work->shape == LIMITS_DENIED ? nothing : plenty};
    struct hf_limiter *limiter;

    if (hf_limiter_open(&limiter, &(struct hf_limiter_opts){.rule = &rule}))
        contest_fail("hf_limiter_open");
    return limiter;
}

static void ours_close(void *self)
{
    hf_limiter_close(self);
}

CONTEST_INLINE bool ours_take(struct contest_thread *thread,
                              const struct table_key *key, uint64_t now_ns)
{
    struct hf_limiter_ask ask = {
        .key = key->bytes, .key_len = sizeof key->bytes, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer;

    if (hf_limiter_take(thread->self, &call, &answer))
        contest_fail("hf_limiter_take");
    return answer.allowed;
}

static void ours_enter(struct contest_thread *thread)
{
    limits_fill(thread, ours_take);
}

static void ours_run(struct contest_thread *thread)
{
    limits_run(thread, ours_take);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .enter = ours_enter,
};

/* ---- The library's hash table behind one lock, and behind 64. ---- */

#define STRIPES 64

struct counted {
    struct hf_named named;
    uint64_t word;
};

struct stripe {
    _Alignas(CONTEST_LINE) pthread_mutex_t mutex;
    size_t bytes;
    struct hf_texts texts;
    struct hf_index index;
};

struct locked {
    unsigned stripes;
    struct stripe stripe[STRIPES];
};

static void *locked_new(unsigned stripes)
{
    struct locked *locked = contest_alloc(sizeof *locked);
    struct hf_hash_seed seed = {{1, 2}};

    locked->stripes = stripes;
    for (unsigned i = 0; i < stripes; i++) {
        struct stripe *stripe = &locked->stripe[i];
        hf_texts_init(&stripe->texts, &stripe->bytes);
        if (pthread_mutex_init(&stripe->mutex, NULL) ||
            hf_index_init(&stripe->index, sizeof(struct counted),
                          &stripe->texts, seed, &stripe->bytes))
            contest_fail("hf_index_init");
    }
    return locked;
}

static void locked_close(void *self)
{
    struct locked *locked = self;

    for (unsigned i = 0; i < locked->stripes; i++) {
        hf_index_destroy(&locked->stripe[i].index);
        hf_texts_destroy(&locked->stripe[i].texts);
    }
    free(locked);
}

CONTEST_INLINE bool locked_take(struct contest_thread *thread,
                                const struct table_key *key, uint64_t now_ns)
{
    struct locked *locked = thread->self;
    struct hf_bytes name = hf_bytes(key->bytes, sizeof key->bytes);
    uint32_t hash = hf_index_hash(&locked->stripe[0].index, name);
    struct stripe *stripe = &locked->stripe[(hash >> 26) % locked->stripes];
    struct limits_told told;

    pthread_mutex_lock(&stripe->mutex);
    uint32_t number = hf_index_find_hashed(&stripe->index, hash, name);
    if (number == 0)
        number = hf_index_add_hashed(&stripe->index, hash, name);
    if (number == 0)
        contest_fail("hf_index_add");
    struct counted *counted = hf_index_at(&stripe->index, number);
    bool allowed =
        limits_decide(thread->work->shape, &counted->word, now_ns, &told);
    pthread_mutex_unlock(&stripe->mutex);
    return allowed;
}

static void locked_enter(struct contest_thread *thread)
{
    limits_fill(thread, locked_take);
}

static void locked_run(struct contest_thread *thread)
{
    limits_run(thread, locked_take);
}

static void *mutex_open(const struct contest_work *work)
{
    (void)work;
    return locked_new(1);
}

static void *striped_open(const struct contest_work *work)
{
    (void)work;
    return locked_new(STRIPES);
}

static const struct contest_side mutex = {
    .name = "mutex",
    .open = mutex_open,
    .close = locked_close,
    .run = locked_run,
    .enter = locked_enter,
};

static const struct contest_side striped = {
    .name = "64-mutexes",
    .open = striped_open,
    .close = locked_close,
    .run = locked_run,
    .enter = locked_enter,
};

static const struct contest_side *const sides[] = {
    &ours, &mutex, &striped, &limiter_cuckoo, NULL,
};

/* Numbers of keys, the k-th with weight 1 / k^0.99. */
static void zipf_make(void)
{
    uint32_t *numbers = contest_alloc(LIMITS_ZIPF_NUMBERS * sizeof *numbers);
    double *sums = contest_alloc(MANY * sizeof *sums);
    uint64_t x = 88172645463325252u;
    double sum = 0;

    for (int i = 0; i < MANY; i++)
        sums[i] = sum += pow(i + 1, -0.99);
    for (uint32_t i = 0; i < LIMITS_ZIPF_NUMBERS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double at = (double)(x >> 11) / 9007199254740992.0 * sum;
        uint32_t low = 0, high = MANY - 1;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sums[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        numbers[i] = low;
    }
    free(sums);
    limits_zipf = numbers;
}

int main(int argc, char **argv)
{
    if (hf_rate_plan_make(&plans[0], &plenty) ||
        hf_rate_plan_make(&plans[1], &nothing))
        contest_fail("rate_plan_make");
    zipf_make();
    return contest_main(argc, argv, works, sides);
}
