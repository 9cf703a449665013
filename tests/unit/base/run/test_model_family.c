#include "base/run/model_family.h"

#include <stdio.h>

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

/* Is the name of the family a word of the part of the text that begins with the name of its own
 * value: "tied for gpt2, smollm3, gemma2 and gemma3"? */
static bool told_for(const char *text, const char *value, const char *name)
{
    char start[32];
    snprintf(start, sizeof start, " %s for ", value);
    const char *const at = strstr(text, start);
    if (at == NULL) {
        return false;
    }
    const char *const end = strstr(at + strlen(start), " for ");
    const char *const found = strstr(at, name);
    return found != NULL && (end == NULL || found < end);
}

static const char *word_of(const dp_manifest_choice *choice, int value)
{
    for (size_t i = 0; i < choice->n_words; i++) {
        if (choice->words[i].value == value) {
            return choice->words[i].name;
        }
    }
    fail_msg("%s has no word for %d", choice->key, value);
    return "";
}

/* "standard" of a key is told for each family, by its name or as one of the others. */
static void check_standard(const char *key, int usual, int (*own)(const dp_model_family *))
{
    size_t n = 0;
    const dp_manifest_choice *choice = dp_manifest_choices(&n);
    while (strcmp(choice->key, key) != 0) {
        choice++;
    }
    char others[48];
    snprintf(others, sizeof others, "%s for others.", word_of(choice, usual));
    assert_non_null(strstr(choice->text, others));
    const dp_model_family *const families = dp_model_families(&n);
    for (size_t i = 0; i < n; i++) {
        const int value = own(&families[i]);
        const bool told = told_for(choice->text, word_of(choice, value), families[i].name);
        if (told != (value != usual)) {
            fail_msg("%s: %s of %s", choice->text, key, families[i].name);
        }
    }
}

static int own_head(const dp_model_family *family)
{
    return (int)family->head;
}

static int own_activation(const dp_model_family *family)
{
    return (int)family->activation;
}

static void the_manifest_tells_the_own_head_and_activation_of_each_family(void **state)
{
    (void)state;
    check_standard("model.head", DP_HEAD_UNTIED, own_head);
    check_standard("model.activation", DP_ACTIVATION_SWIGLU, own_activation);
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
        cmocka_unit_test(the_manifest_tells_the_own_head_and_activation_of_each_family),
        cmocka_unit_test(a_config_adds_parts),
        cmocka_unit_test(a_setting_that_a_family_lacks_is_refused_with_those_that_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
