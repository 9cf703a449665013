/* Rounds of parts among a few whole nodes: which node adds up which part, and which objects are
 * dropped. test_part_talk.c tests the messages about parts. */
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "tests/unit/gossip/kit/part_kit.h"

/* Until node 0 has published and no record lists that yet. */
static void run_into_round(kit_world *world)
{
    const uint64_t published = world->nodes[0].published;

    kit_run_rounds(world, 1);
    for (uint32_t i = 0; i < 1000 && world->nodes[0].published == published; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
}

static void each_adds_up_a_part_and_all_have_the_same_state(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    kit_run_rounds(world, 2);
    const dp_record *record = kit_newest(world);
    assert_true(record->parted);
    assert_int_equal(record->n_parts, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_parts_of(record, i), 1);
        assert_int_equal(record->parts[i].from, 7);
        assert_int_equal(world->nodes[i].settles[DP_SETTLE_LEFT_OUT], 0);
    }
    kit_close(world);
}

static void an_owner_adds_up_its_part_once_a_round(void **state)
{
    kit_world *world = kit_parted(3);
    uint32_t before[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        before[i] = world->nodes[i].reduces;
    }
    kit_run_rounds(world, 4);
    for (uint32_t i = 0; i < 3; i++) { /* One more may be of the round under way. */
        assert_in_range(world->nodes[i].reduces - before[i], 4, 5);
    }
    kit_close(world);
}

/* The number of parts in record that count contributor who. */
static uint32_t counted_parts(const dp_record *record, uint32_t who)
{
    const dp_peer peer = kit_peer(who);
    uint32_t n = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        for (uint32_t p = 0; dp_peer_equal(&record->listed[i].peer, &peer) && p < record->n_parts;
             p++) {
            n += record->parts[p].from >> i & 1U;
        }
    }
    return n;
}

static void a_copier_of_parts_counts_only_in_its_own_part(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    world->nodes[2].copies = true;
    kit_run_rounds(world, 2);
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, 3);
    assert_int_equal(counted_parts(record, 0), 3);
    assert_int_equal(counted_parts(record, 1), 3);
    assert_int_equal(counted_parts(record, 2), 1);
    world->nodes[2].copies = false;
    kit_run_rounds(world, 2);
    assert_int_equal(counted_parts(kit_newest(world), 2), 3);
    kit_close(world);
}

static void equal_parts_of_nothing_count_for_all_who_have_them(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    world->nodes[2].copies = true;
    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].light = true;
    }
    kit_run_rounds(world, 2);
    assert_int_equal(counted_parts(kit_newest(world), 2), 3);
    kit_close(world);
}

static void a_member_with_twice_the_line_adds_up_more(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].rate = i == 0 ? 900 : 600;
    }
    kit_run_rounds(world, 3);
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->listed[0].rate, 900);
    world->nodes[0].adds_late = true;
    run_into_round(world);
    kit_run_ms(world, 500);
    /* 4 r - sum: 1500, 300, 300. */
    assert_int_equal(world->nodes[0].reduce.u.reduce.end, 65536 * 1500 / 2100);
    kit_close(world);
}

static void of_equal_lines_that_seem_unlike_parts_are_equal(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].rate = 900 + 100 * i;
    }
    kit_run_rounds(world, 4);
    const dp_record *record = kit_newest(world);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(record->listed[i].rate, 1000);
    }
    const dp_part_cuts *cuts = &world->nodes[0].node->ledger.layout.cuts;
    assert_int_equal(cuts->n, 3);
    assert_int_equal(cuts->first[1], 65536 / 3);
    assert_int_equal(cuts->first[2], 2 * 65536 / 3);
    kit_close(world);
}

