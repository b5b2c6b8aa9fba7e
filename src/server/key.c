/* key.c - from the words of Redis to commands about keys. */
#include "server/key.h"

#include <stdarg.h>
#include <stdio.h>

#include "resp/resp.h"
#include "server/errors.h"
#include "server/script.h"

enum hf_status key_wrong(char error[PARSE_ERROR_MAX], const char *sentence, ...)
{
    va_list facts;

    va_start(facts, sentence);
    vsnprintf(error, PARSE_ERROR_MAX, sentence, facts);
    va_end(facts);
    return HF_FAILED;
}

enum hf_status key_take_name(struct hf_bytes text, struct hf_bytes *out,
                             char error[PARSE_ERROR_MAX])
{
    return parse_text(text, "the key", HOLD_NAME_MAX, out, error);
}

enum hf_status key_take_value(struct hf_bytes text, struct hf_bytes *out,
                              char error[PARSE_ERROR_MAX])
{
    *out = text;
    return text.len == 0
               ? HF_OK
               : parse_text(text, "the value", HOLD_OWNER_MAX, out, error);
}

/* As Redis reads it: 05 and -0 are no integers. */
enum hf_status key_take_integer(struct hf_bytes text, int64_t *out,
                                char error[PARSE_ERROR_MAX])
{
    size_t sign = text.len > 0 && text.data[0] == '-';
    bool zero = text.len > sign && text.data[sign] == '0';

    return (zero && text.len > 1) || hf_parse_i64(text, out) != HF_OK
               ? key_wrong(error, WRONG_INTEGERS)
               : HF_OK;
}

enum hf_status key_take_ttl(struct hf_bytes text, uint64_t unit_ms,
                            const char *command, uint64_t *out,
                            char error[PARSE_ERROR_MAX])
{
    int64_t number;

    if (key_take_integer(text, &number, error) != HF_OK)
        return HF_FAILED;
    if (number <= 0 || (uint64_t)number > HOLD_TTL_MAX_MS / unit_ms)
        return key_wrong(error, WRONG_EXPIRE, command);
    *out = (uint64_t)number * unit_ms;
    return HF_OK;
}

static enum hf_status too_many(char error[PARSE_ERROR_MAX])
{
    snprintf(error, PARSE_ERROR_MAX, WRONG_KEYS, HOLD_SET_MAX);
    return HF_INVALID;
}

enum hf_status key_add(struct hold_command *command, struct hf_bytes name,
                       char error[PARSE_ERROR_MAX])
{
    if (key_take_name(name, &name, error) != HF_OK)
        return HF_INVALID;
    if (hold_add_name(command, name, false) != HF_FULL)
        return HF_OK; /* one that was there counts once */
    return too_many(error);
}

void key_settle_names(struct hold_command *command)
{
    if (command->item_count != 1)
        return;
    command->name = command->items[0].sku;
    command->item_count = 0;
}

/* ---- What they take. Words are read as bytes and looked at afterwards, since
 * what is wrong with an option is told otherwise. ---- */

