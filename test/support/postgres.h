/* postgres.h - a real PostgreSQL as a child of the test.
 *
 *   struct test_postgres *postgres = test_postgres_start(NULL);
 *   PGconn *conn = PQconnectdb(postgres->conninfo);
 *   test_postgres_kill(postgres);     // kill -9, all its processes
 *   test_postgres_restart(postgres);  // same port, same data, recovered
 *   test_postgres_end(postgres);
 *
 * Debian's, run by the user postgres if the test is run by root. The first
 * start in a program makes an empty cluster, every server gets a copy of it,
 * and listens on a free loopback port. One that a failed test leaves behind is
 * ended with the test program.
 *
 * Threads: the test's first thread only.
 */
#ifndef TEST_SUPPORT_POSTGRES_H
#define TEST_SUPPORT_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct test_postgres_opts {
    bool durable;         /* fsync on: for tests that need no such thing it is
                           * off; a kill -9 of the server loses nothing, since
                           * the system keeps what was written */
    uint32_t connections; /* at most; 0: 50 */
    const char *const *settings; /* "name=value", NULL last, kept by reference;
                                  * NULL: none */
};

struct test_postgres {
    pid_t pid; /* 0: not running */
    uint16_t port;
    char conninfo[128]; /* for PQconnectdb */
    /* Private. */
    bool used;
    struct test_postgres_opts opts;
    char dir[4096];
    char log[4096 + 8];
};

/* Returns when it accepts connections. */
struct test_postgres *
test_postgres_start(const struct test_postgres_opts *opts);
/* Fast shutdown: clients are sent away, nothing is lost. Waits for its end. */
void test_postgres_stop(struct test_postgres *postgres);
/* SIGKILL for the server and every process it started; waits for their end. */
void test_postgres_kill(struct test_postgres *postgres);
/* After stop or kill: the same data on the same port. */
void test_postgres_restart(struct test_postgres *postgres);
/* As restart, but returns at once: connections are refused for a while. */
void test_postgres_relaunch(struct test_postgres *postgres);
/* Waits until it accepts connections. */
void test_postgres_await(struct test_postgres *postgres);
/* Ends it if need be and removes its data; the handle is gone. NULL: nothing.
 */
void test_postgres_end(struct test_postgres *postgres);

#endif
