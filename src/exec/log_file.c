/* log_file.c - the file that lines go to, and how it is rotated.
 *
 * The descriptor keeps its number for ever; rotation makes it lead to another
 * file. So a signal handler can write to it at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "exec/log_state.h"

#define PATH_BYTES 4096

enum hf_status hf_log_file_open(struct hf_log *log)
{
    struct stat status;

    log->fd = log->opts.fd;
    log->batch = hf_alloc(LOG_BATCH_BYTES);
    if (log->batch == NULL)
        return HF_NOMEM;
    if (log->opts.path == NULL || log->opts.sink != NULL)
        return HF_OK;
    size_t bytes = strlen(log->opts.path) + 1;
    if (bytes + 16 > PATH_BYTES)
        return HF_INVALID;
    log->path = hf_alloc(bytes);
    if (log->path == NULL)
        return HF_NOMEM;
    memcpy(log->path, log->opts.path, bytes);
    log->fd = open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (log->fd < 0)
        return HF_IO;
    if (fstat(log->fd, &status) == 0 && S_ISREG(status.st_mode))
        log->file_bytes = (uint64_t)status.st_size;
    return HF_OK;
}

void hf_log_file_close(struct hf_log *log)
{
    if (log->path != NULL && log->fd >= 0)
        close(log->fd);
    hf_free(log->batch);
    hf_free(log->path);
}

/* ---- Rotation. ---- */

static void move(const struct hf_log *log, uint32_t from, uint32_t to)
{
    char old[PATH_BYTES];
    char new[PATH_BYTES];

    if (from == 0)
        snprintf(old, sizeof old, "%s", log->path);
    else
        snprintf(old, sizeof old, "%s.%u", log->path, from);
    snprintf(new, sizeof new, "%s.%u", log->path, to);
    (void)rename(old, new); /* there may be none of that number yet */
}

/* path.4 becomes path.5, ... path becomes path.1, and a new file takes its
 * place. It is opened first: without it nothing is moved, and the old one is
 * written on until as much has come again. */
static void rotate(struct hf_log *log)
{
    char fresh[PATH_BYTES];

    log->file_bytes = 0;
    snprintf(fresh, sizeof fresh, "%s.new", log->path);
    int fd =
        open(fresh, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0)
        return;
    for (uint32_t i = log->opts.rotate_keep; i > 0; i--)
        move(log, i - 1, i);
    if (rename(fresh, log->path) == 0 && dup3(fd, log->fd, O_CLOEXEC) >= 0)
        log_count(&log->rotated, 1);
    close(fd);
}

/* ---- Writing. ---- */

/* Returns how many of the bytes the file has. */
static size_t write_some(int fd, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t more = write(fd, data + done, len - done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        done += (size_t)more;
    }
    return done;
}

static size_t write_file(struct hf_log *log)
{
    if (log->torn && write_some(log->fd, "\n", 1) == 1) {
        log->torn = false;
        log->file_bytes++;
    }
    if (log->torn)
        return 0;
    size_t done = write_some(log->fd, log->batch, log->batch_len);
    log->torn = done > 0 && log->batch[done - 1] != '\n';
    log->file_bytes += done;
    return done;
}

/* What was taken is written or counted as failed: its bytes may be used. */
static void give_back(struct hf_log *log)
{
    struct log_buffer *buffer;
    uint32_t slot = 0;

    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL) {
        /* Relaxed: only this thread moves it. Release: the lines were copied
         * before. */
        if (hf_u64_load(&buffer->tail, __ATOMIC_RELAXED) != buffer->taken)
            hf_u64_store(&buffer->tail, buffer->taken, __ATOMIC_RELEASE);
    }
    hf_event_wake_all(&log->room);
}

bool hf_log_file_write(struct hf_log *log)
{
    size_t done = log->batch_len;
    uint64_t lines = 0;

    if (log->batch_len == 0)
        return true;
    /* seq_cst: either we see that a handler was entered, which writes what we
     * have not given back, or it sees that we write, and waits. */
    hf_u32_store(&log->writing, 1, __ATOMIC_SEQ_CST);
    if (hf_u32_load(&log->crashed, __ATOMIC_SEQ_CST) != 0) {
        hf_u32_store(&log->writing, 0, __ATOMIC_RELEASE);
        log->batch_len = 0;
        log->batch_lines = 0;
        return true;
    }
    if (log->opts.sink == NULL)
        done = write_file(log);
    else if (log->opts.sink(log->opts.context, log->batch, log->batch_len) != 0)
        done = 0;
    bool all = done == log->batch_len;
    for (size_t i = 0; !all && i < done; i++)
        lines += log->batch[i] == '\n';
    if (all || lines > log->batch_lines) /* one more may be the writer's own */
        lines = log->batch_lines;
    log_count(&log->written, lines);
    log_count(&log->failed, log->batch_lines - lines);
    log->batch_len = 0;
    log->batch_lines = 0;
    give_back(log);
    /* Release: what was given back. */
    hf_u32_store(&log->writing, 0, __ATOMIC_RELEASE);
    return all;
}

void hf_log_file_add(struct hf_log *log, const char *line, size_t len)
{
    uint64_t bytes = log->file_bytes + log->batch_len;

    if (log->path != NULL && log->opts.rotate_bytes > 0 && bytes > 0 &&
        bytes + len > log->opts.rotate_bytes) {
        (void)hf_log_file_write(log);
        rotate(log);
    }
    if (log->batch_len + len > LOG_BATCH_BYTES)
        (void)hf_log_file_write(log);
    memcpy(log->batch + log->batch_len, line, len);
    log->batch_len += len;
    log->batch_lines++;
}
