#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/run/part_cuts.h"
#include "compute/codec/codec.h"
#include "compute/model/model.h"

static const dp_model_config demo = {
    .layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024};

static void the_demo_model_has_the_tensors_of_hugging_face(void **state)
{
    (void)state;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &demo, NULL), DP_OK);
    assert_int_equal(model.n_tensors, 4 + 4 * 12);
    assert_int_equal(model.n_parameters, 4 * (12 * 128 * 128 + 13 * 128) + (1024 + 128 + 2) * 128);
    const dp_tensor *qkv = dp_model_find(&model, "transformer.h.3.attn.c_attn.weight");
    assert_non_null(qkv);
    assert_int_equal(qkv->n_dims, 2);
    assert_int_equal(qkv->shape[0], 128);
    assert_int_equal(qkv->shape[1], 384);
    assert_true(qkv->decay);
    assert_int_equal(qkv->offset, dp_model_tensor(&model, 3, DP_LAYER_QKV_W)->offset);
    const dp_tensor *bias = dp_model_find(&model, "transformer.h.0.mlp.c_fc.bias");
    assert_non_null(bias);
    assert_int_equal(bias->n_dims, 1);
    assert_int_equal(bias->elements, 512);
    assert_false(bias->decay);
    assert_int_equal(dp_model_find(&model, "transformer.wte.weight")->offset, 0);
    assert_int_equal(dp_model_find(&model, "transformer.ln_f.bias")->offset,
                     dp_model_tensor(&model, 0, DP_SLOT_NORM_B)->offset);
    assert_null(dp_model_find(&model, "lm_head.weight"));
    dp_model_close(&model);
    dp_model_close(&model); /* a closed one may be closed */
}

static void tensors_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    const dp_model_config odd = {.layers = 3, .width = 21, .heads = 3, .context = 5, .vocab = 7};
    dp_model model;
    assert_int_equal(dp_model_open(&model, &odd, NULL), DP_OK);
    size_t end = 0;
    size_t elements = 0;
    for (size_t t = 0; t < model.n_tensors; t++) {
        assert_int_equal(model.tensors[t].offset % DP_ARENA_ALIGN, 0);
        assert_in_range(model.tensors[t].offset, end, end + DP_ARENA_ALIGN - 1);
        assert_int_equal(model.tensors[t].elements,
                         model.tensors[t].shape[0] * model.tensors[t].shape[1]);
        end = model.tensors[t].offset + model.tensors[t].elements;
        elements += model.tensors[t].elements;
    }
    assert_in_range(model.n_elements, end, end + DP_ARENA_ALIGN - 1);
    assert_int_equal(model.n_elements % DP_ARENA_ALIGN, 0);
    assert_int_equal(model.n_parameters, elements);
    dp_model_close(&model);
}

static void refuse(dp_model_config config, const char *word)
{
    dp_why why = {{0}};
    dp_model model = {0};
    assert_int_equal(dp_model_config_check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, word));
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_BADARG);
    assert_null(model.tensors);
}

/* Nodes compare the size of objects from peers with the manifest's bounds; such nodes know no
 * codec. */
static void no_update_is_longer_than_the_manifest_says_that_one_may_be(void **state)
{
    (void)state;
    const dp_model_config models[] = {
        demo,
        {.layers = 1, .width = 2, .heads = 1, .context = 1, .vocab = 2},
        {.layers = 3, .width = 21, .heads = 3, .context = 5, .vocab = 7},
        {.arch = DP_ARCH_LLAMA,
         .layers = 2,
         .width = 64,
         .heads = 4,
         .kv_heads = 2,
         .hidden = 170,
         .context = 64,
         .vocab = 500}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        dp_model model;
        dp_manifest manifest;
        dp_why why = {""};
        if (dp_model_open(&model, &models[i], &why) != DP_OK) {
            fail_msg("%s", why.text);
        }
        dp_manifest_default(&manifest);
        dp_manifest_set_model(&manifest, &models[i]);
        const uint64_t most = dp_manifest_update_bytes_max(&manifest);
        const uint64_t heads = DP_PARTS_MAX * DP_CODEC_HEADER_BYTES; /* of one in parts */
        assert_in_range(dp_codec_bytes_max_any(model.n_elements) + heads, 0, most);
        assert_in_range((1 + dp_manifest_moments(&manifest)) * model.n_elements * sizeof(float), 0,
                        dp_manifest_state_bytes_max(&manifest) - 1024);
        dp_model_close(&model);
    }
}

