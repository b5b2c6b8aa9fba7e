/* log_line.c - a line is made: no lock, no look at the time zone's file. */
#include "exec/log_line.h"

#include "base/bytes.h"

#define SECOND_MAX UINT64_C(253402300799) /* the last one of the year 9999 */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* ---- Time. ---- */

static bool is_leap(unsigned year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned month_days(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30,
                                         31, 31, 30, 31, 30, 31};
    return month == 1 && is_leap(year) ? 29 : days[month];
}

/* `digits` of the number, with zeroes in front. */
static char *add_number(char *at, uint64_t number, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return at + digits;
}

static void stamp_make(struct log_stamp *stamp, uint64_t second)
{
    uint64_t days = second / 86400;
    uint64_t rest = second % 86400;
    unsigned year = 1970;
    unsigned month = 0;
    char *at = stamp->text;

    for (; days >= 365u + is_leap(year); year++)
        days -= 365u + is_leap(year);
    for (; days >= month_days(year, month); month++)
        days -= month_days(year, month);
    at = add_number(at, year, 4);
    *at++ = '-';
    at = add_number(at, month + 1, 2);
    *at++ = '-';
    at = add_number(at, days + 1, 2);
    *at++ = 'T';
    at = add_number(at, rest / 3600, 2);
    *at++ = ':';
    at = add_number(at, rest / 60 % 60, 2);
    *at++ = ':';
    at = add_number(at, rest % 60, 2);
    stamp->second_plus_1 = second + 1;
}

/* ---- The parts of a line. There is room for all but the message. ---- */

static void add(struct log_line *line, const char *data, size_t len)
{
    memcpy(line->text + line->len, data, len);
    line->len += len;
}

static void add_text(struct log_line *line, const char *text)
{
    add(line, text, strlen(text));
}

static void add_time(struct log_line *line, struct log_stamp *stamp,
                     uint64_t wall_us)
{
    uint64_t second = wall_us / 1000000;

    if (second > SECOND_MAX)
        second = SECOND_MAX;
    if (stamp->second_plus_1 != second + 1)
        stamp_make(stamp, second);
    add(line, stamp->text, LOG_SECOND_BYTES);
    line->text[line->len] = '.';
    char *end = add_number(line->text + line->len + 1, wall_us % 1000000, 6);
    *end++ = 'Z';
    line->len = (size_t)(end - line->text);
}

size_t hf_log_sign_json(const char *at, size_t left, char out[8], size_t *len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char byte = (unsigned char)*at;
    size_t bytes = hf_utf8_len(hf_bytes(at, left));

    if (bytes == 0) {
        memcpy(out, "\\ufffd", 6);
        *len = 6;
        return 1;
    }
    if (byte < 0x20) {
        memcpy(out, "\\u00", 4);
        out[4] = digits[byte >> 4];
        out[5] = digits[byte & 15];
        *len = 6;
        return 1;
    }
    *len = 0;
    if (byte == '"' || byte == '\\')
        out[(*len)++] = '\\';
    memcpy(out + *len, at, bytes);
    *len += bytes;
    return bytes;
}

static size_t format_message(char *out, size_t cap, bool *cut,
                             const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
static size_t format_message(char *out, size_t cap, bool *cut,
                             const char *format, va_list args)
{
    int len = vsnprintf(out, cap, format, args);

    if (len < 0)
        len = snprintf(out, cap, "(a message that cannot be formatted)");
    *cut = (size_t)len >= cap;
    return *cut ? cap - 1 : (size_t)len;
}

static void add_json(struct log_line *line, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void add_json(struct log_line *line, const char *format, va_list args)
{
    static const char tail[] = "\"}\n";
    const size_t most = sizeof line->text - (sizeof tail - 1);
    char message[HF_LOG_LINE_MAX];
    size_t len =
        format_message(message, sizeof message, &line->cut, format, args);

    for (size_t i = 0; i < len;) {
        char sign[8];
        size_t bytes;
        i += hf_log_sign_json(message + i, len - i, sign, &bytes);
        if (line->len + bytes > most) {
            line->cut = true;
            break;
        }
        add(line, sign, bytes);
    }
    add_text(line, tail);
}

static void add_plain(struct log_line *line, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void add_plain(struct log_line *line, const char *format, va_list args)
{
    char *message = line->text + line->len;
    /* The final zero makes room for the end of the line. */
    size_t len = format_message(message, sizeof line->text - line->len,
                                &line->cut, format, args);

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)message[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            message[i] = ' ';
    }
    message[len] = '\n';
    line->len += len + 1;
}

void hf_log_line_head(struct log_line *line, enum hf_log_form form,
                      enum hf_log_level level, uint64_t wall_us,
                      struct log_stamp *stamp)
{
    line->len = 0;
    line->cut = false;
    if (form == HF_LOG_JSON) {
        add_text(line, "{\"time\":\"");
        add_time(line, stamp, wall_us);
        add_text(line, "\",\"level\":\"");
        add_text(line, level_names[level]);
        add_text(line, "\",\"message\":\"");
    } else {
        add_time(line, stamp, wall_us);
        add_text(line, " ");
        add_text(line, level_names[level]);
        add_text(line, level_names[level][4] == '\0' ? "  " : " ");
    }
}

void hf_log_line_make(struct log_line *line, enum hf_log_form form,
                      enum hf_log_level level, uint64_t wall_us,
                      struct log_stamp *stamp, const char *format, va_list args)
{
    hf_log_line_head(line, form, level, wall_us, stamp);
    if (form == HF_LOG_JSON)
        add_json(line, format, args);
    else
        add_plain(line, format, args);
}
