#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/format/hf_config.h"
#include "compute/format/hf_import.h"
#include "compute/format/safetensors.h"
#include "compute/format/safetensors_read.h"
#include "compute/machine/files.h"

enum { FILE_MAX = 1 << 22 };

static const dp_model_config small[] = {
    {.layers = 2, .width = 12, .heads = 2, .context = 8, .vocab = 7},
    {.layers = 1,
     .width = 12,
     .heads = 2,
     .context = 8,
     .vocab = 7,
     .hidden = 20,
     .activation = DP_ACTIVATION_RELU2,
     .head = DP_HEAD_UNTIED},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 12,
     .heads = 4,
     .kv_heads = 2,
     .head_width = 6,
     .hidden = 10,
     .context = 8,
     .vocab = 7},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 16,
     .heads = 2,
     .context = 8,
     .vocab = 7,
     .norm_eps_nano = 1000,
     .rope_theta = 500,
     .qk_norm = DP_ON,
     .head = DP_HEAD_TIED},
    {.arch = DP_ARCH_QWEN2,
     .layers = 2,
     .width = 12,
     .heads = 2,
     .kv_heads = 1,
     .hidden = 10,
     .context = 8,
     .vocab = 7},
    {.arch = DP_ARCH_PHI3,
     .layers = 2,
     .width = 12,
     .heads = 2,
     .kv_heads = 1,
     .hidden = 10,
     .context = 8,
     .vocab = 7,
     .window = 3},
    {.arch = DP_ARCH_OLMO2,
     .layers = 2,
     .width = 12,
     .heads = 2,
     .hidden = 10,
     .context = 8,
     .vocab = 7},
    {.arch = DP_ARCH_NEOX,
     .layers = 2,
     .width = 24,
     .heads = 3,
     .hidden = 10,
     .context = 8,
     .vocab = 7,
     .rope_width = 4},
    {.arch = DP_ARCH_GEMMA3,
     .layers = 3,
     .width = 12,
     .heads = 2,
     .kv_heads = 1,
     .head_width = 4,
     .hidden = 10,
     .context = 8,
     .vocab = 7,
     .rope_theta = 1000,
     .rope_scaling = DP_ROPE_LINEAR,
     .rope_factor_milli = 8000,
     .window = 3,
     .full_every = 2,
     .rope_local_theta = 100},
};

struct folder {
    char path[64];
    dp_model model;
    float *theta;
    dp_buf weights;
};

static void put(const struct folder *f, const char *name, dp_view bytes)
{
    assert_int_equal(dp_file_write(f->path, name, bytes, NULL), DP_OK);
}

