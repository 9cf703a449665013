/* When a node works for a part, one rule at a time: whose part it takes up and when, what it makes
 * of the trainer's answer, and what it tells again. test_part_round.c has whole rounds. */
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "tests/unit/gossip/kit/part_kit.h"

/* Node 0 of three, of which each owns the part of its number. Nobody works yet, in a ripe round. */
static kit_world *begin(void)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;

    for (uint32_t i = 0; i < 3; i++) {
        node->ledger.layout.owners[i] = kit_peer(i);
        node->parts->duties[i] = (dp_duty){.works = false};
    }
    node->parts->ripe_at = node->now;
    node->changed = false;
    return world;
}

static dp_member *row_of(dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &who));
}

static void tick_at(kit_world *world, uint64_t us)
{
    dp_node *node = world->nodes[0].node;

    dp_out_begin(&node->out, world->actions);
    node->now.us = us;
    dp_part_round_tick(node);
}

/* ---- taking up ---- */

static void a_node_works_for_its_own_part_at_once_and_for_others_in_line(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_part_round *parts = node->parts;
    const uint64_t ripe = parts->ripe_at.us;

    (void)state;
    tick_at(world, ripe);
    assert_true(parts->duties[0].works && !parts->duties[1].works && !parts->duties[2].works);
    assert_int_equal(parts->duties[0].since.us, ripe);
    /* Before it in line are node 2 for part 2, and nodes 1 and 2 for part 1. */
    for (uint32_t before = 1; before <= 2; before++) {
        const uint32_t part = before == 1 ? 2 : 1;
        const dp_part_wait wait = dp_part_round_wait(node, part);
        const uint64_t due = ripe + 2 * before * dp_part_wait_line(&wait);
        tick_at(world, due - 1);
        assert_false(parts->duties[part].works);
        assert_in_range(parts->wake_at.us, ripe, due); /* It wakes for it. */
        tick_at(world, due);
        assert_true(parts->duties[part].works);
        assert_int_equal(parts->duties[part].since.us, due);
    }
    kit_close(world);
}

static void the_part_of_one_that_is_away_or_has_enough_is_taken_up_at_once(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 8; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_part_round *parts = node->parts;
        row_of(node, 2)->state = what == 1 ? DP_MEMBER_ALIVE : DP_MEMBER_DEAD;
        if (what == 1) { /* It has spoken for as many of others as one works for. */
            for (uint32_t i = 0; i < DP_PARTS_OF_OTHERS_MAX; i++) {
                parts->results[i] = (dp_result){
                    .word = {.owner = kit_peer(2), .part = i, .root = {{50, (uint8_t)i}}}};
            }
            parts->n_results = DP_PARTS_OF_OTHERS_MAX;
        } else if (what == 2) {
            parts->ripe_at = (dp_time){0};
            node->round->enough_at = (dp_time){0};
            row_of(node, 1)->state = DP_MEMBER_SUSPECT;
        } else if (what == 3) {
            parts->duties[2].done = true;
        } else if (what == 4) {
            node->paused = true;
        } else if (what == 5) {
            node->leaving = true;
        } else if (what == 6) {
            node->halted = true;
        } else if (what == 7) {
            node->standing.applied--;
        }
        const uint64_t now = node->now.us;
        tick_at(world, now);
        const bool may = what != 4 && what != 5 && what != 6 && what != 7;
        assert_int_equal(parts->duties[0].works, may);
        if (what != 2) {
            assert_int_equal(parts->duties[2].works, what == 0 || what == 1);
        }
        assert_false(parts->duties[1].works && what != 2);
        node->paused = node->leaving = node->halted = false;
        node->standing.applied += what == 7 ? 1 : 0;
        parts->n_results = 0;
        kit_close(world);
    }
}

/* Each object of a part of another would have to be fetched and let go again. */
static void a_node_works_for_two_parts_of_others_at_most(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_part_round *parts = node->parts;

    (void)state;
    node->ledger.layout.owners[0] = kit_peer(1);
    node->ledger.layout.owners[2] = kit_peer(1);
    row_of(node, 1)->state = row_of(node, 2)->state = DP_MEMBER_DEAD;
    tick_at(world, node->now.us + 3600 * DP_SECOND);
    uint32_t works = 0;
    for (uint32_t p = 0; p < 3; p++) {
        works += parts->duties[p].works ? 1 : 0;
    }
    assert_int_equal(works, DP_PARTS_OF_OTHERS_MAX);
    kit_close(world);
}

/* ---- the trainer's answer ---- */

