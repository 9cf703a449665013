/* Messages that move stored things: each comes back as it was, and no cut, long, mistyped or lying
 * one is read. */
#include "base/run/manifest.h"
#include "tests/lib/check.h"

#include "gossip/record/wire.h"

static uint8_t room[DP_MESSAGE_MAX + 64];

static const dp_hash some_root = {.bytes = {1, 2, 3}};

static dp_writer fresh(void)
{
    return dp_writer_of(room, sizeof room);
}

static dp_view written(const dp_writer *writer)
{
    assert_false(writer->full);
    return dp_view_of(writer->data, writer->size);
}

/* A decoder reduced to its status; the decoded values are dropped. */
typedef dp_status (*read_as)(dp_view message);

static dp_status as_info_get(dp_view message)
{
    dp_hash root;
    return dp_wire_read_info_get(message, &root);
}

static dp_status as_info(dp_view message)
{
    static dp_hash leaves[DP_CHUNKS_MAX];
    dp_wire_info info;
    return dp_wire_read_info(message, &info, leaves);
}

static dp_status as_chunk_get(dp_view message)
{
    dp_hash root;
    uint32_t index = 0;
    return dp_wire_read_chunk_get(message, &root, &index);
}

static dp_status as_chunk(dp_view message)
{
    dp_wire_chunk chunk;
    return dp_wire_read_chunk(message, &chunk);
}

static dp_status as_records_get(dp_view message)
{
    uint64_t from = 0;
    uint32_t count = 0;
    return dp_wire_read_records_get(message, &from, &count);
}

static dp_status as_records(dp_view message)
{
    dp_wire_records records;
    return dp_wire_read_records(message, &records);
}

static dp_status as_manifest(dp_view message)
{
    dp_view manifest;
    return dp_wire_read_manifest(message, &manifest);
}

static dp_status as_chunk_drop(dp_view message)
{
    dp_hash root;
    return dp_wire_read_chunk_drop(message, &root);
}

static dp_status as_relay(dp_view message)
{
    dp_wire_relay relay;
    return dp_wire_read_relay(message, &relay);
}

static const read_as readers[] = {as_info_get, as_info,     as_chunk_get,  as_chunk, as_records_get,
                                  as_records,  as_manifest, as_chunk_drop, as_relay};
enum { READERS = sizeof readers / sizeof readers[0] };

/* A good message of each type; size_fixed: any byte less or more spoils it. */
static dp_view example(uint32_t which, bool *size_fixed)
{
    dp_writer writer = fresh();
    const dp_peer target = {.bytes = {9}};
    const uint8_t bytes[5] = {1, 2, 3, 4, 5};
    const dp_view some = dp_view_of(bytes, sizeof bytes);
    const dp_hash leaf = dp_chunk_leaf(some);
    const dp_hash root = dp_object_root(sizeof bytes, &leaf);

    *size_fixed = which != 3 && which != 6 && which != 8;
    switch (which) {
    case 0:
        dp_wire_write_info_get(&writer, &some_root);
        break;
    case 1:
        dp_wire_write_info(&writer, &root, sizeof bytes, &leaf);
        break;
    case 2:
        dp_wire_write_chunk_get(&writer, &some_root, DP_CHUNKS_MAX - 1);
        break;
    case 3:
        dp_wire_write_chunk_head(&writer, &some_root, 3, true);
        dp_write_view(&writer, some);
        break;
    case 4:
        dp_wire_write_records_get(&writer, 7, DP_RECORDS_PER_MESSAGE);
        break;
    case 5:
        dp_wire_begin_records(&writer, 7);
        assert_true(dp_wire_add_record(&writer, some, some));
        assert_true(dp_wire_add_record(&writer, some, some));
        break;
    case 6:
        dp_wire_write_manifest(&writer, some);
        break;
    case 7:
        dp_wire_write_chunk_drop(&writer, &some_root);
        break;
    default:
        dp_wire_write_relay(&writer, DP_RELAY_HOPS, &target, some);
        break;
    }
    return written(&writer);
}

