/* Dials with names among their addresses. The resolver, the clock of the loop and the transport are
 * played. */
#include <netdb.h>
#include <netinet/in.h>

#include "tests/unit/daemon/desk.h"

enum { LOOKUPS_MAX = 8, LOOKUP_MS_MAX = 2000 }; /* as in driver_dial.c */

static struct {
    uint64_t now_ms;
    bool refuses; /* the resolver takes no request */
    uint32_t n_asked;
    struct {
        uv_getaddrinfo_t *request;
        uv_getaddrinfo_cb answer;
        char name[64];
    } asked[16];
    uint32_t n_dials;
    struct {
        bool has_peer;
        dp_peer peer;
        uint32_t n;
        dp_addr addrs[DP_ADDRS_MAX];
    } dials[16];
} net;

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return net.now_ms;
}

int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb answer,
                   const char *node, const char *service, const struct addrinfo *hints)
{
    (void)loop;
    CHECK(service == NULL && hints->ai_socktype == SOCK_STREAM);
    if (net.refuses) {
        return UV_ENOMEM;
    }
    CHECK(net.n_asked < sizeof net.asked / sizeof net.asked[0]);
    net.asked[net.n_asked].request = request;
    net.asked[net.n_asked].answer = answer;
    snprintf(net.asked[net.n_asked++].name, sizeof net.asked[0].name, "%s", node);
    return 0;
}

void uv_freeaddrinfo(struct addrinfo *list)
{
    (void)list; /* It lies on the stack. */
}

void dp_transport_dial(dp_transport *transport, const dp_peer *peer, const dp_addr *addrs,
                       uint32_t n_addrs)
{
    (void)transport;
    CHECK(net.n_dials < sizeof net.dials / sizeof net.dials[0]);
    net.dials[net.n_dials].has_peer = peer != NULL;
    net.dials[net.n_dials].peer = peer != NULL ? *peer : (dp_peer){{0}};
    net.dials[net.n_dials].n = n_addrs;
    memcpy(net.dials[net.n_dials++].addrs, addrs, n_addrs * sizeof *addrs);
}

static dp_driver *open_net(void)
{
    memset(&net, 0, sizeof net);
    net.now_ms = 1000;
    return desk_open();
}

static dp_addr ip_of(uint8_t last)
{
    return (dp_addr){.family = DP_ADDRESS_IP4, .port = last, .ip = {10, 0, 0, last}};
}

static dp_addr name_addr(const char *name, uint16_t port)
{
    dp_addr addr = {.family = DP_ADDRESS_DNS, .port = port};
    snprintf(addr.name, sizeof addr.name, "%s", name);
    return addr;
}

/* The resolver knows this address, or none (0), for a request. */
static void resolve(uint32_t request, uint8_t last)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct addrinfo unix_one = {.ai_family = AF_UNIX};
    struct addrinfo one = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&in, .ai_next = NULL};
    const uint8_t ip[4] = {192, 0, 2, last};
    memcpy(&in.sin_addr, ip, sizeof ip);
    unix_one.ai_next = &one; /* of a kind that cannot be dialled */
    net.asked[request].answer(net.asked[request].request, last != 0 ? 0 : UV_EAI_NONAME,
                              last != 0 ? &unix_one : NULL);
}

static void addresses_without_names_are_dialled_at_once(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {ip_of(1), ip_of(2)};
    (void)state;
    dp_driver_dial(driver, &peer, addrs, 2);
    assert_int_equal(net.n_dials, 1);
    assert_true(net.dials[0].has_peer && net.dials[0].n == 2 && net.dials[0].addrs[1].ip[3] == 2);
    assert_int_equal(driver->n_lookups, 0);
    desk_close();
}

static void names_are_looked_up_first_and_keep_their_place_and_port(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {ip_of(1), name_addr("a.example", 71), name_addr("b.example", 72),
                             ip_of(4)};
    (void)state;
    dp_driver_dial(driver, &peer, addrs, 4);
    assert_int_equal(net.n_dials, 0);
    assert_int_equal(net.n_asked, 1);
    assert_string_equal(net.asked[0].name, "a.example");
    resolve(0, 20);
    assert_string_equal(net.asked[1].name, "b.example");
    resolve(1, 30);
    assert_int_equal(net.n_dials, 1);
    assert_int_equal(net.dials[0].n, 4);
    assert_true(net.dials[0].addrs[0].ip[3] == 1 && net.dials[0].addrs[3].ip[3] == 4);
    assert_true(net.dials[0].addrs[1].ip[3] == 20 && net.dials[0].addrs[1].port == 71);
    assert_true(net.dials[0].addrs[2].ip[3] == 30 && net.dials[0].addrs[2].port == 72);
    assert_true(driver->n_lookups == 0 && driver->n_jobs == 0);
    desk_close();
}

