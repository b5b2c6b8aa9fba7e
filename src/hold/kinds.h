/* kinds.h - what can be asked, of what, and what can happen: the names.
 *
 * What each operation is says its row in schema.c. The numbers of operations
 * are in the journal: one is never used again.
 */
#ifndef HOLD_KINDS_H
#define HOLD_KINDS_H

enum hold_kind {
    /* journaled: they change state */
    HOLD_TICK = 1,       /* time has passed; amount: see engine.h */
    HOLD_RESTART = 2,    /* a server starts: nobody waits; seq + amount */
    HOLD_ABANDON = 3,    /* an answer reaches nobody; see engine.h */
    HOLD_BOUNDS = 4,     /* settings: items are name = value */
    HOLD_FLUSH = 5,      /* everything goes, the sequence goes on */
    HOLD_TIMEOUT = 6,    /* somebody was told TIMEOUT; see engine.h */
    HOLD_LOCK = 10,      /* name owner ttl wait */
    HOLD_UNLOCK = 11,    /* name token */
    HOLD_RENEW = 12,     /* name token ttl */
    HOLD_FENCE = 13,     /* name token */
    HOLD_FENCE_DEL = 14, /* name */
    HOLD_STOCK_SET = 20, /* name amount */
    HOLD_STOCK_ADD = 21, /* name amount (signed) reason */
    HOLD_STOCK_DEL = 22, /* name */
    HOLD_RESERVE = 30,   /* name (empty: make one) items ttl owner */
    HOLD_CONFIRM = 31,   /* name */
    HOLD_CANCEL = 32,    /* name reason */
    HOLD_EXTEND = 33,    /* name ttl */
    /* answered without the journal */
    HOLD_LOCK_INFO = 65,   /* name */
    HOLD_LOCK_LIST = 66,   /* name (pattern) cursor count */
    HOLD_STOCK_GET = 67,   /* items (names) */
    HOLD_STOCK_LIST = 68,  /* name (pattern) cursor count */
    HOLD_RESERVATION = 69, /* name */
    HOLD_KINDS
};

/* What there are records of. */
enum hold_subject {
    SUBJECT_LOCK,
    SUBJECT_WAITER,
    SUBJECT_PRODUCT,
    SUBJECT_RESERVATION,
    SUBJECT_FENCE,
    SUBJECT_REQUEST,
    SUBJECTS,
    SUBJECT_ALL = SUBJECTS
};

/* What can happen: kind, what it happens to, and its name as users see it. A
 * lock is released also by one re-entry of several. */
#define HOLD_EVENTS(EVENT)                                         \
    EVENT(LOCK_GRANTED, LOCK, "lock_granted")                      \
    EVENT(LOCK_REENTERED, LOCK, "lock_reentered")                  \
    EVENT(LOCK_RENEWED, LOCK, "lock_renewed")                      \
    EVENT(LOCK_RELEASED, LOCK, "lock_released")                    \
    EVENT(LOCK_EXPIRED, LOCK, "lock_expired")                      \
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
