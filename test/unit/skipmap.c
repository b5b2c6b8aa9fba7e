/* skipmap.c - what one thread sees of an ordered map, and every bad input. */
#include "holdfast/skipmap.h"

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/inspect.h"
#include "support/test.h"
#include "sync/skipmap_state.h"

static struct hf_skipmap *map;
static int values[1000];
static unsigned freed[1000]; /* times that each value was freed */

static void *value_of(uint64_t number)
{
    return &values[number];
}

static void note_freed(void *context, void *value)
{
    ++((unsigned *)context)[(int *)value - values];
}

static void open_map(bool owns)
{
    const struct hf_skipmap_opts opts = {
        .name = "index",
        .seed = 7,
        .free_value = owns ? note_freed : NULL,
        .context = freed,
    };

    memset(freed, 0, sizeof freed);
    CHECK_EQ(hf_skipmap_open(&map, &opts), HF_OK);
}

static enum hf_status put(const char *key, uint64_t number)
{
    return hf_skipmap_put(map, key, strlen(key), value_of(number), NULL);
}

static enum hf_status remove_text(const char *key)
{
    return hf_skipmap_remove(map, key, strlen(key), NULL);
}

/* The number of the value at the key, 0 if there is none. */
static uint64_t get(const char *key)
{
    void *value = NULL;
    enum hf_status status = hf_skipmap_get(map, key, strlen(key), &value);

    CHECK((status == HF_OK) == (value != NULL));
    return value == NULL ? 0 : (uint64_t)((int *)value - values);
}

TEST(what_was_put_is_got_until_it_is_removed)
{
    void *old = &old;

    open_map(false);
    CHECK_EQ(get("bob"), 0);
    CHECK_EQ(hf_skipmap_put(map, "bob", 3, value_of(1), &old), HF_OK);
    CHECK(old == NULL);
    CHECK_EQ(get("bob"), 1);
    CHECK_EQ(get("bo"), 0);
    CHECK_EQ(get("bobb"), 0);
    CHECK_EQ(hf_skipmap_put(map, "bob", 3, value_of(2), &old), HF_OK);
    CHECK(old == value_of(1));
    CHECK_EQ(hf_skipmap_size(map), 1);
    CHECK_EQ(hf_skipmap_remove(map, "bob", 3, &old), HF_OK);
    CHECK(old == value_of(2));
    CHECK_EQ(hf_skipmap_remove(map, "bob", 3, &old), HF_NOTFOUND);
    CHECK_EQ(hf_skipmap_size(map), 0);
    CHECK_EQ(put("bob", 3), HF_OK);
    CHECK_EQ(get("bob"), 3);
    hf_skipmap_close(map);
}

TEST(conditions_are_kept)
{
    void *existing = NULL;

    open_map(false);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(1), value_of(2)),
             HF_NOTFOUND);
    CHECK_EQ(hf_skipmap_remove_if_equal(map, "a", 1, value_of(1)), HF_NOTFOUND);
    CHECK_EQ(hf_skipmap_put_if_absent(map, "a", 1, value_of(1), &existing),
             HF_OK);
    CHECK(existing == NULL);
    CHECK_EQ(hf_skipmap_put_if_absent(map, "a", 1, value_of(2), &existing),
             HF_EXISTS);
    CHECK(existing == value_of(1));
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(3), value_of(2)),
             HF_EXISTS);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(1), value_of(2)),
             HF_OK);
    CHECK_EQ(hf_skipmap_remove_if_equal(map, "a", 1, value_of(1)), HF_EXISTS);
    CHECK_EQ(get("a"), 2);
    CHECK_EQ(hf_skipmap_remove_if_equal(map, "a", 1, value_of(2)), HF_OK);
    CHECK_EQ(get("a"), 0);
    hf_skipmap_close(map);
}

/* The keys in order, each followed by a space. */
struct text {
    char bytes[200];
    size_t len;
    int room; /* visits before it says enough */
};

static bool write_key(void *context, const void *key, size_t key_len,
                      void *value)
{
    struct text *text = context;

    CHECK(value != NULL);
    memcpy(text->bytes + text->len, key, key_len);
    text->len += key_len;
    text->bytes[text->len++] = ' ';
    return --text->room > 0;
}

static void check_range(const char *from, const char *to, int room,
                        const char *expected)
{
    struct text text = {.len = 0, .room = room};

    CHECK_EQ(hf_skipmap_visit(map, from, from == NULL ? 0 : strlen(from), to,
                              to == NULL ? 0 : strlen(to), write_key, &text),
             HF_OK);
    CHECK_TEXT(text.bytes, text.len, expected);
}

