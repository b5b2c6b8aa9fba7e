/* reply.c - the engine's values and refusals as replies. */
#include "server/reply.h"

#include <assert.h>

#include "hold/book.h"
#include "resp/wire.h"
#include "server/errors.h"

#define SENTENCE_BYTES 2048u
/* The longest fact shown in a sentence. */
#define FACT_MAX 128u

struct reply_field reply_fields[HOLD_FIELD_COUNT];

void reply_init(void)
{
    for (unsigned i = 0; i < HOLD_FIELD_COUNT; i++)
        reply_field_make(&reply_fields[i], hold_field_name((enum hold_field)i));
}

static bool is_time_left(enum hold_field field)
{
    return field == FIELD_SAFE_MS || field == FIELD_EXPIRES_MS;
}

static int64_t less(int64_t number, uint64_t age_ms)
{
    return number > (int64_t)age_ms ? number - (int64_t)age_ms : 0;
}

/* Writes the values from `at` on, and returns where they end; `age_ms` is for
 * the times of maps among them. */
static size_t write_values(struct reply *reply, struct hf_bytes body, size_t at,
                           uint32_t count, uint64_t age_ms);

/* A field and a number in the engine's form. */
#define PAIR_BYTES 10u

static inline bool is_pair(const char *at, const char *end)
{
    return end - at >= (ptrdiff_t)PAIR_BYTES && at[1] == REPLY_NUMBER;
}

/* Writes those that stand one after the other between `at` and `end`, `*count`
 * at most, which is counted down. Returns where they end. */
static inline const char *write_pairs(struct reply *reply, const char *at,
                                      const char *end, uint32_t *count,
                                      uint64_t age_ms)
{
    char *to = wire_reserve(reply, *count * WIRE_PAIR_MAX);

    for (; *count > 0 && is_pair(at, end); --*count, at += PAIR_BYTES) {
        enum hold_field field = (enum hold_field)(unsigned char)at[0];
        int64_t number = (int64_t)hf_get_u64(at + 2);
        if (age_ms > 0 && is_time_left(field))
            number = less(number, age_ms);
        if (to != NULL)
            to = wire_pair(to, &reply_fields[field], number);
    }
    if (to != NULL)
        wire_done(reply->out, to);
    return at;
}

/* The same for a map behind its head; `age_ms` is for the times of this map. */
static size_t write_map(struct reply *reply, struct hf_bytes body, size_t at,
                        uint32_t count, uint64_t age_ms)
{
    const char *end = body.data + body.len;

    reply_put_map(reply, count);
    while (count > 0) {
        const char *from = body.data + at;
        if (is_pair(from, end)) {
            from = write_pairs(reply, from, end, &count, age_ms);
            at = (size_t)(from - body.data);
            continue;
        }
        enum hold_field field = reply_next_field(body, &at);
        reply->codec->field(reply, &reply_fields[field]);
        at = write_values(reply, body, at, 1, 0);
        count--;
    }
    return at;
}

static size_t write_values(struct reply *reply, struct hf_bytes body, size_t at,
                           uint32_t count, uint64_t age_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        struct reply_node node = reply_next(body, &at);
        switch (node.kind) {
        case REPLY_NUMBER:
            reply_put_number(reply, node.number);
            break;
        case REPLY_TEXT:
            reply_put_bytes(reply, node.text);
            break;
        case REPLY_NULL:
            reply_put_null(reply);
            break;
        case REPLY_OK:
            reply_put_simple(reply, "OK");
            break;
        case REPLY_LIST:
            reply_put_list(reply, node.count);
            at = write_values(reply, body, at, node.count, age_ms);
            break;
        case REPLY_TEXTS:
            reply_put_map(reply, node.count);
            at = write_values(reply, body, at, 2 * node.count, 0);
            break;
        case REPLY_MAP:
            at = write_map(reply, body, at, node.count, age_ms);
            break;
        }
    }
    return at;
}

/* ---- Refusals. ---- */

#define ANY                              (-1)
#define TWO(code, field, also, sentence) {HOLD_##code, {field, also}, sentence},
#define ROW(code, field, sentence)       TWO(code, field, ANY, sentence)
static const struct {
    enum hold_code code;
    int fields[2];
    const char *sentence;
} sentences[] = {REFUSALS(ROW, TWO, ANY)};
#undef ROW
#undef TWO
#define SENTENCES (sizeof sentences / sizeof sentences[0])

