/* wait.c - who waits, and in which order.
 *
 * A queue is sorted by priority, then by age: that of the request, or of its
 * session for WOUNDWAIT, where juniors wait for seniors; owners of one session
 * by their names, as in is_senior(). With WAITDIE it is the other way round:
 * see rank_of().
 */
#include "base/little.h"
#include "hold/request.h"
#include "hold/tree.h"

static struct hf_bytes ticket_name(const char bytes[8])
{
    return hf_bytes(bytes, 8);
}

/* Session and owner, as one name; `out` has room. */
static struct hf_bytes holder_name(const struct hold_engine *e,
                                   uint32_t session, struct hf_bytes owner,
                                   char out[HOLDER_NAME_MAX])
{
    hf_put_u64(out, session == 0 ? 0 : session_at(e, session)->id);
    memcpy(out + 8, owner.data, owner.len);
    return hf_bytes(out, 8 + owner.len);
}

uint32_t holder_find(const struct hold_engine *e, uint32_t session,
                     struct hf_bytes owner)
{
    char name[HOLDER_NAME_MAX];

    if (hf_index_count(&e->holders) == 0)
        return 0;
    return hf_index_find(&e->holders, holder_name(e, session, owner, name));
}

static void holder_join(struct hold_engine *e, uint32_t number)
{
    struct waiter *waiter = waiter_edit(e, number);
    struct hf_bytes owner = hf_text_bytes(&e->texts, waiter->claim.owner);
    char name[HOLDER_NAME_MAX];

    waiter->holder = holder_find(e, waiter->claim.session, owner);
    if (waiter->holder == 0)
        waiter->holder = hf_index_add(
            &e->holders, holder_name(e, waiter->claim.session, owner, name));
    assert(waiter->holder != 0); /* promised */
    struct holder *holder = holder_edit(e, waiter->holder);
    uint32_t behind = holder->waiters.last;
    while (behind != 0 && waiter_at(e, behind)->order > waiter->order)
        behind = waiter_at(e, behind)->peers.prev;
    list_insert(PEERS(e), &holder->waiters, number, behind);
}

static void holder_leave(struct hold_engine *e, uint32_t number)
{
    uint32_t holder = waiter_at(e, number)->holder;

    list_remove(PEERS(e), &holder_edit(e, holder)->waiters, number);
    if (holder_at(e, holder)->waiters.first == 0)
        hf_index_remove(&e->holders, holder);
}

/* ---- The queue. ---- */

bool is_before(const struct hold_engine *e, const struct part *part,
               const struct wanted *wanted)
{
    const struct waiter *waiter = waiter_at(e, part->group);
    uint32_t rank = rank_of(waiter->flags);

    if (rank != wanted->rank)
        return rank < wanted->rank;
    if (waiter->age != wanted->age)
        return waiter->age < wanted->age;
    int owners = hf_bytes_compare(hf_text_bytes(&e->texts, waiter->claim.owner),
                                  wanted->owner);
    return owners != 0 ? owners < 0 : waiter->order < wanted->order;
}

uint32_t first_before(const struct lock *lock, const struct wanted *wanted)
{
    return wanted->mode == MODE_SHARED ? lock->writer : lock->queue.first;
}

bool is_blocked(const struct hold_engine *e, const struct lock *lock,
                const struct wanted *wanted)
{
    uint32_t first = first_before(lock, wanted);

    return first != 0 && is_before(e, part_at(e, first), wanted);
}

uint32_t queue_position(const struct hold_engine *e, const struct lock *lock,
                        const struct wanted *wanted)
{
    uint32_t last = lock->queue.last;
    uint32_t before = 0;

    if (last == 0 || is_before(e, part_at(e, last), wanted)) {
        before = lock->waiting;
    } else {
        for (uint32_t n = lock->queue.first;
             before < POSITION_MAX && is_before(e, part_at(e, n), wanted);
             n = part_at(e, n)->place.next)
            before++;
    }
    return before < POSITION_MAX ? before + 1 : POSITION_MAX;
}

