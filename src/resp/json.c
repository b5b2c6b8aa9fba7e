/* json.c - escaping, and a codec. */
#include "resp/json.h"

#include <assert.h>

static enum hf_status put_char(struct hf_buf *out, struct hf_bytes text,
                               size_t *at)
{
    struct hf_bytes left = hf_bytes(text.data + *at, text.len - *at);
    unsigned char c = (unsigned char)left.data[0];
    size_t len = hf_utf8_len(left);

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

/* ---- The codec. ---- */

static void put(struct reply *reply, const char *text)
{
    if (hf_buf_append(reply->out, text, strlen(text)) != HF_OK)
        reply->failed = true;
}

static void put_string(struct reply *reply, struct hf_bytes text)
{
    if (json_string(reply->out, text) != HF_OK)
        reply->failed = true;
}

/* A value, or a key, comes next. */
static void separate(struct reply *reply, bool key)
{
    struct json_reply *json = (struct json_reply *)reply;

    if (json->depth == 0)
        return;
    bool map = json->levels[json->depth - 1].map;
    if (map && !key)
        return; /* its key has done it */
    if (json->levels[json->depth - 1].begun)
        put(reply, ",");
    json->levels[json->depth - 1].begun = true;
}

/* A value was put: what is complete with it is closed. */
static void end_value(struct reply *reply)
{
    struct json_reply *json = (struct json_reply *)reply;

    while (json->depth > 0 && --json->levels[json->depth - 1].left == 0) {
        json->depth--;
        put(reply, json->levels[json->depth].map ? "}" : "]");
    }
}

static void put_number(struct reply *reply, int64_t number)
{
    separate(reply, false);
    if (hf_buf_format(reply->out, "%lld", (long long)number) != HF_OK)
        reply->failed = true;
    end_value(reply);
}

static void put_text(struct reply *reply, struct hf_bytes text)
{
    separate(reply, false);
    put_string(reply, text);
    end_value(reply);
}

static void put_null(struct reply *reply)
{
    separate(reply, false);
    put(reply, "null");
    end_value(reply);
}

static void open_level(struct reply *reply, size_t count, bool map)
{
    struct json_reply *json = (struct json_reply *)reply;

    separate(reply, false);
    if (count == 0) {
        put(reply, map ? "{}" : "[]");
        end_value(reply);
        return;
    }
    put(reply, map ? "{" : "[");
    assert(json->depth < JSON_DEPTH_MAX);
    json->levels[json->depth].left = count;
    json->levels[json->depth].map = map;
    json->levels[json->depth++].begun = false;
}

static void put_list(struct reply *reply, size_t count)
{
    open_level(reply, count, false);
}

static void put_map(struct reply *reply, size_t pairs)
{
    open_level(reply, pairs, true);
}

static void put_key(struct reply *reply, struct hf_bytes name)
{
    separate(reply, true);
    put_string(reply, name);
    put(reply, ":");
}

static void put_field(struct reply *reply, const struct reply_field *field)
{
    put_key(reply, field->name);
}

static void put_field_number(struct reply *reply,
                             const struct reply_field *field, int64_t number)
{
    put_key(reply, field->name);
    put_number(reply, number);
}

static void put_error(struct reply *reply, struct hf_bytes code,
                      struct hf_bytes sentence)
{
    put_map(reply, 2);
    put_key(reply, hf_bytes_text("code"));
    put_text(reply, code);
    put_key(reply, hf_bytes_text("error"));
    put_text(reply, sentence);
}

static const struct reply_codec json_codec = {
    .number = put_number,
    .text = put_text,
    .simple = put_text,
    .null = put_null,
    .list = put_list,
    .map = put_map,
    .key = put_key,
    .field = put_field,
    .field_number = put_field_number,
    .error = put_error,
};

void json_reply_init(struct json_reply *json, struct hf_buf *out)
{
    *json = (struct json_reply){.reply = {.out = out, .codec = &json_codec}};
}
