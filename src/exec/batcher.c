/* batcher.c - adding, flushing, the end, figures.
 *
 * Whoever adds holds its shard's lock for a look at the clock and a copy. It
 * wakes the batcher's thread for two items of a batch only: the first, whose
 * time begins, and the one that fills it.
 */
#include <assert.h>

#include "base/memory.h"
#include "exec/batcher_state.h"

#define AGE_NS_DEFAULT       UINT64_C(10000000)
#define PAUSE_NS_DEFAULT     UINT64_C(10000000)
#define PAUSE_MAX_NS_DEFAULT UINT64_C(1000000000)
#define QUEUE_BATCHES        16u

/* ---- Adding. ---- */

/* HF_OK: it is in; `*wake`: the thread must hear of it. */
static enum hf_status try_add(struct hf_batcher *batcher,
                              struct batcher_shard *shard, void *item,
                              bool *wake)
{
    const struct hf_batcher_opts *opts = &batcher->opts;
    enum hf_status status = HF_OK;

    hf_mutex_lock(&shard->mutex);
    uint64_t count = shard->added - shard->taken;
    assert(count <= opts->queue_max);
    if (shard->shut) {
        status = HF_CLOSED;
    } else if (count == opts->queue_max) {
        status = HF_FULL;
    } else {
        /* Under the lock: no item is older than the one before it. */
        shard->entries[shard->added++ % opts->queue_max] =
            (struct batcher_entry){item, hf_clock_now_ns(batcher->clock)};
        *wake = count == 0 || count + 1 == opts->batch_max;
    }
    hf_mutex_unlock(&shard->mutex);
    return status;
}

/* Waits until there may be room in the shard. Who is told that there is tries
 * to take it, also after the deadline: no wake-up is used up in vain. */
static enum hf_status await_room(struct hf_batcher *batcher,
                                 struct batcher_shard *shard,
                                 uint64_t deadline_ns)
{
    hf_mutex_lock(&shard->mutex);
    if (shard->added - shard->taken < batcher->opts.queue_max || shard->shut) {
        hf_mutex_unlock(&shard->mutex);
        return HF_OK;
    }
    uint32_t key = hf_event_prepare(&shard->room);
    shard->blocked++;
    hf_mutex_unlock(&shard->mutex);
    enum hf_status status =
        hf_event_wait(&shard->room, key, batcher->clock, deadline_ns);
    hf_mutex_lock(&shard->mutex);
    shard->blocked--;
    hf_mutex_unlock(&shard->mutex);
    return status;
}

static struct batcher_shard *my_shard(struct hf_batcher *batcher)
{
    return &batcher->shards[hf_thread_slot() % batcher->opts.shards];
}

static enum hf_status refused(struct batcher_shard *shard,
                              enum hf_status status)
{
    hf_mutex_lock(&shard->mutex);
    shard->refused++;
    hf_mutex_unlock(&shard->mutex);
    return status;
}

enum hf_status hf_batcher_add(struct hf_batcher *batcher, void *item,
                              uint64_t deadline_ns)
{
    enum hf_status waited = HF_OK;
    bool wake = false;

    if (batcher == NULL || item == NULL)
        return HF_INVALID;
    struct batcher_shard *shard = my_shard(batcher);
    for (;;) {
        enum hf_status status = try_add(batcher, shard, item, &wake);
        if (status == HF_OK)
            break;
        if (status == HF_CLOSED || batcher->opts.full == HF_BATCHER_DROP)
            return refused(shard, status);
        /* The handler cannot wait for itself. */
        if (deadline_ns == HF_NOW || hf_batcher_is_mine(batcher) ||
            waited == HF_TIMEOUT)
            return refused(shard, HF_TIMEOUT);
        if (batcher->opts.full != HF_BATCHER_FLUSH ||
            !hf_batcher_help(batcher, shard))
            waited = await_room(batcher, shard, deadline_ns);
    }
    if (wake)
        hf_event_wake(&batcher->work, 1);
    return HF_OK;
}

/* ---- Flush and the end. ---- */

