/* story.c - the events that concern one violation. */
#include "history/record.h"
#include "resp/resp.h"

/* Events that a story has at most; those nearest to the violation are told. */
#define STORY_MAX 60u
#define WORDS_MAX 64u
#define SHOWN_MAX 200u

/* What a call is about: all of its words but those that every call has. */
struct subject {
    struct hf_bytes words[WORDS_MAX];
    size_t count;
};

static bool is_keyword(struct hf_bytes word)
{
    static const char *const keywords[] = {
        "TTL",   "WAIT", "OWNER", "REQ",   "ITEM",  "REASON", "CURSOR",
        "COUNT", "RATE", "PER",   "BURST", "COST",  "SET",    "ADD",
        "GET",   "LIST", "DEL",   "*",     "SHADOW"};

    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (hf_bytes_is(word, keywords[i]))
            return true;
    }
    return false;
}

static void add_subject(struct subject *subject, struct hf_bytes word)
{
    int64_t number;

    if (word.len == 0 || subject->count == WORDS_MAX || is_keyword(word) ||
        hf_parse_i64(word, &number) == HF_OK)
        return;
    subject->words[subject->count++] = word;
}

/* Names, ids of reservations and of requests; owners are no objects. */
static void read_subject(const struct history *history, uint64_t id,
                         struct subject *subject)
{
    const struct id_slot *slot = history_find(history, id);
    bool owner = false;

    if (slot == NULL)
        return;
    const struct event *event = &history->events[slot->event];
    size_t at = event->data;
    for (uint32_t i = 0; i < event->words; i++) {
        struct hf_bytes word = history_word(history, &at);
        if (i > 0 && !owner)
            add_subject(subject, word);
        owner = hf_bytes_is(word, "OWNER");
    }
}

static bool concerns(const struct history *history, const struct event *event,
                     const struct subject *subject)
{
    size_t at = event->data;

    for (uint32_t i = 0; i < event->words; i++) {
        struct hf_bytes word = history_word(history, &at);
        for (size_t j = 0; i > 0 && j < subject->count; j++) {
            if (hf_bytes_equal(word, subject->words[j]))
                return true;
        }
    }
    return false;
}

/* Is the call at this place an EXEC of something about the subject? */
static bool executes(const struct history *history, uint32_t place,
                     const struct subject *subject)
{
    const struct event *exec = &history->events[place];
    size_t at = exec->data;

    if (!hf_bytes_is(history_word(history, &at), "EXEC"))
        return false;
    while (place-- > 0) {
        const struct event *event = &history->events[place];
        at = event->data;
        if (event->kind != HISTORY_CALL || event->client != exec->client)
            continue;
        if (concerns(history, event, subject))
            return true;
        if (hf_bytes_is(history_word(history, &at), "MULTI"))
            return false;
    }
    return false;
}

/* An event of the story: a call or an answer about the subject, or a mark of
 * the harness. */
static bool is_told(const struct history *history, const struct event *event,
                    const struct subject *subject,
                    const struct history_report *report, size_t n)
{
    if (event->kind >= HISTORY_START)
        return true;
    if (event->kind != HISTORY_CALL && event->kind != HISTORY_ANSWER)
        return false;
    if (event->id == report->found[n].id || event->id == report->found[n].other)
        return true;
    const struct id_slot *slot = history_find(history, event->id);
    return slot != NULL &&
           (concerns(history, &history->events[slot->event], subject) ||
            executes(history, slot->event, subject));
}

static void print_text(struct hf_bytes text, FILE *out)
{
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;

    for (size_t i = 0; i < len; i++) {
        char c = text.data[i];
        fputc(c >= ' ' && c <= '~' ? c : '.', out);
    }
}

/* A reply as values with spaces between. */
static void print_reply(struct hf_bytes reply, FILE *out)
{
    struct resp_value value;
    size_t at = 0;

    while (at < reply.len && at < SHOWN_MAX) {
        if (resp_read(reply, &at, &value) != HF_OK) {
            print_text(reply, out);
            return;
        }
        if (value.kind == RESP_NUMBER || value.kind == RESP_BOOL)
            fprintf(out, " %lld", (long long)value.number);
        else if (value.kind == RESP_NULL)
            fputs(" null", out);
        else if (value.kind != RESP_ARRAY && value.kind != RESP_MAP) {
            fputs(value.kind == RESP_ERROR ? " -" : " ", out);
            print_text(value.text, out);
        }
    }
}

static void print_event(const struct history *history,
                        const struct event *event, bool marked, FILE *out)
{
    fprintf(out, "%c %12.6f s  ", marked ? '>' : ' ',
            (double)event->time_us / 1e6);
    if (event->kind >= HISTORY_START) {
        fprintf(out, "-- %s\n", history_event_name(event->kind));
        return;
    }
    fprintf(out, "client %u  #%llu %s", event->client,
            (unsigned long long)event->id,
            event->kind == HISTORY_CALL ? "asks" : "is told");
    if (event->kind == HISTORY_ANSWER) {
        print_reply(hf_bytes(history->bytes.data + event->data, event->len),
                    out);
    } else {
        size_t at = event->data;
        for (uint32_t i = 0; i < event->words; i++) {
            fputc(' ', out);
            print_text(history_word(history, &at), out);
        }
    }
    fputc('\n', out);
}

void history_story(const struct history *history,
                   const struct history_report *report, size_t n, FILE *out)
{
    struct subject subject = {.count = 0};
    size_t total = 0;
    size_t last = 0; /* of the violation's own events, in the story */

    if (n >= report->count)
        return;
    uint64_t id = report->found[n].id;
    uint64_t other = report->found[n].other;
    read_subject(history, id, &subject);
    read_subject(history, other, &subject);
    for (size_t i = 0; i < history->count; i++) {
        const struct event *event = &history->events[i];
        if (!is_told(history, event, &subject, report, n))
            continue;
        total++;
        if (event->id != 0 && (event->id == id || event->id == other))
            last = total;
    }
    /* the last of them in sight, and what came before */
    size_t from = last + 5 > STORY_MAX ? last + 5 - STORY_MAX : 0;
    size_t told = 0;
    if (from > 0)
        fprintf(out, "  (%zu events before)\n", from);
    for (size_t i = 0; i < history->count; i++) {
        const struct event *event = &history->events[i];
        bool marked = event->id != 0 && (event->id == id || event->id == other);
        if (!is_told(history, event, &subject, report, n))
            continue;
        told++;
        if (marked || (told > from && told <= from + STORY_MAX))
            print_event(history, event, marked, out);
    }
    if (total > from + STORY_MAX)
        fprintf(out, "  (%zu events behind)\n", total - from - STORY_MAX);
}
