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
 *                  items as 2 bytes count, then per item a text and a number;
 *                  what is before them about each of them in the same way
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

/* In a set of locks: a name, and HOLD_PART_EXCLUSIVE or HOLD_PART_SHARED. Of
 * keys with an owner each: a name, and which of the client's keys it was. */
struct hold_item {
    struct hf_bytes sku;
    uint64_t quantity;
    uint64_t least; /* that will do; only if the command has `mins` */
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
#define HOLD_BEST         0x10000u /* of RESERVE: what there is will do */
#define HOLD_SETTLED      0x80000u /* of RESTART: see engine.h */
#define HOLD_ADDED        0x20000u /* `ttl_ms` is added to what is left */
#define HOLD_OWN          0x40000u /* one with the same value is renewed */
#define HOLD_SAY_SHIFT    20u      /* enum hold_say */
#define HOLD_SAY_MASK     0xf00000u
#define HOLD_KEY_FLAGS    0xf6f800u
#define HOLD_LOCK_FLAGS   0x7ffu /* of all others */
#define HOLD_FLAGS_ALL    (HOLD_LOCK_FLAGS | HOLD_KEY_FLAGS | HOLD_BEST)
#define HOLD_PRIORITY_MAX 3u /* the last */
enum hold_policy {
    POLICY_DETECT,
    POLICY_WAITDIE,
    POLICY_WOUNDWAIT,
    POLICY_NONE
};

/* From how many of its places a RESERVE takes its units: see split.c. */
enum hold_split { SPLIT_NONE, SPLIT_FEWEST, SPLIT_ORDER, SPLIT_MOST };
#define HOLD_SPLIT_SHIFT 24u
#define HOLD_SPLIT_MASK  0x3000000u

#define HOLD_PREORDER 0x8000000u /* of RESERVE: what is to arrive will do */

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
    SAY_PAIR,      /* list: value and ms, or null */
    SAY_ALL,       /* of HOLD_KEY_SCAN: all, or a refusal */
    SAY_FIRST,     /* of HOLD_KEY_SET with NX: list: 1, how many; list: 0, which
                    * of the client's keys was the first, its name */
    SAY_ONE_MINUS, /* 1; -1; -1 */
    SAY_BOTH,      /* list: value and ms; of no key, null and -2 */
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
    struct hf_bytes note;   /* or result, or the name of a session */
    struct hf_bytes group;  /* of HOLD_GROUP: see group.h */
    struct hf_bytes class;  /* of a reservation */
    struct hf_bytes bundle; /* the group of reservations that it belongs to */
    bool told;   /* of one that may wait: TIMEOUT was told; see engine.h */
    bool mins;   /* less will do of some items */
    bool owners; /* each item has its own: see hold_owner_at() */
    uint32_t item_count;
    struct hold_item items[HOLD_ITEMS_MAX];
    char places[HOLD_NOTE_MAX]; /* of hold_add_place() */
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
#define HOLD_RECORD_MAX                                                     \
    (12u + 7 * 2 + HOLD_NAME_MAX + HOLD_OWNER_MAX + HOLD_REASON_MAX +       \
     3 * HOLD_ID_MAX + HOLD_NOTE_MAX + 13 * 8 + 4 +                         \
     HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 16) /* more than a group has */ + \
     HOLD_SET_MAX * (2 + HOLD_OWNER_MAX))

/* Where the part begins that two repetitions of a command share. */
#define HOLD_RECORD_BODY 8u

/* Of a record. */
static inline enum hold_kind hold_record_kind(struct hf_bytes record)
{
    return (enum hold_kind)(unsigned char)record.data[8];
}

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

/* Where the owner of an item stands: behind all that a set may have. */
static inline struct hf_bytes *hold_own_owner(struct hold_command *command,
                                              uint32_t item)
{
    _Static_assert(2 * HOLD_SET_MAX <= HOLD_ITEMS_MAX, "no room for owners");
    return &command->items[HOLD_SET_MAX + item].sku;
}
/* Who is to hold an item of a set. */
static inline struct hf_bytes hold_owner_at(const struct hold_command *command,
                                            uint32_t item)
{
    return command->owners ? command->items[HOLD_SET_MAX + item].sku
                           : command->owner;
}

