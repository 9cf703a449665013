/* A meeting point of the processes of one host, in memory that they share: all wait until the last
 * has come. Who dies, leaves or does not come in time breaks it for all: an error within a bound,
 * never a hang. Knows nothing of what is computed.
 *
 * One word holds how many have come (bits 0..7), whether the gate is broken (bit 8) and how often
 * it has opened (the rest); it only changes by compare and swap, so all who were waiting agree
 * whether it opened or broke. A process shows that it lives by a robust mutex that it holds from
 * enter to leave: the kernel gives it up for whoever dies, also by SIGKILL. */
#ifndef DP_COMPUTE_MACHINE_GATE_H
#define DP_COMPUTE_MACHINE_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_GATE_PROCESSES_MAX = 64,
    DP_GATE_LOOK_US = 20 * 1000 /* how often who waits looks whether the others live */
};

/* In shared memory. Its fields are gate.c's own. */
typedef struct dp_gate {
    _Atomic uint32_t word;
    _Atomic uint32_t culprit; /* who broke it */
    uint32_t processes;
    struct {
        pthread_mutex_t alive;
        _Atomic uint32_t entered;
        _Atomic uint32_t came; /* the count of openings at which it came last, plus one */
    } places[DP_GATE_PROCESSES_MAX];
} dp_gate;

/* Once, by whoever made the memory, before others see it. DP_BADARG: not 1 ..
 * DP_GATE_PROCESSES_MAX; DP_UNSUPPORTED: no robust mutexes here. */
DP_MUST dp_status dp_gate_make(dp_gate *gate, uint32_t processes);
/* Takes a place, for the calling thread: only it may wait and leave, and its end counts as the
 * process's. DP_BADARG: no such place; DP_BUSY: taken; DP_CLOSED: its owner has died or left. */
DP_MUST dp_status dp_gate_enter(dp_gate *gate, uint32_t place);
void dp_gate_leave(dp_gate *gate, uint32_t place);
/* Until all have called it. DP_CLOSED: place *culprit has died or left; DP_TIMEOUT: *culprit did
 * not come within wait_us. Then the gate stays broken and every later call gives DP_CLOSED at
 * once. */
DP_MUST dp_status dp_gate_wait(dp_gate *gate, uint32_t place, uint64_t wait_us, uint32_t *culprit);
/* Whether it is broken, or somebody else has died or left: for who waits for the others by another
 * way. Only who has a place. */
bool dp_gate_is_over(dp_gate *gate, uint32_t place);

#endif
