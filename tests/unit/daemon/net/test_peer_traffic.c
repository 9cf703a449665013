/* Bytes of peers, over their links, in a table that is never full for good. */
#include "daemon/net/peer_traffic.h"

#include <string.h>

#include "tests/lib/check.h"

static dp_peer_traffic traffic;

static dp_peer peer_of(uint32_t number)
{
    dp_peer peer = {{7}};
    memcpy(peer.bytes + 4, &number, sizeof number);
    return peer;
}

static void bytes_are_summed_over_the_links_of_a_peer(void **state)
{
    const dp_peer bob = peer_of(1);
    const dp_peer eve = peer_of(2);
    uint64_t sent = 9;
    uint64_t received = 9;
    (void)state;
    traffic = (dp_peer_traffic){.n = 0};
    CHECK(!dp_peer_traffic_look(&traffic, &bob, &sent, &received) && sent == 9);
    uint32_t row = dp_peer_traffic_begin(&traffic, &bob);
    dp_peer_traffic_count(&traffic, row, 10, 0);
    dp_peer_traffic_count(&traffic, dp_peer_traffic_begin(&traffic, &eve), 500, 600);
    dp_peer_traffic_end(&traffic, row);
    row = dp_peer_traffic_begin(&traffic, &bob);
    dp_peer_traffic_count(&traffic, row, 1, 2);
    CHECK(dp_peer_traffic_look(&traffic, &bob, &sent, &received) && sent == 11 && received == 2);
    CHECK(dp_peer_traffic_look(&traffic, &eve, &sent, &received) && sent == 500 && received == 600);
}

static void the_peer_that_was_heard_longest_ago_gives_its_row(void **state)
{
    uint64_t sent = 0;
    uint64_t received = 0;
    (void)state;
    traffic = (dp_peer_traffic){.n = 0};
    for (uint32_t i = 0; i < DP_PEER_TRAFFIC_ROWS; i++) {
        const dp_peer peer = peer_of(i);
        CHECK(dp_peer_traffic_begin(&traffic, &peer) == i);
    }
    const dp_peer late = peer_of(DP_PEER_TRAFFIC_ROWS);
    CHECK(dp_peer_traffic_begin(&traffic, &late) == DP_PEER_TRAFFIC_NONE);
    dp_peer_traffic_count(&traffic, DP_PEER_TRAFFIC_NONE, 1, 1);
    dp_peer_traffic_end(&traffic, DP_PEER_TRAFFIC_NONE);
    dp_peer_traffic_end(&traffic, 30);
    dp_peer_traffic_end(&traffic, 20);
    dp_peer_traffic_count(&traffic, 30, 5, 5);
    CHECK(dp_peer_traffic_begin(&traffic, &late) == 30);
    const dp_peer gone = peer_of(30);
    const dp_peer stays = peer_of(20);
    CHECK(!dp_peer_traffic_look(&traffic, &gone, &sent, &received));
    CHECK(dp_peer_traffic_look(&traffic, &stays, &sent, &received));
    CHECK(dp_peer_traffic_look(&traffic, &late, &sent, &received) && sent == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_summed_over_the_links_of_a_peer),
        cmocka_unit_test(the_peer_that_was_heard_longest_ago_gives_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
