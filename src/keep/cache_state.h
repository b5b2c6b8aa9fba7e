/* cache_state.h - the inside of holdfast/cache.h, for the files that make it
 * up.
 *
 *   cache.c          open, close, and what readers do
 *   cache_change.c   put and remove
 *   cache_visit.c    all entries: visit, remove_if, clear
 *   cache_load.c     loaders, who waits for them, refresh
 *   cache_table.c    buckets: insert, replace, take out, grow
 *   cache_due.c      what expires next; sweeps
 *   cache_policy.c   which entry goes: LRU, and who is asked
 *   cache_tinylfu.c  which entry goes: window, main space, sketch
 *   cache_shadow.c   what windows of other sizes would find
 *   cache_sketch.c   how often was a key seen lately, in four bits
 *   cache_s3fifo.c   which entry goes: small queue, main queue, ghosts
 *
 * A cache is some segments; a key's hash says which one it is in. Whatever
 * changes a segment holds its lock: table, policy, expiry and loads agree with
 * each other whenever it is free. Readers look through the table without it.
 *
 * What holds at all times:
 *
 * 1. A key is in one slot of one bucket and stays there until it is removed,
 *    replaced (in one step, in the same slot) or the table is replaced.
 * 2. A new table is published before the old one's slots are cleared, and both
 *    happens in one section of the lock. So who finds a key in an old table
 *    finds the truth, and who does not finds that there is a new one.
 * 3. An entry's memory goes when it is held by nobody (table, loads) and no
 *    reader's epoch touches its life. It is retired outside the lock, since
 *    that may call release().
 */
#ifndef KEEP_CACHE_STATE_H
#define KEEP_CACHE_STATE_H

#include "base/atomic.h"
#include "base/hasher.h"
#include "base/heap.h"
#include "holdfast/cache.h"
#include "holdfast/event.h"
#include "sync/circle.h"
#include "sync/epoch.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/map_tags.h"
#include "sync/mutex.h"

#define CACHE_SLOTS      7u /* entries of a bucket */
#define CACHE_READS      15u
#define CACHE_STAMPS_MAX 4096u /* of all segments, if there are not more */

/* The word of a bucket: a tag in each of the low seven bytes, 0 for an empty
 * slot, and in the highest how many entries found it full and lie behind. */
#define CACHE_ONES   UINT64_C(0x0001010101010101)
#define CACHE_BEHIND (UINT64_C(1) << 56)

enum cache_kind { CACHE_ENTRY, CACHE_TABLE };

/* What goes to the epoch: two kinds of memory. */
struct cache_retired {
    struct hf_epoch_node epoch;
    enum cache_kind kind; /* (i) */
};

/* (i) immutable once it is in the table  (m) under the segment's lock
 * What a look-up reads lies together at the end, and before that what the
 * policy needs. */
struct cache_entry {
    struct cache_retired retired;
    struct hf_atomic_u32 holds;         /* (a) by the table, by a load */
    uint32_t due;                       /* (m) place in the heap; 0: none */
    uint64_t version;                   /* (i) */
    uint64_t limit_ns;                  /* (i) expires at latest */
    struct hf_atomic_u64 refresh_at_ns; /* (a) load again from then on */
    struct cache_entry *newer;          /* (m) in its queue */
    struct cache_entry *older;          /* (m) */
    uint32_t weight;                    /* (i) */
    uint8_t queue;                      /* (m) which one it is in */
    uint8_t cause;                      /* (m) why it was taken out */
    bool negative;                      /* (i) known not to be anywhere */
    /* (a) S3FIFO: reads, up to 3. Else: when the policy last heard of it. */
    struct hf_atomic_u32 used;
    uint32_t key_len;                /* (i) */
    uint64_t hash;                   /* (i) */
    void *value;                     /* (i) NULL if negative */
    struct hf_atomic_u64 expires_ns; /* (a) or HF_FOREVER */
    unsigned char key[];             /* (i) */
};

