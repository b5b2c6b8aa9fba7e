/* visit.c - sends requests, matches answers, records both. */
#include "sim/server/visit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/resp.h"
#include "sim/server/counting.h"
#include "sim/server/feeding.h"
#include "sim/server/past.h"
#include "sim/server/record.h"

/* What a slow reader takes at a time: more when there is much to read, so that
 * everybody has all answers in the end. */
#define SIP_BYTES  300u
#define SIPS_ALIKE 32u
#define SIPS_MOST  8u

/* Together more than CONN_INPUT_MAX, and what is read at a time. */
#define FLOOD_BYTES 16384u
#define FLOOD_COUNT 44

/* A client that reads and says nothing for so long may be closed. */
#define STUCK_NS (60 * S)
/* The server's times are those of the beginning of a turn. */
#define TURN_SLACK_NS (100 * MS)

static struct {
    struct visit *visits;
    const struct visit_calls *calls;
    uint64_t ids;
    uint64_t idle_ns;
    bool full;
    bool excused;
    bool stops;
    bool healed;
    char wrong[400];
} all;

void visits_begin(const struct visit_calls *calls)
{
    memset(&all, 0, sizeof all);
    all.calls = calls;
}

void visits_end(void)
{
    while (all.visits != NULL) {
        struct visit *visit = all.visits;
        all.visits = visit->next;
        for (size_t i = 0; i < visit->count; i++) {
            free(visit->calls[i]->group);
            free(visit->calls[i]);
        }
        free(visit->calls);
        free(visit->in);
        free(visit);
    }
}

const char *visits_wrong(void)
{
    return all.wrong[0] == '\0' ? hearing_wrong() : all.wrong;
}

size_t visit_open_calls(const struct visit *visit)
{
    return visit->count - visit->answered;
}

bool visit_is_stuck(const struct visit *visit)
{
    for (size_t i = visit->answered; i < visit->count; i++) {
        const struct call *call = visit->calls[i];
        if (call->id == 0 ||
            (!call->queued && words_has(&call->words, "FOREVER")))
            return true;
    }
    return false;
}

static bool may_wait(const struct call *call)
{
    return !call->queued && (words_has(&call->words, "WAIT") ||
                             words_has(&call->words, "FOREVER"));
}

/* Is it for clients from the server's own machine only? */
static bool is_admin(const struct words *words)
{
    return words_is(words, 0, "FLUSHALL") || words_is(words, 0, "REVOKE") ||
           (words_is(words, 0, "FENCE") && words_is(words, 1, "DEL")) ||
           (words_is(words, 0, "CONFIG") && words_is(words, 1, "SET"));
}

/* ---- Answers. ---- */

static void take_answer(struct visit *visit, struct hf_bytes reply)
{
    bool error = reply.len > 0 && reply.data[0] == '-';

    if (visit->answered == visit->count) {
        /* turned away, or given up for what was sent before */
        if (!error && all.wrong[0] == '\0')
            snprintf(all.wrong, sizeof all.wrong,
                     "client %llu was told something it did not ask: %.*s",
                     (unsigned long long)visit->wire->number,
                     (int)(reply.len < 200 ? reply.len : 200), reply.data);
        return;
    }
    struct call *call = visit->calls[visit->answered++];
    call->answered = true;
    if (memmem(reply.data, reply.len, "does not keep up", 16) != NULL &&
        error && all.wrong[0] == '\0') /* nobody asks for so much */
        snprintf(all.wrong, sizeof all.wrong,
                 "client %llu's request #%llu was refused: %.*s",
                 (unsigned long long)visit->wire->number,
                 (unsigned long long)call->id, (int)reply.len - 2, reply.data);
    if (!error && !visit->wire->local && is_admin(&call->words) &&
        all.wrong[0] == '\0')
        snprintf(all.wrong, sizeof all.wrong,
                 "client %llu from another machine may ask #%llu",
                 (unsigned long long)visit->wire->number,
                 (unsigned long long)call->id);
    if (call->id != 0)
        record_answer(visit->wire->number, call->id, reply);
    if (call->id != 0 && !call->queued)
        past_answer(&call->words, reply);
    all.calls->answered(visit, call, reply);
}

