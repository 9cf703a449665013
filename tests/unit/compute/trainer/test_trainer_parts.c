/* The trainer in rounds of parts. */
#include "tests/unit/compute/parts_kit.h"

#include <math.h>

#include "base/alloc.h"
#include "compute/codec/feedback.h"

enum { STEPS = 2, ROUNDS = 3, BETA_MILLI = 950 };

static dp_manifest settings(dp_codec_kind codec, uint32_t mu_milli)
{
    dp_manifest m = node_settings(codec, BETA_MILLI);
    m.outer_mu_milli = mu_milli;
    return m;
}

static node open_member(const dp_manifest *m, uint8_t member)
{
    return node_open_with(m, (dp_trainer_setup){.member = {member}});
}

static void open_members(node *nodes, uint32_t n, const dp_manifest *m)
{
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = open_member(m, (uint8_t)(i + 1));
    }
}

static void close_members(node *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        node_close(&nodes[i]);
    }
}

/* a of the publication, if asked for: the caller frees it. */
static void publish(kit_round *r, const node *x, uint32_t i, float **a)
{
    dp_view blob;
    dp_view bytes;
    node_train(x, STEPS);
    CHECK_OK(dp_trainer_publish(x->trainer, false, &blob, &bytes));
    kit_cut(r, x, i, blob);
    if (a != NULL) {
        *a = test_malloc(bytes.size);
        memcpy(*a, bytes.data, bytes.size);
    }
}

static bool same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

static bool same_theta(const node *a, const node *b)
{
    return same(dp_trainer_theta(a->trainer), dp_trainer_theta(b->trainer), a->n);
}

/* Rounds of these trainers, who must hold the same bytes after each; in round 2 a part is left
 * out. */
static void step_together(uint32_t n, const dp_manifest *m)
{
    node nodes[KIT_NODES_MAX];
    open_members(nodes, n, m);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        kit_round r = kit_round_of(round, n);
        r.has &= round == 2 ? ~2U : ~0U;
        for (uint32_t i = 0; i < n; i++) {
            publish(&r, &nodes[i], i, NULL);
        }
        kit_reduce(&r, &nodes[0], NULL);
        dp_view state;
        kit_apply(&r, &nodes[0], DP_SETTLE_INCLUDED);
        const dp_hash root = node_root(&nodes[0], &state);
        for (uint32_t i = 1; i < n; i++) {
            kit_apply(&r, &nodes[i], DP_SETTLE_INCLUDED);
            const dp_hash other = node_root(&nodes[i], &state);
            CHECK(dp_hash_equal(&root, &other));
            CHECK(dp_trainer_outer(nodes[0].trainer).reach ==
                  dp_trainer_outer(nodes[i].trainer).reach);
        }
        kit_close(&r);
    }
    close_members(nodes, n);
}

static void two_trainers_hold_the_same_bytes(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT4, 0);
    (void)state;
    step_together(2, &m);
}

static void four_trainers_with_momentum_hold_the_same_bytes(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT8, 800);
    (void)state;
    step_together(4, &m);
}

/* One round of parts at one observer, the same as whole blobs at another. */
static void observe(node observers[2], const kit_round *r)
{
    kit_apply(r, &observers[0], DP_SETTLE_NONE);
    kit_apply_whole(r, &observers[1]);
}

/* With sums in fp32 two authors that count and both observers come to the same theta. */
static void step_exactly(kit_round *r, node authors[2], node observers[2])
{
    static const dp_codec plain = {.kind = DP_CODEC_FP32};
    kit_reduce(r, &authors[0], &plain);
    observe(observers, r);
    CHECK(same_theta(&observers[0], &observers[1]));
    for (uint32_t i = 0; i < 2; i++) {
        kit_apply(r, &authors[i], DP_SETTLE_INCLUDED);
        CHECK(same_theta(&observers[0], &authors[i]));
    }
}

