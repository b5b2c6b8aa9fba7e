/* log_file.c - tests of the log's files: rotation, a full disk, a crash. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "holdfast/log.h"
#include "support/log.h"
#include "support/threads.h"

#define HOUR_NS UINT64_C(3600000000000)

static char path[512];

static const char *name_file(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

/* The file's text, or NULL; the caller frees it. Number 0: without one. */
static char *read_text(unsigned number, size_t *len)
{
    char name[600];
    struct stat status;

    if (number == 0)
        snprintf(name, sizeof name, "%s", path);
    else
        snprintf(name, sizeof name, "%s.%u", path, number);
    int fd = open(name, O_RDONLY);
    if (fd < 0)
        return NULL;
    CHECK_EQ(fstat(fd, &status), 0);
    char *text = calloc(1, (size_t)status.st_size + 1);
    CHECK(text != NULL);
    *len = (size_t)read(fd, text, (size_t)status.st_size);
    close(fd);
    CHECK_EQ(*len, status.st_size);
    return text;
}

TEST(a_file_that_cannot_be_opened)
{
    static char longest[5000];
    struct hf_log_opts opts = {.path = name_file("none/log")};

    CHECK_EQ(hf_log_open(&test.log, &opts), HF_IO);
    opts.path = test_folder(); /* not a file */
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_IO);
    opts.path = "";
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_IO);
    memset(longest, 'x', sizeof longest - 1);
    opts.path = longest;
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_INVALID);
    CHECK(test.log == NULL);
}

TEST(lines_are_appended_and_close_writes_what_is_there)
{
    char *text;
    size_t len;

    for (int i = 0; i < 2; i++) {
        begin((struct hf_log_opts){.path = i == 0 ? name_file("log") : path,
                                   .delay_ns = HOUR_NS});
        for (int j = 0; j < 3; j++)
            hf_log_write(test.log, HF_LOG_INFO, "%d %d", i, j);
        end();
    }
    text = read_text(0, &len);
    CHECK(text != NULL);
    CHECK_EQ(count_lines(text, len), 6);
    CHECK(strstr(text, "info  0 2\n") < strstr(text, "info  1 0\n"));
    free(text);
}

TEST(lines_go_to_a_descriptor)
{
    char text[128] = "";
    int fds[2];

    CHECK_EQ(pipe(fds), 0);
    begin((struct hf_log_opts){.fd = fds[1]});
    hf_log_write(test.log, HF_LOG_INFO, "x");
    end();
    CHECK_EQ(read(fds[0], text, sizeof text), 36);
    CHECK_TEXT(text, strlen(text), "2026-11-15T23:20:01.000007Z info  x\n");
    close(fds[1]); /* it is still ours */
    CHECK_EQ(read(fds[0], text, sizeof text), 0);
    close(fds[0]);
}

/* ---- Rotation. ---- */

TEST(no_line_is_lost_across_rotation)
{
    uint64_t next = 0;

    begin((struct hf_log_opts){
        .path = name_file("log"), .rotate_bytes = 1000, .rotate_keep = 1000});
    for (int i = 0; i < 5000; i++) {
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
        if (i % 100 == 0)
            CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    }
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().written, 5000);
    CHECK_EQ(stats().dropped, 0);
    uint64_t rotated = stats().rotated;
    end();
    CHECK(rotated > 200 && rotated < 1000);
    for (unsigned i = (unsigned)rotated + 1; i-- > 0;) {
        size_t len = 0;
        char *text = read_text(i, &len);
        CHECK(text != NULL);
        CHECK(len > 0 && len <= 1000);
        for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
            char expected[32];
            snprintf(expected, sizeof expected, "info  line %llu\n",
                     (unsigned long long)next++);
            CHECK(strncmp(line + 28, expected, strlen(expected)) == 0);
        }
        free(text);
    }
    CHECK_EQ(next, 5000);
    size_t len;
    CHECK(read_text((unsigned)rotated + 1, &len) == NULL);
}

