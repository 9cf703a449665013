/* A script in the place of steps: its weights go in and out, its samples are claimed once. */
#include "tests/unit/compute/any_run.h"

#include <math.h>
#include <string.h>

#include "compute/backend/backend_cpu.h"
#include "compute/trainer/trainer_script.h"

enum { ONE = 65536, SAMPLES = 1000, UNIT = 7 };

static any_run run;

static dp_trainer *ready(void)
{
    any_run_open(&run);
    dp_manifest m = any_run_manifest(&run);
    m.unit = UNIT;
    m.outer_mu_milli = 0;
    m.codec = DP_CODEC_FP32;
    float theta[N] = {0};
    dp_buf_clear(&run.init);
    CHECK_OK(dp_state_write(0, theta, NULL, N, &run.init));
    m.init = dp_object_hash(dp_buf_view(&run.init), NULL);
    m.init_bytes = run.init.size;
    any_run_write(&run, &m);
    dp_trainer *const t = any_run_trainer(&run);
    CHECK_OK(dp_trainer_load(t, 0, dp_buf_view(&run.init)));
    dp_trainer_aim(t, 1, 0);
    return t;
}

static void done(dp_trainer *t)
{
    dp_trainer_close(t);
    any_run_close(&run);
}

static void lease(dp_trainer *t, uint64_t leased, uint64_t own, uint64_t first, uint64_t count)
{
    const dp_reach from = {.leased = leased, .own = own};
    const dp_sample_range range = {.first = first, .count = count};
    CHECK_OK(dp_trainer_lease(t, &from, &range, count > 0 ? 1 : 0));
}

/* The script's weights are all value, after a step on so many samples. */
static dp_status give(dp_trainer *t, float value, uint64_t samples)
{
    float weights[N] = {0};
    for (size_t i = 0; i < ELEMENTS; i++) {
        weights[i] = value;
    }
    const dp_script_work work = {.steps = 1, .samples = samples, .loss_sum = 2.5};
    return dp_trainer_take_weights(t, weights, &work);
}

static bool reached(const dp_trainer *t, uint64_t leased, uint64_t own)
{
    const dp_reach reach = dp_trainer_reach(t);
    return reach.leased == leased && reach.own == own;
}

static uint64_t tokens(const dp_trainer *t)
{
    return dp_trainer_progress_of(t).tokens;
}

static void the_work_of_a_script_is_published_with_its_samples_and_losses(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[20];
    dp_view blob;
    dp_view a;
    lease(t, 0, 0, 100, 12);
    CHECK(dp_trainer_draw(t, 20, indices) == 20); /* 12 of the lease, 8 of the own line. */
    for (int i = 0; i < 20; i++) {
        CHECK(indices[i] < SAMPLES);
    }
    CHECK(reached(t, 0, 0)); /* Drawn is not used. */
    CHECK_OK(give(t, -0.5F, 15));
    CHECK(reached(t, 12, 3));
    const dp_trainer_progress now = dp_trainer_progress_of(t);
    CHECK(now.steps == 1 && now.tokens == 15 * UNIT && fabs(now.loss - 2.5) < 1e-12);
    CHECK_OK(dp_trainer_publish(t, false, &blob, &a));
    float first;
    memcpy(&first, a.data, sizeof first);
    CHECK(first == 0.5F); /* theta - x */
    CHECK(tokens(t) == 0 && reached(t, 12, 3));
    done(t);
}

static void a_pass_visits_every_index_once(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[SAMPLES];
    bool seen[SAMPLES] = {false};
    lease(t, 0, 0, 0, SAMPLES); /* a whole pass */
    CHECK(dp_trainer_draw(t, SAMPLES, indices) == SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        CHECK(!seen[indices[i]]);
        seen[indices[i]] = true;
    }
    done(t);
}

