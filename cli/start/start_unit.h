/* The daemon of the machine under systemd: root's verbs start its unit, so that it runs with the
 * unit's user, limits and log. */
#ifndef DP_CLI_START_START_UNIT_H
#define DP_CLI_START_START_UNIT_H

#include <stdbool.h>

#include "daemon/control/control_msg.h"

/* The folder that exists where systemd is the init system (sd_booted(3)). */
#define DP_UNIT_MANAGED "/run/systemd/system"

typedef enum dp_unit_start {
    DP_UNIT_NONE,    /* no systemd, or it has no such unit: start the daemon without it */
    DP_UNIT_STARTED, /* dpnoded.service runs */
    DP_UNIT_FAILED   /* *error is set */
} dp_unit_start;

/* Starts dpnoded.service by systemctl, if its user exists, and waits until the daemon has told that
 * it is ready. managed: DP_UNIT_MANAGED but in tests. */
DP_MUST dp_unit_start dp_start_unit(const char *managed, dp_control_error *error);

#endif
