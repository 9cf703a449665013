/* Bytes of records, certificates and messages: exact; all other bytes are refused. */
#include <stdlib.h>

#include "base/rng.h"
#include "gossip/core/msg.h"
#include "gossip/ledger/valid.h"
#include "gossip/record/wire.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static uint8_t room[DP_MESSAGE_MAX];
static dp_record record;
static dp_record again;

/* A record with something in every list. */
static dp_view full_record(dp_ledger *ledger, uint8_t credential[KIT_CREDENTIAL])
{
    dp_view bytes;
    const dp_crypto crypto = kit_crypto(2);

    kit_ledger(ledger);
    kit_voters(ledger, 3);
    ledger->roster[1].included = 1;
    ledger->roster[1].w = 50;
    kit_round(ledger, &record);
    (void)kit_list(ledger, &record, 0, 1000, 10, 77);
    (void)kit_list(ledger, &record, 5, 500, 10, 78);
    record.late[record.n_late++] = kit_peer(1);
    record.has_config = true;
    record.config.n_admits = 1;
    record.config.admits[0].peer = kit_peer(5);
    record.config.admits[0].credential = kit_credential(5, DP_CAP_ALL, 1, 9, credential);
    record.config.n_removes = 1;
    record.config.removes[0] =
        (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_LEFT, .incarnation = 4};
    assert_true(dp_remove_sign(&record.config.removes[0], &crypto, DP_KEY_IDENTITY, &ledger->run));
    record.config.n_fences = 1;
    record.config.fences[0] = (dp_fence){.peer = kit_peer(1), .incarnation = 3};
    record.config.n_voters = 1;
    record.config.voters[0] = (dp_voter_entry){.voter = ledger->voters[0], .kept = true};
    record.config.has_revoked = true;
    record.config.n_revoked = 2;
    record.config.revoked[0] = (dp_invite_revoke){.id = {{1}}, .until_ms = 7, .by = kit_peer(0)};
    record.config.revoked[1] = (dp_invite_revoke){.id = {{2}}, .until_ms = 8, .by = kit_peer(0)};
    dp_valid_fill(ledger, &record);
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    return bytes;
}

static void a_record_comes_back_as_it_was(void **state)
{
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];
    static uint8_t second[DP_RECORD_BYTES_MAX];
    dp_view copy;

    (void)state;
    const dp_view bytes = full_record(&ledger, credential);
    assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
    assert_int_equal(dp_record_encode(&again, second, sizeof second, &copy), DP_OK);
    assert_true(dp_view_equal(bytes, copy));
    assert_int_equal(again.n_listed, 2);
    assert_int_equal(again.listed[1].q, record.listed[1].q);
    assert_true(again.w_total == record.w_total);
    assert_int_equal(again.config.admits[0].credential.size, KIT_CREDENTIAL);
    dp_ledger_close(&ledger);
}

static void a_list_of_revoked_invites_has_one_order_and_stands_in_a_config_part(void **state)
{
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];
    const size_t last = 2 * (size_t)DP_INVITE_REVOKE_BYTES;

    (void)state;
    const dp_view bytes = full_record(&ledger, credential);
    room[bytes.size - last] = 2; /* One invite twice, */
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
    room[bytes.size - last] = 3; /* a later one first, */
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
    room[bytes.size - last] = 1;
    room[bytes.size - last - 1] = DP_CONFIG_REVOKE_MAX + 1;
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
    room[bytes.size - last - 1] = 2;
    assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
    room[2] &= 0xfe; /* and a list without the part that it ends. */
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
    dp_ledger_close(&ledger);
}

static void a_word_about_an_invite_comes_back_as_it_was(void **state)
{
    const dp_crypto crypto = kit_crypto(1);
    const dp_run_id run = kit_run();
    const dp_run_id other = dp_hash_of("test/run", dp_view_text("other"));
    dp_invite_revoke word = {.id = {{9}}, .until_ms = 77, .by = kit_peer(1)};
    dp_invite_revoke read;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    assert_true(dp_invite_revoke_sign(&word, &crypto, DP_KEY_IDENTITY, &run));
    dp_invite_revoke_msg_write(&writer, &word);
    assert_int_equal(dp_invite_revoke_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_memory_equal(&read.id, &word.id, sizeof word.id);
    assert_int_equal(read.until_ms, 77);
    assert_true(dp_invite_revoke_verify(&read, &crypto, &run));
    assert_false(dp_invite_revoke_verify(&read, &crypto, &other));
    for (size_t size = 0; size < writer.size; size++) {
        assert_int_equal(dp_invite_revoke_msg_read(dp_view_of(room, size), &read), DP_BADMSG);
    }
}

static void every_shorter_or_longer_record_is_refused(void **state)
{
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];

    (void)state;
    const dp_view bytes = full_record(&ledger, credential);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, size);
        assert_int_not_equal(dp_record_decode(&again, dp_view_of(exact, size)), DP_OK);
        free(exact);
    }
    room[bytes.size] = 0;
    assert_int_equal(dp_record_decode(&again, dp_view_of(room, bytes.size + 1)), DP_BADMSG);
    dp_ledger_close(&ledger);
}

