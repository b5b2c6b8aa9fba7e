// map_tbb.cpp - tbb::concurrent_hash_map.
#include <tbb/concurrent_hash_map.h>

#include "bytes_key.h"

using map = tbb::concurrent_hash_map<std::string, void *, bytes_hash>;

static map &of(contest_thread *thread)
{
    return *static_cast<map *>(thread->self);
}

CONTEST_INLINE bool map_get(contest_thread *thread, const table_key *key,
                            void **value)
{
    map::const_accessor found;
    if (!of(thread).find(found, bytes_key(key)))
        return false;
    *value = found->second;
    return true;
}

CONTEST_INLINE void map_put(contest_thread *thread, const table_key *key,
                            void *value)
{
    map::accessor place;
    of(thread).insert(place, bytes_key(key));
    place->second = value;
}

CONTEST_INLINE void map_remove(contest_thread *thread, const table_key *key)
{
    of(thread).erase(bytes_key(key));
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
    table_fill(thread, map_get, map_put);
}

static void map_run(contest_thread *thread)
{
    table_run(thread, map_get, map_put, map_remove);
}

static void map_check(contest_thread *thread)
{
    table_check(thread, map_get);
}

extern "C" const contest_side map_tbb = {
    "tbb", map_open, map_close, map_run, map_enter, nullptr, map_check,
};