static void what_the_trainer_has_added_up_is_told_and_one_of_no_use_is_let_go(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_part_round *parts = node->parts;
        dp_duty *duty = &parts->duties[1];
        const dp_claim *claim = kit_claim_by(node, 2);
        dp_event event = {
            .type = DP_EV_REDUCED,
            .u.reduced = {
                .round = node->ledger.round + 1, .part = 1, .root = {{8, 9}}, .bytes = 8}};
        *duty = (dp_duty){.works = true, .reducing = what != 1, .n = 1};
        duty->sources[0] = (dp_part_source){.peer = claim->ready.peer, .root = claim->ready.root};
        event.u.reduced.round -= what == 2 ? 1 : 0;
        event.u.reduced.part = what == 3 ? 3 : 1;
        event.u.reduced.status = what == 4 ? DP_CORRUPT : DP_OK;
        dp_part_round_reduced(node, &event);
        assert_int_equal(duty->done, what == 0 || what == 4);
        assert_int_equal(duty->reducing, what == 2 || what == 3);
        const dp_action *drop = kit_find(world->actions, DP_DO_OBJECT_DROP);
        const dp_action *keep = kit_find(world->actions, DP_DO_OBJECT_KEEP);
        const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
        assert_int_equal(drop != NULL, what >= 1 && what <= 3);
        assert_int_equal(keep != NULL, what == 0);
        assert_int_equal(note != NULL && note->u.note.code == DP_NOTE_REJECTED, what == 4);
        assert_int_equal(parts->n_results, what == 0 ? 1 : 0);
        assert_int_equal(dp_node_holds(node, &event.u.reduced.root), what == 0);
        if (what == 0) {
            const dp_part_word *word = &parts->results[0].word;
            assert_true(dp_peer_equal(&word->owner, &node->self));
            assert_true(dp_hash_equal(&word->root, &event.u.reduced.root));
            assert_true(dp_hash_equal(&word->base, &node->ledger.base));
            assert_int_equal(word->part, 1);
            assert_int_equal(word->bytes, 8);
            assert_int_equal(word->n, 1);
            assert_true(dp_peer_equal(&word->sources[0].peer, &claim->ready.peer));
            assert_false(parts->results[0].evidence);
            assert_int_equal(keep->u.keep.round, node->ledger.round + 1);
            assert_true(dp_hash_equal(&keep->u.keep.root, &event.u.reduced.root));
        }
        parts->n_results = 0;
        kit_close(world);
    }
}

/* ---- again ---- */

static uint32_t told(const kit_world *world, dp_msg_type type)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        n += world->actions->items[i].type == DP_DO_SEND &&
             dp_msg_type_of(world->actions->items[i].u.send.bytes) == type;
    }
    return n;
}

static void a_result_out_of_reach_is_told_by_a_voter_that_lacks_it(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_result *result = &node->parts->results[0];
    const dp_peer near = kit_peer(1);
    const uint32_t voter = dp_ledger_voter(&node->ledger, &near);
    const uint32_t self = node->commit->self;

    (void)state;
    node->parts->n_results = 1;
    for (uint32_t what = 0; what < 8; what++) {
        *result = (dp_result){.word = {.owner = kit_peer(what == 6 ? 0 : 2),
                                       .round = node->ledger.round + 1,
                                       .base = node->ledger.base,
                                       .part = 2,
                                       .root = {{77}},
                                       .bytes = 8}};
        row_of(node, 2)->linked = what == 1;
        result->have = what == 2 || what == 7 ? 1U << voter : 0;
        row_of(node, 1)->linked = what != 7;
        result->held = what == 3;
        result->bad = what == 4;
        node->commit->self = what == 5 ? DP_NOBODY : self;
        dp_out_begin(&node->out, world->actions);
        dp_part_round_repeat(node);
        /* Nobody linked has it; its own one is always told. */
        assert_int_equal(told(world, DP_MSG_PART), what == 0 || what == 6 || what == 7);
    }
    node->commit->self = self;
    row_of(node, 1)->linked = row_of(node, 2)->linked = true;
    node->parts->n_results = 0;
    kit_close(world);
}

/* A voter may never have heard of an author that is gone. */
static void of_a_result_of_its_own_the_authors_that_are_gone_are_told_to_the_voters(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_result *result = &node->parts->results[0];
    const dp_claim *claim = kit_claim_by(node, 2);

    (void)state;
    node->parts->n_results = 1;
    for (uint32_t what = 0; what < 4; what++) {
        *result = (dp_result){.word = {.owner = kit_peer(what == 2 ? 1 : 0),
                                       .round = node->ledger.round + 1,
                                       .base = node->ledger.base,
                                       .part = 0,
                                       .root = {{77}},
                                       .bytes = 8,
                                       .n = 1}};
        result->word.sources[0] =
            (dp_part_source){.peer = claim->ready.peer, .root = claim->ready.root};
        result->word.sources[0].root.bytes[0] ^= what == 3 ? 1 : 0;
        row_of(node, 2)->state = what == 1 ? DP_MEMBER_ALIVE : DP_MEMBER_DEAD;
        dp_out_begin(&node->out, world->actions);
        dp_part_round_repeat(node);
        assert_int_equal(told(world, DP_MSG_READY) > 0, what == 0);
    }
    row_of(node, 2)->state = DP_MEMBER_ALIVE;
    node->parts->n_results = 0;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_works_for_its_own_part_at_once_and_for_others_in_line),
        cmocka_unit_test(the_part_of_one_that_is_away_or_has_enough_is_taken_up_at_once),
        cmocka_unit_test(a_node_works_for_two_parts_of_others_at_most),
        cmocka_unit_test(what_the_trainer_has_added_up_is_told_and_one_of_no_use_is_let_go),
        cmocka_unit_test(a_result_out_of_reach_is_told_by_a_voter_that_lacks_it),
        cmocka_unit_test(of_a_result_of_its_own_the_authors_that_are_gone_are_told_to_the_voters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
