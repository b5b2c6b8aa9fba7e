/* bundle.c - groups of reservations: who belongs to one, and how all of them
 * end. */
#include "hold/bundle.h"

#include <assert.h>

#include "hold/image_parts.h"
#include "hold/reserve.h"

#define MEMBERS(e) CHAIN(e->members, member, links)

static const struct bundle *bundle_at(const struct hold_engine *e,
                                      uint32_t number)
{
    return hf_index_at(&e->bundles, number);
}
static struct bundle *bundle_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_index_at(&e->bundles, number),
                        sizeof(struct bundle));
}
static struct member *member_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_slab_at(&e->members, number),
                        sizeof(struct member));
}

struct hf_bytes bundle_name(const struct hold_engine *e,
                            const struct reservation *r)
{
    return r->member == 0
               ? hf_bytes("", 0)
               : hf_index_name(&e->bundles,
                               bundle_at(e, member_at(e, r->member)->bundle));
}

/* ---- Coming and going. ---- */

void bundle_need(struct hold_engine *e, const struct hold_command *c,
                 struct need *need)
{
    if (c->bundle.len == 0)
        return;
    need_record(e, need, &e->bundles, c->bundle.len);
    need_item(need, &e->members);
}

bool bundle_refuse(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number =
        c->bundle.len == 0 ? 0 : hf_index_find(&e->bundles, c->bundle);

    return number != 0 && bundle_at(e, number)->count >= HOLD_MEMBERS_MAX &&
           refuse_overload(e, "group-members", HOLD_MEMBERS_MAX);
}

/* HF_NOMEM: never, if promised. */
static enum hf_status join(struct hold_engine *e, struct hf_bytes name,
                           uint32_t reservation)
{
    uint32_t number = hf_index_find(&e->bundles, name);

    if (number == 0)
        number = hf_index_add(&e->bundles, name);
    uint32_t place = number == 0 ? 0 : hf_slab_take(&e->members);
    if (place == 0)
        return HF_NOMEM;
    struct member *member = member_edit(e, place);
    member->bundle = number;
    member->reservation = reservation;
    struct bundle *bundle = bundle_edit(e, number);
    list_append(MEMBERS(e), &bundle->members, place);
    bundle->count++;
    reservation_edit(e, reservation)->member = place;
    return HF_OK;
}

void bundle_join(struct hold_engine *e, const struct hold_command *c,
                 uint32_t reservation)
{
    enum hf_status status =
        c->bundle.len == 0 ? HF_OK : join(e, c->bundle, reservation);

    assert(status == HF_OK); /* promised */
    (void)status;
}

void bundle_leave(struct hold_engine *e, uint32_t reservation)
{
    uint32_t place = reservation_at(e, reservation)->member;

    if (place == 0)
        return; /* as a rule */
    uint32_t number = member_at(e, place)->bundle;
    struct bundle *bundle = bundle_edit(e, number);
    list_remove(MEMBERS(e), &bundle->members, place);
    hf_slab_give(&e->members, place);
    reservation_edit(e, reservation)->member = 0;
    if (--bundle->count == 0)
        hf_index_remove(&e->bundles, number);
}

/* ---- GROUP CONFIRM and GROUP CANCEL. ---- */

/* A SHORT names no more products, so that it can be kept for a REQ: each with
 * three numbers, and the first of them twice. */
#define SHORT_MAX   8u
#define SHORT_BYTES ((SHORT_MAX + 1) * (HOLD_SKU_MAX + 64))

/* Of each member a reason is kept. */
void bundle_end_need(struct hold_engine *e, const struct hold_command *c,
                     struct need *need)
{
    for (uint32_t i = 0; c->reason.len > 0 && i < HOLD_MEMBERS_MAX; i++)
        need_text(e, need, c->reason.len);
    need->reply_len += HOLD_ID_MAX; /* as a fact */
    if (c->kind == HOLD_GROUP_CONFIRM)
        need->reply_len += SHORT_BYTES;
}

static bool refuse_unknown(struct hold_engine *e, struct hf_bytes name)
{
    reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_GROUP, name);
    return true;
}

/* With the status that the first has that cannot be confirmed, or cancelled. */
static bool refuse_member(struct hold_engine *e, const struct reservation *r)
{
    struct hf_bytes id = hf_index_name(&e->reservations, r);

    if (r->status != RESERVATION_EXPIRED)
        return refuse_status(e, r, id);
    struct hf_buf *body = refuse(e, HOLD_EXPIRED, 2);
    reply_field_text(body, FIELD_ID, id);
    reply_field_number(body, FIELD_EXPIRES_MS,
                       (int64_t)((e->now_us - r->expires_us) / US_PER_MS));
    return true;
}

