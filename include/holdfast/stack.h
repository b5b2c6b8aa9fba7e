/* stack.h - last in, first out, between any number of threads.
 *
 * The lock-free kind is a list whose first node one word names. A push makes
 * its node name the first one and swings the word to itself; a pop swings it
 * to the node after. Both happen with one compare-and-swap of that word:
 *
 *    63      32 31      0
 *   +----------+---------+     +--------------+     +--------------+
 *   |   tag    |  first -|---->| item  next --|---->| item  none   |
 *   +----------+---------+     | depth 2      |     | depth 1      |
 *    counts pops               +--------------+     +--------------+
 *
 * Why a tag. A thread reads `first` and its `next`, and sleeps. Meanwhile the
 * node is popped, others too, and the node comes back with another `next`. The
 * word names the same node as before, but to swing it to the old `next` would
 * bring back what was popped. With the tag it is another word: the swap fails.
 *
 * Nodes are numbers into chunks that never move and are freed by close only,
 * so that reading a node which is no longer in the list is harmless. Popped
 * nodes stay with the thread that popped them, a few at a time, and go round
 * through a common list in batches: push and pop cost one swap that others
 * contend for. In a stack with a capacity a node knows its depth, so that
 * "full" and the size are exact without a counter.
 *
 * The locked kind does the same with an array under a lock: to compare, or
 * where a thread that is stopped for long may stop the others.
 *
 * Threads: push, pop, size and stats may overlap each other. Not to be called
 *          from a signal handler.
 * Memory:  items are the caller's. Nodes, of 16 bytes: as many as were ever
 *          inside at a time, and at most 48 more for each thread; freed by
 *          close. Pop allocates nothing.
 *
 *                linearizable  exact empty/full  lock-free  allocates
 *   lock-free    yes           yes               yes        push, when it grows
 *   locked       yes           yes               no         push, when it grows
 *
 * Example:
 *
 *   struct hf_stack *stack;
 *   int first = 1, second = 2;
 *   void *item;
 *   assert(hf_stack_open(&stack, NULL) == HF_OK);
 *   assert(hf_stack_push(stack, &first) == HF_OK);
 *   assert(hf_stack_push(stack, &second) == HF_OK);
 *   assert(hf_stack_pop(stack, &item) == HF_OK && item == &second);
 *   assert(hf_stack_pop(stack, &item) == HF_OK && item == &first);
 *   assert(hf_stack_pop(stack, &item) == HF_EMPTY);
 *   hf_stack_close(stack);
 */
#ifndef HOLDFAST_STACK_H
#define HOLDFAST_STACK_H

#include <stdint.h>

#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_stack;

#define HF_STACK_CAPACITY_MAX (UINT64_C(1) << 31)

enum hf_stack_kind {
    HF_STACK_LOCK_FREE, /* the default */
    HF_STACK_LOCKED,
};

struct hf_stack_opts {
    const char *name;  /* for hf_inspect() */
    uint64_t capacity; /* items; 0: HF_STACK_CAPACITY_MAX, without bound */
    enum hf_stack_kind kind;
};

struct hf_stack_stats {
    uint64_t size;
    uint64_t capacity;
    uint64_t pushes;  /* since open */
    uint64_t pops;    /* since open */
    uint64_t refused; /* pushes that found it full */
    uint64_t nodes;   /* places for items that were made */
};

/* HF_INVALID: stack is NULL, capacity is beyond its maximum, no such kind.
 * HF_NOMEM. */
enum hf_status hf_stack_open(struct hf_stack **stack,
                             const struct hf_stack_opts *opts);
/* What is inside is forgotten. Nobody may be inside a call. NULL is allowed.*/
void hf_stack_close(struct hf_stack *stack);

/* HF_FULL: at one instant of the call `capacity` items were inside. HF_NOMEM:
 * nothing was changed. HF_INVALID: the item is NULL. */
enum hf_status hf_stack_push(struct hf_stack *stack, void *item);
/* The item that was pushed last. HF_EMPTY: at one instant of the call there was
 * none. HF_INVALID: item is NULL. */
enum hf_status hf_stack_pop(struct hf_stack *stack, void **item);

/* With a capacity, how many items were inside at one instant of the call;
 * without, what the threads have counted: exact while nobody pushes or pops. */
uint64_t hf_stack_size(const struct hf_stack *stack);
/* The counts of a push or pop under way may be missing. */
void hf_stack_stats(const struct hf_stack *stack, struct hf_stack_stats *out);

#ifdef __cplusplus
}
#endif

#endif
