/* segment.c - life of a segment file, and the window through which it is
 * read. */
#include "journal/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/journal.h"

/* Smallest read of a segment. */
#define WINDOW_BYTES (1u << 20)

static int write_zeros(struct journal_io *io, int fd, uint64_t bytes,
                       const char *fill)
{
    int cause = 0;

    for (uint64_t at = 0; at < bytes && cause == 0;) {
        uint64_t len = bytes - at;
        if (len > SEGMENT_FILL_BYTES)
            len = SEGMENT_FILL_BYTES;
        cause = io->write(io, fd, fill, len, at);
        at += len;
    }
    return cause;
}

enum hf_status segment_make(struct folder *folder, int slot, uint64_t bytes,
                            const char *fill, bool direct, char *error)
{
    struct journal_io *io = folder->io;
    const char *name = FOLDER_SEGMENT_TEMPORARY;
    char spare[FOLDER_NAME_MAX];
    int flags = O_RDWR | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0);
    int fd;

    folder_spare_name(spare, slot);
    int cause = io->open(io, folder->fd, name, flags, &fd);
    if (cause != 0)
        return folder_failed(folder, "make", name, cause, error);
    cause = write_zeros(io, fd, bytes, fill);
    if (cause == 0)
        cause = io->sync(io, fd);
    close(fd);
    if (cause == 0)
        cause = io->rename(io, folder->fd, name, spare);
    if (cause == 0)
        return HF_OK;
    (void)io->remove(io, folder->fd, name);
    return folder_failed(folder, "fill", name, cause, error);
}

static int write_flags(bool always)
{
    return O_RDWR | (always ? O_DIRECT | O_DSYNC : 0);
}

/* A file that was read has pages in the system's cache, and a direct write has
 * to get rid of each one first: a slow way that is better gone once. */
