/* bytes_key.h - byte strings as keys, for the peers in C++.
 *
 * The map owns a std::string; look-ups ask with a view of the caller's bytes,
 * so that they allocate nothing. Hashed by XXH3.
 */
#ifndef BENCH_SYNC_PEERS_BYTES_KEY_H
#define BENCH_SYNC_PEERS_BYTES_KEY_H

#ifdef __cplusplus

#define XXH_INLINE_ALL
#include <string>
#include <string_view>
#include <xxhash.h>

#include "bench/sync/table.h"

static inline std::string_view bytes_key(const table_key *key)
{
    return std::string_view(key->bytes, TABLE_KEY_BYTES);
}

/* As the standard library and as tbb want it. */
struct bytes_hash {
    using is_transparent = void;

    size_t operator()(std::string_view key) const
    {
        return XXH3_64bits(key.data(), key.size());
    }
    size_t hash(std::string_view key) const
    {
        return (*this)(key);
    }
    bool equal(std::string_view a, std::string_view b) const
    {
        return a == b;
    }
};

#endif

#endif
