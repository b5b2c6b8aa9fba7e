/* state.h - what the engine keeps; for the files of this folder only.
 *
 *   locks --------> struct lock, with parts, waiters, sets, sessions: graph.h
 *   products -----> struct product
 *   reservations -> struct reservation --- ended ones in a list by time
 *   buyers -------> struct buyer: who waits for stock, see waitlist.h
 *   expects ------> struct expect: what is to arrive, see expect.h
 *   fences -------> struct fence
 *   requests -----> struct request ------- answered ones in two lists by time,
 *                                          successes and refusals
 *
 *   due: an agenda of grants, sets, waiters, sessions, marks, pending
 *        reservations, buyers and announced arrivals
 *
 * All records live in slabs and are named by 32-bit numbers. Nothing may
 * depend on those numbers but the order of listings: a state that was loaded
 * from an image has others.
 */
#ifndef HOLD_STATE_H
#define HOLD_STATE_H

#include <assert.h>

#include "base/agenda.h"
#include "base/index.h"
#include "base/undo.h"
#include "hold/engine.h"
#include "hold/graph.h"
#include "hold/subject.h"

/* How a record begins that can be in a list. */
struct listed {
    struct hf_named named;
    struct links links;
};

/* available = total - reserved - sold, never negative. */
struct product {
    struct hf_named named;
    uint64_t total;
    uint64_t reserved;
    uint64_t sold;
    uint64_t version;
    uint64_t updated_us;
    uint64_t low;              /* the threshold; 0: none */
    uint64_t ends_us;          /* see settled.c; 0: nothing is reserved, or
                                * when that ends is not known */
    struct hf_text attributes; /* see attributes.c */
    struct list queue;         /* demands, in the order of their turn */
    uint32_t waiting : 29;
    bool is_placed : 1;  /* it is sku@place */
    bool is_limited : 1; /* it has a quota: see quota.h */
    bool is_listed : 1;  /* to be served */
    uint32_t next;       /* the same */
};

enum reservation_status {
    RESERVATION_PENDING,
    RESERVATION_CONFIRMED,
    RESERVATION_CANCELLED,
    RESERVATION_EXPIRED,
    RESERVATION_WAITING, /* for stock: it comes before PENDING */
    RESERVATION_BOOKED,  /* of stock that is to arrive: the same */
};

/* The items are one text: per item 2 bytes length, sku, 8 bytes quantity. */
struct reservation {
    struct listed listed; /* among the ended, or the booked of a product */
    uint64_t seq;         /* of its creation, or its first ticket */
    uint64_t created_us;
    uint64_t expires_us; /* while it is booked: how long it will last */
    uint64_t ended_us;   /* 0 while pending */
    struct hf_text owner;
    struct hf_text reason;
    struct hf_text items;
    uint32_t status;
    union {
        uint32_t due;   /* while it is pending */
        uint32_t buyer; /* while it waits */
    };
    uint32_t extends; /* how often it was extended */
    uint32_t class;   /* its number, also of one that was deleted; 0: none */
    uint32_t member;  /* of a group: see bundle.h; 0: of none */
    uint32_t unused;
};

/* One product of a request that waits for stock: its place in the queue. */
struct demand {
    uint32_t product; /* never 0 */
    uint32_t buyer;
    struct links place;
    uint64_t quantity;
    uint32_t more; /* the next of the same buyer, by sku; 0: none */
    uint32_t unused;
};

/* A request that waits for stock. Found by its ticket. */
struct buyer {
    struct listed listed; /* all of them, by `order` */
    uint64_t ticket;
    uint64_t order; /* the first ticket: stays when a REQ is repeated */
    uint64_t queued_us;
    uint64_t deadline_us;
    uint64_t ttl_ms;      /* of the reservation */
    uint32_t reservation; /* that it will have */
    uint32_t request;     /* 0: none */
    uint32_t first;       /* of its demands */
    uint32_t due;
    uint32_t priority;
    uint32_t joined; /* nobody stays connected for it */
};

