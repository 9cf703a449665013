/* The daemon of the machine or of a user under systemd: root's verbs start the machine's unit, and
 * a user's verbs that of the user, if it is enabled, so that the daemon has the unit's user, limits
 * and log, and systemd knows that it runs. */
#ifndef DP_CLI_START_START_UNIT_H
#define DP_CLI_START_START_UNIT_H

#include <stdbool.h>

#include "daemon/control/control_msg.h"

/* The folder that exists where systemd is the init system (sd_booted(3)). */
#define DP_UNIT_MANAGED "/run/systemd/system"

typedef enum dp_unit_manager { DP_UNIT_OF_MACHINE, DP_UNIT_OF_USER } dp_unit_manager;

typedef enum dp_unit_start {
    DP_UNIT_NONE,    /* no systemd, or it has no such unit (of a user: not enabled): start the
                        daemon without it */
    DP_UNIT_STARTED, /* dpnoded.service runs */
    DP_UNIT_FAILED   /* *error is set */
} dp_unit_start;

/* Starts dpnoded.service by systemctl, if its user exists, and waits until the daemon has told that
 * it is ready. managed: the folder that exists where this systemd runs, DP_UNIT_MANAGED or a
 * user's. */
DP_MUST dp_unit_start dp_start_unit(dp_unit_manager manager, const char *managed,
                                    dp_control_error *error);
/* The unit does not start by itself, as after cmake --install. False also if systemctl does not
 * tell. */
bool dp_start_unit_disabled(dp_unit_manager manager);

#endif
