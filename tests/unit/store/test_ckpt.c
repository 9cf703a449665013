#include "tests/unit/store/shelf.h"

#include <unistd.h>

#include "store/chain.h"
#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/store/ckpt_kit.h"

enum { STATE = 600000 };

static void save(shelf *s, uint64_t round, uint64_t now_ms)
{
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {
        .round = round, .slot = round + 10, .state_root = name_of(round), .created_ms = now_ms};
    uint8_t *bytes = noise(round, STATE);
    CHECK_OK(dp_ckpt_save(s->store, &run, &ckpt, dp_view_of(bytes, STATE)));
    free(bytes);
}

/* Flip one bit in the second chunk of the state of a round. */
static void damage(shelf *s, uint64_t round)
{
    uint8_t *bytes = noise(round, STATE);
    dp_store_close(s->store);
    s->store = NULL;
    assert_int_equal(flip_after(shelf_file(s, "chunks.db"), bytes + DP_CHUNK_BYTES_MIN + 50, 32),
                     1);
    free(bytes);
    shelf_reopen(s);
}

static void test_R8_a_damaged_checkpoint_falls_back_to_the_one_before(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt;
    dp_buf tensors;
    uint32_t n_bad = 0;
    dp_buf_init(&tensors, STATE);
    shelf s;
    shelf_open(&s);
    save(&s, 1, 1000);
    save(&s, 2, 2000);
    damage(&s, 2);
    CHECK_OK(load_ckpt(s.store, &run, &ckpt, &tensors, &n_bad));
    CHECK(ckpt.round == 1 && ckpt.slot == 11 && n_bad == 1);
    uint8_t *wanted = noise(1, STATE);
    CHECK(dp_view_equal(dp_buf_view(&tensors), dp_view_of(wanted, STATE)));
    free(wanted);
    CHECK_OK(dp_ckpt_newest(s.store, &run, &ckpt));
    assert_int_equal(ckpt.round, 1);
    damage(&s, 1);
    CHECK_STATUS(load_ckpt(s.store, &run, &ckpt, NULL, &n_bad), DP_NOTFOUND);
    dp_buf_close(&tensors);
    shelf_close(&s);
}

static void lose_meta(shelf *s)
{
    dp_store_close(s->store);
    s->store = NULL;
    assert_int_equal(unlink(shelf_file(s, "meta.db")), 0);
    shelf_reopen(s);
    CHECK(s->report.meta_rebuilt);
}

/* The round of the newest whole state, which the load also reads; 0: none. */
static uint64_t loaded(shelf *s, dp_ckpt *ckpt)
{
    const dp_hash run = name_of(1);
    const dp_status status = load_ckpt(s->store, &run, ckpt, NULL, NULL);
    CHECK(status == DP_OK || status == DP_NOTFOUND);
    return status == DP_OK ? ckpt->round : 0;
}

static void test_R8_the_newest_state_outlives_the_list_of_checkpoints(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt;
    shelf s;
    shelf_open(&s);
    save(&s, 1, 1000);
    save(&s, 2, 2000);
    save(&s, 3, 3000);
    lose_meta(&s);
    for (uint64_t start = 1; start <= 3; start++) {
        CHECK_OK(dp_ckpt_carry_over(s.store, &run, 1000 / start));
        CHECK_OK(dp_object_collect(s.store, NULL));
        CHECK(loaded(&s, &ckpt) == 3 && dp_ckpt_is_recovered(&ckpt));
        shelf_reopen(&s);
    }
    lose_meta(&s); /* Also a second time. */
    CHECK(loaded(&s, &ckpt) == 3 && dp_ckpt_is_recovered(&ckpt));
    shelf_close(&s);
}

static void a_damaged_newest_state_does_not_hide_the_one_before_it(void **state)
{
    (void)state;
    dp_ckpt ckpt;
    shelf s;
    shelf_open(&s);
    save(&s, 1, 1000);
    save(&s, 2, 2000);
    damage(&s, 2);
    lose_meta(&s);
    CHECK(loaded(&s, &ckpt) == 1 && dp_ckpt_is_recovered(&ckpt));
    shelf_close(&s);
}

