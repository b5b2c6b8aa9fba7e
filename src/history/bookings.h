/* bookings.h - what the history says of one reservation.
 *
 *      lo ..... hi ============= end ....... over
 *       |begins|   surely pending    may be    |surely not pending
 *
 * The checker of products adds these up.
 */
#ifndef HISTORY_BOOKINGS_H
#define HISTORY_BOOKINGS_H

#include "history/check.h"

enum booking_status {
    BOOKING_PENDING,
    BOOKING_CONFIRMED,
    BOOKING_CANCELLED,
    BOOKING_EXPIRED,
    BOOKING_NONE, /* not told */
};

/* Units of one product in one reservation. */
struct share {
    struct key key; /* the sku */
    int64_t quantity;
    size_t booking;
};

struct booking {
    const struct call *reserve; /* or NULL */
    const struct call *proof;   /* the first that shows it; NULL: none */
    uint32_t lo;
    uint32_t hi;
    uint32_t end;
    uint32_t kept; /* surely pending or sold, up to there */
    uint32_t over;
    uint32_t sold_lo; /* possibly sold from then on */
    uint32_t sold_hi; /* surely sold from then on */
    bool unsure;      /* the id may have had several lives: nothing is sure */
};

enum mention_kind {
    MENTION_RESERVE, /* done, or perhaps */
    MENTION_END,     /* CONFIRM or CANCEL, done or perhaps */
    MENTION_EXTEND,
    MENTION_SEEN,   /* only its status */
    MENTION_ABSENT, /* NOTFOUND */
    MENTION_CLASH,  /* CONFLICT: the id is another's */
};

struct mention {
    struct key key; /* the id, by call_at */
    const struct call *call;
    enum mention_kind kind;
    enum booking_status status; /* what the reply tells */
    int64_t expires_ms;
};

/* One reservation's. */
struct booking_view {
    struct check *check;
    struct hf_bytes id;
    const struct mention *mentions; /* by call */
    size_t count;
    struct booking *booking;
    uint64_t over_us;
    uint64_t until_us; /* the longest promise, told at until_at */
    uint32_t until_at;
    uint32_t until_cut;
};

/* Works out `booking`; then the rules. */
void booking_settle(struct booking_view *view);
void booking_judge(struct booking_view *view);

#endif
