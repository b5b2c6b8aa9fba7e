/* wire.h - how RESP2 and RESP3 write what they write alike: numbers, and the
 * fields of a map with their numbers. */
#ifndef RESP_WIRE_H
#define RESP_WIRE_H

#include <assert.h>

#include "resp/reply.h"

/* Type byte, sign, digits of a number, CRLF. */
#define WIRE_NUMBER_MAX (1 + 1 + HF_DIGITS_MAX + 2)

static inline enum hf_status wire_room(struct hf_buf *out, size_t more)
{
    if (out->cap - out->len >= more)
        return HF_OK;
    return hf_buf_reserve(out, more);
}

/* Where so many bytes can be written; NULL: the reply has failed. */
static inline char *wire_reserve(struct reply *reply, size_t more)
{
    if (wire_room(reply->out, more) == HF_OK)
        return reply->out->data + reply->out->len;
    reply->failed = true;
    return NULL;
}

/* Ends what was written behind out->len at `end`. */
static inline void wire_done(struct hf_buf *out, const char *end)
{
    out->len = (size_t)(end - out->data);
    assert(out->len <= out->cap);
}

static inline char *wire_crlf(char *at)
{
    at[0] = '\r';
    at[1] = '\n';
    return at + 2;
}

/* Most lengths have one digit, nearly all have two. */
static inline char *wire_digits(char *at, uint64_t number)
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

static inline char *wire_number(char *at, int64_t number)
{
    *at++ = ':';
    if (number >= 0)
        return wire_crlf(wire_digits(at, (uint64_t)number));
    *at++ = '-';
    return wire_crlf(wire_digits(at, 0 - (uint64_t)number));
}

/* A field and its number. */
#define WIRE_PAIR_MAX \
    (sizeof((struct reply_field *)NULL)->wire + WIRE_NUMBER_MAX)

/* The padding is copied, too: a copy of fixed size takes two moves. */
static inline char *wire_field(char *at, const struct reply_field *field)
{
    memcpy(at, field->wire, sizeof field->wire);
    return at + field->len;
}

static inline char *wire_pair(char *at, const struct reply_field *field,
                              int64_t number)
{
    return wire_number(wire_field(at, field), number);
}

#endif