struct wanted waiter_wants(const struct hold_engine *e,
                           const struct waiter *waiter, const struct part *part)
{
    return (struct wanted){
        .owner = hf_text_bytes(&e->texts, waiter->claim.owner),
        .session = waiter->claim.session,
        .permits = part->permits,
        .max = waiter->max,
        .mode = (enum lock_mode)part->mode,
        .tree = part->tree,
        .priority = part->priority,
        .rank = rank_of(waiter->flags),
        .age = waiter->age,
        .order = waiter->order,
    };
}

static void queue_join(struct hold_engine *e, uint32_t number)
{
    struct part *part = part_edit(e, number);
    struct lock *lock = lock_edit(e, part->lock);
    const struct waiter *waiter = waiter_at(e, part->group);
    struct wanted wanted = waiter_wants(e, waiter, part);
    uint32_t behind = lock->queue.last;

    while (behind != 0 && !is_before(e, part_at(e, behind), &wanted))
        behind = part_at(e, behind)->place.prev;
    list_insert(GRANTS(e), &lock->queue, number, behind);
    if (part->mode != MODE_SHARED &&
        (lock->writer == 0 || !is_before(e, part_at(e, lock->writer), &wanted)))
        lock->writer = number;
    lock->waiting++;
    if (part->mode == MODE_SHARED)
        lock->readers++;
    else
        e->tree_stops++;
    if (waiter->names > 1)
        lock->several++;
    if (part->tree)
        tree_queued(e, number);
    e->waited_parts++;
    e->waited_bytes += lock->named.name.len;
}

static void queue_leave(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    struct lock *lock = lock_edit(e, part->lock);

    if (lock->writer == number) {
        uint32_t next = part->place.next;
        while (next != 0 && part_at(e, next)->mode == MODE_SHARED)
            next = part_at(e, next)->place.next;
        lock->writer = next;
    }
    if (part->tree)
        tree_left(e, number);
    list_remove(GRANTS(e), &lock->queue, number);
    assert(lock->waiting > 0);
    lock->waiting--;
    if (part->mode == MODE_SHARED)
        lock->readers--;
    if (waiter_at(e, part->group)->names > 1)
        lock->several--;
    e->waited_parts--;
    e->waited_bytes -= lock->named.name.len;
}

/* ---- Waiters. ---- */

/* A new record under the next ticket. */
static uint32_t waiter_add(struct hold_engine *e)
{
    char ticket[8];

    hf_put_u64(ticket, ++e->seq);
    uint32_t number = hf_index_add(&e->waiters, ticket_name(ticket));
    assert(number != 0); /* promised */
    waiter_edit(e, number)->ticket = e->seq;
    return number;
}

void waiter_enter(struct hold_engine *e, uint32_t number)
{
    struct waiter *waiter = waiter_edit(e, number);

    for (uint32_t n = waiter->first; n != 0; n = part_at(e, n)->more)
        waiter->names++;
    for (uint32_t n = waiter->first; n != 0; n = part_at(e, n)->more) {
        part_edit(e, n)->waits = true;
        part_edit(e, n)->group = number;
        queue_join(e, n);
    }
    holder_join(e, number);
    e->serve_turns++;
    if (waiter->claim.session != 0)
        session_join(e, waiter->claim.session, waiter->first);
}

/* Notes what became of a wait, for each of its names. */
static void note(struct hold_engine *e, const struct waiter *waiter,
                 enum past what, enum past_why why)
{
    uint32_t n = e->past == NULL ? 0 : waiter->first;

