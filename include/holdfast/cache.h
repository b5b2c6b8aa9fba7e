/* cache.h - what was fetched once, kept close for as long as it is worth it.
 *
 * Byte-string keys to pointers, bounded by count or by weight. What has to go
 * when it is full is the policy's to say; when an entry is too old, its time to
 * live says; and what is not there can be loaded, once for all who ask:
 *
 *   get ---> [ segment: table of buckets -> entries ]     lock-free
 *              |  which were read?  (a few, by thread)
 *              v
 *            [ segment's lock: policy, expiry, loads ]    put, remove, load
 *
 *   HF_CACHE_TINYLFU  new entries pass a small window; to stay they must have
 *                     been asked for more often than what they would push out.
 *                     The window grows and shrinks by what that does to the
 *                     hit rate. For almost everything.
 *   HF_CACHE_LRU      the one that was not read for longest goes.
 *   HF_CACHE_S3FIFO   a small queue for what came, a main queue for what was
 *                     read again, and the names of what went lately.
 *
 * Values. A value is any pointer but NULL. Three manners:
 *   - without `release` values are the caller's; the cache frees nothing.
 *   - with `release` a value is the cache's from the moment it got in. release
 *     is called once for each that left, when nobody can be reading it any
 *     more. What get gave is good only between hf_cache_enter() and
 *     hf_cache_leave(); hf_cache_read() does both around a function.
 *   - with `release` and `retain` each get calls retain() on what it hands out
 *     while that is sure to live: for values that count their owners. The
 *     caller gives it back in its own way; no guard is needed.
 * A value that did not get in (HF_EXISTS, HF_NOMEM, ...) stays the caller's.
 *
 * Time to live. From the put: `ttl_ns` of the call, or the default, never more
 * than the maximum; with `idle_ns` also from the last read. At its instant an
 * entry is gone for every call, one nanosecond before it is there. What is gone
 * is taken out in small steps, by calls that write and by hf_cache_sweep(),
 * which a scheduler can call.
 *
 * Loads. One loader runs for a key however many ask; the others wait for it,
 * each until its own deadline, and get what it got. A put, remove or clear
 * while a loader runs makes that loader's value old: those who waited already
 * get it, it is not kept, and who asks from then on starts a load of its own.
 * So after a remove has returned nobody gets what was there before it. For
 * loads that are made elsewhere, hf_cache_stamp() before and
 * hf_cache_put_loaded() after promise the same.
 *
 * Removal. `removed` is told of each value that leaves, once, with the cause,
 * outside locks, before it is released. What never got in is not told of.
 *
 * Threads: any call but close may overlap any other. Functions that are passed
 *          in run outside locks and may use the cache (not close it), except
 *          weigh, retain and release, which must not.
 * Memory:  keys are copied. An entry costs some 130 bytes, its key's, and 8 to
 *          24 for table and policy. A call may return HF_NOMEM, also a get in
 *          a thread's first call; then nothing was changed.
 * Time:    by `clock`; deadlines too. A get looks at the clock only if the
 *          entry has a time to live.
 *
 *   call                      linearizable  lock-free      allocates
 *   get, look, read, stamp    yes (1)       yes (2)        no
 *   put, put if, remove       yes (1)       no             an entry
 *   get or load               yes (1)       when it is     a record, an entry
 *                                           there
 *   visit, remove if          each key (3)  no             a list of entries
 *   clear                     each segment  no             no
 *   count, weight, stats      no (4)        yes            no
 *
 *   (1) Of each key; between changes an entry may leave by size or by time.
 *   (2) A get now and then tries the segment's lock, to tell the policy what
 *       was read, and goes on if another has it.
 *   (3) A key that is there all the while is visited exactly once.
 *   (4) Exact while nobody is in a call. Never above the bound for longer than
 *       a put takes.
 *
 * Example:
 *
 *   static enum hf_status load(void *context, const void *key, size_t key_len,
 *                              struct hf_cache_loaded *out)
 *   {
 *       (void)context;
 *       out->value = malloc(key_len + 1);
 *       if (out->value == NULL)
 *           return HF_NOMEM;
 *       memcpy(out->value, key, key_len);
 *       ((char *)out->value)[key_len] = '\0';
 *       out->ttl_ns = 60000000000; // a minute
 *       return HF_OK;
 *   }
 *   static void release(void *context, void *value)
 *   {
 *       (void)context;
 *       free(value);
 *   }
 *   int main(void)
 *   {
 *       struct hf_cache *cache;
 *       struct hf_cache_opts opts = {
 *           .max_count = 1000, .load = load, .release = release};
 *       void *value;
 *       assert(hf_cache_open(&cache, &opts) == HF_OK);
 *       assert(hf_cache_enter(cache) == HF_OK);
 *       assert(hf_cache_get_or_load(cache, "ann", 3, NULL, NULL, HF_FOREVER,
 *                                   &value) == HF_OK);
 *       printf("%s\n", (char *)value);
 *       hf_cache_leave(cache);
 *       assert(hf_cache_remove(cache, "ann", 3) == HF_OK);
 *       assert(hf_cache_get(cache, "ann", 3, NULL) == HF_NOTFOUND);
 *       hf_cache_close(cache);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_CACHE_H
#define HOLDFAST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/pool.h"
#include "holdfast/scheduler.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_CACHE_COUNT_DEFAULT 10000u
#define HF_CACHE_COUNT_MAX     (UINT64_C(1) << 32)
#define HF_CACHE_WEIGHT_MAX    (UINT64_C(1) << 62)
#define HF_CACHE_ENTRY_MAX     UINT32_MAX /* weight of one entry */
#define HF_CACHE_KEY_MAX       (1u << 30) /* bytes of a key */
#define HF_CACHE_SEGMENTS_MAX  64u