static void more_samples_than_were_drawn_are_refused_and_nothing_changes(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[4];
    CHECK(dp_trainer_draw(t, 4, indices) == 4);
    CHECK_STATUS(give(t, 1, 5), DP_BADARG);
    CHECK(dp_trainer_params(t)[0] == 0 && tokens(t) == 0 && reached(t, 0, 0));
    CHECK_OK(give(t, 1, 4));
    CHECK(dp_trainer_params(t)[0] == 1 && reached(t, 0, 4));
    done(t);
}

static void weights_that_are_not_finite_are_refused_and_nothing_changes(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[4];
    CHECK(dp_trainer_draw(t, 4, indices) == 4);
    CHECK_OK(give(t, 1, 2));
    CHECK_STATUS(give(t, NAN, 2), DP_DIVERGED);
    CHECK_STATUS(give(t, INFINITY, 2), DP_DIVERGED);
    CHECK(dp_trainer_params(t)[0] == 1 && tokens(t) == 2 * UNIT && reached(t, 0, 2));
    done(t);
}

static void a_loss_that_is_unknown_leaves_the_mean_of_the_others(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    const float weights[N] = {0};
    const dp_script_work known = {.steps = 2, .loss_sum = 6};
    const dp_script_work unknown = {.steps = 5, .loss_sum = NAN};
    CHECK_OK(dp_trainer_take_weights(t, weights, &known));
    CHECK_OK(dp_trainer_take_weights(t, weights, &unknown));
    const dp_trainer_progress now = dp_trainer_progress_of(t);
    CHECK(now.steps == 7 && fabs(now.loss - 3) < 1e-12);
    done(t);
}

static void what_was_drawn_and_not_used_is_drawn_again_by_the_next_script(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t first[12];
    uint64_t again[12];
    lease(t, 0, 0, 100, 10);
    CHECK(dp_trainer_draw(t, 12, first) == 12);
    CHECK_OK(give(t, 1, 4));
    CHECK_OK(dp_trainer_end_script(t));
    CHECK(reached(t, 4, 0));
    CHECK(dp_trainer_draw(t, 8, again) == 8);
    CHECK(memcmp(first + 4, again, 8 * sizeof again[0]) == 0);
    CHECK_STATUS(give(t, 1, 9), DP_BADARG); /* Those of the one before count no more. */
    CHECK_OK(give(t, 2, 8));
    CHECK(reached(t, 10, 2) && tokens(t) == 12 * UNIT);
    done(t);
}

static void samples_that_the_lease_has_passed_have_no_tokens(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[10];
    lease(t, 0, 0, 100, 10);
    CHECK(dp_trainer_draw(t, 10, indices) == 10);
    lease(t, 50, 0, 700, 10); /* The ten are others' now. */
    CHECK(reached(t, 50, 0));
    CHECK(dp_trainer_draw(t, 10, indices) == 10);
    CHECK_OK(give(t, 1, 15));
    CHECK(reached(t, 55, 0) && tokens(t) == 5 * UNIT);
    done(t);
}

/* After a load nobody knows where the lines go on, until a lease says it. */
static void samples_that_were_drawn_before_the_lease_are_not_claimed(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[8];
    CHECK(dp_trainer_draw(t, 8, indices) == 8);
    lease(t, 30, 5, 400, 10); /* The chain counts five of the own line already. */
    CHECK(reached(t, 30, 8));
    CHECK_OK(give(t, 1, 8));
    CHECK(tokens(t) == 0 && reached(t, 30, 8));
    CHECK(dp_trainer_draw(t, 8, indices) == 8);
    CHECK_OK(give(t, 2, 8));
    CHECK(tokens(t) == 8 * UNIT && reached(t, 38, 8));
    done(t);
}

static void samples_whose_work_is_lost_have_no_tokens(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[10];
    CHECK(dp_trainer_draw(t, 10, indices) == 10);
    dp_trainer_pass_drawn(t, 6);
    CHECK(reached(t, 0, 6) && tokens(t) == 0);
    CHECK_OK(give(t, 1, 4));
    CHECK(tokens(t) == 4 * UNIT && reached(t, 0, 10));
    dp_trainer_pass_drawn(t, 100);
    CHECK(reached(t, 0, 10));
    done(t);
}

