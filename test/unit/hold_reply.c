/* hold_reply.c - tests of how answers are written and read. */
#include "hold/reply.h"
#include "support/test.h"

TEST_ONE_THREAD;

static char memory[256];
static struct hf_buf body;

static void start(void)
{
    memset(memory, '#', sizeof memory);
    body = (struct hf_buf){.data = memory, .cap = sizeof memory};
}

TEST(a_value_has_the_documented_bytes)
{
    static const char expected[] = "M\3\0\0\0"
                                   "\x08T\2\0ab"
                                   "\x1cN\xfe\xff\xff\xff\xff\xff\xff\xff"
                                   "\x09L\2\0\0\0"
                                   "0"
                                   "T\0";

    start();
    reply_map(&body, 3);
    reply_field_text(&body, FIELD_ID, hf_bytes_text("ab"));
    reply_field_number(&body, FIELD_TOKEN, -2);
    reply_field(&body, FIELD_ITEMS);
    reply_list(&body, 2);
    reply_null(&body);
    reply_text(&body, hf_bytes(NULL, 0)); /* nothing to be copied from */
    CHECK_EQ(body.len, sizeof expected);
    CHECK(memcmp(body.data, expected, sizeof expected) == 0);
    CHECK_EQ(body.data[body.len], '#');
}

TEST(what_was_written_is_read_node_by_node)
{
    size_t at = 0;

    start();
    reply_map(&body, 1);
    reply_field(&body, FIELD_PRODUCTS);
    reply_list(&body, 3);
    reply_number(&body, INT64_MIN);
    reply_text(&body, hf_bytes_text("x"));
    reply_null(&body);
    struct hf_bytes bytes = hf_buf_bytes(&body);
    struct reply_node node = reply_next(bytes, &at);
    CHECK(node.kind == REPLY_MAP && node.count == 1);
    CHECK_EQ(reply_next_field(bytes, &at), FIELD_PRODUCTS);
    node = reply_next(bytes, &at);
    CHECK(node.kind == REPLY_LIST && node.count == 3);
    node = reply_next(bytes, &at);
    CHECK(node.kind == REPLY_NUMBER && node.number == INT64_MIN);
    node = reply_next(bytes, &at);
    CHECK_EQ(node.kind, REPLY_TEXT);
    CHECK_TEXT(node.text.data, node.text.len, "x");
    CHECK_EQ(reply_next(bytes, &at).kind, REPLY_NULL);
    CHECK_EQ(at, body.len);
}

/* Leaves something on the stack that nobody may take for an answer. */
__attribute__((noinline)) static void litter(void)
{
    char junk[1024];

    memset(junk, REPLY_TEXT, sizeof junk);
    __asm__ volatile("" : : "r"(junk) : "memory");
}

static int64_t number_of(enum hold_field field)
{
    litter();
    return reply_get_number(hf_buf_bytes(&body), field);
}

static size_t text_length_of(enum hold_field field)
{
    litter();
    return reply_get_text(hf_buf_bytes(&body), field).len;
}

TEST(what_is_not_there_is_0_or_empty)
{
    start(); /* no value at all */
    CHECK_EQ(number_of(FIELD_TOKEN), 0);
    CHECK_EQ(text_length_of(FIELD_NAME), 0);
    reply_number(&body, 7); /* no map */
    CHECK_EQ(number_of(FIELD_TOKEN), 0);
    CHECK_EQ(text_length_of(FIELD_NAME), 0);
    start();
    reply_map(&body, 0);
    CHECK_EQ(number_of(FIELD_TOKEN), 0);
    CHECK_EQ(text_length_of(FIELD_NAME), 0);
    start();
    reply_map(&body, 1);
    reply_field_number(&body, FIELD_COUNT, 7);
    CHECK_EQ(number_of(FIELD_TOKEN), 0);
    CHECK_EQ(text_length_of(FIELD_NAME), 0);
    CHECK_EQ(text_length_of(FIELD_COUNT), 0); /* a number is no text */
}

TEST(a_field_is_found_before_the_first_list_or_map_only)
{
    for (unsigned i = 0; i < 3; i++) {
        start();
        reply_map(&body, 3);
        reply_field_number(&body, FIELD_COUNT, 7);
        reply_field(&body, FIELD_ITEMS);
        if (i == 0)
            reply_list(&body, 0);
        else if (i == 1)
            reply_map(&body, 0);
        else
            reply_texts(&body, 0);
        reply_field_number(&body, FIELD_TOKEN, 8);
        CHECK_EQ(number_of(FIELD_COUNT), 7);
        CHECK_EQ(number_of(FIELD_TOKEN), 0);
    }
}

