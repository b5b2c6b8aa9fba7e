/* lock.c - exclusive locks with a queue.
 *
 * A lock exists while it is held. Giving it back hands it to the first waiter
 * whose time is not over, in the same step, so nobody can slip in between:
 *
 *   held by A, queue B C D
 *     UNLOCK by A, or A's time is over
 *   held by B, queue C D          (new token)
 */
#include <assert.h>

#include "base/little.h"
#include "hold/state.h"

static struct hf_bytes lock_name(const struct hold_engine *e,
                                 const struct lock *lock)
{
    return hf_index_name(&e->locks, lock);
}

static bool owned_by(const struct hold_engine *e, const struct lock *lock,
                     struct hf_bytes owner)
{
    return hf_bytes_equal(hf_text_bytes(&e->texts, lock->owner), owner);
}

static int64_t left_ms(const struct hold_engine *e, uint64_t until_us)
{
    return until_us > e->now_us ? (int64_t)((until_us - e->now_us) / US_PER_MS)
                                : 0;
}

static bool is_held_with(const struct hold_engine *e,
                         const struct hold_command *c, struct target at)
{
    return at.number != 0 && lock_at(e, at.number)->token == c->token;
}

static bool refuse_token(struct hold_engine *e, const struct hold_command *c,
                         enum hold_code code)
{
    struct hf_buf *body = refuse(e, code, 2);

    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_number(body, FIELD_TOKEN, (int64_t)c->token);
    return true;
}

void lock_need(struct hold_engine *e, const struct hold_command *c,
               struct need *need)
{
    need_record(e, need, &e->locks, c->name.len);
    need_text(e, need, c->owner.len);
    need->waiter = c->wait_ms > 0;
    if (need->waiter)
        need_record(e, need, &e->waiters, sizeof(uint64_t));
    need->due = true;
    need->reply_len += HOLD_OWNER_MAX; /* of who holds it */
}

bool lock_check(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    if (at.number == 0)
        return hf_index_count(&e->locks) >= e->bounds.locks_max &&
               refuse_overload(e, "locks-max", e->bounds.locks_max);
    struct lock *lock = lock_at(e, at.number);
    if (owned_by(e, lock, c->owner))
        return lock->count == HOLD_COUNT_MAX &&
               refuse_overload(e, "count-max", HOLD_COUNT_MAX);
    if (c->wait_ms > 0)
        return lock->waiting >= e->bounds.waiters_max &&
               refuse_overload(e, "waiters-max", e->bounds.waiters_max);
    struct hf_buf *body = refuse(e, HOLD_BUSY, 4);
    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_text(body, FIELD_OWNER, hf_text_bytes(&e->texts, lock->owner));
    reply_field_number(body, FIELD_EXPIRES_MS, left_ms(e, lock->expires_us));
    reply_field_number(body, FIELD_WAITING, lock->waiting);
    return true;
}

static void reply_grant(struct hf_buf *body, const struct hold_engine *e,
                        const struct lock *lock, uint64_t queued_us)
{
    reply_map(body, 4);
    reply_field_number(body, FIELD_TOKEN, (int64_t)lock->token);
    reply_field_number(body, FIELD_SAFE_MS, left_ms(e, lock->expires_us));
    reply_field_number(body, FIELD_COUNT, lock->count);
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - queued_us) / US_PER_MS));
}

/* Makes `lock` a fresh hold; its owner is set by the caller. */
static void begin_hold(struct hold_engine *e, struct lock *lock,
                       uint64_t ttl_ms)
{
    lock->token = emit(e, EVENT_LOCK_GRANTED, lock_name(e, lock), 0);
    lock->acquired_us = e->now_us;
    lock->expires_us = e->now_us + ttl_ms * US_PER_MS;
    lock->count = 1;
}

static void reenter(struct hold_engine *e, struct lock *lock, uint64_t ttl_ms)
{
    emit(e, EVENT_LOCK_REENTERED, lock_name(e, lock), 0);
    lock->count++;
    lock->expires_us =
        max_u64(lock->expires_us, e->now_us + ttl_ms * US_PER_MS);
    hf_heap_change(&e->due, lock->due, lock->expires_us, lock->token);
}

static struct hf_bytes ticket_name(const char bytes[8])
{
    return hf_bytes(bytes, 8);
}

/* A new waiter record under the next ticket, not yet in a queue. */
static uint32_t waiter_add(struct hold_engine *e)
{
    char ticket[8];

    hf_put_u64(ticket, ++e->seq);
    uint32_t number = hf_index_add(&e->waiters, ticket_name(ticket));
    assert(number != 0); /* promised */
    waiter_at(e, number)->ticket = e->seq;
    return number;
}

/* Puts a new waiter at the end of a lock's queue. */
static void enqueue(struct hold_engine *e, uint32_t lock_number,
                    uint32_t number)
{
    struct lock *lock = lock_at(e, lock_number);

    waiter_at(e, number)->lock = lock_number;
    list_append(&e->waiters, &lock->queue, number);
    lock->waiting++;
}

