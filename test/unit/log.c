/* log.c - tests of the log: how lines look, who waits, what is counted. */
#include "holdfast/log.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/log.h"

#define NOW "2026-11-15T23:20:01.000007Z"

TEST(bad_arguments_are_refused)
{
    static const struct hf_log_opts bad[] = {
        {.level = (enum hf_log_level)4},
        {.form = (enum hf_log_form)2},
        {.overflow = (enum hf_log_overflow)2},
        {.buffer_bytes = HF_LOG_BUFFER_MAX + 1},
        {.rotate_keep = HF_LOG_ROTATE_KEEP_MAX + 1},
        {.fd = -1},
        {.rotate_bytes = 1}, /* without a path */
    };
    struct hf_log *log = NULL;

    CHECK_EQ(hf_log_open(NULL, NULL), HF_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_log_open(&log, &bad[i]), HF_INVALID);
    CHECK(log == NULL);
    hf_log_close(NULL);
    hf_log_write(NULL, HF_LOG_INFO, "nothing");
    hf_log_set_level(NULL, HF_LOG_INFO);
    CHECK_EQ(hf_log_flush(NULL, HF_NOW), HF_INVALID);
    begin((struct hf_log_opts){0});
    const char *none = NULL;
    hf_log_write(test.log, HF_LOG_INFO, none, 1);
    hf_log_write(test.log, (enum hf_log_level)4, "nothing");
    hf_log_set_level(test.log, (enum hf_log_level)4);
    check_text("");
    end();
}

/* ---- Lines. ---- */

TEST(a_text_line)
{
    begin((struct hf_log_opts){0});
    hf_log_write(test.log, HF_LOG_INFO, "listening on port %d", 7420);
    hf_log_write(test.log, HF_LOG_DEBUG, "a\nb\r\tc\x1b[0m");
    hf_log_write(test.log, HF_LOG_ERROR, "%s", "");
    check_text(NOW " info  listening on port 7420\n" NOW
                   " debug a b \tc [0m\n" NOW " error \n");
    end();
}

TEST(a_json_line)
{
    begin((struct hf_log_opts){.form = HF_LOG_JSON});
    hf_log_write(test.log, HF_LOG_WARN, "a \"b\" \\ %c\n\t", 1);
    hf_log_write(test.log, HF_LOG_INFO,
                 "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xff|\xc3|\xc0\x80|"
                 "\xed\xa0\x80|\xf4\x90\x80\x80|\xe0\x80\x80|\xf0\x80\x80\x80|"
                 "\xe2\x82");
#define BAD "\\ufffd"
    check_text("{\"time\":\"" NOW "\",\"level\":\"warn\",\"message\":"
               "\"a \\\"b\\\" \\\\ \\u0001\\u000a\\u0009\"}\n"
               "{\"time\":\"" NOW "\",\"level\":\"info\",\"message\":"
               "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|" BAD "|" BAD "|" BAD BAD
               "|" BAD BAD BAD "|" BAD BAD BAD BAD "|" BAD BAD BAD
               "|" BAD BAD BAD BAD "|" BAD BAD "\"}\n");
    end();
}

