/* tiered_wire.c - connections to Redis, and the scripts that run on them.
 *
 * hiredis writes by a plain write(): to a connection whose other end is gone,
 * that ends the process by a signal. So commands are sent here, and hiredis
 * reads what is answered.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "stores/tiered_link.h"

#define STRIPES   4096u
#define WORDS_MAX 12u
#define KEYS_MAX  4u
#define WHO       "tiered"
#define A_DAY     "86400000" /* what an earlier run left goes by itself */

/* The same in all processes. */
static const struct hf_hash_seed stripe_seed = {{0x686f6c64, 0x66617374}};

/* Where Redis is out of memory a script may write if it has deleted first:
 * changes and leases must get through, values need not. */
static const char *const scripts[LINK_SCRIPTS] = {
    /* value, token, load; this load, its time */
    [LINK_CLAIM] =
        "local v = redis.call('GET', KEYS[1])\n"
        "if v then return {1, v, redis.call('PTTL', KEYS[1])} end\n"
        "local t = redis.call('GET', KEYS[2])\n"
        "if not t then\n"
        "  t = ARGV[1]\n"
        "  redis.call('SET', KEYS[2], t, 'PX', " A_DAY ")\n"
        "end\n"
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
        "redis.call('DEL', KEYS[1], KEYS[3])\n"
        "redis.call('SET', KEYS[2], ARGV[1], 'PX', " A_DAY ")\n"
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
        "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)\n"
        "if redis.call('ZCOUNT', KEYS[1], '+inf', '+inf') == 0 then\n"
        "  redis.call('ZADD', KEYS[1], '+inf', string.format('s%d', now))\n"
        "end\n"
        "redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])\n"
        "redis.call('PEXPIRE', KEYS[1], " A_DAY ")\n"
        "redis.call('PUBLISH', ARGV[3], ARGV[4])\n"
        "return 1\n",
};

/* ---- Commands. ---- */

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t done = send(fd, data, len, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        len -= (size_t)done;
    }
    return true;
}

redisReply *hf_link_command(redisContext *redis, const struct hf_bytes *words,
                            unsigned count)
{
    const char *texts[WORDS_MAX];
    size_t lens[WORDS_MAX];
    char *command = NULL;
    void *reply = NULL;

    assert(count <= WORDS_MAX);
    for (unsigned i = 0; i < count; i++) {
        texts[i] = words[i].data;
        lens[i] = words[i].len;
    }
    int len = redisFormatCommandArgv(&command, (int)count, texts, lens);
    if (len < 0)
        return NULL;
    if (redis->err == 0 && !send_all(redis->fd, command, (size_t)len))
        redis->err = REDIS_ERR_IO; /* half a command may be on its way */
    redisFreeCommand(command);
    if (redis->err != 0 || redisGetReply(redis, &reply) != REDIS_OK)
        return NULL;
    return reply;
}

/* ---- Connections. ---- */

redisContext *hf_link_connect(const struct tiered_remote *remote)
{
    const struct hf_tiered_opts *opts = &remote->tiered->opts;
    struct timeval timeout = {.tv_sec = opts->timeout_ms / 1000,
                              .tv_usec = opts->timeout_ms % 1000 * 1000};
    redisContext *redis =
        redisConnectWithTimeout(opts->redis_host, opts->redis_port, timeout);

    if (redis == NULL)
        return NULL;
    if (redis->err != 0 || redisSetTimeout(redis, timeout) != REDIS_OK) {
        redisFree(redis);
        return NULL;
    }
    return redis;
}

static bool load_script(struct link_wire *wire, enum link_script script)
{
    struct hf_bytes words[] = {hf_bytes_text("SCRIPT"), hf_bytes_text("LOAD"),
                               hf_bytes_text(scripts[script])};
    redisReply *reply = hf_link_command(wire->redis, words, 3);
    bool is_sha = reply != NULL && reply->type == REDIS_REPLY_STRING &&
                  (size_t)reply->len < sizeof wire->sha[script];

    if (is_sha)
        memcpy(wire->sha[script], reply->str, (size_t)reply->len + 1);
    freeReplyObject(reply);
    return is_sha;
}

/* Of which life of a server's process this is. */
static bool learn_run(const struct tiered_remote *remote,
                      struct link_wire *wire)
{
    static const char field[] = "run_id:";
    struct hf_bytes words[] = {hf_bytes_text("INFO"), hf_bytes_text("server")};
    redisReply *reply = hf_link_command(wire->redis, words, 2);
    const char *run = NULL;

    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        run = strstr(reply->str, field);
    bool is_there = run != NULL &&
                    strspn(run + strlen(field), "0123456789abcdef") >= LINK_RUN;
    if (is_there)
        (void)snprintf(wire->base, sizeof wire->base, "%s:%.*s",
                       remote->tiered->opts.prefix, (int)LINK_RUN,
                       run + strlen(field));
    freeReplyObject(reply);
    return is_there;
}

