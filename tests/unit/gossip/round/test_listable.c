/* Which contributions a record may list, how many voters hold them, and which of too many it
 * lists. */
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/claim_kit.h"

/* Node 0 of three voters and a fourth member; nobody trains, and it knows no update. The state of
 * the round is certified. */
static kit_world *begin(void)
{
    kit_world *world = kit_together(4);
    dp_node *node = world->nodes[0].node;
    dp_hash root;
    dp_seal seals[DP_VOTERS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < 4; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    assert_true(dp_round_state_cert(node, &root, seals, &n));
    dp_out_begin(&node->out, world->actions);
    return world;
}

/* An update of this member that a record may list, held by these voters beside this one. */
static dp_claim *listable(dp_node *node, uint32_t peer, uint8_t root, uint32_t have)
{
    dp_claim *claim = kit_claim(node, peer, root);
    dp_seal seals[DP_VOTERS_MAX];
    uint32_t n = 0;

    assert_true(dp_round_state_cert(node, &claim->ready.state_root, seals, &n));
    claim->have = have;
    claim->size = claim->ready.bytes = 8;
    claim->found = DP_FOUND_GOOD;
    return claim;
}

static void an_update_may_be_listed_if_it_is_here_whole_checked_good_and_told(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const uint32_t all = (1U << node->ledger.n_voters) - 1;
    dp_claim *claim = listable(node, 1, 1, all);
    const dp_claim good = *claim;

    (void)state;
    for (uint32_t what = 0; what < 10; what++) {
        *claim = good;
        const uint32_t self = node->commit->self;
        if (what == 1) {
            claim->evidence = true; /* Known from a record alone. */
        } else if (what == 2) {
            claim->held = false;
        } else if (what == 3) {
            claim->checked = false;
        } else if (what == 4) {
            claim->bad = true;
        } else if (what == 5) {
            claim->size++;
        } else if (what == 6) {
            claim->ready.state_root.bytes[0] ^= 1;
        } else if (what == 7) {
            node->commit->self = DP_NOBODY;
        } else if (what == 8) {
            claim->have = 0; /* This node alone holds it: no majority. */
        }
        if (what == 9) { /* The voters judge: an update that nothing was found of waits. */
            claim->found = DP_FOUND_NONE;
            assert_int_equal(dp_claim_is_good(node, claim), node->judging == NULL);
        }
        assert_int_equal(dp_round_held(node, NULL),
                         what == 0 || (what == 9 && node->judging == NULL) ? 1 : 0);
        node->commit->self = self;
    }
    kit_close(world);
}

static void a_late_update_has_to_have_gone_on_from_the_state_before(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_claim *claim = listable(node, 1, 1, 0);
    dp_roster_entry *entry =
        &node->ledger.roster[dp_ledger_find(&node->ledger, &claim->ready.peer)];
    const dp_hash root = claim->ready.state_root;
    const dp_hash before = {{9, 9}};

    (void)state;
    node->ledger.has_before = true;
    node->ledger.state_before = before;
    entry->included = entry->admitted_round = node->ledger.round - 1;
    assert_true(dp_round_may_list(node, &claim->ready, &root));
    claim->ready.round--;
    assert_false(dp_round_may_list(node, &claim->ready, &root));
    claim->ready.state_root = before;
    assert_true(dp_round_may_list(node, &claim->ready, &root));
    entry->included++; /* It was counted in that round. */
    assert_false(dp_round_may_list(node, &claim->ready, &root));
    entry->included--;
    entry->gone = DP_REMOVE_REVOKED;
    assert_false(dp_round_may_list(node, &claim->ready, &root));
    entry->gone = 0;
    kit_close(world);
}

/* A majority of three is two with this one: bits of the others make no majority with each other. */
static void the_majority_that_holds_most_counts(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;
    const uint32_t one = 1U << (self + 1) % 3;
    const uint32_t two = 1U << (self + 2) % 3;
    uint32_t chosen[DP_CLAIMS_MAX];

    (void)state;
    assert_int_equal(node->ledger.n_voters, 3);
    assert_int_equal(dp_round_held(node, chosen), 0);
    listable(node, 1, 1, one);
    listable(node, 2, 2, two);
    listable(node, 3, 3, two);
    listable(node, 0, 4, 0);
    assert_int_equal(dp_round_held(node, chosen), 2);
    assert_true(chosen[0] == 1 && chosen[1] == 2);
    node->round->claims[3].have = one;
    assert_int_equal(dp_round_held(node, chosen), 2);
    const bool first = one < two; /* The first in order of bits. */
    assert_true(chosen[0] == (first ? 0 : 1) && chosen[1] == (first ? 3 : 2));
    node->round->claims[1].have = one | two;
    assert_int_equal(dp_round_held(node, chosen), 3);
    assert_true(chosen[0] == 0 && chosen[1] == 1 && chosen[2] == 3);
    kit_close(world);
}

static void of_two_claims_to_one_blob_the_first_is_chosen_unless_it_is_empty(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        uint32_t held[] = {0, 1, 2};
        uint32_t chosen[DP_CLAIMS_MAX];
        listable(node, 3, 1, 0);
        listable(node, 1, what == 0 ? 2 : 1, 0);
        listable(node, 2, 3, 0);
        node->round->claims[1].energy = what == 2 ? 0 : 1000; /* Nothing was copied. */
        const uint32_t n = dp_round_choose(node, held, 3, chosen);
        assert_int_equal(n, what == 1 ? 2 : 3);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(what != 1 || chosen[i] != 1);
            assert_true(i == 0 || dp_peer_compare(&node->round->claims[chosen[i - 1]].ready.peer,
                                                  &node->round->claims[chosen[i]].ready.peer) < 0);
        }
        kit_close(world);
    }
}

