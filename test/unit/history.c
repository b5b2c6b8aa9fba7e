/* history.c - recording, files, the report and its story. */
#include "history/history.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/clock.h"
#include "support/history.h"
#include "support/test.h"
#include "support/told.h"

static const char *path_of(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static const char *write_text(const char *text)
{
    const char *path = path_of("text");
    FILE *file = fopen(path, "we");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
    return path;
}

static void read_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");

    CHECK(file != NULL);
    size_t len = fread(out, 1, size - 1, file);
    out[len] = '\0';
    CHECK_EQ(fclose(file), 0);
}

static const char every_event[] = "holdfast history 1\n"
                                  "0 0 start\n"
                                  "5 1 open\n"
                                  "7 1 call 1 LOCK a%20b%25 OWNER %\n"
                                  "7 1 arrived 1\n"
                                  "8 1 sent 1\n"
                                  "9 1 answer 1 +%0D%0A\n"
                                  "9 1 closed\n"
                                  "9 1 gone\n"
                                  "10 0 crash\n"
                                  "10 0 date\n"
                                  "18446744073709551615 0 stop\n";

TEST(a_file_is_read_and_written_as_it_was)
{
    char error[HISTORY_ERROR_MAX];
    char text[sizeof every_event + 10];
    struct history *history;

    CHECK_EQ(history_load(&history, write_text(every_event), error), HF_OK);
    CHECK_EQ(test_save_history(history, path_of("again"), error), HF_OK);
    read_text(path_of("again"), text, sizeof text);
    CHECK_TEXT(text, strlen(text), every_event);
    history_free(history);
}

TEST(a_history_that_goes_to_a_file_is_the_same)
{
    const struct hf_bytes words[] = {hf_bytes_text("LOCK"),
                                     hf_bytes_text("a b%"),
                                     hf_bytes_text("OWNER"), hf_bytes_text("")};
    char error[HISTORY_ERROR_MAX];
    char text[1000];
    struct history *history;

    CHECK_EQ(history_open(&history, path_of("stream"), error), HF_OK);
    CHECK_EQ(history_mark(history, 0, 0, 0, HISTORY_START), HF_OK);
    CHECK_EQ(history_call(history, 7, 1, 1, words, 4), HF_OK);
    CHECK_EQ(history_answer(history, 9, 1, 1, hf_bytes_text("+\r\n")), HF_OK);
    CHECK_EQ(history_mark(history, 8, 1, 0, HISTORY_CLOSED), HF_INVALID);
    CHECK_EQ(history_close(history, error), HF_OK);
    read_text(path_of("stream"), text, sizeof text);
    CHECK_TEXT(text, strlen(text),
               "holdfast history 1\n"
               "0 0 start\n"
               "7 1 call 1 LOCK a%20b%25 OWNER %\n"
               "9 1 answer 1 +%0D%0A\n");
}

TEST(what_cannot_be_written_is_told)
{
    char error[HISTORY_ERROR_MAX];
    struct history *history;
    struct hf_bytes word = hf_bytes_text("PING");

    CHECK_EQ(history_open(&history, "/nowhere/x", error), HF_IO);
    CHECK_TEXT(error, strlen(error), "/nowhere/x: No such file or directory");
    CHECK_EQ(history_open(&history, "/dev/full", error), HF_OK);
    CHECK_EQ(history_call(history, 1, 1, 1, &word, 1), HF_OK);
    CHECK_EQ(history_close(history, error), HF_IO);
    CHECK(strstr(error, "not whole") != NULL);
    history = history_new();
    CHECK_EQ(history_call(history, 1, 1, 1, &word, 1), HF_OK);
    CHECK_EQ(test_save_history(history, "/dev/full", error), HF_IO);
    CHECK_TEXT(error, strlen(error), "/dev/full: No space left on device");
    CHECK_EQ(test_save_history(history, "/nowhere/x", error), HF_IO);
    history_free(history);
    CHECK_EQ(history_load(&history, "/nowhere/x", error), HF_IO);
}

