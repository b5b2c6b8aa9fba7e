/* keeper.c - prepares, switches and syncs segments in the background.
 *
 * What is wanted stands under the mutex; a work is posted after it was written
 * there, and looks there when it runs. So it does not matter that two wishes
 * may become one run, or that a run may find nothing left to do.
 */
#include "journal/keeper.h"

#include <assert.h>
#include <unistd.h>

#include "base/memory.h"
#include "holdfast/clock.h"

static int find_spare(const struct keeper *keeper, enum keeper_spare state)
{
    for (int slot = 0; slot < FOLDER_SPARES_MAX; slot++) {
        if (keeper->spares[slot] == state)
            return slot;
    }
    return -1;
}

/* With the mutex held, which it gives up meanwhile. */
static enum hf_status make_spare(struct keeper *keeper, int slot, char *error)
{
    assert(keeper->spares[slot] == SPARE_NONE);
    keeper->spares[slot] = SPARE_BUSY;
    hf_mutex_unlock(&keeper->mutex);
    enum hf_status status =
        segment_make(keeper->folder, slot, keeper->segment_bytes, keeper->fill,
                     keeper->always, error);
    hf_mutex_lock(&keeper->mutex);
    keeper->spares[slot] = status == HF_OK ? SPARE_READY : SPARE_NONE;
    if (status == HF_OK)
        keeper_count(keeper, (int64_t)keeper->segment_bytes);
    return status;
}

/* The segment from a spare, named by the manifest. A batch must not go into a
 * segment that could be taken away without anybody noticing. */
static enum hf_status start_segment(struct keeper *keeper, int slot,
                                    struct segment_header header, uint64_t note,
                                    struct segment *out, char *error)
{
    enum hf_status status =
        segment_open(keeper->folder, slot, header, keeper->always,
                     keeper->block, out, error);

    if (status != HF_OK)
        return status;
    struct manifest_slot next = manifest_begin(keeper->manifest);
    next.segment = header.first;
    next.synced = header.synced;
    next.note = note;
    status = manifest_end(keeper->manifest, next, error);
    if (status != HF_OK) {
        close(out->fd);
        out->fd = -1; /* open closes one that it has */
    }
    return status;
}

/* The next segment, from a spare or made on the spot. With the mutex held,
 * which it gives up meanwhile. */
static enum hf_status make_segment(struct keeper *keeper,
                                   struct segment_header header, uint64_t note,
                                   struct segment *out, char *error)
{
    int slot = find_spare(keeper, SPARE_READY);

    if (slot < 0) {
        /* One is free: keeper_recycle() never takes the last. */
        slot = find_spare(keeper, SPARE_NONE);
        assert(slot >= 0);
        enum hf_status status = make_spare(keeper, slot, error);
        if (status != HF_OK)
            return status;
    }
    keeper->spares[slot] = SPARE_BUSY;
    hf_mutex_unlock(&keeper->mutex);
    enum hf_status status =
        start_segment(keeper, slot, header, note, out, error);
    hf_mutex_lock(&keeper->mutex);
    /* After a failure the file may bear either name; it is left alone. */
    keeper->spares[slot] = SPARE_NONE;
    return status;
}

/* With the mutex held, which it gives up meanwhile. */
static void sync_file(struct keeper *keeper, int fd, uint64_t number)
{
    struct journal_io *io = keeper->folder->io;

    hf_mutex_unlock(&keeper->mutex);
    int cause = io->sync(io, fd);
    hf_mutex_lock(&keeper->mutex);
    if (cause == 0 && keeper->sync_end == HF_OK && number > keeper->synced)
        keeper->synced = number;
    /* After a failed sync the system may have dropped what it could not
     * write: a later success would prove nothing. */
    if (cause != 0 && keeper->sync_end == HF_OK)
        keeper->sync_end = journal_say(
            keeper->error, HF_IO,
            "sync of %s up to batch %llu failed: %s; what commit has "
            "reported since the last sync may be lost; restart after the "
            "disk has been repaired",
            keeper->folder->path, (unsigned long long)number, strerror(cause));
    hf_event_wake_all(&keeper->done);
}

/* Answers first and looks after the old file then. Where commit syncs by
 * itself the old file only has to be closed. */
static void do_switch(struct keeper *keeper)
{
    struct segment old = keeper->old;
    struct segment_header header = keeper->next.header;
    struct segment next;
    char error[JOURNAL_ERROR_MAX] = "";

    enum hf_status status =
        make_segment(keeper, header, keeper->note, &next, error);
    if (status == HF_OK)
        keeper->next = next;
    else if (keeper->sync_end == HF_OK)
        memcpy(keeper->error, error, sizeof error);
    keeper->old.fd = -1;
    if (keeper->sync_fd == old.fd)
        keeper->sync_fd = -1; /* below */
    keeper->switch_wanted = false;
    keeper->switch_end = status;
    keeper->switch_done = true;
    if (keeper->notify)
        journal_io_wake(keeper->folder->io);
    hf_event_wake_all(&keeper->done);
    if (!keeper->always)
        sync_file(keeper, old.fd, header.first - 1);
    close(old.fd);
}

