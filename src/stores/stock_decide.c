/* stock_decide.c - what becomes of the tasks of a batch, one after the other.
 *
 * The rules of the engine for the calls of stock.h; no input, no output. */
#include <assert.h>

#include "stores/stock_batch.h"

#define US_PER_MS 1000

static void tell_event(struct stock_batch *batch, const char *name,
                       struct hf_bytes about, int64_t units)
{
    void *room = hf_stock_batch_grow(batch, batch->events, &batch->event_count,
                                     &batch->event_cap, sizeof *batch->events);

    if (room == NULL)
        return;
    batch->events = room;
    batch->events[batch->event_count++] =
        (struct stock_event){name, about, units};
}

static void touch(struct stock_cell *cell)
{
    cell->changed = true;
    cell->version++;
    assert(cell->available >= 0);
    assert(cell->reserved >= 0);
    assert(cell->sold >= 0);
}

/* ---- Products. ---- */

/* Overdue reservations may be why it is refused. */
static enum hf_status refuse(struct stock_batch *batch,
                             const struct stock_cell *cell,
                             enum hf_status status)
{
    if (cell->reserved > 0 && batch->gives_up)
        return HF_CONTENDED;
    batch->short_of = batch->short_of || cell->reserved > 0;
    return status;
}

static enum hf_status set_total(struct stock_batch *batch,
                                const struct stock_task *task)
{
    struct stock_cell *cell = &batch->cells[task->cell];
    int64_t total = (int64_t)task->request->total;

    if (cell->is_there && total < cell->reserved + cell->sold)
        return refuse(batch, cell, HF_EMPTY);
    if (!cell->is_there) {
        cell->is_there = true;
        cell->reserved = cell->sold = 0;
        /* It may have been there before, and somebody have read it then: no
         * version comes again. */
        if (cell->version < batch->now_us)
            cell->version = batch->now_us;
    }
    cell->available = total - cell->reserved - cell->sold;
    touch(cell);
    tell_event(batch, "set", cell->sku, total);
    return HF_OK;
}

static enum hf_status add_units(struct stock_batch *batch,
                                const struct stock_task *task)
{
    struct stock_cell *cell = &batch->cells[task->cell];
    int64_t units = task->request->units;
    int64_t total;

    if (!cell->is_there)
        return HF_NOTFOUND;
    total = cell->available + cell->reserved + cell->sold;
    if (__builtin_add_overflow(total, units, &total))
        return HF_FULL;
    if (total < cell->reserved + cell->sold)
        return refuse(batch, cell, HF_EMPTY);
    cell->available += units;
    touch(cell);
    tell_event(batch, "added", cell->sku, units);
    return HF_OK;
}

static enum hf_status remove_product(struct stock_batch *batch,
                                     const struct stock_task *task)
{
    struct stock_cell *cell = &batch->cells[task->cell];

    if (!cell->is_there)
        return HF_NOTFOUND;
    if (cell->reserved > 0)
        return refuse(batch, cell, HF_EXISTS);
    cell->is_there = false;
    cell->changed = true;
    tell_event(batch, "removed", cell->sku, 0);
    return HF_OK;
}

static enum hf_status get(const struct stock_batch *batch,
                          struct stock_task *task)
{
    const struct stock_cell *cell = &batch->cells[task->cell];

    if (!cell->is_there)
        return HF_NOTFOUND;
    task->product = (struct hf_stock_product){
        .total = (uint64_t)(cell->available + cell->reserved + cell->sold),
        .available = (uint64_t)cell->available,
        .reserved = (uint64_t)cell->reserved,
        .sold = (uint64_t)cell->sold,
        .version = (uint64_t)cell->version,
    };
    return HF_OK;
}

/* ---- Reservations. ---- */

static bool is_over(const struct stock_batch *batch,
                    const struct stock_booking *booking)
{
    return booking->state == HF_STOCK_PENDING &&
           booking->expires_us <= batch->now_us;
}

static void tell_state(const struct stock_batch *batch, struct stock_task *task,
                       const struct stock_booking *booking)
{
    task->answer.state =
        is_over(batch, booking) ? HF_STOCK_EXPIRED : booking->state;
    if (task->answer.state == HF_STOCK_PENDING)
        task->answer.left_ns =
            (uint64_t)((booking->expires_us - batch->now_us) / US_PER_MS) *
            HF_NS_PER_MS;
}

