#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/cpu/half.h"
#include "compute/format/safetensors.h"
#include "compute/model/state.h"

struct file {
    dp_model model;
    float *theta;
    dp_buf bytes;
    json_t *header;
    const uint8_t *data;
};

/* theta[i] = i, exact in fp32 for small models. */
static void open_file(struct file *f, const dp_model_config *config)
{
    assert_int_equal(dp_model_open(&f->model, config, NULL), DP_OK);
    f->theta = test_calloc(f->model.n_elements, sizeof *f->theta);
    for (size_t i = 0; i < f->model.n_elements; i++) {
        f->theta[i] = (float)i;
    }
    dp_buf_init(&f->bytes, 1 << 22);
    assert_int_equal(dp_safetensors_write(&f->model, f->theta, &f->bytes), DP_OK);
    uint64_t size;
    memcpy(&size, f->bytes.data, sizeof size);
    assert_int_equal(size % 8, 0);
    f->header = json_loadb((const char *)f->bytes.data + 8, size, 0, NULL);
    assert_non_null(f->header);
    f->data = f->bytes.data + 8 + size;
}

static void close_file(struct file *f)
{
    json_decref(f->header);
    dp_buf_close(&f->bytes);
    test_free(f->theta);
    dp_model_close(&f->model);
}

static float value_at(const struct file *f, const char *name, size_t rows, size_t columns,
                      size_t row, size_t column)
{
    const json_t *const entry = json_object_get(f->header, name);
    assert_non_null(entry);
    const json_t *const shape = json_object_get(entry, "shape");
    assert_int_equal(json_array_size(shape), rows == 0 ? 1 : 2);
    assert_int_equal(json_integer_value(json_array_get(shape, 0)), rows == 0 ? columns : rows);
    if (rows > 0) {
        assert_int_equal(json_integer_value(json_array_get(shape, 1)), columns);
    }
    const json_t *const offsets = json_object_get(entry, "data_offsets");
    const size_t first = (size_t)json_integer_value(json_array_get(offsets, 0));
    const size_t last = (size_t)json_integer_value(json_array_get(offsets, 1));
    assert_int_equal(last - first, 4 * (rows == 0 ? 1 : rows) * columns);
    float value;
    memcpy(&value, f->data + first + 4 * (row * columns + column), sizeof value);
    return value;
}

static float theta_at(const struct file *f, dp_slot slot, size_t row, size_t column)
{
    const dp_tensor *const tensor = dp_model_tensor(&f->model, slot < DP_LAYER_SLOTS ? 1 : 0, slot);
    return f->theta[tensor->offset + row * tensor->shape[1] + column];
}

static void gpt2_stands_as_in_the_arena(void **state)
{
    (void)state;
    const dp_model_config config = {.layers = 2, .width = 12, .heads = 2, .context = 5, .vocab = 7};
    struct file f;
    open_file(&f, &config);
    assert_true(value_at(&f, "transformer.h.1.attn.c_attn.weight", 12, 36, 3, 20) ==
                theta_at(&f, DP_LAYER_QKV_W, 3, 20));
    assert_true(value_at(&f, "transformer.h.1.mlp.c_fc.bias", 0, 48, 0, 9) ==
                theta_at(&f, DP_LAYER_UP_B, 9, 0));
    assert_null(json_object_get(f.header, "lm_head.weight"));
    assert_int_equal(json_object_size(f.header), f.model.n_tensors + 1); /* and the metadata */
    close_file(&f);
}

/* File [out][in] against arena [in][out], with what stands side by side apart. */
static void llama_is_turned_and_split(void **state)
{
    (void)state;
    const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                    .layers = 2,
                                    .width = 12,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_width = 6,
                                    .hidden = 10,
                                    .context = 5,
                                    .vocab = 7,
                                    .qk_norm = DP_ON};
    static const struct {
        const char *name;
        dp_slot slot;
        size_t first;
        size_t rows;
        size_t columns;
    } wanted[] = {
        {"model.layers.1.self_attn.q_proj.weight", DP_LAYER_QKV_W, 0, 24, 12},
        {"model.layers.1.self_attn.k_proj.weight", DP_LAYER_QKV_W, 24, 12, 12},
        {"model.layers.1.self_attn.v_proj.weight", DP_LAYER_QKV_W, 36, 12, 12},
        {"model.layers.1.self_attn.o_proj.weight", DP_LAYER_OUT_W, 0, 12, 24},
        {"model.layers.1.mlp.gate_proj.weight", DP_LAYER_UP_W, 0, 10, 12},
        {"model.layers.1.mlp.up_proj.weight", DP_LAYER_UP_W, 10, 10, 12},
        {"model.layers.1.mlp.down_proj.weight", DP_LAYER_DOWN_W, 0, 12, 10},
    };
    struct file f;
    open_file(&f, &config);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        for (size_t row = 0; row < wanted[i].rows; row++) {
            for (size_t column = 0; column < wanted[i].columns; column++) {
                assert_true(
                    value_at(&f, wanted[i].name, wanted[i].rows, wanted[i].columns, row, column) ==
                    theta_at(&f, wanted[i].slot, column, wanted[i].first + row));
            }
        }
    }
    assert_true(value_at(&f, "model.layers.1.self_attn.k_norm.weight", 0, 6, 0, 5) ==
                theta_at(&f, DP_LAYER_K_NORM, 5, 0));
    assert_true(value_at(&f, "lm_head.weight", 7, 12, 6, 3) == theta_at(&f, DP_SLOT_HEAD, 6, 3));
    assert_int_equal(json_object_size(f.header), 2 * 11 + 3 + 1);
    close_file(&f);
}

static void without_memory_nothing_is_appended(void **state)
{
    (void)state;
    const dp_model_config config = {
        .arch = DP_ARCH_LLAMA, .layers = 1, .width = 8, .heads = 2, .context = 5, .vocab = 7};
    struct file f;
    open_file(&f, &config);
    const size_t whole = f.bytes.size;
    for (size_t n = 1; n < 4; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = dp_safetensors_write(&f.model, f.theta, &f.bytes);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
        assert_int_equal(f.bytes.size, whole);
    }
    close_file(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_stands_as_in_the_arena),
        cmocka_unit_test(llama_is_turned_and_split),
        cmocka_unit_test(without_memory_nothing_is_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