TEST(a_malformed_file_is_refused_with_the_number_of_its_line)
{
    static const struct {
        const char *lines;
        const char *error;
    } all[] = {
        {"", ", line 1: expected 'holdfast history 1'"},
        {"holdfast history 2\n", ", line 1: expected 'holdfast history 1'"},
        {"holdfast history 1\n0 0 start", ", line 2: the last line does not "
                                          "end: the file was cut"},
        {"holdfast history 1\n\n", ", line 2: expected TIME CLIENT EVENT"},
        {"holdfast history 1\nx 0 start\n",
         ", line 2: expected TIME CLIENT EVENT"},
        {"holdfast history 1\n1 4294967296 open\n",
         ", line 2: expected TIME CLIENT EVENT"},
        {"holdfast history 1\n1 0 begin\n", ", line 2: unknown event"},
        {"holdfast history 1\n1 0 start now\n",
         ", line 2: wrong number of words"},
        {"holdfast history 1\n1 1 call x PING\n",
         ", line 2: expected the call's ID, a number above 0"},
        {"holdfast history 1\n1 1 call 0 PING\n",
         ", line 2: expected the call's ID, a number above 0"},
        {"holdfast history 1\n1 1 call 1\n", ", line 2: wrong number of words"},
        {"holdfast history 1\n1 1 call 1 PI%4G\n", ", line 2: malformed words"},
        {"holdfast history 1\n1 1 call 1 PI%41\n", ", line 2: malformed words"},
        {"holdfast history 1\n1 1 call 1 PI%4\n", ", line 2: malformed words"},
        {"holdfast history 1\n1 1 call 1 PI\tG\n", ", line 2: malformed words"},
        {"holdfast history 1\n1 1 call 1 PING \n", ", line 2: malformed words"},
        {"holdfast history 1\n1 1 call 1 PING\n0 1 closed\n",
         ", line 3: the time goes back"},
        {"holdfast history 1\n1 1 call 1 PING\n1 1 call 1 PING\n",
         ", line 3: this ID was called before"},
        {"holdfast history 1\n1 1 answer 1 +\n",
         ", line 2: no call of this client has this ID, or it was answered "
         "before"},
        {"holdfast history 1\n1 1 call 1 PING\n1 2 answer 1 +\n",
         ", line 3: no call of this client has this ID, or it was answered "
         "before"},
        {"holdfast history 1\n1 1 call 1 PING\n1 1 answer 1 +\n1 1 answer 1 "
         "+\n",
         ", line 4: no call of this client has this ID, or it was answered "
         "before"},
        {"holdfast history 1\n1 1 call 1 PING\n1 1 answer 1 + +\n",
         ", line 3: wrong number of words"},
        {"holdfast history 1\n1 1 sent 1\n",
         ", line 2: no call of this client has this ID, or it was answered "
         "before"},
    };
    char error[HISTORY_ERROR_MAX];
    char expected[HISTORY_ERROR_MAX];
    struct history *history;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *path = write_text(all[i].lines);
        snprintf(expected, sizeof expected, "%s%s", path, all[i].error);
        CHECK_EQ(history_load(&history, path, error), HF_CORRUPT);
        CHECK_TEXT(error, strlen(error), expected);
    }
}

TEST(events_that_do_not_fit_are_not_recorded)
{
    struct history *history = history_new();
    struct hf_bytes word = hf_bytes_text("PING");

    CHECK_EQ(history_call(history, 5, 1, 0, &word, 1), HF_INVALID);
    CHECK_EQ(history_call(history, 5, 1, 1, &word, 0), HF_INVALID);
    CHECK_EQ(history_call(history, 5, 1, 1, &word, 1), HF_OK);
    CHECK_EQ(history_call(history, 5, 1, 1, &word, 1), HF_INVALID);
    CHECK_EQ(history_call(history, 4, 1, 2, &word, 1), HF_INVALID);
    CHECK_EQ(history_mark(history, 5, 1, 1, HISTORY_CALL), HF_INVALID);
    CHECK_EQ(history_mark(history, 5, 1, 1, HISTORY_OPEN), HF_INVALID);
    CHECK_EQ(history_mark(history, 5, 1, 2, HISTORY_SENT), HF_INVALID);
    history_free(history);
}

