/* scheduler.c - what users call: open, schedule, cancel, the end. */
#include "holdfast/scheduler.h"

#include <assert.h>

#include "base/memory.h"
#include "exec/pool_state.h"
#include "exec/scheduler_state.h"

/* ---- Scheduling. ---- */

static enum hf_status check(const struct hf_scheduler *scheduler,
                            uint64_t when_ns, int priority,
                            int (*fn)(void *arg))
{
    return scheduler == NULL || fn == NULL ||
                   when_ns > HF_SCHEDULER_TIME_MAX_NS ||
                   priority < HF_SCHEDULER_PRIORITY_MIN ||
                   priority > HF_SCHEDULER_PRIORITY_MAX
               ? HF_INVALID
               : HF_OK;
}

static enum hf_status add(struct hf_scheduler *scheduler,
                          const struct timer *form, int priority, uint64_t *id)
{
    struct timer *timer = NULL;
    enum hf_status status = HF_OK;
    bool wake = false;

    hf_mutex_lock(&scheduler->mutex);
    if (scheduler->shut)
        status = HF_CLOSED;
    else if (scheduler->timers.slab.used >= scheduler->opts.tasks_max)
        status = HF_FULL;
    else if ((timer = hf_timers_add(&scheduler->timers, form, priority)) ==
             NULL)
        status = HF_NOMEM;
    if (timer != NULL) {
        scheduler->counts.scheduled++;
        if (id != NULL)
            *id = hf_timer_id(timer);
        wake = hf_scheduler_is_sooner(scheduler, timer->when_ns);
    } else {
        scheduler->counts.rejected++;
    }
    hf_mutex_unlock(&scheduler->mutex);
    if (wake)
        hf_event_wake(&scheduler->due, 1);
    return status;
}

enum hf_status hf_scheduler_at(struct hf_scheduler *scheduler, uint64_t when_ns,
                               int priority, int (*fn)(void *arg), void *arg,
                               uint64_t *id)
{
    enum hf_status status = check(scheduler, when_ns, priority, fn);
    const struct timer form = {
        .when_ns = when_ns, .fn = fn, .arg = arg, .owner = scheduler};

    return status != HF_OK ? status : add(scheduler, &form, priority, id);
}

enum hf_status hf_scheduler_after(struct hf_scheduler *scheduler,
                                  uint64_t delay_ns, int priority,
                                  int (*fn)(void *arg), void *arg, uint64_t *id)
{
    if (scheduler == NULL || delay_ns > HF_SCHEDULER_TIME_MAX_NS)
        return HF_INVALID;
    return hf_scheduler_at(scheduler,
                           hf_clock_now_ns(scheduler->clock) + delay_ns,
                           priority, fn, arg, id);
}

static enum hf_status add_periodic(struct hf_scheduler *scheduler,
                                   const struct hf_every *every,
                                   enum timer_kind kind, int (*fn)(void *arg),
                                   void *arg, uint64_t *id)
{
    if (scheduler == NULL || every == NULL || every->period_ns == 0 ||
        every->period_ns > HF_SCHEDULER_TIME_MAX_NS ||
        (every->overlap && scheduler->opts.direct) ||
        (kind == TIMER_DELAY && (every->overlap || every->catch_up)))
        return HF_INVALID;
    const struct timer form = {
        .when_ns = every->first_ns != 0
                       ? every->first_ns
                       : hf_clock_now_ns(scheduler->clock) + every->period_ns,
        .period_ns = every->period_ns,
        .fn = fn,
        .arg = arg,
        .owner = scheduler,
        .kind = (uint8_t)kind,
        .catch_up = every->catch_up,
        .overlap = every->overlap,
    };
    enum hf_status status = check(scheduler, form.when_ns, every->priority, fn);
    return status != HF_OK ? status
                           : add(scheduler, &form, every->priority, id);
}

enum hf_status hf_scheduler_every(struct hf_scheduler *scheduler,
                                  const struct hf_every *every,
                                  int (*fn)(void *arg), void *arg, uint64_t *id)
{
    return add_periodic(scheduler, every, TIMER_RATE, fn, arg, id);
}

enum hf_status hf_scheduler_every_after(struct hf_scheduler *scheduler,
                                        const struct hf_every *every,
                                        int (*fn)(void *arg), void *arg,
                                        uint64_t *id)
{
    return add_periodic(scheduler, every, TIMER_DELAY, fn, arg, id);
}

/* ---- Withdrawing. ---- */

static bool has_runs(const struct timer *timer)
{
    return timer->queued > 0 || timer->running > 0;
}

