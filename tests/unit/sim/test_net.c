#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gossip/node/node.h"
#include "tests/sim/net.h"

static void open_pair(dp_net *net)
{
    assert_int_equal(dp_net_open(net, 2, 1), DP_OK);
    dp_net_lay_out(net, false, false);
    net->ends[0 * 2 + 1].connection = 1;
    net->ends[1 * 2 + 0].connection = 1;
}

static void send_number(dp_net *net, dp_queue *queue, uint64_t now_us, uint32_t number)
{
    dp_packet *packet = dp_packet_of(&number, sizeof number);

    assert_non_null(packet);
    assert_int_equal(dp_net_send(net, queue, now_us, 0, 1, packet, DP_NET_CONTROL), DP_OK);
}

static void a_stream_does_not_overtake_itself_despite_jitter(void **state)
{
    dp_net net;
    dp_queue queue = {0};
    dp_occasion out;

    (void)state;
    open_pair(&net);
    net.weather.jitter_us = 100000;
    for (uint32_t i = 0; i < 200; i++) {
        send_number(&net, &queue, i * 10, i);
    }
    for (uint32_t i = 0; i < 200; i++) {
        assert_true(dp_queue_pop(&queue, &out));
        assert_memory_equal(out.packet->data, &i, sizeof i);
        dp_packet_drop(out.packet);
    }
    dp_queue_close(&queue);
    dp_net_close(&net);
}

static void a_blocked_path_holds_or_drops(void **state)
{
    dp_net net;
    dp_queue queue = {0};
    dp_occasion out;

    (void)state;
    open_pair(&net);
    dp_net_block(&net, 0, 1, 5000, true);
    send_number(&net, &queue, 100, 1);
    assert_true(dp_queue_pop(&queue, &out));
    assert_true(out.at_us >= 5000);
    dp_packet_drop(out.packet);
    dp_net_block(&net, 0, 1, 9000, false);
    send_number(&net, &queue, 6000, 2);
    assert_false(dp_queue_pop(&queue, &out));
    assert_true(dp_net_blocked(&net, 8999, 0, 1));
    assert_false(dp_net_blocked(&net, 9000, 0, 1));
    assert_false(dp_net_blocked(&net, 8000, 1, 0));
    dp_queue_close(&queue);
    dp_net_close(&net);
}

static void a_reset_comes_after_what_was_under_way(void **state)
{
    dp_net net;
    dp_queue queue = {0};
    dp_occasion out;

    (void)state;
    open_pair(&net);
    net.weather.jitter_us = 50000;
    send_number(&net, &queue, 100, 1);
    assert_int_equal(dp_net_reset(&net, &queue, 101, 0, 1, 1, DP_LINK_RESET), DP_OK);
    assert_true(dp_queue_pop(&queue, &out));
    assert_int_equal(out.kind, DP_ON_PACKET);
    dp_packet_drop(out.packet);
    assert_true(dp_queue_pop(&queue, &out));
    assert_int_equal(out.kind, DP_ON_LINK_DOWN);
    dp_queue_close(&queue);
    dp_net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_does_not_overtake_itself_despite_jitter),
        cmocka_unit_test(a_blocked_path_holds_or_drops),
        cmocka_unit_test(a_reset_comes_after_what_was_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
