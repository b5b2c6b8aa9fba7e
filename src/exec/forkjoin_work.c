/* forkjoin_work.c - workers that steal from each other, and how they sleep.
 *
 * A worker is a deque, an event to sleep on, and a thread: one that was started
 * here, or for the time of a run the caller's. Workers are made, never freed
 * before close, and found in an array that only grows.
 *
 * What a fork costs. Between fork and join there are two read-modify-writes of
 * the owner's own lines, for push and for pop; everything else is for the rare
 * case that somebody stole it.
 *
 * `state` of a fork. PENDING -> DONE by who ran it; the owner that is about to
 * sleep makes it WAITED first, and who then finds WAITED wakes the owner. Both
 * change one word, so one of them sees the other. After DONE the fork is not
 * touched: its memory is the owner's again. A fork that the owner itself takes
 * back in its join needs no state at all.
 *
 * Falling asleep: (1) the count `sleepers` one higher and `asleep` = 1, (2) a
 * last look into all deques, (3) sleep until `asleep` is 0, or what is joined
 * is done, or the end. A fork pushes and then wakes somebody if it reads a
 * `sleepers` above 0: who changes `asleep` from 1 to 0 takes one off the count
 * and wakes that one.
 *
 * Why the last look and the fork do not miss each other: both change one word.
 * A fork adds one to its worker's `forks` between its push and its look at
 * `sleepers`; the last look adds 0 to it between (1) and its look at the deque.
 * Whichever comes second sees what the other did before. So no piece waits
 * while a worker sleeps, and forks write nothing that other forks write.
 *
 * Who was woken owes a look: for the piece that it was woken for, since others
 * may still sleep. If it has something else to do, it wakes another instead.
 */
#include "base/thread.h"
#include "exec/forkjoin_state.h"
#include "holdfast/deque.h"

/* Rounds through all deques before a worker sleeps, and pauses between them:
 * some ten microseconds, about what a sleep and a wake-up cost. */
#define ROUNDS 100
#define PAUSES 8

/* Pauses of a thief after each piece: nothing beside a piece that is worth a
 * thief. With pieces of some nanoseconds, thieves that do not rest take the
 * owner's lines away from it at every turn, and all are slower than it alone.
 */
#define REST 8

enum fork_state { DONE, PENDING, WAITED };

/* ---- Work. ---- */

/* Adds one to a figure that only this thread writes. */
static inline void count(struct hf_atomic_u64 *figure)
{
    /* Relaxed: a figure. */
    hf_u64_store(figure, hf_u64_load(figure, __ATOMIC_RELAXED) + 1,
                 __ATOMIC_RELAXED);
}

/* Takes the sleeper's flag; true for one of those who try. */
static bool rouse(struct hf_forkjoin_worker *worker)
{
    uint32_t asleep = 1;

    /* Relaxed: mostly 0, and what matters is the swap. */
    if (hf_u32_load(&worker->asleep, __ATOMIC_RELAXED) == 0)
        return false;
    /* Release: what was forked. Acquire: the count was raised. */
    if (!hf_u32_cas(&worker->asleep, &asleep, 0, __ATOMIC_ACQ_REL))
        return false;
    /* Relaxed: whoever reads it too high finds nobody to wake. */
    hf_u32_sub(&worker->forkjoin->sleepers, 1, __ATOMIC_RELAXED);
    return true;
}

/* Wakes one of those who sleep, if any; each looks for the first behind it. */
static __attribute__((noinline)) void wake_one(struct hf_forkjoin_worker *self)
{
    struct hf_forkjoin *forkjoin = self->forkjoin;
    uint32_t workers = hf_forkjoin_count(forkjoin);

    for (uint32_t i = 1; i < workers; i++) {
        struct hf_forkjoin_worker *worker =
            hf_forkjoin_worker_at(forkjoin, (self->index + i) % workers);
        if (rouse(worker)) {
            hf_event_wake(&worker->event, 1);
            return;
        }
    }
}

