/* fence.c - the newest token that each resource has seen.
 *
 * A resource that asks before each write refuses the late write of a holder
 * that lost its lock without noticing. Tokens only grow, so one number per
 * resource is enough. It is kept until a flush: forgetting it would let an old
 * token in again.
 */
#include <assert.h>

#include "hold/state.h"

static struct fence *fence_find(const struct hold_engine *e,
                                struct hf_bytes name)
{
    uint32_t number = hf_index_find(&e->fences, name);
    return number == 0 ? NULL : hf_index_at(&e->fences, number);
}

bool fence_check(struct hold_engine *e, const struct hold_command *c)
{
    struct fence *fence = fence_find(e, c->name);

    if (fence == NULL) {
        if (hf_index_count(&e->fences) >= e->bounds.fences_max)
            return refuse_overload(e, "fences_max", e->bounds.fences_max);
        return c->token == 0; /* not older than nothing */
    }
    if (c->token >= fence->newest)
        return c->token == fence->newest;
    struct hf_buf *body = refuse(e, HOLD_STALE, 3);
    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_number(body, FIELD_TOKEN, (int64_t)c->token);
    reply_field_number(body, FIELD_NEWEST, (int64_t)fence->newest);
    return true;
}

void fence_raise(struct hold_engine *e, const struct hold_command *c)
{
    struct fence *fence = fence_find(e, c->name);

    if (fence == NULL) {
        uint32_t number = hf_index_add(&e->fences, c->name);
        assert(number != 0); /* promised */
        fence = hf_index_at(&e->fences, number);
    }
    assert(c->token > fence->newest);
    fence->newest = c->token;
    emit(e, EVENT_FENCE_RAISED, c->name, 0);
}
