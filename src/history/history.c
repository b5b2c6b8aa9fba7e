/* history.c - recording: events in memory, or straight to a file. */
#include "history/history.h"

#include <assert.h>

#include "base/memory.h"
#include "history/record.h"

#define EVENTS_FIRST 256
#define EVENTS_MAX   (UINT32_MAX - 1)

struct history *history_new(void)
{
    struct history *history = hf_alloc_zeroed(sizeof *history);
    struct hf_hash_seed seed = {{1, 1}}; /* nobody chooses ids to harm us */

    if (history == NULL)
        return NULL;
    hf_texts_init(&history->texts, &history->account);
    if (hf_index_init(&history->ids, sizeof(struct id_slot), &history->texts,
                      seed, &history->account) != HF_OK) {
        history_free(history);
        return NULL;
    }
    return history;
}

void history_free(struct history *history)
{
    if (history == NULL)
        return;
    if (history->file != NULL)
        (void)fclose(history->file);
    hf_free(history->events);
    hf_index_destroy(&history->ids);
    hf_texts_destroy(&history->texts);
    hf_buf_destroy(&history->bytes);
    hf_buf_destroy(&history->line);
    hf_free(history);
}

const char *history_event_name(enum history_event kind)
{
    static const char *const names[] = {
        [HISTORY_OPEN] = "open",       [HISTORY_CALL] = "call",
        [HISTORY_ARRIVED] = "arrived", [HISTORY_SENT] = "sent",
        [HISTORY_ANSWER] = "answer",   [HISTORY_CLOSED] = "closed",
        [HISTORY_GONE] = "gone",       [HISTORY_START] = "start",
        [HISTORY_CRASH] = "crash",     [HISTORY_STOP] = "stop",
        [HISTORY_DATE] = "date",       [HISTORY_FAILED] = "failed",
    };

    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

static struct hf_bytes name_of(const uint64_t *id)
{
    return hf_bytes((const char *)id, sizeof *id);
}

struct id_slot *history_find(const struct history *history, uint64_t id)
{
    uint32_t number = hf_index_find(&history->ids, name_of(&id));

    return number == 0 ? NULL : hf_index_at(&history->ids, number);
}

static enum hf_status grow_events(struct history *history)
{
    size_t cap = history->cap == 0 ? EVENTS_FIRST : history->cap * 2;

    if (history->count < history->cap)
        return HF_OK;
    if (history->count >= EVENTS_MAX)
        return HF_FULL;
    void *events = hf_realloc(history->events, cap * sizeof(struct event));
    if (events == NULL)
        return HF_NOMEM;
    history->events = events;
    history->cap = cap;
    return HF_OK;
}

/* Does the event fit what was recorded before? */
static bool fits(const struct history *history, const struct event *event)
{
    const struct id_slot *slot = history_find(history, event->id);

    switch (event->kind) {
    case HISTORY_CALL:
        return event->id != 0 && slot == NULL;
    case HISTORY_ANSWER:
        if (slot == NULL || slot->answered)
            return false;
        return history->events[slot->event].client == event->client;
    case HISTORY_ARRIVED:
    case HISTORY_SENT:
        return slot != NULL &&
               history->events[slot->event].client == event->client;
    default:
        return event->id == 0;
    }
}

static enum hf_status keep(struct history *history, struct event *event,
                           const struct hf_bytes *words, size_t count)
{
    size_t before = history->bytes.len;
    enum hf_status status = HF_OK;

    if (!fits(history, event))
        return HF_INVALID;
    event->data = before;
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        uint32_t len = (uint32_t)words[i].len;
        if (event->kind == HISTORY_CALL)
            status = hf_buf_append(&history->bytes, &len, sizeof len);
        if (status == HF_OK)
            status = hf_buf_append(&history->bytes, words[i].data, len);
    }
    if (status == HF_OK)
        status = grow_events(history);
    if (status == HF_OK && event->kind == HISTORY_CALL &&
        hf_index_add(&history->ids, name_of(&event->id)) == 0)
        status = HF_NOMEM;
    if (status != HF_OK) {
        history->bytes.len = before;
        return status;
    }
    event->len = (uint32_t)(history->bytes.len - before);
    struct id_slot *slot = history_find(history, event->id);
    if (event->kind == HISTORY_CALL)
        slot->event = (uint32_t)history->count;
    else if (event->kind == HISTORY_ANSWER)
        slot->answered = true;
    history->events[history->count++] = *event;
    return HF_OK;
}

static enum hf_status record(struct history *history, struct event *event,
                             const struct hf_bytes *words, size_t count)
{
    enum hf_status status;

    if (event->time_us < history->time_us)
        return HF_INVALID;
    if (history->file == NULL) {
        status = keep(history, event, words, count);
    } else {
        history->line.len = 0;
        status = history_line(&history->line, event, words, count);
        if (status == HF_OK && fwrite(history->line.data, 1, history->line.len,
                                      history->file) != history->line.len)
            status = HF_IO;
    }
    if (status == HF_OK)
        history->time_us = event->time_us;
    return status;
}

enum hf_status history_call(struct history *history, uint64_t time_us,
                            uint32_t client, uint64_t id,
                            const struct hf_bytes *words, size_t count)
{
    struct event event = {.time_us = time_us,
                          .client = client,
                          .id = id,
                          .words = (uint32_t)count,
                          .kind = HISTORY_CALL};

    if (count == 0)
        return HF_INVALID;
    return record(history, &event, words, count);
}

enum hf_status history_answer(struct history *history, uint64_t time_us,
                              uint32_t client, uint64_t id,
                              struct hf_bytes reply)
{
    struct event event = {
        .time_us = time_us, .client = client, .id = id, .kind = HISTORY_ANSWER};

    return record(history, &event, &reply, 1);
}

enum hf_status history_mark(struct history *history, uint64_t time_us,
                            uint32_t client, uint64_t id,
                            enum history_event event)
{
    struct event mark = {
        .time_us = time_us, .client = client, .id = id, .kind = event};

    if (event == HISTORY_CALL || event == HISTORY_ANSWER ||
        history_event_name(event) == NULL)
        return HF_INVALID;
    return record(history, &mark, NULL, 0);
}

struct hf_bytes history_word(const struct history *history, size_t *at)
{
    uint32_t len;

    assert(*at + sizeof len <= history->bytes.len);
    memcpy(&len, history->bytes.data + *at, sizeof len);
    *at += sizeof len;
    struct hf_bytes word = hf_bytes(history->bytes.data + *at, len);
    *at += len;
    return word;
}
