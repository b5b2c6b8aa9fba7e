/* rows.c - rows of CSV, and what all rows have in common. */
#include "cli/rows.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/rows_parts.h"

void rows_init(struct rows *rows, enum rows_format format)
{
    *rows = (struct rows){.format = format, .line = 1};
}

void rows_destroy(struct rows *rows)
{
    hf_buf_destroy(&rows->in);
    hf_buf_destroy(&rows->names);
    hf_buf_destroy(&rows->texts);
}

enum hf_status rows_add(struct rows *rows, const char *data, size_t len)
{
    if (len == 0) {
        rows->ended = true;
        return HF_OK;
    }
    hf_buf_consume(&rows->in, rows->at);
    rows->at = 0;
    return hf_buf_append(&rows->in, data, len);
}

enum hf_status rows_wrong(struct rows *rows, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(rows->error, sizeof rows->error, format, args);
    va_end(args);
    return HF_INVALID;
}

/* ---- What a row tells. ---- */

enum rows_field rows_field(struct hf_bytes name)
{
    static const char *const names[] = {
        "sku",      "total", "low",     "attributes", "available",
        "reserved", "sold",  "version", "updated_ms"};
    static const char prefix[] = ROWS_ATTRIBUTE_PREFIX;

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (hf_bytes_equal(name, hf_bytes_text(names[i])))
            return i < ROWS_PASSED_BY ? (enum rows_field)i : ROWS_PASSED_BY;
    }
    if (name.len > sizeof prefix - 1 &&
        memcmp(name.data, prefix, sizeof prefix - 1) == 0)
        return ROWS_ATTRIBUTE;
    return ROWS_UNKNOWN;
}

static enum hf_status take_number(struct rows *rows, const char *name,
                                  struct hf_bytes text, uint64_t *out)
{
    if (hf_parse_u64(text, out) != HF_OK || *out > (uint64_t)HOLD_STOCK_MAX)
        return rows_wrong(rows,
                          "%s must be a whole number from 0 to %lld, "
                          "not '%.*s'",
                          name, (long long)HOLD_STOCK_MAX,
                          (int)(text.len < 64 ? text.len : 64), text.data);
    return HF_OK;
}

enum hf_status rows_take_text(struct rows *rows, enum rows_field field,
                              struct hf_bytes text, struct row *out)
{
    switch (field) {
    case ROWS_SKU:
        if (text.len == 0 || text.len > HOLD_SKU_MAX)
            return rows_wrong(rows, "sku has %zu bytes, and must have 1 to %u",
                              text.len, HOLD_SKU_MAX);
        out->sku = text;
        return HF_OK;
    case ROWS_TOTAL:
        return take_number(rows, "total", text, &out->total);
    case ROWS_LOW:
        out->has_low = text.len > 0;
        return text.len == 0 ? HF_OK
                             : take_number(rows, "low", text, &out->low);
    case ROWS_ATTRIBUTES:
        return text.len == 0 ? HF_OK : rows_json_attributes(rows, text, out);
    default:
        return HF_OK;
    }
}

enum hf_status rows_take_attribute(struct rows *rows, struct hf_bytes name,
                                   struct hf_bytes value, struct row *out)
{
    if (name.len == 0 || name.len > HOLD_ATTR_MAX)
        return rows_wrong(rows,
                          "the name of an attribute has %zu bytes, and must "
                          "have 1 to %u",
                          name.len, HOLD_ATTR_MAX);
    if (value.len > HOLD_NOTE_MAX)
        return rows_wrong(rows,
                          "attribute '%.*s' has %zu bytes, at most %u "
                          "are allowed",
                          HF_SHOW(name), value.len, HOLD_NOTE_MAX);
    for (uint32_t i = 0; i < out->attribute_count; i++) {
        if (hf_bytes_equal(out->attributes[i].name, name))
            return rows_wrong(rows, "attribute '%.*s' is given twice",
                              HF_SHOW(name));
    }
    if (out->attribute_count == HOLD_ATTRS_MAX)
        return rows_wrong(rows, "at most %u attributes are allowed",
                          HOLD_ATTRS_MAX);
    out->attributes[out->attribute_count++] = (struct rows_pair){name, value};
    return HF_OK;
}

enum hf_status rows_finish(struct rows *rows, struct row *out)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < out->attribute_count; i++)
        bytes += 4 + out->attributes[i].name.len + out->attributes[i].value.len;
    if (bytes > HOLD_ATTRS_BYTES)
        return rows_wrong(rows,
                          "the attributes have %zu bytes (4 more for each), at "
                          "most %u are allowed",
                          bytes, HOLD_ATTRS_BYTES);
    return HF_OK;
}

/* ---- CSV. ---- */

