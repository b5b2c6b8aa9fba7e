/* stock_batch.c - see stock_batch.h: what is in a batch. */
#include "stores/stock_batch.h"

#include <assert.h>

#include "base/memory.h"

#define CAP_FIRST 64u

/* ---- Memory. ---- */

void hf_stock_batch_init(struct stock_batch *batch, int64_t ttl_us)
{
    *batch = (struct stock_batch){.ttl_us = ttl_us};
    batch->seed = hf_hash_seed(batch->seed);
}

void hf_stock_batch_destroy(struct stock_batch *batch)
{
    hf_free(batch->tasks);
    hf_free(batch->cells);
    hf_free(batch->bookings);
    hf_free(batch->lines);
    hf_free(batch->events);
    hf_free(batch->by_sku.slots);
    hf_free(batch->by_id.slots);
}

static void clear_index(struct stock_index *index)
{
    if (index->cap > 0)
        memset(index->slots, 0, index->cap * sizeof *index->slots);
}

void hf_stock_batch_clear(struct stock_batch *batch)
{
    batch->task_count = batch->cell_count = batch->booking_count = 0;
    batch->cell_mark = batch->booking_mark = batch->line_mark = 0;
    batch->line_count = batch->event_count = batch->expired = 0;
    batch->no_memory = batch->short_of = batch->stale = false;
    batch->gives_up = false;
    clear_index(&batch->by_sku);
    clear_index(&batch->by_id);
}

void *hf_stock_batch_grow(struct stock_batch *batch, void *records,
                          uint32_t *count, uint32_t *cap, size_t bytes)
{
    if (*count == *cap) {
        uint32_t more = *cap == 0 ? CAP_FIRST : 2 * *cap;
        void *grown = hf_realloc(records, more * bytes);
        if (grown == NULL) {
            batch->no_memory = true;
            return NULL;
        }
        records = grown;
        *cap = more;
    }
    return records;
}

/* Appends a record; false without memory. */
#define APPEND(batch, kind, ...) \
    append_##kind(batch, &(struct stock_##kind)__VA_ARGS__)
