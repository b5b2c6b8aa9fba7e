/* server.h - a real server as a child of the test.
 *
 *   struct test_server server;
 *   test_server_start(&server, &(struct test_server_opts){.dir = folder});
 *   ... server.port ...
 *   CHECK_EQ(test_server_stop(&server), 0);
 *
 * The program is the one that HOLDFAST names in the environment, else
 * build/holdfast; with a fault it is test/faulty beside that one. It picks its
 * own port, which is read from its `ready` line. A server that a failed test
 * leaves behind ends with the test program.
 *
 * Threads: the test's own, but for test_server_signal.
 */
#ifndef TEST_SUPPORT_SERVER_H
#define TEST_SUPPORT_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "support/wire.h"

struct test_server {
    pid_t pid; /* 0: not running */
    uint16_t port;
    int output;         /* its standard output and standard error */
    struct hf_buf said; /* what was read from there, with an end mark */
};

struct test_server_opts {
    const char *dir;         /* NULL: test_folder() */
    const char *durability;  /* NULL: its default */
    const char *fault;       /* of its disk, see fault.h; NULL: none */
    uint64_t segment_bytes;  /* 0: its default */
    uint64_t snapshot_bytes; /* 0: its default */
    uint64_t descriptors;    /* as many as it may open; 0: as many as we */
    const char *const *more; /* other arguments, NULL last; NULL: none */
};

/* Starts it without waiting for anything. */
void test_server_launch(struct test_server *server,
                        const struct test_server_opts *opts);
/* Waits until it accepts; false if it ended instead. */
bool test_server_ready(struct test_server *server);
/* Both; the test fails if it does not come up. */
void test_server_start(struct test_server *server,
                       const struct test_server_opts *opts);

/* A connection to it; the test fails if there is none to be had. */
void test_server_connect(const struct test_server *server,
                         struct test_wire *wire);
/* Starts it and connects, after ending what a failed test left of both. */
void test_server_begin(struct test_server *server, struct test_wire *wire,
                       const struct test_server_opts *opts);
/* Closes and stops; the test fails if it does not end in order. */
void test_server_finish(struct test_server *server, struct test_wire *wire);

bool test_server_signal(const struct test_server *server, int signal);
/* Shuts the gate of a server with the fault `write:0:gate`: no write from here
 * on ends before SIGUSR1. */
void test_server_shut(struct test_server *server);
/* Waits for its end: the exit status, or 128 + the signal that ended it. */
int test_server_end(struct test_server *server);
/* SIGTERM and its exit status; SIGKILL. */
int test_server_stop(struct test_server *server);
void test_server_kill(struct test_server *server);

/* Everything it has printed so far. */
const char *test_server_said(struct test_server *server);
/* Memory that it has in use, in KiB. */
uint64_t test_server_memory_kb(const struct test_server *server);

/* True in a run under a sanitizer: slower, and larger in memory. */
bool test_is_sanitized(void);
/* Runs the holdfast command with these arguments, NULL last. Its exit status;
 * `said` (zeroed or empty) gets all that it printed, with an end mark. */
int test_holdfast(struct hf_buf *said, const char *const *args);

#endif
