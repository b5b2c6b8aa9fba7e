// log_spdlog.cpp - spdlog's asynchronous logger, with a file.
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <memory>

#include "bench/exec/log.h"

namespace
{

struct logger {
    log_file file; // first
    std::shared_ptr<spdlog::details::thread_pool> pool;
    std::shared_ptr<spdlog::async_logger> log;
};

void *open_log(const contest_work *work)
{
    auto *self = new logger();
    std::size_t room = work->shape == LOG_BURST
                           ? LOG_BURST_ROOM
                           : spdlog::details::default_async_q_size;

    log_file_make(&self->file, work);
    auto sink =
        std::make_shared<spdlog::sinks::basic_file_sink_mt>(self->file.path);
    self->pool = std::make_shared<spdlog::details::thread_pool>(room, 1);
    self->log = std::make_shared<spdlog::async_logger>(
        "log", sink, self->pool, spdlog::async_overflow_policy::block);
    self->log->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %-5l %v",
                           spdlog::pattern_time_type::utc);
    return self;
}

// The pool ends when it has written all; with the logger goes the file.
void finish(void *argument)
{
    auto *self = static_cast<logger *>(argument);
    self->pool.reset();
    self->log.reset();
}

void close_log(void *argument)
{
    auto *self = static_cast<logger *>(argument);
    finish(self);
    log_file_end(&self->file);
    delete self;
}

CONTEST_INLINE void write(void *argument, uint64_t number, unsigned thread)
{
    static_cast<logger *>(argument)->log->info(
        "request {} of client {}: reserved {}, {} of {} left", number, thread,
        "product-000042", 17, 100);
}

void run(contest_thread *thread)
{
    log_run(thread, write, finish);
}

} // namespace

extern "C" const contest_side log_spdlog = {
    "spdlog", open_log, close_log, run, nullptr, nullptr, nullptr,
};
