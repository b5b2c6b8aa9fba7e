/* disk.c - the file calls that all disks share, and the plain disk. */
#include "journal/disk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"

enum hf_status journal_io_files(struct journal_io *io)
{
    const struct hf_disk *disk = hf_disk_system();

    io->open = disk->open;
    io->read = disk->read;
    io->write = disk->write;
    io->sync = disk->sync;
    io->sync_folder = disk->sync_folder;
    io->rename = disk->rename;
    io->remove = disk->remove;
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
    ((struct plain *)io)->error = io->write(io, fd, data, len, offset);
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
