/* index.c - tests of the things found by name. */
#include "base/index.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

struct record {
    struct hf_named named;
    uint64_t value;
};

struct fixture {
    size_t bytes;
    struct hf_texts texts;
    struct hf_index index;
};

static void start(struct fixture *f, uint64_t seed)
{
    struct hf_hash_seed key = {{seed, ~seed}};

    f->bytes = 0;
    hf_texts_init(&f->texts, &f->bytes);
    CHECK_EQ(hf_index_init(&f->index, sizeof(struct record), &f->texts, key,
                           &f->bytes),
             HF_OK);
}

static void stop(struct fixture *f)
{
    hf_index_destroy(&f->index);
    hf_texts_destroy(&f->texts);
}

static struct hf_bytes name_of(unsigned number)
{
    static char name[32];
    int len = snprintf(name, sizeof name, "name/%u", number);

    return hf_bytes(name, (size_t)len);
}

TEST(finds_what_was_added_until_it_is_removed)
{
    struct fixture f;

    start(&f, 1);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes_text("a")), 0);
    uint32_t a = hf_index_add(&f.index, hf_bytes_text("a"));
    uint32_t empty = hf_index_add(&f.index, hf_bytes("", 0));
    CHECK(a != 0 && empty != 0 && a != empty);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes_text("a")), a);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes("", 0)), empty);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes("a\0", 2)), 0);
    CHECK_EQ(((struct record *)hf_index_at(&f.index, a))->value, 0);
    struct hf_bytes name = hf_index_name(&f.index, hf_index_at(&f.index, a));
    CHECK_TEXT(name.data, name.len, "a");
    CHECK_EQ(hf_index_count(&f.index), 2);
    hf_index_remove(&f.index, a);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes_text("a")), 0);
    CHECK(hf_index_used(&f.index, a) == NULL);
    CHECK_EQ(hf_index_find(&f.index, hf_bytes("", 0)), empty);
    stop(&f);
}

#define NAMES 20000

/* The naive model is an array: the number under which each name lies. */
TEST(random_use_agrees_with_an_array)
{
    static uint32_t expected[NAMES];
    struct fixture f;
    struct hf_random random;
    unsigned count = 0;

    memset(expected, 0, sizeof expected);
    hf_random_init(&random, test_seed());
    start(&f, test_seed());
    for (int step = 0; step < 300000; step++) {
        unsigned i = (unsigned)hf_random_below(&random, NAMES);
        CHECK_EQ(hf_index_find(&f.index, name_of(i)), expected[i]);
        if (expected[i] == 0) {
            expected[i] = hf_index_add(&f.index, name_of(i));
            struct record *record = hf_index_at(&f.index, expected[i]);
            CHECK_EQ(record->value, 0);
            record->value = i + 1;
            count++;
        } else {
            struct record *record = hf_index_at(&f.index, expected[i]);
            CHECK_EQ(record->value, i + 1);
            if (hf_random_below(&random, 3) == 0) {
                hf_index_remove(&f.index, expected[i]);
                expected[i] = 0;
                count--;
            }
        }
        CHECK_EQ(hf_index_count(&f.index), count);
    }
    for (uint32_t n = 1; n < hf_index_top(&f.index); n++) {
        struct record *record = hf_index_used(&f.index, n);
        if (record == NULL)
            continue;
        CHECK_EQ(expected[record->value - 1], n);
        count--;
    }
    CHECK_EQ(count, 0);
    stop(&f);
}

TEST(numbers_do_not_depend_on_the_seed)
{
    struct fixture a;
    struct fixture b;

    start(&a, 1);
    start(&b, 2);
    for (unsigned i = 0; i < 10000; i++) {
        uint32_t number = hf_index_add(&a.index, name_of(i));
        CHECK_EQ(hf_index_add(&b.index, name_of(i)), number);
        if (i % 3 == 0) {
            hf_index_remove(&a.index, number);
            hf_index_remove(&b.index, number);
        }
    }
    stop(&a);
    stop(&b);
}

TEST(the_lists_stay_short_while_it_grows)
{
    struct fixture f;

    start(&f, 7);
    for (unsigned i = 0; i < 100000; i++)
        CHECK(hf_index_add(&f.index, name_of(i)) != 0);
    CHECK_EQ(f.index.buckets, 100000);
    CHECK_EQ(f.index.low, 65536);
    stop(&f);
}

