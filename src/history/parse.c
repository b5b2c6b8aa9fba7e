/* parse.c - what a call asked and what its reply says. */
#include "history/check.h"

#define LOCK_TTL_MS        30000u  /* unless TTL says otherwise */
#define RESERVATION_TTL_MS 600000u /* likewise */

static const struct {
    const char *word;
    const char *second; /* NULL: the name follows at once */
    enum verb verb;
    uint32_t fixed; /* words before the options */
    uint64_t ttl_ms;
} verbs[] = {
    {"LOCK", NULL, VERB_LOCK, 2, LOCK_TTL_MS},
    {"UNLOCK", NULL, VERB_UNLOCK, 3, 0},
    {"RENEW", NULL, VERB_RENEW, 3, 0},
    {"LOCKS", NULL, VERB_LOCKS, 1, 0},
    {"LOCKINFO", NULL, VERB_LOCKINFO, 2, 0},
    {"FENCE", NULL, VERB_FENCE, 3, 0},
    {"ELECT", NULL, VERB_LOCK, 2, LOCK_TTL_MS},
    {"RESIGN", NULL, VERB_UNLOCK, 3, 0},
    {"PROCLAIM", NULL, VERB_PROCLAIM, 3, 0},
    {"LEADER", NULL, VERB_LEADER, 2, 0},
    {"LOCKSET", NULL, VERB_LOCKSET, 1, LOCK_TTL_MS},
    {"UNLOCKSET", NULL, VERB_UNLOCKSET, 2, 0},
    {"RENEWSET", NULL, VERB_RENEWSET, 2, 0},
    {"DOWNGRADE", NULL, VERB_DOWNGRADE, 3, 0},
    {"HELD", NULL, VERB_HELD, 3, 0},
    {"REVOKE", NULL, VERB_REVOKE, 3, 0},
    {"SESSION", "OPEN", VERB_SESSION_OPEN, 2, 0},
    {"SESSION", "KEEP", VERB_SESSION_KEEP, 3, 0},
    {"SESSION", "CLOSE", VERB_SESSION_CLOSE, 3, 0},
    {"SESSION", "INFO", VERB_SESSION_INFO, 3, 0},
    {"SESSION", "LIST", VERB_SESSION_LIST, 2, 0},
    {"STOCK", "SET", VERB_STOCK_SET, 4, 0},
    {"STOCK", "ADD", VERB_STOCK_ADD, 4, 0},
    {"STOCK", "GET", VERB_STOCK_GET, 3, 0},
    {"STOCK", "LIST", VERB_STOCK_LIST, 2, 0},
    {"STOCK", "PLACES", VERB_STOCK_PLACES, 3, 0},
    {"STOCK", "ARRIVE", VERB_STOCK_ADD, 4, 0},
    {"STOCK", "EXPECT", VERB_STOCK_EXPECT, 4, 0},
    {"STOCK", "EXPECTED", VERB_STOCK_EXPECTED, 3, 0},
    {"STOCK", "DEL", VERB_STOCK_DEL, 3, 0},
    {"STOCK", "LOW", VERB_STOCK_LOW, 4, 0},
    {"STOCK", "ATTR", VERB_STOCK_ATTR, 4, 0},
    {"STOCK", "LIMIT", VERB_STOCK_LIMIT, 4, 0},
    {"RESERVE", NULL, VERB_RESERVE, 2, RESERVATION_TTL_MS},
    {"CONFIRM", NULL, VERB_CONFIRM, 2, 0},
    {"CANCEL", NULL, VERB_CANCEL, 2, 0},
    {"EXTEND", NULL, VERB_EXTEND, 2, 0},
    {"RESERVATION", NULL, VERB_RESERVATION, 2, 0},
    {"WAITLIST", "JOIN", VERB_JOIN, 4, RESERVATION_TTL_MS},
    {"WAITLIST", "LEAVE", VERB_LEAVE, 4, 0},
    {"GROUP", "CONFIRM", VERB_GROUP_CONFIRM, 3, 0},
    {"GROUP", "CANCEL", VERB_GROUP_CANCEL, 3, 0},
    {"CLASS", "SET", VERB_CLASS_SET, 3, 0},
    {"CLASS", "DEL", VERB_OTHER, 3, 0},
    {"LIMIT", NULL, VERB_LIMIT, 2, 0},
    {"FLUSHALL", NULL, VERB_FLUSHALL, 1, 0},
    {"EXEC", NULL, VERB_EXEC, 1, 0},
    {"SET", NULL, VERB_KEY, 3, 0},
    {"SETNX", NULL, VERB_KEY, 3, 0},
    {"DEL", NULL, VERB_KEY, 2, 0},
    {"UNLINK", NULL, VERB_KEY, 2, 0},
    {"GETDEL", NULL, VERB_KEY, 2, 0},
    {"DELIFEQ", NULL, VERB_KEY, 3, 0},
    {"DELEX", NULL, VERB_KEY, 2, 0},
    {"ZREM", NULL, VERB_KEY, 3, 0},
    {"EXPIRE", NULL, VERB_KEY, 3, 0},
    {"PEXPIRE", NULL, VERB_KEY, 3, 0},
    {"EVAL", NULL, VERB_KEY, 3, 0},
    {"EVALSHA", NULL, VERB_KEY, 3, 0},
};

