/* waitlist.c - who waits for stock, and who is next. */
#include "hold/waitlist.h"

#include "base/little.h"
#include "hold/image_parts.h"
#include "hold/quota.h"
#include "hold/request.h"
#include "hold/reserve.h"
#include "hold/tree.h"

/* How they are listed. */
#define BUYERS(e)  CHAIN(e->buyers.slab, buyer, listed.links)
#define DEMANDS(e) CHAIN(e->demands, demand, place)

#define TICKET_BYTES 8u

/* To serve one counts as so many looks, for each of its products. */
#define SERVE_STEPS 8u

/* ---- The queues. ---- */

/* Is the buyer before one of that priority and age? */
static bool is_first(const struct buyer *buyer, uint32_t priority,
                     uint64_t order)
{
    return buyer->priority != priority ? buyer->priority < priority
                                       : buyer->order < order;
}

bool waitlist_blocks(const struct hold_engine *e, const struct product *product,
                     const struct hold_command *c)
{
    const struct demand *first = demand_at(e, product->queue.first);

    return !hold_may_queue(c) ||
           is_first(buyer_at(e, first->buyer), hold_priority(c), UINT64_MAX);
}

bool is_any_short(const struct hold_engine *e, const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t number = hf_index_find(&e->products, c->items[i].sku);
        if (is_short(e, product_at(e, number), c->items[i].quantity, c))
            return true;
    }
    return false;
}

static void queue_join(struct hold_engine *e, uint32_t number)
{
    const struct demand *demand = demand_at(e, number);
    const struct buyer *buyer = buyer_at(e, demand->buyer);
    struct product *product = product_edit(e, demand->product);
    uint32_t behind = product->queue.last;

    while (behind != 0 && !is_first(buyer_at(e, demand_at(e, behind)->buyer),
                                    buyer->priority, buyer->order))
        behind = demand_at(e, behind)->place.prev;
    list_insert(DEMANDS(e), &product->queue, number, behind);
    product->waiting++;
}

/* ---- Coming. ---- */

/* What a wait for a reservation takes of the room for what is told. */
struct told_room waitlist_room(const struct hold_engine *e,
                               const struct reservation *r)
{
    struct hf_bytes items = hf_text_bytes(&e->texts, r->items);
    struct hold_item item;
    size_t count = 0;

    for (size_t at = 0; hold_next_item(items, &at, &item);)
        count++;
    return (struct told_room){
        .events = 1 + count,
        .event_bytes = r->listed.named.name.len + r->owner.len +
                       2 * (size_t)items.len + HOLD_ID_MAX, /* of a group */
        .answer_bytes = promise_reservation(items.len, count)};
}

size_t buyer_answer_bytes(const struct hold_engine *e, uint32_t number)
{
    return waitlist_room(e, reservation_at(e, buyer_at(e, number)->reservation))
        .answer_bytes;
}

struct told_room waitlist_sums(const struct hold_engine *e)
{
    uint32_t left = hf_index_count(&e->buyers);
    struct told_room sums = {0};

    for (uint32_t n = e->waitlist.first; n != 0 && left-- > 0;
         n = buyer_at(e, n)->listed.links.next) {
        struct told_room room =
            waitlist_room(e, reservation_at(e, buyer_at(e, n)->reservation));
        sums.events += room.events;
        sums.event_bytes += room.event_bytes;
        sums.answer_bytes += room.answer_bytes;
    }
    return sums;
}

void waitlist_need(struct hold_engine *e, const struct hold_command *c,
                   size_t items_len, struct need *need)
{
    size_t id_len = c->name.len > 0 ? c->name.len : HOLD_ID_MADE_BYTES;

    need_record(e, need, &e->buyers, TICKET_BYTES);
    for (uint32_t i = 0; i < c->item_count; i++)
        need_item(need, &e->demands);
    need->waiter = true;
    need->names = 1 + c->item_count; /* see struct told_room */
    need->name_bytes = id_len + c->owner.len + 2 * items_len + HOLD_ID_MAX;
    need->answer_bytes = need->reply_len;
}

bool waitlist_refuse(struct hold_engine *e, const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t number = hf_index_find(&e->products, c->items[i].sku);
        if (product_at(e, number)->waiting >= e->bounds.waiters_max)
            return refuse_overload(e, "waiters-max", e->bounds.waiters_max);
    }
    return false;
}

