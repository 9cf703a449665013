#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/sim/queue.h"

static void earlier_occasions_come_first_and_equal_ones_keep_their_order(void **state)
{
    dp_queue queue = {0};
    dp_rng rng;
    dp_occasion out;
    uint64_t at = 0;
    uint64_t order = 0;

    (void)state;
    dp_rng_init(&rng, 1);
    for (uint32_t i = 0; i < 5000; i++) {
        const dp_occasion occasion = {
            .at_us = dp_rng_below(&rng, 100), .kind = DP_ON_TICK, .node = i};
        assert_int_equal(dp_queue_push(&queue, &occasion), DP_OK);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        assert_true(dp_queue_pop(&queue, &out));
        assert_true(out.at_us > at || (out.at_us == at && out.order > order));
        at = out.at_us;
        order = out.order;
    }
    assert_false(dp_queue_pop(&queue, &out));
    dp_queue_close(&queue);
}

static void a_shared_packet_lives_until_its_last_use(void **state)
{
    dp_queue queue = {0};
    dp_occasion out;
    dp_packet *packet = dp_packet_of("abc", 3);

    (void)state;
    assert_non_null(packet);
    const dp_occasion first = {.at_us = 1, .packet = dp_packet_share(packet)};
    const dp_occasion second = {.at_us = 2, .packet = packet};
    assert_int_equal(dp_queue_push(&queue, &first), DP_OK);
    assert_int_equal(dp_queue_push(&queue, &second), DP_OK);
    assert_true(dp_queue_pop(&queue, &out));
    dp_packet_drop(out.packet);
    assert_memory_equal(packet->data, "abc", 3);
    assert_int_equal(packet->uses, 1);
    dp_queue_close(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earlier_occasions_come_first_and_equal_ones_keep_their_order),
        cmocka_unit_test(a_shared_packet_lives_until_its_last_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
