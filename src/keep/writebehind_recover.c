/* writebehind_recover.c - opening the log, and reading it again.
 *
 * Segments are read in order and their records made dirty in memory, none of
 * them written: so of each key only the last value gets to the store, which is
 * the one that it has, or a newer one. How the end is judged is told in
 * writebehind_log.c. What is torn is cut off before anything new is written.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/little.h"
#include "base/memory.h"
#include "keep/writebehind_state.h"

#define FOLDER_MODE 0750
#define NAME_BEFORE "segment-"
#define NAME_AFTER  ".log"
#define NAME_DIGITS 16
#define LOOK_BYTES  (1u << 16) /* a multiple of WB_FRAME_ALIGN */

/* A segment while it is read. */
struct reader {
    struct hf_writebehind *behind;
    int fd;
    uint64_t size;
    uint64_t at; /* where the next frame begins */
    struct hf_hash_seed salt;
    struct hf_buf frame;
};

/* ---- Records. ---- */

static bool take_u32(struct hf_bytes *from, uint32_t *out)
{
    if (from->len < sizeof *out)
        return false;
    *out = hf_get_u32(from->data);
    *from = hf_bytes(from->data + sizeof *out, from->len - sizeof *out);
    return true;
}

/* One change; false: it is none. */
static bool take_change(struct hf_bytes *from, struct hf_store_change *out)
{
    uint32_t key_len, value_len;

    if (!take_u32(from, &key_len) || !take_u32(from, &value_len))
        return false;
    out->remove = value_len == WB_REMOVED;
    if (out->remove)
        value_len = 0;
    if (key_len == 0 || key_len > HF_STORE_KEY_MAX ||
        value_len > HF_STORE_VALUE_MAX ||
        (size_t)key_len + value_len > from->len)
        return false;
    out->key = from->data;
    out->key_len = key_len;
    out->value = from->data + key_len;
    out->value_len = value_len;
    *from = hf_bytes(from->data + key_len + value_len,
                     from->len - key_len - value_len);
    return true;
}

static enum hf_status apply_changes(struct hf_writebehind *behind,
                                    const struct hf_store_change *changes,
                                    size_t count)
{
    struct wb_op op = {0};
    enum hf_status status = hf_wb_op_fill(behind, &op, changes, count);

    if (status != HF_OK)
        return status;
    hf_mutex_lock(&behind->mutex);
    op.number = ++behind->last;
    behind->used_count += count;
    behind->used_bytes += op.bytes;
    behind->recovered += count;
    hf_wb_apply(behind, &op, hf_clock_now_ns(behind->clock));
    hf_mutex_unlock(&behind->mutex);
    hf_wb_discard(op.old, op.empty);
    return HF_OK;
}

static enum hf_status apply_record(struct hf_writebehind *behind,
                                   struct hf_bytes *from)
{
    enum hf_status status = HF_OK;
    uint32_t count;

    /* The smallest change has two lengths and a key of one byte. */
    if (!take_u32(from, &count) || count == 0 ||
        count > HF_WRITEBEHIND_GROUP_MAX || count > from->len / 9)
        return HF_CORRUPT;
    struct hf_store_change *changes = hf_alloc(count * sizeof *changes);
    if (changes == NULL)
        return HF_NOMEM;
    for (uint32_t i = 0; i < count && status == HF_OK; i++)
        status = take_change(from, &changes[i]) ? HF_OK : HF_CORRUPT;
    if (status == HF_OK)
        status = apply_changes(behind, changes, count);
    hf_free(changes);
    return status;
}

/* ---- Frames. ---- */

/* Reads the frame at `at` into the buffer. HF_NOTFOUND: there is no valid one.
 */
static enum hf_status read_frame(struct reader *reader, uint64_t at)
{
    const struct hf_disk *disk = reader->behind->log.disk;
    struct hf_buf *frame = &reader->frame;
    size_t got;

    frame->len = 0;
    if (at + WB_FRAME_BYTES > reader->size)
        return HF_NOTFOUND;
    if (hf_buf_reserve(frame, WB_FRAME_BYTES) != HF_OK)
        return HF_NOMEM;
    int error = disk->read(disk->context, reader->fd, frame->data,
                           WB_FRAME_BYTES, at, &got);
    if (error != 0)
        return HF_IO;
    if (got < WB_FRAME_BYTES || memcmp(frame->data, WB_FRAME_MAGIC, 8) != 0)
        return HF_NOTFOUND;
    size_t len = hf_get_u32(frame->data + 24);
    if (len > reader->size - at - WB_FRAME_BYTES)
        return HF_NOTFOUND;
    if (hf_buf_reserve(frame, WB_FRAME_BYTES + len) != HF_OK)
        return HF_NOMEM;
    error = disk->read(disk->context, reader->fd, frame->data + WB_FRAME_BYTES,
                       len, at + WB_FRAME_BYTES, &got);
    if (error != 0)
        return HF_IO;
    if (got < len ||
        hf_get_u64(frame->data + 8) !=
            hf_hash(reader->salt, hf_bytes(frame->data + 16, 16 + len)))
        return HF_NOTFOUND;
    frame->len = WB_FRAME_BYTES + len;
    return HF_OK;
}

