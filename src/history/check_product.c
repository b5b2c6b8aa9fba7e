/* check_product.c - one product in one era: are the numbers that were told
 * possible, after what was surely and what was possibly done? */
#include "history/products.h"

static int by_at(const void *a, const void *b)
{
    const struct tally_step *left = a;
    const struct tally_step *right = b;

    return (left->at > right->at) - (left->at < right->at);
}

static void put(struct tally *tally, uint32_t at, int64_t quantity)
{
    tally->steps[tally->count++] = (struct tally_step){at, quantity};
}

static void sort(struct tally *tally)
{
    int64_t sum = 0;

    qsort(tally->steps, tally->count, sizeof *tally->steps, by_at);
    for (size_t i = 0; i < tally->count; i++) {
        /* so large that it says nothing: more than this is never told */
        if (__builtin_add_overflow(sum, tally->steps[i].quantity, &sum))
            sum = INT64_MAX;
        tally->steps[i].quantity = sum;
    }
}

/* The sum of the quantities at positions below `at`. */
static int64_t below(const struct tally *tally, uint64_t at)
{
    size_t low = check_below(tally->steps, tally->count, sizeof *tally->steps,
                             offsetof(struct tally_step, at), at);

    return low == 0 ? 0 : tally->steps[low - 1].quantity;
}

/* At least: began before the window, did not end before the window's end. */
static int64_t least(const struct tally *from, const struct tally *to,
                     uint32_t lo, uint32_t hi)
{
    int64_t sum = below(from, lo) - below(to, (uint64_t)hi + 1);

    return sum < 0 ? 0 : sum;
}

/* At most: may have begun before its end, did not surely end before it. */
static int64_t most(const struct tally *from, const struct tally *to,
                    uint32_t lo, uint32_t hi)
{
    return below(from, (uint64_t)hi + 1) - below(to, lo);
}

/* Does it belong to the era, surely or possibly? */
static bool surely_in(const struct product_view *view, uint32_t lo)
{
    return view->reset.hi == 0 || lo > view->reset.hi;
}

static bool possibly_in(const struct product_view *view, uint32_t hi)
{
    return view->reset.hi == 0 || hi >= view->reset.lo;
}

static void add_share(struct product_view *view, const struct share *share)
{
    const struct check *c = view->check;
    const struct booking *b =
        (const struct booking *)c->bookings.data + share->booking;
    int64_t quantity = share->quantity;
    bool sold = b->sold_hi < c->end;
    uint32_t selling = b->sold_lo < b->sold_hi ? b->sold_lo : 0;

    if (!possibly_in(view, b->hi)) {
        /* a CONFIRM in the time of grace may sell what was made anew */
        bool late = c->grace_us > 0 && possibly_in(view, b->sold_hi);
        if (late && (b->sold_lo < c->end || sold)) {
            put(&view->taken_from, selling, quantity);
            put(&view->selling_from, selling, quantity);
        }
        return;
    }
    put(&view->pending_from, b->lo, quantity);
    put(&view->pending_to, b->over, quantity);
    put(&view->taken_from, b->lo, quantity);
    if (b->sold_lo == c->end && !sold)
        put(&view->taken_to, b->over, quantity);
    if (b->sold_lo < c->end || sold)
        put(&view->selling_from, selling, quantity);
    if (b->unsure || b->proof == NULL || !surely_in(view, b->lo))
        return;
    uint32_t end = b->end > b->hi ? b->end : b->hi;
    put(&view->reserved_from, b->hi, quantity);
    put(&view->reserved_to, end, quantity);
    put(&view->kept_from, b->hi, quantity);
    uint32_t kept = b->kept > end ? b->kept : end;
    if (sold)
        put(&view->sold_from, b->sold_hi, quantity);
    if (!sold || c->grace_us > 0)
        put(&view->kept_to, sold && kept > b->sold_hi ? b->sold_hi : kept,
            quantity);
    if (sold && c->grace_us > 0) /* it may have been free in between */
        put(&view->kept_from, b->sold_hi, quantity);
}

static void sum_up(struct product_view *view)
{
    for (size_t i = 0; i < TALLIES; i++)
        view->tallies[i].count = 0;
    for (size_t i = 0; i < view->share_count; i++)
        add_share(view, &view->shares[i]);
    for (size_t i = 0; i < TALLIES; i++)
        sort(&view->tallies[i]);
}

