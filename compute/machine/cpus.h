/* The number of threads that this process may keep busy: its CPU affinity and the quotas of its
 * control groups. */
#ifndef DP_COMPUTE_MACHINE_CPUS_H
#define DP_COMPUTE_MACHINE_CPUS_H

#include <stddef.h>

#include "compute/machine/cgroup.h"

/* CPUs in this thread's affinity mask, at least 1. */
size_t dp_cpus_allowed(void);
/* The lower of that and dp_cpus_quota(place), at least 1. */
size_t dp_cpus_usable_in(const dp_cgroup_place *place);
/* The same of this process. */
size_t dp_cpus_usable(void);
/* CPUs that the control groups of a process allow, rounded up; 0: no limit. "cpu.max" of version 2,
 * "cpu.cfs_quota_us" with "cpu.cfs_period_us" of version 1. */
size_t dp_cpus_quota(const dp_cgroup_place *place);
/* CPUs of a "cpu.max" line: "150000 100000" is 2. 0: no limit, or a line that does not parse. */
size_t dp_cpus_of_cpu_max(const char *cpu_max);

#endif
