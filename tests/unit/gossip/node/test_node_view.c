/* The view of a node from outside: why the run refuses it, its names for things, and the errors
 * that its own check finds. */
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/node/node.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/part_kit.h"

static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

static void a_newcomer_is_told_why_the_run_will_never_count_it(void **state)
{
    kit_world *world = kit_open(2); /* Not linked: node 1 stays a stranger. */
    dp_node *node = world->nodes[1].node;
    const size_t uses_at = 32 + 4;
    dp_why why;

    (void)state;
    assert_int_equal(dp_node_refused(world->nodes[0].node, &why), DP_OK);
    assert_int_equal(dp_node_refused(node, &why), DP_OK);
    node->credential[uses_at] =
        1; /* One use; the founder, which joined without an invite, has another one. */
    assert_int_equal(dp_node_refused(node, &why), DP_OK);
    memset(&node->ledger.roster[0].invite, 1, sizeof node->ledger.roster[0].invite);
    assert_int_equal(dp_node_refused(node, &why), DP_DENIED);
    assert_string_equal(why.text, "its invite is used up");
    node->credential[uses_at] = 2;
    assert_int_equal(dp_node_refused(node, &why), DP_OK);
    node->ledger.capacity = node->ledger.n_members;
    assert_int_equal(dp_node_refused(node, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "no member is absent"));
    node->ledger.roster[0].admitted_slot = 1; /* As of a member other than the founder, */
    node->ledger.n_voters = 0;                /* which does not vote, */
    node->ledger.round = DP_GAP_MAX + 1;      /* and was away. */
    node->ledger.absent_ms = 4 * 86400000ULL;
    assert_int_equal(dp_node_refused(node, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "free in 4 days"));
    node->ledger.time_ms += node->ledger.absent_ms + 1;
    assert_int_equal(dp_node_refused(node, &why), DP_OK);
    node->credential[0] ^= 1;
    assert_int_equal(dp_node_refused(node, &why), DP_DENIED);
    assert_string_equal(why.text, "its credential is not valid");
    kit_close(world);
}

static void a_member_that_left_is_told_that_it_was_removed(void **state)
{
    kit_world *world = three();
    dp_why why;

    (void)state;
    kit_command(world, 2, DP_COMMAND_LEAVE);
    kit_run_ms(world, 3000);
    assert_int_equal(dp_node_refused(world->nodes[2].node, &why), DP_EXISTS);
    assert_string_equal(why.text, "it was removed from the run");
    assert_int_equal(dp_node_refused(world->nodes[1].node, &why), DP_OK);
    kit_close(world);
}

static bool is_member(const kit_world *world, uint32_t at, uint32_t who)
{
    const dp_peer peer = kit_peer(who);

    return dp_ledger_member(&world->nodes[at].node->ledger, &peer) != NULL;
}

/* Three places for four that come and go. */
static void a_full_run_says_when_and_takes_the_newcomer_in_then(void **state)
{
    kit_world *world = kit_open(4);
    dp_why why;

    (void)state;
    world->manifest.members_max = 3;
    world->manifest.members_absent_s = 8;
    world->manifest.voters_max = 1;
    for (uint32_t i = 0; i < 4; i++) {
        kit_kill(world, i);
        kit_boot(world, i);
    }
    for (uint32_t i = 1; i < 3; i++) {
        kit_link(world, 0, i);
    }
    kit_run_ms(world, 4000);
    assert_true(is_member(world, 0, 1) && is_member(world, 0, 2));
    kit_kill(world, 2);
    kit_link(world, 0, 3);
    kit_link(world, 1, 3);
    kit_run_ms(world, 2000);
    assert_int_equal(dp_node_refused(world->nodes[3].node, &why), DP_TOOBIG);
    dp_ledger *ledger = &world->nodes[3].node->ledger;
    const uint32_t rows = ledger->rows_max;
    ledger->rows_max = ledger->n_roster; /* As after a thousand that have left. */
    assert_int_equal(dp_node_refused(world->nodes[3].node, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "former members, the largest number"));
    ledger->rows_max = rows;
    kit_run_ms(world, 5000); /* It is away for longer than its work would count, */
    assert_false(is_member(world, 0, 3));
    assert_int_equal(dp_node_refused(world->nodes[3].node, &why), DP_TOOBIG);
    kit_run_ms(world, 8000);
    assert_true(is_member(world, 0, 3)); /* and now for as long as the manifest says. */
    assert_false(is_member(world, 0, 2));
    assert_int_equal(dp_node_refused(world->nodes[3].node, &why), DP_OK);
    kit_boot(world, 2);
    kit_link(world, 0, 2);
    kit_link(world, 1, 2);
    kit_run_ms(world, 2000);
    assert_true(kit_look(world, 2).mode != DP_MODE_LEFT);
    assert_int_equal(kit_look(world, 2).slot, kit_look(world, 0).slot);
    assert_int_equal(dp_node_refused(world->nodes[2].node, &why), DP_TOOBIG);
    kit_kill(world, 3);
    kit_run_ms(world, 15000);
    assert_true(is_member(world, 0, 2) && is_member(world, 2, 2));
    kit_close(world);
}

