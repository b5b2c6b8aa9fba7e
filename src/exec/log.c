/* log.c - what users call: a line is made and put into the thread's buffer. */
#include "holdfast/log.h"

#include <unistd.h>

#include "base/memory.h"
#include "exec/log_state.h"

#define DELAY_NS_DEFAULT    UINT64_C(5000000)
#define ROTATE_KEEP_DEFAULT 5u
#define BUFFER_MIN          (4 * (HF_LOG_LINE_MAX + 64u))

/* ---- The buffer. ---- */

static struct log_buffer *my_buffer(struct hf_log *log)
{
    struct log_buffer *buffer = hf_locals_mine(&log->buffers, sizeof *buffer);

    if (buffer == NULL)
        return NULL;
    /* Relaxed: its own thread sets it, and moves head after that. */
    if (hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED) == NULL) {
        void *bytes = hf_alloc(log->opts.buffer_bytes);
        if (bytes == NULL)
            return NULL;
        hf_ptr_store(&buffer->bytes, bytes, __ATOMIC_RELAXED);
    }
    return buffer;
}

/* Are so many bytes free? */
static bool has_room(const struct hf_log *log, struct log_buffer *buffer,
                     uint64_t head, uint64_t bytes)
{
    if (head + bytes - buffer->tail_seen <= log->opts.buffer_bytes)
        return true;
    /* Acquire: the writer has read what it gave back. */
    buffer->tail_seen = hf_u64_load(&buffer->tail, __ATOMIC_ACQUIRE);
    return head + bytes - buffer->tail_seen <= log->opts.buffer_bytes;
}

/* Puts the line in; false if there is no room. */
static bool put(const struct hf_log *log, struct log_buffer *buffer,
                const struct log_line *line, uint64_t time_us)
{
    const uint64_t mask = log->opts.buffer_bytes - 1;
    uint64_t head = hf_u64_load(&buffer->head, __ATOMIC_RELAXED); /* its own */
    uint32_t bytes =
        (uint32_t)(sizeof(struct log_record) + line->len + 7) & ~7u;
    uint32_t left = log->opts.buffer_bytes - (uint32_t)(head & mask);
    uint32_t skip = left < bytes ? left : 0;
    char *circle = hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED);

    if (!has_room(log, buffer, head, skip + bytes))
        return false;
    if (skip > 0) {
        struct log_record padding = {skip, 0, 0};
        memcpy(circle + (head & mask), &padding, 8); /* that much there is */
    }
    struct log_record record = {bytes, (uint32_t)line->len, time_us};
    char *at = circle + ((head + skip) & mask);
    memcpy(at, &record, sizeof record);
    memcpy(at + sizeof record, line->text, line->len);
    /* Release: the record. seq_cst: before we look whether the writer sleeps,
     * see there. */
    hf_u64_store(&buffer->head, head + skip + bytes, __ATOMIC_SEQ_CST);
    return true;
}

struct wait {
    struct hf_log *log;
    struct log_buffer *buffer;
    const struct log_line *line;
    uint64_t time_us;
};

static enum hf_status try_put(void *context)
{
    struct wait *wait = context;

    /* A buffer without room is more than half full, and the last line that was
     * put into it has woken the writer for that. */
    return put(wait->log, wait->buffer, wait->line, wait->time_us) ? HF_OK
                                                                   : HF_PENDING;
}

/* Wakes the writer if it would not come by itself, or not soon enough. */
static void wake_writer(struct hf_log *log, const struct log_buffer *buffer,
                        enum hf_log_level level)
{
    uint64_t head = hf_u64_load(&buffer->head, __ATOMIC_RELAXED); /* its own */

    /* seq_cst: see put. Relaxed: one of those who find it set is enough. */
    bool wake = hf_u32_load(&log->idle, __ATOMIC_SEQ_CST) != 0 &&
                hf_u32_swap(&log->idle, 0, __ATOMIC_RELAXED) != 0;
    if (wake || level >= HF_LOG_ERROR ||
        head - hf_u64_load(&buffer->tail, __ATOMIC_RELAXED) >
            log->opts.buffer_bytes / 2)
        hf_event_wake(&log->work, 1);
}

/* The thread's buffer if such a line is to be written; NULL: not. */
static struct log_buffer *begin(struct hf_log *log, enum hf_log_level level,
                                const char *text)
{
    if (log == NULL || text == NULL || (unsigned)level > HF_LOG_ERROR ||
        /* Relaxed: a switch. */
        level < hf_u32_load(&log->level, __ATOMIC_RELAXED))
        return NULL;
    struct log_buffer *buffer = my_buffer(log);
    if (buffer == NULL)
        hf_u64_add(&log->homeless, 1, __ATOMIC_RELAXED); /* a figure */
    return buffer;
}

