/* forkjoin.h - one job, cut into pieces that several threads work on.
 *
 * A task forks a piece of its work, does the rest itself, and joins:
 *
 *   fib(n):   fork fib(n - 1) ---- another thread may take it ----.
 *             do   fib(n - 2)                                     |
 *             join <----------------------------------------------'
 *
 * Each worker keeps its forks in a deque of its own. It takes the newest, idle
 * workers steal the oldest, which is the largest piece of such a job:
 *
 *   worker 0   [ fib(30) fib(28) fib(26) ] <-- fork, join
 *                  ^
 *   worker 1   steals
 *
 * Nearly every fork is joined by whoever forked it, who then calls it as a
 * function: some nanoseconds. A join whose piece was stolen works on others
 * meanwhile, and sleeps only when there are none.
 *
 * Rules. Every fork is joined by the function that made it, before it returns:
 * the pieces lie on its stack. A fork is a permission to run at the same time,
 * not a promise: it may run as late as in its join, so pieces must not wait
 * for each other in any other way. A join may run pieces of anybody: hold no
 * lock across it that a piece takes.
 *
 * When to stop cutting: below a microsecond of work a piece is better done
 * than forked. The loops below take that threshold as `grain`.
 *
 * The end: hf_forkjoin_shutdown() refuses new runs; those inside go on to their
 * end, with all that they fork. hf_forkjoin_close() frees.
 *
 * Threads: run, the loops, shutdown and stats from any thread at any time;
 *          several runs share the workers. fork and join in a task only, with
 *          the worker that the task was given. Nobody may be inside a call when
 *          close is called, and it is not called in a task.
 * Memory:  a fork is the caller's, on its stack. A worker's deque grows when
 *          its forks are deeper than ever before; if there is no memory for
 *          that, fork runs the piece at once.
 * Time:    `clock` is for sleeping and for the length of waits only.
 *
 *   runs each piece  lock-free           wakes            allocates
 *   exactly once     fork; join but for  one sleeper for  see Memory; run may
 *                    sleeping            one fork         return HF_NOMEM
 *
 * Example:
 *
 *   struct job {
 *       int n;
 *       long result;
 *   };
 *
 *   static void fib(struct hf_forkjoin_worker *worker, void *arg)
 *   {
 *       struct job *job = arg;
 *       if (job->n < 2) {
 *           job->result = job->n;
 *           return;
 *       }
 *       struct job a = {job->n - 1, 0}, b = {job->n - 2, 0};
 *       struct hf_fork fork;
 *       hf_fork(worker, &fork, fib, &a);
 *       fib(worker, &b);
 *       hf_join(worker, &fork);
 *       job->result = a.result + b.result;
 *   }
 *
 *   int main(void)
 *   {
 *       struct hf_forkjoin *forkjoin;
 *       struct job job = {20, 0};
 *       assert(hf_forkjoin_open(&forkjoin, NULL) == HF_OK);
 *       assert(hf_forkjoin_run(forkjoin, fib, &job) == HF_OK);
 *       assert(job.result == 6765);
 *       hf_forkjoin_close(forkjoin);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_FORKJOIN_H
#define HOLDFAST_FORKJOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_FORKJOIN_THREADS_MAX 256u
#define HF_FORKJOIN_RUNS_MAX    256u /* threads inside run at a time */
#define HF_REDUCE_BYTES_MAX     256u /* of a value */

struct hf_forkjoin;
struct hf_forkjoin_worker;

typedef void hf_forkjoin_fn(struct hf_forkjoin_worker *worker, void *arg);

/* A piece of work that was forked. The caller's memory; not to be touched from
 * fork to join. */
struct hf_fork {
    hf_forkjoin_fn *fn;               /* (i) from fork to join */
    void *arg;                        /* (i) */
    struct hf_forkjoin_worker *owner; /* (i) who forked it */
    struct hf_atomic_u32 state;       /* (a) 0: done, or never forked */
};

