/* badinput.c - what no client should say: each gets a clear error or a close.
 * tests: also under sanitizers
 */
#include <inttypes.h>

#include "hold/bounds.h"
#include "resp/resp.h"
#include "support/scene.h"
#include "support/test.h"

#define WORDS_MAX 32

/* An error as a client can use it: an upper-case code and a sentence. */
static bool is_clear_error(struct hf_bytes reply)
{
    size_t at = 1;

    if (reply.len < 8 || reply.data[0] != '-')
        return false;
    while (at < reply.len && reply.data[at] >= 'A' && reply.data[at] <= 'Z')
        at++;
    return at >= 3 && reply.data[at] == ' ';
}

static void expect_error(struct test_scene *scene, const char *what)
{
    struct hf_bytes reply;

    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    enum hf_status status = test_wire_read(&scene->good, &reply);
    if (status != HF_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", what, hf_status_text(status));
    if (!is_clear_error(reply))
        test_fail(__FILE__, __LINE__, "%s was answered %.*s", what,
                  (int)(reply.len < 200 ? reply.len : 200), reply.data);
}

/* The template's words with each "%" replaced. */
static void add_filled(struct test_wire *wire, const char *template,
                       struct hf_bytes value)
{
    struct hf_bytes words[WORDS_MAX];
    char text[256];
    char *rest = text;
    size_t count = 0;

    snprintf(text, sizeof text, "%s", template);
    for (char *word; (word = strsep(&rest, " ")) != NULL; count++) {
        CHECK(count < WORDS_MAX);
        words[count] =
            word[0] == '%' && word[1] == '\0' ? value : hf_bytes_text(word);
    }
    test_wire_add_args(wire, count, words);
}

static const char *const bad_commands[] = {"NOSUCH",
                                           "nosuch a b c",
                                           "LOCKX a OWNER b",
                                           "STOCK",
                                           "STOCK NOSUCH a",
                                           "LOCK",
                                           "LOCK a",
                                           "LOCK a OWNER",
                                           "LOCK a b c",
                                           "LOCK a TTL 5",
                                           "LOCK a OWNER b TTL",
                                           "LOCK a OWNER b WAIT",
                                           "LOCK a OWNER b REQ",
                                           "LOCK a OWNER b NOSUCH 5",
                                           "LOCK a OWNER b TTL 5 TTL 6",
                                           "LOCK a OWNER b OWNER c",
                                           "UNLOCK",
                                           "UNLOCK a",
                                           "UNLOCK a 1 2 3",
                                           "RENEW",
                                           "RENEW a",
                                           "RENEW a 1",
                                           "RENEW a 1 TTL",
                                           "RENEW a 1 5000",
                                           "FENCE",
                                           "FENCE a",
                                           "FENCE a 1 2 3",
                                           "FENCE a 4711",
                                           "FENCE DEL",
                                           "FENCE DEL a b",
                                           "FENCE DEL nosuch",
                                           "STOCK SET",
                                           "STOCK SET a",
                                           "STOCK SET a 1 2 3",
                                           "STOCK ADD",
                                           "STOCK ADD a",
                                           "STOCK ADD a 1 REASON",
                                           "STOCK GET",
                                           "STOCK DEL",
                                           "STOCK DEL a b c",
                                           "STOCK LIST a b c",
                                           "RESERVE",
                                           "RESERVE r",
                                           "RESERVE r ITEM",
                                           "RESERVE r ITEM bolt",
                                           "RESERVE r TTL 500",
                                           "RESERVE r ITEM bolt 1 NOSUCH 4",
                                           "RESERVE r ITEM bolt 1 ITEM nut",
                                           "CONFIRM",
                                           "CONFIRM a b c d",
                                           "CANCEL",
                                           "CANCEL order REASON",
                                           "EXTEND",
                                           "EXTEND order",
                                           "EXTEND order TTL",
                                           "EXTEND order 500",
                                           "RESERVATION",
                                           "RESERVATION a b c",
                                           "LIMIT",
                                           "LIMIT k",
                                           "LIMIT k RATE 5",
                                           "LIMIT k PER 5",
                                           "LIMIT k RATE 5 PER",
                                           "LIMIT k RATE 5 PER 5 NOSUCH 1",
                                           "LOCKS a b c d e f",
                                           "LOCKINFO",
                                           "LOCKINFO a b c",
                                           "CONFIG",
                                           "CONFIG NOSUCH",
                                           "CLIENT",
                                           "CLIENT NOSUCH",
                                           "HELLO 1",
                                           "HELLO 4",
                                           "HELLO abc",
                                           "COMMAND NOSUCH",
                                           "SELECT",
                                           "SELECT 1"};

TEST(unknown_commands_and_wrong_arities_are_errors)
{
    struct test_scene *scene = test_scene_open();

    for (size_t i = 0; i < sizeof bad_commands / sizeof *bad_commands; i++) {
        test_wire_add(&scene->good, "%s", bad_commands[i]);
        expect_error(scene, bad_commands[i]);
    }
    test_scene_close(scene);
}

/* A word with a "!" completes a request: what ends before it or behind it, at a
 * word without, lacks something. */
static const char *const marked[] = {
    "LOCK held OWNER me! TTL 1000! WAIT 1! REQ 1!",
    "UNLOCK a 1! REQ 1!",
    "RENEW a 1 TTL 1000! REQ 1!",
    "FENCE disk 1! REQ 1!",
    "STOCK SET bolt 100! REQ 1!",
    "STOCK ADD nosuch 5! REASON 7! REQ 1!",
    "STOCK DEL bolt! REQ 1!",
    "STOCK LIST! a! CURSOR 1! COUNT 2!",
    "LOCKS! a! CURSOR 1! COUNT 2!",
    "LOCKINFO a!",
    "RESERVE r ITEM bolt 1000! ITEM nut 1000! TTL 1000! OWNER 5! REQ 1!",
    "CONFIRM nosuch! REQ 1!",
    "CANCEL nosuch! REASON 5! REQ 1!",
    "EXTEND nosuch TTL 1000! REQ 1!",
    "RESERVATION nosuch!",
    "LIMIT k RATE 5 PER 1000! BURST 5! COST 1! PRIORITY 1! PEEK!",
    "LIMIT k RATE 5 PER 1000! HOLD 5! WAIT 1!",
    "LIMIT DEFINE p RATE 5 PER 1000! BURST 5! ALGORITHM GCRA!",
    "LIMIT k POLICY p! ALSO 1 p! COST 1!",
    "LIMIT SETTLE 1 COST 5!",
    "LIMIT DROP p!",
    "CL.THROTTLE k 5 5 5! 1!",
    "GCRA k 5 5 5! TOKENS 1!",
    "ECHO 5!",
    "SELECT 0!",
    "CLIENT SETNAME me!",
    "CONFIG SET idle-ms 0!",
    "CONFIG GET idle-ms!",
};

/* Cuts the line into words without marks; `complete` tells which had one. */
static size_t read_marks(char *line, struct hf_bytes *words, bool *complete)
{
    size_t count = 0;

    for (char *word; (word = strsep(&line, " ")) != NULL; count++) {
        CHECK(count < WORDS_MAX);
        size_t len = strlen(word);
        complete[count] = word[len - 1] == '!';
        words[count] = hf_bytes(word, len - complete[count]);
    }
    return count;
}

/* In one write, so that what the first one left is still where it was. */
TEST(a_request_never_takes_words_of_the_one_before)
{
    struct test_scene *scene = test_scene_open();
    struct hf_bytes words[WORDS_MAX];
    bool complete[WORDS_MAX];
    struct hf_bytes reply;
    char line[256];

    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
        snprintf(line, sizeof line, "%s", marked[i]);
        size_t full = read_marks(line, words, complete);
        for (size_t count = 1; count < full; count++) {
            if (complete[count - 1])
                continue;
            test_wire_add_args(&scene->good, full, words);
            test_wire_add_args(&scene->good, count, words);
            CHECK_EQ(test_wire_send(&scene->good), HF_OK);
            reply = TEST_ANSWER(&scene->good);
            if (test_is_error(reply, "BADARG") || test_is_error(reply, "ERR"))
                test_fail(__FILE__, __LINE__, "%s was answered %.*s", marked[i],
                          (int)reply.len, reply.data);
            reply = TEST_ANSWER(&scene->good);
            if (!test_is_error(reply, "BADARG") && !test_is_error(reply, "ERR"))
                test_fail(__FILE__, __LINE__,
                          "the first %zu words of %s were answered %.*s", count,
                          marked[i], (int)reply.len, reply.data);
        }
    }
    test_scene_close(scene);
}

