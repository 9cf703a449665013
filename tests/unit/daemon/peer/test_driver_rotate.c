/* Join secrets of the chain are on the disk before the transport uses them. The transport is
 * played. */
#include <unistd.h>

#include "tests/unit/daemon/desk.h"

#define MINUTE_MS (60ULL * 1000)

static struct {
    uint32_t n_keys; /* times that keys were changed */
    dp_channel_psk psk;
    dp_channel_psk older;
    bool has_older;
    dp_transport_stats stats;
    uint64_t now_ms; /* of the loop */
} net;

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return net.now_ms;
}

void dp_transport_keys(dp_transport *transport, const dp_channel_psk *psk,
                       const dp_channel_psk *older)
{
    (void)transport;
    net.n_keys++;
    net.psk = *psk;
    net.has_older = older != NULL;
    net.older = older != NULL ? *older : (dp_channel_psk){0};
}

void dp_transport_look(const dp_transport *transport, dp_transport_stats *stats)
{
    (void)transport;
    *stats = net.stats;
}

static dp_secrets secret_of(uint16_t epoch)
{
    dp_secrets one = {.n = 1, .items = {{.epoch = epoch}}};
    memset(one.items[0].bytes, epoch, sizeof one.items[0].bytes);
    return one;
}

/* A member that knows the secret of epoch 1. */
static dp_driver *open_member(void)
{
    dp_driver *driver = desk_open();
    memset(&net, 0, sizeof net);
    driver->facts.psk_epoch = 1;
    memset(driver->facts.join_secret, 1, sizeof driver->facts.join_secret);
    dp_run_identity_begin_secrets(&driver->facts);
    driver->secrets = driver->facts.secrets;
    CHECK_OK(dp_run_identity_save(desk.shelf.store, &driver->facts));
    return driver;
}

static void a_secret_is_used_once_it_is_on_the_disk_and_the_one_before_it_stays_valid(void **state)
{
    dp_driver *driver = open_member();
    const dp_secrets next = secret_of(2);
    dp_channel_psk psks[DP_SECRETS_MAX];
    dp_run_identity facts;
    (void)state;
    dp_driver_secrets(driver, &next);
    assert_int_equal(net.n_keys, 0); /* Not before. */
    assert_int_equal(driver->facts.psk_epoch, 1);
    desk_settle();
    CHECK_OK(dp_run_identity_load(desk.shelf.store, &facts));
    assert_int_equal(facts.psk_epoch, 2);
    assert_int_equal(net.n_keys, 1);
    assert_true(net.psk.epoch == 2 && net.has_older && net.older.epoch == 1);
    assert_int_equal(driver->facts.psk_epoch, 2);
    assert_memory_equal(driver->facts.join_secret, next.items[0].bytes, DP_JOIN_SECRET_BYTES);
    dp_driver_use_secrets(driver, psks);
    assert_memory_equal(psks[0].key, net.psk.key, sizeof psks[0].key);
    assert_memory_not_equal(psks[0].key, psks[1].key, sizeof psks[0].key);
    assert_true(desk_logged("secret.rotated"));
    desk_close();
}

static void a_secret_that_is_known_or_older_than_two_changes_nothing(void **state)
{
    dp_driver *driver = open_member();
    const dp_secrets known = secret_of(1);
    (void)state;
    dp_driver_secrets(driver, &known);
    assert_int_equal(driver->n_jobs, 0);
    for (uint16_t epoch = 5; epoch <= 6; epoch++) {
        const dp_secrets next = secret_of(epoch);
        dp_driver_secrets(driver, &next);
        desk_settle();
    }
    assert_int_equal(net.n_keys, 2);
    dp_driver_secrets(driver, &known);
    assert_int_equal(driver->n_jobs, 0);
    assert_true(net.psk.epoch == 6 && net.older.epoch == 5);
    desk_close();
}

static void a_secret_that_cannot_be_written_is_not_used(void **state)
{
    dp_driver *driver = open_member();
    const dp_secrets next = secret_of(2);
    (void)state;
    snprintf(desk.config.dir, sizeof desk.config.dir, "/nowhere");
    dp_driver_secrets(driver, &next);
    desk_settle();
    assert_int_equal(net.n_keys, 0);
    assert_int_equal(driver->facts.psk_epoch, 1);
    assert_true(desk_logged("secret.unsaved") && desk_logged("epoch 2 could not be stored"));
    desk_close();
}

