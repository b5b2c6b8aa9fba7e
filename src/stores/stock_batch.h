/* stock_batch.h - requests that are carried out in one transaction, and what is
 * known of the rows that they are about.
 *
 *   task  --> cell                   a product
 *    |'-----> booking --> lines      a reservation and its items
 *    '------> lines   --> cells      the items of a RESERVE, one for each sku
 *
 * Filled by gather() from the requests and by the reader from the database;
 * then decided here, in memory and one task after the other, as the engine
 * would: what a task changes the next one sees. What is marked as changed is
 * written by the flow. Decided again from the start if the writing fails.
 *
 * Threads: one at a time.
 * Memory:  names are those of the requests, and of the results that the flow
 *          keeps. What is here is kept from one batch to the next.
 */
#ifndef STORES_STOCK_BATCH_H
#define STORES_STOCK_BATCH_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "holdfast/stock.h"

#define STOCK_NONE UINT32_MAX

/* Beside the calls of stock.h: ends a reservation that is overdue. */
#define STOCK_EXPIRE ((enum hf_stock_call)(HF_STOCK_LOOK + 1))

struct stock_cell {
    struct hf_bytes sku;
    bool known;    /* there is such a row */
    bool is_there; /* with what was decided so far */
    bool held;     /* others have locked the row: it was not read */
    bool changed;
    int64_t available, reserved, sold;
    int64_t version;
    int64_t read_version; /* of the row */
};

struct stock_line {
    uint32_t cell;
    int64_t quantity;
};

/* A piece of the lines. */
struct stock_lines {
    uint32_t first;
    uint32_t count;
};

struct stock_booking {
    struct hf_bytes id;
    bool known; /* there is such a row */
    bool changed;
    enum hf_stock_state state; /* NONE: there is no such reservation */
    int64_t expires_us;
    int64_t read_expires_us; /* of the row */
    struct stock_lines lines;
};

struct stock_task {
    struct hf_stock_request *request; /* NULL: one of our own */
    enum hf_stock_call call;
    struct hf_bytes name;
    uint32_t cell;    /* or STOCK_NONE */
    uint32_t booking; /* or STOCK_NONE */
    struct stock_lines lines;
    bool wrong; /* HF_INVALID, whatever is in the database */
    enum hf_status status;
    struct hf_stock_answer answer;
    struct hf_stock_product product;
};

struct stock_event {
    const char *name;
    struct hf_bytes about;
    int64_t units;
};

/* Records found by name. Slots hold a number plus 1, 0 is free. */
struct stock_index {
    uint32_t *slots;
    uint32_t cap; /* a power of two */
};

struct stock_batch {
    struct hf_hash_seed seed;
    struct stock_task *tasks;
    uint32_t task_count, task_cap;
    struct stock_cell *cells;
    uint32_t cell_count, cell_cap;
    struct stock_booking *bookings;
    uint32_t booking_count, booking_cap;
    struct stock_line *lines;
    uint32_t line_count, line_cap;
    /* How many are the tasks' own: behind them are those of rows. */
    uint32_t cell_mark, booking_mark, line_mark;
    struct stock_event *events;
    uint32_t event_count, event_cap;
    struct stock_index by_sku, by_id;
    bool no_memory;   /* something is missing in it */
    int64_t ttl_us;   /* of a RESERVE that has none */
    int64_t now_us;   /* the database's */
    bool short_of;    /* a refusal that overdue units might have spared */
    bool gives_up;    /* they cannot be ended: so it is not known */
    bool stale;       /* rows do not belong together: read again */
    bool is_locked;   /* products were locked when they were read */
    bool is_sure;     /* one that was not read, nor is held, is not there */
    uint32_t expired; /* reservations ended by STOCK_EXPIRE */
};

void hf_stock_batch_init(struct stock_batch *batch, int64_t ttl_us);
void hf_stock_batch_destroy(struct stock_batch *batch);
void hf_stock_batch_clear(struct stock_batch *batch);

/* A task for the request, or for a call of our own about a name. */
void hf_stock_batch_add(struct stock_batch *batch,
                        struct hf_stock_request *request);
void hf_stock_batch_add_own(struct stock_batch *batch, enum hf_stock_call call,
                            struct hf_bytes name);

/* Before rows are read: of an earlier reading nothing is left. */
void hf_stock_batch_unread(struct stock_batch *batch);
void hf_stock_batch_read_cell(struct stock_batch *batch,
                              const struct stock_cell *row);
/* There is such a row: if it was not read, others hold it. */
void hf_stock_batch_read_held(struct stock_batch *batch, struct hf_bytes sku);
void hf_stock_batch_read_booking(struct stock_batch *batch,
                                 const struct stock_booking *row);
/* An item of a reservation; those of one come together, by sku. */
void hf_stock_batch_read_line(struct stock_batch *batch, struct hf_bytes id,
                              struct hf_bytes sku, int64_t quantity);

/* Carries the tasks out on what was read. */
void hf_stock_batch_decide(struct stock_batch *batch);

/* Of a RESERVE or an EXTEND: in whole milliseconds, rounded up. */
int64_t hf_stock_batch_ttl_us(const struct stock_batch *batch,
                              const struct hf_stock_request *request);

/* For its files: room for one more record, or NULL. */
void *hf_stock_batch_grow(struct stock_batch *batch, void *records,
                          uint32_t *count, uint32_t *cap, size_t bytes);

#endif
