/* reply.h - what the engine answers: a code and a value.
 *
 * A value is a small tree written as bytes: numbers, texts, lists, and maps
 * whose keys are fields from one list. The server turns it into its protocol;
 * the engine keeps it, as it is, to answer a repeated request.
 *
 *   number  N  8 bytes
 *   text    T  2 bytes length, bytes
 *   null    0
 *   OK      K  of a command in a group that has nothing else to tell
 *   list    L  4 bytes count, then so many values
 *   map     M  4 bytes count, then so many times: 1 byte field, value
 *   texts   D  4 bytes count, then so many times two texts: a map whose keys
 * are the users' own
 *
 * For HOLD_OK the value is the answer; for a refusal it is a map with the
 * facts. Little endian.
 */
#ifndef HOLD_REPLY_H
#define HOLD_REPLY_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/little.h"

/* How it ended: the code, and its name as clients see it. The engine gives
 * those up to QUOTA, only a server the others. */
#define HOLD_CODES(CODE)                                                       \
    CODE(OK, "OK")                                                             \
    CODE(WAITING, "WAITING")   /* no answer yet: it comes under the ticket */  \
    CODE(BUSY, "BUSY")         /* held by another */                           \
    CODE(TIMED_OUT, "TIMEOUT") /* waited in vain */                            \
    CODE(NOTHELD, "NOTHELD")   /* not held with this token */                  \
    CODE(LOST, "LOST")         /* the hold to be renewed is gone */            \
    CODE(STALE, "STALE")       /* a newer token was seen */                    \
    CODE(SHORT, "SHORT")       /* not enough stock */                          \
    CODE(STATE, "STATE")       /* not possible in this state */                \
    CODE(EXPIRED, "EXPIRED")   /* the reservation's time is over */            \
    CODE(NOTFOUND, "NOTFOUND") /* no such product or reservation */            \
    CODE(CONFLICT, "CONFLICT") /* the same id with other arguments, or another \
                                * version */                                   \
    CODE(OVERLOADED, "OVERLOADED") /* a named limit is reached */              \
    CODE(MOVED, "CONFLICT")        /* a newer connection asked the same REQ */ \
    CODE(AGAIN, "AGAIN")       /* not done yet: apply the same record again */ \
    CODE(BADARG, "BADARG")     /* a token above every number given */          \
    CODE(DEADLOCK, "DEADLOCK") /* waiting would close a circle */              \
    CODE(DONE, "DONE")         /* the work of this lock was done */            \
    CODE(ABORTED, "EXECABORT") /* a command of a group was refused */          \
    CODE(WRONGTYPE, "WRONGTYPE") /* a lock that is no key of SET */            \
    CODE(QUOTA, "QUOTA")         /* more than one owner may have */            \
    CODE(ERR, "ERR")             /* not a request, or of no command */         \
    CODE(NOPERM, "NOPERM")       /* not from there */                          \
    CODE(NOPROTO, "NOPROTO")     /* no such protocol */                        \
    CODE(NOSCRIPT, "NOSCRIPT")   /* not a script that is known */              \
    CODE(JOURNAL, "JOURNAL")     /* the log has failed */

#define HOLD_CODE_OF(code, name) HOLD_##code,
enum hold_code {
    HOLD_CODES(HOLD_CODE_OF) HOLD_ALL_CODES,
    HOLD_CODE_COUNT = HOLD_QUOTA + 1 /* of those that the engine gives */
};
#undef HOLD_CODE_OF

/* Fields of answers, and their names as clients see them. New ones come at the
 * end, for kept answers name them by number. */
