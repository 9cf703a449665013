/* Connections that get a place at the port, connections that give way, and the answers to first
 * messages, on real sockets. */
#include <sys/resource.h>

#include "tests/unit/daemon/stranger.h"

struct caller {
    int fd;
    size_t got; /* before the end, which sets ended */
    bool ended;
};

/* The first message of an initiator of the run, by a clock that is so far ahead. */
static void first_message(int64_t ahead_ms, uint8_t ephemeral, dp_buf *out)
{
    const struct party *party = party_of();
    dp_channel channel;
    dp_channel_config config = {
        .initiator = true,
        .run = party->run,
        .psks = {{.epoch = PARTY_EPOCH}},
        .n_psks = 1,
        .identity = &party->identities[0],
        .credential = dp_view_of(party->credentials[0], party->credential_bytes[0]),
        .ephemeral = {1, ephemeral},
        .now_ms = party_now_ms() + (uint64_t)ahead_ms,
        .boot_id = 1,
    };
    dp_psk_derive(party->join_secret, &party->run, PARTY_EPOCH, config.psks[0].key);
    dp_buf_init(out, DP_CHANNEL_HANDSHAKE_MAX);
    CHECK_OK(dp_channel_init(&channel, &config, out));
    dp_channel_close(&channel);
}

static bool answered_or_ended(void *context)
{
    struct caller *caller = context;
    uint8_t bytes[4096];
    const ssize_t got = recv(caller->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    caller->got += got > 0 ? (size_t)got : 0;
    caller->ended = got == 0 || (got < 0 && errno != EAGAIN);
    return caller->ended || caller->got > 2 + DP_CHANNEL_TIME_BYTES;
}

/* Bytes that come for these, and whether the connection ended with them. */
static struct caller call_with(struct scene *scene, const dp_buf *bytes)
{
    struct caller caller = {.fd = stranger(&scene->b)};
    assert_int_equal(send(caller.fd, bytes->data, bytes->size, MSG_NOSIGNAL), bytes->size);
    turn_until(&scene->loop, answered_or_ended, &caller);
    close(caller.fd);
    return caller;
}

static void a_repeated_first_message_gets_no_byte_and_no_time(void **state)
{
    struct scene scene;
    dp_buf first;
    (void)state;
    scene_open(&scene);
    first_message(0, 7, &first);
    const struct caller real = call_with(&scene, &first);
    CHECK(!real.ended && real.got > 300);
    for (unsigned i = 0; i < 5; i++) {
        const struct caller replayed = call_with(&scene, &first);
        CHECK(replayed.ended && replayed.got == 0);
    }
    dp_buf_close(&first);
    scene_close(&scene);
}

static void an_old_first_message_gets_the_time_once_and_no_place(void **state)
{
    struct scene scene;
    dp_buf first;
    (void)state;
    scene_open(&scene);
    first_message(-(int64_t)3600 * 1000, 8, &first);
    const struct caller once = call_with(&scene, &first);
    CHECK(once.ended && once.got == 2 + DP_CHANNEL_TIME_BYTES);
    const unsigned told = scene.b.met_unknown;
    const struct caller again = call_with(&scene, &first);
    CHECK(again.ended && again.got == 0);
    CHECK(told == 1 && scene.b.met_unknown == 1); /* nobody's clock the second time */
    check_met(&scene.b, -(int64_t)3600 * 1000);
    assert_int_equal(guest_stats(&scene.b).connections, 0);
    dp_buf_close(&first);
    scene_close(&scene);
}

static bool has_one_connection(void *context)
{
    return guest_stats(context).connections == 1;
}

static bool all_bytes_are_here(void *context)
{
    return guest_stats(context).bytes_received == 6;
}

/* The deadline is moved rather than waited for; what it was before is checked. */
static void a_slow_stranger_is_cut_at_a_deadline_that_bytes_do_not_move(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    int fd = stranger(&scene.b);
    turn_until(&scene.loop, has_one_connection, &scene.b);
    dp_conn *conn = DP_LIST_ITEM(scene.b.transport->conns.next, dp_conn, item);
    const uint64_t deadline = conn->deadline_ms;
    CHECK(deadline != 0 && deadline <= uv_now(&scene.loop) + DP_TRANSPORT_HANDSHAKE_MS);
    assert_int_equal(send(fd, "DPN1\1\0", 6, MSG_NOSIGNAL), 6);
    turn_until(&scene.loop, all_bytes_are_here, &scene.b);
    assert_int_equal(conn->deadline_ms, deadline);
    conn->deadline_ms = 1;
    turn_until(&scene.loop, has_ended, &fd);
    assert_int_equal(guest_stats(&scene.b).handshakes_failed, 1);
    close(fd);
    scene_close(&scene);
}

struct crowd {
    struct guest *guest;
    uint64_t refused;
};

static bool has_refused(void *context)
{
    const struct crowd *crowd = context;
    return guest_stats(crowd->guest).accepts_refused >= crowd->refused;
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        close(fds[i]);
    }
}

