/* Sums of sites among whole nodes: far owners take them instead of objects, and manage without them
 * if a collector dies, is silent, or lies. */
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/record/part_sum.h"
#include "tests/unit/gossip/kit/site_kit.h"

static uint32_t part_of(const kit_world *world, uint32_t owner)
{
    const dp_part_layout *layout = &world->nodes[owner].node->ledger.layout;
    const dp_peer peer = kit_peer(owner);
    uint32_t part = 0;

    while (part < layout->cuts.n && !dp_peer_equal(&layout->owners[part], &peer)) {
        part++;
    }
    assert_true(part < layout->cuts.n);
    return part;
}

static void an_owner_has_one_sum_of_all_at_the_other_site(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    kit_next_round(world);
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, SITE_NODES);
    assert_int_equal(record->n_sums, SITE_NODES);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        const dp_part_row *row = &record->parts[p];
        const uint32_t owner = kit_index(&row->owner);
        assert_int_equal(row->from, 63);
        assert_int_equal(row->n_sums, 1);
        const dp_site_sum *sum = &record->sums[row->first_sum];
        assert_int_equal(sum->from, kit_site_of(record, owner < 3 ? 3 : 0));
        const dp_part_word word = dp_part_word_of(record, p);
        const dp_crypto anybody = kit_crypto(0);
        assert_true(dp_part_verify(&word, &anybody, &world->nodes[0].node->run,
                                   &world->nodes[0].node->ledger.fork));
    }
    for (uint32_t i = 0; i < SITE_NODES; i++) {
        assert_true(kit_look(world, i).sums_made >= 1 && kit_look(world, i).sums_taken >= 1);
    }
    kit_close(world);
}

/* Three of the own site and the sum: with the weight of all three, by the clip of each. */
static void a_sum_weighs_what_is_in_it_and_is_not_clipped_again(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    uint32_t q[SITE_NODES] = {0};

    (void)state;
    for (uint32_t i = 0; i < SITE_NODES; i++) {
        world->nodes[i].reduce.u.reduce.round = 0;
    }
    const uint64_t taken = kit_look(world, 0).sums_taken;
    for (uint32_t i = 0; i < 2000 && kit_look(world, 0).sums_taken == taken; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_action *reduce = &world->nodes[0].reduce;
    assert_int_equal(reduce->u.reduce.part, part_of(world, 0));
    assert_int_equal(reduce->u.reduce.n_items, 4);
    uint64_t all = 0;
    for (uint32_t i = 0; i < reduce->u.reduce.n_items; i++) {
        q[i] = reduce->u.reduce.items[i].q;
        all += q[i];
    }
    assert_in_range(all, (1ULL << 31) - 4, 1ULL << 31);
    kit_close(world);
}

static void nobody_sums_where_the_run_does_not(void **state)
{
    kit_world *world = kit_two_sites(DP_OFF);
    uint8_t room[256];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_collect told = {.round = ledger->round + 1, .base = ledger->base, .part = 0};

    (void)state;
    dp_collect_write(&writer, &told);
    const uint64_t before = kit_look(world, 0).rejected;
    DP_IGNORE(kit_tell(world, 3, 0, dp_view_of(room, writer.size)) == NULL);
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    kit_next_round(world);
    assert_int_equal(kit_newest(world)->n_sums, 0);
    assert_int_equal(kit_look(world, 0).sums_made, 0);
    kit_close(world);
}

/* The node of 3 to 5 that has announced to the owner of this part that it will add up. */
static uint32_t collector_of(kit_world *world, uint32_t part)
{
    for (uint32_t step = 0; step < 100; step++) {
        for (uint32_t i = 3; i < SITE_NODES; i++) {
            if (world->nodes[i].node->parts->collects[part].duty.works &&
                world->nodes[0].node->parts->n_hints > 0) {
                return i;
            }
        }
        kit_run_ms(world, KIT_STEP_MS);
    }
    fail_msg("nobody collects");
    return SITE_NODES;
}

static void when_a_collector_dies_its_site_comes_as_objects(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);

    (void)state;
    const uint32_t collector = collector_of(world, part);
    const dp_peer peer = kit_peer(collector);
    kit_kill(world, collector);
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, SITE_NODES - 1);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        assert_true(record->parts[p].has);
        for (uint32_t k = 0; k < record->parts[p].n_sums; k++) {
            const dp_site_sum *sum = &record->sums[record->parts[p].first_sum + k];
            assert_false(dp_peer_equal(&record->listed[sum->collector].peer, &peer));
        }
    }
    kit_close(world);
}