TEST(keys_are_in_the_order_of_their_bytes)
{
    static const char *const keys[] = {
        "abcdefgh", "b",         "abcdefghi", "",   "abcdefgg",
        "a",        "abcdefghz", "abcdefgz",  "ab", "\xff"};
    const char sorted[] = " a ab abcdefgg abcdefgh abcdefghi abcdefghz "
                          "abcdefgz b \xff ";

    open_map(false);
    check_range(NULL, NULL, 99, "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK_EQ(put(keys[i], i + 1), HF_OK);
    check_range(NULL, NULL, 99, sorted);
    check_range("", NULL, 99, sorted);
    check_range("a", "abcdefgh", 99, "a ab abcdefgg ");
    check_range("abcdefgh", "abcdefgha", 99, "abcdefgh ");
    check_range("abcdefghi", "b", 99, "abcdefghi abcdefghz abcdefgz ");
    check_range("b", "b", 99, "");
    check_range("c", "b", 99, "");
    check_range(NULL, "", 99, "");
    check_range(NULL, NULL, 2, " a ");
    check_range("\xff\xff", NULL, 99, "");
    hf_skipmap_close(map);
}

TEST(zero_bytes_in_keys_count)
{
    open_map(false);
    CHECK_EQ(hf_skipmap_put(map, "a\0", 2, value_of(2), NULL), HF_OK);
    CHECK_EQ(hf_skipmap_put(map, "a", 1, value_of(1), NULL), HF_OK);
    CHECK_EQ(hf_skipmap_put(map, "a\0\0\0\0\0\0\0\0", 9, value_of(3), NULL),
             HF_OK);
    CHECK_EQ(hf_skipmap_put(map, NULL, 0, value_of(4), NULL), HF_OK);
    CHECK_EQ(hf_skipmap_size(map), 4);
    CHECK_EQ(get("a"), 1);
    CHECK_EQ(get(""), 4);
    struct hf_skipmap_entry entry = {.key = NULL};
    CHECK_EQ(hf_skipmap_higher(map, "a", 1, &entry), HF_OK);
    CHECK_EQ(entry.key_len, 2);
    CHECK_EQ(hf_skipmap_last(map, &entry), HF_OK);
    CHECK_EQ(entry.key_len, 9);
    hf_skipmap_close(map);
}

typedef enum hf_status near(struct hf_skipmap *, const void *, size_t,
                            struct hf_skipmap_entry *);

static void check_near(near *call, const char *key, const char *expected)
{
    char found[16];
    struct hf_skipmap_entry entry = {.key = found, .key_cap = sizeof found};
    enum hf_status status = call(map, key, strlen(key), &entry);

    if (expected == NULL) {
        CHECK_EQ(status, HF_NOTFOUND);
        return;
    }
    CHECK_EQ(status, HF_OK);
    CHECK_TEXT(found, entry.key_len, expected);
    CHECK(entry.value == value_of(get(expected)));
}

TEST(neighbours_are_found_from_every_side)
{
    struct hf_skipmap_entry entry = {.key = NULL};

    open_map(false);
    CHECK_EQ(hf_skipmap_first(map, &entry), HF_EMPTY);
    CHECK_EQ(hf_skipmap_last(map, &entry), HF_EMPTY);
    check_near(hf_skipmap_floor, "x", NULL);
    check_near(hf_skipmap_ceiling, "", NULL);
    CHECK_EQ(put("d", 4), HF_OK);
    CHECK_EQ(put("b", 2), HF_OK);
    CHECK_EQ(put("f", 6), HF_OK);
    check_near(hf_skipmap_floor, "a", NULL);
    check_near(hf_skipmap_floor, "b", "b");
    check_near(hf_skipmap_floor, "c", "b");
    check_near(hf_skipmap_floor, "z", "f");
    check_near(hf_skipmap_lower, "b", NULL);
    check_near(hf_skipmap_lower, "c", "b");
    check_near(hf_skipmap_lower, "d", "b");
    check_near(hf_skipmap_ceiling, "a", "b");
    check_near(hf_skipmap_ceiling, "d", "d");
    check_near(hf_skipmap_ceiling, "e", "f");
    check_near(hf_skipmap_ceiling, "g", NULL);
    check_near(hf_skipmap_higher, "b", "d");
    check_near(hf_skipmap_higher, "", "b");
    check_near(hf_skipmap_higher, "f", NULL);
    CHECK_EQ(hf_skipmap_first(map, &entry), HF_OK);
    CHECK(entry.value == value_of(2));
    CHECK_EQ(hf_skipmap_last(map, &entry), HF_OK);
    CHECK(entry.value == value_of(6));
    hf_skipmap_close(map);
}

TEST(a_key_too_long_for_the_buffer_is_cut_but_never_taken)
{
    char found[3] = "..";
    struct hf_skipmap_entry entry = {.key = found, .key_cap = 2};

    open_map(false);
    CHECK_EQ(put("abcd", 1), HF_OK);
    CHECK_EQ(hf_skipmap_first(map, &entry), HF_OK);
    CHECK_EQ(entry.key_len, 4);
    CHECK_TEXT(found, 2, "ab");
    memset(found, '.', 2);
    CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_FULL);
    CHECK_EQ(entry.key_len, 4);
    CHECK_TEXT(found, 2, "..");
    CHECK_EQ(get("abcd"), 1);
    entry.key = NULL;
    entry.value = NULL;
    CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_OK);
    CHECK(entry.value == value_of(1));
    CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_EMPTY);
    hf_skipmap_close(map);
}

