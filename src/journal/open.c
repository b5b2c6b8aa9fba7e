/* open.c - opens and closes a journal: recovers, then gets ready to write.
 *
 * Between reading and writing lies the cut. What is behind the last good batch
 * must never be taken for batches later, so before the first new one is
 * written:
 *
 *   1. everything recovered is on disk, and so are the names of its files (it
 *      may have been in memory only);
 *   2. the manifest says so, names the segment that holds the end as the
 *      newest, and no longer that the end was clean;
 *   3. segments behind that one are removed, and the removal is on disk;
 *   4. if the rest of the last segment holds a valid batch, a new segment
 *      starts with the next number: the walk then leaves the old one before
 *      it comes to that batch. So it is behind a segment of version 1, whose
 *      header does not say how long it is. Otherwise the old segment goes on.
 *
 * A crash anywhere in between leaves a folder whose walk ends at the same
 * batch, so that the same steps are taken again.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/recover.h"
#include "journal/snapshot.h"
#include "journal/state.h"

#define SEGMENT_BYTES_DEFAULT  (64u << 20)
#define SNAPSHOT_BYTES_DEFAULT (256u << 20)
#define SLOW_NS_DEFAULT        2000000u

/* What there is to recover from. */
struct found {
    struct folder_list list;
    struct manifest_slot manifest; /* zeros if there is none */
    bool has_manifest;
    uint64_t snapshot_bytes;
    bool unclean; /* something told may be lost */
};

/* Loads the newest snapshot, which must not be older than the manifest's. */
static enum hf_status recover_snapshot(struct walk *walk, struct found *found,
                                       char *error)
{
    const struct folder_list *list = &found->list;
    char name[FOLDER_NAME_MAX];

    if (list->snapshot_count > 0)
        walk->after = list->snapshots[list->snapshot_count - 1];
    if (walk->after < found->manifest.snapshot) {
        folder_snapshot_name(name, found->manifest.snapshot);
        return folder_damaged(walk->folder, error,
                              "/%s is missing; put it back, or ", name);
    }
    if (walk->after == 0)
        return HF_OK;
    return snapshot_load(walk->folder, walk->machine, walk->state, walk->after,
                         &found->snapshot_bytes, error);
}

/* Loads the newest snapshot, if any, and walks the batches behind it. HF_EMPTY
 * as walk_run(). */
static enum hf_status walk_all(struct walk *walk, struct found *found,
                               char *error)
{
    if (found->has_manifest)
        walk->known = &found->manifest;
    enum hf_status status = recover_snapshot(walk, found, error);
    if (status == HF_OK)
        status = walk_run(walk, error);
    if (status == HF_OK && walk->modern && !found->has_manifest)
        status =
            folder_damaged(walk->folder, error,
                           "/" FOLDER_MANIFEST " is missing; put it back, or ");
    found->unclean = status == HF_OK && !walk_is_clean(walk);
    return status;
}

/* Recovers into a new state, which is walk->state; found->list is to be
 * destroyed. On failure nothing is left behind. */
static enum hf_status recover(struct folder *folder,
                              const struct journal_machine *machine,
                              struct walk *walk, struct found *found,
                              char *error)
{
    *found = (struct found){.has_manifest = true};
    enum hf_status status = manifest_read(folder, &found->manifest, error);
    if (status == HF_NOTFOUND)
        found->has_manifest = false;
    else if (status != HF_OK)
        return status;
    status = folder_list(folder, &found->list, error);
    if (status != HF_OK)
        return status;
    *walk = (struct walk){.folder = folder,
                          .list = &found->list,
                          .machine = machine,
                          .state = machine->create(machine->context),
                          .until = UINT64_MAX};
    if (walk->state == NULL)
        status = journal_say(error, HF_NOMEM, "no memory for the state of %s",
                             folder->path);
    else
        status = walk_all(walk, found, error);
    if (status == HF_OK || status == HF_EMPTY)
        return HF_OK;
    if (walk->state != NULL)
        machine->destroy(walk->state);
    folder_list_destroy(&found->list);
    return status;
}

/* Step 1 of the cut. */
static enum hf_status sync_walked(struct folder *folder,
                                  const struct walk *walk, char *error)
{
    struct journal_io *io = folder->io;
    char name[FOLDER_NAME_MAX];
    int fd;

    for (size_t i = 0; i <= walk->tail_index; i++) {
        if (walk->list->segments[i] <= walk->after)
            continue;
        folder_segment_name(name, walk->list->segments[i]);
        int cause = io->open(io, folder->fd, name, O_RDWR, &fd);
        if (cause != 0)
            return folder_failed(folder, "open", name, cause, error);
        cause = io->sync(io, fd);
        close(fd);
        if (cause != 0)
            return folder_failed(folder, "sync", name, cause, error);
    }
    return folder_sync(folder, error);
}

