/* Tests of the write-ahead log: what it brings back, what ends it, what it does
 * when the disk fails. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/little.h"
#include "base/memory.h"
#include "support/broken_disk.h"
#include "support/threads.h"
#include "support/writebehind.h"

static char folder[512];
static struct broken_disk disk;

/* Nothing is written to the store but by flush. */
static enum hf_status reopen(struct hf_writebehind_opts opts)
{
    opts = completed(opts);
    opts.age_ns = HF_FOREVER;
    opts.log_dir = folder;
    return hf_wb_open_on(&test.behind, &opts, &disk.disk);
}

static void begin_log(struct hf_writebehind_opts opts)
{
    prepare();
    broken_disk_init(&disk);
    snprintf(folder, sizeof folder, "%s/log", test_folder());
    CHECK_EQ(reopen(opts), HF_OK);
}

/* The process dies: the store gets nothing more, the log is as it is. */
static void crash(void)
{
    hf_mutex_lock(&test.memory.mutex);
    test.memory.fail = 1000;
    test.memory.status = HF_IO;
    hf_mutex_unlock(&test.memory.mutex);
    uint64_t dead = test.dead_count;
    enum hf_status status = hf_writebehind_close(test.behind, HF_NOW);
    CHECK(status == HF_TIMEOUT || status == HF_OK);
    CHECK_EQ(test.dead_count, dead); /* it is in the log */
    test.memory.fail = 0;
}

static const struct hf_writebehind_opts plain;

/* The only segment, or the one of that place. */
static char *segment_path(unsigned place)
{
    static char path[1024];
    char names[64][64];
    unsigned count = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;

    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL && count < 64)
        if (strncmp(entry->d_name, "segment-", 8) == 0)
            snprintf(names[count++], sizeof names[0], "%.63s", entry->d_name);
    closedir(dir);
    if (count <= place)
        return NULL;
    qsort(names, count, sizeof names[0],
          (int (*)(const void *, const void *))strcmp);
    snprintf(path, sizeof path, "%s/%s", folder, names[place]);
    return path;
}

static size_t slurp(const char *path, char *data, size_t cap)
{
    int fd = open(path, O_RDONLY);
    ssize_t len = read(fd, data, cap);

    CHECK(fd >= 0 && len >= 0);
    close(fd);
    return (size_t)len;
}

static void spill(const char *path, const char *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, data, len), len);
    close(fd);
}

TEST(what_was_not_written_comes_back)
{
    begin_log(plain);
    put("a", "1");
    put("b", "1");
    put("a", "2");
    drop("c");
    put_group("d=1 e=1 f-");
    CHECK_EQ(figures().log_records, 5);
    CHECK_EQ(figures().log_syncs, 5);
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 7);
    CHECK_EQ(figures().changes, 7);
    CHECK_EQ(figures().coalesced, 1);
    CHECK_EQ(figures().dirty, 6);
    check_get("a", "2");
    check_get("c", NULL);
    check_get("e", "1");
    put("b", "3");
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 8);
    check_get("b", "3");
    flush();
    check_trace("a=2 b=3 c- d=1 e=1 f-;");
    end();
    CHECK(segment_path(0) == NULL); /* nothing is left of it */
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 0);
    end();
}

TEST(a_crash_between_the_commit_and_the_trim_writes_it_again_in_order)
{
    begin_log(plain);
    put("a", "1");
    put_group("b=1 c=1");
    flush();
    put("a", "2");
    flush();
    put("b", "2");
    crash();
    check_trace("a=1 b=1 c=1;a=2;");
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 5); /* also what was in the store */
    check_get("a", "2");
    flush();
    /* No older value on the way. */
    check_trace("a=1 b=1 c=1;a=2;a=2 b=2 c=1;");
    end();
}

TEST(groups_come_back_as_groups)
{
    begin_log(plain);
    put_group("a=1 b=1");
    put_group("c=1 d=1");
    put_group("b=2 c=2");
    crash();
    CHECK_EQ(reopen((struct hf_writebehind_opts){.batch_max = 1}), HF_OK);
    flush();
    CHECK_EQ(test.memory.applies, 1);
    CHECK_EQ(test.memory.largest, 4);
    end();
}

/* Cuts the log at every byte: what was synced before comes back, the torn
 * record does not, and the log can be used. */
