/* quota.c - reads cpu.max of the process's cgroup and of those above it.
 *
 * /proc/self/cgroup has a line `0::/a/b` (version 2). Each of
 * /sys/fs/cgroup/a/b/cpu.max, .../a/cpu.max, .../cpu.max may say
 * `QUOTA PERIOD` in microseconds, or `max PERIOD`; the smallest counts.
 */
#include "exec/quota.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#define PATH_BYTES 512

/* The path in the hierarchy; "" if there is none. */
static void cgroup_path(const char *root, char *path)
{
    char name[PATH_BYTES];
    char line[PATH_BYTES];

    path[0] = '\0';
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            memcpy(path, line + 3, strlen(line + 3) + 1);
        }
    }
    fclose(file);
}

/* Processors that one cpu.max allows, rounded up; 0: it says nothing. */
static uint32_t quota_at(const char *root, const char *path)
{
    char name[2 * PATH_BYTES];
    unsigned long long quota;
    unsigned long long period;

    snprintf(name, sizeof name, "%s/sys/fs/cgroup%s/cpu.max", root, path);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return 0;
    int found = fscanf(file, "%llu %llu", &quota, &period);
    fclose(file);
    if (found != 2 || quota == 0 || period == 0)
        return 0;
    unsigned long long share = (quota + period - 1) / period;
    return share > UINT32_MAX ? UINT32_MAX : (uint32_t)share;
}

uint32_t exec_cpu_share_at(const char *root)
{
    char path[PATH_BYTES];
    uint32_t share = hf_cpu_count();

    cgroup_path(root, path);
    for (;;) {
        uint32_t quota = quota_at(root, path);
        if (quota != 0 && quota < share)
            share = quota;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return share;
        *slash = '\0'; /* the one above */
    }
}

uint32_t exec_cpu_share(void)
{
    return exec_cpu_share_at("");
}
