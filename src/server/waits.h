/* waits.h - the one registry of requests that wait, whatever they wait for.
 *
 *   conn <----> struct wait ----> its kind: a row of functions
 *                 |     |
 *      list of all,     heap by the time of the next look: its deadline,
 *      oldest first     or earlier if its kind wants so
 *
 * A request that waits is alone on its connection: nothing behind it runs
 * until it has ended. A kind has a struct of its own that begins with a
 * `struct wait`, and knows when the wait is granted. What else can happen to
 * one who waits is noticed here, and the kind says what it means:
 *
 *          a lock, stock (lock_wait.c)     permits (limit_wait.c)
 *   due    TIMEOUT, while the disk hangs   the call is made again
 *   left   a verdict is owed               forgotten
 *   stop   a verdict is owed               the call is made a last time
 *   fail   told so                         waits on
 *
 * and for events (events.c): due and stop, told that there are none; left,
 * forgotten; fail, waits on. For what is searched in the feed (history.c):
 * never due; stop, told so; left, forgotten; fail, waits on.
 *
 * Threads: the loop's.
 * Memory:  a kind allocates its struct, waits_remove() frees it.
 * Time:    the server's clock.
 */
#ifndef SERVER_WAITS_H
#define SERVER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/slab.h"

struct conn;
struct server;
struct wait;

typedef void wait_fn(struct server *server, struct wait *wait);

enum wait_kind {
    WAIT_LOCK,
    WAIT_LIMIT,
    WAIT_FEED,
    WAIT_HISTORY,
    WAIT_AUDIT,
    WAIT_KINDS
};
enum wait_event { WAIT_DUE, WAIT_LEFT, WAIT_STOP, WAIT_FAIL, WAIT_EVENTS };

struct wait {
    enum wait_kind kind;
    bool queued;       /* see waits_queue() */
    struct conn *conn; /* NULL: nobody is to be told any more */
    struct wait *prev; /* in the list of all */
    struct wait *next;
    uint64_t came_ns;     /* when the request was read */
    uint64_t deadline_ns; /* when it ends at the latest */
    uint32_t number;      /* its name in the heap; 0: never looked at */
    uint32_t position;    /* in the heap */
};

struct waits {
    struct wait *first;
    struct wait *last;
    uint64_t counts[WAIT_KINDS];
    struct hf_heap due;
    struct hf_slab numbers; /* of the heap, with their waits */
    uint64_t order;         /* of those that are due at once */
    size_t bytes;
};

void waits_open(struct waits *waits);
void waits_close(struct waits *waits);

/* The connection waits; kind and times are set. It is looked at when its
 * deadline comes. Without a connection it is never looked at, and adding it
 * does not fail. HF_NOMEM: it was not added. */
enum hf_status waits_add(struct waits *waits, struct wait *wait,
                         struct conn *conn);
/* It waits in a queue, where its grant may come at any time: a client that has
 * closed its side, or does, is gone. */
void waits_queue(struct wait *wait);
/* May the client close its side and still be told? */
bool waits_may_close(const struct conn *conn);
/* Another connection takes the place of the one that was detached. */
void waits_attach(struct waits *waits, struct wait *wait, struct conn *conn);
/* Nobody is to be told any more; returns who was, or NULL. */
struct conn *waits_detach(struct waits *waits, struct wait *wait);
/* It is to be looked at then, at the latest. */
void waits_look(struct waits *waits, struct wait *wait, uint64_t when_ns);
/* Detaches and frees it. */
void waits_remove(struct waits *waits, struct wait *wait);

/* When the next look is due; UINT64_MAX: none is. */
static inline uint64_t waits_next_ns(const struct waits *waits)
{
    const struct hf_heap_entry *first = hf_heap_first(&waits->due);

    return first != NULL ? first->when : UINT64_MAX;
}

/* Looks at those whose time has come. */
void waits_due(struct server *server, uint64_t now_ns);
/* The connection goes: nobody waits there any more. */
void waits_leave(struct server *server, struct conn *conn);
/* WAIT_STOP or WAIT_FAIL: the server stops, or the log has failed. */
void waits_end(struct server *server, enum wait_event why);

#endif
