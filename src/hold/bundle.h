/* bundle.h - reservations that are confirmed or cancelled together: GROUP.
 *
 *   bundle "trip-7" --- member --- member --- member     in order of making
 *                         |          |          |
 *                     reservation  PENDING    WAITING, by WAITLIST JOIN
 *
 * A reservation is a member from when it is made with GROUP until it is
 * confirmed or cancelled, or forgotten: one that has expired stays. In its time
 * of grace it is confirmed with the others, if its units are still free; later
 * it stops them from being confirmed. A bundle without members is gone.
 *
 * A reservation without a group has a number that is 0, and nothing else.
 */
#ifndef HOLD_BUNDLE_H
#define HOLD_BUNDLE_H

#include "hold/waitlist.h"

struct bundle {
    struct hf_named named;
    struct list members;
    uint32_t count;
    uint32_t unused;
};

struct member {
    uint32_t bundle; /* never 0 */
    uint32_t reservation;
    struct links links;
};

static inline const struct member *member_at(const struct hold_engine *e,
                                             uint32_t number)
{
    return hf_slab_at(&e->members, number);
}

/* The name of the group of a reservation; empty: none. */
struct hf_bytes bundle_name(const struct hold_engine *e,
                            const struct reservation *r);

/* What a RESERVE with GROUP needs besides. */
void bundle_need(struct hold_engine *e, const struct hold_command *c,
                 struct need *need);
/* True, and OVERLOADED, if its group is full. */
bool bundle_refuse(struct hold_engine *e, const struct hold_command *c);
/* The reservation is made for the command, or waits. */
void bundle_join(struct hold_engine *e, const struct hold_command *c,
                 uint32_t reservation);
/* It is a member no more, if it was one. */
void bundle_leave(struct hold_engine *e, uint32_t reservation);

hold_need_fn bundle_end_need;
hold_check_fn bundle_end_check;
hold_change_fn bundle_end;
hold_run_fn bundle_show;
subject_walk_fn bundles_walk;
subject_load_fn bundle_load;

#endif
