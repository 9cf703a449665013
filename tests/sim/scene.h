/* Profiles that tell one story each: a world that is otherwise well, so that it can be said how
 * long it may take to go on. The plan of a scene, and what it does to the hosts while the faults
 * last. */
#ifndef DP_SIM_SCENE_H
#define DP_SIM_SCENE_H

#include "base/rng.h"
#include "tests/sim/plan.h"

struct dp_sim;
struct dp_host;

/* Nothing for a profile that is no scene. */
void dp_scene_plan(dp_plan *plan, dp_profile profile, dp_rng *rng);
/* Scene joins: when this host is started; 0: as usual. */
uint64_t dp_scene_boot_us(const struct dp_sim *sim, uint32_t index);
/* Four times a second. */
void dp_scene_look(struct dp_sim *sim);
/* This host has sent a message of this type to somebody: does its process end now? */
bool dp_scene_kills(struct dp_host *host, uint8_t type);

#endif
