/* map_state.h - the inside of holdfast/map.h, for the files that make it up.
 *
 *   map.c          open and close, one key: get, put, replace, remove
 *   map_table.c    buckets: lock, insert, unlink
 *   map_grow.c     a larger table, and how keys get there
 *   map_visit.c    all keys, once each
 *   map_compute.c  functions that make values, and who waits for them
 *
 * What holds at all times:
 *
 * 1. A key is in one slot of one bucket and stays there until it is removed or
 *    its whole bucket is moved. So a reader that looks through the slots of a
 *    bucket that is not moved cannot miss it.
 * 2. A node comes and goes only under its bucket's lock. It comes when its slot
 *    gets it, with the tag set before: a reader with an old view of the tags
 *    sees it no earlier than others. It goes when it is marked MAP_DEAD (or, if
 *    the map owns the values, when its slot is cleared), with the tag after.
 * 3. A bucket is moved in this order, under its lock: nodes are copied to the
 *    new table, WORD_MOVED is set, old slots are cleared, unlock. A reader that
 *    finds a slot empty finds WORD_MOVED if it looks again; nobody removes a
 *    node from the new table while the old one still leads to it.
 * 4. Only the table that map->table names is growing, and the next one is
 *    freed after it. So `next` of a table leads to living memory as long as
 *    map->table names that table, and whoever loads it checks that after.
 *
 * The value of a node:    NULL     compute-if-absent is making it: not there
 *                         MAP_DEAD removed: not there
 *                         other    the value
 * From NULL it changes to either by compare-and-swap, from a value to another
 * (if the caller owns the values) likewise, from MAP_DEAD never.
 */
#ifndef SYNC_MAP_STATE_H
#define SYNC_MAP_STATE_H

#include "base/atomic.h"
#include "base/hasher.h"
#include "holdfast/event.h"
#include "holdfast/map.h"
#include "sync/circle.h"
#include "sync/epoch.h"
#include "sync/listed.h"
#include "sync/map_tags.h"
#include "sync/mutex.h"

#define MAP_SLOTS       6u  /* nodes of a bucket */
#define MAP_LOAD        4u  /* keys a bucket, on average, that ask for growth */
#define MAP_STRIPES     16u /* counters, and events to wait on */
#define MAP_BUCKETS_MAX (UINT64_C(1) << 38)

/* The first word of a bucket: a tag in each of the low six bytes, 0 for an
 * empty slot, and above them these. */
#define WORD_TAGS   UINT64_C(0x0000ffffffffffff)
#define WORD_ONES   UINT64_C(0x0000010101010101)
#define WORD_LOCKED (UINT64_C(1) << 48)
#define WORD_MOVED  (UINT64_C(1) << 49) /* look in the next table */

extern char hf_map_dead;
#define MAP_DEAD ((void *)&hf_map_dead)

/* What goes to the epoch: three kinds of memory. */
enum map_kind { MAP_NODE, MAP_MORE, MAP_TABLE };

struct map_retired {
    struct hf_epoch_node epoch;
    uint16_t kind;  /* (i) */
    uint16_t maker; /* (i) of a node: slot of the thread that makes its value */
    uint32_t key_len; /* (i) of a node */
};
_Static_assert(HF_SLOTS_MAX <= 65536, "a slot fits into `maker`");

/* What a look-up reads lies together: length, hash, value, key. */
struct map_node {
    struct map_retired retired;
    uint64_t hash;              /* (i) */
    struct hf_atomic_ptr value; /* (a) see above */
    unsigned char key[];        /* (i) */
};

struct map_bucket {
    struct hf_atomic_u64 word;             /* (a) tags and flags */
    struct hf_atomic_ptr nodes[MAP_SLOTS]; /* (a) */
    struct hf_atomic_ptr more; /* (a) bucket, of a struct map_more */
};
_Static_assert(sizeof(struct map_bucket) == 64, "a bucket is a cache line");

/* A bucket behind a full one; the first one's lock guards it. */
struct map_more {
    struct map_bucket bucket;
    struct map_retired retired;
};

struct map_table {
    struct map_retired retired;
    uint64_t mask;                                       /* (i) buckets - 1 */
    void *memory;                                        /* (i) to be freed */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr next;   /* (a) grows into it */
    struct hf_atomic_u64 cursor;                         /* (a) next to move */
    struct hf_atomic_u64 moved;                          /* (a) count */
    _Alignas(HF_CACHE_LINE) struct map_bucket buckets[]; /* (a) */
};

