/* tiered_remote.c - L3: one Redis for many processes.
 *
 * Every step that must be one step for all processes is a script. See
 * tiered_link.h for what is kept there, and why.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/memory.h"
#include "keep/tiered_link.h"

#define STRIPES   4096u
#define NS_PER_MS UINT64_C(1000000)
#define TRIES_MS  20u /* how often a load by another is looked for */
#define FAILURES  3u  /* in a row, and Redis is left alone for a while */
#define ALONE_NS  UINT64_C(500000000)
#define WHO       "tiered"

/* The same in all processes. */
static const struct hf_hash_seed stripe_seed = {{0x686f6c64, 0x66617374}};

static const char *const scripts[LINK_SCRIPTS] = {
    /* value, token, load; this load, its time */
    [LINK_CLAIM] =
        "local v = redis.call('GET', KEYS[1])\n"
        "if v then return {1, v, redis.call('PTTL', KEYS[1])} end\n"
        "local t = redis.call('GET', KEYS[2])\n"
        "if not t then t = ARGV[1] redis.call('SET', KEYS[2], t) end\n"
        "if redis.call('SET', KEYS[3], ARGV[1], 'NX', 'PX', ARGV[2]) then\n"
        "  return {2, t}\n"
        "end\n"
        "return {3}\n",
    /* value, token, load; this load, token, channel, time to live, value */
    [LINK_FILL] =
        "if redis.call('GET', KEYS[3]) == ARGV[1] then\n"
        "  redis.call('DEL', KEYS[3])\n"
        "end\n"
        "local r = 0\n"
        "if ARGV[4] ~= '0' and redis.call('GET', KEYS[2]) == ARGV[2] then\n"
        "  redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[4])\n"
        "  r = 1\n"
        "end\n"
        "redis.call('PUBLISH', ARGV[3], 'L')\n"
        "return r\n",
    /* value, token, load, members; new token, channel, message */
    [LINK_CHANGE] =
        "redis.call('SET', KEYS[2], ARGV[1])\n"
        "redis.call('DEL', KEYS[1], KEYS[3])\n"
        "redis.call('PUBLISH', ARGV[2], ARGV[3])\n"
        "local t = redis.call('TIME')\n"
        "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
        "if redis.call('ZCOUNT', KEYS[4], '+inf', '+inf') == 0 then\n"
        "  redis.call('ZADD', KEYS[4], '+inf', string.format('s%d', now))\n"
        "end\n"
        "redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)\n"
        "return {now, redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES')}\n",
    /* members; id, lease, channel, message */
    [LINK_BEAT] =
        "local t = redis.call('TIME')\n"
        "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
        "if redis.call('ZCOUNT', KEYS[1], '+inf', '+inf') == 0 then\n"
        "  redis.call('ZADD', KEYS[1], '+inf', string.format('s%d', now))\n"
        "end\n"
        "redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])\n"
        "redis.call('PUBLISH', ARGV[3], ARGV[4])\n"
        "return 1\n",
};

/* ---- Connections. ---- */

static bool load_scripts(struct link_wire *wire)
{
    for (unsigned i = 0; i < LINK_SCRIPTS; i++) {
        redisReply *reply =
            redisCommand(wire->redis, "SCRIPT LOAD %s", scripts[i]);
        bool is_sha = reply != NULL && reply->type == REDIS_REPLY_STRING &&
                      (size_t)reply->len < sizeof wire->sha[i];
        if (is_sha)
            memcpy(wire->sha[i], reply->str, (size_t)reply->len + 1);
        freeReplyObject(reply);
        if (!is_sha)
            return false;
    }
    return true;
}

