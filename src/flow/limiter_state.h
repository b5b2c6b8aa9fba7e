/* limiter_state.h - the inside of holdfast/limiter.h.
 *
 *   limiter.c        open, close, one pair: the quick way
 *   limiter_many.c   several pairs, new keys, changed rules: the general way
 *   limiter_rules.c  names, versions of rules
 *   limiter_table.c  where keys are
 *   limiter_evict.c  forgetting keys
 *   limiter_lock.c   the lock of a cell
 *   limiter_cell.c   the state of a locked cell
 *   limiter_memory.c the memory of buckets and cells
 *   limiter_hold.c   reserve, then settle
 *   limiter_wait.c   who waits for permits
 *   limiter_top.c    whom it denies most
 *
 * A key's state lies in a cell. Cells are found through buckets of one line,
 * ten of 16 bits of the hash and the numbers of their cells, in shards that
 * grow by one bucket at a time (linear hashing):
 *
 *   hash:  shard | tag | .... | bucket
 *
 *   shard  bucket [tag x 10 | more | cell x 10]
 *                                     |
 *            cell [lock | hash | version | identity | words | key ...]
 *
 * What holds at all times:
 *
 * 1. A cell's memory is a cell of that size until close. So whoever finds its
 *    number in an old view of a bucket may touch it; what it finds there it
 *    believes only if the lock word says so.
 * 2. The lock word is a lock bit and a count of changes. All of a cell is
 *    written by who has set the bit, and who clears it adds to the count. So
 *    what was read between two equal views without the bit is one state.
 * 3. A cell gets its key, and loses it, under the shard's lock. A key that was
 *    not found without that lock is looked for again with it.
 * 4. Locks are taken in this order: a shard, cells by number, the rules.
 * 5. A cell counts as a user of the version of the rule that its words were
 *    written by. A version that has users stays as it is.
 * 6. A cell is forgotten only when its words say no more than no cell does, at
 *    a time that the shard remembers: a call that is earlier and finds no cell
 *    is decided at that time.
 */
#ifndef FLOW_LIMITER_STATE_H
#define FLOW_LIMITER_STATE_H

#include <assert.h>

#include "base/atomic.h"
#include "base/hasher.h"
#include "base/memory.h"
#include "base/thread.h"
#include "flow/limiter_rules.h"
#include "holdfast/event.h"
#include "holdfast/limiter.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/map_tags.h"
#include "sync/mutex.h"
#include "sync/waits.h"

/* ---- Memory: see limiter_memory.c. ---- */

#define GRANULE      8u /* bytes; cells and buckets are named by granules */
#define BLOCK_BYTES  HF_HUGE_BYTES
#define BLOCK_SHIFT  18u /* granules of a block: 1 << 18 */
#define CELL_CLASSES 72u /* sizes of cells, by granules */
#define CHUNK_MAX    16384u

_Static_assert(BLOCK_BYTES / GRANULE == 1u << BLOCK_SHIFT, "a block");

/* An array that grows while others read: a larger one is published, and the
 * older ones are kept until close (together they are as long as the last). */
struct limiter_array {
    struct limiter_array *older;
    uint32_t cap;
    struct hf_atomic_ptr at[];
};

struct limiter_arena {
    struct hf_mutex mutex;
    struct hf_atomic_ptr blocks; /* (a) struct limiter_array */
    uint32_t block_count;        /* (m) */
    uint32_t next;               /* (m) first free granule of the last block */
    uint32_t end;                /* (m) */
    struct hf_atomic_u64 bytes;  /* (a) */
};

/* Free room of a shard: granules next .. end. */
struct limiter_room {
    uint32_t next;
    uint32_t end;
};

/* ---- Keys. ---- */

#define BUCKET_SLOTS 10u
#define CELL_WORDS   2u /* of struct rate_state */

struct limiter_bucket {
    struct hf_atomic_u64 tags[2];   /* (a) slots 0 .. 7, 16 bits each */
    struct hf_atomic_u32 tags_last; /* (a) slots 8 and 9 */
    struct hf_atomic_u32 more;      /* (a) the next bucket of the chain, or 0 */
    struct hf_atomic_u32 cells[BUCKET_SLOTS]; /* (a) 0: empty */
};
_Static_assert(sizeof(struct limiter_bucket) == 64, "one line");

#define LOCK_HELD 1u
#define LOCK_ONE  2u /* a change */

