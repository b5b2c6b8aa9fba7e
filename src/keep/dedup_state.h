/* dedup_state.h - the inside of holdfast/dedup.h, for the files that make it
 * up.
 *
 *   dedup.c        the calls: hash, shard, then in order
 *   dedup_table.c  a shard's table in memory
 *   dedup_run.c    what a full table becomes on disk
 *
 * An entry is three words and the value, in memory and on disk the same:
 *
 *   +----------+----------+----------+---------------+
 *   |   high   |   low    | until_ns |    value      |
 *   +----------+----------+----------+---------------+
 *
 * The top bits of `high` choose the shard and `high` sorts a run; `low` chooses
 * the place in a table. until_ns 0: an empty place, or an item forgotten. An
 * entry counts while now < until_ns.
 */
#ifndef KEEP_DEDUP_STATE_H
#define KEEP_DEDUP_STATE_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "holdfast/dedup.h"
#include "sync/listed.h"
#include "sync/mutex.h"

#define DEDUP_PAGE_BYTES 4096u

struct dedup_entry {
    uint64_t high;
    uint64_t low;
    uint64_t until_ns;
    unsigned char value[];
};

/* Open addressing with linear probing; removing moves the followers up, so
 * there are no tombstones. Everything (m) of the shard. */
struct dedup_table {
    unsigned char *slots; /* NULL: no entry yet */
    uint64_t slot_count;  /* a power of two */
    uint64_t count;
    uint64_t hand;        /* where the sweep goes on */
    uint64_t earliest_ns; /* no entry expires before */
    uint64_t swept_ns;    /* when all of it was last looked at */
};

struct dedup_run {
    uint64_t offset;      /* in the file */
    uint64_t count;       /* entries */
    uint64_t latest_ns;   /* when the last one has expired */
    uint64_t *filter;     /* blocks of 512 bits */
    uint64_t block_count; /* of the filter */
    uint64_t *firsts;     /* `high` of the first entry of each page */
    uint64_t page_count;
};

/* What hf_dedup_run_find() found out. */
enum dedup_answer { DEDUP_NO, DEDUP_YES, DEDUP_BROKEN };

struct dedup_shard {
    struct hf_mutex mutex;    /* guards what follows, but for (a) */
    uint64_t now_ns;          /* (m) the latest that was told */
    struct dedup_table table; /* (m) */
    struct dedup_run *runs;   /* (m) oldest first */
    size_t run_count;         /* (m) */
    size_t run_room;          /* (m) */
    uint64_t *spares;         /* (m) places in the file that are free again;
                               * all runs of a shard are of one size */
    size_t spare_count;       /* (m) with the runs never above run_room */
    unsigned char *page;      /* (m) one that is being read */
    /* Written under the mutex, read by anybody: relaxed, for they are figures
     * and guard nothing. */
    struct hf_atomic_u64 added;         /* (a) */
    struct hf_atomic_u64 seen;          /* (a) */
    struct hf_atomic_u64 refused;       /* (a) */
    struct hf_atomic_u64 forgotten;     /* (a) */
    struct hf_atomic_u64 items;         /* (a) */
    struct hf_atomic_u64 disk_items;    /* (a) */
    struct hf_atomic_u64 memory_bytes;  /* (a) */
    struct hf_atomic_u64 disk_bytes;    /* (a) */
    struct hf_atomic_u64 run_total;     /* (a) */
    struct hf_atomic_u64 page_reads;    /* (a) */
    struct hf_atomic_u64 filter_errors; /* (a) */
} __attribute__((aligned(64)));

struct hf_dedup {
    struct hf_listed listed;
    struct hf_hash_seed seeds[2];  /* (i) of the two words */
    uint64_t window_ns;            /* (i) */
    uint64_t shard_items;          /* (i) of a table, at most */
    uint64_t shard_disk_items;     /* (i) of a shard's runs, at most */
    uint64_t items_max;            /* (i) as asked for */
    size_t value_bytes;            /* (i) */
    size_t stride;                 /* (i) bytes of an entry */
    size_t page_entries;           /* (i) entries of a page */
    uint32_t filter_bits;          /* (i) */
    uint32_t shard_bits;           /* (i) */
    int fd;                        /* (i) of the runs; -1: no folder */
    struct hf_atomic_u64 file_end; /* (a) where the next run goes */
    struct dedup_shard *shards;    /* (i) */
};

static inline void dedup_count(struct hf_atomic_u64 *figure, int64_t by)
{
    uint64_t old = hf_u64_load(figure, __ATOMIC_RELAXED);

    hf_u64_store(figure, old + (uint64_t)by, __ATOMIC_RELAXED);
}

/* dedup_table.c. All of them under the shard's mutex. */

/* NULL if it is not there; an expired one is. */
struct dedup_entry *hf_dedup_table_find(const struct hf_dedup *dedup,
                                        const struct dedup_table *table,
                                        uint64_t high, uint64_t low);
/* A place for an entry that is not there; the caller fills it in at once.
 * HF_FULL: shard_items; HF_NOMEM. */
enum hf_status hf_dedup_table_add(const struct hf_dedup *dedup,
                                  struct dedup_shard *shard, uint64_t high,
                                  uint64_t low, uint64_t until_ns,
                                  struct dedup_entry **out);
void hf_dedup_table_remove(const struct hf_dedup *dedup,
                           struct dedup_shard *shard,
                           struct dedup_entry *entry);
/* Removes what has expired, if there can be anything; a large table only if
 * a part of a window has passed since. */
void hf_dedup_table_sweep(const struct hf_dedup *dedup,
                          struct dedup_shard *shard);
/* The same in small steps, as items come. */
void hf_dedup_table_step(const struct hf_dedup *dedup,
                         struct dedup_shard *shard);
void hf_dedup_table_clear(const struct hf_dedup *dedup,
                          struct dedup_shard *shard);
struct dedup_entry *hf_dedup_table_at(const struct hf_dedup *dedup,
                                      const struct dedup_table *table,
                                      uint64_t index);

/* dedup_run.c. All of them under the shard's mutex. */

/* Writes the table as a run and empties it. On failure nothing is changed. */
enum hf_status hf_dedup_run_write(struct hf_dedup *dedup,
                                  struct dedup_shard *shard);
/* Looks for an entry that counts, in all runs. If found it is in the shard's
 * page, at `*out`, and `*offset` is where it stands in the file. */
enum dedup_answer hf_dedup_run_find(struct hf_dedup *dedup,
                                    struct dedup_shard *shard, uint64_t high,
                                    uint64_t low, struct dedup_entry **out,
                                    uint64_t *offset);
/* Lets go of the runs that have expired. */
void hf_dedup_run_expire(struct hf_dedup *dedup, struct dedup_shard *shard);
/* The entry at `offset` of the file counts no more. */
enum hf_status hf_dedup_run_forget(struct hf_dedup *dedup, uint64_t offset);
void hf_dedup_run_destroy(struct dedup_shard *shard);

#endif
