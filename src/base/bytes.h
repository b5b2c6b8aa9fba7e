/* bytes.h - a view of bytes, a buffer that grows, and numbers as text.
 *
 *   struct hf_bytes: borrowed, not terminated; whoever made it says how long
 *                    it lasts.
 *   struct hf_buf:   owned; appends at `len`. A zeroed struct is an empty
 *                    buffer. After a failed append it is as before.
 *
 * Threads: none of it is shared; one thread at a time.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "holdfast/status.h"

struct hf_bytes {
    const char *data;
    size_t len;
};

struct hf_buf {
    char *data;
    size_t len;
    size_t cap;
};

static inline struct hf_bytes hf_bytes(const char *data, size_t len)
{
    struct hf_bytes bytes = {data, len};
    return bytes;
}

static inline struct hf_bytes hf_bytes_text(const char *text)
{
    return hf_bytes(text, strlen(text));
}

static inline struct hf_bytes hf_buf_bytes(const struct hf_buf *buf)
{
    return hf_bytes(buf->data, buf->len);
}

static inline bool hf_bytes_equal(struct hf_bytes a, struct hf_bytes b)
{
    return a.len == b.len && (a.len == 0 || !memcmp(a.data, b.data, a.len));
}

/* memcpy() of what is short as a rule; the halves may overlap. */
static inline void hf_copy_short(char *to, const char *from, size_t len)
{
    uint64_t words[2];
    uint32_t halves[2];

    if (len > 16) {
        memcpy(to, from, len);
    } else if (len >= 8) {
        memcpy(&words[0], from, 8);
        memcpy(&words[1], from + len - 8, 8);
        memcpy(to, &words[0], 8);
        memcpy(to + len - 8, &words[1], 8);
    } else if (len >= 4) {
        memcpy(&halves[0], from, 4);
        memcpy(&halves[1], from + len - 4, 4);
        memcpy(to, &halves[0], 4);
        memcpy(to + len - 4, &halves[1], 4);
    } else if (len > 0) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}

/* Is there a byte `c` in these eight? A word has a zero byte just if taking 1
 * from each byte sets a highest bit that was not set. */
static inline uint64_t hf_word_has(const char *data, char c)
{
    const uint64_t ones = UINT64_MAX / 255;
    uint64_t word;

    memcpy(&word, data, sizeof word);
    word ^= ones * (unsigned char)c;
    return (word - ones) & ~word & ones << 7;
}

/* Is the byte `c` among them? */
bool hf_bytes_have_far(struct hf_bytes bytes, char c);
static inline bool hf_bytes_have(struct hf_bytes bytes, char c)
{
    if (bytes.len < 8 || bytes.len > 16)
        return hf_bytes_have_far(bytes, c);
    return (hf_word_has(bytes.data, c) |
            hf_word_has(bytes.data + bytes.len - 8, c)) != 0;
}

/* Below 0, 0 or above: how they are sorted, byte by byte. */
static inline int hf_bytes_compare(struct hf_bytes a, struct hf_bytes b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* As `%.*s` of printf wants them. */
#define HF_SHOW(bytes) (int)(bytes).len, (bytes).data

/* Equal but for the case of ASCII letters; `upper` is in upper case. */
bool hf_bytes_is(struct hf_bytes bytes, const char *upper);

/* Glob: `*` any run, `?` any byte, `[a-z]` a set, `[^a-z]` its opposite, `\`
 * takes the next byte as it is. Work is bounded by pattern * text length. */
bool hf_bytes_match(struct hf_bytes pattern, struct hf_bytes text);
/* The same, and adds what it took to `*steps`, for callers with a budget. */
bool hf_bytes_match_steps(struct hf_bytes pattern, struct hf_bytes text,
                          uint64_t *steps);
/* And gives up, with false, when `*steps` is above `most`; one set of the
 * pattern may still pass that. */
bool hf_bytes_match_within(struct hf_bytes pattern, struct hf_bytes text,
                           uint64_t most, uint64_t *steps);

/* Length of the UTF-8 sequence at the start of `text`, which is not empty; 0 if
 * it is none: over-long forms, surrogates and values above U+10FFFF are not. */
size_t hf_utf8_len(struct hf_bytes text);

/* Room for `more` bytes behind `len`, or HF_NOMEM. */
enum hf_status hf_buf_reserve(struct hf_buf *buf, size_t more);
enum hf_status hf_buf_append(struct hf_buf *buf, const void *data, size_t len);
enum hf_status hf_buf_format(struct hf_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends the text with a backslash before each of `signs`; a line end becomes
 * `\n`. */
enum hf_status hf_buf_escape(struct hf_buf *buf, const char *text,
                             const char *signs);
/* Drops the first `len` bytes. */
void hf_buf_consume(struct hf_buf *buf, size_t len);
void hf_buf_destroy(struct hf_buf *buf);
/* The same, after a copy of the text to `out`, cut at `cap` and terminated if
 * cap > 0; NULL for none. Returns the length it has uncut. */
size_t hf_buf_hand_out(struct hf_buf *buf, char *out, size_t cap);

/* Decimal digits only, the whole text, no sign, no overflow: else HF_INVALID
 * and `*out` untouched. The signed form takes one leading '-'. */
enum hf_status hf_parse_u64(struct hf_bytes text, uint64_t *out);
enum hf_status hf_parse_i64(struct hf_bytes text, int64_t *out);

/* Longest text of a 64-bit number, without an end mark. */
#define HF_DIGITS_MAX 20

/* Writes `number` in decimal to `out` (HF_DIGITS_MAX bytes), returns the
 * length. */
size_t hf_print_u64(char *out, uint64_t number);

#endif
