/* multiqueue_open.c - how a multiqueue comes and goes, and its figures. */
#include "base/memory.h"
#include "exec/multiqueue_state.h"

/* ---- Figures. ---- */

uint64_t hf_multiqueue_size(struct hf_multiqueue *queue)
{
    if (queue == NULL)
        return 0;
    hf_mutex_lock(&queue->mutex);
    uint64_t size = queue->size;
    hf_mutex_unlock(&queue->mutex);
    return size;
}

void hf_multiqueue_stats(struct hf_multiqueue *queue,
                         struct hf_multiqueue_stats *out)
{
    if (queue == NULL || out == NULL)
        return;
    *out = (struct hf_multiqueue_stats){.classes = queue->opts.classes};
    hf_mutex_lock(&queue->mutex);
    uint64_t now_ns = hf_clock_now_ns(queue->clock);
    out->stolen = queue->stolen;
    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        const struct class_state *class_state = &queue->classes[i];
        struct hf_multiqueue_class_stats *stats = &out->by_class[i];
        *stats = class_state->counts;
        stats->oldest_ns =
            class_state->first == 0
                ? HF_INSPECT_NONE
                : now_ns - record_at(queue, class_state->first)->put_ns;
        stats->wait_p99_ns = hf_waits_percentile_ns(class_state->waits, 99);
    }
    hf_mutex_unlock(&queue->mutex);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_multiqueue_stats stats;
    /* `listed` is the first member of the queue, which is no constant. */
    struct hf_multiqueue *queue = (struct hf_multiqueue *)(uintptr_t)listed;

    hf_multiqueue_stats(queue, &stats);
    row->capacity = (uint64_t)queue->opts.capacity * stats.classes;
    row->rejected = 0;
    for (uint32_t i = 0; i < stats.classes; i++) {
        const struct hf_multiqueue_class_stats *one = &stats.by_class[i];
        row->depth += one->depth;
        row->rejected += one->rejected;
        if (one->oldest_ns != HF_INSPECT_NONE &&
            (row->oldest_ns == HF_INSPECT_NONE ||
             one->oldest_ns > row->oldest_ns))
            row->oldest_ns = one->oldest_ns;
        if (one->wait_p99_ns != HF_INSPECT_NONE &&
            (row->wait_p99_ns == HF_INSPECT_NONE ||
             one->wait_p99_ns > row->wait_p99_ns))
            row->wait_p99_ns = one->wait_p99_ns;
    }
}

/* ---- Open and close. ---- */

static bool complete(struct hf_multiqueue_opts *opts)
{
    if (opts->classes > HF_MULTIQUEUE_CLASSES_MAX ||
        opts->capacity > HF_MULTIQUEUE_CAPACITY_MAX ||
        (unsigned)opts->overflow > HF_MULTIQUEUE_LOWER)
        return false;
    if (opts->classes == 0) {
        opts->classes = 3;
        opts->weights[0] = 70;
        opts->weights[1] = 20;
        opts->weights[2] = 10;
    }
    if (opts->capacity == 0)
        opts->capacity = HF_MULTIQUEUE_CAPACITY_DEFAULT;
    for (uint32_t i = 0; i < opts->classes; i++) {
        if (opts->weights[i] == 0 ||
            opts->weights[i] > HF_MULTIQUEUE_WEIGHT_MAX)
            return false;
    }
    return true;
}

static void queue_free(struct hf_multiqueue *queue)
{
    for (uint32_t i = 0; i < queue->opts.classes; i++)
        hf_free(queue->classes[i].waits);
    hf_slab_destroy(&queue->records);
    hf_free(queue);
}

enum hf_status hf_multiqueue_open(struct hf_multiqueue **out,
                                  const struct hf_multiqueue_opts *opts)
{
    struct hf_multiqueue_opts all = {0};

    if (opts != NULL)
        all = *opts;
    if (out == NULL || !complete(&all))
        return HF_INVALID;
    struct hf_multiqueue *queue = hf_alloc_zeroed(sizeof *queue);
    if (queue == NULL)
        return HF_NOMEM;
    queue->opts = all;
    queue->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    hf_slab_init(&queue->records, sizeof(struct record), NULL);
    for (uint32_t i = 0; i < all.classes; i++) {
        /* Half a turn from the start, so that the first turns are as evenly
         * spread as all others. */
        queue->classes[i].ahead = hf_multiqueue_stride(queue, i) / 2;
        queue->classes[i].waits = hf_alloc_zeroed(sizeof(struct hf_waits));
        if (queue->classes[i].waits == NULL) {
            queue_free(queue);
            return HF_NOMEM;
        }
    }
    hf_listed_add(&queue->listed, "multiqueue", all.name, fill);
    *out = queue;
    return HF_OK;
}

void hf_multiqueue_close(struct hf_multiqueue *queue)
{
    if (queue == NULL)
        return;
    hf_listed_remove(&queue->listed);
    queue_free(queue);
}
