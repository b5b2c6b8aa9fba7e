/* blocking_state.h - the inside of holdfast/blocking.h.
 *
 *   blocking.c           the public calls, figures, open and close
 *   blocking_buffer.c    waiting for items and for room, for the kinds that
 *                        have a buffer (blocking_buffer.h: when they need not);
 *                        each brings a struct blocking_buffer:
 *     blocking_array.c     ARRAY
 *     blocking_linked.c    LINKED
 *     blocking_order.c     PRIORITY and DELAY
 *   blocking_handoff.c   SYNCHRONOUS and TRANSFER: callers meet each other
 *
 * One lock guards all of a queue. What is done under it is short, and a put or
 * take that need not wait costs the lock and nothing else.
 */
#ifndef SYNC_BLOCKING_STATE_H
#define SYNC_BLOCKING_STATE_H

#include "base/atomic.h"
#include "base/heap.h"
#include "base/slab.h"
#include "holdfast/blocking.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

/* Looks before the first sleep, which together take about as long as it takes
 * to fall asleep and be woken. */
#define BLOCKING_SPINS 40

/* What a put brings. */
struct blocking_new {
    void *item;
    uint64_t rank;     /* PRIORITY: the rank; DELAY: when it is visible */
    uint64_t stamp_ns; /* when it came, if that is noted */
};

/* What a kind with a buffer is made of. The queue is locked in every call but
 * open and release. */
struct blocking_buffer {
    /* HF_NOMEM: there is nothing to release. */
    enum hf_status (*open)(struct hf_blocking *queue);
    void (*release)(struct hf_blocking *queue);
    /* There is room. HF_NOMEM: nothing was changed. */
    enum hf_status (*add)(struct hf_blocking *queue,
                          const struct blocking_new *what);
    /* There is an item. */
    void *(*remove)(struct hf_blocking *queue);
    /* There is an item: when the one that came first came. */
    uint64_t (*oldest_ns)(const struct hf_blocking *queue);
    /* There is an item: when the next one becomes visible. NULL: all are. */
    uint64_t (*visible_ns)(const struct hf_blocking *queue);
};

/* What is fixed for each kind. */
struct blocking_kind {
    const char *name;                     /* for hf_inspect() */
    const struct blocking_buffer *buffer; /* NULL: hand-off */
    uint64_t capacity_default;
    uint64_t capacity_max;
    bool ages; /* always noted */
    /* The public calls. */
    enum hf_status (*put)(struct hf_blocking *queue, void *item, uint64_t rank,
                          uint64_t deadline_ns);
    enum hf_status (*take)(struct hf_blocking *queue, void **item,
                           uint64_t deadline_ns);
    size_t (*drain)(struct hf_blocking *queue, void **items, size_t max);
};

extern const struct blocking_kind hf_blocking_kind_array;
extern const struct blocking_kind hf_blocking_kind_linked;
extern const struct blocking_kind hf_blocking_kind_priority;
extern const struct blocking_kind hf_blocking_kind_delay;
extern const struct blocking_kind hf_blocking_kind_synchronous;
extern const struct blocking_kind hf_blocking_kind_transfer;

struct blocking_array_state { /* (m) but (i) */
    void **items;             /* (i) `capacity` of them */
    uint64_t *stamps;         /* (i) as many, or NULL */
    uint64_t first;           /* where the next take is */
    uint64_t end;             /* where the next put is */
};

struct blocking_linked_state { /* (m) */
    struct linked_block *first;
    struct linked_block *last;
    struct linked_block *spare; /* so that one item coming and going at a
                                 * block's edge allocates nothing */
    uint32_t begin;             /* of the items in `first` */
    uint32_t end;               /* of the items in `last` */
};

struct blocking_order_state { /* (m) */
    struct hf_heap heap;      /* by (rank, order of puts) */
    struct hf_slab slab;      /* struct order_item */
    size_t bytes;             /* that both use */
    uint64_t puts;            /* the next tie */
    uint32_t oldest;          /* item that came first, 0 if none */
    uint32_t newest;
    const void *leader; /* DELAY: whose sleep ends when the next item becomes
                         * visible; NULL: nobody's */
};

struct handoff_list { /* (m) */
    struct handoff_node *first;
    struct handoff_node *last;
};

struct blocking_handoff_state { /* (m) one of the two is empty */
    struct handoff_list offers; /* items, with those whose putters wait */
    struct handoff_list takers; /* takers who wait */
};

struct hf_blocking { /* (i) immutable  (a) atomic  (m) under `mutex` */
    struct hf_listed listed;
    struct hf_blocking_opts opts;         /* (i) clock is never NULL */
    const struct blocking_kind *kind;     /* (i) */
    const struct blocking_buffer *buffer; /* (i) the kind's */
    uint64_t capacity;                    /* (i) UINT64_MAX: any */
    /* All that is written together with the lock. */
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct hf_atomic_u64 count; /* (a) items; changed under the lock */
    uint32_t takers;            /* (m) who sleep for an item */
    uint32_t putters;           /* (m) who sleep for room */
    bool shut;                  /* (m) */
    uint64_t put;               /* (m) the figures of hf_blocking_stats */
    uint64_t taken;             /* (m) */
    union {                     /* (m) */
        struct blocking_array_state array;
        struct blocking_linked_state linked;
        struct blocking_order_state order;
        struct blocking_handoff_state handoff;
    } in;
    struct hf_event items;  /* (a) takers sleep here, if there is a buffer */
    struct hf_event room;   /* (a) putters sleep here, if there is a buffer */
    uint64_t rejected;      /* (m) */
    uint64_t take_timeouts; /* (m) */
    struct hf_waits put_waits;  /* (a) */
    struct hf_waits take_waits; /* (a) */
};

/* The count under the lock. Relaxed, both: the lock orders them, and who reads
 * without it asks for no more than a number. */
static inline uint64_t blocking_count(const struct hf_blocking *queue)
{
    return hf_u64_load(&queue->count, __ATOMIC_RELAXED);
}

static inline void blocking_count_set(struct hf_blocking *queue, uint64_t count)
{
    hf_u64_store(&queue->count, count, __ATOMIC_RELAXED);
}

static inline uint64_t blocking_now_ns(const struct hf_blocking *queue)
{
    return hf_clock_now_ns(queue->opts.clock);
}

static inline struct blocking_new blocking_new(const struct hf_blocking *queue,
                                               void *item, uint64_t rank)
{
    return (struct blocking_new){
        .item = item,
        .rank = rank,
        .stamp_ns = queue->opts.ages ? blocking_now_ns(queue) : 0};
}

/* For the kinds without a buffer. The put ends when its item was taken. */
enum hf_status hf_handoff_transfer(struct hf_blocking *queue, void *item,
                                   uint64_t rank, uint64_t deadline_ns);
/* The queue is locked and was shut: who waits leaves. */
void hf_handoff_shutdown(struct hf_blocking *queue);
/* The queue is locked and not empty. */
uint64_t hf_handoff_oldest_ns(const struct hf_blocking *queue);

#endif
