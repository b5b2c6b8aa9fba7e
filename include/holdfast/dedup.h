/* dedup.h - "is this new?": told to exactly one caller per item and window.
 *
 * A message is delivered twice, a client repeats a request, two workers pick up
 * the same job. All of them ask here first, with the item's bytes; one is told
 * "new", the others get what that one left. After the window the item counts as
 * new again, once.
 *
 *      add(A) new        add(A) seen                add(A) new
 *   ------|===================|=========|--------------|=====> time
 *         |<------- window ------------>|
 *
 * An item is known by 128 bits of a keyed hash of its bytes: 24 bytes an item
 * whatever its length. (That any two of 100 million items agree in 128 bits has
 * a chance of 1 in 10^23.) The set is split into shards, each with its lock and
 * table. Without a folder, a shard that is full refuses. With one, it writes
 * its items to disk as one sorted run and goes on with an empty table:
 *
 *   shard   table in memory           add: table -> filters of the runs, newest
 *             | full                       first -> on "perhaps": one page of
 *             v                            the run. A filter that errs costs
 *           run: filter + page index       that read, never an answer
 *           run: filter + page index
 *             '--- sorted pages on disk
 *
 * A run whose last item has expired is dropped whole by the next call that
 * comes to its shard, and its place in the file is used again. 100 million
 * items need 2.4 GB of disk and about 170 MB of memory: 12 bits an item for the
 * filters and 0.4 for the page index, plus the tables. The file has no name and
 * is gone with the process: this is a memory for a while, not a journal.
 *
 * Threads: every call but open and close from any thread. A shard is locked for
 *          the length of a call; with a folder also while it reads a page or
 *          writes a run.
 * Memory:  items are not kept, only their hashes. Values are copied.
 * Time:    the caller passes `now_ns` from one monotonic clock. A shard's time
 *          never goes back: a call with an older time counts as made now.
 *
 *   linearizable  exact                  lock-free  allocates  may overlap
 *   yes           window: to the ns;     no         to grow    all calls
 *                 full: see items_max
 *
 * Example:
 *
 *   struct hf_dedup *seen;
 *   struct hf_dedup_opts opts = {.window_ns = 60000000000};
 *   uint64_t now_ns = 5; // from the caller's clock
 *
 *   assert(hf_dedup_open(&seen, &opts) == HF_OK);
 *   assert(hf_dedup_add(seen, "order-17", 8, now_ns, NULL) == HF_OK); // new
 *   assert(hf_dedup_add(seen, "order-17", 8, now_ns, NULL) == HF_EXISTS);
 *   now_ns += 60000000000;
 *   assert(hf_dedup_add(seen, "order-17", 8, now_ns, NULL) == HF_OK);
 *   hf_dedup_close(seen);
 */
#ifndef HOLDFAST_DEDUP_H
#define HOLDFAST_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_DEDUP_VALUE_MAX  1024u
#define HF_DEDUP_SHARDS_MAX 1024u

struct hf_dedup;

struct hf_dedup_opts {
    const char *name;   /* for hf_inspect(); NULL: none */
    uint64_t window_ns; /* 0: one minute; at most UINT64_MAX / 4 */
    /* Items in memory. 0: 1,000,000. With several shards each has its part and
     * a little more, for they do not fill evenly. Where it is full, what has
     * expired makes room by 1/64 of a window later (of 768 items or fewer in a
     * shard: at once). */
    uint64_t items_max;
    uint32_t value_bytes; /* that go with each item, HF_DEDUP_VALUE_MAX */
    uint32_t shards;      /* a power of two; 0: 64, or 1 for few items */
    const char *folder;   /* for what memory does not hold; NULL: none */
    uint64_t disk_max;    /* items on disk; 0: 100 times items_max */
    uint32_t filter_bits; /* of a filter, for each item; 0: 12 */
    uint64_t seed[2];     /* of the hash. Both 0: a random one */
};

struct hf_dedup_stats {
    uint64_t added;        /* told new */
    uint64_t seen;         /* told seen */
    uint64_t refused;      /* full, or the disk failed */
    uint64_t forgotten;    /* by hf_dedup_forget() */
    uint64_t items;        /* in memory, expired ones included */
    uint64_t disk_items;   /* on disk, expired ones included */
    uint64_t memory_bytes; /* tables, filters and page indexes */
    uint64_t disk_bytes;
    uint64_t runs;
    uint64_t page_reads;    /* because a filter said perhaps */
    uint64_t filter_errors; /* ... and the run did not have it */
};

/* HF_INVALID: a number is out of range, or the folder's name is empty;
 * HF_NOMEM; HF_IO: no file can be made in the folder. */
enum hf_status hf_dedup_open(struct hf_dedup **out,
                             const struct hf_dedup_opts *opts);
/* Nobody may be inside a call. NULL is allowed. */
void hf_dedup_close(struct hf_dedup *dedup);

/* HF_OK: new, and remembered with the `value_bytes` bytes at `value` (which may
 * be NULL: zeros). HF_EXISTS: seen within the window; `value`, unless NULL, is
 * what the first caller left. HF_FULL, HF_NOMEM, HF_IO: not known to be seen,
 * and not remembered. HF_INVALID: an argument is NULL, or `now_ns` is above
 * UINT64_MAX / 2. */
enum hf_status hf_dedup_add(struct hf_dedup *dedup, const void *item,
                            size_t len, uint64_t now_ns, void *value);
/* HF_OK: seen within the window, `value` as above; else HF_NOTFOUND. Here and
 * below HF_IO: a page could not be read or written. */
enum hf_status hf_dedup_find(struct hf_dedup *dedup, const void *item,
                             size_t len, uint64_t now_ns, void *value);
/* The item counts as new again: what was begun with it has failed.
 * HF_NOTFOUND: it was not remembered. */
enum hf_status hf_dedup_forget(struct hf_dedup *dedup, const void *item,
                               size_t len, uint64_t now_ns);

void hf_dedup_stats(const struct hf_dedup *dedup, struct hf_dedup_stats *out);

#ifdef __cplusplus
}
#endif

#endif
