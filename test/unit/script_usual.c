/* script_usual.c - tests of what usual scripts that limit are given, and of the
 * locks of RedLock.net and redlock-rb.
 */
#include "server/script.h"

#include "support/engine.h"

TEST_ONE_THREAD;

static struct hold_command command;
static char why[PARSE_ERROR_MAX];

/* Makes the command of a script with these words behind it; its status. */
static enum hf_status make(const char *text, const char *words)
{
    static const struct command none;
    struct hf_bytes args[16] = {hf_bytes_text(text)};
    size_t count = 1;

    for (const char *at = words; *at != '\0';) {
        size_t len = strcspn(at, " ");
        args[count++] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    hold_command_clear(&command);
    return script_eval(&none, args, count, &command, why);
}

static const struct hold_out *eval(const char *text, const char *words)
{
    if (make(text, words) != HF_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, why);
    command.now_us = engine_now_us;
    return hold_kind_is_write(command.kind) ? engine_apply(&command)
                                            : hold_ask(engine, &command);
}

TEST(an_extension_that_takes_what_is_free)
{
    static const char extend[] =
        "local v = redis.call('get', KEYS[1]) if (v == false) then return "
        "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0 elseif "
        "(v == ARGV[1]) then return redis.call('pexpire', KEYS[1], ARGV[2]) "
        "else return -1 end";

    engine_start();
    EXPECT(eval(extend, "1 door me 500"), "OK 1");
    EXPECT(eval(extend, "1 door you 900"), "OK -1");
    EXPECT(eval(extend, "1 door me 900"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 900");
    EXPECT(engine_do("HELD door 1"), "OK"); /* the grant is the same */
    engine_do("LOCK gate OWNER me");
    EXPECT(eval(extend, "1 gate me 500"), "OK -1");
    CHECK_ENGINE();
}

TEST(a_lock_that_is_only_extended_unless_a_word_says_yes)
{
    static const char lock[] =
        "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'yes') or "
        "redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', "
        "KEYS[1], ARGV[1], 'PX', ARGV[2]) end";
    static const char look[] =
        "return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }";

    engine_start();
    EXPECT(eval(look, "1 door"), "OK null -2");
    EXPECT(eval(lock, "1 door me 500 no"), "OK null");
    EXPECT(eval(lock, "1 door me 500 yes"), "OK OK");
    EXPECT(eval(look, "1 door"), "OK me 500");
    EXPECT(eval(lock, "1 door you 500 yes"), "OK null");
    EXPECT(eval(lock, "1 door me 900 YES"), "OK OK"); /* it is mine */
    EXPECT(eval(look, "1 door"), "OK me 900");
    CHECK_EQ(make(lock, "1 door me 0 yes"), HF_FAILED);
    CHECK_EQ(make(lock, "1 door me 500"), HF_FAILED);
    engine_do("LOCK gate OWNER me SHARED");
    EXPECT(eval(look, "1 gate"), "WRONGTYPE name=gate mode=shared");
    CHECK_ENGINE();
}

/* What is told; window, permits and cost. */
static void check_limit(uint64_t told, uint64_t ms, uint64_t permits,
                        uint64_t cost)
{
    CHECK_EQ(command.kind, 0);
    CHECK_EQ(command.flags, told);
    CHECK_EQ(command.ttl_ms, ms);
    CHECK_EQ(command.count, permits);
    CHECK_EQ(command.cursor, cost);
}

TEST(what_is_counted_is_told_with_the_rest_of_the_window)
{
    static const char counts[] =
        "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call("
        "'expire', KEYS[1], ARGV[1]) end return {n, redis.call('ttl', "
        "KEYS[1])}";
    static const char flexible[] =
        "redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX') local consumed = "
        "redis.call('incrby', KEYS[1], ARGV[1]) local ttl = redis.call('pttl', "
        "KEYS[1]) if ttl == -1 then redis.call('expire', KEYS[1], ARGV[2]) ttl "
        "= 1000 * ARGV[2] end return {consumed, ttl}";
    static const char anew[] =
        "local hits = redis.call('INCR', KEYS[1]) local rest = redis.call("
        "'PTTL', KEYS[1]) if rest <= 0 or ARGV[1] == '1' then redis.call("
        "'PEXPIRE', KEYS[1], tonumber(ARGV[2])) rest = tonumber(ARGV[2]) end "
        "return { hits, rest }";
    static const char look[] =
        "local hits = redis.call('GET', KEYS[1]) local rest = redis.call("
        "'PTTL', KEYS[1]) return { hits, rest }";

    CHECK_EQ(make(counts, "1 k 60"), HF_OK);
    check_limit(SCRIPT_COUNT_S, 60000, 0, 1);
    CHECK_EQ(make(flexible, "1 k 3 60 10 60"), HF_OK);
    check_limit(SCRIPT_COUNT_MS, 60000, 0, 3);
    CHECK_EQ(make(flexible, "1 k -3 60 10 60"), HF_INVALID);
    CHECK_EQ(make(anew, "1 k 0 60"), HF_OK);
    check_limit(SCRIPT_COUNT_MS, 60, 0, 1);
    CHECK_EQ(make(anew, "1 k 1 60"), HF_FAILED);
    CHECK_EQ(make(look, "1 k"), HF_FAILED); /* though it may be loaded */
    CHECK(strstr(why, "only told with the call") != NULL);
    CHECK_EQ(make("local current current = redis.call('incr', KEYS[1]) if "
                  "current == 1 then redis.call('expire', KEYS[1], 1) end "
                  "return current",
                  "1 k"),
             HF_OK);
    check_limit(SCRIPT_COUNTED, 1000, 0, 1);
}

#define SLIDE                                                             \
    "local key = KEYS[1] local now = tonumber(ARGV[1]) local window = "   \
    "tonumber(ARGV[2]) local limit = tonumber(ARGV[3]) redis.call("       \
    "'ZREMRANGEBYSCORE', key, 0, now - window) local count = redis.call(" \
    "'ZCARD', key) if count < limit then redis.call('ZADD', key, now, "   \
    "ARGV[4]) redis.call('EXPIRE', key, window) return 1 end return 0"

TEST(a_window_that_slides_has_the_unit_of_the_time_of_the_client)
{
    const uint64_t told = SCRIPT_ALLOWED | SCRIPT_SLIDE;

    CHECK_EQ(make(SLIDE, "1 k 1700000000 60 5 a"), HF_OK);
    check_limit(told, 60000, 5, 1);
    CHECK_EQ(make(SLIDE, "1 k 1700000000.123 60 5 a"), HF_OK);
    check_limit(told, 60000, 5, 1);
    CHECK_EQ(make(SLIDE, "1 k 1700000000123 60 5 a"), HF_OK);
    check_limit(told, 60, 5, 1);
    CHECK_EQ(make(SLIDE, "1 k 1700000000123456 60 5 a"), HF_FAILED);
    CHECK_EQ(make(SLIDE, "1 k now 60 5 a"), HF_FAILED);
    CHECK_EQ(make(SLIDE, "1 k 17e8 60 5 a"), HF_FAILED);
    CHECK_EQ(make(SLIDE, "1 k 1700000000 0 5 a"), HF_FAILED);
    CHECK_EQ(make(SLIDE, "1 k 1700000000 60 0 a"), HF_OK);
    CHECK_EQ(command.flags, told | SCRIPT_CLOSED);
    CHECK_EQ(make(SLIDE, "1 k 1700000000 60 00 a"), HF_INVALID);
    CHECK_EQ(make(SLIDE, "1 k 1700000000 60"), HF_FAILED);
    CHECK_EQ(make(SLIDE, "1 k 1700000000 60 5"), HF_FAILED); /* no member */
}

TEST(a_bucket_in_a_hash_is_filled_by_the_unit_of_the_time_of_the_client)
{
    static const char bucket[] =
        "local key = KEYS[1] local capacity = tonumber(ARGV[1]) local rate = "
        "tonumber(ARGV[2]) local now = tonumber(ARGV[3]) local requested = "
        "tonumber(ARGV[4]) local b = redis.call('HMGET', key, 'tokens', "
        "'timestamp') local tokens = tonumber(b[1]) or capacity local last = "
        "tonumber(b[2]) or now local elapsed = math.max(0, now - last) tokens "
        "= math.min(capacity, tokens + elapsed * rate) local allowed = 0 if "
        "tokens >= requested then tokens = tokens - requested allowed = 1 end "
        "redis.call('HMSET', key, 'tokens', tokens, 'timestamp', now) redis."
        "call('EXPIRE', key, math.ceil(capacity / rate) * 2) return allowed";

    CHECK_EQ(make(bucket, "1 k 40 3 1700000000 5"), HF_OK);
    check_limit(SCRIPT_ALLOWED, 1000, 3, 5);
    CHECK_EQ(command.token, 40);
    CHECK_EQ(make(bucket, "1 k 40 3 1700000000123 5"), HF_OK);
    check_limit(SCRIPT_ALLOWED, 1, 3, 5);
    CHECK_EQ(make(bucket, "1 k 40 0.5 1700000000 5"), HF_INVALID);
    CHECK_EQ(make(bucket, "1 k 40 3 1700000000 0"), HF_INVALID);
}
