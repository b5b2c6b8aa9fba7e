/* cache.c - hf_cache beside an LRU under one lock, Caffeine and TBB's. */
#include "bench/keep/cache.h"

#include "holdfast/cache.h"

extern const struct contest_side cache_mutex;
extern const struct contest_side cache_caffeine;
extern const struct contest_side cache_tbb;

#define WORK(text, count, kind)                                            \
    {                                                                      \
        .name = text, .threads = count, .shape = kind, .size = CACHE_ROOM, \
    }

static const struct contest_work works[] = {
    WORK("get-1", 1, CACHE_GET),
    WORK("get-2", 2, CACHE_GET),
    WORK("mixed-1", 1, CACHE_MIXED),
    WORK("mixed-2", 2, CACHE_MIXED),
    WORK("load-1", 1, CACHE_LOAD),
    WORK("load-2", 2, CACHE_LOAD),
    {.name = NULL},
};

CONTEST_INLINE bool ours_get(struct contest_thread *thread,
                             const struct table_key *key, void **value)
{
    return hf_cache_get(thread->self, key->bytes, sizeof key->bytes, value) ==
           HF_OK;
}

CONTEST_INLINE void ours_put(struct contest_thread *thread,
                             const struct table_key *key, void *value)
{
    if (hf_cache_put(thread->self, key->bytes, sizeof key->bytes, value, 0) !=
        HF_OK)
        contest_fail("hf_cache_put");
}

static enum hf_status loader(void *context, const void *key, size_t key_len,
                             struct hf_cache_loaded *out)
{
    (void)context;
    (void)key_len;
    out->value = cache_loaded(key);
    return HF_OK;
}

CONTEST_INLINE void *ours_load(struct contest_thread *thread,
                               const struct table_key *key)
{
    void *value = NULL;

    if (hf_cache_get_or_load(thread->self, key->bytes, sizeof key->bytes,
                             loader, NULL, HF_FOREVER, &value) != HF_OK)
        contest_fail("hf_cache_get_or_load");
    return value;
}

static void *open_with(const struct contest_work *work,
                       enum hf_cache_policy policy)
{
    struct hf_cache_opts opts = {
        .name = work->name, .max_count = work->size, .policy = policy};
    struct hf_cache *cache;

    if (hf_cache_open(&cache, &opts) != HF_OK)
        contest_fail("hf_cache_open");
    return cache;
}

static void *ours_open(const struct contest_work *work)
{
    return open_with(work, HF_CACHE_TINYLFU);
}

static void *lru_open(const struct contest_work *work)
{
    return open_with(work, HF_CACHE_LRU);
}

static void *s3fifo_open(const struct contest_work *work)
{
    return open_with(work, HF_CACHE_S3FIFO);
}

static void ours_close(void *self)
{
    hf_cache_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    cache_run(thread, ours_get, ours_put, ours_load);
}

#define SIDE(text, how)                                                  \
    {                                                                    \
        .name = text, .open = how, .close = ours_close, .run = ours_run, \
        .enter = cache_enter,                                            \
    }

static const struct contest_side ours = SIDE("ours", ours_open);
static const struct contest_side ours_lru = SIDE("ours-lru", lru_open);
static const struct contest_side ours_s3fifo = SIDE("ours-s3fifo", s3fifo_open);

int main(int argc, char **argv)
{
    const struct contest_side *sides[] = {
        &ours,           &ours_lru,  &ours_s3fifo, &cache_mutex,
        &cache_caffeine, &cache_tbb, NULL};

    (void)cache_stream(); /* before any thread */
    return contest_main(argc, argv, works, sides);
}
