/* reply.c - what the engine says, in RESP: values as they are, refusals as a
 * code and a sentence with the facts. */
#include <assert.h>
#include <stdarg.h>

#include "server/server.h"

/* A value grows by less than this factor when it is written in RESP: the
 * worst is a field with an empty text, 4 bytes that become 26. */
#define GROWTH         8u
#define SENTENCE_BYTES 2048u

/* The fields' names as they stand on the wire, made once: eight of them go
 * out with every lock. */
static struct {
    char text[32];
    size_t len;
} wire_names[HOLD_FIELD_COUNT];

void reply_init(void)
{
    for (int i = 0; i < HOLD_FIELD_COUNT; i++) {
        const char *name = hold_field_name((enum hold_field)i);
        int len = snprintf(wire_names[i].text, sizeof wire_names[i].text,
                           "$%zu\r\n%s\r\n", strlen(name), name);
        assert(len > 0 && (size_t)len < sizeof wire_names[i].text);
        wire_names[i].len = (size_t)len;
    }
}

static bool is_time_left(enum hold_field field)
{
    return field == FIELD_SAFE_MS || field == FIELD_EXPIRES_MS;
}

/* `age_ms` is for the times of the outermost map. */
static void write_value(struct hf_buf *out, int version, struct hf_bytes body,
                        size_t *at, int64_t age_ms)
{
    struct reply_node node = reply_next(body, at);

    switch (node.kind) {
    case REPLY_NUMBER:
        if (age_ms > 0)
            node.number = node.number > age_ms ? node.number - age_ms : 0;
        (void)resp_number(out, node.number);
        break;
    case REPLY_TEXT:
        (void)resp_bulk(out, node.text);
        break;
    case REPLY_NULL:
        (void)resp_null(out, version);
        break;
    case REPLY_LIST:
        (void)resp_array(out, node.count);
        for (uint32_t i = 0; i < node.count; i++)
            write_value(out, version, body, at, 0);
        break;
    case REPLY_MAP:
        (void)resp_map(out, version, node.count);
        for (uint32_t i = 0; i < node.count; i++) {
            enum hold_field field = reply_next_field(body, at);
            (void)hf_buf_append(out, wire_names[field].text,
                                wire_names[field].len);
            write_value(out, version, body, at,
                        is_time_left(field) ? age_ms : 0);
        }
        break;
    }
}

/* The longest fact shown in a sentence. */
#define FACT_MAX 128

struct facts {
    struct hf_bytes body;
    uint64_t age_ms; /* since they were so */
    char text[SENTENCE_BYTES];
    int len;
};

static void say(struct facts *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct facts *f, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(f->text + f->len, sizeof f->text - (size_t)f->len, format,
                      args);
    va_end(args);
    if (n > 0)
        f->len += n;
    if ((size_t)f->len >= sizeof f->text)
        f->len = sizeof f->text - 1;
}

static long long number(const struct facts *f, enum hold_field field)
{
    return (long long)reply_get_number(f->body, field);
}

static long long left_ms(const struct facts *f)
{
    long long left = number(f, FIELD_EXPIRES_MS) - (long long)f->age_ms;

    return left > 0 ? left : 0;
}

static void say_text(struct facts *f, enum hold_field field)
{
    struct hf_bytes text = reply_get_text(f->body, field);
    size_t len = text.len > FACT_MAX ? FACT_MAX : text.len;
    char shown[FACT_MAX + 1];

    for (size_t i = 0; i < len; i++) /* a NUL would end the sentence */
        shown[i] = text.data[i] == '\0' ? '?' : text.data[i];
    shown[len] = '\0';
    say(f, "'%s%s'", shown, len < text.len ? "..." : "");
}

static bool has_text(const struct facts *f, enum hold_field field)
{
    return reply_get_text(f->body, field).len > 0;
}

static void say_lock(struct facts *f, const char *what)
{
    if (f->body.len == 0) {
        say(f, "everything was flushed");
        return;
    }
    say(f, "lock ");
    say_text(f, FIELD_NAME);
    say(f, " %s token %lld", what, number(f, FIELD_TOKEN));
}

