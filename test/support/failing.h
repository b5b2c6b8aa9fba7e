/* failing.h - no memory, and no room for a thread, when a test says so.
 *
 * The linker hands the calls of base/memory.h, and the start of threads, to
 * failing.c first (--wrap): the library knows nothing of it.
 *
 * Threads: each has counts of its own; fibers of one thread share them.
 */
#ifndef TEST_SUPPORT_FAILING_H
#define TEST_SUPPORT_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* In this thread the allocation after `count` more successful ones fails, and
 * every one after it too, until hf_memory_fail_never(). */
void hf_memory_fail_after(uint64_t count);
/* The same, but those after it succeed: who overlooks one failure is not saved
 * by the next. */
void hf_memory_fail_once(uint64_t count);
void hf_memory_fail_never(void);
/* Allocations of this thread since it started, to size a fault loop. */
uint64_t hf_memory_count(void);

/* In this thread the start after `count` more fails as if the system had no
 * room, and every one after it too, until hf_thread_fail_never(). */
void hf_thread_fail_after(uint64_t count);
void hf_thread_fail_never(void);

/* Is this thread inside the allocator? For a signal handler. */
bool failing_allocates(void);
/* Called whenever a thread leaves it; set before there are others. */
extern void (*failing_left)(void);

#endif
