/* script.c - tests of scripts that are known by their text. */
#include "server/script.h"

#include "support/engine.h"

TEST_ONE_THREAD;

/* ---- What they do. ---- */

static struct hold_command command;
static char why[PARSE_ERROR_MAX];

/* Makes the command of a script with these words behind it; its status. */
static enum hf_status make(make_fn *eval, const char *text, const char *words)
{
    static const struct command none;
    struct hf_bytes args[160] = {hf_bytes_text(text)};
    size_t count = 1;

    for (const char *at = words; *at != '\0';) {
        size_t len = strcspn(at, " ");
        args[count++] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    hold_command_clear(&command);
    return eval(&none, args, count, &command, why);
}

/* Carries out a script. */
static const struct hold_out *eval(const char *text, const char *words)
{
    enum hf_status status = make(script_eval, text, words);

    if (status != HF_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, why);
    command.now_us = engine_now_us;
    return hold_kind_is_write(command.kind) ? engine_apply(&command)
                                            : hold_ask(engine, &command);
}

#define GIVE_BACK                                                 \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis." \
    "call('del', KEYS[1]) else return 0 end"
#define KEEP                                                         \
    "if redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis." \
    "call('pexpire', KEYS[1], ARGV[2])\nend\nreturn 0\n"

TEST(compare_and_delete_however_it_is_written)
{
    static const char *const texts[] = {
        GIVE_BACK,
        "-- gives back\nif redis.call(\"GET\",KEYS[1])==ARGV[1] then\n"
        "    return redis.call(\"DEL\",KEYS[1])\nelse\n    return 0\nend\n",
        "if (redis.call('GET', KEYS[1]) == ARGV[1]) then "
        "return redis.call('DEL', KEYS[1]); end; return 0;",
        "if ARGV[1] == redis.call('get', KEYS[1]) then "
        "return redis.call('unlink', KEYS[1]) else return 0 end",
        "local mine = redis.call('get', KEYS[1]) if mine == ARGV[1] then "
        "return redis.call('del', KEYS[1]) else return 0 end",
        "if redis.call('get', KEYS[1]) == ARGV[1] then "
        "redis.call('del', KEYS[1]) return 1 end return 0",
        "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 else return "
        "redis.call('del', KEYS[1]) end",
        "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 else "
        "redis.call('del', KEYS[1]) return 1 end",
        "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
        "redis.call('del', KEYS[1]) return 1",
        "local v; v = redis.call('get', KEYS[1]) if v == false then return 0 "
        "end if v == ARGV[1] then return redis.call('del', KEYS[1]) end return "
        "0",
    };
    static const char *const nulls[] = {
        "if redis.call('get', KEYS[1]) == ARGV[1] then return "
        "redis.call('del', KEYS[1]) end",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return "
        "redis.call('del', KEYS[1]) else return false end",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        engine_start();
        engine_do("SET door me");
        EXPECT(eval(texts[i], "1 door you"), "OK 0");
        EXPECT(eval(texts[i], "1 door me"), "OK 1");
        EXPECT(eval(texts[i], "1 door me"), "OK 0");
    }
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        engine_start();
        engine_do("SET door me");
        EXPECT(eval(nulls[i], "1 door you"), "OK null");
        EXPECT(eval(nulls[i], "1 door me"), "OK 1");
    }
}

#define KEEP_OR_NULL                                                   \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call(" \
    "'pexpire', KEYS[1], ARGV[2]) else return nil end"

