/* daemon.c - servers of others as children of the test. */
#include "support/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "holdfast/clock.h"
#include "support/test.h"

#define PORT_FIRST 20000 /* below what the system gives to clients */
#define PORT_COUNT 12000
#define PAUSE_NS   2000000
#define ENDS_MAX   4

static char folder[PATH_MAX];
static pid_t folder_owner; /* a fork must not remove it */
static void (*ends[ENDS_MAX])(void);
static int end_count;

static void clean_up(void)
{
    if (getpid() != folder_owner)
        return;
    for (int i = 0; i < end_count; i++)
        ends[i]();
    test_remove(folder);
}

/* May everybody pass through this folder and all above it? */
static bool is_open_to_all(const char *path)
{
    char rest[PATH_MAX];
    struct stat info;

    if (realpath(path, rest) == NULL)
        return false;
    for (;;) {
        char *slash = strrchr(rest, '/');
        if (stat(rest, &info) != 0 || (info.st_mode & S_IXOTH) == 0)
            return false;
        if (slash == NULL || slash == rest)
            return true;
        *slash = '\0';
    }
}

const char *test_daemon_folder(void)
{
    const char *root = getenv("TMPDIR");

    if (folder[0] != '\0')
        return folder;
    if (root == NULL || (geteuid() == 0 && !is_open_to_all(root)))
        root = "/tmp";
    snprintf(folder, sizeof folder, "%s/holdfast-daemon-XXXXXX", root);
    if (mkdtemp(folder) == NULL || chmod(folder, 0711) != 0) {
        folder[0] = '\0';
        test_fail(__FILE__, __LINE__, "no folder below %s", root);
    }
    folder_owner = getpid();
    atexit(clean_up);
    return folder;
}

void test_daemon_at_exit(void (*end)(void))
{
    (void)test_daemon_folder();
    for (int i = 0; i < end_count; i++) {
        if (ends[i] == end)
            return;
    }
    CHECK(end_count < ENDS_MAX);
    ends[end_count++] = end;
}

/* What is taken is kept by a datagram socket of the same number for as long as
 * the program runs: another test that looks for a port passes it by, also while
 * the daemon is down. */
uint16_t test_daemon_port(void)
{
    struct hf_random random;

    hf_random_init(&random, hf_clock_now_ns(hf_clock_system()) ^
                                (uint64_t)getpid() << 32);
    for (int tries = 0; tries < 1000; tries++) {
        uint16_t port =
            (uint16_t)(PORT_FIRST + hf_random_below(&random, PORT_COUNT));
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr.s_addr =
                                          htonl(INADDR_LOOPBACK)};
        int mark = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool ours =
            bind(mark, (struct sockaddr *)&address, sizeof address) == 0 &&
            bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (ours)
            return port;
        close(mark);
    }
    test_fail(__FILE__, __LINE__, "no free port");
}

struct test_daemon_user test_daemon_user(const char *name)
{
    struct test_daemon_user user = {.other = geteuid() == 0};

    if (user.other) {
        struct passwd *entry = getpwnam(name);
        if (entry == NULL)
            test_fail(__FILE__, __LINE__, "there is no user %s", name);
        user.uid = entry->pw_uid;
        user.gid = entry->pw_gid;
    }
    return user;
}

void test_daemon_detach(int output)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 ||
        dup2(output, 2) < 0)
        _exit(126);
}

/* Between fork and exec: nothing that another thread could have locked. The
 * signal for the parent's death comes last: a change of user takes it off. */
static void become(const char *const *args, int output,
                   struct test_daemon_user user, pid_t parent)
{
    test_daemon_detach(output);
    if (user.other && (setgroups(0, NULL) != 0 || setgid(user.gid) != 0 ||
                       setuid(user.uid) != 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

pid_t test_daemon_spawn(const char *const *args, const char *log,
                        struct test_daemon_user user)
{
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    pid_t parent = getpid();

    CHECK(output >= 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(args, output, user, parent);
    close(output);
    CHECK(pid > 0);
    return pid;
}

int test_daemon_reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int test_daemon_run(const char *const *args, const char *log,
                    struct test_daemon_user user)
{
    return test_daemon_reap(test_daemon_spawn(args, log, user));
}

bool test_daemon_alive(pid_t pid)
{
    return pid > 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

void test_daemon_end(pid_t pid, int signal)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, DAEMON_DEADLINE_MS);

    if (pid <= 0)
        return;
    kill(pid, signal);
    while (test_daemon_alive(pid)) {
        if (hf_clock_now_ns(hf_clock_system()) >= end_ns)
            kill(pid, SIGKILL);
        test_daemon_pause();
    }
}

void test_daemon_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void test_daemon_fail(const char *what, const char *log)
{
    char text[2000];
    size_t len = 0;
    FILE *file = fopen(log, "re");

    if (file != NULL) {
        if (fseek(file, -(long)(sizeof text - 1), SEEK_END) != 0)
            rewind(file);
        len = fread(text, 1, sizeof text - 1, file);
        fclose(file);
    }
    text[len] = '\0';
    test_fail(__FILE__, __LINE__, "%s: %s", what, text);
}