/* A new record under the ticket; 0 without memory. */
static uint32_t buyer_add(struct hold_engine *e, uint64_t ticket)
{
    char name[TICKET_BYTES];

    hf_put_u64(name, ticket);
    uint32_t number = hf_index_add(&e->buyers, hf_bytes(name, sizeof name));
    if (number != 0)
        buyer_edit(e, number)->ticket = ticket;
    return number;
}

/* Puts it behind all others, and its demands, which are promised, into their
 * queues. */
static void buyer_enter(struct hold_engine *e, uint32_t number)
{
    struct buyer *buyer = buyer_edit(e, number);
    struct reservation *r = reservation_edit(e, buyer->reservation);
    struct told_room room = waitlist_room(e, r);
    struct hf_bytes items = hf_text_bytes(&e->texts, r->items);
    struct hold_item item;
    uint32_t last = 0;

    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        uint32_t n = hf_slab_take(&e->demands);
        assert(n != 0); /* promised */
        struct demand *demand = demand_edit(e, n);
        demand->product = hf_index_find(&e->products, item.sku);
        demand->buyer = number;
        demand->quantity = item.quantity;
        *(last == 0 ? &buyer->first : &demand_edit(e, last)->more) = n;
        last = n;
        queue_join(e, n);
    }
    list_append(BUYERS(e), &e->waitlist, number);
    r->status = RESERVATION_WAITING;
    r->buyer = number;
    e->waited_parts += room.events;
    e->waited_bytes += room.event_bytes;
    e->waited_answers += room.answer_bytes;
}

void waitlist_queue(struct hold_engine *e, const struct hold_command *c,
                    uint32_t reservation, uint64_t ttl_ms)
{
    uint32_t number = buyer_add(e, ++e->seq);

    assert(number != 0); /* promised */
    struct buyer *buyer = buyer_edit(e, number);
    buyer->order = buyer->ticket;
    buyer->queued_us = e->now_us;
    buyer->joined = c->kind == HOLD_WAITLIST_JOIN;
    uint64_t stay_ms = buyer->joined ? c->delay_ms : c->wait_ms;
    if (stay_ms == 0)
        stay_ms = HOLD_TTL_MAX_MS;
    buyer->deadline_us = e->now_us + stay_ms * US_PER_MS;
    buyer->ttl_ms = ttl_ms;
    buyer->priority = hold_priority(c);
    buyer->reservation = reservation;
    struct reservation *r = reservation_edit(e, reservation);
    r->created_us = e->now_us;
    r->seq = buyer->order;
    buyer_enter(e, number);
    quota_count(e, r);
    due_add(e, DUE_BUYER, number, buyer->deadline_us, buyer->ticket);
    if (buyer->joined) {
        reply_joined(e, number);
        return;
    }
    e->out.code = HOLD_WAITING;
    e->out.ticket = buyer->ticket;
    e->waiter_added = number | WAITS_FOR_STOCK;
}

/* ---- Going. ---- */

/* It waits no more; its reservation is the caller's. */
static struct buyer buyer_leave(struct hold_engine *e, uint32_t number)
{
    hf_agenda_remove(&e->due, buyer_at(e, number)->due);
    struct buyer buyer = *buyer_at(e, number);
    struct told_room room =
        waitlist_room(e, reservation_at(e, buyer.reservation));
    uint32_t next;

    for (uint32_t n = buyer.first; n != 0; n = next) {
        uint32_t place = demand_at(e, n)->product;
        struct product *product = product_edit(e, place);
        next = demand_at(e, n)->more;
        list_remove(DEMANDS(e), &product->queue, n);
        hf_slab_give(&e->demands, n);
        assert(product->waiting > 0);
        product->waiting--;
        waitlist_later(e, place);
    }
    list_remove(BUYERS(e), &e->waitlist, number);
    reservation_edit(e, buyer.reservation)->buyer = 0;
    hf_index_remove(&e->buyers, number);
    e->waited_parts -= room.events;
    e->waited_bytes -= room.event_bytes;
    e->waited_answers -= room.answer_bytes;
    return buyer;
}

