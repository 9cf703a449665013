/* A process group with a card for each process: a backend (backend.h) whose engines train on all
 * cards as one. Vectors, rounds and evaluation are those of the first card's engine; steps are
 * divided by rows, sums and the optimizer by part (zero.h). */
#ifndef DP_COMPUTE_BACKEND_PROCESS_GROUP_CARDS_H
#define DP_COMPUTE_BACKEND_PROCESS_GROUP_CARDS_H

#include "compute/backend/plugin.h"
#include "compute/backend/process_group.h"
#include "compute/machine/process_barrier.h"

/* Makes the processes of the group compute on devices[rank] of inner, from the library at path ("":
 * in this program since before the fork). *out lives as long as the group; open engines with it,
 * the group and device devices[0]. tell: for the log, may be NULL. DP_UNSUPPORTED: the backend has
 * no parts; DP_BADARG: lanes differ from processes, or the path is too long; DP_NOMEM; all but that
 * with a sentence. */
DP_MUST dp_status dp_process_group_use_cards(dp_process_group *team, const dp_backend *inner,
                                             const char *path, const uint32_t *devices,
                                             void (*tell)(const char *sentence),
                                             const dp_backend **out, dp_why *why);
/* The same for a choice of several devices, if the group has as many processes: choice->backend
 * becomes the group's. Else nothing changes. On failure the first device computes alone, and tell
 * gets the cause. */
void dp_process_group_take_choice(dp_process_group *team, dp_plugin_choice *choice,
                                  void (*tell)(const char *sentence));
/* The plan of training with a choice: for several devices, that of the device on which the fewest
 * rows fit, for all rows together (ZeRO-1: each has its part of the moments). As plan of backend.h;
 * processes and lanes of the request count for a single device. */
DP_MUST dp_status dp_process_group_plan_choice(const dp_plugin_choice *choice,
                                               const dp_plan_request *request, dp_plan *out,
                                               dp_why *why);
/* True if the processes of the group train with engines of this backend: the CPU's, or the one of
 * dp_process_group_use_cards. team may be NULL. */
bool dp_process_group_serves(const dp_process_group *team, const dp_backend *backend);
/* The devices that compute together. A copy, which a thread may use longer than there is a group.
 */
typedef struct dp_group_devices {
    const dp_backend *backend; /* of a library, or the CPU's: it stays */
    uint32_t n;
    uint32_t devices[DP_PROCESS_BARRIER_PROCESSES_MAX];
} dp_group_devices;

/* Those that compute with this backend: the group's cards if it is theirs, else device. team may be
 * NULL. */
dp_group_devices dp_process_group_devices(const dp_process_group *team, const dp_backend *backend,
                                          uint32_t device);
/* Those of a choice. */
dp_group_devices dp_group_devices_of(const dp_plugin_choice *choice);
/* The precision in which they train: what the run asks for; for auto, bf16 where products of it are
 * faster on each of them, else fp32. */
dp_precision_kind dp_group_devices_precision(const dp_group_devices *of, dp_precision_kind asked);
/* Their highest temperature and highest power. INT32_MIN, 0: unknown. */
void dp_group_devices_feel(const dp_group_devices *of, int32_t *celsius, uint32_t *watts);

#endif
