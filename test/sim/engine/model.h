/* model.h - the engine once more, in the plainest way, to compare it with.
 *
 * Arrays in the order in which things came, searched from the front; what is
 * due next is found by looking at everything. Nothing here is fast or clever,
 * so that it can be seen to be right. The simulation gives the engine and this
 * model the same commands and compares all that both answer.
 *
 * Sizes are fixed: whoever drives the model keeps below MODEL_MAX of each.
 *
 * Threads: one thread at a time. Memory: aborts without any.
 */
#ifndef SIM_ENGINE_MODEL_H
#define SIM_ENGINE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "hold/engine.h"
#include "sim/engine/model_figures.h"

#define MODEL_MAX        4096u
#define MODEL_EVENTS_MAX 16384u

struct model_text {
    size_t len;
    char data[HOLD_NAME_MAX];
};

enum model_mode { MODEL_EXCLUSIVE, MODEL_SHARED, MODEL_COUNTING };

/* One name of a request or of a grant. */
struct model_want {
    uint32_t name; /* its place in `names` */
    enum model_mode mode;
    uint64_t permits; /* of a counting one */
    uint64_t of;
    uint64_t fence; /* of a shared grant */
};

/* What a LOCK or LOCKSET asks for. */
struct model_claim {
    uint64_t session; /* with the owner: the holder */
    struct model_text owner;
    struct model_text note;
    bool is_set;
    bool key;  /* made by SET */
    bool tree; /* on each of its names */
    bool barge;
    uint32_t priority;
    enum hold_policy policy;
    uint64_t ttl_ms; /* 0: none */
    uint64_t maxhold_ms;
    uint64_t delay_ms;
    size_t want_count;
    struct model_want *wants;
};

/* A lock or a set that is held; in the array by token. */
struct model_grant {
    struct model_claim claim;
    uint64_t token;
    uint64_t count;
    uint64_t acquired_us;
    uint64_t expires_us;
    bool sealed;      /* wounded, or revoked: it ends not later than it does */
    const char *seal; /* which of them, "" after an image */
    uint64_t sealed_at; /* the number of that event */
};

/* All waits for all names in one array, by `order`. */
struct model_wait {
    struct model_claim claim;
    uint64_t ticket;
    uint64_t order; /* the first ticket */
    uint64_t queued_us;
    uint64_t deadline_us;
    struct model_text request;
};

struct model_session {
    uint64_t id;
    uint64_t ttl_ms;
    uint64_t expires_us;
    uint64_t newest; /* number of its OPEN or KEEP */
    bool bound;
    bool ending; /* its end was told */
    struct model_text note;
};

/* What keeps a name closed, or done; 0: not. */
struct model_mark {
    uint32_t name;
    uint64_t seq;
    uint64_t delay_us;
    uint64_t tree_us; /* the names below, too; not after delay_us */
    uint64_t done_us;
    struct model_text result;
};

/* A name that is to be served. */
struct model_call {
    uint32_t name;
    bool turn; /* perhaps of the readers */
};

struct model_product {
    struct model_text sku;
    int64_t total;
    int64_t reserved;
    int64_t sold;
    uint64_t version;
    uint64_t updated_us;
    uint64_t ends_us; /* nothing of it that is reserved ends before */
    int64_t low;
    bool is_low; /* and that was told */
    int64_t limit;
    uint64_t since; /* the number from which on is counted, if it is: */
    bool counting;  /* of the limit; ends without one when nobody has any */
    size_t attribute_count;
    struct model_attribute {
        struct model_text name;
        struct model_text value;
    } attributes[HOLD_ATTRS_MAX]; /* in the order of setting */
};

enum model_status {
    MODEL_PENDING,
    MODEL_CONFIRMED,
    MODEL_CANCELLED,
    MODEL_EXPIRED,
};

struct model_item {
    struct model_text sku;
    uint64_t quantity;
};

struct model_reservation {
    struct model_text id;
    struct model_text owner;
    struct model_text reason;
    struct model_text group; /* empty: none */
    enum model_status status;
    uint64_t seq; /* that it was made with, or its first ticket */
    uint64_t created_us;
    uint64_t expires_us;
    uint64_t ended_us;
    uint64_t ended_order; /* counts up over all that ended; 0 if pending */
    uint64_t extends;     /* how often it was extended */
    uint64_t class;       /* 0: none */
    size_t item_count;
    struct model_item *items;
};

