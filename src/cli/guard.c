/* guard.c - waits for an instant, a new order, or the end of the pipe. */
#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Written whole: shorter than PIPE_BUF. `group` 0 calls the guard off. */
struct order {
    int64_t group;
    uint64_t kill_ns;
};

void guard_arm(int timer, uint64_t at_ns)
{
    struct itimerspec when = {.it_value = {(time_t)(at_ns / 1000000000u),
                                           (long)(at_ns % 1000000000u)}};

    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void kill_group(int64_t group)
{
    if (group > 1)
        kill((pid_t)-group, SIGKILL);
}

/* Does not return. */
static void guard_main(int orders, int timer)
{
    struct order order = {0};

    for (;;) {
        struct pollfd ready[2] = {{.fd = orders, .events = POLLIN},
                                  {.fd = timer, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0)
            continue;
        if (ready[0].revents != 0) {
            ssize_t got = read(orders, &order, sizeof order);
            if (got < 0 && errno == EINTR)
                continue;
            if (got != (ssize_t)sizeof order)
                break;
            guard_arm(timer, order.kill_ns);
        } else if (ready[1].revents != 0) {
            kill_group(order.group);
            guard_arm(timer, 0);
        }
    }
    kill_group(order.group);
    _exit(0);
}

enum hf_status guard_start(struct guard *guard)
{
    int ends[2];
    sigset_t all;
    sigset_t old;

    *guard = (struct guard){.pipe = -1};
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0)
        return HF_IO;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        close(timer);
        return HF_IO;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_NAME, "holdfast-guard");
        close(ends[1]);
        guard_main(ends[0], timer);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(timer);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return HF_IO;
    }
    *guard = (struct guard){.pid = pid, .pipe = ends[1]};
    return HF_OK;
}

enum hf_status guard_set(struct guard *guard, pid_t group, uint64_t kill_ns)
{
    struct order order = {.group = group, .kill_ns = kill_ns};

    ssize_t done = write(guard->pipe, &order, sizeof order);
    return done == (ssize_t)sizeof order ? HF_OK : HF_IO;
}

void guard_stop(struct guard *guard)
{
    if (guard->pipe < 0)
        return;
    (void)guard_set(guard, 0, 0);
    close(guard->pipe);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    guard->pipe = -1;
}
