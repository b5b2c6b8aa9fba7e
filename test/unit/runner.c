/* runner.c - tests of the test runner: does a failure show, in one line?
 *
 * The program runs itself again. In that second life, told by an environment
 * variable, it has the `inner_` tests below, most of which fail.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "support/test.h"

#define LIFE "HOLDFAST_RUNNER_INNER"

static void inner_run_passes(void)
{
    CHECK(true);
}

static void inner_run_check_fails(void)
{
    CHECK(1 + 1 == 3);
}

static void inner_run_eq_fails(void)
{
    int found = 41;
    CHECK_EQ(found, 42);
}

static void inner_run_text_fails(void)
{
    CHECK_TEXT("abcd", 3, "abd");
}

static void inner_run_folder_fails(void)
{
    test_fail("folder", 1, "%s", test_folder());
}

static void inner_dies(void)
{
    abort();
}

__attribute__((constructor)) static void register_inner(void)
{
    if (getenv(LIFE) == NULL)
        return;
    test_register("inner_run_check_fails", inner_run_check_fails);
    test_register("inner_run_eq_fails", inner_run_eq_fails);
    test_register("inner_run_text_fails", inner_run_text_fails);
    test_register("inner_run_folder_fails", inner_run_folder_fails);
    test_register("inner_run_passes", inner_run_passes);
    test_register("inner_dies", inner_dies);
}

/* The second life: what it printed, and its status as wait() tells it. */
struct life {
    char text[4096];
    int status;
};

static void live(struct life *life, const char *environment, const char *filter)
{
    char self[512];
    char command[1024];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    CHECK(len > 0);
    self[len] = '\0';
    snprintf(command, sizeof command, "%s %s=1 '%s' '%s' 2>&1", environment,
             LIFE, self, filter);
    FILE *output = popen(command, "r");
    CHECK(output != NULL);
    size_t used = fread(life->text, 1, sizeof life->text - 1, output);
    life->text[used] = '\0';
    life->status = pclose(output);
}

static bool says(const struct life *life, const char *text)
{
    return strstr(life->text, text) != NULL;
}

static int line_count(const struct life *life)
{
    int count = 0;

    for (const char *c = life->text; *c != '\0'; c++)
        count += *c == '\n';
    return count;
}

TEST(a_passing_test_prints_only_the_count)
{
    struct life life;

    live(&life, "", "inner_run_passes");
    CHECK_EQ(life.status, 0);
    CHECK_EQ(line_count(&life), 1);
    CHECK(says(&life, ": 1 passed, 0 failed\n"));
}

TEST(a_failed_check_prints_one_line_with_the_place_and_the_condition)
{
    struct life life;

    live(&life, "", "inner_run_check_fails");
    CHECK_EQ(WEXITSTATUS(life.status), 1);
    CHECK_EQ(line_count(&life), 2);
    CHECK(says(&life, __FILE__ ":"));
    CHECK(says(&life, ": inner_run_check_fails: expected 1 + 1 == 3 (seed "));
    CHECK(says(&life, ": 0 passed, 1 failed\n"));
}

TEST(a_failed_comparison_prints_both_sides)
{
    struct life life;

    live(&life, "", "inner_run_eq_fails");
    CHECK_EQ(line_count(&life), 2);
    CHECK(
        says(&life, "inner_run_eq_fails: expected found == 42, got 41 and 42"));
    live(&life, "", "inner_run_text_fails");
    CHECK_EQ(line_count(&life), 2);
    CHECK(says(&life, "inner_run_text_fails: expected \"abd\", got \"abc\""));
}

TEST(the_tests_after_a_failure_run_and_both_kinds_are_counted)
{
    struct life life;

    live(&life, "", "inner_run_"); /* all but the one that dies */
    CHECK_EQ(WEXITSTATUS(life.status), 1);
    CHECK(says(&life, ": 1 passed, 4 failed\n"));
}

TEST(a_test_that_dies_leaves_no_count)
{
    struct life life;

    live(&life, "", "inner_dies");
    CHECK(life.status != 0);
    CHECK(!says(&life, " passed, "));
}

TEST(the_seed_comes_from_the_environment_and_is_printed)
{
    struct life life;

    live(&life, "TEST_SEED=12345", "inner_run_check_fails");
    CHECK(says(&life, "(seed 12345)"));
    live(&life, "TEST_SEED=nonsense", "inner_run_check_fails");
    CHECK(says(&life, "(seed 20261115)"));
}

TEST(the_folder_of_a_test_is_removed_even_if_it_fails)
{
    struct life life;
    char *path = NULL;

    live(&life, "", "inner_run_folder_fails");
    path = strchr(life.text, '/');
    CHECK(path != NULL);
    *strchr(path, ' ') = '\0';
    CHECK(strstr(path, "holdfast-test-") != NULL);
    CHECK(access(path, F_OK) != 0);
}

TEST(the_folder_of_a_test_is_new_and_empty)
{
    const char *folder = test_folder();

    CHECK_EQ(access(folder, R_OK | W_OK | X_OK), 0);
    CHECK_EQ(rmdir(folder), 0);
    CHECK(folder == test_folder()); /* one folder for one test */
}
