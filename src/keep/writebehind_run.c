/* writebehind_run.c - the thread that writes to the store.
 *
 * It has one flight at a time: changes that left the queue together and that
 * nobody changes any more.
 *
 *   take -> apply --- HF_OK ---------------------------> landed
 *             ^  |--- may retry ---> pause --.           dead, landed
 *             |  |                    |      |              ^
 *             `--+--------------------'      `- too long ---|
 *                `--- never --> several groups? one by one  |
 *                               one? ------------------------
 *
 * No lock is held while the store or a callback is at work.
 */
#include <assert.h>

#include "base/memory.h"
#include "keep/writebehind_state.h"

enum why { NOT_YET, BY_SIZE, BY_AGE, BY_ORDER };

/* ---- A flight. ---- */

/* Room for so many; false without memory. */
static bool make_room(struct hf_writebehind *behind, size_t count)
{
    if (count <= behind->flight_cap)
        return true;
    struct wb_change **flight = hf_alloc(count * sizeof *flight);
    struct hf_store_change *batch = hf_alloc(count * sizeof *batch);
    if (flight == NULL || batch == NULL) {
        hf_free(flight);
        hf_free(batch);
        return false;
    }
    assert(behind->flight_count == 0);
    hf_free(behind->flight);
    hf_free(behind->batch);
    behind->flight = flight;
    behind->batch = batch;
    behind->flight_cap = count;
    return true;
}

/* The end of the group that begins at `at`. */
static size_t group_end(const struct hf_writebehind *behind, size_t at)
{
    const struct wb_group *group = behind->flight[at]->group;

    assert(at < behind->flight_count);
    return group == NULL ? at + 1 : at + group->count;
}

/* Changes [flight_done, to) are written or dead. */
static void land(struct hf_writebehind *behind, size_t to, bool dead)
{
    struct wb_group *groups = NULL;
    size_t from = behind->flight_done;

    hf_mutex_lock(&behind->mutex);
    struct wb_change *landed = hf_wb_land(behind, from, to, &groups);
    *(dead ? &behind->dead : &behind->flushed) += to - from;
    behind->batches += !dead;
    hf_mutex_unlock(&behind->mutex);
    behind->flight_done = to;
    if (to == behind->flight_count) {
        behind->flight_count = behind->flight_done = 0;
        behind->one_by_one = false;
    }
    hf_wb_discard(landed, groups);
    if (behind->opts.log_dir != NULL)
        hf_wb_log_trim(behind, false);
    hf_mutex_lock(&behind->mutex);
    behind->landed = hf_wb_floor(behind); /* only this thread moves it */
    hf_wb_room(behind);
    hf_mutex_unlock(&behind->mutex);
    hf_event_wake_all(&behind->done);
}

/* Gives the groups of [flight_done, to) to the user. */
static void give_up(struct hf_writebehind *behind, size_t to,
                    enum hf_status why)
{
    const struct hf_writebehind_opts *opts = &behind->opts;

    for (size_t at = behind->flight_done; at < to;) {
        size_t end = group_end(behind, at);
        opts->dead(opts->context, why, behind->batch + at, end - at);
        at = end;
    }
    land(behind, to, true);
}

/* ---- Calls of the store. ---- */

static void succeeded(struct hf_writebehind *behind, size_t to)
{
    behind->failing_ns = behind->retry_ns = 0;
    hf_backoff_reset(&behind->backoff);
    land(behind, to, false);
}

/* The same again later, unless it has been too long. */
static bool retry(struct hf_writebehind *behind)
{
    uint64_t now_ns = hf_clock_now_ns(behind->clock);
    uint64_t delay_ns = behind->opts.pause_max_ns;

    if (behind->failing_ns == 0)
        behind->failing_ns = now_ns == 0 ? 1 : now_ns;
    if (now_ns >= wb_after(behind->failing_ns, behind->opts.give_up_ns))
        return false;
    (void)hf_backoff_next(&behind->backoff, now_ns, HF_FOREVER, &delay_ns);
    behind->retry_ns = wb_after(now_ns, delay_ns);
    return true;
}

static void failed(struct hf_writebehind *behind, size_t to,
                   enum hf_status status)
{
    const struct hf_writebehind_opts *opts = &behind->opts;

    hf_mutex_lock(&behind->mutex);
    behind->failures++;
    hf_mutex_unlock(&behind->mutex);
    if (opts->failed != NULL)
        opts->failed(opts->context, status, to - behind->flight_done);
    if (hf_store_may_retry(status)) {
        if (retry(behind))
            return;
    } else if (group_end(behind, behind->flight_done) < to) {
        behind->one_by_one = true;
        return;
    }
    behind->failing_ns = behind->retry_ns = 0;
    hf_backoff_reset(&behind->backoff);
    give_up(behind, to, status);
}