struct hf_cache;

enum hf_cache_policy {
    HF_CACHE_TINYLFU,
    HF_CACHE_LRU,
    HF_CACHE_S3FIFO,
};

enum hf_cache_cause {
    HF_CACHE_EXPLICIT, /* remove, remove_if, clear; or its loader says that
                        * there is no such thing any more */
    HF_CACHE_REPLACED, /* another value for the same key */
    HF_CACHE_SIZE,     /* there was no room */
    HF_CACHE_EXPIRED,  /* its time was over */
    HF_CACHE_CLOSED,   /* hf_cache_close() */
    HF_CACHE_CAUSES
};

/* What a loader found. */
struct hf_cache_loaded {
    void *value;
    uint64_t ttl_ns; /* 0: the default */
};

/* HF_OK: out->value is the cache's, or as said above. HF_NOTFOUND: there is no
 * such thing, which is kept for `negative_ttl_ns`. Other: it failed, which is
 * told to all who wait, and nothing is kept. */
typedef enum hf_status hf_cache_load_fn(void *context, const void *key,
                                        size_t key_len,
                                        struct hf_cache_loaded *out);

struct hf_cache_opts {
    const char *name; /* for hf_inspect() */
    enum hf_cache_policy policy;
    uint64_t max_count;  /* entries; 0: HF_CACHE_COUNT_DEFAULT. With a weigher
                          * 0, since the weight is the bound */
    uint64_t max_weight; /* the sum of weights; with a weigher, not 0 */
    /* At most HF_CACHE_ENTRY_MAX; 0 takes no room and never goes for size. What
     * is heavier than a segment's share gets in and goes at once. */
    uint64_t (*weigh)(void *context, const void *key, size_t key_len,
                      const void *value);
    uint64_t ttl_ns;           /* of puts that name none; 0: for ever */
    uint64_t ttl_max_ns;       /* no entry lives longer; 0: no maximum */
    uint64_t idle_ns;          /* gone if not read for so long; 0: never */
    uint64_t negative_ttl_ns;  /* of "no such thing"; 0: that is not kept */
    uint64_t refresh_ns;       /* see hf_cache_get_or_load(); 0: never */
    hf_cache_load_fn *load;    /* of gets that name none; NULL: none */
    struct hf_pool *refresher; /* runs refreshes; NULL: the caller does. Must
                                * outlive the cache and not give up a task
                                * that it took. Needs `load` */
    void (*release)(void *context, void *value); /* see "Values" */
    void (*retain)(void *context, void *value);  /* needs release */
    void (*removed)(void *context, const void *key, size_t key_len, void *value,
                    enum hf_cache_cause cause);
    void *context; /* of all functions above */
    /* Calls hf_cache_sweep() each `sweep_ns`; NULL: nobody does. Must outlive
     * the cache. */
    struct hf_scheduler *scheduler;
    uint64_t sweep_ns; /* 0: 100 ms */
    uint32_t segments; /* a power of two; each has a share of the bound. 0: one
                        * for each 4096 of max_count, at most 16; one with a
                        * weigher */
    uint64_t seed[2];  /* of the keyed hash; both 0: random. See map.h */
    const struct hf_clock *clock; /* NULL: the system's */
};

