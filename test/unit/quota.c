/* quota.c - tests of how many processors are taken for ours, on made-up file
 * trees. */
#include "exec/quota.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/thread.h"
#include "support/test.h"

/* Writes a file below `root`; the folders are made. */
static void put(const char *root, const char *path, const char *text)
{
    char name[512];

    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = name + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        (void)mkdir(name, 0700);
        *at = '/';
    }
    FILE *file = fopen(name, "we");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static uint32_t at_most(uint32_t quota)
{
    return quota < hf_cpu_count() ? quota : hf_cpu_count();
}

TEST(without_files_the_processors_count)
{
    CHECK_EQ(hf_cpu_share_at(test_folder()), hf_cpu_count());
    CHECK(hf_cpu_share() >= 1);
    CHECK(hf_cpu_share() <= hf_cpu_count());
}

TEST(a_quota_is_rounded_up)
{
    const char *root = test_folder();

    put(root, "/proc/self/cgroup", "0::/a/b\n");
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "100001 100000\n");
    CHECK_EQ(hf_cpu_share_at(root), at_most(2));
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
}

TEST(the_smallest_of_those_above_counts)
{
    const char *root = test_folder();

    put(root, "/proc/self/cgroup", "1:name=x:/y\n0::/a/b\n");
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup/a/cpu.max", "10000 100000\n");
    put(root, "/sys/fs/cgroup/cpu.max", "800000 100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
    put(root, "/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup/cpu.max", "20000 100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
}

TEST(nonsense_is_passed_over)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "0 100000\n",
                                        "100000 0\n",
                                        "abc",
                                        "1",
                                        "99999999999999999999999 1\n"};
    const char *root = test_folder();

    put(root, "/proc/self/cgroup", "0::/\n");
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        put(root, "/sys/fs/cgroup/cpu.max", texts[i]);
        CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
    }
    put(root, "/proc/self/cgroup", "nothing of ours\n");
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
}

/* ---- Version 1. ---- */

#define V1 "/sys/fs/cgroup/cpu,cpuacct"

TEST(a_quota_of_version_1_is_rounded_up)
{
    const char *root = test_folder();

    put(root, "/proc/self/cgroup",
        "12:memory:/x\n4:cpu,cpuacct:/a/b\n3:cpuset:/c\n");
    put(root, V1 "/a/b/cpu.cfs_quota_us", "50000\n");
    put(root, V1 "/a/b/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
    put(root, V1 "/a/b/cpu.cfs_quota_us", "100001\n");
    CHECK_EQ(hf_cpu_share_at(root), at_most(2));
    put(root, V1 "/a/b/cpu.cfs_quota_us", "-1\n"); /* none */
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
}

TEST(of_version_1_too_the_smallest_of_those_above_counts)
{
    const char *root = test_folder();

    put(root, "/proc/self/cgroup", "4:cpuacct,cpu:/a/b\n0::/z\n");
    put(root, "/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    put(root, "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "10000\n");
    put(root, "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
}

/* A container without a namespace of its own reads the host's path, but sees
 * its own group as the root. */
TEST(a_path_that_is_not_there_leads_to_the_root)
{
    const char *root = test_folder();

    put(root, "/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
    put(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "20000\n");
    put(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
}

TEST(other_controllers_and_nonsense_of_version_1_are_passed_over)
{
    static const char *const texts[] = {"", "\n", "0\n", "abc", "-", "-5\n"};
    const char *root = test_folder();

    put(root, V1 "/cpu.cfs_quota_us", "10000\n");
    put(root, V1 "/cpu.cfs_period_us", "100000\n");
    put(root, "/proc/self/cgroup", "4:cpuset,cpuacct:/\n");
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
    put(root, "/proc/self/cgroup", "4:cpu,cpuacct:/\n");
    CHECK_EQ(hf_cpu_share_at(root), 1);
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        put(root, V1 "/cpu.cfs_quota_us", texts[i]);
        CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
    }
    put(root, V1 "/cpu.cfs_quota_us", "10000\n");
    put(root, V1 "/cpu.cfs_period_us", "0\n");
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
    put(root, "/proc/self/cgroup", "4\n5:cpu\n6:cpu:\n:::\n");
    CHECK_EQ(hf_cpu_share_at(root), hf_cpu_count());
}
