/* run.c - one loop over signals, a timer and the server's socket.
 *
 * The timer is absolute and counts while the machine sleeps, and every turn
 * looks at the clock before anything else: whatever kept this process from
 * running, the first thing it does afterwards is to end the command if its
 * time is up. The guard does the same from outside, a moment later.
 */
#include "cli/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/guard.h"

struct run {
    struct lease *lease;
    struct tail *tail; /* NULL: the output is not ours to see */
    int output;        /* of the command, to the tail; -1: none */
    struct guard guard;
    pid_t child;       /* leader of the group of the same number */
    pid_t terminal;    /* group that had the terminal; 0: none of ours */
    int signals;       /* signalfd */
    int timer;         /* timerfd */
    sigset_t old_mask; /* for the child */
    uint64_t told_ns;  /* lease->safe_ns that the guard knows */
    bool warned;       /* SIGTERM was sent: the lease is given up */
    bool killed;       /* SIGKILL was sent */
};

static void open_signals(struct run *run)
{
    static const int watched[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                  SIGQUIT, SIGTSTP, SIGCONT};
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&mask, watched[i]);
    run->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&mask, SIGPIPE); /* a dead guard must not end us */
    sigaddset(&mask, SIGTTOU); /* to hand over the terminal */
    sigprocmask(SIG_BLOCK, &mask, &run->old_mask);
}

static void set_number(const char *name, uint64_t number)
{
    char text[HF_DIGITS_MAX + 1];

    text[hf_print_u64(text, number)] = '\0';
    setenv(name, text, 1);
}

/* What the command is told; an outer command's lock is not its own. */
static void set_environment(const struct lease *lease)
{
    if (lease->kind == LEASE_SESSION) {
        set_number("HOLDFAST_SESSION", lease->token);
        return;
    }
    setenv("HOLDFAST_LOCK", lease->name, 1);
    setenv("HOLDFAST_OWNER", lease->owner, 1);
    set_number("HOLDFAST_TOKEN", lease->token);
    unsetenv("HOLDFAST_FENCE");
    if (lease->fence != 0)
        set_number("HOLDFAST_FENCE", lease->fence);
}

/* In the child: does not return. */
static void become_command(const struct run *run, pid_t parent, char **command,
                           int report)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_FAILED);
    if (run->terminal != 0)
        tcsetpgrp(STDIN_FILENO, getpid());
    if (run->output >= 0)
        dup2(run->output, STDOUT_FILENO);
    set_environment(run->lease);
    sigprocmask(SIG_SETMASK, &run->old_mask, NULL);
    execvp(command[0], command);
    int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(CLI_NO_COMMAND);
}

/* Starts the command; 0, or the errno for which it could not be run. */
static int start(struct run *run, char **command)
{
    pid_t parent = getpid();
    int ends[2];
    int error = 0;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
        run->terminal = getpgrp();
    run->child = fork();
    if (run->child == 0)
        become_command(run, parent, command, ends[1]);
    close(ends[1]);
    if (run->output >= 0)
        close(run->output);
    if (run->child < 0) {
        error = errno;
    } else {
        setpgid(run->child, run->child);
        (void)guard_set(&run->guard, run->child, run->lease->safe_ns);
        while (read(ends[0], &error, sizeof error) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return error;
}

static void signal_group(const struct run *run, int number)
{
    assert(run->child > 1);
    kill(-run->child, number);
}

static void kill_now(struct run *run, const char *why)
{
    signal_group(run, SIGKILL);
    if (!run->warned)
        fprintf(stderr, "holdfast %s: '%s' is lost, %s; command killed\n",
                run->lease->program, run->lease->name, why);
    run->warned = true;
    run->killed = true;
}

/* A stopped process acts on a signal when it is continued. */
static void warn_now(struct run *run)
{
    signal_group(run, SIGTERM);
    signal_group(run, SIGCONT);
    fprintf(stderr,
            "holdfast %s: '%s' could not be renewed; ending the "
            "command\n",
            run->lease->program, run->lease->name);
    run->warned = true;
    client_close(&run->lease->client);
}

/* What the clock demands, and the renewal. */
static void keep(struct run *run)
{
    struct lease *lease = run->lease;
    uint64_t now_ns = client_now_ns();

    if (run->killed)
        return;
    if (now_ns >= lease_kill_ns(lease)) {
        kill_now(run, "its time is up");
        return;
    }
    if (run->warned)
        return;
    /* an answer that is already here counts before the clock does */
    if (lease_step(lease, now_ns) == HF_CLOSED) {
        kill_now(run, "the server says that it is not held any more");
        return;
    }
    if (now_ns >= lease_warn_ns(lease)) {
        warn_now(run);
        return;
    }
    if (run->told_ns != lease->safe_ns) {
        uint64_t early_ns = (lease->safe_ns - lease_kill_ns(lease)) / 2;
        (void)guard_set(&run->guard, run->child, lease->safe_ns - early_ns);
        run->told_ns = lease->safe_ns;
    }
}

/* The terminal's stop key stopped the command: the shell must get its turn, so
 * this process stops too. The guard goes on watching the clock. */
static void follow_stop(struct run *run)
{
    if (run->terminal == 0)
        return;
    tcsetpgrp(STDIN_FILENO, run->terminal);
    kill(getpid(), SIGSTOP);
    keep(run);
    if (tcgetpgrp(STDIN_FILENO) == run->terminal)
        tcsetpgrp(STDIN_FILENO, run->child);
    signal_group(run, SIGCONT);
}

static void pass_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            signal_group(run, (int)info.ssi_signo);
    }
}

