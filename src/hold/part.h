/* part.h - what a part of the graph is about, wherever that is kept. */
#ifndef HOLD_PART_H
#define HOLD_PART_H

#include "hold/locks.h"

#define GRANTS(e) CHAIN((e)->parts, part, place) /* and queues */
#define KIN(e)    CHAIN((e)->parts, part, kin)
#define PEERS(e)  CHAIN((e)->waiters.slab, waiter, peers)

/* What is shown of one holder, waiter or event counts as so many steps. */
#define SHOW_STEPS 16u

/* What `tree` of a request says: the names below count. TREE_COVERED: of its
 * set another name has met them. */
#define TREE_ALL     1u
#define TREE_COVERED 3u

/* One name of a request, as it is asked for. */
struct wanted {
    struct hf_bytes owner;
    uint32_t session;
    uint32_t permits;
    uint32_t max;
    enum lock_mode mode;
    uint8_t tree; /* 0: none */
    bool key;
    uint32_t priority;
    uint32_t rank; /* in the queue: see rank_of() */
    uint64_t age;
    uint64_t order; /* UINT64_MAX: a new request */
};

static inline struct hf_bytes lock_name(const struct hold_engine *e,
                                        uint32_t number)
{
    return hf_index_name(&e->locks, lock_at(e, number));
}

static inline const struct claim *part_claim(const struct hold_engine *e,
                                             const struct part *part)
{
    if (part->group == 0)
        return &part->claim;
    return part->waits ? &waiter_at(e, part->group)->claim
                       : &set_at(e, part->group)->claim;
}

static inline struct hf_bytes part_owner(const struct hold_engine *e,
                                         const struct part *part)
{
    return hf_text_bytes(&e->texts, part_claim(e, part)->owner);
}

/* Of a grant. */
static inline uint64_t part_token(const struct hold_engine *e,
                                  const struct part *part)
{
    return part->group == 0 ? part->token : set_at(e, part->group)->token;
}

/* When a grant ends by its own time; UINT64_MAX: with its session. */
static inline uint64_t part_expires_us(const struct hold_engine *e,
                                       const struct part *part)
{
    return part->group == 0 ? hf_agenda_when(&e->due, part->due)
                            : set_at(e, part->group)->expires_us;
}

static inline uint64_t part_acquired_us(const struct hold_engine *e,
                                        const struct part *part)
{
    return part->group == 0 ? part->acquired_us
                            : set_at(e, part->group)->acquired_us;
}

static inline enum seal part_seal(const struct hold_engine *e,
                                  const struct part *part)
{
    return (enum seal)(part->group == 0 ? part->sealed
                                        : set_at(e, part->group)->sealed);
}

static inline bool part_is_sealed(const struct hold_engine *e,
                                  const struct part *part)
{
    return part_seal(e, part) != SEAL_NONE;
}

static inline bool session_is_over(const struct hold_engine *e, uint32_t number)
{
    return number != 0 && session_at(e, number)->expires_us <= e->now_us;
}

static inline bool grant_is_over(const struct hold_engine *e,
                                 const struct part *part)
{
    return part_expires_us(e, part) <= e->now_us ||
           session_is_over(e, part_claim(e, part)->session);
}

static inline bool waiter_is_over(const struct hold_engine *e,
                                  const struct waiter *waiter)
{
    return waiter->deadline_us <= e->now_us ||
           session_is_over(e, waiter->claim.session);
}

static inline bool part_is_over(const struct hold_engine *e,
                                const struct part *part)
{
    return part->waits ? waiter_is_over(e, waiter_at(e, part->group))
                       : grant_is_over(e, part);
}

/* Is it of that holder? */
static inline bool part_is_of(const struct hold_engine *e,
                              const struct part *part, uint32_t session,
                              struct hf_bytes owner)
{
    const struct claim *claim = part_claim(e, part);

    return claim->session == session &&
           hf_bytes_equal(hf_text_bytes(&e->texts, claim->owner), owner);
}

/* Does the request conflict with a grant of another holder? */
static inline bool conflicts(const struct lock *lock,
                             const struct wanted *wanted,
                             const struct part *grant)
{
    if (wanted->mode == MODE_EXCLUSIVE || wanted->mode != grant->mode)
        return true;
    return wanted->mode == MODE_COUNTING &&
           (wanted->max != lock->max ||
            wanted->permits > lock->max - lock->used);
}

static inline bool is_closed(const struct hold_engine *e,
                             const struct lock *lock)
{
    return lock->mark != 0 && mark_at(e, lock->mark)->closed_us > e->now_us;
}

static inline bool is_done(const struct hold_engine *e, const struct lock *lock)
{
    return lock->mark != 0 && mark_at(e, lock->mark)->done_us > e->now_us;
}