/* The fact of that name, in a flat map. */
static bool find_fact(struct hf_bytes body, struct hf_bytes name,
                      struct reply_node *out)
{
    size_t at = 0;
    uint32_t count = body.len > 0 ? reply_next(body, &at).count : 0;

    for (uint32_t i = 0; i < count; i++) {
        enum hold_field field = reply_next_field(body, &at);
        *out = reply_next(body, &at);
        if (hf_bytes_equal(reply_fields[field].name, name))
            return true;
    }
    return false;
}

static bool has_fact(struct hf_bytes body, int field)
{
    struct reply_node fact;

    return field == ANY || find_fact(body, reply_fields[field].name, &fact);
}

static const char *sentence_of(enum hold_code code, struct hf_bytes body)
{
    size_t i = 0;

    for (; i < SENTENCES; i++) {
        if (sentences[i].code == code &&
            has_fact(body, sentences[i].fields[0]) &&
            has_fact(body, sentences[i].fields[1]))
            break;
    }
    assert(i < SENTENCES); /* every refusal has one */
    return sentences[i].sentence;
}

/* A fact at the end of the sentence, at most FACT_MAX bytes and an ellipsis. */
static char *put_fact(char *at, const struct reply_node *fact, uint64_t age_ms)
{
    if (fact->kind == REPLY_NUMBER) {
        int64_t number = less(fact->number, age_ms);
        if (age_ms == 0)
            number = fact->number;
        if (number < 0)
            *at++ = '-';
        return at + hf_print_u64(at, number < 0 ? 0 - (uint64_t)number
                                                : (uint64_t)number);
    }
    size_t len = fact->text.len > FACT_MAX ? FACT_MAX : fact->text.len;
    for (size_t i = 0; i < len; i++)
        *at++ = fact->text.data[i] == '\0' ? '?' : fact->text.data[i];
    if (len < fact->text.len) {
        memcpy(at, "...", 3);
        at += 3;
    }
    return at;
}

static char *put_words(char *at, const char *words)
{
    size_t len = strlen(words);

    memcpy(at, words, len);
    return at + len;
}

/* One of a deadlock: owner session name mode since note. */
static char *put_member(char *at, const struct reply_node facts[6])
{
    at = put_words(at, "'");
    at = put_fact(at, &facts[2], 0);
    at = put_words(at, "' (");
    at = put_fact(at, &facts[3], 0);
    at = put_words(at, ", ");
    at = put_fact(at, &facts[4], 0);
    at = put_words(at, facts[5].text.len > 0 ? " ms, " : " ms");
    at = put_fact(at, &facts[5], 0);
    return put_words(at, ")");
}

/* Who waits for what: the list at the end of a refusal. The first is the one
 * who is told, and the last waits for it. */
static char *put_cycle(char *at, const char *end, struct hf_bytes body)
{
    struct reply_node facts[6], first[6];
    size_t from = 0;
    uint32_t fields = reply_next(body, &from).count;

    while (fields-- > 0 && reply_next_field(body, &from) != FIELD_CYCLE)
        (void)reply_next(body, &from);
    uint32_t count = reply_next(body, &from).count;
    for (uint32_t i = 0; i < count; i++) {
        if (end - at < (ptrdiff_t)(4 * FACT_MAX))
            return put_words(at, ", ...");
        (void)reply_next(body, &from);
        for (int f = 0; f < 6; f++) {
            (void)reply_next_field(body, &from);
            facts[f] = reply_next(body, &from);
        }
        if (i == 0)
            memcpy(first, facts, sizeof first);
        at = put_words(at, i == 0 ? "'" : ", behind '");
        at = put_fact(at, &facts[0], 0);
        at = put_words(at, count == 1 ? "', who is older, has or wants "
                           : i == 0   ? "' would wait for "
                                      : "', who waits for ");
        at = put_member(at, facts);
    }
    if (count == 1)
        return at;
    at = put_words(at, ", behind '");
    at = put_fact(at, &first[0], 0);
    return put_words(at, "'");
}

/* A number behind the sku: its name, then the number, or who is waiting. */
static char *put_number(char *at, enum hold_field field,
                        const struct reply_node *fact)
{
    if (field == FIELD_WAITING)
        return put_words(put_fact(put_words(at, ", "), fact, 0), " waiting");
    at = put_words(at, field == FIELD_REQUESTED ? "': " : ", ");
    at = put_words(put_words(at, hold_field_name(field)), " ");
    return put_fact(at, fact, 0);
}

