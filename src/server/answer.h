/* answer.h - what a client is told, and how long it took.
 *
 * To a connection that is gone or closing nothing is told. Times are taken at
 * one instant for all requests of a read and for all answers of a batch:
 * answer_read_begin() and answer_now() come first.
 */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <stdint.h>

#include "hold/engine.h"

struct conn;
struct resp_request;
struct server;

/* What the engine says now. */
void answer_give(struct server *server, struct conn *conn, enum hold_code code,
                 struct hf_bytes body);
/* What it said of a record, as of the record's time: times that are left
 * (safe_ms, expires_ms) are counted from now on, never too long. */
void answer_applied(struct server *server, struct conn *conn,
                    enum hold_code code, struct hf_bytes body);
/* An error of errors.h, with its facts. */
void answer_error(struct server *server, struct conn *conn, enum hold_code code,
                  const char *sentence, ...)
    __attribute__((format(printf, 4, 5)));
/* An error in the words of another system: the line as a whole. */
void answer_line(struct server *server, struct conn *conn, enum hold_code code,
                 const char *line);
/* The arguments are wrong: HF_INVALID or HF_NOTFOUND, in the words of Redis
 * HF_FAILED, of a script HF_EMPTY; and what parsing said. */
enum hold_code answer_bad_code(enum hf_status status);
void answer_bad(struct server *server, struct conn *conn, enum hf_status status,
                const char *sentence);
/* The reply was put: it is sent, or, without memory, the connection closed. */
void answer_done(struct conn *conn);
/* The journal has failed. */
void answer_failed(struct server *server, struct conn *conn);
/* The request could not be taken: HF_IO, HF_FULL, HF_NOMEM, or of a group
 * HF_INVALID. */
void answer_refused(struct server *server, struct conn *conn,
                    enum hf_status why);
/* A wait for a lock ends because the disk hangs or the server stops. */
void answer_timeout(struct server *server, struct conn *conn);
/* The log is told that there is no memory. */
void answer_no_memory(struct server *server, const struct conn *conn);

/* The requests of one read share an instant, when they came, which is now. */
void answer_read_begin(struct server *server);
/* One of them, of the table's `index`, was answered at once. */
void answer_note_now(struct server *server, size_t index);
/* All of them were run: those that were answered at once are answered now. */
void answer_read_end(struct server *server);

/* From here on answers are given now. */
void answer_now(struct server *server);
/* A request that came then is answered; returns how long it took. */
uint64_t answer_note(struct server *server, enum hold_kind kind,
                     uint64_t came_ns);
/* And it was a LOCK that was granted. */
void answer_note_grant(struct server *server, uint64_t took_ns);

#endif
