/* log_event.c - tests of lines with fields: what strangers put into a value
 * neither ends the line nor forges another. */
#include "holdfast/log.h"

#include "base/random.h"
#include "support/log.h"

#define NOW "2026-11-15T23:20:01.000007Z"

static const char odd[] =
    "a\nb\r\t\x1b[0m \"q\" \\ \x7f \xc2\x9b \xff \xc3\xa4";

TEST(an_event_as_text)
{
    begin((struct hf_log_opts){0});
    struct hf_log_field fields[] = {
        hf_log_number("id", 18446744073709551615u),
        hf_log_text("name", "worker-1"),
        hf_log_text("empty", ""),
        hf_log_text("two words", "a b"),
        hf_log_text("odd", odd),
        hf_log_bytes("bytes", "x\0y", 3),
        hf_log_text("sum", "1=1"),
    };
    hf_log_event(test.log, HF_LOG_INFO, "client\nclosed", fields, 7);
    hf_log_event(test.log, HF_LOG_ERROR, "bare", NULL, 3);
    check_text(NOW " info  client closed id=18446744073709551615 "
                   "name=worker-1 empty=\"\" two_words=\"a b\" "
                   "odd=\"a\\nb\\r\\t\\x1b[0m \\\"q\\\" \\\\ \\x7f \\xc2\\x9b "
                   "\\xff \xc3\xa4\" bytes=\"x\\x00y\" sum=\"1=1\"\n" NOW
                   " error bare\n");
    end();
}

TEST(an_event_as_json)
{
    begin((struct hf_log_opts){.form = HF_LOG_JSON});
    struct hf_log_field fields[] = {
        hf_log_number("id", 7),
        hf_log_text("na\"me", "a b"),
        hf_log_text("forged", "\"}\n{\"level\":\"error\""),
        hf_log_bytes("bytes", "\x1b\0\xff", 3),
    };
    hf_log_event(test.log, HF_LOG_WARN, "quoted \"message\"", fields, 4);
    hf_log_event(test.log, HF_LOG_WARN, "bare", NULL, 0);
    check_text("{\"time\":\"" NOW "\",\"level\":\"warn\",\"message\":"
               "\"quoted \\\"message\\\"\",\"id\":7,\"na_me\":\"a b\","
               "\"forged\":\"\\\"}\\u000a{\\\"level\\\":\\\"error\\\"\","
               "\"bytes\":\"\\u001b\\u0000\\ufffd\"}\n"
               "{\"time\":\"" NOW
               "\",\"level\":\"warn\",\"message\":\"bare\"}\n");
    end();
}

TEST(what_makes_no_sense_is_left_out)
{
    begin((struct hf_log_opts){.level = HF_LOG_INFO});
    struct hf_log_field fields[] = {hf_log_text(NULL, "x"),
                                    hf_log_text("none", NULL)};
    hf_log_event(test.log, HF_LOG_INFO, "here", fields, 2);
    hf_log_event(test.log, HF_LOG_INFO, NULL, fields, 2);
    hf_log_event(test.log, HF_LOG_DEBUG, "too low", fields, 2);
    hf_log_event(test.log, (enum hf_log_level)9, "no level", fields, 2);
    hf_log_event(NULL, HF_LOG_INFO, "no log", fields, 2);
    check_text(NOW " info  here none=0\n");
    end();
}

/* A line of any length is one line, and whole: JSON ends as it must, quotes
 * are even. */
static void check_whole(enum hf_log_form form)
{
    bool quoted = false;

    CHECK(test.len <= HF_LOG_LINE_MAX);
    CHECK_EQ(count_lines(test.text, test.len), 1);
    CHECK_EQ(test.text[test.len - 1], '\n');
    for (size_t i = 0; i < test.len; i++) {
        unsigned char byte = (unsigned char)test.text[i];
        CHECK(byte >= 0x20 || i == test.len - 1);
        if (byte == '\\' && quoted)
            i++;
        else if (byte == '"')
            quoted = !quoted;
    }
    CHECK(!quoted);
    if (form == HF_LOG_JSON)
        CHECK(strcmp(test.text + test.len - 2, "}\n") == 0);
}

TEST(a_line_that_is_cut_is_still_whole)
{
    static char value[2 * HF_LOG_LINE_MAX];
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int form = HF_LOG_TEXT; form <= HF_LOG_JSON; form++) {
        begin((struct hf_log_opts){.form = (enum hf_log_form)form});
        uint64_t whole = 0;
        for (int i = 0; i < 1500; i++) {
            size_t len =
                HF_LOG_LINE_MAX / 2 + hf_random_below(&random, HF_LOG_LINE_MAX);
            for (size_t k = 0; k < len; k++)
                value[k] = (char)(i % 3 == 0   ? 'x'
                                  : i % 3 == 1 ? hf_random_below(&random, 256)
                                               : '\n');
            struct hf_log_field fields[] = {
                hf_log_bytes("v", value, len), hf_log_number("n", 1),
                hf_log_bytes("w", value, len % 300), hf_log_text("e", "")};
            sink_clear();
            uint64_t cut = stats().cut;
            hf_log_event(test.log, HF_LOG_INFO, "m", fields, 4);
            CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
            check_whole((enum hf_log_form)form);
            bool all = strstr(test.text, form == HF_LOG_TEXT ? " e=\"\"\n"
                                                             : "\"e\":\"\"}\n");
            CHECK_EQ(stats().cut, cut + !all);
            whole += all;
        }
        CHECK(whole > 0);
        CHECK(whole < 1500);
        end();
    }
}
