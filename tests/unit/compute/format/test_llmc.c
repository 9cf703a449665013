#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/cpu/half.h"
#include "compute/format/llmc.h"
#include "tests/lib/mutate.h"

enum { LAYERS = 2, WIDTH = 8, CONTEXT = 8, VOCAB = 300, PADDED = 384, BYTES_MAX = 1 << 20 };

static const dp_model_config small = {.arch = DP_ARCH_GPT2,
                                      .layers = LAYERS,
                                      .width = WIDTH,
                                      .heads = 2,
                                      .context = CONTEXT,
                                      .vocab = VOCAB};

typedef struct rig {
    dp_model model;
    float *theta;
    dp_buf file;
} rig;

static rig rig_of(const dp_model_config *config)
{
    rig r;
    CHECK_OK(dp_model_open(&r.model, config, NULL));
    r.theta = test_calloc(r.model.n_elements, sizeof *r.theta);
    dp_model_init(&r.model, 5, r.theta);
    for (size_t t = 0; t < r.model.n_tensors; t++) { /* Biases and norms differ too. */
        const dp_tensor *const tensor = &r.model.tensors[t];
        for (size_t i = 0; i < tensor->elements; i++) {
            r.theta[tensor->offset + i] += (float)(i % 7) * 0.125F + (float)t;
        }
    }
    dp_buf_init(&r.file, BYTES_MAX);
    return r;
}

static void rig_close(rig *r)
{
    dp_buf_close(&r->file);
    test_free(r->theta);
    dp_model_close(&r->model);
}

static uint32_t field(const dp_buf *file, size_t index)
{
    uint32_t value;
    memcpy(&value, file->data + 4 * index, sizeof value);
    return value;
}

static float element(const dp_buf *file, size_t index)
{
    float value;
    memcpy(&value, file->data + DP_LLMC_HEADER_BYTES + 4 * index, sizeof value);
    return value;
}

static void the_file_is_laid_out_as_llm_c_reads_it(void **state)
{
    (void)state;
    rig r = rig_of(&small);
    CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_FP32, &r.file, NULL));
    static const uint32_t header[8] = {20240326, 3, CONTEXT, VOCAB, LAYERS, 2, WIDTH, PADDED};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(field(&r.file, i), header[i]);
    }
    /* As llm.c counts them: wte, wpe, then L times each of ln1w, ln1b, qkvw ... */
    const size_t c = WIDTH;
    const size_t elements = PADDED * c + CONTEXT * c +
                            LAYERS * (2 * c + 3 * c * c + 3 * c + c * c + c) +
                            LAYERS * (2 * c + 4 * c * c + 4 * c + 4 * c * c + c) + 2 * c;
    assert_int_equal(r.file.size, DP_LLMC_HEADER_BYTES + 4 * elements);
    const dp_tensor *const wte = dp_model_tensor(&r.model, 0, DP_SLOT_EMBED);
    const dp_tensor *const wpe = dp_model_tensor(&r.model, 0, DP_SLOT_POSITIONS);
    CHECK(element(&r.file, 3 * c + 2) == r.theta[wte->offset + 3 * c + 2]);
    CHECK(element(&r.file, VOCAB * c) == 0 && element(&r.file, PADDED * c - 1) == 0);
    CHECK(element(&r.file, PADDED * c) == r.theta[wpe->offset]);
    /* qkv of the second layer, output o, input i. */
    const dp_tensor *const qkv = dp_model_tensor(&r.model, 1, DP_LAYER_QKV_W);
    const size_t qkv_at = PADDED * c + CONTEXT * c + LAYERS * 2 * c + 3 * c * c;
    for (size_t o = 0; o < 3 * c; o++) {
        for (size_t i = 0; i < c; i++) {
            CHECK(element(&r.file, qkv_at + o * c + i) == r.theta[qkv->offset + i * 3 * c + o]);
        }
    }
    const dp_tensor *const last = dp_model_tensor(&r.model, 0, DP_SLOT_NORM_B);
    CHECK(element(&r.file, elements - 1) == r.theta[last->offset + c - 1]);
    rig_close(&r);
}