/* Sleeps until a signal, an answer, or an instant of the lease. */
static void rest(struct run *run)
{
    const struct lease *lease = run->lease;
    uint64_t at_ns = lease_kill_ns(lease);
    struct pollfd ready[4] = {{.fd = run->signals, .events = POLLIN},
                              {.fd = run->timer, .events = POLLIN},
                              {.fd = -1},
                              {.fd = -1}};

    if (!run->warned) {
        uint64_t wake_ns = lease_wake_ns(lease);
        at_ns = lease_warn_ns(lease);
        at_ns = wake_ns < at_ns ? wake_ns : at_ns;
        if (lease->client.fd >= 0) {
            ready[2].fd = lease->client.fd;
            ready[2].events = client_events(&lease->client);
        }
    }
    if (run->tail != NULL)
        ready[3] = tail_poll(run->tail);
    guard_arm(run->timer, run->killed ? 0 : at_ns);
    if (poll(ready, 4, -1) > 0 && ready[3].revents != 0)
        tail_step(run->tail);
}

/* Until the command has ended; its status is left to be collected, so that its
 * number cannot be given to another process meanwhile. */
static void watch(struct run *run)
{
    for (;;) {
        siginfo_t info = {0};
        keep(run);
        waitid(P_PID, (id_t)run->child, &info,
               WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
        if (info.si_pid != 0 && info.si_code == CLD_STOPPED) {
            waitid(P_PID, (id_t)run->child, &info, WSTOPPED | WNOHANG);
            follow_stop(run);
        } else if (info.si_pid != 0) {
            return;
        }
        rest(run);
        pass_signals(run);
    }
}

/* Kills what is left of the group and collects it. Orphans of the group are
 * ours to collect, see PR_SET_CHILD_SUBREAPER. */
static int finish(struct run *run)
{
    uint64_t now_ns = client_now_ns();
    int status = 0;

    signal_group(run, SIGKILL);
    guard_stop(&run->guard);
    while (waitpid(run->child, &status, 0) < 0 && errno == EINTR)
        ;
    while (waitpid(-run->child, NULL, 0) > 0)
        ;
    if (run->tail != NULL)
        tail_end(run->tail);
    if (run->terminal != 0)
        tcsetpgrp(STDIN_FILENO, run->terminal);
    /* while this process was stopped, the guard did it */
    if (!run->warned && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
        now_ns >= lease_kill_ns(run->lease)) {
        fprintf(stderr, "holdfast %s: '%s' is lost; command killed\n",
                run->lease->program, run->lease->name);
        run->warned = true;
    }
    if (run->warned)
        return CLI_LOST;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int cannot_run(struct run *run, const char *name, int error)
{
    fprintf(stderr, "holdfast %s: cannot run '%s': %s\n", run->lease->program,
            name, strerror(error));
    guard_stop(&run->guard);
    if (run->child > 0)
        waitpid(run->child, NULL, 0);
    if (run->terminal != 0)
        tcsetpgrp(STDIN_FILENO, run->terminal);
    return error == ENOENT ? CLI_NO_COMMAND : CLI_CANNOT_RUN;
}

int run_command(struct lease *lease, char **command, struct tail *tail)
{
    struct run run = {
        .lease = lease, .tail = tail, .output = -1, .guard = {.pipe = -1}};
    int code;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    open_signals(&run);
    run.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    /* the guard first: it must not have the ends of the output's pipe */
    if (run.signals < 0 || run.timer < 0 || guard_start(&run.guard) != HF_OK ||
        (tail != NULL && tail_open(tail, &run.output) != HF_OK)) {
        fprintf(stderr, "holdfast %s: cannot watch the command: %s\n",
                lease->program, strerror(errno));
        guard_stop(&run.guard);
        return CLI_FAILED;
    }
    int error = start(&run, command);
    if (error != 0) {
        code = cannot_run(&run, command[0], error);
    } else {
        watch(&run);
        code = finish(&run);
    }
    close(run.timer);
    close(run.signals);
    return code;
}
