/* Tests of holdfast/dedup.h. */
#include "holdfast/dedup.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/inspect.h"
#include "keep/dedup_state.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define WINDOW 1000u

static struct hf_dedup *open_with(struct hf_dedup_opts opts)
{
    struct hf_dedup *dedup = NULL;

    opts.window_ns = opts.window_ns == 0 ? WINDOW : opts.window_ns;
    opts.seed[0] = opts.seed[0] == 0 ? 7 : opts.seed[0];
    CHECK_EQ(hf_dedup_open(&dedup, &opts), HF_OK);
    return dedup;
}

static enum hf_status add(struct hf_dedup *dedup, const char *item,
                          uint64_t now_ns)
{
    return hf_dedup_add(dedup, item, strlen(item), now_ns, NULL);
}

static enum hf_status add_number(struct hf_dedup *dedup, uint64_t number,
                                 uint64_t now_ns)
{
    return hf_dedup_add(dedup, &number, sizeof number, now_ns, NULL);
}

static struct hf_dedup_stats stats(const struct hf_dedup *dedup)
{
    struct hf_dedup_stats out;

    hf_dedup_stats(dedup, &out);
    return out;
}

TEST(an_item_is_new_once_per_window_to_the_nanosecond)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){0});

    CHECK_EQ(add(dedup, "a", 5), HF_OK);
    CHECK_EQ(add(dedup, "a", 5), HF_EXISTS);
    CHECK_EQ(add(dedup, "b", 6), HF_OK);
    CHECK_EQ(add(dedup, "a", 5 + WINDOW - 1), HF_EXISTS);
    CHECK_EQ(add(dedup, "a", 5 + WINDOW), HF_OK); /* and once */
    CHECK_EQ(add(dedup, "a", 5 + WINDOW), HF_EXISTS);
    CHECK_EQ(add(dedup, "a", 5 + 2 * WINDOW - 1), HF_EXISTS);
    CHECK_EQ(stats(dedup).added, 3);
    CHECK_EQ(stats(dedup).seen, 4);
    hf_dedup_close(dedup);
}

TEST(a_time_that_goes_back_lets_nothing_through)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){.shards = 1});

    CHECK_EQ(add(dedup, "a", 5000), HF_OK);
    CHECK_EQ(add(dedup, "a", 10), HF_EXISTS);
    CHECK_EQ(add(dedup, "b", 10), HF_OK); /* counts as 5000 */
    CHECK_EQ(add(dedup, "b", 4999 + WINDOW), HF_EXISTS);
    CHECK_EQ(add(dedup, "b", 5000 + WINDOW), HF_OK);
    hf_dedup_close(dedup);
}

TEST(later_callers_get_what_the_first_one_left)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.value_bytes = 5});
    char first[5] = "1234", later[5] = "zzzz";

    CHECK_EQ(hf_dedup_find(dedup, "a", 1, 1, later), HF_NOTFOUND);
    CHECK_EQ(hf_dedup_add(dedup, "a", 1, 1, first), HF_OK);
    CHECK_EQ(hf_dedup_add(dedup, "a", 1, 1, later), HF_EXISTS);
    CHECK_TEXT(later, 4, "1234");
    memcpy(later, "yyyy", 5);
    CHECK_EQ(hf_dedup_find(dedup, "a", 1, 1, later), HF_OK);
    CHECK_TEXT(later, 4, "1234");
    CHECK_EQ(hf_dedup_find(dedup, "a", 1, 1, NULL), HF_OK);
    CHECK_EQ(hf_dedup_add(dedup, "a", 1, 1 + WINDOW, NULL), HF_OK);
    CHECK_EQ(hf_dedup_find(dedup, "a", 1, 1 + WINDOW, later), HF_OK);
    CHECK_EQ(later[0], 0); /* nothing was left */
    hf_dedup_close(dedup);
}

