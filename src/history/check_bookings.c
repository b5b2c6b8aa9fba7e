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

/* A CONFIRM in the time of grace that finds a product deleted. */
static bool lacks_product(const struct call *call)
{
    struct hf_bytes sku;

    return call->verb == VERB_CONFIRM &&
           check_between(call->reply, "no product '", "'\r", &sku);
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
            if (call->verb == VERB_CANCEL && out->status == BOOKING_PENDING)
                out->kind = MENTION_REDUCE;
            return out->status != BOOKING_NONE; /* else it waits */
        }
        check_found(c, "reply", call->id, 0,
                    "a reservation is shown with id, status and expires_ms");
        return false;
    }
    if (call->verb == VERB_CANCEL && check_has_items(call))
        out->kind = MENTION_REDUCE; /* perhaps */
    if (call->outcome == OUTCOME_UNKNOWN)
        return call->may && !star && call->verb != VERB_RESERVATION;
    if (star)
        return false;
    if (call->verb == VERB_RESERVE && check_code(call, "TIMEOUT")) {
        out->kind = MENTION_LEFT;
        return true;
    }
    if (call->verb == VERB_RESERVE && check_code(call, "CONFLICT")) {
        out->kind = MENTION_CLASH;
        return !call->clashes;
    }
    out->status = refused_status(call);
    out->kind = out->status != BOOKING_NONE ? MENTION_SEEN : MENTION_ABSENT;
    return out->status != BOOKING_NONE ||
           (check_code(call, "NOTFOUND") && call->verb != VERB_RESERVE &&
            !lacks_product(call));
}

/* The same product again is the same share. */
static void add_share(struct check *c, const struct share *share)
{
    struct share *shares = c->shares.data;

    for (size_t i = c->shares.count;
         i-- > 0 && shares[i].booking == share->booking;) {
        if (hf_bytes_equal(shares[i].key.name, share->key.name)) {
            shares[i].quantity += share->quantity;
            return;
        }
    }
    *(struct share *)check_push(c, &c->shares, sizeof *share) = *share;
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

    if (reserve != NULL && reserve->outcome == OUTCOME_DONE &&
        check_is_loose(reserve)) {
        proof = reserve; /* which tells what it got */
        reserve = NULL;
    }
    for (size_t at = 0;
         reserve != NULL &&
         check_item(reserve, &at, &share.key.name, &share.quantity);)
        add_share(c, &share);
    for (size_t i = 0; view->booking->reserve == NULL && i < view->count; i++) {
        if (view->mentions[i].call->outcome == OUTCOME_DONE)
            proof = view->mentions[i].call;
    }
    if (reserve != NULL || proof == NULL ||
        !check_list(proof->reply, "items", &list))
        return;
    while (check_list_next(&list, &entry)) {
        if (check_text(entry, "sku", &share.key.name) &&
            resp_field_number(entry, "quantity", &share.quantity))
            add_share(c, &share);
    }
}

static void add_booking(struct booking_view *view,
                        const struct booking *booking)
{
    struct check *c = view->check;

    view->booking = check_push(c, &c->bookings, sizeof *booking);
    *view->booking = *booking;
    size_t from = c->shares.count;
    add_shares(view, c->bookings.count - 1);
    /* of several lives nobody knows which one a call is about */
    for (size_t i = from, end = c->shares.count; !booking->unsure && i < end;
         i++)
        booking_part(view, i);
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
    together_judge(&view);
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
    struct booking booking = {
        .reserve = call,
        .lo = call->first,
        .hi = c->end,
        .over = check_last(c, over_us),
        .sold_lo = told || call->terms.bundle.len > 0 ? call->first : c->end,
        .sold_hi = c->end};
    struct booking_view view = {.check = c};

    c->anonymous = true;
    add_booking(&view, &booking);
}

/* A RESERVE that was told TIMEOUT while it was on its way to the disk may have
 * its units for a moment, until they are given back: who asked before it was
 * told may see them. What the engine says to be over never had any. */
