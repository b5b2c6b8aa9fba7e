/* log_crash.c - a fatal signal writes what the buffers hold.
 *
 * The handler calls nothing that POSIX does not allow it. It takes the buffers
 * as they are: threads may still be adding lines, and the writer may be in the
 * middle of a write; it is told to keep off and has some time to finish that.
 * What it has not finished then is in the buffers, so nothing is missed, though
 * lines may appear twice.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "exec/log_state.h"

#define WRITER_MS 5000

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

static struct hf_atomic_ptr logs[HF_LOG_CRASH_MAX]; /* (a) NULL: free */
static struct sigaction before[FATAL_COUNT];        /* (i) once installed */
static struct hf_atomic_u32 entered;                /* (a) a thread writes */
static struct hf_atomic_u32 finished;               /* (a) it has written */

static bool write_line(int fd, const char *line, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, line, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        line += done;
        len -= (size_t)done;
    }
    return true;
}

static void write_buffer(const struct hf_log *log, struct log_buffer *buffer)
{
    const uint64_t mask = log->opts.buffer_bytes - 1;
    /* Acquire: the records below head, and the circle that they are in. */
    uint64_t head = hf_u64_load(&buffer->head, __ATOMIC_ACQUIRE);
    uint64_t tail = hf_u64_load(&buffer->tail, __ATOMIC_ACQUIRE);
    const char *circle = hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED);

    while (tail < head) {
        const char *at = circle + (tail & mask);
        struct log_record record;
        memcpy(&record, at, 8);
        if (record.bytes == 0 || record.bytes > head - tail)
            return; /* memory that was overwritten: leave it */
        if (record.len != 0 &&
            !write_line(log->fd, at + sizeof record, record.len))
            return;
        tail += record.bytes;
    }
}

/* Returns when the writer writes nothing, or has had time enough. It may be
 * the writer that has crashed. */
static void stop_writer(struct hf_log *log)
{
    /* seq_cst: see hf_log_file_write. */
    hf_u32_store(&log->crashed, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < WRITER_MS; i++) {
        if (hf_u32_load(&log->writing, __ATOMIC_SEQ_CST) == 0)
            return;
        (void)poll(NULL, 0, 1);
    }
}

static void write_logs(void)
{
    for (unsigned i = 0; i < HF_LOG_CRASH_MAX; i++) {
        /* seq_cst: see leave. */
        struct hf_log *log = hf_ptr_load(&logs[i], __ATOMIC_SEQ_CST);
        struct log_buffer *buffer;
        uint32_t slot = 0;
        if (log == NULL || log->opts.sink != NULL || log->process != getpid())
            continue;
        stop_writer(log);
        while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL)
            write_buffer(log, buffer);
    }
}

static void await_finished(void)
{
    while (hf_u32_load(&finished, __ATOMIC_ACQUIRE) == 0)
        (void)poll(NULL, 0, 1);
}

static void on_fatal(int number)
{
    int error = errno;

    /* Whichever thread comes first writes; the others must not end the process
     * before it has. seq_cst: see leave. */
    if (hf_u32_swap(&entered, 1, __ATOMIC_SEQ_CST) == 0) {
        write_logs();
        hf_u32_store(&finished, 1, __ATOMIC_RELEASE);
    }
    await_finished();
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (fatal[i] == number)
            sigaction(number, &before[i], NULL);
    }
    errno = error;
    raise(number); /* as if we had not been there; when we return */
}

static void install(void)
{
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};

    /* A fault inside the handler ends the process at once. */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < FATAL_COUNT; i++)
        sigaddset(&action.sa_mask, fatal[i]);
    for (size_t i = 0; i < FATAL_COUNT; i++)
        sigaction(fatal[i], &action, &before[i]);
}

enum hf_status hf_log_crash_join(struct hf_log *log)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    log->process = getpid();
    pthread_once(&once, install);
    for (unsigned i = 0; i < HF_LOG_CRASH_MAX; i++) {
        void *none = NULL;
        /* Release: the log. */
        if (hf_ptr_cas(&logs[i], &none, log, __ATOMIC_SEQ_CST))
            return HF_OK;
    }
    return HF_FULL;
}

/* Either the handler does not find the log any more, or we see that it was
 * entered and let it finish. */
void hf_log_crash_leave(struct hf_log *log)
{
    for (unsigned i = 0; i < HF_LOG_CRASH_MAX; i++) {
        void *mine = log;
        if (hf_ptr_cas(&logs[i], &mine, NULL, __ATOMIC_SEQ_CST))
            break;
    }
    if (hf_u32_load(&entered, __ATOMIC_SEQ_CST) != 0)
        await_finished();
}
