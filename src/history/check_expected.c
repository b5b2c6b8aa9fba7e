/* check_expected.c - what is announced, who booked it, and in which order they
 * are served. */
#include "history/bookings.h"

bool check_is_arrival(const struct call *call)
{
    return call->word_count > 1 && hf_bytes_is(call->words[1], "ARRIVE");
}

bool check_is_booked(const struct call *call)
{
    struct hf_bytes status;

    if (!call->terms.books)
        return false;
    return (call->outcome == OUTCOME_UNKNOWN && call->may) ||
           (call->outcome == OUTCOME_DONE &&
            check_text(call->reply, "status", &status) &&
            hf_bytes_is(status, "BOOKED"));
}

/* ---- What one answer tells adds up. ---- */

struct sums {
    int64_t expected;
    int64_t booked;
    int64_t uncovered;
};

static bool read_sums(const struct call *call, struct sums *out)
{
    return resp_field_number(call->reply, "expected", &out->expected) &&
           resp_field_number(call->reply, "booked", &out->booked) &&
           resp_field_number(call->reply, "uncovered", &out->uncovered);
}

static void judge_sums(struct check *c, const struct call *call,
                       const struct sums *sums)
{
    int64_t bare =
        sums->booked > sums->expected ? sums->booked - sums->expected : 0;

    if (sums->expected < 0 || sums->booked < 0 || sums->uncovered != bare)
        check_found(c, "expected", call->id, 0,
                    "product %.*s: %lld expected, %lld booked, and %lld of "
                    "them uncovered",
                    SHOW(call->name), (long long)sums->expected,
                    (long long)sums->booked, (long long)sums->uncovered);
}

/* When the last of so many units is expected: as the list of arrivals says. */
static int64_t time_of(const struct call *call, int64_t units)
{
    struct reply_list list;
    struct hf_bytes entry;
    int64_t quantity;
    int64_t at_ms = 0;

    if (!check_list(call->reply, "arrivals", &list))
        return -1;
    while (units > 0 && check_list_next(&list, &entry)) {
        if (!resp_field_number(entry, "quantity", &quantity) ||
            !resp_field_number(entry, "expected_ms", &at_ms))
            return -1;
        units -= quantity;
    }
    return units > 0 ? 0 : at_ms;
}

static bool arrivals_add_up(const struct call *call, int64_t expected)
{
    struct reply_list list;
    struct hf_bytes entry;
    int64_t quantity;
    int64_t at_ms;
    int64_t last_ms = 0;

    if (!check_list(call->reply, "arrivals", &list))
        return false;
    while (check_list_next(&list, &entry)) {
        if (!resp_field_number(entry, "quantity", &quantity) || quantity <= 0 ||
            !resp_field_number(entry, "expected_ms", &at_ms) || at_ms < last_ms)
            return false;
        expected -= quantity;
        last_ms = at_ms;
    }
    return expected == 0;
}

/* Of all of them, from the first on. */
static bool bookings_add_up(const struct call *call, int64_t booked)
{
    struct reply_list list;
    struct hf_bytes entry;
    int64_t quantity;
    int64_t position;
    int64_t expected_ms;
    int64_t next = 1;
    int64_t units = 0;

    if (!check_list(call->reply, "bookings", &list))
        return false;
    for (; check_list_next(&list, &entry); next++) {
        if (!resp_field_number(entry, "quantity", &quantity) ||
            !resp_field_number(entry, "position", &position) ||
            !resp_field_number(entry, "expected_ms", &expected_ms) ||
            position != next ||
            __builtin_add_overflow(units, quantity, &units) ||
            expected_ms != time_of(call, units))
            return false;
    }
    return units == booked;
}

static void judge_shown(struct check *c, const struct call *call)
{
    struct sums sums;
    int64_t cursor;

    if (call->outcome != OUTCOME_DONE)
        return;
    if (!read_sums(call, &sums)) {
        check_found(c, "reply", call->id, 0,
                    "what is expected is shown with its numbers");
        return;
    }
    judge_sums(c, call, &sums);
    if (call->verb != VERB_STOCK_EXPECTED)
        return;
    bool whole = call->word_count == 3 &&
                 resp_field_number(call->reply, "cursor", &cursor) &&
                 cursor == 0;
    if (!arrivals_add_up(call, sums.expected) ||
        (whole && !bookings_add_up(call, sums.booked)))
        check_found(c, "expected", call->id, 0,
                    "product %.*s: the arrivals and bookings are not as their "
                    "sums and order say",
                    SHOW(call->name));
}

