/* How many threads this process may keep busy: its CPU affinity and the quotas of its control groups, not how it uses them
 * (pool.h). */
#ifndef DP_COMPUTE_CPUS_H
#define DP_COMPUTE_CPUS_H

#include <stddef.h>

/* The lesser of the CPUs in this thread's affinity mask and dp_cpus_quota of the running system, at least 1. */
size_t dp_cpus_usable(void);
/* CPUs that the control groups of a process allow, rounded up; 0 for no limit. groups: the process's /proc/<pid>/cgroup; root: where
 * the hierarchies are mounted (/sys/fs/cgroup). Both kinds count, and the groups above the process's own: v2 "cpu.max" and v1
 * "cpu.cfs_quota_us" with "cpu.cfs_period_us". A group whose folder is not there (a container sees another root) limits nothing. */
size_t dp_cpus_quota(const char *groups, const char *root);
/* What one "cpu.max" line permits: "150000 100000" is 2. 0 for no limit or a line that does not parse. */
size_t dp_cpus_of_cpu_max(const char *cpu_max);

#endif
