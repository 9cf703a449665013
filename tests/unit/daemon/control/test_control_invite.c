/* invite: the content of a token, which is stored before it is shown. */
#include "daemon/host/issued.h"
#include "gossip/identity/invite.h"
#include "tests/unit/daemon/call_kit.h"
#include "tests/unit/daemon/party.h"

static uint32_t own_addresses = 1;

uint64_t dp_driver_wall_ms(const dp_driver *driver)
{
    (void)driver;
    return party_now_ms();
}

uint32_t dp_driver_addresses(const dp_driver *driver, dp_address *addresses)
{
    (void)driver;
    for (uint32_t i = 0; i < own_addresses; i++) {
        addresses[i] = (dp_address){
            .kind = DP_ADDRESS_IP4, .port = (uint16_t)(7717 + i), .ip = {192, 0, 2, 1}};
    }
    return own_addresses;
}

/* Guest of the party: 0 is the founder, who may invite; 1 may not. */
static void open_guest(int number)
{
    const struct party *party = party_of();
    dp_driver *driver = call_open();
    driver->facts.run = party->run;
    memcpy(driver->facts.root, party->root.public_key, sizeof driver->facts.root);
    memcpy(driver->facts.join_secret, party->join_secret, sizeof driver->facts.join_secret);
    driver->facts.psk_epoch = PARTY_EPOCH;
    driver->facts.credential_bytes = party->credential_bytes[number];
    memcpy(driver->facts.credential, party->credentials[number], party->credential_bytes[number]);
    desk.daemon.identity = party->identities[number];
}

/* The contents of the token in the answer. */
static void read_token(dp_invite *invite, dp_credential *credential)
{
    char text[DP_TOKEN_TEXT_MAX + 1];
    snprintf(text, sizeof text, "%s", text_at(call_body(), "token"));
    CHECK_OK(dp_invite_parse(dp_view_text(text), invite, NULL, NULL));
    CHECK_OK(dp_invite_check(invite, party_now_ms(), credential, NULL));
}

static void tell_voter(uint32_t index, bool voter, bool linked, const char *at)
{
    dp_member_view *const member = &call_kit.members[index];
    dp_address address;
    CHECK_OK(dp_address_parse(at, &address, NULL));
    *member = (dp_member_view){.voter = voter, .linked = linked, .n_addrs = 1};
    member->addrs[0] = dp_addr_of(&address);
}

static void a_token_says_where_other_voters_are(void **state)
{
    dp_invite invite;
    dp_credential credential;
    char text[DP_ADDRESS_TEXT_MAX];
    (void)state;
    open_guest(0);
    call_kit.has_node = true;
    call_kit.n_members = 6;
    tell_voter(0, true, false, "192.0.2.1:7717");     /* this node */
    tell_voter(1, true, true, "node-1.example:7717"); /* is named */
    tell_voter(2, false, true, "192.0.2.3:7717");     /* does not vote */
    tell_voter(3, true, false, "192.0.2.4:7717");     /* is away */
    tell_voter(4, true, true, "192.0.2.1:7717");      /* behind the address of this node */
    call_kit.members[5] = (dp_member_view){.voter = true, .linked = true}; /* told no address */
    CALL_ALONE(dp_method_invite);
    call_wait();
    read_token(&invite, &credential);
    assert_int_equal(invite.n_addresses, 2);
    dp_address_text(&invite.addresses[1], text);
    assert_string_equal(text, "node-1.example:7717");
    dp_invite_close(&invite);
    call_close();
}

static void a_token_has_room_for_eight_addresses(void **state)
{
    dp_invite invite;
    dp_credential credential;
    (void)state;
    open_guest(0);
    call_kit.has_node = true;
    call_kit.n_members = 8;
    own_addresses = 4;
    for (uint32_t i = 1; i < 8; i++) {
        char at[32];
        snprintf(at, sizeof at, "198.51.100.%u:7717", i);
        tell_voter(i, true, true, at);
    }
    CALL_ALONE(dp_method_invite);
    call_wait();
    own_addresses = 1;
    read_token(&invite, &credential);
    assert_int_equal(invite.n_addresses, DP_TOKEN_ADDRESSES_MAX);
    dp_invite_close(&invite);
    call_close();
}

static void a_token_is_written_down_and_says_where_to_join(void **state)
{
    static dp_issued_list list;
    dp_invite invite;
    dp_credential credential;
    char id[2 * DP_INVITE_ID_BYTES + 1];
    (void)state;
    open_guest(0);
    CALL_ALONE(dp_method_invite);
    call_wait();
    read_token(&invite, &credential);
    assert_true(invite.n_addresses == 1 && invite.addresses[0].port == 7717);
    assert_string_equal(invite.name, "kjv");
    assert_true(invite.psk_epoch == PARTY_EPOCH && credential.uses == 1);
    assert_int_equal(credential.caps, DP_CAP_TRAIN | DP_CAP_SERVE | DP_CAP_RELAY);
    const uint64_t lasts_ms = number_at(call_body(), "expires_ms") - party_now_ms();
    assert_true(lasts_ms > 23ULL * 3600 * 1000 && lasts_ms <= 24ULL * 3600 * 1000);
    CHECK_OK(dp_issued_load(desk.shelf.store, &desk.driver->facts.run, &list));
    assert_int_equal(list.n, 1);
    dp_hex(dp_view_of(list.items[0].id.bytes, sizeof list.items[0].id.bytes), id);
    assert_string_equal(text_at(call_body(), "id"), id);
    assert_memory_equal(list.items[0].id.bytes, credential.invite.bytes, DP_INVITE_ID_BYTES);
    dp_invite_close(&invite);
    call_close();
}

