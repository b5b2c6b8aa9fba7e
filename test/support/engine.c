/* engine.c - commands in one line, and their outcome as text. */
#include "support/engine.h"

#include <stdarg.h>

#include "hold/group.h"
#include "server/table.h"

struct hold_engine *engine;
uint64_t engine_now_us;
const char *engine_request;

static struct hold_command command;
static char record[HOLD_RECORD_MAX];
static size_t record_len;

void engine_start(void)
{
    engine_stop();
    engine = hold_new((struct hf_hash_seed){{1, 2}});
    engine_now_us = 1000000000;
    CHECK(engine != NULL);
}

void engine_stop(void)
{
    hold_free(engine);
    engine = NULL;
    engine_request = NULL;
}

static enum hf_status load_piece(void *context, const void *data, size_t len)
{
    return hold_load(context, hf_bytes(data, len));
}

void engine_reload(void)
{
    struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});

    CHECK_EQ(hold_save(engine, load_piece, other), HF_OK);
    CHECK(hold_digest(other) == hold_digest(engine));
    hold_free(engine);
    engine = other;
    CHECK_ENGINE();
}

static struct hold_command *begin(enum hold_kind kind, const char *name)
{
    memset(&command, 0, offsetof(struct hold_command, items));
    command.now_us = engine_now_us;
    command.kind = kind;
    command.name = hf_bytes_text(name);
    if (engine_request != NULL && hold_operations[kind].class == CLASS_WRITE)
        command.request = hf_bytes_text(engine_request);
    return &command;
}

const struct hold_command *engine_last(void)
{
    return &command;
}

const struct hold_out *engine_again(void)
{
    const struct hold_out *out =
        hold_apply(engine, hf_bytes(record, record_len));

    CHECK(out != NULL);
    return out;
}

const struct hold_out *engine_apply(const struct hold_command *c)
{
    CHECK_EQ(hold_prepare(engine, c), HF_OK);
    record_len = hold_encode(c, record);
    CHECK(record_len <= hold_record_bound(c));
    return engine_again();
}

const struct hold_out *engine_lock(const char *name, const char *owner,
                                   uint64_t ttl_ms, uint64_t wait_ms)
{
    struct hold_command *c = begin(HOLD_LOCK, name);

    c->owner = hf_bytes_text(owner);
    c->ttl_ms = ttl_ms;
    c->wait_ms = wait_ms;
    return engine_apply(c);
}

const struct hold_out *engine_unlock(const char *name, uint64_t token)
{
    begin(HOLD_UNLOCK, name)->token = token;
    return engine_apply(&command);
}

const struct hold_out *engine_renew(const char *name, uint64_t token,
                                    uint64_t ttl_ms)
{
    begin(HOLD_RENEW, name)->token = token;
    command.ttl_ms = ttl_ms;
    return engine_apply(&command);
}

const struct hold_out *engine_fence(const char *name, uint64_t token)
{
    begin(HOLD_FENCE, name)->token = token;
    return engine_apply(&command);
}

const struct hold_out *engine_fence_delete(const char *name)
{
    return engine_apply(begin(HOLD_FENCE_DEL, name));
}

const struct hold_out *engine_set(const char *sku, int64_t total)
{
    begin(HOLD_STOCK_SET, sku)->amount = total;
    return engine_apply(&command);
}

const struct hold_out *engine_add(const char *sku, int64_t amount)
{
    begin(HOLD_STOCK_ADD, sku)->amount = amount;
    return engine_apply(&command);
}

const struct hold_out *engine_delete(const char *sku)
{
    return engine_apply(begin(HOLD_STOCK_DEL, sku));
}

/* The next word of `*text`, which moves behind it; empty at the end. */
static struct hf_bytes next_word(const char **text)
{
    const char *start = *text + strspn(*text, " ");
    size_t len = strcspn(start, " ");

    *text = start + len;
    return hf_bytes(start, len);
}

const struct hold_out *engine_reserve(const char *id, const char *items,
                                      uint64_t ttl_ms)
{
    struct hold_command *c = begin(HOLD_RESERVE, id);
    struct hf_bytes sku = next_word(&items);

    for (; sku.len > 0; sku = next_word(&items)) {
        uint64_t quantity = 0;
        CHECK_EQ(hf_parse_u64(next_word(&items), &quantity), HF_OK);
        CHECK_EQ(hold_add_item(c, sku, quantity), HF_OK);
    }
    c->ttl_ms = ttl_ms;
    c->owner = hf_bytes_text("ann");
    return engine_apply(c);
}

const struct hold_out *engine_confirm(const char *id)
{
    return engine_apply(begin(HOLD_CONFIRM, id));
}

const struct hold_out *engine_cancel(const char *id, const char *reason)
{
    begin(HOLD_CANCEL, id)->reason = hf_bytes_text(reason);
    return engine_apply(&command);
}

const struct hold_out *engine_extend(const char *id, uint64_t ttl_ms)
{
    begin(HOLD_EXTEND, id)->ttl_ms = ttl_ms;
    return engine_apply(&command);
}

