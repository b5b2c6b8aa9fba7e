/* uring.c - the batch write by io_uring: one system call when the disk is
 * quick, and no thread that waits when it is not.
 *
 * start() only notes the write; wait() submits it and waits in the same call,
 * ask() submits it and does not wait. The ring's eventfd stays switched off
 * until somebody gives up waiting, so that a quick write wakes nobody.
 */
#include "journal/disk.h"

#include <errno.h>

#include <liburing.h>

#include "base/thread.h"

#define RING_ENTRIES 4

struct uring {
    struct journal_io io;
    struct io_uring ring;
    int fd; /* the write under way */
    const char *data;
    size_t len;
    uint64_t offset;
    bool notify; /* the ring tells the eventfd */
};

static void prepare(struct uring *uring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    /* One write at a time and more entries than that: there is always one. */
    io_uring_prep_write(sqe, uring->fd, uring->data, (unsigned)uring->len,
                        uring->offset);
}

static void uring_start(struct journal_io *io, int fd, const void *data,
                        size_t len, uint64_t offset)
{
    struct uring *uring = (struct uring *)io;

    uring->fd = fd;
    uring->data = data;
    uring->len = len;
    uring->offset = offset;
    prepare(uring);
}

static void set_notify(struct uring *uring, bool on)
{
    if (uring->notify == on)
        return;
    (void)io_uring_cq_eventfd_toggle(&uring->ring, on);
    uring->notify = on;
    if (!on) /* the ring may have told more than once */
        journal_io_wake_clear(&uring->io);
}

/* Takes the end of the write from the queue. True when the whole is done;
 * after a short write the rest has been prepared. */
static bool take(struct uring *uring, struct io_uring_cqe *cqe, int *error)
{
    int result = cqe->res;

    io_uring_cqe_seen(&uring->ring, cqe);
    if (result > 0 && (size_t)result < uring->len) {
        uring->data += result;
        uring->len -= (size_t)result;
        uring->offset += (uint64_t)result;
        prepare(uring);
        return false;
    }
    *error = result < 0 ? -result : result == 0 ? EIO : 0;
    set_notify(uring, false);
    return true;
}

/* Submits what is prepared and waits for one end. A signal ends the wait,
 * unless it is one without an end. */
static int submit_and_wait(struct uring *uring, uint64_t timeout_ns,
                           struct io_uring_cqe **cqe)
{
    struct __kernel_timespec timeout = {
        .tv_sec = (int64_t)(timeout_ns / 1000000000u),
        .tv_nsec = (long long)(timeout_ns % 1000000000u),
    };
    int result;

    do {
        result = io_uring_submit_and_wait_timeout(&uring->ring, cqe, 1,
                                                  &timeout, NULL);
    } while (result == -EINTR && timeout_ns == UINT64_MAX);
    return result == -EINTR ? -ETIME : result;
}

static enum hf_status uring_wait(struct journal_io *io, uint64_t timeout_ns,
                                 int *error)
{
    struct uring *uring = (struct uring *)io;

    for (;;) {
        struct io_uring_cqe *cqe = NULL;
        int result = submit_and_wait(uring, timeout_ns, &cqe);
        if (cqe == NULL && result < 0 && result != -ETIME) {
            *error = -result;
            return HF_OK;
        }
        if (cqe == NULL) {
            if (uring->notify)
                return HF_PENDING;
            /* Look once more after switching on, in the kernel: an end in
             * between would have told nobody. */
            set_notify(uring, true);
            timeout_ns = 0;
            continue;
        }
        if (take(uring, cqe, error))
            return HF_OK;
    }
}

/* Submits the write, if that is still to be done; should it fail, wait() tells.
 * The ring says in memory whether there is anything to fetch from the kernel.
 */
static enum hf_status uring_ask(struct journal_io *io, int *error)
{
    struct uring *uring = (struct uring *)io;
    struct io_uring_cqe *cqe = NULL;

    if (io_uring_sq_ready(&uring->ring) > 0)
        (void)io_uring_submit(&uring->ring);
    if (io_uring_peek_cqe(&uring->ring, &cqe) != 0)
        return HF_PENDING;
    return take(uring, cqe, error) ? HF_OK : HF_PENDING;
}

static void uring_close(struct journal_io *io)
{
    struct uring *uring = (struct uring *)io;

    io_uring_queue_exit(&uring->ring);
    journal_io_free(io);
}

/* Ends are noted by this thread itself, when it waits for them: measured, that
 * brings the bounded wait down to what an inline write costs. It ties the ring
 * to one thread, which start() and wait() are anyway. Older systems know less
 * of this, or nothing. */
static int init_ring(struct io_uring *ring)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
            IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        0,
    };
    int result = -EINVAL;

    for (size_t i = 0; i < sizeof flags / sizeof *flags && result == -EINVAL;
         i++)
        result = io_uring_queue_init(RING_ENTRIES, ring, flags[i]);
    return result;
}

enum hf_status journal_io_uring(struct journal_io **out)
{
    static const struct journal_io calls = {
        .start = uring_start,
        .ask = uring_ask,
        .wait = uring_wait,
        .close = uring_close,
    };
    struct uring *uring;
    enum hf_status status = journal_io_new(sizeof *uring, calls, &uring);

    if (status != HF_OK) /* the ring needs a file descriptor, too */
        return status == HF_IO ? HF_NOTFOUND : status;
    if (init_ring(&uring->ring) != 0)
        goto no_ring;
    /* Without this feature a bounded wait costs a second request. */
    if (!(uring->ring.features & IORING_FEAT_EXT_ARG) ||
        io_uring_register_eventfd(&uring->ring, uring->io.wake_fd) != 0 ||
        io_uring_cq_eventfd_toggle(&uring->ring, false) != 0)
        goto no_notice;
    if (hf_thread_spins(1) == 0)
        uring->io.ask = NULL;
    *out = &uring->io;
    return HF_OK;

no_notice:
    io_uring_queue_exit(&uring->ring);
no_ring:
    journal_io_free(&uring->io);
    return HF_NOTFOUND;
}
