/* memory.c - the allocator's door. */
#include "base/memory.h"

#include <sys/mman.h>

#include "base/atomic.h"
#include "base/step.h"

void *hf_alloc(size_t bytes)
{
    return malloc(bytes);
}

void *hf_alloc_zeroed(size_t bytes)
{
    return calloc(1, bytes);
}

void *hf_realloc(void *old, size_t bytes)
{
    return realloc(old, bytes);
}

void *hf_alloc_aligned(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

void *hf_alloc_lines(size_t bytes)
{
    bytes = (bytes + HF_CACHE_LINE - 1) / HF_CACHE_LINE * HF_CACHE_LINE;
    void *memory = hf_alloc_aligned(HF_CACHE_LINE, bytes);

    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

void *hf_alloc_huge(void)
{
    void *block = hf_alloc_aligned(HF_HUGE_BYTES, HF_HUGE_BYTES);

    if (block != NULL)
        hf_advise_huge(block);
    return block;
}

void hf_advise_huge(void *block)
{
    /* a wish: without huge pages it stays a plain block */
    (void)madvise(block, HF_HUGE_BYTES, MADV_HUGEPAGE);
}

void hf_free(void *memory)
{
#ifdef HF_STEPPED
    step_before_free();
#endif
    free(memory);
}