static void take_answers(struct visit *visit)
{
    size_t at = 0;
    size_t from = 0;

    while (visit->open && from < visit->in_len) {
        struct hf_bytes input = hf_bytes(visit->in, visit->in_len);
        at = from;
        enum hf_status status = resp_skip(input, &at);
        if (status == HF_MORE)
            break;
        if (status != HF_OK) {
            snprintf(
                all.wrong, sizeof all.wrong,
                "client %llu was told what is not RESP: %.*s",
                (unsigned long long)visit->wire->number,
                (int)(visit->in_len - from < 100 ? visit->in_len - from : 100),
                visit->in + from);
            from = visit->in_len;
            break;
        }
        struct hf_bytes reply = hf_bytes(visit->in + from, at - from);
        if (!hearing_is_push(reply))
            take_answer(visit, reply);
        from = at;
    }
    memmove(visit->in, visit->in + from, visit->in_len - from);
    visit->in_len -= from;
}

static size_t read_some(struct visit *visit, size_t most)
{
    if (visit->in_cap < visit->in_len + most) {
        visit->in_cap = 2 * (visit->in_len + most);
        visit->in = realloc(visit->in, visit->in_cap);
        assert(visit->in != NULL);
    }
    size_t got = wire_read(visit->wire, visit->in + visit->in_len, most);
    visit->in_len += got;
    return got;
}

static void on_sip(void *context, uint64_t number);

static void read_on(struct visit *visit)
{
    bool slow = visit->slow && !all.healed;

    if (visit->reading || !visit->open)
        return;
    if (slow) {
        uint64_t now_ns = world_now_ns();
        uint64_t ns = dice_scale(&visit->wire->dice, 10 * US, 500 * MS);
        if (visit->sip_ns > 0)
            ns = visit->sip_ns;
        if (visit->deaf_ns > now_ns)
            ns = visit->deaf_ns - now_ns;
        visit->reading = true;
        world_after(ns, on_sip, visit, 0);
        return;
    }
    while (read_some(visit, 65536) > 0)
        take_answers(visit);
}

static void on_sip(void *context, uint64_t number)
{
    struct visit *visit = context;

    (void)number;
    visit->reading = false;
    if (!visit->open)
        return;
    uint32_t more = visit->sips++ / SIPS_ALIKE;
    if (visit->sip_ns > 0)
        more = 0; /* a little every second */
    if (read_some(visit, SIP_BYTES << (more < SIPS_MOST ? more : SIPS_MOST)) >
        0) {
        take_answers(visit);
        read_on(visit);
    }
}

void visits_heal(void)
{
    all.healed = true;
    for (struct visit *s = all.visits; s != NULL; s = s->next) {
        s->reading = false;
        if (s->open && s->slow)
            read_on(s);
    }
}

/* The request that was read before that time and is not answered; NULL: none,
 * or it is not the only one. */
static const struct call *owed_call(const struct visit *s, uint64_t asked_ns)
{
    const struct wire *wire = s->wire;

    if (!s->open || wire->tcp == NULL || wire->reset || wire->broken ||
        wire->write != NULL || s->taken != s->replied + 1)
        return NULL;
    const struct call *call = s->calls[s->replied];
    return call->id != 0 && call->alone && call->taken_ns < asked_ns ? call
                                                                     : NULL;
}

/* Listings are not promised an answer: they wait for time to pass. */
static bool is_listing(const struct call *call)
{
    return words_is(&call->words, 0, "LOCKS") ||
           words_is(&call->words, 1, "LIST");
}

static void say_owed(const struct visit *s, const struct call *call,
                     const char *what)
{
    if (all.wrong[0] == '\0')
        snprintf(all.wrong, sizeof all.wrong,
                 "client %llu's request #%llu was read before the %s and is "
                 "not answered",
                 (unsigned long long)s->wire->number,
                 (unsigned long long)call->id, what);
}

void visits_stopped(uint64_t asked_ns)
{
    for (const struct visit *s = all.visits; s != NULL; s = s->next) {
        const struct call *call = owed_call(s, asked_ns);
        if (call != NULL && !is_listing(call))
            say_owed(s, call, "stop");
    }
}

/* Only permits and events are still waited for then. */
void visits_failed(uint64_t failed_ns)
{
    for (const struct visit *s = all.visits; s != NULL; s = s->next) {
        const struct call *call = owed_call(s, failed_ns);
        if (call != NULL && !words_is(&call->words, 0, "LIMIT") &&
            !words_is(&call->words, 0, "EVENTS"))
            say_owed(s, call, "failure of the journal");
    }
}

/* ---- What the wire says. ---- */

