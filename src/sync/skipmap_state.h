/* skipmap_state.h - the inside of holdfast/skipmap.h: nodes, links, walks.
 *
 * The life of a node:
 *
 *   made ---> linked at level 0, 1, ... height - 1     by its inserter
 *   value taken away: it is out                        by its remover
 *   next[height - 1] ... next[1], next[0] marked       by anybody
 *   unlinked from each level where it was linked       by anybody
 *   retired: `left` has come to 0                      by who made it 0
 *
 * A mark is the lowest bit of a node's next: what is marked does not change
 * any more, so nothing can be linked behind a node that is on its way out, and
 * it can be unlinked. What hangs behind a marked link may be gone already:
 * a marked link is never followed, only written into the link before it. (A
 * link that was found without a mark belongs to a node that was linked then,
 * so what it leads to was not retired before it was loaded: epoch_load() is
 * good for no less.)
 *
 * When is it unlinked for good? `left` counts the levels where it is or may
 * still be linked: its height at first. Each unlinking takes 1, since a level
 * is linked once and unlinked once; an inserter that stops early takes those
 * that it never linked. An inserter that has linked a level looks whether the
 * level is marked, and then walks to unlink it itself. A remover marks all
 * levels and then walks. In one order of all of these, either the inserter sees
 * the mark or the remover's walk sees the link.
 *
 * All accesses to links and values that meet another thread's are SEQ_CST: the
 * argument above, and those for first, floor and so on, compare accesses to
 * different words. On x86 a load costs no more for it, and the changes are
 * read-modify-writes anyhow.
 */
#ifndef SYNC_SKIPMAP_STATE_H
#define SYNC_SKIPMAP_STATE_H

#include <string.h>

#include "base/atomic.h"
#include "holdfast/skipmap.h"
#include "sync/epoch.h"
#include "sync/locals.h"

/* With one of two going up: for some ten million keys; more only get slower. */
#define SKIPMAP_LEVELS 24

/* What is retired: a node, or a box, which has no height. */
struct skipmap_part {
    struct hf_epoch_node epoch_node;
    uint32_t key_len : 27; /* (i) */
    uint32_t height : 5;   /* (i) levels of a node */
};

struct skipmap_node { /* behind its links lies the key */
    struct hf_epoch_node epoch_node;
    uint32_t key_len : 27;       /* (i) */
    uint32_t height : 5;         /* (i) 1 .. SKIPMAP_LEVELS */
    struct hf_atomic_u32 left;   /* (a) levels until it may be retired */
    struct hf_atomic_ptr value;  /* (a) value or box; NULL: it is out */
    uint64_t prefix;             /* (i) of the key, see skipmap_prefix() */
    struct hf_atomic_ptr next[]; /* (a) the lowest bit is the mark */
};

/* With free_value: a value and its life, which is not its node's. */
struct skipmap_box {
    struct hf_epoch_node epoch_node;
    uint32_t key_len : 27; /* (i) 0 */
    uint32_t height : 5;   /* (i) 0 */
    void *value;           /* (i) */
};

struct skipmap_local {                       /* one for each thread, its own */
    _Alignas(HF_CACHE_LINE) uint64_t random; /* 0: not begun */
    struct hf_atomic_u64 more;     /* (a) keys put less keys removed */
    struct hf_atomic_u64 restarts; /* (a) */
};

struct hf_skipmap {
    struct hf_listed listed;
    struct hf_skipmap_opts opts; /* (i) */
    struct hf_epoch *epoch;      /* (i) */
    struct skipmap_node *head;   /* (i) before all keys, of all levels */
    struct hf_locals locals;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 levels; /* (a) in use; never
                                                          * less than before */
};

/* A call in progress: the key it is about, and where its last walk ended. */
struct skipmap_call {
    struct hf_skipmap *map;
    struct hf_epoch_reader *reader;
    struct skipmap_local *local; /* NULL: not asked for yet */
    const void *key;
    size_t key_len;
    uint64_t prefix;
    bool exact;      /* the walk ended before the very key */
    uint32_t levels; /* of the walk */
    /* Of each level: the last node that the walk passed, and the next. */
    struct skipmap_node *before[SKIPMAP_LEVELS];
    struct skipmap_node *after[SKIPMAP_LEVELS];
};

/* Where a walk ends. */
enum skipmap_stop {
    SKIPMAP_AT_KEY,     /* before the first that is not below the key */
    SKIPMAP_BEHIND_KEY, /* before the first that is above it */
    SKIPMAP_AT_END,     /* behind all */
};

/* skipmap_walk.c */

/* Fills in before, after and exact. Unlinks whatever marked node it meets, and
 * those with the very key if it stops at the key: at all levels. */
void hf_skipmap_walk(struct skipmap_call *call, enum skipmap_stop stop);
/* Takes a node whose value is gone out of all levels. Needs the walk to it, or
 * one that has become stale. */
void hf_skipmap_unlink(struct skipmap_call *call, struct skipmap_node *node);
/* The same for one that was met on the way: call->key stays. */
void hf_skipmap_help(struct skipmap_call *call, struct skipmap_node *node);
/* Links a new node where the walk ended. HF_PENDING: another was faster. */
enum hf_status hf_skipmap_link(struct skipmap_call *call,
                               struct skipmap_node *node);

