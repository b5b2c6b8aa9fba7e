/* pipeline.h - work in stages, each with workers and a bounded queue of its
 * own.
 *
 *   put --> [queue] read --> [queue] parse --.--> [queue] store --> out
 *                              x 4 workers    `-> [queue] count --> out
 *
 * Backpressure. A stage whose queue is full blocks the stage before it, which
 * then fills up as well, and so on back to whoever puts: the slowest stage sets
 * the pace, and no more is inside than queues, workers and windows hold.
 * How long putters waited at a queue says where it pinches. Instead of
 * blocking, a stage can drop what finds it full, at once or after a time.
 *
 * An item is a pointer of the user's, never NULL. A stage's `work` gets it and
 * leaves in `*out` what goes on: the item itself (it is there when the call
 * begins), another pointer, or NULL when nothing does. 0 is success, anything
 * else a failure: tried again up to `retries` times, then the item goes to
 * `dead` and the worker to the next item; or, with HF_STAGE_FAIL_FAST, the
 * pipeline ends: nothing new is taken, what is still inside goes to `drop`, and
 * hf_pipeline_await() returns HF_FAILED.
 *
 * Links make the shape: several from one stage (fan-out: each result to all of
 * them, to one in turn, or to the one that `route` names) and several to one
 * (fan-in). A stage to which no link leads is a source, into which items are
 * put; the results of a stage without links from it go to its `out`. A link
 * that would close a cycle is refused.
 *
 * Order. One worker keeps it. Several do if the stage is `ordered`: a result is
 * held back until those of all items that came before are gone. At most
 * `window` results are; whoever has one more waits. Results of one stage come
 * to the next in the order in which they were handed on.
 *
 * The end: shutdown() takes nothing new; stage after stage finishes what is in
 * its queue and then ends. await() waits for the last; close() is shutdown,
 * await for ever, and frees.
 *
 * Nothing is lost silently. For every stage, at rest:
 *
 *   results sent to it = in + dropped   (for a source: puts that were accepted
 *                                        = in)
 *   in = out + filtered + dead + cancelled + what is inside
 *
 * Threads: stage, link and start by one thread, before all others; put,
 *          shutdown, await and the figures from any thread, callbacks included,
 *          as long as these do not wait. Callbacks run in the stage's workers
 *          (`drop` in those of the stage before, when a queue was full),
 *          outside locks, several at a time.
 * Memory:  items are the user's; with HF_STAGE_TO_ALL the same pointer goes to
 *          every stage. No allocation after start.
 * Time:    by `clock`: pauses, time-outs, waits.
 *
 *   exactly once  order                 exact full/empty  allocates
 *   yes           one worker, ordered   yes               stage, link, start
 *
 * Example:
 *
 *   static int twice(void *context, void *item, void **out)
 *   {
 *       (void)context;
 *       (void)out; // the same item goes on
 *       *(int *)item *= 2;
 *       return 0;
 *   }
 *   static void print(void *context, void *item)
 *   {
 *       (void)context;
 *       printf("%d\n", *(int *)item);
 *   }
 *   int main(void)
 *   {
 *       struct hf_pipeline *line;
 *       struct hf_stage_opts first = {.work = twice, .workers = 4,
 *                                     .ordered = true};
 *       struct hf_stage_opts last = {.work = twice, .out = print};
 *       uint32_t from, to;
 *       static int numbers[3] = {1, 2, 3};
 *       assert(hf_pipeline_open(&line, NULL) == HF_OK);
 *       assert(hf_pipeline_stage(line, &first, &from) == HF_OK);
 *       assert(hf_pipeline_stage(line, &last, &to) == HF_OK);
 *       assert(hf_pipeline_link(line, from, to) == HF_OK);
 *       assert(hf_pipeline_link(line, to, from) == HF_INVALID); // a cycle
 *       assert(hf_pipeline_start(line) == HF_OK);
 *       for (int i = 0; i < 3; i++)
 *           assert(hf_pipeline_put(line, from, &numbers[i], HF_FOREVER) ==
 *                  HF_OK);
 *       hf_pipeline_shutdown(line);
 *       assert(hf_pipeline_await(line, HF_FOREVER) == HF_OK); // 4, 8, 12
 *       hf_pipeline_close(line);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_PIPELINE_H
#define HOLDFAST_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_PIPELINE_STAGES_MAX 64u
#define HF_STAGE_WORKERS_MAX   256u
#define HF_STAGE_QUEUE_DEFAULT 64u
#define HF_STAGE_QUEUE_MAX     (1u << 24)

struct hf_pipeline;

/* What becomes of an item from another stage that finds this one's queue full.
 * For hf_pipeline_put() into a source see there. */
