/* Leases: ranges that never overlap, a reach that only rises, and how they follow from records. */
#include <stdlib.h>

#include "base/rng.h"
#include "gossip/ledger/lease.h"
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_ledger ledger;
static dp_record record;
static dp_admitted admitted[DP_CONFIG_ADMIT_MAX];

/* Three members that vote, in round 0. */
static int setup(void **state)
{
    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

static dp_lease *lease_of(uint32_t index)
{
    const dp_peer peer = kit_peer(index);

    return &ledger.roster[dp_ledger_find(&ledger, &peer)].lease;
}

static bool is_valid(void)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    const char *cause = NULL;

    return dp_valid_record(&valid, &record, &cause) == DP_OK;
}

static void apply(void)
{
    const dp_hash hash = dp_hash_of("test/record", dp_view_of(&record.slot, sizeof record.slot));

    assert_true(is_valid());
    dp_ledger_apply(&ledger, &record, &hash, admitted);
}

/* List index in the record at hand, with a claim to samples of the context that it had gone
 * over. */
static void list(uint32_t index, uint64_t samples, dp_reach reach)
{
    dp_listed *listed =
        kit_list(&ledger, &record, index, samples * ledger.context, 10, 100 + index);
    const dp_crypto crypto = kit_crypto(index);

    listed->reach = reach;
    dp_ready ready = dp_ready_of_listed(&record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
}

/* A round in which only index is counted, with samples of its own line. */
static void own_round(uint32_t index, uint64_t samples)
{
    kit_round(&ledger, &record);
    list(index, samples,
         (dp_reach){.leased = lease_of(index)->reach.leased,
                    .own = lease_of(index)->reach.own + samples});
    dp_valid_fill(&ledger, &record);
    apply();
}

static void a_reach_rises_within_what_was_granted(void **state)
{
    const dp_lease lease = {.reach = {.leased = 10, .own = 5}, .granted = 30};

    (void)state;
    assert_true(dp_lease_covers(&lease, &(dp_reach){.leased = 20, .own = 5}, 10 * 64, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 20, .own = 5}, 10 * 64 + 1, 64));
    assert_true(dp_lease_covers(&lease, &(dp_reach){.leased = 30, .own = 6}, 21 * 64, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 31, .own = 6}, 1, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 9, .own = 60}, 1, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 20, .own = 4}, 1, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 10, .own = 5}, 0, 64));
    assert_false(dp_lease_covers(&lease, &(dp_reach){.leased = 10, .own = UINT64_MAX}, 1, 64));
    assert_true(dp_lease_covers(NULL, &(dp_reach){.own = 1}, 64, 64));
    assert_false(dp_lease_covers(NULL, &(dp_reach){.leased = 1}, 64, 64));
}

static void what_comes_back_is_granted_before_the_line_goes_on(void **state)
{
    dp_lease_pool *pool = calloc(1, sizeof *pool);
    dp_lease a = {0};
    dp_lease b = {0};

    (void)state;
    assert_non_null(pool);
    dp_lease_grant(&a, pool, 100);
    dp_lease_grant(&b, pool, 50);
    dp_lease_move(&a, &(dp_reach){.leased = 30});
    dp_lease_return(&a, pool);
    assert_int_equal(a.n, 0);
    assert_int_equal(a.reach.leased, 100);
    dp_lease_grant(&b, pool, 90);
    assert_int_equal(b.granted, 140);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.ranges[1].first, 30);
    assert_int_equal(b.ranges[1].count, 70);
    assert_int_equal(b.ranges[2].first, 150);
    assert_int_equal(b.ranges[2].count, 20);
    assert_int_equal(pool->cursor, 170);
    free(pool);
}