struct cache_bucket {
    struct hf_atomic_u64 word;               /* (a) see above */
    struct hf_atomic_ptr slots[CACHE_SLOTS]; /* (a) */
};
_Static_assert(sizeof(struct cache_bucket) == 64, "a bucket is a cache line");

struct cache_table {
    struct cache_retired retired;
    uint64_t mask;                         /* (i) buckets - 1 */
    _Alignas(64) struct cache_bucket at[]; /* (a) */
};

struct cache_queue {
    struct cache_entry *newest;
    struct cache_entry *oldest;
    uint64_t weight;
};

/* Count-min sketch of four-bit counters, see cache_sketch.c. */
struct cache_sketch {
    uint64_t *words;
    uint64_t mask; /* of blocks of 8 words; the count is a power of two */
    uint64_t adds; /* since the last halving */
    uint64_t adds_max;
};

/* Names of what went lately: tables of (name, when). */
struct cache_ghosts {
    uint64_t *names;
    uint64_t mask; /* of sets of 4 */
    uint32_t now;  /* names added */
};

struct cache_shadows;

/* All of it under the segment's lock. Which queue is which:
 *            0       1          2
 *   LRU      all
 *   TINYLFU  window  probation  protected
 *   S3FIFO   small   main                   */
struct cache_policy {
    enum hf_cache_policy kind; /* (i) */
    struct cache_queue queues[3];
    uint64_t max; /* weight that the segment may hold */
    /* TINYLFU */
    uint64_t window_max;
    uint64_t protected_max;
    uint64_t window_goal; /* where window_max is going to */
    struct cache_sketch sketch;
    struct cache_shadows *shadows; /* NULL: not yet full, or no memory */
    uint64_t shadowed;             /* entries that they were made for */
    uint64_t judged;               /* entries when that was last thought of */
    /* S3FIFO */
    struct cache_ghosts ghosts;
};

struct cache_load;

struct cache_segment { /* (m) under mutex; counts: written under it */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr table; /* (a) */
    /* What the policy heard of, counted; and how long ago it may have heard of
     * an entry that need not be told of again: see cache.c. */
    struct hf_atomic_u32 tick; /* (a) */
    struct hf_atomic_u32 calm; /* (a) */
    struct hf_atomic_u64 mask; /* (a) of the table: a hint, to fetch it early */
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct hf_atomic_u64 count;  /* (a) entries, negative ones too */
    struct hf_atomic_u64 weight; /* (a) */
    struct hf_atomic_u64 puts;   /* (a) */
    struct hf_atomic_u64 removals[HF_CACHE_CAUSES]; /* (a) */
    struct hf_atomic_u64 window;                    /* (a) for stats */
    uint64_t version;                               /* (m) the last one */
    struct cache_policy policy;                     /* (m) */
    struct hf_heap due;       /* (m) what expires next: see cache_due.c */
    size_t due_bytes;         /* (m) of it */
    struct cache_load *loads; /* (m) that run */
};

/* What a thread read in one segment and the policy does not know yet. */
struct cache_reads {
    uint64_t count;
    uint64_t hashes[CACHE_READS];
};
_Static_assert(sizeof(struct cache_reads) % HF_CACHE_LINE == 0, "own lines");

/* A thread's own: only it writes here, all may read the figures. */
struct cache_local {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 hits;  /* (a) */
    struct hf_atomic_u64 misses;                        /* (a) */
    struct hf_atomic_u64 hits_negative;                 /* (a) */
    struct hf_atomic_u64 reads_lost;                    /* (a) */
    _Alignas(HF_CACHE_LINE) struct cache_reads reads[]; /* by segment */
};

