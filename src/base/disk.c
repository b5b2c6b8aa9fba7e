/* disk.c - the disk of the system. */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_MODE 0640

static int disk_open(void *context, int dir, const char *name, int flags,
                     int *fd)
{
    (void)context;
    *fd = openat(dir, name, flags | O_CLOEXEC, FILE_MODE);
    if (*fd < 0 && errno == EINVAL && (flags & O_DIRECT))
        *fd = openat(dir, name, (flags & ~O_DIRECT) | O_CLOEXEC, FILE_MODE);
    return *fd < 0 ? errno : 0;
}

static int disk_read(void *context, int fd, void *data, size_t len,
                     uint64_t offset, size_t *got)
{
    (void)context;
    return hf_file_read(fd, data, len, offset, got);
}

static int disk_write(void *context, int fd, const void *data, size_t len,
                      uint64_t offset)
{
    (void)context;
    return hf_file_write(fd, data, len, offset);
}

static int disk_sync(void *context, int fd)
{
    (void)context;
    return fdatasync(fd) == 0 ? 0 : errno;
}

/* fdatasync may leave out a name: it need not change the folder's size. */
static int disk_sync_folder(void *context, int dir)
{
    (void)context;
    return fsync(dir) == 0 ? 0 : errno;
}

static int disk_rename(void *context, int dir, const char *from, const char *to)
{
    (void)context;
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

static int disk_cut(void *context, int fd, uint64_t len)
{
    (void)context;
    return ftruncate(fd, (off_t)len) == 0 ? 0 : errno;
}

static int disk_remove(void *context, int dir, const char *name)
{
    (void)context;
    return unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

const struct hf_disk *hf_disk_system(void)
{
    static const struct hf_disk disk = {
        disk_open,   disk_read, disk_write,  disk_sync,       disk_sync_folder,
        disk_rename, disk_cut,  disk_remove, .context = NULL,
    };

    return &disk;
}
