/* The table of objects that are here. */
#include "gossip/context/context.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_hash root_of(uint32_t i)
{
    return (dp_hash){{(uint8_t)i, (uint8_t)(i >> 8), 200}};
}

static void an_object_is_here_with_its_size_until_it_is_let_go(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *node = world->nodes[0].node;
    const dp_hash one = root_of(1);
    const dp_hash two = root_of(2);
    const uint64_t before = node->unheld;

    (void)state;
    assert_false(dp_node_holds(node, &one));
    assert_int_equal(dp_node_size(node, &one), 0);
    dp_node_hold(node, &one, 77);
    assert_true(dp_node_holds(node, &one) && !dp_node_holds(node, &two));
    assert_int_equal(dp_node_size(node, &one), 77);
    dp_node_hold(node, &one, 78);
    assert_int_equal(dp_node_size(node, &one), 78);
    dp_node_unhold(node, &two);
    assert_int_equal(node->unheld, before);
    dp_node_unhold(node, &one);
    assert_int_equal(node->unheld, before + 1);
    assert_false(dp_node_holds(node, &one));
    assert_int_equal(dp_node_size(node, &one), 0);
    kit_close(world);
}

static void a_full_table_forgets_the_last_and_has_room_again_for_each_that_goes(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *node = world->nodes[0].node;
    uint32_t n = 0;

    (void)state;
    while (n < node->held_max + 1) {
        const dp_hash root = root_of(++n);
        dp_node_hold(node, &root, n);
        if (!dp_node_holds(node, &root)) {
            break;
        }
    }
    assert_true(n <= node->held_max + 1 && n > node->held_max - 64);
    const dp_hash lost = root_of(n);
    for (uint32_t i = 1; i < n; i++) {
        const dp_hash root = root_of(i);
        assert_true(dp_node_holds(node, &root));
        assert_int_equal(dp_node_size(node, &root), i);
    }
    const uint32_t gone[3] = {n - 1, 40, 7};
    for (uint32_t i = 0; i < 3; i++) {
        const dp_hash root = root_of(gone[i]);
        dp_node_unhold(node, &root);
    }
    for (uint32_t i = 0; i < 4; i++) { /* Three places, and no fourth. */
        const dp_hash root = root_of(n + 10 + i);
        dp_node_hold(node, &root, 5);
        assert_int_equal(dp_node_holds(node, &root), i < 3);
    }
    assert_false(dp_node_holds(node, &lost));
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_here_with_its_size_until_it_is_let_go),
        cmocka_unit_test(a_full_table_forgets_the_last_and_has_room_again_for_each_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