static void a_name_without_an_address_is_told_and_the_others_are_dialled(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {name_addr("gone.example", 71), ip_of(4)};
    const dp_addr alone = name_addr("gone.example", 71);
    (void)state;
    dp_driver_dial(driver, &peer, addrs, 2);
    resolve(0, 0);
    assert_true(desk_logged("name.unknown") && desk_logged("the name gone.example has no address"));
    assert_true(net.n_dials == 1 && net.dials[0].n == 1 && net.dials[0].addrs[0].ip[3] == 4);
    dp_driver_dial(driver, NULL, &alone, 1); /* Of nobody known nothing is left to dial. */
    resolve(1, 0);
    assert_int_equal(net.n_dials, 1);
    desk_close();
}

/* Look up this name of nobody known, which has no address. */
static void miss(dp_driver *driver, const char *name)
{
    const dp_addr addr = name_addr(name, 71);
    dp_driver_dial(driver, NULL, &addr, 1);
    resolve(0, 0);
    net.n_asked = 0;
}

/* Offline for a night, a line every two seconds took the place of all history. */
static void a_name_without_an_address_is_told_once_an_hour(void **state)
{
    dp_driver *driver = open_net();
    const dp_event_log *event_log = desk.daemon.event_log;
    char name[32];
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        miss(driver, "gone.example");
        net.now_ms += 2000;
    }
    assert_int_equal(dp_event_log_entries(event_log), 1);
    miss(driver, "other.example");
    assert_int_equal(dp_event_log_entries(event_log), 2);
    net.now_ms += 3600 * 1000;
    miss(driver, "gone.example");
    assert_int_equal(dp_event_log_entries(event_log), 3);
    for (uint32_t i = 0; i < 2 * DP_DRIVER_UNKNOWN_MAX; i++) { /* Of a member that names many. */
        snprintf(name, sizeof name, "%u.example", i);
        miss(driver, name);
    }
    assert_int_equal(dp_event_log_entries(event_log), 2 + DP_DRIVER_UNKNOWN_MAX);
    desk_close();
}

static void one_peer_is_looked_up_once_at_a_time(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer one = {{7}};
    const dp_peer other = {{8}};
    const dp_addr addr = name_addr("a.example", 71);
    (void)state;
    dp_driver_dial(driver, &one, &addr, 1);
    dp_driver_dial(driver, &one, &addr, 1);
    assert_int_equal(net.n_asked, 1);
    dp_driver_dial(driver, NULL, &addr, 1); /* To any peer there: another dial ... */
    dp_driver_dial(driver, NULL, &addr, 1); /* ... by its name. */
    dp_driver_dial(driver, &other, &addr, 1);
    assert_int_equal(net.n_asked, 3);
    for (uint32_t i = 0; i < 3; i++) {
        resolve(i, (uint8_t)(i + 1));
    }
    assert_true(net.n_dials == 3 && net.dials[0].has_peer && !net.dials[1].has_peer);
    dp_driver_dial(driver, &one, &addr, 1); /* It is over. */
    assert_int_equal(net.n_asked, 4);
    resolve(3, 1);
    desk_close();
}

static void a_resolver_that_is_slow_delays_the_other_addresses_for_two_seconds(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {name_addr("slow.example", 71), ip_of(4)};
    (void)state;
    dp_driver_dial(driver, &peer, addrs, 2);
    net.now_ms += LOOKUP_MS_MAX - 1;
    dp_driver_dial_tick(driver);
    assert_int_equal(net.n_dials, 0);
    net.now_ms++;
    dp_driver_dial_tick(driver);
    dp_driver_dial_tick(driver); /* Once. */
    assert_true(net.n_dials == 1 && net.dials[0].n == 1 && net.dials[0].addrs[0].ip[3] == 4);
    resolve(0, 9); /* A late answer is dialled too. */
    assert_true(net.n_dials == 2 && net.dials[1].n == 2 && net.dials[1].addrs[0].ip[3] == 9);
    desk_close();
}

