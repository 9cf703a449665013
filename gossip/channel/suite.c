#include "gossip/channel/suite.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

enum { KEY_BYTES = 32, TAG_BYTES = 16 };

_Static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == DP_SUITE_NONCE_BYTES, "ChaCha");
_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == DP_SUITE_NONCE_BYTES, "AES");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == TAG_BYTES &&
                   crypto_aead_aes256gcm_ABYTES == TAG_BYTES,
               "one size of tag");
_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == KEY_BYTES &&
                   crypto_aead_aes256gcm_KEYBYTES == KEY_BYTES,
               "one size of key");

void dp_suite_nonce(uint8_t id, uint64_t counter, uint8_t nonce[DP_SUITE_NONCE_BYTES])
{
    memset(nonce, 0, 4);
    for (unsigned i = 0; i < 8; i++) {
        nonce[4 + i] = (uint8_t)(counter >> 8 * (id == DP_SUITE_AES256GCM ? 7 - i : i));
    }
}

static void chacha_seal(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                        uint8_t *out)
{
    uint8_t nonce[DP_SUITE_NONCE_BYTES];

    dp_suite_nonce(DP_SUITE_CHACHAPOLY, counter, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plaintext.data, plaintext.size,
                                              associated.data, associated.size, NULL, nonce, key);
}

static bool chacha_open(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                        uint8_t *out)
{
    uint8_t nonce[DP_SUITE_NONCE_BYTES];

    dp_suite_nonce(DP_SUITE_CHACHAPOLY, counter, nonce);
    return crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed.data, sealed.size,
                                                     associated.data, associated.size, nonce,
                                                     key) == 0;
}

static void aes_seal(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                     uint8_t *out)
{
    uint8_t nonce[DP_SUITE_NONCE_BYTES];

    dp_suite_nonce(DP_SUITE_AES256GCM, counter, nonce);
    crypto_aead_aes256gcm_encrypt(out, NULL, plaintext.data, plaintext.size, associated.data,
                                  associated.size, NULL, nonce, key);
}

static bool aes_open(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                     uint8_t *out)
{
    uint8_t nonce[DP_SUITE_NONCE_BYTES];

    dp_suite_nonce(DP_SUITE_AES256GCM, counter, nonce);
    return crypto_aead_aes256gcm_decrypt(out, NULL, NULL, sealed.data, sealed.size, associated.data,
                                         associated.size, nonce, key) == 0;
}

const dp_suite *dp_suite_of(uint8_t id)
{
    static const dp_suite chacha = {DP_SUITE_CHACHAPOLY, "ChaCha20-Poly1305", chacha_seal,
                                    chacha_open};
    static const dp_suite aes = {DP_SUITE_AES256GCM, "AES-256-GCM", aes_seal, aes_open};

    if (id == DP_SUITE_CHACHAPOLY) {
        return &chacha;
    }
    return id == DP_SUITE_AES256GCM && crypto_aead_aes256gcm_is_available() == 1 ? &aes : NULL;
}

void dp_suite_derive(const dp_suite *suite, uint8_t *key)
{
    uint8_t message[] = "dpnode/suite/1\0"; /* its last byte, which is a second zero, is the id */
    uint8_t derived[KEY_BYTES];

    if (suite->id == DP_SUITE_CHACHAPOLY) {
        return;
    }
    message[sizeof message - 1] = suite->id;
    crypto_generichash(derived, sizeof derived, message, sizeof message, key, KEY_BYTES);
    memcpy(key, derived, sizeof derived);
    sodium_memzero(derived, sizeof derived);
}
