/* Wrong clocks, by how much, and when a node follows the clocks of others. */
#include <string.h>

#include "daemon/peer/wall.h"
#include "tests/lib/check.h"

enum { MINUTE = 60 * 1000 };
#define NOW_MS 1800000000000ULL
#define STEADY_MS 5000000ULL

static const dp_wall_roster unknown = {.members = 0};

static dp_peer peer_of(uint32_t i)
{
    dp_peer peer = {{0}};
    memcpy(peer.bytes, &i, sizeof i);
    return peer;
}

/* Peers from 1 on are members. */
static bool is_member(void *context, const dp_peer *peer)
{
    const dp_peer stranger = peer_of(0);
    (void)context;
    return !dp_peer_equal(peer, &stranger);
}

static dp_wall_view look(const dp_wall *wall, uint32_t members)
{
    const dp_wall_roster roster = {.has = is_member, .members = members};
    dp_wall_view view;
    dp_wall_look(wall, NOW_MS, STEADY_MS, &roster, &view);
    return view;
}

/* Peer i + first says that it is so far ahead. */
static dp_wall met(uint32_t first, const int64_t *ahead_ms, uint32_t n)
{
    dp_wall wall = {.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        const dp_peer peer = peer_of(first + i);
        dp_wall_meet(&wall, &peer, (uint64_t)((int64_t)NOW_MS + ahead_ms[i]), STEADY_MS, &unknown);
    }
    return wall;
}

static void a_majority_that_agrees_corrects_a_clock_by_minutes(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        const int64_t ahead[] = {sign * 3 * MINUTE, sign * 3 * MINUTE + 4000};
        const dp_wall wall = met(1, ahead, 2);
        const dp_wall_view view = look(&wall, 3);
        CHECK(view.agreed && view.agree == 2 && view.met == 2);
        CHECK(view.correction_ms == view.ahead_ms);
        CHECK(view.ahead_ms == ahead[0]);
        CHECK(look(&wall, 4).correction_ms == 0);   /* Two of four are no majority ... */
        CHECK(look(&wall, 4).ahead_ms == ahead[0]); /* ... and are reported nevertheless. */
    }
}

static void a_minority_of_wrong_clocks_moves_nothing(void **state)
{
    (void)state;
    const int64_t one_lies[] = {0, 1000, 50 * MINUTE};
    dp_wall wall = met(1, one_lies, 3);
    CHECK(look(&wall, 4).agree == 2 && look(&wall, 4).correction_ms == 0);
    const int64_t nobody_agrees[] = {3 * MINUTE, 9 * MINUTE, 20 * MINUTE};
    wall = met(1, nobody_agrees, 3);
    CHECK(!look(&wall, 4).agreed && look(&wall, 4).correction_ms == 0);
    CHECK(look(&wall, 4).ahead_ms == 9 * MINUTE);
    const int64_t strangers_agree[] = {3 * MINUTE, 0, 0};
    wall = met(0, strangers_agree, 3); /* the first is no member */
    CHECK(look(&wall, 3).met == 2 && look(&wall, 3).correction_ms == 0);
    const int64_t same_twice[] = {3 * MINUTE};
    wall = met(1, same_twice, 1);
    const dp_peer again = peer_of(1);
    dp_wall_meet(&wall, &again, NOW_MS + 3 * MINUTE, STEADY_MS, &unknown);
    CHECK(look(&wall, 3).met == 1 && !look(&wall, 3).agreed);
}

static void a_small_or_huge_difference_is_reported_and_not_corrected(void **state)
{
    (void)state;
    const int64_t cases[] = {0, DP_WALL_LEAST_MS - 1, DP_WALL_MOST_MS + 1,
                             400LL * 24 * 60 * MINUTE};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t ahead[] = {cases[i], cases[i], cases[i]};
        const dp_wall wall = met(1, ahead, 3);
        CHECK(look(&wall, 4).agreed && look(&wall, 4).ahead_ms == cases[i]);
        CHECK(look(&wall, 4).correction_ms == 0);
    }
}

static void a_jump_of_the_own_clock_shows_without_another_meeting(void **state)
{
    (void)state;
    const int64_t ahead[] = {0, 0};
    const dp_wall wall = met(1, ahead, 2);
    const dp_wall_roster roster = {.has = is_member, .members = 3};
    dp_wall_view view;
    dp_wall_look(&wall, NOW_MS + 10000 - 5 * MINUTE, STEADY_MS + 10000, &roster, &view);
    CHECK(view.correction_ms == 5 * MINUTE);
    dp_wall_look(&wall, NOW_MS + 10000, STEADY_MS + 10000, &roster, &view); /* set right */
    CHECK(view.correction_ms == 0);
}

static void a_newcomer_is_told_and_corrects_nothing(void **state)
{
    (void)state;
    const int64_t ahead[] = {4 * MINUTE};
    const dp_wall wall = met(1, ahead, 1);
    CHECK(look(&wall, 0).met == 1 && look(&wall, 0).ahead_ms == 4 * MINUTE);
    CHECK(!look(&wall, 0).agreed && look(&wall, 0).correction_ms == 0);
    const dp_wall nobody = {.n = 0};
    CHECK(look(&nobody, 0).met == 0 && look(&nobody, 5).ahead_ms == 0);
}

static void the_table_is_bounded_and_absurd_times_are_dropped(void **state)
{
    (void)state;
    static dp_wall wall;
    for (uint32_t i = 1; i <= 2 * DP_WALL_MET_MAX; i++) {
        const dp_peer peer = peer_of(i);
        dp_wall_meet(&wall, &peer, NOW_MS, STEADY_MS, &unknown);
    }
    CHECK(wall.n == DP_WALL_MET_MAX);
    const dp_peer last = peer_of(2 * DP_WALL_MET_MAX);
    bool found = false;
    for (uint32_t i = 0; i < wall.n; i++) {
        found = found || dp_peer_equal(&wall.met[i].peer, &last);
    }
    CHECK(found);
    dp_wall empty = {.n = 0};
    dp_wall_meet(&empty, &last, UINT64_MAX, STEADY_MS, &unknown);
    CHECK(empty.n == 0);
}

static void differences_are_told_as_people_say_them(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0 s"},
                 {-45400, "45 s"},
                 {200 * 1000, "3 min 20 s"},
                 {-125LL * MINUTE, "2 h 5 min"},
                 {-400LL * 24 * 60 * MINUTE, "400 days"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DP_WALL_TEXT_MAX];
        dp_wall_text(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_that_agrees_corrects_a_clock_by_minutes),
        cmocka_unit_test(a_minority_of_wrong_clocks_moves_nothing),
        cmocka_unit_test(a_small_or_huge_difference_is_reported_and_not_corrected),
        cmocka_unit_test(a_jump_of_the_own_clock_shows_without_another_meeting),
        cmocka_unit_test(a_newcomer_is_told_and_corrects_nothing),
        cmocka_unit_test(the_table_is_bounded_and_absurd_times_are_dropped),
        cmocka_unit_test(differences_are_told_as_people_say_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
