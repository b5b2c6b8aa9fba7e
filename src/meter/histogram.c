/* histogram.c - counts of each thread, added up when somebody reads.
 *
 *   slot --> stripe { sum most least table } --> table[chunk] --> counts
 *
 * A writer first widens min and max, then counts, then adds to the sum; a
 * reader looks at them in the opposite order, each side with release and
 * acquire. So what a reader finds in the sum it finds counted, and what it
 * finds counted lies between min and max.
 */
#include "meter/histogram.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "meter/spread.h"
#include "sync/listed.h"
#include "sync/locals.h"

struct stripe {
    /* (a) written by the owner only. least is kept as its complement, so that
     * zeroes mean that there was no value. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 sum;
    struct hf_atomic_u64 most;
    struct hf_atomic_u64 least_not;
    struct hf_atomic_ptr table; /* struct hf_atomic_ptr[chunks]; set once */
};

/* Where values go that found no memory; changed by everybody. */
struct shared {
    struct hf_atomic_u64 sum;
    struct hf_atomic_u64 most;
    struct hf_atomic_u64 least_not;
    struct hf_atomic_u64 counts[HF_LAYOUT_CHUNKS_MAX];
};

struct hf_histogram {
    struct hf_layout layout; /* (i) */
    struct hf_locals stripes;
    struct shared shared; /* (a) */
    struct hf_listed listed;
    bool is_listed; /* (i) */
};

const struct hf_layout *
hf_histogram_layout(const struct hf_histogram *histogram)
{
    return &histogram->layout;
}

enum hf_status hf_histogram_make(struct hf_histogram **histogram,
                                 const struct hf_spread_opts *opts)
{
    struct hf_layout layout;
    enum hf_status status = hf_layout_init(&layout, opts);

    if (status)
        return status;
    struct hf_histogram *made = hf_alloc_zeroed(sizeof *made);
    if (made == NULL)
        return HF_NOMEM;
    made->layout = layout;
    status = hf_locals_init(&made->stripes, sizeof(struct stripe));
    if (status) {
        hf_free(made);
        return status;
    }
    *histogram = made;
    return HF_OK;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_histogram *histogram =
        (const void *)((const char *)listed -
                       offsetof(struct hf_histogram, listed));
    struct hf_histogram_stats stats;

    hf_histogram_stats(histogram, &stats);
    row->depth = stats.count;
}

enum hf_status hf_histogram_open(struct hf_histogram **histogram,
                                 const struct hf_histogram_opts *opts)
{
    if (histogram == NULL)
        return HF_INVALID;
    enum hf_status status =
        hf_histogram_make(histogram, opts == NULL ? NULL : &opts->spread);
    if (status)
        return status;
    (*histogram)->is_listed = true;
    hf_listed_add(&(*histogram)->listed, "histogram",
                  opts == NULL ? NULL : opts->name, fill);
    return HF_OK;
}

void hf_histogram_close(struct hf_histogram *histogram)
{
    struct stripe *stripe;
    uint32_t slot = 0;

    if (histogram == NULL)
        return;
    if (histogram->is_listed)
        hf_listed_remove(&histogram->listed);
    while ((stripe = hf_locals_next(&histogram->stripes, &slot)) != NULL) {
        /* Relaxed: nobody else is there any more. */
        struct hf_atomic_ptr *table =
            hf_ptr_load(&stripe->table, __ATOMIC_RELAXED);
        for (uint32_t c = 0; table != NULL && c < histogram->layout.chunks; c++)
            hf_free(hf_ptr_load(&table[c], __ATOMIC_RELAXED));
        hf_free(table);
    }
    hf_locals_destroy(&histogram->stripes);
    hf_free(histogram);
}

/* The counts of a chunk of this thread, made if they were not there; NULL
 * without memory. Published with release: readers find zeroes in them. */
