/* check_bookings.c - gathers what is said of each reservation, and its units
 * for the checker of products. */
#include "history/bookings.h"

static enum booking_status status_of(struct hf_bytes word)
{
    static const char *const names[] = {"PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED"};

    for (int i = 0; i < BOOKING_NONE; i++) {
        if (hf_bytes_equal(word, hf_bytes_text(names[i])))
            return (enum booking_status)i;
    }
    return BOOKING_NONE;
}

/* "-STATE reservation 'a' is CONFIRMED": the last word. */
static enum booking_status refused_status(const struct call *call)
{
    struct hf_bytes text = call->reply;

    if (check_code(call, "EXPIRED"))
        return BOOKING_EXPIRED;
    if (!check_code(call, "STATE"))
        return BOOKING_NONE;
    while (text.len > 0 &&
           (text.data[text.len - 1] == '\r' || text.data[text.len - 1] == '\n'))
        text.len--;
    size_t start = text.len;
    while (start > 0 && text.data[start - 1] != ' ')
        start--;
    return status_of(hf_bytes(text.data + start, text.len - start));
}

static enum mention_kind kind_of(const struct call *call)
{
    switch (call->verb) {
    case VERB_RESERVE:
        return MENTION_RESERVE;
    case VERB_CONFIRM:
    case VERB_CANCEL:
        return MENTION_END;
    case VERB_EXTEND:
        return MENTION_EXTEND;
    default:
        return MENTION_SEEN;
    }
}

/* False: the call says nothing of a reservation that has a name. */
static bool understand(struct check *c, const struct call *call,
                       struct mention *out)
{
    struct hf_bytes status;
    bool star = call->verb == VERB_RESERVE && call->name.len == 1 &&
                call->name.data[0] == '*';

    *out = (struct mention){.key = {call->name, {call->call_at}},
                            .call = call,
                            .kind = kind_of(call),
                            .status = BOOKING_NONE};
    if (call->outcome == OUTCOME_DONE) {
        if (check_text(call->reply, "id", &out->key.name) &&
            check_text(call->reply, "status", &status) &&
            resp_field_number(call->reply, "expires_ms", &out->expires_ms)) {
            out->status = status_of(status);
            return true;
        }
        check_found(c, "reply", call->id, 0,
                    "a reservation is shown with id, status and expires_ms");
        return false;
    }
    if (call->outcome == OUTCOME_UNKNOWN)
        return call->may && !star && call->verb != VERB_RESERVATION;
    if (star)
        return false;
    if (call->verb == VERB_RESERVE && check_code(call, "CONFLICT")) {
        out->kind = MENTION_CLASH;
        return !call->clashes;
    }
    out->status = refused_status(call);
    out->kind = out->status != BOOKING_NONE ? MENTION_SEEN : MENTION_ABSENT;
    return out->status != BOOKING_NONE ||
           (check_code(call, "NOTFOUND") && call->verb != VERB_RESERVE);
}

/* The units of a reservation: by its RESERVE, else by a reply. */
static void add_shares(const struct booking_view *view, size_t number)
{
    struct check *c = view->check;
    const struct call *reserve = view->booking->reserve;
    const struct call *proof = view->booking->proof;
    struct reply_list list;
    struct hf_bytes entry;
    struct share share = {.booking = number};

    for (size_t at = 0;
         reserve != NULL &&
         check_item(reserve, &at, &share.key.name, &share.quantity);)
        *(struct share *)check_push(c, &c->shares, sizeof share) = share;
    for (size_t i = 0; reserve == NULL && i < view->count; i++) {
        if (view->mentions[i].call->outcome == OUTCOME_DONE)
            proof = view->mentions[i].call;
    }
    if (reserve != NULL || proof == NULL ||
        !check_list(proof->reply, "items", &list))
        return;
    while (check_list_next(&list, &entry)) {
        if (check_text(entry, "sku", &share.key.name) &&
            resp_field_number(entry, "quantity", &share.quantity))
            *(struct share *)check_push(c, &c->shares, sizeof share) = share;
    }
}

static void add_booking(struct booking_view *view,
                        const struct booking *booking)
{
    struct check *c = view->check;

    view->booking = check_push(c, &c->bookings, sizeof *booking);
    *view->booking = *booking;
    add_shares(view, c->bookings.count - 1);
}

/* An id that may have had several lives: each RESERVE may have made one, and
 * none is sure. */
static void add_lives(struct booking_view *view)
{
    struct booking life = *view->booking;

    life.proof = NULL;
    life.hi = life.over = life.sold_hi = view->check->end;
    life.end = life.kept = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        if (m->kind != MENTION_RESERVE || !m->call->may)
            continue;
        life.reserve = m->call;
        life.lo = m->call->first;
        add_booking(view, &life);
    }
}

/* All mentions of one id. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct mention *mentions = items;
    struct booking booking = {0};
    struct booking_view view = {.check = c,
                                .id = mentions[0].key.name,
                                .mentions = mentions,
                                .count = count,
                                .booking = &booking};

    booking_settle(&view);
    booking_judge(&view);
    if (booking.proof != NULL)
        c->report->reservations++;
    if (booking.unsure && booking.reserve != NULL)
        add_lives(&view);
    else
        add_booking(&view, &booking);
}

/* RESERVE * without an answer: nobody knows its id. Of one whose answer is
 * doubted somebody does, and may have confirmed it. */
static void add_nameless(struct check *c, const struct call *call)
{
    bool told = call->answer_at != CHECK_NEVER;
    uint64_t over_us = check_over_us(c, call->hi, call->ttl_ms);
    struct booking booking = {.reserve = call,
                              .lo = call->first,
                              .hi = c->end,
                              .over = check_last(c, over_us),
                              .sold_lo = told ? call->first : c->end,
                              .sold_hi = c->end};
    struct booking_view view = {.check = c};

    c->anonymous = true;
    add_booking(&view, &booking);
}

void check_reservations(struct check *c)
{
    struct mention mention;

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb < VERB_RESERVE || call->verb > VERB_RESERVATION)
            continue;
        c->report->reads +=
            call->verb == VERB_RESERVATION && call->answer_at != CHECK_NEVER;
        if (understand(c, call, &mention))
            *(struct mention *)check_push(c, &c->mentions, sizeof mention) =
                mention;
        else if (call->verb == VERB_RESERVE && call->may &&
                 call->outcome == OUTCOME_UNKNOWN)
            add_nameless(c, call);
    }
    check_groups(c, &c->mentions, sizeof mention, judge);
}
