/* locks.h - what the files about locks do for each other and for the engine.
 *
 * graph.h has the records; parts, locks, waiters, sets and sessions are named
 * by their numbers.
 */
#ifndef HOLD_LOCKS_H
#define HOLD_LOCKS_H

#include "hold/state.h"

/* Why something happened to a lock, as EXPLAIN tells it. WHY_PLAIN: as is usual
 * for what it is. */
enum past_why {
    WHY_PLAIN,
    WHY_STILL_HELD, /* it was given back once of several times */
    WHY_DONE,
    WHY_DELETED,
    WHY_REPLACED,
    WHY_MAXHOLD,
    WHY_WOUNDED,
    WHY_REVOKED,
    WHY_SESSION,
    WHY_GONE, /* nobody is there for the answer */
    WHY_CYCLE,
    WHY_YOUNGER,
};

/* grant.c - grants, and the terms on which they were asked for */
struct wanted; /* part.h */
void terms_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need);
/* The terms of a command; 0: none. */
uint32_t claim_terms(struct hold_engine *e, const struct hold_command *c);
void claim_drop(struct hold_engine *e, const struct claim *claim);
uint64_t claim_expires_us(const struct hold_engine *e,
                          const struct claim *claim, uint64_t acquired_us,
                          uint64_t ttl_ms);
int64_t session_safe_ms(const struct hold_engine *e, const struct claim *claim,
                        uint64_t expires_us);
/* What DELAY will need when a grant of `names` names ends. */
enum hf_status claim_promise(struct hold_engine *e, const struct claim *claim,
                             uint32_t names);
void claim_unpromise(struct hold_engine *e, const struct claim *claim,
                     uint32_t names);
/* Spends it for one name. */
void claim_delay(struct hold_engine *e, const struct claim *claim,
                 uint32_t lock, bool tree, bool clean);
/* The part is among the grants of its lock, or is not any more, and freed. */
void grants_join(struct hold_engine *e, uint32_t part, uint64_t token,
                 uint32_t max);
void grants_leave(struct hold_engine *e, uint32_t part);
/* A part, whose claim is set, becomes a single grant. */
void grant_begin(struct hold_engine *e, uint32_t part, uint64_t ttl_ms,
                 uint32_t max);
/* These are also about the set that the part is of, if it is. After an end,
 * serve_all() is to be called. */
void grant_reenter(struct hold_engine *e, uint32_t part, uint64_t ttl_ms);
void grant_set_expiry(struct hold_engine *e, uint32_t part,
                      uint64_t expires_us);
void grant_renew(struct hold_engine *e, uint32_t part, uint64_t ttl_ms);
/* It ends then at the latest, and nothing makes that later. */
void grant_seal(struct hold_engine *e, uint32_t part, uint64_t end_us,
                enum seal seal, struct hf_bytes by);
/* Ends a single grant. */
void grant_end(struct hold_engine *e, uint32_t part, bool clean);
void grant_lose(struct hold_engine *e, uint32_t part, enum past_why why,
                uint64_t lag_us);
int64_t grant_safe_ms(const struct hold_engine *e, const struct part *part);
void reply_grant(struct hf_buf *body, const struct hold_engine *e,
                 uint32_t part, uint64_t queued_us);
/* Its time is over; grant_expire() also serves. */
void grant_end_expired(struct hold_engine *e, uint32_t part);
void grant_expire(struct hold_engine *e, uint32_t part);
/* A new grant; grant_new() answers, too. */
uint32_t grant_start(struct hold_engine *e, const struct hold_command *c,
                     const struct wanted *wanted, uint32_t lock);
void grant_new(struct hold_engine *e, const struct hold_command *c,
               const struct wanted *wanted, uint32_t lock);
/* The grant on a lock of that holder; 0: none. */
uint32_t grant_of(const struct hold_engine *e, const struct lock *lock,
                  uint32_t session, struct hf_bytes owner);
const char *mode_name(enum lock_mode mode);

/* wait.c */
#define HOLDER_NAME_MAX (8 + HOLD_OWNER_MAX)
uint32_t holder_find(const struct hold_engine *e, uint32_t session,
                     struct hf_bytes owner);
bool is_before(const struct hold_engine *e, const struct part *part,
               const struct wanted *wanted);
