/* cache_sketch.c - how often was a key seen lately, in four bits.
 *
 * A count-min sketch: a key has four counters, each shared with others, and
 * the least of them is the closest. All four lie in one block of 64 bytes, one
 * in each pair of words, so that a key costs one cache line. After ten times
 * as many additions as there are keys all counters are halved: what was seen
 * long ago counts less and less.
 *
 *   block   | word 0  1 | 2  3 | 4  5 | 6  7 |    16 counters a word
 *   key         1st       2nd    3rd    4th
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define ROWS       4u
#define BLOCK      8u /* words */
#define COUNT_MAX  15u
#define ADDS_A_KEY 10u
#define ODD_BITS   UINT64_C(0x7777777777777777) /* what halving may leave */

bool hf_cache_sketch_init(struct cache_sketch *sketch, uint64_t keys)
{
    uint64_t blocks = 1;

    while (blocks * BLOCK < keys)
        blocks *= 2;
    sketch->words = hf_alloc_lines(blocks * BLOCK * sizeof(uint64_t));
    if (sketch->words == NULL)
        return false;
    sketch->mask = blocks - 1;
    sketch->adds = 0;
    sketch->adds_max = keys * ADDS_A_KEY;
    return true;
}

void hf_cache_sketch_fit(struct cache_sketch *sketch, uint64_t keys)
{
    struct cache_sketch larger;
    uint64_t words = (sketch->mask + 1) * BLOCK;

    if (keys * ADDS_A_KEY > sketch->adds_max)
        sketch->adds_max = keys * ADDS_A_KEY;
    if (keys <= words || !hf_cache_sketch_init(&larger, words * 2))
        return;
    /* A block's keys fall into the same one or into that + old size: both
     * begin with what it had. */
    memcpy(larger.words, sketch->words, words * sizeof(uint64_t));
    memcpy(larger.words + words, sketch->words, words * sizeof(uint64_t));
    hf_free(sketch->words);
    sketch->words = larger.words;
    sketch->mask = larger.mask;
}

/* The segment and the table use bits of the hash as they are: mixed anew, what
 * lies in one bucket does not lie in one block. */
static uint64_t mix(uint64_t hash)
{
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t *block_of(const struct cache_sketch *sketch, uint64_t mixed)
{
    return &sketch->words[(mixed & sketch->mask) * BLOCK];
}

/* The word of a row, and by how many bits its counter is shifted. */
HF_INLINE uint64_t *word_of(uint64_t *block, uint64_t mixed, unsigned row,
                            unsigned *shift)
{
    uint64_t bits = mixed >> (32 + row * 8);

    *shift = (unsigned)(bits >> 1 & 15) * 4;
    return &block[row * 2 + (bits & 1)];
}

/* One more, up to COUNT_MAX; 1 if it is. */
HF_INLINE uint64_t add_row(uint64_t *block, uint64_t mixed, unsigned row)
{
    unsigned shift;
    uint64_t *word = word_of(block, mixed, row, &shift);
    uint64_t more = (*word >> shift & COUNT_MAX) < COUNT_MAX;

    *word += more << shift;
    return more;
}

void hf_cache_sketch_fetch(const struct cache_sketch *sketch, uint64_t hash)
{
    __builtin_prefetch(block_of(sketch, mix(hash)), 1);
}

static void halve(struct cache_sketch *sketch)
{
    for (uint64_t i = 0; i < (sketch->mask + 1) * BLOCK; i++)
        sketch->words[i] = sketch->words[i] >> 1 & ODD_BITS;
    sketch->adds /= 2;
}

void hf_cache_sketch_add(struct cache_sketch *sketch, uint64_t hash)
{
    uint64_t mixed = mix(hash);
    uint64_t *block = block_of(sketch, mixed);
    uint64_t added = add_row(block, mixed, 0) | add_row(block, mixed, 1) |
                     add_row(block, mixed, 2) | add_row(block, mixed, 3);

    sketch->adds += added;
    if (__builtin_expect(sketch->adds >= sketch->adds_max, 0))
        halve(sketch);
}

unsigned hf_cache_sketch_count(const struct cache_sketch *sketch, uint64_t hash)
{
    uint64_t mixed = mix(hash);
    uint64_t *block = block_of(sketch, mixed);
    unsigned least = COUNT_MAX;
    unsigned shift;

    for (unsigned row = 0; row < ROWS; row++) {
        const uint64_t *word = word_of(block, mixed, row, &shift);
        unsigned count = (unsigned)(*word >> shift & COUNT_MAX);
        least = count < least ? count : least;
    }
    return least;
}
