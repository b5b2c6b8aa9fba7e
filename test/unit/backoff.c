/* backoff.c - tests of waits that double. */
#include "holdfast/backoff.h"

#include "support/test.h"

#define MS UINT64_C(1000000)

static void make(struct hf_backoff *backoff, enum hf_jitter jitter,
                 uint64_t base_ns, uint64_t cap_ns)
{
    struct hf_backoff_opts opts = {.base_ns = base_ns,
                                   .cap_ns = cap_ns,
                                   .jitter = jitter,
                                   .seed = test_seed()};
    CHECK_EQ(hf_backoff_init(backoff, &opts), HF_OK);
}

static uint64_t next(struct hf_backoff *backoff)
{
    uint64_t delay_ns = UINT64_MAX;

    CHECK_EQ(hf_backoff_next(backoff, 0, HF_FOREVER, &delay_ns), HF_OK);
    return delay_ns;
}

TEST(without_jitter_waits_double_up_to_the_cap)
{
    struct hf_backoff backoff;

    make(&backoff, HF_JITTER_NONE, 3, 20);
    CHECK_EQ(next(&backoff), 3);
    CHECK_EQ(next(&backoff), 6);
    CHECK_EQ(next(&backoff), 12);
    CHECK_EQ(next(&backoff), 20);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(next(&backoff), 20);
    hf_backoff_reset(&backoff);
    CHECK_EQ(next(&backoff), 3);
}

TEST(the_ceiling_never_wraps_round)
{
    CHECK_EQ(hf_backoff_ceiling_ns(1, UINT64_MAX, 63), UINT64_C(1) << 63);
    CHECK(hf_backoff_ceiling_ns(1, UINT64_MAX, 64) == UINT64_MAX);
    CHECK(hf_backoff_ceiling_ns(3, UINT64_MAX, 63) == UINT64_MAX);
    CHECK(hf_backoff_ceiling_ns(2, UINT64_MAX, UINT32_MAX) == UINT64_MAX);
    CHECK_EQ(hf_backoff_ceiling_ns(0, 7, 3), 0);
    CHECK_EQ(hf_backoff_ceiling_ns(4, 7, 0), 4);
    CHECK_EQ(hf_backoff_ceiling_ns(4, 7, 1), 7);
    for (uint32_t n = 0; n < 100; n++) {
        unsigned __int128 exact = (unsigned __int128)5 << (n > 100 ? 100 : n);
        uint64_t want = exact > 1000003 ? 1000003 : (uint64_t)exact;
        CHECK_EQ(hf_backoff_ceiling_ns(5, 1000003, n), want);
    }
}

TEST(full_jitter_reaches_both_ends_and_nothing_beyond)
{
    uint64_t seen[9] = {0};
    struct hf_backoff backoff;

    make(&backoff, HF_JITTER_FULL, 8, 8);
    for (int i = 0; i < 90000; i++) {
        uint64_t delay_ns = next(&backoff);
        CHECK(delay_ns <= 8);
        seen[delay_ns]++;
    }
    for (int i = 0; i <= 8; i++) /* 10,000 each; 6 standard deviations */
        CHECK(seen[i] > 9400 && seen[i] < 10600);
}

TEST(equal_jitter_keeps_the_upper_half)
{
    struct hf_backoff backoff;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    make(&backoff, HF_JITTER_EQUAL, 9, 9);
    for (int i = 0; i < 10000; i++) {
        uint64_t delay_ns = next(&backoff);
        least = delay_ns < least ? delay_ns : least;
        most = delay_ns > most ? delay_ns : most;
    }
    CHECK_EQ(least, 5);
    CHECK_EQ(most, 9);
}

TEST(decorrelated_jitter_stays_between_base_and_three_times_the_last)
{
    struct hf_backoff backoff;
    uint64_t last = 100;
    uint64_t most = 0;

    make(&backoff, HF_JITTER_DECORRELATED, 100, 5000);
    for (int i = 0; i < 10000; i++) {
        uint64_t delay_ns = next(&backoff);
        CHECK(delay_ns >= 100 && delay_ns <= 5000);
        CHECK(delay_ns <= last * 3);
        last = delay_ns;
        most = delay_ns > most ? delay_ns : most;
    }
    CHECK(most > 4900);
    hf_backoff_reset(&backoff);
    CHECK(next(&backoff) <= 300);
}

