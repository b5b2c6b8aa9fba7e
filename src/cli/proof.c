/* proof.c - the book that a proof keeps, and what it expects of each event. */
#include "cli/proof_parts.h"
#include "hold/group.h"

#include <stdarg.h>

#include "base/memory.h"
#include "hold/image.h"

enum hf_status proof_wrong(struct proof *proof, const char *format, ...)
{
    char *out = proof->result->wrong;
    int len =
        snprintf(out, PROOF_ERROR_MAX,
                 "record %llu: ", (unsigned long long)proof->result->records);
    va_list args;

    va_start(args, format);
    vsnprintf(out + len, PROOF_ERROR_MAX - (size_t)len, format, args);
    va_end(args);
    return HF_CORRUPT;
}

struct proof *proof_new(struct hf_hash_seed seed, struct proof_result *result)
{
    struct proof *proof = hf_alloc_zeroed(sizeof *proof);

    if (proof == NULL)
        return NULL;
    *result = (struct proof_result){0};
    proof->result = result;
    hf_texts_init(&proof->texts, &proof->account);
    proof->engine = hold_new(seed);
    proof->encoded = hf_alloc(EVENT_BYTES_MAX);
    if (proof->engine == NULL || proof->encoded == NULL ||
        hold_tell(proof->engine) != HF_OK ||
        proof_locks_open(&proof->locks, &proof->texts, seed, &proof->account) !=
            HF_OK ||
        hf_index_init(&proof->pending, sizeof(struct pending), &proof->texts,
                      seed, &proof->account) != HF_OK) {
        proof_free(proof);
        return NULL;
    }
    return proof;
}

void proof_free(void *machine)
{
    struct proof *proof = machine;

    if (proof == NULL)
        return;
    hold_free(proof->engine);
    proof_locks_close(&proof->locks);
    hf_index_destroy(&proof->pending);
    hf_texts_destroy(&proof->texts);
    feed_scan_close(proof->feed);
    hf_free(proof->encoded);
    hf_buf_destroy(&proof->events);
    hf_buf_destroy(&proof->names);
    hf_free(proof);
}

const struct hold_out *proof_ask(struct proof *proof, enum hold_kind kind,
                                 struct hf_bytes name)
{
    struct hold_command *c = &proof->ask;

    memset(c, 0, offsetof(struct hold_command, items));
    c->kind = kind;
    c->name = name;
    c->now_us = hold_now_us(proof->engine);
    if (kind == HOLD_STOCK_GET) {
        c->name = hf_bytes(NULL, 0);
        c->item_count = 1;
        c->items[0] = (struct hold_item){name, 0};
    }
    return hold_ask(proof->engine, c);
}

/* Products and reservations. */

static enum hf_status check_sums(struct proof *proof, struct hf_bytes sku,
                                 struct hf_bytes body)
{
    int64_t total = reply_get_number(body, FIELD_TOTAL);
    int64_t available = reply_get_number(body, FIELD_AVAILABLE);
    int64_t reserved = reply_get_number(body, FIELD_RESERVED);
    int64_t sold = reply_get_number(body, FIELD_SOLD);

    proof->result->product_checks++;
    if (available < 0 || reserved < 0 || sold < 0 ||
        (__int128)available + reserved + sold != total)
        return proof_wrong(
            proof,
            "product '%.*s': available %lld + reserved %lld + sold "
            "%lld is not total %lld",
            HF_SHOW(sku), (long long)available, (long long)reserved,
            (long long)sold, (long long)total);
    return HF_OK;
}

/* Does the record delete that product? */
static bool deletes(const struct proof *proof, struct hf_bytes sku)
{
    const struct hold_command *c = &proof->command;
    struct hold_command member;
    struct hf_bytes record;

    if (c->kind == HOLD_STOCK_DEL && hf_bytes_equal(sku, c->name))
        return true;
    for (size_t at = 0; hold_group_next(c->group, &at, &record);) {
        if (hold_decode(record, &member) == HF_OK &&
            member.kind == HOLD_STOCK_DEL && hf_bytes_equal(sku, member.name))
            return true;
    }
    return false;
}

