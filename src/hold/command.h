/* command.h - what the engine is asked, and its form as bytes.
 *
 * A record is what the journal keeps and what the engine applies:
 *
 *   offset  bytes
 *        0      8  now, microseconds since 1970
 *        8      1  kind
 *        9      3  which arguments follow: bit n is row n of `hold_args`
 *                  (schema.h); the highest bit is `told`, which has no bytes
 *                  of its own
 *       12    ...  the arguments, in the order of their bits:
 *                  numbers as 8 bytes; texts as 2 bytes length and the bytes;
 *                  items as 2 bytes count, then per item a text and a number
 *      ...    ...  of HOLD_GROUP: the commands, as group.h has them
 *
 * All little endian. What is 0 or empty is left out, so a record has
 * one form only: equal commands have equal bytes, which is how a repeated REQ
 * is compared with the first.
 */
#ifndef HOLD_COMMAND_H
#define HOLD_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/little.h"
#include "hold/bounds.h"
#include "hold/kinds.h"

/* In a set of locks: a name, and HOLD_PART_EXCLUSIVE or HOLD_PART_SHARED. */
struct hold_item {
    struct hf_bytes sku;
    uint64_t quantity;
};
enum { HOLD_PART_EXCLUSIVE = 1, HOLD_PART_SHARED = 2 };

/* As `session` of a command that was parsed: SESSION 0, which the server knows.
 */
#define HOLD_SESSION_OWN ((uint64_t)INT64_MAX)

/* Flags of a command. */
#define HOLD_SHARED         0x1u
#define HOLD_FOREVER        0x2u
#define HOLD_BARGE          0x4u
#define HOLD_BIND           0x8u
#define HOLD_POLICY_SHIFT   4u
#define HOLD_PRIORITY_SHIFT 6u
#define HOLD_DOT            0x100u
#define HOLD_TREE           0x200u
#define HOLD_GRAPH          0x400u /* of RESTART: see engine.h */
/* Of the operations on keys (key.c), and of no others. */
#define HOLD_NX 0x800u /* only if there is none */
#define HOLD_XX                                           \
    0x1000u /* only if there is one; of EXPIRE, if it has \
             * an end */
#define HOLD_EQUAL        0x2000u  /* only if its value is `reason` */
#define HOLD_KEEPTTL      0x4000u  /* it ends when the one before would have */
#define HOLD_AT           0x8000u  /* `ttl_ms` is a time: since 1970 */
#define HOLD_ADDED        0x20000u /* `ttl_ms` is added to what is left */
#define HOLD_OWN          0x40000u /* one with the same value is renewed */
#define HOLD_SAY_SHIFT    20u      /* enum hold_say */
#define HOLD_SAY_MASK     0xf00000u
#define HOLD_KEY_FLAGS    0xf6f800u
#define HOLD_LOCK_FLAGS   0x7ffu /* of all others */
#define HOLD_FLAGS_ALL    (HOLD_LOCK_FLAGS | HOLD_KEY_FLAGS)
#define HOLD_PRIORITY_MAX 3u /* the last */
enum hold_policy {
    POLICY_DETECT,
    POLICY_WAITDIE,
    POLICY_WOUNDWAIT,
    POLICY_NONE
};

/* What is told of a key. A change was made, to so many; or there was no key; or
 * there was another. */
enum hold_say {
    SAY_OK,       /* OK; null; null */
    SAY_COUNT,    /* how many; 0; 0 */
    SAY_VALUE,    /* the value that was there, or null */
    SAY_WHICH,    /* 1; -1; 0 */
    SAY_OK_ZERO,  /* OK; 0; 0 */
    SAY_ONE_NULL, /* 1; null; null */
    SAY_REST,     /* list: 1, -1, or 0 (less was left than `grace_ms`); ms */
    SAY_PTTL,     /* ms, of a question as the rest: -1 no end, -2 no key */
    SAY_TTL,      /* s */
    SAY_TYPE,
    SAY_PAIR, /* list: value and ms, or null */
    SAY_ALL,  /* of HOLD_KEY_SCAN: all, or a refusal */
    SAYS,
};

/* What TYPE tells, and SCAN asks for as `amount`. */
enum hold_key_type { KEY_ANY, KEY_STRING, KEY_ZSET, KEY_TYPES };

/* All that a command may carry. Texts are borrowed. */
struct hold_command {
    uint64_t now_us;
    enum hold_kind kind;
    struct hf_bytes name;
    struct hf_bytes owner;
    struct hf_bytes reason;
    struct hf_bytes request; /* REQ */
    uint64_t token;
    uint64_t ttl_ms;
    uint64_t wait_ms;
    int64_t amount;
    uint64_t cursor;
    uint64_t count;
    uint64_t flags;      /* HOLD_SHARED and so on */
    uint64_t session;    /* 0: none */
    uint64_t permits;    /* how many, and above 32 bits of how many; 0: no
                          * counting lock */
    uint64_t maxhold_ms; /* 0: no bound */
    uint64_t delay_ms;
    uint64_t done_ms;
    uint64_t grace_ms;
    struct hf_bytes note;  /* or result, or the name of a session */
    struct hf_bytes group; /* of HOLD_GROUP: see group.h */
    bool told; /* of a LOCK: its client was told TIMEOUT; see engine.h */
    uint32_t item_count;
    struct hold_item items[HOLD_ITEMS_MAX];
};

