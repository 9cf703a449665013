/* token.list and token.revoke: every invite that is known here once, and the one that is meant. */
#include "daemon/host/issued.h"
#include "tests/unit/daemon/call_kit.h"

#define NOW_MS 1800000000000ULL

static struct {
    dp_invite_id revoked; /* by the chain; zero: none */
    dp_invite_id revoking;
} chain;

uint64_t dp_driver_wall_ms(const dp_driver *driver)
{
    (void)driver;
    return NOW_MS;
}

static bool same(const dp_invite_id *a, const dp_invite_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

dp_invite_state dp_node_invite(const dp_node *node, const dp_invite_id *id)
{
    (void)node;
    return same(id, &chain.revoked)    ? DP_INVITE_REVOKED
           : same(id, &chain.revoking) ? DP_INVITE_REVOKING
                                       : DP_INVITE_STANDS;
}

bool dp_node_revoked_invite(const dp_node *node, uint32_t index, dp_invite_id *id)
{
    static const dp_invite_id none;
    (void)node;
    *id = chain.revoked;
    return index == 0 && !same(id, &none);
}

static dp_invite_id id_of(uint8_t first, uint8_t second)
{
    return (dp_invite_id){.bytes = {first, second}};
}

static void issue(dp_invite_id id, uint16_t uses, uint64_t until_ms)
{
    const dp_run_id run = desk.driver->facts.run;
    const dp_issued one = {.id = id,
                           .uses = uses,
                           .caps = DP_CAP_TRAIN | DP_CAP_VOTE,
                           .from_ms = NOW_MS - 1000,
                           .until_ms = until_ms};
    bool anew = false;
    CHECK_OK(dp_issued_add(desk.shelf.store, &run, &one, NOW_MS, &anew));
}

static void admit(uint8_t peer, dp_invite_id by, dp_invite_id above, uint32_t gone)
{
    call_kit.roster[call_kit.n_roster++] =
        (dp_roster_view){.peer = {{peer}}, .invite = by, .invite_above = above, .gone = gone};
}

static void open_run(void)
{
    memset(&chain, 0, sizeof chain);
    call_open();
    call_kit.has_node = true;
}

/* The token of the index-th notice. */
static const dp_pack_value *token_at(uint32_t index)
{
    return dp_pack_key(call_body_at(index), "token");
}

static const char *state_at(uint32_t index)
{
    return text_at(token_at(index), "state");
}

static void list(uint32_t count)
{
    CALL_ALONE(dp_method_token_list);
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), count);
    assert_int_equal(call_kit.n_frames, count + 1);
}

static const dp_invite_id none;

static void each_token_is_listed_once_with_its_state(void **state)
{
    (void)state;
    open_run();
    issue(id_of(1, 0), 2, NOW_MS + 1000);
    issue(id_of(2, 0), 1, NOW_MS + 1000);
    issue(id_of(3, 0), 0, NOW_MS - 1);
    issue(id_of(4, 0), 0, NOW_MS + 1000);
    admit(21, id_of(1, 0), none, 0);
    admit(22, id_of(2, 0), none, DP_REMOVE_LEFT);
    admit(23, id_of(5, 0), id_of(1, 0), 0);
    chain.revoked = id_of(4, 0);
    list(5);
    assert_string_equal(text_at(token_at(0), "token"), "01000000000000000000000000000000");
    assert_string_equal(state_at(0), "valid");
    assert_string_equal(state_at(1), "used up");
    assert_string_equal(state_at(2), "expired");
    assert_string_equal(state_at(3), "revoked");
    assert_string_equal(state_at(4), "made elsewhere");
    assert_false(flag_at(token_at(4), "issued"));
    call_close();
}

static void those_that_came_by_a_token_or_by_one_of_theirs_are_with_it(void **state)
{
    (void)state;
    open_run();
    issue(id_of(1, 0), 2, NOW_MS + 1000);
    admit(21, id_of(1, 0), none, DP_REMOVE_HARMFUL);
    admit(22, id_of(7, 0), id_of(1, 0), 0);
    list(2);
    const dp_pack_value *admitted = dp_pack_key(token_at(0), "admitted");
    assert_string_equal(text_at(dp_pack_at(admitted, 0), "gone"), "removed for harm");
    assert_null(dp_pack_key(dp_pack_at(admitted, 0), "through"));
    assert_true(flag_at(dp_pack_at(admitted, 1), "through"));
    assert_null(dp_pack_key(dp_pack_at(admitted, 1), "gone"));
    assert_int_equal(number_at(token_at(0), "admitted_count"), 2);
    assert_int_equal(number_at(token_at(0), "members_count"), 1);
    assert_string_equal(state_at(0), "valid"); /* One of two uses. */
    call_close();
}

static void a_store_that_knows_none_and_no_node_give_an_empty_list(void **state)
{
    (void)state;
    open_run();
    call_kit.has_node = false;
    list(0);
    call_close();
}

