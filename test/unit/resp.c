/* resp.c - tests of the protocol: limits, cuts, quoting, failed allocations.
 *
 * Input is always handed over in a block of exactly its length, so that the
 * address sanitizer sees any read behind the end.
 */
#include "resp/resp.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/resp_write.h"
#include "support/test.h"

/* The last decoded request and the bytes that its arguments point into. */
static struct resp_request request;
static char *block;

/* What is behind the last argument is not touched: whoever looks there finds
 * neither what an earlier request left nor anything else to go on with. */
static const struct hf_bytes poison = {"poison", 6};

static void check_poison(size_t from)
{
    for (size_t i = from; i < RESP_ARGS_MAX; i++) {
        CHECK(request.args[i].data == poison.data);
        CHECK_EQ(request.args[i].len, poison.len);
    }
}

static enum hf_status decode(const char *data, size_t len)
{
    for (size_t i = 0; i < RESP_ARGS_MAX; i++)
        request.args[i] = poison;
    hf_free(block);
    block = hf_alloc(len > 0 ? len : 1);
    CHECK(block != NULL);
    if (len > 0)
        memcpy(block, data, len);
    request.count = 12345;
    request.error = NULL;
    enum hf_status status = resp_decode(block, len, &request);
    if (status == HF_OK)
        check_poison(request.count);
    return status;
}

static enum hf_status decode_text(const char *text)
{
    return decode(text, strlen(text));
}

#define CHECK_ARG(index, expected) \
    CHECK_TEXT(request.args[index].data, request.args[index].len, (expected))

#define CHECK_REFUSED(text, expected)                    \
    do {                                                 \
        CHECK_EQ(decode_text(text), HF_INVALID);         \
        CHECK_TEXT(request.error, strlen(request.error), \
                   "Protocol error: " expected);         \
    } while (0)

TEST(a_framed_request_is_split_into_its_arguments)
{
    const char *text = "*3\r\n$4\r\nLOCK\r\n$0\r\n\r\n$2\r\n\r\n\r\nrest";
    CHECK_EQ(decode_text(text), HF_OK);
    CHECK_EQ(request.count, 3);
    CHECK_EQ(request.used, strlen(text) - 4);
    CHECK_ARG(0, "LOCK");
    CHECK_ARG(1, "");
    CHECK_ARG(2, "\r\n");
}

TEST(an_inline_request_is_split_at_spaces)
{
    CHECK_EQ(decode_text("  LOCK\ta   OWNER\x0bo \r\nnext"), HF_OK);
    CHECK_EQ(request.count, 4);
    CHECK_EQ(request.used, 21);
    CHECK_ARG(0, "LOCK");
    CHECK_ARG(1, "a");
    CHECK_ARG(3, "o");
    CHECK_EQ(decode_text("PING\n"), HF_OK);
    CHECK_EQ(request.used, 5);
    CHECK_ARG(0, "PING");
}

TEST(empty_requests_count_nothing_and_are_used_up)
{
    static const char *const texts[] = {"\r\n",   "\n",      "   \r\n",
                                        "*0\r\n", "*-1\r\n", "\r\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_EQ(decode_text(texts[i]), HF_OK);
        CHECK_EQ(request.count, 0);
        CHECK_EQ(request.used, strlen(texts[i]));
    }
}

TEST(every_cut_of_a_good_request_asks_for_more)
{
    static const char *const texts[] = {
        "*2\r\n$4\r\nECHO\r\n$12\r\nhello\r\nworld\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "*-1\r\n",
        "*12\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
        "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\nx\r\n",
        "SET \"a \\x41\\\"\" 'b\\'' c\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t len = strlen(texts[i]);
        for (size_t cut = 0; cut < len; cut++)
            CHECK_EQ(decode(texts[i], cut), HF_MORE);
        CHECK_EQ(decode(texts[i], len), HF_OK);
        CHECK_EQ(request.used, len);
    }
}

TEST(a_cut_leaves_the_bytes_as_they_were)
{
    const char *text = "SET \"a\\x41\" 'b\\''";
    CHECK_EQ(decode_text(text), HF_MORE);
    CHECK_TEXT(block, strlen(text), text);
}