/* The identity: family << 16 | flags | length of the key. 0: no key. */
#define IDENTITY_LEN   0x3ffu
#define IDENTITY_FRESH 0x2000u /* just made: not to be forgotten yet */
#define IDENTITY_HOLDS 0x4000u /* there are holds on it */
#define IDENTITY_LIVE  0x8000u
#define IDENTITY_MASK  (~(IDENTITY_FRESH | IDENTITY_HOLDS))
#define FAMILY_OWN     0xffffu /* keys of calls that bring their own rule */
_Static_assert(HF_LIMITER_KEY_MAX <= IDENTITY_LEN, "a length fits");

struct limiter_cell {
    struct hf_atomic_u32 lock;              /* (a) */
    struct hf_atomic_u32 hash;              /* (a) its lower half */
    struct hf_atomic_u32 version;           /* (a) of the rule */
    struct hf_atomic_u32 identity;          /* (a) */
    struct hf_atomic_u64 words[CELL_WORDS]; /* (a) what is spent */
    struct hf_atomic_u64 key[];             /* (a) padded with zeros */
};

struct limiter_shard {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 buckets; /* (a) how many */
    struct hf_atomic_ptr segments;   /* (a) struct limiter_array */
    struct hf_atomic_u64 evicted_ns; /* (a) see 6. above */
    struct hf_mutex mutex;
    struct hf_atomic_u64 keys;      /* (a) written under the mutex */
    struct hf_atomic_u64 evictions; /* (a) written under the mutex */
    uint32_t hand;                  /* (m) bucket to look for idle keys in */
    int evict_credit;               /* (m) keys that are still to look at */
    uint64_t chunked;               /* (m) bytes taken from the arena */
    struct limiter_room lines;      /* (m) for cells of one line, buckets */
    struct limiter_room rest;       /* (m) for other cells */
    uint32_t free_more;             /* (m) buckets */
    uint32_t free[CELL_CLASSES];    /* (m) cells */
};

/* What a call looks for. */
struct limiter_key {
    uint64_t hash;
    uint32_t identity; /* without flags but LIVE */
    uint32_t len;
    const unsigned char *bytes;
};

/* ---- Holds: see limiter_hold.c. ---- */

struct limiter_hold;

struct limiter_hold_place {
    struct limiter_hold *hold; /* NULL: free */
    uint32_t generation;       /* upper half of the number of a hold */
    uint32_t next;             /* free places, 1 + number */
};

struct limiter_hold_table {
    struct hf_mutex mutex;
    struct limiter_hold_place *places; /* (m) */
    uint32_t cap;                      /* (m) */
    uint32_t free;                     /* (m) 1 + place */
    uint32_t first;            /* (i) generation that a place begins with */
    struct hf_atomic_u64 open; /* (a) */
};

/* ---- Waiters: see limiter_wait.c. ---- */

#define WAIT_STRIPES 16u

struct limiter_waiter;

struct limiter_stripe {
    struct hf_mutex mutex;
    struct limiter_waiter *first; /* (m) by arrival */
    struct limiter_waiter *last;  /* (m) */
};

/* ---- All of it. ---- */

/* A thread's own copy of a version. With the same stamp it is the same. */
struct limiter_known {
    uint32_t version; /* 1 + number; 0: none */
    uint32_t stamp;
    bool shadow;
    struct hf_rate_plan plan;
    uint64_t keep_back[HF_LIMITER_CLASSES];
    struct hf_rate_rule given;
    char name[HF_NAME_BYTES];
};

#define KNOWN_MAX 4u

/* Of a thread; others only read what it counts. */
struct limiter_local {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 allowed; /* (a) */
    struct hf_atomic_u64 denied;                          /* (a) */
    struct hf_atomic_u64 shadow_denied;                   /* (a) */
    struct hf_atomic_u64 refused;                         /* (a) */
    struct hf_atomic_ptr top; /* (a) struct limiter_top_table, or NULL */
    uint32_t own_version;     /* 1 + the version it used last for own numbers */
    struct limiter_known known[KNOWN_MAX]; /* by version number */
};