static void a_token_is_revoked_by_how_its_id_begins(void **state)
{
    (void)state;
    open_run();
    issue(id_of(0xab, 0xcd), 2, NOW_MS + 1000);
    issue(id_of(0xab, 0xce), 2, NOW_MS + 1000);
    admit(21, id_of(0xab, 0xcd), none, 0);
    snprintf(call_kit.why, sizeof call_kit.why, "one more waits");
    CALL(dp_method_token_revoke, TEXT("id", "ABCD"), FLAG("members", true));
    call_wait();
    const dp_invite_id wanted = id_of(0xab, 0xcd);
    assert_true(call_kit.order.kind == DP_ADMIN_REVOKE_INVITE && call_kit.order.members);
    assert_true(same(&call_kit.order.invite, &wanted));
    assert_int_equal(call_kit.order.until_ms, NOW_MS + 1000);
    assert_string_equal(text_at(call_body(), "text"), "one more waits");
    assert_int_equal(number_at(dp_pack_key(call_body(), "token"), "members_count"), 1);
    assert_true(desk_logged("token.revoked") && desk_logged("with the members that joined by it"));
    assert_int_equal(call_kit.n_revoked, 1);
    call_close();
}

static void an_id_that_means_several_or_nothing_revokes_nothing(void **state)
{
    static const char *const ids[] = {"abcd", "abcdef", "abc", "", "xyz1"};
    (void)state;
    open_run();
    issue(id_of(0xab, 0xcd), 2, NOW_MS + 1000);
    issue((dp_invite_id){.bytes = {0xab, 0xcd, 1}}, 2, NOW_MS + 1000);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        CALL(dp_method_token_revoke, TEXT("id", ids[i]));
        call_wait();
        assert_true(call_failed("E0212", 1));
        if (i == 0) {
            assert_string_equal(call_kit.error.what,
                                "several tokens have an id with this beginning");
        } else if (i == 2) {
            assert_string_equal(call_kit.error.why, "give at least its first 4 characters");
        }
    }
    issue(id_of(0xef, 1), 2, NOW_MS + 1000);
    CALL(dp_method_token_revoke, TEXT("id", "ef0")); /* One alone, and too few characters. */
    call_wait();
    assert_true(call_failed("E0212", 1));
    CALL(dp_method_token_revoke, NUMBER("id", 7)); /* No text at all. */
    assert_true(call_failed("E0212", 1) && call_kit.n_orders == 0);
    call_close();
}

static void a_whole_id_that_nobody_knows_is_revoked_all_the_same(void **state)
{
    (void)state;
    open_run();
    CALL(dp_method_token_revoke, TEXT("id", "ef000000000000000000000000000000"));
    call_wait();
    assert_int_equal(call_kit.order.invite.bytes[0], 0xef);
    assert_true(call_kit.order.until_ms == UINT64_MAX && !call_kit.order.members);
    assert_false(flag_at(dp_pack_key(call_body(), "token"), "issued"));
    call_close();
}

static void a_refusal_of_the_node_names_the_fix(void **state)
{
    (void)state;
    open_run();
    issue(id_of(0xab, 0xcd), 2, NOW_MS + 1000);
    call_kit.ordered = DP_AGAIN;
    CALL(dp_method_token_revoke, TEXT("id", "abcd"));
    call_wait();
    assert_true(call_failed("E0213", 75));
    call_kit.ordered = DP_DENIED;
    CALL(dp_method_token_revoke, TEXT("id", "abcd"));
    call_wait();
    assert_true(call_failed("E0213", 77));
    assert_false(desk_logged("token.revoked"));
    assert_int_equal(call_kit.n_revoked, 0);
    call_close();
}

static void a_node_that_left_meanwhile_and_one_that_lacks_memory_say_so(void **state)
{
    (void)state;
    open_run();
    CALL_ALONE(dp_method_token_list);
    desk.daemon.driver = NULL;
    call_wait();
    assert_true(call_failed("E0105", 75));
    desk.daemon.driver = desk.driver;
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_token_list);
    assert_true(call_failed("E0199", 70));
    call_kit.fails_at = 0;
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    CALL_ALONE(dp_method_token_list);
    assert_true(call_failed("E0402", 75));
    desk.daemon.store_thread = store_thread;
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_token_is_listed_once_with_its_state),
        cmocka_unit_test(those_that_came_by_a_token_or_by_one_of_theirs_are_with_it),
        cmocka_unit_test(a_store_that_knows_none_and_no_node_give_an_empty_list),
        cmocka_unit_test(a_token_is_revoked_by_how_its_id_begins),
        cmocka_unit_test(an_id_that_means_several_or_nothing_revokes_nothing),
        cmocka_unit_test(a_whole_id_that_nobody_knows_is_revoked_all_the_same),
        cmocka_unit_test(a_refusal_of_the_node_names_the_fix),
        cmocka_unit_test(a_node_that_left_meanwhile_and_one_that_lacks_memory_say_so),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
