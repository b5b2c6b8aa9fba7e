/* adder.h - a counter that many threads add to and few read.
 *
 * One word that all threads change moves between their caches with every
 * change. Here each thread has a word of its own, and the sum is what is asked
 * for rarely:
 *
 *   thread 0   [ 17 ]  ....  (a cache line each)
 *   thread 1   [  4 ]  ....        sum = 17 + 4 + 30
 *   thread 2   [ 30 ]  ....
 *
 * A thread's word is written by that thread only, so adding is a load and a
 * store, without a locked instruction. Numbers wrap at 64 bits, as unsigned
 * numbers do; a negative number can be added.
 *
 * Threads: add, sum, sum_and_reset and stats may overlap; init and destroy
 *          may not.
 * Memory:  the caller owns `struct hf_adder`; init and a thread's first add
 *          allocate. A thread for which there is no memory shares one word
 *          with others like it: slower, and just as exact.
 *
 *   add            lock-free, wait-free but for a thread's first; exact
 *   sum            no instant: every add that the caller knows to have ended is
 *                  in it, none that began after its return, others may be
 *   sum_and_reset  every add is in exactly one result, now or later; one at a
 *                  time, others wait
 *
 * To know it, the threads must have met: by a lock, a join, an atomic. An add
 * gives no order to anything else. It must not be called by a signal handler
 * that may have interrupted an add of the same thread.
 *
 * Example:
 *
 *   struct hf_adder hits;
 *   assert(hf_adder_init(&hits) == HF_OK);
 *   hf_adder_add(&hits, 2);
 *   hf_adder_add(&hits, 1);
 *   assert(hf_adder_sum(&hits) == 3);
 *   assert(hf_adder_sum_and_reset(&hits) == 3);
 *   assert(hf_adder_sum(&hits) == 0);
 *   hf_adder_destroy(&hits);
 */
#ifndef HOLDFAST_ADDER_H
#define HOLDFAST_ADDER_H

#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_adder_state;

struct hf_adder {
    struct hf_adder_state *state; /* (i) */
};

struct hf_adder_stats {
    int64_t sum;      /* as hf_adder_sum() gives it */
    uint32_t records; /* words there are, in use or not */
};

/* HF_INVALID if adder is NULL, HF_NOMEM. */
enum hf_status hf_adder_init(struct hf_adder *adder);
/* Also of a zeroed struct. Nobody may be inside a call. */
void hf_adder_destroy(struct hf_adder *adder);

void hf_adder_add(struct hf_adder *adder, int64_t amount);
int64_t hf_adder_sum(const struct hf_adder *adder);
/* What was added since the last call of it. */
int64_t hf_adder_sum_and_reset(struct hf_adder *adder);

void hf_adder_stats(const struct hf_adder *adder, struct hf_adder_stats *out);

#ifdef __cplusplus
}
#endif

#endif
