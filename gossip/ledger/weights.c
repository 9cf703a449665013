#include "gossip/ledger/weights.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "base/sort.h"
#include "gossip/core/limits.h"
#include "gossip/core/median.h"

typedef unsigned __int128 u128;

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

uint32_t dp_weight_share(u128 w, uint32_t clip, u128 all)
{
    dp_assert(clip <= 65536);
    return all == 0 ? 0 : (uint32_t)((w * clip << 15) / all);
}

static u128 energy_per_round(const dp_weight_in *in)
{
    const u128 factor = 12 / in->rounds;

    return in->energy * factor * factor;
}

dp_weight_out dp_weight_before(const dp_weight_in *in, uint64_t w_median, u128 clip_median)
{
    dp_assert(in->rounds >= 1 && in->rounds <= 4 && in->tokens <= UINT32_MAX);
    const u128 raw = in->steps == 0 ? 0 : (u128)in->tokens * in->tokens / in->steps;
    const u128 most = w_median == 0 ? (u128)UINT64_MAX : 4 * (u128)w_median;
    const u128 w = raw < most ? raw : most;

    return (dp_weight_out){.w = w < UINT64_MAX ? (uint64_t)w : UINT64_MAX,
                           .clip = clip_median == 0 ? (uint32_t)DP_CLIP_ONE
                                                    : clip_of(energy_per_round(in), clip_median)};
}

dp_weight_sum dp_weights_before(const dp_weight_in *in, uint32_t n, u128 late_w, dp_weight_out *out)
{
    u128 nonzero[DP_LISTED_MAX];
    uint32_t n_nonzero = 0;
    dp_weight_sum sum = {.w = late_w};

    dp_assert(n >= 1 && n <= DP_LISTED_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const u128 energy = energy_per_round(&in[i]);
        if (energy != 0) {
            nonzero[n_nonzero++] = energy;
        }
        sum.w += out[i].w;
    }
    sum.median = dp_lower_median(nonzero, n_nonzero);
    for (uint32_t i = 0; i < n; i++) {
        out[i].q = dp_weight_share(out[i].w, out[i].clip, sum.w);
    }
    return sum;
}

uint32_t dp_weight_pair(const uint64_t w[2], const u128 energy[2], u128 clip_median)
{
    const uint64_t small = w[0] < w[1] ? w[0] : w[1];
    const uint64_t large = w[0] < w[1] ? w[1] : w[0];
    const u128 shorter = energy[0] < energy[1] ? energy[0] : energy[1];
    const u128 longer = energy[0] < energy[1] ? energy[1] : energy[0];
    const u128 rounds = clip_median / 9; /* E (12 / 4)^2 is M */
    uint64_t damp = DP_CLIP_ONE;

    if (dp_broken(113)) {
        return DP_CLIP_ONE;
    }
    if (large / 4 > small) {
        damp = (uint64_t)(4 * ((u128)large + small) * DP_CLIP_ONE / (5 * (u128)large));
    }
    return clip_median == 0
               ? (uint32_t)damp
               : (uint32_t)(damp * clip_of(longer, shorter > rounds ? shorter : rounds) /
                            DP_CLIP_ONE);
}

dp_weight_sum dp_weights(const dp_weight_in *in, uint32_t n, u128 late_w, dp_weight_out *out)
{
    u128 weights[DP_LISTED_MAX];
    u128 energies[DP_LISTED_MAX];
    u128 nonzero[DP_LISTED_MAX];
    uint32_t n_nonzero = 0;
    dp_weight_sum sum = {.w = late_w};

    dp_assert(n <= DP_LISTED_MAX);
    dp_assert(n >= 1 && n <= DP_LISTED_MAX);
    for (uint32_t i = 0; i < n; i++) {
        dp_assert(in[i].rounds >= 1 && in[i].rounds <= 4 && in[i].tokens <= UINT32_MAX &&
                  in[i].age <= 1);
        weights[i] = in[i].steps == 0 ? 0 : (u128)in[i].tokens * in[i].tokens / in[i].steps;
        energies[i] = energy_per_round(&in[i]);
        if (energies[i] != 0) {
            nonzero[n_nonzero++] = energies[i];
        }
    }
    sum.median = dp_lower_median(nonzero, n_nonzero);
    const u128 most = 4 * dp_lower_median(weights, n);
    for (uint32_t i = 0; i < n; i++) {
        out[i].w = (uint64_t)(weights[i] < most ? weights[i] : most);
        out[i].clip = clip_of(energies[i], sum.median) >> (dp_broken(66) ? 0 : in[i].age);
        sum.w += out[i].w;
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i].q = dp_weight_share(out[i].w, out[i].clip, sum.w);
    }
    return sum;
}
