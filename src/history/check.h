/* check.h - what the parts of the checker share.
 *
 * Everything is said in positions: the index of an event in the history. Since
 * time never goes back, "before the instant t" is "before the first event at t
 * or later", so that instants become positions as well and every question is
 * a comparison of two numbers.
 *
 *   position    0 1 2 3 4 5 6 7 8 ...           `end`: behind all events
 *   a call          lo ........ hi              took effect in between
 *
 *   a.hi < b.lo          a was surely before b
 *   a.lo <= b.hi         a was possibly before b
 *
 * `lo` is the call, or its arrival where the network knows; `hi` is the
 * answer, or when it was sent; without an answer the end of the server's run.
 *
 * What a call did is `sure` (it did it, and no other call with the same REQ
 * counts for it) or it `may` have.
 */
#ifndef HISTORY_CHECK_H
#define HISTORY_CHECK_H

#include <setjmp.h>

#include "history/record.h"
#include "resp/resp.h"

#define CHECK_NEVER UINT32_MAX
#define US_PER_MS   1000u

/* Times in a reply are rounded down, and aged by what it took to make it. */
#define CHECK_ROUNDED_US 3000u

enum verb {
    VERB_OTHER,
    VERB_LOCK,
    VERB_UNLOCK,
    VERB_RENEW,
    VERB_LOCKS,
    VERB_LOCKINFO,
    VERB_FENCE,
    VERB_LOCKSET,
    VERB_UNLOCKSET,
    VERB_RENEWSET,
    VERB_DOWNGRADE,
    VERB_HELD,
    VERB_PROCLAIM,
    VERB_LEADER,
    VERB_REVOKE,
    VERB_SESSION_OPEN,
    VERB_SESSION_KEEP,
    VERB_SESSION_CLOSE,
    VERB_SESSION_INFO,
    VERB_SESSION_LIST,
    VERB_STOCK_SET,
    VERB_STOCK_ADD,
    VERB_STOCK_GET,
    VERB_STOCK_LIST,
    VERB_STOCK_PLACES,
    VERB_STOCK_EXPECT,
    VERB_STOCK_EXPECTED,
    VERB_STOCK_DEL,
    VERB_STOCK_LOW,
    VERB_STOCK_ATTR,
    VERB_STOCK_LIMIT,
    VERB_RESERVE,
    VERB_CONFIRM,
    VERB_CANCEL,
    VERB_EXTEND,
    VERB_RESERVATION,
    VERB_CLASS_SET,
    VERB_LIMIT,
    VERB_FLUSHALL,
    VERB_EXEC,
    VERB_KEY,      /* what may change a key */
    VERB_STOCK_AT, /* also as STOCK GET sku AT number */
    VERB_JOIN,     /* of a waitlist, as the next */
    VERB_LEAVE,
    VERB_GROUP_CONFIRM, /* of reservations */
    VERB_GROUP_CANCEL,
};

/* How a lock is held; MODE_NONE: it is not known. */
enum mode { MODE_NONE, MODE_EXCLUSIVE, MODE_SHARED, MODE_COUNTING };
#define MODES 4

/* What a LOCK or LOCKSET says besides, and other calls in part. */
struct terms {
    enum mode mode; /* of a LOCK */
    uint32_t permits;
    uint32_t maximum;
    uint64_t session; /* 0: none; CHECK_UNKNOWN: which one is not known */
    uint64_t maxhold_ms;
    uint64_t delay_ms;
    uint64_t priority;
    uint64_t done_ms;
    uint64_t grace_ms;
    struct hf_bytes result;
    struct hf_bytes note;   /* or VALUE */
    struct hf_bytes bundle; /* GROUP of a reservation */
    bool together;          /* of that group, which surely ended */
    bool own_session;       /* SESSION 0 */
    bool forever;
    bool barge;
    bool bind;
    bool tree;
    bool best;
    bool books;   /* PREORDER */
    bool placed;  /* from places: its items are all that they may be */
    bool split;   /* perhaps from several */
    bool any_ttl; /* by a class, of which nothing is known */
    bool done;
    bool wounds; /* WOUNDWAIT */
    bool aged;   /* or WAITDIE: its place is by the age of its session */
};
#define CHECK_UNKNOWN UINT64_MAX
/* As a TTL: it ends with its session only. */
#define CHECK_NO_END_MS (UINT64_MAX - 1)

