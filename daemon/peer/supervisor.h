/* The daemon's link to its supervisor: systemd's notify protocol with its watchdog (sd_notify(3),
 * without its library), and a file whose creation announces the end of this machine. Loop thread
 * only. */
#ifndef DP_DAEMON_PEER_SUPERVISOR_H
#define DP_DAEMON_PEER_SUPERVISOR_H

#include "daemon/host/daemon.h"

enum {
    DP_SUPERVISOR_LOOK_MS = 1000 /* how often the file is looked for */
};

/* Tells READY=1, and from then on WATCHDOG=1 twice per WATCHDOG_USEC, each time when both the loop
 * and the store thread have had a turn: one of them that is stuck is found out. Without
 * NOTIFY_SOCKET in the environment nothing is told.
 *
 * With the setting drain-on-file: once that file is there, the daemon goes on until a round counts
 * its work, for drain-time at most, and ends politely with 0. */
DP_MUST dp_status dp_supervisor_open(dp_supervisor **supervisor, dp_daemon *daemon);
/* From now on drain as above; cause begins a sentence of the log. Ends at once where there is
 * nothing to wait for. False: it drains already. */
bool dp_supervisor_drain(dp_supervisor *supervisor, const char *cause);
/* May a node that drains end now? NULL: not yet. Else why: a round has counted its work (counted
 * before rounds had when it began), there is no round to wait for (idle, paused, gossip, no
 * trainer, no script), or the time is over. */
const char *dp_supervisor_drained(const dp_daemon *daemon, uint64_t counted, uint64_t waited_ms,
                                  uint64_t limit_ms);
/* Rounds that have counted this node so far. */
uint64_t dp_supervisor_counted(const dp_daemon *daemon);
/* Tells STOPPING=1. Before the store thread closes. Accepts NULL; the memory goes when the loop has
 * run once more. */
void dp_supervisor_close(dp_supervisor *supervisor);

#endif
