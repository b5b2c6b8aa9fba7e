/* writebehind_put.c - putting, getting, flushing.
 *
 * A put has its memory before it takes the lock, and room for all of it before
 * it is written to the log: from there on nothing can fail but the disk. A put
 * that needs no room, since it overwrites, does not wait behind those who do
 * (without a log: with one it may be that its key is on its way to the store by
 * the time that its record is on disk).
 */
#include <assert.h>

#include "base/memory.h"
#include "base/thread.h"
#include "keep/store_state.h"
#include "keep/writebehind_state.h"

bool hf_wb_is_mine(const struct hf_writebehind *behind)
{
    /* Relaxed: if it is this thread's slot, this thread wrote it. */
    return hf_u32_load(&behind->thread_slot, __ATOMIC_RELAXED) ==
           1 + hf_thread_slot();
}

/* ---- An op. ---- */

enum hf_status hf_wb_op_fill(const struct hf_writebehind *behind,
                             struct wb_op *op,
                             const struct hf_store_change *changes,
                             size_t count)
{
    struct wb_change **tail = &op->changes;

    op->count = count;
    op->record_bytes = sizeof(uint32_t);
    for (size_t i = 0; i < count; i++) {
        struct wb_change *change = hf_wb_change_new(behind, &changes[i]);
        if (change == NULL)
            goto no_memory;
        *tail = change;
        tail = &change->next;
        op->bytes += wb_change_bytes(change);
        op->record_bytes +=
            2 * sizeof(uint32_t) + change->key_len + change->value_len;
    }
    if (count > 1) {
        op->group = hf_alloc_zeroed(sizeof *op->group);
        if (op->group == NULL)
            goto no_memory;
    }
    return HF_OK;

no_memory:
    hf_wb_discard(op->changes, NULL);
    op->changes = NULL;
    return HF_NOMEM;
}

/* Could it ever fit? */
static bool op_fits(const struct hf_writebehind *behind,
                    const struct hf_store_change *changes, size_t count)
{
    const struct hf_writebehind_opts *opts = &behind->opts;
    uint64_t bytes = 0;

    if (count > HF_WRITEBEHIND_GROUP_MAX || count > opts->dirty_max ||
        !hf_store_changes_fit(changes, count))
        return false;
    for (size_t i = 0; i < count; i++)
        bytes += HF_WRITEBEHIND_OVERHEAD + changes[i].key_len +
                 (changes[i].remove ? 0 : changes[i].value_len);
    return bytes <= HF_WRITEBEHIND_GROUP_BYTES && bytes <= opts->dirty_bytes &&
           (opts->log_dir == NULL || bytes <= opts->log_bytes / 2);
}

/* ---- Room. ---- */

/* A single put that overwrites needs only what it is longer. */
static bool overwrites(const struct hf_writebehind *behind,
                       const struct wb_op *op)
{
    if (op->count != 1 || behind->opts.log_dir != NULL)
        return false;
    const struct wb_change *change = op->changes;
    const struct wb_change *old =
        hf_wb_find(behind, change->hash, change->bytes, change->key_len);
    return old != NULL && !old->flying &&
           behind->used_bytes + op->bytes - wb_change_bytes(old) <=
               behind->opts.dirty_bytes;
}

static bool has_room(const struct hf_writebehind *behind,
                     const struct wb_op *op)
{
    const struct hf_writebehind_opts *opts = &behind->opts;

    if (behind->used_count + op->count > opts->dirty_max ||
        behind->used_bytes + op->bytes > opts->dirty_bytes)
        return false;
    /* With nothing inside there is nothing that could make more room. */
    return opts->log_dir == NULL || behind->used_count == 0 ||
           behind->log.bytes + op->record_bytes + WB_FRAME_BYTES <=
               opts->log_bytes;
}

void hf_wb_room(struct hf_writebehind *behind)
{
    assert(hf_mutex_held(&behind->mutex));
    /* Under the lock: who waits cannot leave meanwhile. */
    if (behind->waiting != NULL)
        hf_event_wake(&behind->waiting->event, 1);
}

static void line_up(struct hf_writebehind *behind, struct wb_waiter *waiter)
{
    waiter->prev = behind->waiting_last;
    *(waiter->prev == NULL ? &behind->waiting : &waiter->prev->next) = waiter;
    behind->waiting_last = waiter;
}

/* Whoever is first now looks whether there is room for it, too. */
static void leave_line(struct hf_writebehind *behind, struct wb_waiter *waiter)
{
    bool was_first = waiter->prev == NULL;

    *(was_first ? &behind->waiting : &waiter->prev->next) = waiter->next;
    *(waiter->next == NULL ? &behind->waiting_last : &waiter->next->prev) =
        waiter->prev;
    if (was_first)
        hf_wb_room(behind);
}

