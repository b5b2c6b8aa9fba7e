/* tiered_trouble.c - one process and a real Redis that breaks in ways which
 * test/system/tiered.c, with its many processes, does not meet.
 * tests: also under sanitizers
 */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/tiered.h"
#include "support/daemon.h"
#include "support/redis.h"
#include "support/test.h"
#include "support/threads.h"

#define LEASE_MS 300u
#define LARGE    (32u << 20)

static struct test_redis *redis;
static struct hf_tiered *tiered;

/* ---- A store of one value, which does something while it is read. ---- */

static struct {
    char *value;
    size_t len;
    struct hf_atomic_u64 reads;
    void (*meanwhile)(void);
    enum hf_status status;
} one;

static enum hf_status one_read(void *context, const void *key, size_t key_len,
                               void (*found)(void *arg, const void *value,
                                             size_t value_len),
                               void *arg)
{
    (void)context, (void)key, (void)key_len;
    hf_u64_add(&one.reads, 1, __ATOMIC_SEQ_CST);
    if (one.meanwhile != NULL)
        one.meanwhile();
    if (one.status != HF_OK)
        return one.status;
    found(arg, one.value, one.len);
    return HF_OK;
}

static enum hf_status
one_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    (void)context;
    free(one.value);
    one.value = malloc(changes[count - 1].value_len + 1);
    CHECK(one.value != NULL);
    memcpy(one.value, changes[count - 1].value, changes[count - 1].value_len);
    one.len = changes[count - 1].value_len;
    return HF_OK;
}

static const struct hf_store store = {.read = one_read, .apply = one_apply};

static uint64_t soon(void)
{
    return hf_clock_after_ms(NULL, 60000);
}

static struct hf_tiered *open_one(void)
{
    struct hf_tiered *opened = NULL;
    struct hf_tiered_opts opts = {.store = &store,
                                  .redis_host = "127.0.0.1",
                                  .redis_port = redis->port,
                                  .timeout_ms = 60000,
                                  .lease_ms = LEASE_MS};

    CHECK_EQ(hf_tiered_open(&opened, &opts), HF_OK);
    return opened;
}

static void begin(const char *const *settings)
{
    redis = test_redis_start(settings);
    tiered = open_one();
}

static void end(void)
{
    hf_tiered_close(tiered);
    test_redis_end(redis);
    free(one.value);
    memset(&one, 0, sizeof one);
}

static struct hf_tiered_stats stats(void)
{
    struct hf_tiered_stats out;

    hf_tiered_stats(tiered, &out);
    return out;
}

static void put(const char *value)
{
    CHECK_EQ(hf_tiered_put(tiered, "k", 1, value, strlen(value), soon()),
             HF_OK);
}

static void expect(const char *value)
{
    char out[64];
    size_t len = 0;

    CHECK_EQ(hf_tiered_get(tiered, "k", 1, soon(), out, sizeof out, &len),
             HF_OK);
    CHECK_TEXT(out, len, value);
}

static void await_lease(void)
{
    uint64_t until_ns = soon();

    while (!stats().leased) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < until_ns);
        test_daemon_pause();
    }
}

