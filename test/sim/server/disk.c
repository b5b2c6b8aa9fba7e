/* disk.c - calls of the journal, on files that remember their past. */
#include "sim/server/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "sim/server/disk_state.h"
#include "sim/server/loop.h"
#include "sim/server/record.h"

#define FILE_MODE 0640

struct disk disk;

/* ---- Faults. ---- */

void disk_stall(uint64_t ns)
{
    disk.stall_ns = ns;
}

void disk_fail(int error, bool batch)
{
    disk.fail = error;
    disk.fail_batch = batch;
}

void disk_fill(uint64_t until_ns)
{
    disk.full_until_ns = until_ns;
}

void disk_kill_in(uint64_t calls)
{
    disk.kill_in = calls + 1;
}

void disk_heal(void)
{
    disk.healed = true;
    disk.stall_ns = 0;
    disk.fail = 0;
    disk.full_until_ns = 0;
    disk.kill_in = 0;
}

/* Every call comes by here. Returns the error to give, 0: none. */
static int enter(void)
{
    if (world_is_dead())
        return EIO;
    if (disk.kill_in > 0 && --disk.kill_in == 0) {
        world_kill();
        return EIO;
    }
    return 0;
}

/* The error of a write or sync, if one is due. */
static int take_fault(bool batch)
{
    int error = disk.fail;

    if (error == 0 || disk.fail_batch != batch)
        return 0;
    disk.fail = 0;
    return error;
}

static uint64_t latency(uint64_t most_ns)
{
    uint64_t ns = dice_scale(&disk.dice, disk.mix.write_ns,
                             disk.healed ? disk.mix.write_ns : most_ns);

    return ns;
}

/* ---- Files. ---- */

struct disk_file *disk_find(const char *name)
{
    for (struct disk_file *file = disk.files; file; file = file->next) {
        if (!file->removed && strcmp(file->name, name) == 0)
            return file;
    }
    return NULL;
}

static struct disk_file *file_of(int fd)
{
    assert(fd >= 0 && fd < DISK_FDS_MAX && disk.fds[fd].file != NULL);
    return disk.fds[fd].file;
}

static struct disk_change *note_change(enum disk_kind kind,
                                       struct disk_file *file)
{
    assert(disk.change_count < DISK_CHANGES_MAX);
    struct disk_change *change = &disk.changes[disk.change_count++];
    *change = (struct disk_change){.kind = kind, .file = file};
    return change;
}

/* Out of the folder, but not out of the world. */
static void bury(struct disk_file *file)
{
    file->removed = true;
    snprintf(file->grave, sizeof file->grave, "../grave-%llu",
             (unsigned long long)++disk.graves);
    int code = renameat(disk.dir, file->name, disk.dir, file->grave);
    assert(code == 0);
    (void)code;
}

static int make_file(const char *name, struct disk_file **out)
{
    struct disk_file *file = calloc(1, sizeof *file);

    if (world_now_ns() < disk.full_until_ns) {
        free(file);
        return ENOSPC;
    }
    assert(file != NULL && strlen(name) < sizeof file->name);
    memcpy(file->name, name, strlen(name) + 1);
    file->next = disk.files;
    disk.files = file;
    note_change(DISK_CREATE, file);
    *out = file;
    return 0;
}

static int do_open(void *io, int dir, const char *name, int flags, int *fd)
{
    struct disk_file *file = disk_find(name);
    int error = enter();

    (void)io;
    *fd = -1;
    if (error != 0)
        return error;
    if (file != NULL && (flags & O_TRUNC) != 0) {
        bury(file);
        note_change(DISK_REMOVE, file);
        file = NULL;
    }
    if (file == NULL && (flags & O_CREAT) == 0)
        return ENOENT;
    if (file == NULL)
        error = make_file(name, &file);
    if (error != 0)
        return error;
    *fd = openat(dir, name, (flags & ~(O_DIRECT | O_DSYNC)) | O_CLOEXEC,
                 FILE_MODE);
    if (*fd < 0)
        return errno;
    assert(*fd < DISK_FDS_MAX);
    disk.fds[*fd] = (struct disk_fd){file, (flags & O_DSYNC) != 0};
    return 0;
}

static int do_read(void *io, int fd, void *data, size_t len, uint64_t offset,
                   size_t *got)
{
    int error = enter();

    (void)io;
    return error != 0 ? error : hf_disk_read(NULL, fd, data, len, offset, got);
}

