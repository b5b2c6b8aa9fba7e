/* lock_wait.h - clients that wait in the engine, from the request to its end:
 * for a lock, or for stock.
 *
 * A `struct lock_wait` is made when a LOCK or RESERVE with WAIT is taken,
 * before its record is journaled. It is freed when the engine and the client
 * agree on its end:
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
 * was told. Verdicts are a batch of their own before everything that was
 * gathered meanwhile. What is gathered is committed while others are on their
 * way only if nobody waits, and none of those has a LOCK without REQ, so that
 * nothing comes between a grant and its verdict. A batch before the verdict may
 * grant the lock: then the verdict on the ticket comes too late, and another
 * one gives the hold back.
 *
 *   in the queue         HOLD_TIMEOUT or HOLD_ABANDON of its ticket
 *   granted meanwhile    the same of name and token: the hold is given back;
 *                        of stock: the reservation is cancelled
 *   not journaled yet    its record is dropped; one with REQ says TIMEOUT, or
 *                        is itself a verdict if the log has no room for it then
 *
 * Where the log does not lead, a LOCK whose answer is known is on its way all
 * the same. Its end is not TIMEOUT then, but an error that leaves it open.
 *
 * A grant with a REQ that reached nobody stays held: whoever asked may ask
 * again under the same REQ. While the engine shows a hold that a verdict will
 * give back (`server->orphans`), questions and refusals wait for the verdict.
 */
#ifndef SERVER_LOCK_WAIT_H
#define SERVER_LOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "hold/engine.h"
#include "server/waits.h"

enum wait_state {
    WAIT_SENT,
    WAIT_QUEUED,
    WAIT_HELD,    /* granted after it had ended: to be given back */
    WAIT_REFUSED, /* refused after TIMEOUT was told: its REQ is to say so */
};

enum wait_end { END_NONE, END_TOLD, END_GONE, END_STOP };

struct lock_wait {
    struct wait base;
    struct lock_wait *prev_owed; /* in the list of those that owe a verdict */
    struct lock_wait *next_owed;
    enum wait_state state;
    enum wait_end end;
    enum hold_kind kind; /* of the request */
    bool owed;           /* in the list of verdicts */
    bool judged;         /* its verdict is on its way */
    bool judged_queued;  /* that verdict is about its ticket */
    bool has_ticket;     /* found by its ticket */
    bool promised;       /* the place under its ticket is promised */
    bool counted;        /* its end was counted */
    bool granted;        /* its REQ is remembered as a success */
    bool known;          /* its answer cannot be told: the log does not lead */
    bool stock;          /* it waits for stock, else for a lock */
    uint64_t ticket;
    uint64_t token;       /* of stock: see hold_reserved_by() */
    struct hf_bytes name; /* of the lock, or of the reservation when it has
                           * it; in the same memory */
    struct hf_bytes request;
    struct hf_bytes record; /* of one with REQ, as it was taken */
    struct hf_bytes host;   /* of the client; in whose share its REQ counts */
};

/* How a wait is found: by its ticket, or by its REQ. */
struct wait_ref {
    struct hf_named named;
    struct lock_wait *wait;
};

struct lock_waits {
    struct lock_wait *owed; /* those that owe a verdict, oldest first */
    struct lock_wait *owed_last;
    struct lock_wait *spare; /* for a lock that is granted to nobody */
    struct hf_texts texts;
    struct hf_index tickets;
    struct hf_index requests;
    size_t bytes;
};

enum hf_status lock_waits_open(struct lock_waits *waits);
void lock_waits_close(struct lock_waits *waits);
/* The one of that name in an index of struct wait_ref, or NULL. */
struct lock_wait *lock_wait_find(const struct hf_index *index,
                                 struct hf_bytes name);

/* A LOCK that may wait was read. True: the same REQ is on its way or in a
 * queue, and the connection takes its place, or was told its end. */
bool lock_wait_join(struct server *server, struct conn *conn,
                    const struct hold_command *command, struct hf_bytes record);
/* True if a wait with this REQ is known: it is joined, or was told. */
bool lock_wait_knows(const struct lock_waits *waits, struct hf_bytes request);
/* True if TIMEOUT was told under this REQ, and the engine may not know. */
bool lock_wait_was_told(const struct lock_waits *waits,
                        struct hf_bytes request);
/* The connection waits for `command`, whose record is on its way. NULL
 * without memory. */
struct lock_wait *lock_wait_new(struct server *server, struct conn *conn,
                                const struct hold_command *command,
                                struct hf_bytes record, uint64_t came_ns);
/* The record was not taken, or not written; nothing is told. */
void lock_wait_drop(struct server *server, struct lock_wait *wait);
/* The log has failed. A TIMEOUT that was told stays the answer to its REQ,
 * whatever the engine knows, which no verdict will be told to. */
void lock_wait_give_up(struct server *server, struct lock_wait *wait);
/* True: the record need not be journaled, nobody wants it any more; the wait
 * is freed. False, with `*told` set: it is to be journaled as told. */
bool lock_wait_withdraw(struct server *server, struct lock_wait *wait,
                        bool *told);

/* The wait's own record was applied. */
void lock_wait_applied(struct server *server, struct lock_wait *wait,
                       const struct hold_out *out);
/* The same, of a record that was journaled as told, perhaps as a verdict. */
void lock_wait_told(struct server *server, struct lock_wait *wait,
                    struct hf_bytes record);
/* The engine answers one who waited. */
void lock_wait_answered(struct server *server, const struct hold_answer *given);
/* Makes sure that one lock can be given back; false without memory. */
bool lock_wait_spare(struct server *server);
/* A lock was granted to a client that is gone: it is given back. There is a
 * spare. */
void lock_wait_orphan(struct server *server, struct hf_bytes name,
                      uint64_t token);

/* What can happen to one who waits: see waits.h. */
wait_fn lock_wait_due, lock_wait_left, lock_wait_stop, lock_wait_fail;

/* Makes the record of the first verdict that is owed. False: none is. */
bool lock_wait_verdict(struct server *server, struct hold_command *command,
                       struct lock_wait **wait);
/* It could not be taken, or a record that was to be journaled as told could
 * not: it is owed again. */
void lock_wait_owe_again(struct server *server, struct lock_wait *wait);
/* The verdict was applied. */
void lock_wait_judged(struct server *server, struct lock_wait *wait);

#endif
