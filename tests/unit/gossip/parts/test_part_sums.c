/* Sums of sites at the owner of a part, one rule at a time: hints, words, checks, and which sums go
 * into the part. test_part_take.c has whole nodes at two sites. */
#include "gossip/parts/part_round.h"
#include "gossip/record/part_sum.h"
#include "tests/unit/gossip/kit/part_kit.h"

/* Node 0 owns part 0, and 1 and 2 are at another site. */
static kit_world *begin(void)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;

    node->ledger.summed = true;
    node->ledger.layout.owners[0] = kit_peer(0);
    node->ledger.layout.owners[1] = kit_peer(1);
    node->ledger.layout.owners[2] = kit_peer(2);
    node->parts->site = (dp_part_site){0};
    node->parts->n_hints = node->parts->n_sums = 0;
    return world;
}

static uint32_t index_of(const dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return dp_node_member_index(node, &who);
}

static void come_near(dp_node *node, uint32_t peer)
{
    const uint32_t index = index_of(node, peer);

    node->parts->site.near[index / 64] |= 1ULL << (index % 64);
}

/* ---- hints ---- */

static dp_status hint(dp_node *node, uint32_t n, uint64_t round, uint32_t part, bool *look)
{
    uint8_t room[512];
    dp_collect told = {.round = round, .base = node->ledger.base, .part = part, .n = n};
    dp_writer writer = dp_writer_of(room, sizeof room);

    told.peers[0] = kit_peer(1);
    told.peers[1] = kit_peer(2);
    if (dp_peer_compare(&told.peers[0], &told.peers[1]) > 0) {
        told.peers[0] = kit_peer(2);
        told.peers[1] = kit_peer(1);
    }
    dp_collect_write(&writer, &told);
    return dp_part_take_hint(node, index_of(node, 1), dp_view_of(room, writer.size), look);
}

static void a_hint_counts_for_this_round_of_a_run_with_sums_and_its_owner(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const uint64_t round = node->ledger.round + 1;
    bool look = false;

    (void)state;
    node->ledger.summed = false;
    assert_int_equal(hint(node, 2, round, 0, &look), DP_DENIED);
    node->ledger.summed = true;
    assert_int_equal(hint(node, 2, round + 1, 0, &look), DP_OK);
    assert_int_equal(hint(node, 2, round - 1, 0, &look), DP_OK);
    assert_int_equal(hint(node, 2, round, 1, &look), DP_DENIED);
    const dp_peer collector = kit_peer(1);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &collector)];
    const uint32_t caps = entry->caps;
    entry->caps = DP_CAP_SERVE;
    assert_int_equal(hint(node, 2, round, 0, &look), DP_DENIED);
    entry->caps = caps;
    assert_int_equal(node->parts->n_hints, 0);
    node->changed = false;
    assert_int_equal(hint(node, 2, round, 0, &look), DP_OK);
    assert_int_equal(node->parts->n_hints, 1);
    assert_true(node->changed);
    assert_false(look);
    assert_int_equal(hint(node, 2, round, 0, &look), DP_OK);
    assert_int_equal(node->parts->n_hints, 1); /* The last one counts. */
    assert_int_equal(hint(node, 0, round, 0, &look), DP_OK);
    assert_int_equal(node->parts->n_hints, 0);
    assert_true(look); /* Its contributions are fetched now. */
    kit_close(world);
}

static void a_hint_of_one_near_or_whose_sum_is_known_or_one_too_many_is_not_waited_for(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        bool look = false;
        if (what == 0) {
            come_near(node, 1);
        } else if (what == 1) {
            come_near(node, 2); /* It is in the sum. */
        } else if (what == 2) {
            node->parts->sums[0].word.owner = kit_peer(1);
            node->parts->n_sums = 1;
        } else if (what == 3) {
            node->parts->n_hints = DP_HINTS_MAX;
        }
        const uint32_t before = node->parts->n_hints;
        assert_int_equal(hint(node, 2, node->ledger.round + 1, 0, &look), DP_OK);
        assert_int_equal(node->parts->n_hints, before + (what == 4 ? 1 : 0));
        node->parts->n_sums = node->parts->n_hints = 0;
        kit_close(world);
    }
}

