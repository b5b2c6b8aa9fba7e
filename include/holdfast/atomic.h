/* atomic.h - an atomic word that C and C++ see alike.
 *
 * `_Atomic` is not C++, so public structs hold this wrapper. The operations
 * are the compiler's builtins and name their memory order at the call.
 */
#ifndef HOLDFAST_ATOMIC_H
#define HOLDFAST_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_atomic_u64 {
    uint64_t value; /* only through the functions below */
};

static inline uint64_t hf_atomic_load_relaxed(const struct hf_atomic_u64 *word)
{
    return __atomic_load_n(&word->value, __ATOMIC_RELAXED);
}

static inline void hf_atomic_store_relaxed(struct hf_atomic_u64 *word,
                                           uint64_t value)
{
    __atomic_store_n(&word->value, value, __ATOMIC_RELAXED);
}

/* Replaces `*expected` by `desired`. On failure `*expected` is what was found;
 * the failure may be spurious. Relaxed: orders nothing but the word itself. */
static inline bool hf_atomic_swap_if_relaxed(struct hf_atomic_u64 *word,
                                             uint64_t *expected,
                                             uint64_t desired)
{
    return __atomic_compare_exchange_n(&word->value, expected, desired, true,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
