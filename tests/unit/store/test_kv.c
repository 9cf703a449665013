#include "tests/unit/store/shelf.h"

static void values_are_kept_and_replaced(void **state)
{
    (void)state;
    dp_buf out;
    dp_buf_init(&out, 100);
    shelf s;
    shelf_open(&s);
    CHECK(s.report.created);
    CHECK_STATUS(dp_store_get(s.store, "run", &out), DP_NOTFOUND);
    CHECK_OK(dp_store_put(s.store, "run", dp_view_text("one")));
    CHECK_OK(dp_store_put(s.store, "run", dp_view_text("two")));
    CHECK_OK(dp_store_put(s.store, "empty", dp_view_of(NULL, 0)));
    shelf_reopen(&s);
    CHECK(!s.report.created && !s.report.meta_rebuilt && !s.report.chunks_rebuilt);
    CHECK_OK(dp_store_get(s.store, "run", &out));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("two")));
    CHECK_OK(dp_store_get(s.store, "empty", &out));
    CHECK_OK(dp_store_delete(s.store, "run"));
    CHECK_OK(dp_store_delete(s.store, "run"));
    CHECK_STATUS(dp_store_get(s.store, "run", &out), DP_NOTFOUND);
    char key[DP_STORE_KEY_MAX + 2];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    CHECK_STATUS(dp_store_put(s.store, key, dp_view_text("x")), DP_TOOBIG);
    dp_buf_close(&out);
    shelf_close(&s);
}

static void an_incarnation_is_never_given_twice(void **state)
{
    (void)state;
    uint64_t one = 0;
    uint64_t two = 0;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_store_bump_incarnation(s.store, 1000, &one));
    shelf_reopen(&s);
    CHECK_OK(dp_store_bump_incarnation(s.store, 5, &two));
    CHECK(one == 1001 && two == 1002);
    CHECK_STATUS(dp_store_bump_incarnation(s.store, UINT64_MAX, &two), DP_TOOBIG);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_kept_and_replaced),
        cmocka_unit_test(an_incarnation_is_never_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
