/* map_compute.c - functions of the map that make values, and values that the
 * map frees, in one thread.
 */
#include "holdfast/map.h"

#include "base/memory.h"
#include "support/test.h"

static char one, two, three, four;

static struct hf_map *open_map(const struct hf_map_opts *opts)
{
    struct hf_map *map = NULL;
    CHECK_EQ(hf_map_open(&map, opts), HF_OK);
    return map;
}

static void *get(struct hf_map *map, const char *key)
{
    void *value = NULL;
    return hf_map_get(map, key, strlen(key), &value) == HF_OK ? value : NULL;
}

static size_t key_of(char *out, int number)
{
    return (size_t)snprintf(out, 32, "key-%d", number);
}

static uint64_t hash_worst(void *context, const void *key, size_t len)
{
    (void)context;
    (void)key;
    return len; /* a few hashes for all keys */
}

static bool visit_all(void *context, const void *key, size_t len, void *value)
{
    (void)key;
    (void)len;
    (void)value;
    ++*(int *)context;
    return true;
}

/* ---- Functions that make values. ---- */

struct maker {
    struct hf_map *map;
    enum hf_status answer;
    void *value;
    int runs;
    enum hf_status inner;
    void *inner_value;
};

static enum hf_status make(void *context, const void *key, size_t len,
                           void **value)
{
    struct maker *maker = context;

    (void)key;
    (void)len;
    maker->runs++;
    *value = maker->value;
    return maker->answer;
}

TEST(compute_if_absent_makes_once)
{
    struct maker maker = {.answer = HF_IO};
    struct hf_map *map = open_map(NULL);
    struct hf_map_stats stats;
    void *value = NULL;

    CHECK_EQ(
        hf_map_compute_if_absent(map, "a", 1, make, &maker, HF_NOW, &value),
        HF_IO);
    CHECK_EQ(maker.runs, 1);
    CHECK(get(map, "a") == NULL && value == NULL);
    maker.answer = HF_OK; /* but made NULL */
    CHECK_EQ(
        hf_map_compute_if_absent(map, "a", 1, make, &maker, HF_NOW, &value),
        HF_NOMEM);
    CHECK_EQ(hf_map_size(map), 0);
    maker.value = &one;
    CHECK_EQ(
        hf_map_compute_if_absent(map, "a", 1, make, &maker, HF_NOW, &value),
        HF_OK);
    CHECK(value == &one && get(map, "a") == &one);
    CHECK_EQ(hf_map_size(map), 1);
    maker.value = &two;
    CHECK_EQ(
        hf_map_compute_if_absent(map, "a", 1, make, &maker, HF_NOW, &value),
        HF_EXISTS);
    CHECK(value == &one);
    CHECK_EQ(maker.runs, 3);
    hf_map_stats(map, &stats);
    CHECK_EQ(stats.made, 3);
    CHECK_EQ(stats.made_failed, 2);
    CHECK_EQ(stats.made_waits, 0);
    hf_map_shutdown(map);
    hf_map_shutdown(map);
    CHECK_EQ(
        hf_map_compute_if_absent(map, "a", 1, make, &maker, HF_FOREVER, &value),
        HF_EXISTS);
    CHECK_EQ(
        hf_map_compute_if_absent(map, "b", 1, make, &maker, HF_FOREVER, &value),
        HF_CLOSED);
    CHECK_EQ(hf_map_put(map, "b", 1, &two, NULL), HF_OK);
    CHECK_EQ(maker.runs, 3);
    hf_map_close(map);
}

/* Uses the map for the key that it makes. */
static enum hf_status make_inside(void *context, const void *key, size_t len,
                                  void **value)
{
    struct maker *maker = context;
    struct maker again = {.answer = HF_OK, .value = &three};

    *value = maker->value;
    if (hf_map_get(maker->map, key, len, NULL) != HF_NOTFOUND ||
        hf_map_remove(maker->map, key, len, NULL) != HF_NOTFOUND ||
        hf_map_replace_if_equal(maker->map, key, len, &one, &two) !=
            HF_NOTFOUND)
        return HF_CORRUPT;
    maker->inner = hf_map_compute_if_absent(maker->map, key, len, make, &again,
                                            HF_FOREVER, NULL);
    if (maker->inner_value != NULL &&
        hf_map_put(maker->map, key, len, maker->inner_value, NULL) != HF_OK)
        return HF_CORRUPT;
    return maker->answer;
}

