/* Families of models on the CUDA backend, with its kernels on the emulator. */
#include <math.h>
#include <stdlib.h>

#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"
#include "compute/cuda/engine.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 40, TOKENS = ROWS * LENGTH };

const dp_backend *dp_backend_query(uint32_t version);

static const fake_cuda healthy = {0};
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

static dp_engine_setup setup_of(const dp_model *model)
{
    return (dp_engine_setup){.model = model,
                             .precision = DP_PRECISION_FP32,
                             .optimizer = DP_OPTIM_ADAMW,
                             .weights = DP_WEIGHTS_FP32,
                             .rows_max = ROWS,
                             .recompute = DP_RECOMPUTE_NORMS,
                             .threads = 1};
}

static const dp_model_config tiny = {
    .layers = 2, .width = 16, .heads = 2, .context = LENGTH, .vocab = VOCAB};

/* A step of a family, here or on the CPU: its loss, and its gradients, which the caller frees. */
static float *gradients_of(const dp_backend *backend, const dp_model *of, double *loss)
{
    const dp_engine_setup setup = setup_of(of);
    const dp_gpt_batch b = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    float *const kept = calloc(of->n_elements, sizeof *kept);
    fake_cuda_set(&healthy);
    if (backend->create(&e, &setup, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    CHECK_OK(backend->init(e, 5));
    CHECK_OK(backend->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK_OK(backend->step(e, &b, 1.0F / TOKENS, loss));
    memcpy(kept, backend->gradients(e), of->n_elements * sizeof *kept);
    backend->close(e);
    return kept;
}

/* Where a family is other pointers and tables alone, the kernels compute it. */
static void families_without_parts_of_their_own_agree_with_the_cpu(void **state)
{
    dp_model_config configs[] = {tiny, tiny, tiny, tiny, tiny, tiny, tiny};
    (void)state;
    configs[0].arch = DP_ARCH_QWEN2;
    configs[0].kv_heads = 1;
    configs[1].arch = DP_ARCH_SMOLLM3;
    configs[1].rope_off_every = 2;
    configs[2].arch = DP_ARCH_LLAMA;
    configs[2].rope_scaling = DP_ROPE_LLAMA3;
    configs[2].rope_factor_milli = 8000;
    configs[2].rope_low_milli = 1000;
    configs[2].rope_high_milli = 4000;
    configs[2].rope_context = 64;
    configs[3].arch = DP_ARCH_PHI3;
    configs[3].window = LENGTH; /* as wide as the context: none */
    configs[4].arch = DP_ARCH_PHI3;
    configs[4].rope_width = 4;
    configs[5].arch = DP_ARCH_LLAMA;
    configs[5].activation = DP_ACTIVATION_GEGLU;
    configs[6].arch = DP_ARCH_LLAMA;
    configs[6].activation = DP_ACTIVATION_GELU_ERF;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        dp_model of;
        double loss[2] = {0};
        CHECK_OK(dp_model_open(&of, &configs[i], NULL));
        float *const here = gradients_of(cuda, &of, &loss[0]);
        float *const there = gradients_of(dp_backend_cpu(), &of, &loss[1]);
        float most = 0;
        CHECK(fabs(loss[0] / loss[1] - 1.0) < 1e-5);
        for (size_t k = 0; k < of.n_elements; k++) {
            most = fmaxf(most, fabsf(there[k]));
        }
        for (size_t k = 0; k < of.n_elements; k++) {
            CHECK(fabsf(here[k] - there[k]) <= 1e-4F * most);
        }
        free(here);
        free(there);
        dp_model_close(&of);
    }
}

/* A run with a part that no kernel has is refused by the plan, which doctor and run create ask, and
 * when an engine opens; the sentence names the backend that has it. */
static void parts_that_no_kernel_has_are_refused_before_training(void **state)
{
    dp_model_config configs[] = {tiny, tiny, tiny, tiny};
    static const char *const parts[] = {"mistral with a window", "olmo2 with norms behind",
                                        "gemma2 with norms behind", "gpt_neox with parts beside"};
    (void)state;
    fake_cuda_set(&healthy);
    configs[0].arch = DP_ARCH_MISTRAL;
    configs[0].window = LENGTH - 1;
    configs[1].arch = DP_ARCH_OLMO2;
    configs[2].arch = DP_ARCH_GEMMA2;
    configs[3].arch = DP_ARCH_NEOX;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        dp_manifest manifest;
        dp_engine *e = NULL;
        dp_model of;
        dp_plan plan;
        dp_why why = {{0}};
        CHECK_OK(dp_model_open(&of, &configs[i], NULL));
        const dp_engine_setup setup = setup_of(&of);
        CHECK(cuda->create(&e, &setup, &why) == DP_UNSUPPORTED);
        CHECK(strstr(why.text, parts[i]) != NULL && strstr(why.text, "--backend cpu") != NULL);
        dp_manifest_default(&manifest);
        dp_manifest_set_model(&manifest, &of.config);
        why.text[0] = '\0';
        CHECK(cuda->plan(0, &(dp_plan_request){.manifest = &manifest, .alone = true}, &plan,
                         &why) == DP_UNSUPPORTED);
        CHECK(strstr(why.text, parts[i]) != NULL);
        dp_model_close(&of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_without_parts_of_their_own_agree_with_the_cpu),
        cmocka_unit_test(parts_that_no_kernel_has_are_refused_before_training),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
