/* report.c - tests of the server's log: how often a line is written, with a
 * clock that the test moves. What the lines say is in test/system/log.c. */
#include "server/report.h"

#include "server/watch.h"
#include "support/log.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS     UINT64_C(1000000)

static struct report report;

static void open_report(void)
{
    begin((struct hf_log_opts){0});
    report_init(&report, test.log, &test.clock.clock);
}

/* The lines since the last call, without their times. */
static void check_lines(const char *expected)
{
    char got[2048] = "";
    size_t len = 0;

    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    for (const char *at = test.len == 0 ? "" : test.text; *at != '\0';) {
        const char *line = strchr(at, ' ') + 1;
        const char *line_end = strchr(line, '\n') + 1;
        CHECK(len + (size_t)(line_end - line) < sizeof got);
        memcpy(got + len, line, (size_t)(line_end - line));
        len += (size_t)(line_end - line);
        at = line_end;
    }
    CHECK_TEXT(got, len, expected);
    sink_clear();
}

TEST(a_slow_disk_is_told_once_a_minute_however_often_it_is_slow)
{
    open_report();
    for (int i = 0; i < 1000; i++) { /* for 59 seconds */
        report_slow(&report, 2 * MS_NS, false);
        test_clock_advance(&test.clock, 59 * MS_NS);
        report_slow(&report, (uint64_t)(i % 10 + 3) * MS_NS, true);
        report_tend_disk(&report);
    }
    check_lines("warn  the disk is slow waiting_ms=2 slow_commits=0 "
                "max_ms=2\n");
    test_clock_advance(&test.clock, SECOND_NS);
    report_slow(&report, 2 * MS_NS, false);
    check_lines("warn  the disk is slow waiting_ms=2 slow_commits=1000 "
                "max_ms=12\n");
    end();
}

TEST(a_commit_that_hangs_is_told_again)
{
    open_report();
    for (uint64_t i = 0; i <= 600; i++) { /* every 100 ms, for a minute */
        report_slow(&report, i * 100 * MS_NS, false);
        report_tend_disk(&report);
        test_clock_advance(&test.clock, 100 * MS_NS);
    }
    check_lines("warn  the disk is slow waiting_ms=0 slow_commits=0 max_ms=0\n"
                "warn  the disk is slow waiting_ms=60000 slow_commits=0 "
                "max_ms=60000\n");
    end();
}

TEST(a_disk_is_well_again_after_two_seconds_and_only_if_it_was_told_slow)
{
    open_report();
    report_tend_disk(&report);
    report_slow(&report, 2 * MS_NS, false);
    test_clock_advance(&test.clock, 5 * MS_NS);
    report_slow(&report, 7 * MS_NS, true);
    check_lines("warn  the disk is slow waiting_ms=2 slow_commits=0 "
                "max_ms=2\n");
    test_clock_advance(&test.clock, 2 * SECOND_NS - 1);
    report_tend_disk(&report);
    check_lines("");
    test_clock_advance(&test.clock, 1);
    report_tend_disk(&report);
    check_lines("info  the disk is well again slow_commits=1 max_ms=7 "
                "after_ms=5\n");
    /* slow within the same minute: not told, so its end is not either */
    report_slow(&report, 2 * MS_NS, false);
    report_slow(&report, 3 * MS_NS, true);
    test_clock_advance(&test.clock, 3 * SECOND_NS);
    report_tend_disk(&report);
    report_tend_disk(&report);
    check_lines("");
    end();
}

TEST(refusals_for_want_of_memory_are_counted_while_they_are_hidden)
{
    open_report();
    for (int i = 0; i < 100; i++)
        report_no_memory(&report, NULL, 77);
    test_clock_advance(&test.clock, 10 * SECOND_NS);
    report_no_memory(&report, NULL, 78);
    report_behind(&report, NULL);
    report_behind(&report, NULL);
    check_lines("warn  request refused, no memory engine_bytes=77\n"
                "warn  request refused, no memory hidden=99 engine_bytes=78\n"
                "warn  request refused, the disk does not keep up\n");
    end();
}

static void tell_of_a_client(int what)
{
    if (what == 0)
        report_refused(&report, NULL, 5);
    else if (what == 1)
        report_misbehaved(&report, NULL, "silence", NULL);
    else
        report_denied(&report, NULL, "FLUSHALL");
}

TEST(of_clients_ten_are_told_at_once_and_then_one_in_ten_seconds)
{
    static const char *const messages[] = {"client refused", "client closed",
                                           "admin command denied"};
    static const char *const facts[] = {"maxclients=5", "why=silence",
                                        "command=FLUSHALL"};
    char line[128];
    char lines[2048];

    open_report();
    for (int what = 0; what < 3; what++) {
        size_t len = 0;
        for (int i = 0; i < 100; i++)
            tell_of_a_client(what);
        snprintf(line, sizeof line, "warn  %s %s\n", messages[what],
                 facts[what]);
        for (int i = 0; i < 10; i++)
            len +=
                (size_t)snprintf(lines + len, sizeof lines - len, "%s", line);
        check_lines(lines);
        test_clock_advance(&test.clock, 10 * SECOND_NS - 1);
        tell_of_a_client(what);
        check_lines("");
        test_clock_advance(&test.clock, 1);
        tell_of_a_client(what);
        tell_of_a_client(what);
        snprintf(line, sizeof line, "warn  %s hidden=91 %s\n", messages[what],
                 facts[what]);
        check_lines(line);
    }
    end();
}

TEST(little_room_is_told_once_an_hour_and_room_with_some_to_spare)
{
    struct watch watch = {.log = NULL};
    const struct hf_clock *clock;

    open_report();
    clock = &test.clock.clock;
    watch = (struct watch){.log = test.log, .dir = "d", .clock = clock};
    watch_set(&watch, 800);
    watch_judge(&watch, 800);
    check_lines("");
    CHECK_EQ(watch_free_bytes(&watch), 800);
    for (int i = 0; i < 360; i++) {             /* an hour, every ten seconds */
        watch_judge(&watch, i % 2 ? 899 : 799); /* at the mark: no quarrel */
        test_clock_advance(&test.clock, 10 * SECOND_NS);
    }
    check_lines("warn  little room on the disk dir=d free_bytes=799 "
                "warn_bytes=800\n");
    watch_judge(&watch, 5);
    check_lines("warn  little room on the disk dir=d free_bytes=5 "
                "warn_bytes=800\n");
    watch_judge(&watch, 900);
    watch_judge(&watch, 900);
    check_lines("info  room on the disk again dir=d free_bytes=900 "
                "warn_bytes=800\n");
    watch_judge(&watch, 1); /* anew: at once */
    check_lines("warn  little room on the disk dir=d free_bytes=1 "
                "warn_bytes=800\n");
    watch_set(&watch, 0);
    watch_judge(&watch, 0);
    check_lines("info  room on the disk again dir=d free_bytes=0 "
                "warn_bytes=0\n");
    end();
}

TEST(a_watch_looks_at_once_and_ends_when_closed)
{
    struct watch watch;

    begin((struct hf_log_opts){0});
    CHECK_EQ(watch_open(&watch, test.log, "/", UINT64_MAX, hf_clock_system()),
             HF_OK);
    while (watch_free_bytes(&watch) == WATCH_UNKNOWN)
        ;
    watch_close(&watch);
    watch_close(&watch);
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK(strstr(test.text, "little room on the disk dir=/ ") != NULL);
    end();
}
