/* random.c - xoshiro256** seeded by splitmix64. */
#include "base/random.h"

#include <assert.h>

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

void hf_random_init(struct hf_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix(&seed);
}

uint64_t hf_random_next(struct hf_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The high half of a 128-bit product is uniform but for a bias below
 * bound / 2^64, which no test here could see. */
uint64_t hf_random_below(struct hf_random *random, uint64_t bound)
{
    assert(bound > 0);
    unsigned __int128 product =
        (unsigned __int128)hf_random_next(random) * bound;
    return (uint64_t)(product >> 64);
}
