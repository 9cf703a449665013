#include "compute/rules/scaler.h"

#include <math.h>

dp_scaler dp_scaler_start(void)
{
    return (dp_scaler){.scale = DP_SCALER_START};
}

void dp_scaler_told(dp_scaler *scaler, bool finite)
{
    if (!finite) {
        scaler->skipped++;
        scaler->good = 0;
        scaler->scale = scaler->scale > DP_SCALER_MIN ? scaler->scale * 0.5F : DP_SCALER_MIN;
        return;
    }
    scaler->good++;
    if (scaler->good >= DP_SCALER_GOOD_STEPS) {
        scaler->good = 0;
        scaler->scale = scaler->scale < DP_SCALER_MAX ? scaler->scale * 2.0F : DP_SCALER_MAX;
    }
}

bool dp_scaler_is_possible(const dp_scaler *scaler)
{
    int exponent = 0;
    return scaler->scale >= DP_SCALER_MIN && scaler->scale <= DP_SCALER_MAX &&
           frexpf(scaler->scale, &exponent) == 0.5F && scaler->good < DP_SCALER_GOOD_STEPS;
}