/* What a class of reservations has instead of the settings. */
struct class
{
    struct hf_named named;
    uint64_t ttl_ms; /* 0: as the setting */
    uint64_t grace_ms;
    uint64_t extends_max; /* 0: any */
    uint64_t life_ms;     /* 0: any */
    uint32_t number;      /* that no other class ever had */
};

struct fence {
    struct hf_named named;
    uint64_t newest;
};

struct request {
    struct listed listed; /* among those of its outcome */
    uint64_t fingerprint;
    uint64_t stored_us;
    struct hf_text reply;
    uint32_t code;
    uint32_t waiter; /* not 0: not answered yet */
};
#define WAITS_FOR_STOCK 0x80000000u /* in `waiter`: it is a buyer */

/* A sum over products, each of which may have HOLD_STOCK_MAX. */
__extension__ typedef unsigned __int128 hold_wide;

/* What an entry's `ref` names: the kind on top, the number below. */
enum due_kind {
    DUE_GRANT,
    DUE_SET,
    DUE_WAITER,
    DUE_SESSION,
    DUE_MARK,
    DUE_RESERVATION,
    DUE_BUYER,
    DUE_ARRIVAL,
};
#define DUE_SHIFT  29
#define DUE_NUMBER ((1u << DUE_SHIFT) - 1)

/* What applying a command may take. */
#define NEED_SLABS_MAX (6 * HOLD_SET_MAX + 24)
struct need {
    struct hf_slab *slabs[NEED_SLABS_MAX]; /* an item of each */
    uint32_t count;
    uint32_t due;      /* entries of the agenda */
    uint32_t reserves; /* the size of what it reserves, plus 1 */
    bool waiter;
    bool shows;       /* a reservation, to be kept for a REQ */
    bool path;        /* the name of a command about one has a '/' */
    size_t reply_len; /* of the reply to be kept for a REQ; 0: none */
    /* with `waiter`: the names that it may come to wait for, and their bytes;
     * of what its answer has more than HOLD_ANSWER_BYTES */
    size_t names;
    size_t name_bytes;
    size_t answer_bytes;
};

#define HOLD_ID_MADE_BYTES 26u /* length of the ids that the engine makes */

/* An id that the engine makes, of that time and number. */
struct made_id {
    uint64_t ms;
    uint64_t seq; /* 0: there is none yet */
    uint32_t hash;
    char text[HOLD_ID_MADE_BYTES];
};

