/* journal_manifest.c - tests of the end of a life: clean or not, what the
 * manifest keeps, and folders that have none yet. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/format.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

static const char first_segment[] = "journal-0000000000000001.seg";

static void open_rig(struct rig *rig, const char *name, struct test_disk *disk)
{
    test_folder_in_memory();
    rig_init(rig, name, test_disk_quick(disk));
}

static void empty_folder(struct rig *rig)
{
    char name[64];

    while (rig_files(rig, "", 0, name) > 0)
        CHECK_EQ(unlink(rig_path(rig, name)), 0);
}

/* Opens, finds everything, and says whether the end was clean. */
static bool opens_clean(struct rig *rig)
{
    struct log_stats read;
    void *state;

    CHECK_EQ(
        journal_read(rig->opts.dir, tally_machine(), &state, &read, rig->error),
        HF_OK);
    hf_free(state);
    CHECK_EQ(rig_open(rig), HF_OK);
    rig_check(rig);
    CHECK_EQ(rig_stats(rig).unclean, read.unclean);
    CHECK_EQ(rig_stats(rig).note, read.note);
    return !read.unclean;
}

TEST(only_a_stop_is_a_clean_end)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct test_disk disk;
        struct rig rig;

        open_rig(&rig, mode == 0 ? "a" : mode == 1 ? "b" : "c", &disk);
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK(!rig_stats(&rig).unclean); /* a new one has nothing to lose */
        CHECK_EQ(rig_write(&rig, 10), HF_OK);
        rig_close(&rig);
        CHECK(!opens_clean(&rig));
        rig_stop(&rig); /* without a batch of its own */
        CHECK(opens_clean(&rig));
        CHECK_EQ(rig_write(&rig, 10), HF_OK);
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        while (rig_stats(&rig).snapshot_starts == 0)
            log_tend(rig.journal, 0);
        CHECK_EQ(log_stop(rig.journal), HF_OK);
        CHECK(!log_snapshot_running(rig.journal)); /* done, or given up */
        rig_close(&rig);
        CHECK(opens_clean(&rig));
        rig_close(&rig);
        CHECK(!opens_clean(&rig)); /* to have been open is enough */
        rig_stop(&rig);
        test_disk_destroy(&disk);
    }
}

TEST(what_was_not_committed_or_has_failed_is_no_clean_end)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(log_stop(rig.journal), HF_INVALID);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO);
    CHECK_EQ(rig_commit(&rig), HF_IO);
    test_disk_forget(&disk);
    CHECK_EQ(log_stop(rig.journal), HF_IO);
    CHECK(!test_disk_traced(&disk, "W"));
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    test_disk_fail(&disk, TEST_DISK_WRITE, 0, EIO);
    CHECK_EQ(log_stop(rig.journal), HF_IO);
    CHECK(strstr(log_error(rig.journal), "manifest: ") != NULL);
    CHECK_EQ(log_stop(rig.journal), HF_IO);
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* The system may still hold everything in memory. */
TEST(a_stop_syncs_in_every_mode_before_it_calls_the_end_clean)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    rig.opts.sync = JOURNAL_NONE;
    CHECK_EQ(rig_open(&rig), HF_OK);
    while (rig_files(&rig, "spare-", 0, NULL) == 0)
        continue; /* its calls are not those to be seen */
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    test_disk_forget(&disk);
    CHECK_EQ(log_stop(rig.journal), HF_OK);
    CHECK(test_disk_traced(&disk, "SWS"));
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Puts back what an earlier life had left. */
TEST(an_old_manifest_is_no_proof_of_a_clean_end)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 2), HF_OK);
    rig_stop(&rig);
    struct hf_buf old = rig_read_file(rig_path(&rig, "manifest"));
    CHECK(opens_clean(&rig));
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    rig_stop(&rig);
    rig_write_file(rig_path(&rig, "manifest"), old.data, old.len);
    CHECK(!opens_clean(&rig));
    rig_close(&rig);
    hf_buf_destroy(&old);
    test_disk_destroy(&disk);
}

TEST(a_torn_batch_behind_a_clean_end_is_told)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(&rig), HF_OK);
    rig_stop(&rig);
    struct hf_buf file = rig_read_file(rig_path(&rig, first_segment));
    char *torn = file.data + 2 * JOURNAL_BLOCK;
    memcpy(torn, torn - JOURNAL_BLOCK, 50);
    torn[16]++; /* the next number; the checksum is another's */
    rig_write_file(rig_path(&rig, first_segment), file.data, file.len);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_stats(&rig).cut_bytes, JOURNAL_BLOCK);
    rig_close(&rig);
    hf_buf_destroy(&file);
    test_disk_destroy(&disk);
}

