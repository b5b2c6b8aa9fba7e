/* pipeline_state.h - what a pipeline is made of.
 *
 * Stages are kept by number, links as a bit for each stage that can be reached
 * directly and as a list in the order in which they were made. All of that is
 * fixed once the workers have been let through the gate.
 *
 * Who ends whom: a source's queue is shut by hf_pipeline_shutdown(), any other
 * by the last stage that leads to it. A queue that is shut and empty ends the
 * stage's workers; the last of them does the same for the next stages.
 */
#ifndef EXEC_PIPELINE_STATE_H
#define EXEC_PIPELINE_STATE_H

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/blocking.h"
#include "holdfast/pipeline.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct stage;

struct worker {
    struct stage *stage; /* (i) */
    struct hf_thread thread;
};

/* Order with many workers. An item's ticket is its place in the order in which
 * they were taken; its result is left in a window, at the ticket's place:
 *
 *          turn                    turn + size
 *   ... gone |  . r r . r . . . . . | workers with these tickets wait
 *              ^ the next to be handed on: here somebody is still at work
 *
 * Whoever leaves a result at `turn` hands on all that are there in a row, while
 * the others work on. Tickets that wait lie in [turn + size, turn + size +
 * workers), so that each has an event of its own: a step of `turn` wakes the
 * one that may go on. */
struct place {
    void *result; /* (m) NULL: the item has none */
    bool left;    /* (m) */
};

struct window {
    struct hf_mutex take;     /* held while an item is taken and numbered */
    uint64_t tickets;         /* (m: take) given out since start */
    struct hf_mutex mutex;    /* guards what follows */
    uint64_t turn;            /* (m) see the drawing */
    uint32_t waiting;         /* (m) workers that wait for their place */
    bool busy;                /* (m) somebody is handing on */
    uint32_t size;            /* (i) */
    struct place *places;     /* (i) where they are; size of them */
    struct hf_event events[]; /* (a) one for each worker, by ticket */
};

struct stage {                    /* (i) immutable after start  (a) atomic */
    struct hf_pipeline *pipeline; /* (i) */
    uint32_t number;              /* (i) */
    struct hf_stage_opts opts;    /* (i) with defaults */
    char name[HF_NAME_BYTES];     /* (i) */
    struct hf_blocking *queue;    /* (i) */
    struct window *window;        /* (i) NULL: no order to be kept */
    struct worker *workers;       /* (i) opts.workers of them */

    uint64_t link_bits;                          /* (i) */
    uint32_t link_count;                         /* (i) */
    struct hf_atomic_u32 upstream_count;         /* (a) links to it */
    struct stage *links[HF_PIPELINE_STAGES_MAX]; /* (i) */
    _Alignas(HF_CACHE_LINE)                      /* from here: written */
        struct hf_atomic_u32 workers_left;       /* (a) not ended */
    struct hf_atomic_u32 upstream_left;          /* (a) not ended */
    struct hf_atomic_u32 next_link;              /* (a) of HF_STAGE_IN_TURN */
    struct hf_atomic_u64 out, filtered, failed, retried, dead,
        cancelled;             /* (a) figures */
    struct hf_waits run_times; /* (a) */
};

/* As long as they wait at the gate, threads that were started may be sent home
 * again. */
enum life { LIFE_BUILDING, LIFE_GATE, LIFE_RUNNING, LIFE_SHUT };

struct hf_pipeline {
    struct hf_listed listed;                      /* the first */
    struct hf_pipeline_opts opts;                 /* (i) */
    char name[HF_NAME_BYTES];                     /* (i) */
    const struct hf_clock *clock;                 /* (i) */
    struct stage *stages[HF_PIPELINE_STAGES_MAX]; /* (i) once counted */
    struct hf_atomic_u32 stage_count;             /* (a) */
    struct hf_atomic_u32 life;                    /* (a) enum life */
    struct hf_atomic_u32 stages_left;             /* (a) not ended */
    bool started;                 /* (i) there are threads to be joined */
    struct hf_atomic_u64 failure; /* (a) 0, or PIPELINE_FAILED | stage, code */
    struct hf_event gate;         /* life is no longer LIFE_GATE */
    struct hf_event failing;      /* failure is no longer 0 */
    struct hf_event ended;        /* stages_left is 0 */
};

#define PIPELINE_FAILED (UINT64_C(1) << 63)

static inline uint64_t pipeline_failure(const struct hf_pipeline *pipeline)
{
    /* Acquire: what the failing worker did before. */
    return hf_u64_load(&pipeline->failure, __ATOMIC_ACQUIRE);
}

/* The deadline for a put into the stage's queue, by its `on_full`, for somebody
 * who would wait until `deadline_ns`. */
uint64_t hf_pipeline_full_deadline_ns(const struct stage *stage,
                                      uint64_t deadline_ns);

/* The body of a worker's thread; `argument` is a struct worker. */
void hf_pipeline_work(void *argument);

#endif
