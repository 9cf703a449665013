/* Rounds whose records name lists, and lists between voters. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/record/listing.h"
#include "gossip/record/lists.h"
#include "gossip/round/round.h"
#include "gossip/vote/commit_row.h"
#include "tests/unit/gossip/kit/node_kit.h"

static uint8_t room[DP_MESSAGE_MAX];

/* Nodes that vote, in a run of up to so many contributors, with rounds behind them. */
static kit_world *listing_up_to(uint32_t most, uint32_t n)
{
    kit_world *world = kit_open(n);

    world->manifest.contributors_max = most;
    kit_start_anew(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, n);
    return world;
}

static kit_world *listing(uint32_t n)
{
    return listing_up_to(64, n);
}

static const dp_record *newest(kit_world *world, uint32_t node)
{
    static dp_record record;
    const kit_record *at = &world->nodes[node].records[world->nodes[node].slots];

    assert_int_equal(dp_record_decode(&record, dp_view_of(at->record, at->record_size)), DP_OK);
    return &record;
}

static dp_view ask_for(const kit_world *world, uint32_t asker, const dp_hash *hash)
{
    dp_list_get_msg get = {.asker = world->nodes[asker].node->self, .n = 1, .hashes = {*hash}};
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_list_get_msg_write(&writer, &get);
    return dp_view_of(writer.data, writer.size);
}

/* An answer among the actions; empty: none. */
static dp_view answer(const dp_actions *actions)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_LIST) {
            return action->u.send.bytes;
        }
    }
    return (dp_view){0};
}

static void rounds_go_on_with_records_that_name_lists(void **state)
{
    kit_world *world = listing(3);
    const uint64_t round = kit_look(world, 0).round;

    (void)state;
    kit_run_ms(world, 3000);
    assert_true(kit_look(world, 0).round > round);
    assert_true(world->sent[DP_MSG_DECIDE] > 0); /* Once the record is durable. */
    for (uint32_t i = 0; i < 3; i++) {
        const dp_record *record = newest(world, i); /* Whole, at all nodes. */
        assert_true(record->in_lists);
        assert_int_equal(record->n_listed, 3);
    }
    kit_close(world);
}

static void a_voter_is_given_what_it_asks_for_and_nobody_else_is(void **state)
{
    kit_world *world = listing(3);
    dp_lists *lists = &world->nodes[0].node->list_exchange->lists;
    const dp_hash *known = NULL;
    dp_view list;

    (void)state;
    for (uint32_t i = 0; i < lists->capacity && known == NULL; i++) {
        known = lists->known[i].order != 0 ? &lists->known[i].hash : NULL;
    }
    assert_non_null(known);
    const dp_hash hash = *known;
    assert_int_equal(
        dp_list_msg_read(answer(kit_tell(world, 1, 0, ask_for(world, 1, &hash))), &list), DP_OK);
    const dp_hash got = dp_listing_hash(list);
    assert_true(dp_hash_equal(&got, &hash));
    const dp_hash other = {{99}};
    assert_int_equal(answer(kit_tell(world, 1, 0, ask_for(world, 1, &other))).size, 0);
    dp_list_get_msg stranger = {.asker = {{77}}, .n = 1, .hashes = {hash}};
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_list_get_msg_write(&writer, &stranger);
    assert_int_equal(answer(kit_tell(world, 1, 0, dp_view_of(room, writer.size))).size, 0);
    kit_close(world);
}

/* A list that this node knows. */
static dp_hash known_to(kit_world *world, uint32_t node)
{
    const dp_lists *lists = &world->nodes[node].node->list_exchange->lists;

    for (uint32_t i = 0; i < lists->capacity; i++) {
        if (lists->known[i].order != 0) {
            return lists->known[i].hash;
        }
    }
    fail_msg("it knows no list");
    return (dp_hash){{0}};
}

static void nobody_has_lists_sent_to_a_voter_that_is_heard_on_its_own_link(void **state)
{
    kit_world *world = listing(3);
    const dp_hash hash = known_to(world, 0);

    (void)state;
    assert_int_equal(answer(kit_tell(world, 2, 0, ask_for(world, 1, &hash))).size, 0);
    world->nodes[0].node->beat.voters[1].direct =
        (dp_time){0}; /* It is not heard, so it asks through others. */
    assert_true(answer(kit_tell(world, 2, 0, ask_for(world, 1, &hash))).size > 0);
    kit_close(world);
}