static void a_lease_has_room_for_so_many_ranges_and_a_pool_too(void **state)
{
    dp_lease_pool *pool = calloc(1, sizeof *pool);
    dp_lease lease = {0};

    (void)state;
    assert_non_null(pool);
    pool->cursor = 10ULL * DP_LEASE_POOL_MAX;
    for (uint32_t i = 0; i <= DP_LEASE_POOL_MAX; i++) {
        dp_lease one = {.granted = 3, .n = 1, .ranges = {{.first = 10ULL * i, .count = 3}}};
        dp_lease_return(&one, pool);
    }
    assert_int_equal(pool->n, DP_LEASE_POOL_MAX);
    assert_int_equal(pool->lost, 3);
    dp_lease_grant(&lease, pool, 1000);
    assert_int_equal(lease.n, DP_LEASE_RANGES_MAX);
    assert_int_equal(lease.granted, 3 * DP_LEASE_RANGES_MAX);
    assert_int_equal(pool->n, DP_LEASE_POOL_MAX - DP_LEASE_RANGES_MAX);
    dp_lease end = {0};
    pool->n = 0;
    pool->cursor = DP_LEASE_SAMPLES_MAX - 5;
    dp_lease_grant(&end, pool, 10);
    assert_int_equal(end.granted, 5);
    dp_lease_grant(&end, pool, 10);
    assert_int_equal(end.granted, 5);
    free(pool);
}

enum { MEMBERS = 5, LINE = 20000 };

/* Members take, use, lose and give back at random: every sample is passed by one of them at
 * most. */
static void no_sample_is_ever_in_two_leases(void **state)
{
    dp_lease_pool *pool = calloc(1, sizeof *pool);
    uint8_t *seen = calloc(LINE, 1);
    dp_lease leases[MEMBERS] = {0};
    dp_rng rng;

    (void)state;
    assert_true(pool != NULL && seen != NULL);
    dp_rng_init(&rng, 4);
    while (pool->cursor < LINE - 200) {
        dp_lease *lease = &leases[dp_rng_below(&rng, MEMBERS)];
        const uint64_t left = lease->granted - lease->reach.leased;
        const uint64_t what = dp_rng_below(&rng, 8);
        if (what < 3) {
            dp_lease_grant(lease, pool, 1 + dp_rng_below(&rng, 100));
        } else if (what == 3) {
            dp_lease_return(lease, pool);
        } else if (left > 0) {
            dp_sample_range after[DP_LEASE_RANGES_MAX];
            const uint64_t to = lease->reach.leased + 1 + dp_rng_below(&rng, left);
            const uint32_t n = dp_lease_after(lease, lease->reach.leased, after);
            uint64_t take = to - lease->reach.leased;
            for (uint32_t i = 0; i < n && take > 0; i++) {
                for (uint64_t k = 0; k < after[i].count && take > 0; k++, take--) {
                    assert_int_equal(seen[after[i].first + k]++, 0);
                }
            }
            dp_lease_move(lease, &(dp_reach){.leased = to});
        }
        uint64_t sum = 0;
        for (uint32_t i = 0; i < lease->n; i++) {
            assert_true(lease->ranges[i].count > 0);
            sum += lease->ranges[i].count;
        }
        assert_int_equal(sum, lease->granted - lease->reach.leased);
    }
    free(seen);
    free(pool);
}

static void who_is_counted_gets_samples_for_the_next_rounds(void **state)
{
    (void)state;
    kit_round(&ledger, &record);
    list(0, 10, (dp_reach){.own = 10});
    list(1, 30, (dp_reach){.own = 30});
    dp_valid_fill(&ledger, &record);
    apply();
    assert_int_equal(lease_of(0)->granted, 10 * DP_LEASE_ROUNDS);
    assert_int_equal(lease_of(0)->ranges[0].first, 0);
    assert_int_equal(lease_of(1)->granted, 30 * DP_LEASE_ROUNDS);
    assert_int_equal(lease_of(1)->ranges[0].first, 10 * DP_LEASE_ROUNDS);
    assert_int_equal(lease_of(2)->granted, 0);
    kit_round(&ledger, &record);
    list(0, 10, (dp_reach){.leased = 10, .own = 10});
    dp_valid_fill(&ledger, &record);
    apply();
    assert_int_equal(lease_of(0)->granted, 10 * DP_LEASE_ROUNDS); /* Enough is left. */
    kit_round(&ledger, &record);
    list(0, 10, (dp_reach){.leased = 10 * DP_LEASE_ROUNDS - 10, .own = 10});
    dp_valid_fill(&ledger, &record);
    apply();
    assert_int_equal(lease_of(0)->granted, 20 * DP_LEASE_ROUNDS - 10);
}

