/* show.c - replies to text, by recursion over at most a few levels. */
#include "cli/show.h"

#include "cli/json.h"
#include "resp/resp.h"

#define DEPTH_MAX 8

enum hf_status show_text(struct hf_buf *out, struct hf_bytes text)
{
    enum hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        status = c < 0x20 || c == 0x7f ? hf_buf_format(out, "\\x%02x", c)
                                       : hf_buf_append(out, &text.data[i], 1);
    }
    return status;
}

/* A text that is the whole reply has lines of its own. */
static enum hf_status put_lines(struct hf_buf *out, struct hf_bytes text)
{
    enum hf_status status = HF_OK;

    while (status == HF_OK && text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.data) : text.len;
        status = show_text(out, hf_bytes(text.data, len));
        len += end != NULL;
        text = hf_bytes(text.data + len, text.len - len);
        if (status == HF_OK && text.len > 0)
            status = hf_buf_append(out, "\n", 1);
    }
    return status;
}

static enum hf_status put_value(struct hf_buf *out, struct hf_bytes input,
                                size_t *at, int depth, bool json);

static enum hf_status put_text(struct hf_buf *out, const char *text)
{
    return hf_buf_append(out, text, strlen(text));
}

/* Whether the value at `at` is a list of maps, which gets a line for each. */
static bool is_table(struct hf_bytes input, size_t at)
{
    struct resp_value list;
    struct resp_value first;

    return resp_read(input, &at, &list) == HF_OK && list.kind == RESP_ARRAY &&
           list.number > 0 && resp_read(input, &at, &first) == HF_OK &&
           first.kind == RESP_MAP;
}

/* What stands before member `index` of an array or a map at that depth. */
static const char *mark(int depth, bool map, bool table, int64_t index)
{
    if (depth == 0)
        return index > 0 ? "\n" : "";
    if (depth == 1 && table)
        return "\n  ";
    if (index == 0)
        return "";
    return map ? " " : ", ";
}

/* A name in a map and what stands behind it; in JSON it is a text. */
static enum hf_status put_name(struct hf_buf *out, struct hf_bytes input,
                               size_t *at, int depth, bool json)
{
    size_t start = *at;
    struct resp_value name;
    enum hf_status status = put_value(out, input, at, depth + 1, json);

    if (status != HF_OK)
        return status;
    if (!json) {
        bool below = depth == 0 && is_table(input, *at);
        return put_text(out, depth > 0 ? "=" : below ? ":" : ": ");
    }
    (void)resp_read(input, &start, &name);
    return name.kind == RESP_BULK || name.kind == RESP_SIMPLE
               ? put_text(out, ": ")
               : HF_INVALID;
}

static enum hf_status put_members(struct hf_buf *out, struct hf_bytes input,
                                  size_t *at, int depth, bool json, bool table,
                                  struct resp_value value)
{
    bool map = value.kind == RESP_MAP;
    enum hf_status status = put_text(out, !json ? "" : map ? "{" : "[");

    for (int64_t i = 0; status == HF_OK && i < value.number; i++) {
        status = put_text(out, !json   ? mark(depth, map, table, i)
                               : i > 0 ? ", "
                                       : "");
        if (status == HF_OK && map)
            status = put_name(out, input, at, depth, json);
        if (status == HF_OK)
            status = put_value(out, input, at, depth + 1, json);
    }
    if (status != HF_OK || !json)
        return status;
    return put_text(out, map ? "}" : "]");
}

static enum hf_status put_value(struct hf_buf *out, struct hf_bytes input,
                                size_t *at, int depth, bool json)
{
    struct resp_value value;
    bool table = is_table(input, *at);
    enum hf_status status = resp_read(input, at, &value);

    if (status != HF_OK || depth > DEPTH_MAX)
        return HF_INVALID;
    switch (value.kind) {
    case RESP_NUMBER:
        return hf_buf_format(out, "%lld", (long long)value.number);
    case RESP_BOOL:
        return put_text(out, value.number ? (json ? "true" : "yes")
                                          : (json ? "false" : "no"));
    case RESP_NULL:
        return put_text(out, json ? "null" : "none");
    case RESP_ARRAY:
    case RESP_MAP:
        return put_members(out, input, at, depth, json, table, value);
    default:
        if (!json && depth == 0)
            return put_lines(out, value.text);
        return json ? json_string(out, value.text) : show_text(out, value.text);
    }
}

enum hf_status show_reply(struct hf_buf *out, struct hf_bytes input)
{
    size_t at = 0;
    size_t before = out->len;
    enum hf_status status = put_value(out, input, &at, 0, false);

    if (status != HF_OK || out->len == before)
        return status;
    return put_text(out, "\n");
}

enum hf_status show_json(struct hf_buf *out, struct hf_bytes input)
{
    bool object = input.len > 0 && input.data[0] == '%';
    size_t at = 0;
    enum hf_status status = put_text(out, object ? "" : "{\"result\": ");

    if (status == HF_OK)
        status = put_value(out, input, &at, 0, true);
    return status != HF_OK || object ? status : put_text(out, "}");
}
