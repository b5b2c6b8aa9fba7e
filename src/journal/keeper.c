/* keeper.c - prepares, switches and syncs segments in the background. */
#include "journal/keeper.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/wait.h"

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
    pthread_mutex_unlock(&keeper->mutex);
    enum hf_status status =
        segment_make(keeper->folder, slot, keeper->segment_bytes, keeper->fill,
                     keeper->always, error);
    pthread_mutex_lock(&keeper->mutex);
    keeper->spares[slot] = status == HF_OK ? SPARE_READY : SPARE_NONE;
    if (status == HF_OK)
        keeper->bytes += keeper->segment_bytes;
    return status;
}

/* The next segment, from a spare or made on the spot. With the mutex held,
 * which it gives up meanwhile. */
static enum hf_status make_segment(struct keeper *keeper, uint64_t first,
                                   uint64_t synced, struct segment *out,
                                   char *error)
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
    pthread_mutex_unlock(&keeper->mutex);
    enum hf_status status =
        segment_open(keeper->folder, slot, first, synced, keeper->always,
                     keeper->block, out, error);
    pthread_mutex_lock(&keeper->mutex);
    /* After a failure the file may bear either name; it is left alone. */
    keeper->spares[slot] = SPARE_NONE;
    return status;
}

/* With the mutex held, which it gives up meanwhile. */
static void sync_file(struct keeper *keeper, int fd, uint64_t number)
{
    struct journal_io *io = keeper->folder->io;

    pthread_mutex_unlock(&keeper->mutex);
    int cause = io->sync(io, fd);
    pthread_mutex_lock(&keeper->mutex);
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
    pthread_cond_broadcast(&keeper->done);
}

/* Answers first and looks after the old file then. Where commit syncs by
 * itself the old file only has to be closed. */
static void do_switch(struct keeper *keeper)
{
    struct segment old = keeper->old;
    uint64_t first = keeper->next.header.first;
    struct segment next;
    char error[JOURNAL_ERROR_MAX] = "";

    enum hf_status status =
        make_segment(keeper, first, keeper->next.header.synced, &next, error);
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
    pthread_cond_broadcast(&keeper->done);
    if (!keeper->always)
        sync_file(keeper, old.fd, first - 1);
    close(old.fd);
}

static void do_sync(struct keeper *keeper)
{
    int fd = keeper->sync_fd;

    /* The file may be sealed meanwhile, but only this thread closes it. */
    keeper->sync_fd = -1;
    sync_file(keeper, fd, keeper->sync_number);
}

static bool spare_wanted(const struct keeper *keeper)
{
    return !keeper->spare_failed && find_spare(keeper, SPARE_READY) < 0 &&
           find_spare(keeper, SPARE_BUSY) < 0;
}

static void *keeper_main(void *argument)
{
    struct keeper *keeper = argument;
    char error[JOURNAL_ERROR_MAX];

    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->stop) {
        if (keeper->switch_wanted)
            do_switch(keeper);
        else if (keeper->sync_fd >= 0)
            do_sync(keeper);
        else if (spare_wanted(keeper))
            keeper->spare_failed =
                make_spare(keeper, find_spare(keeper, SPARE_NONE), error) !=
                HF_OK;
        else
            pthread_cond_wait(&keeper->work, &keeper->mutex);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

enum hf_status keeper_open(struct keeper *keeper, struct folder *folder,
                           const struct folder_list *list, bool always,
                           uint64_t segment_bytes, uint64_t synced, char *error)
{
    char name[FOLDER_NAME_MAX];

    *keeper = (struct keeper){.folder = folder,
                              .always = always,
                              .segment_bytes = segment_bytes,
                              .bytes = list->bytes,
                              .old = {.fd = -1},
                              .sync_fd = -1,
                              .synced = synced};
    keeper->fill = hf_alloc_aligned(JOURNAL_BLOCK, SEGMENT_FILL_BYTES);
    keeper->block = hf_alloc_aligned(JOURNAL_BLOCK, JOURNAL_BLOCK);
    if (keeper->fill == NULL || keeper->block == NULL) {
        hf_free(keeper->fill);
        hf_free(keeper->block);
        return journal_say(error, HF_NOMEM, "no memory to open %s",
                           folder->path);
    }
    memset(keeper->fill, 0, SEGMENT_FILL_BYTES);
    pthread_mutex_init(&keeper->mutex, NULL);
    wait_init(&keeper->work);
    wait_init(&keeper->done);
    for (int slot = 0; slot < FOLDER_SPARES_MAX; slot++) {
        if (list->spare_bytes[slot] == segment_bytes) {
            keeper->spares[slot] = SPARE_READY;
        } else if (list->spare_bytes[slot] != 0) {
            folder_spare_name(name, slot);
            if (folder->io->remove(folder->io, folder->fd, name) == 0)
                keeper->bytes -= list->spare_bytes[slot];
        }
    }
    return HF_OK;
}

enum hf_status keeper_run(struct keeper *keeper, char *error)
{
    if (pthread_create(&keeper->thread, NULL, keeper_main, keeper) != 0)
        return journal_say(error, HF_NOMEM, "cannot start a thread for %s",
                           keeper->folder->path);
    keeper->running = true;
    return HF_OK;
}

void keeper_close(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->stop = true;
    pthread_cond_broadcast(&keeper->work);
    pthread_mutex_unlock(&keeper->mutex);
    if (keeper->running)
        pthread_join(keeper->thread, NULL);
    if (keeper->old.fd >= 0)
        close(keeper->old.fd);
    if (keeper->switch_done && keeper->switch_end == HF_OK)
        close(keeper->next.fd);
    pthread_cond_destroy(&keeper->work);
    pthread_cond_destroy(&keeper->done);
    pthread_mutex_destroy(&keeper->mutex);
    hf_free(keeper->fill);
    hf_free(keeper->block);
}

enum hf_status keeper_first(struct keeper *keeper, uint64_t first,
                            struct segment *out, char *error)
{
    pthread_mutex_lock(&keeper->mutex);
    enum hf_status status =
        make_segment(keeper, first, keeper->synced, out, error);
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}

void keeper_switch_start(struct keeper *keeper, const struct segment *old,
                         uint64_t first, uint64_t synced)
{
    pthread_mutex_lock(&keeper->mutex);
    assert(!keeper->switch_wanted && !keeper->switch_done);
    keeper->switch_wanted = true;
    keeper->notify = false;
    keeper->old = *old;
    keeper->next.header.first = first;
    keeper->next.header.synced = synced;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->mutex);
}

