/* Profile merge: the voters are separated, the root key begins the chain anew on one side or on
 *   two, everything is healed. The books of oracle.c do not work with several chains; this judge
 *   keeps its own, by chain: S1  one record per fork and slot, each following the one before it on
 *   the disk that stores it S2  one state per ROUND record
 *   S6  a durable chain goes back only by a FORK, and the note of it counts what went
 *   B6  what was announced is settled before anything else is announced (M37: a FORK must not lose
 *       it silently)
 *   S17 no sample counts twice in the chain that stands, also not one that was granted in records
 *     that a FORK gave up
 *   L4  after the healing all stand in one chain and are counted in it; after two FORKs of one slot
 *       all halt, and a STOP ends that */
#ifndef DP_SIM_FORKS_H
#define DP_SIM_FORKS_H

#include "tests/sim/sim.h"

DP_MUST dp_status dp_forks_open(dp_sim *sim);
void dp_forks_close(dp_sim *sim);
/* The schedule. */
void dp_forks_start(dp_sim *sim);
void dp_forks_strike(dp_sim *sim);

/* Calls forwarded by oracle.c. */
void dp_forks_store(dp_host *host, const dp_action *action);
/* A host starts with the chain on its disk. */
void dp_forks_booted(dp_host *host);
void dp_forks_note(dp_host *host, const dp_note *note);
void dp_forks_theta(dp_host *host, uint64_t round, const dp_hash *tensor_root);
void dp_forks_announced(dp_host *host, const dp_hash *root);
void dp_forks_settled(dp_host *host, const dp_hash *root);
/* The samples that a host's trainer drew for a publication. */
void dp_forks_published(dp_host *host, const dp_hash *root, const dp_toy_samples *samples);
/* False: it had no reason to. */
bool dp_forks_halted(const dp_host *host);
bool dp_forks_converged(dp_sim *sim);
void dp_forks_stuck(dp_sim *sim);

#endif