struct link_wire *link_wire_open(struct tiered_remote *remote)
{
    const struct hf_tiered_opts *opts = &remote->tiered->opts;
    struct timeval timeout = {.tv_sec = opts->timeout_ms / 1000,
                              .tv_usec = opts->timeout_ms % 1000 * 1000};
    struct link_wire *wire = hf_alloc_zeroed(sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->redis =
        redisConnectWithTimeout(opts->redis_host, opts->redis_port, timeout);
    if (wire->redis == NULL || wire->redis->err != 0 ||
        redisSetTimeout(wire->redis, timeout) != REDIS_OK ||
        !load_scripts(wire)) {
        link_wire_close(wire);
        tiered_count(&remote->errors);
        return NULL;
    }
    (void)redisEnableKeepAlive(wire->redis);
    return wire;
}

void link_wire_close(struct link_wire *wire)
{
    if (wire->redis != NULL)
        redisFree(wire->redis);
    hf_free(wire);
}

static int wire_create(void *context, void **resource)
{
    *resource = link_wire_open(context);
    return *resource == NULL;
}

static void wire_destroy(void *context, void *resource)
{
    (void)context;
    link_wire_close(resource);
}

redisReply *link_run(struct link_wire *wire, enum link_script script,
                     unsigned keys, unsigned count, const char *const *args,
                     const size_t *lens)
{
    const char *words[12];
    size_t sizes[12];
    char number[8];

    assert(count + 3 <= sizeof words / sizeof words[0]);
    words[0] = "EVALSHA";
    sizes[0] = 7;
    words[1] = wire->sha[script];
    sizes[1] = strlen(wire->sha[script]);
    words[2] = number;
    sizes[2] = (size_t)snprintf(number, sizeof number, "%u", keys);
    for (unsigned i = 0; i < count; i++) {
        words[3 + i] = args[i];
        sizes[3 + i] = lens != NULL ? lens[i] : strlen(args[i]);
    }
    redisReply *reply =
        redisCommandArgv(wire->redis, (int)count + 3, words, sizes);
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        /* Scripts were flushed, or this is no Redis that can be used. */
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

redisReply *link_call(struct tiered_remote *remote, enum link_script script,
                      unsigned keys, unsigned count, const char *const *args,
                      const size_t *lens)
{
    struct hf_breaker_call trial;
    struct hf_loan loan;
    redisReply *reply = NULL;
    uint64_t now_ns = hf_clock_now_ns(remote->clock);
    uint64_t limit_ns = now_ns + remote->tiered->opts.timeout_ms * NS_PER_MS;

    if (hf_breaker_enter(remote->breaker, now_ns, &trial) != 0)
        return NULL;
    if (hf_lender_borrow(remote->lender, WHO, limit_ns, &loan) == HF_OK) {
        reply = link_run(loan.resource, script, keys, count, args, lens);
        if (reply != NULL)
            (void)hf_lender_return(remote->lender, &loan);
        else
            (void)hf_lender_discard(remote->lender, &loan);
    }
    if (reply == NULL)
        tiered_count(&remote->errors);
    (void)hf_breaker_leave(remote->breaker, &trial,
                           reply != NULL ? HF_BREAKER_WORKED
                                         : HF_BREAKER_FAILED,
                           hf_clock_now_ns(remote->clock));
    return reply;
}

/* ---- Names. ---- */

uint64_t link_number(struct tiered_remote *remote)
{
    /* Relaxed: different numbers are all that is asked of it. */
    return hf_u64_add(&remote->numbers, 1, __ATOMIC_RELAXED) + 1;
}

void link_unique(struct tiered_remote *remote, char out[TIERED_TOKEN_MAX])
{
    (void)snprintf(out, TIERED_TOKEN_MAX, "%s%016" PRIx64, remote->id,
                   link_number(remote));
}

bool link_names(struct tiered_remote *remote, const void *key, size_t key_len,
                struct link_names *names)
{
    const char *prefix = remote->tiered->opts.prefix;
    size_t room = strlen(prefix) + 8 + key_len;
    uint64_t stripe = hf_hash(stripe_seed, hf_bytes(key, key_len)) % STRIPES;
    static const char letters[3] = {'v', 't', 'l'};

    names->memory = hf_alloc(3 * room);
    if (names->memory == NULL)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        char *text = names->memory + i * room;
        size_t len = (size_t)snprintf(text, room, "%s:%c:", prefix, letters[i]);
        if (letters[i] == 't') {
            len += (size_t)snprintf(text + len, room - len, "%x",
                                    (unsigned)stripe);
        } else {
            memcpy(text + len, key, key_len);
            len += key_len;
        }
        names->text[i] = text;
        names->len[i] = len;
    }
    return true;
}

/* ---- Reading and filling. ---- */

static struct tiered_block *block_of(struct tiered_remote *remote,
                                     const void *key, size_t key_len,
                                     const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING)
        return NULL;
    tiered_count(&remote->l3_hits);
    return tiered_block_new(key, key_len, reply->str, (size_t)reply->len);
}

