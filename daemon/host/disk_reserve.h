/* The disk reserve (reserve.bin), a file that a full disk releases so that votes can be written.
 * Logs its loss and allocates it again when there is space. While it is missing, or the store is
 * above its quota, free pages of the store go back to the disk. Loop thread only; its checks run on
 * the store thread. */
#ifndef DP_DAEMON_HOST_DISK_RESERVE_H
#define DP_DAEMON_HOST_DISK_RESERVE_H

#include "daemon/host/daemon.h"

enum {
    /* A check is a few comparisons while the reserve exists, and one statvfs while it does not. */
    DP_DISK_RESERVE_LOOK_MS = 5000
};

DP_MUST dp_status dp_disk_reserve_open(dp_disk_reserve **reserve, dp_daemon *daemon,
                                       uint64_t look_ms);
/* Call before the store thread closes. Accepts NULL; memory is freed after one more turn of the
 * loop. */
void dp_disk_reserve_close(dp_disk_reserve *reserve);

#endif
