/* check_buyers.c - those who wait for stock: who may, in which order, and
 * that nobody waits for what is there.
 *
 * When a request came to wait is not told, nor when it was served: both lie
 * between its call and its answer. */
#include "history/bookings.h"
#include "history/products.h"

/* Those who come with less time between them may be queued in either order,
 * and so may their answers. */
#define ORDER_SLACK_US 50000u

#define PRIORITIES 4u

/* A RESERVE, which may wait, and what it wants of one product. */
struct queued {
    struct key key; /* the sku, by lo */
    const struct call *call;
    int64_t quantity;
    uint32_t hi;
    bool waits; /* perhaps */
    bool alone; /* it wants this product only */
};

/* What was told while the disk hung the engine learns later. */
static bool is_stalled(const struct call *call)
{
    static const char text[] = "the disk did not answer";

    return call->reply.len > 0 && memmem(call->reply.data, call->reply.len,
                                         text, sizeof text - 1) != NULL;
}

static void add_queued(struct check *c, const struct call *call)
{
    struct hf_bytes sku;
    int64_t quantity;
    size_t items = 0;

    for (size_t at = 0; check_item(call, &at, &sku, &quantity);)
        items++;
    for (size_t at = 0; check_item(call, &at, &sku, &quantity);) {
        struct queued *queued = check_push(c, &c->queued, sizeof *queued);
        *queued =
            (struct queued){.key = {sku, {call->first}},
                            .call = call,
                            .quantity = quantity,
                            .hi = is_stalled(call) ? call->run_end : call->hi,
                            .waits = call->wait_ms > 0,
                            .alone = items == 1};
    }
}

/* It may be in its queue from then on, also over restarts. */
static void add_joined(struct check *c, const struct call *call)
{
    struct queued *queued = check_push(c, &c->queued, sizeof *queued);

    *queued = (struct queued){.key = {call->name, {call->first}},
                              .call = call,
                              .hi = c->end,
                              .waits = true,
                              .alone = true};
    (void)hf_parse_i64(call->words[3], &queued->quantity);
}

/* The first that is not before the sku. */
static size_t find_sku(const struct check *c, struct hf_bytes sku)
{
    const struct queued *queued = c->queued.data;
    size_t low = 0;
    size_t high = c->queued.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (check_compare(queued[middle].key.name, sku) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct waiting waitlist_between(const struct check *c, struct hf_bytes sku,
                                uint32_t lo, uint32_t hi)
{
    const struct queued *queued = c->queued.data;
    struct waiting waiting = {.alone = true};

    for (size_t i = find_sku(c, sku);
         i < c->queued.count && hf_bytes_equal(queued[i].key.name, sku) &&
         queued[i].key.by[0] <= hi;
         i++) {
        if (queued[i].hi < lo || !queued[i].waits)
            continue;
        waiting.count++;
        waiting.alone = waiting.alone && queued[i].alone;
        if (queued[i].quantity > waiting.most)
            waiting.most = queued[i].quantity;
    }
    return waiting;
}

/* A read shows how many wait: so many may, and the first of them not for what
 * is there. What a group shows is not served yet, nor what SET and ADD show. */
void waitlist_judge_read(struct check *c, const struct note *note,
                         int64_t count)
{
    const struct call *call = note->call;
    struct waiting waiting =
        waitlist_between(c, note->key.name, note->lo, note->hi);

    if (!c->closed)
        return;
    if (count < 0 || (uint64_t)count > waiting.count)
        check_found(c, "waiting", call->id, 0,
                    "product %.*s has %lld who wait, but only %zu can",
                    SHOW(note->key.name), (long long)count, waiting.count);
    else if (count > 0 && waiting.alone && waiting.most <= note->available &&
             call->group == NULL && call->verb != VERB_STOCK_SET &&
             call->verb != VERB_STOCK_ADD)
        check_found(c, "idle", call->id, 0,
                    "product %.*s: %lld wait for %lld at most, and %lld are "
                    "available",
                    SHOW(note->key.name), (long long)count,
                    (long long)waiting.most, (long long)note->available);
}

/* ---- Order. ---- */

/* Is it known when it came and when it was answered, in its queue or not? */
static bool is_told(const struct call *call)
{
    static const char stops[] = "the server stops";

    return call->alone && call->arrived_at != CHECK_NEVER &&
           call->sent_at != CHECK_NEVER && call->request.len == 0 &&
           (call->outcome == OUTCOME_DONE || check_code(call, "TIMEOUT")) &&
           memmem(call->reply.data, call->reply.len, stops, sizeof stops - 1) ==
               NULL;
}

/* Of those who came well before: who was answered last, by priority. */
struct latest {
    const struct call *calls[PRIORITIES];
};

static void note_latest(struct latest *latest, const struct call *call)
{
    uint64_t priority = call->terms.priority;
    const struct call **place =
        &latest->calls[priority < PRIORITIES ? priority : 0];

    if (*place == NULL || (*place)->run_end != call->run_end ||
        (*place)->sent_at < call->sent_at)
        *place = call;
}

/* Nobody who came later is served while one with the same or a better priority
 * waits for the same product; without WAIT, while anybody does. */
static void judge_later(struct check *c, const struct latest *latest,
                        const struct queued *queued)
{
    const struct call *call = queued->call;

    if (call->outcome != OUTCOME_DONE ||
        check_shown_units(call->reply, queued->key.name) == 0)
        return; /* refused, or of other items or places */
    uint64_t last = call->wait_ms > 0 ? call->terms.priority : PRIORITIES;
    for (uint64_t i = 0; i < PRIORITIES && i <= last; i++) {
        const struct call *early = latest->calls[i];
        if (early == NULL || early->run_end != call->run_end ||
            check_us(c, call->sent_at) + ORDER_SLACK_US >=
                check_us(c, early->sent_at))
            continue;
        check_found(c, "fifo", call->id, early->id,
                    "product %.*s: who came later was served before one who "
                    "waited",
                    SHOW(queued->key.name));
        return;
    }
}

/* All who may wait for one product. */
static void judge_order(struct check *c, void *items, size_t count)
{
    const struct queued *queued = items;
    struct latest latest = {{NULL}};
    struct list refs = {0};
    size_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        if (queued[i].call->verb == VERB_RESERVE && is_told(queued[i].call))
            check_refer(c, &refs, hf_bytes("", 0), queued[i].call->arrived_at,
                        &queued[i]);
    }
    check_sort(&refs, sizeof(struct ref));
    const struct ref *told = refs.data;
    for (size_t i = 0; i < refs.count; i++) {
        const struct queued *late = told[i].thing;
        uint64_t came_us = check_us(c, late->call->arrived_at);
        for (; seen < i; seen++) {
            const struct queued *early = told[seen].thing;
            if (check_us(c, early->call->arrived_at) + ORDER_SLACK_US >=
                came_us)
                break;
            if (early->call->wait_ms > 0)
                note_latest(&latest, early->call);
        }
        judge_later(c, &latest, late);
    }
}

void check_buyers(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_RESERVE && call->group == NULL &&
            !check_is_booked(call))
            add_queued(c, call);
        else if (call->verb == VERB_JOIN)
            add_joined(c, call);
    }
    check_groups(c, &c->queued, sizeof(struct queued), judge_order);
}
