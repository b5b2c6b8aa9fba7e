/* multiqueue.h - several classes of work, shared fairly between them.
 *
 *   class 0  weight 70   [ a a a a a a a a ]  \
 *   class 1  weight 20   [ b b b ]             >--> take, take, take ...
 *   class 2  weight 10   [ c c c c c c ]      /     a a b a a c a b a a ...
 *
 * While all classes have work, each gets its weight's share of the takes,
 * evenly spread, and is never further from it than there are classes. A class
 * without work gives its share to the others: nobody who takes waits while any
 * class has work. No class that has work is passed over for longer than its
 * weight says. Within a class items leave in the order in which they came.
 *
 *   ageing        an item that has waited for `age_ns` is taken next, out of
 *                 turn; every other take at most, so that a backlog of old
 *                 items cannot undo the shares altogether
 *   adaptive      a class counts for more the fuller it is, up to twice its
 *                 weight
 *   overflow      a put into a full class waits, is refused, or goes to the
 *                 next lower class that has room
 *   inheritance   promote(): an item that somebody important waits for moves to
 *                 a higher class, in front of those who came later
 *   stealing      a taker may name a home class, which it serves first; when
 *                 that is empty it takes from the others, by their shares. A
 *                 class that is nobody's home while all takers have one is
 *                 served by ageing only, as long as all homes have work
 *   alarm         told when a class has had an item waiting for `starve_ns`
 *
 * Threads: every call but open and close from any thread. The alarm is called
 *          by whoever puts or takes, or waits to put, outside locks; it may
 *          call the queue, but should not wait.
 * Memory:  items are the user's pointers; records are kept and used again.
 * Time:    by `clock`.
 *
 *   linearizable  order        lock-free  allocates
 *   yes           per class    no         put, until the records suffice
 *
 * Example:
 *
 *   struct hf_multiqueue *queue;
 *   static char low[] = "low", high[] = "high";
 *   void *item;
 *   assert(hf_multiqueue_open(&queue, NULL) == HF_OK);
 *   assert(hf_multiqueue_put(queue, 2, low, HF_FOREVER, NULL) == HF_OK);
 *   assert(hf_multiqueue_put(queue, 0, high, HF_FOREVER, NULL) == HF_OK);
 *   assert(hf_multiqueue_take(queue, &item, HF_FOREVER) == HF_OK);
 *   assert(item == high);
 *   hf_multiqueue_shutdown(queue);
 *   assert(hf_multiqueue_take(queue, &item, HF_FOREVER) == HF_OK);
 *   assert(hf_multiqueue_take(queue, &item, HF_FOREVER) == HF_CLOSED);
 *   hf_multiqueue_close(queue);
 */
#ifndef HOLDFAST_MULTIQUEUE_H
#define HOLDFAST_MULTIQUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_MULTIQUEUE_CLASSES_MAX      16u
#define HF_MULTIQUEUE_WEIGHT_MAX       1000000u
#define HF_MULTIQUEUE_CAPACITY_DEFAULT 1024u
#define HF_MULTIQUEUE_CAPACITY_MAX     (1u << 24)
#define HF_MULTIQUEUE_NO_HOME          UINT32_MAX

struct hf_multiqueue;

enum hf_multiqueue_overflow {
    HF_MULTIQUEUE_BLOCK,  /* put waits for room, until its deadline */
    HF_MULTIQUEUE_REJECT, /* put returns HF_FULL */
    HF_MULTIQUEUE_LOWER,  /* the next class below with room; none: BLOCK */
};

struct hf_multiqueue_opts {
    const char *name; /* for hf_inspect() */
    uint32_t classes; /* 0: 3, with the weights 70, 20 and 10 */
    /* 1 .. HF_MULTIQUEUE_WEIGHT_MAX for each class, if classes is not 0. */
    uint32_t weights[HF_MULTIQUEUE_CLASSES_MAX];
    uint32_t capacity; /* of each class; 0: the default */
    enum hf_multiqueue_overflow overflow;
    bool adaptive;
    uint64_t age_ns;    /* 0: no ageing */
    uint64_t starve_ns; /* 0: no alarm */
    /* An item of the class has waited for so long. Once for each time that a
     * class starves; NULL: it is only counted. */
    void (*alarm)(void *context, uint32_t class_index, uint64_t waited_ns);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
};

/* Names an item for promote(); for no other use. */
struct hf_multiqueue_ticket {
    uint64_t number;
    uint32_t record;
};

struct hf_multiqueue_class_stats {
    uint64_t put;        /* accepted into it since open */
    uint64_t promoted;   /* moved to it by promote() */
    uint64_t raised;     /* moved from it to a higher class */
    uint64_t taken;      /* from it */
    uint64_t aged;       /* of those, out of turn */
    uint64_t overflowed; /* put for it, but put lower */
    uint64_t rejected;   /* not accepted: full, late, shut down or no memory */
    uint64_t alarms;
    uint64_t depth;       /* put + promoted - raised - taken */
    uint64_t oldest_ns;   /* HF_INSPECT_NONE: it is empty */
    uint64_t wait_p99_ns; /* from put to take; HF_INSPECT_NONE: none yet */
};

struct hf_multiqueue_stats {
    uint32_t classes;
    struct hf_multiqueue_class_stats by_class[HF_MULTIQUEUE_CLASSES_MAX];
    uint64_t stolen; /* taken by who had another home */
};

/* HF_INVALID, HF_NOMEM. */
enum hf_status hf_multiqueue_open(struct hf_multiqueue **queue,
                                  const struct hf_multiqueue_opts *opts);
/* Nothing new; takers get what is inside and then HF_CLOSED. */
void hf_multiqueue_shutdown(struct hf_multiqueue *queue);
/* Nobody may be inside a call. What is inside is forgotten. NULL is allowed. */
void hf_multiqueue_close(struct hf_multiqueue *queue);

/* Class 0 is the highest. The item is not NULL. `ticket` may be NULL.
 * HF_TIMEOUT, HF_FULL, HF_CLOSED, HF_NOMEM: not accepted. */
enum hf_status hf_multiqueue_put(struct hf_multiqueue *queue,
                                 uint32_t class_index, void *item,
                                 uint64_t deadline_ns,
                                 struct hf_multiqueue_ticket *ticket);
/* HF_TIMEOUT; HF_CLOSED: shut down, and nothing is inside. */
enum hf_status hf_multiqueue_take(struct hf_multiqueue *queue, void **item,
                                  uint64_t deadline_ns);
/* The same for a taker with a home class; `*from` (may be NULL) is the class
 * that the item was in. */
enum hf_status hf_multiqueue_take_from(struct hf_multiqueue *queue,
                                       uint32_t home, void **item,
                                       uint64_t deadline_ns, uint32_t *from);

/* Moves an item that waits to a higher class, by the time at which it was put.
 * The class may be over its capacity after that. HF_NOTFOUND: it was taken.
 * HF_INVALID: no such class. HF_OK also if its class is as high already. */
enum hf_status hf_multiqueue_promote(struct hf_multiqueue *queue,
                                     const struct hf_multiqueue_ticket *ticket,
                                     uint32_t class_index);

uint64_t hf_multiqueue_size(struct hf_multiqueue *queue);
void hf_multiqueue_stats(struct hf_multiqueue *queue,
                         struct hf_multiqueue_stats *out);

#ifdef __cplusplus
}
#endif

#endif
