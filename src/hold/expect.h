/* expect.h - stock that is announced, and who booked it.
 *
 *   STOCK EXPECT pen 50 AT ms       RESERVE r ITEM pen 5 PREORDER
 *                  |                           |
 *   expect "pen" --+- arrivals, by time        |
 *                  '- bookings, by age <-------'     reservations, BOOKED
 *
 *   STOCK ARRIVE pen 50 --> bookings, first come first served --> PENDING
 *                              '--> who waits --> everybody
 *
 * What is announced is no part of a product's total. A booking is made of units
 * that are announced and not yet booked, and sets nothing aside: of what is
 * there others may take all. Only STOCK ARRIVE serves bookings, since only it
 * says that units are those that were announced; the first that does not fit
 * stops those behind it. Of what was free before the arrival they may use what
 * nobody waits for.
 *
 * What is announced may come short, or be withdrawn, and then fewer units are
 * announced than are booked: that is told, and the bookings stay.
 *
 * A product that nothing is announced of has no record here. A booked
 * reservation has its record, its place in the agenda (at no time) and room for
 * its events from the start: so serving needs no memory, and cannot fail.
 */
#ifndef HOLD_EXPECT_H
#define HOLD_EXPECT_H

#include "hold/waitlist.h"

/* One announcement. */
struct arrival {
    uint64_t units;
    uint64_t at_us;
    uint64_t seq; /* of the event that told it last */
    struct hf_text ref;
    bool late; /* which was told */
};

/* Of one product, under its sku: some arrivals, some bookings, or both. */
struct expect {
    struct hf_named named;
    struct list bookings; /* reservations, in order of booking */
    uint32_t booking_count;
    uint32_t arrival_count;
    uint64_t announced; /* units; at most HOLD_STOCK_MAX */
    uint64_t booked;    /* the same */
    uint32_t due;       /* the first arrival that is not late; 0: none */
    struct arrival arrivals[HOLD_EXPECT_MAX]; /* by at_us and seq */
};

static inline const struct expect *expect_at(const struct hold_engine *e,
                                             uint32_t number)
{
    return hf_slab_at_sized(&e->expects.slab, number, sizeof(struct expect));
}
static inline struct expect *expect_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(
        &e->undo,
        hf_slab_at_sized(&e->expects.slab, number, sizeof(struct expect)),
        sizeof(struct expect));
}
/* 0: nothing is announced or booked. */
static inline uint32_t expect_find(const struct hold_engine *e,
                                   struct hf_bytes sku)
{
    return hf_index_count(&e->expects) == 0 ? 0
                                            : hf_index_find(&e->expects, sku);
}

hold_need_fn expect_need;
hold_check_fn expect_check, arrive_check;
hold_change_fn expect, arrive;
hold_run_fn expect_show;

/* How many units of it are booked. */
uint64_t expect_booked(const struct hold_engine *e, struct hf_bytes sku);
/* The product goes, which has no bookings: so does what is announced of it. */
void expect_forget(struct hold_engine *e, struct hf_bytes sku);
/* It is time for the first arrival that is not late. */
void arrival_late(struct hold_engine *e, uint32_t number);

/* booking.c */

/* What a RESERVE that may book needs, besides a reservation. */
void booking_need(const struct hold_command *c, size_t items_len,
                  struct need *need);
/* Of one that finds too little: true, and the answer, if too little is
 * announced as well, or too many have booked. */
bool booking_refuse(struct hold_engine *e, const struct hold_command *c);
/* Books for the reservation, which was just added, and answers. */
void booking_make(struct hold_engine *e, uint32_t reservation, uint64_t ttl_ms);
void reply_booked(struct hold_engine *e, uint32_t reservation);
/* Two fields: its position, and when units for it are to arrive. */
void reply_booking(struct hold_engine *e, uint32_t reservation);
/* CANCEL: it has ended. */
void booking_cancel(struct hold_engine *e, const struct hold_command *c,
                    uint32_t reservation);
/* Serves those of a product, of which `spare` units are kept for others;
 * returns how many. */
uint32_t bookings_serve(struct hold_engine *e, uint32_t number, uint64_t spare);
/* How many units are booked and not announced. */
static inline uint64_t expect_uncovered(const struct expect *x)
{
    return x->booked > x->announced ? x->booked - x->announced : 0;
}
/* When the last of so many units is to arrive, in ms since 1970; 0: they are
 * not announced. */
int64_t expect_time_ms(const struct expect *x, uint64_t units);
/* Three fields: what is announced, booked, and booked but not announced; 0:
 * nothing. */
void reply_expect(struct hold_engine *e, uint32_t number);
/* Forgets a product of which nothing is announced or booked any more. */
void expect_trim(struct hold_engine *e, uint32_t number);
/* What all of them take of the room for what is told. */
struct told_room expect_sums(const struct hold_engine *e);

subject_walk_fn expects_walk;
subject_load_fn expect_load, booking_load;
/* The entry of the agenda, for which there is a promise, is that of the first
 * arrival that is not late. */
void expect_set_due(struct hold_engine *e, uint32_t number);

#endif
