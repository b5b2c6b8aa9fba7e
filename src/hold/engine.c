/* engine.c - one record in, one result out. */
#include "hold/engine.h"

#include <assert.h>

#include "base/memory.h"
#include "hold/state.h"

struct hold_bounds hold_bounds_default(void)
{
    return (struct hold_bounds){
        .locks_max = 10000000,
        .waiters_max = HOLD_QUEUE_MAX,
        .products_max = 100000000,
        .reservations_max = 10000000,
        .fences_max = 1000000,
        .requests_max = 1000000,
        .request_keep_ms = 600000,
        .ended_keep_ms = 600000,
    };
}

static enum hf_status init_indexes(struct hold_engine *e)
{
    const struct {
        struct hf_index *index;
        size_t bytes;
        struct hf_texts *texts;
    } all[] = {
        {&e->locks, sizeof(struct lock), &e->texts},
        {&e->waiters, sizeof(struct waiter), &e->texts},
        {&e->products, sizeof(struct product), &e->texts},
        {&e->reservations, sizeof(struct reservation), &e->texts},
        {&e->fences, sizeof(struct fence), &e->texts},
        {&e->requests, sizeof(struct request), &e->texts},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t bytes = (all[i].bytes + 7) / 8 * 8;
        if (hf_index_init(all[i].index, bytes, all[i].texts, e->seed,
                          &e->memory_bytes) != HF_OK)
            return HF_NOMEM;
    }
    return HF_OK;
}

struct hold_engine *hold_new(struct hf_hash_seed seed)
{
    struct hold_engine *e = hf_alloc_zeroed(sizeof *e);

    if (e == NULL)
        return NULL;
    e->seed = seed;
    e->bounds = hold_bounds_default();
    hf_texts_init(&e->texts, &e->memory_bytes);
    due_init(e);
    if (init_indexes(e) != HF_OK || out_init(e) != HF_OK) {
        hold_free(e);
        return NULL;
    }
    return e;
}

void hold_free(struct hold_engine *e)
{
    if (e == NULL)
        return;
    hf_index_release(&e->locks);
    hf_index_release(&e->waiters);
    hf_index_release(&e->products);
    hf_index_release(&e->reservations);
    hf_index_release(&e->fences);
    hf_index_release(&e->requests);
    hf_texts_release(&e->texts);
    hf_heap_release(&e->due);
    out_release(e);
    hf_free(e);
}

/* Nobody who waited for the server that is gone waits any more. */
static void drop_waiters(struct hold_engine *e)
{
    for (uint32_t i = 1; i < hf_index_top(&e->waiters); i++) {
        if (hf_index_used(&e->waiters, i) != NULL)
            waiter_drop(e, i);
    }
}

static void set_bounds(struct hold_engine *e, const struct hold_command *c)
{
    struct hold_bounds *b = &e->bounds;
    const struct {
        const char *name;
        uint64_t *value;
    } all[HOLD_BOUNDS_COUNT] = {
        {"locks_max", &b->locks_max},
        {"waiters_max", &b->waiters_max},
        {"products_max", &b->products_max},
        {"reservations_max", &b->reservations_max},
        {"fences_max", &b->fences_max},
        {"requests_max", &b->requests_max},
        {"request_keep_ms", &b->request_keep_ms},
        {"ended_keep_ms", &b->ended_keep_ms},
    };

    for (uint32_t i = 0; i < c->item_count; i++) {
        for (uint32_t k = 0; k < HOLD_BOUNDS_COUNT; k++) {
            if (hf_bytes_equal(c->items[i].sku, hf_bytes_text(all[k].name)))
                *all[k].value = c->items[i].quantity;
        }
    }
    if (b->waiters_max > HOLD_QUEUE_MAX)
        b->waiters_max = HOLD_QUEUE_MAX;
    if (b->request_keep_ms > HOLD_TTL_MAX_MS)
        b->request_keep_ms = HOLD_TTL_MAX_MS;
    if (b->ended_keep_ms > HOLD_TTL_MAX_MS)
        b->ended_keep_ms = HOLD_TTL_MAX_MS;
}

