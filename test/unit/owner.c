/* owner.c - tests of the owner that a lock has by default. */
#include "cli/owner.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

TEST(host_process_and_random_part_stand_in_this_order)
{
    char owner[OWNER_BYTES];

    owner_print(owner, "web-3", 4711, 0x9f2c41d07be35a18);
    CHECK_TEXT(owner, strlen(owner), "web-3:4711:9f2c41d07be35a18");
    owner_print(owner, "", 1, 0); /* a machine without a name */
    CHECK_TEXT(owner, strlen(owner), ":1:0000000000000000");
}

TEST(a_long_host_is_cut_and_the_rest_is_whole)
{
    char host[1000];
    char owner[OWNER_BYTES];

    memset(host, 'h', sizeof host);
    host[sizeof host - 1] = '\0';
    owner_print(owner, host, INT64_MIN, UINT64_MAX);
    CHECK(strlen(owner) <= HOLD_OWNER_MAX);
    CHECK(strstr(owner, ":-9223372036854775808:ffffffffffffffff") != NULL);
}

TEST(no_two_are_the_same_in_one_process)
{
    static char owners[64][OWNER_BYTES];

    for (int i = 0; i < 64; i++) {
        CHECK_EQ(owner_make(owners[i]), HF_OK);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(owners[i], owners[j]) != 0);
    }
}

/* What is left without host and pid still tells two processes apart: in two
 * containers both are often the same. */
TEST(the_random_part_alone_tells_two_processes_apart)
{
    char mine[OWNER_BYTES];
    char other[OWNER_BYTES];
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        bool done = owner_make(mine) == HF_OK &&
                    write(ends[1], mine, sizeof mine) == sizeof mine;
        _exit(done ? 0 : 1);
    }
    CHECK_EQ(owner_make(mine), HF_OK);
    CHECK_EQ(read(ends[0], other, sizeof other), sizeof other);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    CHECK(strcmp(strrchr(mine, ':'), strrchr(other, ':')) != 0);
}
