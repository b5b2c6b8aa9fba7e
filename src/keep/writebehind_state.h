/* writebehind_state.h - the inside of a writebehind, shared by its files.
 *
 *   writebehind.c          open, the end, figures
 *   writebehind_put.c      putting: room, the log or not; get, flush
 *   writebehind_dirty.c    what is dirty: the table, groups, the queue by age
 *   writebehind_run.c      the thread that writes to the store
 *   writebehind_log.c      the log: its format, appending, trimming
 *   writebehind_recover.c  reading it again
 *
 * A change is one version of a key, and is in one allocation with its key and
 * its value. The table leads to the newest version. There may be one more, on
 * its way to the store (`flying`):
 *
 *   table --> a=3 --twin--> a=2 (flying)
 *             |
 *   queue    oldest ... a=3 ... newest      by the record they stand for
 *
 * Every call that changes something is a record and has a number, 1, 2, 3...
 * `first` of a change is the number of the oldest record that is not in the
 * store until this change is. The queue is in the order of `first`, since a
 * change that overwrites another takes its place. So all records below `first`
 * of the oldest change are in the store: that is what flush waits for, and how
 * far the log may be cut.
 *
 * All of it is under one mutex. A call holds it for some ten instructions a
 * change; memory is had and given back outside, and so are hashes.
 */
#ifndef KEEP_WRITEBEHIND_STATE_H
#define KEEP_WRITEBEHIND_STATE_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/thread.h"
#include "holdfast/backoff.h"
#include "holdfast/writebehind.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct wb_group;

/* (i) immutable  (m) under the mutex  (a) atomic */
struct wb_change {
    struct wb_change *chain;     /* (m) the next in the table's bucket */
    struct wb_change **chained;  /* (m) what leads to it; NULL: not in it */
    struct wb_change *twin;      /* (m) see the drawing above */
    struct wb_change *next;      /* (m) in the queue, or in another list */
    struct wb_change *prev;      /* (m) in the queue */
    struct wb_group *group;      /* (m) NULL: it is alone */
    struct wb_change *peer_next; /* (m) in the group */
    struct wb_change *peer_prev; /* (m) */
    uint64_t first;              /* (m) see above */
    uint64_t since_ns;           /* (m) when that was put */
    uint64_t hash;               /* (i) */
    struct hf_atomic_u32 refs;   /* (a) its list, and those who read it */
    uint32_t key_len;            /* (i) */
    uint32_t value_len;          /* (i) */
    bool remove;                 /* (i) */
    bool flying;                 /* (m) */
    char bytes[];                /* (i) the key, then the value */
};

/* Changes that go to the store together. */
struct wb_group {
    struct wb_change *peers;      /* (m) */
    struct wb_change *peers_last; /* (m) */
    size_t count;                 /* (m) */
    struct wb_group *next;        /* of those that are to be freed */
};

/* One call that changes something, from its beginning to its end; on the
 * stack of who calls. */
struct wb_op {
    struct wb_change *changes; /* in order, by `next`; gone once applied */
    struct wb_group *group;    /* to be, if there are several */
    size_t count;
    uint64_t bytes;         /* that they take */
    uint64_t record_bytes;  /* in the log */
    uint64_t number;        /* of its record, once applied */
    uint64_t now_ns;        /* when it began, or had waited for room */
    struct wb_change *old;  /* what they replaced: to be released */
    struct wb_group *empty; /* groups that became part of others */
    /* In the log's queue. */
    struct wb_op *next;
    struct hf_event bell; /* its turn has come, or it is over */
    bool leads;           /* (m) its turn */
    enum hf_status status;
};

/* One who waits for room. */
struct wb_waiter {
    struct wb_waiter *next, *prev; /* (m) */
    struct hf_event event;
};

/* A file of the log. */
struct wb_segment {
    struct wb_segment *next; /* (m) the younger one */
    uint64_t first, last;    /* (i) (m) numbers of its records; empty: last is
                              * below first */
    uint64_t bytes;          /* (m) */
};

