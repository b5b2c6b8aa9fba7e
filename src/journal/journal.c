/* journal.c - builds batches and gets them to disk.
 *
 *    IDLE --commit--> ASKING --> WRITING --> IDLE
 *      |                 ^
 *      +--no room--> SWITCHING (the keeper makes the next segment)
 *
 * A write is waited for in two ways: ASKING asks for its end again and again
 * and keeps the processor, WRITING sleeps. Most writes are not asked for.
 *
 * commit() and poll() both run advance(), which goes as far as the time it is
 * given allows; `due` remembers what the caller has still to be told. There
 * are two buffers: one holds the batch on its way (then:
 * the batch last written), the other the batch being built.
 */
#include "journal/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/clock.h"
#include "journal/state.h"

#define BUFFER_BYTES_MIN  (64u * 1024)
#define SYNC_INTERVAL_NS  1000000000u
#define RETRY_INTERVAL_NS 1000000000u

static uint64_t now_ns(const struct journal *journal)
{
    return hf_clock_now_ns(journal->clock);
}

/* A failed journal stays failed: the first cause is kept. So is the batch
 * last written, if it was not that which failed: its owner may still be
 * applying it. */
__attribute__((format(printf, 2, 3))) static enum hf_status
fail(struct journal *journal, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!journal->failed)
        vsnprintf(journal->error, sizeof journal->error, format, args);
    va_end(args);
    journal->failed = true;
    journal->snapshot_wanted = false;
    journal->phase = PHASE_IDLE;
    if (journal->due == DUE_WAITING)
        journal->committed->len = 0;
    return HF_IO;
}

static enum hf_status fail_write(struct journal *journal, int cause)
{
    char name[FOLDER_NAME_MAX];

    folder_segment_name(name, journal->segment.header.first);
    return fail(
        journal,
        "write of batch %llu to %s/%s at offset %llu failed: %s; "
        "restart after %s",
        (unsigned long long)journal->last + 1, journal->folder.path, name,
        (unsigned long long)journal->segment.offset, strerror(cause),
        cause == ENOSPC || cause == EDQUOT ? "making room"
                                           : "the disk has been repaired");
}

static enum hf_status write_manifest(struct journal *journal,
                                     struct manifest_slot slot)
{
    char cause[JOURNAL_ERROR_MAX];

    if (manifest_end(&journal->manifest, slot, cause) == HF_OK)
        return HF_OK;
    return fail(journal, "%.400s; restart after the disk has been repaired",
                cause);
}

/* Makes room for `more` bytes of records, with header and padding. */
static enum hf_status buffer_reserve(struct journal_buffer *buffer, size_t more)
{
    size_t need = batch_disk_bytes(buffer->len + more);
    size_t cap = buffer->cap ? buffer->cap : BUFFER_BYTES_MIN;

    if (need <= buffer->cap)
        return HF_OK;
    while (cap < need)
        cap *= 2;
    char *data = hf_alloc_aligned(JOURNAL_BLOCK, cap);
    if (data == NULL)
        return HF_NOMEM;
    if (buffer->data != NULL)
        memcpy(data, buffer->data, BATCH_HEADER_BYTES + buffer->len);
    hf_free(buffer->data);
    buffer->data = data;
    buffer->cap = cap;
    return HF_OK;
}

static enum hf_status journal_prepare(struct log *log, size_t len, char **space)
{
    struct journal *journal = journal_of(log);
    struct journal_buffer *buffer = journal->building;
    size_t need = BATCH_RECORD_BYTES + len;

    journal->prepared = 0;
    if (journal->failed)
        return HF_IO;
    if (len == 0 || len > JOURNAL_RECORD_MAX || need > journal->batch_max)
        return HF_INVALID;
    if (need > journal->batch_max - buffer->len)
        return HF_FULL;
    if (buffer_reserve(buffer, need) != HF_OK)
        return HF_NOMEM;
    journal->prepared = len;
    *space =
        buffer->data + BATCH_HEADER_BYTES + buffer->len + BATCH_RECORD_BYTES;
    return HF_OK;
}

static void journal_finish(struct log *log, size_t used)
{
    struct journal *journal = journal_of(log);
    struct journal_buffer *buffer = journal->building;

    assert(used > 0);
    assert(used <= journal->prepared);
    batch_record_encode(buffer->data + BATCH_HEADER_BYTES + buffer->len,
                        (uint32_t)used);
    buffer->len += BATCH_RECORD_BYTES + used;
    buffer->count++;
    journal->prepared = 0;
}

static size_t journal_batch_bytes(const struct log *log)
{
    return journal_of(log)->building->len;
}

