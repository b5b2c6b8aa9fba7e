/* bytes.c - buffers that grow by doubling; strict number parsing. */
#include "base/bytes.h"

#include <assert.h>
#include <stdarg.h>

#include "base/memory.h"

#define BUF_CAP_MIN 64

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool hf_bytes_have_far(struct hf_bytes bytes, char c)
{
    return bytes.len > 0 && memchr(bytes.data, c, bytes.len) != NULL;
}

bool hf_bytes_is(struct hf_bytes bytes, const char *name)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.data[i];
        if (c == name[i] && c != '\0')
            continue; /* mostly */
        if (c == '\0' || upper(c) != name[i])
            return false;
    }
    return name[bytes.len] == '\0';
}

/* Matches one `[...]` set that starts at pattern[*at] == '['. Moves `*at` to
 * the closing bracket, or to the last byte if there is none. */
static bool match_set(struct hf_bytes pattern, size_t *at, char c)
{
    size_t i = *at + 1;
    bool negate = i < pattern.len && pattern.data[i] == '^';
    bool hit = false;

    if (negate)
        i++;
    for (; i < pattern.len && pattern.data[i] != ']'; i++) {
        char low = pattern.data[i];
        char high = low;
        if (low == '\\' && i + 1 < pattern.len) {
            low = high = pattern.data[++i];
        } else if (i + 2 < pattern.len && pattern.data[i + 1] == '-' &&
                   pattern.data[i + 2] != ']') {
            high = pattern.data[i + 2];
            i += 2;
        }
        if (low > high) {
            char swap = low;
            low = high;
            high = swap;
        }
        hit = hit || (c >= low && c <= high);
    }
    *at = i < pattern.len ? i : pattern.len - 1;
    return hit != negate;
}

/* One pattern element other than '*' against one byte. */
static bool match_one(struct hf_bytes pattern, size_t *at, char c)
{
    char p = pattern.data[*at];

    if (p == '?')
        return true;
    if (p == '[')
        return match_set(pattern, at, c);
    if (p == '\\' && *at + 1 < pattern.len)
        p = pattern.data[++*at];
    return p == c;
}

/* On a mismatch, the last '*' takes one more byte: only the last one ever
 * needs to be tried again, so the work stays within pattern * text. */
bool hf_bytes_match_within(struct hf_bytes pattern, struct hf_bytes text,
                           uint64_t most, uint64_t *steps)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t star_text = 0;

    for (; t < text.len; ++*steps) {
        if (*steps > most)
            return false;
        if (p < pattern.len && pattern.data[p] == '*') {
            star = p++;
            star_text = t;
            if (p == pattern.len)
                return true; /* it takes the rest */
            continue;
        }
        size_t at = p;
        bool hit = p < pattern.len && match_one(pattern, &at, text.data[t]);
        *steps += at - p; /* the bytes of a set */
        if (hit) {
            p = at + 1;
            t++;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        p = star + 1;
        t = ++star_text;
    }
    for (; p < pattern.len && pattern.data[p] == '*'; p++)
        ++*steps;
    return p == pattern.len;
}

bool hf_bytes_match_steps(struct hf_bytes pattern, struct hf_bytes text,
                          uint64_t *steps)
{
    return hf_bytes_match_within(pattern, text, UINT64_MAX, steps);
}

bool hf_bytes_match(struct hf_bytes pattern, struct hf_bytes text)
{
    uint64_t steps = 0;

    return hf_bytes_match_steps(pattern, text, &steps);
}

size_t hf_utf8_len(struct hf_bytes text)
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

enum hf_status hf_buf_reserve(struct hf_buf *buf, size_t more)
{
    size_t need;
    size_t cap = buf->cap ? buf->cap : BUF_CAP_MIN;

    assert(buf->len <= buf->cap);
    if (__builtin_add_overflow(buf->len, more, &need))
        return HF_NOMEM;
    if (need <= buf->cap)
        return HF_OK;
    while (cap < need) {
        if (__builtin_mul_overflow(cap, (size_t)2, &cap))
            return HF_NOMEM;
    }
    char *data = hf_realloc(buf->data, cap);
    if (data == NULL)
        return HF_NOMEM;
    buf->data = data;
    buf->cap = cap;
    return HF_OK;
}

enum hf_status hf_buf_append(struct hf_buf *buf, const void *data, size_t len)
{
    enum hf_status status = hf_buf_reserve(buf, len);

    if (status == HF_OK && len > 0) {
        memcpy(buf->data + buf->len, data, len);
        buf->len += len;
    }
    return status;
}

