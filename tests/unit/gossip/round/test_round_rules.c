/* The rules of a round at a voter, one at a time: which READYs, holdings and offers it takes, for
 * whom it waits, and when it closes. */
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/round/claim.h"
#include "gossip/round/deadline.h"
#include "gossip/round/kind.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/claim_kit.h"

enum { OTHER = 3 /* of four members the one that does not vote */ };

/* Node 0 of three voters and another member, which does not train; it knows no update. */
static kit_world *begin(void)
{
    kit_world *world = kit_together(4);
    dp_node *node = world->nodes[0].node;

    for (uint32_t i = 0; i < 4; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    const dp_peer other = kit_peer(OTHER);
    assert_int_equal(dp_ledger_voter(&node->ledger, &other), DP_NOBODY);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return world;
}

/* ---- READY ---- */

static dp_ready ready_by(const dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);
    const dp_lease *lease = dp_ledger_lease(&node->ledger, &who);

    return (dp_ready){.peer = who,
                      .round = node->ledger.round + 1,
                      .base = node->ledger.base,
                      .root = {{(uint8_t)peer, 7}},
                      .bytes = 100,
                      .tokens = 5,
                      .steps = 1,
                      .reach = {.leased = lease->reach.leased, .own = lease->reach.own + 10},
                      .state_root = node->standing.state_root};
}

static dp_status hears(dp_node *node, uint32_t peer, const dp_ready *told)
{
    uint8_t room[1024];
    dp_ready ready = *told;
    const dp_crypto crypto = kit_crypto(peer);
    dp_writer writer = dp_writer_of(room, sizeof room);

    assert_true(dp_ready_sign(&ready, &crypto, &node->run, &node->ledger.fork));
    dp_ready_msg_write(&writer, &ready);
    return dp_round_message(node, DP_MSG_READY, dp_view_of(room, writer.size), NULL);
}

static void a_ready_is_taken_once_and_passed_on_by_a_voter(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_ready ready = ready_by(node, OTHER);

    (void)state;
    assert_int_equal(hears(node, OTHER, &ready), DP_OK);
    assert_int_equal(node->round->n_claims, 1);
    const dp_claim *claim = &node->round->claims[0];
    assert_false(claim->evidence || claim->held || claim->checked);
    assert_int_equal(claim->told_at.us, node->now.us);
    assert_true(dp_hash_equal(&claim->ready.root, &ready.root));
    assert_non_null(kit_find(world->actions, DP_DO_NOTE));
    assert_true(node->changed);
    const uint32_t count = world->actions->count;
    assert_int_equal(hears(node, OTHER, &ready), DP_OK);
    ready.root.bytes[0]++; /* Another one of the same member. */
    assert_int_equal(hears(node, OTHER, &ready), DP_OK);
    assert_int_equal(node->round->n_claims, 1);
    assert_int_equal(world->actions->count, count);
    kit_close(world);
}

static uint32_t readys_sent(const kit_world *world, uint32_t to)
{
    const dp_peer peer = kit_peer(to);
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *const action = &world->actions->items[i];
        n += action->type == DP_DO_SEND && dp_peer_equal(&action->u.send.peer, &peer) &&
                     dp_msg_type_of(action->u.send.bytes) == DP_MSG_READY
                 ? 1
                 : 0;
    }
    return n;
}

/* The READY of a voter goes on to the voters that say that they do not hear it, and to no other. */
static void a_ready_of_a_voter_goes_to_the_voters_that_do_not_hear_it(void **state)
{
    enum { AUTHOR = 1, DEAF = 2 };
    (void)state;
    for (uint32_t deaf = 0; deaf < 2; deaf++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        const dp_peer author = kit_peer(AUTHOR);
        const dp_peer other = kit_peer(DEAF);
        const uint32_t by = dp_ledger_voter(&node->ledger, &author);
        const uint32_t to = dp_ledger_voter(&node->ledger, &other);
        const dp_ready ready = ready_by(node, AUTHOR);
        assert_true(by != DP_NOBODY && to != DP_NOBODY);
        node->beat.voters[to].heard = (uint8_t)(deaf == 1 ? ~(1U << by) : 1U << by);
        assert_int_equal(hears(node, AUTHOR, &ready), DP_OK);
        assert_int_equal(readys_sent(world, DEAF), deaf);
        assert_int_equal(readys_sent(world, AUTHOR), 0);
        kit_close(world);
    }
}

