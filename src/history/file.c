/* file.c - a history as text, one line per event.
 *
 * Reading is strict: a line that is not exactly as it would be written is
 * refused with its number, so that a damaged file is never taken for a short
 * history.
 */
#include <errno.h>

#include "base/memory.h"
#include "history/record.h"

static const char first_line[] = "holdfast history 1\n";

#define STREAM_BYTES (1u << 20)

static enum hf_status fail(char *error, enum hf_status status, const char *path,
                           uint64_t line, const char *what)
{
    if (line > 0)
        snprintf(error, HISTORY_ERROR_MAX, "%s, line %llu: %s", path,
                 (unsigned long long)line, what);
    else
        snprintf(error, HISTORY_ERROR_MAX, "%s: %s", path, what);
    return status;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x21 && c <= 0x7e && c != '%';
}

enum hf_status history_escape(struct hf_buf *out, struct hf_bytes bytes)
{
    static const char hex[] = "0123456789ABCDEF";

    if (hf_buf_reserve(out, bytes.len * 3 + 1) != HF_OK)
        return HF_NOMEM;
    char *at = out->data + out->len;
    if (bytes.len == 0)
        *at++ = '%';
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        if (is_plain(c)) {
            *at++ = (char)c;
        } else {
            *at++ = '%';
            *at++ = hex[c >> 4];
            *at++ = hex[c & 15];
        }
    }
    out->len = (size_t)(at - out->data);
    return HF_OK;
}

enum hf_status history_line(struct hf_buf *out, const struct event *event,
                            const struct hf_bytes *words, size_t count)
{
    enum hf_status status =
        hf_buf_format(out, "%llu %u %s", (unsigned long long)event->time_us,
                      event->client, history_event_name(event->kind));

    if (status == HF_OK && event->id != 0)
        status = hf_buf_format(out, " %llu", (unsigned long long)event->id);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        status = hf_buf_append(out, " ", 1);
        if (status == HF_OK)
            status = history_escape(out, words[i]);
    }
    return status == HF_OK ? hf_buf_append(out, "\n", 1) : status;
}

/* Writing. */

enum hf_status history_open(struct history **out, const char *path, char *error)
{
    struct history *history = history_new();

    if (history == NULL)
        return fail(error, HF_NOMEM, path, 0, hf_status_text(HF_NOMEM));
    history->file = fopen(path, "we");
    if (history->file == NULL ||
        setvbuf(history->file, NULL, _IOFBF, STREAM_BYTES) != 0 ||
        fputs(first_line, history->file) < 0) {
        fail(error, HF_IO, path, 0, strerror(errno));
        history_free(history);
        return HF_IO;
    }
    *out = history;
    return HF_OK;
}

enum hf_status history_close(struct history *history, char *error)
{
    bool bad = ferror(history->file) != 0;

    if (fclose(history->file) != 0 || bad) {
        snprintf(error, HISTORY_ERROR_MAX, "the history is not whole: %s",
                 errno != 0 ? strerror(errno) : "it could not be written");
        bad = true;
    }
    history->file = NULL;
    history_free(history);
    return bad ? HF_IO : HF_OK;
}

/* Reading. */

struct reader {
    struct history *history;
    char *line;
    size_t line_cap;
    struct hf_bytes rest; /* of the line */
    struct hf_bytes *words;
    size_t word_count;
    size_t word_cap;
};

/* The line up to the next space; false at its end. */
static bool next_word(struct reader *r, struct hf_bytes *out)
{
    const char *space;

    if (r->rest.data == NULL)
        return false;
    space = memchr(r->rest.data, ' ', r->rest.len);
    if (space == NULL) {
        *out = r->rest;
        r->rest.data = NULL;
        return true;
    }
    *out = hf_bytes(r->rest.data, (size_t)(space - r->rest.data));
    r->rest = hf_bytes(space + 1, r->rest.len - out->len - 1);
    return true;
}

