/* lender_state.h - the inside of a lender, shared by its source files.
 *
 *   lender.c       open, the end, bounds, figures
 *   lender_lend.c  borrow and return
 *   lender_wait.c  the queue, and those who wait without one
 *   lender_check.c validate, by the borrower or on a pool
 *   lender_make.c  create, destroy, upkeep, the thread
 *
 * A resource has a slot, and a slot's word says all about who may touch it:
 *
 *      63                          8 7      4 3      2   1 0
 *     +-----------------------------+--------+------+-----+-----+
 *     |   loans of this slot so far |   0    |RETIRE| ASK |state|
 *     +-----------------------------+--------+------+-----+-----+
 *
 *     EMPTY --reserve--> BUSY --create--> IDLE <==return==> OUT
 *       ^                 |  ^              |      borrow    |
 *       `----destroy------'  `---claim------'----------------'
 *
 * The number of loans (one more is counted for a resource's end) never goes
 * back, so a word is never seen again: a loan is its slot and that number.
 * Borrow and return are one exchange of the word. Who wants to be told of a
 * return sets ASK, who wants the resource to go RETIRE: the exchange of the
 * return then fails, and it comes by the long way. So a return touches nothing
 * after its exchange, and close() need not know of it.
 */
#ifndef KEEP_LENDER_STATE_H
#define KEEP_LENDER_STATE_H

#include <stdbool.h>

#include "base/random.h"
#include "base/thread.h"
#include "holdfast/backoff.h"
#include "holdfast/lender.h"
#include "sync/bell.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"
#include "sync/waits.h"

#define SLOT_EMPTY  0u
#define SLOT_IDLE   1u
#define SLOT_OUT    2u
#define SLOT_BUSY   3u /* its resource is being made, looked at or destroyed */
#define SLOT_STATE  3u
#define SLOT_ASK    4u
#define SLOT_RETIRE 8u
#define SLOT_FLAGS  0xffu
#define SLOT_LOAN   0x100u /* one loan more */

/* The id of a loan: its slot, and above it as much of the number as there is
 * room for. */
#define LOAN_SLOT_BITS 16
#define LOAN_SLOT_MASK 0xffffu

#define LENDER_CLOSED (1u << 31)
#define LENDER_NONE   UINT32_MAX

/* (i) immutable after open  (a) atomic  (s) of whoever has the slot OUT or BUSY
 * What is (a) beside the word is written by whoever has the slot, and read by
 * others who look at the word before and after. */
struct lender_slot {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 word;
    struct hf_atomic_ptr resource; /* (a) */
    struct hf_atomic_u64 noted;    /* (a) the loan that the next two tell of */
    struct hf_atomic_ptr who;      /* (a) */
    struct hf_atomic_u64 since_ns; /* (a) */
    struct hf_atomic_u64 idle_ns;  /* (a) when it came back, or was made */
    struct hf_atomic_u64 expires_ns; /* (a) HF_FOREVER: never */
    struct hf_atomic_u64 told;       /* (a) the loan that was told as leaked */
    struct hf_atomic_u32 age;        /* (a) `renewals` when it was begun */
    bool fresh; /* (s) not lent yet, and validate will say whether it is good */
    struct hf_lender *lender; /* (i) */
};

struct lender_check;

/* What a thread remembers. */
struct lender_local {
    _Alignas(HF_CACHE_LINE) uint32_t slot; /* that it had last */
};

/* Exists while its thread waits in the queue. */
struct lender_waiter {
    struct lender_waiter *next; /* (m) */
    struct lender_waiter *prev; /* (m) */
    struct hf_event bell;       /* (a) rung when status is set */
    bool first;                 /* before all who are not: it had one already */
    enum hf_status status;      /* HF_PENDING: in the queue. HF_MORE: the slot
                                 * is reserved, to create for itself */
    uint32_t slot;              /* of HF_OK and HF_MORE */
    uint64_t round;             /* (m) the one that it came in */
    bool waited;                /* it was served in a later one */
};

