/* engine.c - one record in, one result out. */
#include "hold/engine.h"

#include <assert.h>

#include "base/memory.h"
#include "hold/bundle.h"
#include "hold/part.h"
#include "hold/places.h"
#include "hold/request.h"
#include "hold/reserve.h"
#include "hold/tree.h"

static enum hf_status init_indexes(struct hold_engine *e)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        size_t bytes = (hold_subjects[i].bytes + 7) / 8 * 8;
        if (hf_index_init(subject_index(e, &hold_subjects[i]), bytes, &e->texts,
                          e->seed, &e->memory_bytes) != HF_OK)
            return HF_NOMEM;
    }
    hf_slab_init(&e->parts, sizeof(struct part), &e->memory_bytes);
    hf_slab_init(&e->terms, sizeof(struct terms), &e->memory_bytes);
    hf_slab_init(&e->marks, sizeof(struct mark), &e->memory_bytes);
    hf_slab_init(&e->paths, sizeof(struct path), &e->memory_bytes);
    hf_slab_init(&e->trees, sizeof(struct tree), &e->memory_bytes);
    hf_slab_init(&e->demands, sizeof(struct demand), &e->memory_bytes);
    hf_slab_init(&e->members, sizeof(struct member), &e->memory_bytes);
    hf_slab_init(&e->forks, sizeof(struct fork), &e->memory_bytes);
    return HF_OK;
}

/* What happens to records, and to where they are found, can be taken back. */
static void init_undo(struct hold_engine *e)
{
    struct hf_slab *const slabs[] = {&e->parts, &e->terms,  &e->marks,
                                     &e->paths, &e->trees,  &e->demands,
                                     &e->forks, &e->members};

    for (size_t i = 0; i < SUBJECTS; i++)
        subject_index(e, &hold_subjects[i])->slab.undo = &e->undo;
    for (size_t i = 0; i < sizeof slabs / sizeof slabs[0]; i++)
        slabs[i]->undo = &e->undo;
    for (size_t i = 0; i < HF_TEXT_CLASSES; i++)
        e->texts.slabs[i].undo = &e->undo;
    e->due.heap.undo = &e->undo;
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
    e->above = hf_alloc_zeroed(sizeof *e->above);
    e->tree_stops = 1;
    if (e->above == NULL || init_indexes(e) != HF_OK || out_init(e) != HF_OK) {
        hold_free(e);
        return NULL;
    }
    init_undo(e);
    return e;
}

void hold_free(struct hold_engine *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < SUBJECTS; i++)
        hf_index_destroy(subject_index(e, &hold_subjects[i]));
    hf_slab_destroy(&e->parts);
    hf_slab_destroy(&e->terms);
    hf_slab_destroy(&e->marks);
    hf_slab_destroy(&e->paths);
    hf_slab_destroy(&e->trees);
    hf_slab_destroy(&e->demands);
    hf_slab_destroy(&e->forks);
    hf_slab_destroy(&e->members);
    hf_texts_destroy(&e->texts);
    hf_agenda_destroy(&e->due);
    past_free(e);
    out_destroy(e);
    hf_undo_destroy(&e->undo);
    hf_free(e->above);
    hf_free(e);
}

void run_bounds(struct hold_engine *e, const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++)
        hold_bounds_set(&e->bounds, c->items[i].sku, c->items[i].quantity);
    classes_changed(e);
}

void run_tick(struct hold_engine *e, const struct hold_command *c)
{
    (void)e, (void)c; /* the sweep was all */
}

void run_restart(struct hold_engine *e, const struct hold_command *c)
{
    e->seq += (uint64_t)c->amount; /* who waited was dropped before */
    e->old_queues = (c->flags & HOLD_GRAPH) == 0;
    e->old_waits = (c->flags & HOLD_SETTLED) == 0;
}

