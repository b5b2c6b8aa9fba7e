/* json.c - reads by descent; what is wrong ends it. */
#include "support/json.h"

#include <stdlib.h>
#include <string.h>

#include "support/wire.h"

#define DEPTH_MAX 16

struct reader {
    const char *at;
    const char *end;
};

static bool take(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && memchr(" \t\r\n", *r->at, 4) != NULL)
        r->at++;
}

static bool is_escape(struct reader *r)
{
    static const char hex[] = "0123456789abcdefABCDEF";

    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c != 'u')
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end || *r->at == '\0' || strchr(hex, *r->at) == NULL)
            return false;
    }
    return true;
}

static bool is_string(struct reader *r)
{
    if (!take(r, '"'))
        return false;
    while (r->at < r->end && *r->at != '"') {
        size_t len = hf_utf8_len(hf_bytes(r->at, (size_t)(r->end - r->at)));
        if ((unsigned char)*r->at < 0x20 || len == 0)
            return false;
        bool escape = *r->at == '\\';
        r->at += len;
        if (escape && !is_escape(r))
            return false;
    }
    return take(r, '"');
}

static bool is_digits(struct reader *r)
{
    const char *start = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > start;
}

static bool is_number(struct reader *r)
{
    (void)take(r, '-');
    if (!take(r, '0') && !is_digits(r))
        return false;
    return !take(r, '.') || is_digits(r);
}

static bool is_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool is_value(struct reader *r, int depth);

/* `name`: not NULL, then `value` gets that of the first such member. */
static bool is_object(struct reader *r, int depth, const char *name,
                      struct hf_bytes *value)
{
    bool more = take(r, '{');
    bool any = false;

    if (!more)
        return false;
    for (skip_blanks(r); !take(r, '}'); skip_blanks(r), any = true) {
        if (any && !take(r, ','))
            return false;
        skip_blanks(r);
        const char *key = r->at + 1;
        if (!is_string(r))
            return false;
        struct hf_bytes found = hf_bytes(key, (size_t)(r->at - 1 - key));
        skip_blanks(r);
        if (!take(r, ':'))
            return false;
        skip_blanks(r);
        const char *start = r->at;
        if (!is_value(r, depth))
            return false;
        if (name != NULL && hf_bytes_equal(found, hf_bytes_text(name)))
            *value = hf_bytes(start, (size_t)(r->at - start));
    }
    return true;
}

static bool is_list(struct reader *r, int depth)
{
    bool any = false;

    if (!take(r, '['))
        return false;
    for (skip_blanks(r); !take(r, ']'); skip_blanks(r), any = true) {
        if (any && !take(r, ','))
            return false;
        skip_blanks(r);
        if (!is_value(r, depth))
            return false;
    }
    return true;
}

static bool is_value(struct reader *r, int depth)
{
    if (r->at == r->end || depth == DEPTH_MAX)
        return false;
    switch (*r->at) {
    case '{':
        return is_object(r, depth + 1, NULL, NULL);
    case '[':
        return is_list(r, depth + 1);
    case '"':
        return is_string(r);
    case 't':
        return is_word(r, "true");
    case 'f':
        return is_word(r, "false");
    case 'n':
        return is_word(r, "null");
    default:
        return is_number(r);
    }
}

bool test_json_is_object(struct hf_bytes text)
{
    struct reader r = {text.data, text.data + text.len};

    return is_object(&r, 0, NULL, NULL) && r.at == r.end;
}

struct hf_bytes test_json_field(struct hf_bytes text, const char *name)
{
    struct reader r = {text.data, text.data + text.len};
    struct hf_bytes value = hf_bytes("", 0);

    if (!is_object(&r, 0, name, &value))
        return hf_bytes("", 0);
    if (value.len > 0 && value.data[0] == '"')
        value = hf_bytes(value.data + 1, value.len - 2);
    return value;
}

int64_t test_json_number(struct hf_bytes text, const char *name)
{
    struct hf_bytes value = test_json_field(text, name);
    char digits[32];
    char *end;

    if (value.len == 0 || value.len >= sizeof digits)
        return TEST_NO_NUMBER;
    memcpy(digits, value.data, value.len);
    digits[value.len] = '\0';
    int64_t number = strtoll(digits, &end, 10);
    return *end == '\0' ? number : TEST_NO_NUMBER;
}
