/* Who is kept out, and what is cut: strangers, liars, garbage and crowds on real sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/lib/mutate.h"
#include "tests/unit/daemon/scene.h"

static bool failed_one(void *context)
{
    return guest_stats(context).handshakes_failed == 1;
}

/* A plain socket that knows nothing of the protocol. */
static int stranger(const struct guest *guest)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(guest->port)};
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static bool has_ended(void *context)
{
    uint8_t bytes[256];
    const ssize_t got = recv(*(int *)context, bytes, sizeof bytes, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static void the_wrong_secret_is_refused_and_counted(void **state)
{
    struct scene scene;
    struct guest outsider = {0};
    (void)state;
    scene_open(&scene);
    dp_transport_config config = guest_config(&outsider, &scene.loop, 2, 1);
    config.psk.key[0] ^= 1;
    guest_open_as(&outsider, &config);
    guest_dial(&outsider, &scene.b);
    turn_until(&scene.loop, refused_one, &outsider);
    turn_until(&scene.loop, failed_one, &scene.b);
    assert_int_equal(scene.b.ups, 0);
    guest_close(&outsider);
    scene_close(&scene);
}

/* Within what a busy machine may take. */
static void check_met(const struct guest *guest, int64_t ahead_ms)
{
    const int64_t is_ms = (int64_t)(guest->met_ms - party_now_ms());
    CHECK(is_ms > ahead_ms - 20000 && is_ms < ahead_ms + 20000);
}

static bool met_refused(void *guest)
{
    return ((const struct guest *)guest)->met_refused > 0;
}

static bool met_unknown(void *guest)
{
    return ((const struct guest *)guest)->met_unknown > 0;
}

static void a_clock_that_is_behind_is_told_to_both_ends_of_the_handshake(void **state)
{
    enum { DAY_MS = 24 * 3600 * 1000 };
    struct scene scene;
    (void)state;
    scene_open(&scene);
    scene.a.clock_ms = -(int64_t)DAY_MS;
    guest_dial(&scene.a, &scene.b);
    turn_until(&scene.loop, met_refused, &scene.a);
    check_met(&scene.a, 0);
    turn_until(&scene.loop, met_unknown, &scene.b);
    check_met(&scene.b, -(int64_t)DAY_MS);
    assert_int_equal(scene.a.ups + scene.b.ups, 0);
    scene_close(&scene);
}

static void clocks_are_told_of_links_too_and_a_link_may_be_unwanted_for_them(void **state)
{
    enum { HOUR_MS = 3600 * 1000 };
    struct scene scene;
    (void)state;
    scene_open(&scene);
    scene.b.clock_ms = HOUR_MS;
    scene.a.wants_no_link = true;
    guest_dial(&scene.a, &scene.b);
    turn_until(&scene.loop, refused_one, &scene.a);
    assert_int_equal(scene.a.met, 1);
    assert_int_equal(scene.a.met_refused + scene.a.ups, 0);
    check_met(&scene.a, HOUR_MS);
    scene_close(&scene);
}

static void a_link_stands_on_all_lanes_where_clocks_differ_by_minutes(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    scene.a.clock_ms = 10 * 60 * 1000;
    party_link(&scene.a, &scene.b);
    assert_int_equal(scene.a.met, 1);
    check_met(&scene.a, 0);
    check_met(&scene.b, scene.a.clock_ms);
    CHECK(scene.b.met == 1 && scene.b.met_unknown > 0);
    const dp_transport_stats stats = guest_stats(&scene.a);
    CHECK(stats.handshakes_failed == 0 && stats.dials_cut == 0); /* It was told, and not cut. */
    scene_close(&scene);
}

struct caller {
    int fd;
    size_t got; /* before the end, which sets ended */
    bool ended;
};

/* What an initiator of the run says first, by a clock that is so far ahead. */
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
        .ephemeral = {ephemeral},
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

static void another_node_than_the_dialed_one_is_refused(void **state)
{
    struct scene scene;
    struct guest c;
    (void)state;
    scene_open(&scene);
    guest_open(&c, &scene.loop, 2, 1);
    const dp_addr addr = guest_addr(&scene.b);
    dp_transport_dial(scene.a.transport, &c.peer, &addr, 1);
    turn_until(&scene.loop, refused_one, &scene.a);
    CHECK(dp_peer_equal(&scene.a.last_peer, &c.peer));
    assert_int_equal(scene.a.ups, 0);
    guest_close(&c);
    scene_close(&scene);
}

static void a_node_that_dials_itself_is_refused(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    const dp_addr addr = guest_addr(&scene.a);
    dp_transport_dial(scene.a.transport, NULL, &addr, 1);
    turn_until(&scene.loop, refused_one, &scene.a);
    assert_int_equal(guest_stats(&scene.a).links, 0);
    scene_close(&scene);
}

static void strangers_who_send_garbage_are_cut(void **state)
{
    struct scene scene;
    dp_rng rng;
    (void)state;
    scene_open(&scene);
    dp_rng_init(&rng, 5);
    for (unsigned i = 0; i < 40; i++) {
        uint8_t bytes[256];
        for (unsigned k = 0; k < sizeof bytes; k++) {
            bytes[k] = (uint8_t)dp_rng_next(&rng);
        }
        if (i % 2 ==
            0) { /* A right preamble, then a size that is a lie or bytes that are not ours. */
            const uint8_t preamble[] = {'D', 'P', 'N', '1', 1, 0, PARTY_EPOCH, 0};
            memcpy(bytes, preamble, sizeof preamble);
            bytes[8] = i % 4 == 0 ? 0xff : 0x30;
            bytes[9] = i % 4 == 0 ? 0xff : 0;
        }
        int fd = stranger(&scene.b);
        assert_true(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0);
        turn_until(&scene.loop, has_ended, &fd);
        close(fd);
    }
    assert_int_equal(guest_stats(&scene.b).handshakes_failed, 40);
    assert_int_equal(guest_stats(&scene.b).connections, 0);
    assert_int_equal(scene.b.ups + scene.b.downs + scene.b.refusals, 0);
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

static void strangers_from_one_address_are_limited_and_members_still_come_in(void **state)
{
    struct scene scene;
    int fds[DP_TRANSPORT_PENDING_PER_IP + 20];
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        fds[i] = stranger(&scene.b);
    }
    struct crowd crowd = {&scene.b, 20};
    turn_until(&scene.loop, has_refused, &crowd);
    assert_int_equal(guest_stats(&scene.b).connections, DP_TRANSPORT_PENDING_PER_IP);
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        close(fds[i]);
    }
    party_link(&scene.a, &scene.b);
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

static void garbage_after_the_handshake_cuts_the_link(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    for (dp_list *at = scene.a.transport->conns.next; at != &scene.a.transport->conns;
         at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        uv_os_fd_t fd;
        if (conn->lane == DP_LANE_CONTROL && uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0) {
            assert_true(send(fd, "this is no record of ours, is it?", 33, MSG_NOSIGNAL) > 0);
        }
    }
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_RESET);
    scene_close(&scene);
}

static void a_taken_port_is_busy_with_a_sentence(void **state)
{
    struct scene scene;
    struct guest c = {0};
    char text[64];
    uint16_t port = 0;
    dp_why why = {""};
    (void)state;
    scene_open(&scene);
    const dp_transport_config config = guest_config(&c, &scene.loop, 2, 1);
    CHECK_OK(dp_transport_open(&c.transport, &config));
    snprintf(text, sizeof text, "127.0.0.1:%u", scene.a.port);
    CHECK_STATUS(dp_transport_listen(c.transport, text, &port, &why), DP_BUSY);
    assert_non_null(strstr(why.text, "in use"));
    static const char *const wrong[] = {"",
                                        "7717",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:x",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:-1",
                                        "host:1",
                                        "[::1:1",
                                        "1.2.3.4.5:1"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why.text[0] = '\0';
        CHECK_STATUS(dp_transport_listen(c.transport, wrong[i], &port, &why), DP_BADARG);
        CHECK(why.text[0] != '\0');
    }
    CHECK_OK(dp_transport_listen(c.transport, "127.0.0.1:0", &port, &why));
    guest_close(&c);
    scene_close(&scene);
}

static void damaged_streams_never_crash(void **state)
{
    struct scene scene;
    dp_rng rng;
    (void)state;
    scene_open(&scene);
    dp_rng_init(&rng, 11);
    uint8_t *bytes = noise_bytes(1 << 16);
    for (unsigned i = 0; i < 60; i++) {
        party_link(&scene.a, &scene.b);
        const unsigned downs = scene.b.downs + scene.a.downs;
        dp_list *at = scene.a.transport->conns.next;
        dp_conn *conn = DP_LIST_ITEM(i % 2 == 0 ? at : at->next, dp_conn, item);
        CHECK_OK(dp_channel_write(
            &conn->channel, dp_view_of(bytes, 1 + (size_t)dp_rng_below(&rng, 60000)), &conn->out));
        conn->out.size = mutate(&rng, conn->out.data, conn->out.size, conn->out.capacity);
        dp_conn_flush(conn);
        dp_transport_hangup(scene.b.transport, &scene.a.peer);
        CHECK(scene.a.downs + scene.b.downs > downs);
        while (guest_stats(&scene.a).links + guest_stats(&scene.b).links > 0) {
            uv_run(&scene.loop, UV_RUN_ONCE);
        }
    }
    free(bytes);
    scene_close(&scene);
}

/* Turns of the loop that do not wait: as many steps of dialing and handshakes as there is time for. */
static void spin(uv_loop_t *loop, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        uv_run(loop, UV_RUN_NOWAIT);
    }
}

