/* exec.c - pools, futures, the scheduler, events and clocks of the world. */
#include "sim/server/exec.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "hold/engine.h"
#include "holdfast/event.h"
#include "holdfast/limiter.h"
#include "holdfast/pool.h"
#include "holdfast/scheduler.h"
#include "journal/disk.h"
#include "sim/server/loop.h"
#include "sim/server/world.h"

/* What the server's code takes between two looks at the clock. */
#define LOOK_NS 40u
/* What a look at the disk costs that was in vain. */
#define POLL_NS (10 * US)
/* How often a fiber that waits for an event looks. */
#define FIBER_LOOK_NS 1000000u

static struct dice dice;

void exec_begin(uint64_t run)
{
    dice = dice_make(world_seed(), "exec", run, 0);
}

/* ---- Clocks and randomness. ---- */

static uint64_t now_ns(void *context)
{
    (void)context;
    if (!world_in_fiber())
        world_spend(LOOK_NS);
    return world_now_ns();
}

static uint64_t wall_us(void *context)
{
    (void)context;
    return world_wall_us();
}

const struct hf_clock *hf_clock_system(void)
{
    static const struct hf_clock clock = {.now_ns = now_ns, .wall_us = wall_us};
    return &clock;
}

uint64_t hf_clock_after_ns(const struct hf_clock *clock, uint64_t ns)
{
    uint64_t deadline_ns;

    (void)clock;
    if (__builtin_add_overflow(world_now_ns(), ns, &deadline_ns))
        return HF_FOREVER;
    return deadline_ns;
}

uint64_t hf_clock_after_ms(const struct hf_clock *clock, uint64_t ms)
{
    return ms > UINT64_MAX / MS ? HF_FOREVER
                                : hf_clock_after_ns(clock, ms * MS);
}

ssize_t getrandom(void *data, size_t len, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < len; i++)
        ((char *)data)[i] = (char)dice_below(&dice, 256);
    return (ssize_t)len;
}

int statvfs(const char *path, struct statvfs *out)
{
    (void)path;
    memset(out, 0, sizeof *out);
    out->f_frsize = 4096;
    out->f_bavail = dice_hit(&dice, 100) ? 1000 : 1000000;
    return 0;
}

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

/* What the process really uses differs from run to run. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
    return strncmp(path, "/proc/", 6) == 0 ? NULL : __real_fopen(path, mode);
}

pid_t __wrap_getpid(void);

pid_t __wrap_getpid(void)
{
    return 4711;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __real_clock_gettime(clockid_t clock, struct timespec *out);

/* The processor's time, which METRICS tells, is the simulation's. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_PROCESS_CPUTIME_ID)
        return __real_clock_gettime(clock, out);
    out->tv_sec = (time_t)(world_now_ns() / S);
    out->tv_nsec = (long)(world_now_ns() % S);
    return 0;
}

enum hf_status __wrap_hf_limiter_open(struct hf_limiter **out,
                                      const struct hf_limiter_opts *opts);
enum hf_status __real_hf_limiter_open(struct hf_limiter **out,
                                      const struct hf_limiter_opts *opts);

/* Its hash would be seeded by addresses. */
enum hf_status __wrap_hf_limiter_open(struct hf_limiter **out,
                                      const struct hf_limiter_opts *opts)
{
    struct hf_limiter_opts seeded = *opts;

    seeded.seed = 1 + dice_below(&dice, 1000000);
    return __real_hf_limiter_open(out, &seeded);
}

/* ---- What the engine's work costs. ---- */

static uint64_t step_ns;

void exec_costs(uint64_t ns)
{
    step_ns = ns;
}

const struct hold_out *__wrap_hold_apply(struct hold_engine *engine,
                                         struct hf_bytes record);
const struct hold_out *__real_hold_apply(struct hold_engine *engine,
                                         struct hf_bytes record);

/* Each record, and each thing that falls due with it. */
const struct hold_out *__wrap_hold_apply(struct hold_engine *engine,
                                         struct hf_bytes record)
{
    const struct hold_out *out = __real_hold_apply(engine, record);

    if (out != NULL && !world_in_fiber())
        world_spend(step_ns * (1 + out->event_count));
    return out;
}

/* ---- Events: one thread, so that only until() has to do anything. ---- */

void hf_event_init(struct hf_event *event)
{
    memset(event, 0, sizeof *event);
}

uint32_t hf_event_prepare(struct hf_event *event)
{
    (void)event;
    return 0;
}

void hf_event_cancel(struct hf_event *event, uint32_t key)
{
    (void)event;
    (void)key;
}

