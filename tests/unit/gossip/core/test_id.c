#include "gossip/core/id.h"

#include <dlfcn.h>
#include <sodium.h>

#include "tests/unit/gossip/kit/cast.h"

static bool no_randomness;

/* In place of libsodium's, which gives up where the system has no source of randomness. */
int sodium_init(void)
{
    int (*real)(void) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "sodium_init");
    assert_non_null(real);
    return no_randomness ? -1 : real();
}

static void without_randomness_no_key_is_used(void **state)
{
    (void)state;
    no_randomness = true;
    CHECK_STATUS(dp_crypto_start(), DP_UNSUPPORTED);
    no_randomness = false;
    CHECK_OK(dp_crypto_start());
}

static void one_seed_gives_one_identity(void **state)
{
    dp_identity a;
    dp_identity b;
    dp_identity other;
    uint8_t x_public[32];

    (void)state;
    cast_identity(1, &a);
    cast_identity(1, &b);
    cast_identity(2, &other);
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_not_equal(a.ed.public_key, other.ed.public_key, 32);
    crypto_scalarmult_base(x_public, a.x_secret);
    assert_memory_equal(a.x_public, x_public, 32);
    assert_memory_not_equal(a.seed, a.seed + 32, 32);
}

static void closing_an_identity_wipes_it(void **state)
{
    dp_identity a;

    (void)state;
    cast_identity(1, &a);
    dp_identity_close(&a);
    CHECK(sodium_is_zero((const uint8_t *)&a, sizeof a) == 1);
}

/* The expected text was computed with Python's hashlib.blake2b and base64.b32encode. */
static void a_node_is_shown_as_twelve_characters_of_a_hash(void **state)
{
    dp_peer peer;
    dp_peer other;
    char text[DP_PEER_TEXT_MAX];
    char other_text[DP_PEER_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof peer.bytes; i++) {
        peer.bytes[i] = (uint8_t)i;
    }
    other = peer;
    other.bytes[31] ^= 1;
    dp_peer_text(&peer, text);
    dp_peer_text(&other, other_text);
    assert_string_equal(text, "zmxvcyh4d57a");
    assert_string_not_equal(text, other_text);
}

static void peers_are_ordered_by_their_bytes(void **state)
{
    const dp_peer zero = {{0}};
    const dp_peer low = {{1, 255}};
    const dp_peer high = {{2}};

    (void)state;
    CHECK(dp_peer_compare(&low, &high) < 0);
    CHECK(dp_peer_compare(&high, &low) > 0);
    CHECK(dp_peer_compare(&low, &low) == 0);
    CHECK(dp_peer_equal(&low, &low) && !dp_peer_equal(&low, &high));
    CHECK(dp_peer_is_zero(&zero) && !dp_peer_is_zero(&low));
}

static void the_key_file_comes_back_as_written(void **state)
{
    uint8_t file[DP_IDENTITY_FILE_BYTES];
    dp_identity written;
    dp_identity read;

    (void)state;
    cast_identity(5, &written);
    dp_identity_encode(&written, file);
    CHECK_OK(dp_identity_decode(dp_view_of(file, sizeof file), &read));
    assert_memory_equal(&written, &read, sizeof read);
}

static void every_damaged_bit_of_the_key_file_is_noticed(void **state)
{
    uint8_t file[DP_IDENTITY_FILE_BYTES];
    dp_identity written;
    dp_identity read;

    (void)state;
    cast_identity(5, &written);
    dp_identity_encode(&written, file);
    for (size_t bit = 0; bit < sizeof file * 8; bit++) {
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const dp_status status = dp_identity_decode(dp_view_of(file, sizeof file), &read);
        const dp_status wanted = bit < 48 ? DP_BADMSG : bit < 64 ? DP_VERSION : DP_CORRUPT;
        CHECK_STATUS(status, wanted);
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t size = 0; size < sizeof file; size++) {
        CHECK_STATUS(dp_identity_decode(dp_view_of(file, size), &read), DP_BADMSG);
    }
}

