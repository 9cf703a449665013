/* The set of voters whose heartbeats count, when it changes: what stays known of those that stay,
 * go, and return. And when the table of members is calm. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

static const dp_time now = {.us = 7 * DP_SECOND};

/* Sets the voters with these numbers. */
static void vote(dp_heartbeat *beat, const uint32_t *who, uint32_t n)
{
    dp_peer peers[DP_VOTERS_MAX];

    for (uint32_t i = 0; i < n; i++) {
        peers[i] = mesh_peer(who[i]);
    }
    dp_heartbeat_set_voters(beat, peers, n, now);
}

static dp_heartbeat begin(uint32_t self)
{
    dp_heartbeat beat = {.self = mesh_peer(self), .own = DP_VOTERS_MAX};

    return beat;
}

static void a_new_set_keeps_what_is_known_of_those_that_stay_but_for_whom_they_hear(void **state)
{
    static const uint32_t first[] = {1, 2, 3};
    static const uint32_t second[] = {4, 3, 1};
    dp_heartbeat beat = begin(3);

    (void)state;
    vote(&beat, first, 3);
    CHECK(beat.n_voters == 3 && beat.own == 2 && beat.beat_at.us == now.us);
    for (uint32_t i = 0; i < 3; i++) {
        beat.voters[i].incarnation = 10 + i;
        beat.voters[i].sequence = 20 + i;
        beat.voters[i].slot = 30 + i;
        beat.voters[i].heard = 7;
        beat.voters[i].direct = now;
    }
    const uint32_t tag = beat.tag;
    beat.beat_at = (dp_time){1};
    vote(&beat, first, 3); /* The same set. */
    CHECK(beat.tag == tag && beat.voters[0].heard == 7 && beat.beat_at.us == 1);
    vote(&beat, second, 3);
    CHECK(beat.tag != tag && beat.own == 1 && beat.n_voters == 3 && beat.beat_at.us == now.us);
    CHECK(beat.voters[0].incarnation == 0 && beat.voters[0].direct.us == 0);
    CHECK(beat.voters[1].incarnation == 12 && beat.voters[1].sequence == 22);
    CHECK(beat.voters[2].incarnation == 10 && beat.voters[2].slot == 30);
    CHECK(beat.voters[1].direct.us == now.us);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_peer peer = mesh_peer(second[i]);
        CHECK(dp_peer_equal(&beat.voters[i].peer, &peer) && beat.voters[i].heard == 0);
        CHECK(dp_heartbeat_find_voter(&beat, &peer) == i);
    }
    const dp_peer gone = mesh_peer(2);
    CHECK(dp_heartbeat_find_voter(&beat, &gone) == DP_VOTERS_MAX);
    vote(&beat, first, 2); /* This node votes no more. */
    CHECK(beat.own == DP_VOTERS_MAX && beat.beat_at.us == UINT64_MAX && beat.n_voters == 2);
    static const uint32_t more[] = {1, 2, 3};
    const uint32_t of_two = beat.tag;
    vote(&beat, more, 3);
    CHECK(beat.tag == tag && beat.tag != of_two);
}

/* Or its old heartbeats would count again when somebody sends them. */
static void a_voter_that_returns_is_the_one_that_it_was(void **state)
{
    static const uint32_t with[] = {1, 2};
    static const uint32_t without[] = {1};
    dp_heartbeat beat = begin(1);

    (void)state;
    vote(&beat, with, 2);
    vote(&beat, without, 1); /* Nothing was known of it. */
    CHECK(beat.n_past == 0 && beat.past[0].incarnation == 0);
    for (uint32_t turn = 1; turn <= 3; turn++) {
        vote(&beat, with, 2);
        CHECK(beat.voters[1].incarnation == (turn == 1 ? 0 : 40 + turn - 1));
        CHECK(beat.voters[1].sequence == (turn == 1 ? 0 : 50 + turn - 1));
        CHECK(beat.voters[1].direct.us == 0 && !beat.voters[1].quorum);
        beat.voters[1].incarnation = 40 + turn;
        beat.voters[1].sequence = 50 + turn;
        vote(&beat, without, 1);
        CHECK(beat.n_past == 1); /* One place for it. */
    }
}

static void of_former_voters_the_last_are_remembered(void **state)
{
    dp_heartbeat beat = begin(200);

    (void)state;
    for (uint32_t i = 0; i <= DP_HEARTBEAT_PAST_MAX; i++) {
        const uint32_t with[] = {200, i};
        vote(&beat, with, 2);
        beat.voters[1].incarnation = 100 + i;
        beat.voters[1].sequence = 1;
        vote(&beat, with, 1);
    }
    CHECK(beat.n_past == DP_HEARTBEAT_PAST_MAX + 1);
    for (uint32_t i = 0; i <= DP_HEARTBEAT_PAST_MAX; i++) {
        const uint32_t with[] = {200, i};
        vote(&beat, with, 2);
        CHECK(beat.voters[1].incarnation == (i == 0 ? 0 : 100 + i));
        beat.voters[1].incarnation = 0; /* It is not remembered anew. */
        vote(&beat, with, 1);
    }
}

/* ---- members.c ---- */

static void a_table_is_calm_if_all_that_live_are_here_and_nobody_is_suspected(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 11);
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    dp_member *const member = &members->rows[3].member;
    const uint32_t urgent = members->urgent.count;
    const uint32_t guests = members->n_guests;
    members->urgent.count = members->n_guests = 0;
    for (uint32_t what = 0; what < 10; what++) {
        const dp_member before = *member;
        const uint32_t count = members->urgent.count;
        if (what == 1) {
            members->started = false;
        } else if (what == 2) {
            members->leaving = true;
        } else if (what == 3) {
            members->n_guests = 1;
        } else if (what == 4) {
            members->urgent.count = 1;
        } else if (what == 5) {
            member->state = DP_MEMBER_SUSPECT;
        } else if (what == 6) {
            member->linked = false;
        } else if (what == 7) {
            member->has_summary = false;
        } else if (what == 8) { /* One that is dead need not be here. */
            member->state = DP_MEMBER_DEAD;
            member->linked = member->has_summary = false;
        } else if (what == 9) {
            member->state = DP_MEMBER_UNKNOWN;
            member->linked = false;
        }
        CHECK(dp_members_calm(members) == (what == 0 || what >= 8));
        members->started = true;
        members->leaving = false;
        members->n_guests = 0;
        members->urgent.count = count;
        *member = before;
    }
    members->urgent.count = urgent;
    members->n_guests = guests;
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_keeps_what_is_known_of_those_that_stay_but_for_whom_they_hear),
        cmocka_unit_test(a_voter_that_returns_is_the_one_that_it_was),
        cmocka_unit_test(of_former_voters_the_last_are_remembered),
        cmocka_unit_test(a_table_is_calm_if_all_that_live_are_here_and_nobody_is_suspected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
