/* check_stock.c - gathers what is said of each product; the rules that need no
 * state: sums, and versions. */
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
    if (call->verb == VERB_STOCK_GET || call->verb == VERB_STOCK_LIST)
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
    if (!check_list(call->reply, get ? NULL : "products", &list))
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

/* The product that is short: as the reply tells, else the only one that was
 * asked for. */
static bool find_short(const struct call *call, struct hf_bytes *sku)
{
    struct hf_bytes item;
    int64_t quantity;
    size_t at = 0;

    *sku = call->name;
    if (call->verb != VERB_RESERVE ||
        (check_between(call->reply, "sku '", "': requested", sku) &&
         is_plain(*sku)))
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
    int64_t sum = 0;

    if (call->verb == VERB_STOCK_ADD)
        return !__builtin_sub_overflow(sum, call->amount, out);
    *out = call->amount;
    if (call->verb == VERB_STOCK_SET)
        return true;
    for (size_t at = 0; check_item(call, &at, &item, &quantity);) {
        if (hf_bytes_equal(item, sku) &&
            __builtin_add_overflow(sum, quantity, &sum))
            return false;
    }
    *out = sum;
    return sum > 0;
}

static void add_short(struct check *c, const struct call *call)
{
    struct hf_bytes sku;
    struct hf_bytes number;
    int64_t wanted;
    int64_t available;

    if (!find_short(call, &sku) || !find_wanted(call, sku, &wanted))
        return;
    if (!is_plain(sku) ||
        !check_between(call->reply, ", available ", "\r", &number) ||
        hf_parse_i64(number, &available) != HF_OK)
        available = -1;
    if (available >= wanted && call->verb != VERB_STOCK_SET) {
        check_found(c, "short", call->id, 0,
                    "product %.*s is short of %lld with %lld available",
                    SHOW(sku), (long long)wanted, (long long)available);
        return;
    }
    struct note *note = add(c, call, NOTE_SHORT);
    note->key.name = sku;
    note->wanted = wanted;
    note->available = call->verb == VERB_STOCK_SET ? -1 : available;
}

static void add_refusal(struct check *c, const struct call *call)
{
    struct hf_bytes sku;

    if (check_code(call, "SHORT"))
        add_short(c, call);
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
}

static void add_call(struct check *c, const struct call *call)
{
    bool refused = call->outcome == OUTCOME_REFUSED;

    switch (call->verb) {
    case VERB_STOCK_SET:
    case VERB_STOCK_ADD:
        if (!refused)
            add_total(c, call);
        break;
    case VERB_STOCK_GET:
    case VERB_STOCK_LIST:
        c->report->reads += call->answer_at != CHECK_NEVER;
        if (call->outcome == OUTCOME_DONE)
            add_products(c, call);
        break;
    case VERB_STOCK_DEL:
        if (!refused && call->may)
            add(c, call, NOTE_RESET);
        break;
    case VERB_RESERVE:
        break;
    default:
        return;
    }
    if (refused)
        add_refusal(c, call);
}

/* What reads show of a SET or ADD in a group, while it was carried out. */
static void see_version(struct check *c, const struct note *reads, size_t count,
                        const struct note *change)
{
    for (size_t i = 0; i < count; i++) {
        if (reads[i].hi >= change->lo && reads[i].lo <= change->hi)
            check_seen(c, change->call, reads[i].call,
                       reads[i].version >= change->version);
    }
}

static bool is_change(const struct note *read)
{
    return read->call->group != NULL && read->call->sure &&
           read->call->verb != VERB_STOCK_GET;
}

/* Reads of one product, by version: one version is one state, and who asks
 * later is not shown an older one; nor beside something newer, at the same
 * instant. */
static void judge_versions(struct check *c, const struct note *reads,
                           size_t count)
{
    const struct note *earliest = NULL; /* answered, of the newer ones */
    size_t top = count;

    for (size_t i = count; i-- > 0;) {
        const struct note *read = &reads[i];
        const struct note *next = i + 1 < count ? &reads[i + 1] : NULL;
        if (next != NULL && next->version != read->version) {
            for (size_t j = i + 1; j < top; j++) {
                if (earliest == NULL || reads[j].hi < earliest->hi)
                    earliest = &reads[j];
            }
            top = i + 1;
            if (next->version <= read->newest)
                check_found(c, "version", read->call->id, next->call->id,
                            "product %.*s is shown at version %lld beside %lld",
                            SHOW(read->key.name), (long long)read->version,
                            (long long)read->newest);
        } else if (next != NULL && (next->total != read->total ||
                                    next->reserved != read->reserved ||
                                    next->sold != read->sold)) {
            check_found(c, "version", read->call->id, next->call->id,
                        "product %.*s has other numbers at the same version",
                        SHOW(read->key.name));
        }
        if (is_change(read))
            see_version(c, reads, count, read);
        if (earliest != NULL && earliest->hi < read->lo)
            check_found(c, "version", read->call->id, earliest->call->id,
                        "product %.*s is shown at version %lld after %lld",
                        SHOW(read->key.name), (long long)read->version,
                        (long long)earliest->version);
    }
}

