/* The Noise protocol framework, revision 34 (Perrin 2018), for 25519, ChaChaPoly and BLAKE2b:
 * handshake states and cipher states as pure functions of keys that the caller brings. Patterns NN,
 * KK, XX and IK with any psk modifiers, because the published vectors need them; the channel uses
 * XXpsk0. */
#ifndef DP_GOSSIP_CHANNEL_NOISE_H
#define DP_GOSSIP_CHANNEL_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gossip/channel/suite.h"

enum {
    DP_NOISE_KEY_BYTES = 32,
    DP_NOISE_HASH_BYTES = 64,
    DP_NOISE_TAG_BYTES = 16,
    DP_NOISE_PSKS_MAX = 4,
    DP_NOISE_TOKENS_MAX = 6, /* in one message: "psk e ee s es psk" */
    DP_NOISE_MESSAGES_MAX = 3,
};

/* An AEAD with a counter nonce. After an error the counter has not moved. */
typedef struct dp_noise_cipher {
    uint8_t key[DP_NOISE_KEY_BYTES];
    uint64_t counter;
    bool keyed;
    const dp_suite *suite; /* NULL: ChaCha20-Poly1305, as in every handshake */
} dp_noise_cipher;

/* out: plaintext.size + 16 bytes; may start where plaintext starts. */
void dp_noise_seal(dp_noise_cipher *cipher, dp_view associated, dp_view plaintext, uint8_t *out);
/* out: sealed.size - 16 bytes; may start where sealed starts. DP_BADSIG; then out is zeroed or
 * untouched. */
DP_MUST dp_status dp_noise_open(dp_noise_cipher *cipher, dp_view associated, dp_view sealed,
                                uint8_t *out);
/* Section 11.3: k = first 32 bytes of ENCRYPT(k, 2^64 - 1, "", zeros); the counter starts again at
 * 0. */
void dp_noise_rekey(dp_noise_cipher *cipher);

typedef struct dp_noise_setup {
    const char *name; /* "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b" */
    bool initiator;
    dp_view prologue;
    const uint8_t *psks; /* n_psks times 32 bytes, in the order of the modifiers */
    uint8_t n_psks;
    const uint8_t *static_secret; /* 32 bytes, or NULL where the pattern has no own static key */
    const uint8_t *static_public; /* its public half, or NULL: computed */
    const uint8_t *remote_static; /* 32 bytes, where the pattern knows it beforehand, else NULL */
    const uint8_t *ephemeral_secret; /* 32 fresh random bytes */
} dp_noise_setup;

typedef struct dp_noise {
    uint8_t chaining_key[DP_NOISE_HASH_BYTES];
    uint8_t hash[DP_NOISE_HASH_BYTES]; /* the channel binding once done */
    dp_noise_cipher cipher;
    uint8_t static_secret[32];
    uint8_t static_public[32];
    uint8_t ephemeral_secret[32];
    uint8_t ephemeral_public[32];
    uint8_t remote_static[32];
    uint8_t remote_ephemeral[32];
    uint8_t psks[DP_NOISE_PSKS_MAX][32];
    uint8_t tokens[DP_NOISE_MESSAGES_MAX][DP_NOISE_TOKENS_MAX];
    uint8_t n_messages;
    uint8_t next_message;
    uint8_t n_psks;
    uint8_t next_psk;
    bool initiator;
    bool uses_psk;
} dp_noise;

/* DP_UNSUPPORTED for a name it does not know, DP_BADARG when a key that the pattern needs is
 * missing. Does no public-key operation when static_public is given. */
DP_MUST dp_status dp_noise_init(dp_noise *noise, const dp_noise_setup *setup);
/* Append the next handshake message to out. DP_BADARG when it is not our turn, DP_BADSIG for a
 * small-order point. */
DP_MUST dp_status dp_noise_write(dp_noise *noise, dp_view payload, dp_buf *out);
/* Read the next handshake message; payload (capacity bytes) receives *payload_size. DP_BADMSG: too
 * short; DP_TOOBIG: payload does not fit; DP_BADSIG: does not authenticate or holds a small-order
 * point. After an error the handshake is over: wipe it. */
DP_MUST dp_status dp_noise_read(dp_noise *noise, dp_view message, uint8_t *payload, size_t capacity,
                                size_t *payload_size);
bool dp_noise_is_done(const dp_noise *noise);
/* The transport ciphers, when done. */
void dp_noise_split(const dp_noise *noise, dp_noise_cipher *send, dp_noise_cipher *receive);
void dp_noise_close(dp_noise *noise); /* Wipes everything. */

#endif