static inline bool skipmap_local_of(struct skipmap_call *call)
{
    if (call->local == NULL)
        call->local = (struct skipmap_local *)hf_locals_mine(
            &call->map->locals, sizeof *call->local);
    return call->local != NULL;
}

static inline bool skipmap_key_is_good(const void *key, size_t key_len)
{
    return (key != NULL || key_len == 0) && key_len <= HF_SKIPMAP_KEY_MAX;
}

/* The first 8 bytes as a number, the first byte highest, zeroes behind a
 * shorter key. Where two differ, the keys differ the same way: nearly every
 * comparison ends here and touches no line but the node's first. */
static inline uint64_t skipmap_prefix(const void *key, size_t key_len)
{
    uint64_t prefix = 0;

    if (key_len >= 8) {
        memcpy(&prefix, key, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        prefix = __builtin_bswap64(prefix);
#endif
        return prefix;
    }
    for (size_t i = 0; i < key_len; i++)
        prefix |= (uint64_t)((const unsigned char *)key)[i] << (56 - 8 * i);
    return prefix;
}

/* Begins a call about a key that is good. HF_NOMEM; else leave must follow. */
static inline enum hf_status skipmap_enter(struct skipmap_call *call,
                                           struct hf_skipmap *map,
                                           const void *key, size_t key_len)
{
    call->map = map;
    call->local = NULL;
    call->key = key;
    call->key_len = key_len;
    call->prefix = skipmap_prefix(key, key_len);
    call->reader = epoch_enter(map->epoch);
    return call->reader == NULL ? HF_NOMEM : HF_OK;
}

static inline void skipmap_leave(struct skipmap_call *call)
{
    epoch_leave(call->reader);
}

/* A value left: it is freed when nobody reads it, if that is ours to do. */
static inline void skipmap_drop(struct skipmap_call *call, void *held)
{
    if (call->map->opts.free_value != NULL)
        hf_epoch_retire(call->reader,
                        &((struct skipmap_box *)held)->epoch_node);
}

/* What node->value holds: a value, or a box with it. */
static inline void *skipmap_held(struct skipmap_call *call,
                                 struct skipmap_node *node)
{
    return call->map->opts.free_value != NULL
               ? epoch_load(call->reader, &node->value)
               : hf_ptr_load(&node->value, __ATOMIC_SEQ_CST);
}

static inline void *skipmap_value_of(const struct hf_skipmap *map, void *held)
{
    return map->opts.free_value != NULL ? ((struct skipmap_box *)held)->value
                                        : held;
}

/* Draws a height: of two one is above 1, of those one of two above 2 ... The
 * bits come from a counter, well mixed. */
static inline uint32_t skipmap_draw(uint64_t *random)
{
    uint64_t mixed = *random += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    mixed ^= mixed >> 31;
    return 1 + (uint32_t)__builtin_ctzll(mixed | UINT64_C(1) << 62);
}

/* Counts that only the owner changes and anybody may read. Relaxed: figures. */
static inline void skipmap_count(struct hf_atomic_u64 *word, uint64_t more)
{
    hf_u64_store(word, hf_u64_load(word, __ATOMIC_RELAXED) + more,
                 __ATOMIC_RELAXED);
}

static inline bool skipmap_marked(const void *link)
{
    return ((uintptr_t)link & 1) != 0;
}

static inline void *skipmap_mark(void *link)
{
    return (void *)((uintptr_t)link | 1);
}

static inline struct skipmap_node *skipmap_clear(void *link)
{
    return (struct skipmap_node *)((uintptr_t)link & ~(uintptr_t)1);
}

static inline const unsigned char *
skipmap_key_of(const struct skipmap_node *node)
{
    return (const unsigned char *)&node->next[node->height];
}

static inline int skipmap_compare_rest(const struct skipmap_node *node,
                                       const void *key, size_t key_len)
{
    size_t shorter = node->key_len < key_len ? node->key_len : key_len;

    if (shorter > 8) {
        int order = memcmp(skipmap_key_of(node) + 8,
                           (const unsigned char *)key + 8, shorter - 8);
        if (order != 0)
            return order;
    }
    return (node->key_len > key_len) - (node->key_len < key_len);
}

/* A walk that is about to look at a node at one level may have to go down from
 * the node before instead: both are fetched at once. */
static inline void skipmap_fetch_below(const struct skipmap_node *before,
                                       uint32_t level)
{
    if (level == 0)
        return;
    /* Relaxed: it is not followed, may be marked, and need not be there. */
    uintptr_t below =
        (uintptr_t)hf_ptr_load(&before->next[level - 1], __ATOMIC_RELAXED);
    __builtin_prefetch(
        (const void *)(below + offsetof(struct skipmap_node, prefix)));
}

/* Below 0: the node is before the key. */
static inline int skipmap_compare(const struct skipmap_node *node,
                                  uint64_t prefix, const void *key,
                                  size_t key_len)
{
    if (node->prefix != prefix)
        return node->prefix < prefix ? -1 : 1;
    return skipmap_compare_rest(node, key, key_len);
}

#endif