static void the_part_of_an_owner_that_died_is_added_up_by_the_next(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    run_into_round(world);
    kit_kill(world, 2);
    kit_run_rounds(world, 1);
    const dp_record *record = kit_newest(world);
    assert_int_equal(kit_parts_of(record, 2), 0);
    assert_true(kit_parts_of(record, 0) + kit_parts_of(record, 1) >= 2);
    kit_boot(world, 2);
    kit_link_all(world);
    kit_run_rounds(world, 4);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

static void an_owner_whose_trainer_cannot_add_up_holds_up_no_round(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    world->nodes[1].adds_nothing = true;
    kit_run_rounds(world, 3);
    assert_int_equal(kit_parts_of(kit_newest(world), 1), 0);
    world->nodes[1].adds_nothing = false;
    kit_run_rounds(world, 3);
    assert_int_equal(kit_parts_of(kit_newest(world), 1), 1);
    kit_close(world);
}

static void an_owner_that_never_answers_holds_up_no_round(void **state)
{
    kit_world *world = kit_parted(3);

    (void)state;
    world->nodes[2].adds_late = true;
    kit_run_rounds(world, 3);
    assert_int_equal(kit_parts_of(kit_newest(world), 2), 0);
    kit_close(world);
}

static void a_sum_that_comes_after_its_round_is_let_go(void **state)
{
    kit_world *world = kit_parted(3);
    kit_node *late = &world->nodes[2];
    dp_event event = {.type = DP_EV_REDUCED};
    dp_hash leaf;

    (void)state;
    late->adds_late = true;
    kit_run_rounds(world, 2);
    event.u.reduced.round = late->reduce.u.reduce.round;
    event.u.reduced.part = late->reduce.u.reduce.part;
    event.u.reduced.root = kit_blob(2, 1000000, &leaf);
    event.u.reduced.bytes = 8;
    while (kit_look(world, 2).round < late->reduce.u.reduce.round) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_event_in(world, 2, &event);
    assert_true(dp_hash_equal(&late->dropped, &event.u.reduced.root));
    event.u.reduced.root = kit_blob(2, 1000001, &leaf);
    event.u.reduced.part = DP_PARTS_MAX; /* Of no part. */
    kit_event_in(world, 2, &event);
    assert_true(dp_hash_equal(&late->dropped, &event.u.reduced.root));
    event.u.reduced.root = kit_blob(2, 1000002, &leaf);
    event.u.reduced.status = DP_IO; /* There is none. */
    kit_event_in(world, 2, &event);
    assert_false(dp_hash_equal(&late->dropped, &event.u.reduced.root));
    kit_close(world);
}

static void a_publication_of_which_a_part_does_not_decode_is_not_counted(void **state)
{
    kit_world *world = kit_parted(4);

    (void)state;
    const uint64_t before = kit_look(world, 3).rejected;
    world->nodes[3].picky = true; /* Its trainer refuses blobs that the others accept. */
    kit_run_rounds(world, 3);
    assert_non_null(world->nodes[3].rejected_cause);
    assert_true(kit_look(world, 3).rejected > before);
    kit_run_rounds(world, 1);
    kit_close(world);
}

static void a_part_of_more_energy_or_bytes_than_told_is_counted_and_named(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        kit_world *world = kit_parted(3);
        kit_node *node = &world->nodes[0];
        const uint64_t before = kit_look(world, 0).rejected;
        node->heavy = i == 0;
        world->nodes[2].tells_more = i == 1;
        kit_run_rounds(world, 3);
        assert_true(kit_look(world, 0).rejected > before);
        assert_non_null(node->rejected_cause);
        assert_string_equal(
            node->rejected_cause,
            i == 0 ? "a part of its update has another size or more energy than it announced"
                   : "one of its objects has another size than it announced");
        kit_close(world);
    }
}

/* No message states the energy of a sum; it only has to decode. */
static void a_sum_that_does_not_decode_is_counted_and_named(void **state)
{
    kit_world *world = kit_parted(3);
    kit_node *node = &world->nodes[0];

    (void)state;
    run_into_round(world);
    const uint64_t before = kit_look(world, 0).rejected;
    node->dislikes_sums = true;
    const uint32_t told = node->haves;
    kit_run_rounds(world, 1);
    assert_true(kit_look(world, 0).rejected > before);
    assert_string_equal(node->rejected_cause, "its sum of a part cannot be decoded");
    assert_int_equal(node->haves, told);
    kit_close(world);
}

