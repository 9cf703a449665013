#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/disk.h"
#include "tests/sim/object.h"

static dp_disk_write vote_row(uint8_t mark, uint64_t slot)
{
    dp_disk_write write = {.kind = DP_WRITE_ROW, .row_kind = DP_STORE_VOTE};

    write.row.data = malloc(1);
    assert_non_null(write.row.data);
    write.row.data[0] = mark;
    write.row.size = 1;
    write.row.slot = slot;
    write.row.keep[0] = DP_SHELF_NONE;
    write.row.keep[1] = DP_SHELF_NONE;
    write.row.keep[2] = DP_SHELF_NONE;
    return write;
}

static dp_disk_write record_row(uint64_t slot)
{
    dp_disk_write write = {.kind = DP_WRITE_ROW, .row_kind = DP_STORE_DECIDED};

    write.record.data = calloc(2, 1);
    assert_non_null(write.record.data);
    write.record.record_size = 1;
    write.record.cert_size = 1;
    write.row.slot = slot;
    return write;
}

static void a_crash_leaves_a_prefix_of_what_was_under_way(void **state)
{
    bool seen[4] = {false};
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 1);
    for (uint32_t i = 0; i < 64; i++) {
        dp_disk disk = {0};
        for (uint8_t mark = 1; mark <= 3; mark++) {
            const dp_disk_write write = vote_row(mark, 1);
            assert_int_equal(dp_disk_begin(&disk, &write, 100, 10), 100 + 10 * mark);
        }
        dp_disk_crash(&disk, &rng);
        const uint8_t found = disk.vote.size == 0 ? 0 : disk.vote.data[0];
        assert_in_range(found, 0, 3);
        seen[found] = true;
        assert_null(dp_disk_end(&disk));
        dp_disk_close(&disk);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static void a_decision_drops_the_vote_of_its_slot_and_no_later_one(void **state)
{
    dp_disk disk = {0};

    (void)state;
    for (uint64_t slot = 1; slot <= 2; slot++) {
        const dp_disk_write vote = vote_row(9, 2);
        const dp_disk_write record = record_row(slot);
        dp_disk_begin(&disk, &vote, 0, 1);
        dp_disk_begin(&disk, &record, 0, 1);
        dp_disk_write_free(dp_disk_end(&disk));
        dp_disk_write_free(dp_disk_end(&disk));
        assert_int_equal(disk.n_records, slot);
        assert_int_equal(disk.vote.size, slot == 1 ? 1 : 0);
    }
    dp_disk_close(&disk);
}

static void an_object_stays_while_a_row_needs_it(void **state)
{
    dp_disk disk = {0};
    dp_disk_write pending = vote_row(1, 0);

    (void)state;
    pending.row_kind = DP_STORE_PENDING;
    pending.row.keep[1] = 5;
    const dp_disk_write object = {.kind = DP_WRITE_OBJECT, .object = 5};
    dp_disk_begin(&disk, &object, 0, 1);
    dp_disk_begin(&disk, &pending, 0, 1);
    dp_disk_write_free(dp_disk_end(&disk));
    dp_disk_write_free(dp_disk_end(&disk));
    dp_disk_use(&disk, 5, DP_USE_BLOB, true);
    dp_disk_use(&disk, 5, DP_USE_BLOB, false);
    assert_true(dp_disk_holds(&disk, 5));
    pending.row.keep[1] = DP_SHELF_NONE;
    pending.row.data = malloc(1);
    assert_non_null(pending.row.data);
    dp_disk_begin(&disk, &pending, 0, 1);
    dp_disk_write_free(dp_disk_end(&disk));
    assert_false(dp_disk_holds(&disk, 5));
    dp_disk_close(&disk);
}

static void there_is_one_checkpoint_of_each_round(void **state)
{
    dp_disk disk = {0};
    dp_disk_write save = {.kind = DP_WRITE_CHECKPOINT};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        save.round = i < 1 ? 5 : 7;
        save.object = i < 1 ? 1 : 2;
        dp_disk_begin(&disk, &save, 0, 1);
        dp_disk_write_free(dp_disk_end(&disk));
    }
    assert_int_equal(disk.n_checkpoints, 2);
    assert_true(disk.checkpoints[0].round == 5 && dp_disk_holds(&disk, 1));
    assert_true(disk.checkpoints[1].round == 7 && dp_disk_holds(&disk, 2));
    save.round = 9;
    save.object = 3;
    dp_disk_begin(&disk, &save, 0, 1);
    dp_disk_write_free(dp_disk_end(&disk));
    assert_true(disk.checkpoints[0].round == 7 && disk.checkpoints[1].round == 9);
    assert_false(dp_disk_holds(&disk, 1));
    dp_disk_close(&disk);
}

