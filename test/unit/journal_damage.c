/* journal_damage.c - tests of what the journal does with files that a crash,
 * a disk or somebody's hand has changed. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/format.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

#define BATCHES_MAX 64

/* Where the batches of one segment file lie. */
struct map {
    struct segment_header header;
    int count;
    uint64_t offset[BATCHES_MAX];
    size_t used[BATCHES_MAX]; /* without the padding */
};

static void map_segment(struct hf_bytes file, struct map *map)
{
    struct batch batch;
    uint64_t at = JOURNAL_BLOCK;

    CHECK_EQ(segment_header_decode(file.data, &map->header), HF_OK);
    for (map->count = 0; at < file.len; map->count++) {
        if (batch_decode(hf_bytes(file.data + at, file.len - at),
                         map->header.salt, &batch) != HF_OK)
            break;
        map->offset[map->count] = at;
        map->used[map->count] = BATCH_HEADER_BYTES + batch.records.len;
        at += batch.disk_bytes;
    }
}

/* Refused, with the file, the place and the way out in the text. */
static void expect_refusal(struct rig *rig, const char *file, int64_t offset)
{
    struct log_stats stats;
    char place[64];
    void *state;

    CHECK_EQ(rig_open(rig), HF_CORRUPT);
    snprintf(place, sizeof place, "offset %lld", (long long)offset);
    CHECK(strstr(rig->error, file) != NULL);
    if (offset >= 0)
        CHECK(strstr(rig->error, place) != NULL);
    snprintf(place, sizeof place, "--apply");
    CHECK(strstr(rig->error, place) != NULL);
    CHECK_EQ(journal_read(rig->opts.dir, tally_machine(), &state, &stats,
                          rig->error),
             HF_CORRUPT);
}

/* A journal of a few batches in one segment; the last one small. */
struct scene {
    struct test_disk disk;
    struct rig whole; /* as it was closed */
    struct rig hurt;  /* the copy to damage */
    struct tally before_last;
    char name[64]; /* the segment in question */
    struct hf_buf file;
    struct map map;
};

static void scene_init(struct scene *scene, enum journal_sync sync, int batches,
                       size_t last_len)
{
    struct rig *whole = &scene->whole;

    *scene = (struct scene){.file = {0}};
    struct journal_io *io = test_disk_quick(&scene->disk);
    rig_init(whole, "whole", io);
    rig_init(&scene->hurt, "hurt", io);
    whole->opts.sync = scene->hurt.opts.sync = sync;
    CHECK_EQ(rig_open(whole), HF_OK);
    for (int i = 0; i < batches - 1; i++) {
        CHECK_EQ(rig_append(whole, 2, 60), HF_OK);
        CHECK_EQ(rig_commit(whole), HF_OK);
    }
    scene->before_last = whole->acked;
    CHECK_EQ(rig_append(whole, 2, last_len), HF_OK);
    CHECK_EQ(rig_commit(whole), HF_OK);
    rig_close(whole);
    int count = rig_files(whole, "journal-", 0, NULL);
    rig_files(whole, "journal-", count - 1, scene->name);
    scene->file = rig_read_file(rig_path(whole, scene->name));
    map_segment(hf_buf_bytes(&scene->file), &scene->map);
}

static void scene_destroy(struct scene *scene)
{
    hf_buf_destroy(&scene->file);
    test_disk_destroy(&scene->disk);
}

/* A copy of the whole journal in which the segment reads as `data`. */
static void scene_hurt(struct scene *scene, const char *data, size_t len)
{
    rig_copy(&scene->whole, &scene->hurt);
    rig_write_file(rig_path(&scene->hurt, scene->name), data, len);
}

enum tear { TEAR_ZERO, TEAR_GARBAGE, TEARS };

TEST(a_last_batch_torn_at_any_byte_is_cut)
{
    struct scene scene;

    test_folder_in_memory();
    scene_init(&scene, JOURNAL_ALWAYS, 4, 40);
    uint64_t start = scene.map.offset[3];
    size_t used = scene.map.used[3];
    for (int tear = 0; tear < TEARS; tear++) {
        for (size_t keep = 0; keep < used; keep++) {
            char data[RIG_SEGMENT_BYTES];
            memcpy(data, scene.file.data, sizeof data);
            memset(data + start + keep, tear == TEAR_ZERO ? 0 : 0x5a,
                   sizeof data - start - keep);
            scene_hurt(&scene, data, sizeof data);
            /* the last byte may be what was there before */
            bool same =
                tear == TEAR_ZERO &&
                memcmp(data + start, scene.file.data + start, used) == 0;
            rig_expect(&scene.hurt,
                       same ? &scene.whole.acked : &scene.before_last);
        }
    }
    scene_destroy(&scene);
}