static void join_queue(struct hold_engine *e, uint32_t lock_number,
                       const struct hold_command *c)
{
    uint32_t number = waiter_add(e);
    struct waiter *waiter = waiter_at(e, number);

    waiter->queued_us = e->now_us;
    waiter->deadline_us = e->now_us + c->wait_ms * US_PER_MS;
    waiter->ttl_ms = c->ttl_ms;
    hf_texts_put(&e->texts, c->owner, c->owner.len, &waiter->owner);
    enqueue(e, lock_number, number);
    due_add(e, DUE_WAITER, number, waiter->deadline_us, waiter->ticket);
    e->out.code = HOLD_WAITING;
    e->out.ticket = waiter->ticket;
    e->waiter_added = number;
}

void lock_take(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint32_t number = at.number;

    if (number == 0) {
        number = hf_index_add_hashed(&e->locks, at.hash, c->name);
        assert(number != 0); /* promised */
        struct lock *lock = lock_at(e, number);
        hf_texts_put(&e->texts, c->owner, c->owner.len, &lock->owner);
        begin_hold(e, lock, c->ttl_ms);
        due_add(e, DUE_LOCK, number, lock->expires_us, lock->token);
    } else if (owned_by(e, lock_at(e, number), c->owner)) {
        reenter(e, lock_at(e, number), c->ttl_ms);
    } else {
        join_queue(e, number, c);
        return;
    }
    reply_grant(&e->body, e, lock_at(e, number), e->now_us);
}

/* Takes the waiter out of queue, heap and index; its owner text is the
 * caller's now. */
static struct hf_text waiter_remove(struct hold_engine *e, uint32_t number)
{
    struct waiter *waiter = waiter_at(e, number);
    struct lock *lock = lock_at(e, waiter->lock);
    struct hf_text owner = waiter->owner;

    list_remove(&e->waiters, &lock->queue, number);
    assert(lock->waiting > 0);
    lock->waiting--;
    hf_heap_remove(&e->due, waiter->due);
    hf_index_remove(&e->waiters, number);
    return owner;
}

/* Keeps the answer just written for the waiter's REQ, if it had one. */
static void store_answer(struct hold_engine *e, uint32_t request)
{
    answer_end(e);
    const struct hold_answer *answer = &e->answers[e->out.answer_count - 1];
    if (request != 0)
        request_answer(e, request, answer->code, answer->body);
}

void waiter_time_out(struct hold_engine *e, uint32_t number)
{
    struct waiter waiter = *waiter_at(e, number);

    hf_texts_drop(&e->texts, waiter_remove(e, number));
    struct hf_buf *body = answer_begin(e, waiter.ticket, HOLD_TIMED_OUT);
    reply_map(body, 2);
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - waiter.queued_us) / US_PER_MS));
    reply_field_number(body, FIELD_WAITING, lock_at(e, waiter.lock)->waiting);
    store_answer(e, waiter.request);
}

void waiter_drop(struct hold_engine *e, uint32_t number)
{
    uint32_t request = waiter_at(e, number)->request;

    hf_texts_drop(&e->texts, waiter_remove(e, number));
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
 * it takes over the old one's place in the queue. */
uint64_t waiter_move(struct hold_engine *e, struct request *request)
{
    uint32_t old_number = request->waiter;
    uint32_t number = waiter_add(e);
    struct waiter *old = waiter_at(e, old_number);
    struct waiter *waiter = waiter_at(e, number);
    struct lock *lock = lock_at(e, old->lock);
    struct hf_named named = waiter->listed.named;
    uint64_t ticket = waiter->ticket;

    answer_begin(e, old->ticket, HOLD_MOVED);
    answer_end(e);
    hf_heap_remove(&e->due, old->due);
    *waiter = *old;
    waiter->listed.named = named;
    waiter->ticket = ticket;
    list_replace(&e->waiters, &lock->queue, number);
    hf_index_remove(&e->waiters, old_number);
    due_add(e, DUE_WAITER, number, waiter->deadline_us, ticket);
    request->waiter = number;
    return ticket;
}

/* Answers the first waiter, who holds the lock now. */
static void answer_grant(struct hold_engine *e, const struct lock *lock,
                         const struct waiter *waiter)
{
    struct hf_buf *body = answer_begin(e, waiter->ticket, HOLD_OK);

    reply_grant(body, e, lock, waiter->queued_us);
    store_answer(e, waiter->request);
}

/* The holder is gone: the lock goes to the first waiter in time, and to the
 * waiters of the same owner right behind it, as re-entries. */
static void pass_on(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_at(e, number);

    hf_texts_drop(&e->texts, lock->owner);
    while (lock->queue.first != 0 &&
           waiter_at(e, lock->queue.first)->deadline_us <= e->now_us)
        waiter_time_out(e, lock->queue.first);
    if (lock->queue.first == 0) {
        hf_heap_remove(&e->due, lock->due);
        hf_index_remove(&e->locks, number);
        return;
    }
    struct waiter waiter = *waiter_at(e, lock->queue.first);
    lock->owner = waiter_remove(e, lock->queue.first);
    begin_hold(e, lock, waiter.ttl_ms);
    hf_heap_change(&e->due, lock->due, lock->expires_us, lock->token);
    answer_grant(e, lock, &waiter);
    while (lock->queue.first != 0) {
        waiter = *waiter_at(e, lock->queue.first);
        if (waiter.deadline_us <= e->now_us ||
            !owned_by(e, lock, hf_text_bytes(&e->texts, waiter.owner)))
            break;
        hf_texts_drop(&e->texts, waiter_remove(e, lock->queue.first));
        reenter(e, lock, waiter.ttl_ms);
        answer_grant(e, lock, &waiter);
    }
}

bool unlock_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    return !is_held_with(e, c, at) && refuse_token(e, c, HOLD_NOTHELD);
}

