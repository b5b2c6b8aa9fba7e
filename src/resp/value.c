/* value.c - the client's side: reading replies.
 *
 * A reply is read value by value, headers of arrays and maps being values of
 * their own. Nothing here recurses: to skip a nested reply it is enough to
 * count how many values are still to come.
 */
#include <assert.h>

#include "resp/resp.h"

/* Text of a simple string or an error, without its CRLF. */
#define LINE_MAX_BYTES RESP_BULK_MAX
/* Bytes of one bulk, values of one array. */
#define SIZE_MAX_COUNT (512 * 1024 * 1024)

/* The line behind the type byte at input[*at], without CRLF; `*at` moves
 * behind the CRLF. */
static enum hf_status read_line(struct hf_bytes input, size_t *at, size_t max,
                                struct hf_bytes *out)
{
    const char *start = input.data + *at + 1;
    size_t left = input.len - *at - 1;
    size_t look = left < max + 1 ? left : max + 1;
    const char *end = look > 0 ? memchr(start, '\r', look) : NULL;

    if (end == NULL)
        return look > max ? HF_INVALID : HF_MORE;
    size_t len = (size_t)(end - start);
    if (left - len < 2)
        return HF_MORE;
    if (end[1] != '\n')
        return HF_INVALID;
    *out = hf_bytes(start, len);
    *at += 1 + len + 2;
    return HF_OK;
}

/* The bytes of a bulk of value->number bytes, from input[*at] on. */
static enum hf_status read_bulk(struct hf_bytes input, size_t *at,
                                struct resp_value *value)
{
    size_t len = (size_t)value->number;
    const char *data = input.data + *at;

    if (input.len - *at < len + 2)
        return HF_MORE;
    if (data[len] != '\r' || data[len + 1] != '\n')
        return HF_INVALID;
    value->text = hf_bytes(data, len);
    value->number = 0;
    *at += len + 2;
    return HF_OK;
}

/* What each type of value begins with, and how long its line may be. */
static const struct type {
    char byte;
    enum resp_kind kind;
    size_t line_max;
    int64_t low; /* of a number, a length or a count; -1 of the last: null */
    int64_t high;
} types[] = {
    {'+', RESP_SIMPLE, LINE_MAX_BYTES, 0, 0},
    {'-', RESP_ERROR, LINE_MAX_BYTES, 0, 0},
    {':', RESP_NUMBER, 1 + HF_DIGITS_MAX, INT64_MIN, INT64_MAX},
    {'$', RESP_BULK, 1 + HF_DIGITS_MAX, -1, SIZE_MAX_COUNT},
    {'*', RESP_ARRAY, 1 + HF_DIGITS_MAX, -1, SIZE_MAX_COUNT},
    {'%', RESP_MAP, 1 + HF_DIGITS_MAX, 0, SIZE_MAX_COUNT},
    {'_', RESP_NULL, 1, 0, 0},
    {'#', RESP_BOOL, 1, 0, 0},
    {'>', RESP_PUSH, 1 + HF_DIGITS_MAX, 0, SIZE_MAX_COUNT},
};

enum hf_status resp_read(struct hf_bytes input, size_t *at,
                         struct resp_value *out)
{
    const struct type *type = types;
    struct resp_value value = {0};
    struct hf_bytes line;
    size_t next = *at;

    assert(*at <= input.len);
    if (*at == input.len)
        return HF_MORE;
    while (type->byte != input.data[*at]) {
        if (++type == types + sizeof types / sizeof *types)
            return HF_INVALID;
    }
    enum hf_status status = read_line(input, &next, type->line_max, &line);
    if (status != HF_OK)
        return status;
    value.kind = type->kind;
    if (type->kind == RESP_SIMPLE || type->kind == RESP_ERROR) {
        value.text = line;
    } else if (type->kind == RESP_NULL || type->kind == RESP_BOOL) {
        bool yes = line.len == 1 && line.data[0] == 't';
        bool no = line.len == 1 && line.data[0] == 'f';
        if (type->kind == RESP_NULL ? line.len > 0 : !yes && !no)
            return HF_INVALID;
        value.number = yes && type->kind == RESP_BOOL;
    } else if (hf_parse_i64(line, &value.number) != HF_OK ||
               value.number < type->low || value.number > type->high) {
        return HF_INVALID;
    } else if (type->kind != RESP_NUMBER && value.number < 0) {
        value = (struct resp_value){.kind = RESP_NULL};
    } else if (type->kind == RESP_BULK) {
        status = read_bulk(input, &next, &value);
    }
    if (status != HF_OK)
        return status;
    *out = value;
    *at = next;
    return HF_OK;
}

enum hf_status resp_skip(struct hf_bytes input, size_t *at)
{
    uint64_t pending = 1;
    size_t next = *at;

    while (pending > 0) {
        struct resp_value value;
        enum hf_status status = resp_read(input, &next, &value);
        uint64_t inside = 0;
        if (status != HF_OK)
            return status;
        if (value.kind == RESP_ARRAY || value.kind == RESP_PUSH)
            inside = (uint64_t)value.number;
        else if (value.kind == RESP_MAP)
            inside = (uint64_t)value.number * 2;
        if (__builtin_add_overflow(pending - 1, inside, &pending))
            return HF_INVALID;
    }
    *at = next;
    return HF_OK;
}

enum hf_status resp_find(struct hf_bytes input, const char *field, size_t *at)
{
    struct hf_bytes name = hf_bytes_text(field);
    struct resp_value value;
    enum hf_status status = resp_read(input, at, &value);

    if (status != HF_OK)
        return status;
    if (value.kind != RESP_ARRAY && value.kind != RESP_MAP)
        return HF_NOTFOUND;
    int64_t pairs = value.kind == RESP_MAP ? value.number : value.number / 2;
    for (int64_t i = 0; i < pairs; i++) {
        size_t peek = *at;
        status = resp_read(input, &peek, &value);
        if (status == HF_OK)
            status = resp_skip(input, at);
        if (status != HF_OK)
            return status;
        bool text = value.kind == RESP_BULK || value.kind == RESP_SIMPLE;
        if (text && hf_bytes_equal(value.text, name))
            return HF_OK;
        status = resp_skip(input, at);
        if (status != HF_OK)
            return status;
    }
    return HF_NOTFOUND;
}

enum hf_status resp_field(struct hf_bytes input, const char *field,
                          struct resp_value *out)
{
    size_t at = 0;
    enum hf_status status = resp_find(input, field, &at);

    return status == HF_OK ? resp_read(input, &at, out) : status;
}

bool resp_field_number(struct hf_bytes input, const char *field, int64_t *out)
{
    struct resp_value value;

    if (resp_field(input, field, &value) != HF_OK || value.kind != RESP_NUMBER)
        return false;
    *out = value.number;
    return true;
}
