/* forkjoin_loop.c - tests of parallel loops and reductions. */
#include "holdfast/forkjoin.h"

#include <string.h>

#include "base/atomic.h"
#include "support/test.h"

static struct hf_forkjoin *open_forkjoin(uint32_t threads)
{
    struct hf_forkjoin *forkjoin = NULL;
    struct hf_forkjoin_opts opts = {.threads = threads};

    CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_OK);
    return forkjoin;
}

static uint32_t get(const struct hf_atomic_u32 *word)
{
    return hf_u32_load(word, __ATOMIC_ACQUIRE);
}

/* ---- Loops. ---- */

#define NUMBERS 1000

struct marks {
    struct hf_atomic_u32 seen[NUMBERS];
    struct hf_atomic_u32 longest;
    struct hf_atomic_u32 calls;
};

static void mark(void *context, uint64_t from, uint64_t to)
{
    struct marks *marks = context;
    uint32_t longest = get(&marks->longest);

    hf_u32_add(&marks->calls, 1, __ATOMIC_RELAXED);
    for (uint64_t i = from; i < to; i++)
        hf_u32_add(&marks->seen[i], 1, __ATOMIC_RELAXED);
    while (to - from > longest &&
           !hf_u32_cas(&marks->longest, &longest, (uint32_t)(to - from),
                       __ATOMIC_RELAXED))
        continue;
}

TEST(a_loop_visits_each_number_once_in_ranges_of_the_grain)
{
    static const uint64_t grains[] = {1, 7, 100, NUMBERS, UINT64_MAX, 0};
    struct hf_forkjoin *forkjoin = open_forkjoin(3);

    for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
        struct marks marks = {0};
        CHECK_EQ(
            hf_parallel_for(forkjoin, 3, NUMBERS - 2, grains[g], mark, &marks),
            HF_OK);
        for (uint32_t i = 0; i < NUMBERS; i++)
            CHECK_EQ(get(&marks.seen[i]), i >= 3 && i < NUMBERS - 2);
        if (grains[g] != 0)
            CHECK(get(&marks.longest) <= grains[g]);
        else /* some for each thread, not one for each number */
            CHECK(get(&marks.calls) >= 24 && get(&marks.calls) <= 64);
    }
    hf_forkjoin_close(forkjoin);
}

TEST(loops_refuse_what_makes_no_sense)
{
    struct hf_forkjoin *forkjoin = open_forkjoin(2);
    struct marks marks = {0};

    CHECK_EQ(hf_parallel_for(NULL, 0, 1, 0, mark, &marks), HF_INVALID);
    CHECK_EQ(hf_parallel_for(forkjoin, 0, 1, 0, NULL, &marks), HF_INVALID);
    CHECK_EQ(hf_parallel_for(forkjoin, 2, 1, 0, mark, &marks), HF_INVALID);
    CHECK_EQ(hf_parallel_for(forkjoin, 2, 2, 0, mark, &marks), HF_OK);
    CHECK_EQ(get(&marks.calls), 0);
    hf_forkjoin_close(forkjoin);
}

/* The ends of the numbers that there are. */
static void count_range(void *context, uint64_t from, uint64_t to)
{
    hf_u32_add((struct hf_atomic_u32 *)context, to > from, __ATOMIC_RELAXED);
}

TEST(a_loop_over_all_numbers_does_not_overflow)
{
    struct hf_forkjoin *forkjoin = open_forkjoin(2);
    struct hf_atomic_u32 ranges = {0};

    CHECK_EQ(hf_parallel_for(forkjoin, 0, UINT64_MAX, 0, count_range, &ranges),
             HF_OK);
    CHECK_EQ(get(&ranges), 16);
    hf_forkjoin_close(forkjoin);
}

/* ---- Reductions. ---- */

static void sum_range(void *context, uint64_t from, uint64_t to, void *value)
{
    (void)context;
    for (; from < to; from++)
        *(double *)value += 1.0 / (double)(from + 1);
}

static void sum_combine(void *context, void *value, const void *right)
{
    (void)context;
    *(double *)value += *(const double *)right;
}

static const double zero = 0;
static const struct hf_reduction sum = {.bytes = sizeof zero,
                                        .identity = &zero,
                                        .fn = sum_range,
                                        .combine = sum_combine};

TEST(a_sum_is_the_same_to_the_last_bit_with_any_number_of_threads)
{
    double first = 0;

    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct hf_forkjoin *forkjoin = open_forkjoin(threads);
        double found = -1;
        CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 10000, 10, &sum, &found),
                 HF_OK);
        if (threads == 1)
            first = found;
        CHECK(memcmp(&found, &first, sizeof found) == 0);
        CHECK(found > 9.7876 && found < 9.7877);
        CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 10000, 0, &sum, &found),
                 HF_OK);
        CHECK(found > 9.7876 && found < 9.7877);
        hf_forkjoin_close(forkjoin);
    }
}

TEST(a_reduction_of_nothing_is_the_identity_and_bad_ones_touch_nothing)
{
    struct hf_forkjoin *forkjoin = open_forkjoin(2);
    struct hf_reduction bad;
    double found = -1;

    bad = sum;
    bad.bytes = 0;
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &bad, &found), HF_INVALID);
    bad.bytes = HF_REDUCE_BYTES_MAX + 1;
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &bad, &found), HF_INVALID);
    bad = sum;
    bad.identity = NULL;
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &bad, &found), HF_INVALID);
    bad = sum;
    bad.fn = NULL;
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &bad, &found), HF_INVALID);
    bad = sum;
    bad.combine = NULL;
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &bad, &found), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, NULL, &found), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &sum, NULL), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(NULL, 0, 9, 1, &sum, &found), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 9, 0, 1, &sum, &found), HF_INVALID);
    CHECK(found == -1);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 7, 7, 1, &sum, &found), HF_OK);
    CHECK(found == 0);
    found = -1;
    hf_forkjoin_shutdown(forkjoin);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 0, 9, 1, &sum, &found), HF_CLOSED);
    CHECK(found == -1);
    hf_forkjoin_close(forkjoin);
}