static void check_time(uint64_t second)
{
    time_t seconds = (time_t)second;
    char expected[64];
    struct tm t;

    CHECK(gmtime_r(&seconds, &t) != NULL);
    CHECK(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.", &t) == 20);
    sink_clear();
    __atomic_store_n(&test.clock.wall_us, second * 1000000 + 89,
                     __ATOMIC_RELEASE);
    hf_log_write(test.log, HF_LOG_INFO, "x");
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK(strncmp(test.text, expected, 20) == 0);
    CHECK(strncmp(test.text + 20, "000089Z info", 12) == 0);
}

TEST(times_are_those_of_the_calendar)
{
    static const uint64_t seconds[] = {
        0,          59,         86399,        86400,      951782399,
        951782400,  951868799,  951868800,    1709164800, 1709251200,
        4107542399, 4107542400, 253402300799, 1794784801};
    struct hf_random random;

    hf_random_init(&random, test_seed());
    begin((struct hf_log_opts){0});
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        check_time(seconds[i]);
    for (int i = 0; i < 500; i++)
        check_time(hf_random_below(&random, UINT64_C(253402300800)));
    sink_clear();
    /* Beyond the calendar. */
    __atomic_store_n(&test.clock.wall_us, UINT64_MAX, __ATOMIC_RELEASE);
    hf_log_write(test.log, HF_LOG_INFO, "x");
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK(strncmp(test.text, "9999-12-31T23:59:59.", 20) == 0);
    end();
}

TEST(lines_below_the_level_are_not_written)
{
    begin((struct hf_log_opts){.level = HF_LOG_WARN});
    hf_log_write(test.log, HF_LOG_DEBUG, "1");
    hf_log_write(test.log, HF_LOG_INFO, "2");
    hf_log_write(test.log, HF_LOG_WARN, "3");
    hf_log_set_level(test.log, HF_LOG_DEBUG);
    hf_log_write(test.log, HF_LOG_DEBUG, "4");
    hf_log_set_level(test.log, HF_LOG_ERROR);
    hf_log_write(test.log, HF_LOG_WARN, "5");
    check_text(NOW " warn  3\n" NOW " debug 4\n");
    CHECK_EQ(stats().written, 2);
    end();
}

TEST(a_long_line_is_cut_and_counted)
{
    static char message[2 * HF_LOG_LINE_MAX];

    for (int form = HF_LOG_TEXT; form <= HF_LOG_JSON; form++) {
        /* Of one size less than a line, as text, up to more than one. */
        begin((struct hf_log_opts){.form = (enum hf_log_form)form});
        uint64_t cut = 0;
        for (size_t len = HF_LOG_LINE_MAX - 100; len < HF_LOG_LINE_MAX + 50;
             len++) {
            memset(message, 'x', len);
            message[len] = '\0';
            sink_clear();
            hf_log_write(test.log, HF_LOG_INFO, "%s", message);
            CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
            size_t around = form == HF_LOG_TEXT ? 34 + 1 : 64 + 3;
            bool fits = len + around <= HF_LOG_LINE_MAX;
            cut += !fits;
            CHECK_EQ(test.len, fits ? len + around : HF_LOG_LINE_MAX);
            CHECK_EQ(stats().cut, cut);
            CHECK_EQ(count_lines(test.text, test.len), 1);
            if (form == HF_LOG_JSON)
                CHECK(strcmp(test.text + test.len - 3, "\"}\n") == 0);
        }
        /* No escape and no sign is cut in the middle. */
        for (size_t i = 0; i + 3 < sizeof message; i += 3)
            memcpy(message + i, "\n\xc3\xa4", 4);
        sink_clear();
        hf_log_write(test.log, HF_LOG_INFO, "%s", message);
        CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
        CHECK(test.len <= HF_LOG_LINE_MAX);
        CHECK_EQ(stats().cut, cut + 1);
        end();
    }
}

/* ---- Who waits. ---- */

TEST(a_sink_that_stalls_stops_nobody_and_drops_are_counted_and_told)
{
    char last[64];
    uint64_t logged = 1;

    begin((struct hf_log_opts){.buffer_bytes = 1});
    sink_set(true, false);
    hf_log_write(test.log, HF_LOG_INFO, "line %d", 0);
    sink_await_inside();
    /* All of these return, whatever the sink does. */
    while (stats().dropped < 1000)
        hf_log_write(test.log, HF_LOG_INFO, "line %llu",
                     (unsigned long long)logged++);
    CHECK_EQ(stats().written, 0);
    CHECK(stats().waiting_bytes > 16384);
    CHECK(stats().oldest_ns == 0);
    test_clock_advance(&test.clock, 5000000);
    CHECK_EQ(stats().oldest_ns, 5000000);
    sink_set(false, false);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().written, logged - 1000);
    CHECK_EQ(stats().waiting_bytes, 0);
    CHECK_EQ(stats().oldest_ns, HF_INSPECT_NONE);
    for (uint64_t i = 0; i < logged - 1000; i++) {
        snprintf(last, sizeof last, " line %llu\n", (unsigned long long)i);
        CHECK(strstr(test.text, last) != NULL);
    }
    CHECK_EQ(count_lines(test.text, test.len), logged - 1000 + 1);
    CHECK(strstr(test.text, "Z warn  1000 lines dropped\n") != NULL);
    sink_clear();
    hf_log_write(test.log, HF_LOG_INFO, "again");
    check_text("2026-11-15T23:20:01.005007Z info  again\n");
    end();
}

