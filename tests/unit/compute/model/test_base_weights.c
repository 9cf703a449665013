#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/rng.h"
#include "compute/cpu/precision.h"
#include "compute/model/base_weights.h"

/* Rows that are no multiple of a block, and an odd number of them. */
static const dp_model_config shape = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 72,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .context = 32,
                                      .vocab = 301,
                                      .hidden = 131};

struct rig {
    dp_model model;
    float *theta;
    float *back;
    dp_buf bytes;
};

static dp_status append(void *context, dp_view bytes)
{
    return dp_buf_append(context, bytes);
}

static void open_rig(struct rig *r, dp_base_kind kind)
{
    dp_rng rng;
    assert_int_equal(dp_model_open(&r->model, &shape, NULL), DP_OK);
    r->theta = calloc(r->model.n_elements, sizeof *r->theta);
    r->back = calloc(r->model.n_elements, sizeof *r->back);
    dp_rng_init(&rng, 3);
    for (size_t t = 0; t < r->model.n_tensors; t++) {
        for (size_t i = 0; i < r->model.tensors[t].elements; i++) {
            r->theta[r->model.tensors[t].offset + i] =
                ((float)dp_rng_below(&rng, 2000001) / 1000000.0F - 1.0F) * 0.3F;
        }
    }
    dp_buf_init(&r->bytes, (size_t)1 << 30);
    assert_int_equal(dp_base_weights_write(&r->model, kind, r->theta, append, &r->bytes), DP_OK);
    assert_int_equal(r->bytes.size, dp_base_weights_bytes(&r->model, kind));
}

static void read_back(struct rig *r, dp_base_kind kind)
{
    dp_base_weights base;
    dp_why why = {{0}};
    assert_int_equal(dp_base_weights_open(&base, &r->model, kind, dp_buf_view(&r->bytes), &why),
                     DP_OK);
    assert_int_equal(dp_base_weights_read(&base, r->back), DP_OK);
    dp_base_weights_close(&base);
}

static void close_rig(struct rig *r)
{
    dp_buf_close(&r->bytes);
    free(r->back);
    free(r->theta);
    dp_model_close(&r->model);
}

static void floats_come_back_exactly(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, DP_BASE_FP32);
    read_back(&r, DP_BASE_FP32);
    assert_memory_equal(r.back, r.theta, r.model.n_elements * sizeof(float));
    close_rig(&r);
}

static void bf16_rounds_matrices_and_keeps_vectors(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, DP_BASE_BF16);
    read_back(&r, DP_BASE_BF16);
    for (size_t t = 0; t < r.model.n_tensors; t++) {
        const dp_tensor *const tensor = &r.model.tensors[t];
        for (size_t i = tensor->offset; i < tensor->offset + tensor->elements; i++) {
            const float right = tensor->n_dims == 1 ? r.theta[i] : dp_round_bf16(r.theta[i]);
            assert_true(r.back[i] == right);
        }
    }
    close_rig(&r);
}

static bool is_quantised(const dp_tensor *tensor)
{
    return tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS;
}

/* The largest |w| of the block of 64 inputs that element i of a weight is in. */
static float block_size(const struct rig *r, const dp_tensor *tensor, size_t i)
{
    const size_t column = i % tensor->shape[1];
    const size_t first = i / tensor->shape[1] / 64 * 64;
    float most = 0.0F;
    for (size_t row = first; row < first + 64 && row < tensor->shape[0]; row++) {
        most = fmaxf(most, fabsf(r->theta[tensor->offset + row * tensor->shape[1] + column]));
    }
    return most;
}

static void int8_is_half_a_step_off_at_most_and_tables_are_bf16(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, DP_BASE_INT8);
    read_back(&r, DP_BASE_INT8);
    for (size_t t = 0; t < r.model.n_tensors; t++) {
        const dp_tensor *const tensor = &r.model.tensors[t];
        for (size_t i = 0; i < tensor->elements; i++) {
            const float x = r.theta[tensor->offset + i];
            const float found = r.back[tensor->offset + i];
            if (is_quantised(tensor)) {
                assert_true(fabsf(x - found) <= 0.5001F * block_size(&r, tensor, i) / 127.0F);
            } else {
                assert_true(found == (tensor->n_dims == 1 ? x : dp_round_bf16(x)));
            }
        }
    }
    close_rig(&r);
}

/* QLoRA, appendix E: to four digits, apart from the source's own table. */
static const float nf4[16] = {-1.0F,    -0.6962F, -0.5251F, -0.3949F, -0.2844F, -0.1848F,
                              -0.0911F, 0.0F,     0.0796F,  0.1609F,  0.2461F,  0.3379F,
                              0.4407F,  0.5626F,  0.7230F,  1.0F};

static void nf4_takes_the_nearest_level(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, DP_BASE_NF4);
    read_back(&r, DP_BASE_NF4);
    for (size_t t = 0; t < r.model.n_tensors; t++) {
        const dp_tensor *const tensor = &r.model.tensors[t];
        for (size_t i = 0; i < tensor->elements && is_quantised(tensor); i++) {
            const float x = r.theta[tensor->offset + i];
            const float size = block_size(&r, tensor, i);
            float nearest = 2.0F;
            for (int k = 0; k < 16; k++) {
                nearest = fminf(nearest, fabsf(x / size - nf4[k]));
            }
            assert_true(fabsf(fabsf(x - r.back[tensor->offset + i]) / size - nearest) < 2e-4F);
        }
    }
    close_rig(&r);
}

