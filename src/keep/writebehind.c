/* writebehind.c - opening, the end, figures. */

#include "base/memory.h"
#include "keep/writebehind_state.h"

#define BATCH_BYTES_DEFAULT   (UINT64_C(4) << 20)
#define AGE_NS_DEFAULT        UINT64_C(100000000)
#define DIRTY_BYTES_DEFAULT   (UINT64_C(64) << 20)
#define PAUSE_NS_DEFAULT      UINT64_C(10000000)
#define PAUSE_MAX_NS_DEFAULT  UINT64_C(5000000000)
#define GIVE_UP_NS_DEFAULT    UINT64_C(600000000000)
#define SEGMENT_BYTES_DEFAULT (UINT64_C(16) << 20)
#define SEGMENT_BYTES_MAX     (UINT64_C(1) << 30)
#define LOG_BYTES_DEFAULT     (UINT64_C(1) << 30)
#define LOG_SEGMENTS_MIN      4u
#define BUCKETS_MAX           (1u << 20)

/* ---- Figures. ---- */

void hf_writebehind_stats(struct hf_writebehind *behind,
                          struct hf_writebehind_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_writebehind_stats){.oldest_ns = HF_INSPECT_NONE,
                                         .wait_p99_ns = HF_INSPECT_NONE};
    if (behind == NULL)
        return;
    out->wait_p99_ns = hf_waits_percentile_ns(&behind->waits, 99);
    hf_mutex_lock(&behind->mutex);
    const struct wb_change *oldest = behind->queue.head;
    if (behind->flying_first != 0 || oldest != NULL) {
        uint64_t now_ns = hf_clock_now_ns(behind->clock);
        uint64_t since_ns = behind->flying_first != 0 ? behind->flying_since_ns
                                                      : oldest->since_ns;
        out->oldest_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    }
    out->changes = behind->changes;
    out->coalesced = behind->coalesced;
    out->flushed = behind->flushed;
    out->dead = behind->dead;
    out->dirty = behind->dirty;
    out->dirty_bytes = behind->used_bytes;
    out->groups = behind->groups;
    out->merged = behind->merged;
    out->refused = behind->refused;
    out->batches = behind->batches;
    out->by_size = behind->by_size;
    out->by_age = behind->by_age;
    out->failures = behind->failures;
    out->recovered = behind->recovered;
    out->log_records = behind->log.records;
    out->log_syncs = behind->log.syncs;
    out->log_bytes = behind->log.bytes - behind->log.reserved;
    out->log_segments = behind->log.segments;
    out->log_failed = behind->log.failed;
    hf_mutex_unlock(&behind->mutex);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_writebehind_stats stats;
    /* `listed` is the first member of it, which is no constant. */
    struct hf_writebehind *behind = (struct hf_writebehind *)(uintptr_t)listed;

    hf_writebehind_stats(behind, &stats);
    row->depth = stats.dirty;
    row->capacity = behind->opts.dirty_max;
    row->oldest_ns = stats.oldest_ns;
    row->rejected = stats.refused;
    row->wait_p99_ns = stats.wait_p99_ns;
}

/* ---- The end. ---- */

void hf_writebehind_shutdown(struct hf_writebehind *behind)
{
    if (behind == NULL)
        return;
    hf_mutex_lock(&behind->mutex);
    behind->shut = true;
    for (struct wb_waiter *waiter = behind->waiting; waiter != NULL;
         waiter = waiter->next)
        hf_event_wake(&waiter->event, 1);
    hf_mutex_unlock(&behind->mutex);
    hf_event_wake(&behind->work, 1);
}

/* What is still there; nobody else is inside. */
static void discard_all(struct hf_writebehind *behind)
{
    struct wb_group *groups = NULL;
    struct wb_change *changes = NULL;

    hf_mutex_lock(&behind->mutex);
    if (behind->flight_count > 0)
        changes = hf_wb_land(behind, behind->flight_done, behind->flight_count,
                             &groups);
    hf_mutex_unlock(&behind->mutex);
    hf_wb_discard(changes, groups);
    while (behind->queue.head != NULL) {
        struct wb_change *change = behind->queue.head;
        behind->queue.head = change->next;
        if (change->group != NULL && --change->group->count == 0)
            hf_free(change->group);
        hf_wb_change_release(change);
    }
}

static void free_all(struct hf_writebehind *behind)
{
    discard_all(behind);
    hf_wb_log_destroy(behind);
    hf_free(behind->table);
    hf_free(behind->flight);
    hf_free(behind->batch);
    hf_free(behind);
}

/* Nothing dirty? */
static enum hf_status is_clean(void *context)
{
    struct hf_writebehind *behind = context;

    hf_mutex_lock(&behind->mutex);
    bool clean = behind->dirty == 0;
    hf_mutex_unlock(&behind->mutex);
    return clean ? HF_OK : HF_PENDING;
}

