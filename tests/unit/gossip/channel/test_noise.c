#include "gossip/channel/noise.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/check.h"

enum { BYTES_MAX = 1024, VECTORS_WANTED = 10 };

static const char channel_name[] = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b";

/* ---- published vectors ---- */

static dp_view hex_of(const json_t *object, const char *key, uint8_t bytes[BYTES_MAX])
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL) {
        return dp_view_of(NULL, 0);
    }
    const size_t size = strlen(text) / 2;
    assert_true(size <= BYTES_MAX);
    CHECK_OK(dp_unhex(text, bytes, size));
    return dp_view_of(bytes, size);
}

static void init_side(dp_noise *noise, const json_t *vector, bool initiator)
{
    static const char *const keys[2][5] = {
        {"resp_prologue", "resp_static", "resp_ephemeral", "resp_remote_static", "resp_psks"},
        {"init_prologue", "init_static", "init_ephemeral", "init_remote_static", "init_psks"},
    };
    const char *const *key = keys[initiator ? 1 : 0];
    uint8_t bytes[4][BYTES_MAX];
    uint8_t psks[DP_NOISE_PSKS_MAX * 32];
    const json_t *list = json_object_get(vector, key[4]);
    dp_noise_setup setup = {
        .name = json_string_value(json_object_get(vector, "protocol_name")),
        .initiator = initiator,
        .prologue = hex_of(vector, key[0], bytes[0]),
        .psks = psks,
        .n_psks = (uint8_t)json_array_size(list),
        .static_secret = hex_of(vector, key[1], bytes[1]).data,
        .ephemeral_secret = hex_of(vector, key[2], bytes[2]).data,
        .remote_static = hex_of(vector, key[3], bytes[3]).data,
    };

    for (size_t i = 0; i < json_array_size(list); i++) {
        CHECK_OK(dp_unhex(json_string_value(json_array_get(list, i)), psks + 32 * i, 32));
    }
    CHECK_OK(dp_noise_init(noise, &setup));
}

static void check_handshake_message(dp_noise *from, dp_noise *to, dp_view payload, dp_view wanted)
{
    uint8_t read[BYTES_MAX];
    size_t size = 0;
    dp_buf out;

    dp_buf_init(&out, BYTES_MAX);
    CHECK_OK(dp_noise_write(from, payload, &out));
    CHECK(dp_view_equal(dp_buf_view(&out), wanted));
    CHECK_OK(dp_noise_read(to, wanted, read, sizeof read, &size));
    CHECK(dp_view_equal(dp_view_of(read, size), payload));
    dp_buf_close(&out);
}

static void check_transport_message(dp_noise_cipher *from, dp_noise_cipher *to, dp_view payload,
                                    dp_view wanted)
{
    const dp_view nothing = dp_view_of(NULL, 0);
    uint8_t sealed[BYTES_MAX];
    uint8_t opened[BYTES_MAX];

    dp_noise_seal(from, nothing, payload, sealed);
    CHECK(dp_view_equal(dp_view_of(sealed, payload.size + DP_NOISE_TAG_BYTES), wanted));
    CHECK_OK(dp_noise_open(to, nothing, wanted, opened));
    CHECK(dp_view_equal(dp_view_of(opened, payload.size), payload));
}