static void a_ready_that_no_record_may_list_is_refused(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_ready good = ready_by(node, OTHER);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &good.peer)];

    (void)state;
    for (uint32_t what = 0; what < 6; what++) {
        dp_ready ready = good;
        const uint32_t caps = entry->caps;
        dp_status wanted = DP_DENIED;
        if (what == 0) {
            entry->caps &= ~(uint32_t)DP_CAP_TRAIN;
        } else if (what == 1) {
            ready.steps = 0;
        } else if (what == 2) {
            ready.reach.own = entry->lease.reach.own; /* It went over no sample. */
        } else if (what == 3) {
            ready.bytes = dp_manifest_update_bytes_max(&node->manifest) + 1;
        } else if (what == 4) {
            ready.round++;
            wanted = DP_OK; /* Early: it is told again. */
        } else {
            ready.base.bytes[0] ^= 1;
            wanted = DP_OK;
        }
        assert_int_equal(hears(node, OTHER, &ready), wanted);
        assert_int_equal(node->round->n_claims, 0);
        entry->caps = caps;
    }
    kit_close(world);
}

/* Known from a record alone until its READY comes. */
static void a_claim_met_in_a_record_counts_as_told_once_its_ready_comes(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_ready ready = ready_by(node, OTHER);

    (void)state;
    dp_round_ready(node, &ready, true, false);
    assert_int_equal(node->round->n_claims, 1);
    assert_true(node->round->claims[0].evidence);
    assert_null(dp_round_claim_of(node, &ready.peer));
    dp_round_ready(node, &ready, true, false);
    assert_int_equal(node->round->n_claims, 1);
    assert_true(node->round->claims[0].evidence);
    node->changed = false;
    assert_int_equal(hears(node, OTHER, &ready), DP_OK);
    assert_int_equal(node->round->n_claims, 1);
    assert_false(node->round->claims[0].evidence);
    assert_true(dp_round_claim_of(node, &ready.peer) == &node->round->claims[0]);
    assert_true(node->changed);
    kit_close(world);
}

static void a_record_may_name_another_update_of_a_member_than_it_told_here(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_ready ready = ready_by(node, OTHER);

    (void)state;
    dp_round_ready(node, &ready, false, false);
    const dp_hash told = ready.root;
    ready.root.bytes[0]++;
    dp_round_ready(node, &ready, false, false);
    assert_int_equal(node->round->n_claims, 1);
    dp_round_ready(node, &ready, true, false);
    assert_int_equal(node->round->n_claims, 2);
    assert_true(node->round->claims[1].evidence);
    assert_true(dp_hash_equal(&dp_round_claim_of(node, &ready.peer)->ready.root, &told));
    node->round->n_claims = node->round->claims_max;
    ready.root.bytes[0]++;
    dp_round_ready(node, &ready, true, false); /* There is no room at all. */
    assert_int_equal(node->round->n_claims, node->round->claims_max);
    node->round->n_claims = 0;
    kit_close(world);
}

/* ---- HAVE, VOTER_OK ---- */

static dp_status has(dp_node *node, uint32_t voter, uint64_t round, const dp_hash *root,
                     const dp_peer *from)
{
    uint8_t room[1024];
    dp_have_msg have = {.voter = kit_peer(voter), .round = round, .n = 1, .roots = {*root}};
    const dp_crypto crypto = kit_crypto(voter);
    dp_writer writer = dp_writer_of(room, sizeof room);

    assert_true(dp_have_sign(&have, &crypto, &node->run));
    dp_have_msg_write(&writer, &have);
    return dp_round_message(node, DP_MSG_HAVE, dp_view_of(room, writer.size), from);
}

static void a_holding_counts_for_its_voter_in_its_round(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_claim *claim = kit_claim(node, OTHER, 1);
    const dp_peer voter = kit_peer(1);
    const uint32_t bit = 1U << dp_ledger_voter(&node->ledger, &voter);
    const uint64_t round = node->ledger.round + 1;

    (void)state;
    assert_int_equal(has(node, 1, round + 1, &claim->ready.root, &voter), DP_OK);
    assert_int_equal(has(node, 1, round - 1, &claim->ready.root, &voter), DP_OK);
    assert_int_equal(has(node, OTHER, round, &claim->ready.root, NULL), DP_OK);
    assert_int_equal(claim->have, 0);
    assert_int_equal(has(node, 1, round, &claim->ready.root, &voter), DP_OK);
    assert_int_equal(claim->have, bit);
    kit_close(world);
}

