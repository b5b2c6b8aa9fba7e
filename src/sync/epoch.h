/* epoch.h - the inside of holdfast/epoch.h, for structures whose readers must
 * not pay for calls: enter, load and leave as inline functions.
 *
 * All accesses that meet another thread's are SEQ_CST. A reader announces its
 * span and then loads a link; a reclaimer unlinks a node and then looks at the
 * spans. In one order of all of these, either the reclaimer sees the span or
 * the reader no longer sees the node. On x86 only the announcement costs more
 * than a plain access.
 */
#ifndef SYNC_EPOCH_H
#define SYNC_EPOCH_H

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/epoch.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"

/* `lower` of a reader that is not inside; eras start at 1. */
#define EPOCH_OUTSIDE 0

struct hf_epoch_reader { /* (o) its thread's own */
    /* The eras in which it has been reading: a node whose life touches them
     * stays. Written by the owner only. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 lower; /* (a) */
    struct hf_atomic_u64 upper;                         /* (a) */
    struct hf_epoch *epoch;         /* (o) once a thread has it */
    uint64_t seen_era;              /* (o) what `upper` holds */
    uint32_t depth;                 /* (o) enters without leave */
    uint32_t births;                /* (o) since the era was moved on */
    struct hf_epoch_node *list;     /* (o) what it retired, newest first */
    struct hf_epoch_node *last;     /* (o) the oldest of them */
    uint64_t listed;                /* (o) nodes in it */
    uint64_t scan_at;               /* (o) listed nodes that ask for a scan */
    uint32_t scanning;              /* (o) a scan is under way */
    struct hf_atomic_u64 retired;   /* (a) since open; written by the owner */
    struct hf_atomic_u64 freed;     /* (a) since open; written by the owner */
    struct hf_atomic_u32 thread_id; /* (a) 0: no thread has it */
    struct hf_atomic_u64 name[2];   /* (a) the thread's name, 16 bytes */
};

/* The reader that is in the way for longest, as scans have seen it. Without a
 * lock: a thread that is stopped here must not stop those who ask. Two scans at
 * a time may leave figures of both; each word is right by itself. */
struct epoch_watch {
    struct hf_atomic_u64 reader;   /* (a) lower and slot; 0: none */
    struct hf_atomic_u64 since_ns; /* (a) first found in the way */
    struct hf_atomic_u64 garbage;  /* (a) */
    struct hf_atomic_u64 told;     /* (a) the last reader that was told of */
    struct hf_atomic_u64 stalls;   /* (a) since open */
};

struct hf_epoch {
    struct hf_listed listed;
    struct hf_epoch_opts opts; /* (i) */
    struct hf_locals readers;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 era;     /* (a) */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr orphans; /* (a) of threads
                                                           * that ended */
    struct epoch_watch watch;
    struct hf_epoch *next; /* (d) under the lock of all epochs */
    struct hf_epoch *prev; /* (d) */
};

/* A thread uses its reader for the first time: notes whose it is. */
void hf_epoch_reader_adopt(struct hf_epoch *epoch,
                           struct hf_epoch_reader *reader);

/* Leaves what this thread has retired to whoever scans next. */
void hf_epoch_share(struct hf_epoch_reader *reader);

/* The reader of this thread; NULL without memory. */
static inline struct hf_epoch_reader *epoch_reader_mine(struct hf_epoch *epoch)
{
    return (struct hf_epoch_reader *)hf_locals_mine(
        &epoch->readers, sizeof(struct hf_epoch_reader));
}

static inline struct hf_epoch_reader *epoch_enter(struct hf_epoch *epoch)
{
    struct hf_epoch_reader *reader = (struct hf_epoch_reader *)hf_locals_mine(
        &epoch->readers, sizeof *reader);

    if (__builtin_expect(reader == NULL, 0))
        return NULL;
    if (reader->depth++ != 0)
        return reader;
    /* Relaxed: only its own thread changes it. */
    if (__builtin_expect(hf_u32_load(&reader->thread_id, __ATOMIC_RELAXED) == 0,
                         0))
        hf_epoch_reader_adopt(epoch, reader);
    uint64_t era = hf_u64_load(&epoch->era, __ATOMIC_SEQ_CST);
    reader->seen_era = era;
    /* Relaxed: `lower` announces both. */
    hf_u64_store(&reader->upper, era, __ATOMIC_RELAXED);
    hf_u64_store(&reader->lower, era, __ATOMIC_SEQ_CST);
    return reader;
}

static inline void epoch_leave(struct hf_epoch_reader *reader)
{
    assert(reader->depth > 0);
    if (--reader->depth == 0)
        /* Release: what was read before is no longer needed after. */
        hf_u64_store(&reader->lower, EPOCH_OUTSIDE, __ATOMIC_RELEASE);
}

static inline void *epoch_load(struct hf_epoch_reader *reader,
                               const struct hf_atomic_ptr *link)
{
    for (;;) {
        void *node = hf_ptr_load(link, __ATOMIC_SEQ_CST);
        /* A node is born in an era that was then current: read after the
         * node, the era is no less. */
        uint64_t era = hf_u64_load(&reader->epoch->era, __ATOMIC_SEQ_CST);
        if (__builtin_expect(era == reader->seen_era, 1))
            return node;
        reader->seen_era = era;
        hf_u64_store(&reader->upper, era, __ATOMIC_SEQ_CST);
    }
}

#endif
