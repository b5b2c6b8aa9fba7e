/* group.h - MULTI, EXEC, DISCARD: commands that are queued and done as one.
 *
 *   MULTI --> LOCK, RESERVE, LIMIT ... --> EXEC --> one record --> one step
 *             '-- parsed, checked, QUEUED            '-- or none of it
 *
 * What is queued is kept as the records that it becomes; only a LIMIT is kept
 * as it came. Limits are not journaled: EXEC takes their permits as holds
 * first, and the record has their answers, so that a replay needs no limiter.
 * When the record was applied the holds are settled; if the group was refused,
 * or the log failed, the permits come back.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_GROUP_H
#define SERVER_GROUP_H

#include "hold/command.h"
#include "server/table.h"

/* What EXEC is told of a LIMIT that is denied. */
#define GROUP_ERROR_MAX 1024u

struct conn;
struct hold_out;
struct group_holds;
struct server;

/* What EXEC is made in. HF_NOMEM: groups_close() is to be called all the same.
 */
enum hf_status groups_open(struct server *server);
void groups_close(struct server *server);

/* May it be in a group? If so, there may still be words with which it is not:
 * a WAIT of LIMIT, a script that limits a rate. */
bool group_takes(const struct command *command);

/* True if the command, NULL for none, is queued by a connection that is in
 * MULTI, and not run. */
bool group_queues(const struct conn *conn, const struct command *command);
/* True if it is a MULTI of so many words that begins a group. Neither it nor
 * what is queued waits for what its connection sent before: then their answers
 * are owed, and told before that of EXEC, or as soon as nothing is on its way.
 */
bool group_begins(const struct conn *conn, const struct command *command,
                  size_t words);
/* Queues it. Of an engine's command, `server->command` was parsed with that
 * result, and `error` says what was wrong. False: it is to be tried again when
 * nothing of its connection is on its way. */
bool group_queue(const struct asked *asked, const struct command *command,
                 enum hf_status parsed, const char *error);

/* One could not be queued, if it is in MULTI: EXEC will refuse. */
void group_spoil(struct conn *conn);

/* There is something wrong with the words of a command that is not queued: of
 * EXEC that ends the group, as in Redis. */
void group_bad(struct server *server, struct conn *conn,
               const struct command *command, enum hf_status status,
               const char *error);

/* Fills in what was queued, without the answers of limits. */
void group_fill(struct server *server, const struct conn *conn,
                struct hold_command *command);
/* EXEC, with the command filled in. */
void group_exec(struct server *server, struct conn *conn,
                struct hold_command *command);
/* True if EXEC would be answered without carrying anything out. */
bool group_is_plain(const struct conn *conn);
/* Takes the permits of its LIMITs and fills their answers in. `*holds` is NULL
 * if there are none. HF_NOMEM; HF_FAILED: one is denied, `error` says which. */
enum hf_status group_hold(struct server *server, struct conn *conn,
                          struct hold_command *command,
                          struct group_holds **holds,
                          char error[GROUP_ERROR_MAX]);
/* What is owed of OK and QUEUED; the caller tells it, before EXEC's answer.
 * `*first`: it begins with OK. */
uint32_t group_take_owed(struct conn *conn, bool *first);
void group_say(struct conn *conn, uint32_t count, bool first);
/* Nothing of the connection is on its way: it is told what is owed. */
void group_catch_up(struct conn *conn);
/* Ends them: the permits are spent, or come back. NULL: nothing. */
void group_settle(struct server *server, struct group_holds *holds, bool spent);
/* The group was carried out: the connection hears of what happens to the locks
 * that it got. */
void group_granted(struct server *server, struct conn *conn,
                   struct hf_bytes group, struct hf_bytes body);
/* The group was carried out, or refused: then the command counts that refused
 * it, and a fence that did. */
void group_answered(struct server *server, struct hf_bytes group,
                    const struct hold_out *out);
/* The connection leaves MULTI. */
void group_leave(struct conn *conn);

command_fn group_multi, group_discard;

#endif
