/* proof.c - the book that a proof keeps, and what it expects of each event. */
#include "cli/proof_parts.h"

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

void proof_watch(struct proof *proof, proof_watch_fn *watch, void *context)
{
    proof->watch = watch;
    proof->watch_context = context;
}

void proof_tell(struct proof *proof, const struct hold_event *event,
                uint64_t now_us, const struct hold_book *book)
{
    if (proof->watch != NULL)
        proof->watch(proof->watch_context, event, now_us, book);
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
        (proof->book = hold_book_new(seed, hf_bytes("", 0))) == NULL) {
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
    hold_book_free(proof->book);
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
    return hold_ask(proof->engine, c);
}

/* Events. */

static void forget_all(struct proof *proof)
{
    proof_locks_clear(&proof->locks);
    hf_texts_clear(&proof->texts);
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
    return hold_event_subject(e->kind) == SUBJECT_LOCK
               ? proof_lock_compare(proof, e->name)
               : HF_OK;
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

/* What the book of stock says. */
static enum hf_status judge(struct proof *proof, enum hf_status status)
{
    proof->result->product_checks = hold_book_steps(proof->book);
    return status == HF_CORRUPT
               ? proof_wrong(proof, "%s", hold_book_wrong(proof->book))
               : status;
}

/* Opens the books with what a snapshot brought. */
static enum hf_status start(struct proof *proof)
{
    proof->started = true;
    proof->result->first_seq = hold_seq(proof->engine);
    proof->result->last_seq = hold_seq(proof->engine);
    enum hf_status status =
        judge(proof, hold_book_open(proof->book, proof->engine));
    return status == HF_OK
               ? hold_each_lock(proof->engine, proof_lock_book, proof)
               : status;
}

/* Stock follows from the events alone. */
static enum hf_status check_stock(struct proof *proof,
                                  const struct hold_out *out)
{
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < out->event_count && status == HF_OK; i++) {
        status = hold_book_event(proof->book, &out->events[i]);
        proof_tell(proof, &out->events[i], out->now_us, proof->book);
    }
    if (status == HF_OK)
        status = hold_book_compare(proof->book, proof->engine);
    return judge(proof, status);
}

enum hf_status proof_load(void *proof, struct hf_bytes piece)
{
    return hold_load(((struct proof *)proof)->engine, piece);
}

/* Checks what one call gave. */
static enum hf_status check_out(struct proof *proof, const struct hold_out *out)
{
    size_t count = out->event_count;
    enum hf_status status = check_stock(proof, out);

    if (status == HF_OK)
        status = copy_events(proof, out);
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
    status = judge(proof, hold_book_finish(proof->book, proof->engine));
    if (status != HF_OK)
        return status;
    return proof_feed_end(proof, unclean);
}
