/* stock_batch.c - tests of the batches of a stock in a database, without one:
 * what is decided in memory is what the engine decides, whatever is asked in
 * whatever order; and without memory a batch says so.
 */
#include "stores/stock_flow.h"

#include <stdio.h>

#include "base/random.h"
#include "support/clock.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define SKUS   4
#define IDS    40
#define ITEMS  3
#define MANY   12
#define ROUNDS 3000
#define MS     UINT64_C(1000000)

/* ---- Rows in memory. ---- */

struct product {
    char sku[8];
    bool is_there;
    int64_t available, reserved, sold, version;
};

struct reservation {
    char id[8];
    enum hf_stock_state state;
    int64_t expires_us;
    int count;
    int products[ITEMS]; /* in their order */
    int64_t quantities[ITEMS];
};

static struct product products[SKUS];
static struct reservation reservations[IDS];

static void make_rows(void)
{
    memset(products, 0, sizeof products);
    memset(reservations, 0, sizeof reservations);
    for (int i = 0; i < SKUS; i++)
        snprintf(products[i].sku, sizeof products[i].sku, "p%d", i);
    for (int i = 0; i < IDS; i++)
        snprintf(reservations[i].id, sizeof reservations[i].id, "r%d", i);
}

/* All rows, though the batch may have asked for few. */
static void read_rows(struct stock_batch *batch, int64_t now_us)
{
    hf_stock_batch_unread(batch);
    batch->now_us = now_us;
    for (int i = 0; i < SKUS; i++)
        if (products[i].is_there)
            hf_stock_batch_read_cell(
                batch,
                &(struct stock_cell){.sku = hf_bytes_text(products[i].sku),
                                     .available = products[i].available,
                                     .reserved = products[i].reserved,
                                     .sold = products[i].sold,
                                     .version = products[i].version});
    for (int i = 0; i < IDS; i++) {
        const struct reservation *r = &reservations[i];
        struct hf_bytes id = hf_bytes_text(r->id);
        if (r->state == HF_STOCK_NONE)
            continue;
        hf_stock_batch_read_booking(
            batch, &(struct stock_booking){.id = id,
                                           .state = r->state,
                                           .expires_us = r->expires_us});
        for (int j = 0; j < r->count; j++)
            hf_stock_batch_read_line(
                batch, id, hf_bytes_text(products[r->products[j]].sku),
                r->quantities[j]);
    }
}

static int number_of(struct hf_bytes name)
{
    return (int)strtol(name.data + 1, NULL, 10);
}

static void write_rows(const struct stock_batch *batch)
{
    for (uint32_t i = 0; i < batch->cell_count; i++) {
        const struct stock_cell *cell = &batch->cells[i];
        struct product *p = &products[number_of(cell->sku)];
        if (!cell->changed)
            continue;
        CHECK(!cell->is_there || cell->version > cell->read_version);
        p->is_there = cell->is_there;
        p->available = cell->available;
        p->reserved = cell->reserved;
        p->sold = cell->sold;
        p->version = cell->version;
    }
    for (uint32_t i = 0; i < batch->booking_count; i++) {
        const struct stock_booking *booking = &batch->bookings[i];
        struct reservation *r = &reservations[number_of(booking->id)];
        if (!booking->changed)
            continue;
        r->state = booking->state;
        r->expires_us = booking->expires_us;
        r->count = (int)booking->lines.count;
        for (int j = 0; j < r->count; j++) {
            const struct stock_line *line =
                &batch->lines[booking->lines.first + (uint32_t)j];
            r->products[j] = number_of(batch->cells[line->cell].sku);
            r->quantities[j] = line->quantity;
        }
    }
}

/* ---- Requests at random. ---- */

static struct hf_stock_item items[MANY][ITEMS];

static void make_request(struct hf_random *random, int at,
                         struct hf_stock_request *request)
{
    static const enum hf_stock_call calls[] = {
        HF_STOCK_SET,     HF_STOCK_ADD,     HF_STOCK_REMOVE,  HF_STOCK_GET,
        HF_STOCK_RESERVE, HF_STOCK_RESERVE, HF_STOCK_RESERVE, HF_STOCK_CONFIRM,
        HF_STOCK_CANCEL,  HF_STOCK_EXTEND,  HF_STOCK_LOOK};
    enum hf_stock_call call =
        calls[hf_random_below(random, sizeof calls / sizeof calls[0])];