/* No crash makes a segment shorter: it had its size before its name. */
TEST(a_segment_cut_anywhere_is_refused_by_name)
{
    struct scene scene;

    test_folder_in_memory();
    scene_init(&scene, JOURNAL_ALWAYS, 4, 40);
    for (int clean = 0; clean < 2; clean++) {
        for (size_t len = 0; len < scene.file.len; len += 97) {
            scene_hurt(&scene, scene.file.data, len);
            expect_refusal(&scene.hurt, scene.name, -1);
        }
        scene_hurt(&scene, scene.file.data, scene.file.len - 1);
        expect_refusal(&scene.hurt, scene.name, -1);
        CHECK(strstr(scene.hurt.error, "32767 bytes and was made with 32768") !=
              NULL);
        CHECK_EQ(rig_open(&scene.whole), HF_OK);
        rig_stop(&scene.whole);
    }
    scene_destroy(&scene);
}

/* A disk writes the sectors of one batch in any order. */
TEST(a_last_batch_of_which_any_sectors_are_missing_is_cut)
{
    struct scene scene;
    enum { SECTOR = 512 };

    scene_init(&scene, JOURNAL_ALWAYS, 4, 5000);
    uint64_t start = scene.map.offset[3];
    size_t sectors = scene.map.used[3] / SECTOR + 1;
    CHECK(sectors > 16);
    for (size_t first = 0; first < sectors; first++) {
        for (size_t count = 1; count <= 4; count++) {
            char data[RIG_SEGMENT_BYTES];
            memcpy(data, scene.file.data, sizeof data);
            for (size_t i = 0; i < count; i++)
                memset(data + start + (first + i * 5) % sectors * SECTOR, 0,
                       SECTOR);
            scene_hurt(&scene, data, sizeof data);
            rig_expect(&scene.hurt, &scene.before_last);
        }
    }
    scene_destroy(&scene);
}

TEST(the_bytes_of_a_cut_tail_are_counted)
{
    struct scene scene;
    struct log_stats stats;

    scene_init(&scene, JOURNAL_ALWAYS, 4, 5000);
    scene.file.data[scene.map.offset[3] + 6000] ^= 1;
    scene_hurt(&scene, scene.file.data, scene.file.len);
    CHECK_EQ(rig_open(&scene.hurt), HF_OK);
    log_stats(scene.hurt.journal, &stats);
    CHECK_EQ(stats.cut_bytes, 3 * JOURNAL_BLOCK);
    rig_close(&scene.hurt);
    scene_destroy(&scene);
}

TEST(damage_to_any_byte_of_an_earlier_batch_is_refused_with_its_place)
{
    struct scene scene;

    scene_init(&scene, JOURNAL_ALWAYS, 4, 40);
    for (int b = 0; b < 3; b++) {
        uint64_t start = scene.map.offset[b];
        for (size_t i = 0; i < scene.map.used[b]; i++) {
            scene.file.data[start + i] ^= 0x10;
            scene_hurt(&scene, scene.file.data, scene.file.len);
            expect_refusal(&scene.hurt, scene.name, (int64_t)start);
            /* refusing changes nothing */
            struct hf_buf after =
                rig_read_file(rig_path(&scene.hurt, scene.name));
            CHECK(hf_bytes_equal(hf_buf_bytes(&after),
                                 hf_buf_bytes(&scene.file)));
            hf_buf_destroy(&after);
            scene.file.data[start + i] ^= 0x10;
        }
    }
    scene_destroy(&scene);
}

TEST(damage_to_a_segment_header_is_refused)
{
    struct scene scene;

    scene_init(&scene, JOURNAL_ALWAYS, 4, 40);
    for (size_t i = 0; i < JOURNAL_BLOCK; i += i < 64 ? 1 : 97) {
        scene.file.data[i] ^= 0x10;
        scene_hurt(&scene, scene.file.data, scene.file.len);
        expect_refusal(&scene.hurt, scene.name, 0);
        scene.file.data[i] ^= 0x10;
    }
    scene_hurt(&scene, scene.file.data, 100);
    expect_refusal(&scene.hurt, scene.name, 0);
    scene_destroy(&scene);
}

