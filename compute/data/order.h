/* The order in which a pass goes through the windows of the data: a permutation of 0..n-1 that is
 * computed where it is needed, so nobody stores or sends it. Pure.
 *
 * A balanced Feistel network over the least even number of bits that hold n - 1, its values above n
 * walked on until one is below (Black, Rogaway 2002, "Ciphers with Arbitrary Finite Domains",
 * generalized Feistel and cycle walking). Not for secrets: the round function is a mixer, not a
 * cipher. */
#ifndef DP_COMPUTE_DATA_ORDER_H
#define DP_COMPUTE_DATA_ORDER_H

#include <stdint.h>

/* Place number index of pass number pass: index < n gives a value < n, each once. On average fewer
 * than four walks. */
uint64_t dp_admin_command_at(uint64_t seed, uint64_t pass, uint64_t n, uint64_t index);

#endif