TEST(what_is_forgotten_is_new_again)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){0});

    CHECK_EQ(hf_dedup_forget(dedup, "a", 1, 1), HF_NOTFOUND);
    CHECK_EQ(add(dedup, "a", 1), HF_OK);
    CHECK_EQ(hf_dedup_forget(dedup, "a", 1, 1), HF_OK);
    CHECK_EQ(hf_dedup_forget(dedup, "a", 1, 1), HF_NOTFOUND);
    CHECK_EQ(add(dedup, "a", 1), HF_OK);
    CHECK_EQ(stats(dedup).forgotten, 1);
    hf_dedup_close(dedup);
}

TEST(a_full_one_refuses_the_new_and_knows_the_seen)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.items_max = 100, .name = "few"});

    for (uint64_t i = 0; i < 100; i++)
        CHECK_EQ(add_number(dedup, i, 10 + i), HF_OK);
    CHECK_EQ(add_number(dedup, 100, 110), HF_FULL);
    CHECK_EQ(add_number(dedup, 99, 110), HF_EXISTS);
    CHECK_EQ(stats(dedup).refused, 1);
    CHECK_EQ(stats(dedup).items, 100);
    /* The first goes; one place is free. */
    CHECK_EQ(add_number(dedup, 100, 10 + WINDOW), HF_OK);
    CHECK_EQ(add_number(dedup, 101, 10 + WINDOW), HF_FULL);
    CHECK_EQ(add_number(dedup, 0, 10 + WINDOW), HF_FULL);
    char text[4096];
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "dedup") != NULL && strstr(text, "few") != NULL);
    hf_dedup_close(dedup);
}

TEST(memory_stays_flat_under_a_stream_of_new_items)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.items_max = 20000, .shards = 4});
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < 400000; i++) {
        CHECK_EQ(add_number(dedup, i, i / 10), HF_OK); /* 10,000 count */
        if (i == 100000)
            bytes = stats(dedup).memory_bytes;
    }
    CHECK(stats(dedup).items <= 20000);
    CHECK_EQ(stats(dedup).memory_bytes, bytes);
    hf_dedup_close(dedup);
}

/* Against the plainest model: an array of the times until which items count. */
static void compare(struct hf_dedup *dedup, unsigned items, unsigned calls)
{
    uint64_t *until = calloc(items, sizeof *until);
    struct hf_random random;
    uint64_t now_ns = 1;

    hf_random_init(&random, test_seed());
    for (unsigned i = 0; i < calls; i++) {
        uint64_t item = hf_random_below(&random, items);
        uint64_t value = until[item];
        bool counts = now_ns < until[item];
        switch (hf_random_below(&random, 8)) {
        case 0:
            CHECK_EQ(hf_dedup_forget(dedup, &item, 8, now_ns),
                     counts ? HF_OK : HF_NOTFOUND);
            until[item] = 0;
            break;
        case 1:
            CHECK_EQ(hf_dedup_find(dedup, &item, 8, now_ns, &value),
                     counts ? HF_OK : HF_NOTFOUND);
            CHECK_EQ(value, until[item]);
            break;
        default:
            value = now_ns + WINDOW;
            CHECK_EQ(hf_dedup_add(dedup, &item, 8, now_ns, &value),
                     counts ? HF_EXISTS : HF_OK);
            if (!counts)
                until[item] = now_ns + WINDOW;
            CHECK_EQ(value, until[item]);
        }
        now_ns += hf_random_below(&random, 3);
    }
    free(until);
}

TEST(it_does_what_a_plain_model_does)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.value_bytes = 8, .shards = 2});

    compare(dedup, 3000, 300000);
    hf_dedup_close(dedup);
}

TEST(also_when_memory_is_small_and_the_rest_is_on_disk)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){
        .value_bytes = 8, .items_max = 200, .folder = test_folder()});

    compare(dedup, 3000, 300000);
    CHECK(stats(dedup).page_reads > 1000);
    CHECK(stats(dedup).items <= 200);
    hf_dedup_close(dedup);
}

/* One bit an item: the filter says "perhaps" to nearly everything. */
TEST(filters_that_err_lose_no_item)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.items_max = 1000,
                                         .folder = test_folder(),
                                         .filter_bits = 1,
                                         .window_ns = 1000000000});

    for (uint64_t i = 0; i < 20000; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_OK);
    CHECK(stats(dedup).filter_errors > 20000);
    for (uint64_t i = 0; i < 20000; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_EXISTS);
    CHECK_EQ(stats(dedup).added, 20000);
    CHECK_EQ(stats(dedup).seen, 20000);
    hf_dedup_close(dedup);
}