/* ---- sums ---- */

/* The word of collector 1 about the publications of 1 and 2. */
static dp_part_word word_of(dp_node *node)
{
    const dp_crypto crypto = kit_crypto(1);
    dp_part_word word = {.owner = kit_peer(1),
                         .round = node->ledger.round + 1,
                         .base = node->ledger.base,
                         .root = {{0xcc}},
                         .bytes = 8,
                         .n = 2};
    const uint32_t first =
        dp_peer_compare(&kit_claim_by(node, 1)->ready.peer, &kit_claim_by(node, 2)->ready.peer) < 0
            ? 1
            : 2;

    for (uint32_t i = 0; i < 2; i++) {
        const dp_ready *ready = &kit_claim_by(node, i == 0 ? first : 3 - first)->ready;
        word.sources[i] = (dp_part_source){.peer = ready->peer, .root = ready->root};
    }
    assert_true(dp_site_sum_sign(&word, &crypto, &node->run, &node->ledger.fork));
    return word;
}

static dp_status told(dp_node *node, const dp_part_word *word, bool *look)
{
    static uint8_t room[8192];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_site_sum_msg_write(&writer, word);
    return dp_part_take_message(node, dp_view_of(room, writer.size), look);
}

static void the_word_of_a_sum_counts_for_this_round_and_its_owner(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_part_word good = word_of(node);
    dp_part_word word = good;
    bool look = false;

    (void)state;
    node->ledger.summed = false;
    assert_int_equal(told(node, &word, &look), DP_DENIED);
    node->ledger.summed = true;
    word.round++;
    assert_int_equal(told(node, &word, &look), DP_OK);
    word = good;
    word.base.bytes[0] ^= 1;
    assert_int_equal(told(node, &word, &look), DP_OK);
    word = good;
    word.part = 1;
    assert_int_equal(told(node, &word, &look), DP_DENIED);
    assert_int_equal(node->parts->n_sums, 0);
    assert_false(look);
    node->changed = false;
    assert_int_equal(told(node, &good, &look), DP_OK);
    assert_int_equal(node->parts->n_sums, 1);
    assert_true(look && node->changed);
    const dp_sum *sum = &node->parts->sums[0];
    assert_false(sum->mine || sum->held || sum->in_use);
    assert_int_equal(sum->since.us, node->now.us);
    assert_int_equal(sum->moved.us, node->now.us);
    assert_true(dp_hash_equal(&sum->word.root, &good.root));
    kit_close(world);
}

static void a_sum_that_is_one_too_many_is_not_kept(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_part_word word = word_of(node);
    bool look = false;

    (void)state;
    node->parts->n_sums = DP_SUMS_MAX;
    for (uint32_t i = 0; i < DP_SUMS_MAX; i++) {
        node->parts->sums[i] = (dp_sum){.mine = true};
    }
    assert_int_equal(told(node, &word, &look), DP_OK);
    assert_int_equal(node->parts->n_sums, DP_SUMS_MAX);
    node->parts->n_sums = dp_site_sums_most(node->ledger.layout.cuts.n);
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        node->parts->sums[i] = (dp_sum){.word = {.owner = kit_peer(9)}};
    }
    assert_int_equal(told(node, &word, &look), DP_OK);
    assert_int_equal(node->parts->n_sums, dp_site_sums_most(node->ledger.layout.cuts.n));
    node->parts->sums[0].mine = true; /* Made here: it is not of these. */
    assert_int_equal(told(node, &word, &look), DP_OK);
    assert_int_equal(node->parts->n_sums, dp_site_sums_most(node->ledger.layout.cuts.n) + 1);
    node->parts->n_sums = 0;
    kit_close(world);
}

/* A sum that is whole here. */
static dp_sum *held(dp_node *node)
{
    bool look = false;
    const dp_part_word word = word_of(node);

    assert_int_equal(told(node, &word, &look), DP_OK);
    dp_sum *sum = &node->parts->sums[node->parts->n_sums - 1];
    dp_node_hold(node, &word.root, word.bytes);
    node->round->checks = 0;
    memset(node->out.actions, 0, sizeof *node->out.actions);
    return sum;
}

