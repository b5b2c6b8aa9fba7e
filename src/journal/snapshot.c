/* snapshot.c - writes a machine's pieces to a file and reads them back. */
#include "journal/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "journal/format.h"

/* Pieces are gathered into writes of this size. */
#define OUT_BYTES (256u * 1024)

bool snapshot_unwanted(const struct journal_machine *machine)
{
    /* Relaxed: it only has to be seen some time. */
    return machine->unwanted != NULL &&
           hf_u32_load(machine->unwanted, __ATOMIC_RELAXED) != 0;
}

struct out {
    const struct journal_machine *machine;
    struct journal_io *io;
    int fd;
    char *data; /* OUT_BYTES */
    size_t len;
    uint64_t offset; /* of `data` in the file */
    uint64_t pieces;
    int cause; /* errno of the write that failed */
};

static enum hf_status out_flush(struct out *out)
{
    if (out->len > 0)
        out->cause =
            out->io->write(out->io, out->fd, out->data, out->len, out->offset);
    out->offset += out->len;
    out->len = 0;
    return out->cause == 0 ? HF_OK : HF_IO;
}

static enum hf_status out_add(struct out *out, const char *data, size_t len)
{
    while (len > 0) {
        size_t part = OUT_BYTES - out->len;
        if (part > len)
            part = len;
        memcpy(out->data + out->len, data, part);
        out->len += part;
        data += part;
        len -= part;
        if (out->len == OUT_BYTES && out_flush(out) != HF_OK)
            return HF_IO;
    }
    return HF_OK;
}

static enum hf_status out_piece(void *context, const void *data, size_t len)
{
    struct out *out = context;
    char frame[SNAPSHOT_FRAME_BYTES];

    if (snapshot_unwanted(out->machine))
        return HF_CANCELLED;
    if (len > SNAPSHOT_PIECE_MAX)
        return HF_INVALID;
    snapshot_frame_encode(frame, hf_bytes(data, len), out->pieces);
    out->pieces++;
    enum hf_status status = out_add(out, frame, sizeof frame);
    return status == HF_OK ? out_add(out, data, len) : status;
}

/* Everything between the open and the rename. */
static enum hf_status write_all(struct out *out, void *state, uint64_t last)
{
    char head[SNAPSHOT_HEAD_BYTES];
    char end[SNAPSHOT_END_BYTES];

    snapshot_head_encode(head, last);
    enum hf_status status = out_add(out, head, sizeof head);
    if (status == HF_OK)
        status = out->machine->save(state, out_piece, out);
    if (status != HF_OK)
        return status;
    snapshot_end_encode(end, out->pieces, last);
    status = out_add(out, end, sizeof end);
    if (status == HF_OK)
        status = out_flush(out);
    if (status == HF_OK)
        out->cause = out->io->sync(out->io, out->fd);
    return out->cause == 0 ? status : HF_IO;
}

enum hf_status snapshot_save(struct folder *folder,
                             const struct journal_machine *machine, void *state,
                             uint64_t last, uint64_t *bytes, char *error)
{
    struct journal_io *io = folder->io;
    const char *temporary = FOLDER_SNAPSHOT_TEMPORARY;
    struct out out = {.machine = machine, .io = io, .fd = -1};
    enum hf_status status = HF_NOMEM;
    char name[FOLDER_NAME_MAX];

    folder_snapshot_name(name, last);
    out.data = hf_alloc(OUT_BYTES);
    if (out.data == NULL)
        goto done;
    out.cause = io->open(io, folder->fd, temporary, O_RDWR | O_CREAT | O_TRUNC,
                         &out.fd);
    status = out.cause == 0 ? write_all(&out, state, last) : HF_IO;
    if (status == HF_OK)
        out.cause = io->rename(io, folder->fd, temporary, name);
    if (status == HF_OK && out.cause == 0)
        out.cause = io->sync_folder(io, folder->fd);
    *bytes = out.offset;
    if (out.cause != 0)
        status = HF_IO;

done:
    if (out.fd >= 0) {
        close(out.fd);
        if (status != HF_OK)
            (void)io->remove(io, folder->fd, temporary);
    }
    hf_free(out.data);
    if (status != HF_OK)
        journal_say(error, status, "cannot make %s/%s: %s", folder->path, name,
                    out.cause != 0 ? strerror(out.cause)
                                   : hf_status_text(status));
    return status;
}

