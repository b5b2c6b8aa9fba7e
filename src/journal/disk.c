/* disk.c - the file calls that all disks share, and the plain disk. */
#include "journal/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define FILE_MODE 0640

static int file_open(struct journal_io *io, int dir, const char *name,
                     int flags, int *fd)
{
    (void)io;
    *fd = openat(dir, name, flags | O_CLOEXEC, FILE_MODE);
    if (*fd < 0 && errno == EINVAL && (flags & O_DIRECT))
        *fd = openat(dir, name, (flags & ~O_DIRECT) | O_CLOEXEC, FILE_MODE);
    return *fd < 0 ? errno : 0;
}

static int file_read(struct journal_io *io, int fd, void *data, size_t len,
                     uint64_t offset, size_t *got)
{
    (void)io;
    return hf_file_read(fd, data, len, offset, got);
}

static int file_write(struct journal_io *io, int fd, const void *data,
                      size_t len, uint64_t offset)
{
    (void)io;
    return hf_file_write(fd, data, len, offset);
}

static int file_sync(struct journal_io *io, int fd)
{
    (void)io;
    return fdatasync(fd) == 0 ? 0 : errno;
}

/* fdatasync may leave out a rename: it need not change the folder's size. */
static int file_sync_folder(struct journal_io *io, int dir)
{
    (void)io;
    return fsync(dir) == 0 ? 0 : errno;
}

static int file_rename(struct journal_io *io, int dir, const char *from,
                       const char *to)
{
    (void)io;
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

static int file_remove(struct journal_io *io, int dir, const char *name)
{
    (void)io;
    return unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

enum hf_status journal_io_files(struct journal_io *io)
{
    io->open = file_open;
    io->read = file_read;
    io->write = file_write;
    io->sync = file_sync;
    io->sync_folder = file_sync_folder;
    io->rename = file_rename;
    io->remove = file_remove;
    io->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return io->wake_fd < 0 ? HF_IO : HF_OK;
}

void journal_io_wake(struct journal_io *io)
{
    /* It fails only when the count is full: then it is readable already. */
    (void)eventfd_write(io->wake_fd, 1);
}

void journal_io_wake_clear(struct journal_io *io)
{
    eventfd_t count;

    (void)eventfd_read(io->wake_fd, &count); /* fails if not readable */
}

struct plain {
    struct journal_io io;
    int error;
};

static void plain_start(struct journal_io *io, int fd, const void *data,
                        size_t len, uint64_t offset)
{
    ((struct plain *)io)->error = file_write(io, fd, data, len, offset);
}

static enum hf_status plain_wait(struct journal_io *io, uint64_t timeout_ns,
                                 int *error)
{
    (void)timeout_ns;
    *error = ((struct plain *)io)->error;
    return HF_OK;
}

static void plain_close(struct journal_io *io)
{
    close(io->wake_fd);
    hf_free(io);
}

enum hf_status journal_io_plain(struct journal_io **out)
{
    struct plain *plain = hf_alloc_zeroed(sizeof *plain);

    if (plain == NULL)
        return HF_NOMEM;
    if (journal_io_files(&plain->io) != HF_OK) {
        hf_free(plain);
        return HF_IO;
    }
    plain->io.start = plain_start;
    plain->io.wait = plain_wait;
    plain->io.close = plain_close;
    *out = &plain->io;
    return HF_OK;
}