/* (i) immutable after open  (a) atomic  (m) under mutex */
struct hf_lender {
    struct hf_listed listed;
    struct hf_lender_opts opts;   /* (i) with defaults, but min and max */
    const struct hf_clock *clock; /* (i) */
    struct lender_slot *slots;    /* (i) opts.room of them */
    struct lender_check *checks;  /* (i) as many; NULL: not on a pool */
    struct hf_locals locals;
    uint32_t gate_mask; /* (i) what in `gate` keeps a borrower out */
    bool looks;         /* (i) validate may be needed */
    bool notes_lend;    /* (i) the clock is looked at for each borrow */
    bool notes_back;    /* (i) and for each return */
    /* LENDER_CLOSED, and how many wait. Written when somebody has to wait. */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u32 gate; /* (a) */
    struct hf_atomic_u32 used; /* (a) slots from here on were never filled */
    struct hf_atomic_u32 references; /* (a) close's, and of each long way */
    struct hf_atomic_u32 tight;      /* (a) there are more than max */
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct lender_waiter *first; /* (m) the queue */
    struct lender_waiter *last;  /* (m) */
    uint64_t rounds;   /* (m) how often the queue was looked through */
    bool swept;        /* (m) there is a queue, and all who have a slot know */
    uint32_t min;      /* (m) */
    uint32_t max;      /* (m) */
    uint32_t total;    /* (m) slots that are not EMPTY */
    uint32_t making;   /* (m) of these, creates under way */
    uint32_t leaving;  /* (m) of these, being destroyed */
    uint32_t renewals; /* (m) what is from before the last one goes */
    struct hf_backoff backoff; /* (m) between creates that fail; those that are
                                * to be validated have not succeeded before */
    bool asked;                /* (m) somebody gave up while there was room */
    uint64_t retry_ns;         /* (m) no create before this */
    struct hf_random random;   /* (m) */
    struct hf_event freed;     /* unfair: something is idle, or there is room */
    struct hf_event over;      /* shut, and the last one has gone */
    struct hf_event work;      /* for the thread */
    struct hf_thread thread;
    struct hf_waits waits;
    struct hf_atomic_u32 stop; /* (a) the thread is to end */
    struct hf_atomic_u32 code; /* (a) of the last create, or first validate */
    /* Figures. */
    struct hf_atomic_u64 undone; /* (a) loans that did not come to be */
    struct hf_atomic_u64 timeouts;
    struct hf_atomic_u64 created;
    struct hf_atomic_u64 failed;
    struct hf_atomic_u64 destroyed;
    struct hf_atomic_u64 broken;
    struct hf_atomic_u64 retired;
    struct hf_atomic_u64 validated;
    struct hf_atomic_u64 leaked;
    struct hf_atomic_u64 refused;
};

/* Relaxed: figures guard nothing. */
static inline void lender_count(struct hf_atomic_u64 *figure)
{
    hf_u64_add(figure, 1, __ATOMIC_RELAXED);
}

static inline uint64_t lender_now(const struct hf_lender *lender)
{
    return hf_clock_now_ns(lender->clock);
}

static inline bool lender_is_closed(const struct hf_lender *lender)
{
    /* Acquire: nothing hangs on it but the answer. */
    return (hf_u32_load(&lender->gate, __ATOMIC_ACQUIRE) & LENDER_CLOSED) != 0;
}

static inline uint32_t lender_waiting(const struct hf_lender *lender)
{
    return hf_u32_load(&lender->gate, __ATOMIC_RELAXED) & ~LENDER_CLOSED;
}

/* Acquire: slots below were set up before. */
static inline uint32_t lender_used(const struct hf_lender *lender)
{
    return hf_u32_load(&lender->used, __ATOMIC_ACQUIRE);
}

static inline uint64_t loan_id(uint64_t word, uint32_t index)
{
    return word / SLOT_LOAN << LOAN_SLOT_BITS | index;
}

/* Is this loan out, by that word of its slot? */
static inline bool loan_is_out(uint64_t word, uint64_t id)
{
    return (word & SLOT_STATE) == SLOT_OUT &&
           loan_id(word, (uint32_t)id & LOAN_SLOT_MASK) == id;
}

static inline uint64_t slot_look(const struct lender_slot *slot)
{
    /* Acquire: what was written before the word was. */
    return hf_u64_load(&slot->word, __ATOMIC_ACQUIRE);
}

/* Acquire: what the last one who had it did. Release: what we did. */
static inline bool slot_change(struct lender_slot *slot, uint64_t *word,
                               uint64_t to)
{
    return hf_u64_cas(&slot->word, word, to, __ATOMIC_ACQ_REL);
}

static inline uint64_t slot_with(uint64_t word, uint64_t flags)
{
    return (word & ~(uint64_t)SLOT_FLAGS) | flags;
}

/* An idle slot becomes the caller's loan. */
static inline bool slot_lend(struct lender_slot *slot, uint64_t *word,
                             uint64_t flags)
{
    return slot_change(slot, word,
                       slot_with(*word, SLOT_OUT | flags) + SLOT_LOAN);
}

