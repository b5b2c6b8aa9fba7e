/* check_multi.c - from MULTI to EXEC: which calls are one group, and what was
 * told to each of them.
 *
 *   MULTI      |..OK|
 *   LOCK a ..        |..QUEUED|
 *   EXEC                       |............ [token 7]|
 *   so: LOCK a                 |............. token 7 |
 *
 * What one member of a refused group was told depends on those before it, of
 * which nothing is left: it is judged if none of those changed anything of the
 * same kind.
 */
#include "history/check.h"

/* What one connection has queued. */
struct queue {
    struct list members; /* of struct call * */
    bool open;
    bool wrong;
};

/* It had no effect, and what it was told says nothing. */
static void silence(struct call *call)
{
    call->verb = VERB_OTHER;
    call->terms = (struct terms){0};
    call->outcome = OUTCOME_REFUSED;
    call->code.len = call->reply.len = call->request.len = 0;
    call->wait_ms = 0;
    call->may = call->sure = false;
}

static void empty(struct queue *queue)
{
    struct call **members = queue->members.data;

    for (size_t i = 0; i < queue->members.count; i++)
        silence(members[i]);
    *queue = (struct queue){0};
}

/* The reply is not known: the words are all that there is. */
static void forget(struct call *call)
{
    call->outcome = OUTCOME_UNKNOWN;
    call->code.len = call->reply.len = 0;
}

static bool is_simple(const struct call *call, const char *text)
{
    return call->reply.len == strlen(text) + 3 && call->reply.data[0] == '+' &&
           memcmp(call->reply.data + 1, text, strlen(text)) == 0;
}

static bool is_error(const struct call *call)
{
    return call->reply.len > 0 && call->reply.data[0] == '-';
}

/* Was it told something that is neither this nor an error? */
static void judge_simple(struct check *c, const struct call *call,
                         const char *text)
{
    if (call->reply.len > 0 && !is_error(call) && !is_simple(call, text))
        check_found(c, "queued", call->id, 0, "%s is the only good answer",
                    text);
}

/* ---- What EXEC was told. ---- */

enum class { CLASS_NONE, CLASS_LOCKS, CLASS_STOCK, CLASS_FENCE, CLASS_LIMIT };

/* A key is a lock; a group of reservations ends them. */
static enum class class_of(enum verb verb) {
    if (verb == VERB_FENCE) return CLASS_FENCE;
    if (verb == VERB_LIMIT) return CLASS_LIMIT;
    if ((verb >= VERB_STOCK_SET && verb <= VERB_CLASS_SET) ||
        verb == VERB_GROUP_CONFIRM ||
        verb == VERB_GROUP_CANCEL) return CLASS_STOCK;
    return verb == VERB_KEY || (verb != VERB_OTHER && verb < VERB_STOCK_SET)
               ? CLASS_LOCKS
               : CLASS_NONE;
}

static bool changes(enum verb verb)
{
    return verb != VERB_LOCKINFO && verb != VERB_LEADER && verb != VERB_HELD &&
           verb != VERB_STOCK_GET && verb != VERB_STOCK_PLACES &&
           verb != VERB_STOCK_EXPECTED && verb != VERB_RESERVATION;
}

bool check_is_aborted(const struct call *exec)
{
    const struct group *group = exec->group;

    return exec->verb == VERB_EXEC && group != NULL && group->position > 0 &&
           !hf_bytes_is(group->members[group->position - 1]->words[0], "LIMIT");
}

/* "-EXECABORT command 3 of 4: SHORT ...": the member, and its own refusal. */
static bool read_abort(const struct call *exec, uint64_t *position,
                       uint64_t *count, struct hf_bytes *own)
{
    struct hf_bytes text;

    if (!check_between(exec->reply, "EXECABORT command ", " of ", &text) ||
        hf_parse_u64(text, position) != HF_OK ||
        !check_between(exec->reply, " of ", ": ", &text) ||
        hf_parse_u64(text, count) != HF_OK)
        return false;
    const char *from = text.data + text.len + 2;
    *own = hf_bytes(from, (size_t)(exec->reply.data + exec->reply.len - from));
    return true;
}

/* The member at whose position the group was refused. */
static void take_refusal(struct group *group, struct hf_bytes own)
{
    struct call *member = group->members[group->position - 1];
    const char *space = memchr(own.data, ' ', own.len);

    member->outcome = OUTCOME_REFUSED;
    member->reply = own;
    group->code = own;
    if (space != NULL)
        group->code.len = (size_t)(space - own.data);
    member->code = group->code;
    for (uint32_t i = 0; i + 1 < group->position; i++) {
        enum verb verb = group->members[i]->verb;
        if (class_of(verb) == class_of(member->verb) && changes(verb))
            silence(member);
    }
}

/* LIMITs of a group that the engine refused, also for its REQ, had their
 * permits meanwhile. */
static void refuse_group(struct check *c, struct group *group, bool wrong)
{
    const struct call *exec = group->exec;
    struct hf_bytes own = {0};
    uint64_t position = 0;
    uint64_t count = 0;

    if (check_code(exec, "ERR") ||
        (check_code(exec, "EXECABORT") && !wrong &&
         (!read_abort(exec, &position, &count, &own) || position == 0 ||
          position > count || count != group->count))) {
        check_found(c, "queued", exec->id, 0,
                    "a group of %u is refused in these words", group->count);
        position = 0;
    }
    group->position = (uint32_t)position;
    if (position > 0)
        take_refusal(group, own);
    for (uint32_t i = 0; i < group->count; i++) {
        struct call *member = group->members[i];
        bool limit = member->verb == VERB_LIMIT &&
                     (check_is_aborted(exec) || check_code(exec, "CONFLICT"));
        if (i + 1 == position)
            continue;
        if (limit)
            member->outcome = OUTCOME_REFUSED, member->reply.len = 0;
        else
            silence(member);
    }
}

