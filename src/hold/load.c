/* load.c - rebuilds the state from an image's entries.
 *
 * The bytes have passed the journal's checksum; what is checked here guards
 * against an image from another version, not against chance.
 */
#include <assert.h>

#include "base/little.h"
#include "hold/image.h"
#include "hold/state.h"

#define IMAGE_FORMAT 1u

struct reader {
    struct hf_bytes piece;
    size_t at;
    bool bad;
};

static uint64_t take_number(struct reader *in)
{
    if (in->bad || in->piece.len - in->at < 8) {
        in->bad = true;
        return 0;
    }
    in->at += 8;
    return hf_get_u64(in->piece.data + in->at - 8);
}

static struct hf_bytes take_text(struct reader *in)
{
    if (in->bad || in->piece.len - in->at < 2) {
        in->bad = true;
        return hf_bytes("", 0);
    }
    size_t len = hf_get_u16(in->piece.data + in->at);
    if (in->piece.len - in->at - 2 < len) {
        in->bad = true;
        return hf_bytes("", 0);
    }
    in->at += 2 + len;
    return hf_bytes(in->piece.data + in->at - len, len);
}

/* A new record under a new name. */
static enum hf_status add_named(struct reader *in, struct hf_index *index,
                                struct hf_bytes name, uint32_t *number)
{
    if (in->bad || name.len == 0 || hf_index_find(index, name) != 0)
        return HF_CORRUPT;
    *number = hf_index_add(index, name);
    return *number == 0 ? HF_NOMEM : HF_OK;
}

static enum hf_status keep_text(struct hold_engine *e, struct hf_bytes bytes,
                                struct hf_text *out)
{
    return hf_texts_put(&e->texts, bytes, bytes.len, out);
}

static enum hf_status add_due(struct hold_engine *e, enum due_kind kind,
                              uint32_t number, uint64_t when, uint64_t tie)
{
    if (hf_heap_promise(&e->due) != HF_OK)
        return HF_NOMEM;
    hf_heap_unpromise(&e->due);
    due_add(e, kind, number, when, tie);
    return HF_OK;
}

static enum hf_status load_head(struct hold_engine *e, struct reader *in)
{
    if (e->loading || take_number(in) != IMAGE_FORMAT)
        return HF_CORRUPT;
    e->loading = true;
    e->seq = take_number(in);
    e->now_us = take_number(in);
    e->bounds.locks_max = take_number(in);
    e->bounds.waiters_max = take_number(in);
    e->bounds.products_max = take_number(in);
    e->bounds.reservations_max = take_number(in);
    e->bounds.fences_max = take_number(in);
    e->bounds.requests_max = take_number(in);
    e->bounds.request_keep_ms = take_number(in);
    e->bounds.ended_keep_ms = take_number(in);
    hf_index_expect(&e->locks, take_number(in));
    hf_index_expect(&e->products, take_number(in));
    hf_index_expect(&e->reservations, take_number(in));
    return HF_OK;
}

static enum hf_status load_lock(struct hold_engine *e, struct reader *in)
{
    uint64_t token = take_number(in);
    uint64_t expires_us = take_number(in);
    uint64_t acquired_us = take_number(in);
    uint64_t count = take_number(in);
    struct hf_bytes name = take_text(in);
    struct hf_bytes owner = take_text(in);
    uint32_t number;
    enum hf_status status = add_named(in, &e->locks, name, &number);

    if (status != HF_OK)
        return status;
    struct lock *lock = lock_at(e, number);
    lock->token = token;
    lock->expires_us = expires_us;
    lock->acquired_us = acquired_us;
    lock->count = (uint32_t)count;
    e->load_lock = number;
    if (keep_text(e, owner, &lock->owner) != HF_OK)
        return HF_NOMEM;
    return add_due(e, DUE_LOCK, number, expires_us, token);
}

static enum hf_status load_waiter(struct hold_engine *e, struct reader *in)
{
    uint64_t token = take_number(in);
    uint64_t ticket = take_number(in);
    uint64_t deadline_us = take_number(in);
    uint64_t queued_us = take_number(in);
    uint64_t ttl_ms = take_number(in);
    struct hf_bytes owner = take_text(in);
    char name[8];
    uint32_t number;

    hf_put_u64(name, ticket);
    if (e->load_lock == 0 || lock_at(e, e->load_lock)->token != token)
        return HF_CORRUPT;
    enum hf_status status =
        add_named(in, &e->waiters, hf_bytes(name, 8), &number);
    if (status == HF_OK)
        status = out_reserve(e, hf_index_count(&e->waiters) + 2);
    if (status != HF_OK)
        return status;
    struct lock *lock = lock_at(e, e->load_lock);
    struct waiter *waiter = waiter_at(e, number);
    waiter->ticket = ticket;
    waiter->deadline_us = deadline_us;
    waiter->queued_us = queued_us;
    waiter->ttl_ms = ttl_ms;
    waiter->lock = e->load_lock;
    waiter->prev = lock->last;
    if (lock->last != 0)
        waiter_at(e, lock->last)->next = number;
    else
        lock->first = number;
    lock->last = number;
    lock->waiting++;
    if (keep_text(e, owner, &waiter->owner) != HF_OK)
        return HF_NOMEM;
    return add_due(e, DUE_WAITER, number, deadline_us, ticket);
}

