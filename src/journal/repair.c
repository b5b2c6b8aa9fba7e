/* repair.c - makes a damaged journal readable again by dropping the rest.
 *
 *   ... batch e-1 | damaged batch e | batches behind it, perhaps intact
 *   kept          | dropped
 *
 * Batches build on each other, so nothing behind a gap can be applied. The
 * cut is the one that open makes: a new segment that starts with batch e ends
 * the one before it at batch e-1. It is made last, after everything dropped
 * has been moved (or copied, where a file is partly kept) to dropped/. Then
 * comes a new manifest, which says what is left; a crash before that leaves a
 * journal that still calls for a repair.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/recover.h"
#include "journal/snapshot.h"
#include "journal/state.h"

#define DROPPED          "dropped"
#define DROPPED_NAME_MAX (FOLDER_NAME_MAX + 32)
#define COPY_BYTES       SEGMENT_FILL_BYTES

/* The segment that ends the kept part: a header and room for one block; the
 * next one has the usual size again. */
#define NEW_SEGMENT_BYTES (2 * JOURNAL_BLOCK)

struct repair {
    struct folder folder;
    struct folder_list list;
    struct walk walk;
    struct manifest_slot manifest; /* zeros if it is missing or damaged */
    enum hf_status manifest_end;   /* of reading it */
    size_t snapshots_kept; /* of list.snapshots; those behind are damaged */
    bool damaged;
    bool untold; /* there was no memory for the text */
    struct hf_buf *text;
    char *error;
};

/* The walk is told of all that the manifest names but the snapshot: an older
 * one, or none, will have to do. */
static enum hf_status walk_kept(struct repair *repair, char *why)
{
    struct folder_list *list = &repair->list;

    repair->walk = (struct walk){
        .folder = &repair->folder, .list = list, .until = UINT64_MAX};
    if (repair->manifest_end == HF_OK)
        repair->walk.known = &repair->manifest;
    if (list->snapshot_count > 0)
        repair->walk.after = list->snapshots[list->snapshot_count - 1];
    if (repair->walk.after < repair->manifest.snapshot)
        repair->damaged = true;
    enum hf_status status = walk_run(&repair->walk, why);
    if (repair->manifest_end == HF_CORRUPT ||
        (repair->manifest_end == HF_NOTFOUND && repair->walk.modern))
        repair->damaged = true;
    return status;
}

/* Finds the newest snapshot that is whole, and walks from there. HF_CORRUPT:
 * the batches need a cut. */
static enum hf_status examine(struct repair *repair)
{
    struct folder_list *list = &repair->list;
    char why[JOURNAL_ERROR_MAX];
    uint64_t bytes;
    enum hf_status status = HF_OK;

    for (; list->snapshot_count > 0; list->snapshot_count--) {
        uint64_t last = list->snapshots[list->snapshot_count - 1];
        status = snapshot_load(&repair->folder, NULL, NULL, last, &bytes, why);
        if (status != HF_CORRUPT)
            break;
        repair->damaged = true;
    }
    repair->snapshots_kept = list->snapshot_count;
    if (status != HF_OK && status != HF_CORRUPT)
        return journal_say(repair->error, status, "%s", why);
    status = walk_kept(repair, why);
    /* A journal of which nothing but a damaged snapshot is left. */
    if (status == HF_EMPTY)
        return repair->damaged ? HF_CORRUPT : HF_OK;
    if (status == HF_CORRUPT)
        repair->damaged = true;
    else if (status != HF_OK)
        return journal_say(repair->error, status, "%s", why);
    return status;
}

/* The segment of which the beginning is kept; false if there is none. */
static bool partly_kept(const struct repair *repair, char *name)
{
    const struct walk *walk = &repair->walk;

    folder_segment_name(name, walk->tail.header.first);
    return walk->tail_index != SIZE_MAX &&
           walk->tail.header.first != walk->last + 1;
}

