/* reply.c - writes and reads the engine's answers. */
#include "hold/reply.h"

#define NAME(kind, name) name,

const char *hold_field_name(enum hold_field field)
{
    static const char *const names[] = {HOLD_FIELDS(NAME)};

    assert((unsigned)field < HOLD_FIELD_COUNT);
    return names[field];
}

const char *hold_code_name(enum hold_code code)
{
    static const char *const names[] = {HOLD_CODES(NAME)};

    assert((unsigned)code < HOLD_ALL_CODES);
    return names[code];
}

/* Room for `len` more bytes: there by construction. */
static char *extend(struct hf_buf *out, size_t len)
{
    char *place = out->data + out->len;

    assert(out->cap - out->len >= len);
    out->len += len;
    return place;
}

void reply_number(struct hf_buf *out, int64_t number)
{
    char *place = extend(out, 9);

    place[0] = REPLY_NUMBER;
    hf_put_u64(place + 1, (uint64_t)number);
}

void reply_text(struct hf_buf *out, struct hf_bytes text)
{
    char *place = extend(out, 3 + text.len);

    assert(text.len <= UINT16_MAX);
    place[0] = REPLY_TEXT;
    hf_put_u16(place + 1, (uint16_t)text.len);
    if (text.len > 0)
        memcpy(place + 3, text.data, text.len);
}

void reply_null(struct hf_buf *out)
{
    *extend(out, 1) = REPLY_NULL;
}

static void reply_count(struct hf_buf *out, char tag, uint32_t count)
{
    char *place = extend(out, 5);

    place[0] = tag;
    hf_put_u32(place + 1, count);
}

void reply_ok(struct hf_buf *out)
{
    *extend(out, 1) = REPLY_OK;
}

void reply_list(struct hf_buf *out, uint32_t count)
{
    reply_count(out, REPLY_LIST, count);
}

void reply_map(struct hf_buf *out, uint32_t count)
{
    reply_count(out, REPLY_MAP, count);
}

void reply_field(struct hf_buf *out, enum hold_field field)
{
    *extend(out, 1) = (char)field;
}

void reply_field_number(struct hf_buf *out, enum hold_field field,
                        int64_t number)
{
    char *place = extend(out, 10);

    place[0] = (char)field;
    place[1] = REPLY_NUMBER;
    hf_put_u64(place + 2, (uint64_t)number);
}

void reply_field_text(struct hf_buf *out, enum hold_field field,
                      struct hf_bytes text)
{
    reply_field(out, field);
    reply_text(out, text);
}

void reply_texts(struct hf_buf *out, uint32_t count)
{
    reply_count(out, REPLY_TEXTS, count);
}

void reply_skip(struct hf_bytes body, size_t *at)
{
    for (uint64_t left = 1; left > 0; left--) {
        struct reply_node node = reply_next(body, at);
        if (node.kind == REPLY_LIST)
            left += node.count;
        if (node.kind == REPLY_TEXTS)
            left += 2 * (uint64_t)node.count;
        for (uint32_t i = 0; node.kind == REPLY_MAP && i < node.count; i++) {
            (void)reply_next_field(body, at);
            reply_skip(body, at);
        }
    }
}

/* Do values of its own follow? In a map these stand behind all else. */
static bool has_items(struct reply_node node)
{
    return node.kind == REPLY_LIST || node.kind == REPLY_MAP ||
           node.kind == REPLY_TEXTS;
}

void reply_age(struct hf_buf *body, uint64_t passed_ms)
{
    struct hf_bytes bytes = hf_buf_bytes(body);
    size_t at = 0;

    if (bytes.len == 0)
        return;
    struct reply_node map = reply_next(bytes, &at);
    for (uint32_t i = 0; map.kind == REPLY_MAP && i < map.count; i++) {
        enum hold_field field = reply_next_field(bytes, &at);
        struct reply_node node = reply_next(bytes, &at);
        if (has_items(node))
            return; /* the times stand before the items */
        if (field != FIELD_SAFE_MS && field != FIELD_EXPIRES_MS)
            continue;
        uint64_t left = (uint64_t)node.number;
        left = left > passed_ms ? left - passed_ms : 0;
        hf_put_u64(body->data + at - 8, left);
    }
}

/* The value of `field` in a map of scalars, and where it ends. */
static bool find_field(struct hf_bytes body, enum hold_field field,
                       struct reply_node *out, size_t *end)
{
    size_t at = 0;

    if (body.len == 0)
        return false;
    struct reply_node map = reply_next(body, &at);
    if (map.kind != REPLY_MAP)
        return false;
    for (uint32_t i = 0; i < map.count; i++) {
        enum hold_field found = reply_next_field(body, &at);
        *out = reply_next(body, &at);
        *end = at;
        if (found == field)
            return true;
        if (has_items(*out))
            return false;
    }
    return false;
}

int64_t reply_get_number(struct hf_bytes body, enum hold_field field)
{
    struct reply_node node;
    size_t end;
    return find_field(body, field, &node, &end) ? node.number : 0;
}

void reply_set_number(struct hf_buf *body, enum hold_field field,
                      int64_t number)
{
    struct reply_node node;
    size_t end = 0;
    bool found = find_field(hf_buf_bytes(body), field, &node, &end);

    assert(found && node.kind == REPLY_NUMBER);
    (void)found;
    hf_put_u64(body->data + end - 8, (uint64_t)number);
}

struct hf_bytes reply_get_text(struct hf_bytes body, enum hold_field field)
{
    struct reply_node node;
    size_t end;

    if (!find_field(body, field, &node, &end) || node.kind != REPLY_TEXT)
        return hf_bytes("", 0);
    return node.text;
}
