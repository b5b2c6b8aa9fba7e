/* journal_fault.c - tests of the journal on disks that fail and without
 * memory: nothing acknowledged is lost, nothing leaks, the text says why. */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

/* With one processor the threads of a pool sleep when they have nothing to do.
 * With more they look around for a while and yield, and on a busy machine every
 * hand-over then takes a round of all that want to run: a hundred times as
 * long. Before anybody counts processors. */
__attribute__((constructor)) static void use_one_processor(void)
{
    cpu_set_t set;
    size_t cpu = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    int skip = getpid() % CPU_COUNT(&set);
    while (!CPU_ISSET(cpu, &set) || skip-- > 0)
        cpu++;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void open_disk(struct test_disk *disk, bool thread)
{
    struct journal_io *under;

    test_folder_in_memory();
    CHECK_EQ(thread ? journal_io_thread(&under) : journal_io_plain(&under),
             HF_OK);
    test_disk_init(disk, under);
    disk->quick = true;
}

static void empty_folder(struct rig *rig)
{
    char name[64];

    if (access(rig->opts.dir, F_OK) != 0)
        return;
    for (int i = rig_files(rig, "", 0, NULL); i > 0; i--) {
        rig_files(rig, "", i - 1, name);
        (void)remove(rig_path(rig, name));
    }
}

/* Batches of one block; seven fill a segment. */
static enum hf_status write_blocks(struct rig *rig, int count)
{
    enum hf_status status = HF_OK;

    for (int i = 0; i < count && status == HF_OK; i++) {
        status = rig_append(rig, 1, 40);
        if (status == HF_OK)
            status = rig_commit(rig);
    }
    return status;
}

/* A batch of five blocks: of two, one starts a new segment. */
static enum hf_status write_large(struct rig *rig)
{
    enum hf_status status = rig_append(rig, 3, 6000);

    return status == HF_OK ? rig_commit(rig) : status;
}

/* Goes once through all that there is, to the end or to the first refusal: a
 * segment that is full, two snapshots, one with commits beside it. True if
 * nothing was refused. It is as short as that allows: each call that it makes
 * is made to fail in some test, and whatever waits for another thread waits
 * long on a busy machine. */
static bool live(struct rig *rig)
{
    if (write_blocks(rig, 2) != HF_OK || log_snapshot(rig->journal) != HF_OK ||
        write_blocks(rig, 1) != HF_OK)
        return false;
    rig_await_snapshot(rig);
    if (write_large(rig) != HF_OK || write_large(rig) != HF_OK ||
        log_snapshot(rig->journal) != HF_OK)
        return false;
    rig_await_snapshot(rig);
    return write_blocks(rig, 1) == HF_OK;
}

/* A failed journal refuses everything and says why; an open one does not. */
static void check_refusal(struct rig *rig)
{
    if (log_error(rig->journal)[0] == '\0')
        return;
    CHECK_EQ(rig_append(rig, 1, 10), HF_IO);
    CHECK_EQ(log_commit(rig->journal), HF_IO);
    CHECK_EQ(log_flush(rig->journal), HF_IO);
    CHECK_EQ(log_snapshot(rig->journal), HF_IO);
    CHECK(strstr(log_error(rig->journal), "restart after") != NULL);
    CHECK(strstr(log_error(rig->journal), rig->opts.dir) != NULL);
}

struct fault {
    unsigned kinds;
    int error;
    bool torn;
    bool dead;
    enum journal_sync sync;
};

/* One life on a disk that fails, and a look at what is left, which stays open:
 * what may be lost is never called clean. True if the disk did fail. */
static bool live_and_fail(struct rig *rig, struct test_disk *disk)
{
    bool lived = false;
    bool stopped = false;

    if (rig_open(rig) == HF_OK) {
        lived = live(rig);
        stopped = log_stop(rig->journal) == HF_OK;
        check_refusal(rig);
        rig_close(rig);
    } else {
        CHECK(rig->error[0] != '\0');
    }
    CHECK(lived || !stopped);
    bool failed = test_disk_failed(disk);
    disk->dead = false;
    uint64_t acked = rig->acked.count;
    test_disk_fail(disk, 0, UINT64_MAX, 0);
    CHECK_EQ(rig_open(rig), HF_OK);
    rig_check(rig);
    bool unclean = rig_stats(rig).unclean;
    CHECK(unclean || lived || acked == 0);
    CHECK(!unclean || !stopped);
    return failed;
}

/* What is there after a clean stop, read without opening it. */
static void check_stopped(struct rig *rig)
{
    struct log_stats stats;
    void *state = NULL;

    CHECK_EQ(journal_read(rig->opts.dir, tally_machine(), &state, &stats,
                          rig->error),
             HF_OK);
    CHECK_EQ(((struct tally *)state)->count, rig->acked.count);
    CHECK(((struct tally *)state)->hash == rig->acked.hash);
    CHECK(!stats.unclean);
    hf_free(state);
}

/* Lets every single call fail in turn. */
static void fail_each(const struct fault *fault)
{
    bool done = false;

    for (uint64_t at = 0; !done; at++) {
        struct test_disk disk;
        struct rig rig;
        int descriptors = rig_descriptors();

        open_disk(&disk, at % 8 == 0);
        rig_init(&rig, "j", &disk.io);
        rig.opts.sync = fault->sync;
        empty_folder(&rig);
        disk.torn = fault->torn;
        disk.dead = fault->dead;
        test_disk_fail(&disk, fault->kinds, at, fault->error);
        done = !live_and_fail(&rig, &disk);
        CHECK_EQ(write_blocks(&rig, 2), HF_OK);
        rig_stop(&rig);
        check_stopped(&rig);
        test_disk_destroy(&disk);
        CHECK_EQ(rig_descriptors(), descriptors);
    }
}

TEST(any_write_that_fails_loses_nothing_acknowledged)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct fault fault = {.kinds = TEST_DISK_WRITES,
                              .error = EIO,
                              .sync = (enum journal_sync)mode};
        fail_each(&fault);
        fault.error = ENOSPC;
        fault.torn = true;
        fail_each(&fault);
    }
}

