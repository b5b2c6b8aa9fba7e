/* journal.c - tests of the journal's ordinary life: append, commit, reopen,
 * modes, slow disks, snapshots. */
#include "journal/journal.h"

#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "holdfast/clock.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

/* Every kind of disk, for tests that must hold on each. */
static enum hf_status (*const disks[])(struct journal_io **out) = {
    journal_io_uring,
    journal_io_thread,
    journal_io_plain,
};
static const char *const disk_names[] = {"uring", "thread", "plain"};
#define DISKS (int)(sizeof disks / sizeof disks[0])

/* A disk of that kind; false where the system has none. */
static bool open_disk(int kind, struct journal_io **io)
{
    enum hf_status status = disks[kind](io);

    if (status == HF_NOTFOUND)
        return false;
    CHECK_EQ(status, HF_OK);
    return true;
}

static void round_trip(int kind, enum journal_sync sync)
{
    struct journal_io *io;
    struct rig rig;
    char name[32];

    if (!open_disk(kind, &io))
        return;
    snprintf(name, sizeof name, "%s-%d", disk_names[kind], sync);
    rig_init(&rig, name, io);
    rig.opts.sync = sync;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig.state->count, 0);
    for (int life = 0; life < 3; life++) {
        CHECK_EQ(rig_write(&rig, 40), HF_OK);
        struct log_stats stats = rig_stats(&rig);
        CHECK_EQ(stats.batch_count, 40);
        uint64_t records = rig.state->count;
        rig_reopen(&rig);
        CHECK_EQ(rig_stats(&rig).replayed_count, records);
        CHECK_EQ(rig_stats(&rig).cut_bytes, 0);
    }
    CHECK(rig_files(&rig, "journal-", 0, NULL) > 5);
    rig_close(&rig);
    io->close(io);
}

TEST(what_was_committed_is_there_after_reopening_in_every_mode_on_every_disk)
{
    for (int kind = 0; kind < DISKS; kind++) {
        round_trip(kind, JOURNAL_ALWAYS);
        round_trip(kind, JOURNAL_INTERVAL);
        round_trip(kind, JOURNAL_NONE);
    }
}

TEST(the_default_disk_and_sizes_work)
{
    struct rig rig;
    struct stat info;

    rig_init(&rig, "j", NULL);
    rig.opts.segment_bytes = 0;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 10), HF_OK);
    CHECK_EQ(stat(rig_path(&rig, "journal-0000000000000001.seg"), &info), 0);
    CHECK_EQ(info.st_size, 64 << 20);
    rig_reopen(&rig);
    rig_close(&rig);
}

TEST(a_folder_without_direct_writes_works)
{
    char dir[] = "/dev/shm/holdfast-test-XXXXXX";
    struct rig rig;
    char name[64];

    if (mkdtemp(dir) == NULL)
        return; /* no such file system here */
    rig_init(&rig, "j", NULL);
    rig.opts.dir = dir;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    rig_reopen(&rig);
    rig_close(&rig);
    while (rig_files(&rig, "", 0, name) > 0 && name[0] != '.')
        unlink(rig_path(&rig, name));
    CHECK_EQ(rmdir(dir), 0);
}

TEST(sync_modes_may_change_from_one_life_to_the_next)
{
    struct rig rig;

    rig_init(&rig, "j", NULL);
    for (int life = 0; life < 6; life++) {
        rig.opts.sync = (enum journal_sync)(life % 3);
        CHECK_EQ(rig_open(&rig), HF_OK);
        rig_check(&rig);
        CHECK_EQ(rig_write(&rig, 9), HF_OK);
        rig_close(&rig);
    }
}

TEST(segments_of_another_size_are_read_and_spares_of_it_replaced)
{
    struct rig rig;

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    rig_close(&rig);
    rig.opts.segment_bytes = 4 * RIG_SEGMENT_BYTES;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    rig_reopen(&rig);
    rig_close(&rig);
}

TEST(nothing_appended_commits_nothing)
{
    struct hf_bytes record;
    struct rig rig;
    size_t at = 0;

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(log_commit(rig.journal), HF_OK);
    CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    CHECK_EQ(log_commit(rig.journal), HF_OK);
    /* or the batch before would be applied twice */
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_EMPTY);
    CHECK_EQ(rig_stats(&rig).batch_count, 1);
    rig_close(&rig);
}

