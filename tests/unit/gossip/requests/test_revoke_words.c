/* The statements about invites that a node keeps until the chain has them: which it takes, in what
 * order, and which it puts into a record. */
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_node *begin(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return node;
}

/* By the root key, which node 0 has. */
static dp_invite_revoke word_of(const dp_node *node, uint8_t id, uint64_t until_ms)
{
    dp_invite_revoke word = {.id = {{id}}, .until_ms = until_ms};

    memcpy(word.by.bytes, node->ledger.root_key, sizeof word.by.bytes);
    assert_true(dp_invite_revoke_sign(&word, &node->config.crypto, DP_KEY_ROOT, &node->run));
    return word;
}

static dp_status take(dp_node *node, uint8_t id, uint64_t until_ms)
{
    const dp_invite_revoke word = word_of(node, id, until_ms);

    return dp_revoke_request(node, &word);
}

static void words_are_kept_in_order_of_invite_and_told_once(void **state)
{
    static const uint8_t ids[] = {5, 9, 2, 7};
    static const uint8_t rising[] = {2, 5, 7, 9};
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_revoke_requests *words = node->requests->invites;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        node->changed = false;
        assert_int_equal(take(node, ids[i], UINT64_MAX), DP_OK);
        assert_true(node->changed);
        assert_int_equal(world->actions->count, i + 1);
    }
    assert_int_equal(words->n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(words->words[i].id.bytes[0], rising[i]);
        assert_true(dp_revoke_requested(node, &words->words[i].id));
    }
    node->changed = false;
    assert_int_equal(take(node, 5, UINT64_MAX), DP_OK);
    assert_false(node->changed);
    assert_int_equal(world->actions->count, 4);
    assert_false(dp_revoke_requested(node, &(dp_invite_id){{6}}));
    dp_out_begin(&node->out, world->actions);
    dp_revoke_request_repeat(node); /* Each again, in this order. */
    assert_int_equal(world->actions->count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const dp_view bytes = world->actions->items[i].u.send.bytes;
        const dp_invite_id id = {{rising[i]}};
        assert_int_equal(world->actions->items[i].type, DP_DO_SEND);
        assert_int_equal(world->actions->items[i].u.send.to, DP_TO_ALL);
        assert_non_null(memmem(bytes.data, bytes.size, id.bytes, sizeof id.bytes));
    }
    kit_close(world);
}

static void a_word_that_lasts_longer_takes_the_place_of_the_one_before(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_revoke_requests *words = node->requests->invites;
    const uint64_t now_ms = dp_node_record_ms(node);

    (void)state;
    assert_int_equal(take(node, 5, now_ms), DP_OK); /* It is over. */
    assert_int_equal(words->n, 0);
    assert_int_equal(take(node, 5, now_ms + 1000), DP_OK);
    assert_int_equal(take(node, 4, now_ms + 1000), DP_OK);
    assert_int_equal(take(node, 5, now_ms + 999), DP_OK);
    assert_int_equal(words->words[1].until_ms, now_ms + 1000);
    assert_int_equal(take(node, 5, now_ms + 1001), DP_OK);
    assert_int_equal(words->n, 2);
    assert_int_equal(words->words[1].until_ms, now_ms + 1001);
    assert_int_equal(words->words[0].until_ms, now_ms + 1000);
    kit_close(world);
}

static void more_words_than_a_record_holds_are_told_again(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    for (uint32_t i = 0; i < DP_CONFIG_REVOKE_MAX; i++) {
        assert_int_equal(take(node, (uint8_t)(i + 1), UINT64_MAX), DP_OK);
    }
    assert_int_equal(take(node, 200, UINT64_MAX), DP_AGAIN);
    assert_int_equal(take(node, 1, UINT64_MAX), DP_OK);
    assert_int_equal(node->requests->invites->n, DP_CONFIG_REVOKE_MAX);
    kit_close(world);
}

static void a_chain_without_room_takes_no_more_words(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    node->ledger.n_revoked = DP_REVOKED_INVITES_MAX;
    for (uint32_t i = 0; i < DP_REVOKED_INVITES_MAX; i++) {
        node->ledger.revoked[i] =
            (dp_revoked_invite){.id = {{9, (uint8_t)i, (uint8_t)(i >> 8)}}, .until_ms = UINT64_MAX};
    }
    assert_int_equal(take(node, 5, UINT64_MAX), DP_TOOBIG);
    node->ledger.revoked[3].until_ms = dp_node_record_ms(node) - 1; /* It may be forgotten. */
    assert_int_equal(take(node, 5, UINT64_MAX), DP_OK);
    node->ledger.n_revoked = 0;
    kit_close(world);
}

static void words_that_the_chain_has_or_that_are_over_are_forgotten(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_revoke_requests *words = node->requests->invites;

    (void)state;
    for (uint8_t id = 1; id <= 4; id++) {
        assert_int_equal(take(node, id, UINT64_MAX - 1), DP_OK);
    }
    node->ledger.revoked[0] = (dp_revoked_invite){.id = {{2}}, .until_ms = UINT64_MAX - 1};
    node->ledger.n_revoked = 1;
    words->words[2].until_ms = node->ledger.time_ms;
    words->words[3].by = kit_peer(9); /* It may not, any more. */
    dp_revoke_request_forget_done(node);
    assert_int_equal(words->n, 1);
    assert_int_equal(words->words[0].id.bytes[0], 1);
    node->ledger.n_revoked = 0;
    kit_close(world);
}

