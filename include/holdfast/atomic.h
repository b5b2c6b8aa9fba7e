/* atomic.h - words that threads share, as C and C++ both see them.
 *
 * `_Atomic` is not C++, so public structs hold these wrappers. They are here
 * for their size only: the library reads and writes them, users never do.
 */
#ifndef HOLDFAST_ATOMIC_H
#define HOLDFAST_ATOMIC_H

#include <stdint.h>

struct hf_atomic_u32 {
    uint32_t value;
};

struct hf_atomic_u64 {
    uint64_t value;
};

struct hf_atomic_ptr {
    void *value;
};

#endif
