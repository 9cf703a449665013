/* The values that a trainer measures of others' updates; afterwards it trains on as if it had not
 * measured. */
#include "tests/unit/compute/tiny_node.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group.h"
#include "compute/trainer/trainer_keep.h"

enum { ONE = 65536, STEPS = 6, ROWS_OF_GAIN = 8, SIX_WINDOWS = 6 * TINY_CONTEXT };

static const uint32_t all_of_it = 0x80000000U;

/* The publication of a member, kept in the node's blob. */
static dp_view publish(node *x)
{
    dp_view blob;
    dp_view a;
    CHECK_OK(dp_trainer_publish(x->trainer, false, &blob, &a));
    dp_buf_clear(&x->blob);
    CHECK_OK(dp_buf_append(&x->blob, blob));
    return dp_buf_view(&x->blob);
}

static void apply(const node *x, uint64_t round, dp_settle settle, const dp_view *blobs, size_t n)
{
    const uint32_t halves[2] = {all_of_it / 2, all_of_it / 2};
    const dp_trainer_record record = {.round = round,
                                      .tokens = 100 * round,
                                      .alpha = ONE,
                                      .clip = ONE,
                                      .lambda = ONE,
                                      .settle = settle,
                                      .q = n == 1 ? &all_of_it : halves,
                                      .blobs = blobs,
                                      .n_items = n};
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

static dp_trainer_update update_of(dp_view blob)
{
    return (dp_trainer_update){.blob = blob,
                               .scale = ONE,
                               .tokens = ROWS_OF_GAIN * TINY_CONTEXT,
                               .seed = 7,
                               .member = {2},
                               .own_count = STEPS * TINY_ROWS};
}

static dp_judged judge(const node *x, const dp_trainer_update *update)
{
    dp_judged found;
    CHECK_OK(dp_trainer_judge(x->trainer, update, &found));
    CHECK(!found.failed);
    return found;
}

/* Its codec's blob of the decoded update times factor; the caller frees it. */
static dp_buf times(const node *x, dp_view blob, float factor)
{
    float *const d = test_malloc(x->n * sizeof *d);
    dp_codec codec;
    uint64_t elements;
    dp_buf out;
    dp_buf_init(&out, dp_codec_bytes_max_any(x->n));
    CHECK_OK(dp_codec_peek(blob, &codec, &elements));
    CHECK_OK(dp_codec_decode(blob, d, x->n));
    for (size_t i = 0; i < x->n; i++) {
        d[i] *= factor;
    }
    CHECK_OK(dp_codec_encode(&codec, d, x->n, &out));
    test_free(d);
    return out;
}

static unsigned differences(const dp_judged *a, const dp_judged *b)
{
    unsigned bits = 0;
    for (size_t i = 0; i < DP_LIKENESS_BYTES; i++) {
        bits += (unsigned)__builtin_popcount((unsigned)(a->likeness[i] ^ b->likeness[i]));
    }
    return bits;
}

/* Two members of a run, which have trained from the same weights; the first has published too. */
typedef struct pair {
    node judge;
    node author;
    dp_view update;
} pair;

static pair pair_open(dp_codec_kind codec)
{
    pair p = {.judge = node_open(1, codec, 950, 0), .author = node_open(2, codec, 950, 0)};
    node_train(&p.judge, STEPS);
    node_train(&p.author, STEPS);
    publish(&p.judge);
    p.update = publish(&p.author);
    return p;
}

static void pair_close(pair *p)
{
    node_close(&p->judge);
    node_close(&p->author);
}

static void an_honest_update_helps_and_its_opposite_harms(void **state)
{
    (void)state;
    static const dp_codec_kind kinds[] = {DP_CODEC_SPARSE, DP_CODEC_INT8, DP_CODEC_FP32};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        pair p = pair_open(kinds[i]);
        dp_trainer_update update = update_of(p.update);
        const dp_judged good = judge(&p.judge, &update);
        CHECK(good.compared && good.align > 0);
        CHECK(good.held.micro > 0 && good.claimed.micro > 0);
        CHECK(good.held.micro > 3 * (int64_t)good.held.error_micro && good.held.error_micro > 0);
        CHECK(good.held.tokens == ROWS_OF_GAIN * TINY_CONTEXT);
        CHECK(good.claimed.tokens == ROWS_OF_GAIN * TINY_CONTEXT);
        dp_buf turned = times(&p.judge, p.update, -1);
        update.blob = dp_buf_view(&turned);
        const dp_judged bad = judge(&p.judge, &update);
        CHECK(bad.align == -good.align);
        CHECK(bad.held.micro < -3 * (int64_t)bad.held.error_micro && bad.claimed.micro < 0);
        CHECK(differences(&good, &bad) == 8 * DP_LIKENESS_BYTES);
        dp_buf_close(&turned);
        pair_close(&p);
    }
}

