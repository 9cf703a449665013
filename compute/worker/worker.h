/* The built-in trainer behind the trainer protocol (base/trainer/trainer_kind.h): one socket, one
 * service thread, one thread that computes. The arithmetic is in trainer.h. */
#ifndef DP_COMPUTE_WORKER_WORKER_H
#define DP_COMPUTE_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "compute/backend/backend.h"

typedef struct dp_worker_options {
    size_t threads; /* of each process; 0: as many as the machine gives */
    /* who computes; NULL: the CPU, which also takes over what it cannot open */
    const dp_backend *backend;
    uint32_t device; /* of the backend's */
    /* processes that train with this one (team.h), where the CPU computes; NULL: none. Borrowed */
    struct dp_team *team;
    void (*tell)(const char *sentence); /* for the log, from the thread that serves; NULL: nobody */
    /* it rests between micro-batches to stay below (governor.h); 0: it never does */
    uint32_t celsius_max;
    uint32_t watts_max;
    uint64_t look_us; /* sensors are read so often; 0: every two seconds */
    /* end the process at once when the other side is gone, whatever is computed just then */
    bool exit_when_closed;
} dp_worker_options;

/* Say HELLO on socket and serve it until STOP (DP_OK) or until the other side is gone (DP_CLOSED,
 * after the micro-batch under way). The socket stays the caller's. DP_NOMEM, DP_AGAIN (no threads),
 * DP_IO (also: the backend's device is gone; the process should end, so that the next one looks for
 * another). */
DP_MUST dp_status dp_worker_serve(int socket, const dp_worker_options *options);

#endif
