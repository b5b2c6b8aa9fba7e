/* ring.c - the quick ways through a ring, and its opening and closing.
 *
 * Most puts find their slot empty, most takes find theirs full, and nobody in
 * between. These need few instructions and no call: they are here, with the
 * sides that one thread has alone. All that is unusual (a hint that is too low,
 * a swap that failed, a thread's first put) is done anew in ring_many.c, which
 * also tells why this is right.
 */
#include <string.h>

#include "base/memory.h"
#include "sync/ring_state.h"

/* ---- Many put, many take: the usual case. ---- */

__attribute__((noinline, cold)) static enum hf_status
put_anew(struct hf_ring *ring, void *item)
{
    enum hf_status status;

    hf_ring_put_many_of(ring, &item, 1, &status);
    return status;
}

HF_INLINE enum hf_status put_quick(struct hf_ring *ring, void *item)
{
    struct ring_local *local = hf_locals_quick(&ring->locals, sizeof *local);

    if (__builtin_expect(local == NULL, 0))
        goto anew;
    uint32_t cell = local->cell;
    if (__builtin_expect(cell - 1 >= ring->cell_count - 1, 0))
        goto anew; /* its first, or one in another thread's record */
    /* Relaxed: the swap publishes it. */
    hf_ptr_store(&ring->cells[cell], item, __ATOMIC_RELAXED);
    uint64_t at = hf_u64_load(&ring->tail.at, __ATOMIC_ACQUIRE);
    struct hf_atomic_u64 *slot = &ring->words[at & LOW_MASK];
    uint64_t word = hf_u64_load(slot, __ATOMIC_SEQ_CST);
    if (__builtin_expect(!is_empty(word, at), 0))
        goto anew;
    uint64_t full = (word & ~LOW_MASK) | FULL | cell;
    if (__builtin_expect(!hf_u64_cas(slot, &word, full, __ATOMIC_SEQ_CST), 0))
        goto anew;
    local->cell = (uint32_t)(word & LOW_MASK);
    hf_u64_store(&ring->tail.at, position_add(ring, at, 1), __ATOMIC_RELEASE);
    return HF_OK;
anew:
    return put_anew(ring, item);
}

__attribute__((noinline, cold)) static enum hf_status
take_anew(struct hf_ring *ring, void **item)
{
    return hf_ring_take_many_of(ring, item, 1) == 1 ? HF_OK : HF_EMPTY;
}

HF_INLINE enum hf_status take_quick(struct hf_ring *ring, void **item)
{
    uint64_t at = hf_u64_load(&ring->head.at, __ATOMIC_ACQUIRE);
    struct hf_atomic_u64 *slot = &ring->words[at & LOW_MASK];
    uint64_t word = hf_u64_load(slot, __ATOMIC_SEQ_CST);

    if (__builtin_expect(!is_full(word, at), 0)) {
        if (is_empty(word, at))
            return HF_EMPTY;
        goto anew;
    }
    uint32_t cell = (uint32_t)(word & LOW_MASK);
    if (__builtin_expect(cell >= ring->cell_count, 0))
        goto anew;
    /* Relaxed: the load of the word has acquired it, the swap tells whether it
     * was still this one. */
    void *found = hf_ptr_load(&ring->cells[cell], __ATOMIC_RELAXED);
    uint64_t empty = (word & ~FULL) + LAP_ONE;
    if (__builtin_expect(!hf_u64_cas(slot, &word, empty, __ATOMIC_SEQ_CST), 0))
        goto anew;
    *item = found;
    hf_u64_store(&ring->head.at, position_add(ring, at, 1), __ATOMIC_RELEASE);
    return HF_OK;
anew:
    return take_anew(ring, item);
}

/* ---- One puts: nobody else changes an empty word, or the tail. ---- */

/* A side that is alone is about to say "full" or "empty" after it has put or
 * taken others in the same call: these must be seen before it looks, else the
 * other side could be told of a time before them and both answers would never
 * have been true together. SEQ_CST: a store and then a load. */