struct hf_cache {
    struct hf_listed listed;
    struct hf_cache_opts opts;      /* (i) */
    struct hf_hasher hash;          /* (i) */
    struct hf_epoch *epoch;         /* (i) */
    struct hf_locals locals;        /* struct cache_local by thread */
    size_t local_bytes;             /* (i) */
    uint32_t segment_count;         /* (i) a power of two */
    uint64_t stamp_mask;            /* (i) of a segment's stamps */
    struct hf_atomic_u64 *stamps;   /* (a) of all; see hf_cache_stamp() */
    struct cache_segment *segments; /* (i) */
    uint64_t sweep_id;              /* (i) of the scheduler's task */
    bool sweeping;                  /* (i) there is one */
    struct hf_atomic_u32 shut;      /* (a) */
    /* What is written while it is used, away from what only is read. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 loads; /* (a) figures */
    struct hf_atomic_u64 load_failures;                 /* (a) */
    struct hf_atomic_u64 load_negatives;                /* (a) */
    struct hf_atomic_u64 load_waits;                    /* (a) */
    struct hf_atomic_u64 load_discards;                 /* (a) */
    struct hf_atomic_u64 load_ns;                       /* (a) */
    struct hf_atomic_u64 refreshes;                     /* (a) */
    struct hf_atomic_u32 refreshing; /* (a) tasks in the pool */
    struct hf_atomic_u32 leaving;    /* (a) of these: not yet through */
    struct hf_event refreshed;       /* (a) one of them ended */
    struct hf_circle circle;         /* who waits for which load */
    struct hf_atomic_u64 sweep_next; /* (a) segment */
};

struct cache_key {
    const void *data;
    size_t len;
    uint64_t hash;
};

/* What a section of the lock took out, to be told of and retired after it. */
struct cache_batch {
    struct cache_entry *first; /* by `older`, in order */
    struct cache_entry *last;
    struct cache_table *table;
};

/* A slot that holds an entry. */
struct cache_place {
    struct cache_bucket *bucket;
    unsigned slot;
};

/* cache.c */

/* After the section: tells `removed`, gives up the table's hold. Inside the
 * epoch, outside the lock. */
void hf_cache_batch_end(struct hf_cache *cache, struct hf_epoch_reader *reader,
                        struct cache_batch *batch);
/* One hold less; the last one retires it. */
void hf_cache_entry_drop(struct hf_epoch_reader *reader,
                         struct cache_entry *entry);
/* What a caller is given of an entry, inside the epoch. */
void hf_cache_hand_out(struct hf_cache *cache, const struct cache_entry *entry,
                       void **value);
/* The entry for a reader inside the epoch. NULL: a miss, which is counted;
 * `negative` if it is known that there is none. */
struct cache_entry *hf_cache_look_up(struct hf_cache *cache,
                                     struct cache_segment *segment,
                                     struct hf_epoch_reader *reader,
                                     const struct cache_key *key,
                                     bool *negative);
/* Counts a hit and puts it on the way to the policy. */
void hf_cache_note_read(struct hf_cache *cache, struct cache_segment *segment,
                        struct cache_entry *entry);
/* Locks the segment, tells its policy what this thread has read. */
void hf_cache_lock(struct hf_cache *cache, struct cache_segment *segment);
void hf_cache_drain(struct cache_segment *segment, struct cache_reads *reads);

/* cache_change.c */

enum cache_when {
    CACHE_ALWAYS,
    CACHE_IF_ABSENT,
    CACHE_IF_VERSION, /* `expect` is the version */
    CACHE_IF_STAMP,   /* `expect` is the stamp: what was loaded elsewhere */
    CACHE_LOADED,     /* by the cache itself */
};
/* `value` NULL: negative. Held once, by the table to be. HF_NOMEM; HF_INVALID:
 * heavier than may be. */
enum hf_status hf_cache_entry_new(struct hf_cache *cache,
                                  const struct cache_key *key, void *value,
                                  uint64_t ttl_ns, struct cache_entry **entry);
/* Puts it there, as the table's; under the lock. HF_OK, HF_EXISTS, HF_NOTFOUND,
 * HF_NOMEM. */