static void a_script_can_draw_ahead_only_so_far(void **state)
{
    (void)state;
    enum { AT_ONCE = 1 << 16 };
    dp_trainer *const t = ready();
    uint64_t *const indices = test_calloc(AT_ONCE, sizeof *indices);
    for (int i = 0; i < DP_SCRIPT_DRAWN_MAX / AT_ONCE; i++) {
        CHECK(dp_trainer_draw(t, AT_ONCE, indices) == AT_ONCE);
    }
    CHECK(dp_trainer_draw(t, 1, indices) == 0);
    CHECK_OK(give(t, 1, 3));
    CHECK(dp_trainer_draw(t, AT_ONCE, indices) == 3);
    test_free(indices);
    done(t);
}

/* Leases that come and end while nothing is used: each makes a stretch, and the own line behind it
 * another. */
static void changes_of_the_line_are_kept_up_to_their_limit(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[2];
    uint64_t drawn = 0;
    for (uint64_t i = 0; i < DP_SCRIPT_STRETCHES_MAX / 2; i++) {
        lease(t, i, 0, i, 1);
        drawn += dp_trainer_draw(t, 2, indices);
    }
    CHECK(drawn == DP_SCRIPT_STRETCHES_MAX);
    CHECK(dp_trainer_draw(t, 1, indices) == 1); /* The last line goes on. */
    lease(t, DP_SCRIPT_STRETCHES_MAX / 2, 0, 900, 1);
    CHECK(dp_trainer_draw(t, 1, indices) == 0);
    CHECK_OK(give(t, 1, 1));
    CHECK(dp_trainer_draw(t, 1, indices) == 1);
    done(t);
}

static void the_script_adds_what_rounds_have_moved(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    dp_view blob;
    dp_view a;
    const uint32_t q = 0x80000000U;
    CHECK_OK(give(t, -1, 0));
    CHECK_OK(dp_trainer_publish(t, false, &blob, &a));
    /* The other member's update moves theta twice as far as the own one. */
    float values[N] = {0};
    for (size_t i = 0; i < ELEMENTS; i++) {
        values[i] = 3;
    }
    dp_buf other;
    const dp_codec codec = {.kind = DP_CODEC_FP32};
    dp_buf_init(&other, dp_codec_bytes_max_any(N));
    CHECK_OK(dp_codec_encode(&codec, values, N, &other));
    const dp_view blobs[1] = {dp_buf_view(&other)};
    const dp_trainer_record record = {.round = 1,
                                      .tokens = 10,
                                      .alpha = ONE,
                                      .clip = ONE,
                                      .lambda = ONE,
                                      .settle = DP_SETTLE_LEFT_OUT,
                                      .q = &q,
                                      .blobs = blobs,
                                      .n_items = 1};
    CHECK_OK(dp_trainer_apply(t, &record));
    CHECK(dp_trainer_theta(t)[0] == -3);
    /* Meanwhile the script went on from -1 to -1.5, which x knows nothing of. */
    float moves[N] = {0};
    for (size_t i = 0; i < ELEMENTS; i++) {
        moves[i] = -1;
    }
    CHECK_OK(dp_trainer_give_moves(t, moves));
    float weights[N];
    CHECK_OK(dp_trainer_give_weights(t, weights));
    CHECK(weights[0] == dp_trainer_params(t)[0] && moves[0] == weights[0] + 1);
    CHECK_OK(give(t, -1.5F + moves[0], 0));
    CHECK(dp_trainer_params(t)[0] == weights[0] - 0.5F); /* Its own move is all that is added. */
    dp_buf_close(&other);
    done(t);
}

