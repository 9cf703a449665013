#include "gossip/weights.h"

#include "base/assert.h"
#include "gossip/mutation.h"
#include "gossip/node.h"

typedef unsigned __int128 u128;

/* Insertion sort: at most 32 numbers. */
static u128 lower_median(const u128 *values, uint32_t n)
{
    u128 sorted[DP_LISTED_MAX];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        while (at > 0 && sorted[at - 1] > values[i]) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = values[i];
    }
#if DP_MUTATION == 40
    return n == 0 ? 0 : sorted[n / 2];
#else
    return n == 0 ? 0 : sorted[(n - 1) / 2];
#endif
}

static uint32_t bit_length(u128 value)
{
    uint32_t bits = 0;

    while (value != 0) {
        value >>= 1;
        bits++;
    }
    return bits;
}

uint64_t dp_isqrt(u128 value)
{
    u128 root = 0;

    /* One bit of the root at a time, from the top. */
    for (int bit = 63; bit >= 0; bit--) {
        const u128 next = root | ((u128)1 << bit);
        if (next <= UINT64_MAX && next * next <= value) {
            root = next;
        }
    }
    return (uint64_t)root;
}

static uint32_t clip_of(u128 energy, u128 median)
{
    if (energy <= median) {
        return DP_CLIP_ONE;
    }
    const uint32_t bits = bit_length(energy);
    const uint32_t shift = bits > 64 ? bits - 64 : 0;
    const u128 ratio = ((median >> shift) << 32) / (energy >> shift);
    const uint64_t clip = dp_isqrt(ratio);
    return clip < DP_CLIP_ONE ? (uint32_t)clip : (uint32_t)DP_CLIP_ONE;
}

dp_weight_sum dp_weights(const dp_weight_in *in, uint32_t n, u128 late_w, dp_weight_out *out)
{
    u128 weights[DP_LISTED_MAX];
    u128 energies[DP_LISTED_MAX];
    u128 nonzero[DP_LISTED_MAX];
    uint32_t n_nonzero = 0;
    dp_weight_sum sum = {.w = late_w};

    dp_assert(n >= 1 && n <= DP_LISTED_MAX);
    for (uint32_t i = 0; i < n; i++) {
        dp_assert(in[i].rounds >= 1 && in[i].rounds <= 4 && in[i].tokens <= UINT32_MAX);
        weights[i] = in[i].steps == 0 ? 0 : (u128)in[i].tokens * in[i].tokens / in[i].steps;
        const u128 factor = 12 / in[i].rounds;
        energies[i] = in[i].energy * factor * factor;
        if (energies[i] != 0) {
            nonzero[n_nonzero++] = energies[i];
        }
    }
    sum.median = lower_median(nonzero, n_nonzero);
    const u128 most = 4 * lower_median(weights, n);
    for (uint32_t i = 0; i < n; i++) {
        out[i].w = (uint64_t)(weights[i] < most ? weights[i] : most);
        out[i].clip = clip_of(energies[i], sum.median);
        sum.w += out[i].w;
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i].q = sum.w == 0 ? 0 : (uint32_t)(((u128)out[i].w * out[i].clip << 15) / sum.w);
    }
    return sum;
}