static void *log_much(void *argument)
{
    for (int i = 0; i < 2000; i++)
        hf_log_write(test.log, HF_LOG_INFO, "line %d", i);
    return argument;
}

TEST(with_wait_nothing_is_dropped)
{
    pthread_t thread;

    begin((struct hf_log_opts){.buffer_bytes = 1, .overflow = HF_LOG_WAIT});
    sink_set(true, false);
    CHECK_EQ(pthread_create(&thread, NULL, log_much, NULL), 0);
    test_clock_await_sleepers(&test.clock, 1); /* the writer is in the sink */
    CHECK_EQ(stats().dropped, 0);
    sink_set(false, false);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().written, 2000);
    CHECK_EQ(stats().dropped, 0);
    char *at = test.text;
    for (int i = 0; i < 2000; i++) {
        char line[64];
        snprintf(line, sizeof line, NOW " info  line %d\n", i);
        CHECK(strncmp(at, line, strlen(line)) == 0);
        at += strlen(line);
    }
    CHECK_EQ(*at, '\0');
    end();
}

static void *flush_late(void *argument)
{
    *(enum hf_status *)argument = hf_log_flush(test.log, 2000);
    return NULL;
}

TEST(a_flush_waits_no_longer_than_its_deadline)
{
    enum hf_status status = HF_OK;
    pthread_t thread;

    begin((struct hf_log_opts){0});
    sink_set(true, false);
    hf_log_write(test.log, HF_LOG_INFO, "x");
    sink_await_inside();
    CHECK(stats().waiting_bytes > 0); /* it is kept until it is written */
    CHECK_EQ(hf_log_flush(test.log, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_log_flush(test.log, 1000), HF_TIMEOUT);
    CHECK_EQ(pthread_create(&thread, NULL, flush_late, &status), 0);
    test_clock_await_sleepers(&test.clock, 1);
    test_clock_advance(&test.clock, 1000);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(status, HF_TIMEOUT);
    sink_set(false, false);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    end();
}

TEST(lines_are_written_without_being_flushed)
{
    const size_t len = strlen(NOW " info  1\n");

    begin((struct hf_log_opts){.delay_ns = 300});
    test_clock_await_sleepers(&test.clock, 1);
    hf_log_write(test.log, HF_LOG_INFO, "1"); /* wakes the writer */
    sink_await_bytes(len);
    test_clock_await_sleepers(&test.clock, 1);
    hf_log_write(test.log, HF_LOG_INFO, "2"); /* waits until it looks */
    CHECK_EQ(stats().written, 1);
    test_clock_advance(&test.clock, 300);
    sink_await_bytes(2 * len);
    test_clock_await_sleepers(&test.clock, 1);
    hf_log_write(test.log, HF_LOG_ERROR, "3"); /* does not wait */
    sink_await_bytes(3 * len);
    end();
}

/* ---- Order. ---- */

static void *log_one(void *argument)
{
    hf_log_write(test.log, HF_LOG_INFO, "%s", (const char *)argument);
    return NULL;
}

static void log_in_thread(char *text)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, log_one, text), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(lines_of_threads_are_ordered_by_time_and_outlive_the_threads)
{
    static char first[] = "first", third[] = "third", fifth[] = "fifth";

    begin((struct hf_log_opts){0});
    sink_set(true, false);
    hf_log_write(test.log, HF_LOG_INFO, "zeroth");
    sink_await_inside();
    log_in_thread(first);
    test_clock_advance(&test.clock, 1000);
    hf_log_write(test.log, HF_LOG_INFO, "second");
    test_clock_advance(&test.clock, 1000);
    log_in_thread(third);
    test_clock_advance(&test.clock, 1000);
    hf_log_write(test.log, HF_LOG_INFO, "fourth");
    test_clock_advance(&test.clock, 1000);
    log_in_thread(fifth);
    sink_set(false, false);
    check_text("2026-11-15T23:20:01.000007Z info  zeroth\n"
               "2026-11-15T23:20:01.000007Z info  first\n"
               "2026-11-15T23:20:01.000008Z info  second\n"
               "2026-11-15T23:20:01.000009Z info  third\n"
               "2026-11-15T23:20:01.000010Z info  fourth\n"
               "2026-11-15T23:20:01.000011Z info  fifth\n");
    end();
}