TEST(as_many_files_are_kept_as_asked_for)
{
    size_t len;

    begin((struct hf_log_opts){
        .path = name_file("log"), .rotate_bytes = 1, .rotate_keep = 2});
    for (int i = 0; i < 5; i++)
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().rotated, 4); /* a line that is too long has a file */
    end();
    for (unsigned i = 0; i < 3; i++) {
        char expected[16];
        char *text = read_text(i, &len);
        CHECK(text != NULL);
        snprintf(expected, sizeof expected, "line %u\n", 4 - i);
        CHECK(strstr(text, expected) != NULL);
        free(text);
    }
    CHECK(read_text(3, &len) == NULL);
}

TEST(a_rotation_that_fails_moves_nothing_and_loses_nothing)
{
    char blocked[600];
    size_t len = 0;

    begin((struct hf_log_opts){.path = name_file("log"), .rotate_bytes = 200});
    snprintf(blocked, sizeof blocked, "%s.new", path);
    CHECK_EQ(mkdir(blocked, 0700), 0);
    for (int i = 0; i < 100; i++)
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().rotated, 0);
    char *text = read_text(0, &len);
    CHECK(text != NULL);
    CHECK_EQ(count_lines(text, len), 100);
    free(text);
    CHECK_EQ(rmdir(blocked), 0);
    for (int i = 0; i < 10; i++)
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK(stats().rotated > 0);
    end();
}

/* ---- A disk that is full. ---- */

TEST(a_full_disk_is_counted_and_the_process_goes_on)
{
    begin((struct hf_log_opts){.path = "/dev/full"});
    for (int i = 0; i < 10; i++)
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_IO);
    CHECK_EQ(stats().failed, 10);
    CHECK_EQ(stats().written, 0);
    CHECK_EQ(stats().waiting_bytes, 0);
    hf_log_write(test.log, HF_LOG_INFO, "again");
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_IO);
    CHECK_EQ(stats().failed, 11);
    end();
}

/* In a child, since the limit is the process's. Its exit status: a line. */
static void fill_up(void)
{
    struct rlimit limit;
    struct hf_log *log = NULL;
    struct hf_log_stats figures;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 100; /* two lines and a half */
    setrlimit(RLIMIT_FSIZE, &limit);
    if (hf_log_open(&log, &(struct hf_log_opts){.path = path}) != HF_OK)
        _exit(__LINE__ & 0x7f);
    for (int i = 0; i < 5; i++)
        hf_log_write(log, HF_LOG_INFO, "line %d", i);
    if (hf_log_flush(log, HF_FOREVER) != HF_IO)
        _exit(__LINE__ & 0x7f);
    hf_log_stats(log, &figures);
    if (figures.written != 2 || figures.failed != 3)
        _exit(__LINE__ & 0x7f);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    hf_log_write(log, HF_LOG_INFO, "line %d", 5);
    hf_log_close(log);
    _exit(0);
}

TEST(half_a_line_is_ended_before_the_next)
{
    int status = -1;
    size_t len = 0;

    name_file("log");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        fill_up();
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    char *text = read_text(0, &len);
    CHECK(text != NULL);
    CHECK_EQ(count_lines(text, len), 5); /* two, a half, one, and what failed */
    CHECK_EQ(text[100], '\n');
    CHECK_EQ(text[101 + 26], 'Z'); /* a whole line, of either kind, follows */
    CHECK(strstr(text, "Z info  line 5\n") != NULL);
    CHECK(strstr(text, "Z warn  3 lines could not be written\n") != NULL);
    free(text);
}

/* ---- A crash. ---- */

#define CRASH_THREADS 4
#define CRASH_LINES   500

enum crash { CRASH_ABORT, CRASH_FAULT, CRASH_FAULT_IN_WORKER, CRASH_TOGETHER };

static void crash_log(void *context, int index)
{
    struct hf_log *log = context;

    for (int i = 0; i < CRASH_LINES; i++)
        hf_log_write(log, HF_LOG_INFO, "thread %d line %d", index, i);
}

/* A page that may not be touched: as a null pointer, but that no sanitizer
 * stops it before the signal. */
static void touch(void *context)
{
    void *page =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)context;
    if (page != MAP_FAILED)
        *(volatile char *)page = 1;
}

static void *crash_in_thread(void *context)
{
    pthread_barrier_wait(context);
    abort();
}