struct in {
    struct folder *folder;
    const char *name;
    int fd;
    uint64_t bytes; /* size of the file */
    uint64_t offset;
    struct hf_buf piece;
    char *error;
};

static enum hf_status damaged(struct in *in)
{
    return folder_damaged(in->folder, in->error,
                          "/%s: the snapshot is damaged at offset %llu; put a "
                          "copy back, or ",
                          in->name, (unsigned long long)in->offset);
}

static enum hf_status in_take(struct in *in, char *data, size_t len)
{
    struct journal_io *io = in->folder->io;
    size_t got;

    if (in->bytes - in->offset < len)
        return damaged(in);
    int cause = io->read(io, in->fd, data, len, in->offset, &got);
    if (cause != 0)
        return folder_failed(in->folder, "read", in->name, cause, in->error);
    if (got < len)
        return damaged(in);
    in->offset += len;
    return HF_OK;
}

/* One piece into `in->piece`; HF_EMPTY after the last. */
static enum hf_status in_piece(struct in *in, uint64_t index, uint64_t last)
{
    char frame[SNAPSHOT_END_BYTES];
    uint32_t len;
    enum hf_status status = in_take(in, frame, SNAPSHOT_FRAME_BYTES);

    if (status != HF_OK)
        return status;
    if (snapshot_frame_decode(frame, &len) == HF_EMPTY) {
        status = in_take(in, frame + SNAPSHOT_FRAME_BYTES,
                         SNAPSHOT_END_BYTES - SNAPSHOT_FRAME_BYTES);
        if (status != HF_OK)
            return status;
        if (!snapshot_end_valid(frame, index, last) || in->offset != in->bytes)
            return damaged(in);
        return HF_EMPTY;
    }
    if (in->bytes - in->offset < len)
        return damaged(in);
    in->piece.len = 0;
    if (hf_buf_reserve(&in->piece, len > 0 ? len : 1) != HF_OK)
        return journal_say(in->error, HF_NOMEM, "no memory to read %s/%s",
                           in->folder->path, in->name);
    status = in_take(in, in->piece.data, len);
    if (status != HF_OK)
        return status;
    in->piece.len = len;
    if (!snapshot_piece_valid(frame, hf_buf_bytes(&in->piece), index))
        return damaged(in);
    return HF_OK;
}

static enum hf_status in_all(struct in *in,
                             const struct journal_machine *machine, void *state,
                             uint64_t last)
{
    char head[SNAPSHOT_HEAD_BYTES];
    uint64_t found;
    enum hf_status status = in_take(in, head, sizeof head);

    if (status != HF_OK)
        return status;
    if (snapshot_head_decode(head, &found) != HF_OK || found != last) {
        in->offset = 0;
        return damaged(in);
    }
    for (uint64_t index = 0;; index++) {
        status = in_piece(in, index, last);
        if (status == HF_EMPTY)
            return HF_OK;
        if (status != HF_OK)
            return status;
        if (machine == NULL)
            continue;
        status = snapshot_unwanted(machine)
                     ? HF_CANCELLED
                     : machine->load(state, hf_buf_bytes(&in->piece));
        if (status != HF_OK)
            return journal_say(
                in->error, status, "%s/%s: piece %llu cannot be loaded: %s",
                in->folder->path, in->name, (unsigned long long)index,
                hf_status_text(status));
    }
}

enum hf_status snapshot_load(struct folder *folder,
                             const struct journal_machine *machine, void *state,
                             uint64_t last, uint64_t *bytes, char *error)
{
    char name[FOLDER_NAME_MAX];
    struct in in = {.folder = folder, .name = name, .error = error};
    struct stat info;

    folder_snapshot_name(name, last);
    int cause =
        folder->io->open(folder->io, folder->fd, name, O_RDONLY, &in.fd);
    if (cause != 0)
        return folder_failed(folder, "open", name, cause, error);
    enum hf_status status;
    if (fstat(in.fd, &info) == 0) {
        in.bytes = (uint64_t)info.st_size;
        status = in_all(&in, machine, state, last);
    } else {
        status = folder_failed(folder, "read", name, errno, error);
    }
    if (status == HF_OK)
        *bytes = in.bytes;
    close(in.fd);
    hf_buf_destroy(&in.piece);
    return status;
}
