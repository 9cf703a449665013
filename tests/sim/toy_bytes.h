/* How displacement of the toy trainer is written: what toy.c needs of toy_bytes.c beside toy.h. */
#ifndef DP_SIM_TOY_BYTES_H
#define DP_SIM_TOY_BYTES_H

#include "tests/sim/toy.h"

/* Into parcel's blob: the count largest elements of it. */
void dp_toy_encode(const dp_toy_vector vector, uint32_t count, uint64_t nonce,
                   dp_toy_parcel *parcel);
/* One blob for each part; and all of them together once more, for their author alone. */
void dp_toy_encode_parts(const dp_toy_vector vector, bool dense, const dp_part_cuts *cuts,
                         uint64_t nonce, dp_toy_parcel *parcel);

/* The bytes that a trainer gives to the disk and gets back: a work buffer with the work and the
 * samples in it. */
void dp_toy_write_vector(const dp_toy_vector vector, dp_toy_work work,
                         const dp_toy_samples *samples, uint8_t out[DP_TOY_VECTOR_BYTES]);
/* DP_BADMSG; then samples may have changed, and nothing else. */
DP_MUST dp_status dp_toy_read_vector(dp_view bytes, dp_toy_vector vector, dp_toy_work *work,
                                     dp_toy_samples *samples);

#endif