struct hf_limiter {
    struct hf_listed listed;
    const struct hf_clock *clock; /* (i) */
    struct hf_hasher hash;        /* (i) */
    uint64_t keys_max;            /* (i) */
    uint64_t holds_max;           /* (i) */
    uint64_t log_bytes_max;       /* (i) */
    uint32_t shard_count;         /* (i) a power of two */
    uint32_t shard_shift;         /* (i) hash >> it is the shard */
    struct limiter_shard *shards; /* (i) */
    struct hf_locals locals;
    struct limiter_arena arena;
    struct limiter_rules rules;
    struct limiter_hold_table holds;
    struct hf_atomic_u32 lock_sleepers; /* (a) who wait for a cell's lock */
    struct hf_event lock_event;         /* (a) */
    struct hf_atomic_u64 array_bytes;   /* (a) of logs and leases */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 closed; /* (a) */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 keys;   /* (a) */
    struct hf_atomic_u32 waiting; /* (a) threads in queues */
    struct limiter_stripe stripes[WAIT_STRIPES];
    void (*freed)(void *context, uint64_t id); /* (i) */
    void *freed_context;                       /* (i) */
    struct hf_waits waits;                     /* (a) */
    struct hf_atomic_u32 evict_turn; /* (a) shard to look in when it is full */
    struct limiter_local spare;      /* of threads without memory */
};

/* ---- limiter_memory.c ---- */

enum hf_status hf_limiter_arena_init(struct limiter_arena *arena);
void hf_limiter_arena_destroy(struct limiter_arena *arena);
/* The first of so many granules, 64-byte aligned and zeroed; 0: no memory. At
 * most CHUNK_MAX bytes. */
uint32_t hf_limiter_arena_take(struct limiter_arena *arena, uint32_t granules);
/* Puts `item` at `place` of an array that may have to grow. HF_NOMEM. */
enum hf_status hf_limiter_array_set(struct hf_atomic_ptr *array, uint32_t place,
                                    void *item);
void hf_limiter_array_destroy(struct hf_atomic_ptr *array);
/* A cell for a key of that length, 0 without memory; and back. (m) */
uint32_t hf_limiter_cell_take(struct hf_limiter *limiter,
                              struct limiter_shard *shard, uint32_t key_len);
void hf_limiter_cell_give(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t number,
                          uint32_t key_len);
/* An empty bucket to chain, likewise. */
uint32_t hf_limiter_more_take(struct hf_limiter *limiter,
                              struct limiter_shard *shard);
void hf_limiter_more_give(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t number);

static inline void *limiter_array_at(const struct hf_atomic_ptr *array,
                                     uint32_t place)
{
    /* Acquire: what was put there before it was published. */
    const struct limiter_array *items =
        (const struct limiter_array *)hf_ptr_load(array, __ATOMIC_ACQUIRE);
    return hf_ptr_load(&items->at[place], __ATOMIC_ACQUIRE);
}

static inline void *limiter_memory_at(const struct hf_limiter *limiter,
                                      uint32_t number)
{
    char *block =
        (char *)limiter_array_at(&limiter->arena.blocks, number >> BLOCK_SHIFT);
    return block + (size_t)(number & ((1u << BLOCK_SHIFT) - 1)) * GRANULE;
}

static inline struct limiter_cell *
limiter_cell_at(const struct hf_limiter *limiter, uint32_t number)
{
    return (struct limiter_cell *)limiter_memory_at(limiter, number);
}

/* ---- limiter_table.c ---- */

enum hf_status hf_limiter_shards_init(struct hf_limiter *limiter,
                                      uint32_t count);
void hf_limiter_shards_destroy(struct hf_limiter *limiter);

/* The cell of a key under the shard's lock, or 0: certain. */
uint32_t hf_limiter_find_locked(struct hf_limiter *limiter,
                                struct limiter_shard *shard,
                                const struct limiter_key *key);
/* Adds a key that is not there, with a version that it becomes a user of (the
 * caller has counted it) and the words. Forgets some others first. HF_FULL,
 * HF_NOMEM: nothing was added. (m) */
enum hf_status hf_limiter_add(struct hf_limiter *limiter,
                              struct limiter_shard *shard,
                              const struct limiter_key *key, uint32_t version,
                              const struct rate_state *words, uint32_t flags,
                              uint64_t now_ns, uint32_t *number);
/* ---- limiter_evict.c ---- */

/* Looks at about `count` keys of a shard, forgets those that are idle and adds
 * their number to `*evicted`. Returns how many it looked at. (m) */
uint32_t hf_limiter_evict(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t count,
                          uint64_t now_ns, uint32_t *evicted);