/* The first segment that is dropped whole: the first behind what is kept. */
static size_t first_dropped(const struct repair *repair)
{
    size_t i = 0;

    while (i < repair->list.segment_count &&
           repair->list.segments[i] <= repair->walk.last)
        i++;
    return i;
}

#define TELL(repair, ...) \
    (repair->untold |= hf_buf_format(repair->text, __VA_ARGS__) != HF_OK)

/* Which batches are lost, as far as anybody can tell. */
static void tell_lost(struct repair *repair)
{
    const struct walk *walk = &repair->walk;
    bool counted = walk->later_count > 0 ||
                   first_dropped(repair) >= repair->list.segment_count;

    if (walk_is_clean(walk)) {
        TELL(repair, "dropped: no batch, that was the last\n");
        return;
    }
    TELL(repair, "dropped: batch %llu, which is damaged or missing, and ",
         (unsigned long long)walk->last + 1);
    if (counted)
        TELL(repair, "%llu intact batches behind it with %llu records\n",
             (unsigned long long)walk->later_count,
             (unsigned long long)walk->later_records);
    else
        TELL(repair, "all that is in the files below, which was not read and "
                     "may be much\n");
}

static void tell_cut(struct repair *repair)
{
    const struct walk *walk = &repair->walk;
    char name[FOLDER_NAME_MAX];

    TELL(repair, "kept: everything up to batch %llu\n",
         (unsigned long long)walk->last);
    tell_lost(repair);
    if (partly_kept(repair, name))
        TELL(repair, "  %s from offset %llu on (copied whole)\n", name,
             (unsigned long long)walk->tail.offset);
    for (size_t i = first_dropped(repair); i < repair->list.segment_count;
         i++) {
        folder_segment_name(name, repair->list.segments[i]);
        TELL(repair, "  %s\n", name);
    }
}

/* What the manifest names, and the manifest itself. */
static void tell_manifest(struct repair *repair, size_t snapshots)
{
    const struct folder_list *list = &repair->list;
    uint64_t newest = snapshots > 0 ? list->snapshots[snapshots - 1] : 0;
    char name[FOLDER_NAME_MAX];

    if (repair->manifest_end == HF_CORRUPT) {
        TELL(repair, "made anew: " FOLDER_MANIFEST ", which is damaged\n");
    } else if (repair->manifest_end == HF_NOTFOUND && repair->walk.modern) {
        TELL(repair, "made anew: " FOLDER_MANIFEST ", which is missing\n");
    } else if (newest < repair->manifest.snapshot) {
        folder_snapshot_name(name, repair->manifest.snapshot);
        TELL(repair, "missing: %s\n", name);
    }
}

static void tell(struct repair *repair, bool cut, size_t snapshots, bool apply)
{
    const char *path = repair->folder.path;
    char name[FOLDER_NAME_MAX];

    if (!repair->damaged) {
        TELL(repair, "%s: nothing to repair\n", path);
        return;
    }
    for (size_t i = repair->snapshots_kept; i < snapshots; i++) {
        folder_snapshot_name(name, repair->list.snapshots[i]);
        TELL(repair, "dropped: %s, which is damaged\n", name);
    }
    tell_manifest(repair, snapshots);
    if (cut)
        tell_cut(repair);
    else
        TELL(repair, "kept: every batch of the journal\n");
    if (apply)
        TELL(repair, "done; the dropped files are in %s/%s\n", path, DROPPED);
    else
        TELL(repair,
             "nothing has been changed; 'holdfast repair %s --apply' does it "
             "and keeps the dropped files in %s/%s\n",
             path, path, DROPPED);
}

/* A name under dropped/ that is still free. */
static void dropped_name(const struct repair *repair, const char *name,
                         char *out)
{
    snprintf(out, DROPPED_NAME_MAX, DROPPED "/%s", name);
    for (unsigned i = 1; faccessat(repair->folder.fd, out, F_OK, 0) == 0; i++)
        snprintf(out, DROPPED_NAME_MAX, DROPPED "/%s.%u", name, i);
}

