/* command.c - a command's form as bytes. */
#include "hold/command.h"

#include <assert.h>

#include "base/little.h"

/* The fields behind the head, in the order of their bits. */
enum {
    TEXT_COUNT = 4,
    NUMBER_COUNT = 10,
    ITEMS_BIT = TEXT_COUNT + NUMBER_COUNT,
    TOLD_BIT = 23,
    HEAD_BYTES = 12,
};

static const size_t text_max[TEXT_COUNT] = {HOLD_NAME_MAX, HOLD_OWNER_MAX,
                                            HOLD_REASON_MAX, HOLD_ID_MAX};

/* Where field n stands in the struct. */
#define PLACE(field) offsetof(struct hold_command, field)
static const size_t text_place[TEXT_COUNT] = {PLACE(name), PLACE(owner),
                                              PLACE(reason), PLACE(request)};
/* Bits that had a meaning once; no record has them. */
#define RETIRED      SIZE_MAX
#define RETIRED_BITS (0xfu << (TEXT_COUNT + 4))
static const size_t number_place[NUMBER_COUNT] = {
    PLACE(token), PLACE(ttl_ms), PLACE(wait_ms), PLACE(amount), RETIRED,
    RETIRED,      RETIRED,       RETIRED,        PLACE(cursor), PLACE(count)};

static struct hf_bytes text_of(const struct hold_command *command, int i)
{
    return *(const struct hf_bytes *)((const char *)command + text_place[i]);
}

/* By memcpy, because `amount` is signed. */
static uint64_t number_of(const struct hold_command *command, int i)
{
    uint64_t number;

    if (number_place[i] == RETIRED)
        return 0;
    memcpy(&number, (const char *)command + number_place[i], sizeof number);
    return number;
}

static char *put_text(char *out, struct hf_bytes text)
{
    hf_put_u16(out, (uint16_t)text.len);
    memcpy(out + 2, text.data, text.len);
    return out + 2 + text.len;
}

static char *put_items(char *out, const struct hold_command *command)
{
    hf_put_u16(out, (uint16_t)command->item_count);
    out += 2;
    for (uint32_t i = 0; i < command->item_count; i++) {
        out = put_text(out, command->items[i].sku);
        hf_put_u64(out, command->items[i].quantity);
        out += 8;
    }
    return out;
}

size_t hold_encode(const struct hold_command *command, char *out)
{
    char *at = out + HEAD_BYTES;
    uint32_t mask = 0;

    for (int i = 0; i < TEXT_COUNT; i++) {
        struct hf_bytes text = text_of(command, i);
        if (text.len == 0)
            continue;
        assert(text.len <= text_max[i]);
        mask |= 1u << i;
        at = put_text(at, text);
    }
    for (int i = 0; i < NUMBER_COUNT; i++) {
        uint64_t number = number_of(command, i);
        if (number == 0)
            continue;
        mask |= 1u << (TEXT_COUNT + i);
        hf_put_u64(at, number);
        at += 8;
    }
    if (command->item_count > 0) {
        mask |= 1u << ITEMS_BIT;
        at = put_items(at, command);
    }
    if (command->told)
        mask |= 1u << TOLD_BIT;
    hf_put_u64(out, command->now_us);
    hf_put_u32(out + 8, (uint32_t)command->kind | mask << 8);
    return (size_t)(at - out);
}

static enum hf_status get_text(struct hf_bytes record, size_t *at, size_t max,
                               struct hf_bytes *out)
{
    if (record.len - *at < 2)
        return HF_CORRUPT;
    size_t len = hf_get_u16(record.data + *at);
    if (len == 0 || len > max || record.len - *at - 2 < len)
        return HF_CORRUPT;
    *out = hf_bytes(record.data + *at + 2, len);
    *at += 2 + len;
    return HF_OK;
}

static enum hf_status get_number(struct hf_bytes record, size_t *at,
                                 uint64_t *out)
{
    if (record.len - *at < 8)
        return HF_CORRUPT;
    *out = hf_get_u64(record.data + *at);
    *at += 8;
    return HF_OK;
}

static enum hf_status get_items(struct hf_bytes record, size_t *at,
                                struct hold_command *command)
{
    if (record.len - *at < 2)
        return HF_CORRUPT;
    uint32_t count = hf_get_u16(record.data + *at);
    *at += 2;
    if (count == 0 || count > HOLD_ITEMS_MAX)
        return HF_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        struct hold_item *item = &command->items[i];
        if (get_text(record, at, HOLD_SKU_MAX, &item->sku) != HF_OK ||
            get_number(record, at, &item->quantity) != HF_OK)
            return HF_CORRUPT;
    }
    command->item_count = count;
    return HF_OK;
}

static bool kind_is_known(unsigned kind)
{
    switch (kind) {
    case HOLD_TICK:
    case HOLD_RESTART:
    case HOLD_ABANDON:
    case HOLD_BOUNDS:
    case HOLD_FLUSH:
    case HOLD_TIMEOUT:
    case HOLD_LOCK:
    case HOLD_UNLOCK:
    case HOLD_RENEW:
    case HOLD_FENCE:
    case HOLD_FENCE_DEL:
    case HOLD_STOCK_SET:
    case HOLD_STOCK_ADD:
    case HOLD_STOCK_DEL:
    case HOLD_RESERVE:
    case HOLD_CONFIRM:
    case HOLD_CANCEL:
    case HOLD_EXTEND:
    case HOLD_LOCK_INFO:
    case HOLD_LOCK_LIST:
    case HOLD_STOCK_GET:
    case HOLD_STOCK_LIST:
    case HOLD_RESERVATION:
        return true;
    default:
        return false;
    }
}