/* Only the header of the segment behind it proves that it was on disk. */
TEST(damage_to_the_last_batch_of_a_sealed_segment_is_refused)
{
    struct scene scene;
    struct rig *rig = &scene.whole;

    scene_init(&scene, JOURNAL_ALWAYS, 4, 40);
    CHECK_EQ(rig_open(rig), HF_OK);
    int files = rig_files(rig, "journal-", 0, NULL);
    CHECK_EQ(files, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig_append(rig, 1, 40), HF_OK);
        CHECK_EQ(rig_commit(rig), HF_OK);
    }
    test_disk_fail(&scene.disk, TEST_DISK_BATCH, 0, EIO);
    CHECK_EQ(rig_append(rig, 1, 40), HF_OK);
    CHECK_EQ(rig_commit(rig), HF_IO);
    rig_close(rig);
    CHECK_EQ(rig_files(rig, "journal-", 0, NULL), 2);

    hf_buf_destroy(&scene.file);
    scene.file = rig_read_file(rig_path(rig, scene.name));
    map_segment(hf_buf_bytes(&scene.file), &scene.map);
    CHECK_EQ(scene.map.count, 7);
    uint64_t start = scene.map.offset[6];
    scene.file.data[start + 50] ^= 1;
    scene_hurt(&scene, scene.file.data, scene.file.len);
    expect_refusal(&scene.hurt, scene.name, (int64_t)start);
    scene_destroy(&scene);
}

/* Also in the modes in which a later segment need not say that what was in
 * the missing one had been on disk. */
TEST(a_missing_segment_is_refused_by_its_name)
{
    struct test_disk disk;
    struct rig whole;
    struct rig hurt;
    char name[64];

    test_folder_in_memory();
    struct journal_io *io = test_disk_quick(&disk);
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        rig_init(&whole, mode == 0 ? "a" : mode == 1 ? "b" : "c", io);
        rig_init(&hurt, "hurt", io);
        whole.opts.sync = hurt.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&whole), HF_OK);
        CHECK_EQ(rig_write(&whole, 40), HF_OK);
        rig_close(&whole);
        int count = rig_files(&whole, "journal-", 0, NULL);
        CHECK(count > 3);
        for (int i = 0; i < count; i++) {
            rig_copy(&whole, &hurt);
            rig_files(&hurt, "journal-", i, name);
            CHECK_EQ(unlink(rig_path(&hurt, name)), 0);
            expect_refusal(&hurt, name, -1);
            CHECK(strstr(hurt.error, "missing") != NULL);
        }
        while (rig_files(&hurt, "journal-", 0, name) > 0)
            CHECK_EQ(unlink(rig_path(&hurt, name)), 0);
        expect_refusal(&hurt, "journal-0000000000000001.seg is missing", -1);
    }
    test_disk_destroy(&disk);
}

TEST(a_snapshot_that_is_damaged_or_missing_is_refused)
{
    struct test_disk disk;
    struct rig whole;
    struct rig hurt;
    char name[64];

    struct journal_io *io = test_disk_quick(&disk);
    rig_init(&whole, "whole", io);
    rig_init(&hurt, "hurt", io);
    rig_write_with_snapshot(&whole);
    rig_files(&whole, "snapshot-", 0, name);
    struct hf_buf file = rig_read_file(rig_path(&whole, name));
    for (size_t i = 0; i < file.len; i++) {
        file.data[i] ^= 0x04;
        rig_copy(&whole, &hurt);
        rig_write_file(rig_path(&hurt, name), file.data, file.len);
        expect_refusal(&hurt, name, -1);
        file.data[i] ^= 0x04;
        rig_write_file(rig_path(&hurt, name), file.data, i); /* cut */
        expect_refusal(&hurt, name, -1);
    }
    CHECK_EQ(unlink(rig_path(&hurt, name)), 0);
    expect_refusal(&hurt, name, -1);
    CHECK(strstr(hurt.error, "missing") != NULL);

    rig_files(&hurt, "journal-", 0, name);
    rig_copy(&whole, &hurt); /* the segment behind the snapshot is gone */
    CHECK_EQ(unlink(rig_path(&hurt, name)), 0);
    expect_refusal(&hurt, name, -1);
    hf_buf_destroy(&file);
    test_disk_destroy(&disk);
}

TEST(a_record_that_the_machine_refuses_stops_the_open)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 2), HF_OK);
    CHECK_EQ(log_append(rig.journal, hf_bytes_text("!")), HF_OK);
    CHECK_EQ(log_commit(rig.journal), HF_OK);
    rig_close(&rig);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error, "batch 3") != NULL);
    CHECK(strstr(rig.error, "cannot be applied") != NULL);
    test_disk_destroy(&disk);
}

