/* hear.h - what a subscriber is told, for tests. */
#ifndef TEST_SUPPORT_HEAR_H
#define TEST_SUPPORT_HEAR_H

#include <inttypes.h>
#include <stdio.h>

#include "support/json.h"
#include "support/test.h"
#include "support/wire.h"

static inline bool is_text(struct hf_bytes bulk, const char *text)
{
    return hf_bytes_equal(test_bulk(bulk), hf_bytes_text(text));
}

/* The next message of `from` is on this channel, and by this pattern unless
 * that is NULL; its text. */
static inline struct hf_bytes hear(struct test_wire *from, const char *pattern,
                                   const char *channel)
{
    struct hf_bytes told = TEST_ANSWER(from);
    size_t at = pattern != NULL;

    CHECK_EQ(test_length(told), 3 + at);
    CHECK(is_text(test_element(told, 0), at ? "pmessage" : "message"));
    if (pattern != NULL)
        CHECK(is_text(test_element(told, 1), pattern));
    if (!is_text(test_element(told, at + 1), channel))
        test_fail(__FILE__, __LINE__, "expected %s, got %.*s", channel,
                  HF_SHOW(told));
    return test_bulk(test_element(told, at + 2));
}

/* The same, of an event; its number. */
static inline int64_t hear_event(struct test_wire *from, const char *pattern,
                                 const char *channel, const char *kind)
{
    struct hf_bytes text = hear(from, pattern, channel);

    CHECK(test_json_is_object(text));
    struct hf_bytes found = test_json_field(text, "kind");
    CHECK_TEXT(found.data, found.len, kind);
    CHECK(test_json_number(text, "at_ms") > 1600000000000);
    return test_json_number(text, "seq");
}

/* Nothing was told that was not read. */
static inline void expect_silence(struct test_wire *from)
{
    TEST_SEND(from, "PING still");
    CHECK(memmem(TEST_ANSWER(from).data, 40, "still", 5) != NULL);
}

/* Reads a confirmation. */
static inline void expect_count(struct test_wire *from, const char *what,
                                const char *name, int64_t count)
{
    struct hf_bytes told = TEST_ANSWER(from);
    char number[32];

    snprintf(number, sizeof number, ":%" PRId64 "\r\n", count);
    CHECK_EQ(test_length(told), 3);
    CHECK(is_text(test_element(told, 0), what));
    CHECK(is_text(test_element(told, 1), name));
    CHECK(test_is(test_element(told, 2), number));
}

static inline int64_t token_of(struct hf_bytes reply)
{
    int64_t token = test_number(reply, "token");

    CHECK(token > 0);
    return token;
}

#endif
