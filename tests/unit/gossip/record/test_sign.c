/* The signature covers all fields of a statement: a member that forwards it cannot change any of
 * them. */
#include <stddef.h>

#include "gossip/record/record.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/unit/gossip/kit/mesh.h"

typedef struct field {
    const char *name;
    size_t offset;
    size_t size;
} field;

#define FIELD(type, name)                                                                          \
    {                                                                                              \
#name, offsetof(type, name), sizeof(((type *)0)->name)                                     \
    }

static const dp_run_id run = {.bytes = {1, 2}};
static const dp_hash fork_id = {.bytes = {3, 4}};

/* holds(word) is true before, and false while any byte of a field is changed. */
static void every_byte_counts(uint8_t *word, const field *fields, size_t n,
                              bool (*holds)(const void *word))
{
    assert_true(holds(word));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < fields[i].size; k++) {
            word[fields[i].offset + k] ^= 0x10;
            if (holds(word)) {
                fail_msg("%s may be changed", fields[i].name);
            }
            word[fields[i].offset + k] ^= 0x10;
        }
    }
    assert_true(holds(word));
}

static bool ready_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    return dp_ready_verify(word, &crypto, &run, &fork_id);
}

static dp_ready sample_ready(bool parted)
{
    const dp_crypto crypto = mesh_crypto(3);
    dp_ready ready = {.peer = mesh_peer(3), .round = 7, .bytes = 9, .parted = parted};

    assert_true(dp_ready_sign(&ready, &crypto, &run, &fork_id));
    return ready;
}

static void nothing_of_a_ready_may_be_changed(void **state)
{
    static const field fields[] = {
        FIELD(dp_ready, peer),      FIELD(dp_ready, round),        FIELD(dp_ready, base),
        FIELD(dp_ready, root),      FIELD(dp_ready, bytes),        FIELD(dp_ready, tokens),
        FIELD(dp_ready, carried),   FIELD(dp_ready, reach.leased), FIELD(dp_ready, reach.own),
        FIELD(dp_ready, steps),     FIELD(dp_ready, loss_micro),   FIELD(dp_ready, state_root),
        FIELD(dp_ready, signature), FIELD(dp_ready, energy),       FIELD(dp_ready, rate),
    };
    const dp_crypto crypto = mesh_crypto(0);
    dp_ready whole = sample_ready(false);
    dp_ready parted = sample_ready(true);

    (void)state;
    every_byte_counts((uint8_t *)&whole, fields, sizeof fields / sizeof fields[0] - 2, ready_holds);
    every_byte_counts((uint8_t *)&parted, fields, sizeof fields / sizeof fields[0], ready_holds);
    assert_false(dp_ready_verify(&whole, &crypto, &fork_id, &fork_id)); /* Of another run, */
    assert_false(dp_ready_verify(&whole, &crypto, &run, &run));         /* of another fork, */
    parted.parted = false; /* or as one of the other kind. */
    assert_false(ready_holds(&parted));
}

static bool vote_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    const dp_peer key = mesh_peer(2);
    return dp_vote_verify(word, &crypto, &run, key.bytes);
}

static void nothing_of_a_vote_may_be_changed(void **state)
{
    static const field fields[] = {
        FIELD(dp_vote, type), FIELD(dp_vote, fork),      FIELD(dp_vote, slot),
        FIELD(dp_vote, prev), FIELD(dp_vote, ballot),    FIELD(dp_vote, accepted),
        FIELD(dp_vote, hash), FIELD(dp_vote, signature),
    };
    const dp_crypto crypto = mesh_crypto(2);
    dp_vote vote = {.type = DP_MSG_PROMISE, .slot = 5, .ballot = 2, .accepted = 1};

    (void)state;
    assert_true(dp_vote_sign(&vote, &crypto, &run));
    every_byte_counts((uint8_t *)&vote, fields, sizeof fields / sizeof fields[0], vote_holds);
    assert_false(dp_vote_verify(&vote, &crypto, &fork_id, mesh_peer(2).bytes));
}

static bool left_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    return dp_remove_verify(word, &crypto, &run);
}

