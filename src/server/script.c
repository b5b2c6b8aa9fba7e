/* script.c - from a script that is known to the command that it stands for. */
#include "server/script.h"

#include <openssl/sha.h>

#include "base/little.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/key.h"
#include "server/server.h"

enum {
    LOCALS_MAX = 32,
    LOCAL_FIRST = 0x80, /* how the first one is written */
};

/* ---- The text. ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

static bool is_local(char c)
{
    return (unsigned char)c >= LOCAL_FIRST;
}

/* Would the two be read otherwise side by side? */
static bool need_blank(char before, char after)
{
    return ((is_word(before) || is_local(before)) && is_word(after)) ||
           (strchr(".=<>~-", before) != NULL && strchr(".=-", after) != NULL);
}

static bool ends_with(const char *out, size_t len, const char *end)
{
    size_t end_len = strlen(end);

    return len >= end_len && memcmp(out + len - end_len, end, end_len) == 0;
}

/* Where a comment that begins at `at` ends; 0: of a kind that is not read. */
static size_t skip_comment(struct hf_bytes text, size_t at)
{
    bool is_long = at + 3 < text.len && text.data[at + 2] == '[';

    if (is_long && text.data[at + 3] == '=')
        return 0;
    if (is_long && text.data[at + 3] == '[') {
        for (at += 4; at + 1 < text.len; at++) {
            if (text.data[at] == ']' && text.data[at + 1] == ']')
                return at + 2;
        }
        return 0;
    }
    while (at < text.len && text.data[at] != '\n' && text.data[at] != '\r')
        at++;
    return at;
}

/* Copies the string that begins at `*at`, which moves behind it; `*len` is of
 * what was written. The name of a command is the same in both cases. False: it
 * has no end. */
