/* log_field.c - a line with fields: nothing in it can end it, or forge another.
 *
 * Room for the end of the line, and for the end of the text that is being
 * written, is kept back all the time. So a line that is cut is still whole.
 */
#include "base/bytes.h"
#include "exec/log_line.h"

static const char hex[] = "0123456789abcdef";

/* Adds all of it, or nothing if fewer than `keep` bytes would be left. */
static bool put(struct log_line *line, size_t keep, const char *data,
                size_t len)
{
    if (line->len + len + keep > sizeof line->text) {
        line->cut = true;
        return false;
    }
    memcpy(line->text + line->len, data, len);
    line->len += len;
    return true;
}

/* ---- Text. ---- */

/* Needs no quotes: printable, and nothing that the form of a field uses. */
static bool is_plain(const struct hf_log_field *field)
{
    for (size_t i = 0; i < field->len; i++) {
        char c = field->text[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return field->len > 0;
}

static size_t escape_byte(unsigned char byte, char out[4])
{
    out[0] = '\\';
    if (byte == '\n' || byte == '\r' || byte == '\t') {
        out[1] = byte == '\n' ? 'n' : byte == '\r' ? 'r' : 't';
        return 2;
    }
    if (byte == '"' || byte == '\\') {
        out[1] = (char)byte;
        return 2;
    }
    out[1] = 'x';
    out[2] = hex[byte >> 4];
    out[3] = hex[byte & 15];
    return 4;
}

/* One sign inside quotes. Control bytes of both kinds (U+0080 to U+009F drive
 * terminals, too) and what is no UTF-8 are escaped byte by byte. */
static size_t sign_text(const char *at, size_t left, char out[8], size_t *len)
{
    unsigned char byte = (unsigned char)*at;
    size_t bytes = hf_utf8_len(hf_bytes(at, left));
    bool control = byte < 0x20 || byte == 0x7f ||
                   (byte == 0xc2 && bytes == 2 && (unsigned char)at[1] < 0xa0);

    if (bytes == 2 && control) {
        *len = escape_byte(byte, out);
        *len += escape_byte((unsigned char)at[1], out + *len);
        return 2;
    }
    if (bytes == 0 || control || byte == '"' || byte == '\\') {
        *len = escape_byte(byte, out);
        return 1;
    }
    memcpy(out, at, bytes);
    *len = bytes;
    return bytes;
}

/* ---- Both. ---- */

/* The signs of the text as long as they fit. */
static void add_signs(struct log_line *line, enum hf_log_form form, size_t keep,
                      const char *text, size_t len)
{
    char sign[8];
    size_t bytes;

    for (size_t i = 0; i < len;) {
        if (form == HF_LOG_JSON)
            i += hf_log_sign_json(text + i, len - i, sign, &bytes);
        else
            i += sign_text(text + i, len - i, sign, &bytes);
        if (!put(line, keep, sign, bytes))
            return;
    }
}

/* Nobody forges a line by the message either, though it is the caller's. */
static void add_message(struct log_line *line, enum hf_log_form form,
                        size_t keep, const char *message)
{
    if (form == HF_LOG_JSON) {
        add_signs(line, form, keep + 1, message, strlen(message));
        (void)put(line, keep, "\"", 1);
        return;
    }
    for (; *message != '\0'; message++) {
        unsigned char byte = (unsigned char)*message;
        char sign = byte < 0x20 || byte == 0x7f ? ' ' : *message;
        if (!put(line, keep, &sign, 1))
            return;
    }
}

#define NAME_MAX_BYTES 64

/* ` name=` or `,"name":`, and room for an empty text behind it. */
static bool add_name(struct log_line *line, enum hf_log_form form, size_t keep,
                     const char *name)
{
    char out[NAME_MAX_BYTES + 8];
    size_t len = 0;

    if (form == HF_LOG_JSON)
        out[len++] = ',';
    out[len++] = form == HF_LOG_JSON ? '"' : ' ';
    for (; *name != '\0' && len < NAME_MAX_BYTES; name++) {
        bool word = (*name >= 'a' && *name <= 'z') ||
                    (*name >= 'A' && *name <= 'Z') ||
                    (*name >= '0' && *name <= '9');
        out[len++] = word ? *name : '_';
    }
    if (form == HF_LOG_JSON)
        out[len++] = '"';
    out[len++] = form == HF_LOG_JSON ? ':' : '=';
    return put(line, keep + HF_DIGITS_MAX, out, len);
}

static void add_field(struct log_line *line, enum hf_log_form form, size_t keep,
                      const struct hf_log_field *field)
{
    char digits[HF_DIGITS_MAX];

    if (!add_name(line, form, keep, field->name))
        return;
    if (field->text == NULL) {
        (void)put(line, keep, digits, hf_print_u64(digits, field->number));
    } else if (form == HF_LOG_TEXT && is_plain(field)) {
        add_signs(line, form, keep, field->text, field->len);
    } else {
        (void)put(line, keep + 1, "\"", 1);
        add_signs(line, form, keep + 1, field->text, field->len);
        (void)put(line, keep, "\"", 1);
    }
}

void hf_log_line_event(struct log_line *line, enum hf_log_form form,
                       enum hf_log_level level, uint64_t wall_us,
                       struct log_stamp *stamp, const char *message,
                       const struct hf_log_field *fields, size_t count)
{
    const char *tail = form == HF_LOG_JSON ? "}\n" : "\n";
    size_t keep = strlen(tail);

    hf_log_line_head(line, form, level, wall_us, stamp);
    add_message(line, form, keep, message);
    for (size_t i = 0; i < count && !line->cut; i++) {
        if (fields[i].name != NULL)
            add_field(line, form, keep, &fields[i]);
    }
    (void)put(line, 0, tail, keep);
}
