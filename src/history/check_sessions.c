/* check_sessions.c - sessions live as long as they were kept, and not longer.
 *
 * Not checked: that SESSION LIST shows all that there are, and the numbers of
 * locks and waits that INFO shows.
 */
#include "history/sessions.h"

/* So long after the end of a connection the server may not have noticed. */
#define GONE_SLACK_US 3000000u
/* Calls that are looked through for the last one of a connection. */
#define SCAN_MAX 20000u

const struct session *check_session(const struct check *c, uint64_t id)
{
    const struct session *all = c->sessions.data;
    size_t low = 0;
    size_t high = c->sessions.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->sessions.count && all[low].id == id ? &all[low] : NULL;
}

static void add_session(struct check *c, const struct call *call)
{
    int64_t id;
    int64_t ttl_ms;
    int64_t bound;

    if (call->outcome != OUTCOME_DONE)
        return;
    if (!resp_field_number(call->reply, "session", &id) ||
        !resp_field_number(call->reply, "ttl_ms", &ttl_ms) ||
        !resp_field_number(call->reply, "bound", &bound)) {
        check_found(c, "reply", call->id, 0,
                    "a session is told by session, ttl_ms and bound");
        return;
    }
    if (call->verb != VERB_SESSION_OPEN || !call->may)
        return; /* or its REQ was answered before */
    if ((uint64_t)ttl_ms != call->ttl_ms || bound != call->terms.bind)
        check_found(c, "reply", call->id, 0,
                    "the session is not as it was asked for");
    struct session *session = check_push(c, &c->sessions, sizeof *session);
    *session = (struct session){.key.by = {(uint64_t)id},
                                .id = (uint64_t)id,
                                .opened = call,
                                .ttl_ms = call->ttl_ms,
                                .bound = call->terms.bind,
                                .lo = call->first,
                                .hi = call->hi};
    check_number_given(c, session->id, call->first, call->hi, call->id);
}

/* The last that the server took from the client's connection, in the run of
 * `call`; the end of all if it was there to the last. */
static uint32_t last_alive(const struct check *c, const struct call *call)
{
    uint32_t last = call->lo;

    if (call->broken) /* another server may have taken the session over */
        return last;
    if (check_gone(c, call->client, true) == CHECK_NEVER &&
        call->run_end >= c->end)
        return c->end;
    size_t first = (size_t)(call - c->calls);
    for (size_t i = first; i < c->count && i - first < SCAN_MAX; i++) {
        const struct call *other = &c->calls[i];
        if (other->call_at > call->run_end)
            break;
        if (other->client == call->client && other->lo > last &&
            (other->arrived_at != CHECK_NEVER ||
             other->answer_at != CHECK_NEVER))
            last = other->lo;
    }
    return last;
}

/* Where the first server that answered after `at` did so: a start unbinds all
 * sessions before. What a group queued and never carried out has an outcome
 * even if nobody was told anything: that server may not have come up. */
static uint32_t answered_after(const struct check *c, uint32_t at)
{
    size_t start = check_next_start(c, at);

    if (start == c->start_count)
        return c->end;
    for (size_t i = check_calls_until(c, c->starts[start]); i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->outcome != OUTCOME_UNKNOWN && check_told(call) != CHECK_NEVER)
            return call->hi;
    }
    return c->end;
}

/* Where the server has surely written that the client had gone. */
static uint32_t left_by(const struct check *c, const struct call *call)
{
    uint32_t gone = check_gone(c, call->client, false);
    uint32_t by = answered_after(c, call->run_end);

    if (gone == CHECK_NEVER || gone > call->run_end)
        return by;
    uint64_t since_us = check_us(c, gone) + GONE_SLACK_US;
    for (size_t i = check_calls_until(c, gone); i < c->count; i++) {
        const struct call *other = &c->calls[i];
        if (other->call_at > by)
            break;
        if ((other->verb == VERB_LOCK || other->verb == VERB_UNLOCK ||
             other->verb == VERB_STOCK_SET || other->verb == VERB_RESERVE ||
             other->verb == VERB_SESSION_OPEN) &&
            other->sure && check_us(c, other->lo) > since_us)
            return other->hi < by ? other->hi : by;
    }
    return by;
}