void buyer_time_out(struct hold_engine *e, uint32_t number)
{
    uint32_t first = buyer_at(e, number)->first;
    uint32_t place = demand_at(e, first)->product;
    uint32_t position = list_position(DEMANDS(e), first);
    struct buyer buyer = buyer_leave(e, number);
    const struct product *product = product_at(e, place);

    reservation_remove(e, buyer.reservation);
    if (buyer.joined)
        return;
    struct hf_buf *body = answer_begin(e, buyer.ticket, HOLD_TIMED_OUT);
    reply_map(body, 4);
    reply_field_text(body, FIELD_SKU, hf_index_name(&e->products, product));
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - buyer.queued_us) / US_PER_MS));
    reply_field_number(body, FIELD_WAITING, product->waiting);
    reply_field_number(body, FIELD_POSITION, position);
    waiter_answer_end(e, buyer.request);
}

void buyer_drop(struct hold_engine *e, uint32_t number)
{
    struct buyer buyer = buyer_leave(e, number);

    reservation_remove(e, buyer.reservation);
    if (buyer.request != 0)
        request_drop(e, buyer.request);
}

void buyer_expire(struct hold_engine *e, uint32_t number)
{
    buyer_time_out(e, number);
    waitlist_serve(e);
}

uint32_t buyer_find(const struct hold_engine *e, uint64_t ticket)
{
    char name[TICKET_BYTES];

    hf_put_u64(name, ticket);
    uint32_t number = hf_index_find(&e->buyers, hf_bytes(name, sizeof name));
    return number == 0 || buyer_at(e, number)->joined ? 0 : number;
}

/* A new ticket needs a new record; its demands keep their places. */
uint64_t buyer_move(struct hold_engine *e, struct request *request)
{
    uint32_t old_number = request->waiter & ~WAITS_FOR_STOCK;
    uint32_t number = buyer_add(e, ++e->seq);
    assert(number != 0); /* promised */
    struct buyer *old = buyer_edit(e, old_number);
    struct buyer *buyer = buyer_edit(e, number);
    struct hf_named named = buyer->listed.named;
    uint64_t ticket = buyer->ticket;

    answer_begin(e, old->ticket, HOLD_MOVED);
    answer_end(e);
    hf_agenda_remove(&e->due, old->due);
    *buyer = *old;
    buyer->listed.named = named;
    buyer->ticket = ticket;
    for (uint32_t n = buyer->first; n != 0; n = demand_at(e, n)->more)
        demand_edit(e, n)->buyer = number;
    list_replace(BUYERS(e), &e->waitlist, number);
    reservation_edit(e, buyer->reservation)->buyer = number;
    hf_index_remove(&e->buyers, old_number);
    due_add(e, DUE_BUYER, number, buyer->deadline_us, ticket);
    request->waiter = number | WAITS_FOR_STOCK;
    return ticket;
}

void drop_buyers(struct hold_engine *e)
{
    uint32_t next;

    for (uint32_t n = e->waitlist.first; n != 0; n = next) {
        next = buyer_at(e, n)->listed.links.next;
        if (!buyer_at(e, n)->joined)
            buyer_drop(e, n);
    }
    waitlist_serve(e);
}

void flush_buyers(struct hold_engine *e)
{
    for (uint32_t n = e->waitlist.first; n != 0;
         n = buyer_at(e, n)->listed.links.next) {
        if (buyer_at(e, n)->joined)
            continue;
        answer_begin(e, buyer_at(e, n)->ticket, HOLD_NOTHELD);
        answer_end(e);
    }
    hf_slab_clear(&e->demands);
    e->waitlist = (struct list){0, 0};
    e->hungry = (struct list){0, 0};
    e->waited_answers = 0;
}

/* ---- Who is next. ---- */

void waitlist_list(struct hold_engine *e, uint32_t number)
{
    struct product *product = product_edit(e, number);

    if (product->is_listed)
        return;
    product->is_listed = true;
    product->next = 0;
    if (e->hungry.last == 0)
        e->hungry.first = number;
    else
        product_edit(e, e->hungry.last)->next = number;
    e->hungry.last = number;
}

/* Is it first everywhere, and everything is there? */
static bool is_ready(struct hold_engine *e, const struct buyer *buyer)
{
    if (buyer->deadline_us <= e->now_us)
        return false; /* it is ended in its turn, which serves again */
    for (uint32_t n = buyer->first; n != 0; n = demand_at(e, n)->more) {
        const struct demand *demand = demand_at(e, n);
        const struct product *product = product_at(e, demand->product);
        e->out.work++;
        if (product->queue.first != n || available(product) < demand->quantity)
            return false;
    }
    return true;
}