struct fields {
    size_t count;
    struct hf_bytes list[ROWS_COLUMNS_MAX];
    size_t end;     /* behind the row */
    uint64_t lines; /* that it has */
};

/* Copies [from, to) of the input behind what there is of the field. */
static void keep(struct rows *rows, struct hf_bytes *field, size_t from,
                 size_t to)
{
    char *end = rows->texts.data + rows->texts.len;

    assert(rows->texts.cap - rows->texts.len >= to - from);
    memcpy(end, rows->in.data + from, to - from);
    rows->texts.len += to - from;
    field->len += to - from;
}

/* A field in quotes at `*at`, which moves behind it. */
static enum hf_status quoted(struct rows *rows, size_t *at,
                             struct hf_bytes *field, uint64_t *lines)
{
    const char *data = rows->in.data;
    size_t from = ++*at;

    for (; *at < rows->in.len; ++*at) {
        *lines += data[*at] == '\n';
        if (data[*at] != '"')
            continue;
        if (*at + 1 == rows->in.len && !rows->ended)
            return HF_MORE; /* perhaps there are two */
        keep(rows, field, from, *at);
        if (*at + 1 == rows->in.len || data[*at + 1] != '"') {
            ++*at;
            return HF_OK;
        }
        from = ++*at; /* one of the two counts */
    }
    if (!rows->ended)
        return HF_MORE;
    rows->lost = true;
    return rows_wrong(rows, "a quote is not closed");
}

/* A field without quotes. */
static enum hf_status bare(struct rows *rows, size_t *at,
                           struct hf_bytes *field)
{
    const char *data = rows->in.data;
    size_t from = *at;

    while (*at < rows->in.len && data[*at] != ',' && data[*at] != '\n' &&
           data[*at] != '\r' && data[*at] != '"')
        ++*at;
    keep(rows, field, from, *at);
    if (*at < rows->in.len && data[*at] == '"')
        return rows_wrong(rows, "a quote stands within a field, which must be "
                                "in quotes then");
    return HF_OK;
}

/* What follows a field: `*more` if that is another one. */
static enum hf_status behind_field(struct rows *rows, size_t *at, bool *more)
{
    const char *data = rows->in.data;
    size_t left = rows->in.len - *at;

    *more = left > 0 && data[*at] == ',';
    if (left == 0 || (left == 1 && data[*at] == '\r')) {
        *at += rows->ended ? left : 0;
        return rows->ended ? HF_OK : HF_MORE;
    }
    if (*more || data[*at] == '\n') {
        ++*at;
        return HF_OK;
    }
    if (data[*at] == '\r' && data[*at + 1] == '\n') {
        *at += 2;
        return HF_OK;
    }
    return rows_wrong(rows, data[*at] == '\r'
                                ? "a carriage return stands within a line"
                                : "something stands behind a closing quote");
}

static enum hf_status split(struct rows *rows, struct fields *fields,
                            size_t *at)
{
    bool more = true;

    while (more) {
        struct hf_bytes field = {rows->texts.data + rows->texts.len, 0};
        bool in_quotes = *at < rows->in.len && rows->in.data[*at] == '"';
        enum hf_status status = in_quotes
                                    ? quoted(rows, at, &field, &fields->lines)
                                    : bare(rows, at, &field);
        if (status == HF_OK)
            status = behind_field(rows, at, &more);
        if (status != HF_OK)
            return status;
        if (fields->count == ROWS_COLUMNS_MAX)
            return rows_wrong(rows, "at most %u columns are allowed",
                              ROWS_COLUMNS_MAX);
        fields->list[fields->count++] = field;
    }
    return HF_OK;
}

/* The fields of the row at the front. A wrong one ends with its line. */
static enum hf_status next_fields(struct rows *rows, struct fields *fields)
{
    size_t at = rows->at;

    *fields = (struct fields){.lines = 1};
    rows->texts.len = 0;
    enum hf_status status = split(rows, fields, &at);
    if (status == HF_MORE || rows->lost)
        return status;
    if (status != HF_OK) {
        const char *end = memchr(rows->in.data + at, '\n', rows->in.len - at);
        if (end == NULL && !rows->ended)
            return HF_MORE;
        at = end == NULL ? rows->in.len : (size_t)(end + 1 - rows->in.data);
    }
    fields->end = at;
    return status;
}

/* The row that names the columns. */
static enum hf_status take_names(struct rows *rows, const struct fields *fields)
{
    uint32_t seen = 0;

