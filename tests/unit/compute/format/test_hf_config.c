#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/run/model_family.h"
#include "compute/format/hf_config.h"

static json_t *config_of(const dp_model_config *config)
{
    dp_buf text;
    dp_why why = {""};
    dp_buf_init(&text, 4096);
    assert_int_equal(dp_hf_config_write(config, &text, &why), DP_OK);
    json_t *json = json_loadb((const char *)dp_buf_view(&text).data, text.size, 0, NULL);
    assert_non_null(json);
    dp_buf_close(&text);
    return json;
}

static void check_int(const json_t *json, const char *key, long long value)
{
    const json_t *const field = json_object_get(json, key);
    if (!json_is_integer(field) || json_integer_value(field) != value) {
        fail_msg("%s is not %lld", key, value);
    }
}

static void check_class(const json_t *json, const char *name)
{
    const json_t *const classes = json_object_get(json, "architectures");
    assert_string_equal(json_string_value(json_array_get(classes, 0)), name);
}

static void a_gpt2_is_described(void **state)
{
    (void)state;
    json_t *json = config_of(&dp_model_preset_find("gpt2-355m")->config);
    check_class(json, "GPT2LMHeadModel");
    check_int(json, "n_layer", 24);
    check_int(json, "n_embd", 1024);
    check_int(json, "n_inner", 4096);
    check_int(json, "vocab_size", 50257);
    assert_true(json_is_true(json_object_get(json, "tie_word_embeddings")));
    assert_string_equal(json_string_value(json_object_get(json, "activation_function")),
                        "gelu_new");
    assert_true(json_real_value(json_object_get(json, "layer_norm_epsilon")) == 1e-5);
    json_decref(json);
}

static void a_llama_is_described(void **state)
{
    (void)state;
    json_t *json = config_of(&dp_model_preset_find("llama-1.1b")->config);
    check_class(json, "LlamaForCausalLM");
    check_int(json, "num_hidden_layers", 22);
    check_int(json, "hidden_size", 2048);
    check_int(json, "num_key_value_heads", 4);
    check_int(json, "head_dim", 64);
    check_int(json, "intermediate_size", 5632);
    check_int(json, "max_position_embeddings", 2048);
    assert_true(json_real_value(json_object_get(json, "rope_theta")) == 10000.0);
    assert_true(json_real_value(json_object_get(json, "rms_norm_eps")) == 1e-5);
    assert_true(json_is_false(json_object_get(json, "tie_word_embeddings")));
    json_decref(json);
}

static void norms_of_q_and_k_make_a_qwen3(void **state)
{
    (void)state;
    json_t *json = config_of(&dp_model_preset_find("qwen3-0.6b")->config);
    check_class(json, "Qwen3ForCausalLM");
    check_int(json, "head_dim", 128);
    assert_string_equal(json_string_value(json_object_get(json, "model_type")), "qwen3");
    assert_true(json_real_value(json_object_get(json, "rms_norm_eps")) == 1e-6);
    json_decref(json);
}

static void refuse(const dp_model_config *config, const char *word)
{
    dp_buf text;
    dp_why why = {""};
    dp_buf_init(&text, 4096);
    assert_int_equal(dp_hf_config_write(config, &text, &why), DP_UNSUPPORTED);
    assert_int_equal(dp_hf_config_check(config, NULL), DP_UNSUPPORTED);
    assert_non_null(strstr(why.text, word));
    assert_int_equal(text.size, 0);
    dp_buf_close(&text);
}

static void a_model_that_no_class_computes_is_refused(void **state)
{
    (void)state;
    dp_model_config config = dp_model_preset_find("llama-tiny")->config;
    config.softcap_milli = 15000;
    refuse(&config, "model.softcap");
    config.softcap_milli = 0;
    config.activation = DP_ACTIVATION_RELU2;
    refuse(&config, "model.activation");
}

static void a_file_without_room_is_too_big(void **state)
{
    (void)state;
    dp_buf text;
    dp_buf_init(&text, 10);
    assert_int_equal(dp_hf_config_write(&dp_model_preset_find("gpt2-tiny")->config, &text, NULL),
                     DP_TOOBIG);
    dp_buf_close(&text);
}