/* It leaves its queues, which are looked at again, and has its reservation. */
static void serve_buyer(struct hold_engine *e, uint32_t number)
{
    struct buyer buyer = buyer_leave(e, number);

    reservation_begin(e, buyer.reservation,
                      buyer.joined ? EVENT_OFFERED : EVENT_RESERVED,
                      buyer.ttl_ms);
    if (buyer.joined)
        return; /* the event is the offer */
    struct hf_buf *body = answer_begin(e, buyer.ticket, HOLD_OK);
    write_reservation(e, body, reservation_at(e, buyer.reservation), 0);
    waiter_answer_end(e, buyer.request);
}

void waitlist_serve_listed(struct hold_engine *e)
{
    while (e->hungry.first != 0) {
        struct product *product = product_edit(e, e->hungry.first);
        e->hungry.first = product->next;
        if (e->hungry.first == 0)
            e->hungry.last = 0;
        product->is_listed = false;
        if (product->waiting == 0)
            continue;
        uint32_t number = demand_at(e, product->queue.first)->buyer;
        bool ready = is_ready(e, buyer_at(e, number));
        if (ready)
            serve_buyer(e, number);
        count_walked(e, ready ? SERVE_STEPS : 1, 0);
    }
}

/* ---- Those who are not connected. ---- */

void reply_joined(struct hold_engine *e, uint32_t number)
{
    const struct buyer *buyer = buyer_at(e, number);
    const struct reservation *r = reservation_at(e, buyer->reservation);
    struct hf_buf *body = &e->body;

    reply_map(body, 3);
    reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(body, FIELD_STATUS, hf_bytes_text("WAITING"));
    reply_field_number(body, FIELD_POSITION,
                       list_position(DEMANDS(e), buyer->first));
}

bool waitlist_leave_check(struct hold_engine *e, const struct hold_command *c,
                          struct target at)
{
    const struct reservation *r =
        at.number == 0 ? NULL : reservation_at(e, at.number);

    if (r != NULL && r->status != RESERVATION_WAITING)
        return refuse_status(e, r, c->name);
    const struct buyer *buyer = r == NULL ? NULL : buyer_at(e, r->buyer);
    if (buyer == NULL || !buyer->joined ||
        demand_at(e, buyer->first)->product !=
            hf_index_find(&e->products, c->note))
        return refuse_id(e, HOLD_NOTFOUND, c->name);
    return false;
}

void waitlist_leave(struct hold_engine *e, const struct hold_command *c,
                    struct target at)
{
    (void)c;
    buyer_drop(e, reservation_at(e, at.number)->buyer);
    waitlist_serve(e);
}

/* The longest entry of the list. */
#define SHOWN_BYTES (HOLD_ID_MAX + HOLD_OWNER_MAX + 128u)

static void show_demand(struct hold_engine *e, uint32_t number,
                        uint64_t position)
{
    const struct demand *demand = demand_at(e, number);
    const struct buyer *buyer = buyer_at(e, demand->buyer);
    const struct reservation *r = reservation_at(e, buyer->reservation);
    struct hf_buf *body = &e->body;

    reply_map(body, 7);
    reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(body, FIELD_OWNER, hf_text_bytes(&e->texts, r->owner));
    reply_field_number(body, FIELD_QUANTITY, (int64_t)demand->quantity);
    reply_field_number(body, FIELD_PRIORITY, buyer->priority);
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - buyer->queued_us) / US_PER_MS));
    reply_field_number(body, FIELD_POSITION, (int64_t)position);
    reply_field_number(body, FIELD_CONNECTED, !buyer->joined);
}

