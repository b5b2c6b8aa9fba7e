/* limit.c - decisions about limits, and what is told of them. */
#include "server/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/memory.h"
#include "holdfast/inspect.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/reply.h"
#include "server/server.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* What is kept of a call with a REQ. */
struct kept {
    uint64_t words; /* hash of the request */
    uint64_t at_ns;
    uint64_t hold;
    struct hf_limiter_answer answer;
};

static const struct hf_hash_seed words_seed = {{1, 2}};

static void say_status(struct server *server, struct conn *conn,
                       enum hf_status status)
{
    if (status == HF_FULL)
        answer_error(server, conn, ERROR_KEYS);
    else if (status == HF_NOTFOUND)
        answer_error(server, conn, ERROR_DROPPED);
    else if (status == HF_INVALID)
        answer_error(server, conn, ERROR_LIMIT);
    else
        answer_error(server, conn, ERROR_MEMORY);
}

/* ---- Open and close. ---- */

enum hf_status limits_open(struct limits *limits, struct server *server)
{
    const struct hold_bounds *bounds = &server->config.bounds;
    struct hf_limiter_opts opts = {.name = "limits",
                                   .clock = server->clock,
                                   .keys_max = server->config.limit_keys_max,
                                   .holds_max = server->config.limit_keys_max,
                                   .log_bytes_max =
                                       server->config.limit_log_bytes};
    uint64_t keep_ms = bounds->request_keep_ms;
    struct hf_dedup_opts seen = {.name = "limit requests",
                                 .items_max = bounds->requests_max,
                                 .value_bytes = sizeof(struct kept)};

    seen.window_ns = keep_ms < UINT64_MAX / 4 / NS_PER_MS ? keep_ms * NS_PER_MS
                                                          : UINT64_MAX / 4;
    enum hf_status status = hf_limiter_open(&limits->limiter, &opts);
    if (status == HF_OK) {
        hf_limiter_watch(limits->limiter, limit_freed, server);
        status = hf_dedup_open(&limits->seen, &seen);
    }
    return status;
}

void limits_close(struct limits *limits)
{
    if (limits->limiter != NULL)
        hf_limiter_watch(limits->limiter, NULL, NULL);
    hf_limiter_close(limits->limiter);
    hf_dedup_close(limits->seen);
}

/* ---- Replies. ---- */

/* Rounded up, so that whoever waits that long is not refused again. */
static int64_t up_to_ms(uint64_t ns)
{
    return ns == HF_LIMITER_NEVER
               ? -1
               : (int64_t)(ns / NS_PER_MS + (ns % NS_PER_MS != 0));
}

static uint64_t up_to_s(uint64_t ns)
{
    return ns / NS_PER_S + (ns % NS_PER_S != 0);
}

/* As the RateLimit header fields draft of the IETF has them: of the policy that
 * denied, else of the first one. */
static void reply_headers(struct server *server, struct reply *reply,
                          const struct limit_call *call,
                          const struct hf_limiter_answer *answer)
{
    struct hf_limiter_rule rule = call->own;
    const char *name = answer->rule[0] != '\0' ? answer->rule : call->policy;
    uint64_t wait_ns =
        answer->allowed ? answer->reset_after_ns : answer->retry_after_ns;
    char text[160];

    if (name[0] == '\0')
        name = "limit";
    else
        (void)hf_limiter_find(server->limits.limiter, name, NULL, &rule);
    snprintf(text, sizeof text, "\"%s\";q=%" PRIu64 ";w=%" PRIu64, name,
             answer->limit, up_to_s(rule.rate.span_ns));
    reply_put_field_text(reply, FIELD_HEADER_POLICY, text);
    if (wait_ns == HF_LIMITER_NEVER)
        snprintf(text, sizeof text, "\"%s\";r=%" PRIu64, name,
                 answer->remaining);
    else
        snprintf(text, sizeof text, "\"%s\";r=%" PRIu64 ";t=%" PRIu64, name,
                 answer->remaining, up_to_s(wait_ns));
    reply_put_field_text(reply, FIELD_HEADER, text);
}

/* The five that everybody wants; the rest for those who use more. */
static void reply_answer(struct server *server, struct conn *conn,
                         const struct limit_call *call,
                         const struct hf_limiter_answer *answer, uint64_t hold)
{
    struct reply *reply = &conn->reply;
    uint32_t fields = 5u + (call->plain ? 0 : 3u) + (call->words.hold_ms > 0) +
                      (call->headers ? 2u : 0);

    reply_put_map(reply, fields);
    reply_put_field(reply, FIELD_ALLOWED, answer->allowed);
    reply_put_field(reply, FIELD_LIMIT, (int64_t)answer->limit);
    reply_put_field(reply, FIELD_REMAINING, (int64_t)answer->remaining);
    reply_put_field(reply, FIELD_RETRY_MS, up_to_ms(answer->retry_after_ns));
    reply_put_field(reply, FIELD_RESET_MS, up_to_ms(answer->reset_after_ns));
    if (!call->plain) {
        reply_put_field_text(reply, FIELD_POLICY, answer->rule);
        reply_put_field(reply, FIELD_SHADOW,
                        __builtin_popcount(answer->shadow));
        reply_put_field(reply, FIELD_TAKEN, (int64_t)answer->taken_ns);
    }
    if (call->words.hold_ms > 0)
        reply_put_field(reply, FIELD_HOLD, (int64_t)hold);
    if (call->headers)
        reply_headers(server, reply, call, answer);
}

