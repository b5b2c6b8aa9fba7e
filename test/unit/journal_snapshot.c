/* journal_snapshot.c - tests of snapshots: made beside the commits, and what
 * they stand for goes. */
#include <errno.h>

#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

TEST(a_snapshot_stands_for_what_was_before_it)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct rig rig;

        rig_init(&rig, mode == 0 ? "a" : mode == 1 ? "b" : "c", NULL);
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        for (int round = 1; round <= 3; round++) {
            CHECK_EQ(rig_write(&rig, 50), HF_OK);
            CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
            rig_await_snapshot(&rig);
            CHECK_EQ(rig_stats(&rig).snapshot_count, round);
            CHECK_EQ(rig_stats(&rig).snapshot_failures, 0);
            CHECK_EQ(rig_files(&rig, "snapshot-", 0, NULL), 1);
            CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 1);
            CHECK(rig_files(&rig, "spare-", 0, NULL) <= 2);
        }
        rig_reopen(&rig);
        CHECK_EQ(rig_stats(&rig).replayed_count, 0);
        CHECK_EQ(rig_write(&rig, 5), HF_OK);
        rig_reopen(&rig);
        rig_close(&rig);
    }
}

TEST(a_snapshot_of_nothing_new_is_no_work)
{
    struct rig rig;

    rig_init(&rig, "j", NULL);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_files(&rig, "snapshot-", 0, NULL), 0);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
        rig_await_snapshot(&rig);
        CHECK_EQ(rig_stats(&rig).snapshot_count, 1);
    }
    rig_close(&rig);
}

TEST(commits_go_on_while_a_snapshot_is_made)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 50), HF_OK);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK); /* lets the switch end */
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    test_disk_hold(&disk, TEST_DISK_READ);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    CHECK_EQ(journal_snapshot(rig.journal), HF_PENDING);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_await_held(&disk);
    CHECK(journal_snapshot_running(rig.journal));
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    CHECK(journal_snapshot_running(rig.journal));
    test_disk_let_go(&disk);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_stats(&rig).snapshot_count, 2);
    rig_reopen(&rig);
    CHECK(rig_stats(&rig).replayed_count > 60);
    rig_close(&rig);
    test_disk_release(&disk);
}

TEST(a_snapshot_is_made_by_itself_when_the_journal_has_grown)
{
    struct rig rig;
    uint64_t now_ns = 0;

    rig_init(&rig, "j", NULL);
    rig.opts.snapshot_bytes = 4 * RIG_SEGMENT_BYTES;
    CHECK_EQ(rig_open(&rig), HF_OK);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(rig_write(&rig, 1), HF_OK);
        journal_tend(rig.journal, now_ns += 500000000);
        rig_await_snapshot(&rig);
    }
    CHECK(rig_stats(&rig).snapshot_count > 3);
    CHECK(rig_stats(&rig).disk_bytes < 12 * RIG_SEGMENT_BYTES);
    rig_reopen(&rig);
    rig_close(&rig);
}

TEST(figures_of_recovery_and_of_writes_are_exact)
{
    struct test_disk disk;
    struct rig rig;
    uint64_t max_ns = 0;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(rig_write(&rig, 1), HF_OK);
        struct journal_stats stats = rig_stats(&rig);
        CHECK(stats.sync_last_ns > 0);
        CHECK_EQ(stats.sync_last_ns, journal_sync_ns(rig.journal));
        if (stats.sync_last_ns > max_ns)
            max_ns = stats.sync_last_ns;
        CHECK_EQ(stats.sync_max_ns, max_ns);
    }
    rig_reopen(&rig);
    CHECK_EQ(rig_stats(&rig).replayed_batches, 20);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    uint64_t before = rig.acked.count;
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    rig_reopen(&rig);
    CHECK_EQ(rig_stats(&rig).replayed_batches, 3);
    CHECK_EQ(rig_stats(&rig).replayed_count, rig.acked.count - before);
    rig_close(&rig);
    test_disk_release(&disk);
}

TEST(a_snapshot_that_fails_is_counted_and_tried_again)
{
    struct test_disk disk;
    struct rig rig;
    struct journal_stats stats;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 30), HF_OK);
    test_disk_fail(&disk, TEST_DISK_READ, 0, EIO);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    journal_stats(rig.journal, &stats);
    CHECK_EQ(stats.snapshot_failures, 1);
    CHECK_EQ(stats.snapshot_count, 0);
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    CHECK_EQ(journal_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    journal_stats(rig.journal, &stats);
    CHECK_EQ(stats.snapshot_count, 1);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_release(&disk);
}

TEST(what_a_crash_left_before_the_snapshot_is_removed_by_open)
{
    static const char old[] = "snapshot-0000000000000002.snap";
    struct test_disk disk;
    struct rig rig;
    char name[64];

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig_write_with_snapshot(&rig);
    rig_craft(&rig, 1, 5, 0, 0);
    rig_craft(&rig, 6, 6, 0, 0);
    rig_write_file(rig_path(&rig, old), "old", 3);
    rig_write_file(rig_path(&rig, "snapshot.tmp"), "half", 4);
    rig_write_file(rig_path(&rig, "segment.tmp"), "half", 4);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    CHECK_EQ(rig_files(&rig, "snapshot", 0, name), 1);
    CHECK(strcmp(name, old) != 0);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 1);
    CHECK_EQ(rig_files(&rig, "segment.tmp", 0, NULL), 0);
    test_disk_release(&disk);
}
