/* The bulk lane: many messages of all sizes both ways, in order, for any timing of the threads; and
 * its end at any moment. THREADS_TEST */
#include <sys/socket.h>

#include "base/alloc.h"
#include "daemon/net/transport_bulk.h"
#include "tests/unit/daemon/scene.h"

enum { N_MESSAGES = 300, SIZES = 9 };

/* Sizes around every bound there is; each message begins with its number. */
static size_t size_of(unsigned number)
{
    static const size_t sizes[SIZES] = {
        8, 2000, DP_BULK_INLINE_BYTES + 100, 65532, 65533, 262144 + 37, 400000, 131068, 1000000};
    return sizes[number % SIZES];
}

static void write_number(uint8_t *bytes, unsigned number)
{
    dp_writer writer = dp_writer_of(bytes, 8);
    dp_write_u64(&writer, number);
}

struct stream {
    struct guest *from;
    struct guest *to;
    uint8_t *bytes;
    unsigned sent;
};

/* Send as much as is taken, and hear whether all has come. */
static bool streams_on(struct stream *stream)
{
    while (stream->sent < N_MESSAGES) {
        write_number(stream->bytes, stream->sent);
        const dp_view bytes = dp_view_of(stream->bytes, size_of(stream->sent));
        const dp_status status =
            dp_transport_send(stream->from->transport, &stream->to->peer, DP_LANE_BULK, bytes);
        if (status == DP_AGAIN) {
            break;
        }
        CHECK_OK(status);
        stream->sent++;
    }
    return stream->to->messages == N_MESSAGES;
}

static bool both_streams_end(void *context)
{
    struct stream *streams = context;
    const bool first = streams_on(&streams[0]);
    return streams_on(&streams[1]) && first;
}

static uint8_t *expected_bytes; /* as noise_bytes gives them, but for the number in front */

static void check_in_order(void *context, const dp_peer *peer, dp_view bytes)
{
    struct guest *guest = context;
    dp_reader reader = dp_reader_of(bytes);
    (void)peer;
    assert_int_equal(dp_read_u64(&reader), guest->messages);
    assert_int_equal(bytes.size, size_of(guest->messages));
    assert_memory_equal(bytes.data + 8, expected_bytes + 8, bytes.size - 8);
    guest->messages++;
}

static void open_checked(struct guest *guest, uv_loop_t *loop, int number, uint32_t n_threads)
{
    memset(guest, 0, sizeof *guest);
    dp_transport_config config = guest_config(guest, loop, number, 1);
    config.hooks.message = check_in_order;
    config.n_threads = n_threads;
    guest_open_as(guest, &config);
}

static void stream_both_ways(uint32_t threads_of_a, uint32_t threads_of_b)
{
    struct scene scene;
    expected_bytes = noise_bytes(1000000);
    uint8_t *bytes = noise_bytes(1000000);
    turn_open(&scene.loop);
    open_checked(&scene.a, &scene.loop, 0, threads_of_a);
    open_checked(&scene.b, &scene.loop, 1, threads_of_b);
    party_link(&scene.a, &scene.b);
    struct stream streams[2] = {{&scene.a, &scene.b, bytes, 0}, {&scene.b, &scene.a, bytes, 0}};
    turn_until(&scene.loop, both_streams_end, streams);
    CHECK(scene.a.transport->stats.bytes_sent >= scene.b.transport->stats.bytes_received);
    const dp_peer b = dp_identity_peer(&party_of()->identities[1]);
    const dp_peer nobody = {{1}};
    uint64_t sent = 0;
    uint64_t received = 0;
    CHECK(dp_transport_traffic(scene.a.transport, &b, &sent, &received));
    CHECK(sent > 1000000 && sent <= scene.a.transport->stats.bytes_sent);
    CHECK(received > 1000000 && received <= scene.a.transport->stats.bytes_received);
    CHECK(!dp_transport_traffic(scene.a.transport, &nobody, &sent, &received));
    free(bytes);
    free(expected_bytes);
    scene_close(&scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void messages_of_all_sizes_come_whole_and_in_order_both_ways(void **state)
{
    (void)state;
    stream_both_ways(2, 3);
}

static void so_they_do_when_the_loop_seals_and_opens_itself(void **state)
{
    (void)state;
    stream_both_ways(0, 2);
    stream_both_ways(0, 0);
}

static void a_given_message_is_sent_without_a_copy(void **state)
{
    struct scene scene;
    dp_buf message;
    (void)state;
    scene_open(&scene);
    dp_buf_init(&message, DP_MESSAGE_BULK_MAX + 1);
    CHECK_OK(dp_buf_append(&message, dp_view_text("given")));
    CHECK_STATUS(dp_transport_give(scene.a.transport, &scene.b.peer, &message), DP_NOTFOUND);
    assert_int_equal(message.size, 5);
    party_link(&scene.a, &scene.b);
    CHECK_OK(dp_transport_give(scene.a.transport, &scene.b.peer, &message));
    assert_int_equal(message.size + message.capacity, 0);
    wait_messages(&scene.b, 1);
    const dp_hash hash = dp_hash_of("test", dp_view_text("given"));
    CHECK(dp_hash_equal(&scene.b.last_hash, &hash));
    uint8_t *room = NULL;
    CHECK_OK(dp_buf_reserve(&message, DP_MESSAGE_BULK_MAX + 1, &room));
    dp_buf_commit(&message, DP_MESSAGE_BULK_MAX + 1);
    CHECK_STATUS(dp_transport_give(scene.a.transport, &scene.b.peer, &message), DP_TOOBIG);
    assert_int_equal(message.size, DP_MESSAGE_BULK_MAX + 1);
    dp_buf_close(&message);
    scene_close(&scene);
}

static dp_conn *bulk_of(struct guest *guest)
{
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns;
         at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        if (conn->bulk != NULL) {
            return conn;
        }
    }
    fail();
    return NULL;
}

static bool bulk_was_lost(void *context)
{
    struct guest *guest = context;
    return guest_stats(guest).handshakes >= 3;
}

/* Large and small, so that opening it is a job for the crypto pool or not. */
static void a_forged_record_ends_the_lane_and_tells_nothing(void **state)
{
    static const size_t sizes[] = {10, 60000, 262144, 1000000};
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct scene scene;
        uint8_t *bytes = noise_bytes(sizes[i]);
        scene_open(&scene);
        party_link(&scene.a, &scene.b);
        bulk_of(&scene.a)->channel.send.key[3] ^= 1;
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, sizes[i])));
        turn_until(&scene.loop, bulk_was_lost, &scene.b);
        assert_int_equal(scene.b.messages, 0);
        assert_int_equal(scene.a.downs + scene.b.downs, 0); /* Control stands. */
        free(bytes);
        scene_close(&scene);
    }
}

