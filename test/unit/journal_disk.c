/* journal_disk.c - tests of the real disks behind the journal's seam: all
 * must keep the same promises. */
#include "journal/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "holdfast/clock.h"
#include "support/test.h"

#define BLOCK       4096
#define DEADLINE_MS 60000

typedef enum hf_status make_disk(struct journal_io **out);
static make_disk *const makers[] = {journal_io_uring, journal_io_thread,
                                    journal_io_plain};

/* A disk of the given kind with one file open, in an empty folder. */
struct site {
    struct journal_io *io;
    int dir;
    int fd;
    char *data; /* two aligned blocks */
};

static bool site_open(struct site *site, make_disk *make, int flags)
{
    enum hf_status status = make(&site->io);

    if (status == HF_NOTFOUND)
        return false; /* no io_uring here */
    CHECK_EQ(status, HF_OK);
    site->dir = open(test_folder(), O_RDONLY | O_DIRECTORY);
    CHECK(site->dir >= 0);
    CHECK_EQ(site->io->open(site->io, site->dir, "file",
                            O_RDWR | O_CREAT | O_TRUNC | flags, &site->fd),
             0);
    site->data = aligned_alloc(BLOCK, 2 * BLOCK);
    CHECK(site->data != NULL);
    memset(site->data, 'a', BLOCK);
    memset(site->data + BLOCK, 'b', BLOCK);
    return true;
}

static void site_close(struct site *site)
{
    free(site->data);
    close(site->fd);
    close(site->dir);
    site->io->close(site->io);
}

static int write_and_wait(struct site *site, int fd, size_t len,
                          uint64_t offset)
{
    struct journal_io *io = site->io;
    int error = -1;

    io->start(io, fd, site->data, len, offset);
    CHECK_EQ(io->wait(io, UINT64_MAX, &error), HF_OK);
    return error;
}

TEST(what_is_written_can_be_read)
{
    for (int kind = 0; kind < 3; kind++) {
        struct site site;
        char back[3 * BLOCK];
        size_t got;

        if (!site_open(&site, makers[kind], O_DIRECT | O_DSYNC))
            continue;
        CHECK_EQ(write_and_wait(&site, site.fd, BLOCK, BLOCK), 0);
        CHECK_EQ(write_and_wait(&site, site.fd, 2 * BLOCK, 0), 0);
        int fd;
        CHECK_EQ(site.io->open(site.io, site.dir, "file", O_RDONLY, &fd), 0);
        CHECK_EQ(site.io->read(site.io, fd, back, sizeof back, 0, &got), 0);
        CHECK_EQ(got, 2 * BLOCK);
        CHECK(memcmp(back, site.data, got) == 0);
        struct pollfd wake = {.fd = site.io->wake_fd, .events = POLLIN};
        CHECK_EQ(poll(&wake, 1, 0), 0); /* nobody gave up waiting */
        close(fd);
        site_close(&site);
    }
}

TEST(files_are_renamed_removed_and_synced)
{
    struct site site;
    struct stat info;

    CHECK(site_open(&site, journal_io_plain, 0));
    struct journal_io *io = site.io;
    CHECK_EQ(io->write(io, site.fd, "abc", 3, 0), 0);
    CHECK_EQ(io->sync(io, site.fd), 0);
    CHECK_EQ(io->rename(io, site.dir, "file", "other"), 0);
    CHECK_EQ(io->sync_folder(io, site.dir), 0);
    CHECK_EQ(fstatat(site.dir, "other", &info, 0), 0);
    CHECK_EQ(info.st_size, 3);
    CHECK_EQ(io->rename(io, site.dir, "file", "other"), ENOENT);
    CHECK_EQ(io->remove(io, site.dir, "other"), 0);
    CHECK_EQ(io->remove(io, site.dir, "other"), ENOENT);
    CHECK_EQ(io->sync(io, -1), EBADF);
    CHECK_EQ(io->sync_folder(io, -1), EBADF);
    site_close(&site);
}

TEST(errors_of_a_write_are_told)
{
    for (int kind = 0; kind < 3; kind++) {
        struct site site;
        size_t got;
        char back;

        if (!site_open(&site, makers[kind], 0))
            continue;
        int fd = open("/dev/null", O_RDONLY);
        CHECK_EQ(write_and_wait(&site, fd, BLOCK, 0), EBADF);
        CHECK_EQ(site.io->write(site.io, fd, "x", 1, 0), EBADF);
        CHECK_EQ(site.io->read(site.io, -1, &back, 1, 0, &got), EBADF);
        close(fd);
        CHECK_EQ(site.io->open(site.io, site.dir, "none", O_RDWR, &fd), ENOENT);
        site_close(&site);
    }
}

