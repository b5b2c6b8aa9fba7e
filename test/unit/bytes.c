/* bytes.c - tests of views, buffers, glob patterns and numbers as text. */
#include "base/bytes.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

static bool is(const char *text, const char *upper)
{
    return hf_bytes_is(hf_bytes_text(text), upper);
}

static bool matches(const char *pattern, const char *text)
{
    return hf_bytes_match(hf_bytes_text(pattern), hf_bytes_text(text));
}

TEST(views_are_equal_by_content_and_length)
{
    CHECK(hf_bytes_equal(hf_bytes_text("abc"), hf_bytes("abcd", 3)));
    CHECK(!hf_bytes_equal(hf_bytes_text("abc"), hf_bytes_text("abd")));
    CHECK(!hf_bytes_equal(hf_bytes_text("abc"), hf_bytes_text("ab")));
    CHECK(hf_bytes_equal(hf_bytes(NULL, 0), hf_bytes_text("")));
    CHECK(!hf_bytes_equal(hf_bytes("a\0b", 3), hf_bytes("a\0c", 3)));
}

TEST(a_name_is_found_in_any_case_and_only_whole)
{
    CHECK(is("lock", "LOCK"));
    CHECK(is("LoCk", "LOCK"));
    CHECK(!is("loc", "LOCK"));
    CHECK(!is("locks", "LOCK"));
    CHECK(!is("", "LOCK"));
    CHECK(is("", ""));
    CHECK(!is("a", ""));
    CHECK(hf_bytes_is(hf_bytes(NULL, 0), ""));
    CHECK(!hf_bytes_is(hf_bytes("LOCK\0", 5), "LOCK"));
    CHECK(!is("@", "`")); /* 32 apart, as letters are, but not letters */
    CHECK(!is("{", "["));
}

TEST(glob_without_special_bytes_is_equality)
{
    CHECK(matches("", ""));
    CHECK(!matches("", "a"));
    CHECK(!matches("a", ""));
    CHECK(matches("abc", "abc"));
    CHECK(!matches("abc", "ab"));
    CHECK(!matches("ab", "abc"));
    CHECK(!matches("abc", "ABC"));
    CHECK(hf_bytes_match(hf_bytes("a\0b", 3), hf_bytes("a\0b", 3)));
}

TEST(glob_star_takes_any_run)
{
    CHECK(matches("*", ""));
    CHECK(matches("*", "anything"));
    CHECK(matches("***", ""));
    CHECK(matches("a*", "a"));
    CHECK(matches("*c", "abc"));
    CHECK(matches("a*c", "ac"));
    CHECK(matches("a*c", "abcbc"));
    CHECK(!matches("a*c", "abcb"));
    CHECK(matches("*a*b*", "xxaxxbxx"));
    CHECK(!matches("*a*b*", "xxbxxaxx"));
    CHECK(matches("*ab", "aab")); /* the star has to give way once */
}

TEST(glob_question_mark_takes_one_byte)
{
    CHECK(matches("?", "a"));
    CHECK(!matches("?", ""));
    CHECK(!matches("?", "ab"));
    CHECK(matches("a?c", "abc"));
    CHECK(matches("?*", "abc"));
    CHECK(!matches("?*", ""));
}

TEST(glob_sets)
{
    CHECK(matches("[abc]", "b"));
    CHECK(!matches("[abc]", "d"));
    CHECK(matches("[a-c]x", "bx"));
    CHECK(matches("[c-a]", "b")); /* a range the wrong way round */
    CHECK(!matches("[^a-c]", "b"));
    CHECK(matches("[^a-c]", "d"));
    CHECK(matches("[a\\]]", "]"));
    CHECK(matches("[a-]", "-"));
    CHECK(matches("*[0-9]", "item7"));
    CHECK(!matches("[]", "a")); /* an empty set takes nothing */
    CHECK(matches("[^]", "a"));
}