static bool same_lines(const struct stock_batch *batch, struct stock_lines a,
                       struct stock_lines b)
{
    if (a.count != b.count)
        return false;
    for (uint32_t i = 0; i < a.count; i++) {
        const struct stock_line *one = &batch->lines[a.first + i];
        const struct stock_line *other = &batch->lines[b.first + i];
        if (one->cell != other->cell || one->quantity != other->quantity)
            return false;
    }
    return true;
}

/* The id was used before. */
static enum hf_status reserve_again(const struct stock_batch *batch,
                                    struct stock_task *task,
                                    const struct stock_booking *booking)
{
    tell_state(batch, task, booking);
    if (task->answer.state != HF_STOCK_PENDING)
        return HF_CLOSED;
    if (same_lines(batch, task->lines, booking->lines))
        return HF_OK;
    task->answer.left_ns = 0;
    return HF_EXISTS;
}

/* The caller's own text. */
static const char *text_of(const struct hf_stock_request *request,
                           struct hf_bytes sku)
{
    for (size_t i = 0; i < request->count; i++)
        if (hf_bytes_equal(hf_bytes_text(request->items[i].sku), sku))
            return request->items[i].sku;
    return NULL;
}

/* One that is not there comes before those of which there is too little, of
 * which the first is told. */
static enum hf_status look_at_lines(struct stock_batch *batch,
                                    struct stock_task *task)
{
    const struct stock_line *lacking = NULL;
    enum hf_status status = HF_EMPTY;

    for (uint32_t i = 0; i < task->lines.count; i++) {
        const struct stock_line *line = &batch->lines[task->lines.first + i];
        const struct stock_cell *cell = &batch->cells[line->cell];
        if (!cell->is_there)
            return HF_NOTFOUND;
        if (cell->available >= line->quantity)
            continue;
        /* each may have overdue ones */
        status = refuse(batch, cell, status);
        lacking = lacking == NULL ? line : lacking;
    }
    if (lacking == NULL)
        return HF_OK;
    const struct stock_cell *cell = &batch->cells[lacking->cell];
    task->answer.sku = text_of(task->request, cell->sku);
    task->answer.requested = (uint64_t)lacking->quantity;
    task->answer.available = (uint64_t)cell->available;
    return status;
}

int64_t hf_stock_batch_ttl_us(const struct stock_batch *batch,
                              const struct hf_stock_request *request)
{
    if (request->ttl_ns == 0)
        return batch->ttl_us;
    return (int64_t)((request->ttl_ns - 1) / HF_NS_PER_MS + 1) * US_PER_MS;
}

static enum hf_status reserve(struct stock_batch *batch,
                              struct stock_task *task)
{
    struct stock_booking *booking = &batch->bookings[task->booking];

    if (booking->state != HF_STOCK_NONE)
        return reserve_again(batch, task, booking);
    enum hf_status status = look_at_lines(batch, task);
    if (status != HF_OK)
        return status;
    for (uint32_t i = 0; i < task->lines.count; i++) {
        const struct stock_line *line = &batch->lines[task->lines.first + i];
        struct stock_cell *cell = &batch->cells[line->cell];
        cell->available -= line->quantity;
        cell->reserved += line->quantity;
        touch(cell);
    }
    booking->state = HF_STOCK_PENDING;
    booking->changed = true;
    booking->lines = task->lines;
    booking->expires_us =
        batch->now_us + hf_stock_batch_ttl_us(batch, task->request);
    tell_state(batch, task, booking);
    tell_event(batch, "reserved", booking->id, 0);
    return HF_OK;
}

/* Its products were all read and have the units reserved. Not so if it was made
 * while they were read, or if somebody wrote by hand. */
static enum hf_status look_at_products(const struct stock_batch *batch,
                                       const struct stock_booking *booking)
{
    for (uint32_t i = 0; i < booking->lines.count; i++) {
        const struct stock_line *line = &batch->lines[booking->lines.first + i];
        const struct stock_cell *cell = &batch->cells[line->cell];
        if (!cell->is_there)
            return batch->is_sure ? HF_CORRUPT : HF_CONTENDED;
        if (cell->reserved < line->quantity)
            return batch->is_locked ? HF_CORRUPT : HF_CONTENDED;
    }
    return HF_OK;
}