/* Calls of all kinds by several clients, some of them cut. */
static void record_many(struct told *t, uint32_t calls)
{
    struct hf_random random;
    char words[100];
    char reply[200];
    uint64_t token = 1;

    hf_random_init(&random, test_seed());
    told_begin(t);
    told(t, 1, "STOCK SET s 1000000",
         "sku s total 1000000 available 1000000 reserved 0 sold 0 version 1 "
         "updated_ms 1");
    for (uint32_t i = 0; i < calls / 4; i++) {
        uint32_t client = (uint32_t)hf_random_below(&random, 8);
        int name = (int)hf_random_below(&random, 5);
        snprintf(words, sizeof words, "LOCK l%d OWNER o%u TTL 60000 REQ r%u",
                 name, client, i);
        snprintf(reply, sizeof reply, "token %" PRIu64 " safe_ms 60000 count 1",
                 ++token);
        told(t, client, words, reply);
        snprintf(words, sizeof words, "LOCKINFO l%d", name);
        snprintf(reply, sizeof reply,
                 "name l%d owner o%u token %" PRIu64
                 " expires_ms 59998 count 1 waiting 0 held_ms 2",
                 name, client, token);
        told(t, client, words, reply);
        snprintf(words, sizeof words, "RESERVE r%u ITEM s 1 TTL 60000", i);
        snprintf(reply, sizeof reply,
                 "id r%u status PENDING expires_ms 60000 items [ sku s "
                 "quantity 1 ]",
                 i);
        told(t, client, words, reply);
        snprintf(words, sizeof words, "UNLOCK l%d %" PRIu64, name, token);
        told(t, client, words, "remaining 0");
    }
}

TEST(a_large_history_is_checked_in_no_time)
{
    struct told t;
    static struct history_report report;

    record_many(&t, 5000);
    uint64_t began = hf_clock_now_ns(hf_clock_system());
    CHECK_EQ(history_check(t.history, NULL, &report), HF_OK);
    uint64_t took = hf_clock_now_ns(hf_clock_system()) - began;
    printf("%" PRIu64 " calls took %.2f ms\n", report.calls,
           (double)took / 1e6);
    CHECK_EQ(report.calls, 5001);
    CHECK_EQ(report.answers, 5001);
    CHECK_EQ(report.grants, 1250);
    CHECK_EQ(report.reads, 1250);
    CHECK_EQ(report.reservations, 1250);
    TOLD_GOOD(&t);
}

TEST(memory_that_is_missing_is_told)
{
    struct told t;
    static struct history_report report;
    enum hf_status status = HF_NOMEM;

    record_many(&t, 40);
    for (uint64_t i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 1000);
        hf_memory_fail_after(i);
        status = history_check(t.history, NULL, &report);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    CHECK_EQ(report.violations, 0);
    history_free(t.history);
}

TEST(a_file_is_read_with_too_little_memory_or_not)
{
    char error[HISTORY_ERROR_MAX];
    const char *path = write_text(every_event);
    struct history *history;
    enum hf_status status = HF_NOMEM;

    for (uint64_t i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 1000);
        hf_memory_fail_after(i);
        status = history_load(&history, path, error);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    history_free(history);
}

TEST(a_report_keeps_some_and_counts_all)
{
    static struct history_report report;
    struct told t;

    told_begin(&t);
    for (int i = 0; i < 40; i++)
        told(&t, 1, "LOCK a OWNER x", "+OK");
    CHECK_EQ(history_check(t.history, NULL, &report), HF_OK);
    CHECK_EQ(report.violations, 40);
    CHECK_EQ(report.count, HISTORY_REPORT_MAX);
    history_free(t.history);
}

TEST(a_story_tells_what_concerns_the_violation)
{
    static struct history_report report;
    struct told t;
    char text[2000];
    FILE *out = fopen(path_of("story"), "w+e");

    CHECK(out != NULL);
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 9000", "token 3 safe_ms 9000 count 1");
    told(&t, 1, "LOCK b OWNER x", "token 4 safe_ms 9000 count 1");
    told(&t, 2, "LOCK a OWNER y", "token 5 safe_ms 9000 count 1");
    CHECK_EQ(history_check(t.history, NULL, &report), HF_OK);
    CHECK_EQ(report.count, 1);
    history_story(t.history, &report, 0, out);
    history_story(t.history, &report, 1, out); /* there is none */
    CHECK_EQ(fclose(out), 0);
    read_text(path_of("story"), text, sizeof text);
    CHECK_TEXT(text, strlen(text),
               "      0.001000 s  -- start\n"
               ">     0.002000 s  client 1  #1 asks LOCK a OWNER x TTL 9000\n"
               ">     0.003000 s  client 1  #1 is told token 3 safe_ms 9000 "
               "count 1\n"
               ">     0.006000 s  client 2  #3 asks LOCK a OWNER y\n"
               ">     0.007000 s  client 2  #3 is told token 5 safe_ms 9000 "
               "count 1\n");
    history_free(t.history);
}
