/* skipmap.c - hf_skipmap beside libcds' SkipListMap. */
#include "holdfast/skipmap.h"

#include "table.h"

extern const struct contest_side skipmap_cds;

#define KEYS 100000

static const struct contest_work works[] = {
    TABLE_WORKS("reads-100k", TABLE_READS, KEYS),
    TABLE_WORKS("writes-100k", TABLE_WRITES, KEYS),
    TABLE_WORKS("growth-100k", TABLE_GROWTH, KEYS),
    {.name = NULL},
};

CONTEST_INLINE bool ours_get(struct contest_thread *thread,
                             const struct table_key *key, void **value)
{
    return hf_skipmap_get(thread->self, key->bytes, sizeof key->bytes, value) ==
           HF_OK;
}

CONTEST_INLINE void ours_put(struct contest_thread *thread,
                             const struct table_key *key, void *value)
{
    if (hf_skipmap_put(thread->self, key->bytes, sizeof key->bytes, value,
                       NULL))
        contest_fail("hf_skipmap_put");
}

CONTEST_INLINE void ours_remove(struct contest_thread *thread,
                                const struct table_key *key)
{
    /* Another thread may have removed it. */
    (void)hf_skipmap_remove(thread->self, key->bytes, sizeof key->bytes, NULL);
}

static void ours_close(void *self)
{
    hf_skipmap_close(self);
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
    struct hf_skipmap *map;

    if (hf_skipmap_open(&map, &(struct hf_skipmap_opts){.name = work->name}))
        contest_fail("hf_skipmap_open");
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

static const struct contest_side *const sides[] = {
    &ours,
    &skipmap_cds,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
