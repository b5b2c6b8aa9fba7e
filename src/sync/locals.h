/* locals.h - one record of an object for each thread that uses it.
 *
 * Records lie in chunks that double, found by the thread's slot. The first
 * chunk is made by init, the others when a thread comes that needs one. What a
 * thread that ended left in its record, the slot's next thread finds there.
 *
 *   slots   0 .. 15   16 .. 31   32 .. 63   64 .. 127  ...
 *
 * Threads: find, make and next may overlap; a record is its thread's own, but
 *          for fields that the object makes atomic.
 * Memory:  records are zeroed, never move, and are freed by release.
 */
#ifndef SYNC_LOCALS_H
#define SYNC_LOCALS_H

#include <stddef.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/status.h"

#define HF_LOCALS_FIRST  16u
#define HF_LOCALS_CHUNKS 13u

struct hf_locals {
    struct hf_atomic_ptr chunks[HF_LOCALS_CHUNKS]; /* (a) set once */
    char *first;                                   /* (i) the first chunk */
    size_t bytes; /* (i) of a record, a multiple of HF_CACHE_LINE */
};

/* HF_NOMEM. */
enum hf_status hf_locals_init(struct hf_locals *locals, size_t bytes);
/* An object that begins with its locals, the rest of its `bytes` zero; NULL
 * without memory. */
void *hf_locals_object_new(size_t bytes, size_t record_bytes);
void hf_locals_object_free(void *object);
/* Nobody may be inside a call. */
void hf_locals_destroy(struct hf_locals *locals);

/* The record of a slot; made if it was not there. NULL without memory. */
void *hf_locals_make(struct hf_locals *locals, uint32_t slot);
/* The first record from `*slot` on that is there, and moves `*slot` behind it;
 * NULL when there is none. */
void *hf_locals_next(const struct hf_locals *locals, uint32_t *slot);

static inline uint32_t hf_locals_chunk(uint32_t slot)
{
    return slot < HF_LOCALS_FIRST ? 0 : 32 - 4 - (uint32_t)__builtin_clz(slot);
}

static inline uint32_t hf_locals_start(uint32_t chunk)
{
    return chunk == 0 ? 0 : HF_LOCALS_FIRST << (chunk - 1);
}

/* The record of a slot, or NULL. `bytes` is what init was told: a constant
 * makes this quick. */
static inline void *hf_locals_find(const struct hf_locals *locals,
                                   uint32_t slot, size_t bytes)
{
    uint32_t chunk = hf_locals_chunk(slot);
    /* Acquire: the chunk was zeroed before it was published. seq_cst: who
     * looks for what threads announced in their records must not miss the
     * chunk of one that announced before. */
    char *records =
        (char *)hf_ptr_load(&locals->chunks[chunk], __ATOMIC_SEQ_CST);
    return records == NULL ? NULL
                           : records + (slot - hf_locals_start(chunk)) * bytes;
}

/* The record of this thread if it is in the first chunk, else NULL. Calls
 * nothing. */
static inline void *hf_locals_quick(const struct hf_locals *locals,
                                    size_t bytes)
{
#ifdef HF_STEPPED
    uint32_t slot = hf_thread_slot();
#else
    uint32_t slot = hf_thread_slot_plus_1 - 1; /* huge if it has none yet */
#endif
    return slot < HF_LOCALS_FIRST ? locals->first + slot * bytes : NULL;
}

/* The record of this thread; NULL without memory. */
static inline void *hf_locals_mine(struct hf_locals *locals, size_t bytes)
{
    uint32_t slot = hf_thread_slot();
    void *record = hf_locals_find(locals, slot, bytes);

    return __builtin_expect(record != NULL, 1) ? record
                                               : hf_locals_make(locals, slot);
}

#endif