enum hf_status keeper_switch_wait(struct keeper *keeper, uint64_t timeout_ns,
                                  struct segment *out, char *error)
{
    struct timespec deadline = wait_deadline(timeout_ns);
    enum hf_status status = HF_PENDING;
    bool in_time = true;

    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->switch_done && in_time)
        in_time = wait_until(&keeper->done, &keeper->mutex, &deadline);
    if (keeper->switch_done) {
        status = keeper->switch_end;
        keeper->switch_done = false;
        if (status == HF_OK)
            *out = keeper->next;
        else
            memcpy(error, keeper->error, JOURNAL_ERROR_MAX);
    }
    keeper->notify = status == HF_PENDING;
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}

void keeper_sync_start(struct keeper *keeper, int fd, uint64_t number)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->sync_fd = fd;
    keeper->sync_number = number;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->mutex);
}

/* With the mutex held. */
static enum hf_status sync_end(struct keeper *keeper, char *error)
{
    if (keeper->sync_end != HF_OK)
        memcpy(error, keeper->error, JOURNAL_ERROR_MAX);
    return keeper->sync_end;
}

enum hf_status keeper_sync_state(struct keeper *keeper, uint64_t *synced,
                                 char *error)
{
    pthread_mutex_lock(&keeper->mutex);
    *synced = keeper->synced;
    enum hf_status status = sync_end(keeper, error);
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}

enum hf_status keeper_sync_wait(struct keeper *keeper, uint64_t number,
                                char *error)
{
    pthread_mutex_lock(&keeper->mutex);
    while (keeper->synced < number && keeper->sync_end == HF_OK)
        pthread_cond_wait(&keeper->done, &keeper->mutex);
    enum hf_status status = sync_end(keeper, error);
    pthread_mutex_unlock(&keeper->mutex);
    return status;
}

void keeper_retry(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    if (keeper->spare_failed) {
        keeper->spare_failed = false;
        pthread_cond_signal(&keeper->work);
    }
    pthread_mutex_unlock(&keeper->mutex);
}

/* Size of the segment, 0 if it cannot be had. */
static uint64_t segment_size(struct keeper *keeper, const char *name)
{
    struct stat info;

    if (fstatat(keeper->folder->fd, name, &info, 0) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

void keeper_recycle(struct keeper *keeper, uint64_t first)
{
    struct folder *folder = keeper->folder;
    struct journal_io *io = folder->io;
    char name[FOLDER_NAME_MAX];
    char spare[FOLDER_NAME_MAX];
    int slot = -1;

    folder_segment_name(name, first);
    uint64_t bytes = segment_size(keeper, name);
    pthread_mutex_lock(&keeper->mutex);
    /* Leaves one slot to the thread, which may need to make a spare. */
    if (bytes == keeper->segment_bytes && find_spare(keeper, SPARE_BUSY) < 0 &&
        (slot = find_spare(keeper, SPARE_NONE)) >= 0)
        keeper->spares[slot] = SPARE_BUSY;
    pthread_mutex_unlock(&keeper->mutex);
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
    pthread_mutex_lock(&keeper->mutex);
    if (slot >= 0)
        keeper->spares[slot] = cause == 0 ? SPARE_READY : SPARE_NONE;
    else if (cause == 0)
        keeper->bytes -= bytes;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->mutex);
}

void keeper_count(struct keeper *keeper, int64_t bytes)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->bytes += (uint64_t)bytes;
    pthread_mutex_unlock(&keeper->mutex);
}

uint64_t keeper_bytes(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    uint64_t bytes = keeper->bytes;
    pthread_mutex_unlock(&keeper->mutex);
    return bytes;
}
