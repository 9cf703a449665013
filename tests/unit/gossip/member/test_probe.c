#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

/* Messages of a type that the last step sent, and the last of them. */
static uint32_t sent(const mesh *m, uint8_t type, dp_view *bytes)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *const action = &m->actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == type) {
            count++;
            if (bytes != NULL) {
                *bytes = action->u.send.bytes;
            }
        }
    }
    return count;
}

/* Tick node 0 alone, every 10 ms. Counts messages of a type until one is seen or time is over. */
static bool ticks_until_sent(mesh *m, uint8_t type, uint64_t limit_us, dp_view *bytes)
{
    for (uint64_t us = 0; us < limit_us; us += 10 * DP_MS) {
        m->now += 10 * DP_MS;
        dp_out_begin(&m->out, m->actions);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        if (sent(m, type, bytes) > 0) {
            return true;
        }
    }
    return false;
}

static void a_peer_with_traffic_is_asked_for_its_summary_only(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 1);
    uint32_t pings = 0;
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    m->nodes[0].members->rows[1].member.rtt.samples = 4; /* How far it is has been measured. */
    for (uint32_t i = 0; i < 100; i++) { /* two seconds; silence would bring eight */
        m->now += 20 * DP_MS;
        dp_out_begin(&m->out, m->actions);
        dp_members_heard(m->nodes[0].members, 1, mesh_now(m), &m->out);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        pings += sent(m, DP_MSG_PING, NULL);
        CHECK(sent(m, DP_MSG_PING_REQ, NULL) == 0);
    }
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(pings >= 1 && pings <= 4);
    mesh_close(m);
}

static void a_new_mode_is_told_to_all_linked_peers_at_once(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 8);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    dp_members_tell(m->nodes[0].members,
                    &(dp_summary){.mode = DP_MODE_GOSSIP, .has_trainer = true, .round = 9});
    mesh_run_for(m, 10 * DP_MS);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK(mesh_sees(m, i, 0)->summary.mode == DP_MODE_GOSSIP &&
              mesh_sees(m, i, 0)->summary.round == 9);
    }
    mesh_close(m);
}

static void silence_brings_a_ping_then_helpers_then_an_accusation(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 2);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    CHECK(ticks_until_sent(m, DP_MSG_PING, DP_SECOND, NULL));
    CHECK(ticks_until_sent(m, DP_MSG_PING_REQ, DP_SECOND, NULL));
    CHECK(sent(m, DP_MSG_PING_REQ, NULL) >= 3);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(ticks_until_sent(m, DP_MSG_STATEMENT, DP_SECOND, NULL));
    mesh_close(m);
}

/* Messages of the last step that ask this member to probe the target. */
static uint32_t asked_to_probe(const mesh *m, const dp_peer *whom, const dp_peer *target)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *const action = &m->actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_PING_REQ &&
            dp_peer_equal(&action->u.send.peer, whom) &&
            memcmp(action->u.send.bytes.data + DP_MSG_HEAD_BYTES + 4, target->bytes,
                   sizeof target->bytes) == 0) {
            count++;
        }
    }
    return count;
}

/* A probe of row target by node 0 whose first ping was not answered; no other action is due. */
static dp_probe *unanswered(mesh *m, uint32_t target)
{
    dp_members *const members = m->nodes[0].members;

    dp_members_probe_reset(members, DP_NEVER);
    CHECK(members->urgent.count == 0);
    members->probes[0] =
        (dp_probe){.target = target, .sequence = 100, .sent = mesh_now(m), .deadline = mesh_now(m)};
    return &members->probes[0];
}

/* Of 0 to 6 the target, 1, votes, as 2 to 4 and 6 do; 0 has no link to 6. */
static void in_a_large_run_each_linked_voter_but_the_target_is_a_helper_once(void **state)
{
    (void)state;
    mesh *const m = mesh_of(7, 10);
    dp_members *const members = m->nodes[0].members;
    const dp_peer target = mesh_peer(1);
    mesh_block(m, 0, 6, true);
    for (uint32_t a = 0; a < 7; a++) {
        for (uint32_t b = a + 1; b < 7; b++) {
            if (a != 0 || b != 6) {
                mesh_join(m, a, b);
            }
        }
    }
    mesh_run_for(m, DP_SECOND);
    for (uint32_t i = 1; i < 7; i++) {
        const dp_peer peer = mesh_peer(i);
        dp_members_mark(members, dp_members_find(members, &peer), true, i != 5);
    }
    CHECK(members->voters.count == 5 && members->linked.count == 5);
    const uint32_t n_known = members->n_known;
    members->n_known = DP_FULL_MESH_MAX + 1;
    CHECK(unanswered(m, dp_members_find(members, &target)) != NULL);
    dp_out_begin(&m->out, m->actions);
    dp_members_probe_tick(members, mesh_now(m), &m->out);
    members->n_known = n_known;
    for (uint32_t i = 1; i < 7; i++) {
        const dp_peer peer = mesh_peer(i);
        const uint32_t times = asked_to_probe(m, &peer, &target);
        CHECK(i == 5 ? times <= 1 : times == (i >= 2 && i <= 4 ? 1 : 0));
    }
    mesh_close(m);
}

