/* json.c - escaping, and replies as JSON. */
#include "cli/json.h"

#include "resp/resp.h"

#define DEPTH_MAX 8

/* Length of the UTF-8 sequence at the start of `text`, 0 if it is not one:
 * over-long forms, surrogates and values above U+10FFFF are not. */
static size_t utf8_len(struct hf_bytes text)
{
    const unsigned char *c = (const unsigned char *)text.data;
    size_t len = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

    if (len == 1)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return len;
}

static enum hf_status put_char(struct hf_buf *out, struct hf_bytes text,
                               size_t *at)
{
    struct hf_bytes left = hf_bytes(text.data + *at, text.len - *at);
    unsigned char c = (unsigned char)left.data[0];
    size_t len = utf8_len(left);

    *at += len > 0 ? len : 1;
    if (len == 0)
        return hf_buf_append(out, "\\ufffd", 6);
    if (c == '"')
        return hf_buf_append(out, "\\\"", 2);
    if (c == '\\')
        return hf_buf_append(out, "\\\\", 2);
    if (c == '\n')
        return hf_buf_append(out, "\\n", 2);
    if (c < 0x20 || c == 0x7f)
        return hf_buf_format(out, "\\u%04x", c);
    return hf_buf_append(out, left.data, len);
}

enum hf_status json_string(struct hf_buf *out, struct hf_bytes text)
{
    enum hf_status status = hf_buf_append(out, "\"", 1);

    for (size_t at = 0; status == HF_OK && at < text.len;)
        status = put_char(out, text, &at);
    return status != HF_OK ? status : hf_buf_append(out, "\"", 1);
}

static enum hf_status put_value(struct hf_buf *out, struct hf_bytes input,
                                size_t *at, int depth);

/* The members of a map or an array; a map's names may be any plain value. */
static enum hf_status put_members(struct hf_buf *out, struct hf_bytes input,
                                  size_t *at, int depth,
                                  struct resp_value value)
{
    bool map = value.kind == RESP_MAP;
    enum hf_status status = hf_buf_append(out, map ? "{" : "[", 1);

    for (int64_t i = 0; status == HF_OK && i < value.number; i++) {
        if (i > 0)
            status = hf_buf_append(out, ", ", 2);
        if (map && status == HF_OK) {
            struct resp_value name;
            status = resp_read(input, at, &name);
            if (status == HF_OK && name.kind != RESP_BULK &&
                name.kind != RESP_SIMPLE)
                status = HF_INVALID;
            if (status == HF_OK)
                status = json_string(out, name.text);
            if (status == HF_OK)
                status = hf_buf_append(out, ": ", 2);
        }
        if (status == HF_OK)
            status = put_value(out, input, at, depth + 1);
    }
    return status != HF_OK ? status : hf_buf_append(out, map ? "}" : "]", 1);
}

static enum hf_status put_value(struct hf_buf *out, struct hf_bytes input,
                                size_t *at, int depth)
{
    struct resp_value value;
    enum hf_status status = resp_read(input, at, &value);

    if (status != HF_OK || depth > DEPTH_MAX)
        return HF_INVALID;
    switch (value.kind) {
    case RESP_NUMBER:
        return hf_buf_format(out, "%lld", (long long)value.number);
    case RESP_BOOL:
        return hf_buf_format(out, value.number ? "true" : "false");
    case RESP_NULL:
        return hf_buf_append(out, "null", 4);
    case RESP_ARRAY:
    case RESP_MAP:
        return put_members(out, input, at, depth, value);
    default:
        return json_string(out, value.text);
    }
}

enum hf_status json_reply(struct hf_buf *out, struct hf_bytes input)
{
    bool object = input.len > 0 && input.data[0] == '%';
    size_t at = 0;

    enum hf_status status =
        object ? HF_OK : hf_buf_append(out, "{\"result\": ", 11);
    if (status == HF_OK)
        status = put_value(out, input, &at, 0);
    if (status == HF_OK && !object)
        status = hf_buf_append(out, "}", 1);
    return status;
}
