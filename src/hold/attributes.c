/* attributes.c - a small map of texts that a product has.
 *
 * One text per product: for each attribute 2 bytes length and its name, 2 bytes
 * length and its value, by name. A product without attributes has the empty
 * text, which takes no memory.
 */
#include <assert.h>

#include "hold/state.h"

struct attribute {
    struct hf_bytes name;
    struct hf_bytes value;
};

/* The attribute at `*at`, which moves behind it; false at the end. */
static bool next(struct hf_bytes all, size_t *at, struct attribute *out)
{
    if (*at == all.len)
        return false;
    size_t len = hf_get_u16(all.data + *at);
    out->name = hf_bytes(all.data + *at + 2, len);
    *at += 2 + len;
    len = hf_get_u16(all.data + *at);
    out->value = hf_bytes(all.data + *at + 2, len);
    *at += 2 + len;
    assert(*at <= all.len);
    return true;
}

static uint32_t count_of(struct hf_bytes all)
{
    struct attribute attribute;
    uint32_t count = 0;

    for (size_t at = 0; next(all, &at, &attribute);)
        count++;
    return count;
}

static struct hf_bytes attributes_of(const struct hold_engine *e,
                                     const struct product *p)
{
    return hf_text_bytes(&e->texts, p->attributes);
}

void reply_attributes(struct hold_engine *e, const struct product *p)
{
    struct hf_bytes all = attributes_of(e, p);
    struct attribute attribute;

    reply_field(&e->body, FIELD_ATTRIBUTES);
    reply_texts(&e->body, count_of(all));
    for (size_t at = 0; next(all, &at, &attribute);) {
        reply_text(&e->body, attribute.name);
        reply_text(&e->body, attribute.value);
    }
}

/* A text with its length at `at`; where it ends, or 0 if it is too long, or
 * empty. */
static size_t text_end(struct hf_bytes all, size_t at, size_t max)
{
    if (all.len - at < 2)
        return 0;
    size_t len = hf_get_u16(all.data + at);
    return len == 0 || len > max || all.len - at - 2 < len ? 0 : at + 2 + len;
}

bool attributes_are_whole(struct hf_bytes all)
{
    struct hf_bytes last = {"", 0};
    uint32_t count = 0;

    if (all.len > HOLD_ATTRS_BYTES)
        return false;
    for (size_t at = 0; at < all.len; count++) {
        size_t name_end = text_end(all, at, HOLD_ATTR_MAX);
        struct hf_bytes name = hf_bytes(all.data + at + 2, name_end - at - 2);
        if (name_end == 0 || hf_bytes_compare(last, name) >= 0)
            return false;
        last = name;
        at = text_end(all, name_end, HOLD_NOTE_MAX);
        if (at == 0)
            return false;
    }
    return count <= HOLD_ATTRS_MAX;
}

/* The attributes as the command leaves them, in `out`. */
static struct hf_bytes change(struct hf_bytes all, const struct hold_command *c,
                              char out[2 * HOLD_ATTRS_BYTES])
{
    struct attribute attribute;
    char *end = out;
    bool put = c->note.len == 0; /* there is nothing to put */

    for (size_t at = 0; next(all, &at, &attribute);) {
        int order = hf_bytes_compare(attribute.name, c->reason);
        if (!put && order >= 0) {
            end = hold_put_text(hold_put_text(end, c->reason), c->note);
            put = true;
        }
        if (order != 0)
            end = hold_put_text(hold_put_text(end, attribute.name),
                                attribute.value);
    }
    if (!put)
        end = hold_put_text(hold_put_text(end, c->reason), c->note);
    return hf_bytes(out, (size_t)(end - out));
}

void attribute_need(struct hold_engine *e, const struct hold_command *c,
                    struct need *need)
{
    (void)c; /* others are kept with it: how long they are is not known yet */
    need_text(e, need, HOLD_ATTRS_BYTES);
}

bool attribute_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    char out[2 * HOLD_ATTRS_BYTES];

    if (stock_known_check(e, c, at))
        return true;
    struct hf_bytes all =
        change(attributes_of(e, product_at(e, at.number)), c, out);
    if (count_of(all) > HOLD_ATTRS_MAX)
        return refuse_overload(e, "attributes-max", HOLD_ATTRS_MAX);
    if (all.len > HOLD_ATTRS_BYTES)
        return refuse_overload(e, "attributes-bytes", HOLD_ATTRS_BYTES);
    return false;
}

void attribute_set(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    char out[2 * HOLD_ATTRS_BYTES];
    struct product *p = product_edit(e, at.number);
    struct hf_bytes all = change(attributes_of(e, p), c, out);

    hf_texts_drop(&e->texts, p->attributes);
    enum hf_status status =
        hf_texts_put(&e->texts, all, HOLD_ATTRS_BYTES, &p->attributes);
    assert(status == HF_OK); /* promised */
    (void)status;
    p->updated_us = e->now_us;
    p->version = emit(e, EVENT_STOCK_ATTRIBUTES, c->name, 0);
    if (e->tells) {
        told(e)->owner = tell_text(e, c->note);
        told(e)->note = tell_text(e, c->reason);
    }
    reply_product(e, p, 0);
}