static void deliver(struct hf_log *log, struct log_buffer *buffer,
                    enum hf_log_level level, const struct log_line *line,
                    uint64_t wall_us)
{
    struct wait wait = {log, buffer, line, wall_us};

    if (line->cut)
        log_count(&buffer->cut, 1);
    if (try_put(&wait) == HF_PENDING) {
        if (log->opts.overflow == HF_LOG_WAIT)
            (void)hf_event_until(&log->room, try_put, &wait, log->clock,
                                 HF_FOREVER);
        else
            log_count(&buffer->dropped, 1);
    }
    wake_writer(log, buffer, level);
}

void hf_log_write(struct hf_log *log, enum hf_log_level level,
                  const char *format, ...)
{
    struct log_buffer *buffer = begin(log, level, format);
    struct log_line line;
    va_list args;

    if (buffer == NULL)
        return;
    uint64_t wall_us = hf_clock_wall_us(log->clock);
    va_start(args, format);
    hf_log_line_make(&line, log->opts.form, level, wall_us, &buffer->stamp,
                     format, args);
    va_end(args);
    deliver(log, buffer, level, &line, wall_us);
}

void hf_log_event(struct hf_log *log, enum hf_log_level level,
                  const char *message, const struct hf_log_field *fields,
                  size_t count)
{
    struct log_buffer *buffer = begin(log, level, message);
    struct log_line line;

    if (buffer == NULL)
        return;
    uint64_t wall_us = hf_clock_wall_us(log->clock);
    hf_log_line_event(&line, log->opts.form, level, wall_us, &buffer->stamp,
                      message, fields, fields == NULL ? 0 : count);
    deliver(log, buffer, level, &line, wall_us);
}

void hf_log_set_level(struct hf_log *log, enum hf_log_level level)
{
    if (log != NULL && (unsigned)level <= HF_LOG_ERROR)
        hf_u32_store(&log->level, level, __ATOMIC_RELAXED); /* a switch */
}

/* ---- Flush. ---- */

struct flush {
    struct hf_log *log;
    uint64_t number;
};

static enum hf_status is_flushed(void *context)
{
    struct flush *flush = context;
    /* Acquire: the writer wrote before it said so. */
    return hf_u64_load(&flush->log->flushed, __ATOMIC_ACQUIRE) >= flush->number
               ? HF_OK
               : HF_PENDING;
}

enum hf_status hf_log_flush(struct hf_log *log, uint64_t deadline_ns)
{
    if (log == NULL)
        return HF_INVALID;
    struct flush flush = {log, 0};
    /* Release and acquire: the lines before it, ours and those of threads that
     * asked before. */
    flush.number = 1 + hf_u64_add(&log->flushes, 1, __ATOMIC_ACQ_REL);
    hf_event_wake(&log->work, 1);
    enum hf_status status =
        hf_event_until(&log->done, is_flushed, &flush, log->clock, deadline_ns);
    /* Relaxed: is_flushed() has acquired the figure that counts; of several
     * who flush at a time, one is told. */
    uint64_t failed = hf_u64_load(&log->failed, __ATOMIC_RELAXED);
    if (status == HF_OK &&
        hf_u64_swap(&log->reported, failed, __ATOMIC_RELAXED) < failed)
        status = HF_IO;
    return status;
}

/* ---- Figures. ---- */

uint64_t hf_log_dropped(const struct hf_log *log)
{
    const struct log_buffer *buffer;
    uint64_t dropped = hf_u64_load(&log->homeless, __ATOMIC_RELAXED);
    uint32_t slot = 0;

    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL)
        dropped += hf_u64_load(&buffer->dropped, __ATOMIC_RELAXED);
    return dropped;
}

