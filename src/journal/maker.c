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
                            .state = {.newest = newest, .bytes = bytes}};
    maker->machine.unwanted = &maker->unwanted;
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
    /* Relaxed: it only has to be seen some time, by snapshot_unwanted(). */
    hf_u32_store(&maker->unwanted, 1, __ATOMIC_RELAXED);
    join(maker);
}

/* The state after batch `last`. */
static enum hf_status replay(struct maker *maker,
                             const struct journal_machine *machine,
                             struct folder_list *list, void *state, char *error)
{
    struct walk walk = {.folder = maker->folder,
                        .list = list,
                        .machine = machine,
                        .state = state,
                        .until = maker->last};
    uint64_t bytes;

    if (list->snapshot_count > 0) {
        walk.after = list->snapshots[list->snapshot_count - 1];
        enum hf_status status = snapshot_load(maker->folder, machine, state,
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
    void *state = maker->machine.create(maker->machine.context);
    if (state == NULL) {
        folder_list_destroy(&list);
        return journal_say(error, HF_NOMEM, "no memory for a second state");
    }
    status = replay(maker, &maker->machine, &list, state, error);
    if (status == HF_OK)
        status = snapshot_save(maker->folder, &maker->machine, state,
                               maker->last, bytes, error);
    maker->machine.destroy(state);
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
    maker->state.running = false;
    maker->state.took_ns = hf_clock_now_ns(maker->clock) - begun_ns;
    if (status == HF_OK) {
        maker->state.count++;
        maker->state.newest = maker->last;
        maker->state.bytes = bytes;
    } else {
        maker->state.failures++;
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
    maker->state.running = true; /* nobody else is there yet */
    maker->state.starts++;
    if (pool != NULL)
        status = hf_pool_submit(pool, maker_run, maker, &opts, &maker->task);
    if (status != HF_OK) {
        maker->state.running = false;
        maker->state.failures++;
        maker->state.took_ns = 0;
        journal_say(maker->error, status, "the pool takes no task: %s",
                    hf_status_text(status));
    }
    return status;
}

/* What has become known is told before the next task may begin. */
static int maker_run_read(void *argument)
{
    struct maker *maker = argument;
    const struct log_replay *reader = maker->reader;
    struct journal_machine machine = *reader->machine;
    char error[JOURNAL_ERROR_MAX] = "";
    struct folder_list list;
    void *state = NULL;
    enum hf_status status = folder_list(maker->folder, &list, error);

    machine.unwanted = &maker->unwanted;
    if (status == HF_OK) {
        state = machine.create(machine.context);
        status = state == NULL ? journal_say(error, HF_NOMEM,
                                             "no memory for a second state")
                               : replay(maker, &machine, &list, state, error);
        folder_list_destroy(&list);
    }
    reader->done(reader->context, state, status, error);
    hf_mutex_lock(&maker->mutex);
    maker->state.reading = false;
    hf_mutex_unlock(&maker->mutex);
    return 0;
}

enum hf_status maker_read(struct maker *maker, uint64_t last,
                          const struct log_replay *replay_)
{
    static const struct hf_task_opts opts = {.name = "replay"};
    struct hf_pool *pool = hf_pool_default();
    struct maker_state state = maker_look(maker);

    if (state.running || state.reading)
        return HF_PENDING;
    join(maker);
    maker->last = last;
    maker->reader = replay_;
    maker->state.reading = true; /* nobody else is there yet */
    if (pool != NULL && hf_pool_submit(pool, maker_run_read, maker, &opts,
                                       &maker->task) == HF_OK)
        return HF_OK;
    maker->state.reading = false;
    return HF_IO;
}

struct maker_state maker_look(struct maker *maker)
{
    hf_mutex_lock(&maker->mutex);
    struct maker_state state = maker->state;
    hf_mutex_unlock(&maker->mutex);
    return state;
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
