/* limit_admin.c - policies, settling, and the words of other systems. */
#include <inttypes.h>
#include <stdio.h>

#include "flow/throttle.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/limit.h"
#include "server/server.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* A policy's name as a C string. */
static enum hf_status name_of(struct server *server, struct conn *conn,
                              struct hf_bytes word, char out[HF_NAME_BYTES])
{
    char error[PARSE_ERROR_MAX];
    struct hf_bytes text;

    if (parse_text(word, "policy's name", HF_NAME_BYTES - 1, &text, error) !=
        HF_OK) {
        answer_error(server, conn, error);
        return HF_INVALID;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c > ' ' && c < 0x7f && c != ',' && c != '"' && c != '\\')
            continue;
        answer_error(
            server, conn,
            "BADARG a policy's name is printable, without comma, quote, "
            "backslash and space");
        return HF_INVALID;
    }
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
    return HF_OK;
}

void limit_define(struct server *server, struct conn *conn,
                  struct resp_request *request)
{
    struct hf_limiter_rule rule;
    char name[HF_NAME_BYTES], error[PARSE_ERROR_MAX];

    if (name_of(server, conn, request->args[2], name) != HF_OK)
        return;
    if (limit_parse_rule(request->args + 3, request->count - 3, &rule, error) !=
        HF_OK) {
        answer_error(server, conn, error);
        return;
    }
    switch (hf_limiter_define(server->limits.limiter, name, &rule, NULL)) {
    case HF_OK:
        (void)resp_simple(&conn->out, "OK");
        return;
    case HF_FULL:
        answer_error(server, conn, "OVERLOADED 16384 policies are the most");
        return;
    case HF_NOMEM:
        answer_error(server, conn, "OVERLOADED out of memory");
        return;
    default:
        answer_error(server, conn, "BADARG the policy cannot be");
    }
}

void limit_drop(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    char name[HF_NAME_BYTES], text[96];

    if (name_of(server, conn, request->args[2], name) != HF_OK)
        return;
    switch (hf_limiter_remove(server->limits.limiter, name)) {
    case HF_OK:
        (void)resp_simple(&conn->out, "OK");
        return;
    case HF_NOTFOUND:
        snprintf(text, sizeof text, "NOTFOUND no policy '%s'", name);
        answer_error(server, conn, text);
        return;
    default:
        answer_error(server, conn, "BADARG the policy 'default' stays");
    }
}

struct listing {
    struct conn *conn;
    size_t count;
};

static void count_rule(void *context, const char *name, uint32_t number,
                       const struct hf_limiter_rule *rule)
{
    struct listing *listing = context;

    (void)name, (void)number, (void)rule;
    listing->count++;
}

static void pair(struct conn *conn, const char *name, struct hf_bytes value)
{
    (void)resp_bulk(&conn->out, hf_bytes_text(name));
    (void)resp_bulk(&conn->out, value);
}

static void pair_number(struct conn *conn, const char *name, uint64_t value)
{
    (void)resp_bulk(&conn->out, hf_bytes_text(name));
    (void)resp_number(&conn->out, (int64_t)value);
}