TEST(bad_counts_are_refused)
{
    CHECK_REFUSED("*1025\r\n", "invalid multibulk length");
    CHECK_REFUSED("*1000000\r\n", "invalid multibulk length");
    CHECK_REFUSED("*-2\r\n", "invalid multibulk length");
    CHECK_REFUSED("*-\r\n", "invalid multibulk length");
    CHECK_REFUSED("*\r\n", "invalid multibulk length");
    CHECK_REFUSED("*x\r\n", "invalid multibulk length");
    CHECK_REFUSED("* 1\r\n", "invalid multibulk length");
    CHECK_REFUSED("*+1\r\n", "invalid multibulk length");
    CHECK_REFUSED("*1 \r\n", "invalid multibulk length");
    CHECK_REFUSED("*1\n", "invalid multibulk length");
    CHECK_REFUSED("*1\rx", "invalid multibulk length");
    CHECK_REFUSED("*18446744073709551617\r\n", "invalid multibulk length");
    CHECK_REFUSED("*99999999999", "invalid multibulk length");
}

TEST(bad_lengths_are_refused)
{
    CHECK_REFUSED("*1\r\n$1073741824\r\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$65537\r\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$-1\r\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$\r\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$4x", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$4\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n$18446744073709551620\r\n", "invalid bulk length");
    CHECK_REFUSED("*1\r\n:4\r\n", "expected '$'");
    CHECK_REFUSED("*1\r\nPING\r\n", "expected '$'");
    CHECK_REFUSED("*2\r\n$1\r\na\r\n*", "expected '$'");
    CHECK_REFUSED("*1\r\n$4\r\nPINGX", "expected CRLF after bulk");
    CHECK_REFUSED("*1\r\n$4\r\nPING\rX", "expected CRLF after bulk");
    CHECK_REFUSED("*1\r\n$4\r\nPI\r\nX", "expected CRLF after bulk");
}

/* Appends a bulk of `len` times `fill`. */
static void add_bulk(struct hf_buf *buf, char fill, size_t len)
{
    char *text = hf_alloc(len + 1);
    CHECK(text != NULL);
    memset(text, fill, len + 1);
    CHECK_EQ(resp_bulk(buf, hf_bytes(text, len)), HF_OK);
    hf_free(text);
}

TEST(the_largest_bulk_and_the_most_arguments_pass)
{
    struct hf_buf buf = {0};
    CHECK_EQ(resp_array(&buf, 1), HF_OK);
    add_bulk(&buf, 'x', RESP_BULK_MAX);
    CHECK_EQ(decode(buf.data, buf.len), HF_OK);
    CHECK_EQ(request.args[0].len, RESP_BULK_MAX);

    buf.len = 0;
    CHECK_EQ(resp_array(&buf, RESP_ARGS_MAX), HF_OK);
    for (int i = 0; i < RESP_ARGS_MAX; i++)
        add_bulk(&buf, 'y', 3);
    CHECK_EQ(decode(buf.data, buf.len), HF_OK);
    CHECK_EQ(request.count, RESP_ARGS_MAX);
    CHECK_ARG(RESP_ARGS_MAX - 1, "yyy");
    hf_buf_destroy(&buf);
}

/* A framed request of exactly `size` bytes, four arguments. */
static void sized_request(struct hf_buf *buf, size_t size)
{
    buf->len = 0;
    CHECK_EQ(resp_array(buf, 5), HF_OK);
    for (int i = 0; i < 3; i++)
        add_bulk(buf, 'z', RESP_BULK_MAX);
    size_t head = 2 * sizeof "$99999\r\n\r\n" - 2;
    add_bulk(buf, 'z', (size - buf->len - head) / 2);
    add_bulk(buf, 'z', size - buf->len - head / 2);
    CHECK_EQ(buf->len, size);
}

TEST(the_largest_request_passes_and_one_byte_more_does_not)
{
    struct hf_buf buf = {0};
    sized_request(&buf, RESP_REQUEST_MAX);
    CHECK_EQ(decode(buf.data, buf.len), HF_OK);
    CHECK_EQ(decode(buf.data, buf.len - 1), HF_MORE);
    sized_request(&buf, RESP_REQUEST_MAX + 1);
    CHECK_EQ(decode(buf.data, buf.len), HF_INVALID);
    CHECK_TEXT(request.error, strlen(request.error),
               "Protocol error: too big request");
    hf_buf_destroy(&buf);
}

TEST(a_full_buffer_never_asks_for_more)
{
    struct hf_buf buf = {0};
    sized_request(&buf, RESP_REQUEST_MAX);
    buf.data[1] = '6'; /* one more argument is announced than fits */
    CHECK_EQ(decode(buf.data, buf.len), HF_INVALID);
    CHECK_EQ(hf_buf_append(&buf, "$1", 2), HF_OK);
    CHECK_EQ(decode(buf.data, buf.len), HF_INVALID);
    hf_buf_destroy(&buf);
}

TEST(inline_limits_are_held)
{
    static char text[RESP_INLINE_MAX + 2];
    memset(text, 'a', sizeof text);
    text[RESP_INLINE_MAX - 1] = '\n';
    CHECK_EQ(decode(text, RESP_INLINE_MAX), HF_OK);
    CHECK_EQ(request.args[0].len, RESP_INLINE_MAX - 1);
    CHECK_EQ(decode(text, RESP_INLINE_MAX - 1), HF_MORE);
    text[RESP_INLINE_MAX - 1] = 'a';
    text[RESP_INLINE_MAX] = '\n';
    CHECK_EQ(decode(text, RESP_INLINE_MAX + 1), HF_INVALID);
    CHECK_TEXT(request.error, strlen(request.error),
               "Protocol error: too big inline request");
    CHECK_EQ(decode(text, RESP_INLINE_MAX), HF_INVALID);

    for (size_t i = 0; i < RESP_ARGS_MAX; i++)
        memcpy(text + 2 * i, "a ", 2);
    memcpy(text + 2 * RESP_ARGS_MAX, "\n", 1);
    CHECK_EQ(decode(text, 2 * RESP_ARGS_MAX + 1), HF_OK);
    CHECK_EQ(request.count, RESP_ARGS_MAX);
    memcpy(text + 2 * RESP_ARGS_MAX, "a\n", 2);
    CHECK_EQ(decode(text, 2 * RESP_ARGS_MAX + 2), HF_INVALID);
}

TEST(quotes_are_resolved)
{
    CHECK_EQ(decode_text("a \"b c\" 'd e' \"\" '' f\"g h\"\r\n"), HF_OK);
    CHECK_EQ(request.count, 6);
    CHECK_ARG(1, "b c");
    CHECK_ARG(2, "d e");
    CHECK_ARG(3, "");
    CHECK_ARG(4, "");
    CHECK_ARG(5, "fg h");
    CHECK_EQ(decode_text("\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n"), HF_OK);
    CHECK_ARG(0, "\n\r\t\b\a\\\"q");
    CHECK_EQ(decode_text("\"\\x41\\x7a\\xZZ\\x4\"\n"), HF_OK);
    CHECK_ARG(0, "AzxZZx4");
    CHECK_EQ(decode_text("'\\n\\'\"' \"'\"\n"), HF_OK);
    CHECK_ARG(0, "\\n'\"");
    CHECK_ARG(1, "'");
    CHECK_EQ(decode_text("\"\\xff\\x00\"\n"), HF_OK);
    CHECK_EQ(request.args[0].len, 2);
    CHECK(!memcmp(request.args[0].data, "\xff\x00", 2));
}

TEST(unbalanced_quotes_are_refused)
{
    CHECK_REFUSED("a \"b\r\n", "unbalanced quotes in request");
    CHECK_REFUSED("a 'b\r\n", "unbalanced quotes in request");
    CHECK_REFUSED("a \"b\"c\r\n", "unbalanced quotes in request");
    CHECK_REFUSED("a 'b'c\r\n", "unbalanced quotes in request");
    CHECK_REFUSED("a \"b\\\"\r\n", "unbalanced quotes in request");
    CHECK_REFUSED("\"\\\n", "unbalanced quotes in request");
}

/* All writers one after the other, to the first failure. */
static enum hf_status write_all(struct hf_buf *out, int version)
{
    struct hf_bytes args[] = {hf_bytes_text("LOCK"), hf_bytes_text(""),
                              hf_bytes("\r\n\0", 3)};
    enum hf_status status = resp_simple(out, "OK");
    status = status ? status : resp_error(out, hf_bytes_text("ERR a\r\nb"));
    status = status ? status : resp_number(out, -12);
    status = status ? status : resp_bulk(out, hf_bytes_text("bulk"));
    status = status ? status : resp_array(out, 100);
    status = status ? status : resp_map(out, version, 7);
    status = status ? status : resp_null(out, version);
    status = status ? status : resp_encode(out, 3, args);
    return status;
}

TEST(writers_produce_the_documented_bytes)
{
    struct hf_buf buf = {0};
    CHECK_EQ(write_all(&buf, 2), HF_OK);
    const char want[] = "+OK\r\n-ERR a  b\r\n:-12\r\n$4\r\nbulk\r\n*100\r\n"
                        "*14\r\n$-1\r\n*3\r\n$4\r\nLOCK\r\n$0\r\n\r\n$3\r\n"
                        "\r\n\0\r\n";
    CHECK_EQ(buf.len, sizeof want - 1);
    CHECK(!memcmp(buf.data, want, buf.len));
    buf.len = 0;
    CHECK_EQ(write_all(&buf, 3), HF_OK);
    CHECK(memmem(buf.data, buf.len, "%7\r\n_\r\n*3", 9) != NULL);
    hf_buf_destroy(&buf);
}

TEST(numbers_of_every_length_read_back)
{
    struct hf_buf buf = {0};
    uint64_t power = 1;
    for (int digits = 0; digits < 20; digits++, power *= 10) {
        int64_t numbers[] = {(int64_t)power, (int64_t)(power - 1),
                             (int64_t)(0 - power), INT64_MIN, INT64_MAX};
        for (int i = 0; i < 5; i++) {
            struct resp_value value;
            size_t at = 0;
            buf.len = 0;
            CHECK_EQ(resp_number(&buf, numbers[i]), HF_OK);
            CHECK_EQ(resp_read(hf_buf_bytes(&buf), &at, &value), HF_OK);
            CHECK_EQ(value.kind, RESP_NUMBER);
            CHECK_EQ(value.number, numbers[i]);
            CHECK_EQ(at, buf.len);
        }
    }
    hf_buf_destroy(&buf);
}

#define WRITERS 13

/* A field of a map, with its number or before another value. */
static enum hf_status write_field(struct hf_buf *out, bool with_number)
{
    struct reply reply = {.out = out, .codec = &resp3_codec};
    struct reply_field field;
    reply_field_make(&field, "the_longest_name_there_is");
    if (with_number)
        reply.codec->field_number(&reply, &field, INT64_MIN);
    else
        reply.codec->field(&reply, &field);
    return reply.failed ? HF_NOMEM : HF_OK;
}

/* One writer, with numbers as long as they can be. */
static enum hf_status write_one(struct hf_buf *out, int which)
{
    static const struct hf_bytes empty[16];
    struct hf_bytes text = hf_bytes_text("text");
    switch (which) {
    case 0:
        return resp_simple(out, "OK");
    case 1:
        return resp_error(out, text);
    case 2:
        return resp_number(out, INT64_MAX);
    case 3:
        return resp_number(out, INT64_MIN);
    case 4:
        return resp_bulk(out, text);
    case 5:
        return resp_array(out, SIZE_MAX);
    case 6:
        return resp_map(out, 2, 5);
    case 7:
        return resp_map(out, 3, 5);
    case 8:
        return resp_null(out, 2);
    case 9:
        return resp_null(out, 3);
    case 10:
    case 11:
        return write_field(out, which == 11);
    default:
        return resp_encode(out, 16, empty);
    }
}

TEST(a_writer_without_memory_leaves_the_buffer_as_it_was)
{
    for (int which = 0; which < WRITERS; which++) {
        struct hf_buf buf = {0};
        hf_memory_fail_after(0);
        enum hf_status status = write_one(&buf, which);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(buf.len, 0);
        CHECK_EQ(buf.cap, 0);

        CHECK_EQ(hf_buf_append(&buf, "x", 1), HF_OK);
        memset(buf.data, 'x', buf.cap);
        buf.len = buf.cap;
        hf_memory_fail_after(0);
        status = write_one(&buf, which);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(buf.len, buf.cap);
        for (size_t i = 0; i < buf.len; i++)
            CHECK_EQ(buf.data[i], 'x');
        CHECK_EQ(write_one(&buf, which), HF_OK);
        hf_buf_destroy(&buf);
    }
}

TEST(a_writer_fits_into_whatever_room_is_left)
{
    for (int which = 0; which < WRITERS; which++) {
        struct hf_buf want = {0};
        CHECK_EQ(write_one(&want, which), HF_OK);
        for (size_t cap = 1; cap < 128; cap++) {
            struct hf_buf buf = {.data = hf_alloc(cap), .cap = cap};
            CHECK(buf.data != NULL);
            CHECK_EQ(write_one(&buf, which), HF_OK);
            CHECK(hf_bytes_equal(hf_buf_bytes(&buf), hf_buf_bytes(&want)));
            hf_buf_destroy(&buf);
        }
        hf_buf_destroy(&want);
    }
}

TEST(random_requests_survive_the_round_trip_and_every_cut)
{
    static char pool[4096];
    struct hf_bytes args[20];
    struct hf_buf buf = {0};
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (size_t i = 0; i < sizeof pool; i++)
        pool[i] = (char)hf_random_next(&random);
    for (int round = 0; round < 300; round++) {
        size_t count = 1 + hf_random_below(&random, 20);
        for (size_t i = 0; i < count; i++) {
            size_t limit = hf_random_below(&random, 20) ? 20 : 1200;
            args[i] = hf_bytes(pool + hf_random_below(&random, 2048),
                               hf_random_below(&random, limit));
        }
        buf.len = 0;
        CHECK_EQ(resp_encode(&buf, count, args), HF_OK);
        size_t step = 1 + hf_random_below(&random, 7);
        for (size_t cut = 0; cut < buf.len; cut += step)
            CHECK_EQ(decode(buf.data, cut), HF_MORE);
        CHECK_EQ(decode(buf.data, buf.len), HF_OK);
        CHECK_EQ(request.used, buf.len);
        CHECK_EQ(request.count, count);
        for (size_t i = 0; i < count; i++)
            CHECK(hf_bytes_equal(request.args[i], args[i]));
    }
    hf_buf_destroy(&buf);
}

/* Reads one value from a block of exactly that length. */
static enum hf_status read_text(const char *text, size_t len, size_t *at,
                                struct resp_value *value)
{
    hf_free(block);
    block = hf_alloc(len > 0 ? len : 1);
    CHECK(block != NULL);
    if (len > 0)
        memcpy(block, text, len);
    return resp_read(hf_bytes(block, len), at, value);
}

static const struct {
    const char *bytes;
    enum resp_kind kind;
    int64_t number;
    const char *text;
} values[] = {
    {"+OK\r\n", RESP_SIMPLE, 0, "OK"},
    {"+\r\n", RESP_SIMPLE, 0, ""},
    {"-BUSY held by x\r\n", RESP_ERROR, 0, "BUSY held by x"},
    {":42\r\n", RESP_NUMBER, 42, NULL},
    {":-9223372036854775808\r\n", RESP_NUMBER, INT64_MIN, NULL},
    {"$5\r\na\r\nbc\r\n", RESP_BULK, 0, "a\r\nbc"},
    {"$0\r\n\r\n", RESP_BULK, 0, ""},
    {"$-1\r\n", RESP_NULL, 0, NULL},
    {"*-1\r\n", RESP_NULL, 0, NULL},
    {"_\r\n", RESP_NULL, 0, NULL},
    {"*3\r\n", RESP_ARRAY, 3, NULL},
    {"%2\r\n", RESP_MAP, 2, NULL},
    {"#t\r\n", RESP_BOOL, 1, NULL},
    {"#f\r\n", RESP_BOOL, 0, NULL},
};

TEST(every_kind_of_value_is_read_and_every_cut_asks_for_more)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        size_t len = strlen(values[i].bytes);
        struct resp_value value;
        size_t at = 0;
        for (size_t cut = 0; cut < len; cut++) {
            CHECK_EQ(read_text(values[i].bytes, cut, &at, &value), HF_MORE);
            CHECK_EQ(at, 0);
        }
        CHECK_EQ(read_text(values[i].bytes, len, &at, &value), HF_OK);
        CHECK_EQ(at, len);
        CHECK_EQ(value.kind, values[i].kind);
        CHECK_EQ(value.number, values[i].number);
        if (values[i].text != NULL)
            CHECK_TEXT(value.text.data, value.text.len, values[i].text);
    }
}

