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

/* The number behind the type byte; at least `low`, at most `high`. */
static enum hf_status read_number(struct hf_bytes input, size_t *at,
                                  int64_t low, int64_t high, int64_t *out)
{
    struct hf_bytes line;
    int64_t number;
    size_t next = *at;
    enum hf_status status = read_line(input, &next, 1 + HF_DIGITS_MAX, &line);

    if (status != HF_OK)
        return status;
    if (hf_parse_i64(line, &number) != HF_OK || number < low || number > high)
        return HF_INVALID;
    *out = number;
    *at = next;
    return HF_OK;
}

static enum hf_status read_text(struct hf_bytes input, size_t *at,
                                enum resp_kind kind, struct resp_value *out)
{
    struct hf_bytes text;
    enum hf_status status = read_line(input, at, LINE_MAX_BYTES, &text);

    if (status == HF_OK)
        *out = (struct resp_value){.kind = kind, .text = text};
    return status;
}

static enum hf_status read_bulk(struct hf_bytes input, size_t *at,
                                struct resp_value *out)
{
    int64_t number;
    size_t next = *at;
    enum hf_status status =
        read_number(input, &next, -1, SIZE_MAX_COUNT, &number);

    if (status != HF_OK)
        return status;
    if (number < 0) {
        *out = (struct resp_value){.kind = RESP_NULL};
        *at = next;
        return HF_OK;
    }
    size_t len = (size_t)number;
    if (input.len - next < len + 2)
        return HF_MORE;
    const char *data = input.data + next;
    if (data[len] != '\r' || data[len + 1] != '\n')
        return HF_INVALID;
    *out = (struct resp_value){.kind = RESP_BULK, .text = hf_bytes(data, len)};
    *at = next + len + 2;
    return HF_OK;
}

static enum hf_status read_header(struct hf_bytes input, size_t *at,
                                  enum resp_kind kind, struct resp_value *out)
{
    int64_t number;
    int64_t low = kind == RESP_ARRAY ? -1 : 0;
    enum hf_status status =
        read_number(input, at, low, SIZE_MAX_COUNT, &number);

    if (status == HF_OK && number < 0)
        *out = (struct resp_value){.kind = RESP_NULL};
    else if (status == HF_OK)
        *out = (struct resp_value){.kind = kind, .number = number};
    return status;
}

/* `_` and `#t` or `#f`. */
static enum hf_status read_mark(struct hf_bytes input, size_t *at,
                                struct resp_value *out)
{
    struct hf_bytes line;
    char type = input.data[*at];
    size_t next = *at;
    enum hf_status status = read_line(input, &next, 1, &line);

    if (status != HF_OK)
        return status;
    if (line.len != (type == '#' ? 1 : 0))
        return HF_INVALID;
    *out = (struct resp_value){.kind = RESP_NULL};
    if (type == '#') {
        if (line.data[0] != 't' && line.data[0] != 'f')
            return HF_INVALID;
        out->kind = RESP_BOOL;
        out->number = line.data[0] == 't';
    }
    *at = next;
    return HF_OK;
}

enum hf_status resp_read(struct hf_bytes input, size_t *at,
                         struct resp_value *out)
{
    int64_t number;

    assert(*at <= input.len);
    if (*at == input.len)
        return HF_MORE;
    switch (input.data[*at]) {
    case '+':
        return read_text(input, at, RESP_SIMPLE, out);
    case '-':
        return read_text(input, at, RESP_ERROR, out);
    case '$':
        return read_bulk(input, at, out);
    case '*':
        return read_header(input, at, RESP_ARRAY, out);
    case '%':
        return read_header(input, at, RESP_MAP, out);
    case '_':
    case '#':
        return read_mark(input, at, out);
    case ':': {
        enum hf_status status =
            read_number(input, at, INT64_MIN, INT64_MAX, &number);
        if (status == HF_OK)
            *out = (struct resp_value){.kind = RESP_NUMBER, .number = number};
        return status;
    }
    default:
        return HF_INVALID;
    }
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
        if (value.kind == RESP_ARRAY)
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