static void a_node_that_was_killed_in_a_round_is_counted_in_it(void **state)
{
    kit_world *world = kit_parted(3);
    kit_node *node = &world->nodes[1];
    dp_part_list parts;

    (void)state;
    run_into_round(world);
    assert_int_equal(dp_node_pending_parts(dp_view_of(node->pending, node->pending_size), &parts),
                     DP_OK);
    assert_int_equal(parts.n, 3);
    for (uint32_t p = 0; p < parts.n; p++) {
        assert_true(kit_holds(node, &parts.refs[p].root));
    }
    kit_kill(world, 1);
    kit_boot(world, 1);
    kit_link_all(world);
    assert_true(node->restores > 0);
    assert_int_equal(node->restore.u.restore.cuts.n, 3);
    kit_run_rounds(world, 3);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

static dp_status restored(const kit_world *world, dp_node *node, const uint8_t *row, size_t size)
{
    (void)world;
    return dp_node_restore_pending(node, dp_view_of(row, size));
}

static void a_damaged_row_of_a_publication_is_refused(void **state)
{
    kit_world *world = kit_parted(3);
    kit_node *node = &world->nodes[1];
    uint8_t credential[KIT_CREDENTIAL];
    dp_part_list parts;
    dp_node *opened;

    (void)state;
    run_into_round(world);
    const size_t size = node->pending_size;
    uint8_t *row = kit_copy(dp_view_of(node->pending, size));
    kit_kill(world, 1);
    const dp_node_config config = kit_config(world, 1, credential);
    assert_int_equal(dp_node_open(&opened, &config), DP_OK);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_not_equal(restored(world, opened, row, cut), DP_OK);
    }
    for (size_t cut = 1; cut < 300; cut++) {
        assert_int_not_equal(dp_node_pending_parts(dp_view_of(row, cut), &parts), DP_OK);
    }
    const size_t cuts = size - 1 - 3 * sizeof(uint16_t);
    row[cuts] = 0; /* No parts. */
    assert_int_equal(restored(world, opened, row, size), DP_BADMSG);
    row[cuts] = DP_PARTS_MAX + 1;
    assert_int_equal(restored(world, opened, row, size), DP_BADMSG);
    row[cuts] = 2; /* Fewer cuts than objects. */
    assert_int_equal(restored(world, opened, row, size - sizeof(uint16_t)), DP_DENIED);
    row[cuts] = 3;
    row[cuts + 1] = 1; /* The first part does not begin the vector. */
    assert_int_equal(restored(world, opened, row, size), DP_BADMSG);
    row[cuts + 1] = 0;
    row[3] ^= 0xff; /* The message in it is invalid. */
    assert_int_not_equal(dp_node_pending_parts(dp_view_of(row, size), &parts), DP_OK);
    row[3] ^= 0xff;
    row[0] = 3; /* Of a run of whole updates. */
    assert_int_equal(restored(world, opened, row, size), DP_VERSION);
    assert_int_equal(dp_node_pending_parts(dp_view_of(row, size), &parts), DP_OK);
    assert_int_equal(parts.n, 0);
    dp_node_close(opened);
    free(row);
    kit_boot(world, 1);
    kit_close(world);
}