static void say_short(struct facts *f)
{
    say(f, "sku ");
    say_text(f, FIELD_SKU);
    if (number(f, FIELD_SOLD) != 0 || number(f, FIELD_RESERVED) != 0)
        say(f, ": total %lld is below %lld reserved and %lld sold",
            number(f, FIELD_REQUESTED), number(f, FIELD_RESERVED),
            number(f, FIELD_SOLD));
    else
        say(f, ": requested %lld, available %lld", number(f, FIELD_REQUESTED),
            number(f, FIELD_AVAILABLE));
}

static void say_missing(struct facts *f)
{
    if (has_text(f, FIELD_SKU)) {
        say(f, "no product ");
        say_text(f, FIELD_SKU);
    } else if (has_text(f, FIELD_ID)) {
        say(f, "no reservation ");
        say_text(f, FIELD_ID);
    } else if (has_text(f, FIELD_RESOURCE)) {
        say(f, "no fence ");
        say_text(f, FIELD_RESOURCE);
    } else {
        say(f, "nobody holds lock ");
        say_text(f, FIELD_NAME);
    }
}

static void say_state(struct facts *f)
{
    if (has_text(f, FIELD_SKU)) {
        say(f, "sku ");
        say_text(f, FIELD_SKU);
        say(f, " has %lld reserved", number(f, FIELD_RESERVED));
    } else {
        say(f, "reservation ");
        say_text(f, FIELD_ID);
        struct hf_bytes status = reply_get_text(f->body, FIELD_STATUS);
        say(f, " is %.*s", (int)status.len, status.data);
    }
}

static void say_refusal(struct facts *f, enum hold_code code)
{
    switch (code) {
    case HOLD_BUSY:
        say(f, "lock ");
        say_text(f, FIELD_NAME);
        say(f, " is held by ");
        say_text(f, FIELD_OWNER);
        say(f, " for %lld ms more, %lld waiting", left_ms(f),
            number(f, FIELD_WAITING));
        break;
    case HOLD_TIMED_OUT:
        say(f, "waited %lld ms for the lock, %lld others wait",
            number(f, FIELD_WAITED_MS), number(f, FIELD_WAITING));
        break;
    case HOLD_NOTHELD:
        say_lock(f, "is not held with");
        break;
    case HOLD_LOST:
        say_lock(f, "is no longer held with");
        break;
    case HOLD_STALE:
        say(f, "token %lld is older than %lld, the newest seen for ",
            number(f, FIELD_TOKEN), number(f, FIELD_NEWEST));
        say_text(f, FIELD_NAME);
        break;
    case HOLD_SHORT:
        say_short(f);
        break;
    case HOLD_STATE:
        say_state(f);
        break;
    case HOLD_EXPIRED:
        say(f, "reservation ");
        say_text(f, FIELD_ID);
        say(f, " expired %lld ms ago", number(f, FIELD_EXPIRES_MS));
        break;
    case HOLD_NOTFOUND:
        say_missing(f);
        break;
    case HOLD_CONFLICT:
        say(f, "id ");
        say_text(f, FIELD_ID);
        say(f, " was used with other arguments");
        break;
    case HOLD_OVERLOADED: {
        struct hf_bytes name = reply_get_text(f->body, FIELD_NAME);
        say(f, "%.*s of %lld is reached", (int)name.len, name.data,
            number(f, FIELD_MAXIMUM));
        break;
    }
    case HOLD_BADARG:
        say(f, "the token %lld was never given, the newest is %lld",
            number(f, FIELD_TOKEN), number(f, FIELD_NEWEST));
        break;
    default:
        assert(code == HOLD_MOVED);
        say(f, "the request goes on in a newer connection");
        break;
    }
}

enum hf_status reply_write(struct hf_buf *out, int version, enum hold_code code,
                           struct hf_bytes body, uint64_t age_ms)
{
    size_t bound = code == HOLD_OK ? 16 + GROWTH * body.len : SENTENCE_BYTES;

    if (hf_buf_reserve(out, bound) != HF_OK)
        return HF_NOMEM; /* from here on there is room for all of it */
    if (code == HOLD_OK && body.len == 0) {
        (void)resp_simple(out, "OK");
    } else if (code == HOLD_OK) {
        size_t at = 0;
        write_value(out, version, body, &at, (int64_t)age_ms);
    } else {
        struct facts facts = {.body = body, .age_ms = age_ms};
        say(&facts, "%s ", hold_code_name(code));
        say_refusal(&facts, code);
        (void)resp_error(out, hf_bytes(facts.text, (size_t)facts.len));
    }
    return HF_OK;
}
