/* Links between transports: real sockets on loopback, several of them in one loop. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/scene.h"

static void a_dial_links_both_sides_with_both_lanes(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    assert_int_equal(scene.a.ups, 1);
    assert_int_equal(scene.b.ups, 1);
    CHECK(scene.a.last_outgoing && !scene.b.last_outgoing);
    CHECK(dp_peer_equal(&scene.a.last_peer, &scene.b.peer) &&
          dp_peer_equal(&scene.b.last_peer, &scene.a.peer));
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
            CHECK(dp_hash_equal(&scene.a.last_hash, &hash) &&
                  dp_hash_equal(&scene.b.last_hash, &hash));
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
    CHECK_STATUS(
        dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_of(bytes, 1)),
        DP_NOTFOUND);
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
        status = dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                                   dp_view_of(bytes, DP_MESSAGE_BULK_MAX));
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
    while (status == DP_OK && sent < 200) { /* The loop does not run, so no socket is read. */
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
    return two_linked(&two) && guest_stats(&scene->a).connections == 2 &&
           guest_stats(&scene->b).connections == 2;
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
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_text("one")));
        CHECK_OK(
            dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK, dp_view_text("two")));
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
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                               dp_view_text("I leave")));
    CHECK_OK(
        dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("now")));
    guest_close(&scene.a);
    turn_until(&scene.loop, downs_one, &scene.b);
    assert_int_equal(scene.b.last_cause, DP_LINK_CLOSED);
    assert_int_equal(scene.b.messages, 2);
    scene_close(&scene);
}

struct apart {
    struct two two;
    uv_loop_t *other;
};

static bool linked_apart(void *context)
{
    struct apart *apart = context;
    uv_run(apart->other, UV_RUN_NOWAIT);
    return two_linked(&apart->two);
}

/* A node that closes with bytes unread resets the connection behind its goodbye, and the next write
 * of the other end fails at once. */
static void a_goodbye_is_heard_although_a_write_has_failed(void **state)
{
    uv_loop_t here;
    uv_loop_t there;
    struct guest a;
    struct guest b;
    struct apart apart = {{&a, &b}, &there};
    (void)state;
    turn_open(&here);
    turn_open(&there);
    guest_open(&a, &here, 0, 1);
    guest_open(&b, &there, 1, 1);
    guest_dial(&a, &b);
    turn_until(&here, linked_apart, &apart);
    CHECK_OK(
        dp_transport_send(a.transport, &b.peer, DP_LANE_CONTROL, dp_view_text("not read there")));
    for (int i = 0; i < 3; i++) {
        uv_run(&here, UV_RUN_NOWAIT);
    }
    guest_close(&b);
    CHECK_OK(dp_transport_send(a.transport, &b.peer, DP_LANE_CONTROL, dp_view_text("fails")));
    turn_until(&here, downs_one, &a);
    assert_int_equal(a.last_cause, DP_LINK_CLOSED);
    guest_close(&a);
    turn_close(&here);
    turn_close(&there);
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

/* Acts as the kernel does on the sockets of a killed process. */
static void cut_sockets(struct guest *guest)
{
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns;
         at = at->next) {
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
    for (dp_list *at = scene.a.transport->conns.next; at != &scene.a.transport->conns;
         at = at->next) {
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
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_CONTROL,
                               dp_view_text("still here")));
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
    guest_open(&again, &scene.loop, 0,
               2); /* the same identity, while the old one still seems to stand */
    guest_dial(&again, &scene.b);
    turn_until(&scene.loop, up_again, &scene.b);
    assert_int_equal(scene.b.downs, 1);
    assert_int_equal(scene.b.last_cause, DP_LINK_RESET);
    assert_int_equal(guest_stats(&scene.b).links, 1);
    guest_close(&again);
    scene_close(&scene);
}

static bool reaches(void *context)
{
    const struct two *two = context;
    return two->b->messages >= 1 && two->a->messages >= 1;
}

/* The larger id has lost a link that the smaller one dialed and still believes in; it dials
 * itself. */
