/* Weights in Hugging Face's names and turns: the same values as in a safetensors file, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/format/hf_layout.h"
#include "compute/format/safetensors.h"
#include "compute/format/safetensors_read.h"
#include "compute/model/tensor_table.h"

enum { FILE_MAX = 1 << 22 };

/* Extents beside the 32 of a block: less, and more by an odd rest. */
static const dp_model_config models[] = {
    {.layers = 2, .width = 12, .heads = 2, .context = 8, .vocab = 7},
    {.layers = 1,
     .width = 44,
     .heads = 2,
     .context = 8,
     .vocab = 7,
     .hidden = 70,
     .activation = DP_ACTIVATION_RELU2,
     .head = DP_HEAD_UNTIED},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 36,
     .heads = 6,
     .kv_heads = 2,
     .head_width = 6,
     .hidden = 33,
     .context = 8,
     .vocab = 67},
    {.arch = DP_ARCH_LLAMA,
     .layers = 1,
     .width = 16,
     .heads = 2,
     .context = 8,
     .vocab = 7,
     .qk_norm = DP_ON,
     .head = DP_HEAD_TIED},
    {.arch = DP_ARCH_QWEN2,
     .layers = 1,
     .width = 16,
     .heads = 2,
     .kv_heads = 1,
     .context = 8,
     .vocab = 7},
    /* Gains that files have less 1; columns in another order, of a matrix and of a vector. */
    {.arch = DP_ARCH_GEMMA3, .layers = 2, .width = 16, .heads = 2, .context = 8, .vocab = 7},
    {.arch = DP_ARCH_NEOX,
     .layers = 2,
     .width = 36,
     .heads = 3,
     .context = 8,
     .vocab = 7,
     .rope_width = 4},
    {.arch = DP_ARCH_PHI3,
     .layers = 1,
     .width = 36,
     .heads = 3,
     .kv_heads = 1,
     .context = 8,
     .vocab = 7,
     .rope_width = 8},
};

enum { MODELS = sizeof models / sizeof models[0] };

typedef struct rig {
    dp_model model;
    dp_hf_layout *layout;
    float *arena;
    float *named;
} rig;

static rig opened(const dp_model_config *config)
{
    rig r = {0};
    assert_int_equal(dp_model_open(&r.model, config, NULL), DP_OK);
    assert_int_equal(dp_hf_layout_open(&r.layout, &r.model, NULL), DP_OK);
    r.arena = test_malloc(r.model.n_elements * sizeof *r.arena);
    r.named = test_malloc(r.model.n_parameters * sizeof *r.named);
    dp_model_init(&r.model, 5, r.arena);
    return r;
}

static void closed(rig *r)
{
    test_free(r->named);
    test_free(r->arena);
    dp_hf_layout_close(r->layout);
    dp_model_close(&r->model);
}

/* Name, shape and every value of each row are those of the file. */
static void compare_with_file(const rig *r)
{
    dp_buf bytes;
    dp_safetensors *file;
    dp_tensor_table table;
    dp_tensor_row row;
    dp_tensor_walk walk = {0};
    size_t n = 0;
    dp_buf_init(&bytes, FILE_MAX);
    assert_int_equal(dp_safetensors_write(&r->model, r->arena, &bytes), DP_OK);
    assert_int_equal(dp_safetensors_open(&file, dp_buf_view(&bytes), NULL), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_hf_layout_table(r->layout), NULL), DP_OK);
    while (dp_tensor_table_next(&table, &walk, &row)) {
        char name[DP_TENSOR_TABLE_NAME_MAX + 1];
        dp_safetensors_tensor found;
        float *const values = test_malloc(row.elements * sizeof *values);
        snprintf(name, sizeof name, "%.*s", (int)row.name.size, (const char *)row.name.data);
        assert_int_equal(dp_safetensors_find(file, name, &found), DP_OK);
        assert_int_equal(found.n_dims, row.n_dims);
        for (uint32_t i = 0; i < row.n_dims; i++) {
            assert_int_equal(found.shape[i], row.shape[i]);
        }
        assert_int_equal(dp_safetensors_floats(&found, 0, row.elements, values), DP_OK);
        assert_memory_equal(values, r->named + row.offset, row.elements * sizeof *values);
        test_free(values);
        n++;
    }
    size_t in_file = 0;
    for (const char *name = dp_safetensors_next(file, NULL); name != NULL;
         name = dp_safetensors_next(file, name)) {
        in_file++;
    }
    assert_int_equal(n, in_file);
    assert_int_equal(table.elements, r->model.n_parameters);
    dp_safetensors_close(file);
    dp_buf_close(&bytes);
}

static void every_tensor_has_the_name_shape_and_values_of_an_exported_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        rig r = opened(&models[i]);
        dp_hf_layout_name(r.layout, r.arena, r.named);
        assert_int_equal(dp_hf_layout_elements(r.layout), r.model.n_parameters);
        compare_with_file(&r);
        closed(&r);
    }
}

static void weights_come_back_to_their_places_and_the_padding_is_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        rig r = opened(&models[i]);
        const size_t size = r.model.n_elements * sizeof *r.arena;
        float *const back = test_malloc(size);
        memset(back, 0xa5, size);
        dp_hf_layout_name(r.layout, r.arena, r.named);
        dp_hf_layout_place(r.layout, r.named, back);
        assert_memory_equal(back, r.arena, size); /* whose padding is 0 (model.h) */
        test_free(back);
        closed(&r);
    }
}

static void moves_are_what_a_script_has_to_add(void **state)
{
    (void)state;
    rig r = opened(&models[2]);
    const size_t n = r.model.n_parameters;
    float *const before = test_malloc(n * sizeof *before);
    dp_hf_layout_name(r.layout, r.arena, before);
    memcpy(r.named, before, n * sizeof *before);
    for (size_t i = 0; i < r.model.n_elements; i++) {
        r.arena[i] += 0.25F * (float)(i % 7);
    }
    dp_hf_layout_moves(r.layout, r.arena, r.named);
    float *const after = test_malloc(n * sizeof *after);
    dp_hf_layout_name(r.layout, r.arena, after);
    for (size_t i = 0; i < n; i++) {
        assert_true(r.named[i] == after[i] - before[i]);
    }
    test_free(after);
    test_free(before);
    closed(&r);
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    dp_model model;
    dp_hf_layout *layout = NULL;
    assert_int_equal(dp_model_open(&model, &models[0], NULL), DP_OK);
    for (size_t n = 1; layout == NULL; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = dp_hf_layout_open(&layout, &model, NULL);
        dp_alloc_fail_after(0);
        assert_true(status == DP_OK || status == DP_NOMEM);
        assert_true((status == DP_OK) == (layout != NULL));
    }
    dp_hf_layout_close(layout);
    dp_hf_layout_close(NULL);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_has_the_name_shape_and_values_of_an_exported_file),
        cmocka_unit_test(weights_come_back_to_their_places_and_the_padding_is_zero),
        cmocka_unit_test(moves_are_what_a_script_has_to_add),
        cmocka_unit_test(missing_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
