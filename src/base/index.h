/* index.h - things found by name: a slab of records and a hash table over it.
 *
 * The table grows one bucket at a time (linear hashing), so that no insert
 * ever pays for a rehash of everything:
 *
 *   buckets  0 1 2 3 | 4 5      next insert splits bucket 2 into 2 and 6
 *                ^split
 *
 * Each record starts with a `struct hf_named`; records with equal buckets hang
 * on a list through it. If there is no memory for a new bucket the lists just
 * get longer, so growth cannot fail.
 *
 * Walks go by number, 1 to hf_index_top(); an unused number has no record.
 * The order is that of the numbers and does not depend on the hash.
 *
 * Threads: one thread at a time.
 */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hasher.h"
#include "base/slab.h"
#include "base/text.h"

/* The first member of every record; belongs to the index. */
struct hf_named {
    uint32_t hash; /* never 0 in a record in use */
    uint32_t next;
    struct hf_text name;
};

struct hf_index {
    struct hf_slab slab;
    struct hf_texts *texts; /* shared by several indexes */
    struct hf_hasher hasher;
    uint32_t **segments; /* bucket heads, in pieces that never move */
    uint32_t segment_count;
    uint32_t segment_cap;
    uint32_t buckets; /* in use */
    uint32_t low;     /* largest power of two <= buckets */
    size_t *account;
};

/* HF_NOMEM leaves it released. */
enum hf_status hf_index_init(struct hf_index *index, size_t record_bytes,
                             struct hf_texts *texts, struct hf_hash_seed seed,
                             size_t *account);
void hf_index_destroy(struct hf_index *index);
/* Makes buckets for `count` records of an empty index at once: loading so many
 * then splits none. Without memory, and beyond HF_INDEX_EXPECT_MAX, it makes
 * fewer, which is only slower. */
#define HF_INDEX_EXPECT_MAX (1u << 26)
void hf_index_expect(struct hf_index *index, uint64_t count);
/* Removes every record and keeps the memory. The names are not dropped: the
 * caller clears the store that they share. */
void hf_index_clear(struct hf_index *index);

/* Makes sure that one add with a name of `name_len` bytes succeeds. */
enum hf_status hf_index_promise(struct hf_index *index, size_t name_len);
void hf_index_unpromise(struct hf_index *index, size_t name_len);

/* The hash of a name, for the calls that take it: indexes with one seed share
 * it, so that a name is hashed once. */
static inline uint32_t hf_index_hash(const struct hf_index *index,
                                     struct hf_bytes name)
{
    return (uint32_t)hf_hasher_hash(&index->hasher, name.data, name.len);
}
uint32_t hf_index_find_hashed(const struct hf_index *index, uint32_t hash,
                              struct hf_bytes name);
uint32_t hf_index_add_hashed(struct hf_index *index, uint32_t hash,
                             struct hf_bytes name);

/* The number of the record with this name, or 0. */
uint32_t hf_index_find(const struct hf_index *index, struct hf_bytes name);
/* Adds a zeroed record under a name that is not there yet. 0 without memory
 * (never, if promised). */
uint32_t hf_index_add(struct hf_index *index, struct hf_bytes name);
/* Grows as far as it was to grow while changes could be taken back. */
void hf_index_catch_up(struct hf_index *index);
void hf_index_remove(struct hf_index *index, uint32_t number);

static inline void *hf_index_at(const struct hf_index *index, uint32_t number)
{
    return hf_slab_at(&index->slab, number);
}

static inline struct hf_bytes hf_index_name(const struct hf_index *index,
                                            const void *record)
{
    return hf_text_bytes(index->texts, ((const struct hf_named *)record)->name);
}

static inline uint32_t hf_index_count(const struct hf_index *index)
{
    return index->slab.used;
}

/* Numbers in use are below it. */
static inline uint32_t hf_index_top(const struct hf_index *index)
{
    return index->slab.top;
}

/* The record at `number`, or NULL if the number is free. */
static inline void *hf_index_used(const struct hf_index *index, uint32_t number)
{
    struct hf_named *named = hf_slab_at(&index->slab, number);
    return named->hash == 0 ? NULL : named;
}

#endif