static void a_recovered_state_gives_way_to_a_checkpoint_of_its_round_or_a_later_one(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    for (uint64_t later = 3; later <= 4; later++) {
        dp_ckpt list[DP_CKPTS_MAX];
        dp_ckpt ckpt;
        uint32_t count = 0;
        shelf s;
        shelf_open(&s);
        save(&s, 3, 3000);
        lose_meta(&s);
        save(&s, 1, 4000); /* A chain that begins anew. */
        CHECK_OK(dp_ckpt_make_room(s.store));
        CHECK(loaded(&s, &ckpt) == 3 && dp_ckpt_is_recovered(&ckpt));
        CHECK_OK(dp_ckpt_list(s.store, &run, list, DP_CKPTS_MAX, &count));
        CHECK(count == 2 && list[1].round == 1);
        save(&s, later, 5000);
        CHECK(loaded(&s, &ckpt) == later && !dp_ckpt_is_recovered(&ckpt));
        CHECK_OK(dp_ckpt_list(s.store, &run, list, DP_CKPTS_MAX, &count));
        CHECK(count == 2 && list[1].round == 1);
        shelf_close(&s);
    }
}

static void a_recovered_state_outlives_the_fork_that_begins_the_chain_anew(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_chain_record row = {
        .slot = 1, .hash = name_of(7), .record = dp_view_text("r"), .cert = {0}};
    uint64_t dropped = 9;
    dp_ckpt ckpt;
    shelf s;
    shelf_open(&s);
    save(&s, 3, 3000);
    lose_meta(&s);
    CHECK_OK(dp_chain_fork(s.store, &run, &row, 0, &dropped));
    CHECK(loaded(&s, &ckpt) == 3 && dp_ckpt_is_recovered(&ckpt));
    shelf_close(&s);
}

static void a_buffer_too_small_does_not_make_a_checkpoint_bad(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt;
    dp_buf tensors;
    uint32_t n_bad = 9;
    uint32_t n_good = 0;
    dp_buf_init(&tensors, STATE - 1);
    shelf s;
    shelf_open(&s);
    save(&s, 1, 1000);
    CHECK_STATUS(load_ckpt(s.store, &run, &ckpt, &tensors, &n_bad), DP_TOOBIG);
    assert_int_equal(n_bad, 0);
    CHECK_OK(verify_ckpts(s.store, &run, &n_good, &n_bad));
    CHECK(n_good == 1 && n_bad == 0);
    dp_buf_close(&tensors);
    shelf_close(&s);
}

static void a_checkpoint_that_is_being_read_stays_until_that_ends(void **state)
{
    (void)state;
    enum { LARGE = DP_PIECE_BYTES + 1000 };
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {.round = 1, .created_ms = 1000};
    dp_ckpt_reading reading = {.run = run};
    dp_object_info info;
    uint8_t *bytes = noise(1, LARGE);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_ckpt_save(s.store, &run, &ckpt, dp_view_of(bytes, LARGE)));
    CHECK_STATUS(dp_ckpt_read(s.store, &reading), DP_AGAIN);
    for (uint64_t round = 2; round < 8; round++) { /* Retention drops it. */
        save(&s, round, round * 86400000);
    }
    CHECK_OK(dp_ckpt_read(s.store, &reading));
    CHECK(reading.n_good == 1 && reading.n_bad == 0 && reading.ckpt.round == 1);
    CHECK_STATUS(dp_ckpt_read(s.store, &reading), DP_NOTFOUND); /* Those are newer. */
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_stat(s.store, &ckpt.object, &info), DP_NOTFOUND);
    free(bytes);
    shelf_close(&s);
}

static void a_checkpoint_is_complete_only_with_its_object(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_pin pin = {.run = run, .kind = DP_PIN_STATE, .round = 7};
    uint8_t *bytes = noise(7, STATE);
    dp_ckpt ckpt = {.round = 7,
                    .state_root = name_of(7),
                    .object = dp_object_hash(dp_view_of(bytes, STATE), NULL)};
    dp_ckpt got;
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_ckpt_commit(s.store, &run, 7), DP_NOTFOUND);
    CHECK_OK(dp_ckpt_begin(s.store, &run, &ckpt));
    CHECK_STATUS(dp_ckpt_commit(s.store, &run, 7), DP_AGAIN);
    CHECK_STATUS(dp_ckpt_newest(s.store, &run, &got), DP_NOTFOUND);
    CHECK_OK(dp_object_put(s.store, dp_view_of(bytes, STATE), &pin, NULL));
    CHECK_OK(dp_ckpt_commit(s.store, &run, 7));
    CHECK_STATUS(dp_ckpt_begin(s.store, &run, &ckpt), DP_EXISTS);
    CHECK_OK(dp_object_unpin(s.store, &ckpt.object, &pin));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK(holds_noise(s.store, &ckpt.object, 7, STATE));
    free(bytes);
    shelf_close(&s);
}

