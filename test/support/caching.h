/* caching.h - what the tests of hf_cache share: a cache whose callbacks count,
 * and short ways to put and get. */
#ifndef TEST_SUPPORT_CACHING_H
#define TEST_SUPPORT_CACHING_H

#include <string.h>

#include "holdfast/cache.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)

static __attribute__((unused)) char one, two, three;

static struct {
    unsigned told[HF_CACHE_CAUSES];
    unsigned released;
    unsigned retained;
    void *value; /* the last one told of */
    char key[32];
    uint64_t weight; /* what weigh() says */
} scene;

static __attribute__((unused)) void on_removed(void *context, const void *key,
                                               size_t key_len, void *value,
                                               enum hf_cache_cause cause)
{
    (void)context;
    scene.told[cause]++;
    scene.value = value;
    memcpy(scene.key, key, key_len);
    scene.key[key_len] = '\0';
}

static __attribute__((unused)) void on_release(void *context, void *value)
{
    (void)context;
    (void)value;
    scene.released++;
}

static __attribute__((unused)) void on_retain(void *context, void *value)
{
    (void)context;
    (void)value;
    scene.retained++;
}

static __attribute__((unused)) uint64_t weigh(void *context, const void *key,
                                              size_t key_len, const void *value)
{
    (void)context;
    (void)key;
    (void)key_len;
    (void)value;
    return scene.weight;
}

static __attribute__((unused)) struct hf_cache *
open_cache(const struct hf_cache_opts *opts)
{
    struct hf_cache *cache = NULL;

    memset(&scene, 0, sizeof scene);
    CHECK_EQ(hf_cache_open(&cache, opts), HF_OK);
    return cache;
}

static __attribute__((unused)) enum hf_status put(struct hf_cache *cache,
                                                  const char *key, void *value)
{
    return hf_cache_put(cache, key, strlen(key), value, 0);
}

static __attribute__((unused)) void *get(struct hf_cache *cache,
                                         const char *key)
{
    void *value = NULL;
    enum hf_status status = hf_cache_get(cache, key, strlen(key), &value);

    CHECK_EQ(status, value == NULL ? HF_NOTFOUND : HF_OK);
    return value;
}

static __attribute__((unused)) enum hf_status put_number(struct hf_cache *cache,
                                                         uint64_t number)
{
    return hf_cache_put(cache, &number, sizeof number, &one, 0);
}

static __attribute__((unused)) bool has_number(struct hf_cache *cache,
                                               uint64_t number)
{
    return hf_cache_get(cache, &number, sizeof number, NULL) == HF_OK;
}

static __attribute__((unused)) struct hf_cache_stats
stats_of(struct hf_cache *cache)
{
    struct hf_cache_stats stats;

    hf_cache_stats(cache, &stats);
    return stats;
}

#endif
