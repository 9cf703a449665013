#include "base/run/model_config.h"

#include "tests/lib/check.h"

static const dp_model_config gpt2 = {
    .layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024};
static const dp_model_config llama = {
    .arch = DP_ARCH_LLAMA, .layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024};

static void refuse(const dp_model_config *config, const char *word)
{
    dp_why why = {""};
    CHECK_STATUS(dp_model_config_check(config, &why), DP_BADARG);
    if (strstr(why.text, word) == NULL) {
        fail_msg("\"%s\" does not name %s", why.text, word);
    }
}

static void zeros_stand_for_what_the_family_has(void **state)
{
    (void)state;
    const dp_model_config a = dp_model_config_resolve(&gpt2);
    CHECK(a.kv_heads == 4 && a.head_width == 32 && a.hidden == 512 && a.norm_eps_nano == 10000);
    CHECK(a.activation == DP_ACTIVATION_GELU && a.head == DP_HEAD_TIED && a.rope_theta == 0);
    const dp_model_config b = dp_model_config_resolve(&llama);
    CHECK(b.hidden == 384 && b.activation == DP_ACTIVATION_SWIGLU && b.head == DP_HEAD_UNTIED);
    CHECK(b.rope_theta == 10000 && b.kv_heads == 4);
    const dp_model_config again = dp_model_config_resolve(&b);
    CHECK(again.hidden == b.hidden && again.rope_theta == b.rope_theta);
}

static void numbers_of_positions_and_windows_must_fit_together(void **state)
{
    (void)state;
    dp_model_config config = llama;
    config.rope_scaling = DP_ROPE_LINEAR;
    refuse(&config, "model.rope_factor must be given");
    config.rope_factor_milli = 500;
    refuse(&config, "model.rope_factor must be 1 or more");
    config.rope_factor_milli = 8000;
    CHECK_OK(dp_model_config_check(&config, NULL));
    config.rope_low_milli = 1000;
    refuse(&config, "model.rope_low must be absent with model.rope_scaling linear");
    config.rope_scaling = DP_ROPE_LLAMA3;
    config.rope_context = 64;
    config.rope_high_milli = 1000;
    refuse(&config, "model.rope_high must be above");
    config.rope_high_milli = 4000;
    CHECK_OK(dp_model_config_check(&config, NULL));
    config.window = 5;
    refuse(&config, "take model.arch mistral, phi3, gemma2, gemma3");
    config = llama;
    config.arch = DP_ARCH_GEMMA3;
    config.full_every = 2;
    refuse(&config, "model.full_every is only for layers with model.window");
    config.window = 5;
    CHECK_OK(dp_model_config_check(&config, NULL));
    config.full_every = 5;
    refuse(&config, "more than model.layers 4");
    config.full_every = 1;
    refuse(&config, "no layer has model.window");
    config = llama;
    config.arch = DP_ARCH_NEOX;
    config.rope_width = 31;
    refuse(&config, "model.rope_width 31 must be even");
    config.rope_width = 32;
    refuse(&config, "less than the width of a head, 32");
    config.rope_width = 8;
    CHECK_OK(dp_model_config_check(&config, NULL));
    config.kv_heads = 2;
    refuse(&config, "model.arch gpt_neox, model.kv_heads must be equal");
}

/* The numbers of the papers and of the models' pages. */
static void presets_have_the_published_numbers_of_parameters(void **state)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } wanted[] = {
        {"gpt2-124m", 124439808},   {"gpt2-355m", 354823168},    {"gpt2-774m", 774030080},
        {"gpt2-1.5b", 1557611200},  {"llama-135m", 134515008},   {"llama-160m", 162417408},
        {"llama-360m", 361821120},  {"llama-1b", 1235814400},    {"llama3.2-1b", 1235814400},
        {"llama-1.1b", 1100048384}, {"qwen2.5-0.5b", 494032768}, {"gemma3-270m", 268098176},
        {"pythia-160m", 162322944}, {"qwen3-0.6b", 596049920},   {"qwen3-1.7b", 1720574976}};
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const dp_model_preset *const preset = dp_model_preset_find(wanted[i].name);
        assert_non_null(preset);
        assert_int_equal(dp_model_config_parameters(&preset->config), wanted[i].parameters);
    }
    assert_null(dp_model_preset_find("gpt2"));
}

