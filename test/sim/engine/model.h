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

#define MODEL_MAX 4096u

struct model_text {
    size_t len;
    char data[HOLD_NAME_MAX];
};

struct model_lock {
    struct model_text name;
    struct model_text owner;
    uint64_t token;
    uint64_t acquired_us;
    uint64_t expires_us;
    uint64_t count;
};

/* All waiters of all locks in one array; the queue of a lock is those that
 * name it, from the front. */
struct model_waiter {
    struct model_text lock;
    struct model_text owner;
    struct model_text request;
    uint64_t ticket;
    uint64_t ttl_ms;
    uint64_t queued_us;
    uint64_t deadline_us;
};

struct model_product {
    struct model_text sku;
    int64_t total;
    int64_t reserved;
    int64_t sold;
    uint64_t version;
    uint64_t updated_us;
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
    enum model_status status;
    uint64_t seq; /* that it was made with */
    uint64_t created_us;
    uint64_t expires_us;
    uint64_t ended_us;
    uint64_t ended_order; /* counts up over all that ended; 0 if pending */
    size_t item_count;
    struct model_item *items;
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

struct model_event {
    uint64_t seq;
    enum hold_event_kind kind;
    uint64_t lag_us;
    uint64_t age_us; /* HOLD_NO_AGE: nothing ended */
    struct model_text name;
};

struct model {
    uint64_t now_us;
    uint64_t seq;
    struct hold_bounds bounds;
    uint64_t order; /* of what ended and what was stored */

    size_t lock_count;
    size_t waiter_count;
    size_t product_count;
    size_t reservation_count;
    size_t fence_count;
    size_t request_count;
    struct model_lock locks[MODEL_MAX];
    struct model_waiter waiters[MODEL_MAX];
    struct model_product products[MODEL_MAX];
    struct model_reservation reservations[MODEL_MAX];
    struct model_fence fences[MODEL_MAX];
    struct model_request requests[MODEL_MAX];

    /* What the last call gave. */
    enum hold_code code;
    struct hf_buf body;
    uint64_t ticket;
    size_t answer_count;
    struct model_answer answers[MODEL_MAX];
    size_t event_count;
    struct model_event events[MODEL_MAX];

    uint64_t dropped; /* refusals that made room, so far */
    uint64_t full;    /* requests that found no room */
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
/* True if a lock, wait or reservation is over at `now_us`, but was not swept.
 */
bool model_is_behind(const struct model *model, uint64_t now_us);
/* When the next thing falls due, or UINT64_MAX. */
uint64_t model_next_due_us(const struct model *model);
/* The id that a reservation without one gets; `out` has 26 bytes. */
void model_make_id(char *out, uint64_t now_us, uint64_t seq);

/* For the parts of the model. */

struct model_text model_text(struct hf_bytes bytes);
bool model_is(const struct model_text *text, struct hf_bytes bytes);
struct hf_bytes model_bytes(const struct model_text *text);
/* Takes the next sequence number and tells of it. */
uint64_t model_event(struct model *model, enum hold_event_kind kind,
                     struct hf_bytes name, uint64_t lag_us);
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

struct model_lock *model_find_lock(struct model *model, struct hf_bytes name);
size_t model_waiting(const struct model *model, struct hf_bytes name);
/* Gives a hold back whose holder is gone; the reply is of no account. */
void model_abandon_lock(struct model *model, const struct hold_command *c);
/* Ends the hold of an expired lock and passes it on. */
void model_expire_lock(struct model *model, struct model_lock *lock);
/* More may be due than one sweep takes: this one is looked at on its own. */
void model_settle_lock(struct model *model, struct hf_bytes name);
void model_time_out(struct model *model, struct model_waiter *waiter);

struct model_product *model_find_product(struct model *model,
                                         struct hf_bytes sku);
void model_write_product(struct hf_buf *out, const struct model_product *p);

struct model_reservation *model_find_reservation(struct model *model,
                                                 struct hf_bytes id);
void model_expire_reservation(struct model *model,
                              struct model_reservation *reservation);
void model_settle_reservation(struct model *model, struct hf_bytes id);
void model_forget_reservation(struct model *model,
                              struct model_reservation *reservation);
const char *model_status_name(enum model_status status);

#endif