static bool copy_string(struct hf_bytes text, size_t *at, char *out,
                        size_t *len)
{
    char quote = text.data[*at];
    size_t end = *at + 1;
    bool plain = true; /* the same in other quotes */
    bool command = ends_with(out, *len, "redis.call(") ||
                   ends_with(out, *len, "redis.pcall(");

    for (; end < text.len && text.data[end] != quote; end++) {
        char c = text.data[end];
        if (c == '\\' || c == '\n')
            return false; /* no script that is known has them */
        plain = plain && c != '"';
    }
    if (end >= text.len)
        return false;
    out[(*len)++] = plain ? '"' : quote;
    for (size_t i = *at + 1; i < end; i++) {
        char c = text.data[i];
        out[(*len)++] = command && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    out[(*len)++] = plain ? '"' : quote;
    *at = end + 1;
    return true;
}

/* The local variables, by their first mention. Each is written as one byte that
 * no script has outside of strings. */
struct locals {
    struct hf_bytes names[LOCALS_MAX];
    unsigned count;
    bool declares; /* behind `local`: a name follows */
    bool declared; /* one did: a comma goes on */
};

static bool is_name(struct hf_bytes word, const char *name)
{
    return hf_bytes_equal(word, hf_bytes_text(name));
}

/* Is it the variable that was declared right before, without a value, and is
 * set? `local n n = 1` is `local n = 1`. */
static bool is_set_at_once(struct hf_bytes text, size_t at, const char *out,
                           size_t len, unsigned local)
{
    const char declared[] = {
        'l', 'o', 'c', 'a', 'l', ' ', (char)(LOCAL_FIRST + local), ' ', '\0'};

    while (at < text.len && is_blank(text.data[at]))
        at++;
    return at + 1 < text.len && text.data[at] == '=' &&
           text.data[at + 1] != '=' && ends_with(out, len, declared);
}

/* Copies the word that begins at `*at`, which moves behind it. False: there are
 * more variables than any script has that is known. */
static bool copy_word(struct hf_bytes text, size_t *at, char *out, size_t *len,
                      struct locals *locals)
{
    bool is_field = *len > 0 && (out[*len - 1] == '.' || out[*len - 1] == ':');
    size_t end = *at;

    while (end < text.len && is_word(text.data[end]))
        end++;
    struct hf_bytes word = hf_bytes(text.data + *at, end - *at);
    unsigned i = is_field ? locals->count : 0;
    while (i < locals->count && !hf_bytes_equal(locals->names[i], word))
        i++;
    *at = end;
    locals->declared = locals->declares && !is_name(word, "function");
    locals->declares = is_name(word, "local");
    if (locals->declared && i == locals->count) {
        if (locals->count == LOCALS_MAX)
            return false;
        locals->names[locals->count++] = word;
    }
    if (i < locals->count && !is_field) {
        if (is_set_at_once(text, end, out, *len, i))
            --*len; /* the blank behind it */
        else
            out[(*len)++] = (char)(LOCAL_FIRST + i);
        return true;
    }
    memcpy(out + *len, word.data, word.len);
    *len += word.len;
    return true;
}

/* Copies what is no blank and no comment from `*at` on; false: it is not read.
 */
static bool copy_piece(struct hf_bytes text, size_t *at, char *out, size_t *len,
                       struct locals *locals)
{
    char c = text.data[*at];
    char next = *at + 1 < text.len ? text.data[*at + 1] : '\0';

    if (c == '"' || c == '\'')
        return copy_string(text, at, out, len);
    if (is_word(c))
        return copy_word(text, at, out, len, locals);
    if (c <= ' ' || c > '~' || (c == '[' && (next == '[' || next == '=')))
        return false; /* texts in brackets, and what is no script */
    locals->declares = locals->declared && c == ',';
    locals->declared = false;
    out[(*len)++] = c;
    ++*at;
    return true;
}

size_t script_normalise(struct hf_bytes text, char *out)
{
    struct locals locals = {.count = 0};
    size_t len = 0;
    size_t tables = 0; /* that are open: there a semicolon is a comma */
    bool blank = false;

    for (size_t at = 0; at < text.len;) {
        char c = text.data[at];
        char next = at + 1 < text.len ? text.data[at + 1] : '\0';
        if (c == '-' && next == '-') {
            at = skip_comment(text, at);
            if (at == 0)
                return 0;
            blank = true;
        } else if (is_blank(c) || (c == ';' && tables == 0 &&
                                   (next == '\0' || is_blank(next)))) {
            at++;
            blank = true;
        } else {
            if (blank && len > 0 && need_blank(out[len - 1], c))
                out[len++] = ' ';
            blank = false;
            if (!copy_piece(text, &at, out, &len, &locals))
                return 0;
            tables += c == '{';
            tables -= c == '}' && tables > 0;
        }
    }
    return len;
}

/* ---- Finding it. ---- */

/* Rows differ in their first digits as a rule, which are compared at once. */
static const struct script *find(const struct script_row *rows, size_t count,
                                 const char *sha1)
{
    uint64_t digits = hf_get_u64(sha1);

    for (size_t i = 0; i < count; i++) {
        if (hf_get_u64(rows[i].sha1) == digits &&
            memcmp(rows[i].sha1, sha1, SCRIPT_SHA_DIGITS) == 0)
            return &scripts[rows[i].script];
    }
    return NULL;
}

static void sha1_of(struct hf_bytes text, char out[SCRIPT_SHA_DIGITS])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sha1[SHA_DIGEST_LENGTH];

    SHA1((const unsigned char *)text.data, text.len, sha1);
    for (size_t i = 0; i < SCRIPT_SHA_DIGITS; i++)
        out[i] = digits[sha1[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf];
}

static const struct script *find_text(struct hf_bytes text)
{
    char sha1[SCRIPT_SHA_DIGITS];
    char normal[SCRIPT_TEXT_MAX];

    if (text.len > sizeof normal)
        return NULL;
    sha1_of(hf_bytes(normal, script_normalise(text, normal)), sha1);
    return find(script_texts, script_text_count, sha1);
}

/* As clients write it: in any case. */
static bool read_sha1(struct hf_bytes text, char out[SCRIPT_SHA_DIGITS])
{
    if (text.len != SCRIPT_SHA_DIGITS)
        return false;
    for (size_t i = 0; i < SCRIPT_SHA_DIGITS; i += sizeof(uint64_t)) {
        uint64_t digits = hf_get_u64(text.data + i);
        /* of letters alone, which have the bit above it, the case */
        hf_put_u64(out + i, digits | (digits & 0x4040404040404040) >> 1);
    }
    return true;
}

/* ---- What it is given. ---- */

static enum hf_status take_count(struct hf_bytes text, uint64_t *out,
                                 char error[PARSE_ERROR_MAX])
{
    return parse_number(text, "the number of permits", 1, HOLD_PERMITS_MAX, out,
                        error);
}

/* Whether the client's time is one in ms: of those since 1970 that a clock
 * tells now, seconds have fewer digits. A fraction does not count. */
static enum hf_status take_time(struct hf_bytes text, uint64_t *unit_ms,
                                char error[PARSE_ERROR_MAX])
{
    size_t digits = 0;

    while (digits < text.len && text.data[digits] >= '0' &&
           text.data[digits] <= '9')
        digits++;
    *unit_ms = digits < 12 ? 1000 : 1;
    return digits == 0 || digits > 14 ||
                   (digits < text.len && text.data[digits] != '.')
               ? key_wrong(error, WRONG_INTEGERS)
               : HF_OK;
}

/* Of a key that is to last so long; in time for nothing it is deleted, unless
 * it is set again, as where there may be several, or that depends on what is
 * left. */
static enum hf_status take_ttl(struct hold_command *c, struct hf_bytes text,
                               uint64_t unit_ms, char error[PARSE_ERROR_MAX])
{
    bool deletes = hold_say(c) == SAY_COUNT || hold_say(c) == SAY_ONE_NULL;
    int64_t number;

    if (c->kind == HOLD_KEY_EXPIRE && deletes && (c->flags & HOLD_XX) == 0 &&
        c->item_count == 0 && key_take_integer(text, &number, error) == HF_OK &&
        number <= 0 && number >= INT64_MIN / (int64_t)unit_ms) {
        c->kind = HOLD_KEY_DEL;
        return HF_OK;
    }
    return key_take_ttl(text, unit_ms,
                        c->kind == HOLD_KEY_SET ? "set" : "pexpire", &c->ttl_ms,
                        error);
}

/* Takes the key or argument that the letter stands for. */
static enum hf_status take(struct hold_command *c, char letter,
                           struct hf_bytes text, char error[PARSE_ERROR_MAX])
{
    bool sets = c->kind == HOLD_KEY_SET;
    uint64_t number;

    switch (letter) {
    case 'k':
        return key_take_name(text, &c->name, error);
    case 'v':
        return key_take_value(text, &c->owner, error);
    case 'e':
        return key_take_value(text, &c->reason, error);
    case 'h':
        return key_take_value(text, sets ? &c->owner : &c->reason, error);
    case 'N':
    case 'b':
        if (hf_bytes_equal(text, hf_bytes("0", 1))) {
            c->flags |= SCRIPT_CLOSED;
            return HF_OK;
        } /* fall through */
    case 'n':
        return take_count(text, letter == 'b' ? &c->token : &c->count, error);
    case 'c':
        return take_count(text, &c->cursor, error);
    case 'w':
    case 'W':
        return key_take_ttl(text, letter == 'w' ? 1000 : 1, "expire",
                            &c->ttl_ms, error);
    case 's':
    case 't':
        return take_ttl(c, text, letter == 's' ? 1000 : 1, error);
    case 'T':
        return text.len == 0 ? HF_OK : take_ttl(c, text, 1, error);
    case 'a':
        if (hf_bytes_equal(text, hf_bytes("0", 1)))
            c->flags |= HOLD_ADDED;
        return HF_OK;
    case 'g':
        if (hf_bytes_equal(text, hf_bytes("0", 1)))
            text = hf_bytes("1", 1); /* more than -1, which is no end */
        return key_take_ttl(text, 1, "pexpire", &c->grace_ms, error);
    case 'y':
        if (!hf_bytes_equal(text, hf_bytes_text("yes"))) {
            c->kind = HOLD_KEY_EXPIRE;
            c->flags = (c->flags & HOLD_SAY_MASK) | HOLD_EQUAL;
            c->reason = c->owner;
            c->owner = hf_bytes("", 0);
        }
        return HF_OK;
    case 'z':
        return hf_bytes_equal(text, hf_bytes("1", 1))
                   ? key_wrong(error, WRONG_ANEW)
                   : HF_OK;
    case 'u':
        return take_time(text, &c->grace_ms, error);
    case 'x':
        return key_take_ttl(text, 1, "expire", &c->ttl_ms, error);
    case 'l':
    case 'p':
        if (take_count(text, &number, error) != HF_OK)
            return HF_INVALID;
        c->permits = letter == 'l' ? number << 32 | (c->permits & UINT32_MAX)
                                   : number | c->permits >> 32 << 32;
        return HF_OK;
    default:
        return HF_OK;
    }
}

/* A value for each key: of one that is named twice the last, as Lua sets them
 * in turn. The time is the last of all, also if that is a value. */
static enum hf_status take_each(struct hold_command *c,
                                const struct hf_bytes *keys, size_t key_count,
                                const struct hf_bytes *args, size_t arg_count,
                                char error[PARSE_ERROR_MAX])
{
    if (arg_count < key_count)
        return key_wrong(error, WRONG_TOO_FEW);
    for (uint32_t k = 0; k < c->item_count; k++)
        c->items[k].quantity = 0;
    for (size_t i = 0; i < key_count; i++) {
        uint32_t k = 0;
        while (!hf_bytes_equal(c->items[k].sku, keys[i]))
            k++;
        if (c->items[k].quantity == 0)
            c->items[k].quantity = 1 + i; /* there it would be found */
        if (key_take_value(args[i], hold_own_owner(c, k), error) != HF_OK)
            return HF_INVALID;
    }
    c->owners = c->item_count > 1;
    if (!c->owners)
        c->owner = *hold_own_owner(c, 0);
    return take_ttl(c, args[arg_count - 1], 1, error);
}

/* Permits of which one number was not told. */
static void settle_permits(const struct script *script, struct hold_command *c)
{
    if (strchr(script->args, 'h') == NULL)
        return;
    uint64_t permits = c->permits & UINT32_MAX;
    permits += permits == 0;
    uint64_t of = c->kind == HOLD_KEY_SET ? c->permits >> 32 : permits;
    c->permits = permits | of << 32;
}

/* Whose unit is known when all is read. */
static void settle_window(const struct script *script, struct hold_command *c)
{
    uint64_t unit_ms = c->grace_ms == 0 ? 1000 : c->grace_ms;

    c->grace_ms = 0;
    if (strpbrk(script->args, "wWx") == NULL)
        c->ttl_ms = unit_ms;
    else if (strchr(script->args, 'x') != NULL)
        c->ttl_ms *= unit_ms; /* at most 10^18 */
}

static enum hf_status fill(const struct script *script,
                           const struct hf_bytes *keys, size_t key_count,
                           const struct hf_bytes *args, size_t arg_count,
                           struct hold_command *c, char error[PARSE_ERROR_MAX])
{
    bool many = script->keys[0] == 'K';
    enum hf_status status = HF_OK;

    c->kind = script->kind;
    c->flags = script->flags;
    if (c->kind == 0 && c->flags == SCRIPT_NOTHING)
        return key_wrong(error, WRONG_LOOK);
    if (key_count < strlen(script->keys) || arg_count < strlen(script->args))
        return key_wrong(error, WRONG_TOO_FEW);
    for (size_t i = 0; many && i < key_count && status == HF_OK; i++)
        status = key_add(c, keys[i], error);
    for (size_t i = 0; !many && script->keys[i] != '\0' && status == HF_OK; i++)
        status = take(c, script->keys[i], keys[i], error);
    bool each = script->args[0] == 'V';
    if (each && status == HF_OK)
        status = take_each(c, keys, key_count, args, arg_count, error);
    for (size_t i = 0; !each && script->args[i] != '\0' && status == HF_OK; i++)
        status = take(c, script->args[i], args[i], error);
    if (status != HF_OK)
        return status;
    if (c->kind == 0) {
        c->cursor += strchr(script->args, 'c') == NULL; /* one */
        settle_window(script, c);
    }
    if (many && c->item_count < key_count)
        c->count = key_count; /* Lua counts one that was named twice, too */
    key_settle_names(c);
    settle_permits(script, c);
    return (c->permits & UINT32_MAX) > c->permits >> 32
               ? key_wrong(error, WRONG_PERMITS)
               : HF_OK;
}

/* What follows the text, or its SHA1: numkeys, keys, arguments. */
static enum hf_status make(const struct script *script,
                           const struct hf_bytes *args, size_t count,
                           struct hold_command *out,
                           char error[PARSE_ERROR_MAX])
{
    int64_t keys;

    if (key_take_integer(args[1], &keys, error) != HF_OK)
        return HF_FAILED;
    if (keys < 0)
        return key_wrong(error, WRONG_NEGATIVE);
    if ((uint64_t)keys > count - 2)
        return key_wrong(error, WRONG_NUMKEYS);
    return fill(script, args + 2, (size_t)keys, args + 2 + keys,
                count - 2 - (size_t)keys, out, error);
}

enum hf_status script_eval(const struct command *command,
                           const struct hf_bytes *args, size_t count,
                           struct hold_command *out,
                           char error[PARSE_ERROR_MAX])
{
    (void)command;
    if (count < 2)
        return key_wrong(error, WRONG_ARITY, 4, "eval");
    const struct script *script = find_text(args[0]);
    return script == NULL ? key_wrong(error, WRONG_SCRIPT)
                          : make(script, args, count, out, error);
}

/* HF_EMPTY, and no text: it is not among these. */
static enum hf_status evalsha(const struct script_row *rows, size_t row_count,
                              const struct hf_bytes *args, size_t count,
                              struct hold_command *out,
                              char error[PARSE_ERROR_MAX])
{
    char sha1[SCRIPT_SHA_DIGITS];
    const struct script *script =
        read_sha1(args[0], sha1) ? find(rows, row_count, sha1) : NULL;

    return script == NULL ? HF_EMPTY : make(script, args, count, out, error);
}

enum hf_status script_evalsha(const struct command *command,
                              const struct hf_bytes *args, size_t count,
                              struct hold_command *out,
                              char error[PARSE_ERROR_MAX])
{
    (void)command;
    if (count < 2)
        return key_wrong(error, WRONG_ARITY, 7, "evalsha");
    return evalsha(script_shas, script_sha_count, args, count, out, error);
}

/* ---- What was sent. ---- */

static bool is_remembered(const struct script_memory *memory, const char *sha1)
{
    return find(script_shas, script_sha_count, sha1) != NULL ||
           find(memory->rows, memory->count, sha1) != NULL;
}

static void remember(struct script_memory *memory, struct hf_bytes text)
{
    struct script_row *row = &memory->rows[memory->next];
    char sha1[SCRIPT_SHA_DIGITS];

    sha1_of(text, sha1);
    if (is_remembered(memory, sha1))
        return;
    const struct script *script = find_text(text);
    memcpy(row->sha1, sha1, sizeof sha1);
    row->script = (uint8_t)(script - scripts);
    memory->next = (memory->next + 1) % SCRIPTS_MAX;
    memory->count += memory->count < SCRIPTS_MAX;
}

enum hf_status script_parsed(const struct asked *asked,
                             const struct command *command,
                             enum hf_status status, char error[PARSE_ERROR_MAX])
{
    struct script_memory *memory = &asked->server->scripts;

    if (status == HF_EMPTY) {
        status = evalsha(memory->rows, memory->count, asked->args, asked->count,
                         &asked->server->command, error);
        if (status == HF_EMPTY)
            (void)key_wrong(error, WRONG_NOSCRIPT);
        return status;
    }
    if (status == HF_OK && command != NULL && command->make == script_eval)
        remember(memory, asked->args[0]);
    return status;
}

void script_load(const struct asked *asked)
{
    char sha1[SCRIPT_SHA_DIGITS];

    if (find_text(asked->args[0]) == NULL) {
        answer_error(asked->server, asked->conn, ERROR_SCRIPT);
        return;
    }
    remember(&asked->server->scripts, asked->args[0]);
    sha1_of(asked->args[0], sha1);
    reply_put_bytes(asked->reply, hf_bytes(sha1, sizeof sha1));
}

void script_exists(const struct asked *asked)
{
    char sha1[SCRIPT_SHA_DIGITS];

    reply_put_list(asked->reply, asked->count);
    for (size_t i = 0; i < asked->count; i++)
        reply_put_number(asked->reply,
                         read_sha1(asked->args[i], sha1) &&
                             is_remembered(&asked->server->scripts, sha1));
}

void script_flush(const struct asked *asked)
{
    bool right = asked->count == 0 || hf_bytes_is(asked->args[0], "ASYNC") ||
                 hf_bytes_is(asked->args[0], "SYNC");

    if (!right) {
        answer_error(asked->server, asked->conn, ERROR_FLUSH);
        return;
    }
    asked->server->scripts.count = asked->server->scripts.next = 0;
    reply_put_simple(asked->reply, "OK");
}