enum hf_status hf_fork(struct hf_forkjoin_worker *worker, struct hf_fork *fork,
                       hf_forkjoin_fn *fn, void *arg)
{
    if (__builtin_expect(fork == NULL, 0))
        return HF_INVALID;
    if (__builtin_expect(worker == NULL || fn == NULL, 0)) {
        hf_u32_store(&fork->state, DONE, __ATOMIC_RELAXED); /* nobody sees it */
        return HF_INVALID;
    }
    fork->fn = fn;
    fork->arg = arg;
    fork->owner = worker;
    hf_u32_store(&fork->state, PENDING, __ATOMIC_RELAXED); /* push publishes */
    if (__builtin_expect(hf_deque_push(worker->deque, fork) != HF_OK, 0)) {
        hf_u64_add(&worker->forks, 1, __ATOMIC_RELAXED);
        fn(worker, arg); /* no memory: the join comes first */
        hf_u32_store(&fork->state, DONE, __ATOMIC_RELAXED);
        return HF_OK;
    }
    /* Release: the push. Acquire: that somebody sleeps. */
    hf_u64_add(&worker->forks, 1, __ATOMIC_ACQ_REL);
    if (__builtin_expect(
            hf_u32_load(&worker->forkjoin->sleepers, __ATOMIC_RELAXED) != 0, 0))
        wake_one(worker);
    return HF_OK;
}

/* Runs what was taken from a deque. */
static void execute(struct hf_forkjoin_worker *worker, struct hf_fork *fork)
{
    struct hf_forkjoin_worker *owner = fork->owner;

    fork->fn(worker, fork->arg);
    /* Release: what it wrote. Acquire: see `state` at the top. */
    if (hf_u32_swap(&fork->state, DONE, __ATOMIC_ACQ_REL) == WAITED)
        hf_event_wake(&owner->event, 1);
}

/* The oldest fork of the first worker that has one; NULL if there is none. */
static struct hf_fork *steal(struct hf_forkjoin_worker *self)
{
    struct hf_forkjoin *forkjoin = self->forkjoin;
    uint32_t workers = hf_forkjoin_count(forkjoin);
    uint32_t first = self->victim;
    void *item;

    for (uint32_t i = 0; i < workers; i++) {
        uint32_t at = (first + i) % workers;
        if (at == self->index)
            continue;
        if (hf_deque_steal(hf_forkjoin_worker_at(forkjoin, at)->deque, &item) ==
            HF_OK) {
            self->victim = at; /* who had one is likely to have another */
            count(&self->steals);
            return item;
        }
    }
    return NULL;
}

/* The same, for a while; in vain also when `join` is done. */
static struct hf_fork *seek(struct hf_forkjoin_worker *self,
                            const struct hf_fork *join)
{
    struct hf_fork *fork = steal(self);

    for (int i = hf_thread_spins(ROUNDS); i > 0 && fork == NULL; i--) {
        /* Relaxed: the caller looks again. */
        if (join && hf_u32_load(&join->state, __ATOMIC_RELAXED) == DONE)
            return NULL;
        for (int j = hf_thread_spins(PAUSES); j > 0; j--)
            hf_thread_pause();
        fork = steal(self);
    }
    return fork;
}

/* ---- Sleep. ---- */

/* A reason to be awake: who joins, its piece is done; who is idle, the end. */
static bool is_over(const struct hf_forkjoin_worker *self,
                    const struct hf_fork *join)
{
    if (join != NULL) /* acquire: what it wrote */
        return hf_u32_load(&join->state, __ATOMIC_ACQUIRE) == DONE;
    /* Acquire: with close, through the event. */
    return hf_u32_load(&self->forkjoin->ending, __ATOMIC_ACQUIRE) != 0;
}

static void sleep_until_roused(struct hf_forkjoin_worker *self,
                               const struct hf_fork *join)
{
    const struct hf_clock *clock = self->forkjoin->clock;

    count(&self->parks);
    for (;;) {
        uint32_t key = hf_event_prepare(&self->event);
        /* Acquire: what the one who roused us has forked. */
        if (hf_u32_load(&self->asleep, __ATOMIC_ACQUIRE) == 0 ||
            is_over(self, join)) {
            hf_event_cancel(&self->event, key);
            return;
        }
        hf_event_wait(&self->event, key, clock, HF_FOREVER);
    }
}

