#include <string.h>

#include "gossip/identity/replay.h"
#include "tests/lib/check.h"

/* Distinct keys. */
static const uint8_t *key(uint32_t number)
{
    static uint8_t bytes[32];
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &number, sizeof number);
    return bytes;
}

static void a_key_is_new_once(void **state)
{
    static dp_replay_cache cache;
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        CHECK(dp_replay_add(&cache, key(i), i % 2 == 0));
    }
    for (uint32_t i = 0; i < 200; i++) { /* whatever is thought of its time now */
        CHECK(!dp_replay_add(&cache, key(i), true));
        CHECK(!dp_replay_add(&cache, key(i), false));
    }
}

static void a_full_cache_forgets_the_oldest(void **state)
{
    static dp_replay_cache cache;
    (void)state;
    for (uint32_t i = 0; i <= DP_REPLAY_MAX; i++) {
        CHECK(dp_replay_add(&cache, key(i), true));
    }
    for (uint32_t i = 1; i <= DP_REPLAY_MAX; i++) {
        CHECK(!dp_replay_add(&cache, key(i), true));
    }
    CHECK(dp_replay_add(&cache, key(0), true));
    assert_int_equal(cache.n, DP_REPLAY_MAX);
}

static void old_messages_in_numbers_drive_out_no_new_ones(void **state)
{
    static dp_replay_cache cache;
    (void)state;
    CHECK(dp_replay_add(&cache, key(0), true));
    for (uint32_t i = 1; i < 3 * DP_REPLAY_MAX; i++) {
        CHECK(dp_replay_add(&cache, key(i), false));
    }
    CHECK(!dp_replay_add(&cache, key(0), true));
    assert_int_equal(cache.n_stale, DP_REPLAY_STALE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_new_once),
        cmocka_unit_test(a_full_cache_forgets_the_oldest),
        cmocka_unit_test(old_messages_in_numbers_drive_out_no_new_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