static void every_preset_is_read_back(void **state)
{
    (void)state;
    size_t n = 0;
    const dp_model_preset *const presets = dp_model_presets(&n);
    for (size_t i = 0; i < n; i++) {
        dp_buf text;
        dp_model_config read;
        dp_why why = {""};
        const dp_model_config wanted = dp_model_config_resolve(&presets[i].config);
        dp_buf_init(&text, 4096);
        assert_int_equal(dp_hf_config_write(&presets[i].config, &text, &why), DP_OK);
        if (dp_hf_config_read(dp_buf_view(&text), &read, &why) != DP_OK) {
            fail_msg("%s: %s", presets[i].name, why.text);
        }
        assert_memory_equal(&read, &wanted, sizeof read);
        dp_buf_close(&text);
    }
}

/* A model of each family, of the least size that each takes. */
static void every_family_is_read_back(void **state)
{
    (void)state;
    size_t n = 0;
    const dp_model_family *const families = dp_model_families(&n);
    for (size_t i = 0; i < n; i++) {
        dp_buf text;
        dp_model_config read;
        dp_why why = {""};
        const dp_model_config config =
            dp_model_config_resolve(&(dp_model_config){.arch = families[i].arch,
                                                       .layers = 3,
                                                       .width = 24,
                                                       .heads = 2,
                                                       .context = 16,
                                                       .vocab = 40});
        dp_buf_init(&text, 4096);
        assert_int_equal(dp_hf_config_write(&config, &text, &why), DP_OK);
        if (dp_hf_config_read(dp_buf_view(&text), &read, &why) != DP_OK) {
            fail_msg("%s: %s", families[i].name, why.text);
        }
        assert_memory_equal(&read, &config, sizeof read);
        json_t *const json = json_loadb((const char *)text.data, text.size, 0, NULL);
        const char *const type = json_string_value(json_object_get(json, "model_type"));
        assert_int_equal(strncmp(type, families[i].name, strlen(families[i].name)), 0);
        json_decref(json);
        dp_buf_close(&text);
    }
}

/* 9 digits are too few for some. */
static void every_base_of_the_angles_is_read_back(void **state)
{
    static const uint32_t bases[] = {1000000128, 999999999, UINT32_MAX};
    size_t n = 0;
    const dp_model_preset *const presets = dp_model_presets(&n);
    const dp_model_config *llama = NULL;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        llama = presets[i].config.arch == DP_ARCH_LLAMA ? &presets[i].config : llama;
    }
    assert_non_null(llama);
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        dp_model_config config = *llama;
        dp_model_config again;
        dp_buf text;
        dp_why why = {""};
        dp_buf_init(&text, 4096);
        config.rope_theta = bases[i];
        assert_int_equal(dp_hf_config_write(&config, &text, &why), DP_OK);
        assert_int_equal(dp_hf_config_read(dp_buf_view(&text), &again, &why), DP_OK);
        assert_int_equal(again.rope_theta, bases[i]);
        dp_buf_close(&text);
    }
}

/* Shares are decimals, which are multiplied and rounded down again. */
static void every_share_of_a_head_is_read_back(void **state)
{
    (void)state;
    for (uint32_t head = 4; head <= 256; head += 2) {
        for (uint32_t turned = 2; turned < head; turned += 2) {
            const dp_model_config config =
                dp_model_config_resolve(&(dp_model_config){.arch = DP_ARCH_PHI3,
                                                           .layers = 1,
                                                           .width = 2 * head,
                                                           .heads = 2,
                                                           .context = 16,
                                                           .vocab = 40,
                                                           .rope_width = turned});
            dp_model_config again = {0};
            dp_buf text;
            dp_why why = {""};
            dp_buf_init(&text, 4096);
            assert_int_equal(dp_hf_config_write(&config, &text, &why), DP_OK);
            if (dp_hf_config_read(dp_buf_view(&text), &again, &why) != DP_OK) {
                fail_msg("%s", why.text);
            }
            assert_int_equal(again.rope_width, turned);
            dp_buf_close(&text);
        }
    }
}