TEST(glob_sets_that_do_not_end)
{
    CHECK(!matches("[", "[")); /* an empty set */
    CHECK(matches("[ab", "a"));
    CHECK(!matches("[ab", "c"));
    CHECK(!matches("[ab", "ab"));
    CHECK(matches("[^", "a"));
    CHECK(!matches("[a-", ""));
}

TEST(glob_backslash_takes_the_next_byte_as_it_is)
{
    CHECK(matches("\\*", "*"));
    CHECK(!matches("\\*", "a"));
    CHECK(matches("\\?", "?"));
    CHECK(matches("\\[a]", "[a]"));
    CHECK(matches("\\\\", "\\"));
    CHECK(matches("\\", "\\")); /* at the end it stands for itself */
}

/* Exponential matchers need longer than the age of the world for this. */
TEST(glob_work_is_bounded_for_hostile_patterns)
{
    char text[4096];
    struct hf_buf pattern = {0};

    memset(text, 'a', sizeof text);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hf_buf_append(&pattern, "*a", 2), HF_OK);
    CHECK_EQ(hf_buf_append(&pattern, "b", 1), HF_OK);
    CHECK(!hf_bytes_match(hf_buf_bytes(&pattern), hf_bytes(text, sizeof text)));
    hf_buf_destroy(&pattern);
}

static uint64_t steps_of(const char *pattern, const char *text)
{
    uint64_t steps = 7; /* added to */

    hf_bytes_match_steps(hf_bytes_text(pattern), hf_bytes_text(text), &steps);
    return steps - 7;
}

/* A set is one look, of as many steps as it has bytes. */
TEST(glob_gives_up_beyond_so_many_steps)
{
    struct hf_bytes pattern = hf_bytes_text("*aaab");
    struct hf_bytes text = hf_bytes_text("aaaaaaaaaaaaaaaaaaaaaab");
    uint64_t all = 0;

    CHECK(hf_bytes_match_steps(pattern, text, &all));
    for (uint64_t most = 0; most <= all + 1; most++) {
        uint64_t steps = 0;
        bool hit = hf_bytes_match_within(pattern, text, most, &steps);
        CHECK_EQ(hit, most + 1 >= all);
        CHECK(steps <= most + 1);
    }
}

TEST(glob_tells_the_steps_it_took)
{
    CHECK_EQ(steps_of("abc", "abc"), 3);
    CHECK_EQ(steps_of("abc", "xbc"), 0); /* the first byte decides */
    CHECK_EQ(steps_of("abc", "abx"), 2);
    CHECK_EQ(steps_of("*", "a text that is not looked at"), 0);
    CHECK_EQ(steps_of("a*", "a text that is not looked at"), 1);
    CHECK_EQ(steps_of("[a-z]", "q"), 5); /* a set is as long as it is */
    CHECK_EQ(steps_of("", ""), 0);
    CHECK_EQ(steps_of("****", ""), 4);
    /* each byte of the text is tried as the start of "aab" */
    CHECK(steps_of("*aab", "aaaaaaaaaa") >= 20);
    CHECK(steps_of("*aab", "aaaaaaaaaa") <= 40);
}

TEST(glob_gives_up_beyond_a_bound)
{
    struct hf_bytes pattern = hf_bytes_text("*aab");
    struct hf_bytes text = hf_bytes_text("aaaaaaaaaaaaaaab");
    uint64_t needed = steps_of("*aab", "aaaaaaaaaaaaaaab");
    uint64_t steps = 0;

    CHECK(hf_bytes_match_within(pattern, text, needed, &steps));
    CHECK_EQ(steps, needed);
    steps = 0;
    CHECK(!hf_bytes_match_within(pattern, text, 7, &steps));
    CHECK_EQ(steps, 8);
}

/* The definition, word for word; exponential, so for short texts only. */
static bool naive(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return naive(pattern + 1, text) ||
               (*text != '\0' && naive(pattern, text + 1));
    return *text != '\0' && (*pattern == '?' || *pattern == *text) &&
           naive(pattern + 1, text + 1);
}

