#include "compute/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    LINE_MAX_BYTES = PATH_MAX + 256, /* of /proc/<pid>/cgroup: a path and its controllers */
    GROUPS_MAX = 64                  /* lines of it: there are about a dozen controllers */
};

/* A limit of 0 is none. */
static size_t lesser(size_t a, size_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static size_t cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota > INT64_MAX - period) {
        return 0;
    }
    return (size_t)((quota + period - 1) / period);
}

size_t dp_cpus_of_cpu_max(const char *cpu_max)
{
    char *end = NULL;
    const long long quota = strtoll(cpu_max, &end, 10);
    if (end == cpu_max) {
        return 0; /* "max", empty or not a number */
    }
    const char *rest = end;
    const long long period = strtoll(rest, &end, 10);
    return end == rest ? 0 : cpus_of(quota, period);
}

/* The first line of <folder>/<name>; empty when there is none. */
static void first_line(const char *folder, const char *name, char line[64])
{
    char path[LINE_MAX_BYTES + PATH_MAX];
    line[0] = '\0';
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < 0 || (size_t)length >= sizeof path ? NULL : fopen(path, "re");
    if (file == NULL) {
        return;
    }
    if (fgets(line, 64, file) == NULL) {
        line[0] = '\0';
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
}

static size_t quota_of_folder(const char *folder)
{
    char line[64];
    char period[64];
    first_line(folder, "cpu.max", line);
    size_t quota = dp_cpus_of_cpu_max(line);
    first_line(folder, "cpu.cfs_quota_us", line);
    first_line(folder, "cpu.cfs_period_us", period);
    quota = lesser(quota, cpus_of(strtoll(line, NULL, 10), strtoll(period, NULL, 10)));
    return quota;
}

/* The least quota of a group and those above it. group: "/a/b" or "/"; is spoiled. */
static size_t quota_of_group(const char *mount, char *group)
{
    size_t least = 0;
    for (;;) {
        char folder[LINE_MAX_BYTES + PATH_MAX];
        const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
        if (length > 0 && (size_t)length < sizeof folder) {
            least = lesser(least, quota_of_folder(folder));
        }
        char *slash = strrchr(group, '/'); /* Each turn the path loses a name. */
        if (slash == NULL) {
            return least;
        }
        *slash = '\0';
    }
}

/* True when the comma-separated list has the word "cpu". */
static bool has_cpu(const char *list)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0')) {
            return true;
        }
    }
    return false;
}

/* A line "4:cpu,cpuacct:/group" (v1) or "0::/group" (v2). */
static size_t quota_of_line(char *line, const char *root)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL || group[1] != '/') {
        return 0;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        return quota_of_group(root, group);
    }
    if (!has_cpu(controllers)) {
        return 0;
    }
    /* Mounted under all its names, and usually linked to from each. */
    char mount[PATH_MAX];
    char again[LINE_MAX_BYTES];
    DP_IGNORE(snprintf(again, sizeof again, "%s", group) < 0); /* no longer than the line */
    const int length = snprintf(mount, sizeof mount, "%s/%s", root, controllers);
    const size_t quota =
        length < 0 || (size_t)length >= sizeof mount ? 0 : quota_of_group(mount, group);
    const int short_length = snprintf(mount, sizeof mount, "%s/cpu", root);
    return short_length < 0 || (size_t)short_length >= sizeof mount
               ? quota
               : lesser(quota, quota_of_group(mount, again));
}

size_t dp_cpus_quota(const char *groups, const char *root)
{
    char line[LINE_MAX_BYTES];
    size_t least = 0;
    FILE *file = fopen(groups, "re");
    if (file == NULL) {
        return 0;
    }
    for (size_t i = 0; i < GROUPS_MAX && fgets(line, sizeof line, file) != NULL; i++) {
        least = lesser(least, quota_of_line(line, root));
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    return least;
}

size_t dp_cpus_usable(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    size_t cpus = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        cpus = (size_t)CPU_COUNT(&set);
    }
    return lesser(cpus, dp_cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
}
