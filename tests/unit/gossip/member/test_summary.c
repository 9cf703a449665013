#include "gossip/member/summary.h"
#include "tests/unit/gossip/kit/mesh.h"

static size_t made(const char *name, uint8_t bytes[DP_SUMMARY_MESSAGE_MAX])
{
    const dp_crypto crypto = mesh_crypto(3);
    dp_signed_summary said = {.peer = mesh_peer(3),
                              .incarnation = 5,
                              .sequence = 9,
                              .summary = {.slot = 4,
                                          .round = 3,
                                          .mode = DP_MODE_GOSSIP,
                                          .has_trainer = true,
                                          .step_us = 77,
                                          .saved_bytes = 12}};
    memcpy(said.name, name, strlen(name));
    return dp_summary_sign(&said, &crypto, &mesh_run, bytes);
}

static void a_signed_statement_is_read_back_and_no_prefix_of_it_is(void **state)
{
    const dp_crypto crypto = mesh_crypto(3);
    const dp_peer peer = mesh_peer(3);
    const dp_run_id other = {.bytes = {43}};
    uint8_t bytes[DP_SUMMARY_MESSAGE_MAX];
    dp_signed_summary read;
    const size_t size = made("atlas", bytes);

    (void)state;
    CHECK_OK(dp_summary_open(dp_view_of(bytes, size), &read));
    CHECK(dp_peer_equal(&read.peer, &peer) && read.incarnation == 5 && read.sequence == 9);
    CHECK(read.summary.slot == 4 && read.summary.round == 3 && read.summary.step_us == 77);
    CHECK(read.summary.mode == DP_MODE_GOSSIP && read.summary.has_trainer);
    assert_string_equal(read.name, "atlas");
    CHECK(dp_summary_verify(dp_view_of(bytes, size), &peer, &crypto, &mesh_run));
    CHECK(!dp_summary_verify(dp_view_of(bytes, size), &peer, &crypto, &other));
    for (size_t less = 0; less < size; less++) {
        CHECK_STATUS(dp_summary_open(dp_view_of(bytes, less), &read), DP_BADMSG);
    }
    bytes[size - DP_SIGNATURE_BYTES - 1] ^= 1;
    CHECK(!dp_summary_verify(dp_view_of(bytes, size), &peer, &crypto, &mesh_run));
}

static void a_name_is_cleaned_and_one_that_is_too_long_refused(void **state)
{
    uint8_t bytes[DP_SUMMARY_MESSAGE_MAX];
    dp_signed_summary read;
    const size_t size = made("a \"\x1b[2J", bytes);

    (void)state;
    CHECK_OK(dp_summary_open(dp_view_of(bytes, size), &read));
    assert_string_equal(read.name, "a___[2J");
    uint8_t longer[DP_SUMMARY_MESSAGE_MAX + 1] = {0};
    memcpy(longer, bytes, size);
    CHECK_STATUS(dp_summary_open(dp_view_of(longer, size + 1), &read), DP_BADMSG);
    bytes[50] = DP_NAME_MAX + 1;
    CHECK_STATUS(dp_summary_open(dp_view_of(bytes, size), &read), DP_BADMSG);
}

static void no_byte_of_it_can_be_another_and_every_field_comes_back(void **state)
{
    const dp_crypto crypto = mesh_crypto(3);
    dp_signed_summary said;
    dp_signed_summary read;
    uint8_t bytes[DP_SUMMARY_MESSAGE_MAX];

    (void)state;
    memset(&said, 0, sizeof said);
    memset(&read, 0, sizeof read);
    said.peer = mesh_peer(3);
    said.incarnation = 0x0102030405060708;
    said.sequence = 0x1112131415161718;
    memcpy(said.name, "atlas", 5);
    said.summary.slot = 0x2122232425262728;
    said.summary.head = (dp_hash){{1, 2}};
    said.summary.fork = 0x3132333435363738;
    said.summary.base = (dp_hash){{3, 4}};
    said.summary.round = 0x1142434445464748;
    said.summary.mode = DP_MODE_PAUSED;
    said.summary.has_trainer = true;
    said.summary.step_us = 0x51525354;
    said.summary.saved_round = 0x0162636465666768;
    said.summary.saved_root = (dp_hash){{5, 6}};
    said.summary.saved_bytes = 0x7172;
    const size_t size = dp_summary_sign(&said, &crypto, &mesh_run, bytes);
    CHECK_OK(dp_summary_open(dp_view_of(bytes, size), &read));
    CHECK(dp_summary_verify(dp_view_of(bytes, size), &read.peer, &crypto, &mesh_run));
    CHECK(dp_peer_equal(&read.peer, &said.peer) && read.incarnation == said.incarnation);
    CHECK(read.sequence == said.sequence);
    assert_string_equal(read.name, "atlas");
    CHECK(read.summary.slot == said.summary.slot && read.summary.fork == said.summary.fork);
    CHECK(dp_hash_equal(&read.summary.head, &said.summary.head));
    CHECK(dp_hash_equal(&read.summary.base, &said.summary.base));
    CHECK(read.summary.round == said.summary.round && read.summary.mode == DP_MODE_PAUSED);
    CHECK(read.summary.has_trainer && read.summary.step_us == said.summary.step_us);
    CHECK(read.summary.saved_round == said.summary.saved_round);
    CHECK(dp_hash_equal(&read.summary.saved_root, &said.summary.saved_root));
    CHECK(read.summary.saved_bytes == said.summary.saved_bytes);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 1;
        CHECK(dp_summary_open(dp_view_of(bytes, size), &read) != DP_OK ||
              !dp_summary_verify(dp_view_of(bytes, size), &read.peer, &crypto, &mesh_run));
        bytes[at] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signed_statement_is_read_back_and_no_prefix_of_it_is),
        cmocka_unit_test(a_name_is_cleaned_and_one_that_is_too_long_refused),
        cmocka_unit_test(no_byte_of_it_can_be_another_and_every_field_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
