/* Real sockets on loopback, several transports in one loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "daemon/transport_conn.h"
#include "tests/lib/mutate.h"
#include "tests/unit/daemon/party.h"

struct scene {
    uv_loop_t loop;
    struct guest a;
    struct guest b;
};

static void scene_open(struct scene *scene)
{
    turn_open(&scene->loop);
    guest_open(&scene->a, &scene->loop, 0, 1);
    guest_open(&scene->b, &scene->loop, 1, 1);
}

static void scene_close(struct scene *scene)
{
    guest_close(&scene->a);
    guest_close(&scene->b);
    turn_close(&scene->loop);
}

static bool downs_one(void *context)
{
    return ((struct guest *)context)->downs == 1;
}

static bool refused_one(void *context)
{
    return ((struct guest *)context)->refusals == 1;
}

static bool failed_one(void *context)
{
    return guest_stats(context).handshakes_failed == 1;
}

struct wanted_messages {
    struct guest *guest;
    unsigned count;
};

static bool got_messages(void *context)
{
    const struct wanted_messages *wanted = context;
    return wanted->guest->messages >= wanted->count;
}

static void wait_messages(struct guest *guest, unsigned count)
{
    struct wanted_messages wanted = {guest, count};
    turn_until(guest->loop, got_messages, &wanted);
}

static uint8_t *noise_bytes(size_t size)
{
    uint8_t *bytes = malloc(size + 8);
    dp_rng rng;
    assert_non_null(bytes);
    dp_rng_init(&rng, size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)dp_rng_next(&rng);
    }
    return bytes;
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

static void a_dial_links_both_sides_with_both_lanes(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    assert_int_equal(scene.a.ups, 1);
    assert_int_equal(scene.b.ups, 1);
    CHECK(scene.a.last_outgoing && !scene.b.last_outgoing);
    CHECK(dp_peer_equal(&scene.a.last_peer, &scene.b.peer) && dp_peer_equal(&scene.b.last_peer, &scene.a.peer));
    assert_int_equal(scene.b.hello_bytes, 5);
    assert_int_equal(scene.b.credential_bytes, DP_CERT_BYTES);
    assert_int_equal(guest_stats(&scene.a).links, 1);
    assert_int_equal(guest_stats(&scene.a).connections, 2);
    assert_int_equal(guest_stats(&scene.a).handshakes_failed, 0);
    guest_dial(&scene.a, &scene.b); /* stands already */
    assert_int_equal(guest_stats(&scene.a).connections, 2);
    scene_close(&scene);
}

static void messages_pass_both_ways_on_both_lanes(void **state)
{
    static const size_t sizes[] = {0, 1, 65536, 100000, DP_MESSAGE_BULK_MAX};
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    unsigned sent = 0;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *bytes = noise_bytes(sizes[i]);
        const dp_view view = dp_view_of(bytes, sizes[i]);
        const dp_hash hash = dp_hash_of("test", view);
        for (int lane = sizes[i] <= DP_MESSAGE_CONTROL_MAX ? 0 : 1; lane < 2; lane++) {
            CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, (dp_lane)lane, view));
            CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, (dp_lane)lane, view));
            sent++;
            wait_messages(&scene.a, sent);
            wait_messages(&scene.b, sent);
            CHECK(dp_hash_equal(&scene.a.last_hash, &hash) && dp_hash_equal(&scene.b.last_hash, &hash));
        }
        free(bytes);
    }
    scene_close(&scene);
}

static void sending_names_its_limits(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    uint8_t *bytes = noise_bytes(DP_MESSAGE_BULK_MAX + 1);
    CHECK_STATUS(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_of(bytes, 1)), DP_NOTFOUND);
    party_link(&scene.a, &scene.b);
    CHECK_STATUS(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_of(bytes, DP_MESSAGE_CONTROL_MAX + 1)),
                 DP_TOOBIG);
    CHECK_STATUS(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, DP_MESSAGE_BULK_MAX + 1)),
                 DP_TOOBIG);
    dp_status status = DP_OK;
    unsigned taken = 0;
    while (status == DP_OK && taken < 64) {
        status = dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK, dp_view_of(bytes, DP_MESSAGE_BULK_MAX));
        taken += status == DP_OK;
    }
    CHECK_STATUS(status, DP_AGAIN);
    CHECK(dp_transport_bulk_waiting(scene.a.transport, &scene.b.peer) <= DP_TRANSPORT_BULK_QUEUE);
    const unsigned drains = scene.a.drains;
    wait_messages(&scene.b, taken);
    CHECK(scene.a.drains > drains);
    free(bytes);
    scene_close(&scene);
}

