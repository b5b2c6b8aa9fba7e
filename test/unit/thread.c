/* Tests of slots: small, unique among the living, given again. */
#include "base/thread.h"

#include <pthread.h>

#include "support/test.h"
#include "support/threads.h"

#define THREADS 32

static uint32_t slots[THREADS];
static pthread_barrier_t all_have_one;

static void take_slot(void *context, int index)
{
    (void)context;
    slots[index] = hf_thread_slot();
    pthread_barrier_wait(&all_have_one); /* nobody ends before */
}

TEST(living_threads_have_different_slots)
{
    uint32_t own = hf_thread_slot();

    CHECK_EQ(hf_thread_slot(), own);
    pthread_barrier_init(&all_have_one, NULL, THREADS);
    test_threads(THREADS, take_slot, NULL);
    pthread_barrier_destroy(&all_have_one);
    for (int i = 0; i < THREADS; i++) {
        CHECK(slots[i] != own);
        for (int j = 0; j < i; j++)
            CHECK(slots[i] != slots[j]);
    }
}

TEST(slots_of_the_dead_are_given_again)
{
    pthread_barrier_init(&all_have_one, NULL, 1);
    for (int i = 0; i < 200; i++) {
        test_threads(1, take_slot, NULL);
        CHECK(slots[0] < THREADS + 1);
    }
    pthread_barrier_destroy(&all_have_one);
}

static uint32_t ended_slot;

static void note_end(uint32_t slot)
{
    ended_slot = slot;
}

TEST(hooks_run_in_a_thread_that_ends)
{
    pthread_barrier_init(&all_have_one, NULL, 1);
    hf_thread_at_exit(note_end);
    ended_slot = UINT32_MAX;
    test_threads(1, take_slot, NULL);
    CHECK_EQ(ended_slot, slots[0]);
    pthread_barrier_destroy(&all_have_one);
}

TEST(there_is_a_processor)
{
    CHECK(hf_cpu_count() >= 1);
}
