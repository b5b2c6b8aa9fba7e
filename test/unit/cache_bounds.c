/* cache_bounds.c - how much the cache keeps, and for how long. */
#include "holdfast/cache.h"
#include "support/caching.h"
#include "support/clock.h"

static void fill_over(enum hf_cache_policy policy, uint32_t segments)
{
    struct hf_cache_opts opts = {.max_count = 101,
                                 .policy = policy,
                                 .segments = segments,
                                 .removed = on_removed,
                                 .release = on_release};
    struct hf_cache *cache = open_cache(&opts);

    for (uint64_t i = 0; i < 5000; i++) {
        CHECK_EQ(put_number(cache, i), HF_OK);
        CHECK(hf_cache_count(cache) <= 101);
        (void)has_number(cache, i / 2);
    }
    CHECK_EQ(hf_cache_count(cache), 101);
    CHECK_EQ(scene.told[HF_CACHE_SIZE], 4899);
    CHECK_EQ(stats_of(cache).removals[HF_CACHE_SIZE], 4899);
    CHECK_EQ(stats_of(cache).weight, 101);
    hf_cache_close(cache);
    CHECK_EQ(scene.told[HF_CACHE_CLOSED], 101);
    CHECK_EQ(scene.released, 5000);
}

TEST(count_is_bounded)
{
    for (int policy = HF_CACHE_TINYLFU; policy <= HF_CACHE_S3FIFO; policy++) {
        fill_over((enum hf_cache_policy)policy, 1);
        fill_over((enum hf_cache_policy)policy, 8);
    }
}

static void fill_weight(enum hf_cache_policy policy)
{
    struct hf_cache_opts opts = {.max_weight = 1000,
                                 .weigh = weigh,
                                 .policy = policy,
                                 .removed = on_removed};
    struct hf_cache *cache = open_cache(&opts);

    for (uint64_t i = 0; i < 2000; i++) {
        scene.weight = i % 41;
        CHECK_EQ(put_number(cache, i % 700), HF_OK);
        CHECK(stats_of(cache).weight <= 1000);
        (void)has_number(cache, i % 13);
    }
    CHECK(stats_of(cache).weight > 900);
    CHECK_EQ(hf_cache_clear(cache), HF_OK);
    CHECK_EQ(stats_of(cache).weight, 0);
    CHECK_EQ(hf_cache_count(cache), 0);

    scene.weight = 0; /* takes no room, is never in the way */
    CHECK_EQ(put(cache, "light", &one), HF_OK);
    scene.weight = 1001; /* more than all: replaces, and goes at once */
    CHECK_EQ(put(cache, "heavy", &one), HF_OK);
    CHECK(get(cache, "heavy") == NULL);
    scene.weight = 1000;
    for (uint64_t i = 0; i < 10; i++)
        CHECK_EQ(put_number(cache, i), HF_OK);
    CHECK(get(cache, "light") == &one);
    CHECK_EQ(hf_cache_count(cache), 2);
    scene.weight = (uint64_t)HF_CACHE_ENTRY_MAX + 1;
    CHECK_EQ(put(cache, "light", &two), HF_INVALID);
    CHECK(get(cache, "light") == &one);
    struct hf_cache_stats stats = stats_of(cache);
    uint64_t left = 0;
    for (int cause = 0; cause < HF_CACHE_CAUSES; cause++) {
        CHECK_EQ(stats.removals[cause], scene.told[cause]);
        left += stats.removals[cause];
    }
    CHECK_EQ(stats.puts, left + 2);
    hf_cache_close(cache);
}

TEST(weight_is_bounded)
{
    fill_weight(HF_CACHE_TINYLFU);
    fill_weight(HF_CACHE_LRU);
    fill_weight(HF_CACHE_S3FIFO);
}

TEST(lru_keeps_what_was_read_last)
{
    struct hf_cache_opts opts = {.max_count = 3, .policy = HF_CACHE_LRU};
    struct hf_cache *cache = open_cache(&opts);

    put(cache, "a", &one);
    put(cache, "b", &one);
    put(cache, "c", &one);
    CHECK(get(cache, "a") == &one);
    put(cache, "d", &one); /* b was not read for longest */
    CHECK(get(cache, "b") == NULL);
    put(cache, "c", &two); /* a put is a read */
    put(cache, "e", &one);
    CHECK(get(cache, "a") == NULL);
    CHECK(get(cache, "c") == &two && get(cache, "d") == &one);
    CHECK(get(cache, "e") == &one);
    hf_cache_close(cache);
}

TEST(a_scan_does_not_push_out_what_is_read_often)
{
    for (int policy = HF_CACHE_TINYLFU; policy <= HF_CACHE_S3FIFO; policy++) {
        struct hf_cache_opts opts = {.max_count = 100,
                                     .policy = (enum hf_cache_policy)policy,
                                     .seed = {3, 4}};
        struct hf_cache *cache = open_cache(&opts);
        uint64_t there = 0;
        for (uint64_t round = 0; round < 20; round++)
            for (uint64_t i = 0; i < 50; i++)
                if (!has_number(cache, i))
                    put_number(cache, i);
        for (uint64_t i = 1000; i < 2000; i++)
            put_number(cache, i);
        for (uint64_t i = 0; i < 50; i++)
            there += has_number(cache, i);
        CHECK_EQ(there > 40, policy != HF_CACHE_LRU);
        hf_cache_close(cache);
    }
}

/* ---- Time. ---- */

