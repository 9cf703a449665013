/* How many threads this process may keep busy: its CPU affinity and the quotas of its control
 * groups, not how it uses them (pool.h). */
#ifndef DP_COMPUTE_MACHINE_CPUS_H
#define DP_COMPUTE_MACHINE_CPUS_H

#include <stddef.h>

#include "compute/machine/cgroup.h"

/* CPUs in this thread's affinity mask, at least 1. */
size_t dp_cpus_allowed(void);
/* The lesser of those and dp_cpus_quota(place), at least 1. */
size_t dp_cpus_usable_in(const dp_cgroup_place *place);
/* The same of this process. */
size_t dp_cpus_usable(void);
/* CPUs that the control groups of a process allow, rounded up; 0 for no limit: "cpu.max" of version
 * 2, "cpu.cfs_quota_us" with "cpu.cfs_period_us" of version 1. */
size_t dp_cpus_quota(const dp_cgroup_place *place);
/* What one "cpu.max" line permits: "150000 100000" is 2. 0 for no limit or a line that does not
 * parse. */
size_t dp_cpus_of_cpu_max(const char *cpu_max);

#endif
