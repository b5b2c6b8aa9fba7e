/* parse.c - arguments to values, as a shape describes them. */
#include "server/parse.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "resp/resp.h"
#include "server/errors.h"

enum hf_status parse_wrong(struct parse *p, const char *what,
                           struct hf_bytes value)
{
    snprintf(p->error, PARSE_ERROR_MAX, WRONG_WORD, what, PRINTED(value),
             value.len > 64 ? "..." : "");
    return HF_INVALID;
}

enum hf_status parse_text(struct hf_bytes text, const char *what, size_t max,
                          struct hf_bytes *out, char error[PARSE_ERROR_MAX])
{
    if (text.len > 0 && text.len <= max) {
        *out = text;
        return HF_OK;
    }
    if (text.len == 0)
        snprintf(error, PARSE_ERROR_MAX, WRONG_EMPTY, what);
    else
        snprintf(error, PARSE_ERROR_MAX, WRONG_LONG, what, text.len, max);
    return HF_INVALID;
}

enum hf_status parse_number(struct hf_bytes text, const char *what,
                            uint64_t min, uint64_t max, uint64_t *out,
                            char error[PARSE_ERROR_MAX])
{
    uint64_t number;

    if (hf_parse_u64(text, &number) != HF_OK || number < min || number > max) {
        snprintf(error, PARSE_ERROR_MAX, WRONG_NUMBER, what,
                 (unsigned long long)min, (unsigned long long)max,
                 PRINTED(text));
        return HF_INVALID;
    }
    *out = number;
    return HF_OK;
}

static enum hf_status take_signed(struct parse *p, const struct hold_arg *arg)
{
    struct hf_bytes text = p->args[p->at++];
    int64_t *out = (void *)((char *)p->out + arg->place);

    if (hf_parse_i64(text, out) != HF_OK)
        return parse_wrong(p, WRONG_INTEGER, text);
    if (*out == 0 && arg->type == TYPE_CHANGE)
        return parse_wrong(p, WRONG_CHANGE, text);
    return HF_OK;
}

static enum hf_status take_version(struct parse *p, const struct hold_arg *arg)
{
    uint64_t *out = (void *)((char *)p->out + arg->place);
    uint64_t version;

    if (parse_number(p->args[p->at++], arg->name, arg->min, arg->max, &version,
                     p->error) != HF_OK)
        return HF_INVALID;
    *out = version + 1;
    return HF_OK;
}

static enum hf_status take_item(struct parse *p, const struct hold_arg *arg)
{
    struct hf_bytes sku;
    uint64_t quantity;
    uint64_t least;

    if (parse_text(p->args[p->at++], "sku", HOLD_SKU_MAX, &sku, p->error) !=
            HF_OK ||
        parse_number(p->args[p->at++], "the quantity", 1, HOLD_STOCK_MAX,
                     &quantity, p->error) != HF_OK)
        return HF_INVALID;
    least = quantity;
    if (arg->min != 0 && p->at < p->count &&
        hf_bytes_is(p->args[p->at], "MIN")) {
        if (++p->at == p->count) {
            p->missing = true;
            return parse_wrong(p, WRONG_VALUE, p->args[p->at - 1]);
        }
        if (parse_number(p->args[p->at++], "MIN", 1, quantity, &least,
                         p->error) != HF_OK)
            return HF_INVALID;
    }
    switch (hold_add_some(p->out, sku, quantity, least)) {
    case HF_OK:
        return HF_OK;
    case HF_FULL:
        snprintf(p->error, PARSE_ERROR_MAX, WRONG_ITEMS, HOLD_ITEMS_MAX);
        return HF_INVALID;
    default:
        return parse_wrong(p, WRONG_SUM, sku);
    }
}

static enum hf_status take_skus(struct parse *p)
{
    struct hold_command *out = p->out;

    if (p->count - p->at > HOLD_ITEMS_MAX) {
        snprintf(p->error, PARSE_ERROR_MAX, WRONG_SKUS, HOLD_ITEMS_MAX);
        return HF_INVALID;
    }
    while (p->at < p->count) {
        struct hold_item *item = &out->items[out->item_count++];
        item->quantity = 0;
        if (parse_text(p->args[p->at++], "sku", HOLD_SKU_MAX, &item->sku,
                       p->error) != HF_OK)
            return HF_INVALID;
    }
    return HF_OK;
}