/* A mutex that another fiber holds: look again a little later. */
enum hf_status hf_event_wait(struct hf_event *event, uint32_t key,
                             const struct hf_clock *clock, uint64_t deadline_ns)
{
    (void)event;
    (void)key;
    (void)clock;
    if (world_now_ns() >= deadline_ns)
        return HF_TIMEOUT;
    world_pass(POLL_NS);
    return HF_OK;
}

void hf_event_wake(struct hf_event *event, uint32_t count)
{
    (void)event;
    (void)count;
}

void hf_event_wake_all(struct hf_event *event)
{
    (void)event;
}

enum hf_status hf_event_until(struct hf_event *event,
                              enum hf_status (*attempt)(void *context),
                              void *context, const struct hf_clock *clock,
                              uint64_t deadline_ns)
{
    (void)event;
    (void)clock;
    for (;;) {
        enum hf_status status = attempt(context);
        if (status != HF_PENDING)
            return status;
        if (world_in_fiber()) {
            world_pass(FIBER_LOOK_NS);
            if (world_now_ns() >= deadline_ns)
                return HF_TIMEOUT;
            continue;
        }
        if (world_now_ns() >= deadline_ns) {
            world_spend(POLL_NS);
            world_run_until(world_now_ns());
            status = attempt(context);
            return status == HF_PENDING ? HF_TIMEOUT : status;
        }
        if (world_next_ns() > deadline_ns)
            world_run_until(deadline_ns);
        else
            world_step();
    }
}

/* ---- Pools. ---- */

struct hf_future {
    bool done;
    int refs;
};

struct job {
    struct job *next;
    int (*run)(void *arg);
    void *arg;
    struct hf_future *future;
    struct hf_pool *pool;
};

struct hf_pool {
    struct hf_pool *next;       /* of all */
    struct hf_pool_work *works; /* queued, by priority */
    bool busy;
    bool closed;
    bool called; /* its next run is in the world's queue */
};

static struct hf_pool everybody;
static struct hf_pool *pools;

static void pool_run(void *context)
{
    struct hf_pool *pool = context;
    struct hf_pool_work *work = pool->works;

    while (work != NULL && !pool->closed) {
        pool->works = (struct hf_pool_work *)(void *)work->task.next;
        work->queued = false;
        (void)work->task.run.fn(work->task.arg);
        work = pool->works;
    }
    pool->busy = false;
}

static void on_call(void *context, uint64_t number)
{
    struct hf_pool *pool = context;

    (void)number;
    pool->called = false;
    if (pool->busy || pool->works == NULL || pool->closed)
        return;
    pool->busy = true;
    world_fiber(pool_run, pool);
}

enum hf_status hf_pool_open(struct hf_pool **pool,
                            const struct hf_pool_opts *opts)
{
    (void)opts;
    *pool = calloc(1, sizeof **pool);
    if (*pool == NULL)
        return HF_NOMEM;
    (*pool)->next = pools;
    pools = *pool;
    return HF_OK;
}

enum hf_status hf_pool_work_init(struct hf_pool_work *work,
                                 struct hf_pool *pool, int (*fn)(void *arg),
                                 void *arg, const struct hf_task_opts *opts)
{
    memset(work, 0, sizeof *work);
    work->task.run.fn = fn;
    work->task.arg = arg;
    work->task.level = (uint16_t)(opts == NULL ? 3 : opts->priority);
    work->pool = pool;
    return HF_OK;
}

enum hf_status hf_pool_post(struct hf_pool_work *work)
{
    struct hf_pool *pool = work->pool;
    struct hf_pool_work **at = &pool->works;

    if (pool->closed)
        return HF_CLOSED;
    if (work->queued)
        return HF_EXISTS;
    while (*at != NULL && (*at)->task.level <= work->task.level)
        at = (struct hf_pool_work **)(void *)&(*at)->task.next;
    work->task.next = (void *)*at;
    *at = work;
    work->queued = true;
    if (!pool->called) {
        pool->called = true;
        world_after(dice_scale(&dice, 1 * US, 2 * MS), on_call, pool, 0);
    }
    return HF_OK;
}

size_t hf_pool_shutdown_now(struct hf_pool *pool,
                            void (*hand_back)(void *context, void *arg),
                            void *context)
{
    (void)hand_back;
    (void)context;
    if (pool == NULL)
        return 0;
    pool->works = NULL;
    pool->closed = true;
    return 0;
}