static void each_message_is_read_as_what_it_is_and_as_nothing_else(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < READERS; which++) {
        bool size_fixed = false;
        const dp_view message = example(which, &size_fixed);
        for (uint32_t i = 0; i < READERS; i++) {
            if (i == which) {
                CHECK_OK(readers[i](message));
            } else {
                assert_int_not_equal(readers[i](message), DP_OK);
            }
        }
        room[1]++; /* Another version. */
        assert_int_not_equal(readers[which](message), DP_OK);
        room[1]--;
    }
}

static void no_message_is_read_when_it_is_cut_or_has_more_at_its_end(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < READERS; which++) {
        bool size_fixed = false;
        const dp_view message = example(which, &size_fixed);
        const size_t needed = size_fixed   ? message.size
                              : which == 6 ? (size_t)DP_MSG_HEAD_BYTES
                                           : message.size - 5;
        for (size_t size = 0; size < needed; size++) {
            assert_int_not_equal(readers[which](dp_view_of(message.data, size)), DP_OK);
        }
        room[message.size] = 0;
        if (size_fixed) {
            assert_int_not_equal(readers[which](dp_view_of(message.data, message.size + 1)), DP_OK);
        }
    }
}

static void information_that_does_not_make_its_root_is_refused(void **state)
{
    dp_hash leaves[3] = {{.bytes = {1}}, {.bytes = {2}}, {.bytes = {3}}};
    const uint64_t size = 2 * DP_CHUNK_BYTES_MIN + 1;
    const dp_hash root = dp_object_root(size, leaves);
    static dp_hash read[DP_CHUNKS_MAX];
    dp_wire_info info;
    dp_writer writer = fresh();

    (void)state;
    dp_wire_write_info(&writer, &root, size, leaves);
    CHECK_OK(dp_wire_read_info(written(&writer), &info, read));
    assert_int_equal(info.size, size);
    assert_int_equal(info.n_leaves, 3);
    assert_true(dp_hash_equal(&read[2], &leaves[2]));
    room[writer.size - 1] ^= 1;
    CHECK_STATUS(dp_wire_read_info(written(&writer), &info, read), DP_BADHASH);
    writer = fresh();
    dp_wire_write_info(&writer, &root, 0, leaves);
    memset(room + DP_MSG_HEAD_BYTES + DP_HASH_BYTES, 0xff, 8); /* No object is of that size. */
    CHECK_STATUS(dp_wire_read_info(written(&writer), &info, read), DP_TOOBIG);
}

static void a_chunk_of_an_impossible_place_size_or_answer_is_refused(void **state)
{
    dp_writer writer = fresh();
    dp_wire_chunk chunk;
    const size_t found_at = DP_CHUNK_HEAD_BYTES - 1;

    (void)state;
    dp_wire_write_chunk_head(&writer, &some_root, 5, false);
    CHECK_OK(dp_wire_read_chunk(written(&writer), &chunk));
    assert_false(chunk.found);
    assert_int_equal(chunk.index, 5);
    assert_int_equal(chunk.bytes.size, 0);
    room[found_at] = 2;
    CHECK_STATUS(dp_wire_read_chunk(written(&writer), &chunk), DP_BADMSG);
    writer = fresh();
    dp_wire_write_chunk_head(&writer, &some_root, DP_CHUNKS_MAX, true);
    CHECK_STATUS(dp_wire_read_chunk(written(&writer), &chunk), DP_BADMSG);
    writer = fresh();
    dp_wire_write_chunk_get(&writer, &some_root, DP_CHUNKS_MAX);
    CHECK_STATUS(as_chunk_get(written(&writer)), DP_BADMSG);
}

static void records_are_asked_for_from_the_first_on_and_a_message_full_at_most(void **state)
{
    dp_writer writer = fresh();
    uint64_t from = 0;
    uint32_t count = 0;

    (void)state;
    dp_wire_write_records_get(&writer, 3, 100000); /* As many as one answer carries. */
    CHECK_OK(dp_wire_read_records_get(written(&writer), &from, &count));
    assert_int_equal(from, 3);
    assert_int_equal(count, DP_RECORDS_PER_MESSAGE);
    room[writer.size - 2] = DP_RECORDS_PER_MESSAGE + 1;
    CHECK_STATUS(as_records_get(written(&writer)), DP_BADMSG);
    writer = fresh();
    dp_wire_write_records_get(&writer, 3, 0);
    CHECK_STATUS(as_records_get(written(&writer)), DP_BADMSG);
    writer = fresh();
    dp_wire_write_records_get(&writer, 0, 1);
    CHECK_STATUS(as_records_get(written(&writer)), DP_BADMSG);
}