/* Sets the bits that a flag stands for; one without bits is noted as seen. */
static void set_bits(struct parse *p, const struct hold_arg *arg, uint64_t bits)
{
    uint64_t *out = (void *)((char *)p->out + arg->place);

    *out |= bits;
}

/* One of the words in `value`, which are parted by bars. */
static enum hf_status take_choice(struct parse *p, const struct hold_arg *arg)
{
    struct hf_bytes word = p->args[p->at++];
    const char *at = arg->value;

    for (uint64_t i = 0; at != NULL; i++) {
        const char *bar = strchr(at, '|');
        size_t len = bar == NULL ? strlen(at) : (size_t)(bar - at);
        char name[16];
        assert(len < sizeof name);
        memcpy(name, at, len);
        name[len] = '\0';
        if (hf_bytes_is(word, name)) {
            set_bits(p, arg, i << arg->min);
            return HF_OK;
        }
        at = bar == NULL ? NULL : bar + 1;
    }
    snprintf(p->error, PARSE_ERROR_MAX, WRONG_CHOICE, arg->name, arg->value,
             PRINTED(word));
    return HF_INVALID;
}

static enum hf_status take_permits(struct parse *p, const struct hold_arg *arg)
{
    uint64_t *out = (void *)((char *)p->out + arg->place);
    uint64_t permits;
    uint64_t max;

    if (parse_number(p->args[p->at], "PERMITS", arg->min, arg->max, &permits,
                     p->error) != HF_OK)
        return HF_INVALID;
    if (!hf_bytes_is(p->args[p->at + 1], "OF"))
        return parse_wrong(p, WRONG_OF, p->args[p->at + 1]);
    if (parse_number(p->args[p->at + 2], "the number of permits", arg->min,
                     arg->max, &max, p->error) != HF_OK)
        return HF_INVALID;
    p->at += 3;
    *out = permits | max << 32;
    return HF_OK;
}

static enum hf_status take_member(struct parse *p)
{
    struct hf_bytes name;

    if (parse_text(p->args[p->at++], "name", HOLD_NAME_MAX, &name, p->error) !=
        HF_OK)
        return HF_INVALID;
    bool shared = p->at < p->count && hf_bytes_is(p->args[p->at], "SHARED");
    p->at += shared;
    switch (hold_add_name(p->out, name, shared)) {
    case HF_OK:
        return HF_OK;
    case HF_FULL:
        snprintf(p->error, PARSE_ERROR_MAX, WRONG_NAMES, HOLD_SET_MAX);
        return HF_INVALID;
    default:
        return parse_wrong(p, WRONG_NAME_AGAIN, name);
    }
}

static enum hf_status take_place(struct parse *p, const struct hold_arg *arg)
{
    struct hf_bytes place;

    if (parse_text(p->args[p->at++], arg->name, arg->max, &place, p->error) !=
        HF_OK)
        return HF_INVALID;
    switch (hold_add_place(p->out, place)) {
    case HF_OK:
        return HF_OK;
    case HF_FULL:
        snprintf(p->error, PARSE_ERROR_MAX, WRONG_PLACES, HOLD_PLACES_MAX,
                 HOLD_NOTE_MAX);
        return HF_INVALID;
    default:
        return parse_wrong(p, WRONG_PLACE, place);
    }
}

static enum hf_status take_new_id(struct parse *p, const struct hold_arg *arg)
{
    struct hf_bytes id = p->args[p->at++];

    if (hf_bytes_equal(id, hf_bytes("*", 1)))
        return HF_OK;
    return parse_text(id, arg->name, arg->max,
                      (void *)((char *)p->out + arg->place), p->error);
}

static enum hf_status take_special(struct parse *p, const struct hold_arg *arg)
{
    switch (arg->type) {
    case TYPE_NEW_ID:
        return take_new_id(p, arg);
    case TYPE_SIGNED:
    case TYPE_CHANGE:
        return take_signed(p, arg);
    case TYPE_VERSION:
        return take_version(p, arg);
    case TYPE_ITEM:
        return take_item(p, arg);
    case TYPE_SKUS:
        return take_skus(p);
    case TYPE_OWN:
        return p->own(p, (unsigned)(arg - p->shape->vocabulary->options));
    case TYPE_CHOICE:
        return take_choice(p, arg);
    case TYPE_PERMITS:
        return take_permits(p, arg);
    case TYPE_MEMBER:
        return take_member(p);
    case TYPE_PLACE:
        return take_place(p, arg);
    default:
        assert(arg->type == TYPE_FLAG);
        if (arg->min != 0)
            set_bits(p, arg, arg->min);
        return HF_OK;
    }
}

