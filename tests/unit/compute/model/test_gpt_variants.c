/* Everything that a model may have beside GPT-2, alone and together. THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 24,
                                      .heads = 3,
                                      .context = 17,
                                      .vocab = 40,
                                      .hidden = 32};
/* Sizes that are multiples of nothing: hidden, vocabulary, three query heads on one head of k and
 * v. */
static const dp_model_config all = {.arch = DP_ARCH_LLAMA,
                                    .layers = 2,
                                    .width = 21,
                                    .heads = 3,
                                    .context = 29,
                                    .vocab = 37,
                                    .kv_heads = 1,
                                    .head_width = 10,
                                    .hidden = 35,
                                    .norm_eps_nano = 1000,
                                    .rope_theta = 500,
                                    .activation = DP_ACTIVATION_RELU2,
                                    .qk_norm = DP_ON,
                                    .head = DP_HEAD_TIED,
                                    .softcap_milli = 1500};

/* test_ops_*.c have every table on every operation; one feature is wired the same for all. */
static void check(const dp_model_config *config)
{
    check_shape(config, 2, config->context, dp_ops_best());
}

static void check_all_tables(const dp_model_config *config)
{
    for (size_t i = 0; dp_ops_at(i) != NULL; i++) {
        check_shape(config, 2, config->context, dp_ops_at(i));
    }
}

static void llama_equals_the_float64_model(void **state)
{
    (void)state;
    check_all_tables(&llama);
}

static void three_query_heads_share_one_of_k_and_v(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.kv_heads = 1;
    check(&config);
}

static void four_query_heads_share_two_of_k_and_v(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.heads = 4;
    config.kv_heads = 2;
    check(&config);
}

static void heads_may_be_wider_than_their_share(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.head_width = 14;
    check(&config);
}

static void norms_of_q_and_k_are_right(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.qk_norm = DP_ON;
    check(&config);
}

static void q_k_and_v_may_have_a_bias_alone(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.arch = DP_ARCH_QWEN2;
    config.kv_heads = 1;
    check(&config);
}

static void angles_may_be_stretched(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.head_width =
        16; /* waves of 6 to 2,000 tokens: on both sides of the bounds and between */
    config.rope_scaling = DP_ROPE_LLAMA3;
    config.rope_factor_milli = 8000;
    config.rope_low_milli = 1000;
    config.rope_high_milli = 4000;
    config.rope_context = 64;
    check(&config);
    config = llama;
    config.rope_scaling = DP_ROPE_LINEAR;
    config.rope_factor_milli = 2500;
    check(&config);
}

static void some_layers_may_have_no_rotary_positions(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.arch = DP_ARCH_SMOLLM3;
    config.layers = 3;
    config.rope_off_every = 2;
    check(&config);
    config.rope_off_every = 1;
    check(&config);
}

static void attention_may_have_a_window(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.arch = DP_ARCH_MISTRAL;
    config.kv_heads = 1;
    config.window = 5;
    check_all_tables(&config);
    config.window = 1;
    check(&config);
    config.window = 17; /* as the context: none */
    check(&config);
    config.arch = DP_ARCH_PHI3;
    config.context = 131; /* more than two blocks of queries */
    config.layers = 1;
    config.window = 50;
    check(&config);
}

static const dp_model_config olmo2 = {.arch = DP_ARCH_OLMO2,
                                      .layers = 2,
                                      .width = 21,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_width = 6,
                                      .context = 17,
                                      .vocab = 37,
                                      .hidden = 35};
static const dp_model_config gemma2 = {.arch = DP_ARCH_GEMMA2,
                                       .layers = 3,
                                       .width = 21,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_width = 6,
                                       .context = 17,
                                       .vocab = 37,
                                       .hidden = 35,
                                       .softcap_milli = 3000,
                                       .window = 7,
                                       .full_every = 2,
                                       .scores_softcap_milli = 1500,
                                       .query_scalar = 11};
static const dp_model_config gemma3 = {.arch = DP_ARCH_GEMMA3,
                                       .layers = 3,
                                       .width = 21,
                                       .heads = 4,
                                       .kv_heads = 1,
                                       .head_width = 6,
                                       .context = 17,
                                       .vocab = 37,
                                       .hidden = 35,
                                       .rope_theta = 1000,
                                       .rope_scaling = DP_ROPE_LINEAR,
                                       .rope_factor_milli = 8000,
                                       .window = 7,
                                       .full_every = 3,
                                       .rope_local_theta = 50,
                                       .query_scalar = 6};

