/* class.c - classes of reservations: TTL, grace and caps under a name.
 *
 * A reservation has the number of its class, which no other class ever had. So
 * a class may be deleted and made again without those of the first one
 * belonging to the second.
 */
#include <assert.h>

#include "hold/reserve.h"

const struct class *class_of(const struct hold_engine *e, uint32_t number)
{
    for (uint32_t i = 1; number != 0 && i < hf_index_top(&e->classes); i++) {
        const struct class *class = hf_index_used(&e->classes, i);
        if (class != NULL && class->number == number)
            return class;
    }
    return NULL;
}

void classes_changed(struct hold_engine *e)
{
    e->grace_ms = e->bounds.grace_ms;
    for (uint32_t i = 1; i < hf_index_top(&e->classes); i++) {
        const struct class *class = hf_index_used(&e->classes, i);
        if (class != NULL)
            e->grace_ms = max_u64(e->grace_ms, class->grace_ms);
    }
}

void class_set_need(struct hold_engine *e, const struct hold_command *c,
                    struct need *need)
{
    need_record(e, need, &e->classes, c->name.len);
}

bool class_set_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    (void)c;
    return at.number == 0 &&
           hf_index_count(&e->classes) >= e->bounds.classes_max &&
           refuse_overload(e, "classes-max", e->bounds.classes_max);
}

void class_set(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint32_t number = at.number;

    if (number == 0)
        number = hf_index_add_hashed(&e->classes, at.hash, c->name);
    assert(number != 0); /* promised */
    struct class *class = class_edit(e, number);
    if (at.number == 0)
        class->number = ++e->class_last;
    class->ttl_ms = c->ttl_ms;
    class->grace_ms = c->grace_ms;
    class->extends_max = c->count;
    class->life_ms = c->maxhold_ms;
    classes_changed(e);
    emit(e, EVENT_CLASS_SET, c->name, 0);
}

bool refuse_class(struct hold_engine *e, struct hf_bytes name)
{
    reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_CLASS, name);
    return true;
}

bool class_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    return at.number == 0 && refuse_class(e, c->name);
}

void class_del(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    emit(e, EVENT_CLASS_DELETED, c->name, 0);
    hf_index_remove(&e->classes, at.number);
    classes_changed(e);
}

static void show_class(struct hold_engine *e, const void *record)
{
    const struct class *class = record;
    struct hf_buf *body = &e->body;

    reply_map(body, 5);
    reply_field_text(body, FIELD_NAME, hf_index_name(&e->classes, class));
    reply_field_number(body, FIELD_TTL_MS, (int64_t) class->ttl_ms);
    reply_field_number(body, FIELD_GRACE_MS, (int64_t) class->grace_ms);
    reply_field_number(body, FIELD_EXTENDS, (int64_t) class->extends_max);
    reply_field_number(body, FIELD_LIFE_MS, (int64_t) class->life_ms);
}

void class_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_CLASSES, &e->classes, NULL, show_class);
}

enum hf_status class_loaded(struct hold_engine *e, uint32_t number,
                            uint64_t link)
{
    const struct class *class = class_at(e, number);

    (void)link;
    if (class->number == 0 || class->number > e->class_last)
        return HF_CORRUPT;
    classes_changed(e);
    return HF_OK;
}
