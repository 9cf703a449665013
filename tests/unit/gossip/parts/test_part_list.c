/* The parts that a voter lists in its record, and its judgement of those in the record of another:
 * results and claims are set here one by one. */
#include "gossip/parts/part_round.h"
#include "tests/unit/gossip/kit/part_kit.h"

/* The number of this peer among the voters. */
static uint32_t bit_of(const dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return 1U << dp_ledger_voter(&node->ledger, &who);
}

/* A result of the part by this owner, of the publications of the peers below n: here, checked,
 * and held by all voters. */
static dp_result *add_result(dp_node *node, uint32_t part, uint32_t owner, uint8_t root, uint32_t n)
{
    dp_result *result = &node->parts->results[node->parts->n_results++];

    *result = (dp_result){.word = {.owner = kit_peer(owner),
                                   .round = node->ledger.round + 1,
                                   .base = node->ledger.base,
                                   .part = part,
                                   .root = {{root, 99}},
                                   .bytes = 50,
                                   .n = n},
                          .have = 7,
                          .held = true,
                          .size = 50,
                          .checked = true};
    for (uint32_t i = 0; i < n; i++) {
        const dp_ready *ready = &kit_claim_by(node, i)->ready;
        result->word.sources[i] = (dp_part_source){.peer = ready->peer, .root = ready->root};
    }
    return result;
}

static const dp_record *list(dp_node *node)
{
    static dp_record draft;

    memset(&draft, 0, sizeof draft);
    draft.round = node->ledger.round + 1;
    dp_part_round_list(node, &draft);
    assert_true(draft.parted);
    assert_int_equal(draft.n_parts, 3);
    return &draft;
}

static void claims_known_from_records_or_of_another_state_are_not_listed(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_claim *claim = kit_claim_by(node, 1);
    uint32_t ready[DP_CLAIMS_MAX];

    (void)state;
    claim->evidence = true;
    assert_int_equal(dp_part_round_ready(node, ready), 2);
    claim->evidence = false;
    claim->ready.state_root.bytes[0] ^= 1;
    assert_int_equal(dp_part_round_ready(node, ready), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(&node->round->claims[ready[i]] != claim);
    }
    claim->ready.state_root.bytes[0] ^= 1;
    kit_close(world);
}

static void only_a_result_of_a_contributor_and_of_listed_publications_may_be_named(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *result = add_result(node, 0, 0, 1, 3);
    uint32_t ready[DP_CLAIMS_MAX];
    const uint32_t n = dp_part_round_ready(node, ready);

    (void)state;
    assert_true(dp_part_round_may_name(node, result, ready, n));
    assert_false(dp_part_round_may_name(node, result, ready, n - 1));
    result->word.owner = kit_peer(5);
    assert_false(dp_part_round_may_name(node, result, ready, n));
    result->word.owner = kit_peer(0);
    result->word.sources[2].root.bytes[0] ^= 1;
    assert_false(dp_part_round_may_name(node, result, ready, n));
    result->word.sources[2].root.bytes[0] ^= 1;
    result->word.sources[1].peer = kit_peer(5);
    assert_false(dp_part_round_may_name(node, result, ready, n));
    kit_close(world);
}

static void a_result_counts_if_it_is_here_whole_checked_and_good(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *result = add_result(node, 1, 1, 1, 3);
    const dp_result good = *result;

    (void)state;
    assert_int_equal(dp_part_round_held(node), 1);
    result->held = false;
    assert_int_equal(dp_part_round_held(node), 0);
    *result = good;
    result->checked = false;
    assert_int_equal(dp_part_round_held(node), 0);
    *result = good;
    result->bad = true;
    assert_int_equal(dp_part_round_held(node), 0);
    *result = good;
    result->size = 51;
    assert_int_equal(dp_part_round_held(node), 0);
    *result = good;
    result->word.sources[0].root.bytes[0] ^= 1;
    assert_int_equal(dp_part_round_held(node), 0);
    *result = good;
    const uint32_t self = node->commit->self;
    node->commit->self = DP_NOBODY; /* A node without a vote lists nothing. */
    assert_int_equal(dp_part_round_held(node), 0);
    node->commit->self = self;
    kit_close(world);
}

