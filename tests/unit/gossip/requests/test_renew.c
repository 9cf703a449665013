/* Certificates that are renewed before they end: the signers, the holders, the new end. The
 * attackers of these tests are a member that renews itself forever, and a removed one that
 * continues. */
#include "gossip/context/context.h"
#include "gossip/identity/renewal.h"
#include "gossip/node/node.h"
#include "gossip/requests/renew.h"
#include "gossip/requests/requests.h"
#include "tests/unit/gossip/kit/node_kit.h"

#define DAY_MS (24ULL * 3600 * 1000)

static dp_renewal renewal_of(uint32_t peer, uint32_t by, uint64_t until_ms)
{
    const bool root = by == KIT_ROOT;
    const dp_crypto crypto = kit_crypto(root ? 0 : by);
    const dp_run_id run = kit_run();
    dp_renewal renewal = {.peer = kit_peer(peer), .until_ms = until_ms, .by = kit_peer(by)};

    if (root) {
        memset(renewal.by.bytes, KIT_ROOT, sizeof renewal.by.bytes);
    }
    assert_true(dp_renewal_sign(&renewal, &crypto, root ? DP_KEY_ROOT : DP_KEY_IDENTITY, &run));
    return renewal;
}

static bool holds(const dp_ledger *ledger, dp_renewal renewal, uint64_t now_ms)
{
    const dp_crypto crypto = kit_crypto(0);

    return dp_renew_holds(&renewal, ledger, &crypto, now_ms);
}

static void members_that_may_invite_and_the_root_key_renew_others(void **state)
{
    dp_ledger ledger;

    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    assert_true(holds(&ledger, renewal_of(1, 2, 100), 50));
    assert_true(holds(&ledger, renewal_of(1, KIT_ROOT, 100), 50));
    assert_false(holds(&ledger, renewal_of(1, 1, 100), 50)); /* No member renews itself, */
    assert_false(holds(&ledger, renewal_of(1, 7, 100), 50)); /* nor does a stranger another, */
    ledger.roster[2].caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_INVITE;
    assert_false(holds(&ledger, renewal_of(1, 2, 100), 50)); /* nor one that may not invite, */
    ledger.roster[2].caps = DP_CAP_ALL;
    ledger.roster[2].gone = DP_REMOVE_REVOKED;
    assert_false(holds(&ledger, renewal_of(1, 2, 100), 50)); /* nor one that was put out since. */
    dp_ledger_close(&ledger);
}

static void a_removed_member_is_not_renewed(void **state)
{
    dp_ledger ledger;

    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    assert_true(holds(&ledger, renewal_of(1, KIT_ROOT, 100), 50));
    ledger.roster[1].gone = DP_REMOVE_REVOKED;
    assert_false(holds(&ledger, renewal_of(1, KIT_ROOT, 100), 50));
    assert_false(holds(&ledger, renewal_of(9, KIT_ROOT, 100), 50));
    dp_ledger_close(&ledger);
}

static void a_renewal_has_its_time_and_is_for_one_node(void **state)
{
    dp_ledger ledger;

    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    assert_true(holds(&ledger, renewal_of(1, 2, 100), 100));
    assert_false(holds(&ledger, renewal_of(1, 2, 100), 101));
    assert_false(holds(&ledger, renewal_of(1, 2, UINT64_MAX), 50)); /* Not for ever. */
    assert_true(holds(&ledger, renewal_of(1, 2, 50 + DP_CERT_NODE_MS_MAX), 50));
    dp_renewal moved = renewal_of(1, 2, 100);
    moved.peer = kit_peer(0);
    assert_false(holds(&ledger, moved, 50));
    moved = renewal_of(1, 2, 100);
    moved.until_ms = 200;
    assert_false(holds(&ledger, moved, 50));
    dp_ledger_close(&ledger);
}

