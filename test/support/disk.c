/* disk.c - passes calls on to a real disk, except those that must fail. */
#include "support/disk.h"

#include <errno.h>
#include <fcntl.h>

#include "support/test.h"

static struct test_disk *of(struct journal_io *io)
{
    return (struct test_disk *)io; /* `io` is its first member */
}

/* Numbers a call and waits while its kind is held. Returns the error that it
 * must fail with, or 0; `*torn` if half of it is to be done first. */
static int pass(struct test_disk *disk, enum test_disk_kind kind, char letter,
                bool *torn)
{
    int error = 0;

    pthread_mutex_lock(&disk->mutex);
    if (letter != '\0' && disk->trace_len < sizeof disk->trace - 1) {
        disk->trace[disk->trace_len++] = letter;
        disk->trace[disk->trace_len] = '\0';
    }
    if (disk->held & kind && kind != TEST_DISK_BATCH) {
        disk->waiting++;
        pthread_cond_broadcast(&disk->changed);
        while (disk->held & kind)
            pthread_cond_wait(&disk->changed, &disk->mutex);
        disk->waiting--;
    }
    *torn = false;
    if (disk->watched & kind) {
        uint64_t number = disk->count++;
        if (number == disk->fail_at ||
            (disk->repeat && number > disk->fail_at)) {
            error = disk->error;
            *torn = disk->torn;
            pthread_cond_broadcast(&disk->changed);
        }
    }
    if (disk->dead && disk->count > disk->fail_at && error == 0 &&
        kind != TEST_DISK_READ)
        error = disk->error;
    pthread_mutex_unlock(&disk->mutex);
    return error;
}

static int disk_open(void *io, int dir, const char *name, int flags, int *fd)
{
    struct test_disk *disk = of(io);
    bool torn;
    int error = 0;

    if (flags & O_CREAT)
        error = pass(disk, TEST_DISK_CREATE, 'C', &torn);
    else if (flags & (O_RDWR | O_WRONLY))
        error = pass(disk, TEST_DISK_OPEN, 'O', &torn);
    else if (disk->watched & TEST_DISK_LOOK)
        error = pass(disk, TEST_DISK_LOOK, 'L', &torn);
    if (error != 0)
        return error;
    if (disk->quick)
        flags &= ~(O_DIRECT | O_DSYNC);
    return disk->under->open(disk->under, dir, name, flags, fd);
}

static int disk_read(void *io, int fd, void *data, size_t len, uint64_t offset,
                     size_t *got)
{
    bool torn;
    int error = pass(of(io), TEST_DISK_READ, '\0', &torn);

    if (error != 0)
        return error;
    return of(io)->under->read(of(io)->under, fd, data, len, offset, got);
}

/* Half of it, in whole blocks where there is more than one. */
static void write_half(struct journal_io *under, int fd, const void *data,
                       size_t len, uint64_t offset)
{
    size_t half = len / 2 >= 4096 ? len / 2 / 4096 * 4096 : len / 2;
    int flags = fcntl(fd, F_GETFL);

    /* A direct write takes whole blocks only; a torn one need not. */
    fcntl(fd, F_SETFL, flags & ~O_DIRECT);
    (void)under->write(under, fd, data, half, offset);
    fcntl(fd, F_SETFL, flags);
}

static int disk_write(void *io, int fd, const void *data, size_t len,
                      uint64_t offset)
{
    struct journal_io *under = of(io)->under;
    bool torn;
    int error = pass(of(io), TEST_DISK_WRITE, 'W', &torn);

    if (torn)
        write_half(under, fd, data, len, offset);
    return error != 0 ? error : under->write(under, fd, data, len, offset);
}

static int disk_sync(void *io, int fd)
{
    bool torn;
    int error = pass(of(io), TEST_DISK_SYNC, 'S', &torn);

    if (error != 0 || of(io)->quick)
        return error;
    return of(io)->under->sync(of(io)->under, fd);
}

static int disk_sync_folder(void *io, int dir)
{
    bool torn;
    int error = pass(of(io), TEST_DISK_SYNC, 'F', &torn);

    if (error != 0 || of(io)->quick)
        return error;
    return of(io)->under->sync_folder(of(io)->under, dir);
}

static int disk_rename(void *io, int dir, const char *from, const char *to)
{
    bool torn;
    int error = pass(of(io), TEST_DISK_RENAME, 'R', &torn);

    if (error != 0)
        return error;
    return of(io)->under->rename(of(io)->under, dir, from, to);
}