TEST(records_come_back_from_commit_as_they_were_appended)
{
    struct hf_bytes record;
    struct test_disk disk;
    struct rig rig;
    size_t at = 0;
    char *space;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(log_append(rig.journal, hf_bytes_text("one")), HF_OK);
    CHECK_EQ(log_prepare(rig.journal, 100, &space), HF_OK);
    memcpy(space, "second", 6);
    log_finish(rig.journal, 6);
    CHECK_EQ(log_prepare(rig.journal, 100, &space), HF_OK); /* not used */
    CHECK_EQ(log_append(rig.journal, hf_bytes("\0x\0", 3)), HF_OK);
    CHECK_EQ(log_batch_bytes(rig.journal), 3 + 6 + 3 + 3 * 4);
    CHECK_EQ(log_commit(rig.journal), HF_OK);
    CHECK_EQ(log_batch_bytes(rig.journal), 0);
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_OK);
    CHECK_TEXT(record.data, record.len, "one");
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_OK);
    CHECK_TEXT(record.data, record.len, "second");
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_OK);
    CHECK(hf_bytes_equal(record, hf_bytes("\0x\0", 3)));
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_EMPTY);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(limits_of_records_and_batches_are_kept)
{
    struct rig rig;
    char *big = calloc(1, JOURNAL_RECORD_MAX + 1);
    int count = 0;

    CHECK(big != NULL);
    rig_init(&rig, "j", NULL);
    rig.opts.segment_bytes = 0;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(log_append(rig.journal, hf_bytes("", 0)), HF_INVALID);
    CHECK_EQ(log_append(rig.journal, hf_bytes(big, JOURNAL_RECORD_MAX + 1)),
             HF_INVALID);
    while (rig_append(&rig, 1, JOURNAL_RECORD_MAX) == HF_OK)
        count++;
    CHECK_EQ(count, JOURNAL_BATCH_MAX / (JOURNAL_RECORD_MAX + 4));
    CHECK_EQ(rig_append(&rig, 1, JOURNAL_RECORD_MAX), HF_FULL);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    CHECK_EQ(rig_append(&rig, 1, JOURNAL_RECORD_MAX), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    rig_reopen(&rig);
    rig_close(&rig);
    free(big);
}

TEST(a_batch_may_fill_a_segment_to_the_last_byte)
{
    struct rig rig;
    size_t most = RIG_SEGMENT_BYTES - 4096 - 40 - 4;

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_append(&rig, 1, most + 1), HF_INVALID);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig_append(&rig, 1, most), HF_OK);
        CHECK_EQ(rig_append(&rig, 1, 10), HF_FULL);
        CHECK_EQ(rig_commit(&rig), HF_OK);
    }
    rig_reopen(&rig);
    CHECK_EQ(rig_append(&rig, 1, most), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    rig_reopen(&rig);
    rig_close(&rig);
}

TEST(bad_segment_sizes_are_refused)
{
    struct rig rig;

    rig_init(&rig, "j", NULL);
    rig.opts.segment_bytes = 4096;
    CHECK_EQ(rig_open(&rig), HF_INVALID);
    rig.opts.segment_bytes = 10000;
    CHECK_EQ(rig_open(&rig), HF_INVALID);
    CHECK(strstr(rig.error, "multiple of 4096") != NULL);
}

TEST(a_folder_can_be_open_once)
{
    struct rig rig;
    struct rig second;
    struct log_stats stats;
    struct hf_buf text = {0};
    void *state;

    rig_init(&rig, "j", NULL);
    rig_init(&second, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_open(&second), HF_EXISTS);
    CHECK(strstr(second.error, "in use by another process") != NULL);
    CHECK_EQ(journal_read(rig.opts.dir, tally_machine(), &state, &stats,
                          second.error),
             HF_EXISTS);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, second.error),
             HF_EXISTS);
    rig_close(&rig);
    CHECK_EQ(rig_open(&second), HF_OK);
    rig_close(&second);
    hf_buf_destroy(&text);
}

TEST(files_that_are_not_ours_stay)
{
    struct rig rig;
    struct stat info;
    static const char *const names[] = {
        "notes.txt", "journal-1.seg", "journal-000000000000000G.seg",
        "snapshot-0000000000000001.snap.bak", "spare-2.seg"};

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    for (size_t i = 0; i < 5; i++)
        rig_write_file(rig_path(&rig, names[i]), "mine", 4);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    rig_reopen(&rig);
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(stat(rig_path(&rig, names[i]), &info), 0);
        CHECK_EQ(info.st_size, 4);
    }
    rig_close(&rig);
}

TEST(reading_offline_changes_nothing)
{
    struct rig rig;
    struct log_stats stats;
    void *state;
    char error[JOURNAL_ERROR_MAX];

    rig_init(&rig, "j", NULL);
    CHECK_EQ(journal_read(rig.opts.dir, tally_machine(), &state, &stats, error),
             HF_NOTFOUND);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 30), HF_OK);
    rig_close(&rig);
    int files = rig_files(&rig, "", 0, NULL);
    CHECK_EQ(journal_read(rig.opts.dir, tally_machine(), &state, &stats, error),
             HF_OK);
    CHECK_EQ(((struct tally *)state)->count, rig.acked.count);
    CHECK(((struct tally *)state)->hash == rig.acked.hash);
    CHECK_EQ(stats.replayed_count, rig.acked.count);
    CHECK_EQ(rig_files(&rig, "", 0, NULL), files);
    hf_free(state);
}

