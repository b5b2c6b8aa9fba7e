/* fault.c - stands in front of the real disk and spoils one write, or holds
 * all of them up. */
#include "support/fault.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "journal/disk.h"
#include "journal/journal.h"

enum fault_kind {
    FAULT_ERROR,
    FAULT_SHORT,
    FAULT_STALL,
    FAULT_GATE,
    FAULT_FEED
};

struct fault {
    struct journal_io io; /* first: the journal's pointer is ours */
    struct journal_io *under;
    enum fault_kind kind;
    int error;
    uint64_t at;
    uint64_t count; /* batch writes so far */
    bool spoiled;   /* the write under way is the one */
    int fd;         /* of the stalled write */
    const void *data;
    size_t len;
    uint64_t offset;
};

/* Set by signals, read by whichever thread writes. */
static struct hf_atomic_u32 released;
static struct hf_atomic_u32 shut; /* the gate */
static struct journal_io *stalled_disk;

static void on_release(int number)
{
    (void)number;
    hf_u32_store(&released, 1, __ATOMIC_RELAXED);
    hf_u32_store(&shut, 0, __ATOMIC_RELAXED);
    if (stalled_disk != NULL)
        journal_io_wake(stalled_disk);
}

static void on_shut(int number)
{
    static const char said[] = "gate shut\n";

    (void)number;
    hf_u32_store(&shut, 1, __ATOMIC_RELAXED);
    ssize_t done = write(STDERR_FILENO, said, sizeof said - 1);
    (void)done;
}

static bool is_shut(void)
{
    return hf_u32_load(&shut, __ATOMIC_RELAXED) != 0;
}

static struct journal_io *under(struct journal_io *io)
{
    return ((struct fault *)io)->under;
}

/* In the modes that do not wait for the disk a batch is written by this call,
 * which is told from the writing of segments by how a batch begins. */
static int spoil_write(void *io, int fd, const void *data, size_t len,
                       uint64_t offset)
{
    static const char batch_magic[] = "HFBATC01";
    static const char feed_magic[] = "HFEVNT01";
    struct fault *fault = (struct fault *)io;

    if (fault->kind == FAULT_FEED &&
        memcmp(data, feed_magic, sizeof feed_magic - 1) == 0 &&
        hf_u32_load(&released, __ATOMIC_RELAXED) == 0)
        return fault->error;
    if (memcmp(data, batch_magic, sizeof batch_magic - 1) != 0 ||
        fault->kind == FAULT_STALL || fault->kind >= FAULT_GATE ||
        fault->count++ != fault->at)
        return under(io)->write(under(io), fd, data, len, offset);
    if (fault->kind == FAULT_SHORT)
        (void)under(io)->write(under(io), fd, data, len / 8192 * 4096, offset);
    return fault->error;
}

static int spoil_sync(void *io, int fd)
{
    while (((struct fault *)io)->kind == FAULT_GATE && is_shut())
        (void)poll(NULL, 0, 10);
    return under(io)->sync(under(io), fd);
}

static void spoil_start(struct journal_io *io, int fd, const void *data,
                        size_t len, uint64_t offset)
{
    struct fault *fault = (struct fault *)io;

    fault->spoiled =
        fault->kind >= FAULT_GATE ? is_shut() : fault->count++ == fault->at;
    if (!fault->spoiled) {
        fault->under->start(fault->under, fd, data, len, offset);
        return;
    }
    if (fault->kind == FAULT_SHORT) /* half, but whole blocks */
        (void)fault->under->write(fault->under, fd, data, len / 8192 * 4096,
                                  offset);
    fault->fd = fd;
    fault->data = data;
    fault->len = len;
    fault->offset = offset;
}

static enum hf_status spoil_wait(struct journal_io *io, uint64_t timeout_ns,
                                 int *error)
{
    struct fault *fault = (struct fault *)io;

    bool held = fault->kind == FAULT_STALL || fault->kind == FAULT_GATE;
    bool free = fault->kind == FAULT_STALL
                    ? hf_u32_load(&released, __ATOMIC_RELAXED) != 0
                    : !is_shut();

    if (fault->spoiled && held) {
        if (!free)
            return HF_PENDING;
        fault->spoiled = false;
        fault->under->start(fault->under, fault->fd, fault->data, fault->len,
                            fault->offset);
    }
    if (!fault->spoiled)
        return fault->under->wait(fault->under, timeout_ns, error);
    fault->spoiled = false;
    *error = fault->error;
    return HF_OK;
}

static void close_both(struct journal_io *io)
{
    struct fault *fault = (struct fault *)io;

    stalled_disk = NULL;
    fault->under->close(fault->under);
    hf_free(fault);
}

static enum hf_status parse(const char *text, struct fault *fault)
{
    static const struct {
        const char *name;
        enum fault_kind kind;
        int error;
    } kinds[] = {
        {"eio", FAULT_ERROR, EIO},      {"enospc", FAULT_ERROR, ENOSPC},
        {"short", FAULT_SHORT, ENOSPC}, {"stall", FAULT_STALL, 0},
        {"gate", FAULT_GATE, 0},        {"feed", FAULT_FEED, ENOSPC},
    };
    static const char prefix[] = "write:";
    const char *kind = strrchr(text, ':');

    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return HF_INVALID;
    text += sizeof prefix - 1;
    if (kind == NULL || kind < text ||
        hf_parse_u64(hf_bytes(text, (size_t)(kind - text)), &fault->at) !=
            HF_OK)
        return HF_INVALID;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind + 1, kinds[i].name) == 0) {
            fault->kind = kinds[i].kind;
            fault->error = kinds[i].error;
            return HF_OK;
        }
    }
    return HF_INVALID;
}

enum hf_status fault_open(const char *what, struct journal_io **out,
                          char *error)
{
    struct fault *fault = hf_alloc_zeroed(sizeof *fault);
    enum hf_status status;

    *out = NULL;
    if (fault == NULL || parse(what, fault) != HF_OK) {
        hf_free(fault);
        snprintf(error, JOURNAL_ERROR_MAX,
                 "%.64s is not write:N:eio|enospc|short|stall|gate|feed", what);
        return HF_INVALID;
    }
    status = journal_io_uring(&fault->under);
    if (status != HF_OK)
        status = journal_io_thread(&fault->under);
    if (status != HF_OK) {
        hf_free(fault);
        snprintf(error, JOURNAL_ERROR_MAX, "no disk to be had");
        return status;
    }
    fault->io = *fault->under; /* the file calls need no more than that */
    fault->io.write = spoil_write;
    fault->io.sync = spoil_sync;
    fault->io.start = spoil_start;
    fault->io.ask = NULL;
    fault->io.wait = spoil_wait;
    fault->io.close = close_both;
    stalled_disk = fault->under;
    signal(SIGUSR1, on_release);
    signal(SIGUSR2, on_shut);
    *out = &fault->io;
    return HF_OK;
}
