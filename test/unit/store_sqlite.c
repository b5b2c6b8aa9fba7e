/* Tests of the store in a SQLite file. */
#include <sqlite3.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/inspect.h"
#include "holdfast/store.h"
#include "support/storing.h"
#include "support/test.h"
#include "support/threads.h"

static char path[512];

static struct hf_store begin(struct hf_store_sqlite_opts opts)
{
    struct hf_store store;

    memset(&told, 0, sizeof told);
    if (opts.path == NULL) {
        snprintf(path, sizeof path, "%s/db", test_folder());
        opts.path = path;
    }
    opts.failed = tell;
    CHECK_EQ(hf_store_sqlite_open(&store, &opts), HF_OK);
    return store;
}

TEST(puts_and_deletes_are_applied_and_survive)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){0});
    struct hf_store_change first[] = {put("a", "1"), put("b", ""), gone("c")};
    struct hf_store_change second[] = {put("a", "2"), gone("b")};
    struct hf_store_stats stats;

    CHECK_EQ(store.apply(store.context, first, 3), HF_OK);
    check_value(&store, "a", "1");
    check_value(&store, "b", "");
    check_value(&store, "c", NULL);
    CHECK_EQ(store.apply(store.context, second, 2), HF_OK);
    hf_store_stats(&store, &stats);
    CHECK_EQ(stats.applies, 2);
    CHECK_EQ(stats.changes, 5);
    CHECK_EQ(stats.reads, 3);
    CHECK_EQ(stats.found, 2);
    CHECK_EQ(stats.failures, 0);
    hf_store_close(&store);
    CHECK(store.apply == NULL);
    store = begin((struct hf_store_sqlite_opts){.path = path});
    check_value(&store, "a", "2");
    check_value(&store, "b", NULL);
    hf_store_close(&store);
}

TEST(keys_and_values_are_any_bytes)
{
    struct hf_store store =
        begin((struct hf_store_sqlite_opts){.path = ":memory:"});
    struct hf_store_change one = {
        .key = "\0'\"", .key_len = 3, .value = "x\0y", .value_len = 3};
    char text[TEXT_BYTES];

    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    CHECK_EQ(store.read(store.context, "\0'\"", 3, note, text), HF_OK);
    CHECK_EQ(memcmp(text, "x\0y", 4), 0);
    CHECK_EQ(store.read(store.context, "\0'", 2, note, text), HF_NOTFOUND);
    hf_store_close(&store);
}

TEST(a_batch_is_all_or_nothing)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){.readers = 1});
    struct hf_store_change batch[] = {put("a", "1"), put("bad", "x"),
                                      put("c", "1")};
    sqlite3 *other;

    CHECK_EQ(sqlite3_open(path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other,
                          "CREATE TRIGGER no BEFORE INSERT ON holdfast "
                          "WHEN NEW.key = x'626164' "
                          "BEGIN SELECT RAISE(ABORT, 'no bad ones'); END",
                          NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(store.apply(store.context, batch, 3), HF_FAILED);
    CHECK(!hf_store_may_retry(HF_FAILED));
    CHECK_EQ(told.count, 1);
    CHECK_TEXT(told.text, strlen(told.text), "no bad ones");
    check_value(&store, "a", NULL);
    batch[1] = gone("bad");
    CHECK_EQ(store.apply(store.context, batch, 3), HF_OK);
    check_value(&store, "c", "1");
    sqlite3_close(other);
    hf_store_close(&store);
}

TEST(another_process_that_writes_is_a_reason_to_try_again)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){.busy_ms = 1});
    struct hf_store_change one = put("a", "1");
    sqlite3 *other;

    CHECK_EQ(sqlite3_open(path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), 0);
    CHECK_EQ(store.apply(store.context, &one, 1), HF_TIMEOUT);
    CHECK(hf_store_may_retry(HF_TIMEOUT));
    check_value(&store, "a", NULL); /* readers are not stopped */
    CHECK_EQ(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    sqlite3_close(other);
    hf_store_close(&store);
}