TEST(a_torn_end_is_cut_wherever_it_is_torn)
{
    static char whole[4096];
    size_t before, len;

    begin_log(plain);
    put("a", "1");
    put_group("b=1 c=1");
    before = slurp(segment_path(0), whole, sizeof whole);
    put_group("a=2 b-");
    len = slurp(segment_path(0), whole, sizeof whole);
    CHECK(before < len && len < sizeof whole);
    crash();
    char path[1024];
    snprintf(path, sizeof path, "%s", segment_path(0));
    for (size_t cut = before; cut <= len; cut++) {
        /* The end is missing, or was never written: zeros. */
        for (int zeros = 0; zeros < 2; zeros++) {
            char torn[4096];
            memcpy(torn, whole, cut);
            memset(torn + cut, 0, len - cut);
            spill(path, torn, zeros ? len : cut);
            CHECK_EQ(reopen(plain), HF_OK);
            /* The last zeros are padding: the record is whole without. */
            bool is_whole = figures().recovered == 5;
            CHECK(is_whole || figures().recovered == 3);
            CHECK(!is_whole || cut + 8 > len);
            CHECK(is_whole || cut < len);
            check_get("a", is_whole ? "2" : "1");
            check_get("b", is_whole ? NULL : "1");
            put("z", "9");
            crash();
            CHECK_EQ(reopen(plain), HF_OK);
            CHECK_EQ(figures().recovered, is_whole ? 6 : 4);
            check_get("z", "9");
            crash();
            CHECK(segment_path(1) != NULL);
            CHECK_EQ(unlink(segment_path(1)), 0);
        }
    }
}

/* Flips every bit of the log in turn: nothing wrong is ever read. */
TEST(damage_before_the_end_is_told)
{
    static char whole[4096], hurt[4096];

    begin_log(plain);
    put("a", "1");
    put("b", "1");
    size_t len = slurp(segment_path(0), whole, sizeof whole);
    crash();
    char path[1024];
    snprintf(path, sizeof path, "%s", segment_path(0));
    size_t last = len - (32 + 14 + 2); /* a frame, padded */
    CHECK_EQ(memcmp(whole + last, "HFWBFRM1", 8), 0);
    for (size_t bit = 0; bit < len * 8; bit++) {
        memcpy(hurt, whole, len);
        hurt[bit / 8] = (char)(hurt[bit / 8] ^ (1 << bit % 8));
        spill(path, hurt, len);
        enum hf_status status = reopen(plain);
        if (status == HF_OK) {
            /* The last frame: it cannot be told from a torn one. Or padding. */
            CHECK(bit / 8 >= last || (bit / 8 >= last - 2 && bit / 8 < last));
            check_get("a", "1");
            crash();
        } else {
            CHECK_EQ(status, HF_CORRUPT);
            CHECK(bit / 8 < last);
        }
    }
}

TEST(a_missing_segment_is_told)
{
    begin_log((struct hf_writebehind_opts){.segment_bytes = 100,
                                           .log_bytes = 100000});
    for (int i = 0; i < 12; i++)
        put("a", "1");
    CHECK(figures().log_segments > 3);
    crash();
    CHECK_EQ(unlink(segment_path(1)), 0);
    CHECK_EQ(reopen(plain), HF_CORRUPT);
}

TEST(a_segment_that_was_not_finished_is_no_damage)
{
    char path[1024];

    begin_log(plain);
    put("a", "1");
    crash();
    snprintf(path, sizeof path, "%s/segment-%016x.log", folder, 2);
    for (size_t len = 0; len < WB_HEADER_BYTES; len += 21) {
        char zeros[WB_HEADER_BYTES] = {0};
        spill(path, zeros, len);
        CHECK_EQ(reopen(plain), HF_OK);
        CHECK_EQ(figures().recovered, 1);
        crash();
        CHECK_EQ(access(path, F_OK), -1);
    }
    /* More than a header: there was something in it. */
    char zeros[WB_HEADER_BYTES + 1] = {0};
    spill(path, zeros, sizeof zeros);
    CHECK_EQ(reopen(plain), HF_CORRUPT);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(reopen(plain), HF_OK);
    end();
}

TEST(segments_go_when_all_in_them_is_in_the_store)
{
    begin_log((struct hf_writebehind_opts){
        .segment_bytes = 200, .log_bytes = 100000, .batch_max = 4});
    memory_hold(&test.memory, true);
    for (int i = 0; i < 40; i++)
        put(i % 2 ? "a" : "b", "1");
    uint64_t segments = figures().log_segments;
    CHECK(segments > 5);
    CHECK_EQ(figures().coalesced, 38);
    memory_hold(&test.memory, false);
    flush();
    CHECK_EQ(figures().log_segments, 1);
    CHECK(figures().log_bytes < 300);
    put("c", "1");
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK(figures().recovered < 8);
    check_get("c", "1");
    end();
}

static uint64_t applies_left;

static void count_down(void *context, struct memory_store *memory)
{
    (void)context;
    if (--applies_left == 0) {
        memory->fail = 1000;
        memory->status = HF_IO;
    }
}

/* The crash comes after each number of transactions: what they left is needed,
 * and what was before them is gone. */
