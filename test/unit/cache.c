/* cache.c - the cache in one thread: answers, who is told, no memory. */
#include "holdfast/cache.h"

#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/caching.h"
#include "support/clock.h"

TEST(values_are_put_found_replaced_and_removed)
{
    struct hf_cache *cache = open_cache(NULL);

    CHECK(get(cache, "a") == NULL);
    CHECK_EQ(put(cache, "a", &one), HF_OK);
    CHECK(get(cache, "a") == &one);
    CHECK_EQ(put(cache, "a", &two), HF_OK);
    CHECK(get(cache, "a") == &two);
    CHECK_EQ(hf_cache_count(cache), 1);
    CHECK_EQ(hf_cache_remove(cache, "b", 1), HF_NOTFOUND);
    CHECK_EQ(hf_cache_remove(cache, "a", 1), HF_OK);
    CHECK_EQ(hf_cache_remove(cache, "a", 1), HF_NOTFOUND);
    CHECK(get(cache, "a") == NULL);
    CHECK_EQ(put(cache, "", &three), HF_OK);
    CHECK_EQ(hf_cache_get(cache, NULL, 0, NULL), HF_OK);
    CHECK_EQ(hf_cache_count(cache), 1);
    hf_cache_close(cache);
    hf_cache_close(NULL);
}

TEST(conditions_decide)
{
    struct hf_cache *cache = open_cache(NULL);
    struct hf_cache_found found;
    void *existing = NULL;

    CHECK_EQ(hf_cache_put_if_absent(cache, "a", 1, &one, 0, &existing), HF_OK);
    CHECK(existing == NULL);
    CHECK_EQ(hf_cache_put_if_absent(cache, "a", 1, &two, 0, &existing),
             HF_EXISTS);
    CHECK(existing == &one);
    CHECK_EQ(hf_cache_look(cache, "a", 1, &found), HF_OK);
    CHECK(found.value == &one && found.version != 0);
    CHECK_EQ(found.expires_ns, HF_FOREVER);
    uint64_t version = found.version;
    CHECK_EQ(hf_cache_put_if(cache, "a", 1, &two, 0, version), HF_OK);
    CHECK_EQ(hf_cache_put_if(cache, "a", 1, &three, 0, version), HF_EXISTS);
    CHECK_EQ(hf_cache_put_if(cache, "b", 1, &three, 0, version), HF_NOTFOUND);
    CHECK_EQ(hf_cache_put_if(cache, "b", 1, &three, 0, 0), HF_OK);
    CHECK_EQ(hf_cache_put_if(cache, "b", 1, &one, 0, 0), HF_EXISTS);
    CHECK(get(cache, "a") == &two && get(cache, "b") == &three);
    CHECK_EQ(hf_cache_remove_version(cache, "a", 1, version), HF_EXISTS);
    CHECK_EQ(hf_cache_look(cache, "a", 1, &found), HF_OK);
    CHECK(found.version != version);
    CHECK_EQ(hf_cache_remove_version(cache, "a", 1, found.version), HF_OK);
    CHECK_EQ(hf_cache_remove_version(cache, "a", 1, found.version),
             HF_NOTFOUND);
    CHECK_EQ(hf_cache_look(cache, "a", 1, &found), HF_NOTFOUND);
    hf_cache_close(cache);
}

TEST(a_stamp_moves_with_each_change_but_loads)
{
    struct hf_cache *cache = open_cache(NULL);
    uint64_t stamp = hf_cache_stamp(cache, "a", 1);

    CHECK(stamp != 0);
    CHECK(get(cache, "a") == NULL);
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, &one, 0, stamp), HF_OK);
    CHECK_EQ(hf_cache_stamp(cache, "a", 1), stamp);
    CHECK_EQ(put(cache, "a", &two), HF_OK);
    CHECK(hf_cache_stamp(cache, "a", 1) != stamp);
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, &one, 0, stamp), HF_EXISTS);
    stamp = hf_cache_stamp(cache, "a", 1);
    CHECK_EQ(hf_cache_remove(cache, "a", 1), HF_OK);
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, &one, 0, stamp), HF_EXISTS);
    stamp = hf_cache_stamp(cache, "a", 1);
    CHECK_EQ(hf_cache_remove(cache, "a", 1), HF_NOTFOUND); /* moves as well */
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, &one, 0, stamp), HF_EXISTS);
    stamp = hf_cache_stamp(cache, "a", 1);
    CHECK_EQ(hf_cache_clear(cache), HF_OK);
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, &one, 0, stamp), HF_EXISTS);
    CHECK(get(cache, "a") == NULL);
    hf_cache_close(cache);
}