TEST(a_sound_filter_seldom_errs)
{
    struct hf_dedup *dedup =
        open_with((struct hf_dedup_opts){.items_max = 20000,
                                         .folder = test_folder(),
                                         .shards = 1,
                                         .window_ns = 1000000000});

    for (uint64_t i = 0; i < 20000; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_OK);
    CHECK_EQ(add_number(dedup, 20000, 1), HF_OK); /* this writes the run */
    CHECK_EQ(stats(dedup).runs, 1);
    for (uint64_t i = 30000; i < 49000; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_OK);
    CHECK(stats(dedup).filter_errors < 19000 / 50); /* 2 % */
    hf_dedup_close(dedup);
}

TEST(runs_that_expired_give_back_their_space)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){
        .items_max = 100, .folder = test_folder(), .disk_max = 1000});

    for (uint64_t i = 0; i < 100000; i++)
        CHECK_EQ(add_number(dedup, i, 2 * i), HF_OK); /* 500 count */
    CHECK(stats(dedup).disk_items <= 1000);
    CHECK(stats(dedup).runs <= 10);
    /* Of a page each, and one before all: the file does not grow for ever. */
    CHECK(hf_u64_load(&dedup->file_end, __ATOMIC_RELAXED) <=
          11 * DEDUP_PAGE_BYTES);
    /* Any call will do. */
    CHECK_EQ(hf_dedup_find(dedup, "a", 1, 1000000, NULL), HF_NOTFOUND);
    CHECK_EQ(stats(dedup).runs, 0);
    CHECK_EQ(stats(dedup).disk_bytes, 0);
    hf_dedup_close(dedup);
}

/* A place is found by looking at all of a table, which must not be done for
 * each item: 2,000,000 looks at 65,536 places would take minutes. */
TEST(one_that_is_full_all_the_time_is_not_slow)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){
        .items_max = 40000, .shards = 1, .window_ns = 1000000});
    uint64_t added = 0;

    for (uint64_t i = 0; i < 2000000; i++) /* 50,000 in a window */
        added += add_number(dedup, i, 20 * i) == HF_OK;
    CHECK(added > 40 * UINT64_C(40000) * 97 / 100);
    CHECK(added <= 41 * UINT64_C(40000));
    CHECK(stats(dedup).items <= 40000);
    hf_dedup_close(dedup);
}

TEST(a_full_disk_is_told_and_changes_nothing)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){
        .items_max = 100, .folder = test_folder(), .disk_max = 250});
    unsigned added = 0;

    for (uint64_t i = 0; i < 1000; i++)
        added += add_number(dedup, i, 1) == HF_OK;
    CHECK_EQ(added, 300); /* two runs and a table */
    CHECK_EQ(stats(dedup).refused, 700);
    for (uint64_t i = 0; i < 300; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_EXISTS);
    hf_dedup_close(dedup);
}

TEST(a_disk_that_fails_is_told_and_changes_nothing)
{
    struct hf_dedup *dedup = open_with(
        (struct hf_dedup_opts){.items_max = 100, .folder = test_folder()});
    struct rlimit old, none = {0, 0};

    for (uint64_t i = 0; i < 100; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_OK);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    none.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    enum hf_status failed = add_number(dedup, 100, 1);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_EQ(failed, HF_IO);
    CHECK_EQ(stats(dedup).runs, 0);
    CHECK_EQ(add_number(dedup, 7, 1), HF_EXISTS);
    CHECK_EQ(add_number(dedup, 100, 1), HF_OK);
    CHECK_EQ(add_number(dedup, 7, 1), HF_EXISTS); /* on disk now */
    CHECK_EQ(hf_dedup_forget(dedup, &(uint64_t){7}, 8, 1), HF_OK);
    CHECK_EQ(add_number(dedup, 7, 1), HF_OK);
    hf_dedup_close(dedup);
}

