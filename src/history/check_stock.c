/* check_stock.c - gathers what is said of each product; the rules that need no
 * state: sums, and versions. */
#include "base/memory.h"
#include "history/products.h"

struct gather {
    struct check *check;
    struct list notes;
};

static struct note *add(struct gather *g, const struct call *call,
                        enum note_kind kind)
{
    struct note *note = check_push(&g->notes, sizeof *note);

    if (note == NULL)
        return NULL;
    *note = (struct note){.call = call,
                          .sku = call->name,
                          .kind = kind,
                          .lo = call->first,
                          .hi = call->hi};
    return note;
}

static enum hf_status add_product(struct gather *g, const struct call *call,
                                  struct hf_bytes map)
{
    struct check *c = g->check;
    struct note *note = add(g, call, NOTE_READ);

    if (note == NULL)
        return HF_NOMEM;
    if (!check_text(map, "sku", &note->sku) ||
        !check_number(map, "total", &note->total) ||
        !check_number(map, "available", &note->available) ||
        !check_number(map, "reserved", &note->reserved) ||
        !check_number(map, "sold", &note->sold) ||
        !check_number(map, "version", &note->version)) {
        check_found(c, "reply", call->id, 0,
                    "a product is shown with its numbers");
        g->notes.count--;
        return HF_OK;
    }
    int64_t sum;
    bool negative = note->available < 0 || note->reserved < 0 || note->sold < 0;
    if (negative ||
        __builtin_add_overflow(note->available, note->reserved, &sum) ||
        __builtin_add_overflow(sum, note->sold, &sum) || sum != note->total) {
        check_found(c, "sum", call->id, 0,
                    "product %.*s: total %lld, available %lld, reserved %lld, "
                    "sold %lld",
                    SHOW(note->sku), (long long)note->total,
                    (long long)note->available, (long long)note->reserved,
                    (long long)note->sold);
        g->notes.count--;
        return HF_OK;
    }
    if (call->verb == VERB_STOCK_GET || call->verb == VERB_STOCK_LIST)
        return check_number_given(c, (uint64_t)note->version, 0, note->hi,
                                  call->id);
    return HF_OK;
}

/* STOCK GET of several is a list, in the order of the words. */
static enum hf_status add_products(struct gather *g, const struct call *call)
{
    bool get = call->verb == VERB_STOCK_GET;
    struct reply_list list;
    struct hf_bytes entry;
    enum hf_status status = HF_OK;

    if (get && call->word_count == 3)
        return add_product(g, call, call->reply);
    if (!check_list(call->reply, get ? NULL : "products", &list))
        return HF_OK;
    for (uint32_t i = 2; status == HF_OK && check_list_next(&list, &entry);
         i++) {
        if (entry.data[0] == '*' || entry.data[0] == '%') {
            status = add_product(g, call, entry);
        } else if (get && i < call->word_count) {
            struct note *note = add(g, call, NOTE_ABSENT);
            if (note == NULL)
                return HF_NOMEM;
            note->sku = call->words[i];
        }
    }
    return status;
}

/* The text between two marks in the reply. */
static bool between(struct hf_bytes reply, const char *before,
                    const char *behind, struct hf_bytes *out)
{
    const char *at = memmem(reply.data, reply.len, before, strlen(before));

    if (at == NULL)
        return false;
    at += strlen(before);
    size_t left = (size_t)(reply.data + reply.len - at);
    const char *end = memmem(at, left, behind, strlen(behind));
    if (end == NULL)
        return false;
    *out = hf_bytes(at, (size_t)(end - at));
    return true;
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
        (between(call->reply, "sku '", "': requested", sku) && is_plain(*sku)))
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

static enum hf_status add_short(struct gather *g, const struct call *call)
{
    struct hf_bytes sku;
    struct hf_bytes number;
    int64_t wanted;
    int64_t available;

    if (!find_short(call, &sku) || !find_wanted(call, sku, &wanted))
        return HF_OK;
    if (!is_plain(sku) ||
        !between(call->reply, ", available ", "\r", &number) ||
        hf_parse_i64(number, &available) != HF_OK)
        available = -1;
    if (available >= wanted && call->verb != VERB_STOCK_SET) {
        check_found(g->check, "short", call->id, 0,
                    "product %.*s is short of %lld with %lld available",
                    SHOW(sku), (long long)wanted, (long long)available);
        return HF_OK;
    }
    struct note *note = add(g, call, NOTE_SHORT);
    if (note == NULL)
        return HF_NOMEM;
    note->sku = sku;
    note->wanted = wanted;
    note->available = call->verb == VERB_STOCK_SET ? -1 : available;
    return HF_OK;
}