/* With a batch this large many clients wait and the loop is busy: it would
 * sleep for a moment only, and a processor that sleeps takes a while to wake.
 * With a small batch, asking makes the loop seem busy, and the clients are
 * woken on other processors, which takes longer than was won. A write that
 * took long is likely to be followed by another. */
static bool asking_pays(const struct journal *journal)
{
    return journal->folder.io->ask != NULL &&
           journal->committed->count >= JOURNAL_ASK_RECORDS &&
           journal->stats.sync_last_ns < JOURNAL_ASK_NS;
}

/* Gives the batch to the disk; there is room for it. */
static void start_write(struct journal *journal)
{
    struct journal_buffer *buffer = journal->committed;
    struct segment *segment = &journal->segment;
    struct journal_io *io = journal->folder.io;
    struct batch batch = {.number = journal->last + 1,
                          .synced = journal->synced,
                          .count = buffer->count,
                          .records = hf_bytes(NULL, buffer->len)};
    size_t bytes = batch_disk_bytes(buffer->len);

    assert(segment->bytes - segment->offset >= bytes);
    batch_encode(buffer->data, &batch, segment->header.salt);
    journal->started_ns = now_ns(journal);
    journal->phase = PHASE_WRITING;
    if (journal->sync == JOURNAL_ALWAYS) {
        io->start(io, segment->fd, buffer->data, bytes, segment->offset);
        if (asking_pays(journal))
            journal->phase = PHASE_ASKING;
    } else {
        journal->write_error =
            io->write(io, segment->fd, buffer->data, bytes, segment->offset);
    }
}

static enum hf_status end_write(struct journal *journal, int cause)
{
    struct log_stats *stats = &journal->stats;
    size_t bytes = batch_disk_bytes(journal->committed->len);

    if (cause != 0)
        return fail_write(journal, cause);
    journal->phase = PHASE_IDLE;
    journal->due = DUE_WRITTEN;
    journal->last++;
    journal->segment.offset += bytes;
    journal->since_snapshot += bytes;
    if (journal->sync == JOURNAL_ALWAYS)
        journal->synced = journal->last;
    stats->batch_count++;
    stats->record_count += journal->committed->count;
    stats->byte_count += bytes;
    stats->sync_last_ns = now_ns(journal) - journal->started_ns;
    if (stats->sync_last_ns > stats->sync_max_ns)
        stats->sync_max_ns = stats->sync_last_ns;
    return HF_OK;
}

/* Other threads get the processor in between: what ends the write may be one
 * of them. */
static enum hf_status ask_write(struct journal *journal)
{
    struct journal_io *io = journal->folder.io;
    int cause = 0;

    while (now_ns(journal) - journal->started_ns < JOURNAL_ASK_NS) {
        if (io->ask(io, &cause) == HF_OK)
            return end_write(journal, cause);
        hf_thread_yield();
    }
    journal->phase = PHASE_WRITING;
    return HF_OK;
}

static enum hf_status wait_write(struct journal *journal, uint64_t timeout_ns)
{
    struct journal_io *io = journal->folder.io;
    int cause = journal->write_error;

    if (journal->sync == JOURNAL_ALWAYS &&
        io->wait(io, timeout_ns, &cause) == HF_PENDING)
        return HF_PENDING;
    return end_write(journal, cause);
}

static void start_switch(struct journal *journal)
{
    keeper_switch_start(&journal->keeper, &journal->segment, journal->last + 1,
                        journal->synced, journal->note);
    journal->segment.fd = -1;
    journal->phase = PHASE_SWITCHING;
}

/* Begins the snapshot that was asked for, once nothing is under way: seals
 * the open segment, if it holds anything, and has one made up to there. */
static void start_snapshot(struct journal *journal)
{
    if (!journal->snapshot_wanted || journal->phase != PHASE_IDLE ||
        maker_look(&journal->maker).reading)
        return;
    if (journal->segment.offset > JOURNAL_BLOCK) {
        start_switch(journal);
        return;
    }
    journal->snapshot_wanted = false;
    journal->since_snapshot = 0;
    if (journal->last != maker_look(&journal->maker).newest)
        (void)maker_start(&journal->maker, journal->last);
}

static enum hf_status wait_switch(struct journal *journal, uint64_t timeout_ns)
{
    char cause[JOURNAL_ERROR_MAX];
    enum hf_status status = keeper_switch_wait(&journal->keeper, timeout_ns,
                                               &journal->segment, cause);

    if (status == HF_PENDING)
        return HF_PENDING;
    if (status != HF_OK)
        return fail(journal,
                    "no segment for batch %llu: %.400s; restart after making "
                    "room",
                    (unsigned long long)journal->last + 1, cause);
    journal->phase = PHASE_IDLE;
    start_snapshot(journal); /* the new segment is empty: no second switch */
    if (journal->due == DUE_WAITING)
        start_write(journal);
    return HF_OK;
}