static void check_vector(const json_t *vector)
{
    dp_noise sides[2]; /* responder, initiator */
    dp_noise_cipher send[2];
    dp_noise_cipher receive[2];
    uint8_t bytes[3][BYTES_MAX];
    const json_t *messages = json_object_get(vector, "messages");
    bool is_split = false;

    init_side(&sides[0], vector, false);
    init_side(&sides[1], vector, true);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        const dp_view payload = hex_of(message, "payload", bytes[0]);
        const dp_view wanted = hex_of(message, "ciphertext", bytes[1]);
        const unsigned from = i % 2 == 0 ? 1 : 0;
        if (!dp_noise_is_done(&sides[0])) {
            check_handshake_message(&sides[from], &sides[1 - from], payload, wanted);
            continue;
        }
        if (!is_split) {
            dp_noise_split(&sides[0], &send[0], &receive[0]);
            dp_noise_split(&sides[1], &send[1], &receive[1]);
            is_split = true;
        }
        check_transport_message(&send[from], &receive[1 - from], payload, wanted);
    }
    CHECK(is_split);
    const dp_view hash = hex_of(vector, "handshake_hash", bytes[2]);
    if (hash.size > 0) {
        CHECK(dp_view_equal(hash, dp_view_of(sides[0].hash, sizeof sides[0].hash)));
        CHECK(dp_view_equal(hash, dp_view_of(sides[1].hash, sizeof sides[1].hash)));
    }
}

static void handshakes_match_the_published_vectors(void **state)
{
    const char *path = getenv("DPNODE_NOISE_VECTORS");
    json_error_t error;

    (void)state;
    json_t *file = json_load_file(path != NULL ? path : "../shared/vectors/noise.json", 0, &error);
    if (file == NULL && path == NULL) {
        skip();
    }
    assert_non_null(file);
    const json_t *vectors = json_object_get(file, "vectors");
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        check_vector(json_array_get(vectors, i));
    }
    assert_true(json_array_size(vectors) >= VECTORS_WANTED);
    json_decref(file);
}

/* ---- our own pattern, without a file ---- */

static void init_pair(dp_noise *initiator, dp_noise *responder, uint8_t psk_of_initiator)
{
    uint8_t keys[5][32];

    assert_true(sodium_init() >= 0);
    for (unsigned i = 0; i < 5; i++) {
        memset(keys[i], (int)(i + 1), sizeof keys[i]);
    }
    dp_noise_setup setup = {
        .name = channel_name,
        .prologue = dp_view_text("prologue"),
        .psks = keys[4],
        .n_psks = 1,
        .static_secret = keys[0],
        .ephemeral_secret = keys[1],
    };
    CHECK_OK(dp_noise_init(responder, &setup));
    memset(keys[4], psk_of_initiator, sizeof keys[4]);
    setup.initiator = true;
    setup.static_secret = keys[2];
    setup.ephemeral_secret = keys[3];
    CHECK_OK(dp_noise_init(initiator, &setup));
}

static dp_status pass(dp_noise *from, dp_noise *to)
{
    uint8_t read[64];
    size_t size = 0;
    dp_buf out;

    dp_buf_init(&out, BYTES_MAX);
    CHECK_OK(dp_noise_write(from, dp_view_text("hello"), &out));
    const dp_status status = dp_noise_read(to, dp_buf_view(&out), read, sizeof read, &size);
    CHECK(status != DP_OK || (size == 5 && memcmp(read, "hello", 5) == 0));
    dp_buf_close(&out);
    return status;
}

static void both_sides_learn_the_same_hash_and_crossed_keys(void **state)
{
    dp_noise a;
    dp_noise b;
    dp_noise_cipher keys[4];

    (void)state;
    init_pair(&a, &b, 5);
    CHECK_OK(pass(&a, &b));
    CHECK_OK(pass(&b, &a));
    CHECK_OK(pass(&a, &b));
    CHECK(dp_noise_is_done(&a) && dp_noise_is_done(&b));
    assert_memory_equal(a.hash, b.hash, sizeof a.hash);
    assert_memory_equal(a.remote_static, b.static_public, 32);
    assert_memory_equal(b.remote_static, a.static_public, 32);
    dp_noise_split(&a, &keys[0], &keys[1]);
    dp_noise_split(&b, &keys[2], &keys[3]);
    assert_memory_equal(keys[0].key, keys[3].key, 32);
    assert_memory_equal(keys[1].key, keys[2].key, 32);
    assert_memory_not_equal(keys[0].key, keys[1].key, 32);
}