/* At most so many bytes are written by encode. */
static inline size_t hold_record_bound(const struct hold_command *command)
{
    size_t bytes = 12 + 7 * 2 + 13 * 8 + command->name.len +
                   command->owner.len + command->reason.len +
                   command->request.len + command->note.len +
                   command->class.len + command->bundle.len;

    for (uint32_t i = 0; i < command->item_count; i++)
        bytes += 2 + command->items[i].sku.len + 16;
    for (uint32_t i = 0; command->owners && i < command->item_count; i++)
        bytes += 2 + hold_owner_at(command, i).len;
    return bytes + 4 + command->group.len;
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
/* May it come to wait for stock? */
static inline bool hold_may_queue(const struct hold_command *command)
{
    return command->wait_ms > 0 || command->kind == HOLD_WAITLIST_JOIN;
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
/* Does it pass those who wait? Not where age decides: they would come to wait
 * for a senior, or for a junior that they did not wound. */
static inline bool hold_barges(const struct hold_command *command)
{
    enum hold_policy policy = hold_policy(command);

    return (command->flags & HOLD_BARGE) != 0 && policy != POLICY_WAITDIE &&
           policy != POLICY_WOUNDWAIT;
}
static inline uint32_t hold_priority(const struct hold_command *command)
{
    return priority_of(command->flags);
}

static inline enum hold_split hold_split(const struct hold_command *command)
{
    return (enum hold_split)(command->flags >> HOLD_SPLIT_SHIFT & 3);
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
    WRONG_BEST,       /* BEST, of another than RESERVE */
    WRONG_WAIT_SOME,  /* WAIT, and BEST or MIN */
    WRONG_SPLIT,      /* SPLIT without PLACE */
    WRONG_PLACE_SOME, /* PLACE, and WAIT, BEST or MIN */
    WRONG_TOO_SPLIT,  /* SPLIT into more items than may be */
    WRONG_PLACE_LONG, /* sku@place is too long */
    WRONG_PLACE_LIST, /* not as hold_add_place() makes it */
    WRONG_WAIT_GROUP, /* WAIT, and GROUP */
    WRONG_BOOK_SOME,  /* PREORDER, and WAIT, BEST, MIN, PLACE, GROUP */
    WRONG_BOOK_MANY,  /* PREORDER of several items */
};
enum hold_wrong hold_find_other_wrong(const struct hold_command *command);
static inline enum hold_wrong
hold_find_wrong(const struct hold_command *command)
{
    if ((command->flags | command->permits | command->note.len |
         command->bundle.len | command->mins) == 0)
        return HOLD_RIGHT; /* as a rule */
    return hold_find_other_wrong(command);
}

/* Of a record: are its items, names or keys as they may be? */
enum hf_status hold_check_items(const struct hold_command *command);

/* Adds a name to a set, whose names are kept sorted. HF_FULL: too many;
 * HF_INVALID: it is there. */
enum hf_status hold_add_name(struct hold_command *command, struct hf_bytes name,
                             bool shared);
/* Adds `quantity` of `sku` to the items, which are kept sorted by sku, each
 * sku once. HF_FULL: too many different ones; HF_INVALID: the sum overflows. */
enum hf_status hold_add_item(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity);
/* The same, of which `least` will do. */
enum hf_status hold_add_some(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity, uint64_t least);

/* Adds a place to those of a RESERVE, which stand in `note` in the order given,
 * parted by '@'. HF_FULL: too many, or too long together; HF_INVALID: it is
 * there, empty, or has a '@'. */
enum hf_status hold_add_place(struct hold_command *command,
                              struct hf_bytes place);
/* Walks them: false at the end. */
bool hold_next_place(struct hf_bytes places, size_t *at, struct hf_bytes *out);
bool hold_has_place(struct hf_bytes places, struct hf_bytes place);
/* How many there are, and the longest of them; 0: they are no list. */
uint32_t hold_count_places(struct hf_bytes places, size_t *longest);
/* Does a RESERVE say from which places? */
static inline bool hold_is_placed(const struct hold_command *command)
{
    return command->note.len > 0 && command->kind == HOLD_RESERVE;
}
/* Will units do that are to arrive? */
static inline bool hold_may_book(const struct hold_command *command)
{
    return (command->flags & HOLD_PREORDER) != 0;
}
/* The most items that the reservation of a RESERVE may have. */
static inline uint32_t hold_most_items(const struct hold_command *command)
{
    size_t longest;

    return !hold_is_placed(command) || hold_split(command) == SPLIT_NONE
               ? command->item_count
               : command->item_count *
                     hold_count_places(command->note, &longest);
}

/* Writes a text with its length, and the items of a command; each returns
 * where it ends. */
static inline char *hold_put_text(char *out, struct hf_bytes text)
{
    hf_put_u16(out, (uint16_t)text.len);
    memcpy(out + 2, text.data, text.len);
    return out + 2 + text.len;
}
static inline char *hold_put_list(char *out, const struct hold_item *items,
                                  uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        out = hold_put_text(out, items[i].sku);
        hf_put_u64(out, items[i].quantity);
        out += 8;
    }
    return out;
}
static inline char *hold_put_items(char *out,
                                   const struct hold_command *command)
{
    return hold_put_list(out, command->items, command->item_count);
}

/* Walks what hold_put_items() wrote: false at the end. */
bool hold_next_item(struct hf_bytes items, size_t *at, struct hold_item *out);

#endif