static enum hf_status load_product(struct hold_engine *e, struct reader *in)
{
    struct product loaded = {.total = take_number(in)};
    loaded.reserved = take_number(in);
    loaded.sold = take_number(in);
    loaded.version = take_number(in);
    loaded.updated_us = take_number(in);
    struct hf_bytes sku = take_text(in);
    uint32_t number;
    enum hf_status status = add_named(in, &e->products, sku, &number);

    if (status != HF_OK)
        return status;
    struct product *product = product_at(e, number);
    loaded.named = product->named;
    *product = loaded;
    e->stock_total += loaded.total;
    e->stock_reserved += loaded.reserved;
    e->stock_sold += loaded.sold;
    return HF_OK;
}

/* At least one item, each whole. */
static bool items_are_whole(struct hf_bytes items)
{
    size_t at = 0;

    while (items.len - at >= 2) {
        size_t len = hf_get_u16(items.data + at);
        if (len == 0 || items.len - at < 2 + len + 8)
            return false;
        at += 2 + len + 8;
    }
    return at > 0 && at == items.len;
}

static enum hf_status load_reservation(struct hold_engine *e, struct reader *in)
{
    struct reservation loaded = {.seq = take_number(in)};
    loaded.created_us = take_number(in);
    loaded.expires_us = take_number(in);
    loaded.ended_us = take_number(in);
    loaded.status = (uint32_t)take_number(in);
    struct hf_bytes id = take_text(in);
    struct hf_bytes owner = take_text(in);
    struct hf_bytes reason = take_text(in);
    struct hf_bytes items = take_text(in);
    uint32_t number;

    if (loaded.status > RESERVATION_EXPIRED || !items_are_whole(items))
        return HF_CORRUPT;
    enum hf_status status = add_named(in, &e->reservations, id, &number);
    if (status != HF_OK)
        return status;
    struct reservation *r = reservation_at(e, number);
    loaded.named = r->named;
    *r = loaded;
    if (keep_text(e, owner, &r->owner) != HF_OK ||
        keep_text(e, reason, &r->reason) != HF_OK ||
        keep_text(e, items, &r->items) != HF_OK)
        return HF_NOMEM;
    if (r->status != RESERVATION_PENDING) {
        list_append(e, &e->ended, reservation_links, number);
        return HF_OK;
    }
    e->pending++;
    return add_due(e, DUE_RESERVATION, number, r->expires_us, r->seq);
}

static enum hf_status load_fence(struct hold_engine *e, struct reader *in)
{
    uint64_t newest = take_number(in);
    struct hf_bytes name = take_text(in);
    uint32_t number;
    enum hf_status status = add_named(in, &e->fences, name, &number);

    if (status == HF_OK)
        ((struct fence *)hf_index_at(&e->fences, number))->newest = newest;
    return status;
}

static enum hf_status load_request(struct hold_engine *e, struct reader *in)
{
    uint64_t fingerprint = take_number(in);
    uint64_t stored_us = take_number(in);
    uint64_t code = take_number(in);
    uint64_t ticket = take_number(in);
    struct hf_bytes id = take_text(in);
    struct hf_bytes reply = take_text(in);
    uint32_t number;

    if (code >= HOLD_CODE_COUNT)
        return HF_CORRUPT;
    enum hf_status status = add_named(in, &e->requests, id, &number);
    if (status != HF_OK)
        return status;
    struct request *request = request_at(e, number);
    request->fingerprint = fingerprint;
    request->stored_us = stored_us;
    request->code = (uint32_t)code;
    if (keep_text(e, reply, &request->reply) != HF_OK)
        return HF_NOMEM;
    if (ticket == 0) {
        request_append(e, number);
        return HF_OK;
    }
    request->waiter = waiter_find(e, ticket);
    if (request->waiter == 0)
        return HF_CORRUPT;
    waiter_at(e, request->waiter)->request = number;
    return HF_OK;
}

enum hf_status hold_load(struct hold_engine *e, struct hf_bytes piece)
{
    struct reader in = {piece, 0, false};
    enum hf_status status = HF_OK;

    while (status == HF_OK && in.at < piece.len) {
        char kind = piece.data[in.at++];
        if (kind == 'H')
            status = load_head(e, &in);
        else if (!e->loading)
            status = HF_CORRUPT;
        else if (kind == 'L')
            status = load_lock(e, &in);
        else if (kind == 'W')
            status = load_waiter(e, &in);
        else if (kind == 'P')
            status = load_product(e, &in);
        else if (kind == 'R')
            status = load_reservation(e, &in);
        else if (kind == 'F')
            status = load_fence(e, &in);
        else if (kind == 'Q')
            status = load_request(e, &in);
        else
            status = HF_CORRUPT;
        if (in.bad)
            status = HF_CORRUPT;
    }
    return status;
}
