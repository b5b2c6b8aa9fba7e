/* promise.c - memory is promised before a record is journaled. */
#include <assert.h>

#include "hold/state.h"

#define NEED_TEXTS 3

/* What applying a command may take: at most one record of each index. */
struct need {
    struct hf_index *index; /* NULL: none */
    size_t name_len;
    bool waiter;
    bool due;
    size_t texts[NEED_TEXTS]; /* besides the name; 0: none */
    size_t request_len;       /* 0: no REQ */
};

static struct need need_of(struct hold_engine *e, const struct hold_command *c)
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
        need.texts[2] = request_reply_bound(c);
        need.request_len = c->request.len;
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
    if (need->waiter && !hf_slab_has_room(&e->waiters.slab))
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

    if (e->memory_max > 0 && e->memory_bytes >= e->memory_max &&
        !fits(e, &need))
        return HF_NOMEM;
    size_t waiters = (size_t)e->waiters.slab.used + e->waiters.slab.promised;
    if (need.waiter && out_reserve(e, waiters + 2) != HF_OK)
        return HF_NOMEM;
    return promise(e, &need);
}

void hold_forget(struct hold_engine *e, const struct hold_command *c)
{
    struct need need = need_of(e, c);

    give_back(e, &need);
}
