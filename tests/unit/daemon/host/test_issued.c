#include "daemon/host/issued.h"

#include "store/inside.h"
#include "tests/unit/store/shelf.h"
static dp_issued_list got;
static bool anew;

static dp_run_id run_of(uint8_t number)
{
    return (dp_run_id){{number}};
}

static dp_issued invite_of(uint32_t number, uint64_t until_ms)
{
    return (dp_issued){.id = {{(uint8_t)number, (uint8_t)(number >> 8), 9}},
                       .uses = (uint16_t)number,
                       .caps = DP_CAP_TRAIN,
                       .from_ms = 5,
                       .until_ms = until_ms};
}

static void made_invites_are_listed_after_a_restart(void **state)
{
    shelf kept;
    const dp_run_id run = run_of(1);
    const dp_issued first = invite_of(7, 1000);
    const dp_issued second = invite_of(8, 2000);

    (void)state;
    shelf_open(&kept);
    CHECK_OK(dp_issued_load(kept.store, &run, &got));
    assert_int_equal(got.n, 0);
    CHECK_OK(dp_issued_add(kept.store, &run, &first, 100, &anew));
    CHECK_OK(dp_issued_add(kept.store, &run, &second, 100, &anew));
    shelf_reopen(&kept);
    CHECK_OK(dp_issued_load(kept.store, &run, &got));
    assert_int_equal(got.n, 2);
    assert_memory_equal(&got.items[0].id, &first.id, sizeof first.id);
    assert_int_equal(got.items[1].uses, 8);
    assert_int_equal(got.items[1].caps, DP_CAP_TRAIN);
    assert_int_equal(got.items[1].from_ms, 5);
    assert_int_equal(got.items[1].until_ms, 2000);
    assert_ptr_equal(dp_issued_find(&got, &second.id), &got.items[1]);
    const dp_invite_id other = {{77}};
    assert_null(dp_issued_find(&got, &other));
    shelf_close(&kept);
}

static void another_run_begins_with_none(void **state)
{
    shelf kept;
    const dp_run_id first = run_of(1);
    const dp_run_id second = run_of(2);
    const dp_issued invite = invite_of(7, 1000);

    (void)state;
    shelf_open(&kept);
    CHECK_OK(dp_issued_add(kept.store, &first, &invite, 100, &anew));
    CHECK_OK(dp_issued_load(kept.store, &second, &got));
    assert_int_equal(got.n, 0);
    CHECK_OK(dp_issued_add(kept.store, &second, &invite, 100, &anew));
    CHECK_OK(dp_issued_load(kept.store, &second, &got));
    assert_int_equal(got.n, 1);
    CHECK_OK(dp_issued_forget(kept.store));
    CHECK_OK(dp_issued_load(kept.store, &second, &got));
    assert_int_equal(got.n, 0);
    shelf_close(&kept);
}

/* An invite that may still be used is never forgotten for another. */
static void a_full_list_forgets_those_whose_time_is_over_and_no_other(void **state)
{
    shelf kept;
    const dp_run_id run = run_of(1);
    const dp_issued last = invite_of(9999, 5000);

    (void)state;
    shelf_open(&kept);
    for (uint32_t i = 0; i < DP_ISSUED_MAX; i++) {
        const dp_issued invite = invite_of(i, i < 3 ? 1000 : 5000);
        CHECK_OK(dp_issued_add(kept.store, &run, &invite, 100, &anew));
    }
    CHECK_STATUS(dp_issued_add(kept.store, &run, &last, 1000, &anew), DP_TOOBIG);
    CHECK_OK(dp_issued_load(kept.store, &run, &got));
    assert_int_equal(got.n, DP_ISSUED_MAX);
    CHECK_OK(dp_issued_add(kept.store, &run, &last, 1001, &anew));
    CHECK_OK(dp_issued_load(kept.store, &run, &got));
    assert_int_equal(got.n, DP_ISSUED_MAX - 2);
    assert_non_null(dp_issued_find(&got, &last.id));
    shelf_close(&kept);
}

static void a_row_that_is_none_or_of_a_later_version_is_told(void **state)
{
    static const uint8_t later[] = {2, 0, 1, 2, 3};
    static const uint8_t many[2 + 32 + 2] = {[0] = 1, [34] = 0xff, [35] = 0xff};
    shelf kept;
    const dp_run_id run = run_of(1);

    (void)state;
    shelf_open(&kept);
    CHECK_OK(dp_store_put(kept.store, "invites", dp_view_of(later, sizeof later)));
    CHECK_STATUS(dp_issued_load(kept.store, &run, &got), DP_VERSION);
    CHECK_OK(dp_store_put(kept.store, "invites", dp_view_of(later, 1)));
    CHECK_STATUS(dp_issued_load(kept.store, &run, &got), DP_CORRUPT);
    CHECK_OK(dp_store_put(kept.store, "invites", dp_view_of(many, sizeof many)));
    CHECK_STATUS(dp_issued_load(kept.store, &run, &got), DP_CORRUPT);
    assert_int_equal(got.n, 0);
    shelf_close(&kept);
}

static void a_damaged_list_begins_anew_with_the_next_invite(void **state)
{
    shelf kept;
    const dp_run_id run = run_of(1);
    const dp_issued first = invite_of(7, 1000);
    const dp_issued second = invite_of(8, 2000);

    (void)state;
    shelf_open(&kept);
    CHECK_OK(dp_issued_add(kept.store, &run, &first, 100, &anew));
    CHECK(!anew);
    CHECK_OK(dp_sql_exec(&kept.store->meta, "UPDATE kv SET val=zeroblob(9) WHERE key='invites'"));
    CHECK_STATUS(dp_issued_load(kept.store, &run, &got), DP_CORRUPT);
    CHECK_OK(dp_issued_add(kept.store, &run, &second, 100, &anew));
    CHECK(anew);
    CHECK_OK(dp_issued_load(kept.store, &run, &got));
    assert_int_equal(got.n, 1);
    assert_non_null(dp_issued_find(&got, &second.id));
    CHECK_OK(dp_issued_add(kept.store, &run, &first, 100, &anew));
    CHECK(!anew);
    shelf_close(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_invites_are_listed_after_a_restart),
        cmocka_unit_test(another_run_begins_with_none),
        cmocka_unit_test(a_full_list_forgets_those_whose_time_is_over_and_no_other),
        cmocka_unit_test(a_row_that_is_none_or_of_a_later_version_is_told),
        cmocka_unit_test(a_damaged_list_begins_anew_with_the_next_invite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
