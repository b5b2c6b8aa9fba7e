/* models.h - what the common structures must do, for linear.h.
 *
 * Each model is plain sequential code. The tables say what a call records:
 * `in` is calls_begin's argument, `in2` is call->argument2, `out` is the
 * value given to calls_end. Where a call does not tell a value, out is
 * MODEL_ANY.
 *
 * Threads: none; the models have no state of their own.
 */
#ifndef TEST_SUPPORT_MODELS_H
#define TEST_SUPPORT_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/linear.h"

#define MODEL_ANY UINT64_MAX

/* A list: queue (put, take first), stack (put, take last), deque (all).
 *
 *   op                in     result    out
 *   MODEL_PUT         value  HF_OK     -      now the last
 *                            HF_FULL   -      `room` items are in it
 *   MODEL_TAKE_FIRST  -      HF_OK     value
 *                            HF_EMPTY  -      there is none
 *   MODEL_TAKE_LAST   -      as take first
 *   MODEL_SIZE        -      -         count  exact
 *
 * Any result but HF_OK, HF_FULL, HF_EMPTY is legal and says that nothing was
 * done (HF_TIMEOUT, HF_CLOSED, ...). Give every put a value of its own: a
 * queue's histories of thousands of calls are then quick to check. */
enum { MODEL_PUT, MODEL_TAKE_FIRST, MODEL_TAKE_LAST, MODEL_SIZE };

struct model_list {
    uint32_t room; /* items that fit; if unbounded: that will ever be in it */
    bool bounded;  /* false: a put is never refused */
};

/* `list` must stay as long as the model is used. */
struct linear_model model_list(const struct model_list *list);

/* A map: each key on its own. A set is the same without values, a register is
 * the same with one key.
 *
 *   op                      in        in2  result       out
 *   MODEL_GET               -         -    HF_OK        value
 *                                          HF_NOTFOUND  -
 *   MODEL_SET               value     -    HF_OK        -      there or not
 *   MODEL_SWAP              value     -    HF_OK        value before
 *                                          HF_NOTFOUND  -      new
 *   MODEL_SET_IF_ABSENT     value     -    HF_OK        -      new
 *                                          HF_EXISTS    value that is there
 *   MODEL_SET_IF_PRESENT    value     -    HF_OK        value before
 *                                          HF_NOTFOUND  -
 *   MODEL_REPLACE_IF_EQUAL  expected  new  HF_OK        -
 *                                          HF_NOTFOUND  -
 *                                          HF_EXISTS    value that is there
 *   MODEL_REMOVE            -         -    HF_OK        value that was there
 *                                          HF_NOTFOUND  -
 *   MODEL_REMOVE_IF_EQUAL   expected  -    as replace
 *   MODEL_ADD               number    -    HF_OK        sum, absent counts 0
 */
enum {
    MODEL_GET,
    MODEL_SET,
    MODEL_SWAP,
    MODEL_SET_IF_ABSENT,
    MODEL_SET_IF_PRESENT,
    MODEL_REPLACE_IF_EQUAL,
    MODEL_REMOVE,
    MODEL_REMOVE_IF_EQUAL,
    MODEL_ADD
};

struct linear_model model_map(void);

/* A number of permits or a counter, starting at `context`'s number; NULL: 0.
 *
 *   op                   in      result    out
 *   MODEL_COUNT_ADD      number  HF_OK     before
 *   MODEL_COUNT_TAKE     number  HF_OK     before, which was enough
 *                                HF_EMPTY  before, which was not
 *   MODEL_COUNT_READ     -       HF_OK     count
 *   MODEL_COUNT_RESET    -       HF_OK     before, now 0
 */
enum { MODEL_COUNT_ADD, MODEL_COUNT_TAKE, MODEL_COUNT_READ, MODEL_COUNT_RESET };

struct linear_model model_counter(const uint64_t *start);

#endif
