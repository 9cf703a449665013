/* More identities join a run than may be members at a time: the order in which places are freed,
 * and the data kept of former members. */
#include "tests/unit/gossip/kit/valid_kit.h"

enum { PLACES = 4, DAY = 86400 };

/* Four places; the founder votes and is counted in every round. */
static int begin(void **state)
{
    (void)state;
    kit_ledger(&ledger);
    ledger.capacity = PLACES;
    ledger.absent_ms = 7ULL * DAY * 1000;
    return 0;
}

static uint8_t credentials[DP_CONFIG_ADMIT_MAX][KIT_CREDENTIAL];

/* The next round lists the founder, and this one if it is another. Newcomers are admitted, by an
 * invite of so many uses. */
static void draft_round(uint32_t with, uint16_t uses, uint32_t after_s)
{
    const dp_peer peer = kit_peer(with);

    kit_round(&ledger, &record);
    record.time_ms = ledger.time_ms + after_s * 1000ULL;
    kit_list(&ledger, &record, 0, 64, 1, 1);
    if (with == 0) {
        return;
    }
    const dp_lease *lease = dp_ledger_lease(&ledger, &peer);
    dp_listed *listed = kit_list(&ledger, &record, with, 64, 1, 1);
    const dp_crypto crypto = kit_crypto(with);
    listed->reach.leased = lease != NULL ? lease->reach.leased : 0;
    dp_ready ready = dp_ready_of_listed(&record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
    if (dp_ledger_member(&ledger, &peer) == NULL) {
        dp_config_part *config = &record.config;
        record.has_config = true;
        config->admits[config->n_admits] =
            (dp_admit){.peer = peer,
                       .credential = kit_credential(with, DP_CAP_TRAIN, uses, (uint8_t)(100 + with),
                                                    credentials[config->n_admits])};
        config->n_admits++;
    }
}

static void put_out(uint32_t index)
{
    record.has_config = true;
    record.config.removes[record.config.n_removes++] =
        (dp_remove){.peer = kit_peer(index), .reason = DP_REMOVE_ABSENT};
}

static dp_status finish(void)
{
    const dp_hash hash = dp_hash_of("test/record", dp_view_of(&record.slot, sizeof record.slot));

    dp_valid_fill(&ledger, &record);
    const dp_status status = verdict();
    if (status == DP_OK) {
        dp_ledger_apply(&ledger, &record, &hash, admitted);
    }
    return status;
}

/* Rounds without a sign of the others. */
static void run_alone(uint32_t rounds, uint32_t after_s)
{
    for (uint32_t i = 0; i < rounds; i++) {
        draft_round(0, 0, after_s);
        assert_int_equal(finish(), DP_OK);
    }
}

static void join(uint32_t index, uint16_t uses)
{
    draft_round(index, uses, 1);
    assert_int_equal(finish(), DP_OK);
}

static dp_roster_entry *entry_of(uint32_t index)
{
    const dp_peer peer = kit_peer(index);
    const uint32_t at = dp_ledger_find(&ledger, &peer);

    return at != DP_NOBODY ? &ledger.roster[at] : NULL;
}

static void fill_up(void)
{
    for (uint32_t i = 1; i < PLACES; i++) {
        join(i, 0);
    }
}

static void a_run_sees_more_identities_than_it_has_places(void **state)
{
    (void)state;
    fill_up();
    for (uint32_t i = PLACES; i < 3 * PLACES; i++) {
        draft_round(i, 0, 1);
        assert_int_equal(finish(), DP_DENIED); /* The run is full, */
        run_alone(DP_GAP_MAX + 1, DAY);        /* until the others are away for long. */
        draft_round(i, 0, 1);
        put_out(i - PLACES + 1);
        assert_int_equal(finish(), DP_OK);
        assert_int_equal(ledger.n_members, PLACES);
        assert_int_equal(entry_of(i - PLACES + 1)->gone, DP_REMOVE_ABSENT);
        assert_int_equal(entry_of(i)->gone, 0);
    }
}

static void only_who_is_away_is_put_out_and_only_for_a_newcomer(void **state)
{
    (void)state;
    fill_up();
    run_alone(DP_GAP_MAX + 1, 1); /* Many rounds, and little time: */
    draft_round(5, 0, 1);
    put_out(1);
    assert_int_equal(finish(), DP_DENIED);
    draft_round(0, 0, 8 * DAY);
    assert_int_equal(finish(), DP_OK);
    draft_round(0, 0, 1);
    put_out(1);
    assert_int_equal(finish(), DP_DENIED); /* no newcomer needs its place, */
    draft_round(5, 0, 1);
    put_out(0);
    assert_int_equal(finish(), DP_DENIED); /* no record admits the founder again, */
    draft_round(1, 0, 1);
    assert_int_equal(finish(), DP_OK); /* and this one is back. */
    draft_round(5, 0, 8 * DAY);
    put_out(1);
    assert_int_equal(finish(), DP_DENIED); /* Much time, and few rounds. */
    ledger.voters[ledger.n_voters++].peer = kit_peer(2);
    draft_round(5, 0, 1);
    record.n_state = 2;
    put_out(2);
    assert_int_equal(finish(), DP_DENIED); /* A voter stays. */
    ledger.n_voters = 1;
    draft_round(5, 0, 1);
    put_out(2);
    assert_int_equal(finish(), DP_OK);
}

static void who_comes_back_is_the_one_that_it_was(void **state)
{
    (void)state;
    join(1, 1); /* Its invite has one use. */
    join(2, 0);
    join(3, 0);
    run_alone(1, 1);
    entry_of(1)->fenced = 7;
    const uint64_t own = entry_of(1)->lease.reach.own;
    run_alone(DP_GAP_MAX + 1, DAY);
    draft_round(4, 0, 1);
    put_out(1);
    assert_int_equal(finish(), DP_OK);
    assert_int_equal(entry_of(1)->lease.n, 0); /* Others have its samples; */
    assert_int_equal(entry_of(1)->lease.reach.leased, entry_of(1)->lease.granted);
    const dp_peer peer = kit_peer(1);
    assert_false(dp_ledger_barred(&ledger, &peer));
    run_alone(DP_GAP_MAX + 1, DAY);
    draft_round(1, 1, 1);
    put_out(2);
    record.listed[1].reach.own = own; /* its own samples do not count twice; */
    dp_ready ready = dp_ready_of_listed(&record, &record.listed[1]);
    const dp_crypto crypto = kit_crypto(1);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(record.listed[1].signature, ready.signature, sizeof ready.signature);
    assert_int_equal(finish(), DP_DENIED);
    draft_round(1, 1, 1);
    put_out(2);
    assert_int_equal(finish(), DP_OK); /* and the use of the invite is its own. */
    assert_int_equal(entry_of(1)->fenced, 7);
    assert_int_equal(entry_of(1)->gone, 0);
    assert_true(entry_of(1)->lease.reach.own > own);
}

static void a_row_is_another_s_once_nothing_of_it_matters(void **state)
{
    (void)state;
    ledger.rows_max = PLACES + 2; /* Instead of 1,024 more. */
    join(1, 0);
    join(2, 0);
    join(3, 0);
    /* As if by records: two members that cannot be forgotten yet, */
    entry_of(1)->gone = DP_REMOVE_REVOKED;
    entry_of(2)->gone = DP_REMOVE_LEFT;
    entry_of(2)->strict = true;
    ledger.n_members -= 2;
    join(4, 0);
    join(5, 0); /* in six rows with four members. */
    run_alone(DP_GAP_MAX + 1, DAY);
    draft_round(6, 0, 1);
    put_out(3);
    assert_int_equal(finish(), DP_DENIED);
    entry_of(2)->until_ms = ledger.time_ms - 1; /* Its invite admits no node any more. */
    draft_round(6, 0, 1);
    put_out(3);
    assert_int_equal(finish(), DP_OK);
    assert_null(entry_of(2));
    assert_int_equal(entry_of(1)->gone, DP_REMOVE_REVOKED);
    const dp_peer revoked = kit_peer(1);
    assert_true(dp_ledger_barred(&ledger, &revoked));
    run_alone(DP_GAP_MAX + 1, DAY); /* A member that is away is forgotten anyway. */
    draft_round(7, 0, 1);
    put_out(4);
    assert_int_equal(finish(), DP_OK);
    assert_null(entry_of(3));
    assert_int_equal(entry_of(7)->gone, 0);
    assert_int_equal(entry_of(7)->fenced, 0);
    assert_int_equal(ledger.n_roster, PLACES + 2);
}

static void what_is_said_of_the_absent_stands_in_records_alone(void **state)
{
    uint8_t bytes[256];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    const dp_remove remove = {.peer = kit_peer(3), .reason = DP_REMOVE_ABSENT};
    const dp_crypto crypto = kit_crypto(3);
    dp_remove back;

    (void)state;
    dp_remove_write(&writer, &remove);
    assert_int_equal(writer.size, 32 + 1);
    dp_reader reader = dp_reader_of(dp_view_of(bytes, writer.size));
    assert_true(dp_remove_read(&reader, &back));
    assert_int_equal(dp_reader_finish(&reader), DP_OK);
    assert_memory_equal(&back, &remove, sizeof back);
    assert_false(dp_remove_verify(&back, &crypto, &ledger.run));
}

/* Of the rows that may be given away one without a fence is first, then the one of the member that
 * went first; and a row counts as left exactly if it may be given away. */
static void of_rows_that_matter_no_more_one_without_a_fence_goes_first(void **state)
{
    const struct {
        uint32_t fenced[3];
        uint32_t slots[3];
        uint32_t given;
    } cases[] = {
        {{0, 0, 0}, {9, 7, 8}, 2}, {{0, 0, 0}, {7, 7, 8}, 1}, {{5, 0, 0}, {1, 9, 8}, 3},
        {{0, 5, 5}, {9, 1, 2}, 1}, {{5, 5, 5}, {9, 8, 7}, 3}, {{0, 0, 5}, {9, 8, 1}, 2},
    };

    (void)state;
    for (uint32_t i = 1; i <= 3; i++) {
        join(i, 0);
    }
    ledger.rows_max = ledger.n_roster;
    assert_int_equal(dp_ledger_rows_left(&ledger), 0);
    for (uint32_t k = 0; k < 3; k++) {
        entry_of(k + 1)->gone = DP_REMOVE_LEFT;
        ledger.n_members--;
        assert_int_equal(dp_ledger_rows_left(&ledger), k + 1);
    }
    static const dp_remove_reason reasons[] = {DP_REMOVE_LEFT, DP_REMOVE_ABSENT, DP_REMOVE_REVOKED,
                                               DP_REMOVE_HARMFUL};
    for (uint32_t i = 0; i < 4; i++) {
        dp_roster_entry *entry = entry_of(1);
        entry->gone = reasons[i];
        entry->until_ms = 0;
        assert_int_equal(dp_ledger_rows_left(&ledger), i < 2 ? 3 : 2);
        entry->until_ms = ledger.time_ms; /* A credential may be made with its invite yet. */
        assert_int_equal(dp_ledger_rows_left(&ledger), i < 2 ? 3 : 2);
        entry->until_ms = ledger.time_ms - 1;
        assert_int_equal(dp_ledger_rows_left(&ledger), 3);
        entry->until_ms = 0;
        entry->gone = DP_REMOVE_LEFT;
    }
    const dp_roster_entry before[3] = {*entry_of(1), *entry_of(2), *entry_of(3)};
    for (uint32_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint32_t rows[3];
        for (uint32_t k = 0; k < 3; k++) {
            rows[k] = (uint32_t)(entry_of(k + 1) - ledger.roster);
            entry_of(k + 1)->fenced = cases[c].fenced[k];
            entry_of(k + 1)->gone_slot = cases[c].slots[k];
        }
        const dp_peer newcomer = kit_peer(9);
        const dp_peer left = kit_peer(cases[c].given);
        const dp_roster_entry *made = dp_ledger_admit(&ledger, &newcomer);
        assert_int_equal(made - ledger.roster, rows[cases[c].given - 1]);
        assert_int_equal(dp_ledger_find(&ledger, &left), DP_NOBODY);
        assert_int_equal(dp_ledger_find(&ledger, &newcomer), rows[cases[c].given - 1]);
        assert_int_equal(made->fenced, 0);
        assert_int_equal(made->gone, 0);
        /* As before, with the former member in its row. */
        ledger.roster[rows[cases[c].given - 1]].gone = DP_REMOVE_LEFT;
        ledger.roster[rows[cases[c].given - 1]].admitted_slot = 1;
        ledger.roster[rows[cases[c].given - 1]].strict = false;
        for (uint32_t k = 0; k < 3; k++) {
            if (k + 1 != cases[c].given) {
                entry_of(k + 1)->fenced = 1;
            }
        }
        dp_roster_entry *again = dp_ledger_admit(&ledger, &left);
        assert_int_equal(again - ledger.roster, rows[cases[c].given - 1]);
        *again = before[cases[c].given - 1];
        ledger.n_members -= 2;
    }
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, begin, teardown)
    const struct CMUnitTest tests[] = {
        OF(a_run_sees_more_identities_than_it_has_places),
        OF(only_who_is_away_is_put_out_and_only_for_a_newcomer),
        OF(who_comes_back_is_the_one_that_it_was),
        OF(a_row_is_another_s_once_nothing_of_it_matters),
        OF(what_is_said_of_the_absent_stands_in_records_alone),
        OF(of_rows_that_matter_no_more_one_without_a_fence_goes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
