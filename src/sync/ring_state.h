/* ring_state.h - the inside of a ring: its words, and what they say.
 *
 * The protocol and why it is right are told in ring_many.c.
 */
#ifndef SYNC_RING_STATE_H
#define SYNC_RING_STATE_H

#include <assert.h>

#include "base/atomic.h"
#include "holdfast/ring.h"
#include "sync/listed.h"
#include "sync/locals.h"

/* word      63           26 25    24            0
 *          +---------------+------+--------------+
 *          |      lap      | full |     cell     |
 *          +---------------+------+--------------+
 * position  the same, with the slot in place of the cell and 0 for full */
#define LAP_SHIFT 26
#define LAP_ONE   (UINT64_C(1) << LAP_SHIFT)
#define FULL      (UINT64_C(1) << 25)
#define LOW_MASK  (FULL - 1)

/* The first lap. Close to where laps wrap, so that every test passes there. */
#define LAP_FIRST (0 - 2 * LAP_ONE)

/* Cells 1 .. capacity begin in the slots, those after with the threads: the
 * first of them lie in the same array, the others in the threads' records. */
_Static_assert(HF_RING_CAPACITY_MAX + HF_SLOTS_MAX < LOW_MASK,
               "the number of a cell fits");

struct ring_local { /* a thread that puts; (o) its own */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 refused; /* (a) owner writes */
    struct hf_atomic_ptr first_cell; /* (a) the cell that it began with */
    uint32_t cell;                   /* (o) that it has now; 0: the first */
};

/* What one side has; in HF_RING_SPSC positions are plain counts. */
struct ring_side {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 at; /* (a) next position */
    uint64_t other_seen; /* (o) SPSC: the other side's `at`, some time ago */
    struct hf_atomic_u64 refused; /* (a) the only producer writes */
};

struct hf_ring {
    struct hf_listed listed;
    enum hf_ring_mode mode; /* (i) */
    uint32_t capacity;      /* (i) */
    uint32_t mask;          /* (i) SPSC: slots - 1, a power of two less 1 */
    struct hf_atomic_u64 *words; /* (i) the array; (a) its elements */
    struct hf_atomic_ptr *cells; /* (i) the array; (a) its elements */
    uint32_t cell_count;         /* (i) of those, with the unused cell 0 */
    void **items; /* (i) SPSC: the slots; (o) of whose turn it is */
    struct hf_locals locals;
    struct ring_side tail; /* who puts */
    struct ring_side head; /* who takes */
};

/* ---- Positions and words. ---- */

/* How many laps the word is ahead of the position; negative: behind. */
HF_INLINE int64_t laps_ahead(uint64_t word, uint64_t position)
{
    return (int64_t)((word & ~(LAP_ONE - 1)) - (position & ~(LAP_ONE - 1))) >>
           LAP_SHIFT;
}

/* Is it the position's lap, and empty (full)? */
HF_INLINE bool is_empty(uint64_t word, uint64_t position)
{
    return (word ^ position) <= LOW_MASK;
}

HF_INLINE bool is_full(uint64_t word, uint64_t position)
{
    return (word ^ FULL ^ position) <= LOW_MASK;
}

/* `count` is at most the capacity. */
HF_INLINE uint64_t position_add(const struct hf_ring *ring, uint64_t position,
                                uint32_t count)
{
    uint64_t slot = (position & LOW_MASK) + count;

    position += count;
    return slot < ring->capacity ? position
                                 : position + LAP_ONE - ring->capacity;
}

HF_INLINE struct hf_atomic_u64 *word_at(const struct hf_ring *ring,
                                        uint64_t position)
{
    assert((position & LOW_MASK) < ring->capacity);
    return &ring->words[position & LOW_MASK];
}

HF_INLINE struct hf_atomic_ptr *cell_at(const struct hf_ring *ring,
                                        uint32_t cell)
{
    if (__builtin_expect(cell < ring->cell_count, 1))
        return &ring->cells[cell];
    struct ring_local *local =
        hf_locals_find(&ring->locals, cell - ring->capacity - 1, sizeof *local);
    return &local->first_cell;
}

/* Only its owner changes it: no read-modify-write is needed. */
HF_INLINE void count_refused(struct hf_atomic_u64 *refused)
{
    hf_u64_store(refused, 1 + hf_u64_load(refused, __ATOMIC_RELAXED),
                 __ATOMIC_RELAXED);
}

/* Puts and takes for sides that many threads are at. */
size_t hf_ring_put_many_of(struct hf_ring *ring, void *const *items,
                           size_t count, enum hf_status *status);
size_t hf_ring_take_many_of(struct hf_ring *ring, void **items, size_t count);

/* The first position that is not filled (put is true) or not taken, for those
 * who only look. */
uint64_t hf_ring_seek(const struct hf_ring *ring, const struct ring_side *side,
                      bool put);

#endif
