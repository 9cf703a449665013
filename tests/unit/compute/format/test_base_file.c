/* From a folder of weights to a base and adapters on it, and from these to files of peft and of the
 * whole model. */
#include "tests/unit/compute/tiny_run.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/format/adapter_config.h"
#include "compute/format/base_file.h"
#include "compute/format/export.h"
#include "compute/format/hf_config.h"
#include "compute/format/hf_import.h"
#include "compute/format/prepare.h"
#include "compute/format/safetensors.h"
#include "compute/format/safetensors_read.h"
#include "compute/machine/files.h"
#include "compute/model/adapter.h"
#include "compute/model/state.h"
#include "tests/lib/tempdir.h"

enum { BUF_MAX = 1 << 22, VOCAB = 280 };

static const dp_model_config shape = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 24,
                                      .heads = 2,
                                      .context = 16,
                                      .vocab = VOCAB,
                                      .hidden = 40};

struct rig {
    tempdir dir;
    dp_manifest manifest;
    dp_prepared made;
    float *theta; /* of the folder weights/ */
    dp_model model;
};

/* The folder weights/, of shape, with the tokenizer of a first run. */
static void make_weights(struct rig *r)
{
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    char text[4000];
    dp_buf bytes;
    dp_manifest m;
    dp_prepared made;
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(r->dir.path, "text", dp_view_of(text, sizeof text), NULL));
    dp_manifest_default(&m);
    m.vocab = VOCAB;
    const dp_prepare_job job = {.text = tempdir_file(&r->dir, "text", path),
                                .folder = tempdir_file(&r->dir, "weights", folder)};
    CHECK_OK(dp_prepare(&job, &m, &made, NULL));
    CHECK_OK(dp_model_open(&r->model, &shape, NULL));
    r->theta = calloc(r->model.n_elements, sizeof *r->theta);
    dp_model_init(&r->model, 5, r->theta);
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_safetensors_write(&r->model, r->theta, &bytes));
    CHECK_OK(dp_file_write(folder, "model.safetensors", dp_buf_view(&bytes), NULL));
    dp_buf_clear(&bytes);
    CHECK_OK(dp_hf_config_write(&shape, &bytes, NULL));
    CHECK_OK(dp_file_write(folder, "config.json", dp_buf_view(&bytes), NULL));
    dp_buf_close(&bytes);
}

static dp_status prepare_as(struct rig *r, const dp_model_config *config, const char *weights,
                            dp_base_kind kind, dp_why *why)
{
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    char from[TEMPDIR_FILE_MAX];
    dp_manifest_default(&r->manifest);
    dp_manifest_set_model(&r->manifest, config);
    r->manifest.adapt_rank = 4;
    r->manifest.adapt_targets = DP_ADAPT_Q | DP_ADAPT_DOWN;
    r->manifest.base_kind = kind;
    const dp_prepare_job job = {.text = tempdir_file(&r->dir, "text", path),
                                .folder = tempdir_file(&r->dir, "out", folder),
                                .weights =
                                    weights != NULL ? tempdir_file(&r->dir, weights, from) : NULL};
    return dp_prepare(&job, &r->manifest, &r->made, why);
}

static dp_status prepare(struct rig *r, const char *weights, dp_base_kind kind, dp_why *why)
{
    return prepare_as(r, &shape, weights, kind, why);
}

static void open_rig(struct rig *r)
{
    tempdir_open(&r->dir);
    make_weights(r);
}

static void close_rig(struct rig *r)
{
    free(r->theta);
    dp_model_close(&r->model);
    tempdir_close(&r->dir);
}

static dp_buf read_file(const struct rig *r, const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    dp_buf bytes;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_file_read(tempdir_file(&r->dir, name, path), &bytes, NULL));
    return bytes;
}