static void impossible_models_are_refused_with_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(dp_model_config_check(&demo, NULL), DP_OK);
    refuse((dp_model_config){.layers = 0, .width = 128, .heads = 4, .context = 128, .vocab = 1024},
           "layers");
    refuse(
        (dp_model_config){
            .layers = UINT32_MAX, .width = 128, .heads = 4, .context = 128, .vocab = 1024},
        "layers");
    refuse((dp_model_config){.layers = 4, .width = 0, .heads = 4, .context = 128, .vocab = 1024},
           "width");
    refuse((dp_model_config){.layers = 4, .width = 128, .heads = 0, .context = 128, .vocab = 1024},
           "heads");
    refuse((dp_model_config){.layers = 4, .width = 128, .heads = 3, .context = 128, .vocab = 1024},
           "multiple");
    refuse((dp_model_config){.layers = 4, .width = 1024, .heads = 2, .context = 128, .vocab = 1024},
           "wide");
    refuse((dp_model_config){.layers = 4, .width = 128, .heads = 4, .context = 0, .vocab = 1024},
           "context");
    refuse((dp_model_config){.layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1},
           "vocab");
    refuse(
        (dp_model_config){.layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 262145},
        "vocab");
    refuse(
        (dp_model_config){
            .layers = 256, .width = 16384, .heads = 256, .context = 128, .vocab = 1024},
        "parameters");
}

static void open_without_memory_is_nomem(void **state)
{
    (void)state;
    dp_model model = {0};
    dp_alloc_fail_after(1);
    const dp_status status = dp_model_open(&model, &demo, NULL);
    dp_alloc_fail_after(0);
    assert_int_equal(status, DP_NOMEM);
    assert_null(model.tensors);
}

static void first_weights_have_the_mean_and_deviation_of_gpt2(void **state)
{
    (void)state;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &demo, NULL), DP_OK);
    float *params = calloc(model.n_elements, sizeof *params);
    memset(params, 0xff, model.n_elements * sizeof *params); /* NaN: what is not written shows */
    dp_model_init(&model, 42, params);
    for (size_t t = 0; t < model.n_tensors; t++) {
        const dp_tensor *tensor = &model.tensors[t];
        const double n = (double)tensor->elements;
        double mean = 0.0;
        double square = 0.0;
        for (size_t i = 0; i < tensor->elements; i++) {
            mean += (double)params[tensor->offset + i] / n;
            square += (double)params[tensor->offset + i] * (double)params[tensor->offset + i] / n;
        }
        double deviation = 0.0;
        switch (tensor->init) {
        case DP_TENSOR_ZEROS:
            assert_true(square == 0.0);
            continue;
        case DP_TENSOR_ONES:
            assert_true(fabs(mean - 1.0) < 1e-12 && fabs(square - 1.0) < 1e-12);
            continue;
        case DP_TENSOR_NORMAL:
            deviation = 0.02;
            break;
        case DP_TENSOR_RESIDUAL:
            deviation = 0.02 / sqrt(8.0);
            break;
        case DP_TENSOR_ADAPTER:
            fail_msg("the model has no adapters");
            break;
        }
        assert_true(fabs(mean) < 5.0 * deviation / sqrt(n));
        assert_true(fabs(sqrt(square) / deviation - 1.0) < 5.0 / sqrt(2.0 * n));
    }
    const size_t end =
        model.tensors[model.n_tensors - 1].offset + model.tensors[model.n_tensors - 1].elements;
    for (size_t i = end; i < model.n_elements; i++) {
        assert_true(params[i] == 0.0F);
    }
    free(params);
    dp_model_close(&model);
}

/* The bits of fresh weights are part of the protocol: peers start from a seed, not from bytes. The
 * hash was found once more by an independent program in Python. */
static void first_weights_are_the_same_bits_everywhere(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 3, .width = 20, .heads = 2, .context = 9, .vocab = 33};
    dp_model model;
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    float *params = calloc(model.n_elements, sizeof *params);
    char text[2 * sizeof(dp_hash) + 1];
    dp_model_init(&model, 20261120, params);
    const dp_hash hash =
        dp_hash_of("test/weights", dp_view_of(params, model.n_elements * sizeof *params));
    dp_hex(dp_view_of(&hash, sizeof hash), text);
    assert_string_equal(text, "78400365548fc8e2ccd2b85aca757afc02ec6bbd661dc91c53d3427fd62b81d0");
    float *other = calloc(model.n_elements, sizeof *other);
    dp_model_init(&model, 20261121, other);
    size_t equal = 0;
    for (size_t i = 0; i < config.vocab * (size_t)config.width; i++) {
        equal += params[i] == other[i];
    }
    assert_true(equal < 10);
    free(other);
    free(params);
    dp_model_close(&model);
}