TEST(a_clock_that_is_set_back_holds_no_line_back)
{
    begin((struct hf_log_opts){0});
    __atomic_add_fetch(&test.clock.wall_us, 5000000, __ATOMIC_ACQ_REL);
    hf_log_write(test.log, HF_LOG_INFO, "tomorrow");
    __atomic_sub_fetch(&test.clock.wall_us, 5000000, __ATOMIC_ACQ_REL);
    hf_log_write(test.log, HF_LOG_INFO, "today");
    check_text("2026-11-15T23:20:06.000007Z info  tomorrow\n" NOW
               " info  today\n");
    end();
}

/* Lines of all lengths come to the circle's end in all ways. */
TEST(lines_of_any_length_come_through_a_small_buffer)
{
    static char message[HF_LOG_LINE_MAX];
    struct hf_random random;
    uint64_t seed = test_seed();

    begin((struct hf_log_opts){.buffer_bytes = 1});
    for (int round = 0; round < 100; round++) {
        size_t expected_len = 0;
        sink_clear();
        hf_random_init(&random, seed + (uint64_t)round);
        for (int i = 0; i < 50; i++) {
            size_t len = hf_random_below(&random, round % 2 ? 40 : 4000);
            memset(message, 'a' + i % 26, len);
            message[len] = '\0';
            hf_log_write(test.log, HF_LOG_INFO, "%s", message);
            CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
            CHECK_EQ(test.len, expected_len + 34 + len + 1);
            CHECK(strncmp(test.text + expected_len + 34, message, len) == 0);
            expected_len = test.len;
        }
    }
    CHECK_EQ(stats().written, 5000);
    end();
}

/* ---- Failure and figures. ---- */

TEST(lines_that_a_sink_refuses_are_counted_and_told)
{
    begin((struct hf_log_opts){0});
    sink_set(false, true);
    hf_log_write(test.log, HF_LOG_INFO, "1");
    hf_log_write(test.log, HF_LOG_INFO, "2");
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_IO);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK); /* told once */
    CHECK_EQ(stats().failed, 2);
    CHECK_EQ(stats().written, 0);
    sink_set(false, false);
    hf_log_write(test.log, HF_LOG_INFO, "3");
    check_text(NOW " info  3\n" NOW " warn  2 lines could not be written\n");
    CHECK_EQ(stats().written, 1);
    end();
}

TEST(without_memory_nothing_opens_and_a_line_is_dropped)
{
    struct hf_log_opts opts = {.sink = sink};
    uint64_t before = hf_memory_count();

    sink_clear();
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
    uint64_t needed = hf_memory_count() - before;
    end();
    for (uint64_t i = 0; i < needed; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_log_open(&test.log, &opts), HF_NOMEM);
        hf_memory_fail_never();
        CHECK(test.log == NULL);
    }
    begin((struct hf_log_opts){0});
    test_clock_await_sleepers(&test.clock, 1); /* nothing is told before */
    hf_memory_fail_after(0);
    hf_log_write(test.log, HF_LOG_INFO, "1");
    hf_memory_fail_never();
    CHECK_EQ(stats().dropped, 1);
    hf_log_write(test.log, HF_LOG_INFO, "2");
    check_text(NOW " info  2\n" NOW " warn  1 lines dropped\n");
    end();
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->name, "lines") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed_with_its_figures)
{
    struct hf_inspect_row row = {.name = ""};

    begin((struct hf_log_opts){.name = "lines", .buffer_bytes = 1});
    sink_set(true, false);
    hf_log_write(test.log, HF_LOG_INFO, "1");
    sink_await_inside();
    while (stats().dropped < 3)
        hf_log_write(test.log, HF_LOG_INFO, "2");
    test_clock_advance(&test.clock, 1000000);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_TEXT(row.kind, strlen(row.kind), "log");
    CHECK(row.depth > 16384);
    CHECK_EQ(row.rejected, 3);
    CHECK_EQ(row.oldest_ns, 1000000);
    sink_set(false, false);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.depth, 0);
    CHECK_EQ(row.oldest_ns, HF_INSPECT_NONE);
    CHECK(row.wait_p99_ns >= 1000000 && row.wait_p99_ns < 1250000);
    end();
}
