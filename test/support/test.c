/* test.c - registers, runs and counts the tests of one program. */
#include "support/test.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/thread.h"

#define TESTS_MAX 512

static struct {
    const char *name;
    void (*body)(void);
} tests[TESTS_MAX];
static int test_count;
static const char *running;
static jmp_buf escape;
static bool one_thread;
static char folder[PATH_MAX];

void test_register(const char *name, void (*body)(void))
{
    if (test_count == TESTS_MAX)
        abort();
    tests[test_count].name = name;
    tests[test_count++].body = body;
}

void test_one_thread(void)
{
    one_thread = true;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("%s:%d: %s: ", file, line, running);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" (seed %llu)\n", (unsigned long long)test_seed());
    fflush(stdout);
    longjmp(escape, 1);
}

void test_check_text(const char *file, int line, const char *found, size_t len,
                     const char *expected)
{
    if (!hf_bytes_equal(hf_bytes(found, len), hf_bytes_text(expected)))
        test_fail(file, line, "expected \"%s\", got \"%.*s\"", expected,
                  (int)len, found);
}

uint64_t test_seed(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = 20261115;

    if (text != NULL)
        (void)hf_parse_u64(hf_bytes_text(text), &seed);
    return seed;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void test_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_folder(void)
{
    if (folder[0] != '\0')
        test_remove(folder);
    folder[0] = '\0';
}

const char *test_folder(void)
{
    const char *root = getenv("TMPDIR");

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/holdfast-test-XXXXXX",
                 root != NULL ? root : "/tmp");
        if (mkdtemp(folder) == NULL)
            test_fail(__FILE__, __LINE__, "mkdtemp(%s) failed", folder);
    }
    return folder;
}

void test_folder_in_memory(void)
{
    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof folder, "/dev/shm/holdfast-test-XXXXXX");
    if (mkdtemp(folder) == NULL)
        folder[0] = '\0'; /* then as ever */
}

/* tools/test ends a program that takes too long: this says in which test. */
static void tell_running(int number)
{
    static const char before[] = "stopped in ";

    if (running != NULL &&
        write(STDOUT_FILENO, before, sizeof before - 1) > 0 &&
        write(STDOUT_FILENO, running, strlen(running)) > 0)
        (void)!write(STDOUT_FILENO, "\n", 1);
    signal(number, SIG_DFL);
    raise(number);
}

/* A function of its own, so that longjmp cannot clobber the loop's locals. */
static bool run_one(int index)
{
    volatile bool ended = false;

    running = tests[index].name;
    if (setjmp(escape) == 0) {
        tests[index].body();
        ended = true;
    }
    remove_folder();
    return ended;
}

int main(int argc, char **argv)
{
    int passed = 0;
    int failed = 0;

    signal(SIGTERM, tell_running);
    if (one_thread)
        hf_thread_fail_after(0);
    for (int i = 0; i < test_count; i++) {
        if (argc > 1 && strstr(tests[i].name, argv[1]) == NULL)
            continue;
        if (run_one(i))
            passed++;
        else
            failed++;
    }
    printf("%s: %d passed, %d failed\n", argv[0], passed, failed);
    fflush(stdout); /* before a leak report can end the process */
    return failed != 0;
}