struct cache_store {
    struct cache_entry *entry; /* born */
    enum cache_when when;
    uint64_t expect;
    struct cache_entry *found; /* HF_EXISTS: what is there, if that was the
                                * question; good until the epoch is left */
};
enum hf_status hf_cache_store(struct hf_cache *cache,
                              struct cache_segment *segment,
                              struct hf_epoch_reader *reader,
                              struct cache_store *store,
                              struct cache_batch *batch);
/* Takes an entry that is there out of all; under the lock. */
void hf_cache_take(struct cache_segment *segment, struct cache_entry *entry,
                   const struct cache_place *place, enum hf_cache_cause cause,
                   struct cache_batch *batch);
/* The same for one whose place is not known. */
void hf_cache_take_entry(struct cache_segment *segment,
                         struct cache_entry *entry, enum hf_cache_cause cause,
                         struct cache_batch *batch);
/* What a stamp tells has changed; after the change. */
void hf_cache_stamp_move(struct hf_cache *cache, uint64_t hash);

/* cache_visit.c */

void hf_cache_remove_all(struct hf_cache *cache, enum hf_cache_cause cause);

/* cache_load.c */

/* Loads of this key that run are old from now on (NULL: all of the
 * segment's); under the lock. */
void hf_cache_loads_detach(struct cache_segment *segment,
                           const struct cache_key *key);
void hf_cache_loads_wake(struct cache_segment *segment);
void hf_cache_refreshes_await(struct hf_cache *cache);

/* cache_table.c; all under the lock */

struct cache_table *hf_cache_table_new(uint64_t entries);
/* Makes room for one more; false without memory. An old table is put into the
 * batch. */
bool hf_cache_table_room(struct cache_segment *segment,
                         struct hf_epoch_reader *reader,
                         struct cache_batch *batch);
void hf_cache_table_insert(struct cache_segment *segment,
                           struct cache_entry *entry);
void hf_cache_table_replace(const struct cache_place *place,
                            struct cache_entry *entry);
void hf_cache_table_remove(struct cache_segment *segment,
                           const struct cache_place *place,
                           const struct cache_entry *entry);
struct cache_entry *hf_cache_table_find(const struct cache_segment *segment,
                                        const struct cache_key *key,
                                        struct cache_place *place);
struct cache_entry *
hf_cache_table_find_hash(const struct cache_segment *segment, uint64_t hash);
bool hf_cache_table_place(const struct cache_segment *segment,
                          const struct cache_entry *entry,
                          struct cache_place *place);

/* cache_due.c; all under the lock */

void hf_cache_due_init(struct cache_segment *segment);
/* Makes sure that one more add succeeds; false without memory. */
bool hf_cache_due_room(struct cache_segment *segment);
void hf_cache_due_add(struct cache_segment *segment, struct cache_entry *entry);
void hf_cache_due_remove(struct cache_segment *segment,
                         struct cache_entry *entry);
/* Takes out at most `max` that are over; looks at twice as many. */
size_t hf_cache_due_sweep(struct cache_segment *segment, uint64_t now_ns,
                          size_t max, struct cache_batch *batch);

/* cache_policy.c; all under the lock */

enum hf_status hf_cache_policy_init(struct cache_policy *policy,
                                    enum hf_cache_policy kind, uint64_t max,
                                    uint64_t keys);
void hf_cache_policy_destroy(struct cache_policy *policy);
void hf_cache_policy_added(struct cache_segment *segment,
                           struct cache_entry *entry);
/* `entry` takes the place of `old`, and was asked for. */
void hf_cache_policy_replaced(struct cache_segment *segment,
                              struct cache_entry *old,
                              struct cache_entry *entry);
void hf_cache_policy_read(struct cache_segment *segment,
                          struct cache_entry *entry);
/* Has the processor fetch what a read of the entry will touch. */
void hf_cache_policy_fetch(const struct cache_segment *segment,
                           const struct cache_entry *entry);
