/* limiter_hold.c - reserve, then settle.
 *
 * A hold is a take that remembers what it took, of which cells, and when. It
 * has a number: a place in a table and how often that place was used, counted
 * from a random number on, so that a number of an earlier limiter is hardly one
 * of this. Settle takes it out of the table by that, which only one can do.
 *
 * Nobody watches the time. A cell with holds on it looks at them whenever it
 * is used, before anything is decided, and when it is asked how long to wait.
 */
#include "flow/limiter_hold.h"

#include <string.h>

#include "base/memory.h"

/* ---- The table. ---- */

static enum hf_status table_grow(struct limiter_hold_table *table)
{
    uint32_t cap = table->cap == 0 ? 16 : table->cap * 2;

    if (cap == 0)
        return HF_FULL;
    struct limiter_hold_place *places =
        hf_realloc(table->places, cap * sizeof *places);
    if (places == NULL)
        return HF_NOMEM;
    for (uint32_t i = table->cap; i < cap; i++)
        places[i] = (struct limiter_hold_place){
            .generation = table->first, .next = i + 1 < cap ? i + 2 : 0};
    table->free = table->cap + 1;
    table->places = places;
    table->cap = cap;
    return HF_OK;
}

/* Gives the hold a number; it is not to be found by it yet. */
static enum hf_status table_add(struct hf_limiter *limiter,
                                struct limiter_hold *hold)
{
    struct limiter_hold_table *table = &limiter->holds;
    enum hf_status status = HF_OK;

    hf_mutex_lock(&table->mutex);
    /* Relaxed: written under this lock. */
    if (hf_u64_load(&table->open, __ATOMIC_RELAXED) >= limiter->holds_max)
        status = HF_FULL;
    else if (table->free == 0)
        status = table_grow(table);
    if (status == HF_OK) {
        uint32_t place = table->free - 1;
        table->free = table->places[place].next;
        hold->number = (uint64_t)table->places[place].generation << 32 | place;
        hf_u64_add(&table->open, 1, __ATOMIC_RELAXED); /* as above */
    }
    hf_mutex_unlock(&table->mutex);
    return status;
}

static void table_show(struct hf_limiter *limiter, struct limiter_hold *hold)
{
    struct limiter_hold_table *table = &limiter->holds;

    hf_mutex_lock(&table->mutex);
    table->places[(uint32_t)hold->number].hold = hold;
    hf_mutex_unlock(&table->mutex);
}

/* The place can be used again; the number cannot. (m) */
static void place_free(struct limiter_hold_table *table, uint32_t place)
{
    struct limiter_hold_place *at = &table->places[place];

    at->hold = NULL;
    if (++at->generation >= LIMITER_GENERATIONS)
        at->generation = 1;
    at->next = table->free;
    table->free = place + 1;
    /* Relaxed: written under this lock. */
    hf_u64_sub(&table->open, 1, __ATOMIC_RELAXED);
}

static void table_cancel(struct hf_limiter *limiter, struct limiter_hold *hold)
{
    hf_mutex_lock(&limiter->holds.mutex);
    place_free(&limiter->holds, (uint32_t)hold->number);
    hf_mutex_unlock(&limiter->holds.mutex);
}

static void hold_leave(struct limiter_hold *hold, uint32_t count)
{
    /* Release: what we did with it; acquire: what others did. */
    if (hf_u32_sub(&hold->users, count, __ATOMIC_ACQ_REL) == count)
        hf_free(hold);
}

/* Ends a hold in this way, if it is open and has this number. The caller has
 * it as a user in the place of the table. */
static struct limiter_hold *table_take(struct hf_limiter *limiter,
                                       uint64_t number, uint64_t now_ns,
                                       enum limiter_hold_state state)
{
    struct limiter_hold_table *table = &limiter->holds;
    uint32_t place = (uint32_t)number;
    struct limiter_hold *hold = NULL;
    uint32_t open = HOLD_OPEN;

