/* command.c - a command's form as bytes. */
#include "hold/command.h"

#include <assert.h>

#include "base/little.h"
#include "hold/group.h"
#include "hold/schema.h"

enum {
    TOLD_BIT = 23,
    HEAD_BYTES = 12,
    USUAL_ARGS = ARG_AMOUNT + 1, /* they come first, and others seldom */
};

/* Times are added up without an overflow check. */
#define NOW_MAX_US (UINT64_MAX / 4)

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
                    .max = UINT64_C(1) << 53}, /* of JSON, too */
    [ARG_COUNT] = {"COUNT", "n", .type = TYPE_NUMBER, AT(count), .min = 1,
                   .max = HOLD_LIST_MAX},
    [ARG_ITEM] = {"ITEM", "sku qty", .many = true,
                  .form = "ITEM sku qty [MIN n] [ITEM sku qty [MIN n] ...]",
                  .type = TYPE_ITEM, AT(items), .min = 1,
                  .max = HOLD_ITEMS_MAX},
    [ARG_PART] = {"ITEM", "sku qty", .many = true,
                  .form = "ITEM sku qty [ITEM sku qty ...]", .type = TYPE_ITEM,
                  AT(items), .max = HOLD_ITEMS_MAX},
    [ARG_MINS] = {"minimums", .type = TYPE_MINS, AT(items)},
    [ARG_OWNERS] = {"owners", .type = TYPE_OWNERS, AT(items)},
    [ARG_GROUP] = {"GROUP", "id", .type = TYPE_TEXT, AT(bundle),
                   .max = HOLD_ID_MAX},
    [ARG_CLASS] = {"CLASS", "name", .type = TYPE_TEXT, AT(class),
                   .max = HOLD_ID_MAX},
    [ARG_EXTENDS] = {"EXTENDS", "n", .type = TYPE_NUMBER, AT(count),
                     .max = UINT32_MAX},
    [ARG_LIFE] = {"LIFE", "ms", .type = TYPE_NUMBER, AT(maxhold_ms),
                  .max = HOLD_TTL_MAX_MS},
    [ARG_BEST] = {"BEST", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_BEST},
    [ARG_PREORDER] = {"PREORDER", "", .type = TYPE_FLAG, AT(flags),
                      .min = HOLD_PREORDER},
    [ARG_ARRIVES] = {"AT", "ms", .type = TYPE_NUMBER, AT(delay_ms), .min = 1,
                     .max = HOLD_TTL_MAX_MS},
    [ARG_ID] = {"ID", "id", .type = TYPE_TEXT, AT(name), .max = HOLD_ID_MAX},
    [ARG_STAY] = {"WAIT", "ms", .type = TYPE_NUMBER, AT(delay_ms), .min = 1,
                  .max = HOLD_TTL_MAX_MS},
    [ARG_SHARED] = {"SHARED", "", .type = TYPE_FLAG, AT(flags),
                    .min = HOLD_SHARED},
    [ARG_FOREVER] = {"FOREVER", "", .type = TYPE_FLAG, AT(flags),
                     .min = HOLD_FOREVER},
    [ARG_BARGE] = {"BARGE", "", .type = TYPE_FLAG, AT(flags),
                   .min = HOLD_BARGE},
    [ARG_BIND] = {"BIND", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_BIND},
    [ARG_FLAGS] = {"flags", .type = TYPE_NUMBER, AT(flags), .strict = true,
                   .max = HOLD_FLAGS_ALL | HOLD_SPLIT_MASK | HOLD_PREORDER |
                          HOLD_SETTLED},
    [ARG_SESSION] = {"SESSION", "id", .type = TYPE_NUMBER, AT(session),
                     .max = INT64_MAX - 1},
    [ARG_PERMITS] = {"PERMITS", "n OF max", .type = TYPE_PERMITS, AT(permits),
                     .min = 1, .max = HOLD_PERMITS_MAX},
    [ARG_MAXHOLD] = {"MAXHOLD", "ms", .type = TYPE_NUMBER, AT(maxhold_ms),
                     .strict = true, .min = 1, .max = HOLD_TTL_MAX_MS},
    [ARG_DELAY] = {"DELAY", "ms", .type = TYPE_NUMBER, AT(delay_ms),
                   .strict = true, .min = 1, .max = HOLD_TTL_MAX_MS},
    [ARG_NOTE] = {"NOTE", "text", .type = TYPE_TEXT, AT(note),
                  .max = HOLD_NOTE_MAX},
    [ARG_DONE] = {"DONE", "ms", .type = TYPE_NUMBER, AT(done_ms),
                  .strict = true, .min = 1, .max = HOLD_TTL_MAX_MS},
    [ARG_GRACE] = {"GRACE", "ms", .type = TYPE_NUMBER, AT(grace_ms),
                   .strict = true, .max = HOLD_TTL_MAX_MS},
    [ARG_MEMBER] = {"NAME", "name [SHARED]", .many = true,
                    .form = "NAME name [SHARED] [NAME name [SHARED] ...]",
                    .type = TYPE_MEMBER, AT(items), .max = HOLD_SET_MAX},
    [ARG_DEADLOCK] = {"DEADLOCK", "DETECT|WAITDIE|WOUNDWAIT|NONE",
                      .type = TYPE_CHOICE, AT(flags), .min = HOLD_POLICY_SHIFT},
    [ARG_PRIORITY] = {"PRIORITY", "0|1|2|3", .type = TYPE_CHOICE, AT(flags),
                      .min = HOLD_PRIORITY_SHIFT},
    [ARG_RESULT] = {"RESULT", "text", .type = TYPE_TEXT, AT(note),
                    .max = HOLD_NOTE_MAX},
    [ARG_VALUE] = {"VALUE", "value", .type = TYPE_TEXT, AT(note),
                   .max = HOLD_NOTE_MAX},
    [ARG_TREE] = {"TREE", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_TREE},
    [ARG_IF] = {"IF", "version", .type = TYPE_VERSION, AT(token),
                .max = INT64_MAX - 1},
    [ARG_REF] = {"REF", "text", .type = TYPE_TEXT, AT(note),
                 .max = HOLD_NOTE_MAX},
    [ARG_DOT] = {"DOT", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_DOT},
    [ARG_TITLE] = {"NAME", "text", .type = TYPE_TEXT, AT(note),
                   .max = HOLD_NOTE_MAX},
    [ARG_PLACE] = {"PLACE", "place", .many = true,
                   .form = "PLACE place [PLACE place ...]", .type = TYPE_PLACE,
                   AT(note), .max = HOLD_NOTE_MAX},
    [ARG_SPLIT] = {"SPLIT", "NONE|FEWEST|ORDER|MOST", .type = TYPE_CHOICE,
                   AT(flags), .min = HOLD_SPLIT_SHIFT},
};

