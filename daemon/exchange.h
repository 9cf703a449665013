/* Carries a dense exchange (gossip/dense.h) over the bulk lanes of a transport: cuts, encodes and sends parts, adds what comes, a
 * few parts at a time (pile.h), sends means, and says when all is there. No daemon uses it yet: bench_allreduce does. The arithmetic is a table, because
 * compute/ is not seen from here. Loop thread only; sealing and opening happen on the transport's crew.
 *
 * Who is ahead may send the parts of the next exchange before this side has begun it: at most DP_EXCHANGE_EARLY_BYTES, which are kept,
 * and the rest when this side has said OPEN (a message of kind 2). */
#ifndef DP_DAEMON_EXCHANGE_H
#define DP_DAEMON_EXCHANGE_H

#include "base/terms.h"
#include "daemon/transport.h"
#include "gossip/dense.h"

enum { DP_EXCHANGE_EARLY_BYTES = 2 << 20 }; /* of each member: a 100 Mbit line full for 160 ms */

/* As compute/dense.h has them. */
typedef struct dp_exchange_ops {
    size_t (*bytes)(uint8_t codec, size_t n);
    dp_status (*encode)(uint8_t codec, const float *x, size_t n, uint8_t *out);
    dp_status (*check)(uint8_t codec, dp_view bytes, size_t n);
    dp_status (*add)(const dp_terms *terms);
    dp_status (*mean)(const dp_terms *terms, uint64_t weights, uint8_t *out);
    dp_status (*decode)(uint8_t codec, dp_view bytes, size_t n, float *x);
} dp_exchange_ops;

typedef struct dp_exchange_config {
    dp_transport *transport;
    const dp_exchange_ops *ops; /* static */
    uint32_t n_members;
    uint32_t self;         /* index in peers */
    const dp_peer *peers;  /* copied; in the same order everywhere */
    const uint64_t *rates; /* of uplinks, or NULL for equal ones; the same everywhere */
    bool far;              /* paths between members are long; the same everywhere */
    uint64_t n_elements;
    uint8_t codec;
    void *context;
    /* DP_OK: x holds the mean everywhere. DP_TIMEOUT: dp_exchange_expire was called, and some chunks have no mean. DP_DIVERGED: x
     * cannot be encoded. Called once per exchange, from a hook of the transport's or from the calls below. */
    void (*done)(void *context, dp_status status);
} dp_exchange_config;

typedef struct dp_exchange dp_exchange;

DP_MUST dp_status dp_exchange_open(dp_exchange **exchange, const dp_exchange_config *config);
void dp_exchange_close(dp_exchange *exchange);

/* Average x, n_elements floats, in place; it stays the caller's, who leaves it alone until done. weight: 1 to DP_DENSE_WEIGHT_MAX. The
 * members' exchanges have the same numbers, each one more than the last, from 1. */
void dp_exchange_start(dp_exchange *exchange, uint64_t number, uint32_t weight, float *x);

/* True if it was a message of an exchange; what does not belong to one is dropped and counted. */
bool dp_exchange_message(dp_exchange *exchange, const dp_peer *peer, dp_view bytes);
void dp_exchange_drained(dp_exchange *exchange, const dp_peer *peer);

/* The time is over: own chunks are closed with the parts that are here, and what others have not sent stays as it was. */
void dp_exchange_expire(dp_exchange *exchange);

/* Whose parts are in this chunk's mean, as bits; 0: it has none. Of the exchange that ended last. */
uint32_t dp_exchange_present(const dp_exchange *exchange, uint32_t chunk);
const dp_dense_layout *dp_exchange_layout(const dp_exchange *exchange);
/* Messages that were dropped: from nobody, twice, malformed, of another exchange. */
uint64_t dp_exchange_dropped(const dp_exchange *exchange);

#endif
