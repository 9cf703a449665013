/* Reads the sensors of the computing device on a thread of its own, for which the caller waits a
 * moment: a driver that hangs holds that thread and no training. */
#ifndef DP_COMPUTE_WORKER_SENSOR_LOOK_H
#define DP_COMPUTE_WORKER_SENSOR_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/backend/backend.h"

enum { DP_SENSOR_LOOK_MS = 1000 }; /* A card that is asked takes some milliseconds. */

typedef struct dp_sensor_look dp_sensor_look;
struct dp_process_group;

typedef struct dp_sensor_reading {
    int32_t celsius; /* INT32_MIN: unknown */
    uint32_t watts;  /* 0: unknown */
} dp_sensor_reading;

/* team is borrowed for the call, since a look that hangs may outlive it; it may be NULL. DP_NOMEM,
 * DP_AGAIN (no thread or descriptor). */
DP_MUST dp_status dp_sensor_look_open(dp_sensor_look **look, const struct dp_process_group *team,
                                      const dp_backend *backend, uint32_t device);
/* One reading, as dp_group_devices_feel has it. False: it has not come within wait_ms; a later
 * call waits for the same one. One thread only. */
bool dp_sensor_look_at(dp_sensor_look *look, int wait_ms, dp_sensor_reading *reading);
/* Returns at once; a thread that hangs frees what it has when it returns. Accepts NULL. */
void dp_sensor_look_close(dp_sensor_look *look);

#endif
