/* writebehind_log.c - the write-ahead log: format, appending, trimming.
 *
 * A folder with files:
 *
 *   lock                    flock()ed while the folder is open
 *   segment-<number>.log    16 hexadecimal digits: its first record's number
 *
 * Every call that changes something is a record, numbered from 1 without a
 * gap. Records that were written by one sync are a frame. A segment is a header
 * and frames, each at a multiple of 8; all numbers are little endian.
 *
 *   header at                          frame at
 *    0  magic "HFWBSEG1"                0  magic "HFWBFRM1"
 *    8  checksum of 16..63, key 0, 0    8  checksum of 16..end of records, key:
 *   16  u32 version 1, u32 zero            the segment's salt
 *   24  u64 number of first record     16  u64 number of its first record
 *   32  2 u64 salt: random             24  u32 length of the records
 *   48  zeros up to 63                 28  u32 count of the records, 1 or more
 *                                      32  records; then zeros up to the next 8
 *
 *   record:  u32 count of changes, 1 or more; then the changes, each:
 *            u32 length of the key; u32 length of the value, or ffffffff for a
 *            delete; the key; the value
 *
 * Checksums are SipHash-1-3. The salt is why no bytes that a user puts can pass
 * for a frame.
 *
 * A frame is written when the one before it is on disk, and never changed. So
 * a frame that is not valid is the end of the log, torn, if nothing valid
 * follows it; otherwise it is damage and the log is refused. A segment's header
 * is on disk before its first frame is written, and that is after the last
 * frame of the segment before. A segment is removed when all its records are in
 * the store, the oldest first, each before the next: so what is left has no
 * gap and ends with the last record of all. Reading it again puts some values a
 * second time, in order, so that each key ends with its last.
 *
 * Who puts while nobody writes leads: it takes all who wait (and itself),
 * writes their records as one frame, syncs, applies them in order, and calls
 * the next to lead. A sector that was written and synced is assumed to keep
 * its bytes while the next bytes are written into it.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/little.h"
#include "base/memory.h"
#include "keep/writebehind_state.h"
#include "sync/bell.h"

/* A frame takes no more records once it is this long. */
#define FRAME_BYTES_ENOUGH (4u << 20)
/* A buffer longer than this is not kept. */
#define FRAME_BYTES_KEPT (8u << 20)

void hf_wb_segment_name(char out[WB_SEGMENT_NAME_BYTES], uint64_t first)
{
    (void)snprintf(out, WB_SEGMENT_NAME_BYTES, "segment-%016llx.log",
                   (unsigned long long)first);
}

struct hf_hash_seed hf_wb_header_seed(void)
{
    return (struct hf_hash_seed){{0, 0}};
}

enum hf_status hf_wb_status(int error)
{
    if (error == 0)
        return HF_OK;
    return error == ENOSPC || error == EDQUOT ? HF_FULL : HF_IO;
}

/* ---- Segments. ---- */

static void encode_header(char out[WB_HEADER_BYTES], uint64_t first,
                          struct hf_hash_seed salt)
{
    memset(out, 0, WB_HEADER_BYTES);
    memcpy(out, WB_HEADER_MAGIC, 8);
    hf_put_u32(out + 16, WB_LOG_VERSION);
    hf_put_u64(out + 24, first);
    hf_put_u64(out + 32, salt.key[0]);
    hf_put_u64(out + 40, salt.key[1]);
    hf_put_u64(out + 8, hf_hash(hf_wb_header_seed(),
                                hf_bytes(out + WB_HEADER_CHECKED,
                                         WB_HEADER_BYTES - WB_HEADER_CHECKED)));
}

/* A new file with its header, on disk; nothing is left if it fails. */
static int make_file(struct wb_log *log, uint64_t first,
                     struct hf_hash_seed salt, int *fd)
{
    const struct hf_disk *disk = log->disk;
    char name[WB_SEGMENT_NAME_BYTES];
    char header[WB_HEADER_BYTES];

    hf_wb_segment_name(name, first);
    encode_header(header, first, salt);
    int error = disk->open(disk->context, log->dir, name,
                           O_WRONLY | O_CREAT | O_TRUNC, fd);
    if (error != 0)
        return error;
    error = disk->write(disk->context, *fd, header, sizeof header, 0);
    if (error == 0)
        error = disk->sync(disk->context, *fd);
    if (error == 0)
        error = disk->sync_folder(disk->context, log->dir);
    if (error != 0) {
        close(*fd);
        (void)disk->remove(disk->context, log->dir, name);
    }
    return error;
}

/* The next frame goes into a new segment that begins with record `first`. */
static enum hf_status rotate(struct hf_writebehind *behind, uint64_t first)
{
    struct wb_log *log = &behind->log;
    struct wb_segment *segment = hf_alloc_zeroed(sizeof *segment);
    struct hf_hash_seed salt = hf_hash_seed((struct hf_hash_seed){{0}});
    int fd;