/* Keeps what the blocks were before. */
static void keep_old(struct disk_file *file, int fd, size_t len,
                     uint64_t offset)
{
    uint64_t first = offset / DISK_BLOCK;
    uint64_t last = (offset + len - 1) / DISK_BLOCK;

    for (uint64_t block = first; block <= last; block++) {
        struct disk_old *old = file->olds;
        while (old != NULL && old->block != block)
            old = old->next;
        if (old == NULL) {
            old = calloc(1, sizeof *old);
            assert(old != NULL);
            old->block = block;
            (void)hf_disk_read(NULL, fd, old->data, DISK_BLOCK,
                               block * DISK_BLOCK, &old->len);
            old->next = file->olds;
            file->olds = old;
        }
        old->stamp = disk.stamp;
    }
}

/* They are on disk now. */
static void drop_blocks(struct disk_file *file, size_t len, uint64_t offset)
{
    uint64_t first = offset / DISK_BLOCK;
    uint64_t last = (offset + len - 1) / DISK_BLOCK;
    struct disk_old **at = &file->olds;

    while (*at != NULL) {
        struct disk_old *old = *at;
        if (old->block < first || old->block > last) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        free(old);
    }
}

static int write_direct(int fd, const void *data, size_t len, uint64_t offset)
{
    struct disk_flight *flight = &disk.flights[disk.flight_count++];

    assert(disk.flight_count <= DISK_FLIGHTS_MAX);
    *flight = (struct disk_flight){file_of(fd), fd, data, len, offset};
    world_pass(latency(disk.mix.write_max_ns));
    if (world_is_dead())
        return EIO; /* and what is under way stays so */
    for (size_t i = 0; i < disk.flight_count; i++) {
        if (disk.flights[i].data == data)
            disk.flights[i] = disk.flights[--disk.flight_count];
    }
    drop_blocks(file_of(fd), len, offset);
    return hf_disk_write(NULL, fd, data, len, offset);
}

static int do_write(void *io, int fd, const void *data, size_t len,
                    uint64_t offset)
{
    int error = enter();

    (void)io;
    if (error == 0)
        error = take_fault(false);
    if (error == 0 && world_now_ns() < disk.full_until_ns &&
        file_of(fd)->size < offset + len)
        error = ENOSPC;
    if (error != 0)
        return error;
    if (file_of(fd)->size < offset + len)
        file_of(fd)->size = offset + len;
    if (disk.fds[fd].direct)
        return write_direct(fd, data, len, offset);
    disk.stamp++;
    keep_old(file_of(fd), fd, len, offset);
    error = hf_disk_write(NULL, fd, data, len, offset);
    world_pass(disk.mix.write_ns);
    return error;
}

void disk_drop_olds(struct disk_file *file, uint64_t stamp)
{
    struct disk_old **at = &file->olds;

    while (*at != NULL) {
        struct disk_old *old = *at;
        if (old->stamp > stamp) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        free(old);
    }
}

static int do_sync(void *io, int fd)
{
    struct disk_file *file = file_of(fd);
    uint64_t stamp = disk.stamp;
    uint64_t size = file->size;
    int error = enter();

    (void)io;
    if (error == 0)
        error = take_fault(false);
    if (error != 0)
        return error;
    world_pass(latency(disk.mix.sync_max_ns));
    if (world_is_dead())
        return EIO;
    disk_drop_olds(file, stamp);
    if (file->durable_size < size)
        file->durable_size = size;
    return 0;
}

/* What it leaves is freed with the disk: somebody may have it open. */
static void forget_file(struct disk_file *file)
{
    (void)unlinkat(disk.dir, file->grave, 0);
    file->grave[0] = '\0';
    disk_drop_olds(file, UINT64_MAX);
}

void disk_settle_changes(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct disk_change *change = &disk.changes[i];
        if (change->kind == DISK_REMOVE)
            forget_file(change->file);
        else if (change->replaced != NULL)
            forget_file(change->replaced);
    }
    disk.change_count -= count;
    memmove(disk.changes, disk.changes + count,
            disk.change_count * sizeof *disk.changes);
}

