/* broken_disk.h - a disk under the log of a writebehind that fails when told.
 *
 *   struct broken_disk disk;
 *   broken_disk_init(&disk);
 *   disk.watched = BROKEN_WRITE; disk.fail_at = 3; disk.error = ENOSPC;
 *   hf_wb_open_on(&behind, &opts, &disk.disk);
 *
 * Calls of the kinds that are watched are counted from 0. Syncs are skipped:
 * only the process dies in these tests.
 *
 * Threads: set by the test while no call is made.
 */
#ifndef TEST_SUPPORT_BROKEN_DISK_H
#define TEST_SUPPORT_BROKEN_DISK_H

#include "keep/writebehind_state.h"

enum broken_kind {
    BROKEN_OPEN = 1,
    BROKEN_READ = 2,
    BROKEN_WRITE = 4,
    BROKEN_SYNC = 8,
    BROKEN_FOLDER = 16,
    BROKEN_CUT = 32,
    BROKEN_REMOVE = 64,
};
#define BROKEN_ALL 127u

struct broken_disk {
    struct hf_disk disk;
    const struct hf_disk *under;
    unsigned watched;
    struct hf_atomic_u64 count; /* calls of these so far */
    uint64_t fail_at;           /* the number of the first that fails */
    uint64_t fail_count;        /* how many do */
    int error;
    bool torn; /* a write that fails writes its first half */
};

static inline bool broken_now(struct broken_disk *disk, enum broken_kind kind)
{
    if (!(disk->watched & kind))
        return false;
    uint64_t at = hf_u64_add(&disk->count, 1, __ATOMIC_RELAXED);
    return at >= disk->fail_at && at - disk->fail_at < disk->fail_count;
}

static inline int broken_open(void *context, int dir, const char *name,
                              int flags, int *fd)
{
    struct broken_disk *disk = context;

    if (broken_now(disk, BROKEN_OPEN))
        return disk->error;
    return disk->under->open(disk->under->context, dir, name, flags, fd);
}

static inline int broken_read(void *context, int fd, void *data, size_t len,
                              uint64_t offset, size_t *got)
{
    struct broken_disk *disk = context;

    if (broken_now(disk, BROKEN_READ))
        return disk->error;
    return disk->under->read(disk->under->context, fd, data, len, offset, got);
}

static inline int broken_write(void *context, int fd, const void *data,
                               size_t len, uint64_t offset)
{
    struct broken_disk *disk = context;

    if (!broken_now(disk, BROKEN_WRITE))
        return disk->under->write(disk->under->context, fd, data, len, offset);
    if (disk->torn)
        (void)disk->under->write(disk->under->context, fd, data, len / 2,
                                 offset);
    return disk->error;
}

static inline int broken_sync(void *context, int fd)
{
    (void)fd;
    return broken_now(context, BROKEN_SYNC)
               ? ((struct broken_disk *)context)->error
               : 0;
}

static inline int broken_sync_folder(void *context, int dir)
{
    (void)dir;
    return broken_now(context, BROKEN_FOLDER)
               ? ((struct broken_disk *)context)->error
               : 0;
}

static inline int broken_cut(void *context, int fd, uint64_t len)
{
    struct broken_disk *disk = context;

    if (broken_now(disk, BROKEN_CUT))
        return disk->error;
    return disk->under->cut(disk->under->context, fd, len);
}

static inline int broken_remove(void *context, int dir, const char *name)
{
    struct broken_disk *disk = context;

    if (broken_now(disk, BROKEN_REMOVE))
        return disk->error;
    return disk->under->remove(disk->under->context, dir, name);
}

static inline void broken_disk_init(struct broken_disk *disk)
{
    *disk = (struct broken_disk){
        .disk = {broken_open, broken_read, broken_write, broken_sync,
                 broken_sync_folder, NULL, broken_cut, broken_remove, disk},
        .under = hf_disk_system(),
        .fail_count = 1,
    };
}

#endif
