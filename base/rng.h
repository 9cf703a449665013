/* A seeded random generator whose choices can be replayed: xoshiro256** (Blackman, Vigna 2018). Not
 * for keys. */
#ifndef DP_BASE_RNG_H
#define DP_BASE_RNG_H

#include <stdint.h>

typedef struct dp_rng {
    uint64_t s[4];
} dp_rng;

/* Expands seed with splitmix64, so that near seeds give different streams. */
void dp_rng_init(dp_rng *rng, uint64_t seed);
uint64_t dp_rng_next(dp_rng *rng);
/* Uniform in [0, limit). limit > 0. Without bias (Lemire 2019). */
uint64_t dp_rng_below(dp_rng *rng, uint64_t limit);
/* splitmix64 of one value: a hash for keys that no attacker chooses. */
uint64_t dp_mix64(uint64_t value);

#endif