TEST(a_table_grows_and_finds_all)
{
    struct hf_cache_opts opts = {.max_count = 100000, .seed = {1, 2}};
    struct hf_cache *cache = open_cache(&opts);

    for (uint64_t i = 0; i < 50000; i++)
        CHECK_EQ(put_number(cache, i), HF_OK);
    CHECK_EQ(hf_cache_count(cache), 50000);
    for (uint64_t i = 0; i < 100000; i++)
        CHECK_EQ(has_number(cache, i), i < 50000);
    for (uint64_t i = 0; i < 50000; i += 2)
        CHECK_EQ(hf_cache_remove(cache, &i, sizeof i), HF_OK);
    for (uint64_t i = 0; i < 50000; i++)
        CHECK_EQ(has_number(cache, i), i % 2);
    hf_cache_close(cache);
}

/* ---- Whose values are, and who is told. ---- */

TEST(a_listener_is_told_once_with_the_cause)
{
    struct hf_cache_opts opts = {.max_count = 2,
                                 .policy = HF_CACHE_LRU,
                                 .removed = on_removed,
                                 .release = on_release};
    struct hf_cache *cache = open_cache(&opts);

    put(cache, "a", &one);
    put(cache, "a", &two);
    CHECK_EQ(scene.told[HF_CACHE_REPLACED], 1);
    CHECK(scene.value == &one && strcmp(scene.key, "a") == 0);
    put(cache, "b", &two);
    put(cache, "c", &three);
    CHECK_EQ(scene.told[HF_CACHE_SIZE], 1);
    CHECK(strcmp(scene.key, "a") == 0);
    CHECK_EQ(hf_cache_remove(cache, "b", 1), HF_OK);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 1);
    CHECK_EQ(hf_cache_clear(cache), HF_OK);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 2);
    put(cache, "d", &one);
    CHECK_EQ(hf_cache_put_if_absent(cache, "d", 1, &two, 0, NULL), HF_EXISTS);
    hf_cache_close(cache);
    CHECK_EQ(scene.told[HF_CACHE_CLOSED], 1);
    CHECK_EQ(scene.told[HF_CACHE_EXPIRED], 0);
    CHECK_EQ(scene.released, 5); /* not what did not get in */
}

TEST(a_value_outlives_the_guard_and_no_more)
{
    struct hf_cache_opts opts = {.release = on_release};
    struct hf_cache *cache = open_cache(&opts);
    void *value;

    put(cache, "a", &one);
    CHECK_EQ(hf_cache_enter(cache), HF_OK);
    CHECK_EQ(hf_cache_get(cache, "a", 1, &value), HF_OK);
    for (int i = 0; i < 1000; i++) /* enough for the epoch to look round */
        put(cache, "a", &two);
    CHECK(scene.released < 1000);
    hf_cache_leave(cache);
    for (int i = 0; i < 1000; i++)
        put(cache, "a", &two);
    CHECK(scene.released > 1000);
    hf_cache_close(cache);
    CHECK_EQ(scene.released, 2001);
}

static void count_read(void *context, void *value)
{
    *(void **)context = value;
}

TEST(retain_is_called_for_each_that_is_handed_out)
{
    struct hf_cache_opts opts = {.release = on_release, .retain = on_retain};
    struct hf_cache *cache = open_cache(&opts);
    struct hf_cache_found found;
    void *value = NULL;

    put(cache, "a", &one);
    CHECK_EQ(scene.retained, 0);
    CHECK(get(cache, "a") == &one);
    CHECK_EQ(scene.retained, 1);
    CHECK_EQ(hf_cache_get(cache, "a", 1, NULL), HF_OK);
    CHECK_EQ(scene.retained, 1); /* nothing was handed out */
    CHECK_EQ(hf_cache_look(cache, "a", 1, &found), HF_OK);
    CHECK_EQ(hf_cache_put_if_absent(cache, "a", 1, &two, 0, &value), HF_EXISTS);
    CHECK_EQ(scene.retained, 3);
    CHECK_EQ(hf_cache_read(cache, "a", 1, count_read, &value), HF_OK);
    CHECK(value == &one);
    CHECK_EQ(hf_cache_read(cache, "b", 1, count_read, &value), HF_NOTFOUND);
    CHECK_EQ(scene.retained, 3);
    hf_cache_close(cache);
    CHECK_EQ(scene.released, 1);
}