static void closing_at_any_moment_leaks_nothing(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 40; turns++) {
        struct scene scene;
        scene_open(&scene);
        guest_dial(&scene.a, &scene.b);
        guest_dial(&scene.b, &scene.a);
        spin(&scene.loop, turns);
        scene_close(&scene);
        CHECK(scene.a.ups >= scene.a.downs && scene.b.ups >= scene.b.downs);
    }
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

/* As the protocol core does it: dial again whenever there is no link. */
static bool links_by_patience(void *context)
{
    const struct two *two = context;
    guest_dial(two->a, two->b);
    return two_linked(context);
}

static void failing_allocations_lose_links_and_nothing_else(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (size_t countdown = 1; countdown < 60; countdown++) {
        struct scene scene;
        scene_open(&scene);
        dp_alloc_fail_after(countdown);
        guest_dial(&scene.a, &scene.b);
        spin(&scene.loop, 60);
        DP_IGNORE(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                    dp_view_text("one")));
        spin(&scene.loop, 10);
        dp_alloc_fail_after(0);
        failed += guest_stats(&scene.a).links == 0;
        struct two two = {&scene.a, &scene.b};
        turn_until(&scene.loop, links_by_patience, &two); /* with memory everything works again */
        scene_close(&scene);
    }
    CHECK(failed > 0);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wrong_secret_is_refused_and_counted),
        cmocka_unit_test(a_clock_that_is_behind_is_told_to_both_ends_of_the_handshake),
        cmocka_unit_test(clocks_are_told_of_links_too_and_a_link_may_be_unwanted_for_them),
        cmocka_unit_test(a_link_stands_on_all_lanes_where_clocks_differ_by_minutes),
        cmocka_unit_test(a_repeated_first_message_gets_no_byte_and_no_time),
        cmocka_unit_test(an_old_first_message_gets_the_time_once_and_no_place),
        cmocka_unit_test(another_node_than_the_dialed_one_is_refused),
        cmocka_unit_test(a_node_that_dials_itself_is_refused),
        cmocka_unit_test(strangers_who_send_garbage_are_cut),
        cmocka_unit_test(a_slow_stranger_is_cut_at_a_deadline_that_bytes_do_not_move),
        cmocka_unit_test(strangers_from_one_address_are_limited_and_members_still_come_in),
        cmocka_unit_test(a_full_transport_turns_away_and_listens_on),
        cmocka_unit_test(garbage_after_the_handshake_cuts_the_link),
        cmocka_unit_test(a_taken_port_is_busy_with_a_sentence),
        cmocka_unit_test(damaged_streams_never_crash),
        cmocka_unit_test(closing_at_any_moment_leaks_nothing),
        cmocka_unit_test(failing_allocations_lose_links_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