__attribute__((noinline, cold)) static uint64_t
look_again(struct ring_side *side, uint64_t position,
           const struct hf_atomic_u64 *word)
{
    hf_u64_store(&side->at, position, __ATOMIC_SEQ_CST);
    return hf_u64_load(word, __ATOMIC_SEQ_CST);
}

HF_INLINE size_t put_one_of(struct hf_ring *ring, void *const *items,
                            size_t count, enum hf_status *status)
{
    uint64_t position = hf_u64_load(&ring->tail.at, __ATOMIC_RELAXED);
    size_t done = 0;

    *status = HF_OK;
    for (; done < count && items[done] != NULL; done++) {
        struct hf_atomic_u64 *at = word_at(ring, position);
        uint64_t word = hf_u64_load(at, __ATOMIC_SEQ_CST);
        if (!is_empty(word, position) && done > 0)
            word = look_again(&ring->tail, position, at);
        if (!is_empty(word, position)) {
            assert(is_full(word, position - LAP_ONE));
            count_refused(&ring->tail.refused);
            *status = HF_FULL;
            break;
        }
        hf_ptr_store(cell_at(ring, (uint32_t)(word & LOW_MASK)), items[done],
                     __ATOMIC_RELAXED);
        /* Release: the item. */
        hf_u64_store(at, word | FULL, __ATOMIC_RELEASE);
        position = position_add(ring, position, 1);
    }
    hf_u64_store(&ring->tail.at, position, __ATOMIC_RELEASE);
    return done;
}

/* ---- One takes: nobody else changes a full word, or the head. ---- */

HF_INLINE size_t take_one_of(struct hf_ring *ring, void **items, size_t count)
{
    uint64_t position = hf_u64_load(&ring->head.at, __ATOMIC_RELAXED);
    size_t done = 0;

    for (; done < count; done++) {
        struct hf_atomic_u64 *at = word_at(ring, position);
        uint64_t word = hf_u64_load(at, __ATOMIC_SEQ_CST);
        if (is_empty(word, position) && done > 0)
            word = look_again(&ring->head, position, at);
        if (is_empty(word, position))
            break;
        assert(is_full(word, position));
        items[done] = hf_ptr_load(cell_at(ring, (uint32_t)(word & LOW_MASK)),
                                  __ATOMIC_RELAXED);
        /* Release: the cell may be written from now on. */
        hf_u64_store(at, (word & ~FULL) + LAP_ONE, __ATOMIC_RELEASE);
        position = position_add(ring, position, 1);
    }
    hf_u64_store(&ring->head.at, position, __ATOMIC_RELEASE);
    return done;
}

/* ---- One puts and one takes: two counts and an array. ----
 *
 * Each side looks at the other's count only when what it saw last does not
 * suffice, so that the line of that count moves seldom. */

HF_INLINE size_t put_alone(struct hf_ring *ring, void *const *items,
                           size_t count, enum hf_status *status)
{
    struct ring_side *tail = &ring->tail;
    uint64_t at = hf_u64_load(&tail->at, __ATOMIC_RELAXED); /* its own */
    size_t done = 0;

    *status = HF_OK;
    for (; done < count && items[done] != NULL; done++, at++) {
        if (__builtin_expect(at - tail->other_seen == ring->capacity, 0)) {
            if (done > 0) /* as look_again() */
                hf_u64_store(&tail->at, at, __ATOMIC_SEQ_CST);
            /* Acquire: the taker has read the slots that it gave back. */
            tail->other_seen = hf_u64_load(&ring->head.at, __ATOMIC_SEQ_CST);
            if (at - tail->other_seen == ring->capacity) {
                count_refused(&tail->refused);
                *status = HF_FULL;
                break;
            }
        }
        ring->items[at & ring->mask] = items[done];
    }
    /* Release: the items. */
    hf_u64_store(&tail->at, at, __ATOMIC_RELEASE);
    return done;
}