    for (; n != 0; n = part_at(e, n)->more) {
        const struct lock *lock = lock_at(e, part_at(e, n)->lock);
        past_add(e, what, lock->named.hash, hf_index_name(&e->locks, lock),
                 hf_text_bytes(&e->texts, waiter->claim.owner), 0,
                 (enum lock_mode)part_at(e, n)->mode, part_at(e, n)->tree);
        past_say(e, why, hf_bytes("", 0));
    }
}

/* What a grant will need later: what was promised for the command is enough. */
enum hf_status waiter_promise(struct hold_engine *e,
                              const struct waiter *waiter)
{
    bool is_set = (waiter->flags & WAITER_IS_SET) != 0;

    if (is_set && hf_slab_promise(&e->sets.slab, 1) != HF_OK)
        return HF_NOMEM;
    return claim_promise(e, &waiter->claim, waiter->names);
}

void waiter_unpromise(struct hold_engine *e, const struct waiter *waiter)
{
    if ((waiter->flags & WAITER_IS_SET) != 0)
        hf_slab_unpromise(&e->sets.slab, 1);
    claim_unpromise(e, &waiter->claim, waiter->names);
}

void waiter_new(struct hold_engine *e, const struct hold_command *c,
                const struct wanted *wanted, uint32_t first)
{
    uint32_t number = waiter_add(e);
    struct waiter *waiter = waiter_edit(e, number);

    waiter->order = waiter->ticket;
    waiter->age = wanted->age;
    waiter->queued_us = e->now_us;
    waiter->deadline_us = (c->flags & HOLD_FOREVER) != 0
                              ? UINT64_MAX
                              : e->now_us + c->wait_ms * US_PER_MS;
    waiter->ttl_ms = c->ttl_ms;
    waiter->max = wanted->max;
    waiter->flags = c->flags | (c->item_count > 0 ? WAITER_IS_SET : 0);
    waiter->claim.session = wanted->session;
    waiter->claim.terms = claim_terms(e, c);
    keep_text(e, c->owner, &waiter->claim.owner);
    waiter->first = first;
    waiter_enter(e, number);
    due_add(e, DUE_WAITER, number, waiter->deadline_us, waiter->ticket);
    enum hf_status status = waiter_promise(e, waiter);
    assert(status == HF_OK);
    (void)status;
    note(e, waiter, PAST_QUEUED, WHY_PLAIN);
    e->out.code = HOLD_WAITING;
    e->out.ticket = waiter->ticket;
    e->waiter_added = number;
}

struct waiter waiter_leave(struct hold_engine *e, uint32_t number)
{
    hf_agenda_remove(&e->due, waiter_at(e, number)->due);
    struct waiter waiter = *waiter_at(e, number);

    if (waiter.claim.session != 0)
        session_leave(e, waiter.claim.session, waiter.first);
    holder_leave(e, number);
    for (uint32_t n = waiter.first; n != 0; n = part_at(e, n)->more)
        queue_leave(e, n);
    hf_index_remove(&e->waiters, number);
    return waiter;
}

/* It ends without a grant. */
static struct waiter waiter_remove(struct hold_engine *e, uint32_t number,
                                   enum past what, enum past_why why)
{
    note(e, waiter_at(e, number), what, why);
    struct waiter waiter = waiter_leave(e, number);
    uint32_t next;

    waiter_unpromise(e, &waiter);
    claim_drop(e, &waiter.claim);
    for (uint32_t n = waiter.first; n != 0; n = next) {
        next = part_at(e, n)->more;
        serve_later(e, part_at(e, n)->lock);
        serve_related(e, part_at(e, n)->lock, part_at(e, n)->tree);
        hf_slab_give(&e->parts, n);
    }
    return waiter;
}

void waiter_answer_end(struct hold_engine *e, uint32_t request)
{
    answer_end(e);
    const struct hold_answer *answer = &e->answers[e->out.answer_count - 1];
    if (request != 0)
        request_answer(e, request, answer->code, answer->body);
}

