/* memory.c - the allocator's door, with a counter that tests can trip. */
#include "base/memory.h"

#include <sys/mman.h>

#include "holdfast/atomic.h"

static struct hf_atomic_u64 allocation_count;         /* (a) */
static struct hf_atomic_u64 fail_from = {UINT64_MAX}; /* (a) */

/* Relaxed: counts and a test switch; they publish no other memory. */
static int must_fail(void)
{
    uint64_t index =
        __atomic_fetch_add(&allocation_count.value, 1, __ATOMIC_RELAXED);
    return index >= hf_atomic_load_relaxed(&fail_from);
}

void *hf_alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes);
}

void *hf_alloc_zeroed(size_t bytes)
{
    return must_fail() ? NULL : calloc(1, bytes);
}

void *hf_realloc(void *old, size_t bytes)
{
    return must_fail() ? NULL : realloc(old, bytes);
}

void *hf_alloc_aligned(size_t alignment, size_t bytes)
{
    return must_fail() ? NULL : aligned_alloc(alignment, bytes);
}

void *hf_alloc_huge(void)
{
    void *block = hf_alloc_aligned(HF_HUGE_BYTES, HF_HUGE_BYTES);

    if (block != NULL) /* a wish: without huge pages it is a plain block */
        (void)madvise(block, HF_HUGE_BYTES, MADV_HUGEPAGE);
    return block;
}

void hf_free(void *memory)
{
    free(memory);
}

void hf_memory_fail_after(uint64_t count)
{
    hf_atomic_store_relaxed(&fail_from, hf_memory_count() + count);
}

void hf_memory_fail_never(void)
{
    hf_atomic_store_relaxed(&fail_from, UINT64_MAX);
}

uint64_t hf_memory_count(void)
{
    return hf_atomic_load_relaxed(&allocation_count);
}