/* Every parameter another value; padding 0, as an arena has it. */
static void open_folder(struct folder *f, const dp_model_config *config)
{
    dp_buf text;
    strcpy(f->path, "/tmp/dpnode-import-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    assert_int_equal(dp_model_open(&f->model, config, NULL), DP_OK);
    f->theta = test_calloc(f->model.n_elements, sizeof *f->theta);
    for (size_t t = 0; t < f->model.n_tensors; t++) {
        for (size_t i = 0; i < f->model.tensors[t].elements; i++) {
            f->theta[f->model.tensors[t].offset + i] = (float)(f->model.tensors[t].offset + i + 1);
        }
    }
    dp_buf_init(&text, 4096);
    dp_buf_init(&f->weights, FILE_MAX);
    assert_int_equal(dp_hf_config_write(config, &text, NULL), DP_OK);
    assert_int_equal(dp_safetensors_write(&f->model, f->theta, &f->weights), DP_OK);
    put(f, "config.json", dp_buf_view(&text));
    put(f, "model.safetensors", dp_buf_view(&f->weights));
    dp_buf_close(&text);
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void close_folder(struct folder *f)
{
    assert_int_equal(nftw(f->path, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
    dp_buf_close(&f->weights);
    test_free(f->theta);
    dp_model_close(&f->model);
}

static void check_same(const struct folder *f)
{
    dp_why why = {""};
    float *const read = test_calloc(f->model.n_elements, sizeof *read);
    if (dp_hf_import_weights(f->path, &f->model, read, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    assert_memory_equal(read, f->theta, f->model.n_elements * sizeof *read);
    test_free(read);
}

static void refuse(const struct folder *f, dp_status status, const char *word)
{
    dp_why why = {""};
    float *const read = test_calloc(f->model.n_elements, sizeof *read);
    const dp_status got = dp_hf_import_weights(f->path, &f->model, read, &why);
    if (got != status || strstr(why.text, word) == NULL) {
        fail_msg("%s instead of %s: \"%s\"", dp_status_text(got), word, why.text);
    }
    test_free(read);
}

static void an_exported_model_comes_back_bit_by_bit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        struct folder f;
        dp_model_config found;
        dp_why why = {""};
        open_folder(&f, &small[i]);
        if (dp_hf_import_config(f.path, &found, &why) != DP_OK) {
            fail_msg("%s", why.text);
        }
        assert_int_equal(dp_hf_import_match(&found, &small[i], &why), DP_OK);
        check_same(&f);
        close_folder(&f);
    }
}

/* The text between two marks of the header, out and in again elsewhere; same length. */
static void replace(struct folder *f, const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    uint8_t *const at = memmem(f->weights.data, f->weights.size, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    put(f, "model.safetensors", dp_buf_view(&f->weights));
}

/* GPT-2 as its authors' folder has it: no "transformer." in front. Spaces outside the names keep
 * the length. */
static void names_may_come_without_their_front(void **state)
{
    (void)state;
    struct folder f;
    open_folder(&f, &small[0]);
    static const char front[] = "\"transformer.";
    uint8_t *at;
    while ((at = memmem(f.weights.data, f.weights.size, front, strlen(front))) != NULL) {
        memcpy(at, "            \"", strlen(front));
    }
    put(&f, "model.safetensors", dp_buf_view(&f.weights));
    check_same(&f);
    close_folder(&f);
}

static void a_tensor_too_few_or_too_many_is_named(void **state)
{
    (void)state;
    struct folder f;
    open_folder(&f, &small[0]);
    replace(&f, "h.1.mlp.c_fc.bias", "h.1.mlp.c_fc.odds");
    refuse(&f, DP_BADMSG, "h.1.mlp.c_fc.bias");
    close_folder(&f);
    open_folder(&f, &small[0]);
    dp_model_config shallow = small[0];
    shallow.layers = 1;
    dp_model_close(&f.model);
    assert_int_equal(dp_model_open(&f.model, &shallow, NULL), DP_OK);
    refuse(&f, DP_UNSUPPORTED, "transformer.h.1.");
    close_folder(&f);
}

static void a_tensor_of_another_shape_is_refused(void **state)
{
    (void)state;
    struct folder f;
    open_folder(&f, &small[2]);
    replace(&f, "\"shape\":[24,12]", "\"shape\":[12,24]");
    refuse(&f, DP_BADMSG, "q_proj.weight is [12,24], config.json makes it [24,12]");
    close_folder(&f);
}

static void weights_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    static const uint8_t nan[4] = {0, 0, 0xc0, 0x7f};
    struct folder f;
    open_folder(&f, &small[3]);
    memcpy(f.weights.data + f.weights.size - 4, nan, 4);
    put(&f, "model.safetensors", dp_buf_view(&f.weights));
    refuse(&f, DP_DIVERGED, "model.norm.weight");
    close_folder(&f);
}

/* One tensor of 12 floats in a separate file, as in the index of a large model. */
static void put_shard(const struct folder *f, const char *name, const char *tensor,
                      const float values[12])
{
    char header[160];
    uint8_t bytes[8 + 160 + 48] = {0};
    const int size =
        snprintf(header, sizeof header,
                 "{\"%s\":{\"dtype\":\"F32\",\"shape\":[12],\"data_offsets\":[0,48]}}", tensor);
    bytes[0] = (uint8_t)size;
    memcpy(bytes + 8, header, (size_t)size);
    memcpy(bytes + 8 + size, values, 48);
    put(f, name, dp_view_of(bytes, 8 + (size_t)size + 48));
}

/* Two files and an index; in the first one the tensor of the second has the name of a mask, which
 * is ignored. */
static void open_shards(struct folder *f, const char *map)
{
    char path[128];
    open_folder(f, &small[0]);
    const dp_tensor *const norm = dp_model_find(&f->model, "transformer.ln_f.bias");
    assert_non_null(norm);
    put_shard(f, "two.safetensors", "transformer.ln_f.bias", f->theta + norm->offset);
    replace(f, "transformer.ln_f.bias", "transformer.attn.bias");
    put(f, "one.safetensors", dp_buf_view(&f->weights));
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    assert_int_equal(unlink(path), 0);
    put(f, "model.safetensors.index.json", dp_view_text(map));
}

static void shards_are_read_by_their_index(void **state)
{
    (void)state;
    struct folder f;
    open_shards(&f, "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\","
                    "\"c\":\"one.safetensors\"}}");
    check_same(&f);
    close_folder(&f);
}

static void an_index_does_not_lead_out_of_the_folder(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        dp_status status;
        const char *word;
    } rows[] = {
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", DP_BADMSG, "no plain name"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", DP_BADMSG, "no plain name"},
        {"{\"weight_map\":{\"a\":\"\"}}", DP_BADMSG, "no plain name"},
        {"{\"weight_map\":{\"a\":7}}", DP_BADMSG, "no plain name"},
        {"{\"weight_map\":{\"a\":\"three.safetensors\"}}", DP_NOTFOUND, "three.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\"}}", DP_BADMSG, "transformer.ln_f.bias"},
        {"{\"weight_map\":{\"a\":\"config.json\"}}", DP_BADMSG, "config.json"},
        {"{\"weight_map\":{}}", DP_BADMSG, "no weight_map"},
        {"{", DP_BADMSG, "line 1"},
        {"", DP_BADMSG, "line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct folder f;
        open_shards(&f, rows[i].map);
        refuse(&f, rows[i].status, rows[i].word);
        close_folder(&f);
    }
}

static void a_tensor_in_two_files_is_refused(void **state)
{
    (void)state;
    struct folder f;
    open_shards(&f, "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\","
                    "\"c\":\"three.safetensors\"}}");
    const dp_tensor *const norm = dp_model_find(&f.model, "transformer.ln_f.bias");
    put_shard(&f, "three.safetensors", "ln_f.bias", f.theta + norm->offset);
    refuse(&f, DP_BADMSG, "2 times");
    close_folder(&f);
}

static void an_empty_folder_is_named(void **state)
{
    (void)state;
    struct folder f;
    dp_model_config found;
    dp_why why = {""};
    open_folder(&f, &small[0]);
    strcat(f.path, "/none");
    refuse(&f, DP_NOTFOUND, "none/model.safetensors");
    assert_int_equal(dp_hf_import_config(f.path, &found, &why), DP_NOTFOUND);
    *strrchr(f.path, '/') = '\0';
    close_folder(&f);
}

static void pickled_weights_and_adapters_are_told_from_missing_files(void **state)
{
    (void)state;
    struct folder f;
    dp_model_config found;
    dp_why why = {""};
    char path[256];
    open_folder(&f, &small[0]);
    snprintf(path, sizeof path, "%s/model.safetensors", f.path);
    assert_int_equal(unlink(path), 0);
    put(&f, "pytorch_model.bin", dp_view_text("PK"));
    refuse(&f, DP_UNSUPPORTED, "safe_serialization=True");
    snprintf(path, sizeof path, "%s/config.json", f.path);
    unlink(path);
    assert_int_equal(dp_hf_import_config(f.path, &found, &why), DP_NOTFOUND);
    put(&f, "adapter_config.json", dp_view_text("{}"));
    assert_int_equal(dp_hf_import_config(f.path, &found, &why), DP_UNSUPPORTED);
    assert_non_null(strstr(why.text, "--merged"));
    close_folder(&f);
}

static void the_model_to_write_is_told(void **state)
{
    (void)state;
    dp_why why = {""};
    dp_model_config wanted = small[2];
    wanted.context = 4;
    assert_int_equal(dp_hf_import_match(&small[2], &wanted, &why), DP_OK);
    wanted.context = 9;
    assert_int_equal(dp_hf_import_match(&small[2], &wanted, &why), DP_OK);
    wanted.layers = 3;
    assert_int_equal(dp_hf_import_match(&small[2], &wanted, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "model: {arch: llama, layers: 2, width: 12, heads: 4"));
    assert_non_null(strstr(why.text, "head: untied}"));
    wanted = small[0];
    wanted.context = 4; /* Positions are a table there. */
    assert_int_equal(dp_hf_import_match(&small[0], &wanted, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "context: 8"));
    wanted = small[0];
    wanted.softcap_milli = 30000;
    assert_int_equal(dp_hf_import_match(&small[0], &wanted, &why), DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exported_model_comes_back_bit_by_bit),
        cmocka_unit_test(names_may_come_without_their_front),
        cmocka_unit_test(a_tensor_too_few_or_too_many_is_named),
        cmocka_unit_test(a_tensor_of_another_shape_is_refused),
        cmocka_unit_test(weights_that_are_not_finite_are_refused),
        cmocka_unit_test(shards_are_read_by_their_index),
        cmocka_unit_test(an_index_does_not_lead_out_of_the_folder),
        cmocka_unit_test(a_tensor_in_two_files_is_refused),
        cmocka_unit_test(an_empty_folder_is_named),
        cmocka_unit_test(pickled_weights_and_adapters_are_told_from_missing_files),
        cmocka_unit_test(the_model_to_write_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