static void members_are_shown_by_index_with_this_node_first(void **state)
{
    kit_world *world = three();
    dp_member_view view;
    uint32_t in_roster = 0;

    (void)state;
    assert_true(dp_node_member(world->nodes[1].node, 0, &view));
    const dp_peer self = kit_peer(1);
    assert_true(dp_peer_equal(&view.peer, &self));
    assert_int_equal(view.round, kit_look(world, 1).applied);
    for (uint32_t i = 0; dp_node_member(world->nodes[1].node, i, &view); i++) {
        in_roster += view.in_roster;
        assert_int_equal(view.state, DP_MEMBER_ALIVE);
        assert_int_equal(view.caps, DP_CAP_ALL);
        assert_true(view.voter);
        const dp_roster_entry *entry = dp_ledger_member(&world->nodes[1].node->ledger, &view.peer);
        assert_true(view.included > 0);
        assert_int_equal(view.included, entry->included);
    }
    assert_int_equal(in_roster, 3);
    assert_false(dp_node_member(world->nodes[1].node, 3, &view));
    kit_close(world);
}

static void everything_has_a_name_and_what_does_not_exist_is_unknown(void **state)
{
    (void)state;
    for (int code = 1; code < DP_NOTE_CODE_COUNT; code++) {
        assert_non_null(dp_note_name((dp_note_code)code));
        assert_string_not_equal(dp_note_name((dp_note_code)code), "unknown");
        for (int other = 1; other < code; other++) {
            assert_string_not_equal(dp_note_name((dp_note_code)code),
                                    dp_note_name((dp_note_code)other));
        }
    }
    assert_string_equal(dp_note_name((dp_note_code)0), "unknown");
    assert_string_equal(dp_note_name(DP_NOTE_CODE_COUNT), "unknown");
    assert_string_equal(dp_mode_name(DP_MODE_JOINING), "joining");
    assert_string_equal(dp_mode_name(DP_MODE_SYNC), "sync");
    assert_string_equal(dp_mode_name(DP_MODE_GOSSIP), "gossip");
    assert_string_equal(dp_mode_name(DP_MODE_PAUSED), "paused");
    assert_string_equal(dp_mode_name(DP_MODE_HALTED), "halted");
    assert_string_equal(dp_mode_name(DP_MODE_LEFT), "left");
    assert_string_equal(dp_mode_name((dp_mode)77), "unknown");
    assert_string_equal(dp_member_state_name(DP_MEMBER_UNKNOWN), "unknown");
    assert_string_equal(dp_member_state_name(DP_MEMBER_ALIVE), "alive");
    assert_string_equal(dp_member_state_name(DP_MEMBER_SUSPECT), "suspect");
    assert_string_equal(dp_member_state_name(DP_MEMBER_DEAD), "dead");
    assert_string_equal(dp_member_state_name(DP_MEMBER_LEFT), "left");
    assert_string_equal(dp_member_state_name((dp_member_state)77), "unknown");
}

/* ---- the check of all parts: each damage is noticed, in words, and nothing else is ---- */

static void damaged(kit_world *world, const char *sentence)
{
    dp_why why = {""};

    assert_int_equal(dp_node_check(world->nodes[0].node, &why), DP_CORRUPT);
    assert_non_null(strstr(why.text, sentence));
}

