/* tally.h - the smallest state that a journal can keep: how many records were
 * applied, and a hash of all of them in order.
 *
 * Two tallies are equal only if the same records were applied in the same
 * order. Saved in two pieces, so that their order matters as well.
 */
#ifndef TEST_SUPPORT_TALLY_H
#define TEST_SUPPORT_TALLY_H

#include <stdint.h>

#include "journal/journal.h"

struct tally {
    uint64_t count;
    uint64_t hash;
    int pieces; /* loaded so far */
};

const struct journal_machine *tally_machine(void);
void tally_apply(struct tally *tally, struct hf_bytes record);

#endif
