#include "tests/unit/store/shelf.h"

#include "store/chain.h"
#include "store/ckpt.h"

static dp_chain_record row_of(uint64_t slot, const char *record)
{
    return (dp_chain_record){.slot = slot,
                             .hash = name_of(slot),
                             .record = dp_view_text(record),
                             .cert = dp_view_text("cert")};
}

static void records_follow_each_other_without_a_gap(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_chain_record rows[] = {row_of(0, "zero"), row_of(1, "one"), row_of(3, "three"),
                                    row_of(1, "other")};
    dp_chain_tip tip;
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_chain_head(s.store, &run, &tip), DP_NOTFOUND);
    CHECK_OK(dp_chain_append(s.store, &run, &rows[0]));
    CHECK_OK(dp_chain_append(s.store, &run, &rows[1]));
    CHECK_OK(dp_chain_append(s.store, &run, &rows[1]));
    CHECK_OK(dp_chain_append(s.store, &run, &rows[0]));
    CHECK_STATUS(dp_chain_append(s.store, &run, &rows[2]), DP_BADARG);
    CHECK_STATUS(dp_chain_append(s.store, &run, &rows[3]), DP_DIVERGED);
    shelf_reopen(&s);
    CHECK_OK(dp_chain_head(s.store, &run, &tip));
    CHECK(tip.slot == 1 && dp_hash_equal(&tip.hash, &rows[1].hash));
    shelf_close(&s);
}

static void a_fork_replaces_what_follows_and_the_checkpoints_of_later_rounds(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const uint8_t tensors[64] = {7};
    const dp_chain_record fork = row_of(3, "fork");
    const dp_chain_record after = row_of(4, "after");
    const dp_chain_record gap = row_of(9, "gap");
    dp_chain_tip tip;
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    uint64_t dropped = 0;
    shelf s;
    shelf_open(&s);
    for (uint64_t slot = 1; slot <= 5; slot++) {
        const dp_chain_record row = row_of(slot, "old");
        dp_ckpt ckpt = {.round = slot, .slot = slot, .state_root = name_of(slot)};
        CHECK_OK(dp_chain_append(s.store, &run, &row));
        CHECK_OK(dp_ckpt_save(s.store, &run, &ckpt, dp_view_of(tensors, sizeof tensors)));
        CHECK_OK(dp_ckpt_keep(s.store, &run, slot, true));
    }
    CHECK_STATUS(dp_chain_fork(s.store, &run, &gap, 9, &dropped), DP_BADARG);
    CHECK_OK(dp_chain_fork(s.store, &run, &fork, 2, &dropped));
    assert_int_equal(dropped, 3);
    shelf_reopen(&s);
    CHECK_OK(dp_chain_head(s.store, &run, &tip));
    CHECK(tip.slot == 3 && dp_hash_equal(&tip.hash, &fork.hash));
    CHECK_OK(dp_ckpt_list(s.store, &run, list, DP_CKPTS_MAX, &count));
    assert_int_equal(count, 2);
    assert_int_equal(list[0].round, 2);
    CHECK_OK(dp_chain_append(s.store, &run, &after));
    shelf_close(&s);
}

static void a_chain_is_cut_behind_its_last_good_record(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_hash other = name_of(2);
    const dp_chain_record after = row_of(3, "again");
    dp_chain_tip tip;
    shelf s;
    shelf_open(&s);
    for (uint64_t slot = 1; slot <= 5; slot++) {
        const dp_chain_record row = row_of(slot, "old");
        CHECK_OK(dp_chain_append(s.store, &run, &row));
        CHECK_OK(dp_chain_append(s.store, &other, &row));
    }
    CHECK_STATUS(dp_chain_cut(s.store, &run, 9), DP_NOTFOUND);
    CHECK_STATUS(dp_chain_cut(s.store, &run, UINT64_MAX), DP_TOOBIG);
    CHECK_OK(dp_chain_cut(s.store, &run, 2));
    shelf_reopen(&s);
    CHECK_OK(dp_chain_head(s.store, &run, &tip));
    CHECK(tip.slot == 2);
    CHECK_OK(dp_chain_append(s.store, &run, &after));
    CHECK_OK(dp_chain_cut(s.store, &run, 0));
    CHECK_STATUS(dp_chain_head(s.store, &run, &tip), DP_NOTFOUND);
    CHECK_OK(dp_chain_head(s.store, &other, &tip));
    CHECK(tip.slot == 5);
    shelf_close(&s);
}