static __attribute__((noinline)) struct hf_atomic_u64 *
make_counts(struct hf_histogram *histogram, struct stripe *stripe,
            uint32_t chunk)
{
    const struct hf_layout *layout = &histogram->layout;
    /* Relaxed: this thread wrote it, or the thread that had its slot before,
     * whose end came before. */
    struct hf_atomic_ptr *table = hf_ptr_load(&stripe->table, __ATOMIC_RELAXED);

    if (table == NULL) {
        table = hf_alloc_zeroed(layout->chunks * sizeof *table);
        if (table == NULL)
            return NULL;
        hf_ptr_store(&stripe->table, table, __ATOMIC_RELEASE);
    }
    struct hf_atomic_u64 *counts =
        hf_alloc_zeroed(hf_layout_half(layout) * sizeof *counts);
    if (counts != NULL)
        hf_ptr_store(&table[chunk], counts, __ATOMIC_RELEASE);
    return counts;
}

static void raise_to(struct hf_atomic_u64 *word, uint64_t value)
{
    uint64_t there = hf_u64_load(word, __ATOMIC_RELAXED);

    /* Relaxed: the count that follows publishes it. */
    while (there < value && !hf_u64_cas(word, &there, value, __ATOMIC_RELAXED))
        continue;
}

/* As record, in words that all threads share. */
static __attribute__((noinline)) void
record_shared(struct shared *shared, uint32_t chunk, uint64_t value)
{
    raise_to(&shared->most, value);
    raise_to(&shared->least_not, ~value);
    /* Release: the order that the opening of this file tells of. */
    hf_u64_add(&shared->counts[chunk], 1, __ATOMIC_RELEASE);
    hf_u64_add(&shared->sum, value, __ATOMIC_RELEASE);
}

/* The words of this thread: loads are relaxed since they are its own. */
static inline void count(struct stripe *stripe, struct hf_atomic_u64 *place,
                         uint64_t value)
{
    uint64_t seen = hf_u64_load(place, __ATOMIC_RELAXED);
    uint64_t sum = hf_u64_load(&stripe->sum, __ATOMIC_RELAXED);

    /* Relaxed stores: the release of the count publishes them. */
    if (__builtin_expect(value > hf_u64_load(&stripe->most, __ATOMIC_RELAXED),
                         0))
        hf_u64_store(&stripe->most, value, __ATOMIC_RELAXED);
    if (__builtin_expect(
            ~value > hf_u64_load(&stripe->least_not, __ATOMIC_RELAXED), 0))
        hf_u64_store(&stripe->least_not, ~value, __ATOMIC_RELAXED);
    /* Release, release: the order that the opening of this file tells of. */
    hf_u64_store(place, seen + 1, __ATOMIC_RELEASE);
    hf_u64_store(&stripe->sum, sum + value, __ATOMIC_RELEASE);
}

/* A thread's first value, its first in a chunk, or a thread far from the
 * first ones. */
static __attribute__((noinline)) void
record_slow(struct hf_histogram *histogram, uint64_t value)
{
    const struct hf_layout *layout = &histogram->layout;
    uint32_t place = hf_layout_place(layout, value);
    uint32_t chunk = place >> layout->half_bits;
    struct hf_atomic_u64 *counts = NULL;
    struct stripe *stripe =
        hf_locals_mine(&histogram->stripes, sizeof(struct stripe));

    if (stripe != NULL) {
        /* Relaxed: see make_counts(). */
        struct hf_atomic_ptr *table =
            hf_ptr_load(&stripe->table, __ATOMIC_RELAXED);
        if (table != NULL)
            counts = hf_ptr_load(&table[chunk], __ATOMIC_RELAXED);
        if (counts == NULL)
            counts = make_counts(histogram, stripe, chunk);
    }
    if (counts == NULL)
        record_shared(&histogram->shared, chunk, value);
    else
        count(stripe, &counts[place & (hf_layout_half(layout) - 1)], value);
}

