/* engine.h - the state machine: locks, stock, reservations.
 *
 *                 +---------------------------+
 *   record, now ->|  settle what is due       |-> reply (code and value)
 *                 |  check, then change       |-> answers to those who waited
 *                 +---------------------------+-> events, numbered
 *
 * Pure: no clock, no I/O, no thread, no randomness. The same records give the
 * same state, the same answers and the same events, on every machine.
 *
 *   - Time comes with the record and never goes back: a record that is older
 *     than the last one counts as simultaneous with it.
 *   - A change takes the next sequence number. It is the lock's fence token,
 *     the product's version and the event's number.
 *   - Expiry is exact: a hold whose time is over is not shown, not granted
 *     against and not confirmed, whether or not it was swept yet, and its
 *     units are free. Sweeping takes HOLD_STEP_MAX things per call at most; a
 *     record that needs all of it swept is applied in several calls.
 *   - Memory is promised before a record is journaled (hold_prepare), so that
 *     applying it cannot fail.
 *
 * HOLD_TICK lets time pass: what is due is swept, as before every record. With
 * an amount other than 0 all of it, in as many calls as it takes.
 *
 * HOLD_ABANDON undoes what was asked by somebody who is gone: the wait with
 * ticket `token` leaves its queue; with a name, the hold with that token is
 * given back instead, once; with a note, the pending reservation of that id is
 * cancelled, if `token` is the number of the event that it was made with.
 *
 * A client may be told TIMEOUT while the journal hangs, before the engine knows
 * of it. What was told stands:
 *
 *   - HOLD_TIMEOUT with a ticket as `token`: that wait ends now, as if its time
 *     were over. With a name and a token: the hold is given back, once. With a
 *     note and a number: the reservation is cancelled. With a request:
 *     the answer kept for it becomes TIMEOUT, or its wait ends. What is not
 *     there (no such wait, hold, reservation or request) is left out.
 *   - A LOCK or RESERVE that is `told` is not carried out: TIMEOUT is kept for
 *     its REQ, unless that was answered before.
 *
 * HOLD_RESTART has the flags HOLD_GRAPH and HOLD_SETTLED. What follows one
 * without the first was written by a server that had no deadlocks and other
 * rules for queues, and is replayed by those rules (see serve.c), so that an
 * old journal gives the tokens that its clients were told. What follows one
 * without the second is exact (see hold_is_exact) whenever it depends on stock,
 * but not if it is about the end of a reservation that waits.
 *
 * Threads: one thread at a time; engines share nothing.
 */
#ifndef HOLD_ENGINE_H
#define HOLD_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "hold/bounds.h"
#include "hold/command.h"
#include "hold/reply.h"
#include "hold/schema.h"

struct hold_engine;

/* The answer to a request that waited. */
struct hold_answer {
    uint64_t ticket;
    enum hold_code code;
    struct hf_bytes body;
};

/* The name as users see it. */
const char *hold_event_name(enum hold_event_kind kind);
enum hold_subject hold_event_subject(enum hold_event_kind kind);

#define HOLD_NO_AGE UINT64_MAX

/* Texts follow each other in memory, as far as they are not empty. */
struct hold_event {
    uint64_t seq;
    uint64_t token;     /* of a lock's: of the grant; of a fence: the newest;
                         * of STOCK_LIMIT: the limit */
    uint64_t age_us;    /* how long the hold or reservation that ended with it
                         * had lasted; of an offer, how long somebody waited
                         * for it; HOLD_NO_AGE: none of these */
    uint64_t total;     /* of a product that changed, or is low */
    uint64_t available; /* the same */
    uint64_t lag_us;    /* of an expiry: how long after its time */
    enum hold_event_kind kind;
    uint8_t mode;         /* of a lock's: 0 exclusive, 1 shared, 2 counting */
    struct hf_bytes name; /* lock, resource, sku, reservation or session */
    /* Only with hold_tell(): */
    struct hf_bytes owner; /* of a lock's or a reservation's; of a product
                            * REF, or the value of an attribute */
    struct hf_bytes note;  /* of a lock that is granted its note, or the value
                            * of a leader; of an attribute its name; else the
                            * reason */
    struct hf_bytes items; /* of a reservation: as hold_put_items() has them */
    struct hf_bytes group; /* the same: the name of its group */
};

/* What one call gave. Valid until the next call on the same engine. */
struct hold_out {
    enum hold_code code;
    struct hf_bytes body;
    uint64_t ticket; /* with HOLD_WAITING */
    bool stored;     /* the answer is remembered under its REQ from now on */
    uint64_t work;   /* steps taken: of a listing many, else 1 */
    uint64_t now_us; /* of a record that was applied: the time of its events, */
    uint64_t seq;    /* and the number up to which all events were told */
    size_t answer_count;
    const struct hold_answer *answers;
    size_t event_count;
    const struct hold_event *events;
};

/* NULL without memory. `seed` keys the hash tables and shows nowhere. */
struct hold_engine *hold_new(struct hf_hash_seed seed);
void hold_free(struct hold_engine *engine);

/* Promises the memory that applying `command` may need. HF_NOMEM: not to be
 * had, or beyond hold_set_memory_max(); nothing promised. */
enum hf_status hold_prepare(struct hold_engine *engine,
                            const struct hold_command *command);
/* Takes the promise back, for a command that will not be applied. */
void hold_forget(struct hold_engine *engine,
                 const struct hold_command *command);

/* Applies one journaled record that was prepared. NULL means that the bytes
 * are no record (nothing changed). HOLD_AGAIN: more is due than one call
 * sweeps, and that was all it did; its answers and events count, and the same
 * record is to be applied again, before any other. */
