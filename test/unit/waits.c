/* Tests of hf_waits: buckets, their ends, the 99th percentile. */
#include "sync/waits.h"

#include "holdfast/inspect.h"
#include "support/test.h"

static struct hf_waits waits;

/* What the only wait of `ns` is told to be. */
static uint64_t only(uint64_t ns)
{
    waits = (struct hf_waits){0};
    hf_waits_note(&waits, ns);
    return hf_waits_percentile_ns(&waits, 99);
}

TEST(nothing_noted_is_none)
{
    waits = (struct hf_waits){0};
    CHECK_EQ(hf_waits_count(&waits), 0);
    CHECK_EQ(hf_waits_percentile_ns(&waits, 99), HF_INSPECT_NONE);
}

TEST(small_waits_are_exact)
{
    for (uint64_t ns = 0; ns < 8; ns++)
        CHECK_EQ(only(ns), ns);
}

TEST(the_end_of_a_bucket_is_less_than_a_quarter_away)
{
    CHECK_EQ(only(8), 9);
    CHECK_EQ(only(9), 9);
    CHECK_EQ(only(10), 11);
    CHECK_EQ(only(45), 47);
    for (unsigned high = 3; high < 64; high++) {
        uint64_t power = UINT64_C(1) << high;
        const uint64_t samples[] = {power - 1, power, power + power / 4 - 1,
                                    power + power / 4, power + power / 3};
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
            CHECK(only(samples[i]) >= samples[i]);
            CHECK(only(samples[i]) - samples[i] <= samples[i] / 4);
        }
    }
    CHECK(only(UINT64_MAX) == UINT64_MAX);
}

TEST(one_of_a_hundred_may_be_longer)
{
    waits = (struct hf_waits){0};
    for (int i = 0; i < 99; i++)
        hf_waits_note(&waits, 5);
    hf_waits_note(&waits, 1000000);
    CHECK_EQ(hf_waits_percentile_ns(&waits, 99), 5);
    hf_waits_note(&waits, 1000000); /* two of 101 are */
    CHECK(hf_waits_percentile_ns(&waits, 99) >= 1000000);
    CHECK_EQ(hf_waits_count(&waits), 101);
}
