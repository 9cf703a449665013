/* Stochastic rounding of fp32 to bf16 with random bits that depend only on (seed, step, element):
 * the same bits for any number of threads, any cut into ranges, any machine. Not for secrets. */
#ifndef DP_COMPUTE_CPU_STOCHASTIC_ROUNDING_H
#define DP_COMPUTE_CPU_STOCHASTIC_ROUNDING_H

#include <stddef.h>
#include <stdint.h>

/* Philox4x32-10 (Salmon et al. 2011): four random words as a function of a counter and a key. */
void dp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

typedef struct dp_stochastic_key {
    uint64_t seed;
    uint64_t step;
} dp_stochastic_key;

/* Rounds x[i] to one of the two bf16 values next to it, in fp32, the upper one with probability
 * (x[i] - lower) / (upper - lower); a bf16 value stays. i stands for element first + i: its 16
 * random bits are the (i mod 8)-th of Philox(counter = (i / 8, step), key = seed). NaN and infinity
 * stay; a finite value never becomes infinite. */
void dp_stochastic_bf16(float *x, size_t n, uint64_t first, const dp_stochastic_key *key);

#endif
