#include "gossip/core/id.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(sizeof(((dp_sign_key *)0)->secret_key) == crypto_sign_SECRETKEYBYTES,
               "libsodium's form");
_Static_assert(DP_PUBLIC_KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "Ed25519");
_Static_assert(DP_SIGNATURE_BYTES == crypto_sign_BYTES, "Ed25519");

enum { KEY_FILE_VERSION = 1, KEY_FILE_MAGIC_BYTES = 6 };

static const uint8_t key_file_magic[KEY_FILE_MAGIC_BYTES] = {'D', 'P', 'K', 'E', 'Y', 0};

int dp_peer_compare(const dp_peer *a, const dp_peer *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

bool dp_peer_is_zero(const dp_peer *peer)
{
    return sodium_is_zero(peer->bytes, sizeof peer->bytes) == 1;
}

void dp_peer_text(const dp_peer *peer, char text[DP_PEER_TEXT_MAX])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t hash[32];

    crypto_generichash(hash, sizeof hash, peer->bytes, sizeof peer->bytes, NULL, 0);
    /* Sixty bits of the hash, the first bit first, five to a character. */
    for (unsigned i = 0; i < DP_PEER_TEXT_CHARS; i++) {
        const unsigned bit = i * 5;
        const unsigned pair = (unsigned)hash[bit / 8] << 8 | hash[bit / 8 + 1];
        text[i] = alphabet[pair >> (11 - bit % 8) & 31U];
    }
    text[DP_PEER_TEXT_CHARS] = '\0';
}

void dp_sign_key_of_seed(const uint8_t seed[32], dp_sign_key *key)
{
    crypto_sign_seed_keypair(key->public_key, key->secret_key, seed);
}

void dp_identity_of_seed(const dp_entropy *seed, dp_identity *identity)
{
    memcpy(identity->seed, seed->bytes, sizeof identity->seed);
    dp_sign_key_of_seed(seed->bytes, &identity->ed);
    memcpy(identity->x_secret, seed->bytes + 32, sizeof identity->x_secret);
    crypto_scalarmult_base(identity->x_public, identity->x_secret);
}

dp_peer dp_identity_peer(const dp_identity *identity)
{
    dp_peer peer;

    memcpy(peer.bytes, identity->ed.public_key, sizeof peer.bytes);
    return peer;
}

void dp_identity_close(dp_identity *identity)
{
    sodium_memzero(identity, sizeof *identity);
}

void dp_identity_encode(const dp_identity *identity, uint8_t file[DP_IDENTITY_FILE_BYTES])
{
    dp_writer writer = dp_writer_of(file, DP_IDENTITY_FILE_BYTES);

    dp_write_bytes(&writer, key_file_magic, sizeof key_file_magic);
    dp_write_u16(&writer, KEY_FILE_VERSION);
    dp_write_bytes(&writer, identity->seed, sizeof identity->seed);
    const dp_hash check = dp_hash_of("dpnode/key/1", dp_view_of(file, writer.size));
    dp_write_bytes(&writer, check.bytes, sizeof check.bytes);
    dp_assert(!writer.full && writer.size == DP_IDENTITY_FILE_BYTES);
}

dp_status dp_identity_decode(dp_view file, dp_identity *identity)
{
    uint8_t magic[KEY_FILE_MAGIC_BYTES];
    dp_entropy seed;
    dp_hash check;
    dp_reader reader = dp_reader_of(file);

    dp_read_bytes(&reader, magic, sizeof magic);
    const uint16_t version = dp_read_u16(&reader);
    if (reader.failed || memcmp(magic, key_file_magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    if (version != KEY_FILE_VERSION) {
        return DP_VERSION;
    }
    dp_read_bytes(&reader, seed.bytes, sizeof seed.bytes);
    dp_read_bytes(&reader, check.bytes, sizeof check.bytes);
    dp_status status = dp_reader_finish(&reader);
    if (status == DP_OK) {
        const dp_hash expected =
            dp_hash_of("dpnode/key/1", dp_view_of(file.data, file.size - sizeof check.bytes));
        status = dp_hash_equal(&check, &expected) ? DP_OK : DP_CORRUPT;
    }
    if (status == DP_OK) {
        dp_identity_of_seed(&seed, identity);
    }
    sodium_memzero(&seed, sizeof seed);
    return status;
}

void dp_sign(const dp_sign_key *key, const char *domain, dp_view bytes,
             uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_hash hash = dp_hash_of(domain, bytes);

    crypto_sign_detached(signature, NULL, hash.bytes, sizeof hash.bytes, key->secret_key);
}

bool dp_verify(const uint8_t public_key[DP_PUBLIC_KEY_BYTES], const char *domain, dp_view bytes,
               const uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_hash hash = dp_hash_of(domain, bytes);

    return crypto_sign_verify_detached(signature, hash.bytes, sizeof hash.bytes, public_key) == 0;
}

static bool sign_with_table(void *context, int key, const char *domain, dp_view bytes,
                            uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_crypto_keys *keys = context;
    const dp_sign_key *secret = NULL;

    if (key == DP_KEY_IDENTITY) {
        secret = &keys->identity->ed;
    } else if (key == DP_KEY_VOTE) {
        secret = keys->vote;
    } else if (key == DP_KEY_ROOT) {
        secret = keys->root;
    }
    if (secret == NULL) {
        return false;
    }
    dp_sign(secret, domain, bytes, signature);
    return true;
}

static bool verify_with_table(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES],
                              const char *domain, dp_view bytes,
                              const uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)context;
    return dp_verify(public_key, domain, bytes, signature);
}

dp_crypto dp_crypto_sodium(dp_crypto_keys *keys)
{
    dp_assert(keys->identity != NULL);
    return (dp_crypto){.context = keys, .sign = sign_with_table, .verify = verify_with_table};
}

dp_status dp_crypto_start(void)
{
    return sodium_init() < 0 ? DP_UNSUPPORTED : DP_OK;
}
