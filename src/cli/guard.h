/* guard.h - a second process that kills the command if the first one cannot.
 *
 *   holdfast lock ----forks----> command (own process group)
 *        |
 *        +---forks, pipe---> guard: "kill that group at that instant,
 *                                    or when the pipe closes"
 *
 * While all is well it is told a later instant after every renewal. If
 * `holdfast lock` is stopped, the instant passes and the guard kills the
 * group; if it is killed, the pipe closes and the guard kills the group at
 * once. It stands in a process group of its own, so that signals from the
 * terminal do not reach it.
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "holdfast/status.h"

struct guard {
    pid_t pid;
    int pipe; /* -1: not started */
};

/* HF_IO: no process or no pipe could be had. */
enum hf_status guard_start(struct guard *guard);
/* From now on: kill `group` at `kill_ns` of client_now_ns(). */
enum hf_status guard_set(struct guard *guard, pid_t group, uint64_t kill_ns);
/* The group is gone or is taken care of: ends the guard, kills nobody. */
void guard_stop(struct guard *guard);

/* Has a timer of CLOCK_BOOTTIME go off at that instant; 0: never. */
void guard_arm(int timer, uint64_t at_ns);

#endif