/* It has announced its sum, and named all members of its site. */
static void a_hint_that_nothing_follows_ends_with_objects(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);

    (void)state;
    const uint32_t collector = collector_of(world, part);
    world->nodes[collector].node->parts->collects[part].duty.reducing = true; /* For ever. */
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, SITE_NODES);
    assert_int_equal(record->parts[part].from, 63);
    assert_int_equal(record->parts[part].n_sums, 0);
    assert_int_equal(record->n_sums, SITE_NODES - 1);
    kit_close(world);
}

static void a_collector_that_gives_up_says_so_and_the_owner_does_not_wait(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    const uint32_t collector = collector_of(world, part);
    const dp_part_round *parts = world->nodes[0].node->parts;
    assert_int_equal(parts->n_hints, 1);
    assert_int_equal(parts->hints[0].told.n, 3);
    dp_collect told = parts->hints[0].told;
    told.n = 0;
    dp_collect_write(&writer, &told);
    DP_IGNORE(kit_tell(world, collector, 0, dp_view_of(room, writer.size)) == NULL);
    assert_int_equal(parts->n_hints, 0);
    kit_close(world);
}

static void a_sum_that_does_not_decode_is_refused_and_objects_are_taken(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);

    (void)state;
    world->nodes[0].dislikes_sums = true;
    kit_next_round(world);
    const dp_record *record = kit_newest(world);
    assert_string_equal(world->nodes[0].rejected_cause, "its sum of a part cannot be decoded");
    assert_int_equal(record->n_listed, SITE_NODES);
    assert_true(record->parts[part].n_sums == 0 || kit_index(&record->parts[part].owner) != 0);
    kit_close(world);
}

static void a_sum_larger_than_what_is_in_it_is_refused(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);

    (void)state;
    world->nodes[0].heavy_sums = true;
    const uint64_t before = kit_look(world, 0).rejected;
    kit_next_round(world);
    const dp_record *record = kit_newest(world);
    assert_true(kit_look(world, 0).rejected > before);
    assert_string_equal(world->nodes[0].rejected_cause,
                        "its sum of a site has another size or more energy than its updates allow");
    assert_int_equal(record->n_listed, SITE_NODES);
    assert_int_equal(kit_index(&record->parts[part].owner), 0);
    assert_int_equal(record->parts[part].from, 63);
    assert_int_equal(record->parts[part].n_sums, 0);
    kit_close(world);
}

enum { AS_IT_IS, FORGED, FOR_ANOTHER, WITH_ITS_OWNER, WITH_ONE_NEAR };

