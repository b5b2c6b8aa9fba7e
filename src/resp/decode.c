/* decode.c - one request from the front of a byte stream.
 *
 * Two forms, told apart by the first byte:
 *
 *   *COUNT\r\n ( $LEN\r\n BYTES \r\n ) x COUNT     framed, any bytes
 *   word "quoted word" 'word'\n                    inline, for people
 *
 * Every byte is judged as soon as it is there: a prefix of a good request is
 * HF_MORE, a prefix that nothing could complete is HF_INVALID. A request that
 * is not whole after RESP_REQUEST_MAX bytes is refused, so that a buffer of
 * that size always suffices.
 */
#include <assert.h>

#include "base/little.h"
#include "resp/resp.h"

/* Digits in a count or a length; leading zeros are counted too. */
#define LENGTH_DIGITS_MAX 10

/* "$0\r\n\r\n" */
#define SHORTEST_BULK 6u

#define PROTOCOL "Protocol error: "

static enum hf_status invalid(struct resp_request *out, const char *error)
{
    out->error = error;
    return HF_INVALID;
}

static inline bool is_crlf(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0; /* one comparison */
}

/* Reads `-1` or digits and the CRLF behind them, from input[*at]. */
__attribute__((noinline)) static enum hf_status
read_long_length(const char *input, size_t len, size_t *at, int64_t *out)
{
    size_t i = *at;
    size_t digits = 0;
    int64_t number = 0;

    bool negative = i < len && input[i] == '-';
    if (negative)
        i++;
    for (; i < len && input[i] >= '0' && input[i] <= '9'; i++) {
        if (++digits > LENGTH_DIGITS_MAX)
            return HF_INVALID;
        number = number * 10 + (input[i] - '0');
    }
    if (i == len)
        return HF_MORE;
    if (digits == 0 || input[i] != '\r' || (negative && number != 1))
        return HF_INVALID;
    if (i + 1 == len)
        return HF_MORE;
    if (input[i + 1] != '\n')
        return HF_INVALID;
    *out = negative ? -1 : number;
    *at = i + 2;
    return HF_OK;
}

/* The same; most have one digit. */
static inline enum hf_status read_length(const char *input, size_t len,
                                         size_t *at, int64_t *out)
{
    const char *from = input + *at;

    if (len - *at < 3 || from[0] < '0' || from[0] > '9' || !is_crlf(from + 1))
        return read_long_length(input, len, at, out);
    *out = from[0] - '0';
    *at += 3;
    return HF_OK;
}

/* Reads `$LEN\r\n BYTES \r\n` from input[*at]: seldom, see read_short(). */
__attribute__((noinline)) static enum hf_status
read_bulk(char *input, size_t len, size_t *at, struct resp_request *out,
          struct hf_bytes *arg)
{
    size_t i = *at;
    int64_t number;

    if (i == len)
        return HF_MORE;
    if (input[i++] != '$')
        return invalid(out, PROTOCOL "expected '$'");
    enum hf_status status = read_length(input, len, &i, &number);
    if (status == HF_MORE)
        return HF_MORE;
    if (status != HF_OK || number < 0 || number > RESP_BULK_MAX)
        return invalid(out, PROTOCOL "invalid bulk length");

    size_t size = (size_t)number;
    if (i + size + 2 > RESP_REQUEST_MAX)
        return invalid(out, PROTOCOL "too big request");
    if (len - i <= size)
        return HF_MORE;
    if (input[i + size] != '\r')
        return invalid(out, PROTOCOL "expected CRLF after bulk");
    if (len - i == size + 1)
        return HF_MORE;
    if (input[i + size + 1] != '\n')
        return invalid(out, PROTOCOL "expected CRLF after bulk");
    *arg = hf_bytes(input + i, size);
    *at = i + size + 2;
    return HF_OK;
}

/* Four bytes as a number, the first of them lowest. */
#define FOUR(a, b, c, d)                                        \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | \
     (uint32_t)(d) << 24)

/* The head of a bulk that has less than 100 bytes, which nearly all have:
 * returns its length, and in `*size` that of the bulk; 0: it is another.
 * SHORTEST_BULK bytes are there. What is left of a head without its signs are
 * the digits. */
static inline size_t read_head(const char *at, size_t *size)
{
    uint32_t head = hf_get_u32(at);
    uint32_t one = head - FOUR('$', '0', '\r', '\n');
    uint32_t two = head - FOUR('$', '0', '0', '\r');

    if ((one >> 8 | one << 24) <= 9) {
        *size = one >> 8;
        return 4;
    }
    uint32_t tens = two >> 8 & 0xff;
    uint32_t ones = two >> 16;
    if ((two & 0xff) != 0 || tens > 9 || ones > 9 || at[4] != '\n')
        return 0;
    *size = tens * 10 + ones;
    return 5;
}

/* Reads such a bulk from `at` on, if it is whole before `end`, and returns
 * where it ends. NULL: it is not known to be one. */
