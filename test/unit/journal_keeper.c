/* journal_keeper.c - tests of segments that are made beside the commits, or at
 * the start, and of what fails in that. */
#include <errno.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "journal/state.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

/* Batches of one block; seven fill a segment. */
static void write_blocks(struct rig *rig, int count)
{
    while (count-- > 0) {
        CHECK_EQ(rig_append(rig, 1, 40), HF_OK);
        CHECK_EQ(rig_commit(rig), HF_OK);
    }
}

/* The first rename makes the spare a segment, the second a new file a spare. */
TEST(a_spare_that_could_not_be_made_is_not_counted_on)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    test_disk_fail(&disk, TEST_DISK_RENAME, 1, EIO);
    write_blocks(&rig, 7 + 1);
    test_disk_await_failed(&disk);
    CHECK_EQ(rig_files(&rig, "spare-", 0, NULL), 0);
    write_blocks(&rig, 7); /* it is made when it is needed */
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 3);
    rig_await_spare(&rig);
    CHECK_EQ(rig_files(&rig, "segment.tmp", 0, NULL), 0);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* A disk that looks at the keeper whenever a file becomes a spare. */
static struct log *watched;
static hf_disk_rename_fn *rename_as_before;
static struct hf_atomic_u32 seen;
static struct hf_atomic_u32 unmarked;

static int rename_watched(void *io, int dir, const char *from, const char *to)
{
    struct keeper *keeper = &journal_of(watched)->keeper;

    if (strncmp(to, "spare-", 6) == 0) {
        hf_mutex_lock(&keeper->mutex);
        bool marked = keeper->spares[to[6] - '0'] == SPARE_BUSY;
        hf_mutex_unlock(&keeper->mutex);
        (void)hf_u32_add(&seen, 1, __ATOMIC_RELAXED);
        (void)hf_u32_add(&unmarked, !marked, __ATOMIC_RELAXED);
    }
    return rename_as_before(io, dir, from, to);
}

/* The keeper has no spare, and makes none since it could not make the last. Two
 * segments are behind the snapshot, and both places are free. */
TEST(nobody_else_makes_a_spare_where_a_segment_becomes_one)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    log_tend(rig.journal, UINT64_MAX / 2); /* not again before that */
    test_disk_fail(&disk, TEST_DISK_CREATE, 0, ENOSPC);
    write_blocks(&rig, 7 + 1);
    test_disk_await_failed(&disk);
    watched = rig.journal;
    seen.value = unmarked.value = 0;
    rename_as_before = disk.io.rename;
    disk.io.rename = rename_watched;
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_stats(&rig).snapshot_count, 1);
    CHECK_EQ(rig_files(&rig, "spare-", 0, NULL), 2);
    CHECK_EQ(hf_u32_load(&seen, __ATOMIC_RELAXED), 3);
    CHECK_EQ(hf_u32_load(&unmarked, __ATOMIC_RELAXED), 0);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* None can be made. */
TEST(a_spare_that_was_left_is_found_by_the_next_open)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    write_blocks(&rig, 1);
    rig_close(&rig);
    test_disk_hold(&disk, TEST_DISK_CREATE);
    CHECK_EQ(rig_open(&rig), HF_OK);
    struct keeper *keeper = &journal_of(rig.journal)->keeper;
    hf_mutex_lock(&keeper->mutex);
    bool ready = keeper->spares[0] == SPARE_READY;
    hf_mutex_unlock(&keeper->mutex);
    test_disk_let_go(&disk);
    CHECK(ready);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* The thread makes one in the first of two places; the other stays free, for
 * it may need one more. */
TEST(a_segment_becomes_no_spare_while_one_is_made)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    test_disk_hold(&disk, TEST_DISK_CREATE);
    write_blocks(&rig, 7 + 1);
    test_disk_await_held(&disk);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 2);
    keeper_recycle(&journal_of(rig.journal)->keeper, 1);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 1);
    CHECK_EQ(rig_files(&rig, "spare-", 0, NULL), 0);
    test_disk_let_go(&disk);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Nobody tends it: a commit must not build on what may be lost. */