#define AT(field) .place = offsetof(struct hold_command, field)
enum {
    WORD_KEY = 1,
    WORD_OLD_VALUE,
    WORD_NEW_VALUE,
    WORD_MILLISECONDS,
    WORD_SECONDS,
    WORD_KEY_PATTERN,
    WORD_KEY_CURSOR,
    WORD_MEMBER,
    WORD_KEYS,
    WORD_SCRIPT,
    WORD_SHA1,
    WORD_NUMKEYS,
    WORD_REST,
};
static const struct hold_arg words[] = {
    [WORD_KEY] = {"key", .type = TYPE_BYTES, AT(name)},
    [WORD_OLD_VALUE] = {"value", .type = TYPE_BYTES, AT(reason)},
    [WORD_NEW_VALUE] = {"value", .type = TYPE_BYTES, AT(owner)},
    [WORD_MILLISECONDS] = {"milliseconds", .type = TYPE_BYTES, AT(note)},
    [WORD_SECONDS] = {"seconds", .type = TYPE_BYTES, AT(note)},
    [WORD_KEY_PATTERN] = {"pattern", .type = TYPE_BYTES, AT(name)},
    [WORD_KEY_CURSOR] = {"cursor", .type = TYPE_BYTES, AT(note)},
    [WORD_MEMBER] = {"member", .type = TYPE_BYTES, AT(reason)},
    [WORD_KEYS] = {"key", .form = "key [key ...]", .many = true,
                   .max = RESP_ARGS_MAX},
    [WORD_SCRIPT] = {.name = "script"},
    [WORD_SHA1] = {.name = "sha1"},
    [WORD_NUMKEYS] = {.name = "numkeys"},
    [WORD_REST] = {"arg", .form = "[key ...] [arg ...]", .optional = true,
                   .many = true, .max = RESP_ARGS_MAX},
};
enum {
    OPT_NX,
    OPT_XX,
    OPT_GET,
    OPT_KEEPTTL,
    OPT_EX,
    OPT_PX,
    OPT_EXAT,
    OPT_PXAT,
    OPT_IFEQ,
    OPT_MATCH,
    OPT_COUNT,
    OPT_TYPE,
    OPTS,
};
#define BIT(option) HOLD_BIT(OPT_##option)
static const struct hold_arg options[OPTS] = {
    [OPT_NX] = {"NX", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_NX},
    [OPT_XX] = {"XX", "", .type = TYPE_FLAG, AT(flags), .min = HOLD_XX},
    [OPT_GET] = {"GET", "", .type = TYPE_FLAG},
    [OPT_KEEPTTL] = {"KEEPTTL", "", .type = TYPE_FLAG, AT(flags),
                     .min = HOLD_KEEPTTL},
    [OPT_EX] = {"EX", "seconds", .type = TYPE_OWN, .min = 1},
    [OPT_PX] = {"PX", "milliseconds", .type = TYPE_OWN, .min = 1},
    [OPT_EXAT] = {"EXAT", "unix-seconds", .type = TYPE_OWN, .min = 1},
    [OPT_PXAT] = {"PXAT", "unix-milliseconds", .type = TYPE_OWN, .min = 1},
    [OPT_IFEQ] = {"IFEQ", "value", .type = TYPE_BYTES, AT(reason)},
    [OPT_MATCH] = {"MATCH", "pattern", .type = TYPE_BYTES, AT(name)},
    [OPT_COUNT] = {"COUNT", "n", .type = TYPE_OWN, .min = 1},
    [OPT_TYPE] = {"TYPE", "string|zset", .type = TYPE_OWN, .min = 1},
};
static struct vocabulary vocabulary = {
    .words = words, .options = options, .option_count = OPTS};

static enum hf_status take_own(struct parse *p, unsigned option)
{
    struct hold_command *c = p->out;
    struct hf_bytes text = p->args[p->at++];
    bool seconds = option == OPT_EX || option == OPT_EXAT;
    int64_t number;

    switch (option) {
    case OPT_COUNT:
        if (key_take_integer(text, &number, p->error) != HF_OK)
            return HF_FAILED;
        if (number < 1)
            return key_wrong(p->error, WRONG_SYNTAX);
        c->count = number < HOLD_LIST_MAX ? (uint64_t)number : HOLD_LIST_MAX;
        return HF_OK;
    case OPT_TYPE: /* of one that there is not, nothing is found */
        c->amount = hf_bytes_is(text, "STRING") ? KEY_STRING
                    : hf_bytes_is(text, "ZSET") ? KEY_ZSET
                                                : KEY_TYPES;
        return HF_OK;
    default:
        if (option == OPT_EXAT || option == OPT_PXAT)
            c->flags |= HOLD_AT;
        return key_take_ttl(text, seconds ? 1000 : 1, "set", &c->ttl_ms,
                            p->error);
    }
}

