/* journal_snapshot.c - tests of snapshots: made beside the commits, and what
 * they stand for goes. */
#include <errno.h>

#include "base/memory.h"
#include "journal/format.h"
#include "journal/snapshot.h"
#include "journal/state.h"
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
            CHECK_EQ(log_snapshot(rig.journal), HF_OK);
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
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_files(&rig, "snapshot-", 0, NULL), 0);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
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
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK); /* lets the switch end */
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    test_disk_hold(&disk, TEST_DISK_READ);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_PENDING);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_await_held(&disk);
    CHECK(log_snapshot_running(rig.journal));
    CHECK_EQ(rig_write(&rig, 60), HF_OK);
    CHECK(log_snapshot_running(rig.journal));
    test_disk_let_go(&disk);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_stats(&rig).snapshot_count, 2);
    rig_reopen(&rig);
    CHECK(rig_stats(&rig).replayed_count > 60);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* ---- A stop in the middle of a snapshot. ---- */

enum stage { NOWHERE, BEFORE_IT, SAVING };

/* A tally whose snapshot waits at `stage` until it is not wanted any more. */
static struct {
    struct log *journal;
    enum stage stage;
    struct hf_atomic_u32 there; /* 1: it waits */
    int used;                   /* records and pieces since then */
} slow;

static void linger(enum stage stage)
{
    if (stage != slow.stage)
        return;
    hf_u32_store(&slow.there, 1, __ATOMIC_RELEASE);
    while (hf_u32_load(&journal_of(slow.journal)->maker.unwanted,
                       __ATOMIC_RELAXED) == 0)
        ;
    slow.used = 0;
}

static void *create_slow(void *context)
{
    linger(BEFORE_IT);
    return tally_machine()->create(context);
}

static enum hf_status apply_slow(void *machine, struct hf_bytes record)
{
    slow.used++;
    return tally_machine()->apply(machine, record);
}

static enum hf_status save_slow(void *machine, journal_sink *sink,
                                void *context)
{
    linger(SAVING);
    return tally_machine()->save(machine, sink, context);
}

static enum hf_status load_slow(void *machine, struct hf_bytes data)
{
    slow.used++;
    return tally_machine()->load(machine, data);
}

static void stop_during_a_snapshot(const char *folder, bool second,
                                   enum stage stage)
{
    struct journal_machine machine = *tally_machine();
    struct rig rig;

    machine.create = create_slow;
    machine.apply = apply_slow;
    machine.save = save_slow;
    machine.load = load_slow;
    rig_init(&rig, folder, NULL);
    rig.opts.machine = &machine;
    CHECK_EQ(rig_open(&rig), HF_OK);
    slow.journal = rig.journal;
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    if (second) {
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        CHECK_EQ(rig_write(&rig, 1), HF_OK); /* lets the switch end */
        rig_await_snapshot(&rig);
    }
    slow.stage = stage;
    slow.there.value = 0;
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    while (hf_u32_load(&slow.there, __ATOMIC_ACQUIRE) == 0)
        ;
    CHECK_EQ(log_stop(rig.journal), HF_OK);
    slow.stage = NOWHERE;
    CHECK_EQ(slow.used, 0);
    CHECK_EQ(rig_stats(&rig).snapshot_count, second);
    CHECK_EQ(rig_files(&rig, "snapshot", 0, NULL), second);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK(!rig_stats(&rig).unclean);
    rig_check(&rig);
    rig_close(&rig);
}

TEST(a_clean_end_gives_up_the_snapshot_under_way)
{
    stop_during_a_snapshot("a", false, BEFORE_IT);
    stop_during_a_snapshot("b", true, BEFORE_IT);
    stop_during_a_snapshot("c", true, SAVING);
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
        log_tend(rig.journal, now_ns += 500000000);
        rig_await_snapshot(&rig);
    }
    CHECK(rig_stats(&rig).snapshot_count > 3);
    CHECK(rig_stats(&rig).disk_bytes < 12 * RIG_SEGMENT_BYTES);
    rig_reopen(&rig);
    rig_close(&rig);
}