static void nothing_of_a_removal_may_be_changed(void **state)
{
    static const field left[] = {FIELD(dp_remove, peer), FIELD(dp_remove, incarnation),
                                 FIELD(dp_remove, signature)};
    static const field revoked[] = {FIELD(dp_remove, peer), FIELD(dp_remove, incarnation),
                                    FIELD(dp_remove, by), FIELD(dp_remove, signature)};
    const dp_crypto own = mesh_crypto(4);
    const dp_crypto admin = mesh_crypto(5);
    dp_remove leave = {.peer = mesh_peer(4), .reason = DP_REMOVE_LEFT, .incarnation = 6};
    dp_remove revoke = {
        .peer = mesh_peer(4), .reason = DP_REMOVE_REVOKED, .incarnation = 6, .by = mesh_peer(5)};

    (void)state;
    assert_true(dp_remove_sign(&leave, &own, DP_KEY_IDENTITY, &run));
    assert_true(dp_remove_sign(&revoke, &admin, DP_KEY_IDENTITY, &run));
    every_byte_counts((uint8_t *)&leave, left, 3, left_holds);
    every_byte_counts((uint8_t *)&revoke, revoked, 4, left_holds);
    leave.reason = DP_REMOVE_REVOKED;
    leave.by = leave.peer;
    assert_false(left_holds(&leave));
}

static bool life_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    return dp_life_verify(word, &crypto, &run);
}

static void nothing_of_a_life_may_be_changed(void **state)
{
    static const field fields[] = {
        FIELD(dp_fence_ask, fence.peer), FIELD(dp_fence_ask, fence.incarnation),
        FIELD(dp_fence_ask, asker), FIELD(dp_fence_ask, exchange), FIELD(dp_fence_ask, signature)};
    const dp_crypto crypto = mesh_crypto(6);
    dp_fence_ask ask = {.fence = {.peer = mesh_peer(6), .incarnation = 2}, .asker = mesh_peer(1)};

    (void)state;
    assert_true(dp_life_sign(&ask, &crypto, &run));
    every_byte_counts((uint8_t *)&ask, fields, sizeof fields / sizeof fields[0], life_holds);
}

typedef struct state_word {
    dp_run_id run;
    dp_hash fork;
    uint64_t round;
    dp_hash root;
    dp_peer voter;
    uint8_t signature[DP_SIGNATURE_BYTES];
} state_word;

static bool state_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    const state_word *told = word;
    return dp_state_verify(&crypto, told->voter.bytes, &told->run, &told->fork, told->round,
                           &told->root, told->signature);
}

static bool offer_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    const state_word *told = word;
    return dp_voter_ok_verify(&crypto, &told->voter, &told->run, &told->fork, told->root.bytes,
                              told->signature);
}

static void nothing_of_a_state_or_an_offer_to_vote_may_be_changed(void **state)
{
    static const field fields[] = {FIELD(state_word, run),       FIELD(state_word, fork),
                                   FIELD(state_word, root),      FIELD(state_word, voter),
                                   FIELD(state_word, signature), FIELD(state_word, round)};
    const dp_crypto crypto = mesh_crypto(2);
    state_word told = {.run = run, .fork = fork_id, .round = 8, .voter = mesh_peer(2)};

    (void)state;
    assert_true(
        dp_state_sign(&crypto, &told.run, &told.fork, told.round, &told.root, told.signature));
    every_byte_counts((uint8_t *)&told, fields, 6, state_holds);
    assert_true(dp_voter_ok_sign(&crypto, &told.run, &told.fork, told.root.bytes, told.signature));
    every_byte_counts((uint8_t *)&told, fields, 5, offer_holds);
}

static bool have_holds(const void *word)
{
    const dp_crypto crypto = mesh_crypto(0);
    return dp_have_verify(word, &crypto, &run);
}

static void nothing_of_what_a_voter_holds_may_be_changed(void **state)
{
    static const field fields[] = {FIELD(dp_have_msg, voter), FIELD(dp_have_msg, round),
                                   FIELD(dp_have_msg, roots[0]), FIELD(dp_have_msg, roots[1]),
                                   FIELD(dp_have_msg, signature)};
    const dp_crypto crypto = mesh_crypto(2);
    dp_have_msg have = {.voter = mesh_peer(2), .round = 3, .n = 2};

    (void)state;
    assert_true(dp_have_sign(&have, &crypto, &run));
    every_byte_counts((uint8_t *)&have, fields, sizeof fields / sizeof fields[0], have_holds);
    have.n = 1;
    assert_false(have_holds(&have));
}

static uint8_t room[4096];

static dp_view ready_bytes(const dp_ready *ready)
{
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_ready_msg_write(&writer, ready);
    assert_false(writer.full);
    return dp_view_of(room, writer.size);
}