static bool is_frozen(void *context)
{
    struct guest *guest = context;
    return guest->downs == 1;
}

static void a_peer_that_does_not_read_its_control_lane_is_cut(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    uint8_t *bytes = noise_bytes(DP_MESSAGE_CONTROL_MAX);
    dp_status status = DP_OK;
    unsigned sent = 0;
    while (status == DP_OK && sent < 200) { /* The loop does not turn, so nobody reads. */
        status = dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_of(bytes, DP_MESSAGE_CONTROL_MAX));
        sent++;
    }
    CHECK_STATUS(status, DP_NOTFOUND);
    assert_int_equal(scene.a.downs, 0); /* Sending calls no hook. */
    turn_until(&scene.loop, is_frozen, &scene.a);
    assert_int_equal(scene.a.last_cause, DP_LINK_TIMEOUT);
    free(bytes);
    scene_close(&scene);
}

static bool one_link_is_left(void *context)
{
    struct scene *scene = context;
    struct two two = {&scene->a, &scene->b};
    return two_linked(&two) && guest_stats(&scene->a).connections == 2 && guest_stats(&scene->b).connections == 2;
}

static void a_simultaneous_dial_ends_in_one_link(void **state)
{
    struct scene scene;
    (void)state;
    for (int i = 0; i < 5; i++) {
        scene_open(&scene);
        guest_dial(&scene.a, &scene.b);
        guest_dial(&scene.b, &scene.a);
        turn_until(&scene.loop, one_link_is_left, &scene);
        assert_int_equal(scene.a.ups - scene.a.downs, 1);
        assert_int_equal(scene.b.ups - scene.b.downs, 1);
        assert_int_equal(scene.a.refusals + scene.b.refusals, 0);
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("one")));
        CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK, dp_view_text("two")));
        wait_messages(&scene.b, 1);
        wait_messages(&scene.a, 1);
        scene_close(&scene);
    }
}

static void a_goodbye_is_told_as_closed(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    guest_close(&scene.a);
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_CLOSED);
    scene_close(&scene);
}

static void a_goodbye_right_after_messages_still_arrives(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("I leave")));
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("now")));
    guest_close(&scene.a);
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_CLOSED);
    assert_int_equal(scene.b.messages, 2);
    scene_close(&scene);
}

static void hanging_up_is_told_on_both_sides(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    dp_transport_hangup(scene.a.transport, &scene.b.peer);
    assert_int_equal(scene.a.downs, 1);
    assert_int_equal(scene.a.last_cause, DP_LINK_CLOSED);
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_CLOSED);
    assert_int_equal(guest_stats(&scene.b).links, 0);
    scene_close(&scene);
}

/* What the kernel does to the sockets of a killed process. */
static void cut_sockets(struct guest *guest)
{
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns; at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        uv_os_fd_t fd;
        if (uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0) {
            assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
        }
    }
}

static void a_death_without_goodbye_is_told_as_reset(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    cut_sockets(&scene.a);
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_RESET);
    scene_close(&scene);
}

static bool bulk_is_back(void *context)
{
    struct scene *scene = context;
    struct two two = {&scene->a, &scene->b};
    return two_linked(&two);
}

static bool bulk_is_gone(void *context)
{
    struct scene *scene = context;
    return dp_transport_bulk_waiting(scene->a.transport, &scene->b.peer) == UINT64_MAX;
}

static void a_lost_bulk_lane_is_dialed_again_without_a_word(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    for (dp_list *at = scene.a.transport->conns.next; at != &scene.a.transport->conns; at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        uv_os_fd_t fd;
        if (conn->lane == DP_LANE_BULK && uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0) {
            assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
        }
    }
    turn_until(&scene.loop, bulk_is_gone, &scene);
    turn_until(&scene.loop, bulk_is_back, &scene);
    assert_int_equal(guest_stats(&scene.b).handshakes, 3);
    assert_int_equal(scene.a.downs + scene.b.downs, 0);
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_CONTROL, dp_view_text("still here")));
    wait_messages(&scene.a, 1);
    scene_close(&scene);
}

static bool up_again(void *context)
{
    struct guest *guest = context;
    return guest->ups == 2;
}

