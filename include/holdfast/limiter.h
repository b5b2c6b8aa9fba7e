/* limiter.h - limits by key: "may this user, from this address, do this now?"
 *
 * A limiter keeps one small state for each (rule, key) that has spent
 * something. Rules have names and are defined once; a call names one or
 * several pairs and is allowed by all of them or spends nothing at all:
 *
 *   rules            keys of each rule          one call
 *   "user"    10/s   ann 3 spent, bob 9 spent   user:bob      ok ---.
 *   "address" 50/s   10.0.0.7 50 spent          address:...7  DENIED |-> nobody
 *   "all"     9999/s "" 2041 spent              all:""        ok ---'   pays
 *
 * The answer tells what is left, who denied, and the nanosecond at which the
 * same call can succeed. A key that has nothing spent takes no memory for long:
 * what has been whole for a second is forgotten, a little with each new key; at
 * once, if there is no room (`keys_max`).
 *
 * Example:
 *
 *   struct hf_limiter *limiter;
 *   assert(hf_limiter_open(&limiter, NULL) == HF_OK);
 *   for (int i = 0; i < 10; i++)
 *       assert(hf_limiter_allow(limiter, "user-1")); // 10 at once,
 *   assert(!hf_limiter_allow(limiter, "user-1"));    // then 1 a second
 *
 *   struct hf_limiter_rule rule = {
 *       .rate = {.permits = 100, .span_ns = 60000000000}};
 *   uint32_t per_user;
 *   assert(hf_limiter_define(limiter, "user", &rule, &per_user) == HF_OK);
 *   struct hf_limiter_ask asks[] = {
 *       {.rule = per_user, .key = "ann", .key_len = 3, .cost = 60},
 *       {.key = "10.0.0.7", .key_len = 8, .cost = 1}, // the default rule
 *   };
 *   struct hf_limiter_call call = {.asks = asks, .count = 2, .now_ns = 5};
 *   struct hf_limiter_answer answer;
 *   assert(hf_limiter_take(limiter, &call, &answer) == HF_OK);
 *   assert(answer.allowed);
 *   assert(hf_limiter_take(limiter, &call, &answer) == HF_OK);
 *   assert(!answer.allowed && answer.denied_by == 0);
 *   assert(answer.retry_after_ns == 12000000000); // 20 more, 100 a minute
 *   hf_limiter_close(limiter);
 *
 * Threads: every call but open and close may overlap every other. A decision
 *          on one pair reads without a lock and, if it is allowed, locks that
 *          key for two stores; one on several locks those keys together. A
 *          thread that is stopped there holds up those keys and no others.
 * Memory:  with millions of keys at most 64 bytes a key and the key itself,
 *          all overhead included (sliding logs, leases and holds besides).
 *          Memory of forgotten keys is used again, and freed by close.
 * Time:    by `now_ns` of each call, from one monotonic clock, at most
 *          UINT64_MAX / 2; 0 means: ask the limiter's clock. Times that arrive
 *          out of order between threads never let more through. Deadlines are
 *          absolute, by the limiter's clock.
 *
 *   linearizable           lock-free            allocates         may overlap
 *   take, peek, refund,    a refusal by one     a new key, hold,  all but open
 *   hold, settle: all      pair; else see       first call of a   and close
 *   pairs at one instant   Threads              thread; define
 */
#ifndef HOLDFAST_LIMITER_H
#define HOLDFAST_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/rate.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_limiter;

#define HF_LIMITER_ASKS_MAX  16u  /* pairs of one call */
#define HF_LIMITER_KEY_MAX   512u /* bytes of a key */
#define HF_LIMITER_CLASSES   4u   /* priorities: 0 is the most important */
#define HF_LIMITER_RULES_MAX 16384u

/* A wait that never ends: no time makes the call succeed. */
#define HF_LIMITER_NEVER HF_RATE_NEVER
/* denied_by of a call that was allowed. */
#define HF_LIMITER_NOBODY UINT32_MAX

struct hf_limiter_rule {
    struct hf_rate_rule rate; /* what it counts: see rate.h */
    /* Permits that a call of this priority must leave to the more important
     * ones: {0, 10, 50} keeps the last 10 from class 1 and the last 50 from
     * class 2. */
    uint64_t keep_back[HF_LIMITER_CLASSES];
    bool shadow; /* counts what it would deny, and denies nothing */
};

struct hf_limiter_opts {
    const char *name;             /* for hf_inspect */
    const struct hf_clock *clock; /* NULL: the system's */
    uint64_t keys_max;            /* 0: 1,000,000,000 */
    uint64_t holds_max;           /* open at once; 0: 1,000,000,000 */
    uint64_t log_bytes_max;       /* of sliding logs and leases, which take
                                     8 bytes a permit for each key in use;
                                     0: no bound */
    /* The rule 0, named "default"; NULL: 10 at once and 1 a second. */
    const struct hf_limiter_rule *rule;
    uint64_t seed;   /* of the hash; 0: made from addresses and the time */
    uint32_t shards; /* locks for new keys: a power of two, at most 256;
                        0: 64 */
};