static void another_pre_shared_key_fails_at_the_first_message(void **state)
{
    dp_noise a;
    dp_noise b;

    (void)state;
    init_pair(&a, &b, 6);
    CHECK_STATUS(pass(&a, &b), DP_BADSIG);
}

static void speaking_out_of_turn_is_refused(void **state)
{
    dp_noise a;
    dp_noise b;
    dp_buf out;
    uint8_t read[8];
    size_t size = 0;

    (void)state;
    init_pair(&a, &b, 5);
    dp_buf_init(&out, BYTES_MAX);
    CHECK_STATUS(dp_noise_write(&b, dp_view_text("x"), &out), DP_BADARG);
    CHECK_STATUS(dp_noise_read(&a, dp_view_text("x"), read, sizeof read, &size), DP_BADARG);
    assert_int_equal(out.size, 0);
    CHECK_OK(pass(&a, &b));
    CHECK_STATUS(dp_noise_write(&a, dp_view_text("x"), &out), DP_BADARG);
    dp_buf_close(&out);
}

/* Zero and one: ephemeral keys with which the shared secret would be publicly known. */
static void points_of_small_order_are_refused(void **state)
{
    static const uint8_t starts[2] = {0, 1};
    dp_noise a;
    dp_noise b;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        dp_buf out;
        init_pair(&a, &b, 5);
        CHECK_OK(pass(&a, &b));
        memset(b.remote_ephemeral, 0, 32);
        b.remote_ephemeral[0] = starts[i];
        dp_buf_init(&out, BYTES_MAX);
        CHECK_STATUS(dp_noise_write(&b, dp_view_text("x"), &out), DP_BADSIG);
        assert_int_equal(out.size, 0);
        dp_buf_close(&out);
        uint8_t answer[100] = {starts[i]}; /* The same from the other side. */
        uint8_t read[100];
        size_t size = 0;
        CHECK_STATUS(dp_noise_read(&a, dp_view_of(answer, sizeof answer), read, sizeof read, &size),
                     DP_BADSIG);
    }
}

static void a_payload_that_does_not_fit_is_refused(void **state)
{
    dp_noise a;
    dp_noise b;
    dp_buf out;
    uint8_t read[4];
    size_t size = 99;

    (void)state;
    init_pair(&a, &b, 5);
    dp_buf_init(&out, BYTES_MAX);
    CHECK_OK(dp_noise_write(&a, dp_view_text("hello"), &out));
    CHECK_STATUS(dp_noise_read(&b, dp_buf_view(&out), read, sizeof read, &size), DP_TOOBIG);
    assert_int_equal(size, 99);
    dp_buf_close(&out);
}

static void rekeying_moves_both_sides_alike(void **state)
{
    dp_noise_cipher a = {.key = {1}, .counter = 7, .keyed = true};
    dp_noise_cipher b = a;
    const dp_noise_cipher before = a;
    uint8_t bytes[3 + DP_NOISE_TAG_BYTES];
    uint8_t again[3 + DP_NOISE_TAG_BYTES];
    dp_noise_cipher old = before;

    (void)state;
    dp_noise_rekey(&a);
    dp_noise_rekey(&b);
    assert_memory_not_equal(a.key, before.key, 32);
    assert_int_equal(a.counter, 0);
    dp_noise_seal(&a, dp_view_text("ad"), dp_view_text("abc"), bytes);
    memcpy(again, bytes, sizeof again);
    CHECK_STATUS(dp_noise_open(&old, dp_view_text("ad"), dp_view_of(bytes, sizeof bytes), bytes),
                 DP_BADSIG);
    CHECK_OK(dp_noise_open(&b, dp_view_text("ad"), dp_view_of(again, sizeof again), again));
    assert_memory_equal(again, "abc", 3);
}

