/* waits.h - clients that wait for a lock, from the request to its end.
 *
 * A `struct wait` is made when a LOCK with WAIT is taken, before its record
 * is journaled. It is freed when the engine and the client agree on its end:
 *
 *   SENT ----------> QUEUED ----------> granted or timed out: told, freed
 *   the record is    in the engine's
 *   on its way       queue, has a ticket
 *
 * The engine decides how a wait ends, and the client is told once the record
 * is durable. In three cases the server decides first, and only here:
 *
 *   TOLD   the deadline came while the disk hangs: TIMEOUT is told at once
 *   GONE   the client went
 *   STOP   the server stops
 *
 * Such a wait owes a verdict: a record that makes the engine agree with what
 * was told. Verdicts are made when nothing is on its way, because only then
 * it is known whether the lock was granted meanwhile, and they are a batch of
 * their own before everything that was gathered meanwhile:
 *
 *   in the queue         HOLD_TIMEOUT or HOLD_ABANDON of its ticket
 *   granted meanwhile    the same of name and token: the hold is given back
 *   not journaled yet    its record is dropped; one with REQ says TIMEOUT
 *
 * A grant with a REQ that reached nobody stays held: whoever asked may ask
 * again under the same REQ. While the engine shows a hold that a verdict will
 * give back (`server->orphans`), questions and refusals wait for the verdict.
 */
#ifndef SERVER_WAITS_H
#define SERVER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "hold/engine.h"

struct batch;
struct conn;
struct server;

enum wait_state {
    WAIT_SENT,
    WAIT_QUEUED,
    WAIT_HELD,    /* granted after it had ended: to be given back */
    WAIT_REFUSED, /* refused after TIMEOUT was told: its REQ is to say so */
};

enum wait_end { END_NONE, END_TOLD, END_GONE, END_STOP };

struct wait {
    struct wait *prev; /* in the list of all */
    struct wait *next;
    struct wait *prev_owed; /* in the list of those that owe a verdict */
    struct wait *next_owed;
    struct conn *conn; /* NULL: nobody is to be told any more */
    enum wait_state state;
    enum wait_end end;
    bool owed;          /* in the list of verdicts */
    bool judged;        /* its verdict is on its way */
    bool judged_queued; /* that verdict is about its ticket */
    bool has_ticket;    /* found by its ticket */
    bool promised;      /* the place under its ticket is promised */
    bool counted;       /* its end was counted */
    bool granted;       /* its REQ is remembered as a success */
    uint64_t ticket;
    uint64_t token;
    uint64_t deadline_us;
    uint64_t came_ns;     /* when the request was read */
    uint64_t fingerprint; /* of the request, without its time */
    struct hf_bytes name; /* of the lock; in the same memory */
    struct hf_bytes request;
    struct hf_bytes host; /* of the client; in whose share its REQ counts */
};

/* How a wait is found: by its ticket, or by its REQ. */
struct wait_ref {
    struct hf_named named;
    struct wait *wait;
};

struct waits {
    struct wait *all;
    struct wait *owed; /* those that owe a verdict, oldest first */
    struct wait *owed_last;
    struct hf_texts texts;
    struct hf_index tickets;
    struct hf_index requests;
    size_t bytes;
};

enum hf_status waits_open(struct waits *waits);
void waits_close(struct waits *waits);

/* A LOCK that may wait was read. True: the same REQ is on its way or in a
 * queue, and the connection takes its place, or was told its end. */
bool waits_join(struct server *server, struct conn *conn,
                const struct hold_command *command, uint64_t fingerprint);
/* True if a wait with this REQ is known: it is joined, or was told. */
bool waits_knows(const struct waits *waits, struct hf_bytes request);
/* True if TIMEOUT was told under this REQ, and the engine may not know. */
bool waits_was_told(const struct waits *waits, struct hf_bytes request);
/* The connection waits for `command`, whose record is on its way. NULL
 * without memory. */
struct wait *waits_new(struct server *server, struct conn *conn,
                       const struct hold_command *command, uint64_t fingerprint,
                       uint64_t came_ns);
/* True if it is in the engine's queue. NULL: false. */
bool waits_is_queued(const struct wait *wait);
/* The record was not taken, or not written; nothing is told. */
void waits_drop(struct server *server, struct wait *wait);
/* True: the record need not be journaled, nobody wants it any more; the wait
 * is freed. False, with `*told` set: it is to be journaled as told. */
bool waits_withdraw(struct server *server, struct wait *wait, bool *told);

/* The wait's own record was applied. */
void waits_applied(struct server *server, struct wait *wait,
                   const struct hold_out *out);
/* The engine answers one who waited. */
void waits_answered(struct server *server, const struct hold_answer *given);
/* A lock was granted to a client that is gone: it is given back. */
void waits_orphan(struct server *server, struct hf_bytes name, uint64_t token);

/* Ends the waits whose deadline has come, without the engine. */
void waits_due(struct server *server, uint64_t now_us);
/* The server stops: nobody waits any more. */
void waits_stop(struct server *server);
/* The journal has failed: those in a queue are told so. */
void waits_fail(struct server *server);
/* The connection goes: nobody waits there any more. */
void waits_leave(struct server *server, struct conn *conn);

/* Makes the record of the first verdict that is owed. False: none is. */
bool waits_verdict(struct server *server, struct hold_command *command,
                   struct wait **wait);
/* It could not be taken: it is owed again. */
void waits_owe_again(struct server *server, struct wait *wait);
/* The verdict was applied. */
void waits_judged(struct server *server, struct wait *wait);

#endif