void hf_pool_close(struct hf_pool *pool)
{
    if (pool == NULL)
        return;
    pool->closed = true;
    while (pool->busy)
        world_step();
    pool->works = NULL;
}

struct hf_pool *hf_pool_default(void)
{
    return &everybody;
}

static void job_run(void *context)
{
    struct job *job = context;

    (void)job->run(job->arg);
    job->future->done = true;
    hf_future_release(job->future);
    free(job);
}

static void on_job(void *context, uint64_t number)
{
    (void)number;
    world_fiber(job_run, context);
}

enum hf_status hf_pool_submit(struct hf_pool *pool, int (*fn)(void *arg),
                              void *arg, const struct hf_task_opts *opts,
                              struct hf_future **future)
{
    struct job *job = calloc(1, sizeof *job);
    struct hf_future *made = calloc(1, sizeof *made);

    (void)pool;
    (void)opts;
    assert(job != NULL && made != NULL && future != NULL);
    made->refs = 2;
    *job = (struct job){.run = fn, .arg = arg, .future = made};
    *future = made;
    world_after(dice_scale(&dice, 1 * US, 20 * MS), on_job, job, 0);
    return HF_OK;
}

enum hf_status hf_future_get(struct hf_future *future, uint64_t deadline_ns,
                             struct hf_outcome *outcome)
{
    assert(deadline_ns == HF_FOREVER && outcome == NULL);
    while (!future->done)
        world_step();
    return HF_OK;
}

void hf_future_release(struct hf_future *future)
{
    if (--future->refs == 0)
        free(future);
}

/* ---- The scheduler: one task that comes again and again. ---- */

struct hf_scheduler {
    struct hf_scheduler *next; /* of all */
    struct hf_every every;
    int (*run)(void *arg);
    void *arg;
    bool closed;
};

static struct hf_scheduler *schedulers;

static void on_every(void *context, uint64_t number)
{
    struct hf_scheduler *scheduler = context;

    (void)number;
    if (scheduler->closed)
        return;
    (void)scheduler->run(scheduler->arg);
    world_after(scheduler->every.period_ns, on_every, scheduler, 0);
}

enum hf_status hf_scheduler_open(struct hf_scheduler **scheduler,
                                 const struct hf_scheduler_opts *opts)
{
    (void)opts;
    *scheduler = calloc(1, sizeof **scheduler);
    if (*scheduler == NULL)
        return HF_NOMEM;
    (*scheduler)->next = schedulers;
    schedulers = *scheduler;
    return HF_OK;
}

enum hf_status hf_scheduler_every_after(struct hf_scheduler *scheduler,
                                        const struct hf_every *every,
                                        int (*fn)(void *arg), void *arg,
                                        uint64_t *id)
{
    assert(id == NULL && scheduler->run == NULL);
    scheduler->every = *every;
    scheduler->run = fn;
    scheduler->arg = arg;
    world_after(1 * MS, on_every, scheduler, 0);
    return HF_OK;
}

void hf_scheduler_close(struct hf_scheduler *scheduler)
{
    scheduler->closed = true;
}

enum hf_status hf_scheduler_every(struct hf_scheduler *scheduler,
                                  const struct hf_every *every,
                                  int (*fn)(void *arg), void *arg, uint64_t *id)
{
    (void)id;
    return hf_scheduler_every_after(scheduler, every, fn, arg, NULL);
}

enum hf_status hf_scheduler_cancel(struct hf_scheduler *scheduler, uint64_t id)
{
    (void)scheduler;
    (void)id;
    return HF_NOTFOUND;
}

enum hf_status hf_scheduler_join(struct hf_scheduler *scheduler, uint64_t id,
                                 uint64_t deadline_ns)
{
    (void)scheduler;
    (void)id;
    (void)deadline_ns;
    return HF_NOTFOUND;
}

/* What was closed may still be in the world's queue: freed at the end. */
void exec_end(void)
{
    while (pools != NULL) {
        struct hf_pool *pool = pools;
        pools = pool->next;
        free(pool);
    }
    while (schedulers != NULL) {
        struct hf_scheduler *scheduler = schedulers;
        schedulers = scheduler->next;
        free(scheduler);
    }
}

/* ---- The disk's wake-up: no file descriptor, no system call. ---- */

void __wrap_journal_io_wake(struct journal_io *io);
void __wrap_journal_io_wake_clear(struct journal_io *io);

void __wrap_journal_io_wake(struct journal_io *io)
{
    (void)io;
    loop_wake(1);
}

void __wrap_journal_io_wake_clear(struct journal_io *io)
{
    (void)io;
    loop_wake(0);
}