struct number_case {
    const char *template;
    bool zero_is_good;
    bool negative_is_good;
};

static const struct number_case number_cases[] = {
    {"LOCK a OWNER b TTL %", false, false},
    {"LOCK held OWNER b WAIT %", true, false},
    {"UNLOCK held %", true, false},
    {"RENEW held % TTL 1000", true, false},
    {"RENEW held 1 TTL %", false, false},
    {"FENCE f %", true, false},
    {"STOCK SET a %", true, false},
    {"STOCK ADD bolt %", true, true},
    {"RESERVE r ITEM bolt %", false, false},
    {"RESERVE r ITEM bolt 1 ITEM nut %", false, false},
    {"RESERVE r ITEM bolt 1 TTL %", false, false},
    {"EXTEND order TTL %", false, false},
    {"LIMIT k RATE % PER 1000", false, false},
    {"LIMIT k RATE 1 PER %", false, false},
    {"LIMIT k RATE 1 PER 1000 BURST %", false, false},
    {"LIMIT k RATE 1 PER 1000 COST %", true, false},
    {"LOCKS * CURSOR %", true, false},
    {"LOCKS * COUNT %", true, false},
    {"STOCK LIST * CURSOR %", true, false},
    {"STOCK LIST * COUNT %", true, false},
};