/* Up to where the session surely lives by this OPEN or KEEP. A repeated REQ is
 * told what was, from its first call on. */
static void promise(const struct check *c, struct session *session,
                    const struct call *call, const struct list *keeping)
{
    const struct call *const *others = keeping->data;
    const struct call *const *closes = c->closes.data;
    uint32_t from = session->bound ? last_alive(c, call) : call->first;
    uint32_t cut = check_next_flush(c, call->first);

    for (size_t i = 0; i < keeping->count; i++) { /* it is another's then */
        if (others[i]->may && others[i]->client != call->client &&
            others[i]->hi >= call->first && others[i]->first < from)
            from =
                others[i]->first > call->first ? others[i]->first : call->first;
    }
    for (size_t i = 0; i < c->closes.count; i++) {
        if (closes[i]->terms.session == session->id && closes[i]->may &&
            closes[i]->first < cut)
            cut = closes[i]->first;
    }
    uint32_t until = c->end;
    if (from < c->end)
        until = check_until(c, from,
                            check_us(c, from) + session->ttl_ms * US_PER_MS);
    until = until < cut ? until : cut;
    session->end = until > session->end ? until : session->end;
}

static void settle(const struct check *c, struct session *session,
                   const struct list *keeping)
{
    const struct call *const *calls = keeping->data;

    for (size_t i = 0; i < keeping->count; i++) {
        const struct call *call = calls[i];
        if (!call->may)
            continue;
        if (call->sure)
            promise(c, session, call, keeping);
        uint32_t from = session->bound ? left_by(c, call) : call->hi;
        uint64_t over_us = check_over_us(c, from, session->ttl_ms);
        session->over_us =
            over_us > session->over_us ? over_us : session->over_us;
    }
    session->over = check_last(c, session->over_us);
    calls = c->closes.data;
    for (size_t i = 0; i < c->closes.count; i++) {
        if (calls[i]->terms.session == session->id && calls[i]->sure &&
            calls[i]->hi < session->over)
            session->over = calls[i]->hi;
    }
    for (size_t i = 0; i < c->flush_count; i++) {
        if (c->flushes[i].sure && c->flushes[i].lo > session->hi &&
            c->flushes[i].hi < session->over)
            session->over = c->flushes[i].hi;
    }
}

static void judge_shown(struct check *c, const struct session *session,
                        const struct call *call, struct hf_bytes entry)
{
    int64_t expires_ms;

    if (call->lo > session->over)
        check_found(c, "stale-read", call->id, session->opened->id,
                    "session %llu is shown, and was over",
                    (unsigned long long)session->id);
    if (resp_field_number(entry, "expires_ms", &expires_ms) && expires_ms > 0 &&
        (uint64_t)expires_ms > session->ttl_ms)
        check_found(c, "expiry", call->id, session->opened->id,
                    "session %llu lives for %lld ms more, which is longer "
                    "than anybody asked for",
                    (unsigned long long)session->id, (long long)expires_ms);
}

static void judge_list(struct check *c, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    int64_t id;

    if (call->outcome != OUTCOME_DONE ||
        !check_list(call->reply, "sessions", &list))
        return;
    while (check_list_next(&list, &entry)) {
        const struct session *session = NULL;
        if (resp_field_number(entry, "session", &id))
            session = check_session(c, (uint64_t)id);
        if (session != NULL)
            judge_shown(c, session, call, entry);
    }
}

