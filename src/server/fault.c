/* fault.c - stands in front of the real disk and spoils one write. */
#include "server/fault.h"

#include <errno.h>
#include <signal.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "journal/disk.h"
#include "journal/journal.h"

enum fault_kind { FAULT_ERROR, FAULT_SHORT, FAULT_STALL, FAULT_GATE };

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

static volatile sig_atomic_t released;
static volatile sig_atomic_t shut; /* the gate */
static struct journal_io *stalled_disk;

static void on_release(int number)
{
    (void)number;
    released = 1;
    shut = 0;
    if (stalled_disk != NULL)
        journal_io_wake(stalled_disk);
}

static void on_shut(int number)
{
    (void)number;
    shut = 1;
}

static struct journal_io *under(struct journal_io *io)
{
    return ((struct fault *)io)->under;
}

static int pass_open(struct journal_io *io, int dir, const char *name,
                     int flags, int *fd)
{
    return under(io)->open(under(io), dir, name, flags, fd);
}

static int pass_read(struct journal_io *io, int fd, void *data, size_t len,
                     uint64_t offset, size_t *got)
{
    return under(io)->read(under(io), fd, data, len, offset, got);
}

/* In the modes that do not wait for the disk a batch is written by this call,
 * which is told from the writing of segments by how a batch begins. */
static int spoil_write(struct journal_io *io, int fd, const void *data,
                       size_t len, uint64_t offset)
{
    static const char batch_magic[] = "HFBATC01";
    struct fault *fault = (struct fault *)io;

    if (memcmp(data, batch_magic, sizeof batch_magic - 1) != 0 ||
        fault->kind == FAULT_STALL || fault->kind == FAULT_GATE ||
        fault->count++ != fault->at)
        return under(io)->write(under(io), fd, data, len, offset);
    if (fault->kind == FAULT_SHORT)
        (void)under(io)->write(under(io), fd, data, len / 8192 * 4096, offset);
    return fault->error;
}

static int pass_sync(struct journal_io *io, int fd)
{
    return under(io)->sync(under(io), fd);
}

static int pass_sync_folder(struct journal_io *io, int dir)
{
    return under(io)->sync_folder(under(io), dir);
}

static int pass_rename(struct journal_io *io, int dir, const char *from,
                       const char *to)
{
    return under(io)->rename(under(io), dir, from, to);
}

static int pass_remove(struct journal_io *io, int dir, const char *name)
{
    return under(io)->remove(under(io), dir, name);
}

static void spoil_start(struct journal_io *io, int fd, const void *data,
                        size_t len, uint64_t offset)
{
    struct fault *fault = (struct fault *)io;

    fault->spoiled =
        fault->kind == FAULT_GATE ? shut : fault->count++ == fault->at;
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
    bool free = fault->kind == FAULT_STALL ? released : !shut;

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

static void pass_close(struct journal_io *io)
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
        {"gate", FAULT_GATE, 0},
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

enum hf_status fault_from_environment(struct journal_io **out, char *error)
{
    const char *text = getenv("HOLDFAST_FAULT");
    struct fault *fault;
    enum hf_status status;

    *out = NULL;
    if (text == NULL)
        return HF_OK;
    fault = hf_alloc_zeroed(sizeof *fault);
    if (fault == NULL || parse(text, fault) != HF_OK) {
        hf_free(fault);
        snprintf(error, JOURNAL_ERROR_MAX,
                 "HOLDFAST_FAULT=%.64s is not write:N:eio|enospc|short|"
                 "stall|gate",
                 text);
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
    fault->io = (struct journal_io){pass_open,        pass_read,
                                    spoil_write,      pass_sync,
                                    pass_sync_folder, pass_rename,
                                    pass_remove,      spoil_start,
                                    spoil_wait,       fault->under->wake_fd,
                                    pass_close};
    stalled_disk = fault->under;
    signal(SIGUSR1, on_release);
    signal(SIGUSR2, on_shut);
    *out = &fault->io;
    return HF_OK;
}