TEST(any_other_call_that_fails_loses_nothing_acknowledged)
{
    static const unsigned kinds[] = {TEST_DISK_OPEN,   TEST_DISK_SYNC,
                                     TEST_DISK_RENAME, TEST_DISK_REMOVE,
                                     TEST_DISK_READ,   TEST_DISK_CREATE};

    for (int i = 0; i < 6; i++) {
        struct fault fault = {.kinds = kinds[i],
                              .error = i == 0 ? EMFILE : EIO,
                              .sync = JOURNAL_ALWAYS};
        fail_each(&fault);
        fault.sync = JOURNAL_INTERVAL;
        fail_each(&fault);
    }
}

/* The process dies between any two calls, or in the middle of a write: while
 * it appends, switches, saves a snapshot, removes what is before it. */
TEST(a_crash_at_any_moment_loses_nothing_acknowledged)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct fault fault = {.kinds = TEST_DISK_CHANGES,
                              .error = EIO,
                              .torn = true,
                              .dead = true,
                              .sync = (enum journal_sync)mode};
        fail_each(&fault);
    }
}

TEST(the_text_of_a_failed_write_says_what_where_and_what_to_do)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(log_error(rig.journal)[0], '\0');
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
        CHECK_EQ(rig_commit(&rig), HF_OK);
    }
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, ENOSPC);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_IO);
    const char *text = log_error(rig.journal);
    CHECK(strstr(text, "write of batch 3 to ") != NULL);
    CHECK(strstr(text, "/journal-0000000000000001.seg at offset 12288 "
                       "failed: No space left on device; restart after "
                       "making room") != NULL);
    struct hf_bytes record;
    size_t at = 0;
    CHECK_EQ(log_committed(rig.journal, &at, &record), HF_EMPTY);
    CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
    check_refusal(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_failure_after_pending_is_told_by_poll)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, true);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    CHECK_EQ(rig_start(&rig), HF_PENDING);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    test_disk_let_go(&disk);
    CHECK_EQ(rig_finish(&rig), HF_IO);
    CHECK_EQ(log_poll(rig.journal), HF_EMPTY);
    check_refusal(&rig);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(no_room_for_the_next_segment_harms_only_when_it_is_needed)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    disk.repeat = true;
    test_disk_fail(&disk, TEST_DISK_CREATE, 0, ENOSPC);
    CHECK_EQ(write_blocks(&rig, 7 + 3), HF_OK); /* takes the spare */
    test_disk_await_failed(&disk);
    CHECK_EQ(write_blocks(&rig, 3), HF_OK);

    test_disk_fail(&disk, TEST_DISK_CREATE, UINT64_MAX, 0); /* room again */
    rig_await_spare(&rig);
    CHECK_EQ(write_blocks(&rig, 3), HF_OK);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 3);

    rig_await_spare(&rig); /* and now for good */
    test_disk_fail(&disk, TEST_DISK_CREATE, 0, ENOSPC);
    CHECK_EQ(write_blocks(&rig, 5 + 7), HF_OK);
    CHECK_EQ(write_blocks(&rig, 1), HF_IO);
    const char *text = log_error(rig.journal);
    CHECK(strstr(text, "no segment for batch 29: ") != NULL);
    CHECK(strstr(text, "No space left on device") != NULL);
    check_refusal(&rig);
    rig_close(&rig);
    test_disk_fail(&disk, 0, UINT64_MAX, 0);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_background_sync_that_fails_makes_the_journal_fail)
{
    struct test_disk disk;
    struct rig rig;
    uint64_t now_ns = UINT64_MAX / 2; /* later than any call before */

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig); /* its sync is not the one to fail */
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_hold(&disk, TEST_DISK_SYNC);
    log_tend(rig.journal, now_ns);
    test_disk_await_held(&disk);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_fail(&disk, TEST_DISK_SYNC, 0, EIO);
    test_disk_let_go(&disk);
    while (log_error(rig.journal)[0] == '\0')
        log_tend(rig.journal, now_ns);
    CHECK(strstr(log_error(rig.journal), "sync of ") != NULL);
    check_refusal(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* The sync fails while the switch behind it in the same thread is still to
 * come: nobody asks for the new segment any more. */
TEST(a_segment_that_comes_after_the_failure_is_closed)
{
    struct test_disk disk;
    struct rig rig;
    enum hf_status status = HF_OK;

    open_disk(&disk, false);
    int descriptors = rig_descriptors();
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_INTERVAL;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    CHECK_EQ(write_blocks(&rig, 1), HF_OK);
    test_disk_hold(&disk, TEST_DISK_SYNC);
    log_tend(rig.journal, UINT64_MAX / 2);
    test_disk_await_held(&disk);
    while (status == HF_OK) {
        CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
        status = rig_start(&rig);
    }
    CHECK_EQ(status, HF_PENDING);
    test_disk_fail(&disk, TEST_DISK_SYNC, 0, EIO);
    test_disk_let_go(&disk);
    while (rig_files(&rig, "journal-", 0, NULL) < 2)
        sched_yield();
    log_tend(rig.journal, UINT64_MAX / 2);
    CHECK(strstr(log_error(rig.journal), "sync of ") != NULL);
    rig_close(&rig);
    CHECK_EQ(rig_descriptors(), descriptors);
    test_disk_destroy(&disk);
}

TEST(a_journal_that_has_failed_begins_nothing_new)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    rig.opts.snapshot_bytes = 1;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(write_blocks(&rig, 2), HF_OK);
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO);
    CHECK_EQ(write_blocks(&rig, 1), HF_IO);
    log_tend(rig.journal, UINT64_MAX / 2); /* a snapshot is due */
    CHECK(!log_snapshot_running(rig.journal));
    CHECK_EQ(rig_stats(&rig).snapshot_starts, 0);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_OK);
    log_tend(rig.journal, UINT64_MAX / 2);
    CHECK(log_snapshot_running(rig.journal));
    rig_await_snapshot(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* In this mode only the end of a segment makes anything durable. */
TEST(a_full_segment_is_synced_in_every_mode)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_NONE;
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_await_spare(&rig);
    /* header, name and mention of the next segment, then the full one */
    test_disk_fail(&disk, TEST_DISK_SYNC, 3, EIO);
    CHECK_EQ(write_blocks(&rig, 8), HF_OK);
    test_disk_await_failed(&disk);
    for (int i = 0; i < 5 && log_error(rig.journal)[0] == '\0'; i++)
        (void)log_flush(rig.journal); /* waits for the keeper */
    CHECK(strstr(log_error(rig.journal), "sync of ") != NULL);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Lets every allocation of `live` fail in turn, and every one after it. */
TEST(any_allocation_that_fails_is_survived)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_INTERVAL; mode++) {
        bool done = false;
        for (uint64_t at = 0; !done; at++) {
            struct test_disk disk;
            struct rig rig;

            open_disk(&disk, true);
            rig_init(&rig, "j", &disk.io);
            rig.opts.sync = (enum journal_sync)mode;
            empty_folder(&rig);
            uint64_t before = hf_memory_count();
            hf_memory_fail_after(at);
            enum hf_status status = rig_open(&rig);
            if (status == HF_OK) {
                (void)live(&rig);
                CHECK_EQ(log_error(rig.journal)[0], '\0');
                done = hf_memory_count() - before <= at;
            } else {
                CHECK_EQ(status, HF_NOMEM);
                CHECK(rig.error[0] != '\0');
            }
            hf_memory_fail_never();
            /* it goes on where it stopped */
            if (status == HF_OK) {
                CHECK_EQ(rig_commit(&rig), HF_OK);
                CHECK_EQ(rig_write(&rig, 2), HF_OK);
                rig_close(&rig);
            }
            CHECK_EQ(rig_open(&rig), HF_OK);
            rig_check(&rig);
            rig_close(&rig);
            test_disk_destroy(&disk);
        }
    }
}