#define HOLD_FIELDS(FIELD)                   \
    FIELD(ALLOWED, "allowed")                \
    FIELD(AVAILABLE, "available")            \
    FIELD(COUNT, "count")                    \
    FIELD(CREATED_MS, "created_ms")          \
    FIELD(CURSOR, "cursor")                  \
    FIELD(ENDED_MS, "ended_ms")              \
    FIELD(EXPIRES_MS, "expires_ms")          \
    FIELD(HELD_MS, "held_ms")                \
    FIELD(ID, "id")                          \
    FIELD(ITEMS, "items")                    \
    FIELD(LIMIT, "limit")                    \
    FIELD(LOCKS, "locks")                    \
    FIELD(MAXIMUM, "maximum")                \
    FIELD(NAME, "name")                      \
    FIELD(NEWEST, "newest")                  \
    FIELD(OWNER, "owner")                    \
    FIELD(PRODUCTS, "products")              \
    FIELD(QUANTITY, "quantity")              \
    FIELD(REASON, "reason")                  \
    FIELD(REMAINING, "remaining")            \
    FIELD(REQUESTED, "requested")            \
    FIELD(RESERVED, "reserved")              \
    FIELD(RESET_MS, "reset_ms")              \
    FIELD(RETRY_MS, "retry_ms")              \
    FIELD(SAFE_MS, "safe_ms")                \
    FIELD(SKU, "sku")                        \
    FIELD(SOLD, "sold")                      \
    FIELD(STATUS, "status")                  \
    FIELD(TOKEN, "token")                    \
    FIELD(TOTAL, "total")                    \
    FIELD(UPDATED_MS, "updated_ms")          \
    FIELD(VERSION, "version")                \
    FIELD(WAITED_MS, "waited_ms")            \
    FIELD(WAITING, "waiting")                \
    FIELD(POLICY, "policy")                  \
    FIELD(SHADOW, "shadow")                  \
    FIELD(TAKEN, "taken")                    \
    FIELD(HOLD, "hold")                      \
    FIELD(HEADER_POLICY, "ratelimit_policy") \
    FIELD(HEADER, "ratelimit")               \
    FIELD(RESOURCE, "resource")              \
    FIELD(FENCE, "fence")                    \
    FIELD(SESSION, "session")                \
    FIELD(SESSIONS, "sessions")              \
    FIELD(MODE, "mode")                      \
    FIELD(POSITION, "position")              \
    FIELD(NOTE, "note")                      \
    FIELD(CYCLE, "cycle")                    \
    FIELD(LENGTH, "length")                  \
    FIELD(SINCE_MS, "since_ms")              \
    FIELD(TTL_MS, "ttl_ms")                  \
    FIELD(RESULT, "result")                  \
    FIELD(BOUND, "bound")                    \
    FIELD(WAITS, "waits")                    \
    FIELD(PERMITS, "permits")                \
    FIELD(HOLDERS, "holders")                \
    FIELD(WAITERS, "waiters")                \
    FIELD(PRIORITY, "priority")              \
    FIELD(NAMES, "names")                    \
    FIELD(VALUE, "value")                    \
    FIELD(WHAT, "what")                      \
    FIELD(SEQ, "seq")                        \
    FIELD(AGE_MS, "age_ms")                  \
    FIELD(EDGES, "edges")                    \
    FIELD(BY, "by")                          \
    FIELD(HOLDER, "holder")                  \
    FIELD(TREE, "tree")                      \
    FIELD(RELATED, "related")                \
    FIELD(LOW, "low")                        \
    FIELD(ATTRIBUTES, "attributes")          \
    FIELD(FAILED, "failed")                  \
    FIELD(CONNECTED, "connected")            \
    FIELD(CLASS, "class")                    \
    FIELD(CLASSES, "classes")                \
    FIELD(GRACE_MS, "grace_ms")              \
    FIELD(EXTENDS, "extends")                \
    FIELD(LIFE_MS, "life_ms")                \
    FIELD(PLACE, "place")                    \
    FIELD(PLACES, "places")                  \
    FIELD(HAS, "has")                        \
    FIELD(GROUP, "group")                    \
    FIELD(RESERVATIONS, "reservations")      \
    FIELD(EXPECTED, "expected")              \
    FIELD(BOOKED, "booked")                  \
    FIELD(UNCOVERED, "uncovered")            \
    FIELD(EXPECTED_MS, "expected_ms")        \
    FIELD(ANNOUNCED, "announced")            \
    FIELD(SERVED, "served")                  \
    FIELD(ARRIVALS, "arrivals")              \
    FIELD(BOOKINGS, "bookings")              \
    FIELD(REF, "ref")                        \
    FIELD(LATE, "late")                      \
    FIELD(WHY, "why")