struct hold_engine {
    struct hf_hash_seed seed;
    struct hold_bounds bounds;
    struct hf_undo undo; /* of the group being applied */
    uint64_t seq;
    uint64_t now_us;
    struct hf_texts texts;
    struct hf_index locks;
    struct hf_index waiters;
    struct hf_index sets;
    struct hf_index sessions;
    struct hf_index holders;
    struct hf_slab parts;
    struct hf_slab terms;
    struct hf_slab marks;
    struct hf_slab paths; /* names with a '/' in order: see path.h */
    struct hf_slab trees; /* of TREE in use: see tree.h */
    uint32_t path_root;
    uint32_t tree_lens[HOLD_NAME_MAX + 1]; /* how many by length of name */
    uint32_t steps;  /* of the sweep, or of what else is bounded so */
    uint32_t walked; /* by it: waits and related names */
    uint64_t below;  /* names below the TREEs of a command, or of a group */
    struct {         /* locks above the lock `of` that stopped waits */
        uint32_t of;
        uint32_t above[2];
    } stops;               /* in one pass through a queue */
    struct list serve;     /* locks whose queues are to be looked at */
    bool serve_idle;       /* of them one may be idle, in a group */
    uint32_t held;         /* locks with a grant */
    uint32_t delays;       /* marks that are promised to grants and waiters */
    size_t waited_parts;   /* names that are waited for */
    size_t waited_bytes;   /* of them */
    size_t waited_answers; /* bytes of answers beyond HOLD_ANSWER_BYTES */
    size_t promised_parts; /* the same of commands that were prepared */
    size_t promised_bytes;
    size_t promised_answers;
    uint64_t search;         /* the last one: see deadlock.c */
    struct past_entry *past; /* a ring: see explain.c; NULL: none */
    uint32_t past_count;     /* that it has room for, a power of two */
    uint64_t past_next;      /* how many were ever put into it */
    struct hf_index products;
    struct hf_index places; /* the skus that have some: see places.h */
    struct hf_slab forks;
    struct hf_index quotas; /* the products that have a limit: see quota.h */
    struct hf_index shares; /* what owners have of them */
    struct hf_index reservations;
    struct hf_index buyers;
    struct hf_index bundles; /* groups of reservations: see bundle.h */
    struct hf_slab members;
    uint32_t ended_members;  /* by a command, or a group of commands */
    struct hf_index expects; /* see expect.h */
    struct hf_slab demands;
    struct list waitlist; /* all buyers, oldest first */
    struct list hungry;   /* products whose queues are to be looked at */
    struct hf_index fences;
    struct hf_index requests;
    struct hf_agenda due;
    struct list ended;
    struct list done;    /* requests that succeeded */
    struct list refused; /* and those that did not: they make room first */
    uint32_t refused_count;
    struct hf_index classes;
    uint32_t class_last;   /* the highest number of a class so far */
    uint64_t grace_ms;     /* the longest of all, by setting or class */
    uint64_t pending;      /* reservations */
    uint64_t booked;       /* the same */
    hold_wide stock_total; /* of all products, as the next two */
    hold_wide stock_reserved;
    hold_wide stock_sold;
    uint32_t lows; /* products with a threshold */

    size_t memory_bytes;
    size_t memory_max;
    uint32_t reserving[HF_TEXT_CLASSES]; /* see promise.c */
    uint32_t showing[HF_TEXT_CLASSES];
    /* what follows is no state: see HOLD_STATE_BYTES */
    uint64_t tree_changes; /* how often a TREE came or went */
    uint64_t tree_stops;   /* how often something came that may stop readers */
    struct hold_above *above; /* see above.h */
    uint64_t serve_turns;     /* how often one was served, or came to wait */
    struct made_id made;      /* the last one: see reserve.c */
    struct noted noted[HOLD_SET_MAX]; /* by the lock's number: see serve.c */
    struct need spent;                /* by the record being applied */
    uint32_t prepared;                /* records that are not applied yet */
    bool grown; /* promises made memory, of which some may come back */
    uint64_t requests_dropped; /* figures, no state */
    uint64_t double_grants;
    uint64_t requests_refused;
    struct hold_command command; /* the record being applied */
    struct hold_command member;  /* of a group, the command being applied */
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
    bool groups;             /* there is room for the events of a group */
    bool tells;              /* events have all that can be told */
    struct hf_buf done_body; /* of those who waited for what is done */
    uint32_t waiter_added;   /* by the command just performed, for REQ */
    bool old_queues;      /* a journal from before HOLD_GRAPH is replayed: in it
                           * RESERVE of an id that had ended was OK, too */
    bool old_waits;       /* the same from before HOLD_SETTLED */
    bool loading;         /* the head of an image was read */
    uint64_t load_format; /* of that image */
    uint32_t load_lock;   /* of format 1: the lock that was read last */
};

/* The state that is not in records, from `seq` on. What counts how often
 * something was found out only grows: a group that is taken back must not leave
 * behind what it found out, under a number that comes again. */
#define HOLD_STATE_BYTES                          \
    (offsetof(struct hold_engine, tree_changes) - \
     offsetof(struct hold_engine, seq))

static inline void need_item(struct need *need, struct hf_slab *slab)
{
    assert(need->count < NEED_SLABS_MAX);
    need->slabs[need->count++] = slab;
}

/* A text of up to `len` bytes. */
static inline void need_text(struct hold_engine *e, struct need *need,
                             size_t len)
{
    if (len > 0)
        need_item(need, hf_texts_slab(&e->texts, len));
}

