/* slab.h - many items of one size, named by a 32-bit number.
 *
 *   chunk 0            chunk 1            chunk 2
 *   [-][1][2][3]...    [n][ ][ ]...       (made when chunk 1 is used up)
 *    ^ 0 is never given out: it means "none"
 *
 * Items never move and chunks that were used are never given back, so growth
 * costs one allocation and no copy, and a pointer stays valid while its item is
 * in use.
 * A free item's first 32 bits are 0, which lets a walk over all numbers tell
 * free from used as long as users keep theirs non-zero.
 *
 * Promises: a caller that must not fail later promises items now. Promise may
 * fail; taking a promised item cannot.
 *
 * Threads: one thread at a time.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/undo.h"
#include "holdfast/status.h"

struct hf_slab {
    char **chunks;
    uint32_t chunk_count;
    uint32_t chunk_cap;
    uint32_t item_bytes;
    uint32_t shift;       /* items per chunk = 1 << shift */
    uint32_t top;         /* numbers below it have been given out once */
    uint32_t free;        /* head of the list of free items, 0 if none */
    uint32_t used;        /* items in use */
    uint32_t promised;    /* items that must be there for take */
    size_t *account;      /* memory in chunks is added here; may be NULL */
    struct hf_undo *undo; /* what is taken and given is noted there */
};

/* item_bytes: at least 8, a multiple of 8. Allocates nothing. */
void hf_slab_init(struct hf_slab *slab, size_t item_bytes, size_t *account);
/* Also of a zeroed struct that was never initialised. */
void hf_slab_destroy(struct hf_slab *slab);
/* Frees every item and keeps the memory, so that promises stay good. */
void hf_slab_clear(struct hf_slab *slab);

/* True if a promise of `count` more items needs no new memory. */
static inline bool hf_slab_has_room(const struct hf_slab *slab, uint32_t count)
{
    uint64_t numbers = (uint64_t)slab->chunk_count << slab->shift;
    return numbers > (uint64_t)slab->used + slab->promised + count;
}
/* Makes room for `count` more promises. */
enum hf_status hf_slab_make_room(struct hf_slab *slab, uint32_t count);
/* Makes sure that `count` more takes succeed, on top of what is promised
 * already. HF_NOMEM: nothing promised. */
static inline enum hf_status hf_slab_promise(struct hf_slab *slab,
                                             uint32_t count)
{
    if (!hf_slab_has_room(slab, count) &&
        hf_slab_make_room(slab, count) != HF_OK)
        return HF_NOMEM;
    slab->promised += count;
    return HF_OK;
}
/* Takes `count` promises back, used or not. */
static inline void hf_slab_unpromise(struct hf_slab *slab, uint32_t count)
{
    assert(slab->promised >= count);
    slab->promised -= count;
}

/* Gives back memory that was made for promises and never used: one block at
 * most, which no promise needs, and not the last one to spare. */
void hf_slab_give_back(struct hf_slab *slab);
static inline void hf_slab_trim(struct hf_slab *slab)
{
    uint64_t numbers = (uint64_t)slab->chunk_count << slab->shift;
    if (numbers >= slab->top + (2ull << slab->shift))
        hf_slab_give_back(slab);
}

/* Items in a chunk, which has HF_SLAB_CHUNK_BYTES at most unless one item has
 * more: so many to the power of two. */
#define HF_SLAB_CHUNK_BYTES (32u * 1024)
static inline uint32_t hf_slab_shift(size_t item_bytes)
{
    size_t items = HF_SLAB_CHUNK_BYTES / item_bytes;
    return items == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(items);
}

static inline void *hf_slab_at(const struct hf_slab *slab, uint32_t number)
{
    char *chunk = slab->chunks[number >> slab->shift];
    uint32_t place = number & ((1u << slab->shift) - 1);
    return chunk + (size_t)place * slab->item_bytes;
}
/* The same where the size of the items is a constant: fewer instructions. */
static inline void *hf_slab_at_sized(const struct hf_slab *slab,
                                     uint32_t number, size_t item_bytes)
{
    uint32_t shift = hf_slab_shift(item_bytes);
    uint32_t place = number & ((1u << shift) - 1);
    return slab->chunks[number >> shift] + place * item_bytes;
}

/* How a free item looks; it may be looked at as one of the user's as well. */
struct __attribute__((may_alias)) hf_slab_free {
    uint32_t mark; /* 0 */
    uint32_t next;
};

/* A zeroed item's number, or 0 without memory (never, if promised). */
uint32_t hf_slab_take(struct hf_slab *slab);
/* The same; what is in the item is undefined. */
uint32_t hf_slab_take_new(struct hf_slab *slab); /* when none is free */
static inline uint32_t hf_slab_take_raw(struct hf_slab *slab)
{
    uint32_t number = slab->free;

    if (number == 0)
        return hf_slab_take_new(slab);
    const struct hf_slab_free *item =
        hf_undo_keep(slab->undo, hf_slab_at(slab, number), slab->item_bytes);
    assert(item->mark == 0);
    slab->free = item->next;
    slab->used++;
    return number;
}
/* Gives back an item of that number, which lies there. */
static inline void hf_slab_give_at(struct hf_slab *slab, uint32_t number,
                                   void *place)
{
    struct hf_slab_free *item = hf_undo_keep(slab->undo, place, sizeof *item);

    assert(number != 0 && number < slab->top);
    assert(slab->used > 0);
    item->mark = 0;
    item->next = slab->free;
    slab->free = number;
    slab->used--;
}
static inline void hf_slab_give(struct hf_slab *slab, uint32_t number)
{
    hf_slab_give_at(slab, number, hf_slab_at(slab, number));
}

#endif
