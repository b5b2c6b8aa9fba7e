/* record.h - how a history keeps its events, for the files of this folder.
 *
 *   events   in the order in which they happened
 *   bytes    words (length, bytes) and replies, one behind the other
 *   ids      from a call's id to its event
 */
#ifndef HISTORY_RECORD_H
#define HISTORY_RECORD_H

#include "base/index.h"
#include "history/history.h"

struct event {
    uint64_t time_us;
    uint64_t id;
    size_t data; /* of a call or an answer: where in `bytes` */
    uint32_t len;
    uint32_t words; /* of a call */
    uint32_t client;
    enum history_event kind;
};

struct id_slot {
    struct hf_named named; /* the bytes of the id */
    uint32_t event;        /* of the call */
    bool answered;
};

struct history {
    struct event *events;
    size_t count;
    size_t cap;
    struct hf_buf bytes;
    struct hf_texts texts;
    struct hf_index ids; /* of struct id_slot */
    size_t account;      /* of the memory of these */
    uint64_t time_us;    /* of the last event */
    FILE *file;          /* NULL: events are kept */
    struct hf_buf line;
};

/* The word a kind of event has in the file; NULL: there is no such kind. */
const char *history_event_name(enum history_event kind);

/* Appends the bytes, escaped as in the file. */
enum hf_status history_escape(struct hf_buf *out, struct hf_bytes bytes);
/* Appends the whole line of an event, with its end. `words` has `count` of
 * them for a call, one (the reply) for an answer, none otherwise. */
enum hf_status history_line(struct hf_buf *out, const struct event *event,
                            const struct hf_bytes *words, size_t count);

/* The call's slot, or NULL. */
struct id_slot *history_find(const struct history *history, uint64_t id);
/* The next word of a call's data, from `*at` on. */
struct hf_bytes history_word(const struct history *history, size_t *at);

#endif
