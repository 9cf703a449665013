#include "gossip/channel/noise.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(DP_NOISE_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "ChaChaPoly");
_Static_assert(DP_NOISE_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "ChaChaPoly");
_Static_assert(DP_NOISE_HASH_BYTES == crypto_generichash_BYTES_MAX, "BLAKE2b");

enum { BLOCK_BYTES = 128 }; /* of BLAKE2b, for HMAC */

enum token { END = 0, E, S, EE, ES, SE, SS, PSK };

/* Section 7.5: the interactive patterns that the project or the vectors use. known: the static keys
 * that the two sides know before the first message, 'i' the initiator's, 'r' the responder's. */
struct pattern {
    const char *name;
    const char *known;
    uint8_t messages[DP_NOISE_MESSAGES_MAX][4];
};

static const struct pattern patterns[] = {
    {"NN", "", {{E}, {E, EE}}},
    {"XX", "", {{E}, {E, EE, S, ES}, {S, SE}}},
    {"KK", "ir", {{E, ES, SS}, {E, EE, SE}}},
    {"IK", "r", {{E, ES, S, SS}, {E, EE, SE}}},
};

/* ---- cipher state ---- */

static const dp_suite *suite_of(const dp_noise_cipher *cipher)
{
    return cipher->suite != NULL ? cipher->suite : dp_suite_of(DP_SUITE_CHACHAPOLY);
}

void dp_noise_seal(dp_noise_cipher *cipher, dp_view associated, dp_view plaintext, uint8_t *out)
{
    dp_assert(cipher->keyed && cipher->counter < UINT64_MAX);
    suite_of(cipher)->seal(cipher->key, cipher->counter, associated, plaintext, out);
    cipher->counter++;
}

dp_status dp_noise_open(dp_noise_cipher *cipher, dp_view associated, dp_view sealed, uint8_t *out)
{
    dp_assert(cipher->keyed);
    if (sealed.size < DP_NOISE_TAG_BYTES || cipher->counter == UINT64_MAX) {
        return DP_BADSIG;
    }
    if (!suite_of(cipher)->open(cipher->key, cipher->counter, associated, sealed, out)) {
        return DP_BADSIG;
    }
    cipher->counter++;
    return DP_OK;
}

void dp_noise_rekey(dp_noise_cipher *cipher)
{
    uint8_t block[DP_NOISE_KEY_BYTES + DP_NOISE_TAG_BYTES] = {0};

    dp_assert(cipher->keyed);
    suite_of(cipher)->seal(cipher->key, UINT64_MAX, dp_view_of(NULL, 0),
                           dp_view_of(block, DP_NOISE_KEY_BYTES), block);
    memcpy(cipher->key, block, sizeof cipher->key);
    cipher->counter = 0;
    sodium_memzero(block, sizeof block);
}

/* ---- symmetric state ---- */

static void hash_two(uint8_t out[DP_NOISE_HASH_BYTES], dp_view a, dp_view b)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, DP_NOISE_HASH_BYTES);
    crypto_generichash_update(&state, a.data, a.size);
    crypto_generichash_update(&state, b.data, b.size);
    crypto_generichash_final(&state, out, DP_NOISE_HASH_BYTES);
}

/* HMAC (RFC 2104) over BLAKE2b-512; key of 64 bytes, the parts of the message one after the
 * other. */
static void hmac(const uint8_t key[DP_NOISE_HASH_BYTES], dp_view a, dp_view b,
                 uint8_t out[DP_NOISE_HASH_BYTES])
{
    uint8_t inner[BLOCK_BYTES];
    uint8_t outer[BLOCK_BYTES];
    uint8_t digest[DP_NOISE_HASH_BYTES];
    crypto_generichash_state state;

    memset(inner, 0x36, sizeof inner);
    memset(outer, 0x5c, sizeof outer);
    for (size_t i = 0; i < DP_NOISE_HASH_BYTES; i++) {
        inner[i] ^= key[i];
        outer[i] ^= key[i];
    }
    crypto_generichash_init(&state, NULL, 0, sizeof digest);
    crypto_generichash_update(&state, inner, sizeof inner);
    crypto_generichash_update(&state, a.data, a.size);
    crypto_generichash_update(&state, b.data, b.size);
    crypto_generichash_final(&state, digest, sizeof digest);
    hash_two(out, dp_view_of(outer, sizeof outer), dp_view_of(digest, sizeof digest));
    sodium_memzero(inner, sizeof inner);
    sodium_memzero(outer, sizeof outer);
    sodium_memzero(digest, sizeof digest);
    sodium_memzero(&state, sizeof state);
}