static void end(struct stock_batch *batch, struct stock_booking *booking,
                enum hf_stock_state state, const char *event)
{
    for (uint32_t i = 0; i < booking->lines.count; i++) {
        const struct stock_line *line = &batch->lines[booking->lines.first + i];
        struct stock_cell *cell = &batch->cells[line->cell];
        cell->reserved -= line->quantity;
        if (state == HF_STOCK_CONFIRMED)
            cell->sold += line->quantity;
        else
            cell->available += line->quantity;
        touch(cell);
    }
    booking->state = state;
    booking->changed = true;
    tell_event(batch, event, booking->id, 0);
}

static void extend(struct stock_batch *batch, const struct stock_task *task,
                   struct stock_booking *booking)
{
    booking->expires_us =
        batch->now_us + hf_stock_batch_ttl_us(batch, task->request);
    booking->changed = true;
    tell_event(batch, "extended", booking->id, 0);
}

/* CONFIRM, CANCEL and EXTEND. */
static enum hf_status change(struct stock_batch *batch, struct stock_task *task)
{
    struct stock_booking *booking = &batch->bookings[task->booking];

    if (booking->state == HF_STOCK_NONE)
        return HF_NOTFOUND;
    tell_state(batch, task, booking);
    if (task->answer.state == HF_STOCK_EXPIRED)
        return HF_TIMEOUT;
    if (task->answer.state != HF_STOCK_PENDING)
        return HF_CLOSED;
    enum hf_status status = look_at_products(batch, booking);
    batch->stale = batch->stale || status == HF_CONTENDED;
    if (status != HF_OK)
        return status;
    if (task->call == HF_STOCK_CONFIRM)
        end(batch, booking, HF_STOCK_CONFIRMED, "confirmed");
    else if (task->call == HF_STOCK_CANCEL)
        end(batch, booking, HF_STOCK_CANCELLED, "cancelled");
    else
        extend(batch, task, booking);
    task->answer.left_ns = 0;
    tell_state(batch, task, booking);
    return HF_OK;
}

static enum hf_status look(const struct stock_batch *batch,
                           struct stock_task *task)
{
    const struct stock_booking *booking = &batch->bookings[task->booking];

    tell_state(batch, task, booking);
    return booking->state == HF_STOCK_NONE ? HF_NOTFOUND : HF_OK;
}

/* One whose products are locked by others is left to the next time. */
static enum hf_status expire(struct stock_batch *batch,
                             const struct stock_task *task)
{
    struct stock_booking *booking = &batch->bookings[task->booking];

    if (!is_over(batch, booking) || look_at_products(batch, booking) != HF_OK)
        return HF_CONTENDED;
    end(batch, booking, HF_STOCK_EXPIRED, "expired");
    batch->expired++;
    return HF_OK;
}

/* ---- All of them. ---- */

static bool are_held(const struct stock_batch *batch, struct stock_lines lines)
{
    for (uint32_t i = 0; i < lines.count; i++)
        if (batch->cells[batch->lines[lines.first + i].cell].held)
            return true;
    return false;
}

/* Is it about a product that others hold? */
static bool is_held(const struct stock_batch *batch,
                    const struct stock_task *task)
{
    if (task->cell != STOCK_NONE)
        return batch->cells[task->cell].held;
    return are_held(batch, task->lines) ||
           are_held(batch, batch->bookings[task->booking].lines);
}

static enum hf_status carry_out(struct stock_batch *batch,
                                struct stock_task *task)
{
    if (is_held(batch, task))
        return HF_CONTENDED;
    switch (task->call) {
    case HF_STOCK_SET:
        return set_total(batch, task);
    case HF_STOCK_ADD:
        return add_units(batch, task);
    case HF_STOCK_REMOVE:
        return remove_product(batch, task);
    case HF_STOCK_GET:
        return get(batch, task);
    case HF_STOCK_LOOK:
        return look(batch, task);
    case HF_STOCK_RESERVE:
        return reserve(batch, task);
    case HF_STOCK_CONFIRM:
    case HF_STOCK_CANCEL:
    case HF_STOCK_EXTEND:
        return change(batch, task);
    default:
        assert(task->call == STOCK_EXPIRE);
        return expire(batch, task);
    }
}

void hf_stock_batch_decide(struct stock_batch *batch)
{
    batch->event_count = 0;
    batch->expired = 0;
    batch->short_of = false;
    for (uint32_t i = 0; i < batch->task_count && !batch->no_memory; i++) {
        struct stock_task *task = &batch->tasks[i];
        task->answer = (struct hf_stock_answer){.state = HF_STOCK_NONE};
        task->status = task->wrong ? HF_INVALID : carry_out(batch, task);
    }
}
