/* Each rule of the parts of a round: a good record, and the same with one thing wrong. */
#include "gossip/record/part_sum.h"
#include "tests/unit/gossip/kit/valid_kit.h"

static dp_listed *list(uint32_t index, uint64_t tokens, unsigned __int128 energy)
{
    dp_listed *listed = kit_list(&ledger, &record, index, tokens, 10, energy);
    const dp_crypto crypto = kit_crypto(index);

    listed->rate = 100 + index;
    dp_ready ready = dp_ready_of_listed(&record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
    return listed;
}

static void add_part(uint32_t part, uint32_t owner, uint32_t from)
{
    dp_part_row *row = &record.parts[part];
    const dp_crypto crypto = kit_crypto(owner);

    *row = (dp_part_row){.has = true, .owner = kit_peer(owner), .bytes = 50, .from = from};
    memset(row->root.bytes, (int)(part + 1), sizeof row->root.bytes);
    dp_part_word word = dp_part_word_of(&record, part);
    assert_true(dp_part_sign(&word, &crypto, &ledger.run, &ledger.fork));
    memcpy(row->signature, word.signature, sizeof row->signature);
}

/* Three voters; 0 and 1 contribute, 2 is late. Part 0 has both, part 1 only the first, part 2
 * none. */
static int setup(void **state)
{
    const dp_peer peers[3] = {kit_peer(0), kit_peer(1), kit_peer(2)};
    const uint32_t rates[3] = {1, 1, 1};

    (void)state;
    kit_begin(100000);
    ledger.parted = true;
    ledger.w_median = 20000;
    ledger.clip_median = 144 * 400; /* Energies count twelvefold squared for one round. */
    ledger.roster[0].included = 5;
    ledger.roster[1].included = 5;
    dp_part_layout_of(&ledger.layout, peers, rates, 3);
    record.parted = true;
    record.n_parts = 3;
    (void)list(0, 1000, 400);
    (void)list(1, 500, 1600);
    record.late[record.n_late++] = kit_peer(2);
    add_part(0, 0, 3);
    add_part(1, 2, 1);
    dp_valid_fill(&ledger, &record);
    return 0;
}

static void a_good_round_of_parts_is_valid_and_is_read_as_it_was_written(void **state)
{
    static uint8_t room[DP_RECORD_BYTES_MAX];
    static dp_record again;
    dp_view bytes;

    (void)state;
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
    assert_int_equal(again.n_parts, 3);
    assert_memory_equal(again.parts[1].signature, record.parts[1].signature, DP_SIGNATURE_BYTES);
    assert_int_equal(again.parts[0].from, 3);
    assert_false(again.parts[2].has);
    assert_int_equal(again.listed[1].rate, 101);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_not_equal(dp_record_decode(&again, dp_view_of(room, size)), DP_OK);
    }
}

/* w: 100,000 clamped to 80,000, and 25,000; a late one has 100,000. The second has four times the
 * energy of before. */
static void weights_are_measured_against_the_record_before(void **state)
{
    (void)state;
    assert_int_equal(record.listed[0].w, 80000);
    assert_int_equal(record.listed[1].w, 25000);
    assert_true(record.w_total == 205000);
    assert_int_equal(record.listed[0].clip, 65536);
    assert_int_equal(record.listed[1].clip, 32768);
    assert_int_equal(record.parts[0].q, (105000ULL << 31) / 205000);
    assert_int_equal(record.parts[1].q, (80000ULL << 31) / 205000);
    ledger.w_median = 0; /* No record before: no weight is clamped and no update is clipped. */
    ledger.clip_median = 0;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(record.listed[0].w, 100000);
    assert_int_equal(record.listed[1].clip, 65536);
}

static void the_form_of_a_round_is_that_of_the_run(void **state)
{
    (void)state;
    ledger.parted = false;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.parted = true;
    record.n_parts = 2;
    assert_int_equal(verdict(), DP_DENIED);
}

static void the_owner_signs_the_contributions_in_a_part(void **state)
{
    (void)state;
    record.parts[1].from = 3;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_BADSIG);
    record.parts[1].from = 1;
    record.parts[1].root.bytes[0] ^= 1;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_BADSIG);
    record.parts[1].root.bytes[0] ^= 1;
    record.parts[1].owner = kit_peer(1);
    assert_int_equal(verdict(), DP_BADSIG);
}