static void flops_count_matrices_and_attention(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 4, .width = 256, .heads = 8, .context = 256, .vocab = 512};
    dp_model model;
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    assert_true(dp_model_flops(&model, 256) ==
                6.0 * (4.0 * 12.0 * 65536.0 + 512.0 * 256.0) + 6.0 * 4.0 * 256.0 * 256.0);
    dp_model_close(&model);
}

static void llama_has_the_tensors_of_hugging_face(void **state)
{
    (void)state;
    const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                    .layers = 3,
                                    .width = 24,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_width = 10,
                                    .hidden = 50,
                                    .context = 16,
                                    .vocab = 33,
                                    .qk_norm = DP_ON};
    static const struct {
        const char *name;
        size_t first;
        size_t columns;
        size_t rows;
    } wanted[] = {
        {"model.layers.2.self_attn.q_proj.weight", 0, 40, 24},
        {"model.layers.2.self_attn.k_proj.weight", 40, 20, 24},
        {"model.layers.2.self_attn.v_proj.weight", 60, 20, 24},
        {"model.layers.2.self_attn.q_norm.weight", 0, 10, 10},
        {"model.layers.2.self_attn.k_norm.weight", 0, 10, 10},
        {"model.layers.2.self_attn.o_proj.weight", 0, 24, 40},
        {"model.layers.2.mlp.gate_proj.weight", 0, 50, 24},
        {"model.layers.2.mlp.up_proj.weight", 50, 50, 24},
        {"model.layers.2.mlp.down_proj.weight", 0, 24, 50},
        {"model.layers.2.input_layernorm.weight", 0, 24, 24},
        {"model.layers.2.post_attention_layernorm.weight", 0, 24, 24},
        {"model.embed_tokens.weight", 0, 24, 33},
        {"model.norm.weight", 0, 24, 24},
        {"lm_head.weight", 0, 24, 33},
    };
    dp_model model;
    size_t found = 0;
    size_t parts_of_all = 0;
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    for (size_t t = 0; t < model.n_tensors; t++) {
        dp_tensor_part parts[DP_MODEL_PARTS_MAX];
        const size_t n = dp_model_parts(&model, &model.tensors[t], parts);
        parts_of_all += n;
        for (size_t i = 0; i < n; i++) {
            for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
                if (strcmp(parts[i].name, wanted[w].name) == 0) {
                    assert_int_equal(parts[i].first, wanted[w].first);
                    assert_int_equal(parts[i].columns, wanted[w].columns);
                    assert_int_equal(model.tensors[t].shape[0], wanted[w].rows);
                    const bool linear = model.tensors[t].slot < DP_LAYER_SLOTS;
                    assert_true(parts[i].transposed == (linear && model.tensors[t].n_dims == 2));
                    found++;
                }
            }
        }
    }
    assert_int_equal(found, sizeof wanted / sizeof wanted[0]);
    assert_int_equal(parts_of_all, 3 * 11 + 3);
    dp_model_close(&model);
}

static void a_feed_forward_part_without_gates_has_one_matrix(void **state)
{
    (void)state;
    const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                    .layers = 1,
                                    .width = 24,
                                    .heads = 4,
                                    .hidden = 50,
                                    .context = 16,
                                    .vocab = 33,
                                    .activation = DP_ACTIVATION_RELU2,
                                    .head = DP_HEAD_TIED};
    dp_model model;
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    assert_int_equal(dp_model_parts(&model, dp_model_tensor(&model, 0, DP_LAYER_UP_W), parts), 1);
    assert_string_equal(parts[0].name, "model.layers.0.mlp.up_proj.weight");
    assert_int_equal(parts[0].columns, 50);
    assert_null(dp_model_tensor(&model, 0, DP_SLOT_HEAD));
    assert_ptr_equal(dp_model_head(&model), dp_model_tensor(&model, 0, DP_SLOT_EMBED));
    assert_null(dp_model_tensor(&model, 0, DP_LAYER_QKV_B));
    assert_null(dp_model_tensor(&model, 0, DP_SLOT_POSITIONS));
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_model_has_the_tensors_of_hugging_face),
        cmocka_unit_test(tensors_are_aligned_and_do_not_overlap),
        cmocka_unit_test(no_update_is_longer_than_the_manifest_says_that_one_may_be),
        cmocka_unit_test(impossible_models_are_refused_with_a_sentence),
        cmocka_unit_test(open_without_memory_is_nomem),
        cmocka_unit_test(first_weights_have_the_mean_and_deviation_of_gpt2),
        cmocka_unit_test(first_weights_are_the_same_bits_everywhere),
        cmocka_unit_test(flops_count_matrices_and_attention),
        cmocka_unit_test(llama_has_the_tensors_of_hugging_face),
        cmocka_unit_test(a_feed_forward_part_without_gates_has_one_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
