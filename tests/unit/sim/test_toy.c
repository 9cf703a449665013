#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/toy.h"

static const dp_part_cuts whole;

static const dp_toy_outcome *outcome(dp_settle settle, uint32_t clip_q16)
{
    static dp_toy_outcome told;

    told = (dp_toy_outcome){.settle = settle, .clip_q16 = clip_q16};
    return &told;
}

static void start(dp_toy *toy, uint32_t member)
{
    dp_toy_model model;

    dp_toy_init(toy, member, 950, member + 7);
    dp_toy_first(5, &model);
    dp_toy_start(toy, 0, &model);
}

static void displacement_is_never_made_or_lost(void **state)
{
    dp_toy toy;
    dp_toy_parcel parcel;

    (void)state;
    start(&toy, 1);
    for (uint64_t round = 1; round < 20; round++) {
        dp_toy_train(&toy, 9);
        dp_toy_publish(&toy, round % 3 == 0, &whole, round, &parcel);
        dp_toy_train(&toy, 4);
        dp_toy_apply(&toy, round, &toy.model,
                     outcome(round % 2 == 0 ? DP_SETTLE_INCLUDED : DP_SETTLE_LEFT_OUT, 40000),
                     round == 7 ? 30000 : 65536);
        assert_true(dp_toy_balanced(&toy));
    }
}

static void left_out_work_is_all_in_the_next_publication(void **state)
{
    dp_toy toy;
    dp_toy_parcel first;
    dp_toy_parcel second;
    dp_toy_vector before;

    (void)state;
    start(&toy, 2);
    dp_toy_train(&toy, 5);
    dp_toy_publish(&toy, false, &whole, 1, &first);
    memcpy(before, toy.a, sizeof before);
    dp_toy_apply(&toy, 1, &toy.model, outcome(DP_SETTLE_LEFT_OUT, 0), 65536);
    dp_toy_publish(&toy, false, &whole, 2, &second);
    assert_memory_equal(toy.a, before, sizeof before);
    assert_int_equal(second.carried, first.work.tokens);
}

static void a_restored_publication_settles_as_the_living_one_would(void **state)
{
    dp_toy toy;
    dp_toy again;
    dp_toy_parcel parcel;

    (void)state;
    start(&toy, 3);
    dp_toy_train(&toy, 5);
    dp_toy_publish(&toy, false, &whole, 1, &parcel);
    start(&again, 3);
    assert_int_equal(dp_toy_restore(&again, false, dp_view_of(parcel.vector, sizeof parcel.vector),
                                    dp_view_of(parcel.blob, parcel.blob_size),
                                    outcome(DP_SETTLE_INCLUDED, 50000), 65536),
                     DP_OK);
    dp_toy_apply(&toy, 1, &toy.model, outcome(DP_SETTLE_INCLUDED, 50000), 65536);
    assert_memory_equal(toy.e, again.e, sizeof toy.e);
    assert_true(dp_toy_balanced(&again));
}

static void settling_twice_is_settling_once(void **state)
{
    dp_toy toy;
    dp_toy_vector once;
    dp_toy_parcel parcel;

    (void)state;
    start(&toy, 3);
    dp_toy_train(&toy, 5);
    dp_toy_publish(&toy, false, &whole, 1, &parcel);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(dp_toy_restore(&toy, false,
                                        dp_view_of(parcel.vector, sizeof parcel.vector),
                                        dp_view_of(parcel.blob, parcel.blob_size),
                                        outcome(DP_SETTLE_LEFT_OUT, 0), 65536),
                         DP_OK);
        if (i == 0) {
            memcpy(once, toy.e, sizeof once);
        }
        assert_true(dp_toy_balanced(&toy));
    }
    assert_memory_equal(toy.e, once, sizeof once);
}

static void a_loaded_state_goes_on_as_the_one_it_was_taken_from(void **state)
{
    dp_toy toy;
    dp_toy_parcel parcel;
    uint8_t bytes[DP_TOY_STATE_BYTES];

    (void)state;
    start(&toy, 4);
    dp_toy_train(&toy, 30);
    dp_toy_publish(&toy, false, &whole, 1, &parcel);
    const dp_toy_term term = {.blob = dp_view_of(parcel.blob, parcel.blob_size), .q = 1U << 31};
    dp_toy_model model = toy.model;
    assert_int_equal(dp_toy_outer(&model, 65536, &term, 1), DP_OK);
    dp_toy_state(1, &model, bytes);
    assert_int_equal(dp_toy_load(&toy, dp_view_of(bytes, sizeof bytes)), DP_OK);
    assert_int_equal(dp_toy_outer(&model, 65536, &term, 1), DP_OK);
    assert_int_equal(dp_toy_outer(&toy.model, 65536, &term, 1), DP_OK);
    assert_memory_equal(&toy.model, &model, sizeof model);
    assert_memory_not_equal(model.m, (dp_toy_vector){0}, sizeof model.m);
}