    if (segment == NULL)
        return HF_NOMEM;
    int error = make_file(log, first, salt, &fd);
    if (error != 0) {
        hf_free(segment);
        return hf_wb_status(error);
    }
    if (log->fd >= 0)
        close(log->fd);
    log->fd = fd;
    log->salt = salt;
    *segment = (struct wb_segment){
        .first = first, .last = first - 1, .bytes = WB_HEADER_BYTES};
    hf_mutex_lock(&behind->mutex);
    *(log->youngest == NULL ? &log->oldest : &log->youngest->next) = segment;
    log->youngest = segment;
    log->bytes += segment->bytes;
    log->segments++;
    hf_mutex_unlock(&behind->mutex);
    return HF_OK;
}

/* ---- Frames. ---- */

static void append_u32(struct hf_buf *buf, uint32_t number)
{
    hf_put_u32(buf->data + buf->len, number);
    buf->len += sizeof number;
}

static void append_bytes(struct hf_buf *buf, const char *data, size_t len)
{
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
}

static void append_record(struct hf_buf *buf, const struct wb_op *op)
{
    append_u32(buf, (uint32_t)op->count);
    for (const struct wb_change *change = op->changes; change != NULL;
         change = change->next) {
        append_u32(buf, change->key_len);
        append_u32(buf, change->remove ? WB_REMOVED : change->value_len);
        append_bytes(buf, change->bytes,
                     (size_t)change->key_len + change->value_len);
    }
}

/* The frame of these ops, the first of which gets the number `first`. */
static enum hf_status encode_frame(struct wb_log *log, const struct wb_op *ops,
                                   uint64_t first)
{
    struct hf_buf *frame = &log->frame;
    size_t bytes = WB_FRAME_BYTES + WB_FRAME_ALIGN;
    uint32_t count = 0;

    for (const struct wb_op *op = ops; op != NULL; op = op->next)
        bytes += op->record_bytes;
    frame->len = 0;
    if (hf_buf_reserve(frame, bytes) != HF_OK)
        return HF_NOMEM;
    frame->len = WB_FRAME_BYTES;
    for (const struct wb_op *op = ops; op != NULL; op = op->next, count++)
        append_record(frame, op);
    size_t len = frame->len - WB_FRAME_BYTES;
    assert(len <= UINT32_MAX);
    memcpy(frame->data, WB_FRAME_MAGIC, 8);
    hf_put_u64(frame->data + 16, first);
    hf_put_u32(frame->data + 24, (uint32_t)len);
    hf_put_u32(frame->data + 28, count);
    hf_put_u64(frame->data + 8,
               hf_hash(log->salt, hf_bytes(frame->data + 16, 16 + len)));
    while (frame->len % WB_FRAME_ALIGN != 0)
        frame->data[frame->len++] = 0;
    return HF_OK;
}

/* Puts the frame behind the last one. `*broken`: no frame can follow any more.
 */
static enum hf_status write_frame(struct wb_log *log, bool *broken)
{
    const struct hf_disk *disk = log->disk;
    uint64_t at = log->youngest->bytes; /* only who leads changes it */

    int error = disk->write(disk->context, log->fd, log->frame.data,
                            log->frame.len, at);
    if (error != 0) {
        /* What was written of it must not be there when the next one is. */
        *broken = disk->cut(disk->context, log->fd, at) != 0;
        return hf_wb_status(error);
    }
    error = disk->sync(disk->context, log->fd);
    if (error != 0) {
        /* The system may have dropped the pages and call them clean: another
         * sync would prove nothing. */
        (void)disk->cut(disk->context, log->fd, at);
        *broken = true;
        return HF_IO;
    }
    return HF_OK;
}

static enum hf_status write_ops(struct hf_writebehind *behind,
                                const struct wb_op *ops, uint64_t first,
                                bool *broken)
{
    struct wb_log *log = &behind->log;
    enum hf_status status = HF_OK;

    /* No file yet: after an open, a segment that was read is not written on. */
    if (log->fd < 0 || log->youngest->bytes >= behind->opts.segment_bytes)
        status = rotate(behind, first);
    if (status == HF_OK)
        status = encode_frame(log, ops, first);
    if (status == HF_OK)
        status = write_frame(log, broken);
    return status;
}

/* ---- Leading. ---- */

/* Takes ops from the queue's head, for one frame. */
static struct wb_op *take_ops(struct wb_log *log)
{
    struct wb_op *ops = log->head;
    struct wb_op *op = ops;
    uint64_t bytes = op->record_bytes;

    while (op->next != NULL &&
           bytes + op->next->record_bytes <= FRAME_BYTES_ENOUGH) {
        op = op->next;
        bytes += op->record_bytes;
    }
    log->head = op->next;
    if (log->head == NULL)
        log->tail = &log->head;
    op->next = NULL;
    return ops;
}

/* The ops were written, or not; with the mutex. True: the thread that writes
 * to the store must hear of it. */
static bool settle(struct hf_writebehind *behind, struct wb_op *ops,
                   enum hf_status status)
{
    struct wb_log *log = &behind->log;
    uint64_t now_ns = hf_clock_now_ns(behind->clock);
    uint64_t count = behind->pending_count;
    uint64_t bytes = behind->pending_bytes;