static void every_field_of_a_ready_comes_back(void **state)
{
    dp_ready ready = sample_ready(false);
    dp_ready read;

    (void)state;
    ready.base = (dp_hash){{1, 2}};
    ready.root = (dp_hash){{3, 4}};
    ready.tokens = 0x1112131415161718;
    ready.carried = 0x0122232425262728;
    ready.reach = (dp_reach){.leased = 0x0132333435363738, .own = 0x0142434445464748};
    ready.steps = 0x51525354;
    ready.loss_micro = 0x01626364;
    ready.state_root = (dp_hash){{5, 6}};
    for (uint32_t parted = 0; parted < 2; parted++) {
        if (parted == 1) {
            ready.parted = true;
            ready.energy = ((unsigned __int128)0x0102030405060708 << 32) + 9;
            ready.rate = 0x01727374;
            ready.parts = (dp_part_list){.n = 2, .refs = {{{{7}}, 70}, {{{8}}, 80}}};
            ready.root = dp_part_list_root(&ready.parts);
            ready.bytes = dp_part_list_bytes(&ready.parts);
        }
        memset(&read, 0, sizeof read);
        assert_int_equal(dp_ready_msg_read(ready_bytes(&ready), &read), DP_OK);
        assert_true(dp_peer_equal(&read.peer, &ready.peer) && read.round == ready.round);
        assert_true(dp_hash_equal(&read.base, &ready.base) && read.bytes == ready.bytes);
        assert_true(dp_hash_equal(&read.root, &ready.root) && read.tokens == ready.tokens);
        assert_true(read.carried == ready.carried && read.steps == ready.steps);
        assert_true(read.reach.leased == ready.reach.leased && read.reach.own == ready.reach.own);
        assert_true(read.loss_micro == ready.loss_micro && read.parted == ready.parted);
        assert_true(dp_hash_equal(&read.state_root, &ready.state_root));
        assert_true(read.energy == ready.energy && read.rate == ready.rate);
        assert_memory_equal(read.signature, ready.signature, sizeof read.signature);
        assert_int_equal(read.parts.n, ready.parts.n);
        for (uint32_t p = 0; p < read.parts.n; p++) {
            assert_true(dp_hash_equal(&read.parts.refs[p].root, &ready.parts.refs[p].root));
            assert_true(read.parts.refs[p].bytes == ready.parts.refs[p].bytes);
        }
    }
}

static void every_field_of_a_voters_words_comes_back(void **state)
{
    dp_state_msg told = {.voter = mesh_peer(1), .round = 0x0102030405060708, .root = {{3, 4}}};
    dp_voter_ok_msg offer = {.peer = mesh_peer(2), .key = {5, 6}, .head = {{7, 8}}};
    static dp_have_msg have;
    static dp_have_msg held;
    dp_state_msg told_back;
    dp_voter_ok_msg offered;

    (void)state;
    memset(told.signature, 9, sizeof told.signature);
    memset(offer.signature, 10, sizeof offer.signature);
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_state_msg_write(&writer, &told);
    assert_int_equal(dp_state_msg_read(dp_view_of(room, writer.size), &told_back), DP_OK);
    assert_memory_equal(&told_back, &told, sizeof told);
    writer = dp_writer_of(room, sizeof room);
    dp_voter_ok_msg_write(&writer, &offer);
    assert_int_equal(dp_voter_ok_msg_read(dp_view_of(room, writer.size), &offered), DP_OK);
    assert_memory_equal(&offered, &offer, sizeof offer);
    have = (dp_have_msg){.voter = mesh_peer(3), .round = 0x0102030405060708};
    memset(have.signature, 11, sizeof have.signature);
    for (uint32_t n = 1; n <= DP_HAVE_MAX; n += DP_HAVE_MAX - 1) {
        static uint8_t large[DP_ROUND_MESSAGE_MAX];
        for (uint32_t i = 0; i < n; i++) {
            have.roots[i] = (dp_hash){{(uint8_t)i, 12}};
        }
        have.n = n;
        memset(&held, 0, sizeof held);
        writer = dp_writer_of(large, sizeof large);
        dp_have_msg_write(&writer, &have);
        assert_false(writer.full);
        assert_int_equal(dp_have_msg_read(dp_view_of(large, writer.size), &held), DP_OK);
        assert_memory_equal(&held, &have, sizeof held);
        large[2 + 32 + 8]++; /* One more than there is room for, or than there are. */
        assert_int_not_equal(dp_have_msg_read(dp_view_of(large, writer.size), &held), DP_OK);
    }
}