static void a_damaged_record_has_one_form_or_none(void **state)
{
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];
    static uint8_t second[DP_RECORD_BYTES_MAX];
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 7);
    const dp_view bytes = full_record(&ledger, credential);
    uint8_t *copy = malloc(bytes.size);
    assert_non_null(copy);
    for (int i = 0; i < 5000; i++) {
        dp_view out;
        memcpy(copy, bytes.data, bytes.size);
        for (uint64_t k = 0; k <= dp_rng_below(&rng, 3); k++) {
            copy[dp_rng_below(&rng, bytes.size)] ^= (uint8_t)(1U << dp_rng_below(&rng, 8));
        }
        if (dp_record_decode(&again, dp_view_of(copy, bytes.size)) == DP_OK) {
            assert_int_equal(dp_record_encode(&again, second, sizeof second, &out), DP_OK);
            assert_true(dp_view_equal(out, dp_view_of(copy, bytes.size)));
        }
    }
    free(copy);
    dp_ledger_close(&ledger);
}

static void a_round_says_which_contributions_came_a_round_later(void **state)
{
    enum { FLAGS = 2 };
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];
    static uint8_t second[DP_RECORD_BYTES_MAX];
    dp_view copy;

    (void)state;
    const size_t plain = full_record(&ledger, credential).size;
    record.aged = 1U << 1;
    assert_int_equal(dp_record_encode(&record, second, sizeof second, &copy), DP_OK);
    assert_int_equal(copy.size, plain + 4);
    assert_int_equal(dp_record_decode(&again, copy), DP_OK);
    assert_int_equal(again.aged, 1U << 1);
    assert_int_equal(dp_listed_age(&again, 0), 0);
    assert_int_equal(dp_listed_age(&again, 1), 1);
    second[FLAGS] &= (uint8_t)~4U; /* The mask is no config part. */
    assert_int_equal(dp_record_decode(&again, copy), DP_BADMSG);
    record.aged = 1U << 2; /* Of two. */
    assert_int_equal(dp_record_encode(&record, second, sizeof second, &copy), DP_OK);
    assert_int_equal(dp_record_decode(&again, copy), DP_BADMSG);
    record.aged = 0;
    record.kind = DP_RECORD_CONFIG;
    assert_int_equal(dp_record_encode(&record, second, sizeof second, &copy), DP_OK);
    second[FLAGS] |= 4U;
    assert_int_equal(dp_record_decode(&again, copy), DP_BADMSG);
    dp_ledger_close(&ledger);
}

static void a_round_says_how_its_lines_were_in_one_way(void **state)
{
    enum { FLAGS = 2 };
    dp_ledger ledger;
    uint8_t credential[KIT_CREDENTIAL];
    static uint8_t second[DP_RECORD_BYTES_MAX];
    dp_view copy;

    (void)state;
    const size_t plain = full_record(&ledger, credential).size;
    for (int lines = DP_LINES_FIT; lines <= DP_LINES_FREE; lines++) {
        record.lines = (dp_lines)lines;
        assert_int_equal(dp_record_encode(&record, second, sizeof second, &copy), DP_OK);
        assert_int_equal(copy.size, plain); /* Two flags, no bytes. */
        assert_int_equal(dp_record_decode(&again, copy), DP_OK);
        assert_int_equal(again.lines, lines);
    }
    second[FLAGS] |= 8U | 16U; /* Slow and free. */
    assert_int_equal(dp_record_decode(&again, copy), DP_BADMSG);
    record.kind = DP_RECORD_CONFIG;
    assert_int_equal(dp_record_encode(&record, second, sizeof second, &copy), DP_OK);
    assert_int_equal(dp_record_decode(&again, copy), DP_OK);
    second[FLAGS] |= 8U; /* Of no round. */
    assert_int_equal(dp_record_decode(&again, copy), DP_BADMSG);
    dp_ledger_close(&ledger);
}

