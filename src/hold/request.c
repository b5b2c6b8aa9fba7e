/* request.c - requests with an id are answered once and remembered.
 *
 * A client that lost its connection repeats the request with the same id and
 * gets the first answer, refusal or not; nothing happens twice.
 *
 * When the table is full, refusals make room, the oldest first: asked again,
 * such a request is carried out, once. A success is never forgotten before its
 * time, for then it would happen twice.
 */
#include <assert.h>

#include "hold/group.h"
#include "hold/locks.h"
#include "hold/request.h"
#include "hold/waitlist.h"

/* How requests are listed. */
#define REQUESTS(e) CHAIN(e->requests.slab, request, listed.links)

/* A fixed key: the fingerprint is part of the state. */
static const struct hf_hash_seed seed = {
    {0x686f6c6466617374u, 0x7265717565737473u}};

/* Of its commands; what a SAID has was answered to what its token says, and may
 * be another answer when the group is repeated. */
static uint64_t group_fingerprint(const struct hold_command *c)
{
    uint64_t hashes[2] = {c->count, 0};
    struct hf_bytes record;

    for (size_t at = 0; hold_group_next(c->group, &at, &record);) {
        if (hold_record_kind(record) == HOLD_SAID)
            record = hf_bytes(record.data + 12, 8);
        hashes[1] = hf_hash(seed, record);
        hashes[0] =
            hf_hash(seed, hf_bytes((const char *)hashes, sizeof hashes));
    }
    return hashes[0];
}

static uint64_t fingerprint_of(struct hold_engine *e,
                               const struct hold_command *c,
                               struct hf_bytes record)
{

    if (c->kind == HOLD_GROUP)
        return group_fingerprint(c);
    if (c->told) { /* a repetition is not */
        memcpy(e->record.data, record.data, record.len);
        hold_record_untell(e->record.data);
        record.data = e->record.data;
    }
    return hf_hash(seed, hf_bytes(record.data + HOLD_RECORD_BODY,
                                  record.len - HOLD_RECORD_BODY));
}

static bool is_due(const struct hold_engine *e, const struct request *request)
{
    return request->waiter == 0 &&
           request->stored_us + e->bounds.request_keep_ms * US_PER_MS <=
               e->now_us;
}

uint32_t request_find(const struct hold_engine *e, struct hf_bytes id)
{
    uint32_t number = hf_index_find(&e->requests, id);

    return number == 0 || is_due(e, request_at(e, number)) ? 0 : number;
}

bool request_repeat(struct hold_engine *e, const struct hold_command *c,
                    struct hf_bytes record)
{
    uint32_t number = request_find(e, c->request);

    if (number == 0)
        return false;
    struct request *request = request_edit(e, number);
    if (request->fingerprint != fingerprint_of(e, c, record)) {
        reply_field_text(refuse(e, HOLD_CONFLICT, 1), FIELD_ID, c->request);
        return true;
    }
    if (request->waiter != 0)
        return false;
    struct hf_bytes reply = hf_text_bytes(&e->texts, request->reply);
    e->out.code = (enum hold_code)request->code;
    assert(reply.len <= e->body.cap);
    memcpy(e->body.data, reply.data, reply.len);
    e->body.len = reply.len;
    uint64_t passed_ms = (e->now_us - request->stored_us + US_PER_MS - 1) /
                         US_PER_MS; /* never too long */
    if (c->kind == HOLD_GROUP && request->code == HOLD_OK)
        group_retell(e, c->group, passed_ms);
    else if (request->code == HOLD_OK || request->code == HOLD_BUSY ||
             request->code == HOLD_DONE)
        reply_age(&e->body, passed_ms);
    if (request->code == HOLD_OK && hold_operations[c->kind].retell != NULL)
        hold_operations[c->kind].retell(e, c);
    return true;
}

static struct list *list_of(struct hold_engine *e,
                            const struct request *request)
{
    return request->code == HOLD_OK ? &e->done : &e->refused;
}