static enum hf_status add_refusal(struct gather *g, const struct call *call)
{
    struct hf_bytes sku = call->name;
    bool kept = call->verb == VERB_STOCK_DEL && check_code(call, "STATE");

    if (check_code(call, "SHORT"))
        return add_short(g, call);
    if (!kept &&
        (!check_code(call, "NOTFOUND") ||
         !between(call->reply, "no product '", "'\r", &sku) || !is_plain(sku)))
        return HF_OK;
    struct note *note = add(g, call, kept ? NOTE_KEPT : NOTE_ABSENT);
    if (note == NULL)
        return HF_NOMEM;
    note->sku = sku;
    return HF_OK;
}

/* SET and ADD: the reply shows the product right after it. */
static enum hf_status add_total(struct gather *g, const struct call *call)
{
    struct note *note;
    int64_t version;
    enum hf_status status;

    if (!call->may)
        return HF_OK;
    note = add(g, call, NOTE_TOTAL);
    if (note == NULL)
        return HF_NOMEM;
    if (call->outcome != OUTCOME_DONE)
        return HF_OK;
    if (!check_number(call->reply, "total", &note->total) ||
        !check_number(call->reply, "version", &version))
        return HF_OK; /* add_product() tells */
    note->version = version;
    status = check_number_given(g->check, (uint64_t)version, note->lo, note->hi,
                                call->id);
    return status == HF_OK ? add_product(g, call, call->reply) : status;
}

static enum hf_status add_call(struct gather *g, const struct call *call)
{
    switch (call->verb) {
    case VERB_STOCK_SET:
    case VERB_STOCK_ADD:
        return call->outcome == OUTCOME_REFUSED ? add_refusal(g, call)
                                                : add_total(g, call);
    case VERB_STOCK_GET:
    case VERB_STOCK_LIST:
        g->check->report->reads += call->answer_at != CHECK_NEVER;
        return call->outcome == OUTCOME_DONE ? add_products(g, call)
                                             : add_refusal(g, call);
    case VERB_STOCK_DEL:
        if (call->outcome == OUTCOME_REFUSED)
            return add_refusal(g, call);
        return !call->may || add(g, call, NOTE_RESET) != NULL ? HF_OK
                                                              : HF_NOMEM;
    case VERB_RESERVE:
        return call->outcome == OUTCOME_REFUSED ? add_refusal(g, call) : HF_OK;
    default:
        return HF_OK;
    }
}

static int by_sku(const void *a, const void *b)
{
    const struct note *left = a;
    const struct note *right = b;
    int order = check_compare(left->sku, right->sku);

    if (order != 0)
        return order;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->kind == NOTE_READ && left->version != right->version)
        return left->version < right->version ? -1 : 1;
    return (left->lo > right->lo) - (left->lo < right->lo);
}

static int share_by_sku(const void *a, const void *b)
{
    const struct share *left = a;
    const struct share *right = b;

    return check_compare(left->sku, right->sku);
}

/* Reads of one product, by version: one version is one state, and who asks
 * later is not shown an older one. */
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
        } else if (next != NULL && (next->total != read->total ||
                                    next->reserved != read->reserved ||
                                    next->sold != read->sold)) {
            check_found(c, "version", read->call->id, next->call->id,
                        "product %.*s has other numbers at the same version",
                        SHOW(read->sku));
        }
        if (earliest != NULL && earliest->hi < read->lo)
            check_found(c, "version", read->call->id, earliest->call->id,
                        "product %.*s is shown at version %lld after %lld",
                        SHOW(read->sku), (long long)read->version,
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

/* The SETs, by lo, in `makers`: nothing else makes a product. How many. */
static size_t find_makers(const struct product_view *view,
                          const struct note **makers)
{
    size_t count = 0;

    for (size_t i = 0; i < view->note_count; i++) {
        if (view->notes[i].kind == NOTE_TOTAL &&
            view->notes[i].call->verb == VERB_STOCK_SET)
            makers[count++] = &view->notes[i];
    }
    return count;
}

/* May one of the makers have come after the deletion and before the read? */
static bool may_be_made(const struct note *const *makers, size_t count,
                        const struct window *reset, const struct note *read)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (makers[middle]->lo <= read->hi)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && makers[low - 1]->hi < reset->lo)
        low--;
    return low > 0;
}