static void peers_must_rise(void **state)
{
    dp_ledger ledger;
    dp_view bytes;

    (void)state;
    kit_ledger(&ledger);
    kit_round(&ledger, &record);
    (void)kit_list(&ledger, &record, 3, 10, 1, 1);
    (void)kit_list(&ledger, &record, 3, 10, 1, 1);
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
    dp_ledger_close(&ledger);
}

static void the_largest_record_fits_in_a_proposal(void **state)
{
    dp_view bytes;
    static uint8_t credential[DP_CREDENTIAL_MAX];

    (void)state;
    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_ROUND;
    record.has_config = true;
    record.n_state = DP_VOTERS_MAX;
    record.n_listed = DP_LISTED_DEFAULT;
    record.n_late = DP_LATE_MAX;
    record.config.n_admits = DP_CONFIG_ADMIT_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_ADMIT_MAX; i++) {
        record.config.admits[i].credential = dp_view_of(credential, sizeof credential);
    }
    record.config.n_removes = DP_CONFIG_REMOVE_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_REMOVE_MAX; i++) {
        record.config.removes[i].reason = DP_REMOVE_LEFT;
    }
    record.config.n_fences = DP_CONFIG_FENCE_MAX;
    record.config.n_voters = DP_VOTERS_MAX;
    record.config.has_revoked = true;
    record.config.n_revoked = DP_CONFIG_REVOKE_MAX;
    record.config.has_rotation = true;
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
}

static void the_largest_fork_fits_in_its_room_and_fills_it(void **state)
{
    static uint8_t fork[DP_FORK_BYTES_MAX];
    dp_view bytes;

    (void)state;
    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_FORK;
    record.slot = 9;
    record.has_config = true;
    record.config.n_removes = DP_CONFIG_REMOVE_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_REMOVE_MAX; i++) {
        record.config.removes[i] =
            (dp_remove){.peer = kit_peer(i), .reason = DP_REMOVE_REVOKED, .by = kit_peer(9)};
    }
    record.config.n_voters = DP_VOTERS_MAX;
    record.config.has_revoked = true;
    record.config.n_revoked = DP_CONFIG_REVOKE_MAX;
    assert_int_equal(dp_record_encode(&record, fork, sizeof fork, &bytes), DP_OK);
    assert_int_equal(bytes.size, DP_FORK_BYTES_MAX);
}

static void a_certificate_counts_each_voter_once(void **state)
{
    dp_ledger ledger;
    const dp_hash hash = dp_hash_of("test", dp_view_text("record"));
    dp_cert_of_record cert = {.ballot = 3, .n = 2};
    const dp_crypto crypto = kit_crypto(0);

    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_crypto own = kit_crypto(i);
        dp_vote vote = {
            .type = DP_MSG_ACCEPTED, .slot = 1, .prev = ledger.head, .ballot = 3, .hash = hash};
        assert_true(dp_vote_sign(&vote, &own, &ledger.run));
        cert.seals[i].voter = (uint8_t)i;
        memcpy(cert.seals[i].signature, vote.signature, DP_SIGNATURE_BYTES);
    }
    assert_true(dp_cert_verify(&cert, &crypto, &ledger.run, &ledger.fork, 1, &ledger.head, &hash,
                               ledger.voters, 3));
    cert.seals[1] = cert.seals[0];
    assert_false(dp_cert_verify(&cert, &crypto, &ledger.run, &ledger.fork, 1, &ledger.head, &hash,
                                ledger.voters, 3));
    cert.n = 1;
    assert_false(dp_cert_verify(&cert, &crypto, &ledger.run, &ledger.fork, 1, &ledger.head, &hash,
                                ledger.voters, 3));
    cert.ballot = 4;
    cert.n = 2;
    assert_false(dp_cert_verify(&cert, &crypto, &ledger.run, &ledger.fork, 1, &ledger.head, &hash,
                                ledger.voters, 3));
    dp_ledger_close(&ledger);
}

static void a_vote_names_the_record_that_it_carries(void **state)
{
    dp_vote_msg msg = {.vote = {.type = DP_MSG_PROPOSE, .ballot = 2}};
    dp_vote_msg read;
    const uint8_t bytes[3] = {1, 2, 3};
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    msg.record = dp_view_of(bytes, sizeof bytes);
    msg.vote.hash = dp_record_hash(msg.record);
    msg.n_just = 1;
    msg.just[0].voter = 2;
    dp_vote_msg_write(&writer, &msg);
    assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_int_equal(read.just[0].voter, 2);
    assert_int_equal(read.just[0].ballot, 2);
    room[writer.size - 1] ^= 1;
    assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_BADHASH);
    for (size_t size = 0; size + 1 < writer.size; size++) {
        assert_int_not_equal(dp_vote_msg_read(dp_view_of(room, size), &read), DP_OK);
    }
}