/* Without a call that returns here, the usual way needs no stack. */
void hf_histogram_record(struct hf_histogram *histogram, uint64_t value)
{
    if (__builtin_expect(histogram == NULL, 0))
        return;
    const struct hf_layout *layout = &histogram->layout;
    struct stripe *stripe =
        hf_locals_quick(&histogram->stripes, sizeof(struct stripe));
    if (__builtin_expect(stripe == NULL || value > layout->limit, 0)) {
        record_slow(histogram, value);
        return;
    }
    uint32_t place = hf_layout_place(layout, value);
    /* Relaxed, twice: see make_counts(). */
    struct hf_atomic_ptr *table = hf_ptr_load(&stripe->table, __ATOMIC_RELAXED);
    struct hf_atomic_u64 *counts =
        __builtin_expect(table == NULL, 0)
            ? NULL
            : hf_ptr_load(&table[place >> layout->half_bits], __ATOMIC_RELAXED);
    if (__builtin_expect(counts == NULL, 0)) {
        record_slow(histogram, value);
        return;
    }
    count(stripe, &counts[place & (hf_layout_half(layout) - 1)], value);
}

enum hf_status hf_histogram_spread(const struct hf_histogram *histogram,
                                   struct hf_spread **spread)
{
    if (histogram == NULL || spread == NULL)
        return HF_INVALID;
    return hf_spread_make(spread, &histogram->layout);
}

/* After the counts: see the opening. */
static void widen(struct hf_spread *spread, const struct hf_atomic_u64 *most,
                  const struct hf_atomic_u64 *least_not)
{
    /* Relaxed: the acquire of a count made them visible. */
    uint64_t high = hf_u64_load(most, __ATOMIC_RELAXED);
    uint64_t low = ~hf_u64_load(least_not, __ATOMIC_RELAXED);

    if (high > spread->most)
        spread->most = high;
    if (low < spread->least)
        spread->least = low;
}

static enum hf_status add_chunk(struct hf_spread *spread, uint32_t chunk,
                                const struct hf_atomic_u64 *from)
{
    uint64_t *counts = hf_spread_chunk(spread, chunk);
    uint32_t half = hf_layout_half(&spread->layout);

    if (counts == NULL)
        return HF_NOMEM;
    for (uint32_t p = 0; p < half; p++) {
        /* Acquire: min and max were widened before. */
        uint64_t count = hf_u64_load(&from[p], __ATOMIC_ACQUIRE);
        counts[p] += count;
        spread->count += count;
    }
    return HF_OK;
}

static enum hf_status add_stripe(struct hf_spread *spread,
                                 const struct stripe *stripe)
{
    /* Acquire: what is in the sum was counted before. */
    uint64_t sum = hf_u64_load(&stripe->sum, __ATOMIC_ACQUIRE);
    /* Acquire, twice: zeroes were written before the pointers. */
    const struct hf_atomic_ptr *table =
        hf_ptr_load(&stripe->table, __ATOMIC_ACQUIRE);

    for (uint32_t c = 0; table != NULL && c < spread->layout.chunks; c++) {
        const struct hf_atomic_u64 *from =
            hf_ptr_load(&table[c], __ATOMIC_ACQUIRE);
        if (from != NULL && add_chunk(spread, c, from) != HF_OK)
            return HF_NOMEM;
    }
    spread->sum += sum;
    widen(spread, &stripe->most, &stripe->least_not);
    return HF_OK;
}

/* A coarse count stands at the end of its chunk, where it makes no percentile
 * too small. */
static enum hf_status add_shared(struct hf_spread *spread,
                                 const struct shared *shared)
{
    uint32_t half = hf_layout_half(&spread->layout);

    spread->sum += hf_u64_load(&shared->sum, __ATOMIC_ACQUIRE);
    for (uint32_t c = 0; c < spread->layout.chunks; c++) {
        uint64_t count = hf_u64_load(&shared->counts[c], __ATOMIC_ACQUIRE);
        if (count == 0)
            continue;
        uint64_t *counts = hf_spread_chunk(spread, c);
        if (counts == NULL)
            return HF_NOMEM;
        counts[half - 1] += count;
        spread->count += count;
    }
    widen(spread, &shared->most, &shared->least_not);
    return HF_OK;
}

enum hf_status hf_histogram_read(const struct hf_histogram *histogram,
                                 struct hf_spread *spread)
{
    const struct stripe *stripe;
    uint32_t slot = 0;

