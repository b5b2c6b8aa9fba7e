/* script_limit.c - scripts that limit a rate are run by the limiter.
 *
 * A window begins with the clock's, not with the first call, and a bucket goes
 * by the clock of the server, not by the time that the client tells.
 */
#include "holdfast/clock.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/script.h"
#include "server/server.h"

/* Of a script that only counts. */
#define COUNTED_MAX 1000000u

static struct hf_rate_rule rule_of(const struct hold_command *c)
{
    bool bucket = c->token > 0;
    bool slide = (c->flags & SCRIPT_SLIDE) != 0;

    return (struct hf_rate_rule){.kind = bucket  ? HF_RATE_BUCKET
                                         : slide ? HF_RATE_LOG
                                                 : HF_RATE_FIXED,
                                 .permits = c->count > 0 ? (uint32_t)c->count
                                                         : COUNTED_MAX,
                                 .burst = bucket ? (uint32_t)c->token : 0,
                                 .span_ns = c->ttl_ms * HF_NS_PER_MS};
}

static uint64_t rest_in(uint64_t ns, uint64_t unit_ns)
{
    return ns / unit_ns + (ns % unit_ns != 0);
}

static void tell(struct reply *reply, const struct hold_command *c,
                 const struct hf_limiter_answer *told)
{
    uint64_t what = c->flags & SCRIPT_TOLD;
    bool counted = what == SCRIPT_COUNTED || what == SCRIPT_COUNT_S ||
                   what == SCRIPT_COUNT_MS;
    bool null = what == SCRIPT_PAIR_NULL || what == SCRIPT_ONE_NULL;
    uint64_t used = told->limit - told->remaining;
    uint64_t unit_ns =
        what == SCRIPT_COUNT_S ? HF_NS_PER_S : (uint64_t)HF_NS_PER_MS;

    if (what != SCRIPT_ALLOWED && what != SCRIPT_COUNTED &&
        what != SCRIPT_ONE_NULL)
        reply_put_list(reply, 2);
    if (counted)
        reply_put_number(reply,
                         (int64_t)(used + (told->allowed ? 0 : c->cursor)));
    else if (null && !told->allowed)
        reply_put_null(reply);
    else
        reply_put_number(reply, told->allowed);
    if (what == SCRIPT_PAIR || what == SCRIPT_PAIR_NULL)
        reply_put_number(reply, (int64_t)told->remaining);
    else if (what == SCRIPT_USED)
        reply_put_number(reply, (int64_t)used);
    else if (what == SCRIPT_COUNT_S || what == SCRIPT_COUNT_MS)
        reply_put_number(reply,
                         (int64_t)rest_in(told->reset_after_ns, unit_ns));
}

void script_limit(struct server *server, struct conn *conn,
                  const struct hold_command *c)
{
    struct hf_limiter_rule rule = {.rate = rule_of(c)};
    struct hf_limiter_ask ask = {.own = &rule,
                                 .key = c->name.data,
                                 .key_len = c->name.len,
                                 .cost = c->cursor};
    struct hf_limiter_call call = {
        .asks = &ask, .count = 1, .now_ns = server->heard_ns};
    struct hf_limiter_answer told = {.allowed = false};
    bool closed = (c->flags & SCRIPT_CLOSED) != 0;
    struct hf_rate_plan plan;

    if (c->ttl_ms > LIMIT_PER_MAX_MS ||
        hf_rate_plan_make(&plan, &rule.rate) != HF_OK) {
        answer_error(server, conn, ERROR_LIMIT);
        return;
    }
    if (!closed &&
        hf_limiter_take(server->limits.limiter, &call, &told) != HF_OK) {
        answer_error(server, conn, ERROR_KEYS);
        return;
    }
    metrics_decided(&server->metrics, told.allowed);
    tell(&conn->reply, c, &told);
    answer_done(conn);
}