/* Its records become dirty. */
static enum hf_status apply_frame(struct reader *reader)
{
    const char *data = reader->frame.data;
    struct hf_bytes records =
        hf_bytes(data + WB_FRAME_BYTES, reader->frame.len - WB_FRAME_BYTES);
    uint32_t count = hf_get_u32(data + 28);
    enum hf_status status = HF_OK;

    if (hf_get_u64(data + 16) != reader->behind->last + 1 || count == 0)
        return HF_CORRUPT;
    while (count-- > 0 && status == HF_OK)
        status = apply_record(reader->behind, &records);
    return status == HF_OK && records.len > 0 ? HF_CORRUPT : status;
}

static uint64_t align(uint64_t bytes)
{
    return (bytes + WB_FRAME_ALIGN - 1) / WB_FRAME_ALIGN * WB_FRAME_ALIGN;
}

static enum hf_status read_frames(struct reader *reader)
{
    enum hf_status status;

    while ((status = read_frame(reader, reader->at)) == HF_OK) {
        status = apply_frame(reader);
        if (status != HF_OK)
            return status;
        reader->at = align(reader->at + reader->frame.len);
    }
    return status == HF_NOTFOUND ? HF_OK : status;
}

/* ---- The end. ---- */

/* Does a valid frame begin in these bytes of the file, which lie at `at`? */
static enum hf_status look_in(struct reader *reader, const char *data,
                              size_t len, uint64_t at)
{
    enum hf_status status = HF_NOTFOUND;

    for (size_t i = 0; i + WB_FRAME_ALIGN <= len && status == HF_NOTFOUND;
         i += WB_FRAME_ALIGN)
        if (memcmp(data + i, WB_FRAME_MAGIC, WB_FRAME_ALIGN) == 0)
            status = read_frame(reader, at + i);
    return status;
}

/* HF_OK: nothing valid follows, what is there is a torn frame. */
static enum hf_status check_torn(struct reader *reader)
{
    const struct hf_disk *disk = reader->behind->log.disk;
    enum hf_status status = HF_NOTFOUND;
    size_t got = LOOK_BYTES;
    char *data = hf_alloc(LOOK_BYTES);

    if (data == NULL)
        return HF_NOMEM;
    for (uint64_t at = reader->at + WB_FRAME_ALIGN;
         status == HF_NOTFOUND && got == LOOK_BYTES; at += got) {
        if (disk->read(disk->context, reader->fd, data, LOOK_BYTES, at, &got))
            status = HF_IO;
        else
            status = look_in(reader, data, got, at);
    }
    hf_free(data);
    if (status == HF_NOTFOUND)
        return HF_OK;
    return status == HF_OK ? HF_CORRUPT : status;
}

static enum hf_status cut(struct reader *reader)
{
    const struct hf_disk *disk = reader->behind->log.disk;

    int error = disk->cut(disk->context, reader->fd, reader->at);
    if (error == 0)
        error = disk->sync(disk->context, reader->fd);
    return hf_wb_status(error);
}

/* The last frame's padding may be missing from a file that was cut short. */
static bool is_at_end(const struct reader *reader)
{
    return reader->size <= reader->at;
}

/* ---- A segment. ---- */

/* HF_NOTFOUND: it has no valid header. */
static enum hf_status read_header(struct reader *reader, uint64_t first)
{
    const struct hf_disk *disk = reader->behind->log.disk;
    char header[WB_HEADER_BYTES];
    size_t got;

    if (disk->read(disk->context, reader->fd, header, sizeof header, 0, &got))
        return HF_IO;
    if (got < sizeof header || memcmp(header, WB_HEADER_MAGIC, 8) != 0 ||
        hf_get_u64(header + 8) !=
            hf_hash(hf_wb_header_seed(),
                    hf_bytes(header + WB_HEADER_CHECKED,
                             WB_HEADER_BYTES - WB_HEADER_CHECKED)))
        return HF_NOTFOUND;
    if (hf_get_u32(header + 16) != WB_LOG_VERSION ||
        hf_get_u64(header + 24) != first)
        return HF_CORRUPT;
    reader->salt = (struct hf_hash_seed){
        {hf_get_u64(header + 32), hf_get_u64(header + 40)}};
    reader->at = WB_HEADER_BYTES;
    return HF_OK;
}

static enum hf_status remove_segment(struct hf_writebehind *behind,
                                     uint64_t first)
{
    const struct hf_disk *disk = behind->log.disk;
    char name[WB_SEGMENT_NAME_BYTES];

    hf_wb_segment_name(name, first);
    int error = disk->remove(disk->context, behind->log.dir, name);
    if (error == 0)
        error = disk->sync_folder(disk->context, behind->log.dir);
    return hf_wb_status(error);
}