static void whole(kit_world *world)
{
    dp_why why = {""};

    assert_int_equal(dp_node_check(world->nodes[0].node, &why), DP_OK);
}

static void the_check_notices_a_chain_that_its_parts_do_not_stand_on(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    whole(world);
    node->commit->slot++;
    damaged(world, "the stored vote is for slot");
    node->commit->slot--;
    const uint64_t applied = node->standing.applied;
    node->standing.applied = node->ledger.round + 1;
    damaged(world, "the model is at round");
    node->standing.applied = applied;
    assert_true(node->round->n_claims < node->round->claims_max);
    node->round->claims[node->round->n_claims++].ready.round = 1;
    damaged(world, "a stored contribution is of another round");
    node->round->n_claims--;
    whole(world);
    kit_close(world);
}

static void the_check_notices_votes_that_contradict_themselves_or_the_disk(void **state)
{
    kit_world *world = three();
    dp_commit *commit = world->nodes[0].node->commit;
    const dp_commit_state was = commit->state;
    const dp_commit_state on_disk = commit->durable;

    (void)state;
    commit->state.accepted = commit->state.promised + 1;
    damaged(world, "accepted above promised");
    commit->state = was;
    commit->durable.promised = commit->state.promised + 1;
    damaged(world, "memory behind disk");
    commit->durable = on_disk;
    commit->state.promised = commit->state.accepted = 3;
    commit->state.hash.bytes[0]++;
    commit->accepted.hash = was.hash;
    damaged(world, "accepted record");
    commit->state = was;
    whole(world);
    kit_close(world);
}

static void the_check_notices_a_quorum_of_nobody_and_a_voter_twice(void **state)
{
    kit_world *world = three();
    dp_heartbeat *beat = &world->nodes[0].node->beat;
    const dp_heartbeat was = *beat;

    (void)state;
    beat->n_voters = DP_VOTERS_MAX + 1;
    damaged(world, "out of range");
    *beat = was;
    beat->own = beat->n_voters;
    damaged(world, "out of range");
    *beat = was;
    beat->voters[1] = beat->voters[0];
    damaged(world, "twice in the set");
    *beat = was;
    beat->n_voters = 0;
    beat->own = DP_VOTERS_MAX;
    beat->quorum = true;
    damaged(world, "a quorum without voters");
    *beat = was;
    whole(world);
    kit_close(world);
}

static void the_check_notices_an_exchange_that_its_rows_do_not_bear_out(void **state)
{
    kit_world *world = three();
    dp_mix *mix = world->nodes[0].node->mix;

    (void)state;
    mix->n_outcomes = DP_MIX_OUTCOMES_MAX + 1;
    damaged(world, "outcomes");
    mix->n_outcomes = 1;
    mix->outcomes[0] = (dp_mix_row){.mark = DP_MIX_MARK_DONE};
    damaged(world, "was not decided here");
    mix->n_outcomes = 0;
    mix->state = DP_MIX_PREPARED;
    mix->has_f = false;
    damaged(world, "has no row");
    mix->has_f = true;
    damaged(world, "names no object");
    mix->f.f_root = mix->f.own.root = (dp_hash){{1}};
    mix->f.id = mix->x.id;
    mix->x.initiator = true;
    mix->x.mark = DP_MIX_MARK_ASKED;
    damaged(world, "mark");
    mix->state = DP_MIX_IDLE;
    mix->has_f = false;
    whole(world);
    kit_close(world);
}

static void the_check_notices_members_that_the_table_does_not_count(void **state)
{
    kit_world *world = three();
    dp_members *members = world->nodes[0].node->members;
    dp_row *row = &members->rows[1];
    const dp_row was = *row;
    const uint32_t count = members->count;

    (void)state;
    members->count = members->capacity + 1;
    damaged(world, "rows of");
    members->count = 0;
    damaged(world, "rows of");
    members->count = count;
    members->rows[0].member.state = DP_MEMBER_DEAD;
    damaged(world, "does not hold itself alive");
    members->rows[0].member.state = DP_MEMBER_ALIVE;
    row->member.linked = !row->member.linked;
    damaged(world, "in the wrong sets");
    *row = was;
    row->member.peer.bytes[5] ^= 1;
    damaged(world, "not found under its key");
    *row = was;
    row->member.state = DP_MEMBER_SUSPECT;
    damaged(world, "suspect without accuser");
    *row = was;
    dp_rowset_set(&members->accused, 1, true);
    row->n_accusers = 2;
    row->accusers[0] = row->accusers[1] = (dp_accuser){.peer = kit_peer(2)};
    damaged(world, "an accuser twice");
    dp_rowset_set(&members->accused, 1, false);
    *row = was;
    row->removed = true;
    damaged(world, "removed and not left");
    *row = was;
    members->n_alive++;
    damaged(world, "alive, ");
    members->n_alive--;
    whole(world);
    kit_close(world);
}

