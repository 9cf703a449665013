/* A command to the trainer on its way, for driver_tell.c and driver_command.c. */
#ifndef DP_DAEMON_PEER_DRIVER_TELL_INSIDE_H
#define DP_DAEMON_PEER_DRIVER_TELL_INSIDE_H

#include "daemon/peer/driver_inside.h"

typedef struct tell_job {
    dp_store_thread_job job;
    dp_driver *driver;
    uint32_t life;
    dp_trainer_msg msg;
    dp_driver_wait wait; /* command 0: no answer comes */
    dp_status status;
    bool told; /* that it waits */
    uint32_t n_fds;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_roots;
    dp_hash roots[DP_TRAINER_FDS_MAX];
} tell_job;

tell_job *dp_tell_new(dp_driver *driver, dp_trainer_kind kind);
void dp_tell(dp_driver *driver, tell_job *job);
void dp_tell_free(tell_job *self);

#endif