static void a_record_that_discards_all_work_leaves_drawn_samples_without_tokens(void **state)
{
    (void)state;
    dp_trainer *const t = ready();
    uint64_t indices[8];
    lease(t, 0, 0, 100, 20);
    CHECK(dp_trainer_draw(t, 8, indices) == 8);
    const dp_trainer_record record = {
        .round = 1, .tokens = 10, .alpha = ONE, .clip = ONE, .lambda = 0};
    CHECK_OK(dp_trainer_apply(t, &record));
    CHECK_OK(give(t, 1, 8));
    CHECK(tokens(t) == 0);
    CHECK_OK(dp_trainer_end_script(t)); /* The lease is forgotten, too. */
    CHECK(dp_trainer_draw(t, 1, indices) == 1);
    CHECK_OK(give(t, 1, 1));
    CHECK(dp_trainer_reach(t).own == 1);
    done(t);
}

/* A record of nobody's updates, which settles the pending publication. */
static void settle(dp_trainer *t, uint64_t round, dp_settle how, uint32_t lambda)
{
    const dp_trainer_record record = {
        .round = round, .tokens = 10, .alpha = ONE, .clip = ONE, .lambda = lambda, .settle = how};
    CHECK_OK(dp_trainer_apply(t, &record));
}

static bool offers(const dp_trainer *t, uint32_t steps, uint64_t samples, uint64_t carried)
{
    const dp_trainer_progress offer = dp_trainer_offer(t);
    return offer.steps == steps && offer.tokens == samples * UNIT &&
           offer.carried == carried * UNIT;
}

static float published(dp_trainer *t)
{
    dp_view blob;
    dp_view a;
    float first;
    CHECK_OK(dp_trainer_publish(t, false, &blob, &a));
    memcpy(&first, a.data, sizeof first);
    return first;
}

static dp_trainer *with_a_publication_of_4_samples(void)
{
    dp_trainer *const t = ready();
    uint64_t indices[10];
    lease(t, 0, 0, 100, 20);
    CHECK(dp_trainer_draw(t, 10, indices) == 10);
    CHECK_OK(give(t, -0.5F, 4));
    CHECK(offers(t, 1, 4, 0) && published(t) == 0.5F && offers(t, 0, 0, 0));
    return t;
}

static void a_publication_that_was_left_out_is_offered_again_until_a_record_has_it(void **state)
{
    (void)state;
    dp_trainer *const t = with_a_publication_of_4_samples();
    CHECK_OK(dp_trainer_end_script(t));
    for (uint64_t round = 1; round <= 3; round++) {
        settle(t, round, DP_SETTLE_LEFT_OUT, ONE);
        CHECK(tokens(t) == 0 && offers(t, 1, 4, 0)); /* No progress, and the same work again. */
        CHECK(fabs(dp_trainer_offer(t).loss - 2.5) < 1e-12);
        CHECK(published(t) == 0.5F && reached(t, 4, 0) && offers(t, 0, 0, 0));
    }
    settle(t, 4, DP_SETTLE_INCLUDED, ONE);
    CHECK(offers(t, 0, 0, 0));
    done(t);
}

/* Its share of the round is that of the new work, as that of any member's. */
static void a_publication_that_was_left_out_is_carried_by_the_steps_of_the_next(void **state)
{
    (void)state;
    dp_trainer *const t = with_a_publication_of_4_samples();
    settle(t, 1, DP_SETTLE_LEFT_OUT, ONE);
    CHECK_OK(give(t, -0.25F, 3)); /* From theta on, as all before is in e. */
    CHECK(offers(t, 1, 3, 4) && published(t) == 0.75F);
    settle(t, 2, DP_SETTLE_LEFT_OUT, ONE);
    CHECK(offers(t, 1, 3, 4)); /* All seven samples' work, with the last steps. */
    const dp_script_work expired = {.steps = 2, .samples = 0, .loss_sum = 5};
    const float weights[N] = {0};
    CHECK_OK(dp_trainer_take_weights(t, weights, &expired));
    CHECK(offers(t, 3, 3, 4)); /* Steps without samples alone could not be published. */
    done(t);
}

static void work_that_is_worth_nothing_is_not_offered_again(void **state)
{
    (void)state;
    dp_trainer *const t = with_a_publication_of_4_samples();
    settle(t, 1, DP_SETTLE_LEFT_OUT, 0);
    CHECK(offers(t, 0, 0, 0));
    done(t);
    dp_trainer *const u = with_a_publication_of_4_samples();
    settle(u, 1, DP_SETTLE_LEFT_OUT, ONE);
    CHECK_OK(dp_trainer_load(u, 0, dp_buf_view(&run.init)));
    CHECK(offers(u, 0, 0, 0));
    done(u);
}