static enum hf_status check_product(struct proof *proof, struct hf_bytes sku)
{
    const struct hold_out *out = proof_ask(proof, HOLD_STOCK_GET, sku);

    if (out == NULL)
        return HF_OK; /* more is over: the last call shows it */
    if (out->code != HOLD_OK && deletes(proof, sku))
        return HF_OK; /* deleted right after a reservation of it ended */
    if (out->code != HOLD_OK)
        return proof_wrong(proof, "product '%.*s' is gone", HF_SHOW(sku));
    return check_sums(proof, sku, out->body);
}

/* Asks for the reservation `id` and checks the products of its items. */
static enum hf_status check_items(struct proof *proof, struct hf_bytes id)
{
    const struct hold_out *out = proof_ask(proof, HOLD_RESERVATION, id);
    struct hf_buf copy = {0};
    enum hf_status status = HF_OK;
    size_t at = 0;

    if (out == NULL)
        return proof_wrong(proof, "reservation '%.*s' is over, but goes on",
                           HF_SHOW(id));
    if (out->code != HOLD_OK)
        return HF_OK; /* it ended and was forgotten in the same step */
    if (hf_buf_append(&copy, out->body.data, out->body.len) != HF_OK)
        return HF_NOMEM;
    struct hf_bytes body = hf_buf_bytes(&copy);
    reply_next(body, &at);
    while (reply_next_field(body, &at) != FIELD_ITEMS)
        reply_next(body, &at);
    uint32_t count = reply_next(body, &at).count;
    for (uint32_t i = 0; i < count && status == HF_OK; i++) {
        reply_next(body, &at);
        reply_next_field(body, &at);
        struct hf_bytes sku = reply_next(body, &at).text;
        reply_next_field(body, &at);
        reply_next(body, &at);
        status = check_product(proof, sku);
    }
    hf_buf_destroy(&copy);
    return status;
}

static enum hf_status reservation_event(struct proof *proof,
                                        const struct hold_event *e)
{
    uint32_t number = hf_index_find(&proof->pending, e->name);

    if (e->kind == EVENT_RESERVED) {
        if (number != 0)
            return proof_wrong(proof,
                               "reservation '%.*s' is made a second time",
                               HF_SHOW(e->name));
        number = hf_index_add(&proof->pending, e->name);
        return number == 0 ? HF_NOMEM : HF_OK;
    }
    if (number == 0 && proof->unlisted == 0)
        return proof_wrong(
            proof,
            "event %llu is about reservation '%.*s', which is not "
            "pending",
            (unsigned long long)e->seq, HF_SHOW(e->name));
    if (e->kind == EVENT_EXTENDED)
        return HF_OK;
    if (number != 0)
        hf_index_remove(&proof->pending, number);
    else
        proof->unlisted--;
    return HF_OK;
}

/* Events. */

static void forget_all(struct proof *proof)
{
    proof_locks_clear(&proof->locks);
    hf_index_clear(&proof->pending);
    hf_texts_clear(&proof->texts);
    proof->unlisted = 0;
}

static enum hf_status check_event(struct proof *proof,
                                  const struct hold_event *e)
{
    struct proof_result *result = proof->result;

    if (e->seq <= result->last_seq)
        return proof_wrong(proof, "event %llu follows event %llu",
                           (unsigned long long)e->seq,
                           (unsigned long long)result->last_seq);
    result->last_seq = e->seq;
    result->events[e->kind]++;
    result->event_count++;
    switch (hold_event_subject(e->kind)) {
    case SUBJECT_LOCK:
        return proof_lock_event(proof, e);
    case SUBJECT_RESERVATION:
        return reservation_event(proof, e);
    case SUBJECT_ALL:
        forget_all(proof);
        return HF_OK;
    default:
        return HF_OK;
    }
}

