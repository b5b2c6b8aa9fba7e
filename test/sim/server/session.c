/* session.c - sends requests, matches answers, records both. */
#include "sim/server/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/resp.h"
#include "sim/server/record.h"

/* What a slow reader takes at a time: more when there is much to read, so that
 * everybody has all answers in the end. */
#define SIP_BYTES  300u
#define SIPS_ALIKE 32u
#define SIPS_MOST  8u

/* A client that reads and says nothing for so long may be closed. */
#define STUCK_NS (60 * S)
/* The server's times are those of the beginning of a turn. */
#define TURN_SLACK_NS (100 * MS)

static struct {
    struct session *sessions;
    const struct session_calls *calls;
    uint64_t ids;
    uint64_t idle_ns;
    bool full;
    bool excused;
    bool stops;
    bool healed;
    char wrong[400];
} all;

void sessions_begin(const struct session_calls *calls)
{
    memset(&all, 0, sizeof all);
    all.calls = calls;
}

void sessions_end(void)
{
    while (all.sessions != NULL) {
        struct session *session = all.sessions;
        all.sessions = session->next;
        for (size_t i = 0; i < session->count; i++)
            free(session->calls[i]);
        free(session->calls);
        free(session->in);
        free(session);
    }
}

const char *sessions_wrong(void)
{
    return all.wrong[0] == '\0' ? NULL : all.wrong;
}

size_t session_open_calls(const struct session *session)
{
    return session->count - session->answered;
}

bool session_is_stuck(const struct session *session)
{
    for (size_t i = session->answered; i < session->count; i++) {
        if (session->calls[i]->id == 0)
            return true;
    }
    return false;
}

/* ---- Answers. ---- */

static void take_answer(struct session *session, struct hf_bytes reply)
{
    bool error = reply.len > 0 && reply.data[0] == '-';

    if (session->answered == session->count) {
        /* turned away, or given up for what was sent before */
        if (!error && all.wrong[0] == '\0')
            snprintf(all.wrong, sizeof all.wrong,
                     "client %llu was told something it did not ask: %.*s",
                     (unsigned long long)session->wire->number,
                     (int)(reply.len < 200 ? reply.len : 200), reply.data);
        return;
    }
    struct call *call = session->calls[session->answered++];
    call->answered = true;
    if (memmem(reply.data, reply.len, "does not keep up", 16) != NULL &&
        error && all.wrong[0] == '\0') /* nobody asks for so much */
        snprintf(all.wrong, sizeof all.wrong,
                 "client %llu's request #%llu was refused: %.*s",
                 (unsigned long long)session->wire->number,
                 (unsigned long long)call->id, (int)reply.len - 2, reply.data);
    if (call->id != 0)
        record_answer(session->wire->number, call->id, reply);
    all.calls->answered(session, call, reply);
}

static void take_answers(struct session *session)
{
    size_t at = 0;
    size_t from = 0;

    while (session->open && from < session->in_len) {
        struct hf_bytes input = hf_bytes(session->in, session->in_len);
        at = from;
        enum hf_status status = resp_skip(input, &at);
        if (status == HF_MORE)
            break;
        if (status != HF_OK) {
            snprintf(all.wrong, sizeof all.wrong,
                     "client %llu was told what is not RESP: %.*s",
                     (unsigned long long)session->wire->number,
                     (int)(session->in_len - from < 100 ? session->in_len - from
                                                        : 100),
                     session->in + from);
            from = session->in_len;
            break;
        }
        take_answer(session, hf_bytes(session->in + from, at - from));
        from = at;
    }
    memmove(session->in, session->in + from, session->in_len - from);
    session->in_len -= from;
}

static size_t read_some(struct session *session, size_t most)
{
    if (session->in_cap < session->in_len + most) {
        session->in_cap = 2 * (session->in_len + most);
        session->in = realloc(session->in, session->in_cap);
        assert(session->in != NULL);
    }
    size_t got = wire_read(session->wire, session->in + session->in_len, most);
    session->in_len += got;
    return got;
}

static void on_sip(void *context, uint64_t number);

static void read_on(struct session *session)
{
    bool slow = session->slow && !all.healed;

    if (session->reading || !session->open)
        return;
    if (slow) {
        uint64_t now_ns = world_now_ns();
        uint64_t ns = dice_scale(&session->wire->dice, 10 * US, 500 * MS);
        if (session->sip_ns > 0)
            ns = session->sip_ns;
        if (session->deaf_ns > now_ns)
            ns = session->deaf_ns - now_ns;
        session->reading = true;
        world_after(ns, on_sip, session, 0);
        return;
    }
    while (read_some(session, 65536) > 0)
        take_answers(session);
}

static void on_sip(void *context, uint64_t number)
{
    struct session *session = context;

    (void)number;
    session->reading = false;
    if (!session->open)
        return;
    uint32_t more = session->sips++ / SIPS_ALIKE;
    if (session->sip_ns > 0)
        more = 0; /* a little every second */
    if (read_some(session, SIP_BYTES << (more < SIPS_MOST ? more : SIPS_MOST)) >
        0) {
        take_answers(session);
        read_on(session);
    }
}

void sessions_heal(void)
{
    all.healed = true;
    for (struct session *s = all.sessions; s != NULL; s = s->next) {
        s->reading = false;
        if (s->open && s->slow)
            read_on(s);
    }
}

/* The request that was read before that time and is not answered; NULL: none,
 * or it is not the only one. */
static const struct call *owed_call(const struct session *s, uint64_t asked_ns)
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

static void say_owed(const struct session *s, const struct call *call,
                     const char *what)
{
    if (all.wrong[0] == '\0')
        snprintf(all.wrong, sizeof all.wrong,
                 "client %llu's request #%llu was read before the %s and is "
                 "not answered",
                 (unsigned long long)s->wire->number,
                 (unsigned long long)call->id, what);
}

