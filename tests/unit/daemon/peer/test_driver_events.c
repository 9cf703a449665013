/* The answers of a real driver to its transport. */
#include "daemon/net/transport_conn.h"
#include "daemon/peer/driver_inside.h"
#include "tests/unit/daemon/joining.h"

static void everybody_may_link_and_is_a_guest_until_the_node_stands(void **state)
{
    const dp_peer peer = {{7}};
    uint8_t x_public[32] = {0};
    struct house house;
    struct caller caller;
    (void)state;
    start_joining(&house, &caller);
    dp_driver *driver = house.daemon.driver;
    const dp_transport_hooks *hooks = &driver->transport->config.hooks;
    assert_null(driver->node);
    assert_true(hooks->known(hooks->context, &peer, x_public));
    assert_true(dp_transport_is_guest(driver->transport, &peer));
    house.daemon.ending = true;
    dp_driver_close(driver);
    house.daemon.driver = NULL;
    caller_close(&caller);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_may_link_and_is_a_guest_until_the_node_stands),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