static void weights_become_a_base_and_no_first_state(void **state)
{
    (void)state;
    struct rig r;
    dp_why why = {{0}};
    open_rig(&r);
    CHECK_OK(prepare(&r, "weights", DP_BASE_FP32, &why));
    dp_buf bytes = read_file(&r, "out/" DP_PREPARED_BASE);
    const dp_hash root = dp_object_hash(dp_buf_view(&bytes), NULL);
    assert_true(dp_hash_equal(&root, &r.manifest.base) && r.manifest.base_bytes == bytes.size);
    assert_true(dp_hash_is_zero(&r.manifest.init));
    dp_base_weights base;
    float *const back = calloc(r.model.n_elements, sizeof *back);
    CHECK_OK(dp_base_weights_open(&base, &r.model, DP_BASE_FP32, dp_buf_view(&bytes), &why));
    CHECK_OK(dp_base_weights_read(&base, back));
    assert_memory_equal(back, r.theta, r.model.n_elements * sizeof *back);
    dp_base_weights_close(&base);
    free(back);
    dp_buf_close(&bytes);
    close_rig(&r);
}

static void adapters_without_weights_or_of_another_model_are_refused(void **state)
{
    (void)state;
    struct rig r;
    dp_why why = {{0}};
    open_rig(&r);
    CHECK_STATUS(prepare(&r, NULL, DP_BASE_BF16, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "give --from FOLDER"));
    char folder[TEMPDIR_FILE_MAX];
    dp_buf bytes;
    dp_model_config other = shape;
    other.hidden = 44;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_hf_config_write(&other, &bytes, NULL));
    CHECK_OK(dp_file_write(tempdir_file(&r.dir, "weights", folder), "config.json",
                           dp_buf_view(&bytes), NULL));
    dp_buf_close(&bytes);
    CHECK_STATUS(prepare(&r, "weights", DP_BASE_BF16, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "another model"));
    close_rig(&r);
}

static void a_base_that_no_object_holds_is_told_with_the_format_that_fits(void **state)
{
    (void)state;
    dp_model model;
    dp_why why = {{0}};
    const dp_model_preset *const preset = dp_model_preset_find("llama-1b");
    dp_model_config config = preset->config;
    config.layers = 120;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    CHECK_STATUS(dp_base_file_check(&model, DP_BASE_BF16, 0, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "write model.adapt.base: int8"));
    dp_model_close(&model);
    config.layers = 256;
    config.width = 4096;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    CHECK_STATUS(dp_base_file_check(&model, DP_BASE_NF4, 0, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "take a smaller model"));
    dp_model_close(&model);
}

static void a_base_whose_weights_do_not_fit_while_it_is_made_is_told(void **state)
{
    (void)state;
    dp_model model;
    dp_why why = {{0}};
    const dp_model_preset *const preset = dp_model_preset_find("llama-1b");
    CHECK_OK(dp_model_open(&model, &preset->config, NULL));
    const uint64_t taken = 4 * (uint64_t)model.n_elements;
    CHECK_OK(dp_base_file_check(&model, DP_BASE_NF4, 0, &why));
    CHECK_OK(dp_base_file_check(&model, DP_BASE_NF4, taken, &why));
    CHECK_STATUS(dp_base_file_check(&model, DP_BASE_NF4, taken - 1, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "all weights of it in 32 bits"));
    dp_model_close(&model);
}

/* Without a file of weights: nothing of it is looked at before. */
static void a_base_that_is_too_large_is_told_before_its_weights_are_read(void **state)
{
    (void)state;
    struct rig r;
    dp_buf bytes;
    dp_why why = {{0}};
    char folder[TEMPDIR_FILE_MAX];
    open_rig(&r);
    dp_model_config other = dp_model_preset_find("llama-1b")->config;
    other.layers = 120;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_hf_config_write(&other, &bytes, NULL));
    tempdir_file(&r.dir, "weights", folder);
    CHECK_OK(dp_file_write(folder, "config.json", dp_buf_view(&bytes), NULL));
    CHECK_OK(dp_file_write(folder, "model.safetensors", dp_view_of(NULL, 0), NULL));
    dp_buf_close(&bytes);
    CHECK_STATUS(prepare_as(&r, &other, "weights", DP_BASE_BF16, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "write model.adapt.base: int8"));
    close_rig(&r);
}