/* Reads values that are seldom, or wrong. */
__attribute__((noinline)) static enum hf_status
take_other(struct parse *p, const struct hold_arg *arg)
{
    void *out = (char *)p->out + arg->place;

    if (arg->type == TYPE_TEXT && arg->empty && p->args[p->at].len == 0) {
        p->at++;
        return HF_OK; /* as if it were not given */
    }
    if (arg->type == TYPE_TEXT)
        return parse_text(p->args[p->at++], arg->name, arg->max, out, p->error);
    if (arg->type == TYPE_NUMBER)
        return parse_number(p->args[p->at++], arg->name, arg->min, arg->max,
                            out, p->error);
    return take_special(p, arg);
}

/* The values of one word or option; they are there. */
static inline enum hf_status take(struct parse *p, const struct hold_arg *arg)
{
    const struct hf_bytes *value = &p->args[p->at]; /* of a flag, none */
    char *out = (char *)p->out + arg->place;
    uint64_t number;

    if (arg->type == TYPE_TEXT && value->len - 1 < arg->max) {
        memcpy(out, value, sizeof *value);
    } else if (arg->type == TYPE_NUMBER &&
               hf_parse_u64(*value, &number) == HF_OK && number >= arg->min &&
               number <= arg->max) {
        memcpy(out, &number, sizeof number);
    } else if (arg->type == TYPE_BYTES) {
        memcpy(out, value, sizeof *value);
    } else {
        return take_other(p, arg);
    }
    p->at++;
    return HF_OK;
}

size_t parse_values(const struct hold_arg *option)
{
    if (option->type == TYPE_TEXT || option->type == TYPE_NUMBER)
        return 1; /* most */
    if (option->type == TYPE_OWN)
        return (size_t)option->min;
    if (option->type == TYPE_PERMITS)
        return 3;
    return option->type == TYPE_ITEM ? 2 : option->type != TYPE_FLAG;
}

static enum hf_status missing_one(struct parse *p)
{
    snprintf(p->error, PARSE_ERROR_MAX, WRONG_MISSING);
    p->missing = true;
    return HF_INVALID;
}

#define NO_OPTION PARSE_OPTIONS_MAX

/* The option of this name, of `among`. */
static inline unsigned find_option(const struct vocabulary *vocabulary,
                                   struct hf_bytes word, uint64_t among)
{
    if (word.len == 0)
        return NO_OPTION;
    among &= vocabulary->letters[word.data[0] & 31];
    uint64_t letters = parse_letters(word);
    for (; among != 0; among &= among - 1) {
        unsigned option = (unsigned)__builtin_ctzll(among);
        uint64_t name = vocabulary->names[option];
        if (name != 0 ? name == letters
                      : hf_bytes_is(word, vocabulary->options[option].name))
            return option;
    }
    return NO_OPTION;
}

unsigned parse_option(const struct shape *shape, struct hf_bytes word)
{
    return find_option(shape->vocabulary, word, shape->options);
}

static enum hf_status take_options(struct parse *p)
{
    const struct shape *shape = p->shape;
    const struct vocabulary *vocabulary = shape->vocabulary;
    uint64_t seen = 0;

    while (p->at < p->count) {
        struct hf_bytes word = p->args[p->at++];
        unsigned found = find_option(vocabulary, word, shape->options);
        if (found == NO_OPTION)
            return parse_wrong(p, WRONG_OPTION, word);
        const struct hold_arg *option = &vocabulary->options[found];
        if ((seen & HOLD_BIT(found)) != 0 && !option->many)
            return parse_wrong(p, WRONG_TWICE, word);
        if (p->count - p->at < parse_values(option)) {
            p->missing = true;
            return parse_wrong(p, WRONG_VALUE, word);
        }
        seen |= HOLD_BIT(found);
        enum hf_status status = take(p, option);
        if (status != HF_OK)
            return status;
    }
    p->seen = seen;
    return (shape->required & ~seen) == 0 ? HF_OK : missing_one(p);
}

