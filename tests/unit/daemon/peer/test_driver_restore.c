/* A node comes back from its store: the records and checkpoints that it gets, and other jobs of the
 * store thread in between. Store and store thread are real; the node is a mock. */
#include "daemon/peer/suspension.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/daemon/desk.h"

enum { SIZE = 5000, LARGE = DP_PIECE_BYTES + 5000, RECORDS = 200, BORDER = 64, GOT_MAX = 8 };

static struct {
    uint64_t n_records; /* that came in order */
    uint32_t n_ckpts;
    uint64_t rounds[GOT_MAX]; /* of them */
    uint32_t n_failed;
    uint32_t n_replays;
} net;

/* ---- gossip/node */

dp_status dp_node_open(dp_node **node, const dp_node_config *config)
{
    (void)config;
    *node = (dp_node *)(void *)&net;
    return DP_OK;
}

void dp_node_close(dp_node *node)
{
    (void)node;
}

dp_status dp_node_restore_record(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    (void)node;
    (void)record;
    (void)cert;
    CHECK(slot == net.n_records + 1);
    net.n_records++;
    return DP_OK;
}

dp_status dp_node_restore_checkpoint(dp_node *node, uint64_t round, const dp_hash *tensor_root,
                                     uint64_t tensor_bytes)
{
    (void)node;
    (void)tensor_root;
    CHECK(net.n_ckpts < GOT_MAX && tensor_bytes >= SIZE);
    net.rounds[net.n_ckpts++] = round;
    return DP_OK;
}

dp_status dp_node_restore_vote(dp_node *node, dp_view row)
{
    (void)node;
    (void)row;
    return DP_OK;
}

dp_status dp_node_restore_pending(dp_node *node, dp_view row)
{
    return dp_node_restore_vote(node, row);
}

dp_status dp_node_restore_proof(dp_node *node, dp_view row)
{
    return dp_node_restore_vote(node, row);
}

dp_status dp_node_restore_exchange(dp_node *node, const uint8_t exchange[16], dp_view row)
{
    (void)exchange;
    return dp_node_restore_vote(node, row);
}

dp_status dp_node_pending_parts(dp_view row, dp_part_list *parts)
{
    (void)row;
    parts->n = 0;
    return DP_OK;
}

dp_status dp_node_restore_object(dp_node *node, const dp_hash *root, uint64_t size)
{
    (void)node;
    (void)root;
    (void)size;
    return DP_OK;
}

void dp_node_restore_part(dp_node *node, const dp_hash *root)
{
    (void)node;
    (void)root;
}

dp_status dp_node_restore_peer(dp_node *node, const dp_peer *peer, const dp_addr *addrs,
                               uint32_t n_addrs)
{
    (void)node;
    (void)peer;
    (void)addrs;
    (void)n_addrs;
    return DP_OK;
}

uint32_t dp_node_keep(const dp_node *node, uint64_t round)
{
    (void)node;
    (void)round;
    return 0;
}

/* ---- the driver and what belongs to it */

uint32_t dp_driver_addresses(const dp_driver *driver, dp_address *addresses)
{
    (void)driver;
    (void)addresses;
    return 0;
}

void dp_driver_fail(dp_driver *driver, dp_status status, const char *why)
{
    (void)driver;
    print_error("%s: %s\n", why, dp_status_text(status));
    net.n_failed++;
}

void dp_driver_command(dp_driver *driver, dp_command command)
{
    (void)driver;
    (void)command;
}

dp_pause dp_suspension_owner(const dp_suspension *suspension)
{
    (void)suspension;
    return (dp_pause){.holds = false};
}

bool dp_node_admitted(const dp_node *node, const dp_peer *peer, uint8_t x_public[32])
{
    (void)node;
    (void)peer;
    (void)x_public;
    return true;
}

void dp_transport_remember(dp_transport *transport, const dp_addr *addr)
{
    (void)transport;
    (void)addr;
}

void dp_transport_replay(dp_transport *transport)
{
    (void)transport;
    net.n_replays++;
}

/* ---- tests */

static void open_stored(void)
{
    memset(&net, 0, sizeof net);
    desk_open();
}

enum { RECOVERED = 20 }; /* no record of this round's state is known */

static void save(uint64_t round, size_t size)
{
    uint8_t *bytes = noise(round, size);
    dp_ckpt ckpt = {.round = round,
                    .slot = round,
                    .state_root = round != RECOVERED ? name_of(round) : (dp_hash){{0}}};
    const dp_hash run = desk.driver->facts.run;
    CHECK_OK(dp_ckpt_save(desk.shelf.store, &run, &ckpt, dp_view_of(bytes, size)));
    free(bytes);
}

/* The chunks of this size. */
static void damage(const char *size)
{
    char sql[100];
    snprintf(sql, sizeof sql, "UPDATE chunk SET data=zeroblob(size) WHERE size=%s", size);
    CHECK_OK(dp_sql_exec(&desk.shelf.store->chunks, sql));
}

