/* check_done.c - work that is done is told so, for its time, with its result.
 *
 *   UNLOCK a 7 DONE 500 RESULT ok   |.... OK|
 *   LOCK a ...                                  |.... must be DONE ... ok|
 */
#include "history/check.h"

/* One call about a name: marks it, is told of the mark, or is granted it. */
struct mark {
    struct key key;
    const struct call *call;
};

static bool is_lock(const struct call *call)
{
    return call->verb == VERB_LOCK || call->verb == VERB_LOCKSET;
}

static bool may_mark(const struct call *call)
{
    return call->verb == VERB_UNLOCK && call->terms.done && call->may;
}

/* The name and the result that a DONE tells. */
static bool read_done(const struct call *call, struct hf_bytes *name,
                      struct hf_bytes *result)
{
    return check_between(call->reply, "the work of '", "' is done", name) &&
           check_between(call->reply, "ms more: ", "\r\n", result);
}

static bool explains(const struct check *c, const struct call *marks,
                     const struct call *told, struct hf_bytes result)
{
    return marks->first <= told->hi &&
           check_over_us(c, marks->hi, marks->terms.done_ms) >=
               check_us(c, told->first) &&
           hf_bytes_equal(marks->terms.result, result);
}

static void judge_told(struct check *c, const struct mark *marks, size_t count,
                       const struct call *told)
{
    struct hf_bytes name;
    struct hf_bytes result;
    bool found = !c->closed || !read_done(told, &name, &result);

    for (size_t i = 0; i < count && !found; i++)
        found =
            may_mark(marks[i].call) && explains(c, marks[i].call, told, result);
    if (!found)
        check_found(c, "done", told->id, 0,
                    "lock %.*s is told to be done, with result %.*s, which "
                    "nobody can have said",
                    SHOW(name), SHOW(result));
}

/* Was it granted when it was surely marked? */
static void judge_granted(struct check *c, const struct mark *marks,
                          size_t count, const struct call *granted)
{
    for (size_t i = 0; i < count; i++) {
        const struct call *call = marks[i].call;
        if (!may_mark(call) || !call->sure || call->hi >= granted->first)
            continue;
        uint32_t until = check_until(c, call->first,
                                     check_us(c, call->first) +
                                         call->terms.done_ms * US_PER_MS);
        bool changed = check_flushed(c, call->first, granted->hi);
        for (size_t j = 0; j < count && !changed; j++)
            changed = j != i && may_mark(marks[j].call) &&
                      marks[j].call->hi >= call->first;
        if (granted->hi < until && !changed) {
            check_found(c, "done", granted->id, call->id,
                        "lock %.*s was done, and is granted",
                        SHOW(marks[i].key.name));
            return;
        }
    }
}

static void judge(struct check *c, void *items, size_t count)
{
    const struct mark *marks = items;
    size_t made = 0;

    for (size_t i = 0; i < count; i++)
        made += may_mark(marks[i].call);
    for (size_t i = 0; i < count; i++) {
        const struct call *call = marks[i].call;
        if (check_code(call, "DONE"))
            judge_told(c, marks, count, call);
        else if (made > 0 && is_lock(call) && call->sure)
            judge_granted(c, marks, count, call);
    }
}

static void add(struct check *c, struct list *marks, const struct call *call,
                struct hf_bytes name)
{
    struct mark *mark = check_push(c, marks, sizeof *mark);

    *mark = (struct mark){{name, {call->call_at}}, call};
}

void check_done(struct check *c)
{
    struct list marks = {0};
    struct hf_bytes result;
    struct hf_bytes name;
    bool any = false;

    for (size_t i = 0; i < c->count && !any; i++)
        any = c->calls[i].terms.done || check_code(&c->calls[i], "DONE");
    for (size_t i = 0; i < c->count && any; i++) {
        const struct call *call = &c->calls[i];
        enum mode mode;
        size_t at = 0;
        if (check_code(call, "DONE")) {
            if (read_done(call, &name, &result))
                add(c, &marks, call, name);
        } else if (call->verb == VERB_LOCKSET) {
            while (check_member(call, &at, &name, &mode))
                add(c, &marks, call, name);
        } else if (call->verb == VERB_LOCK || call->terms.done) {
            add(c, &marks, call, call->name);
        }
    }
    check_groups(c, &marks, sizeof(struct mark), judge);
}
