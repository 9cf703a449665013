/* THREADS_TEST: chunks that are asked for with size and leaves: two object transfers, each with a
 * store, a store thread and a transport, in one loop. */
#include <stdlib.h>

#include "base/rng.h"
#include "gossip/record/wire.h"
#include "store/inside.h"
#include "tests/unit/daemon/post.h"

enum { AHEAD = 3 };

static void ask_ahead(struct post *to, const struct post *from, const dp_hash *root)
{
    to->n_infos_before = to->n_infos;
    dp_object_transfer_get_info(to->object_transfer, &from->guest.peer, root, AHEAD);
    turn_until(to->guest.loop, has_info, to);
}

static bool has_come_ahead(void *context)
{
    return ((struct post *)context)->n_chunk_messages >= AHEAD;
}

static void chunks_requested_ahead_are_not_requested_again(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    route.b.fetches = &route.a; /* One turn of the loop may bring the chunks, too. */
    ask_ahead(&route.b, &route.a, &root);
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    assert_int_equal(route.b.n_chunks, 4);
    assert_int_equal(route.b.n_chunk_messages, 4);
    assert_int_equal(route.a.n_others, 1 + 4); /* size and leaves, and each chunk once */
    route_close(&route);
}

static void chunks_that_arrive_before_the_request_count(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    route.b.begins = true;
    ask_ahead(&route.b, &route.a, &root);
    turn_until(&route.loop, has_come_ahead, &route.b);
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 3);
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    assert_int_equal(route.a.n_others, 1 + 4);
    route_close(&route);
}

static void chunks_that_arrive_before_size_and_leaves_are_requested_again(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    ask_ahead(&route.b, &route.a, &root);
    turn_until(&route.loop, has_come_ahead, &route.b); /* Nothing was begun. */
    assert_int_equal(route.b.n_chunks, 0);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, i);
    }
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    assert_int_equal(route.a.n_others, 1 + AHEAD + 4);
    route_close(&route);
}

static void a_peer_that_lacks_it_answers_once_before_it_is_begun(void **state)
{
    static struct route route;
    const dp_hash root = {.bytes = {9}};
    (void)state;
    route_open(&route);
    dp_object_transfer_get_info(route.b.object_transfer, &route.a.guest.peer, &root, AHEAD);
    /* Of size and leaves, of the first chunk, and of two more that mean nothing by themselves. */
    while (route.b.n_chunk_messages < 1 + AHEAD) {
        uv_run(&route.loop, UV_RUN_ONCE);
    }
    CHECK_STATUS(route.b.last, DP_NOTFOUND);
    assert_in_range(route.b.n_chunks, 1, 2);
    route_close(&route);
}

/* As a peer may: chunks of an object that it was asked about, more than there are, again and again,
 * and of a wrong size. */
static void early_chunks_of_a_liar_do_no_harm(void **state)
{
    static struct route route;
    dp_rng rng;
    (void)state;
    route_open(&route);
    dp_rng_init(&rng, 5);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    ask_ahead(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < 200; i++) {
        uint8_t bytes[DP_CHUNK_HEAD_BYTES + 8] = {0};
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_wire_write_chunk_head(&writer, &root, (uint32_t)dp_rng_below(&rng, DP_CHUNKS_MAX + 2),
                                 dp_rng_below(&rng, 2) == 0);
        DP_IGNORE(
            dp_object_transfer_message(route.b.object_transfer, &route.a.guest.peer,
                                       dp_view_of(bytes, writer.size + dp_rng_below(&rng, 8))));
    }
    fetch(&route.b, &route.a, &root);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    route_close(&route);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_requested_ahead_are_not_requested_again),
        cmocka_unit_test(chunks_that_arrive_before_the_request_count),
        cmocka_unit_test(chunks_that_arrive_before_size_and_leaves_are_requested_again),
        cmocka_unit_test(a_peer_that_lacks_it_answers_once_before_it_is_begun),
        cmocka_unit_test(early_chunks_of_a_liar_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