/* The first in the queue that it cannot share the lock with; 0: none. */
uint32_t first_before(const struct lock *lock, const struct wanted *wanted);
/* That one is before its place. */
bool is_blocked(const struct hold_engine *e, const struct lock *lock,
                const struct wanted *wanted);
uint32_t queue_position(const struct hold_engine *e, const struct lock *lock,
                        const struct wanted *wanted);
/* Queues the command with these parts, and answers WAITING. */
void waiter_new(struct hold_engine *e, const struct hold_command *c,
                const struct wanted *wanted, uint32_t first);
/* A record, all but its parts' places: puts them into their queues. */
void waiter_enter(struct hold_engine *e, uint32_t number);
enum hf_status waiter_promise(struct hold_engine *e,
                              const struct waiter *waiter);
void waiter_unpromise(struct hold_engine *e, const struct waiter *waiter);
/* It waits no more; its parts and its claim are the caller's. */
struct waiter waiter_leave(struct hold_engine *e, uint32_t number);
/* Ends and keeps the answer that was begun. */
void waiter_answer_end(struct hold_engine *e, uint32_t request);
/* Ends it: TIMEOUT; LOST; DONE with that body; as its time or its session says;
 * untold. serve_all() is to follow. */
void waiter_time_out(struct hold_engine *e, uint32_t number);
void waiter_lose(struct hold_engine *e, uint32_t number);
void waiter_skip(struct hold_engine *e, uint32_t number, struct hf_bytes body);
void waiter_end(struct hold_engine *e, uint32_t number);
void waiter_drop(struct hold_engine *e, uint32_t number);
void waiter_expire(struct hold_engine *e, uint32_t number);
void drop_waiters(struct hold_engine *e);
/* Gives the waiter of `request` a new ticket; returns it. */
uint64_t waiter_move(struct hold_engine *e, struct request *request);
uint32_t waiter_find(const struct hold_engine *e, uint64_t ticket);

/* serve.c - the names whose queues are to be looked at */
void serve_later(struct hold_engine *e, uint32_t lock);
void serve_listed(struct hold_engine *e);
void serve_drop_idle(struct hold_engine *e);
static inline void serve_all(struct hold_engine *e)
{
    if (e->serve.first != 0 && !e->undo.on) /* a group serves at its end */
        serve_listed(e);
}

/* mark.c */
enum hf_status mark_promise(struct hold_engine *e, uint32_t count);
void mark_unpromise(struct hold_engine *e, uint32_t count);
/* With `tree`: the names below, too. */
void mark_close(struct hold_engine *e, uint32_t lock, uint64_t until_us,
                bool tree);
/* Answers all who wait, too. */
void mark_done(struct hold_engine *e, uint32_t lock, uint64_t until_us,
               struct hf_bytes result);
/* When one of its two times is over. */
uint64_t mark_due_us(const struct mark *mark);
/* Ends what is over of it, if it is one. */
void mark_settle(struct hold_engine *e, uint32_t number);
void mark_expire(struct hold_engine *e, uint32_t number);
bool refuse_done(struct hold_engine *e, uint32_t lock);

/* deadlock.c - of a request that would wait for these locks; 0: not in use. It
 * names them, in this order. */
bool refuse_deadlock(struct hold_engine *e, const struct hold_command *c,
                     const struct wanted *wanted, const uint32_t *locks,
                     uint32_t count);
void wound(struct hold_engine *e, const struct hold_command *c,
           const struct wanted *wanted, struct hf_bytes name, uint32_t lock);

/* lock.c */
hold_need_fn lock_need, unlock_need;
hold_check_fn lock_check, unlock_check, renew_check, downgrade_check,
    revoke_check;
hold_change_fn lock_take, lock_give, lock_renew, lock_downgrade, lock_revoke;
hold_run_fn lock_settle_named;
/* Ends a single grant on that lock, which was given back; serve_all() is to
 * follow. */
void lock_release(struct hold_engine *e, uint32_t part, uint32_t lock);
bool lock_is_over(const struct hold_engine *e, uint32_t number);
struct wanted waiter_wants(const struct hold_engine *e,
                           const struct waiter *waiter,
                           const struct part *part);
void wait_need(struct hold_engine *e, const struct hold_command *c,
               struct need *need);
bool is_free(const struct hold_engine *e, uint32_t lock,
             const struct wanted *wanted, bool barge);
