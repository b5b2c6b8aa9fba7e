/* step.h - where the deterministic scheduler of the tests takes hold.
 *
 * Everything by which threads meet goes through one shim: atomic operations
 * (atomic.h), sleeping and waking (futex.h), who a thread is (thread.h), time
 * (clock.c). Built with HF_STEPPED, the shim calls the functions below, which
 * test/support/schedule.c defines: threads become fibers of one thread, and at
 * every step a seed decides which of them goes on. In the product there is
 * nothing of this.
 */
#ifndef BASE_STEP_H
#define BASE_STEP_H

#ifdef HF_STEPPED

#include <stdbool.h>
#include <stdint.h>

/* One atomic access of `bytes` (4 or 8); `order` is one of __ATOMIC_*. Another
 * fiber may run first. A store that is not seq_cst may stay in the fiber's
 * store buffer for a while, as it may in a processor's. */
uint64_t step_load(const void *at, unsigned bytes, int order);
void step_store(void *at, unsigned bytes, uint64_t value, int order);
/* Before a read-modify-write: the store buffer is emptied, as a processor
 * does, and another fiber may run. The caller then does the access itself. */
void step_before_change(void);
/* Before memory is freed: the store buffer is emptied. */
void step_before_free(void);

/* Sleeps while `*word == expected`; may return early for no reason. */
void step_wait(const uint32_t *word, uint32_t expected, uint64_t deadline_ns);
void step_wake(const uint32_t *word, uint32_t count);
/* The running fiber can do nothing until another has run. */
void step_yield(void);
/* The number of the running fiber, or of the thread outside: 0 is outside. */
uint32_t step_slot(void);
/* A fiber that runs `body` as a thread would; from fibers only. */
uint32_t step_start(void (*body)(void *argument), void *argument);
/* Waits until it has ended, once. */
void step_join(uint32_t slot);
/* Virtual time: passes by the seed, and when every fiber sleeps. */
uint64_t step_now_ns(void);

#endif

#endif
