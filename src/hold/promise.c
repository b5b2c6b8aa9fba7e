/* promise.c - memory is promised before a record is journaled.
 *
 * What a record may need follows from the record alone, but for one thing:
 * CONFIRM, CANCEL and EXTEND show a reservation, and with a REQ that is kept.
 * How long it is depends on what happens before the record is applied. The
 * reservation is known by now, or it is made by a RESERVE that was prepared
 * and not applied yet (`reserving` counts these by size). So the longest of
 * them is promised, and counted in `showing`. Whoever is applied takes the
 * smallest promise that suffices, and whoever is not, the smallest: what
 * another was promised was then at least as much.
 */
#include <assert.h>

#include "hold/state.h"

/* Numbers, and texts that the engine itself has chosen. */
#define PLAIN_REPLY_BYTES 128u

/* Per item of a reservation: map, two fields, number, head of the text. */
#define ITEM_REPLY_BYTES 24u

static size_t reservation_bound(size_t items_len, size_t count)
{
    return PLAIN_REPLY_BYTES + HOLD_ID_MAX + items_len +
           count * ITEM_REPLY_BYTES;
}

/* The longest reply to a command that shows no reservation but its own. */
static size_t reply_bound(const struct hold_command *c)
{
    if (c->told)
        return 0;
    if (c->kind == HOLD_RESERVE)
        return reservation_bound(items_bytes(c), c->item_count);
    /* the owner is the one who holds the lock */
    return PLAIN_REPLY_BYTES + c->name.len +
           (c->kind == HOLD_LOCK ? HOLD_OWNER_MAX : 0);
}

/* The longest reservation that the command may come to show. */
static size_t shown_bound(const struct hold_engine *e,
                          const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->reservations, c->name);
    struct hf_bytes items = {"", 0};
    struct hold_item item;
    size_t count = 0;

    if (number != 0)
        items = hf_text_bytes(&e->texts, reservation_at(e, number)->items);
    for (size_t at = 0; items_next(items, &at, &item);)
        count++;
    size_t bound = reservation_bound(items.len, count);
    for (uint32_t i = HF_TEXT_CLASSES; i-- > 0;) {
        if (e->reserving[i] > 0)
            return hf_texts_class_max(i) > bound ? hf_texts_class_max(i)
                                                 : bound;
    }
    return bound;
}

static inline struct need need_of(struct hold_engine *e,
                                  const struct hold_command *c)
{
    struct need need = {.name_len = c->name.len};

    switch (c->kind) {
    case HOLD_LOCK:
        if (c->told)
            break; /* it is not carried out */
        need.index = &e->locks;
        need.waiter = c->wait_ms > 0;
        need.due = true;
        need.texts[0] = c->owner.len;
        break;
    case HOLD_FENCE:
        need.index = &e->fences;
        break;
    case HOLD_STOCK_SET:
        need.index = &e->products;
        break;
    case HOLD_RESERVE:
        need.index = &e->reservations;
        need.due = true;
        need.texts[0] = c->owner.len;
        need.texts[1] = items_bytes(c);
        need.reserves = hf_texts_class(reply_bound(c)) + 1;
        if (c->name.len == 0)
            need.name_len = HOLD_ID_MADE_BYTES;
        break;
    case HOLD_CANCEL:
    case HOLD_CONFIRM:
        need.texts[0] = c->reason.len;
        break;
    default:
        break;
    }
    if (c->request.len > 0 && is_action(c->kind)) {
        need.request_len = c->request.len;
        need.shows = c->kind > HOLD_RESERVE;
        if (!need.shows)
            need.texts[2] = reply_bound(c);
    }
    return need;
}

static void give_back(struct hold_engine *e, const struct need *need)
{
    if (need->index != NULL)
        hf_index_unpromise(need->index, need->name_len);
    if (need->waiter)
        hf_index_unpromise(&e->waiters, sizeof(uint64_t));
    if (need->due)
        hf_heap_unpromise(&e->due);
    for (int i = 0; i < NEED_TEXTS; i++)
        hf_texts_unpromise(&e->texts, need->texts[i]);
    if (need->request_len > 0)
        hf_index_unpromise(&e->requests, need->request_len);
}

/* What was promised so far is given back if one part is not to be had: `got`
 * is the need as far as it was met. */
static enum hf_status promise(struct hold_engine *e, const struct need *need)
{
    struct need got = {.index = NULL};

