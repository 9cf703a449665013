/* One command to the trainer, from its creation to its sending. The private header of
 * trainer_commands.c and driver_command.c. */
#ifndef DP_DAEMON_PEER_TRAINER_COMMANDS_INSIDE_H
#define DP_DAEMON_PEER_TRAINER_COMMANDS_INSIDE_H

#include "daemon/peer/driver_inside.h"
#include "store/pieces.h"

typedef struct command_job {
    dp_store_thread_job job;
    dp_driver *driver;
    uint32_t life;
    dp_trainer_msg msg;
    dp_driver_wait wait; /* command 0: there is no answer */
    dp_status status;
    uint64_t number;           /* how many commands were posted before it */
    dp_pieces_reading reading; /* of the object that is written to the next of fds ... */
    bool reads;                /* ... if there is one */
    bool told;                 /* that it waits was logged */
    uint32_t n_fds;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_roots;
    dp_hash roots[DP_TRAINER_FDS_MAX];
} command_job;

command_job *dp_trainer_command_new(dp_driver *driver, dp_trainer_kind kind);
void dp_trainer_command_post(dp_driver *driver, command_job *job);
void dp_trainer_command_free(command_job *self);

#endif
