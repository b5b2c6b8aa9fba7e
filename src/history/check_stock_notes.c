/* check_stock_notes.c - gathers what calls and answers say of each product. */
#include "history/products.h"

static struct note *add(struct check *c, const struct call *call,
                        enum note_kind kind)
{
    struct note *note = check_push(c, &c->notes, sizeof *note);

    *note = (struct note){.key.name = call->name,
                          .call = call,
                          .kind = kind,
                          .lo = call->first,
                          .hi = call->hi};
    return note;
}

static void add_product(struct check *c, const struct call *call,
                        struct hf_bytes map)
{
    struct note *note = add(c, call, NOTE_READ);
    int64_t sum;

    if (!check_text(map, "sku", &note->key.name) ||
        !resp_field_number(map, "total", &note->total) ||
        !resp_field_number(map, "available", &note->available) ||
        !resp_field_number(map, "reserved", &note->reserved) ||
        !resp_field_number(map, "sold", &note->sold) ||
        !resp_field_number(map, "version", &note->version)) {
        check_found(c, "reply", call->id, 0,
                    "a product is shown with its numbers");
        c->notes.count--;
        return;
    }
    if (!resp_field_number(map, "low", &note->low))
        note->low = -1;
    bool negative = note->available < 0 || note->reserved < 0 || note->sold < 0;
    if (negative ||
        __builtin_add_overflow(note->available, note->reserved, &sum) ||
        __builtin_add_overflow(sum, note->sold, &sum) || sum != note->total) {
        check_found(c, "sum", call->id, 0,
                    "product %.*s: total %lld, available %lld, reserved %lld, "
                    "sold %lld",
                    SHOW(note->key.name), (long long)note->total,
                    (long long)note->available, (long long)note->reserved,
                    (long long)note->sold);
        c->notes.count--;
        return;
    }
    int64_t waiting;
    if (resp_field_number(map, "waiting", &waiting))
        waitlist_judge_read(c, note, waiting);
    if (call->verb == VERB_STOCK_GET || call->verb == VERB_STOCK_LIST ||
        call->verb == VERB_STOCK_PLACES)
        check_number_given(c, (uint64_t)note->version, 0, note->hi, call->id);
}

/* What a read shows from there on is of one instant. */
static void note_newest(struct check *c, size_t from)
{
    struct note *notes = c->notes.data;
    int64_t newest = 0;

    for (size_t i = from; i < c->notes.count; i++)
        newest = notes[i].version > newest ? notes[i].version : newest;
    for (size_t i = from; i < c->notes.count; i++)
        notes[i].newest = newest;
}

/* STOCK GET of several is a list, in the order of the words. */
static void add_products(struct check *c, const struct call *call)
{
    bool get = call->verb == VERB_STOCK_GET;
    size_t from = c->notes.count;
    struct reply_list list;
    struct hf_bytes entry;

    if (get && call->word_count == 3) {
        add_product(c, call, call->reply);
        return;
    }
    const char *field = call->verb == VERB_STOCK_LIST ? "products" : "places";
    if (!check_list(call->reply, get ? NULL : field, &list))
        return;
    for (uint32_t i = 2; check_list_next(&list, &entry); i++) {
        if (entry.data[0] == '*' || entry.data[0] == '%')
            add_product(c, call, entry);
        else if (get && i < call->word_count)
            add(c, call, NOTE_ABSENT)->key.name = call->words[i];
    }
    note_newest(c, from);
}

/* Names that a sentence shows as they are. */
static bool is_plain(struct hf_bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~' || name.data[i] == '\'' ||
            name.data[i] == '?')
            return false;
    }
    return name.len > 0 && name.len < 128;
}

/* The only product that was asked for. */
static bool find_only(const struct call *call, struct hf_bytes *sku)
{
    struct hf_bytes item;
    int64_t quantity;
    size_t at = 0;

    *sku = call->name;
    if (call->verb != VERB_RESERVE)
        return true;
    if (!check_item(call, &at, sku, &quantity))
        return false;
    while (check_item(call, &at, &item, &quantity)) {
        if (!hf_bytes_equal(item, *sku))
            return false;
    }
    return true;
}

/* How much of the product was asked for. False: that cannot be said. */
static bool find_wanted(const struct call *call, struct hf_bytes sku,
                        int64_t *out)
{
    struct hf_bytes item;
    int64_t quantity;
    int64_t least;
    int64_t sum = 0;

    if (call->verb == VERB_STOCK_ADD)
        return !__builtin_sub_overflow(sum, call->amount, out);
    *out = call->amount;
    if (call->verb == VERB_STOCK_SET)
        return true;
    for (size_t at = 0; check_item(call, &at, &item, &quantity);) {
        least = check_item_least(call, at, quantity);
        if (hf_bytes_equal(item, sku) &&
            __builtin_add_overflow(sum, least, &sum))
            return false;
    }
    *out = sum;
    return sum > 0;
}

static void add_short(struct check *c, const struct call *call,
                      struct hf_bytes sku, int64_t available)
{
    int64_t wanted;

    if (!find_wanted(call, sku, &wanted))
        return; /* with SPLIT, it is over all places */
    bool behind = call->verb == VERB_RESERVE &&
                  memmem(call->reply.data, call->reply.len, "waiting", 7) &&
                  waitlist_between(c, sku, call->first, call->hi).count > 0;
    if (available >= wanted && call->verb != VERB_STOCK_SET && !behind) {
        check_found(c, "short", call->id, 0,
                    "product %.*s is short of %lld with %lld available",
                    SHOW(sku), (long long)wanted, (long long)available);
        return;
    }
    struct note *note = add(c, call, NOTE_SHORT);
    note->key.name = sku;
    note->wanted = wanted;
    note->behind = behind;
    note->available = call->verb == VERB_STOCK_SET ? -1 : available;
}