/* Empties it, but for the items beyond item_count. */
static inline void hold_command_clear(struct hold_command *command)
{
    enum {
        PIECE = 64,
        LAST = offsetof(struct hold_command, items) - 3 * PIECE
    };
    char *at = (void *)command;

    /* Pieces of this size are stored without a loop. */
    memset(at, 0, PIECE);
    memset(at + PIECE, 0, PIECE);
    memset(at + 2 * PIECE, 0, PIECE);
    memset(at + 3 * PIECE, 0, LAST);
}

/* The longest record. */
#define HOLD_RECORD_MAX                                               \
    (12u + 5 * 2 + HOLD_NAME_MAX + HOLD_OWNER_MAX + HOLD_REASON_MAX + \
     HOLD_ID_MAX + HOLD_NOTE_MAX + 13 * 8 + 2 +                       \
     HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 8)) /* more than a group has */

/* Where the part begins that two repetitions of a command share. */
#define HOLD_RECORD_BODY 8u

/* Makes a record that of the same command with `told`. */
static inline void hold_record_tell(char *record)
{
    record[11] = (char)(record[11] | 0x80);
}

/* Makes a record that of the same command without `told`. */
static inline void hold_record_untell(char *record)
{
    record[11] = (char)(record[11] & 0x7f);
}

/* At most so many bytes are written by encode. */
static inline size_t hold_record_bound(const struct hold_command *command)
{
    size_t bytes = 12 + 5 * 2 + 13 * 8 + command->name.len +
                   command->owner.len + command->reason.len +
                   command->request.len + command->note.len;

    for (uint32_t i = 0; i < command->item_count; i++)
        bytes += 2 + command->items[i].sku.len + 8;
    return bytes + 2 + command->group.len;
}
/* Writes the record to `out`, which has room; returns its length. */
size_t hold_encode(const struct hold_command *command, char *out);
/* The texts point into `record`. HF_CORRUPT if it is none, if its kind has no
 * row in `hold_operations`, or if an argument is missing or beyond its bound;
 * `*command` is then undefined. */
enum hf_status hold_decode(struct hf_bytes record,
                           struct hold_command *command);

/* May it wait, if it cannot be done at once? */
static inline bool hold_may_wait(const struct hold_command *command)
{
    return command->wait_ms > 0 || (command->flags & HOLD_FOREVER) != 0;
}
static inline enum hold_policy policy_of(uint64_t flags)
{
    return (enum hold_policy)(flags >> HOLD_POLICY_SHIFT & 3);
}
static inline uint32_t priority_of(uint64_t flags)
{
    return (uint32_t)(flags >> HOLD_PRIORITY_SHIFT & 3);
}
static inline enum hold_say hold_say(const struct hold_command *command)
{
    return (enum hold_say)(command->flags >> HOLD_SAY_SHIFT & 0xf);
}
static inline enum hold_policy hold_policy(const struct hold_command *command)
{
    return policy_of(command->flags);
}
static inline uint32_t hold_priority(const struct hold_command *command)
{
    return priority_of(command->flags);
}

/* What does not go together, or is missing. */
enum hold_wrong {
    HOLD_RIGHT,
    WRONG_TWO_WAITS,  /* WAIT and FOREVER */
    WRONG_TWO_MODES,  /* SHARED and PERMITS */
    WRONG_PERMITS_OF, /* more permits than there are */
    WRONG_NO_SESSION, /* WAITDIE or WOUNDWAIT without SESSION */
    WRONG_RESULT,     /* RESULT without DONE */
    WRONG_TREE,       /* TREE and PERMITS */
    WRONG_KEY,        /* what is for keys only, or what is not for them */
};
enum hold_wrong hold_find_other_wrong(const struct hold_command *command);
static inline enum hold_wrong
hold_find_wrong(const struct hold_command *command)
{
    if ((command->flags | command->permits | command->note.len) == 0)
        return HOLD_RIGHT; /* as a rule */
    return hold_find_other_wrong(command);
}

/* Adds a name to a set, whose names are kept sorted. HF_FULL: too many;
 * HF_INVALID: it is there. */
enum hf_status hold_add_name(struct hold_command *command, struct hf_bytes name,
                             bool shared);
/* Adds `quantity` of `sku` to the items, which are kept sorted by sku, each
 * sku once. HF_FULL: too many different ones; HF_INVALID: the sum overflows. */
enum hf_status hold_add_item(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity);

/* Writes a text with its length, and the items of a command; each returns
 * where it ends. */
static inline char *hold_put_text(char *out, struct hf_bytes text)
{
    hf_put_u16(out, (uint16_t)text.len);
    memcpy(out + 2, text.data, text.len);
    return out + 2 + text.len;
}
static inline char *hold_put_items(char *out,
                                   const struct hold_command *command)
{
    for (uint32_t i = 0; i < command->item_count; i++) {
        out = hold_put_text(out, command->items[i].sku);
        hf_put_u64(out, command->items[i].quantity);
        out += 8;
    }
    return out;
}

/* Walks what hold_put_items() wrote: false at the end. */
bool hold_next_item(struct hf_bytes items, size_t *at, struct hold_item *out);

#endif
