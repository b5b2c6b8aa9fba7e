/* slab.c - tests of the items named by a number. */
#include "base/slab.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

struct item {
    uint32_t mark; /* not 0 while in use */
    uint32_t number;
    uint64_t value[3];
};

TEST(items_start_zeroed_and_numbers_at_one)
{
    struct hf_slab slab;
    size_t bytes = 0;

    hf_slab_init(&slab, sizeof(struct item), &bytes);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(hf_slab_take(&slab), 1);
    CHECK_EQ(hf_slab_take(&slab), 2);
    CHECK(bytes > 0);
    struct item *item = hf_slab_at(&slab, 1);
    CHECK_EQ(item->value[2], 0);
    memset(item, 0xff, sizeof *item);
    hf_slab_give(&slab, 1);
    CHECK_EQ(item->mark, 0); /* a walk sees that it is free */
    CHECK_EQ(hf_slab_take(&slab), 1);
    CHECK_EQ(item->value[2], 0);
    CHECK_EQ(slab.used, 2);
    hf_slab_destroy(&slab);
}

TEST(items_of_every_size_do_not_overlap)
{
    for (size_t size = 8; size <= 300000; size = size * 3 / 8 * 8 + 8) {
        struct hf_slab slab;
        hf_slab_init(&slab, size, NULL);
        for (uint32_t i = 1; i <= 20; i++) {
            CHECK_EQ(hf_slab_take(&slab), i);
            memset(hf_slab_at(&slab, i), (int)i, size);
        }
        for (uint32_t i = 1; i <= 20; i++) {
            const unsigned char *item = hf_slab_at(&slab, i);
            CHECK_EQ(item[0], i);
            CHECK_EQ(item[size - 1], i);
        }
        hf_slab_destroy(&slab);
    }
}

#define ITEMS 50000

/* Random takes and gives: what is in use keeps its place and its content. */
TEST(random_use_keeps_every_item_as_it_was)
{
    static uint32_t used[ITEMS];
    static struct item *places[ITEMS];
    struct hf_slab slab;
    struct hf_random random;
    uint32_t count = 0;

    hf_random_init(&random, test_seed());
    hf_slab_init(&slab, sizeof(struct item), NULL);
    for (int step = 0; step < 400000; step++) {
        bool grow =
            hf_random_below(&random, 1000) < (step < 200000 ? 600 : 400);
        if (grow && count < ITEMS) {
            uint32_t number = hf_slab_take(&slab);
            struct item *item = hf_slab_at(&slab, number);
            CHECK_EQ(item->mark, 0);
            *item = (struct item){1, number, {number, number, number}};
            places[count] = item;
            used[count++] = number;
        } else if (!grow && count > 0) {
            uint32_t at = (uint32_t)hf_random_below(&random, count);
            struct item *item = hf_slab_at(&slab, used[at]);
            CHECK(item == places[at]);
            CHECK_EQ(item->number, used[at]);
            CHECK_EQ(item->value[2], used[at]);
            hf_slab_give(&slab, used[at]);
            used[at] = used[--count];
            places[at] = places[count];
        }
        CHECK_EQ(slab.used, count);
        CHECK(slab.top <= ITEMS + 1); /* numbers are used again */
    }
    hf_slab_destroy(&slab);
}

TEST(a_failed_promise_promises_nothing)
{
    struct hf_slab slab;

    hf_slab_init(&slab, 64, NULL);
    for (uint64_t allowed = 0; allowed < 2; allowed++) {
        hf_memory_fail_after(allowed);
        CHECK_EQ(hf_slab_promise(&slab, 1), HF_NOMEM);
        CHECK_EQ(slab.promised, 0);
        CHECK_EQ(hf_slab_take(&slab), 0);
        CHECK_EQ(slab.used, 0);
        hf_memory_fail_never();
    }
    CHECK_EQ(hf_slab_promise(&slab, 1), HF_OK);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_slab_take(&slab), 1);
    hf_memory_fail_never();
    hf_slab_unpromise(&slab, 1);
    hf_slab_destroy(&slab);
}

TEST(promised_items_are_there_whatever_the_memory)
{
    struct hf_slab slab;
    struct hf_random random;
    uint32_t numbers[3000];

    hf_random_init(&random, test_seed());
    hf_slab_init(&slab, 1000, NULL);
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t count = 1 + (uint32_t)hf_random_below(&random, 3000);
        uint32_t half = count / 2;
        CHECK_EQ(hf_slab_promise(&slab, half), HF_OK);
        CHECK_EQ(hf_slab_promise(&slab, count - half), HF_OK); /* on top */
        hf_memory_fail_after(0);
        for (uint32_t i = 0; i < count; i++) {
            numbers[i] = hf_slab_take(&slab);
            CHECK(numbers[i] != 0);
        }
        hf_memory_fail_never();
        hf_slab_unpromise(&slab, count);
        uint32_t kept = (uint32_t)hf_random_below(&random, 50);
        for (uint32_t i = kept; i < count; i++)
            hf_slab_give(&slab, numbers[i]);
    }
    hf_slab_destroy(&slab);
}

