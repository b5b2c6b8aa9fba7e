/* cache_caffeine.c - Caffeine, the cache that others are measured by. It is a
 * Java program of its own, which Java compiles from the source beside this file
 * when it starts; it warms up for two seconds, and then for as long as it takes
 * to find how many operations fill a run. The first thread of a run tells it
 * what to do and waits: the time is from that to the answer, with the order of
 * keys, the threads and the sums as on all sides. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/keep/cache.h"

#define JAR    "/usr/share/java/caffeine.jar"
#define SOURCE "bench/keep/peers/CacheCaffeine.java"
/* At least as many for each question, so that asking does not count. */
#define OPERATIONS_MIN 200000u

struct child {
    pid_t pid;
    FILE *to;
    FILE *from;
    char path[64]; /* of the order of keys */
};

static void write_stream(char *path)
{
    int file = mkstemp(path);
    size_t bytes = CACHE_STREAM * sizeof(uint32_t);

    if (file < 0 || write(file, cache_stream(), bytes) != (ssize_t)bytes)
        contest_fail("the order of keys cannot be written");
    close(file);
}

static void *open_child(const struct contest_work *work)
{
    static const char *const shapes[] = {"get", "mixed", "load"};
    struct child *child = contest_alloc(sizeof *child);
    char room[32], keys[32], line[64];
    int to[2], from[2];

    snprintf(child->path, sizeof child->path, "/tmp/holdfast-stream.XXXXXX");
    write_stream(child->path);
    snprintf(room, sizeof room, "%llu", (unsigned long long)work->size);
    snprintf(keys, sizeof keys, "%u", CACHE_KEYS);
    if (pipe(to) != 0 || pipe(from) != 0 || (child->pid = fork()) < 0)
        contest_fail("no process");
    if (child->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        execlp("java", "java", "-cp", JAR, SOURCE, room, keys, child->path,
               shapes[work->shape], (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    child->to = fdopen(to[1], "w");
    child->from = fdopen(from[0], "r");
    if (child->to == NULL || child->from == NULL ||
        fgets(line, sizeof line, child->from) == NULL ||
        strcmp(line, "ready\n") != 0)
        contest_fail("java or " JAR " is missing, or " SOURCE " failed");
    return child;
}

static void close_child(void *self)
{
    struct child *child = self;

    fclose(child->to); /* the end of its input ends it */
    fclose(child->from);
    waitpid(child->pid, NULL, 0);
    unlink(child->path);
    free(child);
}

static void run(struct contest_thread *thread)
{
    struct child *child = thread->self;
    char line[64];

    if (thread->index != 0)
        return;
    thread->done =
        thread->total < OPERATIONS_MIN ? OPERATIONS_MIN : thread->total;
    fprintf(child->to, "%u %llu\n", thread->work->threads,
            (unsigned long long)thread->done);
    fflush(child->to);
    if (fgets(line, sizeof line, child->from) == NULL)
        contest_fail("java has ended");
    thread->taken = strtoull(line, NULL, 10);
}

/* What the values sum up to, outside the time. */
static void check(struct contest_thread *thread)
{
    const uint32_t *stream = thread->own;

    for (uint64_t i = 0; i < thread->done; i++)
        thread->put += stream[i & (CACHE_STREAM - 1)] + UINT64_C(1);
}

const struct contest_side cache_caffeine = {
    .name = "caffeine",
    .open = open_child,
    .close = close_child,
    .run = run,
    .enter = cache_enter,
    .check = check,
};
