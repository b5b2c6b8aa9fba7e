/* random.c - tests of the seeded random numbers. */
#include "base/random.h"

#include "support/test.h"

TEST(a_seed_gives_one_sequence)
{
    struct hf_random a;
    struct hf_random b;

    hf_random_init(&a, test_seed());
    hf_random_init(&b, test_seed());
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_random_next(&a), hf_random_next(&b));
}

/* Written down once: a change here would make every recorded seed useless. */
TEST(the_sequence_is_the_same_for_ever)
{
    struct hf_random random;

    hf_random_init(&random, 0);
    CHECK_EQ(hf_random_next(&random), 0x99ec5f36cb75f2b4);
    CHECK_EQ(hf_random_next(&random), 0xbf6e1f784956452a);
    CHECK_EQ(hf_random_next(&random), 0x1a5f849d4933e6e0);
}

TEST(neighbouring_seeds_give_unrelated_sequences)
{
    uint64_t first[64];

    for (uint64_t seed = 0; seed < 64; seed++) {
        struct hf_random random;
        hf_random_init(&random, seed);
        first[seed] = hf_random_next(&random);
        for (uint64_t i = 0; i < seed; i++) {
            int bits = __builtin_popcountll(first[i] ^ first[seed]);
            CHECK(bits > 8 && bits < 56);
        }
    }
}

TEST(seed_zero_is_as_good_as_any)
{
    struct hf_random random;

    hf_random_init(&random, 0);
    CHECK((random.state[0] | random.state[1] | random.state[2] |
           random.state[3]) != 0);
}

TEST(below_stays_below)
{
    static const uint64_t bounds[] = {
        1, 2, 3, 10, 1000, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX};
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        for (int j = 0; j < 1000; j++)
            CHECK(hf_random_below(&random, bounds[i]) < bounds[i]);
    }
}

TEST(below_one_is_zero)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hf_random_below(&random, 1), 0);
}

/* With 100,000 draws into 10 boxes, a box holds 10,000 give or take 95 (one
 * standard deviation); 1,000 off is beyond ten of them. */
TEST(below_is_spread_evenly)
{
    struct hf_random random;
    int boxes[10] = {0};

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 100000; i++)
        boxes[hf_random_below(&random, 10)]++;
    for (int i = 0; i < 10; i++)
        CHECK(boxes[i] > 9000 && boxes[i] < 11000);
}

TEST(every_bit_is_set_about_half_of_the_time)
{
    struct hf_random random;
    int set[64] = {0};

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 10000; i++) {
        uint64_t number = hf_random_next(&random);
        for (int bit = 0; bit < 64; bit++)
            set[bit] += (number >> bit & 1) != 0;
    }
    for (int bit = 0; bit < 64; bit++)
        CHECK(set[bit] > 4500 && set[bit] < 5500);
}