static uint32_t checks(const kit_world *world)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        count += world->actions->items[i].type == DP_DO_CHECK ? 1 : 0;
    }
    return count;
}

static void a_sum_that_is_here_is_checked_once_all_in_it_is_known(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);

    (void)state;
    kit_claim_by(node, 2)->evidence = true;
    node->changed = false;
    dp_part_take_look(node);
    assert_true(sum->held && !sum->checking && node->changed);
    node->changed = false;
    dp_part_take_look(node); /* Nothing new. */
    assert_false(node->changed);
    assert_int_equal(sum->size, 8);
    kit_claim_by(node, 2)->evidence = false;
    sum->mine = true;
    dp_part_take_look(node);
    sum->mine = false;
    sum->bad = true;
    dp_part_take_look(node);
    sum->bad = false;
    sum->checked = true;
    dp_part_take_look(node);
    sum->checked = false;
    assert_int_equal(checks(world), 0);
    dp_part_take_look(node);
    assert_true(sum->checking);
    assert_int_equal(checks(world), 1);
    dp_part_take_look(node);
    assert_int_equal(checks(world), 1);
    node->round->checks = 0;
    kit_close(world);
}

/* The answer about this range of the vector. */
static bool answer(dp_node *node, const dp_sum *sum, uint32_t part, bool ok,
                   unsigned __int128 energy)
{
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;
    const dp_event event = {.type = DP_EV_CHECKED,
                            .u.checked = {.root = sum->word.root,
                                          .first = cuts->first[part],
                                          .end = dp_part_end(cuts, part),
                                          .ok = ok,
                                          .energy = energy}};

    return dp_part_take_checked(node, &event);
}

static void a_sum_is_bad_if_it_does_not_decode_is_too_large_or_of_another_size(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);

    (void)state;
    sum->held = true;
    for (uint32_t what = 0; what < 4; what++) {
        const uint64_t rejected = node->rejected;
        sum->size = what == 2 ? 9 : 8;
        sum->checked = sum->bad = false;
        sum->checking = true;
        assert_true(answer(node, sum, 0, what != 0,
                           what == 1 ? (unsigned __int128)1 << 120 : (unsigned __int128)0));
        assert_true(sum->checked && !sum->checking);
        assert_int_equal(sum->bad, what != 3);
        assert_int_equal(node->rejected, rejected + (what != 3 ? 1 : 0));
    }
    assert_false(answer(node, sum, 0, true, 0)); /* Nothing was asked. */
    sum->checking = true;
    assert_false(answer(node, sum, 1, true, 0)); /* Of another part. */
    assert_true(sum->checking);
    kit_claim_by(node, 2)->evidence = true; /* A claim has gone: judged when it is known again. */
    sum->checked = false;
    assert_true(answer(node, sum, 0, true, 0));
    assert_false(sum->checked || sum->checking);
    kit_claim_by(node, 2)->evidence = false;
    kit_close(world);
}

static void choose(dp_node *node)
{
    uint32_t ready[DP_CLAIMS_MAX];
    const uint32_t n = dp_part_round_ready(node, ready);

    dp_part_take_choose(node, 0, ready, n);
}

static void a_sum_is_used_if_it_is_whole_good_and_all_in_it_may_be_listed(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);
    sum->held = sum->checked = true;
    const dp_sum good = *sum;

    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        *sum = good;
        if (what == 0) {
            sum->mine = true;
        } else if (what == 1) {
            sum->word.part = 1;
        } else if (what == 2) {
            sum->held = false;
        } else if (what == 3) {
            sum->checked = false;
        } else if (what == 4) {
            sum->bad = true;
        } else if (what == 5) {
            sum->word.sources[0].root.bytes[0] ^= 1;
        }
        choose(node);
        assert_int_equal(sum->in_use, what == 6);
    }
    assert_true(dp_part_take_sum_of(node, 0, kit_claim_by(node, 1)) == sum);
    assert_true(dp_part_take_sum_of(node, 0, kit_claim_by(node, 2)) == sum);
    assert_null(dp_part_take_sum_of(node, 0, kit_claim_by(node, 0)));
    assert_null(dp_part_take_sum_of(node, 1, kit_claim_by(node, 1)));
    kit_close(world);
}

