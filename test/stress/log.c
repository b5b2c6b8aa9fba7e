/* log.c - many threads at one log, into files.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/log.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS   8
#define FILES_MAX 1001

static int scaled(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static struct {
    struct hf_log *log;
    int lines; /* of each thread */
    int flush_every;
    struct hf_atomic_u64 errors;
    struct hf_atomic_u32 released; /* the sink goes on */
} test;

static void log_body(void *context, int index)
{
    (void)context;
    for (int i = 0; i < test.lines; i++) {
        hf_log_write(test.log, HF_LOG_INFO, "%d.%d of some length", index, i);
        if (test.flush_every > 0 && i % test.flush_every == index &&
            hf_log_flush(test.log, HF_FOREVER) != HF_OK)
            hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
    }
}

/* ---- What is in the files. ---- */

struct found {
    uint64_t lines;
    uint64_t told; /* drops */
    int next[THREADS];
};

/* Lines of each thread in order; without gaps if none may be lost. */
static void read_file(const char *path, struct found *found, bool gaps)
{
    char line[HF_LOG_LINE_MAX];
    FILE *file = fopen(path, "r");

    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        int thread = -1;
        int number = -1;
        unsigned long long told = 0;
        CHECK(line[strlen(line) - 1] == '\n');
        if (sscanf(line + 28, "warn  %llu lines dropped", &told) == 1) {
            found->told += told;
            continue;
        }
        CHECK_EQ(
            sscanf(line + 28, "info  %d.%d of some length", &thread, &number),
            2);
        CHECK(thread >= 0 && thread < THREADS);
        CHECK(gaps ? number >= found->next[thread]
                   : number == found->next[thread]);
        found->next[thread] = number + 1;
        found->lines++;
    }
    fclose(file);
}

static struct hf_log_stats finish(void)
{
    struct hf_log_stats stats;

    (void)hf_log_flush(test.log, HF_FOREVER);
    hf_log_stats(test.log, &stats);
    hf_log_close(test.log);
    CHECK_EQ(test.errors.value, 0);
    CHECK_EQ(stats.failed, 0);
    return stats;
}

TEST(with_wait_every_line_is_there_in_order_across_rotation)
{
    char path[512];
    struct found found = {0};
    struct hf_log_opts opts = {.path = path,
                               .overflow = HF_LOG_WAIT,
                               .buffer_bytes = 1,
                               .rotate_bytes = 256 << 10,
                               .rotate_keep = 1000};

    memset(&test, 0, sizeof test);
    snprintf(path, sizeof path, "%s/log", test_folder());
    test.lines = scaled(40000);
    test.flush_every = 1000;
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    test_threads(THREADS, log_body, NULL);
    struct hf_log_stats stats = finish();
    CHECK_EQ(stats.written, (uint64_t)test.lines * THREADS);
    CHECK_EQ(stats.dropped, 0);
    CHECK(stats.rotated > 0 && stats.rotated < FILES_MAX);
    for (uint64_t i = stats.rotated + 1; i-- > 0;) {
        char name[600];
        snprintf(name, sizeof name, i == 0 ? "%s" : "%s.%llu", path,
                 (unsigned long long)i);
        read_file(name, &found, false);
    }
    CHECK_EQ(found.lines, (uint64_t)test.lines * THREADS);
}

TEST(with_drop_each_line_is_there_or_counted_and_told)
{
    char path[512];
    struct found found = {0};
    struct hf_log_opts opts = {.path = path, .buffer_bytes = 1};

    memset(&test, 0, sizeof test);
    snprintf(path, sizeof path, "%s/log", test_folder());
    test.lines = scaled(100000);
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    test_threads(THREADS, log_body, NULL);
    struct hf_log_stats stats = finish();
    read_file(path, &found, true);
    printf("%llu written, %llu dropped\n", (unsigned long long)stats.written,
           (unsigned long long)stats.dropped);
    CHECK_EQ(stats.written + stats.dropped, (uint64_t)test.lines * THREADS);
    CHECK_EQ(found.lines, stats.written);
    CHECK_EQ(found.told, stats.dropped);
}

/* Threads come and go; a later one has the buffer of an earlier one. */
TEST(lines_of_threads_that_have_ended_are_there)
{
    char path[512];
    struct hf_log_opts opts = {.path = path};
    const int rounds = scaled(400);

    memset(&test, 0, sizeof test);
    snprintf(path, sizeof path, "%s/log", test_folder());
    test.lines = 5;
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    for (int i = 0; i < rounds; i++)
        test_threads(THREADS, log_body, NULL);
    struct hf_log_stats stats = finish();
    CHECK_EQ(stats.written, (uint64_t)rounds * 5 * THREADS);
}

/* ---- A disk that stalls. ---- */

static int stalled_sink(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    while (hf_u32_load(&test.released, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    return 0;
}

/* All threads log all their lines while the sink holds the first batch: it is
 * let go after they have ended, so one that waited for it would hang. */
TEST(nobody_waits_for_a_disk_that_stalls)
{
    struct hf_log_opts opts = {.sink = stalled_sink};

    memset(&test, 0, sizeof test);
    test.lines = scaled(50000);
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    test_threads(THREADS, log_body, NULL);
    hf_u32_store(&test.released, 1, __ATOMIC_RELEASE);
    struct hf_log_stats stats = finish();
    CHECK(stats.dropped > 0);
    CHECK_EQ(stats.written + stats.dropped, (uint64_t)test.lines * THREADS);
}

/* ---- Cost: printed, not judged. ---- */

TEST(what_a_line_costs_its_caller)
{
    struct hf_log_opts opts = {.path = "/dev/null",
                               .buffer_bytes = HF_LOG_BUFFER_MAX};
    const struct hf_clock *clock = hf_clock_system();

    memset(&test, 0, sizeof test);
    test.lines = scaled(400000);
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    uint64_t start_ns = hf_clock_now_ns(clock);
    log_body(NULL, 0);
    uint64_t ns = hf_clock_now_ns(clock) - start_ns;
    struct hf_log_stats stats = finish();
    printf("%.0f ns a line, %llu dropped\n", (double)ns / test.lines,
           (unsigned long long)stats.dropped);
    CHECK_EQ(stats.written + stats.dropped, test.lines);
}
