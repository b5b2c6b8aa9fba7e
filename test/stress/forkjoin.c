/* forkjoin.c - many threads, many runs, more workers than processors.
 *
 * tests: also under sanitizers
 */
#include "holdfast/forkjoin.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define CALLERS 6

static bool slow_build(void)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0';
}

static struct hf_forkjoin *open_forkjoin(uint32_t threads)
{
    struct hf_forkjoin *forkjoin = NULL;
    struct hf_forkjoin_opts opts = {.threads = threads};

    CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_OK);
    return forkjoin;
}

/* ---- Runs that share the workers. ---- */

struct job {
    uint32_t n;
    uint32_t result;
};

static void fib(struct hf_forkjoin_worker *worker, void *arg)
{
    struct job *job = arg;

    if (job->n < 2) {
        job->result = job->n;
        return;
    }
    struct job a = {job->n - 1, 0};
    struct job b = {job->n - 2, 0};
    struct hf_fork fork;
    (void)hf_fork(worker, &fork, fib, &a);
    fib(worker, &b);
    (void)hf_join(worker, &fork);
    job->result = a.result + b.result;
}

struct party {
    struct hf_forkjoin *forkjoin;
    struct hf_atomic_u32 wrong;
};

/* Sizes change, so that workers fall asleep and wake all the time. */
static void call_runs(void *context, int index)
{
    static const uint32_t fibs[] = {0,  1,  1,  2,   3,   5,   8,   13, 21,
                                    34, 55, 89, 144, 233, 377, 610, 987};
    struct party *party = context;
    struct hf_random random;
    int runs = slow_build() ? 400 : 3000;

    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < runs; i++) {
        struct job job = {(uint32_t)hf_random_below(&random, 17), 0};
        if (hf_forkjoin_run(party->forkjoin, fib, &job) != HF_OK ||
            job.result != fibs[job.n])
            hf_u32_add(&party->wrong, 1, __ATOMIC_RELAXED);
    }
}

TEST(many_callers_get_their_own_results)
{
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        struct party party = {.forkjoin = open_forkjoin(threads)};
        struct hf_forkjoin_stats stats;
        test_threads(CALLERS, call_runs, &party);
        CHECK_EQ(hf_u32_load(&party.wrong, __ATOMIC_RELAXED), 0);
        hf_forkjoin_stats(party.forkjoin, &stats);
        CHECK_EQ(stats.runs, CALLERS * (slow_build() ? 400 : 3000));
        CHECK_EQ(stats.queued, 0);
        CHECK(stats.sleeping <= threads);
        printf("%u threads: %llu forks, %llu steals, %llu parks\n", threads,
               (unsigned long long)stats.forks,
               (unsigned long long)stats.steals,
               (unsigned long long)stats.parks);
        hf_forkjoin_close(party.forkjoin);
    }
}

/* ---- A large tree. ---- */

TEST(a_large_tree_is_right)
{
    struct hf_forkjoin *forkjoin = open_forkjoin(4);
    struct job job = {slow_build() ? 22 : 30, 0};
    struct hf_forkjoin_stats stats;

    CHECK_EQ(hf_forkjoin_run(forkjoin, fib, &job), HF_OK);
    CHECK_EQ(job.result, slow_build() ? 17711 : 832040);
    hf_forkjoin_stats(forkjoin, &stats);
    CHECK_EQ(stats.forks, slow_build() ? 28656 : 1346268);
    hf_forkjoin_close(forkjoin);
}

/* ---- Every number once, and plain memory is seen. ---- */

static void add_plain(void *context, uint64_t from, uint64_t to)
{
    uint32_t *numbers = context; /* a race would be reported */

    for (; from < to; from++)
        numbers[from] += (uint32_t)from;
}

static void sum_range(void *context, uint64_t from, uint64_t to, void *value)
{
    const uint32_t *numbers = context;

    for (; from < to; from++)
        *(uint64_t *)value += numbers[from];
}

static void sum_combine(void *context, void *value, const void *right)
{
    (void)context;
    *(uint64_t *)value += *(const uint64_t *)right;
}

TEST(loops_one_after_the_other_see_each_others_writes)
{
    static uint32_t numbers[100000];
    const uint64_t count = sizeof numbers / sizeof numbers[0];
    const uint64_t none = 0;
    struct hf_reduction sum = {.bytes = sizeof none,
                               .identity = &none,
                               .fn = sum_range,
                               .combine = sum_combine,
                               .context = numbers};
    struct hf_forkjoin *forkjoin = open_forkjoin(4);
    uint64_t rounds = slow_build() ? 20 : 300;
    uint64_t total = 0;

    for (uint64_t i = 1; i <= rounds; i++) {
        CHECK_EQ(hf_parallel_for(forkjoin, 0, count, i * 7 % 5000, add_plain,
                                 numbers),
                 HF_OK);
        CHECK_EQ(
            hf_parallel_reduce(forkjoin, 0, count, i * 11 % 5000, &sum, &total),
            HF_OK);
        CHECK_EQ(total, i * (count * (count - 1) / 2));
    }
    hf_forkjoin_close(forkjoin);
}

/* ---- The end while others call. ---- */

static void call_until_shut(void *context, int index)
{
    struct party *party = context;
    enum hf_status status;

    for (int i = 0;; i++) {
        struct job job = {12, 0};
        status = hf_forkjoin_run(party->forkjoin, fib, &job);
        if (status != HF_OK)
            break;
        if (job.result != 144)
            hf_u32_add(&party->wrong, 1, __ATOMIC_RELAXED);
        if (index == 0 && i == 3)
            hf_forkjoin_shutdown(party->forkjoin);
    }
    if (status != HF_CLOSED)
        hf_u32_add(&party->wrong, 1, __ATOMIC_RELAXED);
}

TEST(shut_lets_what_is_inside_end_and_close_frees_all)
{
    for (int i = slow_build() ? 20 : 200; i > 0; i--) {
        struct party party = {.forkjoin = open_forkjoin(3)};
        struct hf_forkjoin_stats stats;
        test_threads(CALLERS, call_until_shut, &party);
        CHECK_EQ(hf_u32_load(&party.wrong, __ATOMIC_RELAXED), 0);
        hf_forkjoin_stats(party.forkjoin, &stats);
        CHECK_EQ(stats.rejected, CALLERS);
        CHECK_EQ(stats.queued, 0);
        hf_forkjoin_close(party.forkjoin);
    }
}

TEST(opened_and_closed_at_once)
{
    for (int i = slow_build() ? 100 : 2000; i > 0; i--) {
        struct job job = {(uint32_t)i % 8, 0};
        struct hf_forkjoin *forkjoin = open_forkjoin(4);
        if (i % 2 == 0)
            CHECK_EQ(hf_forkjoin_run(forkjoin, fib, &job), HF_OK);
        hf_forkjoin_close(forkjoin);
    }
}
