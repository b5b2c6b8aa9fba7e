/* disk.h - a disk that fails, stalls or dies where the test says.
 *
 * It stands in front of a real one. Calls are numbered from 0 as they come,
 * from whichever thread; those of kinds that the test does not watch are
 * neither numbered nor harmed.
 *
 *   struct test_disk disk;
 *   test_disk_init(&disk, under);
 *   test_disk_fail(&disk, TEST_DISK_WRITES, 3, ENOSPC);  // the fourth write
 *   opts.io = &disk.io;
 *
 * Threads: set up by one thread while no other uses it; hold and release may
 *          be called at any time.
 */
#ifndef TEST_SUPPORT_DISK_H
#define TEST_SUPPORT_DISK_H

#include <pthread.h>
#include <stdbool.h>

#include "journal/disk.h"

enum test_disk_kind {
    TEST_DISK_OPEN = 1, /* to write; not to read */
    TEST_DISK_READ = 2,
    TEST_DISK_WRITE = 4,
    TEST_DISK_SYNC = 8, /* files and folders */
    TEST_DISK_RENAME = 16,
    TEST_DISK_REMOVE = 32,
    TEST_DISK_BATCH = 64,   /* the write that commit waits for */
    TEST_DISK_CREATE = 128, /* an open that makes the file */
    TEST_DISK_LOOK = 256,   /* an open to read */
};
#define TEST_DISK_WRITES  (TEST_DISK_WRITE | TEST_DISK_BATCH)
#define TEST_DISK_CHANGES (0xff & ~TEST_DISK_READ)

struct test_disk {
    struct journal_io io; /* give this to the journal */
    struct journal_io *under;
    bool quick; /* skips syncs: for tests in which only the process dies */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned watched; /* kinds that are numbered */
    uint64_t count;   /* calls of those kinds so far */
    uint64_t fail_at; /* the number of the call that fails */
    int error;        /* with this */
    bool torn;        /* a failing write writes its first half */
    bool repeat;      /* so do all later calls of the watched kinds */
    bool dead;        /* so do all later calls of any kind but reads */
    unsigned held;    /* kinds that wait until released */
    char trace[256];  /* calls in order, a letter each */
    size_t trace_len;
    int waiting;     /* calls that wait now */
    int batch_error; /* of a batch that failed at once */
    bool batch_failed;
    bool batch_held;
    int fd; /* the held batch */
    const void *data;
    size_t len;
    uint64_t offset;
};

/* `under` is closed by test_disk_destroy. */
void test_disk_init(struct test_disk *disk, struct journal_io *under);
/* In front of a plain disk, and quick. Returns what to give to the journal. */
struct journal_io *test_disk_quick(struct test_disk *disk);
void test_disk_destroy(struct test_disk *disk);

/* From now on call number `at` (from 0) of the kinds in `watched` fails with
 * `error`. */
void test_disk_fail(struct test_disk *disk, unsigned watched, uint64_t at,
                    int error);
/* True once that call has been made. */
bool test_disk_failed(struct test_disk *disk);
/* Waits until it has. */
void test_disk_await_failed(struct test_disk *disk);

/* Calls of the kinds in `held` wait until let go; a batch stays on its way. */
void test_disk_hold(struct test_disk *disk, unsigned held);
void test_disk_let_go(struct test_disk *disk);
/* Waits until a call waits. */
void test_disk_await_held(struct test_disk *disk);

/* True if the calls since the start, or since test_disk_forget(), begin so:
 * Create, Open, Write, Sync, sync of the Folder, Rename, remove (D), Batch.
 * Reads are left out. */
bool test_disk_traced(struct test_disk *disk, const char *letters);
void test_disk_forget(struct test_disk *disk);

#endif
