/* disk.c - the disk of the system. */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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

int hf_disk_read(void *context, int fd, void *data, size_t len, uint64_t offset,
                 size_t *got)
{
    (void)context;
    for (*got = 0; *got < len;) {
        ssize_t n =
            pread(fd, (char *)data + *got, len - *got, (off_t)(offset + *got));
        if (n == 0)
            break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int hf_disk_write(void *context, int fd, const void *data, size_t len,
                  uint64_t offset)
{
    (void)context;
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)data + done, len - done,
                           (off_t)(offset + done));
        if (n == 0)
            return EIO;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
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
        disk_open, hf_disk_read,     hf_disk_write,
        disk_sync, disk_sync_folder, disk_rename,
        disk_cut,  disk_remove,      .context = NULL,
    };

    return &disk;
}
