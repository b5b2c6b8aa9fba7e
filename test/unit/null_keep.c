/* Tests that NULL is refused, or does nothing, in every call of the headers
 * for what is kept and lent.
 *
 * Each pointer in turn is NULL and all else is good: a call that tells a status
 * says HF_INVALID, unless the header says that it may be NULL. What users pass
 * through (context, arg) is not looked at. test/system/null.sh knows which
 * calls there are. */
#include "holdfast/cache.h"
#include "holdfast/dedup.h"
#include "holdfast/lender.h"
#include "holdfast/lender_postgres.h"
#include "holdfast/pool.h"
#include "holdfast/store.h"
#include "holdfast/tiered.h"
#include "holdfast/writebehind.h"
#include "support/test.h"

static char item[8]; /* something to point to */
static void *out;
static char buffer[4096];

static int create(void *context, void **resource)
{
    *resource = context;
    return 0;
}

static void destroy(void *context, void *resource)
{
    (void)context;
    (void)resource;
}

static void dead(void *context, enum hf_status why,
                 const struct hf_store_change *group, size_t count)
{
    (void)context;
    (void)why;
    (void)group;
    (void)count;
}

static void cache_read(void *a0, void *a1)
{
    (void)a0;
    (void)a1;
}

static bool cache_test(void *a0, const void *a1, size_t a2, void *a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    return false;
}

static bool cache_visit(void *a0, const void *a1, size_t a2,
                        const struct hf_cache_found *a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    return false;
}

static enum hf_status cache_load(void *a0, const void *a1, size_t a2,
                                 struct hf_cache_loaded *a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    return HF_OK;
}

static void lender_visit(void *a0, const struct hf_lender_note *a1)
{
    (void)a0;
    (void)a1;
}

static void tiered_found(void *a0, const void *a1, size_t a2)
{
    (void)a0;
    (void)a1;
    (void)a2;
}