/* ---- All entries. ---- */

struct seen {
    unsigned times[64];
    unsigned stop_after;
    unsigned count;
};

static bool see(void *context, const void *key, size_t key_len,
                const struct hf_cache_found *found)
{
    struct seen *seen = context;
    uint64_t number;

    memcpy(&number, key, key_len);
    seen->times[number]++;
    return found->version != 0 && ++seen->count != seen->stop_after;
}

static bool is_odd(void *context, const void *key, size_t key_len, void *value)
{
    uint64_t number;

    (void)context;
    (void)value;
    memcpy(&number, key, key_len);
    return number % 2 == 1;
}

TEST(all_are_visited_or_removed)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_cache_opts opts = {.max_count = 1000,
                                 .segments = 4,
                                 .clock = test_clock(&clock),
                                 .removed = on_removed};
    struct hf_cache *cache = open_cache(&opts);
    struct seen seen = {.stop_after = 1000};
    uint64_t count = 0;

    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(hf_cache_put(cache, &i, sizeof i, &one, i == 9 ? 1 : 0),
                 HF_OK);
    test_clock_advance(&clock, 1);
    CHECK_EQ(hf_cache_visit(cache, see, &seen), HF_OK);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(seen.times[i], i != 9);
    seen = (struct seen){.stop_after = 10};
    CHECK_EQ(hf_cache_visit(cache, see, &seen), HF_OK);
    CHECK_EQ(seen.count, 10);
    CHECK_EQ(hf_cache_remove_if(cache, is_odd, NULL, &count), HF_OK);
    CHECK_EQ(count, 31);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 31);
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(has_number(cache, i), i % 2 == 0);
    CHECK_EQ(hf_cache_clear(cache), HF_OK);
    CHECK_EQ(hf_cache_count(cache), 0);
    hf_cache_close(cache);
}

TEST(many_are_put_at_once)
{
    struct hf_cache *cache = open_cache(NULL);
    struct hf_cache_item items[] = {{"a", 1, &one, 0},
                                    {"b", 1, &two, 0},
                                    {"c", 1, NULL, 0},
                                    {"d", 1, &one, 0}};
    size_t done = 9;

    CHECK_EQ(hf_cache_put_all(cache, items, 2, &done), HF_OK);
    CHECK_EQ(done, 2);
    CHECK_EQ(hf_cache_put_all(cache, items, 4, &done), HF_INVALID);
    CHECK_EQ(done, 2);
    CHECK(get(cache, "d") == NULL && get(cache, "b") == &two);
    CHECK_EQ(hf_cache_put_all(cache, NULL, 0, NULL), HF_OK);
    CHECK_EQ(hf_cache_put_all(cache, NULL, 1, NULL), HF_INVALID);
    hf_cache_close(cache);
}

/* ---- Figures, bad input, no memory. ---- */

TEST(figures_and_the_list_of_objects)
{
    struct hf_cache_opts opts = {.name = "figures", .max_count = 100};
    struct hf_cache *cache = open_cache(&opts);
    char text[65536];

    put(cache, "a", &one);
    (void)get(cache, "a");
    (void)get(cache, "a");
    (void)get(cache, "b");
    struct hf_cache_stats stats = stats_of(cache);
    CHECK_EQ(stats.hits, 2);
    CHECK_EQ(stats.misses, 1);
    CHECK_EQ(stats.puts, 1);
    CHECK_EQ(stats.count, 1);
    CHECK_EQ(stats.weight, 1);
    CHECK(stats.window >= 1);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "figures") != NULL && strstr(text, "cache") != NULL);
    hf_cache_close(cache);
    hf_cache_stats(NULL, &stats);
    CHECK_EQ(hf_cache_count(NULL), 0);
}

