#include "tests/unit/store/shelf.h"

#include "store/vote.h"

static dp_vote_key_row key_of(uint8_t fill)
{
    dp_vote_key_row key;
    memset(key.secret, fill, sizeof key.secret);
    memset(key.public_key, fill + 1, sizeof key.public_key);
    return key;
}

static dp_vote_row vote_of(uint64_t slot, int64_t promised, int64_t accepted, const char *record)
{
    return (dp_vote_row){
        .slot = slot, .promised = promised, .accepted = accepted, .record = dp_view_text(record)};
}

static void without_a_key_there_is_no_vote(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_row vote = vote_of(1, 0, -1, "");
    dp_vote_key_row key;
    dp_vote_row got;
    dp_buf record;
    dp_buf_init(&record, 100);
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_vote_load_key(s.store, &run, &key), DP_NOTFOUND);
    CHECK_STATUS(dp_vote_load(s.store, &run, &got, &record), DP_NOTFOUND);
    CHECK_STATUS(dp_vote_save(s.store, &run, &vote), DP_NOTFOUND);
    shelf_close(&s);
}

static void key_and_vote_survive_a_restart(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = key_of(7);
    dp_vote_row vote = vote_of(4, 9, 3, "record");
    memset(vote.place, 0x5A, sizeof vote.place);
    dp_vote_key_row got_key;
    dp_vote_row got;
    dp_buf record;
    dp_buf_init(&record, 100);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    CHECK_STATUS(dp_vote_create_key(s.store, &run, &key), DP_EXISTS);
    CHECK_OK(dp_vote_load(s.store, &run, &got, &record));
    CHECK(got.slot == 0 && got.promised == DP_VOTE_ROW_NONE && got.accepted == DP_VOTE_ROW_NONE);
    CHECK_OK(dp_vote_save(s.store, &run, &vote));
    shelf_reopen(&s);
    CHECK_OK(dp_vote_load_key(s.store, &run, &got_key));
    assert_memory_equal(&got_key, &key, sizeof key);
    CHECK_OK(dp_vote_load(s.store, &run, &got, &record));
    CHECK(got.slot == 4 && got.promised == 9 && got.accepted == 3 &&
          dp_view_equal(got.record, vote.record));
    assert_memory_equal(got.place, vote.place, sizeof vote.place);
    CHECK_OK(dp_vote_destroy_key(s.store, &run));
    CHECK_OK(dp_vote_destroy_key(s.store, &run));
    CHECK_STATUS(dp_vote_load_key(s.store, &run, &got_key), DP_NOTFOUND);
    dp_buf_close(&record);
    shelf_close(&s);
}

static void a_vote_never_goes_back(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = key_of(7);
    const struct {
        dp_vote_row vote;
        dp_status wanted;
    } steps[] = {
        {vote_of(5, 2, -1, ""), DP_OK},       {vote_of(5, 2, -1, ""), DP_OK},
        {vote_of(5, 1, -1, ""), DP_BADARG},   {vote_of(4, 9, -1, ""), DP_BADARG},
        {vote_of(5, 2, 3, "x"), DP_BADARG}, /* accepted above the promise */
        {vote_of(5, 3, 3, "x"), DP_OK},       {vote_of(5, 3, 3, "y"), DP_BADARG},
        {vote_of(5, 4, 3, "x"), DP_OK},       {vote_of(5, 4, -1, ""), DP_BADARG},
        {vote_of(5, 4, 2, "x"), DP_BADARG},   {vote_of(5, 4, 4, "y"), DP_OK},
        {vote_of(6, -1, -1, "z"), DP_BADARG}, /* a record that no voter accepted */
        {vote_of(6, -2, -2, ""), DP_BADARG},  {vote_of(6, -1, -1, ""), DP_OK},
    };
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        CHECK_STATUS(dp_vote_save(s.store, &run, &steps[i].vote), steps[i].wanted);
    }
    shelf_close(&s);
}

static void votes_of_two_forks_are_not_compared(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = key_of(7);
    dp_vote_row vote = vote_of(9, 4, 4, "old");
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    CHECK_OK(dp_vote_save(s.store, &run, &vote));
    vote = vote_of(5, 0, -1, "");
    CHECK_STATUS(dp_vote_save(s.store, &run, &vote), DP_BADARG);
    vote.place[0] = 1; /* Of a chain that left the first one before slot 5. */
    CHECK_OK(dp_vote_save(s.store, &run, &vote));
    vote.promised = -1;
    CHECK_STATUS(dp_vote_save(s.store, &run, &vote), DP_BADARG);
    shelf_close(&s);
}

static void a_flipped_bit_in_the_key_ends_the_vote(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = key_of(7);
    const dp_vote_row vote = vote_of(4, 9, 3, "record");
    dp_vote_key_row got;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(flip_after(shelf_file(&s, "meta.db"), key.secret, sizeof key.secret), 1);
    shelf_reopen(&s);
    CHECK_STATUS(dp_vote_load_key(s.store, &run, &got), DP_CORRUPT);
    CHECK_STATUS(dp_vote_save(s.store, &run, &vote), DP_CORRUPT);
    CHECK_OK(dp_vote_destroy_key(s.store, &run));
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    shelf_close(&s);
}

static void a_destroyed_key_is_not_left_in_the_file(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_vote_key_row key;
    uint8_t *bytes = noise(3, sizeof key);
    memcpy(&key, bytes, sizeof key);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    CHECK_OK(dp_vote_destroy_key(s.store, &run));
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(flip_after(shelf_file(&s, "meta.db"), key.secret, sizeof key.secret), 0);
    free(bytes);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_key_there_is_no_vote),
        cmocka_unit_test(key_and_vote_survive_a_restart),
        cmocka_unit_test(a_vote_never_goes_back),
        cmocka_unit_test(votes_of_two_forks_are_not_compared),
        cmocka_unit_test(a_flipped_bit_in_the_key_ends_the_vote),
        cmocka_unit_test(a_destroyed_key_is_not_left_in_the_file),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
