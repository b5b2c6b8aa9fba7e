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

struct hold_item {
    struct hf_bytes sku;
    uint64_t quantity;
};

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
    bool told; /* of a LOCK: its client was told TIMEOUT; see engine.h */
    uint32_t item_count;
    struct hold_item items[HOLD_ITEMS_MAX];
};

/* The longest record. */
#define HOLD_RECORD_MAX                                               \
    (12u + 4 * 2 + HOLD_NAME_MAX + HOLD_OWNER_MAX + HOLD_REASON_MAX + \
     HOLD_ID_MAX + 6 * 8 + 2 + HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 8))

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
    size_t bytes = 12 + 4 * 2 + 6 * 8 + command->name.len + command->owner.len +
                   command->reason.len + command->request.len;

    for (uint32_t i = 0; i < command->item_count; i++)
        bytes += 2 + command->items[i].sku.len + 8;
    return bytes + 2;
}
/* Writes the record to `out`, which has room; returns its length. */
size_t hold_encode(const struct hold_command *command, char *out);
/* The texts point into `record`. HF_CORRUPT if it is none, if its kind has no
 * row in `hold_operations`, or if an argument is missing or beyond its bound;
 * `*command` is then undefined. */
enum hf_status hold_decode(struct hf_bytes record,
                           struct hold_command *command);

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

#endif