static void show_rule(void *context, const char *name, uint32_t number,
                      const struct hf_limiter_rule *rule)
{
    struct listing *listing = context;
    struct conn *conn = listing->conn;
    char keep[96];

    (void)number;
    if (listing->count == 0 || conn->closing)
        return;
    if (hf_buf_reserve(&conn->out, 512) != HF_OK) {
        conn_close_no_memory(conn); /* better no answer than half of one */
        return;
    }
    listing->count--;
    int len =
        snprintf(keep, sizeof keep, "%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                 rule->keep_back[1], rule->keep_back[2], rule->keep_back[3]);
    (void)resp_map(&conn->out, conn->version, 7);
    pair(conn, "policy", hf_bytes_text(name));
    pair(conn, "algorithm", hf_bytes_text(limit_kind_name(rule->rate.kind)));
    pair_number(conn, "rate", rule->rate.permits);
    pair_number(conn, "per_ms", rule->rate.span_ns / NS_PER_MS);
    pair_number(conn, "burst", rule->rate.burst);
    pair(conn, "keep", hf_bytes(keep, (size_t)len));
    pair_number(conn, "shadow", rule->shadow);
}

void limit_policies(struct server *server, struct conn *conn,
                    struct resp_request *request)
{
    struct listing listing = {.conn = conn};

    (void)request;
    (void)hf_limiter_list(server->limits.limiter, count_rule, &listing);
    (void)resp_array(&conn->out, listing.count);
    (void)hf_limiter_list(server->limits.limiter, show_rule, &listing);
}

void limit_settle(struct server *server, struct conn *conn,
                  struct resp_request *request)
{
    char error[PARSE_ERROR_MAX];
    uint64_t hold, cost;

    if (!hf_bytes_is(request->args[3], "COST")) {
        answer_error(server, conn,
                     "BADARG the form is: LIMIT SETTLE hold COST n");
        return;
    }
    if (parse_number(request->args[2], "the hold", 1, INT64_MAX, &hold,
                     error) != HF_OK ||
        parse_number(request->args[4], "COST", 0, LIMIT_RATE_MAX, &cost,
                     error) != HF_OK) {
        answer_error(server, conn, error);
        return;
    }
    if (hf_limiter_settle(server->limits.limiter, hold, cost,
                          hf_clock_now_ns(server->clock)) == HF_OK)
        (void)resp_simple(&conn->out, "OK");
    else
        answer_error(
            server, conn,
            "NOTFOUND no such hold: it was settled, or its time is over and "
            "all of it came back");
}

void limit_top(struct server *server, struct conn *conn,
               struct resp_request *request)
{
    static struct hf_limiter_top rows[LIMIT_TOP_MAX];
    char error[PARSE_ERROR_MAX];
    uint64_t most = 10;

    if (request->count == 3 &&
        parse_number(request->args[2], "the count", 1, LIMIT_TOP_MAX, &most,
                     error) != HF_OK) {
        answer_error(server, conn, error);
        return;
    }
    size_t count = hf_limiter_top(server->limits.limiter, rows, (size_t)most);
    (void)resp_array(&conn->out, count);
    for (size_t i = 0; i < count; i++) {
        size_t len = rows[i].key_len < sizeof rows[i].key ? rows[i].key_len
                                                          : sizeof rows[i].key;
        (void)resp_map(&conn->out, conn->version, 3);
        pair(conn, "key", hf_bytes(rows[i].key, len));
        pair(conn, "policy", hf_bytes_text(rows[i].rule));
        pair_number(conn, "denied", rows[i].denied);
    }
}

/* ---- CL.THROTTLE and GCRA. ---- */

/* The three numbers behind the key, and the quantity. */
struct throttle_words {
    int64_t max_burst;
    int64_t count;
    int64_t period_s;
    int64_t quantity;
};

/* `bad`: which is none. */
static enum hf_status read_numbers(const struct hf_bytes *args, size_t count,
                                   int64_t *const out[], struct hf_bytes *bad)
{
    for (size_t i = 0; i < count; i++) {
        *bad = args[i];
        if (hf_parse_i64(args[i], out[i]) != HF_OK)
            return HF_INVALID;
    }
    return HF_OK;
}

static void throttle(struct server *server, struct conn *conn,
                     enum throttle_form form, struct hf_bytes key,
                     const struct throttle_words *words, uint64_t now_ns)
{
    struct hf_limiter_rule rule = {0};
    struct hf_limiter_answer told;
    struct throttle_answer answer;
    struct hf_rate_plan plan;
    uint64_t period_ns;

    if (words->period_s <= 0 ||
        __builtin_mul_overflow((uint64_t)words->period_s, NS_PER_S,
                               &period_ns) ||
        throttle_rule(form, words->max_burst, words->count, period_ns,
                      &rule.rate) != HF_OK ||
        rate_plan_make(&plan, &rule.rate) != HF_OK || key.len == 0 ||
        key.len > HF_LIMITER_KEY_MAX || words->quantity < 0) {
        answer_error(server, conn,
                     "ERR invalid rate, burst, period, quantity or key");
        return;
    }
    struct hf_limiter_ask ask = {.own = &rule,
                                 .key = key.data,
                                 .key_len = key.len,
                                 .cost = (uint64_t)words->quantity};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    enum hf_status status =
        hf_limiter_take(server->limits.limiter, &call, &told);
    if (status != HF_OK) {
        answer_error(server, conn,
                     "OVERLOADED limit-keys-max is reached, or memory");
        return;
    }
    if (told.allowed)
        hf_counter_add(server->metrics.limits_allowed, 1);
    else
        hf_counter_add(server->metrics.limits_denied, 1);
    struct hf_rate_answer in_rate = {.wait_ns = told.retry_after_ns,
                                     .limit = told.limit,
                                     .remaining = told.remaining,
                                     .reset_ns = told.reset_after_ns};
    throttle_tell(form, &plan, &in_rate, &answer);
    (void)resp_array(&conn->out, 5);
    (void)resp_number(&conn->out, answer.limited);
    (void)resp_number(&conn->out, answer.limit);
    (void)resp_number(&conn->out, answer.remaining);
    (void)resp_number(&conn->out, answer.retry_s);
    (void)resp_number(&conn->out, answer.reset_s);
}

void limit_cell(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    struct throttle_words words = {.quantity = 1};
    int64_t *const numbers[] = {&words.max_burst, &words.count, &words.period_s,
                                &words.quantity};

    struct hf_bytes bad;
    char text[128];

    /* The words of redis-cell. */
    if (read_numbers(request->args + 2, request->count - 2, numbers, &bad) !=
        HF_OK) {
        snprintf(text, sizeof text,
                 "Cell error: Store error: Couldn't parse as integer: %.*s",
                 (int)(bad.len < 64 ? bad.len : 64), bad.data);
        answer_error(server, conn, text);
        return;
    }
    if (words.count == 0 || words.period_s == 0) {
        answer_error(server, conn,
                     "Cell error: Store error: Zero rates are not supported");
        return;
    }
    throttle(server, conn, THROTTLE_CELL, request->args[1], &words,
             hf_clock_now_ns(server->clock));
}

void limit_gcra(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    struct throttle_words words = {.quantity = 1};
    int64_t *const numbers[] = {&words.max_burst, &words.count,
                                &words.period_s};
    int64_t *const tokens[] = {&words.quantity};
    struct hf_bytes bad;

    if (request->count == 6 ||
        (request->count == 7 && !hf_bytes_is(request->args[5], "TOKENS"))) {
        answer_error(server, conn, "ERR syntax error");
        return;
    }
    if (read_numbers(request->args + 2, 3, numbers, &bad) != HF_OK ||
        (request->count == 7 &&
         read_numbers(request->args + 6, 1, tokens, &bad) != HF_OK)) {
        answer_error(server, conn,
                     "ERR value is not an integer or out of range");
        return;
    }
    /* Redis counts whole milliseconds. */
    uint64_t now_ns = hf_clock_now_ns(server->clock) / NS_PER_MS * NS_PER_MS;
    throttle(server, conn, THROTTLE_REDIS, request->args[1], &words, now_ns);
}
