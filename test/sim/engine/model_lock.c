/* model_lock.c - locks and fences in the model. */
#include <assert.h>

#include "sim/engine/model.h"

struct model_lock *model_find_lock(struct model *model, struct hf_bytes name)
{
    for (size_t i = 0; i < model->lock_count; i++) {
        if (model_is(&model->locks[i].name, name))
            return &model->locks[i];
    }
    return NULL;
}

size_t model_waiting(const struct model *model, struct hf_bytes name)
{
    size_t count = 0;

    for (size_t i = 0; i < model->waiter_count; i++)
        count += model_is(&model->waiters[i].lock, name);
    return count;
}

static void write_grant(struct hf_buf *out, const struct model_lock *lock,
                        uint64_t now_us, uint64_t waited_us)
{
    reply_map(out, 4);
    reply_field_number(out, FIELD_TOKEN, (int64_t)lock->token);
    reply_field_number(out, FIELD_SAFE_MS,
                       (int64_t)((lock->expires_us - now_us) / 1000));
    reply_field_number(out, FIELD_COUNT, (int64_t)lock->count);
    reply_field_number(out, FIELD_WAITED_MS, (int64_t)(waited_us / 1000));
}

static void grant(struct model *model, struct model_lock *lock,
                  struct hf_bytes owner, uint64_t ttl_ms)
{
    lock->owner = model_text(owner);
    lock->count = 1;
    lock->acquired_us = model->now_us;
    lock->expires_us = model->now_us + ttl_ms * 1000;
    lock->token =
        model_event(model, EVENT_LOCK_GRANTED, model_bytes(&lock->name), 0);
}

static void reenter(struct model *model, struct model_lock *lock,
                    uint64_t ttl_ms)
{
    uint64_t expires_us = model->now_us + ttl_ms * 1000;

    lock->count++;
    if (expires_us > lock->expires_us)
        lock->expires_us = expires_us;
    model_event(model, EVENT_LOCK_REENTERED, model_bytes(&lock->name), 0);
}

static struct model_waiter *front_waiter(struct model *model,
                                         struct hf_bytes name)
{
    for (size_t i = 0; i < model->waiter_count; i++) {
        if (model_is(&model->waiters[i].lock, name))
            return &model->waiters[i];
    }
    return NULL;
}

/* The answer of `waiter` is written: stores it under its REQ, and it goes. */
static void finish_waiter(struct model *model, struct model_waiter *waiter)
{
    if (waiter->request.len > 0)
        model_store_answer(model, model_bytes(&waiter->request));
    model_close_gap(model->waiters, sizeof *waiter, &model->waiter_count,
                    (size_t)(waiter - model->waiters));
}

void model_time_out(struct model *model, struct model_waiter *waiter)
{
    struct hf_buf *out = model_answer(model, HOLD_TIMED_OUT, waiter->ticket);
    size_t behind = 0;

    for (size_t i = 0; i < model->waiter_count; i++)
        behind += &model->waiters[i] != waiter &&
                  model_is(&model->waiters[i].lock, model_bytes(&waiter->lock));
    reply_map(out, 2);
    reply_field_number(out, FIELD_WAITED_MS,
                       (int64_t)((model->now_us - waiter->queued_us) / 1000));
    reply_field_number(out, FIELD_WAITING, (int64_t)behind);
    finish_waiter(model, waiter);
}

static void answer_grant(struct model *model, struct model_lock *lock,
                         struct model_waiter *waiter)
{
    write_grant(model_answer(model, HOLD_OK, waiter->ticket), lock,
                model->now_us, model->now_us - waiter->queued_us);
    finish_waiter(model, waiter);
}

/* Nobody holds `lock` any more: the next in the queue does, or it goes. */
static void pass_on(struct model *model, struct model_lock *lock)
{
    struct hf_bytes name = model_bytes(&lock->name);
    struct model_waiter *next = front_waiter(model, name);

    while (next != NULL && next->deadline_us <= model->now_us) {
        model_time_out(model, next);
        next = front_waiter(model, name);
    }
    if (next == NULL) {
        model_close_gap(model->locks, sizeof *lock, &model->lock_count,
                        (size_t)(lock - model->locks));
        return;
    }
    grant(model, lock, model_bytes(&next->owner), next->ttl_ms);
    answer_grant(model, lock, next);
    next = front_waiter(model, name);
    while (next != NULL && next->deadline_us > model->now_us &&
           model_is(&next->owner, model_bytes(&lock->owner))) {
        reenter(model, lock, next->ttl_ms);
        answer_grant(model, lock, next);
        next = front_waiter(model, name);
    }
}

void model_expire_lock(struct model *model, struct model_lock *lock)
{
    model_event(model, EVENT_LOCK_EXPIRED, model_bytes(&lock->name),
                model->now_us - lock->expires_us);
    model_age(model, lock->acquired_us);
    pass_on(model, lock);
}

void model_settle_lock(struct model *model, struct hf_bytes name)
{
    struct model_lock *lock = model_find_lock(model, name);

    if (lock != NULL && lock->expires_us <= model->now_us)
        model_expire_lock(model, lock);
}

static void busy(struct model *model, const struct model_lock *lock)
{
    struct hf_buf *out = model_reply(model, HOLD_BUSY);

    reply_map(out, 4);
    reply_field_text(out, FIELD_NAME, model_bytes(&lock->name));
    reply_field_text(out, FIELD_OWNER, model_bytes(&lock->owner));
    reply_field_number(out, FIELD_EXPIRES_MS,
                       (int64_t)((lock->expires_us - model->now_us) / 1000));
    reply_field_number(out, FIELD_WAITING,
                       (int64_t)model_waiting(model, model_bytes(&lock->name)));
}

