/* work.c - the workloads, for Holdfast and, to compare, for Redis.
 *
 * Requests are built once; per request only the digits of a key are written
 * over. A lock's token is the one thing that has to be put in afterwards.
 */
#include <assert.h>

#include "cli/work_parts.h"
#include "resp/reply.h"
#include "resp/resp.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TIME_DIGITS  13
#define TIME_ZEROS   "1000000000000"

void work_put_digits(char *at, size_t digits, uint64_t number)
{
    for (size_t i = digits; i > 0; i--) {
        at[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
}

enum hf_status work_add_request(struct hf_buf *out, const char *line)
{
    struct hf_bytes args[16];
    size_t count = 0;

    for (const char *at = line; *at != '\0'; count++) {
        size_t len = strcspn(at, " ");
        assert(count < COUNT(args));
        args[count] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    return resp_encode(out, count, args);
}

size_t work_find_digits(const struct load *load, const char *digits)
{
    const char *at =
        memmem(load->pattern.data, load->pattern.len, digits, strlen(digits));

    assert(at != NULL);
    return (size_t)(at - load->pattern.data);
}

bool work_begin(struct load *load, struct load_conn *conn)
{
    if (load->stopping) {
        conn->done = true;
        return false;
    }
    if (!load_due(load, conn))
        return false;
    conn->pending = (uint32_t)load->options->pipeline;
    return true;
}

/* The token of a lock, which with Redis is 1; 0: not granted. */
static uint64_t token_of(const struct load *load, struct hf_bytes reply)
{
    int64_t token;

    if (load->options->redis)
        return reply.data[0] == '+';
    return resp_field_number(reply, "token", &token) && token > 0
               ? (uint64_t)token
               : 0;
}

static void count_reply(struct load *load, struct load_conn *conn,
                        struct hf_bytes reply)
{
    (void)reply;
    load_done(load, load->now_ns - conn->started_ns);
}

/* ping: what the server and the network can do at best. */

static enum hf_status ping_prepare(struct load *load)
{
    enum hf_status status = HF_OK;

    for (uint64_t i = 0; status == HF_OK && i < load->options->pipeline; i++)
        status = work_add_request(&load->pattern, "PING");
    return status;
}

static enum hf_status ping_batch(struct load *load, struct load_conn *conn)
{
    if (!work_begin(load, conn))
        return HF_OK;
    return hf_buf_append(&conn->out, load->pattern.data, load->pattern.len);
}

static void put_time(struct load *load)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    work_put_digits(load->pattern.data + load->pattern_time, TIME_DIGITS,
                    (uint64_t)wall.tv_sec * 1000 +
                        (uint64_t)wall.tv_nsec / 1000000);
}

/* One pattern, a random key in each request: limit, reserve. */

static enum hf_status keyed_batch(struct load *load, struct load_conn *conn)
{
    const struct hf_buf *pattern = &load->pattern;

    if (!work_begin(load, conn))
        return HF_OK;
    if (hf_buf_reserve(&conn->out, pattern->len * conn->pending) != HF_OK)
        return HF_NOMEM;
    if (load->pattern_time != 0)
        put_time(load);
    for (uint32_t i = 0; i < conn->pending; i++) {
        char *at = conn->out.data + conn->out.len;
        uint64_t key = hf_random_below(&load->random, load->options->keys);
        memcpy(at, pattern->data, pattern->len);
        work_put_digits(at + load->pattern_key, KEY_DIGITS, key);
        conn->out.len += pattern->len;
    }
    return HF_OK;
}

static enum hf_status limit_prepare(struct load *load)
{
    char line[256];

    if (load->options->redis)
        snprintf(line, sizeof line,
                 "EVALSHA %s 1 bench:" KEY_ZEROS
                 " %llu %llu %llu 1 " TIME_ZEROS,
                 load->script, (unsigned long long)load->options->rate,
                 (unsigned long long)load->options->per_ms,
                 (unsigned long long)load->options->rate);
    else
        snprintf(line, sizeof line,
                 "LIMIT bench:" KEY_ZEROS " RATE %llu PER %llu",
                 (unsigned long long)load->options->rate,
                 (unsigned long long)load->options->per_ms);
    if (work_add_request(&load->pattern, line) != HF_OK)
        return HF_NOMEM;
    load->pattern_key = work_find_digits(load, KEY_ZEROS);
    if (load->options->redis)
        load->pattern_time = work_find_digits(load, TIME_ZEROS);
    return HF_OK;
}

static enum hf_status reserve_prepare(struct load *load)
{
    if (work_add_request(&load->pattern,
                         "RESERVE * ITEM bench:" KEY_ZEROS " 1") != HF_OK)
        return HF_NOMEM;
    load->pattern_key = work_find_digits(load, KEY_ZEROS);
    return HF_OK;
}

/* lock: phase 0 takes as many locks as the pipeline is deep, phase 1 gives
 * them back. One operation is both, from before the first write. */

static enum hf_status lock_open(struct load *load, struct load_conn *conn)
{
    char line[256];
    enum hf_status status = HF_OK;

    for (uint64_t i = 0; status == HF_OK && i < load->options->pipeline; i++) {
        unsigned long long key = conn->index * load->options->pipeline + i;
        if (load->options->redis)
            snprintf(line, sizeof line, "SET bench:%u:%08llu o%u NX PX 30000",
                     load->tag, key, conn->index);
        else
            snprintf(line, sizeof line,
                     "LOCK bench:%u:%08llu OWNER o%u TTL 30000", load->tag, key,
                     conn->index);
        status = work_add_request(&conn->first, line);
        if (status == HF_OK && load->options->redis) {
            snprintf(line, sizeof line, "EVALSHA %s 1 bench:%u:%08llu o%u",
                     load->script, load->tag, key, conn->index);
            status = work_add_request(&conn->second, line);
        }
    }
    return status;
}

/* All but the token of `UNLOCK key token`. */
static enum hf_status unlock_prepare(struct load *load)
{
    char line[128];

    snprintf(line, sizeof line, "UNLOCK bench:%u:" KEY_ZEROS " x", load->tag);
    if (work_add_request(&load->pattern, line) != HF_OK)
        return HF_NOMEM;
    load->pattern.len -= sizeof "$1\r\nx\r\n" - 1;
    load->pattern_key = work_find_digits(load, KEY_ZEROS);
    return HF_OK;
}

static enum hf_status add_unlock(struct load *load, struct load_conn *conn,
                                 uint64_t slot)
{
    struct hf_buf *out = &conn->out;
    uint64_t key = conn->index * load->options->pipeline + slot;
    char digits[HF_DIGITS_MAX];
    size_t start = out->len;

    enum hf_status status =
        hf_buf_append(out, load->pattern.data, load->pattern.len);
    if (status != HF_OK)
        return status;
    work_put_digits(out->data + start + load->pattern_key, KEY_DIGITS, key);
    size_t len = hf_print_u64(digits, conn->tokens[slot]);
    conn->pending++;
    struct reply bulk = {.out = out, .codec = &resp2_codec};
    reply_put_bytes(&bulk, hf_bytes(digits, len));
    return bulk.failed ? HF_NOMEM : HF_OK;
}

/* Gives back what the first phase got; the pending replies may be fewer. */
static enum hf_status unlock_batch(struct load *load, struct load_conn *conn)
{
    enum hf_status status = HF_OK;

    conn->phase = 1;
    if (load->options->redis) {
        conn->pending = (uint32_t)load->options->pipeline;
        return hf_buf_append(&conn->out, conn->second.data, conn->second.len);
    }
    for (uint64_t i = 0; status == HF_OK && i < load->options->pipeline; i++) {
        if (conn->tokens[i] != 0)
            status = add_unlock(load, conn, i);
    }
    return status;
}

static enum hf_status lock_batch(struct load *load, struct load_conn *conn)
{
    if (conn->phase == 0 && conn->mark > 0) {
        conn->mark = 0;
        return unlock_batch(load, conn);
    }
    conn->phase = 0;
    if (!work_begin(load, conn))
        return HF_OK;
    memset(conn->tokens, 0, load->options->pipeline * sizeof *conn->tokens);
    return hf_buf_append(&conn->out, conn->first.data, conn->first.len);
}

/* `mark` counts the locks that phase 0 got. */
static void lock_reply(struct load *load, struct load_conn *conn,
                       struct hf_bytes reply)
{
    if (conn->phase == 1) {
        load_done(load, load->now_ns - conn->started_ns);
        return;
    }
    conn->tokens[conn->slot] = token_of(load, reply);
    if (conn->tokens[conn->slot] == 0)
        load_failed(load, hf_bytes_text("the lock was not granted"));
    else
        conn->mark++;
}

/* handoff: all connections want one lock. Whoever gets it keeps it for a
 * moment, gives it back, and sits out until another has it, so that every
 * grant is a hand-over. One operation is from giving back to the next grant.
 *
 *   ASKING -granted-> HOLDING -> RELEASING -> RESTING -another has it-> ASKING
 *      +-refused-> PAUSING -> ASKING            (Redis: there is no queue)
 */
enum { ASKING, HOLDING, RELEASING, RESTING, PAUSING };

static enum hf_status ask(struct load *load, struct load_conn *conn)
{
    char line[128];

    if (load->options->redis)
        snprintf(line, sizeof line, "SET bench:%u o%u NX PX 30000", load->tag,
                 conn->index);
    else
        snprintf(line, sizeof line,
                 "LOCK bench:%u OWNER o%u TTL 30000 WAIT 20000", load->tag,
                 conn->index);
    conn->phase = ASKING;
    conn->pending = 1;
    return work_add_request(&conn->out, line);
}

static enum hf_status give_back(struct load *load, struct load_conn *conn)
{
    char line[128];

    if (load->options->redis)
        snprintf(line, sizeof line, "EVALSHA %s 1 bench:%u o%u", load->script,
                 load->tag, conn->index);
    else
        snprintf(line, sizeof line, "UNLOCK bench:%u %llu", load->tag,
                 (unsigned long long)conn->tokens[0]);
    conn->phase = RELEASING;
    conn->pending = 1;
    conn->tokens[0] = 0;
    conn->mark = load->grants;
    load->released_ns = client_now_ns();
    load->released_by = conn->index;
    return work_add_request(&conn->out, line);
}

static enum hf_status handoff_batch(struct load *load, struct load_conn *conn)
{
    if (conn->phase == ASKING && conn->tokens[0] != 0) {
        conn->phase = HOLDING;
        conn->wake_ns = load->now_ns + load->options->hold_us * 1000;
        return HF_OK;
    }
    if (conn->phase == HOLDING)
        return give_back(load, conn);
    if (conn->phase == PAUSING && conn->mark == 0) {
        uint64_t mean_us = load->options->poll_ms * 1000;
        uint64_t pause_us =
            mean_us / 2 + hf_random_below(&load->random, mean_us);
        conn->mark = 1;
        conn->wake_ns = load->now_ns + pause_us * 1000;
        return HF_OK;
    }
    if (load->stopping) {
        conn->done = true;
        return HF_OK;
    }
    if (conn->phase == RELEASING && conn->mark == load->grants) {
        conn->phase = RESTING; /* another's grant resumes it */
        conn->wake_ns = load->now_ns + 1000000000u; /* or the end does */
        return HF_OK;
    }
    return ask(load, conn);
}

/* A grant to `conn`: the one who gave it back may ask again. */
static void granted(struct load *load, struct load_conn *conn)
{
    if (load->released_ns != 0 && load->released_by != conn->index)
        load_done(load, load->now_ns - load->released_ns);
    load->grants++;
    for (uint64_t i = 0; i < load->options->clients; i++) {
        struct load_conn *other = &load->conns[i];
        if (other->phase == RESTING && !other->done)
            other->wake_ns = load->now_ns; /* the loop wakes it */
    }
}

static void handoff_reply(struct load *load, struct load_conn *conn,
                          struct hf_bytes reply)
{
    if (conn->phase != ASKING)
        return;
    conn->tokens[0] = token_of(load, reply);
    if (conn->tokens[0] != 0) {
        granted(load, conn);
    } else if (load->options->redis) {
        conn->phase = PAUSING; /* held by another: try again later */
        conn->mark = 0;
    } else {
        load_failed(load, hf_bytes_text("the lock was not granted"));
    }
}

/* checkout: a limit, a fence and three products of which one unit is taken, all
 * or nothing. MULTI to EXEC is one operation, with a reply for each of them. */

#define BUYER    "buyer:" KEY_ZEROS
#define PRODUCT  "bench:" KEY_ZEROS
#define CHECKOUT 7

static enum hf_status checkout_script(struct load *load)
{
    const struct load_options *options = load->options;
    char line[512];

    snprintf(line, sizeof line,
             "EVALSHA %s 5 " BUYER " shop " PRODUCT " " PRODUCT " " PRODUCT
             " %llu %llu %llu 1 " TIME_ZEROS " 1",
             load->script, (unsigned long long)options->rate,
             (unsigned long long)options->per_ms,
             (unsigned long long)options->rate);
    if (work_add_request(&load->pattern, line) != HF_OK)
        return HF_NOMEM;
    load->pattern_time = work_find_digits(load, TIME_ZEROS);
    return HF_OK;
}

static enum hf_status checkout_prepare(struct load *load)
{
    char limit[128];
    const char *const lines[CHECKOUT] = {"MULTI",
                                         limit,
                                         "FENCE shop 1",
                                         "STOCK ADD " PRODUCT " -1",
                                         "STOCK ADD " PRODUCT " -1",
                                         "STOCK ADD " PRODUCT " -1",
                                         "EXEC"};
    enum hf_status status = HF_OK;

    if (load->options->redis)
        return checkout_script(load);
    snprintf(limit, sizeof limit, "LIMIT " BUYER " RATE %llu PER %llu",
             (unsigned long long)load->options->rate,
             (unsigned long long)load->options->per_ms);
    for (size_t i = 0; i < CHECKOUT && status == HF_OK; i++)
        status = work_add_request(&load->pattern, lines[i]);
    return status;
}

/* The buyer and the products are at random. */
static enum hf_status checkout_batch(struct load *load, struct load_conn *conn)
{
    const struct hf_buf *pattern = &load->pattern;

    if (!work_begin(load, conn))
        return HF_OK;
    if (load->pattern_time != 0)
        put_time(load);
    for (uint32_t i = 0; i < conn->pending; i++) {
        size_t from = conn->out.len;
        if (hf_buf_append(&conn->out, pattern->data, pattern->len) != HF_OK)
            return HF_NOMEM;
        char *at = conn->out.data + from;
        char *end = conn->out.data + conn->out.len;
        while ((at = memmem(at, (size_t)(end - at), KEY_ZEROS, KEY_DIGITS)) !=
               NULL) {
            work_put_digits(
                at, KEY_DIGITS,
                hf_random_below(&load->random, load->options->keys));
            at += KEY_DIGITS;
        }
    }
    if (!load->options->redis)
        conn->pending *= CHECKOUT;
    return HF_OK;
}

static void checkout_reply(struct load *load, struct load_conn *conn,
                           struct hf_bytes reply)
{
    if (load->options->redis ? reply.data[0] == ':' : reply.data[0] == '*')
        load_done(load, load->now_ns - conn->started_ns);
}

/* KEYS: bucket, fence, products. ARGV: rate, period in ms, burst, cost, now in
 * ms, token. Nothing is written before all is checked. */
static const char checkout_lua[] =
    "local rate = tonumber(ARGV[1]) local per = tonumber(ARGV[2]) "
    "local burst = tonumber(ARGV[3]) local cost = tonumber(ARGV[4]) "
    "local now = tonumber(ARGV[5]) local token = tonumber(ARGV[6]) "
    "local old = redis.call('HMGET', KEYS[1], 'tokens', 'time') "
    "local tokens = tonumber(old[1]) or burst "
    "local time = tonumber(old[2]) or now "
    "tokens = math.min(burst, tokens + math.max(0, now - time) * rate / per) "
    "if tokens < cost then return redis.error_reply('DENIED') end "
    "local newest = tonumber(redis.call('GET', KEYS[2]) or '0') "
    "if token < newest then return redis.error_reply('STALE') end "
    "for i = 3, 5 do "
    "if tonumber(redis.call('GET', KEYS[i]) or '0') < 1 then "
    "return redis.error_reply('SHORT') end end "
    "redis.call('HSET', KEYS[1], 'tokens', tokens - cost, 'time', now) "
    "redis.call('PEXPIRE', KEYS[1], math.ceil(per * burst / rate)) "
    "if token > newest then redis.call('SET', KEYS[2], token) end "
    "for i = 3, 5 do redis.call('DECRBY', KEYS[i], 1) end "
    "return 1";

static const char unlock_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "return redis.call('DEL', KEYS[1]) else return 0 end";

/* KEYS: bucket. ARGV: rate, period in ms, burst, cost, now in ms. */
static const char bucket_script[] =
    "local rate = tonumber(ARGV[1]) local per = tonumber(ARGV[2]) "
    "local burst = tonumber(ARGV[3]) local cost = tonumber(ARGV[4]) "
    "local now = tonumber(ARGV[5]) "
    "local old = redis.call('HMGET', KEYS[1], 'tokens', 'time') "
    "local tokens = tonumber(old[1]) or burst "
    "local time = tonumber(old[2]) or now "
    "tokens = math.min(burst, tokens + math.max(0, now - time) * rate / per) "
    "local allowed = 0 "
    "if tokens >= cost then tokens = tokens - cost allowed = 1 end "
    "redis.call('HSET', KEYS[1], 'tokens', tokens, 'time', now) "
    "redis.call('PEXPIRE', KEYS[1], math.ceil(per * burst / rate)) "
    "return {allowed, math.floor(tokens)}";

static const struct work works[] = {
    {.name = "ping",
     .prepare = ping_prepare,
     .batch = ping_batch,
     .reply = count_reply},
    {.name = "lock",
     .script = unlock_script,
     .prepare = unlock_prepare,
     .open = lock_open,
     .batch = lock_batch,
     .reply = lock_reply},
    {.name = "limit",
     .script = bucket_script,
     .prepare = limit_prepare,
     .batch = keyed_batch,
     .reply = count_reply},
    {.name = "reserve",
     .ours = true,
     .prepare = reserve_prepare,
     .batch = keyed_batch,
     .reply = count_reply},
    {.name = "sell",
     .ours = true,
     .excused = "-EXPIRED",
     .prepare = work_sell_prepare,
     .batch = work_sell_batch,
     .reply = work_sell_reply},
    {.name = "checkout",
     .script = checkout_lua,
     .prepare = checkout_prepare,
     .batch = checkout_batch,
     .reply = checkout_reply},
    {.name = "handoff",
     .single = true,
     .script = unlock_script,
     .batch = handoff_batch,
     .reply = handoff_reply},
};

const struct work *work_find(const char *name, bool redis)
{
    for (size_t i = 0; i < COUNT(works); i++) {
        if (strcmp(works[i].name, name) == 0)
            return redis && works[i].ours ? NULL : &works[i];
    }
    return NULL;
}