/* Takes out what has no room. */
void hf_cache_policy_settle(struct cache_segment *segment,
                            struct cache_batch *batch);

void hf_cache_queue_push(struct cache_policy *policy, unsigned queue,
                         struct cache_entry *entry);
void hf_cache_queue_unlink(struct cache_policy *policy,
                           struct cache_entry *entry);
/* Makes it the newest of that queue. */
void hf_cache_queue_move(struct cache_policy *policy, unsigned queue,
                         struct cache_entry *entry);
/* Takes an entry out for want of room. */
void hf_cache_evict(struct cache_segment *segment, struct cache_entry *entry,
                    struct cache_batch *batch);

/* cache_tinylfu.c */

enum { CACHE_WINDOW, CACHE_PROBATION, CACHE_PROTECTED };
enum hf_status hf_cache_tinylfu_init(struct cache_policy *policy,
                                     uint64_t keys);
void hf_cache_tinylfu_added(struct cache_segment *segment,
                            struct cache_entry *entry);
void hf_cache_tinylfu_read(struct cache_segment *segment,
                           struct cache_entry *entry);
void hf_cache_tinylfu_settle(struct cache_segment *segment,
                             struct cache_batch *batch);

/* cache_shadow.c */

/* For that many entries. NULL without memory. */
struct cache_shadows *hf_cache_shadows_new(uint64_t keys);
/* A key was asked for. 1: a window as large as the cache does better; -1: a
 * small one does; 0: nothing new. */
int hf_cache_shadows_note(struct cache_shadows *shadows,
                          const struct cache_sketch *sketch, uint64_t hash);

/* cache_sketch.c */

/* For that many keys; false without memory. */
bool hf_cache_sketch_init(struct cache_sketch *sketch, uint64_t keys);
/* More keys than it was made for: twice as large, if there is memory. */
void hf_cache_sketch_fit(struct cache_sketch *sketch, uint64_t keys);
/* Has the processor fetch the counters of a key. */
void hf_cache_sketch_fetch(const struct cache_sketch *sketch, uint64_t hash);
void hf_cache_sketch_add(struct cache_sketch *sketch, uint64_t hash);
/* 0 .. 15 */
unsigned hf_cache_sketch_count(const struct cache_sketch *sketch,
                               uint64_t hash);

/* cache_s3fifo.c */

enum { CACHE_SMALL, CACHE_MAIN };
enum hf_status hf_cache_s3fifo_init(struct cache_policy *policy, uint64_t keys);
void hf_cache_s3fifo_added(struct cache_segment *segment,
                           struct cache_entry *entry);
void hf_cache_s3fifo_settle(struct cache_segment *segment,
                            struct cache_batch *batch);

/* What follows is short and on everybody's way. */

static inline bool cache_key_init(const struct hf_cache *cache,
                                  const void *data, size_t len,
                                  struct cache_key *key)
{
    if (cache == NULL || len > HF_CACHE_KEY_MAX || (data == NULL && len > 0))
        return false;
    key->data = data;
    key->len = len;
    key->hash = hf_hasher_hash(&cache->hash, data, len);
    return true;
}

static inline struct cache_segment *cache_segment_of(struct hf_cache *cache,
                                                     uint64_t hash)
{
    return &cache->segments[(hash >> 48) & (cache->segment_count - 1)];
}

/* Where a key's stamp lies: each segment has some, written under its lock. */
static inline struct hf_atomic_u64 *cache_stamp_of(const struct hf_cache *cache,
                                                   uint64_t hash)
{
    uint64_t segment = (hash >> 48) & (cache->segment_count - 1);
    return &cache->stamps[segment * (cache->stamp_mask + 1) +
                          (hash & cache->stamp_mask)];
}

/* 1 .. 255 */
static inline uint64_t cache_tag(uint64_t hash)
{
    return hash >> 56 == 0 ? 1 : hash >> 56;
}

