/* The order in which a pass visits the windows of the data: a permutation of 0..n-1 that is
 * computed on demand, so that it is neither stored nor sent. Pure.
 *
 * A balanced Feistel network over the smallest even number of bits that hold n - 1, with cycle
 * walking for values from n on (Black, Rogaway 2002, "Ciphers with Arbitrary Finite Domains"). Not
 * for secrets: the round function is a mixer, not a cipher. */
#ifndef DP_COMPUTE_DATA_ORDER_H
#define DP_COMPUTE_DATA_ORDER_H

#include <stdint.h>

/* The window at place index of pass number pass: for index < n a value < n, each once. On average
 * fewer than four walks. */
uint64_t dp_order_at(uint64_t seed, uint64_t pass, uint64_t n, uint64_t index);

#endif
