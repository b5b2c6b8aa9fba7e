/* journal_repair.c - tests of what a repair says, drops and keeps. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/format.h"
#include "journal/state.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

static bool contains(const struct hf_buf *text, const char *part)
{
    return memmem(text->data, text->len, part, strlen(part)) != NULL;
}

/* Shows, then does; afterwards the journal opens and is `expected`. */
static void repair_and_expect(struct rig *rig, const struct tally *expected,
                              const char *part)
{
    struct hf_buf shown = {0};
    struct hf_buf done = {0};
    int files = rig_files(rig, "", 0, NULL);

    CHECK_EQ(journal_repair(rig->opts.dir, false, &shown, rig->error), HF_OK);
    CHECK(contains(&shown, part));
    CHECK(contains(&shown, "nothing has been changed"));
    CHECK_EQ(rig_files(rig, "", 0, NULL), files);
    CHECK_EQ(rig_open(rig), HF_CORRUPT);
    CHECK_EQ(journal_repair(rig->opts.dir, true, &done, rig->error), HF_OK);
    CHECK(contains(&done, part));
    CHECK(contains(&done, "done; "));
    rig_expect(rig, expected);
    done.len = 0;
    CHECK_EQ(journal_repair(rig->opts.dir, true, &done, rig->error), HF_OK);
    CHECK(contains(&done, "nothing to repair"));
    hf_buf_destroy(&shown);
    hf_buf_destroy(&done);
}

TEST(repair_drops_from_the_first_damaged_batch_on)
{
    struct test_disk disk;
    struct rig rig;
    struct stat info;
    struct tally two = rig_crafted(2);
    struct tally five = rig_crafted(5);
    struct tally none = {0};

    rig_init(&rig, "a", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 4);
    rig_craft(&rig, 6, 8, 0, 5);
    repair_and_expect(&rig, &two,
                      "batch 3, which is damaged or missing, and 5 intact "
                      "batches behind it with 5 records");
    CHECK_EQ(
        stat(rig_path(&rig, "dropped/journal-0000000000000001.seg"), &info), 0);
    CHECK_EQ(
        stat(rig_path(&rig, "dropped/journal-0000000000000006.seg"), &info), 0);

    rig_init(&rig, "b", &disk.io); /* the first batch of a segment */
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 0);
    rig_craft(&rig, 6, 8, 1 << 6, 5);
    rig_craft(&rig, 9, 9, 0, 8);
    repair_and_expect(&rig, &five, "batch 6");

    rig_init(&rig, "c", &disk.io); /* a segment is missing */
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 0);
    rig_craft(&rig, 9, 9, 0, 8);
    repair_and_expect(&rig, &five, "batch 6");

    rig_init(&rig, "d", &disk.io); /* the snapshot is missing */
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 9, 9, 0, 8);
    repair_and_expect(&rig, &none, "everything up to batch 0");
    test_disk_destroy(&disk);
}

/* The copy of the segment that is partly kept went through the same memory. */
TEST(the_segment_that_a_repair_makes_holds_zeros)
{
    static const char zeros[JOURNAL_BLOCK];
    struct test_disk disk;
    struct rig rig;
    struct hf_buf text = {0};

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 4);
    rig_craft(&rig, 6, 8, 0, 5);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
    struct hf_buf file =
        rig_read_file(rig_path(&rig, "journal-0000000000000003.seg"));
    CHECK_EQ(file.len, 2 * JOURNAL_BLOCK);
    CHECK(memcmp(file.data + JOURNAL_BLOCK, zeros, sizeof zeros) == 0);
    hf_buf_destroy(&file);
    hf_buf_destroy(&text);
    test_disk_destroy(&disk);
}

TEST(repair_drops_a_damaged_segment_header_and_all_behind_it)
{
    struct test_disk disk;
    struct rig rig;
    struct tally five = rig_crafted(5);

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 0);
    rig_craft(&rig, 6, 8, 0, 5);
    const char *path = rig_path(&rig, "journal-0000000000000006.seg");
    struct hf_buf file = rig_read_file(path);
    file.data[30] ^= 1;
    rig_write_file(rig_path(&rig, "journal-0000000000000006.seg"), file.data,
                   file.len);
    repair_and_expect(&rig, &five, "batch 6");
    hf_buf_destroy(&file);
    test_disk_destroy(&disk);
}

