/* redis.c - a real Redis as a child of the test. */
#include "support/redis.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/stat.h>

#include "holdfast/clock.h"
#include "support/daemon.h"
#include "support/test.h"

#define REDIS_MAX   8
#define ARGS_MAX    40
#define START_TIMES 5 /* a port that looked free may be taken meanwhile */

static struct test_redis servers[REDIS_MAX];

static bool answers(const struct test_redis *redis)
{
    bool pong = false;
    redisContext *context = redisConnect("127.0.0.1", redis->port);

    if (context != NULL && context->err == 0) {
        redisReply *reply = redisCommand(context, "PING");
        pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        if (reply != NULL)
            freeReplyObject(reply);
    }
    if (context != NULL)
        redisFree(context);
    return pong;
}

/* False if it ended instead of answering. */
static bool launch(struct test_redis *redis)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, DAEMON_DEADLINE_MS);
    char port[16];
    char log[4200];
    const char *args[ARGS_MAX] = {"/usr/bin/redis-server",
                                  "--port",
                                  port,
                                  "--bind",
                                  "127.0.0.1",
                                  "--save",
                                  "",
                                  "--appendonly",
                                  "no",
                                  "--dir",
                                  redis->dir};
    int count = 11;

    for (int i = 0; redis->settings != NULL && redis->settings[i] != NULL;
         i++) {
        CHECK(count < ARGS_MAX - 1);
        args[count++] = redis->settings[i];
    }
    snprintf(port, sizeof port, "%u", redis->port);
    snprintf(log, sizeof log, "%s/log", redis->dir);
    redis->pid =
        test_daemon_spawn(args, log, (struct test_daemon_user){.other = false});
    while (!answers(redis)) {
        if (!test_daemon_alive(redis->pid)) {
            redis->pid = 0;
            return false;
        }
        if (hf_clock_now_ns(hf_clock_system()) >= end_ns)
            test_daemon_fail("Redis does not answer", log);
        test_daemon_pause();
    }
    return true;
}

static void end_all(void)
{
    for (int i = 0; i < REDIS_MAX; i++) {
        if (servers[i].pid > 0)
            test_daemon_end(servers[i].pid, SIGKILL);
        servers[i].pid = 0;
    }
}

struct test_redis *test_redis_start(const char *const *settings)
{
    struct test_redis *redis = servers;
    char log[4200];

    while (redis < servers + REDIS_MAX && redis->used)
        redis++;
    CHECK(redis < servers + REDIS_MAX);
    test_daemon_at_exit(end_all);
    *redis = (struct test_redis){.used = true, .settings = settings};
    snprintf(redis->dir, sizeof redis->dir, "%s/redis-%d", test_daemon_folder(),
             (int)(redis - servers));
    (void)mkdir(redis->dir, 0700);
    for (int tries = 0; tries < START_TIMES; tries++) {
        redis->port = test_daemon_port();
        snprintf(redis->url, sizeof redis->url, "redis://127.0.0.1:%u",
                 redis->port);
        if (launch(redis))
            return redis;
    }
    snprintf(log, sizeof log, "%s/log", redis->dir);
    test_daemon_fail("Redis did not start", log);
}

void test_redis_stop(struct test_redis *redis)
{
    test_daemon_end(redis->pid, SIGTERM);
    redis->pid = 0;
}

void test_redis_kill(struct test_redis *redis)
{
    test_daemon_end(redis->pid, SIGKILL);
    redis->pid = 0;
}

void test_redis_restart(struct test_redis *redis)
{
    char log[4200];

    CHECK_EQ(redis->pid, 0);
    snprintf(log, sizeof log, "%s/log", redis->dir);
    if (!launch(redis))
        test_daemon_fail("Redis did not come back", log);
}

void test_redis_freeze(struct test_redis *redis)
{
    CHECK(redis->pid > 0 && kill(redis->pid, SIGSTOP) == 0);
}

void test_redis_thaw(struct test_redis *redis)
{
    CHECK(redis->pid > 0 && kill(redis->pid, SIGCONT) == 0);
}

void test_redis_end(struct test_redis *redis)
{
    if (redis == NULL)
        return;
    test_redis_kill(redis);
    redis->used = false;
}
