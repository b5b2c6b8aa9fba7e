/* heap.c - a four-way heap: half the depth of a binary one, and the children
 * of an entry lie side by side. */
#include "base/heap.h"

#include <assert.h>
#include <stdbool.h>

#include "base/memory.h"

#define WAYS      4u
#define CAP_MIN   64u
#define CAP_LARGE 4096u

void hf_heap_init(struct hf_heap *heap,
                  void (*moved)(void *context, uint32_t ref, uint32_t position),
                  void *context, size_t *account)
{
    *heap = (struct hf_heap){.moved = moved,
                             .context = context,
                             .account = account,
                             .undo = &hf_undo_none};
}

void hf_heap_destroy(struct hf_heap *heap)
{
    hf_free(heap->entries);
    heap->entries = NULL;
    heap->count = 0;
    heap->cap = 0;
}

void hf_heap_clear(struct hf_heap *heap)
{
    heap->count = 0;
}

uint64_t hf_heap_grown(uint64_t cap)
{
    return cap + cap / (cap < CAP_LARGE ? 2 : 8);
}

enum hf_status hf_heap_make_room(struct hf_heap *heap, uint64_t count)
{
    uint64_t cap = heap->cap ? heap->cap : CAP_MIN;

    if (count + 1 <= heap->cap)
        return HF_OK;
    while (cap < count + 1)
        cap = hf_heap_grown(cap);
    if (cap > UINT32_MAX)
        return HF_NOMEM;
    struct hf_heap_entry *entries =
        hf_realloc(heap->entries, cap * sizeof *entries);
    if (entries == NULL)
        return HF_NOMEM;
    *heap->account += (cap - heap->cap) * sizeof *entries;
    heap->entries = entries;
    heap->cap = (uint32_t)cap;
    return HF_OK;
}

static void place(struct hf_heap *heap, uint32_t position,
                  struct hf_heap_entry entry)
{
    struct hf_heap_entry *at = &heap->entries[position];

    *(struct hf_heap_entry *)hf_undo_keep(heap->undo, at, sizeof *at) = entry;
    heap->moved(heap->context, entry.ref, position);
}

static uint32_t parent_of(uint32_t position)
{
    return (position - 2) / WAYS + 1;
}

/* Puts `entry` at `position` or, while it is earlier than what is above, up. */
static uint32_t rise(struct hf_heap *heap, uint32_t position,
                     struct hf_heap_entry entry)
{
    while (position > 1) {
        uint32_t parent = parent_of(position);
        if (!hf_heap_before(&entry, &heap->entries[parent]))
            break;
        place(heap, position, heap->entries[parent]);
        position = parent;
    }
    place(heap, position, entry);
    return position;
}

/* Puts `entry` at `position` or, while something below is earlier, down. */
static void sink(struct hf_heap *heap, uint32_t position,
                 struct hf_heap_entry entry)
{
    for (;;) {
        uint64_t first = (uint64_t)(position - 1) * WAYS + 2;
        if (first > heap->count)
            break;
        uint32_t least = (uint32_t)first;
        for (uint32_t i = 1; i < WAYS && first + i <= heap->count; i++) {
            if (hf_heap_before(&heap->entries[first + i],
                               &heap->entries[least]))
                least = (uint32_t)first + i;
        }
        if (!hf_heap_before(&heap->entries[least], &entry))
            break;
        place(heap, position, heap->entries[least]);
        position = least;
    }
    place(heap, position, entry);
}

enum hf_status hf_heap_add(struct hf_heap *heap, struct hf_heap_entry entry)
{
    uint32_t count = heap->count + 1;

    if (count >= heap->cap && hf_heap_make_room(heap, count) != HF_OK)
        return HF_NOMEM;
    heap->count = count;
    rise(heap, heap->count, entry);
    return HF_OK;
}

void hf_heap_remove(struct hf_heap *heap, uint32_t position)
{
    assert(position >= 1 && position <= heap->count);
    struct hf_heap_entry last = heap->entries[heap->count--];

    heap->moved(heap->context, heap->entries[position].ref, 0);
    if (position > heap->count)
        return;
    if (rise(heap, position, last) == position)
        sink(heap, position, last);
}

void hf_heap_change(struct hf_heap *heap, uint32_t position, uint64_t when,
                    uint64_t tie)
{
    assert(position >= 1 && position <= heap->count);
    struct hf_heap_entry entry = {when, tie, heap->entries[position].ref};

    if (rise(heap, position, entry) == position)
        sink(heap, position, entry);
}

/* Those that are due are all below each other, from the first one on: goes down
 * where one is, else on to the next branch. */
uint32_t hf_heap_count_due(const struct hf_heap *heap, uint64_t until,
                           uint32_t most)
{
    uint32_t count = 0;
    uint32_t i = 1;

    while (count < most) {
        if (i <= heap->count && heap->entries[i].when <= until) {
            count++;
            i = (i - 1) * WAYS + 2;
            continue;
        }
        while (i > 1 && (i - 2) % WAYS == WAYS - 1)
            i = parent_of(i);
        if (i == 1)
            break;
        i++;
    }
    return count;
}

bool hf_heap_is_sound(const struct hf_heap *heap)
{
    for (uint32_t i = 2; i <= heap->count; i++) {
        if (hf_heap_before(&heap->entries[i], &heap->entries[parent_of(i)]))
            return false;
    }
    return true;
}