static void flush(struct hold_engine *e)
{
    for (uint32_t i = 1; i < hf_index_top(&e->waiters); i++) {
        struct waiter *waiter = hf_index_used(&e->waiters, i);
        if (waiter == NULL)
            continue;
        answer_begin(e, waiter->ticket, HOLD_NOTHELD);
        answer_end(e);
    }
    hf_index_clear(&e->locks);
    hf_index_clear(&e->waiters);
    hf_index_clear(&e->products);
    hf_index_clear(&e->reservations);
    hf_index_clear(&e->fences);
    hf_index_clear(&e->requests);
    hf_texts_clear(&e->texts);
    hf_heap_clear(&e->due);
    e->ended = (struct list){0, 0};
    e->done = (struct list){0, 0};
    e->refused = (struct list){0, 0};
    e->refused_count = 0;
    e->pending = 0;
    e->stock_total = 0;
    e->stock_reserved = 0;
    e->stock_sold = 0;
    emit(e, EVENT_FLUSHED, hf_bytes("", 0), 0);
}

/* How each of them is done. */
static const struct {
    size_t index; /* where the record is found, as an offset in the engine */
    bool (*settle)(struct hold_engine *e, uint32_t number);
    bool (*check)(struct hold_engine *e, const struct hold_command *c,
                  struct target at);
    void (*change)(struct hold_engine *e, const struct hold_command *c,
                   struct target at);
    bool exact; /* depends on stock: all that is over must be swept first */
} actions[] = {
#define IN(field) offsetof(struct hold_engine, field)
    [HOLD_LOCK] = {IN(locks), lock_settle, lock_check, lock_take, false},
    [HOLD_UNLOCK] = {IN(locks), lock_settle, unlock_check, lock_give, false},
    [HOLD_RENEW] = {IN(locks), lock_settle, renew_check, lock_renew, false},
    [HOLD_FENCE] = {IN(fences), NULL, fence_check, fence_raise, false},
    [HOLD_FENCE_DEL] = {IN(fences), NULL, fence_del_check, fence_del, false},
    [HOLD_STOCK_SET] = {IN(products), NULL, stock_set_check, stock_set, true},
    [HOLD_STOCK_ADD] = {IN(products), NULL, stock_add_check, stock_add, true},
    [HOLD_STOCK_DEL] = {IN(products), NULL, stock_del_check, stock_del, true},
    [HOLD_RESERVE] = {IN(reservations), NULL, reserve_check, reserve, true},
    [HOLD_CONFIRM] = {IN(reservations), reservation_settle, ending_check,
                      reservation_end, false},
    [HOLD_CANCEL] = {IN(reservations), reservation_settle, ending_check,
                     reservation_end, false},
    [HOLD_EXTEND] = {IN(reservations), reservation_settle, ending_check,
                     reservation_extend, false},
#undef IN
};

static struct target find_target(const struct hold_engine *e,
                                 const struct hold_command *c)
{
    const struct hf_index *index =
        (const void *)((const char *)e + actions[c->kind].index);
    struct target at = {0, 0};

    if (c->name.len == 0)
        return at; /* an id will be made */
    at.hash = hf_index_hash(index, c->name);
    at.number = hf_index_find_hashed(index, at.hash, c->name);
    return at;
}

static void act(struct hold_engine *e, const struct hold_command *c,
                struct hf_bytes record)
{
    bool keep = c->request.len > 0;
    struct target at = find_target(e, c);

    if (actions[c->kind].settle != NULL &&
        actions[c->kind].settle(e, at.number))
        at = find_target(e, c);
    if (keep && (request_repeat(e, c, record) || request_resume(e, c) ||
                 !request_admit(e, c->request)))
        return;
    if (!actions[c->kind].check(e, c, at))
        actions[c->kind].change(e, c, at);
    if (keep)
        request_store(e, c, record);
    e->out.stored = keep;
}