static inline bool cache_key_is(const struct cache_key *key,
                                const struct cache_entry *entry)
{
    return entry->hash == key->hash && entry->key_len == key->len &&
           map_bytes_equal(key->data, entry->key, key->len);
}

/* Has the processor fetch the bucket that will be needed; before the epoch is
 * entered, which takes about as long. Looks at nothing but the segment: the
 * table may be gone. */
static inline void cache_fetch(const struct cache_segment *segment,
                               uint64_t hash)
{
    /* Relaxed: hints. */
    const char *table =
        (const char *)hf_ptr_load(&segment->table, __ATOMIC_RELAXED);
    uint64_t at = hash & hf_u64_load(&segment->mask, __ATOMIC_RELAXED);

    __builtin_prefetch(table + sizeof(struct cache_table) +
                       at * sizeof(struct cache_bucket));
}

/* The key's entry, or NULL if at some instant of the call there was none.
 * Lock-free. */
static inline struct cache_entry *cache_find(struct cache_segment *segment,
                                             struct hf_epoch_reader *reader,
                                             const struct cache_key *key)
{
    struct cache_table *table =
        (struct cache_table *)epoch_load(reader, &segment->table);
    uint64_t tag = cache_tag(key->hash);

    for (;;) {
        for (uint64_t i = key->hash;; i++) {
            struct cache_bucket *bucket = &table->at[i & table->mask];
            /* Acquire: an entry that was put there before the word changed
             * is seen. */
            uint64_t word = hf_u64_load(&bucket->word, __ATOMIC_ACQUIRE);
            for (uint64_t hits = map_tag_hits(word, tag, CACHE_ONES); hits != 0;
                 hits &= hits - 1) {
                struct cache_entry *entry = (struct cache_entry *)epoch_load(
                    reader, &bucket->slots[map_tag_slot(hits)]);
                if (entry != NULL && cache_key_is(key, entry))
                    return entry;
            }
            if (word < CACHE_BEHIND)
                break;
        }
        /* Was what we looked through still the truth? */
        struct cache_table *current =
            (struct cache_table *)epoch_load(reader, &segment->table);
        if (current == table)
            return NULL;
        table = current;
    }
}

static inline uint64_t cache_now(const struct hf_cache *cache)
{
    return hf_clock_now_ns(cache->opts.clock);
}

/* Is its time over? Looks at the clock only if it has one, and not again if
 * `*now_ns` is known (not 0). Relaxed: the entry came with its first value, and
 * any later one is as good. */
static inline bool cache_is_over(const struct hf_cache *cache,
                                 const struct cache_entry *entry,
                                 uint64_t *now_ns)
{
    uint64_t expires_ns = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED);

    if (__builtin_expect(expires_ns == HF_FOREVER, 1))
        return false;
    if (*now_ns == 0)
        *now_ns = cache_now(cache);
    return *now_ns >= expires_ns;
}

static inline uint64_t cache_after(uint64_t now_ns, uint64_t ns)
{
    return ns >= HF_FOREVER - now_ns ? HF_FOREVER : now_ns + ns;
}

/* Figures that only one thread at a time changes and anybody may read. */
static inline void cache_count(struct hf_atomic_u64 *word, uint64_t more)
{
    hf_u64_store(word, hf_u64_load(word, __ATOMIC_RELAXED) + more,
                 __ATOMIC_RELAXED);
}

static inline uint64_t cache_figure(const struct hf_atomic_u64 *word)
{
    return hf_u64_load(word, __ATOMIC_RELAXED);
}

static inline struct cache_local *cache_local(struct hf_cache *cache)
{
    return (struct cache_local *)hf_locals_mine(&cache->locals,
                                                cache->local_bytes);
}

static inline void cache_batch_add(struct cache_batch *batch,
                                   struct cache_entry *entry)
{
    entry->older = NULL;
    if (batch->last == NULL)
        batch->first = entry;
    else
        batch->last->older = entry;
    batch->last = entry;
}

#endif
