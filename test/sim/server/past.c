/* past.c - makes questions about the past and for events, and judges histories,
 * events and audits. */
#include "sim/server/past.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "resp/resp.h"
#include "sim/server/feeding.h"

static struct {
    uint64_t newest; /* a version that was told */
    char wrong[400];
} past;

void past_begin(void)
{
    memset(&past, 0, sizeof past);
}

const char *past_wrong(void)
{
    return past.wrong[0] == '\0' ? NULL : past.wrong;
}

static void wrong(const char *format, ...)
{
    va_list args;

    if (past.wrong[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(past.wrong, sizeof past.wrong, format, args);
    va_end(args);
}

/* ---- Questions. ---- */

static void add_range(struct making *m)
{
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "FROM");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, past.newest + 2)));
    }
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "COUNT");
        words_add(m->out, "%llu", ULL(dice_scale(m->dice, 1, 1000)));
    }
}

/* From a number on, waiting for what comes, or not; seldom from the future. */
void make_events(struct making *m)
{
    static const char *const patterns[] = {"hf:stock:*", "hf:lock:*",
                                           "hf:*:?[0-9]*", "hf:all"};
    uint64_t ahead = dice_hit(m->dice, 100) ? 100 : 0;
    uint64_t back = dice_hit(m->dice, 700) ? 20 : past.newest;
    uint64_t ago = dice_below(m->dice, back + 1);

    words_add(m->out, "EVENTS");
    words_add(m->out, "FROM");
    words_add(m->out, "%llu",
              ULL(ahead + (ago < past.newest ? past.newest - ago : 0)));
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "COUNT");
        words_add(m->out, "%llu", ULL(dice_scale(m->dice, 1, 1000)));
    }
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "WAIT");
        words_add(m->out, "%llu",
                  ULL(dice_scale(m->dice, 1, m->mix->ttl_ms + 1)));
    }
    if (dice_hit(m->dice, 400)) {
        words_add(m->out, "MATCH");
        words_add(m->out, "%s", patterns[dice_below(m->dice, 4)]);
    }
}

void make_past(struct making *m)
{
    uint64_t kind = dice_below(m->dice, 10);
    bool known = m->knows->id_count > 0 && dice_hit(m->dice, 800);

    if (kind == 0) {
        words_add(m->out, "RESERVATION");
        words_add(m->out, "HISTORY");
        words_add(
            m->out, "%s",
            known ? m->knows->ids[dice_below(m->dice, m->knows->id_count)].name
                  : "nothing");
        add_range(m);
        return;
    }
    words_add(m->out, "STOCK");
    words_add(m->out, kind < 4 ? "HISTORY" : kind == 4 ? "AUDIT" : "GET");
    words_add(m->out, "%s", mix_sku(m->mix, dice_below(m->dice, m->mix->skus)));
    if (kind < 4)
        add_range(m);
    if (kind < 5)
        return;
    words_add(m->out, "AT");
    uint64_t back = dice_hit(m->dice, 500) ? past.newest : 20;
    uint64_t ago = dice_below(m->dice, back + 1);
    words_add(m->out, "%llu", ULL(ago < past.newest ? past.newest - ago : 0));
}

/* ---- Answers. ---- */

static void learn(const struct words *words, struct hf_bytes reply)
{
    int64_t version;

    if (words_is(words, 0, "STOCK") &&
        resp_field_number(reply, "version", &version) &&
        (uint64_t)version > past.newest)
        past.newest = (uint64_t)version;
}

/* Nothing can be wrong with it but the disk, or a server that stops. */
static void judge_audit(struct hf_bytes reply)
{
    int64_t n[6];

    if (memmem(reply.data, reply.len, "-ERR the audit", 14) != NULL &&
        memmem(reply.data, reply.len, " failed: cannot ", 16) == NULL &&
        memmem(reply.data, reply.len, "memory", 6) == NULL)
        wrong("an audit found: %.*s", (int)reply.len - 2, reply.data);
    if (reply.data[0] == '-')
        return;
    if (!resp_field_number(reply, "from", &n[0]) ||
        !resp_field_number(reply, "to", &n[1]) ||
        !resp_field_number(reply, "total", &n[2]) ||
        !resp_field_number(reply, "available", &n[3]) ||
        !resp_field_number(reply, "reserved", &n[4]) ||
        !resp_field_number(reply, "sold", &n[5]) || n[0] > n[1] ||
        n[2] != n[3] + n[4] + n[5])
        wrong("an audit says: %.*s", (int)reply.len, reply.data);
}

static uint64_t number_after(const struct words *words, const char *option)
{
    struct hf_bytes list[WORDS_MAX];
    size_t count = words_list(words, list);
    uint64_t number = 0;

    for (size_t i = 1; i + 1 < count; i++) {
        if (hf_bytes_is(list[i], option))
            (void)hf_parse_u64(list[i + 1], &number);
    }
    return number;
}

static struct feeding_ask asked(const struct words *words)
{
    struct hf_bytes list[WORDS_MAX];
    struct feeding_ask ask = {.match = {"", 0}};
    size_t count = words_list(words, list);

    if (!words_is(words, 0, "EVENTS")) {
        ask.about.subject =
            words_is(words, 0, "STOCK") ? SUBJECT_PRODUCT : SUBJECT_RESERVATION;
        ask.about.name = list[2];
    }
    for (size_t i = 1; i + 1 < count; i++) {
        if (hf_bytes_is(list[i], "MATCH"))
            ask.match = list[i + 1];
    }
    return ask;
}

/* The numbers of its events are those that were told, between the two ends. */
static void judge_history(const struct words *words, struct hf_bytes reply)
{
    struct feeding_ask ask = asked(words);
    uint64_t from = number_after(words, "FROM");
    struct resp_value head;
    int64_t next;
    int64_t gap;
    size_t at = 0;

    if (!resp_field_number(reply, "next", &next) ||
        !resp_field_number(reply, "gap", &gap) ||
        resp_find(reply, "events", &at) != HF_OK ||
        resp_read(reply, &at, &head) != HF_OK) {
        wrong("no history: %.*s", (int)reply.len, reply.data);
        return;
    }
    uint64_t place = (uint64_t)gap > from ? (uint64_t)gap : from;
    for (int64_t i = 0; i < head.number; i++) {
        size_t start = at;
        int64_t seq = 0;
        if (resp_skip(reply, &at) != HF_OK ||
            !resp_field_number(hf_bytes(reply.data + start, at - start), "seq",
                               &seq) ||
            feeding_next(place, &ask) != (uint64_t)seq) {
            wrong("a history of %.*s%.*s has %lld behind %llu, not %llu",
                  HF_SHOW(ask.about.name), HF_SHOW(ask.match), (long long)seq,
                  ULL(place), ULL(feeding_next(place, &ask)));
            return;
        }
        place = (uint64_t)seq;
    }
    if (feeding_next(place, &ask) <= (uint64_t)next)
        wrong("a history of %.*s%.*s up to %lld lacks %llu",
              HF_SHOW(ask.about.name), HF_SHOW(ask.match), (long long)next,
              ULL(feeding_next(place, &ask)));
}

void past_answer(const struct words *words, struct hf_bytes reply)
{
    learn(words, reply);
    if (words_is(words, 0, "STOCK") && words_is(words, 1, "AUDIT"))
        judge_audit(reply);
    else if (words->count > 2 &&
             (words_is(words, 1, "HISTORY") || words_is(words, 0, "EVENTS")) &&
             reply.data[0] != '-' && feeding_is_sure())
        judge_history(words, reply);
}
