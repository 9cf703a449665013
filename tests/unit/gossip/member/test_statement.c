/* Statements about members: signed bytes that come back, and every one refused that could not be
 * meant. */
#include "tests/unit/gossip/kit/mesh.h"

#include "gossip/member/statement.h"

static const dp_statement_kind kinds[] = {DP_STATEMENT_ALIVE, DP_STATEMENT_SUSPECT,
                                          DP_STATEMENT_DEAD, DP_STATEMENT_LEFT, DP_STATEMENT_DOWN};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool accuses(dp_statement_kind kind)
{
    return kind == DP_STATEMENT_SUSPECT || kind == DP_STATEMENT_DEAD;
}

/* One as an honest node makes it: node 0 of itself, or of node 1. */
static dp_statement sound(dp_statement_kind kind)
{
    dp_statement statement = {.kind = kind,
                              .cause = accuses(kind) ? DP_CAUSE_SILENCE : DP_CAUSE_NONE,
                              .subject = mesh_peer(accuses(kind) ? 1 : 0),
                              .author = mesh_peer(0),
                              .incarnation = 5,
                              .revision = 2};

    if (kind == DP_STATEMENT_ALIVE) {
        statement.n_addrs = DP_ADDRS_MAX;
        for (uint32_t i = 0; i < DP_ADDRS_MAX; i++) {
            statement.addrs[i] = mesh_addr(i);
        }
    }
    return statement;
}

static dp_view sign(const dp_statement *statement, uint8_t bytes[DP_STATEMENT_BYTES_MAX])
{
    const dp_crypto crypto = mesh_crypto(0);
    const size_t size = dp_statement_sign(statement, &crypto, &mesh_run, bytes);

    assert_true(size > 0);
    return dp_view_of(bytes, size);
}

static dp_status read_all(dp_view bytes, dp_statement *statement)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_view lent;

    DP_TRY(dp_statement_read(&reader, statement, &lent));
    assert_true(lent.size <= bytes.size);
    return dp_reader_finish(&reader);
}

static void every_kind_comes_back_and_holds_for_its_author_alone(void **state)
{
    const dp_crypto crypto = mesh_crypto(0);
    const dp_run_id other_run = {.bytes = {43}};

    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint8_t bytes[DP_STATEMENT_BYTES_MAX];
        const dp_statement made = sound(kinds[i]);
        const dp_view view = sign(&made, bytes);
        dp_statement read;
        CHECK_OK(read_all(view, &read));
        assert_int_equal(read.kind, made.kind);
        assert_int_equal(read.n_addrs, made.n_addrs);
        assert_true(dp_statement_verify(&read, view, &crypto, &mesh_run));
        assert_false(dp_statement_verify(&read, view, &crypto, &other_run));
        read.author = mesh_peer(2);
        assert_false(dp_statement_verify(&read, view, &crypto, &mesh_run));
        for (size_t size = 0; size < view.size; size++) {
            CHECK_STATUS(read_all(dp_view_of(bytes, size), &read), DP_BADMSG);
        }
    }
}

static bool no_key(void *context, int key, const char *domain, dp_view bytes,
                   uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)context;
    (void)key;
    (void)domain;
    (void)bytes;
    (void)signature;
    return false;
}

static void a_node_without_a_key_states_nothing(void **state)
{
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    const dp_crypto crypto = {.sign = no_key};
    const dp_statement statement = sound(DP_STATEMENT_ALIVE);

    (void)state;
    assert_int_equal(dp_statement_sign(&statement, &crypto, &mesh_run, bytes), 0);
}

static void nobody_speaks_for_another_and_nobody_accuses_itself(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint8_t bytes[DP_STATEMENT_BYTES_MAX];
        dp_statement statement = sound(kinds[i]);
        dp_statement read;
        statement.subject = mesh_peer(accuses(kinds[i]) ? 0 : 1);
        CHECK_STATUS(read_all(sign(&statement, bytes), &read), DP_BADMSG);
    }
}

static void an_accusation_has_a_cause_and_nothing_else_has_one(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint8_t bytes[DP_STATEMENT_BYTES_MAX];
        dp_statement statement = sound(kinds[i]);
        dp_statement read;
        statement.cause = accuses(kinds[i]) ? DP_CAUSE_NONE : DP_CAUSE_RESET;
        CHECK_STATUS(read_all(sign(&statement, bytes), &read), DP_BADMSG);
        statement.cause = DP_CAUSE_RESET;
        assert_int_equal(read_all(sign(&statement, bytes), &read),
                         accuses(kinds[i]) ? DP_OK : DP_BADMSG);
    }
}

