/* rows_put.c - products as STOCK LIST shows them to rows. */
#include "cli/rows.h"
#include "resp/json.h"
#include "resp/resp.h"

static const char *const numbers[] = {
    "total", "low", "available", "reserved", "sold", "version", "updated_ms"};
#define NUMBERS (sizeof numbers / sizeof numbers[0])
#define LOW     1u /* which is left out if it is 0: import leaves it then */

enum hf_status rows_head(struct hf_buf *out, enum rows_format format)
{
    static const char names[] =
        "sku,total,low,available,reserved,sold,version,updated_ms,attributes"
        "\r\n";

    return format == ROWS_JSON ? HF_OK
                               : hf_buf_append(out, names, sizeof names - 1);
}

static bool is_utf8(struct hf_bytes text)
{
    size_t len = 1;

    for (size_t at = 0; at < text.len && len > 0; at += len)
        len = hf_utf8_len(hf_bytes(text.data + at, text.len - at));
    return len > 0;
}

/* A field of CSV: in quotes, if it has to be. */
static enum hf_status put_field(struct hf_buf *out, struct hf_bytes text)
{
    bool plain =
        text.len > 0 && text.data[0] != ' ' && text.data[text.len - 1] != ' ';

    for (size_t i = 0; plain && i < text.len; i++)
        plain = text.data[i] != ',' && text.data[i] != '"' &&
                text.data[i] != '\r' && text.data[i] != '\n';
    if (plain)
        return hf_buf_append(out, text.data, text.len);
    enum hf_status status = hf_buf_append(out, "\"", 1);
    for (size_t i = 0; status == HF_OK && i < text.len; i++)
        status =
            hf_buf_append(out, text.data[i] == '"' ? "\"\"" : &text.data[i],
                          text.data[i] == '"' ? 2 : 1);
    return status != HF_OK ? status : hf_buf_append(out, "\"", 1);
}

/* The attributes as an object; nothing if there are none. */
static enum hf_status put_attributes(struct hf_buf *out,
                                     struct hf_bytes product)
{
    struct resp_value map;
    struct resp_value text;
    size_t at = 0;

    if (resp_find(product, "attributes", &at) != HF_OK ||
        resp_read(product, &at, &map) != HF_OK || map.kind != RESP_MAP)
        return HF_INVALID;
    enum hf_status status = HF_OK;
    for (int64_t i = 0; status == HF_OK && i < 2 * map.number; i++) {
        status = hf_buf_append(out,
                               i == 0       ? "{"
                               : i % 2 == 0 ? ", "
                                            : ": ",
                               i == 0 ? 1 : 2);
        if (status == HF_OK)
            status = resp_read(product, &at, &text);
        if (status == HF_OK && !is_utf8(text.text))
            status = HF_CORRUPT;
        if (status == HF_OK)
            status = json_string(out, text.text);
    }
    return status == HF_OK && map.number > 0 ? hf_buf_append(out, "}", 1)
                                             : status;
}

static enum hf_status put_csv(struct hf_buf *out, struct hf_bytes sku,
                              const int64_t *values, struct hf_bytes attributes)
{
    enum hf_status status = put_field(out, sku);

    for (size_t i = 0; status == HF_OK && i < NUMBERS; i++)
        status = i == LOW && values[i] == 0
                     ? hf_buf_append(out, ",", 1)
                     : hf_buf_format(out, ",%lld", (long long)values[i]);
    if (status == HF_OK)
        status = hf_buf_append(out, ",", 1);
    if (status == HF_OK && attributes.len > 0)
        status = put_field(out, attributes);
    return status != HF_OK ? status : hf_buf_append(out, "\r\n", 2);
}

static enum hf_status put_json(struct hf_buf *out, struct hf_bytes sku,
                               const int64_t *values,
                               struct hf_bytes attributes)
{
    enum hf_status status = hf_buf_format(out, "{\"sku\": ");

    if (status == HF_OK)
        status = is_utf8(sku) ? json_string(out, sku) : HF_CORRUPT;
    for (size_t i = 0; status == HF_OK && i < NUMBERS; i++) {
        if (i != LOW || values[i] != 0)
            status = hf_buf_format(out, ", \"%s\": %lld", numbers[i],
                                   (long long)values[i]);
    }
    if (status == HF_OK && attributes.len > 0)
        status =
            hf_buf_format(out, ", \"attributes\": %.*s", HF_SHOW(attributes));
    return status != HF_OK ? status : hf_buf_append(out, "}\n", 2);
}

enum hf_status rows_put(struct hf_buf *out, enum rows_format format,
                        struct hf_bytes product)
{
    struct hf_buf attributes = {0};
    int64_t values[NUMBERS];
    struct resp_value sku;
    size_t before = out->len;

    if (resp_field(product, "sku", &sku) != HF_OK || sku.kind != RESP_BULK)
        return HF_INVALID;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!resp_field_number(product, numbers[i], &values[i]))
            return HF_INVALID;
    }
    enum hf_status status = put_attributes(&attributes, product);
    if (status == HF_OK)
        status = (format == ROWS_CSV ? put_csv : put_json)(
            out, sku.text, values, hf_buf_bytes(&attributes));
    if (status != HF_OK)
        out->len = before;
    hf_buf_destroy(&attributes);
    return status;
}
