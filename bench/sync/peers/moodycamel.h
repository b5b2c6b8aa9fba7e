/* moodycamel.h - the side that ring and queue share: its ConcurrentQueue.
 *
 * Each thread has its tokens, as its manual advises; they last as long as the
 * queue, since a producer's blocks stay with it. It promises less than the
 * others: no order between producers, and "empty" may be wrong for a moment.
 */
#ifndef BENCH_SYNC_PEERS_MOODYCAMEL_H
#define BENCH_SYNC_PEERS_MOODYCAMEL_H

#ifdef __cplusplus

#include <concurrentqueue/concurrentqueue.h>
#include <deque>

#include "bench/sync/fifo.h"

struct camel_tokens {
    moodycamel::ProducerToken producer;
    moodycamel::ConsumerToken consumer;
    char apart[CONTEST_LINE];
};

struct camel {
    moodycamel::ConcurrentQueue<void *> queue;
    std::deque<camel_tokens> tokens;

    template <typename... Size>
    camel(unsigned threads, Size... size) : queue(size...)
    {
        for (unsigned i = 0; i < threads; i++)
            tokens.push_back(camel_tokens{moodycamel::ProducerToken(queue),
                                          moodycamel::ConsumerToken(queue),
                                          {}});
    }
};

static void camel_close(void *self)
{
    delete static_cast<camel *>(self);
}

static void camel_enter(contest_thread *thread)
{
    camel *both = static_cast<camel *>(thread->self);
    thread->own = &both->tokens[thread->index];
}

static inline moodycamel::ConcurrentQueue<void *> &
camel_queue(contest_thread *thread)
{
    return static_cast<camel *>(thread->self)->queue;
}

static inline camel_tokens &camel_own(contest_thread *thread)
{
    return *static_cast<camel_tokens *>(thread->own);
}

CONTEST_INLINE bool camel_take(contest_thread *thread, void **item)
{
    return camel_queue(thread).try_dequeue(camel_own(thread).consumer, *item);
}

#endif

#endif
