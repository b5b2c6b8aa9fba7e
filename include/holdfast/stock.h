/* stock.h - products and reservations: units set aside, sold, given back.
 *
 *   PENDING --confirm--> CONFIRMED    reserved -> sold
 *      |------cancel---> CANCELLED    reserved -> available
 *      '------time-----> EXPIRED      reserved -> available
 *
 * A product has units: total = available + reserved + sold after every call,
 * and none of them is ever negative, so that nothing is sold twice. What is
 * short is refused at once: nobody waits for units. Waiting, places,
 * pre-orders, classes and parts of reservations are the daemon's.
 *
 * One handle, two kinds of stock behind it, and the same calls for both:
 *
 *   hf_stock_open()   the daemon's engine for the threads of one process.
 *                     Nothing is kept on disk, and nothing can fail but memory
 *   stock_postgres.h  tables in PostgreSQL, for any number of processes. Every
 *                     call may then also end with HF_IO, HF_CONTENDED,
 *                     HF_FAILED or HF_CORRUPT: see there
 *
 *   reserve     all items or none. The same product twice counts together
 *   id          names a reservation, and is used once: to reserve it again
 *               with the same items changes nothing while it is pending
 *   time        a reservation that is over is gone from that instant on,
 *               however many are over at once. Whoever calls next tidies up
 *   ended       reservations are remembered for `ended_keep_ns`, so that a call
 *               that comes twice is told how the first one ended
 *   many        hf_stock_submit() takes requests and answers each of them once,
 *               later and in any thread. The other calls stand on it
 *
 * Threads: every call but open and close may overlap every other. One mutex
 *          guards the engine, held for about a microsecond by most calls.
 * Memory:  some hundred bytes for a product or a reservation. Names are copied.
 * Time:    by `clock`; of a database, by its own.
 *
 *   linearizable  order  wakes  lock-free  allocates
 *   yes           -      -      no         now and then
 *
 * Example:
 *
 *   struct hf_stock *stock;
 *   struct hf_stock_answer answer;
 *   struct hf_stock_product pen;
 *   const struct hf_stock_item cart[] = {{"pen", 3}, {"ink", 1}};
 *
 *   assert(hf_stock_open(&stock, NULL) == HF_OK);
 *   assert(hf_stock_set(stock, "pen", 5) == HF_OK);
 *   assert(hf_stock_set(stock, "ink", 1) == HF_OK);
 *   assert(hf_stock_reserve(stock, "cart-1", cart, 2, 0, &answer) == HF_OK);
 *   assert(hf_stock_reserve(stock, "cart-2", cart, 2, 0, &answer) == HF_EMPTY);
 *   assert(strcmp(answer.sku, "ink") == 0 && answer.available == 0);
 *   assert(hf_stock_confirm(stock, "cart-1", &answer) == HF_OK);
 *   assert(hf_stock_get(stock, "pen", &pen) == HF_OK && pen.sold == 3);
 *   hf_stock_close(stock);
 */
#ifndef HOLDFAST_STOCK_H
#define HOLDFAST_STOCK_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_STOCK_SKU_MAX   256u      /* bytes: the name of a product */
#define HF_STOCK_ID_MAX    128u      /* bytes: of a reservation */
#define HF_STOCK_ITEMS_MAX 128u      /* different products in a reservation */
#define HF_STOCK_UNITS_MAX INT64_MAX /* of a product, or of an item */

struct hf_stock;

