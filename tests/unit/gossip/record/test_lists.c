/* Lists that a node knows, and the messages that carry them. */
#include "gossip/record/lists.h"

#include <stdlib.h>

#include "gossip/core/msg.h"
#include "tests/lib/allocfail.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static uint8_t room[DP_RECORD_WHOLE_MAX];
static uint8_t out[DP_RECORD_WHOLE_MAX];
static dp_record record;

/* first sets apart the contributors of one record from those of another. */
static dp_view record_of(uint8_t first, uint32_t n)
{
    dp_view bytes;

    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_ROUND;
    record.in_lists = true;
    record.n_listed = n;
    for (uint32_t i = 0; i < n; i++) {
        record.listed[i].peer = (dp_peer){{first, (uint8_t)(i >> 8), (uint8_t)i}};
    }
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    return bytes;
}

static dp_view list_at(dp_view whole, uint32_t i)
{
    const size_t full = dp_listing_bytes(DP_LIST_ROWS_MAX);
    const size_t at = dp_record_voted(whole).size + i * full;

    return dp_view_of(whole.data + at, whole.size - at < full ? whole.size - at : full);
}

static dp_status open_and_close(void *context)
{
    dp_lists lists;
    const dp_status status = dp_lists_open(&lists, *(const uint32_t *)context);

    dp_lists_close(&lists);
    return status;
}

static void a_run_of_many_contributors_needs_memory_for_lists(void **state)
{
    uint32_t many = DP_LISTED_MAX;
    uint32_t few = DP_LISTED_DEFAULT;

    (void)state;
    assert_int_equal(fail_each_allocation(open_and_close, &many), 1);
    assert_int_equal(fail_each_allocation(open_and_close, &few), 0);
}

static void a_record_is_whole_once_all_its_lists_are_known(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 96), DP_OK);
    const dp_view bytes = record_of(1, 70);
    const dp_view voted = dp_record_voted(bytes);
    assert_int_equal(dp_lists_join(&lists, voted, true, out, &whole), DP_AGAIN);
    assert_int_equal(lists.n_wanted, 3);
    assert_true(dp_lists_take(&lists, list_at(bytes, 2)));
    assert_true(dp_lists_take(&lists, list_at(bytes, 0)));
    assert_int_equal(dp_lists_join(&lists, voted, true, out, &whole), DP_AGAIN);
    assert_int_equal(lists.n_wanted, 1);
    assert_true(dp_lists_take(&lists, list_at(bytes, 1)));
    assert_int_equal(dp_lists_join(&lists, voted, true, out, &whole), DP_OK);
    assert_true(dp_view_equal(whole, bytes));
    assert_int_equal(dp_lists_join(&lists, bytes, true, out, &whole), DP_OK);
    assert_true(dp_view_equal(whole, bytes)); /* It was. */
    dp_lists_close(&lists);
}

static void a_list_that_nobody_asked_for_is_not_taken(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 64), DP_OK);
    const dp_view bytes = record_of(1, 40);
    assert_false(dp_lists_take(&lists, list_at(bytes, 0)));
    /* Nor by a record that this node only looks at. */
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(bytes), false, out, &whole), DP_AGAIN);
    assert_int_equal(lists.n_wanted, 0);
    assert_false(dp_lists_take(&lists, list_at(bytes, 0)));
    dp_lists_close(&lists);
}

static void lists_of_four_records_are_kept_and_those_used_last(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 64), DP_OK);
    for (uint8_t i = 0; i < DP_LISTS_RECORDS; i++) {
        dp_lists_put_all(&lists, record_of(i, 64));
    }
    const dp_view first = dp_record_voted(record_of(0, 64));
    assert_int_equal(dp_lists_join(&lists, first, true, out, &whole), DP_OK);
    dp_lists_put_all(&lists, record_of(9, 64));
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(record_of(0, 64)), true, out, &whole),
                     DP_OK);
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(record_of(1, 64)), true, out, &whole),
                     DP_AGAIN);
    dp_lists_close(&lists);
}

static void pinned_lists_stay_whatever_comes(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 64), DP_OK);
    dp_lists_put_all(&lists, record_of(1, 64));
    dp_lists_pin(&lists, dp_record_voted(record_of(1, 64)));
    for (uint8_t i = 2; i < 2 + 2 * DP_LISTS_RECORDS; i++) {
        dp_lists_put_all(&lists, record_of(i, 64));
    }
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(record_of(1, 64)), true, out, &whole),
                     DP_OK);
    dp_lists_pin(&lists, dp_record_voted(record_of(9, 64)));
    for (uint8_t i = 2; i < 2 + DP_LISTS_RECORDS; i++) {
        dp_lists_put_all(&lists, record_of(i, 64));
    }
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(record_of(1, 64)), true, out, &whole),
                     DP_AGAIN);
    dp_lists_close(&lists);
}

