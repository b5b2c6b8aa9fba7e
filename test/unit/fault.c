/* fault.c - tests of the disk that misbehaves on request: it must do what it
 * was asked for, or other tests prove nothing. */
#include "support/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "journal/disk.h"
#include "journal/journal.h"
#include "support/test.h"

#define BLOCK 4096

static char error[JOURNAL_ERROR_MAX];
static struct journal_io *io;
static int dir;
static int fd;
/* A batch of up to four blocks, and what is none. */
static _Alignas(BLOCK) char batch[4 * BLOCK] = "HFBATC01";
static _Alignas(BLOCK) char other[4 * BLOCK] = "HFSEGM01";

static void start(const char *what)
{
    CHECK_EQ(fault_open(what, &io, error), HF_OK);
    CHECK(io != NULL);
    dir = open(test_folder(), O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0);
    CHECK_EQ(io->open(io, dir, "file", O_RDWR | O_CREAT | O_TRUNC, &fd), 0);
}

static void stop(void)
{
    close(fd);
    close(dir);
    io->close(io);
}

static int64_t file_bytes(void)
{
    struct stat info;

    CHECK_EQ(fstat(fd, &info), 0);
    return info.st_size;
}

/* How commit writes a batch where it waits for the disk. */
static int write_waiting(const char *data, size_t len)
{
    int cause = -1;

    io->start(io, fd, data, len, 0);
    CHECK_EQ(io->wait(io, UINT64_MAX, &cause), HF_OK);
    return cause;
}

TEST(a_wish_that_makes_no_sense_is_refused)
{
    static const char *const bad[] = {"",
                                      "write",
                                      "write:",
                                      "write:1",
                                      "write:1:",
                                      "write::eio",
                                      "write:x:eio",
                                      "read:1:eio",
                                      "write:1:eios",
                                      "write:1:ei",
                                      "write:-1:eio",
                                      "writ:1:eio",
                                      "write:1eio"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[200];
        CHECK_EQ(fault_open(bad[i], &io, error), HF_INVALID);
        CHECK(io == NULL);
        snprintf(expected, sizeof expected,
                 "%s is not write:N:eio|enospc|short|stall|gate|feed", bad[i]);
        CHECK_TEXT(error, strlen(error), expected);
    }
}

/* Of both ways to write a batch; what is no batch is not counted. */
TEST(the_write_that_was_asked_for_fails_and_no_other)
{
    static const struct {
        const char *wish;
        int cause;
        int64_t bytes; /* of four blocks, then of three */
        int64_t fewer;
    } rows[] = {{"write:2:eio", EIO, 0, 0},
                {"write:2:enospc", ENOSPC, 0, 0},
                {"write:2:short", ENOSPC, 2 * BLOCK, BLOCK}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned k = 0; k < 4; k++) {
            bool waits = k % 2 == 0;
            size_t len = k < 2 ? 4 * BLOCK : 3 * BLOCK;
            start(rows[i].wish);
            for (int n = 0; n < 4; n++) {
                CHECK_EQ(ftruncate(fd, 0), 0);
                CHECK_EQ(io->write(io, fd, other, sizeof other, 0), 0);
                CHECK_EQ(file_bytes(), sizeof other);
                CHECK_EQ(ftruncate(fd, 0), 0);
                int cause = waits ? write_waiting(batch, len)
                                  : io->write(io, fd, batch, len, 0);
                CHECK_EQ(cause, n == 2 ? rows[i].cause : 0);
                CHECK_EQ(file_bytes(), n != 2  ? (int64_t)len
                                       : k < 2 ? rows[i].bytes
                                               : rows[i].fewer);
            }
            stop();
        }
    }
}

static void open_and_shut_the_gate(void)
{
    int cause = -1;

    start("write:0:gate");
    CHECK_EQ(write_waiting(batch, BLOCK), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ftruncate(fd, 0), 0);
        raise(SIGUSR2);
        io->start(io, fd, batch, BLOCK, 0);
        CHECK_EQ(io->wait(io, 0, &cause), HF_PENDING);
        CHECK_EQ(file_bytes(), 0);
        /* the modes that do not wait for the disk are not held up */
        CHECK_EQ(io->write(io, fd, batch, 2 * BLOCK, 0), 0);
        CHECK_EQ(ftruncate(fd, 0), 0);
        raise(SIGUSR1);
        cause = -1;
        CHECK_EQ(io->wait(io, UINT64_MAX, &cause), HF_OK);
        CHECK_EQ(cause, 0);
        CHECK_EQ(file_bytes(), BLOCK);
        CHECK_EQ(write_waiting(batch, BLOCK), 0);
    }
    stop();
}

/* What was released once stays so: the gate comes after it. */
TEST(a_write_hangs_until_it_is_released_and_a_gate_as_often_as_one_likes)
{
    int cause = -1;
    uint64_t woken;

    start("write:1:stall");
    CHECK_EQ(write_waiting(batch, BLOCK), 0);
    CHECK_EQ(ftruncate(fd, 0), 0);
    io->start(io, fd, batch, 2 * BLOCK, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(io->wait(io, 0, &cause), HF_PENDING);
    CHECK_EQ(file_bytes(), 0);
    (void)!read(io->wake_fd, &woken, sizeof woken); /* of the write before */
    raise(SIGUSR1);
    CHECK_EQ(read(io->wake_fd, &woken, sizeof woken), sizeof woken);
    CHECK_EQ(io->wait(io, UINT64_MAX, &cause), HF_OK);
    CHECK_EQ(cause, 0);
    CHECK_EQ(file_bytes(), 2 * BLOCK);
    CHECK_EQ(write_waiting(batch, BLOCK), 0);
    stop();
    open_and_shut_the_gate();
}