static void a_written_model_comes_back(void **state)
{
    (void)state;
    for (int type = DP_LLMC_FP32; type <= DP_LLMC_BF16; type += 2) {
        rig r = rig_of(&small);
        dp_model_config config;
        float *const back = test_calloc(r.model.n_elements, sizeof *back);
        CHECK_OK(dp_llmc_write(&r.model, r.theta, (dp_llmc_type)type, &r.file, NULL));
        CHECK_OK(dp_llmc_config(dp_buf_view(&r.file), &config, NULL));
        assert_memory_equal(&config, &r.model.config, sizeof config);
        memset(back, 0xff, r.model.n_elements * sizeof *back); /* Padding must become 0. */
        CHECK_OK(dp_llmc_read(dp_buf_view(&r.file), &r.model, back, NULL));
        for (size_t i = 0; i < r.model.n_elements; i++) {
            CHECK(back[i] ==
                  (type == DP_LLMC_FP32 ? r.theta[i] : dp_bfloat_value(dp_bfloat_of(r.theta[i]))));
        }
        test_free(back);
        rig_close(&r);
    }
}

static void set_field(rig *r, size_t index, uint32_t value)
{
    memcpy(r->file.data + 4 * index, &value, sizeof value);
}

static void refuse(rig *r, dp_status wanted, const char *word)
{
    dp_model_config config = {.layers = 77};
    dp_why why = {{0}};
    CHECK_STATUS(dp_llmc_config(dp_buf_view(&r->file), &config, &why), wanted);
    if (strstr(why.text, word) == NULL) {
        fail_msg("\"%s\" does not say %s", why.text, word);
    }
    CHECK(config.layers == 77);
}

static void headers_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const struct {
        size_t field;
        uint32_t value;
        dp_status status;
        const char *word;
    } cases[] = {{0, 20240327, DP_BADMSG, "no checkpoint"},
                 {1, 1, DP_VERSION, "version 1"},
                 {1, 4, DP_VERSION, "version 4"},
                 {7, 0, DP_VERSION, "padded"},
                 {2, 0, DP_BADARG, "context"},
                 {3, 0x80000000, DP_BADARG, "vocab"},
                 {4, UINT32_MAX, DP_BADARG, "layers"},
                 {5, 3, DP_BADARG, "heads"},
                 {6, 1 << 30, DP_BADARG, "width"},
                 {7, VOCAB - 1, DP_BADMSG, "pads"},
                 {7, 0x7fffffff, DP_BADMSG, "pads"},
                 {7, PADDED + 128, DP_BADMSG, "bytes"},
                 {4, LAYERS + 1, DP_BADMSG, "bytes"},
                 {1, 5, DP_BADMSG, "bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rig r = rig_of(&small);
        CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_FP32, &r.file, NULL));
        set_field(&r, cases[i].field, cases[i].value);
        refuse(&r, cases[i].status, cases[i].word);
        rig_close(&r);
    }
}

static void a_cut_or_longer_file_is_refused(void **state)
{
    (void)state;
    rig r = rig_of(&small);
    CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_BF16, &r.file, NULL));
    const size_t size = r.file.size;
    for (r.file.size = 0; r.file.size < size; r.file.size += r.file.size < 1100 ? 1 : 97) {
        refuse(&r, DP_BADMSG, "llm.c");
    }
    r.file.size = size;
    CHECK_OK(dp_buf_append(&r.file, dp_view_text("x")));
    refuse(&r, DP_BADMSG, "bytes");
    rig_close(&r);
}

static void a_weight_that_is_not_finite_is_named(void **state)
{
    (void)state;
    rig r = rig_of(&small);
    dp_why why = {{0}};
    const dp_tensor *const up = dp_model_tensor(&r.model, 1, DP_LAYER_UP_W);
    r.theta[up->offset + 5] = (float)NAN;
    CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_FP32, &r.file, NULL));
    CHECK_STATUS(dp_llmc_read(dp_buf_view(&r.file), &r.model, r.theta, &why), DP_DIVERGED);
    CHECK(strstr(why.text, up->name) != NULL);
    rig_close(&r);
}