/* A LOCK whose client was told TIMEOUT: only that is kept. */
static void keep_told(struct hold_engine *e, const struct hold_command *c,
                      struct hf_bytes record)
{
    e->out.code = HOLD_TIMED_OUT;
    if (c->request.len == 0 || request_find(e, c->request) != 0 ||
        !request_admit(e, c->request))
        return;
    request_store(e, c, record);
}

/* The hold, if it is one, is given back once; nobody is told. */
static void give_up(struct hold_engine *e, const struct hold_command *c)
{
    struct target at = {hf_index_find(&e->locks, c->name), 0};

    if (lock_settle(e, at.number))
        at.number = hf_index_find(&e->locks, c->name);
    if (!unlock_check(e, c, at))
        lock_give(e, c, at);
    e->out.code = HOLD_OK;
    e->body.len = 0;
}

static void abandon(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t waiter = 0;

    if (c->name.len > 0)
        give_up(e, c);
    else
        waiter = waiter_find(e, c->token);
    if (waiter != 0)
        waiter_drop(e, waiter);
}

static void time_out(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t waiter = 0;

    if (c->name.len > 0)
        give_up(e, c);
    else
        waiter = waiter_find(e, c->token);
    if (waiter != 0)
        waiter_time_out(e, waiter);
    if (c->request.len > 0)
        request_time_out(e, c->request);
}

static void dispatch(struct hold_engine *e, const struct hold_command *c,
                     struct hf_bytes record)
{
    if (c->told) {
        keep_told(e, c, record);
        return;
    }
    if (is_action(c->kind)) {
        act(e, c, record);
        return;
    }
    switch (c->kind) {
    case HOLD_RESTART:
        e->seq += (uint64_t)c->amount; /* who waited was dropped before */
        break;
    case HOLD_ABANDON:
        abandon(e, c);
        break;
    case HOLD_TIMEOUT:
        time_out(e, c);
        break;
    case HOLD_BOUNDS:
        set_bounds(e, c);
        break;
    case HOLD_FLUSH:
        flush(e);
        break;
    default:
        assert(c->kind == HOLD_TICK); /* the sweep was all */
        break;
    }
}

static const struct hold_out *finish(struct hold_engine *e)
{
    e->out.body = hf_buf_bytes(&e->body);
    return &e->out;
}

/* Decodes a record into e->command. */
static enum hf_status decode(struct hold_engine *e, struct hf_bytes record)
{
    if (hold_decode(record, &e->command) != HF_OK ||
        !hold_kind_is_write(e->command.kind))
        return HF_CORRUPT;
    return HF_OK;
}

bool hold_kind_is_exact(enum hold_kind kind)
{
    return is_action(kind) && actions[kind].exact;
}

/* Also of one that would meet a bound: what is over does not count. */
static bool is_exact(const struct hold_engine *e, const struct hold_command *c)
{
    if (c->kind == HOLD_LOCK &&
        hf_index_count(&e->locks) >= e->bounds.locks_max)
        return true;
    if (c->request.len > 0 &&
        hf_index_count(&e->requests) >= e->bounds.requests_max)
        return true;
    return hold_kind_is_exact(c->kind) ||
           (c->kind == HOLD_TICK && c->amount != 0);
}

/* Applies e->command, which `record` is. */
static void apply(struct hold_engine *e, struct hf_bytes record)
{
    const struct hold_command *c = &e->command;

    out_reset(e);
    e->now_us = max_u64(e->now_us, c->now_us);
    if (c->kind == HOLD_RESTART)
        drop_waiters(e); /* before a lock that is over goes to one of them */
    due_sweep(e);        /* which needs no memory */
    if (is_exact(e, c) && hold_is_behind(e)) {
        e->out.code = HOLD_AGAIN;
        return;
    }
    promise_spend(e, c);
    dispatch(e, c, record);
    promise_end(e);
}

const struct hold_out *hold_apply(struct hold_engine *e, struct hf_bytes record)
{
    if (decode(e, record) != HF_OK)
        return NULL;
    apply(e, record);
    return finish(e);
}