TEST(init_without_memory_leaves_it_released)
{
    size_t bytes = 0;
    struct hf_texts texts;
    struct hf_index index;
    struct hf_hash_seed seed = {{0, 0}};

    hf_texts_init(&texts, &bytes);
    for (uint64_t allowed = 0; allowed < 2; allowed++) {
        hf_memory_fail_after(allowed);
        CHECK_EQ(
            hf_index_init(&index, sizeof(struct record), &texts, seed, &bytes),
            HF_NOMEM);
        hf_memory_fail_never();
        CHECK_EQ(bytes, 0);
    }
    hf_texts_destroy(&texts);
}

/* Every allocation may fail: an add then either works or changes nothing, and
 * a table that could not grow still finds everything. */
TEST(growth_without_memory_is_slower_and_still_right)
{
    struct fixture f;

    start(&f, 3);
    for (unsigned i = 0; i < 30000; i++) {
        bool promise = i % 2 == 0;
        if (promise)
            CHECK_EQ(hf_index_promise(&f.index, name_of(i).len), HF_OK);
        hf_memory_fail_after(0);
        uint32_t number = hf_index_add(&f.index, name_of(i));
        hf_memory_fail_never();
        if (promise) {
            CHECK(number != 0);
            hf_index_unpromise(&f.index, name_of(i).len);
        } else if (number == 0) {
            CHECK_EQ(hf_index_find(&f.index, name_of(i)), 0);
            CHECK(hf_index_add(&f.index, name_of(i)) != 0);
        }
        CHECK_EQ(hf_index_count(&f.index), i + 1);
    }
    for (unsigned i = 0; i < 30000; i++)
        CHECK(hf_index_find(&f.index, name_of(i)) != 0);
    CHECK_EQ(hf_index_find(&f.index, name_of(30000)), 0);
    stop(&f);
}

TEST(a_failed_promise_promises_nothing)
{
    for (uint64_t allowed = 0; allowed < 4; allowed++) {
        struct fixture f;
        start(&f, 4);
        hf_memory_fail_after(allowed);
        CHECK_EQ(hf_index_promise(&f.index, 40), HF_NOMEM);
        hf_memory_fail_never();
        CHECK_EQ(f.index.slab.promised, 0);
        CHECK_EQ(hf_index_promise(&f.index, 40), HF_OK);
        CHECK_EQ(f.index.slab.promised, 1);
        stop(&f);
    }
}

TEST(a_cleared_index_is_empty_and_grows_again)
{
    struct fixture f;

    start(&f, 9);
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 9000; i++)
            CHECK_EQ(hf_index_add(&f.index, name_of(i)), i + 1);
        for (unsigned i = 0; i < 9000; i++)
            CHECK_EQ(hf_index_find(&f.index, name_of(i)), i + 1);
        CHECK_EQ(hf_index_promise(&f.index, 5), HF_OK);
        hf_index_clear(&f.index);
        hf_texts_clear(&f.texts);
        CHECK_EQ(hf_index_count(&f.index), 0);
        CHECK_EQ(hf_index_top(&f.index), 1);
        CHECK_EQ(f.index.slab.promised, 1);
        hf_index_unpromise(&f.index, 5);
        for (unsigned i = 0; i < 9000; i++)
            CHECK_EQ(hf_index_find(&f.index, name_of(i)), 0);
    }
    stop(&f);
}

TEST(an_expected_size_changes_nothing_but_the_buckets)
{
    static const uint64_t sizes[] = {0, 1, 2, 4095, 4096, 4097, 5000, 8192};

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct fixture f;
        start(&f, k);
        if (k % 2 == 1) /* it may have to do with what there is */
            hf_memory_fail_after(0);
        hf_index_expect(&f.index, sizes[k]);
        hf_memory_fail_never();
        for (unsigned i = 0; i < 12000; i++)
            CHECK_EQ(hf_index_add(&f.index, name_of(i)), i + 1);
        for (unsigned i = 0; i < 12000; i++)
            CHECK_EQ(hf_index_find(&f.index, name_of(i)), i + 1);
        CHECK_EQ(f.index.buckets, 12000);
        stop(&f);
    }
}
