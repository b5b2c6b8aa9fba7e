/* limiter_hold.h - permits that are held until somebody settles.
 *
 *   place --> hold [state | expires | pair | pair ]
 *                                      |      `--> list of another cell
 *   cell --> holds [words | first] ----'
 *
 * Fields (c) belong to who has the lock of the pair's cell.
 */
#ifndef FLOW_LIMITER_HOLD_H
#define FLOW_LIMITER_HOLD_H

#include "flow/limiter_state.h"

/* Numbers of holds stay below 2^53, which every client can count with. */
#define LIMITER_GENERATIONS (1u << 21)

struct limiter_pair {
    struct limiter_pair *next; /* (c) a later one, by expires_ns */
    struct limiter_pair *prev; /* (c) */
    struct limiter_hold *hold; /* (i) */
    uint32_t cell;             /* (i) */
    uint16_t ended;            /* (c) not in the cell's list any more */
    uint16_t took;             /* (i) else a shadow that would have denied */
    uint64_t cost;             /* (i) */
    uint64_t taken_ns;         /* (i) */
};

/* A hold ends in one way for all of its pairs: who changes the state first
 * says which. Pairs of one that expired are taken back one by one, each when
 * its cell is next used. */
enum limiter_hold_state { HOLD_OPEN, HOLD_SETTLED, HOLD_EXPIRED };

struct limiter_hold {
    struct hf_atomic_u32 state; /* (a) */
    struct hf_atomic_u32 users; /* (a) pairs in lists, and its place */
    uint64_t number;            /* (i) */
    uint64_t expires_ns;        /* (i) */
    uint32_t count;             /* (i) */
    struct limiter_pair pair[]; /* by cell number */
};

/* What a cell with holds has in the place of its words. */
struct limiter_holds {
    struct rate_state words;    /* (c) */
    struct limiter_pair *first; /* (c) */
    struct limiter_pair *last;  /* (c) */
};

/* Takes back what holds that are over held. True if anything changed; the
 * caller stores the words. (c) */
bool hf_limiter_holds_expire(struct hf_limiter *limiter,
                             struct limiter_open *open, uint64_t now_ns);
/* As hf_words_wait(), but counts on holds that are over by then. (c) */
uint64_t hf_limiter_holds_wait(const struct limiter_open *open, uint64_t count,
                               uint64_t keep_back, uint64_t now_ns);
/* The cell's words mean nothing any more: ends its part in all holds. (c) */
void hf_limiter_holds_forget(struct hf_limiter *limiter,
                             struct limiter_open *open);
void hf_limiter_holds_destroy(struct hf_limiter *limiter);

enum hf_status hf_limiter_hold_parts(struct hf_limiter *limiter,
                                     struct limiter_local *local,
                                     const struct hf_limiter_call *call,
                                     uint64_t hold_ns, uint64_t now_ns,
                                     struct hf_limiter_answer *answer,
                                     uint64_t *number);
enum hf_status hf_limiter_hold_settle(struct hf_limiter *limiter,
                                      uint64_t number, uint64_t cost,
                                      uint64_t now_ns);

#endif
