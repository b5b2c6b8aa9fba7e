/* quota.h - how many units of a product one owner may have: STOCK LIMIT.
 *
 *   quota "pen", 4 at most
 *     share of ann    3     in reservations: WAITING, BOOKED, PENDING
 *     share of bob    1     and were made after the quota
 *
 * A share is there while it is not 0. So that setting a limit is one step,
 * what was reserved before is not counted, and since the number of a
 * reservation says when it was made, whether it is counted needs no record.
 *
 * Without a limit (0) the quota stays while it has shares, and goes on
 * counting, so that each reservation is counted from its begin to its end, or
 * never.
 *
 * Reservations without an owner are not counted. The limit is looked at when
 * a reservation is made, or begins to wait. Shares follow from reservations,
 * and are in no image.
 */
#ifndef HOLD_QUOTA_H
#define HOLD_QUOTA_H

#include "hold/waitlist.h"

struct quota {
    struct hf_named named; /* the product's */
    uint64_t most;         /* 0: any number */
    uint64_t since;        /* reservations with higher numbers are counted */
    uint32_t shares;
    uint32_t unused;
};

/* Of an owner. */
struct share {
    struct hf_named named; /* the number of the product, and the owner */
    uint64_t units;
};

/* The limit of a product; 0: none. */
uint64_t quota_most(const struct hold_engine *e, const struct product *p);
/* Of one that has a quota. */
uint64_t quota_since(const struct hold_engine *e, const struct product *p);
/* The number of a share; 0: there is none. */
uint32_t share_find(const struct hold_engine *e, uint32_t product,
                    struct hf_bytes owner);
/* How many more units of it an owner may have. */
uint64_t quota_find_left(const struct hold_engine *e, const struct product *p,
                         struct hf_bytes owner);
static inline uint64_t quota_left(const struct hold_engine *e,
                                  const struct product *p,
                                  struct hf_bytes owner)
{
    return p->is_limited ? quota_find_left(e, p, owner) : UINT64_MAX;
}

/* What a RESERVE may need besides. */
void quota_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need);
/* The reservation is made, or waits: its items are counted. */
void quota_count(struct hold_engine *e, const struct reservation *r);
/* The same while an image is read, when nothing is promised. HF_NOMEM. */
enum hf_status quota_load(struct hold_engine *e, const struct reservation *r);
/* It does not have these any more. */
void quota_give(struct hold_engine *e, const struct reservation *r,
                struct hf_bytes items);
/* The product goes, of which nothing is reserved. */
void quota_drop(struct hold_engine *e, const struct product *p);

/* An item of which the owner would have too much. */
struct excess {
    const struct product *product;
    uint64_t requested;
};
/* A map of the facts; `more` follow. */
void reply_excess(struct hold_engine *e, const struct hold_command *c,
                  const struct excess *excess, uint32_t more);
/* BADARG if the command has no owner, else QUOTA: as refuse_shortages(). */
bool refuse_excess(struct hold_engine *e, const struct hold_command *c,
                   const struct excess *list, uint32_t count);

hold_need_fn quota_set_need;
hold_change_fn stock_limit;
subject_loaded_fn quota_loaded;

#endif
