// stack_boost.cpp - boost::lockfree::stack.
#include <boost/lockfree/stack.hpp>

#include "bench/sync/fifo.h"

using stack = boost::lockfree::stack<void *>;

static void *stack_open(const contest_work *work)
{
    return new stack(work->size);
}

static void stack_close(void *self)
{
    delete static_cast<stack *>(self);
}

CONTEST_INLINE bool stack_put(contest_thread *thread, void *item)
{
    return static_cast<stack *>(thread->self)->push(item);
}

CONTEST_INLINE bool stack_take(contest_thread *thread, void **item)
{
    return static_cast<stack *>(thread->self)->pop(*item);
}

static void stack_run(contest_thread *thread)
{
    fifo_run(thread, stack_put, stack_take);
}

extern "C" const contest_side stack_boost = {
    "boost", stack_open, stack_close, stack_run, nullptr, nullptr, nullptr,
};
