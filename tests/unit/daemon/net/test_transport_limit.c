/* The owner's limits over real sockets: time is only ever a lower bound here, so that a busy
 * machine fails nothing. */
#include "base/alloc.h"
#include "daemon/net/transport_bulk.h"
#include "tests/unit/daemon/scene.h"

enum { PIECE = 200000, PIECES = 8, CONTROL = 100 };
#define FAST UINT64_C(4000000) /* bytes per second */
#define SLOW UINT64_C(125000)

static void open_limited(struct scene *scene, const dp_limits *of_a, const dp_limits *of_b)
{
    turn_open(&scene->loop);
    const dp_limits *const limits[] = {of_a, of_b};
    struct guest *const guests[] = {&scene->a, &scene->b};
    for (int i = 0; i < 2; i++) {
        memset(guests[i], 0, sizeof *guests[i]);
        dp_transport_config config = guest_config(guests[i], &scene->loop, i, 1);
        config.limits = *limits[i];
        guest_open_as(guests[i], &config);
    }
    party_link(&scene->a, &scene->b);
}

static void send_pieces(const struct guest *from, const struct guest *to, unsigned count)
{
    uint8_t *bytes = noise_bytes(PIECE);
    for (unsigned i = 0; i < count; i++) {
        CHECK_OK(
            dp_transport_send(from->transport, &to->peer, DP_LANE_BULK, dp_view_of(bytes, PIECE)));
    }
    free(bytes);
}

static void check_last(const struct guest *guest)
{
    uint8_t *bytes = noise_bytes(PIECE);
    const dp_hash expected = dp_hash_of("test", dp_view_of(bytes, PIECE));
    CHECK(dp_hash_equal(&guest->last_hash, &expected));
    free(bytes);
}

/* Microseconds that all of it takes. */
static uint64_t carry_all(struct scene *scene)
{
    const uint64_t begun = uv_hrtime();
    send_pieces(&scene->a, &scene->b, PIECES);
    wait_messages(&scene->b, PIECES);
    check_last(&scene->b);
    return (uv_hrtime() - begun) / 1000;
}

/* The least time to carry all pieces at the limit, except for a burst at the start (ahead). */
static uint64_t least_us(uint64_t ahead)
{
    return (PIECES * PIECE - ahead) * 1000000 / FAST;
}

