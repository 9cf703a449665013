#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/run/adapt.h"
#include "compute/model/adapter.h"

static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 64,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .context = 32,
                                      .vocab = 300,
                                      .hidden = 96,
                                      .adapt_rank = 8,
                                      .adapt_alpha_milli = 12000,
                                      .adapt_targets = DP_ADAPT_Q | DP_ADAPT_V | DP_ADAPT_UP};

static void the_arena_has_the_adapters_alone(void **state)
{
    (void)state;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    assert_int_equal(model.n_tensors, 2 * 4);
    assert_int_equal(model.n_parameters, dp_model_config_parameters(&llama));
    assert_true(model.base->n_parameters > 50 * model.n_parameters / 10);
    size_t end = 0;
    for (size_t t = 0; t < model.n_tensors; t++) {
        assert_int_equal(model.tensors[t].offset % DP_ARENA_ALIGN, 0);
        assert_true(model.tensors[t].offset >= end);
        assert_true(model.tensors[t].decay);
        end = model.tensors[t].offset + model.tensors[t].elements;
    }
    assert_true(dp_adapter_scale(&model) == 1.5F);
    assert_ptr_equal(dp_model_whole(&model), model.base);
    assert_true(dp_model_flops(&model, 8) < dp_model_flops(model.base, 8));
    dp_model_close(&model);
    assert_null(model.base);
}

static void parts_know_their_columns_in_the_weight_and_in_b(void **state)
{
    (void)state;
    dp_model model;
    dp_adapter adapter;
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    assert_true(dp_model_adapter(&model, 1, DP_LAYER_QKV_W, &adapter));
    assert_int_equal(adapter.n_parts, 2);
    assert_int_equal(adapter.a->shape[0], 64);
    assert_int_equal(adapter.a->shape[1], 16);
    assert_int_equal(adapter.b->shape[0], 8);
    assert_int_equal(adapter.b->shape[1], 64 + 32);
    assert_int_equal(adapter.parts[0].first, 0);
    assert_int_equal(adapter.parts[1].first, 64 + 32); /* v is behind q and k. */
    assert_int_equal(adapter.parts[1].at, 64);
    assert_true(dp_model_adapter(&model, 0, DP_LAYER_UP_W, &adapter));
    assert_int_equal(adapter.n_parts, 1);
    assert_int_equal(adapter.parts[0].first, 96);
    assert_false(dp_model_adapter(&model, 0, DP_LAYER_DOWN_W, &adapter));
    assert_false(dp_model_adapter(model.base, 0, DP_LAYER_UP_W, &adapter));
    dp_model_close(&model);
}

static void names_are_those_of_peft(void **state)
{
    (void)state;
    dp_model model;
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    assert_int_equal(dp_adapter_parts(&model, &model.tensors[4], parts), 2);
    assert_string_equal(parts[0].name, "model.layers.1.self_attn.q_proj.lora_A.weight");
    assert_string_equal(parts[1].name, "model.layers.1.self_attn.v_proj.lora_A.weight");
    assert_int_equal(parts[1].first, 8);
    assert_int_equal(parts[1].columns, 8);
    assert_true(parts[1].transposed);
    assert_int_equal(dp_adapter_parts(&model, &model.tensors[5], parts), 2);
    assert_string_equal(parts[1].name, "model.layers.1.self_attn.v_proj.lora_B.weight");
    assert_int_equal(parts[1].first, 64);
    assert_int_equal(parts[1].columns, 32);
    dp_model_close(&model);
    const dp_model_config gpt2 = {
        .layers = 1, .width = 12, .heads = 3, .context = 8, .vocab = 9, .adapt_rank = 2};
    assert_int_equal(dp_model_open(&model, &gpt2, NULL), DP_OK);
    assert_int_equal(dp_adapter_parts(&model, &model.tensors[0], parts), 1);
    assert_string_equal(parts[0].name, "transformer.h.0.attn.c_attn.lora_A.weight");
    assert_int_equal(dp_adapter_parts(&model, &model.tensors[7], parts), 1);
    assert_string_equal(parts[0].name, "transformer.h.0.mlp.c_proj.lora_B.weight");
    dp_model_close(&model);
}

static void the_first_a_has_pefts_variance_and_b_is_zero(void **state)
{
    (void)state;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    float *const params = calloc(model.n_elements, sizeof *params);
    dp_model_init(&model, 3, params);
    for (size_t t = 0; t < model.n_tensors; t++) {
        const dp_tensor *const tensor = &model.tensors[t];
        double square = 0.0;
        for (size_t i = 0; i < tensor->elements; i++) {
            square += pow((double)params[tensor->offset + i], 2) / (double)tensor->elements;
        }
        const double right = tensor->init == DP_TENSOR_ADAPTER ? 1.0 / (3 * 64) : 0.0;
        assert_true(fabs(square - right) <= 0.3 * right);
    }
    free(params);
    dp_model_close(&model);
}

static void every_failed_allocation_leaves_no_model(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        dp_model model = {.tensors = NULL};
        dp_alloc_fail_after(n);
        const dp_status status = dp_model_open(&model, &llama, NULL);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
        assert_null(model.tensors);
    }
}

static void merging_adds_to_the_adapted_columns_alone(void **state)
{
    (void)state;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    float *const params = calloc(model.n_elements, sizeof *params);
    float *const theta = calloc(model.base->n_elements, sizeof *theta);
    for (size_t t = 0; t < model.n_tensors; t++) {
        for (size_t i = 0; i < model.tensors[t].elements; i++) {
            params[model.tensors[t].offset + i] = 0.5F;
        }
    }
    dp_adapter_merge(&model, params, theta);
    for (size_t t = 0; t < model.base->n_tensors; t++) {
        const dp_tensor *const tensor = &model.base->tensors[t];
        for (size_t i = 0; i < tensor->elements; i++) {
            const size_t column = i % tensor->shape[1];
            const bool adapted =
                (tensor->slot == DP_LAYER_QKV_W && (column < 64 || column >= 96)) ||
                (tensor->slot == DP_LAYER_UP_W && column >= 96);
            /* 1.5 * sum over 8 of 0.25 */
            assert_true(theta[tensor->offset + i] == (adapted ? 3.0F : 0.0F));
        }
    }
    free(theta);
    free(params);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_arena_has_the_adapters_alone),
        cmocka_unit_test(parts_know_their_columns_in_the_weight_and_in_b),
        cmocka_unit_test(names_are_those_of_peft),
        cmocka_unit_test(the_first_a_has_pefts_variance_and_b_is_zero),
        cmocka_unit_test(every_failed_allocation_leaves_no_model),
        cmocka_unit_test(merging_adds_to_the_adapted_columns_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
