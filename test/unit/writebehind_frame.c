/* Tests of what the write-ahead log believes: frames that are whole and yet
 * cannot be, made by hand; and its figures while it writes. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/little.h"
#include "base/memory.h"
#include "support/broken_disk.h"
#include "support/writebehind.h"

static char folder[512];
static char path[600];
static struct broken_disk disk;
static char header[WB_HEADER_BYTES]; /* of a segment that was written */

static enum hf_status reopen(void)
{
    struct hf_writebehind_opts opts = completed(
        (struct hf_writebehind_opts){.age_ns = HF_FOREVER, .log_dir = folder});

    return hf_wb_open_on(&test.behind, &opts, &disk.disk);
}

static void begin_log(void)
{
    prepare();
    broken_disk_init(&disk);
    snprintf(folder, sizeof folder, "%s/log", test_folder());
    snprintf(path, sizeof path, "%s/segment-%016x.log", folder, 1);
    CHECK_EQ(reopen(), HF_OK);
}

/* ---- Frames made by hand. ---- */

/* Leaves a log with a header and nothing in it. */
static void make_header(void)
{
    begin_log();
    put("a", "1");
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK_EQ(read(fd, header, sizeof header), (ssize_t)sizeof header);
    close(fd);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
}

/* A segment with one frame of one record: its checksum is right. */
static void write_record(const char *record, size_t len)
{
    const struct hf_hash_seed salt = {
        {hf_get_u64(header + 32), hf_get_u64(header + 40)}};
    size_t padded = (WB_FRAME_BYTES + len + 7) / 8 * 8;
    char *frame = calloc(1, padded);

    CHECK(frame != NULL);
    memcpy(frame, WB_FRAME_MAGIC, 8);
    hf_put_u64(frame + 16, 1);
    hf_put_u32(frame + 24, (uint32_t)len);
    hf_put_u32(frame + 28, 1);
    memcpy(frame + WB_FRAME_BYTES, record, len);
    hf_put_u64(frame + 8, hf_hash(salt, hf_bytes(frame + 16, 16 + len)));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, header, sizeof header), (ssize_t)sizeof header);
    CHECK_EQ(write(fd, frame, padded), (ssize_t)padded);
    close(fd);
    free(frame);
}

/* So many deletes of "k", the smallest there are, in a record that says that
 * they are `told`. */
static void write_deletes(uint32_t told, uint32_t count)
{
    size_t len = 4 + (size_t)count * 9;
    char *record = malloc(len);

    CHECK(record != NULL);
    hf_put_u32(record, told);
    for (uint32_t i = 0; i < count; i++) {
        char *at = record + 4 + (size_t)i * 9;
        hf_put_u32(at, 1);
        hf_put_u32(at + 4, WB_REMOVED);
        at[8] = 'k';
    }
    write_record(record, len);
    free(record);
}

/* Allocations that are made until the log is refused. */
static uint64_t refused_after(void)
{
    enum hf_status status = HF_NOMEM;
    uint64_t count = 0;

    for (; status == HF_NOMEM; count++) {
        hf_memory_fail_after(count);
        status = reopen();
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_CORRUPT);
    return count;
}

TEST(a_record_with_as_many_changes_as_fit_comes_back)
{
    make_header();
    write_deletes(2, 2);
    CHECK_EQ(reopen(), HF_OK);
    CHECK_EQ(figures().recovered, 2);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
}

/* Before memory is asked for as many as it says. */
TEST(a_record_that_says_more_than_it_can_have_is_refused_at_once)
{
    make_header();
    write_deletes(0, 1);
    uint64_t none = refused_after();
    write_deletes(2, 1);
    CHECK_EQ(refused_after(), none);
    write_deletes(UINT32_MAX, 1);
    CHECK_EQ(refused_after(), none);
}

TEST(a_record_that_no_call_can_have_made_is_refused)
{
    make_header();
    write_deletes(HF_WRITEBEHIND_GROUP_MAX + 1, HF_WRITEBEHIND_GROUP_MAX + 1);
    CHECK_EQ(reopen(), HF_CORRUPT);
    write_deletes(1, 2); /* and something behind it */
    CHECK_EQ(reopen(), HF_CORRUPT);
}

/* ---- Figures. ---- */

static uint64_t frames;
static uint64_t wrong;

/* While a frame is written the log is as long as what was written before. */
static int look_and_write(void *context, int fd, const void *data, size_t len,
                          uint64_t offset)
{
    if (offset > 0) {
        frames++;
        wrong += figures().log_bytes != offset;
    }
    return broken_write(context, fd, data, len, offset);
}

TEST(what_waits_to_be_written_is_not_in_the_log_yet)
{
    struct stat file;

    prepare();
    broken_disk_init(&disk);
    disk.disk.write = look_and_write;
    frames = wrong = 0;
    snprintf(folder, sizeof folder, "%s/log", test_folder());
    snprintf(path, sizeof path, "%s/segment-%016x.log", folder, 1);
    CHECK_EQ(reopen(), HF_OK);
    put("a", "1");
    put("b", "22");
    put("c", "333");
    CHECK_EQ(frames, 3);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(stat(path, &file), 0);
    CHECK_EQ(figures().log_bytes, file.st_size);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
}
