/* map_hash.h - the map's own hash: keyed, and quick for short keys.
 *
 * Keys come from strangers. Whoever does not know the seed shall not be able to
 * prepare keys that fall into one bucket. SipHash gives that and more, at a
 * price that is most of a look-up. Up to 32 bytes the key is taken as four
 * words, and with secret words m
 *
 *   sum = (a + m0) * (b + m1) + (c + m2) * (d + m3) + length * m4   (128 bits)
 *
 * is the same for two given keys with a chance of about 2^-64 (this is NH, the
 * universal hash of UMAC). The two halves are then mixed by one more keyed
 * multiplication, folded. Longer keys go through SipHash.
 */
#ifndef SYNC_MAP_HASH_H
#define SYNC_MAP_HASH_H

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

#define MAP_HASH_WORDS 7
#define MAP_HASH_SHORT 32u /* bytes of a key */

struct map_hash {
    uint64_t words[MAP_HASH_WORDS]; /* (i) secret, made from the seed */
    struct hf_hash_seed seed;       /* (i) */
};

static inline void map_hash_init(struct map_hash *hash,
                                 struct hf_hash_seed seed)
{
    hash->seed = seed;
    for (uint64_t i = 0; i < MAP_HASH_WORDS; i++)
        hash->words[i] = hf_hash(seed, hf_bytes((const char *)&i, sizeof i));
}

/* Up to 8 bytes, those of different content differ if they are as long. */
static inline uint64_t map_hash_word(const unsigned char *at, size_t len)
{
    uint32_t low, high;
    uint64_t word;

    if (len >= 8) {
        memcpy(&word, at, 8);
        return word;
    }
    if (len >= 4) {
        memcpy(&low, at, 4);
        memcpy(&high, at + len - 4, 4);
        return (uint64_t)high << 32 | low;
    }
    if (len == 0)
        return 0;
    return (uint64_t)at[0] | (uint64_t)at[len / 2] << 8 |
           (uint64_t)at[len - 1] << 16;
}

__extension__ typedef unsigned __int128 map_u128;

/* Of up to 16 bytes. The second word may overlap the first. */
static inline map_u128 map_hash_pair(const uint64_t *words,
                                     const unsigned char *at, size_t len)
{
    uint64_t a = map_hash_word(at, len);
    uint64_t b = len > 8 ? map_hash_word(at + len - 8, 8) : 0;
    return (map_u128)(a + words[0]) * (b + words[1]);
}

static inline uint64_t map_hash(const struct map_hash *hash, const void *data,
                                size_t len)
{
    const unsigned char *at = (const unsigned char *)data;
    const uint64_t *words = hash->words;

    if (__builtin_expect(len > MAP_HASH_SHORT, 0))
        return hf_hash(hash->seed, hf_bytes((const char *)data, len));
    map_u128 sum = map_hash_pair(words, at, len < 16 ? len : 16);
    if (len > 16)
        sum += map_hash_pair(words + 2, at + 16, len - 16);
    sum += (map_u128)len * words[4];
    sum = (map_u128)((uint64_t)sum + words[5]) *
          ((uint64_t)(sum >> 64) + words[6]);
    return (uint64_t)sum ^ (uint64_t)(sum >> 64);
}

/* As memcmp() == 0, for short keys quicker. */
static inline bool map_bytes_equal(const void *a, const void *b, size_t len)
{
    const unsigned char *x = (const unsigned char *)a;
    const unsigned char *y = (const unsigned char *)b;
    uint64_t left, right;

    for (; len >= 8; len -= 8, x += 8, y += 8) {
        memcpy(&left, x, 8);
        memcpy(&right, y, 8);
        if (left != right)
            return false;
    }
    return len == 0 || memcmp(x, y, len) == 0;
}

/* The bytes of `word` that are `tag`: their bit 7 is set. A byte above such a
 * one may be named wrongly. `ones` is a 1 in each byte that counts. */
static inline uint64_t map_tag_hits(uint64_t word, uint64_t tag, uint64_t ones)
{
    uint64_t differs = word ^ tag * ones;
    return (differs - ones) & ~differs & ones << 7;
}

static inline unsigned map_tag_slot(uint64_t hits)
{
    return (unsigned)__builtin_ctzll(hits) / 8;
}

#endif