TEST(repair_falls_back_to_an_older_snapshot_whose_journal_is_there)
{
    static const char newest[] = "snapshot-0000000000000017.snap";
    struct test_disk disk;
    struct rig whole;
    struct rig rig;
    struct tally none = {0};
    char name[64];

    struct journal_io *io = test_disk_quick(&disk);
    rig_init(&whole, "whole", io);
    rig_init(&rig, "j", io);
    rig_write_with_snapshot(&whole);
    rig_copy(&whole, &rig);
    rig_write_file(rig_path(&rig, newest), "damaged", 7);
    repair_and_expect(&rig, &whole.acked, newest);

    rig_copy(&whole, &rig); /* without an older one, everything goes */
    rig_files(&rig, "snapshot-", 0, name);
    rig_write_file(rig_path(&rig, name), "damaged", 7);
    repair_and_expect(&rig, &none, name);
    test_disk_destroy(&disk);
}

/* As if a crash had come before the segments behind the snapshot's back were
 * removed: everything is still there. */
TEST(repair_does_without_a_missing_snapshot_if_it_can)
{
    struct test_disk disk;
    struct rig whole;
    struct rig rig;
    char name[64];

    struct journal_io *io = test_disk_quick(&disk);
    rig_init(&whole, "whole", io);
    rig_init(&rig, "j", io);
    CHECK_EQ(rig_open(&whole), HF_OK);
    CHECK_EQ(rig_write(&whole, 12), HF_OK);
    rig_close(&whole);
    rig_copy(&whole, &rig);
    CHECK_EQ(rig_open(&whole), HF_OK);
    CHECK_EQ(log_snapshot(whole.journal), HF_OK);
    rig_await_snapshot(&whole);
    CHECK_EQ(rig_write(&whole, 2), HF_OK);
    rig_stop(&whole);
    for (int i = rig_files(&rig, "journal-", 0, NULL); i > 0; i--) {
        rig_files(&rig, "journal-", i - 1, name);
        struct hf_buf file = rig_read_file(rig_path(&rig, name));
        rig_write_file(rig_path(&whole, name), file.data, file.len);
        hf_buf_destroy(&file);
    }
    CHECK_EQ(rig_files(&whole, "snapshot-", 0, name), 1);
    CHECK_EQ(remove(rig_path(&whole, name)), 0);
    repair_and_expect(&whole, &whole.acked, name);
    test_disk_destroy(&disk);
}

/* A crash came before segments that the snapshot stands for were removed: they
 * are nobody's loss, whatever else is. */
TEST(repair_leaves_segments_alone_that_the_snapshot_stands_for)
{
    struct test_disk disk;
    struct rig rig;
    struct hf_buf text = {0};
    struct stat info;
    char name[64];

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig_write_with_snapshot(&rig);
    while (rig_files(&rig, "journal-", 0, name) > 0)
        CHECK_EQ(remove(rig_path(&rig, name)), 0);
    rig_craft(&rig, 1, 5, 0, 0);
    rig_craft(&rig, 6, 8, 0, 5);
    rig_craft(&rig, 0x99, 0x99, 0, 0x98); /* behind a gap */
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
    CHECK(contains(&text, "  journal-0000000000000099.seg\n"));
    CHECK(!contains(&text, "journal-0000000000000001.seg"));
    CHECK(!contains(&text, "journal-0000000000000006.seg"));
    CHECK_EQ(
        stat(rig_path(&rig, "dropped/journal-0000000000000099.seg"), &info), 0);
    CHECK_EQ(stat(rig_path(&rig, "journal-0000000000000001.seg"), &info), 0);
    CHECK_EQ(stat(rig_path(&rig, "journal-0000000000000006.seg"), &info), 0);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_close(&rig);
    hf_buf_destroy(&text);
    test_disk_destroy(&disk);
}

/* What is done to a sound folder. */
static void spoil(struct rig *rig, int how)
{
    char name[64];
    int segments = rig_files(rig, "journal-", 0, NULL);

    CHECK(segments >= 3);
    rig_files(rig, "journal-", how == 1 ? 1 : segments - 1, name);
    if (how == 0)
        CHECK_EQ(truncate(rig_path(rig, name), 8192), 0);
    else if (how <= 2)
        CHECK_EQ(remove(rig_path(rig, name)), 0);
    else if (how == 3)
        CHECK_EQ(truncate(rig_path(rig, "manifest"), 8191), 0);
    else if (how == 4)
        CHECK_EQ(remove(rig_path(rig, "manifest")), 0);
    else if (rig_files(rig, "snapshot-", 0, name) == 1)
        CHECK_EQ(remove(rig_path(rig, name)), 0);
}
#define SPOILS 6

