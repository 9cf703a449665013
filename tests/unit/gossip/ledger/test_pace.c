/* The counted tokens of a contribution, by ledgers and records like those of nodes: no claim ends
 * the schedule of all, and honest work counts in full after any absence. */
#include "gossip/ledger/pace.h"
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { ROUND_MS = 10000, TOKENS = 100000 };

static dp_ledger ledger;
static dp_record record;
static uint64_t counted;

static void open_ledger(const dp_manifest *manifest)
{
    const dp_run_id run = kit_run();

    assert_int_equal(dp_ledger_open(&ledger, manifest, &run, 1), DP_OK);
    kit_voters(&ledger, 4);
}

static int setup(void **state)
{
    dp_manifest manifest = kit_manifest();

    (void)state;
    manifest.round_ms = ROUND_MS;
    open_ledger(&manifest);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

/* By a member that stands on its own line, as far as tokens ask for. */
static void list(uint32_t index, uint64_t tokens, uint64_t carried)
{
    const dp_crypto crypto = kit_crypto(index);
    dp_listed *listed = kit_list(&ledger, &record, index, tokens, 10, 100 + index);

    listed->carried = carried;
    listed->reach =
        (dp_reach){.leased = ledger.roster[index].lease.reach.leased, .own = record.round << 45};
    dp_ready ready = dp_ready_of_listed(&record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
}

static dp_status verdict(void)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    const dp_valid valid = {.ledger = &ledger, .crypto = &crypto, .admission = &admission};
    const char *cause = NULL;

    return dp_valid_record(&valid, &record, &cause);
}

/* A round after so long. tokens, carried: of each node, 0 for one that is not listed. It must be
 * valid, and is applied. */
static void round_after(uint64_t span_ms, const uint64_t tokens[4], const uint64_t carried[4])
{
    const uint64_t before = ledger.tokens;

    kit_round(&ledger, &record);
    record.time_ms = ledger.time_ms + span_ms;
    for (uint32_t i = 0; i < 4; i++) {
        if (tokens[i] != 0) {
            list(i, tokens[i], carried != NULL ? carried[i] : 0);
        }
    }
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    const dp_hash hash = dp_hash_of("test/record", dp_view_of(&record.slot, sizeof record.slot));
    dp_ledger_apply(&ledger, &record, &hash, NULL);
    counted = ledger.tokens - before;
}

static void some_rounds(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, TOKENS}, NULL);
        assert_int_equal(counted, 4 * TOKENS);
    }
}

static void no_claim_of_carried_work_ends_the_schedule(void **state)
{
    const uint64_t all[4] = {TOKENS, TOKENS, TOKENS, TOKENS};

    (void)state;
    some_rounds(5);
    round_after(ROUND_MS, all, (uint64_t[4]){0, 0, 1ULL << 44, 0});
    assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, DP_TOKENS_MAX, TOKENS}, NULL);
    assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
    /* Again and again it is no more either: the one in the middle is honest. */
    for (uint32_t i = 0; i < 100; i++) {
        round_after(ROUND_MS, all, (uint64_t[4]){0, 0, 1ULL << 44, 0});
        assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
    }
}

/* Voters that thaw process old heartbeats first: the record that counts the work done meanwhile may
 * have an earlier time. */
static void tokens_reported_too_early_count_with_the_next_record(void **state)
{
    const uint64_t all[4] = {TOKENS, TOKENS, TOKENS, TOKENS};
    const uint64_t away = 200;

    (void)state;
    some_rounds(3);
    round_after(1, all, (uint64_t[4]){away * TOKENS, away * TOKENS, 0, 0});
    assert_true(counted < 4 * DP_PACE_SLACK * TOKENS);
    const uint64_t before = counted;
    round_after((away + 1) * ROUND_MS, all, NULL);
    assert_int_equal(before + counted, (8 + 2 * away) * TOKENS);
    round_after(ROUND_MS, all, NULL);
    assert_int_equal(counted, 4 * TOKENS);
}

static void tokens_over_the_bound_for_sixteen_rounds_are_dropped(void **state)
{
    const uint64_t all[4] = {TOKENS, TOKENS, TOKENS, TOKENS};

    (void)state;
    some_rounds(3);
    round_after(ROUND_MS, all, (uint64_t[4]){0, 0, 0, 1ULL << 44});
    assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
    for (uint32_t i = 0; i < DP_PACE_OWED_ROUNDS; i++) {
        round_after(ROUND_MS, all, NULL);
        assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
    }
    some_rounds(3);
}

static void a_record_that_counts_more_is_refused(void **state)
{
    (void)state;
    some_rounds(3);
    kit_round(&ledger, &record);
    record.time_ms = ledger.time_ms + ROUND_MS;
    list(0, TOKENS, 0);
    list(1, DP_TOKENS_MAX, 0);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(record.tokens_total - ledger.tokens, (1 + DP_PACE_SLACK) * TOKENS);
    record.tokens_total = ledger.tokens + TOKENS + DP_TOKENS_MAX;
    assert_int_equal(verdict(), DP_DENIED);
}

