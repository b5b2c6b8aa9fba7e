/* simulate_compare.c - is what the engine gave what the model gave? */
#include <assert.h>
#include <stdarg.h>

#include "sim/engine/simulate_parts.h"

/* The report. */

static void print_text(struct hf_bytes text)
{
    putchar('"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= ' ' && c < 127 && c != '"')
            putchar(c);
        else
            printf("\\x%02x", c);
    }
    putchar('"');
}

static void print_value(struct hf_bytes body, size_t *at)
{
    struct reply_node node = reply_next(body, at);

    switch (node.kind) {
    case REPLY_NUMBER:
        printf("%lld", (long long)node.number);
        break;
    case REPLY_TEXT:
        print_text(node.text);
        break;
    case REPLY_NULL:
        printf("null");
        break;
    case REPLY_OK:
        printf("OK");
        break;
    case REPLY_TEXTS:
        node.count *= 2;
        __attribute__((fallthrough));
    case REPLY_LIST:
        putchar('[');
        for (uint32_t i = 0; i < node.count; i++) {
            printf("%s", i > 0 ? ", " : "");
            print_value(body, at);
        }
        putchar(']');
        break;
    case REPLY_MAP:
        putchar('{');
        for (uint32_t i = 0; i < node.count; i++) {
            printf("%s%s ", i > 0 ? ", " : "",
                   hold_field_name(reply_next_field(body, at)));
            print_value(body, at);
        }
        putchar('}');
        break;
    }
}

static void print_reply(enum hold_code code, struct hf_bytes body)
{
    size_t at = 0;

    printf("%s ", hold_code_name(code));
    if (body.len > 0)
        print_value(body, &at);
    putchar('\n');
}

static void print_name(const char *what, struct hf_bytes text)
{
    if (text.len == 0)
        return;
    printf(" %s ", what);
    print_text(text);
}

static void print_number(const char *what, uint64_t number)
{
    if (number != 0)
        printf(" %s %llu", what, (unsigned long long)number);
}

static void print_command(const struct hold_command *c)
{
    printf("command:  %s", hold_operations[c->kind].name);
    print_name("name", c->name);
    print_name("owner", c->owner);
    print_name("reason", c->reason);
    print_name("req", c->request);
    print_number("token", c->token);
    print_number("ttl_ms", c->ttl_ms);
    print_number("wait_ms", c->wait_ms);
    print_number("shared", c->flags & HOLD_SHARED);
    print_number("forever", c->flags & HOLD_FOREVER);
    print_number("barge", c->flags & HOLD_BARGE);
    print_number("bind", c->flags & HOLD_BIND);
    print_number("tree", c->flags & HOLD_TREE);
    print_number("nx", c->flags & HOLD_NX);
    print_number("xx", c->flags & HOLD_XX);
    print_number("equal", c->flags & HOLD_EQUAL);
    print_number("keepttl", c->flags & HOLD_KEEPTTL);
    print_number("at", c->flags & HOLD_AT);
    print_number("added", c->flags & HOLD_ADDED);
    print_number("own", c->flags & HOLD_OWN);
    print_number("say", hold_say(c));
    print_number("policy", hold_policy(c));
    print_number("priority", hold_priority(c));
    print_number("preorder", hold_may_book(c));
    print_number("session", c->session);
    print_number("permits", c->permits & UINT32_MAX);
    print_number("of", c->permits >> 32);
    print_number("maxhold_ms", c->maxhold_ms);
    print_number("delay_ms", c->delay_ms);
    print_number("done_ms", c->done_ms);
    print_number("grace_ms", c->grace_ms);
    print_name("note", c->note);
    if (c->amount != 0)
        printf(" amount %lld", (long long)c->amount);
    print_number("cursor", c->cursor);
    print_number("count", c->count);
    print_number("told", c->told);
    for (uint32_t i = 0; i < c->item_count; i++) {
        printf(" item ");
        print_text(c->items[i].sku);
        printf(" %llu", (unsigned long long)c->items[i].quantity);
    }
    printf(" at %llu us\n", (unsigned long long)c->now_us);
}

static void begin_report(struct sim *sim, const char *what)
{
    printf("FAIL simulate --seed %llu, step %llu: %s\n",
           (unsigned long long)sim->seed, (unsigned long long)sim->step, what);
    if (sim->current != NULL)
        print_command(sim->current);
    sim->failed = true;
}

