/* multiqueue.c - putting, taking and promoting, under one lock.
 *
 * Who is woken. An item wakes one taker. Room wakes one putter: of those who
 * could use it, one of the highest class. It may have been called already, for
 * other room, or it may give up, or find that somebody was quicker; so whoever
 * comes out of a wait for room calls the next, if there is room for one.
 */
#include "holdfast/multiqueue.h"

#include <assert.h>

#include "exec/multiqueue_state.h"

static void give(const struct hf_multiqueue *queue,
                 const struct multiqueue_alarms *alarms)
{
    for (uint32_t i = 0; i < alarms->count && queue->opts.alarm != NULL; i++)
        queue->opts.alarm(queue->opts.context, alarms->classes[i],
                          alarms->waited_ns[i]);
}

/* ---- Room. ---- */

static bool has_room(const struct hf_multiqueue *queue, uint32_t class_index)
{
    return queue->classes[class_index].counts.depth < queue->opts.capacity;
}

/* The class that an item is put into: its own, or one below. */
static uint32_t place_for(const struct hf_multiqueue *queue,
                          uint32_t class_index)
{
    uint32_t lowest = queue->opts.overflow == HF_MULTIQUEUE_LOWER
                          ? queue->opts.classes - 1
                          : class_index;

    for (uint32_t i = class_index; i <= lowest; i++) {
        if (has_room(queue, i))
            return i;
    }
    return MULTIQUEUE_NONE;
}

/* The highest class in which somebody waits for room that there is. */
static uint32_t class_to_call(const struct hf_multiqueue *queue)
{
    assert(hf_mutex_held(&queue->mutex));
    for (uint32_t i = 0; queue->blocked > 0 && i < queue->opts.classes; i++) {
        if (queue->classes[i].blocked > 0 &&
            place_for(queue, i) != MULTIQUEUE_NONE)
            return i;
    }
    return MULTIQUEUE_NONE;
}

/* After the lock was opened. */
static void call(struct hf_multiqueue *queue, uint32_t class_index)
{
    if (class_index != MULTIQUEUE_NONE)
        hf_event_wake(&queue->classes[class_index].room, 1);
}

/* Opens the lock, waits for room and locks again. HF_TIMEOUT: the deadline has
 * passed. */
static enum hf_status wait_for_room(struct hf_multiqueue *queue,
                                    uint32_t class_index, uint64_t now_ns,
                                    uint64_t deadline_ns)
{
    struct class_state *class_state = &queue->classes[class_index];
    uint64_t look_ns = hf_multiqueue_next_look_ns(queue, now_ns);
    uint64_t until_ns = deadline_ns < look_ns ? deadline_ns : look_ns;
    uint32_t next = class_to_call(queue);

    class_state->blocked++;
    queue->blocked++;
    uint32_t key = hf_event_prepare(&class_state->room);
    hf_mutex_unlock(&queue->mutex);
    call(queue, next);
    enum hf_status status =
        hf_event_wait(&class_state->room, key, queue->clock, until_ns);
    hf_mutex_lock(&queue->mutex);
    class_state->blocked--;
    queue->blocked--;
    return until_ns < deadline_ns ? HF_OK : status;
}

/* ---- Putting. ---- */

/* HF_OK, HF_NOMEM, HF_CLOSED, HF_FULL. */
static enum hf_status insert(struct hf_multiqueue *queue, uint32_t class_index,
                             void *item, uint64_t now_ns,
                             struct hf_multiqueue_ticket *ticket)
{
    assert(hf_mutex_held(&queue->mutex));
    if (queue->shut)
        return HF_CLOSED;
    uint32_t place = place_for(queue, class_index);
    if (place == MULTIQUEUE_NONE)
        return HF_FULL;
    uint32_t number = hf_slab_take(&queue->records);
    if (number == 0)
        return HF_NOMEM;
    struct record *record = record_at(queue, number);
    record->used = 1;
    record->item = item;
    record->put_ns = now_ns;
    record->number = ++queue->puts;
    hf_multiqueue_list_add(queue, place, number);
    queue->classes[place].counts.put++;
    queue->classes[class_index].counts.overflowed += place != class_index;
    queue->size++;
    if (ticket != NULL)
        *ticket = (struct hf_multiqueue_ticket){record->number, number};
    return HF_OK;
}

enum hf_status hf_multiqueue_put(struct hf_multiqueue *queue,
                                 uint32_t class_index, void *item,
                                 uint64_t deadline_ns,
                                 struct hf_multiqueue_ticket *ticket)
{
    enum hf_status status;
    enum hf_status waited = HF_OK;
    struct multiqueue_alarms alarms;

    if (queue == NULL || class_index >= queue->opts.classes || item == NULL)
        return HF_INVALID;
    hf_mutex_lock(&queue->mutex);
    for (;;) {
        uint64_t now_ns = hf_clock_now_ns(queue->clock);
        hf_multiqueue_look(queue, now_ns, &alarms);
        status = insert(queue, class_index, item, now_ns, ticket);
        if (status != HF_FULL || queue->opts.overflow == HF_MULTIQUEUE_REJECT)
            break;
        status = HF_TIMEOUT;
        if (waited == HF_TIMEOUT || deadline_ns == HF_NOW)
            break;
        if (alarms.count > 0) {
            /* Before it waits, and not as one who is counted as waiting. */
            hf_mutex_unlock(&queue->mutex);
            give(queue, &alarms);
            hf_mutex_lock(&queue->mutex);
            continue;
        }
        waited = wait_for_room(queue, class_index, now_ns, deadline_ns);
    }
    queue->classes[class_index].counts.rejected += status != HF_OK;
    bool wake = status == HF_OK && queue->takers > 0;
    uint32_t next = class_to_call(queue);
    hf_mutex_unlock(&queue->mutex);
    if (wake)
        hf_event_wake(&queue->work, 1);
    call(queue, next);
    give(queue, &alarms);
    return status;
}

