/* command.c - a command's form as bytes. */
#include "hold/command.h"

#include <assert.h>

#include "base/little.h"
#include "hold/schema.h"

enum {
    TOLD_BIT = 23,
    HEAD_BYTES = 12,
};

#define AT(field) .place = offsetof(struct hold_command, field)

const struct hold_arg hold_args[HOLD_ARGS] = {
    [ARG_NAME] = {"name", .type = TYPE_TEXT, AT(name), .max = HOLD_NAME_MAX},
    [ARG_OWNER] = {"OWNER", "owner", .type = TYPE_TEXT, AT(owner),
                   .max = HOLD_OWNER_MAX},
    [ARG_REASON] = {"REASON", "text", .type = TYPE_TEXT, AT(reason),
                    .max = HOLD_REASON_MAX},
    [ARG_REQ] = {"REQ", "id", .type = TYPE_TEXT, AT(request),
                 .max = HOLD_ID_MAX},
    [ARG_TOKEN] = {"token", .type = TYPE_NUMBER, AT(token)},
    [ARG_TTL] = {"TTL", "ms", .type = TYPE_NUMBER, AT(ttl_ms), .strict = true,
                 .min = 1, .max = HOLD_TTL_MAX_MS},
    [ARG_WAIT] = {"WAIT", "ms", .type = TYPE_NUMBER, AT(wait_ms),
                  .strict = true, .max = HOLD_TTL_MAX_MS},
    [ARG_AMOUNT] = {"amount", .type = TYPE_SIGNED, AT(amount)},
    [ARG_CURSOR] = {"CURSOR", "n", .type = TYPE_NUMBER, AT(cursor),
                    .max = UINT32_MAX},
    [ARG_COUNT] = {"COUNT", "n", .type = TYPE_NUMBER, AT(count), .min = 1,
                   .max = HOLD_LIST_MAX},
    [ARG_ITEM] = {"ITEM", "sku qty", .many = true,
                  .form = "ITEM sku qty [ITEM sku qty ...]", .type = TYPE_ITEM,
                  AT(items), .max = HOLD_ITEMS_MAX},
};

const struct hold_arg hold_words[HOLD_WORDS] = {
    [WORD_NAME] = {"name", .type = TYPE_TEXT, AT(name), .max = HOLD_NAME_MAX},
    [WORD_RESOURCE] = {"resource", .type = TYPE_TEXT, AT(name),
                       .max = HOLD_NAME_MAX},
    [WORD_SKU] = {"sku", .type = TYPE_TEXT, AT(name), .max = HOLD_SKU_MAX},
    [WORD_ID] = {"id", .type = TYPE_TEXT, AT(name), .max = HOLD_ID_MAX},
    [WORD_NEW_ID] = {"id", .form = "id|*", .type = TYPE_NEW_ID, AT(name),
                     .max = HOLD_ID_MAX},
    [WORD_PATTERN] = {"pattern", .type = TYPE_TEXT, .optional = true, AT(name),
                      .max = HOLD_NAME_MAX},
    [WORD_TOKEN] = {"token", .type = TYPE_NUMBER, AT(token), .min = 1,
                    .max = INT64_MAX},
    [WORD_TOTAL] = {"total", .type = TYPE_NUMBER, AT(amount), .strict = true,
                    .max = HOLD_STOCK_MAX},
    [WORD_CHANGE] = {"n", .type = TYPE_CHANGE, AT(amount)},
    [WORD_SKUS] = {"sku", .form = "sku [sku ...]", .type = TYPE_SKUS, AT(items),
                   .many = true, .max = HOLD_ITEMS_MAX},
    [WORD_SKIP] = {"skip", .type = TYPE_NUMBER, AT(amount), .strict = true,
                   .max = INT64_MAX},
};

static const void *place_of(const struct hold_arg *arg,
                            const struct hold_command *command)
{
    return (const char *)command + arg->place;
}

/* By memcpy, because `amount` is signed. */
static uint64_t number_of(const struct hold_arg *arg,
                          const struct hold_command *command)
{
    uint64_t number;

    memcpy(&number, place_of(arg, command), sizeof number);
    return number;
}

static char *put_counted(char *out, const struct hold_command *command)
{
    hf_put_u16(out, (uint16_t)command->item_count);
    return hold_put_items(out + 2, command);
}

/* Writes an argument, unless it is 0 or empty; returns where it ends. */
static inline char *put_arg(char *out, const struct hold_arg *arg,
                            const struct hold_command *command)
{
    switch (arg->type) {
    case TYPE_NONE:
        return out;
    case TYPE_TEXT: {
        struct hf_bytes text = *(const struct hf_bytes *)place_of(arg, command);
        assert(text.len <= arg->max);
        return text.len == 0 ? out : hold_put_text(out, text);
    }
    case TYPE_ITEM:
        return command->item_count == 0 ? out : put_counted(out, command);
    default: {
        uint64_t number = number_of(arg, command);
        if (number == 0)
            return out;
        hf_put_u64(out, number);
        return out + 8;
    }
    }
}

