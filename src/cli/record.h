/* record.h - writes down what the connections of a run asked and were told.
 *
 * The history goes straight to its file (history/history.h); nothing is kept
 * but the number of the next call. A record without a history takes nothing
 * and costs a comparison, so callers need not ask whether there is one.
 */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "history/history.h"

struct record {
    struct history *history; /* NULL: nothing is recorded */
    uint64_t next_id;
};

/* Starts the file. `path` NULL: nothing will be recorded. False: a message is
 * on stderr. */
bool record_open(struct record *record, const char *path);
/* Ends it; false: it is not whole, and a message is on stderr. */
bool record_close(struct record *record);

/* Whole requests, as bytes that are about to be sent by one connection; the
 * id of the first, which its answers go on from. */
uint64_t record_requests(struct record *record, uint32_t client,
                         struct hf_bytes requests);
/* One request as words. */
uint64_t record_call(struct record *record, uint32_t client,
                     const struct hf_bytes *words, size_t count);
void record_answer(struct record *record, uint32_t client, uint64_t id,
                   struct hf_bytes reply);
/* The connection was opened (HISTORY_OPEN), or ended (HISTORY_CLOSED). */
void record_mark(struct record *record, uint32_t client,
                 enum history_event event);

#endif