static void a_later_life_replaces_an_earlier_one(void **state)
{
    struct scene scene;
    struct guest again;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    guest_open(&again, &scene.loop, 0, 2); /* the same identity, while the old one still seems to stand */
    guest_dial(&again, &scene.b);
    turn_until(&scene.loop, up_again, &scene.b);
    assert_int_equal(scene.b.downs, 1);
    assert_int_equal(scene.b.last_cause, DP_LINK_RESET);
    assert_int_equal(guest_stats(&scene.b).links, 1);
    guest_close(&again);
    scene_close(&scene);
}

static void an_earlier_life_does_not_replace_a_later_one(void **state)
{
    struct scene scene;
    struct guest late;
    (void)state;
    turn_open(&scene.loop);
    guest_open(&scene.a, &scene.loop, 0, 7);
    guest_open(&scene.b, &scene.loop, 1, 1);
    party_link(&scene.a, &scene.b);
    guest_open(&late, &scene.loop, 0, 6);
    guest_dial(&late, &scene.b);
    turn_until(&scene.loop, downs_one, &late);
    assert_int_equal(scene.b.downs, 0);
    assert_int_equal(scene.b.ups, 1);
    guest_close(&late);
    scene_close(&scene);
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

static void addresses_are_tried_until_one_answers(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    dp_addr addrs[4] = {
        {.family = 9, .port = 1},                                     /* of no family */
        {.family = 6, .ip = {0x20, 0x01, 0x0d, 0xb8}, .port = 9},     /* documentation prefix: no route */
        {.family = 4, .ip = {127, 0, 0, 1}, .port = 1},               /* nobody listens */
    };
    addrs[3] = guest_addr(&scene.b);
    dp_transport_dial(scene.a.transport, &scene.b.peer, addrs, 4);
    struct two two = {&scene.a, &scene.b};
    turn_until(&scene.loop, two_linked, &two);
    assert_int_equal(scene.a.refusals, 0);
    scene_close(&scene);
}

static void a_dial_without_an_answer_is_told_once(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    const dp_addr addrs[2] = {{.family = 4, .ip = {127, 0, 0, 1}, .port = 1}, {.family = 4, .ip = {127, 0, 0, 1}, .port = 2}};
    dp_transport_dial(scene.a.transport, &scene.b.peer, addrs, 2);
    turn_until(&scene.loop, refused_one, &scene.a);
    assert_int_equal(guest_stats(&scene.a).connections, 0);
    dp_transport_dial(scene.a.transport, &scene.b.peer, addrs, 0);
    assert_int_equal(scene.a.refusals, 2);
    scene_close(&scene);
}

static bool no_dial_is_left(void *context)
{
    return guest_stats(context).connections == 2;
}

static void a_failed_dial_does_not_end_a_link_that_came_meanwhile(void **state)
{
    struct scene scene;
    const int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    (void)state;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(deaf, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(deaf, 4), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&at, &size), 0);
    scene_open(&scene);
    const dp_addr addr = {.family = 4, .ip = {127, 0, 0, 1}, .port = ntohs(at.sin_port)};
    dp_transport_dial(scene.a.transport, &scene.b.peer, &addr, 1);
    party_link(&scene.b, &scene.a);
    close(deaf);
    turn_until(&scene.loop, no_dial_is_left, &scene.a);
    assert_int_equal(scene.a.refusals + scene.a.downs, 0);
    assert_int_equal(guest_stats(&scene.a).links, 1);
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
        if (i % 2 == 0) { /* A right preamble, then a size that is a lie or bytes that are not ours. */
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
    for (dp_list *at = scene.a.transport->conns.next; at != &scene.a.transport->conns; at = at->next) {
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

static void hang_up_on_sender(struct guest *guest)
{
    const dp_peer peer = guest->last_peer;
    dp_transport_hangup(guest->transport, &peer);
    guest->last_hash = (dp_hash){{0}};
}

static void a_hook_may_hang_up_on_whom_it_hears(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.b.on_message = hang_up_on_sender;
    for (int i = 0; i < 10; i++) {
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("go away?")));
    }
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.messages, 1);
    scene_close(&scene);
}

static void close_everything(struct guest *guest)
{
    guest_close(guest);
}