struct hf_stock_opts {
    const char *name;             /* for hf_inspect() */
    uint64_t ttl_ns;              /* of reservations; 0: ten minutes */
    uint64_t ended_keep_ns;       /* 0: ten minutes */
    uint32_t products_max;        /* 0: 100,000,000 */
    uint32_t reservations_max;    /* pending and remembered; 0: 10,000,000. The
                                   * oldest one that has ended makes room */
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_stock_item {
    const char *sku;
    uint64_t quantity; /* at least 1 */
};

struct hf_stock_product {
    uint64_t total; /* available + reserved + sold */
    uint64_t available;
    uint64_t reserved;
    uint64_t sold;
    uint64_t version; /* grows with every change, also by a reservation */
};

enum hf_stock_state {
    HF_STOCK_NONE, /* there is no such reservation */
    HF_STOCK_PENDING,
    HF_STOCK_CONFIRMED,
    HF_STOCK_CANCELLED,
    HF_STOCK_EXPIRED,
};

/* What is told of a reservation. */
struct hf_stock_answer {
    enum hf_stock_state state; /* as it is now */
    uint64_t left_ns;          /* PENDING: until it expires, in milliseconds */
    /* HF_EMPTY: the first product by name of which there is too little; it is
     * the caller's text. */
    const char *sku;
    uint64_t requested; /* in all items together */
    uint64_t available;
};

enum hf_stock_call {
    HF_STOCK_SET,
    HF_STOCK_ADD,
    HF_STOCK_REMOVE,
    HF_STOCK_GET,
    HF_STOCK_RESERVE,
    HF_STOCK_CONFIRM,
    HF_STOCK_CANCEL,
    HF_STOCK_EXTEND,
    HF_STOCK_LOOK,
};

/* A call as data: the arguments that the call of that name has, and room for
 * what it answers. All of it belongs to the stock from hf_stock_submit() until
 * `done` is called, which is the last that the stock does with it. */
struct hf_stock_request {
    enum hf_stock_call call;
    const char *name;                  /* the sku, or the reservation's id */
    const struct hf_stock_item *items; /* RESERVE */
    size_t count;                      /* of them */
    uint64_t total;                    /* SET */
    int64_t units;                     /* ADD */
    uint64_t ttl_ns;                   /* RESERVE, EXTEND */
    /* Called once, in any thread, also in that of hf_stock_submit() before it
     * returns. It may submit; it must not make the other calls of a stock whose
     * threads it would hold up. */
    void (*done)(struct hf_stock_request *request);
    void *context; /* for `done` */
    /* The answer. */
    enum hf_status status;
    struct hf_stock_answer answer;   /* about reservations */
    struct hf_stock_product product; /* GET: HF_OK */
    /* Private. */
    struct hf_stock_request *next;
};

/* HF_INVALID: stock is NULL, or an option is beyond its bound; HF_NOMEM. */
enum hf_status hf_stock_open(struct hf_stock **stock,
                             const struct hf_stock_opts *opts);
/* Frees it all. Nobody may be inside a call; what was submitted is answered
 * before it returns. NULL is allowed. */
void hf_stock_close(struct hf_stock *stock);

/* Takes all of the requests; each is then answered by its `done`, whatever its
 * status. The engine carries them out in their order, under one lock. In a
 * database requests that are on their way at the same time go together, those
 * about one name in their order if they are in one batch: what needs the answer
 * to another request is submitted after it.
 * HF_INVALID: stock, requests or a `done` is NULL: none of them is taken. */
enum hf_status hf_stock_submit(struct hf_stock *stock,
                               struct hf_stock_request *requests, size_t count);

/* Of all calls below: HF_INVALID: a name is empty or too long, or a number is
 * beyond its bound (of a time: 292 years); HF_NOMEM. Both change nothing. */

/* Makes a product, or sets its total. HF_EMPTY: more is reserved and sold;
 * HF_FULL: products_max. */
enum hf_status hf_stock_set(struct hf_stock *stock, const char *sku,
                            uint64_t total);
/* Changes the total of a product. HF_EMPTY: so many are not available; HF_FULL:
 * it would be beyond HF_STOCK_UNITS_MAX; HF_NOTFOUND. */
enum hf_status hf_stock_add(struct hf_stock *stock, const char *sku,
                            int64_t units);
/* Deletes a product. HF_EXISTS: some of it is reserved; HF_NOTFOUND. */
enum hf_status hf_stock_remove(struct hf_stock *stock, const char *sku);
/* HF_NOTFOUND. */
enum hf_status hf_stock_get(struct hf_stock *stock, const char *sku,
                            struct hf_stock_product *product);

/* Sets units aside, of all items or of none, for `ttl_ns` (rounded up to a
 * millisecond; 0: as the stock's). `answer` may be NULL, and is written
 * whatever happens but HF_INVALID.
 *   HF_OK        it is pending
 *   HF_EMPTY     there is too little of an item
 *   HF_NOTFOUND  there is no product of an item
 *   HF_EXISTS    the id is pending, with other items
 *   HF_CLOSED    the reservation of that id has ended: see `state`
 *   HF_FULL      reservations_max are pending
 *   HF_INVALID   also: no items, or more products than HF_STOCK_ITEMS_MAX
 */
enum hf_status hf_stock_reserve(struct hf_stock *stock, const char *id,
                                const struct hf_stock_item *items, size_t count,
                                uint64_t ttl_ns,
                                struct hf_stock_answer *answer);

/* The units are sold; they are free again; it lasts for ttl_ns from now on (not
 * 0). HF_CLOSED: it was confirmed or cancelled before; HF_TIMEOUT: it has
 * expired; HF_NOTFOUND: it never was, or is forgotten. These change nothing. */
enum hf_status hf_stock_confirm(struct hf_stock *stock, const char *id,
                                struct hf_stock_answer *answer);
enum hf_status hf_stock_cancel(struct hf_stock *stock, const char *id,
                               struct hf_stock_answer *answer);
enum hf_status hf_stock_extend(struct hf_stock *stock, const char *id,
                               uint64_t ttl_ns, struct hf_stock_answer *answer);
/* How it is. HF_NOTFOUND. */
enum hf_status hf_stock_look(struct hf_stock *stock, const char *id,
                             struct hf_stock_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
