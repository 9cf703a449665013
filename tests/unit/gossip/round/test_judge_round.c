/* Nodes that judge each other's updates: three voters, and a fourth that trains. */
#include "gossip/context/context.h"
#include "gossip/ledger/harm.h"
#include "gossip/round/judge.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VOTERS = 3, LIAR = 3, NODES = 4 };

static bool lists(const kit_world *world, uint32_t who)
{
    const dp_peer peer = kit_peer(who);
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const uint32_t index = dp_ledger_find(ledger, &peer);

    return index != DP_NOBODY && ledger->roster[index].included == ledger->round;
}

static uint64_t round_of(const kit_world *world)
{
    return world->nodes[0].node->ledger.round;
}

static void run_rounds(kit_world *world, uint64_t count)
{
    const uint64_t until = round_of(world) + count;

    for (uint32_t i = 0; i < 6000 && round_of(world) < until; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(round_of(world) >= until);
}

static void find_harmful(kit_world *world, uint32_t voters, uint32_t who)
{
    for (uint32_t i = 0; i < VOTERS; i++) {
        world->nodes[i].rejects = (voters >> i & 1U) != 0 ? 1U << who : 0;
    }
}

static void an_update_that_a_majority_finds_harmful_is_neither_listed_nor_awaited(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    run_rounds(world, 2);
    assert_true(lists(world, LIAR));
    find_harmful(world, 7, LIAR);
    run_rounds(world, 3); /* Some of its earlier publications still count. */
    for (uint32_t i = 0; i < 2; i++) {
        run_rounds(world, 1);
        assert_false(lists(world, LIAR));
        assert_string_equal(world->nodes[0].closed_cause, "all");
        assert_non_null(strstr(world->nodes[LIAR].left_out_cause, "judged it harmful"));
    }
    kit_close(world);
}

static void an_update_that_one_voter_finds_harmful_counts(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    find_harmful(world, 2, LIAR);
    run_rounds(world, 3);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < 12; i++) {
        run_rounds(world, 1);
        listed += lists(world, LIAR) ? 1 : 0;
    }
    assert_true(listed >= 6); /* Where the one proposes, it lists others. */
    assert_int_equal(kit_look(world, 0).members, NODES);
    kit_close(world);
}

/* Six harmful updates of eight, and the accusations of two voters. */
static void a_member_that_harms_round_after_round_is_removed(void **state)
{
    kit_world *world = kit_together(NODES);
    const dp_peer liar = kit_peer(LIAR);

    (void)state;
    find_harmful(world, 5, LIAR);
    run_rounds(world, 5);
    assert_int_equal(kit_look(world, 0).members, NODES);
    run_rounds(world, 6);
    for (uint32_t i = 0; i < VOTERS; i++) {
        const dp_ledger *ledger = &world->nodes[i].node->ledger;
        assert_int_equal(kit_look(world, i).members, VOTERS);
        assert_true(dp_ledger_barred(ledger, &liar)); /* Its token no longer admits it. */
        assert_int_equal(ledger->roster[dp_ledger_find(ledger, &liar)].gone, DP_REMOVE_HARMFUL);
    }
    assert_false(world->nodes[0].linked[LIAR]);
    kit_close(world);
}

/* Voters are trusted: their updates count in any case, so a round has contributions to list. */
static void the_updates_of_voters_are_not_judged(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    for (uint32_t i = 0; i < VOTERS; i++) {
        world->nodes[i].rejects = 15;
    }
    run_rounds(world, 16);
    for (uint32_t i = 0; i < VOTERS; i++) {
        assert_true(lists(world, i));
        /* To compute the usual values, and to find copies of them. */
        assert_true(world->nodes[i].judged > 0);
    }
    assert_int_equal(kit_look(world, 1).members, VOTERS);
    assert_int_equal(kit_look(world, 1).voters, VOTERS);
    kit_close(world);
}

/* An early update of a liar is not listed before it is judged, and the round does not wait for that
 * for long. */
