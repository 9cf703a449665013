/* The encoding of displacement of the toy trainer: the functions of toy_bytes.c for toy.c, in
 * addition to toy.h. */
#ifndef DP_SIM_TOY_BYTES_H
#define DP_SIM_TOY_BYTES_H

#include "tests/sim/toy.h"

/* Encodes the count largest elements into parcel's blob. */
void dp_toy_encode(const dp_toy_vector vector, uint32_t count, uint64_t nonce,
                   dp_toy_parcel *parcel);
/* One blob for each part, and one of all of them together, only for their author. */
void dp_toy_encode_parts(const dp_toy_vector vector, bool dense, const dp_part_cuts *cuts,
                         uint64_t nonce, dp_toy_parcel *parcel);

/* The bytes that a trainer stores on the disk and gets back: a work buffer with its work and
 * samples. */
void dp_toy_write_vector(const dp_toy_vector vector, dp_toy_work work,
                         const dp_toy_samples *samples, uint8_t out[DP_TOY_VECTOR_BYTES]);
/* DP_BADMSG; then only samples may have changed. */
DP_MUST dp_status dp_toy_read_vector(dp_view bytes, dp_toy_vector vector, dp_toy_work *work,
                                     dp_toy_samples *samples);

#endif