static void closing_in_the_middle_of_anything_leaks_nothing(void **state)
{
    uint8_t *bytes = noise_bytes(DP_MESSAGE_BULK_MAX);
    (void)state;
    for (unsigned turns = 0; turns < 30; turns++) {
        struct scene scene;
        scene_open(&scene);
        party_link(&scene.a, &scene.b);
        for (unsigned i = 0; i < 3; i++) {
            DP_IGNORE(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                        dp_view_of(bytes, DP_MESSAGE_BULK_MAX - i)));
            DP_IGNORE(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK,
                                        dp_view_of(bytes, 70000)));
        }
        for (unsigned i = 0; i < turns; i++) {
            uv_run(&scene.loop, UV_RUN_NOWAIT);
        }
        if (turns % 3 == 0) {
            dp_transport_hangup(scene.a.transport, &scene.b.peer);
        }
        scene_close(&scene);
        assert_int_equal(dp_alloc_live_bytes(), 0);
    }
    free(bytes);
}

static void hang_up(struct guest *guest)
{
    const dp_peer peer = guest->last_peer;
    dp_transport_hangup(guest->transport, &peer);
}

static void a_hook_may_hang_up_or_close_while_more_is_on_its_way(void **state)
{
    uint8_t *bytes = noise_bytes(300000);
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        struct scene scene;
        scene_open(&scene);
        party_link(&scene.a, &scene.b);
        scene.b.on_message = kind == 0 ? hang_up : guest_close;
        for (unsigned i = 0; i < 10; i++) {
            CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                       dp_view_of(bytes, i % 2 == 0 ? 300000 : 20)));
        }
        turn_until(&scene.loop, downs_one, &scene.a);
        assert_int_equal(scene.b.messages, 1);
        scene_close(&scene);
        assert_int_equal(dp_alloc_live_bytes(), 0);
    }
    free(bytes);
}

static bool is_trimmed(void *context)
{
    const dp_bulk *bulk = bulk_of(context)->bulk;
    size_t held = 0;
    for (unsigned i = 0; i < DP_BULK_PIECES; i++) {
        held += bulk->pieces[i].room_bytes;
    }
    for (unsigned i = 0; i < DP_BULK_SLABS; i++) {
        held += bulk->slabs[i].bytes != NULL;
    }
    for (unsigned i = 0; i < DP_BULK_INCOMING; i++) {
        held += bulk->incoming[i].bytes != NULL;
    }
    return held == 0;
}

static void an_idle_lane_holds_no_memory_and_works_again(void **state)
{
    struct scene scene;
    uint8_t *bytes = noise_bytes(900000);
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    for (unsigned round = 1; round <= 2; round++) {
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, 900000)));
        wait_messages(&scene.b, round);
        turn_until(&scene.loop, is_trimmed, &scene.a);
        turn_until(&scene.loop, is_trimmed, &scene.b);
    }
    free(bytes);
    scene_close(&scene);
}