static void an_unreadable_object_is_fetched_again(void **state)
{
    kit_world *world = kit_parted(3);
    dp_event lost = {.type = DP_EV_OBJECT_LOST};

    (void)state;
    kit_run_rounds(world, 1);
    world->nodes[0].adds_late = true;
    const uint32_t reduces = world->nodes[0].reduces;
    for (uint32_t i = 0; i < 1000 && world->nodes[0].reduces == reduces; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const dp_action *reduce = &world->nodes[0].reduce;
    for (uint32_t i = 0; i < reduce->u.reduce.n_items; i++) {
        lost.u.object.root = reduce->u.reduce.items[i].root;
        kit_event_in(world, 0, &lost);
        assert_true(i == 0 || kit_asks(world->actions, &lost.u.object.root)); /* 0 is its own. */
    }
    kit_drain(world);
    world->nodes[0].adds_late = false;
    kit_run_rounds(world, 3);
    const dp_record *record = kit_newest(world);
    lost.u.object.root = record->parts[1].root; /* A result of a round that is over. */
    kit_event_in(world, 0, &lost);
    kit_run_rounds(world, 2);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

static void a_sum_on_its_way_when_its_round_is_decided_goes_on_coming(void **state)
{
    kit_world *world = kit_parted(2);
    kit_node *owner = &world->nodes[0];
    dp_event sum = {.type = DP_EV_REDUCED};
    dp_hash leaf;

    (void)state;
    kit_run_rounds(world, 1);
    owner->adds_late = true;
    const uint32_t reduces = owner->reduces;
    for (uint32_t i = 0; i < 1000 && owner->reduces == reduces; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_run_ms(world, 2 * KIT_STEP_MS);
    owner->mute_blobs = true; /* Of its sum the other gets size and leaf alone. */
    sum.u.reduced.round = owner->reduce.u.reduce.round;
    sum.u.reduced.part = owner->reduce.u.reduce.part;
    sum.u.reduced.root = kit_blob(0, ++owner->published, &leaf);
    sum.u.reduced.bytes = 8;
    kit_hold(owner, &sum.u.reduced.root);
    kit_event_in(world, 0, &sum);
    kit_event *info = kit_push(world, 1, DP_EV_OBJECT_INFO);
    info->leaf = leaf;
    info->event.u.object.root = sum.u.reduced.root;
    info->event.u.object.size = 8;
    info->event.u.object.peer = kit_peer(0);
    kit_drain(world);
    for (uint32_t i = 0; i < 1000 && kit_look(world, 1).round < sum.u.reduced.round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(kit_look(world, 1).round, sum.u.reduced.round);
    assert_true(dp_picker_wants(world->nodes[1].node->picker, &sum.u.reduced.root));
    assert_false(dp_picker_waits(world->nodes[1].node->picker,
                                 &sum.u.reduced.root)); /* Its beginning is not lost. */
    owner->mute_blobs = false;
    owner->adds_late = false;
    kit_run_rounds(world, 2);
    kit_close(world);
}

/* All sums contain its contribution, and no record may list it any more. */
static void a_sum_with_a_revoked_member_is_computed_again(void **state)
{
    kit_world *world = kit_parted(4);
    dp_status status = DP_AGAIN;
    dp_why why = {""};
    uint32_t reduces[4];

    (void)state;
    kit_run_rounds(world, 1);
    world->nodes[0].adds_late = true; /* So the round stays open. */
    for (uint32_t k = 0; k < 4; k++) {
        reduces[k] = world->nodes[k].reduces;
    }
    for (uint32_t i = 0; i < 1000 && (world->nodes[1].reduces == reduces[1] ||
                                      world->nodes[2].reduces == reduces[2]);
         i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(world->nodes[1].reduce.u.reduce.n_items, 4);
    kit_push(world, 0, DP_EV_ADMIN_COMMAND)->event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_REVOKE, .peer = kit_peer(3), .status = &status, .why = &why};
    kit_drain(world);
    assert_int_equal(status, DP_OK);
    kit_run_rounds(world, 1);
    const dp_record *record = kit_newest(world);
    assert_int_equal(record->n_listed, 3);
    assert_true(kit_parts_of(record, 1) >= 1 && kit_parts_of(record, 2) >= 1);
    assert_int_equal(kit_parts_of(record, 3), 0);
    kit_close(world);
}

static void a_voter_hears_of_a_dead_author_from_who_counted_it(void **state)
{
    kit_world *world = kit_parted(4);
    const dp_peer dead = kit_peer(3);
    dp_event tick = {.type = DP_EV_TICK};

    (void)state;
    kit_run_rounds(world, 1);
    world->nodes[0].adds_late = true; /* So the round stays open. */
    const uint32_t reduces = world->nodes[1].reduces;
    for (uint32_t i = 0; i < 1000 && world->nodes[1].reduces == reduces; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(world->nodes[1].reduce.u.reduce.n_items, 4);
    kit_kill(world, 3);
    kit_forget_claim(world, 0, 3); /* As if it had sent it only to the owners. */
    kit_forget_claim(world, 2, 3);
    dp_round *round = world->nodes[1].node->round;
    world->nodes[1].node->repeat_at = (dp_time){.us = world->now_us - 1};
    round->repeat_planned = (dp_time){.us = world->now_us};
    kit_event_in(world, 1, &tick);
    kit_drain(world);
    assert_non_null(dp_round_claim_of(world->nodes[0].node, &dead));
    assert_non_null(dp_round_claim_of(world->nodes[2].node, &dead));
    kit_run_rounds(world, 1);
    kit_close(world);
}

/* It asks the author for the object, and a node without a link to the author asks it. */
static void a_node_asked_for_a_part_that_it_lacks_fetches_it_from_its_author(void **state)
{
    kit_world *world = kit_parted(3);
    dp_node *node = world->nodes[0].node;
    const dp_peer author = kit_peer(2);
    uint8_t bytes[64];

    (void)state;
    kit_run_rounds(world, 1);
    world->nodes[0].adds_late = true; /* So the round stays open. */
    const uint32_t reduces = world->nodes[0].reduces;
    for (uint32_t i = 0; i < 1000 && world->nodes[0].reduces == reduces; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    dp_claim *claim = dp_round_claim_of(node, &author);
    assert_non_null(claim);
    claim->ready.parts.refs[claim->ready.parts.n - 1].root = (dp_hash){{77}};
    for (uint32_t strange = 0; strange < 2; strange++) {
        const dp_hash root = {{(uint8_t)(77 + strange)}};
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_wire_write_info_get(&writer, &root);
        const dp_actions *actions = kit_tell(world, 1, 0, dp_view_of(bytes, writer.size));
        assert_int_equal(kit_asks(actions, &root), strange == 0);
        assert_int_equal(dp_picker_wants(node->picker, &root), strange == 0);
    }
    kit_close(world);
}

/* Until the round is ripe: for the waits of the parts; then also for its end. */
static void a_round_of_parts_wakes_for_what_is_due_first(void **state)
{
    kit_world *world = kit_parted(3);
    dp_node *node = world->nodes[0].node;
    dp_part_round *parts = node->parts;
    dp_round *round = node->round;
    const uint64_t now = node->now.us;
    const dp_part_wait wait = dp_part_round_wait(node, DP_PARTS_MAX);

    (void)state;
    parts->ripe_at = round->enough_at = round->opened = (dp_time){0};
    parts->wake_at = (dp_time){now + 900 * DP_SECOND};
    assert_int_equal(dp_part_round_wake(node).us, now + 900 * DP_SECOND);
    assert_int_equal(node->kind->wake(node).us, now + 900 * DP_SECOND);
    round->opened = (dp_time){now + 30 * DP_SECOND};
    assert_int_equal(node->kind->wake(node).us, now + 30 * DP_SECOND + dp_round_hard_us(node));
    round->enough_at = (dp_time){now + 20 * DP_SECOND};
    round->grace_us = 3 * DP_SECOND;
    assert_int_equal(node->kind->wake(node).us, now + 23 * DP_SECOND);
    parts->ripe_at = (dp_time){now - 1};
    const uint64_t close = now - 1 + dp_part_wait_close(&wait);
    assert_true(close > now);
    assert_int_equal(dp_part_round_wake(node).us, close);
    assert_int_equal(node->kind->wake(node).us, close);
    parts->wake_at = (dp_time){now + 1};
    assert_int_equal(node->kind->wake(node).us, now + 1);
    parts->wake_at = (dp_time){now}; /* Met already. */
    assert_int_equal(node->kind->wake(node).us, now + 20 * DP_MS);
    parts->wake_at = (dp_time){now + 900 * DP_SECOND};
    node->now.us = close; /* It is over. */
    assert_int_equal(dp_part_round_wake(node).us, now + 900 * DP_SECOND);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_adds_up_a_part_and_all_have_the_same_state),
        cmocka_unit_test(an_owner_adds_up_its_part_once_a_round),
        cmocka_unit_test(a_copier_of_parts_counts_only_in_its_own_part),
        cmocka_unit_test(equal_parts_of_nothing_count_for_all_who_have_them),
        cmocka_unit_test(a_member_with_twice_the_line_adds_up_more),
        cmocka_unit_test(of_equal_lines_that_seem_unlike_parts_are_equal),
        cmocka_unit_test(the_part_of_an_owner_that_died_is_added_up_by_the_next),
        cmocka_unit_test(an_owner_whose_trainer_cannot_add_up_holds_up_no_round),
        cmocka_unit_test(an_owner_that_never_answers_holds_up_no_round),
        cmocka_unit_test(a_sum_that_comes_after_its_round_is_let_go),
        cmocka_unit_test(a_publication_of_which_a_part_does_not_decode_is_not_counted),
        cmocka_unit_test(a_part_of_more_energy_or_bytes_than_told_is_counted_and_named),
        cmocka_unit_test(a_sum_that_does_not_decode_is_counted_and_named),
        cmocka_unit_test(a_node_that_was_killed_in_a_round_is_counted_in_it),
        cmocka_unit_test(a_damaged_row_of_a_publication_is_refused),
        cmocka_unit_test(an_unreadable_object_is_fetched_again),
        cmocka_unit_test(a_sum_on_its_way_when_its_round_is_decided_goes_on_coming),
        cmocka_unit_test(a_sum_with_a_revoked_member_is_computed_again),
        cmocka_unit_test(a_voter_hears_of_a_dead_author_from_who_counted_it),
        cmocka_unit_test(a_node_asked_for_a_part_that_it_lacks_fetches_it_from_its_author),
        cmocka_unit_test(a_round_of_parts_wakes_for_what_is_due_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