void sim_fail(struct sim *sim, const char *what, const char *format, ...)
{
    va_list args;

    begin_report(sim, what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void sim_fail_reply(struct sim *sim, const char *what,
                    enum hold_code expected_code, struct hf_bytes expected,
                    enum hold_code found_code, struct hf_bytes found)
{
    begin_report(sim, what);
    printf("expected: ");
    print_reply(expected_code, expected);
    printf("found:    ");
    print_reply(found_code, found);
}

/* The comparisons. */

static void compare_answer(struct sim *sim, const struct model_answer *expected,
                           const struct hold_answer *found)
{
    if (expected->ticket != found->ticket)
        sim_fail(sim, "answer", "expected: ticket %llu\nfound:    %llu",
                 (unsigned long long)expected->ticket,
                 (unsigned long long)found->ticket);
    else if (expected->code != found->code ||
             !hf_bytes_equal(hf_buf_bytes(&expected->body), found->body))
        sim_fail_reply(sim, "answer to one who waited", expected->code,
                       hf_buf_bytes(&expected->body), found->code, found->body);
}

/* A flush answers in the order of the engine's tables, which is not told. */
static void compare_answers(struct sim *sim, const struct hold_out *out,
                            bool any_order)
{
    const struct model *model = sim->model;

    if (out->answer_count != model->answer_count) {
        sim_fail(sim, "answers", "expected: %zu\nfound:    %zu",
                 model->answer_count, out->answer_count);
        return;
    }
    for (size_t i = 0; i < out->answer_count && !sim->failed; i++) {
        size_t at = i;
        if (any_order) {
            for (at = 0; at < out->answer_count - 1 &&
                         out->answers[at].ticket != model->answers[i].ticket;)
                at++;
        }
        compare_answer(sim, &model->answers[i], &out->answers[at]);
    }
}

/* As model_tell() has it. */
uint64_t sim_event_facts(const struct hold_event *event)
{
    uint64_t hash = model_hash(0, event->owner.data, event->owner.len);
    struct hold_item item;

    hash = model_hash(hash, event->note.data, event->note.len);
    for (size_t at = 0; hold_next_item(event->items, &at, &item);) {
        hash = model_hash(hash, item.sku.data, item.sku.len);
        hash = model_hash(hash, &item.quantity, sizeof item.quantity);
    }
    hash = model_hash(hash, event->group.data, event->group.len);
    hash = model_hash(hash, &event->total, sizeof event->total);
    return model_hash(hash, &event->available, sizeof event->available);
}

static void compare_events(struct sim *sim, const struct hold_out *out)
{
    const struct model *model = sim->model;

    if (out->event_count != model->event_count) {
        sim_fail(sim, "events", "expected: %zu\nfound:    %zu",
                 model->event_count, out->event_count);
        return;
    }
    for (size_t i = 0; i < out->event_count && !sim->failed; i++) {
        const struct model_event *expected = &model->events[i];
        const struct hold_event *found = &out->events[i];
        if (expected->seq == found->seq && expected->kind == found->kind &&
            expected->lag_us == found->lag_us &&
            expected->age_us == found->age_us &&
            expected->token == found->token &&
            (int)expected->mode == (int)found->mode &&
            expected->facts == sim_event_facts(found) &&
            model_is(&expected->name, found->name))
            continue;
        sim_fail(
            sim, "event",
            "expected: %llu %s lag %llu age %llu token %llu mode %d "
            "name %.*s facts %llx\n"
            "found:    %llu %s lag %llu age %llu token %llu mode %d "
            "name %.*s facts %llx",
            (unsigned long long)expected->seq, hold_event_name(expected->kind),
            (unsigned long long)expected->lag_us,
            (unsigned long long)expected->age_us,
            (unsigned long long)expected->token, (int)expected->mode,
            (int)expected->name.len, expected->name.data,
            (unsigned long long)expected->facts, (unsigned long long)found->seq,
            hold_event_name(found->kind), (unsigned long long)found->lag_us,
            (unsigned long long)found->age_us, (unsigned long long)found->token,
            (int)found->mode, (int)found->name.len, found->name.data,
            (unsigned long long)sim_event_facts(found));
    }
}

void sim_compare(struct sim *sim, const struct hold_out *out)
{
    const struct model *model = sim->model;

    if (out->code != model->code ||
        !hf_bytes_equal(out->body, hf_buf_bytes(&model->body)))
        sim_fail_reply(sim, "reply", model->code, hf_buf_bytes(&model->body),
                       out->code, out->body);
    else if (out->code == HOLD_WAITING && out->ticket != model->ticket)
        sim_fail(sim, "ticket", "expected: %llu\nfound:    %llu",
                 (unsigned long long)model->ticket,
                 (unsigned long long)out->ticket);
    else
        compare_answers(sim, out, sim->current->kind == HOLD_FLUSH);
    if (!sim->failed)
        compare_events(sim, out);
    if (!sim->failed)
        sim_feed_take(sim, out);
    sim->codes[out->code]++;
    sim->answers += out->answer_count;
    sim->events += out->event_count;
}

static void compare_number(struct sim *sim, const char *what, uint64_t expected,
                           uint64_t found)
{
    if (expected != found && !sim->failed)
        sim_fail(sim, what, "expected: %llu\nfound:    %llu",
                 (unsigned long long)expected, (unsigned long long)found);
}

/* The engine keeps sums; here they are added up. */
static void compare_stock(struct sim *sim, const struct hold_counts *found)
{
    const struct model *model = sim->model;
    unsigned __int128 total = 0;
    unsigned __int128 reserved = 0;
    unsigned __int128 sold = 0;

    for (size_t i = 0; i < model->product_count; i++) {
        total += (uint64_t)model->products[i].total;
        reserved += (uint64_t)model->products[i].reserved;
        sold += (uint64_t)model->products[i].sold;
    }
    compare_number(sim, "stock adds up", 1,
                   (double)total == found->stock_total &&
                       (double)reserved == found->stock_reserved &&
                       (double)sold == found->stock_sold);
}

static uint64_t count_sets(const struct model *model)
{
    uint64_t count = 0;

    for (size_t i = 0; i < model->grant_count; i++)
        count += model->grants[i].claim.is_set;
    return count;
}

void sim_compare_totals(struct sim *sim, const struct hold_counts *base)
{
    const struct model *model = sim->model;
    struct hold_counts found;
    uint64_t pending = 0;

    for (size_t i = 0; i < model->reservation_count; i++)
        pending += model->reservations[i].status == MODEL_PENDING;
    hold_count(sim->engine, &found);
    compare_number(sim, "now", model->now_us, hold_now_us(sim->engine));
    compare_number(sim, "sequence", model->seq, hold_seq(sim->engine));
    compare_number(sim, "next due", model_next_due_us(model),
                   hold_next_due_us(sim->engine));
    compare_number(sim, "locks", model_names_held(model), found.locks);
    compare_number(sim, "waiters", model->wait_count, found.waiters);
    compare_number(sim, "sets", count_sets(model), found.sets);
    compare_number(sim, "sessions", model->session_count, found.sessions);
    compare_number(sim, "products", model->product_count, found.products);
    compare_number(sim, "reservations",
                   model->reservation_count + model->buyer_count +
                       model->booking_count,
                   found.reservations);
    compare_number(sim, "who wait for stock", model->buyer_count, found.buyers);
    compare_number(sim, "booked", model->booking_count, found.booked);
    compare_number(sim, "pending", pending, found.pending);
    compare_stock(sim, &found);
    compare_number(sim, "fences", model->fence_count, found.fences);
    compare_number(sim, "requests", model->request_count, found.requests);
    compare_number(sim, "requests dropped", model->dropped,
                   found.requests_dropped - base->requests_dropped);
    compare_number(sim, "requests refused", model->full,
                   found.requests_refused - base->requests_refused);
    compare_number(sim, "behind", model_is_behind(model, model->now_us),
                   hold_is_behind(sim->engine));
    struct hold_bounds bounds = hold_get_bounds(sim->engine);
    if (memcmp(&bounds, &model->bounds, sizeof bounds) != 0)
        sim_fail(sim, "bounds", "the settings differ");
}

/* Listings. */

static void skip_value(struct hf_bytes body, size_t *at)
{
    struct reply_node node = reply_next(body, at);

    if (node.kind != REPLY_LIST && node.kind != REPLY_MAP &&
        node.kind != REPLY_TEXTS)
        return;
    if (node.kind == REPLY_TEXTS)
        node.count *= 2;
    for (uint32_t i = 0; i < node.count; i++) {
        if (node.kind == REPLY_MAP)
            reply_next_field(body, at);
        skip_value(body, at);
    }
}

/* Does a page of the listing hold exactly this entry? */
static bool page_has(struct hf_bytes page, struct hf_bytes entry)
{
    size_t at = 0;

    reply_next(page, &at);
    reply_next_field(page, &at);
    uint32_t count = reply_next(page, &at).count;
    for (uint32_t i = 0; i < count; i++) {
        size_t start = at;
        skip_value(page, &at);
        if (hf_bytes_equal(entry, hf_bytes(page.data + start, at - start)))
            return true;
    }
    return false;
}

/* The time that a question is answered for. */
static uint64_t now_of(const struct sim *sim, const struct hold_command *c)
{
    return c->now_us > sim->model->now_us ? c->now_us : sim->model->now_us;
}

/* How many places the model has for what is listed. */
static size_t count_places(const struct model *model, enum hold_kind kind)
{
    return kind == HOLD_LOCK_LIST      ? model->name_count
           : kind == HOLD_SESSION_LIST ? model->session_count
           : kind == HOLD_CLASS_LIST   ? model->class_count
                                       : model->product_count;
}

static void write_lock(struct sim *sim, uint32_t name, uint64_t now_us,
                       struct hf_buf *out)
{
    struct model *model = sim->model;
    const struct model_grant *grant = model_oldest_grant(model, name);

    reply_map(out, 7);
    reply_field_text(out, FIELD_NAME, model_name_bytes(model, name));
    reply_field_text(out, FIELD_OWNER, model_bytes(&grant->claim.owner));
    reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
    reply_field_number(out, FIELD_EXPIRES_MS,
                       (int64_t)(model_left_us(model, grant, now_us) / 1000));
    reply_field_number(out, FIELD_COUNT, (int64_t)grant->count);
    reply_field_number(out, FIELD_WAITING, (int64_t)model_waiting(model, name));
    reply_field_number(out, FIELD_TREE, grant->claim.tree);
}

/* What the model would list at place `i`: false if it would not. */
static bool make_entry(struct sim *sim, const struct hold_command *c, size_t i,
                       struct hf_buf *out)
{
    struct model *model = sim->model;
    uint64_t now_us = now_of(sim, c);

    out->len = 0;
    if (c->kind == HOLD_SESSION_LIST) {
        model_write_session(model, out, &model->sessions[i], now_us);
        return true;
    }
    if (c->kind == HOLD_CLASS_LIST) {
        model_write_class(out, &model->classes[i]);
        return true;
    }
    bool locks = c->kind == HOLD_LOCK_LIST;
    struct hf_bytes name = locks ? model_name_bytes(model, (uint32_t)i)
                                 : model_bytes(&model->products[i].sku);
    if (c->name.len > 0 && !hf_bytes_match(c->name, name))
        return false;
    if (!locks) {
        model_write_product(model, out, &model->products[i], true);
        return true;
    }
    if (model_count_grants(model, (uint32_t)i) == 0)
        return false;
    write_lock(sim, (uint32_t)i, now_us, out);
    return true;
}

void sim_compare_list(struct sim *sim, struct hold_command *command)
{
    static char space[4096];
    struct hf_buf entry = {space, 0, sizeof space};
    size_t count = count_places(sim->model, command->kind);
    bool found[MODEL_MAX] = {false};
    size_t listed = 0;

    command->cursor = 0;
    do {
        const struct hold_out *out = hold_ask(sim->engine, command);
        size_t at = 0;
        if (model_is_behind(sim->model, now_of(sim, command)) != (out == NULL))
            sim_fail(sim, "list", "found: it was %s",
                     out == NULL ? "not told" : "told too early");
        if (out == NULL)
            return;
        reply_next(out->body, &at);
        reply_next_field(out->body, &at);
        uint32_t on_page = reply_next(out->body, &at).count;
        if (command->count > 0 && on_page > command->count)
            sim_fail(sim, "list", "expected: a page of at most %llu\nfound: %u",
                     (unsigned long long)command->count, on_page);
        if (out->work > HOLD_STEPS_MAX + HOLD_NAME_MAX * HOLD_NAME_MAX)
            sim_fail(sim, "list", "found: %llu steps",
                     (unsigned long long)out->work);
        sim->cut += out->work > HOLD_STEPS_MAX;
        listed += on_page;
        for (size_t i = 0; i < count; i++) {
            if (!found[i] && make_entry(sim, command, i, &entry))
                found[i] = page_has(out->body, hf_buf_bytes(&entry));
        }
        for (uint32_t i = 0; i < on_page; i++)
            skip_value(out->body, &at);
        reply_next_field(out->body, &at);
        command->cursor = (uint64_t)reply_next(out->body, &at).number;
    } while (command->cursor != 0 && !sim->failed);
    for (size_t i = 0; i < count && !sim->failed; i++) {
        if (!make_entry(sim, command, i, &entry))
            continue;
        if (!found[i])
            sim_fail_reply(sim, "list: an entry is missing", HOLD_OK,
                           hf_buf_bytes(&entry), HOLD_OK, hf_bytes(NULL, 0));
        listed--;
    }
    if (listed != 0 && !sim->failed)
        sim_fail(sim, "list", "found: %zu entries too many", listed);
}
