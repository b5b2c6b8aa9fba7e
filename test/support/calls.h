/* calls.h - what threads called, and what they were told, in which order.
 *
 * Each thread appends to an array of its own; nothing is locked and nothing is
 * allocated after calls_new(). A call takes a ticket from one counter when it
 * begins and one when it ends:
 *
 *   thread 0   |1 put 7 ........ 4|
 *   thread 1        |2 take ... 3|  |5 take .. 6|
 *
 * Calls 1-4 and 2-3 overlap: either may have come first. Call 5-6 began after
 * both had ended. linear.h asks whether some order explains all results.
 *
 * Example:
 *
 *   struct calls *history = calls_new(2, 100);
 *   in thread 1:
 *       struct call *call = calls_begin(history, 1, MODEL_PUT, 0, 7);
 *       calls_end(history, call, hf_ring_put(ring, 7), 0);
 *
 * A call that began and never ended is pending: it may or may not have taken
 * effect.
 *
 * Threads: calls_begin and calls_end from any thread, each with a thread
 *          number of its own; the rest while nobody records.
 * Memory:  new allocates and free frees; the calls belong to the history.
 */
#ifndef TEST_SUPPORT_CALLS_H
#define TEST_SUPPORT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* returned_at of a call that has not ended. */
#define CALLS_PENDING UINT64_MAX

struct call {
    uint32_t thread;
    uint32_t op;          /* what the model calls it, see models.h */
    uint64_t key;         /* which object, where there are several */
    uint64_t argument;    /* what went in */
    uint64_t argument2;   /* set after calls_begin, where it is needed */
    uint64_t result;      /* how it ended: an hf_status, as a rule */
    uint64_t value;       /* what came out */
    uint64_t called_at;   /* ticket, from 1 */
    uint64_t returned_at; /* ticket, or CALLS_PENDING */
    uint64_t hint[2];     /* for the checker's model, see linear.h */
};

struct calls;

/* Room for `calls_per_thread` calls of each of `threads` threads. Fails the
 * test if there is no memory. */
struct calls *calls_new(unsigned threads, unsigned calls_per_thread);
void calls_free(struct calls *history);
/* Forgets all calls, for the next round; allocates nothing. */
void calls_clear(struct calls *history);

/* To be called right before the call under test. NULL if the thread has no room
 * left: the history is then incomplete, and linear_check() says so and never
 * passes it. */
struct call *calls_begin(struct calls *history, unsigned thread, uint32_t op,
                         uint64_t key, uint64_t argument);
/* To be called right after. `call` may be NULL. */
void calls_end(struct calls *history, struct call *call, uint64_t result,
               uint64_t value);

/* How many calls were recorded. */
size_t calls_count(const struct calls *history);
/* Did a thread have more calls than room? */
bool calls_overflowed(const struct calls *history);
/* Copies all calls to `out`, sorted by called_at; returns how many. */
size_t calls_collect(const struct calls *history, struct call *out);

/* One line per call, sorted by called_at. `op_names[op]` is the name of each
 * op; NULL: ops are printed as numbers. */
void calls_print(const struct calls *history, FILE *out,
                 const char *const *op_names);
void calls_print_call(const struct call *call, FILE *out,
                      const char *const *op_names);

#endif
