/* record.c - one growing list of events. */
#include "sim/server/record.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/server/world.h"

#define KEYS_MAX   16
#define WORDS_MAX  256
#define SAY_BYTES  700
#define STORY_WORD 60  /* bytes of a word that a story shows */
#define STORY_TEXT 300 /* bytes of a reply */

/* Lines of a story before and after what it is about. */
#define STORY_LINES 50
#define STORY_AFTER 12

enum { RECORD_SAY = 100 };

struct item {
    uint64_t time_us;
    uint64_t wire;
    uint64_t id;
    int event;
    uint32_t words;
    size_t at; /* in the bytes: lengths and words, or the text */
    size_t len;
};

static struct {
    struct item *items;
    size_t count;
    size_t cap;
    char *bytes;
    size_t len;
    size_t room;
    size_t promised; /* items that the history has */
} record;

void record_begin(void)
{
    record.count = 0;
    record.len = 0;
    record.promised = SIZE_MAX;
}

void record_lossy(void)
{
    if (record.promised == SIZE_MAX)
        record.promised = record.count;
}

void record_end(void)
{
    free(record.items);
    free(record.bytes);
    memset(&record, 0, sizeof record);
}

static struct item *add(uint64_t wire, uint64_t id, int event)
{
    if (record.count == record.cap) {
        record.cap = record.cap ? 2 * record.cap : 4096;
        record.items = realloc(record.items, record.cap * sizeof *record.items);
        assert(record.items != NULL);
    }
    struct item *item = &record.items[record.count++];
    *item = (struct item){.time_us = world_now_us(),
                          .wire = wire,
                          .id = id,
                          .event = event,
                          .at = record.len};
    world_note(&(uint64_t[]){wire, id, (uint64_t)event}, 24);
    return item;
}

static void put(struct item *item, const void *data, size_t len)
{
    if (record.len + len > record.room) {
        record.room = 2 * (record.len + len) + 4096;
        record.bytes = realloc(record.bytes, record.room);
        assert(record.bytes != NULL);
    }
    if (len > 0)
        memcpy(record.bytes + record.len, data, len);
    record.len += len;
    item->len += len;
    world_note(data, len);
}

void record_call(uint64_t wire, uint64_t id, const struct hf_bytes *words,
                 size_t count)
{
    struct item *item = add(wire, id, HISTORY_CALL);

    assert(count <= WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        uint32_t len = (uint32_t)words[i].len;
        put(item, &len, sizeof len);
        put(item, words[i].data, words[i].len);
    }
    item->words = (uint32_t)count;
}

void record_answer(uint64_t wire, uint64_t id, struct hf_bytes reply)
{
    put(add(wire, id, HISTORY_ANSWER), reply.data, reply.len);
}

void record_mark(uint64_t wire, uint64_t id, enum history_event event)
{
    (void)add(wire, id, (int)event);
}

void record_run_end(enum history_event how, bool failed)
{
    if (failed)
        record_mark(0, 0, HISTORY_FAILED);
    record_mark(0, 0, how);
}

void record_say(const char *format, ...)
{
    char text[SAY_BYTES];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len >= (int)sizeof text)
        len = (int)sizeof text - 1;
    put(add(0, 0, RECORD_SAY), text, (size_t)len);
}

static size_t words_of(const struct item *item, struct hf_bytes *out)
{
    size_t at = item->at;

    for (uint32_t i = 0; i < item->words; i++) {
        uint32_t len;
        memcpy(&len, record.bytes + at, sizeof len);
        at += sizeof len;
        out[i] = hf_bytes(record.bytes + at, len);
        at += len;
    }
    return item->words;
}

static enum hf_status to_history(struct history *history,
                                 const struct item *item)
{
    struct hf_bytes words[WORDS_MAX];
    uint32_t wire = (uint32_t)item->wire;

    if (item->event == RECORD_SAY)
        return HF_OK;
    if (item->event == HISTORY_CALL)
        return history_call(history, item->time_us, wire, item->id, words,
                            words_of(item, words));
    if (item->event == HISTORY_ANSWER)
        return history_answer(history, item->time_us, wire, item->id,
                              hf_bytes(record.bytes + item->at, item->len));
    return history_mark(history, item->time_us, wire, item->id,
                        (enum history_event)item->event);
}

struct history *record_history(void)
{
    struct history *history = history_new();

    for (size_t i = 0; i < record.count && i < record.promised && history;
         i++) {
        if (to_history(history, &record.items[i]) != HF_OK) {
            history_free(history);
            history = NULL;
        }
    }
    return history;
}

/* ---- Stories. ---- */

/* Words that say what a call is about: names, not options or numbers. */
static bool is_key(struct hf_bytes word)
{
    if (word.len == 0 || (word.data[0] >= '0' && word.data[0] <= '9') ||
        word.data[0] == '-' || word.data[0] == '*')
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] >= 'a' && word.data[i] <= 'z')
            return true;
    }
    return false;
}

static size_t find_keys(uint64_t id, uint64_t other, struct hf_bytes *keys)
{
    struct hf_bytes words[WORDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < record.count; i++) {
        const struct item *item = &record.items[i];
        if (item->event != HISTORY_CALL || item->id == 0 ||
            (item->id != id && item->id != other))
            continue;
        size_t n = words_of(item, words);
        for (size_t w = 1; w < n && count < KEYS_MAX; w++) {
            bool owner = hf_bytes_equal(words[w - 1], hf_bytes_text("OWNER"));
            if (is_key(words[w]) && !owner)
                keys[count++] = words[w];
        }
    }
    return count;
}