static void the_check_notices_fetches_that_do_not_add_up(void **state)
{
    kit_world *world = three();
    dp_picker *picker = world->nodes[0].node->picker;

    (void)state;
    assert_int_equal(picker->n_wanted, 0);
    assert_int_equal(picker->n_flights, 0);
    dp_want *wants = picker->wants;
    wants[0] = (dp_want){.used = true, .n_chunks = 2, .have = {1}};
    damaged(world, "counts 0 chunks and holds 1");
    wants[0].n_have = 1;
    damaged(world, "1 objects wanted, 0 counted");
    wants[1] = (dp_want){.used = true};
    picker->n_wanted = 2;
    picker->queue[0] = 0;
    picker->queue[1] = 1;
    damaged(world, "out of order");
    wants[0].used = wants[1].used = false;
    picker->n_wanted = 0;
    picker->flights[0] = (dp_flight){.used = true};
    damaged(world, "for nothing that is wanted");
    picker->flights[0].used = false;
    picker->n_flights = 1;
    damaged(world, "0 flights, 1 counted");
    picker->n_flights = 0;
    whole(world);
    kit_close(world);
}

static void a_view_has_every_figure_of_its_node(void **state)
{
    kit_world *world = kit_parted(3);
    dp_node *node = world->nodes[0].node;
    dp_node_view view;

    (void)state;
    node->rejected = 31;
    node->ledger.tokens = 32;
    node->train->mixed = 33;
    node->train->diverged = 34;
    node->train->training = false;
    node->chain->listed_last = 35;
    node->proof->culprit = kit_peer(5);
    node->parts->site.n = 36;
    node->parts->results_near = 37;
    node->parts->sums_made = 38;
    node->parts->sums_taken = 39;
    node->picker->n_came = 40;
    node->picker->n_hedged = 41;
    memset(&view, 0xa5, sizeof view);
    dp_node_look(node, &view);
    assert_int_equal(view.mode, DP_MODE_SYNC);
    assert_int_equal(view.slot, node->ledger.slot);
    assert_true(view.slot > 0 && dp_hash_equal(&view.head, &node->ledger.head));
    assert_int_equal(view.round, node->ledger.round);
    assert_int_equal(view.applied, node->standing.applied);
    assert_true(view.applied > 0 && node->standing.has_theta);
    assert_true(dp_hash_equal(&view.state_root, &node->standing.state_root));
    assert_int_equal(view.tokens, 32);
    assert_int_equal(view.members, 3);
    assert_int_equal(view.alive, 3);
    assert_int_equal(view.idle, 0);
    assert_int_equal(view.voters, 3);
    assert_true(view.is_voter && view.quorum && !view.training);
    const dp_peer owner = dp_commit_owner_next(node->commit);
    assert_true(dp_peer_equal(&view.ballot_owner, &owner));
    assert_true(dp_peer_equal(&view.culprit, &node->proof->culprit));
    assert_int_equal(view.listed_last, 35);
    assert_int_equal(view.exchanges, 33);
    assert_int_equal(view.rejected, 31);
    assert_int_equal(view.near, 36);
    assert_int_equal(view.results_near, 37);
    assert_int_equal(view.sums_made, 38);
    assert_int_equal(view.sums_taken, 39);
    assert_int_equal(view.diverged, 34);
    assert_int_equal(view.bytes_waiting, dp_picker_bytes_waiting(node->picker));
    assert_int_equal(view.chunks, 40);
    assert_int_equal(view.chunks_hedged, 41);
    assert_int_equal(view.leaving, DP_LEAVING_NOT);
    node->train->training = true;
    node->standing.has_theta = false;
    node->leaving = true;
    node->standing.state = DP_TRAINER_OFF;
    node->commit->key_lost = true;
    dp_node_look(node, &view);
    assert_true(view.training && dp_hash_is_zero(&view.state_root) && !view.is_voter);
    assert_int_equal(view.idle, 1);
    assert_true(view.leaving != DP_LEAVING_NOT);
    kit_close(world);
}