static void nothing_is_listed_before_it_is_judged(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    for (uint32_t i = 0; i < VOTERS; i++) {
        world->nodes[i].judges_late = true;
    }
    run_rounds(world, 3);
    for (uint32_t i = 0; i < 3; i++) {
        run_rounds(world, 1);
        assert_false(lists(world, LIAR));
    }
    for (uint32_t i = 0; i < VOTERS; i++) {
        world->nodes[i].judges_late = false;
        dp_judging_trainer_down(world->nodes[i].node); /* Asked again. */
    }
    run_rounds(world, 3);
    assert_true(lists(world, LIAR));
    kit_close(world);
}

/* The author has signed the hash before the samples of the measurement are drawn; voters, rounds
 * and updates all have different samples. */
static void windows_are_drawn_anew_for_every_update(void **state)
{
    kit_world *world = kit_together(NODES);
    uint64_t seeds[8 * VOTERS];
    uint32_t n = 0;

    (void)state;
    while (n < sizeof seeds / sizeof seeds[0]) {
        run_rounds(world, 1);
        for (uint32_t i = 0; i < VOTERS; i++) {
            seeds[n++] = world->nodes[i].judge.u.judge.seed;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_true(seeds[i] != seeds[k] ||
                        i % VOTERS == k % VOTERS); /* It may be the same one yet. */
        }
    }
    assert_true(seeds[0] != seeds[n - VOTERS]);
    kit_close(world);
}

/* A liar can name a voter's blob as its own as soon as it knows of it. It gains nothing, and no
 * member is accused. */
static void one_blob_under_two_names_counts_for_the_voter_and_accuses_nobody(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    world->nodes[LIAR].copies = true;
    run_rounds(world, 3);
    for (uint32_t i = 0; i < DP_JUDGE_WINDOW + 2; i++) {
        run_rounds(world, 1);
        assert_false(lists(world, LIAR));
        assert_true(lists(world, 0));
    }
    assert_int_equal(kit_look(world, 0).members, NODES);
    kit_close(world);
}

/* A member whose update was found harmful is owed no wait; a member that was only late is owed
 * one. */
static void no_round_is_longer_for_whom_it_leaves_out(void **state)
{
    kit_world *world = kit_together(NODES);
    dp_node *node = world->nodes[0].node;
    const dp_peer liar = kit_peer(LIAR);

    (void)state;
    find_harmful(world, 5, LIAR);
    run_rounds(world, 3);
    for (uint32_t i = 0; i < 2; i++) {
        run_rounds(world, 1);
        assert_int_equal(node->round->missed[dp_node_member_index(node, &liar)], 0);
    }
    kit_close(world);
}

/* Dead authors, and a voter whose trainer is down: listed updates are fetched from any holder,
 * judged or not. */
static void a_listed_update_is_announced_without_being_judged(void **state)
{
    kit_world *world = kit_together(NODES);
    dp_node *node = world->nodes[0].node;
    dp_claim claim = {
        .ready = {.peer = kit_peer(LIAR), .bytes = 8}, .held = true, .size = 8, .checked = true};

    (void)state;
    run_rounds(world, 1);
    for (uint32_t evidence = 0; evidence < 2; evidence++) {
        claim.evidence = evidence != 0;
        node->round->n_claims = 1;
        node->round->claims[0] = claim;
        dp_round_index_claims(node);
        dp_out_begin(&node->out, world->actions);
        node->commit->state.accepted = -1;
        dp_round_tell_have(node);
        assert_int_equal(node->round->claims[0].have != 0, evidence);
    }
    kit_close(world);
}

static void the_gain_of_suspects_alone_is_measured(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    run_rounds(world, 2);
    assert_int_equal(world->nodes[0].gains, 0);
    find_harmful(world, 7, LIAR);
    const uint64_t round = round_of(world);
    run_rounds(world, 4);
    assert_in_range(world->nodes[0].gains, round_of(world) - round - 1,
                    round_of(world) - round + 1);
    kit_close(world);
}

static uint32_t times_listed(kit_world *world, uint32_t who, uint32_t rounds)
{
    uint32_t times = 0;

    for (uint32_t i = 0; i < rounds; i++) {
        run_rounds(world, 1);
        times += lists(world, who) ? 1 : 0;
    }
    return times;
}

