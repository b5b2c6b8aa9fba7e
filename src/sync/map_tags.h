/* map_tags.h - short keys compared, and tags of eight slots at a time. */
#ifndef SYNC_MAP_TAGS_H
#define SYNC_MAP_TAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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