static void add_left(struct check *c, const struct call *call)
{
    struct hf_bytes text;
    struct booking booking = {.reserve = call,
                              .lo = call->first,
                              .hi = c->end,
                              .over = call->hi,
                              .sold_lo = c->end,
                              .sold_hi = c->end};
    struct booking_view view = {.check = c};

    if (check_between(call->reply, "TIMEOUT waited while", "\r", &text))
        add_booking(&view, &booking);
}

/* What was told may be undone, at the end of the run; or earlier, if the
 * journal failed before it took the record that says so. */
static const struct call *undone(struct check *c, const struct call *timeout)
{
    struct call *call = check_alloc(c, sizeof *call);

    *call = *timeout;
    call->outcome = OUTCOME_UNKNOWN;
    call->may = true;
    call->first = call->lo = call->broken ? call->hi : call->run_end;
    call->hi = call->run_end;
    return call;
}

/* The id that a JOIN names, or was told; empty: none. */
static struct hf_bytes joined_id(const struct call *join)
{
    struct hf_bytes id;

    if (join->outcome == OUTCOME_DONE && check_text(join->reply, "id", &id))
        return id;
    for (uint32_t i = 4; i + 1 < join->word_count; i += 2) {
        if (hf_bytes_is(join->words[i], "ID"))
            return join->words[i + 1];
    }
    return hf_bytes("*", 1);
}

/* What a call asks for may be done at any time, if not at once. */
static void at_any_time(const struct check *c, struct call *call)
{
    call->outcome = OUTCOME_UNKNOWN;
    call->sure = false;
    call->hi = c->end;
}

/* A RESERVE with PREORDER that is booked, or may be, is carried out when units
 * arrive. */
static const struct call *booked(struct check *c, const struct call *reserve)
{
    struct call *call = check_alloc(c, sizeof *call);

    *call = *reserve;
    at_any_time(c, call);
    return call;
}

/* A JOIN is a RESERVE that may be carried out at any time, if not at once.
 * NULL: it never is. */
static const struct call *joined(struct check *c, const struct call *join)
{
    struct hf_bytes *words = check_alloc(c, 5 * sizeof *words);
    struct call *call = check_alloc(c, sizeof *call);
    struct hf_bytes status;

    *call = *join;
    if (!join->may)
        return NULL;
    words[0] = hf_bytes_text("RESERVE");
    words[1] = call->name = joined_id(join);
    words[2] = hf_bytes_text("ITEM");
    words[3] = join->words[2];
    words[4] = join->words[3];
    call->words = words;
    call->word_count = 5;
    call->verb = VERB_RESERVE;
    if (join->outcome == OUTCOME_DONE &&
        check_text(join->reply, "status", &status) &&
        !hf_bytes_is(status, "WAITING"))
        return call;
    at_any_time(c, call);
    return call;
}

static void add_mention(struct check *c, const struct call *call)
{
    struct mention mention;

    if (understand(c, call, &mention))
        *(struct mention *)check_push(c, &c->mentions, sizeof mention) =
            mention;
    else if (call->verb == VERB_RESERVE && call->may &&
             call->outcome == OUTCOME_UNKNOWN)
        add_nameless(c, call);
}

void check_reservations(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        uint64_t grace_us = call->terms.grace_ms * US_PER_MS;
        if (call->verb == VERB_CLASS_SET && grace_us > c->grace_us)
            c->grace_us = grace_us;
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_JOIN)
            call = joined(c, call);
        if (call != NULL && call->verb == VERB_RESERVE && check_is_booked(call))
            call = booked(c, call);
        if (call == NULL || call->verb < VERB_RESERVE ||
            call->verb > VERB_RESERVATION)
            continue;
        c->report->reads +=
            call->verb == VERB_RESERVATION && call->answer_at != CHECK_NEVER;
        add_mention(c, call); /* what was told may have stood, and been seen */
        if (call->verb != VERB_RESERVE || !check_code(call, "TIMEOUT"))
            continue;
        add_left(c, call);
        if (call->doubtful)
            add_mention(c, undone(c, call));
    }
    together_mention(c);
    check_groups(c, &c->mentions, sizeof(struct mention), judge);
}