    hf_mutex_lock(&table->mutex);
    if (place < table->cap && table->places[place].generation == number >> 32)
        hold = table->places[place].hold;
    if (hold != NULL && state == HOLD_SETTLED && now_ns >= hold->expires_ns)
        state = HOLD_EXPIRED;
    /* Relaxed: the table's lock, and each cell's, order what follows. */
    if (hold != NULL &&
        hf_u32_cas(&hold->state, &open, state, __ATOMIC_RELAXED)) {
        place_free(table, place);
    } else {
        hold = NULL;
    }
    hf_mutex_unlock(&table->mutex);
    return hold;
}

void hf_limiter_holds_destroy(struct hf_limiter *limiter)
{
    struct limiter_hold_table *table = &limiter->holds;

    /* The cells have gone: of a hold only its place is left. */
    for (uint32_t i = 0; i < table->cap; i++)
        hf_free(table->places[i].hold);
    hf_free(table->places);
}

/* ---- The holds of one cell. ---- */

/* The last has gone: the words lie in the cell again. */
static void holds_end(struct limiter_open *open)
{
    struct limiter_cell *cell = open->cell;
    uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_RELAXED);

    assert(open->holds->first == NULL);
    hf_free(open->holds);
    open->holds = NULL;
    /* Relaxed: under the cell's lock. */
    hf_u32_store(&cell->identity, identity & ~IDENTITY_HOLDS, __ATOMIC_RELAXED);
}

/* Notes a pair; its record is there. Sorted by when they are over: from the
 * end, for the one that is made last is mostly over last. */
static void holds_insert(struct limiter_open *open, struct limiter_pair *pair)
{
    struct limiter_holds *holds = open->holds;
    struct limiter_pair *before = holds->last;

    while (before != NULL && before->hold->expires_ns > pair->hold->expires_ns)
        before = before->prev;
    struct limiter_pair **link = before != NULL ? &before->next : &holds->first;
    pair->prev = before;
    pair->next = *link;
    *link = pair;
    *(pair->next != NULL ? &pair->next->prev : &holds->last) = pair;
}

static void holds_remove(struct limiter_open *open, struct limiter_pair *pair)
{
    struct limiter_holds *holds = open->holds;

    *(pair->prev != NULL ? &pair->prev->next : &holds->first) = pair->next;
    *(pair->next != NULL ? &pair->next->prev : &holds->last) = pair->prev;
    pair->ended = 1;
}

bool hf_limiter_holds_expire(struct hf_limiter *limiter,
                             struct limiter_open *open, uint64_t now_ns)
{
    struct limiter_pair *pair = open->holds->first;
    bool changed = false;

    while (pair != NULL && pair->hold->expires_ns <= now_ns) {
        struct limiter_hold *hold = pair->hold;
        struct limiter_pair *next = pair->next;
        uint32_t users = 1;
        if (table_take(limiter, hold->number, now_ns, HOLD_EXPIRED) != NULL)
            users = 2; /* and its place */
        /* Relaxed: it no longer changes. A settled one is its settler's, who
         * waits for this cell. */
        if (hf_u32_load(&hold->state, __ATOMIC_RELAXED) == HOLD_EXPIRED) {
            hf_words_refund(&open->plan, &open->words, pair->cost,
                            pair->taken_ns);
            holds_remove(open, pair);
            hold_leave(hold, users);
            changed = true;
        }
        pair = next;
    }
    if (open->holds->first == NULL)
        holds_end(open);
    return changed;
}

uint64_t hf_limiter_holds_wait(const struct limiter_open *open, uint64_t count,
                               uint64_t keep_back, uint64_t now_ns)
{
    const struct hf_rate_plan *plan = &open->plan;
    uint64_t wait_ns =
        hf_words_wait(plan, &open->words, count, keep_back, now_ns);

    if (wait_ns == 0 || wait_ns == HF_RATE_NEVER || open->holds == NULL ||
        plan->words == 0)
        return wait_ns;
    struct rate_state words = open->words;
    uint64_t at_ns = now_ns;
    for (const struct limiter_pair *pair = open->holds->first; pair != NULL;
         pair = pair->next) {
        uint64_t expires_ns = pair->hold->expires_ns;
        if (expires_ns - now_ns >= wait_ns)
            break;
        if (expires_ns > at_ns)
            at_ns = expires_ns;
        hf_words_refund(plan, &words, pair->cost, pair->taken_ns);
        wait_ns = at_ns - now_ns +
                  hf_words_wait(plan, &words, count, keep_back, at_ns);
    }
    return wait_ns;
}

