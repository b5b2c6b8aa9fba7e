/* json.c - tests of what the commands print: JSON and readable lines. */
#include "cli/json.h"

#include "base/memory.h"
#include "cli/show.h"
#include "support/test.h"

static struct hf_buf out;

static void check_string(const char *bytes, size_t len, const char *expected)
{
    out.len = 0;
    CHECK_EQ(json_string(&out, hf_bytes(bytes, len)), HF_OK);
    CHECK_TEXT(out.data, out.len, expected);
}

#define CHECK_STRING(bytes, expected) \
    check_string(bytes, sizeof(bytes) - 1, expected)

TEST(plain_text_passes_unchanged)
{
    CHECK_STRING("", "\"\"");
    CHECK_STRING("shoe-42 /x", "\"shoe-42 /x\"");
    CHECK_STRING("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                 "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(quotes_backslashes_and_control_bytes_are_escaped)
{
    CHECK_STRING("a\"b\\c", "\"a\\\"b\\\\c\"");
    CHECK_STRING("\n\r\t\0\x1f\x7f",
                 "\"\\n\\u000d\\u0009\\u0000\\u001f\\u007f\"");
}

TEST(what_is_not_utf8_is_replaced_byte_by_byte)
{
    CHECK_STRING("\xff", "\"\\ufffd\"");
    CHECK_STRING("a\x80z", "\"a\\ufffdz\"");
    CHECK_STRING("\xc3", "\"\\ufffd\"");                       /* cut */
    CHECK_STRING("\xe2\x82", "\"\\ufffd\\ufffd\"");            /* cut */
    CHECK_STRING("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* over-long */
    CHECK_STRING("\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""); /* same */
    CHECK_STRING("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* surrogate */
    CHECK_STRING("\xf4\x90\x80\x80",
                 "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* > U+10FFFF */
    CHECK_STRING("\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"");
    CHECK_STRING("\xc3(", "\"\\ufffd(\"");
}

static void check_reply(const char *reply, const char *json, const char *lines)
{
    out.len = 0;
    CHECK_EQ(show_json(&out, hf_bytes_text(reply)), HF_OK);
    CHECK_TEXT(out.data, out.len, json);
    out.len = 0;
    CHECK_EQ(show_reply(&out, hf_bytes_text(reply)), HF_OK);
    CHECK_TEXT(out.data, out.len, lines);
}

TEST(a_map_is_an_object_or_lines)
{
    check_reply("%3\r\n+id\r\n$2\r\nr1\r\n+count\r\n:-7\r\n+items\r\n*2\r\n"
                "%2\r\n+sku\r\n$1\r\na\r\n+qty\r\n:2\r\n"
                "%1\r\n+sku\r\n$1\r\nb\r\n",
                "{\"id\": \"r1\", \"count\": -7, \"items\": "
                "[{\"sku\": \"a\", \"qty\": 2}, {\"sku\": \"b\"}]}",
                "id: r1\ncount: -7\nitems:\n  sku=a qty=2\n  sku=b\n");
    check_reply("%1\r\n+tags\r\n*2\r\n+x\r\n*2\r\n:1\r\n:2\r\n",
                "{\"tags\": [\"x\", [1, 2]]}", "tags: x, 1, 2\n");
    check_reply("%0\r\n", "{}", "");
}

TEST(other_replies_become_the_member_of_an_object)
{
    check_reply("+OK\r\n", "{\"result\": \"OK\"}", "OK\n");
    check_reply(":5\r\n", "{\"result\": 5}", "5\n");
    check_reply("_\r\n", "{\"result\": null}", "none\n");
    check_reply("#t\r\n", "{\"result\": true}", "yes\n");
    check_reply("*0\r\n", "{\"result\": []}", "");
    check_reply("*2\r\n%1\r\n+a\r\n:1\r\n%1\r\n+a\r\n:2\r\n",
                "{\"result\": [{\"a\": 1}, {\"a\": 2}]}", "a=1\na=2\n");
}

TEST(shown_text_cannot_act_on_the_terminal)
{
    out.len = 0;
    CHECK_EQ(show_reply(&out, hf_bytes_text("$7\r\na\x1b[2J\nb\r\n")), HF_OK);
    CHECK_TEXT(out.data, out.len, "a\\x1b[2J\nb\n");
}

TEST(broken_and_too_deep_replies_are_refused)
{
    static const char *const texts[] = {
        "", "*2\r\n:1\r\n", "%1\r\n:1\r\n", "nonsense\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_EQ(show_json(&out, hf_bytes_text(texts[i])), HF_INVALID);
        CHECK_EQ(show_reply(&out, hf_bytes_text(texts[i])), HF_INVALID);
    }
}

TEST(every_failed_allocation_is_reported)
{
    const char *reply = "%1\r\n+items\r\n*3\r\n+a\r\n+\"bbbbbbbbbbbbbbbbbb\r\n"
                        "$40\r\n0123456789012345678901234567890123456789\r\n";
    for (uint64_t limit = 0;; limit++) {
        hf_buf_destroy(&out);
        hf_memory_fail_after(limit);
        enum hf_status json = show_json(&out, hf_bytes_text(reply));
        hf_memory_fail_never();
        if (json == HF_OK)
            break;
        CHECK_EQ(json, HF_NOMEM);
        CHECK(limit < 20);
    }
    CHECK(out.len > 64);
}

TEST(the_codec_closes_what_was_opened)
{
    struct json_reply json;

    out.len = 0;
    json_reply_init(&json, &out);
    reply_put_map(&json.reply, 4);
    reply_pair_number(&json.reply, "n", -7);
    reply_put_key(&json.reply, "list");
    reply_put_list(&json.reply, 3);
    reply_put_map(&json.reply, 1);
    reply_pair_text(&json.reply, "a", "b\"c");
    reply_put_list(&json.reply, 0);
    reply_put_null(&json.reply);
    reply_put_key(&json.reply, "map");
    reply_put_map(&json.reply, 0);
    reply_pair_text(&json.reply, "last", "x");
    CHECK(!json.reply.failed);
    CHECK_EQ(json.depth, 0);
    CHECK_TEXT(out.data, out.len,
               "{\"n\":-7,\"list\":[{\"a\":\"b\\\"c\"},[],null],\"map\":{},"
               "\"last\":\"x\"}");
}

TEST(the_codec_writes_an_error_as_an_object)
{
    struct json_reply json;

    out.len = 0;
    json_reply_init(&json, &out);
    json.reply.codec->error(&json.reply, hf_bytes_text("BUSY"),
                            hf_bytes_text("it is held"));
    CHECK_TEXT(out.data, out.len,
               "{\"code\":\"BUSY\",\"error\":\"it is held\"}");
}
