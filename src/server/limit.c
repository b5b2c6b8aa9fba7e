/* limit.c - decisions about limits, and what is told of them. */
#include "server/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "holdfast/inspect.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/reply.h"
#include "server/server.h"

/* What was decided. */
struct decision {
    struct hf_limiter_answer answer;
    uint64_t hold; /* 0: none */
};

/* What is kept of a call with a REQ. */
struct kept {
    uint64_t words; /* hash of the request */
    uint64_t at_ns;
    struct decision made;
};

static const struct hf_hash_seed words_seed = {{1, 2}};

struct error {
    enum hold_code code;
    const char *sentence;
};

static struct error error_of(enum hf_status status)
{
    if (status == HF_FULL)
        return (struct error){ERROR_KEYS};
    if (status == HF_NOTFOUND)
        return (struct error){ERROR_DROPPED};
    if (status == HF_INVALID)
        return (struct error){ERROR_LIMIT};
    return (struct error){ERROR_MEMORY};
}

static void say_status(struct conn *conn, enum hf_status status)
{
    struct error error = error_of(status);

    answer_error(conn->server, conn, error.code, "%s", error.sentence);
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

    seen.window_ns = keep_ms < UINT64_MAX / 4 / HF_NS_PER_MS
                         ? keep_ms * HF_NS_PER_MS
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
               : (int64_t)(ns / HF_NS_PER_MS + (ns % HF_NS_PER_MS != 0));
}

static uint64_t up_to_s(uint64_t ns)
{
    return ns / HF_NS_PER_S + (ns % HF_NS_PER_S != 0);
}

/* As the RateLimit header fields draft of the IETF has them: of the policy that
 * denied, else of the first one. */