/* A request that waits for stock; all of them in one array, by `order`. */
struct model_buyer {
    struct model_text id; /* that its reservation will have */
    struct model_text owner;
    struct model_text request;
    struct model_text group;
    uint64_t ticket;
    uint64_t order; /* the first ticket */
    uint64_t queued_us;
    uint64_t deadline_us;
    uint64_t ttl_ms;
    uint64_t class; /* its number */
    uint32_t priority;
    bool joined; /* nobody is connected for it */
    size_t item_count;
    struct model_item *items;
};

/* Announced of a product; in the array by time, then by `seq`. */
struct model_arrival {
    struct model_text sku;
    struct model_text ref;
    uint64_t units;
    uint64_t at_us;
    uint64_t seq; /* that told it last */
    bool late;    /* which was told */
};

/* A reservation of what is to arrive; in the array in order of booking. */
struct model_booking {
    struct model_text id;
    struct model_text owner;
    struct model_item item;
    uint64_t seq;
    uint64_t created_us;
    uint64_t ttl_ms;
    uint64_t class;
};

/* Of reservations. */
struct model_class {
    struct model_text name;
    uint64_t number; /* no other ever had it */
    uint64_t ttl_ms;
    uint64_t grace_ms;
    uint64_t extends_max;
    uint64_t life_ms;
};

struct model_fence {
    struct model_text name;
    uint64_t newest;
};

struct model_request {
    struct model_text id;
    struct hf_buf record; /* without the time */
    bool waiting;         /* no answer yet */
    uint64_t stored_us;
    uint64_t stored_order; /* counts up over all that were answered */
    enum hold_code code;
    struct hf_buf body;
};

struct model_answer {
    uint64_t ticket;
    enum hold_code code;
    struct hf_buf body;
};

/* What happened to a name. Owners are kept up to so many bytes. */
#define MODEL_PAST       512u
#define MODEL_PAST_OWNER 45u
struct model_past {
    uint64_t seq; /* at that time */
    uint64_t now_us;
    uint64_t token;
    const char *what;
    const char *why;
    uint32_t name;
    enum model_mode mode;
    bool tree;
    size_t owner_len;
    size_t by_len;
    char owner[MODEL_PAST_OWNER];
    char by[MODEL_PAST_OWNER];
};

struct model_event {
    uint64_t seq;
    enum hold_event_kind kind;
    uint64_t lag_us;
    uint64_t age_us; /* HOLD_NO_AGE: nothing ended */
    uint64_t token;
    enum model_mode mode;
    struct model_text name;
    uint64_t facts; /* a hash of all else that is told: see model_facts() */
};

struct model {
    uint64_t now_us;
    uint64_t seq;
    struct hold_bounds bounds;
    bool old_waits; /* by the rules from before HOLD_SETTLED */
    uint64_t order; /* of what ended and what was stored */

    size_t name_count;
    size_t grant_count;
    size_t wait_count;
    size_t session_count;
    size_t mark_count;
    size_t call_count;
    size_t product_count;
    size_t reservation_count;
    size_t buyer_count;
    size_t hungry_count;
    size_t arrival_count;
    size_t booking_count;
    size_t fence_count;
    size_t request_count;
    size_t class_count;
    uint64_t class_last;
    struct model_text names[MODEL_MAX]; /* of all locks there ever were */
    struct model_grant grants[MODEL_MAX];
    struct model_wait waits[MODEL_MAX];
    struct model_session sessions[MODEL_MAX];
    struct model_mark marks[MODEL_MAX];
    struct model_call calls[MODEL_MAX];
    struct model_product products[MODEL_MAX];
    struct model_reservation reservations[MODEL_MAX];
    struct model_buyer buyers[MODEL_MAX];
    struct model_text hungry[MODEL_MAX]; /* products that are to be served */
    struct model_arrival arrivals[MODEL_MAX];
    struct model_booking bookings[MODEL_MAX];
    struct model_fence fences[MODEL_MAX];
    struct model_request requests[MODEL_MAX];
    struct model_class classes[MODEL_MAX];