/* What the engine's arithmetic and promises rely on, whoever wrote the
 * record. */
static enum hf_status check_ranges(const struct hold_command *c)
{
    if (c->now_us > UINT64_MAX / 4 || c->ttl_ms > HOLD_TTL_MAX_MS ||
        c->wait_ms > HOLD_TTL_MAX_MS || (c->told && c->kind != HOLD_LOCK))
        return HF_CORRUPT;
    switch (c->kind) {
    case HOLD_LOCK:
        return c->name.len && c->owner.len && c->ttl_ms ? HF_OK : HF_CORRUPT;
    case HOLD_RENEW:
    case HOLD_EXTEND:
        return c->name.len && c->ttl_ms ? HF_OK : HF_CORRUPT;
    case HOLD_STOCK_SET:
        if (c->amount < 0)
            return HF_CORRUPT;
        return c->name.len && c->name.len <= HOLD_SKU_MAX ? HF_OK : HF_CORRUPT;
    case HOLD_STOCK_ADD:
    case HOLD_STOCK_DEL:
        return c->name.len && c->name.len <= HOLD_SKU_MAX ? HF_OK : HF_CORRUPT;
    case HOLD_RESERVE:
        return c->item_count && c->ttl_ms && c->name.len <= HOLD_ID_MAX
                   ? HF_OK
                   : HF_CORRUPT;
    case HOLD_RESTART:
        return c->amount >= 0 ? HF_OK : HF_CORRUPT;
    case HOLD_STOCK_GET:
        return c->item_count ? HF_OK : HF_CORRUPT;
    case HOLD_UNLOCK:
    case HOLD_FENCE:
    case HOLD_FENCE_DEL:
    case HOLD_CONFIRM:
    case HOLD_CANCEL:
    case HOLD_LOCK_INFO:
    case HOLD_RESERVATION:
        return c->name.len ? HF_OK : HF_CORRUPT;
    default:
        return HF_OK;
    }
}

/* Reserved quantities are summed up without an overflow check later on: each
 * item is at least 1, at most the most units a product can have, and each
 * product comes once, in order. */
static enum hf_status check_items(const struct hold_command *c)
{
    if (c->kind != HOLD_RESERVE)
        return HF_OK;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t quantity = c->items[i].quantity;
        if (quantity == 0 || quantity > (uint64_t)HOLD_STOCK_MAX)
            return HF_CORRUPT;
        if (i == 0)
            continue;
        struct hf_bytes a = c->items[i - 1].sku;
        struct hf_bytes b = c->items[i].sku;
        int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
        if (order > 0 || (order == 0 && a.len >= b.len))
            return HF_CORRUPT;
    }
    return HF_OK;
}

/* Reads the fields that `mask` names, the lowest bit first. */
static enum hf_status get_fields(struct hf_bytes record, uint32_t mask,
                                 struct hold_command *command)
{
    size_t at = HEAD_BYTES;
    uint64_t number;

    for (; mask != 0; mask &= mask - 1) {
        int bit = __builtin_ctz(mask);
        if (bit < TEXT_COUNT) {
            if (get_text(record, &at, text_max[bit],
                         (void *)((char *)command + text_place[bit])) != HF_OK)
                return HF_CORRUPT;
        } else if (bit < ITEMS_BIT) {
            if (get_number(record, &at, &number) != HF_OK || number == 0)
                return HF_CORRUPT; /* a 0 is left out: one form only */
            memcpy((char *)command + number_place[bit - TEXT_COUNT], &number,
                   sizeof number);
        } else if (get_items(record, &at, command) != HF_OK) {
            return HF_CORRUPT;
        }
    }
    return at == record.len ? HF_OK : HF_CORRUPT;
}

enum hf_status hold_decode(struct hf_bytes record, struct hold_command *command)
{
    if (record.len < HEAD_BYTES)
        return HF_CORRUPT;
    uint32_t head = hf_get_u32(record.data + 8);
    uint32_t mask = head >> 8 & ~(1u << TOLD_BIT);
    if (!kind_is_known(head & 0xff) || mask >> (ITEMS_BIT + 1) != 0 ||
        (mask & RETIRED_BITS) != 0)
        return HF_CORRUPT;
    memset(command, 0, offsetof(struct hold_command, items));
    command->now_us = hf_get_u64(record.data);
    command->kind = (enum hold_kind)(head & 0xff);
    command->told = (head >> 8 & 1u << TOLD_BIT) != 0;
    if (get_fields(record, mask, command) != HF_OK ||
        check_ranges(command) != HF_OK)
        return HF_CORRUPT;
    return check_items(command);
}

enum hf_status hold_add_item(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity)
{
    uint32_t i = 0;

    for (; i < command->item_count; i++) {
        struct hold_item *item = &command->items[i];
        size_t len = item->sku.len < sku.len ? item->sku.len : sku.len;
        int order = memcmp(item->sku.data, sku.data, len);
        if (order == 0 && item->sku.len == sku.len) {
            if (__builtin_add_overflow(item->quantity, quantity, &quantity) ||
                quantity > (uint64_t)HOLD_STOCK_MAX)
                return HF_INVALID;
            item->quantity = quantity;
            return HF_OK;
        }
        if (order > 0 || (order == 0 && item->sku.len > sku.len))
            break;
    }
    if (quantity > (uint64_t)HOLD_STOCK_MAX)
        return HF_INVALID;
    if (command->item_count == HOLD_ITEMS_MAX)
        return HF_FULL;
    memmove(&command->items[i + 1], &command->items[i],
            (command->item_count - i) * sizeof command->items[0]);
    command->items[i] = (struct hold_item){sku, quantity};
    command->item_count++;
    return HF_OK;
}