TEST(numbers_that_are_none_or_out_of_range_are_errors)
{
    static const char *const bad[] = {"",
                                      "abc",
                                      "1.5",
                                      "1e3",
                                      "0x10",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "-",
                                      "1_00",
                                      "\xff\x00",
                                      "\xd9\xa3",
                                      "NaN",
                                      "inf",
                                      "18446744073709551615",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "99999999999999999999999999999999999999",
                                      "-9223372036854775809"};
    struct test_scene *scene = test_scene_open();
    char what[512];

    for (size_t i = 0; i < sizeof number_cases / sizeof *number_cases; i++) {
        const struct number_case *one = &number_cases[i];
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            add_filled(&scene->good, one->template, hf_bytes_text(bad[j]));
            snprintf(what, sizeof what, "%s with \"%s\"", one->template,
                     bad[j]);
            expect_error(scene, what);
        }
        if (!one->negative_is_good) {
            add_filled(&scene->good, one->template, hf_bytes_text("-1"));
            snprintf(what, sizeof what, "%s with -1", one->template);
            expect_error(scene, what);
        }
        if (!one->zero_is_good) {
            add_filled(&scene->good, one->template, hf_bytes_text("0"));
            snprintf(what, sizeof what, "%s with 0", one->template);
            expect_error(scene, what);
        }
    }
    test_scene_close(scene);
}

TEST(stock_that_would_overflow_or_sink_below_what_is_promised_is_refused)
{
    struct test_scene *scene = test_scene_open();
    static const char *const bad[] = {
        "STOCK ADD bolt 9223372036854775807",
        "STOCK ADD bolt -94", /* 7 are reserved */
        "STOCK ADD bolt -9223372036854775808",
        "STOCK SET bolt 6",
        "STOCK SET bolt 9223372036854775808",
        "STOCK DEL bolt",
        "RESERVE r ITEM bolt 9223372036854775807 ITEM bolt 1",
        "RESERVE r ITEM bolt 50 ITEM bolt 44",
        "RESERVE r ITEM bolt 1 ITEM nosuch 1",
        "RESERVE order ITEM bolt 8 ITEM nut 3",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_wire_add(&scene->good, "%s", bad[i]);
        expect_error(scene, bad[i]);
    }
    test_scene_close(scene);
}

struct name_case {
    const char *template;
    size_t max;
    bool may_be_empty;
};

