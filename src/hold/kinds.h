/* kinds.h - what can be asked, of what, and what can happen: the names.
 *
 * What each operation is says its row in schema.c. The numbers of operations
 * are in the journal: one is never used again.
 */
#ifndef HOLD_KINDS_H
#define HOLD_KINDS_H

enum hold_kind {
    /* journaled: they change state */
    HOLD_TICK = 1,           /* time has passed; amount: see engine.h */
    HOLD_RESTART = 2,        /* a server starts: nobody waits; seq + amount;
                              * flags (GRAPH) */
    HOLD_ABANDON = 3,        /* an answer reaches nobody; see engine.h */
    HOLD_BOUNDS = 4,         /* settings: items are name = value */
    HOLD_FLUSH = 5,          /* everything goes, the sequence goes on */
    HOLD_TIMEOUT = 6,        /* somebody was told TIMEOUT; see engine.h */
    HOLD_LOCK = 10,          /* name owner session ttl wait flags permits ... */
    HOLD_UNLOCK = 11,        /* name token done note (the result) */
    HOLD_RENEW = 12,         /* name token ttl */
    HOLD_FENCE = 13,         /* name token */
    HOLD_FENCE_DEL = 14,     /* name */
    HOLD_DOWNGRADE = 15,     /* name token */
    HOLD_LOCKSET = 16,       /* as HOLD_LOCK; items are the names */
    HOLD_UNLOCKSET = 17,     /* token */
    HOLD_RENEWSET = 18,      /* token ttl */
    HOLD_REVOKE = 19,        /* name token grace */
    HOLD_STOCK_SET = 20,     /* name amount */
    HOLD_STOCK_ADD = 21,     /* name amount (signed) reason */
    HOLD_STOCK_DEL = 22,     /* name */
    HOLD_RESERVE = 30,       /* name (empty: make one) items ttl owner */
    HOLD_CONFIRM = 31,       /* name */
    HOLD_CANCEL = 32,        /* name reason */
    HOLD_EXTEND = 33,        /* name ttl */
    HOLD_SESSION_OPEN = 40,  /* ttl flags (BIND) note (its name) */
    HOLD_SESSION_KEEP = 41,  /* token: the id */
    HOLD_SESSION_CLOSE = 42, /* token: the id */
    HOLD_ELECT = 44,         /* as HOLD_LOCK; note: the value */
    HOLD_RESIGN = 45,        /* name token */
    HOLD_PROCLAIM = 46,      /* name token note */
    HOLD_SESSION_LEFT = 43,  /* token: the connection of a bound one is gone */
    HOLD_KEY_SET = 47,       /* name or items owner ttl flags permits; reason:
                              * the value to compare with; count: see key.c */
    HOLD_KEY_DEL = 48,       /* name or items flags reason permits */
    HOLD_KEY_EXPIRE = 49,    /* the same, and ttl (0: none) */
    HOLD_GROUP = 50,         /* count, and the commands: see group.h */
    HOLD_SAID = 60,          /* in a group: an answer, in note, that was given
                              * elsewhere; token: to what */
    /* answered without the journal */
    HOLD_LOCK_INFO = 65,    /* name */
    HOLD_LOCK_LIST = 66,    /* name (pattern) cursor count */
    HOLD_STOCK_GET = 67,    /* items (names) */
    HOLD_STOCK_LIST = 68,   /* name (pattern) cursor count */
    HOLD_RESERVATION = 69,  /* name */
    HOLD_HELD = 70,         /* name token */
    HOLD_SESSION_INFO = 71, /* token: the id */
    HOLD_SESSION_LIST = 72, /* cursor count */
    HOLD_LEADER = 73,       /* name */
    HOLD_EXPLAIN = 74,      /* name */
    HOLD_WAITGRAPH = 75,    /* flags (DOT) cursor count */
    HOLD_KEY_GET = 76,      /* name flags */
    HOLD_KEY_COUNT = 77,    /* items (names; none: all that there are) */
    HOLD_KEY_SCAN = 78,     /* name (pattern) cursor count flags amount */
    HOLD_KINDS
};

/* What there are records of. */
enum hold_subject {
    SUBJECT_SESSION,
    SUBJECT_LOCK, /* a name that is held or waited for */
    SUBJECT_SET,
    SUBJECT_WAITER,
    SUBJECT_HOLDER, /* who waits */
    SUBJECT_PRODUCT,
    SUBJECT_RESERVATION,
    SUBJECT_FENCE,
    SUBJECT_REQUEST,
    SUBJECTS,
    SUBJECT_ALL = SUBJECTS
};

/* What can happen: kind, what it happens to, and its name as users see it. A
 * lock is released also by one re-entry of several; it is lost when it ends
 * otherwise than by a release or its own time: with its session, or revoked. */
#define HOLD_EVENTS(EVENT)                                         \
    EVENT(LOCK_GRANTED, LOCK, "lock_granted")                      \
    EVENT(LOCK_REENTERED, LOCK, "lock_reentered")                  \
    EVENT(LOCK_RENEWED, LOCK, "lock_renewed")                      \
    EVENT(LOCK_RELEASED, LOCK, "lock_released")                    \
    EVENT(LOCK_EXPIRED, LOCK, "lock_expired")                      \
    EVENT(LOCK_LOST, LOCK, "lock_lost")                            \
    EVENT(LOCK_DOWNGRADED, LOCK, "lock_downgraded")                \
    EVENT(LOCK_WOUNDED, LOCK, "lock_wounded")                      \
    EVENT(LEADER_PROCLAIMED, LOCK, "leader_proclaimed")            \
    EVENT(SESSION_OPENED, SESSION, "session_opened")               \
    EVENT(SESSION_KEPT, SESSION, "session_kept")                   \
    EVENT(SESSION_CLOSED, SESSION, "session_closed")               \
    EVENT(SESSION_EXPIRED, SESSION, "session_expired")             \
    EVENT(FENCE_RAISED, FENCE, "fence_raised")                     \
    EVENT(FENCE_DELETED, FENCE, "fence_deleted")                   \
    EVENT(STOCK_CHANGED, PRODUCT, "stock_changed")                 \
    EVENT(STOCK_DELETED, PRODUCT, "stock_deleted")                 \
    EVENT(RESERVED, RESERVATION, "reserved")                       \
    EVENT(CONFIRMED, RESERVATION, "confirmed")                     \
    EVENT(CANCELLED, RESERVATION, "cancelled")                     \
    EVENT(EXTENDED, RESERVATION, "extended")                       \
    EVENT(RESERVATION_EXPIRED, RESERVATION, "reservation_expired") \
    EVENT(FLUSHED, ALL, "flushed")

#define HOLD_EVENT_KIND(kind, subject, name) EVENT_##kind,
enum hold_event_kind { HOLD_EVENTS(HOLD_EVENT_KIND) HOLD_EVENT_COUNT };
#undef HOLD_EVENT_KIND

#endif