enum hf_status hf_buf_format(struct hf_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need < 0)
        return HF_INVALID;
    if (hf_buf_reserve(buf, (size_t)need + 1) != HF_OK)
        return HF_NOMEM;
    va_start(args, format);
    vsnprintf(buf->data + buf->len, (size_t)need + 1, format, args);
    va_end(args);
    buf->len += (size_t)need;
    return HF_OK;
}

enum hf_status hf_buf_escape(struct hf_buf *buf, const char *text,
                             const char *signs)
{
    enum hf_status status = HF_OK;

    for (; *text != '\0' && !status; text++) {
        if (*text == '\n')
            status = hf_buf_append(buf, "\\n", 2);
        else if (strchr(signs, *text) != NULL)
            status = hf_buf_format(buf, "\\%c", *text);
        else
            status = hf_buf_append(buf, text, 1);
    }
    return status;
}

void hf_buf_consume(struct hf_buf *buf, size_t len)
{
    assert(len <= buf->len);
    if (len < buf->len && len > 0)
        memmove(buf->data, buf->data + len, buf->len - len);
    buf->len -= len;
}

size_t hf_buf_hand_out(struct hf_buf *buf, char *out, size_t cap)
{
    size_t len = buf->len;

    if (out != NULL && cap > 0) {
        size_t kept = len < cap ? len : cap - 1;
        if (kept > 0)
            memcpy(out, buf->data, kept);
        out[kept] = '\0';
    }
    hf_buf_destroy(buf);
    return len;
}

void hf_buf_destroy(struct hf_buf *buf)
{
    hf_free(buf->data);
    *buf = (struct hf_buf){0};
}

/* So many digits always fit. */
#define DIGITS_SAFE 19u

enum hf_status hf_parse_u64(struct hf_bytes text, uint64_t *out)
{
    size_t safe = text.len < DIGITS_SAFE ? text.len : DIGITS_SAFE;
    uint64_t number = 0;
    size_t i = 0;

    if (text.len == 0)
        return HF_INVALID;
    for (; i < safe; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9)
            return HF_INVALID;
        number = number * 10 + digit;
    }
    for (; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9 ||
            __builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return HF_INVALID;
    }
    *out = number;
    return HF_OK;
}

enum hf_status hf_parse_i64(struct hf_bytes text, int64_t *out)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    uint64_t size;

    if (negative)
        text = hf_bytes(text.data + 1, text.len - 1);
    if (hf_parse_u64(text, &size) != HF_OK)
        return HF_INVALID;
    if (size > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return HF_INVALID;
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return HF_OK;
}

/* Two digits of each number below 100. */
static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536"
    "37383940414243444546474849505152535455565758596061626364656667686970717273"
    "7475767778798081828384858687888990919293949596979899";

static inline char *put_2(char *out, uint32_t number)
{
    memcpy(out, pairs + number * 2, 2);
    return out + 2;
}

static inline char *put_4(char *out, uint32_t number)
{
    uint32_t high = number / 100;

    return put_2(put_2(out, high), number - high * 100);
}

static inline char *put_8(char *out, uint32_t number)
{
    uint32_t high = number / 10000;

    return put_4(put_4(out, high), number - high * 10000);
}

/* Without leading zeros: of a number below 100, 10,000 and 100,000,000. */
static inline char *begin_2(char *out, uint32_t number)
{
    if (number >= 10)
        return put_2(out, number);
    *out = (char)('0' + number);
    return out + 1;
}

static inline char *begin_4(char *out, uint32_t number)
{
    if (number < 100)
        return begin_2(out, number);
    uint32_t high = number / 100;

    return put_2(begin_2(out, high), number - high * 100);
}

static inline char *begin_8(char *out, uint32_t number)
{
    if (number < 10000)
        return begin_4(out, number);
    uint32_t high = number / 10000;

    return put_4(begin_4(out, high), number - high * 10000);
}

size_t hf_print_u64(char *out, uint64_t number)
{
    const uint64_t step = 100000000;

    if (number < step)
        return (size_t)(begin_8(out, (uint32_t)number) - out);
    uint64_t high = number / step;
    uint32_t low = (uint32_t)(number - high * step);
    if (high < step)
        return (size_t)(put_8(begin_8(out, (uint32_t)high), low) - out);
    uint32_t top = (uint32_t)(high / step); /* below 10,000 */
    char *at = put_8(begin_4(out, top), (uint32_t)(high - top * step));

    return (size_t)(put_8(at, low) - out);
}
