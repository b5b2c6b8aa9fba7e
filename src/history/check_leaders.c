/* check_leaders.c - LEADER tells a value that the holder can have shown.
 *
 *   ELECT a OWNER x VALUE one   |.... token 7|
 *   PROCLAIM a 7 VALUE two                       |.... OK|
 *   LEADER a                                              |.... must be two|
 *
 * What explains a value is a grant to that owner with it, as VALUE or NOTE, or
 * a PROCLAIM with that token; a later PROCLAIM of something else ends it.
 */
#include "history/check.h"

struct shown {
    const struct call *call;
    struct hf_bytes owner;
    struct hf_bytes value;
    int64_t token;
};

/* May the holder show that value by this call? */
static bool explains(const struct call *call, const struct shown *shown)
{
    int64_t token = shown->token;

    if (call->first > shown->call->hi ||
        !hf_bytes_equal(call->terms.note, shown->value))
        return false;
    if (call->outcome == OUTCOME_REFUSED && !check_code(call, "TIMEOUT"))
        return false;
    if (call->verb == VERB_PROCLAIM)
        return call->token == (uint64_t)token;
    if (call->outcome == OUTCOME_DONE &&
        !resp_field_number(call->reply, "token", &token))
        return false;
    return token == shown->token && hf_bytes_equal(call->owner, shown->owner);
}

/* Is something else surely proclaimed, between `from` and the answer? */
static const struct call *find_later(const struct ref *refs, size_t count,
                                     const struct shown *shown, uint32_t from)
{
    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (call->verb == VERB_PROCLAIM && call->sure &&
            call->token == (uint64_t)shown->token && call->first > from &&
            call->hi < shown->call->first &&
            !hf_bytes_equal(call->terms.note, shown->value))
            return call;
    }
    return NULL;
}

static void judge_shown(struct check *c, const struct ref *refs, size_t count,
                        const struct call *call)
{
    struct shown shown = {.call = call};
    const struct call *later;
    bool found = false;
    uint32_t from = 0;

    if (!check_text(call->reply, "owner", &shown.owner) ||
        !check_text(call->reply, "value", &shown.value) ||
        !resp_field_number(call->reply, "token", &shown.token))
        return;
    for (size_t i = 0; i < count; i++) {
        const struct call *other = refs[i].thing;
        if (!explains(other, &shown))
            continue;
        bool done = other->outcome == OUTCOME_DONE;
        found = true;
        if (!done || other->hi > from)
            from = done ? other->hi : CHECK_NEVER;
    }
    if (!found && c->closed)
        check_found(c, "leader", call->id, 0,
                    "lock %.*s shows the value %.*s, which its holder cannot "
                    "have said",
                    SHOW(call->name), SHOW(shown.value));
    else if (found && (later = find_later(refs, count, &shown, from)) != NULL)
        check_found(c, "leader", call->id, later->id,
                    "lock %.*s shows the value %.*s, and another one was "
                    "proclaimed",
                    SHOW(call->name), SHOW(shown.value));
}

/* All calls about one name. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (call->verb == VERB_LEADER && call->outcome == OUTCOME_DONE &&
            !check_repeats(call))
            judge_shown(c, refs, count, call);
    }
}

void check_leaders(struct check *c)
{
    struct list refs = {0};
    struct hf_bytes name;
    bool any = false;

    for (size_t i = 0; i < c->count && !any; i++)
        any = c->calls[i].verb == VERB_LEADER;
    for (size_t i = 0; i < c->count && any; i++) {
        const struct call *call = &c->calls[i];
        enum mode mode;
        size_t at = 0;
        if (call->verb == VERB_LOCK || call->verb == VERB_PROCLAIM ||
            call->verb == VERB_LEADER)
            check_refer(c, &refs, call->name, call->call_at, call);
        while (call->verb == VERB_LOCKSET &&
               check_member(call, &at, &name, &mode))
            check_refer(c, &refs, name, call->call_at, call);
    }
    check_groups(c, &refs, sizeof(struct ref), judge);
}
