/* record.h - all that happened in one run, in order.
 *
 * Kept apart from the history that the checker reads: it holds the faults and
 * the server's log as well, and needs none of the memory that a run may be
 * refused. What is recorded goes into the world's digest.
 */
#ifndef SIM_SERVER_RECORD_H
#define SIM_SERVER_RECORD_H

#include <stdio.h>

#include "base/bytes.h"
#include "history/history.h"

void record_begin(void);
void record_end(void);

void record_call(uint64_t wire, uint64_t id, const struct hf_bytes *words,
                 size_t count);
void record_answer(uint64_t wire, uint64_t id, struct hf_bytes reply);
void record_mark(uint64_t wire, uint64_t id, enum history_event event);
/* The run of the server ends. Its journal may have failed though no client has
 * heard of it: what it told may be undone. */
void record_run_end(enum history_event how, bool failed);
/* What the harness did to the server, or the server to its log. */
void record_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From here on what was told may have been lost, and nothing is promised:
 * the history ends. */
void record_lossy(void);
/* As a history; NULL without memory. */
struct history *record_history(void);
/* The calls with these ids, what they name, and what was done meanwhile; both
 * 0: everything. */
void record_story(uint64_t id, uint64_t other, FILE *out);

#endif
