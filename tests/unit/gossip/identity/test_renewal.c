/* The statement that a certificate is valid for longer: its bytes and its signature. */
#include "gossip/core/msg.h"
#include "gossip/identity/renewal.h"
#include "tests/unit/gossip/kit/mesh.h"

enum { NOW = 1000000 };

static dp_renewal sample(void)
{
    const dp_crypto crypto = mesh_crypto(2);
    dp_renewal renewal = {.peer = mesh_peer(1), .until_ms = NOW + 5, .by = mesh_peer(2)};

    assert_true(dp_renewal_sign(&renewal, &crypto, DP_KEY_IDENTITY, &mesh_run));
    return renewal;
}

static bool fits(const dp_renewal *renewal, uint64_t now_ms)
{
    const dp_crypto crypto = mesh_crypto(0);
    const dp_peer peer = mesh_peer(1);

    return dp_renewal_fits(renewal, &crypto, &mesh_run, &peer, now_ms);
}

static void it_holds_until_its_end_and_no_longer_than_a_certificate(void **state)
{
    const dp_crypto crypto = mesh_crypto(2);
    const dp_peer other = mesh_peer(3);
    const dp_run_id run = {{7}};
    dp_renewal renewal = sample();

    (void)state;
    CHECK(fits(&renewal, NOW) && fits(&renewal, NOW + 5) && !fits(&renewal, NOW + 6));
    CHECK(!dp_renewal_fits(&renewal, &crypto, &mesh_run, &other, NOW));
    CHECK(!dp_renewal_fits(&renewal, &crypto, &run, &renewal.peer, NOW));
    for (uint64_t more = 0; more < 2; more++) {
        renewal.until_ms = NOW + DP_CERT_NODE_MS_MAX + more;
        CHECK(dp_renewal_sign(&renewal, &crypto, DP_KEY_IDENTITY, &mesh_run));
        CHECK(fits(&renewal, NOW) == (more == 0) && fits(&renewal, NOW + 1));
    }
}

/* Signed, written and read: no bit of a message can be another, and all of it comes back. */
static void no_bit_of_it_can_be_changed(void **state)
{
    const dp_renewal renewal = sample();
    uint8_t room[256];
    dp_renewal read;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_renewal_msg_write(&writer, &renewal);
    CHECK(writer.size == DP_MSG_HEAD_BYTES + DP_RENEWAL_BYTES);
    CHECK_OK(dp_renewal_msg_read(dp_view_of(room, writer.size), &read));
    CHECK(dp_peer_equal(&read.peer, &renewal.peer) && dp_peer_equal(&read.by, &renewal.by));
    CHECK(read.until_ms == renewal.until_ms);
    assert_memory_equal(read.signature, renewal.signature, sizeof read.signature);
    for (size_t at = 0; at < writer.size; at++) {
        room[at] ^= 1;
        CHECK(dp_renewal_msg_read(dp_view_of(room, writer.size), &read) != DP_OK ||
              !fits(&read, NOW));
        room[at] ^= 1;
        CHECK(dp_renewal_msg_read(dp_view_of(room, at), &read) != DP_OK);
    }
    CHECK(dp_renewal_msg_read(dp_view_of(room, writer.size + 1), &read) != DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_until_its_end_and_no_longer_than_a_certificate),
        cmocka_unit_test(no_bit_of_it_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