TEST(a_number_is_changed_where_it_stands)
{
    start();
    reply_map(&body, 3);
    reply_field_text(&body, FIELD_NAME, hf_bytes_text("door"));
    reply_field_number(&body, FIELD_SAFE_MS, 500);
    reply_field_number(&body, FIELD_COUNT, 1);
    reply_set_number(&body, FIELD_SAFE_MS, 20);
    CHECK_EQ(number_of(FIELD_SAFE_MS), 20);
    CHECK_EQ(number_of(FIELD_COUNT), 1);
    CHECK_EQ(text_length_of(FIELD_NAME), 4);
}

TEST(remaining_times_are_counted_down_to_0_and_nothing_else_is)
{
    static const struct {
        uint64_t passed_ms;
        int64_t safe_ms;
        int64_t expires_ms;
    } rows[] = {{0, 500, 900}, {1, 499, 899}, {500, 0, 400},     {501, 0, 399},
                {900, 0, 0},   {901, 0, 0},   {UINT64_MAX, 0, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start();
        reply_map(&body, 4);
        reply_field_number(&body, FIELD_HELD_MS, 700);
        reply_field_number(&body, FIELD_SAFE_MS, 500);
        reply_field_text(&body, FIELD_NAME, hf_bytes_text("door"));
        reply_field_number(&body, FIELD_EXPIRES_MS, 900);
        reply_age(&body, rows[i].passed_ms);
        CHECK_EQ(number_of(FIELD_HELD_MS), 700);
        CHECK_EQ(number_of(FIELD_SAFE_MS), rows[i].safe_ms);
        CHECK_EQ(number_of(FIELD_EXPIRES_MS), rows[i].expires_ms);
        CHECK_EQ(text_length_of(FIELD_NAME), 4);
    }
}

/* An answer without a value, one that is no map, and what stands behind a list
 * or a map, where the fields are those of its members. */
TEST(only_the_times_of_the_map_itself_are_counted_down)
{
    char before[sizeof memory];

    start();
    reply_age(&body, 5);
    CHECK_EQ(body.len, 0);
    reply_number(&body, 500);
    reply_age(&body, 5);
    size_t at = 0;
    CHECK_EQ(reply_next(hf_buf_bytes(&body), &at).number, 500);
    for (unsigned i = 0; i < 3; i++) {
        start();
        reply_map(&body, 2);
        reply_field(&body, FIELD_ITEMS);
        if (i == 0) {
            reply_list(&body, 1);
            reply_number(&body, 1);
        } else if (i == 1) {
            reply_texts(&body, 1);
            reply_text(&body, hf_bytes_text("a2"));
            reply_text(&body, hf_bytes_text("v572"));
        } else {
            reply_map(&body, 1);
            reply_field_number(&body, FIELD_EXPIRES_MS, 900);
        }
        reply_field_number(&body, FIELD_SAFE_MS, 500);
        memcpy(before, memory, sizeof memory);
        reply_age(&body, 5);
        CHECK(memcmp(before, memory, sizeof memory) == 0);
    }
}

TEST(a_number_is_no_text)
{
    start();
    reply_map(&body, 2);
    reply_field_number(&body, FIELD_TOKEN, 7);
    reply_field_text(&body, FIELD_OWNER, hf_bytes_text("ann"));
    struct hf_bytes text = reply_get_text(hf_buf_bytes(&body), FIELD_TOKEN);
    CHECK(text.data != NULL && text.len == 0);
    text = reply_get_text(hf_buf_bytes(&body), FIELD_OWNER);
    CHECK_TEXT(text.data, text.len, "ann");
}

TEST(every_field_and_every_code_has_a_name)
{
    for (unsigned i = 0; i < HOLD_FIELD_COUNT; i++) {
        const char *name = hold_field_name((enum hold_field)i);
        CHECK(name != NULL);
        for (unsigned k = 0; k < i; k++)
            CHECK(strcmp(name, hold_field_name((enum hold_field)k)) != 0);
    }
    for (unsigned i = 0; i < HOLD_ALL_CODES; i++)
        CHECK(hold_code_name((enum hold_code)i) != NULL);
    CHECK_TEXT(hold_code_name(HOLD_BADARG), 6, "BADARG");
    CHECK_TEXT(hold_field_name(FIELD_RESOURCE), 8, "resource");
}