static void test_R8_a_checkpoint_begun_and_not_committed_is_dropped_at_start(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {.round = 9, .state_root = name_of(9)};
    dp_ckpt list[4];
    uint32_t count = 9;
    shelf s;
    shelf_open(&s);
    ckpt.object = put_noise(s.store, 1, STATE, DP_PIN_STATE, 9);
    CHECK_OK(dp_ckpt_begin(s.store, &run, &ckpt));
    const dp_pin pin = pin_of(DP_PIN_STATE, 9);
    CHECK_OK(dp_object_unpin(s.store, &ckpt.object, &pin));
    shelf_reopen(&s);
    assert_int_equal(s.report.ckpts_dropped, 1);
    assert_int_equal(s.report.objects_dropped, 1);
    CHECK_OK(dp_ckpt_list(s.store, &run, list, 4, &count));
    assert_int_equal(count, 0);
    shelf_close(&s);
}

static void a_checkpoint_that_could_not_be_adopted_keeps_no_place(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 9;
    shelf s;
    shelf_open(&s);
    for (uint64_t round = 1; round <= 2 * DP_CKPTS_MAX; round++) {
        const dp_ckpt ckpt = {.round = round, .state_root = name_of(round), .object = name_of(77)};
        const dp_pin pin = pin_of(DP_PIN_STATE, round);
        CHECK_STATUS(dp_ckpt_adopt(s.store, &run, &ckpt, &pin), DP_AGAIN); /* It is not here. */
    }
    CHECK_OK(dp_ckpt_list(s.store, &run, list, DP_CKPTS_MAX, &count));
    assert_int_equal(count, 0);
    shelf_close(&s);
}

static void no_more_are_kept_for_ever_than_there_are_places(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {0};
    shelf s;
    shelf_open(&s);
    for (uint64_t round = 1; round <= DP_CKPTS_MAX; round++) {
        ckpt = (dp_ckpt){.round = round, .state_root = name_of(round)};
        CHECK_OK(dp_ckpt_save(s.store, &run, &ckpt, dp_view_text("state")));
        CHECK_OK(dp_ckpt_keep(s.store, &run, round, true));
    }
    ckpt = (dp_ckpt){.round = DP_CKPTS_MAX + 1, .state_root = name_of(1)};
    CHECK_STATUS(dp_ckpt_save(s.store, &run, &ckpt, dp_view_text("state")), DP_TOOBIG);
    CHECK_OK(dp_ckpt_keep(s.store, &run, 5, false)); /* One of them may go now. */
    CHECK_OK(dp_ckpt_save(s.store, &run, &ckpt, dp_view_text("state")));
    shelf_close(&s);
}

static uint32_t count_complete(shelf *s)
{
    const dp_hash run = name_of(1);
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    CHECK_OK(dp_ckpt_list(s->store, &run, list, DP_CKPTS_MAX, &count));
    return count;
}

static void test_R7_retention_keeps_two_and_one_of_an_hour_and_a_day(void **state)
{
    (void)state;
    const uint64_t minute_ms = 60 * 1000;
    const dp_hash run = name_of(1);
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    shelf s;
    shelf_open(&s);
    const uint64_t start_ms = 1000 * minute_ms;
    uint64_t now_ms = start_ms;
    for (uint64_t round = 1; round <= 60; round++) { /* One in 41 minutes: 41 hours. */
        now_ms += 41 * minute_ms;
        save(&s, round, now_ms);
    }
    CHECK_OK(dp_ckpt_list(s.store, &run, list, DP_CKPTS_MAX, &count));
    CHECK(count >= 4 && count <= 6);
    CHECK(list[0].round == 60 && list[1].round == 59);
    bool has_hour = false;
    bool has_day = false;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t age_ms = now_ms - list[i].created_ms;
        has_hour = has_hour || (age_ms > 60 * minute_ms && age_ms <= 180 * minute_ms);
        has_day = has_day || age_ms > 24 * 60 * minute_ms;
    }
    CHECK(has_hour && has_day);
    shelf_close(&s);
}

static void test_R7_a_kept_checkpoint_is_never_pruned(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    shelf s;
    shelf_open(&s);
    save(&s, 1, 1000);
    CHECK_STATUS(dp_ckpt_keep(s.store, &run, 2, true), DP_NOTFOUND);
    save(&s, 2, 1000);
    CHECK_OK(dp_ckpt_keep(s.store, &run, 2, true));
    for (uint64_t round = 3; round < 7; round++) {
        save(&s, round, 1000);
    }
    assert_int_equal(count_complete(&s), 4); /* 6, 5, the kept one, and the oldest of the hour. */
    CHECK_OK(dp_ckpt_keep(s.store, &run, 2, false));
    CHECK_OK(dp_ckpt_prune(s.store, &run, 1000));
    assert_int_equal(count_complete(&s), 3);
    shelf_close(&s);
}

