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
    HOLD_STOCK_SET = 20,     /* name amount token (IF) reason note (REF) */
    HOLD_STOCK_ADD = 21,     /* the same; the amount is signed */
    HOLD_STOCK_DEL = 22,     /* name token (IF) */
    HOLD_STOCK_LOW = 24,     /* name amount (0: none) */
    HOLD_STOCK_ATTR = 25,    /* name reason (the attribute) note (its value;
                              * empty: remove it) */
    HOLD_STOCK_LIMIT = 26,   /* name amount (0: none) */
    HOLD_RESERVE = 30,       /* name (empty: make one) items minimums ttl owner
                              * class flags (BEST, SPLIT, PREORDER) wait count
                              * (PRIORITY) note (the places: see places.h)
                              * bundle */
    HOLD_CONFIRM = 31,       /* name items (none: all) */
    HOLD_CANCEL = 32,        /* name items (none: all) reason */
    HOLD_EXTEND = 33,        /* name ttl */
    HOLD_GROUP_CONFIRM = 34, /* name (of a group of reservations) */
    HOLD_GROUP_CANCEL = 35,  /* the same, reason */
    HOLD_CLASS_SET = 36,     /* name ttl grace count (EXTENDS) maxhold (LIFE) */
    HOLD_CLASS_DEL = 37,     /* name */
    HOLD_WAITLIST_JOIN = 38, /* as HOLD_RESERVE, one item; delay: how long it
                              * stays, 0: for ever */
    HOLD_WAITLIST_LEAVE = 39, /* note (the sku) name (the id) */
    HOLD_SESSION_OPEN = 40,   /* ttl flags (BIND) note (its name) */
    HOLD_SESSION_KEEP = 41,   /* token: the id */
    HOLD_SESSION_CLOSE = 42,  /* token: the id */
    HOLD_ELECT = 44,          /* as HOLD_LOCK; note: the value */
    HOLD_RESIGN = 45,         /* name token */
    HOLD_PROCLAIM = 46,       /* name token note */
    HOLD_SESSION_LEFT = 43,   /* token: the connection of a bound one is gone */
    HOLD_KEY_SET = 47,    /* name or items owner or owners ttl flags permits;
                           * reason: the value to compare with; count: see
                           * key.c */
    HOLD_KEY_DEL = 48,    /* name or items flags reason permits */
    HOLD_KEY_EXPIRE = 49, /* the same, and ttl (0: none) */
    HOLD_GROUP = 50,      /* count, and the commands: see group.h */
    HOLD_EXPECT = 55,     /* name amount delay (AT) note (REF) */
    HOLD_ARRIVE = 56,     /* name amount reason note (REF) */
    HOLD_SAID = 60,       /* in a group: an answer, in note, that was given
                           * elsewhere; token: to what */
    /* answered without the journal */
    HOLD_LOCK_INFO = 65,     /* name */
    HOLD_LOCK_LIST = 66,     /* name (pattern) cursor count */
    HOLD_STOCK_GET = 67,     /* items (names) */
    HOLD_STOCK_LIST = 68,    /* name (pattern) cursor count */
    HOLD_RESERVATION = 69,   /* name */
    HOLD_HELD = 70,          /* name token */
    HOLD_SESSION_INFO = 71,  /* token: the id */
    HOLD_SESSION_LIST = 72,  /* cursor count */
    HOLD_LEADER = 73,        /* name */
    HOLD_EXPLAIN = 74,       /* name */
    HOLD_WAITGRAPH = 75,     /* flags (DOT) cursor count */
    HOLD_KEY_GET = 76,       /* name flags */
    HOLD_KEY_COUNT = 77,     /* items (names; none: all that there are) */
    HOLD_KEY_SCAN = 78,      /* name (pattern) cursor count flags amount */
    HOLD_CLASS_LIST = 79,    /* cursor count */
    HOLD_WAITLIST_LIST = 81, /* name (the sku) cursor count */
    HOLD_GROUP_SHOW = 82,    /* name cursor count */
    HOLD_STOCK_PLACES = 84,  /* name (the sku) cursor count */
    HOLD_EXPECTED = 89,      /* name (the sku) cursor count */
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
    SUBJECT_PLACES, /* of a sku that has some */
    SUBJECT_QUOTA,  /* of a product with a limit */
    SUBJECT_SHARE,  /* what an owner has of one */
    SUBJECT_RESERVATION,
    SUBJECT_BUYER,  /* who waits for stock */
    SUBJECT_BUNDLE, /* a group of reservations */
    SUBJECT_EXPECT, /* announced arrivals of a product, and bookings */
    SUBJECT_FENCE,
    SUBJECT_REQUEST,
    SUBJECT_CLASS, /* of reservations */
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
    EVENT(FLUSHED, ALL, "flushed")                                 \
    EVENT(REDUCED, RESERVATION, "reduced")                         \
    EVENT(STOCK_LOW, PRODUCT, "stock_low")                         \
    EVENT(STOCK_REFILLED, PRODUCT, "stock_refilled")               \
    EVENT(STOCK_ATTRIBUTES, PRODUCT, "stock_attributes")           \
    EVENT(OFFERED, RESERVATION, "offered")                         \
    EVENT(CLASS_SET, CLASS, "class_set")                           \
    EVENT(CLASS_DELETED, CLASS, "class_deleted")                   \
    EVENT(CONFIRMED_LATE, RESERVATION, "confirmed_late")           \
    EVENT(STOCK_LIMIT, PRODUCT, "stock_limit")                     \
    EVENT(ARRIVAL_EXPECTED, PRODUCT, "arrival_expected")           \
    EVENT(ARRIVAL_LATE, PRODUCT, "arrival_late")                   \
    EVENT(ARRIVAL_SHORT, PRODUCT, "arrival_short")                 \
    EVENT(BOOKED, RESERVATION, "booked")                           \
    EVENT(BOOKING_CANCELLED, RESERVATION, "booking_cancelled")

#define HOLD_EVENT_KIND(kind, subject, name) EVENT_##kind,
enum hold_event_kind { HOLD_EVENTS(HOLD_EVENT_KIND) HOLD_EVENT_COUNT };
#undef HOLD_EVENT_KIND

#endif
