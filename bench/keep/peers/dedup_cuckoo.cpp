// dedup_cuckoo.cpp - libcuckoo::cuckoohash_map of times.
#include <libcuckoo/cuckoohash_map.hh>

#include "bench/keep/dedup.h"
#include "bench/sync/peers/bytes_key.h"

using table = libcuckoo::cuckoohash_map<std::string, uint64_t, bytes_hash,
                                        std::equal_to<>>;

CONTEST_INLINE bool add(contest_thread *thread, const table_key *key,
                        uint64_t now_ns)
{
    bool expired = false;
    bool is_new = static_cast<table *>(thread->self)
                      ->upsert(
                          bytes_key(key),
                          [&](uint64_t &until_ns) {
                              expired = until_ns <= now_ns;
                              if (expired)
                                  until_ns = now_ns + DEDUP_WINDOW;
                          },
                          now_ns + DEDUP_WINDOW);

    return is_new || expired;
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

extern "C" const contest_side dedup_cuckoo = {
    "libcuckoo", open, close, run, nullptr, nullptr, nullptr,
};