static bool spare_wanted(const struct keeper *keeper)
{
    return !keeper->spare_failed && find_spare(keeper, SPARE_READY) < 0 &&
           find_spare(keeper, SPARE_BUSY) < 0;
}

/* ---- The works; each looks whether there is still something to do. ---- */

/* There is room for all works, and no memory is needed: it is queued now, or
 * was (HF_EXISTS), unless the keeper is being closed. */
static void post(struct hf_pool_work *work)
{
    enum hf_status status = hf_pool_post(work);

    assert(status == HF_OK || status == HF_EXISTS || status == HF_CLOSED);
    (void)status;
}

static int run_switch(void *argument)
{
    struct keeper *keeper = argument;

    hf_mutex_lock(&keeper->mutex);
    if (keeper->switch_wanted)
        do_switch(keeper);
    hf_mutex_unlock(&keeper->mutex);
    post(&keeper->prepare_work); /* the spare is gone */
    return 0;
}

static int run_sync(void *argument)
{
    struct keeper *keeper = argument;

    hf_mutex_lock(&keeper->mutex);
    int fd = keeper->sync_fd;
    /* The file may be sealed meanwhile, but only this thread closes it. */
    keeper->sync_fd = -1;
    if (fd >= 0)
        sync_file(keeper, fd, keeper->sync_number);
    hf_mutex_unlock(&keeper->mutex);
    return 0;
}

static int run_prepare(void *argument)
{
    struct keeper *keeper = argument;
    char error[JOURNAL_ERROR_MAX];

    hf_mutex_lock(&keeper->mutex);
    if (spare_wanted(keeper))
        keeper->spare_failed =
            make_spare(keeper, find_spare(keeper, SPARE_NONE), error) != HF_OK;
    hf_mutex_unlock(&keeper->mutex);
    return 0;
}

enum hf_status keeper_open(struct keeper *keeper, struct manifest *manifest,
                           const struct folder_list *list, bool always,
                           uint64_t segment_bytes, char *error)
{
    struct folder *folder = manifest->folder;
    char name[FOLDER_NAME_MAX];

    *keeper = (struct keeper){.folder = folder,
                              .manifest = manifest,
                              .always = always,
                              .segment_bytes = segment_bytes,
                              .bytes = {list->bytes},
                              .old = {.fd = -1},
                              .sync_fd = -1,
                              .synced = manifest->slot.synced};
    keeper->fill =
        hf_alloc_aligned(JOURNAL_BLOCK, SEGMENT_FILL_BYTES + JOURNAL_BLOCK);
    if (keeper->fill == NULL)
        return journal_say(error, HF_NOMEM, "no memory to open %s",
                           folder->path);
    keeper->block = keeper->fill + SEGMENT_FILL_BYTES;
    memset(keeper->fill, 0, SEGMENT_FILL_BYTES);
    for (int slot = 0; slot < FOLDER_SPARES_MAX; slot++) {
        if (list->spare_bytes[slot] == segment_bytes) {
            keeper->spares[slot] = SPARE_READY;
        } else if (list->spare_bytes[slot] != 0) {
            folder_spare_name(name, slot);
            if (folder->io->remove(folder->io, folder->fd, name) == 0)
                keeper_count(keeper, -(int64_t)list->spare_bytes[slot]);
        }
    }
    return HF_OK;
}

static void init_work(struct keeper *keeper, struct hf_pool_work *work,
                      int (*run)(void *argument), uint32_t priority)
{
    const struct hf_task_opts opts = {.priority = priority};
    enum hf_status status =
        hf_pool_work_init(work, keeper->pool, run, keeper, &opts);

    assert(status == HF_OK);
    (void)status;
}

enum hf_status keeper_run(struct keeper *keeper, char *error)
{
    const struct hf_pool_opts opts = {.name = "journal-keeper",
                                      .kind = HF_POOL_SINGLE};

    if (hf_pool_open(&keeper->pool, &opts) != HF_OK)
        return journal_say(error, HF_NOMEM, "cannot start a thread for %s",
                           keeper->folder->path);
    init_work(keeper, &keeper->switch_work, run_switch, 1);
    init_work(keeper, &keeper->sync_work, run_sync, 2);
    init_work(keeper, &keeper->prepare_work, run_prepare, 3);
    post(&keeper->prepare_work);
    return HF_OK;
}

void keeper_close(struct keeper *keeper)
{
    (void)hf_pool_shutdown_now(keeper->pool, NULL, NULL);
    hf_pool_close(keeper->pool);
    if (keeper->old.fd >= 0)
        close(keeper->old.fd);
    if (keeper->switch_done && keeper->switch_end == HF_OK)
        close(keeper->next.fd);
    hf_free(keeper->fill);
}

enum hf_status keeper_first(struct keeper *keeper, uint64_t first,
                            uint64_t previous, struct segment *out, char *error)
{
    struct segment_header header = {
        .first = first, .synced = keeper->synced, .previous = previous};

    hf_mutex_lock(&keeper->mutex);
    enum hf_status status =
        make_segment(keeper, header, keeper->manifest->slot.note, out, error);
    hf_mutex_unlock(&keeper->mutex);
    return status;
}

