/* fence.c - the newest token that each resource has seen.
 *
 * A resource that asks before each write refuses the late write of a holder
 * that lost its lock without noticing. Tokens only grow, so one number per
 * resource is enough. It is kept until it is deleted on purpose: forgetting it
 * lets an old token in again.
 *
 * A token is a sequence number, and every change is given one, of locks or not.
 * A token beyond the newest of these numbers is a mistake: taken, it would lock
 * out every true token for a long time.
 */
#include <assert.h>

#include "hold/state.h"

void fence_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need)
{
    need_record(e, need, &e->fences, c->name.len);
}

bool fence_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    if (c->token > e->seq) {
        struct hf_buf *body = refuse(e, HOLD_BADARG, 2);
        reply_field_number(body, FIELD_TOKEN, (int64_t)c->token);
        reply_field_number(body, FIELD_NEWEST, (int64_t)e->seq);
        return true;
    }
    if (at.number == 0) {
        if (c->token == 0)
            return true; /* not older than nothing, and nothing to keep */
        return hf_index_count(&e->fences) >= e->bounds.fences_max &&
               refuse_overload(e, "fences-max", e->bounds.fences_max);
    }
    struct fence *fence = fence_edit(e, at.number);
    if (c->token >= fence->newest)
        return c->token == fence->newest;
    struct hf_buf *body = refuse(e, HOLD_STALE, 3);
    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_number(body, FIELD_TOKEN, (int64_t)c->token);
    reply_field_number(body, FIELD_NEWEST, (int64_t)fence->newest);
    return true;
}

void fence_raise(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    uint32_t number = at.number;

    if (number == 0)
        number = hf_index_add_hashed(&e->fences, at.hash, c->name);
    assert(number != 0); /* promised */
    struct fence *fence = fence_edit(e, number);
    assert(c->token > fence->newest);
    fence->newest = c->token;
    emit(e, EVENT_FENCE_RAISED, c->name, 0);
    told(e)->token = c->token;
}

bool fence_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (at.number == 0)
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_RESOURCE, c->name);
    return at.number == 0;
}

void fence_del(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    emit(e, EVENT_FENCE_DELETED, c->name, 0);
    hf_index_remove(&e->fences, at.number);
}
