/* check_expects.c - proves that announcements and bookings are in order. */
#include "hold/check_parts.h"
#include "hold/expect.h"
#include "hold/reserve.h"

static bool are_arrivals_whole(struct checker *checker, uint32_t number)
{
    const struct expect *x = expect_at(checker->e, number);
    const struct arrival *first = NULL;
    uint64_t announced = 0;

    if (x->arrival_count > HOLD_EXPECT_MAX)
        return false;
    for (uint32_t i = 0; i < x->arrival_count; i++) {
        const struct arrival *one = &x->arrivals[i];
        announced += one->units;
        if (one->units == 0 || announced > (uint64_t)HOLD_STOCK_MAX ||
            (i > 0 &&
             (one->at_us < one[-1].at_us ||
              (one->at_us == one[-1].at_us && one->seq < one[-1].seq))))
            return false;
        if (first == NULL && !one->late)
            first = one;
    }
    checker->expects += first != NULL;
    return announced == x->announced &&
           (first == NULL ? x->due == 0
                          : check_in_heap(checker->e, x->due, DUE_ARRIVAL,
                                          number, first->at_us));
}

static bool are_bookings_whole(struct checker *checker, const struct expect *x)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes sku = hf_index_name(&e->expects, x);
    uint64_t booked = 0;
    uint64_t seq = 0;
    uint32_t count = 0;
    uint32_t last = 0;

    for (uint32_t n = x->bookings.first; n != 0;
         n = reservation_at(e, n)->listed.links.next) {
        const struct reservation *r = reservation_at(e, n);
        struct hf_bytes items = items_of(e, r);
        struct hold_item item;
        size_t at = 0;
        (void)hold_next_item(items, &at, &item);
        if (r->status != RESERVATION_BOOKED || r->seq <= seq ||
            r->listed.links.prev != last || at != items.len ||
            !hf_bytes_equal(item.sku, sku) ||
            !check_in_heap(e, r->due, DUE_RESERVATION, n, UINT64_MAX) ||
            ++count > x->booking_count)
            return false;
        booked += item.quantity;
        seq = r->seq;
        last = n;
    }
    return last == x->bookings.last && count == x->booking_count &&
           booked == x->booked && booked <= (uint64_t)HOLD_STOCK_MAX;
}

enum hf_status check_expects(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t booked = 0;
    uint64_t counted = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->expects); i++) {
        const struct expect *x = hf_index_used(&e->expects, i);
        if (x == NULL)
            continue;
        struct hf_bytes sku = hf_index_name(&e->expects, x);
        if (hf_index_find(&e->products, sku) == 0 ||
            x->arrival_count + x->booking_count == 0 ||
            !are_arrivals_whole(checker, i) || !are_bookings_whole(checker, x))
            return check_broken(checker,
                                "what is to arrive of %.*s is out of order",
                                HF_SHOW(sku));
        counted += x->booking_count;
    }
    for (uint32_t i = 1; i < hf_index_top(&e->reservations); i++) {
        const struct reservation *r = hf_index_used(&e->reservations, i);
        booked += r != NULL && r->status == RESERVATION_BOOKED;
    }
    if (booked != counted || booked != e->booked)
        return check_broken(checker, "%llu reservations are booked, not %llu",
                            (unsigned long long)booked,
                            (unsigned long long)e->booked);
    return HF_OK;
}
