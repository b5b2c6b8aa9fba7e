/* hasher.c - the quick keyed hash: every byte counts, and it spreads. */
#include "base/hasher.h"

#include "support/test.h"

#define KEYS    65536
#define BUCKETS 16384 /* four keys each */

static struct hf_hasher seeded(uint64_t seed)
{
    struct hf_hasher hash;
    hf_hasher_init(&hash, (struct hf_hash_seed){{seed, 1}});
    return hash;
}

TEST(every_byte_and_the_length_count)
{
    struct hf_hasher hash = seeded(7);
    unsigned char key[80];

    memset(key, 'x', sizeof key);
    for (size_t len = 0; len <= sizeof key; len++) {
        uint64_t whole = hf_hasher_hash(&hash, key, len);
        CHECK(len == 0 || whole != hf_hasher_hash(&hash, key, len - 1));
        for (size_t at = 0; at < len; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                key[at] = (unsigned char)(key[at] ^ 1u << bit);
                CHECK(hf_hasher_hash(&hash, key, len) != whole);
                key[at] = 'x';
            }
        }
        CHECK(hf_hasher_hash(&hash, key, len) == whole);
    }
}

TEST(another_seed_is_another_hash)
{
    struct hf_hasher a = seeded(1);
    struct hf_hasher b = seeded(2);
    char key[40] = "";

    for (size_t len = 0; len <= sizeof key; len++)
        CHECK(hf_hasher_hash(&a, key, len) != hf_hasher_hash(&b, key, len));
}

/* What a good hash leaves empty and puts into the fullest bucket is known:
 * e^-4 of the buckets, and about 15 keys. */
static void check_spread(size_t len, unsigned shift)
{
    static uint16_t low[BUCKETS];
    static uint32_t high[256];
    struct hf_hasher hash = seeded(len * 64 + shift);
    int empty = 0;

    memset(low, 0, sizeof low);
    memset(high, 0, sizeof high);
    for (uint64_t i = 0; i < KEYS; i++) {
        unsigned char key[40] = {0};
        uint64_t number = i << shift;
        memcpy(key + len - 8, &number, 8);
        uint64_t found = hf_hasher_hash(&hash, key, len);
        low[found % BUCKETS]++;
        high[found >> 56]++;
    }
    for (int i = 0; i < BUCKETS; i++) {
        empty += low[i] == 0;
        CHECK(low[i] < 22);
    }
    CHECK(empty > BUCKETS / 66 && empty < BUCKETS / 46); /* 1 of 54.6 */
    for (int i = 0; i < 256; i++)
        CHECK(high[i] > 170 && high[i] < 345); /* 256 */
}

TEST(keys_that_differ_in_a_few_bits_are_spread)
{
    for (size_t len = 8; len <= 40; len += 8) {
        for (unsigned shift = 0; shift <= 48; shift += 6)
            check_spread(len, shift);
    }
}
