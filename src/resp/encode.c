/* encode.c - the codecs of RESP2 and RESP3, and requests.
 *
 * Each writer asks for room once, for the longest it could need, and then
 * stores straight into the buffer: there is one branch for memory per value
 * and none for format.
 */
#include <assert.h>

#include "resp/reply.h"
#include "resp/resp.h"

/* Type byte, sign, digits of a number, CRLF. */
#define NUMBER_MAX (1 + 1 + HF_DIGITS_MAX + 2)

static inline enum hf_status room(struct hf_buf *out, size_t more)
{
    if (out->cap - out->len >= more)
        return HF_OK;
    return hf_buf_reserve(out, more);
}

/* Where so many bytes can be written; NULL: the reply has failed. */
static inline char *reserve(struct reply *reply, size_t more)
{
    if (room(reply->out, more) == HF_OK)
        return reply->out->data + reply->out->len;
    reply->failed = true;
    return NULL;
}

/* Ends what was written behind out->len at `end`. */
static inline void done(struct hf_buf *out, const char *end)
{
    out->len = (size_t)(end - out->data);
    assert(out->len <= out->cap);
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

static inline char *put_number(char *at, int64_t number)
{
    *at++ = ':';
    if (number >= 0)
        return put_crlf(put_digits(at, (uint64_t)number));
    *at++ = '-';
    return put_crlf(put_digits(at, 0 - (uint64_t)number));
}

static inline char *put_bytes(char *at, struct hf_bytes bytes)
{
    if (bytes.len > 0)
        memcpy(at, bytes.data, bytes.len);
    return at + bytes.len;
}

static inline char *put_bulk(char *at, struct hf_bytes bytes)
{
    return put_crlf(put_bytes(put_header(at, '$', bytes.len), bytes));
}

/* One line: a control byte would end it, or drive a terminal. */
static char *put_line(char *at, struct hf_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        *at++ = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    return at;
}

static void write_header(struct reply *reply, char type, uint64_t number)
{
    char *at = reserve(reply, NUMBER_MAX);

    if (at != NULL)
        done(reply->out, put_header(at, type, number));
}

static void write_number(struct reply *reply, int64_t number)
{
    char *at = reserve(reply, NUMBER_MAX);

    if (at != NULL)
        done(reply->out, put_number(at, number));
}

static void write_text(struct reply *reply, struct hf_bytes text)
{
    char *at = reserve(reply, text.len + NUMBER_MAX + 2);

    if (at != NULL)
        done(reply->out, put_bulk(at, text));
}

static void write_simple(struct reply *reply, struct hf_bytes text)
{
    char *at = reserve(reply, text.len + 3);

    if (at == NULL)
        return;
    *at++ = '+';
    done(reply->out, put_crlf(put_bytes(at, text)));
}

static void write_null2(struct reply *reply)
{
    reply->failed |= hf_buf_append(reply->out, "$-1\r\n", 5) != HF_OK;
}

static void write_null3(struct reply *reply)
{
    reply->failed |= hf_buf_append(reply->out, "_\r\n", 3) != HF_OK;
}

static void write_list(struct reply *reply, size_t count)
{
    write_header(reply, '*', count);
}

static void write_map2(struct reply *reply, size_t pairs)
{
    assert(pairs <= SIZE_MAX / 2);
    write_header(reply, '*', pairs * 2);
}

static void write_map3(struct reply *reply, size_t pairs)
{
    write_header(reply, '%', pairs);
}

/* The padding is copied, too: a copy of fixed size takes two moves. */
static void write_field(struct reply *reply, const struct reply_field *field)
{
    char *at = reserve(reply, sizeof field->wire);

    if (at == NULL)
        return;
    memcpy(at, field->wire, sizeof field->wire);
    done(reply->out, at + field->len);
}

static void write_field_number(struct reply *reply,
                               const struct reply_field *field, int64_t number)
{
    char *at = reserve(reply, sizeof field->wire + NUMBER_MAX);

    if (at == NULL)
        return;
    memcpy(at, field->wire, sizeof field->wire);
    done(reply->out, put_number(at + field->len, number));
}

static void write_error(struct reply *reply, struct hf_bytes code,
                        struct hf_bytes sentence)
{
    char *at = reserve(reply, code.len + sentence.len + 4);

    if (at == NULL)
        return;
    *at++ = '-';
    at = put_line(at, code);
    if (code.len > 0)
        *at++ = ' ';
    done(reply->out, put_crlf(put_line(at, sentence)));
}

static void write_push(struct reply *reply, size_t count)
{
    write_header(reply, '>', count);
}

#define CODEC(number_of_version, push)                             \
    {                                                              \
        number_of_version, write_number, write_text, write_simple, \
            write_null##number_of_version, write_list,             \
            write_map##number_of_version, write_text, write_field, \
            write_field_number, write_error, push                  \
    }

const struct reply_codec resp2_codec = CODEC(2, NULL);
const struct reply_codec resp3_codec = CODEC(3, write_push);

void reply_field_make(struct reply_field *field, const char *name)
{
    *field = (struct reply_field){.name = hf_bytes_text(name)};
    assert(field->name.len <= REPLY_FIELD_MAX);
    field->len = (size_t)(put_bulk(field->wire, field->name) - field->wire);
}

enum hf_status resp_encode(struct hf_buf *out, size_t count,
                           const struct hf_bytes *args)
{
    size_t need = NUMBER_MAX;

    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(need, NUMBER_MAX + 2, &need) ||
            __builtin_add_overflow(need, args[i].len, &need))
            return HF_NOMEM;
    }
    if (room(out, need) != HF_OK)
        return HF_NOMEM;
    char *at = put_header(out->data + out->len, '*', count);
    for (size_t i = 0; i < count; i++)
        at = put_bulk(at, args[i]);
    done(out, at);
    return HF_OK;
}
