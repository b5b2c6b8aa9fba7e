/* locks.c - the calls of a lock manager. */
#include <assert.h>

#include "base/memory.h"
#include "locks/locks_state.h"

/* A session of ours ends when it is closed; this counts for nothing. */
#define SESSION_TTL_MS 1u

/* ---- Open and close. ---- */

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_locks *locks = (struct hf_locks *)(uintptr_t)listed;
    struct hf_locks_stats stats;

    (void)hf_locks_stats(locks, NULL, &stats);
    row->depth = stats.held;
    row->capacity = locks->names_max;
    row->rejected = stats.timeouts + stats.deadlocks;
    row->wait_p99_ns = stats.waited_p99_ns;
}

static uint64_t ms_of(uint64_t ns)
{
    return ns == 0 ? 0 : (ns - 1) / NS_PER_MS + 1;
}

static void bound(struct hf_locks *locks, const char *name, uint64_t value)
{
    if (value == 0)
        return;
    struct hold_command *c = hf_locks_command(locks, HOLD_BOUNDS);
    c->items[c->item_count++] =
        (struct hold_item){.sku = hf_bytes_text(name), .quantity = value};
    (void)hf_locks_run(locks); /* which needs no memory */
}

static void set_bounds(struct hf_locks *locks, const struct hf_locks_opts *opts)
{
    hf_locks_lock(locks);
    bound(locks, "locks_max", opts->names_max);
    bound(locks, "waiters_max", opts->waiters_max);
    bound(locks, "holders_max", opts->holders_max);
    bound(locks, "wound_grace_ms", ms_of(opts->grace_ns));
    locks->names_max = (uint32_t)hold_get_bounds(locks->engine).locks_max;
    hf_locks_unlock(locks);
}

static void free_all(struct hf_locks *locks)
{
    hf_locals_destroy(&locks->threads);
    hf_index_destroy(&locks->names);
    hf_texts_destroy(&locks->texts);
    hold_free(locks->engine);
    hf_free(locks);
}

static struct hf_locks *make(void)
{
    struct hf_locks *locks = hf_alloc_zeroed(sizeof *locks);
    struct hf_hash_seed seed = hf_hash_seed((struct hf_hash_seed){{0, 0}});

    if (locks == NULL)
        return NULL;
    hf_texts_init(&locks->texts, &locks->names_bytes);
    locks->engine = hold_new(seed);
    if (locks->engine == NULL ||
        hf_index_init(&locks->names, sizeof(struct locks_figures),
                      &locks->texts, seed, &locks->names_bytes) != HF_OK ||
        hf_locals_init(&locks->threads, sizeof(struct locks_thread)) != HF_OK) {
        free_all(locks);
        return NULL;
    }
    return locks;
}

enum hf_status hf_locks_open(struct hf_locks **out,
                             const struct hf_locks_opts *opts)
{
    static const struct hf_locks_opts defaults = {.policy = HF_LOCKS_DETECT};

    if (opts == NULL)
        opts = &defaults;
    if (out == NULL || (unsigned)opts->policy > HF_LOCKS_NONE ||
        opts->names_max > hold_bound_rows[0].max ||
        opts->waiters_max > HOLD_QUEUE_MAX ||
        opts->holders_max > HOLD_QUEUE_MAX)
        return HF_INVALID;
    struct hf_locks *locks = make();
    if (locks == NULL)
        return HF_NOMEM;
    locks->clock = opts->clock;
    locks->policy = opts->policy;
    locks->counted_names =
        opts->counted_names ? opts->counted_names : HF_LOCKS_COUNTED_NAMES;
    locks->observe = opts->observe;
    locks->context = opts->context;
    set_bounds(locks, opts);
    hf_listed_add(&locks->listed, "locks", opts->name, fill);
    *out = locks;
    return HF_OK;
}

void hf_locks_shutdown(struct hf_locks *locks)
{
    struct locks_waiter *waiter;

    if (locks == NULL)
        return;
    hf_locks_lock(locks);
    /* Relaxed: the mutex and the event order it. */
    hf_u32_store(&locks->shutdown, 1, __ATOMIC_RELAXED);
    hf_locks_pass_time(locks); /* else who leaves may be answered by it */
    /* The last first, so that as a rule nobody's leaving lets another go on. */
    while ((waiter = locks->last) != NULL) {
        hf_locks_command(locks, HOLD_ABANDON)->token = waiter->ticket;
        (void)hf_locks_run(locks); /* which needs no memory */
        hf_locks_end_wait(locks, waiter, HF_CLOSED);
    }
    hf_locks_unlock(locks);
    hf_event_wake_all(&locks->closing);
}