static void of_too_many_those_are_chosen_that_were_not_counted_for_longest(void **state)
{
    static const uint32_t included[] = {5, 3, 4, 3};
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        const dp_peer peer = kit_peer(i);
        node->ledger.roster[dp_ledger_find(&node->ledger, &peer)].included = included[i];
        listable(node, i, (uint8_t)(i + 1), 0);
    }
    for (uint32_t most = 1; most <= 4; most++) {
        static const uint32_t wanted[] = {2, 2 | 8, 2 | 4 | 8, 15};
        uint32_t held[] = {0, 1, 2, 3};
        uint32_t chosen[DP_CLAIMS_MAX];
        uint32_t bits = 0;
        node->ledger.listed_max = most;
        assert_int_equal(dp_round_choose(node, held, 4, chosen), most);
        for (uint32_t i = 0; i < most; i++) {
            bits |= 1U << kit_index(&node->round->claims[chosen[i]].ready.peer);
            assert_true(i == 0 || kit_index(&node->round->claims[chosen[i - 1]].ready.peer) <
                                      kit_index(&node->round->claims[chosen[i]].ready.peer));
        }
        assert_int_equal(bits, wanted[most - 1]);
    }
    kit_close(world);
}

static void a_listed_contribution_is_as_its_author_told_it(void **state)
{
    static dp_record draft;
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_claim *claim = listable(node, 2, 7, 0);

    (void)state;
    claim->ready.carried = 11;
    claim->ready.reach = (dp_reach){.leased = 12, .own = 13};
    claim->ready.steps = 14;
    claim->ready.loss_micro = 15;
    claim->ready.rate = 16;
    claim->energy = 17;
    memset(claim->ready.signature, 18, sizeof claim->ready.signature);
    memset(&draft, 0, sizeof draft);
    draft.round = node->ledger.round + 1;
    for (uint32_t aged = 0; aged < 2; aged++) {
        claim->ready.round -= aged;
        assert_true(dp_round_list(node, &draft, claim));
        assert_int_equal(draft.n_listed, aged + 1);
        assert_int_equal(draft.aged, aged == 0 ? 0 : 2);
        const dp_listed *listed = &draft.listed[aged];
        assert_true(dp_peer_equal(&listed->peer, &claim->ready.peer));
        assert_true(dp_hash_equal(&listed->root, &claim->ready.root));
        assert_int_equal(listed->bytes, 8);
        assert_int_equal(listed->tokens, 100);
        assert_int_equal(listed->carried, 11);
        assert_int_equal(listed->reach.leased, 12);
        assert_int_equal(listed->reach.own, 13);
        assert_int_equal(listed->steps, 14);
        assert_int_equal(listed->loss_micro, 15);
        assert_int_equal(listed->rate, 16);
        assert_true(listed->energy == 17);
        assert_memory_equal(listed->signature, claim->ready.signature, sizeof listed->signature);
    }
    claim->ready.peer = kit_peer(9); /* No member: it is listed by nobody. */
    assert_false(dp_round_list(node, &draft, claim));
    assert_int_equal(draft.n_listed, 2);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_may_be_listed_if_it_is_here_whole_checked_good_and_told),
        cmocka_unit_test(a_late_update_has_to_have_gone_on_from_the_state_before),
        cmocka_unit_test(the_majority_that_holds_most_counts),
        cmocka_unit_test(of_two_claims_to_one_blob_the_first_is_chosen_unless_it_is_empty),
        cmocka_unit_test(of_too_many_those_are_chosen_that_were_not_counted_for_longest),
        cmocka_unit_test(a_listed_contribution_is_as_its_author_told_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
