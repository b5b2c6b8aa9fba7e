/* places.h - the same sku at several places: pen@berlin, pen@paris.
 *
 * A product whose name has a '@' is an ordinary one with numbers of its own;
 * besides, what stands behind the last '@' is a place of the sku before it.
 * Neither is empty, else the name is no more than a name.
 *
 *   places "pen" --- sums over all of them
 *        |
 *     (bit 81)                 a tree over the bits of their names, as that of
 *     /      \                 path.h: a fork is the first bit in which the
 *   lyon    (bit 97)           names under it differ, and knows how many they
 *           /      \           are. One fork less than there are places.
 *       paris      rome
 *
 * All of it follows from the products, and is made again when an image is read.
 * A product without a place takes no memory for it.
 */
#ifndef HOLD_PLACES_H
#define HOLD_PLACES_H

#include "hold/state.h"

/* All places of a sku. */
struct places {
    struct hf_named named;
    hold_wide total;
    hold_wide reserved;
    hold_wide sold;
    uint32_t count;
    uint32_t root; /* of the tree of their products */
};

struct fork {
    uint32_t bit;      /* never 0 */
    uint32_t under[2]; /* by the value of the bit: a fork, or a product */
    uint32_t count;    /* of the products under it */
};

static inline const struct places *places_at(const struct hold_engine *e,
                                             uint32_t number)
{
    return hf_index_at(&e->places, number);
}

/* Parts a name at its last '@'; false: it is of no place. */
bool place_part(struct hf_bytes name, struct hf_bytes *sku,
                struct hf_bytes *place);

/* What adding a product of that name may take. */
void place_need(struct hold_engine *e, struct hf_bytes name, struct need *need);
/* The product was made; HF_NOMEM (never, if promised). Its numbers are counted
 * from then on. */
enum hf_status place_add(struct hold_engine *e, uint32_t product);
/* It goes. */
void place_remove(struct hold_engine *e, uint32_t product);
/* The sums that a product of a place is counted in, to be changed with it. */
struct places *places_of(struct hold_engine *e, const struct product *product);

/* The product that stands at `position` in the order of names, from 0 on;
 * `steps` are counted. */
uint32_t place_nth(const struct hold_engine *e, const struct places *places,
                   uint32_t position, uint64_t *steps);

/* split.c - which places the items of a RESERVE with PLACE come from. */

/* Answers, and returns true, if they cannot all be had. */
bool split_refuse(struct hold_engine *e, const struct hold_command *c);
/* Writes the items of the products that it gets, in order, to `out`, which has
 * room for HOLD_ITEMS_MAX; returns how many. */
uint32_t split_choose(const struct hold_engine *e, const struct hold_command *c,
                      struct hold_item *out);
/* May these items be what the command got? */
bool split_may_be(struct hf_bytes items, const struct hold_command *c);
/* The bytes of the items that it gets, at most. */
size_t split_bytes(const struct hold_command *c);

#endif