    if (status == HF_OK) {
        log->syncs++;
        log->bytes += log->frame.len;
        log->youngest->bytes += log->frame.len;
    }
    for (struct wb_op *op = ops; op != NULL; op = op->next) {
        log->bytes -= op->record_bytes;
        log->reserved -= op->record_bytes;
        op->status = status;
        if (status == HF_OK) {
            op->number = ++behind->last;
            log->youngest->last = behind->last;
            log->records++;
            hf_wb_apply(behind, op, now_ns);
        } else {
            behind->used_count -= op->count;
            behind->used_bytes -= op->bytes;
            behind->refused++;
        }
    }
    hf_wb_room(behind);
    return hf_wb_must_wake(behind, count, bytes);
}

/* Tells the others that they are over. A bell is the last that is touched. */
static void ring_all(struct wb_op *ops, const struct wb_op *mine)
{
    while (ops != NULL) {
        struct wb_op *op = ops;
        ops = op->next;
        if (op != mine)
            hf_bell_ring(&op->bell);
    }
}

/* Writes a frame that has `mine` in it, as the first; with the mutex. */
static void lead(struct hf_writebehind *behind, struct wb_op *mine)
{
    struct wb_log *log = &behind->log;
    bool broken = false;
    enum hf_status status = HF_IO;

    assert(hf_mutex_held(&behind->mutex) && log->led && log->head == mine);
    struct wb_op *ops = take_ops(log);
    uint64_t first = behind->last + 1; /* only who leads changes it */
    bool failed = log->failed;
    hf_mutex_unlock(&behind->mutex);
    if (!failed)
        status = write_ops(behind, ops, first, &broken);
    hf_mutex_lock(&behind->mutex);
    log->failed = failed || broken;
    bool wake = settle(behind, ops, status);
    if (log->frame.cap > FRAME_BYTES_KEPT)
        hf_buf_destroy(&log->frame);
    struct wb_op *next = log->head;
    log->led = next != NULL;
    if (next != NULL)
        next->leads = true;
    hf_mutex_unlock(&behind->mutex);
    if (next != NULL)
        hf_bell_ring(&next->bell);
    if (wake)
        hf_event_wake(&behind->work, 1);
    ring_all(ops, mine);
}

enum hf_status hf_wb_log_put(struct hf_writebehind *behind, struct wb_op *op)
{
    struct wb_log *log = &behind->log;

    assert(hf_mutex_held(&behind->mutex));
    hf_event_init(&op->bell);
    log->bytes += op->record_bytes;
    log->reserved += op->record_bytes;
    *log->tail = op;
    log->tail = &op->next;
    op->leads = !log->led;
    log->led = true;
    if (!op->leads) {
        hf_mutex_unlock(&behind->mutex);
        (void)hf_bell_wait(&op->bell, NULL, HF_FOREVER);
        if (!op->leads) /* somebody has done it */
            return op->status;
        hf_mutex_lock(&behind->mutex);
    }
    lead(behind, op);
    return op->status;
}

/* ---- Trimming. ---- */

/* The oldest segment, if it is not needed any more. */
static struct wb_segment *find_done(struct hf_writebehind *behind, bool all)
{
    struct wb_log *log = &behind->log;

    hf_mutex_lock(&behind->mutex);
    struct wb_segment *oldest = log->oldest;
    if (oldest != NULL && (oldest->last >= hf_wb_floor(behind) ||
                           (oldest == log->youngest && !all)))
        oldest = NULL;
    hf_mutex_unlock(&behind->mutex);
    return oldest;
}

void hf_wb_log_trim(struct hf_writebehind *behind, bool all)
{
    struct wb_log *log = &behind->log;
    const struct hf_disk *disk = log->disk;
    struct wb_segment *oldest;
    char name[WB_SEGMENT_NAME_BYTES];

    while ((oldest = find_done(behind, all)) != NULL) {
        hf_wb_segment_name(name, oldest->first);
        /* On disk before the next goes: see the top. What cannot be removed is
         * tried again next time; it is read in vain after a crash, no more. */
        int error = disk->remove(disk->context, log->dir, name);
        if ((error != 0 && error != ENOENT) ||
            disk->sync_folder(disk->context, log->dir) != 0)
            return;
        hf_mutex_lock(&behind->mutex);
        log->oldest = oldest->next;
        if (log->oldest == NULL)
            log->youngest = NULL;
        log->bytes -= oldest->bytes;
        log->segments--;
        hf_mutex_unlock(&behind->mutex);
        hf_free(oldest);
    }
}

void hf_wb_log_destroy(struct hf_writebehind *behind)
{
    struct wb_log *log = &behind->log;

    while (log->oldest != NULL) {
        struct wb_segment *next = log->oldest->next;
        hf_free(log->oldest);
        log->oldest = next;
    }
    hf_buf_destroy(&log->frame);
    if (log->fd >= 0)
        close(log->fd);
    if (log->lock_fd >= 0)
        close(log->lock_fd);
    if (log->dir >= 0)
        close(log->dir);
}