static void reply_headers(struct conn *conn, const struct limit_call *call,
                          const struct hf_limiter_answer *answer)
{
    struct reply *reply = &conn->reply;
    struct hf_limiter_rule rule = call->own;
    const char *name = answer->rule[0] != '\0' ? answer->rule : call->policy;
    uint64_t wait_ns =
        answer->allowed ? answer->reset_after_ns : answer->retry_after_ns;
    char text[160];

    if (name[0] == '\0')
        name = "limit";
    else
        (void)hf_limiter_find(conn->server->limits.limiter, name, NULL, &rule);
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
static void reply_decision(struct conn *conn, const struct limit_call *call,
                           const struct decision *made)
{
    const struct hf_limiter_answer *answer = &made->answer;
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
        reply_put_field(reply, FIELD_HOLD, (int64_t)made->hold);
    if (call->headers)
        reply_headers(conn, call, answer);
}

/* ---- LIMIT. ---- */

static struct hf_limiter_call limiter_call(const struct server *server,
                                           const struct limit_call *call)
{
    return (struct hf_limiter_call){.asks = call->asks,
                                    .count = call->count,
                                    .priority = (uint32_t)call->words.priority,
                                    .now_ns = server->heard_ns};
}

static enum hf_status decide(struct server *server,
                             const struct limit_call *call,
                             struct decision *out)
{
    struct hf_limiter *limiter = server->limits.limiter;
    struct hf_limiter_call made = limiter_call(server, call);

    if (call->peek)
        return hf_limiter_peek(limiter, &made, &out->answer);
    if (call->words.hold_ms > 0)
        return hf_limiter_hold(limiter, &made,
                               call->words.hold_ms * HF_NS_PER_MS, &out->answer,
                               &out->hold);
    if (call->words.refund_ns == 0)
        return hf_limiter_take(limiter, &made, &out->answer);
    enum hf_status status =
        hf_limiter_refund(limiter, &made, call->words.refund_ns);
    return status == HF_OK ? hf_limiter_peek(limiter, &made, &out->answer)
                           : status;
}

/* ---- In a group. ---- */

bool limit_is_simple(const struct limit_call *call)
{
    const struct limit_words *words = &call->words;

    return !call->peek && !call->headers && words->refund_ns == 0 &&
           words->hold_ms == 0 && words->wait_ms == 0 &&
           words->request.len == 0;
}

static void put_error(char out[PARSE_ERROR_MAX], struct error error)
{
    snprintf(out, PARSE_ERROR_MAX, "%s %.*s", hold_code_name(error.code),
             PARSE_ERROR_MAX - 32, error.sentence);
}

static void write_decision(struct hf_buf *out, const struct limit_call *call,
                           const struct hf_limiter_answer *answer)
{
    reply_map(out, call->plain ? 5 : 8);
    reply_field_number(out, FIELD_ALLOWED, answer->allowed);
    reply_field_number(out, FIELD_LIMIT, (int64_t)answer->limit);
    reply_field_number(out, FIELD_REMAINING, (int64_t)answer->remaining);
    reply_field_number(out, FIELD_RETRY_MS, up_to_ms(answer->retry_after_ns));
    reply_field_number(out, FIELD_RESET_MS, up_to_ms(answer->reset_after_ns));
    if (call->plain)
        return;
    reply_field_text(out, FIELD_POLICY, hf_bytes_text(answer->rule));
    reply_field_number(out, FIELD_SHADOW, __builtin_popcount(answer->shadow));
    reply_field_number(out, FIELD_TAKEN, (int64_t)answer->taken_ns);
}

bool limit_hold(struct server *server, const struct hf_bytes *args,
                size_t count, uint64_t hold_ns, struct hf_buf *answer,
                uint64_t *hold, uint64_t *cost, char error[PARSE_ERROR_MAX])
{
    struct decision made = {0};
    char wrong[PARSE_ERROR_MAX];
    struct limit_call call;

    /* a policy may have been dropped since it was queued */
    enum hf_status status =
        limit_parse(&server->limits, args, count, &call, wrong);
    if (status != HF_OK) {
        put_error(error, (struct error){answer_bad_code(status), wrong});
        return false;
    }
    struct hf_limiter_call asked = limiter_call(server, &call);
    status = hf_limiter_hold(server->limits.limiter, &asked, hold_ns,
                             &made.answer, hold);
    if (status != HF_OK) {
        put_error(error, error_of(status));
        return false;
    }
    metrics_decided(&server->metrics, made.answer.allowed);
    if (!made.answer.allowed) {
        snprintf(error, PARSE_ERROR_MAX, GROUP_DENIED, PRINTED(args[0]),
                 (long long)up_to_ms(made.answer.retry_after_ns));
        return false;
    }
    write_decision(answer, &call, &made.answer);
    *cost = call.words.cost;
    return true;
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
    struct hf_limiter_call made = limiter_call(server, call);

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

static void tell(struct conn *conn, const struct limit_call *call,
                 enum hf_status status, const struct decision *made)
{
    if (status != HF_OK) {
        say_status(conn, status);
        return;
    }
    if (!call->peek && call->words.refund_ns == 0)
        metrics_decided(&conn->server->metrics, made->answer.allowed);
    reply_decision(conn, call, made);
}

static void run(struct conn *conn, const struct limit_call *call)
{
    struct decision made = {0};
    enum hf_status status = decide(conn->server, call, &made);

    tell(conn, call, status, &made);
}

/* A repetition gets the first answer. The REQ takes its place before the
 * decision, since what is spent must not be spent again. */
static void run_once(const struct asked *asked, const struct limit_call *call)
{
    struct server *server = asked->server;
    struct hf_dedup *seen = server->limits.seen;
    struct hf_bytes id = call->words.request;
    uint64_t now_ns = server->heard_ns;
    uint64_t words = limit_hash(asked->args, asked->count, call);
    struct kept kept = {.words = words, .at_ns = now_ns};
    struct kept first;

    if (hf_dedup_find(seen, id.data, id.len, now_ns, &first) == HF_OK) {
        if (first.words != kept.words) {
            answer_error(server, asked->conn, ERROR_REUSED);
            return;
        }
        age(&first.made.answer, now_ns - first.at_ns);
        reply_decision(asked->conn, call, &first.made);
    } else if (hf_dedup_add(seen, id.data, id.len, now_ns, &kept) != HF_OK) {
        answer_error(server, asked->conn, ERROR_REQUESTS);
    } else {
        enum hf_status status = decide(server, call, &kept.made);
        (void)hf_dedup_forget(seen, id.data, id.len, now_ns);
        if (status == HF_OK) /* there is room: it was there a moment ago */
            (void)hf_dedup_add(seen, id.data, id.len, now_ns, &kept);
        tell(asked->conn, call, status, &kept.made);
    }
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
            deadline_ns = server->heard_ns + call.words.wait_ms * HF_NS_PER_MS;
        if (call.words.wait_ms == 0 ||
            !must_wait(server, &call, deadline_ns, false, &turn) ||
            limit_park(server, conn, asked->request, &turn, deadline_ns) !=
                HF_OK)
            run(conn, &call);
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
        run(conn, &call);
    return true;
}