enum hf_stage_full {
    HF_STAGE_BLOCK,   /* its sender waits until there is room */
    HF_STAGE_DROP,    /* it goes to `drop` at once */
    HF_STAGE_TIMEOUT, /* its sender waits for `full_ns`, then `drop` */
};

/* What becomes of an item whose last try has failed. */
enum hf_stage_failure {
    HF_STAGE_DEAD,      /* it goes to `dead` */
    HF_STAGE_FAIL_FAST, /* and the pipeline ends, too */
};

/* Where a result goes if several links lead on. */
enum hf_stage_fan {
    HF_STAGE_TO_ALL,
    HF_STAGE_IN_TURN,  /* the first link, the second, ... */
    HF_STAGE_BY_ROUTE, /* the one whose number `route` returns */
};

struct hf_stage_opts {
    const char *name; /* copied; hf_inspect() lists "pipeline/stage" */
    /* 0: `*out` goes on, if it is not NULL. A call that fails leaves the item
     * as it can be tried again or buried. */
    int (*work)(void *context, void *item, void **out);
    /* Gets the results of a stage without links from it; NULL: nobody. */
    void (*out)(void *context, void *item);
    /* Gets an item that failed for good, with the last code of `work`; or a
     * result, with HF_NOTFOUND, if `route` named no link. NULL: nobody. */
    void (*dead)(void *context, void *item, int code);
    /* Gets an item that is not worked on: HF_FULL, HF_TIMEOUT: it was not let
     * in; HF_CANCELLED: the pipeline has failed. NULL: nobody. */
    void (*drop)(void *context, void *item, enum hf_status why);
    /* The number of the link, from 0 in the order in which they were made. */
    uint32_t (*route)(void *context, void *item);
    void *context;      /* of all of these */
    uint32_t workers;   /* 0: 1 */
    uint32_t queue_max; /* 0: HF_STAGE_QUEUE_DEFAULT */
    bool ordered;       /* several workers keep the order; then: */
    uint32_t window;    /* results held back at most; 0: 4 for each worker */
    enum hf_stage_full on_full;
    uint64_t full_ns; /* of HF_STAGE_TIMEOUT; 0: 1 s */
    enum hf_stage_failure on_failure;
    uint32_t retries;      /* after the first failure; 0: none */
    uint64_t pause_ns;     /* before the first retry; 0: 10 ms */
    uint64_t pause_max_ns; /* it doubles up to this; 0: 1 s */
    enum hf_stage_fan fan;
};

enum hf_pipeline_event {
    HF_PIPELINE_ITEM_FAILED,    /* one call of `work`; code is its code */
    HF_PIPELINE_ITEM_DEAD,      /* code as given to `dead` */
    HF_PIPELINE_ITEM_DROPPED,   /* code is HF_FULL or HF_TIMEOUT */
    HF_PIPELINE_ITEM_CANCELLED, /* code is HF_CANCELLED */
    HF_PIPELINE_FAILED,         /* the pipeline ends; code of the item */
    HF_PIPELINE_STAGE_ENDED,    /* all its work is done */
};

/* What an observer is told; valid during the call. */
struct hf_pipeline_note {
    enum hf_pipeline_event event;
    uint32_t stage;
    const char *name; /* of the stage, "" without one */
    void *item;       /* NULL: the event is not about one */
    int code;
};

struct hf_pipeline_opts {
    const char *name; /* copied; for hf_inspect() and the threads' names */
    /* Told of every event, outside locks, by the thread in which it happens,
     * before the item goes to `dead` or `drop`. */
    void (*observe)(void *context, const struct hf_pipeline_note *note);
    void *context;                /* of observe */
    const struct hf_clock *clock; /* NULL: the system's */
    /* Notes run times and the age of the oldest item of each queue: three
     * looks at the clock for each item and stage. */
    bool times;
};

enum hf_pipeline_state {
    HF_PIPELINE_BUILDING,
    HF_PIPELINE_RUNNING,
    HF_PIPELINE_SHUT,  /* or failed: finishes what is inside */
    HF_PIPELINE_ENDED, /* the last stage has ended */
};

