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

static void what_is_signed_is_read_as_it_was_and_no_prefix_of_it_is(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_signed_is_read_as_it_was_and_no_prefix_of_it_is),
        cmocka_unit_test(a_name_is_cleaned_and_one_that_is_too_long_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