/* Step 2 of the cut, or the first thing in a new folder. */
static enum hf_status open_manifest(struct journal *journal,
                                    const struct walk *walk,
                                    const struct found *found, char *error)
{
    struct manifest_slot slot = {
        .segment = walk->tail_index == SIZE_MAX ? 0 : walk->tail.header.first,
        .snapshot = walk->after,
        .synced = walk->last,
        .note = found->manifest.note,
    };
    enum hf_status status;

    if (!found->has_manifest) {
        status = manifest_replace(&journal->folder, &slot, error);
        if (status != HF_OK)
            return status;
        return manifest_open(&journal->manifest, &journal->folder, &slot,
                             error);
    }
    status = manifest_open(&journal->manifest, &journal->folder,
                           &found->manifest, error);
    if (status != HF_OK)
        return status;
    (void)manifest_begin(&journal->manifest);
    return manifest_end(&journal->manifest, slot, error);
}

/* Step 3 of the cut. */
static enum hf_status remove_later(struct folder *folder, struct walk *walk,
                                   char *error)
{
    struct journal_io *io = folder->io;
    struct folder_list *list = walk->list;
    char name[FOLDER_NAME_MAX];

    if (walk->tail_index + 1 == list->segment_count)
        return HF_OK;
    while (list->segment_count > walk->tail_index + 1) {
        folder_segment_name(name, list->segments[list->segment_count - 1]);
        list->bytes -= folder_size(folder, name);
        int cause = io->remove(io, folder->fd, name);
        if (cause != 0)
            return folder_failed(folder, "remove", name, cause, error);
        list->segment_count--;
    }
    return folder_sync(folder, error);
}

/* The cut, steps 1 to 3. */
static enum hf_status cut(struct journal *journal, struct walk *walk,
                          const struct found *found, char *error)
{
    struct folder *folder = &journal->folder;
    bool fresh = walk->tail_index == SIZE_MAX;
    enum hf_status status = HF_OK;

    if (!fresh)
        status = sync_walked(folder, walk, error);
    if (status == HF_OK)
        status = open_manifest(journal, walk, found, error);
    if (status == HF_OK && !fresh)
        status = remove_later(folder, walk, error);
    return status;
}

/* From what the walk found to a segment that can be written. */
static enum hf_status make_writable(struct journal *journal, struct walk *walk,
                                    struct found *found, uint64_t segment_bytes,
                                    char *error)
{
    bool always = journal->sync == JOURNAL_ALWAYS;
    bool fresh = walk->tail_index == SIZE_MAX;
    enum hf_status status = cut(journal, walk, found, error);

    if (status != HF_OK)
        return status;
    status = keeper_open(&journal->keeper, &journal->manifest, &found->list,
                         always, segment_bytes, error);
    if (status != HF_OK)
        return status;
    journal->last = walk->last;
    journal->synced = walk->last;
    journal->note = found->manifest.note;
    if (fresh || walk->stale || walk->tail.header.bytes == 0) {
        status = keeper_first(&journal->keeper, walk->last + 1,
                              walk_previous(walk), &journal->segment, error);
    } else {
        journal->segment = walk->tail;
        status =
            segment_reopen(&journal->folder, always, &journal->segment, error);
    }
    if (status == HF_OK)
        status = keeper_run(&journal->keeper, error);
    if (status != HF_OK) {
        if (journal->segment.fd >= 0)
            close(journal->segment.fd);
        keeper_close(&journal->keeper);
    }
    return status;
}

static void remove_temporaries(struct folder *folder)
{
    struct journal_io *io = folder->io;

    (void)io->remove(io, folder->fd, FOLDER_SEGMENT_TEMPORARY);
    (void)io->remove(io, folder->fd, FOLDER_SNAPSHOT_TEMPORARY);
    (void)io->remove(io, folder->fd, FOLDER_MANIFEST_TEMPORARY);
}

/* Bytes of the journal behind the newest snapshot. */
static uint64_t walked_bytes(const struct walk *walk, uint64_t segment_bytes)
{
    if (walk->tail_index == SIZE_MAX)
        return 0;
    uint64_t bytes = walk->tail.offset - JOURNAL_BLOCK;
    for (size_t i = 0; i < walk->tail_index; i++) {
        if (walk->list->segments[i] > walk->after)
            bytes += segment_bytes;
    }
    return bytes;
}

static struct log_stats recovered(const struct walk *walk,
                                  const struct found *found)
{
    return (struct log_stats){.replayed_count = walk->records,
                              .replayed_batches = walk->last - walk->after,
                              .cut_bytes = walk->cut_bytes,
                              .unclean = found->unclean,
                              .note = found->manifest.note};
}

/* Recovers into `*state` and starts everything; the folder is open. */
static enum hf_status start(struct journal *journal,
                            const struct journal_opts *opts,
                            uint64_t segment_bytes, void **state, char *error)
{
    struct folder *folder = &journal->folder;
    struct found found;
    struct walk walk;

    remove_temporaries(folder);
    enum hf_status status =
        recover(folder, opts->machine, &walk, &found, error);
    if (status != HF_OK)
        return status;
    status = make_writable(journal, &walk, &found, segment_bytes, error);
    if (status == HF_OK) {
        *state = walk.state;
        journal->stats = recovered(&walk, &found);
        journal->since_snapshot = walked_bytes(&walk, segment_bytes);
        maker_init(&journal->maker, &journal->manifest, &journal->keeper, opts,
                   walk.after, found.snapshot_bytes);
        maker_clean(folder, &journal->keeper, &found.list, walk.after);
    } else {
        opts->machine->destroy(walk.state);
        manifest_close(&journal->manifest);
    }
    folder_list_destroy(&found.list);
    return status;
}

