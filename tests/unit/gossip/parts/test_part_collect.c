/* A collector adds up for a site: all members near to it, each once, once per round; without other
 * members it gives up. */
#include "gossip/parts/part_wait.h"
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

/* ---- one collector, whose sum the test sets ---- */

enum { PART = 1 }; /* owned by node 1, which is far away */

/* Node 0 collects the publications of part 1 of itself and node 2. All are here and good. */
static kit_world *begin_collect(void)
{
    kit_world *world = kit_undecided();
    dp_node *node = world->nodes[0].node;
    dp_part_round *parts = node->parts;
    dp_collecting *collecting = &parts->collects[PART];

    node->ledger.summed = true;
    for (uint32_t i = 0; i < 3; i++) {
        node->ledger.layout.owners[i] = kit_peer(i);
        dp_claim *claim = kit_claim_by(node, i);
        claim->parts.checked = claim->parts.held = 7;
        claim->parts.bad = claim->parts.nothing = 0;
    }
    parts->n_sums = 0;
    parts->ripe_at = node->now;
    *collecting = (dp_collecting){
        .told = {.round = node->ledger.round + 1, .base = node->ledger.base, .part = PART, .n = 2},
        .duty = {.works = true, .since = node->now}};
    const bool falls = dp_peer_compare(&node->self, &kit_claim_by(node, 2)->ready.peer) > 0;
    collecting->told.peers[falls ? 1 : 0] = kit_peer(0);
    collecting->told.peers[falls ? 0 : 1] = kit_peer(2);
    return world;
}

static void tick(dp_node *node)
{
    uint32_t ready[DP_CLAIMS_MAX];
    const uint32_t n = dp_part_round_ready(node, ready);

    dp_part_collect_tick(node, PART, ready, n);
}

/* The last COLLECT or SUM that was sent to the owner of the part. */
static uint32_t told_owner(const kit_world *world, uint8_t type, dp_view *last)
{
    const dp_peer owner = kit_peer(PART);
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == type) {
            assert_true(dp_peer_equal(&action->u.send.peer, &owner));
            *last = action->u.send.bytes;
            n++;
        }
    }
    return n;
}

static void a_collector_sums_two_or_more_with_its_own_and_gives_up_less(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 9; what++) {
        kit_world *world = begin_collect();
        dp_node *node = world->nodes[0].node;
        dp_part_round *parts = node->parts;
        dp_duty *duty = &parts->collects[PART].duty;
        dp_view hint;
        if (what == 1) {
            kit_claim_by(node, 0)->parts.bad = 1U << PART; /* One is left. */
        } else if (what == 2) {
            kit_claim_by(node, 2)->parts.bad = 1U << PART;
        } else if (what == 3) {
            parts->n_sums = DP_SUMS_MAX;
        } else if (what == 4) { /* A copy of one that was heard of before. */
            kit_claim_by(node, 2)->ready.parts.refs[PART] =
                kit_claim_by(node, 0)->ready.parts.refs[PART];
        } else if (what == 5) {
            duty->done = true;
        } else if (what == 6) {
            node->ledger.summed = false;
        } else if (what == 7) {
            duty->reducing = true;
        } else if (what == 8) { /* Two others, and its own is bad: it sums for nobody else. */
            kit_claim_by(node, 0)->parts.bad = 1U << PART;
            parts->collects[PART].told.n = 3;
            parts->collects[PART].told.peers[2] = kit_peer(1);
        }
        tick(node);
        const dp_action *reduce = kit_find(world->actions, DP_DO_REDUCE);
        const bool gives_up = (what >= 1 && what <= 4) || what == 8;
        assert_int_equal(reduce != NULL, what == 0);
        assert_int_equal(duty->works, !gives_up);
        assert_int_equal(duty->done, gives_up || what == 5);
        assert_int_equal(told_owner(world, DP_MSG_COLLECT, &hint), gives_up);
        if (gives_up) {
            dp_collect told;
            assert_int_equal(dp_collect_read(hint, &told), DP_OK);
            assert_int_equal(told.n, 0);
            assert_int_equal(told.part, PART);
        } else if (what == 0) {
            assert_true(duty->reducing);
            assert_int_equal(duty->n, 2);
            assert_int_equal(reduce->u.reduce.part, DP_REDUCE_SUM + PART);
            assert_int_equal(reduce->u.reduce.n_items, 2);
            assert_true(dp_peer_compare(&duty->sources[0].peer, &duty->sources[1].peer) < 0);
            for (uint32_t i = 0; i < 2; i++) {
                const dp_claim *claim = dp_round_claim_of(node, &duty->sources[i].peer);
                assert_true(dp_hash_equal(&duty->sources[i].root, &claim->ready.root));
                assert_true(dp_hash_equal(&reduce->u.reduce.items[i].root,
                                          &claim->ready.parts.refs[PART].root));
            }
        }
        parts->n_sums = 0;
        *duty = (dp_duty){.works = false};
        kit_close(world);
    }
}

