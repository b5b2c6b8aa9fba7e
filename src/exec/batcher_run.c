/* batcher_run.c - who handles batches, and how.
 *
 * Who handles has the role. The batcher's own thread takes it when there is
 * something to do; with HF_BATCHER_FLUSH an adding thread may take it for one
 * call. The role is no lock: nobody waits for it but the batcher's thread,
 * which sleeps on `work` and is woken when it is given back. So a handler may
 * ask for anything that does not wait.
 */
#include <assert.h>

#include "exec/batcher_state.h"

/* ---- The role. ---- */

static bool role_take(struct hf_batcher *batcher)
{
    uint32_t nobody = 0;

    /* Acquire: what the last one left. */
    return hf_u32_cas(&batcher->role, &nobody, 1 + hf_thread_slot(),
                      __ATOMIC_ACQUIRE);
}

static void role_give(struct hf_batcher *batcher)
{
    assert(hf_batcher_is_mine(batcher));
    /* Release: for the next one. */
    hf_u32_store(&batcher->role, 0, __ATOMIC_RELEASE);
}

bool hf_batcher_is_mine(const struct hf_batcher *batcher)
{
    /* Relaxed: what we wrote ourselves we see. */
    return hf_u32_load(&batcher->role, __ATOMIC_RELAXED) ==
           1 + hf_thread_slot();
}

/* One writes at a time, whoever has the role; anybody reads. Relaxed: figures.
 */
static void add_to(struct hf_atomic_u64 *figure, uint64_t more)
{
    hf_u64_store(figure, hf_u64_load(figure, __ATOMIC_RELAXED) + more,
                 __ATOMIC_RELAXED);
}

/* ---- A batch. ---- */

enum why { NOT_YET, BY_SIZE, BY_AGE, BY_ORDER };

/* Is there a batch to be made, and why? If not yet, `*due_ns` is brought
 * forward to when there will be, if nothing is added. */
static enum why readiness(const struct hf_batcher *batcher,
                          const struct batcher_shard *shard, uint64_t now_ns,
                          uint64_t *due_ns)
{
    const struct hf_batcher_opts *opts = &batcher->opts;
    uint64_t count = shard->added - shard->taken;

    assert(hf_mutex_held(&shard->mutex));
    if (count >= opts->batch_max)
        return BY_SIZE;
    if (count == 0)
        return NOT_YET;
    uint64_t ripe_ns = batcher_after(
        shard->entries[shard->taken % opts->queue_max].added_ns, opts->age_ns);
    if (now_ns >= ripe_ns)
        return BY_AGE;
    if (shard->shut || shard->flush_to > shard->taken)
        return BY_ORDER;
    if (ripe_ns < *due_ns)
        *due_ns = ripe_ns;
    return NOT_YET;
}

/* Moves a batch out of the circle; returns how many items. */
static size_t take(struct hf_batcher *batcher, struct batcher_shard *shard,
                   uint64_t now_ns)
{
    const struct hf_batcher_opts *opts = &batcher->opts;
    uint64_t count = shard->added - shard->taken;

    assert(hf_mutex_held(&shard->mutex) && shard->taken == shard->done);
    if (count > opts->batch_max)
        count = opts->batch_max;
    uint64_t place = shard->taken % opts->queue_max;
    shard->since_ns = shard->entries[place].added_ns;
    for (uint64_t i = 0; i < count; i++) {
        const struct batcher_entry *entry = &shard->entries[place];
        shard->batch[i] = entry->item;
        hf_waits_note(&batcher->waits, now_ns - entry->added_ns);
        place = place + 1 < opts->queue_max ? place + 1 : 0;
    }
    shard->taken += count;
    shard->retries_left =
        opts->retries == HF_BATCHER_RETRIES_NONE ? 0 : opts->retries;
    shard->pause_ns = opts->pause_ns;
    return (size_t)count;
}

/* The items for which a call is due, 0 if none is. */
static size_t due_items(struct hf_batcher *batcher, struct batcher_shard *shard,
                        uint64_t *due_ns)
{
    enum why why = NOT_YET;

    hf_mutex_lock(&shard->mutex);
    /* Under the lock: not before anything that was added. */
    uint64_t now_ns = hf_clock_now_ns(batcher->clock);
    size_t count = (size_t)(shard->taken - shard->done);
    if (count > 0 && now_ns < shard->retry_ns && !shard->shut) {
        if (shard->retry_ns < *due_ns)
            *due_ns = shard->retry_ns;
        count = 0;
    } else if (count == 0) {
        why = readiness(batcher, shard, now_ns, due_ns);
        if (why != NOT_YET)
            count = take(batcher, shard, now_ns);
    }
    bool wake = why != NOT_YET && shard->blocked > 0;
    hf_mutex_unlock(&shard->mutex);
    if (wake) /* one for each place that is free now */
        hf_event_wake(&shard->room, (uint32_t)count);
    if (why == BY_SIZE)
        add_to(&batcher->by_size, 1);
    if (why == BY_AGE)
        add_to(&batcher->by_age, 1);
    return count;
}