TEST(what_is_not_a_reply_is_refused)
{
    static const char *const texts[] = {
        "OK\r\n",
        "+O\rK\r\n",
        ":\r\n",
        ":1x\r\n",
        ":- 1\r\n",
        ":9223372036854775808\r\n",
        ":0000000000000000000000001",
        "$-2\r\n",
        "$x\r\n",
        "$536870913\r\n",
        "$1\r\nab\r\n",
        "*-2\r\n",
        "*1000000000000\r\n",
        "%-1\r\n",
        "#x\r\n",
        "#tt\r\n",
        "_x\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct resp_value value;
        size_t at = 0;
        CHECK_EQ(read_text(texts[i], strlen(texts[i]), &at, &value),
                 HF_INVALID);
        CHECK_EQ(at, 0);
    }
}

TEST(a_line_without_end_is_given_up)
{
    static char text[RESP_BULK_MAX + 2];
    struct resp_value value;
    size_t at = 0;
    memset(text, 'a', sizeof text);
    text[0] = '+';
    CHECK_EQ(read_text(text, RESP_BULK_MAX + 1, &at, &value), HF_MORE);
    CHECK_EQ(read_text(text, RESP_BULK_MAX + 2, &at, &value), HF_INVALID);
}

TEST(skip_passes_nested_replies_whole)
{
    const char *text = "*3\r\n%1\r\n+a\r\n*2\r\n:1\r\n$1\r\nx\r\n*-1\r\n_\r\n"
                       "+next\r\n";
    size_t whole = strlen(text) - strlen("+next\r\n");
    size_t at = 0;
    for (size_t cut = 0; cut < whole; cut++) {
        CHECK_EQ(resp_skip(hf_bytes(text, cut), &at), HF_MORE);
        CHECK_EQ(at, 0);
    }
    CHECK_EQ(resp_skip(hf_bytes_text(text), &at), HF_OK);
    CHECK_EQ(at, whole);
    CHECK_EQ(resp_skip(hf_bytes_text(text), &at), HF_OK);
    CHECK_EQ(at, strlen(text));
}