static void test_R6_a_full_quota_drops_old_checkpoints_but_never_the_last(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    uint8_t *bytes = noise(99, 4 * STATE);
    dp_ckpt ckpt;
    shelf s;
    shelf_open(&s);
    s.options.max_bytes = 4 * 1024 * 1024;
    shelf_reopen(&s);
    save(&s, 1, 1000);
    save(&s, 2, 2000);
    save(&s, 3, 3000);
    CHECK_OK(dp_object_put(s.store, dp_view_of(bytes, 4 * STATE), &pin, NULL));
    CHECK_OK(load_ckpt(s.store, &run, &ckpt, NULL, NULL));
    assert_int_equal(ckpt.round, 3);
    assert_int_equal(count_complete(&s), 1);
    bytes[0] ^= 1;
    bytes[STATE] ^= 1;
    bytes[2 * STATE] ^= 1;
    CHECK_STATUS(dp_object_put(s.store, dp_view_of(bytes, 4 * STATE), &pin, NULL), DP_NOSPACE);
    CHECK_OK(load_ckpt(s.store, &run, &ckpt, NULL, NULL));
    free(bytes);
    shelf_close(&s);
}

/* Both were admitted into the same room. */
static void test_R6_what_was_begun_has_its_room(void **state)
{
    enum { SIZE = 3 << 20 };
    dp_hash leaves[DP_CHUNKS_MAX];
    dp_hash roots[2];
    shelf s;
    (void)state;
    shelf_open(&s);
    s.options.max_bytes = 5 << 20;
    shelf_reopen(&s);
    for (uint64_t i = 0; i < 2; i++) {
        const dp_pin pin = pin_of(DP_PIN_STATE, i);
        uint8_t *bytes = noise(i, SIZE);
        const uint32_t size = dp_object_chunk_size(SIZE, 0);
        roots[i] = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
        CHECK_STATUS(dp_object_begin(s.store, &roots[i], SIZE, leaves, &pin),
                     i == 0 ? DP_OK : DP_NOSPACE);
        if (i == 0) { /* With a part of it here, on the disk or on its way, it has no more room. */
            CHECK_OK(dp_store_admit(s.store, 1 << 20));
            CHECK_OK(dp_object_put_chunk(s.store, &roots[0], 0, dp_view_of(bytes, size)));
            CHECK_OK(dp_store_admit(s.store, 1 << 20));
            CHECK_OK(dp_object_flush(s.store));
            CHECK_OK(dp_store_admit(s.store, 1 << 20));
        }
        free(bytes);
    }
    const dp_pin first = pin_of(DP_PIN_STATE, 0);
    CHECK_OK(dp_object_unpin(s.store, &roots[0], &first)); /* The first is given up. */
    CHECK_OK(dp_store_admit(s.store, SIZE));
    shelf_close(&s);
}

static void test_R6_a_big_write_leaves_the_margin_on_the_disk(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    s.options.margin_bytes = UINT64_MAX / 4;
    shelf_reopen(&s);
    CHECK_OK(dp_store_admit(s.store, 1000));
    CHECK_STATUS(dp_store_admit(s.store, 2 * 1024 * 1024), DP_NOSPACE);
    CHECK_STATUS(dp_store_admit(s.store, DP_OBJECT_BYTES_MAX + 1), DP_TOOBIG);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R8_a_damaged_checkpoint_falls_back_to_the_one_before),
        cmocka_unit_test(test_R8_the_newest_state_outlives_the_list_of_checkpoints),
        cmocka_unit_test(a_damaged_newest_state_does_not_hide_the_one_before_it),
        cmocka_unit_test(a_recovered_state_gives_way_to_a_checkpoint_of_its_round_or_a_later_one),
        cmocka_unit_test(a_recovered_state_outlives_the_fork_that_begins_the_chain_anew),
        cmocka_unit_test(a_buffer_too_small_does_not_make_a_checkpoint_bad),
        cmocka_unit_test(a_checkpoint_that_is_being_read_stays_until_that_ends),
        cmocka_unit_test(a_checkpoint_is_complete_only_with_its_object),
        cmocka_unit_test(test_R8_a_checkpoint_begun_and_not_committed_is_dropped_at_start),
        cmocka_unit_test(a_checkpoint_that_could_not_be_adopted_keeps_no_place),
        cmocka_unit_test(no_more_are_kept_for_ever_than_there_are_places),
        cmocka_unit_test(test_R7_retention_keeps_two_and_one_of_an_hour_and_a_day),
        cmocka_unit_test(test_R7_a_kept_checkpoint_is_never_pruned),
        cmocka_unit_test(test_R6_a_full_quota_drops_old_checkpoints_but_never_the_last),
        cmocka_unit_test(test_R6_what_was_begun_has_its_room),
        cmocka_unit_test(test_R6_a_big_write_leaves_the_margin_on_the_disk),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
