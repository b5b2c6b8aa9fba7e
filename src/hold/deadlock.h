/* deadlock.h - requests that would wait; what both ways to judge them share. */
#ifndef HOLD_DEADLOCK_H
#define HOLD_DEADLOCK_H

#include "hold/tree.h"

struct search {
    struct hold_engine *e;
    const struct hold_command *c;
    struct wanted wanted;  /* of the request; its mode is that of a name */
    const uint32_t *locks; /* that it names; 0: not in use */
    uint32_t count;
    uint64_t steps;
    /* Of a search for a circle. */
    uint32_t at;    /* the name of the request that is looked from */
    uint32_t first; /* waits that were met, in that order */
    uint32_t last;
    bool counting;   /* it met a counting lock */
    bool all;        /* look at everybody, whatever leads back */
    bool stuck_only; /* others do not count */
    bool stuck;      /* the request itself is */
    bool own;        /* a grant of who looks was passed by */
};

/* The search has taken too long: what it finds does not count any more, since
 * the request is refused. Every loop that may be long looks at this, but for
 * those through one queue or the grants of one lock. */
static inline bool gives_up(const struct search *s)
{
    return s->steps > HOLD_DETECT_MAX;
}
/* Goes on among related names. What was looked at is counted, also if nothing
 * was found. */
static inline bool next_relative(struct search *s, struct relatives *r)
{
    bool found = !gives_up(s) && relatives_next(r);

    s->steps += relatives_looked(r);
    return found;
}

/* Counts the steps as work, once, at the end; refuses a request for which it
 * gave up. */
bool refuse_long(struct search *s);

/* The request, as far as it is about one of its names. */
static inline const struct wanted *want(struct search *s, uint32_t i)
{
    if (s->c->item_count > 0)
        s->wanted.mode = s->c->items[i].quantity == HOLD_PART_SHARED
                             ? MODE_SHARED
                             : MODE_EXCLUSIVE;
    return &s->wanted;
}

static inline struct hf_bytes want_name(const struct search *s, uint32_t i)
{
    return s->c->item_count > 0 ? s->c->items[i].sku : s->c->name;
}

static inline bool is_requester(const struct search *s,
                                const struct claim *claim)
{
    return claim->session == s->wanted.session &&
           hf_bytes_equal(hf_text_bytes(&s->e->texts, claim->owner),
                          s->wanted.owner);
}

/* Begins the answer, which is about that name of the request, at the list of
 * its entries: a wait, or any part. `by` is who would be waited for. */
void deadlock_begin(struct search *s, uint32_t i, enum past_why why,
                    struct hf_bytes by, uint32_t length);
void deadlock_waiter(struct hold_engine *e, uint32_t part);
void deadlock_entry(struct hold_engine *e, const struct claim *claim,
                    uint32_t lock, enum lock_mode mode, uint64_t since_us);

/* age.c - WAITDIE and WOUNDWAIT */
bool refuse_by_age(struct search *s);

#endif