/* Where the products may have been deleted, in order; how many. */
static size_t find_resets(const struct check *c, const struct note *notes,
                          size_t count, struct window *out)
{
    size_t resets = 0;

    for (size_t i = 0; i < count; i++) {
        if (notes[i].kind == NOTE_RESET)
            out[resets++] =
                (struct window){notes[i].lo, notes[i].hi, notes[i].call->sure,
                                notes[i].call->id};
    }
    for (size_t i = 0; i < c->flush_count; i++)
        out[resets++] = c->flushes[i];
    for (size_t i = 1; i < resets; i++) {
        struct window window = out[i];
        size_t j = i;
        for (; j > 0 && out[j - 1].lo > window.lo; j--)
            out[j] = out[j - 1];
        out[j] = window;
    }
    return resets;
}

/* The SETs, by lo: nothing else makes a product. */
static struct list find_makers(const struct product_view *view)
{
    struct list makers = {0};

    for (size_t i = 0; i < view->note_count; i++) {
        const struct note *note = &view->notes[i];
        if (note->kind == NOTE_TOTAL && note->call->verb == VERB_STOCK_SET)
            check_refer(view->check, &makers, view->sku, note->lo, note);
    }
    check_sort(&makers, sizeof(struct ref));
    return makers;
}

/* May one of the makers have come after the deletion and before the read? */
static bool may_be_made(const struct list *makers, const struct window *reset,
                        const struct note *read)
{
    const struct ref *maker = check_last_below(makers, (uint64_t)read->hi + 1);

    while (maker != NULL && ((const struct note *)maker->thing)->hi < reset->lo)
        maker = maker == makers->data ? NULL : maker - 1;
    return maker != NULL;
}

/* What was surely deleted is not shown until it may have been set again. */
static void judge_deleted(struct product_view *view, size_t reads,
                          const struct window *resets, size_t reset_count)
{
    struct check *c = view->check;
    struct list makers = find_makers(view);

    for (size_t i = 0; c->closed && i < reads; i++) {
        const struct note *read = &view->notes[i];
        size_t last = reset_count;
        while (last > 0 &&
               (!resets[last - 1].sure || resets[last - 1].hi >= read->lo))
            last--;
        if (last > 0 && !may_be_made(&makers, &resets[last - 1], read))
            check_found(c, "deleted", read->call->id, resets[last - 1].id,
                        "product %.*s is shown, but was deleted and not set "
                        "again",
                        SHOW(view->sku));
    }
}

/* Room for every list of one product. */
static void allocate(struct product_view *view)
{
    struct check *c = view->check;
    size_t room = view->share_count + 1;
    struct tally_step *steps = check_alloc(c, room * TALLIES * sizeof *steps);

    view->totals = check_alloc(c, view->note_count * sizeof *view->totals);
    view->maybes = check_alloc(c, view->note_count * sizeof *view->maybes);
    view->total_lo = check_alloc(c, view->note_count * sizeof *view->total_lo);
    for (size_t i = 0; i < TALLIES; i++)
        view->tallies[i].steps = steps + i * room;
}

/* The product's shares: they and the products are in the same order. */
static void find_shares(struct product_view *view)
{
    struct check *c = view->check;
    const struct share *shares = c->shares.data;
    size_t at = c->share_next;

    while (at < c->shares.count &&
           check_compare(shares[at].key.name, view->sku) < 0)
        at++;
    view->shares = shares + at;
    for (;
         at < c->shares.count && hf_bytes_equal(shares[at].key.name, view->sku);
         at++)
        view->share_count++;
    c->share_next = at;
}

/* All notes of one product. */
static void judge(struct check *c, void *items, size_t note_count)
{
    const struct note *notes = items;
    struct product_view view = {.check = c,
                                .sku = notes[0].key.name,
                                .notes = notes,
                                .note_count = note_count};
    struct window *resets =
        check_alloc(c, (note_count + c->flush_count) * sizeof *resets);
    size_t count = find_resets(c, notes, note_count, resets);
    struct window last = {0};
    size_t reads = 0;

    find_shares(&view);
    allocate(&view);
    while (reads < note_count && notes[reads].kind == NOTE_READ)
        reads++;
    judge_versions(c, notes, reads);
    judge_deleted(&view, reads, resets, count);
    for (size_t i = 0; i <= count; i++) {
        view.reset = last;
        view.end = i < count ? resets[i].lo : c->end;
        /* what is not surely deleted makes what follows unsure */
        if (i == 0 || last.sure)
            product_judge(&view);
        if (i < count && resets[i].hi >= last.hi)
            last = resets[i];
    }
}

void check_stock(struct check *c)
{
    for (size_t i = 0; i < c->count; i++)
        add_call(c, &c->calls[i]);
    for (size_t i = 0; i < c->notes.count; i++) {
        struct note *note = (struct note *)c->notes.data + i;
        note->key.by[0] = note->kind;
        note->key.by[1] = (uint64_t)note->version;
        note->key.by[2] = (uint64_t)note->lo << 32 | note->call->call_at;
    }
    check_sort(&c->shares, sizeof(struct share));
    check_groups(c, &c->notes, sizeof(struct note), judge);
}
