/* Connections that are refused or cut: strangers, liars, garbage and crowds on real sockets. */
#include <sys/socket.h>

#include "base/alloc.h"
#include "tests/lib/mutate.h"
#include "tests/unit/daemon/stranger.h"

static bool failed_one(void *context)
{
    return guest_stats(context).handshakes_failed == 1;
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

/* A third node, which was given the secret of another epoch. with_older: it has that of the others
 * too. */
static void open_rotated(struct guest *guest, struct scene *scene, bool with_older)
{
    dp_transport_config config = guest_config(guest, &scene->loop, 2, 1);
    const dp_channel_psk older = config.psk;
    dp_channel_psk newest = {.epoch = PARTY_EPOCH + 1};
    memset(newest.key, 9, sizeof newest.key);
    guest_open_as(guest, &config);
    dp_transport_keys(guest->transport, &newest, with_older ? &older : NULL);
}

static void the_older_secret_is_tried_where_the_newest_gets_no_answer(void **state)
{
    struct scene scene;
    struct guest rotated = {0};
    (void)state;
    scene_open(&scene);
    open_rotated(&rotated, &scene, true);
    party_link(&rotated, &scene.a); /* On all lanes, */
    assert_int_equal(guest_stats(&rotated).links, 1);
    guest_close(&rotated);
    scene_close(&scene);
}

static void a_node_with_only_the_older_secret_is_answered(void **state)
{
    struct scene scene;
    struct guest rotated = {0};
    (void)state;
    scene_open(&scene);
    open_rotated(&rotated, &scene, true);
    party_link(&scene.a, &rotated);
    assert_int_equal(guest_stats(&rotated).handshakes_failed, 0);
    guest_close(&rotated);
    scene_close(&scene);
}

static void a_secret_that_is_over_gets_no_answer(void **state)
{
    struct scene scene;
    struct guest rotated = {0};
    (void)state;
    scene_open(&scene);
    open_rotated(&rotated, &scene, false);
    guest_dial(&scene.a, &rotated);
    turn_until(&scene.loop, refused_one, &scene.a);
    turn_until(&scene.loop, failed_one, &rotated);
    assert_int_equal(guest_stats(&rotated).bytes_sent, 0);
    assert_int_equal(rotated.ups, 0);
    guest_close(&rotated);
    scene_close(&scene);
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
    CHECK(stats.handshakes_failed == 0 && stats.dials_cut == 0); /* It was reported, and not cut. */
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

/* Turns of the loop that do not wait: as many steps of dialing and handshakes as there is time
 * for. */
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
        cmocka_unit_test(the_older_secret_is_tried_where_the_newest_gets_no_answer),
        cmocka_unit_test(a_node_with_only_the_older_secret_is_answered),
        cmocka_unit_test(a_secret_that_is_over_gets_no_answer),
        cmocka_unit_test(a_clock_that_is_behind_is_told_to_both_ends_of_the_handshake),
        cmocka_unit_test(clocks_are_told_of_links_too_and_a_link_may_be_unwanted_for_them),
        cmocka_unit_test(a_link_stands_on_all_lanes_where_clocks_differ_by_minutes),
        cmocka_unit_test(another_node_than_the_dialed_one_is_refused),
        cmocka_unit_test(a_node_that_dials_itself_is_refused),
        cmocka_unit_test(strangers_who_send_garbage_are_cut),
        cmocka_unit_test(garbage_after_the_handshake_cuts_the_link),
        cmocka_unit_test(a_taken_port_is_busy_with_a_sentence),
        cmocka_unit_test(damaged_streams_never_crash),
        cmocka_unit_test(closing_at_any_moment_leaks_nothing),
        cmocka_unit_test(failing_allocations_lose_links_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