static void models_that_llm_c_does_not_compute_are_refused(void **state)
{
    (void)state;
    dp_model_config other[4] = {small, small, small, small};
    other[0].activation = DP_ACTIVATION_RELU2;
    other[1].head = DP_HEAD_UNTIED;
    other[2].hidden = 3 * WIDTH;
    other[3] = (dp_model_config){
        .arch = DP_ARCH_LLAMA, .layers = 1, .width = WIDTH, .heads = 2, .context = 8, .vocab = 300};
    for (size_t i = 0; i < 4; i++) {
        rig r = rig_of(&other[i]);
        dp_why why = {{0}};
        CHECK_STATUS(dp_llmc_write(&r.model, r.theta, DP_LLMC_FP32, &r.file, &why), DP_UNSUPPORTED);
        CHECK(strstr(why.text, "GPT-2") != NULL && r.file.size == 0);
        rig_close(&r);
    }
    rig r = rig_of(&small);
    rig wide = rig_of(&(dp_model_config){.arch = DP_ARCH_GPT2,
                                         .layers = LAYERS,
                                         .width = 2 * WIDTH,
                                         .heads = 2,
                                         .context = CONTEXT,
                                         .vocab = VOCAB});
    CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_FP32, &r.file, NULL));
    CHECK_STATUS(dp_llmc_read(dp_buf_view(&r.file), &wide.model, wide.theta, NULL), DP_BADARG);
    rig_close(&wide);
    rig_close(&r);
}

static void damaged_files_never_crash(void **state)
{
    (void)state;
    rig r = rig_of(&small);
    dp_rng rng;
    dp_rng_init(&rng, 8);
    CHECK_OK(dp_llmc_write(&r.model, r.theta, DP_LLMC_BF16, &r.file, NULL));
    uint8_t *const bytes = test_malloc(r.file.size + 64);
    for (int i = 0; i < 300; i++) {
        memcpy(bytes, r.file.data, r.file.size);
        /* Where it matters: the header. */
        mutate(&rng, bytes, 32, 32);
        dp_model_config config;
        if (dp_llmc_config(dp_view_of(bytes, r.file.size), &config, NULL) == DP_OK) {
            DP_IGNORE(dp_llmc_read(dp_view_of(bytes, r.file.size), &r.model, r.theta, NULL));
        }
    }
    test_free(bytes);
    rig_close(&r);
}

static dp_status write_and_read(void *context)
{
    rig *r = context;
    dp_buf file;
    dp_buf_init(&file, BYTES_MAX);
    dp_status status = dp_llmc_write(&r->model, r->theta, DP_LLMC_FP32, &file, NULL);
    if (status == DP_OK) {
        status = dp_llmc_read(dp_buf_view(&file), &r->model, r->theta, NULL);
    }
    dp_buf_close(&file);
    return status;
}

static void without_memory_there_is_no_file(void **state)
{
    (void)state;
    rig r = rig_of(&small);
    CHECK(fail_each_allocation(write_and_read, &r) > 3);
    rig_close(&r);
}

static void types_have_names(void **state)
{
    (void)state;
    dp_llmc_type type = DP_LLMC_FP32;
    CHECK(dp_llmc_type_of("bf16", &type) && type == DP_LLMC_BF16);
    CHECK(dp_llmc_type_of("f32", &type) && type == DP_LLMC_FP32);
    CHECK(!dp_llmc_type_of("f16", &type) && !dp_llmc_type_of("", &type));
    CHECK(!dp_llmc_is(dp_view_text("GGUF")) && !dp_llmc_is(dp_view_of(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_laid_out_as_llm_c_reads_it),
        cmocka_unit_test(a_written_model_comes_back),
        cmocka_unit_test(headers_that_cannot_be_are_named),
        cmocka_unit_test(a_cut_or_longer_file_is_refused),
        cmocka_unit_test(a_weight_that_is_not_finite_is_named),
        cmocka_unit_test(models_that_llm_c_does_not_compute_are_refused),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(without_memory_there_is_no_file),
        cmocka_unit_test(types_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