static void results_count_as_far_as_one_majority_with_this_node_holds_them(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *first = add_result(node, 0, 0, 1, 3);

    (void)state;
    first->have = 0; /* Here, which is told to nobody yet. */
    assert_int_equal(dp_part_round_held(node), 0);
    first->have = bit_of(node, 0);
    assert_int_equal(dp_part_round_held(node), 0);
    first->have = bit_of(node, 1);
    assert_int_equal(dp_part_round_held(node), 1);
    dp_result *second = add_result(node, 1, 1, 2, 3);
    second->have = bit_of(node, 2);
    assert_int_equal(dp_part_round_held(node), 1); /* No two voters have both. */
    second->have |= bit_of(node, 1);
    assert_int_equal(dp_part_round_held(node), 2);
    add_result(node, 1, 2, 3, 3)->have = 7; /* Of one part another is no more. */
    assert_int_equal(dp_part_round_held(node), 2);
    kit_close(world);
}

static void
of_two_results_of_a_part_that_of_more_then_of_its_owner_then_the_first_is_named(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    const dp_peer *owners = node->ledger.layout.owners;
    dp_result *other = add_result(node, 0, 1, 9, 2);
    dp_result *more = add_result(node, 0, 1, 8, 3);

    (void)state;
    for (uint32_t swap = 0; swap < 2; swap++) {
        assert_memory_equal(list(node)->parts[0].root.bytes, more->word.root.bytes, DP_HASH_BYTES);
        const dp_result kept = *other;
        *other = *more;
        *more = kept;
        dp_result *const at = other;
        other = more;
        more = at;
    }
    node->parts->n_results = 0;
    other = add_result(node, 0, 0, 1, 3);
    more = add_result(node, 0, 0, 2, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_peer peer = kit_peer(i);
        if (!dp_peer_equal(&peer, &owners[0])) {
            other->word.owner = peer;
        }
    }
    more->word.owner = owners[0];
    assert_memory_equal(list(node)->parts[0].root.bytes, more->word.root.bytes, DP_HASH_BYTES);
    other->word.owner = owners[0];
    assert_memory_equal(list(node)->parts[0].root.bytes, other->word.root.bytes, DP_HASH_BYTES);
    more->word.root.bytes[0] = 0;
    assert_memory_equal(list(node)->parts[0].root.bytes, more->word.root.bytes, DP_HASH_BYTES);
    kit_close(world);
}

static void a_record_names_the_results_and_lists_what_is_in_them_in_order_of_peer(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *result = add_result(node, 2, 1, 5, 3);

    (void)state;
    memset(result->word.signature, 7, sizeof result->word.signature);
    result->word.n = 2; /* Not the publication of node 2. */
    const dp_record *draft = list(node);
    assert_int_equal(draft->n_listed, 2);
    assert_true(dp_peer_compare(&draft->listed[0].peer, &draft->listed[1].peer) < 0);
    assert_false(draft->parts[0].has || draft->parts[1].has);
    const dp_part_row *row = &draft->parts[2];
    assert_true(row->has);
    assert_int_equal(row->from, 3);
    assert_int_equal(row->bytes, 50);
    assert_true(dp_peer_equal(&row->owner, &result->word.owner));
    assert_true(dp_hash_equal(&row->root, &result->word.root));
    assert_memory_equal(row->signature, result->word.signature, sizeof row->signature);
    assert_int_equal(row->first_sum, 0);
    assert_int_equal(row->n_sums, 0);
    (void)add_result(node, 0, 0, 6, 3);
    draft = list(node);
    assert_int_equal(draft->n_listed, 3);
    assert_int_equal(draft->parts[0].from, 7);
    uint32_t bits = 0;
    for (uint32_t k = 0; k < 3; k++) {
        const dp_peer third = kit_peer(2);
        bits |= dp_peer_equal(&draft->listed[k].peer, &third) ? 0 : 1U << k;
    }
    assert_int_equal(draft->parts[2].from, bits);
    kit_close(world);
}

static void a_result_with_a_copy_of_what_is_listed_is_left_out(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;

    (void)state;
    dp_claim *copy = kit_claim_by(node, 2);
    dp_claim *first = kit_claim_by(node, 1);
    first->ready.energy = copy->ready.energy = 4;
    copy->ready.root = first->ready.root;
    (void)add_result(node, 0, 0, 6, 2);
    (void)add_result(node, 1, 1, 7, 3);
    const dp_record *draft = list(node);
    assert_int_equal(draft->n_listed, 2);
    assert_true(draft->parts[0].has);
    assert_false(draft->parts[1].has);
    first->ready.energy = copy->ready.energy = 0; /* Of nothing all may have the same. */
    draft = list(node);
    assert_int_equal(draft->n_listed, 3);
    assert_true(draft->parts[1].has);
    kit_close(world);
}