/* All about one entry. */
struct hf_cache_found {
    void *value;
    uint64_t version;    /* never 0, never that of another put */
    uint64_t expires_ns; /* the instant, or HF_FOREVER */
};

struct hf_cache_stats {
    uint64_t count;
    uint64_t weight; /* = count without a weigher */
    uint64_t hits;   /* of get, look, read and get_or_load: it was there */
    uint64_t misses; /* it was not */
    uint64_t hits_negative;  /* of the misses: known not to be there */
    uint64_t loads;          /* loaders that ran, refreshes too */
    uint64_t load_failures;  /* of these: neither HF_OK nor HF_NOTFOUND */
    uint64_t load_negatives; /* of these: HF_NOTFOUND */
    uint64_t load_waits;     /* callers that waited for another's loader */
    uint64_t load_discards;  /* loaded, and not kept: see "Loads" */
    uint64_t load_ns;        /* the sum over all loaders */
    uint64_t refreshes;      /* of the loads */
    uint64_t puts;           /* values that got in, loaded ones too */
    uint64_t removals[HF_CACHE_CAUSES]; /* values that left, by cause */
    uint64_t reads_lost;                /* that the policy was not told of */
    uint64_t garbage; /* entries that wait until nobody reads them */
    uint64_t window;  /* TINYLFU: weight that the window may hold now */
};

/* HF_INVALID: cache is NULL, or a field is out of its range: a bound or times
 * above the maximum, a weigher without max_weight or the other way round, an
 * unknown policy, segments no power of two or above the maximum or above the
 * bound, retain without release, refresh_ns or refresher without load.
 * HF_NOMEM. */
enum hf_status hf_cache_open(struct hf_cache **cache,
                             const struct hf_cache_opts *opts);
/* No loader starts any more, and those who wait for one leave: HF_CLOSED. All
 * else goes on. Any thread, any time. */
void hf_cache_shutdown(struct hf_cache *cache);
/* Shuts, tells `removed` of what is there, frees. Waits for refreshes that run
 * on the pool. Nobody may be inside a call or a guard. NULL is allowed. */
void hf_cache_close(struct hf_cache *cache);

/* All calls below: HF_INVALID if cache is NULL, key is NULL (unless key_len is
 * 0), key_len is above the maximum, a value that goes in or a function that
 * must be there is NULL. Outputs may be NULL. */

/* The guard: what this thread got between the two is not released before it
 * leaves. Guards nest, and calls inside one are cheaper. What leaves the cache
 * meanwhile waits: do not stay for long. HF_NOMEM. */
enum hf_status hf_cache_enter(struct hf_cache *cache);
void hf_cache_leave(struct hf_cache *cache);

/* HF_OK; HF_NOTFOUND: not there, or known not to be anywhere. */
enum hf_status hf_cache_get(struct hf_cache *cache, const void *key,
                            size_t key_len, void **value);
/* The same with all there is to know. Counts as a read. */
enum hf_status hf_cache_look(struct hf_cache *cache, const void *key,
                             size_t key_len, struct hf_cache_found *found);
/* Runs `read` on the value inside a guard; retain is not called. */
enum hf_status hf_cache_read(struct hf_cache *cache, const void *key,
                             size_t key_len,
                             void (*read)(void *context, void *value),
                             void *context);

/* `ttl_ns`: 0 means the default, HF_FOREVER none but the maximum. HF_OK,
 * HF_NOMEM. */
enum hf_status hf_cache_put(struct hf_cache *cache, const void *key,
                            size_t key_len, void *value, uint64_t ttl_ns);
/* HF_EXISTS: nothing changed, `existing` gets what is there. "Known not to be
 * anywhere" is absent. */
enum hf_status hf_cache_put_if_absent(struct hf_cache *cache, const void *key,
                                      size_t key_len, void *value,
                                      uint64_t ttl_ns, void **existing);
