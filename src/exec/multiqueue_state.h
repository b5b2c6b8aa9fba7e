/* multiqueue_state.h - the inside of a multiqueue: one lock, a list a class. */
#ifndef EXEC_MULTIQUEUE_STATE_H
#define EXEC_MULTIQUEUE_STATE_H

#include "base/slab.h"
#include "holdfast/event.h"
#include "holdfast/multiqueue.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

#define MULTIQUEUE_NONE UINT32_MAX /* no class */

struct record {    /* an item that waits; in the slab */
    uint32_t used; /* 1; the slab wants it first and not 0 */
    uint32_t class_index;
    uint32_t next;
    uint32_t prev;
    uint64_t number; /* of the put; tells a record from its last use */
    uint64_t put_ns;
    void *item;
};

struct class_state {
    uint32_t first;   /* (m) its items, by the number of their puts */
    uint32_t last;    /* (m) */
    uint32_t blocked; /* (m) who wait for room */
    bool starving;    /* (m) the alarm has been given */
    uint64_t ahead;   /* (m) see multiqueue_turn.c */
    struct hf_multiqueue_class_stats counts; /* (m) */
    struct hf_waits *waits;                  /* (i) */
    struct hf_event room;
};

struct hf_multiqueue {
    struct hf_listed listed;
    struct hf_multiqueue_opts opts; /* (i) with defaults */
    const struct hf_clock *clock;   /* (i) */
    struct hf_mutex mutex;
    struct hf_slab records;                                /* (m) */
    struct class_state classes[HF_MULTIQUEUE_CLASSES_MAX]; /* see there */
    uint64_t puts;    /* (m) the number of the last */
    uint64_t size;    /* (m) */
    uint64_t stolen;  /* (m) */
    uint32_t takers;  /* (m) who wait for an item */
    uint32_t blocked; /* (m) who wait for room, of all classes */
    bool aged_last;   /* (m) the last take was out of turn */
    bool shut;        /* (m) */
    struct hf_event work;
};

static inline struct record *record_at(const struct hf_multiqueue *queue,
                                       uint32_t number)
{
    return hf_slab_at(&queue->records, number);
}

/* ---- multiqueue_turn.c, all under the lock ---- */

/* Puts a record in, by the number of its put: at the end, as a rule. */
void hf_multiqueue_list_add(struct hf_multiqueue *queue, uint32_t class_index,
                            uint32_t number);
void hf_multiqueue_list_remove(struct hf_multiqueue *queue, uint32_t number);

/* The distance that a take costs the class. */
uint64_t hf_multiqueue_stride(const struct hf_multiqueue *queue,
                              uint32_t class_index);
/* Which class is served by this take; there is work. */
uint32_t hf_multiqueue_choose(struct hf_multiqueue *queue, uint32_t home,
                              uint64_t now_ns);

/* Alarms to be given once the lock is open. */
struct multiqueue_alarms {
    uint32_t count;
    uint32_t classes[HF_MULTIQUEUE_CLASSES_MAX];
    uint64_t waited_ns[HF_MULTIQUEUE_CLASSES_MAX];
};

/* Which classes have just begun to starve? */
void hf_multiqueue_look(struct hf_multiqueue *queue, uint64_t now_ns,
                        struct multiqueue_alarms *alarms);
/* An item of the class has gone: it may starve no more. */
void hf_multiqueue_calm(struct hf_multiqueue *queue, uint32_t class_index,
                        uint64_t now_ns);
/* When to look again: no class will have begun to starve before. HF_FOREVER:
 * never. */
uint64_t hf_multiqueue_next_look_ns(const struct hf_multiqueue *queue,
                                    uint64_t now_ns);

#endif
