// limiter_cuckoo.cpp - words in a libcuckoo::cuckoohash_map, changed under its
// locks.
#include <libcuckoo/cuckoohash_map.hh>

#include "bench/flow/limits.h"
#include "bench/sync/peers/bytes_key.h"

using map = libcuckoo::cuckoohash_map<std::string, uint64_t, bytes_hash,
                                      std::equal_to<>>;

static map &of(contest_thread *thread)
{
    return *static_cast<map *>(thread->self);
}

CONTEST_INLINE bool map_take(contest_thread *thread, const table_key *key,
                             uint64_t now_ns)
{
    bool allowed = false;
    limits_told told;
    auto decide = [&](uint64_t &word) {
        allowed = limits_decide(thread->work->shape, &word, now_ns, &told);
    };

    if (!of(thread).update_fn(bytes_key(key), decide)) {
        uint64_t word = 0;
        decide(word);
        of(thread).insert(bytes_key(key), word);
    }
    return allowed;
}

static void *map_open(const contest_work *)
{
    return new map();
}

static void map_close(void *self)
{
    delete static_cast<map *>(self);
}

static void map_enter(contest_thread *thread)
{
    limits_fill(thread, map_take);
}

static void map_run(contest_thread *thread)
{
    limits_run(thread, map_take);
}

extern "C" const contest_side limiter_cuckoo = {
    "libcuckoo", map_open, map_close, map_run, map_enter, nullptr, nullptr,
};