void hf_log_stats(struct hf_log *log, struct hf_log_stats *out)
{
    const struct log_buffer *buffer;
    uint32_t slot = 0;

    if (log == NULL || out == NULL)
        return;
    /* Relaxed: figures. */
    *out = (struct hf_log_stats){
        .written = hf_u64_load(&log->written, __ATOMIC_RELAXED),
        .failed = hf_u64_load(&log->failed, __ATOMIC_RELAXED),
        .rotated = hf_u64_load(&log->rotated, __ATOMIC_RELAXED),
        .dropped = hf_log_dropped(log),
        .oldest_ns = HF_INSPECT_NONE,
        .wait_p99_ns = hf_waits_percentile_ns(&log->waits, 99)};
    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL) {
        /* Acquire: the head is not older than the tail. */
        uint64_t tail = hf_u64_load(&buffer->tail, __ATOMIC_ACQUIRE);
        out->waiting_bytes +=
            hf_u64_load(&buffer->head, __ATOMIC_RELAXED) - tail;
        out->cut += hf_u64_load(&buffer->cut, __ATOMIC_RELAXED);
    }
    uint64_t oldest_us = hf_u64_load(&log->oldest_us, __ATOMIC_RELAXED);
    uint64_t now_us = hf_clock_wall_us(log->clock);
    if (oldest_us != 0)
        out->oldest_ns = now_us > oldest_us ? (now_us - oldest_us) * 1000 : 0;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_log_stats stats;

    /* `listed` is the first member of the log, which is no constant. */
    hf_log_stats((struct hf_log *)(uintptr_t)listed, &stats);
    row->depth = stats.waiting_bytes;
    row->oldest_ns = stats.oldest_ns;
    row->rejected = stats.dropped;
    row->wait_p99_ns = stats.wait_p99_ns;
}

/* ---- Open and close. ---- */

static bool complete(struct hf_log_opts *opts)
{
    if ((unsigned)opts->level > HF_LOG_ERROR ||
        (unsigned)opts->form > HF_LOG_JSON ||
        (unsigned)opts->overflow > HF_LOG_WAIT ||
        opts->buffer_bytes > HF_LOG_BUFFER_MAX ||
        opts->rotate_keep > HF_LOG_ROTATE_KEEP_MAX || opts->fd < 0 ||
        (opts->rotate_bytes > 0 && opts->path == NULL))
        return false;
    if (opts->buffer_bytes == 0)
        opts->buffer_bytes = HF_LOG_BUFFER_DEFAULT;
    if (opts->buffer_bytes < BUFFER_MIN)
        opts->buffer_bytes = BUFFER_MIN;
    while ((opts->buffer_bytes & (opts->buffer_bytes - 1)) != 0)
        opts->buffer_bytes += opts->buffer_bytes & -opts->buffer_bytes;
    if (opts->fd == 0)
        opts->fd = STDERR_FILENO;
    if (opts->delay_ns == 0)
        opts->delay_ns = DELAY_NS_DEFAULT;
    if (opts->rotate_keep == 0)
        opts->rotate_keep = ROTATE_KEEP_DEFAULT;
    return true;
}

static void log_free(struct hf_log *log)
{
    struct log_buffer *buffer;
    uint32_t slot = 0;

    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL)
        /* Relaxed: nobody else is there any more. */
        hf_free(hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED));
    hf_locals_destroy(&log->buffers);
    hf_log_file_close(log);
    hf_free(log);
}

enum hf_status hf_log_open(struct hf_log **out, const struct hf_log_opts *opts)
{
    struct hf_log_opts all = {0};
    size_t bytes = (sizeof(struct hf_log) + HF_CACHE_LINE - 1) / HF_CACHE_LINE *
                   HF_CACHE_LINE;

    if (opts != NULL)
        all = *opts;
    if (out == NULL || !complete(&all))
        return HF_INVALID;
    struct hf_log *log = hf_alloc_lines(bytes);
    if (log == NULL)
        return HF_NOMEM;
    log->opts = all;
    log->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    hf_u32_store(&log->level, all.level, __ATOMIC_RELAXED); /* ours yet */
    enum hf_status status =
        hf_locals_init(&log->buffers, sizeof(struct log_buffer));
    if (status == HF_OK)
        status = hf_log_file_open(log);
    if (status == HF_OK && all.crash)
        status = hf_log_crash_join(log);
    if (status == HF_OK) {
        status = hf_thread_start(&log->writer, "log", hf_log_writer_main, log);
        if (status != HF_OK && all.crash)
            hf_log_crash_leave(log);
    }
    if (status != HF_OK) {
        log_free(log);
        return status;
    }
    hf_listed_add(&log->listed, "log", all.name, fill);
    *out = log;
    return HF_OK;
}

void hf_log_close(struct hf_log *log)
{
    if (log == NULL)
        return;
    hf_listed_remove(&log->listed);
    /* Release: all lines that were logged before. */
    hf_u32_store(&log->closing, 1, __ATOMIC_RELEASE);
    hf_event_wake(&log->work, 1);
    hf_thread_join(&log->writer);
    if (log->opts.crash)
        hf_log_crash_leave(log);
    log_free(log);
}