static void each_list_that_is_given_counts_as_one_that_was_asked_for(void **state)
{
    enum { ASKED = 32, MOST = 4 * DP_SERVES_PER_SECOND };
    kit_world *world = listing(3);
    const dp_hash hash = known_to(world, 0);
    dp_list_get_msg get = {.asker = world->nodes[1].node->self, .n = ASKED};
    dp_writer writer = dp_writer_of(room, sizeof room);
    uint32_t given = 0;

    (void)state;
    for (uint32_t i = 0; i < ASKED; i++) {
        get.hashes[i] = hash;
    }
    dp_list_get_msg_write(&writer, &get);
    for (uint32_t asked = 0; asked < MOST; asked += ASKED) {
        const dp_actions *actions = kit_tell(world, 1, 0, dp_view_of(writer.data, writer.size));
        for (uint32_t i = 0; i < actions->count; i++) {
            const dp_action *action = &actions->items[i];
            given +=
                action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_LIST;
        }
    }
    assert_in_range(given, ASKED, DP_SERVES_PER_SECOND);
    kit_close(world);
}

static dp_hash left_over(uint32_t i)
{
    return (dp_hash){{0xee, (uint8_t)i, (uint8_t)(i >> 8)}};
}

static uint32_t holds_left_over(const kit_world *world, uint32_t n)
{
    uint32_t held = 0;

    for (uint32_t i = 0; i < n; i++) {
        const dp_hash root = left_over(i);
        held += dp_node_holds(world->nodes[0].node, &root);
    }
    return held;
}

static void updates_that_no_record_counts_are_let_go_however_many_they_are(void **state)
{
    enum { MANY = DP_ACTIONS_MAX + 300 };
    kit_world *world = listing_up_to(DP_LISTED_MAX, 3);
    dp_node *node = world->nodes[0].node;
    const uint64_t round = node->ledger.round;

    (void)state;
    assert_true(node->round->n_claims + MANY <= node->round->claims_max);
    for (uint32_t i = 0; i < MANY; i++) {
        const dp_hash root = left_over(i);
        node->round->claims[node->round->n_claims++] =
            (dp_claim){.ready = {.peer = {{0xdd, (uint8_t)i, (uint8_t)(i >> 8)}},
                                 .round = round + 1,
                                 .root = root},
                       .held = true,
                       .checked = true,
                       .evidence = true};
        dp_node_hold(node, &root, 100);
    }
    dp_round_index_claims(node);
    assert_int_equal(holds_left_over(world, MANY), MANY);
    kit_run_ms(world, 4000);
    assert_true(node->ledger.round > round);
    assert_int_equal(holds_left_over(world, MANY), 0);
    assert_int_equal(node->round->n_unlisted, 0);
    kit_close(world);
}

static void a_node_of_a_run_without_lists_takes_none(void **state)
{
    kit_world *world = kit_open(2);
    const dp_hash hash = {{1}};

    (void)state;
    kit_link_all(world);
    kit_run_ms(world, 1000);
    const uint64_t before = kit_look(world, 0).rejected;
    assert_int_equal(answer(kit_tell(world, 1, 0, ask_for(world, 1, &hash))).size, 0);
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    kit_close(world);
}

static void a_vote_is_written_with_the_lists_of_its_record_and_gives_them_back(void **state)
{
    kit_world *world = listing(3);
    dp_node *node = world->nodes[0].node;
    const kit_record *at = &world->nodes[0].records[world->nodes[0].slots];
    const dp_view whole = dp_view_of(at->record, at->record_size);
    const dp_commit_row voted = {
        .slot = 9, .promised = 4, .accepted = 4, .record = dp_record_voted(whole)};
    dp_commit_row row;

    (void)state;
    dp_lists_put_all(&node->list_exchange->lists, whole);
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_commit_row_write(&writer, &voted);
    node->list_exchange->lists.n_wanted = 1; /* Of a proposal that waits for it. */
    const dp_view written = dp_list_row_whole(node, dp_view_of(room, writer.size));
    assert_int_equal(node->list_exchange->lists.n_wanted, 1);
    assert_int_equal(dp_commit_row_read(written, &row), DP_OK);
    assert_true(dp_view_equal(row.record, whole));
    uint8_t *disk = malloc(written.size);
    assert_non_null(disk);
    memcpy(disk, written.data, written.size);
    /* A new life knows no list. */
    dp_lists_close(&node->list_exchange->lists);
    assert_int_equal(dp_lists_open(&node->list_exchange->lists, 64), DP_OK);
    const dp_view given = dp_list_row_voted(node, dp_view_of(disk, written.size));
    assert_true(dp_view_equal(given, dp_view_of(room, writer.size)));
    dp_view joined;
    assert_int_equal(dp_list_join(node, dp_record_voted(whole), false, &joined), DP_OK);
    assert_true(dp_view_equal(joined, whole));
    free(disk);
    kit_close(world);
}

