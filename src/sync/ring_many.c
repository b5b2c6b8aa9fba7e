/* ring_many.c - laps in the words of the slots decide; head and tail are hints.
 *
 * What holds at every instant, with C the capacity:
 *
 *   - Positions are filled in order, each once: a put fills p only after it has
 *     seen p - 1 filled (the hint says so, or it walked over it). They are
 *     taken in order, each once, in the same way.
 *   - "Filled" and "taken" stay true once they are. So a hint that was true
 *     stays true however late it is stored: it can only be too low.
 *   - The word of slot p mod C shows (lap, full): lap(p) full: p is filled and
 *     not taken; lap(p) empty: p - C is taken, p is not filled; a later lap: p
 *     is taken; an earlier lap: p - C is not taken yet.
 *
 * From which follows that one load of the word decides:
 *
 *   put that knows p - 1 filled:   earlier lap -> p - C is inside and so is all
 *       up to p - 1: C items, full. Lap(p) empty -> the swap fills p.
 *   take that knows p - 1 taken:   lap(p) empty -> nothing is put: empty.
 *       Lap(p) full -> the swap takes p.
 *
 * A swap fails only because another put or take of this slot succeeded, so
 * somebody always gets on: lock-free. The lap in the word keeps a swap that
 * comes a lap late from succeeding; it has 38 bits, so only one that comes
 * later by an exact multiple of 2^38 laps would be taken in.
 *
 * Cells. The number in a full word names the cell with its item, that in an
 * empty word a cell that nobody uses. A put trades its thread's own cell for
 * the unused one, so a thread always has one and there is no list of free
 * cells. A take reads the item first and swaps then: if the swap succeeds, the
 * word has not changed in between, and a cell is written only by a thread that
 * has got it out of a slot. A producer that is alone writes into the unused
 * cell where it lies.
 *
 * Orders. The words are SEQ_CST: an answer counts as of the instant of its load
 * also when the caller compares it with what other objects told (on x86 this
 * costs nothing for loads and swaps). Hints are stored with release and loaded
 * with acquire: who relies on "all before p is filled" then comes after that.
 */
#include "sync/ring_state.h"

/* Is the position behind us: filled (put is true) or taken? */
HF_INLINE bool is_done(uint64_t word, uint64_t position, bool put)
{
    int64_t ahead = laps_ahead(word, position);
    return ahead > 0 || (put && ahead == 0 && (word & FULL) != 0);
}

static bool is_done_at(const struct hf_ring *ring, uint64_t position, bool put)
{
    return is_done(hf_u64_load(word_at(ring, position), __ATOMIC_SEQ_CST),
                   position, put);
}

/* `position` is done, and `word` showed it. A later position whose predecessor
 * is done: the next one as a rule. A thread that was stopped before it stored
 * its hint may have set it back by any number, so that the steps get longer. */
__attribute__((noinline, cold)) static uint64_t
skip(const struct hf_ring *ring, uint64_t position, uint64_t word, bool put)
{
    uint32_t step = 1;

    if (laps_ahead(word, position) > 1) /* at least the lap before is done */
        position = ((word - LAP_ONE) & ~(LAP_ONE - 1)) | (position & LOW_MASK);
    while (step <= ring->capacity / 2 &&
           is_done_at(ring, position_add(ring, position, step), put)) {
        position = position_add(ring, position, step);
        step *= 2;
    }
    for (step /= 2; step > 0; step /= 2) {
        uint64_t further = position_add(ring, position, step);
        if (is_done_at(ring, further, put))
            position = further;
    }
    return position_add(ring, position, 1);
}

uint64_t hf_ring_seek(const struct hf_ring *ring, const struct ring_side *side,
                      bool put)
{
    uint64_t position = hf_u64_load(&side->at, __ATOMIC_ACQUIRE);

    assert(ring->mode != HF_RING_SPSC);
    for (;;) {
        uint64_t word = hf_u64_load(word_at(ring, position), __ATOMIC_SEQ_CST);
        if (!is_done(word, position, put))
            return position;
        position = skip(ring, position, word, put);
    }
}

/* ---- Many put. ---- */

/* Fills the next position with the thread's cell. False: the ring is full. */
HF_INLINE bool fill(struct hf_ring *ring, uint64_t *position, uint32_t *cell)
{
    uint64_t at = *position;
    uint64_t word = hf_u64_load(word_at(ring, at), __ATOMIC_SEQ_CST);

    for (;;) {
        if (__builtin_expect(is_empty(word, at), 1)) {
            uint64_t full = (word & ~LOW_MASK) | FULL | *cell;
            if (!hf_u64_cas(word_at(ring, at), &word, full, __ATOMIC_SEQ_CST))
                continue;
            *cell = (uint32_t)(word & LOW_MASK);
            *position = position_add(ring, at, 1);
            return true;
        }
        if (laps_ahead(word, at) < 0) {
            assert(is_full(word, at - LAP_ONE));
            *position = at;
            return false;
        }
        at = skip(ring, at, word, true);
        word = hf_u64_load(word_at(ring, at), __ATOMIC_SEQ_CST);
    }
}

size_t hf_ring_put_many_of(struct hf_ring *ring, void *const *items,
                           size_t count, enum hf_status *status)
{
    struct ring_local *local = hf_locals_mine(&ring->locals, sizeof *local);
    size_t done = 0;

    *status = HF_NOMEM;
    if (__builtin_expect(local == NULL, 0))
        return 0;
    *status = HF_OK;
    uint32_t cell = local->cell;
    if (__builtin_expect(cell == 0, 0))
        cell = ring->capacity + 1 + hf_thread_slot();
    uint64_t position = hf_u64_load(&ring->tail.at, __ATOMIC_ACQUIRE);
    for (; done < count && items[done] != NULL; done++) {
        /* Relaxed: the swap publishes it. */
        hf_ptr_store(cell_at(ring, cell), items[done], __ATOMIC_RELAXED);
        if (!fill(ring, &position, &cell)) {
            count_refused(&local->refused);
            *status = HF_FULL;
            break;
        }
    }
    local->cell = cell;
    if (done > 0)
        hf_u64_store(&ring->tail.at, position, __ATOMIC_RELEASE);
    return done;
}

/* ---- Many take. ---- */

size_t hf_ring_take_many_of(struct hf_ring *ring, void **items, size_t count)
{
    uint64_t at = hf_u64_load(&ring->head.at, __ATOMIC_ACQUIRE);
    uint64_t word = hf_u64_load(word_at(ring, at), __ATOMIC_SEQ_CST);
    size_t done = 0;

    while (done < count) {
        if (is_empty(word, at))
            break;
        if (__builtin_expect(!is_full(word, at), 0)) {
            assert(laps_ahead(word, at) > 0);
            at = skip(ring, at, word, false);
            word = hf_u64_load(word_at(ring, at), __ATOMIC_SEQ_CST);
            continue;
        }
        /* Relaxed: the load of the word has acquired it, the swap tells
         * whether it was still this one. */
        void *item = hf_ptr_load(cell_at(ring, (uint32_t)(word & LOW_MASK)),
                                 __ATOMIC_RELAXED);
        uint64_t empty = (word & ~FULL) + LAP_ONE;
        if (!hf_u64_cas(word_at(ring, at), &word, empty, __ATOMIC_SEQ_CST))
            continue;
        items[done++] = item;
        at = position_add(ring, at, 1);
        if (done < count)
            word = hf_u64_load(word_at(ring, at), __ATOMIC_SEQ_CST);
    }
    if (done > 0)
        hf_u64_store(&ring->head.at, at, __ATOMIC_RELEASE);
    return done;
}
