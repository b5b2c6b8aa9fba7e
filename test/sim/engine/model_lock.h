/* model_lock.h - what the parts of the model share that know locks.
 *
 *   model_lock.c      the commands
 *   model_claim.c     who conflicts with whom, queues, who is ready
 *   model_tree.c      names related by their paths
 *   model_grant.c     grants begin and end; delays and done marks
 *   model_wait.c      waits end, names are served
 *   model_session.c   sessions
 *   model_deadlock.c  the policies, with the whole graph of who waits for whom
 *   model_elect.c     elections
 *   model_key.c       keys of Redis
 *   model_fence.c     fences
 *   model_past.c      what happened of late
 *
 * What ends only notes which names are to be served; model_serve() does it,
 * and whoever ended something calls it when that is complete.
 */
#ifndef SIM_ENGINE_MODEL_LOCK_H
#define SIM_ENGINE_MODEL_LOCK_H

#include "sim/engine/model.h"

/* model_claim.c */

/* The number of a name; it gets one if it has none. */
uint32_t model_name(struct model *model, struct hf_bytes name);
struct hf_bytes model_name_bytes(const struct model *model, uint32_t name);
struct model_claim model_claim(struct model *model,
                               const struct hold_command *c);
void model_claim_free(struct model_claim *claim);
const char *model_mode_name(enum model_mode mode);
/* What it wants of `name`, or NULL. */
struct model_want *model_want_of(const struct model_claim *claim,
                                 uint32_t name);
bool model_same_holder(const struct model_claim *a,
                       const struct model_claim *b);
/* Would it re-enter the grant? */
bool model_reenters(const struct model_claim *claim,
                    const struct model_grant *grant);
/* The grant that it would re-enter, or NULL. */
struct model_grant *model_find_reentry(struct model *model,
                                       const struct model_claim *claim);
/* Does it conflict at `place` with a grant of another holder? `used` are the
 * permits of all grants of the name that count. */
bool model_conflicts(const struct model *model, const struct model_claim *claim,
                     const struct model_want *want, uint32_t place,
                     const struct model_grant *grant, uint64_t used);
/* Does `other` stand before `wait` at `place`, and stop it? */
bool model_stops(const struct model *model, const struct model_wait *other,
                 const struct model_wait *wait, const struct model_want *want,
                 uint32_t place);
bool model_compatible(const struct model_want *a, const struct model_want *b);
/* What a queue is sorted by first: the priority, but for WAITDIE. */
uint32_t model_rank(const struct model_wait *wait);
/* Is `a` before `b` in every queue that both are in? */
bool model_is_before(const struct model_wait *a, const struct model_wait *b);
/* Fills `out` with the waits for a name in the order of its queue. */
size_t model_queue(const struct model *model, uint32_t name,
                   const struct model_wait **out);
size_t model_waiting(const struct model *model, uint32_t name);
/* How many are before it in the queue of a name. */
size_t model_count_before(const struct model *model,
                          const struct model_wait *wait, uint32_t name);
size_t model_count_grants(const struct model *model, uint32_t name);
/* The permits of all grants of a name. */
uint64_t model_used_permits(const struct model *model, uint32_t name);
/* The one with the smallest token, or NULL. */
struct model_grant *model_oldest_grant(struct model *model, uint32_t name);
/* Can it be granted as far as `want` goes, which is taken at `place`?
 * `queue`: those before it count. */
bool model_is_free_at(struct model *model, const struct model_wait *wait,
                      const struct model_want *want, uint32_t place,
                      bool queue);
/* The same at all places; those before it in the queue of the name itself
 * count with `queue`, those at related names with `related`. `*place` is the
 * first at which it is not. */
bool model_is_free(struct model *model, const struct model_wait *wait,
                   const struct model_want *want, bool queue, bool related,
                   uint32_t *place);

/* model_tree.c: the places of a name are the name itself and those in use
 * that are related to it, sorted by their bytes. */

/* Does `name` begin with `above` and a slash? */
bool model_is_below(const struct model *model, uint32_t name, uint32_t above);
/* Do two claims conflict, of which one covers the name of the other? */
bool model_tree_conflicts(const struct model *model,
                          const struct model_claim *a,
                          const struct model_want *on_a,
                          const struct model_claim *b,
                          const struct model_want *on_b);
/* Fills `out`, which has room for MODEL_MAX + 1, with the name, those above it
 * and, with `tree`, those below it. The names of `new` are in use, too. */
size_t model_places(const struct model *model, uint32_t name, bool tree,
                    const struct model_wait *new, uint32_t *out);
/* Is a TREE of that name held or waited for, or does one keep it closed? */
bool model_tree_in_use(const struct model *model, uint32_t name);
bool model_any_tree(const struct model *model);
/* Something has ended at `name`: calls it and those at related names who may
 * have waited for it. `tree`: it had TREE. */
void model_call_related(struct model *model, uint32_t name, bool turn,
                        bool tree);
/* Until when a delay of `place` closes `name`, or if `place` is below it, a
 * TREE of `name`; 0 if it does not. */
uint64_t model_closed_until(const struct model *model, uint32_t name,
                            uint32_t place);
/* True if it was refused, for too many names would be below a TREE. */
bool model_exceeds_tree(struct model *model, const struct model_claim *claim);
/* False if two grants of related names conflict. */
bool model_check_trees(const struct model *model);

/* model_grant.c */

bool model_grant_is_over(const struct model *model,
                         const struct model_grant *grant, uint64_t now_us);
/* What is left of it, at most what its session has left. */
uint64_t model_left_us(const struct model *model,
                       const struct model_grant *grant, uint64_t now_us);
struct model_grant *model_find_grant(struct model *model, uint32_t name,
                                     uint64_t token);