static bool is_one_of(uint64_t seen, uint64_t among)
{
    seen &= among;
    return (seen & (seen - 1)) == 0;
}

/* What the options say together. */
static bool go_together(uint64_t seen)
{
    return is_one_of(seen, BIT(NX) | BIT(XX) | BIT(IFEQ)) &&
           is_one_of(seen,
                     BIT(EX) | BIT(PX) | BIT(EXAT) | BIT(PXAT) | BIT(KEEPTTL));
}

static enum hf_status wrong_count(const struct command *command,
                                  char error[PARSE_ERROR_MAX])
{
    char name[16];
    size_t len = 0;

    for (; command->name[len] != '\0'; len++)
        name[len] = (char)(command->name[len] | 0x20);
    return key_wrong(error, WRONG_ARITY, (int)len, name);
}

/* The word that is a time, of EXPIRE. What is over by then is deleted. */
static enum hf_status take_time(const struct command *command,
                                struct hold_command *c,
                                char error[PARSE_ERROR_MAX])
{
    bool seconds = command->shape->words[1] == WORD_SECONDS;
    const char *name = seconds ? "expire" : "pexpire";
    int64_t unit_ms = seconds ? 1000 : 1;
    int64_t number;

    if (key_take_integer(c->note, &number, error) != HF_OK)
        return HF_FAILED;
    if (number < INT64_MIN / unit_ms) /* no number of milliseconds */
        return key_wrong(error, WRONG_EXPIRE, name);
    if (number <= 0)
        c->kind = HOLD_KEY_DEL;
    else if (key_take_ttl(c->note, (uint64_t)unit_ms, name, &c->ttl_ms,
                          error) != HF_OK)
        return HF_FAILED;
    c->note.len = 0;
    return HF_OK;
}

static enum hf_status take_cursor(struct hold_command *c,
                                  char error[PARSE_ERROR_MAX])
{
    if (hf_parse_u64(c->note, &c->cursor) != HF_OK || c->cursor > UINT32_MAX)
        return key_wrong(error, WRONG_CURSOR);
    c->note.len = 0;
    if (c->count == 0)
        c->count = 10;
    return HF_OK;
}

/* What the words say. */
static enum hf_status finish(const struct command *command,
                             struct hold_command *c,
                             char error[PARSE_ERROR_MAX])
{
    uint8_t second = command->shape->words[1];
    bool is_key = command->shape->words[0] == WORD_KEY;

    if (second == WORD_MILLISECONDS || second == WORD_SECONDS) {
        if (take_time(command, c, error) != HF_OK)
            return HF_FAILED;
    } else if (command->shape->words[0] == WORD_KEY_CURSOR &&
               take_cursor(c, error) != HF_OK) {
        return HF_FAILED;
    }
    if (is_key && key_take_name(c->name, &c->name, error) != HF_OK)
        return HF_INVALID;
    if (!is_key && c->name.len > HOLD_NAME_MAX)
        return parse_text(c->name, "the pattern", HOLD_NAME_MAX, &c->name,
                          error);
    if (key_take_value(c->owner, &c->owner, error) != HF_OK)
        return HF_INVALID;
    return key_take_value(c->reason, &c->reason, error);
}