const struct hold_out *engine_tick(void)
{
    return engine_apply(begin(HOLD_TICK, ""));
}

const struct hold_out *engine_abandon(uint64_t ticket)
{
    begin(HOLD_ABANDON, "")->token = ticket;
    return engine_apply(&command);
}

const struct hold_out *engine_timeout(const char *lock, uint64_t token,
                                      const char *request)
{
    begin(HOLD_TIMEOUT, lock)->token = token;
    command.request = hf_bytes_text(request);
    return engine_apply(&command);
}

const struct hold_out *engine_told(const char *name, const char *owner,
                                   uint64_t ttl_ms, uint64_t wait_ms)
{
    struct hold_command *c = begin(HOLD_LOCK, name);

    c->owner = hf_bytes_text(owner);
    c->ttl_ms = ttl_ms;
    c->wait_ms = wait_ms;
    c->told = true;
    return engine_apply(c);
}

const struct hold_out *engine_restart(int64_t amount)
{
    struct hold_command *c = begin(HOLD_RESTART, "");

    c->amount = amount;
    c->flags = HOLD_GRAPH | HOLD_SETTLED;
    return engine_apply(&command);
}

const struct hold_out *engine_bound(const char *name, uint64_t value)
{
    struct hold_command *c = begin(HOLD_BOUNDS, "");

    c->item_count = 1;
    c->items[0] =
        (struct hold_item){.sku = hf_bytes_text(name), .quantity = value};
    return engine_apply(c);
}

const struct hold_out *engine_flush(void)
{
    return engine_apply(begin(HOLD_FLUSH, ""));
}

const struct hold_out *engine_info(const char *name)
{
    return hold_ask(engine, begin(HOLD_LOCK_INFO, name));
}

static const struct hold_out *list(enum hold_kind kind, const char *pattern,
                                   uint64_t cursor, uint64_t count)
{
    begin(kind, pattern)->cursor = cursor;
    command.count = count;
    return hold_ask(engine, &command);
}

const struct hold_out *engine_locks(const char *pattern, uint64_t cursor,
                                    uint64_t count)
{
    return list(HOLD_LOCK_LIST, pattern, cursor, count);
}

const struct hold_out *engine_products(const char *pattern, uint64_t cursor,
                                       uint64_t count)
{
    return list(HOLD_STOCK_LIST, pattern, cursor, count);
}

const struct hold_out *engine_get(const char *skus)
{
    struct hold_command *c = begin(HOLD_STOCK_GET, "");
    struct hf_bytes sku = next_word(&skus);

    for (; sku.len > 0; sku = next_word(&skus))
        c->items[c->item_count++] = (struct hold_item){.sku = sku};
    return hold_ask(engine, c);
}

void engine_has(const char *sku, int available, int reserved, int sold)
{
    char begins[128];

    snprintf(begins, sizeof begins,
             "OK sku=%s total=%d available=%d reserved=%d sold=%d ", sku,
             available + reserved + sold, available, reserved, sold);
    EXPECT_BEGINS(engine_get(sku), begins);
}

const struct hold_out *engine_reservation(const char *id)
{
    return hold_ask(engine, begin(HOLD_RESERVATION, id));
}

/* Commands as clients write them. */

#define LINE_BYTES 65536
#define LINE_WORDS 512