/* Puts one that was answered at the end of its list. */
static void append(struct hold_engine *e, uint32_t number)
{
    struct request *request = request_edit(e, number);

    list_append(REQUESTS(e), list_of(e, request), number);
    e->refused_count += request->code != HOLD_OK;
}

static void unlist(struct hold_engine *e, uint32_t number)
{
    struct request *request = request_edit(e, number);

    list_remove(REQUESTS(e), list_of(e, request), number);
    e->refused_count -= request->code != HOLD_OK;
}

static void remove_request(struct hold_engine *e, uint32_t number)
{
    hf_texts_drop(&e->texts, request_at(e, number)->reply);
    hf_index_remove(&e->requests, number);
}

void request_forget(struct hold_engine *e, uint32_t number)
{
    unlist(e, number);
    remove_request(e, number);
}

uint32_t request_oldest(const struct hold_engine *e)
{
    if (e->done.first == 0 || e->refused.first == 0)
        return e->done.first + e->refused.first;
    return request_at(e, e->done.first)->stored_us <
                   request_at(e, e->refused.first)->stored_us
               ? e->done.first
               : e->refused.first;
}

static bool refuse_full(struct hold_engine *e)
{
    e->requests_refused++;
    return refuse_overload(e, "requests-max", e->bounds.requests_max);
}

bool request_refuse(struct hold_engine *e, struct hf_bytes id)
{
    /* one that is over makes room for itself */
    uint32_t own = hf_index_find(&e->requests, id);
    uint64_t stay = hf_index_count(&e->requests) - e->refused_count;

    if (own != 0 && request_at(e, own)->code == HOLD_OK)
        stay--;
    return stay >= e->bounds.requests_max && refuse_full(e);
}

bool request_admit(struct hold_engine *e, struct hf_bytes id)
{
    uint32_t own = hf_index_find(&e->requests, id);

    if (request_refuse(e, id))
        return false;
    if (own != 0)
        request_forget(e, own);
    /* More than one only if the bound was lowered: in bounded steps, too. */
    for (uint32_t steps = 0;
         steps < HOLD_STEP_MAX &&
         hf_index_count(&e->requests) >= e->bounds.requests_max;
         steps++) {
        assert(e->refused.first != 0); /* what must stay does not fill it */
        request_forget(e, e->refused.first);
        e->requests_dropped++;
    }
    return hf_index_count(&e->requests) < e->bounds.requests_max ||
           !refuse_full(e);
}

static bool waits_for_stock(const struct request *request)
{
    return (request->waiter & WAITS_FOR_STOCK) != 0;
}

/* Where the wait of a request notes whose it is. */
static uint32_t *request_of(struct hold_engine *e, uint32_t waiter)
{
    return (waiter & WAITS_FOR_STOCK) != 0
               ? &buyer_edit(e, waiter & ~WAITS_FOR_STOCK)->request
               : &waiter_edit(e, waiter)->request;
}

bool request_resume(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->requests, c->request);

    if (number == 0 || request_at(e, number)->waiter == 0)
        return false;
    struct request *request = request_edit(e, number);
    e->out.code = HOLD_WAITING;
    e->out.ticket = waits_for_stock(request) ? buyer_move(e, request)
                                             : waiter_move(e, request);
    return true;
}

/* A refusal that names a deadlock is kept without its members. */
static struct hf_bytes without_cycle(struct hold_engine *e)
{
    struct hf_bytes body = hf_buf_bytes(&e->body);
    struct hf_buf kept = {e->record.data, 0, e->record.cap};

    reply_map(&kept, 2);
    reply_field_text(&kept, FIELD_NAME, reply_get_text(body, FIELD_NAME));
    reply_field_text(&kept, FIELD_REASON, reply_get_text(body, FIELD_REASON));
    return hf_buf_bytes(&kept);
}

/* A wait is answered later, when nothing may fail: its slot is taken now, with
 * bytes that will be overwritten. */
static struct hf_bytes blank_answer(struct hold_engine *e)
{
    size_t len = HOLD_ANSWER_BYTES;

