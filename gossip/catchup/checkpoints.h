/* States that are whole on this disk: own checkpoints, and those fetched from peers. */
#ifndef DP_GOSSIP_CATCHUP_CHECKPOINTS_H
#define DP_GOSSIP_CATCHUP_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "gossip/core/limits.h"

enum { DP_CKPTS_MAX = 4 /* remembered */ };

typedef struct dp_ckpt {
    bool has;
    bool bad;
    bool fetched; /* held by DP_USE_STATE; else the driver's own checkpoints hold it */
    uint64_t round;
    dp_hash root;
    uint64_t bytes;
    dp_time since; /* zero: of an earlier life */
} dp_ckpt;

typedef struct dp_ckpts {
    dp_ckpt at[DP_CKPTS_MAX];
} dp_ckpts;

#endif
