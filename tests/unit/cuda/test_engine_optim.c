/* The whole optimizers on a card: a few steps compared with the CPU's engine, and a state that is
 * exported and imported. */
#include "compute/cuda/engine.h"

#include <math.h>

#include "base/alloc.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"
#include "compute/cpu/half.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 24, TOKENS = ROWS * LENGTH };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static dp_model model;
static uint32_t tokens[TOKENS + 1];

static int open_all(void **state)
{
    (void)state;
    static const dp_model_config config = {.layers = 1,
                                           .width = 16,
                                           .heads = 2,
                                           .kv_heads = 1,
                                           .context = LENGTH,
                                           .vocab = VOCAB,
                                           .hidden = 24,
                                           .arch = DP_ARCH_LLAMA};
    dp_why why = {{0}};
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 5 + 1) % VOCAB;
    }
    fake_cuda_set(&(fake_cuda){0});
    return cuda == NULL || dp_model_open(&model, &config, &why) != DP_OK;
}

static int close_all(void **state)
{
    (void)state;
    dp_model_close(&model);
    return fake_cuda_used() != 0;
}

static dp_engine *engine_of(const dp_backend *b, dp_optim_kind kind, dp_weights_kind weights)
{
    const dp_engine_setup setup = {.model = &model,
                                   .precision = DP_PRECISION_FP32,
                                   .optimizer = kind,
                                   .weights = weights,
                                   .seed = 3,
                                   .rows_max = ROWS,
                                   .recompute = DP_RECOMPUTE_NORMS,
                                   .threads = 1,
                                   .alone = true,
                                   .shared = true};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    CHECK_OK(b->create(&e, &setup, &why));
    CHECK_OK(b->init(e, 5));
    return e;
}

static void train(const dp_backend *b, dp_engine *e, int steps)
{
    static const dp_optim_options options = {.lr = 1e-2F,
                                             .beta1 = 0.9F,
                                             .beta2 = 0.95F,
                                             .eps = 1e-6F,
                                             .decay = 0.1F,
                                             .clip = 1.0F,
                                             .momentum = 0.9F,
                                             .loss_scale = 2.0F};
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    for (int i = 0; i < steps; i++) {
        double loss;
        double norm;
        CHECK_OK(b->step(e, &batch, 2.0F / TOKENS, &loss));
        CHECK_OK(b->norm(e, &norm));
        CHECK_OK(b->update(e, &options, norm));
        CHECK_OK(b->drop(e));
    }
}

/* |a - b| / |a - start|: how far apart two engines went, as a share of the way. */
static double apart(const float *a, const float *b, const float *start)
{
    double difference = 0;
    double way = 0;
    for (size_t i = 0; i < model.n_elements; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        way += ((double)a[i] - (double)start[i]) * ((double)a[i] - (double)start[i]);
    }
    return sqrt(difference / way);
}

static void every_optimizer_goes_the_cpus_way(void **state)
{
    (void)state;
    /* Divisions by small moments, and roundings by chance, make the same steps of slightly other
     * gradients: a hundredth of the way in fp32; where weights are bf16 an element may round to its
     * other neighbour, a tenth. */
    static const struct {
        dp_optim_kind kind;
        dp_weights_kind weights;
        double bound;
    } ways[] = {
        {DP_OPTIM_ADAMW, DP_WEIGHTS_BF16, 0.1}, {DP_OPTIM_ADAMW, DP_WEIGHTS_BF16_SR, 0.1},
        {DP_OPTIM_LAMB, DP_WEIGHTS_FP32, 0.01}, {DP_OPTIM_LARS, DP_WEIGHTS_FP32, 0.01},
        {DP_OPTIM_MUON, DP_WEIGHTS_FP32, 0.01},
    };
    float *const start = dp_alloc(model.n_elements, sizeof *start);
    CHECK(start != NULL);
    dp_model_init(&model, 5, start);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        dp_engine *const there = engine_of(cuda, ways[i].kind, ways[i].weights);
        dp_engine *const here = engine_of(dp_backend_cpu(), ways[i].kind, ways[i].weights);
        train(cuda, there, 3);
        train(dp_backend_cpu(), here, 3);
        const double share = apart(dp_backend_cpu()->values(here, DP_VECTOR_X),
                                   cuda->values(there, DP_VECTOR_X), start);
        if (!(share < ways[i].bound)) {
            print_error("optimizer %d, weights %d: %.3g apart\n", (int)ways[i].kind,
                        (int)ways[i].weights, share);
        }
        CHECK(share < ways[i].bound);
        CHECK(cuda->updates(there) == 3);
        dp_backend_cpu()->close(here);
        cuda->close(there);
    }
    dp_free(start);
}

static void a_state_that_was_lent_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    static const dp_optim_kind kinds[] = {DP_OPTIM_ADAMW, DP_OPTIM_MUON};
    for (size_t k = 0; k < 2; k++) {
        dp_engine *const whole = engine_of(cuda, kinds[k], DP_WEIGHTS_BF16);
        dp_engine *const second = engine_of(cuda, kinds[k], DP_WEIGHTS_BF16);
        dp_optim_vector from[DP_BACKEND_STATE_MAX];
        dp_optim_vector to[DP_BACKEND_STATE_MAX];
        train(cuda, whole, 2);
        const size_t count = cuda->lend_state(whole, from);
        CHECK(count == 4 && cuda->lend_state(second, to) == count);
        for (size_t i = 0; i < count; i++) {
            CHECK(strcmp(from[i].name, to[i].name) == 0);
            memcpy(to[i].values, from[i].values, model.n_elements * sizeof(float));
        }
        CHECK_OK(cuda->take_state(second, cuda->updates(whole)));
        train(cuda, whole, 2);
        train(cuda, second, 2);
        CHECK(cuda->updates(second) == 4);
        const float *const x = cuda->values(whole, DP_VECTOR_X);
        CHECK(memcmp(x, cuda->values(second, DP_VECTOR_X), model.n_elements * sizeof *x) == 0);
        CHECK_OK(cuda->reset(second));
        CHECK(cuda->updates(second) == 0);
        cuda->close(second);
        cuda->close(whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer_goes_the_cpus_way),
        cmocka_unit_test(a_state_that_was_lent_goes_on_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