    if (need->index != NULL &&
        hf_index_promise(need->index, need->name_len) != HF_OK)
        goto failed;
    got.index = need->index;
    got.name_len = need->name_len;
    if (need->waiter &&
        hf_index_promise(&e->waiters, sizeof(uint64_t)) != HF_OK)
        goto failed;
    got.waiter = need->waiter;
    if (need->due && hf_heap_promise(&e->due) != HF_OK)
        goto failed;
    got.due = need->due;
    for (int i = 0; i < NEED_TEXTS; i++) {
        if (hf_texts_promise(&e->texts, need->texts[i]) != HF_OK)
            goto failed;
        got.texts[i] = need->texts[i];
    }
    if (need->request_len > 0 &&
        hf_index_promise(&e->requests, need->request_len) != HF_OK)
        goto failed;
    return HF_OK;

failed:
    give_back(e, &got);
    return HF_NOMEM;
}

/* True if the need can be met from memory that is there already. */
static bool fits(const struct hold_engine *e, const struct need *need)
{
    if (need->index != NULL && (!hf_slab_has_room(&need->index->slab) ||
                                !hf_texts_have_room(&e->texts, need->name_len)))
        return false;
    if (need->waiter && (!hf_slab_has_room(&e->waiters.slab) ||
                         !hf_texts_have_room(&e->texts, sizeof(uint64_t))))
        return false;
    if (need->due && e->due.count + e->due.promised + 2 > e->due.cap)
        return false;
    for (int i = 0; i < NEED_TEXTS; i++) {
        if (!hf_texts_have_room(&e->texts, need->texts[i]))
            return false;
    }
    return need->request_len == 0 ||
           (hf_slab_has_room(&e->requests.slab) &&
            hf_texts_have_room(&e->texts, need->request_len));
}

enum hf_status hold_prepare(struct hold_engine *e, const struct hold_command *c)
{
    struct need need = need_of(e, c);

    if (need.shows)
        need.texts[2] = shown_bound(e, c);
    if (e->memory_max > 0 && e->memory_bytes >= e->memory_max &&
        !fits(e, &need))
        return HF_NOMEM;
    size_t waiters = (size_t)e->waiters.slab.used + e->waiters.slab.promised;
    if (need.waiter && out_reserve(e, waiters + 2) != HF_OK)
        return HF_NOMEM;
    size_t before = e->memory_bytes;
    if (promise(e, &need) != HF_OK)
        return HF_NOMEM;
    e->grown = e->grown || e->memory_bytes > before;
    e->prepared++;
    if (need.shows)
        e->showing[hf_texts_class(need.texts[2])]++;
    if (need.reserves > 0)
        e->reserving[need.reserves - 1]++;
    return HF_OK;
}

/* Spends the smallest promise of at least this length. */
static size_t take_shown(struct hold_engine *e, size_t len)
{
    uint32_t i = hf_texts_class(len);

    while (e->showing[i] == 0) {
        i++;
        assert(i < HF_TEXT_CLASSES); /* it was prepared */
    }
    e->showing[i]--;
    e->spent.shows = false;
    e->spent.texts[2] = hf_texts_class_max(i);
    hf_texts_unpromise(&e->texts, e->spent.texts[2]);
    return e->spent.texts[2];
}

size_t promise_take_reply(struct hold_engine *e, size_t len)
{
    return e->spent.shows ? take_shown(e, len) : e->spent.texts[2];
}

void promise_spend(struct hold_engine *e, const struct hold_command *c)
{
    e->spent = need_of(e, c);
    assert(e->prepared > 0);
    e->prepared--;
    give_back(e, &e->spent);
    if (e->spent.reserves > 0) {
        assert(e->reserving[e->spent.reserves - 1] > 0); /* it was prepared */
        e->reserving[e->spent.reserves - 1]--;
    }
}

/* Gives back memory that was made for promises and is not needed. */
static void trim(struct hold_engine *e, const struct need *need)
{
    if (need->index != NULL) {
        hf_slab_trim(&need->index->slab);
        hf_texts_trim(&e->texts, need->name_len);
    }
    if (need->waiter)
        hf_slab_trim(&e->waiters.slab);
    for (int i = 0; i < NEED_TEXTS; i++)
        hf_texts_trim(&e->texts, need->texts[i]);
    if (need->request_len > 0) {
        hf_slab_trim(&e->requests.slab);
        hf_texts_trim(&e->texts, need->request_len);
    }
    e->grown = e->prepared > 0; /* else the last one came back */
}

void promise_end(struct hold_engine *e)
{
    if (e->spent.shows)
        (void)take_shown(e, 1);
    if (e->grown)
        trim(e, &e->spent);
}

void hold_forget(struct hold_engine *e, const struct hold_command *c)
{
    promise_spend(e, c);
    promise_end(e);
}