static void a_folder_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    struct rig r;
    dp_hash root;
    uint64_t bytes;
    dp_why why = {{0}};
    open_rig(&r);
    CHECK_STATUS(dp_base_file_write("/nowhere/at/all", "x", &r.model, DP_BASE_BF16, r.theta, &root,
                                    &bytes, &why),
                 DP_IO);
    assert_non_null(strstr(why.text, "/nowhere/at/all/x"));
    close_rig(&r);
}

/* The state of adapters whose every number is a half. */
static void write_state(const struct rig *r, dp_model *adapters, float **params, dp_buf *state)
{
    const dp_model_config config = dp_manifest_model(&r->manifest);
    CHECK_OK(dp_model_open(adapters, &config, NULL));
    *params = calloc(adapters->n_elements, sizeof **params);
    for (size_t t = 0; t < adapters->n_tensors; t++) {
        for (size_t i = 0; i < adapters->tensors[t].elements; i++) {
            (*params)[adapters->tensors[t].offset + i] = 0.5F + (float)i * 0x1p-10F;
        }
    }
    dp_buf_init(state, BUF_MAX);
    CHECK_OK(dp_state_write(3, *params, NULL, adapters->n_elements, state));
}

static void adapters_are_exported_for_peft_and_merged(void **state)
{
    (void)state;
    struct rig r;
    dp_why why = {{0}};
    dp_model adapters;
    float *params;
    dp_buf kept;
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    char out[TEMPDIR_FILE_MAX];
    open_rig(&r);
    CHECK_OK(prepare(&r, "weights", DP_BASE_FP32, &why));
    write_state(&r, &adapters, &params, &kept);
    CHECK_OK(dp_manifest_encode(&r.manifest, manifest, &size));
    dp_buf base = read_file(&r, "out/" DP_PREPARED_BASE);
    dp_buf tokenizer = read_file(&r, "out/tokenizer.json");
    dp_export_inputs in = {dp_view_of(manifest, size),
                           dp_buf_view(&kept),
                           dp_buf_view(&tokenizer),
                           dp_view_of(NULL, 0),
                           {0}};
    dp_export_job job = {.folder = tempdir_file(&r.dir, "adapter", out)};
    CHECK_OK(dp_export_views(&job, &in, &why));
    dp_buf config = read_file(&r, "adapter/adapter_config.json");
    CHECK_OK(dp_buf_append(&config, dp_view_of("", 1)));
    assert_non_null(strstr((char *)config.data, "\"r\": 4,"));
    assert_non_null(strstr((char *)config.data, "\"lora_alpha\": 4,"));
    assert_non_null(strstr((char *)config.data, "[\"q_proj\", \"down_proj\"]"));
    dp_buf_close(&config);

    dp_buf file = read_file(&r, "adapter/adapter_model.safetensors");
    dp_safetensors *tensors;
    dp_safetensors_tensor b;
    float row[4];
    char hex[2 * DP_HASH_BYTES + 1];
    dp_hex(dp_view_of(r.manifest.base.bytes, DP_HASH_BYTES), hex);
    assert_non_null(memmem(file.data, file.size, hex, sizeof hex - 1));
    CHECK_OK(dp_safetensors_open(&tensors, dp_buf_view(&file), &why));
    CHECK_OK(dp_safetensors_find(
        tensors, "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight", &b));
    assert_int_equal(b.shape[0], 24);
    assert_int_equal(b.shape[1], 4);
    CHECK_OK(dp_safetensors_floats(&b, 4, 4, row)); /* output 1: column 1 of ours */
    dp_adapter adapter;
    assert_true(dp_model_adapter(&adapters, 1, DP_LAYER_DOWN_W, &adapter));
    for (size_t k = 0; k < 4; k++) {
        assert_true(row[k] == params[adapter.b->offset + k * 24 + 1]);
    }
    dp_safetensors_close(tensors);
    dp_buf_close(&file);

    job.merged = true; /* It needs the base, and only this one. */
    CHECK_STATUS(dp_export_views(&job, &in, &why), DP_BADHASH);
    assert_non_null(strstr(why.text, "fit no other"));
    in.base = dp_buf_view(&base);
    job.folder = tempdir_file(&r.dir, "merged", out);
    CHECK_OK(dp_export_views(&job, &in, &why));
    float *const back = calloc(r.model.n_elements, sizeof *back);
    CHECK_OK(dp_hf_import_weights(out, &r.model, back, &why));
    dp_adapter_merge(&adapters, params, r.theta);
    assert_memory_equal(back, r.theta, r.model.n_elements * sizeof *back);
    free(back);
    free(params);
    dp_model_close(&adapters);
    dp_buf_close(&tokenizer);
    dp_buf_close(&base);
    dp_buf_close(&kept);
    close_rig(&r);
}