static void strangers_from_one_address_are_limited_and_the_oldest_go(void **state)
{
    enum { COUNT = DP_PORT_PER_ADDRESS + 20 };
    struct scene scene;
    int fds[COUNT];
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < COUNT; i++) {
        fds[i] = stranger(&scene.b);
    }
    struct crowd crowd = {&scene.b, 20};
    turn_until(&scene.loop, has_refused, &crowd);
    assert_int_equal(guest_stats(&scene.b).connections, DP_PORT_PER_ADDRESS);
    for (unsigned i = 0; i < 20; i++) {
        turn_until(&scene.loop, has_ended, &fds[i]);
    }
    CHECK(!has_ended(&fds[20]) && !has_ended(&fds[COUNT - 1]));
    party_link(&scene.a, &scene.b);
    close_all(fds, COUNT);
    scene_close(&scene);
}

static void a_port_full_of_strangers_of_many_networks_lets_members_in(void **state)
{
    enum { COUNT = 2 * DP_PORT_STRANGERS_MAX };
    struct scene scene;
    static int fds[COUNT];
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < COUNT; i++) {
        fds[i] = stranger_of(&scene.b, 1 + i % 100);
        uv_run(&scene.loop, UV_RUN_NOWAIT);
    }
    struct crowd crowd = {&scene.b, DP_PORT_STRANGERS_MAX};
    turn_until(&scene.loop, has_refused, &crowd);
    party_link(&scene.a, &scene.b);
    assert_int_equal(scene.a.ups + scene.b.ups, 2);
    assert_int_equal(guest_stats(&scene.a).handshakes_failed, 0); /* at the first attempt */
    close_all(fds, COUNT);
    scene_close(&scene);
}

/* All of them know the run's secret, and none has gone on yet when the last one is answered. */
static void a_site_of_sixty_nodes_behind_one_address_comes_in_at_once(void **state)
{
    enum { SITE = 60 };
    struct scene scene;
    int strangers[DP_PORT_PER_ADDRESS];
    struct caller site[SITE];
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < DP_PORT_PER_ADDRESS; i++) {
        strangers[i] = stranger(&scene.b);
    }
    for (unsigned i = 0; i < SITE; i++) {
        dp_buf first;
        first_message(0, (uint8_t)(100 + i), &first);
        site[i] = (struct caller){.fd = stranger(&scene.b)};
        assert_int_equal(send(site[i].fd, first.data, first.size, MSG_NOSIGNAL), first.size);
        turn_until(&scene.loop, answered_or_ended, &site[i]);
        CHECK(!site[i].ended && site[i].got > 300);
        dp_buf_close(&first);
    }
    for (unsigned i = 0; i < SITE; i++) {
        CHECK(!has_ended(&site[i].fd));
    }
    assert_int_equal(scene.b.transport->port.holders.n, SITE);
    for (unsigned i = 0; i < SITE; i++) {
        close(site[i].fd);
    }
    close_all(strangers, DP_PORT_PER_ADDRESS);
    scene_close(&scene);
}

static void a_connection_without_a_byte_is_cut_before_one_that_began(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    int silent = stranger(&scene.b);
    int slow = stranger(&scene.b);
    assert_int_equal(send(slow, "DPN2", 4, MSG_NOSIGNAL), 4);
    turn_until(&scene.loop, has_ended, &silent);
    CHECK(!has_ended(&slow));
    assert_int_equal(guest_stats(&scene.b).connections, 1);
    assert_int_equal(guest_stats(&scene.b).handshakes_failed, 1);
    close(silent);
    close(slow);
    scene_close(&scene);
}

