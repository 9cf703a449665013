/* Peers that flood, over real sockets. The processor time of a message is that of a loop in the
 * hook; debts are set, so that no test waits for them. */
#include <time.h>

#include "base/alloc.h"
#include "daemon/net/transport_bulk.h"
#include "tests/unit/daemon/scene.h"

enum { FLOOD = 60, FLOOD_BYTES = 8000, COST_US = 2000, ANSWER_BYTES = 4000, QUESTIONS = 4000 };

struct crowd {
    struct scene scene; /* a is flooded by b, */
    struct guest c;     /* ... and c has one message for it */
    unsigned of_b;
    unsigned of_c;
    unsigned of_b_before_c;
};

static struct crowd crowd;

static uint64_t used_us(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void work(struct guest *guest)
{
    const uint64_t begin = used_us();
    if (dp_peer_equal(&guest->last_peer, &crowd.c.peer)) {
        crowd.of_c++;
        crowd.of_b_before_c = crowd.of_b;
        return;
    }
    crowd.of_b++;
    while (used_us() - begin < COST_US) {
    }
}

static void answer(struct guest *guest)
{
    static const uint8_t bytes[ANSWER_BYTES];
    DP_IGNORE(dp_transport_send(guest->transport, &guest->last_peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, sizeof bytes)) != DP_OK);
}

static void crowd_open(bool guests, void (*on_message)(struct guest *guest))
{
    memset(&crowd, 0, sizeof crowd);
    scene_open(&crowd.scene);
    guest_open(&crowd.c, &crowd.scene.loop, 2, 1);
    crowd.scene.a.on_message = on_message;
    party_link(&crowd.scene.b, &crowd.scene.a);
    party_link(&crowd.c, &crowd.scene.a);
    crowd.scene.a.knows_nobody = guests;
}