void hf_locks_close(struct hf_locks *locks)
{
    if (locks == NULL)
        return;
    assert(locks->first == NULL);
    for (uint32_t i = 0; i < LOCKS_BUCKETS; i++)
        assert(locks->buckets[i] == NULL);
    hf_listed_remove(&locks->listed);
    free_all(locks);
}

/* ---- Who asks, and for what. ---- */

static bool fits(const char *text, size_t max)
{
    return text != NULL && *text != '\0' && strnlen(text, max + 1) <= max;
}

static bool is_by_age(const struct hf_locks *locks)
{
    return locks->policy == HF_LOCKS_WAITDIE ||
           locks->policy == HF_LOCKS_WOUNDWAIT;
}

static bool is_valid(const struct hf_locks *locks,
                     const struct hf_locks_request *r)
{
    bool counts = r->mode == HF_LOCKS_COUNTING;

    if ((unsigned)r->mode > HF_LOCKS_COUNTING ||
        r->priority > HF_LOCKS_PRIORITY_MAX || r->session > INT64_MAX)
        return false;
    if (counts && r->tree)
        return false;
    if (counts ? r->permits == 0 || r->permits > r->of ||
                     r->of > HF_LOCKS_PERMITS_MAX
               : (r->permits | r->of) != 0)
        return false;
    if (r->owner != NULL && (!fits(r->owner, HF_LOCKS_OWNER_MAX) ||
                             (is_by_age(locks) && r->session == 0)))
        return false;
    return r->note == NULL ||
           strnlen(r->note, HF_LOCKS_NOTE_MAX + 1) <= HF_LOCKS_NOTE_MAX;
}

/* Writes the owner that the calling thread is. */
static struct hf_bytes thread_owner(char out[THREAD_OWNER_BYTES])
{
    memcpy(out, "thread-", 7);
    return hf_bytes(out, 7 + hf_print_u64(out + 7, hf_thread_number()));
}

/* The thread that had this slot before has ended: its age is not inherited.
 * What it did not give back stays held, and so does its session. */
static void leave_session(struct hf_locks *locks, struct locks_thread *thread)
{
    if (thread->session == 0 || thread->number == hf_thread_number())
        return;
    struct hold_command *c = hf_locks_command(locks, HOLD_SESSION_INFO);
    c->token = thread->session;
    const struct hold_out *out = hold_ask(locks->engine, c);
    if (out->code == HOLD_OK && reply_get_number(out->body, FIELD_LOCKS) == 0) {
        hf_locks_command(locks, HOLD_SESSION_CLOSE)->token = thread->session;
        (void)hf_locks_run(locks);
    }
    thread->session = 0;
}

/* The session of the calling thread, where ages count; else 0. `open`: makes
 * it. HF_NOMEM, HF_FULL. */
static enum hf_status thread_session(struct hf_locks *locks, bool open,
                                     uint64_t *session)
{
    *session = 0;
    if (!is_by_age(locks))
        return HF_OK;
    struct locks_thread *thread =
        hf_locals_mine(&locks->threads, sizeof *thread);
    if (thread == NULL)
        return HF_NOMEM;
    leave_session(locks, thread);
    if (thread->session == 0 && open) {
        struct hold_command *c = hf_locks_command(locks, HOLD_SESSION_OPEN);
        c->ttl_ms = SESSION_TTL_MS;
        c->flags = HOLD_BIND;
        const struct hold_out *out = hf_locks_run(locks);
        if (out == NULL || out->code != HOLD_OK)
            return out == NULL ? HF_NOMEM : HF_FULL;
        thread->session = (uint64_t)reply_get_number(out->body, FIELD_SESSION);
        thread->number = hf_thread_number();
    }
    *session = thread->session;
    return HF_OK;
}

/* ---- Acquire. ---- */