/* (l) of whoever leads; (t) of the thread that writes */
struct wb_log {
    const struct hf_disk *disk;  /* (i) */
    int dir, lock_fd;            /* (i) -1: none */
    int fd;                      /* (l) of the youngest segment, or -1 */
    struct hf_hash_seed salt;    /* (l) of the same */
    struct hf_buf frame;         /* (l) what is being written */
    struct wb_op *head, **tail;  /* (m) who waits for the disk */
    bool led;                    /* (m) somebody leads */
    bool failed;                 /* (m) for ever */
    struct wb_segment *oldest;   /* (m) */
    struct wb_segment *youngest; /* (m) the one that is written to */
    uint64_t bytes;              /* (m) of all segments, and reserved */
    uint64_t reserved;           /* (m) of these, by who waits */
    uint64_t segments;           /* (m) */
    uint64_t records, syncs;     /* (m) figures */
};

struct wb_queue {
    struct wb_change *head, *tail;
};

struct hf_writebehind {
    struct hf_listed listed;
    struct hf_writebehind_opts opts; /* (i) with defaults */
    struct hf_store store;           /* (i) */
    const struct hf_clock *clock;    /* (i) */
    struct hf_hash_seed seed;        /* (i) */
    struct hf_thread thread;
    struct hf_atomic_u32 thread_slot; /* (a) 1 + the slot of that thread */

    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct wb_change **table; /* (i) `buckets` of them, their content (m) */
    uint64_t buckets;         /* (i) a power of two */
    struct wb_queue queue;    /* (m) pending: dirty and not flying */
    uint64_t pending_count;   /* (m) */
    uint64_t pending_bytes;   /* (m) */
    uint64_t used_count;      /* (m) pending, flying, and being put */
    uint64_t used_bytes;      /* (m) */
    uint64_t dirty;           /* (m) pending and flying */
    uint64_t last;            /* (m) number of the last record */
    uint64_t landed;          /* (m) the floor that the log is trimmed to */
    uint64_t flying_first;    /* (m) lowest `first` of those flying; 0: none */
    uint64_t flying_since_ns; /* (m) */
    uint64_t flush_to;        /* (m) flush asked for records up to this */
    struct wb_waiter *waiting, *waiting_last; /* (m) for room */
    bool shut;                                /* (m) */
    bool ended;           /* (m) the thread is to leave what is left */
    struct hf_event work; /* for the thread: there may be something to do */
    struct hf_event done; /* something was written, or is dead */
    struct wb_log log;

    /* Figures (m). */
    uint64_t changes, coalesced, flushed, dead, groups, merged, refused,
        batches, by_size, by_age, failures, recovered;
    struct hf_waits waits; /* (a) for room */

    /* Of the thread that writes (t). */
    _Alignas(HF_CACHE_LINE) struct wb_change **flight; /* on their way */
    struct hf_store_change *batch;                     /* the same, for it */
    size_t flight_cap;
    size_t flight_count;
    size_t flight_done;  /* of these, written or dead */
    bool handed_back;    /* something, at the end */
    bool one_by_one;     /* a group at a time */
    uint64_t failing_ns; /* since when; 0: not */
    uint64_t retry_ns;   /* when the next call is due */
    struct hf_backoff backoff;
};

static inline uint64_t wb_after(uint64_t from_ns, uint64_t ns)
{
    return ns < HF_FOREVER - from_ns ? from_ns + ns : HF_FOREVER;
}

static inline uint64_t wb_change_bytes(const struct wb_change *change)
{
    return (uint64_t)change->key_len + change->value_len +
           HF_WRITEBEHIND_OVERHEAD;
}

static inline const char *wb_value(const struct wb_change *change)
{
    return change->bytes + change->key_len;
}

/* ---- writebehind_dirty.c: with the mutex held, unless said otherwise ---- */

/* Copies; NULL without memory. Without the mutex. */
struct wb_change *hf_wb_change_new(const struct hf_writebehind *behind,
                                   const struct hf_store_change *from);
/* Drops one reference. Without the mutex. */
void hf_wb_change_release(struct wb_change *change);
/* The newest version of a key, or NULL. */
struct wb_change *hf_wb_find(const struct hf_writebehind *behind, uint64_t hash,
                             const void *key, size_t key_len);
