/* check_stock.c - what is said of each product; the rules that need no state:
 * sums, and versions. */
#include "history/products.h"

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
           read->call->verb != VERB_STOCK_GET &&
           read->call->verb != VERB_STOCK_PLACES;
}

/* IF was as told: no other version lies between that and the one it made. What
 * comes of IF 0 is the start of something new. */
static void judge_if(struct check *c, const struct note *reads, size_t at)
{
    const struct note *made = &reads[at];
    const struct note *before = made;

    while (before > reads && before->version == made->version)
        before--;
    if (before->version < made->version &&
        (uint64_t)before->version >= made->call->token)
        check_found(c, "version", made->call->id, before->call->id,
                    "product %.*s was changed at version %lld, though IF says "
                    "%llu",
                    SHOW(made->key.name), (long long)before->version,
                    (unsigned long long)made->call->token - 1);
}

/* A version that a CONFLICT tells is not older than one that was shown before
 * it was asked. */
static void judge_clash(struct check *c, const struct note *reads, size_t count,
                        const struct note *clash)
{
    while (count > 0 && reads[count - 1].version > clash->version) {
        const struct note *read = &reads[--count];
        if (read->hi >= clash->lo)
            continue;
        check_found(c, "version", clash->call->id, read->call->id,
                    "product %.*s is at version %lld after %lld",
                    SHOW(clash->key.name), (long long)clash->version,
                    (long long)read->version);
        return;
    }
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
        } else if (next != NULL &&
                   (next->total != read->total ||
                    next->reserved != read->reserved ||
                    next->low != read->low || next->sold != read->sold)) {
            check_found(c, "version", read->call->id, next->call->id,
                        "product %.*s has other numbers at the same version",
                        SHOW(read->key.name));
        }
        if (read->call->token > 1)
            judge_if(c, reads, i);
        if (is_change(read))
            see_version(c, reads, count, read);
        if (earliest != NULL && earliest->hi < read->lo)
            check_found(c, "version", read->call->id, earliest->call->id,
                        "product %.*s is shown at version %lld after %lld",
                        SHOW(read->key.name), (long long)read->version,
                        (long long)earliest->version);
    }
}

/* What a read shows as threshold: that of the last STOCK LOW up to its version,
 * or of one whose outcome is not known; none in the beginning, and perhaps
 * after a deletion. */
static void judge_low(struct check *c, const struct note *read,
                      const struct note *lows, size_t count, bool deleted)
{
    int64_t last = 0;
    bool known = read->low == 0 && deleted;

    for (size_t i = 0; i < count && lows[i].version <= read->version; i++) {
        known = known || (lows[i].version == 0 && lows[i].low == read->low);
        if (lows[i].version > 0)
            last = lows[i].low;
    }
    if (read->low >= 0 && !known && read->low != last && c->closed)
        check_found(c, "low", read->call->id, 0,
                    "product %.*s has a threshold of %lld, and should have "
                    "%lld",
                    SHOW(read->key.name), (long long)read->low,
                    (long long)last);
}

static void judge_lows(struct check *c, const struct note *notes, size_t reads,
                       size_t count, bool deleted)
{
    size_t from = reads;
    size_t end;

    while (from < count && notes[from].kind < NOTE_LOW)
        from++;
    for (end = from; end < count && notes[end].kind == NOTE_LOW;)
        end++;
    for (size_t i = 0; i < reads; i++)
        judge_low(c, &notes[i], notes + from, end - from, deleted);
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
    size_t room = 2 * view->share_count + 1; /* kept_from has two of some */
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
    for (size_t i = reads; i < note_count; i++) {
        if (notes[i].kind == NOTE_CLASH)
            judge_clash(c, notes, reads, &notes[i]);
    }
    judge_deleted(&view, reads, resets, count);
    judge_lows(c, notes, reads, note_count, count > 0);
    hoard_judge(&view, resets, count);
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
        stock_note(c, &c->calls[i]);
    for (size_t i = 0; i < c->notes.count; i++) {
        struct note *note = (struct note *)c->notes.data + i;
        note->key.by[0] = note->kind;
        note->key.by[1] = (uint64_t)note->version;
        note->key.by[2] = (uint64_t)note->lo << 32 | note->call->call_at;
    }
    check_sort(&c->shares, sizeof(struct share));
    check_groups(c, &c->notes, sizeof(struct note), judge);
}