static const struct name_case name_cases[] = {
    {"LOCK % OWNER b", HOLD_NAME_MAX, false},
    {"LOCK a OWNER %", HOLD_OWNER_MAX, false},
    {"LOCK held OWNER b REQ %", HOLD_ID_MAX, false},
    {"UNLOCK % 1", HOLD_NAME_MAX, false},
    {"RENEW % 1 TTL 5", HOLD_NAME_MAX, false},
    {"FENCE % 1", HOLD_NAME_MAX, false},
    {"FENCE DEL %", HOLD_NAME_MAX, false},
    {"STOCK SET % 1", HOLD_SKU_MAX, false},
    {"STOCK ADD % 1", HOLD_SKU_MAX, false},
    {"STOCK DEL %", HOLD_SKU_MAX, false},
    {"STOCK ADD bolt 1 REASON %", HOLD_REASON_MAX, true},
    {"RESERVE % ITEM bolt 1", HOLD_ID_MAX, false},
    {"RESERVE r ITEM % 1", HOLD_SKU_MAX, false},
    {"RESERVE r ITEM bolt 1 OWNER %", HOLD_OWNER_MAX, true},
    {"RESERVE r ITEM bolt 1 REQ %", HOLD_ID_MAX, false},
    {"CONFIRM %", HOLD_ID_MAX, false},
    {"CANCEL %", HOLD_ID_MAX, false},
    {"CANCEL order REASON %", HOLD_REASON_MAX, true},
    {"EXTEND % TTL 5", HOLD_ID_MAX, false},
    {"LIMIT % RATE 1 PER 1", HOLD_NAME_MAX, false},
    {"LOCKINFO %", HOLD_NAME_MAX, false},
};

TEST(empty_and_over_long_names_are_errors)
{
    static char name[RESP_BULK_MAX];
    struct test_scene *scene = test_scene_open();
    char what[256];

    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < sizeof name_cases / sizeof *name_cases; i++) {
        const struct name_case *one = &name_cases[i];
        size_t lens[] = {0, one->max + 1, 2 * one->max, 60000, sizeof name};
        for (size_t j = one->may_be_empty; j < sizeof lens / sizeof *lens;
             j++) {
            add_filled(&scene->good, one->template, hf_bytes(name, lens[j]));
            snprintf(what, sizeof what, "%s with %zu bytes", one->template,
                     lens[j]);
            expect_error(scene, what);
        }
    }
    test_scene_close(scene);
}

TEST(names_of_the_greatest_length_and_of_any_bytes_are_good)
{
    struct test_scene *scene = test_scene_open();
    char name[HOLD_NAME_MAX];
    struct hf_bytes lock[] = {
        hf_bytes_text("LOCK"), hf_bytes(name, sizeof name),
        hf_bytes_text("OWNER"), hf_bytes(name, HOLD_OWNER_MAX)};
    struct hf_bytes reply;
    char token[32];

    for (size_t i = 0; i < sizeof name; i++)
        name[i] = (char)i;
    test_wire_add_args(&scene->good, 4, lock);
    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    reply = TEST_ANSWER(&scene->good);
    CHECK_DONE(reply);
    snprintf(token, sizeof token, "%" PRId64, test_number(reply, "token"));
    struct hf_bytes unlock[] = {hf_bytes_text("UNLOCK"), lock[1],
                                hf_bytes_text(token)};
    test_wire_add_args(&scene->good, 3, unlock);
    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    CHECK_DONE(TEST_ANSWER(&scene->good));
    test_scene_close(scene);
}

/* Sends bytes on a connection of their own; the server must end it, after an
 * error at most. */
static void expect_close(struct test_scene *scene, const char *what,
                         const void *data, size_t len)
{
    struct test_wire wire;
    struct hf_bytes reply;

    test_server_connect(&scene->server, &wire);
    test_wire_add_raw(&wire, data, len);
    enum hf_status status = test_wire_send(&wire);
    if (status == HF_OK)
        status = test_wire_read(&wire, &reply);
    if (status == HF_OK) {
        if (!is_clear_error(reply))
            test_fail(__FILE__, __LINE__, "%s was answered %.*s", what,
                      (int)reply.len, reply.data);
        if (!test_wire_ends(&wire))
            test_fail(__FILE__, __LINE__, "%s: still open", what);
    } else if (status != HF_CLOSED) {
        test_fail(__FILE__, __LINE__, "%s: %s", what, hf_status_text(status));
    }
    test_wire_close(&wire);
    test_scene_check(scene);
}

