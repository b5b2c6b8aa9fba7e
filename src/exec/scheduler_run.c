/* scheduler_run.c - the thread that waits for the first task, and its runs.
 *
 * A run on a pool ends by the pool's future, whatever becomes of it: it has
 * run, or it was discarded or handed back before. So no task is forgotten, and
 * the end of the scheduler waits for exactly those runs that will come.
 *
 * The last step of such a run is in a worker of the pool, whom nobody joins:
 * when it unlocks the mutex, the scheduler may be closed already. Hence each
 * run holds a reference, and whoever gives the last one back frees.
 */
#include <assert.h>

#include "base/memory.h"
#include "exec/scheduler_state.h"

void hf_scheduler_release(struct hf_scheduler *scheduler)
{
    /* Release: what we did with it. Acquire: what the others did. */
    if (hf_u32_sub(&scheduler->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    hf_timers_destroy(&scheduler->timers);
    hf_free(scheduler);
}

bool hf_scheduler_is_sooner(struct hf_scheduler *scheduler, uint64_t when_ns)
{
    assert(hf_mutex_held(&scheduler->mutex));
    if (when_ns >= scheduler->sleeps_until_ns)
        return false;
    scheduler->sleeps_until_ns = 0; /* it will look, nobody else need wake */
    scheduler->counts.wakes++;
    return true;
}

/* Only whoever waits for just this is woken. */
void hf_scheduler_end(struct hf_scheduler *scheduler, struct timer *timer)
{
    assert(hf_mutex_held(&scheduler->mutex));
    bool joined = timer->joined;
    hf_timers_free(&scheduler->timers, timer);
    if (joined)
        hf_event_wake_all(&scheduler->over);
    if (scheduler->awaited && scheduler_is_done(scheduler))
        hf_event_wake_all(&scheduler->done);
}

/* ---- After a run. ---- */

/* What is to be done about a run when the lock is no longer held. */
struct news {
    uint64_t id;
    void *arg;
    int code;              /* 0: it did not fail */
    enum hf_status status; /* HF_OK: it was not dropped */
    uint64_t missed;
    bool wake; /* the thread, which sleeps for too long */
};

static void tell(struct hf_scheduler *scheduler, const struct news *news)
{
    struct hf_scheduler_note note = {.id = news->id,
                                     .arg = news->arg,
                                     .code = news->code,
                                     .status = news->status,
                                     .count = news->missed};

    if (news->wake)
        hf_event_wake(&scheduler->due, 1);
    if (scheduler->opts.observe == NULL)
        return;
    if (news->code != 0) {
        note.event = HF_SCHEDULER_FAILED;
        scheduler->opts.observe(scheduler->opts.context, &note);
    }
    if (news->status != HF_OK) {
        note.event = HF_SCHEDULER_DROPPED;
        scheduler->opts.observe(scheduler->opts.context, &note);
    }
    if (news->missed > 0) {
        note.event = HF_SCHEDULER_MISSED;
        scheduler->opts.observe(scheduler->opts.context, &note);
    }
}

/* Plans a periodic task's next time and puts it back. True: wake the thread. */
static bool plan_next(struct hf_scheduler *scheduler, struct timer *timer)
{
    if (timer->kind == TIMER_RATE)
        timer->when_ns += timer->period_ns;
    else
        timer->when_ns = hf_clock_now_ns(scheduler->clock) + timer->period_ns;
    hf_timers_put(&scheduler->timers, timer);
    return hf_scheduler_is_sooner(scheduler, timer->when_ns);
}

/* A run is over or was dropped: what becomes of the task. */
static void settle(struct hf_scheduler *scheduler, struct timer *timer,
                   struct news *news)
{
    assert(hf_mutex_held(&scheduler->mutex));
    scheduler->counts.failed += news->code != 0;
    scheduler->counts.dropped += news->status != HF_OK;
    if (timer->kind != TIMER_ONCE && !timer->overlap && !timer->over) {
        news->wake = plan_next(scheduler, timer);
        return;
    }
    if (!timer->waiting && timer->queued == 0 && timer->running == 0) {
        scheduler->counts.ended += !timer->cancelled;
        hf_scheduler_end(scheduler, timer);
    } else if (timer->joined) {
        hf_event_wake_all(&scheduler->over); /* cancelled, and not running */
    }
}

/* ---- Runs on a pool. ---- */

static int run(void *arg)
{
    struct timer *timer = arg;
    struct hf_scheduler *scheduler = timer->owner;

    hf_mutex_lock(&scheduler->mutex);
    bool cancelled = timer->cancelled;
    timer->queued--;
    timer->running++;
    scheduler->counts.fired += !cancelled;
    hf_mutex_unlock(&scheduler->mutex);
    return cancelled ? 0 : timer->fn(timer->arg);
}

/* A run is over. `status` HF_OK, HF_FAILED: it has run; else it has not. */
static void run_over(struct timer *timer, enum hf_status status, int code)
{
    struct hf_scheduler *scheduler = timer->owner;
    struct news news = {.arg = timer->arg, .code = code};

    hf_mutex_lock(&scheduler->mutex);
    news.id = hf_timer_id(timer);
    if (status == HF_OK || status == HF_FAILED) {
        timer->running--;
    } else {
        timer->queued--;
        if (!timer->cancelled)
            news.status = status;
    }
    settle(scheduler, timer, &news);
    hf_mutex_unlock(&scheduler->mutex);
    tell(scheduler, &news);
    hf_scheduler_release(scheduler);
}

static void completed(void *context, const struct hf_outcome *outcome)
{
    run_over(context, outcome->status, outcome->code);
}

static void hand_over(struct hf_scheduler *scheduler, struct timer *timer)
{
    static const struct hf_task_opts opts = {.name = "timer"};
    struct hf_future *future;

    /* Relaxed: the thread is there, so the scheduler cannot go meanwhile. */
    hf_u32_add(&scheduler->references, 1, __ATOMIC_RELAXED);
    enum hf_status status =
        hf_pool_submit(scheduler->opts.pool, run, timer, &opts, &future);
    if (status != HF_OK) {
        run_over(timer, status, 0);
        return;
    }
    if (hf_future_then(future, completed, timer) != HF_OK) {
        /* No memory: we take it back, or wait for it ourselves. */
        struct hf_outcome outcome;
        (void)hf_future_cancel(future);
        (void)hf_future_get(future, HF_FOREVER, &outcome);
        completed(timer, &outcome);
    }
    hf_future_release(future);
}

/* ---- The thread. ---- */

/* Takes the first task, which is due, out of the heap. Of the times of a fixed
 * rate that have passed only the last is left. Returns how many are missed. */
static uint64_t take_first(struct hf_scheduler *scheduler, struct timer *timer,
                           uint64_t now_ns)
{
    uint64_t late_ns = now_ns - timer->when_ns;
    uint64_t missed = 0;

    hf_timers_take_first(&scheduler->timers, timer);
    if (timer->kind == TIMER_RATE && !timer->catch_up &&
        late_ns >= timer->period_ns) {
        missed = late_ns / timer->period_ns;
        late_ns -= missed * timer->period_ns;
        timer->when_ns = now_ns - late_ns;
        scheduler->counts.missed += missed;
    }
    hf_waits_note(&scheduler->lateness, late_ns);
    if (scheduler->counts.late_max_ns < late_ns)
        scheduler->counts.late_max_ns = late_ns;
    return missed;
}

/* Returns with the mutex, as the next one does. */
static void fire(struct hf_scheduler *scheduler, struct timer *timer,
                 uint64_t missed)
{
    const struct news news = {
        .id = hf_timer_id(timer), .arg = timer->arg, .missed = missed};

    timer->queued++;
    if (timer->overlap)
        (void)plan_next(scheduler, timer); /* the thread is awake */
    hf_mutex_unlock(&scheduler->mutex);
    hand_over(scheduler, timer);
    tell(scheduler, &news);
    hf_mutex_lock(&scheduler->mutex);
}

/* The thread runs it itself. */
static void fire_direct(struct hf_scheduler *scheduler, struct timer *timer,
                        uint64_t missed)
{
    struct news news = {
        .id = hf_timer_id(timer), .arg = timer->arg, .missed = missed};

    timer->running = 1;
    scheduler->counts.fired++;
    hf_mutex_unlock(&scheduler->mutex);
    news.code = timer->fn(timer->arg);
    hf_mutex_lock(&scheduler->mutex);
    timer->running = 0;
    settle(scheduler, timer, &news);
    if (news.code != 0 || missed > 0) {
        hf_mutex_unlock(&scheduler->mutex);
        tell(scheduler, &news);
        hf_mutex_lock(&scheduler->mutex);
    }
}

void hf_scheduler_main(void *argument)
{
    struct hf_scheduler *scheduler = argument;

    hf_mutex_lock(&scheduler->mutex);
    while (!scheduler->stopping) {
        struct timer *first = hf_timers_first(&scheduler->timers);
        uint64_t now_ns = first == NULL ? 0 : hf_clock_now_ns(scheduler->clock);
        if (first != NULL && first->when_ns <= now_ns) {
            uint64_t missed = take_first(scheduler, first, now_ns);
            if (scheduler->opts.direct)
                fire_direct(scheduler, first, missed);
            else
                fire(scheduler, first, missed);
            continue;
        }
        uint64_t until_ns = first == NULL ? HF_FOREVER : first->when_ns;
        scheduler->sleeps_until_ns = until_ns;
        uint32_t key = hf_event_prepare(&scheduler->due);
        hf_mutex_unlock(&scheduler->mutex);
        (void)hf_event_wait(&scheduler->due, key, scheduler->clock, until_ns);
        hf_mutex_lock(&scheduler->mutex);
        scheduler->sleeps_until_ns = 0;
    }
    hf_mutex_unlock(&scheduler->mutex);
}
