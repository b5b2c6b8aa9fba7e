// cache_tbb.cpp - tbb::concurrent_lru_cache, which only gets or loads. Its keys
// are ordered; it keeps `room` that nobody holds.
#define TBB_PREVIEW_CONCURRENT_LRU_CACHE 1
#include <string>
#include <tbb/concurrent_lru_cache.h>

#include "bench/keep/cache.h"

static void *value_of(std::string key)
{
    table_key bytes;

    memcpy(bytes.bytes, key.data(), sizeof bytes.bytes);
    return cache_loaded(&bytes);
}

using lru = tbb::concurrent_lru_cache<std::string, void *>;

CONTEST_INLINE void *load(contest_thread *thread, const table_key *key)
{
    lru &cache = *static_cast<lru *>(thread->self);
    auto handle = cache[std::string(key->bytes, sizeof key->bytes)];

    return handle.value();
}

CONTEST_INLINE bool get(contest_thread *thread, const table_key *key,
                        void **value)
{
    *value = load(thread, key);
    return true;
}

CONTEST_INLINE void put(contest_thread *, const table_key *, void *)
{
    contest_fail("there is no put");
}

static void *open(const contest_work *work)
{
    return work->shape == CACHE_MIXED ? nullptr : new lru(value_of, work->size);
}

static void close(void *self)
{
    delete static_cast<lru *>(self);
}

static void run(contest_thread *thread)
{
    cache_run(thread, get, put, load);
}

extern "C" const contest_side cache_tbb = {
    "tbb", open, close, run, cache_enter, nullptr, nullptr,
};
