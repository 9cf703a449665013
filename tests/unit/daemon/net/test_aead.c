/* The two libraries give the same bytes, on any thread. THREADS_TEST */
#include "daemon/net/aead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/rng.h"
#include "gossip/core/id.h"
#include "tests/lib/check.h"

enum { PLAIN_MAX = 65536, N_THREADS = 4, ROUNDS = 50 };

struct bytes {
    uint8_t key[32];
    uint8_t associated[8];
    uint8_t plain[PLAIN_MAX];
    uint8_t sealed[PLAIN_MAX + 16];
    uint8_t again[PLAIN_MAX + 16];
};

static struct bytes *random_bytes(uint64_t seed)
{
    struct bytes *bytes = malloc(sizeof *bytes);
    dp_rng rng;

    assert_non_null(bytes);
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < sizeof *bytes; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)dp_rng_next(&rng);
    }
    return bytes;
}

static void both_libraries_give_the_same_bytes_and_open_each_others(void **state)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, 65535, PLAIN_MAX};
    const dp_suite *suites[DP_SUITES];
    struct bytes *bytes = random_bytes(1);

    (void)state;
    CHECK_OK(dp_crypto_start());
    dp_aead_suites(suites);
    for (uint8_t id = 1; id <= DP_SUITES; id++) {
        const dp_suite *plain = dp_suite_of(id);
        const dp_suite *fast = suites[id - 1];
        CHECK((plain == NULL) == (fast == NULL));
        for (unsigned i = 0; fast != NULL && i < sizeof sizes / sizeof sizes[0]; i++) {
            const dp_view associated = dp_view_of(bytes->associated, i % 2 == 0 ? 4 : 0);
            const dp_view text = dp_view_of(bytes->plain, sizes[i]);
            const uint64_t counter = i == 3 ? UINT64_MAX : 1ULL << i * 5;
            fast->seal(bytes->key, counter, associated, text, bytes->sealed);
            plain->seal(bytes->key, counter, associated, text, bytes->again);
            assert_memory_equal(bytes->sealed, bytes->again, sizes[i] + 16);
            const dp_view whole = dp_view_of(bytes->sealed, sizes[i] + 16);
            CHECK(fast->open(bytes->key, counter, associated, whole, bytes->again));
            assert_memory_equal(bytes->again, bytes->plain, sizes[i]);
            CHECK(plain->open(bytes->key, counter, associated, whole, bytes->again));
            CHECK(!fast->open(bytes->key, counter ^ 1, associated, whole, bytes->again));
            bytes->sealed[sizes[i] / 2] ^= 4;
            CHECK(!fast->open(bytes->key, counter, associated, whole, bytes->again));
        }
    }
    free(bytes);
}

static void sealing_and_opening_work_in_place(void **state)
{
    const dp_suite *suites[DP_SUITES];
    struct bytes *bytes = random_bytes(2);

    (void)state;
    CHECK_OK(dp_crypto_start());
    dp_aead_suites(suites);
    for (unsigned i = 0; i < DP_SUITES && suites[i] != NULL; i++) {
        const dp_view none = dp_view_of(NULL, 0);
        memcpy(bytes->again, bytes->plain, PLAIN_MAX);
        suites[i]->seal(bytes->key, 1, none, dp_view_of(bytes->again, PLAIN_MAX), bytes->again);
        suites[i]->seal(bytes->key, 1, none, dp_view_of(bytes->plain, PLAIN_MAX), bytes->sealed);
        assert_memory_equal(bytes->again, bytes->sealed, sizeof bytes->sealed);
        CHECK(suites[i]->open(bytes->key, 1, none, dp_view_of(bytes->again, PLAIN_MAX + 16),
                              bytes->again));
        assert_memory_equal(bytes->again, bytes->plain, PLAIN_MAX);
    }
    free(bytes);
}

static void *seal_and_open(void *context)
{
    bool *good = context;
    const dp_suite *suites[DP_SUITES];
    struct bytes *bytes = random_bytes((uint64_t)(uintptr_t)context);

    dp_aead_suites(suites);
    *good = true;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        const dp_suite *suite = suites[i % DP_SUITES] != NULL ? suites[i % DP_SUITES] : suites[0];
        const dp_view none = dp_view_of(NULL, 0);
        suite->seal(bytes->key, i, none, dp_view_of(bytes->plain, 5000), bytes->sealed);
        *good = *good &&
                suite->open(bytes->key, i, none, dp_view_of(bytes->sealed, 5016), bytes->again) &&
                memcmp(bytes->again, bytes->plain, 5000) == 0;
    }
    free(bytes);
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    pthread_t threads[N_THREADS];
    bool good[N_THREADS];

    (void)state;
    CHECK_OK(dp_crypto_start());
    for (unsigned i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, seal_and_open, &good[i]), 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        CHECK(good[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_libraries_give_the_same_bytes_and_open_each_others),
        cmocka_unit_test(sealing_and_opening_work_in_place),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