enum hf_status hold_replay(struct hold_engine *e, struct hf_bytes record)
{
    if (decode(e, record) != HF_OK)
        return HF_CORRUPT;
    if (hold_prepare(e, &e->command) != HF_OK)
        return HF_NOMEM;
    do
        apply(e, record);
    while (e->out.code == HOLD_AGAIN);
    return HF_OK;
}

/* The part of hold_refuse for a command with a REQ. An answer that was given
 * stands whatever is due, for everything else time must pass first. */
static bool refuse_request(struct hold_engine *e, const struct hold_command *c,
                           bool due)
{
    uint32_t number = request_find(e, c->request);

    if (due && (number == 0 || request_at(e, number)->waiter != 0))
        return false;
    if (number == 0)
        return request_refuse(e, c->request);
    e->record.len = hold_encode(c, e->record.data);
    return request_repeat(e, c, hf_buf_bytes(&e->record));
}

const struct hold_out *hold_refuse(struct hold_engine *e,
                                   const struct hold_command *c)
{
    uint64_t now_us = e->now_us;
    bool answered;

    if (!is_action(c->kind) || c->told)
        return NULL;
    out_reset(e);
    e->now_us = max_u64(now_us, c->now_us);
    /* What is due would have to pass first, and that is a change. */
    bool due = hold_next_due_us(e) <= e->now_us;
    if (c->request.len > 0)
        answered = refuse_request(e, c, due);
    else
        answered = !due && actions[c->kind].check(e, c, find_target(e, c));
    e->now_us = now_us;
    return answered ? finish(e) : NULL;
}

/* True if the answer depends on something that is over and was not swept. */
static bool ask_is_early(const struct hold_engine *e,
                         const struct hold_command *c)
{
    if (!hold_is_behind(e))
        return false;
    if (c->kind == HOLD_LOCK_INFO)
        return lock_is_over(e, hf_index_find(&e->locks, c->name));
    if (c->kind == HOLD_RESERVATION)
        return reservation_is_over(e, hf_index_find(&e->reservations, c->name));
    return true;
}

const struct hold_out *hold_ask(struct hold_engine *e,
                                const struct hold_command *c)
{
    uint64_t now_us = e->now_us;

    assert(!hold_kind_is_write(c->kind));
    out_reset(e);
    e->now_us = max_u64(now_us, c->now_us);
    if (ask_is_early(e, c)) {
        e->now_us = now_us;
        return NULL;
    }
    switch (c->kind) {
    case HOLD_LOCK_INFO:
        lock_info(e, c);
        break;
    case HOLD_LOCK_LIST:
        lock_list(e, c);
        break;
    case HOLD_STOCK_GET:
        stock_get(e, c);
        break;
    case HOLD_STOCK_LIST:
        stock_list(e, c);
        break;
    default:
        assert(c->kind == HOLD_RESERVATION);
        reservation_show(e, c);
        break;
    }
    e->now_us = now_us;
    return finish(e);
}

uint64_t hold_now_us(const struct hold_engine *e)
{
    return e->now_us;
}

uint64_t hold_seq(const struct hold_engine *e)
{
    return e->seq;
}

struct hold_bounds hold_get_bounds(const struct hold_engine *e)
{
    return e->bounds;
}

void hold_set_memory_max(struct hold_engine *e, size_t bytes)
{
    e->memory_max = bytes;
}

void hold_count(const struct hold_engine *e, struct hold_counts *out)
{
    *out = (struct hold_counts){
        .locks = hf_index_count(&e->locks),
        .waiters = hf_index_count(&e->waiters),
        .products = hf_index_count(&e->products),
        .reservations = hf_index_count(&e->reservations),
        .pending = e->pending,
        .fences = hf_index_count(&e->fences),
        .requests = hf_index_count(&e->requests),
        .requests_dropped = e->requests_dropped,
        .requests_refused = e->requests_refused,
        .stock_total = (double)e->stock_total,
        .stock_reserved = (double)e->stock_reserved,
        .stock_sold = (double)e->stock_sold,
        .memory_bytes = e->memory_bytes,
    };
}
