/* hash.c - tests of the keyed hash. */
#include "base/hash.h"

#include "base/random.h"
#include "support/test.h"

static uint64_t hash_of_count(uint64_t key0, uint64_t key1, size_t len)
{
    struct hf_hash_seed seed = {{key0, key1}};
    char bytes[64];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    return hf_hash(seed, hf_bytes(bytes, len));
}

TEST(agrees_with_the_reference_of_siphash_1_3)
{
    CHECK(hash_of_count(0, 0, 0) == 0xd1fba762150c532cu);
    CHECK(hash_of_count(0, 0, 1) == 0x68a914128e01e473u);
    CHECK(hash_of_count(0, 0, 7) == 0x2f098ab0c751325au);
    CHECK(hash_of_count(0, 0, 8) == 0xead411e67ebe2eeau);
    CHECK(hash_of_count(0, 0, 9) == 0x75927f9d95124362u);
    CHECK(hash_of_count(0, 0, 15) == 0xf30eb725bb91c9eau);
    CHECK(hash_of_count(0, 0, 16) == 0x8972188433a5c5b7u);
    CHECK(hash_of_count(0, 0, 63) == 0x385d3e39e5f37359u);
    CHECK(hash_of_count(0x0706050403020100, 0x0f0e0d0c0b0a0908, 0) ==
          0xabac0158050fc4dcu);
}

TEST(does_not_depend_on_where_the_bytes_lie)
{
    struct hf_hash_seed seed = {{1, 2}};
    char bytes[64];

    for (size_t shift = 0; shift < 8; shift++) {
        memset(bytes, (int)shift, sizeof bytes);
        memcpy(bytes + shift, "the same twenty-seven bytes", 27);
        CHECK(hf_hash(seed, hf_bytes(bytes + shift, 27)) ==
              hf_hash(seed, hf_bytes_text("the same twenty-seven bytes")));
    }
}

TEST(every_key_bit_and_every_input_bit_counts)
{
    char bytes[20] = {0};
    struct hf_hash_seed seed = {{3, 4}};
    uint64_t first = hf_hash(seed, hf_bytes(bytes, sizeof bytes));

    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] = (char)(1 << bit % 8);
        CHECK(hf_hash(seed, hf_bytes(bytes, sizeof bytes)) != first);
        bytes[bit / 8] = 0;
    }
    for (size_t bit = 0; bit < 128; bit++) {
        struct hf_hash_seed other = seed;
        other.key[bit / 64] ^= 1ull << bit % 64;
        CHECK(hf_hash(other, hf_bytes(bytes, sizeof bytes)) != first);
    }
    for (size_t len = 0; len < sizeof bytes; len++)
        CHECK(hf_hash(seed, hf_bytes(bytes, len)) != first);
}

#define BUCKETS 256
#define EACH    400

TEST(spreads_names_in_sequence_evenly)
{
    struct hf_random random;
    struct hf_hash_seed seed;
    unsigned low[BUCKETS] = {0};
    unsigned high[BUCKETS] = {0};

    hf_random_init(&random, test_seed());
    seed.key[0] = hf_random_next(&random);
    seed.key[1] = hf_random_next(&random);
    for (unsigned i = 0; i < BUCKETS * EACH; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "order/%u", i);
        uint64_t hash = hf_hash(seed, hf_bytes(name, (size_t)len));
        low[hash % BUCKETS]++;
        high[hash >> 56]++;
    }
    for (unsigned i = 0; i < BUCKETS; i++) { /* 7 standard deviations */
        CHECK(low[i] > EACH - 140 && low[i] < EACH + 140);
        CHECK(high[i] > EACH - 140 && high[i] < EACH + 140);
    }
}
