/* limiter_words.h - what a rule says about the words of a key.
 *
 * The arithmetic is that of rate_state.h and rate_slots.h. Here the two kinds
 * of state become one: the words themselves, or (plan->words is 0) an array
 * that the first word points to, NULL while nothing was taken. All words zero
 * is a key that has spent nothing.
 *
 * Threads: the caller has the cell's lock. Memory: take, spend and convert may
 * allocate an array, which belongs to the words.
 */
#ifndef FLOW_LIMITER_WORDS_H
#define FLOW_LIMITER_WORDS_H

#include "base/atomic.h"
#include "flow/rate_slots.h"
#include "flow/rate_state.h"

/* How long until `count` can be taken and `keep_back` left; 0: now; or
 * HF_RATE_NEVER. */
uint64_t hf_words_wait(const struct hf_rate_plan *plan,
                       const struct rate_state *words, uint64_t count,
                       uint64_t keep_back, uint64_t now_ns);
/* Takes what can be taken: the caller has asked. HF_NOMEM: nothing. */
enum hf_status hf_words_take(const struct hf_rate_plan *plan,
                             struct rate_state *words, uint64_t count,
                             uint64_t keep_back, uint64_t now_ns);
/* Makes sure that hf_words_take() has memory. */
enum hf_status hf_words_ready(const struct hf_rate_plan *plan,
                              struct rate_state *words);
/* Takes it though it cannot be taken, as far as the kind can note it: of
 * buckets and fixed windows up to one limit more than all, of others all. */
void hf_words_spend(const struct hf_rate_plan *plan, struct rate_state *words,
                    uint64_t count, uint64_t now_ns);
void hf_words_refund(const struct hf_rate_plan *plan, struct rate_state *words,
                     uint64_t count, uint64_t taken_ns);
void hf_words_tell(const struct hf_rate_plan *plan,
                   const struct rate_state *words, uint64_t now_ns,
                   struct hf_rate_answer *answer);
bool hf_words_idle(const struct hf_rate_plan *plan,
                   const struct rate_state *words, uint64_t now_ns);
/* The words of one rule as words of another. Without memory for an array the
 * key starts anew with everything spent that it had, as far as words can tell:
 * HF_NOMEM and nothing changed. */
enum hf_status hf_words_convert(const struct hf_rate_plan *from,
                                const struct hf_rate_plan *to,
                                struct rate_state *words, uint64_t now_ns);
/* Frees an array; the words are zero. */
void hf_words_clear(const struct hf_rate_plan *plan, struct rate_state *words);
/* True if the words have their array, need none, or it fits: all arrays have
 * `used` bytes. */
bool hf_words_fit(const struct hf_rate_plan *plan,
                  const struct rate_state *words,
                  const struct hf_atomic_u64 *used, uint64_t most);
/* Bytes of arrays that these words have. */
uint64_t hf_words_bytes(const struct hf_rate_plan *plan,
                        const struct rate_state *words);

#endif