TEST(expiry_is_exact)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_cache_opts opts = {.segments = 1,
                                 .ttl_ns = 100,
                                 .ttl_max_ns = 500,
                                 .clock = test_clock(&clock),
                                 .removed = on_removed};
    struct hf_cache *cache = open_cache(&opts);
    struct hf_cache_found found;

    put(cache, "default", &one);
    CHECK_EQ(hf_cache_put(cache, "short", 5, &one, 1), HF_OK);
    CHECK_EQ(hf_cache_put(cache, "long", 4, &one, 400), HF_OK);
    CHECK_EQ(hf_cache_put(cache, "ever", 4, &one, HF_FOREVER), HF_OK);
    CHECK(get(cache, "short") == &one);
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "short") == NULL);
    test_clock_advance(&clock, 98);
    CHECK(get(cache, "default") == &one); /* one ns before */
    CHECK_EQ(hf_cache_look(cache, "default", 7, &found), HF_OK);
    CHECK_EQ(found.expires_ns, 1100);
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "default") == NULL); /* at it */
    CHECK_EQ(hf_cache_put_if_absent(cache, "default", 7, &two, 0, NULL), HF_OK);
    CHECK_EQ(scene.told[HF_CACHE_EXPIRED], 2); /* short was swept by that */
    test_clock_advance(&clock, 299);
    CHECK(get(cache, "long") == &one);
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "long") == NULL);
    CHECK_EQ(hf_cache_remove(cache, "long", 4), HF_NOTFOUND);
    CHECK_EQ(scene.told[HF_CACHE_EXPIRED], 3);
    test_clock_advance(&clock, 99);
    CHECK(get(cache, "ever") == &one); /* the maximum is for all */
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "ever") == NULL);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 0);
    hf_cache_close(cache);
}

TEST(reads_put_the_end_off_up_to_the_maximum)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_cache_opts opts = {
        .ttl_max_ns = 250, .idle_ns = 100, .clock = test_clock(&clock)};
    struct hf_cache *cache = open_cache(&opts);

    put(cache, "a", &one);
    put(cache, "b", &one);
    test_clock_advance(&clock, 99);
    CHECK(get(cache, "a") == &one);
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "b") == NULL);
    CHECK(get(cache, "a") == &one);
    CHECK_EQ(hf_cache_sweep(cache, 10), 1); /* b; a comes later */
    test_clock_advance(&clock, 99);
    CHECK(get(cache, "a") == &one);
    test_clock_advance(&clock, 50);
    CHECK(get(cache, "a") == &one); /* 249 */
    test_clock_advance(&clock, 1);
    CHECK(get(cache, "a") == NULL);
    CHECK_EQ(hf_cache_sweep(cache, 10), 1);
    CHECK_EQ(hf_cache_count(cache), 0);
    hf_cache_close(cache);
}

TEST(sweeps_take_out_what_is_over_in_steps)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_cache_opts opts = {.max_count = 10000,
                                 .segments = 4,
                                 .clock = test_clock(&clock),
                                 .removed = on_removed};
    struct hf_cache *cache = open_cache(&opts);

    for (uint64_t i = 0; i < 1000; i++)
        CHECK_EQ(hf_cache_put(cache, &i, sizeof i, &one,
                              i % 7 == 0 ? HF_FOREVER : 1 + i * 7919 % 500),
                 HF_OK);
    CHECK_EQ(hf_cache_sweep(cache, 100), 0);
    test_clock_advance(&clock, 250);
    uint64_t over = 0;
    for (uint64_t i = 0; i < 1000; i++)
        over += i % 7 != 0 && 1 + i * 7919 % 500 <= 250;
    CHECK_EQ(hf_cache_sweep(cache, 100), 100);
    CHECK_EQ(hf_cache_count(cache), 900);
    while (hf_cache_sweep(cache, 7) > 0)
        continue;
    CHECK_EQ(hf_cache_count(cache), 1000 - over);
    CHECK_EQ(scene.told[HF_CACHE_EXPIRED], over);
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_EQ(has_number(cache, i), i % 7 == 0 || 1 + i * 7919 % 500 > 250);
    /* Puts sweep as well. */
    test_clock_advance(&clock, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        put_number(cache, 5000 + i % 100);
    CHECK_EQ(hf_cache_count(cache), 143 + 100);
    CHECK_EQ(hf_cache_sweep(NULL, 1), 0);
    CHECK_EQ(hf_cache_sweep(cache, 0), 0);
    hf_cache_close(cache);
}

TEST(a_scheduler_sweeps)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_scheduler *scheduler;
    struct hf_scheduler_opts timing = {.direct = true,
                                       .clock = test_clock(&clock)};
    struct hf_cache_opts opts = {.sweep_ns = SECOND,
                                 .clock = test_clock(&clock)};

    CHECK_EQ(hf_scheduler_open(&scheduler, &timing), HF_OK);
    opts.scheduler = scheduler;
    struct hf_cache *cache = open_cache(&opts);
    CHECK_EQ(hf_cache_put(cache, "a", 1, &one, 10), HF_OK);
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, SECOND);
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);
    while (hf_cache_count(cache) > 0 &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        test_clock_await_sleepers(&clock, 1);
    CHECK_EQ(hf_cache_count(cache), 0);
    hf_cache_close(cache);
    CHECK_EQ(hf_scheduler_pending(scheduler), 0);
    hf_scheduler_close(scheduler);
}
