#include "base/run/model_family.h"

#include "base/run/manifest.h"
#include "tests/lib/check.h"

static dp_model_config of(dp_arch arch)
{
    return (dp_model_config){
        .arch = arch, .layers = 2, .width = 24, .heads = 2, .context = 16, .vocab = 300};
}

/* model.arch: one word for each row, and one for any model. */
static void every_family_has_the_word_of_the_manifest(void **state)
{
    size_t n_families = 0;
    size_t n_choices = 0;
    const dp_manifest_choice *const choices = dp_manifest_choices(&n_choices);
    const dp_manifest_choice *arch = NULL;
    (void)state;
    assert_non_null(dp_model_families(&n_families));
    for (size_t i = 0; i < n_choices; i++) {
        arch = strcmp(choices[i].key, "model.arch") == 0 ? &choices[i] : arch;
    }
    assert_non_null(arch);
    assert_int_equal(arch->n_words, n_families + 1);
    for (size_t i = 0; i < arch->n_words; i++) {
        const dp_model_family *const row = dp_model_family_of((dp_arch)arch->words[i].value);
        assert_string_equal(arch->words[i].name, row == NULL ? "external" : row->name);
    }
}

static void every_family_has_a_model(void **state)
{
    size_t n = 0;
    const dp_model_family *const families = dp_model_families(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const dp_model_config config = of(families[i].arch);
        dp_why why = {""};
        if (dp_model_config_check(&config, &why) != DP_OK) {
            fail_msg("%s: %s", families[i].name, why.text);
        }
        assert_int_equal(dp_model_features(&config) & families[i].features, families[i].features);
    }
    const dp_model_config external = {.arch = DP_ARCH_EXTERNAL};
    assert_null(dp_model_family_of(DP_ARCH_EXTERNAL));
    assert_int_equal(dp_model_features(&external), 0);
}

static void a_config_adds_parts(void **state)
{
    dp_model_config config = of(DP_ARCH_LLAMA);
    (void)state;
    assert_int_equal(dp_model_features(&config), DP_HAS_GATES | DP_HAS_HEAD | DP_HAS_NORMS_BEFORE);
    config.qk_norm = DP_ON;
    config.head = DP_HEAD_TIED;
    config.activation = DP_ACTIVATION_RELU2;
    assert_int_equal(dp_model_features(&config), DP_HAS_QK_NORMS | DP_HAS_NORMS_BEFORE);
}

static void a_setting_that_a_family_lacks_is_refused_with_those_that_have_it(void **state)
{
    dp_model_config config = of(DP_ARCH_QWEN2);
    dp_why why = {""};
    (void)state;
    config.qk_norm = DP_ON;
    CHECK_STATUS(dp_model_config_check(&config, &why), DP_BADARG);
    CHECK(strstr(why.text, "model.arch qwen2") != NULL &&
          strstr(why.text, "model.qk_norm") != NULL);
    CHECK(strstr(why.text, "take model.arch llama") != NULL);
    config = of(DP_ARCH_QWEN2);
    config.softcap_milli = 30000;
    CHECK_STATUS(dp_model_config_check(&config, &why), DP_BADARG);
    CHECK(strstr(why.text, "model.softcap") != NULL);
    config = of((dp_arch)99);
    CHECK_STATUS(dp_model_config_check(&config, &why), DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_the_word_of_the_manifest),
        cmocka_unit_test(every_family_has_a_model),
        cmocka_unit_test(a_config_adds_parts),
        cmocka_unit_test(a_setting_that_a_family_lacks_is_refused_with_those_that_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