static void an_address_of_a_member_has_places_in_reserve(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    int before = stranger(&scene.b);
    turn_until(&scene.loop, has_one_connection, &scene.b);
    assert_int_equal(scene.b.transport->port.homes.n, 0);
    party_link(&scene.a, &scene.b);
    int after = stranger(&scene.b);
    int elsewhere = stranger_of(&scene.b, 1);
    struct two two = {&scene.a, &scene.b};
    turn_until(&scene.loop, two_linked, &two);
    while (guest_stats(&scene.b).connections < 5) { /* both lanes and the three */
        uv_run(&scene.loop, UV_RUN_ONCE);
    }
    assert_int_equal(scene.b.transport->port.homes.n, 1);
    assert_int_equal(scene.b.transport->port.strangers.n, 2);
    assert_int_equal(scene.b.transport->port.holders.n, 0);
    close(before);
    close(after);
    close(elsewhere);
    scene_close(&scene);
}

/* Anybody with a token could be remembered otherwise, as long as the store is read at a start. */
static void while_members_are_not_known_no_address_gets_a_reserve(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    scene.b.reads_its_store = true;
    party_link(&scene.a, &scene.b);
    assert_int_equal(scene.b.transport->port.n_remembered, 0);
    assert_true(dp_transport_is_guest(scene.b.transport, &scene.a.peer));
    scene_close(&scene);
}

static void an_address_of_a_member_from_before_the_start_has_the_reserve_at_once(void **state)
{
    const dp_addr addr = {.family = DP_ADDRESS_IP4, .ip = {127, 0, 0, 1}, .port = 7};
    const dp_addr name = {.family = DP_ADDRESS_DNS, .name = "a.example", .port = 7};
    struct scene scene;
    (void)state;
    scene_open(&scene);
    dp_transport_remember(scene.b.transport, &name);
    dp_transport_remember(scene.b.transport, &addr);
    assert_int_equal(scene.b.transport->port.n_remembered, 1);
    const int fd = stranger(&scene.b);
    turn_until(&scene.loop, has_one_connection, &scene.b);
    assert_int_equal(scene.b.transport->port.homes.n, 1);
    close(fd);
    scene_close(&scene);
}

static bool is_up(void *context)
{
    return ((const struct guest *)context)->ups > 0;
}

static void a_stranger_gives_its_descriptor_to_a_member_where_none_is_left(void **state)
{
    enum { COUNT = 8 };
    struct scene scene;
    struct rlimit before;
    int fds[COUNT];
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < COUNT; i++) {
        fds[i] = stranger(&scene.b);
    }
    while (guest_stats(&scene.b).connections < COUNT) {
        uv_run(&scene.loop, UV_RUN_ONCE);
    }
    const int free_fd = dup(fds[0]); /* the lowest number that is free; the dial takes it */
    close(free_fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {(rlim_t)free_fd + 1, before.rlim_max};
    guest_dial(&scene.a, &scene.b);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    turn_until(&scene.loop, is_up, &scene.b);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK(guest_stats(&scene.b).accepts_refused > 0);
    assert_int_equal(dp_listener_turned_away(scene.b.transport->listener), 0);
    close_all(fds, COUNT);
    scene_close(&scene);
}

static void a_full_transport_turns_away_and_listens_on(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    const uint32_t before = scene.b.transport->n_conns;
    scene.b.transport->n_conns = DP_TRANSPORT_CONNECTIONS_MAX;
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = stranger(&scene.b);
        turn_until(&scene.loop, has_ended, &fds[i]);
        close(fds[i]);
    }
    assert_int_equal(guest_stats(&scene.b).accepts_refused, 3);
    scene.b.transport->n_conns = before;
    party_link(&scene.a, &scene.b);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_first_message_gets_no_byte_and_no_time),
        cmocka_unit_test(an_old_first_message_gets_the_time_once_and_no_place),
        cmocka_unit_test(a_slow_stranger_is_cut_at_a_deadline_that_bytes_do_not_move),
        cmocka_unit_test(strangers_from_one_address_are_limited_and_the_oldest_go),
        cmocka_unit_test(a_port_full_of_strangers_of_many_networks_lets_members_in),
        cmocka_unit_test(a_site_of_sixty_nodes_behind_one_address_comes_in_at_once),
        cmocka_unit_test(a_connection_without_a_byte_is_cut_before_one_that_began),
        cmocka_unit_test(an_address_of_a_member_has_places_in_reserve),
        cmocka_unit_test(while_members_are_not_known_no_address_gets_a_reserve),
        cmocka_unit_test(an_address_of_a_member_from_before_the_start_has_the_reserve_at_once),
        cmocka_unit_test(a_stranger_gives_its_descriptor_to_a_member_where_none_is_left),
        cmocka_unit_test(a_full_transport_turns_away_and_listens_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