static void norms_may_stand_behind_the_parts(void **state)
{
    (void)state;
    check_all_tables(&olmo2);
}

static void gemma_2_equals_the_float64_model(void **state)
{
    (void)state;
    check_all_tables(&gemma2);
}

static void gemma_3_equals_the_float64_model(void **state)
{
    (void)state;
    check_all_tables(&gemma3);
}

static const dp_model_config neox = {.arch = DP_ARCH_NEOX,
                                     .layers = 2,
                                     .width = 24,
                                     .heads = 3,
                                     .context = 17,
                                     .vocab = 37,
                                     .hidden = 35,
                                     .rope_width = 2};

static void parts_may_stand_beside_each_other(void **state)
{
    (void)state;
    check_all_tables(&neox);
}

static void every_activation_is_right(void **state)
{
    (void)state;
    for (int kind = DP_ACTIVATION_GELU; kind <= DP_ACTIVATION_GELU_ERF; kind++) {
        dp_model_config config = llama;
        config.activation = (dp_activation_choice)kind;
        check(&config);
    }
    const dp_model_config gpt2 = {.layers = 1,
                                  .width = 24,
                                  .heads = 2,
                                  .context = 9,
                                  .vocab = 30,
                                  .hidden = 50,
                                  .activation = DP_ACTIVATION_RELU2};
    check(&gpt2);
}

static void the_head_may_be_tied_or_not_in_both_families(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.head = DP_HEAD_TIED;
    check(&config);
    const dp_model_config gpt2 = {
        .layers = 1, .width = 24, .heads = 2, .context = 9, .vocab = 30, .head = DP_HEAD_UNTIED};
    check(&gpt2);
}

static void logits_may_be_capped(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.softcap_milli = 800;
    check(&config);
}

static void the_base_of_the_angles_and_eps_are_settings(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.rope_theta = 100;
    config.norm_eps_nano = 1000000;
    check(&config);
}

static void all_at_once_with_odd_sizes_is_right(void **state)
{
    (void)state;
    check_all_tables(&all);
}

static void one_token_is_a_sequence_and_sequences_may_be_short(void **state)
{
    (void)state;
    static const size_t lengths[] = {2, 17};
    for (size_t i = 0; dp_ops_at(i) != NULL; i++) {
        check_shape(&all, 3, 1, dp_ops_at(i));
        check_shape(&llama, 1, 1, dp_ops_at(i));
    }
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        check_shape(&all, 3, lengths[k], dp_ops_best());
        check_shape(&llama, 1, lengths[k], dp_ops_best());
    }
}

static void step(struct fixture *f, size_t rows, size_t length, double *loss)
{
    const dp_gpt_batch batch = {f->x, f->y, rows, length};
    assert_int_equal(dp_gpt_step(f->gpt, &batch, 1.0F, loss), DP_OK);
}

/* Inputs of products have 8 (bf16) or 11 (fp16) bits: the gradient as a whole moves by about so
 * much, not more. */
static void logits_equal_the_float64_model(void **state)
{
    (void)state;
    check_logits(&all, 1, 14);
}

static void products_of_lower_precision_stay_near_the_gradient(void **state)
{
    (void)state;
    static const double most[DP_PRECISIONS] = {[DP_BF16] = 0.03, [DP_FP16] = 0.004};
    const dp_model_config *const configs[] = {&llama, &all};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct fixture right;
        double loss = 0.0;
        open_fixture(&right, configs[i], 3, 1, dp_ops_best());
        step(&right, 3, 17, &loss);
        for (int precision = DP_BF16; precision < DP_PRECISIONS; precision++) {
            for (size_t o = 0; dp_ops_at_in((dp_precision)precision, o) != NULL; o++) {
                struct fixture rounded;
                double other = 0.0;
                double off = 0.0;
                double size = 0.0;
                open_fixture(&rounded, configs[i], 3, 2, dp_ops_at_in((dp_precision)precision, o));
                step(&rounded, 3, 17, &other);
                for (size_t k = 0; k < right.model.n_elements; k++) {
                    const double a = (double)dp_gpt_grads(right.gpt)[k];
                    const double d = (double)dp_gpt_grads(rounded.gpt)[k] - a;
                    size += a * a;
                    off += d * d;
                }
                if (!(sqrt(off / size) <= most[precision]) || !(off > 0.0) ||
                    !(fabs(other / loss - 1.0) <= most[precision])) {
                    fail_msg("%s: %g", rounded.gpt->ops->name, sqrt(off / size));
                }
                close_fixture(&rounded);
            }
        }
        close_fixture(&right);
    }
}

