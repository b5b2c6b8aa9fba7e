/* scan.c - goes through all files as a server finds them at its start. */
#include "feed/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "feed/state.h"

struct feed_scan {
    struct feed feed; /* its files; nothing runs */
    size_t file;      /* being read */
    int fd;           /* of it; -1: not open */
    uint64_t next;    /* the offset of its next block */
    uint64_t block;   /* of the one that is in the scratch */
    size_t at;        /* its next event */
    size_t len;       /* of its events */
    uint64_t up_to;   /* all up to this was told, but for what is missing */
    uint64_t missing_from;
    uint64_t missing_to;
    char name[FEED_NAME_MAX];
};

enum hf_status feed_scan_open(struct feed_scan **out, const char *dir,
                              char error[FEED_ERROR_MAX])
{
    struct feed_scan *scan = hf_alloc_zeroed(sizeof *scan);
    enum hf_status status = HF_NOMEM;

    *out = scan;
    snprintf(error, FEED_ERROR_MAX, "out of memory");
    if (scan == NULL)
        return HF_NOMEM;
    struct feed *feed = &scan->feed;
    feed->opts.dir = dir;
    scan->fd = feed->fd = -1;
    feed->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    feed->scratch = hf_alloc(BLOCK_HEAD_BYTES + FEED_CHUNK_BYTES);
    if (feed->dir < 0) {
        snprintf(error, FEED_ERROR_MAX, "cannot open it: %s", strerror(errno));
        status = HF_IO;
    } else if (feed->scratch != NULL) {
        status = journal_io_plain(&feed->io);
    }
    if (status == HF_OK)
        status = files_open(feed, error);
    if (status != HF_OK) {
        feed_scan_close(scan);
        *out = NULL;
        return status;
    }
    if (feed->file_count > 0)
        scan->up_to = scan->missing_to = feed->files[0].start;
    return HF_OK;
}

void feed_scan_close(struct feed_scan *scan)
{
    if (scan == NULL)
        return;
    if (scan->fd >= 0)
        close(scan->fd);
    files_close(&scan->feed);
    if (scan->feed.io != NULL)
        scan->feed.io->close(scan->feed.io);
    if (scan->feed.dir >= 0)
        close(scan->feed.dir);
    hf_free(scan->feed.scratch);
    hf_free(scan);
}

size_t feed_scan_files(const struct feed_scan *scan)
{
    return scan->feed.file_count;
}

/* Opens the file that comes next. HF_CORRUPT if it cannot be. */
static enum hf_status open_file(struct feed_scan *scan)
{
    struct journal_io *io = scan->feed.io;

    files_name(scan->name, scan->feed.files[scan->file].start);
    scan->next = scan->block = scan->at = scan->len = 0;
    return io->open(io, scan->feed.dir, scan->name, O_RDONLY, &scan->fd) == 0
               ? HF_OK
               : HF_CORRUPT;
}

/* Leaves the file; damage is what the next one does not make up for. */
static enum hf_status end_file(struct feed_scan *scan)
{
    const struct feed_file *file = &scan->feed.files[scan->file];
    bool last = scan->file + 1 == scan->feed.file_count;

    scan->block = file->bytes;
    if (last)
        return HF_EMPTY;
    if (file->torn && file[1].start > file->up_to)
        return HF_CORRUPT;
    scan->file++;
    close(scan->fd);
    scan->fd = -1;
    return HF_OK;
}

/* Brings the next block into the scratch. */
static enum hf_status next_block(struct feed_scan *scan)
{
    enum hf_status status = HF_OK;
    struct feed_block block;

    if (scan->feed.file_count == 0)
        return HF_EMPTY;
    while (status == HF_OK) {
        if (scan->fd < 0 && (status = open_file(scan)) != HF_OK)
            break;
        if (scan->next < scan->feed.files[scan->file].bytes)
            break;
        status = end_file(scan);
    }
    if (status != HF_OK)
        return status;
    scan->block = scan->next;
    if (!files_block(&scan->feed, scan->fd, scan->block, &block))
        return HF_CORRUPT; /* it was whole a moment ago */
    if (block.before > scan->up_to) {
        if (scan->missing_to == scan->missing_from)
            scan->missing_from = scan->up_to;
        scan->missing_to = block.before;
    }
    if (block.up_to > scan->up_to)
        scan->up_to = block.up_to;
    if (scan->up_to > scan->feed.files[scan->file].up_to)
        scan->up_to = scan->feed.files[scan->file].up_to;
    scan->next += BLOCK_HEAD_BYTES + block.len;
    scan->at = 0;
    scan->len = block.len;
    return HF_OK;
}

enum hf_status feed_scan_next(struct feed_scan *scan, struct feed_scanned *out)
{
    const char *events = scan->feed.scratch + BLOCK_HEAD_BYTES;

    *out = (struct feed_scanned){.file = scan->name};
    for (;;) {
        while (scan->at == scan->len) {
            enum hf_status status = next_block(scan);
            out->offset = scan->block;
            out->missing_from = scan->up_to;
            out->missing_to = UINT64_MAX;
            out->torn = status == HF_EMPTY && scan->feed.file_count > 0 &&
                        scan->feed.files[scan->file].torn;
            if (status != HF_OK)
                return status;
        }
        out->event = hf_bytes(events + scan->at, hf_get_u32(events + scan->at));
        out->seq = event_seq(out->event.data);
        out->offset = scan->block + BLOCK_HEAD_BYTES + scan->at;
        scan->at += out->event.len;
        if (out->seq <= scan->feed.files[scan->file].up_to)
            break; /* else the next file says that it does not count */
    }
    out->missing_from = scan->missing_from;
    out->missing_to = scan->missing_to;
    scan->missing_from = scan->missing_to = scan->up_to;
    return HF_OK;
}