static void a_renewal_comes_back_as_it_was(void **state)
{
    uint8_t room[DP_MSG_HEAD_BYTES + DP_RENEWAL_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_renewal renewal = renewal_of(1, 2, 100);
    dp_renewal read;

    (void)state;
    dp_renewal_msg_write(&writer, &renewal);
    assert_int_equal(writer.size, sizeof room);
    assert_int_equal(dp_renewal_msg_read(dp_view_of(room, sizeof room), &read), DP_OK);
    assert_memory_equal(&read, &renewal, sizeof read);
    for (size_t size = 0; size < sizeof room; size++) {
        assert_int_equal(dp_renewal_msg_read(dp_view_of(room, size), &read), DP_BADMSG);
    }
}

static bool sign_without_root(void *context, int key, const char *domain, dp_view bytes,
                              uint8_t signature[DP_SIGNATURE_BYTES])
{
    return key != DP_KEY_ROOT && kit_sign(context, key, domain, bytes, signature);
}

/* Node 1 of three, with a certificate of so many days that ends in so many; no node has the root
 * key. */
static kit_world *ending(uint64_t days, uint64_t left)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[1].node;

    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].node->config.crypto.sign = sign_without_root;
    }
    node->config.certified_until_ms = node->wall_ms + left * DAY_MS;
    node->config.certified_from_ms = node->config.certified_until_ms - days * DAY_MS;
    return world;
}

static void a_node_is_renewed_in_the_last_third_of_its_time_and_once(void **state)
{
    kit_world *world = ending(3, 2);

    (void)state;
    kit_run_ms(world, 8000);
    assert_int_equal(world->nodes[1].renewals, 0);
    kit_close(world);
    world = ending(300, 99);
    kit_run_ms(world, 8000);
    assert_int_equal(world->nodes[1].renewals, 1);
    const dp_renewal *renewal = &world->nodes[1].renewal;
    const dp_node *node = world->nodes[1].node;
    assert_true(dp_renew_holds(renewal, &world->nodes[0].node->ledger, &node->config.crypto,
                               node->wall_ms));
    assert_int_equal(dp_renew_end(node), renewal->until_ms);
    assert_true(renewal->until_ms > node->wall_ms + 364 * DAY_MS);
    kit_run_ms(world, 30000);
    assert_int_equal(world->nodes[1].renewals, 1);
    kit_close(world);
}

static void where_the_one_that_gave_it_is_put_out_another_is_asked(void **state)
{
    kit_world *world = ending(300, 99);
    dp_node *node = world->nodes[1].node;

    (void)state;
    kit_run_ms(world, 8000);
    assert_int_equal(world->nodes[1].renewals, 1);
    const uint32_t by = kit_index(&world->nodes[1].renewal.by);
    for (uint32_t i = 0; i < 3; i++) {
        dp_ledger *ledger = &world->nodes[i].node->ledger;
        const dp_peer peer = kit_peer(by);
        ledger->roster[dp_ledger_find(ledger, &peer)].caps &= ~(uint32_t)DP_CAP_INVITE;
    }
    assert_int_equal(dp_renew_end(node), node->config.certified_until_ms);
    kit_run_ms(world, 30000);
    assert_int_equal(world->nodes[1].renewals, 2);
    assert_int_not_equal(kit_index(&world->nodes[1].renewal.by), by);
    kit_close(world);
}

static void with_the_root_key_a_node_renews_itself(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->config.certified_until_ms = node->wall_ms + DAY_MS;
    node->config.certified_from_ms = node->config.certified_until_ms - 300 * DAY_MS;
    kit_run_ms(world, 8000);
    assert_int_equal(world->nodes[0].renewals, 1);
    kit_close(world);
}

static void ask(kit_world *world, uint32_t from, uint32_t to)
{
    static const uint8_t question[] = {DP_MSG_RENEW_GET, DP_MSG_VERSION};

    (void)kit_tell(world, from, to, dp_view_of(question, sizeof question));
}

static bool answered(const kit_world *world)
{
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_RENEWAL) {
            return true;
        }
    }
    return false;
}