/* The size limit lets the first part through: a short write, then an error. */
TEST(a_short_write_goes_on_and_ends_with_the_error)
{
    struct rlimit old;

    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (int kind = 0; kind < 3; kind++) {
        struct site site;

        if (!site_open(&site, makers[kind], 0))
            continue;
        struct rlimit limit = {BLOCK + 100, old.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        int error = write_and_wait(&site, site.fd, 2 * BLOCK, 0);
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
        CHECK_EQ(error, EFBIG);
        CHECK_EQ(write_and_wait(&site, site.fd, 2 * BLOCK, 0), 0);
        site_close(&site);
    }
    signal(SIGXFSZ, SIG_DFL);
}

/* A ring asks for the rest of a short write; of none at all there is no rest,
 * and the disk has not taken what it was given. */
TEST(a_ring_that_writes_nothing_has_failed)
{
    struct site site;

    if (!site_open(&site, journal_io_uring, 0))
        return;
    CHECK_EQ(write_and_wait(&site, site.fd, 0, 0), EIO);
    CHECK_EQ(write_and_wait(&site, site.fd, BLOCK, 0), 0);
    site_close(&site);
}

static void expect_wake(struct journal_io *io, int count)
{
    struct pollfd wake = {.fd = io->wake_fd, .events = POLLIN};

    CHECK_EQ(poll(&wake, 1, count > 0 ? DEADLINE_MS : 0), count);
}

/* A full pipe is the slowest of all disks. */
TEST(a_ring_whose_write_stalls_gives_up_in_time_and_wakes_later)
{
    struct site site;
    int ends[2];
    char sink[2 * BLOCK];
    int error = -1;

    if (!site_open(&site, journal_io_uring, 0))
        return;
    struct journal_io *io = site.io;
    CHECK_EQ(pipe(ends), 0);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, BLOCK) >= BLOCK);
    CHECK_EQ(write(ends[1], site.data, BLOCK), BLOCK);
    for (int round = 0; round < 3; round++) {
        uint64_t start_ns = hf_clock_now_ns(hf_clock_system());
        io->start(io, ends[1], site.data, BLOCK, 0);
        CHECK_EQ(io->wait(io, 2000000, &error), HF_PENDING);
        CHECK(hf_clock_now_ns(hf_clock_system()) - start_ns >= 2000000);
        CHECK_EQ(io->wait(io, 0, &error), HF_PENDING);
        expect_wake(io, 0);
        CHECK_EQ(read(ends[0], sink, BLOCK), BLOCK);
        expect_wake(io, 1);
        journal_io_wake_clear(io);
        CHECK_EQ(io->wait(io, 0, &error), HF_OK);
        CHECK_EQ(error, 0);
        expect_wake(io, 0);
    }
    CHECK_EQ(write_and_wait(&site, site.fd, 2 * BLOCK, 0), 0);
    expect_wake(io, 0);
    close(ends[0]);
    close(ends[1]);
    site_close(&site);
}

TEST(a_ring_whose_write_is_short_goes_on_behind_what_was_written)
{
    struct site site;
    int ends[2];
    char sink[2 * BLOCK];
    int error = -1;

    if (!site_open(&site, journal_io_uring, 0))
        return;
    struct journal_io *io = site.io;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fcntl(ends[1], F_SETPIPE_SZ, BLOCK), BLOCK);
    io->start(io, ends[1], site.data, 2 * BLOCK, 0);
    CHECK_EQ(io->wait(io, 0, &error), HF_PENDING);
    CHECK_EQ(read(ends[0], sink, BLOCK), BLOCK);
    CHECK_EQ(io->wait(io, UINT64_MAX, &error), HF_OK);
    CHECK_EQ(error, 0);
    CHECK_EQ(read(ends[0], sink + BLOCK, BLOCK), BLOCK);
    CHECK(memcmp(sink, site.data, sizeof sink) == 0);
    close(ends[0]);
    close(ends[1]);
    site_close(&site);
}

