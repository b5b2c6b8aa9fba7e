/* disk.c - the file calls that all disks share, and the plain disk. */
#include "journal/disk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"

enum hf_status journal_io_new(size_t bytes, struct journal_io calls, void *out)
{
    const struct hf_disk *disk = hf_disk_system();
    struct journal_io *io = hf_alloc_zeroed(bytes);

    if (io == NULL)
        return HF_NOMEM;
    *io = calls;
    io->open = disk->open;
    io->read = disk->read;
    io->write = disk->write;
    io->sync = disk->sync;
    io->sync_folder = disk->sync_folder;
    io->rename = disk->rename;
    io->remove = disk->remove;
    io->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (io->wake_fd < 0) {
        hf_free(io);
        return HF_IO;
    }
    memcpy(out, &io, sizeof io);
    return HF_OK;
}

void journal_io_free(struct journal_io *io)
{
    close(io->wake_fd);
    hf_free(io);
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

enum hf_status journal_io_plain(struct journal_io **out)
{
    static const struct journal_io calls = {
        .start = plain_start, .wait = plain_wait, .close = journal_io_free};

    return journal_io_new(sizeof(struct plain), calls, out);
}
