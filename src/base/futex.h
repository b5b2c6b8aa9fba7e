/* futex.h - a thread sleeps on a word until another wakes it.
 *
 * The lowest step of all waiting; sync/event.h stands on it and everything
 * that blocks stands on that.
 */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdint.h>

#include "holdfast/clock.h"

/* Sleeps while `*word == expected`, at most until `deadline_ns` by `clock`.
 * May return early for no reason: the caller looks again. */
void hf_futex_wait(const uint32_t *word, uint32_t expected,
                   const struct hf_clock *clock, uint64_t deadline_ns);
/* Wakes at most `count` of those who sleep on `word`. */
void hf_futex_wake(const uint32_t *word, uint32_t count);

#endif
