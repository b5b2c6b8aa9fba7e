/* check.c - proves the invariants over the whole state. */
#include "base/memory.h"
#include "hold/check_parts.h"
#include "hold/image.h"

static enum hf_status check_pending(struct checker *checker, uint32_t number,
                                    const struct reservation *r)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes items = hf_text_bytes(&e->texts, r->items);
    struct hf_bytes id = hf_index_name(&e->reservations, r);
    struct hold_item item;

    if (!check_in_heap(e, r->due, DUE_RESERVATION, number, r->expires_us))
        return check_broken(
            checker, "reservation %.*s is not due at its expiry", HF_SHOW(id));
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        uint32_t product = hf_index_find(&e->products, item.sku);
        if (product == 0)
            return check_broken(checker,
                                "reservation %.*s has an unknown product",
                                HF_SHOW(id));
        if (product_at(e, product)->ends_us > r->expires_us)
            return check_broken(checker,
                                "reservation %.*s ends before its products say",
                                HF_SHOW(id));
        checker->reserved[product] += item.quantity;
    }
    checker->pending++;
    return HF_OK;
}

static enum hf_status check_reservations(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t ended = 0;
    uint64_t last_us = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->reservations); i++) {
        const struct reservation *r = hf_index_used(&e->reservations, i);
        if (r == NULL || r->status != RESERVATION_PENDING)
            continue;
        enum hf_status status = check_pending(checker, i, r);
        if (status != HF_OK)
            return status;
    }
    for (uint32_t i = e->ended.first; i != 0;
         i = reservation_at(e, i)->listed.links.next) {
        const struct reservation *r = reservation_at(e, i);
        if (!reservation_has_ended(r) || r->ended_us < last_us)
            return check_broken(checker,
                                "the list of ended reservations is wrong");
        last_us = r->ended_us;
        if (++ended > hf_index_count(&e->reservations))
            break;
    }
    if (checker->pending != e->pending ||
        ended + e->pending + e->booked + hf_index_count(&e->buyers) !=
            hf_index_count(&e->reservations))
        return check_broken(
            checker,
            "%u reservations, but %llu pending, %llu ended, "
            "%llu booked and %u waiting",
            hf_index_count(&e->reservations),
            (unsigned long long)checker->pending, (unsigned long long)ended,
            (unsigned long long)e->booked, hf_index_count(&e->buyers));
    return HF_OK;
}

static enum hf_status check_products(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint32_t lows = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->products); i++) {
        const struct product *p = hf_index_used(&e->products, i);
        if (p == NULL)
            continue;
        struct hf_bytes sku = hf_index_name(&e->products, p);
        if (p->reserved > p->total || p->sold > p->total - p->reserved)
            return check_broken(
                checker,
                "product %.*s is oversold: total %llu, reserved "
                "%llu, sold %llu",
                HF_SHOW(sku), (unsigned long long)p->total,
                (unsigned long long)p->reserved, (unsigned long long)p->sold);
        if (p->reserved == 0 && p->ends_us != 0)
            return check_broken(checker,
                                "product %.*s has an end of nothing reserved",
                                HF_SHOW(sku));
        if (p->reserved != checker->reserved[i])
            return check_broken(checker,
                                "product %.*s counts %llu reserved, its "
                                "reservations hold %llu",
                                HF_SHOW(sku), (unsigned long long)p->reserved,
                                (unsigned long long)checker->reserved[i]);
        if (hf_index_find(&e->products, sku) != i || p->version > e->seq)
            return check_broken(checker, "product %.*s is not in order",
                                HF_SHOW(sku));
        if (!attributes_are_whole(hf_text_bytes(&e->texts, p->attributes)))
            return check_broken(checker,
                                "the attributes of product %.*s are not in "
                                "order",
                                HF_SHOW(sku));
        lows += p->low > 0;
    }
    if (lows != e->lows)
        return check_broken(checker, "%u products have a threshold, not %u",
                            lows, e->lows);
    return HF_OK;
}

/* One of the two lists of answered requests; `*count` is its length. */
static enum hf_status check_answered(struct checker *checker, uint32_t first,
                                     bool done, uint64_t *count)
{
    const struct hold_engine *e = checker->e;
    uint64_t last_us = 0;

    for (uint32_t i = first; i != 0; i = request_at(e, i)->listed.links.next) {
        const struct request *q = request_at(e, i);
        if (q->waiter != 0 || q->stored_us < last_us ||
            (q->code == HOLD_OK) != done)
            return check_broken(checker,
                                "the list of answered requests is wrong");
        last_us = q->stored_us;
        if (++*count > hf_index_count(&e->requests))
            break;
    }
    return HF_OK;
}

static enum hf_status check_requests(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t done = 0;
    uint64_t refused = 0;
    uint64_t waiting = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->requests); i++) {
        const struct request *q = hf_index_used(&e->requests, i);
        if (q == NULL || q->waiter == 0)
            continue;
        waiting++;
        uint32_t number = q->waiter & ~WAITS_FOR_STOCK;
        if ((number != q->waiter ? buyer_at(e, number)->request
                                 : waiter_at(e, number)->request) != i)
            return check_broken(checker, "a request and its waiter disagree");
    }
    enum hf_status status = check_answered(checker, e->done.first, true, &done);
    if (status == HF_OK)
        status = check_answered(checker, e->refused.first, false, &refused);
    if (status != HF_OK)
        return status;
    if (waiting + done + refused != hf_index_count(&e->requests) ||
        refused != e->refused_count)
        return check_broken(
            checker, "%u requests, %llu waiting, %llu done, %llu of %u refused",
            hf_index_count(&e->requests), (unsigned long long)waiting,
            (unsigned long long)done, (unsigned long long)refused,
            e->refused_count);
    return HF_OK;
}

static enum hf_status check_heap(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t expected = checker->singles + hf_index_count(&e->sets) +
                        hf_index_count(&e->waiters) +
                        hf_index_count(&e->sessions) + e->marks.used +
                        e->pending + hf_index_count(&e->buyers) + e->booked +
                        checker->expects;

    if (hf_agenda_count(&e->due) != expected)
        return check_broken(checker, "%u things are due, expected %llu",
                            hf_agenda_count(&e->due),
                            (unsigned long long)expected);
    return hf_agenda_is_sound(&e->due)
               ? HF_OK
               : check_broken(checker, "what is due is out of order");
}

enum hf_status hold_check(const struct hold_engine *e, char *error)
{
    static enum hf_status (*const checks[])(struct checker *) = {
        check_graph,    check_reservations, check_products, check_places,
        check_quotas,   check_bundles,      check_waitlist, check_expects,
        check_requests, check_heap};
    struct checker checker = {.e = e, .error = error};
    enum hf_status status = HF_OK;

    error[0] = '\0';
    checker.reserved = hf_alloc_zeroed((size_t)hf_index_top(&e->products) *
                                       sizeof *checker.reserved);
    if (checker.reserved == NULL)
        return HF_NOMEM;
    for (size_t i = 0; status == HF_OK && i < sizeof checks / sizeof *checks;
         i++)
        status = checks[i](&checker);
    hf_free(checker.reserved);
    return status;
}
