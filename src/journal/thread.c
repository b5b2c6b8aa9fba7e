/* thread.c - the batch write by a pool of one thread, for systems that do not
 * let us use io_uring. */
#include <assert.h>
#include <stdbool.h>

#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/pool.h"
#include "journal/disk.h"
#include "sync/mutex.h"

enum job { JOB_NONE, JOB_GIVEN, JOB_DONE };

struct writer {           /* (m) under mutex  (i) immutable after the start */
    struct journal_io io; /* (i) */
    struct hf_pool *pool; /* (i) */
    struct hf_pool_work work;
    struct hf_mutex mutex;
    struct hf_event done; /* the job has ended */
    enum job job;         /* (m) */
    bool notify;          /* (m) somebody has given up waiting */
    int fd;               /* the job; the worker's while given */
    const void *data;
    size_t len;
    uint64_t offset;
    int error; /* (m) how the job ended */
};

static int run_job(void *argument)
{
    struct writer *writer = argument;
    int error = writer->io.write(&writer->io, writer->fd, writer->data,
                                 writer->len, writer->offset);

    hf_mutex_lock(&writer->mutex);
    assert(writer->job == JOB_GIVEN);
    writer->error = error;
    writer->job = JOB_DONE;
    bool notify = writer->notify;
    hf_mutex_unlock(&writer->mutex);
    if (notify)
        journal_io_wake(&writer->io);
    hf_event_wake(&writer->done, 1);
    return 0;
}

static void writer_start(struct journal_io *io, int fd, const void *data,
                         size_t len, uint64_t offset)
{
    struct writer *writer = (struct writer *)io;

    hf_mutex_lock(&writer->mutex);
    assert(writer->job == JOB_NONE);
    writer->fd = fd;
    writer->data = data;
    writer->len = len;
    writer->offset = offset;
    writer->notify = false;
    writer->job = JOB_GIVEN;
    hf_mutex_unlock(&writer->mutex);
    /* It is at rest: the last job has ended. */
    enum hf_status status = hf_pool_post(&writer->work);
    assert(status == HF_OK);
    (void)status;
}

static enum hf_status try_done(void *context)
{
    struct writer *writer = context;

    hf_mutex_lock(&writer->mutex);
    bool done = writer->job == JOB_DONE;
    hf_mutex_unlock(&writer->mutex);
    return done ? HF_OK : HF_PENDING;
}

static enum hf_status writer_wait(struct journal_io *io, uint64_t timeout_ns,
                                  int *error)
{
    struct writer *writer = (struct writer *)io;
    enum hf_status status = HF_PENDING;

    /* The system's clock: see keeper_switch_wait(). */
    (void)hf_event_until(&writer->done, try_done, writer, NULL,
                         hf_clock_after_ns(NULL, timeout_ns));
    hf_mutex_lock(&writer->mutex);
    if (writer->job == JOB_DONE) {
        status = HF_OK;
        *error = writer->error;
        writer->job = JOB_NONE;
    }
    writer->notify = status == HF_PENDING;
    hf_mutex_unlock(&writer->mutex);
    return status;
}

/* Finishes a job that was given. */
static void writer_close(struct journal_io *io)
{
    struct writer *writer = (struct writer *)io;

    hf_pool_close(writer->pool);
    journal_io_free(io);
}

enum hf_status journal_io_thread(struct journal_io **out)
{
    static const struct journal_io calls = {
        .start = writer_start, .wait = writer_wait, .close = writer_close};
    const struct hf_pool_opts opts = {.name = "journal-writer",
                                      .kind = HF_POOL_SINGLE};
    struct writer *writer;
    enum hf_status status = journal_io_new(sizeof *writer, calls, &writer);

    if (status != HF_OK)
        return status;
    status = hf_pool_open(&writer->pool, &opts);
    if (status != HF_OK) {
        journal_io_free(&writer->io);
        return status;
    }
    status =
        hf_pool_work_init(&writer->work, writer->pool, run_job, writer, NULL);
    assert(status == HF_OK);
    *out = &writer->io;
    return HF_OK;
}