static inline void need_record(struct hold_engine *e, struct need *need,
                               struct hf_index *index, size_t name_len)
{
    need_item(need, &index->slab);
    need_text(e, need, name_len);
}

/* Keeps a text for which there is a promise. */
static inline void keep_text(struct hold_engine *e, struct hf_bytes text,
                             struct hf_text *out)
{
    enum hf_status status = hf_texts_put(&e->texts, text, text.len, out);

    assert(status == HF_OK);
    (void)status;
}

#define US_PER_MS 1000u
/* How an image begins. */
#define IMAGE_HEAD       'H'
#define IMAGE_OLD        1u  /* is read, but not written: see load_old.c */
#define IMAGE_BEFORE     3u  /* up to this: see struct subject */
#define IMAGE_COUNTED    4u  /* from here on it tells how many bounds it has */
#define IMAGE_UNENDED    5u  /* up to this without `ends_us` */
#define IMAGE_FORMAT     8u  /* and these bits: */
#define IMAGE_OLD_QUEUES 1u  /* with `old_queues`, in earlier ones, too */
#define IMAGE_OLD_WAITS  2u  /* with `old_waits`, as all earlier ones */
#define GRAPH_BOUNDS     12u /* so many have formats 2 and 3 */

/* The longest answer to a waiter that is kept for its REQ: five numbers. */
#define HOLD_ANSWER_BYTES 64u

/* The record of that number: lock_at(e, number) and so on, to be looked at;
 * lock_edit(e, number), to be changed. What a group changes can be taken back:
 * see group.c. */
#define ITEM_AT(kind, slab)                                                    \
    static inline const struct kind *kind##_at(const struct hold_engine *e,    \
                                               uint32_t number)                \
    {                                                                          \
        return hf_slab_at_sized(&e->slab, number, sizeof(struct kind));        \
    }                                                                          \
    static inline struct kind *kind##_edit(struct hold_engine *e,              \
                                           uint32_t number)                    \
    {                                                                          \
        return hf_undo_keep(                                                   \
            &e->undo, hf_slab_at_sized(&e->slab, number, sizeof(struct kind)), \
            sizeof(struct kind));                                              \
    }
ITEM_AT(lock, locks.slab)
ITEM_AT(waiter, waiters.slab)
ITEM_AT(set, sets.slab)
ITEM_AT(session, sessions.slab)
ITEM_AT(holder, holders.slab)
ITEM_AT(product, products.slab)
ITEM_AT(reservation, reservations.slab)
ITEM_AT(buyer, buyers.slab)
ITEM_AT(fence, fences.slab)
ITEM_AT(request, requests.slab)
ITEM_AT(class, classes.slab)
ITEM_AT(part, parts)
ITEM_AT(terms, terms)
ITEM_AT(mark, marks)
ITEM_AT(tree, trees)
ITEM_AT(demand, demands)
#undef ITEM_AT

