/* The control groups of a process, of both versions: which folders of their hierarchies may hold a
 * limit for it. What a limit is called there, and what it means, whoever asks knows (cpus.h,
 * memory.h). */
#ifndef DP_COMPUTE_MACHINE_CGROUP_H
#define DP_COMPUTE_MACHINE_CGROUP_H

#include <stdint.h>

enum { DP_CGROUP_LINE_MAX = 64 };

/* Where a process's groups stand. groups: its /proc/<pid>/cgroup; root: where the hierarchies are
 * mounted. */
typedef struct dp_cgroup_place {
    const char *groups;
    const char *root;
} dp_cgroup_place;

/* Those of this process. */
extern const dp_cgroup_place dp_cgroup_own;

/* The limit that the files of a group's folder set; 0: none. */
typedef uint64_t dp_cgroup_limit(const char *folder);

/* The least limit of the process's groups and those above them, up to the root; 0 for none.
 * controller: its name in version 1 ("cpu"), whose hierarchy is looked for under all names that it
 * is mounted by, and under this one; groups of version 2 count always. A group whose folder is not
 * there (a container sees another root) limits nothing. */
uint64_t dp_cgroup_min(const dp_cgroup_place *place, const char *controller,
                       dp_cgroup_limit *limit);
/* The lesser of two limits, of which 0 is none. */
uint64_t dp_cgroup_lesser(uint64_t a, uint64_t b);
/* The first line of <folder>/<name>, with its end; empty when there is none. */
void dp_cgroup_line(const char *folder, const char *name, char line[DP_CGROUP_LINE_MAX]);

#endif