    if ((e->waiter_added & WAITS_FOR_STOCK) != 0)
        len = buyer_answer_bytes(e, e->waiter_added & ~WAITS_FOR_STOCK);
    memset(e->body.data, 0, len);
    return hf_bytes(e->body.data, len);
}

void request_store(struct hold_engine *e, const struct hold_command *c,
                   struct hf_bytes record)
{
    bool waiting = e->out.code == HOLD_WAITING;
    struct hf_bytes reply = waiting ? blank_answer(e) : hf_buf_bytes(&e->body);

    if (e->out.code == HOLD_DEADLOCK)
        reply = without_cycle(e);
    uint32_t number = hf_index_add(&e->requests, c->request);

    assert(number != 0); /* promised */
    struct request *request = request_edit(e, number);
    enum hf_status status = hf_texts_put(
        &e->texts, reply, promise_take_reply(e, reply.len), &request->reply);
    assert(status == HF_OK); /* promised */
    (void)status;
    request->fingerprint = fingerprint_of(e, c, record);
    if (waiting) {
        request->waiter = e->waiter_added;
        *request_of(e, request->waiter) = number;
        return;
    }
    request->code = e->out.code;
    request->stored_us = e->now_us;
    append(e, number);
}

void request_answer(struct hold_engine *e, uint32_t number, enum hold_code code,
                    struct hf_bytes body)
{
    struct request *request = request_edit(e, number);
    struct hf_slab *slab = &e->texts.slabs[request->reply.size_class];

    assert(request->waiter != 0);
    assert(body.len > 0 && body.len <= request->reply.len);
    memcpy(hf_slab_at(slab, request->reply.slot), body.data, body.len);
    request->reply.len = (uint16_t)body.len;
    request->waiter = 0;
    request->code = code;
    request->stored_us = e->now_us;
    append(e, number);
}

void request_time_out(struct hold_engine *e, struct hf_bytes id)
{
    uint32_t number = request_find(e, id);

    if (number == 0)
        return;
    struct request *request = request_edit(e, number);
    if (waits_for_stock(request)) {
        buyer_time_out(e, request->waiter & ~WAITS_FOR_STOCK);
        waitlist_serve(e);
    } else if (request->waiter != 0) {
        waiter_time_out(e, request->waiter);
        serve_all(e);
    } else if (request->code != HOLD_TIMED_OUT) {
        hf_texts_drop(&e->texts, request->reply);
        request->reply = (struct hf_text){0}; /* no facts: needs no memory */
        unlist(e, number);
        request->code = HOLD_TIMED_OUT;
        request->stored_us = e->now_us;
        append(e, number);
    }
}

void request_drop(struct hold_engine *e, uint32_t number)
{
    assert(request_at(e, number)->waiter != 0);
    remove_request(e, number);
}

/* The link is the ticket of the wait that it began; 0: it is answered. */
enum hf_status request_loaded(struct hold_engine *e, uint32_t number,
                              uint64_t link)
{
    struct request *request = request_edit(e, number);

    if (request->code >= HOLD_CODE_COUNT)
        return HF_CORRUPT;
    if (link == 0) {
        append(e, number);
        return HF_OK;
    }
    request->waiter = waiter_find(e, link);
    uint32_t buyer = request->waiter == 0 ? buyer_find(e, link) : 0;
    if (buyer != 0)
        request->waiter = buyer | WAITS_FOR_STOCK;
    if (request->waiter == 0)
        return HF_CORRUPT;
    *request_of(e, request->waiter) = number;
    return HF_OK;
}

bool request_is_answered(const void *record)
{
    return ((const struct request *)record)->waiter == 0;
}

uint64_t request_link(const struct hold_engine *e, const void *record)
{
    uint32_t waiter = ((const struct request *)record)->waiter;

    if ((waiter & WAITS_FOR_STOCK) != 0)
        return buyer_at(e, waiter & ~WAITS_FOR_STOCK)->ticket;
    return waiter == 0 ? 0 : waiter_at(e, waiter)->ticket;
}