/* The same for a new key: twice as many. (m) */
void hf_limiter_evict_some(struct hf_limiter *limiter,
                           struct limiter_shard *shard, uint64_t now_ns);
/* One more key is allowed, and counted. (m) */
bool hf_limiter_keys_reserve(struct hf_limiter *limiter,
                             struct limiter_shard *shard, uint64_t now_ns);
/* Frees what the cells of a chain own, before close. */
void hf_limiter_chain_clear(struct hf_limiter *limiter,
                            struct limiter_bucket *bucket);

/* ---- limiter_lock.c ---- */

void hf_limiter_cell_set_key(struct limiter_cell *cell,
                             const struct limiter_key *key, uint32_t flags);
/* The last, shorter word of a key, padded with zeros. */
static inline uint64_t limiter_key_tail(const unsigned char *bytes,
                                        uint32_t len)
{
    uint64_t word = 0;

    memcpy(&word, bytes, len);
    return word;
}

/* True if the cell has this key: certain with its lock or the shard's. */
static inline bool limiter_cell_is(const struct limiter_cell *cell,
                                   const struct limiter_key *key)
{
    /* Acquire, here and below: so that the look at the lock that follows
     * comes after. */
    uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_ACQUIRE);
    uint32_t i = 0;
    uint64_t word;

    if ((identity & IDENTITY_MASK) != key->identity)
        return false;
    for (; (i + 1) * 8 <= key->len; i++) {
        memcpy(&word, key->bytes + (size_t)i * 8, 8);
        if (hf_u64_load(&cell->key[i], __ATOMIC_ACQUIRE) != word)
            return false;
    }
    return i * 8 == key->len ||
           hf_u64_load(&cell->key[i], __ATOMIC_ACQUIRE) ==
               limiter_key_tail(key->bytes + (size_t)i * 8, key->len - i * 8);
}

void hf_limiter_lock(struct hf_limiter *limiter, struct limiter_cell *cell);
/* Waits until the lock is free, and returns the view. */
uint32_t hf_limiter_lock_await(struct hf_limiter *limiter,
                               struct limiter_cell *cell);

/* Locks the cell if its lock still is as in the view. */
static inline bool limiter_lock_seen(struct limiter_cell *cell, uint32_t word)
{
    /* Acquire: what the last holder wrote. */
    return hf_u32_cas(&cell->lock, &word, word | LOCK_HELD, __ATOMIC_ACQUIRE);
}

/* A plain store: a swap would cost as much as the rest of a decision. Whoever
 * is about to sleep may thus be missed; it looks again soon by itself. */
static inline void limiter_unlock(struct hf_limiter *limiter,
                                  struct limiter_cell *cell)
{
    /* Relaxed: nobody else changes it meanwhile. */
    uint32_t word = hf_u32_load(&cell->lock, __ATOMIC_RELAXED);

    /* Release: the cell. */
    hf_u32_store(&cell->lock, word + LOCK_ONE - LOCK_HELD, __ATOMIC_RELEASE);
    /* Relaxed: see above. */
    if (__builtin_expect(
            hf_u32_load(&limiter->lock_sleepers, __ATOMIC_RELAXED) != 0, 0))
        hf_event_wake_all(&limiter->lock_event);
}

static inline struct limiter_shard *
limiter_shard_of(const struct hf_limiter *limiter, uint64_t hash)
{
    return &limiter->shards[(hash >> 32) >> limiter->shard_shift];
}

/* ---- limiter_rules.c ---- */

enum hf_status hf_limiter_rules_init(struct hf_limiter *limiter,
                                     const struct hf_limiter_rule *rule);
void hf_limiter_rules_destroy(struct hf_limiter *limiter);

static inline struct limiter_version *
limiter_version_at(const struct hf_limiter *limiter, uint32_t number)
{
    /* Acquire: the chunk was zeroed before it was published. */
    struct limiter_version *chunk = (struct limiter_version *)hf_ptr_load(
        &limiter->rules.versions[number / VERSION_CHUNK], __ATOMIC_ACQUIRE);
    return &chunk[number % VERSION_CHUNK];
}

/* The version that a rule has now, or VERSION_NONE if it was removed. Unless
 * the caller is a user of it, it may be another rule's by the time it looks. */