/* How many words stand for it. */
static size_t word_values(const struct hold_arg *word)
{
    return word->type == TYPE_ITEM ? 2 : 1;
}

enum hf_status parse_shape(struct parse *p)
{
    const struct shape *shape = p->shape;
    const struct vocabulary *vocabulary = shape->vocabulary;

    for (const uint8_t *word = shape->words; *word != 0; word++) {
        const struct hold_arg *arg = &vocabulary->words[*word];
        bool missing = p->count - p->at < word_values(arg);
        if (arg->optional &&
            (missing || find_option(vocabulary, p->args[p->at],
                                    shape->options) != NO_OPTION))
            continue;
        if (missing)
            return missing_one(p);
        enum hf_status status = take(p, arg);
        if (status != HF_OK)
            return status;
    }
    return take_options(p);
}

/* ---- What a shape says of itself. ---- */

uint64_t parse_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] < 'A' || name[i] > 'Z')
            return 0;
    }
    return parse_letters(hf_bytes(name, len));
}

void parse_init(struct vocabulary *vocabulary)
{
    assert(vocabulary->option_count <= PARSE_OPTIONS_MAX);
    for (unsigned i = 0; i < vocabulary->option_count; i++) {
        const struct hold_arg *option = &vocabulary->options[i];
        if (option->value == NULL)
            continue;
        vocabulary->letters[option->name[0] & 31] |= HOLD_BIT(i);
        vocabulary->names[i] = parse_name(option->name, strlen(option->name));
    }
}

void parse_counts(const struct shape *shape, size_t *least, size_t *most)
{
    const struct vocabulary *vocabulary = shape->vocabulary;

    *least = *most = 0;
    for (const uint8_t *word = shape->words; *word != 0; word++) {
        const struct hold_arg *arg = &vocabulary->words[*word];
        *least += arg->optional ? 0 : word_values(arg);
        *most += arg->many ? (size_t)arg->max : word_values(arg);
    }
    for (unsigned i = 0; i < vocabulary->option_count; i++) {
        const struct hold_arg *option = &vocabulary->options[i];
        if ((shape->options & HOLD_BIT(i)) == 0)
            continue;
        *most += option->many ? RESP_ARGS_MAX : 1 + parse_values(option);
        if ((shape->required & HOLD_BIT(i)) != 0)
            *least += 1 + parse_values(option);
    }
}

/* A text that grows in a room of the caller's. */
struct syntax {
    char *out;
    size_t room;
    size_t len;
};

static void show(struct syntax *text, const struct hold_arg *arg, bool optional)
{
    bool has_value = arg->value != NULL && arg->value[0] != '\0';
    /* any number of what otherwise is there at least once */
    bool more = optional && has_value && arg->many && arg->form != NULL;
    bool as_is = arg->form != NULL && !more;

    optional = optional && !as_is;
    int len = snprintf(text->out + text->len, text->room - text->len,
                       "%s%s%s%s%s%s%s", text->len > 0 ? " " : "",
                       optional ? "[" : "", as_is ? arg->form : arg->name,
                       has_value && !as_is ? " " : "",
                       has_value && !as_is ? arg->value : "",
                       more ? " ..." : "", optional ? "]" : "");
    text->len += (size_t)len;
    assert(text->len < text->room);
}

static void show_options(struct syntax *text,
                         const struct vocabulary *vocabulary, uint64_t bits,
                         bool optional)
{
    for (; bits != 0; bits &= bits - 1)
        show(text, &vocabulary->options[__builtin_ctzll(bits)], optional);
}

/* What must be there comes first. */
size_t parse_syntax(const struct shape *shape, char *out, size_t room)
{
    const struct vocabulary *vocabulary = shape->vocabulary;
    uint64_t rest = shape->options & ~shape->required;
    uint64_t last = HOLD_BIT(vocabulary->last);
    struct syntax text = {out, room, 0};

    assert(room > 0);
    out[0] = '\0';
    for (const uint8_t *word = shape->words; *word != 0; word++) {
        const struct hold_arg *arg = &vocabulary->words[*word];
        show(&text, arg, arg->optional);
    }
    show_options(&text, vocabulary, shape->required, false);
    show_options(&text, vocabulary, rest & ~last, true);
    show_options(&text, vocabulary, rest & last, true);
    return text.len;
}