TEST(a_function_that_asks_for_its_own_key_is_refused_and_a_put_wins)
{
    struct hf_map *map = open_map(NULL);
    struct maker maker = {.map = map, .answer = HF_OK, .value = &one};
    void *value = NULL;

    CHECK_EQ(hf_map_compute_if_absent(map, "a", 1, make_inside, &maker,
                                      HF_FOREVER, &value),
             HF_OK);
    CHECK_EQ(maker.inner, HF_INVALID);
    CHECK(value == &one);
    maker.inner_value = &two;
    CHECK_EQ(hf_map_compute_if_absent(map, "b", 1, make_inside, &maker,
                                      HF_FOREVER, &value),
             HF_EXISTS);
    CHECK_EQ(maker.inner, HF_INVALID);
    CHECK(value == &two && get(map, "b") == &two);
    maker.answer = HF_IO; /* fails, but a value was put */
    CHECK_EQ(hf_map_compute_if_absent(map, "c", 1, make_inside, &maker,
                                      HF_FOREVER, &value),
             HF_IO);
    CHECK(get(map, "c") == &two);
    CHECK_EQ(hf_map_size(map), 3);
    hf_map_close(map);
}

static enum hf_status change(void *context, const void *key, size_t len,
                             void **value)
{
    struct maker *maker = context;

    (void)key;
    (void)len;
    maker->runs++;
    maker->inner_value = *value;
    *value = maker->value;
    return maker->answer;
}

TEST(compute_if_present_replaces_removes_or_fails)
{
    struct hf_map *map = open_map(NULL);
    struct maker maker = {.answer = HF_OK, .value = &two};
    void *result = &four;

    CHECK_EQ(hf_map_compute_if_present(map, "a", 1, change, &maker, &result),
             HF_NOTFOUND);
    CHECK_EQ(maker.runs, 0);
    CHECK_EQ(hf_map_put(map, "a", 1, &one, NULL), HF_OK);
    CHECK_EQ(hf_map_compute_if_present(map, "a", 1, change, &maker, &result),
             HF_OK);
    CHECK(maker.inner_value == &one && result == &two);
    CHECK(get(map, "a") == &two);
    maker.answer = HF_IO;
    maker.value = &three;
    CHECK_EQ(hf_map_compute_if_present(map, "a", 1, change, &maker, &result),
             HF_IO);
    CHECK(get(map, "a") == &two && result == &two);
    maker.answer = HF_OK;
    maker.value = NULL;
    CHECK_EQ(hf_map_compute_if_present(map, "a", 1, change, &maker, &result),
             HF_OK);
    CHECK(get(map, "a") == NULL && result == NULL);
    CHECK_EQ(maker.runs, 3);
    CHECK_EQ(hf_map_size(map), 0);
    hf_map_close(map);
}

static void *merge(void *context, void *old, void *value)
{
    struct maker *maker = context;

    maker->runs++;
    return old == &one && value == &two ? maker->value : &four;
}

TEST(merge_puts_merges_or_removes)
{
    struct hf_map *map = open_map(NULL);
    struct maker maker = {.value = &three};
    void *result = NULL;

    CHECK_EQ(hf_map_merge(map, "a", 1, &one, merge, &maker, &result), HF_OK);
    CHECK(result == &one && maker.runs == 0);
    CHECK_EQ(hf_map_merge(map, "a", 1, &two, merge, &maker, &result), HF_OK);
    CHECK(result == &three && get(map, "a") == &three && maker.runs == 1);
    CHECK_EQ(hf_map_put(map, "a", 1, &one, NULL), HF_OK);
    maker.value = NULL;
    CHECK_EQ(hf_map_merge(map, "a", 1, &two, merge, &maker, &result), HF_OK);
    CHECK(result == NULL && get(map, "a") == NULL);
    hf_map_close(map);
}

/* ---- Values that the map owns. ---- */

#define OWNED 400

static unsigned char freed[OWNED];

static void note_freed(void *context, void *value)
{
    ((unsigned char *)context)[(unsigned char *)value - freed]++;
}

static enum hf_status make_owned(void *context, const void *key, size_t len,
                                 void **value)
{
    struct maker *maker = context;

    if (maker->inner_value != NULL &&
        hf_map_put(maker->map, key, len, maker->inner_value, NULL) != HF_OK)
        return HF_CORRUPT;
    *value = maker->value;
    return maker->answer;
}

static void *merge_third(void *context, void *old, void *value)
{
    (void)old;
    (void)value;
    return context;
}

