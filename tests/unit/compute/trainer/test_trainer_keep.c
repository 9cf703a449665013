/* THREADS_TEST: a trainer without peers, its place kept and taken up again. */
#include "tests/unit/compute/tiny_run.h"

#include <math.h>
#include <string.h>

#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

static tiny_run run;

static dp_trainer *open_alone(uint32_t rows, size_t threads)
{
    const dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                                    .tokenizer = dp_buf_view(&run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&run.data)},
                                    .n_shards = 1,
                                    .threads = threads,
                                    .alone = true,
                                    .rows = rows};
    dp_trainer *trainer = NULL;
    CHECK_OK(dp_trainer_open(&trainer, &setup, NULL));
    CHECK_OK(dp_trainer_init(trainer));
    return trainer;
}

static bool same(dp_trainer *a, dp_trainer *b)
{
    dp_optim_vector of_a[DP_TRAINER_VECTORS_MAX];
    dp_optim_vector of_b[DP_TRAINER_VECTORS_MAX];
    const size_t count = dp_trainer_vectors(a, of_a);
    CHECK(dp_trainer_vectors(b, of_b) == count);
    bool equal = true;
    for (size_t i = 0; i < count; i++) {
        equal = equal &&
                memcmp(of_a[i].values, of_b[i].values, dp_trainer_elements(a) * sizeof(float)) == 0;
    }
    return equal;
}

static void move_to(dp_trainer *to, dp_trainer *from)
{
    dp_optim_vector source[DP_TRAINER_VECTORS_MAX];
    dp_optim_vector target[DP_TRAINER_VECTORS_MAX];
    const dp_trainer_place place = dp_trainer_place_of(from);
    const size_t count = dp_trainer_vectors(from, source);
    CHECK(dp_trainer_vectors(to, target) == count);
    for (size_t i = 0; i < count; i++) {
        memcpy(target[i].values, source[i].values, dp_trainer_elements(to) * sizeof(float));
    }
    CHECK_OK(dp_trainer_place_at(to, &place));
}

static void go_on_in_parts(dp_optim_kind kind)
{
    dp_manifest m;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(run.manifest, run.manifest_size)));
    m.optimizer = kind; /* With each a precision and a way of weights, so that each has its turn. */
    m.precision = (dp_precision_kind)(1 + kind % 3);
    m.weights = (dp_weights_kind)(1 + (kind + 1) % 3);
    CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
    dp_trainer *const whole = open_alone(2, 1);
    dp_trainer *parts = open_alone(2, 1);
    tiny_run_work(whole, 25);
    for (uint64_t at = 3; at < 25; at += 7) {
        tiny_run_work(parts, at);
        dp_trainer *const next = open_alone(2, 1 + at % 3);
        move_to(next, parts);
        dp_trainer_close(parts);
        parts = next;
    }
    tiny_run_work(parts, 25);
    CHECK(same(whole, parts));
    CHECK(dp_trainer_last_of(whole).loss == dp_trainer_last_of(parts).loss);
    dp_trainer_close(parts);
    dp_trainer_close(whole);
    tiny_run_close(&run);
}

static void a_trainer_taken_up_at_any_step_ends_with_the_same_bits(void **state)
{
    (void)state;
    for (int kind = DP_OPTIM_ADAMW; kind <= DP_OPTIM_LAST; kind++) {
        go_on_in_parts((dp_optim_kind)kind);
    }
}

/* A power of two, so that steps without it would have the same bits until it is too large. */
static void the_scale_of_the_loss_is_taken_up_where_it_was(void **state)
{
    (void)state;
    dp_manifest m;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(run.manifest, run.manifest_size)));
    m.precision = DP_PRECISION_FP16;
    CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
    dp_trainer *const trainer = open_alone(2, 1);
    tiny_run_work(trainer, 2);
    dp_trainer_place place = dp_trainer_place_of(trainer);
    CHECK(place.scaler.scale == DP_SCALER_START && place.scaler.good == 2);
    place.scaler = (dp_scaler){.scale = 1024, .good = DP_SCALER_GOOD_STEPS - 2, .skipped = 3};
    CHECK_OK(dp_trainer_place_at(trainer, &place));
    tiny_run_work(trainer, 5);
    place = dp_trainer_place_of(trainer);
    CHECK(place.scaler.scale == 2048 && place.scaler.good == 1 && place.scaler.skipped == 3);
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    dp_trainer *const one = open_alone(4, 1);
    dp_trainer *const three = open_alone(4, 3);
    tiny_run_work(one, 12);
    tiny_run_work(three, 12);
    CHECK(same(one, three));
    dp_trainer_close(three);
    dp_trainer_close(one);
    tiny_run_close(&run);
}

/* Sums of other lengths round otherwise: each step's loss may differ by a few units of fp32, grown
 * by twelve steps. */
static void micro_batches_of_any_size_change_roundings_alone(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    dp_trainer *const whole = open_alone(TINY_ROWS, 1);
    for (uint32_t rows = 1; rows < TINY_ROWS; rows++) { /* 3: the second micro-batch is short */
        CHECK_OK(dp_trainer_init(whole));
        dp_trainer *const cut = open_alone(rows, 1);
        for (uint64_t step = 1; step <= 12; step++) {
            tiny_run_work(whole, step);
            tiny_run_work(cut, step);
            const double loss = dp_trainer_last_of(whole).loss;
            CHECK(fabs(dp_trainer_last_of(cut).loss - loss) <= 2e-5 * loss);
        }
        dp_trainer_close(cut);
    }
    dp_trainer_close(whole);
    tiny_run_close(&run);
}

static void the_place_counts_what_was_done(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    dp_trainer *const trainer = open_alone(4, 1);
    tiny_run_work(trainer, 5);
    const dp_trainer_place place = dp_trainer_place_of(trainer);
    CHECK(place.steps == 5);
    CHECK(place.done == 5);
    CHECK(place.tokens == 5ULL * TINY_ROWS * TINY_CONTEXT);
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

static void a_place_that_no_step_leads_to_is_refused(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    dp_trainer *const trainer = open_alone(4, 1);
    tiny_run_work(trainer, 2);
    const dp_trainer_place good = dp_trainer_place_of(trainer);
    dp_trainer_place bad[6] = {good, good, good, good, good, good};
    bad[0].steps = UINT64_MAX;
    bad[1].done++;
    bad[2].tokens--;
    bad[3].losses.next = DP_SPIKE_WINDOW;
    bad[4].scaler.scale = 3.0F;
    bad[5].spikes = 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(dp_trainer_place_at(trainer, &bad[i]), DP_BADMSG);
    }
    CHECK_OK(dp_trainer_place_at(trainer, &good));
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_taken_up_at_any_step_ends_with_the_same_bits),
        cmocka_unit_test(the_scale_of_the_loss_is_taken_up_where_it_was),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(micro_batches_of_any_size_change_roundings_alone),
        cmocka_unit_test(the_place_counts_what_was_done),
        cmocka_unit_test(a_place_that_no_step_leads_to_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
