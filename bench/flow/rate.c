/* rate.c - a decision of every kind beside a mutex and beside one bare swap.
 *
 * The time is passed in and moves on so that nearly everything is allowed,
 * except in `refuse`. `mutex` is what one writes without thinking: the same
 * rule in a few plain variables under a pthread mutex. `cas` does not decide
 * anything: it moves one shared word forward, as the least that any shared
 * decision costs.
 */
#include "holdfast/rate.h"

#include <pthread.h>
#include <stdlib.h>

#include "bench/sync/contest.h"

enum shape {
    TAKE,
    REFUSE,
    BORROW, /* take and give back */
};

/* What `mode` and `size` of a work say. */
static const struct kind {
    struct hf_rate_rule rule;
    uint64_t step_ns; /* between two calls */
} kinds[] = {
    {{.permits = 1, .span_ns = 1, .burst = UINT32_MAX}, 1},
    {{.permits = 999999999, .span_ns = 1000000000, .burst = UINT32_MAX}, 1},
    {{.kind = HF_RATE_FIXED, .permits = 1000000000, .span_ns = 1000000000}, 2},
    {{.kind = HF_RATE_SLIDING, .permits = 16000, .span_ns = 1000000000},
     200000},
    {{.kind = HF_RATE_SLIDING, .permits = 1000000, .span_ns = 1000000000},
     2000},
    {{.kind = HF_RATE_LOG, .permits = 4096, .span_ns = 1000000}, 1000},
    {{.kind = HF_RATE_LEASES, .permits = 4096, .span_ns = 1000000000}, 1},
};

enum { BUCKET, FRACTION, FIXED, SLIDING, SLIDING_WIDE, LOG, LEASES };

#define WORK(text, number, how)                                        \
    {.name = text "-1",                                                \
     .threads = 1,                                                     \
     .shape = how,                                                     \
     .mode = number,                                                   \
     .most = 2000000000,                                               \
     .fresh = true},                                                   \
    {                                                                  \
        .name = text "-2", .threads = 2, .shape = how, .mode = number, \
        .most = 2000000000, .fresh = true                              \
    }

static const struct contest_work works[] = {
    WORK("bucket", BUCKET, TAKE),
    WORK("fraction", FRACTION, TAKE),
    WORK("fixed", FIXED, TAKE),
    WORK("sliding", SLIDING, TAKE),
    WORK("sliding-wide", SLIDING_WIDE, TAKE),
    WORK("log", LOG, TAKE),
    WORK("leases", LEASES, BORROW),
    WORK("refuse", FRACTION, REFUSE),
    {.name = NULL},
};

typedef uint64_t take_fn(void *self, uint64_t now_ns);
typedef void give_fn(void *self, uint64_t now_ns);

CONTEST_INLINE void run(struct contest_thread *thread, take_fn *take,
                        give_fn *give)
{
    uint64_t step_ns = kinds[thread->work->mode].step_ns;
    uint64_t from;
    uint64_t count;
    uint64_t refused = 0;

    while (contest_chunk(thread, &from, &count)) {
        uint64_t now_ns = from * step_ns;
        if (thread->work->shape == REFUSE) {
            for (uint64_t i = 0; i < count; i++)
                refused += take(thread->self, 0) != 0;
            continue;
        }
        for (uint64_t i = 0; i < count; i++) {
            refused += take(thread->self, now_ns) != 0;
            if (thread->work->shape == BORROW)
                give(thread->self, now_ns);
            now_ns += step_ns;
        }
    }
    /* A thread that was stopped comes with instants that are late. */
    if (thread->work->shape == REFUSE
            ? refused != thread->done
            : refused > 0 && thread->work->threads == 1)
        contest_fail("not what was to be measured");
}

/* ---- Ours. ---- */

static void *ours_open(const struct contest_work *work)
{
    const struct hf_rate_rule *rule = &kinds[work->mode].rule;
    size_t bytes = hf_rate_memory(rule);
    struct hf_rate *rate = contest_alloc(CONTEST_LINE * 2 + bytes);

    if (hf_rate_open(rate, rule, (char *)rate + CONTEST_LINE * 2) != HF_OK)
        contest_fail("hf_rate_open");
    if (work->shape == REFUSE && hf_rate_take(rate, rule->burst, 0) != 0)
        contest_fail("hf_rate_take");
    return rate;
}

CONTEST_INLINE uint64_t ours_take(void *self, uint64_t now_ns)
{
    return hf_rate_take(self, 1, now_ns);
}

CONTEST_INLINE void ours_give(void *self, uint64_t now_ns)
{
    hf_rate_refund(self, 1, now_ns);
}

static void ours_run(struct contest_thread *thread)
{
    run(thread, ours_take, ours_give);
}