TEST(broken_framing_ends_the_connection)
{
    static const char *const broken[] = {
        "*1\r\n$1073741824\r\n",
        "*1\r\n$65537\r\n",
        "*1\r\n$99999999999999999999\r\n",
        "*1\r\n$-5\r\n",
        "*1\r\n$abc\r\n",
        "*1\r\n$\r\n",
        "*1\r\n:5\r\n",
        "*1\r\nPING\r\n",
        "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        "*1\n$4\nPING\n*x\r\n",
        "*x\r\n",
        "*\r\n",
        "*1000000\r\n",
        "*1073741824\r\n",
        "*99999999999999999999\r\n",
        "*2\r\n$4\r\nPING\r\n*1\r\n",
        "PING \"open\r\n",
        "PING 'open\r\n",
        "PING \"a\"b\r\n",
    };
    struct test_scene *scene = test_scene_open();

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        expect_close(scene, broken[i], broken[i], strlen(broken[i]));
    test_scene_close(scene);
}

TEST(what_came_before_broken_framing_is_answered)
{
    static const char text[] =
        "PING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$x\r\nPING\r\n";
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;
    struct hf_bytes reply;

    test_server_connect(&scene->server, &wire);
    test_wire_add_raw(&wire, text, sizeof text - 1);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_REPLY(TEST_ANSWER(&wire), "+PONG");
    }
    reply = TEST_ANSWER(&wire);
    CHECK(is_clear_error(reply));
    CHECK_EQ(test_wire_read(&wire, &reply), HF_CLOSED);
    test_wire_close(&wire);
    test_scene_close(scene);
}

/* `head`, then `unit` again and again, `len` bytes in all. */
static void expect_flood_to_end(const char *head, const char *unit, size_t len)
{
    struct test_scene *scene = test_scene_open();
    struct hf_buf flood = {0};

    CHECK_EQ(hf_buf_append(&flood, head, strlen(head)), HF_OK);
    while (flood.len < len)
        CHECK_EQ(hf_buf_append(&flood, unit, strlen(unit)), HF_OK);
    expect_close(scene, head, flood.data, flood.len);
    hf_buf_destroy(&flood);
    test_scene_close(scene);
}

TEST(a_million_arguments_end_the_connection)
{
    expect_flood_to_end("*1000000\r\n", "$1\r\na\r\n", 7000000);
}

TEST(a_bulk_of_a_gigabyte_ends_the_connection)
{
    expect_flood_to_end("*1\r\n$1073741824\r\n", "0123456789abcdef", 64u << 20);
}

TEST(a_line_without_an_end_ends_the_connection)
{
    expect_flood_to_end("PING ", "0123456789abcdef", 64u << 20);
}

TEST(a_request_that_is_too_long_as_a_whole_ends_the_connection)
{
    static char text[60000];
    struct test_scene *scene = test_scene_open();
    struct hf_buf request = {0};

    memset(text, 'a', sizeof text);
    CHECK_EQ(hf_buf_format(&request, "*100\r\n"), HF_OK);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(hf_buf_format(&request, "$%zu\r\n", sizeof text), HF_OK);
        CHECK_EQ(hf_buf_append(&request, text, sizeof text), HF_OK);
        CHECK_EQ(hf_buf_append(&request, "\r\n", 2), HF_OK);
    }
    expect_close(scene, "100 arguments of 60000 bytes", request.data,
                 request.len);
    hf_buf_destroy(&request);
    test_scene_close(scene);
}

TEST(empty_lines_and_empty_requests_are_passed_over)
{
    static const char text[] = "\r\n\r\n*0\r\n\r\nPING\r\n";
    struct test_scene *scene = test_scene_open();

    test_wire_add_raw(&scene->good, text, sizeof text - 1);
    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    CHECK_REPLY(TEST_ANSWER(&scene->good), "+PONG");
    test_scene_close(scene);
}