static void of_two_sums_with_one_contribution_the_first_is_used(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);

    (void)state;
    sum->held = sum->checked = true;
    dp_sum *second = &node->parts->sums[node->parts->n_sums++];
    *second = *sum;
    second->word.owner = kit_peer(2);
    choose(node);
    assert_true(sum->in_use && !second->in_use && second->bad);
    kit_close(world);
}

static void a_sum_of_two_publications_that_are_one_object_is_bad(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);

    (void)state;
    sum->held = sum->checked = true;
    kit_claim_by(node, 1)->ready.parts.refs[0].root =
        kit_claim_by(node, 2)->ready.parts.refs[0].root;
    choose(node);
    assert_true(!sum->in_use && sum->bad);
    kit_close(world);
}

/* ---- waiting ---- */

static void the_objects_of_a_sum_are_waited_for_while_it_comes(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);
    const dp_claim *far = kit_claim_by(node, 2);
    dp_time until;

    (void)state;
    sum->held = true;
    assert_true(dp_part_take_awaits(node, 0, far, &until));
    const dp_part_wait wait = dp_part_round_wait(node, 0);
    assert_int_equal(until.us, dp_part_wait_owner(&wait, sum->since, sum->moved, DP_SITE_WAITS).us);
    assert_false(dp_part_take_awaits(node, 1, far, &until)); /* Not its own part. */
    assert_false(dp_part_take_awaits(node, 0, kit_claim_by(node, 0), &until)); /* Its own. */
    node->ledger.summed = false;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    node->ledger.summed = true;
    come_near(node, 2);
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    node->parts->site = (dp_part_site){0};
    sum->bad = true;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    sum->bad = false;
    sum->mine = true;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    sum->mine = false;
    sum->in_use = true;
    assert_true(dp_part_take_awaits(node, 0, far, &until));
    assert_int_equal(until.us, DP_NEVER.us); /* It is in the sum. */
    sum->in_use = false;
    node->now.us += 1000 * DP_SECOND;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    kit_close(world);
}

static void a_sum_that_is_not_here_is_waited_for_while_its_collector_lives(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);
    dp_time until;
    dp_member *collector = (dp_member *)(uintptr_t)dp_members_at(node->members, index_of(node, 1));

    (void)state;
    sum->held = false;
    assert_true(dp_part_take_awaits(node, 0, kit_claim_by(node, 2), &until));
    collector->state = DP_MEMBER_DEAD;
    assert_false(dp_part_take_awaits(node, 0, kit_claim_by(node, 2), &until));
    sum->held = true;
    assert_true(dp_part_take_awaits(node, 0, kit_claim_by(node, 2), &until));
    collector->state = DP_MEMBER_ALIVE;
    kit_close(world);
}

static void what_a_hint_names_is_waited_for_as_long_as_one_in_line_has(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    bool look = false;
    dp_time until;
    const dp_claim *far = kit_claim_by(node, 2);

    (void)state;
    assert_int_equal(hint(node, 2, node->ledger.round + 1, 0, &look), DP_OK);
    node->parts->ripe_at = (dp_time){0};
    assert_true(dp_part_take_awaits(node, 0, far, &until));
    assert_int_equal(until.us, DP_NEVER.us);
    const dp_part_wait wait = dp_part_round_wait(node, 0);
    node->parts->ripe_at = (dp_time){node->now.us - dp_part_wait_line(&wait) + 1};
    assert_true(dp_part_take_awaits(node, 0, far, &until));
    assert_int_equal(until.us, node->now.us + 1);
    node->parts->ripe_at.us--;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    node->parts->ripe_at = node->now;
    node->parts->hints[0].told.part = 1;
    assert_false(dp_part_take_awaits(node, 0, far, &until));
    node->parts->hints[0].told.part = 0;
    node->parts->hints[0].told.n = 1; /* Of whoever is first in it alone. */
    const bool first = dp_peer_equal(&node->parts->hints[0].told.peers[0], &far->ready.peer);
    assert_int_equal(dp_part_take_awaits(node, 0, far, &until), first);
    kit_close(world);
}