/* A SUBTOTAL by collector of 3 to 5 for the part of node 0, possibly with a change. */
static bool takes(kit_world *world, uint32_t collector, uint32_t changed)
{
    static uint8_t room[8192];
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_crypto crypto = kit_crypto(collector);
    dp_part_word word = {.owner = kit_peer(collector),
                         .round = ledger->round + 1,
                         .base = ledger->base,
                         .part = part_of(world, 0) + (changed == FOR_ANOTHER ? 1 : 0),
                         .root = {{0xcc}},
                         .bytes = 8,
                         .n = 2};
    dp_writer writer = dp_writer_of(room, sizeof room);

    word.sources[0].peer = kit_peer(collector);
    word.sources[1].peer = kit_peer(changed == WITH_ITS_OWNER  ? 0
                                    : changed == WITH_ONE_NEAR ? 1
                                    : collector == 5           ? 4
                                                               : 5);
    if (dp_peer_compare(&word.sources[0].peer, &word.sources[1].peer) > 0) {
        const dp_part_source first = word.sources[0];
        word.sources[0] = word.sources[1];
        word.sources[1] = first;
    }
    const dp_hash run = kit_run();
    assert_true(dp_site_sum_sign(&word, &crypto, &run, &ledger->fork));
    word.signature[0] ^= changed == FORGED ? 1 : 0;
    dp_site_sum_msg_write(&writer, &word);
    const uint32_t before = world->nodes[0].node->parts->n_sums;
    DP_IGNORE(kit_tell(world, collector, 0, dp_view_of(room, writer.size)) == NULL);
    return world->nodes[0].node->parts->n_sums > before;
}

static void one_word_of_each_collector_is_followed_and_no_forged_one(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    const uint64_t before = kit_look(world, 0).rejected;
    assert_false(takes(world, 3, FORGED));
    assert_false(takes(world, 3, FOR_ANOTHER)); /* Of a part that is not its own. */
    assert_int_equal(kit_look(world, 0).rejected, before + 2);
    assert_true(takes(world, 3, AS_IT_IS));
    assert_false(takes(world, 3, AS_IT_IS));
    assert_true(takes(world, 4, AS_IT_IS));
    assert_int_equal(kit_look(world, 0).rejected, before + 2);
    kit_close(world);
}

/* Otherwise a far member could replace the publications of all. */
static void a_sum_speaks_for_nobody_whom_its_owner_hears_itself(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    assert_false(takes(world, 3, WITH_ITS_OWNER));
    assert_false(takes(world, 4, WITH_ONE_NEAR));
    assert_true(takes(world, 5, AS_IT_IS));
    kit_close(world);
}

/* The owner does not wait for members that it asks anyway, nor for a sum that it would not take. */
static void a_hint_of_one_near_is_not_waited_for(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const dp_part_round *parts = world->nodes[0].node->parts;
    const uint32_t collector = collector_of(world, part_of(world, 0));
    uint8_t room[512];

    (void)state;
    for (uint32_t near = 0; near < 2; near++) {
        dp_collect told = parts->hints[0].told;
        dp_writer writer = dp_writer_of(room, sizeof room);
        assert_int_equal(parts->n_hints, 1);
        told.peers[0] = kit_peer(near == 0 ? 4 : 1);
        told.peers[1] = kit_peer(5);
        told.n = 2;
        if (dp_peer_compare(&told.peers[0], &told.peers[1]) > 0) {
            told.peers[1] = told.peers[0];
            told.peers[0] = kit_peer(5);
        }
        dp_collect_write(&writer, &told);
        DP_IGNORE(kit_tell(world, collector, 0, dp_view_of(room, writer.size)) == NULL);
    }
    assert_int_equal(parts->n_hints, 0);
    kit_close(world);
}

static void a_hint_for_another_s_part_is_refused(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_collect told = {
        .round = ledger->round + 1, .base = ledger->base, .part = part_of(world, 1)};
    uint8_t room[256];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_collect_write(&writer, &told);
    const uint64_t before = kit_look(world, 0).rejected;
    DP_IGNORE(kit_tell(world, 3, 0, dp_view_of(room, writer.size)) == NULL);
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    DP_IGNORE(kit_tell(world, 3, 1, dp_view_of(room, writer.size)) == NULL); /* Its own. */
    assert_int_equal(kit_look(world, 1).rejected, 0);
    kit_close(world);
}

/* It names READYs that no member has sent: it is useless, and the rest is fetched as objects. */
static void a_word_of_other_publications_holds_nobody_up(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t part = part_of(world, 0);

    (void)state;
    for (uint32_t i = 3; i < SITE_NODES; i++) {
        assert_true(takes(world, i, AS_IT_IS));
    }
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, SITE_NODES);
    assert_int_equal(record->parts[part].from, 63);
    assert_int_equal(record->parts[part].n_sums, 0);
    kit_close(world);
}