static dp_status offers(dp_node *node, uint32_t peer, const dp_hash *head, bool forged)
{
    uint8_t room[512];
    dp_voter_ok_msg offer = {.peer = kit_peer(peer), .head = *head};
    const dp_crypto crypto = kit_crypto(peer);
    dp_writer writer = dp_writer_of(room, sizeof room);

    kit_vote_key(peer, offer.key);
    assert_true(dp_voter_ok_sign(&crypto, &node->run, &offer.head, offer.key, offer.signature));
    offer.signature[3] ^= forged ? 1 : 0;
    dp_voter_ok_msg_write(&writer, &offer);
    return dp_round_message(node, DP_MSG_VOTER_OK, dp_view_of(room, writer.size), NULL);
}

static void an_offer_to_vote_is_kept_once_if_it_is_for_the_head_and_by_one_that_may(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_hash head = node->ledger.head;
    const dp_hash other = {{9}};
    const dp_peer peer = kit_peer(OTHER);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &peer)];
    const uint32_t caps = entry->caps;

    (void)state;
    node->round->n_offers = 0;
    assert_int_equal(offers(node, OTHER, &other, false), DP_OK);
    entry->caps &= ~(uint32_t)DP_CAP_VOTE;
    assert_int_equal(offers(node, OTHER, &head, false), DP_OK);
    entry->caps = caps;
    assert_int_equal(offers(node, 5, &head, false), DP_OK); /* No member. */
    assert_int_equal(node->round->n_offers, 0);
    assert_int_equal(offers(node, OTHER, &head, true), DP_BADSIG);
    assert_int_equal(node->round->n_offers, 0);
    assert_int_equal(offers(node, OTHER, &head, false), DP_OK);
    assert_int_equal(offers(node, OTHER, &head, false), DP_OK);
    assert_int_equal(node->round->n_offers, 1);
    assert_true(dp_peer_equal(&node->round->offers[0].peer, &peer));
    node->round->n_offers = DP_OFFERS_MAX;
    assert_int_equal(offers(node, 2, &head, false), DP_OK);
    assert_int_equal(node->round->n_offers, DP_OFFERS_MAX);
    node->round->n_offers = 0;
    kit_close(world);
}

/* ---- checks ---- */

static void no_check_is_begun_beyond_the_most_at_a_time(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_hash root = {{5}};

    (void)state;
    dp_node_hold(node, &root, 10);
    node->round->checks = 0;
    assert_true(dp_round_may_check(node));
    for (uint32_t i = 0; i < DP_CHECKS_MAX; i++) {
        assert_true(dp_round_may_check(node));
        dp_round_begin_check(node, &root);
        assert_int_equal(node->round->checks, i + 1);
        assert_int_equal(node->round->check_bytes, 10 * (i + 1));
    }
    assert_false(dp_round_may_check(node));
    node->round->checks = 0;
    dp_round_begin_check(node, &root); /* Of those before nothing is in memory any more. */
    assert_int_equal(node->round->check_bytes, 10);
    node->round->checks = 0;
    kit_close(world);
}

/* ---- a new slot ---- */

/* A late update may be listed by the next record, so it keeps its place, among those that do; one
 * of an earlier round or of another chain does not. */
static void of_a_new_round_only_claims_that_its_record_may_list_are_kept(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;
    const dp_hash base_before = {{4, 4}};

    (void)state;
    const dp_peer late = kit_peer(5 % 4);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &late)];
    node->ledger.has_before = true;
    node->ledger.base_before = base_before;
    entry->included = entry->admitted_round = node->ledger.round - 1;
    for (uint32_t i = 0; i < 6; i++) {
        kit_claim(node, i % 4, (uint8_t)(i + 1))->have = 7;
    }
    round->claims[0].ready.round--; /* Of the round before, after another state. */
    round->claims[1].ready.base.bytes[0] ^= 1;
    round->claims[3].ready.round -= 2;
    round->claims[5].ready.round--;
    round->claims[5].ready.base = base_before;
    assert_true(dp_ledger_may_be_stale(&node->ledger, &round->claims[5].ready.peer));
    dp_round_open_slot(node, false); /* Of the same round. */
    assert_int_equal(round->n_claims, 6);
    assert_int_equal(round->claims[0].have, 0); /* Bits are by voter of the slot. */
    dp_round_open_slot(node, true);
    assert_int_equal(round->n_claims, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t was = i == 0 ? 2 : i == 1 ? 4 : 5;
        const dp_peer peer = kit_peer(was % 4);
        assert_int_equal(round->claims[i].ready.root.bytes[0], was + 1);
        assert_true(dp_round_claim_of(node, &peer) != NULL);
    }
    const dp_peer gone = kit_peer(3);
    assert_null(dp_round_claim_of(node, &gone));
    kit_close(world);
}

