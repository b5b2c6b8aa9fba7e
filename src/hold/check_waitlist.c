/* check_waitlist.c - proves that those who wait for stock stand in order. */
#include "hold/check_parts.h"
#include "hold/waitlist.h"

/* A queue: linked both ways, sorted, and none at its front could be served. */
static enum hf_status check_queue(struct checker *checker, uint32_t number,
                                  uint64_t *demands)
{
    const struct hold_engine *e = checker->e;
    const struct product *product = product_at(e, number);
    const struct buyer *before = NULL;
    uint32_t count = 0;
    uint32_t last = 0;

    for (uint32_t n = product->queue.first; n != 0;
         n = demand_at(e, n)->place.next) {
        const struct demand *demand = demand_at(e, n);
        const struct buyer *buyer = buyer_at(e, demand->buyer);
        bool sorted = before == NULL || before->priority < buyer->priority ||
                      (before->priority == buyer->priority &&
                       before->order < buyer->order);
        if (demand->product != number || demand->place.prev != last ||
            !sorted || ++count > product->waiting)
            break;
        before = buyer;
        last = n;
    }
    if (last != product->queue.last || count != product->waiting ||
        product->is_listed)
        return check_broken(checker,
                            "the queue of product %.*s is out of order",
                            HF_SHOW(hf_index_name(&e->products, product)));
    *demands += count;
    return HF_OK;
}

/* Is it first in all its queues, with all that it wants? */
static bool is_ready(const struct hold_engine *e, const struct buyer *buyer)
{
    for (uint32_t n = buyer->first; n != 0; n = demand_at(e, n)->more) {
        const struct demand *demand = demand_at(e, n);
        const struct product *product = product_at(e, demand->product);
        if (product->queue.first != n || available(product) < demand->quantity)
            return false;
    }
    return buyer->deadline_us > e->now_us;
}

static enum hf_status check_buyer(struct checker *checker, uint32_t number)
{
    const struct hold_engine *e = checker->e;
    const struct buyer *buyer = buyer_at(e, number);
    const struct reservation *r = reservation_at(e, buyer->reservation);
    struct hf_bytes items = hf_text_bytes(&e->texts, r->items);
    struct hold_item item;
    uint32_t n = buyer->first;

    if (r->status != RESERVATION_WAITING || r->buyer != number)
        return check_broken(checker, "ticket %llu has no reservation",
                            (unsigned long long)buyer->ticket);
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        if (n == 0 || demand_at(e, n)->buyer != number ||
            demand_at(e, n)->quantity != item.quantity ||
            demand_at(e, n)->product != hf_index_find(&e->products, item.sku))
            return check_broken(checker, "ticket %llu wants something else",
                                (unsigned long long)buyer->ticket);
        n = demand_at(e, n)->more;
    }
    if (!check_in_heap(e, buyer->due, DUE_BUYER, number, buyer->deadline_us))
        return check_broken(checker, "ticket %llu is not due at its deadline",
                            (unsigned long long)buyer->ticket);
    if (is_ready(e, buyer))
        return check_broken(checker, "ticket %llu waits for what is there",
                            (unsigned long long)buyer->ticket);
    return HF_OK;
}

enum hf_status check_waitlist(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    enum hf_status status = HF_OK;
    uint64_t demands = 0;
    uint64_t order = 0;
    uint32_t count = 0;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->products);
         i++) {
        if (hf_index_used(&e->products, i) != NULL)
            status = check_queue(checker, i, &demands);
    }
    for (uint32_t n = e->waitlist.first; status == HF_OK && n != 0;
         n = buyer_at(e, n)->listed.links.next) {
        if (++count > hf_index_count(&e->buyers) ||
            buyer_at(e, n)->order <= order)
            break;
        order = buyer_at(e, n)->order;
        status = check_buyer(checker, n);
    }
    if (status != HF_OK)
        return status;
    if (count != hf_index_count(&e->buyers) || demands != e->demands.used ||
        e->hungry.first != 0 ||
        waitlist_sums(e).answer_bytes != e->waited_answers)
        return check_broken(checker,
                            "the list of who waits for stock is wrong");
    return HF_OK;
}
