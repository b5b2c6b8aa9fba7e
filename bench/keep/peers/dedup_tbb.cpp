// dedup_tbb.cpp - tbb::concurrent_hash_map of times.
#include <tbb/concurrent_hash_map.h>

#include "bench/keep/dedup.h"
#include "bench/sync/peers/bytes_key.h"

using table = tbb::concurrent_hash_map<std::string, uint64_t, bytes_hash>;

CONTEST_INLINE bool add(contest_thread *thread, const table_key *key,
                        uint64_t now_ns)
{
    table::accessor at;
    bool is_new = static_cast<table *>(thread->self)
                      ->insert(at, std::string(bytes_key(key)));

    is_new = is_new || at->second <= now_ns;
    if (is_new)
        at->second = now_ns + DEDUP_WINDOW;
    return is_new;
}

static void *open(const contest_work *)
{
    return new table();
}

static void close(void *self)
{
    delete static_cast<table *>(self);
}

static void run(contest_thread *thread)
{
    dedup_run(thread, add);
}

extern "C" const contest_side dedup_tbb = {
    "tbb", open, close, run, nullptr, nullptr, nullptr,
};
