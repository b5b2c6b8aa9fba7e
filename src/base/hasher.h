/* hasher.h - a keyed hash that is quick for short keys.
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
#ifndef BASE_HASHER_H
#define BASE_HASHER_H

#include <string.h>

#include "base/hash.h"

#define HF_HASHER_WORDS 7
#define HF_HASHER_SHORT 32u /* bytes of a key */

struct hf_hasher {
    uint64_t words[HF_HASHER_WORDS]; /* (i) secret, made from the seed */
    struct hf_hash_seed seed;        /* (i) */
};

static inline void hf_hasher_init(struct hf_hasher *hash,
                                  struct hf_hash_seed seed)
{
    hash->seed = seed;
    for (uint64_t i = 0; i < HF_HASHER_WORDS; i++)
        hash->words[i] = hf_hash(seed, hf_bytes((const char *)&i, sizeof i));
}

/* Up to 8 bytes, those of different content differ if they are as long. */
static inline uint64_t hf_hasher_word(const unsigned char *at, size_t len)
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

__extension__ typedef unsigned __int128 hf_u128;

/* Of up to 16 bytes. The second word may overlap the first. */
static inline hf_u128 hf_hasher_pair(const uint64_t *words,
                                     const unsigned char *at, size_t len)
{
    uint64_t a = hf_hasher_word(at, len);
    uint64_t b = len > 8 ? hf_hasher_word(at + len - 8, 8) : 0;
    return (hf_u128)(a + words[0]) * (b + words[1]);
}

static inline uint64_t hf_hasher_hash(const struct hf_hasher *hash,
                                      const void *data, size_t len)
{
    const unsigned char *at = (const unsigned char *)data;
    const uint64_t *words = hash->words;

    if (__builtin_expect(len > HF_HASHER_SHORT, 0))
        return hf_hash(hash->seed, hf_bytes((const char *)data, len));
    hf_u128 sum = hf_hasher_pair(words, at, len < 16 ? len : 16);
    if (len > 16)
        sum += hf_hasher_pair(words + 2, at + 16, len - 16);
    sum += (hf_u128)len * words[4];
    sum = (hf_u128)((uint64_t)sum + words[5]) *
          ((uint64_t)(sum >> 64) + words[6]);
    return (uint64_t)sum ^ (uint64_t)(sum >> 64);
}

#endif