static enum hf_status move_away(struct repair *repair, const char *name)
{
    struct journal_io *io = repair->folder.io;
    char to[DROPPED_NAME_MAX];

    dropped_name(repair, name, to);
    int cause = io->rename(io, repair->folder.fd, name, to);
    return cause == 0 ? HF_OK
                      : folder_failed(&repair->folder, "move", name, cause,
                                      repair->error);
}

static int copy_bytes(struct journal_io *io, int from, int to, char *memory)
{
    uint64_t offset = 0;
    size_t got;
    int cause;

    do {
        cause = io->read(io, from, memory, COPY_BYTES, offset, &got);
        if (cause == 0 && got > 0)
            cause = io->write(io, to, memory, got, offset);
        offset += got;
    } while (cause == 0 && got > 0);
    return cause == 0 ? io->sync(io, to) : cause;
}

static enum hf_status copy_away(struct repair *repair, const char *name,
                                char *memory)
{
    struct journal_io *io = repair->folder.io;
    char to[DROPPED_NAME_MAX];
    int from_fd;
    int to_fd;

    dropped_name(repair, name, to);
    int cause = io->open(io, repair->folder.fd, name, O_RDONLY, &from_fd);
    if (cause != 0)
        return folder_failed(&repair->folder, "open", name, cause,
                             repair->error);
    cause = io->open(io, repair->folder.fd, to, O_WRONLY | O_CREAT | O_EXCL,
                     &to_fd);
    if (cause == 0) {
        cause = copy_bytes(io, from_fd, to_fd, memory);
        close(to_fd);
    }
    close(from_fd);
    return cause == 0 ? HF_OK
                      : folder_failed(&repair->folder, "write", to, cause,
                                      repair->error);
}

/* Where files are now before where they were: none is in neither. */
static enum hf_status sync_names(struct repair *repair)
{
    struct folder *folder = &repair->folder;
    int fd = openat(folder->fd, DROPPED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int cause = fd < 0 ? errno : folder->io->sync_folder(folder->io, fd);

    if (fd >= 0)
        close(fd);
    if (cause != 0)
        return folder_failed(folder, "sync", DROPPED, cause, repair->error);
    return folder_sync(folder, repair->error);
}

/* Moves what is dropped, later segments first. */
static enum hf_status move_all(struct repair *repair, bool cut,
                               size_t snapshots, char *memory)
{
    char name[FOLDER_NAME_MAX];
    enum hf_status status = HF_OK;
    size_t kept = cut ? first_dropped(repair) : repair->list.segment_count;

    if (mkdirat(repair->folder.fd, DROPPED, 0750) != 0 && errno != EEXIST)
        return folder_failed(&repair->folder, "make", DROPPED, errno,
                             repair->error);
    if (cut && partly_kept(repair, name))
        status = copy_away(repair, name, memory);
    for (size_t i = repair->list.segment_count; i > kept && status == HF_OK;
         i--) {
        folder_segment_name(name, repair->list.segments[i - 1]);
        status = move_away(repair, name);
    }
    for (size_t i = repair->snapshots_kept; i < snapshots && status == HF_OK;
         i++) {
        folder_snapshot_name(name, repair->list.snapshots[i]);
        status = move_away(repair, name);
    }
    if (status != HF_OK)
        return status;
    return sync_names(repair);
}

static enum hf_status start_segment(struct repair *repair, char *memory)
{
    struct folder *folder = &repair->folder;
    struct segment_header header = {.first = repair->walk.last + 1,
                                    .synced = repair->walk.last,
                                    .previous = walk_previous(&repair->walk)};
    struct segment segment;