struct link_wire *hf_link_wire_open(struct tiered_remote *remote)
{
    struct link_wire *wire = hf_alloc_zeroed(sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->redis = hf_link_connect(remote);
    bool works = wire->redis != NULL && learn_run(remote, wire);
    for (unsigned i = 0; works && i < LINK_SCRIPTS; i++)
        works = load_script(wire, i);
    if (!works) {
        hf_link_wire_close(wire);
        tiered_count(&remote->errors);
        return NULL;
    }
    (void)redisEnableKeepAlive(wire->redis);
    return wire;
}

void hf_link_wire_close(struct link_wire *wire)
{
    if (wire->redis != NULL)
        redisFree(wire->redis);
    hf_free(wire);
}

/* ---- Scripts. ---- */

static char *add_name(char *at, const struct link_wire *wire, char letter,
                      struct hf_bytes key, struct hf_bytes *out)
{
    size_t len = strlen(wire->base);

    out->data = at;
    memcpy(at, wire->base, len);
    at += len;
    *at++ = ':';
    *at++ = letter;
    if (key.len > 0) {
        *at++ = ':';
        memcpy(at, key.data, key.len);
        at += key.len;
    }
    out->len = (size_t)(at - out->data);
    return at;
}

/* The names that a script is given, in memory that is to be freed; NULL without
 * memory. */
static char *make_names(const struct link_wire *wire, enum link_script script,
                        struct hf_bytes key, struct hf_bytes *out,
                        unsigned *count)
{
    char *memory = hf_alloc(KEYS_MAX * (sizeof wire->base + 16) + 2 * key.len);
    char *at = memory;
    char stripe[16];

    *count = 0;
    if (memory == NULL)
        return NULL;
    if (script != LINK_BEAT) {
        uint64_t number = hf_hash(stripe_seed, key) % STRIPES;
        (void)snprintf(stripe, sizeof stripe, "%x", (unsigned)number);
        at = add_name(at, wire, 'v', key, &out[(*count)++]);
        at = add_name(at, wire, 't', hf_bytes_text(stripe), &out[(*count)++]);
        at = add_name(at, wire, 'l', key, &out[(*count)++]);
    }
    if (script == LINK_BEAT || script == LINK_CHANGE)
        (void)add_name(at, wire, 'm', hf_bytes_text(""), &out[(*count)++]);
    return memory;
}

static bool says(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR &&
           strncmp(reply->str, word, strlen(word)) == 0;
}

enum hf_status hf_link_run(struct link_wire *wire, enum link_script script,
                           struct hf_bytes key, const struct hf_bytes *args,
                           unsigned count, redisReply **out)
{
    struct hf_bytes words[WORDS_MAX];
    char number[8];
    unsigned keys;
    char *names = make_names(wire, script, key, words + 3, &keys);

    *out = NULL;
    if (names == NULL)
        return HF_NOMEM;
    assert(3 + keys + count <= WORDS_MAX);
    (void)snprintf(number, sizeof number, "%u", keys);
    words[0] = hf_bytes_text("EVALSHA");
    words[1] = hf_bytes_text(wire->sha[script]);
    words[2] = hf_bytes_text(number);
    memcpy(words + 3 + keys, args, count * sizeof words[0]);
    redisReply *reply = hf_link_command(wire->redis, words, 3 + keys + count);
    if (reply != NULL && says(reply, "NOSCRIPT")) { /* they were flushed */
        freeReplyObject(reply);
        words[0] = hf_bytes_text("EVAL"); /* that loads it, too */
        words[1] = hf_bytes_text(scripts[script]);
        reply = hf_link_command(wire->redis, words, 3 + keys + count);
    }
    hf_free(names);
    if (reply == NULL)
        return HF_IO;
    if (reply->type == REDIS_REPLY_ERROR) {
        /* One that became another's copy is no longer the one to talk to. */
        enum hf_status status = says(reply, "READONLY") ? HF_IO : HF_FAILED;
        freeReplyObject(reply);
        return status;
    }
    *out = reply;
    return HF_OK;
}

enum hf_status hf_link_call(struct tiered_remote *remote,
                            enum link_script script, struct hf_bytes key,
                            const struct hf_bytes *args, unsigned count,
                            redisReply **out)
{
    struct hf_breaker_call trial;
    struct hf_loan loan;
    enum hf_status status = HF_IO;
    uint64_t now_ns = hf_clock_now_ns(remote->clock);
    uint64_t limit_ns = now_ns + remote->tiered->opts.timeout_ms * HF_NS_PER_MS;

    *out = NULL;
    if (hf_breaker_enter(remote->breaker, now_ns, &trial) != 0)
        return HF_IO;
    if (hf_lender_borrow(remote->lender, WHO, limit_ns, &loan) == HF_OK) {
        status = hf_link_run(loan.resource, script, key, args, count, out);
        if (status != HF_IO)
            (void)hf_lender_return(remote->lender, &loan);
        else
            (void)hf_lender_discard(remote->lender, &loan);
    }
    if (status == HF_IO || status == HF_FAILED)
        tiered_count(&remote->errors);
    /* One that refuses is there, and may take the next. */
    (void)hf_breaker_leave(remote->breaker, &trial,
                           status == HF_IO ? HF_BREAKER_FAILED
                                           : HF_BREAKER_WORKED,
                           hf_clock_now_ns(remote->clock));
    return status == HF_FAILED ? HF_IO : status;
}