TEST(numbers_sort_as_numbers_and_come_out_smallest_first)
{
    unsigned char key[8];
    struct hf_skipmap_entry entry = {.key = key, .key_cap = sizeof key};

    open_map(false);
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t number = i * 379 % 500;
        hf_skipmap_key_u64(key, number << 29 | number);
        CHECK_EQ(hf_skipmap_put(map, key, 8, value_of(number), NULL), HF_OK);
    }
    CHECK_EQ(hf_skipmap_size(map), 500);
    for (uint64_t i = 0; i < 500; i++) {
        CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_OK);
        CHECK_EQ(hf_skipmap_u64_of(key), i << 29 | i);
        CHECK(entry.value == value_of(i));
    }
    CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_EMPTY);
    CHECK_EQ(hf_skipmap_size(map), 0);
    hf_skipmap_close(map);
}

/* Random calls, beside an array that says what must be so. */
static bool there[256];

static bool check_there(void *context, const void *key, size_t key_len,
                        void *value)
{
    unsigned *next = context;
    const unsigned char *byte = key;

    CHECK_EQ(key_len, 1);
    while (!there[*next])
        ++*next;
    CHECK_EQ(*byte, *next);
    CHECK(value == value_of(*byte));
    ++*next;
    return true;
}

static void check_floor(unsigned char key)
{
    unsigned char found;
    struct hf_skipmap_entry entry = {.key = &found, .key_cap = 1};
    int expected = key;

    while (expected >= 0 && !there[expected])
        expected--;
    CHECK_EQ(hf_skipmap_floor(map, &key, 1, &entry),
             expected < 0 ? HF_NOTFOUND : HF_OK);
    CHECK(expected < 0 || found == expected);
}

TEST(random_calls_agree_with_an_array)
{
    struct hf_random random;
    uint64_t count = 0;

    memset(there, 0, sizeof there);
    hf_random_init(&random, test_seed());
    open_map(false);
    for (int i = 0; i < 20000; i++) {
        unsigned char key = (unsigned char)hf_random_next(&random);
        if (hf_random_below(&random, 2)) {
            CHECK_EQ(
                hf_skipmap_put_if_absent(map, &key, 1, value_of(key), NULL),
                there[key] ? HF_EXISTS : HF_OK);
            count += !there[key];
            there[key] = true;
        } else {
            CHECK_EQ(hf_skipmap_remove(map, &key, 1, NULL),
                     there[key] ? HF_OK : HF_NOTFOUND);
            count -= there[key];
            there[key] = false;
        }
        check_floor(key);
        if (i % 64 == 0) {
            unsigned next = 0;
            CHECK_EQ(
                hf_skipmap_visit(map, NULL, 0, NULL, 0, check_there, &next),
                HF_OK);
            CHECK_EQ(hf_skipmap_size(map), count);
        }
    }
    hf_skipmap_close(map);
}