    memset(memory, 0, COPY_BYTES);
    enum hf_status status = segment_make(folder, 0, NEW_SEGMENT_BYTES, memory,
                                         false, repair->error);
    if (status == HF_OK)
        status = segment_open(folder, 0, header, false, memory, &segment,
                              repair->error);
    if (status == HF_OK)
        close(segment.fd);
    return status;
}

/* Not clean: what was dropped may have been told. */
static enum hf_status write_manifest(struct repair *repair, bool cut)
{
    const struct walk *walk = &repair->walk;
    bool known = repair->manifest_end == HF_OK;
    struct manifest_slot slot = {.snapshot = walk->after,
                                 .synced = walk->last,
                                 .note = known ? repair->manifest.note
                                               : JOURNAL_NOTE_UNKNOWN};

    slot.segment = cut ? walk->last + 1 : walk->tail.header.first;
    return manifest_replace(&repair->folder, &slot, repair->error);
}

static enum hf_status repair_folder(struct repair *repair, bool apply)
{
    size_t snapshots = repair->list.snapshot_count;
    enum hf_status status = examine(repair);
    bool cut = status == HF_CORRUPT;

    if (status != HF_OK && !cut)
        return status;
    status = HF_OK;
    if (apply && repair->damaged) {
        char *memory = hf_alloc_aligned(JOURNAL_BLOCK, COPY_BYTES);
        if (memory == NULL)
            return journal_say(repair->error, HF_NOMEM, "no memory");
        status = move_all(repair, cut, snapshots, memory);
        if (status == HF_OK && cut)
            status = start_segment(repair, memory);
        if (status == HF_OK)
            status = write_manifest(repair, cut);
        hf_free(memory);
    }
    if (status != HF_OK)
        return status;
    tell(repair, cut, snapshots, apply);
    return repair->untold ? journal_say(repair->error, HF_NOMEM, "no memory")
                          : HF_OK;
}

static void close_folder(struct repair *repair)
{
    folder_list_destroy(&repair->list);
    folder_close(&repair->folder);
}

/* Also if there is no journal in it: HF_NOTFOUND. */
static enum hf_status open_folder(struct repair *repair, struct journal_io *io,
                                  const char *dir, enum folder_mode mode)
{
    struct folder *folder = &repair->folder;
    enum hf_status status = folder_open(folder, dir, mode, io, repair->error);

    if (status != HF_OK)
        return status;
    repair->manifest_end =
        manifest_read(folder, &repair->manifest, repair->error);
    status = repair->manifest_end == HF_IO
                 ? HF_IO
                 : folder_list(folder, &repair->list, repair->error);
    if (status == HF_OK && repair->manifest_end == HF_NOTFOUND &&
        repair->list.segment_count + repair->list.snapshot_count == 0)
        status = journal_say(repair->error, HF_NOTFOUND,
                             "there is no journal in %s", dir);
    if (status != HF_OK)
        close_folder(repair);
    return status;
}

/* To open it for writing leaves a file there: before that it is looked at. */
enum hf_status journal_repair_on(struct journal_io *io, const char *dir,
                                 bool apply, struct hf_buf *text, char *error)
{
    struct repair repair = {.text = text, .error = error};
    enum hf_status status = open_folder(&repair, io, dir, FOLDER_READ);

    if (status == HF_OK && apply) {
        close_folder(&repair);
        repair = (struct repair){.text = text, .error = error};
        status = open_folder(&repair, io, dir, FOLDER_WRITE);
    }
    if (status != HF_OK)
        return status;
    status = repair_folder(&repair, apply);
    close_folder(&repair);
    return status;
}

enum hf_status journal_repair(const char *dir, bool apply, struct hf_buf *text,
                              char *error)
{
    struct journal_io *io;

    error[0] = '\0';
    enum hf_status status = journal_io_plain(&io);
    if (status != HF_OK)
        return journal_say(error, status, "cannot read %s: %s", dir,
                           hf_status_text(status));
    status = journal_repair_on(io, dir, apply, text, error);
    io->close(io);
    return status;
}