/* SET and ADD of the era: those that were told, and the others. */
static void find_totals(struct product_view *view)
{
    uint32_t lo = view->check->end;

    view->total_count = view->maybe_count = 0;
    view->set = NULL;
    for (size_t i = 0; i < view->note_count; i++) {
        const struct note *note = &view->notes[i];
        if (note->kind != NOTE_TOTAL || !possibly_in(view, note->hi))
            continue;
        if (note->version == 0) {
            view->maybes[view->maybe_count++] = note;
            continue;
        }
        view->totals[view->total_count++] = note;
        if (surely_in(view, note->lo) &&
            (view->set == NULL || note->hi < view->set->hi))
            view->set = note;
    }
    for (size_t i = view->total_count; i-- > 0;) {
        lo = view->totals[i]->lo < lo ? view->totals[i]->lo : lo;
        view->total_lo[i] = lo;
    }
}

/* What the total can be while a call was answered. */
struct range {
    int64_t low;
    int64_t high;
    bool known; /* some SET or ADD was surely before */
    bool exact; /* it is one of those that were told */
    bool hit;   /* `wanted` is one of them */
    uint32_t from;
};

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

/* SETs and ADDs of unknown outcome. */
static void widen(const struct product_view *view, const struct note *note,
                  struct range *range)
{
    int64_t less = 0;
    int64_t more = 0;

    for (size_t i = 0; i < view->maybe_count; i++) {
        const struct note *other = view->maybes[i];
        int64_t amount = other->call->amount;
        if (other->lo > note->hi || other->hi < range->from)
            continue;
        range->exact = false;
        if (other->call->verb == VERB_STOCK_ADD) {
            less = amount < 0 ? plus(less, amount) : less;
            more = amount > 0 ? plus(more, amount) : more;
            continue;
        }
        range->low = amount < range->low ? amount : range->low;
        range->high = amount > range->high ? amount : range->high;
    }
    range->low = plus(range->low, less);
    range->high = plus(range->high, more);
}

static struct range total_range(const struct product_view *view,
                                const struct note *note, int64_t wanted)
{
    struct range range = {.low = INT64_MAX, .high = INT64_MIN, .exact = true};

    /* those that may have been set before the note's end */
    size_t i = check_below(view->total_lo, view->total_count,
                           sizeof *view->total_lo, 0, (uint64_t)note->hi + 1);

    while (i-- > 0) {
        const struct note *total = view->totals[i];
        if (total->lo > note->hi)
            continue;
        range.low = total->total < range.low ? total->total : range.low;
        range.high = total->total > range.high ? total->total : range.high;
        range.hit = range.hit || total->total == wanted;
        range.from = total->lo;
        if (total->hi < note->lo) {
            range.known = surely_in(view, total->lo);
            break;
        }
    }
    widen(view, note, &range);
    return range;
}

static void judge_total(struct product_view *view, const struct note *note)
{
    struct range range = total_range(view, note, note->total);

    if (!range.known || !view->check->closed)
        return;
    if (range.exact ? !range.hit
                    : note->total < range.low || note->total > range.high)
        check_found(view->check, "total", note->call->id, 0,
                    "product %.*s has a total of %lld, but it can be %lld to "
                    "%lld only",
                    SHOW(view->sku), (long long)note->total,
                    (long long)range.low, (long long)range.high);
}

/* More changes of unknown outcome are too many to try all of them. */
#define MAYBES_MAX 8u

/* ADDs of unknown outcome that may lie between the two; how many. */
static size_t find_maybes(const struct product_view *view,
                          const struct note *from, const struct note *note,
                          const struct note *out[MAYBES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < view->maybe_count; i++) {
        const struct note *other = view->maybes[i];
        if (other->lo > note->hi || other->hi < from->lo)
            continue;
        if (other->call->verb == VERB_STOCK_SET || count == MAYBES_MAX)
            return 0;
        out[count++] = other;
    }
    return count;
}

/* Which ADDs of unknown outcome the read shows: those without which its total
 * is not possible, and those with which it is not. */
