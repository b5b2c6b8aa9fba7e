/* deque.h - work-stealing deque: one owner, any number of thieves.
 *
 * The owner pushes and pops at the bottom, as on a stack, and pays next to
 * nothing; thieves take the oldest item at the top. They meet only over the
 * last item.
 *
 *              top                        bottom
 *               |                            |
 *   +---+---+---+---+---+---+---+---+---+----+---+---+
 *   |   |   |   | a | b | c | d | e | f | g  |   |   |   array, used in a
 *   +---+---+---+---+---+---+---+---+---+----+---+---+   circle
 *      thieves -->                         <-- owner
 *
 * A full array is followed by one of twice the size. The old one may still be
 * under a thief's eyes, so it stays until close: all that were before are
 * together smaller than the one in use, and no thief has to say where it is.
 *
 * Threads: push and pop from one thread at a time, the owner; another may
 *          become the owner when it knows (by a lock, a join) that the first
 *          has stopped. steal, size and stats from any thread at any time.
 *          Nobody may be inside a call when the deque is closed.
 * Memory:  the items are the caller's; the deque holds the pointers. The array
 *          grows and does not shrink.
 * Time:    a call waits for nobody. The owner's take constant time, but for
 *          the copy when the array grows.
 *
 *   linearizable  exact empty  lock-free           allocates
 *   yes           yes          push, pop wait-free push, when the array is full
 *                              steal lock-free
 *
 * A push is seen by every steal that began after anything the owner did later
 * was seen.
 *
 * Example:
 *
 *   struct hf_deque *deque;
 *   int first = 1, second = 2;
 *   void *item;
 *   assert(hf_deque_open(&deque, NULL) == HF_OK);
 *   assert(hf_deque_push(deque, &first) == HF_OK);
 *   assert(hf_deque_push(deque, &second) == HF_OK);
 *   assert(hf_deque_steal(deque, &item) == HF_OK && item == &first);
 *   assert(hf_deque_pop(deque, &item) == HF_OK && item == &second);
 *   assert(hf_deque_pop(deque, &item) == HF_EMPTY);
 *   hf_deque_close(deque);
 */
#ifndef HOLDFAST_DEQUE_H
#define HOLDFAST_DEQUE_H

#include <stdint.h>

#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_DEQUE_CAPACITY     256u
#define HF_DEQUE_CAPACITY_MAX (UINT64_C(1) << 32)

struct hf_deque;

struct hf_deque_opts {
    const char *name;  /* for hf_inspect() */
    uint64_t capacity; /* items that fit before it grows, rounded up to a power
                        * of two, HF_DEQUE_CAPACITY_MAX at most; 0 means
                        * HF_DEQUE_CAPACITY */
};

struct hf_deque_stats {
    uint64_t size;     /* items inside */
    uint64_t capacity; /* items that fit before it grows */
    uint64_t grown;    /* how often it has */
    uint64_t taken;    /* from the top since open: stolen, or popped as last */
};

/* HF_INVALID: deque is NULL, or the capacity is above its maximum. HF_NOMEM. */
enum hf_status hf_deque_open(struct hf_deque **deque,
                             const struct hf_deque_opts *opts);
/* Items that are still inside are forgotten. NULL is allowed. */
void hf_deque_close(struct hf_deque *deque);

/* The owner's. HF_INVALID: an argument is NULL. HF_NOMEM: it would have to grow
 * and could not; nothing was pushed. */
enum hf_status hf_deque_push(struct hf_deque *deque, void *item);
/* The owner's: the newest item. HF_EMPTY: there was none. HF_INVALID: an
 * argument is NULL. */
enum hf_status hf_deque_pop(struct hf_deque *deque, void **item);
/* Anybody's: the oldest item. HF_EMPTY: there was none at some instant during
 * the call. HF_INVALID: an argument is NULL. */
enum hf_status hf_deque_steal(struct hf_deque *deque, void **item);

/* Items inside: an estimate while others are inside, exact when nobody is. */
uint64_t hf_deque_size(const struct hf_deque *deque);
void hf_deque_stats(const struct hf_deque *deque, struct hf_deque_stats *out);

#ifdef __cplusplus
}
#endif

#endif