static enum tiered_claim claim_read(struct tiered_remote *remote,
                                    const void *key, size_t key_len,
                                    const redisReply *reply,
                                    struct tiered_ticket *ticket,
                                    struct tiered_block **out)
{
    long long kind = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
                         ? reply->element[0]->integer
                         : 0;

    if (kind == 1 && reply->elements == 3) {
        long long left_ms = reply->element[2]->integer;
        ticket->ttl_ns = left_ms > 0 ? (uint64_t)left_ms * NS_PER_MS : 1;
        *out = block_of(remote, key, key_len, reply->element[1]);
        return *out != NULL ? TIERED_FOUND : TIERED_DOWN;
    }
    if (kind == 2 && reply->elements == 2 &&
        (size_t)reply->element[1]->len < TIERED_TOKEN_MAX) {
        ticket->token_len = (size_t)reply->element[1]->len;
        memcpy(ticket->token, reply->element[1]->str, ticket->token_len);
        return TIERED_LOAD;
    }
    return kind == 3 ? TIERED_WAIT : TIERED_DOWN;
}

enum tiered_claim tiered_remote_claim(struct tiered_remote *remote,
                                      const void *key, size_t key_len,
                                      struct tiered_ticket *ticket,
                                      struct tiered_block **out)
{
    struct link_names names;
    char time[24];
    enum tiered_claim claim = TIERED_DOWN;

    *ticket = (struct tiered_ticket){
        /* Acquire: what is heard from here on ends a wait. */
        .heard = hf_u32_load(&remote->heard, __ATOMIC_ACQUIRE)};
    if (!link_names(remote, key, key_len, &names))
        return TIERED_DOWN;
    link_unique(remote, ticket->mine);
    (void)snprintf(time, sizeof time, "%u", remote->tiered->opts.load_ms);
    const char *args[] = {names.text[0], names.text[1], names.text[2],
                          ticket->mine, time};
    size_t lens[] = {names.len[0], names.len[1], names.len[2],
                     strlen(ticket->mine), strlen(time)};
    redisReply *reply = link_call(remote, LINK_CLAIM, 3, 5, args, lens);
    if (reply != NULL)
        claim = claim_read(remote, key, key_len, reply, ticket, out);
    freeReplyObject(reply);
    hf_free(names.memory);
    if (claim == TIERED_WAIT)
        tiered_count(&remote->load_waits);
    return claim;
}

void tiered_remote_fill(struct tiered_remote *remote, const void *key,
                        size_t key_len, const struct tiered_ticket *ticket,
                        const struct tiered_block *block)
{
    uint64_t ttl_ms = remote->tiered->opts.ttl_ns / NS_PER_MS;
    struct link_names names;
    char time[24];

    if (!link_names(remote, key, key_len, &names))
        return;
    (void)snprintf(time, sizeof time, "%" PRIu64, block != NULL ? ttl_ms : 0);
    const char *args[] = {
        names.text[0], names.text[1],
        names.text[2], ticket->mine,
        ticket->token, remote->channel,
        time,          block != NULL ? tiered_value(block) : ""};
    size_t lens[] = {names.len[0],      names.len[1],
                     names.len[2],      strlen(ticket->mine),
                     ticket->token_len, strlen(remote->channel),
                     strlen(time),      block != NULL ? block->len : 0};
    redisReply *reply = link_call(remote, LINK_FILL, 3, 8, args, lens);
    if (reply != NULL && block != NULL)
        tiered_count(reply->integer == 1 ? &remote->fills
                                         : &remote->fills_refused);
    freeReplyObject(reply);
    hf_free(names.memory);
}

void tiered_remote_wait(struct tiered_remote *remote,
                        const struct tiered_ticket *ticket,
                        uint64_t deadline_ns)
{
    /* A message may be lost with the connection: look again soon anyway. */
    uint64_t again_ns = hf_clock_after_ms(remote->clock, TRIES_MS);
    uint32_t key = hf_event_prepare(&remote->heard_event);

    /* Acquire: pairs with the listener's count. */
    if (hf_u32_load(&remote->heard, __ATOMIC_ACQUIRE) != ticket->heard)
        hf_event_cancel(&remote->heard_event, key);
    else
        (void)hf_event_wait(&remote->heard_event, key, remote->clock,
                            again_ns < deadline_ns ? again_ns : deadline_ns);
}

