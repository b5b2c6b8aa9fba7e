/* heap.h - what is due next: a heap ordered by (when, tie).
 *
 * Entries name something of the user's by `ref`. The heap tells the user where
 * each entry lies (`moved`), so that an entry can be changed or removed
 * without a search. Positions start at 1; 0 means "not in the heap".
 *
 * Two entries never compare equal if ties are distinct, so the order in which
 * entries leave does not depend on the order in which they came.
 *
 * Threads: one thread at a time.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/undo.h"
#include "holdfast/status.h"

struct hf_heap_entry {
    uint64_t when;
    uint64_t tie;
    uint32_t ref;
};

struct hf_heap {
    struct hf_heap_entry *entries; /* [0] is not used */
    uint32_t count;
    uint32_t cap;
    uint32_t promised;
    void (*moved)(void *context, uint32_t ref, uint32_t position);
    void *context;
    size_t *account;
    struct hf_undo *undo; /* entries are noted there before they change */
};

void hf_heap_init(struct hf_heap *heap,
                  void (*moved)(void *context, uint32_t ref, uint32_t position),
                  void *context, size_t *account);
void hf_heap_destroy(struct hf_heap *heap);
/* Empties it, tells nobody, keeps the memory. */
void hf_heap_clear(struct hf_heap *heap);

/* How much room follows so much: a large one has little to spare, since the
 * system moves what is as large without a copy; a small one that grew in small
 * steps would leave holes behind. */
uint64_t hf_heap_grown(uint64_t cap);
/* Makes room for so many entries. */
enum hf_status hf_heap_make_room(struct hf_heap *heap, uint64_t count);
/* True if a promise of `count` more entries needs no new memory. */
static inline bool hf_heap_has_room(const struct hf_heap *heap, uint32_t count)
{
    return (uint64_t)heap->count + heap->promised + count < heap->cap;
}
/* Makes sure that one more add succeeds. */
static inline enum hf_status hf_heap_promise(struct hf_heap *heap)
{
    uint64_t count = (uint64_t)heap->count + heap->promised + 1;

    if (count >= heap->cap && hf_heap_make_room(heap, count) != HF_OK)
        return HF_NOMEM;
    heap->promised++;
    return HF_OK;
}
static inline void hf_heap_unpromise(struct hf_heap *heap)
{
    assert(heap->promised > 0);
    heap->promised--;
}

/* HF_NOMEM without memory (never, if promised). */
enum hf_status hf_heap_add(struct hf_heap *heap, struct hf_heap_entry entry);
void hf_heap_remove(struct hf_heap *heap, uint32_t position);
/* Gives the entry at `position` another time and tie. */
void hf_heap_change(struct hf_heap *heap, uint32_t position, uint64_t when,
                    uint64_t tie);

static inline bool hf_heap_before(const struct hf_heap_entry *a,
                                  const struct hf_heap_entry *b)
{
    return a->when != b->when ? a->when < b->when : a->tie < b->tie;
}

/* How many are due up to `until`, or `most`, if there are as many. Looks at a
 * few times as many. */
uint32_t hf_heap_count_due(const struct hf_heap *heap, uint64_t until,
                           uint32_t most);

/* Is every entry behind those above it? */
bool hf_heap_is_sound(const struct hf_heap *heap);

/* The entry that is due first, or NULL. */
static inline const struct hf_heap_entry *
hf_heap_first(const struct hf_heap *heap)
{
    return heap->count == 0 ? NULL : &heap->entries[1];
}

#endif