/* A call that names a session: was it alive, or not? */
static void judge_use(struct check *c, const struct call *call)
{
    const struct session *session = check_session(c, call->terms.session);
    bool info = call->verb == VERB_SESSION_INFO;
    bool lost = check_code(call, info ? "NOTFOUND" : "LOST");

    if (session == NULL || call->verb == VERB_SESSION_OPEN)
        return;
    if (lost && call->lo > session->hi && call->hi < session->end)
        check_found(c, "lost", call->id, session->opened->id,
                    "session %llu was alive all the time",
                    (unsigned long long)session->id);
    if (call->outcome != OUTCOME_DONE)
        return;
    if (info)
        judge_shown(c, session, call, call->reply);
    else if (call->may && call->first > session->over)
        check_found(c, "revived", call->id, session->opened->id,
                    "session %llu was over, and is used",
                    (unsigned long long)session->id);
}

/* Two OPENs that were told one session: one of them asked again. */
static void judge_twice(struct check *c, const struct session *one,
                        const struct session *other)
{
    struct hf_bytes request = one->opened->request;

    if (request.len == 0 || !hf_bytes_equal(request, other->opened->request))
        check_found(c, "token", other->opened->id, one->opened->id,
                    "session %llu was opened twice",
                    (unsigned long long)one->id);
}

/* SESSION 0 is the session that was bound last on its connection. */
static void find_own(struct check *c, const struct list *binding)
{
    const struct call *const *calls = binding->data;

    for (size_t i = 0; i < c->count; i++) {
        struct call *call = &c->calls[i];
        uint64_t id = 0;
        for (size_t j = 0; call->terms.own_session && j < binding->count &&
                           calls[j]->call_at < call->call_at;
             j++) {
            int64_t told = 0;
            if (calls[j]->client != call->client || !calls[j]->may)
                continue;
            (void)resp_field_number(calls[j]->reply, "session", &told);
            if (told == 0 || (id != 0 && id != (uint64_t)told))
                id = CHECK_UNKNOWN;
            else
                id = (uint64_t)told;
        }
        if (call->terms.own_session)
            call->terms.session = id == 0 ? CHECK_UNKNOWN : id;
    }
}

static void keep_call(struct check *c, struct list *list,
                      const struct call *call)
{
    *(const struct call **)check_push(c, list, sizeof call) = call;
}

void check_sessions(struct check *c)
{
    struct list binding = {0};
    struct list keeps = {0}; /* by session */

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_SESSION_OPEN || call->verb == VERB_SESSION_KEEP)
            add_session(c, call);
        if (call->verb == VERB_SESSION_CLOSE)
            keep_call(c, &c->closes, call);
        if (call->verb == VERB_SESSION_KEEP)
            check_refer(c, &keeps, hf_bytes("", 0), call->terms.session, call);
        if (call->verb == VERB_SESSION_KEEP ||
            (call->verb == VERB_SESSION_OPEN && call->terms.bind))
            keep_call(c, &binding, call);
    }
    find_own(c, &binding);
    check_sort(&c->sessions, sizeof(struct session));
    check_sort(&keeps, sizeof(struct ref));
    size_t next = 0;
    for (size_t i = 0; i < c->sessions.count; i++) {
        struct session *session = (struct session *)c->sessions.data + i;
        const struct ref *refs = keeps.data;
        struct list keeping = {0};
        if (i > 0 && session[-1].id == session->id)
            judge_twice(c, &session[-1], session);
        keep_call(c, &keeping, session->opened);
        for (; next < keeps.count && refs[next].key.by[0] <= session->id;
             next++) {
            if (refs[next].key.by[0] == session->id)
                keep_call(c, &keeping, refs[next].thing);
        }
        settle(c, session, &keeping);
    }
    for (size_t i = 0; i < c->count; i++) {
        if (c->calls[i].terms.session != 0)
            judge_use(c, &c->calls[i]);
        if (c->calls[i].verb == VERB_SESSION_LIST)
            judge_list(c, &c->calls[i]);
    }
}
