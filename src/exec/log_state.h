/* log_state.h - the inside of a log: one buffer a thread, one writer.
 *
 * A buffer is a circle of bytes with records in it; `head` counts bytes put
 * since open, `tail` bytes that need not be kept. The thread moves head, the
 * writer tail, and only when what it took has been written: whoever finds the
 * process dying finds all that is missing in the file between the two.
 *
 *        tail       taken      head
 *   ------|==========|==========|--------   record: header, line, padding
 *          being written
 *
 * A record never wraps: what is left at the end of the circle is filled by a
 * record without a line. Records are of multiples of 8 bytes, so there are 8
 * bytes left at least, which is what tells its size.
 */
#ifndef EXEC_LOG_STATE_H
#define EXEC_LOG_STATE_H

#include <stdbool.h>

#include "base/thread.h"
#include "exec/log_line.h"
#include "holdfast/event.h"
#include "holdfast/log.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct log_record {
    uint32_t bytes; /* of the record, a multiple of 8 */
    uint32_t len;   /* of the line that follows; 0: padding */
    uint64_t time_us;
};

struct log_buffer { /* (a) atomic  (o) its thread's  (w) the writer's */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 head; /* (a) owner writes */
    uint64_t tail_seen;           /* (o) the tail, some time ago */
    struct hf_atomic_ptr bytes;   /* (a) the circle; set once */
    struct hf_atomic_u64 dropped; /* (a) owner writes */
    struct hf_atomic_u64 cut;     /* (a) owner writes */
    struct log_stamp stamp;       /* (o) */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 tail; /* (a) writer writes */
    uint64_t taken;                                    /* (w) */
    uint64_t until;          /* (w) the head when this pass began */
    struct log_record first; /* (w) the record at `taken` */
    struct log_buffer *next; /* (w) of those that have lines in this pass */
};

struct hf_log {
    struct hf_listed listed;
    struct hf_log_opts opts;      /* (i) with defaults */
    const struct hf_clock *clock; /* (i) */
    char *path;                   /* (i) a copy, or NULL */
    int fd;                       /* (i) rotation changes what it leads to */
    int64_t process;              /* (i) who opened it */
    struct hf_locals buffers;     /* struct log_buffer */
    struct hf_thread writer;
    struct hf_atomic_u32 level;    /* (a) */
    struct hf_atomic_u32 closing;  /* (a) */
    struct hf_atomic_u32 crashed;  /* (a) the writer keeps off */
    struct hf_atomic_u32 writing;  /* (a) it has not kept off yet */
    struct hf_atomic_u32 idle;     /* (a) the writer sleeps until it is woken */
    struct hf_event work;          /* lines that should not wait, or the end */
    struct hf_event room;          /* the writer has given bytes back */
    struct hf_event done;          /* the writer has flushed */
    struct hf_atomic_u64 reported; /* (a) failures that a flush has told */
    struct hf_atomic_u64 flushes;  /* (a) asked for */
    struct hf_atomic_u64 flushed;  /* (a) done */
    char *batch;                   /* (w) lines to be written together */
    size_t batch_len;              /* (w) */
    uint64_t batch_lines;          /* (w) */
    uint64_t file_bytes;           /* (w) */
    uint64_t told_dropped;         /* (w) drops that a line has told */
    uint64_t told_failed;          /* (w) the same of failures */
    bool torn;                     /* (w) the file ends in half a line */
    struct log_stamp stamp;        /* (w) */
    struct hf_atomic_u64 homeless; /* (a) lines dropped without a buffer */
    struct hf_atomic_u64 oldest_us; /* (a) of what is being written; 0: none */
    struct hf_atomic_u64 written, failed, rotated; /* (a) writer writes */
    struct hf_waits waits;
};

/* Only its owner changes it. Relaxed: figures. */
static inline void log_count(struct hf_atomic_u64 *figure, uint64_t more)
{
    hf_u64_store(figure, hf_u64_load(figure, __ATOMIC_RELAXED) + more,
                 __ATOMIC_RELAXED);
}

/* Lines that were dropped since open. */
uint64_t hf_log_dropped(const struct hf_log *log);

/* ---- log_writer.c ---- */

void hf_log_writer_main(void *argument);

/* ---- log_file.c ---- */

#define LOG_BATCH_BYTES (64u << 10)

/* Opens the file; HF_INVALID, HF_NOMEM, HF_IO. */
enum hf_status hf_log_file_open(struct hf_log *log);
void hf_log_file_close(struct hf_log *log);
/* Adds a line to the batch; when that is full, or the file, it is written. */
void hf_log_file_add(struct hf_log *log, const char *line, size_t len);
/* Writes the batch; true if there is nothing that could not be written. */
bool hf_log_file_write(struct hf_log *log);

/* ---- log_crash.c ---- */

/* From now to leave, a fatal signal writes the buffers of this log. HF_FULL:
 * there are too many. */
enum hf_status hf_log_crash_join(struct hf_log *log);
void hf_log_crash_leave(struct hf_log *log);

#endif