/* Waits no longer, if it did; freed, unless it has runs. */
static void withdraw(struct hf_scheduler *scheduler, struct timer *timer)
{
    if (timer->waiting)
        hf_timers_withdraw(&scheduler->timers, timer);
    if (!has_runs(timer))
        hf_scheduler_end(scheduler, timer);
}

enum hf_status hf_scheduler_cancel(struct hf_scheduler *scheduler, uint64_t id)
{
    enum hf_status status = HF_NOTFOUND;

    if (scheduler == NULL)
        return HF_INVALID;
    hf_mutex_lock(&scheduler->mutex);
    struct timer *timer = hf_timers_find(&scheduler->timers, id);
    if (timer != NULL && timer->running > 0)
        status = HF_PENDING;
    else if (timer != NULL && !timer->cancelled)
        status = HF_OK;
    /* A run that has begun does not make a task that runs once cancelled. */
    bool once_runs = status == HF_PENDING && timer->kind == TIMER_ONCE;
    if (status != HF_NOTFOUND && !timer->cancelled && !once_runs) {
        timer->over = true;
        timer->cancelled = true;
        scheduler->counts.cancelled++;
        withdraw(scheduler, timer);
    }
    hf_mutex_unlock(&scheduler->mutex);
    return status;
}

void hf_scheduler_shutdown(struct hf_scheduler *scheduler)
{
    struct timer *timer;
    uint32_t number = 0;

    if (scheduler == NULL)
        return;
    hf_mutex_lock(&scheduler->mutex);
    if (!scheduler->shut) {
        scheduler->shut = true;
        while ((timer = hf_timers_walk(&scheduler->timers, &number)) != NULL) {
            if (timer->kind == TIMER_ONCE || timer->over)
                continue;
            timer->over = true;
            scheduler->counts.ended += !has_runs(timer);
            withdraw(scheduler, timer);
        }
        if (scheduler_is_done(scheduler))
            hf_event_wake_all(&scheduler->done);
    }
    hf_mutex_unlock(&scheduler->mutex);
}

size_t hf_scheduler_shutdown_now(struct hf_scheduler *scheduler,
                                 void (*hand_back)(void *context, void *arg),
                                 void *context)
{
    size_t returned = 0;

    if (scheduler == NULL)
        return 0;
    hf_scheduler_shutdown(scheduler);
    for (;;) {
        hf_mutex_lock(&scheduler->mutex);
        struct timer *timer = hf_timers_any(&scheduler->timers);
        void *arg = timer == NULL ? NULL : timer->arg;
        if (timer != NULL) {
            scheduler->counts.returned++;
            withdraw(scheduler, timer);
        }
        hf_mutex_unlock(&scheduler->mutex);
        if (timer == NULL)
            return returned;
        returned++;
        if (hand_back != NULL)
            hand_back(context, arg);
    }
}

/* ---- Waiting for an end. Whoever waits leaves a mark, under the mutex. ----
 */

struct joined {
    struct hf_scheduler *scheduler;
    uint64_t id;
};

static enum hf_status is_over(void *context)
{
    const struct joined *joined = context;
    struct hf_scheduler *scheduler = joined->scheduler;

    hf_mutex_lock(&scheduler->mutex);
    struct timer *timer = hf_timers_find(&scheduler->timers, joined->id);
    bool over = timer == NULL || (timer->cancelled && timer->running == 0);
    if (!over)
        timer->joined = true;
    hf_mutex_unlock(&scheduler->mutex);
    return over ? HF_OK : HF_PENDING;
}

enum hf_status hf_scheduler_join(struct hf_scheduler *scheduler, uint64_t id,
                                 uint64_t deadline_ns)
{
    struct joined joined = {scheduler, id};

    if (scheduler == NULL)
        return HF_INVALID;
    return hf_event_until(&scheduler->over, is_over, &joined, scheduler->clock,
                          deadline_ns);
}

static enum hf_status is_done(void *context)
{
    struct hf_scheduler *scheduler = context;

    hf_mutex_lock(&scheduler->mutex);
    bool done = scheduler_is_done(scheduler);
    scheduler->awaited |= !done;
    hf_mutex_unlock(&scheduler->mutex);
    return done ? HF_OK : HF_PENDING;
}

enum hf_status hf_scheduler_await(struct hf_scheduler *scheduler,
                                  uint64_t deadline_ns)
{
    if (scheduler == NULL)
        return HF_INVALID;
    return hf_event_until(&scheduler->done, is_done, scheduler,
                          scheduler->clock, deadline_ns);
}

/* ---- Figures. ---- */

uint64_t hf_scheduler_pending(struct hf_scheduler *scheduler)
{
    if (scheduler == NULL)
        return 0;
    hf_mutex_lock(&scheduler->mutex);
    uint64_t pending = scheduler->timers.waiting;
    hf_mutex_unlock(&scheduler->mutex);
    return pending;
}

