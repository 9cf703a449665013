/* How much memory this process may fill: what the machine has left and what its control groups allow. */
#ifndef DP_COMPUTE_MEMORY_H
#define DP_COMPUTE_MEMORY_H

#include <stdint.h>

/* Nine tenths of the least of MemAvailable and the limits of the control groups; 0 when neither is known. */
uint64_t dp_memory_usable(void);
/* Bytes of "MemAvailable" in a file like /proc/meminfo; 0 when it is not there. */
uint64_t dp_memory_available(const char *meminfo);
/* The least limit of a process's groups and those above them; 0 for none. groups: /proc/<pid>/cgroup; root: where the
 * hierarchies are mounted (/sys/fs/cgroup). v2 "memory.max" and v1 "memory.limit_in_bytes" count. */
uint64_t dp_memory_limit(const char *groups, const char *root);

#endif
