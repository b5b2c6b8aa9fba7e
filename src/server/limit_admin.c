/* limit_admin.c - policies, settling, and the words of other systems. */
#include <inttypes.h>
#include <stdio.h>

#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/limit.h"
#include "server/server.h"
#include "server/throttle.h"

/* A policy's name as a C string. */
static enum hf_status name_of(const struct asked *asked, struct hf_bytes word,
                              char out[HF_NAME_BYTES])
{
    char error[PARSE_ERROR_MAX];
    struct hf_bytes text;

    if (parse_text(word, "policy's name", HF_NAME_BYTES - 1, &text, error) !=
        HF_OK) {
        answer_bad(asked->server, asked->conn, HF_INVALID, error);
        return HF_INVALID;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c > ' ' && c < 0x7f && c != ',' && c != '"' && c != '\\')
            continue;
        answer_error(asked->server, asked->conn, ERROR_POLICY_NAME);
        return HF_INVALID;
    }
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
    return HF_OK;
}

void limit_define(const struct asked *asked)
{
    struct hf_limiter_rule rule;
    struct hf_bytes word;
    char name[HF_NAME_BYTES], error[PARSE_ERROR_MAX];

    if (limit_parse_rule(asked->args, asked->count, &word, &rule, error) !=
        HF_OK) {
        answer_bad(asked->server, asked->conn, HF_INVALID, error);
        return;
    }
    if (name_of(asked, word, name) != HF_OK)
        return;
    enum hf_status status =
        hf_limiter_define(asked->server->limits.limiter, name, &rule, NULL);
    if (status == HF_OK)
        reply_put_simple(asked->reply, "OK");
    else if (status == HF_FULL)
        answer_error(asked->server, asked->conn, ERROR_POLICY_COUNT,
                     HF_LIMITER_RULES_MAX);
    else if (status == HF_NOMEM)
        answer_error(asked->server, asked->conn, ERROR_MEMORY);
    else
        answer_error(asked->server, asked->conn, ERROR_POLICY);
}

void limit_drop(const struct asked *asked)
{
    char name[HF_NAME_BYTES];

    if (name_of(asked, asked->args[0], name) != HF_OK)
        return;
    enum hf_status status =
        hf_limiter_remove(asked->server->limits.limiter, name);
    if (status == HF_OK)
        reply_put_simple(asked->reply, "OK");
    else if (status == HF_NOTFOUND)
        answer_error(asked->server, asked->conn, ERROR_NO_POLICY, name);
    else
        answer_error(asked->server, asked->conn, ERROR_DEFAULT);
}

static void show_rule(void *context, const char *name, uint32_t number,
                      const struct hf_limiter_rule *rule)
{
    struct reply *reply = context;
    char keep[96];

    (void)number;
    snprintf(keep, sizeof keep, "%" PRIu64 ",%" PRIu64 ",%" PRIu64,
             rule->keep_back[1], rule->keep_back[2], rule->keep_back[3]);
    reply_put_map(reply, 7);
    reply_pair_text(reply, "policy", name);
    reply_pair_text(reply, "algorithm", limit_kind_name(rule->rate.kind));
    reply_pair_number(reply, "rate", rule->rate.permits);
    reply_pair_number(reply, "per_ms",
                      (int64_t)(rule->rate.span_ns / HF_NS_PER_MS));
    reply_pair_number(reply, "burst", rule->rate.burst);
    reply_pair_text(reply, "keep", keep);
    reply_pair_number(reply, "shadow", rule->shadow);
}

void limit_policies(const struct asked *asked)
{
    struct hf_limiter *limiter = asked->server->limits.limiter;
    struct hf_limiter_stats stats;

    hf_limiter_stats(limiter, &stats);
    reply_put_list(asked->reply, stats.rules);
    (void)hf_limiter_list(limiter, show_rule, asked->reply);
}

/* False: the words are wrong, and the client was told so. */
static bool read_words(const struct asked *asked, const struct shape *shape,
                       struct limit_words *out)
{
    char error[PARSE_ERROR_MAX];
    size_t at;
    enum hf_status status = limit_parse_words(shape, asked, out, &at, error);

    if (status != HF_OK)
        answer_bad(asked->server, asked->conn, status, error);
    return status == HF_OK;
}

void limit_settle(const struct asked *asked)
{
    struct limit_words words;

    if (!read_words(asked, &limit_settle_shape, &words))
        return;
    if (hf_limiter_settle(asked->server->limits.limiter, words.hold, words.cost,
                          asked->server->heard_ns) == HF_OK)
        reply_put_simple(asked->reply, "OK");
    else
        answer_error(asked->server, asked->conn, ERROR_NO_HOLD);
}