static void messages_that_are_cut_are_refused(void **state)
{
    kit_world *world = listing(2);
    dp_node *node = world->nodes[0].node;
    const dp_hash hash = {{7}};
    const dp_peer from = kit_peer(1);
    const dp_view get = ask_for(world, 1, &hash);

    (void)state;
    for (size_t size = 0; size < get.size; size++) {
        const dp_view cut = dp_view_of(get.data, size);
        assert_int_not_equal(dp_list_message(node, DP_MSG_LIST_GET, cut, &from), DP_OK);
        assert_int_not_equal(dp_list_message(node, DP_MSG_LIST, cut, &from), DP_OK);
    }
    kit_close(world);
}

static void a_record_that_is_damaged_or_not_whole_is_not_taken(void **state)
{
    static uint8_t copy[DP_RECORD_WHOLE_MAX];
    kit_world *lists = listing(2);
    kit_world *world = kit_open(2);
    const kit_record *at = &lists->nodes[0].records[lists->nodes[0].slots];
    const dp_view voted = dp_record_voted(dp_view_of(at->record, at->record_size));

    (void)state;
    memcpy(copy, voted.data, voted.size);
    for (uint32_t i = 0; i < 2; i++) { /* Its rows are missing; then it is none. */
        assert_int_equal(
            dp_chain_offer(world->nodes[0].node, dp_view_of(copy, voted.size), (dp_view){0}),
            DP_BADMSG);
        copy[1] = 99;
    }
    kit_close(world);
    kit_close(lists);
}

/* Gives the voter lists that others propose meanwhile and that it has not accepted. */
static void take_lists_of_others(dp_node *node, uint32_t n)
{
    static uint8_t bytes[DP_LIST_BYTES_MAX];

    for (uint32_t i = 0; i < n; i++) {
        const dp_listed row = {.peer = {{(uint8_t)(1 + i)}}};
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_listing_write(&writer, &row, 1);
        dp_lists_put(&node->list_exchange->lists, dp_view_of(bytes, writer.size));
    }
}

/* The newest record of node 0 as the one that it has accepted, written to room. */
static dp_view accepted_row(const kit_world *world, dp_view *whole)
{
    const kit_record *at = &world->nodes[0].records[world->nodes[0].slots];
    dp_writer writer = dp_writer_of(room, sizeof room);

    *whole = dp_view_of(at->record, at->record_size);
    const dp_commit_row row = {
        .slot = 9, .promised = 4, .accepted = 4, .record = dp_record_voted(*whole)};
    dp_commit_row_write(&writer, &row);
    return dp_view_of(room, writer.size);
}

static void the_lists_of_what_was_accepted_outlast_those_of_many_proposals(void **state)
{
    kit_world *world = listing(3);
    dp_node *node = world->nodes[0].node;
    dp_commit_row row;
    dp_view whole;

    (void)state;
    const dp_view bytes = accepted_row(world, &whole);
    dp_lists_put_all(&node->list_exchange->lists, whole);
    assert_true(dp_list_row_whole(node, bytes).size > bytes.size); /* Accepted. */
    take_lists_of_others(node, 4 * node->list_exchange->lists.capacity);
    /* A promise of a later ballot is written with it. */
    assert_int_equal(dp_commit_row_read(dp_list_row_whole(node, bytes), &row), DP_OK);
    assert_true(dp_view_equal(row.record, whole));
    kit_close(world);
}

static void a_vote_whose_lists_are_spoilt_on_the_disk_counts_as_lost(void **state)
{
    kit_world *world = listing(3);
    dp_node *node = world->nodes[0].node;
    dp_view whole;

    (void)state;
    const dp_view bytes = accepted_row(world, &whole);
    dp_lists_put_all(&node->list_exchange->lists, whole);
    const dp_view written = dp_list_row_whole(node, bytes);
    uint8_t *disk = malloc(written.size);
    assert_non_null(disk);
    memcpy(disk, written.data, written.size);
    disk[written.size - 1] ^= 1;
    dp_lists_close(&node->list_exchange->lists);
    assert_int_equal(dp_lists_open(&node->list_exchange->lists, 64), DP_OK);
    assert_int_not_equal(dp_node_restore_vote(node, dp_view_of(disk, written.size)), DP_OK);
    assert_true(node->commit->key_lost);
    free(disk);
    kit_close(world);
}