    *request = (struct hf_stock_request){
        .call = call,
        .name = call <= HF_STOCK_GET
                    ? products[hf_random_below(random, SKUS)].sku
                    : reservations[hf_random_below(random, IDS)].id,
        .total = hf_random_below(random, 30),
        .units = (int64_t)hf_random_below(random, 20) - 10,
        .ttl_ns = (1 + hf_random_below(random, 50)) * MS,
        .items = items[at],
    };
    if (call != HF_STOCK_RESERVE)
        return;
    request->count = 1 + hf_random_below(random, ITEMS);
    for (size_t i = 0; i < request->count; i++)
        items[at][i] =
            (struct hf_stock_item){products[hf_random_below(random, SKUS)].sku,
                                   1 + hf_random_below(random, 6)};
}

static void decide(struct stock_batch *batch, int64_t now_us)
{
    read_rows(batch, now_us);
    hf_stock_batch_decide(batch);
    CHECK(!batch->no_memory);
    CHECK(!batch->stale);
}

/* What is overdue ends first, as the flow does it. */
static void expire(struct stock_batch *batch, int64_t now_us)
{
    hf_stock_batch_clear(batch);
    for (int i = 0; i < IDS; i++)
        hf_stock_batch_add_own(batch, STOCK_EXPIRE,
                               hf_bytes_text(reservations[i].id));
    decide(batch, now_us);
    write_rows(batch);
}

static void nothing(struct hf_stock_request *request)
{
    (void)request;
}

static void compare(const struct stock_batch *batch,
                    const struct hf_stock_request *requests, int count)
{
    for (int i = 0; i < count; i++) {
        const struct stock_task *task = &batch->tasks[i];
        const struct hf_stock_request *request = &requests[i];
        CHECK_EQ(task->status, request->status);
        if (request->call == HF_STOCK_GET && request->status == HF_OK) {
            CHECK_EQ(task->product.total, request->product.total);
            CHECK_EQ(task->product.available, request->product.available);
            CHECK_EQ(task->product.reserved, request->product.reserved);
            CHECK_EQ(task->product.sold, request->product.sold);
        }
        if (request->call < HF_STOCK_RESERVE)
            continue;
        CHECK_EQ(task->answer.state, request->answer.state);
        CHECK_EQ(task->answer.left_ns, request->answer.left_ns);
        CHECK(task->answer.sku == request->answer.sku);
        CHECK_EQ(task->answer.requested, request->answer.requested);
        CHECK_EQ(task->answer.available, request->answer.available);
    }
}

TEST(a_batch_decides_as_the_engine_does)
{
    struct test_clock clock = {.now_ns = MS};
    struct hf_stock_request requests[MANY];
    struct hf_random random;
    struct stock_batch batch;
    struct hf_stock *engine;
    int of[HF_STATUS_COUNT] = {0};

    hf_random_init(&random, test_seed());
    hf_stock_batch_init(&batch, 1);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 50 == 0) { /* most of the ids have been used */
            if (round > 0)
                hf_stock_close(engine);
            make_rows();
            CHECK_EQ(hf_stock_open(
                         &engine,
                         &(struct hf_stock_opts){.clock = test_clock(&clock)}),
                     HF_OK);
        }
        test_clock_advance(&clock, hf_random_below(&random, 10) * MS);
        int64_t now_us = (int64_t)(clock.now_ns / 1000);
        int count = 1 + (int)hf_random_below(&random, MANY);
        expire(&batch, now_us);
        hf_stock_batch_clear(&batch);
        for (int i = 0; i < count; i++) {
            make_request(&random, i, &requests[i]);
            requests[i].done = nothing;
            hf_stock_batch_add(&batch, &requests[i]);
        }
        CHECK_EQ(hf_stock_submit(engine, requests, (size_t)count), HF_OK);
        decide(&batch, now_us);
        compare(&batch, requests, count);
        decide(&batch, now_us); /* again, as after a conflict */
        compare(&batch, requests, count);
        write_rows(&batch);
        for (int i = 0; i < count; i++)
            of[requests[i].status]++;
    }
    CHECK(of[HF_OK] > 0 && of[HF_EMPTY] > 0 && of[HF_NOTFOUND] > 0);
    CHECK(of[HF_EXISTS] > 0 && of[HF_CLOSED] > 0 && of[HF_TIMEOUT] > 0);
    hf_stock_close(engine);
    hf_stock_batch_destroy(&batch);
}