/* HF_INVALID: a name comes twice. */
static enum hf_status fill_names(struct hold_command *c,
                                 const struct locks_wanted *wanted)
{
    enum hf_status status = HF_OK;

    if (!wanted->is_set)
        c->name = hf_bytes_text(wanted->items[0].name);
    for (size_t i = 0; wanted->is_set && i < wanted->count && status == HF_OK;
         i++)
        status = hold_add_name(c, hf_bytes_text(wanted->items[i].name),
                               wanted->items[i].shared);
    return status;
}

/* The command of a request. */
static enum hf_status fill_command(struct hf_locks *locks,
                                   const struct locks_wanted *wanted,
                                   bool may_wait)
{
    const struct hf_locks_request *r = wanted->request;
    uint64_t session = r->session;
    enum hf_status status = HF_OK;

    if (session == 0)
        status = thread_session(locks, true, &session);
    if (status != HF_OK)
        return status;
    struct hold_command *c =
        hf_locks_command(locks, wanted->is_set ? HOLD_LOCKSET : HOLD_LOCK);
    c->owner = wanted->owner;
    c->session = session;
    c->ttl_ms = ms_of(r->ttl_ns);
    c->flags = (uint64_t)locks->policy << HOLD_POLICY_SHIFT |
               (uint64_t)r->priority << HOLD_PRIORITY_SHIFT;
    if (r->mode == HF_LOCKS_SHARED)
        c->flags |= HOLD_SHARED;
    if (may_wait)
        c->flags |= HOLD_FOREVER; /* whoever waits minds its deadline itself */
    if (r->barge)
        c->flags |= HOLD_BARGE;
    if (r->tree)
        c->flags |= HOLD_TREE;
    c->permits = (uint64_t)r->of << 32 | r->permits;
    if (r->note != NULL)
        c->note = hf_bytes_text(r->note);
    return fill_names(c, wanted);
}

/* One request. */
static enum hf_status attempt(struct hf_locks *locks,
                              const struct locks_wanted *wanted,
                              uint64_t deadline_ns,
                              struct hf_locks_answer *answer)
{
    hf_locks_lock(locks);
    enum hf_status status = HF_CLOSED;
    /* Relaxed: the mutex orders it. */
    if (hf_u32_load(&locks->shutdown, __ATOMIC_RELAXED) == 0)
        status = fill_command(locks, wanted, deadline_ns > locks->now_ns);
    const struct hold_out *out = status == HF_OK ? hf_locks_run(locks) : NULL;

    if (status == HF_OK && out == NULL)
        status = HF_NOMEM;
    if (out != NULL && out->code == HOLD_WAITING)
        return hf_locks_wait(locks, wanted, out->ticket, deadline_ns, answer);
    if (out != NULL) {
        status = hf_locks_read_answer(out->code, out->body, answer);
        hf_locks_count(locks, wanted, status, false, 0);
    }
    hf_locks_unlock(locks);
    return status;
}

static enum hf_status look_shutdown(void *context)
{
    const struct hf_locks *locks = context;

    /* Acquire: pairs with the mutex of whoever shuts down; only the flag
     * itself is looked at. */
    return hf_u32_load(&locks->shutdown, __ATOMIC_ACQUIRE) ? HF_CLOSED
                                                           : HF_PENDING;
}

static enum hf_status retry(struct hf_locks *locks,
                            const struct locks_wanted *wanted,
                            struct hf_backoff *backoff, uint64_t deadline_ns,
                            struct hf_locks_answer *answer)
{
    uint64_t patience_ns = wanted->request->patience_ns;
    uint32_t attempts = 0;
    enum hf_status status;

    for (;;) {
        uint64_t until_ns = hf_clock_after_ns(locks->clock, patience_ns);
        uint64_t pause_ns;

        if (patience_ns == 0 || deadline_ns < until_ns)
            until_ns = patience_ns == 0 ? HF_NOW : deadline_ns;
        hf_locks_answer_free(answer);
        *answer = (struct hf_locks_answer){.attempts = ++attempts,
                                           .waited_ns = answer->waited_ns};
        status = attempt(locks, wanted, until_ns, answer);
        if ((status != HF_TIMEOUT && status != HF_DEADLOCK) ||
            hf_backoff_next(backoff, hf_clock_now_ns(locks->clock), deadline_ns,
                            &pause_ns) != HF_OK)
            return status;
        if (hf_event_until(&locks->closing, look_shutdown, locks, locks->clock,
                           hf_clock_after_ns(locks->clock, pause_ns)) ==
            HF_CLOSED) {
            hf_locks_answer_free(answer); /* of a deadlock, which was not it */
            answer->length = 0;
            return HF_CLOSED;
        }
    }
}