#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

bool check_code(const struct call *call, const char *code)
{
    return hf_bytes_equal(call->code, hf_bytes_text(code));
}

int check_compare(struct hf_bytes a, struct hf_bytes b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

bool check_between(struct hf_bytes reply, const char *before,
                   const char *behind, struct hf_bytes *out)
{
    const char *at = memmem(reply.data, reply.len, before, strlen(before));

    if (at == NULL)
        return false;
    at += strlen(before);
    size_t left = (size_t)(reply.data + reply.len - at);
    const char *end = memmem(at, left, behind, strlen(behind));
    if (end == NULL)
        return false;
    *out = hf_bytes(at, (size_t)(end - at));
    return true;
}

bool check_text(struct hf_bytes reply, const char *field, struct hf_bytes *out)
{
    struct resp_value value;

    if (resp_field(reply, field, &value) != HF_OK ||
        (value.kind != RESP_BULK && value.kind != RESP_SIMPLE))
        return false;
    *out = value.text;
    return true;
}

bool check_list(struct hf_bytes reply, const char *field,
                struct reply_list *out)
{
    struct resp_value value;
    size_t at = 0;

    if ((field != NULL && resp_find(reply, field, &at) != HF_OK) ||
        resp_read(reply, &at, &value) != HF_OK || value.kind != RESP_ARRAY)
        return false;
    *out = (struct reply_list){reply, at, value.number};
    return true;
}

bool check_list_next(struct reply_list *list, struct hf_bytes *out)
{
    size_t start = list->at;

    if (list->left <= 0 || resp_skip(list->reply, &list->at) != HF_OK)
        return false;
    list->left--;
    *out = hf_bytes(list->reply.data + start, list->at - start);
    return true;
}

bool check_item(const struct call *call, size_t *at, struct hf_bytes *sku,
                int64_t *quantity)
{
    size_t i = *at == 0 ? 2 : *at;

    /* an option and its value */
    for (; i + 1 < call->word_count; i += 2) {
        i += hf_bytes_is(call->words[i], "BEST") || /* which have none */
             hf_bytes_is(call->words[i], "PREORDER");
        if (i + 1 >= call->word_count || !hf_bytes_is(call->words[i], "ITEM"))
            continue;
        if (i + 2 >= call->word_count ||
            hf_parse_i64(call->words[i + 2], quantity) != HF_OK)
            return false;
        *sku = call->words[i + 1];
        *at = i + 3;
        return true;
    }
    return false;
}

int64_t check_item_least(const struct call *call, size_t at, int64_t quantity)
{
    int64_t least;

    if (at + 1 < call->word_count && hf_bytes_is(call->words[at], "MIN") &&
        hf_parse_i64(call->words[at + 1], &least) == HF_OK)
        return least;
    return quantity;
}

bool check_member(const struct call *call, size_t *at, struct hf_bytes *name,
                  enum mode *mode)
{
    for (size_t i = *at == 0 ? 1 : *at; i + 1 < call->word_count; i++) {
        if (hf_bytes_is(call->words[i], "OWNER"))
            i++; /* whatever the owner's name is */
        else if (hf_bytes_is(call->words[i], "NAME")) {
            bool shared = i + 2 < call->word_count &&
                          hf_bytes_is(call->words[i + 2], "SHARED");
            *name = call->words[i + 1];
            *mode = shared ? MODE_SHARED : MODE_EXCLUSIVE;
            *at = i + 2;
            return true;
        }
    }
    return false;
}

/* An option that stands alone. */
static bool take_flag(struct terms *terms, struct hf_bytes option)
{
    if (hf_bytes_is(option, "SHARED"))
        terms->mode = MODE_SHARED;
    else if (hf_bytes_is(option, "FOREVER"))
        terms->forever = true;
    else if (hf_bytes_is(option, "BARGE"))
        terms->barge = true;
    else if (hf_bytes_is(option, "BIND"))
        terms->bind = true;
    else if (hf_bytes_is(option, "TREE"))
        terms->tree = true;
    else if (hf_bytes_is(option, "BEST"))
        terms->best = true;
    else if (hf_bytes_is(option, "PREORDER"))
        terms->books = true;
    else
        return false;
    return true;
}

/* An option of locks with one value; false: malformed. */
static bool take_term(struct terms *terms, struct hf_bytes option,
                      struct hf_bytes value)
{
    static const struct {
        const char *name;
        size_t place;
    } numbers[] = {
        {"SESSION", offsetof(struct terms, session)},
        {"MAXHOLD", offsetof(struct terms, maxhold_ms)},
        {"DELAY", offsetof(struct terms, delay_ms)},
        {"PRIORITY", offsetof(struct terms, priority)},
        {"DONE", offsetof(struct terms, done_ms)},
        {"GRACE", offsetof(struct terms, grace_ms)},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (hf_bytes_is(option, numbers[i].name))
            return hf_parse_u64(
                       value, (uint64_t *)(void *)((char *)terms +
                                                   numbers[i].place)) == HF_OK;
    }
    if (hf_bytes_is(option, "RESULT"))
        terms->result = value;
    if (hf_bytes_is(option, "NOTE") || hf_bytes_is(option, "VALUE"))
        terms->note = value;
    if (hf_bytes_is(option, "DEADLOCK")) {
        terms->wounds = hf_bytes_is(value, "WOUNDWAIT");
        terms->aged = terms->wounds || hf_bytes_is(value, "WAITDIE");
    }
    return true;
}

/* One option and its value; false: malformed. Unknown ones have one value. */
static bool take_option(struct call *call, struct hf_bytes option,
                        struct hf_bytes value)
{
    if (hf_bytes_is(option, "OWNER"))
        call->owner = value;
    else if (hf_bytes_is(option, "REQ"))
        call->request = value;
    else if (hf_bytes_is(option, "IF"))
        return hf_parse_u64(value, &call->token) == HF_OK && ++call->token > 0;
    else if (hf_bytes_is(option, "TTL"))
        return hf_parse_u64(value, &call->ttl_ms) == HF_OK;
    else if (hf_bytes_is(option, "WAIT"))
        return hf_parse_u64(value, &call->wait_ms) == HF_OK;
    else if (hf_bytes_is(option, "CLASS"))
        call->terms.any_ttl = true;
    else if (hf_bytes_is(option, "GROUP"))
        call->terms.bundle = value;
    else
        return take_term(&call->terms, option, value);
    return true;
}

static bool take_permits(struct terms *terms, const struct hf_bytes *values)
{
    uint64_t permits;
    uint64_t maximum;

    if (hf_parse_u64(values[0], &permits) != HF_OK ||
        hf_parse_u64(values[2], &maximum) != HF_OK || permits > INT32_MAX ||
        maximum > INT32_MAX)
        return false;
    terms->mode = MODE_COUNTING;
    terms->permits = (uint32_t)permits;
    terms->maximum = (uint32_t)maximum;
    return true;
}

static bool take_options(struct call *call, size_t at)
{
    call->terms.mode = MODE_EXCLUSIVE;
    while (at < call->word_count) {
        struct hf_bytes option = call->words[at];
        const struct hf_bytes *values = call->words + at + 1;
        bool permits = hf_bytes_is(option, "PERMITS");
        bool item = hf_bytes_is(option, "ITEM");
        size_t count = permits ? 3 : item ? 2 : 1;
        if (take_flag(&call->terms, option)) {
            at++;
            continue;
        }
        if (at + count >= call->word_count)
            return false;
        if (permits ? !take_permits(&call->terms, values)
                    : !item && !take_option(call, option, values[0]))
            return false;
        if (hf_bytes_is(option, "SESSION"))
            call->terms.own_session = call->terms.session == 0;
        call->terms.done = call->terms.done || hf_bytes_is(option, "DONE");
        at += 1 + count;
    }
    return true;
}

/* What is in a session and has no TTL ends with the session. */
static bool take_lock(struct call *call, size_t at)
{
    uint64_t usual = call->ttl_ms;

    call->ttl_ms = 0;
    if (!take_options(call, at))
        return false;
    bool session = call->terms.session != 0 || call->terms.own_session;
    if (call->ttl_ms == 0)
        call->ttl_ms = session ? CHECK_NO_END_MS : usual;
    return true;
}

/* What has a class and no TTL has that of its class, or the usual one. */
static bool take_reserve(struct call *call, size_t at)
{
    uint64_t usual = call->ttl_ms;

    call->ttl_ms = 0;
    if (!take_options(call, at))
        return false;
    call->terms.any_ttl = call->terms.any_ttl && call->ttl_ms == 0;
    if (call->ttl_ms == 0)
        call->ttl_ms = call->terms.any_ttl ? CHECK_NO_END_MS : usual;
    return true;
}

/* Of the words of LIMIT, only how long it may wait. */
static void take_wait(struct call *call)
{
    for (uint32_t i = 2; i + 1 < call->word_count; i++) {
        if (hf_bytes_is(call->words[i], "WAIT"))
            (void)hf_parse_u64(call->words[i + 1], &call->wait_ms);
    }
}

static bool take_words(struct call *call, size_t row)
{
    size_t name = verbs[row].second != NULL ? 2 : 1;
    struct hf_bytes last = call->words[verbs[row].fixed - 1];

    call->ttl_ms = verbs[row].ttl_ms;
    if (name < call->word_count)
        call->name = call->words[name];
    switch (verbs[row].verb) {
    case VERB_FENCE: /* FENCE DEL resource has no number in it */
        if (hf_bytes_is(call->name, "DEL"))
            return take_options(call, verbs[row].fixed);
        return hf_parse_u64(last, &call->token) == HF_OK &&
               take_options(call, verbs[row].fixed);
    case VERB_LOCK:
    case VERB_LOCKSET:
        return take_lock(call, verbs[row].fixed);
    case VERB_RESERVE:
        return take_reserve(call, verbs[row].fixed);
    case VERB_SESSION_KEEP:
    case VERB_SESSION_CLOSE:
    case VERB_SESSION_INFO:
        if (hf_parse_u64(last, &call->terms.session) != HF_OK)
            return false;
        break;
    case VERB_UNLOCK:
    case VERB_RENEW:
    case VERB_UNLOCKSET:
    case VERB_RENEWSET:
    case VERB_DOWNGRADE:
    case VERB_HELD:
    case VERB_PROCLAIM:
    case VERB_REVOKE:
        if (hf_parse_u64(last, &call->token) != HF_OK)
            return false;
        break;
    case VERB_STOCK_SET:
    case VERB_STOCK_ADD:
    case VERB_STOCK_LOW:
    case VERB_STOCK_LIMIT:
    case VERB_STOCK_EXPECT:
        if (hf_parse_i64(last, &call->amount) != HF_OK)
            return false;
        break;
    case VERB_LIMIT:
        take_wait(call);
        return true;
    case VERB_JOIN: /* it is answered at once */
        if (!take_options(call, verbs[row].fixed))
            return false;
        call->wait_ms = 0;
        return true;
    case VERB_LOCKS: /* the subjects read the rest themselves */
    case VERB_STOCK_GET:
    case VERB_STOCK_LIST:
    case VERB_SESSION_LIST:
    case VERB_KEY:
        return true;
    case VERB_STOCK_ATTR: /* the value is not always there */
        if (call->word_count > 4 && !hf_bytes_is(call->words[4], "REQ"))
            return take_options(call, 5);
        return take_options(call, 4);
    default:
        break;
    }
    return take_options(call, verbs[row].fixed);
}

/* Refusals that change nothing. Of any other error the outcome is unknown. */
static bool is_refusal(const struct call *call)
{
    static const char *const codes[] = {
        "BUSY",   "TIMEOUT",  "NOTHELD",  "LOST",      "STALE", "SHORT",
        "STATE",  "EXPIRED",  "NOTFOUND", "CONFLICT",  "ERR",   "BADARG",
        "NOPERM", "DEADLOCK", "DONE",     "EXECABORT", "QUOTA",
    };
    static const char moved[] = "-CONFLICT the request goes on";

    if (call->reply.len >= sizeof moved - 1 &&
        memcmp(call->reply.data, moved, sizeof moved - 1) == 0)
        return false;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (check_code(call, codes[i]))
            return true;
    }
    return false;
}