#define DEFINE_APPEND(kind)                                                  \
    static bool append_##kind(struct stock_batch *batch,                     \
                              const struct stock_##kind *record)             \
    {                                                                        \
        void *room =                                                         \
            hf_stock_batch_grow(batch, batch->kind##s, &batch->kind##_count, \
                                &batch->kind##_cap, sizeof *record);         \
        if (room == NULL)                                                    \
            return false;                                                    \
        batch->kind##s = room;                                               \
        batch->kind##s[batch->kind##_count++] = *record;                     \
        return true;                                                         \
    }

DEFINE_APPEND(task)
DEFINE_APPEND(cell)
DEFINE_APPEND(booking)
DEFINE_APPEND(line)

/* ---- Finding by name. ---- */

static struct hf_bytes name_of(const struct stock_batch *batch,
                               const struct stock_index *index, uint32_t number)
{
    return index == &batch->by_sku ? batch->cells[number].sku
                                   : batch->bookings[number].id;
}

/* The slot of the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct stock_batch *batch,
                         const struct stock_index *index, struct hf_bytes name)
{
    uint32_t at = (uint32_t)hf_hash(batch->seed, name);

    for (;; at++) {
        uint32_t *slot = &index->slots[at & (index->cap - 1)];
        if (*slot == 0 ||
            hf_bytes_equal(name_of(batch, index, *slot - 1), name))
            return slot;
    }
}

static void find_again(struct stock_batch *batch, struct stock_index *index,
                       uint32_t count)
{
    clear_index(index);
    for (uint32_t i = 0; i < count; i++)
        *slot_of(batch, index, name_of(batch, index, i)) = i + 1;
}

/* Room for one more than `count`, with as many free slots. */
static bool make_room(struct stock_batch *batch, struct stock_index *index,
                      uint32_t count)
{
    if (2 * (count + 1) <= index->cap)
        return true;
    uint32_t cap = index->cap == 0 ? 4 * CAP_FIRST : 2 * index->cap;
    uint32_t *slots = hf_alloc_zeroed(cap * sizeof *slots);
    if (slots == NULL) {
        batch->no_memory = true;
        return false;
    }
    hf_free(index->slots);
    index->slots = slots;
    index->cap = cap;
    find_again(batch, index, count);
    return true;
}

/* Their numbers; made if need be. STOCK_NONE: no memory. */
static uint32_t cell_of(struct stock_batch *batch, struct hf_bytes sku)
{
    if (!make_room(batch, &batch->by_sku, batch->cell_count))
        return STOCK_NONE;
    uint32_t *slot = slot_of(batch, &batch->by_sku, sku);
    if (*slot != 0)
        return *slot - 1;
    if (!APPEND(batch, cell, {.sku = sku}))
        return STOCK_NONE;
    *slot = batch->cell_count;
    return *slot - 1;
}

static uint32_t booking_of(struct stock_batch *batch, struct hf_bytes id)
{
    if (!make_room(batch, &batch->by_id, batch->booking_count))
        return STOCK_NONE;
    uint32_t *slot = slot_of(batch, &batch->by_id, id);
    if (*slot != 0)
        return *slot - 1;
    if (!APPEND(batch, booking, {.id = id}))
        return STOCK_NONE;
    *slot = batch->booking_count;
    return *slot - 1;
}

/* ---- What is asked. ---- */

static bool is_utf8(struct hf_bytes text)
{
    while (text.len > 0) {
        size_t len = hf_utf8_len(text);
        if (len == 0)
            return false;
        text = hf_bytes(text.data + len, text.len - len);
    }
    return true;
}

/* Puts it into the lines from `first` on, which are sorted by sku. False: they
 * are too many, or it is too much. */
static bool merge(struct stock_batch *batch, uint32_t first, uint32_t cell,
                  int64_t quantity)
{
    struct hf_bytes sku = batch->cells[cell].sku;
    uint32_t at = first;

    for (; at < batch->line_count; at++) {
        struct stock_line *line = &batch->lines[at];
        if (line->cell == cell)
            return !__builtin_add_overflow(line->quantity, quantity,
                                           &line->quantity);
        if (hf_bytes_compare(batch->cells[line->cell].sku, sku) > 0)
            break;
    }
    if (batch->line_count - first == HF_STOCK_ITEMS_MAX)
        return false;
    if (!APPEND(batch, line, {cell, quantity}))
        return false;
    for (uint32_t i = batch->line_count - 1; i > at; i--)
        batch->lines[i] = batch->lines[i - 1];
    batch->lines[at] = (struct stock_line){cell, quantity};
    return true;
}

/* The items of a RESERVE as lines. */
static bool merge_all(struct stock_batch *batch,
                      const struct hf_stock_request *request,
                      struct stock_lines *lines)
{
    lines->first = batch->line_count;
    for (size_t i = 0; i < request->count; i++) {
        struct hf_bytes sku = hf_bytes_text(request->items[i].sku);
        uint32_t cell = is_utf8(sku) ? cell_of(batch, sku) : STOCK_NONE;
        if (cell == STOCK_NONE || !merge(batch, lines->first, cell,
                                         (int64_t)request->items[i].quantity)) {
            batch->line_count = lines->first;
            return false;
        }
    }
    lines->count = batch->line_count - lines->first;
    return true;
}

static bool is_about_product(enum hf_stock_call call)
{
    return call <= HF_STOCK_GET;
}

static void add(struct stock_batch *batch, struct stock_task *task)
{
    assert(batch->line_mark == batch->line_count); /* nothing was read yet */
    task->wrong = !is_utf8(task->name);
    task->cell = task->booking = STOCK_NONE;
    if (!task->wrong && is_about_product(task->call))
        task->cell = cell_of(batch, task->name);
    else if (!task->wrong)
        task->booking = booking_of(batch, task->name);
    if (!task->wrong && task->call == HF_STOCK_RESERVE)
        task->wrong =
            !merge_all(batch, task->request, &task->lines) && !batch->no_memory;
    batch->cell_mark = batch->cell_count;
    batch->booking_mark = batch->booking_count;
    batch->line_mark = batch->line_count;
    (void)append_task(batch, task);
}

void hf_stock_batch_add(struct stock_batch *batch,
                        struct hf_stock_request *request)
{
    add(batch, &(struct stock_task){.request = request,
                                    .call = request->call,
                                    .name = hf_bytes_text(request->name)});
}

void hf_stock_batch_add_own(struct stock_batch *batch, enum hf_stock_call call,
                            struct hf_bytes name)
{
    add(batch, &(struct stock_task){.call = call, .name = name});
}

/* ---- What is there. ---- */

void hf_stock_batch_unread(struct stock_batch *batch)
{
    if (batch->cell_count > batch->cell_mark)
        find_again(batch, &batch->by_sku, batch->cell_mark);
    if (batch->booking_count > batch->booking_mark)
        find_again(batch, &batch->by_id, batch->booking_mark);
    batch->cell_count = batch->cell_mark;
    batch->booking_count = batch->booking_mark;
    batch->line_count = batch->line_mark;
    for (uint32_t i = 0; i < batch->cell_count; i++)
        batch->cells[i] = (struct stock_cell){.sku = batch->cells[i].sku};
    for (uint32_t i = 0; i < batch->booking_count; i++)
        batch->bookings[i] =
            (struct stock_booking){.id = batch->bookings[i].id};
    batch->stale = false;
}

void hf_stock_batch_read_cell(struct stock_batch *batch,
                              const struct stock_cell *row)
{
    uint32_t number = cell_of(batch, row->sku);

    if (number == STOCK_NONE)
        return;
    struct stock_cell *cell = &batch->cells[number];
    struct hf_bytes sku = cell->sku; /* that of the requests lasts longer */
    *cell = *row;
    cell->sku = sku;
    cell->known = cell->is_there = true;
    cell->read_version = row->version;
}

void hf_stock_batch_read_held(struct stock_batch *batch, struct hf_bytes sku)
{
    uint32_t number = cell_of(batch, sku);

    if (number != STOCK_NONE)
        batch->cells[number].held = !batch->cells[number].known;
}

void hf_stock_batch_read_booking(struct stock_batch *batch,
                                 const struct stock_booking *row)
{
    uint32_t number = booking_of(batch, row->id);

    if (number == STOCK_NONE)
        return;
    struct stock_booking *booking = &batch->bookings[number];
    booking->known = true;
    booking->state = row->state;
    booking->expires_us = booking->read_expires_us = row->expires_us;
}

void hf_stock_batch_read_line(struct stock_batch *batch, struct hf_bytes id,
                              struct hf_bytes sku, int64_t quantity)
{
    uint32_t number = booking_of(batch, id);
    uint32_t cell = cell_of(batch, sku);

    if (number == STOCK_NONE || cell == STOCK_NONE)
        return;
    struct stock_lines *lines = &batch->bookings[number].lines;
    if (!APPEND(batch, line, {cell, quantity}))
        return;
    if (lines->count++ == 0)
        lines->first = batch->line_count - 1;
    assert(lines->first + lines->count == batch->line_count);
}