static void every_preset_is_a_possible_model_with_its_own_name(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_model_preset *const presets = dp_model_presets(&count);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(dp_model_config_check(&presets[i].config, NULL));
        assert_ptr_equal(dp_model_preset_find(presets[i].name), &presets[i]);
    }
}

static void numbers_out_of_range_are_named(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *word;
    } cases[] = {
        {offsetof(dp_model_config, layers), 0, "model.layers"},
        {offsetof(dp_model_config, layers), UINT32_MAX, "model.layers"},
        {offsetof(dp_model_config, width), 0, "model.width"},
        {offsetof(dp_model_config, heads), 0, "model.heads"},
        {offsetof(dp_model_config, context), 0, "model.context"},
        {offsetof(dp_model_config, vocab), 1, "model.vocab"},
        {offsetof(dp_model_config, vocab), 262145, "model.vocab"},
        {offsetof(dp_model_config, kv_heads), 257, "model.kv_heads"},
        {offsetof(dp_model_config, kv_heads), 3, "model.kv_heads"},
        {offsetof(dp_model_config, head_width), 257, "model.head_width"},
        {offsetof(dp_model_config, head_width), UINT32_MAX, "model.head_width"},
        {offsetof(dp_model_config, head_width), 31, "model.head_width"},
        {offsetof(dp_model_config, hidden), 65537, "model.hidden"},
        {offsetof(dp_model_config, norm_eps_nano), UINT32_MAX, "model.norm_eps"},
        {offsetof(dp_model_config, softcap_milli), UINT32_MAX, "model.softcap"},
        {offsetof(dp_model_config, arch), 70, "model.arch"},
        {offsetof(dp_model_config, activation), 7, "model.activation"},
        {offsetof(dp_model_config, head), UINT32_MAX, "model.head"},
        {offsetof(dp_model_config, qk_norm), 2, "model.qk_norm"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_model_config config = llama;
        memcpy((char *)&config + cases[i].at, &cases[i].value, sizeof cases[i].value);
        refuse(&config, cases[i].word);
    }
    dp_model_config large = llama;
    large.layers = 256;
    large.width = 16384;
    large.heads = 256;
    refuse(&large, "parameters");
    dp_model_config uneven = llama;
    uneven.heads = 3;
    refuse(&uneven, "multiple");
}

static void gpt2_has_only_what_its_class_has(void **state)
{
    dp_model_config config = gpt2;
    (void)state;
    config.kv_heads = 2;
    refuse(&config, "model.kv_heads");
    config = gpt2;
    config.head_width = 64;
    refuse(&config, "model.head_width");
    config = gpt2;
    config.norm_eps_nano = 1;
    refuse(&config, "model.norm_eps");
    config = gpt2;
    config.rope_theta = 10000;
    refuse(&config, "model.rope_theta");
    config = gpt2;
    config.activation = DP_ACTIVATION_SWIGLU;
    refuse(&config, "model.activation");
    config = gpt2;
    config.qk_norm = DP_ON;
    refuse(&config, "model.qk_norm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_positions_and_windows_must_fit_together),
        cmocka_unit_test(zeros_stand_for_what_the_family_has),
        cmocka_unit_test(presets_have_the_published_numbers_of_parameters),
        cmocka_unit_test(every_preset_is_a_possible_model_with_its_own_name),
        cmocka_unit_test(numbers_out_of_range_are_named),
        cmocka_unit_test(gpt2_has_only_what_its_class_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