static void crowd_close(void)
{
    guest_close(&crowd.c);
    scene_close(&crowd.scene);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static dp_link *link_of_b(void)
{
    return dp_link_find(crowd.scene.a.transport, &crowd.scene.b.peer);
}

static void set_debt(dp_spending *spending, uint64_t work_us)
{
    *spending = (dp_spending){.work_us = work_us, .at_us = uv_hrtime() / 1000};
}

static void flood(unsigned count, size_t size, dp_lane lane)
{
    static const uint8_t bytes[FLOOD_BYTES];
    for (unsigned i = 0; i < count; i++) {
        CHECK_OK(dp_transport_send(crowd.scene.b.transport, &crowd.scene.a.peer, lane,
                                   dp_view_of(bytes, size)));
    }
}

static void say_of_c(void)
{
    CHECK_OK(dp_transport_send(crowd.c.transport, &crowd.scene.a.peer, DP_LANE_CONTROL,
                               dp_view_text("a word")));
}

static bool c_was_heard(void *context)
{
    (void)context;
    return crowd.of_c > 0;
}

static bool all_came(void *context)
{
    (void)context;
    return crowd.of_b >= FLOOD;
}

static void a_member_that_floods_does_not_delay_another(void **state)
{
    (void)state;
    crowd_open(false, work);
    set_debt(&link_of_b()->spending, 1000000); /* Its share is used up. */
    flood(FLOOD, FLOOD_BYTES, DP_LANE_CONTROL);
    say_of_c();
    turn_until(&crowd.scene.loop, c_was_heard, NULL);
    /* One buffer of it at most. */
    CHECK(crowd.of_b_before_c <= sizeof crowd.scene.a.transport->read_buffer / FLOOD_BYTES);
    CHECK(link_of_b()->lanes[DP_LANE_CONTROL]->paused);
    /* It is read again, nothing is lost. */
    set_debt(&link_of_b()->spending, 0);
    turn_until(&crowd.scene.loop, all_came, NULL);
    crowd_close();
}

static void guests_share_one_part_and_none_of_them_is_forgotten(void **state)
{
    (void)state;
    crowd_open(true, work);
    set_debt(&crowd.scene.a.transport->guests, 10000000);
    flood(FLOOD, FLOOD_BYTES, DP_LANE_CONTROL);
    say_of_c();
    turn_until(&crowd.scene.loop, c_was_heard, NULL);
    CHECK(crowd.of_b_before_c <= 1); /* Of a guest less is read at once. */
    set_debt(&crowd.scene.a.transport->guests, 0);
    turn_until(&crowd.scene.loop, all_came, NULL);
    crowd_close();
}

static void a_guest_cannot_flood_on_the_bulk_lane_either(void **state)
{
    (void)state;
    crowd_open(true, work);
    set_debt(&crowd.scene.a.transport->guests, 10000000);
    flood(FLOOD, 100, DP_LANE_BULK);
    wait_messages(&crowd.scene.a, 1);
    for (int i = 0; i < 10; i++) {
        uv_run(&crowd.scene.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(crowd.of_b, 1);
    set_debt(&crowd.scene.a.transport->guests, 0);
    turn_until(&crowd.scene.loop, all_came, NULL);
    crowd_close();
}

static void a_new_guest_waits_while_the_part_of_all_is_used_up(void **state)
{
    (void)state;
    crowd_open(true, work);
    dp_transport_hangup(crowd.scene.b.transport, &crowd.scene.a.peer);
    turn_until(&crowd.scene.loop, downs_one, &crowd.scene.a);
    set_debt(&crowd.scene.a.transport->guests, 10000000);
    party_link(&crowd.scene.b, &crowd.scene.a);
    flood(1, 100, DP_LANE_CONTROL);
    say_of_c();
    turn_until(&crowd.scene.loop, c_was_heard, NULL);
    assert_int_equal(crowd.of_b, 0);
    set_debt(&crowd.scene.a.transport->guests, 0);
    wait_messages(&crowd.scene.a, 2);
    crowd_close();
}

static bool is_paused(void *context)
{
    const dp_link *link = link_of_b();
    (void)context;
    return link == NULL || link->lanes[DP_LANE_CONTROL]->paused;
}

/* Of 16 MB that the questions want. */
static void short_questions_do_not_draw_long_answers_without_end(void **state)
{
    (void)state;
    crowd_open(true, answer);
    flood(QUESTIONS, 5, DP_LANE_CONTROL);
    turn_until(&crowd.scene.loop, is_paused, NULL);
    CHECK(guest_stats(&crowd.scene.a).bytes_sent < QUESTIONS * ANSWER_BYTES / 4);
    crowd_close();
}

static bool has_lost(void *context)
{
    const struct guest *guest = context;
    return guest->downs > 0;
}

static void a_guest_that_does_not_read_is_cut_sooner_and_counted(void **state)
{
    enum { BYTES = 1000, MOST = 40000 };
    struct scene scene;
    (void)state;
    scene_open(&scene);
    party_link(&scene.a, &scene.b);
    scene.a.knows_nobody = true;
    uint8_t *bytes = noise_bytes(BYTES);
    dp_status status = DP_OK;
    for (unsigned i = 0; status == DP_OK && i < MOST; i++) { /* No socket is read meanwhile. */
        status = dp_transport_send(scene.a.transport, &scene.b.peer, DP_LANE_CONTROL,
                                   dp_view_of(bytes, BYTES));
    }
    CHECK_STATUS(status, DP_NOTFOUND);
    const dp_transport_stats stats = guest_stats(&scene.a);
    CHECK(stats.held_guests > DP_TRANSPORT_GUEST_QUEUE / 2);
    CHECK(stats.held_guests <= DP_TRANSPORT_GUEST_QUEUE);
    CHECK(stats.held >= stats.held_guests);
    turn_until(&scene.loop, has_lost, &scene.a);
    assert_int_equal(scene.a.last_cause, DP_LINK_TIMEOUT);
    free(bytes);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_floods_does_not_delay_another),
        cmocka_unit_test(guests_share_one_part_and_none_of_them_is_forgotten),
        cmocka_unit_test(a_guest_cannot_flood_on_the_bulk_lane_either),
        cmocka_unit_test(a_new_guest_waits_while_the_part_of_all_is_used_up),
        cmocka_unit_test(a_guest_that_does_not_read_is_cut_sooner_and_counted),
        cmocka_unit_test(short_questions_do_not_draw_long_answers_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