static void exact_sums_are_the_whole_exchange_bit_by_bit(void **state)
{
    static const uint32_t momenta[] = {0, 900};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const dp_manifest m = settings(DP_CODEC_FP32, momenta[k]);
        node authors[2];
        node observers[2];
        open_members(authors, 2, &m);
        open_members(observers, 2, &m);
        for (uint64_t round = 1; round <= 2; round++) {
            kit_round r = kit_round_of(round, 2);
            r.alpha = KIT_ONE / 2;
            r.q[0] += 300000001;
            r.q[1] -= 300000001;
            for (uint32_t i = 0; i < 2; i++) {
                publish(&r, &authors[i], i, NULL);
            }
            step_exactly(&r, authors, observers);
            const double reach = dp_trainer_outer(observers[0].trainer).reach;
            CHECK(reach == dp_trainer_outer(observers[1].trainer).reach);
            CHECK((momenta[k] > 0) == (reach != 1));
            kit_close(&r);
        }
        close_members(observers, 2);
        close_members(authors, 2);
    }
}

static void a_result_of_less_than_all_moves_by_its_share(void **state)
{
    static const dp_codec plain = {.kind = DP_CODEC_FP32};
    const dp_manifest m = settings(DP_CODEC_FP32, 0);
    node author = open_member(&m, 1);
    node observers[2];
    (void)state;
    open_members(observers, 2, &m);
    kit_round r = kit_round_of(1, 1);
    r.q_part = 1234567890;
    publish(&r, &author, 0, NULL);
    kit_reduce(&r, &author, &plain);
    kit_apply(&r, &observers[0], DP_SETTLE_NONE);
    r.q[0] = r.q_part; /* Of one contribution alone both are the same product. */
    kit_apply_whole(&r, &observers[1]);
    CHECK(same_theta(&observers[0], &observers[1]));
    kit_close(&r);
    close_members(observers, 2);
    node_close(&author);
}

static void encoding_a_sum_moves_theta_by_half_a_step_at_most(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT8, 0);
    node authors[2];
    node observers[2];
    float largest = 0;
    double moved = 0;
    double told = 0;
    (void)state;
    open_members(authors, 2, &m);
    open_members(observers, 2, &m);
    float *const before = node_copy(dp_trainer_theta(observers[0].trainer), authors[0].n);
    kit_round r = kit_round_of(1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        publish(&r, &authors[i], i, NULL);
    }
    kit_reduce(&r, &authors[0], NULL);
    observe(observers, &r);
    const float *const parts = dp_trainer_theta(observers[0].trainer);
    const float *const whole = dp_trainer_theta(observers[1].trainer);
    for (size_t i = 0; i < authors[0].n; i++) {
        largest = fmaxf(largest, fabsf(whole[i] - before[i]));
    }
    for (size_t i = 0; i < authors[0].n; i++) {
        const double apart = (double)parts[i] - (double)whole[i];
        CHECK(fabs(apart) <= 0.6 * (double)largest / 127 + 1e-6);
        moved += apart * apart;
    }
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        told += r.sums[p].error * r.sums[p].error;
    }
    /* Except for the rounding of theta, the lost part is the one that owners reported. */
    CHECK(moved > 0 && fabs(sqrt(moved / told) - 1) < 0.01);
    test_free(before);
    kit_close(&r);
    close_members(observers, 2);
    close_members(authors, 2);
}

/* e as it must be after a round in which part p counts a iff its bit in taken is set. */
static float *residual_of(const node *x, const float *a, dp_view blob, uint32_t taken)
{
    float *const e = test_malloc(x->n * sizeof *e);
    float *const d = test_malloc(x->n * sizeof *d);
    CHECK_OK(dp_codec_decode(blob, d, x->n));
    dp_feedback_included(e, a, d, KIT_ONE, (float)BETA_MILLI / 1000.0F, x->n);
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        const dp_part_place place = kit_place(x, p);
        if ((taken >> p & 1U) == 0) {
            memcpy(e + place.first, a + place.first, place.n * sizeof *e);
        }
    }
    test_free(d);
    return e;
}

