/* map_reclaim.c - what readers of the map may still hold is not freed.
 *
 * One fiber reads. The other, step by step, makes what the reader may come
 * across, takes it out, and makes the epoch look for what can be freed: a node
 * that was moved, a bucket behind a bucket, a table between two others. Freed
 * too early, it is read after: the address sanitizer tells.
 */
#include "support/schedule.h"
#include "support/test.h"
#include "sync/map_state.h"

#define SCHEDULE_COUNT 20000

static struct {
    struct hf_map *map;
    int freed; /* values */
} scene;

static void value_free(void *context, void *value)
{
    (void)context;
    (void)value;
    scene.freed++;
}

/* Key n belongs into bucket n % 4 as long as there are no more than four. */
static uint64_t hash_plain(void *context, const void *key, size_t len)
{
    uint64_t number = *(const unsigned char *)key;

    (void)context;
    (void)len;
    return number << 56 | number;
}

static void put(unsigned char key)
{
    if (hf_map_put(scene.map, &key, 1, &scene, NULL) != HF_OK)
        schedule_wrong("put");
}

static void drop(unsigned char key)
{
    if (hf_map_remove(scene.map, &key, 1, NULL) != HF_OK)
        schedule_wrong("remove");
}

static void flush(void)
{
    hf_epoch_flush(scene.map->epoch);
}

static void setup(uint64_t capacity, bool owns)
{
    struct hf_map_opts opts = {.capacity = capacity,
                               .hash = hash_plain,
                               .free_value = owns ? value_free : NULL};

    scene.freed = 0;
    if (hf_map_open(&scene.map, &opts) != HF_OK)
        schedule_wrong("no map");
}

static void teardown(void *context)
{
    (void)context;
    hf_map_close(scene.map);
}

static void get_often(unsigned char key, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        (void)hf_map_get(scene.map, &key, 1, NULL);
}

static void check_case(const char *name,
                       void (*setup_case)(void *context, uint64_t seed),
                       void (*body)(void *context, unsigned fiber))
{
    struct schedule_case c = {.name = name,
                              .fibers = 2,
                              .setup = setup_case,
                              .teardown = teardown,
                              .body = body,
                              .schedules = SCHEDULE_COUNT};
    schedule_check(&c);
}

/* ---- A node is put, moved, removed and freed while it is looked for. ---- */

static void setup_five(void *context, uint64_t seed)
{
    (void)context;
    setup(1, seed % 2 == 0);
    for (unsigned char key = 10; key < 15; key++)
        put(key);
}

static void node_moves(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        get_often(12, 2);
        return;
    }
    drop(12);
    flush(); /* a new era: who is inside now is not reading what comes */
    put(20); /* into the slot of 12 */
    put(21); /* the bucket is full */
    put(22); /* and moves */
    drop(20);
    flush();
}

TEST(a_node_that_was_moved_and_removed)
{
    check_case("node", setup_five, node_moves);
}

/* ---- A bucket behind a full one comes and goes. ---- */

static void setup_sixteen(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    setup(16, false); /* four buckets: six keys, six, two, two */
    for (unsigned char key = 0; key < 24; key++) {
        if (key % 4 < 2 || key < 8)
            put(key);
    }
}

static void bucket_moves(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        get_often(100, 2); /* to the end of the chain, in vain */
        return;
    }
    flush();
    put(24); /* behind the first bucket */
    put(25); /* the second is full: all move */
    flush();
}

TEST(a_bucket_behind_a_bucket)
{
    check_case("bucket", setup_sixteen, bucket_moves);
}

/* ---- A table that was current for a while. ---- */

static void setup_six(void *context, uint64_t seed)
{
    setup_five(context, seed);
    put(16);
}

static void tables_change(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        get_often(10, 2);
        return;
    }
    flush();
    put(15); /* to two buckets, one of which gets its sixth key with 20 */
    put(18);
    put(20);
    put(22); /* to four */
    flush();
}

static bool tables_changed(void *context, FILE *explain)
{
    struct hf_map_stats stats;

    (void)context;
    hf_map_stats(scene.map, &stats);
    fprintf(explain, "%llu growths", (unsigned long long)stats.growths);
    return stats.growths >= 2;
}

TEST(a_table_between_two_others)
{
    struct schedule_case c = {.name = "table",
                              .fibers = 2,
                              .setup = setup_six,
                              .teardown = teardown,
                              .body = tables_change,
                              .check = tables_changed,
                              .schedules = SCHEDULE_COUNT};
    schedule_check(&c);
}
