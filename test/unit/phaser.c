/* phaser.c - tests of the phaser: what one thread can see. */
#include "holdfast/phaser.h"

#include <pthread.h>

#include "support/clock.h"
#include "support/test.h"

struct advances {
    int count;
    uint32_t phase;
    uint32_t parties;
    bool end;
};

static bool note(void *context, uint32_t phase, uint32_t parties)
{
    struct advances *advances = context;

    advances->count++;
    advances->phase = phase;
    advances->parties = parties;
    return advances->end;
}

static struct hf_phaser_stats stats_of(struct hf_phaser *phaser)
{
    struct hf_phaser_stats stats;

    hf_phaser_stats(phaser, &stats);
    return stats;
}

TEST(bad_arguments_are_refused)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = HF_PHASER_PARTIES_MAX + 1};
    uint32_t phase;

    CHECK_EQ(hf_phaser_init(&phaser, NULL), HF_INVALID);
    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_INVALID);
    opts.parties = HF_PHASER_PARTIES_MAX;
    CHECK_EQ(hf_phaser_init(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_register(&phaser, 0, HF_NOW, &phase), HF_INVALID);
    CHECK_EQ(
        hf_phaser_register(&phaser, HF_PHASER_PARTIES_MAX + 1, HF_NOW, &phase),
        HF_INVALID);
    CHECK_EQ(hf_phaser_register(&phaser, UINT32_MAX, HF_NOW, &phase),
             HF_INVALID);
    CHECK_EQ(hf_phaser_register(&phaser, 1, HF_NOW, &phase), HF_FULL);
    CHECK_EQ(stats_of(&phaser).parties, HF_PHASER_PARTIES_MAX);
    hf_phaser_destroy(&phaser);
}

TEST(it_advances_when_all_have_arrived)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 2};
    uint32_t phase = 9;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(hf_phaser_phase(&phaser), i);
        CHECK_EQ(hf_phaser_arrive(&phaser, &phase), HF_OK);
        CHECK_EQ(phase, i);
        CHECK_EQ(stats_of(&phaser).arrived, 1);
        CHECK_EQ(hf_phaser_await_phase(&phaser, i, HF_NOW), HF_TIMEOUT);
        CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, &phase), HF_OK);
        CHECK_EQ(phase, i + 1);
        CHECK_EQ(hf_phaser_await_phase(&phaser, i, HF_NOW), HF_OK);
    }
    hf_phaser_destroy(&phaser);
}

TEST(a_time_out_leaves_the_arrival)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 2};
    uint32_t phase = 9;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, &phase), HF_TIMEOUT);
    CHECK_EQ(phase, 9);
    CHECK_EQ(stats_of(&phaser).arrived, 1);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    CHECK_EQ(hf_phaser_await_phase(&phaser, 0, HF_FOREVER), HF_OK);
    hf_phaser_destroy(&phaser);
}

TEST(parties_come_and_go)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {0};
    uint32_t phase = 9;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_INVALID);
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, NULL), HF_INVALID);
    CHECK_EQ(hf_phaser_register(&phaser, 3, HF_NOW, &phase), HF_OK);
    CHECK_EQ(phase, 0);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    CHECK_EQ(hf_phaser_register(&phaser, 1, HF_NOW, NULL), HF_OK);
    CHECK_EQ(stats_of(&phaser).parties, 4);
    CHECK_EQ(stats_of(&phaser).arrived, 1);
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, &phase), HF_OK);
    CHECK_EQ(stats_of(&phaser).parties, 3);
    CHECK_EQ(stats_of(&phaser).arrived, 1);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, &phase), HF_OK);
    CHECK_EQ(phase, 0);
    CHECK_EQ(hf_phaser_phase(&phaser), 1);
    CHECK_EQ(stats_of(&phaser).parties, 2);
    CHECK_EQ(stats_of(&phaser).arrived, 0);
    hf_phaser_destroy(&phaser);
}

TEST(without_a_party_it_ends)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 1};
    uint32_t phase;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, &phase), HF_OK);
    CHECK(stats_of(&phaser).ended);
    /* Phase 0 was completed, phase 1 never will be. */
    CHECK_EQ(hf_phaser_await_phase(&phaser, 0, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_phaser_await_phase(&phaser, 1, HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_phaser_arrive(&phaser, &phase), HF_CLOSED);
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, &phase), HF_CLOSED);
    CHECK_EQ(hf_phaser_register(&phaser, 1, HF_NOW, &phase), HF_CLOSED);
    hf_phaser_destroy(&phaser);
}

