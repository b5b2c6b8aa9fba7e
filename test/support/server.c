/* server.c - a real server as a child of the test. */
#include "support/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/daemon.h"
#include "support/test.h"

#define READY_DEADLINE_MS 120000
#define END_DEADLINE_MS   60000
#define OUTPUT_PIPE_BYTES (1 << 20)
#define ARGS_MAX          32

bool test_is_sanitized(void)
{
    const char *kind = getenv("HOLDFAST_SAN");

    return kind != NULL && kind[0] != '\0';
}

static const char *program(void)
{
    const char *path = getenv("HOLDFAST");

    return path != NULL && path[0] != '\0' ? path : "build/holdfast";
}

/* Between fork and exec: nothing that another thread could have locked. */
static void become(const char *const *args, int output, uint64_t descriptors)
{
    struct rlimit limit = {descriptors, descriptors};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    test_daemon_detach(output);
    if (descriptors != 0 && setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(126);
    execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

/* Starts args[0]; `*output` is the reading end of all that it prints. */
static pid_t spawn(const char *const *args, uint64_t descriptors, int *output)
{
    int ends[2];

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, OUTPUT_PIPE_BYTES);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(args, ends[1], descriptors);
    close(ends[1]);
    CHECK(pid > 0);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *output = ends[0];
    return pid;
}

/* Reads what has been printed. False at the end of it. */
static bool listen_in(int output, struct hf_buf *said)
{
    for (;;) {
        if (hf_buf_reserve(said, 4096) != HF_OK)
            abort();
        ssize_t got = read(output, said->data + said->len, 4095);
        if (got > 0)
            said->len += (size_t)got;
        said->data[said->len] = '\0';
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (got < 0 && errno == EAGAIN)
            return true;
    }
}

static bool wait_output(int output, uint64_t end_ms)
{
    struct pollfd one = {.fd = output, .events = POLLIN};
    uint64_t now = test_now_ms();

    return now < end_ms && poll(&one, 1, (int)(end_ms - now)) > 0;
}

void test_server_launch(struct test_server *server,
                        const struct test_server_opts *opts)
{
    static const char *const always[] = {"serve", "--port", "0", "--dir"};
    const char *args[ARGS_MAX] = {program()};
    char faulty[PATH_MAX];
    char segment[32];
    char snapshot[32];
    int count = 1;

    if (opts->fault != NULL) {
        const char *name = strrchr(args[0], '/');
        int folder = name != NULL ? (int)(name - args[0]) : 1;
        snprintf(faulty, sizeof faulty, "%.*s/test/faulty", folder,
                 name != NULL ? args[0] : ".");
        args[0] = faulty;
        args[count++] = opts->fault;
    }
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        args[count++] = always[i];
    args[count++] = opts->dir != NULL ? opts->dir : test_folder();
    if (opts->durability != NULL) {
        args[count++] = "--durability";
        args[count++] = opts->durability;
    }
    if (opts->segment_bytes != 0) {
        snprintf(segment, sizeof segment, "%" PRIu64, opts->segment_bytes);
        args[count++] = "--segment-bytes";
        args[count++] = segment;
    }
    if (opts->snapshot_bytes != 0) {
        snprintf(snapshot, sizeof snapshot, "%" PRIu64, opts->snapshot_bytes);
        args[count++] = "--snapshot-bytes";
        args[count++] = snapshot;
    }
    for (int i = 0; opts->more != NULL && opts->more[i] != NULL; i++) {
        CHECK(count < ARGS_MAX - 1);
        args[count++] = opts->more[i];
    }
    args[count] = NULL;
    *server = (struct test_server){.pid = 0};
    server->pid = spawn(args, opts->descriptors, &server->output);
}

/* The port at the end of host:port in a line that begins with "ready". */
static uint16_t find_port(const char *said)
{
    const char *line = said;

    while (strncmp(line, "ready", 5) != 0) {
        line = strchr(line, '\n');
        if (line == NULL)
            return 0;
        line++;
    }
    const char *end = strchr(line, '\n');
    if (end == NULL)
        return 0;
    for (const char *at = line; at < end; at++) {
        char *stop;
        if (*at != ':' || at[1] < '0' || at[1] > '9')
            continue;
        unsigned long port = strtoul(at + 1, &stop, 10);
        if (port > 0 && port < 65536)
            return (uint16_t)port;
    }
    return 0;
}

bool test_server_ready(struct test_server *server)
{
    uint64_t end_ms = test_now_ms() + READY_DEADLINE_MS;

    for (;;) {
        bool more = listen_in(server->output, &server->said);
        server->port = find_port(server->said.data);
        if (server->port != 0)
            return true;
        if (!more || !wait_output(server->output, end_ms))
            return false;
    }
}

void test_server_start(struct test_server *server,
                       const struct test_server_opts *opts)
{
    test_server_launch(server, opts);
    if (!test_server_ready(server)) {
        char text[300];
        snprintf(text, sizeof text, "%s", test_server_said(server));
        test_server_kill(server);
        test_fail(__FILE__, __LINE__, "the server did not start: %s", text);
    }
}

void test_server_connect(const struct test_server *server,
                         struct test_wire *wire)
{
    if (test_wire_open(wire, server->port) != HF_OK)
        test_fail(__FILE__, __LINE__, "no connection to port %d: %s",
                  server->port, strerror(errno));
}

void test_server_begin(struct test_server *server, struct test_wire *wire,
                       const struct test_server_opts *opts)
{
    if (server->pid > 0)
        test_server_kill(server);
    test_wire_close(wire);
    test_server_start(server, opts);
    test_server_connect(server, wire);
}

void test_server_finish(struct test_server *server, struct test_wire *wire)
{
    test_wire_close(wire);
    CHECK_EQ(test_server_stop(server), 0);
}

bool test_server_signal(const struct test_server *server, int signal)
{
    return server->pid > 0 && kill(server->pid, signal) == 0;
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        count++;
    return count;
}

void test_server_shut(struct test_server *server)
{
    static const char said[] = "gate shut\n";
    size_t before = count_of(test_server_said(server), said);
    uint64_t end_ms = test_now_ms() + READY_DEADLINE_MS;

    CHECK(test_server_signal(server, SIGUSR2));
    while (count_of(test_server_said(server), said) == before)
        CHECK(wait_output(server->output, end_ms));
}

int test_server_end(struct test_server *server)
{
    uint64_t end_ms = test_now_ms() + END_DEADLINE_MS;

    if (server->pid <= 0)
        return -1;
    /* its end closes the pipe; one that will not end is ended */
    while (listen_in(server->output, &server->said)) {
        if (!wait_output(server->output, end_ms)) {
            test_server_signal(server, SIGKILL);
            break;
        }
    }
    int status = test_daemon_reap(server->pid);
    close(server->output);
    hf_buf_destroy(&server->said);
    *server = (struct test_server){.pid = 0, .output = -1};
    return status;
}

int test_server_stop(struct test_server *server)
{
    test_server_signal(server, SIGTERM);
    return test_server_end(server);
}

void test_server_kill(struct test_server *server)
{
    test_server_signal(server, SIGKILL);
    (void)test_server_end(server);
}

const char *test_server_said(struct test_server *server)
{
    (void)listen_in(server->output, &server->said);
    return server->said.data;
}

uint64_t test_server_memory_kb(const struct test_server *server)
{
    char path[64];
    char line[256];
    uint64_t kb = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)server->pid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtoull(line + 6, NULL, 10);
    }
    fclose(file);
    return kb;
}

int test_holdfast(struct hf_buf *said, const char *const *args)
{
    uint64_t end_ms = test_now_ms() + READY_DEADLINE_MS;
    const char *all[ARGS_MAX] = {program()};
    int output;

    for (int i = 0; args[i] != NULL && i < ARGS_MAX - 2; i++)
        all[i + 1] = args[i];
    pid_t pid = spawn(all, 0, &output);
    while (listen_in(output, said)) {
        if (!wait_output(output, end_ms)) {
            kill(pid, SIGKILL);
            break;
        }
    }
    close(output);
    return test_daemon_reap(pid);
}