static void no_step_of_the_ladder_changes_a_bit(void **state)
{
    (void)state;
    const dp_model_config gpt2 = {.layers = 3, .width = 24, .heads = 2, .context = 29, .vocab = 30};
    dp_model_config deep = all;
    deep.layers = 3;
    const dp_model_config *const configs[] = {&gpt2,   &llama,  &deep, &olmo2,
                                              &gemma2, &gemma3, &neox};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct fixture kept;
        double loss = 0.0;
        open_fixture_at(&kept, configs[i], 3, 2, dp_ops_best(), DP_RECOMPUTE_NOTHING);
        step(&kept, 3, 15, &loss);
        for (int at = DP_RECOMPUTE_NORMS; at < DP_RECOMPUTE_STEPS; at++) {
            struct fixture again;
            double other = 0.0;
            open_fixture_at(&again, configs[i], 3, 2, dp_ops_best(), (dp_recompute)at);
            step(&again, 3, 15, &other);
            assert_true(loss == other);
            assert_memory_equal(dp_gpt_grads(kept.gpt), dp_gpt_grads(again.gpt),
                                kept.model.n_elements * sizeof(float));
            close_fixture(&again);
        }
        close_fixture(&kept);
    }
}

static void each_step_of_the_ladder_takes_less_memory(void **state)
{
    (void)state;
    dp_model model;
    dp_model_config config = all;
    config.layers = 8;
    config.context = 128;
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    size_t before = SIZE_MAX;
    for (int at = DP_RECOMPUTE_NOTHING; at < DP_RECOMPUTE_STEPS; at++) {
        const dp_gpt_options options = {.rows_max = 8, .recompute = (dp_recompute)at};
        const size_t bytes = dp_gpt_bytes(&model, &options);
        dp_gpt *gpt = NULL;
        const size_t live = dp_alloc_live_bytes();
        assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_OK);
        assert_in_range(dp_alloc_live_bytes() - live, bytes, bytes + 4096);
        dp_gpt_close(gpt);
        assert_true(bytes < before);
        before = bytes;
    }
    dp_model_close(&model);
}

static void results_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    dp_model_config config = all;
    config.heads = 6;
    config.kv_heads = 2;
    config.vocab = 150;
    for (int at = DP_RECOMPUTE_NOTHING; at < DP_RECOMPUTE_STEPS; at += DP_RECOMPUTE_LAYER) {
        struct fixture one;
        double loss = 0.0;
        open_fixture_at(&one, &config, 7, 1, dp_ops_best(), (dp_recompute)at);
        step(&one, 7, 29, &loss);
        for (size_t threads = 2; threads <= 5; threads++) {
            struct fixture many;
            double other = 0.0;
            open_fixture_at(&many, &config, 7, threads, dp_ops_best(), (dp_recompute)at);
            step(&many, 7, 29, &other);
            assert_true(loss == other);
            assert_memory_equal(dp_gpt_grads(one.gpt), dp_gpt_grads(many.gpt),
                                one.model.n_elements * sizeof(float));
            close_fixture(&many);
        }
        close_fixture(&one);
    }
}

static void micro_batches_sum_to_the_whole_batch(void **state)
{
    (void)state;
    struct fixture whole;
    struct fixture parts;
    double loss = 0.0;
    double loss_parts = 0.0;
    open_fixture(&whole, &all, 5, 1, dp_ops_best());
    open_fixture(&parts, &all, 5, 1, dp_ops_best());
    step(&whole, 5, 17, &loss);
    for (size_t row = 0; row < 5; row++) {
        const dp_gpt_batch part = {whole.x + row * 17, whole.y + row * 17, 1, 17};
        double some = 0.0;
        assert_int_equal(dp_gpt_step(parts.gpt, &part, 1.0F, &some), DP_OK);
        loss_parts += some;
    }
    assert_true(fabs(loss - loss_parts) <= 1e-6 * loss);
    for (size_t t = 0; t < whole.model.n_tensors; t++) {
        const dp_tensor *const tensor = &whole.model.tensors[t];
        const float *const a = dp_gpt_grads(whole.gpt) + tensor->offset;
        const float *const b = dp_gpt_grads(parts.gpt) + tensor->offset;
        const double size = largest_of(a, tensor->elements);
        for (size_t i = 0; i < tensor->elements; i++) {
            assert_true(fabs((double)a[i] - (double)b[i]) <= 3e-6 * size);
        }
    }
    close_fixture(&whole);
    close_fixture(&parts);
}

