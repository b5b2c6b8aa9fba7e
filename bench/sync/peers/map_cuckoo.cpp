// map_cuckoo.cpp - libcuckoo::cuckoohash_map.
#include <libcuckoo/cuckoohash_map.hh>

#include "bytes_key.h"

using map =
    libcuckoo::cuckoohash_map<std::string, void *, bytes_hash, std::equal_to<>>;

static map &of(contest_thread *thread)
{
    return *static_cast<map *>(thread->self);
}

CONTEST_INLINE bool map_get(contest_thread *thread, const table_key *key,
                            void **value)
{
    return of(thread).find(bytes_key(key), *value);
}

CONTEST_INLINE void map_put(contest_thread *thread, const table_key *key,
                            void *value)
{
    of(thread).insert_or_assign(bytes_key(key), value);
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

extern "C" const contest_side map_cuckoo = {
    "libcuckoo", map_open, map_close, map_run, map_enter, nullptr, map_check,
};