TEST(a_cleared_slab_starts_again_and_keeps_memory_and_promises)
{
    struct hf_slab slab;
    size_t bytes = 0;

    hf_slab_init(&slab, 64, &bytes);
    for (int i = 0; i < 5000; i++)
        hf_slab_take(&slab);
    hf_slab_give(&slab, 7);
    CHECK_EQ(hf_slab_promise(&slab, 3), HF_OK);
    size_t before = bytes;
    hf_slab_clear(&slab);
    CHECK_EQ(slab.used, 0);
    CHECK_EQ(slab.promised, 3);
    hf_memory_fail_after(0);
    for (uint32_t i = 1; i <= 5000; i++) {
        CHECK_EQ(hf_slab_take(&slab), i);
        CHECK_EQ(((struct item *)hf_slab_at(&slab, i))->mark, 0);
    }
    hf_memory_fail_never();
    CHECK_EQ(bytes, before);
    hf_slab_destroy(&slab);
}

TEST(memory_for_promises_that_came_back_is_given_back)
{
    struct hf_slab slab;
    size_t bytes = 0;

    hf_slab_init(&slab, 1024, &bytes);
    CHECK_EQ(hf_slab_promise(&slab, 1), HF_OK);
    size_t chunk = bytes;
    CHECK_EQ(hf_slab_promise(&slab, 9999), HF_OK); /* also in huge blocks */
    CHECK(bytes > 9 << 20);
    hf_slab_trim(&slab); /* all of it is promised */
    CHECK(bytes > 9 << 20);
    hf_slab_unpromise(&slab, 9000);
    for (int i = 0; i < 1000; i++)
        hf_slab_trim(&slab);
    CHECK(bytes >= 1000 * 1024 && bytes <= 1000 * 1024 + 2 * chunk);
    hf_memory_fail_after(0);
    for (int i = 0; i < 1000; i++) /* what is promised is there */
        CHECK(hf_slab_take(&slab) != 0);
    hf_memory_fail_never();
    hf_slab_unpromise(&slab, 1000);
    for (int i = 0; i < 1000; i++)
        hf_slab_trim(&slab);
    CHECK(bytes >= 1000 * 1024); /* and what is used stays */
    CHECK_EQ(hf_slab_promise(&slab, 9999), HF_OK);
    hf_slab_unpromise(&slab, 9999);
    hf_slab_destroy(&slab);
}

TEST(a_trim_takes_one_block_and_leaves_one_to_spare)
{
    struct hf_slab slab;
    size_t bytes = 0;

    hf_slab_init(&slab, 64, &bytes);
    CHECK_EQ(hf_slab_promise(&slab, 1), HF_OK);
    size_t chunk = bytes;
    CHECK_EQ(hf_slab_promise(&slab, 3 * (uint32_t)chunk / 64), HF_OK);
    CHECK_EQ(bytes, 4 * chunk);
    hf_slab_unpromise(&slab, 3 * (uint32_t)chunk / 64);
    hf_slab_trim(&slab);
    CHECK_EQ(bytes, 3 * chunk);
    hf_slab_trim(&slab);
    CHECK_EQ(bytes, 2 * chunk);
    hf_slab_trim(&slab);
    CHECK_EQ(bytes, 2 * chunk); /* number 1 is the first, one is to spare */
    hf_slab_unpromise(&slab, 1);
    hf_slab_destroy(&slab);
}

/* Of any size: two chunks at most, and of a large one a seventeenth. */
TEST(a_slab_has_little_to_spare_and_gives_it_all_back)
{
    static const size_t sizes[] = {16, 64, 72, 88, 1024};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct hf_slab slab;
        size_t bytes = 0;
        size_t most = 0;
        hf_slab_init(&slab, sizes[i], &bytes);
        CHECK_EQ(hf_slab_promise(&slab, 1), HF_OK);
        size_t chunk = bytes;
        CHECK(chunk <= 32u << 10);
        for (size_t used = 2 * sizes[i]; used < 64u << 20; used += sizes[i]) {
            CHECK_EQ(hf_slab_promise(&slab, 1), HF_OK);
            if (used < 32u << 20)
                CHECK(bytes <= used + 2 * chunk);
            CHECK(bytes >= used);
            CHECK(bytes <= used + used / 16 + 2 * chunk);
            most = bytes;
        }
        hf_slab_unpromise(&slab, slab.promised - 1);
        for (size_t left = most; left > 2 * chunk; left = bytes) {
            hf_slab_trim(&slab);
            CHECK(bytes < left);
        }
        CHECK_EQ(bytes, 2 * chunk);
        hf_slab_destroy(&slab);
    }
}

TEST(a_zeroed_slab_can_be_released)
{
    struct hf_slab slab = {0};
    hf_slab_destroy(&slab);
}
