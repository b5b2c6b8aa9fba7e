/* tiered_state.h - the inside of holdfast/tiered.h, for the files that make it
 * up.
 *
 *   tiered.c         open and close, reads through the levels
 *   tiered_apply.c   changes
 *   tiered_warm.c    many keys at once
 *   tiered_near.c    L1: what each thread keeps
 *   tiered_remote.c  L3: Redis, from afar
 *   tiered_wire.c    connections to it, and its scripts
 *   tiered_change.c  telling all processes of a change
 *   tiered_listen.c  the thread that listens, and who has heard what
 *
 * A value is a block with its key in it, never changed once made, and freed by
 * the last who refers to it: L1 of any thread, L2, or a read.
 */
#ifndef STORES_TIERED_STATE_H
#define STORES_TIERED_STATE_H

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "base/thread.h"
#include "holdfast/cache.h"
#include "holdfast/tiered.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"

struct tiered_block {
    struct hf_atomic_u32 references; /* (a) */
    uint32_t key_len;                /* (i) */
    size_t len;                      /* (i) of the value */
    char bytes[];                    /* (i) the key, then the value */
};

struct tiered_remote;

/* A thread's own part; its thread alone writes to it. */
struct tiered_near {
    struct near_entry *entries;   /* L1; NULL: none yet */
    uint32_t busy;                /* a caller's function is reading from it */
    uint32_t turn;                /* the hit of L2 that many away is kept; 0:
                                   * it has had none */
    struct hf_atomic_u64 l1_hits; /* (a) read by stats */
    struct hf_atomic_u64 l2_hits; /* (a) */
} __attribute__((aligned(HF_CACHE_LINE)));

struct hf_tiered {
    struct hf_listed listed;
    struct hf_tiered_opts opts; /* (i) with the defaults filled in */
    struct hf_store store;      /* (i) */
    char *host;                 /* (i) copies that `opts` leads to */
    char prefix[HF_TIERED_PREFIX_MAX + 1];
    struct hf_atomic_u32 shut;        /* (a) */
    const struct hf_clock *clock;     /* (i) */
    struct hf_cache *l2;              /* (i) of blocks */
    struct hf_locals nears;           /* L1 */
    struct hf_hash_seed seed;         /* (i) of L1 */
    struct tiered_remote *remote;     /* (i) NULL: no Redis */
    struct hf_atomic_u32 turns;       /* (a) threads that had a hit of L2 */
    struct hf_atomic_u64 store_reads; /* (a) figures, relaxed */
    struct hf_atomic_u64 direct_reads;
    struct hf_atomic_u64 changes;
};

static inline void tiered_count(struct hf_atomic_u64 *figure)
{
    hf_u64_add(figure, 1, __ATOMIC_RELAXED); /* a figure, guards nothing */
}

static inline bool tiered_is_shut(const struct hf_tiered *tiered)
{
    /* Acquire: pairs with hf_tiered_shutdown(). */
    return hf_u32_load(&tiered->shut, __ATOMIC_ACQUIRE) != 0;
}

static inline const char *tiered_value(const struct tiered_block *block)
{
    return block->bytes + block->key_len;
}

/* NULL without memory. One reference, the caller's. */
struct tiered_block *hf_tiered_block_new(const void *key, size_t key_len,
                                         const void *value, size_t len);
void hf_tiered_block_take(struct tiered_block *block);
/* NULL is allowed. */
void hf_tiered_block_drop(struct tiered_block *block);

/* tiered_near.c */

/* The block, if this thread has it and nothing has changed; no reference. */
struct tiered_block *hf_tiered_near_find(struct hf_tiered *tiered,
                                         struct tiered_near *near,
                                         const void *key, size_t key_len,
                                         uint64_t stamp, uint64_t now_ns);
/* Keeps a reference to the block, which was true at the stamp. */
void hf_tiered_near_keep(struct hf_tiered *tiered, struct tiered_near *near,
                         struct tiered_block *block, uint64_t stamp,
                         uint64_t until_ns);
void hf_tiered_near_destroy(struct hf_tiered *tiered, struct tiered_near *near);

/* tiered_remote.c */

/* HF_INVALID, HF_NOMEM. */
enum hf_status hf_tiered_remote_open(struct hf_tiered *tiered);
void hf_tiered_remote_close(struct hf_tiered *tiered);
/* May L1 and L2 be served? */
bool hf_tiered_remote_leased(const struct tiered_remote *remote,
                             uint64_t now_ns);

/* What to do about a key that is not in L2. */
enum tiered_claim {
    TIERED_FOUND, /* in L3 */
    TIERED_LOAD,  /* load it: nobody else does; then tell remote_fill */
    TIERED_WAIT,  /* another process loads it */
    TIERED_DOWN,  /* Redis does not answer: load it */
};
#define TIERED_TOKEN_MAX 64u
struct tiered_ticket {
    char token[TIERED_TOKEN_MAX]; /* of the key when the load began */
    size_t token_len;
    char mine[TIERED_TOKEN_MAX]; /* this load */
    uint32_t heard;              /* for hf_tiered_remote_wait() */
    uint64_t ttl_ns;             /* TIERED_FOUND: that it still has */
};
enum tiered_claim hf_tiered_remote_claim(struct tiered_remote *remote,
                                         const void *key, size_t key_len,
                                         struct tiered_ticket *ticket,
                                         struct tiered_block **out);
/* The load has ended; `block` NULL: without a value. */
void hf_tiered_remote_fill(struct tiered_remote *remote, const void *key,
                           size_t key_len, const struct tiered_ticket *ticket,
                           const struct tiered_block *block);
/* Until a load by another process may have ended; at most until the deadline.
 */
void hf_tiered_remote_wait(struct tiered_remote *remote,
                           const struct tiered_ticket *ticket,
                           uint64_t deadline_ns);
/* HF_OK: in `*out`. HF_NOTFOUND, HF_IO, HF_NOMEM. */
enum hf_status hf_tiered_remote_get(struct tiered_remote *remote,
                                    const void *key, size_t key_len,
                                    struct tiered_block **out);
/* HF_OK: no other process has the key near. HF_PENDING: not known by the
 * deadline; HF_CLOSED: not known when it was shut; HF_IO: Redis does not
 * answer. `drop` is called when L3 has let go of it, for the levels of this
 * process; what it says counts. */
enum hf_status hf_tiered_remote_change(
    struct tiered_remote *remote, const void *key, size_t key_len,
    uint64_t deadline_ns,
    enum hf_status (*drop)(void *context, const void *key, size_t key_len));
/* Those who wait look whether they still may. */
void hf_tiered_remote_shutdown(struct tiered_remote *remote);
void hf_tiered_remote_stats(const struct tiered_remote *remote,
                            struct hf_tiered_stats *out);

#endif
