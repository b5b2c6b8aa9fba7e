/* manifest.c - reads and writes the two slots. */
#include "journal/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SLOTS          2u
#define MANIFEST_BYTES (SLOTS * JOURNAL_BLOCK)

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
        return folder_failed(folder, "open", FOLDER_MANIFEST, cause, error);
    cause = io->read(io, fd, file, sizeof file, 0, &got);
    close(fd);
    if (cause != 0)
        return folder_failed(folder, "read", FOLDER_MANIFEST, cause, error);
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
        return folder_failed(folder, "make", FOLDER_MANIFEST, cause, error);
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
    return folder_failed(folder, "make", FOLDER_MANIFEST, cause, error);
}

struct manifest_slot manifest_begin(struct manifest *manifest)
{
    hf_mutex_lock(&manifest->mutex);
    return manifest->slot;
}

/* A write that failed may have spoilt the slot that it went to; the next one
 * goes there again, never to the one that counts. */
enum hf_status manifest_end(struct manifest *manifest,
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
    if (cause == 0)
        manifest->slot = next;
    hf_mutex_unlock(&manifest->mutex);
    return cause == 0 ? HF_OK
                      : folder_failed(manifest->folder, "write",
                                      FOLDER_MANIFEST, cause, error);
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
    return folder_failed(folder, "open", FOLDER_MANIFEST, cause, error);
}

void manifest_close(struct manifest *manifest)
{
    if (manifest->fd >= 0)
        close(manifest->fd);
    manifest->fd = -1;
}