HF_INLINE size_t take_alone(struct hf_ring *ring, void **items, size_t count)
{
    struct ring_side *head = &ring->head;
    uint64_t at = hf_u64_load(&head->at, __ATOMIC_RELAXED); /* its own */
    size_t done = 0;

    for (; done < count; done++, at++) {
        if (at == head->other_seen) {
            if (done > 0) /* as look_again() */
                hf_u64_store(&head->at, at, __ATOMIC_SEQ_CST);
            /* Acquire: the items before that count. */
            head->other_seen = hf_u64_load(&ring->tail.at, __ATOMIC_SEQ_CST);
            if (at == head->other_seen)
                break;
        }
        items[done] = ring->items[at & ring->mask];
    }
    /* Release: the slots have been read. */
    hf_u64_store(&head->at, at, __ATOMIC_RELEASE);
    return done;
}

/* ---- The calls. ---- */

enum hf_status hf_ring_put(struct hf_ring *ring, void *item)
{
    enum hf_status status;

    if (ring == NULL || item == NULL)
        return HF_INVALID;
    switch (ring->mode) {
    case HF_RING_SPSC:
        put_alone(ring, &item, 1, &status);
        return status;
    case HF_RING_SPMC:
        put_one_of(ring, &item, 1, &status);
        return status;
    default:
        return put_quick(ring, item);
    }
}

enum hf_status hf_ring_take(struct hf_ring *ring, void **item)
{
    if (ring == NULL || item == NULL)
        return HF_INVALID;
    switch (ring->mode) {
    case HF_RING_SPSC:
        return take_alone(ring, item, 1) == 1 ? HF_OK : HF_EMPTY;
    case HF_RING_MPSC:
        return take_one_of(ring, item, 1) == 1 ? HF_OK : HF_EMPTY;
    default:
        return take_quick(ring, item);
    }
}

size_t hf_ring_put_many(struct hf_ring *ring, void *const *items, size_t count)
{
    enum hf_status status;

    if (ring == NULL || items == NULL)
        return 0;
    switch (ring->mode) {
    case HF_RING_SPSC:
        return put_alone(ring, items, count, &status);
    case HF_RING_SPMC:
        return put_one_of(ring, items, count, &status);
    default:
        return hf_ring_put_many_of(ring, items, count, &status);
    }
}

size_t hf_ring_take_many(struct hf_ring *ring, void **items, size_t count)
{
    if (ring == NULL || items == NULL)
        return 0;
    switch (ring->mode) {
    case HF_RING_SPSC:
        return take_alone(ring, items, count);
    case HF_RING_MPSC:
        return take_one_of(ring, items, count);
    default:
        return hf_ring_take_many_of(ring, items, count);
    }
}

/* ---- What it looks like from outside. ---- */

/* Positions since open. */
static uint64_t position_count(const struct hf_ring *ring, uint64_t position)
{
    return ((position - LAP_FIRST) >> LAP_SHIFT) * ring->capacity +
           (position & LOW_MASK);
}

uint64_t hf_ring_size(const struct hf_ring *ring)
{
    struct hf_ring_stats stats;

    hf_ring_stats(ring, &stats);
    return stats.size;
}

void hf_ring_stats(const struct hf_ring *ring, struct hf_ring_stats *out)
{
    uint32_t slot = 0;
    const struct ring_local *local;

    if (out == NULL)
        return;
    memset(out, 0, sizeof *out);
    if (ring == NULL)
        return;
    out->capacity = ring->capacity;
    if (ring->mode == HF_RING_SPSC) { /* acquire: the puts before the takes */
        out->takes = hf_u64_load(&ring->head.at, __ATOMIC_ACQUIRE);
        out->puts = hf_u64_load(&ring->tail.at, __ATOMIC_ACQUIRE);
    } else {
        out->takes =
            position_count(ring, hf_ring_seek(ring, &ring->head, false));
        out->puts = position_count(ring, hf_ring_seek(ring, &ring->tail, true));
    }
    /* The tail was read later: it is not below, but may be too far ahead. */
    out->size = out->puts - out->takes;
    if (out->size > ring->capacity)
        out->size = ring->capacity;
    out->refused = hf_u64_load(&ring->tail.refused, __ATOMIC_RELAXED);
    while ((local = hf_locals_next(&ring->locals, &slot)) != NULL)
        out->refused += hf_u64_load(&local->refused, __ATOMIC_RELAXED);
}