static void a_sum_has_moved_when_more_of_it_has_come(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_sum *sum = held(node);

    (void)state;
    sum->held = true;
    sum->moved = (dp_time){5};
    sum->came = 7;
    choose(node);
    assert_int_equal(sum->moved.us, node->now.us);
    assert_int_equal(sum->came, 8);
    sum->moved = (dp_time){5};
    choose(node);
    assert_int_equal(sum->moved.us, 5);
    sum->held = false;
    choose(node);
    assert_int_equal(sum->moved.us, 5);
    assert_int_equal(sum->came, 0);
    kit_close(world);
}

/* Nor may an object be in two of them, under two names. */
static void a_sum_with_an_object_that_is_in_another_is_bad(void **state)
{
    (void)state;
    for (uint32_t same = 0; same < 2; same++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_sum *sum = held(node);
        sum->held = sum->checked = true;
        sum->word.n = 1;
        dp_sum *second = &node->parts->sums[node->parts->n_sums++];
        *second = *sum;
        const uint32_t first = kit_index(&sum->word.sources[0].peer);
        second->word.owner = kit_peer(2);
        second->word.sources[0] = (dp_part_source){
            .peer = kit_peer(3 - first), .root = kit_claim_by(node, 3 - first)->ready.root};
        if (same == 1) {
            kit_claim_by(node, 1)->ready.parts.refs[0].root =
                kit_claim_by(node, 2)->ready.parts.refs[0].root;
        }
        choose(node);
        assert_true(sum->in_use && !sum->bad);
        assert_int_equal(second->in_use, same == 0);
        assert_int_equal(second->bad, same == 1);
        kit_close(world);
    }
}

/* A sum stands where its first contribution would, with the weights of all in it. */
static void a_part_is_added_up_from_sums_and_from_objects_that_are_in_none(void **state)
{
    (void)state;
    for (uint32_t apart = 0; apart < 3; apart++) { /* No sum, one of two, two of one. */
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_duty *duty = &node->parts->duties[0];
        uint32_t chosen[3];
        unsigned __int128 w[3];
        unsigned __int128 all = 0;
        for (uint32_t i = 0; i < 3; i++) { /* In order of peer, as kit_peer is. */
            const dp_claim *claim = kit_claim_by(node, i);
            chosen[i] = (uint32_t)(claim - node->round->claims);
            w[i] = dp_part_round_term(node, claim, 0).w;
            all += w[i];
        }
        for (uint32_t k = 0; k < apart; k++) {
            dp_sum *sum = &node->parts->sums[k];
            *sum = (dp_sum){.word = word_of(node), .in_use = true};
            sum->word.owner = kit_peer(apart == 1 ? 2 : 1 + k);
            sum->word.root.bytes[0] = (uint8_t)(60 + k);
            sum->word.bytes = 70 + k;
            memset(sum->word.signature, (int)(80 + k), sizeof sum->word.signature);
            sum->word.n = apart == 1 ? 2 : 1;
            if (apart == 2) {
                sum->word.sources[0].peer = kit_peer(1 + k);
            }
        }
        node->parts->n_sums = apart;
        dp_out_begin(&node->out, world->actions);
        dp_part_round_reduce_chosen(node, 0, chosen, 3);
        const dp_action *reduce = kit_find(world->actions, DP_DO_REDUCE);
        assert_non_null(reduce);
        assert_true(duty->reducing);
        assert_int_equal(duty->n, 3);
        assert_int_equal(duty->n_sums, apart);
        assert_int_equal(reduce->u.reduce.n_items, apart == 1 ? 2 : 3);
        assert_int_equal(reduce->u.reduce.round, node->ledger.round + 1);
        assert_int_equal(reduce->u.reduce.part, 0);
        assert_int_equal(reduce->u.reduce.first, node->ledger.layout.cuts.first[0]);
        assert_int_equal(reduce->u.reduce.end, dp_part_end(&node->ledger.layout.cuts, 0));
        assert_true(dp_hash_equal(&reduce->u.reduce.items[0].root,
                                  &kit_claim_by(node, 0)->ready.parts.refs[0].root));
        for (uint32_t k = 0; k < apart; k++) {
            const dp_apply_item *item = &reduce->u.reduce.items[1 + k];
            const unsigned __int128 own = apart == 1 ? w[1] + w[2] : w[1 + k];
            assert_int_equal(item->root.bytes[0], 60 + k);
            assert_int_equal(item->bytes, 70 + k);
            assert_int_equal(item->q, dp_weight_share(own, DP_CLIP_ONE, all));
            assert_int_equal(duty->sums[k].from, apart == 1 ? 6 : 2U << k);
            assert_int_equal(duty->sums[k].collector, apart == 1 ? 2 : 1 + k);
            assert_int_equal(duty->sums[k].bytes, 70 + k);
            assert_int_equal(duty->sums[k].root.bytes[0], 60 + k);
            assert_int_equal(duty->sums[k].signature[5], 80 + k);
        }
        for (uint32_t i = 0; i < 3; i++) {
            const dp_claim *claim = kit_claim_by(node, i);
            assert_true(dp_peer_equal(&duty->sources[i].peer, &claim->ready.peer));
            assert_true(dp_hash_equal(&duty->sources[i].root, &claim->ready.root));
        }
        node->parts->n_sums = 0;
        kit_close(world);
    }
}