void waiter_time_out(struct hold_engine *e, uint32_t number)
{
    uint32_t first = waiter_at(e, number)->first;
    uint32_t lock = part_at(e, first)->lock;
    uint32_t position = list_position(GRANTS(e), first);
    struct waiter waiter = waiter_remove(e, number, PAST_TIMED_OUT, WHY_PLAIN);

    struct hf_buf *body = answer_begin(e, waiter.ticket, HOLD_TIMED_OUT);
    reply_map(body, 3);
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - waiter.queued_us) / US_PER_MS));
    reply_field_number(body, FIELD_WAITING, lock_at(e, lock)->waiting);
    reply_field_number(body, FIELD_POSITION, position);
    waiter_answer_end(e, waiter.request);
}

void waiter_lose(struct hold_engine *e, uint32_t number)
{
    uint64_t id = session_at(e, waiter_at(e, number)->claim.session)->id;
    struct waiter waiter =
        waiter_remove(e, number, PAST_WAIT_LOST, WHY_SESSION);

    struct hf_buf *body = answer_begin(e, waiter.ticket, HOLD_LOST);
    reply_map(body, 1);
    reply_field_number(body, FIELD_SESSION, (int64_t)id);
    waiter_answer_end(e, waiter.request);
}

/* Its REQ is forgotten: asked again, it gets the result, which has no room in
 * what is kept for it. */
void waiter_skip(struct hold_engine *e, uint32_t number, struct hf_bytes body)
{
    struct waiter waiter = waiter_remove(e, number, PAST_LEFT, WHY_DONE);

    (void)answer_begin(e, waiter.ticket, HOLD_DONE);
    e->answers[e->out.answer_count - 1].body = body;
    if (waiter.request != 0)
        request_drop(e, waiter.request);
}

void waiter_end(struct hold_engine *e, uint32_t number)
{
    if (waiter_at(e, number)->deadline_us <= e->now_us)
        waiter_time_out(e, number);
    else
        waiter_lose(e, number);
}

void waiter_expire(struct hold_engine *e, uint32_t number)
{
    waiter_end(e, number);
    serve_all(e);
}

void waiter_drop(struct hold_engine *e, uint32_t number)
{
    uint32_t request = waiter_at(e, number)->request;

    waiter_remove(e, number, PAST_LEFT, WHY_GONE);
    if (request != 0)
        request_drop(e, request);
}

uint32_t waiter_find(const struct hold_engine *e, uint64_t ticket)
{
    char bytes[8];

    hf_put_u64(bytes, ticket);
    return hf_index_find(&e->waiters, ticket_name(bytes));
}

/* The index finds a waiter by its ticket, so a new ticket needs a new record;
 * its parts keep their places. */
uint64_t waiter_move(struct hold_engine *e, struct request *request)
{
    uint32_t old_number = request->waiter;
    uint32_t number = waiter_add(e);
    struct waiter *old = waiter_edit(e, old_number);
    struct waiter *waiter = waiter_edit(e, number);
    struct hf_named named = waiter->named;
    uint64_t ticket = waiter->ticket;

    answer_begin(e, old->ticket, HOLD_MOVED);
    answer_end(e);
    hf_agenda_remove(&e->due, old->due);
    *waiter = *old;
    waiter->named = named;
    waiter->ticket = ticket;
    for (uint32_t n = waiter->first; n != 0; n = part_at(e, n)->more)
        part_edit(e, n)->group = number;
    list_replace(PEERS(e), &holder_edit(e, waiter->holder)->waiters, number);
    hf_index_remove(&e->waiters, old_number);
    due_add(e, DUE_WAITER, number, waiter->deadline_us, ticket);
    request->waiter = number;
    return ticket;
}

void drop_waiters(struct hold_engine *e)
{
    for (uint32_t i = 1; i < hf_index_top(&e->waiters); i++) {
        if (hf_index_used(&e->waiters, i) != NULL)
            waiter_drop(e, i);
    }
    serve_all(e);
}