/* Mean loss of theta per token over all that is held out. */
static double held_out_loss(const node *x)
{
    dp_trainer_score score;
    CHECK_OK(dp_trainer_eval(x->trainer, NULL, 0, &score));
    return score.loss;
}

static void the_gain_is_what_the_step_brings_when_it_is_made(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_SPARSE);
    dp_trainer_update update = update_of(p.update);
    update.tokens =
        UINT32_MAX; /* All windows: the order in which they are drawn does not matter. */
    const dp_judged found = judge(&p.judge, &update);
    const double before = held_out_loss(&p.judge);
    apply(&p.judge, 1, DP_SETTLE_LEFT_OUT, &p.update, 1);
    const double gain = before - held_out_loss(&p.judge);
    CHECK(gain > 0 && fabs(1e6 * gain - (double)found.held.micro) < 10 + 1e-3 * fabs(1e6 * gain));
    pair_close(&p);
}

static void clipping_shortens_the_step(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_INT8);
    dp_trainer_update update = update_of(p.update);
    const dp_judged whole = judge(&p.judge, &update);
    update.scale = ONE / 16;
    const dp_judged clipped = judge(&p.judge, &update);
    CHECK(clipped.held.micro > 0 && clipped.held.micro < whole.held.micro / 2);
    CHECK(clipped.align == whole.align && differences(&whole, &clipped) == 0);
    update.scale = 0;
    const dp_judged nothing = judge(&p.judge, &update);
    CHECK(nothing.held.micro == 0 && nothing.held.error_micro == 0 && nothing.held.tokens > 0);
    pair_close(&p);
}

static void an_update_that_destroys_the_model_has_the_worst_gain(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_FP32);
    dp_trainer_update update = update_of(p.update);
    float *const theta = node_copy(dp_trainer_theta(p.judge.trainer), p.judge.n);
    dp_buf huge = times(&p.judge, p.update, 0x1p60F);
    update.blob = dp_buf_view(&huge);
    const dp_judged found = judge(&p.judge, &update);
    CHECK(found.held.micro < -1000000 && found.claimed.micro < -1000000);
    CHECK(found.held.micro >= -DP_GAIN_MICRO_MAX);
    CHECK(memcmp(theta, dp_trainer_theta(p.judge.trainer), 4 * p.judge.n) == 0);
    dp_buf_close(&huge);
    test_free(theta);
    pair_close(&p);
}

/* The CPU's table with some changed results. */
static dp_status apply_outcome;
static double loss_outcome;

static dp_status apply_with_outcome(dp_engine *e, const dp_consensus_items *items,
                                    const dp_outer *outer, dp_outer_seen *seen)
{
    DP_TRY(dp_backend_cpu()->apply(e, items, outer, seen));
    return apply_outcome;
}

static dp_status loss_with_outcome(dp_engine *e, dp_vector weights, const dp_gpt_batch *batch,
                                   double *loss)
{
    DP_TRY(dp_backend_cpu()->loss(e, weights, batch, loss));
    if (!isfinite(loss_outcome)) {
        return DP_DIVERGED;
    }
    return DP_OK;
}

static void weights_or_losses_that_are_not_finite_are_an_answer_but_for_theta(void **state)
{
    (void)state;
    static dp_backend backend;
    backend = *dp_backend_cpu();
    backend.apply = apply_with_outcome;
    backend.loss = loss_with_outcome;
    const dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    node x = node_open_with(&m, (dp_trainer_setup){.member = {1}, .backend = &backend});
    node_train(&x, 1);
    dp_judged found = {.align = 3};
    const dp_trainer_update update = update_of(publish(&x));
    float *const theta = node_copy(dp_trainer_theta(x.trainer), x.n);
    apply_outcome = DP_DIVERGED;
    CHECK_OK(dp_trainer_judge(x.trainer, &update, &found));
    CHECK(found.held.micro == -DP_GAIN_MICRO_MAX && found.held.error_micro == 0);
    CHECK(found.claimed.micro == -DP_GAIN_MICRO_MAX);
    apply_outcome = DP_IO;
    CHECK_STATUS(dp_trainer_judge(x.trainer, &update, &found), DP_IO);
    apply_outcome = DP_OK;
    loss_outcome = (double)NAN;
    found.align = 3;
    CHECK_STATUS(dp_trainer_judge(x.trainer, &update, &found), DP_DIVERGED);
    CHECK(found.align == 3);
    loss_outcome = 0;
    CHECK(memcmp(theta, dp_trainer_theta(x.trainer), 4 * x.n) == 0);
    test_free(theta);
    node_close(&x);
}