static void a_claim_beyond_the_lease_or_of_what_is_counted_is_in_no_record(void **state)
{
    (void)state;
    own_round(0, 10);
    own_round(0, 10);
    const dp_reach counted = lease_of(0)->reach;
    const uint64_t granted = lease_of(0)->granted;
    const struct {
        uint64_t samples;
        dp_reach reach;
        bool valid;
    } cases[] = {{10, {.leased = 10, .own = counted.own}, true},
                 {10, {.leased = 9, .own = counted.own}, false},
                 {10, {.leased = 9, .own = counted.own + 1}, true},
                 {1, {.leased = granted, .own = counted.own}, true},
                 {1, {.leased = granted + 1, .own = counted.own}, false},
                 {1, {.leased = 10, .own = counted.own - 1}, false},
                 {1, counted, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit_round(&ledger, &record);
        list(0, cases[i].samples, cases[i].reach);
        dp_valid_fill(&ledger, &record);
        assert_int_equal(is_valid(), cases[i].valid);
    }
    kit_round(&ledger, &record);
    list(0, 10, (dp_reach){.leased = 10, .own = counted.own});
    record.listed[0].carried = 1; /* More tokens than ten samples have; and not what was signed. */
    dp_valid_fill(&ledger, &record);
    assert_false(is_valid());
    record.listed[0].carried = 0;
    record.listed[0].reach.leased = 11;
    dp_valid_fill(&ledger, &record);
    assert_false(is_valid()); /* The signature covers the reach. */
}

static void who_leaves_no_trace_loses_its_lease_when_its_work_is_worth_nothing(void **state)
{
    (void)state;
    own_round(1, 10);
    for (uint32_t i = 0; i < DP_GAP_MAX; i++) {
        own_round(0, 1);
    }
    assert_int_equal(lease_of(1)->n, 1);
    const uint64_t granted = lease_of(1)->granted;
    own_round(0, 1);
    assert_int_equal(lease_of(1)->n, 0);
    assert_int_equal(lease_of(1)->reach.leased, granted);
    assert_int_equal(ledger.pool.n, 1);
    const uint64_t cursor = ledger.pool.cursor;
    /* Ten in each of four rounds, on its own line; no other member took its lease. */
    own_round(1, 40);
    assert_int_equal(lease_of(1)->granted, 2 * granted);
    assert_int_equal(ledger.pool.cursor, cursor);
}

static void who_is_late_keeps_its_lease(void **state)
{
    (void)state;
    own_round(1, 10);
    own_round(0, 1);
    kit_round(&ledger, &record);
    list(0, 1, (dp_reach){.own = lease_of(0)->reach.own + 1});
    record.late[record.n_late++] = kit_peer(1);
    dp_valid_fill(&ledger, &record);
    apply();
    for (uint32_t i = 0; i < DP_GAP_MAX; i++) {
        own_round(0, 1);
    }
    assert_int_equal(lease_of(1)->n, 1);
    own_round(0, 1);
    assert_int_equal(lease_of(1)->n, 0);
}

static void who_goes_gives_its_lease_back(void **state)
{
    const dp_crypto crypto = kit_crypto(1);

    (void)state;
    own_round(1, 10);
    ledger.n_voters = 1; /* So that it may go without a successor. */
    kit_round(&ledger, &record);
    list(0, 1, (dp_reach){.own = 1});
    dp_remove *remove = &record.config.removes[record.config.n_removes++];
    *remove = (dp_remove){.peer = kit_peer(1), .reason = DP_REMOVE_LEFT};
    assert_true(dp_remove_sign(remove, &crypto, DP_KEY_IDENTITY, &ledger.run));
    record.has_config = true;
    dp_valid_fill(&ledger, &record);
    apply();
    assert_int_equal(lease_of(1)->n, 0);
    assert_int_equal(lease_of(0)->ranges[0].first, 0); /* Of what came back, in the same record. */
    assert_int_equal(ledger.pool.cursor, 10 * DP_LEASE_ROUNDS);
}

static void who_claims_much_alone_is_granted_little_more_than_others(void **state)
{
    (void)state;
    kit_round(&ledger, &record);
    list(0, 10, (dp_reach){.own = 10});
    list(1, 10, (dp_reach){.own = 10});
    list(2, 1000000, (dp_reach){.own = 1000000});
    dp_valid_fill(&ledger, &record);
    apply();
    assert_int_equal(lease_of(2)->granted, 4 * lease_of(0)->granted);
}

static void a_lease_is_a_members_share_of_a_pass_or_two_rounds(void **state)
{
    (void)state;
    ledger.pass = 300; /* Of three members. */
    own_round(0, 10);
    assert_int_equal(lease_of(0)->granted, 100);
    own_round(1, 2 * 80); /* In two rounds, and below in three. */
    assert_int_equal(lease_of(1)->granted, 2 * 80);
    own_round(2, 3 * 5);
    assert_int_equal(lease_of(2)->granted, 5 * DP_LEASE_ROUNDS);
}

static void the_digest_covers_leases_and_the_place_in_the_chain(void **state)
{
    (void)state;
    own_round(0, 10);
    const dp_hash before = dp_ledger_digest(&ledger);
    dp_lease *lease = lease_of(0);
    uint64_t *const fields[] = {
        &lease->reach.leased, &lease->reach.own, &lease->granted, &lease->ranges[0].first,
        &ledger.pool.cursor,  &ledger.pool.lost, &ledger.slot,    &ledger.round,
        &ledger.tokens};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        ++*fields[i];
        const dp_hash after = dp_ledger_digest(&ledger);
        assert_false(dp_hash_equal(&before, &after));
        --*fields[i];
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void the_rest_of_a_lease_begins_at_the_place_reached(void **state)
{
    const dp_lease lease = {.reach = {.leased = 100},
                            .granted = 100 + 5 + 7 + 9,
                            .n = 3,
                            .ranges = {{.first = 10, .count = 5},
                                       {.first = 30, .count = 7},
                                       {.first = 50, .count = 9}}};
    dp_sample_range out[DP_LEASE_RANGES_MAX] = {{0}};

    (void)state;
    for (uint64_t used = 0; used <= 21; used++) {
        const uint32_t n = dp_lease_after(&lease, 100 + used, out);
        uint64_t left = 0;
        assert_int_equal(n, used < 5 ? 3 : used < 12 ? 2 : used < 21 ? 1 : 0);
        for (uint32_t i = 0; i < n; i++) {
            left += out[i].count;
        }
        assert_int_equal(left, 21 - used);
        assert_true(n == 0 || out[0].first == (used < 5    ? 10 + used
                                               : used < 12 ? 30 + used - 5
                                                           : 50 + used - 12));
    }
    assert_int_equal(lease.ranges[0].first, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reach_rises_within_what_was_granted),
        TEST(what_comes_back_is_granted_before_the_line_goes_on),
        TEST(a_lease_has_room_for_so_many_ranges_and_a_pool_too),
        TEST(no_sample_is_ever_in_two_leases),
        TEST(who_is_counted_gets_samples_for_the_next_rounds),
        TEST(a_claim_beyond_the_lease_or_of_what_is_counted_is_in_no_record),
        TEST(who_leaves_no_trace_loses_its_lease_when_its_work_is_worth_nothing),
        TEST(who_is_late_keeps_its_lease),
        TEST(who_goes_gives_its_lease_back),
        TEST(who_claims_much_alone_is_granted_little_more_than_others),
        TEST(a_lease_is_a_members_share_of_a_pass_or_two_rounds),
        TEST(the_digest_covers_leases_and_the_place_in_the_chain),
        cmocka_unit_test(the_rest_of_a_lease_begins_at_the_place_reached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
