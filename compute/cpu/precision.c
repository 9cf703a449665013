#include "compute/cpu/precision.h"

static const char *const names[DP_PRECISIONS] = {
    [DP_FP32] = "fp32", [DP_BF16] = "bf16", [DP_FP16] = "fp16"};

const char *dp_precision_name(dp_precision precision)
{
    return names[precision];
}

bool dp_precision_of(const char *name, dp_precision *out)
{
    for (size_t i = 0; i < DP_PRECISIONS; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (dp_precision)i;
            return true;
        }
    }
    return false;
}

dp_precision dp_precision_of_kind(dp_precision_kind kind)
{
    switch (kind) {
    case DP_PRECISION_BF16:
        return DP_BF16;
    case DP_PRECISION_FP16:
        return DP_FP16;
    case DP_PRECISION_FP32:
    case DP_PRECISION_AUTO: /* of which a device decides (process_group_cards.h) */
        break;
    }
    return DP_FP32;
}
