/* dedup.c - hf_dedup beside a mutex with a hash table, tbb and libcuckoo. */
#include "bench/keep/dedup.h"

#include "holdfast/dedup.h"

extern const struct contest_side dedup_mutex;
extern const struct contest_side dedup_tbb;
extern const struct contest_side dedup_cuckoo;

#define ITEMS 2000000

static const struct contest_work works[] = {
    {.name = "half-new-1", .threads = 1, .exact = ITEMS, .fresh = true},
    {.name = "half-new-2", .threads = 2, .exact = ITEMS, .fresh = true},
    {.name = "half-new-8", .threads = 8, .exact = ITEMS, .fresh = true},
    {.name = NULL},
};

CONTEST_INLINE bool ours_add(struct contest_thread *thread,
                             const struct table_key *key, uint64_t now_ns)
{
    return hf_dedup_add(thread->self, key->bytes, sizeof key->bytes, now_ns,
                        NULL) == HF_OK;
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_dedup_opts opts = {
        .name = work->name, .items_max = 2 * ITEMS, .window_ns = DEDUP_WINDOW};
    struct hf_dedup *dedup;

    if (hf_dedup_open(&dedup, &opts) != HF_OK)
        contest_fail("hf_dedup_open");
    return dedup;
}

static void ours_close(void *self)
{
    hf_dedup_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    dedup_run(thread, ours_add);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};

int main(int argc, char **argv)
{
    const struct contest_side *sides[] = {&ours, &dedup_mutex, &dedup_tbb,
                                          &dedup_cuckoo, NULL};

    return contest_main(argc, argv, works, sides);
}