/* Goes on until the batch is written or `timeout_ns` have passed. */
static enum hf_status advance(struct journal *journal, uint64_t timeout_ns)
{
    uint64_t start_ns = now_ns(journal);
    enum hf_status status = HF_OK;

    while (status == HF_OK) {
        uint64_t spent_ns = now_ns(journal) - start_ns;
        uint64_t left_ns = timeout_ns > spent_ns ? timeout_ns - spent_ns : 0;
        if (journal->phase == PHASE_SWITCHING)
            status = wait_switch(journal, left_ns);
        else if (journal->phase == PHASE_ASKING)
            status = ask_write(journal);
        else if (journal->phase == PHASE_WRITING)
            status = wait_write(journal, left_ns);
        else
            break;
    }
    return status;
}

/* In the modes where commit does not sync: what the keeper has done. */
static enum hf_status learn_synced(struct journal *journal)
{
    char text[JOURNAL_ERROR_MAX];

    if (journal->sync == JOURNAL_ALWAYS)
        return HF_OK;
    if (keeper_sync_state(&journal->keeper, &journal->synced, text) != HF_OK)
        return fail(journal, "%s", text);
    return HF_OK;
}

static enum hf_status journal_commit(struct log *log)
{
    struct journal *journal = journal_of(log);
    struct journal_buffer *batch = journal->building;

    assert(journal->due == DUE_NONE); /* one commit at a time */
    journal->prepared = 0;
    if (journal->failed || learn_synced(journal) != HF_OK) {
        journal->committed->len = 0;
        return HF_IO;
    }
    journal->building = journal->committed;
    journal->building->len = 0;
    journal->building->count = 0;
    journal->committed = batch;
    if (batch->count == 0)
        return HF_OK;
    journal->due = DUE_WAITING;
    start_snapshot(journal);
    uint64_t room = journal->segment.bytes - journal->segment.offset;
    if (journal->phase == PHASE_IDLE && batch_disk_bytes(batch->len) > room)
        start_switch(journal);
    if (journal->phase == PHASE_IDLE)
        start_write(journal);
    enum hf_status status = advance(journal, journal->slow_ns);
    if (status == HF_PENDING)
        journal->stats.pending_count++;
    else
        journal->due = DUE_NONE;
    return status;
}

static enum hf_status journal_poll(struct log *log)
{
    struct journal *journal = journal_of(log);
    enum hf_status status = journal->failed ? HF_IO : HF_OK;

    /* Also without a commit: a wake that comes late must not stay. */
    journal_io_wake_clear(journal->folder.io);
    if (journal->due == DUE_NONE)
        return HF_EMPTY;
    if (journal->due == DUE_WAITING && status == HF_OK)
        status = advance(journal, 0);
    if (status != HF_PENDING)
        journal->due = DUE_NONE;
    return status;
}

static enum hf_status journal_committed(const struct log *log, size_t *at,
                                        struct hf_bytes *record)
{
    const struct journal *journal = journal_of(log);
    const struct journal_buffer *buffer = journal->committed;

    if (buffer->len == 0)
        return HF_EMPTY;
    return batch_record(
        hf_bytes(buffer->data + BATCH_HEADER_BYTES, buffer->len), at, record);
}

static int journal_wake_fd(const struct log *log)
{
    return journal_of(log)->folder.io->wake_fd;
}

static enum hf_status journal_flush(struct log *log)
{
    struct journal *journal = journal_of(log);
    char text[JOURNAL_ERROR_MAX];

    if (journal->failed)
        return HF_IO;
    bool waiting = journal->due == DUE_WAITING;
    enum hf_status status = advance(journal, UINT64_MAX);
    /* Its end is still to be told by poll, also if it failed. */
    if (waiting)
        journal_io_wake(journal->folder.io);
    if (status != HF_OK || journal->sync == JOURNAL_ALWAYS)
        return status;
    if (journal->last > journal->synced) {
        keeper_sync_start(&journal->keeper, journal->segment.fd, journal->last);
        if (keeper_sync_wait(&journal->keeper, text) != HF_OK)
            return fail(journal, "%s", text);
        journal->synced = journal->last;
    }
    return HF_OK;
}

static enum hf_status journal_note(struct log *log, uint64_t note)
{
    struct journal *journal = journal_of(log);

    if (journal->failed)
        return HF_IO;
    journal->note = note;
    struct manifest_slot slot = manifest_begin(&journal->manifest);
    slot.note = note;
    return write_manifest(journal, slot);
}

static void journal_note_later(struct log *log, uint64_t note)
{
    journal_of(log)->note = note;
}

/* Everything that could still write is over before the manifest says that
 * this was all. */