static void a_link_that_only_one_side_believes_in_is_replaced(void **state)
{
    struct scene scene;
    struct guest again;
    (void)state;
    scene_open(&scene);
    const bool a_is_smaller = dp_peer_compare(&scene.a.peer, &scene.b.peer) < 0;
    struct guest *small = a_is_smaller ? &scene.a : &scene.b;
    struct guest *large = a_is_smaller ? &scene.b : &scene.a;
    party_link(small, large);
    guest_open(&again, &scene.loop, a_is_smaller ? 1 : 0, 1); /* the same life, without the link */
    guest_dial(&again, small);
    turn_until(&scene.loop, downs_one, &again); /* Might have crossed: the old one stays. */
    for (dp_list *at = small->transport->conns.next; at != &small->transport->conns;
         at = at->next) {
        DP_LIST_ITEM(at, dp_conn, item)->proved_ms -= DP_TRANSPORT_SETTLED_MS + 1;
    }
    guest_dial(&again, small);
    struct two two = {&again, small};
    turn_until(&scene.loop, two_linked, &two);
    CHECK_OK(
        dp_transport_send(small->transport, &again.peer, DP_LANE_CONTROL, dp_view_text("one")));
    CHECK_OK(dp_transport_send(again.transport, &small->peer, DP_LANE_BULK, dp_view_text("two")));
    turn_until(&scene.loop, reaches, &two);
    assert_int_equal(small->downs, 0); /* swapped without a word */
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

static void addresses_are_tried_until_one_answers(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    dp_addr addrs[4] = {
        {.family = 9, .port = 1}, /* of no family */
        {.family = 6,
         .ip = {0x20, 0x01, 0x0d, 0xb8},
         /* documentation prefix: no route */
         .port = 9},
        {.family = 4, .ip = {127, 0, 0, 1}, .port = 1}, /* nobody listens */
    };
    addrs[3] = guest_addr(&scene.b);
    dp_transport_dial(scene.a.transport, &scene.b.peer, addrs, 4);
    struct two two = {&scene.a, &scene.b};
    turn_until(&scene.loop, two_linked, &two);
    assert_int_equal(scene.a.refusals, 0);
    scene_close(&scene);
}

static void a_node_that_listens_on_one_address_dials_from_it(void **state)
{
    static const uint8_t address[4] = {127, 0, 0, 7};
    struct scene scene;
    struct sockaddr_storage source;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(9)};
    (void)state;
    memcpy(&in.sin_addr, address, sizeof address);
    memcpy(&source, &in, sizeof in);
    scene_open(&scene);
    dp_conn_set_source(scene.a.transport, &source);
    party_link(&scene.a, &scene.b);
    CHECK(memcmp(scene.b.last_addr.ip, address, sizeof address) == 0);
    CHECK(scene.b.last_addr.port != 9); /* Any port: many links come from one address. */
    scene_close(&scene);
}

static void a_dial_without_an_answer_is_told_once(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    const dp_addr addrs[2] = {{.family = 4, .ip = {127, 0, 0, 1}, .port = 1},
                              {.family = 4, .ip = {127, 0, 0, 1}, .port = 2}};
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
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_text("go away?")));
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
    CHECK_OK(
        dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL, dp_view_text("end")));
    turn_until(&scene.loop, downs_one, &scene.a);
    assert_int_equal(scene.b.downs, 0);
    CHECK(scene.b.transport == NULL);
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

/* The store of a large run is read for long: more peers link meanwhile than one may guess. */
static void every_link_is_replayed_however_many_there_are(void **state)
{
    enum { LINKS = 130 };
    static dp_link links[LINKS];
    static dp_conn controls[LINKS];
    struct scene scene;
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < LINKS; i++) {
        controls[i].addr = (dp_addr){.family = 4, .port = 7};
        links[i] =
            (dp_link){.peer = {{(uint8_t)i, 1}}, .lanes = {[DP_LANE_CONTROL] = &controls[i]}};
        dp_list_push_back(&scene.b.transport->links, &links[i].item);
    }
    dp_transport_replay(scene.b.transport);
    assert_int_equal(scene.b.ups, LINKS);
    dp_transport_replay(scene.b.transport);
    assert_int_equal(scene.b.ups, 2 * LINKS);
    for (unsigned i = 0; i < LINKS; i++) {
        dp_list_remove(&links[i].item);
    }
    scene_close(&scene);
}

/* One token makes any number of identities, and none is known to be a guest's before the store is
 * read. */
static void guests_have_half_a_thousand_links_at_most(void **state)
{
    enum { LINKS = DP_TRANSPORT_GUESTS_MAX };
    static dp_link links[LINKS];
    static dp_conn control;
    struct scene scene;
    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < LINKS; i++) {
        links[i] = (dp_link){.peer = {{(uint8_t)i, (uint8_t)(i >> 8), 1}},
                             .lanes = {[DP_LANE_CONTROL] = &control}};
        dp_list_push_back(&scene.b.transport->links, &links[i].item);
        scene.b.transport->stats.links++;
    }
    scene.b.reads_its_store = true;
    guest_dial(&scene.a, &scene.b);
    turn_until(&scene.loop, downs_one, &scene.a);
    assert_int_equal(scene.b.ups, 0);
    for (unsigned i = 0; i < LINKS; i++) {
        dp_list_remove(&links[i].item);
    }
    scene.b.transport->stats.links -= LINKS;
    party_link(&scene.a, &scene.b);
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
    for (dp_list *at = guest->transport->conns.next; at != &guest->transport->conns;
         at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        held += conn->out.capacity + conn->in_flight.capacity + conn->channel.message.capacity +
                conn->channel.in.capacity;
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
    CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_BULK,
                               dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
    wait_messages(&scene.b, 1);
    turn_until(&scene.loop, has_trimmed, &scene.a);
    turn_until(&scene.loop, has_trimmed, &scene.b);
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_BULK,
                               dp_view_of(bytes, DP_MESSAGE_BULK_MAX)));
    wait_messages(&scene.a, 1);
    free(bytes);
    scene_close(&scene);
}