static void missing_lists_are_asked_of_one_voter_after_the_other(void **state)
{
    static dp_actions actions;
    kit_world *world = listing(3);
    dp_node *node = world->nodes[2].node;
    static uint8_t copy[DP_RECORD_WHOLE_MAX];
    const kit_record *at = &world->nodes[2].records[world->nodes[2].slots];
    const dp_view voted = dp_record_voted(dp_view_of(at->record, at->record_size));
    dp_peer asked[4];
    dp_view whole;

    (void)state;
    memcpy(copy, voted.data, voted.size);
    dp_lists_close(&node->list_exchange->lists);
    assert_int_equal(dp_lists_open(&node->list_exchange->lists, 64), DP_OK);
    for (uint32_t i = 0; i < 4; i++) {
        dp_out_begin(&node->out, &actions);
        assert_int_equal(dp_list_join(node, dp_view_of(copy, voted.size), true, &whole), DP_AGAIN);
        assert_int_equal(actions.count, 1);
        assert_int_equal(dp_msg_type_of(actions.items[0].u.send.bytes), DP_MSG_LIST_GET);
        asked[i] = actions.items[0].u.send.peer;
        assert_false(dp_peer_equal(&asked[i], &node->self));
        dp_out_begin(&node->out, &actions);
        assert_int_equal(dp_list_join(node, dp_view_of(copy, voted.size), true, &whole), DP_AGAIN);
        assert_int_equal(actions.count, 0); /* Not at once again. */
        node->now = dp_time_after(node->now, DP_SECOND);
    }
    assert_false(dp_peer_equal(&asked[0], &asked[1]) && dp_peer_equal(&asked[1], &asked[2]));
    kit_close(world);
}

/* The voter that proposed the record, promised it, or voted for it. */
static void the_first_that_is_asked_for_lists_is_known_to_have_them(void **state)
{
    static dp_actions actions;
    kit_world *world = listing(3);
    dp_node *node = world->nodes[2].node;
    dp_commit *commit = node->commit;
    static uint8_t copy[DP_RECORD_WHOLE_MAX];
    const kit_record *at = &world->nodes[2].records[world->nodes[2].slots];
    const dp_view voted = dp_record_voted(dp_view_of(at->record, at->record_size));
    const dp_hash hash = dp_record_hash(voted);
    dp_view whole;

    (void)state;
    memcpy(copy, voted.data, voted.size);
    for (uint32_t v = 0; v < commit->n; v++) {
        for (uint32_t how = 0; how < 3 && v != commit->self; how++) {
            dp_lists_close(&node->list_exchange->lists);
            assert_int_equal(dp_lists_open(&node->list_exchange->lists, 64), DP_OK);
            memset(&node->list_exchange->asked_for, 0, sizeof node->list_exchange->asked_for);
            memset(commit->votes, 0, sizeof commit->votes);
            memset(commit->promises, 0, sizeof commit->promises);
            commit->has_waiting = how == 0;
            commit->waiting.vote.voter = (uint8_t)v;
            commit->waiting.vote.hash = hash;
            commit->promised_by = how == 1 ? 1U << v : 0;
            commit->promises[v].hash = hash;
            commit->voted = how == 2 ? 1U << v : 0;
            commit->votes[v].hash = hash;
            node->now = dp_time_after(node->now, DP_SECOND);
            dp_out_begin(&node->out, &actions);
            assert_int_equal(dp_list_join(node, dp_view_of(copy, voted.size), true, &whole),
                             DP_AGAIN);
            assert_int_equal(actions.count, 1);
            assert_true(dp_peer_equal(&actions.items[0].u.send.peer, &node->ledger.voters[v].peer));
        }
    }
    commit->voted = commit->promised_by = 0;
    commit->has_waiting = false;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_go_on_with_records_that_name_lists),
        cmocka_unit_test(a_voter_is_given_what_it_asks_for_and_nobody_else_is),
        cmocka_unit_test(updates_that_no_record_counts_are_let_go_however_many_they_are),
        cmocka_unit_test(nobody_has_lists_sent_to_a_voter_that_is_heard_on_its_own_link),
        cmocka_unit_test(each_list_that_is_given_counts_as_one_that_was_asked_for),
        cmocka_unit_test(a_node_of_a_run_without_lists_takes_none),
        cmocka_unit_test(a_vote_is_written_with_the_lists_of_its_record_and_gives_them_back),
        cmocka_unit_test(messages_that_are_cut_are_refused),
        cmocka_unit_test(a_record_that_is_damaged_or_not_whole_is_not_taken),
        cmocka_unit_test(the_lists_of_what_was_accepted_outlast_those_of_many_proposals),
        cmocka_unit_test(a_vote_whose_lists_are_spoilt_on_the_disk_counts_as_lost),
        cmocka_unit_test(missing_lists_are_asked_of_one_voter_after_the_other),
        cmocka_unit_test(the_first_that_is_asked_for_lists_is_known_to_have_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
