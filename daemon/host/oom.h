/* Decides whether the kernel has killed a process of this daemon for lack of memory. The signal
 * does not show it, but counters do: that of the daemon's control group, which counts only
 * processes of the group, or, without a group, that of the whole machine.
 *
 *   version 2   <root>/<group>/memory.events            oom_kill N
 *   version 1   <root>/memory/<group>/memory.oom_control   oom_kill N
 *   neither     /proc/vmstat                            oom_kill N
 *
 * A counter is compared with its value between one and two times DP_OOM_LOOK_MS ago: a kill is
 * counted when it is sent, but a process with much memory takes seconds to end, and a kill counted
 * an hour ago was of another process. */
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
    uint64_t kills[2]; /* at the second last check, and at the last */
    uint64_t looked_ms;
} dp_oom;

/* False: no counter exists here; *kills stays. */
bool dp_oom_kills(const dp_oom_place *place, uint64_t *kills);
/* Call when a process starts. */
void dp_oom_begin(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms);
/* Call repeatedly while it lives; calls within DP_OOM_LOOK_MS return at once. */
void dp_oom_look(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms);
/* It was killed by SIGKILL: was that the kernel? False also without a counter. */
bool dp_oom_happened(const dp_oom *oom, const dp_oom_place *place);

#endif
