/* pool_state.h - the inside of a pool, shared by its source files.
 *
 *   pool.c         open, the end, figures
 *   pool_submit.c  submit, and what is done when there is no room
 *   pool_inbox.c   the way into the queue without the lock
 *   pool_queue.c   the queue
 *   pool_run.c     running a task
 *   pool_worker.c  a worker's life
 *
 * One lock guards the queue and every count, so that each decision (grow,
 * shrink, refuse, end) is made on the truth. It is held for some ten
 * instructions at a time; tasks, observers and thread starts are outside it.
 * Where nothing is to be decided (there is room, as many threads as there may
 * be, and somebody awake) a submitter goes past it.
 *
 *   a task    put --> queued --take--> begun --> ended, counted, future done
 *                       `--- claim ------^  by a task that waits for it
 *
 * A task's future is begun while the lock is held and in the same breath as
 * the task leaves the queue. So, under the lock, a future that is pending has
 * its task in the queue.
 */
#ifndef EXEC_POOL_STATE_H
#define EXEC_POOL_STATE_H

#include "base/thread.h"
#include "exec/future.h"
#include "holdfast/pool.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/waits.h"

/* Records are allocated by the block, a page. */
#define POOL_LINE 64
struct pool_block {
    _Alignas(POOL_LINE) struct hf_pool_task tasks[63];
    struct pool_block *next;
};

struct pool_list {
    struct hf_pool_task *first;
    struct hf_pool_task *last;
};

/* Tasks that were pushed and not fetched. On a line of its own: a worker does
 * not look here as long as it has something older, or more urgent. */
struct pool_inbox {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr last; /* (a) */
};

/* Free records that are a thread's own. */
struct pool_local {
    _Alignas(HF_CACHE_LINE) struct hf_pool_task *free;
};

struct pool_worker {
    struct pool_worker *next; /* (m) of those who are gone */
    struct hf_thread thread;
    struct hf_pool *pool;
};

struct hf_pool {
    struct hf_listed listed;
    struct hf_pool_opts opts;     /* (i) with defaults filled in */
    const struct hf_clock *clock; /* (i) */
    bool of_process;              /* (i) hf_pool_default(): not to be closed */
    struct hf_mutex birth;        /* one thread is born at a time, and after
                                   * shutdown only in the place of one that
                                   * was lost; taken before mutex */

    /* For submitters; changes seldom. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 attention; /* (a) */
    struct hf_locals locals; /* struct pool_local */
    /* Places taken in a queue that has a bound, and where they end: at least
     * that of the truth, `left` + queue_max. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 entered; /* (a) */
    struct hf_atomic_u64 entry_end;                       /* (a) */
    struct pool_inbox inboxes[HF_POOL_PRIORITIES];

    /* Guards what follows, marked (m). What every task touches comes first. */
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct hf_pool_task *free_tasks;            /* (m) records */
    struct pool_list queue[HF_POOL_PRIORITIES]; /* (m) */
    enum hf_pool_state state;                   /* (m) */
    uint32_t idle;               /* (m) workers who will look for work */
    uint32_t searching;          /* (m) of these, awake and looking */
    uint32_t asleep;             /* (m) of these, waiting for `work` */
    uint32_t called;             /* (m) sleepers on their way */
    uint32_t blocked;            /* (m) submitters that wait for room */
    struct hf_pool_stats counts; /* (m) all but what is computed */
    uint64_t left;               /* (m) places given back */
    uint64_t busy_ns;            /* (m) in tasks, with `times` */
    uint32_t threads;            /* (m) alive, or about to be */
    struct pool_worker *newborn; /* (m) of these, who may not come to life */
    uint32_t number;             /* (m) of the task that came last; not 0 */
    uint64_t thread_ns;          /* (m) of all threads, up to changed_ns */
    uint64_t changed_ns;         /* (m) `threads` changed */
    struct pool_block *blocks;   /* (m) of all records */
    struct pool_worker *gone;    /* (m) workers that ended, to be joined */

    /* On a line of its own: those who search look at it without the lock. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 any; /* (a) put, or an end */
    struct hf_event work;        /* there is a task, or an end */
    struct hf_event room;        /* there is room in the queue */
    struct hf_event over;        /* the last worker has gone */
    struct hf_waits queue_waits; /* (a) */
    struct hf_waits runs;        /* (a) */
};

/* Threads that are there for certain. */
static inline uint32_t pool_alive(const struct hf_pool *pool)
{
    return pool->threads - (pool->newborn != NULL);
}

/* ---- pool_inbox.c ---- */

