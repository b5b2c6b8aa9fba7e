/* blocking_buffer.c - how callers wait for items and for room.
 *
 * Why no wake-up is lost. A taker that finds nothing announces itself to the
 * event and is counted before it gives the lock back. Whoever adds an item
 * after that finds it counted and wakes one. A woken taker looks again under
 * the lock, also when its deadline has come at the same time: so either it
 * takes the item or another taker has, and in both cases the wake-up was not in
 * vain. The same with putters and room.
 *
 * Why one is enough. An item that is added wakes one taker if any is counted.
 * The count goes down when the taker has the lock again, so that a put in
 * between asks the event once more; the event knows who is being woken already.
 *
 * DELAY: takers who wait for the next item to become visible need not all wake
 * up then. One of them, the leader, sleeps until that time, the others until
 * they are called. An item that becomes the next one deposes the leader and
 * wakes one taker (the leader or not), which then leads. Whoever leaves and
 * finds items without a leader wakes one more taker.
 */
#include "sync/blocking_buffer.h"

#include "base/thread.h"

static bool is_timed(const struct hf_blocking *queue)
{
    return queue->buffer->visible_ns != NULL;
}

/* Gives the lock back for a moment, until the count is another than `count` or
 * sleeping is the better way to wait. */
static void look_around(struct hf_blocking *queue, uint64_t count)
{
    int spins = hf_thread_spins(BLOCKING_SPINS);

    if (spins == 0)
        return;
    hf_mutex_unlock(&queue->mutex);
    for (; spins > 0 && blocking_count(queue) == count; spins--)
        hf_thread_pause();
    hf_mutex_lock(&queue->mutex);
}

/* Sleeps for room and tries again until that ends well or badly. */
static enum hf_status add_later(struct hf_blocking *queue,
                                const struct blocking_new *what,
                                uint64_t deadline_ns,
                                struct buffer_wakes *wakes)
{
    bool late = false;
    enum hf_status status;

    while ((status = buffer_add(queue, queue->buffer, what, wakes)) ==
               HF_PENDING &&
           !late) {
        uint32_t key = hf_event_prepare(&queue->room);
        queue->putters++;
        hf_mutex_unlock(&queue->mutex);
        late = hf_event_wait(&queue->room, key, queue->opts.clock,
                             deadline_ns) == HF_TIMEOUT;
        hf_mutex_lock(&queue->mutex);
        queue->putters--;
    }
    return status;
}

enum hf_status hf_buffer_put_slow(struct hf_blocking *queue,
                                  const struct blocking_new *what,
                                  uint64_t deadline_ns, enum hf_status status)
{
    struct buffer_wakes wakes = {0, 0};
    uint64_t started_ns = 0;
    bool slept = false;

    if (status == HF_PENDING && deadline_ns != HF_NOW) {
        look_around(queue, queue->capacity);
        status = buffer_add(queue, queue->buffer, what, &wakes);
    }
    if (status == HF_PENDING && deadline_ns != HF_NOW) {
        slept = true;
        started_ns = blocking_now_ns(queue);
        status = add_later(queue, what, deadline_ns, &wakes);
    }
    if (status == HF_PENDING)
        status = HF_TIMEOUT;
    if (status == HF_TIMEOUT || status == HF_CLOSED)
        queue->rejected++;
    if (status == HF_NOMEM && queue->putters != 0)
        wakes.putters = 1; /* there is room for another */
    buffer_unlock_and_wake(queue, wakes);
    if (slept)
        hf_waits_note(&queue->put_waits, blocking_now_ns(queue) - started_ns);
    return status;
}

/* Until when the taker `me` may sleep if nobody calls it. */
static uint64_t lead(struct hf_blocking *queue, const void *me,
                     uint64_t deadline_ns)
{
    if (!is_timed(queue) || blocking_count(queue) == 0 ||
        queue->in.order.leader != NULL)
        return deadline_ns;
    uint64_t visible_ns = queue->buffer->visible_ns(queue);
    queue->in.order.leader = me;
    return visible_ns < deadline_ns ? visible_ns : deadline_ns;
}

static void stop_leading(struct hf_blocking *queue, const void *me)
{
    if (is_timed(queue) && queue->in.order.leader == me)
        queue->in.order.leader = NULL;
}

/* Sleeps for an item and tries again until that ends well or badly. */
static enum hf_status remove_later(struct hf_blocking *queue, void **item,
                                   uint64_t deadline_ns,
                                   struct buffer_wakes *wakes)
{
    bool late = false;
    enum hf_status status;
    const void *me = &late; /* an address that no other taker has */

    while ((status = buffer_remove(queue, queue->buffer, item, wakes)) ==
               HF_PENDING &&
           !late) {
        uint64_t until_ns = lead(queue, me, deadline_ns);
        uint32_t key = hf_event_prepare(&queue->items);
        queue->takers++;
        hf_mutex_unlock(&queue->mutex);
        enum hf_status waited =
            hf_event_wait(&queue->items, key, queue->opts.clock, until_ns);
        late = waited == HF_TIMEOUT && until_ns == deadline_ns;
        hf_mutex_lock(&queue->mutex);
        queue->takers--;
        stop_leading(queue, me);
    }
    return status;
}

enum hf_status hf_buffer_take_slow(struct hf_blocking *queue, void **item,
                                   uint64_t deadline_ns, enum hf_status status)
{
    struct buffer_wakes wakes = {0, 0};
    uint64_t started_ns = 0;
    bool slept = false;

    if (status == HF_PENDING && deadline_ns != HF_NOW && !is_timed(queue)) {
        look_around(queue, 0);
        status = buffer_remove(queue, queue->buffer, item, &wakes);
    }
    if (status == HF_PENDING && deadline_ns != HF_NOW) {
        slept = true;
        started_ns = blocking_now_ns(queue);
        status = remove_later(queue, item, deadline_ns, &wakes);
    }
    if (status == HF_PENDING)
        status = HF_TIMEOUT;
    if (status == HF_TIMEOUT)
        queue->take_timeouts++;
    if (buffer_lacks_leader(queue, queue->buffer) && wakes.takers == 0)
        wakes.takers = 1;
    buffer_unlock_and_wake(queue, wakes);
    if (slept)
        hf_waits_note(&queue->take_waits, blocking_now_ns(queue) - started_ns);
    return status;
}

size_t hf_buffer_drain(struct hf_blocking *queue, void **items, size_t max)
{
    struct buffer_wakes wakes = {0, 0};
    size_t count = 0;

    hf_mutex_lock(&queue->mutex);
    while (count < max &&
           buffer_remove(queue, queue->buffer, &items[count], &wakes) == HF_OK)
        count++;
    if (buffer_lacks_leader(queue, queue->buffer) && wakes.takers == 0)
        wakes.takers = 1;
    buffer_unlock_and_wake(queue, wakes);
    return count;
}