static void later_transformers_have_rope_in_parameters(void **state)
{
    (void)state;
    dp_model_config read;
    dp_why why = {""};
    static const char text[] =
        "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
        "\"max_position_embeddings\":128,\"vocab_size\":300,\"rms_norm_eps\":1e-05,"
        "\"rope_parameters\":{\"rope_theta\":500000.0,\"rope_type\":\"default\"}}";
    if (dp_hf_config_read(dp_view_text(text), &read, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    assert_int_equal(read.rope_theta, 500000);
    assert_int_equal(read.head_width, 16);
    assert_int_equal(read.head, DP_HEAD_UNTIED);
}

/* Of layers that differ: as lists and as periods, and what has no period. */
static void layers_that_differ_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        const char *more;
        uint32_t window;
        uint32_t full_every;
        uint32_t rope_off_every;
        const char *word; /* of the sentence, if it is refused */
    } rows[] = {
        {"mistral", "\"head_dim\":16", 4096, 0, 0, NULL},
        {"mistral", "\"sliding_window\":null", 0, 0, 0, NULL},
        {"phi3", "\"head_dim\":16", 0, 0, 0, NULL},
        {"phi3", "\"sliding_window\":2047", 2047, 0, 0, NULL},
        {"smollm3", "\"head_dim\":16", 0, 0, 4, NULL},
        {"smollm3", "\"no_rope_layers\":[1,0,1,0]", 0, 0, 2, NULL},
        {"smollm3", "\"no_rope_layers\":[1,1,1,1]", 0, 0, 0, NULL},
        {"smollm3", "\"no_rope_layers\":[0,1,1,0]", 0, 0, 0, "no_rope_layers has no period"},
        {"smollm3", "\"no_rope_layers\":[0,1]", 0, 0, 0, "no list of all layers"},
        {"smollm3", "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0}", 0, 0, 0,
         "only default is"},
        {"gemma2", "\"head_dim\":16", 4096, 2, 0, NULL},
        {"gemma2", "\"head_dim\":16,\"sliding_window\":null", 0, 0, 0, NULL},
        {"gemma2",
         "\"head_dim\":16,\"layer_types\":[\"full_attention\",\"sliding_attention\","
         "\"full_attention\",\"sliding_attention\"]",
         0, 0, 0, "layer_types has no period"},
        {"gemma2", "\"head_dim\":16,\"layer_types\":[\"a\",\"b\",\"c\",\"d\"]", 0, 0, 0,
         "layer_types has a;"},
        {"gemma3_text", "\"head_dim\":16,\"sliding_window_pattern\":3", 4096, 3, 0, NULL},
        {"gemma3_text", "\"head_dim\":16", 4096, 0, 0, NULL},
        {"llama", "\"partial_rotary_factor\":0.5", 0, 0, 0, "partial_rotary_factor 0.5 is not"},
        {"phi3", "\"partial_rotary_factor\":1.5", 0, 0, 0, "above 0, up to 1"},
        {"gpt_neox", "\"use_parallel_residual\":false", 0, 0, 0, "use_parallel_residual is false"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        dp_model_config read = {0};
        dp_why why = {""};
        snprintf(text, sizeof text,
                 "{\"model_type\":\"%s\",\"num_hidden_layers\":4,\"hidden_size\":64,"
                 "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
                 "\"max_position_embeddings\":8192,\"vocab_size\":300,%s}",
                 rows[i].type, rows[i].more);
        const dp_status status = dp_hf_config_read(dp_view_text(text), &read, &why);
        const bool refused =
            status != DP_OK && rows[i].word != NULL && strstr(why.text, rows[i].word) != NULL;
        if (rows[i].word != NULL ? !refused
                                 : status != DP_OK || read.window != rows[i].window ||
                                       read.full_every != rows[i].full_every ||
                                       read.rope_off_every != rows[i].rope_off_every) {
            fail_msg("%s %s: %s \"%s\"", rows[i].type, rows[i].more, dp_status_text(status),
                     why.text);
        }
    }
}

/* A configuration that the engine would compute in another way than transformers must not pass. */
static void a_model_that_is_not_computed_here_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        dp_status status;
        const char *word;
    } rows[] = {
        {"\"attention_bias\":true", DP_UNSUPPORTED, "attention_bias is true"},
        {"\"hidden_act\":\"gelu\"", DP_UNSUPPORTED, "hidden_act is gelu"},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\"}", DP_BADMSG, "no factor"},
        {"\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}", DP_UNSUPPORTED, "is dynamic"},
        {"\"rope_parameters\":{\"rope_type\":\"yarn\"}", DP_UNSUPPORTED, "rope_type is yarn"},
        {"\"quantization_config\":{}", DP_UNSUPPORTED, "quantization_config"},
        {"\"rope_theta\":0.3", DP_UNSUPPORTED, "rope_theta"},
        {"\"rms_norm_eps\":\"small\"", DP_BADMSG, "rms_norm_eps"},
        {"\"tie_word_embeddings\":1", DP_BADMSG, "tie_word_embeddings"},
        {"\"head_dim\":-1", DP_BADMSG, "head_dim"},
        {"\"head_dim\":4294967296", DP_BADMSG, "head_dim"},
        {"\"num_key_value_heads\":3", DP_BADARG, "model."},
        {"\"vocab_size\":1", DP_BADMSG, "duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        dp_model_config read = {.layers = 77};
        dp_why why = {""};
        snprintf(text, sizeof text,
                 "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,"
                 "\"num_attention_heads\":4,\"intermediate_size\":96,"
                 "\"max_position_embeddings\":128,\"vocab_size\":300,%s}",
                 rows[i].more);
        const dp_status status = dp_hf_config_read(dp_view_text(text), &read, &why);
        if (status != rows[i].status || strstr(why.text, rows[i].word) == NULL) {
            fail_msg("%s: %s \"%s\"", rows[i].more, dp_status_text(status), why.text);
        }
        assert_int_equal(read.layers, 77);
    }
}

