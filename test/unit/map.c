/* map.c - the concurrent map in one thread: answers, growth, visits. */
#include "holdfast/map.h"

#include "holdfast/inspect.h"
#include "support/test.h"

#define MANY 5000

static char one, two, three;

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

TEST(keys_are_put_found_replaced_and_removed)
{
    struct hf_map *map = open_map(NULL);
    void *old = &three;

    CHECK_EQ(hf_map_get(map, "a", 1, NULL), HF_NOTFOUND);
    CHECK_EQ(hf_map_put(map, "a", 1, &one, &old), HF_OK);
    CHECK(old == NULL);
    CHECK(get(map, "a") == &one);
    CHECK(get(map, "b") == NULL);
    CHECK_EQ(hf_map_put(map, "a", 1, &two, &old), HF_OK);
    CHECK(old == &one);
    CHECK_EQ(hf_map_size(map), 1);
    CHECK_EQ(hf_map_remove(map, "b", 1, &old), HF_NOTFOUND);
    CHECK_EQ(hf_map_remove(map, "a", 1, &old), HF_OK);
    CHECK(old == &two);
    CHECK_EQ(hf_map_remove(map, "a", 1, NULL), HF_NOTFOUND);
    CHECK_EQ(hf_map_size(map), 0);
    hf_map_close(map);
    hf_map_close(NULL);
}

TEST(a_key_is_all_of_its_bytes)
{
    struct hf_map *map = open_map(NULL);
    char key[40];

    memset(key, 'x', sizeof key);
    for (size_t len = 0; len <= sizeof key; len++)
        CHECK_EQ(hf_map_put(map, key, len, &key[len == 40 ? 0 : len], NULL),
                 HF_OK);
    CHECK_EQ(hf_map_size(map), 41);
    for (size_t at = 0; at < sizeof key; at++) {
        char other[40];
        memcpy(other, key, sizeof other);
        other[at] = 'y';
        CHECK_EQ(hf_map_get(map, other, sizeof other, NULL), HF_NOTFOUND);
        CHECK_EQ(hf_map_get(map, other, at, NULL), HF_OK);
    }
    CHECK_EQ(hf_map_get(map, NULL, 0, NULL), HF_OK); /* the empty key */
    memset(key, 0, sizeof key);                      /* keys were copied */
    CHECK(get(map, "xxxxx") == &key[5]);
    CHECK_EQ(hf_map_put(map, "\0\1", 2, &one, NULL), HF_OK);
    CHECK_EQ(hf_map_get(map, "\0\2", 2, NULL), HF_NOTFOUND);
    hf_map_close(map);
}

TEST(conditions_decide)
{
    struct hf_map *map = open_map(NULL);
    void *existing = NULL;

    CHECK_EQ(hf_map_put_if_absent(map, "a", 1, &one, &existing), HF_OK);
    CHECK(existing == NULL);
    CHECK_EQ(hf_map_put_if_absent(map, "a", 1, &two, &existing), HF_EXISTS);
    CHECK(existing == &one);
    CHECK_EQ(hf_map_replace_if_equal(map, "a", 1, &two, &three), HF_EXISTS);
    CHECK_EQ(hf_map_replace_if_equal(map, "a", 1, &one, &three), HF_OK);
    CHECK_EQ(hf_map_replace_if_equal(map, "b", 1, &one, &three), HF_NOTFOUND);
    CHECK(get(map, "a") == &three && get(map, "b") == NULL);
    CHECK_EQ(hf_map_remove_if_equal(map, "a", 1, &one), HF_EXISTS);
    CHECK_EQ(hf_map_remove_if_equal(map, "a", 1, &three), HF_OK);
    CHECK_EQ(hf_map_remove_if_equal(map, "a", 1, &three), HF_NOTFOUND);
    hf_map_close(map);
}

TEST(a_set_tells_new_from_seen)
{
    struct hf_map *map = open_map(NULL);

    CHECK_EQ(hf_map_add(map, "a", 1), HF_OK);
    CHECK_EQ(hf_map_add(map, "a", 1), HF_EXISTS);
    CHECK(get(map, "a") == HF_MAP_MEMBER);
    CHECK_EQ(hf_map_remove(map, "a", 1, NULL), HF_OK);
    CHECK_EQ(hf_map_add(map, "a", 1), HF_OK);
    hf_map_close(map);
}

static void note_value(void *context, void *value)
{
    *(void **)context = value;
}

TEST(read_runs_a_function_on_the_value)
{
    struct hf_map *map = open_map(NULL);
    void *seen = NULL;

    CHECK_EQ(hf_map_read(map, "a", 1, note_value, &seen), HF_NOTFOUND);
    CHECK(seen == NULL);
    CHECK_EQ(hf_map_put(map, "a", 1, &one, NULL), HF_OK);
    CHECK_EQ(hf_map_read(map, "a", 1, note_value, &seen), HF_OK);
    CHECK(seen == &one);
    hf_map_close(map);
}

/* Bad input. */