static void see_maybes(struct product_view *view, const struct note *note)
{
    const struct note *maybes[MAYBES_MAX];
    size_t last = view->total_count;
    size_t every = SIZE_MAX;
    size_t some = 0;

    while (last > 0 && view->totals[last - 1]->version > note->version)
        last--;
    if (last == 0 || !surely_in(view, view->totals[last - 1]->lo))
        return;
    const struct note *from = view->totals[last - 1];
    size_t count = find_maybes(view, from, note, maybes);
    for (size_t set = 0; count > 0 && set < (size_t)1 << count; set++) {
        int64_t total = from->total;
        for (size_t i = 0; i < count; i++)
            total = plus(total, set >> i & 1 ? maybes[i]->call->amount : 0);
        if (total != note->total)
            continue;
        every &= set;
        some |= set;
    }
    for (size_t i = 0; i < count && every != SIZE_MAX; i++) {
        if ((every >> i & 1) != 0)
            check_seen(view->check, maybes[i]->call, note->call, true);
        else if ((some >> i & 1) == 0 && maybes[i]->lo > from->hi)
            check_seen(view->check, maybes[i]->call, note->call, false);
    }
}

static void outside(struct product_view *view, const struct note *note,
                    const char *what, int64_t told, int64_t low, int64_t high)
{
    check_found(view->check, what, note->call->id, 0,
                "product %.*s has %lld %s, but it can be %lld to %lld only",
                SHOW(view->sku), (long long)told, what, (long long)low,
                (long long)high);
}

static void judge_numbers(struct product_view *view, const struct note *note)
{
    uint32_t lo = note->lo;
    uint32_t hi = note->hi;
    bool closed = view->check->closed;
    int64_t committed = note->reserved + note->sold;
    int64_t low = least(&view->reserved_from, &view->reserved_to, lo, hi);
    int64_t high = most(&view->pending_from, &view->pending_to, lo, hi);

    if (note->reserved < low || (closed && note->reserved > high)) {
        outside(view, note, "reserved", note->reserved, low, high);
        return;
    }
    low = below(&view->sold_from, lo);
    high = below(&view->selling_from, (uint64_t)hi + 1);
    if (note->sold < low || (closed && note->sold > high)) {
        outside(view, note, "sold", note->sold, low, high);
        return;
    }
    low = least(&view->kept_from, &view->kept_to, lo, hi);
    high = most(&view->taken_from, &view->taken_to, lo, hi);
    if (committed < low || (closed && committed > high))
        outside(view, note, "committed", committed, low, high);
}

/* SHORT tells what was available, and that must be possible too; and there was
 * not enough. A total is short if less than what is reserved and sold. */
static void judge_short(struct product_view *view, const struct note *note)
{
    struct range range = total_range(view, note, 0);
    int64_t taken =
        most(&view->taken_from, &view->taken_to, note->lo, note->hi);
    int64_t kept = least(&view->kept_from, &view->kept_to, note->lo, note->hi);

    if (!range.known || !view->check->closed)
        return;
    int64_t low = plus(range.low, -taken);
    int64_t high = plus(range.high, -kept);
    bool enough = note->call->verb == VERB_STOCK_SET ? note->wanted >= taken
                                                     : note->wanted <= low;
    if (enough && !note->behind)
        check_found(view->check, "short", note->call->id, 0,
                    "product %.*s is short, but there must be %lld to %lld "
                    "available",
                    SHOW(view->sku), (long long)low, (long long)high);
    else if (note->available >= 0 &&
             (note->available < low || note->available > high))
        check_found(view->check, "short", note->call->id, 0,
                    "product %.*s is short with %lld available, but there "
                    "must be %lld to %lld",
                    SHOW(view->sku), (long long)note->available, (long long)low,
                    (long long)high);
}

/* STATE: something was reserved, or somebody waits. */
static void judge_kept(struct product_view *view, const struct note *note)
{
    if (view->check->closed &&
        most(&view->pending_from, &view->pending_to, note->lo, note->hi) == 0 &&
        waitlist_between(view->check, view->sku, note->lo, note->hi).count == 0)
        check_found(view->check, "state", note->call->id, 0,
                    "product %.*s is not deleted, but nothing of it can be "
                    "reserved",
                    SHOW(view->sku));
}

static void judge_absent(struct product_view *view, const struct note *note)
{
    if (view->set != NULL && view->set->hi < note->lo)
        check_found(view->check, "missing", note->call->id, view->set->call->id,
                    "product %.*s is not found, but was set", SHOW(view->sku));
}