static void sent_bytes_keep_to_the_upload_limit(void **state)
{
    struct scene scene;
    (void)state;
    open_limited(&scene, &(dp_limits){.upload = FAST}, &(dp_limits){0});
    CHECK(carry_all(&scene) >= least_us(FAST / DP_THROTTLE_BURST_SHARE));
    const dp_transport_stats stats = guest_stats(&scene.a);
    assert_int_equal(stats.limits.upload, FAST);
    assert_int_equal(stats.uplink, FAST); /* Nothing else is known of this short path. */
    CHECK(stats.upload_held_us > 0 && stats.download_held_us == 0);
    CHECK(stats.bytes_sent >= PIECES * PIECE && stats.bytes_sent < PIECES * PIECE + PIECE / 10);
    assert_int_equal(guest_stats(&scene.b).uplink, 0);
    scene_close(&scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void received_bytes_keep_to_the_download_limit(void **state)
{
    struct scene scene;
    (void)state;
    open_limited(&scene, &(dp_limits){0}, &(dp_limits){.download = FAST});
    CHECK(carry_all(&scene) >=
          least_us(FAST / DP_THROTTLE_BURST_SHARE + 2 * DP_RECORD_BATCH_BYTES_MAX));
    const dp_transport_stats stats = guest_stats(&scene.b);
    CHECK(stats.download_held_us > 0 && stats.upload_held_us == 0);
    scene_close(&scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void control_does_not_wait_behind_limited_bulk(void **state)
{
    struct scene scene;
    (void)state;
    open_limited(&scene, &(dp_limits){.upload = SLOW}, &(dp_limits){.download = SLOW});
    send_pieces(&scene.a, &scene.b, 4);
    for (unsigned i = 0; i < CONTROL; i++) {
        CHECK_OK(dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_text("alive")));
    }
    wait_messages(&scene.b, CONTROL);
    /* The first four pieces take six seconds. */
    CHECK(scene.b.bytes < PIECE + CONTROL * strlen("alive"));
    CHECK(dp_transport_bulk_waiting(scene.a.transport, &scene.b.peer) > 0);
    scene_close(&scene); /* In line, with half a piece on its way. */
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static bool is_held(void *context)
{
    return guest_stats(context).upload_held_us > 0;
}

static void a_limit_is_lifted_while_bytes_wait_for_it(void **state)
{
    struct scene scene;
    (void)state;
    open_limited(&scene, &(dp_limits){.upload = SLOW}, &(dp_limits){.download = SLOW});
    send_pieces(&scene.a, &scene.b, 40); /* Would take more than a minute. */
    send_pieces(&scene.b, &scene.a, 40);
    turn_until(&scene.loop, is_held, &scene.a);
    dp_transport_limit(scene.a.transport, &(dp_limits){0});
    dp_transport_limit(scene.b.transport, &(dp_limits){0});
    wait_messages(&scene.b, 40);
    wait_messages(&scene.a, 40);
    check_last(&scene.b);
    assert_int_equal(guest_stats(&scene.a).uplink, 0);
    scene_close(&scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void a_limit_may_change_at_any_moment(void **state)
{
    static const uint64_t rates[] = {0, FAST, 10 * FAST, 3 * FAST, SLOW, 5 * FAST};
    struct scene scene;
    (void)state;
    open_limited(&scene, &(dp_limits){.upload = FAST}, &(dp_limits){0});
    send_pieces(&scene.a, &scene.b, 40);
    send_pieces(&scene.b, &scene.a, 40);
    for (unsigned i = 0; i < 400; i++) {
        const dp_limits limits = {.upload = rates[i % 6], .download = rates[i / 6 % 6]};
        dp_transport_limit(i % 2 == 0 ? scene.a.transport : scene.b.transport, &limits);
        uv_run(&scene.loop, UV_RUN_NOWAIT);
    }
    dp_transport_limit(scene.a.transport, &(dp_limits){.upload = 20 * FAST});
    dp_transport_limit(scene.b.transport, &(dp_limits){.upload = 20 * FAST});
    wait_messages(&scene.b, 40);
    wait_messages(&scene.a, 40);
    check_last(&scene.a);
    check_last(&scene.b);
    scene_close(&scene);
}

struct shared {
    struct guest *from;
    struct guest *to[2];
};

static bool one_has_half(void *context)
{
    const struct shared *shared = context;
    return shared->to[0]->messages >= PIECES / 2 || shared->to[1]->messages >= PIECES / 2;
}

static void two_peers_share_a_limit(void **state)
{
    struct scene scene;
    struct guest c;
    (void)state;
    open_limited(&scene, &(dp_limits){.upload = FAST}, &(dp_limits){0});
    guest_open(&c, &scene.loop, 2, 1);
    party_link(&scene.a, &c);
    send_pieces(&scene.a, &scene.b, PIECES);
    send_pieces(&scene.a, &c, PIECES);
    struct shared shared = {&scene.a, {&scene.b, &c}};
    turn_until(&scene.loop, one_has_half, &shared);
    CHECK(scene.b.messages >= PIECES / 2 - 2 && c.messages >= PIECES / 2 - 2);
    guest_close(&c); /* One waiting connection is closed, the other continues. */
    wait_messages(&scene.b, PIECES);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sent_bytes_keep_to_the_upload_limit),
        cmocka_unit_test(received_bytes_keep_to_the_download_limit),
        cmocka_unit_test(control_does_not_wait_behind_limited_bulk),
        cmocka_unit_test(a_limit_is_lifted_while_bytes_wait_for_it),
        cmocka_unit_test(a_limit_may_change_at_any_moment),
        cmocka_unit_test(two_peers_share_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
