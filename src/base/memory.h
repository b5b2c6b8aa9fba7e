/* memory.h - where every allocation of the library comes from.
 *
 * One door, so that tests can make any single allocation fail, which the linker
 * does for them, and so that the bytes in use are known. The calls behave as
 * malloc, calloc and free do, with NULL on failure.
 *
 * Threads: safe from any thread.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *hf_alloc(size_t bytes);
void *hf_alloc_zeroed(size_t bytes);
void *hf_realloc(void *old, size_t bytes);
/* `alignment` is a power of two and divides `bytes`. Free with hf_free. */
void *hf_alloc_aligned(size_t alignment, size_t bytes);
/* Zeroed, of whole cache lines. */
void *hf_alloc_lines(size_t bytes);
/* A block of HF_HUGE_BYTES for tables that are read at random: the system is
 * asked to map it with one huge page, which spares most of the address
 * look-ups that would miss. */
#define HF_HUGE_BYTES (2u << 20)
void *hf_alloc_huge(void);
/* The same wish for a block that hf_alloc_aligned() gave, aligned to its size:
 * it is heard some time later, when the block is in use already. */
void hf_advise_huge(void *block);
void hf_free(void *memory);

#endif