/* Asking tells as little as a wait for no time, and wakes nobody. */
TEST(a_ring_that_is_asked_tells_its_end_and_one_that_stalls_can_be_waited_for)
{
    enum { ROUNDS = 50 };
    struct site site;
    int ends[2];
    char sink[BLOCK];
    int error = -1;

    if (!site_open(&site, journal_io_uring, 0) || site.io->ask == NULL)
        return;
    struct journal_io *io = site.io;
    for (int round = 0; round < ROUNDS; round++) {
        io->start(io, site.fd, site.data, BLOCK, 0);
        while (io->ask(io, &error) == HF_PENDING)
            ;
        CHECK_EQ(error, 0);
    }
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fcntl(ends[1], F_SETPIPE_SZ, BLOCK), BLOCK);
    CHECK_EQ(write(ends[1], site.data, BLOCK), BLOCK);
    io->start(io, ends[1], site.data, BLOCK, 0);
    for (int round = 0; round < ROUNDS; round++)
        CHECK_EQ(io->ask(io, &error), HF_PENDING);
    CHECK_EQ(io->wait(io, 0, &error), HF_PENDING);
    expect_wake(io, 0);
    CHECK_EQ(read(ends[0], sink, BLOCK), BLOCK);
    expect_wake(io, 1);
    CHECK_EQ(io->ask(io, &error), HF_OK);
    CHECK_EQ(error, 0);
    expect_wake(io, 0);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(write_and_wait(&site, -1, BLOCK, 0), EBADF);
    io->start(io, -1, site.data, BLOCK, 0);
    while (io->ask(io, &error) == HF_PENDING)
        ;
    CHECK_EQ(error, EBADF);
    site_close(&site);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int stalling_write(void *io, int fd, const void *data, size_t len,
                          uint64_t offset)
{
    (void)io;
    pthread_mutex_lock(&gate);
    ssize_t n = pwrite(fd, data, len, (off_t)offset);
    pthread_mutex_unlock(&gate);
    return n == (ssize_t)len ? 0 : EIO;
}

TEST(a_thread_whose_write_stalls_gives_up_in_time_and_wakes_later)
{
    struct site site;
    int error = -1;

    CHECK(site_open(&site, journal_io_thread, 0));
    struct journal_io *io = site.io;
    io->write = stalling_write;
    for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(&gate);
        io->start(io, site.fd, site.data, BLOCK, 0);
        CHECK_EQ(io->wait(io, 2000000, &error), HF_PENDING);
        CHECK_EQ(io->wait(io, 0, &error), HF_PENDING);
        expect_wake(io, 0);
        pthread_mutex_unlock(&gate);
        expect_wake(io, 1);
        journal_io_wake_clear(io);
        CHECK_EQ(io->wait(io, 0, &error), HF_OK);
        CHECK_EQ(error, 0);
        expect_wake(io, 0);
    }
    CHECK_EQ(write_and_wait(&site, site.fd, 2 * BLOCK, 0), 0);
    expect_wake(io, 0);
    site_close(&site);
}

/* For the thread sanitizer: the end is seen by one who did not sleep. */
TEST(a_thread_that_is_asked_all_the_time_tells_its_end)
{
    enum { ROUNDS = 200 };
    struct site site;
    int error = -1;

    CHECK(site_open(&site, journal_io_thread, 0));
    struct journal_io *io = site.io;
    for (int round = 0; round < ROUNDS; round++) {
        io->start(io, site.fd, site.data, BLOCK, 0);
        while (io->wait(io, 0, &error) == HF_PENDING)
            ;
        CHECK_EQ(error, 0);
    }
    site_close(&site);
}

/* Where the system has rings that can do all that is needed. */
TEST(a_ring_is_used_where_there_is_one)
{
    struct io_uring_params params = {0};
    struct journal_io *io;

    int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (fd < 0 || (params.features & IORING_FEAT_EXT_ARG) == 0)
        return;
    close(fd);
    CHECK_EQ(journal_io_uring(&io), HF_OK);
    io->close(io);
}

TEST(without_memory_no_disk_is_made)
{
    for (int kind = 0; kind < 3; kind++) {
        struct journal_io *io;
        hf_memory_fail_after(0);
        enum hf_status status = makers[kind](&io);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
    }
}

TEST(without_file_descriptors_no_disk_is_made)
{
    struct rlimit old;
    struct rlimit none = {0, 0};
    struct journal_io *io;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    none.rlim_max = old.rlim_max;
    for (int kind = 0; kind < 3; kind++) {
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        enum hf_status status = makers[kind](&io);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK_EQ(status, kind == 0 ? HF_NOTFOUND : HF_IO);
    }
}
