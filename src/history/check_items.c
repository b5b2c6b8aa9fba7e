/* check_items.c - what a reservation is of: its items, and how they get fewer.
 *
 * A CANCEL of some items gives them back early, a CONFIRM of some all others.
 * For the sums of products such units are a booking of their own, which ends
 * when that call was carried out.
 */
#include "history/bookings.h"

/* How many units of a product the words of a call name; 0: none. */
static int64_t units_of(const struct call *call, struct hf_bytes sku)
{
    struct hf_bytes item;
    int64_t quantity;
    int64_t sum = 0;

    for (size_t at = 0; check_item(call, &at, &item, &quantity);)
        sum += hf_bytes_equal(item, sku) ? quantity : 0;
    return sum;
}

/* The same, of which fewer will do. */
static int64_t least_units_of(const struct call *call, struct hf_bytes sku)
{
    struct hf_bytes item;
    int64_t quantity;
    int64_t sum = 0;

    for (size_t at = 0; check_item(call, &at, &item, &quantity);) {
        if (hf_bytes_equal(item, sku))
            sum += check_item_least(call, at, quantity);
    }
    return sum;
}

bool check_is_loose(const struct call *call)
{
    struct hf_bytes item;
    int64_t quantity;
    bool loose = call->terms.best || call->terms.placed;

    for (size_t at = 0; check_item(call, &at, &item, &quantity);)
        loose = loose || check_item_least(call, at, quantity) < quantity;
    return loose;
}

bool check_has_items(const struct call *call)
{
    struct hf_bytes item;
    int64_t quantity;
    size_t at = 0;

    return check_item(call, &at, &item, &quantity);
}

/* Is it, perhaps, about some of the items only? A CANCEL of all of them ends
 * the reservation, which shows them. */
static bool is_part(const struct mention *m)
{
    bool confirm = m->kind == MENTION_END && m->call->verb == VERB_CONFIRM;

    return (confirm || m->kind == MENTION_REDUCE) && m->call->may &&
           check_has_items(m->call);
}

struct range {
    int64_t low;
    int64_t high;
};

int64_t check_shown_units(struct hf_bytes reply, struct hf_bytes sku)
{
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes shown_sku;
    int64_t shown;
    int64_t sum = 0;

    if (!check_list(reply, "items", &list))
        return 0;
    while (check_list_next(&list, &entry)) {
        if (check_text(entry, "sku", &shown_sku) &&
            resp_field_number(entry, "quantity", &shown) &&
            hf_bytes_equal(sku, shown_sku))
            sum += shown;
    }
    return sum;
}

/* How many units of the product were reserved. */
static struct range asked_of(const struct call *reserve,
                             const struct mention *m, struct hf_bytes sku)
{
    int64_t asked = units_of(reserve, sku);

    if (!check_is_loose(reserve))
        return (struct range){asked, asked};
    if (m->call == reserve) {
        bool none = reserve->terms.best || reserve->terms.placed;
        return (struct range){none ? 0 : least_units_of(reserve, sku), asked};
    }
    asked = check_shown_units(reserve->reply, sku);
    return (struct range){asked, asked};
}

/* How many units of the product it can have, as the mention shows it. */
static struct range range_of(const struct booking_view *view,
                             const struct mention *m, struct hf_bytes sku)
{
    struct range range = asked_of(view->booking->reserve, m, sku);
    struct range sold = {INT64_MAX, INT64_MAX}; /* whatever was cancelled */

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *other = &view->mentions[i];
        bool before = other == m || other->call->hi < m->call->first;
        if (!is_part(other) || other->call->first > m->call->hi)
            continue;
        int64_t units = units_of(other->call, sku);
        bool sure = before && mention_is_done(other) && other->call->sure;
        if (other->call->verb == VERB_CANCEL) {
            range.low -= units;
            range.high -= sure ? units : 0;
        } else {
            sold.low = units < sold.low ? units : sold.low;
            if (sure)
                sold.high = units < sold.high ? units : sold.high;
        }
    }
    range.low = range.low < 0 ? 0 : range.low;
    return (struct range){sold.low < range.low ? sold.low : range.low,
                          sold.high < range.high ? sold.high : range.high};
}