static void only_a_vote_for_a_record_names_one(void **state)
{
    dp_vote_msg msg = {.vote = {.type = DP_MSG_ACCEPTED, .ballot = 2, .hash = {{7}}}};
    dp_vote_msg read;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_vote_msg_write(&writer, &msg);
    assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    room[0] = DP_MSG_PREPARE; /* It has the same form, but names nothing yet. */
    assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
    msg.vote = (dp_vote){.type = DP_MSG_PREPARE, .ballot = 2};
    writer = dp_writer_of(room, sizeof room);
    dp_vote_msg_write(&writer, &msg);
    assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
}

static void records_travel_together(void **state)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    static uint8_t big[DP_RECORD_BYTES_MAX];
    dp_wire_records records;

    (void)state;
    dp_wire_begin_records(&writer, 7);
    assert_true(dp_wire_add_record(&writer, dp_view_of(big, 1000), dp_view_of(big, 70)));
    assert_true(dp_wire_add_record(&writer, dp_view_of(big, sizeof big), dp_view_of(big, 70)));
    assert_true(dp_wire_add_record(&writer, dp_view_of(big, sizeof big), dp_view_of(big, 70)));
    assert_false(dp_wire_add_record(&writer, dp_view_of(big, sizeof big), dp_view_of(big, 70)));
    assert_int_equal(dp_wire_read_records(dp_view_of(room, writer.size), &records), DP_OK);
    assert_int_equal(records.from, 7);
    assert_int_equal(records.n, 3);
    assert_int_equal(records.items[2].record.size, sizeof big);
    assert_int_not_equal(dp_wire_read_records(dp_view_of(room, writer.size - 1), &records), DP_OK);
}

static void the_largest_object_is_told_of(void **state)
{
    static uint8_t large[DP_INFO_BYTES_MAX];
    static dp_hash leaves[DP_CHUNKS_MAX];
    dp_writer writer = dp_writer_of(large, sizeof large);
    dp_wire_info info;

    (void)state;
    assert_int_equal(dp_object_chunks(DP_OBJECT_BYTES_MAX), DP_CHUNKS_MAX);
    const dp_hash root = dp_object_root(DP_OBJECT_BYTES_MAX, leaves);
    dp_wire_write_info(&writer, &root, DP_OBJECT_BYTES_MAX, leaves);
    assert_int_equal(dp_wire_read_info(dp_view_of(large, writer.size), &info, leaves), DP_OK);
    assert_int_equal(info.n_leaves, DP_CHUNKS_MAX);
}

static void information_on_an_object_must_lead_to_its_root(void **state)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_hash leaves[DP_CHUNKS_MAX];
    dp_wire_info info;

    (void)state;
    leaves[0] = dp_chunk_leaf(dp_view_text("hello"));
    const dp_hash root = dp_object_root(5, leaves);
    dp_wire_write_info(&writer, &root, 5, leaves);
    assert_int_equal(dp_wire_read_info(dp_view_of(room, writer.size), &info, leaves), DP_OK);
    assert_int_equal(info.size, 5);
    room[DP_MSG_HEAD_BYTES + DP_HASH_BYTES] ^= 2;
    assert_int_equal(dp_wire_read_info(dp_view_of(room, writer.size), &info, leaves), DP_BADHASH);
    room[DP_MSG_HEAD_BYTES + DP_HASH_BYTES + 7] = 0xff;
    assert_int_not_equal(dp_wire_read_info(dp_view_of(room, writer.size), &info, leaves), DP_OK);
}

static void small_messages_come_back(void **state)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_ready ready = {.peer = kit_peer(1),
                      .round = 4,
                      .bytes = 5,
                      .tokens = 6,
                      .carried = 7,
                      .steps = 8,
                      .loss_micro = 9};
    dp_ready read;
    dp_have_msg have = {.round = 3, .n = DP_HAVE_MAX};
    dp_have_msg have_read;

    (void)state;
    dp_ready_msg_write(&writer, &ready);
    assert_int_equal(dp_ready_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_memory_equal(&read, &ready, sizeof read);
    assert_int_equal(dp_ready_msg_read(dp_view_of(room, writer.size - 1), &read), DP_BADMSG);
    writer = dp_writer_of(room, sizeof room);
    dp_have_msg_write(&writer, &have);
    assert_int_equal(dp_have_msg_read(dp_view_of(room, writer.size), &have_read), DP_OK);
    assert_int_equal(have_read.n, DP_HAVE_MAX);
    room[DP_MSG_HEAD_BYTES + 40] = 200;
    assert_int_not_equal(dp_have_msg_read(dp_view_of(room, writer.size), &have_read), DP_OK);
}

