/* test.h - the test runner: TEST(name) { CHECK(...); }
 *
 * Each file under test/unit is one program. A failed check prints one line
 * (file, line, test, what was expected and what was found), ends that test and
 * lets the next one run. The program's last line counts both kinds.
 *
 *   build/test/unit/rate            runs all tests of the file
 *   build/test/unit/rate burst      only those whose name contains "burst"
 */
#ifndef TEST_SUPPORT_TEST_H
#define TEST_SUPPORT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/failing.h"

void test_register(const char *name, void (*body)(void));
/* Ends the running test as failed; does not return. */
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* TEST_SEED from the environment, else a fixed one; printed on failure. */
uint64_t test_seed(void);
void test_one_thread(void);
/* A new empty folder under $TMPDIR or /tmp, removed when the test ends. */
const char *test_folder(void);
/* Removes a folder with all that is in it. */
void test_remove(const char *path);
/* Makes that folder in memory, where there is such a file system, if it is not
 * made yet: for tests of many files in which only the process dies. */
void test_folder_in_memory(void);

#define TEST(name)                                                 \
    static void test_##name(void);                                 \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        test_register(#name, test_##name);                         \
    }                                                              \
    static void test_##name(void)

/* Says that no test of the file starts a thread, and makes every start fail.
 * tools/test then does not run it under the thread sanitizer, which would find
 * nothing and take long. */
#define TEST_ONE_THREAD                                       \
    __attribute__((constructor)) static void one_thread(void) \
    {                                                         \
        test_one_thread();                                    \
    }                                                         \
    _Static_assert(1, "for the semicolon")

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition))                                             \
            test_fail(__FILE__, __LINE__, "expected %s", #condition); \
    } while (0)

/* Integers of any type, compared as 64 bits. */
#define CHECK_EQ(found, expected)                                          \
    do {                                                                   \
        int64_t found_ = (int64_t)(found);                                 \
        int64_t expected_ = (int64_t)(expected);                           \
        if (found_ != expected_)                                           \
            test_fail(__FILE__, __LINE__,                                  \
                      "expected %s == %s, got %lld and %lld", #found,      \
                      #expected, (long long)found_, (long long)expected_); \
    } while (0)

/* `found` is bytes of length `len`, `expected` a C string. */
#define CHECK_TEXT(found, len, expected) \
    test_check_text(__FILE__, __LINE__, (found), (len), (expected))

void test_check_text(const char *file, int line, const char *found, size_t len,
                     const char *expected);

#endif