TEST(a_segment_stays_while_one_of_its_records_is_needed)
{
    enum { KEYS = 12 };

    for (uint64_t left = 1; left < KEYS; left++) {
        struct hf_writebehind_opts opts = {
            .segment_bytes = 100, .log_bytes = 100000, .batch_max = 1};
        char key[2] = "a";
        begin_log(opts);
        memory_hold(&test.memory, true);
        for (; key[0] < 'a' + KEYS; key[0]++)
            put(key, "1");
        applies_left = left;
        test.memory.applied = count_down;
        memory_hold(&test.memory, false);
        await(failures_are, 1);
        crash();
        test.memory.applied = NULL;
        CHECK_EQ(reopen(opts), HF_OK);
        CHECK(figures().recovered >= KEYS - left);
        CHECK(figures().recovered <= KEYS - left + 2);
        for (key[0] = 'a'; key[0] < 'a' + KEYS; key[0]++)
            check_get(key, "1");
        end();
    }
}

TEST(the_log_has_a_bound_too)
{
    begin_log((struct hf_writebehind_opts){
        .segment_bytes = 200, .log_bytes = 1000, .refuse = true});
    enum hf_status status = HF_OK;
    int puts = 0;
    for (; status == HF_OK && puts < 1000; puts++)
        status = try_put("a", "1", HF_NOW);
    CHECK_EQ(status, HF_FULL); /* one key, yet many records */
    CHECK(puts > 5 && puts < 30);
    CHECK(figures().log_bytes <= 1000);
    flush();
    put("a", "2");
    end();
}

TEST(one_at_a_time_has_it_open)
{
    struct hf_writebehind *other;
    struct hf_writebehind_opts opts;

    begin_log(plain);
    opts = completed(plain);
    opts.log_dir = folder;
    CHECK_EQ(hf_writebehind_open(&other, &opts), HF_EXISTS);
    end();
    opts.log_dir = "/nowhere/at/all";
    CHECK_EQ(hf_writebehind_open(&other, &opts), HF_IO);
}

/* ---- A disk that fails. ---- */

static void fail(unsigned kinds, uint64_t at, int error)
{
    disk.watched = kinds;
    hf_u64_store(&disk.count, 0, __ATOMIC_RELAXED);
    disk.fail_at = at;
    disk.error = error;
}

TEST(a_full_disk_is_told_and_changes_nothing)
{
    begin_log(plain);
    put("a", "1");
    for (int torn = 0; torn < 2; torn++) {
        disk.torn = torn;
        fail(BROKEN_WRITE, 0, ENOSPC);
        CHECK_EQ(try_put("a", "2", HF_FOREVER), HF_FULL);
        fail(BROKEN_WRITE, 0, EIO);
        CHECK_EQ(try_group("a=2 b=2", HF_FOREVER), HF_IO);
    }
    CHECK_EQ(figures().refused, 4);
    CHECK_EQ(figures().changes, 1);
    CHECK(!figures().log_failed);
    check_get("a", "1");
    check_get("b", NULL);
    fail(0, 0, 0);
    put("b", "3");
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 2);
    check_get("a", "1");
    check_get("b", "3");
    end();
}

TEST(a_new_segment_that_cannot_be_made_is_told_and_tried_again)
{
    static const unsigned kinds[] = {BROKEN_OPEN, BROKEN_WRITE, BROKEN_SYNC,
                                     BROKEN_FOLDER};
    struct hf_writebehind_opts opts = {.segment_bytes = 100,
                                       .log_bytes = 100000};

    begin_log(opts);
    for (unsigned i = 0; i < 4; i++) {
        struct stat about = {0};
        while (about.st_size < 100) { /* until the next put needs a new one */
            put("a", "1");
            unsigned place = (unsigned)figures().log_segments - 1;
            CHECK_EQ(stat(segment_path(place), &about), 0);
        }
        fail(kinds[i], 0, ENOSPC);
        CHECK_EQ(try_put("a", "2", HF_NOW), HF_FULL);
        check_get("a", "1");
        fail(0, 0, 0);
        put("a", "1");
    }
    CHECK(!figures().log_failed);
    uint64_t changes = figures().changes;
    crash();
    CHECK_EQ(reopen(opts), HF_OK);
    CHECK_EQ(figures().recovered, changes);
    end();
}

TEST(a_sync_that_fails_is_the_end_of_the_log)
{
    begin_log(plain);
    put("a", "1");
    fail(BROKEN_SYNC, 0, EIO);
    CHECK_EQ(try_put("a", "2", HF_FOREVER), HF_IO);
    check_get("a", "1");
    fail(0, 0, 0);
    CHECK_EQ(try_put("b", "1", HF_FOREVER), HF_IO); /* for ever */
    CHECK(figures().log_failed);
    flush(); /* the store still gets what was accepted */
    check_trace("a=1;");
    end();
    CHECK(segment_path(0) == NULL);
    CHECK_EQ(reopen(plain), HF_OK);
    put("b", "1");
    end();
}