/* The system lost batch 3 and kept later ones, in this segment and the next;
 * none was known to be on disk. */
TEST(batches_behind_a_lost_one_never_come_back)
{
    struct test_disk disk;
    struct rig rig;
    struct tally two = rig_crafted(2);

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 1);
    rig_craft(&rig, 6, 8, 0, 1);
    rig_craft(&rig, 9, 9, 1 << 9, 1);
    /* batches 3 to 5, and all of the later segments */
    uint64_t cut_bytes = 3 * JOURNAL_BLOCK + 2 * RIG_SEGMENT_BYTES;
    for (int life = 0; life < 3; life++) {
        CHECK_EQ(rig_open(&rig), HF_OK);
        if (life == 0)
            rig.acked = rig.tried = two;
        rig_check(&rig);
        CHECK_EQ(rig_stats(&rig).cut_bytes, cut_bytes);
        cut_bytes = 0;
        CHECK_EQ(rig_append(&rig, 1, 30), HF_OK);
        CHECK_EQ(rig_commit(&rig), HF_OK);
        rig_close(&rig);
    }
    test_disk_destroy(&disk);
}

TEST(a_batch_out_of_turn_is_not_applied)
{
    static const char name[] = "journal-0000000000000001.seg";
    struct test_disk disk;
    struct rig rig;
    struct tally two = rig_crafted(2);

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 0, 1);
    struct hf_buf file = rig_read_file(rig_path(&rig, name));
    memcpy(file.data + 3 * JOURNAL_BLOCK, file.data + 4 * JOURNAL_BLOCK,
           JOURNAL_BLOCK); /* batch 4 where batch 3 should be */
    rig_write_file(rig_path(&rig, name), file.data, file.len);
    rig_expect(&rig, &two);
    hf_buf_destroy(&file);
    test_disk_destroy(&disk);
}

TEST(a_lost_batch_that_was_known_to_be_on_disk_is_damage)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 3, 1);
    rig_craft(&rig, 6, 8, 0, 3);
    expect_refusal(&rig, "journal-0000000000000001.seg", 3 * JOURNAL_BLOCK);
    CHECK(strstr(rig.error, "(a later segment says") != NULL);
    rig_craft(&rig, 1, 5, 1 << 3, 3); /* batch 4 is the first to know */
    expect_refusal(&rig, "journal-0000000000000001.seg", 3 * JOURNAL_BLOCK);
    CHECK(strstr(rig.error, "(batch 4 says that it was on disk)") != NULL);

    rig_init(&rig, "k", &disk.io); /* only an empty segment's header says so */
    CHECK_EQ(rig_open(&rig), HF_OK); /* the manifest is there, and older */
    rig_close(&rig);
    rig_craft(&rig, 1, 5, 1 << 5, 4);
    rig_craft(&rig, 6, 5, 0, 5);
    expect_refusal(&rig, "journal-0000000000000001.seg", 5 * JOURNAL_BLOCK);
    CHECK(strstr(rig.error, "(a later segment says") != NULL);

    rig_init(&rig, "l", &disk.io);
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    rig_stop(&rig);
    rig_craft(&rig, 1, 1, 1 << 1, 0);
    expect_refusal(&rig, "journal-0000000000000001.seg", JOURNAL_BLOCK);
    CHECK(strstr(rig.error, "(the manifest says") != NULL);
    test_disk_destroy(&disk);
}

/* The process dies after every number of steps of the open that cuts. */
TEST(a_crash_while_cutting_changes_nothing)
{
    struct tally two = rig_crafted(2);
    bool done = false;

    for (uint64_t step = 0; !done; step++) {
        struct test_disk disk;
        struct rig rig;

        rig_init(&rig, "j", test_disk_quick(&disk));
        (void)mkdir(rig.opts.dir, 0700);
        rig_craft(&rig, 1, 5, 1 << 3, 1);
        rig_craft(&rig, 6, 8, 0, 1);
        rig_craft(&rig, 9, 9, 0, 1);
        disk.dead = true;
        test_disk_fail(&disk, TEST_DISK_CHANGES, step, EIO);
        if (rig_open(&rig) == HF_OK) {
            done = !test_disk_failed(&disk);
            rig_close(&rig);
        }
        disk.dead = false;
        test_disk_fail(&disk, 0, UINT64_MAX, 0);
        rig_expect(&rig, &two);
        char name[64];
        for (int i = rig_files(&rig, "", 0, NULL); i > 0; i--) {
            rig_files(&rig, "", i - 1, name);
            unlink(rig_path(&rig, name));
        }
        test_disk_destroy(&disk);
    }
}

