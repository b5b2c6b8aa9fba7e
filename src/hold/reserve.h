/* reserve.h - what the files about reservations share.
 *
 *   available --take--> reserved --give--> available, or sold
 *
 * Units change their place in units_take() and units_give() only, so whoever
 * has to know that units were freed looks there.
 */
#ifndef HOLD_RESERVE_H
#define HOLD_RESERVE_H

#include "hold/waitlist.h"

/* How reservations are listed. */
#define RESERVATIONS(e) CHAIN(e->reservations.slab, reservation, listed.links)

static inline struct hf_bytes items_of(const struct hold_engine *e,
                                       const struct reservation *r)
{
    return hf_text_bytes(&e->texts, r->items);
}

/* Has it the items of the command? */
bool same_items(const struct hold_engine *e, const struct reservation *r,
                const struct hold_command *c);
/* The same, or what a RESERVE with BEST or MIN may have got. */
bool may_be_items(const struct hold_engine *e, const struct reservation *r,
                  const struct hold_command *c);

/* Does a RESERVE want all of its items, or nothing? */
static inline bool wants_all(const struct hold_command *c)
{
    return !c->mins && (c->flags & HOLD_BEST) == 0;
}

/* NOTFOUND of a class. Always true. */
bool refuse_class(struct hold_engine *e, struct hf_bytes name);

/* It has expired, and may still be confirmed. */
bool reservation_has_grace(const struct hold_engine *e,
                           const struct reservation *r);

/* Answers, and returns true, if a product is missing, there is less than that
 * of it, or somebody waits for it: of a CONFIRM in the time of grace, which
 * does not wait. */
bool refuse_list(struct hold_engine *e, const struct hold_command *c,
                 const struct hold_item *items, uint32_t count);
/* Answers, and returns true, if a RESERVE cannot have what it wants: with the
 * first product that is missing, else with those that are short, or that others
 * wait for. One that may wait is queued instead. */
bool refuse_items(struct hold_engine *e, const struct hold_command *c);
/* Of what there is too little. */
struct shortage {
    struct hf_bytes sku;
    uint64_t requested;
    uint64_t free;
    uint32_t waiting; /* so many others */
};
/* SHORT: the first, and if there are more, a list of all. Always true. */
bool refuse_shortages(struct hold_engine *e, const struct shortage *list,
                      uint32_t count);
/* What it gets, and what not. */
struct chosen {
    struct hold_item *items;
    uint32_t count;
    struct hold_item *failed;  /* `least` is what was available, or: */
#define FAILED_OVER UINT64_MAX /* the limit did not leave enough */
    uint32_t failed_count;
};
void choose_items(const struct hold_engine *e, const struct hold_command *c,
                  struct chosen *out);
/* The field of what it did not get. */
void reply_failed(struct hold_engine *e, const struct hold_command *c,
                  const struct chosen *chosen);

/* Sets units of an item aside, which are available, until a time. */
void units_take(struct hold_engine *e, const struct hold_item *item,
                uint64_t seq, uint64_t ends_us);

/* settled.c */
/* Can nothing that is due, or is by the time of the command, change what it is
 * told or does? Else all that is due comes before it. */
bool stock_is_settled(const struct hold_engine *e,
                      const struct hold_command *c);
/* The reservation, which is pending, ends earlier than before. */
void settled_lower(struct hold_engine *e, const struct reservation *r);

/* Writes the map of a reservation, for which `more` fields follow. */
void write_reservation(const struct hold_engine *e, struct hf_buf *body,
                       const struct reservation *r, uint32_t more);
static inline void reply_reservation(struct hold_engine *e,
                                     const struct reservation *r, uint32_t more)
{
    write_reservation(e, &e->body, r, more);
}
/* A refusal that names the reservation, or tells how it ended. Always true. */
bool refuse_id(struct hold_engine *e, enum hold_code code, struct hf_bytes id);
bool refuse_status(struct hold_engine *e, const struct reservation *r,
                   struct hf_bytes id);
/* All that the event just told has of a reservation: the items that it is
 * about; `reason`: why. */
void tell_reservation(struct hold_engine *e, const struct reservation *r,
                      struct hf_bytes reason, struct hf_bytes items);

#endif
