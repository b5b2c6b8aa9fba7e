/* traces.h - made-up streams of keys, for the hit ratio of caches.
 *
 *   zipf-S     a few keys often, many rarely, with exponent S
 *   scan       zipf-0.9, and now and then a run of keys that never come back
 *   loop-N     the same keys in the same order, over and over: more of them
 *              (N times) than there is room
 *   shift      zipf-0.9 over keys that are others every so often
 *   recent     each new key is asked for some times soon, and then never
 *   mix        a stretch of each of these, in turns
 *
 * The same seed gives the same stream everywhere. Keys are numbers below
 * TRACE_KEYS_MAX, given out in order of their first appearance.
 *
 * Threads: none. Self-contained, for benchmarks as well as tests.
 */
#ifndef TEST_SUPPORT_TRACES_H
#define TEST_SUPPORT_TRACES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_UNIVERSE 50000u /* keys of a Zipf stream */

struct trace {
    uint32_t *keys;
    uint32_t count; /* of keys in the stream */
    uint32_t names; /* different ones: all are below it */
    uint32_t room;  /* entries of the cache that it is for */
    uint64_t random;
    double *cdf; /* of the Zipf distribution */
    double exponent;
    uint32_t fresh; /* the next key that was never used */
};

static inline uint64_t trace_random(struct trace *trace)
{
    uint64_t x = (trace->random += UINT64_C(0x9e3779b97f4a7c15));

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint32_t trace_below(struct trace *trace, uint32_t bound)
{
    return (uint32_t)(trace_random(trace) % bound);
}

static inline void trace_zipf_make(struct trace *trace, double exponent)
{
    double sum = 0;

    if (trace->cdf != NULL && trace->exponent == exponent)
        return;
    if (trace->cdf == NULL)
        trace->cdf = malloc(TRACE_UNIVERSE * sizeof(double));
    if (trace->cdf == NULL)
        abort();
    for (uint32_t i = 0; i < TRACE_UNIVERSE; i++)
        trace->cdf[i] = sum += 1 / pow(i + 1, exponent);
    for (uint32_t i = 0; i < TRACE_UNIVERSE; i++)
        trace->cdf[i] /= sum;
    trace->exponent = exponent;
}

/* A rank, 0 the most frequent. */
static inline uint32_t trace_zipf(struct trace *trace)
{
    double at = (double)(trace_random(trace) >> 11) / 9007199254740992.0;
    uint32_t low = 0;
    uint32_t high = TRACE_UNIVERSE - 1;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (trace->cdf[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline void trace_zipfs(struct trace *trace, uint32_t *to, uint32_t n,
                               double exponent, uint32_t base)
{
    trace_zipf_make(trace, exponent);
    for (uint32_t i = 0; i < n; i++)
        to[i] = base + trace_zipf(trace);
}

static inline void trace_scans(struct trace *trace, uint32_t *to, uint32_t n)
{
    uint32_t left = 0;

    trace_zipf_make(trace, 0.9);
    for (uint32_t i = 0; i < n; i++) {
        /* A run is as long as the cache is large, and one in four keys. */
        if (left == 0 && trace_below(trace, trace->room * 3) == 0)
            left = trace->room;
        if (left > 0) {
            to[i] = trace->fresh++;
            left--;
        } else {
            to[i] = trace_zipf(trace);
        }
    }
}

static inline void trace_loops(struct trace *trace, uint32_t *to, uint32_t n,
                               double times)
{
    uint32_t length = (uint32_t)(trace->room * times);
    uint32_t base = trace->fresh;

    for (uint32_t i = 0; i < n; i++)
        to[i] = base + i % length;
    trace->fresh += length;
}

static inline void trace_shifts(struct trace *trace, uint32_t *to, uint32_t n)
{
    uint32_t stretch = trace->room * 30;

    for (uint32_t i = 0; i < n; i += stretch) {
        uint32_t part = n - i < stretch ? n - i : stretch;
        trace_zipfs(trace, to + i, part, 0.9, trace->fresh);
        trace->fresh += TRACE_UNIVERSE;
    }
}

static inline void trace_recents(struct trace *trace, uint32_t *to, uint32_t n)
{
    uint32_t base = trace->fresh;
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        /* One in four is new; the others are of the last ones, and the more
         * recent the more likely. */
        if (count == 0 || trace_below(trace, 4) == 0) {
            to[i] = base + count++;
            continue;
        }
        uint32_t span = count < trace->room ? count : trace->room;
        uint32_t a = trace_below(trace, span);
        uint32_t b = trace_below(trace, span);
        to[i] = base + count - 1 - (a < b ? a : b);
    }
    trace->fresh += count;
}

static inline void trace_part(struct trace *trace, const char *name,
                              uint32_t *to, uint32_t n)
{
    if (strncmp(name, "zipf-", 5) == 0)
        trace_zipfs(trace, to, n, strtod(name + 5, NULL), 0);
    else if (strncmp(name, "loop-", 5) == 0)
        trace_loops(trace, to, n, strtod(name + 5, NULL));
    else if (strcmp(name, "scan") == 0)
        trace_scans(trace, to, n);
    else if (strcmp(name, "shift") == 0)
        trace_shifts(trace, to, n);
    else if (strcmp(name, "recent") == 0)
        trace_recents(trace, to, n);
    else
        abort();
}

static inline void trace_mix(struct trace *trace)
{
    static const char *const parts[] = {"zipf-0.9", "scan", "recent",
                                        "loop-1.5", "shift"};
    uint32_t stretch = trace->room * 50;
    uint32_t at = 0;

    for (unsigned i = 0; at < trace->count; i++) {
        uint32_t left = trace->count - at;
        trace_part(trace, parts[i % 5], trace->keys + at,
                   left < stretch ? left : stretch);
        at += left < stretch ? left : stretch;
    }
}

/* Numbers the keys by first appearance, so that arrays by key are small. */
static inline void trace_number(struct trace *trace)
{
    uint32_t *names = calloc((size_t)trace->fresh + 1, sizeof *names);

    if (names == NULL)
        abort();
    for (uint32_t i = 0; i < trace->count; i++) {
        uint32_t *name = &names[trace->keys[i]];
        if (*name == 0)
            *name = ++trace->names;
        trace->keys[i] = *name - 1;
    }
    free(names);
}

/* `count` keys for a cache of `room` entries. Ends the program if the name is
 * unknown or there is no memory. */
static inline void trace_make(struct trace *trace, const char *name,
                              uint32_t count, uint32_t room, uint64_t seed)
{
    *trace = (struct trace){
        .count = count, .room = room, .random = seed, .fresh = TRACE_UNIVERSE};
    trace->keys = malloc(count * sizeof *trace->keys);
    if (trace->keys == NULL)
        abort();
    if (strcmp(name, "mix") == 0)
        trace_mix(trace);
    else
        trace_part(trace, name, trace->keys, count);
    free(trace->cdf);
    trace->cdf = NULL;
    trace_number(trace);
}

static inline void trace_free(struct trace *trace)
{
    free(trace->keys);
}

#endif
