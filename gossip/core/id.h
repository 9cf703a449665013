/* Identities: node ids, the keys behind them, their text and file form, and domain-separated
 * signatures. Keys are made from seeds that the caller draws; nothing here reads a random source, a
 * clock or a file. */
#ifndef DP_GOSSIP_CORE_ID_H
#define DP_GOSSIP_CORE_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "gossip/core/crypto.h"

/* A node's Ed25519 public key is its id. */
typedef struct dp_peer {
    uint8_t bytes[DP_PUBLIC_KEY_BYTES];
} dp_peer;

/* The hash of the run's manifest. */
typedef dp_hash dp_run_id;

static inline bool dp_peer_equal(const dp_peer *a, const dp_peer *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
/* Order of the bytes: negative, 0, positive. This is "key order" in the protocol. */
int dp_peer_compare(const dp_peer *a, const dp_peer *b);
bool dp_peer_is_zero(const dp_peer *peer);

enum { DP_PEER_TEXT_CHARS = 12, DP_PEER_TEXT_MAX = DP_PEER_TEXT_CHARS + 1 };

/* Twelve lower-case base32 characters of BLAKE2b-256(public key): for people, not for comparing. */
void dp_peer_text(const dp_peer *peer, char text[DP_PEER_TEXT_MAX]);

/* Random bytes drawn by the caller. A function that takes n bytes uses the first n and never the
 * same twice. */
typedef struct dp_entropy {
    uint8_t bytes[64];
} dp_entropy;

typedef struct dp_sign_key {
    uint8_t public_key[DP_PUBLIC_KEY_BYTES];
    uint8_t secret_key[64]; /* libsodium's form: seed, then public key */
} dp_sign_key;

/* From a 32-byte seed. */
void dp_sign_key_of_seed(const uint8_t seed[32], dp_sign_key *key);

typedef struct dp_identity {
    uint8_t seed[64];     /* 32 for Ed25519, 32 for X25519: all that the key file holds */
    dp_sign_key ed;       /* signs; ed.public_key is the node id */
    uint8_t x_public[32]; /* X25519, static key of the channel */
    uint8_t x_secret[32];
} dp_identity;

void dp_identity_of_seed(const dp_entropy *seed, dp_identity *identity);
dp_peer dp_identity_peer(const dp_identity *identity);
/* Wipes the secrets. */
void dp_identity_close(dp_identity *identity);

/* The key file: "DPKEY\0" | u16 version | seed 64 | BLAKE2b-256 of all before. The daemon guards
 * its mode. */
enum { DP_IDENTITY_FILE_BYTES = 8 + 64 + 32 };
void dp_identity_encode(const dp_identity *identity, uint8_t file[DP_IDENTITY_FILE_BYTES]);
/* DP_BADMSG: not a key file. DP_VERSION: of a later program. DP_CORRUPT: the checksum differs. */
DP_MUST dp_status dp_identity_decode(dp_view file, dp_identity *identity);

/* Ed25519 over BLAKE2b-256(domain, 0, bytes). */
void dp_sign(const dp_sign_key *key, const char *domain, dp_view bytes,
             uint8_t signature[DP_SIGNATURE_BYTES]);
/* Also false for a key or an R of small order and for a signature that is not canonical. */
bool dp_verify(const uint8_t public_key[DP_PUBLIC_KEY_BYTES], const char *domain, dp_view bytes,
               const uint8_t signature[DP_SIGNATURE_BYTES]);

/* The keys behind a dp_crypto. Borrowed; vote and root may be NULL, then signing with them is
 * refused. */
typedef struct dp_crypto_keys {
    const dp_identity *identity;
    const dp_sign_key *vote;
    const dp_sign_key *root;
} dp_crypto_keys;

/* keys must outlive the table. */
dp_crypto dp_crypto_sodium(dp_crypto_keys *keys);

/* Call once before anything else in gossip/ that uses keys. DP_UNSUPPORTED if libsodium does not
 * start. */
DP_MUST dp_status dp_crypto_start(void);

#endif
