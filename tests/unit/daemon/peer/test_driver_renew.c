/* A renewed certificate: shown to peers at once, and on the disk soon. The transport is played. */
#include "daemon/net/hello.h"
#include "tests/unit/daemon/desk.h"

#define DAY_MS (24ULL * 3600 * 1000)
#define NOW_MS 1800000000000ULL

static dp_hello said; /* to peers, last */
static uint32_t n_said;

void dp_transport_say(dp_transport *transport, dp_view hello)
{
    (void)transport;
    CHECK(dp_hello_read(hello, &said));
    n_said++;
}

uint64_t dp_driver_wall_ms(const dp_driver *driver)
{
    (void)driver;
    return NOW_MS;
}

static dp_renewal renewal_until(uint64_t until_ms)
{
    return (dp_renewal){.peer = {{1}}, .until_ms = until_ms, .by = {{2}}, .signature = {3}};
}

/* A node that belongs to the run, as the store knows it. */
static dp_driver *open_member(void)
{
    dp_driver *driver = desk_open();
    n_said = 0;
    snprintf(driver->facts.node_name, sizeof driver->facts.node_name, "ann");
    snprintf(driver->facts.name, sizeof driver->facts.name, "kjv");
    dp_run_identity_begin_secrets(&driver->facts);
    CHECK_OK(dp_run_identity_save(desk.shelf.store,
                                  &driver->facts)); /* The store thread has nothing to do. */
    return driver;
}

static void a_renewal_is_shown_to_peers_and_outlives_the_daemon(void **state)
{
    const dp_renewal renewal = renewal_until(NOW_MS + 30 * DAY_MS + 5);
    dp_run_identity facts;
    (void)state;
    dp_driver *driver = open_member();
    dp_driver_renewed(driver, &renewal);
    assert_int_equal(n_said, 1);
    assert_string_equal(said.name, "ann");
    assert_true(said.renewal.until_ms == renewal.until_ms && said.renewal.signature[0] == 3);
    assert_true(driver->facts.renewal.until_ms == renewal.until_ms);
    assert_true(desk_logged("certificate.renewed") && desk_logged("renewed for 30 days"));
    desk_settle();
    CHECK_OK(dp_run_identity_load(desk.shelf.store, &facts));
    assert_true(facts.renewal.until_ms == renewal.until_ms && facts.renewal.by.bytes[0] == 2);
    assert_false(desk_logged("certificate.unsaved"));
    desk_close();
}

static void a_renewal_that_is_over_counts_no_days(void **state)
{
    const dp_renewal renewal = renewal_until(NOW_MS - 1);
    (void)state;
    dp_driver_renewed(open_member(), &renewal);
    assert_true(desk_logged("renewed for 0 days"));
    desk_close();
}

static void without_memory_or_room_at_the_store_peers_see_it_all_the_same(void **state)
{
    const dp_renewal renewal = renewal_until(NOW_MS + DAY_MS);
    dp_run_identity facts;
    (void)state;
    dp_driver *driver = open_member();
    dp_alloc_fail_after(1);
    dp_driver_renewed(driver, &renewal);
    dp_alloc_fail_after(0);
    desk.is_full = true;
    dp_driver_renewed(driver, &renewal);
    assert_int_equal(n_said, 2);
    assert_int_equal(driver->n_jobs, 0);
    CHECK_OK(dp_run_identity_load(desk.shelf.store, &facts));
    assert_true(facts.renewal.until_ms == 0); /* The next start asks for it again. */
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_renewal_is_shown_to_peers_and_outlives_the_daemon),
        cmocka_unit_test(a_renewal_that_is_over_counts_no_days),
        cmocka_unit_test(without_memory_or_room_at_the_store_peers_see_it_all_the_same),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