static void
a_collector_waits_for_what_may_come_until_the_round_is_ripe_and_the_wait_over(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        kit_world *world = begin_collect();
        dp_node *node = world->nodes[0].node;
        dp_duty *duty = &node->parts->collects[PART].duty;
        const dp_peer other = kit_peer(2);
        const uint32_t index = dp_node_member_index(node, &other);
        if (what < 2) {
            kit_claim_by(node, 2)->parts.checked = 0; /* Its object has not come. */
        } else {
            kit_forget_claim(world, 0, 2);
            dp_member *member = (dp_member *)(uintptr_t)dp_members_at(node->members, index);
            member->linked = member->has_summary = member->summary.has_trainer = true;
            member->state = DP_MEMBER_ALIVE;
            member->summary.mode = what == 2 ? DP_MODE_SYNC : DP_MODE_PAUSED;
        }
        node->parts->ripe_at = (dp_time){0};
        tick(node);
        assert_int_equal(duty->works, what != 3); /* A member that does not train is not awaited. */
        assert_null(kit_find(world->actions, DP_DO_REDUCE));
        if (what != 3) {
            node->parts->ripe_at = node->now;
            duty->since = node->now;
            tick(node);
            assert_int_equal(duty->works, what < 2); /* One that has said nothing is left out. */
        }
        if (what < 2) {
            const dp_part_wait wait = dp_part_round_wait(node, PART);
            const dp_time end = dp_part_wait_owner(&wait, node->now, node->now, 1);
            assert_true(end.us > node->now.us);
            node->parts->ripe_at = (dp_time){1}; /* The later of both counts. */
            node->now.us = end.us - (what == 0 ? 1 : 0);
            tick(node);
            assert_int_equal(duty->works, what == 0);
        }
        *duty = (dp_duty){.works = false};
        kit_close(world);
    }
}

/* The collector holds, keeps and signs what its trainer has summed, and tells the owner twice. */
static void a_sum_is_told_to_its_owner_and_one_of_no_use_is_let_go(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 6; what++) {
        kit_world *world = begin_collect();
        dp_node *node = world->nodes[0].node;
        dp_part_round *parts = node->parts;
        dp_collecting *collecting = &parts->collects[PART];
        dp_view bytes;
        tick(node);
        dp_out_begin(&node->out, world->actions);
        dp_event event = {.type = DP_EV_REDUCED,
                          .u.reduced = {.round = node->ledger.round + 1,
                                        .part = DP_REDUCE_SUM + PART,
                                        .root = {{8, 8}},
                                        .bytes = 50}};
        const uint64_t made = parts->sums_made;
        event.u.reduced.round -= what == 1 ? 1 : 0;
        event.u.reduced.part = what == 2 ? DP_REDUCE_SUM + 3 : event.u.reduced.part;
        collecting->duty.reducing = what != 3;
        event.u.reduced.status = what == 4 ? DP_CORRUPT : DP_OK;
        parts->n_sums = what == 5 ? DP_SUMS_MAX : 0;
        dp_part_round_reduced(node, &event);
        assert_int_equal(collecting->duty.done, what == 0 || what == 4 || what == 5);
        assert_int_equal(collecting->duty.reducing, what == 1 || what == 2);
        const dp_action *drop = kit_find(world->actions, DP_DO_OBJECT_DROP);
        assert_int_equal(drop != NULL, what != 0 && what != 4);
        assert_true(drop == NULL || dp_hash_equal(&drop->u.keep.root, &event.u.reduced.root));
        assert_int_equal(told_owner(world, DP_MSG_SUBTOTAL, &bytes), what == 0);
        assert_int_equal(parts->sums_made, made + (what == 0 ? 1 : 0));
        if (what == 0) {
            const dp_action *keep = kit_find(world->actions, DP_DO_OBJECT_KEEP);
            dp_part_word word;
            assert_true(keep != NULL && dp_hash_equal(&keep->u.keep.root, &event.u.reduced.root));
            assert_int_equal(keep->u.keep.use, DP_USE_BLOB);
            assert_int_equal(keep->u.keep.round, node->ledger.round + 1);
            assert_true(dp_node_holds(node, &event.u.reduced.root));
            assert_int_equal(dp_site_sum_msg_read(bytes, &word), DP_OK);
            assert_true(
                dp_site_sum_verify(&word, &node->config.crypto, &node->run, &node->ledger.fork));
            assert_true(dp_peer_equal(&word.owner, &node->self));
            assert_int_equal(word.round, node->ledger.round + 1);
            assert_int_equal(word.part, PART);
            assert_int_equal(word.bytes, 50);
            assert_int_equal(word.n, 2);
            assert_int_equal(parts->n_sums, 1);
            assert_true(parts->sums[0].mine && !collecting->duty.works);
            dp_out_begin(&node->out, world->actions);
            dp_part_collect_repeat(node);
            assert_int_equal(told_owner(world, DP_MSG_SUBTOTAL, &bytes), 1);
            parts->sums[0].mine = false;
            collecting->duty.works = true;
            dp_out_begin(&node->out, world->actions);
            dp_part_collect_repeat(node);
            assert_int_equal(told_owner(world, DP_MSG_SUBTOTAL, &bytes), 0);
            assert_int_equal(told_owner(world, DP_MSG_COLLECT, &bytes), 1);
        }
        parts->n_sums = 0;
        collecting->duty = (dp_duty){.works = false};
        kit_close(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_a_site_adds_up_for_one_owner_of_the_other),
        cmocka_unit_test(a_collector_without_other_members_makes_no_sum),
        cmocka_unit_test(a_sum_that_the_trainer_cannot_make_is_given_up),
        cmocka_unit_test(one_object_of_two_is_in_one_sum_once),
        cmocka_unit_test(a_collector_sums_two_or_more_with_its_own_and_gives_up_less),
        cmocka_unit_test(
            a_collector_waits_for_what_may_come_until_the_round_is_ripe_and_the_wait_over),
        cmocka_unit_test(a_sum_is_told_to_its_owner_and_one_of_no_use_is_let_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