enum { WANTED_STRIPES = 4 };

static unsigned stripes_of(const struct guest *guest)
{
    unsigned count = 0;
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns;
         at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        count += conn->bulk != NULL && conn->link != NULL;
    }
    return count;
}

static bool has_stripes(void *context)
{
    struct scene *scene = context;
    const uint32_t wanted =
        scene->a.transport->stripes_min > 1 ? scene->a.transport->stripes_min : 1;
    return stripes_of(&scene->a) == wanted && stripes_of(&scene->b) == wanted;
}

static unsigned stripes_that_wait(const struct guest *guest)
{
    unsigned count = 0;
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns;
         at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        count += conn->bulk != NULL && conn->bulk->waiting > 0;
    }
    return count;
}

static void a_path_that_wants_it_has_several_connections_and_one_again(void **state)
{
    struct scene scene;
    uint8_t *bytes = noise_bytes(1000000);
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.a.transport->stripes_min = WANTED_STRIPES;
    turn_until(&scene.loop, has_stripes, &scene);
    for (unsigned i = 0; i < 2 * WANTED_STRIPES; i++) { /* Each takes its share, either way. */
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, 1000000)));
        CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, 1000000)));
    }
    assert_int_equal(stripes_that_wait(&scene.a), WANTED_STRIPES);
    assert_int_equal(stripes_that_wait(&scene.b), WANTED_STRIPES);
    wait_messages(&scene.a, 2 * WANTED_STRIPES);
    wait_messages(&scene.b, 2 * WANTED_STRIPES);
    scene.a.transport->stripes_min = 1;
    turn_until(&scene.loop, has_stripes, &scene);
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK, dp_view_text("on")));
    wait_messages(&scene.b, 2 * WANTED_STRIPES + 1);
    assert_int_equal(scene.a.downs + scene.b.downs, 0);
    free(bytes);
    scene_close(&scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static bool lost_a_stripe(void *context)
{
    struct scene *scene = context;
    return stripes_of(&scene->b) < WANTED_STRIPES;
}

static void a_lost_stripe_is_dialed_again_and_the_rest_carries_on(void **state)
{
    struct scene scene;
    uv_os_fd_t fd;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.a.transport->stripes_min = WANTED_STRIPES;
    turn_until(&scene.loop, has_stripes, &scene);
    dp_conn *last = DP_LIST_ITEM(scene.a.transport->conns.prev, dp_conn, item);
    CHECK(last->stripe > 0);
    last->proved_ms = 0; /* The other end did not refuse it. */
    assert_int_equal(uv_fileno((const uv_handle_t *)&last->tcp, &fd), 0);
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
    turn_until(&scene.loop, lost_a_stripe, &scene);
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK, dp_view_text("on")));
    wait_messages(&scene.a, 1);
    turn_until(&scene.loop, has_stripes, &scene);
    assert_int_equal(scene.a.downs + scene.b.downs, 0);
    scene_close(&scene);
}

static bool a_stripe_is_refused(void *context)
{
    struct scene *scene = context;
    const dp_link *link = DP_LIST_ITEM(scene->a.transport->links.next, dp_link, item);
    return link->stripe_retry_ms != 0;
}

/* The links of a large run, of whose voter every node wants one, need its connections. */
static void above_half_of_the_connections_no_stripe_is_taken_nor_dialed_at_once(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.b.transport->n_conns += DP_TRANSPORT_STRIPED_MAX;
    scene.a.transport->stripes_min = WANTED_STRIPES;
    turn_until(&scene.loop, a_stripe_is_refused, &scene);
    assert_int_equal(stripes_of(&scene.b), 1);
    const dp_link *link = DP_LIST_ITEM(scene.a.transport->links.next, dp_link, item);
    CHECK(link->stripe_retry_ms > uv_now(&scene.loop) + 20000);
    scene.b.transport->n_conns -= DP_TRANSPORT_STRIPED_MAX;
    scene_close(&scene);
}

/* A voter with more nodes on bad lines than it has connections for links to the other voters. */
static void a_full_transport_closes_a_stripe_for_a_peer_that_it_dials_or_that_comes(void **state)
{
    struct scene scene;
    struct guest c;
    (void)state;
    for (int dials = 0; dials < 2; dials++) {
        scene_open(&scene);
        guest_open(&c, &scene.loop, 2, 1);
        party_link(&scene.a, &scene.b);
        scene.a.transport->stripes_min = WANTED_STRIPES;
        turn_until(&scene.loop, has_stripes, &scene);
        const uint32_t others = DP_TRANSPORT_CONNECTIONS_MAX - scene.b.transport->n_conns;
        scene.b.transport->n_conns += others;
        party_link(dials == 1 ? &scene.b : &c, dials == 1 ? &c : &scene.b);
        CHECK(scene.b.transport->n_conns <= DP_TRANSPORT_CONNECTIONS_MAX);
        assert_int_equal(stripes_of(&scene.b), WANTED_STRIPES - 2 + 1);
        scene.b.transport->n_conns -= others;
        guest_close(&c);
        scene_close(&scene);
    }
}

