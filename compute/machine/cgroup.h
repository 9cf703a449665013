/* The control groups of a process, of version 1 and 2: the folders that may hold a limit for it.
 * The caller knows the files of a limit (cpus.h, memory.h). */
#ifndef DP_COMPUTE_MACHINE_CGROUP_H
#define DP_COMPUTE_MACHINE_CGROUP_H

#include <stdint.h>

enum { DP_CGROUP_LINE_MAX = 64 };

/* Places of a process's groups. groups: its /proc/<pid>/cgroup; root: the mount point of the
 * hierarchies. */
typedef struct dp_cgroup_place {
    const char *groups;
    const char *root;
} dp_cgroup_place;

/* The places of this process. */
extern const dp_cgroup_place dp_cgroup_own;

/* Reads the limit in a group's folder; 0: none. */
typedef uint64_t dp_cgroup_limit(const char *folder);

/* The lowest limit of the process's groups and those above them, up to the root; 0: none.
 * controller: its name in version 1 ("cpu"), whose hierarchy is searched for under all names of its
 * mount, and under this one; groups of version 2 always count. A group whose folder is missing (a
 * container sees another root) limits nothing. */
uint64_t dp_cgroup_min(const dp_cgroup_place *place, const char *controller,
                       dp_cgroup_limit *limit);
/* The lower of two limits, where 0 means none. */
uint64_t dp_cgroup_lesser(uint64_t a, uint64_t b);
/* The first line of <folder>/<name>, with its end; empty: no such file. */
void dp_cgroup_line(const char *folder, const char *name, char line[DP_CGROUP_LINE_MAX]);

#endif
