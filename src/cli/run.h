/* run.h - runs a command under a lease, and ends it before the lease ends.
 *
 * The command gets a process group of its own, the terminal if there is one,
 * and HOLDFAST_LOCK, HOLDFAST_OWNER, HOLDFAST_TOKEN and HOLDFAST_FENCE in its
 * environment; under a session HOLDFAST_SESSION.
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGCONT are passed on to the
 * whole group. When the command has ended, what is left of its group is
 * killed, as it would go on without the lock.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/lease.h"
#include "cli/tail.h"

/* The command's exit code, 128 + signal, or one of enum cli_exit: CLI_LOST,
 * CLI_CANNOT_RUN, CLI_NO_COMMAND, CLI_FAILED. `command` ends with NULL. The
 * lease is still to be released, except after CLI_LOST. With a tail, which may
 * be NULL, the command's output goes through it. */
int run_command(struct lease *lease, char **command, struct tail *tail);

#endif