TEST(cache)
{
    struct hf_cache *cache;
    struct hf_cache_item items[1] = {{.key = "k", .key_len = 1}};
    CHECK_EQ(hf_cache_open(&cache, NULL), HF_OK);
    CHECK_EQ(hf_cache_enter(cache), HF_OK);

    CHECK_EQ(hf_cache_open(NULL, &(struct hf_cache_opts){0}), HF_INVALID);
    hf_cache_shutdown(NULL);
    hf_cache_close(NULL);
    CHECK_EQ(hf_cache_enter(NULL), HF_INVALID);
    hf_cache_leave(NULL);
    CHECK_EQ(hf_cache_get(NULL, "k", 1, &out), HF_INVALID);
    CHECK_EQ(hf_cache_get(cache, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_cache_look(NULL, "k", 1, &(struct hf_cache_found){0}),
             HF_INVALID);
    CHECK_EQ(hf_cache_look(cache, NULL, 1, &(struct hf_cache_found){0}),
             HF_INVALID);
    CHECK_EQ(hf_cache_read(NULL, "k", 1, cache_read, &item), HF_INVALID);
    CHECK_EQ(hf_cache_read(cache, NULL, 1, cache_read, &item), HF_INVALID);
    CHECK_EQ(hf_cache_read(cache, "k", 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_cache_put(NULL, "k", 1, &item, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put(cache, NULL, 1, &item, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put(cache, "k", 1, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_if_absent(NULL, "k", 1, &item, 1, &out), HF_INVALID);
    CHECK_EQ(hf_cache_put_if_absent(cache, NULL, 1, &item, 1, &out),
             HF_INVALID);
    CHECK_EQ(hf_cache_put_if_absent(cache, "k", 1, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_cache_put_if(NULL, "k", 1, &item, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_if(cache, NULL, 1, &item, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_if(cache, "k", 1, NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_stamp(NULL, "k", 1), 0);
    CHECK_EQ(hf_cache_stamp(cache, NULL, 1), 0);
    CHECK_EQ(hf_cache_put_loaded(NULL, "k", 1, &item, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_loaded(cache, NULL, 1, &item, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_loaded(cache, "k", 1, NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_all(NULL, items, 1, &(size_t){0}), HF_INVALID);
    CHECK_EQ(hf_cache_put_all(cache, NULL, 1, &(size_t){0}), HF_INVALID);
    CHECK_EQ(hf_cache_put_all(cache, items, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_remove(NULL, "k", 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove(cache, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_version(NULL, "k", 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_version(cache, NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_if(NULL, cache_test, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_cache_remove_if(cache, NULL, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_cache_clear(NULL), HF_INVALID);
    CHECK_EQ(hf_cache_visit(NULL, cache_visit, &item), HF_INVALID);
    CHECK_EQ(hf_cache_visit(cache, NULL, &item), HF_INVALID);
    CHECK_EQ(
        hf_cache_get_or_load(NULL, "k", 1, cache_load, &item, HF_NOW, &out),
        HF_INVALID);
    CHECK_EQ(
        hf_cache_get_or_load(cache, NULL, 1, cache_load, &item, HF_NOW, &out),
        HF_INVALID);
    CHECK_EQ(hf_cache_get_or_load(cache, "k", 1, NULL, &item, HF_NOW, &out),
             HF_INVALID);
    CHECK_EQ(hf_cache_sweep(NULL, 1), 0);
    CHECK_EQ(hf_cache_count(NULL), 0);
    hf_cache_stats(NULL, &(struct hf_cache_stats){0});
    hf_cache_stats(cache, NULL);
    CHECK(hf_cache_get(cache, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_cache_look(cache, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_cache_put_if_absent(cache, "k", 1, &item, 1, NULL) != HF_INVALID);
    CHECK(hf_cache_remove_if(cache, cache_test, &item, NULL) != HF_INVALID);
    CHECK(hf_cache_get_or_load(cache, "k", 1, cache_load, &item, HF_NOW,
                               NULL) != HF_INVALID);
    hf_cache_leave(cache);
    hf_cache_close(cache);
}

TEST(dedup)
{
    struct hf_dedup *dedup;
    CHECK_EQ(hf_dedup_open(&dedup, NULL), HF_OK);

    CHECK_EQ(hf_dedup_open(NULL, &(struct hf_dedup_opts){0}), HF_INVALID);
    hf_dedup_close(NULL);
    CHECK_EQ(hf_dedup_add(NULL, "k", 1, 1, &item), HF_INVALID);
    CHECK_EQ(hf_dedup_add(dedup, NULL, 1, 1, &item), HF_INVALID);
    CHECK_EQ(hf_dedup_find(NULL, "k", 1, 1, &item), HF_INVALID);
    CHECK_EQ(hf_dedup_find(dedup, NULL, 1, 1, &item), HF_INVALID);
    CHECK_EQ(hf_dedup_forget(NULL, "k", 1, 1), HF_INVALID);
    CHECK_EQ(hf_dedup_forget(dedup, NULL, 1, 1), HF_INVALID);
    hf_dedup_stats(NULL, &(struct hf_dedup_stats){0});
    hf_dedup_stats(dedup, NULL);
    CHECK(hf_dedup_add(dedup, "k", 1, 1, NULL) != HF_INVALID);
    CHECK(hf_dedup_find(dedup, "k", 1, 1, NULL) != HF_INVALID);
    hf_dedup_close(dedup);
}

TEST(lender)
{
    struct hf_lender *lender, *new_lender;
    struct hf_lender_opts opts = {
        .create = create, .destroy = destroy, .direct = true};
    struct hf_loan loan, loan2;
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_OK);
    CHECK_EQ(hf_lender_borrow(lender, NULL, HF_NOW, &loan), HF_OK);

    CHECK_EQ(hf_lender_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_lender_open(&new_lender, NULL), HF_INVALID);
    hf_lender_shutdown(NULL);
    CHECK_EQ(hf_lender_await(NULL, HF_NOW), HF_INVALID);
    hf_lender_close(NULL);
    CHECK_EQ(hf_lender_borrow(NULL, "n", HF_NOW, &loan2), HF_INVALID);
    CHECK_EQ(hf_lender_borrow(lender, "n", HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_lender_return(NULL, &loan), HF_INVALID);
    CHECK_EQ(hf_lender_return(lender, NULL), HF_INVALID);
    CHECK_EQ(hf_lender_discard(NULL, &loan), HF_INVALID);
    CHECK_EQ(hf_lender_discard(lender, NULL), HF_INVALID);
    CHECK(hf_lender_tend(NULL) == UINT64_MAX);
    CHECK_EQ(hf_lender_resize(NULL, 1, 2), HF_INVALID);
    hf_lender_renew(NULL);
    CHECK_EQ(hf_lender_out(NULL, lender_visit, &item), 0);
    CHECK_EQ(hf_lender_out(lender, NULL, &item), 1);
    hf_lender_stats(NULL, &(struct hf_lender_stats){0});
    hf_lender_stats(lender, NULL);
    CHECK_EQ(hf_lender_postgres(NULL, "n"), HF_INVALID);
    CHECK_EQ(hf_lender_postgres(&(struct hf_lender_opts){.max = 1}, NULL),
             HF_INVALID);
    (void)hf_lender_return(lender, &loan);
    hf_lender_close(lender);
}

TEST(store)
{
    struct hf_store store;
    struct hf_store new_store;
    struct hf_store_sqlite_opts in = {.path = ":memory:"};
    CHECK_EQ(hf_store_sqlite_open(&store, &in), HF_OK);

    hf_store_stats(NULL, &(struct hf_store_stats){0});
    hf_store_stats(&store, NULL);
    hf_store_close(NULL);
    CHECK_EQ(hf_store_sqlite_open(NULL, &in), HF_INVALID);
    CHECK_EQ(hf_store_sqlite_open(&new_store, NULL), HF_INVALID);
    CHECK_EQ(hf_store_postgres_open(NULL, &(struct hf_store_postgres_opts){0}),
             HF_INVALID);
    CHECK_EQ(hf_store_postgres_open(&new_store, NULL), HF_INVALID);
    hf_store_close(&store);
}

TEST(tiered)
{
    struct hf_store store;
    struct hf_store_sqlite_opts in = {.path = ":memory:"};
    CHECK_EQ(hf_store_sqlite_open(&store, &in), HF_OK);
    struct hf_tiered *tiered, *new_tiered;
    struct hf_tiered_opts opts = {.store = &store};
    struct hf_store new_store;
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    struct hf_tiered_key keys[1] = {{.key = "k", .key_len = 1}};
    CHECK_EQ(hf_tiered_open(&tiered, &opts), HF_OK);

    CHECK_EQ(hf_tiered_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_tiered_open(&new_tiered, NULL), HF_INVALID);
    hf_tiered_shutdown(NULL);
    hf_tiered_close(NULL);
    CHECK_EQ(hf_tiered_read(NULL, "k", 1, HF_NOW, tiered_found, &item),
             HF_INVALID);
    CHECK_EQ(hf_tiered_read(tiered, NULL, 1, HF_NOW, tiered_found, &item),
             HF_INVALID);
    CHECK_EQ(hf_tiered_read(tiered, "k", 1, HF_NOW, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_tiered_get(NULL, "k", 1, HF_NOW, buffer, sizeof buffer,
                           &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_tiered_get(tiered, NULL, 1, HF_NOW, buffer, sizeof buffer,
                           &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_tiered_get(tiered, "k", 1, HF_NOW, NULL, sizeof buffer,
                           &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_tiered_get(tiered, "k", 1, HF_NOW, buffer, sizeof buffer, NULL),
             HF_INVALID);
    CHECK_EQ(hf_tiered_put(NULL, "k", 1, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_put(tiered, NULL, 1, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_put(tiered, "k", 1, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_delete(NULL, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_delete(tiered, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_apply(NULL, &change, 1, HF_NOW, &(bool){0}), HF_INVALID);
    CHECK_EQ(hf_tiered_apply(tiered, NULL, 1, HF_NOW, &(bool){0}), HF_INVALID);
    CHECK_EQ(hf_tiered_invalidate(NULL, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_invalidate(tiered, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(
        hf_tiered_warm(NULL, keys, 1, hf_pool_default(), HF_NOW, &(size_t){0}),
        HF_INVALID);
    CHECK_EQ(hf_tiered_warm(tiered, NULL, 1, hf_pool_default(), HF_NOW,
                            &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_tiered_as_store(NULL, &new_store), HF_INVALID);
    CHECK_EQ(hf_tiered_as_store(tiered, NULL), HF_INVALID);
    hf_tiered_stats(NULL, &(struct hf_tiered_stats){0});
    hf_tiered_stats(tiered, NULL);
    CHECK(hf_tiered_apply(tiered, &change, 1, HF_NOW, NULL) != HF_INVALID);
    CHECK(hf_tiered_warm(tiered, keys, 1, NULL, HF_NOW, &(size_t){0}) !=
          HF_INVALID);
    CHECK(hf_tiered_warm(tiered, keys, 1, hf_pool_default(), HF_NOW, NULL) !=
          HF_INVALID);
    hf_tiered_close(tiered);
    hf_store_close(&store);
}

TEST(writebehind)
{
    struct hf_store store;
    struct hf_store_sqlite_opts in = {.path = ":memory:"};
    CHECK_EQ(hf_store_sqlite_open(&store, &in), HF_OK);
    struct hf_writebehind *writebehind, *new_writebehind;
    struct hf_writebehind_opts opts = {.store = &store, .dead = dead};
    struct hf_store new_store;
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "v", .value_len = 1};
    CHECK_EQ(hf_writebehind_open(&writebehind, &opts), HF_OK);

    CHECK_EQ(hf_writebehind_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_writebehind_open(&new_writebehind, NULL), HF_INVALID);
    hf_writebehind_shutdown(NULL);
    CHECK_EQ(hf_writebehind_close(NULL, HF_NOW), HF_OK);
    CHECK_EQ(hf_writebehind_put(NULL, "k", 1, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(writebehind, NULL, 1, "k", 1, HF_NOW),
             HF_INVALID);
    CHECK_EQ(hf_writebehind_put(writebehind, "k", 1, NULL, 1, HF_NOW),
             HF_INVALID);
    CHECK_EQ(hf_writebehind_delete(NULL, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_delete(writebehind, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(NULL, &change, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(writebehind, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_through(NULL, &change, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_through(writebehind, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(NULL, "k", 1, tiered_found, &item), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(writebehind, NULL, 1, tiered_found, &item),
             HF_INVALID);
    CHECK_EQ(hf_writebehind_get(writebehind, "k", 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_writebehind_flush(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_as_store(NULL, &new_store), HF_INVALID);
    CHECK_EQ(hf_writebehind_as_store(writebehind, NULL), HF_INVALID);
    hf_writebehind_stats(NULL, &(struct hf_writebehind_stats){0});
    hf_writebehind_stats(writebehind, NULL);
    CHECK_EQ(hf_writebehind_close(writebehind, HF_FOREVER), HF_OK);
    hf_store_close(&store);
}