static void crash(enum crash how)
{
    struct rlimit none = {0};
    struct hf_log *log = NULL;
    /* The writer does not look by itself: it is the handler that writes. */
    struct hf_log_opts opts = {
        .path = path, .crash = true, .delay_ns = HOUR_NS};
    struct hf_thread worker;
    pthread_barrier_t barrier;
    pthread_t thread;

    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's would report what is wanted */
    if (freopen("/dev/null", "w", stderr) == NULL ||
        hf_log_open(&log, &opts) != HF_OK)
        _exit(0);
    test_threads(CRASH_THREADS, crash_log, log);
    crash_log(log, CRASH_THREADS);
    switch (how) {
    case CRASH_ABORT:
        abort();
    case CRASH_FAULT:
        touch(NULL);
        break;
    case CRASH_FAULT_IN_WORKER:
        if (hf_thread_start(&worker, "worker", touch, NULL) == HF_OK)
            hf_thread_join(&worker);
        break;
    case CRASH_TOGETHER:
        pthread_barrier_init(&barrier, NULL, 8);
        for (int i = 0; i < 7; i++)
            pthread_create(&thread, NULL, crash_in_thread, &barrier);
        crash_in_thread(&barrier);
        break;
    }
    _exit(0);
}

/* Every line of every thread is there, in order; the first ones, which the
 * writer may have been writing, perhaps twice. */
static void check_crashed(void)
{
    int next[CRASH_THREADS + 1] = {0};
    size_t len = 0;
    char *text = read_text(0, &len);

    CHECK(text != NULL);
    /* What has no end was being written when the process died. */
    for (char *line = text; strchr(line, '\n') != NULL;
         line = strchr(line, '\n') + 1) {
        int thread = -1;
        int number = -1;
        CHECK_EQ(
            sscanf(line + 28, "info  thread %d line %d\n", &thread, &number),
            2);
        CHECK(thread >= 0 && thread <= CRASH_THREADS);
        CHECK(number <= next[thread]);
        if (number == next[thread])
            next[thread]++;
    }
    for (int i = 0; i <= CRASH_THREADS; i++)
        CHECK_EQ(next[i], CRASH_LINES);
    free(text);
}

static void check_crash(enum crash how)
{
    for (int i = 0; i < 20; i++) {
        int status = 0;
        char name[16];
        snprintf(name, sizeof name, "log%d", i);
        name_file(name);
        fflush(NULL);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            crash(how);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(status != 0); /* as it would have ended without us */
        check_crashed();
    }
}

TEST(abort_writes_what_the_buffers_hold)
{
    check_crash(CRASH_ABORT);
}

TEST(a_bad_pointer_writes_what_the_buffers_hold)
{
    check_crash(CRASH_FAULT);
}

TEST(so_does_one_in_a_thread_of_the_librarys)
{
    check_crash(CRASH_FAULT_IN_WORKER);
}

TEST(threads_that_crash_together_wait_for_the_lines)
{
    check_crash(CRASH_TOGETHER);
}

/* The child has the buffers, but they are not its own. */
TEST(the_crash_of_a_child_writes_no_line_of_its_parent)
{
    int status = 0;
    size_t len = 0;

    begin((struct hf_log_opts){
        .path = name_file("log"), .crash = true, .delay_ns = HOUR_NS});
    hf_log_write(test.log, HF_LOG_INFO, "1");
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    hf_log_write(test.log, HF_LOG_INFO, "2");
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        abort();
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    end();
    char *text = read_text(0, &len);
    CHECK(text != NULL);
    CHECK_EQ(count_lines(text, len), 2);
    free(text);
}

TEST(more_logs_than_the_handler_knows_are_refused)
{
    struct hf_log *logs[HF_LOG_CRASH_MAX + 1] = {NULL};
    struct hf_log_opts opts = {.path = name_file("log"), .crash = true};

    for (unsigned i = 0; i < HF_LOG_CRASH_MAX; i++)
        CHECK_EQ(hf_log_open(&logs[i], &opts), HF_OK);
    CHECK_EQ(hf_log_open(&logs[HF_LOG_CRASH_MAX], &opts), HF_FULL);
    hf_log_close(logs[3]);
    CHECK_EQ(hf_log_open(&logs[3], &opts), HF_OK);
    for (unsigned i = 0; i < HF_LOG_CRASH_MAX; i++)
        hf_log_close(logs[i]);
}
