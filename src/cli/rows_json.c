/* rows_json.c - an object of JSON (RFC 8259) with what a product has. */
#include <assert.h>

#include "cli/rows_parts.h"

/* The text that is read, and how far. */
struct json {
    struct rows *rows;
    struct hf_bytes text;
    size_t at;
};

static enum hf_status wrong(struct json *json, const char *what)
{
    return rows_wrong(json->rows, "JSON: %s at byte %zu", what, json->at + 1);
}

static void skip_blanks(struct json *json)
{
    while (json->at < json->text.len &&
           strchr(" \t\r\n", json->text.data[json->at]) != NULL &&
           json->text.data[json->at] != '\0')
        json->at++;
}

/* Takes that character, behind blanks, if it is there. */
static bool take(struct json *json, char c)
{
    skip_blanks(json);
    if (json->at == json->text.len || json->text.data[json->at] != c)
        return false;
    json->at++;
    return true;
}

static void put(struct json *json, const char *data, size_t len)
{
    struct hf_buf *texts = &json->rows->texts;

    assert(texts->cap - texts->len >= len);
    memcpy(texts->data + texts->len, data, len);
    texts->len += len;
}

static void put_code(struct json *json, uint32_t code)
{
    char out[4];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = len; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(len == 1 ? code : (0xf00 >> len & 0xff) | code);
    put(json, out, len);
}

/* Four digits. */
static bool take_hex(struct json *json, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = 0;
    for (int i = 0; i < 4; i++) {
        if (json->at == json->text.len)
            return false;
        char c = json->text.data[json->at];
        c = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
        const char *digit = c == '\0' ? NULL : strchr(digits, c);
        if (digit == NULL)
            return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
        json->at++;
    }
    return true;
}

/* Behind a backslash. */
static enum hf_status take_escape(struct json *json)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    uint32_t low;

    char c = json->at < json->text.len ? json->text.data[json->at] : '\0';
    const char *name = c == '\0' ? NULL : strchr(names, c);
    if (name != NULL) {
        json->at++;
        put(json, meant + (name - names), 1);
        return HF_OK;
    }
    if (c != 'u')
        return wrong(json, "an unknown escape");
    json->at++;
    if (!take_hex(json, &code))
        return wrong(json, "\\u without four digits");
    if (code >= 0xd800 && code < 0xdc00) {
        bool two = json->text.len - json->at >= 2 &&
                   memcmp(json->text.data + json->at, "\\u", 2) == 0;
        json->at += two ? 2 : 0;
        if (!two || !take_hex(json, &low) || low < 0xdc00 || low > 0xdfff)
            return wrong(json, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return wrong(json, "half of a surrogate pair");
    }
    put_code(json, code);
    return HF_OK;
}

/* A text; its quote comes next. */
static enum hf_status take_string(struct json *json, struct hf_bytes *out)
{
    size_t start = json->rows->texts.len;

    if (!take(json, '"'))
        return wrong(json, "a text in quotes is missing");
    while (json->at < json->text.len && json->text.data[json->at] != '"') {
        struct hf_bytes left =
            hf_bytes(json->text.data + json->at, json->text.len - json->at);
        size_t len = hf_utf8_len(left);
        if (len == 0)
            return wrong(json, "bytes that are not UTF-8");
        if ((unsigned char)left.data[0] < 0x20)
            return wrong(json, "a control character in a text");
        json->at += len;
        if (left.data[0] != '\\')
            put(json, left.data, len);
        else if (take_escape(json) != HF_OK)
            return HF_INVALID;
    }
    if (!take(json, '"'))
        return wrong(json, "a text without its last quote");
    *out =
        hf_bytes(json->rows->texts.data + start, json->rows->texts.len - start);
    return HF_OK;
}

/* A number, as it stands there: whoever takes it knows what it may be. */
static enum hf_status take_number(struct json *json, struct hf_bytes *out)
{
    skip_blanks(json);
    size_t start = json->at;
    while (json->at < json->text.len && json->text.data[json->at] != '\0' &&
           strchr("+-.0123456789eE", json->text.data[json->at]) != NULL)
        json->at++;
    if (json->at == start)
        return wrong(json, "a number is missing");
    *out = hf_bytes(json->text.data + start, json->at - start);
    return HF_OK;
}

static enum hf_status take_attributes(struct json *json, struct row *out)
{
    struct hf_bytes name;
    struct hf_bytes value;

    if (!take(json, '{'))
        return wrong(json, "an object of attributes is missing");
    for (bool more = !take(json, '}'); more;) {
        if (take_string(json, &name) != HF_OK)
            return HF_INVALID;
        if (!take(json, ':'))
            return wrong(json, "a colon is missing");
        if (take_string(json, &value) != HF_OK ||
            rows_take_attribute(json->rows, name, value, out) != HF_OK)
            return HF_INVALID;
        more = take(json, ',');
        if (!more && !take(json, '}'))
            return wrong(json, "a comma or the end of the object is missing");
    }
    return HF_OK;
}

static enum hf_status take_value(struct json *json, enum rows_field field,
                                 struct row *out)
{
    struct hf_bytes value;

    if (field == ROWS_ATTRIBUTES)
        return take_attributes(json, out);
    enum hf_status status = field == ROWS_SKU ? take_string(json, &value)
                                              : take_number(json, &value);
    return status != HF_OK ? status
                           : rows_take_text(json->rows, field, value, out);
}

static enum hf_status take_object(struct json *json, struct row *out)
{
    uint32_t seen = 0;
    struct hf_bytes name;

    if (!take(json, '{'))
        return wrong(json, "an object is missing");
    for (bool more = !take(json, '}'); more;) {
        if (take_string(json, &name) != HF_OK)
            return HF_INVALID;
        enum rows_field field = rows_field(name);
        if (field > ROWS_PASSED_BY)
            return rows_wrong(json->rows, "unknown field '%.*s'",
                              (int)(name.len < 64 ? name.len : 64), name.data);
        if (field < ROWS_PASSED_BY && (seen >> field & 1) != 0)
            return rows_wrong(json->rows, "field '%.*s' is given twice",
                              HF_SHOW(name));
        seen |= 1u << field;
        if (!take(json, ':'))
            return wrong(json, "a colon is missing");
        if (take_value(json, field, out) != HF_OK)
            return HF_INVALID;
        more = take(json, ',');
        if (!more && !take(json, '}'))
            return wrong(json, "a comma or the end of the object is missing");
    }
    if ((seen & 1u << ROWS_SKU) == 0 || (seen & 1u << ROWS_TOTAL) == 0)
        return rows_wrong(json->rows, "sku and total are needed");
    return HF_OK;
}

enum hf_status rows_json_line(struct rows *rows, struct hf_bytes line,
                              struct row *out)
{
    struct json json = {rows, line, 0};

    skip_blanks(&json);
    if (json.at == line.len)
        return HF_OK; /* blank */
    if (line.len > ROWS_BYTES_MAX)
        return rows_wrong(rows, "a row has more than %u bytes", ROWS_BYTES_MAX);
    enum hf_status status = take_object(&json, out);
    if (status != HF_OK)
        return status;
    skip_blanks(&json);
    if (json.at != line.len)
        return wrong(&json, "something stands behind the object");
    return rows_finish(rows, out);
}

enum hf_status rows_json_attributes(struct rows *rows, struct hf_bytes text,
                                    struct row *out)
{
    struct json json = {rows, text, 0};
    enum hf_status status = take_attributes(&json, out);

    skip_blanks(&json);
    if (status == HF_OK && json.at != text.len)
        return wrong(&json, "something stands behind the attributes");
    return status;
}