static void windows_are_whole_distinct_and_no_more_than_there_are(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_SPARSE);
    dp_trainer_update update = update_of(p.update);
    update.tokens = SIX_WINDOWS - 1;
    update.own_count = 2;
    dp_judged found = judge(&p.judge, &update);
    CHECK(found.held.tokens == SIX_WINDOWS && found.claimed.tokens == 2 * TINY_CONTEXT);
    const dp_sample_range ranges[2] = {{.first = 11, .count = 1}, {.first = 40, .count = 2}};
    update.ranges = ranges;
    update.n_ranges = 2;
    found = judge(&p.judge, &update);
    CHECK(found.claimed.tokens == 5 * TINY_CONTEXT);
    update.n_ranges = 0;
    update.own_count = 0;
    found = judge(&p.judge, &update);
    CHECK(found.claimed.tokens == 0 && found.claimed.micro == 0 && found.held.tokens > 0);
    update.own_count = UINT64_MAX;
    found = judge(&p.judge, &update);
    CHECK(found.claimed.tokens == SIX_WINDOWS);
    update.tokens = 1;
    found = judge(&p.judge, &update);
    CHECK(found.held.tokens == TINY_CONTEXT);
    CHECK(found.held.error_micro == (uint64_t)llabs(found.held.micro)); /* Of a single one. */
    update.tokens = 0;
    found = judge(&p.judge, &update);
    CHECK(found.held.tokens == 0 && found.claimed.tokens == 0 && found.compared);
    update.tokens = UINT32_MAX;
    found = judge(&p.judge, &update);
    CHECK(found.claimed.tokens == 256 * TINY_CONTEXT);
    pair_close(&p);
}

static void another_seed_draws_other_windows_and_the_same_one_the_same(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_SPARSE);
    dp_trainer_update update = update_of(p.update);
    update.own_count = 1000;
    const dp_judged first = judge(&p.judge, &update);
    const dp_judged again = judge(&p.judge, &update);
    assert_memory_equal(&first.held, &again.held, sizeof first.held);
    assert_memory_equal(&first.claimed, &again.claimed, sizeof first.claimed);
    update.seed++;
    const dp_judged other = judge(&p.judge, &update);
    CHECK(first.held.micro != other.held.micro && first.claimed.micro != other.claimed.micro);
    CHECK(first.align == other.align && differences(&first, &other) == 0);
    pair_close(&p);
}

/* The mean loss on the claimed training samples, from the reports of the steps. */
static void claimed_samples_are_those_that_the_author_draws(void **state)
{
    (void)state;
    const dp_sample_range range = {.first = 5, .count = TINY_ROWS};
    for (int leased = 0; leased <= 1; leased++) {
        node author = node_open(2, DP_CODEC_FP32, 950, 0);
        node x = node_open(1, DP_CODEC_FP32, 950, 0);
        if (leased) {
            CHECK_OK(dp_trainer_lease(author.trainer, &(dp_reach){0}, &range, 1));
        }
        node_train(&author, 1);
        const double loss = dp_trainer_progress_of(author.trainer).loss; /* At theta. */
        /* An update that takes theta to 0, where every token is as likely: loss is log(vocabulary)
         * there. */
        dp_buf all;
        dp_buf_init(&all, dp_codec_bytes_max_any(x.n));
        const dp_codec exact = {.kind = DP_CODEC_FP32};
        CHECK_OK(dp_codec_encode(&exact, dp_trainer_theta(x.trainer), x.n, &all));
        dp_trainer_update update = update_of(dp_buf_view(&all));
        update.own_count = leased ? 0 : TINY_ROWS;
        update.ranges = &range;
        update.n_ranges = leased ? 1 : 0;
        const dp_judged found = judge(&x, &update);
        CHECK(found.claimed.tokens == TINY_ROWS * TINY_CONTEXT);
        CHECK(fabs(loss - log(TINY_VOCAB) - 1e-6 * (double)found.claimed.micro) < 2e-6);
        update.member[0] = 3; /* Its line is another. */
        const dp_judged other = judge(&x, &update);
        CHECK((other.claimed.micro == found.claimed.micro) == (leased != 0));
        dp_buf_close(&all);
        node_close(&author);
        node_close(&x);
    }
}