/* What was surely deleted is not shown until it may have been set again. */
static void judge_deleted(struct product_view *view, size_t reads,
                          const struct window *resets, size_t reset_count)
{
    struct check *c = view->check;
    size_t makers = find_makers(view, view->maybes);

    for (size_t i = 0; c->closed && i < reads; i++) {
        const struct note *read = &view->notes[i];
        size_t last = reset_count;
        while (last > 0 &&
               (!resets[last - 1].sure || resets[last - 1].hi >= read->lo))
            last--;
        if (last > 0 &&
            !may_be_made(view->maybes, makers, &resets[last - 1], read))
            check_found(c, "deleted", read->call->id, resets[last - 1].id,
                        "product %.*s is shown, but was deleted and not set "
                        "again",
                        SHOW(view->sku));
    }
}

static enum hf_status judge(struct product_view *view, struct window *resets)
{
    struct check *c = view->check;
    size_t reads = 0;
    size_t count = find_resets(c, view->notes, view->note_count, resets);
    struct window last = {0};

    while (reads < view->note_count && view->notes[reads].kind == NOTE_READ)
        reads++;
    judge_versions(c, view->notes, reads);
    judge_deleted(view, reads, resets, count);
    for (size_t i = 0; i <= count; i++) {
        view->reset = last;
        view->end = i < count ? resets[i].lo : c->end;
        /* what is not surely deleted makes what follows unsure */
        if (i == 0 || last.sure)
            product_judge(view);
        if (i < count && resets[i].hi >= last.hi)
            last = resets[i];
    }
    return HF_OK;
}

static enum hf_status judge_all(struct check *c, struct note *notes,
                                size_t count, struct product_view *view,
                                struct window *resets)
{
    const struct share *shares = (const struct share *)c->shares.data;
    size_t share = 0;
    enum hf_status status = HF_OK;

    for (size_t start = 0, i = 1; status == HF_OK && i <= count; i++) {
        if (i < count && hf_bytes_equal(notes[i].sku, notes[start].sku))
            continue;
        view->sku = notes[start].sku;
        view->notes = notes + start;
        view->note_count = i - start;
        while (share < c->shares.count &&
               check_compare(shares[share].sku, view->sku) < 0)
            share++;
        size_t first = share;
        while (share < c->shares.count &&
               hf_bytes_equal(shares[share].sku, view->sku))
            share++;
        view->shares = shares + first;
        view->share_count = share - first;
        status = judge(view, resets);
        start = i;
    }
    return status;
}

/* Room for every list of one product. */
static enum hf_status allocate(struct product_view *view, size_t shares,
                               size_t notes)
{
    struct tally_step *steps =
        hf_alloc((shares + 1) * TALLIES * sizeof(struct tally_step));

    view->totals = hf_alloc((notes + 1) * sizeof *view->totals);
    view->maybes = hf_alloc((notes + 1) * sizeof *view->maybes);
    view->total_lo = hf_alloc((notes + 1) * sizeof *view->total_lo);
    for (size_t i = 0; steps != NULL && i < TALLIES; i++)
        view->tallies[i].steps = steps + i * (shares + 1);
    return steps == NULL || view->totals == NULL || view->maybes == NULL ||
                   view->total_lo == NULL
               ? HF_NOMEM
               : HF_OK;
}

enum hf_status check_stock(struct check *c)
{
    struct gather g = {.check = c};
    struct product_view view = {.check = c};
    enum hf_status status = HF_OK;
    struct window *resets = NULL;

    for (size_t i = 0; status == HF_OK && i < c->count; i++)
        status = add_call(&g, &c->calls[i]);
    if (status == HF_OK)
        status = allocate(&view, c->shares.count, g.notes.count);
    resets = hf_alloc((g.notes.count + c->flush_count + 1) * sizeof *resets);
    if (resets == NULL)
        status = HF_NOMEM;
    if (status == HF_OK) {
        if (g.notes.count > 0)
            qsort(g.notes.data, g.notes.count, sizeof(struct note), by_sku);
        if (c->shares.count > 0)
            qsort(c->shares.data, c->shares.count, sizeof(struct share),
                  share_by_sku);
        status = judge_all(c, (struct note *)g.notes.data, g.notes.count, &view,
                           resets);
    }
    hf_free(view.tallies[0].steps);
    hf_free(view.totals);
    hf_free(view.maybes);
    hf_free(view.total_lo);
    hf_free(resets);
    hf_free(g.notes.data);
    return status;
}
