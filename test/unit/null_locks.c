/* Tests that NULL is refused, or does nothing, in every call of the lock
 * manager and of stock. Each pointer in turn is NULL and all else is good. */
#include "holdfast/locks.h"
#include "holdfast/stock_postgres.h"
#include "support/test.h"

TEST_ONE_THREAD;

static void visit(void *context, const struct hf_locks_holder *holder)
{
    (void)context;
    (void)holder;
}

TEST(locks)
{
    const struct hf_locks_item items[] = {{.name = "a"}, {.name = NULL}};
    struct hf_locks_request request = {.mode = HF_LOCKS_EXCLUSIVE};
    struct hf_locks_answer answer;
    struct hf_locks_stats stats;
    struct hf_locks *locks;
    uint64_t session;
    char text[8] = "text";

    CHECK_EQ(hf_locks_open(NULL, &(struct hf_locks_opts){0}), HF_INVALID);
    CHECK_EQ(hf_locks_open(&locks, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire(NULL, "a", &request, HF_NOW, &answer),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire(locks, NULL, &request, HF_NOW, &answer),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire_set(NULL, items, 1, &request, HF_NOW, &answer),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire_set(locks, NULL, 1, &request, HF_NOW, &answer),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire_set(locks, items, 2, &request, HF_NOW, &answer),
             HF_INVALID);
    hf_locks_answer_free(NULL);
    CHECK_EQ(hf_locks_release(NULL, "a", 0), HF_INVALID);
    CHECK_EQ(hf_locks_release(locks, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_locks_release_set(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_locks_downgrade(NULL, "a", 0), HF_INVALID);
    CHECK_EQ(hf_locks_downgrade(locks, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_locks_renew(NULL, "a", 0, 1), HF_INVALID);
    CHECK_EQ(hf_locks_renew(locks, NULL, 0, 1), HF_INVALID);
    CHECK_EQ(hf_locks_renew_set(NULL, 1, 1), HF_INVALID);
    CHECK(!hf_locks_holds(NULL, "a", 0));
    CHECK(!hf_locks_holds(locks, NULL, 0));
    CHECK_EQ(hf_locks_session_open(NULL, "note", &session), HF_INVALID);
    CHECK_EQ(hf_locks_session_open(locks, "note", NULL), HF_INVALID);
    CHECK_EQ(hf_locks_session_close(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_locks_holders(NULL, "a", visit, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_holders(locks, NULL, visit, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_holders(locks, "a", NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_graph(NULL, HF_LOCKS_DOT, text, sizeof text), 0);
    CHECK_TEXT(text, strlen(text), "");
    CHECK(hf_locks_graph(locks, HF_LOCKS_DOT, NULL, 0) > 0);
    CHECK_EQ(hf_locks_stats(NULL, "a", &stats), HF_INVALID);
    CHECK_EQ(hf_locks_stats(locks, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_stats(locks, NULL, &stats), HF_OK);
    hf_locks_shutdown(NULL);
    hf_locks_close(NULL);
    hf_locks_close(locks);
}

static void note_request(struct hf_stock_request *request)
{
    (void)request;
}

TEST(stock)
{
    struct hf_stock_request request = {.call = HF_STOCK_GET};
    const struct hf_stock_item items[] = {{"a", 1}, {NULL, 1}};
    struct hf_stock_answer answer;
    struct hf_stock_product product;
    struct hf_stock *stock;

    CHECK_EQ(hf_stock_open(NULL, &(struct hf_stock_opts){0}), HF_INVALID);
    CHECK_EQ(hf_stock_open(&stock, NULL), HF_OK);
    CHECK_EQ(hf_stock_set(NULL, "a", 1), HF_INVALID);
    CHECK_EQ(hf_stock_set(stock, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_stock_set(stock, "a", 1), HF_OK);
    CHECK_EQ(hf_stock_add(NULL, "a", 1), HF_INVALID);
    CHECK_EQ(hf_stock_add(stock, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_stock_remove(NULL, "a"), HF_INVALID);
    CHECK_EQ(hf_stock_remove(stock, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_get(NULL, "a", &product), HF_INVALID);
    CHECK_EQ(hf_stock_get(stock, NULL, &product), HF_INVALID);
    CHECK_EQ(hf_stock_get(stock, "a", NULL), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(NULL, "r", items, 1, 0, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, NULL, items, 1, 0, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "r", NULL, 1, 0, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "r", items, 2, 0, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "r", items, 1, 0, NULL), HF_OK);
    CHECK_EQ(hf_stock_extend(NULL, "r", 1, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, NULL, 1, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, "r", 60000000000, NULL), HF_OK);
    CHECK_EQ(hf_stock_look(NULL, "r", &answer), HF_INVALID);
    CHECK_EQ(hf_stock_look(stock, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_look(stock, "r", NULL), HF_INVALID);
    CHECK_EQ(hf_stock_confirm(NULL, "r", &answer), HF_INVALID);
    CHECK_EQ(hf_stock_confirm(stock, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_confirm(stock, "r", NULL), HF_OK);
    CHECK_EQ(hf_stock_cancel(NULL, "r", &answer), HF_INVALID);
    CHECK_EQ(hf_stock_cancel(stock, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_stock_cancel(stock, "r", NULL), HF_CLOSED);
    CHECK_EQ(hf_stock_submit(NULL, &request, 1), HF_INVALID);
    CHECK_EQ(hf_stock_submit(stock, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_stock_submit(stock, &request, 1), HF_INVALID); /* no done */
    request.done = note_request;
    CHECK_EQ(hf_stock_submit(stock, &request, 1), HF_OK);
    CHECK_EQ(request.status, HF_INVALID); /* no name */
    hf_stock_close(NULL);
    hf_stock_close(stock);
}

TEST(stock_in_postgres)
{
    struct hf_stock_postgres_stats stats = {.requests = 1};
    struct hf_stock *stock;
    uint32_t count;

    CHECK_EQ(hf_stock_postgres_open(
                 NULL,
                 &(struct hf_stock_postgres_opts){.conninfo = "host=/nowhere"}),
             HF_INVALID);
    CHECK_EQ(hf_stock_postgres_open(&stock, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_postgres_sweep(NULL, 0, &count), HF_INVALID);
    CHECK_EQ(hf_stock_postgres_sweep(NULL, 0, NULL), HF_INVALID);
    hf_stock_postgres_stats(NULL, &stats);
    CHECK_EQ(stats.requests, 0);
    hf_stock_postgres_stats(NULL, NULL);
}