bool refuse_session(struct hold_engine *e, uint64_t id, uint32_t *number);
bool refuse_token(struct hold_engine *e, const struct hold_command *c,
                  enum hold_code code);
bool refuse_mode(struct hold_engine *e, const struct part *part);
/* Says what stops it, here or at a related name; `lock` 0: not in use. */
bool refuse_busy(struct hold_engine *e, struct hf_bytes name, uint32_t lock,
                 const struct wanted *wanted, bool barge);

/* elect.c - what elections have beyond locks */
hold_need_fn proclaim_need;
hold_change_fn lock_proclaim;
hold_run_fn lock_leader;

/* key.c - locks as keys of Redis */
hold_need_fn key_set_need, key_need;
hold_check_fn key_set_check, key_del_check, key_expire_check;
hold_change_fn key_set, key_del, key_expire;
static inline bool key_is_held(const struct hold_engine *e, uint32_t lock)
{
    return lock != 0 && lock_at(e, lock)->granted > 0;
}
/* As PTTL tells it; `grant` 0: no such key. */
int64_t key_rest_ms(const struct hold_engine *e, uint32_t grant);
bool key_refuse_type(struct hold_engine *e, uint32_t lock);

/* key_ask.c */
hold_run_fn key_get, key_count, key_scan;

/* lock_show.c */
hold_run_fn lock_info, lock_list, lock_held, lock_waitgraph;
/* Of a grant or renewal in the body, told again: it is safe for no longer than
 * the lock is held with that token. */
hold_run_fn lock_bound_safe;

/* explain.c - what happened to locks of late; no state */
enum past {
    PAST_QUEUED = HOLD_EVENT_COUNT, /* besides the events */
    PAST_TIMED_OUT,
    PAST_LEFT,
    PAST_WAIT_LOST,
    PAST_DEADLOCK,
    PAST_BY /* no entry of its own: who had to do with the one before it */
};
struct past_entry;
void past_add(struct hold_engine *e, unsigned what, uint32_t hash,
              struct hf_bytes name, struct hf_bytes owner, uint64_t token,
              enum lock_mode mode, bool tree);
/* Says why of what was added last; `by`: the other holder, "" if there is none.
 */
void past_say(struct hold_engine *e, enum past_why why, struct hf_bytes by);
const char *why_name(enum past_why why);
void past_free(struct hold_engine *e);
hold_run_fn lock_explain;

/* set.c */
hold_need_fn lockset_need;
hold_check_fn lockset_check, set_check;
hold_change_fn lockset_take, lockset_give, lockset_renew;
uint32_t set_find(const struct hold_engine *e, uint64_t token);
/* The parts are granted as a set; 0 without memory. */
uint32_t set_add(struct hold_engine *e, const struct claim *claim,
                 uint32_t first, uint64_t token);
void set_begin(struct hold_engine *e, const struct claim *claim, uint32_t first,
               uint64_t ttl_ms);
void set_reenter(struct hold_engine *e, uint32_t number, uint64_t ttl_ms);
/* Ends it, told by an event for each name. */
void set_lose(struct hold_engine *e, uint32_t number, enum hold_event_kind kind,
              enum past_why why, uint64_t lag_us);
void set_give(struct hold_engine *e, uint32_t number);
void set_expire(struct hold_engine *e, uint32_t number);

/* session.c */
hold_need_fn session_need;
hold_check_fn session_open_check, session_check;
hold_change_fn session_open, session_keep, session_close;
hold_run_fn run_session_left, session_info, session_list;
subject_loaded_fn session_loaded;
uint32_t session_find(const struct hold_engine *e, uint64_t id);
/* The first part of a grant, set or waiter is one of the session's. */
void session_join(struct hold_engine *e, uint32_t session, uint32_t part);
void session_leave(struct hold_engine *e, uint32_t session, uint32_t part);
/* By it its parts are in order. */
uint64_t session_order(const struct hold_engine *e, const struct part *part);
void session_expire(struct hold_engine *e, uint32_t number);
/* A server starts: no connection is there any more. */
void sessions_unbind(struct hold_engine *e);

/* graph_image.c */
subject_walk_fn locks_walk, sets_walk, waiters_walk;
subject_load_fn grant_load, set_load, waiter_load, mark_load;

/* load_old.c: of an image of format 1 */
#define OLD_BOUNDS 8u
subject_load_fn old_lock_load, old_waiter_load;

#endif