static void a_lost_vote_table_means_another_vote_key(void **state)
{
    dp_disk disk = {.vote_key = 1, .incarnation = 4};

    (void)state;
    dp_disk_wipe(&disk, false);
    assert_int_equal(disk.vote_key, 2);
    assert_int_equal(disk.incarnation, 4);
    dp_disk_lose_votes(&disk, true, 0);
    assert_int_equal(disk.vote_key, 2);
    dp_disk_close(&disk);
}

static void a_disk_that_is_slow_no_more_ends_sooner_what_it_has_begun(void **state)
{
    dp_disk disk = {0};
    const dp_disk_write first = vote_row(1, 1);
    const dp_disk_write second = vote_row(2, 1);
    const dp_disk_write third = vote_row(3, 1);

    (void)state;
    dp_disk_begin(&disk, &first, 0, 640);
    dp_disk_begin(&disk, &second, 0, 640);
    dp_disk_hasten(&disk, 320, 64);
    assert_int_equal(disk.first->done_us, 320 + 320 / 64);
    assert_int_equal(disk.last->done_us, 320 + 960 / 64);
    assert_int_equal(dp_disk_begin(&disk, &third, 320, 10), 320 + 960 / 64 + 10);
    dp_disk_hasten(&disk, 1000, 64); /* All are done. */
    assert_int_equal(disk.first->done_us, 325);
    dp_disk_close(&disk);
}

static void a_backup_has_an_older_row_of_what_was_published(void **state)
{
    dp_disk disk = {.vote_key = 1};
    dp_disk_write row = vote_row(1, 0);

    (void)state;
    row.row_kind = DP_STORE_PENDING;
    row.row.keep[1] = 5;
    const dp_disk_write object = {.kind = DP_WRITE_OBJECT, .object = 5};
    dp_disk_begin(&disk, &object, 0, 1);
    dp_disk_begin(&disk, &row, 0, 1);
    for (uint64_t slot = 1; slot < 4; slot++) {
        const dp_disk_write record = record_row(slot);
        dp_disk_begin(&disk, &record, 0, 1);
    }
    row = vote_row(2, 0);
    row.row_kind = DP_STORE_PENDING;
    dp_disk_begin(&disk, &row, 0, 1);
    for (dp_disk_write *write = dp_disk_end(&disk); write != NULL; write = dp_disk_end(&disk)) {
        dp_disk_write_free(write);
    }
    assert_false(dp_disk_holds(&disk, 5));
    dp_disk_lose_votes(&disk, false, 2);
    assert_int_equal(disk.pending.keep[1], 5);
    assert_true(dp_disk_holds(&disk, 5));
    dp_disk_close(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_leaves_a_prefix_of_what_was_under_way),
        cmocka_unit_test(a_decision_drops_the_vote_of_its_slot_and_no_later_one),
        cmocka_unit_test(an_object_stays_while_a_row_needs_it),
        cmocka_unit_test(a_disk_that_is_slow_no_more_ends_sooner_what_it_has_begun),
        cmocka_unit_test(a_backup_has_an_older_row_of_what_was_published),
        cmocka_unit_test(there_is_one_checkpoint_of_each_round),
        cmocka_unit_test(a_lost_vote_table_means_another_vote_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