static void start_waiting(struct model *model, const struct hold_command *c)
{
    if (model_waiting(model, c->name) >= model->bounds.waiters_max) {
        model_overloaded(model, "waiters-max", model->bounds.waiters_max);
        return;
    }
    assert(model->waiter_count < MODEL_MAX);
    struct model_waiter *waiter = &model->waiters[model->waiter_count++];
    *waiter = (struct model_waiter){
        .lock = model_text(c->name),
        .owner = model_text(c->owner),
        .request = model_text(c->request),
        .ticket = ++model->seq,
        .ttl_ms = c->ttl_ms,
        .queued_us = model->now_us,
        .deadline_us = model->now_us + c->wait_ms * 1000,
    };
    model_reply(model, HOLD_WAITING);
    model->ticket = waiter->ticket;
}

static void acquire(struct model *model, struct model_lock *lock,
                    const struct hold_command *c)
{
    if (lock == NULL && model->lock_count >= model->bounds.locks_max) {
        model_overloaded(model, "locks-max", model->bounds.locks_max);
        return;
    }
    if (lock != NULL && !model_is(&lock->owner, c->owner)) {
        if (c->wait_ms == 0)
            busy(model, lock);
        else
            start_waiting(model, c);
        return;
    }
    if (lock != NULL) {
        reenter(model, lock, c->ttl_ms);
    } else {
        assert(model->lock_count < MODEL_MAX);
        lock = &model->locks[model->lock_count++];
        lock->name = model_text(c->name);
        grant(model, lock, c->owner, c->ttl_ms);
    }
    write_grant(model_reply(model, HOLD_OK), lock, model->now_us, 0);
}

/* The refusal of UNLOCK and RENEW. */
static void not_held(struct model *model, enum hold_code code,
                     const struct hold_command *c)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, 2);
    reply_field_text(out, FIELD_NAME, c->name);
    reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
}

static void unlock(struct model *model, struct model_lock *lock,
                   const struct hold_command *c)
{
    if (lock == NULL || lock->token != c->token) {
        not_held(model, HOLD_NOTHELD, c);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    lock->count--;
    reply_map(out, 1);
    reply_field_number(out, FIELD_REMAINING, (int64_t)lock->count);
    model_event(model, EVENT_LOCK_RELEASED, c->name, 0);
    if (lock->count == 0) {
        model_age(model, lock->acquired_us);
        pass_on(model, lock);
    }
}

void model_abandon_lock(struct model *model, const struct hold_command *c)
{
    model_settle_lock(model, c->name);
    unlock(model, model_find_lock(model, c->name), c);
}

static void renew(struct model *model, struct model_lock *lock,
                  const struct hold_command *c)
{
    if (lock == NULL || lock->token != c->token) {
        not_held(model, HOLD_LOST, c);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    lock->expires_us = model->now_us + c->ttl_ms * 1000;
    model_event(model, EVENT_LOCK_RENEWED, c->name, 0);
    reply_map(out, 1);
    reply_field_number(out, FIELD_SAFE_MS, (int64_t)c->ttl_ms);
}

static struct model_fence *find_fence(struct model *model, struct hf_bytes name)
{
    for (size_t i = 0; i < model->fence_count; i++) {
        if (model_is(&model->fences[i].name, name))
            return &model->fences[i];
    }
    return NULL;
}

static void check_fence(struct model *model, const struct hold_command *c)
{
    struct model_fence *fence = find_fence(model, c->name);
    uint64_t newest = fence == NULL ? 0 : fence->newest;

    if (c->token > model->seq) {
        struct hf_buf *out = model_reply(model, HOLD_BADARG);
        reply_map(out, 2);
        reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
        reply_field_number(out, FIELD_NEWEST, (int64_t)model->seq);
        return;
    }
    if (c->token < newest) {
        struct hf_buf *out = model_reply(model, HOLD_STALE);
        reply_map(out, 3);
        reply_field_text(out, FIELD_NAME, c->name);
        reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
        reply_field_number(out, FIELD_NEWEST, (int64_t)newest);
        return;
    }
    model_reply(model, HOLD_OK);
    if (c->token == newest)
        return;
    if (fence == NULL && model->fence_count >= model->bounds.fences_max) {
        model_overloaded(model, "fences-max", model->bounds.fences_max);
        return;
    }
    if (fence == NULL) {
        assert(model->fence_count < MODEL_MAX);
        fence = &model->fences[model->fence_count++];
        fence->name = model_text(c->name);
    }
    fence->newest = c->token;
    model_event(model, EVENT_FENCE_RAISED, c->name, 0);
}

static void delete_fence(struct model *model, const struct hold_command *c)
{
    struct model_fence *fence = find_fence(model, c->name);

    if (fence == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_RESOURCE, c->name);
        return;
    }
    model_close_gap(model->fences, sizeof *fence, &model->fence_count,
                    (size_t)(fence - model->fences));
    model_event(model, EVENT_FENCE_DELETED, c->name, 0);
    model_reply(model, HOLD_OK);
}

static void lock_command(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_FENCE) {
        check_fence(model, c);
        return;
    }
    if (c->kind == HOLD_FENCE_DEL) {
        delete_fence(model, c);
        return;
    }
    struct model_lock *lock = model_find_lock(model, c->name);
    if (c->kind == HOLD_LOCK)
        acquire(model, lock, c);
    else if (c->kind == HOLD_UNLOCK)
        unlock(model, lock, c);
    else
        renew(model, lock, c);
}

static void clear(struct model *model)
{
    model->lock_count = 0;
    model->waiter_count = 0;
    model->fence_count = 0;
}

MODEL_PART("lock", lock_command, clear);