static void a_part_that_is_left_out_keeps_its_work(void **state)
{
    static const uint32_t takens[] = {0xf, 0xd, 0x1, 0x0};
    const dp_manifest m = settings(DP_CODEC_INT8, 0);
    node x = open_member(&m, 1);
    (void)state;
    for (size_t k = 0; k < sizeof takens / sizeof takens[0]; k++) {
        float *a = NULL;
        kit_round r = kit_round_of(k + 1, 1);
        r.has = takens[k];
        publish(&r, &x, 0, &a);
        kit_reduce(&r, &x, NULL);
        float *const theta = node_copy(dp_trainer_theta(x.trainer), x.n);
        kit_apply(&r, &x, DP_SETTLE_INCLUDED);
        float *const e = residual_of(&x, a, dp_buf_view(&r.whole[0]), takens[k]);
        CHECK(same(e, dp_trainer_feedback(x.trainer), x.n));
        for (uint32_t p = 0; p < KIT_PARTS; p++) {
            const dp_part_place place = kit_place(&x, p);
            const bool still =
                same(theta + place.first, dp_trainer_theta(x.trainer) + place.first, place.n);
            CHECK(still == (place.n == 0 || (takens[k] >> p & 1U) == 0));
        }
        test_free(theta);
        test_free(e);
        test_free(a);
        kit_close(&r);
    }
    node_close(&x);
}

/* The files that an earlier process kept: its vector, its blob and the state on which they are
 * based. */
typedef struct remains {
    float *a;
    float *e; /* as it settled them, had it lived */
    dp_buf before;
    dp_buf after;
} remains;

static void keep_state(const node *x, dp_buf *to)
{
    dp_view state;
    (void)node_root(x, &state);
    kit_keep(to, state, (dp_view){0});
}

static remains publish_and_live_on(kit_round *r, const node *x)
{
    remains left = {0};
    keep_state(x, &left.before);
    publish(r, x, 0, &left.a);
    kit_reduce(r, x, NULL);
    kit_apply(r, x, DP_SETTLE_INCLUDED);
    left.e = node_copy(dp_trainer_feedback(x->trainer), x->n);
    keep_state(x, &left.after);
    return left;
}

static void close_remains(remains *left)
{
    dp_buf_close(&left->before);
    dp_buf_close(&left->after);
    test_free(left->e);
    test_free(left->a);
}

static void a_killed_trainer_settles_its_parts_as_if_it_had_lived(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT8, 800);
    node x = open_member(&m, 1);
    node y = open_member(&m, 1);
    kit_round r = kit_round_of(1, 1);
    (void)state;
    r.has = 0xb;
    remains left = publish_and_live_on(&r, &x);
    dp_trainer_earlier earlier = {.kind = DP_RESTORE_PENDING,
                                  .settle = DP_SETTLE_NONE,
                                  .clip = KIT_ONE,
                                  .lambda = KIT_ONE,
                                  .tokens = 77,
                                  .a = dp_view_of(left.a, x.n * sizeof *left.a),
                                  .blob = dp_buf_view(&r.whole[0])};
    /* Killed before the record: pending again, then the record. */
    CHECK_OK(dp_trainer_load(y.trainer, 0, dp_buf_view(&left.before)));
    CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
    kit_apply(&r, &y, DP_SETTLE_INCLUDED);
    CHECK(same_theta(&x, &y));
    CHECK(same(left.e, dp_trainer_feedback(y.trainer), x.n));
    /* Killed after it: from the state that it made. */
    earlier.settle = DP_SETTLE_INCLUDED;
    earlier.cuts = kit_cuts;
    earlier.taken = r.has;
    CHECK_OK(dp_trainer_load(y.trainer, 1, dp_buf_view(&left.after)));
    CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
    CHECK(same(left.e, dp_trainer_feedback(y.trainer), x.n));
    close_remains(&left);
    kit_close(&r);
    node_close(&y);
    node_close(&x);
}

