#include "compute/machine/cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

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

static uint64_t quota_of_folder(const char *folder)
{
    char line[DP_CGROUP_LINE_MAX];
    char period[DP_CGROUP_LINE_MAX];
    dp_cgroup_line(folder, "cpu.max", line);
    const size_t quota = dp_cpus_of_cpu_max(line);
    dp_cgroup_line(folder, "cpu.cfs_quota_us", line);
    dp_cgroup_line(folder, "cpu.cfs_period_us", period);
    return dp_cgroup_lesser(quota, cpus_of(strtoll(line, NULL, 10), strtoll(period, NULL, 10)));
}

size_t dp_cpus_quota(const dp_cgroup_place *place)
{
    return (size_t)dp_cgroup_min(place, "cpu", quota_of_folder);
}

size_t dp_cpus_allowed(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
    return known ? (size_t)CPU_COUNT(&set) : 1;
}

size_t dp_cpus_usable_in(const dp_cgroup_place *place)
{
    return (size_t)dp_cgroup_lesser(dp_cpus_allowed(), dp_cpus_quota(place));
}

size_t dp_cpus_usable(void)
{
    return dp_cpus_usable_in(&dp_cgroup_own);
}