/* The last look; see the top of this file. */
static struct hf_fork *look(struct hf_forkjoin_worker *self)
{
    struct hf_forkjoin *forkjoin = self->forkjoin;
    /* Release: that we sleep. Acquire: what was pushed. And so with a worker
     * that is being added. */
    uint32_t workers = hf_u32_add(&forkjoin->count, 0, __ATOMIC_ACQ_REL);

    for (uint32_t i = 0; i < workers; i++)
        hf_u64_add(&hf_forkjoin_worker_at(forkjoin, i)->forks, 0,
                   __ATOMIC_ACQ_REL);
    return steal(self);
}

/* Sleeps until there may be work, or it is over. Returns work, if it found
 * some. */
static struct hf_fork *park(struct hf_forkjoin_worker *self,
                            struct hf_fork *join)
{
    struct hf_forkjoin *forkjoin = self->forkjoin;
    uint32_t pending = PENDING;

    /* Release: the count is up before the flag, so it is never too low. */
    hf_u32_add(&forkjoin->sleepers, 1, __ATOMIC_RELAXED);
    hf_u32_store(&self->asleep, 1, __ATOMIC_RELEASE);
    if (join != NULL) /* acquire: it may be done; release: for who wakes us */
        (void)hf_u32_cas(&join->state, &pending, WAITED, __ATOMIC_ACQ_REL);
    struct hf_fork *fork = look(self);
    if (fork == NULL) {
        uint64_t since_ns = join ? hf_clock_now_ns(forkjoin->clock) : 0;
        sleep_until_roused(self, join);
        if (join != NULL)
            hf_waits_note(&forkjoin->waits,
                          hf_clock_now_ns(forkjoin->clock) - since_ns);
    }
    if (rouse(self))
        return fork; /* nobody woke us for a piece */
    if (fork == NULL && !is_over(self, join))
        return steal(self);
    wake_one(self);
    return fork;
}

/* The join of what is not the newest fork, or was stolen. */
static __attribute__((noinline)) void help(struct hf_forkjoin_worker *worker,
                                           struct hf_fork *join)
{
    void *item;

    while (!is_over(worker, join)) {
        struct hf_fork *fork = NULL;
        if (hf_deque_pop(worker->deque, &item) == HF_OK)
            fork = item;
        if (fork == NULL)
            fork = seek(worker, join);
        if (fork == NULL && !is_over(worker, join))
            fork = park(worker, join);
        if (fork != NULL)
            execute(worker, fork);
    }
}

enum hf_status hf_join(struct hf_forkjoin_worker *worker, struct hf_fork *fork)
{
    void *item;

    if (__builtin_expect(worker == NULL || fork == NULL, 0))
        return HF_INVALID;
    /* Acquire: what it wrote, if it is done. */
    if (hf_u32_load(&fork->state, __ATOMIC_ACQUIRE) == DONE)
        return HF_OK;
    if (__builtin_expect(hf_deque_pop(worker->deque, &item) == HF_OK, 1)) {
        if (__builtin_expect(item == fork, 1)) {
            fork->fn(worker, fork->arg);
            return HF_OK;
        }
        execute(worker, item);
    }
    help(worker, fork);
    return HF_OK;
}

void hf_forkjoin_work(void *argument)
{
    struct hf_forkjoin_worker *self = argument;

    /* Relaxed: this thread alone looks for its own number. */
    hf_u32_store(&self->slot_plus_1, hf_thread_slot() + 1, __ATOMIC_RELAXED);
    while (!is_over(self, NULL)) {
        struct hf_fork *fork = seek(self, NULL);
        if (fork == NULL)
            fork = park(self, NULL);
        if (fork == NULL)
            continue;
        execute(self, fork);
        for (int i = hf_thread_spins(REST); i > 0; i--)
            hf_thread_pause();
    }
}
