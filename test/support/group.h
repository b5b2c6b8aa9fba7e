/* group.h - MULTI, commands and EXEC in one write, for tests. */
#ifndef TEST_SUPPORT_GROUP_H
#define TEST_SUPPORT_GROUP_H

#include <stdarg.h>
#include <stdio.h>

#include "support/test.h"
#include "support/wire.h"

#define GROUP_TEXT_MAX 4096

/* Adds MULTI and the commands, which "; " separates. How many they are. */
static inline int add_multi(struct test_wire *wire, const char *commands)
{
    int count = 0;

    test_wire_add(wire, "MULTI");
    for (const char *at = commands; *at != '\0'; count++) {
        const char *end = strstr(at, "; ");
        int len = (int)(end == NULL ? strlen(at) : (size_t)(end - at));
        test_wire_add(wire, "%.*s", len, at);
        at += len + (end == NULL ? 0 : 2);
    }
    return count;
}

/* Reads what MULTI and so many commands were answered. */
static inline void expect_queued(struct test_wire *wire, int count)
{
    CHECK_REPLY(TEST_ANSWER(wire), "+OK");
    for (int i = 0; i < count; i++)
        CHECK_REPLY(TEST_ANSWER(wire), "+QUEUED");
}

/* Sends a group in one write. The answer to `exec`. */
static inline struct hf_bytes
ask_group(struct test_wire *wire, const char *exec, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline struct hf_bytes
ask_group(struct test_wire *wire, const char *exec, const char *format, ...)
{
    char commands[GROUP_TEXT_MAX];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(commands, sizeof commands, format, args);
    va_end(args);
    CHECK(len >= 0 && len < (int)sizeof commands);
    int count = add_multi(wire, commands);
    TEST_SEND(wire, "%s", exec);
    expect_queued(wire, count);
    return TEST_ANSWER(wire);
}

#endif