/* Reads all of it; the youngest may end anywhere. */
static enum hf_status read_whole(struct reader *reader, uint64_t first,
                                 bool youngest)
{
    enum hf_status status = read_header(reader, first);

    if (status == HF_NOTFOUND) {
        /* The header is on disk before the first frame is written. */
        reader->at = 0;
        return youngest && reader->size <= WB_HEADER_BYTES ? HF_OK : HF_CORRUPT;
    }
    if (status == HF_OK)
        status = read_frames(reader);
    if (status != HF_OK || is_at_end(reader))
        return status;
    status = youngest ? check_torn(reader) : HF_CORRUPT;
    return status == HF_OK ? cut(reader) : status;
}

static enum hf_status note_segment(struct hf_writebehind *behind,
                                   uint64_t first, uint64_t bytes)
{
    struct wb_log *log = &behind->log;
    struct wb_segment *segment = hf_alloc_zeroed(sizeof *segment);

    if (segment == NULL)
        return HF_NOMEM;
    segment->first = first;
    segment->last = behind->last;
    segment->bytes = bytes;
    *(log->youngest == NULL ? &log->oldest : &log->youngest->next) = segment;
    log->youngest = segment;
    log->bytes += bytes;
    log->segments++;
    return HF_OK;
}

static enum hf_status read_segment(struct hf_writebehind *behind,
                                   uint64_t first, bool youngest)
{
    const struct hf_disk *disk = behind->log.disk;
    struct reader reader = {.behind = behind, .fd = -1};
    char name[WB_SEGMENT_NAME_BYTES];
    struct stat about;

    hf_wb_segment_name(name, first);
    int error =
        disk->open(disk->context, behind->log.dir, name, O_RDWR, &reader.fd);
    if (error != 0 || fstat(reader.fd, &about) != 0) {
        if (error == 0)
            close(reader.fd);
        return HF_IO;
    }
    reader.size = (uint64_t)about.st_size;
    enum hf_status status = read_whole(&reader, first, youngest);
    close(reader.fd);
    hf_buf_destroy(&reader.frame);
    if (status != HF_OK)
        return status;
    /* Its name is that of the next one to be written. */
    if (behind->last < first)
        return youngest ? remove_segment(behind, first) : HF_CORRUPT;
    return note_segment(behind, first, reader.at);
}

/* ---- The folder. ---- */

static bool parse_name(const char *name, uint64_t *first)
{
    static const char hex[] = "0123456789abcdef";
    size_t before = strlen(NAME_BEFORE);

    if (strncmp(name, NAME_BEFORE, before) != 0 ||
        strspn(name + before, hex) != NAME_DIGITS ||
        strcmp(name + before + NAME_DIGITS, NAME_AFTER) != 0)
        return false;
    *first = strtoull(name + before, NULL, 16);
    return *first > 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* The first numbers of all segments, in order. */
static enum hf_status list_segments(const struct wb_log *log,
                                    struct hf_buf *firsts)
{
    int fd = openat(log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    enum hf_status status = HF_OK;
    struct dirent *entry;
    uint64_t first;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return HF_IO;
    }
    while (status == HF_OK && (entry = readdir(dir)) != NULL)
        if (parse_name(entry->d_name, &first))
            status = hf_buf_append(firsts, &first, sizeof first);
    closedir(dir);
    if (firsts->len > 0)
        qsort(firsts->data, firsts->len / sizeof first, sizeof first, compare);
    return status;
}

static enum hf_status read_segments(struct hf_writebehind *behind)
{
    struct hf_buf firsts = {0};
    enum hf_status status = list_segments(&behind->log, &firsts);
    size_t count = firsts.len / sizeof(uint64_t);
    uint64_t first;

    for (size_t i = 0; i < count && status == HF_OK; i++) {
        memcpy(&first, firsts.data + i * sizeof first, sizeof first);
        if (i == 0)
            behind->last = first - 1;
        status = first == behind->last + 1
                     ? read_segment(behind, first, i + 1 == count)
                     : HF_CORRUPT;
    }
    hf_buf_destroy(&firsts);
    return status;
}

/* A new folder must not vanish with all that is acknowledged in it. */
static int make_folder(const struct hf_disk *disk, const char *path, int *dir)
{
    bool made = mkdir(path, FOLDER_MODE) == 0;

    if (!made && errno != EEXIST)
        return errno;
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return errno;
    if (!made)
        return 0;
    int parent = openat(*dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return errno == EACCES ? 0 : errno;
    int error = disk->sync_folder(disk->context, parent);
    close(parent);
    return error;
}

enum hf_status hf_wb_log_open(struct hf_writebehind *behind,
                              const struct hf_disk *disk)
{
    struct wb_log *log = &behind->log;

    log->disk = disk;
    int error = make_folder(disk, behind->opts.log_dir, &log->dir);
    if (error == 0)
        error = disk->open(disk->context, log->dir, "lock", O_RDWR | O_CREAT,
                           &log->lock_fd);
    if (error != 0)
        return hf_wb_status(error);
    if (flock(log->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? HF_EXISTS : HF_IO;
    return read_segments(behind);
}