static void a_list_of_records_that_says_more_than_it_may_or_has_is_refused(void **state)
{
    const size_t count_at = DP_MSG_HEAD_BYTES + 8;
    const uint8_t byte = 0;
    dp_writer writer = fresh();

    (void)state;
    dp_wire_begin_records(&writer, 1);
    for (uint32_t i = 0; i < DP_RECORDS_PER_MESSAGE; i++) {
        assert_true(dp_wire_add_record(&writer, dp_view_of(&byte, 1), dp_view_of(&byte, 1)));
    }
    assert_false(dp_wire_add_record(&writer, dp_view_of(&byte, 1), dp_view_of(&byte, 1)));
    CHECK_OK(as_records(written(&writer)));
    room[count_at] = DP_RECORDS_PER_MESSAGE + 1;
    CHECK_STATUS(as_records(written(&writer)), DP_TOOBIG);
    room[count_at] = 0;
    CHECK_STATUS(as_records(written(&writer)), DP_BADMSG); /* The rest belongs to nothing. */
    room[count_at] = 1;
    memset(room + count_at + 2, 0xff, 4); /* A record of 4 GiB. */
    CHECK_STATUS(as_records(written(&writer)), DP_BADMSG);
}

static void a_manifest_longer_than_manifests_are_is_refused(void **state)
{
    static uint8_t big[DP_MANIFEST_BYTES_MAX + 1];
    dp_writer writer = fresh();
    dp_view manifest;

    (void)state;
    dp_wire_write_manifest(&writer, dp_view_of(big, sizeof big - 1));
    CHECK_OK(dp_wire_read_manifest(written(&writer), &manifest));
    assert_int_equal(manifest.size, DP_MANIFEST_BYTES_MAX);
    writer = fresh();
    dp_wire_write_manifest(&writer, dp_view_of(big, sizeof big));
    CHECK_STATUS(dp_wire_read_manifest(written(&writer), &manifest), DP_TOOBIG);
    writer = fresh();
    dp_wire_write_manifest_get(&writer);
    assert_int_equal(dp_msg_type_of(written(&writer)), DP_MSG_MANIFEST_GET);
    assert_int_equal(writer.size, DP_MSG_HEAD_BYTES);
}

static void an_envelope_with_more_hops_than_there_are_is_refused(void **state)
{
    const dp_peer target = {.bytes = {9}};
    dp_writer writer = fresh();
    dp_wire_relay relay;

    (void)state;
    dp_wire_write_relay(&writer, DP_RELAY_HOPS, &target, dp_view_text("inside"));
    CHECK_OK(dp_wire_read_relay(written(&writer), &relay));
    assert_true(dp_peer_equal(&relay.target, &target));
    assert_true(dp_view_equal(relay.message, dp_view_text("inside")));
    room[DP_MSG_HEAD_BYTES] = DP_RELAY_HOPS + 1;
    CHECK_STATUS(dp_wire_read_relay(written(&writer), &relay), DP_BADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_read_as_what_it_is_and_as_nothing_else),
        cmocka_unit_test(no_message_is_read_when_it_is_cut_or_has_more_at_its_end),
        cmocka_unit_test(information_that_does_not_make_its_root_is_refused),
        cmocka_unit_test(a_chunk_of_an_impossible_place_size_or_answer_is_refused),
        cmocka_unit_test(records_are_asked_for_from_the_first_on_and_a_message_full_at_most),
        cmocka_unit_test(a_list_of_records_that_says_more_than_it_may_or_has_is_refused),
        cmocka_unit_test(a_manifest_longer_than_manifests_are_is_refused),
        cmocka_unit_test(an_envelope_with_more_hops_than_there_are_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
