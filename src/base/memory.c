/* memory.c - the allocator's door, with a counter that tests can trip. */
#include "base/memory.h"

#include <sys/mman.h>

#include "base/atomic.h"
#include "base/step.h"

/* Of each thread its own: a shared counter would cost more than the allocation
 * where many threads allocate. */
static _Thread_local uint64_t allocation_count;
static _Thread_local uint64_t fail_from = UINT64_MAX;
static _Thread_local uint64_t fail_end = UINT64_MAX;

/* Relaxed, though no other thread looks: the fibers of the tests share them. */
static int must_fail(void)
{
    uint64_t index = __atomic_load_n(&allocation_count, __ATOMIC_RELAXED);

    __atomic_store_n(&allocation_count, index + 1, __ATOMIC_RELAXED);
    return index >= __atomic_load_n(&fail_from, __ATOMIC_RELAXED) &&
           index < __atomic_load_n(&fail_end, __ATOMIC_RELAXED);
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

void hf_memory_fail_after(uint64_t count)
{
    fail_from = allocation_count + count;
    fail_end = UINT64_MAX;
}

void hf_memory_fail_once(uint64_t count)
{
    fail_from = allocation_count + count;
    fail_end = fail_from + 1;
}

void hf_memory_fail_never(void)
{
    fail_from = UINT64_MAX;
}

uint64_t hf_memory_count(void)
{
    return allocation_count;
}
