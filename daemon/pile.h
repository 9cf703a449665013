/* What came of the own chunks of a dense exchange (daemon/exchange.h) until their means are made: parts that wait for the others, so that
 * all are added in one pass over memory, or the sum that is begun when there are more of them. Adding up is exact, so it does not matter
 * to the result which of the two it was. Loop thread only. */
#ifndef DP_DAEMON_PILE_H
#define DP_DAEMON_PILE_H

#include "base/bytes.h"
#include "base/status.h"
#include "base/terms.h"

/* Of a chunk: as fp32 no more bytes than the sum has. Up to four members no sum is made. */
enum { DP_PILE_HELD = DP_TERMS_PARTS_MAX - 1 };

typedef struct dp_pile dp_pile;

/* part_bytes: of the largest part, chunk_elements: of the largest chunk. */
DP_MUST dp_status dp_pile_open(dp_pile **pile, uint32_t n_chunks, size_t part_bytes,
                               size_t chunk_elements);
void dp_pile_close(dp_pile *pile); /* Accepts NULL. */

/* A new exchange: nothing has come but the own values, which count weight times. Memory is kept for it. */
void dp_pile_restart(dp_pile *pile, uint32_t weight);

/* One more part, which is copied. terms: codec, n and x of the chunk, the rest is filled in. DP_NOMEM, or what add says; then the exchange
 * is lost. */
DP_MUST dp_status dp_pile_add(dp_pile *pile, uint32_t chunk, dp_terms *terms, dp_view part,
                              uint32_t weight, dp_status (*add)(const dp_terms *terms));

/* All that is here, for the mean: with a last part, lent, or without (size 0). Returns the sum of the weights. */
uint64_t dp_pile_take(const dp_pile *pile, uint32_t chunk, dp_terms *terms, dp_view last,
                      uint32_t weight);
/* The mean is made; what dp_pile_take lent is gone. */
void dp_pile_forget(dp_pile *pile, uint32_t chunk);

#endif