/* Section 4.3. n_outputs of 64 bytes each, 2 or 3. */
static void hkdf(const uint8_t chaining_key[DP_NOISE_HASH_BYTES], dp_view material,
                 uint8_t outputs[][DP_NOISE_HASH_BYTES], size_t n_outputs)
{
    uint8_t temporary[DP_NOISE_HASH_BYTES];

    hmac(chaining_key, material, dp_view_of(NULL, 0), temporary);
    for (size_t i = 0; i < n_outputs; i++) {
        const uint8_t number = (uint8_t)(i + 1);
        const dp_view before =
            i == 0 ? dp_view_of(NULL, 0) : dp_view_of(outputs[i - 1], DP_NOISE_HASH_BYTES);
        hmac(temporary, before, dp_view_of(&number, 1), outputs[i]);
    }
    sodium_memzero(temporary, sizeof temporary);
}

static void mix_hash(dp_noise *noise, dp_view bytes)
{
    hash_two(noise->hash, dp_view_of(noise->hash, sizeof noise->hash), bytes);
}

static void set_key(dp_noise_cipher *cipher, const uint8_t key[DP_NOISE_KEY_BYTES])
{
    *cipher = (dp_noise_cipher){.keyed = true};
    memcpy(cipher->key, key, sizeof cipher->key);
}

static void mix_key(dp_noise *noise, dp_view material)
{
    uint8_t outputs[2][DP_NOISE_HASH_BYTES];

    hkdf(noise->chaining_key, material, outputs, 2);
    memcpy(noise->chaining_key, outputs[0], sizeof noise->chaining_key);
    set_key(&noise->cipher, outputs[1]);
    sodium_memzero(outputs, sizeof outputs);
}

static void mix_key_and_hash(dp_noise *noise, dp_view material)
{
    uint8_t outputs[3][DP_NOISE_HASH_BYTES];

    hkdf(noise->chaining_key, material, outputs, 3);
    memcpy(noise->chaining_key, outputs[0], sizeof noise->chaining_key);
    mix_hash(noise, dp_view_of(outputs[1], sizeof outputs[1]));
    set_key(&noise->cipher, outputs[2]);
    sodium_memzero(outputs, sizeof outputs);
}

/* out has room for the tag when the cipher has a key. Returns the bytes written. */
static size_t encrypt_and_hash(dp_noise *noise, dp_view plaintext, uint8_t *out)
{
    size_t size = plaintext.size;

    if (noise->cipher.keyed) {
        dp_noise_seal(&noise->cipher, dp_view_of(noise->hash, sizeof noise->hash), plaintext, out);
        size += DP_NOISE_TAG_BYTES;
    } else if (size > 0) {
        memcpy(out, plaintext.data, size);
    }
    mix_hash(noise, dp_view_of(out, size));
    return size;
}

static dp_status decrypt_and_hash(dp_noise *noise, dp_view sealed, uint8_t *out)
{
    if (noise->cipher.keyed) {
        DP_TRY(dp_noise_open(&noise->cipher, dp_view_of(noise->hash, sizeof noise->hash), sealed,
                             out));
    } else if (sealed.size > 0) {
        memcpy(out, sealed.data, sealed.size);
    }
    mix_hash(noise, sealed);
    return DP_OK;
}

/* ---- handshake state ---- */

static bool contains(const uint8_t *tokens, size_t count, enum token token)
{
    return memchr(tokens, (int)token, count) != NULL;
}

static void append_token(uint8_t tokens[DP_NOISE_TOKENS_MAX], enum token token)
{
    size_t i = 0;

    while (i < DP_NOISE_TOKENS_MAX && tokens[i] != END) {
        i++;
    }
    dp_assert(i < DP_NOISE_TOKENS_MAX);
    tokens[i] = (uint8_t)token;
}

static const struct pattern *find_pattern(const char *name)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strncmp(name, patterns[i].name, 2) == 0) {
            return &patterns[i];
        }
    }
    return NULL;
}

/* psk0 stands before the first message's tokens, pskN after those of message N. */
static dp_status lay_out_tokens(dp_noise *noise, const struct pattern *pattern, const bool *psk_at)
{
    while (noise->n_messages < DP_NOISE_MESSAGES_MAX &&
           pattern->messages[noise->n_messages][0] != END) {
        const unsigned m = noise->n_messages++;
        if (m == 0 && psk_at[0]) {
            append_token(noise->tokens[m], PSK);
        }
        for (unsigned i = 0; i < 4 && pattern->messages[m][i] != END; i++) {
            append_token(noise->tokens[m], (enum token)pattern->messages[m][i]);
        }
        if (psk_at[m + 1]) {
            append_token(noise->tokens[m], PSK);
        }
    }
    for (unsigned i = 0; i <= DP_NOISE_MESSAGES_MAX; i++) {
        if (psk_at[i] && i > noise->n_messages) {
            return DP_UNSUPPORTED;
        }
        noise->n_psks = (uint8_t)(noise->n_psks + (psk_at[i] ? 1 : 0));
    }
    return DP_OK;
}