/* What an earlier life has written counts: here three blocks. */
TEST(a_snapshot_is_due_after_exactly_so_many_bytes_over_a_restart)
{
    struct test_disk disk;
    struct rig rig;

    struct journal_io *io = test_disk_quick(&disk);
    for (int due = 0; due < 2; due++) {
        rig_init(&rig, due ? "due" : "not", io);
        CHECK_EQ(rig_open(&rig), HF_OK);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
            CHECK_EQ(rig_commit(&rig), HF_OK);
        }
        CHECK_EQ(rig_stats(&rig).byte_count, 3 * 4096);
        rig_close(&rig);
        rig.opts.snapshot_bytes = 3 * 4096 + !due;
        CHECK_EQ(rig_open(&rig), HF_OK);
        log_tend(rig.journal, UINT64_MAX / 2);
        CHECK_EQ(log_snapshot_running(rig.journal), due);
        rig_await_snapshot(&rig);
        rig_close(&rig);
    }
    test_disk_destroy(&disk);
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
        struct log_stats stats = rig_stats(&rig);
        CHECK(stats.sync_last_ns > 0);
        CHECK_EQ(stats.sync_last_ns, log_sync_ns(rig.journal));
        if (stats.sync_last_ns > max_ns)
            max_ns = stats.sync_last_ns;
        CHECK_EQ(stats.sync_max_ns, max_ns);
    }
    rig_reopen(&rig);
    CHECK_EQ(rig_stats(&rig).replayed_batches, 20);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK(rig_stats(&rig).snapshot_last_ns > 0);
    uint64_t before = rig.acked.count;
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    rig_reopen(&rig);
    CHECK_EQ(rig_stats(&rig).replayed_batches, 3);
    CHECK_EQ(rig_stats(&rig).replayed_count, rig.acked.count - before);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

static void commit_records(struct rig *rig, int count, size_t len)
{
    static char data[6000];

    while (count-- > 0)
        CHECK_EQ(log_append(rig->journal, hf_bytes(data, len)), HF_OK);
    enum hf_status status = log_commit(rig->journal);
    if (status == HF_PENDING) {
        CHECK_EQ(log_flush(rig->journal), HF_OK);
        status = log_poll(rig->journal);
    }
    CHECK_EQ(status, HF_OK);
}

TEST(batches_records_and_bytes_are_counted_in_every_mode)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct rig rig;
        rig_init(&rig, mode == 0 ? "a" : mode == 1 ? "b" : "c", NULL);
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK_EQ(rig_stats(&rig).byte_count, 0);
        commit_records(&rig, 1, 1);
        CHECK_EQ(rig_stats(&rig).byte_count, 4096);
        commit_records(&rig, 3, 6000);
        CHECK_EQ(rig_stats(&rig).batch_count, 2);
        CHECK_EQ(rig_stats(&rig).record_count, 4);
        CHECK_EQ(rig_stats(&rig).byte_count, 4096 + 5 * 4096);
        rig_close(&rig);
    }
}

TEST(a_snapshot_that_fails_is_counted_and_tried_again)
{
    struct test_disk disk;
    struct rig rig;
    struct log_stats stats;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 30), HF_OK);
    test_disk_fail(&disk, TEST_DISK_READ, 0, EIO);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    log_stats(rig.journal, &stats);
    CHECK_EQ(stats.snapshot_failures, 1);
    CHECK_EQ(stats.snapshot_count, 0);
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    log_stats(rig.journal, &stats);
    CHECK_EQ(stats.snapshot_count, 1);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* A tally that cannot be made, saved or loaded, if the test says so. */
static bool no_state;
static enum hf_status save_end;
static enum hf_status load_end;

static void *create_or_not(void *context)
{
    return no_state ? NULL : tally_machine()->create(context);
}

static enum hf_status save_or_not(void *machine, journal_sink *sink,
                                  void *context)
{
    return save_end != HF_OK ? save_end
                             : tally_machine()->save(machine, sink, context);
}

static enum hf_status load_or_not(void *machine, struct hf_bytes data)
{
    return load_end != HF_OK ? load_end : tally_machine()->load(machine, data);
}

static struct journal_machine failing_machine(void)
{
    struct journal_machine machine = *tally_machine();

    no_state = false;
    save_end = load_end = HF_OK;
    machine.create = create_or_not;
    machine.save = save_or_not;
    machine.load = load_or_not;
    return machine;
}

/* The text is `before`, the folder, `after`. */
static void check_text(const char *text, const char *before, const char *folder,
                       const char *after)
{
    char expected[JOURNAL_ERROR_MAX];

    snprintf(expected, sizeof expected, "%s%s%s", before, folder, after);
    CHECK_TEXT(text, strlen(text), expected);
}

