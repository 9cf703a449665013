/* Steps in fp16 on a card: an overflowing gradient drops only the step, and a trainer halves its
 * scale until none overflows. */
#include "compute/cuda/engine.h"

#include <math.h>
#include <string.h>

#include "compute/backend/plugin.h"
#include "compute/rules/scaler.h"
#include "compute/trainer/trainer_keep.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"
#include "tests/unit/compute/tiny_node.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 40, TOKENS = ROWS * LENGTH };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static uint32_t tokens[TOKENS + 1];

static int open_all(void **state)
{
    (void)state;
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 7 + 3) % VOCAB;
    }
    return cuda == NULL;
}

/* All that an update changes, as bytes. */
static void keep_state(dp_engine *e, size_t n, dp_buf *out)
{
    dp_optim_vector lent[DP_BACKEND_STATE_MAX];
    const size_t count = cuda->lend_state(e, lent);
    dp_buf_clear(out);
    CHECK(count > 1);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(dp_buf_append(out, dp_view_of(lent[i].values, n * sizeof(float))));
    }
}

/* A step with a loss scale, and its update. */
static dp_status train_once(dp_engine *e, float loss_scale)
{
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    const dp_optim_options options = {.lr = 1e-2F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .eps = 1e-8F,
                                      .clip = 1.0F,
                                      .momentum = 0.9F,
                                      .loss_scale = loss_scale};
    double loss;
    double norm;
    CHECK_OK(cuda->step(e, &batch, loss_scale / TOKENS, &loss));
    CHECK(isfinite(loss));
    CHECK_OK(cuda->norm(e, &norm));
    const dp_status status = cuda->update(e, &options, norm);
    CHECK(isfinite(norm) == (status == DP_OK));
    CHECK_OK(cuda->drop(e));
    return status;
}

static void an_overflow_in_fp16_changes_nothing_but_costs_the_step(void **state)
{
    (void)state;
    static const dp_model_config config = {
        .layers = 1, .width = 16, .heads = 2, .context = LENGTH, .vocab = VOCAB};
    static const dp_optim_kind kinds[] = {DP_OPTIM_ADAMW, DP_OPTIM_LAMB, DP_OPTIM_LARS,
                                          DP_OPTIM_MUON};
    dp_model model;
    dp_why why = {{0}};
    dp_buf before;
    dp_buf after;
    CHECK_OK(dp_model_open(&model, &config, &why));
    dp_buf_init(&before, 1 << 24);
    dp_buf_init(&after, 1 << 24);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const dp_engine_setup setup = {.model = &model,
                                       .precision = DP_PRECISION_FP16,
                                       .optimizer = kinds[k],
                                       .weights = DP_WEIGHTS_FP32,
                                       .rows_max = ROWS,
                                       .alone = true,
                                       .shared = true};
        dp_engine *e = NULL;
        fake_cuda_set(&(fake_cuda){.arch = 75});
        CHECK_OK(cuda->create(&e, &setup, &why));
        CHECK_OK(cuda->init(e, 5));
        CHECK_OK(train_once(e, 1024.0F));
        keep_state(e, model.n_elements, &before);
        CHECK_STATUS(train_once(e, 0x1p40F), DP_DIVERGED);
        keep_state(e, model.n_elements, &after);
        CHECK(dp_view_equal(dp_buf_view(&before), dp_buf_view(&after)));
        CHECK(cuda->updates(e) == 1);
        CHECK_OK(train_once(e, 1024.0F));
        CHECK(cuda->updates(e) == 2);
        cuda->close(e);
    }
    dp_buf_close(&after);
    dp_buf_close(&before);
    dp_model_close(&model);
}

/* As test_trainer_steps.c has it of the CPU. */
static void a_trainer_on_a_card_halves_a_scale_that_overflows(void **state)
{
    (void)state;
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    dp_optim_vector lent[DP_TRAINER_VECTORS_MAX];
    m.precision = DP_PRECISION_FP16;
    m.layers = 1;
    m.width = 16;
    fake_cuda_set(&(fake_cuda){.arch = 75});
    node x =
        node_open_with(&m, (dp_trainer_setup){.alone = true, .rows = TINY_ROWS, .backend = cuda});
    dp_trainer_place place = dp_trainer_place_of(x.trainer);
    place.scaler.scale = DP_SCALER_MAX;
    CHECK(dp_trainer_vectors(x.trainer, lent) > 0); /* place_at goes on from what was lent. */
    CHECK_OK(dp_trainer_place_at(x.trainer, &place));
    tiny_run_work(x.trainer, 12);
    place = dp_trainer_place_of(x.trainer);
    CHECK(place.skipped >= 1 && place.skipped < 12);
    CHECK(place.scaler.scale == ldexpf(DP_SCALER_MAX, -(int)place.skipped));
    CHECK(place.done == 12 - place.skipped);
    CHECK(dp_trainer_last_of(x.trainer).outcome == DP_STEP_DONE);
    node_close(&x);
    CHECK(fake_cuda_used() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_in_fp16_changes_nothing_but_costs_the_step),
        cmocka_unit_test(a_trainer_on_a_card_halves_a_scale_that_overflows),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