static void a_claim_of_no_member_takes_the_results_with_it_out_of_the_record(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    const dp_peer stranger = kit_peer(9);

    (void)state;
    dp_result *with = add_result(node, 0, 0, 6, 3);
    (void)add_result(node, 1, 1, 7, 2);
    kit_claim_by(node, 2)->ready.peer = stranger;
    with->word.sources[2].peer = stranger;
    const dp_record *draft = list(node);
    assert_int_equal(draft->n_listed, 2);
    assert_false(draft->parts[0].has);
    assert_true(draft->parts[1].has);
    assert_int_equal(draft->parts[1].from, 3);
    kit_close(world);
}

static void a_round_closes_with_all_parts_or_after_a_wait_with_some(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_part_round *parts = node->parts;

    (void)state;
    parts->ripe_at = (dp_time){0};
    assert_null(dp_part_round_close(node, NULL));
    assert_int_equal(parts->ripe_at.us, 0);
    assert_null(dp_part_round_close(node, "grace"));
    assert_int_equal(parts->ripe_at.us, node->now.us);
    node->now.us += 1000 * DP_SECOND; /* Nothing is there to be listed. */
    assert_null(dp_part_round_close(node, "grace"));
    assert_true(parts->ripe_at.us < node->now.us);
    (void)add_result(node, 0, 0, 1, 3);
    (void)add_result(node, 1, 1, 2, 3);
    assert_string_equal(dp_part_round_close(node, "grace"), "parts missing");
    const dp_part_wait wait = dp_part_round_wait(node, DP_PARTS_MAX);
    parts->ripe_at = (dp_time){node->now.us - dp_part_wait_close(&wait) + 1};
    assert_null(dp_part_round_close(node, "grace"));
    parts->ripe_at.us--;
    assert_string_equal(dp_part_round_close(node, NULL), "parts missing");
    (void)add_result(node, 2, 2, 3, 3);
    assert_string_equal(dp_part_round_close(node, "grace"), "grace");
    assert_string_equal(dp_part_round_close(node, NULL), "parts");
    kit_close(world);
}

/* A record that names one part. */
static const dp_record *names(const dp_node *node, const dp_result *result)
{
    static dp_record record;

    memset(&record, 0, sizeof record);
    record.round = node->ledger.round + 1;
    record.base = node->ledger.base;
    record.parted = true;
    record.n_parts = 3;
    record.parts[1] = (dp_part_row){.has = true,
                                    .owner = result->word.owner,
                                    .root = result->word.root,
                                    .bytes = result->word.bytes,
                                    .from = 1};
    record.n_listed = 1;
    record.listed[0].peer = kit_peer(0);
    return &record;
}

static void a_record_is_judged_by_the_results_that_it_names(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *result = add_result(node, 1, 1, 1, 1);
    const dp_record *record = names(node, result);

    (void)state;
    assert_int_equal(dp_part_round_judge(node, record), 1);
    result->held = false;
    assert_int_equal(dp_part_round_judge(node, record), 0);
    result->held = true;
    result->checked = false;
    assert_int_equal(dp_part_round_judge(node, record), 0);
    result->checked = true;
    result->bad = true;
    assert_int_equal(dp_part_round_judge(node, record), -1);
    result->bad = false;
    result->size = 49;
    assert_int_equal(dp_part_round_judge(node, record), -1);
    kit_close(world);
}

static void a_result_that_is_known_only_by_a_record_is_followed(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_result *result = add_result(node, 1, 1, 1, 1);
    const dp_record *record = names(node, result);

    (void)state;
    result->word.part = 0; /* Its word about another part is none about this. */
    result->word.signature[0] = 1;
    assert_int_equal(dp_part_round_judge(node, record), 0);
    assert_int_equal(node->parts->n_results, 2);
    const dp_result *met = &node->parts->results[1];
    assert_true(met->evidence);
    assert_int_equal(met->word.part, 1);
    assert_true(dp_hash_equal(&met->word.root, &record->parts[1].root));
    kit_close(world);
}

/* Two words name one object with two sizes: the record is judged by the word that it repeats. */
static void of_two_words_about_one_object_the_record_is_judged_by_its_own(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;

    (void)state;
    dp_result *lie = add_result(node, 1, 2, 1, 1);
    dp_result *truth = add_result(node, 1, 1, 1, 1);
    lie->word.bytes = 51;
    lie->bad = true;
    assert_int_equal(dp_part_round_judge(node, names(node, truth)), 1);
    assert_int_equal(dp_part_round_judge(node, names(node, lie)), -1);
    const dp_result kept = *lie;
    *lie = *truth;
    *truth = kept;
    assert_int_equal(dp_part_round_judge(node, names(node, lie)), 1);
    kit_close(world);
}

