/* A team whose processes have a card each: a backend (backend.h) whose engines train on all of them
 * as one. Vectors, rounds and looks are those of the first card's engine; steps are shared out by
 * rows, sums and the optimizer by part (zero.h). */
#ifndef DP_COMPUTE_BACKEND_TEAM_CARDS_H
#define DP_COMPUTE_BACKEND_TEAM_CARDS_H

#include "compute/backend/plugin.h"
#include "compute/backend/team.h"

/* From here on the team's processes compute on devices[rank] of inner, which comes from the library
 * at path ("": it is in this program, and was before they were forked). The result lives as long as
 * the team, and is to be given with it and with device devices[0] to whoever opens engines. tell:
 * for the log, may be NULL. DP_UNSUPPORTED: this backend has no parts; DP_BADARG: other lanes than
 * processes, or too long a path; DP_NOMEM; each but that with a sentence. */
DP_MUST dp_status dp_team_use_cards(dp_team *team, const dp_backend *inner, const char *path,
                                    const uint32_t *devices, void (*tell)(const char *sentence),
                                    const dp_backend **out, dp_why *why);
/* The same for what was chosen, where that is several devices and there is a team of as many: then
 * choice->backend is the team's. Else nothing changes. Where it cannot be, the first device
 * computes alone, and tell hears why. */
void dp_team_take_choice(dp_team *team, dp_plugin_choice *choice,
                         void (*tell)(const char *sentence));
/* What training takes with what was chosen: where that is several devices, of the one on which the
 * fewest rows fit, of all rows together (ZeRO-1: each has its part of the moments). As backend.h
 * has it; request's processes and lanes stand where devices are not several. */
DP_MUST dp_status dp_team_plan_choice(const dp_plugin_choice *choice,
                                      const dp_plan_request *request, dp_plan *out, dp_why *why);
/* Whether the team's processes train with engines of this backend: the CPU's, or what
 * dp_team_use_cards gave. team may be NULL. */
bool dp_team_serves(const dp_team *team, const dp_backend *backend);
/* What sensors tell of who computes with this backend, the team's cards where it is theirs, else
 * device: the hottest one's heat and the power of the one that takes most. INT32_MIN, 0: none
 * tells. team may be NULL. */
void dp_team_feel(const dp_team *team, const dp_backend *backend, uint32_t device, int32_t *celsius,
                  uint32_t *watts);

#endif
