/* quota.c - reads the CPU quota of the process's cgroup and of those above it.
 *
 * Version 2: /proc/self/cgroup has a line `0::/a/b`. Each of
 * /sys/fs/cgroup/a/b/cpu.max, .../a/cpu.max, .../cpu.max may say
 * `QUOTA PERIOD` in microseconds, or `max PERIOD`.
 *
 * Version 1: a line `4:cpu,cpuacct:/a/b` names the hierarchy that has "cpu"
 * among its controllers. It is mounted by the same names, or as "cpu"; each
 * /sys/fs/cgroup/cpu/.../cpu.cfs_quota_us may be the quota, or -1, and
 * cpu.cfs_period_us beside it the period.
 *
 * A container may see its own group as the root: paths that are not there are
 * passed over on the way up. The smallest of all counts.
 */
#include "exec/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#define PATH_BYTES 512

/* Is "cpu" one of the names that commas separate? */
static bool has_cpu(const char *names)
{
    while (names != NULL) {
        if (strncmp(names, "cpu", 3) == 0 &&
            (names[3] == ',' || names[3] == '\0'))
            return true;
        names = strchr(names, ',');
        names += names != NULL;
    }
    return false;
}

/* Processors that so much of a period is, rounded up; 0: it says nothing. */
static uint32_t share_of(unsigned long long quota, unsigned long long period)
{
    if (quota == 0 || period == 0)
        return 0;
    unsigned long long share =
        quota / period + (quota % period != 0); /* no overflow */
    return share > UINT32_MAX ? UINT32_MAX : (uint32_t)share;
}

/* One number from a file; false: none, or it is negative. */
static bool read_number(const char *name, unsigned long long *out)
{
    FILE *file = fopen(name, "re");
    char text[32] = "";

    if (file == NULL)
        return false;
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return len > 0 && text[0] >= '0' && text[0] <= '9' &&
           sscanf(text, "%19llu", out) == 1;
}

/* What one cpu.max allows. */
static uint32_t quota_v2(const char *folder)
{
    char name[3 * PATH_BYTES];
    unsigned long long quota;
    unsigned long long period;

    snprintf(name, sizeof name, "%s/cpu.max", folder);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return 0;
    int found = fscanf(file, "%19llu %19llu", &quota, &period);
    fclose(file);
    return found == 2 ? share_of(quota, period) : 0;
}

static uint32_t quota_v1(const char *folder)
{
    char name[3 * PATH_BYTES];
    unsigned long long quota;
    unsigned long long period;

    snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", folder);
    if (!read_number(name, &quota))
        return 0;
    snprintf(name, sizeof name, "%s/cpu.cfs_period_us", folder);
    return read_number(name, &period) ? share_of(quota, period) : 0;
}

/* The smallest of `most` and what the group and those above it allow. */
static uint32_t walk_up(const char *root, const char *mount, const char *group,
                        uint32_t (*quota)(const char *folder), uint32_t most)
{
    char path[PATH_BYTES];
    char folder[2 * PATH_BYTES + 64];

    snprintf(path, sizeof path, "%s", group);
    for (;;) {
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s%s", root,
                 mount[0] != '\0' ? "/" : "", mount, path);
        uint32_t share = quota(folder);
        if (share != 0 && share < most)
            most = share;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return most;
        *slash = '\0'; /* the one above */
    }
}

/* One line of /proc/self/cgroup: number, controllers, path. */
static uint32_t judge(const char *root, char *line, uint32_t most)
{
    char *names = strchr(line, ':');
    char *group = names == NULL ? NULL : strchr(names + 1, ':');

    if (group == NULL || group[1] != '/')
        return most;
    *names++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (names[0] == '\0')
        return walk_up(root, "", group, quota_v2, most);
    if (!has_cpu(names))
        return most;
    most = walk_up(root, names, group, quota_v1, most);
    return walk_up(root, "cpu", group, quota_v1, most);
}

uint32_t hf_cpu_share_at(const char *root)
{
    char name[PATH_BYTES];
    char line[PATH_BYTES];
    uint32_t share = hf_cpu_count();

    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL) /* perhaps the root is all there is to see */
        return walk_up(root, "", "", quota_v2, share);
    while (fgets(line, sizeof line, file) != NULL)
        share = judge(root, line, share);
    fclose(file);
    return walk_up(root, "", "", quota_v2, share);
}

uint32_t hf_cpu_share(void)
{
    return hf_cpu_share_at("");
}