/* The grant on a lock with that token; 0: none. */
static inline uint32_t grant_find(const struct hold_engine *e,
                                  uint32_t lock_number, uint64_t token)
{
    uint32_t number =
        lock_number == 0 ? 0 : lock_at(e, lock_number)->grants.first;

    while (number != 0 && part_token(e, part_at(e, number)) != token)
        number = part_at(e, number)->place.next;
    return number;
}

static inline uint32_t part_new(struct hold_engine *e, uint32_t lock_number,
                                const struct wanted *wanted)
{
    uint32_t number = hf_slab_take_raw(&e->parts);

    assert(number != 0); /* promised */
    *part_edit(e, number) = (struct part){
        .lock = lock_number,
        .mode = (uint8_t)wanted->mode,
        .permits = wanted->permits,
        .priority = wanted->priority & HOLD_PRIORITY_MAX,
        .key = wanted->key,
        .tree = wanted->tree & TREE_ALL,
    };
    return number;
}

/* Its holder, and of a new one its note. */
static inline void tell_grant(struct hold_engine *e, struct hold_event *event,
                              const struct part *part)
{
    const struct claim *claim = part_claim(e, part);

    event->owner = tell_text(e, hf_text_bytes(&e->texts, claim->owner));
    if (event->kind == EVENT_LOCK_GRANTED && claim->terms != 0)
        event->note = tell_text(
            e, hf_text_bytes(&e->texts, terms_at(e, claim->terms)->note));
}

/* Tells of a grant; token 0: it is the number of the event. */
static inline uint64_t emit_at(struct hold_engine *e, enum hold_event_kind kind,
                               const struct lock *lock, const struct part *part,
                               uint64_t token, uint64_t lag_us)
{
    uint64_t seq = emit(e, kind, hf_index_name(&e->locks, lock), lag_us);
    struct hold_event *event = &e->events[e->out.event_count - 1];

    event->token = token != 0 ? token : seq;
    event->mode = part->mode;
    if (e->tells)
        tell_grant(e, event, part);
    if (e->past != NULL)
        past_add(e, kind, lock->named.hash, event->name, part_owner(e, part),
                 event->token, (enum lock_mode)part->mode, part->tree);
    return seq;
}

static inline uint64_t emit_lock(struct hold_engine *e,
                                 enum hold_event_kind kind,
                                 const struct part *part, uint64_t token,
                                 uint64_t lag_us)
{
    return emit_at(e, kind, lock_at(e, part->lock), part, token, lag_us);
}

/* Who dies for its age stands in the order of arrival, whatever its priority:
 * since nobody waits behind a senior, everybody then waits for juniors. */
static inline uint32_t rank_of(uint64_t flags)
{
    return policy_of(flags) == POLICY_WAITDIE ? HOLD_PRIORITY_MAX
                                              : priority_of(flags);
}

/* Does it have terms? */
static inline bool has_terms(const struct hold_command *c)
{
    return (c->note.len | c->maxhold_ms | c->delay_ms) != 0;
}

/* What a grant on a new name takes, without terms. */
static inline void grant_need(struct hold_engine *e,
                              const struct hold_command *c, struct need *need)
{
    need_record(e, need, &e->locks, c->name.len);
    need_item(need, &e->parts);
    need_text(e, need, c->owner.len);
    need->due = 1;
}

/* What a command asks for, but for the mode of one of several names. */
static inline struct wanted command_wants(const struct hold_engine *e,
                                          const struct hold_command *c,
                                          uint32_t session)
{
    bool by_age = hold_policy(c) == POLICY_WOUNDWAIT;

    return (struct wanted){
        .owner = c->owner,
        .session = session,
        .permits = (uint32_t)c->permits,
        .max = (uint32_t)(c->permits >> 32),
        .mode = (c->flags & HOLD_SHARED) != 0 ? MODE_SHARED
                : c->permits != 0             ? MODE_COUNTING
                                              : MODE_EXCLUSIVE,
        .tree = (c->flags & HOLD_TREE) != 0,
        .key = c->kind == HOLD_KEY_SET,
        .priority = hold_priority(c),
        .rank = rank_of(c->flags),
        .age = by_age ? c->session : e->seq + 1,
        .order = e->seq + 1,
    };
}

/* What has no end lasts as long as anything can. */
static inline int64_t left_ms(const struct hold_engine *e, uint64_t until_us)
{
    if (until_us == UINT64_MAX)
        return (int64_t)HOLD_TTL_MAX_MS;
    return until_us > e->now_us ? (int64_t)((until_us - e->now_us) / US_PER_MS)
                                : 0;
}

static inline int64_t passed_ms(const struct hold_engine *e, uint64_t since_us)
{
    return (int64_t)((e->now_us - since_us) / US_PER_MS);
}

/* How long a grant lasts that ends then, or earlier with its session. */
static inline int64_t claim_safe_ms(const struct hold_engine *e,
                                    const struct claim *claim,
                                    uint64_t expires_us)
{
    return claim->session == 0 ? left_ms(e, expires_us)
                               : session_safe_ms(e, claim, expires_us);
}

#endif