/* One pair: so much of a rule, for a key. */
struct hf_limiter_ask {
    uint32_t rule; /* from define or find; 0: the default, or `own` */
    /* Numbers that come with the call, or NULL. Keys of such calls are one
     * family: what was spent under other numbers stays spent. */
    const struct hf_limiter_rule *own;
    const void *key; /* bytes; NULL if key_len is 0 */
    size_t key_len;
    uint64_t cost; /* permits; 0 asks and takes none */
};

struct hf_limiter_call {
    const struct hf_limiter_ask *asks;
    uint32_t count;    /* 1 .. HF_LIMITER_ASKS_MAX */
    uint32_t priority; /* 0 .. HF_LIMITER_CLASSES - 1 */
    uint64_t now_ns;   /* 0: the limiter's clock is asked */
};

/* Of several pairs the figures are those of the one that denied, and which is
 * longest in the way; if all allow, of the one with least remaining. */
struct hf_limiter_answer {
    bool allowed;
    uint32_t denied_by; /* which ask; HF_LIMITER_NOBODY */
    uint32_t shadow;    /* bit i: ask i was denied by a shadow rule */
    uint64_t limit;
    uint64_t remaining; /* for this priority, after the call */
    /* 0 if allowed; else the same call succeeds then and not a nanosecond
     * before, unless somebody takes, gives back or settles meanwhile. Of LOG
     * and LEASES it may succeed earlier: holds that are over by then are not
     * counted. HF_LIMITER_NEVER: the cost is above what there ever is. */
    uint64_t retry_after_ns;
    uint64_t reset_after_ns;  /* until nothing is spent */
    uint64_t taken_ns;        /* for hf_limiter_refund() */
    char rule[HF_NAME_BYTES]; /* that denied; "" if none, or if it has none */
};

struct hf_limiter_stats {
    uint64_t allowed;
    uint64_t denied;
    uint64_t shadow_denied; /* pairs that a shadow rule would have denied */
    uint64_t refused;       /* not decided: keys_max, no memory, a key that is
                             * too long, own numbers out of range */
    uint64_t keys;          /* that are kept */
    uint64_t keys_max;
    uint64_t bytes; /* of memory, all of it */
    uint64_t evictions;
    uint64_t waiters; /* inside hf_limiter_acquire */
    uint64_t holds;   /* open */
    uint64_t rules;   /* with a name */
};

/* HF_INVALID; HF_NOMEM. */
enum hf_status hf_limiter_open(struct hf_limiter **out,
                               const struct hf_limiter_opts *opts);
/* From any thread, any number of times: waiters leave with HF_CLOSED, calls
 * that decide return it. */
void hf_limiter_shutdown(struct hf_limiter *limiter);
/* Shuts and frees. Nobody may be inside another call. NULL does nothing. */
void hf_limiter_close(struct hf_limiter *limiter);

/* ---- Rules. ---- */

/* Defines a rule, or changes it: what keys have spent is kept, in permits
 * where both count permits, and up to what the new rule allows: what is above
 * that is forgotten when a key is next used. `number` (may be NULL) is how
 * calls name it; it stays the same when the rule is changed. "default" changes
 * rule 0. HF_INVALID: numbers out of range, or a name of 0 or HF_NAME_BYTES
 * bytes or more; HF_FULL: HF_LIMITER_RULES_MAX; HF_NOMEM. */
enum hf_status hf_limiter_define(struct hf_limiter *limiter, const char *name,
                                 const struct hf_limiter_rule *rule,
                                 uint32_t *number);
/* Removes it and what its keys have spent. HF_NOTFOUND; HF_INVALID for
 * "default". */
enum hf_status hf_limiter_remove(struct hf_limiter *limiter, const char *name);
/* HF_NOTFOUND. `number` and `rule` may be NULL. */
enum hf_status hf_limiter_find(struct hf_limiter *limiter, const char *name,
                               uint32_t *number, struct hf_limiter_rule *rule);
/* Calls `visit` for every rule, outside any lock. */
enum hf_status hf_limiter_list(struct hf_limiter *limiter,
                               void (*visit)(void *context, const char *name,
                                             uint32_t number,
                                             const struct hf_limiter_rule *),
                               void *context);

/* ---- Decisions. ---- */

/* Takes what every ask asks, or nothing. HF_OK: decided, see `answer`.
 * HF_INVALID: an argument, a key longer than HF_LIMITER_KEY_MAX, or own numbers
 * out of range (the last two are counted as refused); HF_NOTFOUND: a rule was
 * removed; HF_FULL: a new key beyond keys_max, or a new log beyond
 * log_bytes_max; HF_NOMEM; HF_CLOSED: nothing was taken, `answer` is untouched.
 */