static inline char *read_short(char *at, const char *end, struct hf_bytes *arg)
{
    size_t size;

    if (end - at < (ptrdiff_t)SHORTEST_BULK)
        return NULL;
    size_t head = read_head(at, &size);
    at += head;
    if (head == 0 || end - at < (ptrdiff_t)size + 2 || !is_crlf(at + size))
        return NULL;
    *arg = hf_bytes(at, size);
    return at + size + 2;
}

/* Reads the bulks from `done` on, whatever they are, from input[at]. */
__attribute__((noinline)) static enum hf_status
decode_rest(char *input, size_t len, size_t at, size_t done,
            struct resp_request *out)
{
    for (size_t i = done; i < out->count; i++) {
        enum hf_status status = read_bulk(input, len, &at, out, &out->args[i]);
        if (status == HF_MORE && len >= RESP_REQUEST_MAX)
            return invalid(out, PROTOCOL "too big request");
        if (status != HF_OK)
            return status;
    }
    assert(at <= len);
    out->used = at;
    return HF_OK;
}

static inline enum hf_status decode_framed(char *input, size_t len,
                                           struct resp_request *out)
{
    size_t at = 1;
    int64_t count;
    enum hf_status status = read_length(input, len, &at, &count);

    if (status == HF_MORE)
        return HF_MORE;
    if (status != HF_OK || count > RESP_ARGS_MAX)
        return invalid(out, PROTOCOL "invalid multibulk length");
    const char *end = input + (len < RESP_REQUEST_MAX ? len : RESP_REQUEST_MAX);
    size_t args = count > 0 ? (size_t)count : 0;
    struct hf_bytes *arg = out->args;
    struct hf_bytes *last = arg + args;
    char *from = input + at;

    out->count = args;
    for (; arg < last; arg++) {
        char *next = read_short(from, end, arg);
        if (next == NULL)
            return decode_rest(input, len, (size_t)(from - input),
                               (size_t)(arg - out->args), out);
        from = next;
    }
    out->used = (size_t)(from - input);
    assert(out->used <= len);
    return HF_OK;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that the escape behind the backslash line[*at] stands for, inside
 * double quotes. Moves `*at` to the escape's last byte. */
static char read_escape(const char *line, size_t len, size_t *at)
{
    size_t i = *at + 1; /* the caller has seen that there is a byte */

    assert(i < len);
    *at = i;
    if (line[i] == 'x' && i + 2 < len && hex_digit(line[i + 1]) >= 0 &&
        hex_digit(line[i + 2]) >= 0) {
        *at = i + 2;
        return (char)(hex_digit(line[i + 1]) * 16 + hex_digit(line[i + 2]));
    }
    switch (line[i]) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return line[i];
    }
}

/* Resolves the quoted part that opens at line[*at], writing to line[*to],
 * which is never ahead of the reading. False: it does not close, or something
 * other than a space follows. */
static bool unquote(char *line, size_t len, size_t *at, size_t *to)
{
    char quote = line[*at];
    size_t i = *at + 1;

    for (; i < len && line[i] != quote; i++) {
        char c = line[i];
        if (quote == '"' && c == '\\' && i + 1 < len)
            c = read_escape(line, len, &i);
        else if (quote == '\'' && c == '\\' && i + 1 < len &&
                 line[i + 1] == '\'')
            c = line[++i];
        assert(*to < i);
        line[(*to)++] = c;
    }
    *at = i + 1;
    return i < len && (i + 1 == len || is_space(line[i + 1]));
}

/* Splits the line (without its end) into words, unquoted in place. */
static enum hf_status split_line(char *line, size_t len,
                                 struct resp_request *out)
{
    size_t i = 0;

    out->count = 0;
    for (;;) {
        while (i < len && is_space(line[i]))
            i++;
        if (i == len)
            return HF_OK;
        if (out->count == RESP_ARGS_MAX)
            return invalid(out, PROTOCOL "too many words in inline request");
        size_t start = i;
        size_t to = i;
        while (i < len && !is_space(line[i])) {
            if (line[i] != '"' && line[i] != '\'')
                line[to++] = line[i++];
            else if (!unquote(line, len, &i, &to))
                return invalid(out, PROTOCOL "unbalanced quotes in request");
        }
        out->args[out->count++] = hf_bytes(line + start, to - start);
    }
}

/* Not inlined, so that the other form saves no registers for it. */
__attribute__((noinline)) static enum hf_status
decode_inline(char *input, size_t len, struct resp_request *out)
{
    size_t look = len < RESP_INLINE_MAX ? len : RESP_INLINE_MAX;
    char *end = memchr(input, '\n', look);

    if (end == NULL && len >= RESP_INLINE_MAX)
        return invalid(out, PROTOCOL "too big inline request");
    if (end == NULL)
        return HF_MORE;
    size_t size = (size_t)(end - input);
    out->used = size + 1;
    if (size > 0 && input[size - 1] == '\r')
        size--;
    return split_line(input, size, out);
}

enum hf_status resp_decode(char *input, size_t len, struct resp_request *out)
{
    assert(out != NULL);
    if (len == 0)
        return HF_MORE;
    if (input[0] == '*')
        return decode_framed(input, len, out);
    return decode_inline(input, len, out);
}