bool check_is_clash(const struct call *call)
{
    static const char sku[] = "CONFLICT sku '";

    return check_code(call, "CONFLICT") &&
           memmem(call->reply.data, call->reply.len, sku, sizeof sku - 1) !=
               NULL;
}

static void parse_reply(struct check *c, struct call *call)
{
    struct resp_value value;
    size_t end = 0;
    size_t at = 0;

    if (call->answer_at == CHECK_NEVER)
        return;
    if (resp_skip(call->reply, &end) != HF_OK || end != call->reply.len ||
        resp_read(call->reply, &at, &value) != HF_OK) {
        check_found(c, "reply", call->id, 0, "the reply is not one of RESP");
        call->reply.len = 0;
        return;
    }
    call->outcome = OUTCOME_DONE;
    if (value.kind != RESP_ERROR)
        return;
    const char *space = memchr(value.text.data, ' ', value.text.len);
    call->code = value.text;
    if (space != NULL)
        call->code.len = (size_t)(space - value.text.data);
    call->outcome = is_refusal(call) ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

/* STOCK AT sku number, or STOCK GET sku AT number. */
static bool take_past(struct call *call)
{
    const struct hf_bytes *words = call->words;
    bool at = call->word_count == 4 && hf_bytes_is(words[1], "AT");
    bool get = call->word_count == 5 && hf_bytes_is(words[1], "GET") &&
               hf_bytes_is(words[3], "AT");

    if (!hf_bytes_is(words[0], "STOCK") || (!at && !get))
        return false;
    call->name = words[2];
    if (hf_parse_u64(words[call->word_count - 1], &call->token) == HF_OK)
        call->verb = VERB_STOCK_AT;
    return true;
}

void check_parse(struct check *c, struct call *call)
{
    parse_reply(c, call);
    if (take_past(call))
        return;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (!hf_bytes_is(call->words[0], verbs[i].word) ||
            (verbs[i].second != NULL &&
             (call->word_count < 2 ||
              !hf_bytes_is(call->words[1], verbs[i].second))))
            continue;
        if (call->word_count >= verbs[i].fixed && take_words(call, i))
            call->verb = verbs[i].verb;
        break;
    }
    if (call->verb == VERB_RESERVE)
        places_expand(c, call);
}

/* The word behind the name of the command, unless it is an option. */
static struct hf_bytes pattern_of(const struct call *call)
{
    uint32_t at = call->verb == VERB_LOCKS ? 1 : 2;

    return call->word_count > at ? call->words[at] : hf_bytes("*", 1);
}

bool check_is_whole(const struct call *call)
{
    uint32_t most = call->verb == VERB_LOCKS ? 2 : 3;
    int64_t cursor;

    return (call->verb == VERB_LOCKS || call->verb == VERB_STOCK_LIST) &&
           call->outcome == OUTCOME_DONE && call->word_count <= most &&
           resp_field_number(call->reply, "cursor", &cursor) && cursor == 0;
}

bool check_lists(const struct call *call, struct hf_bytes name)
{
    return hf_bytes_match(pattern_of(call), name);
}
