#include "base/rng.h"

#include "base/assert.h"

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t dp_mix64(uint64_t value)
{
    uint64_t z = value + golden_gamma;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

void dp_rng_init(dp_rng *rng, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++) {
        rng->s[i] = dp_mix64(seed + i * golden_gamma);
    }
}

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

uint64_t dp_rng_next(dp_rng *rng)
{
    uint64_t *const s = rng->s;
    const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t dp_rng_below(dp_rng *rng, uint64_t limit)
{
    dp_assert(limit > 0);

    unsigned __int128 product = (unsigned __int128)dp_rng_next(rng) * limit;
    if ((uint64_t)product < limit) {
        /* 2^64 mod limit low halves would be hit once too often; draw again for those. */
        const uint64_t threshold = (0 - limit) % limit;

        while ((uint64_t)product < threshold) {
            product = (unsigned __int128)dp_rng_next(rng) * limit;
        }
    }
    return (uint64_t)(product >> 64);
}