enum outcome {
    OUTCOME_UNKNOWN, /* no answer, or one that does not say */
    OUTCOME_DONE,
    OUTCOME_REFUSED,
};

/* MULTI to EXEC: calls that happen at one instant, in their order. */
struct group {
    struct call *exec;
    struct call **members;
    uint32_t count;
    uint32_t position;    /* of the member that refused it, from 1; or 0 */
    struct hf_bytes code; /* that member's refusal */
};

struct call {
    const struct hf_bytes *words;
    uint32_t word_count;
    enum verb verb;
    struct hf_bytes name; /* lock, resource, sku, id, key, pattern */
    struct hf_bytes owner;
    struct hf_bytes request;
    struct hf_bytes reply; /* empty: none */
    struct hf_bytes code;  /* of an error: its first word */
    uint64_t id;
    uint64_t token; /* or the version that IF says, plus 1; 0: none */
    uint64_t ttl_ms;
    uint64_t wait_ms;
    uint64_t call_us;
    uint64_t told_us; /* times in the reply surely count from then on */
    int64_t amount;
    struct terms terms;
    struct group *group; /* of a member and of its EXEC; NULL: none */
    uint32_t client;
    uint32_t call_at;
    uint32_t answer_at; /* or CHECK_NEVER */
    uint32_t arrived_at;
    uint32_t sent_at;
    uint32_t lo;
    uint32_t hi;
    uint32_t first; /* the lowest `lo` of the calls with its REQ */
    uint32_t run_end;
    bool doubtful; /* its run ended in a crash or with a broken journal */
    bool broken;   /* with a broken journal */
    bool alone;    /* all before it on its connection was answered before */
    bool clashes;  /* its REQ was used with other words, too */
    enum outcome outcome;
    bool sure;
    bool may;
};

struct window {
    uint32_t lo;
    uint32_t hi;
    bool sure;
    uint64_t id; /* of the call */
};

/* The end of a client's connection. */
struct gone {
    uint32_t client;
    uint32_t at;
    bool told; /* to the server; else the client saw it, or made it */
};

/* What everything that is sorted begins with: by name, then by the numbers. */
struct key {
    struct hf_bytes name;
    uint64_t by[3];
};

/* Something that is sorted by what is no part of it. */
struct ref {
    struct key key;
    const void *thing;
};

/* A token or a version: numbers that the server gives in order, all from one
 * counter. The key is the number. */
struct number {
    struct key key;
    uint32_t lo; /* given after this */
    uint32_t hi; /* known from then on */
    uint64_t id;
};

/* An array that grows. */
struct list {
    void *data;
    size_t count;
    size_t cap;
};

struct check {
    jmp_buf no_memory;
    struct block *blocks; /* all memory of the check */
    const struct history *history;
    struct history_opts opts;
    struct history_report *report;
    struct call *calls;
    size_t count;
    struct window *flushes;
    size_t flush_count;
    uint32_t *starts;
    size_t start_count;
    struct list groups;   /* of struct group * */
    struct list sights;   /* of struct sight: what was seen of groups */
    struct list numbers;  /* of struct number */
    struct list gone;     /* of struct gone */
    struct list failed;   /* of uint32_t: batches that were written after all */
    struct list listings; /* of const struct call *: those that are whole */
    struct list deletes;  /* of const struct call *: FENCE DEL */
    struct list facts;    /* of struct fact */
    struct list sessions; /* of struct session, by id */
    struct list closes;   /* of const struct call *: SESSION CLOSE */
    struct list wounds;   /* of const struct call *: WOUNDWAIT */
    struct list presences; /* of struct presence */
    struct list branches;  /* of struct branch, if there is a TREE */
    struct list mentions;  /* of struct mention */
    struct list bookings;  /* of struct booking */
    struct list shares;    /* of struct share */
    size_t share_next;     /* those before are of products that were judged */
    struct list notes;     /* of struct note */
    struct list queued;    /* of struct queued: who may wait for stock */
    struct list turns;     /* of struct turn: who booked */
    uint32_t dated_at;     /* the first time the date was set */
    uint32_t end;
    bool closed;       /* the server was empty and had no other clients */
    bool trees;        /* somebody asked for a TREE */
    bool keys;         /* somebody may have made a key */
    uint64_t grace_us; /* in which somebody may confirm late, at most */
    bool anonymous; /* a RESERVE * without an answer may have made something */
};