static void a_slot_begins_with_no_time_count_or_offer_of_the_one_before(void **state)
{
    (void)state;
    for (uint32_t same = 0; same < 2; same++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_round *round = node->round;
        const dp_time past = {node->now.us - 1000};
        round->slot_opened = round->close_at = round->state_told = round->bid_at = past;
        round->ahead_since = round->enough_at = round->opened = round->began = past;
        round->began_before.us = past.us - 1000;
        round->bids = round->n_offers = 3;
        round->judged.bytes[0] = 1;
        round->states[1] = (dp_state_vote){.known = true, .round = node->ledger.round};
        round->states[2] = (dp_state_vote){.known = true, .round = node->ledger.round - 1};
        for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
            round->voter_seen[i] = past;
        }
        round->n_voters -= same == 0 ? 1 : 0;
        node->changed = false;
        dp_round_open_slot(node, same == 0);
        assert_int_equal(round->slot_opened.us, node->now.us);
        assert_int_equal(round->close_at.us + round->state_told.us + round->bid_at.us, 0);
        assert_int_equal(round->ahead_since.us + round->bids + round->n_offers, 0);
        assert_true(dp_hash_is_zero(&round->judged));
        assert_int_equal(round->enough_at.us, same == 0 ? 0 : past.us);
        assert_int_equal(round->opened.us, same == 0 ? 0 : past.us);
        assert_int_equal(round->began.us, same == 0 ? node->now.us : past.us);
        assert_int_equal(round->began_before.us, same == 0 ? past.us : past.us - 1000);
        assert_int_equal(round->n_voters, node->ledger.n_voters);
        assert_memory_equal(round->voters, node->ledger.voters, sizeof round->voters);
        /* Indexes of other voters: what was known of them is not known of these. */
        assert_int_equal(round->states[1].known, same);
        assert_false(round->states[2].known);
        assert_int_equal(round->voter_seen[0].us, same == 0 ? node->now.us : past.us);
        assert_int_equal(round->voter_seen[DP_VOTERS_MAX - 1].us,
                         same == 0 ? node->now.us : past.us);
        assert_true(node->changed);
        assert_int_equal(node->repeat_at.us, node->now.us);
        kit_close(world);
    }
}

/* ---- voters, and the close ---- */

static void a_voter_is_seen_while_it_is_alive_and_this_node_always(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->now.us += 10 * DP_SECOND;
    const dp_peer dead = kit_peer(1);
    node->members->rows[dp_node_member_index(node, &dead)].member.state = DP_MEMBER_SUSPECT;
    const uint32_t voter = dp_ledger_voter(&node->ledger, &dead);
    memset(node->round->voter_seen, 0, sizeof node->round->voter_seen);
    dp_round_watch(node);
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        assert_int_equal(node->round->voter_seen[i].us, i == voter ? 0 : node->now.us);
    }
    node->members->rows[dp_node_member_index(node, &dead)].member.state = DP_MEMBER_ALIVE;
    kit_close(world);
}

static void a_member_that_is_listed_or_does_not_work_has_missed_no_round(void **state)
{
    static dp_record record;
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_peer one = kit_peer(1);
    const dp_peer two = kit_peer(2);
    uint8_t *missed = node->round->missed;
    const uint32_t first = dp_node_member_index(node, &one);
    const uint32_t second = dp_node_member_index(node, &two);

    (void)state;
    record.kind = DP_RECORD_ROUND;
    record.round = node->ledger.round + 1;
    record.n_listed = 1;
    record.listed[0].peer = one;
    missed[first] = missed[second] = 7;
    assert_false(dp_round_works(node, second)); /* All are paused. */
    dp_round_count_missed(node, &record);
    assert_int_equal(missed[first], 0);
    assert_int_equal(missed[second], 0);
    const uint32_t self = node->commit->self;
    node->commit->self = DP_NOBODY;
    missed[first] = 7;
    dp_round_count_missed(node, &record); /* One that does not vote keeps no count. */
    assert_int_equal(missed[first], 7);
    node->commit->self = self;
    kit_close(world);
}