void sessions_stopped(uint64_t asked_ns)
{
    for (const struct session *s = all.sessions; s != NULL; s = s->next) {
        const struct call *call = owed_call(s, asked_ns);
        if (call != NULL && !is_listing(call))
            say_owed(s, call, "stop");
    }
}

/* Only permits are still waited for then. */
void sessions_failed(uint64_t failed_ns)
{
    for (const struct session *s = all.sessions; s != NULL; s = s->next) {
        const struct call *call = owed_call(s, failed_ns);
        if (call != NULL && !words_is(&call->words, 0, "LIMIT"))
            say_owed(s, call, "failure of the journal");
    }
}

/* ---- What the wire says. ---- */

static void end(struct session *session)
{
    if (!session->open)
        return;
    session->open = false;
    if (session->connected)
        record_mark(session->wire->number, 0, HISTORY_CLOSED);
}

static void on_connected(struct wire *wire)
{
    struct session *session = wire->owner;

    session->connected = true;
    record_mark(wire->number, 0, HISTORY_OPEN);
    all.calls->connected(session);
}

static void on_readable(struct wire *wire)
{
    read_on(wire->owner);
}

/* What has arrived is read first, also by those who read slowly. */
static void on_ended(struct wire *wire)
{
    struct session *session = wire->owner;

    if (!session->open)
        return;
    while (session->open && read_some(session, 65536) > 0)
        take_answers(session);
    if (!session->open)
        return;
    end(session);
    all.calls->ended(session);
}

/* Only a request that nothing stands before was surely looked at when it was
 * read. */
static void on_taken(struct wire *wire)
{
    struct session *session = wire->owner;

    while (session->taken < session->count &&
           session->calls[session->taken]->end <= wire->up.taken) {
        struct call *call = session->calls[session->taken];
        call->taken_ns = world_now_ns();
        call->alone = session->replied == session->taken && !all.stops;
        if (call->id != 0 && call->alone)
            record_mark(wire->number, call->id, HISTORY_ARRIVED);
        session->taken++;
    }
}

static void on_replied(struct wire *wire)
{
    struct session *session = wire->owner;

    if (session->replied >= session->count)
        return;
    struct call *call = session->calls[session->replied++];
    if (call->id != 0)
        record_mark(wire->number, call->id, HISTORY_SENT);
}

static void on_gone(struct wire *wire)
{
    struct session *session = wire->owner;

    if (!session->gone)
        record_mark(wire->number, 0, HISTORY_GONE);
    session->gone = true;
}

/* Before somebody who waited is granted a lock, the server asks whether its
 * connection stands. */
static void on_cut(struct wire *wire)
{
    const struct session *session = wire->owner;

    if (session->taken > session->replied && wire->tcp != NULL &&
        words_is(&session->calls[session->replied]->words, 0, "LOCK") &&
        words_has(&session->calls[session->replied]->words, "WAIT") &&
        !world_is_dead())
        on_gone(wire);
}

/* Is there a reason to close the connection? */
static bool is_excused(const struct session *s)
{
    const struct wire *wire = s->wire;
    uint64_t now_ns = world_now_ns() + TURN_SLACK_NS;
    bool owes = s->taken > s->replied;

    if (all.excused || wire->reset || wire->client_closed ||
        (all.full && s->taken == 0))
        return true;
    for (size_t i = 0; i < s->count; i++) {
        if (s->calls[i]->id == 0 || words_is(&s->calls[i]->words, 0, "QUIT"))
            return true;
    }
    /* One that sends no more gets its answers, but does not wait. */
    for (size_t i = s->replied; i < s->taken && wire->up.fin; i++) {
        if (words_has(&s->calls[i]->words, "WAIT"))
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

void sessions_excuse(bool on, bool stops)
{
    all.excused = on;
    all.stops = stops;
}

void sessions_bounds(uint64_t idle_ns, bool full)
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

struct session *session_open(struct client *client, bool local, bool slow)
{
    struct session *session = calloc(1, sizeof *session);

    assert(session != NULL);
    session->client = client;
    session->open = true;
    session->slow = slow;
    session->next = all.sessions;
    all.sessions = session;
    session->wire = wire_connect(&wire_calls, session, local);
    return session;
}

static struct call *add_call(struct session *session)
{
    if (session->count == session->cap) {
        session->cap = session->cap ? 2 * session->cap : 8;
        session->calls =
            realloc(session->calls, session->cap * sizeof *session->calls);
        assert(session->calls != NULL);
    }
    struct call *call = calloc(1, sizeof *call);
    assert(call != NULL);
    session->calls[session->count++] = call;
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

uint64_t sessions_next_id(void)
{
    return ++all.ids;
}

void session_ask(struct session *session, const struct words *words,
                 bool inline_)
{
    char bytes[WORDS_TEXT_MAX + WORDS_MAX * 16];
    struct hf_bytes list[WORDS_MAX];
    struct call *call = add_call(session);
    size_t len = encode(words, inline_, bytes, sizeof bytes);

    call->words = *words;
    call->id = ++all.ids;
    session->stream += len;
    call->end = session->stream;
    record_call(session->wire->number, call->id, list, words_list(words, list));
    wire_write(session->wire, bytes, len);
}

void session_send(struct session *session, const char *data, size_t len)
{
    struct call *call = add_call(session);

    session->stream += len;
    call->end = session->stream;
    wire_write(session->wire, data, len);
}

void session_finish(struct session *session)
{
    session->finished = true;
    wire_finish(session->wire);
}

void session_close(struct session *session, bool reset)
{
    if (!session->open)
        return;
    end(session);
    wire_close(session->wire, reset);
}
