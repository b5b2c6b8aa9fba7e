/* atomic.h - operations on shared words; each call names its memory order.
 *
 * The order is one of the compiler's __ATOMIC_RELAXED, _ACQUIRE, _RELEASE,
 * _ACQ_REL, _SEQ_CST. There is no fence: a thread sanitizer cannot see fences.
 * Where a store must come before a later load of another word, both are
 * SEQ_CST, or one word is changed by a read-modify-write on both sides.
 *
 *   hf_u64_load(word, order)            hf_u64_store(word, value, order)
 *   hf_u64_swap(word, value, order)     returns what was there
 *   hf_u64_add, _sub, _and, _or         return what was there
 *   hf_u64_cas(word, &expected, value, order)
 *       true: it was `expected` and is now `value`, with `order`. false:
 *       `expected` is what was there, read as the acquire half of `order`
 *       says. Never fails for no reason.
 *
 * and the same for hf_u32 and (without arithmetic) hf_ptr.
 *
 * Through this file and no other way: so the tests' scheduler sees each access.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/step.h"
#include "holdfast/atomic.h"

#define HF_INLINE static inline __attribute__((always_inline, unused))

/* Words that different threads write lie this far apart: two lines, since the
 * processor fetches lines in pairs. */
#define HF_CACHE_LINE 128

/* The order of a compare-and-swap that found something else. */
HF_INLINE int hf_order_failed(int order)
{
    return order == __ATOMIC_RELEASE   ? __ATOMIC_RELAXED
           : order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE
                                       : order;
}

#ifdef HF_STEPPED
#define HF_STEP_CHANGE() step_before_change()
#define HF_LOAD(type, at, order) \
    (type)(uintptr_t) step_load((at), sizeof *(at), (order))
#define HF_STORE(at, value, order) \
    step_store((at), sizeof *(at), (uint64_t)(uintptr_t)(value), (order))
#else
#define HF_STEP_CHANGE()           ((void)0)
#define HF_LOAD(type, at, order)   __atomic_load_n((at), (order))
#define HF_STORE(at, value, order) __atomic_store_n((at), (value), (order))
#endif

#define HF_ATOMIC_WORD(name, type)                                             \
    HF_INLINE type hf_##name##_load(const struct hf_atomic_##name *word,       \
                                    int order)                                 \
    {                                                                          \
        return HF_LOAD(type, &word->value, order);                             \
    }                                                                          \
    HF_INLINE void hf_##name##_store(struct hf_atomic_##name *word,            \
                                     type value, int order)                    \
    {                                                                          \
        HF_STORE(&word->value, value, order);                                  \
    }                                                                          \
    HF_INLINE type hf_##name##_swap(struct hf_atomic_##name *word, type value, \
                                    int order)                                 \
    {                                                                          \
        HF_STEP_CHANGE();                                                      \
        return __atomic_exchange_n(&word->value, value, order);                \
    }                                                                          \
    HF_INLINE bool hf_##name##_cas(struct hf_atomic_##name *word,              \
                                   type *expected, type value, int order)      \
    {                                                                          \
        HF_STEP_CHANGE();                                                      \
        return __atomic_compare_exchange_n(&word->value, expected, value,      \
                                           false, order,                       \
                                           hf_order_failed(order));            \
    }

#define HF_ATOMIC_FETCH(name, type, verb)                            \
    HF_INLINE type hf_##name##_##verb(struct hf_atomic_##name *word, \
                                      type value, int order)         \
    {                                                                \
        HF_STEP_CHANGE();                                            \
        return __atomic_fetch_##verb(&word->value, value, order);    \
    }

HF_ATOMIC_WORD(u32, uint32_t)
HF_ATOMIC_FETCH(u32, uint32_t, add)
HF_ATOMIC_FETCH(u32, uint32_t, sub)
HF_ATOMIC_FETCH(u32, uint32_t, and)
HF_ATOMIC_FETCH(u32, uint32_t, or)
HF_ATOMIC_WORD(u64, uint64_t)
HF_ATOMIC_FETCH(u64, uint64_t, add)
HF_ATOMIC_FETCH(u64, uint64_t, sub)
HF_ATOMIC_FETCH(u64, uint64_t, and)
HF_ATOMIC_FETCH(u64, uint64_t, or)
HF_ATOMIC_WORD(ptr, void *)

#undef HF_ATOMIC_WORD
#undef HF_ATOMIC_FETCH
#undef HF_STEP_CHANGE
#undef HF_LOAD
#undef HF_STORE

#endif
