/* The connection that loses its place at the port, by addresses of any network. */
#include <string.h>

#include "base/rng.h"
#include "daemon/net/port.h"
#include "tests/lib/check.h"

enum { FLOOD = 10000, FLOOD_ADDRESSES = 100 };

static dp_port port;
static dp_place places[FLOOD + 1000];

static dp_addr v4(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return (dp_addr){.family = 4, .ip = {(uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d}};
}

/* Of network number, host of it. */
static dp_addr v6(unsigned network, unsigned host)
{
    dp_addr addr = {.family = 6, .ip = {0x20, 1}};
    addr.ip[6] = (uint8_t)(network >> 8);
    addr.ip[7] = (uint8_t)network;
    addr.ip[8] = (uint8_t)host;
    addr.ip[15] = (uint8_t)(host >> 8);
    return addr;
}

static void open_port(void)
{
    memset(places, 0, sizeof places);
    dp_port_init(&port);
}

static dp_place *enter(unsigned index, dp_addr addr)
{
    return dp_port_enter(&port, &places[index], &addr);
}

static bool stays(unsigned index)
{
    return places[index].pool != NULL;
}

static void the_oldest_of_an_address_gives_way_to_the_next_from_there(void **state)
{
    (void)state;
    open_port();
    CHECK(enter(0, v4(10, 0, 0, 9)) == NULL);
    for (unsigned i = 1; i <= DP_PORT_PER_ADDRESS; i++) {
        CHECK(enter(i, v4(10, 0, 0, 1)) == NULL);
    }
    for (unsigned i = 1; i <= 200; i++) {
        CHECK(enter(DP_PORT_PER_ADDRESS + i, v4(10, 0, 0, 1)) == &places[i]);
        CHECK(!stays(i));
    }
    CHECK(stays(0)); /* older than all of them, of another address */
    assert_int_equal(port.strangers.n, DP_PORT_PER_ADDRESS + 1);
}

static void a_network_has_no_more_places_than_its_share(void **state)
{
    (void)state;
    open_port();
    CHECK(enter(0, v4(10, 0, 1, 1)) == NULL);
    for (unsigned i = 1; i <= DP_PORT_PER_NETWORK; i++) {
        CHECK(enter(i, v4(10, 0, 0, i)) == NULL);
    }
    CHECK(enter(1000, v4(10, 0, 0, 200)) == &places[1]);
    CHECK(stays(0));
    open_port();
    CHECK(enter(0, v6(2, 1)) == NULL);
    for (unsigned i = 1; i <= DP_PORT_PER_NETWORK; i++) {
        CHECK(enter(i, v6(1, i)) == NULL);
    }
    CHECK(enter(1000, v6(1, 3000)) == &places[1]);
    CHECK(stays(0));
}

/* The connection that came first of all stays while ten thousand come after it. */
static void a_flood_from_a_hundred_networks_drives_out_nobody_else(void **state)
{
    (void)state;
    open_port();
    CHECK(enter(0, v4(192, 168, 0, 1)) == NULL);
    for (unsigned i = 1; i <= FLOOD; i++) {
        DP_IGNORE(enter(i, v4(10, 0, i % FLOOD_ADDRESSES, 1)) == NULL);
        CHECK(stays(0) && stays(i));
    }
    CHECK(enter(FLOOD + 1, v4(192, 168, 1, 1)) != &places[0]);
    CHECK(stays(0) && stays(FLOOD + 1));
    assert_int_equal(port.strangers.n, DP_PORT_STRANGERS_MAX);
}

/* A customer has a /56 at least, which is as many networks as there are places. */
static void a_flood_from_all_networks_of_one_provider_drives_out_nobody_else(void **state)
{
    (void)state;
    open_port();
    CHECK(enter(0, v4(192, 168, 0, 1)) == NULL);
    dp_addr other = v6(1, 1);
    other.ip[3] = 77;
    CHECK(enter(1, other) == NULL);
    for (unsigned i = 2; i <= FLOOD; i++) {
        DP_IGNORE(enter(i, v6(i, 1)) == NULL);
        CHECK(stays(0) && stays(1) && stays(i));
    }
    open_port();
    CHECK(enter(0, v4(192, 168, 0, 1)) == NULL);
    for (unsigned i = 1; i <= FLOOD; i++) {
        DP_IGNORE(enter(i, v4(10, 0, i & 255, 1)) == NULL);
        CHECK(stays(0) && stays(i));
    }
    assert_int_equal(port.strangers.n, DP_PORT_STRANGERS_MAX);
}

static void with_more_networks_than_places_the_oldest_goes(void **state)
{
    (void)state;
    open_port();
    for (unsigned i = 0; i < DP_PORT_STRANGERS_MAX; i++) {
        CHECK(enter(i, v6(i, 1)) == NULL);
    }
    for (unsigned i = 0; i < DP_PORT_STRANGERS_MAX; i++) {
        CHECK(enter(DP_PORT_STRANGERS_MAX + i, v6(DP_PORT_STRANGERS_MAX + i, 1)) == &places[i]);
    }
}

static void a_holder_of_the_secret_has_a_place_in_reserve(void **state)
{
    (void)state;
    open_port();
    for (unsigned i = 0; i < DP_PORT_HOLDERS_MAX; i++) { /* a site behind one address */
        CHECK(enter(i, v4(10, 0, 0, 1)) == NULL);
        CHECK(dp_port_prove(&port, &places[i]) == NULL);
    }
    for (unsigned i = 1; i <= FLOOD / 2; i++) {
        DP_IGNORE(enter(1000 + i, v4(10, 0, i % FLOOD_ADDRESSES, 1)) == NULL);
    }
    for (unsigned i = 0; i < DP_PORT_HOLDERS_MAX; i++) {
        CHECK(stays(i));
    }
    /* Of holders too the largest crowd gives way, and never the one that comes. */
    CHECK(enter(200, v4(10, 0, 200, 1)) != NULL);
    CHECK(dp_port_prove(&port, &places[200]) == &places[0]);
    CHECK(enter(201, v4(10, 0, 0, 1)) == NULL); /* 200 has left one. */
    CHECK(dp_port_prove(&port, &places[201]) == &places[1]);
    CHECK(stays(200) && stays(201));
}

static void a_member_s_address_has_places_in_reserve(void **state)
{
    const dp_addr home = v4(192, 168, 7, 1);
    (void)state;
    open_port();
    dp_port_remember(&port, &home);
    dp_port_remember(&port, &home);
    assert_int_equal(port.n_remembered, 1);
    CHECK(enter(0, home) == NULL);
    for (unsigned i = 1; i <= FLOOD; i++) { /* of more networks than there are places */
        DP_IGNORE(enter(i, v4(10, i >> 8, i & 255, 1)) == NULL);
    }
    CHECK(stays(0));
    assert_int_equal(port.strangers.n, DP_PORT_STRANGERS_MAX);
    for (unsigned i = 1; i <= 500; i++) { /* Beyond its share they are strangers. */
        DP_IGNORE(enter(FLOOD + i, home) == NULL);
        CHECK(stays(FLOOD + i));
    }
    CHECK(stays(0) && stays(FLOOD + 1) && places[FLOOD + 500].pool == &port.strangers);
    assert_int_equal(port.homes.n, DP_PORT_PER_HOME);
    dp_port_leave(&places[0]);
    dp_port_leave(&places[0]);
    assert_int_equal(port.homes.n, DP_PORT_PER_HOME - 1);
}

static void a_member_s_ipv6_network_is_its_home_and_old_homes_are_forgotten(void **state)
{
    const dp_addr home = v6(1, 1);
    (void)state;
    open_port();
    dp_port_remember(&port, &home);
    CHECK(enter(0, v6(1, 999)) == NULL && places[0].pool == &port.homes);
    CHECK(enter(1, v6(2, 1)) == NULL && places[1].pool == &port.strangers);
    for (unsigned i = 0; i < DP_PORT_REMEMBERED_MAX; i++) {
        const dp_addr other = v6(100 + i, 1);
        dp_port_remember(&port, &other);
    }
    CHECK(enter(2, v6(1, 1)) == NULL && places[2].pool == &port.strangers);
}

static void check_pool(const dp_port_pool *pool)
{
    CHECK(pool->n <= pool->max);
    for (uint32_t i = 0; i < pool->n; i++) {
        uint32_t region = 0;
        uint32_t network = 0;
        uint32_t address = 0;
        const dp_port_row *row = &pool->rows[i];
        CHECK(row->place->pool == pool && row->place->row == i);
        for (uint32_t k = 0; k < pool->n; k++) {
            const dp_port_from *other = &pool->rows[k].from;
            const bool is_v4 = row->from.family == 4;
            const bool same = other->family == row->from.family;
            region += same && memcmp(other->ip, row->from.ip, is_v4 ? 2 : 4) == 0;
            network += same && memcmp(other->ip, row->from.ip, is_v4 ? 3 : 8) == 0;
            address += same && memcmp(other->ip, row->from.ip, 16) == 0;
        }
        CHECK(row->region == region && row->network == network);
        CHECK(network <= pool->per_network && address <= pool->per_address);
    }
}

static void books_are_right_after_anything(void **state)
{
    dp_rng rng;
    (void)state;
    open_port();
    dp_rng_init(&rng, 17);
    for (unsigned step = 0; step < 20000; step++) {
        const unsigned i = (unsigned)dp_rng_below(&rng, 600);
        const unsigned a = (unsigned)dp_rng_below(&rng, 8);
        const unsigned b = (unsigned)dp_rng_below(&rng, 40);
        const dp_addr addr = dp_rng_below(&rng, 3) == 0 ? v6(a, b) : v4(10, a & 1, a, b);
        const uint64_t what = dp_rng_below(&rng, 20);
        if (what == 0) {
            dp_port_remember(&port, &addr);
        } else if (!stays(i)) {
            CHECK(dp_port_enter(&port, &places[i], &addr) != &places[i] && stays(i));
        } else if (what < 8 && places[i].pool != &port.holders) {
            CHECK(dp_port_prove(&port, &places[i]) != &places[i] && stays(i));
        } else if (what < 12) {
            dp_port_leave(&places[i]);
        }
        if (step % 16 == 0) {
            check_pool(&port.strangers);
            check_pool(&port.homes);
            check_pool(&port.holders);
        }
    }
    dp_place *first = dp_port_first_to_go(&port);
    CHECK(first != NULL && first->pool == &port.strangers);
}

/* So many of this second's first messages from there are answered. */
static unsigned answered(dp_addr addr, unsigned count, uint64_t now_ms)
{
    unsigned answers = 0;
    for (unsigned i = 0; i < count; i++) {
        answers += dp_port_may_answer(&port, &addr, now_ms) ? 1 : 0;
    }
    return answers;
}

/* A thousand identities of one token cost a fifth of a processor in handshakes alone. */
static void a_network_has_so_many_handshakes_in_a_second(void **state)
{
    const dp_addr home = v4(10, 0, 1, 1);
    (void)state;
    open_port();
    assert_int_equal(answered(v4(10, 0, 0, 1), 1000, 5000), DP_PORT_ANSWERS_BURST);
    assert_int_equal(answered(v4(10, 0, 0, 2), 1000, 5000), 0); /* The same one. */
    assert_int_equal(answered(v4(10, 0, 1, 2), 3, 5000), 3);
    assert_int_equal(answered(v4(10, 0, 0, 1), 1000, 6000), DP_PORT_ANSWERS);
    assert_int_equal(answered(v4(10, 0, 0, 1), 1000, 5000 + 1000000), DP_PORT_ANSWERS_BURST);
    dp_port_remember(&port, &home);
    assert_int_equal(answered(home, 1000, 6000), 1000);
}

static void all_networks_together_have_their_share(void **state)
{
    unsigned answers = 0;
    (void)state;
    open_port();
    for (unsigned i = 0; i < 200; i++) {
        answers += answered(v4(10, i, 1, 1), 5, 1000);
    }
    assert_int_equal(answers, DP_PORT_ANSWERS_ALL_BURST);
    assert_int_equal(answered(v4(11, 2, 0, 1), 100, 2000), DP_PORT_ANSWERS_ALL);
    const dp_addr home = v4(12, 0, 0, 1); /* Known from before the start. */
    dp_port_remember(&port, &home);
    assert_int_equal(answered(home, 20, 2000), 20);
}

/* One customer of a provider can have all networks of a region. */
static void many_networks_of_one_region_leave_answers_for_others(void **state)
{
    unsigned answers = 0;
    (void)state;
    open_port();
    for (unsigned i = 0; i < 200; i++) {
        answers += answered(v6(i, 1), 100, 1000);
    }
    assert_int_equal(answers, DP_PORT_ANSWERS_REGION_BURST);
    assert_int_equal(answered(v4(10, 2, 0, 1), 100, 1000), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_of_an_address_gives_way_to_the_next_from_there),
        cmocka_unit_test(a_network_has_no_more_places_than_its_share),
        cmocka_unit_test(a_flood_from_a_hundred_networks_drives_out_nobody_else),
        cmocka_unit_test(a_flood_from_all_networks_of_one_provider_drives_out_nobody_else),
        cmocka_unit_test(with_more_networks_than_places_the_oldest_goes),
        cmocka_unit_test(a_holder_of_the_secret_has_a_place_in_reserve),
        cmocka_unit_test(a_member_s_address_has_places_in_reserve),
        cmocka_unit_test(a_member_s_ipv6_network_is_its_home_and_old_homes_are_forgotten),
        cmocka_unit_test(books_are_right_after_anything),
        cmocka_unit_test(a_network_has_so_many_handshakes_in_a_second),
        cmocka_unit_test(all_networks_together_have_their_share),
        cmocka_unit_test(many_networks_of_one_region_leave_answers_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
