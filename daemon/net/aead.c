#include "daemon/net/aead.h"

#include <string.h>

#if DP_LIBCRYPTO

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>

#include "base/assert.h"

enum { TAG_BYTES = 16 };

/* The cipher contexts that a thread keeps between records: making a new context takes as long as
 * sealing 4 KiB. */
typedef struct aead_thread {
    EVP_CIPHER_CTX *contexts[DP_SUITES];
} aead_thread;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool usable;
static EVP_CIPHER *ciphers[DP_SUITES];

static void free_thread(void *argument)
{
    aead_thread *thread = argument;
    for (int i = 0; i < DP_SUITES; i++) {
        EVP_CIPHER_CTX_free(thread->contexts[i]);
    }
    OPENSSL_free(thread);
}

static void start(void)
{
    usable = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1 &&
             pthread_key_create(&thread_key, free_thread) == 0;
    if (usable) {
        ciphers[DP_SUITE_CHACHAPOLY - 1] = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
        ciphers[DP_SUITE_AES256GCM - 1] = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    }
}

static EVP_CIPHER_CTX *context_of(uint8_t id)
{
    aead_thread *thread = pthread_getspecific(thread_key);
    if (thread == NULL) {
        thread = OPENSSL_zalloc(sizeof *thread);
        if (thread == NULL || pthread_setspecific(thread_key, thread) != 0) {
            OPENSSL_free(thread);
            return NULL;
        }
    }
    if (thread->contexts[id - 1] == NULL) {
        thread->contexts[id - 1] = EVP_CIPHER_CTX_new();
    }
    return thread->contexts[id - 1];
}

/* NULL: libcrypto has no memory; then libsodium, which needs none, is used. */
static EVP_CIPHER_CTX *ready(uint8_t id, const uint8_t *key, uint64_t counter, bool seals)
{
    uint8_t nonce[DP_SUITE_NONCE_BYTES];
    EVP_CIPHER_CTX *context = context_of(id);

    dp_suite_nonce(id, counter, nonce);
    return context != NULL &&
                   EVP_CipherInit_ex2(context, ciphers[id - 1], key, nonce, seals, NULL) == 1
               ? context
               : NULL;
}

static void seal_record(uint8_t id, const uint8_t *key, uint64_t counter, dp_view associated,
                        dp_view plaintext, uint8_t *out)
{
    int size = 0;
    EVP_CIPHER_CTX *context = ready(id, key, counter, true);

    if (context == NULL) {
        dp_suite_of(id)->seal(key, counter, associated, plaintext, out);
        return;
    }
    dp_assert(plaintext.size <= INT32_MAX && associated.size <= INT32_MAX);
    dp_assert(EVP_EncryptUpdate(context, NULL, &size, associated.data, (int)associated.size) == 1);
    dp_assert(EVP_EncryptUpdate(context, out, &size, plaintext.data, (int)plaintext.size) == 1);
    dp_assert(EVP_EncryptFinal_ex(context, out + plaintext.size, &size) == 1);
    dp_assert(
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, out + plaintext.size) == 1);
}

static bool open_record(uint8_t id, const uint8_t *key, uint64_t counter, dp_view associated,
                        dp_view sealed, uint8_t *out)
{
    uint8_t tag[TAG_BYTES];
    int size = 0;
    const size_t plain = sealed.size - TAG_BYTES;
    EVP_CIPHER_CTX *context = ready(id, key, counter, false);

    if (context == NULL) {
        return dp_suite_of(id)->open(key, counter, associated, sealed, out);
    }
    dp_assert(sealed.size <= INT32_MAX && associated.size <= INT32_MAX);
    memcpy(tag, sealed.data + plain, sizeof tag); /* out may overlap it */
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
           EVP_DecryptUpdate(context, NULL, &size, associated.data, (int)associated.size) == 1 &&
           EVP_DecryptUpdate(context, out, &size, sealed.data, (int)plain) == 1 &&
           EVP_DecryptFinal_ex(context, tag, &size) == 1;
}

static void chacha_seal(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                        uint8_t *out)
{
    seal_record(DP_SUITE_CHACHAPOLY, key, counter, associated, plaintext, out);
}

static bool chacha_open(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                        uint8_t *out)
{
    return open_record(DP_SUITE_CHACHAPOLY, key, counter, associated, sealed, out);
}

static void aes_seal(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                     uint8_t *out)
{
    seal_record(DP_SUITE_AES256GCM, key, counter, associated, plaintext, out);
}

static bool aes_open(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                     uint8_t *out)
{
    return open_record(DP_SUITE_AES256GCM, key, counter, associated, sealed, out);
}

static const dp_suite *fastest(uint8_t id)
{
    static const dp_suite own[DP_SUITES] = {
        {DP_SUITE_CHACHAPOLY, "ChaCha20-Poly1305", chacha_seal, chacha_open},
        {DP_SUITE_AES256GCM, "AES-256-GCM", aes_seal, aes_open},
    };
    const dp_suite *plain = dp_suite_of(id);

    /* Only ciphers that libsodium has too: it detects the processor's instructions, and is the
     * fallback. */
    pthread_once(&once, start);
    return plain != NULL && usable && ciphers[id - 1] != NULL ? &own[id - 1] : plain;
}

const char *dp_aead_name(void)
{
    pthread_once(&once, start);
    return usable ? "libcrypto" : "libsodium";
}

#else

static const dp_suite *fastest(uint8_t id)
{
    return dp_suite_of(id);
}

const char *dp_aead_name(void)
{
    return "libsodium";
}

#endif

void dp_aead_suites(const dp_suite *suites[DP_SUITES])
{
    for (uint32_t id = 1; id <= DP_SUITES; id++) {
        suites[id - 1] = fastest((uint8_t)id);
    }
}