#define HOLD_FIELD_OF(field, name) FIELD_##field,
enum hold_field { HOLD_FIELDS(HOLD_FIELD_OF) HOLD_FIELD_COUNT };
#undef HOLD_FIELD_OF

/* The field's name as clients see it, in lower case. */
const char *hold_field_name(enum hold_field field);
/* The code's name as clients see it, in upper case. */
const char *hold_code_name(enum hold_code code);

/* Writing: the buffer has its capacity from the start; writing beyond it is a
 * mistake of the engine and asserted. */
void reply_number(struct hf_buf *out, int64_t number);
void reply_text(struct hf_buf *out, struct hf_bytes text);
void reply_null(struct hf_buf *out);
void reply_ok(struct hf_buf *out);
void reply_list(struct hf_buf *out, uint32_t count);
void reply_map(struct hf_buf *out, uint32_t count);
/* A map of texts: so many pairs of texts follow. */
void reply_texts(struct hf_buf *out, uint32_t count);
void reply_field_number(struct hf_buf *out, enum hold_field field,
                        int64_t number);
void reply_field_text(struct hf_buf *out, enum hold_field field,
                      struct hf_bytes text);
/* A map's key; its value follows. */
void reply_field(struct hf_buf *out, enum hold_field field);

/* Reading, for the server: one node at a time. */
enum reply_kind {
    REPLY_NUMBER = 'N',
    REPLY_TEXT = 'T',
    REPLY_NULL = '0',
    REPLY_OK = 'K',
    REPLY_LIST = 'L',  /* `count` values follow */
    REPLY_MAP = 'M',   /* `count` times a field and a value follow */
    REPLY_TEXTS = 'D', /* `count` times two texts follow */
};

struct reply_node {
    enum reply_kind kind;
    int64_t number;
    uint32_t count;
    struct hf_bytes text;
};

/* The node at `*at`, which moves behind it. The bytes are the engine's own. */
static inline struct reply_node reply_next(struct hf_bytes body, size_t *at)
{
    assert(*at < body.len);
    struct reply_node node = {.kind = (enum reply_kind)body.data[*at]};
    const char *place = body.data + *at + 1;

    switch (node.kind) {
    case REPLY_NUMBER:
        node.number = (int64_t)hf_get_u64(place);
        *at += 9;
        break;
    case REPLY_TEXT:
        node.text = hf_bytes(place + 2, hf_get_u16(place));
        *at += 3 + node.text.len;
        break;
    case REPLY_LIST:
    case REPLY_MAP:
    case REPLY_TEXTS:
        node.count = hf_get_u32(place);
        *at += 5;
        break;
    default:
        assert(node.kind == REPLY_NULL || node.kind == REPLY_OK);
        *at += 1;
        break;
    }
    assert(*at <= body.len);
    return node;
}

static inline enum hold_field reply_next_field(struct hf_bytes body, size_t *at)
{
    assert(*at < body.len);
    return (enum hold_field)(unsigned char)body.data[(*at)++];
}

/* Goes behind the value at `*at`. */
void reply_skip(struct hf_bytes body, size_t *at);

/* Counts the remaining times of a map (safe_ms, expires_ms) on by so many
 * milliseconds, down to 0: an answer that is told again, later. */
void reply_age(struct hf_buf *body, uint64_t passed_ms);

/* Changes a number that is there, in a flat map. */
void reply_set_number(struct hf_buf *body, enum hold_field field,
                      int64_t number);

/* In a flat map: the number or text of a field; 0 or "" if it is not there. */
int64_t reply_get_number(struct hf_bytes body, enum hold_field field);
struct hf_bytes reply_get_text(struct hf_bytes body, enum hold_field field);

#endif