static void forget_pages(int fd)
{
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static enum hf_status draw_salt(uint64_t *salt)
{
    ssize_t got;

    do
        got = getrandom(salt, sizeof *salt, 0);
    while (got < 0 && errno == EINTR);
    return got == sizeof *salt ? HF_OK : HF_IO;
}

/* The header must be on disk before the name says that it is there: a named
 * segment without a valid header is damage, never a crash. */
enum hf_status segment_open(struct folder *folder, int slot,
                            struct segment_header header, bool always,
                            char *block, struct segment *out, char *error)
{
    struct journal_io *io = folder->io;
    char spare[FOLDER_NAME_MAX];
    char name[FOLDER_NAME_MAX];
    struct stat info;
    int fd;

    folder_spare_name(spare, slot);
    folder_segment_name(name, header.first);
    if (draw_salt(&header.salt) != HF_OK)
        return folder_failed(folder, "draw the salt of", name, errno, error);
    int cause = io->open(io, folder->fd, spare, write_flags(always), &fd);
    if (cause != 0)
        return folder_failed(folder, "open", spare, cause, error);
    forget_pages(fd);
    cause = fstat(fd, &info) == 0 ? 0 : errno;
    if (cause == 0) {
        header.bytes = (uint64_t)info.st_size;
        segment_header_encode(&header, block);
        cause = io->write(io, fd, block, JOURNAL_BLOCK, 0);
    }
    if (cause == 0)
        cause = io->sync(io, fd);
    if (cause == 0)
        cause = io->rename(io, folder->fd, spare, name);
    if (cause == 0)
        cause = io->sync_folder(io, folder->fd);
    if (cause != 0) {
        close(fd);
        return folder_failed(folder, "start", name, cause, error);
    }
    *out = (struct segment){fd, header.bytes, JOURNAL_BLOCK, header};
    return HF_OK;
}

enum hf_status segment_reopen(struct folder *folder, bool always,
                              struct segment *out, char *error)
{
    struct journal_io *io = folder->io;
    char name[FOLDER_NAME_MAX];

    folder_segment_name(name, out->header.first);
    int cause = io->open(io, folder->fd, name, write_flags(always), &out->fd);
    if (cause != 0)
        return folder_failed(folder, "open", name, cause, error);
    forget_pages(out->fd);
    return HF_OK;
}

void segment_reader_init(struct segment_reader *reader, struct folder *folder)
{
    *reader = (struct segment_reader){.folder = folder, .fd = -1};
}

void segment_reader_destroy(struct segment_reader *reader)
{
    if (reader->fd >= 0) {
        forget_pages(reader->fd); /* it may be written to */
        close(reader->fd);
    }
    hf_free(reader->window);
    *reader = (struct segment_reader){.folder = reader->folder, .fd = -1};
}

/* Brings file bytes offset .. offset + need into the window; HF_EMPTY if the
 * file is too short for that. */
static enum hf_status look(struct segment_reader *reader, uint64_t offset,
                           size_t need, char *error)
{
    struct journal_io *io = reader->folder->io;
    size_t len = need > WINDOW_BYTES ? need : WINDOW_BYTES;
    char name[FOLDER_NAME_MAX];

    if (offset > reader->bytes || reader->bytes - offset < need)
        return HF_EMPTY;
    if (offset >= reader->at && offset - reader->at <= reader->len &&
        reader->len - (offset - reader->at) >= need)
        return HF_OK;
    if (len > reader->cap) {
        char *window = hf_realloc(reader->window, len);
        if (window == NULL)
            return journal_say(error, HF_NOMEM, "no memory to read %s",
                               reader->folder->path);
        reader->window = window;
        reader->cap = len;
    }
    reader->at = offset;
    int cause = io->read(io, reader->fd, reader->window, reader->cap, offset,
                         &reader->len);
    if (cause != 0) {
        reader->len = 0;
        folder_segment_name(name, reader->header.first);
        return folder_failed(reader->folder, "read", name, cause, error);
    }
    return reader->len >= need ? HF_OK : HF_EMPTY;
}

enum hf_status segment_reader_open(struct segment_reader *reader,
                                   uint64_t first, char *error)
{
    struct folder *folder = reader->folder;
    char name[FOLDER_NAME_MAX];
    struct stat info;

    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
    reader->len = 0;
    reader->header = (struct segment_header){.first = first};
    folder_segment_name(name, first);
    int cause =
        folder->io->open(folder->io, folder->fd, name, O_RDONLY, &reader->fd);
    if (cause == 0 && fstat(reader->fd, &info) != 0)
        cause = errno;
    if (cause != 0) {
        folder_failed(folder, "open", name, cause, error);
        return cause == ENOENT ? HF_NOTFOUND : HF_IO;
    }
    reader->bytes = (uint64_t)info.st_size;
    enum hf_status status = look(reader, 0, JOURNAL_BLOCK, error);
    if (status == HF_OK)
        status = segment_header_decode(reader->window, &reader->header);
    if (status == HF_OK && reader->header.first != first)
        status = HF_CORRUPT;
    reader->header.first = first;
    return status == HF_EMPTY ? HF_CORRUPT : status;
}

static bool padding_is_zero(const char *data, const struct batch *batch)
{
    static const char zeros[JOURNAL_BLOCK];
    size_t at = BATCH_HEADER_BYTES + batch->records.len;

    return memcmp(data + at, zeros, batch->disk_bytes - at) == 0;
}

enum hf_status segment_reader_batch(struct segment_reader *reader,
                                    uint64_t offset, struct batch *out,
                                    char *error)
{
    size_t need = JOURNAL_BLOCK;
    bool first_look = true;

    assert(offset % JOURNAL_BLOCK == 0);
    for (;;) {
        enum hf_status status = look(reader, offset, need, error);
        if (status == HF_EMPTY && !first_look)
            return HF_CORRUPT; /* it claims more than the file holds */
        if (status != HF_OK)
            return status;
        const char *data = reader->window + (offset - reader->at);
        status = batch_decode(hf_bytes(data, need), reader->header.salt, out);
        if (status == HF_OK && reader->header.bytes != 0 &&
            !padding_is_zero(data, out))
            return HF_CORRUPT;
        if (status != HF_MORE)
            return status;
        assert(out->disk_bytes > need);
        need = out->disk_bytes;
        first_look = false;
    }
}

uint64_t segment_reader_claim(struct segment_reader *reader, uint64_t offset,
                              size_t *disk_bytes)
{
    char error[JOURNAL_ERROR_MAX];

    if (look(reader, offset, JOURNAL_BLOCK, error) != HF_OK)
        return 0;
    return batch_claim(reader->window + (offset - reader->at), disk_bytes);
}
