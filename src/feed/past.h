/* past.h - the numbers of a product behind a number of the past.
 *
 *   kept events    ----gap----|--+--+--x-----+--+--------|
 *                                       at                now
 *                    forward: ---------> <--------- backward
 *
 * Events about the product are given in order, from the oldest that is kept to
 * the newest; then the numbers that it has now. They follow in two ways:
 *
 *   forward    If it was made, deleted or flushed after the last gap before
 *              `at`, or if nothing is missing at all, its numbers are known
 *              from there on.
 *   backward   Without a gap, a deletion or a flush behind `at`, what is
 *              reserved and sold now less what changed since. The total is that
 *              of the last change before `at`, or, if it was not changed since,
 *              that of now.
 *
 * If neither does, past_known_from() is the first number behind `at` for which
 * one of them does.
 *
 * Threads: one at a time.
 * Memory:  the caller's; no call allocates. The sku must stay.
 */
#ifndef FEED_PAST_H
#define FEED_PAST_H

#include "hold/book.h"

struct past {
    struct hf_bytes sku;
    uint64_t at;
    /* Up to `at`. */
    bool known;               /* all of `then` */
    bool total_known;         /* its total */
    struct hold_numbers then; /* version 0: not known */
    /* Behind it. */
    bool broken;        /* deleted or flushed, or something is missing */
    bool changed;       /* it was */
    bool total_changed; /* so was its total */
    int64_t reserved;   /* how much these grew */
    int64_t sold;
    uint64_t forward_from;  /* known again, forward; 0: not */
    uint64_t backward_from; /* and backward, if nothing else comes */
    uint64_t total_from;    /* and its total: the first change since; 0: none */
};

void past_init(struct past *past, struct hf_bytes sku, uint64_t at);
/* What happened above `from` and up to `to` is missing. */
void past_gap(struct past *past, uint64_t from, uint64_t to);
/* The next event; those that are not about it do no harm. */
void past_event(struct past *past, const struct hold_event *event,
                uint64_t now_us);
/* After the last one: `now` is what it has. HF_OK: `out` is what it had;
 * HF_NOTFOUND: that is not known. */
enum hf_status past_numbers(const struct past *past,
                            const struct hold_numbers *now,
                            struct hold_numbers *out);
uint64_t past_known_from(const struct past *past);

#endif