/* Known by a record alone it does not count as told, until its owner says it. */
static void a_word_that_is_known_counts_as_told_once_its_owner_has_said_it(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_part_word word = word_of(node);

    (void)state;
    node->parts->n_results = 0;
    node->changed = false;
    dp_part_round_word(node, &word, true);
    assert_int_equal(node->parts->n_results, 1);
    assert_true(node->parts->results[0].evidence && node->changed);
    assert_int_equal(node->parts->results[0].since.us, node->now.us);
    dp_part_round_word(node, &word, true);
    assert_true(node->parts->results[0].evidence);
    dp_part_round_word(node, &word, false);
    assert_false(node->parts->results[0].evidence);
    dp_part_round_word(node, &word, true);
    assert_false(node->parts->results[0].evidence);
    assert_int_equal(node->parts->n_results, 1);
    node->parts->n_results = 0;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hint_counts_for_this_round_of_a_run_with_sums_and_its_owner),
        cmocka_unit_test(
            a_hint_of_one_near_or_whose_sum_is_known_or_one_too_many_is_not_waited_for),
        cmocka_unit_test(the_word_of_a_sum_counts_for_this_round_and_its_owner),
        cmocka_unit_test(a_sum_that_is_one_too_many_is_not_kept),
        cmocka_unit_test(a_sum_that_is_here_is_checked_once_all_in_it_is_known),
        cmocka_unit_test(a_sum_is_bad_if_it_does_not_decode_is_too_large_or_of_another_size),
        cmocka_unit_test(a_sum_is_used_if_it_is_whole_good_and_all_in_it_may_be_listed),
        cmocka_unit_test(of_two_sums_with_one_contribution_the_first_is_used),
        cmocka_unit_test(a_sum_of_two_publications_that_are_one_object_is_bad),
        cmocka_unit_test(the_objects_of_a_sum_are_waited_for_while_it_comes),
        cmocka_unit_test(a_sum_that_is_not_here_is_waited_for_while_its_collector_lives),
        cmocka_unit_test(what_a_hint_names_is_waited_for_as_long_as_one_in_line_has),
        cmocka_unit_test(a_sum_has_moved_when_more_of_it_has_come),
        cmocka_unit_test(a_sum_with_an_object_that_is_in_another_is_bad),
        cmocka_unit_test(a_part_is_added_up_from_sums_and_from_objects_that_are_in_none),
        cmocka_unit_test(a_word_that_is_known_counts_as_told_once_its_owner_has_said_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