/* ---- Bookings of one product. ---- */

struct turn {
    struct key key; /* the sku, by lo */
    const struct call *reserve;
    int64_t quantity;
    uint32_t served; /* surely, from then on; or the end */
    uint32_t waited; /* a question from then on found it booked; 0: none */
    bool twice;      /* its id was asked for again */
};

static struct turn *find_turn(struct check *c, struct hf_bytes id)
{
    struct turn *turns = c->turns.data;
    struct hf_bytes own;

    for (size_t i = 0; i < c->turns.count; i++) {
        if (check_text(turns[i].reserve->reply, "id", &own) &&
            hf_bytes_equal(own, id))
            return &turns[i];
    }
    return NULL;
}

/* One that was surely booked, whose id nobody else uses. */
static void add_turn(struct check *c, const struct call *call)
{
    struct turn turn = {
        .reserve = call, .served = c->end, .key.by = {call->first}};
    struct hf_bytes id;
    size_t at = 0;

    if (!check_text(call->reply, "id", &id) ||
        !check_item(call, &at, &turn.key.name, &turn.quantity))
        return;
    struct turn *known = find_turn(c, id);
    if (known != NULL)
        known->twice = true;
    else
        *(struct turn *)check_push(c, &c->turns, sizeof turn) = turn;
}

/* Is a RESERVE one of the id, perhaps in another life of it? */
static void note_other(struct check *c, const struct call *call)
{
    struct turn *turn =
        call->verb == VERB_RESERVE ? find_turn(c, call->name) : NULL;

    if (turn != NULL && turn->reserve != call)
        turn->twice = true;
}

/* What is said of it later. */
static void note_turn(struct check *c, const struct call *call)
{
    struct hf_bytes id;
    struct hf_bytes status;

    note_other(c, call);
    if (call->outcome != OUTCOME_DONE || !check_text(call->reply, "id", &id) ||
        !check_text(call->reply, "status", &status))
        return;
    struct turn *turn = find_turn(c, id);
    if (turn == NULL || call->first <= turn->reserve->hi)
        return;
    if (hf_bytes_is(status, "BOOKED") && call->verb == VERB_RESERVATION)
        turn->waited = call->first > turn->waited ? call->first : turn->waited;
    bool served = hf_bytes_is(status, "PENDING") ||
                  hf_bytes_is(status, "CONFIRMED") ||
                  hf_bytes_is(status, "EXPIRED");
    if (served && call->hi < turn->served)
        turn->served = call->hi;
}

/* The units that may have been announced of it before. */
static bool may_cover(const struct check *c, const struct turn *turn)
{
    int64_t units = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_STOCK_EXPECT && call->may &&
            call->first <= turn->reserve->hi &&
            hf_bytes_equal(call->name, turn->key.name) &&
            __builtin_add_overflow(units, call->amount, &units))
            return true;
    }
    return units >= turn->quantity;
}

/* All bookings of a product, by time. */
static void judge_turns(struct check *c, void *items, size_t count)
{
    const struct turn *turns = items;

    for (size_t i = 0; i < count; i++) {
        const struct turn *early = &turns[i];
        if (c->closed && !may_cover(c, early))
            check_found(c, "unannounced", early->reserve->id, 0,
                        "product %.*s: %lld were booked that nobody announced",
                        SHOW(early->key.name), (long long)early->quantity);
        for (size_t k = i + 1; early->waited > 0 && !early->twice && k < count;
             k++) {
            const struct turn *late = &turns[k];
            if (late->twice || late->reserve->first <= early->reserve->hi ||
                late->served >= early->waited)
                continue;
            check_found(c, "turn", late->reserve->id, early->reserve->id,
                        "product %.*s: who booked later was served before one "
                        "who is still booked",
                        SHOW(early->key.name));
            break;
        }
    }
}

void check_expected(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_STOCK_EXPECT ||
            call->verb == VERB_STOCK_EXPECTED)
            judge_shown(c, call);
        if (call->verb == VERB_RESERVE && call->outcome == OUTCOME_DONE &&
            check_is_booked(call) && call->request.len == 0)
            add_turn(c, call);
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (c->turns.count > 0 && call->verb >= VERB_RESERVE &&
            call->verb <= VERB_RESERVATION)
            note_turn(c, call);
    }
    check_groups(c, &c->turns, sizeof(struct turn), judge_turns);
}
