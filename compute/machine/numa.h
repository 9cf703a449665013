/* Memory nodes of this machine, which sockets are: a process that stays on one has its memory
 * near. */
#ifndef DP_COMPUTE_MACHINE_NUMA_H
#define DP_COMPUTE_MACHINE_NUMA_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_NUMA_NODES_MAX = 64 };

/* Where Linux tells of them: node<i>/cpulist, as "0-23,48-71". */
#define DP_NUMA_FOLDER "/sys/devices/system/node"

/* The calling thread, and those that it starts from now on, stay on the processors of one node:
 * that of index among those that have processors which this thread may use, where there are exactly
 * count of them and more than one. Memory follows by first touch. False: it is otherwise, or cannot
 * be read; then nothing has changed. */
bool dp_numa_bind(const char *folder, uint32_t index, uint32_t count);

#endif