static void a_missed_round_is_counted_up_to_the_most_that_a_byte_holds(void **state)
{
    static dp_record record;
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_peer two = kit_peer(2);
    uint8_t *missed = node->round->missed;
    const uint32_t second = dp_node_member_index(node, &two);
    dp_member *row = (dp_member *)(uintptr_t)dp_members_at(node->members, second);

    (void)state;
    record.kind = DP_RECORD_ROUND;
    record.round = node->ledger.round + 1;
    record.n_listed = 0;
    row->has_summary = true;
    row->summary.has_trainer = true;
    row->summary.round = node->ledger.round;
    row->summary.mode = DP_MODE_SYNC;
    row->summary.step_us = 1000;
    assert_true(dp_round_works(node, second));
    missed[second] = UINT8_MAX - 1;
    dp_round_count_missed(node, &record);
    assert_int_equal(missed[second], UINT8_MAX);
    dp_round_count_missed(node, &record);
    assert_int_equal(missed[second], UINT8_MAX);
    kit_close(world);
}

static void the_time_of_a_round_is_measured_from_its_opening(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;

    (void)state;
    const uint64_t average = round->deadline.average_us = round->deadline.round_us;
    round->opened = (dp_time){0};
    dp_round_measure(node);
    assert_int_equal(round->deadline.average_us, average);
    round->opened = (dp_time){node->now.us - 2 * average};
    dp_round_measure(node);
    assert_int_equal(round->deadline.average_us, (3 * average + 2 * average) / 4);
    kit_close(world);
}

/* The stored chain cannot grow, or this voter has nothing to say: it neither closes nor bids. */
static void a_voter_that_cannot_decide_closes_no_round(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        const uint32_t self = node->commit->self;
        node->round->close_at = node->now;
        node->round->bid_at = (dp_time){0};
        if (what == 0) {
            node->chain->op = 77;
        } else if (what == 1) {
            node->chain->failed = true;
        } else if (what == 2) {
            node->halted = true;
        } else if (what == 3) {
            node->commit->key_lost = true;
        } else if (what == 4) {
            node->commit->decided = true;
        } else if (what == 5) {
            node->commit->self = DP_NOBODY;
        }
        if (what != 4) {
            dp_round_tick(node);
        }
        assert_int_equal(node->round->bid_at.us != 0, what == 6); /* Then it arms a bid. */
        node->chain->op = 0;
        node->chain->failed = node->halted = node->commit->key_lost = false;
        node->commit->decided = false;
        node->commit->self = self;
        kit_close(world);
    }
}

/* The checks that a trainer owed when it went. */
static void an_update_that_was_not_checked_is_once_a_trainer_is_up_again(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_event up = {.type = DP_EV_TRAINER_UP, .now = node->now, .wall_ms = node->wall_ms};

    (void)state;
    const dp_claim *checked = kit_claim(node, OTHER, 1);
    dp_claim *waits = kit_claim(node, 2, 2);
    waits->checked = false;
    for (uint32_t i = 0; i < 2; i++) {
        node->round->claims[i].size = node->round->claims[i].ready.bytes = 8;
        dp_node_hold(node, &node->round->claims[i].ready.root, 8);
    }
    node->standing.state = DP_TRAINER_OFF;
    node->round->checks = 0;
    node->repeat_at = (dp_time){node->now.us + DP_SECOND};
    dp_node_step(node, &up, world->actions);
    assert_true(waits->checking);
    assert_false(checked->checking);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_is_taken_once_and_passed_on_by_a_voter),
        cmocka_unit_test(a_ready_of_a_voter_goes_to_the_voters_that_do_not_hear_it),
        cmocka_unit_test(a_ready_that_no_record_may_list_is_refused),
        cmocka_unit_test(a_claim_met_in_a_record_counts_as_told_once_its_ready_comes),
        cmocka_unit_test(a_record_may_name_another_update_of_a_member_than_it_told_here),
        cmocka_unit_test(a_holding_counts_for_its_voter_in_its_round),
        cmocka_unit_test(an_offer_to_vote_is_kept_once_if_it_is_for_the_head_and_by_one_that_may),
        cmocka_unit_test(no_check_is_begun_beyond_the_most_at_a_time),
        cmocka_unit_test(of_a_new_round_only_claims_that_its_record_may_list_are_kept),
        cmocka_unit_test(a_slot_begins_with_no_time_count_or_offer_of_the_one_before),
        cmocka_unit_test(a_voter_is_seen_while_it_is_alive_and_this_node_always),
        cmocka_unit_test(a_member_that_is_listed_or_does_not_work_has_missed_no_round),
        cmocka_unit_test(a_missed_round_is_counted_up_to_the_most_that_a_byte_holds),
        cmocka_unit_test(the_time_of_a_round_is_measured_from_its_opening),
        cmocka_unit_test(a_voter_that_cannot_decide_closes_no_round),
        cmocka_unit_test(an_update_that_was_not_checked_is_once_a_trainer_is_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