void run_flush(struct hold_engine *e, const struct hold_command *c)
{
    (void)c;
    for (uint32_t i = 1; i < hf_index_top(&e->waiters); i++) {
        struct waiter *waiter = hf_index_used(&e->waiters, i);
        if (waiter == NULL)
            continue;
        if ((waiter->flags & WAITER_IS_SET) != 0)
            hf_slab_unpromise(&e->sets.slab, 1);
        answer_begin(e, waiter->ticket, HOLD_NOTHELD);
        answer_end(e);
    }
    flush_buyers(e);
    mark_unpromise(e, e->delays);
    for (size_t i = 0; i < SUBJECTS; i++)
        hf_index_clear(subject_index(e, &hold_subjects[i]));
    hf_slab_clear(&e->parts);
    hf_slab_clear(&e->terms);
    hf_slab_clear(&e->marks);
    hf_slab_clear(&e->paths);
    hf_slab_clear(&e->trees);
    hf_slab_clear(&e->forks);
    hf_slab_clear(&e->members);
    e->path_root = 0;
    memset(e->tree_lens, 0, sizeof e->tree_lens);
    e->tree_changes++;
    e->tree_stops++;
    e->held = 0;
    e->waited_parts = 0;
    e->waited_bytes = 0;
    e->serve = (struct list){0, 0};
    hf_texts_clear(&e->texts);
    hf_agenda_clear(&e->due);
    e->ended = (struct list){0, 0};
    classes_changed(e);
    e->done = (struct list){0, 0};
    e->refused = (struct list){0, 0};
    e->refused_count = 0;
    e->pending = 0;
    e->booked = 0;
    e->stock_total = 0;
    e->stock_reserved = 0;
    e->stock_sold = 0;
    e->lows = 0;
    emit(e, EVENT_FLUSHED, hf_bytes("", 0), 0);
}

static void act(struct hold_engine *e, const struct hold_command *c,
                struct hf_bytes record)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    bool keep = c->request.len > 0;

    /* What is over ends first, if the sweep did not come to it. */
    if (operation->settle != NULL && is_behind(e))
        operation->settle(e, c);
    struct target at = find_target(e, c, operation->subject);

    if (keep && (request_repeat(e, c, record) || request_resume(e, c) ||
                 !request_admit(e, c->request)))
        return;
    if (!operation->check(e, c, at))
        operation->change(e, c, at);
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
    if (hold_is_behind(e))
        lock_settle_named(e, c);
    struct target at = find_target(e, c, &hold_subjects[SUBJECT_LOCK]);
    if (grant_find(e, at.number, c->token) != 0)
        lock_give(e, c, at);
    e->out.code = HOLD_OK;
    e->body.len = 0;
}

void run_end_early(struct hold_engine *e, const struct hold_command *c)
{
    bool told = c->kind == HOLD_TIMEOUT;
    bool waits = c->name.len == 0 && c->note.len == 0;
    uint32_t waiter = waits ? waiter_find(e, c->token) : 0;
    uint32_t buyer = waits && waiter == 0 ? buyer_find(e, c->token) : 0;

    if (c->name.len > 0)
        give_up(e, c);
    if (c->note.len > 0)
        reservation_give_up(e, c->note, c->token);
    if (waiter != 0)
        (told ? waiter_time_out : waiter_drop)(e, waiter);
    if (buyer != 0)
        (told ? buyer_time_out : buyer_drop)(e, buyer);
    serve_all(e);
    waitlist_serve(e);
    if (told && c->request.len > 0)
        request_time_out(e, c->request);
}

static void dispatch(struct hold_engine *e, const struct hold_command *c,
                     struct hf_bytes record)
{
    if (c->told)
        keep_told(e, c, record);
    else if (hold_operations[c->kind].class == CLASS_WRITE)
        act(e, c, record);
    else
        hold_operations[c->kind].run(e, c);
}