TEST(a_million_levels_are_skipped_without_a_stack)
{
    struct hf_buf buf = {0};
    size_t at = 0;
    for (int i = 0; i < 1000000; i++)
        CHECK_EQ(resp_array(&buf, 1), HF_OK);
    CHECK_EQ(resp_skip(hf_buf_bytes(&buf), &at), HF_MORE);
    CHECK_EQ(resp_number(&buf, 1), HF_OK);
    CHECK_EQ(resp_skip(hf_buf_bytes(&buf), &at), HF_OK);
    CHECK_EQ(at, buf.len);
    hf_buf_destroy(&buf);
}

TEST(a_field_is_found_in_flat_arrays_and_in_maps)
{
    static const char *const texts[] = {
        "*6\r\n+a\r\n:1\r\n$5\r\nitems\r\n*2\r\n+token\r\n:0\r\n"
        "$5\r\ntoken\r\n:77\r\n",
        "%3\r\n+a\r\n:1\r\n$5\r\nitems\r\n*2\r\n+token\r\n:0\r\n"
        "$5\r\ntoken\r\n:77\r\n",
    };
    for (int i = 0; i < 2; i++) {
        struct hf_bytes text = hf_bytes_text(texts[i]);
        struct resp_value value;
        CHECK_EQ(resp_field(text, "token", &value), HF_OK);
        CHECK_EQ(value.kind, RESP_NUMBER);
        CHECK_EQ(value.number, 77);
        CHECK_EQ(resp_field(text, "tok", &value), HF_NOTFOUND);
        CHECK_EQ(resp_field(text, "items", &value), HF_OK);
        CHECK_EQ(value.kind, RESP_ARRAY);
        text.len -= 6;
        CHECK_EQ(resp_field(text, "token", &value), HF_MORE);
    }
    struct resp_value value;
    CHECK_EQ(resp_field(hf_bytes_text("-ERR\r\n"), "a", &value), HF_NOTFOUND);
    CHECK_EQ(resp_field(hf_bytes_text("*1\r\n+a\r\n"), "a", &value),
             HF_NOTFOUND);
}