static void a_part_with_more_energy_than_was_told_is_seen(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT8, 0);
    node x = open_member(&m, 1);
    kit_round r = kit_round_of(1, 1);
    float *a = NULL;
    (void)state;
    publish(&r, &x, 0, &a);
    for (size_t i = 0; i < x.n; i++) {
        a[i] *= 8;
    }
    dp_buf louder;
    dp_buf_init(&louder, dp_codec_bytes_max_any(x.n));
    const dp_codec codec = dp_codec_of_run(&m);
    const dp_part_place place = kit_place(&x, 1);
    CHECK_OK(dp_codec_header_at(&codec, place.first, place.n, &louder));
    CHECK_OK(dp_codec_append(&codec, a + place.first, place.first, place.n, &louder));
    unsigned __int128 honest = 0;
    unsigned __int128 energy = 0;
    CHECK_OK(dp_part_energy(dp_buf_view(&r.parts[0][1]), place, &honest));
    CHECK_OK(dp_part_energy(dp_buf_view(&louder), place, &energy));
    CHECK(honest <= r.energy[0]);
    CHECK(energy > r.energy[0]);
    dp_buf_close(&louder);
    test_free(a);
    kit_close(&r);
    node_close(&x);
}

static void gradients_in_parts_are_gradients_in_whole(void **state)
{
    dp_manifest m = settings(DP_CODEC_FP32, 0);
    node authors[2];
    node observers[2];
    (void)state;
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = 1; /* So that the rate depends on how many contribute. */
    open_members(authors, 2, &m);
    open_members(observers, 2, &m);
    for (uint64_t round = 1; round <= 2; round++) {
        kit_round r = kit_round_of(round, 2);
        for (uint32_t i = 0; i < 2; i++) {
            dp_view blob;
            dp_view a;
            node_train(&authors[i], 1);
            CHECK_OK(dp_trainer_publish(authors[i].trainer, false, &blob, &a));
            kit_cut(&r, &authors[i], i, blob);
        }
        step_exactly(&r, authors, observers);
        dp_view bytes[2];
        const dp_hash roots[2] = {node_root(&authors[0], &bytes[0]),
                                  node_root(&observers[1], &bytes[1])};
        CHECK(dp_hash_equal(&roots[0], &roots[1]));
        kit_close(&r);
    }
    close_members(observers, 2);
    close_members(authors, 2);
}

/* As in the first round, of which the founder owns all. */
static void one_part_of_all_is_applied_and_settled_whole(void **state)
{
    static const uint32_t q = UINT32_C(1) << 31;
    static const dp_part_range all = {.first = 0, .end = DP_PART_WHOLE};
    const dp_manifest m = settings(DP_CODEC_INT8, 0);
    const dp_codec codec = dp_codec_of_run(&m);
    node x = open_member(&m, 1);
    float *a = NULL;
    dp_part_sum sum;
    dp_buf out;
    (void)state;
    kit_round r = kit_round_of(1, 1);
    publish(&r, &x, 0, &a);
    dp_buf_init(&out, dp_codec_bytes_max_any(x.n));
    const dp_view blob = dp_buf_view(&r.whole[0]);
    const dp_part_items items = {.blobs = &blob, .q = &q, .n = 1};
    CHECK_OK(dp_part_reduce(&codec, (dp_part_place){.n = x.n}, &items, &out, &sum));
    CHECK(dp_view_equal(dp_buf_view(&out), blob)); /* Of one update alone nothing is lost. */
    const dp_view result = dp_buf_view(&out);
    dp_trainer_record record = kit_record(&r, DP_SETTLE_INCLUDED);
    record.cuts = (dp_part_cuts){.n = 1};
    record.taken = 1;
    record.q = &q;
    record.blobs = &result;
    record.ranges = &all;
    record.n_items = 1;
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    float *const e = residual_of(&x, a, blob, 0xf);
    CHECK(same(e, dp_trainer_feedback(x.trainer), x.n));
    test_free(e);
    test_free(a);
    dp_buf_close(&out);
    kit_close(&r);
    node_close(&x);
}

