/* rwlock.c - tests of the read-write lock: what one or two threads can see. */
#include "holdfast/rwlock.h"

#include <pthread.h>

#include "support/clock.h"
#include "support/test.h"

static struct hf_rwlock_stats stats_of(struct hf_rwlock *lock)
{
    struct hf_rwlock_stats stats;

    hf_rwlock_stats(lock, &stats);
    return stats;
}

TEST(many_read_or_one_writes)
{
    struct hf_rwlock lock;

    CHECK_EQ(hf_rwlock_init(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_rwlock_init(&lock, NULL), HF_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_OK);
    CHECK_EQ(stats_of(&lock).readers, 3);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_TIMEOUT);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_FOREVER), HF_OK);
    CHECK(stats_of(&lock).writing);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_rwlock_unlock_write(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}

TEST(what_is_not_held_cannot_be_unlocked)
{
    struct hf_rwlock lock;

    CHECK_EQ(hf_rwlock_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_write(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_downgrade(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_write(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_downgrade(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_write(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}

TEST(downgrade_lets_readers_in_and_writers_not)
{
    struct hf_rwlock lock;

    CHECK_EQ(hf_rwlock_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_OK);
    CHECK_EQ(hf_rwlock_downgrade(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}

TEST(shut_lets_nobody_in_and_those_inside_out)
{
    struct hf_rwlock lock;

    CHECK_EQ(hf_rwlock_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_OK);
    hf_rwlock_shutdown(&lock);
    hf_rwlock_shutdown(&lock);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_rwlock_downgrade(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_CLOSED);
    CHECK(stats_of(&lock).shutdown);
    hf_rwlock_destroy(&lock);
}

TEST(there_is_a_most_of_readers)
{
    struct hf_rwlock lock;

    CHECK_EQ(hf_rwlock_init(&lock, NULL), HF_OK);
    for (uint32_t i = 0; i < HF_RWLOCK_MAX; i++)
        CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_OK);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_FOREVER), HF_FULL);
    for (uint32_t i = 0; i < HF_RWLOCK_MAX; i++)
        CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}

struct request {
    struct hf_rwlock *lock;
    bool writes;
    uint64_t deadline_ns;
    enum hf_status status;
    pthread_t thread;
};

static void *ask(void *argument)
{
    struct request *request = argument;

    request->status =
        request->writes
            ? hf_rwlock_lock_write(request->lock, request->deadline_ns)
            : hf_rwlock_lock_read(request->lock, request->deadline_ns);
    return NULL;
}

static void ask_in_thread(struct request *request, struct test_clock *clock,
                          unsigned place)
{
    CHECK_EQ(pthread_create(&request->thread, NULL, ask, request), 0);
    test_clock_await_sleepers(clock, place);
}

static enum hf_status answer(struct request *request)
{
    CHECK_EQ(pthread_join(request->thread, NULL), 0);
    return request->status;
}

/* The reader inside, a writer that waits, a reader that waits behind it. */
TEST(a_writer_that_gives_up_lets_the_readers_in)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_rwlock lock;
    struct request writer = {&lock, true, 2000, HF_PENDING, 0};
    struct request reader = {&lock, false, HF_FOREVER, HF_PENDING, 0};

    CHECK_EQ(hf_rwlock_init(&lock, test_clock(&clock)), HF_OK);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_OK);
    ask_in_thread(&writer, &clock, 1);
    CHECK_EQ(hf_rwlock_lock_read(&lock, HF_NOW), HF_TIMEOUT);
    ask_in_thread(&reader, &clock, 2);
    CHECK_EQ(stats_of(&lock).writers_waiting, 1);
    CHECK_EQ(stats_of(&lock).readers_waiting, 1);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(answer(&writer), HF_TIMEOUT);
    CHECK_EQ(answer(&reader), HF_OK);
    CHECK_EQ(stats_of(&lock).readers, 2);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}

TEST(the_writer_goes_first)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_rwlock lock;
    struct request writer = {&lock, true, HF_FOREVER, HF_PENDING, 0};
    struct request reader = {&lock, false, HF_FOREVER, HF_PENDING, 0};

    CHECK_EQ(hf_rwlock_init(&lock, test_clock(&clock)), HF_OK);
    CHECK_EQ(hf_rwlock_lock_write(&lock, HF_NOW), HF_OK);
    ask_in_thread(&reader, &clock, 1);
    ask_in_thread(&writer, &clock, 2);
    /* A waiting writer keeps the readers out of a lock that could be shared. */
    CHECK_EQ(hf_rwlock_downgrade(&lock), HF_OK);
    CHECK_EQ(stats_of(&lock).readers_waiting, 1);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(answer(&writer), HF_OK);
    CHECK_EQ(stats_of(&lock).readers_waiting, 1);
    CHECK_EQ(hf_rwlock_unlock_write(&lock), HF_OK);
    CHECK_EQ(answer(&reader), HF_OK);
    CHECK_EQ(hf_rwlock_unlock_read(&lock), HF_OK);
    CHECK_EQ(lock.state.value, 0);
    hf_rwlock_destroy(&lock);
}