/* By it an answer is known to be one. */
static void pings_after_the_first_have_the_second_number_of_their_probe(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 11);
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    dp_probe *const probe = unanswered(m, 1);
    for (uint32_t k = 0; k < 2; k++) {
        dp_view ping = {NULL, 0};
        probe->deadline = mesh_now(m);
        dp_out_begin(&m->out, m->actions);
        dp_members_probe_tick(m->nodes[0].members, mesh_now(m), &m->out);
        CHECK(sent(m, DP_MSG_PING, &ping) == 1 && probe->last == (k == 1));
        dp_reader reader = dp_reader_of(ping);
        CHECK(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == DP_MSG_HEAD_BYTES);
        CHECK(dp_read_u32(&reader) == 101);
    }
    mesh_close(m);
}

static void helpers_answer_for_a_peer_that_only_they_hear(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 3);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    mesh_block(m, 0, 1, true);
    mesh_run_for(m, 20 * DP_SECOND);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(mesh_sees(m, 0, 1)->linked); /* the connection itself only hangs */
    CHECK(m->notes_dead == 0);
    mesh_close(m);
}

/* Neither silent nor with an old summary, since it asks and reports first. */
static void a_peer_that_always_pings_first_is_measured_too(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 4);
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    members->rows[1].member.rtt = (dp_rtt){0};
    uint32_t measured = 0; /* steps after the fourth sample */
    for (uint32_t i = 0; i < 500; i++) {
        members->rows[1].member.summary_at = mesh_now(m);
        dp_out_begin(&m->out, m->actions);
        dp_members_heard(members, 1, mesh_now(m), &m->out);
        mesh_run_for(m, 20 * DP_MS);
        measured += mesh_sees(m, 0, 1)->rtt.samples == 4;
    }
    CHECK(measured > 60);                        /* Enough, and no more of these for a while: */
    CHECK(mesh_sees(m, 0, 1)->rtt.samples >= 5); /* all four may be of one busy moment. */
    CHECK(mesh_sees(m, 0, 1)->rtt.samples <= 7);
    mesh_close(m);
}

static void round_trips_are_measured_to_the_link(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 4);
    m->delay_us = 30 * DP_MS;
    mesh_join(m, 0, 1);
    mesh_run_for(m, 20 * DP_SECOND);
    const dp_rtt *const rtt = &mesh_sees(m, 0, 1)->rtt;
    CHECK(rtt->srtt_us >= 59 * DP_MS && rtt->srtt_us <= 61 * DP_MS);
    CHECK(dp_members_rtt_p95(m->nodes[0].members) >= 59 * DP_MS);
    CHECK(dp_members_rtt_voters(m->nodes[0].members, 1) == 0); /* no voters are marked */
    mesh_close(m);
}

static void a_slow_voter_beyond_a_majority_makes_no_difference(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 4);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    const uint32_t srtt_us[] = {0, 7000, 5000, 9000000, 1000}; /* the last is no voter */
    for (uint32_t i = 1; i < 5; i++) {
        dp_rtt *const rtt = &members->rows[i].member.rtt;
        *rtt = (dp_rtt){.samples = 9, .srtt_us = srtt_us[i]};
        members->rows[i].member.voter = i < 4;
    }
    CHECK(dp_members_rtt_voters(members, 0) == 0);
    CHECK(dp_members_rtt_voters(members, 1) == 5000);
    CHECK(dp_members_rtt_voters(members, 2) == 7000);
    CHECK(dp_members_rtt_voters(members, 3) == 9000000);
    CHECK(dp_members_rtt_voters(members, 100) == 9000000);
    CHECK(dp_members_rtt_p95(members) == 9000000);
    mesh_close(m);
}