TEST(glob_agrees_with_its_definition_on_random_input)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 100000; i++) {
        char pattern[9] = {0};
        char text[9] = {0};
        uint64_t pattern_len = hf_random_below(&random, sizeof pattern);
        uint64_t text_len = hf_random_below(&random, sizeof text);
        for (uint64_t j = 0; j < pattern_len; j++)
            pattern[j] = "ab*?"[hf_random_below(&random, 4)];
        for (uint64_t j = 0; j < text_len; j++)
            text[j] = "ab"[hf_random_below(&random, 2)];
        if (matches(pattern, text) != naive(pattern, text))
            test_fail(__FILE__, __LINE__, "%s against %s", pattern, text);
    }
}

TEST(buffer_appends_grows_and_is_empty_after_release)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_append(&buf, NULL, 0), HF_OK);
    CHECK_EQ(buf.len, 0);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_buf_append(&buf, "0123456789", 10), HF_OK);
    CHECK_EQ(buf.len, 10000);
    CHECK_TEXT(buf.data + 9990, 10, "0123456789");
    hf_buf_destroy(&buf);
    CHECK(buf.data == NULL);
    CHECK_EQ(buf.len, 0);
    CHECK_EQ(buf.cap, 0);
    hf_buf_destroy(&buf); /* an empty buffer may be released again */
}

TEST(reserved_room_is_there_without_another_allocation)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_reserve(&buf, 1000), HF_OK);
    CHECK(buf.cap >= 1000);
    CHECK_EQ(buf.len, 0);
    uint64_t before = hf_memory_count();
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_buf_append(&buf, "x", 1), HF_OK);
    CHECK_EQ(hf_memory_count(), before);
    hf_buf_destroy(&buf);
}

TEST(buffers_grow_in_few_steps)
{
    struct hf_buf buf = {0};
    uint64_t before = hf_memory_count();

    for (int i = 0; i < 1 << 20; i++)
        CHECK_EQ(hf_buf_append(&buf, "x", 1), HF_OK);
    CHECK(hf_memory_count() - before <= 20);
    hf_buf_destroy(&buf);
}

TEST(a_size_that_overflows_is_out_of_memory_and_changes_nothing)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_append(&buf, "abc", 3), HF_OK);
    CHECK_EQ(hf_buf_reserve(&buf, SIZE_MAX), HF_NOMEM);
    CHECK_EQ(hf_buf_reserve(&buf, SIZE_MAX - 3), HF_NOMEM);
    CHECK_EQ(hf_buf_reserve(&buf, SIZE_MAX / 2 + 1), HF_NOMEM);
    CHECK_TEXT(buf.data, buf.len, "abc");
    hf_buf_destroy(&buf);
}

TEST(a_failed_allocation_leaves_the_buffer_as_it_was)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_append(&buf, "abc", 3), HF_OK);
    size_t cap = buf.cap;
    char *data = buf.data;
    char more[1024] = {0};

    hf_memory_fail_after(0);
    CHECK_EQ(hf_buf_append(&buf, more, sizeof more), HF_NOMEM);
    CHECK_EQ(hf_buf_reserve(&buf, sizeof more), HF_NOMEM);
    CHECK_EQ(hf_buf_format(&buf, "%1024d", 1), HF_NOMEM);
    CHECK_EQ(hf_buf_append(&buf, "d", 1), HF_OK); /* there is room */
    hf_memory_fail_never();
    CHECK(buf.data == data);
    CHECK_EQ(buf.cap, cap);
    CHECK_TEXT(buf.data, buf.len, "abcd");
    hf_buf_destroy(&buf);

    hf_memory_fail_after(0);
    CHECK_EQ(hf_buf_append(&buf, "x", 1), HF_NOMEM);
    hf_memory_fail_never();
    CHECK(buf.data == NULL);
}

TEST(format_appends_text_without_an_end_mark)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_format(&buf, "%s=%d", "a", 1), HF_OK);
    CHECK_EQ(hf_buf_format(&buf, "%s", ""), HF_OK);
    CHECK_EQ(hf_buf_format(&buf, ";%s=%d", "b", -2), HF_OK);
    CHECK_TEXT(buf.data, buf.len, "a=1;b=-2");
    CHECK_EQ(hf_buf_format(&buf, "%500s", "x"), HF_OK);
    CHECK_EQ(buf.len, 8 + 500);
    CHECK_EQ(buf.data[buf.len - 1], 'x');
    hf_buf_destroy(&buf);
}