static void call(struct hf_writebehind *behind)
{
    size_t from = behind->flight_done;
    size_t to =
        behind->one_by_one ? group_end(behind, from) : behind->flight_count;
    enum hf_status status = behind->store.apply(
        behind->store.context, behind->batch + from, to - from);

    if (status == HF_OK)
        succeeded(behind, to);
    else
        failed(behind, to, status);
}

/* ---- What there is to do. ---- */

/* Is there a batch to be made, and why? If not yet, `*due_ns` is when. */
static enum why readiness(const struct hf_writebehind *behind, uint64_t now_ns,
                          uint64_t *due_ns)
{
    const struct hf_writebehind_opts *opts = &behind->opts;
    const struct wb_change *oldest = behind->queue.head;

    assert(hf_mutex_held(&behind->mutex));
    if (oldest == NULL)
        return NOT_YET;
    if (behind->pending_count >= opts->batch_max ||
        behind->pending_bytes >= opts->batch_bytes)
        return BY_SIZE;
    *due_ns = wb_after(oldest->since_ns, opts->age_ns);
    if (now_ns >= *due_ns)
        return BY_AGE;
    if (behind->shut || behind->waiting != NULL ||
        oldest->first <= behind->flush_to)
        return BY_ORDER;
    return NOT_YET;
}

/* A flight from the queue, if one is due; true: there is one. */
static bool begin_flight(struct hf_writebehind *behind, uint64_t *due_ns)
{
    hf_mutex_lock(&behind->mutex);
    /* Under the lock: not before anything that was put. */
    uint64_t now_ns = hf_clock_now_ns(behind->clock);
    enum why why = readiness(behind, now_ns, due_ns);
    size_t count = hf_wb_oldest_count(behind);
    if (why != NOT_YET && count <= behind->flight_cap) {
        hf_wb_take(behind);
        behind->by_size += why == BY_SIZE;
        behind->by_age += why == BY_AGE;
    }
    hf_mutex_unlock(&behind->mutex);
    if (why == NOT_YET)
        return false;
    if (count > behind->flight_cap) {
        if (make_room(behind, count))
            return begin_flight(behind, due_ns);
        /* A group this large must wait until there is memory for its list. */
        *due_ns = wb_after(now_ns, behind->opts.pause_max_ns);
        return false;
    }
    return true;
}

/* Does what is due; returns when the next thing is. */
static uint64_t work(struct hf_writebehind *behind)
{
    for (;;) {
        uint64_t due_ns = HF_FOREVER;
        hf_mutex_lock(&behind->mutex);
        bool ended = behind->ended;
        hf_mutex_unlock(&behind->mutex);
        if (ended)
            return HF_NOW;
        if (behind->flight_count == 0 && !begin_flight(behind, &due_ns))
            return due_ns;
        if (hf_clock_now_ns(behind->clock) < behind->retry_ns)
            return behind->retry_ns;
        call(behind);
    }
}

/* What is left at the end stays in the log; without one it goes to the user. A
 * group for whose list there is no memory goes in pieces. */
static void hand_back(struct hf_writebehind *behind)
{
    bool left;

    if (behind->opts.log_dir != NULL)
        return;
    do {
        if (behind->flight_count > 0) {
            behind->handed_back = true;
            give_up(behind, behind->flight_count, HF_CLOSED);
        }
        hf_mutex_lock(&behind->mutex);
        size_t count = hf_wb_oldest_count(behind);
        hf_mutex_unlock(&behind->mutex);
        bool fits = make_room(behind, count);
        hf_mutex_lock(&behind->mutex);
        left = behind->queue.head != NULL;
        if (left && !fits)
            hf_wb_split(behind, behind->flight_cap);
        if (left)
            hf_wb_take(behind);
        hf_mutex_unlock(&behind->mutex);
    } while (left);
}

void hf_wb_main(void *argument)
{
    struct hf_writebehind *behind = argument;

    /* Relaxed: only this thread finds its own slot there. */
    hf_u32_store(&behind->thread_slot, 1 + hf_thread_slot(), __ATOMIC_RELAXED);
    for (;;) {
        /* First without announcing it: whoever puts then need not wake us. */
        (void)work(behind);
        uint32_t key = hf_event_prepare(&behind->work);
        uint64_t due_ns = work(behind);
        if (due_ns == HF_NOW) {
            hf_event_cancel(&behind->work, key);
            break;
        }
        (void)hf_event_wait(&behind->work, key, behind->clock, due_ns);
    }
    hand_back(behind);
}