static enum hf_status make(const struct command *command,
                           const struct hf_bytes *args, size_t count,
                           struct hold_command *out,
                           char error[PARSE_ERROR_MAX])
{
    struct parse p = {.shape = command->shape,
                      .args = args,
                      .count = count,
                      .out = out,
                      .error = error,
                      .own = take_own};

    if (count + 1 < command->args_min ||
        (count + 1 > command->args_max && command->shape->options == 0))
        return wrong_count(command, error);
    out->flags = command->as;
    enum hf_status status = parse_shape(&p);
    if (status == HF_INVALID || (status == HF_OK && !go_together(p.seen)))
        return key_wrong(error, WRONG_SYNTAX);
    if (status != HF_OK)
        return status;
    if ((p.seen & BIT(GET)) != 0)
        out->flags |= (uint64_t)SAY_VALUE << HOLD_SAY_SHIFT;
    if ((p.seen & BIT(IFEQ)) != 0)
        out->flags |= HOLD_EQUAL;
    bool lists = command->shape->words[0] == WORD_KEY_PATTERN ||
                 (p.seen & BIT(MATCH)) != 0;
    if (lists && out->name.len == 0)
        out->amount = KEY_TYPES; /* no name is empty */
    if (command->shape->words[1] == WORD_MEMBER)
        out->permits = 1 | UINT64_C(1) << 32;
    return finish(command, out, error);
}

/* Of those that have as many keys as they like. EXISTS counts each as often as
 * it is named. */
static enum hf_status make_many(const struct command *command,
                                const struct hf_bytes *args, size_t count,
                                struct hold_command *out,
                                char error[PARSE_ERROR_MAX])
{
    bool counts = out->kind == HOLD_KEY_COUNT;

    if (count == 0)
        return wrong_count(command, error);
    if (counts && count > HOLD_SET_MAX)
        return too_many(error);
    out->flags = command->as;
    for (size_t i = 0; i < count; i++) {
        struct hold_item *item = &out->items[out->item_count];
        if (!counts) {
            if (key_add(out, args[i], error) != HF_OK)
                return HF_INVALID;
            continue;
        }
        if (key_take_name(args[i], &item->sku, error) != HF_OK)
            return HF_INVALID;
        item->quantity = 0;
        out->item_count++;
    }
    if (!counts)
        key_settle_names(out);
    return HF_OK;
}

/* ---- The commands. ---- */

#define TAKES(bits, ...)                                                     \
    .shape = &(const struct shape)                                           \
    {                                                                        \
        .vocabulary = &vocabulary, .words = {__VA_ARGS__}, .options = (bits) \
    }
#define OF(number, flags) "redis", (flags), .kind = HOLD_KEY_##number
#define WRITE(number)     OF(number, COMMAND_WRITE)
#define READ(number)      OF(number, COMMAND_READ)
#define READ_ALL(number)  OF(number, COMMAND_READ | COMMAND_HELD)
#define AS(flags, say)    .as = (flags) | (uint64_t)(say) << HOLD_SAY_SHIFT
#define MAKE(flags, say)  .make = make, AS(flags, say)
#define MANY              .make = make_many, AS(0, SAY_COUNT)
#define SET_OPTIONS                                                            \
    BIT(NX) | BIT(XX) | BIT(IFEQ) | BIT(GET) | BIT(EX) | BIT(PX) | BIT(EXAT) | \
        BIT(PXAT) | BIT(KEEPTTL)