TEST(a_torn_write_that_cannot_be_cut_is_the_end_of_the_log)
{
    begin_log(plain);
    put("a", "1");
    disk.torn = true;
    disk.fail_count = 2;
    fail(BROKEN_WRITE | BROKEN_CUT, 0, EIO);
    CHECK_EQ(try_put("a", "2", HF_FOREVER), HF_IO);
    fail(0, 0, 0);
    CHECK_EQ(try_put("a", "3", HF_FOREVER), HF_IO);
    crash();
    CHECK_EQ(reopen(plain), HF_OK); /* its torn end is cut now */
    check_get("a", "1");
    put("a", "3");
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    check_get("a", "3");
    end();
}

TEST(a_segment_that_cannot_be_removed_is_removed_later)
{
    struct hf_writebehind_opts opts = {.segment_bytes = 100,
                                       .log_bytes = 100000};

    begin_log(opts);
    for (int i = 0; i < 10; i++)
        put("a", "1");
    uint64_t segments = figures().log_segments;
    disk.fail_count = 1;
    fail(BROKEN_REMOVE, 0, EIO);
    flush();
    CHECK_EQ(figures().log_segments, segments);
    put("a", "2");
    fail(BROKEN_FOLDER, 0, EIO);
    flush();
    CHECK(figures().log_segments >= segments);
    fail(0, 0, 0);
    put("a", "3");
    flush();
    CHECK_EQ(figures().log_segments, 1);
    end();
}

/* Every call of the disk fails once, in a run that opens, puts, flushes and
 * closes; what was acknowledged is there afterwards. */
TEST(whatever_fails_nothing_acknowledged_is_lost)
{
    struct hf_writebehind_opts opts = {.segment_bytes = 150,
                                       .log_bytes = 100000};
    static const char *const values[] = {"1", "2", "3", "4", "5", "6"};

    for (uint64_t at = 0; at < 60; at++) {
        const char *acknowledged = NULL, *unknown = NULL;
        begin_log(opts);
        put("b", "1");
        crash();
        fail(BROKEN_ALL, at, EIO);
        if (reopen(opts) == HF_OK) {
            for (int i = 0; i < 6; i++) {
                if (try_put("a", values[i], HF_NOW) == HF_OK) {
                    acknowledged = values[i];
                    unknown = NULL;
                } else if (figures().log_failed && unknown == NULL) {
                    unknown = values[i];
                }
                if (i == 3)
                    (void)hf_writebehind_flush(test.behind, HF_FOREVER);
            }
            crash();
        }
        fail(0, 0, 0);
        CHECK_EQ(reopen(opts), HF_OK);
        check_get("b", "1");
        char text[MEMORY_BYTES] = "";
        enum hf_status status =
            hf_writebehind_get(test.behind, "a", 1, note_value, text);
        if (acknowledged == NULL && unknown == NULL)
            CHECK_EQ(status, HF_NOTFOUND);
        else if (unknown == NULL || strcmp(text, unknown) != 0)
            CHECK_TEXT(text, strlen(text),
                       acknowledged == NULL ? "" : acknowledged);
        end();
        char command_path[1024];
        snprintf(command_path, sizeof command_path, "%s/lock", folder);
        (void)unlink(command_path);
        (void)rmdir(folder);
    }
}

TEST(without_memory_a_logged_put_changes_nothing)
{
    enum hf_status status = HF_NOMEM;
    uint64_t i;

    begin_log(plain);
    for (i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 100);
        hf_memory_fail_after(i);
        status = try_group("a=1 b=1", HF_NOW);
        hf_memory_fail_never();
        if (status == HF_NOMEM)
            check_get("a", NULL);
    }
    CHECK_EQ(status, HF_OK);
    CHECK(i > 4); /* two changes, a group, a segment, a frame */
    crash();
    for (status = HF_NOMEM, i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 100);
        hf_memory_fail_after(i);
        status = reopen(plain);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    CHECK_EQ(figures().recovered, 2);
    check_get("b", "1");
    end();
}

/* ---- Many at once. ---- */

static void put_many(void *context, int index)
{
    char key[16], value[16];

    (void)context;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "k%d", index);
        snprintf(value, sizeof value, "%d", i);
        if (try_put(key, value, HF_FOREVER) != HF_OK)
            abort();
    }
}

TEST(who_puts_at_the_same_time_shares_a_sync)
{
    begin_log(plain);
    test_threads(8, put_many, NULL);
    CHECK_EQ(figures().log_records, 1600);
    CHECK(figures().log_syncs <= 1600);
    crash();
    CHECK_EQ(reopen(plain), HF_OK);
    CHECK_EQ(figures().recovered, 1600);
    check_get("k0", "199");
    check_get("k7", "199");
    end();
}