static enum hf_status make_one(void *context, const void *key, size_t len,
                               void **value)
{
    (void)key;
    (void)len;
    ++*(int *)context;
    *value = &one;
    return HF_OK;
}

static void *merge_new(void *context, void *old, void *value)
{
    (void)context;
    (void)old;
    return value;
}

static bool visit_all(void *context, const void *key, size_t len, void *value)
{
    (void)key;
    (void)len;
    (void)value;
    ++*(int *)context;
    return true;
}

static void check_refused(struct hf_map *map, const void *key, size_t len)
{
    int runs = 0;

    CHECK_EQ(hf_map_get(map, key, len, NULL), HF_INVALID);
    CHECK_EQ(hf_map_read(map, key, len, note_value, NULL), HF_INVALID);
    CHECK_EQ(hf_map_put(map, key, len, &one, NULL), HF_INVALID);
    CHECK_EQ(hf_map_put_if_absent(map, key, len, &one, NULL), HF_INVALID);
    CHECK_EQ(hf_map_add(map, key, len), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, key, len, &one, &two), HF_INVALID);
    CHECK_EQ(hf_map_remove(map, key, len, NULL), HF_INVALID);
    CHECK_EQ(hf_map_remove_if_equal(map, key, len, &one), HF_INVALID);
    CHECK_EQ(hf_map_compute_if_absent(map, key, len, make_one, &runs,
                                      HF_FOREVER, NULL),
             HF_INVALID);
    CHECK_EQ(hf_map_compute_if_present(map, key, len, make_one, &runs, NULL),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(map, key, len, &one, merge_new, NULL, NULL),
             HF_INVALID);
    CHECK_EQ(runs, 0);
}