static void a_gap_in_our_own_time_accuses_nobody(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 5);
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    CHECK(ticks_until_sent(m, DP_MSG_PING, DP_SECOND, NULL)); /* a probe is under way */
    CHECK(!dp_members_unsure(m->nodes[0].members, mesh_now(m)));
    m->now += 60 * DP_SECOND;
    CHECK(dp_members_unsure(m->nodes[0].members, mesh_now(m))); /* before anything else is done */
    dp_out_begin(&m->out, m->actions);
    dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(dp_members_unsure(m->nodes[0].members, mesh_now(m)));
    const dp_peer peer = mesh_peer(1);
    dp_members_link_down(m->nodes[0].members, mesh_now(m), 1, &peer, DP_LINK_RESET, &m->out);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE); /* even a reset may be our own doing */
    mesh_run_for(m, 6 * DP_SECOND);
    CHECK(!dp_members_unsure(m->nodes[0].members, mesh_now(m)));
    mesh_close(m);
}

static void at_most_five_accusations_in_ten_seconds(void **state)
{
    (void)state;
    mesh *const m = mesh_of(12, 6);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    uint32_t suspects = 0;
    dp_out_begin(&m->out, m->actions);
    for (uint32_t i = 1; i < 12; i++) {
        const dp_peer peer = mesh_peer(i);
        dp_members_link_down(m->nodes[0].members, mesh_now(m), 1, &peer, DP_LINK_RESET, &m->out);
        suspects += mesh_state(m, 0, i) == DP_MEMBER_SUSPECT;
    }
    CHECK(suspects == 5);
    mesh_close(m);
}

static void wake_never_lies_in_the_past_twice(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 7);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    for (uint32_t i = 1; i < 4; i++) {
        m->nodes[i].frozen = true;
    }
    /* After a tick at its own wake, the next wake is later: no node spins. */
    for (uint32_t i = 0; i < 500; i++) {
        const dp_time wake = dp_members_wake(m->nodes[0].members);
        m->now = wake.us > m->now ? wake.us : m->now;
        dp_out_begin(&m->out, m->actions);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        CHECK(dp_members_wake(m->nodes[0].members).us > m->now);
    }
    mesh_close(m);
}

static void a_dead_peer_is_pinged_on_while_its_link_stands(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 9);
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    m->blocked[0][1] = true;
    m->blocked[1][0] = true;
    mesh_run_for(m, 20 * DP_SECOND);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_DEAD && mesh_sees(m, 0, 1)->linked);
    CHECK(ticks_until_sent(m, DP_MSG_PING, 7 * DP_SECOND, NULL));
    m->blocked[0][1] = false;
    m->blocked[1][0] = false;
    mesh_run_for(m, 7 * DP_SECOND);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE && mesh_state(m, 1, 0) == DP_MEMBER_ALIVE);
    mesh_close(m);
}

/* Each direct link's delay counts: eight of their mean, in bounds. */
static void the_time_between_probes_follows_the_mean_delay_of_the_links(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 12);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    const uint32_t pace = members->beat->pace;
    const uint32_t srtt_us[3][2] = {{50000, 70000}, {100, 200}, {900000, 800000}};
    const uint64_t wanted_us[3] = {8 * 60000, DP_PROBE_US_MIN, DP_PROBE_US_MAX};
    for (uint32_t what = 0; what < 3; what++) {
        for (uint32_t i = 1; i < 3; i++) {
            members->rows[i].member.rtt = (dp_rtt){.samples = 9, .srtt_us = srtt_us[what][i - 1]};
        }
        dp_members_probe_reset(members, mesh_now(m));
        dp_out_begin(&m->out, m->actions);
        dp_members_probe_tick(members, mesh_now(m), &m->out);
        CHECK(members->period_us == wanted_us[what] ||
              members->period_us == pace * wanted_us[what]);
    }
    mesh_close(m);
}

static void an_accusation_is_free_again_ten_seconds_after_the_fifth_before_it(void **state)
{
    (void)state;
    mesh *const m = mesh_of(12, 6);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    dp_out_begin(&m->out, m->actions);
    for (uint32_t i = 1; i <= 5; i++) {
        dp_members_accuse(members, i, DP_CAUSE_RESET, mesh_now(m), &m->out);
        CHECK(mesh_state(m, 0, i) == DP_MEMBER_SUSPECT);
    }
    m->now += 10 * DP_SECOND - 1;
    members->quiet_until = (dp_time){0};
    dp_members_accuse(members, 6, DP_CAUSE_RESET, mesh_now(m), &m->out);
    CHECK(mesh_state(m, 0, 6) == DP_MEMBER_ALIVE);
    m->now++;
    dp_members_accuse(members, 6, DP_CAUSE_RESET, mesh_now(m), &m->out);
    CHECK(mesh_state(m, 0, 6) == DP_MEMBER_SUSPECT);
    mesh_close(m);
}

