/* revoke, run.fork, run.merge: orders to the node, and a fork that goes back to a checkpoint. */
#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/daemon/call_kit.h"

static bool peer_is_known;

bool dp_call_find_peer(const dp_daemon *daemon, const dp_call *call,
                       const dp_pack_value *parameters, dp_peer *peer)
{
    (void)daemon;
    (void)parameters;
    *peer = (dp_peer){{5}};
    if (!peer_is_known) {
        dp_call_fail(call, 1, "E0120", "", "unknown peer", "");
    }
    return peer_is_known;
}

static void open_node(void)
{
    call_open();
    peer_is_known = true;
}

static void a_member_is_put_out_with_the_key_that_is_here(void **state)
{
    (void)state;
    open_node();
    CALL(dp_method_revoke, TEXT("peer", "bob"));
    assert_true(call_kit.order.kind == DP_ADMIN_REVOKE && call_kit.order.peer.bytes[0] == 5);
    assert_string_equal(text_at(call_body(), "key"), "admin");
    assert_string_equal(text_at(call_body(), "text"), "");
    assert_true(desk_logged("member.revoked"));
    desk.daemon.has_root = true;
    CALL(dp_method_revoke, TEXT("peer", "bob"));
    assert_string_equal(text_at(call_body(), "key"), "root");
    call_close();
}

static void an_order_that_the_node_refuses_changes_nothing(void **state)
{
    (void)state;
    open_node();
    call_kit.ordered = DP_DENIED;
    snprintf(call_kit.why, sizeof call_kit.why, "it has no root key");
    CALL(dp_method_revoke, TEXT("peer", "bob"));
    assert_true(call_failed("E0121", 77));
    assert_string_equal(call_kit.error.why, "it has no root key");
    assert_false(desk_logged("member.revoked"));
    CALL_ALONE(dp_method_run_fork);
    assert_true(call_failed("E0123", 77));
    assert_string_equal(call_kit.error.what, "the chain is not restarted");
    CALL_ALONE(dp_method_run_merge);
    assert_true(call_failed("E0123", 77));
    assert_string_equal(call_kit.error.what, "the chains are not merged");
    call_close();
}

static void without_a_run_or_a_peer_nothing_is_ordered(void **state)
{
    (void)state;
    open_node();
    peer_is_known = false;
    CALL(dp_method_revoke, TEXT("peer", "eve"));
    assert_true(call_failed("E0120", 1));
    desk.daemon.driver = NULL;
    CALL(dp_method_revoke, TEXT("peer", "bob"));
    CALL_ALONE(dp_method_run_fork);
    CALL(dp_method_run_fork, NUMBER("round", 3));
    assert_true(call_failed("E0105", 75) && call_kit.n_orders == 0);
    call_close();
}

static void a_fork_and_a_merge_tell_the_round_that_goes_on(void **state)
{
    (void)state;
    open_node();
    call_kit.view.node.round = 12;
    snprintf(call_kit.why, sizeof call_kit.why, "three nodes vote now");
    CALL_ALONE(dp_method_run_fork);
    assert_true(call_kit.order.kind == DP_ADMIN_FORK && !call_kit.order.back);
    assert_int_equal(number_at(call_body(), "round"), 12);
    assert_string_equal(text_at(call_body(), "text"), "three nodes vote now");
    CALL_ALONE(dp_method_run_merge);
    assert_int_equal(call_kit.order.kind, DP_ADMIN_MERGE);
    assert_int_equal(number_at(call_body(), "round"), 12);
    call_close();
}

enum { RECOVERED = 10 }; /* no record of this round's state is known */

/* A checkpoint in the store; its bytes are noise of this seed. */
static void save_of(uint64_t round, size_t size)
{
    uint8_t *bytes = noise(round, size);
    dp_ckpt ckpt = {.round = round,
                    .slot = 100 + round,
                    .state_root = round != RECOVERED ? name_of(round) : (dp_hash){{0}}};
    const dp_hash run = desk.driver->facts.run;
    CHECK_OK(dp_ckpt_save(desk.shelf.store, &run, &ckpt, dp_view_of(bytes, size)));
    free(bytes);
}

static void save(uint64_t round)
{
    save_of(round, 5000);
}