static void end(struct visit *visit)
{
    if (!visit->open)
        return;
    visit->open = false;
    if (visit->connected)
        record_mark(visit->wire->number, 0, HISTORY_CLOSED);
}

static void on_connected(struct wire *wire)
{
    struct visit *visit = wire->owner;

    visit->connected = true;
    record_mark(wire->number, 0, HISTORY_OPEN);
    all.calls->connected(visit);
}

static void on_readable(struct wire *wire)
{
    read_on(wire->owner);
}

/* What has arrived is read first, also by those who read slowly. */
static void on_ended(struct wire *wire)
{
    struct visit *visit = wire->owner;

    if (!visit->open)
        return;
    while (visit->open && read_some(visit, 65536) > 0)
        take_answers(visit);
    if (!visit->open)
        return;
    end(visit);
    all.calls->ended(visit);
}

/* Only a request that nothing stands before was surely looked at when it was
 * read. */
static void on_taken(struct wire *wire)
{
    struct visit *visit = wire->owner;

    while (visit->taken < visit->count &&
           visit->calls[visit->taken]->end <= wire->up.taken) {
        struct call *call = visit->calls[visit->taken];
        call->taken_ns = world_now_ns();
        call->taken_at = feeding_up_to();
        call->alone = visit->replied == visit->taken && !all.stops;
        if (call->id != 0 && call->alone)
            record_mark(wire->number, call->id, HISTORY_ARRIVED);
        counting_read(call->id != 0);
        visit->taken++;
    }
}

static void on_replied(struct wire *wire, struct hf_bytes reply)
{
    struct visit *visit = wire->owner;

    if (hearing_is_push(reply)) {
        hearing_push(&visit->hearing, reply);
        return;
    }
    if (visit->replied >= visit->count) { /* turned away */
        visit->hearing.cut |= visit->hearing.on;
        return;
    }
    counting_told(reply);
    struct call *call = visit->calls[visit->replied++];
    hearing_answer(&visit->hearing, &call->words, reply, call->taken_at);
    if (call->id != 0)
        record_mark(wire->number, call->id, HISTORY_SENT);
}

static void on_gone(struct wire *wire)
{
    struct visit *visit = wire->owner;

    if (!visit->gone)
        record_mark(wire->number, 0, HISTORY_GONE);
    visit->gone = true;
}

/* Before somebody who waited is granted a lock, the server asks whether its
 * connection stands. */
static void on_cut(struct wire *wire)
{
    const struct visit *visit = wire->owner;

    if (visit->taken > visit->replied && wire->tcp != NULL &&
        !words_is(&visit->calls[visit->replied]->words, 0, "LIMIT") &&
        may_wait(visit->calls[visit->replied]) && !world_is_dead())
        on_gone(wire);
}

/* Is there a reason to close the connection? */
static bool is_excused(const struct visit *s)
{
    const struct wire *wire = s->wire;
    uint64_t now_ns = world_now_ns() + TURN_SLACK_NS;
    bool owes = s->taken > s->replied;

    if (all.excused || wire->reset || wire->client_closed || s->hearing.cut ||
        (all.full && s->taken == 0))
        return true;
    for (size_t i = 0; i < s->count; i++) {
        if (s->calls[i]->id == 0 || words_is(&s->calls[i]->words, 0, "QUIT"))
            return true;
    }
    /* One that sends no more gets its answers, but does not wait. */
    for (size_t i = s->replied; i < s->taken && wire->up.fin; i++) {
        if (may_wait(s->calls[i]))
            return true;
    }
    if (wire->up.fin && !owes)
        return true;
    if (all.idle_ns > 0 && !owes && now_ns >= wire->heard_ns + all.idle_ns)
        return true;
    return wire_window(wire) == 0 && now_ns >= wire->heard_ns + STUCK_NS &&
           now_ns >= wire->sent_ns + STUCK_NS;
}

static void on_shut(struct wire *wire)
{
    if (is_excused(wire->owner) || all.wrong[0] != '\0')
        return;
    snprintf(all.wrong, sizeof all.wrong,
             "client %llu was closed without a reason",
             (unsigned long long)wire->number);
    record_say("%s", all.wrong);
}

void visits_excuse(bool on, bool stops)
{
    all.excused = on;
    all.stops = stops;
}

void visits_bounds(uint64_t idle_ns, bool full)
{
    all.idle_ns = idle_ns;
    all.full = full;
}