/* What hold_is_behind() tells. */
static inline bool is_behind(const struct hold_engine *e)
{
    const struct hf_heap_entry *first = hf_agenda_first(&e->due);

    return first != NULL && first->when <= e->now_us;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* engine.c - the operations that are about everything. run_end_early() ends
 * what the server ended before the engine knew: a hold, a wait, or with a
 * TIMEOUT what is kept for its REQ. */
hold_run_fn run_tick, run_restart, run_bounds, run_flush, run_end_early;

/* out.c - what a call gives */
enum hf_status out_init(struct hold_engine *e);
void out_destroy(struct hold_engine *e);
void out_reset(struct hold_engine *e);
/* Room for an answer to every waiter, this many of them, with so many bytes
 * beyond HOLD_ANSWER_BYTES. */
enum hf_status out_reserve(struct hold_engine *e, size_t waiters, size_t bytes);
/* Room for the event of a grant to every part that waits: so many of them, with
 * so many bytes of names. */
enum hf_status out_reserve_events(struct hold_engine *e, size_t parts,
                                  size_t name_bytes);
/* Room for what a group can tell. */
enum hf_status out_reserve_group(struct hold_engine *e);
/* Takes the next sequence number and tells what it was for. */
uint64_t emit(struct hold_engine *e, enum hold_event_kind kind,
              struct hf_bytes name, uint64_t lag_us);
/* The event just told, and, if all is to be told, copies of texts for it. */
static inline struct hold_event *told(struct hold_engine *e)
{
    return &e->events[e->out.event_count - 1];
}
static inline struct hf_bytes tell_text(struct hold_engine *e,
                                        struct hf_bytes text)
{
    char *place = e->event_names.data + e->event_names.len;

    assert(e->event_names.cap - e->event_names.len >= text.len);
    hf_copy_short(place, text.data, text.len);
    e->event_names.len += text.len;
    return hf_bytes(place, text.len);
}
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

/* Answers with a page of the records of `index`, each written by `show`,
 * of those that are `among` them (NULL: all): a map of the list and the cursor
 * to go on with. */
void list_page(struct hold_engine *e, const struct hold_command *c,
               enum hold_field field, const struct hf_index *index,
               bool (*among)(const void *record),
               void (*show)(struct hold_engine *e, const void *record));

/* The record that a command names: looked up once, then handed through. */
struct target {
    uint32_t number; /* 0: there is none */
    uint32_t hash;   /* of the name, to add it */
};

static inline struct target find_target(const struct hold_engine *e,
                                        const struct hold_command *c,
                                        const struct subject *subject)
{
    struct target at = {0, 0};

    if (subject == NULL || c->name.len == 0)
        return at; /* it names none, or an id will be made */
    const struct hf_index *index = subject_index(e, subject);
    at.hash = hf_index_hash(index, c->name);
    at.number = hf_index_find_hashed(index, at.hash, c->name);
    return at;
}

/* fence.c */
hold_need_fn fence_need;
hold_check_fn fence_check, fence_del_check;
hold_change_fn fence_raise, fence_del;

/* stock.c */
hold_need_fn stock_set_need;
hold_check_fn stock_set_check, stock_add_check, stock_del_check;
hold_check_fn stock_known_check; /* NOTFOUND */
hold_change_fn stock_set, stock_add, stock_del, stock_low;
hold_run_fn stock_get, stock_list, places_show;
subject_loaded_fn product_loaded;
/* Its numbers; so many fields more follow. */
void reply_product(struct hold_engine *e, const struct product *p,
                   uint32_t more);
/* Takes the next number for a change of the product, and tells its units. */
uint64_t emit_product(struct hold_engine *e, const struct product *p,
                      enum hold_event_kind kind);
/* So much of each product was just `taken`, or given back: tells which ones are
 * low now, or are not any more. The event of the reservation comes before. */
void levels_tell(struct hold_engine *e, struct hf_bytes items, bool taken);

/* What of changing a product's total comes before anybody is served: it is told
 * with the command's REF and REASON. */
void stock_set_total(struct hold_engine *e, uint32_t number, uint64_t total,
                     const struct hold_command *c);

/* attributes.c */
hold_need_fn attribute_need;
hold_check_fn attribute_check;
hold_change_fn attribute_set;
/* The field, as a map of texts. */
void reply_attributes(struct hold_engine *e, const struct product *p);
/* Are they as attribute_set() writes them? */
bool attributes_are_whole(struct hf_bytes attributes);

/* reserve.c */
hold_need_fn reserve_need, ending_need;
hold_check_fn reserve_check, ending_check;
hold_change_fn reserve, reservation_end, reservation_extend;
hold_run_fn reservation_show, reservation_settle;
subject_loaded_fn reservation_loaded;
/* class.c - classes of reservations. What counts of one is what its class says
 * when that is asked, and what the settings say if it has none, or none that is
 * still there. */
hold_need_fn class_set_need;
hold_check_fn class_set_check, class_del_check;
hold_change_fn class_set, class_del;
hold_run_fn class_list;
subject_loaded_fn class_loaded;
/* The class of that number; NULL: there is none. */
const struct class *class_of(const struct hold_engine *e, uint32_t number);
/* The settings or a class have changed: what follows from all of them. */
void classes_changed(struct hold_engine *e);

bool reservation_has_ended(const void *record);
/* Confirms or cancels it, and tells so. */
void reservation_finish(struct hold_engine *e, uint32_t number, bool confirm,
                        struct hf_bytes reason);
/* Confirms one in its time of grace, whose units are still free. */
void reservation_sell_late(struct hold_engine *e, uint32_t number);
/* Its status as clients see it. */
const char *reservation_status(const struct reservation *r);
/* Sets its units aside, which are there. */
void reservation_begin(struct hold_engine *e, uint32_t number,
                       enum hold_event_kind kind, uint64_t ttl_ms);
/* Forgets one that waited in vain. */
void reservation_remove(struct hold_engine *e, uint32_t number);
/* The one that was made with that event is cancelled, if it is pending; nobody
 * is told. */
void reservation_give_up(struct hold_engine *e, struct hf_bytes id,
                         uint64_t seq_made);
bool reservation_is_over(const struct hold_engine *e, uint32_t number);
bool reservation_may_be_over(const struct hold_engine *e, uint32_t number);
void reservation_expire(struct hold_engine *e, uint32_t number);
/* Is the command about the end of one that waits, which what is due may let be
 * served? Or does a CONFIRM come when its time is over, in a time of grace?
 * Then it depends on what is available. */
bool reservation_may_change(const struct hold_engine *e,
                            const struct hold_command *c);
/* Forgets the reservation that ended first. */
void ended_forget_first(struct hold_engine *e);

/* group.c */
hold_need_fn group_need;
hold_check_fn group_check;
hold_change_fn group_run;
hold_run_fn run_said;
/* Promises what its commands may need, and what taking them back does. */
enum hf_status group_prepare(struct hold_engine *e, struct hf_bytes group);
/* Spends what its commands were promised. */
void group_spend(struct hold_engine *e, struct hf_bytes group);
/* Memory that was made for the promises and is not needed goes back. */
void group_trim(struct hold_engine *e, struct hf_bytes group);
/* The longest reply, to be kept for a REQ. */
size_t group_reply_bound(struct hold_engine *e, struct hf_bytes group);
/* The body is a kept reply that is told again so much later. */
void group_retell(struct hold_engine *e, struct hf_bytes group,
                  uint64_t passed_ms);

/* promise.c */
/* The longest reply that shows a reservation with these items. */
size_t promise_reservation(size_t items_len, size_t count);
/* Spends what was promised for a record; what is taken from here on is there.
 * When it was applied, promise_end() gives back what is left. */
void promise_spend(struct hold_engine *e, const struct hold_command *c);
void promise_end(struct hold_engine *e);
/* The command is carried out next, and what it needs was spent before. */
void promise_expect(struct hold_engine *e, const struct hold_command *c);
/* Gives back memory that was made for promises and is not needed. */
void promise_trim(struct hold_engine *e);
/* The longest reply of a write. */
size_t promise_reply_bound(struct hold_engine *e, const struct hold_command *c);
/* The bound, as promised, for a reply of `len` bytes to be kept for a REQ. */
size_t promise_take_reply(struct hold_engine *e, size_t len);

/* due.c - the agenda */
void due_init(struct hold_engine *e);
void due_add(struct hold_engine *e, enum due_kind kind, uint32_t number,
             uint64_t when_us, uint64_t tie);
/* The same while an image is read, when nothing is promised. HF_NOMEM. */
enum hf_status due_load(struct hold_engine *e, enum due_kind kind,
                        uint32_t number, uint64_t when_us, uint64_t tie);
/* Handles what is due, HOLD_STEP_MAX things at most. */
void due_sweep(struct hold_engine *e);

#endif
