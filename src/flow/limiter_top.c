/* limiter_top.c - whom the limiter denies most (Space-Saving).
 *
 * A thread that denies keeps a table of TOP_ROWS keys. A key that is in it is
 * counted. One that is not takes the row with the lowest count, and counts on
 * from there: so it may be told too high by what was in that row, which is
 * remembered as the error, and no key that was denied more often than the
 * lowest count can be missing.
 *
 * Only its thread changes a table. To count is a plain store; to give a row to
 * another key takes the table's lock, as does reading the keys.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "flow/limiter_state.h"

#define TOP_ROWS 64u

struct limiter_top_table {
    struct hf_mutex mutex;
    uint32_t last;          /* (o) the row that was used last */
    uint32_t rows;          /* (o) in use; changed under the lock */
    uint64_t ids[TOP_ROWS]; /* (o) likewise */
    struct hf_atomic_u64 counts[TOP_ROWS]; /* (a) written by the owner */
    struct hf_limiter_top row[TOP_ROWS];   /* (m) keys and errors */
};

static struct limiter_top_table *table_of(struct hf_limiter *limiter,
                                          struct limiter_local *local)
{
    /* Relaxed: it is this thread's. */
    struct limiter_top_table *table =
        hf_ptr_load(&local->top, __ATOMIC_RELAXED);

    if (table == NULL && local != &limiter->spare) {
        table = hf_alloc_zeroed(sizeof *table);
        /* Release: that it is zeroed. */
        hf_ptr_store(&local->top, table, __ATOMIC_RELEASE);
    }
    return table;
}

static uint32_t row_lowest(const struct limiter_top_table *table)
{
    uint32_t lowest = 0;

    if (table->rows < TOP_ROWS)
        return table->rows;
    for (uint32_t i = 1; i < TOP_ROWS; i++)
        if (hf_u64_load(&table->counts[i], __ATOMIC_RELAXED) <
            hf_u64_load(&table->counts[lowest], __ATOMIC_RELAXED))
            lowest = i;
    return lowest;
}

static void row_give(struct limiter_top_table *table, uint32_t place,
                     uint64_t id, const struct hf_limiter_ask *ask,
                     const char *rule)
{
    struct hf_limiter_top *row = &table->row[place];
    size_t len =
        ask->key_len < sizeof row->key ? ask->key_len : sizeof row->key;

    hf_mutex_lock(&table->mutex);
    /* Relaxed: it is this thread's. */
    row->error = hf_u64_load(&table->counts[place], __ATOMIC_RELAXED);
    row->key_len = (uint32_t)ask->key_len;
    memcpy(row->rule, rule, sizeof row->rule);
    if (len > 0)
        memcpy(row->key, ask->key, len);
    table->ids[place] = id;
    if (place == table->rows)
        table->rows++;
    hf_mutex_unlock(&table->mutex);
}

void hf_limiter_top_note(struct hf_limiter *limiter,
                         struct limiter_local *local, uint64_t id,
                         const struct hf_limiter_ask *ask, const char *rule)
{
    struct limiter_top_table *table = table_of(limiter, local);

    if (table == NULL)
        return;
    uint32_t place = table->last;
    if (place >= table->rows || table->ids[place] != id) {
        place = 0;
        while (place < table->rows && table->ids[place] != id)
            place++;
        if (place == table->rows) {
            place = row_lowest(table);
            row_give(table, place, id, ask, rule);
        }
        table->last = place;
    }
    limiter_count(&table->counts[place], 1);
}

/* ---- Reading. ---- */

struct merged {
    uint64_t id;
    struct hf_limiter_top row;
};

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct merged *)a)->id;
    uint64_t y = ((const struct merged *)b)->id;

    return (x > y) - (x < y);
}

static int by_denied(const void *a, const void *b)
{
    uint64_t x = ((const struct merged *)a)->row.denied;
    uint64_t y = ((const struct merged *)b)->row.denied;

    return (x < y) - (x > y);
}

static size_t table_read(struct limiter_top_table *table, struct merged *out)
{
    hf_mutex_lock(&table->mutex);
    size_t rows = table->rows;
    for (size_t i = 0; i < rows; i++) {
        out[i].id = table->ids[i];
        out[i].row = table->row[i];
        /* Relaxed: a figure. */
        out[i].row.denied = hf_u64_load(&table->counts[i], __ATOMIC_RELAXED);
    }
    hf_mutex_unlock(&table->mutex);
    return rows;
}

/* The same key in the tables of several threads becomes one row. */
static size_t merge(struct merged *rows, size_t count)
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, by_id);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && rows[kept - 1].id == rows[i].id) {
            rows[kept - 1].row.denied += rows[i].row.denied;
            rows[kept - 1].row.error += rows[i].row.error;
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof *rows, by_denied);
    return kept;
}

static struct limiter_top_table *next_table(struct hf_limiter *limiter,
                                            uint32_t *slot)
{
    struct limiter_local *local;

    while ((local = hf_locals_next(&limiter->locals, slot)) != NULL) {
        /* Acquire: that it is zeroed. */
        struct limiter_top_table *table =
            hf_ptr_load(&local->top, __ATOMIC_ACQUIRE);
        if (table != NULL)
            return table;
    }
    return NULL;
}

size_t hf_limiter_top(struct hf_limiter *limiter, struct hf_limiter_top *rows,
                      size_t cap)
{
    struct limiter_top_table *table;
    uint32_t slot = 0;
    size_t tables = 0, count = 0;

    if (limiter == NULL || rows == NULL || cap == 0)
        return 0;
    while (next_table(limiter, &slot) != NULL)
        tables++;
    if (tables == 0)
        return 0;
    struct merged *all = hf_alloc(tables * TOP_ROWS * sizeof *all);
    if (all == NULL)
        return 0;
    slot = 0;
    while (tables-- > 0 && (table = next_table(limiter, &slot)) != NULL)
        count += table_read(table, &all[count]);
    count = merge(all, count);
    if (count > cap)
        count = cap;
    for (size_t i = 0; i < count; i++)
        rows[i] = all[i].row;
    hf_free(all);
    return count;
}

void hf_limiter_top_destroy(struct hf_limiter *limiter)
{
    struct limiter_top_table *table;
    uint32_t slot = 0;

    while ((table = next_table(limiter, &slot)) != NULL)
        hf_free(table);
}