    rows->lost = true; /* until all is well */
    if (hf_buf_append(&rows->names, rows->texts.data, rows->texts.len) != HF_OK)
        return HF_NOMEM;
    for (size_t i = 0; i < fields->count; i++) {
        struct hf_bytes name = fields->list[i];
        enum rows_field field = rows_field(name);
        name.data = rows->names.data + (name.data - rows->texts.data);
        if (field == ROWS_UNKNOWN)
            return rows_wrong(rows, "unknown column '%.*s'",
                              (int)(name.len < 64 ? name.len : 64), name.data);
        for (size_t j = 0; j < i; j++) {
            if (hf_bytes_equal(rows->columns[j], name))
                return rows_wrong(rows, "column '%.*s' is there twice",
                                  (int)(name.len < 64 ? name.len : 64),
                                  name.data);
        }
        seen |= 1u << field;
        rows->columns[i] = name;
    }
    if ((seen & (1u << ROWS_SKU)) == 0 || (seen & (1u << ROWS_TOTAL)) == 0)
        return rows_wrong(rows, "the first row must name the columns sku and "
                                "total");
    rows->column_count = (uint32_t)fields->count;
    rows->lost = false;
    return HF_OK;
}

static enum hf_status take_fields(struct rows *rows,
                                  const struct fields *fields, struct row *out)
{
    static const size_t prefix = sizeof ROWS_ATTRIBUTE_PREFIX - 1;

    if (fields->count != rows->column_count)
        return rows_wrong(rows, "%zu fields, but the first row has %u",
                          fields->count, rows->column_count);
    for (size_t i = 0; i < fields->count; i++) {
        struct hf_bytes name = rows->columns[i];
        enum rows_field field = rows_field(name);
        struct hf_bytes value = fields->list[i];
        enum hf_status status = HF_OK;
        if (field != ROWS_ATTRIBUTE)
            status = rows_take_text(rows, field, value, out);
        else if (value.len > 0)
            status = rows_take_attribute(
                rows, hf_bytes(name.data + prefix, name.len - prefix), value,
                out);
        if (status != HF_OK)
            return status;
    }
    return rows_finish(rows, out);
}

static bool is_blank(const struct fields *fields)
{
    return fields->count == 1 && fields->list[0].len == 0;
}

/* The same, which looks no further than a row may reach: one that is longer has
 * no end, wherever in a piece of the file it stands. */
static enum hf_status next_bounded(struct rows *rows, struct fields *fields)
{
    size_t len = rows->in.len;
    bool ended = rows->ended;

    if (len - rows->at > ROWS_BYTES_MAX) {
        rows->in.len = rows->at + ROWS_BYTES_MAX;
        rows->ended = false;
    }
    enum hf_status status = next_fields(rows, fields);
    rows->in.len = len;
    rows->ended = ended;
    return status;
}

static enum hf_status next_csv(struct rows *rows, struct row *out)
{
    struct fields fields;

    out->line = rows->line;
    enum hf_status status = next_bounded(rows, &fields);
    if (status == HF_MORE || rows->lost)
        return status;
    rows->at = fields.end;
    rows->line += fields.lines;
    if (status != HF_OK || is_blank(&fields))
        return status;
    return rows->column_count == 0 ? take_names(rows, &fields)
                                   : take_fields(rows, &fields, out);
}

static enum hf_status next_json(struct rows *rows, struct row *out)
{
    const char *from = rows->in.data + rows->at;
    size_t left = rows->in.len - rows->at;
    const char *end = memchr(from, '\n', left);

    if (end == NULL && !rows->ended)
        return HF_MORE;
    size_t len = end == NULL ? left : (size_t)(end - from);
    out->line = rows->line++;
    rows->at += len + (end != NULL);
    rows->texts.len = 0;
    return rows_json_line(rows, hf_bytes(from, len), out);
}

/* UTF-8 may be marked so. */
static void skip_mark(struct rows *rows)
{
    if (rows->line == 1 && rows->at == 0 && rows->in.len >= 3 &&
        memcmp(rows->in.data, "\xef\xbb\xbf", 3) == 0)
        rows->at = 3;
}

enum hf_status rows_next(struct rows *rows, struct row *out)
{
    enum hf_status status = HF_OK;

    if (rows->texts.cap == 0 && /* so that texts do not move */
        hf_buf_reserve(&rows->texts, 3 * ROWS_BYTES_MAX) != HF_OK)
        return HF_NOMEM;
    do {
        *out = (struct row){.line = rows->line};
        if (rows->line == 1 && rows->in.len < 3 && !rows->ended)
            return HF_MORE;
        skip_mark(rows);
        if (rows->at == rows->in.len)
            return rows->ended ? HF_CLOSED : HF_MORE;
        status = rows->format == ROWS_CSV ? next_csv(rows, out)
                                          : next_json(rows, out);
        if (status == HF_MORE && rows->in.len - rows->at > ROWS_BYTES_MAX) {
            rows->lost = true;
            return rows_wrong(rows, "a row has more than %u bytes",
                              ROWS_BYTES_MAX);
        }
    } while (status == HF_OK && out->sku.len == 0); /* names, or blank */
    return status;
}