static enum hf_status load_none(void *context, const void *key, size_t key_len,
                                struct hf_cache_loaded *out)
{
    (void)context;
    (void)key;
    (void)key_len;
    (void)out;
    return HF_NOTFOUND;
}

TEST(bad_options_are_refused)
{
    struct hf_pool *pool = hf_pool_default();
    struct hf_cache *cache = NULL;
    const struct hf_cache_opts bad[] = {
        {.policy = (enum hf_cache_policy)3},
        {.max_count = HF_CACHE_COUNT_MAX + 1},
        {.max_weight = 5},
        {.weigh = weigh},
        {.weigh = weigh, .max_weight = HF_CACHE_WEIGHT_MAX + 1},
        {.weigh = weigh, .max_weight = 5, .max_count = 5},
        {.segments = 3},
        {.segments = 2 * HF_CACHE_SEGMENTS_MAX},
        {.segments = 8, .max_count = 7},
        {.retain = on_retain},
        {.refresh_ns = 1},
        {.refresher = pool},
        {.sweep_ns = UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_cache_open(&cache, &bad[i]), HF_INVALID);
    CHECK(cache == NULL);
    CHECK_EQ(hf_cache_open(NULL, NULL), HF_INVALID);
}

TEST(bad_input_is_refused)
{
    struct hf_cache *cache = open_cache(NULL);
    size_t huge = (size_t)HF_CACHE_KEY_MAX + 1;

    CHECK_EQ(hf_cache_get(NULL, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_get(cache, NULL, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_get(cache, "a", huge, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_look(cache, NULL, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_read(cache, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_put(cache, "a", 1, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_cache_put(cache, NULL, 1, &one, 0), HF_INVALID);
    CHECK_EQ(hf_cache_put_if_absent(cache, "a", 1, NULL, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_put_if(cache, "a", 1, NULL, 0, 1), HF_INVALID);
    CHECK_EQ(hf_cache_put_loaded(cache, "a", 1, NULL, 0, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove(cache, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_version(cache, "a", 1, 0), HF_INVALID);
    CHECK_EQ(hf_cache_remove_if(cache, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_visit(cache, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_get_or_load(cache, "a", 1, NULL, NULL, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(
        hf_cache_get_or_load(cache, NULL, 1, load_none, NULL, HF_NOW, NULL),
        HF_INVALID);
    CHECK_EQ(hf_cache_stamp(cache, NULL, 1), 0);
    CHECK_EQ(hf_cache_count(cache), 0);
    hf_cache_close(cache);
}

/* Each allocation of a call fails once: the call says so, nothing has changed,
 * and it can be made again. */
TEST(no_memory)
{
    struct hf_cache_opts opts = {
        .max_count = 100000, .ttl_ns = SECOND, .release = on_release};
    struct hf_cache *cache = NULL;
    enum hf_status status = HF_NOMEM;

    memset(&scene, 0, sizeof scene);
    for (int policy = HF_CACHE_TINYLFU; policy <= HF_CACHE_S3FIFO; policy++) {
        opts.policy = (enum hf_cache_policy)policy;
        status = HF_NOMEM;
        for (uint64_t after = 0; status == HF_NOMEM; after++) {
            hf_memory_fail_after(after);
            status = hf_cache_open(&cache, &opts);
            hf_memory_fail_never();
        }
        CHECK_EQ(status, HF_OK);
        for (uint64_t i = 0; i < 3000; i++) {
            status = HF_NOMEM;
            for (uint64_t after = 0; status == HF_NOMEM; after++) {
                CHECK(!has_number(cache, i));
                hf_memory_fail_after(after);
                status = put_number(cache, i);
                hf_memory_fail_never();
            }
            CHECK_EQ(status, HF_OK);
        }
        CHECK_EQ(hf_cache_count(cache), 3000);
        for (uint64_t i = 0; i < 3000; i++)
            CHECK(has_number(cache, i));
        hf_memory_fail_after(0);
        CHECK_EQ(hf_cache_visit(cache, see, NULL), HF_NOMEM);
        CHECK_EQ(hf_cache_remove_if(cache, is_odd, NULL, NULL), HF_NOMEM);
        CHECK_EQ(hf_cache_clear(cache), HF_OK);
        hf_memory_fail_never();
        hf_cache_close(cache);
    }
    CHECK_EQ(scene.released, 9000);
}