/* One look; HF_PENDING: no room. `waiter`: NULL, if not in line yet. */
static enum hf_status look(const struct hf_writebehind *behind,
                           const struct wb_op *op,
                           const struct wb_waiter *waiter)
{
    if (behind->shut)
        return HF_CLOSED;
    if (behind->log.failed)
        return HF_IO;
    if (behind->waiting == waiter && has_room(behind, op))
        return HF_OK;
    return overwrites(behind, op) ? HF_OK : HF_PENDING;
}

/* Waits in line; with the mutex before and after. */
static enum hf_status await_room(struct hf_writebehind *behind,
                                 struct wb_op *op, uint64_t deadline_ns)
{
    struct wb_waiter waiter = {0};
    enum hf_status status;
    enum hf_status waited = HF_OK;
    uint64_t begin_ns = hf_clock_now_ns(behind->clock);

    line_up(behind, &waiter);
    while ((status = look(behind, op, &waiter)) == HF_PENDING &&
           waited == HF_OK) {
        uint32_t key = hf_event_prepare(&waiter.event);
        hf_mutex_unlock(&behind->mutex);
        hf_event_wake(&behind->work, 1); /* it is not to wait for more */
        waited = hf_event_wait(&waiter.event, key, behind->clock, deadline_ns);
        hf_mutex_lock(&behind->mutex);
    }
    leave_line(behind, &waiter);
    uint64_t now_ns = hf_clock_now_ns(behind->clock);
    hf_waits_note(&behind->waits, now_ns > begin_ns ? now_ns - begin_ns : 0);
    op->now_ns = now_ns;
    return status == HF_PENDING ? HF_TIMEOUT : status;
}

/* Room for the op, reserved; with the mutex. */
static enum hf_status reserve(struct hf_writebehind *behind, struct wb_op *op,
                              uint64_t deadline_ns)
{
    enum hf_status status = look(behind, op, NULL);

    if (status == HF_PENDING && behind->opts.refuse)
        status = HF_FULL;
    /* The thread that writes cannot wait for itself. */
    if (status == HF_PENDING &&
        (deadline_ns == HF_NOW || hf_wb_is_mine(behind)))
        status = HF_TIMEOUT;
    if (status == HF_PENDING)
        status = await_room(behind, op, deadline_ns);
    if (status != HF_OK) {
        behind->refused++;
        return status;
    }
    behind->used_count += op->count;
    behind->used_bytes += op->bytes;
    return HF_OK;
}

/* ---- Putting. ---- */

bool hf_wb_must_wake(const struct hf_writebehind *behind, uint64_t count,
                     uint64_t bytes)
{
    const struct hf_writebehind_opts *opts = &behind->opts;

    return (count == 0 && behind->pending_count > 0) ||
           (count < opts->batch_max &&
            behind->pending_count >= opts->batch_max) ||
           (bytes < opts->batch_bytes &&
            behind->pending_bytes >= opts->batch_bytes);
}

static enum hf_status put(struct hf_writebehind *behind, struct wb_op *op,
                          uint64_t deadline_ns)
{
    /* Outside the lock, to keep it short: ages may be out of order by what a
     * thread waits for it. */
    op->now_ns = hf_clock_now_ns(behind->clock);
    hf_mutex_lock(&behind->mutex);
    enum hf_status status = reserve(behind, op, deadline_ns);
    if (status != HF_OK) {
        hf_mutex_unlock(&behind->mutex);
        return status;
    }
    if (behind->opts.log_dir != NULL)
        return hf_wb_log_put(behind, op);
    uint64_t count = behind->pending_count;
    uint64_t bytes = behind->pending_bytes;
    op->number = ++behind->last;
    hf_wb_apply(behind, op, op->now_ns);
    bool wake = hf_wb_must_wake(behind, count, bytes);
    hf_mutex_unlock(&behind->mutex);
    if (wake)
        hf_event_wake(&behind->work, 1);
    return HF_OK;
}

static enum hf_status put_all(struct hf_writebehind *behind,
                              const struct hf_store_change *changes,
                              size_t count, uint64_t deadline_ns,
                              uint64_t *number)
{
    struct wb_op op = {0};

    if (behind == NULL || !op_fits(behind, changes, count))
        return HF_INVALID;
    if (count == 0)
        return HF_OK;
    enum hf_status status = hf_wb_op_fill(behind, &op, changes, count);
    if (status != HF_OK)
        return status;
    status = put(behind, &op, deadline_ns);
    if (status != HF_OK) {
        hf_wb_discard(op.changes, op.group);
        return status;
    }
    assert(op.changes == NULL && op.number > 0);
    hf_wb_discard(op.old, op.empty);
    *number = op.number;
    return HF_OK;
}

enum hf_status hf_writebehind_put_all(struct hf_writebehind *behind,
                                      const struct hf_store_change *changes,
                                      size_t count, uint64_t deadline_ns)
{
    uint64_t number;

    return put_all(behind, changes, count, deadline_ns, &number);
}