static const struct contest_side ours = {
    .name = "ours", .open = ours_open, .close = free, .run = ours_run};

/* ---- A mutex and a few variables. ---- */

struct naive {
    pthread_mutex_t mutex;
    struct hf_rate_rule rule;
    double tokens;
    uint64_t last_ns;
    uint64_t index;
    uint64_t current;
    uint64_t before;
    uint64_t next; /* in the log */
    uint64_t log[];
};

static void *naive_open(const struct contest_work *work)
{
    const struct hf_rate_rule *rule = &kinds[work->mode].rule;
    size_t log = rule->kind >= HF_RATE_LOG ? rule->permits : 0;
    struct naive *naive = contest_alloc(sizeof *naive + log * sizeof(uint64_t));

    naive->rule = *rule;
    naive->tokens = work->shape == REFUSE ? 0 : (double)rule->burst;
    pthread_mutex_init(&naive->mutex, NULL);
    return naive;
}

static void naive_close(void *self)
{
    pthread_mutex_destroy(&((struct naive *)self)->mutex);
    free(self);
}

static bool naive_bucket(struct naive *naive, uint64_t now_ns)
{
    const struct hf_rate_rule *rule = &naive->rule;

    if (now_ns > naive->last_ns) {
        naive->tokens += (double)(now_ns - naive->last_ns) *
                         (double)rule->permits / (double)rule->span_ns;
        if (naive->tokens > rule->burst)
            naive->tokens = rule->burst;
        naive->last_ns = now_ns;
    }
    if (naive->tokens < 1)
        return false;
    naive->tokens -= 1;
    return true;
}

static bool naive_window(struct naive *naive, uint64_t now_ns)
{
    const struct hf_rate_rule *rule = &naive->rule;
    uint64_t index = now_ns / rule->span_ns;

    if (index > naive->index) {
        naive->before = index == naive->index + 1 ? naive->current : 0;
        naive->current = 0;
        naive->index = index;
    }
    double share =
        rule->kind == HF_RATE_FIXED
            ? 0
            : 1 - (double)(now_ns % rule->span_ns) / (double)rule->span_ns;
    if ((double)naive->current + share * (double)naive->before + 1 >
        rule->permits)
        return false;
    naive->current++;
    return true;
}

static bool naive_log(struct naive *naive, uint64_t now_ns)
{
    const struct hf_rate_rule *rule = &naive->rule;

    if (naive->log[naive->next] > now_ns)
        return false;
    naive->log[naive->next] = now_ns + rule->span_ns;
    naive->next = naive->next + 1 == rule->permits ? 0 : naive->next + 1;
    return true;
}

CONTEST_INLINE uint64_t naive_take(void *self, uint64_t now_ns)
{
    struct naive *naive = self;
    bool allowed;

    pthread_mutex_lock(&naive->mutex);
    if (naive->rule.kind < HF_RATE_FIXED)
        allowed = naive_bucket(naive, now_ns);
    else if (naive->rule.kind < HF_RATE_LOG)
        allowed = naive_window(naive, now_ns);
    else if (naive->rule.kind == HF_RATE_LOG)
        allowed = naive_log(naive, now_ns);
    else
        allowed = naive->current < naive->rule.permits;
    naive->current += naive->rule.kind == HF_RATE_LEASES && allowed;
    pthread_mutex_unlock(&naive->mutex);
    return !allowed;
}

/* Without leases: what is not given back never comes back. */
CONTEST_INLINE void naive_give(void *self, uint64_t now_ns)
{
    struct naive *naive = self;

    (void)now_ns;
    pthread_mutex_lock(&naive->mutex);
    naive->current--;
    pthread_mutex_unlock(&naive->mutex);
}

static void naive_run(struct contest_thread *thread)
{
    run(thread, naive_take, naive_give);
}

static const struct contest_side naive = {.name = "mutex",
                                          .open = naive_open,
                                          .close = naive_close,
                                          .run = naive_run};

/* ---- One bare swap. ---- */

static void *cas_open(const struct contest_work *work)
{
    return work->shape == TAKE ? contest_alloc(CONTEST_LINE) : NULL;
}

CONTEST_INLINE uint64_t cas_take(void *self, uint64_t now_ns)
{
    uint64_t *word = self;
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

    (void)now_ns;
    while (!__atomic_compare_exchange_n(word, &seen, seen + 1, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return 0;
}

static void cas_run(struct contest_thread *thread)
{
    run(thread, cas_take, naive_give);
}

static const struct contest_side cas = {
    .name = "cas", .open = cas_open, .close = free, .run = cas_run};

static const struct contest_side *const sides[] = {&ours, &naive, &cas, NULL};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