TEST(a_value_that_left_is_freed_once_and_one_that_did_not_get_in_never)
{
    open_map(true);
    CHECK_EQ(put("a", 1), HF_OK);
    CHECK_EQ(put("a", 2), HF_OK);
    CHECK_EQ(hf_skipmap_put_if_absent(map, "a", 1, value_of(3), NULL),
             HF_EXISTS);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(1), value_of(3)),
             HF_EXISTS);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "x", 1, value_of(1), value_of(3)),
             HF_NOTFOUND);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(2), value_of(4)),
             HF_OK);
    CHECK_EQ(remove_text("a"), HF_OK);
    CHECK_EQ(put("b", 5), HF_OK);
    struct hf_skipmap_entry entry = {.key = NULL};
    CHECK_EQ(hf_skipmap_take_first(map, &entry), HF_OK);
    CHECK_EQ(put("c", 6), HF_OK);
    hf_skipmap_close(map);
    static const unsigned expected[] = {0, 1, 1, 0, 1, 1, 1, 0};
    for (int i = 0; i < 8; i++)
        CHECK_EQ(freed[i], expected[i]);
}

static void check_alive(void *context, void *value)
{
    /* It is replaced while it is read, again and again, but stays. */
    for (uint64_t i = 0; i < 300; i++)
        CHECK_EQ(put("a", 2 + i), HF_OK);
    CHECK(value == value_of(1));
    CHECK_EQ(freed[1], 0);
    *(bool *)context = true;
}

TEST(a_value_lasts_while_it_is_read_or_guarded)
{
    void *value;
    bool ran = false;

    open_map(true);
    CHECK_EQ(put("a", 1), HF_OK);
    CHECK_EQ(hf_skipmap_read(map, "a", 1, check_alive, &ran), HF_OK);
    CHECK(ran);
    CHECK_EQ(hf_skipmap_read(map, "b", 1, check_alive, &ran), HF_NOTFOUND);

    CHECK_EQ(hf_skipmap_enter(map), HF_OK);
    CHECK_EQ(put("a", 900), HF_OK);
    CHECK_EQ(hf_skipmap_get(map, "a", 1, &value), HF_OK);
    CHECK(value == value_of(900));
    for (uint64_t i = 0; i < 300; i++)
        CHECK_EQ(put("a", 400 + i), HF_OK);
    CHECK_EQ(freed[900], 0);
    hf_skipmap_leave(map);
    for (uint64_t i = 0; i < 300; i++)
        CHECK_EQ(put("a", 400 + i), HF_OK);
    CHECK_EQ(freed[900], 1);
    hf_skipmap_close(map);
}

