/* token.rotate: a secret of its own for each order. */
#include "tests/unit/daemon/call_kit.h"

static void each_order_has_another_secret_and_tells_the_epoch_until_then(void **state)
{
    uint8_t before[DP_JOIN_SECRET_BYTES];
    static const uint8_t none[DP_JOIN_SECRET_BYTES];
    (void)state;
    call_open();
    desk.driver->facts.psk_epoch = 4;
    CALL_ALONE(dp_method_token_rotate);
    assert_true(call_kit.n_orders == 1 && call_kit.order.kind == DP_ADMIN_ROTATE);
    assert_memory_not_equal(call_kit.secret, none, sizeof none);
    assert_int_equal(number_at(call_body(), "epoch"), 4);
    assert_true(desk_logged("secret.order"));
    memcpy(before, call_kit.secret, sizeof before);
    CALL_ALONE(dp_method_token_rotate);
    assert_memory_not_equal(call_kit.secret, before, sizeof before);
    call_close();
}

static void a_rotation_that_must_wait_is_told_apart_from_one_that_is_forbidden(void **state)
{
    (void)state;
    call_open();
    call_kit.ordered = DP_AGAIN;
    CALL_ALONE(dp_method_token_rotate);
    assert_true(call_failed("E0214", 75));
    assert_non_null(strstr(call_kit.error.fix, "dpnode status"));
    call_kit.ordered = DP_DENIED;
    snprintf(call_kit.why, sizeof call_kit.why, "it has no key for that");
    CALL_ALONE(dp_method_token_rotate);
    assert_true(call_failed("E0214", 77));
    assert_string_equal(call_kit.error.why, "it has no key for that");
    assert_false(desk_logged("secret.order"));
    call_close();
}

static void without_a_run_no_secret_is_ordered(void **state)
{
    (void)state;
    call_open();
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_token_rotate);
    assert_true(call_failed("E0105", 75) && call_kit.n_orders == 0);
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_order_has_another_secret_and_tells_the_epoch_until_then),
        cmocka_unit_test(a_rotation_that_must_wait_is_told_apart_from_one_that_is_forbidden),
        cmocka_unit_test(without_a_run_no_secret_is_ordered),
    };
    tempdir_in_memory();
    CHECK_OK(dp_crypto_start());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