static void an_export_that_is_too_large_is_told_before_anything_is_read(void **state)
{
    (void)state;
    struct rig r;
    dp_why why = {{0}};
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    char out[TEMPDIR_FILE_MAX];
    open_rig(&r);
    CHECK_OK(prepare(&r, "weights", DP_BASE_NF4, &why));
    dp_buf tokenizer = read_file(&r, "out/tokenizer.json");
    dp_model_config large = dp_model_preset_find("llama-1b")->config;
    large.layers = 120;
    dp_manifest_set_model(&r.manifest, &large);
    r.manifest.adapt_rank = 4;
    r.manifest.adapt_targets = DP_ADAPT_Q;
    CHECK_OK(dp_manifest_encode(&r.manifest, manifest, &size));
    const dp_export_inputs in = {.manifest = dp_view_of(manifest, size),
                                 .tokenizer = dp_buf_view(&tokenizer)};
    const dp_export_job job = {.folder = tempdir_file(&r.dir, "merged", out), .merged = true};
    CHECK_STATUS(dp_export_views(&job, &in, &why), DP_UNSUPPORTED);
    assert_non_null(strstr(why.text, "--gguf f16"));
    CHECK(access(out, F_OK) != 0);
    dp_buf_close(&tokenizer);
    close_rig(&r);
}

static void the_files_of_each_export_are_known(void **state)
{
    (void)state;
    const dp_export_job adapter = {.merged = false};
    const dp_export_job merged = {.merged = true};
    const dp_export_job gguf = {.gguf = "f32"};
    assert_string_equal(dp_export_files(&adapter, false, true)[0], "adapter_model.safetensors");
    assert_string_equal(dp_export_files(&merged, false, true)[0], "model.safetensors");
    assert_string_equal(dp_export_files(&adapter, false, false)[0], "model.safetensors");
    assert_string_equal(dp_export_files(&gguf, false, true)[0], "model.gguf");
    assert_null(dp_export_files(&adapter, true, false)[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_become_a_base_and_no_first_state),
        cmocka_unit_test(adapters_without_weights_or_of_another_model_are_refused),
        cmocka_unit_test(a_base_that_no_object_holds_is_told_with_the_format_that_fits),
        cmocka_unit_test(a_base_whose_weights_do_not_fit_while_it_is_made_is_told),
        cmocka_unit_test(a_base_that_is_too_large_is_told_before_its_weights_are_read),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_told),
        cmocka_unit_test(adapters_are_exported_for_peft_and_merged),
        cmocka_unit_test(an_export_that_is_too_large_is_told_before_anything_is_read),
        cmocka_unit_test(the_files_of_each_export_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