    unsigned steps; /* of the sweep that is under way */
    bool grouping;  /* nobody is served before the group ends */
    uint64_t below; /* names below the TREEs of a command, or of a group */
    size_t ended_members; /* of groups of reservations, the same */

    /* What the last call gave. */
    enum hold_code code;
    struct hf_buf body;
    uint64_t ticket;
    size_t answer_count;
    struct model_answer answers[MODEL_MAX];
    size_t event_count;
    struct model_event events[MODEL_EVENTS_MAX];

    size_t past_count; /* the newest is the last; those before went */
    struct model_past past[MODEL_PAST];

    uint64_t dropped; /* refusals that made room, so far */
    uint64_t full;    /* requests that found no room */
    uint64_t figures[MODEL_FIGURE_COUNT];
};

/* What the model knows of a group of commands (`hold_operation.group`). A new
 * group brings its own file, with its state, and says MODEL_PART there. */
struct model_part {
    const char *group;
    void (*run)(struct model *model, const struct hold_command *command);
    void (*clear)(struct model *model); /* forgets everything */
    struct model_part *next;
};
void model_part_add(struct model_part *part);
#define MODEL_PART(group, run, clear)                             \
    static struct model_part model_part = {group, run, clear, 0}; \
    __attribute__((constructor)) static void add_model_part(void) \
    {                                                             \
        model_part_add(&model_part);                              \
    }                                                             \
    _Static_assert(1, "")

struct model *model_new(void);
void model_free(struct model *model);

/* Applies `command`, whose encoded form is `record`; HOLD_AGAIN: not yet. */
void model_apply(struct model *model, const struct hold_command *command,
                 struct hf_bytes record);
/* Answers every kind that needs no journal, but for the lists. False: time
 * must pass first; so it is for the lists if anything is over. */
bool model_ask(struct model *model, const struct hold_command *command);
/* The same, when nothing is to pass first. */
void model_answer_ask(struct model *model, const struct hold_command *command,
                      uint64_t now_us);
/* True if a lock, wait or reservation is over at `now_us`, but was not swept.
 */
bool model_is_behind(const struct model *model, uint64_t now_us);
/* When the next thing falls due, or UINT64_MAX. */
uint64_t model_next_due_us(const struct model *model);
/* The id that a reservation without one gets; `out` has 26 bytes. */
void model_make_id(char *out, uint64_t now_us, uint64_t seq);

/* For the parts of the model. */

/* The part of the model that knows the command does it. */
void model_run(struct model *model, const struct hold_command *command);
/* What the repetitions of a group share; `out` has HOLD_RECORD_MAX. */
size_t model_group_shared(const struct hold_command *command, char *out);
/* The body is the reply of a group, told again so much later. */
void model_group_retell(struct model *model, const struct hold_command *command,
                        uint64_t passed_ms);
/* The body is the reply of that command, told again: a grant or renewal may be
 * another's by now. */
void model_bound_safe(struct model *model, const struct hold_command *command);

struct model_text model_text(struct hf_bytes bytes);
bool model_is(const struct model_text *text, struct hf_bytes bytes);
struct hf_bytes model_bytes(const struct model_text *text);
/* Takes the next sequence number and tells of it. */
uint64_t model_event(struct model *model, enum hold_event_kind kind,
                     struct hf_bytes name, uint64_t lag_us);
/* What else there is to tell of the event just told. */
struct model_facts {
    struct hf_bytes owner;
    struct hf_bytes note;
    struct hf_bytes group;
    size_t item_count;
    const struct model_item *items;
    int64_t total;
    int64_t available;
};
void model_tell(struct model *model, const struct model_facts *facts);
/* A hash of parts, one after the other; 0 at first. */
uint64_t model_hash(uint64_t hash, const void *data, size_t len);
/* With the event just told ended what began then. */
void model_age(struct model *model, uint64_t since_us);
/* Empties the reply and sets its code; returns the body to write to. */
struct hf_buf *model_reply(struct model *model, enum hold_code code);
void model_overloaded(struct model *model, const char *name, uint64_t maximum);
/* Adds the answer to a waiter, stores it under its REQ and removes it. */
struct hf_buf *model_answer(struct model *model, enum hold_code code,
                            uint64_t ticket);