uint64_t hf_scheduler_next_ns(struct hf_scheduler *scheduler)
{
    if (scheduler == NULL)
        return HF_FOREVER;
    hf_mutex_lock(&scheduler->mutex);
    const struct timer *first = hf_timers_first(&scheduler->timers);
    uint64_t next_ns = first == NULL ? HF_FOREVER : first->when_ns;
    hf_mutex_unlock(&scheduler->mutex);
    return next_ns;
}

void hf_scheduler_stats(struct hf_scheduler *scheduler,
                        struct hf_scheduler_stats *out)
{
    if (scheduler == NULL || out == NULL)
        return;
    hf_mutex_lock(&scheduler->mutex);
    *out = scheduler->counts;
    out->pending = scheduler->timers.waiting;
    out->active = scheduler->timers.slab.used - out->pending;
    out->memory_bytes = sizeof *scheduler + scheduler->timers.bytes;
    hf_mutex_unlock(&scheduler->mutex);
    out->late_p50_ns = hf_waits_percentile_ns(&scheduler->lateness, 50);
    out->late_p99_ns = hf_waits_percentile_ns(&scheduler->lateness, 99);
    if (out->late_p50_ns == HF_INSPECT_NONE)
        out->late_max_ns = HF_INSPECT_NONE;
}

/* The oldest task is the one that is due first; its age, how long it is. */
static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_scheduler_stats stats;
    /* `listed` is the first member of the scheduler, which is no constant. */
    struct hf_scheduler *scheduler = (struct hf_scheduler *)(uintptr_t)listed;
    uint64_t next_ns = hf_scheduler_next_ns(scheduler);
    uint64_t now_ns = hf_clock_now_ns(scheduler->clock);

    hf_scheduler_stats(scheduler, &stats);
    row->depth = stats.pending;
    row->capacity = scheduler->opts.tasks_max;
    row->oldest_ns = next_ns < now_ns ? now_ns - next_ns : 0;
    row->rejected = stats.rejected + stats.dropped;
    row->wait_p99_ns = stats.late_p99_ns;
}

/* ---- Opening and closing. ---- */

/* Fills in the defaults; HF_INVALID if a field is out of its range. */
static enum hf_status complete(struct hf_scheduler_opts *opts)
{
    if (opts->tasks_max > HF_SCHEDULER_TASKS_MAX ||
        (opts->direct && opts->pool != NULL))
        return HF_INVALID;
    if (opts->tasks_max == 0)
        opts->tasks_max = HF_SCHEDULER_TASKS_MAX;
    if (!opts->direct && opts->pool == NULL &&
        (opts->pool = hf_pool_default()) == NULL)
        return HF_NOMEM;
    /* Whoever is asked might run it later, after we were told that the pool
     * gave it up. */
    if (opts->pool != NULL && opts->pool->opts.reject == HF_POOL_ASK)
        return HF_INVALID;
    return HF_OK;
}

enum hf_status hf_scheduler_open(struct hf_scheduler **out,
                                 const struct hf_scheduler_opts *opts)
{
    struct hf_scheduler_opts all = {0};
    enum hf_status status = HF_INVALID;

    if (opts != NULL)
        all = *opts;
    if (out == NULL || (status = complete(&all)) != HF_OK)
        return status;
    struct hf_scheduler *scheduler = hf_alloc_zeroed(sizeof *scheduler);
    if (scheduler == NULL)
        return HF_NOMEM;
    scheduler->opts = all;
    scheduler->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    hf_timers_init(&scheduler->timers);
    /* Relaxed: nobody else has it yet. */
    hf_u32_store(&scheduler->references, 1, __ATOMIC_RELAXED);
    status = hf_thread_start(&scheduler->thread,
                             all.name == NULL ? "scheduler" : all.name,
                             hf_scheduler_main, scheduler);
    if (status != HF_OK) {
        hf_scheduler_release(scheduler);
        return HF_NOMEM;
    }
    hf_listed_add(&scheduler->listed, "scheduler", all.name, fill);
    *out = scheduler;
    return HF_OK;
}

void hf_scheduler_close(struct hf_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    hf_scheduler_shutdown_now(scheduler, NULL, NULL);
    enum hf_status status = hf_scheduler_await(scheduler, HF_FOREVER);
    assert(status == HF_OK);
    (void)status;
    hf_listed_remove(&scheduler->listed);
    hf_mutex_lock(&scheduler->mutex);
    scheduler->stopping = true;
    hf_mutex_unlock(&scheduler->mutex);
    hf_event_wake(&scheduler->due, 1);
    hf_thread_join(&scheduler->thread);
    hf_scheduler_release(scheduler);
}
