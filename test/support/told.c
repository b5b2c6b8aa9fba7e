/* told.c - histories of clients, written by hand. */
#include "support/told.h"

#include "resp/resp.h"
#include "support/resp_write.h"
#include "support/test.h"

#define WORDS_MAX 256

static void begin(struct told *told)
{
    *told = (struct told){.history = history_new()};
    CHECK(told->history != NULL);
}

void told_begin(struct told *told)
{
    begin(told);
    told_mark(told, 0, 0, HISTORY_START);
}

void told_begin_open(struct told *told)
{
    begin(told);
    told_mark(told, 1, 0, HISTORY_OPEN);
}

void told_wait(struct told *told, uint64_t ms)
{
    told->now_us += ms * 1000;
}

static uint64_t tick(struct told *told)
{
    told->now_us += 1000;
    return told->now_us;
}

/* The words between spaces; how many. */
static size_t split(const char *text, struct hf_bytes *words)
{
    size_t count = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (len > 0) {
            CHECK(count < WORDS_MAX);
            words[count++] = hf_bytes(text, len);
        }
        text += len;
        text += *text == ' ';
    }
    return count;
}

uint64_t told_ask(struct told *told, uint32_t client, const char *text)
{
    struct hf_bytes words[WORDS_MAX];
    size_t count = split(text, words);

    CHECK_EQ(history_call(told->history, tick(told), client, ++told->id, words,
                          count),
             HF_OK);
    return told->id;
}

static bool is(struct hf_bytes word, const char *text)
{
    return hf_bytes_equal(word, hf_bytes_text(text));
}

static void put_map(struct hf_buf *out, const struct hf_bytes *words,
                    size_t count);

/* words[0] is "[": the list up to "]"; returns the words used. */
static size_t put_list(struct hf_buf *out, const struct hf_bytes *words,
                       size_t count)
{
    struct hf_buf values = {0};
    size_t entries = 0;
    size_t at = 1;

    while (!is(words[at], "]")) {
        size_t stop = at;
        for (int depth = 0;
             depth > 0 || (!is(words[stop], "|") && !is(words[stop], "]"));
             stop++) {
            CHECK(stop + 1 < count);
            depth += is(words[stop], "[") - is(words[stop], "]");
        }
        if (is(words[at], "null"))
            CHECK_EQ(resp_null(&values, 2), HF_OK);
        else if (words[at].data[0] == '+')
            CHECK_EQ(hf_buf_format(&values, "%.*s\r\n", (int)words[at].len,
                                   words[at].data),
                     HF_OK);
        else if (is(words[at], "["))
            put_list(&values, words + at, stop - at);
        else
            put_map(&values, words + at, stop - at);
        entries++;
        at = stop + is(words[stop], "|");
    }
    CHECK_EQ(resp_array(out, entries), HF_OK);
    if (values.len > 0)
        CHECK_EQ(hf_buf_append(out, values.data, values.len), HF_OK);
    hf_buf_destroy(&values);
    return at + 1;
}

/* A word that is a number is one, unless it is the name of something: a sku or
 * an owner is never a number here. */
static void put_map(struct hf_buf *out, const struct hf_bytes *words,
                    size_t count)
{
    struct hf_buf values = {0};
    size_t fields = 0;

    for (size_t i = 0; i < count; fields++) {
        int64_t number;
        CHECK(i + 1 < count);
        CHECK_EQ(resp_bulk(&values, words[i++]), HF_OK);
        if (is(words[i], "["))
            i += put_list(&values, words + i, count - i);
        else if (hf_parse_i64(words[i], &number) == HF_OK)
            CHECK_EQ(resp_number(&values, (i++, number)), HF_OK);
        else
            CHECK_EQ(resp_bulk(&values, words[i++]), HF_OK);
    }
    CHECK_EQ(resp_map(out, 2, fields), HF_OK);
    CHECK_EQ(hf_buf_append(out, values.data, values.len), HF_OK);
    hf_buf_destroy(&values);
}

void told_answer(struct told *told, uint32_t client, uint64_t id,
                 const char *text)
{
    struct hf_bytes words[WORDS_MAX];
    struct hf_buf reply = {0};

    if (text[0] == '-' || text[0] == '+' || text[0] == ':') {
        CHECK_EQ(hf_buf_format(&reply, "%s\r\n", text), HF_OK);
    } else {
        size_t count = split(text, words);
        if (is(words[0], "["))
            put_list(&reply, words, count);
        else
            put_map(&reply, words, count);
    }
    CHECK_EQ(history_answer(told->history, tick(told), client, id,
                            hf_buf_bytes(&reply)),
             HF_OK);
    hf_buf_destroy(&reply);
}

void told_mark(struct told *told, uint32_t client, uint64_t id,
               enum history_event event)
{
    CHECK_EQ(history_mark(told->history, tick(told), client, id, event), HF_OK);
}

uint64_t told(struct told *t, uint32_t client, const char *words,
              const char *reply)
{
    uint64_t id = told_ask(t, client, words);

    told_answer(t, client, id, reply);
    return id;
}

void told_check(struct told *told, const char *file, int line, const char *rule)
{
    static struct history_report report;
    enum hf_status status = history_check(told->history, &told->opts, &report);
    size_t other = SIZE_MAX;

    for (size_t i = 0; i < report.count; i++) {
        if (rule == NULL || strcmp(report.found[i].rule, rule) != 0)
            other = i;
    }
    if (other != SIZE_MAX)
        history_story(told->history, &report, other, stderr);
    history_free(told->history);
    told->history = NULL;
    if (status != HF_OK)
        test_fail(file, line, "the check ended with: %s",
                  hf_status_text(status));
    if (other != SIZE_MAX)
        test_fail(file, line, "expected %s, found %s: %s",
                  rule == NULL ? "no violation" : rule,
                  report.found[other].rule, report.found[other].text);
    if (rule != NULL && report.violations == 0)
        test_fail(file, line, "expected a violation of %s, found none", rule);
}
