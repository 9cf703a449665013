/* The ciphers that records may be sealed with, as tables of two calls without state: any thread may
 * seal or open any record, given its key and counter. Here are those of libsodium; the daemon may
 * bring faster ones of the same bytes.
 *
 *   1 ChaCha20-Poly1305 (RFC 8439), every program has it    nonce: 4 zero bytes | u64 counter,
 *     little-endian
 *   2 AES-256-GCM (NIST SP 800-38D), where the processor has it    nonce: 4 zero bytes | u64
 *     counter, big-endian
 * as the Noise framework (Perrin 2018, section 12) writes them. */
#ifndef DP_GOSSIP_CHANNEL_SUITE_H
#define DP_GOSSIP_CHANNEL_SUITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_SUITE_CHACHAPOLY = 1, DP_SUITE_AES256GCM = 2, DP_SUITES = 2, DP_SUITE_NONCE_BYTES = 12 };

/* All calls may run on several threads at once. key: 32 bytes. */
typedef struct dp_suite {
    uint8_t id; /* as negotiated, 1 to DP_SUITES */
    const char *name;
    /* out: plaintext.size + 16 bytes; may be where plaintext is. */
    void (*seal)(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                 uint8_t *out);
    /* sealed.size >= 16; out: sealed.size - 16 bytes; may be where sealed is. False: does not
     * authenticate; then out holds nothing that may be used. */
    bool (*open)(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                 uint8_t *out);
} dp_suite;

/* libsodium's; NULL: there is none of this id, or this processor cannot do it fast and in constant
 * time. After dp_crypto_start. */
const dp_suite *dp_suite_of(uint8_t id);

/* 12 bytes. */
void dp_suite_nonce(uint8_t id, uint64_t counter, uint8_t nonce[DP_SUITE_NONCE_BYTES]);

/* The key that a suite uses in place of one from the handshake, so that no key serves two ciphers:
 * ChaCha20-Poly1305 the same, others BLAKE2b-256 keyed with it over "dpnode/suite/1" | 0 | u8 id.
 * key: 32 bytes. */
void dp_suite_derive(const dp_suite *suite, uint8_t *key);

#endif