struct hf_pipeline_stats {
    enum hf_pipeline_state state;
    uint32_t stages;
    uint64_t put;     /* accepted by sources since start */
    uint64_t refused; /* puts that were not */
    /* In queues and in work. What is just being handed on may count twice. */
    uint64_t inside;
    bool failed;           /* fast; then: */
    uint32_t failed_stage; /* where it was */
    int failed_code;       /* the first error */
};

struct hf_stage_stats {
    uint64_t in;          /* came into the queue since start */
    uint64_t out;         /* results that went on, or to `out` */
    uint64_t filtered;    /* items with no result */
    uint64_t failed;      /* calls of `work` that failed */
    uint64_t retried;     /* calls of `work` that were not an item's first */
    uint64_t dead;        /* items that failed for good */
    uint64_t dropped;     /* items that were not let in; not counted by `in` */
    uint64_t cancelled;   /* items given up since the pipeline had failed */
    uint64_t refused;     /* puts that were not accepted */
    uint64_t depth;       /* in the queue */
    uint64_t active;      /* in the workers' hands, and results held back */
    uint64_t capacity;    /* of the queue */
    uint64_t oldest_ns;   /* age, in the queue; HF_INSPECT_NONE: no item, or
                           * without `times` */
    uint64_t waits;       /* putters that had to wait for room */
    uint64_t wait_p99_ns; /* 99 of 100 of these did so for less;
                           * HF_INSPECT_NONE: none did */
    uint64_t run_p50_ns;  /* of a call of `work`; HF_INSPECT_NONE without */
    uint64_t run_p99_ns;  /* `times` */
};

/* HF_INVALID: pipeline is NULL. HF_NOMEM. */
enum hf_status hf_pipeline_open(struct hf_pipeline **pipeline,
                                const struct hf_pipeline_opts *opts);
/* Adds a stage; `stage` is its number, from 0. HF_INVALID: a pointer is NULL,
 * no `work`, BY_ROUTE without `route`, a field is out of its range, or the
 * pipeline was started. HF_FULL: HF_PIPELINE_STAGES_MAX. HF_NOMEM. */
enum hf_status hf_pipeline_stage(struct hf_pipeline *pipeline,
                                 const struct hf_stage_opts *opts,
                                 uint32_t *stage);
/* Results of `from` go to `to`. HF_INVALID: no such stage, it would close a
 * cycle, or the pipeline was started. HF_EXISTS. Either way nothing changed. */
enum hf_status hf_pipeline_link(struct hf_pipeline *pipeline, uint32_t from,
                                uint32_t to);
/* Starts the workers. HF_INVALID: there is no stage, or it was started before.
 * HF_CLOSED: it was shut down. HF_NOMEM: memory or threads could not be had;
 * may be tried again. */
enum hf_status hf_pipeline_start(struct hf_pipeline *pipeline);

/* Puts an item into a source. HF_OK: it will be worked on, dropped or
 * cancelled, and counted. Otherwise it is still the caller's: HF_TIMEOUT, no
 * room until the deadline (or within `full_ns` with HF_STAGE_TIMEOUT); HF_FULL,
 * no room now, with HF_STAGE_DROP; HF_CLOSED, shut down or failed; HF_INVALID,
 * not a source, not started, or item is NULL. */
enum hf_status hf_pipeline_put(struct hf_pipeline *pipeline, uint32_t stage,
                               void *item, uint64_t deadline_ns);

/* Nothing new; what is inside is finished. Again is harmless, NULL allowed. */
void hf_pipeline_shutdown(struct hf_pipeline *pipeline);
/* HF_OK: it was shut down, and all that was accepted is finished. HF_FAILED: it
 * has failed fast, and all that was accepted is accounted for. HF_TIMEOUT. */
enum hf_status hf_pipeline_await(struct hf_pipeline *pipeline,
                                 uint64_t deadline_ns);
/* Shuts, awaits for ever, frees. Not from a callback; nobody may be inside a
 * call. NULL is allowed. */
void hf_pipeline_close(struct hf_pipeline *pipeline);

/* HF_INVALID: a pointer is NULL. */
enum hf_status hf_pipeline_stats(struct hf_pipeline *pipeline,
                                 struct hf_pipeline_stats *out);
/* HF_INVALID: a pointer is NULL, or there is no such stage. */
enum hf_status hf_pipeline_stage_stats(struct hf_pipeline *pipeline,
                                       uint32_t stage,
                                       struct hf_stage_stats *out);

#ifdef __cplusplus
}
#endif

#endif