void keeper_switch_start(struct keeper *keeper, const struct segment *old,
                         uint64_t first, uint64_t synced, uint64_t note)
{
    hf_mutex_lock(&keeper->mutex);
    assert(!keeper->switch_wanted && !keeper->switch_done);
    keeper->switch_wanted = true;
    keeper->notify = false;
    keeper->old = *old;
    keeper->next.header = (struct segment_header){
        .first = first, .synced = synced, .previous = old->header.first};
    keeper->note = note;
    hf_mutex_unlock(&keeper->mutex);
    post(&keeper->switch_work);
}

static enum hf_status try_switched(void *context)
{
    struct keeper *keeper = context;

    hf_mutex_lock(&keeper->mutex);
    bool done = keeper->switch_done;
    hf_mutex_unlock(&keeper->mutex);
    return done ? HF_OK : HF_PENDING;
}

enum hf_status keeper_switch_wait(struct keeper *keeper, uint64_t timeout_ns,
                                  struct segment *out, char *error)
{
    enum hf_status status = HF_PENDING;

    /* By the system's clock, whatever the journal's: this only bounds how long
     * the caller sleeps. Nothing that is decided or kept depends on it. */
    (void)hf_event_until(&keeper->done, try_switched, keeper, NULL,
                         hf_clock_after_ns(NULL, timeout_ns));
    hf_mutex_lock(&keeper->mutex);
    if (keeper->switch_done) {
        status = keeper->switch_end;
        keeper->switch_done = false;
        if (status == HF_OK)
            *out = keeper->next;
        else
            memcpy(error, keeper->error, JOURNAL_ERROR_MAX);
    }
    keeper->notify = status == HF_PENDING;
    hf_mutex_unlock(&keeper->mutex);
    return status;
}

void keeper_sync_start(struct keeper *keeper, int fd, uint64_t number)
{
    hf_mutex_lock(&keeper->mutex);
    keeper->sync_fd = fd;
    keeper->sync_number = number;
    hf_mutex_unlock(&keeper->mutex);
    post(&keeper->sync_work);
}

enum hf_status keeper_sync_state(struct keeper *keeper, uint64_t *synced,
                                 char *error)
{
    hf_mutex_lock(&keeper->mutex);
    *synced = keeper->synced;
    enum hf_status status = keeper->sync_end;
    if (status != HF_OK)
        memcpy(error, keeper->error, JOURNAL_ERROR_MAX);
    hf_mutex_unlock(&keeper->mutex);
    return status;
}

static enum hf_status try_synced(void *context)
{
    struct keeper *keeper = context;

    hf_mutex_lock(&keeper->mutex);
    bool over =
        keeper->synced >= keeper->sync_number || keeper->sync_end != HF_OK;
    hf_mutex_unlock(&keeper->mutex);
    return over ? HF_OK : HF_PENDING;
}

enum hf_status keeper_sync_wait(struct keeper *keeper, char *error)
{
    uint64_t synced;

    (void)hf_event_until(&keeper->done, try_synced, keeper, NULL, HF_FOREVER);
    return keeper_sync_state(keeper, &synced, error);
}

void keeper_retry(struct keeper *keeper)
{
    hf_mutex_lock(&keeper->mutex);
    bool failed = keeper->spare_failed;
    keeper->spare_failed = false;
    hf_mutex_unlock(&keeper->mutex);
    if (failed)
        post(&keeper->prepare_work);
}

void keeper_recycle(struct keeper *keeper, uint64_t first)
{
    struct folder *folder = keeper->folder;
    struct journal_io *io = folder->io;
    char name[FOLDER_NAME_MAX];
    char spare[FOLDER_NAME_MAX];
    int slot = -1;

    folder_segment_name(name, first);
    uint64_t bytes = folder_size(folder, name);
    hf_mutex_lock(&keeper->mutex);
    /* Leaves one slot to the thread, which may need to make a spare. */
    if (bytes == keeper->segment_bytes && find_spare(keeper, SPARE_BUSY) < 0 &&
        (slot = find_spare(keeper, SPARE_NONE)) >= 0)
        keeper->spares[slot] = SPARE_BUSY;
    hf_mutex_unlock(&keeper->mutex);
    int cause = 0;
    if (slot >= 0) {
        folder_spare_name(spare, slot);
        cause = io->rename(io, folder->fd, name, spare);
        /* Its new life must not begin before its old name is gone. */
        if (cause == 0)
            cause = io->sync_folder(io, folder->fd);
    } else {
        cause = io->remove(io, folder->fd, name);
    }
    hf_mutex_lock(&keeper->mutex);
    if (slot >= 0)
        keeper->spares[slot] = cause == 0 ? SPARE_READY : SPARE_NONE;
    else if (cause == 0)
        keeper_count(keeper, -(int64_t)bytes);
    hf_mutex_unlock(&keeper->mutex);
    post(&keeper->prepare_work);
}

/* Relaxed, as everywhere: it is a figure and guards nothing. */
void keeper_count(struct keeper *keeper, int64_t bytes)
{
    hf_u64_add(&keeper->bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}
