#include "base/map.h"

#include "base/rng.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"

static dp_hash key_of(uint32_t number)
{
    dp_hash key = {0};

    memcpy(key.bytes, &number, sizeof number);
    return key;
}

static void a_cleared_map_is_empty_and_has_all_its_room(void **state)
{
    uint32_t value = 0;
    dp_map map;

    (void)state;
    CHECK_OK(dp_map_init(&map, 8, 7));
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 8; i++) {
            const dp_hash key = key_of(turn * 8 + i);
            CHECK_OK(dp_map_put(&map, &key, i));
        }
        dp_map_clear(&map);
        for (uint32_t i = 0; i < 8; i++) {
            const dp_hash key = key_of(turn * 8 + i);
            assert_false(dp_map_get(&map, &key, &value));
        }
    }
    dp_map_clear(&map);
    dp_map_close(&map);
}

static void a_value_is_found_replaced_and_removed(void **state)
{
    const dp_hash a = key_of(1);
    const dp_hash b = key_of(2);
    uint32_t value = 99;
    dp_map map;

    (void)state;
    CHECK_OK(dp_map_init(&map, 4, 7));
    assert_false(dp_map_get(&map, &a, &value));
    assert_int_equal(value, 99);
    CHECK_OK(dp_map_put(&map, &a, 10));
    CHECK_OK(dp_map_put(&map, &a, 11));
    assert_int_equal(map.count, 1);
    assert_true(dp_map_get(&map, &a, &value));
    assert_int_equal(value, 11);
    assert_false(dp_map_get(&map, &b, &value));
    assert_false(dp_map_remove(&map, &b));
    assert_true(dp_map_remove(&map, &a));
    assert_false(dp_map_remove(&map, &a));
    assert_int_equal(map.count, 0);
    dp_map_close(&map);
    dp_map_close(&map);
    assert_false(dp_map_get(&map, &a, &value));
}

static void a_full_map_refuses_new_keys_but_replaces_old_ones(void **state)
{
    const dp_hash extra = key_of(1000);
    dp_map map;

    (void)state;
    CHECK_OK(dp_map_init(&map, 3, 7));
    for (uint32_t i = 0; i < 3; i++) {
        const dp_hash key = key_of(i);
        CHECK_OK(dp_map_put(&map, &key, i));
    }
    CHECK_STATUS(dp_map_put(&map, &extra, 1), DP_TOOBIG);
    const dp_hash first = key_of(0);
    CHECK_OK(dp_map_put(&map, &first, 50));
    assert_true(dp_map_remove(&map, &first));
    CHECK_OK(dp_map_put(&map, &extra, 1));
    dp_map_close(&map);
}

static void a_map_of_no_capacity_is_always_full(void **state)
{
    const dp_hash key = key_of(1);
    dp_map map;

    (void)state;
    CHECK_OK(dp_map_init(&map, 0, 7));
    CHECK_STATUS(dp_map_put(&map, &key, 1), DP_TOOBIG);
    dp_map_close(&map);
}

static void an_absurd_capacity_is_too_big(void **state)
{
    dp_map map = {.count = 77};

    (void)state;
    CHECK_STATUS(dp_map_init(&map, UINT32_MAX, 7), DP_TOOBIG);
    assert_int_equal(map.count, 77);
}

/* A long life of puts and removes against a plain array, for several seeds. */
static void it_agrees_with_a_plain_array(void **state)
{
    enum { KEYS = 64, STEPS = 20000 };

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint32_t values[KEYS] = {0}; /* 0: not there */
        uint32_t count = 0;
        dp_rng rng;
        dp_map map;

        dp_rng_init(&rng, seed);
        CHECK_OK(dp_map_init(&map, 32, seed));
        for (uint32_t step = 1; step <= STEPS; step++) {
            const uint32_t index = (uint32_t)dp_rng_below(&rng, KEYS);
            const dp_hash key = key_of(index);
            uint32_t value = 0;

            assert_int_equal(dp_map_get(&map, &key, &value), values[index] != 0);
            assert_int_equal(value, values[index]);
            if (dp_rng_below(&rng, 2) == 0) {
                assert_int_equal(dp_map_remove(&map, &key), values[index] != 0);
                count -= values[index] != 0;
                values[index] = 0;
            } else if (values[index] != 0 || count < 32) {
                CHECK_OK(dp_map_put(&map, &key, step));
                count += values[index] == 0;
                values[index] = step;
            } else {
                CHECK_STATUS(dp_map_put(&map, &key, step), DP_TOOBIG);
            }
            assert_int_equal(map.count, count);
        }
        dp_map_close(&map);
    }
}

static dp_status open_and_close(void *unused)
{
    dp_map map;

    (void)unused;
    DP_TRY(dp_map_init(&map, 10, 1));
    dp_map_close(&map);
    return DP_OK;
}

static void init_survives_each_failing_allocation(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(open_and_close, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_replaced_and_removed),
        cmocka_unit_test(a_cleared_map_is_empty_and_has_all_its_room),
        cmocka_unit_test(a_full_map_refuses_new_keys_but_replaces_old_ones),
        cmocka_unit_test(a_map_of_no_capacity_is_always_full),
        cmocka_unit_test(an_absurd_capacity_is_too_big),
        cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(init_survives_each_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
