/* log_writer.c - the thread that writes: collects lines, and orders them.
 *
 * A pass takes what is in the buffers when it begins; what comes meanwhile is
 * for the next. So it ends, whatever the threads and the clock do.
 *
 * When a pass finds nothing, the writer sleeps until it is woken. It says so
 * (`idle`) and looks at the heads once more; whoever logs moves its head and
 * then looks whether the writer is idle. All four are seq_cst, so one of the
 * two sees the other.
 */
#include "exec/log_state.h"

/* Reads the record at `taken`; false if the pass has come to its end. */
static bool next_record(const struct hf_log *log, struct log_buffer *buffer)
{
    const uint64_t mask = log->opts.buffer_bytes - 1;
    /* Relaxed: head, which was read before, was moved after this was set. */
    const char *circle = hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED);

    while (buffer->taken < buffer->until) {
        const char *at = circle + (buffer->taken & mask);
        memcpy(&buffer->first, at, 8); /* padding may have no more */
        if (buffer->first.len != 0) {
            memcpy(&buffer->first, at, sizeof buffer->first);
            return true;
        }
        buffer->taken += buffer->first.bytes;
    }
    return false;
}

/* The buffers that have lines now; NULL: none. */
static struct log_buffer *find_lines(struct hf_log *log)
{
    struct log_buffer *list = NULL;
    struct log_buffer *buffer;
    uint64_t oldest_us = UINT64_MAX;
    uint32_t slot = 0;

    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL) {
        /* Acquire: the records below it, and the circle. */
        buffer->until = hf_u64_load(&buffer->head, __ATOMIC_ACQUIRE);
        if (!next_record(log, buffer))
            continue;
        buffer->next = list;
        list = buffer;
        if (buffer->first.time_us < oldest_us)
            oldest_us = buffer->first.time_us;
    }
    /* Relaxed: a figure. */
    hf_u64_store(&log->oldest_us, list == NULL ? 0 : oldest_us,
                 __ATOMIC_RELAXED);
    return list;
}

/* Adds lines of the buffer up to that time. False: it has no more. */
static bool add_lines(struct hf_log *log, struct log_buffer *buffer,
                      uint64_t time_us, uint64_t now_us)
{
    const uint64_t mask = log->opts.buffer_bytes - 1;
    const char *circle = hf_ptr_load(&buffer->bytes, __ATOMIC_RELAXED);

    do {
        uint64_t at = buffer->taken & mask;
        uint64_t since_us = buffer->first.time_us;
        hf_log_file_add(log, circle + at + sizeof buffer->first,
                        buffer->first.len);
        /* After the line is in the batch: what was written before it has been
         * given back without it. */
        buffer->taken += buffer->first.bytes;
        hf_waits_note(&log->waits,
                      now_us > since_us ? (now_us - since_us) * 1000 : 0);
        if (!next_record(log, buffer))
            return false;
    } while (buffer->first.time_us <= time_us);
    return true;
}

/* The lines of all buffers in the list, the oldest first. */
static void merge(struct hf_log *log, struct log_buffer *list)
{
    const uint64_t now_us = hf_clock_wall_us(log->clock);

    while (list != NULL) {
        struct log_buffer **oldest = &list;
        uint64_t second_us = UINT64_MAX; /* the oldest line of the others */
        for (struct log_buffer **at = &list->next; *at != NULL;
             at = &(*at)->next) {
            uint64_t time_us = (*at)->first.time_us;
            if (time_us < (*oldest)->first.time_us) {
                second_us = (*oldest)->first.time_us;
                oldest = at;
            } else if (time_us < second_us) {
                second_us = time_us;
            }
        }
        if (!add_lines(log, *oldest, second_us, now_us))
            *oldest = (*oldest)->next;
    }
}

static void add_own(struct hf_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_own(struct hf_log *log, const char *format, ...)
{
    struct log_line line;
    va_list args;

    va_start(args, format);
    hf_log_line_make(&line, log->opts.form, HF_LOG_WARN,
                     hf_clock_wall_us(log->clock), &log->stamp, format, args);
    va_end(args);
    hf_log_file_add(log, line.text, line.len);
    log->batch_lines--; /* nobody logged it */
}

/* Writes what is left and says what was lost. Lines that are lost by this very
 * write are told the next time. */
static void finish(struct hf_log *log)
{
    uint64_t dropped = hf_log_dropped(log);
    uint64_t failed = hf_u64_load(&log->failed, __ATOMIC_RELAXED); /* ours */

    if (dropped != log->told_dropped)
        add_own(log, "%llu lines dropped",
                (unsigned long long)(dropped - log->told_dropped));
    if (failed != log->told_failed)
        add_own(log, "%llu lines could not be written",
                (unsigned long long)(failed - log->told_failed));
    if (hf_log_file_write(log)) {
        log->told_dropped = dropped;
        log->told_failed = failed;
    }
}

/* Everything that is there; false if nothing was. */
static bool collect(struct hf_log *log)
{
    struct log_buffer *list = find_lines(log);

    merge(log, list);
    finish(log);
    hf_u64_store(&log->oldest_us, 0, __ATOMIC_RELAXED); /* a figure */
    return list != NULL;
}

static bool has_lines(const struct hf_log *log)
{
    const struct log_buffer *buffer;
    uint32_t slot = 0;

    while ((buffer = hf_locals_next(&log->buffers, &slot)) != NULL) {
        /* seq_cst: see above. */
        if (hf_u64_load(&buffer->head, __ATOMIC_SEQ_CST) != buffer->taken)
            return true;
    }
    return false;
}

void hf_log_writer_main(void *argument)
{
    struct hf_log *log = argument;

    for (;;) {
        uint32_t key = hf_event_prepare(&log->work);
        uint64_t until_ns = HF_FOREVER;
        /* Acquire: all lines that were logged before. */
        bool closing = hf_u32_load(&log->closing, __ATOMIC_ACQUIRE) != 0;
        /* Acquire: the lines before the flush that asked. */
        uint64_t flushes = hf_u64_load(&log->flushes, __ATOMIC_ACQUIRE);
        bool found = collect(log);
        /* Release: they are written, and the figures with them. */
        hf_u64_store(&log->flushed, flushes, __ATOMIC_RELEASE);
        hf_event_wake_all(&log->done);
        if (closing) {
            hf_event_cancel(&log->work, key);
            return;
        }
        if (!found) {
            /* seq_cst: see above. */
            hf_u32_store(&log->idle, 1, __ATOMIC_SEQ_CST);
            if (has_lines(log)) {
                hf_u32_store(&log->idle, 0, __ATOMIC_RELAXED);
                hf_event_cancel(&log->work, key);
                continue; /* at once, as if they had woken us */
            }
        } else {
            uint64_t now_ns = hf_clock_now_ns(log->clock);
            if (log->opts.delay_ns < HF_FOREVER - now_ns)
                until_ns = now_ns + log->opts.delay_ns;
        }
        (void)hf_event_wait(&log->work, key, log->clock, until_ns);
        /* Relaxed: who still finds it set wakes us once in vain. */
        hf_u32_store(&log->idle, 0, __ATOMIC_RELAXED);
    }
}
