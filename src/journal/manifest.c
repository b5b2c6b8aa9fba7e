/* manifest.c - reads and writes the two slots. */
#include "journal/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "journal/journal.h"

#define SLOTS          2u
#define MANIFEST_BYTES (SLOTS * JOURNAL_BLOCK)

static enum hf_status failed(struct folder *folder, const char *what, int cause,
                             char *error)
{
    return journal_say(error, HF_IO, "cannot %s %s/" FOLDER_MANIFEST ": %s",
                       what, folder->path, strerror(cause));
}

static enum hf_status damaged(struct folder *folder, char *error)
{
    return folder_damaged(
        folder, error, "/" FOLDER_MANIFEST " is damaged; put a copy back, or ");
}

enum hf_status manifest_read(struct folder *folder, struct manifest_slot *out,
                             char *error)
{
    struct journal_io *io = folder->io;
    char file[MANIFEST_BYTES + 1]; /* one more: longer is damage, too */
    struct manifest_slot slot;
    unsigned valid = 0;
    size_t got = 0;
    int fd;

    int cause = io->open(io, folder->fd, FOLDER_MANIFEST, O_RDONLY, &fd);
    if (cause == ENOENT)
        return HF_NOTFOUND;
    if (cause != 0)
        return failed(folder, "open", cause, error);
    cause = io->read(io, fd, file, sizeof file, 0, &got);
    close(fd);
    if (cause != 0)
        return failed(folder, "read", cause, error);
    if (got != MANIFEST_BYTES)
        return damaged(folder, error);
    for (size_t i = 0; i < SLOTS; i++) {
        if (manifest_decode(file + i * JOURNAL_BLOCK, &slot) != HF_OK)
            continue;
        if (valid == 0 || slot.serial > out->serial)
            *out = slot;
        valid++;
    }
    if (valid == 0)
        return damaged(folder, error);
    out->clean = out->clean && valid == SLOTS;
    return HF_OK;
}

/* No crash leaves half of it: it gets its name when it is on disk. */
enum hf_status manifest_replace(struct folder *folder,
                                struct manifest_slot *slot, char *error)
{
    struct journal_io *io = folder->io;
    const char *name = FOLDER_MANIFEST_TEMPORARY;
    char file[MANIFEST_BYTES];
    int fd;

    for (size_t i = 0; i < SLOTS; i++) {
        slot->serial = i;
        manifest_encode(slot, file + i * JOURNAL_BLOCK);
    }
    int cause = io->open(io, folder->fd, name, O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (cause != 0)
        return failed(folder, "make", cause, error);
    cause = io->write(io, fd, file, sizeof file, 0);
    if (cause == 0)
        cause = io->sync(io, fd);
    close(fd);
    if (cause == 0)
        cause = io->rename(io, folder->fd, name, FOLDER_MANIFEST);
    if (cause == 0)
        cause = io->sync_folder(io, folder->fd);
    if (cause == 0)
        return HF_OK;
    (void)io->remove(io, folder->fd, name);
    return failed(folder, "make", cause, error);
}

/* With the mutex held. A write that failed may have spoilt the slot that it
 * went to; the next one goes there again, never to the one that counts. */
static enum hf_status write_slot(struct manifest *manifest,
                                 struct manifest_slot next, char *error)
{
    struct journal_io *io = manifest->folder->io;
    char block[JOURNAL_BLOCK];

    next.serial = manifest->slot.serial + 1;
    manifest_encode(&next, block);
    int cause = io->write(io, manifest->fd, block, sizeof block,
                          next.serial % SLOTS * JOURNAL_BLOCK);
    if (cause == 0)
        cause = io->sync(io, manifest->fd);
    if (cause != 0)
        return failed(manifest->folder, "write", cause, error);
    manifest->slot = next;
    return HF_OK;
}

enum hf_status manifest_open(struct manifest *manifest, struct folder *folder,
                             const struct manifest_slot *known, char *error)
{
    struct journal_io *io = folder->io;

    *manifest = (struct manifest){.folder = folder, .slot = *known};
    int cause =
        io->open(io, folder->fd, FOLDER_MANIFEST, O_RDWR, &manifest->fd);
    if (cause == 0)
        return HF_OK;
    manifest->fd = -1;
    return failed(folder, "open", cause, error);
}

void manifest_close(struct manifest *manifest)
{
    if (manifest->fd >= 0)
        close(manifest->fd);
    manifest->fd = -1;
}

/* To be changed and handed to end_change(). */
static struct manifest_slot begin_change(struct manifest *manifest)
{
    hf_mutex_lock(&manifest->mutex);
    return manifest->slot;
}

static enum hf_status end_change(struct manifest *manifest,
                                 struct manifest_slot next, char *error)
{
    enum hf_status status = write_slot(manifest, next, error);

    hf_mutex_unlock(&manifest->mutex);
    return status;
}

enum hf_status manifest_write(struct manifest *manifest,
                              const struct manifest_slot *slot, char *error)
{
    (void)begin_change(manifest);
    return end_change(manifest, *slot, error);
}

enum hf_status manifest_segment(struct manifest *manifest, uint64_t first,
                                uint64_t synced, uint64_t note, char *error)
{
    struct manifest_slot next = begin_change(manifest);

    next.segment = first;
    next.synced = synced;
    next.note = note;
    return end_change(manifest, next, error);
}

enum hf_status manifest_snapshot(struct manifest *manifest, uint64_t last,
                                 char *error)
{
    struct manifest_slot next = begin_change(manifest);

    next.snapshot = last;
    return end_change(manifest, next, error);
}

enum hf_status manifest_note(struct manifest *manifest, uint64_t note,
                             char *error)
{
    struct manifest_slot next = begin_change(manifest);

    next.note = note;
    return end_change(manifest, next, error);
}

enum hf_status manifest_clean(struct manifest *manifest, uint64_t last,
                              char *error)
{
    struct manifest_slot next = begin_change(manifest);

    next.synced = last;
    next.clean = true;
    return end_change(manifest, next, error);
}