/* Gives a crafted segment the header that it has from version 2 on. */
static void make_modern(struct rig *rig, const char *name, uint64_t previous)
{
    struct hf_buf file = rig_read_file(rig_path(rig, name));
    struct segment_header header;

    CHECK_EQ(segment_header_decode(file.data, &header), HF_OK);
    header.bytes = file.len;
    header.previous = previous;
    segment_header_encode(&header, file.data);
    rig_write_file(rig_path(rig, name), file.data, file.len);
    hf_buf_destroy(&file);
}

static void write_manifest(struct rig *rig, uint64_t segment)
{
    struct manifest_slot slot = {.segment = segment, .synced = 1};
    char file[2 * JOURNAL_BLOCK];

    manifest_encode(&slot, file);
    slot.serial = 1;
    manifest_encode(&slot, file + JOURNAL_BLOCK);
    rig_write_file(rig_path(rig, "manifest"), file, sizeof file);
}

/* The cut was noted, then power failed while the later segments were being
 * removed: of two removals the later one is on disk. */
TEST(removals_of_a_cut_may_reach_the_disk_in_any_order)
{
    struct test_disk disk;
    struct rig rig;
    struct tally two = rig_crafted(2);

    open_rig(&rig, "j", &disk);
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 1);
    rig_craft(&rig, 9, 9, 0, 1);
    make_modern(&rig, "journal-0000000000000009.seg", 6);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT); /* it says that there was one */
    CHECK(strstr(rig.error, "manifest is missing") != NULL);
    make_modern(&rig, first_segment, 0);
    write_manifest(&rig, 9); /* not noted: then one is missing */
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error, "journal-0000000000000006.seg is missing") != NULL);
    write_manifest(&rig, 1);
    rig.acked = rig.tried = two;
    CHECK(!opens_clean(&rig));
    rig_close(&rig);
    rig_expect(&rig, &two);
    test_disk_destroy(&disk);
}

/* As in journal_damage, in a folder that has a manifest, which names the last
 * of the segments that go. */
TEST(a_crash_at_any_call_of_a_cut_changes_nothing)
{
    struct tally two = rig_crafted(2);
    bool done = false;

    for (uint64_t at = 0; !done; at++) {
        struct test_disk disk;
        struct rig rig;

        open_rig(&rig, "j", &disk);
        (void)mkdir(rig.opts.dir, 0700);
        rig_craft(&rig, 1, 5, 1 << 3, 1);
        rig_craft(&rig, 6, 8, 0, 1);
        rig_craft(&rig, 9, 9, 0, 1);
        make_modern(&rig, first_segment, 0);
        make_modern(&rig, "journal-0000000000000006.seg", 1);
        make_modern(&rig, "journal-0000000000000009.seg", 6);
        write_manifest(&rig, 9);
        disk.dead = disk.torn = true;
        test_disk_fail(&disk, TEST_DISK_CHANGES, at, EIO);
        if (rig_open(&rig) == HF_OK)
            rig_close(&rig);
        done = !test_disk_failed(&disk);
        disk.dead = false;
        test_disk_fail(&disk, 0, UINT64_MAX, 0);
        rig.acked = rig.tried = two;
        CHECK(!opens_clean(&rig));
        rig_close(&rig);
        rig_expect(&rig, &two);
        empty_folder(&rig);
        test_disk_destroy(&disk);
    }
}

/* Which slot is hit does not matter; the next life writes both. */
TEST(one_damaged_slot_of_the_manifest_costs_no_more_than_the_clean_end)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    rig_stop(&rig);
    for (size_t slot = 0; slot < 4; slot++) {
        struct hf_buf file = rig_read_file(rig_path(&rig, "manifest"));
        CHECK_EQ(file.len, 2 * JOURNAL_BLOCK);
        file.data[slot % 2 * JOURNAL_BLOCK + 100 * slot] ^= 1;
        rig_write_file(rig_path(&rig, "manifest"), file.data, file.len);
        hf_buf_destroy(&file);
        CHECK(!opens_clean(&rig));
        CHECK_EQ(rig_write(&rig, 3), HF_OK);
        rig_stop(&rig);
        CHECK(opens_clean(&rig));
        rig_stop(&rig);
    }
    test_disk_destroy(&disk);
}

static void expect_manifest_refused(struct rig *rig, const char *why)
{
    struct hf_buf text = {0};

    CHECK_EQ(rig_open(rig), HF_CORRUPT);
    CHECK(strstr(rig->error, "manifest is") != NULL);
    CHECK(strstr(rig->error, why) != NULL);
    CHECK(strstr(rig->error, "--apply") != NULL);
    CHECK_EQ(journal_repair(rig->opts.dir, true, &text, rig->error), HF_OK);
    CHECK_EQ(hf_buf_append(&text, "", 1), HF_OK);
    CHECK(strstr(text.data, "made anew: manifest") != NULL);
    CHECK(strstr(text.data, why) != NULL);
    CHECK(strstr(text.data, "kept: every batch") != NULL);
    hf_buf_destroy(&text);
    CHECK(!opens_clean(rig));
    CHECK_EQ(rig_write(rig, 1), HF_OK);
    rig_stop(rig);
    CHECK(opens_clean(rig));
    rig_stop(rig);
}