/* A slot that is IDLE or OUT becomes BUSY and the caller's; `*word` is what it
 * was at last, with flags that others have set meanwhile. false: it is another
 * loan by now, or no longer in that state. */
bool hf_lender_claim(struct lender_slot *slot, uint64_t *word);

/* A slot that the caller has OUT for a loan that is not to be goes back, or is
 * destroyed because of `code`. */
void hf_lender_put_back(struct hf_lender *lender, uint32_t index);
void hf_lender_drop(struct hf_lender *lender, uint32_t index, int code);

static inline void lender_retain(struct hf_lender *lender)
{
    /* Relaxed: the caller knows that it is there. */
    hf_u32_add(&lender->references, 1, __ATOMIC_RELAXED);
}
void hf_lender_release(struct hf_lender *lender);

/* ---- lender_wait.c ---- */

/* Waits for a slot. `*index` is LENDER_NONE, or one that the caller has OUT and
 * that is not fit, as `code` says: it is destroyed, and the caller waits before
 * all who had none, unless its time is over. HF_OK: `*index` is OUT and the
 * caller's; HF_MORE: it is reserved for the caller to create; HF_TIMEOUT,
 * HF_CLOSED. */
enum hf_status hf_lender_wait(struct hf_lender *lender, uint64_t deadline_ns,
                              uint32_t *index, int code);
/* The caller's time is over, and it has no slot. */
void hf_lender_miss(struct hf_lender *lender);

/* Something has changed under the mutex: `index` has become idle
 * (LENDER_NONE: nothing has), or there is room, or it was closed. Unlocks, and
 * tells whom it concerns. */
void hf_lender_unlock(struct hf_lender *lender, uint32_t index);

/* ---- lender_check.c ---- */

/* Makes room for checks on a pool, if there are some. HF_NOMEM. */
enum hf_status hf_lender_checks_open(struct hf_lender *lender);
/* Need the slot that the caller has OUT not be looked at? `*now_ns` gets the
 * time if that had to be known and it need not, else 0. */
bool hf_lender_trusts(struct hf_lender *lender, uint32_t index,
                      uint64_t *now_ns);
/* Is it fit to be lent? HF_OK: it is if `*code` is 0. HF_TIMEOUT: that is not
 * known, and the slot has been taken from the caller, who holds the lender if
 * there are checks on a pool. */
enum hf_status hf_lender_check(struct hf_lender *lender, uint32_t index,
                               uint64_t deadline_ns, int *code);

/* ---- lender_make.c ---- */

/* Under mutex: an EMPTY slot becomes BUSY and counts as being made.
 * LENDER_NONE: there is no room. */
uint32_t hf_lender_reserve(struct hf_lender *lender);
/* Creates for a reserved slot. Lent: for the caller, to whom it is OUT; else it
 * is handed to who waits, or idle. HF_FAILED, HF_CLOSED: it is EMPTY. */
enum hf_status hf_lender_make(struct hf_lender *lender, uint32_t index,
                              bool lent);
/* What was made last is good after all, or is not: of one that is validated
 * before it is lent for the first time. */
void hf_lender_made_good(struct hf_lender *lender);
void hf_lender_made_bad(struct hf_lender *lender, int code);
/* A reserved slot is not made after all. */
void hf_lender_unreserve(struct hf_lender *lender, uint32_t index);
/* Destroys the resource of a slot that the caller has BUSY; the second, of one
 * that is counted in `leaving`. */
void hf_lender_destroy(struct hf_lender *lender, uint32_t index,
                       enum hf_lender_event why, int code);
void hf_lender_end(struct hf_lender *lender, uint32_t index,
                   enum hf_lender_event why, int code);
/* Under mutex: should the thread make one? */
bool hf_lender_wants(const struct hf_lender *lender);
/* Under mutex: more than max, leaving aside what goes already? */
bool hf_lender_is_tight(const struct hf_lender *lender);
/* Destroys it if it is idle; if it is out or being reset, when it is back.
 * false: since `word` it was lent or has gone. */
bool hf_lender_retire(struct hf_lender *lender, uint32_t index, uint64_t word);
/* The lender's thread. */
void hf_lender_run(void *argument);
/* Fills in a note of the loan that `word` says; false: it is over. */
bool hf_lender_describe(struct lender_slot *slot, uint64_t word,
                        uint64_t now_ns, struct hf_lender_note *note);

#endif