static int disk_remove(void *io, int dir, const char *name)
{
    bool torn;
    int error = pass(of(io), TEST_DISK_REMOVE, 'D', &torn);

    if (error != 0)
        return error;
    return of(io)->under->remove(of(io)->under, dir, name);
}

static void disk_start(struct journal_io *io, int fd, const void *data,
                       size_t len, uint64_t offset)
{
    struct test_disk *disk = of(io);
    bool torn;

    disk->batch_error = pass(disk, TEST_DISK_BATCH, 'B', &torn);
    disk->batch_failed = disk->batch_error != 0;
    if (torn)
        write_half(disk->under, fd, data, len, offset);
    disk->fd = fd;
    disk->data = data;
    disk->len = len;
    disk->offset = offset;
    disk->batch_held = (disk->held & TEST_DISK_BATCH) != 0;
    if (!disk->batch_held && !disk->batch_failed)
        disk->under->start(disk->under, fd, data, len, offset);
}

static enum hf_status disk_wait(struct journal_io *io, uint64_t timeout_ns,
                                int *error)
{
    struct test_disk *disk = of(io);

    if (disk->batch_held)
        return HF_PENDING;
    if (disk->batch_failed) {
        *error = disk->batch_error;
        return HF_OK;
    }
    return disk->under->wait(disk->under, timeout_ns, error);
}

void test_disk_init(struct test_disk *disk, struct journal_io *under)
{
    *disk = (struct test_disk){
        .io =
            {
                .open = disk_open,
                .read = disk_read,
                .write = disk_write,
                .sync = disk_sync,
                .sync_folder = disk_sync_folder,
                .rename = disk_rename,
                .remove = disk_remove,
                .start = disk_start,
                .wait = disk_wait,
                .wake_fd = under->wake_fd,
            },
        .under = under,
        .fail_at = UINT64_MAX,
    };
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_cond_init(&disk->changed, NULL);
}

struct journal_io *test_disk_quick(struct test_disk *disk)
{
    struct journal_io *plain;

    CHECK_EQ(journal_io_plain(&plain), HF_OK);
    test_disk_init(disk, plain);
    disk->quick = true;
    return &disk->io;
}

void test_disk_destroy(struct test_disk *disk)
{
    disk->under->close(disk->under);
    pthread_cond_destroy(&disk->changed);
    pthread_mutex_destroy(&disk->mutex);
}

void test_disk_fail(struct test_disk *disk, unsigned watched, uint64_t at,
                    int error)
{
    pthread_mutex_lock(&disk->mutex);
    disk->watched = watched;
    disk->count = 0;
    disk->fail_at = at;
    disk->error = error;
    pthread_mutex_unlock(&disk->mutex);
}

bool test_disk_failed(struct test_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    bool failed = disk->count > disk->fail_at;
    pthread_mutex_unlock(&disk->mutex);
    return failed;
}

void test_disk_await_failed(struct test_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    while (disk->count <= disk->fail_at)
        pthread_cond_wait(&disk->changed, &disk->mutex);
    pthread_mutex_unlock(&disk->mutex);
}

void test_disk_hold(struct test_disk *disk, unsigned held)
{
    pthread_mutex_lock(&disk->mutex);
    disk->held = held;
    pthread_mutex_unlock(&disk->mutex);
}

void test_disk_let_go(struct test_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    disk->held = 0;
    pthread_cond_broadcast(&disk->changed);
    pthread_mutex_unlock(&disk->mutex);
    if (!disk->batch_held)
        return;
    disk->batch_held = false;
    if (!disk->batch_failed)
        disk->under->start(disk->under, disk->fd, disk->data, disk->len,
                           disk->offset);
    /* Whoever gave up waiting looks again, and then waits for `under`. */
    journal_io_wake(disk->under);
}

void test_disk_await_held(struct test_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    while (disk->waiting == 0)
        pthread_cond_wait(&disk->changed, &disk->mutex);
    pthread_mutex_unlock(&disk->mutex);
}

bool test_disk_traced(struct test_disk *disk, const char *letters)
{
    pthread_mutex_lock(&disk->mutex);
    bool same = strncmp(disk->trace, letters, strlen(letters)) == 0;
    pthread_mutex_unlock(&disk->mutex);
    return same;
}

void test_disk_forget(struct test_disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    disk->trace_len = 0;
    disk->trace[0] = '\0';
    pthread_mutex_unlock(&disk->mutex);
}
