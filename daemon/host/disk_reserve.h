/* The disk reserve (reserve.bin), a file that a full disk releases so that votes can be written.
 * Logs its loss and allocates it again when there is space. Loop thread only; its checks run on
 * the store thread. */
#ifndef DP_DAEMON_HOST_DISK_RESERVE_H
#define DP_DAEMON_HOST_DISK_RESERVE_H

#include "daemon/host/daemon.h"

enum {
    /* A look is one comparison while the reserve is there, and one statvfs while it is not. */
    DP_DISK_RESERVE_LOOK_MS = 5000
};

DP_MUST dp_status dp_disk_reserve_open(dp_disk_reserve **reserve, dp_daemon *daemon,
                                       uint64_t look_ms);
/* Before the store thread closes. Accepts NULL; the memory goes when the loop has run once more. */
void dp_disk_reserve_close(dp_disk_reserve *reserve);

#endif