/* The first of a kind is the one whose time is measured. */
const struct command key_commands[] = {
    {"SET",
     "Takes a lock: the key is its name, the value its owner. A key that SET "
     "made is taken over, with a new token; NX: only if it is free",
     "OK, or null; GET: the old value, or null; -WRONGTYPE -BUSY", WRITE(SET),
     TAKES(SET_OPTIONS, WORD_KEY, WORD_NEW_VALUE), MAKE(0, SAY_OK)},
    {"SETNX", "As SET with NX", "1 or 0", WRITE(SET),
     TAKES(0, WORD_KEY, WORD_NEW_VALUE), MAKE(HOLD_NX, SAY_COUNT)},
    {"DEL", "Gives keys back that SET made", "how many; -WRONGTYPE", WRITE(DEL),
     TAKES(0, WORD_KEYS), MANY},
    {"UNLINK", "As DEL", "how many; -WRONGTYPE", WRITE(DEL),
     TAKES(0, WORD_KEYS), MANY},
    {"GETDEL", "Gives a key back, and tells its value",
     "the value, or null; -WRONGTYPE", WRITE(DEL), TAKES(0, WORD_KEY),
     MAKE(0, SAY_VALUE)},
    {"DELIFEQ", "Gives a key back if it has this value", "1 or 0; -WRONGTYPE",
     WRITE(DEL), TAKES(0, WORD_KEY, WORD_OLD_VALUE),
     MAKE(HOLD_EQUAL, SAY_COUNT)},
    {"DELEX", "Gives a key back; IFEQ: if it has this value",
     "1 or 0; -WRONGTYPE", WRITE(DEL), TAKES(BIT(IFEQ), WORD_KEY),
     MAKE(0, SAY_COUNT)},
    {"ZREM", "Gives the permits back that a holder of a semaphore has",
     "how many; -WRONGTYPE", WRITE(DEL), TAKES(0, WORD_KEY, WORD_MEMBER),
     MAKE(0, SAY_COUNT)},
    {"PEXPIRE",
     "Sets how long a key is held from now on; 0 or less: deletes it",
     "1 or 0; -WRONGTYPE", WRITE(EXPIRE), TAKES(0, WORD_KEY, WORD_MILLISECONDS),
     MAKE(0, SAY_COUNT)},
    {"EXPIRE", "As PEXPIRE, in seconds", "1 or 0; -WRONGTYPE", WRITE(EXPIRE),
     TAKES(0, WORD_KEY, WORD_SECONDS), MAKE(0, SAY_COUNT)},
    {"PERSIST", "Lets a key have no end", "1, or 0 if it had none; -WRONGTYPE",
     WRITE(EXPIRE), TAKES(0, WORD_KEY), MAKE(0, SAY_COUNT)},
    {"GET", "Tells the value of a key, or the owner of an exclusive lock",
     "the value, or null; -WRONGTYPE", READ(GET), TAKES(0, WORD_KEY),
     MAKE(0, SAY_VALUE)},
    {"PTTL", "Tells how long a key is held, in milliseconds",
     "number; -1: it has no end, -2: no such key", READ(GET),
     TAKES(0, WORD_KEY), MAKE(0, SAY_PTTL)},
    {"TTL", "As PTTL, in seconds", "number, as PTTL", READ(GET),
     TAKES(0, WORD_KEY), MAKE(0, SAY_TTL)},
    {"TYPE", "Tells what a key is",
     "string (exclusive), zset (shared or counting) or none", READ(GET),
     TAKES(0, WORD_KEY), MAKE(0, SAY_TYPE)},
    {"EXISTS", "Counts those of these keys that are held", "number",
     READ_ALL(COUNT), TAKES(0, WORD_KEYS), MANY},
    {"DBSIZE", "Counts the locks that are held", "number", READ_ALL(COUNT),
     TAKES(0), MAKE(0, SAY_COUNT)},
    {"SCAN", "Lists the names of held locks, in pages",
     "list: cursor (0: that was all), list of names", READ_ALL(SCAN),
     TAKES(BIT(MATCH) | BIT(COUNT) | BIT(TYPE), WORD_KEY_CURSOR),
     MAKE(0, SAY_OK)},
    {"KEYS", "Lists the names of held locks, if they are not more than 1000",
     "list of names; -OVERLOADED", READ_ALL(SCAN), TAKES(0, WORD_KEY_PATTERN),
     MAKE(0, SAY_ALL)},
    {"EVAL", "Carries out a script that is known: see docs/redis.md",
     "what the script returns; -ERR", "redis", COMMAND_WRITE,
     TAKES(0, WORD_SCRIPT, WORD_NUMKEYS, WORD_REST), .make = script_eval},
    {"EVALSHA", "As EVAL, by the SHA1 of the script",
     "what the script returns; -NOSCRIPT", "redis", COMMAND_WRITE,
     TAKES(0, WORD_SHA1, WORD_NUMKEYS, WORD_REST), .make = script_evalsha},
};
const size_t key_command_count = sizeof key_commands / sizeof key_commands[0];