TEST(the_largest_numbers_do_not_wrap_round)
{
    struct hf_backoff backoff;
    uint64_t delay_ns = 7;

    for (int jitter = 0; jitter <= HF_JITTER_DECORRELATED; jitter++) {
        make(&backoff, (enum hf_jitter)jitter, 1, UINT64_MAX);
        for (int i = 0; i < 300; i++)
            (void)next(&backoff);
    }
    make(&backoff, HF_JITTER_NONE, UINT64_MAX, UINT64_MAX);
    CHECK(next(&backoff) == UINT64_MAX);
    CHECK_EQ(
        hf_backoff_next(&backoff, UINT64_MAX - 1, UINT64_MAX - 1, &delay_ns),
        HF_TIMEOUT);
    CHECK_EQ(delay_ns, 7);
}

TEST(a_seed_gives_one_sequence_and_another_seed_another)
{
    struct hf_backoff one;
    struct hf_backoff same;
    struct hf_backoff other;
    struct hf_backoff_opts opts = {.seed = 1};
    bool differs = false;

    CHECK_EQ(hf_backoff_init(&one, &opts), HF_OK);
    CHECK_EQ(hf_backoff_init(&same, &opts), HF_OK);
    opts.seed = 2;
    CHECK_EQ(hf_backoff_init(&other, &opts), HF_OK);
    for (int i = 0; i < 20; i++) {
        uint64_t delay_ns = next(&one);
        CHECK_EQ(next(&same), delay_ns);
        differs = differs || next(&other) != delay_ns;
    }
    CHECK(differs);
}

TEST(two_objects_without_a_seed_do_not_keep_step)
{
    struct hf_backoff pair[2];
    int equal = 0;

    CHECK_EQ(hf_backoff_init(&pair[0], NULL), HF_OK);
    CHECK_EQ(hf_backoff_init(&pair[1], NULL), HF_OK);
    for (int i = 0; i < 20; i++)
        equal += next(&pair[0]) == next(&pair[1]);
    CHECK(equal < 5);
}

TEST(attempts_and_the_deadline_end_it)
{
    struct hf_backoff backoff;
    struct hf_backoff_opts opts = {.base_ns = 10,
                                   .cap_ns = 100,
                                   .jitter = HF_JITTER_NONE,
                                   .attempts_max = 2};
    uint64_t delay_ns = 0;

    CHECK_EQ(hf_backoff_init(&backoff, &opts), HF_OK);
    CHECK_EQ(hf_backoff_next(&backoff, 1000, HF_NOW, &delay_ns), HF_TIMEOUT);
    CHECK_EQ(hf_backoff_next(&backoff, 1000, 1009, &delay_ns), HF_TIMEOUT);
    CHECK_EQ(delay_ns, 0);
    CHECK_EQ(hf_backoff_next(&backoff, 1000, 1010, &delay_ns), HF_OK);
    CHECK_EQ(delay_ns, 10); /* what was refused was not counted */
    CHECK_EQ(hf_backoff_next(&backoff, 1010, HF_FOREVER, &delay_ns), HF_OK);
    CHECK_EQ(delay_ns, 20);
    CHECK_EQ(hf_backoff_next(&backoff, 1030, HF_FOREVER, &delay_ns), HF_FULL);
    CHECK_EQ(delay_ns, 20);
    hf_backoff_reset(&backoff);
    CHECK_EQ(hf_backoff_next(&backoff, 1030, HF_FOREVER, &delay_ns), HF_OK);
    CHECK_EQ(delay_ns, 10);
}

TEST(defaults_and_bad_arguments)
{
    struct hf_backoff backoff;
    struct hf_backoff_opts opts = {.base_ns = 2, .cap_ns = 1};
    uint64_t delay_ns;

    CHECK_EQ(hf_backoff_init(&backoff, NULL), HF_OK);
    CHECK_EQ(backoff.base_ns, 10 * MS);
    CHECK_EQ(backoff.cap_ns, 30000 * MS);
    backoff.attempts = 77;
    CHECK_EQ(hf_backoff_init(&backoff, &opts), HF_INVALID);
    opts = (struct hf_backoff_opts){.jitter = (enum hf_jitter)4};
    CHECK_EQ(hf_backoff_init(&backoff, &opts), HF_INVALID);
    CHECK_EQ(backoff.attempts, 77);
    CHECK_EQ(hf_backoff_init(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_backoff_next(NULL, 0, HF_FOREVER, &delay_ns), HF_INVALID);
    CHECK_EQ(hf_backoff_next(&backoff, 0, HF_FOREVER, NULL), HF_INVALID);
    hf_backoff_reset(NULL);
    opts = (struct hf_backoff_opts){.cap_ns = 5};
    CHECK_EQ(hf_backoff_init(&backoff, &opts), HF_OK);
    CHECK_EQ(backoff.base_ns, 5);
    opts = (struct hf_backoff_opts){.base_ns = UINT64_MAX};
    CHECK_EQ(hf_backoff_init(&backoff, &opts), HF_OK);
    CHECK(backoff.cap_ns == UINT64_MAX);
}
