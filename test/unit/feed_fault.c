/* feed_fault.c - tests of the feed on a disk that fails, or was damaged. */
#include "base/memory.h"
#include "support/feeding.h"

TEST(a_write_that_fails_is_tried_again_and_loses_nothing)
{
    uint64_t bytes;

    start();
    for (uint64_t i = 1; i <= 20; i++)
        add(i, 100);
    write_all();
    fail(FAIL_WRITE);
    for (uint64_t i = 21; i <= 40; i++)
        add(i, 100);
    write_all();
    CHECK_EQ(read_all(0).count, 40);
    struct feed_stats stats;
    feed_stats(feed, &stats);
    CHECK(stats.failures > 0);
    char error[FEED_ERROR_MAX];
    feed_error(feed, error);
    CHECK(strstr(error, "No space left") != NULL);
    fail(FAIL_OPEN);
    write_all();
    fail(0);
    for (uint64_t i = 41; i <= 60; i++)
        add(i, 100);
    now_ns += 100 * HF_NS_PER_S;
    hf_mutex_lock(&feed->mutex);
    feed->failing = false; /* so that it can be waited for */
    hf_mutex_unlock(&feed->mutex);
    write_all();
    stop(true);
    open_feed(60);
    CHECK(count_files(&bytes) == 2);
    struct found found = read_all(0);
    CHECK_EQ(found.count, 60);
    CHECK_EQ(found.gaps, 0);
    stop(false);
}

TEST(what_memory_has_no_room_for_is_a_gap)
{
    start();
    fail(FAIL_WRITE | FAIL_OPEN);
    for (uint64_t i = 1; i <= 1000; i++) /* 20 MB: there is room for 16 */
        add(i, 20000);
    struct feed_stats stats;
    feed_stats(feed, &stats);
    CHECK(stats.lost > 100 && stats.lost < 300);
    fail(0);
    uint64_t lost = stats.lost;
    struct found found = read_all(0);
    CHECK_EQ(found.count, 1000 - lost);
    CHECK_EQ(found.last, 1000 - lost);
    hf_mutex_lock(&feed->mutex);
    feed->failing = feed->losing = false;
    hf_mutex_unlock(&feed->mutex);
    work_post(feed);
    uint64_t settled = 1000 - lost;
    hf_mutex_lock(&feed->mutex);
    feed->wanted = settled;
    hf_mutex_unlock(&feed->mutex);
    work_post(feed);
    CHECK_EQ(feed_settle(feed, settled), HF_OK);
    add(1001, 0);
    found = read_all(0);
    CHECK_EQ(found.gap, 1000);
    CHECK_EQ(found.last, 1001);
    CHECK_EQ(found.count, 1001 - lost);
    stop(true);
    open_feed(1001);
    found = read_all(0);
    CHECK_EQ(found.gap, 1000);
    CHECK_EQ(found.count, 1001 - lost);
    stop(false);
}

TEST(settling_syncs_and_a_failed_sync_ends_it)
{
    start();
    add(1, 0);
    uint32_t before = hf_u32_load(&syncs, __ATOMIC_SEQ_CST);
    write_all();
    CHECK(hf_u32_load(&syncs, __ATOMIC_SEQ_CST) > before);
    CHECK_EQ(feed_settle(feed, 1), HF_OK); /* at once */
    take(NULL, 5);                         /* nothing to write but that */
    write_all();
    CHECK_EQ(feed->synced, 5);
    fail(FAIL_SYNC);
    add(6, 0);
    write_all(); /* ends */
    CHECK_EQ(feed->synced, 5);
    fail(0);
    hf_mutex_lock(&feed->mutex);
    feed->failing = false;
    feed->closing = true;
    hf_mutex_unlock(&feed->mutex);
    CHECK_EQ(feed_settle(feed, 6), HF_CANCELLED);
    feed_close(feed);
}

/* Byte `at` of the only file is another, or it ends there. */
static void damage(uint64_t start_seq, long at, bool cut)
{
    char path[512];
    char byte;

    snprintf(path, sizeof path, "%s/events-%016llx.feed", test_folder(),
             (unsigned long long)start_seq);
    if (cut) {
        CHECK_EQ(truncate(path, at), 0);
        return;
    }
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Blocks of 5, one by one. */
static long fill_blocks(void)
{
    for (uint64_t i = 1; i <= 20; i++) {
        add(i, 10);
        if (i % 5 == 0)
            write_all();
    }
    return (long)feed->files[0].bytes;
}

TEST(a_torn_tail_is_cut_at_every_byte)
{
    start();
    long bytes = fill_blocks();
    stop(true);
    for (long at = bytes - 1; at >= 0; at -= 7) {
        damage(0, at, true);
        open_feed(20);
        struct found found = read_all(0);
        CHECK_EQ(found.count % 5, 0);
        CHECK(found.count < 20);
        CHECK_EQ(found.gaps, found.count == 20 ? 0 : found.gaps);
        stop(false);
    }
}

TEST(a_damaged_block_is_a_gap_never_a_wrong_event)
{
    start();
    long bytes = fill_blocks();
    stop(true);
    for (long at = 0; at < bytes; at += 11) {
        damage(0, at, false);
        open_feed(20);
        add(21, 0);
        struct found found = read_all(0);
        CHECK_EQ(found.last, 21);
        CHECK(found.count < 21);
        CHECK_EQ(found.gaps, 1);
        CHECK_EQ(found.gap, 20);
        stop(false);
        damage(0, at, false);
    }
    open_feed(20);
    CHECK_EQ(read_all(0).count, 20);
    stop(false);
}

TEST(damage_that_comes_while_it_is_open_is_a_gap)
{
    start();
    for (uint64_t i = 1; i <= 400; i++) {
        add(i, 30000);
        if (i % 10 == 0)
            write_all();
    }
    CHECK(feed->file_count >= 2);
    damage(0, 100000, false);
    struct found found = read_all(0);
    CHECK_EQ(found.gaps, 1);
    CHECK_EQ(found.gap, feed->files[1].start);
    CHECK_EQ(found.last, 400);
    stop(false);
}

TEST(nothing_is_written_without_a_folder_and_no_memory_is_told)
{
    char error[FEED_ERROR_MAX];
    const struct feed_opts opts = {
        .dir = "/nonexistent/folder", .keep_bytes = 1000, .wake = wake};

    for (int limit = 0;; limit++) {
        hf_memory_fail_after((uint64_t)limit);
        enum hf_status status = feed_open(&feed, &opts, error);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(limit < 100);
        if (status == HF_OK)
            break;
        CHECK(feed == NULL);
    }
    feed_stop(feed, false);
    feed_close(feed);
}
