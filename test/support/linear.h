/* linear.h - is there an order of these calls that explains every result?
 *
 * A structure is linearizable if each call seems to happen at one instant
 * between its beginning and its end. The checker looks for those instants: it
 * applies, one after the other, calls that nothing forces to wait, to a model
 * of the structure (plain sequential code), and goes back where the model says
 * that a result is impossible. What was reached once by the same set of calls
 * with the same state is not tried again.
 *
 *   set of calls applied      state
 *   { }                       []
 *     put 7                   [7]
 *       put 8                 [7 8]
 *         take -> 8           impossible, go back
 *     put 8                   [8] ...
 *
 * Example:
 *
 *   struct model_list ring = {.room = 4, .bounded = true};
 *   struct linear_model model = model_list(&ring);
 *   struct linear *checker = linear_new(&model, 3 * 8);
 *   for each round:
 *       calls_clear(history); ... run the threads ...
 *       CHECK_EQ(linear_check(checker, history, stdout), LINEAR_YES);
 *   linear_free(checker);
 *
 * Threads: one checker, one thread. It touches no shared word, so that the
 *          tests' scheduler never runs inside.
 * Memory:  grows to what the hardest check needed: what linear_limit() says,
 *          and calls * state_bytes. A small check allocates nothing.
 */
#ifndef TEST_SUPPORT_LINEAR_H
#define TEST_SUPPORT_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "support/calls.h"

struct linear_model {
    /* The state is one block that is copied and compared as bytes, aligned to
     * 8: no pointers to what changes, padding zero, and equal states must be
     * equal bytes. It is zeroed before init. */
    size_t state_bytes;
    void (*init)(void *state, void *context); /* may be NULL: all zero */
    /* True if the call can end with this result in this state, which then
     * becomes the state after it. May leave anything in `state` if false. */
    bool (*apply)(void *state, const struct call *call, void *context);
    /* The same for a call that has not ended: does what it would do, whatever
     * the result. False if it would change nothing. NULL: histories with
     * pending calls are LINEAR_UNKNOWN. */
    bool (*apply_pending)(void *state, const struct call *call, void *context);
    /* How many bytes of the state are in use, a multiple of 8: only those are
     * copied and compared. NULL: all. */
    size_t (*state_used)(const void *state, void *context);
    /* True if a call with this op and result never changes any state. Such a
     * call is placed where it first fits. NULL: none is known. */
    bool (*reads_only)(const struct call *call, void *context);
    /* Sees the checker's copy of all calls of one object before the search,
     * and may note in their hints, which are 0, what helps to refuse a bad
     * order earlier. False if it sees that no order can be right. Must never
     * change the verdict, only speed it up. NULL: no hints. */
    bool (*prepare)(struct call *calls, size_t count, void *context);
    void *context;
    const char *const *op_names; /* for messages; NULL: numbers */
    bool by_key; /* each key is an object of its own, checked separately */
};

enum linear_result {
    LINEAR_YES,
    LINEAR_NO,
    LINEAR_UNKNOWN /* gave up: never to be taken as a pass */
};

struct linear;

/* For histories of at most `calls_max` calls. The model is copied. */
struct linear *linear_new(const struct linear_model *model, size_t calls_max);
void linear_free(struct linear *checker);
/* After how many steps a check gives up; a million if not said. Each takes up
 * to 100 bytes until the checker is freed. */
void linear_limit(struct linear *checker, size_t steps);

/* On NO and UNKNOWN tells why, if `explain` is not NULL: the longest order that
 * was found and the calls that could not come next. */
enum linear_result linear_check(struct linear *checker,
                                const struct calls *history, FILE *explain);
/* The same for `count` calls sorted by called_at; tickets are unique. */
enum linear_result linear_check_calls(struct linear *checker,
                                      const struct call *calls, size_t count,
                                      FILE *explain);

#endif