/* Formatting writes an end mark behind the text, which needs room as well. */
TEST(format_that_fills_a_buffer_stays_inside_it)
{
    for (int width = 1; width <= 300; width++) {
        struct hf_buf buf = {0};
        CHECK_EQ(hf_buf_format(&buf, "%*d", width, 1), HF_OK);
        CHECK_EQ(buf.len, width);
        CHECK(buf.cap > buf.len);
        hf_buf_destroy(&buf);
    }
}

TEST(consume_drops_from_the_front)
{
    struct hf_buf buf = {0};

    hf_buf_consume(&buf, 0); /* of an empty buffer */
    CHECK_EQ(hf_buf_append(&buf, "abcdef", 6), HF_OK);
    hf_buf_consume(&buf, 0);
    CHECK_TEXT(buf.data, buf.len, "abcdef");
    hf_buf_consume(&buf, 2);
    CHECK_TEXT(buf.data, buf.len, "cdef");
    hf_buf_consume(&buf, 4);
    CHECK_EQ(buf.len, 0);
    CHECK_EQ(hf_buf_append(&buf, "x", 1), HF_OK);
    CHECK_TEXT(buf.data, buf.len, "x");
    hf_buf_destroy(&buf);
}

static void check_u64(const char *text, enum hf_status status, uint64_t number)
{
    uint64_t found = 77;

    CHECK_EQ(hf_parse_u64(hf_bytes_text(text), &found), status);
    CHECK_EQ(found, status == HF_OK ? number : 77);
}

TEST(unsigned_numbers_are_digits_only_and_fit_64_bits)
{
    check_u64("0", HF_OK, 0);
    check_u64("007", HF_OK, 7);
    check_u64("18446744073709551615", HF_OK, UINT64_MAX);
    check_u64("18446744073709551616", HF_INVALID, 0);
    check_u64("18446744073709551620", HF_INVALID, 0);
    check_u64("99999999999999999999999", HF_INVALID, 0);
    check_u64("0000000000000000000000000001", HF_OK, 1);
    check_u64("", HF_INVALID, 0);
    check_u64("-1", HF_INVALID, 0);
    check_u64("+1", HF_INVALID, 0);
    check_u64(" 1", HF_INVALID, 0);
    check_u64("1 ", HF_INVALID, 0);
    check_u64("1.0", HF_INVALID, 0);
    check_u64("0x1", HF_INVALID, 0);
    check_u64("1e3", HF_INVALID, 0);
    check_u64("/", HF_INVALID, 0); /* the bytes beside the digits */
    check_u64(":", HF_INVALID, 0);
    check_u64("\xd9\xa1", HF_INVALID, 0); /* a digit, but not an ASCII one */
}

static void check_i64(const char *text, enum hf_status status, int64_t number)
{
    int64_t found = 77;

    CHECK_EQ(hf_parse_i64(hf_bytes_text(text), &found), status);
    CHECK_EQ(found, status == HF_OK ? number : 77);
}

TEST(signed_numbers_take_one_minus)
{
    check_i64("0", HF_OK, 0);
    check_i64("-0", HF_OK, 0);
    check_i64("-1", HF_OK, -1);
    check_i64("9223372036854775807", HF_OK, INT64_MAX);
    check_i64("9223372036854775808", HF_INVALID, 0);
    check_i64("-9223372036854775808", HF_OK, INT64_MIN);
    check_i64("-9223372036854775809", HF_INVALID, 0);
    check_i64("-18446744073709551615", HF_INVALID, 0);
    check_i64("", HF_INVALID, 0);
    check_i64("-", HF_INVALID, 0);
    check_i64("--1", HF_INVALID, 0);
    check_i64("+1", HF_INVALID, 0);
    check_i64("- 1", HF_INVALID, 0);
}