static void terms_are_as_asked_and_within_bounds(void **state)
{
    dp_invite invite;
    dp_credential credential;
    (void)state;
    open_guest(0);
    CALL(dp_method_invite, NUMBER("uses", 70000), NUMBER("expires_s", 60));
    call_wait();
    read_token(&invite, &credential);
    assert_int_equal(credential.uses, UINT16_MAX);
    assert_true(credential.join_until_ms <= party_now_ms() + 60 * 1000);
    dp_invite_close(&invite);
    CALL(dp_method_invite, NUMBER("expires_s", UINT64_MAX)); /* Then the standard. */
    call_wait();
    const uint64_t lasts_ms = number_at(call_body(), "expires_ms") - party_now_ms();
    assert_true(lasts_ms <= 24ULL * 3600 * 1000);
    call_close();
}

static void a_node_that_may_not_invite_is_refused_and_writes_nothing(void **state)
{
    static dp_issued_list list;
    (void)state;
    open_guest(1);
    CALL_ALONE(dp_method_invite);
    assert_true(call_failed("E0205", 77));
    CHECK_OK(dp_issued_load(desk.shelf.store, &desk.driver->facts.run, &list));
    assert_int_equal(list.n, 0);
    call_close();
}

static void the_root_key_invites_whatever_the_certificate_says(void **state)
{
    dp_invite invite;
    dp_credential credential;
    (void)state;
    open_guest(1);
    desk.daemon.has_root = true;
    desk.daemon.root = party_of()->root;
    CALL_ALONE(dp_method_invite);
    call_wait();
    read_token(&invite, &credential);
    assert_int_equal(credential.n_certs, 1);
    dp_invite_close(&invite);
    call_close();
}

/* Of a run that this node created before it joined this one. */
static void the_root_key_of_another_run_changes_nothing(void **state)
{
    static const uint8_t seed[32] = {77};
    dp_invite invite;
    dp_credential credential;
    (void)state;
    open_guest(0);
    desk.daemon.has_root = true;
    dp_sign_key_of_seed(seed, &desk.daemon.root);
    CALL_ALONE(dp_method_invite);
    call_wait();
    assert_int_equal(call_kit.n_errors, 0);
    read_token(&invite, &credential);
    assert_int_equal(credential.n_certs, 2);
    dp_invite_close(&invite);
    call_close();
}

static void a_node_that_remembers_no_more_invites_makes_none(void **state)
{
    bool anew = false;
    (void)state;
    open_guest(0);
    for (uint32_t i = 0; i < DP_ISSUED_MAX; i++) {
        dp_issued one = {.until_ms = UINT64_MAX};
        memcpy(one.id.bytes, &i, sizeof i);
        CHECK_OK(
            dp_issued_add(desk.shelf.store, &desk.driver->facts.run, &one, party_now_ms(), &anew));
    }
    CALL_ALONE(dp_method_invite);
    call_wait();
    assert_true(call_failed("E0205", 77));
    assert_non_null(strstr(call_kit.error.why, "512 invites"));
    call_close();
}

static void a_damaged_list_of_invites_is_told_and_keeps_no_token_back(void **state)
{
    dp_invite invite;
    dp_credential credential;
    (void)state;
    open_guest(0);
    CHECK_OK(dp_store_put(desk.shelf.store, "invites", dp_view_text("\1")));
    CALL_ALONE(dp_method_invite);
    call_wait();
    read_token(&invite, &credential);
    assert_true(desk_logged("invites.lost"));
    dp_invite_close(&invite);
    call_close();
}

static void without_a_run_memory_or_room_no_token_is_shown(void **state)
{
    (void)state;
    open_guest(0);
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_invite);
    assert_true(call_failed("E0199", 70));
    call_kit.fails_at = 0;
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    CALL_ALONE(dp_method_invite);
    assert_true(call_failed("E0402", 75));
    desk.daemon.store_thread = store_thread;
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_invite);
    assert_true(call_failed("E0105", 75));
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_where_other_voters_are),
        cmocka_unit_test(a_token_has_room_for_eight_addresses),
        cmocka_unit_test(a_token_is_written_down_and_says_where_to_join),
        cmocka_unit_test(terms_are_as_asked_and_within_bounds),
        cmocka_unit_test(a_node_that_may_not_invite_is_refused_and_writes_nothing),
        cmocka_unit_test(the_root_key_invites_whatever_the_certificate_says),
        cmocka_unit_test(the_root_key_of_another_run_changes_nothing),
        cmocka_unit_test(a_node_that_remembers_no_more_invites_makes_none),
        cmocka_unit_test(a_damaged_list_of_invites_is_told_and_keeps_no_token_back),
        cmocka_unit_test(without_a_run_memory_or_room_no_token_is_shown),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