/* The changes of `op` become dirty, as record `op->number`. Cannot fail. */
void hf_wb_apply(struct hf_writebehind *behind, struct wb_op *op,
                 uint64_t now_ns);
/* The number up to which (exclusive) all records are in the store, or dead. */
uint64_t hf_wb_floor(const struct hf_writebehind *behind);
/* Changes of the oldest group, 0 if nothing is pending. */
size_t hf_wb_oldest_count(const struct hf_writebehind *behind);
/* Moves whole groups, oldest first, from the queue into the flight, up to the
 * size of a batch, one at least. It has room for the oldest. */
void hf_wb_take(struct hf_writebehind *behind);
/* These of the flight are in the store, or dead. Returns them as a list, to be
 * released, and their groups. */
struct wb_change *hf_wb_land(struct hf_writebehind *behind, size_t from,
                             size_t to, struct wb_group **groups);
/* The oldest group keeps so many changes; the rest of it stands alone. */
void hf_wb_split(struct hf_writebehind *behind, size_t keep);
/* Frees what an op or a flight left. Without the mutex. */
void hf_wb_discard(struct wb_change *changes, struct wb_group *groups);

/* ---- writebehind_put.c ---- */

/* Makes the changes of an op; HF_NOMEM: none is left. */
enum hf_status hf_wb_op_fill(const struct hf_writebehind *behind,
                             struct wb_op *op,
                             const struct hf_store_change *changes,
                             size_t count);
/* The first who waits for room looks again; with the mutex. */
void hf_wb_room(struct hf_writebehind *behind);
/* There were `count` changes and `bytes` pending: has a batch just become
 * ready, or has the first change's time begun? With the mutex. */
bool hf_wb_must_wake(const struct hf_writebehind *behind, uint64_t count,
                     uint64_t bytes);
/* Is this the thread that writes? */
bool hf_wb_is_mine(const struct hf_writebehind *behind);

/* ---- writebehind_run.c ---- */

void hf_wb_main(void *behind);

/* ---- writebehind_log.c ---- */

/* Writes the op's record and has it applied; with the mutex, which it gives
 * back. The op's room is reserved; if it fails, that is given back, too. */
enum hf_status hf_wb_log_put(struct hf_writebehind *behind, struct wb_op *op);
/* Removes the segments that are not needed any more: up to the floor, or all
 * if nothing is dirty at the end. Without the mutex. */
void hf_wb_log_trim(struct hf_writebehind *behind, bool all);
void hf_wb_log_destroy(struct hf_writebehind *behind);
/* Names of segments. */
#define WB_SEGMENT_NAME_BYTES 32
void hf_wb_segment_name(char out[WB_SEGMENT_NAME_BYTES], uint64_t first);

/* The format: see writebehind_log.c. */
#define WB_HEADER_BYTES   64u
#define WB_FRAME_BYTES    32u /* before the records */
#define WB_REMOVED        UINT32_MAX
#define WB_HEADER_MAGIC   "HFWBSEG1"
#define WB_FRAME_MAGIC    "HFWBFRM1"
#define WB_FRAME_ALIGN    8u
#define WB_LOG_VERSION    1u
#define WB_HEADER_CHECKED 16u /* where the checked bytes begin */
struct hf_hash_seed hf_wb_header_seed(void);
/* What an errno of the disk means to the user; 0: HF_OK. */
enum hf_status hf_wb_status(int error);

/* ---- writebehind_recover.c ---- */

/* Locks the folder, reads what is there, makes it dirty and cuts a torn end.
 * On failure hf_wb_log_destroy() cleans up. */
enum hf_status hf_wb_log_open(struct hf_writebehind *behind,
                              const struct hf_disk *disk);

/* ---- writebehind.c ---- */

/* As hf_writebehind_open, on another disk: for tests. */
enum hf_status hf_wb_open_on(struct hf_writebehind **out,
                             const struct hf_writebehind_opts *opts,
                             const struct hf_disk *disk);

#endif
