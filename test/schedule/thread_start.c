/* thread_start.c - a pool whose threads cannot always be started, step by step:
 * what was accepted runs once, what was refused never, nobody hangs. */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/future.h"
#include "holdfast/pool.h"
#include "support/schedule.h"
#include "support/test.h"

#define SUBMITTERS 2
#define EACH       3

struct scene {
    struct hf_pool_opts opts; /* (i) */
    uint64_t starts_max;      /* (i) at most so many threads, by the seed */
    struct hf_pool *pool;
    struct hf_future *gate;     /* the fibers start when the pool is open */
    struct hf_atomic_u32 ended; /* submitters that have */
    struct hf_atomic_u32 ran[SUBMITTERS][EACH];
    enum hf_status said[SUBMITTERS][EACH];
    uint32_t threads_max; /* threads that could be had */
    struct hf_pool_stats end;
};

static int run_task(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_RELAXED);
    return 0;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *s = context;
    const struct scene plan = *s;

    (void)seed;
    *s = (struct scene){.opts = plan.opts, .starts_max = plan.starts_max};
    if (hf_future_open(&s->gate, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no memory");
}

/* Fiber 0 opens and closes the pool; the others submit. The fibers share the
 * count of the starts that are left. */
static void body(void *context, unsigned fiber)
{
    const struct hf_outcome open = {HF_OK, 0, NULL};
    struct scene *s = context;

    if (fiber > 0) {
        (void)hf_future_get(s->gate, HF_FOREVER, NULL);
        for (unsigned i = 0; i < EACH; i++)
            s->said[fiber - 1][i] = hf_pool_submit(
                s->pool, run_task, &s->ran[fiber - 1][i], NULL, NULL);
        hf_u32_add(&s->ended, 1, __ATOMIC_RELEASE);
        return;
    }
    if (hf_pool_open(&s->pool, &s->opts) != HF_OK)
        schedule_wrong("open failed");
    uint64_t starts = schedule_random(s->starts_max + 1);
    s->threads_max = s->opts.min_threads + (uint32_t)starts;
    hf_thread_fail_after(starts);
    if (hf_future_complete(s->gate, &open) != HF_OK)
        schedule_wrong("the gate is stuck");
    while (hf_u32_load(&s->ended, __ATOMIC_ACQUIRE) < SUBMITTERS)
        hf_thread_yield();
    hf_pool_shutdown(s->pool);
    if (hf_pool_await(s->pool, HF_FOREVER) != HF_OK)
        schedule_wrong("await failed");
    hf_pool_stats(s->pool, &s->end);
    hf_pool_close(s->pool);
    hf_thread_fail_never();
}

static bool check(void *context, FILE *explain)
{
    struct scene *s = context;
    uint64_t accepted = 0;

    hf_future_release(s->gate);
    for (unsigned f = 0; f < SUBMITTERS; f++) {
        for (unsigned i = 0; i < EACH; i++) {
            uint32_t ran = hf_u32_load(&s->ran[f][i], __ATOMIC_RELAXED);
            bool taken = s->said[f][i] == HF_OK;
            accepted += taken;
            fprintf(explain, "%u.%u: status %d, ran %u; ", f, i, s->said[f][i],
                    ran);
            if (ran != taken || (!taken && s->said[f][i] != HF_NOMEM))
                return false;
            if (!taken && s->opts.kind == HF_POOL_DYNAMIC)
                return false; /* it has a thread at any time */
        }
    }
    fprintf(explain, "peak %u of %u", s->end.threads_peak, s->threads_max);
    return s->end.completed == accepted && s->end.threads == 0 &&
           s->end.threads_peak <= s->threads_max;
}

static void run(const char *name, struct scene *plan)
{
    struct schedule_case c = {.name = name,
                              .fibers = 1 + SUBMITTERS,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = plan};
    schedule_check(&c);
}

TEST(a_cached_pool_runs_what_it_took_when_threads_run_out)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 3},
                         .starts_max = 3};
    run("cached", &plan);
}

TEST(a_cached_pool_whose_threads_leave_at_once_does_too)
{
    struct scene plan = {
        .opts = {.kind = HF_POOL_CACHED, .max_threads = 2, .idle_ns = 1},
        .starts_max = 3};
    run("cached, impatient", &plan);
}

TEST(a_dynamic_pool_takes_and_runs_all_when_it_cannot_grow)
{
    struct scene plan = {.opts = {.kind = HF_POOL_DYNAMIC,
                                  .min_threads = 1,
                                  .max_threads = 3,
                                  .grow_depth = 1,
                                  .idle_ns = HF_FOREVER},
                         .starts_max = 2};
    run("dynamic", &plan);
}

/* Its workers leave as soon as they may, also while a birth is failing. */
TEST(a_dynamic_pool_whose_threads_leave_at_once_keeps_its_least)
{
    struct scene plan = {.opts = {.kind = HF_POOL_DYNAMIC,
                                  .min_threads = 1,
                                  .max_threads = 3,
                                  .grow_depth = 1,
                                  .idle_ns = 1},
                         .starts_max = 2};
    run("dynamic, impatient", &plan);
}