/* Opening what is there: snapshot, segments, an offline reader, a repair. */
TEST(any_allocation_that_fails_while_reading_is_survived)
{
    struct test_disk disk;
    struct rig rig;
    struct log_stats stats;
    struct hf_buf text = {0};
    void *state = NULL;

    open_disk(&disk, true);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK(live(&rig));
    rig_close(&rig);
    enum hf_status status = HF_NOMEM;
    for (uint64_t at = 0; status != HF_OK; at++) {
        hf_memory_fail_after(at);
        status = rig_open(&rig);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    rig_check(&rig);
    rig_close(&rig);
    status = HF_NOMEM;
    for (uint64_t at = 0; status != HF_OK; at++) {
        hf_memory_fail_after(at);
        status = journal_read(rig.opts.dir, tally_machine(), &state, &stats,
                              rig.error);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    hf_free(state);
    status = HF_NOMEM;
    for (uint64_t at = 0; status != HF_OK; at++) {
        hf_memory_fail_after(at);
        status = journal_repair(rig.opts.dir, true, &text, rig.error);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    hf_buf_destroy(&text);
    test_disk_destroy(&disk);
}

/* Only the order of calls protects against a loss of power: a name must not
 * come before what it names, nor a removal before what replaces it. */
TEST(a_segment_is_on_disk_before_its_name_and_its_name_before_a_batch)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    /* the folder's parent; temporaries; the manifest; a spare; the first
     * segment; its mention in the manifest */
    CHECK(test_disk_traced(&disk, "FDDDCWSRFOCWSROWSRFWS"));
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(what_was_recovered_is_synced_before_anything_is_built_on_it)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    rig.opts.sync = JOURNAL_NONE;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(write_blocks(&rig, 5), HF_OK);
    rig_await_spare(&rig);
    rig_close(&rig);
    test_disk_forget(&disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(write_blocks(&rig, 1), HF_OK);
    /* temporaries; sync of the segment and of all names; the manifest; open
     * for writing; the batch */
    CHECK(test_disk_traced(&disk, "DDDOSFOWSOW"));
    rig_close(&rig);
    for (uint64_t at = 0; at < 2; at++) {
        test_disk_fail(&disk, TEST_DISK_SYNC, at, EIO);
        CHECK_EQ(rig_open(&rig), HF_IO);
        CHECK(strstr(rig.error, "cannot sync ") != NULL);
    }
    test_disk_destroy(&disk);
}

TEST(nothing_is_removed_before_the_snapshot_is_on_disk)
{
    struct test_disk disk;
    struct rig rig;

    open_disk(&disk, false);
    rig_init(&rig, "j", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(write_blocks(&rig, 30), HF_OK);
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        rig_await_snapshot(&rig);
    }
    while (rig_files(&rig, "spare-", 0, NULL) < 2) { /* so that none is made */
        CHECK_EQ(write_blocks(&rig, 30), HF_OK);
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        rig_await_snapshot(&rig);
    }
    CHECK_EQ(write_blocks(&rig, 3), HF_OK);
    test_disk_forget(&disk);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    /* switch; snapshot, each with its mention in the manifest; removal of the
     * older one; recycling */
    CHECK(test_disk_traced(&disk, "OWSRFWSCWSRFWSDRF"));
    rig_close(&rig);
    test_disk_destroy(&disk);
}