TEST(numbers_are_parsed_from_views_without_an_end_mark)
{
    uint64_t number = 0;

    CHECK_EQ(hf_parse_u64(hf_bytes("1234", 2), &number), HF_OK);
    CHECK_EQ(number, 12);
    CHECK_EQ(hf_parse_u64(hf_bytes("1\0", 2), &number), HF_INVALID);
}

static void check_print(uint64_t number, const char *expected)
{
    char out[HF_DIGITS_MAX];
    size_t len = hf_print_u64(out, number);

    CHECK_TEXT(out, len, expected);
}

TEST(numbers_are_printed_in_decimal)
{
    check_print(0, "0");
    check_print(9, "9");
    check_print(10, "10");
    check_print(1000000007, "1000000007");
    check_print(UINT64_MAX, "18446744073709551615");
}

/* Every number of digits, with and without zeros among them. */
TEST(numbers_are_printed_without_leading_zeros)
{
    uint64_t power = 1;

    for (int digits = 1; digits < 20; digits++) {
        power *= 10;
        uint64_t numbers[] = {power - 1, power, power + 1, power * 7 / 3};
        for (int i = 0; i < 4; i++) {
            char expected[HF_DIGITS_MAX + 1];
            snprintf(expected, sizeof expected, "%llu",
                     (unsigned long long)numbers[i]);
            check_print(numbers[i], expected);
        }
    }
}

TEST(what_is_printed_is_parsed_to_the_same_number)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 10000; i++) {
        uint64_t number =
            hf_random_next(&random) >> hf_random_below(&random, 64);
        uint64_t found = 0;
        char out[HF_DIGITS_MAX];
        size_t len = hf_print_u64(out, number);
        CHECK_EQ(hf_parse_u64(hf_bytes(out, len), &found), HF_OK);
        CHECK_EQ(found, number);
    }
}

TEST(utf8_is_told_from_what_is_none)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {{"a", 1},
                {"\x7f", 1},
                {"\xc3\xa9", 2},
                {"\xe2\x82\xac", 3},
                {"\xf0\x9f\x98\x80", 4},
                {"\xf4\x8f\xbf\xbf", 4},
                {"\x80", 0},             /* no first byte */
                {"\xc3", 0},             /* cut */
                {"\xc3(", 0},            /* no second byte */
                {"\xc1\xbf", 0},         /* over-long */
                {"\xe0\x9f\xbf", 0},     /* the same */
                {"\xf0\x8f\xbf\xbf", 0}, /* the same */
                {"\xed\xa0\x80", 0},     /* surrogate */
                {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
                {"\xf5\x80\x80\x80", 0},
                {"\xff", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(hf_utf8_len(hf_bytes_text(rows[i].text)), rows[i].len);
}

TEST(signs_are_escaped_and_line_ends_written_out)
{
    struct hf_buf buf = {0};

    CHECK_EQ(hf_buf_escape(&buf, "a\"b\\\n", "\"\\"), HF_OK);
    CHECK_EQ(hf_buf_escape(&buf, "\"\\", "\\"), HF_OK);
    CHECK_TEXT(buf.data, buf.len, "a\\\"b\\\\\\n\"\\\\");
    hf_buf_destroy(&buf);
}

TEST(a_byte_is_found_wherever_it_is)
{
    char text[40];

    for (size_t len = 0; len <= sizeof text; len++) {
        memset(text, 'x', sizeof text);
        CHECK(!hf_bytes_have(hf_bytes(text, len), '/'));
        memset(text, '.', sizeof text); /* the next smaller byte */
        CHECK(!hf_bytes_have(hf_bytes(text, len), '/'));
        memset(text, 0x2f ^ 0x80, sizeof text);
        CHECK(!hf_bytes_have(hf_bytes(text, len), '/'));
        for (size_t i = 0; i < sizeof text; i++) {
            memset(text, 'x', sizeof text);
            text[i] = '/';
            CHECK_EQ(hf_bytes_have(hf_bytes(text, len), '/'), i < len);
        }
    }
}