static int do_sync_folder(void *io, int dir)
{
    size_t count = disk.change_count;
    uint64_t settled = disk.settled;
    int error = enter();

    (void)io;
    (void)dir;
    if (error == 0)
        error = take_fault(false);
    if (error != 0)
        return error;
    world_pass(latency(disk.mix.sync_max_ns));
    if (world_is_dead())
        return EIO;
    settled = disk.settled - settled; /* by another call meanwhile */
    if (count > settled) {
        disk_settle_changes(count - (size_t)settled);
        disk.settled += count - settled;
    }
    return 0;
}

static int do_rename(void *io, int dir, const char *from, const char *to)
{
    struct disk_file *file = disk_find(from);
    struct disk_file *old = disk_find(to);
    int error = enter();

    (void)io;
    if (error == 0 && file == NULL)
        error = ENOENT;
    if (error == 0)
        error = take_fault(false);
    if (error != 0)
        return error;
    if (old != NULL)
        bury(old);
    if (renameat(dir, from, dir, to) != 0)
        return errno;
    struct disk_change *change = note_change(DISK_RENAME, file);
    change->replaced = old;
    memcpy(change->from, file->name, sizeof file->name);
    memcpy(file->name, to, strlen(to) + 1);
    return 0;
}

static int do_remove(void *io, int dir, const char *name)
{
    struct disk_file *file = disk_find(name);
    int error = enter();

    (void)io;
    (void)dir;
    if (error == 0 && file == NULL)
        error = ENOENT;
    if (error != 0)
        return error;
    bury(file);
    note_change(DISK_REMOVE, file);
    return 0;
}

/* ---- The batch. ---- */

static void on_batch(void *context, uint64_t number)
{
    struct disk_batch *batch = &disk.batch;

    (void)context;
    if (world_is_dead() || batch->number != number || batch->done)
        return;
    batch->done = true;
    disk.done_ns = world_now_ns();
    if (batch->error == 0 && disk.fds[batch->flight.fd].direct)
        drop_blocks(batch->flight.file, batch->flight.len,
                    batch->flight.offset);
    if (batch->error == 0)
        batch->error = hf_disk_write(NULL, batch->flight.fd, batch->flight.data,
                                     batch->flight.len, batch->flight.offset);
    else if (disk_tear(&batch->flight, true))
        record_mark(0, 0, HISTORY_FAILED);
    if (batch->notify)
        loop_wake(1);
}

static void do_start(struct journal_io *io, int fd, const void *data,
                     size_t len, uint64_t offset)
{
    struct disk_batch *batch = &disk.batch;
    uint64_t ns = latency(disk.mix.write_max_ns);

    (void)io;
    assert(!batch->busy);
    batch->busy = true;
    batch->done = false;
    batch->notify = false;
    batch->number++;
    batch->error = enter();
    if (world_is_dead())
        return;
    batch->error = take_fault(true);
    batch->flight = (struct disk_flight){file_of(fd), fd, data, len, offset};
    if (disk.stall_ns > 0)
        ns = disk.stall_ns;
    disk.stall_ns = 0;
    world_after(ns, on_batch, NULL, batch->number);
}

static enum hf_status do_wait(struct journal_io *io, uint64_t timeout_ns,
                              int *error)
{
    struct disk_batch *batch = &disk.batch;
    uint64_t now_ns = world_now_ns();
    uint64_t until_ns =
        timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;

    (void)io;
    assert(batch->busy);
    while (!batch->done && !world_is_dead() && world_next_ns() <= until_ns)
        world_step();
    if (!batch->done && !world_is_dead()) {
        /* a look costs something, or whoever looks all the time sees no end */
        world_run_until(until_ns + 10 * US);
    }
    if (!batch->done && !world_is_dead()) {
        batch->notify = true;
        return HF_PENDING;
    }
    *error = world_is_dead() ? EIO : batch->error;
    if (!world_is_dead())
        batch->busy = false;
    return HF_OK;
}

uint64_t disk_done_ns(void)
{
    return disk.batch.busy && !disk.batch.done ? UINT64_MAX : disk.done_ns;
}

static void do_close(struct journal_io *io)
{
    (void)io;
}

static struct journal_io seam = {
    .open = do_open,
    .read = do_read,
    .write = do_write,
    .sync = do_sync,
    .sync_folder = do_sync_folder,
    .rename = do_rename,
    .remove = do_remove,
    .start = do_start,
    .wait = do_wait,
    .close = do_close,
    .wake_fd = -1,
};

struct journal_io *disk_io(void)
{
    return &seam;
}