static void a_view_of_what_is_fetched_counts_bytes_and_holders(void **state)
{
    kit_world *world = three();
    dp_picker *picker = world->nodes[0].node->picker;
    dp_node_view view;

    (void)state;
    picker->wants[0] = (dp_want){.used = true, .size = 5000};
    picker->n_wanted = 1;
    picker->queue[0] = 0;
    picker->flights[0] = (dp_flight){.used = true, .member = 1};
    picker->flights[1] = (dp_flight){.used = true, .member = 2};
    picker->flights[2] = (dp_flight){.used = true, .member = 1};
    dp_node_look(world->nodes[0].node, &view);
    assert_int_equal(view.bytes_waiting, 5000);
    assert_int_equal(view.bytes_wanted, 5000);
    assert_int_equal(view.sources, 2);
    memset(picker->flights, 0, 3 * sizeof picker->flights[0]);
    picker->wants[0].used = false;
    picker->n_wanted = 0;
    kit_close(world);
}

static void a_view_of_the_last_round_tells_when_its_updates_were_here(void **state)
{
    static dp_record record;
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    assert_true(kit_look(world, 0).round > 0 && kit_look(world, 0).held_known);
    dp_round *round = node->round;
    round->opened = dp_time_after(node->now, 1000);
    round->n_claims = 2;
    for (uint32_t i = 0; i < 2; i++) {
        round->claims[i] = (dp_claim){.held_at = dp_time_after(round->opened, 1000 * i)};
        round->claims[i].ready.peer = world->nodes[i].node->self;
        round->claims[i].ready.root.bytes[0] = (uint8_t)(1 + i);
        record.listed[i].peer = round->claims[i].ready.peer;
        record.listed[i].root = round->claims[i].ready.root;
    }
    dp_round_index_claims(node);
    record.n_listed = 2;
    dp_round_measure_held(node, &record);
    assert_true(kit_look(world, 0).held_known && kit_look(world, 0).held_us == 1000);
    record.listed[1].root.bytes[0] = 9; /* Another update of that member: it is not here. */
    dp_round_measure_held(node, &record);
    assert_false(kit_look(world, 0).held_known);
    record.listed[1].root.bytes[0] = 2;
    round->claims[1].held_at = (dp_time){0};
    dp_round_measure_held(node, &record);
    assert_false(kit_look(world, 0).held_known);
    record.n_listed = 1;
    round->opened = (dp_time){0}; /* This node has not opened the round. */
    dp_round_measure_held(node, &record);
    assert_false(kit_look(world, 0).held_known);
    round->n_claims = 0;
    dp_round_index_claims(node);
    kit_close(world);
}

static void a_view_of_a_member_has_every_figure_of_its_row(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    dp_member *member = &node->members->rows[1].member;
    dp_roster_entry *entry = NULL;
    dp_member_view view;

    (void)state;
    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        entry = dp_peer_equal(&node->ledger.roster[i].peer, &member->peer) ? &node->ledger.roster[i]
                                                                           : entry;
    }
    assert_non_null(entry);
    entry->caps = 3;
    entry->included = 51;
    member->caps = 5;
    member->incarnation = 52;
    member->rtt.srtt_us = 53;
    member->summary.round = 54;
    member->summary.step_us = 55;
    member->n_addrs = 2;
    member->addrs[0] = (dp_addr){.family = 4, .ip = {1}, .port = 56};
    member->addrs[1] = (dp_addr){.family = 4, .ip = {2}, .port = 57};
    memset(&view, 0xa5, sizeof view);
    assert_true(dp_node_member(node, 1, &view));
    assert_true(dp_peer_equal(&view.peer, &member->peer));
    assert_int_equal(view.state, DP_MEMBER_ALIVE);
    assert_true(view.linked && view.in_roster && view.voter);
    assert_int_equal(view.caps, 3);
    assert_int_equal(view.incarnation, 52);
    assert_int_equal(view.rtt_us, 53);
    assert_int_equal(view.round, 54);
    assert_int_equal(view.included, 51);
    assert_int_equal(view.step_us, 55);
    assert_int_equal(view.n_addrs, 2);
    assert_memory_equal(view.addrs, member->addrs, sizeof view.addrs);
    node->standing.step_us = 58;
    node->standing.applied = 59;
    assert_true(dp_node_member(node, 0, &view));
    assert_int_equal(view.step_us, 58);
    assert_int_equal(view.round, 59);
    kit_close(world);
}

