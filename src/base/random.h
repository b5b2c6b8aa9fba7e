/* random.h - seeded random numbers (xoshiro256**), the same on every machine.
 *
 * For simulation, tests and jitter; not for secrets. A seed gives one sequence
 * for ever, so that a failing run can be repeated.
 *
 * Threads: one generator, one thread.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

struct hf_random {
    uint64_t state[4];
};

void hf_random_init(struct hf_random *random, uint64_t seed);
uint64_t hf_random_next(struct hf_random *random);
/* Uniform in [0, bound); bound must not be 0. */
uint64_t hf_random_below(struct hf_random *random, uint64_t bound);

#endif
