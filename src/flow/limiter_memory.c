/* limiter_memory.c - memory of cells and buckets.
 *
 * Blocks of one huge page each, cut into chunks that shards take, cut into
 * cells of what size their keys need. 32 bits name a granule of 8 bytes, so 32
 * gigabytes in all. A cell of up to one line that would otherwise lie across
 * two gets a whole line, where the bound of 64 bytes a key leaves room for it.
 *
 * Nothing goes back to the system before close: a number that a reader holds
 * must stay a cell. Free cells are kept by size.
 */
#include <string.h>

#include "base/memory.h"
#include "flow/limiter_state.h"

#define LINE          64u
#define LINE_GRANULES (LINE / GRANULE)
#define CHUNK_MIN     1024u
#define FIRST_BLOCK   65536u /* bytes: a small limiter is small */
#define PLAIN_BLOCKS  4u     /* before blocks are huge pages */
#define LINE_FROM     16u    /* shorter keys: a line would be too much */

_Static_assert(sizeof(struct limiter_cell) + HF_LIMITER_KEY_MAX <=
                   (CELL_CLASSES - 1) * GRANULE,
               "every cell has a class");

/* ---- Arrays that grow. ---- */

enum hf_status hf_limiter_array_set(struct hf_atomic_ptr *array, uint32_t place,
                                    void *item)
{
    /* Relaxed: only who has the lock changes it. */
    struct limiter_array *old = hf_ptr_load(array, __ATOMIC_RELAXED);

    if (old != NULL && place < old->cap) {
        /* Release: what it points to. */
        hf_ptr_store(&old->at[place], item, __ATOMIC_RELEASE);
        return HF_OK;
    }
    uint32_t cap = old == NULL ? 8 : old->cap * 2;
    assert(place < cap);
    struct limiter_array *items =
        hf_alloc_zeroed(sizeof *items + cap * sizeof items->at[0]);
    if (items == NULL)
        return HF_NOMEM;
    items->cap = cap;
    items->older = old;
    for (uint32_t i = 0; old != NULL && i < old->cap; i++)
        hf_ptr_store(&items->at[i], hf_ptr_load(&old->at[i], __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    hf_ptr_store(&items->at[place], item, __ATOMIC_RELAXED);
    /* Release: the array, and the item. */
    hf_ptr_store(array, items, __ATOMIC_RELEASE);
    return HF_OK;
}

void hf_limiter_array_destroy(struct hf_atomic_ptr *array)
{
    struct limiter_array *items = hf_ptr_load(array, __ATOMIC_RELAXED);

    while (items != NULL) {
        struct limiter_array *older = items->older;
        hf_free(items);
        items = older;
    }
}

/* ---- Blocks. ---- */

static enum hf_status add_block(struct limiter_arena *arena)
{
    uint32_t place = arena->block_count;
    uint32_t bytes = place == 0 ? FIRST_BLOCK : BLOCK_BYTES;

    if (place >= UINT32_MAX >> BLOCK_SHIFT)
        return HF_NOMEM; /* the numbers are used up */
    char *block =
        place < PLAIN_BLOCKS ? hf_alloc_aligned(LINE, bytes) : hf_alloc_huge();
    if (block == NULL)
        return HF_NOMEM;
    if (hf_limiter_array_set(&arena->blocks, place, block) != HF_OK) {
        hf_free(block);
        return HF_NOMEM;
    }
    arena->block_count++;
    arena->next = place << BLOCK_SHIFT;
    arena->end = arena->next + bytes / GRANULE;
    if (place == 0)
        arena->next += LINE_GRANULES; /* number 0 means none */
    /* Relaxed: a figure. */
    hf_u64_add(&arena->bytes, bytes, __ATOMIC_RELAXED);
    return HF_OK;
}

enum hf_status hf_limiter_arena_init(struct limiter_arena *arena)
{
    return add_block(arena);
}

void hf_limiter_arena_destroy(struct limiter_arena *arena)
{
    for (uint32_t i = 0; i < arena->block_count; i++)
        hf_free(limiter_array_at(&arena->blocks, i));
    hf_limiter_array_destroy(&arena->blocks);
}

uint32_t hf_limiter_arena_take(struct limiter_arena *arena, uint32_t granules)
{
    uint32_t number = 0;

    assert(granules % LINE_GRANULES == 0);
    assert(granules * GRANULE <= CHUNK_MAX);
    hf_mutex_lock(&arena->mutex);
    if (arena->end - arena->next >= granules || add_block(arena) == HF_OK) {
        number = arena->next;
        arena->next += granules;
        char *block = limiter_array_at(&arena->blocks, number >> BLOCK_SHIFT);
        memset(block + (size_t)(number & ((1u << BLOCK_SHIFT) - 1)) * GRANULE,
               0, (size_t)granules * GRANULE);
    }
    hf_mutex_unlock(&arena->mutex);
    return number;
}

/* ---- A shard's room. ---- */

/* The first of `granules` out of a room, which is filled up when it is empty.
 * What is left of a chunk then is lost: less than one cell in a chunk. */
static uint32_t room_take(struct hf_limiter *limiter,
                          struct limiter_shard *shard,
                          struct limiter_room *room, uint32_t granules)
{
    if (room->end - room->next < granules) {
        uint32_t bytes = CHUNK_MIN;
        while (bytes < CHUNK_MAX && bytes < shard->chunked / 16)
            bytes *= 2;
        uint32_t number =
            hf_limiter_arena_take(&limiter->arena, bytes / GRANULE);
        if (number == 0)
            return 0;
        shard->chunked += bytes;
        room->next = number;
        room->end = number + bytes / GRANULE;
    }
    uint32_t number = room->next;
    room->next += granules;
    return number;
}

static uint32_t cell_granules(uint32_t key_len)
{
    uint32_t bytes = (uint32_t)sizeof(struct limiter_cell) + key_len;
    uint32_t granules = (bytes + GRANULE - 1) / GRANULE;

    return key_len >= LINE_FROM && granules < LINE_GRANULES ? LINE_GRANULES
                                                            : granules;
}

/* The list of free cells goes through their first word of state: who still
 * looks at a cell that has gone reads it as atomics, and does not believe it.
 */
static struct hf_atomic_u64 *free_link(struct hf_limiter *limiter,
                                       uint32_t number)
{
    return &limiter_cell_at(limiter, number)->words[0];
}

uint32_t hf_limiter_cell_take(struct hf_limiter *limiter,
                              struct limiter_shard *shard, uint32_t key_len)
{
    uint32_t granules = cell_granules(key_len);
    uint32_t number = shard->free[granules];

    if (number == 0)
        return room_take(
            limiter, shard,
            granules == LINE_GRANULES ? &shard->lines : &shard->rest, granules);
    /* Relaxed: under the shard's lock. */
    shard->free[granules] =
        (uint32_t)hf_u64_load(free_link(limiter, number), __ATOMIC_RELAXED);
    return number;
}

void hf_limiter_cell_give(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t number,
                          uint32_t key_len)
{
    uint32_t granules = cell_granules(key_len);

    /* Relaxed: under the shard's lock. */
    hf_u64_store(free_link(limiter, number), shard->free[granules],
                 __ATOMIC_RELAXED);
    shard->free[granules] = number;
}

uint32_t hf_limiter_more_take(struct hf_limiter *limiter,
                              struct limiter_shard *shard)
{
    uint32_t number = shard->free_more;

    if (number == 0)
        return room_take(limiter, shard, &shard->lines, LINE_GRANULES);
    struct limiter_bucket *bucket = limiter_memory_at(limiter, number);
    /* Relaxed: under the shard's lock. */
    shard->free_more = hf_u32_load(&bucket->more, __ATOMIC_RELAXED);
    hf_u32_store(&bucket->more, 0, __ATOMIC_RELAXED);
    return number;
}

void hf_limiter_more_give(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t number)
{
    struct limiter_bucket *bucket = limiter_memory_at(limiter, number);

    /* Relaxed: under the shard's lock. A reader that is still here follows the
     * free ones to their end and finds nothing. */
    hf_u32_store(&bucket->more, shard->free_more, __ATOMIC_RELAXED);
    shard->free_more = number;
}