static void the_first_judgement_compares_with_what_is_pending_alone(void **state)
{
    (void)state;
    node author = node_open(2, DP_CODEC_SPARSE, 950, 0);
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&author, STEPS);
    node_train(&x, STEPS);
    const dp_view blob = publish(&author);
    dp_trainer_update update = update_of(blob);
    update.tokens = 0;
    CHECK(!judge(&x, &update).compared);
    publish(&x);
    const dp_judged first = judge(&x, &update);
    CHECK(first.compared && first.align != 0);
    apply(&x, 1, DP_SETTLE_LEFT_OUT, &blob, 1);
    CHECK(judge(&x, &update).align == first.align); /* Settled, and newest all the same. */
    node_train(&x, 1);
    publish(&x);
    const dp_judged second = judge(&x, &update);
    CHECK(second.compared && second.align != first.align);
    CHECK_OK(dp_trainer_init(x.trainer));
    CHECK(!judge(&x, &update).compared);
    node_close(&author);
    node_close(&x);
}

static void bytes_that_are_no_update_and_missing_memory_give_a_status(void **state)
{
    (void)state;
    pair p = pair_open(DP_CODEC_SPARSE);
    dp_trainer_update update = update_of(p.update);
    dp_judged found = {.align = 5};
    update.blob.size--;
    CHECK_STATUS(dp_trainer_judge(p.judge.trainer, &update, &found), DP_BADMSG);
    update.blob.size = 0;
    CHECK_STATUS(dp_trainer_judge(p.judge.trainer, &update, &found), DP_BADMSG);
    CHECK(found.align == 5);
    update.blob = p.update;
    CHECK_OK(dp_trainer_judge(p.judge.trainer, &update, &found));
    node_train(&p.judge, 1);
    /* There was no memory for the reference, which is allocated the first time. */
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 1);
    publish(&x);
    update.tokens = 0;
    dp_alloc_fail_after(1);
    CHECK_OK(dp_trainer_judge(x.trainer, &update, &found));
    dp_alloc_fail_after(0);
    CHECK(!found.compared);
    CHECK_OK(dp_trainer_judge(x.trainer, &update, &found));
    CHECK(found.compared);
    node_close(&x);
    pair_close(&p);
}

/* Two rounds of a member in which it trains between, and while, its publication is undecided.
 * judging: it looks at the other's update at every turn. Returns its weights; the caller frees
 * them. */
static float *two_rounds(const dp_manifest *m, uint32_t processes, bool judging, dp_view other,
                         dp_hash *root)
{
    dp_process_group *team = NULL;
    if (processes > 1) {
        CHECK_OK(dp_process_group_start(&team, processes, 0, NULL));
    }
    node x = node_open_with(m, (dp_trainer_setup){.member = {1}, .seed = 3, .team = team});
    const dp_trainer_update update = update_of(other);
    dp_judged found;
    dp_view state;
    for (uint64_t round = 1; round <= 2; round++) {
        dp_trainer_aim(x.trainer, round, 100 * round);
        for (uint32_t i = 0; i < 3 * TINY_ROWS; i++) { /* Micro-batches, not steps. */
            CHECK_OK(dp_trainer_work(x.trainer));
            if (judging) {
                CHECK_OK(dp_trainer_judge(x.trainer, &update, &found));
            }
        }
        publish(&x);
        if (judging) {
            CHECK_OK(dp_trainer_judge(x.trainer, &update, &found));
        }
        CHECK_OK(dp_trainer_work(x.trainer));
        const dp_view blobs[2] = {dp_buf_view(&x.blob), other};
        apply(&x, round, DP_SETTLE_INCLUDED, blobs, 2);
    }
    *root = node_root(&x, &state);
    CHECK(!judging || found.held.tokens > 0 || m->exchange == DP_EXCHANGE_GRADIENTS);
    float *const params = node_copy(dp_trainer_params(x.trainer), x.n);
    node_close(&x);
    dp_process_group_close(team);
    return params;
}

