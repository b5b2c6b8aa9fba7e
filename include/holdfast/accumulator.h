/* accumulator.h - the least, the greatest, or any running value of many
 * threads' values.
 *
 * As an adder, but with a function of the user's in place of +: it must not
 * care in which order and in which groups values come (min, max, or, xor, gcd).
 * Each thread keeps a value of its own; asking combines them:
 *
 *   thread 0   [ max 17 ]
 *   thread 1   [ max  4 ]      value = f(f(f(identity, 17), 4), 30)
 *   thread 2   [ max 30 ]
 *
 * Threads: add, value, value_and_reset and stats may overlap; init and destroy
 *          may not.
 *          The function is called by any of them, often; it must be quick and
 *          touch nothing else.
 * Memory:  as an adder.
 *
 *   add              lock-free; a value that changes nothing writes nothing
 *   value            no instant: every add that the caller knows to have ended
 *                    is in it, none that began after its return
 *   value_and_reset  every add is in exactly one result, now or later
 *
 * Example:
 *
 *   struct hf_accumulator slowest;
 *   assert(hf_accumulator_init(&slowest, hf_accumulate_max, 0) == HF_OK);
 *   hf_accumulator_add(&slowest, 250);
 *   hf_accumulator_add(&slowest, 90);
 *   assert(hf_accumulator_value_and_reset(&slowest) == 250);
 *   assert(hf_accumulator_value(&slowest) == 0);
 *   hf_accumulator_destroy(&slowest);
 */
#ifndef HOLDFAST_ACCUMULATOR_H
#define HOLDFAST_ACCUMULATOR_H

#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_accumulator_state;

struct hf_accumulator {
    struct hf_accumulator_state *state; /* (i) */
};

struct hf_accumulator_stats {
    uint64_t value;   /* as hf_accumulator_value() gives it */
    uint32_t records; /* there are, in use or not */
};

/* `identity` changes nothing: function(identity, x) == function(x, identity) ==
 * x for every x. Use UINT64_MAX with min, 0 with max. HF_INVALID if accumulator
 * or function is NULL, HF_NOMEM. */
enum hf_status hf_accumulator_init(struct hf_accumulator *accumulator,
                                   uint64_t (*function)(uint64_t a, uint64_t b),
                                   uint64_t identity);
/* Also of a zeroed struct. Nobody may be inside a call. */
void hf_accumulator_destroy(struct hf_accumulator *accumulator);

void hf_accumulator_add(struct hf_accumulator *accumulator, uint64_t value);
/* The identity if nothing was added. */
uint64_t hf_accumulator_value(const struct hf_accumulator *accumulator);
/* Of what was added since the last call of it. */
uint64_t hf_accumulator_value_and_reset(struct hf_accumulator *accumulator);

void hf_accumulator_stats(const struct hf_accumulator *accumulator,
                          struct hf_accumulator_stats *out);

/* Functions to use. */
uint64_t hf_accumulate_min(uint64_t a, uint64_t b);
uint64_t hf_accumulate_max(uint64_t a, uint64_t b);
/* Of int64_t values, cast to and fro: INT64_MAX and INT64_MIN are neutral. */
uint64_t hf_accumulate_min_signed(uint64_t a, uint64_t b);
uint64_t hf_accumulate_max_signed(uint64_t a, uint64_t b);

#ifdef __cplusplus
}
#endif

#endif
