// dedup_mutex.cpp - std::unordered_map of times behind one mutex.
#include <mutex>
#include <unordered_map>

#include "bench/keep/dedup.h"
#include "bench/sync/peers/bytes_key.h"

struct table {
    std::mutex mutex;
    std::unordered_map<std::string, uint64_t, bytes_hash> until;
};

CONTEST_INLINE bool add(contest_thread *thread, const table_key *key,
                        uint64_t now_ns)
{
    table &self = *static_cast<table *>(thread->self);
    std::lock_guard<std::mutex> guard(self.mutex);
    auto result = self.until.try_emplace(std::string(bytes_key(key)), now_ns);
    bool is_new = result.second || result.first->second <= now_ns;

    if (is_new)
        result.first->second = now_ns + DEDUP_WINDOW;
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

extern "C" const contest_side dedup_mutex = {
    "mutex", open, close, run, nullptr, nullptr, nullptr,
};