/* The owner of the part before that of node 0: if it does not add up, node 0 is the next in
 * line. */
static uint32_t before_first(const kit_world *world)
{
    const dp_part_layout *layout = &world->nodes[0].node->ledger.layout;

    return kit_index(&layout->owners[(part_of(world, 0) + layout->cuts.n - 1) % layout->cuts.n]);
}

static void a_backup_owner_keeps_the_sums_of_its_own_part(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    const uint32_t other = before_first(world);
    const uint32_t part = part_of(world, other);
    const uint64_t round = world->nodes[0].node->ledger.round;
    const dp_part_round *parts = world->nodes[0].node->parts;
    uint32_t taken = 0;

    (void)state;
    world->nodes[other].adds_late = true;
    world->nodes[0].adds_late = true; /* So that the round continues. */
    for (uint32_t i = 0; i < 4000 && !parts->duties[part].reducing; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(parts->duties[part].reducing);
    assert_int_equal(world->nodes[0].node->ledger.round, round);
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        taken += !parts->sums[i].mine && parts->sums[i].in_use ? 1 : 0;
        assert_false(parts->sums[i].bad);
    }
    assert_int_equal(taken, 1);
    kit_close(world);
}

/* As when one of its contributions copies a publication received before. */
static void a_sum_of_which_a_record_would_list_a_part_only_gives_way_to_objects(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    dp_node *const node = world->nodes[0].node;
    const dp_part_round *parts = node->parts;
    const uint32_t part = part_of(world, 0);
    const uint64_t round = node->ledger.round;
    uint32_t bad = 0;

    (void)state;
    node->ledger.listed_max = SITE_NODES - 1; /* The last of the other site has no place. */
    world->nodes[0].adds_late = true;
    for (uint32_t i = 0; i < 4000 && !parts->duties[part].reducing; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(parts->duties[part].reducing);
    assert_int_equal(node->ledger.round, round);
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        bad += parts->sums[i].word.part == part && parts->sums[i].bad ? 1 : 0;
    }
    assert_int_equal(bad, 1);
    const dp_action *reduce = &world->nodes[0].reduce;
    assert_int_equal(reduce->u.reduce.part, part);
    assert_int_equal(reduce->u.reduce.n_items, SITE_NODES - 1);
    for (uint32_t i = 0; i < reduce->u.reduce.n_items; i++) {
        assert_true(dp_node_holds(node, &reduce->u.reduce.items[i].root));
        assert_false(kit_is_sum(world, &reduce->u.reduce.items[i].root));
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_has_one_sum_of_all_at_the_other_site),
        cmocka_unit_test(a_sum_weighs_what_is_in_it_and_is_not_clipped_again),
        cmocka_unit_test(nobody_sums_where_the_run_does_not),
        cmocka_unit_test(when_a_collector_dies_its_site_comes_as_objects),
        cmocka_unit_test(a_hint_that_nothing_follows_ends_with_objects),
        cmocka_unit_test(a_collector_that_gives_up_says_so_and_the_owner_does_not_wait),
        cmocka_unit_test(a_sum_that_does_not_decode_is_refused_and_objects_are_taken),
        cmocka_unit_test(a_sum_larger_than_what_is_in_it_is_refused),
        cmocka_unit_test(one_word_of_each_collector_is_followed_and_no_forged_one),
        cmocka_unit_test(a_sum_speaks_for_nobody_whom_its_owner_hears_itself),
        cmocka_unit_test(a_hint_of_one_near_is_not_waited_for),
        cmocka_unit_test(a_backup_owner_keeps_the_sums_of_its_own_part),
        cmocka_unit_test(a_sum_of_which_a_record_would_list_a_part_only_gives_way_to_objects),
        cmocka_unit_test(a_hint_for_another_s_part_is_refused),
        cmocka_unit_test(a_word_of_other_publications_holds_nobody_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
