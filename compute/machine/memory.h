/* How much memory this process may fill: what the machine has left and what its control groups
 * allow. */
#ifndef DP_COMPUTE_MACHINE_MEMORY_H
#define DP_COMPUTE_MACHINE_MEMORY_H

#include <stdint.h>

#include "compute/machine/cgroup.h"

/* Nine tenths of the lesser of "MemAvailable" in a file like /proc/meminfo with what is taken
 * already, and of dp_memory_limit; 0 when neither is known. */
uint64_t dp_memory_usable_in(const dp_cgroup_place *place, const char *meminfo, uint64_t taken);
/* Of this process: nine tenths of the least of MemAvailable and the limits of the control groups; 0
 * when neither is known. */
uint64_t dp_memory_usable(void);
/* The same for who has taken so many bytes already and counts them in: what is available does not
 * hold them, a limit does. */
uint64_t dp_memory_usable_with(uint64_t taken);
/* Bytes of "MemAvailable" in a file like /proc/meminfo; 0 when it is not there. */
uint64_t dp_memory_available(const char *meminfo);
/* Bytes that the control groups of a process allow; 0 for no limit: "memory.max" of version 2,
 * "memory.limit_in_bytes" of version 1. */
uint64_t dp_memory_limit(const dp_cgroup_place *place);

#endif
