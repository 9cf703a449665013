/* Who trains on a card: one process of this machine at a time, since two would share its memory and
 * its time without knowing. A name in the kernel's abstract socket space, which goes with the
 * process however it ends; containers with a network of their own do not see each other's. */
#ifndef DP_COMPUTE_CUDA_CLAIM_H
#define DP_COMPUTE_CUDA_CLAIM_H

#include <stdbool.h>

#include "base/status.h"
#include "compute/cuda/api.h"

/* *fd: the claim, to be closed; -1 where none can be made, which is no reason not to compute.
 * DP_BUSY with a sentence: another one has it. */
DP_MUST dp_status dp_cuda_claim(const dp_cuda_properties *card, int *fd, dp_why *why);
/* Some process has it, this one too. Claims nothing, so that nobody is turned away by it. */
bool dp_cuda_is_claimed(const dp_cuda_properties *card);

#endif