enum hf_status tiered_remote_get(struct tiered_remote *remote, const void *key,
                                 size_t key_len, struct tiered_block **out)
{
    struct tiered_ticket ticket;

    /* A claim that is not used: it makes nobody wait, for it is given back. */
    switch (tiered_remote_claim(remote, key, key_len, &ticket, out)) {
    case TIERED_FOUND:
        return HF_OK;
    case TIERED_LOAD:
        tiered_remote_fill(remote, key, key_len, &ticket, NULL);
        return HF_NOTFOUND;
    case TIERED_WAIT:
        return HF_NOTFOUND;
    case TIERED_DOWN:
        break;
    }
    return HF_IO;
}

/* ---- Open, close, figures. ---- */

bool tiered_remote_leased(const struct tiered_remote *remote, uint64_t now_ns)
{
    /* Acquire: what the listener did before it took up the lease. */
    return now_ns < hf_u64_load(&remote->lease_until_ns, __ATOMIC_ACQUIRE);
}

static enum hf_status is_leased(void *context)
{
    const struct tiered_remote *remote = context;

    return tiered_remote_leased(remote, hf_clock_now_ns(remote->clock))
               ? HF_OK
               : HF_PENDING;
}

static void name_all(struct tiered_remote *remote)
{
    const char *prefix = remote->tiered->opts.prefix;
    uint64_t id = 0;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = hf_clock_wall_us(remote->clock) ^ (uint64_t)(uintptr_t)remote;
    (void)snprintf(remote->id, sizeof remote->id, "%016" PRIx64, id);
    (void)snprintf(remote->members, LINK_NAME_MAX, "%s:m", prefix);
    (void)snprintf(remote->channel, LINK_NAME_MAX, "%s:c", prefix);
    (void)snprintf(remote->answers, LINK_NAME_MAX, "%s:a:%s", prefix,
                   remote->id);
}

enum hf_status tiered_remote_open(struct hf_tiered *tiered)
{
    struct tiered_remote *remote = hf_alloc_zeroed(sizeof *remote);

    if (remote == NULL)
        return HF_NOMEM;
    tiered->remote = remote;
    remote->tiered = tiered;
    remote->clock = tiered->clock;
    remote->wake_fd = -1;
    name_all(remote);
    struct hf_lender_opts lender = {
        .name = tiered->opts.name,
        .create = wire_create,
        .destroy = wire_destroy,
        .context = remote,
        .max = tiered->opts.connections,
        .direct = true,
        .trust_ns = HF_FOREVER, /* a broken one is seen when it is used */
        .clock = tiered->clock,
    };
    struct hf_breaker_opts breaker = {.name = tiered->opts.name,
                                      .failures_max = FAILURES,
                                      .open_ns = ALONE_NS};
    enum hf_status status = hf_lender_open(&remote->lender, &lender);
    if (status == HF_OK)
        status = hf_breaker_new(&remote->breaker, &breaker);
    if (status == HF_OK)
        status = link_listen(remote);
    if (status == HF_OK)
        (void)hf_event_until(
            &remote->leased, is_leased, remote, remote->clock,
            hf_clock_after_ms(remote->clock, tiered->opts.timeout_ms));
    return status;
}

void tiered_remote_close(struct hf_tiered *tiered)
{
    struct tiered_remote *remote = tiered->remote;

    link_stop(remote);
    hf_lender_close(remote->lender);
    hf_breaker_free(remote->breaker);
    hf_free(remote);
    tiered->remote = NULL;
}

void tiered_remote_stats(const struct tiered_remote *remote,
                         struct hf_tiered_stats *out)
{
    out->l3_hits = hf_u64_load(&remote->l3_hits, __ATOMIC_RELAXED);
    out->load_waits = hf_u64_load(&remote->load_waits, __ATOMIC_RELAXED);
    out->fills = hf_u64_load(&remote->fills, __ATOMIC_RELAXED);
    out->fills_refused = hf_u64_load(&remote->fills_refused, __ATOMIC_RELAXED);
    out->heard = hf_u64_load(&remote->changes_heard, __ATOMIC_RELAXED);
    out->leases_lost = hf_u64_load(&remote->leases_lost, __ATOMIC_RELAXED);
    out->redis_errors = hf_u64_load(&remote->errors, __ATOMIC_RELAXED);
}