void hf_limiter_holds_forget(struct hf_limiter *limiter,
                             struct limiter_open *open)
{
    struct limiter_pair *next;

    for (struct limiter_pair *pair = open->holds->first; pair != NULL;
         pair = next) {
        struct limiter_hold *hold = pair->hold;
        uint32_t users = 1;
        next = pair->next;
        pair->ended = 1;
        /* Its other pairs come back when their time is over; with the last it
         * leaves its place. Acquire: what those did who left. */
        if (hf_u32_load(&hold->users, __ATOMIC_ACQUIRE) == 2 &&
            table_take(limiter, hold->number, 0, HOLD_EXPIRED) != NULL)
            users = 2;
        hold_leave(hold, users);
    }
    open->holds->first = open->holds->last = NULL;
    holds_end(open);
}

/* ---- Hold and settle. ---- */

static struct limiter_hold *hold_new(const struct limiter_parts *parts,
                                     uint64_t expires_ns)
{
    struct limiter_hold *hold =
        hf_alloc_zeroed(sizeof *hold + parts->count * sizeof hold->pair[0]);

    if (hold == NULL)
        return NULL;
    hold->expires_ns = expires_ns;
    return hold;
}

/* Every cell that the hold is on has a record for holds. HF_NOMEM. */
static enum hf_status holds_ready(struct limiter_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_open *open = &parts->part[i].open;
        if (open->holds != NULL)
            continue;
        struct limiter_holds *holds = hf_alloc_zeroed(sizeof *holds);
        if (holds == NULL)
            return HF_NOMEM;
        /* Relaxed: under the cell's lock. */
        uint32_t identity =
            hf_u32_load(&open->cell->identity, __ATOMIC_RELAXED);
        hf_u32_store(&open->cell->identity, identity | IDENTITY_HOLDS,
                     __ATOMIC_RELAXED);
        hf_u64_store(&open->cell->words[0], (uint64_t)(uintptr_t)holds,
                     __ATOMIC_RELAXED);
        open->holds = holds;
        hf_limiter_cell_store(open);
    }
    return HF_OK;
}

/* Records without a hold go again. */
static void holds_trim(struct limiter_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_open *open = &parts->part[i].open;
        if (open->holds != NULL && open->holds->first == NULL) {
            holds_end(open);
            hf_limiter_cell_store(open);
        }
    }
}

/* Of a shadow that would deny nothing was taken, and nothing is settled. */
static void add_pair(struct limiter_hold *hold, struct limiter_part *part,
                     uint64_t now_ns)
{
    struct limiter_pair *pair = &hold->pair[hold->count++];
    bool took = part->wait_ns == 0;
    struct hf_rate_answer told;

    hf_words_tell(&part->open.plan, &part->open.words, now_ns, &told);
    *pair = (struct limiter_pair){.hold = hold,
                                  .cell = part->open.number,
                                  .took = took,
                                  .cost = took ? part->cost : 0,
                                  .taken_ns = told.taken_ns};
    holds_insert(&part->open, pair);
}

static enum hf_status hold_parts(struct hf_limiter *limiter,
                                 struct limiter_parts *parts, uint64_t hold_ns,
                                 uint64_t *number)
{
    uint64_t expires_ns;
    enum hf_status status;

    if (__builtin_add_overflow(parts->now_ns, hold_ns, &expires_ns))
        expires_ns = UINT64_MAX;
    struct limiter_hold *hold = hold_new(parts, expires_ns);
    if (hold == NULL)
        return HF_NOMEM;
    status = holds_ready(parts);
    if (status == HF_OK)
        status = table_add(limiter, hold);
    if (status == HF_OK &&
        (status = hf_limiter_parts_take(limiter, parts, true)) != HF_OK)
        table_cancel(limiter, hold);
    if (status != HF_OK) {
        hf_free(hold);
        return status;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_part *part = &parts->part[i];
        if (part->wait_ns == 0)
            add_pair(hold, part, parts->now_ns);
    }
    if (hold->count == 0) /* shadows only, that would deny: it ends with one */
        add_pair(hold, &parts->part[0], parts->now_ns);
    /* Relaxed: the cells' locks publish it. */
    hf_u32_store(&hold->users, hold->count + 1, __ATOMIC_RELAXED);
    table_show(limiter, hold);
    *number = hold->number;
    return HF_OK;
}