/* ---- What the engine never meets. ---- */

TEST(rows_that_do_not_belong_together_are_read_again)
{
    struct hf_stock_request request = {.call = HF_STOCK_CONFIRM, .name = "r1"};
    struct stock_batch batch;

    make_rows();
    reservations[1] = (struct reservation){.id = "r1",
                                           .state = HF_STOCK_PENDING,
                                           .expires_us = 10,
                                           .count = 1,
                                           .quantities = {2}};
    hf_stock_batch_init(&batch, 1);
    hf_stock_batch_add(&batch, &request);
    read_rows(&batch, 1); /* its product was locked before it was made */
    hf_stock_batch_decide(&batch);
    CHECK(batch.stale);
    products[0] =
        (struct product){.sku = "p0", .is_there = true, .reserved = 1};
    read_rows(&batch, 1); /* without a lock it may be of another moment */
    hf_stock_batch_decide(&batch);
    CHECK(batch.stale);
    read_rows(&batch, 1);
    batch.is_locked = true;
    hf_stock_batch_decide(&batch);
    CHECK(!batch.stale);
    CHECK_EQ(batch.tasks[0].status, HF_CORRUPT);
    products[0].reserved = 2;
    decide(&batch, 1);
    CHECK_EQ(batch.tasks[0].status, HF_OK);
    hf_stock_batch_destroy(&batch);
}

TEST(without_memory_a_batch_says_so)
{
    static char ids[200][8], skus[200][8];
    static struct hf_stock_item wanted[200];
    struct hf_stock_request request = {.call = HF_STOCK_RESERVE, .count = 1};
    struct stock_batch batch;
    bool failed = true;

    make_rows();
    for (int i = 0; i < 200; i++) {
        snprintf(ids[i], sizeof ids[i], "r%d", i);
        snprintf(skus[i], sizeof skus[i], "p%d", i);
        wanted[i] = (struct hf_stock_item){skus[i], 1};
    }
    for (uint64_t allowed = 0; failed; allowed++) {
        CHECK(allowed < 100);
        hf_stock_batch_init(&batch, 1);
        hf_memory_fail_after(allowed);
        for (int i = 0; i < 200; i++) {
            request.name = ids[i];
            request.items = &wanted[i];
            hf_stock_batch_add(&batch, &request);
        }
        for (int i = 0; i < 200; i++)
            hf_stock_batch_read_cell(
                &batch, &(struct stock_cell){.sku = hf_bytes_text(skus[i]),
                                             .available = 5});
        if (!batch.no_memory)
            hf_stock_batch_decide(&batch);
        hf_memory_fail_never();
        failed = batch.no_memory;
        hf_stock_batch_destroy(&batch);
    }
}

static int answers;

static void count_answer(struct hf_stock_request *request)
{
    (void)request;
    answers++;
}

/* There is no database: without memory it is not even looked for. */
TEST(without_memory_each_request_is_told_so)
{
    struct hf_stock_request requests[] = {
        {.call = HF_STOCK_GET, .name = "a", .done = count_answer},
        {.call = HF_STOCK_GET, .name = "\xff", .done = count_answer},
    };
    struct hf_stock_request *list[] = {&requests[0], &requests[1]};
    struct stock_common common = {.timeout_ms = 100};
    bool failed = true;

    for (uint64_t allowed = 0; failed; allowed++) {
        struct stock_flow flow = {
            .conn = {.link = {.conninfo = "host=/nowhere", .timeout_ms = 100},
                     .schema = "none"}};
        CHECK(allowed < 100);
        hf_stock_flow_init(&flow, &common, 1);
        answers = 0;
        hf_memory_fail_once(allowed);
        hf_stock_flow_read(&flow, list, 2);
        hf_memory_fail_never();
        failed = requests[0].status == HF_NOMEM;
        CHECK_EQ(answers, 2);
        CHECK_EQ(requests[0].status, failed ? HF_NOMEM : HF_IO);
        CHECK_EQ(requests[1].status, failed ? HF_NOMEM : HF_INVALID);
        hf_stock_flow_destroy(&flow);
    }
}