static bool concerns(const struct item *item, const struct hf_bytes *keys,
                     size_t count)
{
    struct hf_bytes words[WORDS_MAX];

    if (item->event != HISTORY_CALL)
        return false;
    size_t n = words_of(item, words);
    for (size_t w = 0; w < n; w++) {
        for (size_t k = 0; k < count; k++) {
            if (hf_bytes_equal(words[w], keys[k]))
                return true;
        }
    }
    return count == 0 || (n > 0 && hf_bytes_is(words[0], "FLUSHALL"));
}

static void print_bytes(struct hf_bytes bytes, size_t most, FILE *out)
{
    for (size_t i = 0; i < bytes.len && i < most; i++) {
        char c = bytes.data[i];
        if (c == '\r')
            continue;
        fputc(c == '\n' ? ' ' : c < 32 || c > 126 ? '.' : c, out);
    }
    if (bytes.len > most)
        fprintf(out, "... (%zu bytes)", bytes.len);
}

static double story_ms(uint64_t time_us)
{
    return ((double)time_us - 1e9) / 1000;
}

/* The answer to the call at `at`, and when it was read and answered. */
static void print_answer(size_t at, FILE *out)
{
    const struct item *call = &record.items[at];

    for (size_t i = at + 1; i < record.count; i++) {
        const struct item *item = &record.items[i];
        if (item->wire != call->wire)
            continue;
        if (item->event == HISTORY_CLOSED)
            break;
        if (item->id != call->id)
            continue;
        if (item->event == HISTORY_ARRIVED)
            fprintf(out, " [read %.3f]", story_ms(item->time_us));
        else if (item->event == HISTORY_SENT)
            fprintf(out, " [answered %.3f]", story_ms(item->time_us));
        if (item->event != HISTORY_ANSWER)
            continue;
        fprintf(out, " <- %.3f ", story_ms(item->time_us));
        print_bytes(hf_bytes(record.bytes + item->at, item->len), STORY_TEXT,
                    out);
        return;
    }
    fprintf(out, " (no answer)");
}

static void print_item(size_t at, FILE *out)
{
    static const char *const names[] = {
        [HISTORY_OPEN] = "connects",
        [HISTORY_CLOSED] = "is closed",
        [HISTORY_GONE] = "reset is heard by the server",
    };
    const struct item *item = &record.items[at];
    struct hf_bytes words[WORDS_MAX];

    fprintf(out, "%12.3f ms  ", story_ms(item->time_us));
    if (item->event == RECORD_SAY) {
        fprintf(out, "** %.*s\n", (int)item->len, record.bytes + item->at);
        return;
    }
    if (item->wire == 0) {
        fprintf(out, "** server %s\n",
                item->event == HISTORY_START    ? "starts"
                : item->event == HISTORY_CRASH  ? "crashes"
                : item->event == HISTORY_DATE   ? "has another date"
                : item->event == HISTORY_FAILED ? "has a journal that failed"
                                                : "is stopped");
        return;
    }
    fprintf(out, "client %llu", (unsigned long long)item->wire);
    if (item->event == HISTORY_CALL) {
        size_t count = words_of(item, words);
        fprintf(out, " #%llu", (unsigned long long)item->id);
        for (size_t i = 0; i < count; i++) {
            fputc(' ', out);
            print_bytes(words[i], STORY_WORD, out);
        }
        print_answer(at, out);
    } else {
        fprintf(out, " %s", names[item->event]);
    }
    fputc('\n', out);
}

/* Which ids, and which wires, belong to the story. */
static void mark_ids(const struct hf_bytes *keys, size_t count, char *ids,
                     char *wires, size_t most)
{
    for (size_t i = 0; i < record.count; i++) {
        const struct item *item = &record.items[i];
        if (concerns(item, keys, count) && item->id < most &&
            item->wire < most) {
            ids[item->id] = 1;
            wires[item->wire] = 1;
        }
    }
}

/* Is it part of the story? */
static bool is_told(const struct item *item, bool all, const char *ids,
                    const char *wires)
{
    if (item->event == HISTORY_ARRIVED || item->event == HISTORY_SENT ||
        item->event == HISTORY_ANSWER)
        return false; /* told with the call */
    if (all || item->wire == 0)
        return true;
    if (item->event == HISTORY_OPEN)
        return false;
    return item->id == 0 ? wires[item->wire] : ids[item->id];
}

/* Where the story begins, so that it has not many more than STORY_LINES lines
 * before the call `id`. */
static size_t find_start(uint64_t id, bool all, const char *ids,
                         const char *wires)
{
    size_t last = record.count;
    size_t lines = 0;

    for (size_t i = 0; i < record.count && id != 0; i++) {
        if (record.items[i].event == HISTORY_CALL && record.items[i].id == id)
            last = i;
    }
    while (last > 0 && lines < STORY_LINES)
        lines += is_told(&record.items[--last], all, ids, wires);
    return id == 0 ? 0 : last;
}

void record_story(uint64_t id, uint64_t other, FILE *out)
{
    struct hf_bytes keys[KEYS_MAX];
    size_t count = find_keys(id, other, keys);
    size_t most = record.count + 2;
    bool all = id == 0 && other == 0;
    char *ids = calloc(most, 1);
    char *wires = calloc(most, 1);
    size_t after = 0;

    assert(ids != NULL && wires != NULL);
    mark_ids(keys, count, ids, wires, most);
    size_t i = find_start(id > other ? id : other, all, ids, wires);
    if (i > 0)
        fprintf(out, "   ...\n");
    for (bool seen = all; i < record.count && after < STORY_AFTER; i++) {
        seen = seen || record.items[i].id == (id > other ? id : other);
        if (!is_told(&record.items[i], all, ids, wires))
            continue;
        print_item(i, out);
        after += seen && !all;
    }
    free(ids);
    free(wires);
}