static json_t *generation_of(const uint32_t *begin, const uint32_t *end)
{
    dp_buf text;
    dp_buf_init(&text, 4096);
    assert_int_equal(dp_hf_generation_write(begin, end, &text), DP_OK);
    json_t *const json = json_loadb((const char *)text.data, text.size, 0, NULL);
    assert_non_null(json);
    dp_buf_close(&text);
    return json;
}

static void texts_begin_and_end_with_the_tokens_that_there_are(void **state)
{
    const uint32_t begin = 1;
    const uint32_t end = 2;
    (void)state;
    json_t *json = generation_of(&begin, &end);
    check_int(json, "bos_token_id", 1);
    check_int(json, "eos_token_id", 2);
    json_decref(json);
    json = generation_of(NULL, NULL);
    assert_null(json_object_get(json, "bos_token_id"));
    assert_null(json_object_get(json, "eos_token_id"));
    json_decref(json);
}

static void other_models_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dp_status status;
        const char *word;
    } rows[] = {
        {"{\"model_type\":\"bert\"}", DP_UNSUPPORTED, "model_type is bert; gpt2, llama, "},
        {"{\"model_type\":\"qwen2_vl\"}", DP_UNSUPPORTED, "nearest that is: qwen2"},
        {"{\"model_type\":\"lama\"}", DP_UNSUPPORTED, "nearest that is: llama"},
        {"{\"model_type\":\"gptj\"}", DP_UNSUPPORTED, "nearest that is: gpt_neox"},
        {"{}", DP_BADMSG, "model_type"},
        {"[1]", DP_BADMSG, "model_type"},
        {"", DP_BADMSG, "config.json"},
        {"{\"model_type\":\"gpt2\"}", DP_BADMSG, "n_layer"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":2,\"n_positions\":32,"
         "\"vocab_size\":300,\"activation_function\":\"relu\"}",
         DP_UNSUPPORTED, "activation_function is relu"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_model_config read;
        dp_why why = {""};
        const dp_status status = dp_hf_config_read(dp_view_text(rows[i].text), &read, &why);
        if (status != rows[i].status || strstr(why.text, rows[i].word) == NULL) {
            fail_msg("%s: %s \"%s\"", rows[i].text, dp_status_text(status), why.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpt2_is_described),
        cmocka_unit_test(a_llama_is_described),
        cmocka_unit_test(norms_of_q_and_k_make_a_qwen3),
        cmocka_unit_test(a_model_that_no_class_computes_is_refused),
        cmocka_unit_test(a_file_without_room_is_too_big),
        cmocka_unit_test(every_preset_is_read_back),
        cmocka_unit_test(every_family_is_read_back),
        cmocka_unit_test(every_base_of_the_angles_is_read_back),
        cmocka_unit_test(every_share_of_a_head_is_read_back),
        cmocka_unit_test(later_transformers_have_rope_in_parameters),
        cmocka_unit_test(layers_that_differ_are_read),
        cmocka_unit_test(a_model_that_is_not_computed_here_is_refused),
        cmocka_unit_test(texts_begin_and_end_with_the_tokens_that_there_are),
        cmocka_unit_test(other_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
