/* Whether the kernel has killed a process of this daemon's for lack of memory. A signal does not
 * say so, its counters do: that of the daemon's control group, which counts processes of the group
 * alone, or of the whole machine where there is none.
 *
 *   version 2   <root>/<group>/memory.events            oom_kill N
 *   version 1   <root>/memory/<group>/memory.oom_control   oom_kill N
 *   neither     /proc/vmstat                            oom_kill N
 *
 * A counter is compared with its value DP_OOM_LOOK_MS to twice that before: a kill is counted
 * when it is sent, and a process with much memory takes seconds to end; a kill that was counted an
 * hour ago was of another process. */
#ifndef DP_DAEMON_HOST_OOM_H
#define DP_DAEMON_HOST_OOM_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_OOM_LOOK_MS = 10 * 1000 };

typedef struct dp_oom_place {
    const char *groups; /* /proc/<pid>/cgroup */
    const char *root;   /* where the hierarchies are mounted */
    const char *vmstat;
} dp_oom_place;

/* Of this process. */
extern const dp_oom_place dp_oom_own;

/* Zeroed at the start. */
typedef struct dp_oom {
    bool known[2];
    uint64_t kills[2]; /* at the look before the last, and at the last */
    uint64_t looked_ms;
} dp_oom;

/* False: nothing here counts them; *kills stays. */
bool dp_oom_kills(const dp_oom_place *place, uint64_t *kills);
/* A process begins to be watched. */
void dp_oom_begin(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms);
/* Now and then while it lives; more often than each DP_OOM_LOOK_MS costs nothing. */
void dp_oom_look(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms);
/* It has been killed by SIGKILL: was that the kernel? False also where nothing counts. */
bool dp_oom_happened(const dp_oom *oom, const dp_oom_place *place);

#endif
