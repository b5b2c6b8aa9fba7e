/* model_class.c - classes of reservations in the model. */
#include <assert.h>

#include "sim/engine/model.h"

struct model_class *model_find_class(struct model *model, struct hf_bytes name)
{
    for (size_t i = 0; i < model->class_count; i++) {
        if (model_is(&model->classes[i].name, name))
            return &model->classes[i];
    }
    return NULL;
}

const struct model_class *model_class_of(const struct model *model,
                                         uint64_t number)
{
    for (size_t i = 0; i < model->class_count; i++) {
        if (model->classes[i].number == number)
            return &model->classes[i];
    }
    return NULL;
}

uint64_t model_class_number(struct model *model, struct hf_bytes name)
{
    const struct model_class *class = model_find_class(model, name);

    return class == NULL ? 0 : class->number;
}

uint64_t model_ttl_ms(struct model *model, const struct hold_command *c)
{
    const struct model_class *class = model_find_class(model, c->class);

    if (c->ttl_ms > 0)
        return c->ttl_ms;
    if (class != NULL && class->ttl_ms > 0)
        return class->ttl_ms;
    return model->bounds.reserve_ttl_ms > 0 ? model->bounds.reserve_ttl_ms : 1;
}

uint64_t model_grace_ms(const struct model *model)
{
    uint64_t longest = model->bounds.grace_ms;

    for (size_t i = 0; i < model->class_count; i++) {
        if (model->classes[i].grace_ms > longest)
            longest = model->classes[i].grace_ms;
    }
    return longest;
}

bool model_has_grace(struct model *model, const struct model_reservation *r,
                     uint64_t now_us)
{
    const struct model_class *class = model_class_of(model, r->class);
    uint64_t grace_ms =
        class != NULL ? class->grace_ms : model->bounds.grace_ms;

    /* that it is over counts, whether or not it was swept */
    return (r->status == MODEL_EXPIRED || r->status == MODEL_PENDING) &&
           r->expires_us <= now_us && now_us < r->expires_us + grace_ms * 1000;
}

bool model_meets_cap(struct model *model, const struct model_reservation *r,
                     const struct hold_command *c)
{
    const struct model_class *class = model_class_of(model, r->class);
    uint64_t most =
        class != NULL ? class->extends_max : model->bounds.extends_max;
    uint64_t life_ms =
        class != NULL ? class->life_ms : model->bounds.extend_total_ms;
    const char *limit = "extensions";

    if (c->kind != HOLD_EXTEND)
        return false;
    if (most == 0 || r->extends < most) {
        limit = "ms of life";
        most = life_ms;
        if (most == 0 || (model->now_us - r->created_us) / 1000.0L +
                                 (long double)c->ttl_ms <=
                             (long double)most)
            return false;
    }
    model->figures[FIGURE_STOCK_CAPPED]++;
    struct hf_buf *out = model_reply(model, HOLD_STATE);
    reply_map(out, 3);
    reply_field_text(out, FIELD_ID, c->name);
    reply_field_text(out, FIELD_LIMIT, hf_bytes_text(limit));
    reply_field_number(out, FIELD_MAXIMUM, (int64_t)most);
    return true;
}

void model_write_class(struct hf_buf *out, const struct model_class *class)
{
    reply_map(out, 5);
    reply_field_text(out, FIELD_NAME, model_bytes(&class->name));
    reply_field_number(out, FIELD_TTL_MS, (int64_t) class->ttl_ms);
    reply_field_number(out, FIELD_GRACE_MS, (int64_t) class->grace_ms);
    reply_field_number(out, FIELD_EXTENDS, (int64_t) class->extends_max);
    reply_field_number(out, FIELD_LIFE_MS, (int64_t) class->life_ms);
}

static void set(struct model *model, struct model_class *class,
                const struct hold_command *c)
{
    if (class == NULL && model->class_count >= model->bounds.classes_max) {
        model_overloaded(model, "classes-max", model->bounds.classes_max);
        return;
    }
    if (class == NULL) {
        assert(model->class_count < MODEL_MAX);
        class = &model->classes[model->class_count++];
        class->name = model_text(c->name);
        class->number = ++model->class_last;
    }
    class->ttl_ms = c->ttl_ms;
    class->grace_ms = c->grace_ms;
    class->extends_max = c->count;
    class->life_ms = c->maxhold_ms;
    model_event(model, EVENT_CLASS_SET, c->name, 0);
    model_reply(model, HOLD_OK);
}

static void run(struct model *model, const struct hold_command *c)
{
    struct model_class *class = model_find_class(model, c->name);

    if (c->kind == HOLD_CLASS_SET) {
        set(model, class, c);
    } else if (class == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_CLASS, c->name);
    } else {
        model_close_gap(model->classes, sizeof *class, &model->class_count,
                        (size_t)(class - model->classes));
        model_event(model, EVENT_CLASS_DELETED, c->name, 0);
        model_reply(model, HOLD_OK);
    }
}

static void clear(struct model *model)
{
    model->class_count = 0;
}

MODEL_PART("class", run, clear);