static void a_block_of_zeros_stays_zero(void **state)
{
    (void)state;
    for (int kind = DP_BASE_INT8; kind <= DP_BASE_NF4; kind++) {
        struct rig r;
        open_rig(&r, (dp_base_kind)kind);
        memset(r.theta, 0, r.model.n_elements * sizeof *r.theta);
        dp_buf_clear(&r.bytes);
        assert_int_equal(
            dp_base_weights_write(&r.model, (dp_base_kind)kind, r.theta, append, &r.bytes), DP_OK);
        read_back(&r, (dp_base_kind)kind);
        for (size_t i = 0; i < r.model.n_elements; i++) {
            assert_true(r.back[i] == 0.0F);
        }
        close_rig(&r);
    }
}

static void any_piece_of_a_row_is_the_same(void **state)
{
    (void)state;
    for (int kind = 0; kind < DP_BASE_KINDS; kind++) {
        struct rig r;
        dp_base_weights base;
        float whole[131];
        float piece[131];
        open_rig(&r, (dp_base_kind)kind);
        assert_int_equal(
            dp_base_weights_open(&base, &r.model, (dp_base_kind)kind, dp_buf_view(&r.bytes), NULL),
            DP_OK);
        const dp_tensor *const down = dp_model_tensor(&r.model, 1, DP_LAYER_DOWN_W);
        dp_base_weights_row(&base, down, 7, 0, 131, whole);
        for (size_t first = 0; first < 131; first += 3) {
            for (size_t count = 0; first + count <= 131; count += 5) {
                dp_base_weights_row(&base, down, 7, first, count, piece);
                assert_memory_equal(piece, whole + first, count * sizeof *piece);
            }
        }
        dp_base_weights_close(&base);
        close_rig(&r);
    }
}

/* Every node must make the same object of the same weights. */
static void the_bytes_stay(void **state)
{
    (void)state;
    static const char *const roots[DP_BASE_KINDS] = {"b0877220473d35a8", "533684db35a21484",
                                                     "7f250678b835121f", "33e5998bfdd7e26a"};
    for (int kind = 0; kind < DP_BASE_KINDS; kind++) {
        struct rig r;
        char text[2 * DP_HASH_BYTES + 1];
        open_rig(&r, (dp_base_kind)kind);
        const dp_hash root = dp_object_hash(dp_buf_view(&r.bytes), NULL);
        dp_hex(dp_view_of(root.bytes, sizeof root.bytes), text);
        text[16] = '\0';
        assert_string_equal(text, roots[kind]);
        close_rig(&r);
    }
}

static void other_bytes_are_refused(void **state)
{
    (void)state;
    struct rig r;
    dp_base_weights base = {.at = NULL};
    dp_why why = {{0}};
    open_rig(&r, DP_BASE_INT8);
    const dp_view good = dp_buf_view(&r.bytes);
    for (size_t size = 0; size < good.size; size += size < 80 ? 1 : 9973) {
        assert_int_equal(
            dp_base_weights_open(&base, &r.model, DP_BASE_INT8, dp_view_of(good.data, size), &why),
            DP_BADMSG);
    }
    assert_int_equal(dp_base_weights_open(&base, &r.model, DP_BASE_NF4, good, &why), DP_BADMSG);
    dp_model other;
    dp_model_config config = shape;
    config.hidden = 132;
    assert_int_equal(dp_model_open(&other, &config, NULL), DP_OK);
    assert_int_equal(dp_base_weights_open(&base, &other, DP_BASE_INT8, good, &why), DP_BADMSG);
    assert_non_null(strstr(why.text, "another model"));
    dp_model_close(&other);
    config = shape;
    config.context = 16; /* Angles need no table, so the base is the same. */
    assert_int_equal(dp_model_open(&other, &config, NULL), DP_OK);
    assert_int_equal(dp_base_weights_open(&base, &other, DP_BASE_INT8, good, &why), DP_OK);
    dp_base_weights_close(&base);
    dp_model_close(&other);
    r.bytes.data[4] = 2;
    assert_int_equal(dp_base_weights_open(&base, &r.model, DP_BASE_INT8, good, &why), DP_VERSION);
    close_rig(&r);
}

static void failed_allocations_and_writes_are_told(void **state)
{
    (void)state;
    struct rig r;
    dp_base_weights base = {.at = NULL};
    open_rig(&r, DP_BASE_NF4);
    for (uint64_t n = 1; n <= 3; n++) {
        dp_alloc_fail_after(n);
        const dp_status status =
            dp_base_weights_open(&base, &r.model, DP_BASE_NF4, dp_buf_view(&r.bytes), NULL);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
        assert_null(base.at);
    }
    dp_buf small;
    dp_buf_init(&small, 1000);
    assert_int_equal(dp_base_weights_write(&r.model, DP_BASE_NF4, r.theta, append, &small),
                     DP_TOOBIG);
    dp_buf_close(&small);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_come_back_exactly),
        cmocka_unit_test(bf16_rounds_matrices_and_keeps_vectors),
        cmocka_unit_test(int8_is_half_a_step_off_at_most_and_tables_are_bf16),
        cmocka_unit_test(nf4_takes_the_nearest_level),
        cmocka_unit_test(a_block_of_zeros_stays_zero),
        cmocka_unit_test(any_piece_of_a_row_is_the_same),
        cmocka_unit_test(the_bytes_stay),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(failed_allocations_and_writes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