/* Makes what was written by model_answer() the answer of REQ `id`. */
void model_store_answer(struct model *model, struct hf_bytes id);
void model_store(struct model *model, struct model_request *request,
                 enum hold_code code, struct hf_bytes body);

struct model_request *model_find_request(struct model *model,
                                         struct hf_bytes id);
/* The one that is forgotten next, or NULL. */
struct model_request *model_oldest_request(struct model *model);
uint64_t model_stored_until(const struct model *model,
                            const struct model_request *request);
/* It was answered, and its time is over. */
bool model_request_over(const struct model *model,
                        const struct model_request *request);
void model_forget_request(struct model *model, struct model_request *request);
/* True if `command` carries a REQ that settles it without being done. `shared`
 * is what its repetitions share with it. */
bool model_answer_from_request(struct model *model,
                               const struct hold_command *command,
                               struct hf_bytes shared);
/* Remembers the reply just written. */
void model_remember_request(struct model *model, struct hf_bytes id,
                            struct hf_bytes shared);
/* A LOCK that is not done any more, because TIMEOUT was told. */
void model_remember_told(struct model *model, const struct hold_command *c,
                         struct hf_bytes shared);
/* Closes the gap that item `at` of an array leaves. */
void model_close_gap(void *array, size_t item_bytes, size_t *count, size_t at);

struct model_product *model_find_product(struct model *model,
                                         struct hf_bytes sku);
/* `all`: with its attributes. */
void model_write_product(const struct model *model, struct hf_buf *out,
                         const struct model_product *p, bool all);
/* Its units changed: tells if it has come to be low, or is not any more. */
void model_tell_level(struct model *model, struct model_product *product);

struct model_reservation *model_find_reservation(struct model *model,
                                                 struct hf_bytes id);
/* Its time is over. */
void model_reservation_due(struct model *model, void *reservation);
void model_settle_reservation(struct model *model, struct hf_bytes id);
void model_forget_reservation(struct model *model,
                              struct model_reservation *reservation);
/* So much of a product is set aside for it, which will end. */
void model_set_aside(struct model *model, struct model_product *product,
                     int64_t units, const struct model_reservation *r);
/* It ends earlier than before. */
void model_ends_earlier(struct model *model, const struct model_reservation *r);
/* Can nothing that is due change what is told of this command, or done? */
bool model_is_settled(struct model *model, const struct hold_command *c,
                      uint64_t now_us);
const char *model_status_name(enum model_status status);
/* A new one, with an event of that kind. */
struct model_reservation *model_add_reservation(struct model *model,
                                                const struct model_buyer *what,
                                                enum hold_event_kind kind);
/* `more` fields follow. */
void model_write_reservation(struct model *model, struct hf_buf *out,
                             const struct model_reservation *r, uint32_t more);
/* The one that was made with that event ends. */
void model_give_up_reservation(struct model *model, struct hf_bytes id,
                               uint64_t seq_made);
/* True if there is room for one more; the one that ended first makes it. */
bool model_make_room(struct model *model);

/* model_waitlist.c */
struct model_buyer *model_find_buyer(struct model *model, struct hf_bytes id);
struct model_buyer *model_find_buyer_ticket(struct model *model,
                                            uint64_t ticket);
/* How many wait for the product. */
size_t model_count_buyers(const struct model *model, struct hf_bytes sku);
/* Is there too little of an item for the command, which is not yet there? */
bool model_is_short(struct model *model, const struct hold_command *c,
                    struct hf_bytes sku, uint64_t quantity);
/* The command waits, under that id, if not too many do. */
void model_queue_buyer(struct model *model, struct hf_bytes id,
                       const struct hold_command *c);
/* The answer to a JOIN. */
void model_show_joined(struct model *model, const struct model_buyer *buyer);
void model_list_buyers(struct model *model, const struct hold_command *c,
                       uint64_t now_us);