enum hf_status hf_writebehind_put(struct hf_writebehind *behind,
                                  const void *key, size_t key_len,
                                  const void *value, size_t value_len,
                                  uint64_t deadline_ns)
{
    struct hf_store_change one = {
        .key = key, .key_len = key_len, .value = value, .value_len = value_len};

    return hf_writebehind_put_all(behind, &one, 1, deadline_ns);
}

enum hf_status hf_writebehind_delete(struct hf_writebehind *behind,
                                     const void *key, size_t key_len,
                                     uint64_t deadline_ns)
{
    struct hf_store_change one = {
        .key = key, .key_len = key_len, .remove = true};

    return hf_writebehind_put_all(behind, &one, 1, deadline_ns);
}

/* ---- Flushing. ---- */

struct flush {
    struct hf_writebehind *behind;
    uint64_t to;   /* records up to this one */
    uint64_t dead; /* changes that were dead before */
};

static enum hf_status attempt(void *context)
{
    struct flush *flush = context;
    struct hf_writebehind *behind = flush->behind;
    enum hf_status status = HF_PENDING;

    hf_mutex_lock(&behind->mutex);
    if (behind->landed > flush->to)
        status = behind->dead > flush->dead ? HF_FAILED : HF_OK;
    hf_mutex_unlock(&behind->mutex);
    return status;
}

/* Waits until the records up to `to` are in the store. */
static enum hf_status flush_to(struct flush *flush, uint64_t deadline_ns)
{
    struct hf_writebehind *behind = flush->behind;

    hf_mutex_lock(&behind->mutex);
    if (behind->flush_to < flush->to)
        behind->flush_to = flush->to;
    hf_mutex_unlock(&behind->mutex);
    hf_event_wake(&behind->work, 1);
    return hf_event_until(&behind->done, attempt, flush, behind->clock,
                          deadline_ns);
}

static struct flush flush_begin(struct hf_writebehind *behind)
{
    hf_mutex_lock(&behind->mutex);
    struct flush flush = {behind, behind->last, behind->dead};
    hf_mutex_unlock(&behind->mutex);
    return flush;
}

enum hf_status hf_writebehind_flush(struct hf_writebehind *behind,
                                    uint64_t deadline_ns)
{
    if (behind == NULL || hf_wb_is_mine(behind))
        return HF_INVALID;
    struct flush flush = flush_begin(behind);
    return flush_to(&flush, deadline_ns);
}

enum hf_status hf_writebehind_through(struct hf_writebehind *behind,
                                      const struct hf_store_change *changes,
                                      size_t count, uint64_t deadline_ns)
{
    if (behind == NULL || hf_wb_is_mine(behind))
        return HF_INVALID;
    struct flush flush = flush_begin(behind); /* who is dead before the put */
    enum hf_status status =
        put_all(behind, changes, count, deadline_ns, &flush.to);
    if (status != HF_OK || count == 0)
        return status;
    status = flush_to(&flush, deadline_ns);
    return status == HF_TIMEOUT ? HF_PENDING : status;
}

/* ---- Getting. ---- */

enum hf_status hf_writebehind_get(
    struct hf_writebehind *behind, const void *key, size_t key_len,
    void (*found)(void *arg, const void *value, size_t value_len), void *arg)
{
    if (behind == NULL || found == NULL || !hf_store_key_fits(key, key_len))
        return HF_INVALID;
    uint64_t hash = hf_hash(behind->seed, hf_bytes(key, key_len));
    hf_mutex_lock(&behind->mutex);
    struct wb_change *change = hf_wb_find(behind, hash, key, key_len);
    bool there = change != NULL && !change->remove;
    if (there) /* relaxed: the table's own keeps it alive so far */
        (void)hf_u32_add(&change->refs, 1, __ATOMIC_RELAXED);
    hf_mutex_unlock(&behind->mutex);
    if (change == NULL)
        return behind->store.read(behind->store.context, key, key_len, found,
                                  arg);
    if (!there)
        return HF_NOTFOUND;
    found(arg, wb_value(change), change->value_len);
    hf_wb_change_release(change);
    return HF_OK;
}

/* ---- As a store. ---- */

static enum hf_status store_read(void *context, const void *key, size_t key_len,
                                 void (*found)(void *arg, const void *value,
                                               size_t value_len),
                                 void *arg)
{
    return hf_writebehind_get(context, key, key_len, found, arg);
}

static enum hf_status
store_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    return hf_writebehind_put_all(context, changes, count, HF_FOREVER);
}

enum hf_status hf_writebehind_as_store(struct hf_writebehind *behind,
                                       struct hf_store *out)
{
    if (behind == NULL || out == NULL)
        return HF_INVALID;
    *out = (struct hf_store){
        .read = store_read, .apply = store_apply, .context = behind};
    return HF_OK;
}