static void a_record_comes_back_with_its_certificate(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_hash other = name_of(2);
    const dp_chain_record row = row_of(5, "five");
    dp_hash hash;
    dp_buf record;
    dp_buf cert;
    dp_buf_init(&record, 100);
    dp_buf_init(&cert, 100);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_chain_append(s.store, &run, &row));
    CHECK_OK(dp_chain_read(s.store, &run, 5, &record, &cert, &hash));
    CHECK(dp_view_equal(dp_buf_view(&record), row.record) &&
          dp_view_equal(dp_buf_view(&cert), row.cert));
    CHECK(dp_hash_equal(&hash, &row.hash));
    CHECK_STATUS(dp_chain_read(s.store, &run, 4, &record, NULL, NULL), DP_NOTFOUND);
    CHECK_STATUS(dp_chain_read(s.store, &other, 5, &record, NULL, NULL), DP_NOTFOUND);
    dp_buf small;
    dp_buf_init(&small, 2);
    CHECK_STATUS(dp_chain_read(s.store, &run, 5, &record, &small, NULL), DP_TOOBIG);
    assert_int_equal(record.size, 4);
    dp_buf_close(&small);
    dp_buf_close(&record);
    dp_buf_close(&cert);
    shelf_close(&s);
}

struct seen {
    uint64_t slots[8];
    uint32_t count;
    uint32_t stop_at;
};

static dp_status note(const dp_chain_record *row, void *context)
{
    struct seen *seen = (struct seen *)context;
    seen->slots[seen->count++] = row->slot;
    return seen->count == seen->stop_at ? DP_CLOSED : DP_OK;
}

static void a_range_is_visited_in_order_until_the_visitor_stops(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    struct seen seen = {.stop_at = 99};
    shelf s;
    shelf_open(&s);
    for (uint64_t slot = 1; slot <= 5; slot++) {
        const dp_chain_record row = row_of(slot, "r");
        CHECK_OK(dp_chain_append(s.store, &run, &row));
    }
    CHECK_OK(dp_chain_each(s.store, &run, 2, 3, note, &seen));
    CHECK(seen.count == 3 && seen.slots[0] == 2 && seen.slots[2] == 4);
    CHECK_OK(dp_chain_each(s.store, &run, 6, 3, note, &seen));
    CHECK_STATUS(dp_chain_each(s.store, &run, 0, 3, note, &seen), DP_NOTFOUND);
    assert_int_equal(seen.count, 3);
    seen.stop_at = 4;
    CHECK_STATUS(dp_chain_each(s.store, &run, 1, 8, note, &seen), DP_CLOSED);
    CHECK_OK(dp_chain_each(s.store, &run, 1, 0, note, &seen));
    shelf_close(&s);
}

static void a_flipped_bit_in_a_record_is_told(void **state)
{
    (void)state;
    static const char text[] = "a record that is long enough to be found in the file";
    const dp_hash run = name_of(1);
    const dp_chain_record row = row_of(1, text);
    dp_buf record;
    struct seen seen = {0};
    dp_buf_init(&record, 100);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_chain_append(s.store, &run, &row));
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(flip_after(shelf_file(&s, "meta.db"), (const uint8_t *)text, sizeof text - 1),
                     1);
    shelf_reopen(&s);
    CHECK_STATUS(dp_chain_read(s.store, &run, 1, &record, NULL, NULL), DP_CORRUPT);
    CHECK_STATUS(dp_chain_each(s.store, &run, 1, 1, note, &seen), DP_CORRUPT);
    CHECK_STATUS(dp_chain_append(s.store, &run, &row), DP_CORRUPT);
    dp_buf_close(&record);
    shelf_close(&s);
}

static void records_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    uint8_t *bytes = noise(1, DP_CHAIN_RECORD_MAX + 1);
    dp_chain_record row = row_of(1, "r");
    shelf s;
    shelf_open(&s);
    row.record = dp_view_of(bytes, DP_CHAIN_RECORD_MAX + 1);
    CHECK_STATUS(dp_chain_append(s.store, &run, &row), DP_TOOBIG);
    row.record = dp_view_of(bytes, DP_CHAIN_RECORD_MAX);
    CHECK_OK(dp_chain_append(s.store, &run, &row));
    row = row_of(UINT64_MAX, "r");
    CHECK_STATUS(dp_chain_append(s.store, &run, &row), DP_TOOBIG);
    free(bytes);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_follow_each_other_without_a_gap),
        cmocka_unit_test(a_fork_replaces_what_follows_and_the_checkpoints_of_later_rounds),
        cmocka_unit_test(a_chain_is_cut_behind_its_last_good_record),
        cmocka_unit_test(a_record_comes_back_with_its_certificate),
        cmocka_unit_test(a_range_is_visited_in_order_until_the_visitor_stops),
        cmocka_unit_test(a_flipped_bit_in_a_record_is_told),
        cmocka_unit_test(records_beyond_the_limits_are_refused),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