static void sparse_updates_have_dense_sums(void **state)
{
    const dp_manifest m = settings(DP_CODEC_SPARSE, 0);
    node authors[2];
    node observers[2];
    dp_codec codec;
    uint64_t elements;
    (void)state;
    open_members(authors, 2, &m);
    open_members(observers, 2, &m);
    kit_round r = kit_round_of(1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        publish(&r, &authors[i], i, NULL);
    }
    kit_reduce(&r, &authors[0], NULL);
    CHECK_OK(dp_codec_peek(dp_buf_view(&r.results[0]), &codec, &elements));
    CHECK(codec.kind == DP_CODEC_INT8);
    CHECK(dp_codec_allowed(&codec, &m, 0));
    for (uint32_t i = 0; i < 2; i++) {
        kit_apply(&r, &observers[i], DP_SETTLE_NONE);
    }
    CHECK(same_theta(&observers[0], &observers[1]));
    kit_close(&r);
    close_members(observers, 2);
    close_members(authors, 2);
}

static void a_record_of_bad_parts_changes_nothing(void **state)
{
    const dp_manifest m = settings(DP_CODEC_INT8, 0);
    node x = open_member(&m, 1);
    kit_round r = kit_round_of(1, 1);
    dp_view bytes;
    (void)state;
    publish(&r, &x, 0, NULL);
    kit_reduce(&r, &x, NULL);
    const dp_hash before = node_root(&x, &bytes);
    dp_trainer_record record = kit_record(&r, DP_SETTLE_INCLUDED);
    const dp_view good = r.views[1];
    r.views[1] = dp_view_of(good.data, good.size - 1);
    CHECK_STATUS(dp_trainer_apply(x.trainer, &record), DP_BADMSG);
    r.views[1] = r.views[0];
    CHECK_STATUS(dp_trainer_apply(x.trainer, &record), DP_BADMSG);
    r.views[1] = good;
    r.ranges[1].first = 0;
    CHECK_STATUS(dp_trainer_apply(x.trainer, &record), DP_BADARG);
    r.ranges[1] = dp_part_range_of(&kit_cuts, 1);
    r.q_parts[0] = UINT32_MAX;
    CHECK_STATUS(dp_trainer_apply(x.trainer, &record), DP_BADARG);
    r.q_parts[0] = r.q_part;
    dp_alloc_fail_after(1);
    const dp_status status = dp_trainer_apply(x.trainer, &record);
    dp_alloc_fail_after(0);
    CHECK_STATUS(status, DP_NOMEM);
    const dp_hash after = node_root(&x, &bytes);
    CHECK(dp_hash_equal(&before, &after));
    CHECK_OK(dp_trainer_apply(x.trainer, &record)); /* It is still pending. */
    kit_close(&r);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_trainers_hold_the_same_bytes),
        cmocka_unit_test(four_trainers_with_momentum_hold_the_same_bytes),
        cmocka_unit_test(exact_sums_are_the_whole_exchange_bit_by_bit),
        cmocka_unit_test(a_result_of_less_than_all_moves_by_its_share),
        cmocka_unit_test(encoding_a_sum_moves_theta_by_half_a_step_at_most),
        cmocka_unit_test(a_part_that_is_left_out_keeps_its_work),
        cmocka_unit_test(a_killed_trainer_settles_its_parts_as_if_it_had_lived),
        cmocka_unit_test(a_part_with_more_energy_than_was_told_is_seen),
        cmocka_unit_test(gradients_in_parts_are_gradients_in_whole),
        cmocka_unit_test(one_part_of_all_is_applied_and_settled_whole),
        cmocka_unit_test(sparse_updates_have_dense_sums),
        cmocka_unit_test(a_record_of_bad_parts_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
