/* Messages of peers in a round of parts: those of owners, and contributions. */
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/part_kit.h"

static dp_part_word word_by(kit_world *world, uint32_t owner, uint32_t part, uint32_t seed)
{
    const dp_crypto crypto = kit_crypto(owner);
    const dp_node_view view = kit_look(world, 0);
    const dp_hash run = kit_run();
    const dp_hash fork = {{0}};
    dp_part_word word = {.owner = kit_peer(owner),
                         .round = view.round + 1,
                         .base = world->head_of_slot[view.slot],
                         .part = part,
                         .bytes = 8,
                         .n = 1,
                         .sources = {{.peer = kit_peer(owner)}}};

    memset(word.root.bytes, (int)seed, sizeof word.root.bytes);
    assert_true(dp_part_sign(&word, &crypto, &run, &fork));
    return word;
}

static const dp_actions *tell(kit_world *world, uint32_t from, const dp_part_word *word)
{
    static uint8_t room[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_part_msg_write(&writer, word);
    return kit_tell(world, from, 0, dp_view_of(room, writer.size));
}

static void only_a_member_s_signed_word_of_this_round_is_followed(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    kit_run_rounds(world, 1);
    dp_part_word word = word_by(world, 1, 1, 200);
    assert_true(kit_asks(tell(world, 1, &word), &word.root));
    assert_false(kit_asks(tell(world, 1, &word), &word.root)); /* It is known. */
    word = word_by(world, 1, 1, 201);
    word.signature[0] ^= 1;
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    word = word_by(world, 1, 7, 202); /* There is no such part. */
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    word = word_by(world, 5, 1, 203); /* No member. */
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    word = word_by(world, 1, 1, 204);
    word.round++;
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    word = word_by(world, 0, 1, 205); /* Its own, which it has never said. */
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    kit_close(world);
}

static void of_one_owner_two_words_are_followed_and_no_more(void **state)
{
    kit_world *world = kit_parted(3);
    uint32_t followed = 0;

    (void)state;
    kit_run_rounds(world, 1);
    for (uint32_t i = 0; i < 5; i++) {
        const dp_part_word word = word_by(world, 2, 0, 210 + i);
        followed += kit_asks(tell(world, 2, &word), &word.root) ? 1 : 0;
    }
    assert_in_range(followed, 1, 2);
    dp_part_word forged = word_by(world, 2, 0, 220);
    forged.signature[0] ^= 1;
    const uint64_t rejected = kit_look(world, 0).rejected;
    DP_IGNORE(tell(world, 2, &forged) == NULL);
    assert_int_equal(kit_look(world, 0).rejected, rejected); /* Nor is it looked at. */
    kit_close(world);
}

static void sign_anew(dp_part_word *word, uint32_t owner)
{
    const dp_crypto crypto = kit_crypto(owner);
    const dp_hash run = kit_run();
    const dp_hash fork = {{0}};

    assert_true(dp_part_sign(word, &crypto, &run, &fork));
}

/* It says more than the others, so that it would be preferred. */
static void a_word_that_counts_what_nobody_told_empties_no_part(void **state)
{
    kit_world *world = kit_parted(3);
    dp_hash leaf;

    (void)state;
    kit_run_rounds(world, 1);
    for (uint32_t round = 0; round < 6; round++) { /* Each of them proposes some. */
        dp_part_word word = word_by(world, 2, 1, 0);
        word.root = kit_blob(2, world->nodes[2].published, &leaf);
        word.n = 4;
        for (uint32_t i = 0; i < word.n; i++) {
            word.sources[i].peer = kit_peer(i);
            memset(word.sources[i].root.bytes, 0xaa, DP_HASH_BYTES);
        }
        sign_anew(&word, 2);
        (void)tell(world, 2, &word);
        kit_drain(world);
        assert_true(dp_node_holds(world->nodes[0].node, &word.root));
        kit_run_rounds(world, 1);
        const dp_record *record = kit_newest(world);
        assert_int_equal(record->n_listed, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(kit_parts_of(record, i), 1);
        }
    }
    kit_close(world);
}

/* Nothing is fetched for a liar, and its holders are not blamed for a size that another node has
 * invented. */
static void an_object_told_with_another_size_is_fetched_for_who_tells_the_right_one(void **state)
{
    kit_world *world = kit_parted(3);
    uint64_t number = world->nodes[1].published;
    dp_hash leaf;

    (void)state;
    kit_run_rounds(world, 1);
    dp_part_word word = word_by(world, 1, 1, 0);
    do {
        word.root = kit_blob(1, number--, &leaf);
    } while (kit_holds(&world->nodes[0], &word.root));
    const uint64_t right = word.bytes;
    word.bytes = 9;
    sign_anew(&word, 1);
    assert_true(kit_asks(tell(world, 1, &word), &word.root));
    kit_drain(world);
    assert_false(dp_node_holds(world->nodes[0].node, &word.root));
    word.bytes = right;
    sign_anew(&word, 1);
    assert_true(kit_asks(tell(world, 1, &word), &word.root));
    kit_drain(world);
    assert_true(dp_node_holds(world->nodes[0].node, &word.root));
    kit_run_rounds(world, 1);
    kit_close(world);
}

/* The first lie is known when the second is judged, and does not support it. */
static void a_second_lie_about_an_object_gets_it_fetched_no_more_than_the_first(void **state)
{
    kit_world *world = kit_parted(3);
    uint64_t number = world->nodes[1].published;
    dp_hash leaf;

    (void)state;
    kit_run_rounds(world, 1);
    dp_part_word word = word_by(world, 1, 1, 0);
    do {
        word.root = kit_blob(1, number--, &leaf);
    } while (kit_holds(&world->nodes[0], &word.root));
    for (uint32_t lie = 0; lie < 2; lie++) {
        word.bytes = 9 + lie;
        sign_anew(&word, 1);
        assert_true(kit_asks(tell(world, 1, &word), &word.root));
        kit_drain(world);
        assert_false(dp_node_holds(world->nodes[0].node, &word.root));
    }
    kit_close(world);
}

/* A voter that listed it could have no record decided. */
static void a_publication_of_more_energy_than_a_record_may_state_is_not_followed(void **state)
{
    dp_ready ready = {.tokens = 100, .steps = 1, .bytes = 8, .energy = DP_ENERGY_MAX};

    (void)state;
    assert_true(dp_valid_numbers(&ready));
    ready.energy++;
    assert_false(dp_valid_numbers(&ready));
}

static void in_a_run_of_whole_updates_a_word_of_a_part_is_refused(void **state)
{
    kit_world *world = kit_open(2);
    uint8_t bytes[4] = {DP_MSG_PART, DP_MSG_VERSION, 0, 0};

    (void)state;
    kit_link_all(world);
    kit_run_ms(world, 2000);
    const dp_part_word word = word_by(world, 1, 0, 220);
    assert_false(kit_asks(tell(world, 1, &word), &word.root));
    (void)kit_tell(world, 1, 0, dp_view_of(bytes, sizeof bytes)); /* None at all. */
    kit_run_ms(world, 1000);
    kit_close(world);
}

/* The same contribution with fewer or more parts than the run has, and signed: only its author
 * could have made it. */
static const dp_actions *tell_parts(kit_world *world, dp_ready ready, uint32_t author, uint32_t n)
{
    static uint8_t room[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_crypto crypto = kit_crypto(author);
    const dp_hash run = kit_run();
    const dp_hash fork = {{0}};

    for (uint32_t p = ready.parts.n; p < n; p++) {
        ready.parts.refs[p] = ready.parts.refs[0];
    }
    ready.parts.n = n;
    ready.root = dp_part_list_root(&ready.parts);
    ready.bytes = dp_part_list_bytes(&ready.parts);
    assert_true(dp_ready_sign(&ready, &crypto, &run, &fork));
    dp_ready_msg_write(&writer, &ready);
    return kit_tell(world, author, 0, dp_view_of(room, writer.size));
}

static void a_contribution_of_more_or_fewer_parts_than_the_run_has_is_refused(void **state)
{
    kit_world *world = kit_parted(3);
    const dp_peer author = kit_peer(2);
    const dp_node *node = world->nodes[0].node;

    (void)state;
    kit_run_rounds(world, 1);
    world->nodes[0].adds_late = true; /* So the round stays open. */
    for (uint32_t i = 0; i < 1000 && dp_round_claim_of(node, &author) == NULL; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_claim *claim = dp_round_claim_of(node, &author);
    assert_non_null(claim);
    const dp_ready ready = claim->ready;
    assert_int_equal(ready.parts.n, 3);
    kit_forget_claim(world, 0, 2);
    for (uint32_t n = 1; n <= 5; n++) {
        if (n != 3) {
            (void)tell_parts(world, ready, 2, n);
            assert_null(dp_round_claim_of(node, &author));
        }
    }
    (void)tell_parts(world, ready, 2, 3);
    assert_non_null(dp_round_claim_of(node, &author));
    kit_run_rounds(world, 1);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_member_s_signed_word_of_this_round_is_followed),
        cmocka_unit_test(of_one_owner_two_words_are_followed_and_no_more),
        cmocka_unit_test(a_word_that_counts_what_nobody_told_empties_no_part),
        cmocka_unit_test(an_object_told_with_another_size_is_fetched_for_who_tells_the_right_one),
        cmocka_unit_test(a_second_lie_about_an_object_gets_it_fetched_no_more_than_the_first),
        cmocka_unit_test(a_publication_of_more_energy_than_a_record_may_state_is_not_followed),
        cmocka_unit_test(in_a_run_of_whole_updates_a_word_of_a_part_is_refused),
        cmocka_unit_test(a_contribution_of_more_or_fewer_parts_than_the_run_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
