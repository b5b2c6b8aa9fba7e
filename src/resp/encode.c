/* encode.c - replies and requests to bytes.
 *
 * Each writer asks for room once, for the longest it could need, and then
 * stores straight into the buffer: there is one branch for memory per value
 * and none for format.
 */
#include <assert.h>

#include "resp/resp.h"

/* Type byte, digits of a length, CRLF. */
#define HEADER_MAX (1 + HF_DIGITS_MAX + 2)

static inline enum hf_status room(struct hf_buf *out, size_t more)
{
    if (out->cap - out->len >= more)
        return HF_OK;
    return hf_buf_reserve(out, more);
}

static inline char *put_crlf(char *at)
{
    at[0] = '\r';
    at[1] = '\n';
    return at + 2;
}

/* Most lengths have one digit, nearly all have two. */
static inline char *put_digits(char *at, uint64_t number)
{
    if (number < 10) {
        *at = (char)('0' + number);
        return at + 1;
    }
    if (number < 100) {
        at[0] = (char)('0' + number / 10);
        at[1] = (char)('0' + number % 10);
        return at + 2;
    }
    return at + hf_print_u64(at, number);
}

static inline char *put_header(char *at, char type, uint64_t number)
{
    *at = type;
    return put_crlf(put_digits(at + 1, number));
}

static inline char *put_bulk(char *at, struct hf_bytes bytes)
{
    at = put_header(at, '$', bytes.len);
    if (bytes.len > 0)
        memcpy(at, bytes.data, bytes.len);
    return put_crlf(at + bytes.len);
}

/* Ends what was written behind out->len at `end`. */
static inline enum hf_status done(struct hf_buf *out, const char *end)
{
    out->len = (size_t)(end - out->data);
    assert(out->len <= out->cap);
    return HF_OK;
}

static enum hf_status header(struct hf_buf *out, char type, uint64_t number)
{
    if (room(out, HEADER_MAX) != HF_OK)
        return HF_NOMEM;
    return done(out, put_header(out->data + out->len, type, number));
}

enum hf_status resp_simple(struct hf_buf *out, const char *text)
{
    size_t len = strlen(text);

    if (room(out, len + 3) != HF_OK)
        return HF_NOMEM;
    char *at = out->data + out->len;
    *at++ = '+';
    memcpy(at, text, len);
    return done(out, put_crlf(at + len));
}

enum hf_status resp_error(struct hf_buf *out, struct hf_bytes text)
{
    size_t need;

    if (__builtin_add_overflow(text.len, (size_t)3, &need) ||
        room(out, need) != HF_OK)
        return HF_NOMEM;
    char *at = out->data + out->len;
    *at++ = '-';
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        *at++ = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    return done(out, put_crlf(at));
}

enum hf_status resp_number(struct hf_buf *out, int64_t number)
{
    if (number >= 0)
        return header(out, ':', (uint64_t)number);
    if (room(out, HEADER_MAX + 1) != HF_OK)
        return HF_NOMEM;
    char *at = out->data + out->len;
    *at++ = ':';
    *at++ = '-';
    return done(out, put_crlf(put_digits(at, 0 - (uint64_t)number)));
}

enum hf_status resp_bulk(struct hf_buf *out, struct hf_bytes bytes)
{
    size_t need;

    if (__builtin_add_overflow(bytes.len, (size_t)HEADER_MAX + 2, &need) ||
        room(out, need) != HF_OK)
        return HF_NOMEM;
    return done(out, put_bulk(out->data + out->len, bytes));
}

enum hf_status resp_array(struct hf_buf *out, size_t count)
{
    return header(out, '*', count);
}

enum hf_status resp_map(struct hf_buf *out, int version, size_t pairs)
{
    assert(version == 2 || version == 3);
    assert(pairs <= SIZE_MAX / 2);
    return version == 3 ? header(out, '%', pairs) : header(out, '*', pairs * 2);
}

enum hf_status resp_null(struct hf_buf *out, int version)
{
    assert(version == 2 || version == 3);
    return version == 3 ? hf_buf_append(out, "_\r\n", 3)
                        : hf_buf_append(out, "$-1\r\n", 5);
}

enum hf_status resp_encode(struct hf_buf *out, size_t count,
                           const struct hf_bytes *args)
{
    size_t need = HEADER_MAX;

    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(need, HEADER_MAX + 2, &need) ||
            __builtin_add_overflow(need, args[i].len, &need))
            return HF_NOMEM;
    }
    if (room(out, need) != HF_OK)
        return HF_NOMEM;
    char *at = put_header(out->data + out->len, '*', count);
    for (size_t i = 0; i < count; i++)
        at = put_bulk(at, args[i]);
    return done(out, at);
}
