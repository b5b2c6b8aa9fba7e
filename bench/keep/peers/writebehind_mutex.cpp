// writebehind_mutex.cpp - a map behind a mutex, and a thread that empties it
// every 100 ms or when there are 1,000 keys. No groups, no bound, no order.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "bench/keep/writebehind.h"

struct behind {
    std::mutex mutex;
    std::condition_variable more;
    std::unordered_map<std::string, std::string> dirty;
    bool ended = false;
    uint64_t written = 0;
    std::thread thread;

    void work()
    {
        std::unique_lock<std::mutex> guard(mutex);
        while (!ended) {
            more.wait_for(guard, std::chrono::milliseconds(100),
                          [this] { return ended || dirty.size() >= 1000; });
            std::unordered_map<std::string, std::string> batch;
            batch.swap(dirty);
            guard.unlock();
            written += batch.size(); // the store that keeps nothing
            batch.clear();
            guard.lock();
        }
    }
};

static void *open(const contest_work *work)
{
    if (work->shape != WB_PUT)
        return nullptr;
    behind *self = new behind();
    self->thread = std::thread([self] { self->work(); });
    return self;
}

static void close(void *context)
{
    behind *self = static_cast<behind *>(context);
    {
        std::lock_guard<std::mutex> guard(self->mutex);
        self->ended = true;
    }
    self->more.notify_one();
    self->thread.join();
    delete self;
}

CONTEST_INLINE void put(contest_thread *thread, const char *key,
                        const char *value)
{
    behind &self = *static_cast<behind *>(thread->self);
    std::string name(key, WB_KEY_BYTES), text(value, WB_VALUE_BYTES);
    size_t size;
    {
        std::lock_guard<std::mutex> guard(self.mutex);
        self.dirty[std::move(name)] = std::move(text);
        size = self.dirty.size();
    }
    if (size == 1000)
        self.more.notify_one();
}

static void finish(contest_thread *)
{
}

static void run(contest_thread *thread)
{
    wb_run(thread, put, finish);
}

extern "C" const contest_side writebehind_mutex = {
    "mutex", open, close, run, nullptr, nullptr, nullptr,
};
