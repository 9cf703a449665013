#include "base/list.h"

#include "tests/lib/check.h"

typedef struct item {
    int number;
    dp_list node;
} item;

static void items_come_in_the_order_they_were_pushed(void **state)
{
    item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    dp_list head;
    int expected = 0;

    (void)state;
    dp_list_init(&head);
    assert_true(dp_list_empty(&head));
    for (unsigned i = 0; i < 3; i++) {
        dp_list_push_back(&head, &items[i].node);
    }
    for (dp_list *at = head.next; at != &head; at = at->next) {
        assert_int_equal(DP_LIST_ITEM(at, item, node)->number, expected);
        expected++;
    }
    assert_int_equal(expected, 3);
}

static void removing_twice_is_harmless(void **state)
{
    item items[2] = {{.number = 0}, {.number = 1}};
    dp_list head;

    (void)state;
    dp_list_init(&head);
    dp_list_push_back(&head, &items[0].node);
    dp_list_push_back(&head, &items[1].node);
    dp_list_remove(&items[0].node);
    dp_list_remove(&items[0].node);
    assert_ptr_equal(head.next, &items[1].node);
    assert_ptr_equal(head.prev, &items[1].node);
    dp_list_remove(&items[1].node);
    assert_true(dp_list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_in_the_order_they_were_pushed),
        cmocka_unit_test(removing_twice_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