TEST(a_manifest_that_is_missing_cut_or_damaged_is_refused_and_made_anew)
{
    struct test_disk disk;
    struct rig rig;
    char zeros[2 * JOURNAL_BLOCK] = {0};

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    rig_stop(&rig);
    CHECK_EQ(unlink(rig_path(&rig, "manifest")), 0);
    expect_manifest_refused(&rig, "missing");
    rig_write_file(rig_path(&rig, "manifest"), "", 0);
    expect_manifest_refused(&rig, "damaged");
    rig_write_file(rig_path(&rig, "manifest"), zeros, sizeof zeros);
    expect_manifest_refused(&rig, "damaged");
    test_disk_destroy(&disk);
}

/* Its write is the first of all; its sync is behind that of the folder above.
 */
TEST(a_manifest_that_could_not_be_written_gets_no_name)
{
    static const unsigned kinds[] = {TEST_DISK_CREATE, TEST_DISK_WRITES,
                                     TEST_DISK_RENAME, TEST_DISK_SYNC};
    struct test_disk disk;
    struct rig rig;

    struct journal_io *io = test_disk_quick(&disk);
    for (unsigned i = 0; i < 4; i++) {
        rig_init(&rig, (char[2]){(char)('a' + i)}, io);
        test_disk_fail(&disk, kinds[i], kinds[i] == TEST_DISK_SYNC, EIO);
        CHECK_EQ(rig_open(&rig), HF_IO);
        CHECK(strstr(rig.error, "cannot make ") != NULL);
        CHECK(strstr(rig.error, "/manifest: Input/output error") != NULL);
        CHECK_EQ(rig_files(&rig, "manifest", 0, NULL), 0);
    }
    test_disk_destroy(&disk);
}

TEST(a_file_that_cannot_be_opened_is_named_and_stops_the_open)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    rig_stop(&rig);
    bool named = false;
    uint64_t at = 0;
    for (bool failed = true; failed; at++) {
        test_disk_fail(&disk, TEST_DISK_LOOK, at, EACCES);
        enum hf_status status = rig_open(&rig);
        failed = test_disk_failed(&disk);
        CHECK_EQ(status, failed ? HF_IO : HF_OK);
        CHECK(!failed || strstr(rig.error, "open") != NULL);
        named = named || strstr(rig.error, "/manifest") != NULL;
    }
    CHECK(at > 1);
    CHECK(named);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_note_outlasts_everything_but_the_manifest)
{
    struct test_disk disk;
    struct hf_buf text = {0};
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_stats(&rig).note, 0);
    CHECK_EQ(log_note(rig.journal, 77), HF_OK);
    CHECK_EQ(rig_write(&rig, 20), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    rig_await_snapshot(&rig);
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_stats(&rig).note, 77);
    log_note_later(rig.journal, 99);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_OK); /* room in this segment */
    CHECK_EQ(rig_commit(&rig), HF_OK);
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_stats(&rig).note, 77);
    log_note_later(rig.journal, 99);
    CHECK_EQ(rig_write(&rig, 20), HF_OK); /* not in this one */
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_stats(&rig).note, 99);
    rig_stop(&rig);

    char name[64]; /* a repair that leaves nothing */
    while (rig_files(&rig, "snapshot-", 0, name) > 0 ||
           rig_files(&rig, "journal-", 0, name) > 0)
        CHECK_EQ(unlink(rig_path(&rig, name)), 0);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
    hf_buf_destroy(&text);
    rig.acked = rig.tried = (struct tally){0};
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_stats(&rig).note, 99);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_note_that_cannot_be_kept_makes_the_journal_fail)
{
    struct test_disk disk;
    struct rig rig;

    open_rig(&rig, "j", &disk);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    while (rig_files(&rig, "spare-", 0, NULL) == 0)
        continue;
    test_disk_fail(&disk, TEST_DISK_SYNC, 0, EIO);
    CHECK_EQ(log_note(rig.journal, 5), HF_IO);
    CHECK_EQ(log_note(rig.journal, 5), HF_IO);
    CHECK(strstr(log_error(rig.journal), "cannot write ") != NULL);
    CHECK_EQ(rig_append(&rig, 1, 40), HF_IO);
    rig_close(&rig);
    CHECK(!opens_clean(&rig));
    rig_close(&rig);
    test_disk_destroy(&disk);
}

