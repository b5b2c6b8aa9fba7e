/* image.c - saves and loads the whole state, and sums it up in a digest.
 *
 * One walk produces the entries in a fixed order; saving packs them into
 * pieces, the digest adds up their hashes. A sum does not depend on the order
 * of the walk, and that order depends on slab numbers; where the order is part
 * of the state (queues, the lists by time), the place goes into the hash.
 *
 *   H  format seq now bounds... locks products reservations
 *   L  token expires acquired count           | name owner
 *   W  lock's token, ticket deadline queued ttl | owner
 *   P  total reserved sold version updated    | sku
 *   R  seq created expires ended status       | id owner reason items
 *   F  newest                                 | name
 *   Q  fingerprint stored code ticket         | id reply
 */
#include "hold/image.h"

#include <assert.h>

#include "base/little.h"
#include "base/memory.h"
#include "hold/state.h"

#define IMAGE_FORMAT 1u
#define NUMBERS_MAX  14
#define TEXTS_MAX    4

/* The longest entry: a request with its stored reply. */
#define ENTRY_MAX (72u * 1024)

struct entry {
    char kind;
    int number_count;
    int text_count;
    uint64_t numbers[NUMBERS_MAX];
    struct hf_bytes texts[TEXTS_MAX];
};

typedef enum hf_status entry_sink(void *context, struct hf_bytes entry,
                                  uint64_t place);

struct walk {
    struct hold_engine *e;
    entry_sink *sink;
    void *context;
};

static enum hf_status give(struct walk *walk, const struct entry *entry,
                           uint64_t place)
{
    struct hf_buf *buf = &walk->e->body;
    char *at = buf->data;

    *at++ = entry->kind;
    for (int i = 0; i < entry->number_count; i++, at += 8)
        hf_put_u64(at, entry->numbers[i]);
    for (int i = 0; i < entry->text_count; i++) {
        struct hf_bytes text = entry->texts[i];
        hf_put_u16(at, (uint16_t)text.len);
        if (text.len > 0)
            memcpy(at + 2, text.data, text.len);
        at += 2 + text.len;
    }
    assert((size_t)(at - buf->data) <= ENTRY_MAX);
    return walk->sink(walk->context,
                      hf_bytes(buf->data, (size_t)(at - buf->data)), place);
}

static enum hf_status walk_head(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    const struct hold_bounds *b = &e->bounds;
    struct entry entry = {
        'H',
        6 + HOLD_BOUNDS_COUNT,
        0,
        {IMAGE_FORMAT, e->seq, e->now_us, b->locks_max, b->waiters_max,
         b->products_max, b->reservations_max, b->fences_max, b->requests_max,
         b->request_keep_ms, b->ended_keep_ms, hf_index_count(&e->locks),
         hf_index_count(&e->products), hf_index_count(&e->reservations)},
        {{NULL, 0}}};

    return give(walk, &entry, 0);
}

static enum hf_status walk_lock(struct walk *walk, const struct lock *lock)
{
    const struct hold_engine *e = walk->e;
    struct entry entry = {
        'L',
        4,
        2,
        {lock->token, lock->expires_us, lock->acquired_us, lock->count},
        {hf_index_name(&e->locks, lock),
         hf_text_bytes(&e->texts, lock->owner)}};
    enum hf_status status = give(walk, &entry, 0);
    uint64_t place = 0;

    for (uint32_t n = lock->first; status == HF_OK && n != 0;) {
        const struct waiter *w = waiter_at(e, n);
        struct entry waiter = {
            'W',
            5,
            1,
            {lock->token, w->ticket, w->deadline_us, w->queued_us, w->ttl_ms},
            {hf_text_bytes(&e->texts, w->owner)}};
        status = give(walk, &waiter, place++);
        n = w->next;
    }
    return status;
}

static enum hf_status walk_product(struct walk *walk, const struct product *p)
{
    struct entry entry = {
        'P',
        5,
        1,
        {p->total, p->reserved, p->sold, p->version, p->updated_us},
        {hf_index_name(&walk->e->products, p)}};

    return give(walk, &entry, 0);
}

static enum hf_status
walk_reservation(struct walk *walk, const struct reservation *r, uint64_t place)
{
    const struct hf_texts *texts = &walk->e->texts;
    struct entry entry = {
        'R',
        5,
        4,
        {r->seq, r->created_us, r->expires_us, r->ended_us, r->status},
        {hf_index_name(&walk->e->reservations, r),
         hf_text_bytes(texts, r->owner), hf_text_bytes(texts, r->reason),
         hf_text_bytes(texts, r->items)}};

    return give(walk, &entry, place);
}

static enum hf_status walk_fence(struct walk *walk, const struct fence *f)
{
    struct entry entry = {
        'F', 1, 1, {f->newest}, {hf_index_name(&walk->e->fences, f)}};

