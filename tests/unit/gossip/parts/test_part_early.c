/* Parts that are told before their READY, among a few whole nodes. */
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { NODES = 3, OWNER = 0, AUTHOR = 1 }; /* The owner's part is the first. */

/* Nodes that vote, exchange gradients and add up a part each, at the beginning of a round. */
static kit_world *early_world(void)
{
    kit_world *world = kit_open(NODES);

    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS;
    kit_start_anew(world, 5000);
    assert_int_equal(kit_look(world, 0).listed_last, NODES);
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 2000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_run_ms(world, 3 * KIT_STEP_MS);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(kit_look(world, i).round, kit_look(world, 0).round);
        assert_false(dp_train_undecided(world->nodes[i].node));
    }
    const dp_peer owner = kit_peer(OWNER);
    assert_true(dp_peer_equal(&world->nodes[0].node->ledger.layout.owners[0], &owner));
    return world;
}

static uint32_t one_round(kit_world *world)
{
    const uint64_t round = kit_look(world, 0).round;

    for (uint32_t i = 0; i < 2000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_run_ms(world, 3 * KIT_STEP_MS);
    return kit_look(world, 0).listed_last;
}

/* Its trainer has made a part, which is this blob of its own. */
static dp_hash make(kit_world *world, uint32_t node, uint32_t part, uint64_t number, uint64_t round)
{
    kit_node *author = &world->nodes[node];
    const dp_part_cuts *cuts = &author->node->ledger.layout.cuts;
    dp_event event = {.type = DP_EV_EARLY};
    dp_hash leaf;

    author->published = number > author->published ? number : author->published;
    event.u.early.round = round;
    event.u.early.part = part;
    event.u.early.first = cuts->first[part];
    event.u.early.end = dp_part_end(cuts, part);
    event.u.early.root = kit_blob(node, number, &leaf);
    event.u.early.bytes = 8;
    kit_hold(author, &event.u.early.root);
    kit_event_in(world, node, &event);
    return event.u.early.root;
}

static dp_hash make_next(kit_world *world, uint32_t node, uint32_t part)
{
    kit_node *author = &world->nodes[node];

    author->early[part] = author->published + 1;
    return make(world, node, part, author->published + 1, kit_look(world, node).round + 1);
}

static bool has(const kit_world *world, uint32_t node, const dp_hash *root)
{
    return dp_node_holds(world->nodes[node].node, root);
}

static void an_owner_has_a_part_before_its_publication_and_counts_it(void **state)
{
    kit_world *world = early_world();
    const uint64_t round = kit_look(world, 0).round;

    (void)state;
    const dp_hash root = make_next(world, AUTHOR, OWNER);
    kit_drain(world);
    assert_true(has(world, AUTHOR, &root) && has(world, OWNER, &root));
    assert_false(has(world, 2, &root)); /* No business of its. */
    assert_false(dp_train_undecided(world->nodes[AUTHOR].node));
    assert_int_equal(one_round(world), NODES);
    const dp_history_row *row = dp_chain_row(world->nodes[OWNER].node, round + 1);
    assert_true(row != NULL && row->own_taken == dp_part_all(NODES));
    assert_int_equal(one_round(world), NODES);
    assert_false(has(world, AUTHOR, &root) || has(world, OWNER, &root)); /* Of a past round. */
    kit_close(world);
}

/* Else the disk would sweep it away before the publication that names it. */
static void a_part_that_was_made_early_stays_on_the_disk_for_its_round(void **state)
{
    kit_world *world = early_world();

    (void)state;
    const dp_hash root = make_next(world, AUTHOR, OWNER);
    const dp_action *keep = kit_find(world->actions, DP_DO_OBJECT_KEEP);
    assert_non_null(keep);
    assert_true(dp_hash_equal(&keep->u.keep.root, &root));
    assert_int_equal(keep->u.keep.use, DP_USE_BLOB);
    assert_int_equal(keep->u.keep.round, kit_look(world, AUTHOR).round + 1);
    kit_close(world);
}

static void what_the_publication_does_not_have_is_let_go(void **state)
{
    kit_world *world = early_world();

    (void)state;
    const dp_hash root = make_next(world, AUTHOR, OWNER);
    world->nodes[AUTHOR].early[OWNER] = 0; /* The step was dropped, and nothing told of the next. */
    kit_drain(world);
    assert_true(has(world, OWNER, &root));
    assert_int_equal(one_round(world), NODES);
    kit_run_ms(world, 500);
    assert_false(has(world, AUTHOR, &root) || has(world, OWNER, &root));
    kit_close(world);
}

static void a_part_that_changes_is_followed_a_few_times(void **state)
{
    kit_world *world = early_world();
    const dp_peer author = kit_peer(AUTHOR);
    dp_hash roots[2 + DP_EARLY_CHANGES_MAX];

    (void)state;
    for (uint32_t i = 0; i < 2 + DP_EARLY_CHANGES_MAX; i++) {
        roots[i] = make_next(world, AUTHOR, OWNER);
        kit_drain(world);
    }
    kit_run_ms(world, 2 * KIT_STEP_MS); /* The next tick drops the replaced parts. */
    assert_null(dp_round_claim_of(world->nodes[OWNER].node, &author));
    for (uint32_t i = 0; i < 2 + DP_EARLY_CHANGES_MAX; i++) {
        assert_int_equal(has(world, OWNER, &roots[i]), i == DP_EARLY_CHANGES_MAX);
        assert_int_equal(has(world, AUTHOR, &roots[i]), i == DP_EARLY_CHANGES_MAX);
    }
    assert_int_equal(one_round(world), NODES); /* READY names the newest all the same. */
    kit_close(world);
}

static void a_part_of_another_round_or_place_is_not_told_and_goes(void **state)
{
    kit_world *world = early_world();
    kit_node *author = &world->nodes[AUTHOR];
    const uint64_t round = kit_look(world, 0).round;
    dp_event event = {.type = DP_EV_EARLY};

    (void)state;
    const dp_hash old = make(world, AUTHOR, 0, author->published + 1, round);
    assert_true(dp_hash_equal(&author->dropped, &old) && !has(world, AUTHOR, &old));
    event.u.early.round = round + 1;
    event.u.early.part = NODES;
    event.u.early.root = old;
    kit_event_in(world, AUTHOR, &event);
    event.u.early.part = 1; /* Cut otherwise. */
    event.u.early.end = 7;
    kit_event_in(world, AUTHOR, &event);
    kit_drain(world);
    assert_false(has(world, AUTHOR, &old) || has(world, OWNER, &old));
    kit_close(world);
}

static const dp_actions *tell(kit_world *world, const dp_part_early *early)
{
    uint8_t bytes[128];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_part_early_write(&writer, early);
    return kit_tell(world, AUTHOR, OWNER, dp_view_of(bytes, writer.size));
}

static void only_what_an_author_may_say_of_this_round_is_fetched(void **state)
{
    kit_world *world = early_world();
    dp_hash leaf;
    const dp_part_early good = {.round = kit_look(world, 0).round + 1,
                                .base = world->nodes[0].node->ledger.base,
                                .part = 0,
                                .ref = {.root = kit_blob(AUTHOR, 900, &leaf), .bytes = 8}};
    dp_part_early wrong[4] = {good, good, good, good};
    uint8_t bytes[4] = {DP_MSG_EARLY, DP_MSG_VERSION, 0, 0};

    (void)state;
    wrong[0].round--;
    wrong[1].base.bytes[3] ^= 1;
    wrong[2].part = 1; /* Somebody else adds it up. */
    wrong[3].part = NODES;
    for (uint32_t i = 0; i < 4; i++) {
        assert_null(kit_find(tell(world, &wrong[i]), DP_DO_GET_INFO));
    }
    const uint64_t rejected = world->nodes[OWNER].node->rejected;
    (void)kit_tell(world, AUTHOR, OWNER, dp_view_of(bytes, sizeof bytes));
    assert_true(world->nodes[OWNER].node->rejected > rejected);
    assert_non_null(kit_find(tell(world, &good), DP_DO_GET_INFO));
    assert_null(kit_find(tell(world, &good), DP_DO_GET_INFO)); /* It is on its way. */
    assert_int_equal(one_round(world), NODES);                 /* It has never come. */
    assert_false(dp_picker_wants(world->nodes[OWNER].node->picker, &good.ref.root));
    kit_close(world);
}

static void a_hint_that_names_data_of_the_owner_takes_nothing_from_it(void **state)
{
    kit_world *world = early_world();
    dp_node *owner = world->nodes[OWNER].node;
    dp_hash leaf;
    const dp_part_early lie = {.round = owner->ledger.round + 1,
                               .base = owner->ledger.base,
                               .ref = {.root = kit_blob(AUTHOR, 900, &leaf), .bytes = 8}};

    (void)state;
    dp_node_hold(owner, &lie.ref.root, 8); /* A shard, say. */
    assert_null(kit_find(tell(world, &lie), DP_DO_GET_INFO));
    assert_int_equal(one_round(world), NODES);
    kit_run_ms(world, 500);
    assert_true(has(world, OWNER, &lie.ref.root));
    kit_close(world);
}

static void after_its_ready_an_author_tells_nothing_new(void **state)
{
    kit_world *world = early_world();
    dp_node *owner = world->nodes[OWNER].node;
    dp_hash leaf;
    dp_part_early early = {.round = owner->ledger.round + 1,
                           .base = owner->ledger.base,
                           .ref = {.root = kit_blob(AUTHOR, 900, &leaf), .bytes = 8}};
    dp_ready ready = {.peer = kit_peer(AUTHOR),
                      .round = early.round,
                      .base = early.base,
                      .tokens = 100,
                      .steps = 1,
                      .reach = dp_train_reach(world->nodes[AUTHOR].node),
                      .parted = true,
                      .parts = {.n = NODES}};

    (void)state;
    for (uint32_t p = 0; p < NODES; p++) {
        ready.parts.refs[p] = (dp_part_ref){.root = kit_blob(AUTHOR, 910 + p, &leaf), .bytes = 8};
    }
    ready.reach.own += 1000;
    ready.root = dp_part_list_root(&ready.parts);
    ready.bytes = dp_part_list_bytes(&ready.parts);
    assert_non_null(kit_find(tell(world, &early), DP_DO_GET_INFO));
    dp_round_ready(owner, &ready, false, false);
    assert_non_null(dp_round_claim_of(owner, &ready.peer));
    assert_false(dp_picker_wants(owner->picker, &early.ref.root)); /* It is no part of it. */
    early.ref.root = kit_blob(AUTHOR, 901, &leaf);
    assert_null(kit_find(tell(world, &early), DP_DO_GET_INFO));
    kit_close(world);
}

static void
trainers_are_given_cuts_where_gradients_are_exchanged_and_the_node_wants_it(void **state)
{
    (void)state;
    for (uint32_t wants = 0; wants < 2; wants++) {
        kit_world *world = kit_open(2);
        world->manifest.codec = DP_CODEC_FP32;
        world->manifest.reduce = DP_REDUCE_PARTS;
        world->manifest.exchange = wants == 1 ? DP_EXCHANGE_GRADIENTS : DP_EXCHANGE_UPDATES;
        for (uint32_t i = 0; i < 2; i++) {
            kit_kill(world, i);
            kit_boot(world, i);
            world->nodes[i].node->config.early = true;
        }
        kit_link_all(world);
        kit_run_ms(world, 4000);
        assert_true(kit_look(world, 0).round > 0);
        assert_int_equal(world->nodes[0].train_cuts.n > 0, wants == 1);
        world->nodes[0].node->config.early = false;
        kit_run_ms(world, 4000);
        assert_int_equal(world->nodes[0].train_cuts.n, 0);
        kit_close(world);
    }
}

static void a_hint_is_read_as_it_was_written(void **state)
{
    const dp_part_early early = {.round = 1ULL << 40,
                                 .base = {{1, 2}},
                                 .part = DP_PARTS_MAX - 1,
                                 .ref = {.root = {{3, 4}}, .bytes = DP_OBJECT_BYTES_MAX}};
    dp_part_early wrong[3] = {early, early, early};
    dp_part_early read;
    uint8_t room[128];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_part_early_write(&writer, &early);
    assert_int_equal(dp_part_early_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_true(read.round == early.round && read.part == early.part &&
                read.ref.bytes == early.ref.bytes && dp_hash_equal(&read.base, &early.base) &&
                dp_hash_equal(&read.ref.root, &early.ref.root));
    for (size_t size = 0; size < writer.size; size++) {
        assert_int_not_equal(dp_part_early_read(dp_view_of(room, size), &read), DP_OK);
    }
    wrong[0].part = DP_PARTS_MAX;
    wrong[1].ref.bytes = 0;
    wrong[2].ref.bytes = (uint64_t)DP_OBJECT_BYTES_MAX + 1;
    for (uint32_t i = 0; i < 3; i++) {
        writer = dp_writer_of(room, sizeof room);
        dp_part_early_write(&writer, &wrong[i]);
        assert_int_equal(dp_part_early_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_has_a_part_before_its_publication_and_counts_it),
        cmocka_unit_test(a_part_that_was_made_early_stays_on_the_disk_for_its_round),
        cmocka_unit_test(what_the_publication_does_not_have_is_let_go),
        cmocka_unit_test(a_part_that_changes_is_followed_a_few_times),
        cmocka_unit_test(a_part_of_another_round_or_place_is_not_told_and_goes),
        cmocka_unit_test(only_what_an_author_may_say_of_this_round_is_fetched),
        cmocka_unit_test(a_hint_that_names_data_of_the_owner_takes_nothing_from_it),
        cmocka_unit_test(after_its_ready_an_author_tells_nothing_new),
        cmocka_unit_test(
            trainers_are_given_cuts_where_gradients_are_exchanged_and_the_node_wants_it),
        cmocka_unit_test(a_hint_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
