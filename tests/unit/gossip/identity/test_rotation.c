/* The statement that begins an epoch of the join secret, judged by the chain. The attacker of these
 * tests is a member that tries to exclude others by its own secret; only the root key and admins
 * begin an epoch, and each epoch begins once. */
#include "gossip/core/msg.h"
#include "gossip/requests/rotate.h"
#include "tests/unit/gossip/kit/valid_kit.h"

static int setup(void **state)
{
    (void)state;
    kit_begin(1000);
    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_CONFIG;
    record.run = ledger.run;
    record.fork = ledger.fork;
    record.slot = ledger.slot + 1;
    record.prev = ledger.head;
    record.time_ms = ledger.time_ms + 1;
    record.has_config = true;
    record.config.has_rotation = true;
    return 0;
}

static dp_secret secret_of(uint16_t epoch, uint8_t fill)
{
    dp_secret secret = {.epoch = epoch};

    memset(secret.bytes, fill, sizeof secret.bytes);
    return secret;
}

/* by: a node, or KIT_ROOT. */
static dp_rotation word_of(uint16_t epoch, uint32_t by)
{
    const bool root = by == KIT_ROOT;
    const dp_crypto crypto = kit_crypto(root ? 0 : by);
    const dp_secret secret = secret_of(epoch, 7);
    dp_rotation word = {.next = {.epoch = epoch}, .by = kit_peer(by)};

    word.next.commitment = dp_secret_commitment(&ledger.run, &secret);
    if (root) {
        memcpy(word.by.bytes, ledger.root_key, sizeof word.by.bytes);
    }
    assert_true(
        dp_rotation_sign(&word, &crypto, root ? DP_KEY_ROOT : DP_KEY_IDENTITY, &ledger.run));
    return word;
}

static dp_status judged(dp_rotation word)
{
    record.config.rotation = word;
    return verdict();
}

static void only_the_root_key_and_admins_begin_an_epoch(void **state)
{
    (void)state;
    assert_int_equal(judged(word_of(1, KIT_ROOT)), DP_OK);
    assert_int_equal(judged(word_of(1, 1)), DP_OK);
    ledger.roster[1].caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_ADMIN;
    assert_int_equal(judged(word_of(1, 1)), DP_DENIED);
    assert_int_equal(judged(word_of(1, 9)), DP_DENIED); /* A stranger. */
    ledger.roster[2].gone = DP_REMOVE_LEFT;
    assert_int_equal(judged(word_of(1, 2)), DP_DENIED);
}

static void a_word_is_whole_as_it_was_signed(void **state)
{
    dp_rotation word = word_of(1, 1);

    (void)state;
    word.next.epoch = 2;
    assert_int_equal(judged(word), DP_BADSIG);
    word = word_of(1, 1);
    word.next.commitment.bytes[0] ^= 1;
    assert_int_equal(judged(word), DP_BADSIG);
    word = word_of(1, 1);
    memcpy(word.by.bytes, ledger.root_key, sizeof word.by.bytes);
    assert_int_equal(judged(word), DP_BADSIG);
}

static void an_epoch_comes_once_and_is_not_far_ahead(void **state)
{
    const dp_hash hash = dp_hash_of("test/record", dp_view_text("rotation"));
    const dp_hash before = dp_ledger_digest(&ledger);

    (void)state;
    assert_int_equal(judged(word_of(0, 1)), DP_DENIED);
    assert_int_equal(judged(word_of(DP_ROTATION_STEP_MAX, 1)), DP_OK);
    assert_int_equal(judged(word_of(DP_ROTATION_STEP_MAX + 1, 1)), DP_DENIED);
    assert_int_equal(judged(word_of(1, 1)), DP_OK);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.epoch.epoch, 1);
    const dp_hash after = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&before, &after));
    record.slot = ledger.slot + 1;
    record.prev = ledger.head;
    assert_int_equal(judged(word_of(1, 1)), DP_DENIED); /* The same statement again. */
    assert_int_equal(judged(word_of(2, 1)), DP_OK);
    ledger.epoch.commitment.bytes[0] ^= 1;
    const dp_hash other = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&other, &after));
}

static void a_record_has_a_rotation_only_with_a_config_part_and_a_fork_has_none(void **state)
{
    static uint8_t room[DP_RECORD_BYTES_MAX];
    static dp_record read;
    dp_view bytes;

    (void)state;
    record.config.rotation = word_of(3, 1);
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&read, bytes), DP_OK);
    assert_true(read.config.has_rotation);
    assert_memory_equal(&read.config.rotation, &record.config.rotation,
                        sizeof read.config.rotation);
    assert_int_equal(dp_record_decode(&read, dp_view_of(room, bytes.size - 1)), DP_BADMSG);
    room[2] = 128; /* Without bit 0. */
    assert_int_equal(dp_record_decode(&read, bytes), DP_BADMSG);
    room[2] = 129;
    room[1] = DP_RECORD_FORK;
    assert_int_equal(dp_record_decode(&read, bytes), DP_BADMSG);
}