const struct hold_out *hold_apply(struct hold_engine *engine,
                                  struct hf_bytes record);

/* The same for a command without a REQ that needs no journal: a lock without a
 * TTL is then possible without a session, too. What decoding checks of a record
 * must hold of it. */
const struct hold_out *hold_run(struct hold_engine *engine,
                                const struct hold_command *command);

/* Prepare and apply in one, for replay. `tell`, if it is not NULL, is called
 * with what each call gave. HF_CORRUPT or HF_NOMEM. */
typedef void hold_told_fn(void *context, const struct hold_out *out);
enum hf_status hold_replay(struct hold_engine *engine, struct hf_bytes record,
                           hold_told_fn *tell, void *context);

/* The answer to `command`, if it can be told without changing anything: the
 * stored answer of a repeated REQ, or a refusal while nothing is due. Else
 * NULL: journal it. */
const struct hold_out *hold_answer_now(struct hold_engine *engine,
                                       const struct hold_command *command);

/* Answers a command of the kinds that need no journal. NULL: time must pass
 * first, because the answer depends on something that is due at the command's
 * time and was not swept: for one lock, or a reservation that does not wait,
 * its own end, for products that nobody waits for theirs (settled.c), else
 * anything. Apply a record (HOLD_TICK) until hold_is_behind()
 * is false, and ask with the time of hold_now_us(). */
const struct hold_out *hold_ask(struct hold_engine *engine,
                                const struct hold_command *command);

/* True if the outcome depends on more than what is over for its own record, or
 * on stock of which something may be over (settled.c): while hold_is_behind(),
 * it is applied in as many calls as that takes. Asked of a time ahead, it stays
 * false up to then, unless other commands change that. */
bool hold_is_exact(const struct hold_engine *engine,
                   const struct hold_command *command);

/* How many names below a TREE a LOCK, a LOCKSET or what gives them back will
 * look at. */
uint64_t hold_weight(const struct hold_engine *engine,
                     const struct hold_command *command);

/* Steps of the last hold_answer_now() or hold_ask(), answered or not. */
uint64_t hold_work(const struct hold_engine *engine);

/* From now on events have all that can be told of them, not only what it takes
 * to count them. HF_NOMEM. */
enum hf_status hold_tell(struct hold_engine *engine);

/* Keeps the last `count` things that happened to locks (a power of two, or 0),
 * for HOLD_EXPLAIN; once, at the start. HF_NOMEM. */
enum hf_status hold_keep_past(struct hold_engine *engine, uint32_t count);

/* The token of the oldest grant of that lock; 0: nobody holds it. */
uint64_t hold_oldest_token(const struct hold_engine *engine,
                           struct hf_bytes name);

/* The token by which the holder of the command, a LOCK or LOCKSET, has what it
 * names, or the first of the names that it has; 0: none. */
uint64_t hold_reenters(const struct hold_engine *engine,
                       const struct hold_command *command);

/* The token by which a holder has a lock; 0: it has not. What is over and was
 * not swept counts. */
uint64_t hold_token_of(const struct hold_engine *engine, struct hf_bytes name,
                       uint64_t session, struct hf_bytes owner);

/* The number of the event that the pending reservation was made with; 0: it is
 * not pending. */
uint64_t hold_reserved_by(const struct hold_engine *engine, struct hf_bytes id);

/* When the next thing falls due, or UINT64_MAX. */
uint64_t hold_next_due_us(const struct hold_engine *engine);
/* When the next hold, wait or reservation is over, or UINT64_MAX. */
uint64_t hold_due_us(const struct hold_engine *engine);
/* When the oldest pending reservation was over, of those that are by `now_us`;
 * UINT64_MAX: none is. It looks at HOLD_STEPS_MAX things at most, those that
 * fall due early among them. */
uint64_t hold_pending_due_us(const struct hold_engine *engine, uint64_t now_us);
/* True if a hold, wait or reservation is over at hold_now_us() but not swept:
 * the last sweep reached its bound. */
bool hold_is_behind(const struct hold_engine *engine);
/* True if more than `most` are over at that time. Looks at as many. */
bool hold_is_due(const struct hold_engine *engine, uint64_t now_us,
                 uint32_t most);

uint64_t hold_now_us(const struct hold_engine *engine);
uint64_t hold_seq(const struct hold_engine *engine);
struct hold_bounds hold_get_bounds(const struct hold_engine *engine);
/* Beyond this many bytes, commands that need new memory are refused by
 * prepare; what was given back is used again.
 * Not part of the state. 0: no limit. */
void hold_set_memory_max(struct hold_engine *engine, size_t bytes);

struct hold_counts {
    uint64_t locks; /* names that are held */
    uint64_t waiters;
    uint64_t sets;
    uint64_t trees; /* names with a TREE in use */
    uint64_t sessions;
    uint64_t
        double_grants; /* checked at each grant; always 0, since hold_new() */
    uint64_t products;
    uint64_t reservations; /* with the ended ones still remembered */
    uint64_t pending;      /* reservations */
    uint64_t buyers;       /* requests that wait for stock */
    uint64_t booked;       /* reservations of what is to arrive */
    uint64_t fences;
    uint64_t requests;
    uint64_t requests_dropped; /* refusals, forgotten early to make room */
    uint64_t requests_refused; /* because the table was full; these two count
                                * since hold_new() and are no state */
    double stock_total;        /* of all products; exact up to 2^53 */
    double stock_reserved;
    double stock_sold;
    size_t memory_bytes;
};

void hold_count(const struct hold_engine *engine, struct hold_counts *out);

#endif