    return give(walk, &entry, 0);
}

static enum hf_status walk_request(struct walk *walk, const struct request *q,
                                   uint64_t place)
{
    const struct hold_engine *e = walk->e;
    uint64_t ticket = q->waiter ? waiter_at(e, q->waiter)->ticket : 0;
    struct entry entry = {
        'Q',
        4,
        2,
        {q->fingerprint, q->stored_us, q->code, ticket},
        {hf_index_name(&e->requests, q), hf_text_bytes(&e->texts, q->reply)}};

    return give(walk, &entry, place);
}

/* Pending reservations and waiting requests, which are in no list. */
static enum hf_status walk_open(struct walk *walk)
{
    struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->reservations);
         i++) {
        struct reservation *r = hf_index_used(&e->reservations, i);
        if (r != NULL && r->status == RESERVATION_PENDING)
            status = walk_reservation(walk, r, 0);
    }
    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->requests);
         i++) {
        struct request *q = hf_index_used(&e->requests, i);
        if (q != NULL && q->waiter != 0)
            status = walk_request(walk, q, 0);
    }
    return status;
}

static enum hf_status walk_lists(struct walk *walk)
{
    struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;
    uint64_t place = 1;

    for (uint32_t i = e->ended.first; status == HF_OK && i != 0;
         i = reservation_at(e, i)->next)
        status = walk_reservation(walk, reservation_at(e, i), place++);
    place = 1;
    for (uint32_t i = e->done.first; status == HF_OK && i != 0;
         i = request_at(e, i)->next)
        status = walk_request(walk, request_at(e, i), place++);
    place = 1;
    for (uint32_t i = e->refused.first; status == HF_OK && i != 0;
         i = request_at(e, i)->next)
        status = walk_request(walk, request_at(e, i), place++);
    return status;
}

static enum hf_status walk_all(struct walk *walk)
{
    struct hold_engine *e = walk->e;
    enum hf_status status = walk_head(walk);

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->locks); i++) {
        struct lock *lock = hf_index_used(&e->locks, i);
        if (lock != NULL)
            status = walk_lock(walk, lock);
    }
    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->products);
         i++) {
        struct product *product = hf_index_used(&e->products, i);
        if (product != NULL)
            status = walk_product(walk, product);
    }
    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->fences); i++) {
        struct fence *fence = hf_index_used(&e->fences, i);
        if (fence != NULL)
            status = walk_fence(walk, fence);
    }
    if (status == HF_OK)
        status = walk_open(walk);
    if (status == HF_OK)
        status = walk_lists(walk);
    return status;
}

struct packer {
    hold_sink *sink;
    void *context;
    struct hf_buf piece;
};

static enum hf_status pack(void *context, struct hf_bytes entry, uint64_t place)
{
    struct packer *packer = context;
    struct hf_buf *piece = &packer->piece;

    (void)place;
    if (piece->cap - piece->len < entry.len) {
        enum hf_status status =
            packer->sink(packer->context, piece->data, piece->len);
        if (status != HF_OK)
            return status;
        piece->len = 0;
    }
    memcpy(piece->data + piece->len, entry.data, entry.len);
    piece->len += entry.len;
    return HF_OK;
}

enum hf_status hold_save(struct hold_engine *e, hold_sink *sink, void *context)
{
    struct packer packer = {sink, context, {0}};
    struct walk walk = {e, pack, &packer};
    enum hf_status status;

    packer.piece.data = hf_alloc(HOLD_PIECE_MAX);
    if (packer.piece.data == NULL)
        return HF_NOMEM;
    packer.piece.cap = HOLD_PIECE_MAX;
    status = walk_all(&walk);
    if (status == HF_OK)
        status = sink(context, packer.piece.data, packer.piece.len);
    hf_free(packer.piece.data);
    return status;
}

static enum hf_status add_hash(void *context, struct hf_bytes entry,
                               uint64_t place)
{
    struct hf_hash_seed seed = {{0x646967657374u, place}};

    *(uint64_t *)context += hf_hash(seed, entry);
    return HF_OK;
}

uint64_t hold_digest(struct hold_engine *e)
{
    uint64_t digest = 0;
    struct walk walk = {e, add_hash, &digest};

    (void)walk_all(&walk);
    return digest;
}

enum hf_status hold_each_lock(const struct hold_engine *e, hold_visit *visit,
                              void *context)
{
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->locks); i++) {
        const struct lock *lock = hf_index_used(&e->locks, i);
        if (lock == NULL)
            continue;
        struct hold_held held = {hf_index_name(&e->locks, lock), lock->token,
                                 lock->expires_us, lock->count};
        status = visit(context, &held);
    }
    return status;
}
