/* reply.h - what the engine answers: a code and a value.
 *
 * A value is a small tree written as bytes: numbers, texts, lists, and maps
 * whose keys are fields from one list. The server turns it into its protocol;
 * the engine keeps it, as it is, to answer a repeated request.
 *
 *   number  N  8 bytes
 *   text    T  2 bytes length, bytes
 *   null    0
 *   list    L  4 bytes count, then so many values
 *   map     M  4 bytes count, then so many times: 1 byte field, value
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

enum hold_code {
    HOLD_OK,
    HOLD_WAITING,    /* no answer yet: it comes under the ticket */
    HOLD_BUSY,       /* held by another */
    HOLD_TIMED_OUT,  /* waited in vain */
    HOLD_NOTHELD,    /* not held with this token */
    HOLD_LOST,       /* the hold to be renewed is gone */
    HOLD_STALE,      /* a newer token was seen */
    HOLD_SHORT,      /* not enough stock */
    HOLD_STATE,      /* not possible in this state */
    HOLD_EXPIRED,    /* the reservation's time is over */
    HOLD_NOTFOUND,   /* no such product or reservation */
    HOLD_CONFLICT,   /* the same id with other arguments */
    HOLD_OVERLOADED, /* a named limit is reached */
    HOLD_MOVED,      /* a newer connection asked the same REQ */
    HOLD_AGAIN,      /* not done yet: apply the same record again */
    HOLD_BADARG,     /* a token that was never given */
    HOLD_CODE_COUNT, /* of those that the engine gives */

    /* Errors that only a server gives. */
    HOLD_ERR = HOLD_CODE_COUNT, /* not a request, or of no command */
    HOLD_NOPERM,                /* not from there */
    HOLD_NOPROTO,               /* no such protocol */
    HOLD_JOURNAL,               /* the log has failed */
    HOLD_ALL_CODES
};

enum hold_field {
    FIELD_ALLOWED,
    FIELD_AVAILABLE,
    FIELD_COUNT,
    FIELD_CREATED_MS,
    FIELD_CURSOR,
    FIELD_ENDED_MS,
    FIELD_EXPIRES_MS,
    FIELD_HELD_MS,
    FIELD_ID,
    FIELD_ITEMS,
    FIELD_LIMIT,
    FIELD_LOCKS,
    FIELD_MAXIMUM,
    FIELD_NAME,
    FIELD_NEWEST,
    FIELD_OWNER,
    FIELD_PRODUCTS,
    FIELD_QUANTITY,
    FIELD_REASON,
    FIELD_REMAINING,
    FIELD_REQUESTED,
    FIELD_RESERVED,
    FIELD_RESET_MS,
    FIELD_RETRY_MS,
    FIELD_SAFE_MS,
    FIELD_SKU,
    FIELD_SOLD,
    FIELD_STATUS,
    FIELD_TOKEN,
    FIELD_TOTAL,
    FIELD_UPDATED_MS,
    FIELD_VERSION,
    FIELD_WAITED_MS,
    FIELD_WAITING,
    /* of limits; new ones at the end, for kept answers name them by number */
    FIELD_POLICY,
    FIELD_SHADOW,
    FIELD_TAKEN,
    FIELD_HOLD,
    FIELD_HEADER_POLICY,
    FIELD_HEADER,
    FIELD_RESOURCE, /* of a fence */
    HOLD_FIELD_COUNT
};

/* The field's name as clients see it, in lower case. */
const char *hold_field_name(enum hold_field field);
/* The code's name as clients see it, in upper case. */
const char *hold_code_name(enum hold_code code);

/* Writing: the buffer has its capacity from the start; writing beyond it is a
 * mistake of the engine and asserted. */
void reply_number(struct hf_buf *out, int64_t number);
void reply_text(struct hf_buf *out, struct hf_bytes text);
void reply_null(struct hf_buf *out);
void reply_list(struct hf_buf *out, uint32_t count);
void reply_map(struct hf_buf *out, uint32_t count);
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
    REPLY_LIST = 'L', /* `count` values follow */
    REPLY_MAP = 'M',  /* `count` times a field and a value follow */
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
        node.count = hf_get_u32(place);
        *at += 5;
        break;
    default:
        assert(node.kind == REPLY_NULL);
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