/* Read "Noise_XXpsk0+psk2_..." into the tokens of each message. */
static dp_status parse_name(dp_noise *noise, const char *name, const struct pattern **found)
{
    static const char head[] = "Noise_";
    static const char tail[] = "_25519_ChaChaPoly_BLAKE2b";
    bool psk_at[DP_NOISE_MESSAGES_MAX + 1] = {false};

    if (strncmp(name, head, strlen(head)) != 0) {
        return DP_UNSUPPORTED;
    }
    const char *at = name + strlen(head);
    const struct pattern *pattern = find_pattern(at);
    if (pattern == NULL) {
        return DP_UNSUPPORTED;
    }
    at += strlen(pattern->name);
    while (strncmp(at, "psk", 3) == 0 && at[3] >= '0' && at[3] <= '3') {
        psk_at[at[3] - '0'] = true;
        at += 4;
        at += strncmp(at, "+psk", 4) == 0 ? 1 : 0;
    }
    if (strcmp(at, tail) != 0) {
        return DP_UNSUPPORTED;
    }
    *found = pattern;
    return lay_out_tokens(noise, pattern, psk_at);
}

/* Does this side need a static key of its own: one known beforehand or one that it sends? */
static bool needs_static(const dp_noise *noise, const struct pattern *pattern)
{
    if (strchr(pattern->known, noise->initiator ? 'i' : 'r') != NULL) {
        return true;
    }
    for (unsigned m = noise->initiator ? 0 : 1; m < noise->n_messages; m += 2) {
        if (contains(noise->tokens[m], DP_NOISE_TOKENS_MAX, S)) {
            return true;
        }
    }
    return false;
}

static void start_transcript(dp_noise *noise, const dp_noise_setup *setup,
                             const struct pattern *pattern)
{
    const size_t name_bytes = strlen(setup->name);

    dp_assert(name_bytes <= sizeof noise->hash); /* longer names would be hashed; none here is */
    memcpy(noise->hash, setup->name, name_bytes);
    memcpy(noise->chaining_key, noise->hash, sizeof noise->chaining_key);
    mix_hash(noise, setup->prologue);
    for (const char *who = pattern->known; *who != '\0'; who++) {
        const bool is_ours = (*who == 'i') == noise->initiator;
        mix_hash(noise, dp_view_of(is_ours ? noise->static_public : noise->remote_static, 32));
    }
}

dp_status dp_noise_init(dp_noise *noise, const dp_noise_setup *setup)
{
    const struct pattern *pattern = NULL;

    memset(noise, 0, sizeof *noise);
    noise->initiator = setup->initiator;
    DP_TRY(parse_name(noise, setup->name, &pattern));
    const bool knows_remote = strchr(pattern->known, setup->initiator ? 'r' : 'i') != NULL;
    if (setup->n_psks != noise->n_psks || setup->ephemeral_secret == NULL ||
        (needs_static(noise, pattern) && setup->static_secret == NULL) ||
        (knows_remote && setup->remote_static == NULL)) {
        return DP_BADARG;
    }
    noise->uses_psk = noise->n_psks > 0;
    if (noise->uses_psk) {
        memcpy(noise->psks, setup->psks, (size_t)noise->n_psks * 32);
    }
    memcpy(noise->ephemeral_secret, setup->ephemeral_secret, 32);
    if (setup->static_secret != NULL) {
        memcpy(noise->static_secret, setup->static_secret, 32);
        if (setup->static_public != NULL) {
            memcpy(noise->static_public, setup->static_public, 32);
        } else {
            crypto_scalarmult_base(noise->static_public, noise->static_secret);
        }
    }
    if (knows_remote) {
        memcpy(noise->remote_static, setup->remote_static, 32);
    }
    start_transcript(noise, setup, pattern);
    return DP_OK;
}

/* libsodium refuses points of small order: the shared secret would be zero for every key of
 * ours. */
static dp_status mix_secret(dp_noise *noise, const uint8_t secret[32], const uint8_t point[32])
{
    uint8_t shared[crypto_scalarmult_BYTES];

    if (crypto_scalarmult(shared, secret, point) != 0) {
        return DP_BADSIG;
    }
    mix_key(noise, dp_view_of(shared, sizeof shared));
    sodium_memzero(shared, sizeof shared);
    return DP_OK;
}

/* The tokens that put no bytes on the wire: psk and the four Diffie-Hellmans. The first letter is
 * the initiator's key. */
