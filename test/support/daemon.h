/* daemon.h - servers of others (PostgreSQL, Redis) as children of the test.
 *
 * What postgres.h and redis.h share: a folder that another user can reach, a
 * free port, a child that ends with the test, and an end for whatever a failed
 * test leaves running. All of it is gone when the program ends.
 *
 * Threads: the test's first thread only; a child ends with the thread that
 *          started it.
 */
#ifndef TEST_SUPPORT_DAEMON_H
#define TEST_SUPPORT_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How long anything here may take before the test fails. */
#define DAEMON_DEADLINE_MS 60000

/* One folder for this program below $TMPDIR, or below /tmp if others may not
 * pass through $TMPDIR. Removed when the program ends. */
const char *test_daemon_folder(void);
/* A loopback port that nobody listens on now, and that the system gives to no
 * outgoing connection, so that a server can come back to it. */
uint16_t test_daemon_port(void);

/* Who runs a child. PostgreSQL refuses to be run by root. */
struct test_daemon_user {
    bool other; /* false: whoever runs the test */
    uid_t uid;
    gid_t gid;
};
/* The user `name` if the test is run by root, else nobody other. */
struct test_daemon_user test_daemon_user(const char *name);

/* Starts args[0]; what it prints is added to the file `log`. It is ended when
 * the test's process ends, whatever ends that. */
pid_t test_daemon_spawn(const char *const *args, const char *log,
                        struct test_daemon_user user);
/* In a child, between fork and exec: no input, all output to this file, signals
 * as they were. */
void test_daemon_detach(int output);
/* Waits for its end: its exit status, or 128 + the signal that ended it. */
int test_daemon_reap(pid_t pid);
/* Starts it and waits for its end. */
int test_daemon_run(const char *const *args, const char *log,
                    struct test_daemon_user user);
/* True while the child runs; one that has ended is reaped. */
bool test_daemon_alive(pid_t pid);
/* Sends a signal and waits until it has ended; after the deadline by SIGKILL.
 */
void test_daemon_end(pid_t pid, int signal);
/* A short pause between two looks at a server that is on its way. */
void test_daemon_pause(void);
/* Fails the test with the end of a log. */
void test_daemon_fail(const char *what, const char *log)
    __attribute__((noreturn));

/* Has `end` called when the program ends, before the folder is removed. */
void test_daemon_at_exit(void (*end)(void));

#endif
