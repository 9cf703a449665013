#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/run/adapt.h"

static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 64,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .context = 32,
                                      .vocab = 300,
                                      .hidden = 96,
                                      .adapt_rank = 8};

static dp_status check(const dp_model_config *config, dp_why *why)
{
    why->text[0] = '\0';
    return dp_model_config_check(config, why);
}

static void every_word_has_bits_and_comes_back_as_text(void **state)
{
    (void)state;
    char text[DP_ADAPT_TEXT_MAX];
    size_t count = 0;
    uint32_t all = 0;
    const dp_adapt_word *const words = dp_adapt_words(&count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(dp_adapt_bits(words[i].word), words[i].bits);
        all |= words[i].bits;
    }
    assert_int_equal(all, DP_ADAPT_ALL);
    assert_int_equal(dp_adapt_bits("all"), DP_ADAPT_ALL);
    assert_int_equal(dp_adapt_bits("lm_head"), 0);
    dp_model_config config = dp_model_config_resolve(&llama);
    dp_adapt_text(&config, text);
    assert_string_equal(text, "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj");
    config.adapt_targets = DP_ADAPT_V | DP_ADAPT_Q;
    dp_adapt_text(&config, text);
    assert_string_equal(text, "q_proj,v_proj");
    config = (dp_model_config){.layers = 1, .width = 12, .heads = 3, .context = 8, .vocab = 9};
    config.adapt_rank = 2;
    config = dp_model_config_resolve(&config);
    dp_adapt_text(&config, text);
    assert_string_equal(text, "c_attn,attn.c_proj,c_fc,mlp.c_proj");
}

static void the_defaults_are_every_linear_layer_and_a_scale_of_one(void **state)
{
    (void)state;
    const dp_model_config config = dp_model_config_resolve(&llama);
    assert_int_equal(config.adapt_targets, DP_ADAPT_ALL);
    assert_int_equal(config.adapt_alpha_milli, 8000);
    const dp_model_config base = dp_model_config_base(&config);
    assert_false(dp_model_config_adapts(&base));
    assert_int_equal(base.adapt_targets, 0);
}

static void parameters_are_those_of_the_adapters(void **state)
{
    (void)state;
    /* q 64 + 64, k and v 64 + 32, o 64 + 64, gate and up 64 + 96, down 96 + 64. */
    const uint64_t each = 128 + 2 * 96 + 128 + 2 * 160 + 160;
    assert_int_equal(dp_model_config_parameters(&llama), 2 * 8 * each);
    dp_model_config gpt2 = {.layers = 3, .width = 12, .heads = 3, .context = 8, .vocab = 9};
    gpt2.adapt_rank = 2;
    /* c_attn 12 + 36, c_proj 12 + 12, c_fc 12 + 48, c_proj 48 + 12. */
    assert_int_equal(dp_model_config_parameters(&gpt2), 3 * 2 * (48 + 24 + 60 + 60));
}

static void ranks_and_targets_that_do_not_fit_are_named(void **state)
{
    (void)state;
    dp_why why;
    dp_model_config config = llama;
    assert_int_equal(check(&config, &why), DP_OK);
    config.adapt_rank = 33;
    assert_int_equal(check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "k_proj of this model has 64 inputs and 32 outputs"));
    assert_non_null(strstr(why.text, "at most 32, or leave k_proj out of model.adapt.targets"));
    config.adapt_targets = DP_ADAPT_Q;
    assert_int_equal(check(&config, &why), DP_OK);
    config.adapt_rank = DP_ADAPT_RANK_MAX + 1;
    assert_int_equal(check(&config, &why), DP_BADARG);
    config.adapt_rank = 4;
    config.adapt_targets = DP_ADAPT_ALL + 1;
    assert_int_equal(check(&config, &why), DP_BADARG);
    config.activation = DP_ACTIVATION_GELU;
    config.adapt_targets = DP_ADAPT_GATE;
    assert_int_equal(check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "names gate_proj, which this model has not"));
    config = llama;
    config.adapt_rank = 0;
    config.adapt_targets = DP_ADAPT_Q;
    assert_int_equal(check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "model.adapt.rank is not"));
    config = (dp_model_config){.layers = 1, .width = 12, .heads = 3, .context = 8, .vocab = 9};
    config.adapt_rank = 2;
    config.adapt_targets = DP_ADAPT_Q;
    assert_int_equal(check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "write c_attn"));
    config.adapt_targets = DP_ADAPT_Q | DP_ADAPT_K | DP_ADAPT_V;
    config.adapt_rank = 12;
    assert_int_equal(check(&config, &why), DP_OK);
    config = (dp_model_config){.arch = DP_ARCH_EXTERNAL, .adapt_rank = 2};
    assert_int_equal(check(&config, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "delete model.adapt.rank"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_has_bits_and_comes_back_as_text),
        cmocka_unit_test(the_defaults_are_every_linear_layer_and_a_scale_of_one),
        cmocka_unit_test(parameters_are_those_of_the_adapters),
        cmocka_unit_test(ranks_and_targets_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