static void ring_fill(const struct hf_listed *listed,
                      struct hf_inspect_row *row)
{
    struct hf_ring_stats stats;

    /* `listed` is the first member of the ring. */
    hf_ring_stats((const struct hf_ring *)listed, &stats);
    row->depth = stats.size;
    row->capacity = stats.capacity;
    row->rejected = stats.refused;
}

/* ---- Open and close. ---- */

static enum hf_status make_spsc(struct hf_ring *ring)
{
    uint32_t slots = 1;

    while (slots < ring->capacity)
        slots *= 2;
    ring->mask = slots - 1;
    ring->items = hf_alloc_zeroed(slots * sizeof *ring->items);
    return ring->items == NULL ? HF_NOMEM : HF_OK;
}

static size_t line_up(size_t bytes)
{
    return (bytes + HF_CACHE_LINE - 1) / HF_CACHE_LINE * HF_CACHE_LINE;
}

static enum hf_status make_slots(struct hf_ring *ring)
{
    size_t words_bytes = line_up(ring->capacity * sizeof *ring->words);
    ring->cell_count = 1 + ring->capacity + HF_LOCALS_FIRST;
    size_t cells_bytes = line_up(ring->cell_count * sizeof *ring->cells);

    ring->words = hf_alloc_aligned(HF_CACHE_LINE, words_bytes);
    ring->cells = hf_alloc_lines(cells_bytes);
    if (ring->words == NULL || ring->cells == NULL)
        return HF_NOMEM;
    for (uint32_t i = 0; i < ring->capacity; i++) /* nobody sees it yet */
        hf_u64_store(&ring->words[i], LAP_FIRST | (i + 1), __ATOMIC_RELAXED);
    hf_u64_store(&ring->head.at, LAP_FIRST, __ATOMIC_RELAXED);
    hf_u64_store(&ring->tail.at, LAP_FIRST, __ATOMIC_RELAXED);
    return hf_locals_init(&ring->locals, sizeof(struct ring_local));
}

static void ring_free(struct hf_ring *ring)
{
    hf_locals_destroy(&ring->locals);
    hf_free(ring->words);
    hf_free(ring->cells);
    hf_free(ring->items);
    hf_free(ring);
}

enum hf_status hf_ring_open(struct hf_ring **out,
                            const struct hf_ring_opts *opts)
{
    struct hf_ring_opts all = {0};
    enum hf_status status;

    if (opts != NULL)
        all = *opts;
    if (all.capacity == 0)
        all.capacity = HF_RING_CAPACITY_DEFAULT;
    if (out == NULL || all.capacity > HF_RING_CAPACITY_MAX ||
        (unsigned)all.mode > HF_RING_SPMC)
        return HF_INVALID;
    struct hf_ring *ring = hf_alloc_lines(sizeof *ring);
    if (ring == NULL)
        return HF_NOMEM;
    ring->mode = all.mode;
    ring->capacity = (uint32_t)all.capacity;
    status = all.mode == HF_RING_SPSC ? make_spsc(ring) : make_slots(ring);
    if (status != HF_OK) {
        ring_free(ring);
        return status;
    }
    hf_listed_add(&ring->listed, "ring", all.name, ring_fill);
    *out = ring;
    return HF_OK;
}

void hf_ring_close(struct hf_ring *ring)
{
    if (ring == NULL)
        return;
    hf_listed_remove(&ring->listed);
    ring_free(ring);
}