static void append_records(uint64_t count)
{
    const dp_hash run = desk.driver->facts.run;
    for (uint64_t slot = 1; slot <= count; slot++) {
        const dp_chain_record row = {.slot = slot,
                                     .hash = name_of(slot),
                                     .record = dp_view_text("a record"),
                                     .cert = dp_view_text("a certificate")};
        CHECK_OK(dp_chain_append(desk.shelf.store, &run, &row));
    }
}

static bool is_restored(void *context)
{
    (void)context;
    return net.n_replays > 0 || net.n_failed > 0;
}

/* A state of many GiB takes longer to read than systemd waits, and then no start would succeed. */
static void signs_of_life_are_given_while_the_newest_checkpoint_is_verified(void **state)
{
    (void)state;
    open_stored();
    save(7, SIZE);
    save(8, LARGE);
    desk_hold();
    dp_driver_restore(desk.driver);
    assert_true(desk_writes_between(DP_STORE_THREAD_URGENT, is_restored));
    assert_true(net.n_failed == 0 && net.n_ckpts == 2);
    assert_true(net.rounds[0] == 7 && net.rounds[1] == 8);
    assert_true(desk.driver->has_checkpoint && desk.driver->checkpoint_round == 8);
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_START);
    desk_close();
}

static void a_damaged_checkpoint_leaves_those_before_it(void **state)
{
    (void)state;
    open_stored();
    save(6, SIZE + 6);
    save(7, SIZE + 7);
    save(8, SIZE + 8);
    damage("5008");
    damage("5006"); /* It is checked when it is loaded or served. */
    dp_driver_restore(desk.driver);
    turn_until(&desk.loop, is_restored, NULL);
    assert_true(net.n_failed == 0 && net.n_ckpts == 2);
    assert_true(net.rounds[0] == 6 && net.rounds[1] == 7);
    assert_int_equal(desk.driver->checkpoint_round, 7);
    desk_close();
}

/* Its own run went on after meta.db was lost; the newest of that is damaged. */
static void a_recovered_state_hides_no_damaged_checkpoint_below_it(void **state)
{
    (void)state;
    open_stored();
    save(7, SIZE + 7);
    save(8, SIZE + 8);
    save(RECOVERED, SIZE + 20);
    damage("5008");
    dp_driver_restore(desk.driver);
    turn_until(&desk.loop, is_restored, NULL);
    assert_true(net.n_failed == 0 && net.n_ckpts == 1 && net.rounds[0] == 7);
    assert_int_equal(desk.driver->checkpoint_round, 7);
    desk_close();
}

static void without_a_whole_checkpoint_the_node_starts_with_none(void **state)
{
    (void)state;
    open_stored();
    save(8, SIZE);
    damage("5000");
    dp_driver_restore(desk.driver);
    turn_until(&desk.loop, is_restored, NULL);
    assert_true(net.n_failed == 0 && net.n_ckpts == 0 && !desk.driver->has_checkpoint);
    desk_close();
}

static void signs_of_life_are_given_while_the_chain_is_read(void **state)
{
    (void)state;
    open_stored();
    append_records(RECORDS);
    desk_hold();
    dp_driver_restore(desk.driver);
    assert_true(desk_writes_between(DP_STORE_THREAD_URGENT, is_restored));
    assert_true(net.n_failed == 0 && net.n_records == RECORDS);
    desk_close();
}

static void a_chain_with_a_hole_is_cut_before_it(void **state)
{
    static const char *const holes[] = {"64", "65", "66"}; /* One piece ends with the 64th. */
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        char sql[100];
        dp_chain_tip tip;
        open_stored();
        append_records(RECORDS);
        snprintf(sql, sizeof sql, "DELETE FROM record WHERE slot=%s", holes[i]);
        CHECK_OK(dp_sql_exec(&desk.shelf.store->meta, sql));
        dp_driver_restore(desk.driver);
        desk_settle();
        assert_true(desk.daemon.again && net.n_failed == 0 && desk_logged("chain.damaged"));
        CHECK_OK(dp_chain_head(desk.shelf.store, &desk.driver->facts.run, &tip));
        assert_int_equal(tip.slot, BORDER - 1 + i);
        desk_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_of_life_are_given_while_the_newest_checkpoint_is_verified),
        cmocka_unit_test(a_damaged_checkpoint_leaves_those_before_it),
        cmocka_unit_test(a_recovered_state_hides_no_damaged_checkpoint_below_it),
        cmocka_unit_test(without_a_whole_checkpoint_the_node_starts_with_none),
        cmocka_unit_test(signs_of_life_are_given_while_the_chain_is_read),
        cmocka_unit_test(a_chain_with_a_hole_is_cut_before_it),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