static void redis_command(const char *command)
{
    redisContext *wire = redisConnect("127.0.0.1", redis->port);

    CHECK(wire != NULL && wire->err == 0);
    redisReply *reply = redisCommand(wire, command);
    CHECK(reply != NULL && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    redisFree(wire);
}

static void kill_redis(void)
{
    one.meanwhile = NULL;
    test_redis_kill(redis);
}

static void no_look(void *arg, const void *value, size_t len)
{
    (void)value;
    *(size_t *)arg = len;
}

/* Redis dies while a large value is loaded, which is then written to a
 * connection that nobody reads from. */
TEST(a_redis_that_dies_during_a_load_does_not_end_the_process)
{
    size_t len = 0;

    signal(SIGPIPE, SIG_DFL);
    begin(NULL);
    one.value = calloc(1, LARGE);
    one.len = LARGE;
    CHECK(one.value != NULL);
    one.meanwhile = kill_redis;
    CHECK_EQ(hf_tiered_read(tiered, "k", 1, soon(), no_look, &len), HF_OK);
    CHECK_EQ(len, LARGE);
    test_redis_restart(redis);
    await_lease();
    end();
}

/* It comes back with what it had before a change. */
TEST(a_redis_that_goes_back_in_time_is_not_believed)
{
    begin(NULL);
    put("old");
    expect("old");
    CHECK_EQ(stats().fills, 1);
    redis_command("SAVE");
    put("new");
    test_redis_kill(redis);
    test_redis_restart(redis);
    struct hf_tiered *first = tiered;
    tiered = open_one(); /* another process might */
    expect("new");
    hf_tiered_close(tiered);
    tiered = first;
    end();
}

TEST(scripts_that_were_flushed_are_loaded_again)
{
    begin(NULL);
    put("a");
    for (int i = 0; i < 10; i++) {
        redis_command("SCRIPT FLUSH");
        CHECK_EQ(hf_tiered_put(tiered, "k", 1, "b", 1, soon()), HF_OK);
        redis_command("SCRIPT FLUSH");
        expect("b");
    }
    CHECK_EQ(stats().redis_errors, 0);
    CHECK_EQ(stats().leases_lost, 0);
    end();
}

/* Nothing may be written any more: reads come from the store, and changes and
 * leases go on. */
TEST(a_redis_without_memory_still_tells_of_changes)
{
    begin(NULL);
    put("a");
    expect("a");
    redis_command("CONFIG SET maxmemory 1");
    put("b");
    for (int i = 0; i < 10; i++)
        expect("b");
    put("c");
    expect("c");
    CHECK(stats().leased);
    CHECK_EQ(stats().leases_lost, 0);
    redis_command("CONFIG SET maxmemory 0");
    end();
}

/* What the caller passed to open is the caller's again. */
TEST(names_are_copied)
{
    char *host = strdup("127.0.0.1"), *prefix = strdup("mine");

    redis = test_redis_start(NULL);
    struct hf_tiered_opts opts = {.store = &store,
                                  .redis_host = host,
                                  .redis_port = redis->port,
                                  .prefix = prefix,
                                  .timeout_ms = 60000,
                                  .lease_ms = LEASE_MS};
    CHECK_EQ(hf_tiered_open(&tiered, &opts), HF_OK);
    memset(host, '!', strlen(host));
    memset(prefix, '!', strlen(prefix));
    free(host);
    free(prefix);
    put("a");
    expect("a");
    redis_command("CLIENT KILL TYPE pubsub");
    redis_command("CLIENT KILL TYPE normal");
    put("b");
    expect("b");
    await_lease();
    end();
}

static enum hf_status waited;

static void put_or_shut(void *context, int index)
{
    (void)context;
    if (index == 0) {
        waited = hf_tiered_put(tiered, "k", 1, "b", 1, HF_FOREVER);
        return;
    }
    while (stats().changes < 2)
        test_daemon_pause();
    hf_tiered_shutdown(tiered);
}

/* Redis has forgotten who listens, so a change waits for a lease: of a minute.
 */
TEST(who_waits_for_others_leaves_when_it_is_shut)
{
    char out[8];
    size_t len;

    redis = test_redis_start(NULL);
    struct hf_tiered_opts opts = {.store = &store,
                                  .redis_host = "127.0.0.1",
                                  .redis_port = redis->port,
                                  .timeout_ms = 60000,
                                  .lease_ms = HF_TIERED_LEASE_MAX};
    CHECK_EQ(hf_tiered_open(&tiered, &opts), HF_OK);
    CHECK_EQ(hf_tiered_put(tiered, "k", 1, "a", 1, HF_NOW), HF_PENDING);
    test_threads(2, put_or_shut, NULL);
    CHECK_EQ(waited, HF_CLOSED);
    CHECK_EQ(hf_tiered_get(tiered, "k", 1, HF_NOW, out, 8, &len), HF_CLOSED);
    end();
}