/* ---- LIMIT. ---- */

static enum hf_status decide(struct server *server,
                             const struct limit_call *call, uint64_t now_ns,
                             struct hf_limiter_answer *answer, uint64_t *hold)
{
    struct hf_limiter *limiter = server->limits.limiter;
    struct hf_limiter_call made = {.asks = call->asks,
                                   .count = call->count,
                                   .priority = (uint32_t)call->words.priority,
                                   .now_ns = now_ns};

    *hold = 0;
    if (call->peek)
        return hf_limiter_peek(limiter, &made, answer);
    if (call->words.hold_ms > 0)
        return hf_limiter_hold(limiter, &made, call->words.hold_ms * NS_PER_MS,
                               answer, hold);
    if (!call->refund)
        return hf_limiter_take(limiter, &made, answer);
    enum hf_status status =
        hf_limiter_refund(limiter, &made, call->words.refund_ns);
    return status == HF_OK ? hf_limiter_peek(limiter, &made, answer) : status;
}

/* Of what follows the command's name, which may be written in any case. */
static uint64_t hash_words(const struct asked *asked)
{
    uint64_t hash = asked->count;

    for (size_t i = 0; i < asked->count; i++)
        hash = (hash ^ hf_hash(words_seed, asked->args[i])) *
               UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

/* An answer that is told again, later. */
static void age(struct hf_limiter_answer *answer, uint64_t passed_ns)
{
    uint64_t *times[] = {&answer->retry_after_ns, &answer->reset_after_ns};

    for (size_t i = 0; i < 2; i++) {
        if (*times[i] != HF_LIMITER_NEVER)
            *times[i] = *times[i] > passed_ns ? *times[i] - passed_ns : 0;
    }
}

/* A repetition gets the first answer. True: it was answered. */
static bool answer_again(struct server *server, struct conn *conn,
                         const struct limit_call *call, uint64_t words,
                         uint64_t now_ns)
{
    struct kept kept;
    struct hf_bytes id = call->words.request;

    if (hf_dedup_find(server->limits.seen, id.data, id.len, now_ns, &kept) !=
        HF_OK)
        return false;
    if (kept.words != words) {
        answer_error(server, conn, ERROR_REUSED);
        return true;
    }
    age(&kept.answer, now_ns - kept.at_ns);
    reply_answer(server, conn, call, &kept.answer, kept.hold);
    return true;
}

/* Before the decision, since what is spent must not be spent again. */
static enum hf_status make_room(struct server *server,
                                const struct limit_call *call, uint64_t words,
                                uint64_t now_ns)
{
    struct kept kept = {.words = words, .at_ns = now_ns};

    return hf_dedup_add(server->limits.seen, call->words.request.data,
                        call->words.request.len, now_ns, &kept);
}

static void keep_answer(struct server *server, const struct limit_call *call,
                        uint64_t words, uint64_t now_ns, enum hf_status status,
                        const struct hf_limiter_answer *answer, uint64_t hold)
{
    struct kept kept = {
        .words = words, .at_ns = now_ns, .hold = hold, .answer = *answer};
    struct hf_bytes id = call->words.request;

    (void)hf_dedup_forget(server->limits.seen, id.data, id.len, now_ns);
    if (status == HF_OK) /* there is room: it was there a moment ago */
        (void)hf_dedup_add(server->limits.seen, id.data, id.len, now_ns, &kept);
}

/* What it waits for, if this ask denies: one queue for those of the same
 * priority and with the same numbers, for they can be had in order. */
static struct limit_turn turn_of(struct server *server,
                                 const struct limit_call *call, uint32_t at)
{
    const struct hf_limiter_ask *ask = &call->asks[at];
    struct limit_turn turn = {
        .id = hf_limiter_watch_id(server->limits.limiter, ask),
        .class = call->words.priority};

    if (ask->own != NULL) {
        const struct hf_rate_rule *own = &ask->own->rate;
        const uint64_t numbers[] = {own->kind, own->permits, own->span_ns,
                                    own->burst};
        turn.class ^= hf_hash(words_seed,
                              hf_bytes((const char *)numbers, sizeof numbers));
    }
    return turn;
}

/* Leases are given back at any time; of other permits it is known when. */
static bool may_come_early(struct server *server, const struct limit_call *call,
                           const struct hf_limiter_answer *answer)
{
    struct hf_limiter_rule rule = call->own;

    if (call->asks[answer->denied_by].own == NULL &&
        hf_limiter_find(server->limits.limiter, answer->rule, NULL, &rule) !=
            HF_OK)
        return false;
    return rule.rate.kind == HF_RATE_LEASES;
}

/* True: the call is to wait, and `turn` says for what. It is only looked at,
 * so that one who waits is not counted as denied. `first`: nobody is before
 * it. */
static bool must_wait(struct server *server, const struct limit_call *call,
                      uint64_t deadline_ns, bool first, struct limit_turn *turn)
{
    uint64_t now_ns = server->heard_ns;
    struct hf_limiter_answer answer;
    struct hf_limiter_call made = {.asks = call->asks,
                                   .count = call->count,
                                   .priority = (uint32_t)call->words.priority,
                                   .now_ns = now_ns};

    if (deadline_ns <= now_ns ||
        hf_limiter_peek(server->limits.limiter, &made, &answer) != HF_OK ||
        answer.retry_after_ns == HF_LIMITER_NEVER)
        return false;
    if (!answer.allowed) {
        *turn = turn_of(server, call, answer.denied_by);
        turn->due_ns = now_ns + answer.retry_after_ns;
        return turn->due_ns <= deadline_ns ||
               may_come_early(server, call, &answer);
    }
    for (uint32_t i = 0; i < call->count && !first; i++) {
        *turn = turn_of(server, call, i);
        turn->due_ns = now_ns;
        if (limit_queued(&server->limits, turn))
            return true;
    }
    return false;
}

static void run(struct server *server, struct conn *conn,
                const struct limit_call *call)
{
    struct hf_limiter_answer answer = {0};
    uint64_t hold;
    enum hf_status status =
        decide(server, call, server->heard_ns, &answer, &hold);

    if (status != HF_OK) {
        say_status(server, conn, status);
        return;
    }
    if (!call->peek && !call->refund)
        metrics_decided(&server->metrics, answer.allowed);
    reply_answer(server, conn, call, &answer, hold);
}

static void run_once(const struct asked *asked, const struct limit_call *call)
{
    struct server *server = asked->server;
    struct conn *conn = asked->conn;
    struct hf_limiter_answer answer = {0};
    uint64_t words = hash_words(asked);
    uint64_t now_ns = server->heard_ns;
    uint64_t hold = 0;

    if (answer_again(server, conn, call, words, now_ns))
        return;
    enum hf_status status = make_room(server, call, words, now_ns);
    if (status != HF_OK) {
        answer_error(server, conn, ERROR_REQUESTS);
        return;
    }
    status = decide(server, call, now_ns, &answer, &hold);
    keep_answer(server, call, words, now_ns, status, &answer, hold);
    if (status != HF_OK) {
        say_status(server, conn, status);
        return;
    }
    if (!call->refund)
        metrics_decided(&server->metrics, answer.allowed);
    reply_answer(server, conn, call, &answer, hold);
}

void limit_expect(struct server *server, const struct resp_request *request,
                  bool found)
{
    static const struct hf_limiter_rule any;
    struct hf_limiter *limiter = server->limits.limiter;
    struct hf_limiter_ask ask = {.own = &any};
    char name[HF_NAME_BYTES];

    if (request->count < 4)
        return;
    ask.key = request->args[1].data;
    ask.key_len = request->args[1].len;
    if (hf_bytes_is(request->args[2], "POLICY")) {
        struct hf_bytes policy = request->args[3];
        if (policy.len >= sizeof name)
            return;
        memcpy(name, policy.data, policy.len);
        name[policy.len] = '\0';
        ask.own = NULL;
        if (hf_limiter_find(limiter, name, &ask.rule, NULL) != HF_OK)
            return; /* or several: that is left to the call */
    }
    hf_limiter_expect(limiter, &ask, found);
}

void limit_take(const struct asked *asked)
{
    struct server *server = asked->server;
    struct conn *conn = asked->conn;
    struct limit_call call;
    struct limit_turn turn;
    char error[PARSE_ERROR_MAX];

    enum hf_status status =
        limit_parse(&server->limits, asked->args, asked->count, &call, error);
    if (status != HF_OK) {
        answer_bad(server, conn, status, error);
    } else if (call.words.request.len > 0) {
        run_once(asked, &call);
    } else {
        uint64_t deadline_ns = 0;
        if (call.words.wait_ms > 0)
            deadline_ns = server->heard_ns + call.words.wait_ms * NS_PER_MS;
        if (call.words.wait_ms == 0 ||
            !must_wait(server, &call, deadline_ns, false, &turn) ||
            limit_park(server, conn, asked->request, &turn, deadline_ns) !=
                HF_OK)
            run(server, conn, &call);
    }
}

bool limit_again(struct server *server, struct conn *conn,
                 struct resp_request *request, uint64_t deadline_ns, bool last,
                 struct limit_turn *turn)
{
    struct limit_call call;
    char error[PARSE_ERROR_MAX];

    /* Its policy may have been dropped while it waited. */
    enum hf_status status = limit_parse(&server->limits, request->args + 1,
                                        request->count - 1, &call, error);
    if (status != HF_OK)
        answer_bad(server, conn, status, error);
    else if (!last && must_wait(server, &call, deadline_ns, true, turn))
        return false;
    else
        run(server, conn, &call);
    return true;
}