/* The process dies before any call of a repair: then the folder still calls
 * for one, or it is done; and the next one ends where the first would have. */
TEST(a_crash_at_any_call_of_a_repair_is_made_good_by_the_next)
{
    struct test_disk disk;
    struct rig whole;
    struct rig rig;

    test_folder_in_memory();
    struct journal_io *io = test_disk_quick(&disk);
    rig_init(&whole, "whole", io);
    rig_init(&rig, "j", io);
    rig_write_with_snapshot(&whole);
    CHECK_EQ(rig_open(&whole), HF_OK);
    CHECK_EQ(rig_write(&whole, 20), HF_OK);
    rig_stop(&whole);
    for (int how = 0; how < SPOILS; how++) {
        struct hf_buf text = {0};
        bool done = false;
        rig_copy(&whole, &rig);
        spoil(&rig, how);
        CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
        CHECK_EQ(rig_open(&rig), HF_OK);
        struct tally left = *rig.state;
        rig_close(&rig);
        for (uint64_t at = 0; !done; at++) {
            rig_copy(&whole, &rig);
            spoil(&rig, how);
            disk.dead = disk.torn = true;
            test_disk_fail(&disk, TEST_DISK_CHANGES, at, EIO);
            (void)journal_repair_on(io, rig.opts.dir, true, &text, rig.error);
            done = !test_disk_failed(&disk);
            disk.dead = false;
            test_disk_fail(&disk, 0, UINT64_MAX, 0);
            enum hf_status status = rig_open(&rig);
            CHECK(status == HF_OK || (status == HF_CORRUPT && !done));
            if (status == HF_OK)
                CHECK(rig_stats(&rig).unclean);
            rig_close(&rig);
            CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error),
                     HF_OK);
            rig_expect(&rig, &left);
        }
        hf_buf_destroy(&text);
    }
    test_disk_destroy(&disk);
}

/* What cannot be read is not damaged: nothing may be dropped for it. */
TEST(a_read_that_fails_is_told_and_not_taken_for_damage)
{
    struct test_disk disk;
    struct rig whole;
    struct rig rig;

    test_folder_in_memory();
    struct journal_io *io = test_disk_quick(&disk);
    rig_init(&whole, "whole", io);
    rig_init(&rig, "j", io);
    rig_write_with_snapshot(&whole);
    CHECK_EQ(rig_open(&whole), HF_OK);
    CHECK_EQ(rig_write(&whole, 20), HF_OK);
    rig_stop(&whole);
    rig_copy(&whole, &rig);
    spoil(&rig, 0);
    bool more = true;
    for (uint64_t at = 0; more; at++) {
        struct hf_buf text = {0};
        int files = rig_files(&rig, "", 0, NULL);
        rig.error[0] = '\0';
        test_disk_fail(&disk, TEST_DISK_READ, at, EIO);
        enum hf_status status =
            journal_repair_on(io, rig.opts.dir, false, &text, rig.error);
        more = test_disk_failed(&disk);
        CHECK_EQ(status, more ? HF_IO : HF_OK);
        CHECK_EQ(rig.error[0] != '\0', more);
        CHECK(!more || text.len == 0);
        CHECK_EQ(rig_files(&rig, "", 0, NULL), files);
        hf_buf_destroy(&text);
        CHECK(at < 10000);
    }
    test_disk_fail(&disk, 0, UINT64_MAX, 0);
    test_disk_destroy(&disk);
}

TEST(repair_of_a_sound_journal_does_nothing)
{
    struct test_disk disk;
    struct rig rig;
    struct hf_buf text = {0};

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_NOTFOUND);
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    for (int apply = 0; apply < 2; apply++) {
        CHECK_EQ(journal_repair(rig.opts.dir, apply, &text, rig.error),
                 HF_NOTFOUND);
        CHECK(strstr(rig.error, "there is no journal in ") == rig.error);
        CHECK_EQ(rig_files(&rig, "", 0, NULL), 0);
    }
    CHECK_EQ(rmdir(rig.opts.dir), 0);
    rig_write_with_snapshot(&rig);
    int files = rig_files(&rig, "", 0, NULL);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
    CHECK(contains(&text, "nothing to repair"));
    CHECK_EQ(rig_files(&rig, "", 0, NULL), files);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_check(&rig);
    rig_close(&rig);
    hf_buf_destroy(&text);
    test_disk_destroy(&disk);
}