TEST(bad_input_is_refused)
{
    struct hf_skipmap_entry entry = {.key = NULL};
    const size_t huge = (size_t)HF_SKIPMAP_KEY_MAX + 1;
    void *value = NULL;

    CHECK_EQ(hf_skipmap_open(NULL, NULL), HF_INVALID);
    open_map(false);
    CHECK_EQ(hf_skipmap_put(NULL, "a", 1, &entry, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_put(map, NULL, 1, &entry, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_put(map, "a", huge, &entry, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_put(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_put_if_absent(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_get(NULL, "a", 1, &value), HF_INVALID);
    CHECK_EQ(hf_skipmap_get(map, NULL, 1, &value), HF_INVALID);
    CHECK_EQ(hf_skipmap_get(map, "a", SIZE_MAX, &value), HF_INVALID);
    CHECK_EQ(hf_skipmap_read(map, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_read(NULL, "a", 1, check_alive, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_enter(NULL), HF_INVALID);
    hf_skipmap_leave(NULL);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, &entry, NULL),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_replace_if_equal(NULL, "a", 1, &entry, &entry),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_remove(NULL, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_remove(map, NULL, 2, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_remove_if_equal(NULL, "a", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_first(NULL, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_first(map, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_last(map, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_take_first(NULL, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_take_first(map, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_floor(NULL, "a", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_lower(map, NULL, 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_ceiling(map, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_higher(map, "a", huge, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(map, NULL, 0, NULL, 0, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(NULL, NULL, 0, NULL, 0, check_there, NULL),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(map, NULL, 1, NULL, 0, check_there, NULL),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(map, "a", 1, "b", huge, check_there, NULL),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_size(NULL), 0);
    CHECK_EQ(hf_skipmap_size(map), 0);
    hf_skipmap_close(map);
    hf_skipmap_close(NULL);
}

TEST(without_memory_nothing_changes)
{
    const struct hf_skipmap_opts opts = {.free_value = note_freed,
                                         .context = freed};
    enum hf_status status = HF_NOMEM;

    memset(freed, 0, sizeof freed);
    map = NULL;
    for (uint64_t i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 20);
        hf_memory_fail_after(i);
        status = hf_skipmap_open(&map, &opts);
        hf_memory_fail_never();
        CHECK((status == HF_OK) == (map != NULL));
    }
    for (uint64_t i = 0; i < 2; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(put("a", 1), HF_NOMEM);
        CHECK_EQ(hf_skipmap_put_if_absent(map, "a", 1, value_of(1), NULL),
                 HF_NOMEM);
        hf_memory_fail_never();
        CHECK_EQ(get("a"), 0);
    }
    CHECK_EQ(put("a", 1), HF_OK);
    hf_memory_fail_after(0);
    CHECK_EQ(put("a", 2), HF_NOMEM);
    CHECK_EQ(hf_skipmap_replace_if_equal(map, "a", 1, value_of(1), value_of(2)),
             HF_NOMEM);
    CHECK_EQ(get("a"), 1);
    CHECK_EQ(remove_text("a"), HF_OK);
    hf_memory_fail_never();
    hf_skipmap_close(map);
    CHECK_EQ(freed[1], 1);
    CHECK_EQ(freed[2], 0);
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    uint64_t *depth = context;

    if (strcmp(row->kind, "skipmap") == 0 && strcmp(row->name, "index") == 0)
        *depth = row->depth;
}

TEST(figures_are_told_and_listed)
{
    struct hf_skipmap_stats stats;
    uint64_t depth = 99;
    unsigned char key[8];

    open_map(false);
    for (uint64_t i = 0; i < 1000; i++) {
        hf_skipmap_key_u64(key, i);
        CHECK_EQ(hf_skipmap_put(map, key, 8, value_of(i), NULL), HF_OK);
    }
    CHECK_EQ(remove_text("none"), HF_NOTFOUND);
    hf_skipmap_key_u64(key, 17);
    CHECK_EQ(hf_skipmap_remove(map, key, 8, NULL), HF_OK);
    hf_skipmap_stats(map, &stats);
    CHECK_EQ(stats.size, 999);
    CHECK(stats.levels >= 5 && stats.levels <= 24);
    CHECK_EQ(stats.restarts, 0);
    CHECK_EQ(stats.garbage, 1);
    CHECK_EQ(hf_inspect(find_row, &depth), HF_OK);
    CHECK_EQ(depth, 999);
    hf_skipmap_close(map);
    depth = 99;
    CHECK_EQ(hf_inspect(find_row, &depth), HF_OK);
    CHECK_EQ(depth, 99);
    hf_skipmap_stats(NULL, &stats);
    CHECK_EQ(stats.levels, 0);
    hf_skipmap_stats(NULL, NULL);
}

/* A slow inserter can link an upper level of its node after the node was
 * removed, and then unlinks it itself. Here is what others see meanwhile: a
 * node without a value at level 1, out of level 0. */
TEST(a_dead_node_above_hides_nothing_and_is_retired_when_the_last_level_goes)
{
    struct hf_epoch_stats stats;

    open_map(false);
    for (int i = 0; map->head->next[1].value == NULL; i++) {
        CHECK(i < 100);
        (void)remove_text("k");
        CHECK_EQ(put("k", 1), HF_OK);
    }
    struct skipmap_node *dead = map->head->next[1].value;
    CHECK_EQ(dead->height, 2);
    dead->value.value = NULL;
    for (int level = 0; level < 2; level++)
        dead->next[level].value = skipmap_mark(dead->next[level].value);
    map->head->next[1].value = NULL; /* only level 0 is met */
    hf_epoch_stats(map->epoch, &stats);
    uint64_t retired = stats.retired;
    CHECK_EQ(get("l"), 0);
    CHECK(map->head->next[0].value == NULL);
    hf_epoch_stats(map->epoch, &stats);
    CHECK_EQ(stats.retired, retired);
    CHECK_EQ(dead->left.value, 1);

    for (int i = 0;; i++) { /* the key comes back with one level */
        CHECK(i < 100);
        CHECK_EQ(put("k", 2), HF_OK);
        if (((struct skipmap_node *)map->head->next[0].value)->height == 1)
            break;
        (void)remove_text("k");
    }
    map->head->next[1].value = dead;
    CHECK_EQ(get("k"), 2);
    hf_epoch_stats(map->epoch, &stats);
    retired = stats.retired;
    CHECK_EQ(put("k", 3), HF_OK); /* its walk unlinks */
    CHECK(map->head->next[1].value == NULL);
    hf_epoch_stats(map->epoch, &stats);
    CHECK_EQ(stats.retired, retired + 1);
    CHECK_EQ(get("k"), 3);
    hf_skipmap_close(map);
}
