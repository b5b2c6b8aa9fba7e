/* waitlist.h - who waits for stock, and who is next.
 *
 *   product --queue--> demand  demand  demand     by priority, then by age
 *                        |       |
 *   waitlist ---------> buyer  buyer              all of them, by age
 *                        |       |
 *                      reservation, WAITING       its id, owner and items
 *
 * A request that finds too little waits in the queue of each of its products.
 * It is served when it is first in all of them and everything is there, in one
 * step. Nobody behind takes what the first could use, so nobody starves; the
 * order is the same in all queues, so that two never wait for each other.
 *
 * The reservation, the demands and a place in the heap are taken when the
 * request is queued. So serving needs no memory, and cannot fail. A wait that
 * is over is not served; the sweep ends it, and serves who is behind.
 */
#ifndef HOLD_WAITLIST_H
#define HOLD_WAITLIST_H

#include "hold/state.h"

static inline uint64_t available(const struct product *product)
{
    return product->total - product->reserved - product->sold;
}

/* Is somebody who waits for the product before the command? */
bool waitlist_blocks(const struct hold_engine *e, const struct product *product,
                     const struct hold_command *c);
/* Is there too little of it for so many, as the command wants? */
static inline bool is_short(const struct hold_engine *e,
                            const struct product *product, uint64_t quantity,
                            const struct hold_command *c)
{
    return available(product) < quantity ||
           (product->waiting > 0 && waitlist_blocks(e, product, c));
}
/* The same of all its items, which are there. */
bool is_any_short(const struct hold_engine *e, const struct hold_command *c);

/* What a command that may wait needs, besides a reservation. */
void waitlist_need(struct hold_engine *e, const struct hold_command *c,
                   size_t items_len, struct need *need);
/* Of a command that must wait: true, and OVERLOADED, if too many do. */
bool waitlist_refuse(struct hold_engine *e, const struct hold_command *c);
/* Queues the command, for which there is a reservation, and answers WAITING.
 * The TTL counts from when it is served. */
void waitlist_queue(struct hold_engine *e, const struct hold_command *c,
                    uint32_t reservation, uint64_t ttl_ms);

/* The product has units that were not there, or another one is first. */
void waitlist_list(struct hold_engine *e, uint32_t product);
static inline void waitlist_later(struct hold_engine *e, uint32_t product)
{
    if (product_at(e, product)->waiting > 0)
        waitlist_list(e, product);
}
/* Serves these products; a group does so at its end. */
void waitlist_serve_listed(struct hold_engine *e);
static inline void waitlist_serve(struct hold_engine *e)
{
    if (e->hungry.first != 0 && !e->undo.on)
        waitlist_serve_listed(e);
}

/* One who is connected, by ticket; 0: none. */
uint32_t buyer_find(const struct hold_engine *e, uint64_t ticket);
/* End it: TIMEOUT; untold. waitlist_serve() is to follow. */
void buyer_time_out(struct hold_engine *e, uint32_t number);
void buyer_drop(struct hold_engine *e, uint32_t number);
void buyer_expire(struct hold_engine *e, uint32_t number);
/* Gives the buyer of `request` a new ticket; returns it. */
uint64_t buyer_move(struct hold_engine *e, struct request *request);
/* The longest answer to it. */
size_t buyer_answer_bytes(const struct hold_engine *e, uint32_t number);
/* What all of them take of the room for what is told: to be served is an event,
 * and one more for each product that may come to be low by it. */
struct told_room {
    size_t events;
    size_t event_bytes;
    size_t answer_bytes;
};
struct told_room waitlist_sums(const struct hold_engine *e);
/* Of one reservation that waits, or is booked. */
struct told_room waitlist_room(const struct hold_engine *e,
                               const struct reservation *r);
/* What preparing a command that may wait with `count` demands would have
 * reserved: while an image is read. HF_NOMEM. */
enum hf_status waitlist_reserve(struct hold_engine *e,
                                const struct reservation *r, uint32_t count);
/* A server starts: nobody is connected. */
void drop_buyers(struct hold_engine *e);
/* Everything goes: those who are connected are told. */
void flush_buyers(struct hold_engine *e);

hold_check_fn waitlist_leave_check;
hold_change_fn waitlist_leave;
hold_run_fn waitlist_show;
/* The command is a JOIN of what waits as the buyer: tells its position. */
void reply_joined(struct hold_engine *e, uint32_t buyer);

subject_walk_fn buyers_walk;
subject_load_fn buyer_load;

#endif
