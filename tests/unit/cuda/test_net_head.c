/* The head in pieces: losses, gradients and looks do not depend on how many tokens' logits live at
 * once. */
#include "compute/cuda/engine.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/backend/plugin.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 40, TOKENS = ROWS * LENGTH };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static uint32_t tokens[TOKENS + 1];

/* Tied: the table of the embedding gets gradients from both ends. */
static const dp_model_config configs[] = {{.layers = 1,
                                           .width = 16,
                                           .heads = 2,
                                           .context = LENGTH,
                                           .vocab = VOCAB,
                                           .arch = DP_ARCH_LLAMA,
                                           .head = DP_HEAD_UNTIED},
                                          {.layers = 1,
                                           .width = 16,
                                           .heads = 2,
                                           .context = LENGTH,
                                           .vocab = VOCAB,
                                           .head = DP_HEAD_TIED}};

static int open_all(void **state)
{
    (void)state;
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 7 + 3) % VOCAB;
    }
    fake_cuda_set(&(fake_cuda){0});
    return cuda == NULL;
}

typedef struct result {
    double loss;
    double looked;
    float *gradients; /* owned */
} result;

/* head_rows 0: those that the engine chose. */
static result step_with(const dp_model *model, size_t head_tokens, size_t head_rows)
{
    const dp_engine_setup setup = {.model = model,
                                   .precision = DP_PRECISION_FP32,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .weights = DP_WEIGHTS_FP32,
                                   .rows_max = ROWS,
                                   .recompute = DP_RECOMPUTE_NOTHING,
                                   .alone = true,
                                   .shared = true};
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    result r = {.gradients = dp_alloc(model->n_elements, sizeof(float))};
    CHECK(r.gradients != NULL);
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(cuda->init(e, 5));
    CHECK(e->net.head_tokens == TOKENS); /* So few fit at once, unless they are told apart here. */
    e->net.head_tokens = head_tokens;
    e->net.head_rows = head_rows > 0 ? head_rows : e->net.head_rows;
    CHECK_OK(cuda->step(e, &batch, 1.0F / TOKENS, &r.loss));
    const float *const g = cuda->gradients(e);
    CHECK(g != NULL);
    memcpy(r.gradients, g, model->n_elements * sizeof *g);
    CHECK_OK(cuda->loss(e, DP_VECTOR_X, &batch, &r.looked));
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
    return r;
}

/* Rows of products are the same; the weight's gradient is added up piece by piece, which is rounded
 * otherwise. */
static void pieces_of_the_head_make_the_whole(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 3, 8, 15};
    for (size_t m = 0; m < sizeof configs / sizeof configs[0]; m++) {
        dp_model model;
        dp_why why = {{0}};
        CHECK_OK(dp_model_open(&model, &configs[m], &why));
        const result whole = step_with(&model, TOKENS, 0);
        CHECK(whole.loss == whole.looked);
        for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
            const result r = step_with(&model, pieces[p], 0);
            CHECK(r.loss == whole.loss && r.looked == whole.loss);
            for (size_t i = 0; i < model.n_elements; i++) {
                CHECK(fabsf(r.gradients[i] - whole.gradients[i]) <=
                      1e-6F + 1e-5F * fabsf(whole.gradients[i]));
            }
            dp_free(r.gradients);
        }
        dp_free(whole.gradients);
        dp_model_close(&model);
    }
}

static void rows_behind_the_vocabulary_change_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof configs / sizeof configs[0]; m++) {
        dp_model model;
        dp_why why = {{0}};
        CHECK_OK(dp_model_open(&model, &configs[m], &why));
        const result padded = step_with(&model, TOKENS, 0);
        const result exact = step_with(&model, TOKENS, VOCAB);
        CHECK(padded.loss == exact.loss && padded.looked == exact.looked);
        for (size_t i = 0; i < model.n_elements; i++) {
            CHECK(padded.gradients[i] == exact.gradients[i]);
        }
        dp_free(padded.gradients);
        dp_free(exact.gradients);
        dp_model_close(&model);
    }
}

static size_t rows_of(const dp_model_config *config)
{
    dp_model model;
    dp_why why = {{0}};
    CHECK_OK(dp_model_open(&model, config, &why));
    const dp_cuda_net net = dp_cuda_net_setup(&model, DP_BF16, DP_RECOMPUTE_NOTHING, ROWS);
    CHECK(dp_model_head(&model)->offset + net.head_rows * config->width <= model.n_elements);
    dp_model_close(&model);
    return net.head_rows;
}

static void products_of_the_head_take_an_even_number_of_rows_where_the_arena_has_them(void **state)
{
    (void)state;
    dp_model_config odd = configs[1];
    odd.vocab = 257;
    CHECK(rows_of(&odd) == 320); /* the embedding, and other tensors behind it */
    odd.arch = DP_ARCH_LLAMA;
    odd.head = DP_HEAD_UNTIED;
    CHECK(rows_of(&odd) == 257); /* the last tensor */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_the_head_make_the_whole),
        cmocka_unit_test(rows_behind_the_vocabulary_change_nothing),
        cmocka_unit_test(products_of_the_head_take_an_even_number_of_rows_where_the_arena_has_them),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