static enum hf_status acquire(struct hf_locks *locks,
                              struct locks_wanted *wanted, uint64_t deadline_ns,
                              struct hf_locks_answer *answer)
{
    const struct hf_locks_request *r = wanted->request;
    struct hf_locks_answer unread;
    struct hf_backoff backoff;
    enum hf_status status;

    if (!is_valid(locks, r) ||
        (r->retry != NULL && hf_backoff_init(&backoff, r->retry) != HF_OK))
        return HF_INVALID;
    wanted->owner = r->owner != NULL ? hf_bytes_text(r->owner)
                                     : thread_owner(wanted->thread_owner);
    struct hf_locks_answer *told = answer != NULL ? answer : &unread;
    *told = (struct hf_locks_answer){.attempts = 1};
    if (r->retry != NULL)
        status = retry(locks, wanted, &backoff, deadline_ns, told);
    else
        status = attempt(locks, wanted, deadline_ns, told);
    if (answer == NULL)
        hf_locks_answer_free(told);
    return status;
}

static const struct hf_locks_request plain = {.mode = HF_LOCKS_EXCLUSIVE};

enum hf_status hf_locks_acquire(struct hf_locks *locks, const char *name,
                                const struct hf_locks_request *request,
                                uint64_t deadline_ns,
                                struct hf_locks_answer *answer)
{
    struct hf_locks_item item = {.name = name};
    struct locks_wanted wanted;

    if (locks == NULL || !fits(name, HF_LOCKS_NAME_MAX))
        return HF_INVALID;
    wanted.request = request != NULL ? request : &plain;
    wanted.items = &item;
    wanted.count = 1;
    wanted.is_set = false;
    return acquire(locks, &wanted, deadline_ns, answer);
}

enum hf_status
hf_locks_acquire_set(struct hf_locks *locks, const struct hf_locks_item *items,
                     size_t count, const struct hf_locks_request *request,
                     uint64_t deadline_ns, struct hf_locks_answer *answer)
{
    struct locks_wanted wanted;

    if (locks == NULL || items == NULL || count == 0 ||
        count > HF_LOCKS_SET_MAX)
        return HF_INVALID;
    for (size_t i = 0; i < count; i++)
        if (!fits(items[i].name, HF_LOCKS_NAME_MAX))
            return HF_INVALID;
    wanted.request = request != NULL ? request : &plain;
    wanted.items = items;
    wanted.count = count;
    wanted.is_set = true;
    if (wanted.request->mode != HF_LOCKS_EXCLUSIVE)
        return HF_INVALID;
    return acquire(locks, &wanted, deadline_ns, answer);
}

/* ---- What is held. ---- */

/* The token by which the calling thread holds it, or 0. */
static uint64_t find_token(struct hf_locks *locks, struct hf_bytes name)
{
    char text[THREAD_OWNER_BYTES];
    uint64_t session;

    hf_locks_pass_time(locks);
    if (thread_session(locks, false, &session) != HF_OK)
        return 0;
    return hold_token_of(locks->engine, name, session, thread_owner(text));
}

/* For a change that tells nothing of time when nothing is due and nobody waits:
 * the time of the last command will do. */
static void lock_for_change(struct hf_locks *locks)
{
    hf_mutex_lock(&locks->mutex);
    if (locks->first != NULL || hold_due_us(locks->engine) != UINT64_MAX)
        locks->now_ns = hf_clock_now_ns(locks->clock);
}