/* Adds a violation; ids may be 0. */
void check_found(struct check *c, const char *rule, uint64_t id, uint64_t other,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The instant of an event; UINT64_MAX at the end. */
uint64_t check_us(const struct check *c, uint32_t at);
/* How many of the items are below `bound`. They have `bytes` bytes each and
 * are sorted by a uint32_t, `field` bytes behind their beginning. */
size_t check_below(const void *items, size_t count, size_t bytes, size_t field,
                   uint64_t bound);
/* How many calls were made up to there. */
size_t check_calls_until(const struct check *c, uint32_t at);
/* The first start behind `at`: its place in c->starts. */
size_t check_next_start(const struct check *c, uint32_t at);
/* Something was promised at `from` until that instant: the position up to
 * which it surely holds, though the server may have started meanwhile. */
uint32_t check_until(const struct check *c, uint32_t from, uint64_t until_us);
/* The same as an instant, for one who looks at `at`; 0: nothing is sure. */
uint64_t check_kept_us(const struct check *c, uint32_t from, uint32_t at,
                       uint64_t until_us);
/* The last position at which that instant is not past. */
uint32_t check_last(const struct check *c, uint64_t us);
/* Something lasts so long from `at` on at the latest: the instant when it is
 * surely over, or UINT64_MAX. */
uint64_t check_over_us(const struct check *c, uint32_t at, uint64_t ttl_ms);
/* May everything have been flushed between the two? */
bool check_flushed(const struct check *c, uint32_t lo, uint32_t hi);
/* The first position from `at` on where a flush may begin. */
uint32_t check_next_flush(const struct check *c, uint32_t at);

/* When the server was told that the client's connection had ended, or with
 * `seen` also when the client saw it; CHECK_NEVER if that is not known. */
uint32_t check_gone(const struct check *c, uint32_t client, bool seen);
/* When the reply went out, as well as that is known; or CHECK_NEVER. */
static inline uint32_t check_told(const struct call *call)
{
    return call->sent_at < call->answer_at ? call->sent_at : call->answer_at;
}

/* Zeroed memory that is freed with the check. Without memory the check ends
 * then and there with HF_NOMEM: no caller sees a NULL. */
void *check_alloc(struct check *c, size_t bytes);
/* Room for one more element, zeroed. */
void *check_push(struct check *c, struct list *list, size_t size);
void check_refer(struct check *c, struct list *refs, struct hf_bytes name,
                 uint64_t number, const void *thing);
void check_number_given(struct check *c, uint64_t number, uint32_t lo,
                        uint32_t hi, uint64_t id);

/* Sorts a list whose elements begin with their key. */
void check_sort(struct list *list, size_t size);
/* The same, and then judges all elements with the same name at once. */
void check_groups(struct check *c, struct list *list, size_t size,
                  void (*judge)(struct check *c, void *items, size_t count));
/* The last of the sorted refs with a number below `bound`; NULL: none. */
const struct ref *check_last_below(const struct list *refs, uint64_t bound);

/* The text of a reply's field; false if it has none. */
bool check_text(struct hf_bytes reply, const char *field, struct hf_bytes *out);
bool check_code(const struct call *call, const char *code);
/* Refused because a product is not at the version that IF says. */
bool check_is_clash(const struct call *call);
/* May it wait for a lock? */
static inline bool check_waits(const struct call *call)
{
    return call->wait_ms > 0 || call->terms.forever;
}
/* May what it was told be of an earlier moment? */
static inline bool check_repeats(const struct call *call)
{
    return (call->group != NULL ? call->group->exec : call)->request.len > 0;
}
/* The text between two marks in the reply. */
bool check_between(struct hf_bytes reply, const char *before,
                   const char *behind, struct hf_bytes *out);
/* For sorting: by length and bytes. */
int check_compare(struct hf_bytes a, struct hf_bytes b);
/* For messages: the bytes as `%.*s` wants them. */
#define SHOW(bytes) (int)((bytes).len > 64 ? 64 : (bytes).len), (bytes).data

/* check_expected.c */
/* Is a RESERVE with PREORDER booked? */
bool check_is_booked(const struct call *call);
/* An ARRIVE, which is an ADD otherwise: those who booked get theirs with it. */
bool check_is_arrival(const struct call *call);
void check_expected(struct check *c);
/* check_places.c */
/* A RESERVE with PLACE becomes one of ITEM sku@place for each of them. */
void places_expand(struct check *c, struct call *call);
/* Does what it shows it got add up to what it asked for? */
bool places_add_up(const struct call *reserve);
/* STOCK PLACES: the sums are those over the places. */
void places_judge_sums(struct check *c, const struct call *call);

/* Understands the words and the reply of each call. */
void check_parse(struct check *c, struct call *call);

/* LOCKS or STOCK LIST that showed all there is of a pattern, in one page, and
 * so must show what was there all the time. */
bool check_is_whole(const struct call *call);
/* Is the name one that it must show? */
bool check_lists(const struct call *call, struct hf_bytes name);

/* Walks the items of a RESERVE's words, or the maps of a reply's list.
 * `*at` starts at 0. */
bool check_item(const struct call *call, size_t *at, struct hf_bytes *sku,
                int64_t *quantity);
/* How many of the item just read will do; `at` as it was left. */
int64_t check_item_least(const struct call *call, size_t at, int64_t quantity);
/* The same of the names of a LOCKSET. */
bool check_member(const struct call *call, size_t *at, struct hf_bytes *name,
                  enum mode *mode);
struct reply_list {
    struct hf_bytes reply;
    size_t at;
    int64_t left;
};
/* The list in the reply's `field`; field NULL: the reply is the list. */
bool check_list(struct hf_bytes reply, const char *field,
                struct reply_list *out);
/* The next entry as bytes of its own (a map, or a null). */
bool check_list_next(struct reply_list *list, struct hf_bytes *out);

/* Calls from MULTI to EXEC become members, with the window, the outcome and the
 * part of the reply that EXEC gives them. Those that were not carried out, and
 * could not be, say nothing. */
void check_join(struct check *c);
/* Did the engine refuse the group, and not what comes before it? */
bool check_is_aborted(const struct call *exec);
/* `by` shows that the call, if it is a member of a group, was carried out, or
 * was not yet. */
void check_seen(struct check *c, const struct call *member,
                const struct call *by, bool seen);

/* The subjects, one file each. Requests come first: they decide which calls
 * are sure; members follow their EXEC. */
void check_requests(struct check *c);
void check_members(struct check *c);
void check_sessions(struct check *c);
void check_locks(struct check *c);
void check_deadlocks(struct check *c);
void check_done(struct check *c);
void check_leaders(struct check *c);
void check_reservations(struct check *c);
/* Who waits for stock; before check_stock(). */
void check_buyers(struct check *c);
void check_stock(struct check *c);
/* Numbers of products, by their versions. */
void check_past(struct check *c);
void check_fences(struct check *c);
/* Keys of Redis; after check_locks(). */
void check_keys(struct check *c);
void check_limits(struct check *c);
void check_answers(struct check *c);
void check_steps(struct check *c);
/* After all others: what they found to be given. */
void check_numbers(struct check *c);

#endif
