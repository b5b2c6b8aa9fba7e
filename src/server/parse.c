/* parse.c - arguments to a command, as the table describes them. */
#include <assert.h>

#include "server/table.h"

struct parse {
    const struct command *command;
    const struct hf_bytes *args;
    size_t count;
    size_t at;
    unsigned seen;
    struct hold_command *out;
    char *error;
};

#define PRINTED(bytes) (int)((bytes).len < 64 ? (bytes).len : 64), (bytes).data

static enum hf_status wrong(struct parse *p, const char *what,
                            struct hf_bytes value)
{
    snprintf(p->error, PARSE_ERROR_MAX, "BADARG %s: '%.*s'%s", what,
             PRINTED(value), value.len > 64 ? "..." : "");
    return HF_INVALID;
}

static enum hf_status wrong_count(struct parse *p)
{
    snprintf(p->error, PARSE_ERROR_MAX,
             "BADARG wrong number of arguments, the form is: %s %s",
             p->command->name, p->command->syntax);
    return HF_INVALID;
}

enum hf_status parse_text(struct hf_bytes text, const char *what, size_t max,
                          struct hf_bytes *out, char error[PARSE_ERROR_MAX])
{
    if (text.len == 0) {
        snprintf(error, PARSE_ERROR_MAX, "BADARG the %s is empty", what);
        return HF_INVALID;
    }
    if (text.len > max) {
        snprintf(error, PARSE_ERROR_MAX,
                 "BADARG the %s has %zu bytes, at most %zu are allowed", what,
                 text.len, max);
        return HF_INVALID;
    }
    *out = text;
    return HF_OK;
}

enum hf_status parse_number(struct hf_bytes text, const char *what,
                            uint64_t min, uint64_t max, uint64_t *out,
                            char error[PARSE_ERROR_MAX])
{
    uint64_t number;

    if (hf_parse_u64(text, &number) != HF_OK || number < min || number > max) {
        snprintf(error, PARSE_ERROR_MAX,
                 "BADARG %s must be a whole number from %llu to %llu, not "
                 "'%.*s'",
                 what, (unsigned long long)min, (unsigned long long)max,
                 PRINTED(text));
        return HF_INVALID;
    }
    *out = number;
    return HF_OK;
}

static enum hf_status take_text(struct parse *p, const char *what, size_t max,
                                struct hf_bytes *out)
{
    return parse_text(p->args[p->at++], what, max, out, p->error);
}

static enum hf_status take_number(struct parse *p, const char *what,
                                  uint64_t min, uint64_t max, uint64_t *out)
{
    return parse_number(p->args[p->at++], what, min, max, out, p->error);
}

static enum hf_status take_delta(struct parse *p)
{
    struct hf_bytes text = p->args[p->at++];

    if (hf_parse_i64(text, &p->out->amount) != HF_OK || p->out->amount == 0)
        return wrong(p, "the change must be a whole number other than 0", text);
    return HF_OK;
}

static enum hf_status take_skus(struct parse *p)
{
    if (p->count - p->at > HOLD_ITEMS_MAX) {
        snprintf(p->error, PARSE_ERROR_MAX,
                 "BADARG at most %u products in one request", HOLD_ITEMS_MAX);
        return HF_INVALID;
    }
    while (p->at < p->count) {
        struct hold_item *item = &p->out->items[p->out->item_count];
        enum hf_status status = take_text(p, "sku", HOLD_SKU_MAX, &item->sku);
        if (status != HF_OK)
            return status;
        item->quantity = 0;
        p->out->item_count++;
    }
    return HF_OK;
}

static enum hf_status take_word(struct parse *p, enum word word)
{
    struct hold_command *out = p->out;
    uint64_t total;

    switch (word) {
    case WORD_NAME:
        return take_text(p, "name", HOLD_NAME_MAX, &out->name);
    case WORD_SKU:
        return take_text(p, "sku", HOLD_SKU_MAX, &out->name);
    case WORD_NEW_ID:
        if (hf_bytes_equal(p->args[p->at], hf_bytes("*", 1))) {
            p->at++;
            return HF_OK;
        }
        return take_text(p, "id", HOLD_ID_MAX, &out->name);
    case WORD_ID:
        return take_text(p, "id", HOLD_ID_MAX, &out->name);
    case WORD_PATTERN:
        return take_text(p, "pattern", HOLD_NAME_MAX, &out->name);
    case WORD_TOKEN:
        return take_number(p, "the token", 1, INT64_MAX, &out->token);
    case WORD_TOTAL:
        if (take_number(p, "the total", 0, HOLD_STOCK_MAX, &total) != HF_OK)
            return HF_INVALID;
        out->amount = (int64_t)total;
        return HF_OK;
    case WORD_DELTA:
        return take_delta(p);
    case WORD_SKUS:
        return take_skus(p);
    case WORD_END:
        break;
    }
    return wrong_count(p);
}

