/* queue.h - queue without bound for any number of threads, first in first out.
 *
 * Items lie in segments, arrays of slots that are linked in the order in which
 * they were filled. A put fills the first free slot at the tail, a take empties
 * the first full one at the head; no slot is used twice:
 *
 *         head                                    tail
 *   +---------------+     +---------------+     +---------------+
 *   |x|x|x|d|e|f|g|h| --> |i|j|k|l|m|n|o|p| --> |q|r|s| | | | | | --> none
 *   +---------------+     +---------------+     +---------------+
 *          ^ take                                     ^ put
 *
 * A full segment is followed by a new one. An emptied one is used again or
 * freed, when nobody can be looking at it.
 *
 * Threads: put, take, size and stats may overlap in any number of threads.
 *          Nobody may be inside a call when the queue is closed.
 * Memory:  the items are the caller's; the queue holds the pointers. It keeps
 *          up to 16 empty segments for the next items and frees the others, so
 *          after a burst the memory goes back. A thread that has used the queue
 *          keeps two segments from going at most, also when it is stopped in
 *          the middle of a call or has ended; those that wait to go are about
 *          three times as many at most.
 * Time:    a call waits for nobody. One that loses a slot to another lets the
 *          others go on for a moment, about a microsecond, once.
 *
 *   linearizable  exact empty  lock-free             allocates
 *   yes           yes          yes, but for malloc   a segment if none is left,
 *                              and free, called once  a record at a thread's
 *                              a segment at most      first call
 *
 * size is an estimate while others are inside, and exact when nobody is.
 *
 * Example:
 *
 *   struct hf_queue *queue;
 *   int job = 7;
 *   void *item;
 *   assert(hf_queue_open(&queue, NULL) == HF_OK);
 *   assert(hf_queue_put(queue, &job) == HF_OK);
 *   assert(hf_queue_take(queue, &item) == HF_OK && item == &job);
 *   assert(hf_queue_take(queue, &item) == HF_EMPTY);
 *   hf_queue_close(queue);
 */
#ifndef HOLDFAST_QUEUE_H
#define HOLDFAST_QUEUE_H

#include <stdint.h>

#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_QUEUE_SEGMENT     1024u
#define HF_QUEUE_SEGMENT_MAX 65536u

struct hf_queue;

struct hf_queue_opts {
    const char *name; /* for hf_inspect() */
    uint32_t segment; /* slots in a segment, a power of two from 2 to
                       * HF_QUEUE_SEGMENT_MAX; 0 means HF_QUEUE_SEGMENT */
};

struct hf_queue_stats {
    uint64_t size;     /* items inside */
    uint64_t segments; /* that there are */
    uint64_t spare;    /* of these: empty, for the next items */
    uint64_t retired;  /* of these: to be freed, not known to be unused */
};

/* HF_INVALID: queue is NULL, or segment is not as said above. HF_NOMEM. */
enum hf_status hf_queue_open(struct hf_queue **queue,
                             const struct hf_queue_opts *opts);
/* Items that are still inside are forgotten. NULL is allowed. */
void hf_queue_close(struct hf_queue *queue);

/* HF_INVALID: an argument is NULL. HF_NOMEM: nothing was put. */
enum hf_status hf_queue_put(struct hf_queue *queue, void *item);
/* HF_EMPTY: there was no item at some instant during the call. HF_INVALID: an
 * argument is NULL. HF_NOMEM: at a thread's first call only. */
enum hf_status hf_queue_take(struct hf_queue *queue, void **item);

/* Items inside; takes the same time however many there are. */
uint64_t hf_queue_size(struct hf_queue *queue);
void hf_queue_stats(struct hf_queue *queue, struct hf_queue_stats *out);

#ifdef __cplusplus
}
#endif

#endif
