/* disk_crash.c - begin and end of a disk, and what a crash leaves. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "sim/server/disk_state.h"

static void empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL)
        closedir(dir);
}

void disk_begin(const char *path, const struct disk_mix *mix)
{
    memset(&disk, 0, sizeof disk);
    snprintf(disk.path, sizeof disk.path, "%s", path);
    disk.mix = *mix;
    disk.dice = dice_make(world_seed(), "disk", 0, 0);
    (void)mkdir(path, 0750);
    empty_folder(path);
    disk.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(disk.dir >= 0);
}

void disk_end(void)
{
    while (disk.files != NULL) {
        struct disk_file *file = disk.files;
        disk.files = file->next;
        if (file->grave[0] != '\0')
            (void)unlinkat(disk.dir, file->grave, 0);
        disk_drop_olds(file, UINT64_MAX);
        free(file);
    }
    empty_folder(disk.path);
    close(disk.dir);
}

/* The file's own descriptor may be closed already. */
static int open_file(const struct disk_file *file)
{
    return openat(disk.dir, file->removed ? file->grave : file->name,
                  O_RDWR | O_CLOEXEC);
}

/* Where only a part is kept, a failed write keeps not even the beginning, so
 * that it cannot be whole by chance. */
bool disk_tear(const struct disk_flight *flight, bool failed)
{
    uint64_t style = dice_below(&disk.dice, 4);
    int fd = open_file(flight->file);
    size_t keep = (size_t)dice_below(&disk.dice, flight->len / DISK_SECTOR + 1);

    for (size_t at = 0; at < flight->len; at += DISK_SECTOR) {
        bool kept = style == 0   ? false
                    : style == 1 ? true
                    : style == 2 ? at / DISK_SECTOR < keep
                                 : dice_hit(&disk.dice, 500);
        size_t len =
            flight->len - at < DISK_SECTOR ? flight->len - at : DISK_SECTOR;
        if (kept && (style == 1 || !failed || at > 0))
            (void)hf_disk_write(NULL, fd, flight->data + at, len,
                                flight->offset + at);
    }
    close(fd);
    return style == 1;
}

static void lose_writes(struct disk_file *file)
{
    uint64_t style = dice_below(&disk.dice, 3);
    int fd = file->olds == NULL ? -1 : open_file(file);

    for (struct disk_old *old = file->olds; old != NULL; old = old->next) {
        for (size_t at = 0; at < old->len; at += DISK_SECTOR) {
            if (style == 0 || (style == 1 && dice_hit(&disk.dice, 500)))
                continue;
            size_t len =
                old->len - at < DISK_SECTOR ? old->len - at : DISK_SECTOR;
            (void)hf_disk_write(NULL, fd, old->data + at, len,
                                old->block * DISK_BLOCK + at);
        }
    }
    if (fd < 0)
        return;
    if (style != 0 && file->size > file->durable_size) {
        int code = ftruncate(fd, (off_t)file->durable_size);
        assert(code == 0);
        (void)code;
        file->size = file->durable_size;
    }
    close(fd);
}

static void unbury(struct disk_file *file)
{
    int code = renameat(disk.dir, file->grave, disk.dir, file->name);

    assert(code == 0);
    (void)code;
    file->removed = false;
}

static void undo_change(void)
{
    struct disk_change change = disk.changes[--disk.change_count];
    struct disk_file *file = change.file;

    if (change.kind == DISK_REMOVE) {
        unbury(file);
        return;
    }
    if (change.kind == DISK_CREATE) {
        (void)unlinkat(disk.dir, file->name, 0);
        file->removed = true; /* it never was; freed with the disk */
        file->grave[0] = '\0';
        disk_drop_olds(file, UINT64_MAX);
        return;
    }
    (void)renameat(disk.dir, file->name, disk.dir, change.from);
    memcpy(file->name, change.from, sizeof file->name);
    if (change.replaced != NULL)
        unbury(change.replaced);
}

/* At once, while whoever wrote still has its bytes. */
void disk_cut(void)
{
    if (disk.batch.busy && !disk.batch.done && disk.batch.flight.file != NULL)
        (void)disk_tear(&disk.batch.flight, false);
    for (size_t i = 0; i < disk.flight_count; i++)
        (void)disk_tear(&disk.flights[i], false);
    disk.flight_count = 0;
}

void disk_restart(bool power)
{
    disk.batch = (struct disk_batch){.number = disk.batch.number + 1};
    for (struct disk_file *file = disk.files; file; file = file->next) {
        if (!power)
            continue; /* the system still has it */
        lose_writes(file);
        disk_drop_olds(file, UINT64_MAX);
        file->durable_size = file->size;
    }
    size_t undo = power && dice_hit(&disk.dice, 700)
                      ? (size_t)dice_below(&disk.dice, disk.change_count + 1)
                      : 0;
    while (undo-- > 0)
        undo_change();
    if (power) {
        disk.settled += disk.change_count;
        disk_settle_changes(disk.change_count);
    }
    memset(disk.fds, 0, sizeof disk.fds);
    disk.fail = 0;
    disk.stall_ns = 0;
    disk.kill_in = 0;
}
