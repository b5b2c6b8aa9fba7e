/* locals.c - how chunks of records come and go. */
#include "sync/locals.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

static uint32_t chunk_size(uint32_t chunk)
{
    return chunk == 0 ? HF_LOCALS_FIRST : hf_locals_start(chunk);
}

enum hf_status hf_locals_init(struct hf_locals *locals, size_t bytes)
{
    assert(bytes > 0 && bytes % HF_CACHE_LINE == 0);
    memset(locals, 0, sizeof *locals);
    locals->bytes = bytes;
    locals->first = hf_locals_make(locals, 0);
    return locals->first == NULL ? HF_NOMEM : HF_OK;
}

void hf_locals_destroy(struct hf_locals *locals)
{
    for (uint32_t chunk = 0; chunk < HF_LOCALS_CHUNKS; chunk++)
        /* Relaxed: nobody else is there any more. */
        hf_free(hf_ptr_load(&locals->chunks[chunk], __ATOMIC_RELAXED));
}

void *hf_locals_object_new(size_t bytes, size_t record_bytes)
{
    void *object = hf_alloc_lines(bytes);

    if (object == NULL || hf_locals_init(object, record_bytes) == HF_OK)
        return object;
    hf_free(object);
    return NULL;
}

void hf_locals_object_free(void *object)
{
    if (object != NULL)
        hf_locals_destroy(object);
    hf_free(object);
}

/* Several threads may need one chunk: the first to publish it wins. */
void *hf_locals_make(struct hf_locals *locals, uint32_t slot)
{
    uint32_t chunk = hf_locals_chunk(slot);
    size_t bytes = chunk_size(chunk) * locals->bytes;
    void *there = NULL;

    assert(slot < HF_SLOTS_MAX);
    void *records = hf_alloc_lines(bytes);
    if (records == NULL)
        return NULL;
    /* Release: the zeroes. Acquire: those of the thread that was first. */
    if (!hf_ptr_cas(&locals->chunks[chunk], &there, records, __ATOMIC_SEQ_CST))
        hf_free(records);
    return hf_locals_find(locals, slot, locals->bytes);
}

void *hf_locals_next(const struct hf_locals *locals, uint32_t *slot)
{
    while (*slot < HF_SLOTS_MAX) {
        void *record = hf_locals_find(locals, *slot, locals->bytes);
        if (record != NULL) {
            ++*slot;
            return record;
        }
        *slot = hf_locals_start(hf_locals_chunk(*slot) + 1);
    }
    return NULL;
}