/* What all that a step ends may tell has its room: see out.c. */
static bool refuse_much(struct hold_engine *e, const struct bundle *bundle)
{
    return e->ended_members + bundle->count > HOLD_MEMBERS_MAX &&
           refuse_overload(e, "group-members", HOLD_MEMBERS_MAX);
}

/* The items of a member that is late, which are in the order of their skus. */
struct late {
    struct hf_bytes items;
    size_t at; /* of the item behind this one */
    struct hold_item item;
};

/* Moves the one at `i` down to its place in a heap, whose first one has the
 * first sku: a group may have 100 members of 128 items. */
static void sink(struct late *late, uint32_t count, uint32_t i)
{
    struct late one = late[i];

    for (uint32_t below; (below = 2 * i + 1) < count; i = below) {
        if (below + 1 < count && hf_bytes_compare(late[below + 1].item.sku,
                                                  late[below].item.sku) < 0)
            below++;
        if (hf_bytes_compare(one.item.sku, late[below].item.sku) <= 0)
            break;
        late[i] = late[below];
    }
    late[i] = one;
}

static uint32_t find_late(struct hold_engine *e, const struct bundle *bundle,
                          struct late *out)
{
    uint32_t count = 0;

    for (uint32_t n = bundle->members.first; n != 0;
         n = member_at(e, n)->links.next) {
        const struct reservation *r =
            reservation_at(e, member_at(e, n)->reservation);
        if (r->status != RESERVATION_EXPIRED)
            continue;
        struct late *late = &out[count++];
        late->items = items_of(e, r);
        late->at = 0;
        (void)hold_next_item(late->items, &late->at, &late->item);
    }
    for (uint32_t i = count / 2; i > 0; i--)
        sink(out, count, i - 1);
    return count;
}

/* Takes the first sku of what is left of them off; how much of it all of them
 * want, which may be more than a product can have. */
static struct hold_item take_first(struct hold_engine *e, struct late *late,
                                   uint32_t *count)
{
    struct hold_item first = {.sku = late[0].item.sku, .quantity = 0};

    do {
        uint64_t room = (uint64_t)HOLD_STOCK_MAX + 1 - first.quantity;
        uint64_t wanted = late[0].item.quantity;
        first.quantity += wanted < room ? wanted : room;
        if (!hold_next_item(late[0].items, &late[0].at, &late[0].item))
            late[0] = late[--*count];
        if (*count > 0)
            sink(late, *count, 0);
        e->out.work++;
    } while (*count > 0 && hf_bytes_equal(late[0].item.sku, first.sku));
    return first;
}

/* Members in their time of grace: is there still enough for all of them? */
static bool refuse_late(struct hold_engine *e, const struct hold_command *c,
                        const struct bundle *bundle)
{
    struct shortage list[SHORT_MAX];
    struct late late[HOLD_MEMBERS_MAX];
    uint32_t left = find_late(e, bundle, late);
    uint32_t count = 0;

    while (left > 0) {
        struct hold_item item = take_first(e, late, &left);
        uint32_t number = hf_index_find(&e->products, item.sku);
        if (number == 0) {
            reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU, item.sku);
            return true;
        }
        const struct product *p = product_at(e, number);
        if (count == SHORT_MAX || !is_short(e, p, item.quantity, c))
            continue;
        if (item.quantity > HOLD_STOCK_MAX)
            item.quantity = HOLD_STOCK_MAX;
        list[count++] = (struct shortage){item.sku, item.quantity, available(p),
                                          p->waiting};
    }
    return count > 0 && refuse_shortages(e, list, count);
}

bool bundle_end_check(struct hold_engine *e, const struct hold_command *c,
                      struct target at)
{
    bool confirm = c->kind == HOLD_GROUP_CONFIRM;
    const struct reservation *first = NULL;
    bool has_late = false;
    uint32_t open = 0;

    if (at.number == 0)
        return refuse_unknown(e, c->name);
    const struct bundle *bundle = bundle_at(e, at.number);
    for (uint32_t n = bundle->members.first; n != 0;
         n = member_at(e, n)->links.next) {
        const struct reservation *r =
            reservation_at(e, member_at(e, n)->reservation);
        bool waits = r->status == RESERVATION_WAITING;
        bool late = confirm && reservation_has_grace(e, r);
        e->out.work++;
        has_late = has_late || late;
        if (r->status == RESERVATION_PENDING || (waits && !confirm) || late)
            open++;
        else if (first == NULL)
            first = r;
    }
    if (first != NULL && (confirm || open == 0))
        return refuse_member(e, first);
    return (has_late && refuse_late(e, c, bundle)) || refuse_much(e, bundle);
}

