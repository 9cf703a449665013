/* The connections of an old link are replaced, without a hook at either end. */
#include "daemon/net/transport_bulk.h"
#include "tests/unit/daemon/scene.h"

enum { LANES = 2 };

/* The keys of both connections of a's link to b, by what binds them to their handshakes. */
static void bindings_of(const struct guest *a, uint8_t out[LANES][32])
{
    const dp_link *link = DP_LIST_ITEM(a->transport->links.next, dp_link, item);
    for (uint32_t i = 0; i < LANES; i++) {
        memset(out[i], 0, 32);
        if (link->lanes[i] != NULL) {
            memcpy(out[i], link->lanes[i]->channel.binding, 32);
        }
    }
}

struct renewal {
    struct scene scene;
    uint8_t before[LANES][32];
};

/* Both ends have the same new connections, and no other. */
static bool is_renewed(void *context)
{
    const struct renewal *r = context;
    uint8_t a[LANES][32];
    uint8_t b[LANES][32];
    static const uint8_t none[32] = {0};
    bindings_of(&r->scene.a, a);
    bindings_of(&r->scene.b, b);
    for (uint32_t i = 0; i < LANES; i++) {
        if (memcmp(a[i], b[i], 32) != 0 || memcmp(a[i], none, 32) == 0 ||
            memcmp(a[i], r->before[i], 32) == 0) {
            return false;
        }
    }
    return r->scene.a.transport->n_conns == LANES && r->scene.b.transport->n_conns == LANES;
}

static bool is_level(void *context)
{
    const struct renewal *r = context;
    uint8_t a[LANES][32];
    uint8_t b[LANES][32];
    bindings_of(&r->scene.a, a);
    bindings_of(&r->scene.b, b);
    return memcmp(a, b, sizeof a) == 0;
}

static void open_link(struct renewal *r)
{
    memset(r, 0, sizeof *r);
    scene_open(&r->scene);
    party_link(&r->scene.a, &r->scene.b);
    turn_until(&r->scene.loop, is_level, r);
    bindings_of(&r->scene.a, r->before);
}

static void check_alive(struct renewal *r)
{
    struct scene *scene = &r->scene;
    assert_int_equal(scene->a.downs + scene->b.downs, 0);
    assert_int_equal(scene->a.ups + scene->b.ups, 2);
    assert_int_equal(guest_stats(&scene->a).handshakes_failed, 0);
    assert_int_equal(guest_stats(&scene->b).handshakes_failed, 0);
    for (int lane = DP_LANE_CONTROL; lane <= DP_LANE_BULK; lane++) {
        CHECK_OK(dp_transport_send(scene->a.transport, &scene->b.peer, (dp_lane)lane,
                                   dp_view_text("over")));
        CHECK_OK(dp_transport_send(scene->b.transport, &scene->a.peer, (dp_lane)lane,
                                   dp_view_text("and out")));
    }
    wait_messages(&scene->a, 2);
    wait_messages(&scene->b, 2);
}

static void an_old_link_has_new_keys_and_stands_on(void **state)
{
    struct renewal r;
    (void)state;
    open_link(&r);
    r.scene.a.transport->renew_ms = 1;
    turn_until(&r.scene.loop, is_renewed, &r);
    r.scene.a.transport->renew_ms = DP_TRANSPORT_RENEW_MS;
    check_alive(&r);
    scene_close(&r.scene);
}

static void so_has_one_that_much_has_gone_over(void **state)
{
    struct renewal r;
    (void)state;
    open_link(&r);
    r.scene.a.transport->renew_bytes = 1;
    turn_until(&r.scene.loop, is_renewed, &r);
    r.scene.a.transport->renew_bytes = DP_TRANSPORT_RENEW_BYTES;
    check_alive(&r);
    scene_close(&r.scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_link_has_new_keys_and_stands_on),
        cmocka_unit_test(so_has_one_that_much_has_gone_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
