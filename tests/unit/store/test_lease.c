#include "tests/unit/store/shelf.h"

#include "store/ckpt.h"

enum { STATE = 300000 };

static dp_hash save(shelf *s, uint64_t round)
{
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {
        .round = round, .slot = round, .state_root = name_of(round), .created_ms = round};
    uint8_t *bytes = noise(round, STATE);
    CHECK_OK(dp_ckpt_save(s->store, &run, &ckpt, dp_view_of(bytes, STATE)));
    free(bytes);
    return ckpt.object;
}

static bool is_here(shelf *s, const dp_hash *object)
{
    dp_object_info info;
    return dp_object_stat(s->store, object, &info) == DP_OK && info.complete;
}

/* The state of round 2, which is neither the oldest of this hour nor, after this, among the
 * newest. */
static dp_hash save_two(shelf *s)
{
    (void)save(s, 1);
    return save(s, 2);
}

static void save_four_more(shelf *s)
{
    for (uint64_t round = 3; round <= 6; round++) {
        (void)save(s, round);
    }
    CHECK_OK(dp_object_collect(s->store, NULL));
}

static void a_state_without_a_lease_goes_with_its_checkpoint(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    const dp_hash object = save_two(&s);
    save_four_more(&s);
    CHECK(!is_here(&s, &object));
    shelf_close(&s);
}

static void a_leased_state_outlives_its_checkpoint_until_the_lease_ends(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    shelf s;
    shelf_open(&s);
    const dp_hash object = save_two(&s);
    CHECK_OK(dp_ckpt_lease(s.store, &run, &object, 100));
    save_four_more(&s);
    CHECK(is_here(&s, &object));
    CHECK_OK(dp_ckpt_lease(s.store, &run, &object,
                           150)); /* Still being fetched: it is no checkpoint any more. */
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 190));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK(is_here(&s, &object));
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 150 + DP_LEASE_S + 1));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK(!is_here(&s, &object));
    shelf_close(&s);
}

static void only_states_of_the_run_are_leased_and_only_a_few(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_hash other_run = name_of(2);
    const dp_hash nothing = name_of(3);
    shelf s;
    shelf_open(&s);
    const dp_hash first = save(&s, 1);
    const dp_hash second = save(&s, 2);
    CHECK_STATUS(dp_ckpt_lease(s.store, &run, &nothing, 100), DP_NOTFOUND);
    CHECK_STATUS(dp_ckpt_lease(s.store, &other_run, &first, 100), DP_NOTFOUND);
    CHECK_OK(dp_ckpt_lease(s.store, &run, &first, 100));
    CHECK_OK(dp_ckpt_lease(s.store, &run, &second, 100));
    const dp_hash third = save(&s, 3);
    CHECK_STATUS(dp_ckpt_lease(s.store, &run, &third, 100), DP_TOOBIG);
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 100 + DP_LEASE_S + 1));
    CHECK_OK(dp_ckpt_lease(s.store, &run, &third, 200));
    shelf_close(&s);
}

/* A state of which the first chunk has come. */
static dp_hash begin_fetch(shelf *s, uint64_t seed, uint64_t round)
{
    const dp_pin pin = {.run = name_of(1), .kind = DP_PIN_STATE, .round = round};
    uint8_t *bytes = noise(seed, STATE);
    dp_hash leaves[4];
    const dp_hash root = dp_object_hash(dp_view_of(bytes, STATE), leaves);
    CHECK_OK(dp_object_begin(s->store, &root, STATE, leaves, &pin));
    CHECK_OK(
        dp_object_put_chunk(s->store, &root, 0, dp_view_of(bytes, dp_object_chunk_size(STATE, 0))));
    CHECK_OK(dp_object_flush(s->store));
    free(bytes);
    return root;
}

static uint32_t present(shelf *s, const dp_hash *object)
{
    dp_object_info info;
    CHECK_OK(dp_object_collect(s->store, NULL));
    return dp_object_stat(s->store, object, &info) == DP_OK ? info.n_present : 0;
}

static void chunks_of_a_state_wait_over_starts_until_it_is_begun_again(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    shelf s;
    shelf_open(&s);
    const dp_hash given_up = begin_fetch(&s, 1, 0);
    const dp_hash object = begin_fetch(&s, 2, 0);
    const dp_hash half_saved = begin_fetch(&s, 3, 7); /* A snapshot of its own. */
    for (uint64_t start = 1; start <= 3; start++) {
        shelf_reopen(&s);
        CHECK_OK(dp_ckpt_carry_over(s.store, &run, 1000 / start));
        assert_int_equal(present(&s, &object), 1);
        assert_int_equal(present(&s, &given_up), 0);
        assert_int_equal(present(&s, &half_saved), 0);
    }
    (void)begin_fetch(&s, 2, 0); /* On again: from here its own pin holds it. */
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 1000));
    assert_int_equal(present(&s, &object), 1);
    shelf_close(&s);
}

static void chunks_of_a_state_that_is_not_begun_again_are_dropped_in_time(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    shelf s;
    shelf_open(&s);
    const dp_hash object = begin_fetch(&s, 2, 0);
    shelf_reopen(&s);
    CHECK_OK(dp_ckpt_carry_over(s.store, &run, 50));
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 50 + DP_LEASE_S));
    assert_int_equal(present(&s, &object), 1);
    CHECK_OK(dp_ckpt_end_leases(s.store, &run, 50 + DP_LEASE_S + 1));
    assert_int_equal(present(&s, &object), 0);
    shelf_close(&s);
}

static void a_start_ends_the_leases_of_an_earlier_life(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    shelf s;
    shelf_open(&s);
    const dp_hash object = save_two(&s);
    CHECK_OK(dp_ckpt_lease(s.store, &run, &object, 100));
    save_four_more(&s);
    CHECK_OK(dp_ckpt_carry_over(s.store, &run, 1));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK(!is_here(&s, &object));
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_without_a_lease_goes_with_its_checkpoint),
        cmocka_unit_test(a_leased_state_outlives_its_checkpoint_until_the_lease_ends),
        cmocka_unit_test(only_states_of_the_run_are_leased_and_only_a_few),
        cmocka_unit_test(chunks_of_a_state_wait_over_starts_until_it_is_begun_again),
        cmocka_unit_test(chunks_of_a_state_that_is_not_begun_again_are_dropped_in_time),
        cmocka_unit_test(a_start_ends_the_leases_of_an_earlier_life),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
