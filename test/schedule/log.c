/* log.c - threads that log and the writer, step by step.
 *
 * Each schedule opens a log in its one fiber, which starts the others.
 */
#include "holdfast/log.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "support/schedule.h"
#include "support/test.h"

#define THREADS 3

static struct {
    struct hf_log *log;
    int lines;      /* of each thread */
    unsigned width; /* of a message */
    bool flushes;   /* each thread does, after each line */
    bool waits;     /* each thread waits for its line to come by itself */
    bool refuses;   /* the sink does, now and then */
    struct hf_atomic_u32 next[THREADS]; /* the number after the last line */
    struct hf_atomic_u32 out_of_order;
    struct hf_atomic_u32 count; /* lines that the sink has, but the writer's */
    struct hf_atomic_u64 told;  /* drops that lines have told */
    struct hf_event came;
    struct hf_log_stats stats;
} test;

static uint64_t now_ns(void *context)
{
    (void)context;
    return schedule_now_ns();
}

/* A clock that is set now and then, also back. */
static uint64_t wall_us(void *context)
{
    (void)context;
    return UINT64_C(1794784801000000) + schedule_random(4);
}

static const struct hf_clock fickle = {.now_ns = now_ns, .wall_us = wall_us};

static void read_line(const char *line, size_t len)
{
    unsigned thread = 0;
    unsigned number = 0;
    unsigned long long dropped = 0;
    char text[64];

    snprintf(text, sizeof text, "%.*s", (int)(len < 60 ? len : 60), line);
    if (sscanf(text + 28, "info  %u.%u", &thread, &number) == 2) {
        /* A line that was dropped leaves a gap; none goes back. */
        uint32_t next = hf_u32_load(&test.next[thread], __ATOMIC_RELAXED);
        if (number < next)
            hf_u32_store(&test.out_of_order, 1, __ATOMIC_RELAXED);
        /* Release: for those who wait for it. */
        hf_u32_store(&test.next[thread], number + 1, __ATOMIC_RELEASE);
        hf_u32_add(&test.count, 1, __ATOMIC_RELAXED);
    } else if (sscanf(text + 28, "warn  %llu lines dropped", &dropped) == 1) {
        hf_u64_add(&test.told, dropped, __ATOMIC_RELAXED);
    }
}

static int sink(void *context, const void *data, size_t len)
{
    const char *at = data;
    const char *end = at + len;

    (void)context;
    if (test.refuses && schedule_random(4) == 0)
        return 1;
    hf_thread_pause();
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            schedule_wrong("half a line");
        read_line(at, (size_t)(stop - at));
        at = stop + 1;
    }
    hf_event_wake_all(&test.came);
    return 0;
}

struct wish {
    unsigned thread;
    uint32_t number;
};

static enum hf_status has_come(void *context)
{
    const struct wish *wish = context;
    /* Acquire: the sink has it. */
    return hf_u32_load(&test.next[wish->thread], __ATOMIC_ACQUIRE) >
                   wish->number
               ? HF_OK
               : HF_PENDING;
}

static void log_lines(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;

    for (int i = 0; i < test.lines; i++) {
        struct wish wish = {thread, (uint32_t)i};
        hf_log_write(test.log, HF_LOG_INFO, "%u.%d%*s", thread, i,
                     (int)test.width, "");
        if (test.flushes) {
            if (hf_log_flush(test.log, HF_FOREVER) != HF_OK)
                schedule_wrong("flush");
            if (has_come(&wish) != HF_OK)
                schedule_wrong("a flushed line is not there");
        }
        if (test.waits)
            (void)hf_event_until(&test.came, has_come, &wish, &fickle,
                                 HF_FOREVER);
    }
}