void lock_give(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    struct lock *lock = lock_at(e, at.number);

    assert(lock->token == c->token);
    emit(e, EVENT_LOCK_RELEASED, lock_name(e, lock), 0);
    if (--lock->count == 0)
        emit_age(e, lock->acquired_us);
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_REMAINING, lock->count);
    if (lock->count == 0)
        pass_on(e, at.number);
}

bool renew_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    return !is_held_with(e, c, at) && refuse_token(e, c, HOLD_LOST);
}

void lock_renew(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    struct lock *lock = lock_at(e, at.number);

    emit(e, EVENT_LOCK_RENEWED, lock_name(e, lock), 0);
    lock->expires_us = e->now_us + c->ttl_ms * US_PER_MS;
    hf_heap_change(&e->due, lock->due, lock->expires_us, lock->token);
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_SAFE_MS, (int64_t)c->ttl_ms);
}

void lock_expire(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_at(e, number);

    assert(lock->expires_us <= e->now_us);
    emit(e, EVENT_LOCK_EXPIRED, lock_name(e, lock),
         e->now_us - lock->expires_us);
    emit_age(e, lock->acquired_us);
    pass_on(e, number);
}

bool lock_is_over(const struct hold_engine *e, uint32_t number)
{
    return number != 0 && lock_at(e, number)->expires_us <= e->now_us;
}

void lock_bound_safe(struct hold_engine *e, const struct hold_command *c)
{
    struct hf_bytes body = hf_buf_bytes(&e->body);
    uint32_t number = hf_index_find(&e->locks, c->name);
    uint64_t token = c->kind == HOLD_RENEW
                         ? c->token
                         : (uint64_t)reply_get_number(body, FIELD_TOKEN);
    int64_t safe_ms = 0;

    if (number != 0 && lock_at(e, number)->token == token)
        safe_ms = left_ms(e, lock_at(e, number)->expires_us);
    if (safe_ms < reply_get_number(body, FIELD_SAFE_MS))
        reply_set_number(&e->body, FIELD_SAFE_MS, safe_ms);
}

static void reply_lock(struct hf_buf *body, const struct hold_engine *e,
                       const struct lock *lock, uint32_t more)
{
    reply_map(body, 6 + more);
    reply_field_text(body, FIELD_NAME, lock_name(e, lock));
    reply_field_text(body, FIELD_OWNER, hf_text_bytes(&e->texts, lock->owner));
    reply_field_number(body, FIELD_TOKEN, (int64_t)lock->token);
    reply_field_number(body, FIELD_EXPIRES_MS, left_ms(e, lock->expires_us));
    reply_field_number(body, FIELD_COUNT, lock->count);
    reply_field_number(body, FIELD_WAITING, lock->waiting);
}

void lock_info(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->locks, c->name);

    assert(!lock_is_over(e, number));
    if (number == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_NAME, c->name);
        return;
    }
    struct lock *lock = lock_at(e, number);
    reply_lock(&e->body, e, lock, 1);
    reply_field_number(&e->body, FIELD_HELD_MS,
                       (int64_t)((e->now_us - lock->acquired_us) / US_PER_MS));
}

static void show_lock(struct hold_engine *e, const void *record)
{
    reply_lock(&e->body, e, record, 0);
}

void lock_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_LOCKS, &e->locks, show_lock);
}

enum hf_status lock_loaded(struct hold_engine *e, uint32_t number,
                           uint64_t link)
{
    const struct lock *lock = lock_at(e, number);

    (void)link;
    e->load_lock = number;
    return due_load(e, DUE_LOCK, number, lock->expires_us, lock->token);
}

/* Waiters follow their lock, whose token each of them has. */
enum hf_status waiter_loaded(struct hold_engine *e, uint32_t number,
                             uint64_t link)
{
    struct waiter *waiter = waiter_at(e, number);

    if (e->load_lock == 0 || lock_at(e, e->load_lock)->token != link)
        return HF_CORRUPT;
    if (out_reserve(e, hf_index_count(&e->waiters) + 2) != HF_OK)
        return HF_NOMEM;
    enqueue(e, e->load_lock, number);
    return due_load(e, DUE_WAITER, number, waiter->deadline_us, waiter->ticket);
}

uint64_t waiter_link(const struct hold_engine *e, const void *record)
{
    return lock_at(e, ((const struct waiter *)record)->lock)->token;
}