const struct hold_arg hold_words[HOLD_WORDS] = {
    [WORD_NAME] = {"name", .type = TYPE_TEXT, AT(name), .max = HOLD_NAME_MAX},
    [WORD_RESOURCE] = {"resource", .type = TYPE_TEXT, AT(name),
                       .max = HOLD_NAME_MAX},
    [WORD_SKU] = {"sku", .type = TYPE_TEXT, AT(name), .max = HOLD_SKU_MAX},
    [WORD_ID] = {"id", .type = TYPE_TEXT, AT(name), .max = HOLD_ID_MAX},
    [WORD_NEW_ID] = {"id", .form = "id|*", .type = TYPE_NEW_ID, AT(name),
                     .max = HOLD_ID_MAX},
    [WORD_GROUP] = {"group", .type = TYPE_TEXT, AT(name), .max = HOLD_ID_MAX},
    [WORD_CLASS] = {"name", .type = TYPE_TEXT, AT(name), .max = HOLD_ID_MAX},
    [WORD_PATTERN] = {"pattern", .type = TYPE_TEXT, .optional = true, AT(name),
                      .max = HOLD_NAME_MAX},
    [WORD_TOKEN] = {"token", .type = TYPE_NUMBER, AT(token), .min = 1,
                    .max = INT64_MAX},
    [WORD_SESSION] = {"id", .type = TYPE_NUMBER, AT(token), .min = 1,
                      .max = INT64_MAX},
    [WORD_TOTAL] = {"total", .type = TYPE_NUMBER, AT(amount), .strict = true,
                    .max = HOLD_STOCK_MAX},
    [WORD_CHANGE] = {"n", .type = TYPE_CHANGE, AT(amount)},
    [WORD_SKUS] = {"sku", .form = "sku [sku ...]", .type = TYPE_SKUS, AT(items),
                   .many = true, .max = HOLD_ITEMS_MAX},
    [WORD_LOW] = {"n", .type = TYPE_NUMBER, AT(amount), .strict = true,
                  .max = HOLD_STOCK_MAX},
    [WORD_UNITS] = {"n", .type = TYPE_NUMBER, AT(amount), .strict = true,
                    .min = 1, .max = HOLD_STOCK_MAX},
    [WORD_ATTRIBUTE] = {"name", .type = TYPE_TEXT, AT(reason),
                        .max = HOLD_ATTR_MAX},
    [WORD_VALUE] = {"value", .type = TYPE_TEXT, .optional = true, .empty = true,
                    AT(note), .max = HOLD_NOTE_MAX},
    [WORD_WANTED] = {"sku", .form = "sku qty", .type = TYPE_ITEM, AT(items),
                     .max = 1},
    [WORD_QUEUE] = {"sku", .type = TYPE_TEXT, AT(note), .max = HOLD_SKU_MAX},
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

static char *put_mins(char *out, const struct hold_command *command)
{
    hf_put_u16(out, (uint16_t)command->item_count);
    out += 2;
    for (uint32_t i = 0; i < command->item_count; i++, out += 8)
        hf_put_u64(out, command->items[i].least);
    return out;
}

static char *put_owners(char *out, const struct hold_command *command)
{
    hf_put_u16(out, (uint16_t)command->item_count);
    out += 2;
    for (uint32_t i = 0; i < command->item_count; i++)
        out = hold_put_text(out, hold_owner_at(command, i));
    return out;
}

/* Writes an argument, unless it is 0 or empty; returns where it ends. Always
 * inline: where the row is known, little is left of it. */
__attribute__((always_inline)) static inline char *
put_arg(char *out, const struct hold_arg *arg,
        const struct hold_command *command)
{
    switch (arg->type) {
    case TYPE_FLAG: /* in flags */
    case TYPE_NONE:
        return out;
    case TYPE_MINS:
        return command->mins ? put_mins(out, command) : out;
    case TYPE_OWNERS:
        return command->owners ? put_owners(out, command) : out;
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

/* Does it carry more than the usual? By the bits of the arguments: first those
 * from ARG_GROUP on, then from ARG_CURSOR, then from ARG_SESSION. */
static inline bool has_terms(const struct hold_command *c)
{
    return (c->bundle.len | c->class.len) != 0 || c->mins || c->owners;
}

static inline bool has_choices(const struct hold_command *c)
{
    return (c->cursor | c->count | c->item_count | c->flags) != 0;
}

static inline bool has_rest(const struct hold_command *c)
{
    return (c->session | c->permits | c->maxhold_ms | c->delay_ms | c->done_ms |
            c->grace_ms | c->note.len) != 0;
}

static inline bool has_others(const struct hold_command *c)
{
    return has_terms(c) || has_choices(c) || has_rest(c);
}

/* What most records are: a LOCK and an UNLOCK without options. What they have
 * is known, so that they are written and read with fewer instructions. */
#define PLAIN_LOCK   (1u << ARG_NAME | 1u << ARG_OWNER | 1u << ARG_TTL)
#define PLAIN_UNLOCK (1u << ARG_NAME | 1u << ARG_TOKEN)

/* What those of keys mostly are: a SET for a time, and a compare-and-delete. */
#define PLAIN_SET \
    (1u << ARG_NAME | 1u << ARG_OWNER | 1u << ARG_TTL | 1u << ARG_FLAGS)
#define PLAIN_DEL (1u << ARG_NAME | 1u << ARG_REASON | 1u << ARG_FLAGS)

/* Writes arguments, and in the mask that they are there. */
__attribute__((always_inline)) static inline char *
put_args(char *at, unsigned first, unsigned end,
         const struct hold_command *command, uint32_t *mask)
{
    /* unrolled, the compiler knows what each row says */
#pragma GCC unroll 8
    for (unsigned bit = first; bit < end; bit++) {
        char *next = put_arg(at, &hold_args[bit], command);
        *mask |= (uint32_t)(next != at) << bit;
        at = next;
    }
    return at;
}

/* Most records that are not plain have one thing more than the usual: the flags
 * of a key, the items of a reservation. */
static inline char *put_other(char *at, const struct hold_command *command,
                              uint32_t *mask)
{
    *mask = (uint32_t)command->told << TOLD_BIT;
    at = put_args(at, 0, USUAL_ARGS, command, mask);
    if (has_terms(command))
        at = put_args(at, USUAL_ARGS, ARG_CURSOR, command, mask);
    if (has_choices(command))
        at = put_args(at, ARG_CURSOR, ARG_SESSION, command, mask);
    if (has_rest(command))
        at = put_args(at, ARG_SESSION, HOLD_RECORD_ARGS, command, mask);
    return at;
}

/* Has it, but for name and token, only what a plain one has? */
static inline bool is_plain(const struct hold_command *c)
{
    return (c->reason.len | c->request.len | c->wait_ms | (uint64_t)c->amount |
            c->told) == 0 &&
           !has_others(c) && c->name.len - 1 < HOLD_NAME_MAX;
}

size_t hold_encode(const struct hold_command *command, char *out)
{
    char *at = out + HEAD_BYTES;
    uint32_t mask;

    if (command->kind == HOLD_UNLOCK && is_plain(command) &&
        command->token != 0 && (command->owner.len | command->ttl_ms) == 0) {
        mask = PLAIN_UNLOCK;
        at = hold_put_text(at, command->name);
        hf_put_u64(at, command->token);
        at += 8;
    } else if (command->kind == HOLD_LOCK && is_plain(command) &&
               command->token == 0 && command->owner.len - 1 < HOLD_OWNER_MAX &&
               command->ttl_ms > 0) {
        mask = PLAIN_LOCK;
        at = hold_put_text(hold_put_text(at, command->name), command->owner);
        hf_put_u64(at, command->ttl_ms);
        at += 8;
    } else {
        at = put_other(at, command, &mask);
        if (command->group.len > 0) {
            memcpy(at, command->group.data, command->group.len);
            at += command->group.len;
        }
    }
    hf_put_u64(out, command->now_us);
    hf_put_u32(out + 8, (uint32_t)command->kind | mask << 8);
    return (size_t)(at - out);
}

static inline enum hf_status get_any_text(struct hf_bytes record, size_t *at,
                                          size_t max, struct hf_bytes *out)
{
    if (record.len - *at < 2)
        return HF_CORRUPT;
    size_t len = hf_get_u16(record.data + *at);
    if (len > max || record.len - *at - 2 < len)
        return HF_CORRUPT;
    *out = hf_bytes(record.data + *at + 2, len);
    *at += 2 + len;
    return HF_OK;
}

static inline enum hf_status get_text(struct hf_bytes record, size_t *at,
                                      size_t max, struct hf_bytes *out)
{
    return get_any_text(record, at, max, out) != HF_OK || out->len == 0
               ? HF_CORRUPT
               : HF_OK;
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

/* How many items follow: as many as what came before had. */
static enum hf_status get_count(struct hf_bytes record, size_t *at,
                                const struct hold_command *command,
                                uint32_t *out)
{
    if (record.len - *at < 2)
        return HF_CORRUPT;
    *out = hf_get_u16(record.data + *at);
    *at += 2;
    return *out == 0 || *out > HOLD_ITEMS_MAX ||
                   (command->item_count > 0 && *out != command->item_count)
               ? HF_CORRUPT
               : HF_OK;
}

static enum hf_status get_items(struct hf_bytes record, size_t *at,
                                struct hold_command *command)
{
    uint32_t count;

    if (get_count(record, at, command, &count) != HF_OK)
        return HF_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        struct hold_item *item = &command->items[i];
        if (get_text(record, at, HOLD_NAME_MAX, &item->sku) != HF_OK ||
            get_number(record, at, &item->quantity) != HF_OK)
            return HF_CORRUPT;
    }
    command->item_count = count;
    return HF_OK;
}

/* They come before the items. */
static enum hf_status get_mins(struct hf_bytes record, size_t *at,
                               struct hold_command *command)
{
    uint32_t count;

    if (get_count(record, at, command, &count) != HF_OK)
        return HF_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        if (get_number(record, at, &command->items[i].least) != HF_OK)
            return HF_CORRUPT;
    }
    command->mins = true;
    command->item_count = count; /* until the items are read */
    return HF_OK;
}

/* They come before the items, too. */
static enum hf_status get_owners(struct hf_bytes record, size_t *at,
                                 struct hold_command *command)
{
    uint32_t count;

    if (get_count(record, at, command, &count) != HF_OK || count > HOLD_SET_MAX)
        return HF_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        if (get_any_text(record, at, HOLD_OWNER_MAX,
                         hold_own_owner(command, i)) != HF_OK)
            return HF_CORRUPT;
    }
    command->owners = true;
    command->item_count = count;
    return HF_OK;
}

/* What the engine's arithmetic and promises rely on, whoever wrote the record:
 * its words and what is required are there. `mask` is what it has. */
static enum hf_status check_words(const struct hold_command *c, uint32_t mask)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    uint64_t must = operation->required;

    bool in_session =
        c->session != 0 && (operation->options & HOLD_BIT(ARG_SESSION)) != 0;
    if (operation->ttl_ms > 0 && !in_session)
        must |= HOLD_BIT(ARG_TTL);
    if ((must & HOLD_BIT(ARG_MEMBER)) != 0)
        must |= HOLD_BIT(ARG_ITEM); /* where they are stored */
    if ((must & HOLD_BIT(ARG_VALUE)) != 0)
        must |= HOLD_BIT(ARG_NOTE);
    must &= HOLD_BIT(HOLD_RECORD_ARGS) - 1;
    if ((must & ~mask) != 0 || (c->told && !hold_kind_waits(c->kind)))
        return HF_CORRUPT;
    for (unsigned i = 0; i < HOLD_WORDS_MAX && operation->words[i] != WORD_END;
         i++) {
        const struct hold_arg *word = &hold_words[operation->words[i]];
        if (word->type == TYPE_TEXT || word->type == TYPE_NEW_ID) {
            size_t len = ((const struct hf_bytes *)place_of(word, c))->len;
            if (len > word->max ||
                (len == 0 && word->type == TYPE_TEXT && !word->optional))
                return HF_CORRUPT;
        } else if ((word->strict && number_of(word, c) > word->max) ||
                   (word->type == TYPE_SKUS && c->item_count == 0) ||
                   (word->type == TYPE_ITEM &&
                    (c->item_count != 1 || c->name.len > HOLD_ID_MAX))) {
            return HF_CORRUPT;
        }
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
    case TYPE_FLAG:
    case TYPE_NONE:
        return HF_CORRUPT;
    case TYPE_MINS:
        return get_mins(record, at, command);
    case TYPE_OWNERS:
        return get_owners(record, at, command);
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
__attribute__((always_inline)) static inline enum hf_status
get_args(struct hf_bytes record, uint32_t mask, struct hold_command *command,
         size_t *end)
{
    size_t at = HEAD_BYTES;

#pragma GCC unroll 8
    for (unsigned bit = 0; bit < USUAL_ARGS; bit++) {
        if ((mask & 1u << bit) != 0 &&
            get_arg(record, &at, &hold_args[bit], command) != HF_OK)
            return HF_CORRUPT;
    }
    for (mask >>= USUAL_ARGS; mask != 0; mask &= mask - 1) {
        unsigned bit = USUAL_ARGS + (unsigned)__builtin_ctz(mask);
        if (get_arg(record, &at, &hold_args[bit], command) != HF_OK)
            return HF_CORRUPT;
    }
    *end = at;
    return HF_OK;
}

/* Of a record that has them alone. */
__attribute__((always_inline)) static inline enum hf_status
get_all(struct hf_bytes record, uint32_t mask, struct hold_command *command)
{
    size_t end;

    return get_args(record, mask, command, &end) == HF_OK && end == record.len
               ? HF_OK
               : HF_CORRUPT;
}

/* Of a record about keys, which needs nothing else. */
__attribute__((always_inline)) static inline enum hf_status
get_key(struct hf_bytes record, uint32_t mask, struct hold_command *command)
{
    return get_all(record, mask, command) == HF_OK &&
                   hold_find_wrong(command) == HOLD_RIGHT
               ? hold_check_items(command)
               : HF_CORRUPT;
}

__attribute__((noinline)) static enum hf_status
decode_other(struct hf_bytes record, struct hold_command *command)
{
    uint32_t head = hf_get_u32(record.data + 8);
    uint32_t kind = head & 0xff;
    uint32_t mask = head >> 8 & ~(1u << TOLD_BIT);
    size_t end;

    if (kind >= HOLD_KINDS || hold_operations[kind].class == CLASS_NONE ||
        mask >> HOLD_RECORD_ARGS != 0)
        return HF_CORRUPT;
    command->kind = (enum hold_kind)kind;
    command->told = (head >> 8 & 1u << TOLD_BIT) != 0;
    if (get_args(record, mask, command, &end) != HF_OK ||
        ((command->mins || command->owners) && (mask & 1u << ARG_ITEM) == 0) ||
        (command->owners && kind != HOLD_KEY_SET) ||
        (kind != HOLD_GROUP && end != record.len) ||
        check_words(command, mask) != HF_OK ||
        hold_find_wrong(command) != HOLD_RIGHT)
        return HF_CORRUPT;
    if (kind != HOLD_GROUP)
        return hold_check_items(command);
    command->group = hf_bytes(record.data + end, record.len - end);
    return hold_group_check(command->group, command->count);
}

enum hf_status hold_decode(struct hf_bytes record, struct hold_command *command)
{
    if (record.len < HEAD_BYTES)
        return HF_CORRUPT;
    hold_command_clear(command);
    command->now_us = hf_get_u64(record.data);
    if (command->now_us > NOW_MAX_US)
        return HF_CORRUPT;
    switch (hf_get_u32(record.data + 8)) {
    case HOLD_LOCK | PLAIN_LOCK << 8:
        command->kind = HOLD_LOCK;
        return get_all(record, PLAIN_LOCK, command);
    case HOLD_UNLOCK | PLAIN_UNLOCK << 8:
        command->kind = HOLD_UNLOCK;
        return get_all(record, PLAIN_UNLOCK, command);
    case HOLD_KEY_SET | PLAIN_SET << 8:
        command->kind = HOLD_KEY_SET;
        return get_key(record, PLAIN_SET, command);
    case HOLD_KEY_DEL | PLAIN_DEL << 8:
        command->kind = HOLD_KEY_DEL;
        return get_key(record, PLAIN_DEL, command);
    default:
        return decode_other(record, command);
    }
}