static void the_wait_for_a_part_follows_the_bytes_that_authors_say_it_has(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->round->deadline.average_us = 1000 * DP_SECOND;
    for (uint32_t i = 0; i < 3; i++) {
        dp_part_list *parts = &kit_claim_by(node, i)->ready.parts;
        for (uint32_t p = 0; p < parts->n; p++) {
            parts->refs[p].bytes = (p + 1) * 10000000ULL;
        }
    }
    const uint64_t third_us = dp_part_round_wait(node, 0).transfer_us / 3;
    assert_true(third_us > 0);
    assert_in_range(dp_part_round_wait(node, 1).transfer_us, 6 * third_us - 6, 6 * third_us + 6);
    assert_in_range(dp_part_round_wait(node, DP_PARTS_MAX).transfer_us, 9 * third_us - 9,
                    9 * third_us + 9);      /* Of the largest. */
    kit_claim_by(node, 2)->evidence = true; /* Its author has told nobody of it. */
    assert_in_range(dp_part_round_wait(node, 0).transfer_us, 2 * third_us - 2, 2 * third_us + 2);
    kit_close(world);
}

static void the_object_of_a_source_is_wanted_for_a_sum_while_it_is_being_made(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_collecting *collecting = &node->parts->collects[1];

    (void)state;
    collecting->told = (dp_collect){.n = 1, .peers = {kit_peer(2)}};
    for (uint32_t what = 0; what < 4; what++) {
        collecting->duty.works = (what & 1U) != 0;
        collecting->duty.done = (what & 2U) != 0;
        assert_int_equal(dp_part_collect_wants(node, 1, kit_claim_by(node, 2)), what == 1);
        assert_false(dp_part_collect_wants(node, 1, kit_claim_by(node, 0)));
    }
    collecting->duty = (dp_duty){.works = false};
    collecting->told.n = 0;
    kit_close(world);
}

/* It has no majority to ask what is held: no part of the record before stays in the draft. */
static void a_node_that_does_not_vote_lists_no_part(void **state)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;

    (void)state;
    for (uint32_t part = 0; part < 3; part++) {
        (void)add_result(node, part, part, (uint8_t)part, 3);
    }
    const dp_record *draft = list(node);
    assert_true(draft->parts[0].has && draft->parts[1].has && draft->parts[2].has);
    assert_int_equal(dp_part_round_held(node), 3);
    node->commit->self = DP_NOBODY;
    draft = list(node);
    assert_false(draft->parts[0].has || draft->parts[1].has || draft->parts[2].has);
    assert_int_equal(draft->n_listed, 0);
    assert_int_equal(dp_part_round_held(node), 0);
    node->commit->self = self;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_known_from_records_or_of_another_state_are_not_listed),
        cmocka_unit_test(only_a_result_of_a_contributor_and_of_listed_publications_may_be_named),
        cmocka_unit_test(a_result_counts_if_it_is_here_whole_checked_and_good),
        cmocka_unit_test(results_count_as_far_as_one_majority_with_this_node_holds_them),
        cmocka_unit_test(
            of_two_results_of_a_part_that_of_more_then_of_its_owner_then_the_first_is_named),
        cmocka_unit_test(a_record_names_the_results_and_lists_what_is_in_them_in_order_of_peer),
        cmocka_unit_test(a_result_with_a_copy_of_what_is_listed_is_left_out),
        cmocka_unit_test(a_claim_of_no_member_takes_the_results_with_it_out_of_the_record),
        cmocka_unit_test(a_round_closes_with_all_parts_or_after_a_wait_with_some),
        cmocka_unit_test(a_record_is_judged_by_the_results_that_it_names),
        cmocka_unit_test(a_result_that_is_known_only_by_a_record_is_followed),
        cmocka_unit_test(of_two_words_about_one_object_the_record_is_judged_by_its_own),
        cmocka_unit_test(the_wait_for_a_part_follows_the_bytes_that_authors_say_it_has),
        cmocka_unit_test(the_object_of_a_source_is_wanted_for_a_sum_while_it_is_being_made),
        cmocka_unit_test(a_node_that_does_not_vote_lists_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