static void end_member(struct hold_engine *e, const struct hold_command *c,
                       uint32_t number)
{
    const struct reservation *r = reservation_at(e, number);
    bool confirm = c->kind == HOLD_GROUP_CONFIRM;

    if (r->status == RESERVATION_WAITING)
        buyer_drop(e, r->buyer);
    else if (r->status == RESERVATION_PENDING)
        reservation_finish(e, number, confirm, c->reason);
    else if (confirm)
        reservation_sell_late(e, number);
    else
        bundle_leave(e, number); /* it has expired */
}

void bundle_end(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    uint32_t count = bundle_at(e, at.number)->count;
    bool confirm = c->kind == HOLD_GROUP_CONFIRM;
    uint32_t ended = 0;

    for (uint32_t i = 0; i < count; i++) { /* each leaves; so does the group */
        uint32_t number =
            member_at(e, bundle_at(e, at.number)->members.first)->reservation;
        ended +=
            confirm || reservation_at(e, number)->status != RESERVATION_EXPIRED;
        end_member(e, c, number);
    }
    e->ended_members += count;
    reply_map(&e->body, 3);
    reply_field_text(&e->body, FIELD_GROUP, c->name);
    reply_field_text(&e->body, FIELD_STATUS,
                     hf_bytes_text(confirm ? "CONFIRMED" : "CANCELLED"));
    reply_field_number(&e->body, FIELD_COUNT, ended);
    waitlist_serve(e);
}

/* ---- GROUP SHOW. ---- */

/* The cursor is a position. */
void bundle_show(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->bundles, c->name);
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    struct hf_buf *body = &e->body;
    uint64_t at = 0;
    uint32_t shown = 0;

    if (number == 0) {
        refuse_unknown(e, c->name);
        return;
    }
    const struct bundle *bundle = bundle_at(e, number);
    reply_map(body, 4);
    reply_field_text(body, FIELD_GROUP, c->name);
    reply_field_number(body, FIELD_COUNT, bundle->count);
    reply_field(body, FIELD_RESERVATIONS);
    reply_list(body, 0);
    size_t count_at = body->len - 4;
    uint32_t n = bundle->members.first;
    for (; n != 0 && at < c->cursor; n = member_at(e, n)->links.next)
        at++;
    for (; n != 0 && shown < most; n = member_at(e, n)->links.next, shown++) {
        const struct reservation *r =
            reservation_at(e, member_at(e, n)->reservation);
        uint64_t left_us =
            r->status == RESERVATION_PENDING ? r->expires_us - e->now_us : 0;
        reply_map(body, 3);
        reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
        reply_field_text(body, FIELD_STATUS,
                         hf_bytes_text(reservation_status(r)));
        reply_field_number(body, FIELD_EXPIRES_MS,
                           (int64_t)(left_us / US_PER_MS));
    }
    e->out.work += at + shown;
    hf_put_u32(body->data + count_at, shown);
    reply_field_number(body, FIELD_CURSOR, n != 0 ? (int64_t)(at + shown) : 0);
}

/* ---- Images. ---- */

/* An entry of a group: its name, how many, and their ids in order. */
enum hf_status bundles_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->bundles);
         i++) {
        const struct bundle *bundle = hf_index_used(&e->bundles, i);
        if (bundle == NULL)
            continue;
        char *at = e->body.data;
        *at++ = 'U';
        at = hold_put_text(at, hf_index_name(&e->bundles, bundle));
        at = image_put(at, bundle->count);
        for (uint32_t n = bundle->members.first; n != 0;
             n = member_at(e, n)->links.next)
            at = hold_put_text(
                at,
                hf_index_name(&e->reservations,
                              reservation_at(e, member_at(e, n)->reservation)));
        status = walk_give(walk, at, 0);
    }
    return status;
}

enum hf_status bundle_load(struct hold_engine *e, struct reader *in)
{
    struct hf_bytes name = read_text(in);
    uint64_t count = read_number(in);
    enum hf_status status = HF_OK;

    if (in->bad || name.len == 0 || count == 0 || count > HOLD_MEMBERS_MAX ||
        hf_index_find(&e->bundles, name) != 0)
        return HF_CORRUPT;
    while (status == HF_OK && count-- > 0) {
        struct hf_bytes id = read_text(in);
        uint32_t number = in->bad ? 0 : hf_index_find(&e->reservations, id);
        if (number == 0 || reservation_at(e, number)->member != 0 ||
            reservation_at(e, number)->status == RESERVATION_CONFIRMED ||
            reservation_at(e, number)->status == RESERVATION_CANCELLED)
            return HF_CORRUPT;
        status = join(e, name, number);
    }
    return status;
}