/* A command about something held; an empty name: about a set. */
static enum hf_status change(struct hf_locks *locks, enum hold_kind kind,
                             const char *name, uint64_t token, uint64_t ttl_ns)
{
    struct hf_bytes bytes =
        name == NULL ? hf_bytes("", 0) : hf_bytes_text(name);
    struct hf_locks_answer unread;
    enum hf_status status = HF_NOTFOUND;

    if (ttl_ns > 0)
        hf_locks_lock(locks);
    else
        lock_for_change(locks);
    if (token == 0 && name != NULL)
        token = find_token(locks, bytes);
    if (token != 0) {
        struct hold_command *c = hf_locks_command(locks, kind);
        c->name = bytes;
        c->token = token;
        c->ttl_ms = ms_of(ttl_ns);
        const struct hold_out *out = hf_locks_run(locks);
        assert(out != NULL); /* it needs no memory */
        status = hf_locks_read_answer(out->code, hf_bytes("", 0), &unread);
    }
    hf_locks_unlock(locks);
    return status;
}

enum hf_status hf_locks_release(struct hf_locks *locks, const char *name,
                                uint64_t token)
{
    if (locks == NULL || !fits(name, HF_LOCKS_NAME_MAX))
        return HF_INVALID;
    return change(locks, HOLD_UNLOCK, name, token, 0);
}

enum hf_status hf_locks_release_set(struct hf_locks *locks, uint64_t token)
{
    if (locks == NULL)
        return HF_INVALID;
    return change(locks, HOLD_UNLOCKSET, NULL, token, 0);
}

enum hf_status hf_locks_downgrade(struct hf_locks *locks, const char *name,
                                  uint64_t token)
{
    if (locks == NULL || !fits(name, HF_LOCKS_NAME_MAX))
        return HF_INVALID;
    return change(locks, HOLD_DOWNGRADE, name, token, 0);
}

enum hf_status hf_locks_renew(struct hf_locks *locks, const char *name,
                              uint64_t token, uint64_t ttl_ns)
{
    if (locks == NULL || !fits(name, HF_LOCKS_NAME_MAX) || ttl_ns == 0)
        return HF_INVALID;
    return change(locks, HOLD_RENEW, name, token, ttl_ns);
}

enum hf_status hf_locks_renew_set(struct hf_locks *locks, uint64_t token,
                                  uint64_t ttl_ns)
{
    if (locks == NULL || ttl_ns == 0)
        return HF_INVALID;
    return change(locks, HOLD_RENEWSET, NULL, token, ttl_ns);
}

bool hf_locks_holds(struct hf_locks *locks, const char *name, uint64_t token)
{
    if (locks == NULL || !fits(name, HF_LOCKS_NAME_MAX))
        return false;
    hf_locks_lock(locks);
    hf_locks_pass_time(locks);
    bool holds = token == 0 && find_token(locks, hf_bytes_text(name)) != 0;
    if (token != 0) {
        struct hold_command *c = hf_locks_command(locks, HOLD_HELD);
        c->name = hf_bytes_text(name);
        c->token = token;
        holds = hold_ask(locks->engine, c)->code == HOLD_OK;
    }
    hf_locks_unlock(locks);
    return holds;
}

/* ---- Sessions. ---- */

enum hf_status hf_locks_session_open(struct hf_locks *locks, const char *note,
                                     uint64_t *session)
{
    if (locks == NULL || session == NULL ||
        (note != NULL &&
         strnlen(note, HF_LOCKS_NOTE_MAX + 1) > HF_LOCKS_NOTE_MAX))
        return HF_INVALID;
    hf_locks_lock(locks);
    struct hold_command *c = hf_locks_command(locks, HOLD_SESSION_OPEN);
    c->ttl_ms = SESSION_TTL_MS;
    c->flags = HOLD_BIND;
    if (note != NULL)
        c->note = hf_bytes_text(note);
    const struct hold_out *out = hf_locks_run(locks);
    enum hf_status status = out == NULL            ? HF_NOMEM
                            : out->code == HOLD_OK ? HF_OK
                                                   : HF_FULL;
    if (status == HF_OK)
        *session = (uint64_t)reply_get_number(out->body, FIELD_SESSION);
    hf_locks_unlock(locks);
    return status;
}

enum hf_status hf_locks_session_close(struct hf_locks *locks, uint64_t session)
{
    if (locks == NULL || session == 0)
        return HF_INVALID;
    hf_locks_lock(locks);
    hf_locks_command(locks, HOLD_SESSION_CLOSE)->token = session;
    enum hf_status status =
        hf_locks_run(locks)->code == HOLD_OK ? HF_OK : HF_NOTFOUND;
    hf_locks_pass_time(locks); /* all of it ends now */
    hf_locks_unlock(locks);
    return status;
}
