/* A process barrier for the processes of one host, in shared memory: all wait until the last has
 * come. A process that dies, leaves or is late breaks it for all: an error within a bounded time,
 * never a hang.
 *
 * One word holds the number of arrivals (bits 0..7), whether the barrier is broken (bit 8) and how
 * often it has opened (the rest). It changes only by compare and swap, so that all waiting
 * processes agree whether it opened or broke. A process shows that it lives by a robust mutex that
 * it holds from enter to leave: the kernel releases it when the process dies, also by SIGKILL. */
#ifndef DP_COMPUTE_MACHINE_PROCESS_BARRIER_H
#define DP_COMPUTE_MACHINE_PROCESS_BARRIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_PROCESS_BARRIER_PROCESSES_MAX = 64,
    DP_PROCESS_BARRIER_LOOK_US =
        20 * 1000 /* interval at which a waiting process checks the others */
};

/* Stands in shared memory. The fields are private to the source. */
typedef struct dp_process_barrier {
    _Atomic uint32_t word;
    _Atomic uint32_t culprit; /* the place that broke it */
    uint32_t processes;
    struct {
        pthread_mutex_t alive;
        _Atomic uint32_t entered;
        _Atomic uint32_t came; /* the count of openings at which it came last, plus one */
    } places[DP_PROCESS_BARRIER_PROCESSES_MAX];
} dp_process_barrier;

/* Initializes it, once, before other processes see the memory. DP_BADARG: not 1 ..
 * DP_PROCESS_BARRIER_PROCESSES_MAX; DP_UNSUPPORTED: no robust mutexes. */
DP_MUST dp_status dp_process_barrier_make(dp_process_barrier *gate, uint32_t processes);
/* Takes a place for the calling thread: only it may wait and leave, and its end counts as the end
 * of the process. DP_BADARG: no such place; DP_BUSY: taken; DP_CLOSED: its owner has died or
 * left. */
DP_MUST dp_status dp_process_barrier_enter(dp_process_barrier *gate, uint32_t place);
void dp_process_barrier_leave(dp_process_barrier *gate, uint32_t place);
/* Waits until all have called it. DP_CLOSED: place *culprit has died or left; DP_TIMEOUT: *culprit
 * did not come within wait_us. The barrier then stays broken, and every later call gives DP_CLOSED
 * at once. */
DP_MUST dp_status dp_process_barrier_wait(dp_process_barrier *gate, uint32_t place,
                                          uint64_t wait_us, uint32_t *culprit);
/* True if it is broken, or another process has died or left; for callers that wait in another way.
 * The caller must have a place. */
bool dp_process_barrier_is_over(dp_process_barrier *gate, uint32_t place);

#endif