TEST(a_table_that_is_gone_is_a_reason_to_try_again)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){0});
    struct hf_store_change one = put("a", "1");
    char text[TEXT_BYTES];
    sqlite3 *other;

    CHECK_EQ(sqlite3_open(path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "ALTER TABLE holdfast RENAME TO away", NULL,
                          NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(store.apply(store.context, &one, 1), HF_IO);
    CHECK_EQ(store.read(store.context, "a", 1, note, text), HF_IO);
    CHECK_EQ(sqlite3_exec(other, "ALTER TABLE away RENAME TO holdfast", NULL,
                          NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    check_value(&store, "a", "1");
    sqlite3_close(other);
    hf_store_close(&store);
}

TEST(what_is_no_store_is_refused)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){0});
    struct hf_store_sqlite_opts opts = {.path = path};
    struct hf_store unused;
    FILE *file;

    hf_store_close(&store);
    CHECK_EQ(hf_store_sqlite_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_store_sqlite_open(&unused, NULL), HF_INVALID);
    opts.table = "a\"b";
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_INVALID);
    opts.table = "1a";
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_INVALID);
    opts.table = "";
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_INVALID);
    opts.table = NULL;
    opts.readers = 65;
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_INVALID);
    opts.readers = 0;
    opts.path = NULL;
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_INVALID);
    opts.path = "/nowhere/at/all";
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_IO);
    snprintf(path, sizeof path, "%s/text", test_folder());
    file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database\n", file);
    fclose(file);
    opts.path = path;
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_FAILED);
}

TEST(a_table_of_another_shape_is_refused)
{
    struct hf_store_sqlite_opts opts = {.path = path, .table = "mine"};
    struct hf_store unused;
    sqlite3 *other;

    snprintf(path, sizeof path, "%s/db", test_folder());
    CHECK_EQ(sqlite3_open(path, &other), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(other, "CREATE TABLE mine (id INT)", NULL, NULL, 0),
             SQLITE_OK);
    sqlite3_close(other);
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_FAILED);
    opts.table = "Other_2";
    CHECK_EQ(hf_store_sqlite_open(&unused, &opts), HF_OK);
    hf_store_close(&unused);
}

TEST(bad_input_changes_nothing)
{
    struct hf_store store = begin((struct hf_store_sqlite_opts){0});
    struct hf_store_change batch[] = {put("a", "1"), put("", "1")};
    struct hf_store_stats stats;

    CHECK_EQ(store.apply(store.context, batch, 2), HF_INVALID);
    batch[1] = (struct hf_store_change){.key = "b", .key_len = 1};
    batch[1].value_len = 1;
    CHECK_EQ(store.apply(store.context, batch, 2), HF_INVALID);
    CHECK_EQ(store.apply(store.context, NULL, 1), HF_INVALID);
    CHECK_EQ(store.apply(store.context, NULL, 0), HF_OK);
    CHECK_EQ(store.read(store.context, NULL, 1, note, NULL), HF_INVALID);
    CHECK_EQ(store.read(store.context, "a", 1, NULL, NULL), HF_INVALID);
    check_value(&store, "a", NULL);
    hf_store_stats(NULL, &stats);
    CHECK_EQ(stats.reads, 0);
    hf_store_stats(&store, NULL);
    hf_store_close(NULL);
    hf_store_close(&store);
    hf_store_close(&store);
    hf_store_stats(&store, &stats);
}

static void work(void *context, int index)
{
    struct hf_store *store = context;
    char key[16], value[16], text[TEXT_BYTES];

    snprintf(key, sizeof key, "k%d", index);
    for (int i = 0; i < 50; i++) {
        snprintf(value, sizeof value, "%d", i);
        struct hf_store_change one = put(key, value);
        if (store->apply(store->context, &one, 1) != HF_OK)
            abort();
        if (store->read(store->context, key, strlen(key), note, text) !=
                HF_OK ||
            strcmp(text, value) != 0)
            abort();
    }
}

TEST(threads_read_what_they_have_applied)
{
    struct hf_store store =
        begin((struct hf_store_sqlite_opts){.relaxed = true, .name = "table"});

    test_threads(8, work, &store);
    check_value(&store, "k7", "49");
    hf_store_close(&store);
}

TEST(it_is_listed)
{
    struct hf_store store =
        begin((struct hf_store_sqlite_opts){.name = "orders"});
    static char text[1 << 16];

    hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text);
    CHECK(strstr(text, "store") != NULL && strstr(text, "orders") != NULL);
    hf_store_close(&store);
}

TEST(without_memory_nothing_leaks)
{
    enum hf_status status = HF_NOMEM;

    snprintf(path, sizeof path, "%s/db", test_folder());
    for (uint64_t i = 0; status == HF_NOMEM && i < 100; i++) {
        struct hf_store_sqlite_opts opts = {.path = path};
        struct hf_store store;
        hf_memory_fail_after(i);
        status = hf_store_sqlite_open(&store, &opts);
        hf_memory_fail_never();
        if (status == HF_OK) {
            struct hf_store_change one = put("a", "1");
            char value[TEXT_BYTES];
            CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
            hf_memory_fail_after(0);
            CHECK_EQ(store.read(store.context, "a", 1, note, value), HF_NOMEM);
            hf_memory_fail_never();
            check_value(&store, "a", "1");
            hf_store_close(&store);
        }
    }
    CHECK_EQ(status, HF_OK);
}
