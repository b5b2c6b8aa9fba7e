/* mark.c - names that are closed for a while, or whose work is done. */
#include "hold/tree.h"

enum hf_status mark_promise(struct hold_engine *e, uint32_t count)
{
    if (hf_slab_promise(&e->marks, count) != HF_OK)
        return HF_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (hf_agenda_promise(&e->due) == HF_OK)
            continue;
        while (i-- > 0)
            hf_agenda_unpromise(&e->due);
        hf_slab_unpromise(&e->marks, count);
        return HF_NOMEM;
    }
    e->delays += count;
    return HF_OK;
}

void mark_unpromise(struct hold_engine *e, uint32_t count)
{
    assert(e->delays >= count);
    e->delays -= count;
    hf_slab_unpromise(&e->marks, count);
    for (uint32_t i = 0; i < count; i++)
        hf_agenda_unpromise(&e->due);
}

uint64_t mark_due_us(const struct mark *mark)
{
    const uint64_t times[] = {mark->closed_us, mark->done_us, mark->below_us};
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i] != 0 && times[i] < first)
            first = times[i];
    }
    return first;
}

/* The mark of that name; a new one, not due yet, if it has none. */
static struct mark *mark_of(struct hold_engine *e, uint32_t lock_number)
{
    struct lock *lock = lock_edit(e, lock_number);

    if (lock->mark == 0) {
        lock->mark = hf_slab_take(&e->marks);
        assert(lock->mark != 0); /* promised */
        struct mark *mark = mark_edit(e, lock->mark);
        mark->lock = lock_number;
        mark->order = ++e->seq;
        due_add(e, DUE_MARK, lock->mark, UINT64_MAX, mark->order);
    }
    return mark_edit(e, lock->mark);
}

static void schedule(struct hold_engine *e, const struct mark *mark)
{
    hf_agenda_change(&e->due, mark->due, mark_due_us(mark), mark->order);
}

void mark_close(struct hold_engine *e, uint32_t lock_number, uint64_t until_us,
                bool tree)
{
    struct mark *mark = mark_of(e, lock_number);

    mark->closed_us = max_u64(mark->closed_us, until_us);
    e->tree_stops++;
    if (tree)
        mark->below_us = max_u64(mark->below_us, until_us);
    schedule(e, mark);
}

static void reply_done(struct hf_buf *body, const struct hold_engine *e,
                       uint32_t lock_number)
{
    const struct mark *mark = mark_at(e, lock_at(e, lock_number)->mark);

    reply_field_text(body, FIELD_NAME, lock_name(e, lock_number));
    reply_field_text(body, FIELD_RESULT,
                     hf_text_bytes(&e->texts, mark->result));
    reply_field_number(body, FIELD_EXPIRES_MS, left_ms(e, mark->done_us));
}

bool refuse_done(struct hold_engine *e, uint32_t lock_number)
{
    if (!is_done(e, lock_at(e, lock_number)))
        return false;
    reply_done(refuse(e, HOLD_DONE, 3), e, lock_number);
    return true;
}

void mark_done(struct hold_engine *e, uint32_t lock_number, uint64_t until_us,
               struct hf_bytes result)
{
    struct mark *mark = mark_of(e, lock_number);
    const struct lock *lock = lock_at(e, lock_number);

    hf_texts_drop(&e->texts, mark->result);
    keep_text(e, result, &mark->result);
    mark->done_us = until_us;
    schedule(e, mark);
    e->done_body.len = 0;
    reply_map(&e->done_body, 3);
    reply_done(&e->done_body, e, lock_number);
    while (lock->queue.first != 0)
        waiter_skip(e, part_at(e, lock->queue.first)->group,
                    hf_buf_bytes(&e->done_body));
}

void mark_settle(struct hold_engine *e, uint32_t number)
{
    if (number == 0)
        return;
    struct mark *mark = mark_edit(e, number);
    bool below = mark->below_us != 0 && mark->below_us <= e->now_us;
    bool opens = mark->closed_us != 0 && mark->closed_us <= e->now_us;
    uint32_t lock = mark->lock;
    if (below)
        mark->below_us = 0;
    if (opens)
        mark->closed_us = 0;
    if (mark->done_us <= e->now_us) {
        hf_texts_drop(&e->texts, mark->result);
        mark->result = (struct hf_text){0};
        mark->done_us = 0;
    }
    if ((mark->closed_us | mark->done_us) != 0) {
        schedule(e, mark);
    } else {
        lock_edit(e, lock)->mark = 0;
        hf_agenda_remove(&e->due, mark->due);
        hf_slab_give(&e->marks, number);
    }
    if (!below && !opens)
        return;
    serve_later(e, lock);
    serve_related(e, lock, below);
}

void mark_expire(struct hold_engine *e, uint32_t number)
{
    uint32_t lock = mark_at(e, number)->lock;

    mark_settle(e, number);
    serve_later(e, lock);
    serve_all(e);
}
