/* forkjoin_state.h - the inside of a forkjoin, shared by its source files.
 *
 *   forkjoin.c       open, run, the end, figures
 *   forkjoin_work.c  fork, join: who works and who sleeps
 *   forkjoin_loop.c  loops and reductions, on top of the public calls
 */
#ifndef EXEC_FORKJOIN_STATE_H
#define EXEC_FORKJOIN_STATE_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "holdfast/forkjoin.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct hf_deque;

/* (i) immutable  (a) atomic  (m) under the mutex  (o) its thread's own */
struct hf_forkjoin_worker {
    struct hf_forkjoin *forkjoin; /* (i) */
    struct hf_deque *deque;       /* (i) its forks that nobody has begun */
    uint32_t index;               /* (i) in the array of workers */
    struct hf_thread thread;      /* (i) of those who were started */
    struct hf_forkjoin_worker *next_free; /* (m) of those for callers */
    struct hf_atomic_u32 slot_plus_1;     /* (a) its thread; 0: none */
    /* What its thread alone writes, but that sleepers add 0 to `forks`. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 forks; /* (a) */
    struct hf_atomic_u64 steals;                        /* (a) */
    struct hf_atomic_u64 parks;                         /* (a) */
    uint32_t victim; /* (o) whom to steal from first */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 asleep; /* (a) 1: wake me */
    struct hf_event event; /* (a) where its thread sleeps */
};

struct hf_forkjoin {
    struct hf_listed listed;
    struct hf_mutex mutex;
    const struct hf_clock *clock;    /* (i) */
    uint32_t threads;                /* (i) as in the options */
    uint32_t count_max;              /* (i) room for workers */
    struct hf_forkjoin_worker *free; /* (m) for callers of run */
    struct hf_atomic_u64 runs;       /* (a) written under m */
    struct hf_atomic_u64 rejected;   /* (a) written under m */
    struct hf_atomic_u32 shut;       /* (a) written under m */
    struct hf_atomic_u32 ending;     /* (a) 1: threads leave */
    struct hf_atomic_u32 count;      /* (a) workers, grows */
    struct hf_waits waits;           /* (a) of joins that slept */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 sleepers;  /* (a) asleep = 1 */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr workers[]; /* (a) set once */
};

/* What a worker's thread runs; the argument is the worker. */
void hf_forkjoin_work(void *argument);

static inline uint32_t hf_forkjoin_count(const struct hf_forkjoin *forkjoin)
{
    /* Acquire: the array up to there. */
    return hf_u32_load(&forkjoin->count, __ATOMIC_ACQUIRE);
}

static inline struct hf_forkjoin_worker *
hf_forkjoin_worker_at(const struct hf_forkjoin *forkjoin, uint32_t index)
{
    /* Acquire: the worker was made before it was put here. */
    return hf_ptr_load(&forkjoin->workers[index], __ATOMIC_ACQUIRE);
}

#endif