TEST(values_that_the_map_owns_are_freed_once_each)
{
    struct hf_map_opts opts = {.free_value = note_freed, .context = freed};
    struct hf_map *map = open_map(&opts);
    struct maker maker = {.map = map,
                          .answer = HF_OK,
                          .value = &freed[300],
                          .inner_value = &freed[301]};
    char key[32];
    void *value;

    memset(freed, 0, sizeof freed);
    CHECK_EQ(hf_map_enter(map), HF_OK);
    for (int i = 0; i < 100; i++) { /* put, replaced, and half removed */
        size_t len = key_of(key, i);
        CHECK_EQ(hf_map_put(map, key, len, &freed[i], NULL), HF_OK);
        CHECK_EQ(hf_map_put(map, key, len, &freed[i], NULL), HF_OK);
        CHECK_EQ(hf_map_put(map, key, len, &freed[100 + i], &value), HF_OK);
        CHECK(value == &freed[i]);
        CHECK_EQ(hf_map_replace_if_equal(map, key, len, value, value),
                 HF_EXISTS);
        if (i % 2 == 0)
            CHECK_EQ(hf_map_remove(map, key, len, &value), HF_OK);
        CHECK_EQ(hf_map_put_if_absent(map, key, len, &freed[200 + i], NULL),
                 i % 2 == 0 ? HF_OK : HF_EXISTS);
    }
    for (int i = 0; i < OWNED; i++)
        CHECK_EQ(freed[i], 0); /* this thread could be reading them */
    hf_map_leave(map);
    CHECK_EQ(hf_map_add(map, "member", 6), HF_OK);
    CHECK_EQ(hf_map_remove(map, "member", 6, NULL), HF_OK);
    CHECK_EQ(hf_map_add(map, "member", 6), HF_OK);
    /* 300 is made in vain, 301 is put, 302 is merged, 303 not even merged. */
    CHECK_EQ(hf_map_compute_if_absent(map, "m", 1, make_owned, &maker, HF_NOW,
                                      &value),
             HF_EXISTS);
    CHECK_EQ(freed[300], 1);
    maker.answer = HF_IO; /* what a function that fails made is its own */
    maker.value = &freed[304];
    maker.inner_value = NULL;
    CHECK_EQ(hf_map_compute_if_absent(map, "n", 1, make_owned, &maker, HF_NOW,
                                      &value),
             HF_IO);
    CHECK_EQ(hf_map_merge(map, "m", 1, &freed[303], merge_third, &freed[302],
                          &value),
             HF_OK);
    CHECK(value == &freed[302]);
    CHECK_EQ(hf_map_merge(map, "m", 1, &freed[303], merge_third, &freed[302],
                          &value),
             HF_OK); /* the same again: nothing changes */
    hf_map_close(map);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(freed[i], 1);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(freed[200 + i], i % 2 == 0);
    CHECK_EQ(freed[301], 1);
    CHECK_EQ(freed[302], 1);
    CHECK_EQ(freed[303], 0);
    CHECK_EQ(freed[304], 0);
}

/* ---- Out of memory. ---- */

static enum hf_status fill_map(struct hf_map *map, int *done)
{
    struct maker maker = {.answer = HF_OK, .value = &one};
    char key[32];
    enum hf_status status = HF_OK;

    for (; *done < 60 && status == HF_OK; *done += status == HF_OK) {
        size_t len = key_of(key, *done);
        switch (*done % 4) {
        case 0:
            status = hf_map_put(map, key, len, &one, NULL);
            break;
        case 1:
            status = hf_map_add(map, key, len);
            break;
        case 2:
            status = hf_map_merge(map, key, len, &one, merge, &maker, NULL);
            break;
        default:
            status = hf_map_compute_if_absent(map, key, len, make, &maker,
                                              HF_NOW, NULL);
        }
        CHECK_EQ(hf_map_size(map), *done + (status == HF_OK));
        CHECK_EQ(hf_map_get(map, key, len, NULL),
                 status == HF_OK ? HF_OK : HF_NOTFOUND);
    }
    return status;
}

static void check_without_memory(uint64_t (*hash)(void *context,
                                                  const void *key, size_t len))
{
    bool all_done = false;
    uint64_t failed_growths = 0;

    for (uint64_t limit = 0; !all_done; limit++) {
        struct hf_map_opts opts = {.capacity = 1, .seed = {5, limit + 1}};
        struct hf_map_stats stats;
        int seen = 0;

        opts.hash = hash;
        struct hf_map *map = NULL;
        char key[32];
        int done = 0;

        hf_memory_fail_after(limit);
        enum hf_status status = hf_map_open(&map, &opts);
        if (status == HF_OK)
            status = fill_map(map, &done);
        hf_memory_fail_never();
        all_done = status == HF_OK;
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (map == NULL)
            continue;
        for (int i = 0; i < 60; i++)
            CHECK_EQ(hf_map_get(map, key, key_of(key, i), NULL),
                     i < done ? HF_OK : HF_NOTFOUND);
        CHECK_EQ(fill_map(map, &done), HF_OK); /* goes on where it was */
        CHECK_EQ(hf_map_visit(map, visit_all, &seen), HF_OK);
        CHECK_EQ(seen, 60);
        hf_map_stats(map, &stats);
        failed_growths += stats.growths_nomem;
        hf_map_close(map);
    }
    CHECK(failed_growths > 0);
}

TEST(without_memory_nothing_changes)
{
    check_without_memory(NULL);
}

/* All keys in one long chain: moving it needs memory as well. */
TEST(without_memory_nothing_moves)
{
    check_without_memory(hash_worst);
}