/* A client may send bytes that look like a batch; they must not count, even
 * when the batch around them is torn. */
TEST(a_record_that_looks_like_a_batch_is_not_taken_for_one)
{
    struct scene scene;
    char record[3 * JOURNAL_BLOCK] = {0};
    char forged[JOURNAL_BLOCK] = {0};
    struct batch batch = {
        .number = 1000,
        .synced = 999,
        .count = 1,
        .records = hf_bytes(NULL, BATCH_RECORD_BYTES + 10),
    };

    scene_init(&scene, JOURNAL_ALWAYS, 3, 40);
    batch_record_encode(forged + BATCH_HEADER_BYTES, 10);
    batch_encode(forged, &batch, 0);
    memcpy(record + JOURNAL_BLOCK - BATCH_HEADER_BYTES - BATCH_RECORD_BYTES,
           forged, sizeof forged);
    CHECK_EQ(rig_open(&scene.whole), HF_OK);
    CHECK_EQ(log_append(scene.whole.journal, hf_bytes(record, sizeof record)),
             HF_OK);
    CHECK_EQ(log_commit(scene.whole.journal), HF_OK);
    rig_close(&scene.whole);

    hf_buf_destroy(&scene.file);
    scene.file = rig_read_file(rig_path(&scene.whole, scene.name));
    uint64_t start = scene.map.offset[2] + JOURNAL_BLOCK;
    CHECK(memcmp(scene.file.data + start + JOURNAL_BLOCK, forged, 40) == 0);
    scene.file.data[start + 100] ^= 1;
    scene_hurt(&scene, scene.file.data, scene.file.len);
    rig_expect(&scene.hurt, &scene.whole.acked);
    scene_destroy(&scene);
}

TEST(the_first_segment_is_named_if_the_snapshot_before_it_is_missing)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 6, 8, 0, 5);
    rig_craft(&rig, 9, 9, 0, 8);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error,
                 "the snapshot before journal-0000000000000006.seg "
                 "is missing; put it back, or 'holdfast repair ") != NULL);
    test_disk_destroy(&disk);
}

/* The batch before it is torn, too, which alone would be cut off. */
TEST(a_damaged_header_behind_a_torn_batch_is_refused_by_name)
{
    static const char name[] = "journal-0000000000000006.seg";
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    rig_craft(&rig, 1, 5, 1 << 5, 1);
    rig_craft(&rig, 6, 8, 0, 1);
    struct hf_buf file = rig_read_file(rig_path(&rig, name));
    file.data[30] ^= 1;
    rig_write_file(rig_path(&rig, name), file.data, file.len);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error, name) != NULL);
    /* nor is it a proof: this one says that its own first batch was on disk */
    struct segment_header header = {.first = 6, .synced = 6, .salt = 83};
    segment_header_encode(&header, file.data);
    rig_write_file(rig_path(&rig, name), file.data, file.len);
    CHECK_EQ(rig_open(&rig), HF_CORRUPT);
    CHECK(strstr(rig.error, "6.seg: the header at offset 0, before batch 6, "
                            "is damaged; ") != NULL);
    hf_buf_destroy(&file);
    test_disk_destroy(&disk);
}

/* An error is not taken for the end of what was written, also behind the first
 * megabyte, up to which a segment is read at once. */
TEST(any_read_that_fails_stops_the_open)
{
    struct test_disk disk;
    struct rig rig;
    uint64_t reads = 0;

    rig_init(&rig, "long", test_disk_quick(&disk));
    rig.opts.segment_bytes = 4u << 20;
    CHECK_EQ(rig_open(&rig), HF_OK);
    for (int i = 0; i < 80; i++) {
        CHECK_EQ(rig_append(&rig, 5, 6000), HF_OK);
        CHECK_EQ(rig_commit(&rig), HF_OK);
    }
    rig_close(&rig);
    for (bool failed = true; failed; reads++) {
        test_disk_fail(&disk, TEST_DISK_READ, reads, EIO);
        enum hf_status status = rig_open(&rig);
        failed = test_disk_failed(&disk);
        CHECK_EQ(status, failed ? HF_IO : HF_OK);
    }
    CHECK(reads > 4);
    rig_check(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}