/* Crafted segments are those of 0.1, which had no manifest. */
TEST(a_folder_of_version_1_is_opened_and_brought_up_to_date)
{
    struct test_disk disk;
    struct rig rig;
    struct segment_header header;
    char name[64];

    open_rig(&rig, "j", &disk);
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 5);
    rig_craft(&rig, 6, 8, 0, 8);
    rig.acked = rig.tried = rig_crafted(8);
    CHECK(!opens_clean(&rig));
    CHECK_EQ(rig_write(&rig, 2), HF_OK);
    rig_stop(&rig);
    CHECK_EQ(rig_files(&rig, "journal-", 2, name), 3);
    CHECK(strcmp(name, "journal-0000000000000009.seg") == 0);
    struct hf_buf file = rig_read_file(rig_path(&rig, name));
    CHECK_EQ(segment_header_decode(file.data, &header), HF_OK);
    CHECK_EQ(header.bytes, RIG_SEGMENT_BYTES);
    CHECK_EQ(header.previous, 6);
    hf_buf_destroy(&file);
    CHECK(opens_clean(&rig));
    rig_stop(&rig);
    CHECK_EQ(rig_files(&rig, "journal-", 0, NULL), 3); /* once */
    CHECK_EQ(unlink(rig_path(&rig, "journal-0000000000000006.seg")), 0);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error, "journal-0000000000000006.seg is missing") != NULL);
    test_disk_destroy(&disk);
}

/* 0.1 took a batch whose padding a crash had kept from the disk. */
TEST(padding_of_version_1_may_be_anything)
{
    struct test_disk disk;
    struct rig rig;
    struct tally five = rig_crafted(5);

    open_rig(&rig, "j", &disk);
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 5);
    struct hf_buf file = rig_read_file(rig_path(&rig, first_segment));
    file.data[3 * JOURNAL_BLOCK - 1] = 1;
    rig_write_file(rig_path(&rig, first_segment), file.data, file.len);
    hf_buf_destroy(&file);
    rig_expect(&rig, &five);
    test_disk_destroy(&disk);
}

/* Also where the last old segment is empty, and has the name of the next. */
TEST(a_crash_at_any_call_while_a_folder_is_brought_up_to_date_loses_nothing)
{
    for (uint64_t last = 5; last <= 7; last++) {
        bool done = false;
        for (uint64_t at = 0; !done; at++) {
            struct test_disk disk;
            struct rig rig;

            open_rig(&rig, "j", &disk);
            (void)mkdir(rig.opts.dir, 0700);
            rig_craft(&rig, 1, 5, 0, 5);
            rig_craft(&rig, 6, last, 0, last);
            rig.acked = rig.tried = rig_crafted(last);
            disk.dead = disk.torn = true;
            test_disk_fail(&disk, TEST_DISK_CHANGES, at, EIO);
            bool stopped =
                rig_open(&rig) == HF_OK && log_stop(rig.journal) == HF_OK;
            rig_close(&rig);
            done = !test_disk_failed(&disk);
            disk.dead = false;
            test_disk_fail(&disk, 0, UINT64_MAX, 0);
            CHECK(opens_clean(&rig) || !stopped);
            CHECK_EQ(rig_write(&rig, 2), HF_OK);
            rig_stop(&rig);
            CHECK(opens_clean(&rig));
            rig_close(&rig);
            empty_folder(&rig);
            test_disk_destroy(&disk);
        }
    }
}

/* A repair that a crash has stopped before its last step: the manifest is
 * still that of before. */
TEST(a_repair_without_its_last_step_can_be_repeated)
{
    static const char *const taken[] = {first_segment, "a middle one"};

    for (int i = 0; i < 2; i++) {
        struct test_disk disk;
        struct rig rig;
        struct hf_buf text = {0};
        char name[64];

        open_rig(&rig, i == 0 ? "a" : "b", &disk);
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK_EQ(rig_write(&rig, 40), HF_OK);
        rig_stop(&rig);
        struct hf_buf old = rig_read_file(rig_path(&rig, "manifest"));
        snprintf(name, sizeof name, "%s", taken[i]);
        if (i == 1)
            rig_files(&rig, "journal-", 2, name);
        CHECK_EQ(unlink(rig_path(&rig, name)), 0);
        CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
        rig_write_file(rig_path(&rig, "manifest"), old.data, old.len);
        CHECK_EQ(rig_open(&rig), HF_CORRUPT);
        CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK(rig_stats(&rig).unclean);
        CHECK(rig.state->count < rig.acked.count);
        rig.acked = rig.tried = *rig.state;
        rig_check(&rig);
        CHECK_EQ(rig_write(&rig, 3), HF_OK);
        rig_stop(&rig);
        CHECK(opens_clean(&rig));
        rig_stop(&rig);
        hf_buf_destroy(&old);
        hf_buf_destroy(&text);
        test_disk_destroy(&disk);
    }
}
