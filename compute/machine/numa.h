/* NUMA nodes of this machine, usually its sockets: a process that stays on one has its memory
 * near. */
#ifndef DP_COMPUTE_MACHINE_NUMA_H
#define DP_COMPUTE_MACHINE_NUMA_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_NUMA_NODES_MAX = 64 };

/* Linux's folder of nodes, with node<i>/cpulist, as "0-23,48-71". */
#define DP_NUMA_FOLDER "/sys/devices/system/node"

/* Binds the calling thread, and threads that it starts later, to the processors of one node: number
 * index of the nodes whose processors this thread may use, if there are exactly count of them and
 * more than one. Memory follows by first touch. False: another number of nodes, or unreadable;
 * nothing has changed. */
bool dp_numa_bind(const char *folder, uint32_t index, uint32_t count);

#endif
