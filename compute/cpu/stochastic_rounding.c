#include "compute/cpu/stochastic_rounding.h"

#include "compute/cpu/half.h"

enum {
    LANES = 8, /* elements of one counter */
    ROUNDS = 10,
    GROUP = 16 /* counters that are treated together */
};

/* Salmon et al. 2011, table 2: multipliers, and the increments of the key: the golden ratio,
 * sqrt(3) - 1. */
#define MULTIPLY0 0xD2511F53U
#define MULTIPLY1 0xCD9E8D57U
#define WEYL0 0x9E3779B9U
#define WEYL1 0xBB67AE85U

void dp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t a = (uint64_t)MULTIPLY0 * c0;
        const uint64_t b = (uint64_t)MULTIPLY1 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += WEYL0;
        k1 += WEYL1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Truncation after adding 16 random bits below the last kept one: carries with the right
 * probability. */
static float round_one(float x, uint32_t random)
{
    enum { INFINITE = 0x7f800000 };
    const uint32_t bits = dp_float_bits(x);
    if ((bits & INFINITE) == INFINITE) {
        return x;
    }
    const uint32_t up = (bits + (random & 0xffffU)) & 0xffff0000U;
    return dp_float_of_bits((up & INFINITE) == INFINITE ? bits & 0xffff0000U : up);
}

/* Any few elements. */
static void round_some(float *x, size_t n, uint64_t first, const dp_stochastic_key *key)
{
    const uint32_t words[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    size_t i = 0;
    while (i < n) {
        const uint64_t element = first + i;
        const uint64_t block = element / LANES;
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)key->step,
                                     (uint32_t)(key->step >> 32)};
        uint32_t random[4];
        dp_philox(counter, words, random);
        const size_t end = i + (LANES - element % LANES);
        for (size_t lane = element % LANES; i < n && i < end; i++, lane++) {
            x[i] = round_one(x[i], random[lane / 2] >> (lane % 2 * 16));
        }
    }
}

/* The same for GROUP whole counters from block on: loops over counters, which become vectors. */
static void round_group(float *x, uint64_t block, const dp_stochastic_key *key)
{
    uint32_t c[4][GROUP];
    for (size_t i = 0; i < GROUP; i++) {
        c[0][i] = (uint32_t)(block + i);
        c[1][i] = (uint32_t)((block + i) >> 32);
        c[2][i] = (uint32_t)key->step;
        c[3][i] = (uint32_t)(key->step >> 32);
    }
    uint32_t k0 = (uint32_t)key->seed;
    uint32_t k1 = (uint32_t)(key->seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < GROUP; i++) {
            const uint64_t a = (uint64_t)MULTIPLY0 * c[0][i];
            const uint64_t b = (uint64_t)MULTIPLY1 * c[2][i];
            c[0][i] = (uint32_t)(b >> 32) ^ c[1][i] ^ k0;
            c[1][i] = (uint32_t)b;
            c[2][i] = (uint32_t)(a >> 32) ^ c[3][i] ^ k1;
            c[3][i] = (uint32_t)a;
        }
        k0 += WEYL0;
        k1 += WEYL1;
    }
    uint32_t random[GROUP * LANES];
    for (size_t i = 0; i < GROUP; i++) {
        for (size_t word = 0; word < 4; word++) {
            random[i * LANES + 2 * word] = c[word][i];
            random[i * LANES + 2 * word + 1] = c[word][i] >> 16;
        }
    }
    for (size_t i = 0; i < (size_t)GROUP * LANES; i++) {
        x[i] = round_one(x[i], random[i]);
    }
}

void dp_stochastic_bf16(float *x, size_t n, uint64_t first, const dp_stochastic_key *key)
{
    const size_t whole = (size_t)GROUP * LANES;
    size_t at = (LANES - first % LANES) % LANES;
    at = at < n ? at : n;
    round_some(x, at, first, key);
    for (; n - at >= whole; at += whole) {
        round_group(x + at, (first + at) / LANES, key);
    }
    round_some(x + at, n - at, first + at, key);
}