/* The row of a node's disk has it, so it outlives the trainer, before and after the record. */
static void a_publication_of_an_earlier_process_is_offered_again(void **state)
{
    (void)state;
    float a[N] = {0};
    for (size_t i = 0; i < ELEMENTS; i++) {
        a[i] = 0.5F;
    }
    dp_buf blob;
    const dp_codec codec = {.kind = DP_CODEC_FP32};
    dp_buf_init(&blob, dp_codec_bytes_max_any(N));
    CHECK_OK(dp_codec_encode(&codec, a, N, &blob));
    dp_trainer_earlier earlier = {.kind = DP_RESTORE_PENDING,
                                  .settle = DP_SETTLE_LEFT_OUT,
                                  .clip = ONE,
                                  .lambda = ONE,
                                  .steps = 6,
                                  .tokens = 9 * UNIT,
                                  .carried = 4 * UNIT,
                                  .a = dp_view_of((const uint8_t *)a, sizeof a),
                                  .blob = dp_buf_view(&blob)};
    dp_trainer *const t = ready();
    CHECK_OK(dp_trainer_restore(t, &earlier));
    CHECK(offers(t, 6, 5, 4) && dp_trainer_offer(t).loss == 0 && published(t) == 0.5F);
    settle(t, 1, DP_SETTLE_INCLUDED, ONE);
    CHECK(offers(t, 0, 0, 0));
    CHECK_OK(dp_trainer_load(t, 0, dp_buf_view(&run.init)));
    earlier.settle = DP_SETTLE_NONE;
    CHECK_OK(dp_trainer_restore(t, &earlier));
    CHECK(offers(t, 0, 0, 0)); /* It waits for its record. */
    settle(t, 1, DP_SETTLE_LEFT_OUT, ONE);
    CHECK(offers(t, 6, 5, 4) && published(t) == 0.5F);
    CHECK_OK(dp_trainer_load(t, 0, dp_buf_view(&run.init)));
    earlier.settle = DP_SETTLE_LEFT_OUT;
    earlier.lambda = 0;
    CHECK_OK(dp_trainer_restore(t, &earlier));
    CHECK(offers(t, 0, 0, 0));
    dp_buf_close(&blob);
    done(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_work_of_a_script_is_published_with_its_samples_and_losses),
        cmocka_unit_test(a_pass_visits_every_index_once),
        cmocka_unit_test(more_samples_than_were_drawn_are_refused_and_nothing_changes),
        cmocka_unit_test(weights_that_are_not_finite_are_refused_and_nothing_changes),
        cmocka_unit_test(a_loss_that_is_unknown_leaves_the_mean_of_the_others),
        cmocka_unit_test(what_was_drawn_and_not_used_is_drawn_again_by_the_next_script),
        cmocka_unit_test(samples_that_the_lease_has_passed_have_no_tokens),
        cmocka_unit_test(samples_that_were_drawn_before_the_lease_are_not_claimed),
        cmocka_unit_test(samples_whose_work_is_lost_have_no_tokens),
        cmocka_unit_test(a_script_can_draw_ahead_only_so_far),
        cmocka_unit_test(changes_of_the_line_are_kept_up_to_their_limit),
        cmocka_unit_test(the_script_adds_what_rounds_have_moved),
        cmocka_unit_test(a_record_that_discards_all_work_leaves_drawn_samples_without_tokens),
        cmocka_unit_test(a_publication_that_was_left_out_is_offered_again_until_a_record_has_it),
        cmocka_unit_test(a_publication_that_was_left_out_is_carried_by_the_steps_of_the_next),
        cmocka_unit_test(work_that_is_worth_nothing_is_not_offered_again),
        cmocka_unit_test(a_publication_of_an_earlier_process_is_offered_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
