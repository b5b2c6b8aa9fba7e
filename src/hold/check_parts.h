/* check_parts.h - what the proofs of the invariants share. */
#ifndef HOLD_CHECK_PARTS_H
#define HOLD_CHECK_PARTS_H

#include "hold/state.h"

struct checker {
    const struct hold_engine *e;
    char *error;
    uint64_t *reserved; /* by product number, summed from reservations */
    uint64_t pending;
    uint64_t singles; /* grants that are in no set */
    uint64_t expects; /* products with an arrival that is not late */
};

/* Writes what is wrong; always HF_CORRUPT. */
__attribute__((format(printf, 2, 3))) enum hf_status
check_broken(const struct checker *checker, const char *format, ...);
/* The entry at `position` is this thing's, at this time. */
bool check_in_heap(const struct hold_engine *e, uint32_t position,
                   enum due_kind kind, uint32_t number, uint64_t when);

/* Locks, parts, sets, waiters, holders and sessions. */
enum hf_status check_graph(struct checker *checker);
/* Buyers and queues of products. */
enum hf_status check_waitlist(struct checker *checker);
enum hf_status check_places(struct checker *checker);
/* Behind the products. */
enum hf_status check_quotas(struct checker *checker);
enum hf_status check_bundles(struct checker *checker);
enum hf_status check_expects(struct checker *checker);

#endif