TEST(the_text_of_a_file_that_fails_says_what_where_and_why)
{
    static const unsigned kinds[] = {TEST_DISK_CREATE, TEST_DISK_WRITES,
                                     TEST_DISK_SYNC, TEST_DISK_RENAME};
    static const char name[] = "/snapshot-0000000000000007.snap";
    struct journal_machine machine = failing_machine();
    struct tally tally = {.count = 1};
    struct tally back = {0};
    char error[JOURNAL_ERROR_MAX];
    char after[128];
    struct test_disk disk;
    struct folder folder;
    struct rig rig;
    uint64_t bytes;

    rig_init(&rig, "j", test_disk_quick(&disk));
    const char *dir = rig.opts.dir;
    CHECK_EQ(folder_open(&folder, dir, FOLDER_MAKE, &disk.io, error), HF_OK);
    snprintf(after, sizeof after, "%s: No space left on device", name);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t at = 0; at < (kinds[i] == TEST_DISK_SYNC ? 2 : 1); at++) {
            test_disk_fail(&disk, kinds[i], at, ENOSPC);
            CHECK_EQ(snapshot_save(&folder, &machine, &tally, 7, &bytes, error),
                     HF_IO);
            check_text(error, "cannot make ", dir, after);
            CHECK_EQ(rig_files(&rig, "snapshot.", 0, NULL), 0);
        }
    }
    test_disk_fail(&disk, 0, 0, 0);
    save_end = HF_FULL;
    CHECK_EQ(snapshot_save(&folder, &machine, &tally, 7, &bytes, error),
             HF_FULL);
    snprintf(after, sizeof after, "%s: limit reached", name);
    check_text(error, "cannot make ", dir, after);
    save_end = HF_OK;
    CHECK_EQ(snapshot_save(&folder, &machine, &tally, 7, &bytes, error), HF_OK);
    snprintf(after, sizeof after, "%s: Input/output error", name);
    test_disk_fail(&disk, TEST_DISK_LOOK, 0, EIO);
    CHECK_EQ(snapshot_load(&folder, &machine, &back, 7, &bytes, error), HF_IO);
    check_text(error, "cannot open ", dir, after);
    test_disk_fail(&disk, TEST_DISK_READ, 0, EIO);
    CHECK_EQ(snapshot_load(&folder, &machine, &back, 7, &bytes, error), HF_IO);
    check_text(error, "cannot read ", dir, after);
    load_end = HF_FULL;
    CHECK_EQ(snapshot_load(&folder, &machine, &back, 7, &bytes, error),
             HF_FULL);
    snprintf(after, sizeof after, "%s: piece 0 cannot be loaded: limit reached",
             name);
    check_text(error, "", dir, after);
    folder_close(&folder);
    test_disk_destroy(&disk);
}

/* Of one that is made in the background, where `after` follows the folder. */
static void expect_failure(struct rig *rig, const char *before,
                           const char *folder, const char *after)
{
    char why[JOURNAL_ERROR_MAX];
    uint64_t failures = rig_stats(rig).snapshot_failures;

    CHECK_EQ(log_snapshot(rig->journal), HF_OK);
    rig_await_snapshot(rig);
    CHECK_EQ(rig_stats(rig).snapshot_failures, failures + 1);
    log_snapshot_error(rig->journal, why);
    check_text(why, before, folder, after);
    CHECK_EQ(rig_write(rig, 1), HF_OK);
}

TEST(the_text_of_a_failed_snapshot_says_what_where_and_why)
{
    static const char first[] = "journal-0000000000000001.seg";
    struct journal_machine machine = failing_machine();
    struct test_disk disk;
    struct rig rig;
    char why[JOURNAL_ERROR_MAX];

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig.opts.machine = &machine;
    rig.opts.sync = JOURNAL_NONE; /* nothing says what was on disk */
    CHECK_EQ(rig_open(&rig), HF_OK);
    const char *dir = rig.opts.dir;
    log_snapshot_error(rig.journal, why);
    CHECK_EQ(why[0], '\0');
    CHECK_EQ(rig_write(&rig, 2), HF_OK);
    struct hf_buf file = rig_read_file(rig_path(&rig, first));
    file.data[2 * JOURNAL_BLOCK] ^= 1; /* batch 2 */
    rig_write_file(rig_path(&rig, first), file.data, file.len);
    expect_failure(&rig, "batch 2 cannot be read any more", "", "");
    file.data[2 * JOURNAL_BLOCK] ^= 1;
    rig_write_file(rig_path(&rig, first), file.data, file.len);
    hf_buf_destroy(&file);
    no_state = true;
    expect_failure(&rig, "no memory for a second state", "", "");
    no_state = false;
    test_disk_fail(&disk, TEST_DISK_READ, 0, EIO);
    expect_failure(&rig, "cannot read ", dir,
                   "/journal-0000000000000001.seg: Input/output error");
    save_end = HF_FULL;
    expect_failure(&rig, "cannot make ", dir,
                   "/snapshot-0000000000000005.snap: limit reached");
    save_end = HF_OK;
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_stats(&rig).snapshot_count, 1);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* The pool has no memory for one more task. */
TEST(a_snapshot_that_cannot_begin_is_counted_as_failed)
{
    struct test_disk disk;
    struct rig rig;
    char why[JOURNAL_ERROR_MAX];

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(rig_write(&rig, 1), HF_OK);
        hf_memory_fail_after(0);
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        rig_await_snapshot(&rig);
        hf_memory_fail_never();
        CHECK_EQ(rig_stats(&rig).snapshot_failures, i);
        CHECK_EQ(rig_stats(&rig).snapshot_count, 1);
        log_snapshot_error(rig.journal, why);
        CHECK(strstr(why, "the pool takes no task") != NULL);
    }
    rig_close(&rig);
    test_disk_destroy(&disk);
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
    test_disk_destroy(&disk);
}
