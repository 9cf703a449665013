#include "compute/data/order.h"

#include "base/assert.h"
#include "base/rng.h"

/* Luby and Rackoff need four rounds of a good function for a permutation that looks random; more
 * mend small halves. */
enum { ROUNDS = 7 };

/* Bits of each half: the least that make 4^bits >= n. */
static unsigned half_bits(uint64_t n)
{
    unsigned bits = 1;
    while (bits < 32 && (n - 1) >> (2 * bits) != 0) {
        bits++;
    }
    return bits;
}

static uint64_t permute(uint64_t key, unsigned bits, uint64_t value)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t left = value >> bits;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t mixed = dp_mix64(key ^ dp_mix64(right ^ round << 40));
        const uint64_t next = left ^ (mixed & mask);
        left = right;
        right = next;
    }
    return left << bits | right;
}

uint64_t dp_order_at(uint64_t seed, uint64_t pass, uint64_t n, uint64_t index)
{
    dp_assert(index < n);
    const unsigned bits = half_bits(n);
    const uint64_t key = dp_mix64(dp_mix64(seed) ^ pass);
    uint64_t value = index;
    /* A permutation leads back to index, which is below n, so this ends. */
    do {
        value = permute(key, bits, value);
    } while (value >= n);
    return value;
}
