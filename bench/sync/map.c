/* map.c - hf_map beside rculfhash, libcuckoo and tbb::concurrent_hash_map. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "holdfast/map.h"
#include "table.h"

extern const struct contest_side map_rculfhash;
extern const struct contest_side map_cuckoo;
extern const struct contest_side map_tbb;

#define FEW  10000
#define MANY 1000000

static const struct contest_work works[] = {
    TABLE_WORKS("reads-10k", TABLE_READS, FEW),
    TABLE_WORKS("writes-10k", TABLE_WRITES, FEW),
    TABLE_WORKS("reads-1m", TABLE_READS, MANY),
    TABLE_WORKS("writes-1m", TABLE_WRITES, MANY),
    TABLE_WORKS("growth-1m", TABLE_GROWTH, MANY),
    {.name = NULL},
};

CONTEST_INLINE bool ours_get(struct contest_thread *thread,
                             const struct table_key *key, void **value)
{
    return hf_map_get(thread->self, key->bytes, sizeof key->bytes, value) ==
           HF_OK;
}

CONTEST_INLINE void ours_put(struct contest_thread *thread,
                             const struct table_key *key, void *value)
{
    if (hf_map_put(thread->self, key->bytes, sizeof key->bytes, value, NULL))
        contest_fail("hf_map_put");
}

CONTEST_INLINE void ours_remove(struct contest_thread *thread,
                                const struct table_key *key)
{
    /* Another thread may have removed it. */
    (void)hf_map_remove(thread->self, key->bytes, sizeof key->bytes, NULL);
}

static void ours_close(void *self)
{
    hf_map_close(self);
}

static void ours_enter(struct contest_thread *thread)
{
    table_fill(thread, ours_get, ours_put);
}

static void ours_run(struct contest_thread *thread)
{
    table_run(thread, ours_get, ours_put, ours_remove);
}

static void ours_check(struct contest_thread *thread)
{
    table_check(thread, ours_get);
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_map *map;

    if (hf_map_open(&map, &(struct hf_map_opts){.name = work->name}))
        contest_fail("hf_map_open");
    return map;
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .enter = ours_enter,
    .check = ours_check,
};

/* With the peers' hash, which promises less than the keyed one. */
static uint64_t unkeyed_hash(void *context, const void *key, size_t len)
{
    (void)context;
    return XXH3_64bits(key, len);
}

static void *unkeyed_open(const struct contest_work *work)
{
    struct hf_map *map;

    if (hf_map_open(&map, &(struct hf_map_opts){.name = work->name,
                                                .hash = unkeyed_hash}))
        contest_fail("hf_map_open");
    return map;
}

static const struct contest_side ours_xxh3 = {
    .name = "ours-xxh3",
    .open = unkeyed_open,
    .close = ours_close,
    .run = ours_run,
    .enter = ours_enter,
    .check = ours_check,
};

static const struct contest_side *const sides[] = {
    &ours, &ours_xxh3, &map_rculfhash, &map_cuckoo, &map_tbb, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