static void the_loss_alone_is_the_loss_of_the_step_and_leaves_gradients(void **state)
{
    (void)state;
    for (int at = DP_RECOMPUTE_NOTHING; at < DP_RECOMPUTE_STEPS; at++) {
        struct fixture f;
        double stepped = 0.0;
        double alone = 0.0;
        open_fixture_at(&f, &all, 2, 1, dp_ops_best(), (dp_recompute)at);
        const dp_gpt_batch batch = {f.x, f.y, 2, 17};
        assert_int_equal(dp_gpt_loss(f.gpt, &batch, &alone), DP_OK);
        assert_true(largest_of(dp_gpt_grads(f.gpt), f.model.n_elements) == 0.0);
        step(&f, 2, 17, &stepped);
        assert_true(stepped == alone && alone > 0.0);
        close_fixture(&f);
    }
}

static void padding_of_the_gradients_stays_zero(void **state)
{
    (void)state;
    struct fixture f;
    double loss = 0.0;
    open_fixture(&f, &all, 2, 2, dp_ops_best());
    step(&f, 2, 29, &loss);
    for (size_t t = 0; t < f.model.n_tensors; t++) {
        const size_t end =
            t + 1 < f.model.n_tensors ? f.model.tensors[t + 1].offset : f.model.n_elements;
        for (size_t i = f.model.tensors[t].offset + f.model.tensors[t].elements; i < end; i++) {
            assert_true(dp_gpt_grads(f.gpt)[i] == 0.0F);
        }
    }
    close_fixture(&f);
}

static void a_nan_in_any_weight_is_divergence(void **state)
{
    (void)state;
    dp_model_config config = all;
    config.head = DP_HEAD_UNTIED;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        struct fixture f;
        double loss = -1.0;
        open_fixture(&f, &config, 2, 1, dp_ops_at(o));
        const dp_gpt_batch batch = {f.x, f.y, 2, 17};
        for (size_t t = 0; t < f.model.n_tensors; t++) {
            const dp_tensor *const tensor = &f.model.tensors[t];
            float *weight = dp_gpt_params_to_write(f.gpt) + tensor->offset;
            const size_t at = tensor->slot == DP_SLOT_EMBED ? (size_t)f.x[0] * 21 : 0;
            const float kept = weight[at];
            weight[at] = NAN;
            if (dp_gpt_step(f.gpt, &batch, 1.0F, &loss) != DP_DIVERGED) {
                fail_msg("%s: NaN in %s is lost", dp_ops_at(o)->name, tensor->name);
            }
            assert_true(loss == -1.0);
            weight[at] = kept;
        }
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_equals_the_float64_model),
        cmocka_unit_test(three_query_heads_share_one_of_k_and_v),
        cmocka_unit_test(four_query_heads_share_two_of_k_and_v),
        cmocka_unit_test(heads_may_be_wider_than_their_share),
        cmocka_unit_test(norms_of_q_and_k_are_right),
        cmocka_unit_test(q_k_and_v_may_have_a_bias_alone),
        cmocka_unit_test(angles_may_be_stretched),
        cmocka_unit_test(some_layers_may_have_no_rotary_positions),
        cmocka_unit_test(attention_may_have_a_window),
        cmocka_unit_test(norms_may_stand_behind_the_parts),
        cmocka_unit_test(gemma_2_equals_the_float64_model),
        cmocka_unit_test(gemma_3_equals_the_float64_model),
        cmocka_unit_test(parts_may_stand_beside_each_other),
        cmocka_unit_test(every_activation_is_right),
        cmocka_unit_test(the_head_may_be_tied_or_not_in_both_families),
        cmocka_unit_test(logits_may_be_capped),
        cmocka_unit_test(the_base_of_the_angles_and_eps_are_settings),
        cmocka_unit_test(all_at_once_with_odd_sizes_is_right),
        cmocka_unit_test(one_token_is_a_sequence_and_sequences_may_be_short),
        cmocka_unit_test(logits_equal_the_float64_model),
        cmocka_unit_test(products_of_lower_precision_stay_near_the_gradient),
        cmocka_unit_test(no_step_of_the_ladder_changes_a_bit),
        cmocka_unit_test(each_step_of_the_ladder_takes_less_memory),
        cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(micro_batches_sum_to_the_whole_batch),
        cmocka_unit_test(the_loss_alone_is_the_loss_of_the_step_and_leaves_gradients),
        cmocka_unit_test(padding_of_the_gradients_stays_zero),
        cmocka_unit_test(a_nan_in_any_weight_is_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
