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
    bool sealed; /* wounded, or revoked: it ends not later than it does */
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

/* How often something was reached, for `--figures`. */
#define MODEL_FIGURES(FIGURE)                                      \
    FIGURE(EXCLUSIVE, "grants, exclusive")                         \
    FIGURE(SHARED, "grants, shared")                               \
    FIGURE(COUNTING, "grants, counting")                           \
    FIGURE(SET, "grants, set")                                     \
    FIGURE(QUEUED, "grants to those who waited, single")           \
    FIGURE(QUEUED_SET, "grants to those who waited, set")          \
    FIGURE(BARGED, "grants that passed a queue")                   \
    FIGURE(REENTRY, "re-entries, single")                          \
    FIGURE(REENTRY_SET, "re-entries, set")                         \
    FIGURE(REENTRY_QUEUED, "re-entries of those who waited")       \
    FIGURE(TURN, "readers' turns")                                 \
    FIGURE(TURN_READERS, "readers who went before a writer")       \
    FIGURE(SHARED_PASSED, "readers who passed a set that waits")   \
    FIGURE(DOWNGRADED, "downgrades")                               \
    FIGURE(PRIORITY, "requests queued before others")              \
    FIGURE(EXPIRED, "grants expired")                              \
    FIGURE(EXPIRED_SET, "sets expired")                            \
    FIGURE(LOST, "grants lost with a session")                     \
    FIGURE(REVOKED, "grants revoked")                              \
    FIGURE(MAXHOLD, "ends moved forward by MAXHOLD")               \
    FIGURE(SEALED, "ends that could not be moved any more")        \
    FIGURE(CLOSED, "names closed by DELAY")                        \
    FIGURE(OPENED, "waits served when a delay ended")              \
    FIGURE(DONE, "names done")                                     \
    FIGURE(DONE_TOLD, "requests refused with DONE")                \
    FIGURE(DONE_WAITS, "waits answered with DONE")                 \
    FIGURE(TIMEOUT, "waits answered with TIMEOUT")                 \
    FIGURE(WAIT_LOST, "waits answered with LOST")                  \
    FIGURE(SESSION_EXPIRED, "sessions expired")                    \
    FIGURE(SESSION_CLOSED, "sessions closed")                      \
    FIGURE(SESSION_LEFT, "bound sessions left")                    \
    FIGURE(SESSION_PARTS, "parts ended with a session")            \
    FIGURE(SETTLED, "names settled on their own")                  \
    FIGURE(STATE_MODE, "STATE: held in another mode")              \
    FIGURE(STATE_MEMBER, "STATE: a member of a set")               \
    FIGURE(STATE_MAXIMUM, "STATE: another maximum")                \
    FIGURE(STATE_COUNT, "STATE: done, but held more than once")    \
    FIGURE(YOUNGER, "DEADLOCK, younger: a grant")                  \
    FIGURE(YOUNGER_WAIT, "DEADLOCK, younger: a wait")              \
    FIGURE(WOUND, "wounds, single")                                \
    FIGURE(WOUND_SET, "wounds, set")                               \
    FIGURE(CYCLE_2, "DEADLOCK, cycle of 2")                        \
    FIGURE(CYCLE_3, "DEADLOCK, cycle of 3")                        \
    FIGURE(CYCLE_4, "DEADLOCK, cycle of 4")                        \
    FIGURE(CYCLE_5, "DEADLOCK, cycle of 5")                        \
    FIGURE(CYCLE_6, "DEADLOCK, cycle of 6")                        \
    FIGURE(CYCLE_MORE, "DEADLOCK, longer cycle")                   \
    FIGURE(CYCLE_SET, "DEADLOCK, cycle through a set")             \
    FIGURE(CYCLE_SHARED, "DEADLOCK, cycle through a shared lock")  \
    FIGURE(CYCLE_COUNTING, "DEADLOCK, cycle through a counting")   \
    FIGURE(CYCLE_WAIT, "DEADLOCK, cycle through a place in queue") \
    FIGURE(CYCLE_BEHIND, "DEADLOCK, cycle closed by priority")     \
    FIGURE(CYCLE_TREE, "DEADLOCK, cycle through a related name")   \
    FIGURE(BUSY_WAITED, "BUSY by one who waits")                   \
    FIGURE(BUSY_CLOSED, "BUSY by DELAY")                           \
    FIGURE(TREE, "grants with TREE")                               \
    FIGURE(TREE_SHARED, "grants with TREE, shared")                \
    FIGURE(TREE_SET, "grants with TREE, set")                      \
    FIGURE(TREE_QUEUED, "grants with TREE to those who waited")    \
    FIGURE(TREE_REENTRY, "re-entries of a TREE without TREE")      \
    FIGURE(TREE_STATE, "STATE: held without TREE")                 \
    FIGURE(TREE_ABOVE, "BUSY by a TREE above")                     \
    FIGURE(TREE_BELOW, "BUSY by a name below")                     \
    FIGURE(TREE_WAITS, "requests that wait for a related name")    \
    FIGURE(TREE_YOUNGER, "DEADLOCK, younger: a related name")      \
    FIGURE(TREE_WOUND, "wounds at a related name")                 \
    FIGURE(TREE_CLOSED, "trees closed by DELAY")                   \
    FIGURE(TREE_FULL, "OVERLOADED: too many names below")          \
    FIGURE(KEY, "keys set")                                        \
    FIGURE(KEY_REPLACED, "keys taken over by another value")       \
    FIGURE(KEY_OVER, "keys set for a time that is over")           \
    FIGURE(KEY_RENEWED, "keys renewed")                            \
    FIGURE(KEY_DELETED, "keys deleted")                            \
    FIGURE(GROUP, "groups")                                        \
    FIGURE(ABORT, "groups that were refused")                      \
    FIGURE(NOT_STUCK, "paths back that are no deadlock")           \
    FIGURE(SEARCHED, "requests searched for cycles")

