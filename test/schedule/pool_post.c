/* pool_post.c - works, step by step: one work that several post is run after
 * every post, and is handed back at most once. */
#include "base/atomic.h"
#include "exec/pool_state.h"
#include "support/schedule.h"
#include "support/test.h"

#define POSTERS 2
#define POSTS   3

/* One work, posted by all. Each post says first that there is something to
 * do; a run does all that it sees. */
struct scene {
    struct hf_pool_opts opts; /* (i) */
    bool now;                 /* (i) ended by shutdown_now, at any time */
    unsigned fillers;         /* (i) tasks that take the room */
    struct hf_pool *pool;
    struct hf_pool_work work;
    struct hf_future *gate; /* the fibers start when the pool is open */
    struct hf_atomic_u32 to_do;
    struct hf_atomic_u32 done;
    struct hf_atomic_u32 runs;
    struct hf_atomic_u32 accepted;
    struct hf_atomic_u32 posters; /* that have ended */
    uint32_t back;
    struct hf_pool_stats end;
};

static int run_work(void *arg)
{
    struct scene *s = arg;
    uint32_t to_do = hf_u32_swap(&s->to_do, 0, __ATOMIC_ACQ_REL);

    hf_u32_add(&s->done, to_do, __ATOMIC_RELAXED);
    hf_u32_add(&s->runs, 1, __ATOMIC_RELAXED);
    return 0;
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void note_back(void *context, void *arg)
{
    struct scene *s = arg;

    (void)context;
    s->back++;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *s = context;
    const struct scene plan = *s;

    (void)seed;
    *s = (struct scene){
        .opts = plan.opts, .now = plan.now, .fillers = plan.fillers};
    if (hf_future_open(&s->gate, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no memory");
}

static void post(struct scene *s)
{
    hf_u32_add(&s->to_do, 1, __ATOMIC_RELAXED);
    enum hf_status status = hf_pool_post(&s->work);
    if (status == HF_OK)
        hf_u32_add(&s->accepted, 1, __ATOMIC_RELAXED);
    else if (status != HF_EXISTS && (status != HF_CLOSED || !s->now))
        schedule_wrong("post: status %d", status);
}

/* Fiber 0 opens, ends and closes the pool; the others post. */
static void body(void *context, unsigned fiber)
{
    const struct hf_outcome open = {HF_OK, 0, NULL};
    struct scene *s = context;

    if (fiber > 0) {
        (void)hf_future_get(s->gate, HF_FOREVER, NULL);
        for (int i = 0; i < POSTS; i++)
            post(s);
        hf_u32_add(&s->posters, 1, __ATOMIC_RELEASE);
        return;
    }
    if (hf_pool_open(&s->pool, &s->opts) != HF_OK ||
        hf_pool_work_init(&s->work, s->pool, run_work, s, NULL) != HF_OK ||
        hf_future_complete(s->gate, &open) != HF_OK)
        schedule_wrong("open failed");
    post(s);
    for (unsigned i = 0; i < s->fillers; i++)
        if (hf_pool_submit(s->pool, nothing, NULL, NULL, NULL) != HF_OK)
            schedule_wrong("submit failed");
    if (s->now && hf_pool_shutdown_now(s->pool, note_back, NULL) != s->back)
        schedule_wrong("handed back another number");
    while (hf_u32_load(&s->posters, __ATOMIC_ACQUIRE) < POSTERS)
        hf_thread_yield();
    hf_pool_shutdown(s->pool);
    if (hf_pool_await(s->pool, HF_FOREVER) != HF_OK)
        schedule_wrong("await failed");
    hf_pool_stats(s->pool, &s->end);
    hf_pool_close(s->pool);
}

static bool check(void *context, FILE *explain)
{
    struct scene *s = context;
    uint32_t accepted = hf_u32_load(&s->accepted, __ATOMIC_RELAXED);
    uint32_t runs = hf_u32_load(&s->runs, __ATOMIC_RELAXED);
    uint32_t done = hf_u32_load(&s->done, __ATOMIC_RELAXED);
    uint32_t left = hf_u32_load(&s->to_do, __ATOMIC_RELAXED);

    hf_future_release(s->gate);
    fprintf(explain, "accepted %u, ran %u, back %u, did %u, left %u", accepted,
            runs, s->back, done, left);
    return runs + s->back == accepted &&
           s->end.submitted == accepted + s->fillers &&
           s->end.completed == runs + s->fillers &&
           s->end.returned == s->back && s->back <= 1 &&
           done + left == POSTERS * POSTS + 1 && (s->now || left == 0);
}

static void run(const char *name, struct scene *plan)
{
    struct schedule_case c = {.name = name,
                              .fibers = POSTERS + 1,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = plan};

    plan->opts.idle_ns = 3000; /* some ten steps */
    schedule_check(&c);
}

TEST(a_run_follows_every_post_in_a_pool_of_one)
{
    struct scene plan = {.opts = {.kind = HF_POOL_SINGLE}};
    run("single", &plan);
}

TEST(a_run_follows_every_post_when_runs_overlap)
{
    struct scene plan = {.opts = {.max_threads = 2}};
    run("two threads", &plan);
}

TEST(a_run_follows_every_post_in_a_pool_that_grows_and_shrinks)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 2}};
    run("cached", &plan);
}

