/* A collector adds up for a site: all members near to it, each once, once per round; without other
 * members it gives up. */
#include "tests/unit/gossip/kit/site_kit.h"

static const dp_site_sum *sum_of(const dp_record *record, uint32_t p)
{
    const dp_part_row *row = &record->parts[p];

    assert_int_equal(row->n_sums, 1);
    return &record->sums[row->first_sum];
}

static void each_of_a_site_adds_up_for_one_owner_of_the_other(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);
    uint32_t collectors = 0;

    (void)state;
    kit_next_round(world);
    const dp_record *record = kit_newest(world);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        collectors |= 1U << kit_index(&record->listed[sum_of(record, p)->collector].peer);
    }
    assert_int_equal(collectors, 63);
    for (uint32_t i = 0; i < SITE_NODES; i++) { /* In addition to its own part. */
        world->nodes[i].reduces = 0;
    }
    kit_next_round(world);
    for (uint32_t i = 0; i < SITE_NODES; i++) {
        assert_int_equal(world->nodes[i].reduces, 2);
    }
    kit_close(world);
}

/* The round continues without two of a site: the publication of the third is sent by itself. */
static void a_collector_without_other_members_makes_no_sum(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    const uint64_t made = kit_look(world, 3).sums_made;
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round == round; i++) {
        world->nodes[4].trains = false;
        world->nodes[5].trains = false;
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, 4);
    assert_int_equal(kit_look(world, 3).sums_made, made);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        for (uint32_t k = 0; record->parts[p].has && k < record->parts[p].n_sums; k++) {
            assert_int_equal(record->sums[record->parts[p].first_sum + k].from,
                             kit_site_of(record, 0));
        }
    }
    kit_close(world);
}

/* Its owner has paused it, or its trainer has died in the middle of it. */
static void a_sum_that_the_trainer_cannot_make_is_given_up(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    const uint64_t made = kit_look(world, 3).sums_made;
    const uint32_t reduces = world->nodes[3].reduces;
    world->nodes[3].adds_nothing = true;
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(kit_look(world, 0).round > round);
    assert_true(world->nodes[3].reduces > reduces);
    assert_int_equal(kit_look(world, 3).sums_made, made);
    world->nodes[3].adds_nothing = false;
    kit_next_round(world);
    kit_next_round(world);
    assert_true(kit_look(world, 3).sums_made > made);
    kit_close(world);
}

static uint32_t bit_of(const dp_record *record, uint32_t who)
{
    const dp_peer peer = kit_peer(who);
    uint32_t at = 0;

    while (!dp_peer_equal(&record->listed[at].peer, &peer)) {
        at++;
    }
    return 1U << at;
}

/* Node 2 copies the publication of node 0 except for the last part: the first one received counts,
 * and that is the copier's if it adds up itself. */
static void one_object_of_two_is_in_one_sum_once(void **state)
{
    kit_world *world = kit_two_sites(DP_ON);

    (void)state;
    world->nodes[2].copies = true;
    kit_next_round(world);
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, SITE_NODES);
    const uint32_t both = bit_of(record, 0) | bit_of(record, 2);
    for (uint32_t p = 0; p + 1 < record->n_parts; p++) {
        const dp_part_row *row = &record->parts[p];
        assert_int_equal(__builtin_popcount(row->from & both), 1);
        assert_int_equal(__builtin_popcount(row->from), SITE_NODES - 1);
    }
    assert_int_equal(record->parts[record->n_parts - 1].from, 63);
    assert_true(record->n_sums > 0);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_a_site_adds_up_for_one_owner_of_the_other),
        cmocka_unit_test(a_collector_without_other_members_makes_no_sum),
        cmocka_unit_test(a_sum_that_the_trainer_cannot_make_is_given_up),
        cmocka_unit_test(one_object_of_two_is_in_one_sum_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