static void a_node_that_leaves_or_has_left_gets_no_renewal(void **state)
{
    kit_world *world = ending(300, 200);
    dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(2);
    dp_renewal forged = renewal_of(1, 1, node->wall_ms + 5);
    uint8_t room[DP_MSG_HEAD_BYTES + DP_RENEWAL_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    ask(world, 2, 0);
    assert_true(answered(world));
    node->requests->removes[0] = (dp_remove){.peer = peer, .reason = DP_REMOVE_REVOKED};
    node->requests->n_removes = 1;
    ask(world, 2, 0);
    assert_false(answered(world));
    node->requests->n_removes = 0;
    node->ledger.roster[dp_ledger_find(&node->ledger, &peer)].gone = DP_REMOVE_LEFT;
    ask(world, 2, 0);
    assert_false(answered(world));
    node->ledger.roster[dp_ledger_find(&node->ledger, &peer)].gone = 0;
    const uint64_t rejected = kit_look(world, 1).rejected; /* A forged one is refused. */
    dp_renewal_msg_write(&writer, &forged);
    (void)kit_tell(world, 2, 1, dp_view_of(room, writer.size));
    assert_int_equal(kit_look(world, 1).rejected, rejected + 1);
    assert_int_equal(world->nodes[1].renewals, 0);
    kit_close(world);
}

static void a_newcomer_believes_what_is_signed_and_a_member_its_chain(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(1);
    const dp_renewal own = renewal_of(1, 1, node->wall_ms + 5);
    const dp_renewal good = renewal_of(1, 2, node->wall_ms + 5);
    const dp_peer self = node->self;

    (void)state;
    assert_true(dp_node_renewed(node, &good, &peer, node->wall_ms));
    assert_false(dp_node_renewed(node, &own, &peer, node->wall_ms));
    assert_false(dp_node_renewed(node, &good, &self, node->wall_ms)); /* Of another node. */
    node->ledger.roster[dp_ledger_find(&node->ledger, &self)].gone = DP_REMOVE_ABSENT;
    node->mode = DP_MODE_JOINING;
    assert_true(dp_node_renewed(node, &own, &peer, node->wall_ms));
    assert_false(dp_node_renewed(node, &own, &peer, node->wall_ms + 6));
    node->ledger.roster[dp_ledger_find(&node->ledger, &self)].gone = 0;
    node->mode = DP_MODE_SYNC;
    kit_close(world);
}

static void no_byte_of_a_renewal_can_be_another(void **state)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_run_id run = kit_run();
    const dp_peer peer = kit_peer(1);
    const dp_renewal renewal = renewal_of(1, 2, 0x010203);
    uint8_t bytes[2 + DP_RENEWAL_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_renewal read = {0};

    (void)state;
    dp_renewal_msg_write(&writer, &renewal);
    assert_int_equal(writer.size, sizeof bytes);
    assert_int_equal(dp_renewal_msg_read(dp_view_of(bytes, sizeof bytes), &read), DP_OK);
    assert_memory_equal(&read, &renewal, sizeof read);
    assert_true(dp_renewal_fits(&read, &crypto, &run, &peer, 50));
    assert_false(dp_renewal_fits(&read, &crypto, &(dp_run_id){{9}}, &peer, 50));
    for (size_t at = 0; at < sizeof bytes; at++) {
        bytes[at] ^= 1;
        assert_true(dp_renewal_msg_read(dp_view_of(bytes, sizeof bytes), &read) != DP_OK ||
                    !dp_renewal_fits(&read, &crypto, &run, &peer, 50));
        bytes[at] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_may_invite_and_the_root_key_renew_others),
        cmocka_unit_test(a_removed_member_is_not_renewed),
        cmocka_unit_test(a_renewal_has_its_time_and_is_for_one_node),
        cmocka_unit_test(a_renewal_comes_back_as_it_was),
        cmocka_unit_test(a_node_is_renewed_in_the_last_third_of_its_time_and_once),
        cmocka_unit_test(where_the_one_that_gave_it_is_put_out_another_is_asked),
        cmocka_unit_test(with_the_root_key_a_node_renews_itself),
        cmocka_unit_test(a_node_that_leaves_or_has_left_gets_no_renewal),
        cmocka_unit_test(a_newcomer_believes_what_is_signed_and_a_member_its_chain),
        cmocka_unit_test(no_byte_of_a_renewal_can_be_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
