/* The daemon's link to its supervisor: systemd's notify protocol with its watchdog (sd_notify(3),
 * without its library), and a file whose creation announces the end of this machine. Loop thread
 * only. */
#ifndef DP_DAEMON_PEER_SUPERVISOR_H
#define DP_DAEMON_PEER_SUPERVISOR_H

#include "daemon/host/daemon.h"

enum {
    DP_SUPERVISOR_LOOK_MS = 1000 /* interval of checks for the file */
};

/* Sends READY=1, and from then on WATCHDOG=1 twice per WATCHDOG_USEC, each time after both the loop
 * and the store thread have run: so a stuck thread is noticed. Without NOTIFY_SOCKET in the
 * environment nothing is sent.
 *
 * With the setting drain-on-file: when that file exists, the daemon continues until a round counts
 * its work, for drain-time at most, and ends cleanly with 0. */
DP_MUST dp_status dp_supervisor_open(dp_supervisor **supervisor, dp_daemon *daemon);
/* Drains from now on as above; cause begins a sentence of the log. Ends at once if there is nothing
 * to wait for. False: it already drains; the supervisor is asked again for the time that this
 * takes. */
bool dp_supervisor_drain(dp_supervisor *supervisor, const char *cause);
/* May a draining node end now? NULL: not yet. Otherwise the reason: a round has counted its work
 * (counted: the number of rounds that had counted it when the drain began), there is no round to
 * wait for (idle, paused, gossip, an observer, no trainer; in a run of any model: neither a script
 * nor work of one that is not counted yet), or the time is over. */
const char *dp_supervisor_drained(const dp_daemon *daemon, uint64_t counted, uint64_t waited_ms,
                                  uint64_t limit_ms);
/* The number of rounds that have counted this node. */
uint64_t dp_supervisor_counted(const dp_daemon *daemon);
/* Sends STOPPING=1, or RELOADING=1 before a new life in the same process. Call before the store
 * thread closes. Accepts NULL; memory is freed after one more turn of the loop. */
void dp_supervisor_close(dp_supervisor *supervisor);

#endif