/* The work of many rounds without a majority leads far away from the voter's own, and its first
 * steps need not help: with real daemons one of two such updates was refused, and the other alone
 * was shortened to the voter's own. Where most are long, records shorten none, and one that helps
 * at its own length counts. A single long update is shortened, and so its author gains nothing by
 * one that would help at a length that it is not applied at. */
static void long_updates_are_tested_at_their_own_length_where_most_are_long(void **state)
{
    (void)state;
    for (uint32_t bears = 0; bears < 2; bears++) {
        kit_world *world = kit_together(NODES);

        run_rounds(world, 2);
        find_harmful(world, 7, LIAR);
        for (uint32_t i = 0; i < VOTERS; i++) {
            world->nodes[i].bears = bears << LIAR;
        }
        world->nodes[LIAR].far = true;
        run_rounds(world, 2);
        assert_int_equal(times_listed(world, LIAR, 2), 0);
        world->nodes[1].far = world->nodes[2].far = true;
        assert_int_equal(times_listed(world, LIAR, 2) > 0, bears);
        kit_close(world);
    }
}

/* Those who exchanged in pairs hold the same mean, and are no copies of each other. */
static void long_updates_that_are_alike_are_no_copies_where_most_are_long(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    run_rounds(world, 2);
    for (uint32_t i = 0; i < VOTERS; i++) {
        world->nodes[i].alike = true;
    }
    run_rounds(world, 1);
    assert_int_equal(times_listed(world, LIAR, 1), 0);
    world->nodes[LIAR].far = true; /* A copy that was made longer is one. */
    run_rounds(world, 1);
    assert_int_equal(times_listed(world, LIAR, 1), 0);
    world->nodes[1].far = world->nodes[2].far = true;
    assert_true(times_listed(world, LIAR, 2) > 0);
    kit_close(world);
}

static void a_run_that_trusts_its_members_judges_nothing(void **state)
{
    kit_world *world = kit_open(NODES);

    (void)state;
    world->manifest.trust = DP_TRUST_MEMBERS;
    kit_start_anew(world, 6000);
    find_harmful(world, 7, LIAR);
    run_rounds(world, 3);
    assert_int_equal(world->nodes[0].judged, 0);
    assert_true(lists(world, LIAR));
    kit_close(world);
}

/* Random bytes under a voter's name, and accusations of a node that does not vote, have no effect
 * and are refused. */
static void forged_words_count_for_nothing(void **state)
{
    kit_world *world = kit_together(NODES);
    uint8_t bytes[DP_HARM_MESSAGE_BYTES];

    (void)state;
    for (uint32_t i = 0; i < 3 * DP_HARMS_MAX; i++) {
        dp_harm harm = {.accused = kit_peer(LIAR),
                        .round = round_of(world) + i % 2,
                        .voter = kit_peer(i % VOTERS),
                        .signature = {(uint8_t)i}};
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_harm_write(&writer, &harm);
        kit_tell(world, LIAR, 0, dp_view_of(bytes, writer.size));
    }
    run_rounds(world, 3);
    assert_int_equal(kit_look(world, 0).members, NODES);
    assert_true(kit_look(world, 0).rejected >= 3 * DP_HARMS_MAX);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_that_a_majority_finds_harmful_is_neither_listed_nor_awaited),
        cmocka_unit_test(an_update_that_one_voter_finds_harmful_counts),
        cmocka_unit_test(a_member_that_harms_round_after_round_is_removed),
        cmocka_unit_test(the_updates_of_voters_are_not_judged),
        cmocka_unit_test(nothing_is_listed_before_it_is_judged),
        cmocka_unit_test(windows_are_drawn_anew_for_every_update),
        cmocka_unit_test(one_blob_under_two_names_counts_for_the_voter_and_accuses_nobody),
        cmocka_unit_test(no_round_is_longer_for_whom_it_leaves_out),
        cmocka_unit_test(a_listed_update_is_announced_without_being_judged),
        cmocka_unit_test(the_gain_of_suspects_alone_is_measured),
        cmocka_unit_test(long_updates_are_tested_at_their_own_length_where_most_are_long),
        cmocka_unit_test(long_updates_that_are_alike_are_no_copies_where_most_are_long),
        cmocka_unit_test(a_run_that_trusts_its_members_judges_nothing),
        cmocka_unit_test(forged_words_count_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