TEST(a_stalled_disk_gives_pending_and_then_wakes)
{
    for (int kind = 0; kind < DISKS; kind++) {
        struct journal_io *io;
        struct test_disk disk;
        struct rig rig;

        if (!open_disk(kind, &io))
            continue;
        test_disk_init(&disk, io);
        rig_init(&rig, disk_names[kind], &disk.io);
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK_EQ(rig_write(&rig, 3), HF_OK);
        CHECK_EQ(rig_append(&rig, 2, 50), HF_OK);
        test_disk_hold(&disk, TEST_DISK_BATCH);
        uint64_t pending = rig_stats(&rig).pending_count;
        CHECK_EQ(rig_start(&rig), HF_PENDING);
        CHECK_EQ(log_poll(rig.journal), HF_PENDING);
        struct pollfd wake = {.fd = log_wake_fd(rig.journal), .events = POLLIN};
        CHECK_EQ(poll(&wake, 1, 0), 0);
        /* the next batch grows meanwhile */
        CHECK_EQ(rig_append(&rig, 3, 60), HF_OK);
        CHECK_EQ(rig_stats(&rig).pending_count, pending + 1);
        log_tend(rig.journal, 1);
        test_disk_let_go(&disk);
        CHECK_EQ(rig_finish(&rig), HF_OK);
        CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
        while (poll(&wake, 1, 0) == 1) /* a late wake does not stay */
            CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
        CHECK_EQ(rig_commit(&rig), HF_OK);
        CHECK_EQ(rig_write(&rig, 3), HF_OK);
        rig_reopen(&rig);
        rig_close(&rig);
        test_disk_destroy(&disk);
    }
}

TEST(flush_waits_for_the_batch_and_poll_still_tells_of_it)
{
    struct rig rig;
    struct test_disk disk;
    struct journal_io *io;

    CHECK(open_disk(1, &io));
    test_disk_init(&disk, io);
    rig_init(&rig, "j", &disk.io);
    rig.opts.slow_ns = 1; /* hardly anything is that quick */
    CHECK_EQ(rig_open(&rig), HF_OK);
    enum hf_status status;
    do { /* a write that ends while we are not running is no use here */
        CHECK_EQ(rig_append(&rig, 2, 50), HF_OK);
        status = rig_start(&rig);
    } while (status == HF_OK);
    CHECK_EQ(status, HF_PENDING);
    CHECK_EQ(log_flush(rig.journal), HF_OK);
    CHECK_EQ(rig_finish(&rig), HF_OK);
    CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(close_waits_for_the_batch_on_its_way)
{
    struct rig rig;

    rig_init(&rig, "j", NULL);
    rig.opts.slow_ns = 1;
    for (int life = 0; life < 10; life++) {
        CHECK_EQ(rig_open(&rig), HF_OK);
        rig_check(&rig);
        CHECK_EQ(rig_append(&rig, 3, 5000), HF_OK);
        enum hf_status status = rig_start(&rig);
        CHECK(status == HF_OK || status == HF_PENDING);
        rig.acked = rig.tried; /* the disk is good: it must be there */
        rig_close(&rig);
    }
}

/* A commit that is still on its way after a while waits for the segment; one
 * that only met a slow disk ends. */
static enum hf_status settle(struct rig *rig, enum hf_status status)
{
    uint64_t until_ns = hf_clock_now_ns(hf_clock_system()) + 300000000u;

    while (status == HF_PENDING &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        status = rig_poll(rig);
    return status;
}

/* The keeper is stuck in an open call when the segment is full. */
TEST(a_late_segment_gives_pending_and_then_wakes)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct journal_io *io;
        struct test_disk disk;
        struct rig rig;

        CHECK(open_disk(1, &io));
        test_disk_init(&disk, io);
        rig_init(&rig, mode == 0 ? "a" : mode == 1 ? "b" : "c", &disk.io);
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        test_disk_hold(&disk, TEST_DISK_OPEN | TEST_DISK_CREATE);
        enum hf_status status = HF_OK;
        while (status == HF_OK) {
            CHECK_EQ(rig_append(&rig, 1, 5000), HF_OK);
            status = settle(&rig, rig_start(&rig));
        }
        CHECK_EQ(status, HF_PENDING);
        CHECK_EQ(rig_append(&rig, 1, 5000), HF_OK);
        CHECK_EQ(log_poll(rig.journal), HF_PENDING);
        test_disk_let_go(&disk);
        CHECK_EQ(rig_finish(&rig), HF_OK);
        CHECK_EQ(rig_commit(&rig), HF_OK);
        CHECK_EQ(rig_write(&rig, 20), HF_OK);
        rig_reopen(&rig);
        rig_close(&rig);
        test_disk_destroy(&disk);
    }
}