static bool next_number(struct reader *r, uint64_t *out)
{
    struct hf_bytes word;

    return next_word(r, &word) && hf_parse_u64(word, out) == HF_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Makes the word's bytes of its text, in its place: they are never longer.
 * False: it is not as it would be written. */
static bool unescape(struct reader *r, struct hf_bytes *word)
{
    char *text = r->line + (word->data - r->line);
    size_t len = 0;

    if (word->len == 0)
        return false;
    for (size_t i = 0; i < word->len; i++) {
        char c = text[i];
        if (c == '%' && word->len == 1)
            break; /* the empty word */
        if (c == '%') {
            int high = i + 2 < word->len ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < word->len ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0 ||
                is_plain((unsigned char)(high * 16 + low)))
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (!is_plain((unsigned char)c)) {
            return false;
        }
        text[len++] = c;
    }
    word->len = len;
    return true;
}

/* The rest of the line as words. */
static enum hf_status read_words(struct reader *r)
{
    struct hf_bytes word;

    for (r->word_count = 0; next_word(r, &word); r->word_count++) {
        if (!unescape(r, &word))
            return HF_CORRUPT;
        if (r->word_count == r->word_cap) {
            size_t cap = r->word_cap == 0 ? 16 : r->word_cap * 2;
            void *words = hf_realloc(r->words, cap * sizeof *r->words);
            if (words == NULL)
                return HF_NOMEM;
            r->words = words;
            r->word_cap = cap;
        }
        r->words[r->word_count] = word;
    }
    return HF_OK;
}

static bool find_event(struct hf_bytes name, enum history_event *out)
{
    for (int i = 0; history_event_name((enum history_event)i) != NULL; i++) {
        *out = (enum history_event)i;
        if (hf_bytes_equal(name, hf_bytes_text(history_event_name(*out))))
            return true;
    }
    return false;
}

/* HF_CORRUPT: `*why` says what is wrong. */
static enum hf_status read_event(struct reader *r, const char **why)
{
    struct event event = {0};
    uint64_t client;
    struct hf_bytes name;
    enum hf_status status;

    *why = "expected TIME CLIENT EVENT";
    if (!next_number(r, &event.time_us) || !next_number(r, &client) ||
        client > UINT32_MAX || !next_word(r, &name))
        return HF_CORRUPT;
    event.client = (uint32_t)client;
    *why = "unknown event";
    if (!find_event(name, &event.kind))
        return HF_CORRUPT;
    bool has_id = event.kind >= HISTORY_CALL && event.kind <= HISTORY_ANSWER;
    *why = "expected the call's ID, a number above 0";
    if (has_id && (!next_number(r, &event.id) || event.id == 0))
        return HF_CORRUPT;
    *why = "malformed words";
    status = read_words(r);
    if (status != HF_OK)
        return status;
    *why = "wrong number of words";
    bool is_call = event.kind == HISTORY_CALL;
    if (is_call ? r->word_count == 0
                : r->word_count != (event.kind == HISTORY_ANSWER))
        return HF_CORRUPT;
    if (event.time_us < r->history->time_us)
        *why = "the time goes back";
    else if (is_call)
        *why = "this ID was called before";
    else
        *why = "no call of this client has this ID, or it was answered before";
    if (is_call)
        status = history_call(r->history, event.time_us, event.client, event.id,
                              r->words, r->word_count);
    else if (event.kind == HISTORY_ANSWER)
        status = history_answer(r->history, event.time_us, event.client,
                                event.id, r->words[0]);
    else
        status = history_mark(r->history, event.time_us, event.client, event.id,
                              event.kind);
    return status == HF_INVALID ? HF_CORRUPT : status;
}

static enum hf_status read_lines(struct reader *r, FILE *file, const char *path,
                                 char *error)
{
    const char *why = "expected 'holdfast history 1'";

    for (uint64_t number = 1;; number++) {
        ssize_t len = getline(&r->line, &r->line_cap, file);
        enum hf_status status = HF_CORRUPT;
        if (len < 0 && !feof(file))
            return fail(error, HF_IO, path, 0, strerror(errno));
        if (len < 0 && number > 1)
            return HF_OK;
        if (number == 1) {
            if (len > 0 && strcmp(r->line, first_line) == 0)
                continue;
        } else if (r->line[len - 1] != '\n') {
            why = "the last line does not end: the file was cut";
        } else {
            r->rest = hf_bytes(r->line, (size_t)len - 1);
            status = read_event(r, &why);
        }
        if (status != HF_OK)
            return fail(error, status, path, number,
                        status == HF_CORRUPT ? why : hf_status_text(status));
    }
}

enum hf_status history_load(struct history **out, const char *path, char *error)
{
    struct reader reader = {.history = history_new()};
    FILE *file = fopen(path, "re");
    enum hf_status status;

    if (reader.history == NULL)
        status = fail(error, HF_NOMEM, path, 0, hf_status_text(HF_NOMEM));
    else if (file == NULL)
        status = fail(error, HF_IO, path, 0, strerror(errno));
    else
        status = read_lines(&reader, file, path, error);
    if (file != NULL)
        (void)fclose(file);
    hf_free(reader.line);
    hf_free(reader.words);
    if (status == HF_OK)
        *out = reader.history;
    else
        history_free(reader.history);
    return status;
}
