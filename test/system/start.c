/* start.c - a start that comes to nothing leaves everything as it was. */
#include <unistd.h>

#include "support/server.h"
#include "support/test.h"

static struct test_server server;
static struct test_wire wire;
static char dir[512]; /* the server's */

static void start(void)
{
    test_server_begin(&server, &wire, &(struct test_server_opts){.dir = dir});
}

static void stop(void)
{
    test_server_finish(&server, &wire);
}

static int64_t new_token(void)
{
    return test_number(test_ask(&wire, "LOCK x OWNER %llu TTL 1 WAIT 60000",
                                (unsigned long long)test_now_ms()),
                       "token");
}

static void fail_to_start(const char *port)
{
    struct hf_buf said = {0};

    for (int i = 0; i < 3; i++) {
        CHECK(test_holdfast(&said,
                            (const char *const[]){"serve", "--port", port,
                                                  "--dir", dir, NULL}) != 0);
        CHECK(strstr(said.data, "address already in use") != NULL);
        said.len = 0;
    }
    hf_buf_destroy(&said);
}

/* Neither is a clean end forgotten, nor an unclean one. */
TEST(a_start_whose_port_is_taken_skips_no_numbers)
{
    const int64_t gap = INT64_C(1) << 32;
    struct test_server other;
    char other_dir[600];
    char port[16];

    snprintf(dir, sizeof dir, "%s/own", test_folder());
    snprintf(other_dir, sizeof other_dir, "%s/other", test_folder());
    test_server_start(&other, &(struct test_server_opts){.dir = other_dir});
    snprintf(port, sizeof port, "%u", (unsigned)other.port);
    start();
    int64_t first = new_token();
    stop();
    fail_to_start(port);
    start();
    int64_t second = new_token();
    CHECK(second > first && second < first + gap);
    test_server_kill(&server);
    fail_to_start(port);
    start();
    int64_t third = new_token();
    CHECK(third > second + gap && third < second + 2 * gap);
    stop();
    CHECK_EQ(test_server_stop(&other), 0);
}

TEST(an_address_that_is_none_is_refused_before_anything_is_made)
{
    struct hf_buf said = {0};

    snprintf(dir, sizeof dir, "%s/none", test_folder());
    CHECK_EQ(
        test_holdfast(&said, (const char *const[]){"serve", "--bind", "nowhere",
                                                   "--dir", dir, NULL}),
        1);
    CHECK(strstr(said.data, "'nowhere' is not an IP address") != NULL);
    CHECK(access(dir, F_OK) != 0);
    hf_buf_destroy(&said);
}

/* Faults are for a server of the tests' own. */
TEST(the_environment_cannot_spoil_the_disk)
{
    snprintf(dir, sizeof dir, "%s/spoiled", test_folder());
    CHECK_EQ(setenv("HOLDFAST_FAULT", "write:0:eio", 1), 0);
    start();
    CHECK(new_token() > 0);
    stop();
    CHECK_EQ(unsetenv("HOLDFAST_FAULT"), 0);
}
