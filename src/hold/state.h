/* state.h - what the engine keeps; for the files of this folder only.
 *
 *   locks --------> struct lock ----first/last----> struct waiter (a queue)
 *   products -----> struct product
 *   reservations -> struct reservation --- ended ones in a list by time
 *   fences -------> struct fence
 *   requests -----> struct request ------- answered ones in two lists by time,
 *                                          successes and refusals
 *
 *   due: a heap over held locks, waiters and pending reservations
 *
 * All records live in slabs and are named by 32-bit numbers. Nothing may
 * depend on those numbers but the order of listings: a state that was loaded
 * from an image has others.
 */
#ifndef HOLD_STATE_H
#define HOLD_STATE_H

#include "base/heap.h"
#include "base/index.h"
#include "hold/engine.h"

/* An idle lock is not kept: every lock here has a holder. */
struct lock {
    struct hf_named named;
    uint64_t token;
    uint64_t expires_us;
    uint64_t acquired_us;
    struct hf_text owner;
    uint32_t count; /* how often the owner took it */
    uint32_t due;   /* place in the heap */
    uint32_t first; /* waiters, oldest first */
    uint32_t last;
    uint32_t waiting; /* how many */
};

/* Found by its ticket, whose 8 bytes are its name. */
struct waiter {
    struct hf_named named;
    uint64_t ticket;
    uint64_t deadline_us;
    uint64_t queued_us;
    uint64_t ttl_ms;
    struct hf_text owner;
    uint32_t lock;
    uint32_t prev;
    uint32_t next;
    uint32_t due;
    uint32_t request; /* 0: none */
};

/* available = total - reserved - sold, never negative. */
struct product {
    struct hf_named named;
    uint64_t total;
    uint64_t reserved;
    uint64_t sold;
    uint64_t version;
    uint64_t updated_us;
};

enum reservation_status {
    RESERVATION_PENDING,
    RESERVATION_CONFIRMED,
    RESERVATION_CANCELLED,
    RESERVATION_EXPIRED,
};

/* The items are one text: per item 2 bytes length, sku, 8 bytes quantity. */
struct reservation {
    struct hf_named named;
    uint64_t seq; /* of its creation */
    uint64_t created_us;
    uint64_t expires_us;
    uint64_t ended_us; /* 0 while pending */
    struct hf_text owner;
    struct hf_text reason;
    struct hf_text items;
    uint32_t status;
    uint32_t due;
    uint32_t prev; /* in the list of the ended */
    uint32_t next;
};

struct fence {
    struct hf_named named;
    uint64_t newest;
};

struct request {
    struct hf_named named;
    uint64_t fingerprint;
    uint64_t stored_us;
    struct hf_text reply;
    uint32_t code;
    uint32_t waiter; /* not 0: not answered yet */
    uint32_t prev;   /* in the list of its outcome */
    uint32_t next;
};

/* A sum over products, each of which may have HOLD_STOCK_MAX. */
__extension__ typedef unsigned __int128 hold_wide;

struct list {
    uint32_t first;
    uint32_t last;
};

/* What a heap entry's `ref` names: the kind on top, the number below. */
enum due_kind { DUE_LOCK, DUE_WAITER, DUE_RESERVATION };
#define DUE_SHIFT  30
#define DUE_NUMBER ((1u << DUE_SHIFT) - 1)

#define NEED_TEXTS 3

/* What applying a command may take: at most one record of each index. */
struct need {
    struct hf_index *index; /* NULL: none */
    size_t name_len;
    bool waiter;
    bool due;
    bool shows;               /* a reservation, to be kept for a REQ */
    uint32_t reserves;        /* the size of what it reserves, plus 1 */
    size_t texts[NEED_TEXTS]; /* besides the name; 0: none. The last is the
                               * reply to be kept */
    size_t request_len;       /* 0: no REQ */
};

struct hold_engine {
    struct hf_hash_seed seed;
    struct hold_bounds bounds;
    uint64_t seq;
    uint64_t now_us;
    struct hf_texts texts;
    struct hf_index locks;
    struct hf_index waiters;
    struct hf_index products;
    struct hf_index reservations;
    struct hf_index fences;
    struct hf_index requests;
    struct hf_heap due;
    struct list ended;
    struct list done;    /* requests that succeeded */
    struct list refused; /* and those that did not: they make room first */
    uint32_t refused_count;
    uint64_t pending;      /* reservations */
    hold_wide stock_total; /* of all products, as the next two */
    hold_wide stock_reserved;
    hold_wide stock_sold;

    size_t memory_bytes;
    size_t memory_max;
    uint32_t reserving[HF_TEXT_CLASSES]; /* see promise.c */
    uint32_t showing[HF_TEXT_CLASSES];
    struct need spent; /* by the record being applied */
    uint32_t prepared; /* records that are not applied yet */
    bool grown;        /* promises made memory, of which some may come back */
    uint64_t requests_dropped; /* figures, no state */
    uint64_t requests_refused;
    struct hold_command command; /* the record being applied */
    struct hf_buf record;        /* scratch for a fingerprint */