/* ---- Taking. ---- */

static void *extract(struct hf_multiqueue *queue, uint32_t home,
                     uint64_t now_ns, uint32_t *from)
{
    uint32_t class_index = hf_multiqueue_choose(queue, home, now_ns);
    struct class_state *class_state = &queue->classes[class_index];
    uint32_t number = class_state->first;
    const struct record *record = record_at(queue, number);
    void *item = record->item;

    hf_waits_note(class_state->waits, now_ns - record->put_ns);
    hf_multiqueue_list_remove(queue, number);
    hf_multiqueue_calm(queue, class_index, now_ns);
    hf_slab_give(&queue->records, number);
    class_state->counts.taken++;
    queue->size--;
    queue->stolen += home < queue->opts.classes && home != class_index;
    *from = class_index;
    return item;
}

/* With the lock held, which is open meanwhile, until there is an item. */
static enum hf_status await_item(struct hf_multiqueue *queue,
                                 uint64_t deadline_ns)
{
    enum hf_status waited = HF_OK;

    while (queue->size == 0) {
        if (queue->shut)
            return HF_CLOSED;
        if (waited == HF_TIMEOUT || deadline_ns == HF_NOW)
            return HF_TIMEOUT;
        queue->takers++;
        uint32_t key = hf_event_prepare(&queue->work);
        hf_mutex_unlock(&queue->mutex);
        waited = hf_event_wait(&queue->work, key, queue->clock, deadline_ns);
        hf_mutex_lock(&queue->mutex);
        queue->takers--;
    }
    return HF_OK;
}

enum hf_status hf_multiqueue_take_from(struct hf_multiqueue *queue,
                                       uint32_t home, void **item,
                                       uint64_t deadline_ns, uint32_t *from)
{
    struct multiqueue_alarms alarms;
    uint32_t source = 0;

    if (queue == NULL || item == NULL ||
        (home >= queue->opts.classes && home != HF_MULTIQUEUE_NO_HOME))
        return HF_INVALID;
    hf_mutex_lock(&queue->mutex);
    enum hf_status status = await_item(queue, deadline_ns);
    uint64_t now_ns = hf_clock_now_ns(queue->clock);
    hf_multiqueue_look(queue, now_ns, &alarms);
    if (status == HF_OK)
        *item = extract(queue, home, now_ns, &source);
    uint32_t next = class_to_call(queue);
    hf_mutex_unlock(&queue->mutex);
    if (status == HF_OK && from != NULL)
        *from = source;
    call(queue, next);
    give(queue, &alarms);
    return status;
}

enum hf_status hf_multiqueue_take(struct hf_multiqueue *queue, void **item,
                                  uint64_t deadline_ns)
{
    return hf_multiqueue_take_from(queue, HF_MULTIQUEUE_NO_HOME, item,
                                   deadline_ns, NULL);
}

/* ---- Promotion. ---- */

/* The record that a ticket names, 0 if its item has been taken. */
static uint32_t find(const struct hf_multiqueue *queue,
                     const struct hf_multiqueue_ticket *ticket)
{
    if (ticket->record == 0 || ticket->record >= queue->records.top)
        return 0;
    const struct record *record = record_at(queue, ticket->record);
    return record->used && record->number == ticket->number ? ticket->record
                                                            : 0;
}

enum hf_status hf_multiqueue_promote(struct hf_multiqueue *queue,
                                     const struct hf_multiqueue_ticket *ticket,
                                     uint32_t class_index)
{
    enum hf_status status = HF_OK;

    if (queue == NULL || ticket == NULL || class_index >= queue->opts.classes)
        return HF_INVALID;
    hf_mutex_lock(&queue->mutex);
    uint32_t number = find(queue, ticket);
    if (number == 0) {
        status = HF_NOTFOUND;
    } else if (record_at(queue, number)->class_index > class_index) {
        uint32_t was = record_at(queue, number)->class_index;
        hf_multiqueue_list_remove(queue, number);
        hf_multiqueue_list_add(queue, class_index, number);
        hf_multiqueue_calm(queue, was, hf_clock_now_ns(queue->clock));
        queue->classes[was].counts.raised++;
        queue->classes[class_index].counts.promoted++;
    }
    uint32_t next = class_to_call(queue);
    hf_mutex_unlock(&queue->mutex);
    call(queue, next);
    return status;
}

void hf_multiqueue_shutdown(struct hf_multiqueue *queue)
{
    if (queue == NULL)
        return;
    hf_mutex_lock(&queue->mutex);
    queue->shut = true;
    hf_mutex_unlock(&queue->mutex);
    hf_event_wake_all(&queue->work);
    for (uint32_t i = 0; i < queue->opts.classes; i++)
        hf_event_wake_all(&queue->classes[i].room);
}