struct flush {
    struct hf_batcher *batcher;
    uint64_t targets[HF_BATCHER_SHARDS_MAX];
};

static enum hf_status is_flushed(void *context)
{
    struct flush *flush = context;
    bool done = true;

    for (uint32_t i = 0; i < flush->batcher->opts.shards && done; i++) {
        struct batcher_shard *shard = &flush->batcher->shards[i];
        hf_mutex_lock(&shard->mutex);
        done = shard->done >= flush->targets[i];
        hf_mutex_unlock(&shard->mutex);
    }
    return done ? HF_OK : HF_PENDING;
}

enum hf_status hf_batcher_flush(struct hf_batcher *batcher,
                                uint64_t deadline_ns)
{
    struct flush flush = {.batcher = batcher};

    if (batcher == NULL)
        return HF_INVALID;
    for (uint32_t i = 0; i < batcher->opts.shards; i++) {
        struct batcher_shard *shard = &batcher->shards[i];
        hf_mutex_lock(&shard->mutex);
        flush.targets[i] = shard->flush_to = shard->added;
        hf_mutex_unlock(&shard->mutex);
    }
    hf_event_wake(&batcher->work, 1);
    if (hf_batcher_is_mine(batcher)) /* the handler cannot wait for itself */
        deadline_ns = HF_NOW;
    return hf_event_until(&batcher->done, is_flushed, &flush, batcher->clock,
                          deadline_ns);
}

void hf_batcher_shutdown(struct hf_batcher *batcher)
{
    if (batcher == NULL)
        return;
    for (uint32_t i = 0; i < batcher->opts.shards; i++) {
        struct batcher_shard *shard = &batcher->shards[i];
        hf_mutex_lock(&shard->mutex);
        shard->shut = true;
        hf_mutex_unlock(&shard->mutex);
        hf_event_wake_all(&shard->room);
    }
    hf_event_wake(&batcher->work, 1);
}

static void batcher_free(struct hf_batcher *batcher)
{
    for (uint32_t i = 0; batcher->shards && i < batcher->opts.shards; i++) {
        hf_free(batcher->shards[i].entries);
        hf_free(batcher->shards[i].batch);
    }
    hf_free(batcher->shards);
    hf_free(batcher);
}

void hf_batcher_close(struct hf_batcher *batcher)
{
    if (batcher == NULL)
        return;
    hf_batcher_shutdown(batcher);
    hf_thread_join(&batcher->thread);
    hf_listed_remove(&batcher->listed);
    batcher_free(batcher);
}

/* ---- Figures. ---- */

static void add_shard(const struct hf_batcher *batcher,
                      struct batcher_shard *shard, struct hf_batcher_stats *out)
{
    uint64_t since_ns = HF_FOREVER;

    hf_mutex_lock(&shard->mutex);
    out->added += shard->added;
    out->refused += shard->refused;
    out->depth += shard->added - shard->done;
    if (shard->taken > shard->done)
        since_ns = shard->since_ns;
    else if (shard->added > shard->taken)
        since_ns =
            shard->entries[shard->taken % batcher->opts.queue_max].added_ns;
    if (since_ns != HF_FOREVER) {
        uint64_t age_ns = hf_clock_now_ns(batcher->clock) - since_ns;
        if (out->oldest_ns == HF_INSPECT_NONE || age_ns > out->oldest_ns)
            out->oldest_ns = age_ns;
    }
    hf_mutex_unlock(&shard->mutex);
}