/* The items that are short, or too many: the list at the end of a refusal. */
static char *put_items(char *at, const char *end, struct hf_bytes body)
{
    size_t from = 0;
    uint32_t fields = reply_next(body, &from).count;

    while (fields-- > 0 && reply_next_field(body, &from) != FIELD_ITEMS)
        (void)reply_next(body, &from);
    uint32_t count = reply_next(body, &from).count;
    for (uint32_t i = 0; i < count; i++) {
        if (end - at < (ptrdiff_t)(2 * FACT_MAX)) {
            struct reply_node left = {.kind = REPLY_NUMBER,
                                      .number = count - i};
            at = put_fact(put_words(at, "; and "), &left, 0);
            return put_words(at, " more");
        }
        uint32_t told = reply_next(body, &from).count;
        at = put_words(at, i == 0 ? "sku '" : "; sku '");
        for (uint32_t f = 0; f < told; f++) {
            enum hold_field field = reply_next_field(body, &from);
            struct reply_node fact = reply_next(body, &from);
            at = f == 0 ? put_fact(at, &fact, 0) : put_number(at, field, &fact);
        }
    }
    return at;
}

static char *put_list(char *at, const char *end, struct hf_bytes body,
                      struct hf_bytes name)
{
    return hf_bytes_equal(name, reply_fields[FIELD_CYCLE].name)
               ? put_cycle(at, end, body)
               : put_items(at, end, body);
}

static struct hf_bytes make_sentence(enum hold_code code, struct hf_bytes body,
                                     uint64_t age_ms, char out[SENTENCE_BYTES])
{
    char *at = out;

    for (const char *from = sentence_of(code, body); *from != '\0'; from++) {
        assert(at + FACT_MAX + 4 < out + SENTENCE_BYTES);
        if (*from != '{') {
            *at++ = *from;
            continue;
        }
        bool left = *++from == '-';
        const char *end = strchr(from, '}');
        from += left;
        struct reply_node fact;
        struct hf_bytes name = hf_bytes(from, (size_t)(end - from));
        if (find_fact(body, name, &fact) && fact.kind == REPLY_LIST)
            at = put_list(at, out + SENTENCE_BYTES - FACT_MAX, body, name);
        else if (find_fact(body, name, &fact))
            at = put_fact(at, &fact, left ? age_ms : 0);
        from = end;
    }
    return hf_bytes(out, (size_t)(at - out));
}

/* The refusal of a group: which command it was, then that one's own code and
 * sentence, whose facts stand behind. */
static struct hf_bytes make_abort(struct hf_bytes body, uint64_t age_ms,
                                  char out[2 * SENTENCE_BYTES])
{
    enum hold_code code = (enum hold_code)reply_get_number(body, FIELD_STATUS);
    size_t at = 0;

    size_t len = make_sentence(HOLD_ABORTED, body, 0, out).len;
    reply_skip(body, &at);
    char *end = put_words(out + len, hold_code_name(code));
    *end++ = ' ';
    end += make_sentence(code, hf_bytes(body.data + at, body.len - at), age_ms,
                         end)
               .len;
    return hf_bytes(out, (size_t)(end - out));
}

__attribute__((noinline)) static void write_refusal(struct reply *reply,
                                                    enum hold_code code,
                                                    struct hf_bytes body,
                                                    uint64_t age_ms)
{
    char sentence[2 * SENTENCE_BYTES];

    reply->codec->error(reply, hf_bytes_text(hold_code_name(code)),
                        code == HOLD_ABORTED
                            ? make_abort(body, age_ms, sentence)
                            : make_sentence(code, body, age_ms, sentence));
}

void reply_write(struct reply *reply, enum hold_code code, struct hf_bytes body,
                 uint64_t age_ms)
{
    size_t at = 0;

    if (code != HOLD_OK) {
        write_refusal(reply, code, body, age_ms);
    } else if (body.len == 0) {
        reply_put_simple(reply, "OK");
    } else if (body.data[0] != REPLY_MAP) {
        (void)write_values(reply, body, at, 1, age_ms);
    } else {
        uint32_t count = reply_next(body, &at).count;
        (void)write_map(reply, body, at, count, age_ms);
    }
}

void reply_put_numbers(struct reply *reply, const struct hold_numbers *numbers)
{
    reply_pair_number(reply, "total", (int64_t)numbers->total);
    reply_pair_number(
        reply, "available",
        (int64_t)(numbers->total - numbers->reserved - numbers->sold));
    reply_pair_number(reply, "reserved", (int64_t)numbers->reserved);
    reply_pair_number(reply, "sold", (int64_t)numbers->sold);
}
