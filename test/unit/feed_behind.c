/* feed_behind.c - tests of a feed whose disk is slow, or hangs. */
#include <pthread.h>

#include "support/clock.h"
#include "support/feeding.h"

static struct hf_atomic_u32 held;
static struct hf_event let_go;

static enum hf_status is_free(void *context)
{
    (void)context;
    return hf_u32_load(&held, __ATOMIC_SEQ_CST) == 0 ? HF_OK : HF_PENDING;
}

static int slow_write(void *context, int fd, const void *data, size_t len,
                      uint64_t offset)
{
    (void)hf_event_until(&let_go, is_free, NULL, NULL, HF_FOREVER);
    return do_write(context, fd, data, len, offset);
}

static void hold(bool hangs)
{
    hf_u32_store(&held, hangs, __ATOMIC_SEQ_CST);
    hf_event_wake_all(&let_go);
}

static struct test_clock now;

static bool behind(void)
{
    return feed_is_behind(feed, test_clock(&now));
}

static enum hf_status try_not_behind(void *context)
{
    (void)context;
    return behind() ? HF_PENDING : HF_OK;
}

static uint64_t lost(void)
{
    struct feed_stats stats;

    feed_stats(feed, &stats);
    return stats.lost;
}

static void start_slow(void)
{
    start();
    disk.write = slow_write;
    now.now_ns = hf_clock_now_ns(NULL); /* which a replay goes by */
    hold(true);
}

/* Adds as long as it may; the number behind the last. */
static uint64_t add_until_behind(void)
{
    uint64_t seq = 1;

    for (; !behind(); seq++) {
        CHECK(seq < 1000);
        add(seq, 20000);
    }
    CHECK_EQ(lost(), 0);
    return seq;
}

TEST(whoever_waits_for_a_slow_disk_loses_nothing)
{
    start_slow();
    uint64_t seq = add_until_behind();
    CHECK(feed->next - feed->first > FEED_CHUNKS_BEHIND);
    CHECK(feed->next - feed->first < FEED_CHUNKS_BEHIND + 3);
    hold(false);
    for (; seq <= 3000; seq++) {
        CHECK_EQ(hf_event_until(&woken, try_not_behind, NULL, NULL, HF_FOREVER),
                 HF_OK);
        add(seq, 20000);
    }
    CHECK_EQ(lost(), 0);
    write_all();
    CHECK(!behind());
    struct found found = read_all(0);
    CHECK_EQ(found.count, 3000);
    CHECK_EQ(found.gaps, 0);
    stop(true);
}

/* Between two steps there is room for as much as one may bring. */
TEST(what_one_step_brings_fits_when_it_is_not_behind)
{
    start_slow();
    uint64_t seq = add_until_behind();
    for (uint64_t bytes = 0; bytes < 9u << 20; bytes += 20000)
        add(seq++, 20000);
    CHECK_EQ(lost(), 0);
    hold(false);
    stop(false);
}

TEST(a_disk_that_hangs_is_not_waited_for_until_it_goes_on)
{
    start_slow();
    (void)add_until_behind();
    test_clock_advance(&now, FEED_PATIENCE_NS - 1);
    CHECK(behind());
    test_clock_advance(&now, 1);
    CHECK(!behind());
    test_clock_advance(&now, FEED_PATIENCE_NS);
    CHECK(!behind());
    hold(false);
    write_all();
    hold(true);
    add(feed->up_to + 1, 0);
    for (uint64_t i = feed->up_to + 1; !behind(); i++) {
        CHECK(i < 2000);
        add(i, 20000);
    }
    hold(false);
    stop(false);
}

TEST(a_disk_that_fails_is_not_waited_for)
{
    start();
    fail(FAIL_WRITE);
    add(1, 0);
    write_all();
    for (uint64_t i = 2; i <= 500; i++) {
        CHECK(!behind());
        add(i, 20000);
    }
    stop(false);
}

static void *let_go_soon(void *argument)
{
    hold(false);
    return argument;
}

TEST(a_replay_waits_for_its_disk)
{
    pthread_t thread;

    start_slow();
    uint64_t seq = add_until_behind();
    CHECK_EQ(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
    for (; seq <= 3000; seq++) {
        feed_catch_up(feed);
        add(seq, 20000);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(lost(), 0);
    CHECK_EQ(read_all(0).count, 3000);
    stop(false);
}