static void a_part_is_of_those_listed_and_owned_by_a_member(void **state)
{
    (void)state;
    record.parts[1].from = 5;
    assert_int_equal(verdict(), DP_DENIED);
    record.parts[1].from = 0;
    assert_int_equal(verdict(), DP_DENIED);
    add_part(1, 9, 1);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_DENIED);
    add_part(1, 2, 1);
    dp_valid_fill(&ledger, &record);
    record.parts[1].q++;
    assert_int_equal(verdict(), DP_DENIED);
}

static void a_contribution_in_no_part_is_not_listed(void **state)
{
    (void)state;
    add_part(0, 0, 1);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_DENIED);
}

/* Both contributions to part 0, added up by who for its owner, node 0. */
static void add_sum(uint32_t who, uint32_t from)
{
    dp_part_row *row = &record.parts[0];
    const dp_crypto collector = kit_crypto(who);
    const dp_crypto owner = kit_crypto(0);
    const dp_peer peer = kit_peer(who);
    const uint32_t index = dp_peer_equal(&record.listed[0].peer, &peer) ? 0 : 1;

    record.n_sums = 1;
    record.sums[0] = (dp_site_sum){.collector = index, .from = from, .bytes = 70};
    memset(record.sums[0].root.bytes, 0x77, sizeof record.sums[0].root.bytes);
    row->first_sum = 0;
    row->n_sums = 1;
    dp_part_word word = dp_part_word_of(&record, 0);
    dp_part_word said = dp_site_sum_word(&word, 0);
    assert_true(dp_site_sum_sign(&said, &collector, &ledger.run, &ledger.fork));
    memcpy(record.sums[0].signature, said.signature, sizeof said.signature);
    word = dp_part_word_of(&record, 0);
    assert_true(dp_part_sign(&word, &owner, &ledger.run, &ledger.fork));
    memcpy(row->signature, word.signature, sizeof row->signature);
}

static void a_record_says_whose_contributions_came_as_whose_sum(void **state)
{
    static uint8_t room[DP_RECORD_BYTES_MAX];
    static dp_record again;
    dp_view bytes;

    (void)state;
    add_sum(1, 3);
    assert_int_equal(verdict(), DP_DENIED); /* Of a run without. */
    ledger.summed = true;
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(dp_record_encode(&record, room, sizeof room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
    assert_int_equal(again.n_sums, 1);
    assert_int_equal(again.parts[0].n_sums, 1);
    assert_memory_equal(&again.sums[0], &record.sums[0], sizeof record.sums[0]);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_not_equal(dp_record_decode(&again, dp_view_of(room, size)), DP_OK);
    }
    record.sums[0].signature[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    add_sum(1, 3);
    record.sums[0].root.bytes[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    add_sum(1, 3);
    record.parts[0].n_sums = 0; /* As if all had come as objects. */
    assert_int_equal(verdict(), DP_BADSIG);
}

static void a_sum_is_of_those_in_its_part(void **state)
{
    (void)state;
    ledger.summed = true;
    add_sum(1, 3);
    record.sums[0].from = 1;
    assert_int_equal(verdict(), DP_DENIED);
    record.sums[0].from = 5;
    assert_int_equal(verdict(), DP_DENIED);
    record.sums[0].from = 3;
    record.sums[0].collector = 2;
    assert_int_equal(verdict(), DP_DENIED);
}

static void energy_is_what_its_author_signed(void **state)
{
    (void)state;
    record.listed[1].energy--;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_BADSIG);
}

static void the_next_layout_follows_from_the_record(void **state)
{
    const dp_hash hash = {{9}};

    (void)state;
    assert_int_equal(verdict(), DP_OK);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.layout.cuts.n, 2);
    const dp_peer second = kit_peer(1);
    assert_true(dp_peer_equal(&ledger.layout.owners[1], &second));
    assert_int_equal(ledger.w_median, 25000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_good_round_of_parts_is_valid_and_is_read_as_it_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_measured_against_the_record_before, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_form_of_a_round_is_that_of_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(the_owner_signs_the_contributions_in_a_part, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_part_is_of_those_listed_and_owned_by_a_member, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_contribution_in_no_part_is_not_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_record_says_whose_contributions_came_as_whose_sum, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_sum_is_of_those_in_its_part, setup, teardown),
        cmocka_unit_test_setup_teardown(energy_is_what_its_author_signed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_layout_follows_from_the_record, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