struct map_stripe {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 count; /* (a) keys */
};

/* Where threads sleep; written only when some do. */
struct map_park {
    struct hf_atomic_u32 parked; /* (a) how many wait for a bucket's lock */
    struct hf_event unlocked;    /* (a) on this */
    struct hf_event made;        /* (a) those who wait for a value */
};

struct hf_map {
    struct hf_listed listed;
    struct hf_map_opts opts;    /* (i) */
    struct hf_hasher hash;      /* (i) */
    struct hf_epoch *epoch;     /* (i) */
    bool owns;                  /* (i) free_value is there */
    struct hf_atomic_u32 shut;  /* (a) */
    struct hf_atomic_ptr table; /* (a) the one to begin with */
    struct hf_atomic_u64 growths;
    struct hf_atomic_u64 growths_nomem;
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 made_failed;
    struct hf_atomic_u64 made_waits;
    struct hf_circle circle; /* who waits for which key */
    struct map_park parks[MAP_STRIPES];
    struct map_stripe stripes[MAP_STRIPES];
};

struct map_key {
    const void *data;
    size_t len;
    uint64_t hash;
    uint64_t tag; /* 1 .. 255 */
};

/* A slot of a bucket whose lock is held. */
struct map_place {
    struct map_table *table;
    struct map_bucket *first; /* holds the lock */
    struct map_bucket *bucket;
    unsigned slot;
};

/* map_table.c */

struct map_table *hf_map_table_new(uint64_t buckets);
void hf_map_table_free(struct hf_map *map, struct map_table *table);
/* Frees what the epoch held back, of any kind. */
void hf_map_reclaim(void *context, struct hf_epoch_node *node);

struct map_more *hf_map_more_new(void);
/* False: the bucket was moved, and will never be locked again. */
bool hf_map_bucket_lock(struct hf_map *map, struct map_bucket *bucket);
/* Writes the first word anew and unlocks by that. */
void hf_map_bucket_unlock(struct hf_map *map, struct map_bucket *bucket,
                          uint64_t word);
/* Locks the bucket of the key and looks for it. NULL: it is not there. Ends
 * with hf_map_unlock(), hf_map_unlink() or hf_map_swap(). */
struct map_node *hf_map_lock(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key,
                             struct map_place *place);
void hf_map_unlock(struct hf_map *map, const struct map_place *place);
/* Takes the node out, unlocks, and retires it. */
void hf_map_unlink(struct hf_map *map, struct hf_epoch_reader *reader,
                   const struct map_place *place);
/* Puts `node` in the place of one with the same key, unlocks, and retires that
 * one. */
void hf_map_swap(struct hf_map *map, struct hf_epoch_reader *reader,
                 const struct map_place *place, struct map_node *node);
/* HF_EXISTS: the key is there, in whatever state. HF_NOMEM. */
enum hf_status hf_map_insert(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, struct map_node *node);

/* map_grow.c */

/* Where to look after a moved bucket of `table`. */
struct map_table *hf_map_next(struct hf_map *map,
                              struct hf_epoch_reader *reader,
                              struct map_table *table);
/* Moves the key's bucket of a table that grows, and a few others. */
void hf_map_help(struct hf_map *map, struct hf_epoch_reader *reader,
                 struct map_table *table, const struct map_key *key);
/* Begins a growth if the table is full and none is under way; true if so. */
bool hf_map_grow(struct hf_map *map, struct hf_epoch_reader *reader,
                 struct map_table *table);

/* map.c */

/* Any value, or none: what hf_map_change and hf_map_take expect. */
extern char hf_map_any;
#define MAP_ANY    ((void *)&hf_map_any)
#define MAP_ABSENT NULL

bool hf_map_key_init(const struct hf_map *map, const void *data, size_t len,
                     struct map_key *key);
/* NULL without memory. Not yet born to the epoch. */
struct map_node *hf_map_node_new(const struct map_key *key, void *value);
/* Puts `value` there if what is there is `expect`. `old` gets what was there
 * or NULL. HF_OK; HF_EXISTS: another; HF_NOTFOUND: none; HF_NOMEM. */
enum hf_status hf_map_change(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, void *expect,
                             void *value, void **old);
/* The same to remove the key. */
enum hf_status hf_map_take(struct hf_map *map, struct hf_epoch_reader *reader,
                           const struct map_key *key, void *expect, void **old);

/* May a caller put it in? Addresses of our own have a meaning of their own. */
static inline bool map_value_ok(const void *value)
{
    return value != NULL && value != MAP_DEAD && value != MAP_ANY;
}