/* What is in the text already makes it grow elsewhere. */
TEST(a_repair_tells_all_or_that_there_is_no_memory)
{
    struct hf_buf full = {0};
    struct test_disk disk;
    struct rig rig;
    char before[512];
    unsigned refused = 0;

    memset(before, 'x', sizeof before);
    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 4);
    rig_craft(&rig, 6, 8, 0, 5);
    CHECK_EQ(journal_repair(rig.opts.dir, false, &full, rig.error), HF_OK);
    for (size_t len = 0; len < sizeof before; len += 32) {
        bool failed = true;
        for (uint64_t at = 0; failed; at++) {
            struct hf_buf text = {0};
            CHECK_EQ(hf_buf_append(&text, before, len), HF_OK);
            uint64_t count = hf_memory_count();
            hf_memory_fail_once(at);
            enum hf_status status =
                journal_repair(rig.opts.dir, false, &text, rig.error);
            hf_memory_fail_never();
            failed = hf_memory_count() - count > at;
            CHECK(status == HF_OK || (failed && status == HF_NOMEM));
            refused += status == HF_NOMEM;
            if (status == HF_OK)
                CHECK(hf_bytes_equal(hf_bytes(text.data + len, text.len - len),
                                     hf_buf_bytes(&full)));
            hf_buf_destroy(&text);
        }
    }
    CHECK(refused > 0);
    hf_buf_destroy(&full);
    test_disk_destroy(&disk);
}

/* Each call in turn, of a repair that copies, moves and begins a segment. */
TEST(a_repair_on_a_disk_that_fails_says_so)
{
    static const unsigned kinds[] = {
        TEST_DISK_LOOK, TEST_DISK_READ,   TEST_DISK_OPEN,  TEST_DISK_WRITES,
        TEST_DISK_SYNC, TEST_DISK_CREATE, TEST_DISK_RENAME};
    struct test_disk disk;
    struct rig whole;
    struct rig hurt;
    bool dropped = false;

    rig_init(&whole, "whole", test_disk_quick(&disk));
    rig_init(&hurt, "hurt", &disk.io);
    CHECK_EQ(mkdir(whole.opts.dir, 0700), 0);
    rig_craft(&whole, 1, 5, 1 << 3, 4);
    rig_craft(&whole, 6, 8, 0, 5);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t at = 0; at == 0 || test_disk_failed(&disk); at++) {
            struct hf_buf text = {0};
            rig_copy(&whole, &hurt);
            test_disk_fail(&disk, kinds[i], at, EIO);
            enum hf_status status = journal_repair_on(&disk.io, hurt.opts.dir,
                                                      true, &text, hurt.error);
            CHECK_EQ(status, test_disk_failed(&disk) ? HF_IO : HF_OK);
            dropped =
                dropped || (status == HF_IO && kinds[i] == TEST_DISK_SYNC &&
                            strstr(hurt.error, "/dropped: ") != NULL);
            hf_buf_destroy(&text);
        }
    }
    CHECK(dropped); /* its names are synced, too */
    test_disk_destroy(&disk);
}

/* More than is copied at once. */
TEST(a_long_segment_that_is_partly_kept_is_copied_whole)
{
    static const char name[] = "journal-0000000000000001.seg";
    struct test_disk disk;
    struct hf_buf text = {0};
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    rig.opts.segment_bytes = 4u << 20;
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 3), HF_OK);
    rig_close(&rig);
    struct hf_buf file = rig_read_file(rig_path(&rig, name));
    CHECK_EQ(file.len, rig.opts.segment_bytes);
    file.data[2 * JOURNAL_BLOCK + 50] ^= 1;
    file.data[file.len - 1] = 'x';
    rig_write_file(rig_path(&rig, name), file.data, file.len);
    CHECK_EQ(journal_repair(rig.opts.dir, true, &text, rig.error), HF_OK);
    struct hf_buf copy =
        rig_read_file(rig_path(&rig, "dropped/journal-0000000000000001.seg"));
    CHECK(hf_bytes_equal(hf_buf_bytes(&copy), hf_buf_bytes(&file)));
    hf_buf_destroy(&copy);
    hf_buf_destroy(&file);
    hf_buf_destroy(&text);
    test_disk_destroy(&disk);
}