/* Submits without the lock; false: it has to be done with it. */
bool hf_pool_push(struct hf_pool *pool, const struct hf_pool_task *form);
/* Has somebody pushed what nobody has fetched? */
bool hf_pool_inbox_any(const struct hf_pool *pool);
/* The rest under the mutex. Brings what was pushed into the queue. */
void hf_pool_fetch(struct hf_pool *pool, unsigned level);
void hf_pool_fetch_all(struct hf_pool *pool);
/* The same, and nobody can push any more. */
void hf_pool_shut_inboxes(struct hf_pool *pool);
/* Is every place taken? Some may be by those who are about to push. */
bool hf_pool_is_full(const struct hf_pool *pool);
/* Takes a place; false: there is none. */
bool hf_pool_enter(struct hf_pool *pool);
/* A record that is free, NULL: there is none. Also moves some to those that
 * the thread has for its next pushes. */
struct hf_pool_task *hf_pool_free_record(struct hf_pool *pool);
/* After any change of who sleeps, searches or lives, and before one looks into
 * the inboxes. */
void hf_pool_note_attention(struct hf_pool *pool);
/* True: a sleeper is to be woken, after the lock has been given up: there is
 * work, and too few look for it. Whoever takes a task calls the next. */
bool hf_pool_call_one(struct hf_pool *pool);

/* ---- pool_queue.c; all under the mutex ---- */

/* Copies the form into the queue, into a record of the pool's or, for a work,
 * into the work: its `next` is the place, NULL for a record. HF_EXISTS: that
 * work is queued; HF_CLOSED, HF_FULL; HF_MORE: there is no record to put it
 * in, add some with hf_pool_add_block. */
enum hf_status hf_pool_put(struct hf_pool *pool, struct hf_pool_task *form);
void hf_pool_add_block(struct hf_pool *pool, struct pool_block *block);
/* What a record holds, but for its place in the queue. */
static inline void pool_fill_record(struct hf_pool_task *record,
                                    const struct hf_pool_task *form)
{
    record->run = form->run;
    record->arg = form->arg;
    record->name = form->name;
    record->future = form->future;
    record->submitted_ns = form->submitted_ns;
    record->level = form->level;
    record->has_result = form->has_result;
    record->posted = false;
    if (form->future != NULL)
        form->future->place = record;
}
/* Is the form that of a work, and that work queued? */
bool hf_pool_is_queued(const struct hf_pool_task *form);
/* Takes the next task, which has then begun; false: there is none. Passes over
 * those that were cancelled, and counts them. Its `prev` is the record that it
 * was in, which is free now, or its work, which is at rest. */
bool hf_pool_take(struct hf_pool *pool, struct hf_pool_task *out);
/* The level of those that would run last, when there are some; and takes the
 * oldest of them; false: it had been cancelled, and has left the queue too. */
unsigned hf_pool_least(const struct hf_pool *pool);
bool hf_pool_take_least(struct hf_pool *pool, struct hf_pool_task *out);
/* The same for the task of this future. */
bool hf_pool_take_this(struct hf_pool *pool, struct hf_future *future,
                       struct hf_pool_task *out);
/* Takes a task back as if it had never been put; false: it has gone. */
bool hf_pool_withdraw(struct hf_pool *pool, const struct hf_pool_task *form);

/* ---- pool_submit.c ---- */

/* After a push: wakes, and hires, as is needed. */
void hf_pool_attend(struct hf_pool *pool);
/* More work than workers who will look for some, or more than the mark. */
bool hf_pool_wants_more(const struct hf_pool *pool);
/* The future of a task that was begun and will not run, outside locks. */
void hf_pool_cancel(const struct hf_pool_task *task);
/* The same, and tells that it was dropped. */
void hf_pool_discard(struct hf_pool *pool, const struct hf_pool_task *task);

/* ---- pool_run.c ---- */

/* Tells the observer, if there is one, outside locks. */
static inline void pool_tell(struct hf_pool *pool,
                             const struct hf_pool_note *note)
{
    if (__builtin_expect(pool->opts.observe != NULL, 0))
        pool->opts.observe(pool->opts.context, note);
}
/* Does a task that was taken, and accounts for it. The mutex is held before
 * and after, and not meanwhile. If the task ends the thread, it is accounted
 * for too, and this does not return. */
void hf_pool_run(struct hf_pool *pool, const struct hf_pool_task *task);
/* Does the running thread run a task of this pool, now or further out? */
bool hf_pool_is_mine(const struct hf_pool *pool);

/* ---- pool_worker.c ---- */

/* Another worker, if the pool is still running and `wanted` says so under the
 * mutex; under `birth`. HF_CLOSED, HF_FULL (not wanted), HF_NOMEM. */
enum hf_status hf_pool_grow(struct hf_pool *pool,
                            bool (*wanted)(const struct hf_pool *pool));
/* If no worker is left, discards what is queued: the last one was lost, and no
 * thread can be had. Outside locks. */
void hf_pool_forsake(struct hf_pool *pool);
/* Waits for the threads of those who are gone. */
void hf_pool_bury(struct hf_pool *pool);

#endif
