/* Claims a card for one training process of this machine: two would share its memory and its time
 * without knowing. The claim is a name in the kernel's abstract socket space, which ends with the
 * process; containers with a network of their own do not see each other's claims. */
#ifndef DP_COMPUTE_CUDA_CLAIM_H
#define DP_COMPUTE_CUDA_CLAIM_H

#include <stdbool.h>

#include "base/status.h"
#include "compute/cuda/api.h"

/* *fd: the claim, to be closed; -1 where none can be made, which is no reason not to compute.
 * DP_BUSY with a sentence: another one has it. */
DP_MUST dp_status dp_cuda_claim(const dp_cuda_properties *card, int *fd, dp_why *why);
/* True if some process, this one included, has claimed it. Claims nothing, so that no other process
 * is refused. */
bool dp_cuda_is_claimed(const dp_cuda_properties *card);

#endif
