/* The memory that this process may use: the memory that the machine has left and that its control
 * groups allow. */
#ifndef DP_COMPUTE_MACHINE_MEMORY_H
#define DP_COMPUTE_MACHINE_MEMORY_H

#include <stdint.h>

#include "compute/machine/cgroup.h"

/* Nine tenths of the lowest of "MemAvailable" in a file like /proc/meminfo plus taken, of what the
 * processes of a control group leave of its limit plus taken, and of dp_memory_limit; 0: none is
 * known. */
uint64_t dp_memory_usable_in(const dp_cgroup_place *place, const char *meminfo, uint64_t taken);
/* The same for this process; 0: unknown. */
uint64_t dp_memory_usable(void);
/* The same for a caller that has allocated taken bytes and counts them in: the available memory,
 * and what is left of a limit, exclude them. */
uint64_t dp_memory_usable_with(uint64_t taken);
/* Bytes of "MemAvailable" in a file like /proc/meminfo; 0: absent. */
uint64_t dp_memory_available(const char *meminfo);
/* Bytes that the control groups of a process allow; 0: no limit. "memory.max" and
 * "memory.high" of version 2, "memory.limit_in_bytes" of version 1. */
uint64_t dp_memory_limit(const dp_cgroup_place *place);

#endif