TEST(a_background_sync_that_failed_is_told_by_the_next_commit)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_fail(&disk, TEST_DISK_SYNC, 0, EIO);
    log_tend(rig.journal, UINT64_MAX / 2);
    while (log_commit(rig.journal) == HF_OK) /* nothing was appended */
        sched_yield();
    CHECK(strstr(log_error(rig.journal), "sync of ") != NULL);
    CHECK_EQ(rig_append(&rig, 1, 10), HF_IO);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_background_sync_is_due_a_second_after_the_last)
{
    const uint64_t second_ns = 1000000000;
    uint64_t now_ns = UINT64_MAX / 2;
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    struct journal *journal = journal_of(rig.journal);
    write_blocks(&rig, 1);
    log_tend(rig.journal, now_ns);
    CHECK_EQ(journal->sync_at_ns, now_ns + second_ns);
    log_tend(rig.journal, now_ns + second_ns - 1);
    CHECK_EQ(journal->sync_at_ns, now_ns + second_ns);
    while (journal->synced < 1)
        log_tend(rig.journal, now_ns);
    /* all is synced, and is not synced again */
    hf_mutex_lock(&journal->keeper.mutex);
    journal->keeper.sync_number = 0;
    hf_mutex_unlock(&journal->keeper.mutex);
    log_tend(rig.journal, now_ns + second_ns);
    CHECK_EQ(journal->sync_at_ns, now_ns + 2 * second_ns);
    hf_mutex_lock(&journal->keeper.mutex);
    uint64_t asked_for = journal->keeper.sync_number;
    hf_mutex_unlock(&journal->keeper.mutex);
    CHECK_EQ(asked_for, 0);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Its owner applies it bit by bit, and tends the journal in between. */
TEST(a_batch_that_was_written_stays_when_the_background_fails)
{
    struct test_disk disk;
    struct rig rig;
    struct hf_bytes record;
    size_t at = 0;

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    CHECK_EQ(rig_append(&rig, 2, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_OK);
    test_disk_fail(&disk, TEST_DISK_SYNC, 0, EIO);
    while (log_error(rig.journal)[0] == '\0')
        log_tend(rig.journal, UINT64_MAX / 2);
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_OK);
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_EMPTY);
    at = 0;
    CHECK_EQ(log_commit(rig.journal), HF_IO);
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_EMPTY);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* ---- The first segment. ---- */

/* The system has no randomness to give. Only set while the journal is closed:
 * its threads ask too. */
static bool random_fails;

ssize_t getrandom(void *buffer, size_t len, unsigned flags)
{
    if (!random_fails)
        return syscall(SYS_getrandom, buffer, len, flags);
    errno = ENOSYS;
    return -1;
}

TEST(a_journal_without_a_segment_to_write_is_not_opened)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    test_disk_fail(&disk, TEST_DISK_RENAME, 2, EIO); /* manifest, spare, it */
    CHECK_EQ(rig_open(&rig), HF_IO);
    CHECK(strstr(rig.error, "cannot start ") != NULL);
    test_disk_fail(&disk, 0, UINT64_MAX, 0);
    CHECK_EQ(rig_open(&rig), HF_OK);
    write_blocks(&rig, 1);
    rig_await_spare(&rig);
    rig_close(&rig);
    test_disk_fail(&disk, TEST_DISK_OPEN, 2, EIO); /* sync, manifest, it */
    CHECK_EQ(rig_open(&rig), HF_IO);
    CHECK(strstr(rig.error, "cannot open ") != NULL);
    test_disk_fail(&disk, 0, UINT64_MAX, 0);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_segment_without_a_salt_is_not_begun)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    random_fails = true;
    enum hf_status status = rig_open(&rig);
    random_fails = false;
    CHECK_EQ(status, HF_IO);
    CHECK(strstr(rig.error, "cannot draw the salt of ") != NULL);
    CHECK(strstr(rig.error, "Function not implemented") != NULL);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 0);
    CHECK_EQ(rig_open(&rig), HF_OK);
    write_blocks(&rig, 1);
    rig_reopen(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}