void hf_batcher_stats(struct hf_batcher *batcher, struct hf_batcher_stats *out)
{
    if (batcher == NULL || out == NULL)
        return;
    *out = (struct hf_batcher_stats){.oldest_ns = HF_INSPECT_NONE};
    for (uint32_t i = 0; i < batcher->opts.shards; i++)
        add_shard(batcher, &batcher->shards[i], out);
    /* Relaxed: figures. */
    out->handled = hf_u64_load(&batcher->handled, __ATOMIC_RELAXED);
    out->dead = hf_u64_load(&batcher->dead, __ATOMIC_RELAXED);
    out->batches = hf_u64_load(&batcher->batches, __ATOMIC_RELAXED);
    out->by_size = hf_u64_load(&batcher->by_size, __ATOMIC_RELAXED);
    out->by_age = hf_u64_load(&batcher->by_age, __ATOMIC_RELAXED);
    out->failures = hf_u64_load(&batcher->failures, __ATOMIC_RELAXED);
    out->wait_p99_ns = hf_waits_percentile_ns(&batcher->waits, 99);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_batcher_stats stats;
    /* `listed` is the first member of the batcher, which is no constant. */
    struct hf_batcher *batcher = (struct hf_batcher *)(uintptr_t)listed;

    hf_batcher_stats(batcher, &stats);
    row->depth = stats.depth;
    row->capacity = (uint64_t)batcher->opts.queue_max * batcher->opts.shards;
    row->oldest_ns = stats.oldest_ns;
    row->rejected = stats.refused;
    row->wait_p99_ns = stats.wait_p99_ns;
}

/* ---- Opening. ---- */

/* Fills in the defaults; false: a field is out of its range. */
static bool complete(struct hf_batcher_opts *opts)
{
    if (opts->handle == NULL || (unsigned)opts->full > HF_BATCHER_FLUSH ||
        opts->batch_max > HF_BATCHER_BATCH_MAX ||
        opts->queue_max > HF_BATCHER_QUEUE_MAX ||
        opts->shards > HF_BATCHER_SHARDS_MAX)
        return false;
    if (opts->batch_max == 0)
        opts->batch_max = HF_BATCHER_BATCH_DEFAULT;
    if (opts->age_ns == 0)
        opts->age_ns = AGE_NS_DEFAULT;
    if (opts->queue_max == 0)
        opts->queue_max = QUEUE_BATCHES * opts->batch_max;
    if (opts->retries == 0)
        opts->retries = HF_BATCHER_RETRIES_DEFAULT;
    if (opts->pause_ns == 0)
        opts->pause_ns = PAUSE_NS_DEFAULT;
    if (opts->pause_max_ns == 0)
        opts->pause_max_ns = opts->pause_ns > PAUSE_MAX_NS_DEFAULT
                                 ? opts->pause_ns
                                 : PAUSE_MAX_NS_DEFAULT;
    if (opts->shards == 0)
        opts->shards = 1;
    return opts->queue_max >= opts->batch_max &&
           opts->pause_max_ns >= opts->pause_ns;
}

static bool make_shards(struct hf_batcher *batcher)
{
    const struct hf_batcher_opts *opts = &batcher->opts;
    size_t bytes = opts->shards * sizeof *batcher->shards;

    batcher->shards = hf_alloc_lines(bytes);
    if (batcher->shards == NULL)
        return false;
    for (uint32_t i = 0; i < opts->shards; i++) {
        struct batcher_shard *shard = &batcher->shards[i];
        shard->entries = hf_alloc(opts->queue_max * sizeof *shard->entries);
        shard->batch = hf_alloc(opts->batch_max * sizeof *shard->batch);
        if (shard->entries == NULL || shard->batch == NULL)
            return false;
    }
    return true;
}

enum hf_status hf_batcher_open(struct hf_batcher **out,
                               const struct hf_batcher_opts *opts)
{
    struct hf_batcher_opts all = {0};

    if (opts != NULL)
        all = *opts;
    if (out == NULL || !complete(&all))
        return HF_INVALID;
    struct hf_batcher *batcher = hf_alloc_zeroed(sizeof *batcher);
    if (batcher == NULL)
        return HF_NOMEM;
    batcher->opts = all;
    batcher->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    if (!make_shards(batcher) ||
        hf_thread_start(&batcher->thread, all.name, hf_batcher_main, batcher) !=
            HF_OK) {
        batcher_free(batcher);
        return HF_NOMEM;
    }
    hf_listed_add(&batcher->listed, "batcher", all.name, fill);
    *out = batcher;
    return HF_OK;
}