/* A receiver that does not read for a while: the waiting bytes stay within their bound, and the
 * transfer continues. */
static void a_full_queue_refuses_and_drains(void **state)
{
    struct scene scene;
    uint8_t *bytes = noise_bytes(1000);
    unsigned sent = 0;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    while (dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                             dp_view_of(bytes, 1000)) == DP_OK) {
        sent++;
        CHECK(sent < 10 * DP_BULK_MESSAGES_MAX);
    }
    CHECK(sent >= DP_BULK_MESSAGES_MAX);
    wait_messages(&scene.b, sent);
    CHECK(scene.a.drains > 0);
    assert_int_equal(dp_transport_bulk_waiting(scene.a.transport, &scene.b.peer), 0);
    free(bytes);
    scene_close(&scene);
}

static bool has_lost_it(void *context)
{
    const struct guest *guest = context;
    return guest->transport->n_conns < 2 || guest->messages > 0;
}

/* 45 identities with a message each that they never ended held a gigabyte. */
static void long_messages_of_guests_share_a_budget_and_members_go_on(void **state)
{
    struct scene scene;
    (void)state;
    for (int guest = 0; guest < 2; guest++) {
        scene_open(&scene);
        party_link(&scene.a, &scene.b);
        uint8_t *bytes = noise_bytes(DP_MESSAGE_BULK_MAX);
        dp_peer_memory *held = &scene.a.transport->peer_memory;
        dp_peer_memory_take_anyway(held, true, DP_PEER_MEMORY_GUESTS_MAX); /* Of others. */
        dp_peer_memory_take_anyway(held, false, held->limit);
        scene.a.knows_nobody = guest == 1;
        CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
        turn_until(&scene.loop, has_lost_it, &scene.a);
        CHECK(scene.a.messages == (guest == 1 ? 0 : 1));
        scene.a.knows_nobody = false;
        dp_peer_memory_give(held, true, DP_PEER_MEMORY_GUESTS_MAX);
        dp_peer_memory_give(held, false, held->limit);
        free(bytes);
        scene_close(&scene);
    }
}

static bool holds_nothing(void *context)
{
    const struct guest *guest = context;
    return guest->transport->peer_memory.bytes == 0;
}

/* The memory for a received message is given back when the lane idles, and when the connection
 * ends. */
static void receive_memory_is_held_until_the_lane_idles(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    uint8_t *bytes = noise_bytes(DP_MESSAGE_BULK_MAX);
    for (int last = 0; last < 2; last++) {
        scene.a.messages = 0;
        CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
        wait_messages(&scene.a, 1);
        CHECK(guest_stats(&scene.a).held > 0);
        CHECK(guest_stats(&scene.a).held_guests == 0);
        if (last == 0) {
            turn_until(&scene.loop, holds_nothing, &scene.a);
        } else {
            dp_transport_hangup(scene.a.transport, &scene.b.peer);
            turn_until(&scene.loop, downs_one, &scene.b);
        }
        CHECK(scene.a.transport->peer_memory.bytes == 0);
    }
    free(bytes);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_sizes_come_whole_and_in_order_both_ways),
        cmocka_unit_test(so_they_do_when_the_loop_seals_and_opens_itself),
        cmocka_unit_test(a_given_message_is_sent_without_a_copy),
        cmocka_unit_test(a_forged_record_ends_the_lane_and_tells_nothing),
        cmocka_unit_test(closing_in_the_middle_of_anything_leaks_nothing),
        cmocka_unit_test(a_hook_may_hang_up_or_close_while_more_is_on_its_way),
        cmocka_unit_test(an_idle_lane_holds_no_memory_and_works_again),
        cmocka_unit_test(long_messages_of_guests_share_a_budget_and_members_go_on),
        cmocka_unit_test(receive_memory_is_held_until_the_lane_idles),
        cmocka_unit_test(a_path_that_wants_it_has_several_connections_and_one_again),
        cmocka_unit_test(a_lost_stripe_is_dialed_again_and_the_rest_carries_on),
        cmocka_unit_test(above_half_of_the_connections_no_stripe_is_taken_nor_dialed_at_once),
        cmocka_unit_test(a_full_transport_closes_a_stripe_for_a_peer_that_it_dials_or_that_comes),
        cmocka_unit_test(a_full_queue_refuses_and_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