enum hf_status hf_limiter_hold_parts(struct hf_limiter *limiter,
                                     struct limiter_local *local,
                                     const struct hf_limiter_call *call,
                                     uint64_t hold_ns, uint64_t now_ns,
                                     struct hf_limiter_answer *answer,
                                     uint64_t *number)
{
    struct limiter_parts parts;
    enum hf_status status =
        hf_limiter_parts_lock(limiter, local, call, true, now_ns, &parts);

    *number = 0;
    if (status != HF_OK)
        return status;
    if (hf_limiter_parts_ask(limiter, &parts, call->priority))
        status = hold_parts(limiter, &parts, hold_ns, number);
    holds_trim(&parts);
    if (status == HF_OK)
        hf_limiter_parts_answer(limiter, call, &parts, now_ns, answer);
    hf_limiter_parts_unlock(limiter, &parts);
    return status;
}

static void settle_pair(struct hf_limiter *limiter, struct limiter_open *open,
                        struct limiter_pair *pair, uint64_t cost,
                        uint64_t now_ns)
{
    uint64_t bytes = hf_words_bytes(&open->plan, &open->words);

    if (cost < pair->cost)
        hf_words_refund(&open->plan, &open->words, pair->cost - cost,
                        pair->taken_ns);
    else if (cost > pair->cost && pair->took)
        hf_words_spend(&open->plan, &open->words, cost - pair->cost, now_ns);
    hf_u64_add(&limiter->array_bytes,
               hf_words_bytes(&open->plan, &open->words) - bytes,
               __ATOMIC_RELAXED); /* a figure */
    holds_remove(open, pair);
    if (open->holds->first == NULL)
        holds_end(open);
    hf_limiter_cell_store(open);
}

enum hf_status hf_limiter_hold_settle(struct hf_limiter *limiter,
                                      uint64_t number, uint64_t cost,
                                      uint64_t now_ns)
{
    struct limiter_hold *hold =
        table_take(limiter, number, now_ns, HOLD_SETTLED);
    struct limiter_open open;
    uint64_t ids[HF_LIMITER_ASKS_MAX];

    if (hold == NULL)
        return HF_NOTFOUND;
    /* Relaxed: it no longer changes. */
    if (hf_u32_load(&hold->state, __ATOMIC_RELAXED) == HOLD_EXPIRED) {
        hold_leave(hold, 1);
        return HF_NOTFOUND;
    }
    /* Cells with holds are not forgotten, so the numbers are good. All of them
     * are locked, so that it happens at one instant. */
    for (uint32_t i = 0; i < hold->count; i++)
        hf_limiter_lock(limiter, limiter_cell_at(limiter, hold->pair[i].cell));
    uint32_t users = 1; /* its place in the table */
    for (uint32_t i = 0; i < hold->count; i++) {
        struct limiter_pair *pair = &hold->pair[i];
        if (pair->ended) /* with its rule */
            continue;
        hf_limiter_cell_open(limiter, limiter_cell_at(limiter, pair->cell),
                             pair->cell, &open);
        settle_pair(limiter, &open, pair, cost, now_ns);
        ids[users - 1] = hf_limiter_wait_id(
            hf_u32_load(&open.cell->hash, __ATOMIC_RELAXED),
            hf_u32_load(&open.cell->identity, __ATOMIC_RELAXED));
        users++;
    }
    for (uint32_t i = hold->count; i > 0; i--)
        limiter_unlock(limiter,
                       limiter_cell_at(limiter, hold->pair[i - 1].cell));
    hold_leave(hold, users);
    for (uint32_t i = 0; i + 1 < users; i++)
        hf_limiter_wait_call(limiter, ids[i]);
    return HF_OK;
}
