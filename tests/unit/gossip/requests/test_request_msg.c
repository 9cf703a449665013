/* Requests for the next record, as bytes: each field comes back, and no bit can be another. */
#include "gossip/core/msg.h"
#include "gossip/requests/request_msg.h"
#include "tests/unit/gossip/kit/mesh.h"

static bool removal_holds(const dp_remove *remove)
{
    const dp_crypto crypto = mesh_crypto(0);

    return dp_remove_verify(remove, &crypto, &mesh_run);
}

static void a_removal_comes_back_and_no_bit_of_it_can_be_changed(void **state)
{
    const dp_remove_reason reasons[2] = {DP_REMOVE_LEFT, DP_REMOVE_REVOKED};
    uint8_t room[512];
    dp_remove read;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        dp_remove remove = {
            .peer = mesh_peer(1), .reason = reasons[i], .incarnation = 0x0102030405};
        remove.by = i == 1 ? mesh_peer(2) : (dp_peer){{0}};
        const dp_crypto crypto = mesh_crypto(i == 1 ? 2 : 1);
        CHECK(dp_remove_sign(&remove, &crypto, DP_KEY_IDENTITY, &mesh_run));
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_remove_msg_write(&writer, &remove);
        CHECK_OK(dp_remove_msg_read(dp_view_of(room, writer.size), &read));
        CHECK(removal_holds(&read) && read.reason == reasons[i]);
        CHECK(dp_peer_equal(&read.peer, &remove.peer) && dp_peer_equal(&read.by, &remove.by));
        CHECK(read.incarnation == remove.incarnation && read.n_seals == 0);
        for (size_t at = 0; at < writer.size; at++) {
            room[at] ^= 1;
            const dp_status status = dp_remove_msg_read(dp_view_of(room, writer.size), &read);
            CHECK(status != DP_OK || !removal_holds(&read));
            room[at] ^= 1;
            CHECK(dp_remove_msg_read(dp_view_of(room, at), &read) != DP_OK);
        }
        CHECK(dp_remove_msg_read(dp_view_of(room, writer.size + 1), &read) != DP_OK);
    }
}

static void a_request_for_a_fence_comes_back_and_no_bit_of_it_can_be_changed(void **state)
{
    const dp_crypto crypto = mesh_crypto(1);
    const dp_crypto judge = mesh_crypto(0);
    dp_fence_ask ask = {.fence = {.peer = mesh_peer(1), .incarnation = 0x0102030405060708},
                        .asker = mesh_peer(2),
                        .exchange = {9, 8, 7}};
    dp_fence_ask read;
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    CHECK(dp_life_sign(&ask, &crypto, &mesh_run));
    dp_fence_msg_write(&writer, &ask);
    CHECK_OK(dp_fence_msg_read(dp_view_of(room, writer.size), &read));
    CHECK(dp_life_verify(&read, &judge, &mesh_run));
    CHECK(dp_peer_equal(&read.fence.peer, &ask.fence.peer));
    CHECK(dp_peer_equal(&read.asker, &ask.asker));
    CHECK(read.fence.incarnation == ask.fence.incarnation);
    assert_memory_equal(read.exchange, ask.exchange, sizeof ask.exchange);
    for (size_t at = 0; at < writer.size; at++) {
        room[at] ^= 1;
        CHECK(dp_fence_msg_read(dp_view_of(room, writer.size), &read) != DP_OK ||
              !dp_life_verify(&read, &judge, &mesh_run));
        room[at] ^= 1;
        CHECK(dp_fence_msg_read(dp_view_of(room, at), &read) != DP_OK);
    }
    CHECK(dp_fence_msg_read(dp_view_of(room, writer.size + 1), &read) != DP_OK);
}

/* By the seals of a majority, or as absent: no signature of a key, and all of it in the record. */
static void a_removal_by_the_voters_comes_back_with_its_seals(void **state)
{
    uint8_t room[2048];
    dp_remove read;

    (void)state;
    for (uint32_t n = 0; n <= DP_VOTERS_MAX; n++) {
        dp_remove remove = {.peer = mesh_peer(1),
                            .reason = n == 0 ? DP_REMOVE_ABSENT : DP_REMOVE_HARMFUL,
                            .n_seals = n};
        for (uint32_t i = 0; i < n; i++) {
            remove.seals[i].voter = (uint8_t)i;
            remove.seals[i].round = 1000 + i;
            memset(remove.seals[i].signature, 50 + (int)i, DP_SIGNATURE_BYTES);
        }
        memset(&read, 0xa5, sizeof read);
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_remove_msg_write(&writer, &remove);
        CHECK_OK(dp_remove_msg_read(dp_view_of(room, writer.size), &read));
        CHECK(read.reason == remove.reason && dp_peer_equal(&read.peer, &remove.peer));
        CHECK(read.n_seals == n && read.incarnation == 0 && dp_peer_is_zero(&read.by));
        for (uint32_t i = 0; i < n; i++) {
            CHECK(read.seals[i].voter == i && read.seals[i].round == 1000 + i);
            assert_memory_equal(read.seals[i].signature, remove.seals[i].signature,
                                DP_SIGNATURE_BYTES);
        }
        for (size_t at = 0; at < writer.size; at++) {
            CHECK(dp_remove_msg_read(dp_view_of(room, at), &read) != DP_OK);
        }
        const size_t count_at = DP_MSG_HEAD_BYTES + 32 + 1;
        if (n == DP_VOTERS_MAX) {
            room[count_at] = DP_VOTERS_MAX + 1;
            CHECK(dp_remove_msg_read(dp_view_of(room, sizeof room), &read) != DP_OK);
            room[count_at] = DP_VOTERS_MAX;
            room[count_at + 1] = 1; /* A voter twice. */
            CHECK(dp_remove_msg_read(dp_view_of(room, writer.size), &read) != DP_OK);
        } else if (n == 1) {
            room[count_at] = 0;
            CHECK(dp_remove_msg_read(dp_view_of(room, count_at + 1), &read) != DP_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removal_comes_back_and_no_bit_of_it_can_be_changed),
        cmocka_unit_test(a_request_for_a_fence_comes_back_and_no_bit_of_it_can_be_changed),
        cmocka_unit_test(a_removal_by_the_voters_comes_back_with_its_seals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