/* The number at the start of a text, or -1. */
static int64_t first_number(struct hf_bytes text)
{
    int64_t number;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            text.len = i;
    }
    return hf_parse_i64(text, &number) == HF_OK ? number : -1;
}

/* "sku 'a': requested 3, available 2; sku 'b': ...": as the reply tells, if
 * names can be read from it, else the only product that was asked for. */
static void add_shorts(struct check *c, const struct call *call)
{
    struct hf_bytes text = call->reply;
    struct hf_bytes sku;
    struct hf_bytes number;
    bool found = false;

    while (check_between(text, "sku '", "': requested", &sku) &&
           is_plain(sku) &&
           check_between(text, ", available ", "\r", &number)) {
        add_short(c, call, call->verb == VERB_RESERVE ? sku : call->name,
                  first_number(number));
        found = true;
        text.len -= (size_t)(number.data - text.data);
        text.data = number.data; /* another may follow */
    }
    if (!found && find_only(call, &sku))
        add_short(c, call, sku, -1);
}

/* CONFLICT tells the version that the product has, another than IF says. */
static void add_clash(struct check *c, const struct call *call)
{
    struct hf_bytes told;
    uint64_t version;

    if (!check_between(call->reply, "' is at version ", ", not ", &told) ||
        hf_parse_u64(told, &version) != HF_OK)
        return;
    if (version + 1 == call->token)
        check_found(c, "version", call->id, 0,
                    "product %.*s is at version %llu, as IF says, and refused",
                    SHOW(call->name), (unsigned long long)version);
    if (version == 0) {
        add(c, call, NOTE_ABSENT);
        return;
    }
    check_number_given(c, version, 0, call->hi, call->id);
    add(c, call, NOTE_CLASH)->version = (int64_t)version;
}

/* What BEST did not get. */
static void add_failed(struct check *c, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes sku;
    int64_t available;

    if (!call->may || !check_list(call->reply, "failed", &list))
        return;
    while (check_list_next(&list, &entry)) {
        if (check_text(entry, "sku", &sku) &&
            resp_field_number(entry, "available", &available))
            add_short(c, call, sku, available);
    }
}

static void add_refusal(struct check *c, const struct call *call)
{
    struct hf_bytes sku;

    if (check_code(call, "SHORT"))
        add_shorts(c, call);
    else if (check_is_clash(call))
        add_clash(c, call);
    else if (call->verb == VERB_STOCK_DEL && check_code(call, "STATE"))
        add(c, call, NOTE_KEPT);
    else if (check_code(call, "NOTFOUND") &&
             check_between(call->reply, "no product '", "'\r", &sku) &&
             is_plain(sku))
        add(c, call, NOTE_ABSENT)->key.name = sku;
}

/* SET and ADD: the reply shows the product right after it. */
static void add_total(struct check *c, const struct call *call)
{
    struct note *note;

    if (!call->may)
        return;
    note = add(c, call, NOTE_TOTAL);
    if (call->outcome != OUTCOME_DONE ||
        !resp_field_number(call->reply, "total", &note->total) ||
        !resp_field_number(call->reply, "version", &note->version))
        return;
    check_number_given(c, (uint64_t)note->version, note->lo, note->hi,
                       call->id);
    add_product(c, call, call->reply);
    if (call->token == 1) /* IF 0 */
        add(c, call, NOTE_ABSENT);
}

/* LOW, ATTR and LIMIT: the reply shows the product right after it. */
static void add_setting(struct check *c, const struct call *call)
{
    int64_t version = 0;
    bool done = call->outcome == OUTCOME_DONE;

    if (!call->may)
        return;
    if (done && resp_field_number(call->reply, "version", &version)) {
        check_number_given(c, (uint64_t)version, call->first, call->hi,
                           call->id);
        add_product(c, call, call->reply);
    }
    if (call->verb == VERB_STOCK_LOW) {
        struct note *note = add(c, call, NOTE_LOW);
        note->low = call->amount;
        note->version = version;
    }
    if (call->verb == VERB_STOCK_LIMIT) {
        struct note *note = add(c, call, NOTE_QUOTA);
        note->wanted = call->amount;
        note->version = version;
    }
}

void stock_note(struct check *c, const struct call *call)
{
    bool refused = call->outcome == OUTCOME_REFUSED;

    switch (call->verb) {
    case VERB_STOCK_SET:
    case VERB_STOCK_ADD:
        if (!refused)
            add_total(c, call);
        break;
    case VERB_STOCK_LOW:
    case VERB_STOCK_ATTR:
    case VERB_STOCK_LIMIT:
        if (!refused)
            add_setting(c, call);
        break;
    case VERB_STOCK_GET:
    case VERB_STOCK_LIST:
    case VERB_STOCK_PLACES:
        c->report->reads += call->answer_at != CHECK_NEVER;
        if (call->outcome == OUTCOME_DONE)
            add_products(c, call);
        if (call->outcome == OUTCOME_DONE && call->verb == VERB_STOCK_PLACES)
            places_judge_sums(c, call);
        break;
    case VERB_STOCK_EXPECT:
    case VERB_STOCK_EXPECTED:
        break; /* refusals tell of the product */
    case VERB_STOCK_DEL:
        if (!refused && call->may)
            add(c, call, NOTE_RESET);
        break;
    case VERB_RESERVE:
        hoard_judge_refusal(c, call);
        if (call->outcome == OUTCOME_DONE && call->terms.best)
            add_failed(c, call);
        break;
    default:
        return;
    }
    if (refused)
        add_refusal(c, call);
}
