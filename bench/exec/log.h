/* log.h - the loop for logs: threads write lines, a file gets them.
 *
 *   BURST   there is room for all lines before the file: what a line costs
 *           the thread that writes it
 *   CALLER  far more lines than there is room for: callers wait for the file
 *   TOTAL   the same, until the last line is in the file and it is closed
 *
 * Lines have a time in microseconds, a level and some 80 bytes of text. The
 * file is in TMPDIR, or in /var/tmp; when a run is over its lines are counted.
 * One operation is one line.
 */
#ifndef BENCH_EXEC_LOG_H
#define BENCH_EXEC_LOG_H

#include <stdint.h>

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOG_PATH_MAX   256
#define LOG_BURST_ROOM 65536u /* lines, and more bytes than they have */
#define LOG_LINE_BYTES 128u

enum log_shape {
    LOG_BURST,
    LOG_CALLER,
    LOG_TOTAL,
};

/* What a side's open() returns begins with this. */
struct log_file {
    char path[LOG_PATH_MAX];
    uint64_t lines; /* that it should have */
    uint32_t ended; /* atomic: threads that have written all their lines */
};

/* A new file's name; and at the end: counts its lines and removes it. */
void log_file_make(struct log_file *file, const struct contest_work *work);
void log_file_end(struct log_file *file);

typedef void log_write(void *self, uint64_t number, unsigned thread);
/* All lines are in the file, and it is closed; does nothing the next time. */
typedef void log_finish(void *self);

CONTEST_INLINE void log_run(struct contest_thread *thread, log_write *write,
                            log_finish *finish)
{
    struct log_file *file = (struct log_file *)thread->self;
    uint64_t share = thread->total / thread->work->threads;

    for (uint64_t i = 0; i < share; i++)
        write(thread->self, i, thread->index);
    if (thread->work->shape != LOG_TOTAL)
        return;
    /* The last one closes: it must have seen the others end. */
    if (__atomic_add_fetch(&file->ended, 1, __ATOMIC_ACQ_REL) ==
        thread->work->threads)
        finish(thread->self);
}

#ifdef __cplusplus
}
#endif

#endif
