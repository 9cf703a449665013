/* The phases of one round as this node goes through it, and what its time went to. No clock. */
#ifndef DP_DAEMON_HOST_PHASES_H
#define DP_DAEMON_HOST_PHASES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dp_phase {
    DP_PHASE_OPENED = 0, /* it has applied the round before, and trains for this one */
    DP_PHASE_PUBLISHED,  /* its update is encoded and stored */
    DP_PHASE_READY,      /* that is durable: peers are told */
    DP_PHASE_HELD,       /* the last of the updates that count is here */
    DP_PHASE_DECIDED,    /* the record is here, and durable */
    DP_PHASE_APPLIED,    /* the trainer has the new weights */
    DP_PHASES
} dp_phase;

typedef struct dp_phases {
    uint64_t opened_ms;        /* unix; 0: not known, as all others then */
    uint64_t at_us[DP_PHASES]; /* on one steady clock; 0: not known */
} dp_phases;

/* "published_ms" and so on: the keys of control_msg.h; of DP_PHASE_OPENED "opened_at_ms". */
const char *dp_phase_key(dp_phase phase);
/* Sets a phase that is not known yet: the first time counts. */
void dp_phases_set(dp_phases *phases, dp_phase phase, uint64_t at_us);
/* Milliseconds from the opening; 0 for what was before it. False: not known. */
bool dp_phases_ms(const dp_phases *phases, dp_phase phase, uint64_t *ms);

/* The time from the opening on: steps and encoding until this node's update was published; then
 * updates on their way; then the vote, the record and its application, or its decision where
 * nothing is applied. */
typedef struct dp_phase_times {
    uint64_t compute_ms;
    uint64_t transfer_ms;
    uint64_t wait_ms;
} dp_phase_times;
/* False: a phase is not known, or this node published after the decision. */
bool dp_phases_times(const dp_phases *phases, dp_phase_times *times);

#endif
