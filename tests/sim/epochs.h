/* Worlds in which the join secret is rotated: --rotate, with any profile. Every five seconds until
 * the healing a random node gets the command; afterwards every member must have the secret that the
 * chain names, if any member has it. */
#ifndef DP_TESTS_EPOCHS_H
#define DP_TESTS_EPOCHS_H

#include "gossip/record/record.h"
#include "tests/sim/sim.h"

/* Called with every step of the scene. */
void dp_epochs_look(dp_sim *sim);
/* The chain known to this host names a secret that another host has, but not this one. */
bool dp_epochs_lacks(const dp_sim *sim, const dp_host *host);
/* Of a decided record: does it name a secret of a command that was given? */
void dp_epochs_judge(dp_sim *sim, const dp_record *record);

#endif