/* One call for the batch; true: it is handled or dead. */
static bool call(struct hf_batcher *batcher, struct batcher_shard *shard,
                 size_t count)
{
    const struct hf_batcher_opts *opts = &batcher->opts;
    int code = opts->handle(opts->context, shard->batch, count);

    if (code == 0) {
        add_to(&batcher->handled, count);
        add_to(&batcher->batches, 1);
        return true;
    }
    add_to(&batcher->failures, 1);
    if (opts->failed != NULL)
        opts->failed(opts->context, code, count);
    if (shard->retries_left == 0) {
        if (opts->dead != NULL)
            opts->dead(opts->context, shard->batch, count);
        add_to(&batcher->dead, count);
        return true;
    }
    shard->retries_left--;
    shard->retry_ns =
        batcher_after(hf_clock_now_ns(batcher->clock), shard->pause_ns);
    shard->pause_ns = shard->pause_ns < opts->pause_max_ns / 2
                          ? 2 * shard->pause_ns
                          : opts->pause_max_ns;
    return false;
}

/* Makes the call that is due for the shard; false: none is. With the role. */
static bool handle(struct hf_batcher *batcher, struct batcher_shard *shard,
                   uint64_t *due_ns)
{
    size_t count = due_items(batcher, shard, due_ns);

    assert(hf_batcher_is_mine(batcher));
    if (count == 0)
        return false;
    if (call(batcher, shard, count)) {
        hf_mutex_lock(&shard->mutex);
        shard->done += count;
        hf_mutex_unlock(&shard->mutex);
        hf_event_wake_all(&batcher->done);
    }
    return true;
}

/* ---- Who does it. ---- */

bool hf_batcher_help(struct hf_batcher *batcher, struct batcher_shard *shard)
{
    uint64_t due_ns = HF_FOREVER;

    if (!role_take(batcher))
        return false;
    bool helped = handle(batcher, shard, &due_ns);
    role_give(batcher);
    /* Its thread may have found the role taken, or sleeps for longer than what
     * we have left behind may wait. */
    hf_event_wake(&batcher->work, 1);
    return helped;
}

/* Makes all calls that are due, in turn for each shard. Returns when the next
 * will be; HF_FOREVER as well if somebody else has the role. */
static uint64_t handle_all(struct hf_batcher *batcher)
{
    const uint32_t shards = batcher->opts.shards;
    uint64_t due_ns = HF_FOREVER;
    uint32_t idle = 0; /* shards in a row for which no call was due */

    if (!role_take(batcher))
        return HF_FOREVER;
    while (idle < shards) {
        if (handle(batcher, &batcher->shards[batcher->next], &due_ns)) {
            idle = 0;
            due_ns = HF_FOREVER;
        } else {
            idle++;
        }
        batcher->next = batcher->next + 1 < shards ? batcher->next + 1 : 0;
    }
    role_give(batcher);
    return due_ns;
}

/* Is it shut, and nothing inside? */
static bool is_over(struct hf_batcher *batcher)
{
    bool over = true;

    for (uint32_t i = 0; i < batcher->opts.shards && over; i++) {
        struct batcher_shard *shard = &batcher->shards[i];
        hf_mutex_lock(&shard->mutex);
        over = shard->shut && shard->done == shard->added;
        hf_mutex_unlock(&shard->mutex);
    }
    return over;
}

void hf_batcher_main(void *argument)
{
    struct hf_batcher *batcher = argument;

    for (;;) {
        /* First without announcing it: whoever adds then need not wake us. */
        (void)handle_all(batcher);
        uint32_t key = hf_event_prepare(&batcher->work);
        uint64_t due_ns = handle_all(batcher);
        if (is_over(batcher)) {
            hf_event_cancel(&batcher->work, key);
            return;
        }
        (void)hf_event_wait(&batcher->work, key, batcher->clock, due_ns);
    }
}