enum hf_status hf_writebehind_close(struct hf_writebehind *behind,
                                    uint64_t deadline_ns)
{
    if (behind == NULL)
        return HF_OK;
    if (hf_wb_is_mine(behind))
        return HF_INVALID;
    hf_writebehind_shutdown(behind);
    (void)hf_event_until(&behind->done, is_clean, behind, behind->clock,
                         deadline_ns);
    hf_mutex_lock(&behind->mutex);
    behind->ended = true;
    hf_mutex_unlock(&behind->mutex);
    hf_event_wake(&behind->work, 1);
    hf_thread_join(&behind->thread);
    hf_listed_remove(&behind->listed);
    /* The call that was on its way may have been the last one needed. */
    enum hf_status status =
        behind->dirty > 0 || behind->handed_back ? HF_TIMEOUT : HF_OK;
    if (behind->opts.log_dir != NULL && behind->dirty == 0)
        hf_wb_log_trim(behind, true);
    free_all(behind);
    return status;
}

/* ---- Opening. ---- */

static void set_default(uint64_t *field, uint64_t value)
{
    if (*field == 0)
        *field = value;
}

/* Fills in the defaults; false: a field is out of its range. */
static bool complete(struct hf_writebehind_opts *opts)
{
    if (opts->store == NULL || opts->store->read == NULL ||
        opts->store->apply == NULL || opts->dead == NULL ||
        opts->batch_max > HF_WRITEBEHIND_BATCH_MAX ||
        opts->dirty_max > HF_WRITEBEHIND_DIRTY_MAX ||
        opts->segment_bytes > SEGMENT_BYTES_MAX)
        return false;
    if (opts->dirty_max == 0)
        opts->dirty_max = opts->batch_max > HF_WRITEBEHIND_DIRTY_DEFAULT
                              ? opts->batch_max
                              : HF_WRITEBEHIND_DIRTY_DEFAULT;
    if (opts->batch_max == 0)
        opts->batch_max = opts->dirty_max < HF_WRITEBEHIND_BATCH_DEFAULT
                              ? opts->dirty_max
                              : HF_WRITEBEHIND_BATCH_DEFAULT;
    set_default(&opts->batch_bytes, BATCH_BYTES_DEFAULT);
    set_default(&opts->age_ns, AGE_NS_DEFAULT);
    set_default(&opts->dirty_bytes, DIRTY_BYTES_DEFAULT);
    set_default(&opts->pause_ns, PAUSE_NS_DEFAULT);
    set_default(&opts->pause_max_ns, opts->pause_ns > PAUSE_MAX_NS_DEFAULT
                                         ? opts->pause_ns
                                         : PAUSE_MAX_NS_DEFAULT);
    set_default(&opts->give_up_ns, GIVE_UP_NS_DEFAULT);
    set_default(&opts->segment_bytes, SEGMENT_BYTES_DEFAULT);
    set_default(&opts->log_bytes, LOG_BYTES_DEFAULT);
    return opts->dirty_max >= opts->batch_max &&
           opts->pause_max_ns >= opts->pause_ns &&
           opts->log_bytes >= LOG_SEGMENTS_MIN * opts->segment_bytes;
}

static enum hf_status make(struct hf_writebehind *behind)
{
    const struct hf_writebehind_opts *opts = &behind->opts;
    struct hf_backoff_opts pauses = {.base_ns = opts->pause_ns,
                                     .cap_ns = opts->pause_max_ns,
                                     .jitter = HF_JITTER_EQUAL,
                                     .seed = opts->seed};

    for (behind->buckets = 1;
         behind->buckets < opts->dirty_max && behind->buckets < BUCKETS_MAX;)
        behind->buckets *= 2;
    behind->table =
        hf_alloc_zeroed(behind->buckets * sizeof(struct wb_change *));
    behind->flight_cap = opts->batch_max;
    behind->flight = hf_alloc(opts->batch_max * sizeof *behind->flight);
    behind->batch = hf_alloc(opts->batch_max * sizeof *behind->batch);
    if (behind->table == NULL || behind->flight == NULL ||
        behind->batch == NULL)
        return HF_NOMEM;
    return hf_backoff_init(&behind->backoff, &pauses);
}

enum hf_status hf_wb_open_on(struct hf_writebehind **out,
                             const struct hf_writebehind_opts *opts,
                             const struct hf_disk *disk)
{
    struct hf_writebehind_opts all = {0};

    if (opts != NULL)
        all = *opts;
    if (out == NULL || !complete(&all))
        return HF_INVALID;
    struct hf_writebehind *behind = hf_alloc_lines(sizeof *behind);
    if (behind == NULL)
        return HF_NOMEM;
    behind->opts = all;
    behind->store = *all.store;
    behind->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    behind->seed = hf_hash_seed((struct hf_hash_seed){{0}});
    behind->log.dir = behind->log.lock_fd = behind->log.fd = -1;
    behind->log.tail = &behind->log.head;
    enum hf_status status = make(behind);
    if (status == HF_OK && all.log_dir != NULL)
        status = hf_wb_log_open(behind, disk);
    hf_mutex_lock(&behind->mutex);
    behind->landed = hf_wb_floor(behind);
    hf_mutex_unlock(&behind->mutex);
    if (status == HF_OK)
        status = hf_thread_start(&behind->thread, all.name, hf_wb_main, behind);
    if (status != HF_OK) {
        free_all(behind);
        return status;
    }
    hf_listed_add(&behind->listed, "writebehind", all.name, fill);
    *out = behind;
    return HF_OK;
}

enum hf_status hf_writebehind_open(struct hf_writebehind **behind,
                                   const struct hf_writebehind_opts *opts)
{
    return hf_wb_open_on(behind, opts, hf_disk_system());
}