    if (histogram == NULL || spread == NULL ||
        !hf_layout_equal(&histogram->layout, &spread->layout))
        return HF_INVALID;
    hf_spread_reset(spread);
    enum hf_status status = add_shared(spread, &histogram->shared);
    while (!status &&
           (stripe = hf_locals_next(&histogram->stripes, &slot)) != NULL)
        status = add_stripe(spread, stripe);
    if (status)
        hf_spread_reset(spread);
    if (spread->count == 0)
        hf_spread_reset(spread); /* a min or max whose count is to come */
    return status;
}

enum hf_status hf_histogram_interval(const struct hf_histogram *histogram,
                                     struct hf_spread *last,
                                     struct hf_spread *since)
{
    if (last == NULL || last == since)
        return HF_INVALID;
    enum hf_status status = hf_histogram_read(histogram, since);
    if (!status && !hf_layout_equal(&last->layout, &since->layout))
        return HF_INVALID;
    if (!status)
        status = hf_spread_promise(last, since);
    if (!status)
        status = hf_spread_subtract(since, last);
    if (!status) {
        status = hf_spread_add(last, since);
        assert(status == HF_OK);
    }
    return status;
}

void hf_histogram_stats(const struct hf_histogram *histogram,
                        struct hf_histogram_stats *out)
{
    const struct stripe *stripe;
    uint32_t slot = 0;
    struct hf_spread extremes = {.least = UINT64_MAX};

    if (histogram == NULL || out == NULL)
        return;
    const struct hf_layout *layout = &histogram->layout;
    uint32_t half = hf_layout_half(layout);
    *out = (struct hf_histogram_stats){.memory_bytes = sizeof *histogram};
    out->sum = hf_u64_load(&histogram->shared.sum, __ATOMIC_ACQUIRE);
    for (uint32_t c = 0; c < layout->chunks; c++)
        out->coarse +=
            hf_u64_load(&histogram->shared.counts[c], __ATOMIC_ACQUIRE);
    out->count = out->coarse;
    widen(&extremes, &histogram->shared.most, &histogram->shared.least_not);
    while ((stripe = hf_locals_next(&histogram->stripes, &slot)) != NULL) {
        out->memory_bytes += sizeof *stripe;
        /* Acquire, as a reading does. */
        out->sum += hf_u64_load(&stripe->sum, __ATOMIC_ACQUIRE);
        const struct hf_atomic_ptr *table =
            hf_ptr_load(&stripe->table, __ATOMIC_ACQUIRE);
        out->threads += table != NULL;
        out->memory_bytes += table == NULL ? 0 : layout->chunks * sizeof *table;
        for (uint32_t c = 0; table != NULL && c < layout->chunks; c++) {
            const struct hf_atomic_u64 *from =
                hf_ptr_load(&table[c], __ATOMIC_ACQUIRE);
            out->memory_bytes += from == NULL ? 0 : half * sizeof *from;
            for (uint32_t p = 0; from != NULL && p < half; p++)
                out->count += hf_u64_load(&from[p], __ATOMIC_ACQUIRE);
        }
        widen(&extremes, &stripe->most, &stripe->least_not);
    }
    out->min = out->count == 0 ? 0 : extremes.least;
    out->max = out->count == 0 ? 0 : extremes.most;
}

void hf_timer_start(struct hf_timer *timer, struct hf_histogram *histogram,
                    const struct hf_clock *clock)
{
    if (timer == NULL)
        return;
    timer->histogram = histogram;
    timer->clock = clock == NULL ? hf_clock_system() : clock;
    timer->start_ns = hf_clock_now_ns(timer->clock);
}

uint64_t hf_timer_stop(struct hf_timer *timer)
{
    if (timer == NULL)
        return 0;
    uint64_t now_ns = hf_clock_now_ns(timer->clock);
    uint64_t took_ns = now_ns > timer->start_ns ? now_ns - timer->start_ns : 0;
    hf_histogram_record(timer->histogram, took_ns);
    return took_ns;
}