static enum hf_status journal_stop(struct log *log)
{
    struct journal *journal = journal_of(log);

    if (journal->failed)
        return HF_IO;
    if (journal->building->count > 0)
        return HF_INVALID;
    journal_settle(journal);
    maker_destroy(&journal->maker);
    enum hf_status status = journal_flush(log);
    if (status != HF_OK)
        return status;
    struct manifest_slot slot = manifest_begin(&journal->manifest);
    slot.synced = journal->last;
    slot.clean = true;
    return write_manifest(journal, slot);
}

static const char *journal_error(const struct log *log)
{
    return journal_of(log)->error;
}

static void journal_stats(const struct log *log, struct log_stats *out)
{
    struct journal *journal = journal_of(log);
    struct maker_state made = maker_look(&journal->maker);

    *out = journal->stats;
    out->snapshot_count = made.count;
    out->snapshot_bytes = made.bytes;
    out->snapshot_failures = made.failures;
    out->snapshot_starts = made.starts;
    out->snapshot_last_ns = made.took_ns;
    out->disk_bytes = hf_u64_load(&journal->keeper.bytes, __ATOMIC_RELAXED);
}

static uint64_t journal_sync_ns(const struct log *log)
{
    return journal_of(log)->stats.sync_last_ns;
}

static bool journal_snapshot_running(const struct log *log)
{
    return journal_of(log)->snapshot_wanted ||
           maker_look(&journal_of(log)->maker).running;
}

static void journal_snapshot_error(const struct log *log,
                                   char out[JOURNAL_ERROR_MAX])
{
    struct maker *maker = &journal_of(log)->maker;

    hf_mutex_lock(&maker->mutex);
    memcpy(out, maker->error, JOURNAL_ERROR_MAX);
    hf_mutex_unlock(&maker->mutex);
}

static enum hf_status journal_snapshot(struct log *log)
{
    struct journal *journal = journal_of(log);
    if (journal->failed)
        return HF_IO;
    if (journal_snapshot_running(log))
        return HF_PENDING;
    journal->snapshot_wanted = true;
    start_snapshot(journal);
    return HF_OK;
}

static enum hf_status journal_replay(struct log *log,
                                     const struct log_replay *replay)
{
    struct journal *journal = journal_of(log);

    if (journal->failed)
        return HF_IO;
    if (journal_snapshot_running(log))
        return HF_PENDING;
    return maker_read(&journal->maker, journal->last, replay);
}

/* A new snapshot is called for once the journal behind the newest has grown
 * larger than it: then the work of making one stays in proportion. */
static bool snapshot_due(struct journal *journal)
{
    return journal->snapshot_bytes != UINT64_MAX &&
           journal->since_snapshot >= journal->snapshot_bytes &&
           journal->since_snapshot >= maker_look(&journal->maker).bytes &&
           !journal_snapshot_running(&journal->log);
}

static void journal_tend(struct log *log, uint64_t now)
{
    struct journal *journal = journal_of(log);
    if (journal->failed)
        return;
    if (learn_synced(journal) != HF_OK)
        return;
    /* A switch without a commit behind it wakes nobody. */
    if (journal->due == DUE_NONE && advance(journal, 0) == HF_IO)
        return;
    if (journal->sync == JOURNAL_INTERVAL && now >= journal->sync_at_ns &&
        journal->segment.fd >= 0) {
        journal->sync_at_ns = now + SYNC_INTERVAL_NS;
        if (journal->last > journal->synced)
            keeper_sync_start(&journal->keeper, journal->segment.fd,
                              journal->last);
    }
    if (now >= journal->retry_at_ns) {
        journal->retry_at_ns = now + RETRY_INTERVAL_NS;
        keeper_retry(&journal->keeper);
        if (snapshot_due(journal))
            journal->snapshot_wanted = true;
    }
    start_snapshot(journal);
}

void journal_settle(struct journal *journal)
{
    journal->snapshot_wanted = false;
    if (!journal->failed)
        (void)advance(journal, UINT64_MAX);
}

const struct log_ops journal_ops = {
    .prepare = journal_prepare,
    .finish = journal_finish,
    .batch_bytes = journal_batch_bytes,
    .commit = journal_commit,
    .poll = journal_poll,
    .committed = journal_committed,
    .wake_fd = journal_wake_fd,
    .tend = journal_tend,
    .flush = journal_flush,
    .note = journal_note,
    .note_later = journal_note_later,
    .snapshot = journal_snapshot,
    .snapshot_running = journal_snapshot_running,
    .snapshot_error = journal_snapshot_error,
    .replay = journal_replay,
    .error = journal_error,
    .stats = journal_stats,
    .sync_ns = journal_sync_ns,
    .stop = journal_stop,
    .close = journal_close,
};
