/* products.h - what the history says of one product.
 *
 *   note      one call that says something of it: a read, a change of the
 *             total, a refusal
 *   era       from one deletion (STOCK DEL, FLUSHALL) to the next
 *   sums      of the reservations' units, as functions of the position
 *
 * A sum over intervals that contain a whole window needs only two sorted
 * lists: what began before it, less what ended in or before it.
 */
#ifndef HISTORY_PRODUCTS_H
#define HISTORY_PRODUCTS_H

#include "history/bookings.h"

enum note_kind {
    NOTE_READ,  /* all its numbers; also the reply of SET and ADD */
    NOTE_TOTAL, /* SET or ADD, done (then its reply is a NOTE_READ too) or
                   perhaps */
    NOTE_SHORT, /* less than `wanted`: `available` and no more */
    NOTE_KEPT,  /* not deleted, since units are reserved */
    NOTE_ABSENT,
    NOTE_RESET, /* STOCK DEL */
    NOTE_LOW,   /* STOCK LOW, done or perhaps */
    NOTE_CLASH, /* not at the version that IF says, but at this one */
    NOTE_QUOTA, /* STOCK LIMIT to `wanted`, done or perhaps */
};

struct note {
    struct key key; /* the sku, by kind, version and lo */
    const struct call *call;
    enum note_kind kind;
    int64_t total;
    int64_t available; /* of a SHORT: -1 if it is not told */
    int64_t wanted;    /* units; of a SET that is SHORT: the total */
    int64_t reserved;
    int64_t sold;
    int64_t low; /* -1: not told */
    int64_t version;
    int64_t newest; /* of a read: version of all that it shows */
    bool behind;    /* of a SHORT: others wait, whatever is available */
    uint32_t lo;
    uint32_t hi;
};

/* Quantities at positions: added up to one of them in a binary search. */
struct tally {
    struct tally_step {
        uint32_t at;
        int64_t quantity; /* up to and with this step, once sorted */
    } * steps;
    size_t count;
};

#define TALLIES 10u /* of one product */

/* One product in one era. */
struct product_view {
    struct check *check;
    struct hf_bytes sku;
    const struct note
        *notes; /* by kind, then by version, 0 being none, then by lo */
    size_t note_count;
    const struct share *shares;
    size_t share_count;
    struct window reset;        /* before the era; hi 0: none */
    uint32_t end;               /* where the next one may begin */
    const struct note **totals; /* SET and ADD that were told, by version */
    uint32_t *total_lo;         /* the least `lo` from each of them on */
    size_t total_count;
    const struct note **maybes; /* SET and ADD of unknown outcome */
    size_t maybe_count;
    const struct note *set; /* the first that surely made the product */
    union {
        struct tally tallies[TALLIES];
        struct {
            struct tally reserved_from, reserved_to; /* surely pending */
            struct tally pending_from, pending_to;   /* possibly pending */
            struct tally kept_from, kept_to;   /* surely pending or sold */
            struct tally taken_from, taken_to; /* possibly pending or sold */
            struct tally sold_from;            /* surely sold */
            struct tally selling_from;         /* possibly sold */
        };
    };
};

/* Who may wait for a product at some time between the two. */
struct waiting {
    size_t count;
    bool alone;   /* all of them for nothing else */
    int64_t most; /* that one of them wants */
};
struct waiting waitlist_between(const struct check *c, struct hf_bytes sku,
                                uint32_t lo, uint32_t hi);
/* A read shows that so many wait. */
void waitlist_judge_read(struct check *c, const struct note *note,
                         int64_t count);

/* The rules about reads and refusals inside the era, once it is summed up. */
void product_judge(struct product_view *view);

/* The rules about limits per owner. */
void hoard_judge(struct product_view *view, const struct window *resets,
                 size_t reset_count);
void hoard_judge_refusal(struct check *c, const struct call *call);

/* Adds notes of what the call says of products. */
void stock_note(struct check *c, const struct call *call);

#endif
