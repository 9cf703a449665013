/* Small damage to bytes, drawn from a seed: every decoder test applies it to valid messages. */
#ifndef DP_TESTS_LIB_MUTATE_H
#define DP_TESTS_LIB_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* Damages data of size bytes in place, one to four times: a flipped bit, a byte set to an extreme,
 * a cut, a doubled or removed piece, a number replaced by a huge one. Returns the new size, at most
 * capacity. */
size_t mutate(dp_rng *rng, uint8_t *data, size_t size, size_t capacity);

#endif