/* A helper that says that it heard nothing has answered; this node is not slow then. */
static void helpers_that_say_that_they_failed_are_counted_up_to_those_asked(void **state)
{
    (void)state;
    for (uint32_t nacks = 0; nacks < 3; nacks++) {
        mesh *const m = mesh_of(2, 11);
        mesh_join(m, 0, 1);
        mesh_run_for(m, DP_SECOND);
        dp_members *const members = m->nodes[0].members;
        dp_probe *const probe = unanswered(m, 1);
        probe->indirect = probe->last = true;
        probe->asked = 2;
        probe->nacks = (uint8_t)nacks;
        members->lhm = 0;
        members->rows[1].member.heard = (dp_time){0};
        dp_out_begin(&m->out, m->actions);
        dp_members_probe_tick(members, mesh_now(m), &m->out);
        CHECK(members->lhm == (nacks < 2 ? 1 : 0));
        CHECK(mesh_state(m, 0, 1) == DP_MEMBER_SUSPECT);
        mesh_close(m);
    }
}

/* Of what was under way before it nothing counts; suspicions have as much longer. */
static void a_gap_in_our_own_time_begins_all_waits_anew(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 5);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    const dp_peer self = mesh_peer(0);
    const dp_addr addr = mesh_addr(0);
    uint8_t bytes[34];
    (void)unanswered(m, 1);
    dp_out_begin(&m->out, m->actions);
    dp_members_accuse(members, 2, DP_CAUSE_SILENCE, mesh_now(m), &m->out);
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_SUSPECT);
    for (uint32_t turn = 0; turn < 2; turn++) {
        const uint64_t suspect = members->rows[2].suspect_at.us;
        const uint64_t period = members->period_us;
        members->lhm = turn == 0 ? 0 : DP_LHM_MAX;
        members->probes[1] = (dp_probe){.target = 1};
        members->probe_at = mesh_now(m);
        m->now += 2 * period;
        CHECK(dp_members_gap(members, mesh_now(m)) == 0);
        m->now++;
        const uint64_t late = dp_members_gap(members, mesh_now(m));
        CHECK(late == 2 * period + 1);
        CHECK(dp_members_link_up(members, mesh_now(m), 1, &self, &addr, mesh_credential(0, bytes),
                                 false, &m->out) == DP_MEMBER_NONE);
        for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
            CHECK(members->probes[i].target == DP_MEMBER_NONE);
        }
        CHECK(members->probe_at.us == m->now);
        CHECK(members->rows[2].suspect_at.us == suspect + late);
        CHECK(members->lhm == (turn == 0 ? 1 : DP_LHM_MAX));
        CHECK(members->quiet_until.us == m->now + 2 * period);
        CHECK(members->unsure_until.us == m->now + 5 * period);
    }
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_with_traffic_is_asked_for_its_summary_only),
        cmocka_unit_test(a_new_mode_is_told_to_all_linked_peers_at_once),
        cmocka_unit_test(silence_brings_a_ping_then_helpers_then_an_accusation),
        cmocka_unit_test(in_a_large_run_each_linked_voter_but_the_target_is_a_helper_once),
        cmocka_unit_test(pings_after_the_first_have_the_second_number_of_their_probe),
        cmocka_unit_test(helpers_answer_for_a_peer_that_only_they_hear),
        cmocka_unit_test(a_peer_that_always_pings_first_is_measured_too),
        cmocka_unit_test(round_trips_are_measured_to_the_link),
        cmocka_unit_test(a_slow_voter_beyond_a_majority_makes_no_difference),
        cmocka_unit_test(a_gap_in_our_own_time_accuses_nobody),
        cmocka_unit_test(at_most_five_accusations_in_ten_seconds),
        cmocka_unit_test(a_dead_peer_is_pinged_on_while_its_link_stands),
        cmocka_unit_test(wake_never_lies_in_the_past_twice),
        cmocka_unit_test(the_time_between_probes_follows_the_mean_delay_of_the_links),
        cmocka_unit_test(an_accusation_is_free_again_ten_seconds_after_the_fifth_before_it),
        cmocka_unit_test(helpers_that_say_that_they_failed_are_counted_up_to_those_asked),
        cmocka_unit_test(a_gap_in_our_own_time_begins_all_waits_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