static void a_signature_holds_for_its_domain_bytes_and_key_only(void **state)
{
    dp_identity signer;
    dp_identity other;
    uint8_t signature[DP_SIGNATURE_BYTES];
    const dp_view bytes = dp_view_text("bytes");

    (void)state;
    cast_identity(1, &signer);
    cast_identity(2, &other);
    dp_sign(&signer.ed, "domain/1", bytes, signature);
    CHECK(dp_verify(signer.ed.public_key, "domain/1", bytes, signature));
    CHECK(!dp_verify(signer.ed.public_key, "domain/2", bytes, signature));
    CHECK(!dp_verify(signer.ed.public_key, "domain/1", dp_view_text("byteS"), signature));
    CHECK(!dp_verify(other.ed.public_key, "domain/1", bytes, signature));
    for (unsigned bit = 0; bit < DP_SIGNATURE_BYTES * 8; bit++) {
        signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
        CHECK(!dp_verify(signer.ed.public_key, "domain/1", bytes, signature));
        signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

/* Under the neutral point every message would have the signature (neutral point, 0). */
static void a_public_key_of_small_order_verifies_nothing(void **state)
{
    const uint8_t neutral[32] = {1};
    uint8_t signature[DP_SIGNATURE_BYTES] = {1};

    (void)state;
    CHECK(!dp_verify(neutral, "domain/1", dp_view_text("anything"), signature));
}

static void the_table_signs_with_the_keys_it_has(void **state)
{
    dp_identity identity;
    dp_sign_key vote;
    const dp_entropy seed = cast_entropy(9);
    uint8_t signature[DP_SIGNATURE_BYTES] = {0};
    const dp_view bytes = dp_view_text("vote");

    (void)state;
    cast_identity(1, &identity);
    dp_sign_key_of_seed(seed.bytes, &vote);
    dp_crypto_keys keys = {.identity = &identity, .vote = &vote};
    const dp_crypto crypto = dp_crypto_sodium(&keys);
    CHECK(crypto.sign(crypto.context, DP_KEY_IDENTITY, "d", bytes, signature));
    CHECK(crypto.verify(crypto.context, identity.ed.public_key, "d", bytes, signature));
    CHECK(crypto.sign(crypto.context, DP_KEY_VOTE, "d", bytes, signature));
    CHECK(crypto.verify(crypto.context, vote.public_key, "d", bytes, signature));
    CHECK(!crypto.verify(crypto.context, identity.ed.public_key, "d", bytes, signature));
    CHECK(!crypto.sign(crypto.context, DP_KEY_ROOT, "d", bytes, signature)); /* It has none. */
    const dp_entropy root_seed = cast_entropy(77);
    dp_sign_key root;
    dp_sign_key_of_seed(root_seed.bytes, &root);
    keys.root = &root;
    CHECK(crypto.sign(crypto.context, DP_KEY_ROOT, "d", bytes, signature));
    CHECK(crypto.verify(crypto.context, root.public_key, "d", bytes, signature));
    CHECK(!crypto.sign(crypto.context, 99, "d", bytes, signature)); /* No such key. */
    keys.vote = NULL;
    CHECK(!crypto.sign(crypto.context, DP_KEY_VOTE, "d", bytes, signature));
}

static void without_a_vote_key_no_vote_is_signed(void **state)
{
    dp_identity identity;
    uint8_t signature[DP_SIGNATURE_BYTES] = {0};

    (void)state;
    cast_identity(1, &identity);
    dp_crypto_keys keys = {.identity = &identity};
    const dp_crypto crypto = dp_crypto_sodium(&keys);
    CHECK(!crypto.sign(crypto.context, DP_KEY_VOTE, "d", dp_view_text("vote"), signature));
    CHECK(!crypto.sign(crypto.context, 7, "d", dp_view_text("vote"), signature));
    CHECK(sodium_is_zero(signature, sizeof signature) == 1);
}

static int start(void **state)
{
    (void)state;
    return dp_crypto_start() == DP_OK ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_randomness_no_key_is_used),
        cmocka_unit_test(one_seed_gives_one_identity),
        cmocka_unit_test(closing_an_identity_wipes_it),
        cmocka_unit_test(a_node_is_shown_as_twelve_characters_of_a_hash),
        cmocka_unit_test(peers_are_ordered_by_their_bytes),
        cmocka_unit_test(the_key_file_comes_back_as_written),
        cmocka_unit_test(every_damaged_bit_of_the_key_file_is_noticed),
        cmocka_unit_test(a_signature_holds_for_its_domain_bytes_and_key_only),
        cmocka_unit_test(a_public_key_of_small_order_verifies_nothing),
        cmocka_unit_test(the_table_signs_with_the_keys_it_has),
        cmocka_unit_test(without_a_vote_key_no_vote_is_signed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