size_t hold_encode(const struct hold_command *command, char *out)
{
    char *at = out + HEAD_BYTES;
    uint32_t mask = (uint32_t)command->told << TOLD_BIT;

    /* unrolled, the compiler knows what each row says */
#pragma GCC unroll 16
    for (unsigned bit = 0; bit < HOLD_ARGS; bit++) {
        char *end = put_arg(at, &hold_args[bit], command);
        mask |= (uint32_t)(end != at) << bit;
        at = end;
    }
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

/* What the engine's arithmetic and promises rely on, whoever wrote the record:
 * its words and what is required are there. `mask` is what it has. */
static enum hf_status check_words(const struct hold_command *c, uint32_t mask)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    uint32_t must = operation->required;

    if (operation->ttl_ms > 0)
        must |= HOLD_BIT(ARG_TTL);
    if ((must & ~mask) != 0 || c->now_us > UINT64_MAX / 4 ||
        (c->told && !hold_kind_waits(c->kind)))
        return HF_CORRUPT;
    for (unsigned i = 0; i < HOLD_WORDS_MAX && operation->words[i] != WORD_END;
         i++) {
        const struct hold_arg *word = &hold_words[operation->words[i]];
        if (word->type == TYPE_TEXT || word->type == TYPE_NEW_ID) {
            size_t len = c->name.len;
            if (len > word->max ||
                (len == 0 && word->type == TYPE_TEXT && !word->optional))
                return HF_CORRUPT;
        } else if ((word->strict && number_of(word, c) > word->max) ||
                   (word->type == TYPE_SKUS && c->item_count == 0)) {
            return HF_CORRUPT;
        }
    }
    return HF_OK;
}

/* Below 0, 0 or above: how two names are sorted. */
static int compare(struct hf_bytes a, struct hf_bytes b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Reserved quantities are summed up without an overflow check later on: each
 * item is at least 1, at most the most units a product can have, and each
 * product comes once, in order. */
static enum hf_status check_items(const struct hold_command *c)
{
    if ((hold_operations[c->kind].options & HOLD_BIT(ARG_ITEM)) == 0)
        return HF_OK;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t quantity = c->items[i].quantity;
        if (quantity == 0 || quantity > (uint64_t)HOLD_STOCK_MAX ||
            (i > 0 && compare(c->items[i - 1].sku, c->items[i].sku) >= 0))
            return HF_CORRUPT;
    }
    return HF_OK;
}

/* Reads an argument from `*at` on. */
static inline enum hf_status get_arg(struct hf_bytes record, size_t *at,
                                     const struct hold_arg *arg,
                                     struct hold_command *command)
{
    char *place = (char *)command + arg->place;
    uint64_t number;

    switch (arg->type) {
    case TYPE_NONE:
        return HF_CORRUPT;
    case TYPE_TEXT:
        return get_text(record, at, arg->max, (void *)place);
    case TYPE_ITEM:
        return get_items(record, at, command);
    default: /* a 0 is left out: one form only */
        if (get_number(record, at, &number) != HF_OK || number == 0 ||
            (arg->strict && number > arg->max))
            return HF_CORRUPT;
        memcpy(place, &number, sizeof number);
        return HF_OK;
    }
}

/* Reads the arguments that `mask` names, the lowest bit first. */
static enum hf_status get_args(struct hf_bytes record, uint32_t mask,
                               struct hold_command *command)
{
    size_t at = HEAD_BYTES;

#pragma GCC unroll 16
    for (unsigned bit = 0; bit < HOLD_ARGS; bit++) {
        if ((mask & HOLD_BIT(bit)) != 0 &&
            get_arg(record, &at, &hold_args[bit], command) != HF_OK)
            return HF_CORRUPT;
    }
    return at == record.len ? HF_OK : HF_CORRUPT;
}

enum hf_status hold_decode(struct hf_bytes record, struct hold_command *command)
{
    if (record.len < HEAD_BYTES)
        return HF_CORRUPT;
    uint32_t head = hf_get_u32(record.data + 8);
    uint32_t kind = head & 0xff;
    uint32_t mask = head >> 8 & ~(1u << TOLD_BIT);
    if (kind >= HOLD_KINDS || hold_operations[kind].class == CLASS_NONE ||
        mask >> HOLD_ARGS != 0)
        return HF_CORRUPT;
    memset(command, 0, offsetof(struct hold_command, items));
    command->now_us = hf_get_u64(record.data);
    command->kind = (enum hold_kind)kind;
    command->told = (head >> 8 & 1u << TOLD_BIT) != 0;
    if (get_args(record, mask, command) != HF_OK ||
        check_words(command, mask) != HF_OK)
        return HF_CORRUPT;
    return check_items(command);
}

enum hf_status hold_add_item(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity)
{
    uint32_t i = 0;

    for (; i < command->item_count; i++) {
        struct hold_item *item = &command->items[i];
        int order = compare(item->sku, sku);
        if (order == 0) {
            if (__builtin_add_overflow(item->quantity, quantity, &quantity) ||
                quantity > (uint64_t)HOLD_STOCK_MAX)
                return HF_INVALID;
            item->quantity = quantity;
            return HF_OK;
        }
        if (order > 0)
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