static const struct wire_calls wire_calls = {
    .connected = on_connected,
    .readable = on_readable,
    .ended = on_ended,
    .taken = on_taken,
    .replied = on_replied,
    .cut = on_cut,
    .gone = on_gone,
    .shut = on_shut,
};

/* ---- What the client does. ---- */

struct visit *visit_open(struct client *client, bool local, bool slow)
{
    struct visit *visit = calloc(1, sizeof *visit);

    assert(visit != NULL);
    visit->client = client;
    visit->open = true;
    visit->slow = slow;
    visit->next = all.visits;
    all.visits = visit;
    visit->wire = wire_connect(&wire_calls, visit, local);
    return visit;
}

static struct call *add_call(struct visit *visit)
{
    if (visit->count == visit->cap) {
        visit->cap = visit->cap ? 2 * visit->cap : 8;
        visit->calls = realloc(visit->calls, visit->cap * sizeof *visit->calls);
        assert(visit->calls != NULL);
    }
    struct call *call = calloc(1, sizeof *call);
    assert(call != NULL);
    visit->calls[visit->count++] = call;
    return call;
}

static size_t encode(const struct words *words, bool inline_, char *out,
                     size_t room)
{
    size_t at = 0;

    if (!inline_)
        at = (size_t)snprintf(out, room, "*%zu\r\n", words->count);
    for (size_t i = 0; i < words->count; i++) {
        const char *text = words->text + words->at[i];
        int len = words->lens[i];
        at +=
            (size_t)(inline_ ? snprintf(out + at, room - at, "%.*s ", len, text)
                             : snprintf(out + at, room - at, "$%d\r\n%.*s\r\n",
                                        len, len, text));
    }
    if (inline_)
        at += (size_t)snprintf(out + at, room - at, "\r\n");
    assert(at < room);
    return at;
}

uint64_t visits_next_id(void)
{
    return ++all.ids;
}

const struct words *call_again(const struct call *call)
{
    if (call->queued || !words_has(&call->words, "REQ"))
        return NULL;
    return call->group != NULL ? call->group : &call->words;
}

static void ask_one(struct visit *visit, const struct words *words,
                    bool inline_)
{
    char bytes[WORDS_TEXT_MAX + WORDS_MAX * 16];
    struct hf_bytes list[WORDS_MAX];
    struct call *call = add_call(visit);
    bool blanks = memchr(words->text, ' ', words->len) != NULL;
    size_t len = encode(words, inline_ && !blanks, bytes, sizeof bytes);

    bool ends = words_is(words, 0, "EXEC") || words_is(words, 0, "DISCARD");
    call->queued = visit->multi && !ends && !words_is(words, 0, "MULTI");
    visit->multi = !ends && (visit->multi || words_is(words, 0, "MULTI"));
    call->words = *words;
    call->id = ++all.ids;
    visit->stream += len;
    call->end = visit->stream;
    record_call(visit->wire->number, call->id, list, words_list(words, list));
    wire_write(visit->wire, bytes, len);
}

uint64_t visit_ask(struct visit *visit, const struct words *words, bool inline_)
{
    uint64_t count = 0;
    struct words part;

    for (size_t i = 0; i < words->count; i++, count++) {
        i += words_until(words, i, &part);
        ask_one(visit, &part, inline_);
    }
    if (count > 1) {
        struct call *exec = visit->calls[visit->count - 1];
        exec->group = malloc(sizeof *words);
        assert(exec->group != NULL);
        *exec->group = *words;
    }
    return count;
}

void visit_send(struct visit *visit, const char *data, size_t len)
{
    struct call *call = add_call(visit);

    visit->stream += len;
    call->end = visit->stream;
    wire_write(visit->wire, data, len);
}

void visit_flood(struct visit *visit)
{
    static char text[FLOOD_BYTES];
    int at = snprintf(text, sizeof text, "*2\r\n$4\r\nECHO\r\n$%u\r\n",
                      FLOOD_BYTES - 64);

    memset(text + at, 'x', FLOOD_BYTES - 64);
    memcpy(text + at + FLOOD_BYTES - 64, "\r\n", 2);
    for (int i = 0; i < FLOOD_COUNT; i++)
        visit_send(visit, text, (size_t)at + FLOOD_BYTES - 62);
}

void visit_finish(struct visit *visit)
{
    visit->finished = true;
    wire_finish(visit->wire);
}

void visit_close(struct visit *visit, bool reset)
{
    if (!visit->open)
        return;
    end(visit);
    wire_close(visit->wire, reset);
}