static void beyond_eight_names_and_without_memory_only_plain_addresses_are_dialled(void **state)
{
    dp_driver *driver = open_net();
    const dp_addr addrs[] = {name_addr("a.example", 71), ip_of(4)};
    dp_peer peer = {{0}};
    (void)state;
    for (uint8_t i = 0; i < LOOKUPS_MAX; i++) {
        peer.bytes[0] = i;
        dp_driver_dial(driver, &peer, addrs, 2);
    }
    assert_true(net.n_asked == LOOKUPS_MAX && net.n_dials == 0);
    peer.bytes[0] = 99;
    dp_driver_dial(driver, &peer, addrs, 2);
    assert_true(net.n_asked == LOOKUPS_MAX && net.n_dials == 1 && net.dials[0].n == 1);
    for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
        resolve(i, 0);
    }
    net.n_dials = 0;
    dp_alloc_fail_after(1);
    dp_driver_dial(driver, &peer, addrs, 2);
    dp_alloc_fail_after(0);
    assert_true(net.n_dials == 1 && net.dials[0].n == 1 && driver->n_jobs == 0);
    desk_close();
}

static void a_resolver_that_takes_no_request_leaves_the_name_out(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {name_addr("a.example", 71), ip_of(4)};
    (void)state;
    net.refuses = true;
    dp_driver_dial(driver, &peer, addrs, 2);
    assert_true(net.n_dials == 1 && net.dials[0].n == 1 && net.dials[0].addrs[0].ip[3] == 4);
    assert_true(driver->n_lookups == 0 && driver->n_jobs == 0);
    desk_close();
}

static void a_closing_node_dials_nobody_and_logs_no_name(void **state)
{
    dp_driver *driver = open_net();
    const dp_peer peer = {{7}};
    const dp_addr addrs[] = {name_addr("a.example", 71), name_addr("b.example", 72), ip_of(4)};
    (void)state;
    dp_driver_dial(driver, &peer, addrs, 3);
    driver->closing = true;
    resolve(0, 0);
    assert_true(net.n_asked == 1 && net.n_dials == 0 && driver->n_jobs == 0);
    assert_false(desk_logged("name.unknown"));
    desk_close();
}

static void of_a_token_each_name_is_a_dial_of_its_own_and_addresses_go_together(void **state)
{
    dp_driver *driver = open_net();
    (void)state;
    for (uint8_t i = 0; i < 6; i++) {
        const dp_addr addr = i == 1 ? name_addr("a.example", 71) : ip_of((uint8_t)(i + 1));
        driver->facts.addresses[driver->facts.n_addresses++] = dp_addr_address(&addr);
    }
    dp_driver_dial_token(driver);
    assert_int_equal(net.n_asked, 1);
    assert_int_equal(net.n_dials, 2); /* Four, and the one that is left. */
    assert_true(net.dials[0].n == DP_ADDRS_MAX && !net.dials[0].has_peer && net.dials[1].n == 1);
    resolve(0, 9);
    assert_true(net.n_dials == 3 && net.dials[2].n == 1 && net.dials[2].addrs[0].port == 71);
    driver->facts.n_addresses = 0;
    dp_driver_dial_token(driver);
    assert_int_equal(net.n_dials, 3);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_without_names_are_dialled_at_once),
        cmocka_unit_test(names_are_looked_up_first_and_keep_their_place_and_port),
        cmocka_unit_test(a_name_without_an_address_is_told_and_the_others_are_dialled),
        cmocka_unit_test(a_name_without_an_address_is_told_once_an_hour),
        cmocka_unit_test(one_peer_is_looked_up_once_at_a_time),
        cmocka_unit_test(a_resolver_that_is_slow_delays_the_other_addresses_for_two_seconds),
        cmocka_unit_test(beyond_eight_names_and_without_memory_only_plain_addresses_are_dialled),
        cmocka_unit_test(a_resolver_that_takes_no_request_leaves_the_name_out),
        cmocka_unit_test(a_closing_node_dials_nobody_and_logs_no_name),
        cmocka_unit_test(of_a_token_each_name_is_a_dial_of_its_own_and_addresses_go_together),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
