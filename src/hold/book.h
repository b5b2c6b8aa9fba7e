/* book.h - stock as its events tell it, beside the engine that told them.
 *
 *   snapshot --> opening --.
 *                           >--> total, reserved, sold of each product,
 *   events ----> entries --'     and which reservation has how many units
 *                                   |
 *                                   '--> the same as the engine's records?
 *
 * The engine changes its records and tells events; the book is kept from the
 * events alone. So a unit that is promised twice, or comes back twice, is found
 * in one of three ways, at the step where it happens:
 *
 *   - A reservation is made once, of units that are there and free, and ends
 *     once, with the units that it was made of. One that is confirmed late is
 *     not pending, and its units are free.
 *   - After every event total = available + reserved + sold, and none of them
 *     is negative.
 *   - After every call of the engine its record of each product that the
 *     events named has the same numbers as the book.
 *
 * The opening is proved, too: what is reserved of a product is what its
 * pending reservations have together.
 *
 * Threads: one at a time.
 * Memory:  about that of the products and of the pending reservations; of one
 *          product, if the book is about that alone.
 */
#ifndef HOLD_BOOK_H
#define HOLD_BOOK_H

#include "hold/engine.h"

#define HOLD_BOOK_ERROR_MAX 400

/* Of one product, up to some number. */
struct hold_numbers {
    bool exists;
    uint64_t total;
    uint64_t reserved;
    uint64_t sold;
    uint64_t version;    /* the number of its last change */
    uint64_t updated_us; /* and its time */
};

/* What the engine's record has, also of units whose time is over and that were
 * not swept: all events up to hold_seq(), and no more. */
struct hold_numbers hold_numbers(const struct hold_engine *engine,
                                 struct hf_bytes sku);

/* What an event did to a product. */
enum hold_effect {
    EFFECT_NONE,  /* it is not about it, or changed no number */
    EFFECT_UNITS, /* units were reserved, sold or given back; or an attribute
                   * was set, which is a change without any */
    EFFECT_TOTAL, /* it was made, or its total was set */
    EFFECT_GONE,  /* it was deleted, or all were */
};
struct hold_change {
    enum hold_effect effect;
    int64_t reserved; /* by how much these changed, */
    int64_t sold;
    uint64_t total;     /* or what it is now, */
    uint64_t committed; /* with so much of it reserved and sold */
};
struct hold_change hold_event_change(const struct hold_event *event,
                                     struct hf_bytes sku);

struct hold_book;

/* About the product `only`, or about all if that is empty. NULL: no memory. */
struct hold_book *hold_book_new(struct hf_hash_seed seed, struct hf_bytes only);
void hold_book_free(struct hold_book *book);

/* Before the first event: takes over what the engine has. These return HF_OK,
 * HF_NOMEM, or HF_CORRUPT, with what is wrong in hold_book_wrong(). */
enum hf_status hold_book_open(struct hold_book *book,
                              const struct hold_engine *engine);
/* The next event, of an engine that tells all of it: see hold_tell(). */
enum hf_status hold_book_event(struct hold_book *book,
                               const struct hold_event *event);
/* After the events of a call: is it what the engine has? */
enum hf_status hold_book_compare(struct hold_book *book,
                                 const struct hold_engine *engine);
/* After the last one: all products, and all pending reservations. */
enum hf_status hold_book_finish(struct hold_book *book,
                                const struct hold_engine *engine);

/* Steps that were proved: changes of a product. */
uint64_t hold_book_steps(const struct hold_book *book);
const char *hold_book_wrong(const struct hold_book *book);
struct hold_numbers hold_book_numbers(const struct hold_book *book,
                                      struct hf_bytes sku);

#endif
