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
    MENTION_REDUCE, /* CANCEL of some items: it goes on; or perhaps it ended */
    MENTION_SEEN,   /* only its status */
    MENTION_ABSENT, /* NOTFOUND */
    MENTION_CLASH,  /* CONFLICT: the id is another's */
    MENTION_LEFT,   /* TIMEOUT: what it may have got is cancelled */
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

static inline bool mention_is_done(const struct mention *m)
{
    return m->call->outcome == OUTCOME_DONE;
}

/* May the call have ended it? */
static inline bool mention_may_end(const struct mention *m)
{
    return m->kind == MENTION_END ||
           (m->kind == MENTION_REDUCE && !mention_is_done(m));
}

/* How many units of it the reply shows. */
int64_t check_shown_units(struct hf_bytes reply, struct hf_bytes sku);
/* May a RESERVE get less than it asked for? */
bool check_is_loose(const struct call *call);
/* Does it name any items? */
bool check_has_items(const struct call *call);

/* Are the items that the mention shows possible? */
void booking_judge_items(struct booking_view *view, const struct mention *m);
/* Units of the booking's share `i` that were given back before the others, by a
 * CONFIRM or CANCEL of some items, become bookings of their own. */
void booking_part(struct booking_view *view, size_t i);

/* Mentions of each reservation by GROUP CONFIRM and GROUP CANCEL; and none that
 * ended so is pending. */
void together_mention(struct check *c);
void together_judge(struct booking_view *view);

/* Works out `booking`; then the rules. */
void booking_settle(struct booking_view *view);
void booking_judge(struct booking_view *view);

#endif
