/* READY of parts: its list is what the root and the size say, or it is no READY. */
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static uint8_t room[8192];

static dp_ready parted(void)
{
    dp_ready ready = {.peer = kit_peer(1), .round = 3, .parted = true, .energy = 12, .rate = 13};

    ready.parts.n = 3;
    for (uint32_t p = 0; p < 3; p++) {
        ready.parts.refs[p] = (dp_part_ref){.root = {{(uint8_t)(p + 1)}}, .bytes = 10 + p};
    }
    ready.root = dp_part_list_root(&ready.parts);
    ready.bytes = dp_part_list_bytes(&ready.parts);
    return ready;
}

static dp_view write(const dp_ready *ready)
{
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_ready_msg_write(&writer, ready);
    assert_false(writer.full);
    return dp_view_of(room, writer.size);
}

static void a_ready_of_parts_is_read_as_it_was_written(void **state)
{
    const dp_ready ready = parted();
    dp_ready read;

    (void)state;
    assert_int_equal(ready.bytes, 33);
    assert_int_equal(dp_ready_msg_read(write(&ready), &read), DP_OK);
    assert_true(read.parted && read.energy == 12);
    assert_int_equal(read.rate, 13);
    assert_int_equal(read.parts.n, 3);
    for (uint32_t p = 0; p < 3; p++) {
        assert_true(dp_hash_equal(&read.parts.refs[p].root, &ready.parts.refs[p].root));
        assert_int_equal(read.parts.refs[p].bytes, 10 + p);
    }
}

/* Its author gains a claim whose parts are others than those that it signed. */
static void a_list_of_another_root_or_another_size_is_refused(void **state)
{
    dp_ready read;

    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        dp_ready ready = parted();
        if (what == 0) {
            ready.root.bytes[3] ^= 1;
        } else if (what == 1) {
            ready.bytes++;
        } else if (what == 2) {
            ready.bytes--;
        } else if (what == 3) {
            ready.parts.refs[1].root.bytes[0] ^= 1;
        } else {
            ready.parts.refs[2].bytes++;
        }
        assert_int_equal(dp_ready_msg_read(write(&ready), &read), DP_BADMSG);
    }
}

static void a_ready_that_is_cut_or_of_another_type_or_version_is_refused(void **state)
{
    const dp_ready ready = parted();
    dp_ready read;

    (void)state;
    const dp_view whole = write(&ready);
    for (size_t size = 0; size < whole.size; size++) {
        const dp_status status = dp_ready_msg_read(dp_view_of(room, size), &read);
        /* Where the parts begin, it is a READY of a whole update. */
        assert_true(status != DP_OK || !read.parted);
    }
    for (uint32_t at = 0; at < 2; at++) {
        room[at] ^= 1;
        assert_int_not_equal(dp_ready_msg_read(whole, &read), DP_OK);
        room[at] ^= 1;
    }
    assert_int_equal(dp_ready_msg_read(whole, &read), DP_OK);
    assert_int_not_equal(dp_ready_msg_read(dp_view_of(room, whole.size + 1), &read), DP_OK);
}

static void a_have_names_up_to_the_most_that_a_message_holds(void **state)
{
    dp_have_msg have = {.voter = kit_peer(2), .round = 5, .n = DP_HAVE_MAX};
    dp_have_msg read;

    (void)state;
    for (uint32_t i = 0; i < DP_HAVE_MAX; i++) {
        have.roots[i].bytes[0] = (uint8_t)(i + 1);
    }
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_have_msg_write(&writer, &have);
    assert_int_equal(dp_have_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_int_equal(read.n, DP_HAVE_MAX);
    assert_int_equal(read.roots[DP_HAVE_MAX - 1].bytes[0], DP_HAVE_MAX);
    room[2 + 32 + 8]++; /* One more than there may be. */
    assert_int_equal(dp_have_msg_read(dp_view_of(room, writer.size), &read), DP_TOOBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_of_parts_is_read_as_it_was_written),
        cmocka_unit_test(a_list_of_another_root_or_another_size_is_refused),
        cmocka_unit_test(a_ready_that_is_cut_or_of_another_type_or_version_is_refused),
        cmocka_unit_test(a_have_names_up_to_the_most_that_a_message_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