static void a_card_ten_times_as_fast_counts_in_full(void **state)
{
    (void)state;
    some_rounds(3);
    for (uint32_t i = 0; i < 20; i++) {
        round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, 10 * TOKENS}, NULL);
        assert_int_equal(counted, 13 * TOKENS);
    }
    /* From the first round on, too. */
    dp_ledger_close(&ledger);
    assert_int_equal(setup(NULL), 0);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, 10 * TOKENS}, NULL);
    assert_int_equal(counted, 13 * TOKENS);
}

static void hours_alone_in_gossip_count_when_the_node_is_back(void **state)
{
    const uint64_t hours = 360; /* rounds */

    (void)state;
    some_rounds(3);
    for (uint32_t i = 0; i < hours; i++) {
        round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, 0}, NULL);
    }
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, TOKENS},
                (uint64_t[4]){0, 0, 0, hours * TOKENS});
    assert_int_equal(counted, (4 + hours) * TOKENS);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, TOKENS},
                (uint64_t[4]){0, 0, 0, hours * TOKENS}); /* Once. */
    assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
}

static void all_that_were_in_gossip_count_in_full_and_no_more_than_before_after_it(void **state)
{
    const uint64_t away = 500 * TOKENS;

    (void)state;
    some_rounds(3);
    round_after(500ULL * ROUND_MS, (uint64_t[4]){away, away, away, away}, NULL);
    assert_int_equal(counted, 4 * away);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, DP_TOKENS_MAX}, NULL);
    assert_int_equal(counted, (3 + DP_PACE_SLACK) * TOKENS);
}

static void a_run_that_stood_still_for_a_week_goes_on_as_fast(void **state)
{
    (void)state;
    some_rounds(10);
    round_after(7 * 86400000ULL, (uint64_t[4]){TOKENS, TOKENS, TOKENS, TOKENS}, NULL);
    assert_int_equal(counted, 4 * TOKENS);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, 10 * TOKENS}, NULL);
    assert_int_equal(counted, 13 * TOKENS);
}

static void a_clock_of_coarse_steps_takes_nothing_away(void **state)
{
    dp_manifest manifest = kit_manifest();

    (void)state;
    dp_ledger_close(&ledger);
    manifest.round_ms = 1000;
    open_ledger(&manifest);
    for (uint32_t i = 0; i < 40; i++) { /* rounds of a second, reported in steps of five */
        round_after(i % 5 == 0 ? 5000 : 0, (uint64_t[4]){TOKENS, TOKENS, TOKENS, 3 * TOKENS}, NULL);
        assert_int_equal(counted, 6 * TOKENS);
    }
}

static void the_first_round_takes_no_stranger_at_its_word(void **state)
{
    const uint64_t all = 20000000; /* train.total_tokens of the standard manifest */

    (void)state;
    round_after(ROUND_MS, (uint64_t[4]){0, DP_TOKENS_MAX, 0, 0}, (uint64_t[4]){0, 1ULL << 44});
    assert_true(counted <= all / 1000);
    dp_ledger_close(&ledger);
    assert_int_equal(setup(NULL), 0);
    round_after(86400000, (uint64_t[4]){TOKENS, 0, 0, 0}, NULL); /* The founder, a day after. */
    assert_int_equal(counted, TOKENS);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, 0, 0}, NULL);
    assert_int_equal(counted, 2 * TOKENS);
}

static void a_speed_that_half_of_them_lie_about_doubles_at_most(void **state)
{
    dp_pace pace = {.bounded = true, .speed = 1000};

    (void)state;
    dp_pace_next(&pace, UINT64_MAX);
    assert_int_equal(pace.speed, 2000);
    dp_pace_next(&pace, 0);
    assert_int_equal(pace.speed, 2000 - 2000 / DP_PACE_FALL);
    pace.speed = (uint64_t)1 << 62;
    assert_int_equal(dp_pace_most(&pace, UINT64_MAX), UINT64_MAX);
    dp_pace_next(&pace, UINT64_MAX);
    assert_int_equal(pace.speed, (uint64_t)1 << 62);
    assert_int_equal(dp_pace_speed(&pace, UINT64_MAX, 0), (uint64_t)1 << 62);
}

static void a_run_from_before_counts_as_it_did(void **state)
{
    dp_manifest manifest = kit_manifest();

    (void)state;
    dp_ledger_close(&ledger);
    manifest.codec_gain = DP_OFF;
    open_ledger(&manifest);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, TOKENS}, NULL);
    round_after(ROUND_MS, (uint64_t[4]){TOKENS, TOKENS, TOKENS, DP_TOKENS_MAX}, NULL);
    assert_int_equal(counted, 3 * TOKENS + (uint64_t)DP_TOKENS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_claim_of_carried_work_ends_the_schedule, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tokens_reported_too_early_count_with_the_next_record, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tokens_over_the_bound_for_sixteen_rounds_are_dropped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_record_that_counts_more_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_card_ten_times_as_fast_counts_in_full, setup, teardown),
        cmocka_unit_test_setup_teardown(hours_alone_in_gossip_count_when_the_node_is_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            all_that_were_in_gossip_count_in_full_and_no_more_than_before_after_it, setup,
            teardown),
        cmocka_unit_test_setup_teardown(a_run_that_stood_still_for_a_week_goes_on_as_fast, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_clock_of_coarse_steps_takes_nothing_away, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_first_round_takes_no_stranger_at_its_word, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_speed_that_half_of_them_lie_about_doubles_at_most, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_from_before_counts_as_it_did, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