struct model_grant *model_find_set(struct model *model, uint64_t token);
/* Grants it, or re-enters what its holder has; the claim's memory is the
 * grant's then. */
struct model_grant *model_take(struct model *model, struct model_claim *claim);
void model_write_grant(struct model *model, struct hf_buf *out,
                       const struct model_grant *grant, uint64_t waited_us);
/* It ends in `ttl_ms` (0: never) if it may; with `later` not before it would
 * end anyway. */
void model_set_end(struct model *model, struct model_grant *grant,
                   uint64_t ttl_ms, bool later);
/* Tells of what happened to it, on one of its names. */
uint64_t model_grant_event(struct model *model, const struct model_grant *grant,
                           size_t want, enum hold_event_kind kind,
                           uint64_t lag_us);
/* It ends with such an event, and that reason. */
void model_end_grant(struct model *model, struct model_grant *grant,
                     enum hold_event_kind kind, const char *why,
                     uint64_t lag_us);
/* It is over: ends as its own time or its session says. */
void model_end_over(struct model *model, struct model_grant *grant);
/* Gives it back, once; `why` if it ends by that. */
void model_give(struct model *model, struct model_grant *grant,
                const char *why);
/* It is wounded, or revoked: it ends then, and never later. */
void model_seal(struct model *model, struct model_grant *grant, uint64_t end_us,
                const char *why, struct hf_bytes by);
void model_grant_due(struct model *model, void *grant);

struct model_mark *model_find_mark(struct model *model, uint32_t name);
bool model_is_closed(const struct model *model, uint32_t name);
bool model_is_done(const struct model *model, uint32_t name, uint64_t *left_us);
void model_mark_done(struct model *model, uint32_t name, uint64_t ms,
                     struct hf_bytes result);
uint64_t model_mark_end_us(const struct model_mark *mark);
/* What of it is over goes, or all of it, and who waited for that is called. */
void model_clear_mark(struct model *model, struct model_mark *mark);
void model_mark_due(struct model *model, void *mark);

/* Has it grants, waits or a mark? */
bool model_is_in_use(struct model *model, uint32_t name);
size_t model_names_in_use(const struct model *model);
/* Names with a grant. */
size_t model_names_held(const struct model *model);

/* model_wait.c */

bool model_wait_is_over(const struct model *model,
                        const struct model_wait *wait, uint64_t now_us);
/* Its answer is TIMED_OUT or LOST. */
void model_end_wait(struct model *model, struct model_wait *wait,
                    enum hold_code code);
/* Those who wait for a name that is done now. */
void model_end_done(struct model *model, uint32_t name);
void model_write_done(struct model *model, struct hf_buf *out, uint32_t name);
/* Nobody is told. */
void model_drop_wait(struct model *model, struct model_wait *wait,
                     const char *why);
void model_wait_due(struct model *model, void *wait);
void model_call(struct model *model, uint32_t name, bool turn);
void model_serve(struct model *model);
/* Does anyone wait who could be granted? */
bool model_find_ready(struct model *model);
/* More may be due than one sweep takes: this one is looked at on its own. */
void model_settle_lock(struct model *model, struct hf_bytes name);
/* Is anything over of that name? */
bool model_name_is_over(struct model *model, struct hf_bytes name,
                        uint64_t now_us);

/* model_session.c */

struct model_session *model_find_session(const struct model *model,
                                         uint64_t id);
/* Also if there is none; never for id 0. */
bool model_session_is_over(const struct model *model, uint64_t id,
                           uint64_t now_us);
uint64_t model_session_left_us(const struct model_session *session,
                               uint64_t now_us);
void model_session_due(struct model *model, void *session);
/* A part of it has ended: if it was the last, it may be gone. */
void model_part_ended(struct model *model, uint64_t id);
void model_session_left(struct model *model, const struct hold_command *c);
void model_refuse_session(struct model *model, enum hold_code code,
                          uint64_t id);
void model_write_session(const struct model *model, struct hf_buf *out,
                         const struct model_session *session, uint64_t now_us);

/* model_deadlock.c: true if it was refused. */
bool model_refuse_deadlock(struct model *model, struct model_wait *wait);
/* Are there holders who wait for each other for ever? It is allowed to those
 * who did not ask for detection, or ask for one thing while they wait for
 * another. */
enum model_circle { MODEL_NO_CIRCLE, MODEL_ALLOWED_CIRCLE, MODEL_CIRCLE };
enum model_circle model_find_circle(struct model *model);

/* model_past.c: something happened to what a claim wants, or to all that it
 * wants (without a token); and why, if that is not clear. */
void model_past(struct model *model, const char *what,
                const struct model_claim *claim, const struct model_want *want,
                uint64_t token);
void model_past_all(struct model *model, const char *what, const char *why,
                    const struct model_claim *claim);
/* Why of what was noted last, and who else had to do with it. */
void model_past_why(struct model *model, const char *why, struct hf_bytes by);

/* model_fence.c */
void model_check_fence(struct model *model, const struct hold_command *c);
void model_delete_fence(struct model *model, const struct hold_command *c);

/* model_key.c */
void model_key_ask(struct model *model, const struct hold_command *c,
                   uint64_t now_us);
/* What it is as a key. */
enum hold_key_type model_key_type(struct model *model, uint32_t name);

/* model_lock.c */
/* Says what stops it at that place. */
void model_refuse_busy(struct model *model, const struct model_wait *wait,
                       const struct model_want *want, uint32_t place);
void model_lock_command(struct model *model, const struct hold_command *c);
void model_abandon_grant(struct model *model, const struct hold_command *c);
/* Nobody waits any more, and no connection keeps a session. */
void model_restart_locks(struct model *model);

#endif