static void an_address_is_judged_before_it_is_bound(void **state)
{
    static const char *const bad[] = {"",
                                      "foo",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:99999",
                                      "127.0.0.1:-1",
                                      "name.example:7717"};
    dp_why why = {""};
    (void)state;
    CHECK_OK(dp_transport_check("127.0.0.1:0", &why));
    CHECK_OK(dp_transport_check("[::]:7717", &why));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why.text[0] = '\0';
        CHECK_STATUS(dp_transport_check(bad[i], &why), DP_BADARG);
        CHECK(why.text[0] != '\0');
    }
}

/* A token is all that it takes to make a certificate in a's name; with the highest life there is, a
 * itself would be locked out. */
static void a_holder_of_a_token_cannot_take_the_link_of_another_node(void **state)
{
    struct scene scene;
    struct guest thief = {0};
    struct party forged = *party_of();
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    memcpy(forged.identities[2].ed.public_key, scene.a.peer.bytes,
           sizeof forged.identities[2].ed.public_key);
    party_invite(&forged, 2);
    dp_transport_config config = guest_config(&thief, &scene.loop, 2, UINT64_MAX - 1);
    config.credential = dp_view_of(forged.credentials[2], forged.credential_bytes[2]);
    guest_open_as(&thief, &config);
    guest_dial(&thief, &scene.b);
    turn_until(&scene.loop, downs_one, &thief);
    assert_int_equal(guest_stats(&scene.b).handshakes_failed, 1);
    CHECK(scene.b.ups == 1 && scene.b.downs == 0 && scene.a.downs == 0);
    guest_dial(&scene.b, &thief); /* Nor when it is called. */
    turn_until(&scene.loop, refused_one, &scene.b);
    CHECK(scene.b.ups == 1 && scene.b.downs == 0);
    CHECK_OK(dp_transport_send(scene.b.transport, &scene.a.peer, DP_LANE_CONTROL,
                               dp_view_text("still here")));
    wait_messages(&scene.a, 1);
    guest_close(&thief);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_judged_before_it_is_bound),
        cmocka_unit_test(a_dial_links_both_sides_with_both_lanes),
        cmocka_unit_test(messages_pass_both_ways_on_both_lanes),
        cmocka_unit_test(sending_names_its_limits),
        cmocka_unit_test(a_peer_that_does_not_read_its_control_lane_is_cut),
        cmocka_unit_test(a_simultaneous_dial_ends_in_one_link),
        cmocka_unit_test(a_goodbye_is_told_as_closed),
        cmocka_unit_test(a_goodbye_right_after_messages_still_arrives),
        cmocka_unit_test(a_goodbye_is_heard_although_a_write_has_failed),
        cmocka_unit_test(hanging_up_is_told_on_both_sides),
        cmocka_unit_test(a_death_without_goodbye_is_told_as_reset),
        cmocka_unit_test(a_lost_bulk_lane_is_dialed_again_without_a_word),
        cmocka_unit_test(a_later_life_replaces_an_earlier_one),
        cmocka_unit_test(a_holder_of_a_token_cannot_take_the_link_of_another_node),
        cmocka_unit_test(a_link_that_only_one_side_believes_in_is_replaced),
        cmocka_unit_test(an_earlier_life_does_not_replace_a_later_one),
        cmocka_unit_test(addresses_are_tried_until_one_answers),
        cmocka_unit_test(a_node_that_listens_on_one_address_dials_from_it),
        cmocka_unit_test(a_dial_without_an_answer_is_told_once),
        cmocka_unit_test(a_failed_dial_does_not_end_a_link_that_came_meanwhile),
        cmocka_unit_test(a_hook_may_hang_up_on_whom_it_hears),
        cmocka_unit_test(a_hook_may_close_the_transport),
        cmocka_unit_test(a_late_listener_hears_of_links_that_stand),
        cmocka_unit_test(every_link_is_replayed_however_many_there_are),
        cmocka_unit_test(guests_have_half_a_thousand_links_at_most),
        cmocka_unit_test(three_nodes_hear_what_one_tells_all),
        cmocka_unit_test(idle_links_hold_no_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
