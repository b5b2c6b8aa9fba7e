// locks_tbb.cpp - tbb::concurrent_hash_map with a mutex for each name.
#include <tbb/concurrent_hash_map.h>

#include <memory>
#include <mutex>
#include <string>

#include "bench/sync/locks.h"

using map = tbb::concurrent_hash_map<std::string, std::shared_ptr<std::mutex>>;

struct side {
    struct locks locks; // first
    map table;
};

static void *side_open(const contest_work *)
{
    side *opened = new side();

    locks_open(&opened->locks);
    return opened;
}

static void side_close(void *self)
{
    delete static_cast<side *>(self);
}

// Mutexes stay in the map. A shared request takes the mutex as well.
CONTEST_INLINE uint64_t side_acquire(locks *locks, uint64_t name, int)
{
    map &table = reinterpret_cast<side *>(locks)->table;
    std::mutex *mutex;
    map::const_accessor found;

    if (table.find(found, locks->names[name])) {
        mutex = found->second.get();
    } else {
        map::accessor made;
        if (table.insert(made, locks->names[name]))
            made->second = std::make_shared<std::mutex>();
        mutex = made->second.get();
    }
    found.release();
    mutex->lock();
    return reinterpret_cast<uint64_t>(mutex);
}

CONTEST_INLINE void side_release(locks *, uint64_t, uint64_t got)
{
    reinterpret_cast<std::mutex *>(got)->unlock();
}

static void side_run(contest_thread *thread)
{
    locks_run(thread, side_acquire, side_release);
}

extern "C" const contest_side locks_tbb = {
    "tbb", side_open, side_close, side_run, nullptr, nullptr, locks_check,
};
