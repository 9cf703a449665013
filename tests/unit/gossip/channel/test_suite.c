#include "gossip/channel/suite.h"

#include "gossip/core/id.h"
#include "tests/lib/check.h"

enum { PLAIN_MAX = 100 };

static void the_nonces_are_those_of_noise(void **state)
{
    static const uint8_t little[] = {0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
    static const uint8_t big[] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t nonce[DP_SUITE_NONCE_BYTES];
    (void)state;
    dp_suite_nonce(DP_SUITE_CHACHAPOLY, 0x0102030405060708ULL, nonce);
    assert_memory_equal(nonce, little, sizeof nonce);
    dp_suite_nonce(DP_SUITE_AES256GCM, 0x0102030405060708ULL, nonce);
    assert_memory_equal(nonce, big, sizeof nonce);
}

/* McGrew and Viega 2005, "The Galois/Counter Mode of Operation", test cases 13 and 14. */
static void aes_gives_the_published_bytes(void **state)
{
    static const uint8_t key[32] = {0};
    static const uint8_t zeros[16] = {0};
    uint8_t wanted[32];
    uint8_t out[32];
    (void)state;
    CHECK_OK(dp_crypto_start());
    const dp_suite *aes = dp_suite_of(DP_SUITE_AES256GCM);
    if (aes == NULL) {
        skip();
    }
    CHECK_OK(dp_unhex("530f8afbc74536b9a963b4f1c4cb738b", wanted, 16));
    aes->seal(key, 0, dp_view_of(NULL, 0), dp_view_of(NULL, 0), out);
    assert_memory_equal(out, wanted, 16);
    CHECK_OK(
        dp_unhex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919", wanted, 32));
    aes->seal(key, 0, dp_view_of(NULL, 0), dp_view_of(zeros, sizeof zeros), out);
    assert_memory_equal(out, wanted, 32);
}

static void a_sealed_record_opens_unless_any_bit_changed(void **state)
{
    (void)state;
    CHECK_OK(dp_crypto_start());
    for (uint8_t id = 1; id <= DP_SUITES; id++) {
        const dp_suite *suite = dp_suite_of(id);
        uint8_t key[32] = {1, 2, 3};
        uint8_t plain[PLAIN_MAX] = "some bytes";
        uint8_t sealed[PLAIN_MAX + 16];
        uint8_t opened[PLAIN_MAX];
        const dp_view associated = dp_view_text("head");
        if (suite == NULL) {
            continue;
        }
        assert_int_equal(suite->id, id);
        suite->seal(key, 7, associated, dp_view_of(plain, sizeof plain), sealed);
        const dp_view whole = dp_view_of(sealed, sizeof sealed);
        CHECK(suite->open(key, 7, associated, whole, opened));
        assert_memory_equal(opened, plain, sizeof plain);
        CHECK(!suite->open(key, 8, associated, whole, opened));
        CHECK(!suite->open(key, 7, dp_view_text("Head"), whole, opened));
        for (size_t bit = 0; bit < sizeof sealed * 8; bit += 13) {
            sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
            CHECK(!suite->open(key, 7, associated, whole, opened));
            sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        key[31] ^= 1;
        CHECK(!suite->open(key, 7, associated, whole, opened));
    }
}

static void no_key_serves_two_ciphers(void **state)
{
    uint8_t key[32] = {9};
    uint8_t before[32] = {9};
    uint8_t wanted[32];
    (void)state;
    CHECK_OK(dp_crypto_start());
    dp_suite_derive(dp_suite_of(DP_SUITE_CHACHAPOLY), key);
    assert_memory_equal(key, before, sizeof key);
    const dp_suite aes = {.id = DP_SUITE_AES256GCM};
    dp_suite_derive(&aes, key);
    /* python3: hashlib.blake2b(b"dpnode/suite/1\0\2", digest_size=32, key=b"\x09" +
     * bytes(31)).hexdigest() */
    CHECK_OK(dp_unhex("82b705d8fe6475bcfa3833683270841dc2ac7bd02438b242ffde23ef8fc7c1ad", wanted,
                      sizeof wanted));
    assert_memory_equal(key, wanted, sizeof key);
}

static void unknown_suites_are_not_there(void **state)
{
    (void)state;
    CHECK(dp_suite_of(0) == NULL);
    CHECK(dp_suite_of(DP_SUITES + 1) == NULL);
    CHECK(dp_suite_of(255) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nonces_are_those_of_noise),
        cmocka_unit_test(aes_gives_the_published_bytes),
        cmocka_unit_test(a_sealed_record_opens_unless_any_bit_changed),
        cmocka_unit_test(no_key_serves_two_ciphers),
        cmocka_unit_test(unknown_suites_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