TEST(blocked_posters_of_one_work_leave_when_it_is_queued)
{
    struct scene plan = {.opts = {.kind = HF_POOL_SINGLE,
                                  .queue_max = 2,
                                  .reject = HF_POOL_BLOCK},
                         .fillers = 5};
    run("block", &plan);
}

TEST(a_work_is_run_or_handed_back)
{
    struct scene plan = {.opts = {.kind = HF_POOL_SINGLE}, .now = true};
    run("shutdown now", &plan);
}

TEST(a_work_of_a_cached_pool_is_run_or_handed_back)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 2},
                         .now = true};
    run("shutdown now, cached", &plan);
}

/* ---- Order: what one thread submits, in either way, begins in that order
 * in a pool of one. ---- */

#define ORDERED 6

static struct {
    struct hf_pool *pool;
    struct hf_pool_work works[POSTERS][ORDERED];
    struct hf_future *gate;
    struct hf_atomic_u32 posters;
    unsigned begun[POSTERS]; /* of the pool's thread, then of fiber 0 */
} ordered;

static int in_order(void *arg)
{
    const struct hf_pool_work *work = arg;
    size_t at = (size_t)(work - ordered.works[0]);

    if (at % ORDERED != ordered.begun[at / ORDERED]++)
        schedule_wrong("task %u of %u begins too early",
                       (unsigned)(at % ORDERED), (unsigned)(at / ORDERED));
    return 0;
}

static void submit_in_order(unsigned poster, unsigned i)
{
    struct hf_pool_work *work = &ordered.works[poster][i];
    enum hf_status status;

    if (i % 3 == 2) {
        status = hf_pool_work_init(work, ordered.pool, in_order, work, NULL);
        if (status == HF_OK)
            status = hf_pool_post(work);
    } else {
        status = hf_pool_submit(ordered.pool, in_order, work, NULL, NULL);
    }
    if (status != HF_OK)
        schedule_wrong("not accepted: %d", status);
}

static void order_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    for (unsigned i = 0; i < POSTERS; i++)
        ordered.begun[i] = 0;
    hf_u32_store(&ordered.posters, 0, __ATOMIC_RELAXED);
    if (hf_future_open(&ordered.gate, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no memory");
}

static void order_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts opts = {.kind = HF_POOL_SINGLE};
    const struct hf_outcome open = {HF_OK, 0, NULL};

    (void)context;
    if (fiber > 0) {
        (void)hf_future_get(ordered.gate, HF_FOREVER, NULL);
        for (unsigned i = 0; i < ORDERED; i++)
            submit_in_order(fiber - 1, i);
        hf_u32_add(&ordered.posters, 1, __ATOMIC_RELEASE);
        return;
    }
    if (hf_pool_open(&ordered.pool, &opts) != HF_OK ||
        hf_future_complete(ordered.gate, &open) != HF_OK)
        schedule_wrong("open failed");
    while (hf_u32_load(&ordered.posters, __ATOMIC_ACQUIRE) < POSTERS)
        hf_thread_yield();
    hf_pool_close(ordered.pool);
    for (unsigned i = 0; i < POSTERS; i++)
        if (ordered.begun[i] != ORDERED)
            schedule_wrong("%u began", ordered.begun[i]);
}

static bool order_check(void *context, FILE *explain)
{
    (void)context;
    (void)explain;
    hf_future_release(ordered.gate);
    return true;
}

TEST(tasks_and_works_of_one_thread_begin_in_its_order)
{
    struct schedule_case c = {.name = "order",
                              .fibers = POSTERS + 1,
                              .setup = order_setup,
                              .body = order_body,
                              .check = order_check};
    schedule_check(&c);
}