static void check_unchanged(const dp_manifest *m, uint32_t processes)
{
    node author = node_open_with(m, (dp_trainer_setup){.member = {2}});
    dp_trainer_aim(author.trainer, 1, 0);
    node_train(&author, 1);
    dp_buf other;
    dp_buf_init(&other, dp_codec_bytes_max_any(author.n));
    CHECK_OK(dp_buf_append(&other, publish(&author)));
    const size_t n = author.n;
    node_close(&author); /* Processes start before there are threads. */
    dp_hash roots[2];
    float *const without = two_rounds(m, processes, false, dp_buf_view(&other), &roots[0]);
    float *const with = two_rounds(m, processes, true, dp_buf_view(&other), &roots[1]);
    CHECK(dp_hash_equal(&roots[0], &roots[1]));
    CHECK(memcmp(without, with, 4 * n) == 0);
    test_free(without);
    test_free(with);
    dp_buf_close(&other);
}

/* A batch of one row: how many make a micro-batch would follow the clock. */
static void training_goes_on_to_the_bit_as_if_nothing_was_judged(void **state)
{
    (void)state;
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    m.batch_rows = 1;
    check_unchanged(&m, 1);
    check_unchanged(&m, 2);
    m.outer_mu_milli = 500;
    check_unchanged(&m, 1);
    m.outer_mu_milli = 0;
    m.precision = DP_PRECISION_BF16;
    m.weights = DP_WEIGHTS_BF16_SR;
    check_unchanged(&m, 1);
}

/* Rows of a micro-batch double at most, from one on: a step of four rows begins with less than
 * all. */
static void between_micro_batches_of_a_step_too(void **state)
{
    (void)state;
    node a = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node b = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node author = node_open(2, DP_CODEC_SPARSE, 950, 0);
    node_train(&author, 1);
    const dp_trainer_update update = update_of(publish(&author));
    dp_judged found;
    CHECK_OK(dp_trainer_work(b.trainer));
    CHECK(!dp_trainer_between_steps(b.trainer));
    CHECK_OK(dp_trainer_judge(b.trainer, &update, &found));
    CHECK(!dp_trainer_between_steps(b.trainer));
    node_train(&a, 1);
    node_train(&b, 1);
    const double loss = dp_trainer_progress_of(a.trainer).loss;
    CHECK(fabs(loss - dp_trainer_progress_of(b.trainer).loss) < 1e-5 * loss);
    double off = 0;
    double moved = 0;
    for (size_t i = 0; i < a.n;
         i++) { /* Micro-batches follow the clock, and sums of gradients them. */
        const double x = (double)dp_trainer_params(a.trainer)[i];
        off += fabs(x - (double)dp_trainer_params(b.trainer)[i]);
        moved += fabs(x - (double)dp_trainer_theta(a.trainer)[i]);
    }
    CHECK(moved > 0 && off < 1e-2 * moved);
    node_close(&author);
    node_close(&a);
    node_close(&b);
}

static void a_run_of_gradients_has_no_gain(void **state)
{
    (void)state;
    dp_manifest m = node_settings(DP_CODEC_FP32, 950);
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = 1;
    node x = node_open_with(&m, (dp_trainer_setup){.member = {1}});
    while (!dp_trainer_waits(x.trainer)) {
        CHECK_OK(dp_trainer_work(x.trainer));
    }
    dp_trainer_update update = update_of(publish(&x));
    const dp_judged found = judge(&x, &update);
    CHECK(found.compared && found.align > ONE - 100);
    CHECK(found.held.tokens == 0 && found.claimed.tokens == 0);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_update_helps_and_its_opposite_harms),
        cmocka_unit_test(the_gain_is_what_the_step_brings_when_it_is_made),
        cmocka_unit_test(clipping_shortens_the_step),
        cmocka_unit_test(an_update_that_destroys_the_model_has_the_worst_gain),
        cmocka_unit_test(weights_or_losses_that_are_not_finite_are_an_answer_but_for_theta),
        cmocka_unit_test(windows_are_whole_distinct_and_no_more_than_there_are),
        cmocka_unit_test(another_seed_draws_other_windows_and_the_same_one_the_same),
        cmocka_unit_test(claimed_samples_are_those_that_the_author_draws),
        cmocka_unit_test(the_first_judgement_compares_with_what_is_pending_alone),
        cmocka_unit_test(bytes_that_are_no_update_and_missing_memory_give_a_status),
        cmocka_unit_test(training_goes_on_to_the_bit_as_if_nothing_was_judged),
        cmocka_unit_test(between_micro_batches_of_a_step_too),
        cmocka_unit_test(a_run_of_gradients_has_no_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