TEST(on_advance_is_asked_at_each_advance_and_may_end_it)
{
    struct hf_phaser phaser;
    struct advances advances = {0};
    struct hf_phaser_opts opts = {
        .parties = 2, .on_advance = note, .context = &advances};

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    CHECK_EQ(advances.count, 0);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    CHECK_EQ(advances.count, 1);
    CHECK_EQ(advances.phase, 0);
    CHECK_EQ(advances.parties, 2);
    /* With on_advance it lives on without parties. */
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, NULL), HF_OK);
    CHECK_EQ(hf_phaser_arrive_and_deregister(&phaser, NULL), HF_OK);
    CHECK_EQ(advances.phase, 1);
    CHECK_EQ(advances.parties, 0);
    CHECK(!stats_of(&phaser).ended);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_INVALID);
    CHECK_EQ(hf_phaser_register(&phaser, 1, HF_NOW, NULL), HF_OK);
    advances.end = true;
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_FOREVER, NULL), HF_OK);
    CHECK(stats_of(&phaser).ended);
    CHECK_EQ(hf_phaser_phase(&phaser), 3);
    CHECK_EQ(advances.count, 3);
    hf_phaser_destroy(&phaser);
}

/* From inside on_advance the phase is not over and all have arrived. */
static bool poke(void *context, uint32_t phase, uint32_t parties)
{
    struct hf_phaser *phaser = context;

    CHECK_EQ(parties, 1);
    CHECK_EQ(hf_phaser_phase(phaser), phase);
    CHECK_EQ(hf_phaser_arrive(phaser, NULL), HF_INVALID);
    CHECK_EQ(hf_phaser_register(phaser, 1, HF_NOW, NULL), HF_TIMEOUT);
    CHECK_EQ(hf_phaser_await_phase(phaser, phase, HF_NOW), HF_TIMEOUT);
    if (phase == 1)
        hf_phaser_shutdown(phaser);
    return false;
}

TEST(while_on_advance_runs_others_wait)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {
        .parties = 1, .on_advance = poke, .context = &phaser};

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, NULL), HF_OK);
    /* It is shut while it advances: the phase is never over. */
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, NULL), HF_CLOSED);
    CHECK_EQ(hf_phaser_phase(&phaser), 1);
    CHECK(stats_of(&phaser).ended);
    hf_phaser_destroy(&phaser);
}

TEST(shut_ends_it_in_its_phase)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 2};

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_OK);
    hf_phaser_shutdown(&phaser);
    hf_phaser_shutdown(&phaser);
    CHECK_EQ(hf_phaser_await_phase(&phaser, 0, HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_phaser_arrive(&phaser, NULL), HF_CLOSED);
    CHECK_EQ(hf_phaser_phase(&phaser), 0);
    hf_phaser_destroy(&phaser);
}

TEST(phases_go_from_the_highest_to_0)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 1};
    uint32_t phase = 9;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    /* As it is after four thousand million phases. */
    phaser.state.value |= (uint64_t)UINT32_MAX << 32;
    CHECK_EQ(hf_phaser_phase(&phaser), UINT32_MAX);
    CHECK_EQ(hf_phaser_arrive_and_wait(&phaser, HF_NOW, &phase), HF_OK);
    CHECK_EQ(phase, 0);
    CHECK_EQ(hf_phaser_phase(&phaser), 0);
    CHECK_EQ(stats_of(&phaser).parties, 1);
    hf_phaser_destroy(&phaser);
}

static void *await_until_2000(void *phaser)
{
    return (void *)(uintptr_t)hf_phaser_await_phase(phaser, 0, 2000);
}

TEST(a_waiter_times_out_by_the_clock_it_was_given)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 1, .clock = test_clock(&clock)};
    pthread_t thread;
    void *status;

    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);
    CHECK_EQ(pthread_create(&thread, NULL, await_until_2000, &phaser), 0);
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(pthread_join(thread, &status), 0);
    CHECK_EQ((uintptr_t)status, HF_TIMEOUT);
    hf_phaser_destroy(&phaser);
}
