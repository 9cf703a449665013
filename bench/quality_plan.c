#include <math.h>

#include "bench/quality_run.h"
#include "compute/codec/codec.h"

uint32_t quality_nodes(const quality_plan *plan)
{
    if (plan->kind != QUALITY_AS_ONE) {
        return plan->workers;
    }
    return plan->batches > 0 ? plan->batches : QUALITY_BATCHES;
}

/* Bits of the gap before an entry, by a Rice code: b low bits, a stop bit and floor(g / 2^b) ones.
 * Gaps between random places are geometric with p = 1 / keep; b is near the log2 of their
 * median. */
static double gap_bits(double keep)
{
    const double b = log2(keep) - 1;
    const double stay = pow(1 - 1 / keep, pow(2, b));
    return b + 1 + stay / (1 - stay);
}

double quality_bytes_of(const quality_plan *plan, double n)
{
    const double runs = n / DP_CODEC_RUN;
    const double block = dp_codec_row_of(plan->codec)->block_default;
    const double kept = plan->keep > 0 ? DP_CODEC_RUN / plan->keep : 0;
    const double centroids = 2.0 * DP_CODEC_BITS_DEFAULT; /* of two bytes */
    double payload = 0;
    switch (plan->codec) {
    case DP_CODEC_FP32:
        payload = 4 * n;
        break;
    case DP_CODEC_BF16:
        payload = 2 * n;
        break;
    case DP_CODEC_INT8:
        payload = n + 2 * n / block;
        break;
    case DP_CODEC_INT4:
        payload = n / 2 + 2 * n / block;
        break;
    case DP_CODEC_SPARSE:
        payload = runs * (centroids + kept * (DP_CODEC_BITS_DEFAULT + gap_bits(plan->keep)) / 8);
        break;
    case DP_CODEC_KINDS:
        break;
    }
    return DP_CODEC_HEADER_BYTES + payload;
}