/* The caller's disk, or the best there is. */
static enum hf_status choose_io(struct journal *journal,
                                const struct journal_opts *opts,
                                struct journal_io **io, char *error)
{
    *io = opts->io;
    if (*io != NULL)
        return HF_OK;
    enum hf_status status = journal_io_uring(io);
    if (status == HF_NOTFOUND)
        status = journal_io_thread(io);
    if (status != HF_OK)
        return journal_say(error, status, "cannot start to write to %s: %s",
                           opts->dir, hf_status_text(status));
    journal->io = *io;
    return HF_OK;
}

static struct journal *journal_new(const struct journal_opts *opts,
                                   uint64_t segment_bytes)
{
    size_t dir_bytes = strlen(opts->dir) + 1;
    struct journal *journal = hf_alloc_zeroed(sizeof *journal + dir_bytes);

    if (journal == NULL)
        return NULL;
    memcpy(journal->dir, opts->dir, dir_bytes);
    journal->log = (struct log){.ops = &journal_ops, .flights_max = 1};
    journal->clock = opts->clock;
    journal->sync = opts->sync;
    journal->snapshot_bytes =
        opts->snapshot_bytes ? opts->snapshot_bytes : SNAPSHOT_BYTES_DEFAULT;
    journal->slow_ns = opts->slow_ns ? opts->slow_ns : SLOW_NS_DEFAULT;
    journal->segment.fd = -1;
    journal->manifest.fd = -1;
    journal->building = &journal->buffers[0];
    journal->committed = &journal->buffers[1];
    uint64_t room = segment_bytes - JOURNAL_BLOCK - BATCH_HEADER_BYTES;
    journal->batch_max =
        room < JOURNAL_BATCH_MAX ? (size_t)room : JOURNAL_BATCH_MAX;
    return journal;
}

static void journal_delete(struct journal *journal)
{
    if (journal->io != NULL)
        journal->io->close(journal->io);
    hf_free(journal->buffers[0].data);
    hf_free(journal->buffers[1].data);
    hf_free(journal);
}

enum hf_status journal_open(struct log **out, const struct journal_opts *opts,
                            void **machine, char *error)
{
    uint64_t segment_bytes =
        opts->segment_bytes ? opts->segment_bytes : SEGMENT_BYTES_DEFAULT;
    struct journal_io *io;

    error[0] = '\0';
    if (segment_bytes % JOURNAL_BLOCK != 0 || segment_bytes < 2 * JOURNAL_BLOCK)
        return journal_say(error, HF_INVALID,
                           "the segment size must be a multiple of %u, and at "
                           "least %u",
                           JOURNAL_BLOCK, 2 * JOURNAL_BLOCK);
    struct journal *journal = journal_new(opts, segment_bytes);
    if (journal == NULL)
        return journal_say(error, HF_NOMEM, "no memory to open %s", opts->dir);
    enum hf_status status = choose_io(journal, opts, &io, error);
    if (status == HF_OK)
        status =
            folder_open(&journal->folder, journal->dir, FOLDER_MAKE, io, error);
    if (status == HF_OK) {
        status = start(journal, opts, segment_bytes, machine, error);
        if (status != HF_OK)
            folder_close(&journal->folder);
    }
    if (status == HF_OK)
        *out = &journal->log;
    else
        journal_delete(journal);
    return status;
}

void journal_close(struct log *log)
{
    struct journal *journal = journal_of(log);
    struct journal_io *io = journal->folder.io;

    journal_settle(journal);
    maker_destroy(&journal->maker);
    keeper_close(&journal->keeper);
    if (journal->segment.fd >= 0) {
        if (journal->sync == JOURNAL_INTERVAL)
            (void)io->sync(io, journal->segment.fd);
        close(journal->segment.fd);
    }
    manifest_close(&journal->manifest);
    folder_close(&journal->folder);
    journal_delete(journal);
}

enum hf_status journal_read(const char *dir,
                            const struct journal_machine *machine, void **out,
                            struct log_stats *stats, char *error)
{
    struct journal_io *io = NULL;
    struct folder folder;
    struct found found;
    struct walk walk;

    error[0] = '\0';
    enum hf_status status = journal_io_plain(&io);
    if (status != HF_OK)
        return journal_say(error, status, "cannot read %s: %s", dir,
                           hf_status_text(status));
    status = folder_open(&folder, dir, FOLDER_READ, io, error);
    if (status == HF_OK) {
        status = recover(&folder, machine, &walk, &found, error);
        if (status == HF_OK) {
            *out = walk.state;
            *stats = recovered(&walk, &found);
            stats->snapshot_bytes = found.snapshot_bytes;
            stats->disk_bytes = found.list.bytes;
            folder_list_destroy(&found.list);
        }
        folder_close(&folder);
    }
    io->close(io);
    return status;
}
