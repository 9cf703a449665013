/* Profiles with one kind of fault each in a world that is otherwise without faults, so that the
 * time of recovery has a bound. The plan of a scene, and its actions during the faults. */
#ifndef DP_SIM_SCENE_H
#define DP_SIM_SCENE_H

#include "base/rng.h"
#include "tests/sim/plan.h"

struct dp_sim;
struct dp_host;

/* Does nothing for other profiles. */
void dp_scene_plan(dp_plan *plan, dp_profile profile, dp_rng *rng);
/* Scene joins: the time at which this host starts; 0: as usual. */
uint64_t dp_scene_boot_us(const struct dp_sim *sim, uint32_t index);
/* Four times a second. */
void dp_scene_look(struct dp_sim *sim);
/* This host has sent a message of this type: does its process end now? */
bool dp_scene_kills(struct dp_host *host, uint8_t type);

#endif