#define MODEL_FIGURE_OF(figure, text) FIGURE_##figure,
enum model_figure { MODEL_FIGURES(MODEL_FIGURE_OF) MODEL_FIGURE_COUNT };
#undef MODEL_FIGURE_OF

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
    uint64_t token;
    enum model_mode mode;
    struct model_text name;
    uint64_t facts; /* a hash of all else that is told: see model_facts() */
};

struct model {
    uint64_t now_us;
    uint64_t seq;
    struct hold_bounds bounds;
    uint64_t order; /* of what ended and what was stored */

    size_t name_count;
    size_t grant_count;
    size_t wait_count;
    size_t session_count;
    size_t mark_count;
    size_t call_count;
    size_t product_count;
    size_t reservation_count;
    size_t fence_count;
    size_t request_count;
    struct model_text names[MODEL_MAX]; /* of all locks there ever were */
    struct model_grant grants[MODEL_MAX];
    struct model_wait waits[MODEL_MAX];
    struct model_session sessions[MODEL_MAX];
    struct model_mark marks[MODEL_MAX];
    struct model_call calls[MODEL_MAX];
    struct model_product products[MODEL_MAX];
    struct model_reservation reservations[MODEL_MAX];
    struct model_fence fences[MODEL_MAX];
    struct model_request requests[MODEL_MAX];

    unsigned steps; /* of the sweep that is under way */
    bool grouping;  /* nobody is served before the group ends */
    uint64_t below; /* names below the TREEs of a command, or of a group */

    /* What the last call gave. */
    enum hold_code code;
    struct hf_buf body;
    uint64_t ticket;
    size_t answer_count;
    struct model_answer answers[MODEL_MAX];
    size_t event_count;
    struct model_event events[MODEL_EVENTS_MAX];

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
void model_write_product(struct hf_buf *out, const struct model_product *p);

struct model_reservation *model_find_reservation(struct model *model,
                                                 struct hf_bytes id);
/* Its time is over. */
void model_reservation_due(struct model *model, void *reservation);
void model_settle_reservation(struct model *model, struct hf_bytes id);
void model_forget_reservation(struct model *model,
                              struct model_reservation *reservation);
const char *model_status_name(enum model_status status);

#endif
