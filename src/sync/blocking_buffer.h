/* blocking_buffer.h - puts and takes that need not wait, for the kinds that
 * have a buffer. Inline, so that each kind's own calls are compiled into them;
 * `buffer` is a constant wherever they are used in a kind's put and take.
 */
#ifndef SYNC_BLOCKING_BUFFER_H
#define SYNC_BLOCKING_BUFFER_H

#include <assert.h>

#include "sync/blocking_state.h"

/* The rest of a put and of a take that could not be done at once. The queue is
 * locked before and not after. */
enum hf_status hf_buffer_put_slow(struct hf_blocking *queue,
                                  const struct blocking_new *what,
                                  uint64_t deadline_ns, enum hf_status status);
enum hf_status hf_buffer_take_slow(struct hf_blocking *queue, void **item,
                                   uint64_t deadline_ns, enum hf_status status);
size_t hf_buffer_drain(struct hf_blocking *queue, void **items, size_t max);

/* Whom to wake when the lock has been given back. */
struct buffer_wakes {
    uint32_t takers;
    uint32_t putters;
};

HF_INLINE void buffer_unlock_and_wake(struct hf_blocking *queue,
                                      struct buffer_wakes wakes)
{
    hf_mutex_unlock(&queue->mutex);
    if (__builtin_expect(wakes.takers != 0, 0))
        hf_event_wake(&queue->items, wakes.takers);
    if (__builtin_expect(wakes.putters != 0, 0))
        hf_event_wake(&queue->room, wakes.putters);
}

/* HF_PENDING: there is no room. */
HF_INLINE enum hf_status buffer_add(struct hf_blocking *queue,
                                    const struct blocking_buffer *buffer,
                                    const struct blocking_new *what,
                                    struct buffer_wakes *wakes)
{
    uint64_t count = blocking_count(queue);
    bool is_next = true;

    if (queue->shut)
        return HF_CLOSED;
    if (count >= queue->capacity)
        return HF_PENDING;
    if (buffer->visible_ns != NULL)
        is_next = count == 0 || what->rank < buffer->visible_ns(queue);
    enum hf_status status = buffer->add(queue, what);
    if (status != HF_OK)
        return status;
    blocking_count_set(queue, count + 1);
    queue->put++;
    if (buffer->visible_ns != NULL && is_next)
        queue->in.order.leader = NULL;
    wakes->takers = is_next && queue->takers != 0;
    return HF_OK;
}

/* HF_PENDING: there is nothing to take yet. */
HF_INLINE enum hf_status buffer_remove(struct hf_blocking *queue,
                                       const struct blocking_buffer *buffer,
                                       void **item, struct buffer_wakes *wakes)
{
    uint64_t count = blocking_count(queue);

    if (count == 0)
        return queue->shut ? HF_CLOSED : HF_PENDING;
    if (buffer->visible_ns != NULL &&
        buffer->visible_ns(queue) > blocking_now_ns(queue))
        return HF_PENDING;
    *item = buffer->remove(queue);
    blocking_count_set(queue, count - 1);
    queue->taken++;
    if (queue->putters != 0)
        wakes->putters++;
    if (queue->shut && count == 1)
        wakes->takers = UINT32_MAX; /* nothing will come for them */
    return HF_OK;
}

/* A taker leaves: are there items for which nobody gets up in time? */
HF_INLINE bool buffer_lacks_leader(const struct hf_blocking *queue,
                                   const struct blocking_buffer *buffer)
{
    return buffer->visible_ns != NULL && queue->takers != 0 &&
           blocking_count(queue) != 0 && queue->in.order.leader == NULL;
}

HF_INLINE enum hf_status buffer_put(struct hf_blocking *queue,
                                    const struct blocking_buffer *buffer,
                                    void *item, uint64_t rank,
                                    uint64_t deadline_ns)
{
    struct blocking_new what = blocking_new(queue, item, rank);
    struct buffer_wakes wakes = {0, 0};

    hf_mutex_lock(&queue->mutex);
    enum hf_status status = buffer_add(queue, buffer, &what, &wakes);
    if (__builtin_expect(status != HF_OK, 0))
        return hf_buffer_put_slow(queue, &what, deadline_ns, status);
    buffer_unlock_and_wake(queue, wakes);
    return HF_OK;
}

HF_INLINE enum hf_status buffer_take(struct hf_blocking *queue,
                                     const struct blocking_buffer *buffer,
                                     void **item, uint64_t deadline_ns)
{
    struct buffer_wakes wakes = {0, 0};

    hf_mutex_lock(&queue->mutex);
    enum hf_status status = buffer_remove(queue, buffer, item, &wakes);
    if (__builtin_expect(status != HF_OK, 0))
        return hf_buffer_take_slow(queue, item, deadline_ns, status);
    if (buffer_lacks_leader(queue, buffer) && wakes.takers == 0)
        wakes.takers = 1;
    buffer_unlock_and_wake(queue, wakes);
    return HF_OK;
}

/* The put and take of a kind, compiled for its buffer. */
#define BUFFER_CALLS(kind)                                                    \
    static enum hf_status kind##_put(struct hf_blocking *queue, void *item,   \
                                     uint64_t rank, uint64_t deadline_ns)     \
    {                                                                         \
        return buffer_put(queue, &kind##_buffer, item, rank, deadline_ns);    \
    }                                                                         \
    static enum hf_status kind##_take(struct hf_blocking *queue, void **item, \
                                      uint64_t deadline_ns)                   \
    {                                                                         \
        return buffer_take(queue, &kind##_buffer, item, deadline_ns);         \
    }

#endif
