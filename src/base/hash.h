/* hash.h - keyed hash of bytes (SipHash-1-3).
 *
 * Names come from strangers, so the hash is keyed: without the seed nobody can
 * choose names that fall into one bucket. The seed comes from outside; the
 * same seed gives the same hashes everywhere.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/bytes.h"

struct hf_hash_seed {
    uint64_t key[2];
};

/* The seed itself, or one that nobody can guess if it is zero. */
struct hf_hash_seed hf_hash_seed(struct hf_hash_seed given);

uint64_t hf_hash(struct hf_hash_seed seed, struct hf_bytes bytes);

#endif