static void unknown_names_and_missing_keys_are_refused(void **state)
{
    static const char *const names[] = {
        "",
        "Noise_ZZ_25519_ChaChaPoly_BLAKE2b",
        "Noise_XX_25519_AESGCM_BLAKE2b",
        "Noise_XXpsk0",
        "Noise_XXpsk4_25519_ChaChaPoly_BLAKE2b",
        "Noise_NNpsk3_25519_ChaChaPoly_BLAKE2b",
    };
    const uint8_t key[32] = {1};
    dp_noise noise;
    dp_noise_setup setup = {
        .ephemeral_secret = key, .static_secret = key, .psks = key, .n_psks = 1};

    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        setup.name = names[i];
        CHECK_STATUS(dp_noise_init(&noise, &setup), DP_UNSUPPORTED);
    }
    setup.name = channel_name;
    setup.n_psks = 0;
    CHECK_STATUS(dp_noise_init(&noise, &setup), DP_BADARG);
    setup.n_psks = 1;
    setup.static_secret = NULL;
    CHECK_STATUS(dp_noise_init(&noise, &setup), DP_BADARG);
}

static void closing_leaves_no_key_behind(void **state)
{
    dp_noise a;
    dp_noise b;

    (void)state;
    init_pair(&a, &b, 5);
    CHECK_OK(pass(&a, &b));
    dp_noise_close(&a);
    CHECK(sodium_is_zero((const uint8_t *)&a, sizeof a) == 1);
}

