/* watch.h - looks at the room on the disk now and then, and warns in time.
 *
 * A disk that is full stops all writes, so somebody should hear of it while it
 * fills. Asking a file system how much is free may take as long as the disk
 * likes; so it is a task of the process's pool, by a scheduler, and not of the
 * loop, which waits for no disk.
 *
 * Threads: open, close and set from the loop, free from any.
 */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/log.h"
#include "holdfast/rate.h"
#include "holdfast/scheduler.h"

#define WATCH_UNKNOWN UINT64_MAX

struct watch { /* (i) immutable  (a) atomic  (t) the task's own */
    struct hf_scheduler *scheduler;  /* (i) NULL: not open */
    struct hf_log *log;              /* (i) outlives it */
    const char *dir;                 /* (i) outlives it */
    const struct hf_clock *clock;    /* (i) */
    struct hf_atomic_u64 warn_bytes; /* (a) 0: never */
    struct hf_atomic_u64 free_bytes; /* (a) WATCH_UNKNOWN: not known */
    struct hf_rate again;            /* (t) how often a warning is repeated */
    bool low;                        /* (t) it was told so */
};

/* HF_NOMEM: nobody watches; the rest goes on without. */
enum hf_status watch_open(struct watch *watch, struct hf_log *log,
                          const char *dir, uint64_t warn_bytes,
                          const struct hf_clock *clock);
/* Waits for a look that is under way. Also if it is not open. */
void watch_close(struct watch *watch);
void watch_set(struct watch *watch, uint64_t warn_bytes);
uint64_t watch_free_bytes(const struct watch *watch);

/* What a look does with what it saw; for tests. */
void watch_judge(struct watch *watch, uint64_t free_bytes);

#endif