/* Where those who wait for the key's value sleep. */
static inline struct hf_event *map_made(struct hf_map *map,
                                        const struct map_key *key)
{
    return &map->parks[(key->hash >> 32) % MAP_STRIPES].made;
}

/* Keys that came or went, by whoever does it: sums up over the stripes. */
static inline void map_count(struct hf_map *map, uint64_t change)
{
    /* Relaxed: a figure. */
    hf_u64_add(&map->stripes[hf_thread_slot() % MAP_STRIPES].count, change,
               __ATOMIC_RELAXED);
}

static inline bool map_key_is(const struct map_key *key,
                              const struct map_node *node)
{
    return node->hash == key->hash && node->retired.key_len == key->len &&
           map_bytes_equal(key->data, node->key, key->len);
}

/* Looks through one bucket, whose word was `word`. */
static inline struct map_node *
map_look(struct hf_epoch_reader *reader, struct map_bucket *bucket,
         uint64_t word, const struct map_key *key, unsigned *slot)
{
    for (uint64_t hits = map_tag_hits(word, key->tag, WORD_ONES); hits != 0;
         hits &= hits - 1) {
        *slot = map_tag_slot(hits);
        struct map_node *node =
            (struct map_node *)epoch_load(reader, &bucket->nodes[*slot]);
        if (node != NULL && map_key_is(key, node))
            return node;
    }
    return NULL;
}

/* The bucket is the first field. */
static inline struct map_more *map_more_of(struct map_bucket *bucket)
{
    return (struct map_more *)bucket;
}

/* For those who own the bucket: the lock's holder, and close. Relaxed: they
 * have it from whoever wrote before by the lock, or are alone. */
static inline struct map_bucket *
map_more_behind(const struct map_bucket *bucket)
{
    return (struct map_bucket *)hf_ptr_load(&bucket->more, __ATOMIC_RELAXED);
}

static inline struct map_node *map_node_at(const struct map_bucket *bucket,
                                           unsigned slot)
{
    return (struct map_node *)hf_ptr_load(&bucket->nodes[slot],
                                          __ATOMIC_RELAXED);
}

static inline uint64_t map_word(const struct map_bucket *bucket)
{
    return hf_u64_load(&bucket->word, __ATOMIC_RELAXED);
}

/* The first empty slot of a word, MAP_SLOTS if there is none. */
static inline unsigned map_empty_slot(uint64_t word)
{
    uint64_t empty = map_tag_hits(word, 0, WORD_ONES);
    return empty == 0 ? MAP_SLOTS : map_tag_slot(empty);
}

/* A tag in its slot. */
static inline uint64_t map_tag_at(uint64_t tag, unsigned slot)
{
    return tag << slot * 8;
}

/* The key's node, in whatever state, or NULL if at some instant of the call
 * there was none. Lock-free. */
static inline struct map_node *map_find(struct hf_map *map,
                                        struct hf_epoch_reader *reader,
                                        const struct map_key *key)
{
    struct map_table *table =
        (struct map_table *)epoch_load(reader, &map->table);
    unsigned slot;

    for (;;) {
        struct map_bucket *first = &table->buckets[key->hash & table->mask];
        struct map_bucket *bucket = first;
        /* Acquire: WORD_MOVED comes after the copies in the next table. */
        uint64_t word = hf_u64_load(&first->word, __ATOMIC_ACQUIRE);

        while (!(word & WORD_MOVED)) {
            struct map_node *node = map_look(reader, bucket, word, key, &slot);
            if (node != NULL)
                return node;
            bucket = (struct map_bucket *)epoch_load(reader, &bucket->more);
            if (bucket == NULL) {
                /* Was what we looked through still the truth? Acquire loads
                 * stay in order: an emptied slot shows WORD_MOVED here. */
                word = hf_u64_load(&first->word, __ATOMIC_ACQUIRE);
                if (!(word & WORD_MOVED))
                    return NULL;
                break;
            }
            word = hf_u64_load(&bucket->word, __ATOMIC_ACQUIRE);
        }
        table = hf_map_next(map, reader, table);
    }
}

/* The node's value, or NULL if it is not there. */
static inline void *map_value(const struct map_node *node)
{
    /* Acquire: what the value points to. */
    void *value =
        node == NULL ? NULL : hf_ptr_load(&node->value, __ATOMIC_ACQUIRE);
    return value == MAP_DEAD ? NULL : value;
}

#endif