static void the_two_newest_secrets_are_held(void **state)
{
    dp_secrets held = {.n = 0};
    const dp_secret rows[] = {secret_of(2, 2), secret_of(1, 1), secret_of(3, 3), secret_of(0, 9)};

    (void)state;
    assert_true(dp_secrets_add(&held, &rows[0]));
    assert_true(dp_secrets_add(&held, &rows[1])); /* Older, and there is room. */
    assert_int_equal(held.items[0].epoch, 2);
    assert_false(dp_secrets_add(&held, &rows[0])); /* It is there. */
    assert_true(dp_secrets_add(&held, &rows[2]));
    assert_false(dp_secrets_add(&held, &rows[3])); /* Too old. */
    assert_int_equal(held.n, 2);
    assert_int_equal(held.items[0].epoch, 3);
    assert_int_equal(held.items[1].epoch, 2);
    const dp_secret other = secret_of(2, 5); /* Of the chain that goes on, after two were begun. */
    assert_true(dp_secrets_add(&held, &other));
    assert_int_equal(held.n, 2);
    assert_int_equal(held.items[1].bytes[0], 5);
}

static void messages_come_back_as_they_were(void **state)
{
    uint8_t room[DP_MSG_HEAD_BYTES + DP_ROTATION_BYTES + DP_JOIN_SECRET_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_rotation word = word_of(4, 1);
    const dp_secret secret = secret_of(4, 7);
    dp_rotation read;
    dp_secret got;

    (void)state;
    dp_rotation_msg_write(&writer, &word, &secret);
    assert_int_equal(writer.size, sizeof room);
    assert_int_equal(dp_rotation_msg_read(dp_view_of(room, sizeof room), &read, &got), DP_OK);
    assert_memory_equal(&read, &word, sizeof read);
    assert_memory_equal(&got, &secret, sizeof got);
    for (size_t size = 0; size < sizeof room; size++) {
        assert_int_equal(dp_rotation_msg_read(dp_view_of(room, size), &read, &got), DP_BADMSG);
    }
    writer = dp_writer_of(room, sizeof room);
    dp_secret_msg_write(&writer, &secret);
    const size_t whole = writer.size;
    assert_int_equal(dp_secret_msg_read(dp_view_of(room, whole), &got), DP_OK);
    assert_memory_equal(&got, &secret, sizeof got);
    for (size_t size = 0; size < whole; size++) {
        assert_int_equal(dp_secret_msg_read(dp_view_of(room, size), &got), DP_BADMSG);
    }
}

static void no_byte_of_a_word_can_be_another_and_all_of_it_comes_back(void **state)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_rotation word = word_of(0x0102, 1);
    uint8_t bytes[DP_ROTATION_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    dp_rotation_write(&writer, &word);
    assert_int_equal(writer.size, sizeof bytes);
    for (size_t at = 0; at <= sizeof bytes; at++) {
        dp_rotation read;
        bytes[at % sizeof bytes] ^= at < sizeof bytes;
        dp_reader reader = dp_reader_of(dp_view_of(bytes, sizeof bytes));
        dp_rotation_read(&reader, &read);
        assert_int_equal(dp_rotation_verify(&read, &crypto, &ledger.run), at == sizeof bytes);
        bytes[at % sizeof bytes] ^= at < sizeof bytes;
    }
    dp_reader reader = dp_reader_of(dp_view_of(bytes, sizeof bytes));
    dp_rotation read;
    dp_rotation_read(&reader, &read);
    assert_int_equal(read.next.epoch, 0x0102);
    assert_true(dp_hash_equal(&read.next.commitment, &word.next.commitment));
    assert_true(dp_peer_equal(&read.by, &word.by));
    const dp_run_id other = {{9}};
    assert_false(dp_rotation_verify(&read, &crypto, &other));
    const dp_secret secret = secret_of(3, 7);
    dp_secret changed = secret;
    const dp_hash named = dp_secret_commitment(&ledger.run, &secret);
    for (uint32_t i = 0; i < 3; i++) { /* Of its run, its epoch and its bytes. */
        changed = secret;
        changed.epoch ^= i == 0;
        changed.bytes[5] ^= i == 1;
        const dp_hash hash = dp_secret_commitment(i == 2 ? &other : &ledger.run, &changed);
        assert_false(dp_hash_equal(&hash, &named));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_the_root_key_and_admins_begin_an_epoch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_word_is_whole_as_it_was_signed, setup, teardown),
        cmocka_unit_test_setup_teardown(an_epoch_comes_once_and_is_not_far_ahead, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_record_has_a_rotation_only_with_a_config_part_and_a_fork_has_none, setup, teardown),
        cmocka_unit_test_setup_teardown(the_two_newest_secrets_are_held, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_come_back_as_they_were, setup, teardown),
        cmocka_unit_test(no_byte_of_a_word_can_be_another_and_all_of_it_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