/* Each member has its own reply of the list. */
static void share_out(struct check *c, struct group *group)
{
    const struct call *exec = group->exec;
    struct reply_list list;
    struct hf_bytes entry;
    uint32_t count = 0;

    bool good = check_list(exec->reply, NULL, &list);
    while (good && check_list_next(&list, &entry)) {
        if (count < group->count) {
            group->members[count]->reply = entry;
            group->members[count]->outcome = OUTCOME_DONE;
            good = entry.data[0] != '-';
        }
        count++;
    }
    if (good && count == group->count)
        return;
    check_found(c, "queued", exec->id, 0,
                "a group of %u has another number of replies, or an error "
                "among them",
                group->count);
    for (uint32_t i = 0; i < group->count; i++)
        forget(group->members[i]);
}

static void place(struct call *member, struct group *group)
{
    const struct call *exec = group->exec;

    member->group = group;
    member->wait_ms = 0;
    member->terms.forever = false;
    member->lo = exec->lo;
    member->hi = exec->hi;
    member->first = exec->first;
    member->told_us = exec->told_us;
    member->run_end = exec->run_end;
    member->doubtful = exec->doubtful;
    member->broken = exec->broken;
}

static void end_group(struct check *c, struct call *exec, struct queue *queue)
{
    struct group *group = check_alloc(c, sizeof *group);

    *group = (struct group){.exec = exec,
                            .members = queue->members.data,
                            .count = (uint32_t)queue->members.count};
    exec->group = group;
    if (group->count == 0)
        exec->request.len = 0; /* it stands for nothing */
    *(struct group **)check_push(c, &c->groups, sizeof group) = group;
    for (uint32_t i = 0; i < group->count; i++) {
        place(group->members[i], group);
        if (group->members[i]->terms.own_session)
            exec->terms.own_session = true;
        forget(group->members[i]);
    }
    if (queue->wrong && exec->reply.len > 0 && !check_code(exec, "EXECABORT"))
        check_found(c, "queued", exec->id, 0,
                    "a group with a command that was not queued is refused");
    if (exec->outcome == OUTCOME_REFUSED || queue->wrong)
        refuse_group(c, group, queue->wrong);
    else if (exec->outcome == OUTCOME_DONE)
        share_out(c, group);
    *queue = (struct queue){0};
}

/* ---- Queueing. ---- */

static void queue_call(struct check *c, struct call *call, struct queue *queue)
{
    judge_simple(c, call, "QUEUED");
    if (is_error(call)) {
        queue->wrong = true;
        silence(call);
    } else {
        *(struct call **)check_push(c, &queue->members, sizeof call) = call;
    }
}

/* A call on a connection that is in MULTI. */
static void take_inside(struct check *c, struct call *call, struct queue *queue)
{
    bool multi = hf_bytes_is(call->words[0], "MULTI");

    if (call->verb == VERB_EXEC &&
        (call->word_count == 1 || call->word_count == 3)) {
        end_group(c, call, queue);
    } else if (hf_bytes_is(call->words[0], "DISCARD") &&
               call->word_count == 1) {
        judge_simple(c, call, "OK");
        if (is_error(call))
            check_found(c, "queued", call->id, 0, "there is a MULTI");
        empty(queue);
    } else if (multi && call->word_count == 1) {
        if (call->reply.len > 0 && !is_error(call))
            check_found(c, "queued", call->id, 0, "there is a MULTI already");
    } else if (!hf_bytes_is(call->words[0], "QUIT")) {
        queue_call(c, call, queue);
    }
}

/* All calls of one connection, in the order of calling. */
static void join(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;
    struct queue queue = {0};

    for (size_t i = 0; i < count; i++) {
        struct call *call = &c->calls[refs[i].key.by[0]];
        bool multi = hf_bytes_is(call->words[0], "MULTI");
        if (queue.open || queue.members.count > 0) {
            take_inside(c, call, &queue);
        } else if (multi && call->word_count == 1) {
            judge_simple(c, call, "OK");
            queue.open = !is_error(call);
        } else if (is_simple(call, "QUEUED")) {
            check_found(c, "queued", call->id, 0, "there is no MULTI");
            silence(call);
        }
    }
    empty(&queue);
}

void check_join(struct check *c)
{
    struct list refs = {0};
    bool any = false;

    for (size_t i = 0; i < c->count && !any; i++)
        any = hf_bytes_is(c->calls[i].words[0], "MULTI");
    for (size_t i = 0; i < c->count && any; i++) {
        const uint32_t *client = &c->calls[i].client;
        check_refer(c, &refs, hf_bytes((const char *)client, sizeof *client), i,
                    NULL);
    }
    check_groups(c, &refs, sizeof(struct ref), join);
}

void check_members(struct check *c)
{
    struct group *const *groups = c->groups.data;

    for (size_t i = 0; i < c->groups.count; i++) {
        const struct call *exec = groups[i]->exec;
        for (uint32_t j = 0; j < groups[i]->count; j++) {
            struct call *member = groups[i]->members[j];
            if (member->outcome == OUTCOME_REFUSED)
                member->may = member->sure = false;
            else
                member->may = exec->may, member->sure = exec->sure;
            if (member->outcome == OUTCOME_DONE &&
                exec->outcome == OUTCOME_UNKNOWN)
                forget(member);
            member->first = exec->first;
        }
    }
}