/* What a failed write left takes no space, and no new place each time. */
TEST(a_disk_that_fails_again_and_again_does_not_fill)
{
    struct hf_dedup *dedup = open_with((struct hf_dedup_opts){
        .items_max = 4000, .shards = 1, .folder = test_folder()});
    struct rlimit old, some = {5 * DEDUP_PAGE_BYTES, 0};
    struct stat file;

    for (uint64_t i = 0; i < 4000; i++)
        CHECK_EQ(add_number(dedup, i, 1), HF_OK);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    some.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &some), 0);
    int failed = 0;
    for (uint64_t i = 0; i < 10; i++)
        failed += add_number(dedup, 5000, 1) == HF_IO;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_EQ(failed, 10);
    CHECK_EQ(fstat(dedup->fd, &file), 0);
    CHECK_EQ(file.st_blocks, 0);
    CHECK_EQ(add_number(dedup, 5000, 1), HF_OK);
    CHECK_EQ(hf_u64_load(&dedup->file_end, __ATOMIC_RELAXED),
             (1 + (4000 + 169) / 170) * DEDUP_PAGE_BYTES);
    CHECK_EQ(add_number(dedup, 7, 1), HF_EXISTS);
    hf_dedup_close(dedup);
}

TEST(every_allocation_may_fail)
{
    const char *folder = test_folder();
    bool failed = true;

    for (uint64_t after = 0; failed; after++) {
        struct hf_dedup_opts opts = {
            .items_max = 70, .folder = folder, .window_ns = WINDOW};
        struct hf_dedup *dedup = NULL;
        uint64_t added = 0;
        hf_memory_fail_after(after);
        enum hf_status status = hf_dedup_open(&dedup, &opts);
        for (uint64_t i = 0; status == HF_OK && i < 200; i++) {
            status = add_number(dedup, i, 1);
            added += status == HF_OK;
        }
        hf_memory_fail_never();
        failed = status != HF_OK;
        CHECK(!failed || status == HF_NOMEM);
        for (uint64_t i = 0; dedup != NULL && i < 200; i++)
            CHECK_EQ(add_number(dedup, i, 1), i < added ? HF_EXISTS : HF_OK);
        hf_dedup_close(dedup);
    }
}

TEST(bad_input_is_refused)
{
    struct hf_dedup *dedup = NULL;
    struct hf_dedup_opts bad[] = {
        {.window_ns = UINT64_MAX / 4 + 1},
        {.items_max = UINT64_MAX},
        {.disk_max = UINT64_MAX},
        {.value_bytes = HF_DEDUP_VALUE_MAX + 1},
        {.shards = 3},
        {.shards = 2 * HF_DEDUP_SHARDS_MAX},
        {.filter_bits = 65},
        {.folder = ""},
    };
    struct hf_dedup_opts nowhere = {.folder = "/nowhere/at/all"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_dedup_open(&dedup, &bad[i]), HF_INVALID);
    CHECK_EQ(hf_dedup_open(&dedup, &nowhere), HF_IO);
    CHECK_EQ(hf_dedup_open(NULL, NULL), HF_INVALID);
    CHECK(dedup == NULL);
    CHECK_EQ(hf_dedup_open(&dedup, NULL), HF_OK);
    CHECK_EQ(hf_dedup_add(NULL, "a", 1, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_dedup_add(dedup, NULL, 1, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_dedup_add(dedup, "a", 1, UINT64_MAX, NULL), HF_INVALID);
    CHECK_EQ(hf_dedup_add(dedup, NULL, 0, 1, NULL), HF_OK); /* no bytes */
    CHECK_EQ(hf_dedup_add(dedup, "", 0, 1, NULL), HF_EXISTS);
    CHECK_EQ(hf_dedup_find(NULL, "a", 1, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_dedup_find(dedup, "a", 1, UINT64_MAX, NULL), HF_INVALID);
    CHECK_EQ(hf_dedup_forget(NULL, "a", 1, 1), HF_INVALID);
    CHECK_EQ(hf_dedup_forget(dedup, "a", 1, UINT64_MAX), HF_INVALID);
    hf_dedup_stats(NULL, NULL);
    hf_dedup_stats(dedup, NULL);
    hf_dedup_close(dedup);
    hf_dedup_close(NULL);
}