/* Equal products are one item, so sums are compared; and nothing is shown that
 * was not asked for. */
void booking_judge_items(struct booking_view *view, const struct mention *m)
{
    struct check *c = view->check;
    const struct call *reserve = view->booking->reserve;
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes sku;
    int64_t quantity;
    bool good = true;

    if (reserve == NULL || !mention_is_done(m) || !m->call->may ||
        !check_list(m->call->reply, "items", &list))
        return;
    for (size_t at = 0; check_item(reserve, &at, &sku, &quantity);) {
        struct range range = range_of(view, m, sku);
        int64_t shown = check_shown_units(m->call->reply, sku);
        good = good && shown >= range.low && shown <= range.high;
        /* BEST takes an item or not: its minimum, if it has one */
        if (m->call == reserve && shown > 0 && !reserve->terms.placed)
            good = good && shown >= least_units_of(reserve, sku);
    }
    while (check_list_next(&list, &entry))
        good = good && check_text(entry, "sku", &sku) &&
               units_of(reserve, sku) > 0;
    if (m->call == reserve && reserve->terms.placed)
        good = good && places_add_up(reserve);
    if (!good)
        check_found(c, "items", m->call->id, reserve->id,
                    "reservation %.*s is of other items than were reserved",
                    SHOW(view->id));
}

/* ---- Units that were given back before the others. ---- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* From where on a CONFIRM in part may have given back what it did not name. */
static uint32_t first_sale(const struct booking_view *view)
{
    uint32_t first = view->check->end;

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        if (is_part(m) && m->call->verb == VERB_CONFIRM)
            first = lesser(first, m->call->first);
    }
    return first;
}

/* The booking of the units that the mention gave back, if it did: they may
 * have been among those of a CONFIRM. */
static struct booking early_of(const struct booking_view *view,
                               const struct mention *m)
{
    const struct check *c = view->check;
    struct booking early = *view->booking;
    uint32_t first = m->call->first;

    if (!mention_is_done(m))
        first = lesser(first, first_sale(view));
    early.end = lesser(early.end, first);
    early.kept = lesser(early.kept, first);
    early.sold_hi = c->end;
    if (mention_is_done(m)) {
        early.over = lesser(early.over, m->call->hi);
        early.sold_lo = c->end;
    }
    return early;
}

/* Was it asked when the reservation had surely ended, and not told DONE? */
static bool is_too_late(const struct booking_view *view,
                        const struct mention *m)
{
    return m->call->verb == VERB_CANCEL && !mention_is_done(m) &&
           m->call->first > view->booking->over;
}

/* A CONFIRM of a part gives back what the CANCELs have left of the others, and
 * may have been asked before them. */
void booking_part(struct booking_view *view, size_t i)
{
    struct check *c = view->check;

    for (size_t j = 0; j < 2 * view->count; j++) {
        const struct mention *m = &view->mentions[j % view->count];
        bool confirms = m->call->verb == VERB_CONFIRM;
        struct share *share = (struct share *)c->shares.data + i;
        if (!is_part(m) || confirms != (j >= view->count) ||
            is_too_late(view, m))
            continue;
        int64_t units = units_of(m->call, share->key.name);
        if (confirms)
            units = share->quantity - units;
        if (units > share->quantity)
            units = share->quantity;
        if (units <= 0)
            continue;
        share->quantity -= units;
        struct share early = {share->key, units, c->bookings.count};
        *(struct share *)check_push(c, &c->shares, sizeof early) = early;
        struct booking booking = early_of(view, m);
        *(struct booking *)check_push(c, &c->bookings, sizeof booking) =
            booking;
        view->booking = (struct booking *)c->bookings.data +
                        ((struct share *)c->shares.data + i)->booking;
    }
}