static dp_status second_message_with(uint8_t second_psk)
{
    uint8_t keys[4][32];
    uint8_t psks[2 * 32];
    dp_noise sides[2];

    for (unsigned i = 0; i < 4; i++) {
        memset(keys[i], (int)(i + 1), sizeof keys[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        memset(psks, 8, 32);
        memset(psks + 32, i == 0 ? 9 : second_psk, 32);
        const dp_noise_setup setup = {.name = "Noise_XXpsk0+psk2_25519_ChaChaPoly_BLAKE2b",
                                      .initiator = i == 1,
                                      .psks = psks,
                                      .n_psks = 2,
                                      .static_secret = keys[2 * i],
                                      .ephemeral_secret = keys[2 * i + 1]};
        CHECK_OK(dp_noise_init(&sides[i], &setup));
    }
    CHECK_OK(pass(&sides[1], &sides[0]));
    return pass(&sides[0], &sides[1]);
}

static void of_two_pre_shared_keys_both_count(void **state)
{
    (void)state;
    CHECK_OK(second_message_with(9));
    CHECK_STATUS(second_message_with(10), DP_BADSIG);
    CHECK_STATUS(second_message_with(8), DP_BADSIG); /* The first is no second. */
}

/* First eight bytes of a hash over the messages, the channel binding and the keys of a handshake of
 * this pattern, with keys of one byte each. */
static uint64_t transcript_of(const char *name, uint8_t n_psks)
{
    dp_noise sides[2]; /* initiator, responder */
    uint8_t secrets[4][32];
    uint8_t publics[2][32];
    uint8_t psks[DP_NOISE_PSKS_MAX * 32];
    crypto_generichash_state hash;
    uint8_t digest[32];
    dp_noise_cipher keys[4];

    assert_true(sodium_init() >= 0);
    for (unsigned i = 0; i < 4; i++) {
        memset(secrets[i], (int)(i + 1), 32);
        memset(psks + 32 * i, (int)(i + 9), 32);
    }
    crypto_scalarmult_base(publics[0], secrets[0]);
    crypto_scalarmult_base(publics[1], secrets[1]);
    crypto_generichash_init(&hash, NULL, 0, sizeof digest);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_OK(dp_noise_init(&sides[i], &(dp_noise_setup){.name = name,
                                                            .initiator = i == 0,
                                                            .prologue = dp_view_text("prologue"),
                                                            .psks = psks,
                                                            .n_psks = n_psks,
                                                            .static_secret = secrets[i],
                                                            .remote_static = publics[1 - i],
                                                            .ephemeral_secret = secrets[2 + i]}));
    }
    for (unsigned from = 0; !dp_noise_is_done(&sides[0]); from = 1 - from) {
        uint8_t read[64];
        size_t size = 0;
        dp_buf out;
        dp_buf_init(&out, BYTES_MAX);
        CHECK_OK(dp_noise_write(&sides[from], dp_view_text("hello"), &out));
        crypto_generichash_update(&hash, dp_buf_view(&out).data, dp_buf_view(&out).size);
        CHECK_OK(dp_noise_read(&sides[1 - from], dp_buf_view(&out), read, sizeof read, &size));
        CHECK(size == 5 && memcmp(read, "hello", 5) == 0);
        dp_buf_close(&out);
    }
    CHECK(dp_noise_is_done(&sides[1]));
    dp_noise_split(&sides[0], &keys[0], &keys[1]);
    dp_noise_split(&sides[1], &keys[3], &keys[2]);
    for (unsigned i = 0; i < 4; i++) {
        crypto_generichash_update(&hash, keys[i].key, sizeof keys[i].key);
    }
    assert_memory_equal(sides[0].hash, sides[1].hash, sizeof sides[0].hash);
    crypto_generichash_update(&hash, sides[0].hash, sizeof sides[0].hash);
    crypto_generichash_final(&hash, digest, sizeof digest);
    uint64_t first = 0;
    for (unsigned i = 0; i < 8; i++) {
        first = first << 8 | digest[i];
    }
    return first;
}

/* As on the day on which all of them passed the published vectors, which not every checkout has. */
static void each_pattern_has_the_bytes_that_it_had_when_the_vectors_confirmed_it(void **state)
{
    static const struct {
        const char *name;
        uint8_t n_psks;
        uint64_t transcript;
    } rows[] = {
        {"Noise_XX_25519_ChaChaPoly_BLAKE2b", 0, 0x4c2982919bd99845},
        {"Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b", 1, 0x547384f49afba645},
        {"Noise_XXpsk3_25519_ChaChaPoly_BLAKE2b", 1, 0x87d8779e7fa354e3},
        {"Noise_XXpsk0+psk1+psk2+psk3_25519_ChaChaPoly_BLAKE2b", 4, 0xd981eb8d6e0d9de6},
        {"Noise_NNpsk0+psk2_25519_ChaChaPoly_BLAKE2b", 2, 0x003f1268acdb8b06},
        {"Noise_KKpsk0_25519_ChaChaPoly_BLAKE2b", 1, 0x15ffc2d71f0a5a55},
        {"Noise_KKpsk0+psk2_25519_ChaChaPoly_BLAKE2b", 2, 0x3189a1eac300ec05},
        {"Noise_IKpsk1_25519_ChaChaPoly_BLAKE2b", 1, 0x49cdf101f6f92493},
        {"Noise_IKpsk0+psk2_25519_ChaChaPoly_BLAKE2b", 2, 0x267b376fcbd5b3c3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(transcript_of(rows[i].name, rows[i].n_psks) == rows[i].transcript);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshakes_match_the_published_vectors),
        cmocka_unit_test(both_sides_learn_the_same_hash_and_crossed_keys),
        cmocka_unit_test(another_pre_shared_key_fails_at_the_first_message),
        cmocka_unit_test(speaking_out_of_turn_is_refused),
        cmocka_unit_test(points_of_small_order_are_refused),
        cmocka_unit_test(a_payload_that_does_not_fit_is_refused),
        cmocka_unit_test(rekeying_moves_both_sides_alike),
        cmocka_unit_test(unknown_names_and_missing_keys_are_refused),
        cmocka_unit_test(closing_leaves_no_key_behind),
        cmocka_unit_test(of_two_pre_shared_keys_both_count),
        cmocka_unit_test(each_pattern_has_the_bytes_that_it_had_when_the_vectors_confirmed_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