/* The cursor is the position to go on with. */
void waitlist_show(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t product = hf_index_find(&e->products, c->name);
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    struct hf_buf *body = &e->body;
    uint64_t position = 1;
    uint32_t count = 0;

    if (product == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU, c->name);
        return;
    }
    reply_map(body, 2);
    reply_field(body, FIELD_WAITERS);
    reply_list(body, 0);
    size_t count_at = body->len - 4;
    uint32_t n = product_at(e, product)->queue.first;
    for (; n != 0 && position < c->cursor; n = demand_at(e, n)->place.next)
        position++;
    for (; n != 0 && count < most && count < HOLD_LIST_MAX &&
           body->cap - body->len >= 2 * SHOWN_BYTES;
         n = demand_at(e, n)->place.next) {
        show_demand(e, n, position++);
        count++;
    }
    e->out.work += position;
    hf_put_u32(body->data + count_at, count);
    reply_field_number(body, FIELD_CURSOR, n != 0 ? (int64_t)position : 0);
}

/* ---- Images. ---- */

/* Oldest first, as they are listed when they are loaded. */
enum hf_status buyers_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;
    uint64_t place = 0;

    for (uint32_t n = e->waitlist.first; status == HF_OK && n != 0;
         n = buyer_at(e, n)->listed.links.next) {
        const struct buyer *buyer = buyer_at(e, n);
        char *at = e->body.data;
        *at++ = 'B';
        at = image_put(at, buyer->ticket);
        at = image_put(at, buyer->order);
        at = image_put(at, buyer->queued_us);
        at = image_put(at, buyer->deadline_us);
        at = image_put(at, buyer->ttl_ms);
        at = image_put(at, buyer->priority);
        at = image_put(at, buyer->joined);
        at = hold_put_text(
            at, hf_index_name(&e->reservations,
                              reservation_at(e, buyer->reservation)));
        status = walk_give(walk, at, ++place);
    }
    return status;
}

/* Are all its products there, and do not too many wait for one? */
static bool are_products_there(const struct hold_engine *e,
                               const struct reservation *r, uint32_t *count)
{
    struct hf_bytes items = hf_text_bytes(&e->texts, r->items);
    struct hold_item item;

    *count = 0;
    for (size_t at = 0; hold_next_item(items, &at, &item); ++*count) {
        uint32_t number = hf_index_find(&e->products, item.sku);
        if (number == 0 || product_at(e, number)->waiting > HOLD_QUEUE_MAX)
            return false;
    }
    return true;
}

enum hf_status waitlist_reserve(struct hold_engine *e,
                                const struct reservation *r, uint32_t count)
{
    struct told_room room = waitlist_room(e, r);

    if (hf_slab_promise(&e->demands, count) != HF_OK)
        return HF_NOMEM;
    hf_slab_unpromise(&e->demands, count);
    if (out_reserve(
            e, hf_index_count(&e->waiters) + hf_index_count(&e->buyers) + 2,
            e->waited_answers + room.answer_bytes) != HF_OK)
        return HF_NOMEM;
    return out_reserve_events(e, e->waited_parts + room.events,
                              e->waited_bytes + room.event_bytes);
}

enum hf_status buyer_load(struct hold_engine *e, struct reader *in)
{
    uint64_t numbers[7];
    uint32_t count;

    for (int i = 0; i < 7; i++)
        numbers[i] = read_number(in);
    uint32_t reservation = hf_index_find(&e->reservations, read_text(in));
    if (in->bad || reservation == 0 || numbers[5] > HOLD_PRIORITY_MAX)
        return HF_CORRUPT;
    struct reservation *r = reservation_edit(e, reservation);
    uint32_t last = e->waitlist.last;
    if (r->status != RESERVATION_WAITING || r->buyer != 0 ||
        (last != 0 && buyer_at(e, last)->order >= numbers[1]) ||
        buyer_find(e, numbers[0]) != 0 || !are_products_there(e, r, &count))
        return HF_CORRUPT;
    uint32_t number = buyer_add(e, numbers[0]);
    if (number == 0 || waitlist_reserve(e, r, count) != HF_OK)
        return HF_NOMEM;
    struct buyer *buyer = buyer_edit(e, number);
    buyer->order = numbers[1];
    buyer->queued_us = numbers[2];
    buyer->deadline_us = numbers[3];
    buyer->ttl_ms = numbers[4];
    buyer->priority = (uint32_t)numbers[5];
    buyer->joined = numbers[6] != 0;
    buyer->reservation = reservation;
    r->seq = buyer->order; /* earlier builds wrote 0 */
    buyer_enter(e, number);
    return due_load(e, DUE_BUYER, number, buyer->deadline_us, buyer->ticket);
}