static void an_exchange_conserves_the_weighted_sum_up_to_rounding(void **state)
{
    dp_toy a;
    dp_toy b;
    dp_toy_parcel from_a;
    dp_toy_parcel from_b;
    dp_toy_vector change_a;
    dp_toy_vector change_b;
    const uint64_t weights_a[2] = {1234, 99};
    const uint64_t weights_b[2] = {99, 1234};

    (void)state;
    start(&a, 1);
    start(&b, 2);
    dp_toy_train(&a, 9);
    dp_toy_train(&b, 3);
    dp_toy_freeze(&a, 1, &from_a);
    dp_toy_freeze(&b, 2, &from_b);
    const dp_view blobs_a[2] = {dp_view_of(from_a.blob, from_a.blob_size),
                                dp_view_of(from_b.blob, from_b.blob_size)};
    const dp_view blobs_b[2] = {blobs_a[1], blobs_a[0]};
    dp_toy_vector before;
    memcpy(before, b.frozen, sizeof before);
    assert_int_equal(dp_toy_mix(&a, blobs_a, weights_a, 65536, change_a), DP_OK);
    assert_int_equal(dp_toy_mix(&b, blobs_b, weights_b, 32768, change_b), DP_OK);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const int64_t sum = 1234 * change_a[i] + 99 * change_b[i];
        assert_in_range(sum + 1333, 0, 2 * 1333);
        assert_int_equal(b.frozen[i] - before[i], change_b[i] / 2); /* Its F was halved since. */
    }
    assert_true(dp_toy_balanced(&a));
    assert_true(dp_toy_balanced(&b));
}

static void any_bytes_give_a_vector_or_a_status(void **state)
{
    dp_toy toy;
    dp_toy_parcel parcel;
    dp_toy_vector out;
    unsigned __int128 energy = 0;

    (void)state;
    start(&toy, 1);
    dp_toy_train(&toy, 3);
    dp_toy_publish(&toy, false, &whole, 1, &parcel);
    for (uint32_t size = 0; size < parcel.blob_size; size++) {
        assert_int_equal(dp_toy_decode(dp_view_of(parcel.blob, size), out, &energy), DP_BADMSG);
    }
    for (uint32_t i = 8; i < parcel.blob_size; i++) {
        uint8_t bent[DP_TOY_BLOB_MAX];
        memcpy(bent, parcel.blob, sizeof bent);
        bent[i] = (uint8_t)(bent[i] ^ 0x80);
        const dp_status status = dp_toy_decode(dp_view_of(bent, parcel.blob_size), out, &energy);
        assert_true(status == DP_OK || status == DP_BADMSG);
    }
}

/* Parts 0 and 2 of three: these are counted, and the rest is as if left out. */
static void a_publication_settles_part_by_part(void **state)
{
    dp_toy toy;
    dp_toy_parcel parcel;
    const dp_part_cuts cuts = {.n = 3, .first = {0, 20000, 40000}};
    const dp_toy_outcome told = {
        .settle = DP_SETTLE_INCLUDED, .clip_q16 = 65536, .cuts = cuts, .taken = 5};
    dp_toy_vector a;
    dp_toy_vector sent;

    (void)state;
    start(&toy, 3);
    dp_toy_train(&toy, 5);
    dp_toy_publish(&toy, false, &cuts, 1, &parcel);
    memcpy(a, toy.a, sizeof a);
    memcpy(sent, toy.sent, sizeof sent);
    dp_toy_apply(&toy, 1, &toy.model, &told, 65536);
    assert_true(dp_toy_balanced(&toy));
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const bool taken = dp_toy_part_of(&cuts, i) != 1;
        assert_int_equal(toy.e[i], taken ? (a[i] - sent[i]) * 950 / 1000 : a[i]);
        assert_int_equal(toy.applied[i], taken ? sent[i] : 0);
    }
}

/* Two of one weight: their mean, in its range alone. */
static void parts_are_added_up_in_their_range(void **state)
{
    dp_toy toys[2];
    dp_toy_parcel parcels[2];
    dp_toy_term terms[2];
    const dp_part_cuts cuts = {.n = 2, .first = {0, 30000}};
    uint8_t blob[DP_TOY_BLOB_MAX];
    uint32_t size = 0;
    dp_toy_vector mean;
    unsigned __int128 energy = 0;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        start(&toys[i], i);
        dp_toy_train(&toys[i], 5);
        dp_toy_publish(&toys[i], true, &cuts, i, &parcels[i]);
        terms[i] = (dp_toy_term){.blob = dp_toy_part(&parcels[i], 1), .q = 1U << 30};
    }
    assert_int_equal(dp_toy_reduce(terms, 2, 30000, DP_PART_WHOLE, 9, blob, &size), DP_OK);
    assert_int_equal(dp_toy_decode(dp_view_of(blob, size), mean, &energy), DP_OK);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const int64_t sum = toys[0].sent[i] + toys[1].sent[i];
        assert_int_equal(mean[i], dp_toy_part_of(&cuts, i) == 1 ? sum / 2 / 4 * 4 : 0);
    }
    terms[1].blob = dp_toy_part(&parcels[1], 0);
    assert_int_equal(dp_toy_reduce(terms, 2, 30000, DP_PART_WHOLE, 9, blob, &size), DP_BADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(displacement_is_never_made_or_lost),
        cmocka_unit_test(left_out_work_is_all_in_the_next_publication),
        cmocka_unit_test(a_restored_publication_settles_as_the_living_one_would),
        cmocka_unit_test(settling_twice_is_settling_once),
        cmocka_unit_test(a_loaded_state_goes_on_as_the_one_it_was_taken_from),
        cmocka_unit_test(an_exchange_conserves_the_weighted_sum_up_to_rounding),
        cmocka_unit_test(any_bytes_give_a_vector_or_a_status),
        cmocka_unit_test(a_publication_settles_part_by_part),
        cmocka_unit_test(parts_are_added_up_in_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