static void a_fork_goes_back_to_a_checkpoint_that_is_whole(void **state)
{
    (void)state;
    open_node();
    save(8);
    save(9);
    call_kit.view.node.round = 20;
    CALL(dp_method_run_fork, NUMBER("round", 8));
    assert_int_equal(call_kit.n_orders, 0); /* It is verified first. */
    call_wait();
    const dp_hash state_root = name_of(8);
    assert_true(call_kit.order.back && call_kit.order.round == 8 && call_kit.order.slot == 108);
    assert_true(dp_hash_equal(&call_kit.order.state_root, &state_root));
    assert_int_equal(number_at(call_body(), "round"), 8);
    call_close();
}

static void votes_are_written_while_a_checkpoint_is_verified_for_a_fork(void **state)
{
    (void)state;
    open_node();
    save_of(8, DP_PIECE_BYTES + 5000);
    desk_hold();
    CALL(dp_method_run_fork, NUMBER("round", 8));
    assert_true(desk_writes_between(DP_STORE_THREAD_BULK, call_is_answered));
    assert_true(call_kit.order.back && call_kit.order.round == 8);
    call_close();
}

static void without_a_checkpoint_of_that_round_those_that_are_here_are_named(void **state)
{
    (void)state;
    open_node();
    CALL(dp_method_run_fork, NUMBER("round", 7));
    call_wait();
    assert_string_equal(call_kit.error.why, "this node has no checkpoint of round 7, and no other");
    save(RECOVERED);
    save(8);
    save(9);
    CALL(dp_method_run_fork, NUMBER("round", RECOVERED));
    call_wait();
    assert_true(call_failed("E0123", 77) && call_kit.n_orders == 0);
    assert_non_null(
        strstr(call_kit.error.why, "no checkpoint of round 10; it has those of rounds 9 8"));
    call_close();
}

static void a_damaged_checkpoint_is_not_gone_back_to(void **state)
{
    (void)state;
    open_node();
    save(8);
    dp_query query =
        dp_query_of(&desk.shelf.store->chunks, "UPDATE chunk SET data = zeroblob(size)");
    CHECK_OK(dp_query_run(&query));
    CALL(dp_method_run_fork, NUMBER("round", 8));
    call_wait();
    assert_true(call_failed("E0123", 77) && call_kit.n_orders == 0);
    assert_non_null(strstr(call_kit.error.why, "its stored bytes are damaged"));
    call_close();
}

static void a_client_that_has_gone_orders_nothing(void **state)
{
    (void)state;
    open_node();
    save(8);
    CALL(dp_method_run_fork, NUMBER("round", 8));
    call_kit.is_gone = true;
    dp_store_thread_close(desk.daemon.store_thread);
    CHECK_OK(dp_store_thread_open(&desk.daemon.store_thread, &desk.loop, desk.shelf.store));
    assert_true(call_kit.n_orders == 0 && call_kit.n_errors == 0);
    call_close();
}

static void a_store_that_is_closed_and_missing_memory_are_told(void **state)
{
    (void)state;
    open_node();
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    CALL(dp_method_run_fork, NUMBER("round", 8));
    assert_true(call_failed("E0402", 75));
    call_kit.fails_at = 1;
    CALL(dp_method_run_fork, NUMBER("round", 8));
    assert_true(call_failed("E0199", 70) && call_kit.n_orders == 0);
    desk.daemon.store_thread = store_thread;
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_put_out_with_the_key_that_is_here),
        cmocka_unit_test(an_order_that_the_node_refuses_changes_nothing),
        cmocka_unit_test(without_a_run_or_a_peer_nothing_is_ordered),
        cmocka_unit_test(a_fork_and_a_merge_tell_the_round_that_goes_on),
        cmocka_unit_test(a_fork_goes_back_to_a_checkpoint_that_is_whole),
        cmocka_unit_test(votes_are_written_while_a_checkpoint_is_verified_for_a_fork),
        cmocka_unit_test(without_a_checkpoint_of_that_round_those_that_are_here_are_named),
        cmocka_unit_test(a_damaged_checkpoint_is_not_gone_back_to),
        cmocka_unit_test(a_client_that_has_gone_orders_nothing),
        cmocka_unit_test(a_store_that_is_closed_and_missing_memory_are_told),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