static void a_record_has_the_words_that_may_still_stand_in_it_and_find_room(void **state)
{
    static dp_record draft;
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_revoke_requests *words = node->requests->invites;

    (void)state;
    draft.time_ms = dp_node_record_ms(node);
    dp_revoke_request_draft(node, &draft);
    assert_int_equal(draft.config.n_revoked, 0);
    assert_false(draft.config.has_revoked);
    for (uint8_t id = 1; id <= 4; id++) {
        assert_int_equal(take(node, id, UINT64_MAX), DP_OK);
    }
    words->words[1].until_ms = draft.time_ms;
    words->words[2].by = kit_peer(9);
    dp_revoke_request_draft(node, &draft);
    assert_int_equal(draft.config.n_revoked, 2);
    assert_true(draft.config.has_revoked);
    assert_int_equal(draft.config.revoked[0].id.bytes[0], 1);
    assert_int_equal(draft.config.revoked[1].id.bytes[0], 4);
    memset(&draft.config, 0, sizeof draft.config);
    node->ledger.n_revoked = DP_REVOKED_INVITES_MAX - 1;
    for (uint32_t i = 0; i < node->ledger.n_revoked; i++) {
        node->ledger.revoked[i] =
            (dp_revoked_invite){.id = {{9, (uint8_t)i, (uint8_t)(i >> 8)}}, .until_ms = UINT64_MAX};
    }
    dp_revoke_request_draft(node, &draft);
    assert_int_equal(draft.config.n_revoked, 1);
    node->ledger.n_revoked = 0;
    kit_close(world);
}

/* From then on the chain judges the invites of all members. */
static void a_record_begins_the_list_of_invites_when_a_member_is_put_out_for_cause(void **state)
{
    static dp_record draft;
    static const dp_remove_reason reasons[] = {DP_REMOVE_LEFT, DP_REMOVE_ABSENT, DP_REMOVE_REVOKED,
                                               DP_REMOVE_HARMFUL};
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        memset(&draft, 0, sizeof draft);
        draft.time_ms = dp_node_record_ms(node);
        draft.config.n_removes = 1;
        draft.config.removes[0].reason = reasons[i];
        dp_revoke_request_draft(node, &draft);
        assert_int_equal(draft.config.has_revoked, i >= 2);
        node->ledger.judges_invites = true; /* It has begun. */
        dp_revoke_request_draft(node, &draft);
        assert_false(draft.config.has_revoked);
        node->ledger.judges_invites = false;
    }
    draft.config.n_removes = 0;
    node->ledger.roster[0].gone = DP_REMOVE_HARMFUL;
    dp_revoke_request_draft(node, &draft);
    assert_true(draft.config.has_revoked);
    node->ledger.roster[0].gone = 0;
    kit_close(world);
}

static void a_newcomer_is_struck_by_a_requested_word_about_its_invite_or_the_one_above(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_admitted admitted = {.invite = {{3}}, .invite_above = {{4}}};

    (void)state;
    assert_null(dp_revoke_request_struck(node, NULL, &admitted));
    assert_int_equal(take(node, 3, UINT64_MAX), DP_OK);
    assert_string_equal(dp_revoke_request_struck(node, NULL, &admitted), "an invite was revoked");
    admitted.invite = (dp_invite_id){{5}};
    assert_null(dp_revoke_request_struck(node, NULL, &admitted));
    assert_int_equal(take(node, 4, UINT64_MAX), DP_OK);
    assert_string_equal(dp_revoke_request_struck(node, NULL, &admitted), "an invite was revoked");
    kit_close(world);
}

static void
members_that_came_by_an_invite_are_put_out_on_one_order_and_this_node_is_not(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    dp_revoke_requests *words = node->requests->invites;
    const dp_invite_id id = {{44}};
    const dp_invite_id none = {{45}};

    (void)state;
    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        node->ledger.roster[i].invite = id;
    }
    assert_int_equal(dp_invite_sweep(node, &none), DP_OK);
    assert_int_equal(words->n_sweeps, 0); /* Nobody came by it. */
    assert_int_equal(dp_invite_sweep(node, &id), DP_OK);
    assert_int_equal(words->n_sweeps, 1);
    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        const dp_peer *peer = &node->ledger.roster[i].peer;
        assert_int_equal(dp_node_revoked(node, peer), !dp_peer_equal(peer, &node->self));
    }
    const uint32_t requested = node->requests->n_removes;
    assert_int_equal(dp_invite_sweep(node, &id), DP_OK);
    assert_int_equal(words->n_sweeps, 1);
    assert_int_equal(node->requests->n_removes, requested);
    words->n_sweeps = DP_SWEEPS_MAX;
    for (uint32_t i = 0; i < DP_SWEEPS_MAX; i++) {
        words->sweeps[i] = (dp_invite_id){{100}};
    }
    assert_int_equal(dp_invite_sweep(node, &id), DP_AGAIN);
    words->n_sweeps = 0;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_kept_in_order_of_invite_and_told_once),
        cmocka_unit_test(a_word_that_lasts_longer_takes_the_place_of_the_one_before),
        cmocka_unit_test(more_words_than_a_record_holds_are_told_again),
        cmocka_unit_test(a_chain_without_room_takes_no_more_words),
        cmocka_unit_test(words_that_the_chain_has_or_that_are_over_are_forgotten),
        cmocka_unit_test(a_record_has_the_words_that_may_still_stand_in_it_and_find_room),
        cmocka_unit_test(a_record_begins_the_list_of_invites_when_a_member_is_put_out_for_cause),
        cmocka_unit_test(
            a_newcomer_is_struck_by_a_requested_word_about_its_invite_or_the_one_above),
        cmocka_unit_test(
            members_that_came_by_an_invite_are_put_out_on_one_order_and_this_node_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