/* In the place of the version that hf_cache_look() told; 0: as if absent.
 * HF_EXISTS: another is there; HF_NOTFOUND: none is. */
enum hf_status hf_cache_put_if(struct hf_cache *cache, const void *key,
                               size_t key_len, void *value, uint64_t ttl_ns,
                               uint64_t version);

/* What changes with each put, remove and clear of the key (and now and then of
 * another), not with puts of what was loaded. One load from memory. Two equal
 * stamps: nothing was put or removed between; what was read in between is
 * still true. When a put or remove has returned, the stamp has changed. 0 if
 * an argument is invalid. */
uint64_t hf_cache_stamp(struct hf_cache *cache, const void *key,
                        size_t key_len);
/* Puts what was loaded since the stamp was taken. HF_EXISTS: the key was put
 * or removed since; nothing changed. */
enum hf_status hf_cache_put_loaded(struct hf_cache *cache, const void *key,
                                   size_t key_len, void *value, uint64_t ttl_ns,
                                   uint64_t stamp);

/* Warm-up: puts them one after the other until one fails; `done` gets how many
 * got in. HF_OK, HF_INVALID, HF_NOMEM. */
struct hf_cache_item {
    const void *key;
    size_t key_len;
    void *value;
    uint64_t ttl_ns;
};
enum hf_status hf_cache_put_all(struct hf_cache *cache,
                                const struct hf_cache_item *items, size_t count,
                                size_t *done);

/* HF_OK: it was there. HF_NOTFOUND: it was not; a load of it that runs is old
 * all the same. */
enum hf_status hf_cache_remove(struct hf_cache *cache, const void *key,
                               size_t key_len);
/* HF_EXISTS: another version is there. */
enum hf_status hf_cache_remove_version(struct hf_cache *cache, const void *key,
                                       size_t key_len, uint64_t version);
/* Removes each entry of which `test` says so, outside locks and inside a guard;
 * one that was changed meanwhile stays. `count` gets how many. HF_OK; HF_NOMEM:
 * not all were seen. */
enum hf_status hf_cache_remove_if(struct hf_cache *cache,
                                  bool (*test)(void *context, const void *key,
                                               size_t key_len, void *value),
                                  void *context, uint64_t *count);
/* Removes all, and makes all loads that run old. HF_OK. */
enum hf_status hf_cache_clear(struct hf_cache *cache);
/* Calls `visit` for the entries, in no order, until it returns false; outside
 * locks, inside a guard. No read in the sense of the policy. HF_OK also if it
 * was ended early; HF_NOMEM: not all were visited. */
enum hf_status hf_cache_visit(struct hf_cache *cache,
                              bool (*visit)(void *context, const void *key,
                                            size_t key_len,
                                            const struct hf_cache_found *found),
                              void *context);

/* Gets the value, or loads it: `load` (NULL: that of the options, with their
 * context) runs once for all who ask, outside locks.
 *
 *   HF_OK        `value` gets it: it was there, or was loaded
 *   HF_NOTFOUND  the loader says so, now or not long ago
 *   HF_TIMEOUT   another's loader was not ready in time
 *   HF_INVALID   also: no loader; or this thread is loading that key already,
 *                or whoever loads it waits for something that this thread is
 *                loading
 *   HF_CLOSED    after hf_cache_shutdown(), if it is not there
 *   other        what the loader returned, to it and to all who waited
 *
 * Refresh ahead: a value that was put `refresh_ns` ago or more is loaded again
 * while it is still served. One caller does that, or has the pool do it; the
 * others get what is there. If it fails, what is there stays, and the next try
 * is `refresh_ns` later. */
enum hf_status hf_cache_get_or_load(struct hf_cache *cache, const void *key,
                                    size_t key_len, hf_cache_load_fn *load,
                                    void *context, uint64_t deadline_ns,
                                    void **value);

/* Takes out at most `max` entries whose time is over; returns how many. */
size_t hf_cache_sweep(struct hf_cache *cache, size_t max);

/* Figures. 0 if cache is NULL. */
uint64_t hf_cache_count(struct hf_cache *cache);
void hf_cache_stats(struct hf_cache *cache, struct hf_cache_stats *out);

#ifdef __cplusplus
}
#endif

#endif