static void a_record_with_more_lists_than_the_run_has_is_not_waited_for(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 64), DP_OK);
    assert_int_equal(dp_lists_join(&lists, dp_record_voted(record_of(1, 65)), true, out, &whole),
                     DP_BADMSG);
    assert_int_equal(lists.n_wanted, 0);
    dp_lists_close(&lists);
}

static void a_record_that_no_vote_could_carry_is_not_joined(void **state)
{
    dp_lists lists;
    dp_view whole;

    (void)state;
    assert_int_equal(dp_lists_open(&lists, 64), DP_OK);
    memset(room, 0xff, sizeof room);
    room[1] = DP_RECORD_ROUND;
    room[2] = 32; /* Of lists, and 60 KB until they begin. */
    room[115] = 0x60;
    room[116] = 0xea;
    const dp_view bytes = dp_view_of(room, 0xea60);
    assert_int_not_equal(dp_lists_join(&lists, bytes, true, out, &whole), DP_OK);
    for (size_t size = 0; size < 300; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, room, size);
        DP_IGNORE(dp_lists_join(&lists, dp_view_of(exact, size), true, out, &whole));
        free(exact);
    }
    dp_lists_close(&lists);
}

static void messages_come_back_and_nothing_else_does(void **state)
{
    static uint8_t bytes[DP_LIST_MESSAGE_MAX + DP_LIST_GET_BYTES_MAX];
    dp_list_get_msg get = {.asker = {{1}}, .n = 2, .hashes = {{{2}}, {{3}}}};
    dp_list_get_msg read;
    dp_view list;
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    dp_list_get_msg_write(&writer, &get);
    assert_int_equal(dp_list_get_msg_read(dp_view_of(bytes, writer.size), &read), DP_OK);
    assert_int_equal(read.n, 2);
    assert_int_equal(read.hashes[1].bytes[0], 3);
    for (size_t size = 0; size < writer.size; size++) {
        assert_int_not_equal(dp_list_get_msg_read(dp_view_of(bytes, size), &read), DP_OK);
    }
    bytes[2 + 32] = 0;
    assert_int_equal(dp_list_get_msg_read(dp_view_of(bytes, writer.size), &read), DP_BADMSG);
    assert_int_equal(dp_list_get_msg_read(dp_view_of(bytes, 2 + 32 + 1), &read), DP_BADMSG);
    bytes[2 + 32] = DP_LISTS_MAX + 1;
    assert_int_equal(dp_list_get_msg_read(dp_view_of(bytes, writer.size), &read), DP_BADMSG);
    get.n = DP_LISTS_MAX; /* As many as there can be. */
    for (uint32_t i = 0; i < DP_LISTS_MAX; i++) {
        get.hashes[i] = (dp_hash){{(uint8_t)i, 4}};
    }
    writer = dp_writer_of(bytes, sizeof bytes);
    dp_list_get_msg_write(&writer, &get);
    assert_int_equal(writer.size, DP_LIST_GET_BYTES_MAX);
    assert_int_equal(dp_list_get_msg_read(dp_view_of(bytes, writer.size), &read), DP_OK);
    assert_memory_equal(&read, &get, sizeof read);
    writer = dp_writer_of(bytes, sizeof bytes);
    dp_list_msg_write(&writer, list_at(record_of(1, 32), 0));
    assert_int_equal(writer.size, DP_LIST_MESSAGE_MAX);
    assert_int_equal(dp_list_msg_read(dp_view_of(bytes, writer.size), &list), DP_OK);
    assert_int_equal(list.size, DP_LIST_BYTES_MAX);
    for (size_t size = 0; size < writer.size; size += 7) {
        assert_int_not_equal(dp_list_msg_read(dp_view_of(bytes, size), &list), DP_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_many_contributors_needs_memory_for_lists),
        cmocka_unit_test(a_record_is_whole_once_all_its_lists_are_known),
        cmocka_unit_test(a_list_that_nobody_asked_for_is_not_taken),
        cmocka_unit_test(lists_of_four_records_are_kept_and_those_used_last),
        cmocka_unit_test(pinned_lists_stay_whatever_comes),
        cmocka_unit_test(a_record_with_more_lists_than_the_run_has_is_not_waited_for),
        cmocka_unit_test(a_record_that_no_vote_could_carry_is_not_joined),
        cmocka_unit_test(messages_come_back_and_nothing_else_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