/* RESERVE, and JOIN. */
void model_reserve(struct model *model, const struct hold_command *c);
/* Ends it: TIMEOUT; untold. */
void model_end_buyer(struct model *model, struct model_buyer *buyer);
void model_drop_buyer(struct model *model, struct model_buyer *buyer);
void model_buyer_due(struct model *model, void *buyer);
/* A server starts: nobody is connected. */
void model_restart_waitlist(struct model *model);
/* The product has units that were not there, or another one is first. */
void model_call_product(struct model *model, struct hf_bytes sku);
void model_serve_products(struct model *model);
/* Is there somebody who could be served? */
bool model_find_hungry(struct model *model);
/* model_choose.c */
uint64_t model_free_units(struct model *model, struct hf_bytes sku);
/* Is there too little of that item, or do others wait for it? */
bool model_lacks_item(struct model *model, const struct hold_command *c,
                      uint32_t i);
/* How many items are so, and a list of them. */
uint32_t model_count_short(struct model *model, const struct hold_command *c);
void model_write_list(struct model *model, struct hf_buf *out,
                      const struct hold_command *c, uint32_t count);
/* True if a product is missing, and if it is short of what it must have, with
 * the refusal written. */
bool model_lacks_product(struct model *model, const struct hold_command *c);
bool model_lacks_stock(struct model *model, const struct hold_command *c);
/* Is it what the command may have got? */
bool model_may_be_of(const struct model_reservation *r,
                     const struct hold_command *c);
bool model_must_wait(struct model *model, const struct hold_command *c);

/* model_places.c */
/* With PLACE: `out` is the command with the items that it gets. False, and the
 * refusal is written, if it gets none. */
bool model_choose_places(struct model *model, const struct hold_command *c,
                         struct hold_command *out);
/* Is it what the command may have got? */
bool model_may_be_placed(const struct model_reservation *r,
                         const struct hold_command *c);
void model_show_places(struct model *model, const struct hold_command *c);

/* model_stock.c: what changes the total, but serves nobody. */
void model_set_total(struct model *model, struct model_product *product,
                     int64_t total, const struct hold_command *c);

/* model_expect.c */
struct model_booking *model_find_booking(struct model *model,
                                         struct hf_bytes id);
bool model_is_booking_of(const struct model_booking *booking,
                         const struct hold_command *c);
/* Is something announced or booked of it? */
bool model_is_expected(const struct model *model, struct hf_bytes sku);
__int128 model_announced(const struct model *model, struct hf_bytes sku);
__int128 model_booked(const struct model *model, struct hf_bytes sku);
/* The command, which finds too little, books under that id, or is refused. */
void model_book(struct model *model, struct hf_bytes id,
                const struct hold_command *c);
void model_show_booked(struct model *model,
                       const struct model_booking *booking);
/* What RESERVATION shows of it. */
void model_show_booking(struct model *model,
                        const struct model_booking *booking);
void model_cancel_booking(struct model *model, struct model_booking *booking,
                          const struct hold_command *c);
/* The product goes. */
void model_forget_arrivals(struct model *model, struct hf_bytes sku);
void model_arrival_due(struct model *model, void *arrival);
void model_show_expected(struct model *model, const struct hold_command *c);
/* model_reserve.c: one that has ended. */
void model_show_reservation(struct model *model,
                            const struct model_reservation *r);

/* model_class.c */
struct model_class *model_find_class(struct model *model, struct hf_bytes name);
/* NULL: there is none of that number. */
const struct model_class *model_class_of(const struct model *model,
                                         uint64_t number);
/* The number of the class of that name; 0: there is none. */
uint64_t model_class_number(struct model *model, struct hf_bytes name);
/* Of a RESERVE, if it is made now. */
uint64_t model_ttl_ms(struct model *model, const struct hold_command *c);
/* The longest of all. */
uint64_t model_grace_ms(const struct model *model);
/* It has expired, and may still be confirmed. */
bool model_has_grace(struct model *model, const struct model_reservation *r,
                     uint64_t now_us);
/* True if it cannot be extended so, with the refusal written. */
bool model_meets_cap(struct model *model, const struct model_reservation *r,
                     const struct hold_command *c);
void model_write_class(struct hf_buf *out, const struct model_class *class);

#include "sim/engine/model_owners.h"

#endif