TEST(interval_mode_syncs_in_the_background)
{
    struct test_disk disk;
    struct journal_io *io;
    struct rig rig;

    CHECK(open_disk(2, &io));
    test_disk_init(&disk, io);
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 2), HF_OK);
    test_disk_hold(&disk, TEST_DISK_SYNC);
    log_tend(rig.journal, 5000000000u); /* returns at once */
    test_disk_await_held(&disk);
    CHECK_EQ(rig_write(&rig, 2), HF_OK); /* and so does commit */
    test_disk_let_go(&disk);
    CHECK_EQ(log_flush(rig.journal), HF_OK);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* The keeper has been told to sync a file that it seals and closes first. */
TEST(a_sync_that_waits_behind_a_switch_does_no_harm)
{
    struct test_disk disk;
    struct journal_io *io;
    struct rig rig;

    CHECK(open_disk(2, &io));
    test_disk_init(&disk, io);
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    while (rig_files(&rig, "spare-", 0, NULL) == 0)
        sched_yield();
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    test_disk_hold(&disk, TEST_DISK_SYNC);
    log_tend(rig.journal, 2000000000u);
    test_disk_await_held(&disk);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    log_tend(rig.journal, 4000000000u);
    enum hf_status status = HF_OK;
    while (status == HF_OK) {
        CHECK_EQ(rig_append(&rig, 1, 5000), HF_OK);
        status = rig_start(&rig);
    }
    CHECK_EQ(status, HF_PENDING);
    test_disk_let_go(&disk);
    CHECK_EQ(rig_finish(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    CHECK_EQ(log_flush(rig.journal), HF_OK);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Files of no use must go, not only be left out of the sum. The keeper is kept
 * from making a spare meanwhile. */
TEST(spares_of_another_size_are_removed_and_not_counted)
{
    static const char *const spares[] = {"spare-0.seg", "spare-1.seg"};
    struct test_disk disk;
    struct rig rig;
    char block[8192] = {0};

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    rig_close(&rig);
    for (int right = 0; right < 2; right++) {
        for (int i = 0; i < 2; i++) {
            (void)unlink(rig_path(&rig, spares[i]));
            CHECK_EQ(access(rig_path(&rig, spares[i]), F_OK), -1);
        }
        rig_write_file(rig_path(&rig, spares[1]), block, sizeof block);
        if (right) { /* and one that can be used */
            rig_write_file(rig_path(&rig, spares[0]), block, sizeof block);
            CHECK_EQ(truncate(rig_path(&rig, spares[0]), RIG_SEGMENT_BYTES), 0);
        }
        test_disk_hold(&disk, TEST_DISK_CREATE);
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK_EQ(access(rig_path(&rig, spares[1]), F_OK), -1);
        CHECK_EQ(access(rig_path(&rig, spares[0]), F_OK), right - 1);
        CHECK_EQ(rig_stats(&rig).disk_bytes,
                 (uint64_t)(1 + right) * RIG_SEGMENT_BYTES);
        test_disk_let_go(&disk);
        rig_close(&rig);
    }
    test_disk_destroy(&disk);
}

TEST(disk_bytes_are_what_the_files_have)
{
    struct rig rig;
    struct stat info;
    char name[64];
    uint64_t bytes = 0;

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_write(&rig, 30), HF_OK);
    rig_reopen(&rig); /* the keeper's last spare is in the list */
    uint64_t reported = rig_stats(&rig).disk_bytes;
    rig_close(&rig);
    for (int i = rig_files(&rig, "", 0, NULL); i > 0; i--) {
        rig_files(&rig, "", i - 1, name);
        CHECK_EQ(stat(rig_path(&rig, name), &info), 0);
        bytes += (uint64_t)info.st_size;
    }
    CHECK(reported <= bytes); /* one more spare may have come since */
    CHECK(reported + RIG_SEGMENT_BYTES >= bytes);
}

/* Buffers are kept: the same work again allocates nothing. */
TEST(the_steady_state_allocates_nothing)
{
    struct journal_io *io;
    struct rig rig;

    CHECK(open_disk(2, &io));
    rig_init(&rig, "j", io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    uint64_t before = hf_memory_count();
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    CHECK_EQ(hf_memory_count(), before);
    rig_close(&rig);
    io->close(io);
}