static void run(struct hf_log_opts opts)
{
    struct hf_thread threads[THREADS];

    opts.sink = sink;
    opts.clock = &fickle;
    if (hf_log_open(&test.log, &opts) != HF_OK)
        schedule_wrong("open");
    for (uintptr_t i = 0; i < THREADS; i++)
        (void)hf_thread_start(&threads[i], "logs", log_lines, (void *)i);
    for (int i = 0; i < THREADS; i++)
        hf_thread_join(&threads[i]);
    if (opts.overflow == HF_LOG_DROP && !test.flushes && !test.waits &&
        schedule_random(2)) {
        enum hf_status status = hf_log_flush(test.log, HF_FOREVER);
        if (status != HF_OK && !test.refuses)
            schedule_wrong("flush: %s", hf_status_text(status));
    }
    hf_log_stats(test.log, &test.stats);
    hf_log_close(test.log);
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    memset(&test, 0, sizeof test);
    test.lines = 3;
}

static bool check(void *context, FILE *explain)
{
    uint64_t logged = (uint64_t)test.lines * THREADS;
    uint64_t dropped = test.stats.dropped;

    (void)context;
    fprintf(explain, "%llu logged, %u came, %llu dropped, %llu told%s",
            (unsigned long long)logged, test.count.value,
            (unsigned long long)dropped, (unsigned long long)test.told.value,
            test.out_of_order.value ? ", out of order" : "");
    return test.count.value + dropped == logged && test.told.value == dropped &&
           !test.out_of_order.value;
}

/* ---- The writer sleeps, and is woken. ---- */

static void idle_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    test.waits = true;
    run((struct hf_log_opts){.delay_ns = 2000});
}

TEST(a_line_comes_by_itself_however_the_writer_falls_asleep)
{
    struct schedule_case c = {.name = "log idle",
                              .fibers = 1,
                              .setup = setup,
                              .body = idle_body,
                              .check = check};
    schedule_check(&c);
}

/* ---- Flush and close. ---- */

static void flush_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    test.flushes = true;
    run((struct hf_log_opts){.delay_ns = UINT64_MAX});
}

TEST(what_was_flushed_is_there)
{
    struct schedule_case c = {.name = "log flush",
                              .fibers = 1,
                              .setup = setup,
                              .body = flush_body,
                              .check = check};
    schedule_check(&c);
}

static void close_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    run((struct hf_log_opts){.delay_ns = UINT64_MAX});
}

TEST(close_writes_all_that_was_logged)
{
    struct schedule_case c = {.name = "log close",
                              .fibers = 1,
                              .setup = setup,
                              .body = close_body,
                              .check = check};
    schedule_check(&c);
}

/* ---- Buffers that are full. ---- */

static void drop_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    test.lines = 12;
    test.width = 4000;
    run((struct hf_log_opts){.buffer_bytes = 1, .delay_ns = 2000});
}

TEST(each_line_is_written_or_counted_as_dropped)
{
    struct schedule_case c = {.name = "log drop",
                              .fibers = 1,
                              .setup = setup,
                              .body = drop_body,
                              .check = check,
                              .schedules = 3000};
    schedule_check(&c);
}

static void wait_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    test.lines = 12;
    test.width = 4000;
    run((struct hf_log_opts){
        .buffer_bytes = 1, .overflow = HF_LOG_WAIT, .delay_ns = UINT64_MAX});
}

static bool wait_check(void *context, FILE *explain)
{
    return check(context, explain) && test.stats.dropped == 0;
}

TEST(who_waits_for_room_gets_it_and_loses_nothing)
{
    struct schedule_case c = {.name = "log wait",
                              .fibers = 1,
                              .setup = setup,
                              .body = wait_body,
                              .check = wait_check,
                              .schedules = 3000};
    schedule_check(&c);
}

/* ---- A sink that refuses. ---- */

static void refuse_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    test.refuses = true;
    test.lines = 6;
    run((struct hf_log_opts){.delay_ns = 500});
}

static bool refuse_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u came", test.count.value);
    return test.count.value <= (uint32_t)test.lines * THREADS &&
           !test.out_of_order.value && test.stats.dropped == 0;
}

TEST(a_sink_that_refuses_stops_nobody)
{
    struct schedule_case c = {.name = "log refuse",
                              .fibers = 1,
                              .setup = setup,
                              .body = refuse_body,
                              .check = refuse_check};
    schedule_check(&c);
}
