#include "gossip/round/turn.h"
#include "tests/lib/check.h"

enum { MEMBERS = 100 };

static dp_peer peer_of(uint32_t number)
{
    dp_peer peer = {{0}};

    peer.bytes[0] = (uint8_t)(number >> 8);
    peer.bytes[1] = (uint8_t)number;
    peer.bytes[31] = 1;
    return peer;
}

/* A run of MEMBERS members, of whom number i was counted last in round 1 + i /
 * DP_LISTED_DEFAULT. */
static void run_of_many(dp_ledger *ledger)
{
    dp_manifest manifest;
    const dp_run_id run = {{1}};

    dp_manifest_default(&manifest);
    manifest.members_max = MEMBERS + 10;
    memcpy(manifest.founder, peer_of(0).bytes, sizeof manifest.founder);
    CHECK(dp_ledger_open(ledger, &manifest, &run, 1) == DP_OK);
    for (uint32_t i = 1; i < MEMBERS; i++) {
        dp_roster_entry *entry = &ledger->roster[ledger->n_roster];
        dp_hash key;
        entry->peer = peer_of(i);
        memcpy(key.bytes, entry->peer.bytes, sizeof key.bytes);
        CHECK(dp_map_put(&ledger->map, &key, ledger->n_roster) == DP_OK);
        ledger->n_roster++;
        ledger->n_members++;
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        ledger->roster[i].included = 1 + i / DP_LISTED_DEFAULT;
    }
    ledger->round = 4;
}

static bool all_live(const void *context, const dp_peer *peer)
{
    (void)context;
    (void)peer;
    return true;
}

static bool the_first_ten_are_dead(const void *context, const dp_peer *peer)
{
    (void)context;
    return peer->bytes[1] >= 10;
}

static void the_member_not_counted_for_longest_goes_first(void **state)
{
    dp_ledger ledger;

    (void)state;
    run_of_many(&ledger);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const dp_peer peer = peer_of(i);
        CHECK(dp_turn_before(&ledger, &peer, all_live, NULL) == i);
    }
    dp_ledger_close(&ledger);
}

static void the_dead_take_nobodys_turn(void **state)
{
    const dp_peer peer = peer_of(60);
    dp_ledger ledger;

    (void)state;
    run_of_many(&ledger);
    CHECK(dp_turn_before(&ledger, &peer, the_first_ten_are_dead, NULL) == 50);
    dp_ledger_close(&ledger);
}

static void a_member_counted_long_ago_neither_waits_nor_stops_others(void **state)
{
    const dp_peer old = peer_of(5);
    const dp_peer next = peer_of(6);
    dp_ledger ledger;

    (void)state;
    run_of_many(&ledger);
    ledger.round = 40;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        ledger.roster[i].included = i <= 5 ? 1 : 30 + i / DP_LISTED_DEFAULT;
    }
    CHECK(dp_turn_before(&ledger, &old, all_live, NULL) == 0);
    CHECK(dp_turn_before(&ledger, &next, all_live, NULL) == 0); /* numbers 0 to 5 do not count */
    dp_ledger_close(&ledger);
}

static void a_newcomer_waits_for_nobody(void **state)
{
    const dp_peer stranger = peer_of(MEMBERS + 5);
    dp_ledger ledger;

    (void)state;
    run_of_many(&ledger);
    CHECK(dp_turn_before(&ledger, &stranger, all_live, NULL) == 0);
    dp_ledger_close(&ledger);
}

static void more_may_publish_the_longer_a_round_takes(void **state)
{
    dp_ledger ledger = {.listed_max = DP_LISTED_DEFAULT};

    (void)state;
    CHECK(dp_turn_members(&ledger) == 48);
    CHECK(dp_turn_allowed(&ledger, 0, 8000) == 48);
    CHECK(dp_turn_allowed(&ledger, 8999, 8000) == 48);
    CHECK(dp_turn_allowed(&ledger, 9000, 8000) == 2 * 48);
    CHECK(dp_turn_allowed(&ledger, 10000, 8000) == 3 * 48);
    CHECK(dp_turn_allowed(&ledger, UINT64_MAX, 8000) == DP_MEMBERS_MAX);
    CHECK(dp_turn_allowed(&ledger, UINT64_MAX, 0) == DP_MEMBERS_MAX);
    ledger.listed_max = DP_LISTED_MAX;
    CHECK(dp_turn_allowed(&ledger, 0, 8000) == DP_LISTED_MAX + DP_LISTED_MAX / 2);
    CHECK(dp_turn_allowed(&ledger, UINT64_MAX, 8000) == DP_MEMBERS_MAX);
}

/* Sets the held updates: of the members from first on, as many as a record lists. */
static void hold(const dp_ledger *ledger, uint32_t first, const dp_peer *held[DP_LISTED_DEFAULT])
{
    for (uint32_t i = 0; i < DP_LISTED_DEFAULT; i++) {
        held[i] = &ledger->roster[first + i].peer;
    }
}

static void a_full_record_still_has_a_place_for_whose_turn_it_is(void **state)
{
    dp_ledger ledger;
    const dp_peer *held[DP_LISTED_DEFAULT];

    (void)state;
    run_of_many(&ledger);
    hold(&ledger, DP_LISTED_DEFAULT, held); /* counted last in round 2 */
    CHECK(dp_turn_has_place(&ledger, &ledger.roster[5].peer, held, DP_LISTED_DEFAULT));
    CHECK(!dp_turn_has_place(&ledger, held[7], held, DP_LISTED_DEFAULT));
    CHECK(!dp_turn_has_place(&ledger, &ledger.roster[2 * DP_LISTED_DEFAULT].peer, held,
                             DP_LISTED_DEFAULT));
    CHECK(dp_turn_has_place(&ledger, &ledger.roster[2 * DP_LISTED_DEFAULT].peer, held,
                            DP_LISTED_DEFAULT - 1));
    hold(&ledger, 0, held);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        CHECK(!dp_turn_has_place(&ledger, &ledger.roster[i].peer, held, DP_LISTED_DEFAULT));
    }
    dp_ledger_close(&ledger);
}

/* So long ago that its turn does not count any more: exactly then, and one round before. */
static void a_turn_lasts_four_rounds_for_each_record_that_all_members_fill(void **state)
{
    const dp_peer peer = peer_of(3);
    const uint64_t window = 4 * ((MEMBERS + DP_LISTED_DEFAULT - 1) / DP_LISTED_DEFAULT);
    dp_ledger ledger;

    (void)state;
    run_of_many(&ledger);
    ledger.round = 20;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        ledger.roster[i].included = i <= 3 ? 21 - window - 1 : 20;
    }
    CHECK(dp_turn_before(&ledger, &peer, all_live, NULL) == 0);
    for (uint32_t i = 0; i <= 3; i++) {
        ledger.roster[i].included = 21 - window;
    }
    CHECK(dp_turn_before(&ledger, &peer, all_live, NULL) == 3);
    dp_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_member_not_counted_for_longest_goes_first),
        cmocka_unit_test(the_dead_take_nobodys_turn),
        cmocka_unit_test(a_member_counted_long_ago_neither_waits_nor_stops_others),
        cmocka_unit_test(a_newcomer_waits_for_nobody),
        cmocka_unit_test(more_may_publish_the_longer_a_round_takes),
        cmocka_unit_test(a_full_record_still_has_a_place_for_whose_turn_it_is),
        cmocka_unit_test(a_turn_lasts_four_rounds_for_each_record_that_all_members_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
