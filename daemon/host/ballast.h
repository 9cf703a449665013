/* The reserve of the store (reserve.bin), which a full disk uses up so that votes can be written:
 * told when it is gone, and laid by again when there is room. Loop thread only; it looks on the
 * store thread. */
#ifndef DP_DAEMON_HOST_BALLAST_H
#define DP_DAEMON_HOST_BALLAST_H

#include "daemon/host/daemon.h"

enum {
    /* A look is one comparison while the reserve is there, and one statvfs while it is not. */
    DP_BALLAST_LOOK_MS = 5000
};

DP_MUST dp_status dp_ballast_open(dp_ballast **ballast, dp_daemon *daemon, uint64_t look_ms);
/* Before the store thread closes. Accepts NULL; the memory goes when the loop has run once more. */
void dp_ballast_close(dp_ballast *ballast);

#endif