TEST(bad_input_is_refused_and_changes_nothing)
{
    struct hf_map *map = NULL;
    struct hf_map_opts opts = {.capacity = HF_MAP_CAPACITY_MAX + 1};
    struct hf_map_stats stats = {.size = 7};

    CHECK_EQ(hf_map_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_open(&map, &opts), HF_INVALID);
    opts.capacity = UINT64_MAX;
    CHECK_EQ(hf_map_open(&map, &opts), HF_INVALID);
    CHECK(map == NULL);
    map = open_map(NULL);
    check_refused(NULL, "a", 1);
    check_refused(map, NULL, 1);
    check_refused(map, "a", (size_t)HF_MAP_KEY_MAX + 1);
    check_refused(map, "a", SIZE_MAX);

    CHECK_EQ(hf_map_put(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_put_if_absent(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, "a", 1, NULL, &one), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, "a", 1, &one, NULL), HF_INVALID);
    CHECK_EQ(hf_map_remove_if_equal(map, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_map_merge(map, "a", 1, NULL, merge_new, NULL, NULL),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(map, "a", 1, &one, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_read(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_compute_if_absent(map, "a", 1, NULL, NULL, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_map_compute_if_present(map, "a", 1, NULL, NULL, NULL),
             HF_INVALID);
    CHECK_EQ(hf_map_visit(map, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_map_visit(NULL, visit_all, NULL), HF_INVALID);
    CHECK_EQ(hf_map_enter(NULL), HF_INVALID);
    hf_map_leave(NULL);
    hf_map_shutdown(NULL);
    hf_map_stats(NULL, &stats);
    hf_map_stats(map, NULL);
    CHECK_EQ(stats.size, 7);
    CHECK_EQ(hf_map_size(NULL), 0);
    CHECK_EQ(hf_map_size(map), 0);
    hf_map_close(map);
}

/* Growth, and many keys. */

static size_t key_of(char *out, int number)
{
    return (size_t)snprintf(out, 32, "key-%d", number);
}

static char values[MANY];

TEST(it_grows_and_loses_nothing)
{
    struct hf_map_opts opts = {.capacity = 1, .seed = {1, 2}};
    struct hf_map *map = open_map(&opts);
    struct hf_map_stats stats;
    char key[32];
    void *value;

    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(hf_map_put(map, key, key_of(key, i), &values[i], NULL), HF_OK);
        for (int j = i - 20 < 0 ? 0 : i - 20; j <= i; j++) {
            CHECK_EQ(hf_map_get(map, key, key_of(key, j), &value), HF_OK);
            CHECK(value == &values[j]);
        }
    }
    hf_map_stats(map, &stats);
    CHECK_EQ(stats.size, MANY);
    CHECK(stats.growths >= 9);
    CHECK(stats.bucket_count * 8 > MANY);
    CHECK_EQ(stats.growths_nomem, 0);
    for (int i = 0; i < MANY; i += 2)
        CHECK_EQ(hf_map_remove(map, key, key_of(key, i), NULL), HF_OK);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(hf_map_get(map, key, key_of(key, i), NULL),
                 i % 2 == 0 ? HF_NOTFOUND : HF_OK);
    CHECK_EQ(hf_map_size(map), MANY / 2);
    hf_map_close(map);
}

static uint64_t hash_worst(void *context, const void *key, size_t len)
{
    (void)context;
    (void)key;
    return len; /* a few hashes for all keys */
}

TEST(a_hash_that_is_always_the_same_is_slow_and_right)
{
    struct hf_map_opts opts = {.capacity = 1, .hash = hash_worst};
    struct hf_map *map = open_map(&opts);
    char key[32];
    void *value;
    int seen = 0;

    for (int i = 0; i < 200; i++)
        CHECK_EQ(hf_map_put(map, key, key_of(key, i), &values[i], NULL), HF_OK);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(hf_map_get(map, key, key_of(key, i), &value), HF_OK);
        CHECK(value == &values[i]);
    }
    CHECK_EQ(hf_map_visit(map, visit_all, &seen), HF_OK);
    CHECK_EQ(seen, 200);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(hf_map_remove(map, key, key_of(key, i), NULL), HF_OK);
    CHECK_EQ(hf_map_size(map), 0);
    hf_map_close(map);
}

TEST(capacity_makes_room_at_once)
{
    struct hf_map_opts opts = {.capacity = 1000};
    struct hf_map *map = open_map(&opts);
    struct hf_map_stats stats;
    char key[32];

    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_map_add(map, key, key_of(key, i)), HF_OK);
    hf_map_stats(map, &stats);
    CHECK_EQ(stats.bucket_count, 256);
    CHECK_EQ(stats.growths, 0);
    hf_map_close(map);
}

/* Visit. */

struct visits {
    struct hf_map *map;
    int limit;
    int count;
    unsigned char times[MANY * 2];
};

static int number_of(const void *key, size_t len)
{
    char text[32] = "";
    int number = -1;

    memcpy(text, key, len);
    (void)sscanf(text, "key-%d", &number);
    return number;
}

static bool count_visit(void *context, const void *key, size_t len, void *value)
{
    struct visits *visits = context;

    (void)value;
    visits->times[number_of(key, len)]++;
    return ++visits->count < visits->limit;
}

/* Adds keys while it visits, so that the map grows under the visit. */
static bool grow_visit(void *context, const void *key, size_t len, void *value)
{
    struct visits *visits = context;
    char text[32];
    int number = number_of(key, len);

    if (number < MANY) {
        size_t text_len = key_of(text, number + MANY);
        if (hf_map_add(visits->map, text, text_len) != HF_OK)
            return false;
    }
    return count_visit(context, key, len, value);
}

TEST(visit_finds_each_key_once_and_ends_when_told)
{
    static struct visits visits;
    struct hf_map *map = open_map(NULL);
    char key[32];

    memset(&visits, 0, sizeof visits);
    visits.limit = INT32_MAX;
    CHECK_EQ(hf_map_visit(map, count_visit, &visits), HF_OK);
    CHECK_EQ(visits.count, 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(hf_map_put(map, key, key_of(key, i), &values[i], NULL), HF_OK);
    CHECK_EQ(hf_map_visit(map, count_visit, &visits), HF_OK);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(visits.times[i], 1);
    visits.count = 0;
    visits.limit = 10;
    CHECK_EQ(hf_map_visit(map, count_visit, &visits), HF_OK);
    CHECK_EQ(visits.count, 10);
    hf_map_close(map);
}

TEST(visit_finds_each_key_once_while_the_map_grows)
{
    static struct visits visits;
    struct hf_map_opts opts = {.seed = {3, 4}};
    struct hf_map_stats before, after;
    char key[32];

    memset(&visits, 0, sizeof visits);
    visits.limit = INT32_MAX;
    visits.map = open_map(&opts);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(hf_map_add(visits.map, key, key_of(key, i)), HF_OK);
    hf_map_stats(visits.map, &before);
    CHECK_EQ(hf_map_visit(visits.map, grow_visit, &visits), HF_OK);
    hf_map_stats(visits.map, &after);
    CHECK(after.growths > before.growths);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(visits.times[i], 1);
    for (int i = MANY; i < MANY * 2; i++)
        CHECK(visits.times[i] <= 1);
    CHECK_EQ(hf_map_size(visits.map), MANY * 2);
    hf_map_close(visits.map);
}

TEST(what_was_removed_is_freed_while_the_map_is_in_use)
{
    struct hf_map *map = open_map(NULL);
    struct hf_map_stats stats;

    for (int i = 0; i < 10000; i++) {
        CHECK_EQ(hf_map_put(map, "a", 1, &one, NULL), HF_OK);
        CHECK_EQ(hf_map_remove(map, "a", 1, NULL), HF_OK);
    }
    hf_map_stats(map, &stats);
    CHECK(stats.garbage < 1000);
    hf_map_close(map);
}

/* Statistics and inspection. */

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, "map") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed_by_name_with_its_size)
{
    struct hf_map_opts opts = {.name = "users"};
    struct hf_map *map = open_map(&opts);
    struct hf_inspect_row row = {.kind = ""};

    CHECK_EQ(hf_map_add(map, "a", 1), HF_OK);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_TEXT(row.name, strlen(row.name), "users");
    CHECK_EQ(row.depth, 1);
    CHECK(row.capacity == HF_INSPECT_NONE);
    hf_map_close(map);
    row = (struct hf_inspect_row){.kind = ""};
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.kind[0], 0);
}