static void a_row_of_the_roster_is_shown_whole(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    dp_roster_entry *entry = &node->ledger.roster[1];
    dp_roster_view view;

    (void)state;
    entry->invite = (dp_invite_id){{61}};
    entry->invite_above = (dp_invite_id){{62}};
    entry->gone = DP_REMOVE_LEFT;
    assert_true(dp_node_roster(node, 1, &view));
    assert_true(dp_peer_equal(&view.peer, &entry->peer));
    assert_memory_equal(&view.invite, &entry->invite, sizeof view.invite);
    assert_memory_equal(&view.invite_above, &entry->invite_above, sizeof view.invite_above);
    assert_int_equal(view.gone, DP_REMOVE_LEFT);
    assert_true(dp_node_roster(node, 2, &view));
    assert_false(dp_node_roster(node, 3, &view));
    kit_close(world);
}

/* The key with which a member may come; a node that is no member yet knows none of them. */
static void a_member_comes_with_its_key_and_others_only_to_one_that_joins(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    const dp_peer member = kit_peer(1);
    const dp_peer stranger = kit_peer(7);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &member)];
    uint8_t key[32] = {0};

    (void)state;
    memset(entry->x_public, 6, sizeof entry->x_public);
    assert_true(dp_node_admitted(node, &member, key));
    assert_memory_equal(key, entry->x_public, sizeof key);
    assert_false(dp_node_admitted(node, &stranger, key));
    const dp_mode mode = node->mode;
    node->mode = DP_MODE_JOINING;
    memset(key, 9, sizeof key);
    assert_true(dp_node_admitted(node, &stranger, key));
    assert_int_equal(key[0], 9);
    assert_true(dp_node_admitted(node, &member, key));
    assert_int_equal(key[0], 6);
    node->mode = mode;
    assert_string_equal(dp_node_peer_name(node, &stranger), "");
    dp_member *row =
        (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &member));
    memcpy(row->name, "a name", sizeof "a name");
    assert_string_equal(dp_node_peer_name(node, &member), "a name");
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_is_told_why_the_run_will_never_count_it),
        cmocka_unit_test(a_member_that_left_is_told_that_it_was_removed),
        cmocka_unit_test(a_full_run_says_when_and_takes_the_newcomer_in_then),
        cmocka_unit_test(members_are_shown_by_index_with_this_node_first),
        cmocka_unit_test(everything_has_a_name_and_what_does_not_exist_is_unknown),
        cmocka_unit_test(the_check_notices_a_chain_that_its_parts_do_not_stand_on),
        cmocka_unit_test(the_check_notices_votes_that_contradict_themselves_or_the_disk),
        cmocka_unit_test(the_check_notices_a_quorum_of_nobody_and_a_voter_twice),
        cmocka_unit_test(the_check_notices_an_exchange_that_its_rows_do_not_bear_out),
        cmocka_unit_test(the_check_notices_members_that_the_table_does_not_count),
        cmocka_unit_test(the_check_notices_fetches_that_do_not_add_up),
        cmocka_unit_test(a_view_has_every_figure_of_its_node),
        cmocka_unit_test(a_view_of_what_is_fetched_counts_bytes_and_holders),
        cmocka_unit_test(a_view_of_the_last_round_tells_when_its_updates_were_here),
        cmocka_unit_test(a_view_of_a_member_has_every_figure_of_its_row),
        cmocka_unit_test(a_row_of_the_roster_is_shown_whole),
        cmocka_unit_test(a_member_comes_with_its_key_and_others_only_to_one_that_joins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
