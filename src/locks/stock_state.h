/* stock_state.h - a stock: the handle, and what stands behind it.
 *
 *   hf_stock_reserve() --.
 *   hf_stock_submit() ---+--> checked --> kind->run() --> done()
 *
 * The struct of a kind begins with a `struct hf_stock`.
 *
 * Threads: run() may overlap itself; close() nothing.
 */
#ifndef LOCKS_STOCK_STATE_H
#define LOCKS_STOCK_STATE_H

#include <stdbool.h>

#include "holdfast/stock.h"
#include "sync/listed.h"

#define STOCK_TTL_MAX_NS INT64_MAX /* 292 years */

struct stock_kind {
    /* Sets the status of each and then calls its `done`. Their names are within
     * the bounds of stock.h, and their numbers. */
    void (*run)(struct hf_stock *stock, struct hf_stock_request *requests,
                size_t count);
    void (*close)(struct hf_stock *stock);
    bool at_once; /* run() returns when all of them are answered */
};

struct hf_stock { /* (i) immutable after open */
    struct hf_listed listed;
    const struct stock_kind *kind; /* (i) */
};

/* In whole milliseconds, rounded up. */
static inline uint64_t stock_ms_of(uint64_t ns)
{
    return ns == 0 ? 0 : (ns - 1) / HF_NS_PER_MS + 1;
}

#endif