static const struct hold_command *parse_line(const char *format, va_list args)
{
    static char line[LINE_BYTES];
    static bool made;
    struct hf_bytes words[LINE_WORDS];
    char error[PARSE_ERROR_MAX] = "no such command";
    const char *text = line;
    size_t count = 0;
    size_t named = 0;

    if (!made)
        table_init();
    made = true;
    CHECK(vsnprintf(line, sizeof line, format, args) < LINE_BYTES);
    for (struct hf_bytes word; (word = next_word(&text)).len > 0;) {
        CHECK(count < LINE_WORDS);
        words[count++] = word;
    }
    const struct command *found = table_find(words, count, &named);
    if (found == NULL || parse_command(found, words + named, count - named,
                                       &command, error) != HF_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", line, error);
    command.now_us = engine_now_us;
    return &command;
}

const struct hold_command *engine_parse(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const struct hold_command *c = parse_line(format, args);
    va_end(args);
    return c;
}

const struct hold_out *engine_do(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const struct hold_command *c = parse_line(format, args);
    va_end(args);
    return hold_kind_is_write(c->kind) ? engine_apply(c) : hold_ask(engine, c);
}

const struct hold_command *engine_group_of(const char *request,
                                           const char *commands)
{
    static char group[HOLD_GROUP_BYTES + HOLD_RECORD_MAX];
    uint64_t count = 0;
    size_t len = 0;

    while (*commands != '\0') {
        const char *end = strstr(commands, "; ");
        size_t line = end == NULL ? strlen(commands) : (size_t)(end - commands);
        (void)engine_parse("%.*s", (int)line, commands);
        hold_group_plain(&command);
        size_t bytes = hold_encode(&command, group + len + HOLD_GROUP_HEAD);
        hf_put_u32(group + len, (uint32_t)bytes);
        len += HOLD_GROUP_HEAD + bytes;
        CHECK(len <= HOLD_GROUP_BYTES);
        count++;
        commands += line + (end == NULL ? 0 : 2);
    }
    begin(HOLD_GROUP, "");
    command.count = count;
    command.group = hf_bytes(group, len);
    command.request = hf_bytes_text(request == NULL ? "" : request);
    return &command;
}

const struct hold_out *engine_group(const char *request, const char *commands)
{
    return engine_apply(engine_group_of(request, commands));
}

const struct hold_out *engine_left(uint64_t session, uint64_t number)
{
    begin(HOLD_SESSION_LEFT, "")->token = session;
    command.amount = (int64_t)number;
    return engine_apply(&command);
}

uint64_t engine_token(const struct hold_out *out)
{
    CHECK_EQ(out->code, HOLD_OK);
    return (uint64_t)reply_get_number(out->body, FIELD_TOKEN);
}

uint64_t engine_session(uint64_t ttl_ms)
{
    const struct hold_out *out =
        engine_do("SESSION OPEN TTL %llu", (unsigned long long)ttl_ms);

    CHECK_EQ(out->code, HOLD_OK);
    return (uint64_t)reply_get_number(out->body, FIELD_SESSION);
}

/* Text. */

#define TEXT_BYTES 65536

struct text {
    char data[TEXT_BYTES];
    size_t len;
};

static struct text *new_text(void)
{
    static struct text texts[4];
    static unsigned next;
    struct text *text = &texts[next++ % 4];

    text->len = 0;
    text->data[0] = '\0';
    return text;
}

static void put(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    size_t room = TEXT_BYTES - text->len;
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text->data + text->len, room, format, args);
    va_end(args);
    text->len += (size_t)len < room ? (size_t)len : room - 1;
}

static void put_value(struct text *text, struct hf_bytes body, size_t *at,
                      bool outermost)
{
    struct reply_node node = reply_next(body, at);
    bool map = node.kind == REPLY_MAP;

    if (node.kind == REPLY_NUMBER) {
        put(text, "%lld", (long long)node.number);
    } else if (node.kind == REPLY_TEXT) {
        put(text, "%.*s", (int)node.text.len, node.text.data);
    } else if (node.kind == REPLY_NULL) {
        put(text, "null");
    } else if (node.kind == REPLY_OK) {
        put(text, "OK");
    } else {
        bool texts = node.kind == REPLY_TEXTS;
        if (!outermost)
            put(text, "%c", map || texts ? '{' : '[');
        for (uint32_t i = 0; i < node.count; i++) {
            put(text, "%s", i > 0 ? " " : "");
            if (map)
                put(text, "%s=", hold_field_name(reply_next_field(body, at)));
            if (texts) {
                put_value(text, body, at, false);
                put(text, "=");
            }
            put_value(text, body, at, false);
        }
        if (!outermost)
            put(text, "%c", map || texts ? '}' : ']');
    }
}

static void put_reply(struct text *text, enum hold_code code,
                      struct hf_bytes body)
{
    size_t at = 0;

    put(text, "%s", code == HOLD_MOVED ? "MOVED" : hold_code_name(code));
    if (body.len == 0)
        return;
    put(text, " ");
    put_value(text, body, &at, true);
    if (code == HOLD_ABORTED) { /* the refusal of one follows */
        put(text, " ");
        put_reply(text, (enum hold_code)reply_get_number(body, FIELD_STATUS),
                  hf_bytes(body.data + at, body.len - at));
        return;
    }
    CHECK_EQ(at, body.len);
}

const char *engine_reply_text(const struct hold_out *out)
{
    struct text *text = new_text();

    if (out == NULL)
        return "EARLY";
    put_reply(text, out->code, out->body);
    if (out->code == HOLD_WAITING)
        put(text, " ticket=%llu", (unsigned long long)out->ticket);
    return text->data;
}

const char *engine_answers_text(const struct hold_out *out)
{
    struct text *text = new_text();

    for (size_t i = 0; i < out->answer_count; i++) {
        put(text, "%s%llu:", i > 0 ? "; " : "",
            (unsigned long long)out->answers[i].ticket);
        put_reply(text, out->answers[i].code, out->answers[i].body);
    }
    return text->data;
}

const char *engine_events_text(const struct hold_out *out)
{
    struct text *text = new_text();

    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *e = &out->events[i];
        put(text, "%s%llu ", i > 0 ? "; " : "", (unsigned long long)e->seq);
        for (const char *c = hold_event_name(e->kind); *c != '\0'; c++)
            put(text, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        if (e->name.len > 0)
            put(text, " %.*s", (int)e->name.len, e->name.data);
        if (e->lag_us > 0)
            put(text, " +%lluus", (unsigned long long)e->lag_us);
    }
    return text->data;
}