TEST(compare_and_expire)
{
    engine_start();
    engine_do("SET door me");
    EXPECT(eval(KEEP, "1 door me 500"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 500");
    EXPECT(eval(KEEP, "1 door you 900"), "OK 0");
    EXPECT(eval("if redis.call('get', KEYS[1]) == ARGV[1] then return "
                "redis.call('expire', KEYS[1], ARGV[2]) else return 0 end",
                "1 door me 7"),
           "OK 1");
    EXPECT(engine_do("TTL door"), "OK 7");
    EXPECT(eval("if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                "return redis.call('pexpire', KEYS[1], ARGV[2])",
                "1 door me 900"),
           "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 900");
    EXPECT(eval("if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                "return redis.call('expire', KEYS[1], ARGV[2])",
                "1 door you 9"),
           "OK 0");
    EXPECT(eval(KEEP_OR_NULL, "1 door you 9"), "OK null");
    EXPECT(eval(KEEP, "1 door me 0"), "OK 1"); /* as PEXPIRE has it */
    EXPECT(engine_do("GET door"), "OK null");
    EXPECT(engine_do("SET door me"), "OK OK");
    EXPECT(eval(KEEP_OR_NULL, "1 door you 0"), "OK null");
    EXPECT(eval(KEEP_OR_NULL, "1 door me -1"), "OK 1");
    EXPECT(engine_do("GET door"), "OK null");
    CHECK_EQ(make(script_eval, KEEP, "1 door me soon"), HF_FAILED);
    CHECK_EQ(make(script_eval, KEEP, "1 door me"), HF_FAILED);
}

TEST(set_if_free)
{
    static const char *const texts[] = {
        "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
        "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')"};

    for (size_t i = 0; i < 2; i++) {
        engine_start();
        EXPECT(eval(texts[i], "1 door me 500"), "OK OK");
        EXPECT(eval(texts[i], "1 door you 500"), "OK null");
    }
    EXPECT(eval("if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
                "redis.call('expire', KEYS[1], ARGV[2]) return 1 else return 0 "
                "end",
                "1 gate me 5"),
           "OK 1");
    EXPECT(engine_do("TTL gate"), "OK 5");
    CHECK_EQ(make(script_eval, texts[0], "1 door me 0"), HF_FAILED);
    CHECK_EQ(make(script_eval, texts[0], "1 door me -5"), HF_FAILED);
}

#define MINE "if redis.call('get', KEYS[1]) == ARGV[1] then "

TEST(compare_and_set)
{
    static const char plain[] =
        MINE "return redis.call('set', KEYS[1], ARGV[2]) else return 0 end";
    static const char timed[] =
        "local now = redis.call('GET', KEYS[1]) if now == ARGV[1] then "
        "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1 end "
        "return 0";

    engine_start();
    EXPECT(eval(plain, "1 door me you"), "OK 0");
    EXPECT(engine_do("GET door"), "OK null");
    engine_do("SET door me PX 500");
    EXPECT(eval(plain, "1 door you we"), "OK 0");
    EXPECT(eval(plain, "1 door me you"), "OK OK");
    EXPECT(engine_do("GET door"), "OK you");
    EXPECT(engine_do("PTTL door"), "OK -1");
    EXPECT(eval(timed, "1 door you me 700"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 700");
    CHECK_EQ(make(script_eval, timed, "1 door me you 0"), HF_FAILED);
    EXPECT(eval(MINE "redis.call('set', KEYS[1], ARGV[2]) return true else "
                     "return false end",
                "1 door we you"),
           "OK null");
}

/* To set it to what it has is to keep it: the grant stays. */
TEST(a_key_that_is_set_again_if_it_is_mine_keeps_its_token)
{
    static const char keep[] = MINE
        "return redis.call('set', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2]) else "
        "return 0 end";
    static const char obtain[] =
        "local id = redis.call('GET', KEYS[1]) if id == ARGV[1] then "
        "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true elseif not id "
        "then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true "
        "end return false";

    engine_start();
    EXPECT(eval(obtain, "1 door me 500"), "OK 1");
    EXPECT(eval(obtain, "1 door you 900"), "OK null");
    EXPECT(eval(obtain, "1 door me 600"), "OK 1");
    EXPECT(eval(keep, "1 door you 900"), "OK 0");
    EXPECT(eval(keep, "1 door me 700"), "OK OK");
    EXPECT(engine_do("PTTL door"), "OK 700");
    EXPECT(engine_do("HELD door 1"), "OK");
}

#define LIMIT                                                               \
    "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call("      \
    "'expire', KEYS[1], ARGV[2]) end if n > tonumber(ARGV[1]) then return " \
    "0 end return 1"

TEST(limits_are_left_to_the_limiter)
{
    CHECK_EQ(make(script_eval, LIMIT, "1 api 10 60"), HF_OK);
    CHECK_EQ(command.kind, 0);
    CHECK_EQ(command.flags, SCRIPT_ALLOWED);
    CHECK_EQ(command.count, 10);
    CHECK_EQ(command.ttl_ms, 60000);
    CHECK_EQ(command.cursor, 1);
    CHECK_EQ(make(script_eval,
                  "local n\nn = redis.call('incr', KEYS[1])\nif n == 1 then\n"
                  "redis.call('expire', KEYS[1], ARGV[1])\nend\nreturn n",
                  "1 api 60"),
             HF_OK);
    CHECK_EQ(command.flags, SCRIPT_COUNTED);
    CHECK_EQ(command.ttl_ms, 60000);
    CHECK_EQ(make(script_eval, LIMIT, "1 api 0 60"), HF_OK); /* none at all */
    CHECK_EQ(command.flags, SCRIPT_ALLOWED | SCRIPT_CLOSED);
    CHECK_EQ(make(script_eval, LIMIT, "1 api -1 60"), HF_INVALID);
    CHECK_EQ(make(script_eval, LIMIT, "1 api 10 -1"), HF_FAILED);
}

/* What redlock-universal sends for several names. */
#define LOCK_EACH                                                              \
    "for i = 1, #KEYS do if redis.call(\"EXISTS\", KEYS[i]) == 1 then return " \
    "{0, i, KEYS[i]} end end local ttl = tonumber(ARGV[#ARGV]) for i = 1, "    \
    "#KEYS do redis.call(\"SET\", KEYS[i], ARGV[i], \"PX\", ttl) end "         \
    "return {1, #KEYS}"

TEST(several_names_are_taken_each_with_its_value)
{
    engine_start();
    EXPECT_EVENTS(eval(LOCK_EACH, "3 c a b x y z 500"),
                  "1 LOCK_GRANTED a; 2 LOCK_GRANTED b; 3 LOCK_GRANTED c");
    EXPECT(engine_do("GET a"), "OK y");
    EXPECT(engine_do("GET b"), "OK z");
    EXPECT(engine_do("GET c"), "OK x");
    EXPECT(engine_do("PTTL c"), "OK 500");
    /* the first in the order of the client, also its own */
    EXPECT(eval(LOCK_EACH, "4 d c a e 1 x y 4 500"), "OK 0 2 c");
    EXPECT(eval(LOCK_EACH, "3 d b c 1 2 3 500"), "OK 0 2 b");
    EXPECT(eval(LOCK_EACH, "1 a y 500"), "OK 0 1 a");
    EXPECT(engine_do("EXISTS d e"), "OK 0");
    engine_do("LOCK free OWNER ann SHARED");
    EXPECT(eval(LOCK_EACH, "2 e free 1 2 500"), "OK 0 2 free");
    engine_now_us += 500 * MS; /* all of them are over */
    EXPECT(eval(LOCK_EACH, "2 b a 1  500"), "OK 1 2");
    EXPECT(engine_do("GET a"), "OK ");
    EXPECT(engine_do("GET c"), "OK null");
    CHECK_ENGINE();
    engine_reload();
    EXPECT(engine_do("GET b"), "OK 1");
}

/* A name twice, and more or fewer values than keys, as Lua has it. */
TEST(values_that_are_not_one_for_each_key)
{
    static char many[4096];
    size_t len;

    engine_start();
    EXPECT(eval(LOCK_EACH, "3 b a b 1 2 3 500"), "OK 1 3");
    EXPECT(engine_do("GET b"), "OK 3");
    EXPECT(eval(LOCK_EACH, "4 c a c b 1 2 3 4 500"), "OK 0 2 a");
    EXPECT(eval(LOCK_EACH, "4 c b a b 1 2 3 4 500"), "OK 0 2 b");
    EXPECT(eval(LOCK_EACH, "2 c c 1 2 500"), "OK 1 2");
    EXPECT(engine_do("GET c"), "OK 2");
    EXPECT(eval(LOCK_EACH, "2 d e 1 2 3 700"), "OK 1 2"); /* 3: nothing */
    EXPECT(engine_do("GET e"), "OK 2");
    EXPECT(engine_do("PTTL e"), "OK 700");
    EXPECT(eval(LOCK_EACH, "2 f g 1 900"), "OK 1 2");
    EXPECT(engine_do("GET g"), "OK 900");
    EXPECT(eval(LOCK_EACH, "1 h 900"), "OK 1 1");
    EXPECT(engine_do("GET h"), "OK 900");
    CHECK_EQ(make(script_eval, LOCK_EACH, "3 i j k 1 900"), HF_FAILED);
    CHECK_EQ(make(script_eval, LOCK_EACH, "1 i"), HF_FAILED);
    CHECK_EQ(make(script_eval, LOCK_EACH, "0 900"), HF_FAILED);
    CHECK_EQ(make(script_eval, LOCK_EACH, "2 i j 1 2 0"), HF_FAILED);
    CHECK_EQ(make(script_eval, LOCK_EACH, "2 i j 1 2 soon"), HF_FAILED);
    for (unsigned keys = HOLD_SET_MAX; keys <= HOLD_SET_MAX + 1; keys++) {
        len = (size_t)snprintf(many, sizeof many, "%u", keys);
        for (unsigned i = 0; i < 2 * keys; i++)
            len += (size_t)snprintf(many + len, sizeof many - len, " n%u", i);
        snprintf(many + len, sizeof many - len, " 500");
        CHECK_EQ(make(script_eval, LOCK_EACH, many),
                 keys <= HOLD_SET_MAX ? HF_OK : HF_INVALID);
    }
    static char value[HOLD_OWNER_MAX + 2];
    memset(value, 'v', sizeof value - 1);
    snprintf(many, sizeof many, "2 i j 1 %s 500", value + 1);
    CHECK_EQ(make(script_eval, LOCK_EACH, many), HF_OK);
    snprintf(many, sizeof many, "2 i j 1 %s 500", value);
    CHECK_EQ(make(script_eval, LOCK_EACH, many), HF_INVALID);
    CHECK_ENGINE();
}

/* Where a known text has no file of its own, by its normal form. */
static const struct script *known(const char *sha1)
{
    for (size_t i = 0; i < script_text_count; i++) {
        if (strcmp(script_texts[i].sha1, sha1) == 0)
            return &scripts[script_texts[i].script];
    }
    return NULL;
}

/* Permits a second, permits at once, a time that is not looked at, permits that
 * are wanted; two keys. */
TEST(a_token_bucket_of_two_keys_is_filled_by_the_second)
{
    static const char *const spring[] = {
        "9d491aea731237273f4274f9ed9660b432b23791",
        "0ad5736ed1c04aae6ec194376c784b89b8c08a7a",
        "86c69f51986a343841432495d8b97ac7ebdd7cfc"};
    static const char zero[] = "12882782d00e1181e052e120006f9973036715fe";

    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(make(script_evalsha, spring[i], "2 tokens time 3 40  5"),
                 HF_OK);
        CHECK_EQ(command.kind, 0);
        CHECK_EQ(command.flags, SCRIPT_PAIR);
        CHECK(hf_bytes_equal(command.name, hf_bytes_text("tokens")));
        CHECK_EQ(command.count, 3);
        CHECK_EQ(command.token, 40);
        CHECK_EQ(command.cursor, 5);
        CHECK_EQ(command.ttl_ms, 1000);
        CHECK_EQ(make(script_evalsha, spring[i], "1 tokens 3 40 0 5"),
                 HF_FAILED);
        CHECK_EQ(make(script_evalsha, spring[i], "2 tokens time 3 40 0"),
                 HF_FAILED);
        CHECK_EQ(make(script_evalsha, spring[i], "2 tokens time 0.5 40 0 1"),
                 HF_INVALID);
        CHECK_EQ(make(script_evalsha, spring[i], "2 tokens time 0 3 0 1"),
                 HF_INVALID);
        CHECK_EQ(make(script_evalsha, spring[i], "2 tokens time 3 0 0 1"),
                 HF_OK);
        CHECK_EQ(command.flags, SCRIPT_PAIR | SCRIPT_CLOSED);
    }
    CHECK_EQ(make(script_evalsha, zero, "2 tokens time 3 40 0 5"), HF_OK);
    CHECK_EQ(command.flags, SCRIPT_ONE_NULL);
    const struct script *stripe =
        known("649141a04bb4cf8e105d6038907b7f9f665c8739");
    CHECK(stripe != NULL && stripe->flags == SCRIPT_PAIR_NULL);
}

/* A blank more is no difference. */
static void check_other_texts(const char *text)
{
    size_t len = strlen(text);
    char other[512];

    for (size_t i = 0; i < len; i++) {
        memcpy(other, text, len + 1);
        other[i] = other[i] == 'x' ? 'y' : 'x';
        CHECK_EQ(make(script_eval, other, "1 door me"), HF_FAILED);
        memcpy(other + i, text + i, 1);
        memmove(other + i, text + i + 1, len - i);
        if (strchr(" '", text[i]) == NULL)
            CHECK_EQ(make(script_eval, other, "1 door me"), HF_FAILED);
        memcpy(other, text, i + 1);
        memcpy(other + i + 1, text + i, len + 1 - i);
        if (strchr(" '", text[i]) == NULL)
            CHECK_EQ(make(script_eval, other, "1 door me"), HF_FAILED);
    }
    CHECK_EQ(make(script_eval, text, "1 door 500"), HF_OK);
}

/* Each character in turn is left out, doubled, or another: the text is none
 * that is known, or it means the same. */
TEST(a_script_that_differs_in_one_character_is_not_known)
{
    check_other_texts(GIVE_BACK);
    check_other_texts(LOCK_EACH);
    CHECK_EQ(make(script_eval, GIVE_BACK " return 1", "1 door me"), HF_FAILED);
    CHECK_EQ(make(script_eval, "return 1", "0"), HF_FAILED);
    CHECK_EQ(make(script_eval, "", "0"), HF_FAILED);
}

TEST(numkeys_is_a_number_of_keys)
{
    static const char *const wrong[] = {"", "x", "-1", "3 a b", "1", "0 a b"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_EQ(make(script_eval, GIVE_BACK, wrong[i]), HF_FAILED);
    CHECK_EQ(make(script_eval, GIVE_BACK, "2 a b c"), HF_OK); /* as Lua does */
    CHECK(hf_bytes_equal(command.name, hf_bytes_text("a")));
    CHECK(hf_bytes_equal(command.reason, hf_bytes_text("c")));
    CHECK_EQ(make(script_eval, GIVE_BACK, "1 a b c d"), HF_OK);
    CHECK(hf_bytes_equal(command.reason, hf_bytes_text("b")));
}

TEST(a_sha1_is_forty_digits_in_any_case)
{
    CHECK_EQ(make(script_evalsha, "e950836ed1e694540c503ef9972b8de518044d3b",
                  "1 door me"),
             HF_OK);
    CHECK_EQ(make(script_evalsha, "E950836ED1E694540C503EF9972B8DE518044D3B",
                  "1 door me"),
             HF_OK);
    CHECK_EQ(make(script_evalsha, "e950836ed1e694540c503ef9972b8de518044d3",
                  "1 door me"),
             HF_EMPTY);
    CHECK_EQ(make(script_evalsha, "e950836ed1e694540c503ef9972b8de518044d3c",
                  "1 door me"),
             HF_EMPTY);
    CHECK_EQ(make(script_evalsha, "", "0"), HF_EMPTY);
    CHECK_EQ(make(script_evalsha,
                  "e\x19"
                  "50836ed1e694540c503ef9972b8de518044d3b",
                  "1 door me"),
             HF_EMPTY);
}

/* Every row leads to a script; none is there twice. */
TEST(the_tables_are_in_order)
{
    for (size_t i = 0; i < script_text_count; i++) {
        CHECK_EQ(strlen(script_texts[i].sha1), SCRIPT_SHA_DIGITS);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(script_texts[i].sha1, script_texts[j].sha1) != 0);
    }
    for (size_t i = 0; i < script_sha_count; i++) {
        CHECK_EQ(strlen(script_shas[i].sha1), SCRIPT_SHA_DIGITS);
        CHECK_EQ(make(script_evalsha, script_shas[i].sha1,
                      "3 a 500 c 5 1 500 500 1"),
                 HF_OK);
    }
}

/* What the semaphores of redis-semaphore send. */
#define ACQUIRE "EVALSHA 43ebdb49120d170e08af560cb4e46e36f8585936 1 sem"
#define TOUCH   "EVALSHA b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79"
#define REFRESH "EVALSHA 999a49a1d07671a8027165641001f5bad44608b3 1 sem"
#define MULTI   "EVALSHA 10c1c2e05e7c48aa5824d227b8c51abcde87b18e 1 multi"
#define GIVE    "EVALSHA 0bd1010c98f1ddd70a6024fd374489a8ea3d2c12 1 multi"

TEST(a_semaphore_is_a_lock_with_permits)
{
    engine_start();
    EXPECT(engine_do(ACQUIRE " 2 ann 500 0"), "OK 1");
    EXPECT(engine_do(ACQUIRE " 2 bob 900 0"), "OK 1");
    EXPECT(engine_do(ACQUIRE " 2 eve 500 0"), "OK 0");
    EXPECT_BEGINS(engine_do("LOCKINFO sem"),
                  "OK name=sem owner=ann token=1 expires_ms=500 count=1 "
                  "waiting=0 held_ms=0 mode=counting ");
    EXPECT(engine_do(ACQUIRE " 2 ann 700 0"), "OK 0"); /* nor its own: full */
    EXPECT(engine_do(REFRESH " 2 bob 700 0"), "OK 1");
    EXPECT(engine_do(REFRESH " 2 eve 700 0"), "OK 0");
    EXPECT(engine_do(ACQUIRE " 3 eve 500 0"), "OK 0"); /* there are two */
    EXPECT(engine_do("ZREM sem eve"), "OK 0");
    EXPECT(engine_do("DEL sem"), "WRONGTYPE name=sem mode=counting");
    EXPECT(engine_do("GET sem"), "WRONGTYPE name=sem mode=counting");
    EXPECT(engine_do("SET sem x NX"), "OK null");
    EXPECT(engine_do("ZREM sem ann"), "OK 1");
    EXPECT_BEGINS(engine_do("LOCK sem OWNER kim PERMITS 1 OF 2 TTL 500"),
                  "OK token=5 ");
    EXPECT(engine_do("ZREM sem kim"), "WRONGTYPE name=sem mode=counting");
    engine_now_us += 700 * MS;
    EXPECT(engine_do(ACQUIRE " 2 ann 500 0"), "OK 1");
    EXPECT(engine_do(ACQUIRE " 2 ann 900 0"), "OK 1"); /* it is renewed */
    EXPECT(engine_do("PTTL sem"), "OK 900");
    EXPECT(engine_do("ZREM sem ann"), "OK 1");
    EXPECT(engine_do(ACQUIRE " 1 eve 500 0"), "OK 1");
    CHECK_ENGINE();
}

/* Earlier builds wrote OWN for a semaphore, and their journals are read. */
TEST(permits_are_renewed_although_none_is_free_in_an_old_record)
{
    static const char acquire[] = "43ebdb49120d170e08af560cb4e46e36f8585936";

    engine_start();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(make(script_evalsha, acquire, "1 sem 1 ann 500 0"), HF_OK);
        command.now_us = engine_now_us;
        command.flags |= i == 1 ? HOLD_OWN : 0;
        EXPECT(engine_apply(&command), i < 2 ? "OK 1" : "OK 0");
    }
    CHECK_ENGINE();
}

/* Who was revoked hears that no extension was made, by whatever script. */
TEST(what_was_revoked_is_not_extended)
{
    engine_start();
    EXPECT(engine_do(TOUCH " 1 door me 900"), "OK 1");
    engine_do("REVOKE door 1 GRACE 300");
    EXPECT(engine_do(TOUCH " 1 door me 500"), "OK 0");
    EXPECT(eval(KEEP, "1 door me 500"), "OK 0");
    EXPECT(engine_do(TOUCH " 1 door me 200"), "OK 1");
    EXPECT(engine_do(ACQUIRE " 2 bob 900 0"), "OK 1");
    engine_do("REVOKE sem 4 GRACE 300");
    EXPECT(engine_do(ACQUIRE " 2 bob 900 0"), "OK 0");
    EXPECT(engine_do(REFRESH " 2 bob 900 0"), "OK 0");
    EXPECT(engine_do("PTTL sem"), "OK 300");
}

TEST(several_permits_come_and_go_together)
{
    engine_start();
    EXPECT(engine_do(MULTI " 5 3 ann 500 0"), "OK 1");
    EXPECT(engine_do(MULTI " 5 3 bob 500 0"), "OK 0");
    EXPECT(engine_do(MULTI " 5 3 ann 500 0"), "OK 0"); /* 3 are not free */
    EXPECT(engine_do(MULTI " 5 2 bob 500 0"), "OK 1");
    EXPECT(engine_do(GIVE " 3 ann"), "OK 3");
    EXPECT(engine_do(GIVE " 3 ann"), "OK 0");
    EXPECT(engine_do("SET door x"), "OK OK");
    EXPECT(engine_do("ZREM door x"), "WRONGTYPE name=door mode=exclusive");
    CHECK_ENGINE();
}

/* What npm redlock sends for several names. */
#define LOCK_ALL       "EVALSHA 96da70f7716f27d278a5218544df37fd8b0a5e4c"
#define EXTEND_ALL_SHA "aed6f382e410db8ba7926d4e5e9aab410bf2a78a"
#define EXTEND_ALL     "EVALSHA " EXTEND_ALL_SHA
#define GIVE_ALL       "EVALSHA e4612211c9f8f51c257e26e056b0a654b3187242"

TEST(several_names_are_taken_together_and_given_back_each)
{
    engine_start();
    engine_do("SET c other");
    EXPECT(engine_do(LOCK_ALL " 3 a b c me 500"), "OK 0");
    EXPECT(engine_do("EXISTS a b"), "OK 0");
    EXPECT_EVENTS(engine_do(LOCK_ALL " 2 b a me 500"),
                  "2 LOCK_GRANTED a; 3 LOCK_GRANTED b");
    EXPECT(engine_do(EXTEND_ALL " 3 a b c me 900"), "OK 0");
    EXPECT(engine_do("PTTL a"), "OK 500");
    EXPECT(engine_do(EXTEND_ALL " 2 a b me 900"), "OK 2");
    EXPECT(engine_do("PTTL b"), "OK 900");
    EXPECT(engine_do(GIVE_ALL " 3 a b c me"), "OK 2");
    EXPECT(engine_do("GET c"), "OK other");
    EXPECT(engine_do(LOCK_ALL " 3 a b a me 500"), "OK 3"); /* as Lua counts */
    EXPECT(engine_do(EXTEND_ALL " 2 a a me 500"), "OK 2");
    CHECK_EQ(make(script_evalsha, EXTEND_ALL_SHA, "2 a c me 0"), HF_FAILED);
    CHECK_EQ(make(script_evalsha, EXTEND_ALL_SHA, "1 a me 0"), HF_FAILED);
    CHECK_EQ(make(script_evalsha, EXTEND_ALL_SHA, "2 a a me -1"), HF_FAILED);
    EXPECT(engine_do(GIVE_ALL " 3 a b a me"), "OK 2");
    CHECK_ENGINE();
}

/* redis-py, redlock-universal. */
TEST(extensions_that_depend_on_what_is_left)
{
#define EXTEND_SHA "a4e8783852e6b949f9ef3a97212805108459a890"
#define EXTEND     "EVALSHA " EXTEND_SHA " 1 door"
#define SAFE_SHA   "c000e088bd4aca36ab429d3b7a16fc736f4cb6f1"
#define SAFE       "EVALSHA " SAFE_SHA " 1 door"
#define SAFE_GATE  "EVALSHA " SAFE_SHA " 1 gate"
    engine_start();
    EXPECT(engine_do(SAFE " me 100 500"), "OK -1 -2");
    engine_do("SET door me");
    EXPECT(engine_do(EXTEND " me 500 0"), "OK 0"); /* it has no end */
    EXPECT(engine_do(EXTEND " me 500 1"), "OK 0");
    engine_do("PEXPIRE door 300");
    EXPECT(engine_do(EXTEND " me 500 0"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 800");
    EXPECT(engine_do(EXTEND " me 100 1"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 100");
    CHECK_EQ(make(script_evalsha, EXTEND_SHA, "1 door me 0 0"), HF_FAILED);
    CHECK_EQ(make(script_evalsha, EXTEND_SHA, "1 door me -5 1"), HF_FAILED);
    EXPECT(engine_do(SAFE " me 101 500"), "OK 0 100");
    EXPECT(engine_do(SAFE " you 0 500"), "OK -1 100");
    EXPECT(engine_do(SAFE " me 0 100"), "OK 1 100"); /* any is enough */
    EXPECT(engine_do("SET gate me"), "OK OK");
    EXPECT(engine_do(SAFE_GATE " me 1 500"), "OK 0 -1");
    EXPECT(engine_do(SAFE_GATE " me 0 500"), "OK 0 -1"); /* -1 is less */
    CHECK_EQ(make(script_evalsha, SAFE_SHA, "1 door me soon 500"), HF_FAILED);
    CHECK_EQ(make(script_evalsha, SAFE_SHA, "1 door me -1 500"), HF_FAILED);
    CHECK_EQ(make(script_evalsha, SAFE_SHA, "1 door me 1 0"), HF_FAILED);
    EXPECT(engine_do(SAFE " you 100 500"), "OK -1 100");
    EXPECT(engine_do(SAFE " me 100 500"), "OK 1 100");
    EXPECT(engine_do("PTTL door"), "OK 500");
    EXPECT(engine_do("EVALSHA 994908155dadb1bed08a5af6dee7fedf956c4826 1 door"),
           "OK me 500");
    EXPECT(engine_do("EVALSHA 994908155dadb1bed08a5af6dee7fedf956c4826 1 x"),
           "OK null");
}
