/* thread.c - the batch write by a thread of its own, for systems that do not
 * let us use io_uring. */
#include "journal/disk.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/wait.h"

enum job { JOB_NONE, JOB_GIVEN, JOB_DONE };

struct writer {             /* (m) under mutex  (i) immutable after the start */
    struct journal_io io;   /* (i) */
    pthread_t thread;       /* (i) */
    pthread_mutex_t mutex;  /* */
    pthread_cond_t changed; /* `job` or `stop` has changed */
    enum job job;           /* (m) */
    bool stop;              /* (m) */
    bool notify;            /* (m) somebody has given up waiting */
    int fd;                 /* (m) the job; the thread's while given */
    const void *data;
    size_t len;
    uint64_t offset;
    int error; /* (m) how the job ended */
};

static void *writer_main(void *argument)
{
    struct writer *writer = argument;

    pthread_mutex_lock(&writer->mutex);
    for (;;) {
        while (writer->job != JOB_GIVEN && !writer->stop)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        if (writer->job != JOB_GIVEN)
            break;
        pthread_mutex_unlock(&writer->mutex);
        int error = writer->io.write(&writer->io, writer->fd, writer->data,
                                     writer->len, writer->offset);
        pthread_mutex_lock(&writer->mutex);
        writer->error = error;
        writer->job = JOB_DONE;
        if (writer->notify)
            journal_io_wake(&writer->io);
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

static void writer_start(struct journal_io *io, int fd, const void *data,
                         size_t len, uint64_t offset)
{
    struct writer *writer = (struct writer *)io;

    pthread_mutex_lock(&writer->mutex);
    writer->fd = fd;
    writer->data = data;
    writer->len = len;
    writer->offset = offset;
    writer->notify = false;
    writer->job = JOB_GIVEN;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

static enum hf_status writer_wait(struct journal_io *io, uint64_t timeout_ns,
                                  int *error)
{
    struct writer *writer = (struct writer *)io;
    struct timespec deadline = wait_deadline(timeout_ns);
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&writer->mutex);
    while (writer->job != JOB_DONE && status == HF_OK) {
        if (!wait_until(&writer->changed, &writer->mutex, &deadline))
            status = HF_PENDING;
    }
    if (writer->job == JOB_DONE) {
        status = HF_OK;
        *error = writer->error;
        writer->job = JOB_NONE;
    }
    writer->notify = status == HF_PENDING;
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

static void writer_close(struct journal_io *io)
{
    struct writer *writer = (struct writer *)io;

    pthread_mutex_lock(&writer->mutex);
    writer->stop = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    close(io->wake_fd);
    hf_free(writer);
}

enum hf_status journal_io_thread(struct journal_io **out)
{
    struct writer *writer = hf_alloc_zeroed(sizeof *writer);

    if (writer == NULL)
        return HF_NOMEM;
    if (journal_io_files(&writer->io) != HF_OK) {
        hf_free(writer);
        return HF_IO;
    }
    writer->io.start = writer_start;
    writer->io.wait = writer_wait;
    writer->io.close = writer_close;
    pthread_mutex_init(&writer->mutex, NULL);
    wait_init(&writer->changed);
    if (pthread_create(&writer->thread, NULL, writer_main, writer) != 0) {
        pthread_cond_destroy(&writer->changed);
        pthread_mutex_destroy(&writer->mutex);
        close(writer->io.wake_fd);
        hf_free(writer);
        return HF_NOMEM;
    }
    *out = &writer->io;
    return HF_OK;
}