void limit_top(const struct asked *asked)
{
    static struct hf_limiter_top rows[LIMIT_TOP_MAX];
    struct limit_words words = {.count = 10};

    if (!read_words(asked, &limit_top_shape, &words))
        return;
    size_t count = hf_limiter_top(asked->server->limits.limiter, rows,
                                  (size_t)words.count);
    struct reply *reply = asked->reply;
    reply_put_list(reply, count);
    for (size_t i = 0; i < count; i++) {
        size_t len = rows[i].key_len < sizeof rows[i].key ? rows[i].key_len
                                                          : sizeof rows[i].key;
        reply_put_map(reply, 3);
        reply_put_key(reply, "key");
        reply_put_bytes(reply, hf_bytes(rows[i].key, len));
        reply_pair_text(reply, "policy", rows[i].rule);
        reply_pair_number(reply, "denied", (int64_t)rows[i].denied);
    }
}

/* ---- CL.THROTTLE and GCRA. ---- */

static void throttle(const struct asked *asked, enum throttle_form form,
                     const struct limit_words *words, uint64_t now_ns)
{
    struct server *server = asked->server;
    struct hf_limiter_rule rule = {0};
    struct hf_limiter_answer told;
    struct throttle_answer answer;
    struct hf_rate_plan plan;
    uint64_t period_ns;

    if (words->period_s <= 0 ||
        __builtin_mul_overflow((uint64_t)words->period_s, HF_NS_PER_S,
                               &period_ns) ||
        throttle_rule(form, words->max_burst, words->permits, period_ns,
                      &rule.rate) != HF_OK ||
        hf_rate_plan_make(&plan, &rule.rate) != HF_OK || words->quantity < 0 ||
        words->key.len == 0 || words->key.len > HF_LIMITER_KEY_MAX) {
        answer_error(server, asked->conn, ERROR_THROTTLE);
        return;
    }
    struct hf_limiter_ask ask = {.own = &rule,
                                 .key = words->key.data,
                                 .key_len = words->key.len,
                                 .cost = (uint64_t)words->quantity};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    enum hf_status status =
        hf_limiter_take(server->limits.limiter, &call, &told);
    if (status != HF_OK) {
        answer_error(server, asked->conn, ERROR_KEYS);
        return;
    }
    metrics_decided(&server->metrics, told.allowed);
    struct hf_rate_answer in_rate = {.wait_ns = told.retry_after_ns,
                                     .limit = told.limit,
                                     .remaining = told.remaining,
                                     .reset_ns = told.reset_after_ns};
    throttle_tell(form, &plan, &in_rate, &answer);
    const int64_t numbers[] = {answer.limited, answer.limit, answer.remaining,
                               answer.retry_s, answer.reset_s};
    reply_put_list(asked->reply, 5);
    for (size_t i = 0; i < 5; i++)
        reply_put_number(asked->reply, numbers[i]);
}

void limit_cell(const struct asked *asked)
{
    struct limit_words words = {.quantity = 1};
    char text[PARSE_ERROR_MAX];
    size_t at;

    if (limit_parse_words(&limit_cell_shape, asked, &words, &at, text) !=
        HF_OK) {
        snprintf(text, sizeof text, CELL_INTEGER, PRINTED(asked->args[at - 1]));
        answer_line(asked->server, asked->conn, HOLD_ERR, text);
        return;
    }
    if (words.permits == 0 || words.period_s == 0) {
        answer_line(asked->server, asked->conn, HOLD_ERR, CELL_ZERO);
        return;
    }
    throttle(asked, THROTTLE_CELL, &words, asked->server->heard_ns);
}

void limit_gcra(const struct asked *asked)
{
    struct limit_words words = {.quantity = 1};
    char text[PARSE_ERROR_MAX];
    size_t at;

    if (asked->count == 5 ||
        (asked->count == 6 && !hf_bytes_is(asked->args[4], "TOKENS"))) {
        answer_error(asked->server, asked->conn, ERROR_SYNTAX);
        return;
    }
    if (limit_parse_words(&limit_gcra_shape, asked, &words, &at, text) !=
        HF_OK) {
        answer_error(asked->server, asked->conn, ERROR_INTEGER);
        return;
    }
    /* Redis counts whole milliseconds. */
    uint64_t now_ns = asked->server->heard_ns / HF_NS_PER_MS * HF_NS_PER_MS;
    throttle(asked, THROTTLE_REDIS, &words, now_ns);
}