static dp_status mix_token(dp_noise *noise, enum token token)
{
    if (token == PSK) {
        dp_assert(noise->next_psk < noise->n_psks);
        mix_key_and_hash(noise, dp_view_of(noise->psks[noise->next_psk], 32));
        noise->next_psk++;
        return DP_OK;
    }
    const bool own_is_static = token == SS || token == (noise->initiator ? SE : ES);
    const bool remote_is_static = token == SS || token == (noise->initiator ? ES : SE);
    dp_assert(token == EE || token == ES || token == SE || token == SS);
    return mix_secret(noise, own_is_static ? noise->static_secret : noise->ephemeral_secret,
                      remote_is_static ? noise->remote_static : noise->remote_ephemeral);
}

static void mix_ephemeral(dp_noise *noise, const uint8_t point[32])
{
    mix_hash(noise, dp_view_of(point, 32));
    if (noise->uses_psk) {
        mix_key(noise, dp_view_of(point, 32));
    }
}

static bool is_our_turn(const dp_noise *noise)
{
    return noise->next_message < noise->n_messages &&
           (noise->next_message % 2 == 0) == noise->initiator;
}

dp_status dp_noise_write(dp_noise *noise, dp_view payload, dp_buf *out)
{
    uint8_t *room = NULL;
    size_t size = 0;

    if (!is_our_turn(noise)) {
        return DP_BADARG;
    }
    DP_TRY(dp_buf_reserve(out, 32 + 32 + DP_NOISE_TAG_BYTES + payload.size + DP_NOISE_TAG_BYTES,
                          &room));
    const uint8_t *tokens = noise->tokens[noise->next_message];
    for (unsigned i = 0; i < DP_NOISE_TOKENS_MAX && tokens[i] != END; i++) {
        if (tokens[i] == E) {
            crypto_scalarmult_base(noise->ephemeral_public, noise->ephemeral_secret);
            memcpy(room + size, noise->ephemeral_public, 32);
            mix_ephemeral(noise, noise->ephemeral_public);
            size += 32;
        } else if (tokens[i] == S) {
            size += encrypt_and_hash(noise, dp_view_of(noise->static_public, 32), room + size);
        } else {
            DP_TRY(mix_token(noise, (enum token)tokens[i]));
        }
    }
    size += encrypt_and_hash(noise, payload, room + size);
    dp_buf_commit(out, size);
    noise->next_message++;
    return DP_OK;
}

dp_status dp_noise_read(dp_noise *noise, dp_view message, uint8_t *payload, size_t capacity,
                        size_t *payload_size)
{
    dp_reader reader = dp_reader_of(message);

    if (noise->next_message >= noise->n_messages || is_our_turn(noise)) {
        return DP_BADARG;
    }
    const uint8_t *tokens = noise->tokens[noise->next_message];
    for (unsigned i = 0; i < DP_NOISE_TOKENS_MAX && tokens[i] != END; i++) {
        if (tokens[i] == E) {
            dp_read_bytes(&reader, noise->remote_ephemeral, 32);
            if (reader.failed) {
                return DP_BADMSG;
            }
            mix_ephemeral(noise, noise->remote_ephemeral);
        } else if (tokens[i] == S) {
            const dp_view sealed =
                dp_read_view(&reader, noise->cipher.keyed ? 32U + DP_NOISE_TAG_BYTES : 32U);
            if (reader.failed) {
                return DP_BADMSG;
            }
            DP_TRY(decrypt_and_hash(noise, sealed, noise->remote_static));
        } else {
            DP_TRY(mix_token(noise, (enum token)tokens[i]));
        }
    }
    const dp_view sealed = dp_read_view(&reader, dp_reader_left(&reader));
    const size_t tag_bytes = noise->cipher.keyed ? DP_NOISE_TAG_BYTES : 0;
    if (sealed.size < tag_bytes) {
        return DP_BADMSG;
    }
    if (sealed.size - tag_bytes > capacity) {
        return DP_TOOBIG;
    }
    DP_TRY(decrypt_and_hash(noise, sealed, payload));
    *payload_size = sealed.size - tag_bytes;
    noise->next_message++;
    return DP_OK;
}

bool dp_noise_is_done(const dp_noise *noise)
{
    return noise->n_messages > 0 && noise->next_message == noise->n_messages;
}

void dp_noise_split(const dp_noise *noise, dp_noise_cipher *send, dp_noise_cipher *receive)
{
    uint8_t outputs[2][DP_NOISE_HASH_BYTES];

    dp_assert(dp_noise_is_done(noise));
    hkdf(noise->chaining_key, dp_view_of(NULL, 0), outputs, 2);
    set_key(send, outputs[noise->initiator ? 0 : 1]);
    set_key(receive, outputs[noise->initiator ? 1 : 0]);
    sodium_memzero(outputs, sizeof outputs);
}

void dp_noise_close(dp_noise *noise)
{
    sodium_memzero(noise, sizeof *noise);
}
