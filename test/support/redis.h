/* redis.h - a real Redis as a child of the test.
 *
 *   struct test_redis *redis = test_redis_start(NULL);
 *   ... redis->port, redis->url ...
 *   test_redis_kill(redis);     // kill -9
 *   test_redis_restart(redis);  // again on the same port, empty
 *   test_redis_end(redis);
 *
 * It keeps nothing on disk and listens on a free loopback port. One that a
 * failed test leaves behind is ended with the test program.
 *
 * Threads: the test's first thread only.
 */
#ifndef TEST_SUPPORT_REDIS_H
#define TEST_SUPPORT_REDIS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct test_redis {
    pid_t pid; /* 0: not running */
    uint16_t port;
    char url[48]; /* redis://127.0.0.1:port */
    /* Private. */
    bool used;
    char dir[4096];
    const char *const *settings;
};

/* `settings` are further arguments ("--maxmemory", "1mb", ...), NULL last, kept
 * by reference; NULL: none. Returns when it answers. */
struct test_redis *test_redis_start(const char *const *settings);
/* SIGTERM, and waits for its end. */
void test_redis_stop(struct test_redis *redis);
/* SIGKILL, and waits for its end. */
void test_redis_kill(struct test_redis *redis);
/* After stop or kill: on the same port. */
void test_redis_restart(struct test_redis *redis);
/* SIGSTOP and SIGCONT: it takes connections and says nothing. */
void test_redis_freeze(struct test_redis *redis);
void test_redis_thaw(struct test_redis *redis);
/* Stops it if need be; the handle is gone. NULL: nothing. */
void test_redis_end(struct test_redis *redis);

#endif