static inline uint32_t limiter_rule_version(const struct hf_limiter *limiter,
                                            uint32_t number)
{
    uint32_t slot = number & 0xffff;

    if (slot >= HF_LIMITER_RULES_MAX)
        return VERSION_NONE;
    /* Acquire: as above. */
    struct limiter_policy *chunk = (struct limiter_policy *)hf_ptr_load(
        &limiter->rules.policies[slot / POLICY_CHUNK], __ATOMIC_ACQUIRE);
    if (chunk == NULL)
        return VERSION_NONE;
    struct limiter_policy *policy = &chunk[slot % POLICY_CHUNK];
    /* Acquire, in this order: the generation goes up before another rule gets
     * its version in this place, so the one seen last tells whose it is. */
    uint32_t version = hf_u32_load(&policy->current, __ATOMIC_ACQUIRE);
    uint32_t generation = hf_u32_load(&policy->generation, __ATOMIC_ACQUIRE);
    return (generation & 0xffff) == number >> 16 ? version : VERSION_NONE;
}

/* The version that an ask is to be decided by, with one more user for it.
 * HF_NOTFOUND: the rule was removed; HF_INVALID, HF_FULL, HF_NOMEM: own. */
enum hf_status hf_limiter_version_use(struct hf_limiter *limiter,
                                      struct limiter_local *local,
                                      const struct hf_limiter_ask *ask,
                                      uint32_t *version);
/* One user less. */
void hf_limiter_version_drop(struct hf_limiter *limiter, uint32_t version);
/* True if it has these numbers. Certain while it has a user. */
bool hf_limiter_version_is(const struct limiter_version *version,
                           const struct hf_limiter_rule *rule);
/* Copies a rule's plan. Certain while it has a user. */
static inline void limiter_version_plan(const struct limiter_version *version,
                                        struct hf_rate_plan *out)
{
    uint64_t words[PLAN_WORDS];

    /* Acquire: so that the look at the lock that follows comes after. */
    for (uint32_t i = 0; i < PLAN_WORDS; i++)
        words[i] = hf_u64_load(&version->plan[i], __ATOMIC_ACQUIRE);
    memcpy(out, words, sizeof *out);
}
/* Copies all of it. Certain while it has a user. */
void hf_limiter_version_know(const struct limiter_version *version,
                             uint32_t number, struct limiter_known *known);
/* False if the rule that it is of has been removed. */
bool hf_limiter_version_lives(const struct hf_limiter *limiter,
                              const struct limiter_version *version);
/* The name of its rule; "" for own numbers. Certain while it has a user. */
void hf_limiter_version_name(const struct limiter_version *version,
                             char name[HF_NAME_BYTES]);

/* ---- limiter.c ---- */

static inline bool limiter_shut(const struct hf_limiter *limiter)
{
    /* Acquire: what was done before it was shut. */
    return hf_u32_load(&limiter->closed, __ATOMIC_ACQUIRE) != 0;
}

/* hf_limiter_take() that does not count a refusal. */
enum hf_status hf_limiter_try(struct hf_limiter *limiter,
                              const struct hf_limiter_call *call,
                              struct hf_limiter_answer *answer);

struct limiter_local *hf_limiter_local_mine(struct hf_limiter *limiter);
static inline enum hf_status limiter_key_make(const struct hf_limiter *limiter,
                                              const struct hf_limiter_ask *ask,
                                              struct limiter_key *key)
{
    uint32_t family = ask->own != NULL ? FAMILY_OWN : ask->rule & 0xffff;

    if (ask->key_len > HF_LIMITER_KEY_MAX ||
        (ask->key == NULL && ask->key_len > 0))
        return HF_INVALID;
    key->bytes = (const unsigned char *)ask->key;
    key->len = (uint32_t)ask->key_len;
    key->identity = family << 16 | IDENTITY_LIVE | key->len;
    key->hash = hf_hasher_hash(&limiter->hash, ask->key, ask->key_len) +
                family * UINT64_C(0x9e3779b97f4a7c15);
    return HF_OK;
}

/* Relaxed: only its own thread writes it. */
static inline void limiter_count(struct hf_atomic_u64 *counter, uint64_t by)
{
    hf_u64_store(counter, hf_u64_load(counter, __ATOMIC_RELAXED) + by,
                 __ATOMIC_RELAXED);
}

/* ---- limiter_cell.c: the state of a locked cell ---- */

/* A cell that the caller has locked, and what it reads and writes there. */
struct limiter_open {
    struct limiter_cell *cell;
    uint32_t number;
    uint32_t version;
    struct hf_rate_plan plan;
    struct rate_state words;
    struct limiter_holds *holds; /* of this cell, or NULL */
};