    /* what the call gives */
    struct hold_out out;
    struct hf_buf body;
    struct hold_answer *answers;
    struct hf_buf answer_bodies;
    size_t answer_cap;
    struct hold_event *events;
    size_t event_cap;
    struct hf_buf event_names;
    uint32_t waiter_added; /* by the command just performed, for REQ */
    bool loading;          /* the head of an image was read */
    uint32_t load_lock;    /* the lock read last, whose waiters follow */
};

#define US_PER_MS 1000u

/* Length of the ids that the engine makes. */
#define HOLD_ID_MADE_BYTES 26u

/* The longest answer to a waiter: four numbers. */
#define HOLD_ANSWER_BYTES 64u

static inline struct lock *lock_at(const struct hold_engine *e, uint32_t n)
{
    return hf_index_at(&e->locks, n);
}

static inline struct waiter *waiter_at(const struct hold_engine *e, uint32_t n)
{
    return hf_index_at(&e->waiters, n);
}

static inline struct product *product_at(const struct hold_engine *e,
                                         uint32_t n)
{
    return hf_index_at(&e->products, n);
}

static inline struct reservation *reservation_at(const struct hold_engine *e,
                                                 uint32_t n)
{
    return hf_index_at(&e->reservations, n);
}

static inline struct request *request_at(const struct hold_engine *e,
                                         uint32_t n)
{
    return hf_index_at(&e->requests, n);
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The kinds that clients ask for, which may carry a REQ. */
static inline bool is_action(enum hold_kind kind)
{
    return kind >= HOLD_LOCK && kind <= HOLD_EXTEND;
}

/* out.c - what a call gives */
enum hf_status out_init(struct hold_engine *e);
void out_release(struct hold_engine *e);
void out_reset(struct hold_engine *e);
/* Room for an answer to every waiter, this many of them. */
enum hf_status out_reserve(struct hold_engine *e, size_t waiters);
/* Takes the next sequence number and tells what it was for. */
uint64_t emit(struct hold_engine *e, enum hold_event_kind kind,
              struct hf_bytes name, uint64_t lag_us);
/* With the event just told ended what began then. */
void emit_age(struct hold_engine *e, uint64_t since_us);
/* Begins the answer to a waiter; the caller writes its body and ends it. */
struct hf_buf *answer_begin(struct hold_engine *e, uint64_t ticket,
                            enum hold_code code);
void answer_end(struct hold_engine *e);
/* Sets the code and, for a refusal, begins the map of facts. */
struct hf_buf *refuse(struct hold_engine *e, enum hold_code code,
                      uint32_t facts);
/* OVERLOADED with the limit's name. Always true, to be returned. */
bool refuse_overload(struct hold_engine *e, const char *limit,
                     uint64_t maximum);

/* A listing in pages: a map of the list and the cursor to go on with. */
struct listing {
    struct hf_bytes pattern;
    uint32_t number; /* the next record to look at */
    uint32_t top;
    uint64_t steps; /* taken so far */
    uint32_t count; /* entries written */
    uint32_t count_max;
    size_t count_at; /* where the list's length stands */
};
void listing_begin(struct hold_engine *e, struct listing *listing,
                   enum hold_field field, const struct hold_command *c,
                   uint32_t top);
/* True while the page has room for the record at `number`, and steps left. */
bool listing_more(const struct hold_engine *e, const struct listing *listing);
/* Is the record to be listed? It counts, whether or not. */
bool listing_takes(struct listing *listing, const struct hf_index *index,
                   const void *record);
void listing_end(struct hold_engine *e, struct listing *listing);

/* The record that a command names: looked up once, then handed through. */
struct target {
    uint32_t number; /* 0: there is none */
    uint32_t hash;   /* of the name, to add it */
};

/* lock.c. The check functions answer, and return true, when the command can
 * be answered without changing anything; the others then make the change. */
bool lock_check(struct hold_engine *e, const struct hold_command *c,
                struct target at);
void lock_take(struct hold_engine *e, const struct hold_command *c,
               struct target at);
bool unlock_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at);
void lock_give(struct hold_engine *e, const struct hold_command *c,
               struct target at);
bool renew_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at);
void lock_renew(struct hold_engine *e, const struct hold_command *c,
                struct target at);
/* Expires the holder if its time is over; true if that changed something. */
bool lock_settle(struct hold_engine *e, uint32_t number);
/* Its time is over, but that was not swept. Also of 0, which is none. */
bool lock_is_over(const struct hold_engine *e, uint32_t number);
/* Of a grant or renewal in the body, told again: it is safe for no longer than
 * the lock is held with that token. */
