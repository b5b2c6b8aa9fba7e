/* encode.c - the codecs of RESP2 and RESP3, and requests.
 *
 * Each writer asks for room once, for the longest it could need, and then
 * stores straight into the buffer: there is one branch for memory per value
 * and none for format.
 */
#include "resp/resp.h"
#include "resp/wire.h"

static inline char *put_header(char *at, char type, uint64_t number)
{
    *at = type;
    return wire_crlf(wire_digits(at + 1, number));
}

static inline char *put_bytes(char *at, struct hf_bytes bytes)
{
    if (bytes.len > 0)
        memcpy(at, bytes.data, bytes.len);
    return at + bytes.len;
}

static inline char *put_bulk(char *at, struct hf_bytes bytes)
{
    return wire_crlf(put_bytes(put_header(at, '$', bytes.len), bytes));
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
    char *at = wire_reserve(reply, WIRE_NUMBER_MAX);

    if (at != NULL)
        wire_done(reply->out, put_header(at, type, number));
}

static void write_number(struct reply *reply, int64_t number)
{
    char *at = wire_reserve(reply, WIRE_NUMBER_MAX);

    if (at != NULL)
        wire_done(reply->out, wire_number(at, number));
}

static void write_text(struct reply *reply, struct hf_bytes text)
{
    char *at = wire_reserve(reply, text.len + WIRE_NUMBER_MAX + 2);

    if (at != NULL)
        wire_done(reply->out, put_bulk(at, text));
}

static void write_simple(struct reply *reply, struct hf_bytes text)
{
    char *at = wire_reserve(reply, text.len + 3);

    if (at == NULL)
        return;
    *at++ = '+';
    wire_done(reply->out, wire_crlf(put_bytes(at, text)));
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

static void write_field(struct reply *reply, const struct reply_field *field)
{
    char *at = wire_reserve(reply, sizeof field->wire);

    if (at != NULL)
        wire_done(reply->out, wire_field(at, field));
}

static void write_field_number(struct reply *reply,
                               const struct reply_field *field, int64_t number)
{
    char *at = wire_reserve(reply, WIRE_PAIR_MAX);

    if (at != NULL)
        wire_done(reply->out, wire_pair(at, field, number));
}

static void write_error(struct reply *reply, struct hf_bytes code,
                        struct hf_bytes sentence)
{
    char *at = wire_reserve(reply, code.len + sentence.len + 4);

    if (at == NULL)
        return;
    *at++ = '-';
    at = put_line(at, code);
    if (code.len > 0)
        *at++ = ' ';
    wire_done(reply->out, wire_crlf(put_line(at, sentence)));
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
    size_t need = WIRE_NUMBER_MAX;

    for (size_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(need, WIRE_NUMBER_MAX + 2, &need) ||
            __builtin_add_overflow(need, args[i].len, &need))
            return HF_NOMEM;
    }
    if (wire_room(out, need) != HF_OK)
        return HF_NOMEM;
    char *at = put_header(out->data + out->len, '*', count);
    for (size_t i = 0; i < count; i++)
        at = put_bulk(at, args[i]);
    wire_done(out, at);
    return HF_OK;
}
