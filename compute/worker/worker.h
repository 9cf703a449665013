/* The built-in trainer behind the trainer protocol (base/trainer/trainer_kind.h): one socket, one
 * service thread, one thread that computes. The arithmetic is in trainer.h. */
#ifndef DP_COMPUTE_WORKER_WORKER_H
#define DP_COMPUTE_WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "compute/backend/backend.h"

typedef struct dp_worker_options {
    size_t threads; /* of each process; 0: the default of the machine */
    /* NULL: the CPU, which also takes models that the backend cannot open. */
    const dp_backend *backend;
    uint32_t device; /* of the backend */
    /* Process group of this host (process_group.h); NULL: none. Borrowed until dp_worker_serve
     * returns. */
    struct dp_process_group *team;
    /* for the log, called on the thread of dp_worker_serve; NULL: none */
    void (*tell)(const char *sentence);
    /* Limits kept by rests between micro-batches (governor.h); 0: none. */
    uint32_t celsius_max;
    uint32_t watts_max;
    uint32_t vram_share;     /* percent of a card's memory that may be taken; 0: all that is free */
    uint64_t look_us;        /* interval of sensor readings; 0: two seconds */
    const char *script_path; /* of the socket for scripts, in a run of any model; NULL: none */
    /* End the process at once when the other side is gone, even during a computation. */
    bool exit_when_closed;
} dp_worker_options;

/* Says HELLO on socket and serves it until STOP (DP_OK) or until the other side is gone (DP_CLOSED,
 * after the current micro-batch). The socket stays the caller's. DP_NOMEM, DP_AGAIN (no threads),
 * DP_IO (also: the backend's device is gone; the process should end, so that the next one looks for
 * another device). */
DP_MUST dp_status dp_worker_serve(int socket, const dp_worker_options *options);

#endif
