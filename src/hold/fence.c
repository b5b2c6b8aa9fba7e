/* fence.c - the newest token that each resource has seen.
 *
 * A resource that asks before each write refuses the late write of a holder
 * that lost its lock without noticing. Tokens only grow, so one number per
 * resource is enough. It is kept until a flush: forgetting it would let an old
 * token in again.
 */
#include <assert.h>

#include "hold/state.h"

static struct fence *fence_at(const struct hold_engine *e, uint32_t number)
{
    return hf_index_at(&e->fences, number);
}

bool fence_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    if (at.number == 0) {
        if (hf_index_count(&e->fences) >= e->bounds.fences_max)
            return refuse_overload(e, "fences_max", e->bounds.fences_max);
        return c->token == 0; /* not older than nothing */
    }
    struct fence *fence = fence_at(e, at.number);
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
    struct fence *fence = fence_at(e, number);
    assert(c->token > fence->newest);
    fence->newest = c->token;
    emit(e, EVENT_FENCE_RAISED, c->name, 0);
}