static void only_live_members_have_addresses_and_of_known_families(void **state)
{
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    dp_statement read;

    (void)state;
    for (uint32_t i = 1; i < KINDS; i++) {
        dp_statement statement = sound(kinds[i]);
        statement.n_addrs = 1;
        statement.addrs[0] = mesh_addr(0);
        CHECK_STATUS(read_all(sign(&statement, bytes), &read), DP_BADMSG);
    }
    dp_statement alive = sound(DP_STATEMENT_ALIVE);
    alive.addrs[2].family = 6;
    CHECK_OK(read_all(sign(&alive, bytes), &read));
    alive.addrs[2] = (dp_addr){.family = DP_ADDRESS_DNS, .name = "a.example", .port = 7};
    CHECK_OK(read_all(sign(&alive, bytes), &read));
    CHECK(read.addrs[2].family == DP_ADDRESS_DNS && read.addrs[2].port == 7);
    assert_string_equal(read.addrs[2].name, "a.example");
    strcpy(alive.addrs[2].name, "a/b");
    CHECK_STATUS(read_all(sign(&alive, bytes), &read), DP_BADMSG);
    for (uint32_t i = 0; i < DP_ADDRS_MAX; i++) { /* as long as four can be */
        alive.addrs[i] = (dp_addr){.family = DP_ADDRESS_DNS, .port = 7};
        memset(alive.addrs[i].name, 'a', DP_ADDRESS_NAME_MAX);
    }
    CHECK_OK(read_all(sign(&alive, bytes), &read));
    assert_memory_equal(&read.addrs[3], &alive.addrs[3], sizeof read.addrs[3]);
    alive = sound(DP_STATEMENT_ALIVE);
    alive.addrs[2].port = 0;
    CHECK_STATUS(read_all(sign(&alive, bytes), &read), DP_BADMSG);
    alive.addrs[2] = (dp_addr){.family = 6, .ip = {1}, .port = 7};
    alive.addrs[2].family = 5;
    CHECK_STATUS(read_all(sign(&alive, bytes), &read), DP_BADMSG);
    alive = sound(DP_STATEMENT_ALIVE);
    const dp_view view = sign(&alive, bytes);
    bytes[DP_STATEMENT_HEAD_BYTES - 1] = DP_ADDRS_MAX + 1;
    CHECK_STATUS(read_all(view, &read), DP_BADMSG);
}

static void kinds_and_causes_that_nobody_knows_are_refused(void **state)
{
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    const dp_statement statement = sound(DP_STATEMENT_DEAD);
    const dp_view view = sign(&statement, bytes);
    dp_statement read;

    (void)state;
    bytes[0] = 0;
    CHECK_STATUS(read_all(view, &read), DP_BADMSG);
    bytes[0] = DP_STATEMENT_DOWN + 1;
    CHECK_STATUS(read_all(view, &read), DP_BADMSG);
    bytes[0] = DP_STATEMENT_DEAD;
    bytes[1] = DP_CAUSE_SILENCE + 1;
    CHECK_STATUS(read_all(view, &read), DP_BADMSG);
}

static void no_byte_of_it_can_be_another_and_every_field_comes_back(void **state)
{
    const dp_crypto crypto = mesh_crypto(0);

    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint8_t bytes[DP_STATEMENT_BYTES_MAX];
        dp_statement made = sound(kinds[i]);
        dp_statement read;
        made.incarnation = 0x0102030405060708;
        made.revision = 0x11121314;
        const dp_view view = sign(&made, bytes);
        CHECK_OK(read_all(view, &read));
        CHECK(read.kind == made.kind && read.cause == made.cause);
        CHECK(read.incarnation == made.incarnation && read.revision == made.revision);
        CHECK(dp_peer_equal(&read.subject, &made.subject));
        CHECK(dp_peer_equal(&read.author, &made.author) && read.n_addrs == made.n_addrs);
        for (uint32_t k = 0; k < read.n_addrs; k++) {
            CHECK(read.addrs[k].family == 4 && read.addrs[k].port == made.addrs[k].port);
            assert_memory_equal(read.addrs[k].ip, made.addrs[k].ip, 4);
        }
        for (size_t at = 0; at < view.size; at++) {
            bytes[at] ^= 1;
            CHECK(read_all(view, &read) != DP_OK ||
                  !dp_statement_verify(&read, view, &crypto, &mesh_run));
            bytes[at] ^= 1;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_and_holds_for_its_author_alone),
        cmocka_unit_test(a_node_without_a_key_states_nothing),
        cmocka_unit_test(nobody_speaks_for_another_and_nobody_accuses_itself),
        cmocka_unit_test(an_accusation_has_a_cause_and_nothing_else_has_one),
        cmocka_unit_test(only_live_members_have_addresses_and_of_known_families),
        cmocka_unit_test(kinds_and_causes_that_nobody_knows_are_refused),
        cmocka_unit_test(no_byte_of_it_can_be_another_and_every_field_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