static const struct hold_out *finish(struct hold_engine *e)
{
    e->out.body = hf_buf_bytes(&e->body);
    e->out.now_us = e->now_us;
    e->out.seq = e->seq;
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

/* Is it about a lock that so many hold or wait for that what is over there is
 * left to the sweep? */
static bool is_crowded(const struct hold_engine *e,
                       const struct hold_command *c)
{
    bool about_lock =
        hold_operations[c->kind].subject == &hold_subjects[SUBJECT_LOCK] ||
        c->kind == HOLD_ABANDON || c->kind == HOLD_TIMEOUT;
    uint32_t number =
        about_lock && c->name.len > 0 ? hf_index_find(&e->locks, c->name) : 0;

    return number != 0 && !e->old_queues &&
           lock_at(e, number)->granted + lock_at(e, number)->waiting >
               HOLD_SETTLE_MAX;
}

/* Also of one that would meet a bound: what is over does not count. */
bool hold_is_exact(const struct hold_engine *e, const struct hold_command *c)
{
    if (hold_kind_is_exact(c->kind) &&
        (e->old_waits || !stock_is_settled(e, c)))
        return true;
    if (hold_operations[c->kind].takes_lock &&
        (hf_index_count(&e->locks) >= e->bounds.locks_max ||
         tree_is_asked(e, c)))
        return true;
    if (hold_is_key(c->kind) && c->item_count > 0)
        return true; /* several names */
    if (c->kind == HOLD_SESSION_OPEN &&
        hf_index_count(&e->sessions) >= e->bounds.sessions_max)
        return true;
    if (c->request.len > 0 &&
        hf_index_count(&e->requests) >= e->bounds.requests_max)
        return true;
    if (reservation_may_change(e, c))
        return true;
    return is_crowded(e, c) || (c->kind == HOLD_TICK && c->amount != 0);
}

/* Applies a command, which `record` is. */
static void apply(struct hold_engine *e, const struct hold_command *c,
                  struct hf_bytes record)
{
    out_reset(e);
    e->now_us = max_u64(e->now_us, c->now_us);
    if (c->kind == HOLD_RESTART) {
        drop_waiters(e); /* before a lock that is over goes to one of them */
        drop_buyers(e);
        sessions_unbind(e);
    }
    due_sweep(e); /* which needs no memory */
    if (is_behind(e) && hold_is_exact(e, c)) {
        e->out.code = HOLD_AGAIN;
        return;
    }
    promise_spend(e, c);
    bool grown = e->grown;
    dispatch(e, c, record);
    promise_end(e);
    if (grown && c->kind == HOLD_GROUP)
        group_trim(e, c->group);
}

const struct hold_out *hold_apply(struct hold_engine *e, struct hf_bytes record)
{
    if (decode(e, record) != HF_OK)
        return NULL;
    apply(e, &e->command, record);
    return finish(e);
}

const struct hold_out *hold_run(struct hold_engine *e,
                                const struct hold_command *c)
{
    assert(c->request.len == 0); /* it would be kept as a record */
    apply(e, c, hf_bytes("", 0));
    return finish(e);
}

enum hf_status hold_replay(struct hold_engine *e, struct hf_bytes record,
                           hold_told_fn *tell, void *context)
{
    if (decode(e, record) != HF_OK)
        return HF_CORRUPT;
    if (hold_prepare(e, &e->command) != HF_OK)
        return HF_NOMEM;
    do {
        apply(e, &e->command, record);
        if (tell != NULL)
            tell(context, finish(e));
    } while (e->out.code == HOLD_AGAIN);
    return HF_OK;
}

/* The part of hold_answer_now for a command with a REQ. An answer that was
 * given stands whatever is due, for everything else time must pass first. */
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

/* The part for one without; the grants of its lock may be looked through. */
static bool check_now(struct hold_engine *e, const struct hold_command *c)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    struct target at = find_target(e, c, operation->subject);

    if (operation->subject == &hold_subjects[SUBJECT_LOCK] && at.number != 0)
        e->out.work += lock_at(e, at.number)->granted;
    return operation->check(e, c, at);
}

uint64_t hold_work(const struct hold_engine *e)
{
    return e->out.work;
}

const struct hold_out *hold_answer_now(struct hold_engine *e,
                                       const struct hold_command *c)
{
    uint64_t now_us = e->now_us;
    bool answered = false;

    const struct hold_operation *operation = &hold_operations[c->kind];

    if (operation->class != CLASS_WRITE || c->told)
        return NULL;
    out_reset(e);
    e->now_us = max_u64(now_us, c->now_us);
    /* What is due would have to pass first, and that is a change. */
    bool due = hold_next_due_us(e) <= e->now_us;
    if (c->request.len > 0)
        answered = refuse_request(e, c, due);
    else if (!due)
        answered = check_now(e, c);
    e->now_us = now_us;
    return answered ? finish(e) : NULL;
}

/* True if the answer depends on something that is over and was not swept. */
static bool ask_is_early(const struct hold_engine *e,
                         const struct hold_command *c)
{
    const struct subject *subject = hold_operations[c->kind].subject;

    if (!hold_is_behind(e))
        return false;
    if (c->kind == HOLD_STOCK_GET)
        return !stock_is_settled(e, c);
    return subject == NULL || subject->is_over == NULL ||
           subject->is_over(e, find_target(e, c, subject).number);
}

const struct hold_out *hold_ask(struct hold_engine *e,
                                const struct hold_command *c)
{
    uint64_t now_us = e->now_us;

    assert(!hold_kind_is_write(c->kind));
    out_reset(e);
    e->now_us = max_u64(now_us, c->now_us);
    bool early = ask_is_early(e, c);
    if (!early)
        hold_operations[c->kind].run(e, c);
    e->now_us = now_us;
    return early ? NULL : finish(e);
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
        .locks = e->held,
        .sets = hf_index_count(&e->sets),
        .trees = e->trees.used,
        .sessions = hf_index_count(&e->sessions),
        .double_grants = e->double_grants,
        .waiters = hf_index_count(&e->waiters),
        .products = hf_index_count(&e->products),
        .reservations = hf_index_count(&e->reservations),
        .pending = e->pending,
        .buyers = hf_index_count(&e->buyers),
        .booked = e->booked,
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