/* A peer with this first byte: more than kit_peer has. */
static dp_peer peer_of(uint32_t first)
{
    dp_peer peer = {{(uint8_t)first, 7}};

    return peer;
}

static void each_list_of_a_record_may_be_as_long_as_the_format_says(void **state)
{
    static uint8_t bytes_of[2 * DP_RECORD_BYTES_MAX];
    static uint8_t credential[DP_CREDENTIAL_MAX];
    dp_ledger ledger;
    uint8_t unused[KIT_CREDENTIAL];
    dp_view bytes;

    (void)state;
    (void)full_record(&ledger, unused);
    dp_config_part *config = &record.config;
    record.n_late = DP_LATE_MAX;
    for (uint32_t i = 0; i < DP_LATE_MAX; i++) {
        record.late[i] = peer_of(i + 1);
    }
    config->n_admits = DP_CONFIG_ADMIT_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_ADMIT_MAX; i++) {
        config->admits[i].peer = peer_of(i + 1);
        config->admits[i].credential = dp_view_of(credential, sizeof credential);
    }
    config->n_removes = DP_CONFIG_REMOVE_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_REMOVE_MAX; i++) {
        config->removes[i] = (dp_remove){.peer = peer_of(i + 1), .reason = DP_REMOVE_ABSENT};
    }
    config->n_fences = DP_CONFIG_FENCE_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_FENCE_MAX; i++) {
        config->fences[i] = (dp_fence){.peer = peer_of(i + 1), .incarnation = i + 1};
    }
    config->n_voters = DP_VOTERS_MAX;
    for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
        config->voters[i] = (dp_voter_entry){.voter = {.peer = peer_of(i + 1)}, .kept = i % 2 == 0};
    }
    config->n_revoked = DP_CONFIG_REVOKE_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_REVOKE_MAX; i++) {
        config->revoked[i] = (dp_invite_revoke){.id = {{(uint8_t)(i + 1)}}, .until_ms = i + 1};
    }
    assert_int_equal(dp_record_encode(&record, bytes_of, DP_RECORD_BYTES_MAX, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
    assert_int_equal(again.n_late, DP_LATE_MAX);
    assert_int_equal(again.config.n_admits, DP_CONFIG_ADMIT_MAX);
    assert_int_equal(again.config.n_removes, DP_CONFIG_REMOVE_MAX);
    assert_int_equal(again.config.n_fences, DP_CONFIG_FENCE_MAX);
    assert_int_equal(again.config.n_voters, DP_VOTERS_MAX);
    assert_int_equal(again.config.n_revoked, DP_CONFIG_REVOKE_MAX);
    const dp_peer last = peer_of(DP_CONFIG_ADMIT_MAX);
    assert_true(dp_peer_equal(&again.config.admits[DP_CONFIG_ADMIT_MAX - 1].peer, &last));
    assert_int_equal(again.config.admits[0].credential.size, DP_CREDENTIAL_MAX);
    assert_int_equal(again.config.fences[DP_CONFIG_FENCE_MAX - 1].incarnation, DP_CONFIG_FENCE_MAX);
    for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
        assert_int_equal(again.config.voters[i].kept, i % 2 == 0);
    }
    dp_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_comes_back_as_it_was),
        cmocka_unit_test(a_list_of_revoked_invites_has_one_order_and_stands_in_a_config_part),
        cmocka_unit_test(a_word_about_an_invite_comes_back_as_it_was),
        cmocka_unit_test(every_shorter_or_longer_record_is_refused),
        cmocka_unit_test(a_damaged_record_has_one_form_or_none),
        cmocka_unit_test(a_round_says_which_contributions_came_a_round_later),
        cmocka_unit_test(a_round_says_how_its_lines_were_in_one_way),
        cmocka_unit_test(peers_must_rise),
        cmocka_unit_test(the_largest_record_fits_in_a_proposal),
        cmocka_unit_test(the_largest_fork_fits_in_its_room_and_fills_it),
        cmocka_unit_test(a_certificate_counts_each_voter_once),
        cmocka_unit_test(a_vote_names_the_record_that_it_carries),
        cmocka_unit_test(only_a_vote_for_a_record_names_one),
        cmocka_unit_test(records_travel_together),
        cmocka_unit_test(the_largest_object_is_told_of),
        cmocka_unit_test(information_on_an_object_must_lead_to_its_root),
        cmocka_unit_test(small_messages_come_back),
        cmocka_unit_test(each_list_of_a_record_may_be_as_long_as_the_format_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