static enum hf_status take_item(struct parse *p)
{
    struct hf_bytes sku;
    uint64_t quantity;

    if (p->count - p->at < 2)
        return wrong_count(p);
    if (take_text(p, "sku", HOLD_SKU_MAX, &sku) != HF_OK ||
        take_number(p, "the quantity", 1, HOLD_STOCK_MAX, &quantity) != HF_OK)
        return HF_INVALID;
    switch (hold_add_item(p->out, sku, quantity)) {
    case HF_OK:
        return HF_OK;
    case HF_FULL:
        snprintf(p->error, PARSE_ERROR_MAX,
                 "BADARG at most %u different products in one reservation",
                 HOLD_ITEMS_MAX);
        return HF_INVALID;
    default:
        return wrong(p, "the quantities add up to too much for sku", sku);
    }
}

static enum option find_option(struct hf_bytes word)
{
    static const struct {
        const char *name;
        enum option option;
    } all[] = {
        {"TTL", OPTION_TTL},       {"WAIT", OPTION_WAIT},
        {"OWNER", OPTION_OWNER},   {"REQ", OPTION_REQ},
        {"REASON", OPTION_REASON}, {"ITEM", OPTION_ITEM},
        {"CURSOR", OPTION_CURSOR}, {"COUNT", OPTION_COUNT},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (hf_bytes_is(word, all[i].name))
            return all[i].option;
    }
    return (enum option)0;
}

static enum hf_status take_value(struct parse *p, enum option option)
{
    struct hold_command *out = p->out;

    switch (option) {
    case OPTION_TTL:
        return take_number(p, "TTL", 1, HOLD_TTL_MAX_MS, &out->ttl_ms);
    case OPTION_WAIT:
        return take_number(p, "WAIT", 0, HOLD_TTL_MAX_MS, &out->wait_ms);
    case OPTION_OWNER:
        return take_text(p, "owner", HOLD_OWNER_MAX, &out->owner);
    case OPTION_REQ:
        return take_text(p, "request id", HOLD_ID_MAX, &out->request);
    case OPTION_REASON:
        return take_text(p, "reason", HOLD_REASON_MAX, &out->reason);
    case OPTION_ITEM:
        return take_item(p);
    case OPTION_CURSOR:
        return take_number(p, "CURSOR", 0, UINT32_MAX, &out->cursor);
    case OPTION_COUNT:
        return take_number(p, "COUNT", 1, HOLD_LIST_MAX, &out->count);
    }
    return HF_INVALID;
}

static enum hf_status take_options(struct parse *p)
{
    while (p->at < p->count) {
        struct hf_bytes word = p->args[p->at];
        enum option option = find_option(word);
        if (option == 0 || (p->command->options & option) == 0)
            return wrong(p, "unknown option", word);
        if ((p->seen & option) != 0 && option != OPTION_ITEM)
            return wrong(p, "option given twice", word);
        p->at++;
        if (p->at == p->count)
            return wrong_count(p);
        enum hf_status status = take_value(p, option);
        if (status != HF_OK)
            return status;
        p->seen |= option;
    }
    if ((p->command->required & ~p->seen) != 0)
        return wrong_count(p);
    return HF_OK;
}

static void clear(struct hold_command *out)
{
    out->name = out->owner = out->reason = out->request = hf_bytes(NULL, 0);
    out->token = out->ttl_ms = out->wait_ms = 0;
    out->amount = 0;
    out->cursor = out->count = 0;
    out->told = false;
    out->item_count = 0;
}

enum hf_status parse_command(const struct command *command,
                             const struct hf_bytes *args, size_t count,
                             struct hold_command *out,
                             char error[PARSE_ERROR_MAX])
{
    struct parse p = {.command = command,
                      .args = args,
                      .count = count,
                      .out = out,
                      .error = error};

    clear(out);
    out->kind = command->kind;
    out->ttl_ms = command->ttl_ms;
    for (int i = 0; i < WORDS_MAX && command->words[i] != WORD_END; i++) {
        enum word word = command->words[i];
        bool missing = p.at == count;
        if (word == WORD_PATTERN && (missing || find_option(args[p.at]) != 0))
            continue;
        if (missing)
            return wrong_count(&p);
        if (take_word(&p, word) != HF_OK)
            return HF_INVALID;
    }
    return take_options(&p);
}
