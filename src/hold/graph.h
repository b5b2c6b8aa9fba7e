/* graph.h - who holds what, and who waits for it; for this folder only.
 *
 *   struct lock     a name that is held, waited for, or marked
 *     | grants      parts that are granted, by token
 *     | queue       parts that wait, in the order of their turn
 *     | mark        closed for a while, or done
 *     v
 *   struct part     one name of a request: waits in the queue, then is the
 *     |             grant. Taken when the request is, so that handing a lock
 *     |             over needs no memory
 *     +--group----> struct waiter   while it waits: ticket, deadline, REQ
 *     '--group----> struct set      granted as one of several names
 *                   (a single grant has no group, it is all in the part)
 *
 *   struct session  its parts: the first of each grant, set and waiter, oldest
 *                   first
 *   struct holder   one who waits, by session and owner: its waiters. Who holds
 *                   and does not wait cannot be in a circle, and has none
 *   struct terms    what few ask for: note, MAXHOLD, DELAY
 *   struct tree     a name that is held or waited for with TREE, or whose names
 *                   below are closed: see tree.h
 */
#ifndef HOLD_GRAPH_H
#define HOLD_GRAPH_H

#include "base/index.h"
#include "hold/list.h"

enum lock_mode { MODE_EXCLUSIVE, MODE_SHARED, MODE_COUNTING };

/* A name in use. */
struct lock {
    struct hf_named named;
    struct list grants;
    struct list queue;
    uint16_t granted; /* how many; at most HOLD_QUEUE_MAX */
    uint16_t waiting;
    uint32_t path; /* its path; or its tree, with LOCK_HAS_TREE; 0: none */
    union {
        uint64_t fence; /* of shared grants: of this phase */
        struct {
            uint32_t used; /* permits of counting grants */
            uint32_t max;
        };
    };
    uint32_t mark;   /* 0: none */
    uint32_t writer; /* the first in the queue that is not shared; 0: none */
    uint32_t next;   /* to be served */
    uint32_t several : 14; /* in the queue: parts of those who want several */
    uint32_t readers : 14; /* in the queue */
    bool is_listed : 1;    /* to be served */
    bool turn : 1;         /* of the readers: see serve.c */
    bool is_kept : 1;      /* for now, also without a grant */
};

#define LOCK_HAS_TREE 0x80000000u

/* A grant was wounded or revoked: its end stands. Images only say that it was.
 */
enum seal { SEAL_NONE, SEAL_LOADED, SEAL_WOUNDED, SEAL_REVOKED };

/* Who asked, and on which terms. */
struct claim {
    struct hf_text owner;
    uint32_t session; /* 0: none */
    uint32_t terms;   /* 0: none */
};

/* When a single grant ends stands in the heap only. */
struct part {
    uint32_t lock;      /* never 0 */
    uint32_t due;       /* of a single grant: its place in the heap */
    struct links place; /* in the grants or the queue of its lock */
    struct links kin;   /* of a first part with a session: in its parts */
    uint32_t group;     /* number of waiter or set; 0: a single grant */
    union {
        uint32_t more;  /* with a group: the next part of it */
        uint32_t count; /* of a single grant: how often its holder took it */
    };
    uint32_t permits; /* counting */
    uint8_t mode;     /* enum lock_mode */
    uint8_t priority : 6;
    uint8_t key : 1;  /* a single grant that SET made: see key.c */
    uint8_t tree : 1; /* it is about all names below, too */
    bool waits;
    uint8_t sealed; /* enum seal */
    union {
        struct { /* of a single grant */
            struct claim claim;
            uint64_t token;
            uint64_t acquired_us;
        };
        struct {          /* while it waits, for one search for deadlocks */
            uint64_t met; /* by that one: all waits before it */
            uint64_t met_writers; /* those before it that are not shared */
            uint64_t followed;    /* of the first in a queue: all grants of its
                                   * lock, but for those of one holder */
            uint32_t skipped;     /* that holder */
        };
    };
};

/* Several names, granted as one. Found by its token. */
struct set {
    struct hf_named named;
    struct claim claim;
    uint64_t token;
    uint64_t expires_us;
    uint64_t acquired_us;
    uint32_t first; /* of its parts, by name */
    uint32_t names;
    uint32_t count;
    uint32_t due;
    uint8_t sealed; /* as a part's */
};

/* Found by its ticket. */
struct waiter {
    struct hf_named named;
    struct claim claim;
    uint64_t ticket;
    uint64_t order; /* the first ticket: stays when a REQ is repeated */
    uint64_t age;   /* its turn among equal priorities */
    uint64_t deadline_us;
    uint64_t queued_us;
    uint64_t ttl_ms; /* 0: none */
    uint32_t max;    /* counting: of how many */
    uint32_t first;  /* of its parts, by name */
    uint32_t names;
    uint32_t due;
    uint32_t request; /* 0: none */
    uint32_t holder;
    struct links peers; /* among the waiters of its holder */
    uint32_t stopped;   /* of several parts: what kept it from a grant last */
    uint64_t flags;     /* of its command */
    /* For one search for deadlocks. */
    uint64_t seen; /* by that one */
    uint32_t from; /* the part that led to it; 0: the request */
    uint32_t via;  /* of the request: the name by which it was met */
    uint32_t next; /* to be looked at */
    bool stuck;
};
#define WAITER_IS_SET 0x10000u /* among the flags: it asks for a set */

/* Named by session and owner. */
struct holder {
    struct hf_named named;
    struct list waiters; /* by order */
    uint64_t noted;      /* in that turn of serving: */
    uint64_t held;       /* a bit for each lock whose notes say it holds it */
    uint32_t own;        /* its grant on the lock that is served */
};

/* In a turn of serving: somebody asked who holds the lock; or its holders, as
 * far as they wait, are noted. */
struct noted {
    uint64_t turn;
    uint32_t lock;
    bool done;
};

struct session {
    struct hf_named named;
    struct list parts;
    uint64_t id;
    uint64_t ttl_ms;
    uint64_t expires_us;
    uint64_t kept; /* the number of the last OPEN or KEEP */
    struct hf_text title;
    uint32_t grants; /* a set is one */
    uint32_t waits;
    uint32_t due;
    uint32_t bound; /* to a connection */
    uint32_t ended; /* that was told: its parts end */
};

/* A name is closed by DELAY, or done. */
struct mark {
    uint32_t lock; /* never 0 */
    uint32_t due;
    uint64_t order; /* for ties */
    uint64_t closed_us;
    uint64_t done_us;  /* until then; 0: not */
    uint64_t below_us; /* names below are closed; never after closed_us */
    struct hf_text result;
};

/* A TREE in use. */
struct tree {
    uint32_t lock;   /* never 0 */
    uint32_t path;   /* of the lock; 0: it has none */
    uint32_t grants; /* with TREE */
    uint32_t waits;
    uint32_t first;    /* wait with TREE in the queue; 0: none */
    uint32_t writer;   /* the first of them that is not shared */
    uint32_t below;    /* names in use; TREE_UNCOUNTED: not asked for yet */
    uint32_t stops[2]; /* locks below that stopped waits last, or the ones
                        * after them; 0, or not below: look at all */
    uint32_t unused;
    uint64_t listed; /* of the turns of serving: in that one all below are */
    uint64_t open;   /* of `tree_stops`: then nothing below stops a reader */
};
#define TREE_UNCOUNTED UINT32_MAX

struct terms {
    uint64_t is_used;    /* never 0 */
    uint64_t maxhold_us; /* from when it was acquired; UINT64_MAX: no bound */
    uint64_t delay_ms;
    struct hf_text note;
};

#endif
