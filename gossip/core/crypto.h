/* Signing as a table of two calls, so that the protocol core needs no key and no libsodium. */
#ifndef DP_GOSSIP_CORE_CRYPTO_H
#define DP_GOSSIP_CORE_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_PUBLIC_KEY_BYTES = 32, DP_SIGNATURE_BYTES = 64 };

enum DP_KEY {
    DP_KEY_IDENTITY, /* the node's Ed25519 identity: its name in the run */
    DP_KEY_VOTE,     /* the key of the vote table; only voters have one */
    DP_KEY_ROOT /* the run's root key; only where it was created, and there while it is asked for */
};

/* Every signature covers the domain, one zero byte and the bytes, so that a signature of one kind
 * of message never passes for another. Domains are constants of ours like "dpnode/cert/1". */
typedef struct dp_crypto {
    void *context;
    /* False, with signature untouched, when this node does not hold that key. */
    bool (*sign)(void *context, int key, const char *domain, dp_view bytes,
                 uint8_t signature[DP_SIGNATURE_BYTES]);
    bool (*verify)(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES], const char *domain,
                   dp_view bytes, const uint8_t signature[DP_SIGNATURE_BYTES]);
} dp_crypto;

#endif