static void a_hook_may_close_the_transport(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.b.on_message = close_everything;
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("end")));
    turn_until(&scene.loop, downs_one, &scene.a);
    assert_int_equal(scene.b.downs, 0);
    CHECK(scene.b.transport == NULL);
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
    static const char *const wrong[] = {"", "7717", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                                        "127.0.0.1:-1", "host:1", "[::1:1", "1.2.3.4.5:1"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why.text[0] = '\0';
        CHECK_STATUS(dp_transport_listen(c.transport, wrong[i], &port, &why), DP_BADARG);
        CHECK(why.text[0] != '\0');
    }
    CHECK_OK(dp_transport_listen(c.transport, "127.0.0.1:0", &port, &why));
    guest_close(&c);
    scene_close(&scene);
}

static void a_late_listener_hears_of_links_that_stand(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    dp_transport_replay(scene.b.transport);
    assert_int_equal(scene.b.ups, 2);
    assert_int_equal(scene.b.credential_bytes, DP_CERT_BYTES);
    scene_close(&scene);
}

static void three_nodes_hear_what_one_tells_all(void **state)
{
    struct scene scene;
    struct guest c;
    (void)state;
    scene_open(&scene);
    guest_open(&c, &scene.loop, 2, 1);
    party_link(&scene.a, &scene.b);
    party_link(&c, &scene.a);
    dp_transport_send_all(scene.a.transport, dp_view_text("to all"));
    wait_messages(&scene.b, 1);
    wait_messages(&c, 1);
    guest_close(&c);
    scene_close(&scene);
}

static bool has_trimmed(void *context)
{
    const struct guest *guest = context;
    size_t held = 0;
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns; at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        held += conn->out.capacity + conn->in_flight.capacity + conn->channel.message.capacity + conn->channel.in.capacity;
    }
    return held == 0;
}

static void idle_links_hold_no_buffers(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    uint8_t *bytes = noise_bytes(DP_MESSAGE_BULK_MAX);
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK, dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
    wait_messages(&scene.b, 1);
    turn_until(&scene.loop, has_trimmed, &scene.a);
    turn_until(&scene.loop, has_trimmed, &scene.b);
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK, dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
    wait_messages(&scene.a, 1);
    free(bytes);
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
        CHECK_OK(dp_channel_write(&conn->channel, dp_view_of(bytes, 1 + (size_t)dp_rng_below(&rng, 60000)), &conn->out));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dial_links_both_sides_with_both_lanes),
        cmocka_unit_test(messages_pass_both_ways_on_both_lanes),
        cmocka_unit_test(sending_names_its_limits),
        cmocka_unit_test(a_peer_that_does_not_read_its_control_lane_is_cut),
        cmocka_unit_test(a_simultaneous_dial_ends_in_one_link),
        cmocka_unit_test(a_goodbye_is_told_as_closed),
        cmocka_unit_test(a_goodbye_right_after_messages_still_arrives),
        cmocka_unit_test(hanging_up_is_told_on_both_sides),
        cmocka_unit_test(a_death_without_goodbye_is_told_as_reset),
        cmocka_unit_test(a_lost_bulk_lane_is_dialed_again_without_a_word),
        cmocka_unit_test(a_later_life_replaces_an_earlier_one),
        cmocka_unit_test(an_earlier_life_does_not_replace_a_later_one),
        cmocka_unit_test(the_wrong_secret_is_refused_and_counted),
        cmocka_unit_test(another_node_than_the_dialed_one_is_refused),
        cmocka_unit_test(a_node_that_dials_itself_is_refused),
        cmocka_unit_test(addresses_are_tried_until_one_answers),
        cmocka_unit_test(a_dial_without_an_answer_is_told_once),
        cmocka_unit_test(a_failed_dial_does_not_end_a_link_that_came_meanwhile),
        cmocka_unit_test(strangers_who_send_garbage_are_cut),
        cmocka_unit_test(a_slow_stranger_is_cut_at_a_deadline_that_bytes_do_not_move),
        cmocka_unit_test(strangers_from_one_address_are_limited_and_members_still_come_in),
        cmocka_unit_test(a_full_transport_turns_away_and_listens_on),
        cmocka_unit_test(garbage_after_the_handshake_cuts_the_link),
        cmocka_unit_test(a_hook_may_hang_up_on_whom_it_hears),
        cmocka_unit_test(a_hook_may_close_the_transport),
        cmocka_unit_test(a_taken_port_is_busy_with_a_sentence),
        cmocka_unit_test(a_late_listener_hears_of_links_that_stand),
        cmocka_unit_test(three_nodes_hear_what_one_tells_all),
        cmocka_unit_test(idle_links_hold_no_buffers),
        cmocka_unit_test(damaged_streams_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