struct hf_forkjoin_opts {
    const char *name; /* for hf_inspect() and the threads' names */
    /* That work on one run, its caller among them: one less is started. 0:
     * processors, as far as the cgroup's quota goes. */
    uint32_t threads;
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_forkjoin_stats {
    uint32_t threads;     /* as in the options */
    uint32_t sleeping;    /* workers, and joins that found nothing to do */
    uint64_t runs;        /* begun since open, without those inside others */
    uint64_t rejected;    /* runs that were refused: shut down, or too many */
    uint64_t forks;       /* since open */
    uint64_t steals;      /* of them, run by another worker */
    uint64_t parks;       /* sleeps */
    uint64_t queued;      /* forks that nobody has begun */
    uint64_t join_p99_ns; /* 99 of 100 joins that slept did so for less;
                           * HF_INSPECT_NONE: none did */
    bool shutdown;
};

/* HF_INVALID: forkjoin is NULL or there are too many threads. HF_NOMEM: no
 * memory, or the system has no room for the threads. */
enum hf_status hf_forkjoin_open(struct hf_forkjoin **forkjoin,
                                const struct hf_forkjoin_opts *opts);
/* No run is accepted after this has returned. Again is harmless, NULL is
 * allowed. */
void hf_forkjoin_shutdown(struct hf_forkjoin *forkjoin);
/* Shuts, ends the threads and frees. NULL is allowed. */
void hf_forkjoin_close(struct hf_forkjoin *forkjoin);

/* Calls fn(worker, arg) in this thread, which is a worker meanwhile. In a task
 * of the same forkjoin, with the worker that it has, also after shutdown.
 * HF_INVALID: forkjoin or fn is NULL. HF_CLOSED; HF_FULL: HF_FORKJOIN_RUNS_MAX
 * threads are inside; HF_NOMEM: fn was not called. */
enum hf_status hf_forkjoin_run(struct hf_forkjoin *forkjoin, hf_forkjoin_fn *fn,
                               void *arg);

/* fn(worker, arg) will be called once, by the end of the join. A worker that
 * sleeps is woken for it. HF_INVALID: an argument but `arg` is NULL;
 * a join of it, if it is not, returns at once. */
enum hf_status hf_fork(struct hf_forkjoin_worker *worker, struct hf_fork *fork,
                       hf_forkjoin_fn *fn, void *arg);
/* Returns when it was called and has returned: what it wrote can be read. In
 * any order, newest first is quickest. HF_INVALID: an argument is NULL. */
enum hf_status hf_join(struct hf_forkjoin_worker *worker, struct hf_fork *fork);

/* The worker's, for calls of run and of the loops below in a task. */
struct hf_forkjoin *hf_forkjoin_of(struct hf_forkjoin_worker *worker);

/* Calls fn(context, from, to) so that each number from `begin` to the one
 * before `end` is in one range. Ranges are halved until they have `grain`
 * numbers or fewer; 0: so that there are some for each thread. Begins a run,
 * unless in a task. HF_INVALID: forkjoin or fn is NULL, or end is below begin;
 * else as run. */
enum hf_status hf_parallel_for(
    struct hf_forkjoin *forkjoin, uint64_t begin, uint64_t end, uint64_t grain,
    void (*fn)(void *context, uint64_t from, uint64_t to), void *context);

/* How to get one value out of a range of numbers. Values are `bytes` of memory,
 * copied freely and aligned as any C type. */
struct hf_reduction {
    size_t bytes;         /* 1 .. HF_REDUCE_BYTES_MAX */
    const void *identity; /* what every value begins as */
    /* Adds what the numbers from `from` to the one before `to` give. */
    void (*fn)(void *context, uint64_t from, uint64_t to, void *value);
    /* Adds `right` to `value`, whose numbers are the lower ones. So the order
     * is kept; brackets depend on begin, end and grain (0: and the number of
     * threads) only, and so does a sum of floating point numbers. */
    void (*combine)(void *context, void *value, const void *right);
    void *context;
};

/* Writes the value of the range to `result`; of an empty one, the identity.
 * HF_INVALID: a pointer but the context is NULL, `bytes` is out of its range
 * or end is below begin; else as run. */
enum hf_status hf_parallel_reduce(struct hf_forkjoin *forkjoin, uint64_t begin,
                                  uint64_t end, uint64_t grain,
                                  const struct hf_reduction *reduction,
                                  void *result);

void hf_forkjoin_stats(const struct hf_forkjoin *forkjoin,
                       struct hf_forkjoin_stats *out);

#ifdef __cplusplus
}
#endif

#endif