/* Lists that show all there is. Reads come first among the notes. */
static void judge_listings(struct product_view *view)
{
    struct check *c = view->check;
    const struct call *const *listings = c->listings.data;

    for (size_t i = 0; view->set != NULL && i < c->listings.count; i++) {
        const struct call *call = listings[i];
        bool shown = call->verb != VERB_STOCK_LIST || call->hi >= view->end ||
                     call->lo <= view->set->hi || !check_lists(call, view->sku);
        for (size_t j = 0; !shown && j < view->note_count; j++)
            shown = view->notes[j].call == call;
        if (!shown)
            check_found(c, "missing", call->id, view->set->call->id,
                        "product %.*s is not in the list, but was set",
                        SHOW(view->sku));
    }
}

/* What was set is what was told, and what was added adds up. */
static void judge_changes(struct product_view *view)
{
    for (size_t i = 0; i < view->total_count; i++) {
        const struct note *note = view->totals[i];
        const struct note *before = i > 0 ? view->totals[i - 1] : NULL;
        int64_t expected = note->call->amount;
        if (note->call->verb == VERB_STOCK_ADD) {
            struct range range = {.exact = true};
            if (before == NULL || !view->check->closed ||
                before->version == note->version || /* the same, told again */
                !surely_in(view, before->lo) || note->hi >= view->end)
                continue;
            range.from = before->lo;
            widen(view, note, &range);
            if (!range.exact)
                continue;
            expected += before->total;
        }
        if (note->total != expected)
            check_found(view->check, "total", note->call->id,
                        before != NULL ? before->call->id : 0,
                        "product %.*s: the total is %lld, and should be %lld",
                        SHOW(view->sku), (long long)note->total,
                        (long long)expected);
    }
}

/* Nobody reserves what there is not, whether or not somebody reads. */
static void judge_reserved(struct product_view *view, const struct share *share)
{
    const struct check *c = view->check;
    const struct booking *b =
        (const struct booking *)c->bookings.data + share->booking;

    if (b->unsure || b->reserve == NULL || !b->reserve->sure ||
        b->reserve->first != b->lo || !surely_in(view, b->lo) ||
        b->hi >= view->end || !c->closed)
        return;
    struct note note = {.lo = b->lo, .hi = b->reserve->hi};
    struct range range = total_range(view, &note, 0);
    int64_t kept = least(&view->kept_from, &view->kept_to, note.lo, note.hi);
    if (range.known && kept > plus(range.high, -share->quantity))
        check_found(view->check, "oversold", b->reserve->id, 0,
                    "product %.*s: %lld were reserved, and %lld of %lld were "
                    "taken",
                    SHOW(view->sku), (long long)share->quantity,
                    (long long)kept, (long long)range.high);
}

/* A product with reserved units stays. Asked before any era: what is surely
 * reserved is so whatever else was deleted, and what a flush may have
 * forgotten is not sure. */
static void judge_deletion(struct product_view *view, const struct note *note)
{
    int64_t reserved =
        least(&view->reserved_from, &view->reserved_to, note->lo, note->hi);

    if (view->check->closed && note->call->sure && reserved > 0)
        check_found(view->check, "deleted", note->call->id, 0,
                    "product %.*s was deleted, but %lld of it were reserved "
                    "all the time",
                    SHOW(view->sku), (long long)reserved);
}

void product_judge(struct product_view *view)
{
    sum_up(view);
    find_totals(view);
    for (size_t i = 0; i < view->note_count; i++) {
        const struct note *note = &view->notes[i];
        if (note->kind == NOTE_RESET && view->reset.hi == 0)
            judge_deletion(view, note);
        if (note->hi >= view->end || !surely_in(view, note->lo))
            continue;
        switch (note->kind) {
        case NOTE_READ:
            judge_total(view, note);
            judge_numbers(view, note);
            see_maybes(view, note);
            break;
        case NOTE_SHORT:
            judge_short(view, note);
            break;
        case NOTE_KEPT:
            judge_kept(view, note);
            break;
        case NOTE_ABSENT:
            judge_absent(view, note);
            break;
        default:
            break;
        }
    }
    judge_changes(view);
    judge_listings(view);
    for (size_t i = 0; i < view->share_count; i++)
        judge_reserved(view, &view->shares[i]);
}
