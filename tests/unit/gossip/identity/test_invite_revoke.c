/* The statement that an invite is revoked: its bytes, its signature, and lists of such
 * statements. */
#include "gossip/core/msg.h"
#include "gossip/identity/invite_revoke.h"
#include "tests/unit/gossip/kit/mesh.h"

static dp_invite_revoke word_of(uint8_t id)
{
    const dp_crypto crypto = mesh_crypto(2);
    dp_invite_revoke word = {.id = {{1, id}}, .until_ms = 0x0102030405060708, .by = mesh_peer(2)};

    assert_true(dp_invite_revoke_sign(&word, &crypto, DP_KEY_IDENTITY, &mesh_run));
    return word;
}

static bool holds(const dp_invite_revoke *word)
{
    const dp_crypto crypto = mesh_crypto(0);

    return dp_invite_revoke_verify(word, &crypto, &mesh_run);
}

static void no_bit_of_a_word_can_be_changed(void **state)
{
    const dp_invite_revoke word = word_of(3);
    const dp_crypto crypto = mesh_crypto(0);
    const dp_run_id run = {{7}};
    uint8_t room[256];
    dp_invite_revoke read;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    CHECK(!dp_invite_revoke_verify(&word, &crypto, &run));
    dp_invite_revoke_msg_write(&writer, &word);
    CHECK(writer.size == DP_MSG_HEAD_BYTES + DP_INVITE_REVOKE_BYTES);
    CHECK_OK(dp_invite_revoke_msg_read(dp_view_of(room, writer.size), &read));
    CHECK(holds(&read) && read.until_ms == word.until_ms);
    CHECK(dp_invite_id_compare(&read.id, &word.id) == 0 && dp_peer_equal(&read.by, &word.by));
    for (size_t at = 0; at < writer.size; at++) {
        room[at] ^= 1;
        CHECK(dp_invite_revoke_msg_read(dp_view_of(room, writer.size), &read) != DP_OK ||
              !holds(&read));
        room[at] ^= 1;
        CHECK(dp_invite_revoke_msg_read(dp_view_of(room, at), &read) != DP_OK);
    }
    CHECK(dp_invite_revoke_msg_read(dp_view_of(room, writer.size + 1), &read) != DP_OK);
}

static void a_list_has_rising_ids_and_no_more_than_may_be(void **state)
{
    dp_invite_revoke words[4] = {word_of(1), word_of(2), word_of(4), word_of(4)};
    dp_invite_revoke read[4];
    uint8_t room[1024];

    (void)state;
    for (uint32_t n = 0; n <= 4; n++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        uint32_t count = 99;
        dp_invite_revokes_write(&writer, words, n);
        CHECK(writer.size == 1 + (size_t)n * DP_INVITE_REVOKE_BYTES);
        dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
        CHECK(dp_invite_revokes_read(&reader, read, 4, &count) ==
              (n < 4)); /* One is there twice. */
        CHECK(count == (n < 4 ? n : 99));
        for (uint32_t i = 0; i < n && n < 4; i++) {
            CHECK(holds(&read[i]) && dp_invite_id_compare(&read[i].id, &words[i].id) == 0);
        }
        if (n == 3) {
            reader = dp_reader_of(dp_view_of(room, writer.size));
            CHECK(!dp_invite_revokes_read(&reader, read, 2, &count));
            reader = dp_reader_of(dp_view_of(room, writer.size));
            CHECK(dp_invite_revokes_read(&reader, read, 3, &count));
            reader = dp_reader_of(dp_view_of(room, writer.size - 1));
            CHECK(!dp_invite_revokes_read(&reader, read, 3, &count));
        }
    }
    const dp_invite_revoke later = words[2];
    words[2] = words[1];
    words[1] = later;
    dp_writer writer = dp_writer_of(room, sizeof room);
    uint32_t count = 0;
    dp_invite_revokes_write(&writer, words, 3);
    dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
    CHECK(!dp_invite_revokes_read(&reader, read, 4, &count));
}

static void
a_word_is_kept_as_long_as_a_credential_may_last_after_the_end_of_its_invite(void **state)
{
    (void)state;
    CHECK(dp_invite_revoke_until(0) == DP_CERT_NODE_MS_MAX);
    CHECK(dp_invite_revoke_until(5) == DP_CERT_NODE_MS_MAX + 5);
    CHECK(dp_invite_revoke_until(UINT64_MAX - DP_CERT_NODE_MS_MAX) == UINT64_MAX);
    CHECK(dp_invite_revoke_until(UINT64_MAX - DP_CERT_NODE_MS_MAX - 1) == UINT64_MAX - 1);
    CHECK(dp_invite_revoke_until(UINT64_MAX - DP_CERT_NODE_MS_MAX + 1) == UINT64_MAX);
    CHECK(dp_invite_revoke_until(UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_of_a_word_can_be_changed),
        cmocka_unit_test(a_list_has_rising_ids_and_no_more_than_may_be),
        cmocka_unit_test(
            a_word_is_kept_as_long_as_a_credential_may_last_after_the_end_of_its_invite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