static void without_memory_or_room_at_the_store_nothing_is_under_way(void **state)
{
    dp_driver *driver = open_member();
    const dp_secrets two = secret_of(2);
    const dp_secrets three = secret_of(3);
    (void)state;
    dp_alloc_fail_after(1);
    dp_driver_secrets(driver, &two);
    dp_alloc_fail_after(0);
    desk.is_full = true;
    dp_driver_secrets(driver, &three);
    assert_int_equal(driver->n_jobs, 0);
    assert_int_equal(net.n_keys, 0);
    desk_close();
}

static void a_closing_node_uses_no_new_secret(void **state)
{
    dp_driver *driver = open_member();
    const dp_secrets next = secret_of(2);
    (void)state;
    dp_driver_secrets(driver, &next);
    driver->closing = true;
    desk_settle();
    assert_int_equal(net.n_keys, 0);
    desk_close();
}

static void the_secret_of_a_later_token_is_taken_by_a_node_without_links_alone(void **state)
{
    dp_driver *driver = open_member();
    dp_invite invite = {.psk_epoch = 1};
    (void)state;
    memset(invite.join_secret, 9, sizeof invite.join_secret);
    assert_false(dp_driver_token_secret(driver, &invite)); /* It is of this epoch. */
    invite.psk_epoch = 4;
    net.stats.links = 1;
    assert_false(dp_driver_token_secret(driver, &invite));
    net.stats.links = 0;
    assert_true(dp_driver_token_secret(driver, &invite));
    desk_settle();
    assert_int_equal(driver->facts.psk_epoch, 4);
    assert_int_equal(driver->facts.join_secret[0], 9);
    desk_close();
}

/* The statistics of a tick: dials of this node that were cut in all, and handshakes. */
static void tick(dp_driver *driver, uint64_t cuts, uint64_t handshakes, uint32_t links)
{
    const dp_transport_stats stats = {.dials_cut = cuts, .handshakes = handshakes, .links = links};
    dp_driver_rotate_tick(driver, &stats);
}

static void a_node_that_everybody_cuts_for_minutes_says_so_once_until_a_handshake(void **state)
{
    static const char text[] = "secret.refused";
    dp_driver *driver = open_member();
    (void)state;
    tick(driver, 40, 0, 0);
    net.now_ms = 10 * MINUTE_MS;
    tick(driver, 80, 0, 0);
    assert_false(driver->cut.told); /* There is no node yet. */
    driver->node = (dp_node *)(void *)&net;
    tick(driver, 100, 1, 0); /* A handshake: counting begins here. */
    net.now_ms += 10 * MINUTE_MS;
    tick(driver, 100, 1, 0); /* No address was reached meanwhile. */
    tick(driver, 150, 1, 0);
    net.now_ms += MINUTE_MS; /* A node behind a proxy may start within it. */
    tick(driver, 180, 1, 0);
    assert_false(desk_logged(text));
    net.now_ms += MINUTE_MS;
    tick(driver, 181, 1, 0);
    assert_true(driver->cut.told && desk_logged(text) && desk_logged("down behind a proxy"));
    const uint32_t entries = dp_event_log_entries(desk.daemon.event_log);
    tick(driver, 299, 1, 0);
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), entries);
    tick(driver, 299, 1, 1); /* A link. */
    assert_false(driver->cut.told);
    net.now_ms += 10 * MINUTE_MS;
    tick(driver, 302, 1, 0); /* Too few. */
    assert_false(driver->cut.told);
    driver->node = NULL;
    desk_close();
}

/* The first dial of a start can be cut before its first tick, on a machine that is up for long. */
static void cuts_before_the_first_tick_are_not_taken_for_minutes_of_them(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    driver->node = (dp_node *)(void *)&net;
    net.now_ms = 100 * MINUTE_MS;
    tick(driver, 1, 0, 0);
    net.now_ms += MINUTE_MS;
    tick(driver, 90, 0, 0);
    assert_false(driver->cut.told);
    net.now_ms += MINUTE_MS;
    tick(driver, 91, 0, 0);
    assert_true(driver->cut.told);
    driver->node = NULL;
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_used_once_it_is_on_the_disk_and_the_one_before_it_stays_valid),
        cmocka_unit_test(a_secret_that_is_known_or_older_than_two_changes_nothing),
        cmocka_unit_test(a_secret_that_cannot_be_written_is_not_used),
        cmocka_unit_test(without_memory_or_room_at_the_store_nothing_is_under_way),
        cmocka_unit_test(a_closing_node_uses_no_new_secret),
        cmocka_unit_test(the_secret_of_a_later_token_is_taken_by_a_node_without_links_alone),
        cmocka_unit_test(a_node_that_everybody_cuts_for_minutes_says_so_once_until_a_handshake),
        cmocka_unit_test(cuts_before_the_first_tick_are_not_taken_for_minutes_of_them),
    };
    tempdir_in_memory();
    CHECK_OK(dp_crypto_start());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