/* What the engine shows now must fit what the event said. */
static enum hf_status check_outcome(struct proof *proof,
                                    const struct hold_event *e)
{
    switch (hold_event_subject(e->kind)) {
    case SUBJECT_LOCK:
        return proof_lock_compare(proof, e->name);
    case SUBJECT_PRODUCT:
        return check_product(proof, e->name);
    case SUBJECT_RESERVATION:
        return check_items(proof, e->name);
    default:
        return HF_OK;
    }
}

/* The next question makes the engine's own copy invalid. */
static enum hf_status copy_events(struct proof *proof,
                                  const struct hold_out *out)
{
    size_t at = 0;

    proof->events.len = 0;
    proof->names.len = 0;
    if (hf_buf_append(&proof->events, out->events,
                      out->event_count * sizeof *out->events) != HF_OK)
        return HF_NOMEM;
    for (size_t i = 0; i < out->event_count; i++) {
        if (hf_buf_append(&proof->names, out->events[i].name.data,
                          out->events[i].name.len) != HF_OK)
            return HF_NOMEM;
    }
    struct hold_event *events = (struct hold_event *)proof->events.data;
    for (size_t i = 0; i < out->event_count; i++) {
        events[i].name.data = proof->names.data + at;
        at += events[i].name.len;
    }
    return HF_OK;
}

/* Opens the book with what a snapshot brought. */
static enum hf_status start(struct proof *proof)
{
    struct hold_counts counts;

    proof->started = true;
    proof->result->first_seq = hold_seq(proof->engine);
    proof->result->last_seq = hold_seq(proof->engine);
    hold_count(proof->engine, &counts);
    proof->unlisted = counts.pending;
    return hold_each_lock(proof->engine, proof_lock_book, proof);
}

enum hf_status proof_load(void *proof, struct hf_bytes piece)
{
    return hold_load(((struct proof *)proof)->engine, piece);
}

/* Checks what one call gave. */
static enum hf_status check_out(struct proof *proof, const struct hold_out *out)
{
    size_t count = out->event_count;
    enum hf_status status = copy_events(proof, out);
    const struct hold_event *events =
        (const struct hold_event *)proof->events.data;

    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = check_event(proof, &events[i]);
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = check_outcome(proof, &events[i]);
    return status;
}

enum hf_status proof_apply(void *machine, struct hf_bytes record)
{
    struct proof *proof = machine;
    enum hf_status status = proof->started ? HF_OK : start(proof);
    bool again = true;

    if (status != HF_OK)
        return status;
    proof->result->records++;
    if (hold_decode(record, &proof->command) != HF_OK ||
        !hold_kind_is_write(proof->command.kind))
        return HF_CORRUPT;
    if (hold_prepare(proof->engine, &proof->command) != HF_OK)
        return HF_NOMEM;
    while (again && status == HF_OK) {
        const struct hold_out *out = hold_apply(proof->engine, record);
        again = out->code == HOLD_AGAIN;
        status = proof_feed_out(proof, out);
        if (status == HF_OK)
            status = check_out(proof, out);
    }
    return status;
}

enum hf_status proof_finish(struct proof *proof, bool unclean)
{
    struct proof_result *result = proof->result;
    char error[256] = "";
    enum hf_status status = proof->started ? HF_OK : start(proof);

    if (status != HF_OK)
        return status;
    if (hold_check(proof->engine, error) != HF_OK)
        return proof_wrong(proof, "the state at the end: %s", error);
    hold_count(proof->engine, &result->counts);
    result->digest = hold_digest(proof->engine);
    if (hf_index_count(&proof->pending) + proof->unlisted !=
        result->counts.pending)
        return proof_wrong(proof,
                           "%llu reservations are pending, %llu by the events",
                           (unsigned long long)result->counts.pending,
                           (unsigned long long)hf_index_count(&proof->pending) +
                               (unsigned long long)proof->unlisted);
    return proof_feed_end(proof, unclean);
}