void lock_bound_safe(struct hold_engine *e, const struct hold_command *c);
void lock_expire(struct hold_engine *e, uint32_t number);
void waiter_time_out(struct hold_engine *e, uint32_t number);
void waiter_drop(struct hold_engine *e, uint32_t number);
/* Gives the waiter of `request` a new ticket; returns it. */
uint64_t waiter_move(struct hold_engine *e, struct request *request);
uint32_t waiter_find(const struct hold_engine *e, uint64_t ticket);
void lock_info(struct hold_engine *e, const struct hold_command *c);
void lock_list(struct hold_engine *e, const struct hold_command *c);

/* fence.c */
bool fence_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at);
void fence_raise(struct hold_engine *e, const struct hold_command *c,
                 struct target at);
bool fence_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at);
void fence_del(struct hold_engine *e, const struct hold_command *c,
               struct target at);

/* stock.c */
bool stock_set_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at);
void stock_set(struct hold_engine *e, const struct hold_command *c,
               struct target at);
bool stock_add_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at);
void stock_add(struct hold_engine *e, const struct hold_command *c,
               struct target at);
bool stock_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at);
void stock_del(struct hold_engine *e, const struct hold_command *c,
               struct target at);
void stock_get(struct hold_engine *e, const struct hold_command *c);
void stock_list(struct hold_engine *e, const struct hold_command *c);

/* reserve.c */
bool reserve_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at);
void reserve(struct hold_engine *e, const struct hold_command *c,
             struct target at);
bool ending_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at);
void reservation_end(struct hold_engine *e, const struct hold_command *c,
                     struct target at);
void reservation_extend(struct hold_engine *e, const struct hold_command *c,
                        struct target at);
bool reservation_settle(struct hold_engine *e, uint32_t number);
bool reservation_is_over(const struct hold_engine *e, uint32_t number);
void reservation_expire(struct hold_engine *e, uint32_t number);
void reservation_show(struct hold_engine *e, const struct hold_command *c);
/* Forgets the reservation that ended first. */
void ended_forget_first(struct hold_engine *e);
size_t items_bytes(const struct hold_command *c);
/* Walks a reservation's items: false at the end. */
bool items_next(struct hf_bytes items, size_t *at, struct hold_item *out);
const char *reservation_status_name(uint32_t status);

/* promise.c */
/* Spends what was promised for a record; what is taken from here on is there.
 * When it was applied, promise_end() gives back what is left. */
void promise_spend(struct hold_engine *e, const struct hold_command *c);
void promise_end(struct hold_engine *e);
/* The bound, as promised, for a reply of `len` bytes to be kept for a REQ. */
size_t promise_take_reply(struct hold_engine *e, size_t len);

/* request.c */
/* The request that is remembered under this id, or 0. */
uint32_t request_find(const struct hold_engine *e, struct hf_bytes id);
/* True if the request is answered: with its first answer, or a conflict. */
bool request_repeat(struct hold_engine *e, const struct hold_command *c,
                    struct hf_bytes record);
/* True, and OVERLOADED, if there is no room for a request that is not
 * remembered, and none to be made by dropping refusals. */
bool request_refuse(struct hold_engine *e, struct hf_bytes id);
/* Makes room for it. False, and OVERLOADED, if that cannot be. */
bool request_admit(struct hold_engine *e, struct hf_bytes id);
/* True if the first is still waiting: the wait goes on under a new ticket. */
bool request_resume(struct hold_engine *e, const struct hold_command *c);
void request_store(struct hold_engine *e, const struct hold_command *c,
                   struct hf_bytes record);
/* Keeps the answer to a request whose wait is over. */
void request_answer(struct hold_engine *e, uint32_t number, enum hold_code code,
                    struct hf_bytes body);
/* TIMEOUT was told: it becomes the answer, or ends the wait. */
void request_time_out(struct hold_engine *e, struct hf_bytes id);
/* Forgets a request whose wait was given up. */
void request_drop(struct hold_engine *e, uint32_t number);
/* The request that was answered first of all, or 0. */
uint32_t request_oldest(const struct hold_engine *e);
void request_forget(struct hold_engine *e, uint32_t number);
/* Puts one that was answered at the end of its list. */
void request_append(struct hold_engine *e, uint32_t number);

/* list.c - the two lists by time */
struct list_link {
    uint32_t *prev;
    uint32_t *next;
};
typedef struct list_link list_links(struct hold_engine *e, uint32_t number);
void list_append(struct hold_engine *e, struct list *list, list_links *links,
                 uint32_t number);
void list_remove(struct hold_engine *e, struct list *list, list_links *links,
                 uint32_t number);
struct list_link reservation_links(struct hold_engine *e, uint32_t number);
struct list_link request_links(struct hold_engine *e, uint32_t number);

/* due.c - the heap */
void due_init(struct hold_engine *e);
void due_add(struct hold_engine *e, enum due_kind kind, uint32_t number,
             uint64_t when_us, uint64_t tie);
/* Handles what is due, HOLD_STEP_MAX things at most. */
void due_sweep(struct hold_engine *e);

#endif
