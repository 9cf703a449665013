/* Everything that a signed word says is under its signature: a member that passes the word on can
 * change nothing in it. */
#include <stddef.h>

#include "gossip/record/record.h"
#include "gossip/round/round_msg.h"
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

/* Holds(word) is true before and false while any byte of a field is another. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_a_ready_may_be_changed),
        cmocka_unit_test(nothing_of_a_vote_may_be_changed),
        cmocka_unit_test(nothing_of_a_removal_may_be_changed),
        cmocka_unit_test(nothing_of_a_life_may_be_changed),
        cmocka_unit_test(nothing_of_a_state_or_an_offer_to_vote_may_be_changed),
        cmocka_unit_test(nothing_of_what_a_voter_holds_may_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
