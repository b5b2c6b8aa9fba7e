/* maker.c - replays sealed segments into a snapshot. */
#include "journal/maker.h"

#include "holdfast/pool.h"
#include "journal/recover.h"
#include "journal/snapshot.h"

void maker_init(struct maker *maker, struct manifest *manifest,
                struct keeper *keeper, const struct journal_opts *opts,
                uint64_t newest, uint64_t bytes)
{
    *maker = (struct maker){.folder = manifest->folder,
                            .manifest = manifest,
                            .keeper = keeper,
                            .machine = *opts->machine,
                            .clock = opts->clock,
                            .newest = newest,
                            .bytes = bytes};
}

static void join(struct maker *maker)
{
    if (maker->task == NULL)
        return;
    (void)hf_future_get(maker->task, HF_FOREVER, NULL);
    hf_future_release(maker->task);
    maker->task = NULL;
}

void maker_destroy(struct maker *maker)
{
    /* Relaxed: it only has to be seen some time. */
    hf_u32_store(&maker->unwanted, 1, __ATOMIC_RELAXED);
    join(maker);
}

/* ---- A machine that stops when the snapshot is not wanted any more. ---- */

struct copy {
    struct maker *maker;
    void *state;
    journal_sink *sink; /* while it is saved */
    void *sink_context;
};

static bool is_unwanted(const struct copy *copy)
{
    return hf_u32_load(&copy->maker->unwanted, __ATOMIC_RELAXED) != 0;
}

static enum hf_status copy_apply(void *context, struct hf_bytes record)
{
    struct copy *copy = context;

    return is_unwanted(copy) ? HF_CANCELLED
                             : copy->maker->machine.apply(copy->state, record);
}

static enum hf_status copy_load(void *context, struct hf_bytes data)
{
    struct copy *copy = context;

    return is_unwanted(copy) ? HF_CANCELLED
                             : copy->maker->machine.load(copy->state, data);
}

static enum hf_status copy_piece(void *context, const void *data, size_t len)
{
    struct copy *copy = context;

    return is_unwanted(copy) ? HF_CANCELLED
                             : copy->sink(copy->sink_context, data, len);
}

static enum hf_status copy_save(void *context, journal_sink *sink,
                                void *sink_context)
{
    struct copy *copy = context;

    copy->sink = sink;
    copy->sink_context = sink_context;
    return copy->maker->machine.save(copy->state, copy_piece, copy);
}

static const struct journal_machine copying = {
    .apply = copy_apply, .save = copy_save, .load = copy_load};

/* The state after batch `last`. */
static enum hf_status replay(struct maker *maker, struct folder_list *list,
                             struct copy *copy, char *error)
{
    struct walk walk = {.folder = maker->folder,
                        .list = list,
                        .machine = &copying,
                        .state = copy,
                        .until = maker->last};
    uint64_t bytes;

    if (list->snapshot_count > 0) {
        walk.after = list->snapshots[list->snapshot_count - 1];
        enum hf_status status = snapshot_load(maker->folder, &copying, copy,
                                              walk.after, &bytes, error);
        if (status != HF_OK)
            return status;
    }
    enum hf_status status = walk_run(&walk, error);
    if (status == HF_OK && walk.last != maker->last)
        status =
            journal_say(error, HF_CORRUPT, "batch %llu cannot be read any more",
                        (unsigned long long)walk.last + 1);
    return status;
}

static enum hf_status make(struct maker *maker, uint64_t *bytes, char *error)
{
    struct folder_list list;
    enum hf_status status = folder_list(maker->folder, &list, error);

    if (status != HF_OK)
        return status;
    struct copy copy = {.maker = maker,
                        .state = maker->machine.create(maker->machine.context)};
    if (copy.state == NULL) {
        folder_list_destroy(&list);
        return journal_say(error, HF_NOMEM, "no memory for a second state");
    }
    status = replay(maker, &list, &copy, error);
    if (status == HF_OK)
        status = snapshot_save(maker->folder, &copying, &copy, maker->last,
                               bytes, error);
    maker->machine.destroy(copy.state);
    if (status == HF_OK) {
        keeper_count(maker->keeper, (int64_t)*bytes);
        struct manifest_slot slot = manifest_begin(maker->manifest);
        slot.snapshot = maker->last;
        status = manifest_end(maker->manifest, slot, error);
    }
    if (status == HF_OK)
        maker_clean(maker->folder, maker->keeper, &list, maker->last);
    folder_list_destroy(&list);
    return status;
}

static int maker_run(void *argument)
{
    struct maker *maker = argument;
    char error[JOURNAL_ERROR_MAX] = "";
    uint64_t bytes = 0;
    uint64_t begun_ns = hf_clock_now_ns(maker->clock);
    enum hf_status status = make(maker, &bytes, error);

    if (status != HF_OK && error[0] == '\0')
        journal_say(error, status, "%s", hf_status_text(status));
    hf_mutex_lock(&maker->mutex);
    maker->running = false;
    maker->took_ns = hf_clock_now_ns(maker->clock) - begun_ns;
    if (status == HF_OK) {
        maker->count++;
        maker->newest = maker->last;
        maker->bytes = bytes;
    } else {
        maker->failures++;
        memcpy(maker->error, error, sizeof error);
    }
    hf_mutex_unlock(&maker->mutex);
    return status == HF_OK ? 0 : (int)status;
}

enum hf_status maker_start(struct maker *maker, uint64_t last)
{
    static const struct hf_task_opts opts = {.name = "snapshot"};
    struct hf_pool *pool = hf_pool_default();
    enum hf_status status = HF_NOMEM;

    join(maker);
    maker->last = last;
    maker->running = true; /* nobody else is there yet */
    maker->starts++;
    if (pool != NULL)
        status = hf_pool_submit(pool, maker_run, maker, &opts, &maker->task);
    if (status != HF_OK) {
        maker->running = false;
        maker->failures++;
        maker->took_ns = 0;
        journal_say(maker->error, status, "the pool takes no task: %s",
                    hf_status_text(status));
    }
    return status;
}

bool maker_running(struct maker *maker)
{
    hf_mutex_lock(&maker->mutex);
    bool running = maker->running;
    hf_mutex_unlock(&maker->mutex);
    return running;
}

uint64_t maker_newest(struct maker *maker, uint64_t *bytes)
{
    hf_mutex_lock(&maker->mutex);
    uint64_t newest = maker->newest;
    *bytes = maker->bytes;
    hf_mutex_unlock(&maker->mutex);
    return newest;
}

void maker_clean(struct folder *folder, struct keeper *keeper,
                 const struct folder_list *list, uint64_t last)
{
    char name[FOLDER_NAME_MAX];

    for (size_t i = 0; i < list->snapshot_count; i++) {
        if (list->snapshots[i] >= last)
            continue;
        folder_snapshot_name(name, list->snapshots[i]);
        uint64_t bytes = folder_size(folder, name);
        if (folder->io->remove(folder->io, folder->fd, name) == 0)
            keeper_count(keeper, -(int64_t)bytes);
    }
    for (size_t i = 0; i < list->segment_count; i++) {
        if (list->segments[i] <= last)
            keeper_recycle(keeper, list->segments[i]);
    }
}
