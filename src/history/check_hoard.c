/* check_hoard.c - nobody has more of a product than its limit says.
 *
 *   STOCK LIMIT    reservations of one owner, surely pending     a new one
 *   |----last----| |------| |------|  ...                        |--------|
 *
 * What is not sure counts for the owner: a limit that may have been another, or
 * none, and reservations that may have ended, or were made before.
 */
#include "history/products.h"

/* The highest limit that there can be when the booking is made, or 0: none, or
 * it is not known. `*since` is from where on one was surely there. */
static int64_t limit_at(const struct product_view *view,
                        const struct booking *b, const struct window *resets,
                        size_t reset_count, uint32_t *since)
{
    const struct note *last = NULL;
    int64_t most = 0;

    for (size_t i = 0; i < view->note_count; i++) {
        const struct note *note = &view->notes[i];
        if (note->kind == NOTE_QUOTA && note->version > 0 && note->call->sure &&
            note->hi < b->lo && (last == NULL || note->hi > last->hi))
            last = note;
    }
    for (size_t i = 0; last != NULL && i < view->note_count; i++) {
        const struct note *note = &view->notes[i];
        if (note->kind != NOTE_QUOTA || note->hi < last->lo || note->lo > b->hi)
            continue;
        if (note->wanted == 0)
            return 0;
        most = note->wanted > most ? note->wanted : most;
    }
    for (size_t i = 0; last != NULL && i < reset_count; i++) {
        if (resets[i].hi >= last->lo && resets[i].lo <= b->hi)
            return 0;
    }
    *since = last == NULL ? 0 : last->hi;
    return most;
}

/* A reservation of which all is known: by whom, and of how much. */
static bool is_plain(const struct booking *b)
{
    return !b->unsure && b->proof != NULL && b->reserve != NULL &&
           b->reserve->owner.len > 0 && b->lo == b->reserve->first &&
           !check_is_loose(b->reserve);
}

void hoard_judge(struct product_view *view, const struct window *resets,
                 size_t reset_count)
{
    struct check *c = view->check;
    const struct booking *bookings = c->bookings.data;
    bool limited = false;

    for (size_t i = 0; i < view->note_count; i++)
        limited = limited || view->notes[i].kind == NOTE_QUOTA;
    for (size_t i = 0; limited && i < view->share_count; i++) {
        const struct share *share = &view->shares[i];
        const struct booking *b = &bookings[share->booking];
        uint32_t since = 0;
        int64_t most =
            is_plain(b) ? limit_at(view, b, resets, reset_count, &since) : 0;
        int64_t has = share->quantity;
        for (size_t k = 0; most > 0 && k < view->share_count; k++) {
            const struct booking *other = &bookings[view->shares[k].booking];
            if (is_plain(other) && other->reserve != b->reserve &&
                hf_bytes_equal(other->reserve->owner, b->reserve->owner) &&
                other->lo > since && other->hi < b->lo && other->end > b->hi)
                has += view->shares[k].quantity;
        }
        if (most > 0 && has > most)
            check_found(c, "hoard", b->reserve->id, b->proof->id,
                        "owner %.*s has %lld of product %.*s, of which nobody "
                        "may have more than %lld",
                        SHOW(b->reserve->owner), (long long)has,
                        SHOW(view->sku), (long long)most);
    }
}

static bool read_number(struct hf_bytes text, const char *from, const char *to,
                        int64_t *out)
{
    struct hf_bytes number;

    return check_between(text, from, to, &number) &&
           hf_parse_i64(number, out) == HF_OK;
}

void hoard_judge_refusal(struct check *c, const struct call *call)
{
    int64_t requested;
    int64_t has;
    int64_t limit;
    int64_t sum;

    if (!check_code(call, "QUOTA") || check_is_loose(call) ||
        !read_number(call->reply, "': requested ", ", has ", &requested) ||
        !read_number(call->reply, ", has ", ", limit ", &has) ||
        (!read_number(call->reply, ", limit ", "\r", &limit) &&
         !read_number(call->reply, ", limit ", ";", &limit)))
        return;
    if (!__builtin_add_overflow(has, requested, &sum) && sum <= limit)
        check_found(c, "quota", call->id, 0,
                    "%lld and %lld more were refused, with a limit of %lld",
                    (long long)has, (long long)requested, (long long)limit);
}
