/* slab.c - chunks of about 32 KiB and a list of free items through them.
 *
 * The first chunks are allocated one by one, so that a small slab is small.
 * From then on chunks are cut from blocks of HF_HUGE_BYTES. The first blocks
 * are address space only: memory is used, and counted, chunk by chunk, and the
 * system is asked for a huge page once all of a block is in use. When a slab is
 * so large that a block is a small part of it, whole blocks are taken.
 */
#include "base/slab.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

#define SINGLE_CHUNKS 64u
#define CUT_BLOCKS    16u /* that are used chunk by chunk */

void hf_slab_init(struct hf_slab *slab, size_t item_bytes, size_t *account)
{
    assert(item_bytes >= sizeof(struct hf_slab_free));
    assert(item_bytes % 8 == 0);
    *slab = (struct hf_slab){.item_bytes = (uint32_t)item_bytes,
                             .shift = hf_slab_shift(item_bytes),
                             .top = 1,
                             .account = account,
                             .undo = &hf_undo_none};
}

static size_t chunk_bytes(const struct hf_slab *slab)
{
    return (size_t)slab->item_bytes << slab->shift;
}

static uint32_t block_chunks(const struct hf_slab *slab)
{
    return (uint32_t)(HF_HUGE_BYTES / chunk_bytes(slab));
}

/* Does an allocation begin with the chunk of that number? */
static bool begins_block(const struct hf_slab *slab, uint32_t chunk)
{
    return chunk <= SINGLE_CHUNKS ||
           (chunk - SINGLE_CHUNKS) % block_chunks(slab) == 0;
}

/* How many chunks are added, or given back, at once when there are so many. */
static uint32_t step_chunks(const struct hf_slab *slab, uint32_t count)
{
    return count < SINGLE_CHUNKS + CUT_BLOCKS * block_chunks(slab)
               ? 1
               : block_chunks(slab);
}

static size_t step_bytes(const struct hf_slab *slab, uint32_t chunks)
{
    return chunks == 1 ? chunk_bytes(slab) : HF_HUGE_BYTES;
}

void hf_slab_destroy(struct hf_slab *slab)
{
    for (uint32_t i = 0; i < slab->chunk_count; i++) {
        if (begins_block(slab, i))
            hf_free(slab->chunks[i]);
    }
    hf_free(slab->chunks);
    /* not by init: a zeroed slab has no item size */
    *slab = (struct hf_slab){.item_bytes = slab->item_bytes,
                             .shift = slab->shift,
                             .top = 1,
                             .account = slab->account,
                             .undo = slab->undo};
}

/* Numbers are given out anew from 1, so no item needs to be touched. */
void hf_slab_clear(struct hf_slab *slab)
{
    slab->top = 1;
    slab->free = 0;
    slab->used = 0;
}

static enum hf_status make_places(struct hf_slab *slab, uint32_t count)
{
    uint32_t cap = slab->chunk_cap ? slab->chunk_cap : 4;

    if (count <= slab->chunk_cap)
        return HF_OK;
    while (cap < count)
        cap *= 2;
    char **chunks = hf_realloc(slab->chunks, cap * sizeof *chunks);
    if (chunks == NULL)
        return HF_NOMEM;
    slab->chunks = chunks;
    slab->chunk_cap = cap;
    return HF_OK;
}

/* The memory of the next chunk; NULL: there is none. */
static char *next_chunk(const struct hf_slab *slab, uint32_t step)
{
    uint32_t number = slab->chunk_count;

    if (step > 1)
        return hf_alloc_huge();
    if (number < SINGLE_CHUNKS)
        return hf_alloc(chunk_bytes(slab));
    if (begins_block(slab, number))
        return hf_alloc_aligned(HF_HUGE_BYTES, HF_HUGE_BYTES);
    if (begins_block(slab, number + 1)) /* the last of its block */
        hf_advise_huge(slab->chunks[number + 1 - block_chunks(slab)]);
    return slab->chunks[number - 1] + chunk_bytes(slab);
}

static enum hf_status add_chunk(struct hf_slab *slab)
{
    uint32_t step = step_chunks(slab, slab->chunk_count);
    uint32_t count = slab->chunk_count + step;

    if ((uint64_t)count << slab->shift > UINT32_MAX)
        return HF_NOMEM; /* the numbers are used up */
    if (make_places(slab, count) != HF_OK)
        return HF_NOMEM;
    char *chunk = next_chunk(slab, step);
    if (chunk == NULL)
        return HF_NOMEM;
    for (uint32_t i = 0; i < step; i++)
        slab->chunks[slab->chunk_count + i] = chunk + i * chunk_bytes(slab);
    slab->chunk_count = count;
    if (slab->account != NULL)
        *slab->account += step_bytes(slab, step);
    return HF_OK;
}

enum hf_status hf_slab_make_room(struct hf_slab *slab, uint32_t count)
{
    while (!hf_slab_has_room(slab, count)) {
        if (add_chunk(slab) != HF_OK)
            return HF_NOMEM;
    }
    return HF_OK;
}

void hf_slab_give_back(struct hf_slab *slab)
{
    uint32_t step = step_chunks(slab, slab->chunk_count - 1);
    uint32_t last = slab->chunk_count - step;
    uint64_t numbers = (uint64_t)last << slab->shift;

    if (numbers < slab->top + (1ull << slab->shift) ||
        numbers < 1 + (uint64_t)slab->used + slab->promised)
        return;
    if (begins_block(slab, last))
        hf_free(slab->chunks[last]);
    slab->chunk_count = last;
    if (slab->account != NULL)
        *slab->account -= step_bytes(slab, step);
}

uint32_t hf_slab_take_new(struct hf_slab *slab)
{
    /* Twice for items as large as a chunk: number 0 takes up the first. */
    while ((uint64_t)slab->chunk_count << slab->shift <= slab->top) {
        if (add_chunk(slab) != HF_OK)
            return 0;
    }
    slab->used++;
    return slab->top++;
}

uint32_t hf_slab_take(struct hf_slab *slab)
{
    uint32_t number = hf_slab_take_raw(slab);

    if (number != 0)
        memset(hf_slab_at(slab, number), 0, slab->item_bytes);
    return number;
}