/* Reads it. The cell's version is the plan. */
void hf_limiter_cell_open(struct hf_limiter *limiter, struct limiter_cell *cell,
                          uint32_t number, struct limiter_open *open);
/* Writes the words back. */
void hf_limiter_cell_store(const struct limiter_open *open);
/* True if the cell's words are by the rule that the ask means. */
bool hf_limiter_up_to_date(struct hf_limiter *limiter,
                           const struct limiter_open *open,
                           const struct hf_limiter_ask *ask);
/* Brings it to the rule that the ask means, and takes back holds whose time is
 * over. The words are written. HF_NOTFOUND, HF_NOMEM, ...: as it was. */
enum hf_status hf_limiter_cell_refresh(struct hf_limiter *limiter,
                                       struct limiter_local *local,
                                       struct limiter_open *open,
                                       const struct hf_limiter_ask *ask,
                                       uint64_t now_ns);
/* Frees what the words own: the cell is about to go. */
void hf_limiter_cell_clear(struct hf_limiter *limiter,
                           struct limiter_open *open);

/* ---- limiter_many.c ---- */

/* One cell of a call; pairs with the same cell are one. */
struct limiter_part {
    struct limiter_key key;
    struct limiter_open open;
    uint32_t ask;  /* the first that means it */
    bool shadow;   /* of its rule */
    uint64_t cost; /* of all */
    uint64_t keep_back;
    uint64_t wait_ns;
};

struct limiter_parts {
    uint32_t count;
    uint64_t now_ns;                               /* when it is decided */
    struct limiter_part part[HF_LIMITER_ASKS_MAX]; /* by cell number */
};

/* Finds the cells of a call, locks them and brings them up to date. Those that
 * are not there are made or, if not `make`, left out. On failure nothing is
 * locked. */
enum hf_status hf_limiter_parts_lock(struct hf_limiter *limiter,
                                     struct limiter_local *local,
                                     const struct hf_limiter_call *call,
                                     bool make, uint64_t now_ns,
                                     struct limiter_parts *parts);
void hf_limiter_parts_unlock(struct hf_limiter *limiter,
                             struct limiter_parts *parts);
/* Asks every part. True: none denies, but for shadows. */
bool hf_limiter_parts_ask(struct hf_limiter *limiter,
                          struct limiter_parts *parts, uint32_t priority);
/* Takes from every part that does not deny. With `hold` there is room to settle
 * for more, whatever is taken now. HF_NOMEM: from none. */
enum hf_status hf_limiter_parts_take(struct hf_limiter *limiter,
                                     struct limiter_parts *parts, bool hold);
/* After ask, and after take if that was done; still locked. */
void hf_limiter_parts_answer(struct hf_limiter *limiter,
                             const struct hf_limiter_call *call,
                             const struct limiter_parts *parts,
                             uint64_t given_ns,
                             struct hf_limiter_answer *answer);

enum hf_status hf_limiter_give_back(struct hf_limiter *limiter,
                                    struct limiter_local *local,
                                    const struct hf_limiter_call *call,
                                    uint64_t taken_ns);
enum hf_status hf_limiter_many(struct hf_limiter *limiter,
                               struct limiter_local *local,
                               const struct hf_limiter_call *call, bool peek,
                               uint64_t now_ns,
                               struct hf_limiter_answer *answer);

/* ---- limiter_wait.c ---- */

/* The queue of a cell: by the lower half of its hash and its identity. */
uint64_t hf_limiter_wait_id(uint32_t hash, uint32_t identity);
/* The first in a queue, or all in all, are to look again. */
void hf_limiter_wait_call(struct hf_limiter *limiter, uint64_t id);
void hf_limiter_wait_call_all(struct hf_limiter *limiter);
enum hf_status hf_limiter_await(struct hf_limiter *limiter,
                                const struct hf_limiter_call *call,
                                uint64_t deadline_ns,
                                struct hf_limiter_answer *answer);

/* ---- limiter_top.c ---- */

/* A key was denied; `id` is its hash. */
void hf_limiter_top_note(struct hf_limiter *limiter,
                         struct limiter_local *local, uint64_t id,
                         const struct hf_limiter_ask *ask, const char *rule);
void hf_limiter_top_destroy(struct hf_limiter *limiter);

#endif
