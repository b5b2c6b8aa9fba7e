/* cache_policy.c - the hit ratio of each policy beside the same policy written
 * plainly, on streams of fixed seeds, and the default beside the best of all.
 */
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/cache.h"
#include "support/policies.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define ROOM  1000u
#define POINT 1.0 /* per cent */

static double ours(const struct trace *trace, enum hf_cache_policy policy)
{
    struct hf_cache_opts opts = {
        .max_count = trace->room, .policy = policy, .seed = {1, 2}};
    struct hf_cache *cache = NULL;
    struct hf_cache_stats stats;
    static char value;

    CHECK_EQ(hf_cache_open(&cache, &opts), HF_OK);
    for (uint32_t i = 0; i < trace->count; i++) {
        const void *key = &trace->keys[i];
        if (hf_cache_get(cache, key, sizeof(uint32_t), NULL) != HF_OK)
            CHECK_EQ(hf_cache_put(cache, key, sizeof(uint32_t), &value, 0),
                     HF_OK);
    }
    hf_cache_stats(cache, &stats);
    CHECK_EQ(stats.hits + stats.misses, trace->count);
    CHECK_EQ(stats.puts, stats.misses);
    CHECK(stats.count <= trace->room);
    hf_cache_close(cache);
    return 100.0 * (double)stats.hits / trace->count;
}

static double percent(const struct trace *trace, uint32_t hits)
{
    return 100.0 * hits / trace->count;
}

/* `behind`: by how many points the default may be behind the best. */
static void check_trace(const char *name, double behind)
{
    const char *san = getenv("HOLDFAST_SAN");
    bool quick = san != NULL && *san != '\0';
    double point = quick ? 2 * POINT : POINT; /* of a shorter stream */
    struct trace trace;

    trace_make(&trace, name, quick ? 60000 : 300000, ROOM, 7);
    double lru = percent(&trace, policy_lru(&trace));
    double tinylfu = percent(&trace, policy_tinylfu(&trace, false));
    double s3fifo = percent(&trace, policy_s3fifo(&trace));
    double best = percent(&trace, policy_best(&trace));
    double our_lru = ours(&trace, HF_CACHE_LRU);
    double our_tinylfu = ours(&trace, HF_CACHE_TINYLFU);
    double our_s3fifo = ours(&trace, HF_CACHE_S3FIFO);
    double most = lru > tinylfu ? lru : tinylfu;

    most = s3fifo > most ? s3fifo : most;
    printf("%-9s tinylfu %.2f (%.2f) lru %.2f (%.2f) s3fifo %.2f (%.2f) "
           "best %.2f\n",
           name, our_tinylfu, tinylfu, our_lru, lru, our_s3fifo, s3fifo, best);
    trace_free(&trace);
    CHECK(fabs(our_lru - lru) < 0.01);
    CHECK(our_tinylfu > tinylfu - point);
    CHECK(our_s3fifo > s3fifo - point);
    CHECK(our_tinylfu > most - behind * point);
    CHECK(our_lru <= best && our_tinylfu <= best && our_s3fifo <= best);
}

TEST(zipf)
{
    check_trace("zipf-0.7", 1);
    check_trace("zipf-0.8", 1);
    check_trace("zipf-0.9", 1);
    check_trace("zipf-1.0", 1);
    check_trace("zipf-1.1", 1);
    check_trace("zipf-1.2", 1);
}

TEST(scans_and_loops)
{
    check_trace("scan", 1);
    check_trace("loop-1.1", 1);
    check_trace("loop-2", 1);
}

/* The window must find its size first. */
TEST(what_was_asked_for_lately)
{
    check_trace("recent", 1);
}

/* Where all keys are others again and again, counting is of little use, and
 * S3-FIFO forgets sooner. */
TEST(changing_keys)
{
    check_trace("shift", 4);
    check_trace("mix", 1);
}
