/* Worlds in which the join secret is rotated: --rotate, beside any profile. One node or another is
 * told to every five seconds until all is healed; then every member must have the secret that the
 * chain names, if anybody has. */
#ifndef DP_TESTS_EPOCHS_H
#define DP_TESTS_EPOCHS_H

#include "gossip/record/record.h"
#include "tests/sim/sim.h"

/* At every look at the scene. */
void dp_epochs_look(dp_sim *sim);
/* The chain names, as this host knows it, a secret that it does not have and another one has. */
bool dp_epochs_lacks(const dp_sim *sim, const dp_host *host);
/* A record that holds: is what it names what somebody was told? */
void dp_epochs_judge(dp_sim *sim, const dp_record *record);

#endif