enum hf_status hf_limiter_take(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer);
/* What take would answer; takes nothing, counts nothing. */
enum hf_status hf_limiter_peek(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer);
/* Gives back, from each pair, `cost` permits of a take that was allowed with
 * this `taken_ns`, as hf_rate_refund() does: never more than was spent. A lease
 * is given back like this. `call->now_ns` is not used. */
enum hf_status hf_limiter_refund(struct hf_limiter *limiter,
                                 const struct hf_limiter_call *call,
                                 uint64_t taken_ns);
/* The classic: one permit of the default rule, by the limiter's clock. `key` is
 * a C string. False also where take would fail: it is shut down; keys_max is
 * reached, there is no memory, or the key is longer than HF_LIMITER_KEY_MAX,
 * all of which count as refused. Where keys may be so long, hash them first, or
 * use take, which tells. */
bool hf_limiter_allow(struct hf_limiter *limiter, const char *key);

/* Takes, and waits until it can or the deadline has passed. Those who wait for
 * one key go in the order in which they came; calls that do not wait may pass
 * them. `call->now_ns` is not used. HF_OK: taken. HF_TIMEOUT; HF_CLOSED;
 * HF_FULL: no wait can help (`answer` tells, its retry_after_ns is NEVER), or
 * keys_max; others as take. `answer` may be NULL. */
enum hf_status hf_limiter_acquire(struct hf_limiter *limiter,
                                  const struct hf_limiter_call *call,
                                  uint64_t deadline_ns,
                                  struct hf_limiter_answer *answer);

/* For callers with a wait loop of their own, which have no thread to spare for
 * hf_limiter_acquire(): `freed` is told what may end a wait early, a refund, a
 * settled hold, a rule that was changed or removed. It is called by whoever
 * gives back, inside that call and outside all locks. NULL ends it. Not while
 * other threads use the limiter. */
void hf_limiter_watch(struct hf_limiter *limiter,
                      void (*freed)(void *context, uint64_t id), void *context);
/* Not one key: all of them. No key has this id. */
#define HF_LIMITER_WATCH_ALL UINT64_MAX
/* What `freed` calls the pair of this ask. Different keys may share an id: then
 * one looks in vain. */
uint64_t hf_limiter_watch_id(struct hf_limiter *limiter,
                             const struct hf_limiter_ask *ask);

/* For callers that know keys ahead: `ask` will be taken soon. The first call
 * brings the place where the key is looked up nearer to the processor, one with
 * `found`, a little later, the key's state. It changes nothing. */
void hf_limiter_expect(struct hf_limiter *limiter,
                       const struct hf_limiter_ask *ask, bool found);

/* ---- Reserve, then settle. ---- */

/* Takes as take does, for `hold_ns` at most. If it is allowed, `*hold` is the
 * number to settle by, else 0. What is not settled by then comes back by
 * itself, to the nanosecond. HF_FULL also with holds_max; a hold that is over
 * counts until its key is used again. */
enum hf_status hf_limiter_hold(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               uint64_t hold_ns,
                               struct hf_limiter_answer *answer,
                               uint64_t *hold);
/* Ends a hold with its true cost, the same for each of its pairs (asks with the
 * same key and rule are one): the rest comes back, and what was above the hold
 * is spent in any case, so that later calls wait for it, twice as long as the
 * rule takes to be whole again at most; LOG and LEASES: once. HF_NOTFOUND:
 * unknown, settled, its time is over and all came back, or its rule was
 * removed. `now_ns` 0: the limiter's clock. */
enum hf_status hf_limiter_settle(struct hf_limiter *limiter, uint64_t hold,
                                 uint64_t cost, uint64_t now_ns);

/* ---- What happened. ---- */

/* Whom the limiter denies most. Counts are never too low by more than what
 * was denied to others divided by the rows kept, and never too high by more
 * than `error`. */
struct hf_limiter_top {
    uint64_t denied;
    uint64_t error;
    char rule[HF_NAME_BYTES];
    uint32_t key_len; /* of the whole key */
    char key[128];    /* its beginning */
};
/* Fills in up to `cap` rows, most denied first; returns how many. */
size_t hf_limiter_top(struct hf_limiter *limiter, struct hf_limiter_top *rows,
                      size_t cap);

/* Forgets keys that have nothing spent, however short a time: looks at `count`
 * keys, returns how many it forgot. */
uint64_t hf_limiter_sweep(struct hf_limiter *limiter, uint64_t count,
                          uint64_t now_ns);

void hf_limiter_stats(const struct hf_limiter *limiter,
                      struct hf_limiter_stats *out);

#ifdef __cplusplus
}
#endif

#endif