static void every_field_of_a_vote_comes_back(void **state)
{
    static dp_vote_msg msg;
    static dp_vote_msg read;
    const dp_view record = dp_view_text("a record");

    (void)state;
    for (uint32_t type = DP_MSG_PREPARE; type <= DP_MSG_NACK; type++) {
        const bool with_record = type == DP_MSG_PROMISE || type == DP_MSG_PROPOSE;
        const bool is_nack = type == DP_MSG_NACK;
        const bool with_hash = with_record || type == DP_MSG_ACCEPTED;
        msg = (dp_vote_msg){.vote = {.type = (uint8_t)type,
                                     .voter = 3,
                                     .fork = {{1, 2}},
                                     .slot = 0x0102030405060708,
                                     .prev = {{3, 4}},
                                     .ballot = 0x01121314}};
        msg.vote.accepted = type == DP_MSG_PROMISE ? 0x01020304 : 0;
        msg.vote.hash = with_hash ? dp_record_hash(record) : (dp_hash){{0}};
        memset(msg.vote.signature, is_nack ? 0 : 5, sizeof msg.vote.signature);
        msg.record = with_record ? record : (dp_view){0};
        if (type == DP_MSG_PROPOSE) {
            msg.n_just = DP_VOTERS_MAX;
            for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
                msg.just[i] = msg.vote;
                msg.just[i].type = DP_MSG_PROMISE;
                msg.just[i].voter = (uint8_t)(i + 1);
                msg.just[i].accepted = i + 1;
                msg.just[i].hash = (dp_hash){{(uint8_t)i, 7}};
                memset(msg.just[i].signature, (int)i + 8, sizeof msg.just[i].signature);
            }
        }
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_vote_msg_write(&writer, &msg);
        assert_false(writer.full);
        memset(&read, 0, sizeof read);
        assert_int_equal(dp_vote_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
        assert_true(read.vote.type == type && read.vote.voter == 3);
        assert_true(dp_hash_equal(&read.vote.fork, &msg.vote.fork));
        assert_true(dp_hash_equal(&read.vote.prev, &msg.vote.prev));
        assert_true(dp_hash_equal(&read.vote.hash, &msg.vote.hash));
        assert_true(read.vote.slot == msg.vote.slot && read.vote.ballot == msg.vote.ballot);
        assert_true(read.vote.accepted == msg.vote.accepted && read.n_just == msg.n_just);
        assert_memory_equal(read.vote.signature, msg.vote.signature, DP_SIGNATURE_BYTES);
        assert_true(dp_view_equal(read.record, msg.record));
        for (uint32_t i = 0; i < read.n_just; i++) {
            assert_memory_equal(&read.just[i], &msg.just[i], sizeof read.just[i]);
        }
    }
}

static void the_end_of_a_fork_is_signed_for_its_run_its_loser_and_its_survivor(void **state)
{
    const dp_crypto crypto = mesh_crypto(2);
    const dp_peer root = mesh_peer(2);
    const dp_hash loser = {{1}};
    const dp_hash survivor = {{2}};
    uint8_t signature[DP_SIGNATURE_BYTES];

    (void)state;
    assert_true(dp_stop_sign(&crypto, &run, &loser, &survivor, signature));
    assert_true(dp_stop_verify(&crypto, &run, root.bytes, &loser, &survivor, signature));
    assert_false(dp_stop_verify(&crypto, &fork_id, root.bytes, &loser, &survivor, signature));
    assert_false(dp_stop_verify(&crypto, &run, root.bytes, &survivor, &survivor, signature));
    assert_false(dp_stop_verify(&crypto, &run, root.bytes, &loser, &loser, signature));
    assert_false(dp_stop_verify(&crypto, &run, mesh_peer(1).bytes, &loser, &survivor, signature));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_a_ready_may_be_changed),
        cmocka_unit_test(nothing_of_a_vote_may_be_changed),
        cmocka_unit_test(nothing_of_a_removal_may_be_changed),
        cmocka_unit_test(nothing_of_a_life_may_be_changed),
        cmocka_unit_test(nothing_of_a_state_or_an_offer_to_vote_may_be_changed),
        cmocka_unit_test(nothing_of_what_a_voter_holds_may_be_changed),
        cmocka_unit_test(every_field_of_a_ready_comes_back),
        cmocka_unit_test(every_field_of_a_voters_words_comes_back),
        cmocka_unit_test(every_field_of_a_vote_comes_back),
        cmocka_unit_test(the_end_of_a_fork_is_signed_for_its_run_its_loser_and_its_survivor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
